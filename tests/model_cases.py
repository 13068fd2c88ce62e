"""Random tiny problems, machines and schedules from a seed: faster to draw than hypothesis' own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from loopsched.base.errors import InputError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.builders import PASSES, conv2d, gemm
from loopsched.problems.problem import Problem


@dataclass(frozen=True)
class ModelCase:
    """One schedule of a problem on a machine."""

    problem: Problem
    schedule: Schedule
    arch: Arch

    def __str__(self) -> str:
        levels = " ".join(
            f"{one.name}:{one.kind}:{one.capacity_bytes}:{one.unit}x{one.instances}"
            for one in self.arch.caches
        )
        return f"{self.problem} | {levels} | {self.schedule}"


def random_problem(rng: random.Random, most_points: int = 160) -> Problem:
    """A GEMM or a convolution: strides, dilation, padding on any side, gradients, groups."""
    while True:
        width = rng.choice((1, 4, 4, {"input": 2, "weight": 4, "output": 4}))
        if rng.random() < 0.2:
            m, n, k = (rng.randint(1, 5) for _ in range(3))
            one = gemm(m=m, n=n, k=k, element_bytes=width if isinstance(width, int) else 2)
        else:
            try:
                one = _convolution(rng, width)
            except InputError:
                continue
        if one.macs <= most_points:
            return one


def _convolution(rng: random.Random, width: int | dict[str, int]) -> Problem:
    groups = rng.choice((1, 1, 1, 2))
    return conv2d(
        n=rng.choice((1, 1, 2)),
        c=rng.randint(1, 3) * groups,
        k=rng.randint(1, 3) * groups,
        h=rng.randint(1, 8),
        w=rng.choice((1, 1, 2, 4)),
        r=rng.randint(1, 3),
        s=rng.choice((1, 1, 2)),
        stride=(rng.randint(1, 3), rng.randint(1, 2)),
        dilation=(rng.randint(1, 3), rng.randint(1, 2)),
        padding=tuple(rng.choice((0, 0, 1, 2)) for _ in range(4)),
        groups=groups,
        pass_=rng.choice(PASSES),
        element_bytes=width,
    )


def random_schedule(
    rng: random.Random,
    problem: Problem,
    units: Sequence[str] = (),
    spatial: Sequence[str] | None = None,
) -> Schedule:
    """Blocks of loops in any order with any extents; at most one spatial block a unit."""
    extents = dict(problem.size)
    blocks: list[str | None] = [None] * rng.randint(1, 3)
    at = 0
    for unit in units:
        if rng.random() < 0.8:
            at = rng.randint(at, len(blocks))
            blocks.insert(at, unit)
            at += 1
    seen: set[str] = set()
    loops: list[Loop] = []
    for unit in blocks:
        dims = [d for d in rng.sample(problem.dims, len(problem.dims)) if extents[d] > 1]
        if unit is not None:
            dims = [d for d in dims if spatial is None or d in spatial][: rng.randint(1, 2)]
        elif rng.random() < 0.5:
            dims = dims[: rng.randint(0, len(dims))]
        for dim in dims:
            if dim in seen:
                extents[dim] = rng.randint(1, extents[dim])
            seen.add(dim)
            loops.append(Loop(dim, extents[dim], unit))
    rest = [dim for dim in problem.dims if dim not in seen]
    return Schedule.of([*loops, *(Loop(dim, extents[dim]) for dim in rest)]).check(problem)


def random_case(
    rng: random.Random,
    *,
    units: Sequence[Sequence[str]] = ((), ("SM",), ("CLU", "SM")),
    kinds: Sequence[str] = ("cache",),
    most_levels: int = 3,
    shares_sums: bool = True,
) -> ModelCase:
    """A machine of one to three levels, of units or of units in units; any sizes.

    Without ``shares_sums`` no two units add to one element of the output.
    """
    problem = random_problem(rng)
    names = rng.choice(units)
    counts, n = {}, 1
    for unit in names:
        n *= rng.randint(1 if counts else 2, 3)
        counts[unit] = n
    owners = sorted(
        (rng.choice((None, None, *names)) for _ in range(rng.randint(1, most_levels))),
        key=lambda unit: counts.get(str(unit), 0),
    )
    whole = sum(t.element_bytes for t in problem.tensors)
    sizes = sorted((int(whole * 1.5 ** rng.uniform(0, 9)) for _ in owners), reverse=True)
    levels = [Level("DRAM", "memory", None)]
    for i, (unit, size) in enumerate(zip(owners, sizes, strict=True)):
        many = counts[unit] if unit else 1
        levels.append(
            Level(f"L{i}", rng.choice(kinds), size, many, unit, bandwidth_bytes_per_s=1.0)
        )
    rates = tuple((name, 1.0) for name in ("int8", "fp16", "fp32"))
    compute = Compute(names[-1] if names else "core", n, 1.0, 1.0, rates)
    used = {level.unit for level in levels} | {compute.unit}
    spatial = None if shares_sums else problem.parallel_dims
    schedule = random_schedule(rng, problem, [unit for unit in names if unit in used], spatial)
    return ModelCase(problem, schedule, Arch("random", tuple(levels), compute))
