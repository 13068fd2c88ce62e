"""Brute force over every schedule of a space, written without the scheduler.

The space is that of the documentation: one block of loops for each level, a
spatial block before the first level that units own, and what is left inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from random import Random
from typing import Any

from loopsched.base.errors import ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.score import Evaluation, evaluate
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.builders import gemm
from loopsched.problems.convolution import conv2d
from loopsched.problems.problem import Axis, Problem, Tensor


def blocks_of(problem: Problem, arch: Arch) -> list[tuple[str | None, tuple[str, ...]]]:
    """Unit and dimensions of each block, outermost first, and of what is left."""
    shared = [level for level in arch.levels[1:] if level.instances == 1]
    blocks: list[tuple[str | None, tuple[str, ...]]] = [(None, problem.dims)] * len(shared)
    if arch.compute.units > 1:
        blocks.append((arch.compute.unit, problem.parallel_dims))
    own = len(arch.levels) - 1 - len(shared)
    return blocks + [(None, problem.dims)] * (own + 1)


def every_nest(problem: Problem, arch: Arch) -> set[tuple[Loop, ...]]:
    """Every loop nest of the space, found by writing down all of them."""
    blocks = blocks_of(problem, arch)
    chains = [
        [
            chain
            for chain in product(range(1, size + 1), repeat=len(blocks) - 1)
            if _may_be(dim, size, chain, blocks)
        ]
        for dim, size in problem.sizes
    ]
    nests: set[tuple[Loop, ...]] = set()
    for chosen in product(*chains):
        written = [
            permutations(
                Loop(dim, (size, *chain)[at], unit)
                for (dim, size), chain in zip(problem.sizes, chosen, strict=True)
                if (size, *chain)[at] > (*chain, 1)[at]
            )
            for at, (unit, _) in enumerate(blocks)
        ]
        nests.update(sum(parts, ()) for parts in product(*written))
    return nests


def _may_be(
    dim: str, size: int, chain: tuple[int, ...], blocks: list[tuple[str | None, tuple[str, ...]]]
) -> bool:
    outer = size
    for extent, (_, dims) in zip(chain, blocks, strict=False):
        if extent > outer or (extent < outer and dim not in dims):
            return False
        outer = extent
    return True


def scores(problem: Problem, arch: Arch) -> Iterator[tuple[Schedule, Evaluation]]:
    """Score every schedule that fits."""
    for loops in every_nest(problem, arch):
        schedule = Schedule(loops)
        try:
            yield schedule, evaluate(problem, schedule, arch)
        except ScheduleError:  # the points that run at once do not fit into a scratchpad
            continue


def time_of(evaluation: Evaluation, arch: Arch, value: str) -> float:
    """Time at sustained clock and bandwidths, from bytes of one kind."""
    parts = [evaluation.compute_time_s]
    for level, score in zip(arch.levels[1:], evaluation.levels, strict=True):
        assert level.bandwidth_bytes_per_s is not None
        moved = score.promised_bytes if value == "promised" else getattr(score.bytes, value)
        parts.append(moved / level.bandwidth_bytes_per_s)
    return max(parts)


@dataclass(frozen=True)
class Least:
    """The least value of each objective over a space."""

    n_nests: int
    time: dict[str, float]
    dram_bytes: dict[str, float]
    energy: dict[str, float]
    edp: dict[str, float]


def least_of(problem: Problem, arch: Arch) -> Least | None:
    """Minimise over the whole space; None if nothing fits."""
    found = [evaluation for _, evaluation in scores(problem, arch)]
    if not found:
        return None
    return Least(
        len(found),
        {v: min(time_of(one, arch, v) for one in found) for v in ("promised", "point")},
        {
            "promised": min(one.dram_bytes for one in found),
            "point": min(one.levels[0].bytes.point for one in found),
        },
        {"promised": min(one.energy_pj or 0.0 for one in found)},
        {"promised": min((one.energy_pj or 0.0) * one.time_s for one in found)},
    )


def n_choices(problem: Problem, arch: Arch) -> int:
    """A quick upper bound on the work of `every_nest`."""
    blocks = len(blocks_of(problem, arch))
    total = 1
    for _, size in problem.sizes:
        if size > 1:
            chains = 1
            for k in range(blocks - 1):  # chains that never grow: combinations with repetition
                chains = chains * (size + k) // (k + 1)
            total *= chains * 2
    return total


# Random problems and machines ---------------------------------------------------


def random_problem(rng: Random) -> Problem:
    """A tiny product, convolution (stride, dilation, padding, groups) or affine problem."""
    kind = rng.choice(["gemm", "conv", "conv", "affine"])
    if kind == "gemm":
        sizes = [rng.randint(1, 5) for _ in range(3)]
        return _with_bytes(rng, gemm(m=sizes[0], n=sizes[1], k=sizes[2]))
    return _with_bytes(rng, _random_conv(rng) if kind == "conv" else _random_affine(rng))


def _random_conv(rng: Random) -> Problem:
    chosen = dict.fromkeys("ncpqrs", 1)
    groups = rng.choice([1, 1, 1, 2])
    k = groups * rng.choice([1, 1, 2])
    for name in rng.sample("ncpqrs", rng.randint(1, 3)):
        chosen[name] = rng.randint(2, 4)
    chosen["c"] *= groups
    stride, dilation = (rng.randint(1, 3), rng.randint(1, 2)), (rng.randint(1, 2), 1)
    spans = [
        (chosen[out] - 1) * step + (chosen[window] - 1) * gap + 1
        for out, window, step, gap in zip("pq", "rs", stride, dilation, strict=True)
    ]
    pads = [min(rng.choice([0, 0, 1]), (span - 1) // 2) for span in spans]
    return conv2d(
        n=chosen["n"], c=chosen["c"], k=k, h=spans[0] - 2 * pads[0], w=spans[1] - 2 * pads[1],
        r=chosen["r"], s=chosen["s"], stride=stride, dilation=dilation,
        padding=(pads[0], pads[1]), groups=groups,
        pass_=rng.choice(["forward", "forward", "backward_data", "backward_weights"]),
    )  # fmt: skip


def _random_affine(rng: Random) -> Problem:
    dims = "DEFG"[: rng.randint(1, 4)]
    sizes = tuple((dim, rng.randint(1, 5 if len(dims) < 4 else 3)) for dim in dims)
    tensors = []
    for name in "XYZW"[: rng.randint(2, 4)]:
        left = rng.sample(dims, rng.randint(0, len(dims)))
        axes = []
        while left:
            many = rng.randint(1, min(2, len(left)))
            axes.append(Axis(tuple((dim, rng.randint(1, 3)) for dim in left[:many])))
            left = left[many:]
        tensors.append(Tensor(name, tuple(axes)))
    return Problem("affine", sizes, tuple(tensors), tensors[-1].name)


def _with_bytes(rng: Random, problem: Problem) -> Problem:
    if rng.random() < 0.6:
        return problem
    return problem.with_element_bytes({t.name: rng.choice([1, 2, 4]) for t in problem.tensors})


def random_machine(rng: Random, problem: Problem, *, scratchpads: bool = True) -> Arch:
    """One to three levels of any size, shared or a unit's own, each at times the slowest."""
    n_levels = rng.choice([1, 1, 2, 2, 3])
    n_own = rng.choice([0, 1, 1, n_levels]) if n_levels > 1 else rng.choice([0, 0, 1])
    units = rng.randint(2, 7) if n_own or rng.random() < 0.3 else 1
    n_own = min(n_own, n_levels)
    moved = _accesses(problem)
    sizes = sorted((_capacity(rng, moved) for _ in range(n_levels)), reverse=True)
    levels = [Level("DRAM", "memory", None, energy_pj_per_byte=20.0)]
    for i, size in enumerate(sizes):
        own = i >= n_levels - n_own
        kind = "scratchpad" if scratchpads and rng.random() < 0.3 else "cache"
        levels.append(
            Level(
                f"L{n_levels - i}",
                kind,
                size,
                instances=units if own else 1,
                unit="SM" if own else None,
                bandwidth_bytes_per_s=moved * rng.choice([0.05, 0.3, 1.0, 3.0, 1000.0]),
                double_buffered=kind == "scratchpad" and rng.random() < 0.3,
                halo_reuse=rng.random() < 0.8,
                energy_pj_per_byte=rng.choice([0.1, 1.0, 10.0]),
                **_extras(rng, problem, size),
            )
        )
    rate = problem.macs * rng.choice([0.1, 0.5, 1.0, 5.0, 1000.0])
    rates = (("fp32", 1), ("fp16", 1), ("int8", 1))
    compute = Compute("SM", units, rate, rate, rates, energy_pj_per_mac=rng.choice([0.5, 50.0]))
    return Arch("random", tuple(levels), compute)


def _extras(rng: Random, problem: Problem, size: int) -> dict[str, Any]:
    """What few machines have: tensors that pass, buffers of their own, write-through."""
    extras: dict[str, Any] = {}
    if rng.random() < 0.15:
        extras["write_policy"] = "through"
        extras["accumulate"] = rng.choice(["level", "registers"])
    names = [tensor.name for tensor in problem.tensors]
    if rng.random() < 0.1:
        extras["holds"] = tuple(rng.sample(names, rng.randint(1, len(names))))
    elif rng.random() < 0.1:
        own = rng.sample(names, rng.randint(1, len(names)))
        extras["tensor_capacity_bytes"] = tuple((name, rng.randint(1, size)) for name in own)
    return extras


def _accesses(problem: Problem) -> int:
    return problem.macs * sum(tensor.element_bytes for tensor in problem.tensors)


def _capacity(rng: Random, most: int) -> int:
    point = 12
    return rng.choice([rng.randint(4, 40), rng.randint(point, 100), rng.randint(point, most + 20)])
