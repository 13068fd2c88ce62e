"""How many accesses a core replays in a second.

Run ``python benchmarks/bench_simulator.py`` for a table, or the classes with asv.
An access is one element of a tensor touched at one point; the update of the
output in place is one.  Times are CPU time, the generation of the accesses
included, compilation not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from loopsched import (
    Problem,
    Schedule,
    conv2d,
    gemm,
    load_arch,
    parse_schedule,
    simulate,
    stack_distances,
)

GEMM = gemm(m=512, n=512, k=512)
CONV = conv2d(n=1, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)
CASES: dict[str, tuple[Problem, str]] = {
    "gemm 512^3": (GEMM, "M:512@SM N:512@SM K:512"),
    "gemm 512^3, tiled": (GEMM, "M:512@SM N:512@SM K:512 M:64 N:64 K:32"),
    "conv 3x3, R S last": (CONV, "K:64@SM P:56@SM C:64 Q:56 K:16 C:16 P:14 Q:14 R:3 S:3"),
    "conv 3x3, Q last": (CONV, "K:64@SM P:56@SM C:64 K:16 C:16 P:14 R:3 S:3 Q:56"),
}
CAPACITY = {"capacity_bytes": 49152}
SETS = {**CAPACITY, "line_bytes": 64, "ways": 12}
TITAN_V = load_arch("titan_v")
KINDS: dict[str, Callable[[Problem, Schedule], object]] = {
    "LRU": lambda p, s: simulate(p, s, **CAPACITY),
    "LRU, 64 B lines": lambda p, s: simulate(p, s, **CAPACITY, line_bytes=64),
    "12 ways, 64 B lines": lambda p, s: simulate(p, s, **SETS),
    "12 ways, random": lambda p, s: simulate(p, s, **SETS, policy="random"),
    "Belady": lambda p, s: simulate(p, s, **CAPACITY, policy="belady"),
    "stack distances": lambda p, s: stack_distances(p, s),
    "stack distances, 64 B": lambda p, s: stack_distances(p, s, line_bytes=64),
    "80 in lock-step, one L2": lambda p, s: simulate(p, s, capacity_bytes=4_718_592, instances=80),
    "80 L1s under one L2": lambda p, s: simulate(p, s, arch=TITAN_V),
    "80 L1s, 32 B lines": lambda p, s: simulate(p, s, arch=TITAN_V, line_bytes=32),
}


def cpu_s(work: Callable[[], object]) -> float:
    """CPU time of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


class Accesses:
    """Tracked by asv: accesses a second."""

    params = (list(CASES), list(KINDS))
    timeout = 300

    def track_accesses_per_s(self, case: str, kind: str) -> float:
        """Replay one case."""
        problem, text = CASES[case]
        schedule = parse_schedule(text, problem)
        small = gemm(m=8, n=8, k=8)
        KINDS[kind](small, parse_schedule("M:8@SM N:8@SM K:8 M:4 N:4 K:2", small))
        total = simulate(problem, schedule, capacity_bytes=1 << 30, line_bytes=1 << 20).accesses
        return total / cpu_s(lambda: KINDS[kind](problem, schedule))


class Tiles:
    """Tracked by asv: seconds for 65,536 thread blocks."""

    def time_large_gemm(self) -> None:
        """Replay whole tiles of a 16384 x 16384 x 2048 product on an H200."""
        problem = gemm(m=16384, n=16384, k=2048)
        nest = parse_schedule("M:16384@SM N:16384@SM K:2048 M:64 N:64 K:32", problem)
        simulate(problem, nest, arch=load_arch("h200"), granularity="tile")


def main(chosen: list[str]) -> None:
    """Print millions of accesses a second."""
    bench = Accesses()
    print(f"{'million accesses/s a core':28}" + "".join(f"{case:>20}" for case in CASES))
    for kind in chosen or KINDS:
        rates = [bench.track_accesses_per_s(case, kind) for case in CASES]
        print(f"{kind:28}" + "".join(f"{rate / 1e6:20.0f}" for rate in rates), flush=True)
    bench_tiles = Tiles()
    bench_tiles.time_large_gemm()
    print(f"GEMM of 65,536 thread blocks, tile by tile: {cpu_s(bench_tiles.time_large_gemm):.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
