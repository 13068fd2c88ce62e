"""Random tiny problems, machines and constraints for `fuzz_checks`, as Python text.

Each is drawn as the text of an expression that builds it, so that a counterexample
can be pasted.  Problems have one to three dimensions of several points: strides,
dilation, padding on one side, groups, all three passes, sums of dimensions, element
widths that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields, replace
from itertools import pairwise
from random import Random
from typing import Any

import oracle
from oracle_space import Nest, blocks_of

from loopsched import Constraints, Problem, Schedule, affine, conv2d, gemm
from loopsched.base.errors import ArchError, LoopschedError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level

RATES = (("fp32", 1), ("fp16", 1), ("int8", 1))
NAMES: dict[str, Any] = {
    "affine": affine, "conv2d": conv2d, "gemm": gemm, "Arch": Arch, "Compute": Compute,
    "Level": Level, "Constraints": Constraints,
}  # fmt: skip


def build(text: str) -> Any:
    """Build what a text of this module says."""
    return eval(text, NAMES)


def spelled(value: object) -> str:
    """Write a level, machine or constraints as Python, leaving out what is the default."""
    if isinstance(value, tuple):
        inside = ", ".join(spelled(one) for one in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if not isinstance(value, (Arch, Level, Compute, Constraints)):
        return repr(value)
    words = []
    for field in fields(value):
        given = getattr(value, field.name)
        if field.default is MISSING:
            words.append(spelled(given))
        elif given != field.default:
            words.append(f"{field.name}={spelled(given)}")
    return f"{type(value).__name__}({', '.join(words)})"


# Problems -----------------------------------------------------------------------


def problem_text(rng: Random, most_macs: int = 60) -> str:
    """Draw a problem of at most so many points, at least one loop in it."""
    while True:
        text = rng.choice([_gemm, _conv, _conv, _conv, _affine])(rng)
        try:
            problem: Problem = build(text)
        except LoopschedError:  # nothing but padding, or a filter larger than the image
            continue
        if 1 < problem.macs <= most_macs:
            return text


def _sizes(rng: Random, names: str) -> dict[str, int]:
    found = dict.fromkeys(names, 1)
    several = rng.sample(names, min(len(names), rng.choice([1, 2, 2, 3, 3])))
    for name in several:
        found[name] = rng.randint(2, 4)
    if len(several) < 3 and rng.random() < 0.4:
        found[several[0]] = rng.randint(4, 9 if len(several) == 1 else 7)
    return found


def _width(rng: Random, names: Sequence[str]) -> str:
    if rng.random() < 0.5:
        return f"element_bytes={rng.choice([1, 1, 2, 4])}"
    return f"element_bytes={ {name: rng.choice([1, 2, 4]) for name in names} }"


def _gemm(rng: Random) -> str:
    m, n, k = _sizes(rng, "mnk").values()
    return f"gemm(m={m}, n={n}, k={k}, {_width(rng, 'ABC')})"


def _conv(rng: Random) -> str:
    size = _sizes(rng, rng.choice(["ckpr", "kpr", "pr", "npr", "pqrs", "cpqr", "p", "ckp"]))
    size = {name: size.get(name, 1) for name in "nckpqrs"}
    groups = 2 if size["c"] % 2 == 0 and size["k"] % 2 == 0 and rng.random() < 0.3 else 1
    stride = (rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2]))
    dilation = (rng.choice([1, 1, 2, 3]), 1)
    pads = [rng.choice([0, 0, 1, 2]) for _ in range(4)]
    if size["q"] == size["s"] == 1:
        pads[2:] = [0, 0]
    rows = (size["p"] - 1) * stride[0] + (size["r"] - 1) * dilation[0] + 1
    columns = (size["q"] - 1) * stride[1] + (size["s"] - 1) * dilation[1] + 1
    pass_ = rng.choice(["forward", "forward", "forward", "backward_data", "backward_weights"])
    words = {
        "stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1,
        "pass_": "forward",
    }  # fmt: skip
    given = {
        "stride": stride, "padding": tuple(pads), "dilation": dilation, "groups": groups,
        "pass_": pass_,
    }  # fmt: skip
    extra = "".join(f"{name}={given[name]!r}, " for name in words if given[name] != words[name])
    return (
        f"conv2d(n={size['n']}, c={size['c']}, k={size['k']}, "
        f"h={rows - pads[0] - pads[1]}, w={columns - pads[2] - pads[3]}, "
        f"r={size['r']}, s={size['s']}, {extra}"
        f"{_width(rng, ('input', 'weight', 'output'))})"
    )


def _affine(rng: Random) -> str:
    """Sums of two dimensions, with positions outside a tensor left out on one side or both."""
    dims = "PRKC"[: rng.choice([2, 3, 3, 4])]
    sizes = _sizes(rng, dims) if len(dims) > 2 else {d: rng.randint(2, 6) for d in dims}
    indices = {}
    for name in ("x", "w", "y")[-rng.choice([2, 3, 3]) :]:
        left = rng.sample(dims, rng.randint(0 if name == "w" else 1, len(dims)))
        axes = []
        while left:
            many = rng.choice([1, 1, 2]) if len(left) > 1 else 1
            axes.append(_axis(rng, left[:many], sizes))
            left = left[many:]
        indices[name] = " ".join(axes)
    return f"affine({sizes}, {indices}, {_width(rng, tuple(indices))})"


def _axis(rng: Random, dims: list[str], sizes: dict[str, int]) -> str:
    terms = [(rng.choice([1, 1, 2, 3]), dim) for dim in dims]
    text = "+".join(dim if many == 1 else f"{many}*{dim}" for many, dim in terms)
    last = sum(many * (sizes[dim] - 1) for many, dim in terms)
    before, after = rng.choice([0, 0, 1, 2]), rng.choice([0, 0, 1, 2])
    if before + after == 0 or before + after > last:
        return text
    return f"{text}{f'-{before}' if before else ''}<{last + 1 - before - after}"


# Machines -----------------------------------------------------------------------


def body_bytes(rng: Random, problem: Problem, tensors: Sequence[str] | None = None) -> int:
    """Draw a capacity at which something happens: that of a random tile, or little more."""
    corner = {dim: rng.randint(1, size) for dim, size in problem.sizes}
    start = {dim: rng.randint(0, size - corner[dim]) for dim, size in problem.sizes}
    points: list[dict[str, int]] = [{}]
    for dim in problem.dims:
        span = range(start[dim], start[dim] + corner[dim])
        points = [{**point, dim: at} for point in points for at in span]
    sets = oracle.touched(problem, points)
    size = sum(
        tensor.element_bytes * max(1, len(sets[tensor.name]))
        for tensor in problem.tensors
        if tensors is None or tensor.name in tensors
    )
    return size + rng.choice([0, 0, 0, 1, 2, 5])


def level(
    rng: Random,
    problem: Problem,
    name: str,
    size: int,
    *,
    kind: str | None = None,
    unit: tuple[str, int] | None = None,
    extras: str = "",
) -> Level:
    """Draw a level of a given size; ``extras`` says what few levels have."""
    options: dict[str, Any] = {"bandwidth_bytes_per_s": rng.choice([1.0, 1.0, 2.0, 3.0, 1e6])}
    kind = kind or rng.choice(["cache", "cache", "scratchpad"])
    if unit is not None:
        options |= {"instances": unit[1], "unit": unit[0]}
    if kind == "scratchpad":
        if rng.random() < 0.15:
            options["double_buffered"] = True
            size *= 2
        if rng.random() < 0.15:
            options["halo_reuse"] = False
    if extras == "writes":
        options["write_policy"] = rng.choice(["through", "through", "back"])
        options["accumulate"] = rng.choice(["level", "level", "registers"])
    if extras == "holds":
        names = [tensor.name for tensor in problem.tensors]
        some = tuple(rng.sample(names, rng.randint(1, len(names))))
        if rng.random() < 0.5:
            options["holds"] = some
        elif rng.random() < 0.8:
            options["tensor_capacity_bytes"] = tuple(
                (one, min(size, body_bytes(rng, problem, [one]))) for one in some
            )
    if extras == "may_hold":
        names = [tensor.name for tensor in problem.tensors]
        some = tuple(rng.sample(names, rng.randint(1, len(names))))
        options["may_hold"] = some
        if rng.random() < 0.4:
            options["holds"] = tuple(n for n in names if n not in some and rng.random() < 0.7)
    return Level(name, kind, size, **options)  # type: ignore[arg-type]


def machine(rng: Random, problem: Problem, **options: Any) -> Arch:
    """Draw a machine as `_machine` does, until levels lie inside each other."""
    while True:
        try:
            return _machine(rng, problem, **options)
        except ArchError:
            continue


def _machine(
    rng: Random,
    problem: Problem,
    *,
    n_shared: int,
    n_own: int = 0,
    units: int = 1,
    kinds: Sequence[str] = ("cache", "cache", "scratchpad"),
    extras: str = "",
    has_energy: bool = False,
    lanes: int = 0,
    has_inner: bool = False,
) -> Arch:
    """Draw a machine: shared levels, then those that units have, each outer one several.

    ``units`` is how many of a unit there are in one of the next outer, at most;
    ``has_inner`` puts further units without a level of their own into the innermost.
    """
    sizes = [body_bytes(rng, problem)]
    while len(sizes) < n_shared + n_own:  # much larger, or just so
        near = sizes[-1] + rng.randint(0, 3)
        sizes.append(near if rng.random() < 0.4 else body_bytes(rng, problem))
    sizes.sort(reverse=True)
    levels = [Level("DRAM", "memory", None)]
    count = 1
    for at, size in enumerate(sizes):
        unit = None
        if at >= n_shared:
            count *= rng.randint(2, max(2, units))
            unit = ("SM" if at == len(sizes) - 1 else "CLU", count)
        levels.append(
            level(rng, problem, f"L{len(sizes) - at}", size, kind=rng.choice(kinds), unit=unit,
                  extras=extras if rng.random() < 0.7 else "")
        )  # fmt: skip
    word = "SM"
    if units > 1 and (has_inner or not n_own):
        count *= rng.randint(2, units)
        word = "PE"
    rates = tuple((name, max(1, lanes)) for name, _ in RATES)
    clock = rng.choice([0.2, 1.0, 1.0, 5.0, 1e6])
    compute = Compute(
        word, count, clock, clock, rates,
        lane_unit="lane" if lanes else None,
        energy_pj_per_mac=rng.choice([0.5, 50.0]) if has_energy else None,
    )  # fmt: skip
    if has_energy:
        levels = [replace(one, energy_pj_per_byte=rng.choice([0.5, 1.0, 20.0])) for one in levels]
    return Arch("m", tuple(levels), compute)


# Constraints --------------------------------------------------------------------


def constraints(rng: Random, problem: Problem, arch: Arch, nests: Sequence[Nest]) -> Constraints:
    """Draw one or two constraints that some nest may satisfy."""
    dims = [dim for dim, size in problem.sizes if size > 1]
    options: dict[str, Any] = {}
    for what in rng.sample(["tiles", "tiles", "extents", "before", "prefix", "spatial"], 2):
        if what == "tiles":
            options["tiles"] = rng.choice(["divisors", "powers2"])
        elif what == "extents":
            blocks = [name for name, unit in blocks_of(problem, arch) if name]
            dim = rng.choice(dims)
            low = rng.randint(1, problem.size[dim])
            high = rng.choice([low, rng.randint(low, problem.size[dim]), 2**62])
            options["extents"] = ((dim, rng.choice(blocks), low, high),)
        elif what == "before" and len(dims) > 1:
            order = rng.sample(dims, rng.randint(2, len(dims)))
            options["before"] = tuple(pairwise(order))
        elif what == "prefix":
            nest = rng.choice([one for one in nests if min(Schedule(one).trips) > 1])
            options["prefix"] = " ".join(map(str, nest[: rng.randint(1, 2)]))
        elif what == "spatial" and arch.compute.units > 1:
            alone = problem.parallel_dims
            options["spatial"] = tuple(dim for dim in alone if rng.random() < 0.5)
    return Constraints(**options)
