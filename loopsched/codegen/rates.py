"""What a CPU does when it is measured: multiply-adds, latencies, bandwidth of every level."""

from __future__ import annotations

import ctypes
import math
import random
import time
from collections.abc import Callable
from functools import lru_cache

from loopsched.base.errors import ArchError
from loopsched.base.machine_code import called
from loopsched.base.rows import Row
from loopsched.machines.host import Measured
from loopsched.machines.host_facts import Host
from loopsched.machines.timing import Memory, measured_clock_hz, read_rate, rounded

_TURNS = 8  # of a chain in one iteration


@lru_cache
def multiply_adds(lanes: int, chains: int) -> Callable[[int, int], None]:
    """Compile chains of dependent multiply-adds, side by side, eight of each an iteration.

    It takes the number of iterations and an address: of the vector that is multiplied by
    itself, where each chain begins, and where the vectors of all chains are written.
    """
    kind = f"<{lanes} x float>"
    name = f"llvm.fma.v{lanes}f32"
    lines = [
        "define void @work(i64 %n, ptr %sink) {",
        "entry:",
        f"  %x = load {kind}, ptr %sink, align 4",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ %n, %entry ], [ %j, %loop ]",
    ]
    lines += [
        f"  %c{one}_0 = phi {kind} [ %x, %entry ], [ %c{one}_{_TURNS}, %loop ]"
        for one in range(chains)
    ]
    lines += [
        f"  %c{one}_{at + 1} = call {kind} @{name}({kind} %x, {kind} %x, {kind} %c{one}_{at})"
        for at in range(_TURNS)
        for one in range(chains)
    ]
    lines += [
        "  %j = sub i64 %i, 1",
        "  %more = icmp ne i64 %j, 0",
        "  br i1 %more, label %loop, label %done",
        "done:",
    ]
    for one in range(chains):
        lines.append(f"  %p{one} = getelementptr i8, ptr %sink, i64 {one * lanes * 4}")
        lines.append(f"  store {kind} %c{one}_{_TURNS}, ptr %p{one}, align 4")
    lines += ["  ret void", "}", f"declare {kind} @{name}({kind}, {kind}, {kind})"]
    return called("\n".join(lines), "work", None, ctypes.c_int64, ctypes.c_void_p)


