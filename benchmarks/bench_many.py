"""Time `loopsched.evaluate_many` against a loop over `loopsched.evaluate`, in one run.

Run ``python benchmarks/bench_many.py [--schedules N] [--repeats N] [--jobs N] [--arch
NAME]``.  Schedules are random tilings of the search space of some of DeepBench's problems, then
grids of tile sizes, most of whose waves end within an iteration.  Columns: microseconds a
schedule of `evaluate_many`, of the compiled form in it alone, and of `evaluate` on some of the
schedules; how many times as fast the first is; per mille of schedules that are left to Python,
milliseconds each in either; seconds that `evaluate_many` takes for 100,000.  Medians; what is
compiled is not counted, and a grid is scored once: what its replays find is kept.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice

from loopsched import (
    Arch,
    Problem,
    Schedule,
    conv2d,
    evaluate,
    evaluate_many,
    gemm,
    load_arch,
    load_workload,
    parse_schedule,
)
from loopsched.base.errors import CapacityError
from loopsched.models import _promise_kernels as kernels
from loopsched.models import promises
from loopsched.models.machine import data_type_of
from loopsched.scheduler import space_of
from loopsched.scheduler.climbing import draws

SAMPLE = 200
GRIDS = (
    (
        "blocks of any size",
        gemm(m=1024, n=1024, k=1024),
        "M:1024@SM N:1024@SM K:1024 M:{} N:{} K:{}",
        range(8, 208, 8),
        range(8, 208, 8),
        (1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 256),
    ),
    (
        "odd sizes",
        gemm(m=4096, n=700, k=2048),
        "N:700@SM M:4096@SM K:2048 M:{} N:{} K:{}",
        range(16, 272, 16),
        range(10, 170, 10),
        (4, 8, 16, 32, 64),
    ),
    (
        "tiles within blocks",
        gemm(m=4096, n=700, k=2048),
        "M:4096@SM N:700@SM K:2048 M:{} N:{} K:{} M:{} N:{}",
        (32, 48, 64, 96, 128),
        (32, 50, 64, 100, 128),
        (8, 16, 32, 64),
        (1, 2, 4, 8, 16),
        (1, 2, 4, 8, 16),
    ),
    (
        "loops around blocks",
        gemm(m=4096, n=700, k=2048),
        "M:4096 N:700 M:{}@SM N:{}@SM K:2048 M:{} N:{} K:{}",
        (512, 1024, 1280, 2048),
        (175, 350, 400),
        (16, 32, 48, 64, 96, 128),
        (25, 32, 50, 64, 100, 128),
        (8, 16, 32, 64),
    ),
    (
        "3x3, items of images",
        conv2d(n=16, c=32, k=64, h=12, w=120, r=3, s=3, padding=1),
        "N:16@SM K:64@SM P:12@SM Q:120@SM C:32 R:3 S:3 N:1 K:{} P:{} Q:{} C:{}",
        (4, 8, 16, 24, 32, 48, 64),
        range(1, 13),
        range(4, 124, 4),
        (1, 2, 4, 8, 16),
    ),
    (
        "5x5, items of images",
        conv2d(n=16, c=192, k=32, h=28, w=28, r=5, s=5, padding=2),
        "N:16@SM K:32@SM P:28@SM Q:28@SM C:192 R:5 S:5 N:1 K:{} P:{} Q:{} C:{}",
        (2, 4, 8, 12, 16, 24, 32),
        range(1, 29, 2),
        range(1, 29),
        (1, 4, 8, 16, 32),
    ),
    (
        "5x5, images in turn",
        conv2d(n=16, c=192, k=32, h=28, w=28, r=5, s=5, padding=2),
        "N:16 K:32@SM P:28@SM Q:28@SM C:192 R:5 S:5 K:{} P:{} Q:{} C:{}",
        (2, 4, 8, 12, 16, 24, 32),
        range(1, 29, 2),
        range(1, 29),
        (1, 4, 8, 16, 32),
    ),
)
"""Grids of tile sizes: a name, a problem, a schedule, and the numbers in it."""


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


def grids() -> Iterator[tuple[str, Problem, list[Schedule]]]:
    """Try all tile sizes of some."""
    for name, problem, text, *sizes in GRIDS:
        every = (text.format(*tile) for tile in itertools.product(*sizes))
        yield f"grid, {name}", problem, [parse_schedule(one, problem) for one in every]


def row(
    name: str, problem: Problem, nests: list[Schedule], arch: Arch, repeats: int, jobs: int
) -> str:
    """Measure some schedules of one problem."""
    n = len(nests)
    lanes = max(1, int(arch.compute.rate(data_type_of(problem, arch))))
    promises.promised_many(problem, nests[:1], arch, lanes)  # loads what is compiled
    many = micros(lambda: evaluate_many(problem, nests, arch, jobs=jobs), n, 1)
    found = promises.promised_many(problem, nests, arch, lanes)
    left = (found[:, kernels.OUTCOME] == kernels.UNKNOWN).mean() * 1000
    alone = micros(lambda: promises.promised_many(problem, nests, arch, lanes, jobs), n, repeats)
    single = micros(lambda: one_by_one(problem, nests[:SAMPLE], arch), SAMPLE, 1)
    numbers = f"{many:8.1f} {alone:8.1f} {single:8.1f} {single / many:6.1f} {left:8.1f}"
    return f"{name:40} {numbers} {many / 10:8.1f}"


def main() -> None:
    """Print a line for each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--arch", default="titan_v")
    given = parser.parse_args()
    arch, n = load_arch(given.arch), given.schedules
    promises.COMPILED_FROM = 0
    columns = f"{'many':>8} {'compiled':>8} {'single':>8} {'times':>6} {'left':>8} {'100,000':>8}"
    print(f"{'problem':40} {columns}")
    for name in ("deepbench_gemm", "deepbench_conv"):
        for problem in load_workload(name).problems[3::45]:
            nests = tilings(problem, arch, n)
            print(row(problem.name, problem, nests, arch, given.repeats, given.jobs), flush=True)
    for title, problem, nests in grids():
        print(row(title, problem, nests, arch, 1, given.jobs), flush=True)


if __name__ == "__main__":
    main()
