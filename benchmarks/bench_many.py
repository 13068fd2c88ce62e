"""Time `loopsched.evaluate_many` against a loop over `loopsched.evaluate`, in one run.

Run ``python benchmarks/bench_many.py [--schedules N] [--repeats N] [--arch NAME]``.  Schedules
are random tilings of the search space of some of DeepBench's problems.  Columns: microseconds a
schedule of `evaluate_many`, of the compiled form in it alone, and of `evaluate` on some of the
schedules; how many times as fast the first is; per mille of schedules whose promise rests on a
replay, which takes milliseconds each in either.  Medians; what is compiled is not counted.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from itertools import islice

from loopsched import Arch, Problem, Schedule, evaluate, evaluate_many, load_arch, load_workload
from loopsched.base.errors import CapacityError
from loopsched.models import _promise_kernels as kernels
from loopsched.models import promises
from loopsched.models.machine import data_type_of
from loopsched.scheduler import space_of
from loopsched.scheduler.climbing import draws

SAMPLE = 200


def tilings(problem: Problem, arch: Arch, n: int) -> list[Schedule]:
    """Draw schedules of a problem's space."""
    drawn = islice(draws(space_of(problem, arch), random.Random(1)), n)
    return [limits.schedule(choice) for limits, choice in drawn]


def micros(work: Callable[[], object], n: int, repeats: int) -> float:
    """Time some work; the median of microseconds for each of ``n``."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append((time.perf_counter() - start) / n * 1e6)
    return statistics.median(found)


def one_by_one(problem: Problem, nests: list[Schedule], arch: Arch) -> None:
    """Score schedules in a loop."""
    for nest in nests:
        try:
            evaluate(problem, nest, arch)
        except CapacityError:
            continue


def row(problem: Problem, arch: Arch, n: int, repeats: int) -> str:
    """Measure one problem."""
    nests = tilings(problem, arch, n)
    lanes = max(1, int(arch.compute.rate(data_type_of(problem, arch))))
    found = promises.promised_many(problem, nests, arch, lanes)
    replays = (found[:, kernels.OUTCOME] == kernels.UNKNOWN).mean() * 1000
    alone = micros(lambda: promises.promised_many(problem, nests, arch, lanes), n, repeats)
    many = micros(lambda: evaluate_many(problem, nests, arch), n, 1)
    single = micros(lambda: one_by_one(problem, nests[:SAMPLE], arch), SAMPLE, 1)
    numbers = f"{many:8.1f} {alone:8.1f} {single:8.1f} {single / many:6.1f} {replays:8.1f}"
    return f"{problem.name:40} {numbers}"


def main() -> None:
    """Print a line for each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--arch", default="titan_v")
    given = parser.parse_args()
    arch, n = load_arch(given.arch), given.schedules
    promises.COMPILED_FROM = 0
    print(f"{'problem':40} {'many':>8} {'compiled':>8} {'single':>8} {'times':>6} {'replays':>8}")
    for name in ("deepbench_gemm", "deepbench_conv"):
        for problem in load_workload(name).problems[3::45]:
            print(row(problem, arch, n, given.repeats), flush=True)


if __name__ == "__main__":
    main()
