"""Tiles placed one by one in one buffer: AccelForge's imperfect mapper beside ours.

    peers/accelforge/bin/python uneven.py peer > peer.jsonl
    python uneven.py ours > ours.jsonl
    python uneven.py compare peer.jsonl ours.jsonl > results/uneven.txt

Seven products of matrices on which uneven placement was once better than what we found, and
twenty small problems drawn with a fixed seed.  Both sides move the fewest bytes between DRAM
and one explicit buffer; tiles need not divide.  CPU times are of a side's first call for the
row, after it has solved two others, a product and a convolution; reading specification files
is not counted.  Of runs written to one file the least time of a row counts.
"""

from __future__ import annotations

import json
import random
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import common

LIMIT_S = 120
Sizes = dict[str, int]


def rows() -> Iterator[tuple[str, Sizes, int]]:
    """Name, sizes and capacity in bytes."""
    for elements in (16, 32, 64, 256, 1024):
        yield f"gemm 512^3, {elements}", {"m": 512, "n": 512, "k": 512}, 4 * elements
    yield "gemm 5124x700x2048, 24576", {"m": 5124, "n": 700, "k": 2048}, common.L1_BYTES
    yield "gemm 8191^3, L2", {"m": 8191, "n": 8191, "k": 8191}, common.L2_BYTES
    rng = random.Random(11)
    for _ in range(14):
        m, n, k = (rng.randint(8, 300) for _ in "mnk")
        elements = rng.choice((16, 48, 100, 300, 1000, 3000))
        yield f"gemm {m}x{n}x{k}, {elements}", {"m": m, "n": n, "k": k}, 4 * elements
    for _ in range(6):
        sizes = {"n": 1, **{dim: rng.randint(3, 12) for dim in "kcpq"}}
        sizes |= {"r": rng.randint(1, 3), "s": 1, "stride": 1}
        elements = rng.choice((32, 100, 400))
        text = " ".join(f"{dim}{size}" for dim, size in sizes.items() if size > 1)
        yield f"conv {text}, {elements}", sizes, 4 * elements


def accelforge_call(sizes: Sizes, capacity: int) -> Callable[[], int]:
    """Prepare AccelForge's mapper for a problem; it returns bytes."""
    import accelforge
    from accelforge.mapper.FFM.main import map_workload_to_arch
    from accelforge.util.parallel import set_n_parallel_jobs
    from accelforge_peer import machine, workload

    set_n_parallel_jobs(1)
    folder = Path(tempfile.mkdtemp())
    files = folder / "arch.yaml", folder / "workload.yaml"
    files[0].write_text(machine(capacity))
    files[1].write_text(workload(sizes))
    spec = accelforge.Spec.from_yaml(*map(str, files))
    spec.mapper.metrics = accelforge.Metrics.ENERGY
    spec.mapper.explore_imperfect_temporal_loops = True

    def call() -> int:
        found = map_workload_to_arch(spec, print_progress=False, eval_in_detail=False)
        return round(float(found.data["Total<SEP>energy"].min()) / 8)

    return call


def our_call(sizes: Sizes, capacity: int) -> Callable[[], int]:
    """Prepare our search for a problem; it returns bytes."""
    from loopsched import buffer_arch, conv2d, gemm, search

    if common.is_gemm(sizes):
        problem = gemm(**sizes)
    else:
        h, w = sizes["p"] + sizes["r"] - 1, sizes["q"] + sizes["s"] - 1
        own = {dim: sizes[dim] for dim in "nkcrs"}
        problem = conv2d(h=h, w=w, **own)
    arch = buffer_arch(capacity_bytes=capacity, policy="explicit")
    return lambda: search(problem, arch, objective="dram_bytes").evaluation.dram_bytes


def run(prepare: Callable[[Sizes, int], Callable[[], int]]) -> None:
    """Print a JSON line a row."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    prepare({"m": 40, "n": 30, "k": 20}, 1024)()
    prepare({"n": 1, "k": 4, "c": 3, "p": 5, "q": 4, "r": 2, "s": 1, "stride": 1}, 128)()
    for name, sizes, capacity in rows():
        row: dict[str, Any] = {"row": name}
        signal.alarm(LIMIT_S)
        try:
            moved, cpu_s, _ = common.clocked(prepare(sizes, capacity))
            row |= {"bytes": moved, "cpu_s": cpu_s}
        except TimeoutError:
            row |= {"bytes": None, "cpu_s": LIMIT_S}
        signal.alarm(0)
        print(json.dumps(row), flush=True)


def compare(peer: str, ours: str) -> None:
    """Print both sides, row by row, and the extremes."""
    theirs, own = fastest(peer), fastest(ours)
    ratios, faster = [], []
    for row, mine in own.items():
        other = theirs[row]
        ratios.append(other["bytes"] / mine["bytes"] if other["bytes"] else float("nan"))
        faster.append(other["cpu_s"] / mine["cpu_s"])
        print(
            f"{row:32} {other['bytes'] or 'no answer':>14} {mine['bytes']:>14} {ratios[-1]:8.4f} "
            f"{other['cpu_s']:9.2f} s {1000 * mine['cpu_s']:9.2f} ms {faster[-1]:8.0f}"
        )
    answered = [ratio for ratio in ratios if ratio == ratio]
    print(
        f"least ratio of bytes {min(answered):.6f}; of CPU times least {min(faster):.0f}, median "
        f"{statistics.median(faster):.0f}, at least 100 in {sum(each >= 100 for each in faster)}"
    )


def fastest(path: str) -> dict[str, dict[str, Any]]:
    """Read the rows of a file, each at its least time."""
    found: dict[str, dict[str, Any]] = {}
    for line in Path(path).read_text().splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            found[row["row"]] = min(
                row, found.get(row["row"], row), key=lambda one: float(one["cpu_s"])
            )
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["peer"]:
        common.limit_memory()
        run(accelforge_call)
    elif sys.argv[1:] == ["ours"]:
        run(our_call)
    else:
        compare(*sys.argv[2:])
