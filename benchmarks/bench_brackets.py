"""How near the models come to a simulated LRU cache, over random nests.

Run ``python benchmarks/bench_brackets.py [CASES] [SEED]``.  Truth is
`loopsched.simulate`, which visits every point and shares no code with the models.

Problems have 2 to 7 dimensions (products of matrices, also in batches, matrix
times vector, convolutions with strides to 3, filters to 5, dilation, padding and
groups), schedules one to three levels of tiles, dividing or not, in any order,
capacities anything from one element of each tensor to everything, evenly over
orders of magnitude.

Replays of small nests reach single points and are exact.  What the models say of
large nests shows in the columns whose effort is a share of the accesses: there
only bodies can be replayed, as if the nest were that many times larger.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from random import Random

import numpy as np

import loopsched
from loopsched import Loop, Problem, Schedule
from loopsched.base.errors import ProblemError
from loopsched.models.buffer import EFFORT
from loopsched.problems.footprint import tensor_bytes
from loopsched.simulator import simulate

LEAST_POINTS, MOST_POINTS = 64, 40_000
SHARES = (1 / 10, 1 / 100, 1 / 1000)


def random_problem(rng: Random) -> Problem:
    """Draw a problem of 2 to 7 dimensions."""
    kind = rng.choice(["gemm", "batched", "vector", "conv1d", "conv2d", "conv2d", "conv2d"])
    while True:
        try:
            problem = _drawn(rng, kind)
        except ProblemError:  # nothing but padding
            continue
        if LEAST_POINTS <= problem.macs <= MOST_POINTS:
            return problem


def _drawn(rng: Random, kind: str) -> Problem:
    def size(most: int) -> int:
        return max(1, round(math.exp(rng.uniform(0, math.log(most)))))

    width = rng.choice([1, 2, 4, 8])
    if kind == "gemm":
        return loopsched.gemm(m=size(64), n=size(64), k=size(64), element_bytes=width)
    if kind == "batched":
        return loopsched.batched_gemm(
            batch=size(8), m=size(32), n=size(32), k=size(32), element_bytes=width
        )
    if kind == "vector":
        return loopsched.einsum("mk,k->m", {"m": size(200), "k": size(200)}, element_bytes=width)
    r, s = rng.randint(1, 5), rng.randint(1, 5) if kind == "conv2d" else 1
    groups = rng.choice([1, 1, 1, 2])
    return loopsched.conv2d(
        n=size(4),
        c=groups * size(8),
        k=groups * size(8),
        p=size(16),
        q=size(16) if kind == "conv2d" else 1,
        r=r,
        s=s,
        stride=rng.randint(1, 3),
        dilation=rng.choice([1, 1, 2]),
        padding=rng.choice([0, 0, min(r, s) // 2]),
        groups=groups,
        element_bytes=width,
    )


def random_schedule(rng: Random, problem: Problem) -> Schedule:
    """Draw one to three levels of tiles, and an order for each."""
    now = problem.size
    loops: list[Loop] = []
    for block in range(rng.randint(1, 3) + 1):
        dims = [dim for dim in problem.dims if now[dim] > 1 or block == 0]
        rng.shuffle(dims)
        for dim in dims:
            if block == 0:
                continue
            extent = now[dim]
            if rng.random() < 0.5:
                tile = rng.choice([t for t in range(1, extent + 1) if extent % t == 0])
            else:
                tile = rng.randint(1, extent)
            if tile < extent:
                loops.append(Loop(dim, extent))
                now[dim] = tile
    rest = [dim for dim in problem.dims if now[dim] > 1]
    rng.shuffle(rest)
    return Schedule.of([*loops, *(Loop(dim, now[dim]) for dim in rest)])


def random_capacity(rng: Random, problem: Problem) -> int:
    """Draw from one element of each tensor to everything."""
    least = sum(tensor.element_bytes for tensor in problem.tensors)
    most = sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
    return round(math.exp(rng.uniform(math.log(least), math.log(max(least, most)))))


def yalsa_bytes(problem: Problem, schedule: Schedule, capacity: int) -> float:
    """What Yalsa's bandwidth moves in the time of the nest."""
    found, _ = loopsched.yalsa_bandwidth(
        problem, schedule, capacity_bytes=capacity, iterations_per_cycle=1
    )
    return found * problem.macs


def main() -> None:
    """Print a table."""
    n_cases = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    rng = Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    ways: dict[str, Callable[[int], int]] = {
        "evaluate": lambda _: EFFORT,
        **{f"effort 1/{round(1 / s)}": lambda n, s=s: max(1, round(s * n)) for s in SHARES},
        "closed forms": lambda _: 0,
    }
    errors: dict[str, list[float]] = {name: [] for name in (*ways, "Yalsa")}
    widths: dict[str, list[float]] = {name: [] for name in ways}
    outside = dict.fromkeys(ways, 0)
    promises: list[float] = []
    seconds = dict.fromkeys(ways, 0.0)
    for _ in range(n_cases):
        problem = random_problem(rng)
        nest = random_schedule(rng, problem)
        capacity = random_capacity(rng, problem)
        truth = simulate(problem, nest, capacity_bytes=capacity).levels[0]
        moved = truth.read_bytes + truth.write_bytes
        accesses = problem.macs * len(problem.tensors)
        for name, effort in ways.items():
            begin = time.perf_counter()
            found = loopsched.traffic(
                problem, nest, capacity_bytes=capacity, effort=effort(accesses)
            )
            bracket = found.bytes
            seconds[name] += time.perf_counter() - begin
            for each in problem.tensors:
                own, real = found.tensors[each.name], truth.tensors[each.name]
                outside[name] += not (
                    own.read_bytes.low <= real.read_bytes <= own.read_bytes.high
                    and own.write_bytes.low <= real.write_bytes <= own.write_bytes.high
                )
            errors[name].append(abs(bracket.point - moved) / moved)
            widths[name].append(bracket.high / bracket.low)
        promises.append(found.promised_bytes / moved)
        errors["Yalsa"].append(abs(yalsa_bytes(problem, nest, capacity) - moved) / moved)
    print(f"{n_cases} cases")
    print(f"{'':16}{'outside':>8}{'median':>9}{'mean':>9}{'99 %':>9}{'exact':>9}{'ms':>8}")
    for name in ways:
        error, width = np.array(errors[name]), np.array(widths[name])
        print(
            f"{name:16}{outside[name]:8}{np.median(error):9.2%}{error.mean():9.2%}"
            f"{np.quantile(error, 0.99):9.2%}{(width <= 1.02).mean():9.1%}"
            f"{1e3 * seconds[name] / n_cases:8.2f}"
        )
    error = np.array(errors["Yalsa"])
    print(f"{'Yalsa':16}{'':8}{np.median(error):9.2%}{error.mean():9.2%}", end="")
    print(f"{np.quantile(error, 0.99):9.2%}")
    promised = np.array(promises)
    print(
        f"promised / simulated: median {np.median(promised):.3f}, "
        f"90 % {np.quantile(promised, 0.9):.3f}, least {promised.min():.3f}"
    )


if __name__ == "__main__":
    main()
