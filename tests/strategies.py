"""Shared hypothesis strategies: small problems, schedules, capacities, machines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import strategies as st

from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.footprint import axis_count
from loopsched.problems.problem import Axis, Problem, Tensor

HOLDS = (None, None, ("input", "weight"), ("output",), ("weight", "output"))

# A literal walk of a problem of this many points takes about a millisecond.
MAX_POINTS = 400


def plain(*dims: str) -> tuple[Axis, ...]:
    return tuple(Axis(((dim, 1),)) for dim in dims)


@st.composite
def gemms(draw: st.DrawFn, most: int = 8) -> Problem:
    sizes = tuple((dim, draw(st.integers(1, most))) for dim in "MNK")
    return _problem(draw, sizes, {"A": plain(*"MK"), "B": plain(*"KN"), "C": plain(*"MN")}, "C")


@st.composite
def convs(draw: st.DrawFn, *, has_padding: bool | None = None) -> Problem:
    """One-dimensional convolutions of several channels, any pass, any stride."""
    stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    sizes = _sizes(draw, (("N", 2), ("K", 4), ("C", 4), ("P", 7), ("R", 4)))
    size = dict(sizes)
    reach = (size["P"] - 1) * stride + (size["R"] - 1) * dilation + 1
    padded = draw(st.booleans()) if has_padding is None else has_padding
    before = draw(st.integers(0, min(2, reach - 1))) if padded else 0
    after = draw(st.integers(0, min(2, reach - 1 - before))) if padded else 0
    stored = reach - before - after if padded else draw(st.sampled_from([None, reach]))
    image = Axis((("P", stride), ("R", dilation)), -before, stored)
    indices = {
        "input": (*plain("N", "C"), image),
        "weight": plain("K", "C", "R"),
        "output": plain("N", "K", "P"),
    }
    return _problem(draw, sizes, indices, draw(st.sampled_from(list(indices))))


@st.composite
def images(draw: st.DrawFn) -> Problem:
    """Two-dimensional filters: two axes whose windows slide."""
    sizes = _sizes(draw, (("P", 5), ("Q", 5), ("R", 3), ("S", 3)))
    stride = draw(st.integers(1, 2))
    axes = Axis((("P", stride), ("R", 1))), Axis((("Q", stride), ("S", 1)))
    indices = {"input": axes, "weight": plain("R", "S"), "output": plain("P", "Q")}
    return _problem(draw, sizes, indices, draw(st.sampled_from(list(indices))))


@st.composite
def affines(draw: st.DrawFn) -> Problem:
    """Two to four tensors whose axes are any sums of dimensions."""
    dims = "DEFG"[: draw(st.integers(1, 4))]
    sizes = _sizes(draw, tuple((dim, 6) for dim in dims))
    indices: dict[str, tuple[Axis, ...]] = {}
    for name in ("X", "Y", "Z", "W")[: draw(st.integers(2, 4))]:
        left = draw(st.permutations(dims))[: draw(st.integers(0, len(dims)))]
        axes = []
        while left:
            n_terms = draw(st.integers(1, min(3, len(left))))
            terms = tuple((dim, draw(st.integers(1, 4))) for dim in left[:n_terms])
            axes.append(draw(_padded(terms, dict(sizes))))
            left = left[n_terms:]
        indices[name] = tuple(axes)
    return _problem(draw, sizes, indices, draw(st.sampled_from(list(indices))))


@st.composite
def _padded(draw: st.DrawFn, terms: tuple[tuple[str, int], ...], size: dict[str, int]) -> Axis:
    """An axis, in a third of all cases with padding around its stored positions."""
    last = sum(c * (size[dim] - 1) for dim, c in terms)
    if draw(st.integers(0, 2)) or not last:
        return Axis(terms)
    before = draw(st.integers(0, min(2, last)))
    after = draw(st.integers(0, min(2, last - before)))
    padded = Axis(terms, -before, last + 1 - before - after)
    return padded if axis_count(padded, {}, size) else Axis(terms)


def problems() -> st.SearchStrategy[Problem]:
    """Any small problem that a literal walk can follow."""
    return st.one_of(gemms(), convs(), images(), affines())


def _sizes(draw: st.DrawFn, most: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    left, found = MAX_POINTS, []
    for dim, largest in most:
        size = draw(st.integers(1, max(1, min(largest, left))))
        found.append((dim, size))
        left //= size
    return tuple(found)


def _problem(
    draw: st.DrawFn,
    sizes: tuple[tuple[str, int], ...],
    indices: dict[str, tuple[Axis, ...]],
    output: str,
) -> Problem:
    widths = st.sampled_from([1, 1, 2, 4, 8])
    same = draw(st.booleans())
    width = draw(widths)
    names = sorted(indices, key=lambda name: name == output)
    tensors = tuple(Tensor(name, indices[name], width if same else draw(widths)) for name in names)
    return Problem("random", sizes, tensors, output)


@st.composite
def orders(draw: st.DrawFn, problem: Problem) -> tuple[str, ...]:
    """All dimensions of a problem, in any order."""
    return tuple(draw(st.permutations(problem.dims)))


@st.composite
def tiles(draw: st.DrawFn, outer: dict[str, int]) -> dict[str, int]:
    """Tile extents within outer ones, dividing them or not."""
    return {dim: draw(st.integers(1, extent)) for dim, extent in outer.items()}


@st.composite
def schedules(
    draw: st.DrawFn,
    problem: Problem,
    *,
    units: Sequence[str] = (),
    spatial_dims: Sequence[str] | None = None,
    max_blocks: int = 3,
) -> Schedule:
    """Blocks of loops in any order, with any tiles; one spatial block a unit."""
    extents = dict(problem.size)
    marks: list[str | None] = [None] * draw(st.integers(1, max_blocks))
    for unit in reversed(units):
        marks.insert(draw(st.integers(0, _first_unit(marks))), unit)
    loops: list[Loop] = []
    for mark in marks:
        dims = draw(orders(problem))
        if mark is not None and spatial_dims is not None:
            dims = tuple(dim for dim in dims if dim in spatial_dims)
        if loops and mark is None:
            dims = dims[: draw(st.integers(0, len(dims)))]
        elif mark is not None:
            dims = dims[: draw(st.integers(1, 2))]
            if draw(st.booleans()):  # rows of tiles in groups, as kernels launch them
                dims = (*dims, *dims[: draw(st.integers(1, 2))])
        for dim in dims:
            seen = any(loop.dim == dim for loop in loops)
            if seen:
                extents[dim] = draw(st.integers(1, extents[dim]))
            loops.append(Loop(dim, extents[dim], mark))
    for dim in problem.dims:
        if not any(loop.dim == dim for loop in loops):
            loops.append(Loop(dim, extents[dim]))
    return Schedule.of(loops).check(problem)


def _first_unit(marks: Sequence[str | None]) -> int:
    return next((i for i, mark in enumerate(marks) if mark is not None), len(marks))


@st.composite
def capacities(draw: st.DrawFn, problem: Problem, least: int = 0) -> int:
    """From nothing to a little more than everything."""
    whole = sum(
        t.element_bytes * math.prod(problem.size[dim] for dim in t.dims) for t in problem.tensors
    )
    return draw(st.integers(least, max(least, 16, whole + 2)))


@st.composite
def machines(draw: st.DrawFn, problem: Problem, *, has_scratchpads: bool = False) -> Arch:
    """One to three levels, of which the inner ones may be a unit's own."""
    n_levels = draw(st.integers(1, 3))
    n_shared = draw(st.integers(0, n_levels))
    units = draw(st.integers(1, 5))
    sizes = sorted((draw(capacities(problem, 24)) for _ in range(n_levels)), reverse=True)
    rates = st.floats(1e6, 1e12)
    levels = [Level("DRAM", "memory", None, energy_pj_per_byte=draw(st.floats(1, 100)))]
    for i, size in enumerate(sizes):
        is_own = i >= n_shared
        bandwidth = draw(rates)
        levels.append(
            Level(
                f"L{n_levels - i}",
                draw(st.sampled_from(["cache", "scratchpad"])) if has_scratchpads else "cache",
                size,
                instances=units if is_own else 1,
                unit="SM" if is_own else None,
                bandwidth_bytes_per_s=bandwidth,
                peak_bandwidth_bytes_per_s=draw(
                    st.none() | st.floats(1, 2).map(lambda f, b=bandwidth: f * b)
                ),
                holds=draw(st.sampled_from(HOLDS)),
                write_policy=draw(st.sampled_from(["back", "through"])),
                accumulate=draw(st.sampled_from(["level", "registers"])),
                double_buffered=draw(st.booleans()),
                halo_reuse=draw(st.booleans()),
                energy_pj_per_byte=draw(st.floats(0.1, 10)),
            )
        )
    clock = draw(st.floats(1e8, 2e9))
    compute = Compute(
        "SM",
        units,
        clock,
        clock * draw(st.floats(1, 1.5)),
        tuple((name, draw(st.sampled_from([1, 4, 64]))) for name in ("int8", "fp16", "fp32")),
        energy_pj_per_mac=draw(st.floats(0.1, 5)),
    )
    return Arch("random", tuple(levels), compute)
