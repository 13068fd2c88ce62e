"""How long exact curves of traffic against capacity take, beside three other ways.

Run ``python benchmarks/bench_curve.py`` for tables, or the classes with asv.  Times of
single curves are CPU times (a curve uses one core), the median of 3 runs, compilation not
included; those of whole workloads wall times, and the load of the machine stands above
them.  Baselines, in the same run:

* stream: `Stream`, which scores every body and class of orders for *one* capacity,
  the mean of 5 capacities; a curve by it takes as many runs as it has steps;
* search: the branch and bound for *one* capacity, at all steps of the curve: what
  it would take to sample the curve where it changes;
* divisors: the space of Orojenesis, divisors only, enumerated and sorted with numpy
  (products of matrices).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from loopsched import gemm, load_workload, traffic_curve, workload_curves
from loopsched.models.traffic import Room
from loopsched.problems.problem import Problem
from loopsched.scheduler.body import PLACED, best_body

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from buffer_stream import Stream

WORKLOADS = ("deepbench_conv", "deepbench_gemm")
PRODUCT = gemm(m=4096, n=4096, k=4096)
LAYERS = load_workload("deepbench_conv").problems
CASES: dict[str, Problem] = {
    "gemm 4096^3": PRODUCT,
    "gemm 1760x128x1760": gemm(m=1760, n=128, k=1760),
    **{f"conv {LAYERS[at].name}": LAYERS[at] for at in (4, 24, 80)},
}
CAPACITIES = (1_000, 10_000, 98_304, 1_000_000, 4_718_592)


Clock = Callable[[], float]


def median_s(work: Callable[[], object], runs: int = 3, clock: Clock = time.process_time) -> float:
    """Time of one run, the median of several."""
    times = []
    for _ in range(runs):
        start = clock()
        work()
        times.append(clock() - start)
    return statistics.median(times)


def stream_s(problem: Problem) -> float:
    """Mean time of one run of the stream; the figures must agree."""
    curve = traffic_curve(problem)
    total = 0.0
    for capacity in CAPACITIES:
        stream = Stream(problem, capacity)
        start = time.process_time()
        found = stream.run().bytes
        total += time.process_time() - start
        if found != curve.at(capacity):
            raise ValueError(f"{problem.name}: stream {found}, curve {curve.at(capacity)}")
    return total / len(CAPACITIES)


def searches_s(problem: Problem) -> float:
    """Time of one search a step; the figures must agree."""
    curve = traffic_curve(problem)
    start = time.process_time()
    for capacity, moved in zip(curve.capacities_bytes, curve.dram_bytes, strict=True):
        body = best_body(problem, Room.shared(capacity), PLACED)
        if body is None or body.bytes != moved:
            raise ValueError(f"{problem.name}: search {body}, curve {moved} at {capacity}")
    return time.process_time() - start


def divisor_steps(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Capacities and bytes of a product over divisors and orders, sorted; 4-byte elements."""
    grids = np.meshgrid(*([d for d in range(1, s + 1) if s % d == 0] for s in (m, n, k)))
    tm, tn, tk = (grid.ravel().astype(np.int64) for grid in grids)
    a, b, c = m * k * (n // tn), k * n * (m // tm), m * n * (2 * (k // tk) - 1)
    orders = (m * k + b + c, a + k * n + c, a + b + m * n)
    room = np.tile(4 * (tm * tk + tk * tn + tm * tn), 3)
    moved = 4 * np.concatenate(orders)
    order = np.argsort(room, kind="stable")
    return room[order], np.minimum.accumulate(moved[order])


class Curves:
    """Timed by asv: one curve."""

    params = (tuple(CASES), ("explicit", "lru"))
    param_names = ("case", "policy")

    def setup(self, case: str, policy: str) -> None:
        traffic_curve(gemm(m=8, n=8, k=8), policy=policy)

    def time_curve(self, case: str, policy: str) -> None:
        traffic_curve(CASES[case], policy=policy)


class Divisors:
    """Tracked by asv: how much more the divisors-only curve moves, at most."""

    def track_excess(self) -> float:
        return divisors_excess(gemm(m=5124, n=700, k=2048))

    track_excess.unit = "ratio"  # type: ignore[attr-defined]


def divisors_excess(problem: Problem) -> float:
    """Highest ratio of the divisors-only curve to the exact one; never below 1."""
    sizes = problem.size
    rooms, moved = divisor_steps(sizes["M"], sizes["N"], sizes["K"])
    curve = traffic_curve(problem)
    worst = 1.0
    for capacity, least in zip(curve.capacities_bytes, curve.dram_bytes, strict=True):
        at = int(np.searchsorted(rooms, capacity, side="right")) - 1
        if at >= 0:
            worst = max(worst, float(moved[at]) / least)
            if moved[at] < least:
                raise ValueError(f"{problem.name}: divisors move less at {capacity}")
    return worst


def _one_by_one() -> None:
    print("single layers, CPU seconds")
    print(
        f"{'workload':16} {'policy':9} {'median':>8} {'p90':>8} {'most':>8} {'sum':>8} {'steps':>6}"
    )
    for name in WORKLOADS:
        problems = load_workload(name).problems
        # Caches take ten times as long and more: not for the products, some of which are huge.
        for policy, runs in (("explicit", 3), ("lru", 1))[: 2 if name == "deepbench_conv" else 1]:
            traffic_curve(gemm(m=8, n=8, k=8), policy=policy)
            each = sorted(
                median_s(lambda p=problem, how=policy: traffic_curve(p, policy=how), runs)
                for problem in problems
            )
            steps = sum(len(traffic_curve(problem)) for problem in problems)
            print(
                f"{name:16} {policy:9} {statistics.median(each):8.3f} "
                f"{each[9 * len(each) // 10]:8.3f} {each[-1]:8.3f} {sum(each):8.2f} {steps:7}"
            )


def _together() -> None:
    print("\nwhole workloads, processes started and imports included, wall seconds")
    for name in WORKLOADS:
        workload = load_workload(name)
        for jobs in (1, 2):
            seconds = median_s(
                lambda w=workload, n=jobs: list(workload_curves(w, jobs=n)), 3, time.perf_counter
            )
            print(f"{name:16} {jobs} processes {seconds:8.2f}")


def _beside() -> None:
    print("\nbaselines, CPU seconds")
    print(f"{'problem':44} {'steps':>6} {'curve':>7} {'stream, 1':>10} {'search, all':>12}")
    for name, problem in CASES.items():
        seconds = median_s(lambda p=problem: traffic_curve(p))
        print(
            f"{name:44} {len(traffic_curve(problem)):6} {seconds:7.3f} "
            f"{stream_s(problem):10.3f} {searches_s(problem):12.2f}"
        )
    print(f"\n{'divisors only':44} {'seconds':>8} {'worst over exact':>17}")
    for name, (m, n, k) in {
        "gemm 4096^3": (4096, 4096, 4096),
        "gemm 5124x700x2048": (5124, 700, 2048),
        "gemm 8191^3 (prime)": (8191, 8191, 8191),
    }.items():
        seconds = median_s(lambda m=m, n=n, k=k: divisor_steps(m, n, k))
        worst = divisors_excess(gemm(m=m, n=n, k=k))
        print(f"{name:44} {seconds:8.3f} {worst:17.2f}")


def main() -> None:
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    _one_by_one()
    _together()
    _beside()


if __name__ == "__main__":
    main()
