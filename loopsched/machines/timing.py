"""Short measurements of this CPU: its clock, and how fast cores read together."""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from loopsched.base.machine_code import called

_CHAIN = 64
_UNROLLED = 8
CLOCK_STEP_HZ = 100e6
"""What measured clocks are rounded to."""


@lru_cache(maxsize=1)
def _chain() -> Callable[..., int]:
    """Compile a loop in which each operation takes one cycle and waits for the one before."""
    lines = [
        "define i64 @chain(i64 %n, i64 %y, i64 %z) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ %n, %entry ], [ %j, %loop ]",
        f"  %v0 = phi i64 [ %y, %entry ], [ %v{_CHAIN}, %loop ]",
    ]
    for at in range(0, _CHAIN, 2):
        lines.append(f"  %v{at + 1} = add i64 %v{at}, %y")
        lines.append(f"  %v{at + 2} = xor i64 %v{at + 1}, %z")
    lines += [
        "  %j = sub i64 %i, 1",
        "  %more = icmp ne i64 %j, 0",
        "  br i1 %more, label %loop, label %done",
        "done:",
        f"  ret i64 %v{_CHAIN}",
        "}",
    ]
    return called("\n".join(lines), "chain", *[ctypes.c_int64] * 4)


@lru_cache(maxsize=1)
def measured_clock_hz() -> float:
    """Time dependent additions, one per cycle: the highest of thirty clocks, rounded."""
    chain = _chain()
    rounds = 40_000
    clocks = []
    for _ in range(30):
        start = time.thread_time()
        chain(rounds, 3, 5)
        clocks.append(_CHAIN * rounds / (time.thread_time() - start))
    return round(max(clocks) / CLOCK_STEP_HZ) * CLOCK_STEP_HZ


@lru_cache
def reader(vector_bytes: int) -> Callable[[int, int, int, int], None]:
    """Compile what reads so many bytes from an address so many times, eight vectors a step.

    All that it read is ORed into one vector, at the address that it takes last.
    """
    lanes = vector_bytes // 4
    kind = f"<{lanes} x i32>"
    lines = [
        "define void @read(ptr %from, i64 %bytes, i64 %times, ptr %sink) {",
        "entry:",
        "  br label %outer",
        "outer:",
        "  %t = phi i64 [ %times, %entry ], [ %u, %again ]",
        *(
            f"  %b{at} = phi {kind} [ zeroinitializer, %entry ], [ %n{at}, %again ]"
            for at in range(_UNROLLED)
        ),
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %outer ], [ %j, %loop ]",
        *(
            f"  %a{at} = phi {kind} [ %b{at}, %outer ], [ %n{at}, %loop ]"
            for at in range(_UNROLLED)
        ),
    ]
    for at in range(_UNROLLED):
        lines += [
            f"  %o{at} = add i64 %i, {at * vector_bytes}",
            f"  %p{at} = getelementptr i8, ptr %from, i64 %o{at}",
            f"  %l{at} = load {kind}, ptr %p{at}, align 4",
            f"  %n{at} = or {kind} %a{at}, %l{at}",
        ]
    lines += [
        f"  %j = add i64 %i, {_UNROLLED * vector_bytes}",
        "  %more = icmp ult i64 %j, %bytes",
        "  br i1 %more, label %loop, label %again",
        "again:",
        "  %u = sub i64 %t, 1",
        "  %left = icmp ne i64 %u, 0",
        "  br i1 %left, label %outer, label %done",
        "done:",
        *_joined(kind),
        "  ret void",
        "}",
    ]
    return called(
        "\n".join(lines), "read", None, ctypes.c_void_p, *[ctypes.c_int64] * 2, ctypes.c_void_p
    )


def _joined(kind: str) -> list[str]:
    lines = [f"  %s1 = or {kind} %n0, %n1"]
    for at in range(2, _UNROLLED):
        lines.append(f"  %s{at} = or {kind} %s{at - 1}, %n{at}")
    return [*lines, f"  store {kind} %s{_UNROLLED - 1}, ptr %sink, align 4"]


class Memory:
    """Bytes that exist: each page was written."""

    def __init__(self, n_bytes: int) -> None:
        self._map = mmap.mmap(-1, n_bytes)
        if hasattr(mmap, "MADV_HUGEPAGE"):  # as NumPy asks for its large arrays
            with suppress(OSError):
                self._map.madvise(mmap.MADV_HUGEPAGE)
        self.bytes = n_bytes
        self._view = (ctypes.c_char * n_bytes).from_buffer(self._map)
        self.address = ctypes.addressof(self._view)
        ctypes.memset(self.address, 1, n_bytes)

    def close(self) -> None:
        """Give the bytes back."""
        del self._view
        with suppress(BufferError):
            self._map.close()


def together(work: Sequence[Callable[[], Any]]) -> list[float]:
    """Do work in as many threads at the same time; return the seconds that each one computed.

    They are those of the thread's own clock, which stands still while other processes run.
    """
    gate = threading.Barrier(len(work))
    taken = [0.0] * len(work)

    def run(at: int) -> None:
        with suppress(threading.BrokenBarrierError):
            gate.wait()
            start = time.thread_time()
            work[at]()
            taken[at] = time.thread_time() - start

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(work))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:  # those that wait would wait for ever
        gate.abort()
        raise
    return taken


def read_rate(n_threads: int, n_bytes: int, vector_bytes: int, *, seconds: float = 0.03) -> float:
    """Measure the bytes a second that threads read together, each from memory of its own.

    Parameters
    ----------
    n_threads : int
    n_bytes : int, bytes
        Of one thread, read again and again.
    vector_bytes : int, bytes
    seconds : float
        That one of three tries takes, about.
    """
    read = reader(vector_bytes)
    block = _UNROLLED * vector_bytes
    size = max(block, n_bytes // block * block)
    memories = [Memory(size) for _ in range(n_threads)]
    sinks = [ctypes.create_string_buffer(vector_bytes) for _ in range(n_threads)]

    def run(memory: Memory, sink: Any, times: int) -> None:
        read(memory.address, size, times, ctypes.addressof(sink))

    def rate(times: int) -> tuple[float, float]:
        work = [
            partial(run, memory, sink, times)  # holds them, too, should Ctrl-C end the wait
            for memory, sink in zip(memories, sinks, strict=True)
        ]
        taken = [max(one, 1e-7) for one in together(work)]
        return sum(size * times / one for one in taken), min(taken)

    times, taken = 1, rate(1)[1]
    while taken < seconds / 2:
        times = max(2 * times, int(times * seconds / taken / 2))
        taken = rate(times)[1]
    best = max(rate(times)[0] for _ in range(3))
    for memory in memories:
        memory.close()
    return best


def rounded(number: float, digits: int = 2) -> float:
    """Round to a number of digits.

    Examples
    --------
    >>> rounded(24_681_000_000.0), rounded(0.0123456, 3)
    (25000000000.0, 0.0123)
    """
    return float(f"{number:.{digits - 1}e}")