def multiply_adds_per_s(vector_bytes: int, chains: int, *, tries: int = 40) -> float:
    """Measure the vector multiply-adds a second of one core, in so many dependent chains."""
    run = multiply_adds(vector_bytes // 4, chains)
    sink = ctypes.create_string_buffer(chains * vector_bytes)
    n = 200_000 // chains
    best = float("inf")
    for _ in range(tries):
        start = time.thread_time()
        run(n, ctypes.addressof(sink))
        best = min(best, time.thread_time() - start)
    return n * chains * _TURNS / best


@lru_cache(maxsize=1)
def chase() -> Callable[[int, int], int]:
    """Compile what follows addresses, eight in an iteration."""
    lines = [
        "define ptr @chase(ptr %from, i64 %n) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ %n, %entry ], [ %j, %loop ]",
        f"  %p0 = phi ptr [ %from, %entry ], [ %p{_TURNS}, %loop ]",
        *(f"  %p{at + 1} = load ptr, ptr %p{at}, align 8" for at in range(_TURNS)),
        "  %j = sub i64 %i, 1",
        "  %more = icmp ne i64 %j, 0",
        "  br i1 %more, label %loop, label %done",
        "done:",
        f"  ret ptr %p{_TURNS}",
        "}",
    ]
    return called("\n".join(lines), "chase", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def linked_lines(memory: Memory, line_bytes: int) -> int:
    """Write into each line the address of another: one round of all in random order, counted."""
    n_lines = memory.bytes // line_bytes
    order = list(range(n_lines))
    random.Random(0).shuffle(order)
    step = line_bytes // 8
    places = (ctypes.c_uint64 * (n_lines * step)).from_address(memory.address)
    for at, line in enumerate(order):
        places[order[at - 1] * step] = memory.address + line * line_bytes
    return n_lines


def load_latency_s(n_bytes: int, line_bytes: int, *, tries: int = 5) -> float:
    """Measure the seconds from one load to the next that needs it, in a random round of lines."""
    memory = Memory(n_bytes)
    n_lines = linked_lines(memory, line_bytes)
    follow = chase()
    n = max(20_000, min(n_lines, 400_000)) // _TURNS
    follow(memory.address, n_lines // _TURNS + 1)
    taken = []
    for _ in range(tries):
        start = time.thread_time()
        follow(memory.address, n)
        taken.append(time.thread_time() - start)
    memory.close()
    return min(taken) / (n * _TURNS)


def thread_counts(n_cores: int) -> list[int]:
    counts = [1]
    while counts[-1] * 2 < n_cores:
        counts.append(counts[-1] * 2)
    return [*counts, n_cores] if n_cores > 1 else counts


def bytes_of_a_thread(host: Host) -> dict[str, int]:
    """Choose what each thread reads: more than the level inside has, and less than its share."""
    last = host.caches[0]
    sizes = {"DRAM": min(4 * last.capacity_bytes * last.instances, 2**30) // host.n_cores}
    shares = [each.capacity_bytes * each.instances // host.n_cores for each in host.caches]
    for cache, share, inner in zip(host.caches, shares, [*shares[1:], 0], strict=True):
        sizes[f"L{cache.level}"] = inner + min(share // 2, 2 * inner or share)
    return sizes


def _units(rate: float) -> int:
    """Count the units that a rate takes: what is lost to other work is not a unit less.

    Examples
    --------
    >>> _units(1.02), _units(1.3), _units(1.95)
    (1, 2, 2)
    """
    return max(1, math.ceil(rate - 0.15))


def measure(host: Host, day: str, says: Callable[[str], None]) -> tuple[Measured, list[Row]]:
    """Measure a machine's cores and levels.

    Parameters
    ----------
    host : Host
    day : str
        When that was, for the sources.
    says : callable
        Told what is measured next.

    Returns
    -------
    Measured
        What an architecture file is written with.
    list of Row
        ``level``, ``cores``, ``bytes_per_s`` and ``latency_cycles`` of each level and count.

    Raises
    ------
    ArchError
        If there are no fused multiply-adds.
    """
    if host.isa == "x86-64" and "fma" not in host.features:
        raise ArchError(f"'{host.title}' has no fused multiply-adds, so code is not made for it")
    says("the clock and multiply-adds")
    clock = measured_clock_hz()
    one = multiply_adds_per_s(host.vector_bytes, 1)
    chains = 24 if host.isa == "aarch64" or host.vector_bytes == 64 else 12
    many = multiply_adds_per_s(host.vector_bytes, chains)
    rows: list[Row] = []
    rates: dict[str, float] = {}
    constants: list[tuple[str, str, str]] = []
    lines = {f"L{cache.level}": cache.line_bytes for cache in host.caches}
    for name, n_bytes in bytes_of_a_thread(host).items():
        says(name)
        line = lines.get(name, host.caches[0].line_bytes)
        latency = max(1, round(load_latency_s(min(n_bytes, 2**27), line) * clock))
        constants.append(
            (f"{name.casefold()}_latency", f"{latency} cycles", f"loads from {name} in a chain")
        )
        for n_threads in thread_counts(host.n_cores):
            rate = read_rate(n_threads, n_bytes, host.vector_bytes, seconds=0.3)
            rates[name] = rounded(rate, 3)
            cores = f"{n_threads} core{'s' if n_threads > 1 else ''}"
            key = f"{name.casefold()}_bandwidth_{n_threads}"
            constants.append((key, f"{rates[name]!r} B/s", f"{cores} read from {name}"))
            rows.append(
                {
                    "level": name,
                    "cores": n_threads,
                    "bytes_per_s": rates[name],
                    "latency_cycles": latency if n_threads == 1 else None,
                }
            )
    first = next(row["bytes_per_s"] for row in rows if row["level"] == "L1")
    measured = Measured(
        clock_hz=clock,
        bandwidths=rates,
        how=f"Measured here on {day}: {{what}}",
        fma_per_cycle=_units(many / clock),
        load_per_cycle=_units(first / host.vector_bytes / clock),
        fma_latency=float(round(clock / one * 4) / 4),
        constants=tuple(constants),
    )
    return measured, rows
