"""Footprints against literal enumeration of every iteration point."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.problems.builders import affine, conv2d, gemm
from loopsched.problems.footprint import (
    axis_count,
    axis_extremes,
    footprint_elems,
    n_segments,
    reach,
    segments,
    tensor_bytes,
)
from loopsched.problems.problem import Axis, Problem, Tensor

NAMES = ("P", "R", "T")


@st.composite
def axes(draw: st.DrawFn, max_terms: int = 3) -> Axis:
    n_terms = draw(st.integers(1, max_terms))
    terms = tuple((name, draw(st.integers(1, 7))) for name in NAMES[:n_terms])
    return Axis(terms, draw(st.integers(-12, 6)), draw(st.none() | st.integers(1, 25)))


@st.composite
def regions(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, int]]:
    start = {name: draw(st.integers(0, 6)) for name in NAMES}
    extent = {name: draw(st.integers(1, 6)) for name in NAMES}
    return start, extent


def touched(axis: Axis, start: dict[str, int], extent: dict[str, int]) -> set[int]:
    """Walk the region point by point and note each stored position."""
    ranges = [range(start.get(d, 0), start.get(d, 0) + extent.get(d, 1)) for d in axis.dims]
    coefficients = [c for _, c in axis.terms]
    positions = {
        axis.offset + sum(c * i for c, i in zip(coefficients, point, strict=True))
        for point in itertools.product(*ranges)
    }
    if axis.size is None:
        return positions
    return {x for x in positions if 0 <= x < axis.size}


def pieces(size: int, chain: tuple[int, ...]) -> list[tuple[int, int]]:
    """Cut [0, size) by literal nested loops."""
    if not chain:
        return [(0, size)]
    found = []
    for begin in range(0, size, chain[0]):
        inner = pieces(min(chain[0], size - begin), chain[1:])
        found += [(begin + start, length) for start, length in inner]
    return found


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=3))
def test_reach_marks_every_sum(terms: list[tuple[int, int]]) -> None:
    sums = {
        sum(c * i for (c, _), i in zip(terms, point, strict=True))
        for point in itertools.product(*(range(extent) for _, extent in terms))
    }
    assert reach(tuple(terms)) == sum(1 << x for x in sums)


@given(axes(), regions())
def test_axis_count_is_the_walk(axis: Axis, region: tuple[dict[str, int], dict[str, int]]) -> None:
    start, extent = region
    assert axis_count(axis, start, extent) == len(touched(axis, start, extent))


@given(axes())
def test_missing_dims_are_one_position_at_zero(axis: Axis) -> None:
    assert axis_count(axis, {}, {}) == len(touched(axis, {}, {}))
    assert axis_count(axis, {"P": 2}, {}) == len(touched(axis, {"P": 2}, {}))


@given(
    stride=st.integers(1, 5), p=st.integers(1, 12), r=st.integers(1, 6), dilation=st.integers(1, 4)
)
def test_two_term_axis_has_a_closed_form(stride: int, p: int, r: int, dilation: int) -> None:
    """Collisions repeat with the period (dilation, -stride) / gcd."""
    shared = math.gcd(stride, dilation)
    collisions = max(0, p - dilation // shared) * max(0, r - stride // shared)
    axis = Axis((("P", stride), ("R", dilation)))
    assert axis_count(axis, {}, {"P": p, "R": r}) == p * r - collisions


@given(
    axes(max_terms=2),
    st.tuples(st.integers(1, 9), st.integers(1, 5)),
    st.lists(st.integers(1, 9), max_size=2),
    st.lists(st.integers(1, 5), max_size=2),
)
def test_extremes_over_a_tiling_are_those_of_the_walk(
    axis: Axis, sizes: tuple[int, int], chain_p: list[int], chain_r: list[int]
) -> None:
    dims = axis.dims
    chains = tuple(
        tuple(sorted((min(x, size) for x in chain), reverse=True))
        for size, chain, _ in zip(sizes, (chain_p, chain_r), dims, strict=False)
    )
    counts = [
        len(
            touched(
                axis,
                {d: begin for d, (begin, _) in zip(dims, tile, strict=True)},
                {d: length for d, (_, length) in zip(dims, tile, strict=True)},
            )
        )
        for tile in itertools.product(
            *(pieces(size, chain) for size, chain in zip(sizes, chains, strict=False))
        )
    ]
    found = axis_extremes(axis, sizes[: len(dims)], chains)
    assert found == (sum(counts), max(counts), min(counts))


@given(st.integers(1, 60), st.lists(st.integers(1, 60), max_size=3))
def test_segments_cover_each_position_once(size: int, extents: list[int]) -> None:
    chain = tuple(sorted(extents, reverse=True))
    cut = segments(size, chain)
    assert list(cut) == pieces(size, chain)
    assert [x for start, length in cut for x in range(start, start + length)] == list(range(size))
    assert n_segments(size, chain) == len(cut)


@given(
    c=st.integers(1, 2),
    h=st.integers(3, 8),
    r=st.integers(1, 3),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    pad=st.tuples(*[st.integers(0, 2)] * 4),
    data=st.data(),
)
def test_conv_input_is_the_walk_of_its_windows(
    c: int, h: int, r: int, stride: int, dilation: int, pad: tuple[int, ...], data: st.DataObject
) -> None:
    """A region of a convolution, walked with the textbook index formula."""
    w = h + 1
    if (r - 1) * dilation >= h:
        r = 1
    problem = conv2d(
        n=2, c=c, k=2, h=h, w=w, r=r, s=r, stride=stride, dilation=dilation,
        padding=(pad[0], pad[1], pad[2], pad[3]),
    )  # fmt: skip
    start, extent = {}, {}
    for dim, size in problem.sizes:
        start[dim] = data.draw(st.integers(0, size - 1), label=dim)
        extent[dim] = data.draw(st.integers(1, size - start[dim]), label=f"extent of {dim}")
    cover = [range(start[d], start[d] + extent[d]) for d in ("N", "C", "P", "Q", "R", "S")]
    walked = set()
    for n, ch, y, x, fy, fx in itertools.product(*cover):
        row, column = y * stride + fy * dilation - pad[0], x * stride + fx * dilation - pad[2]
        if 0 <= row < h and 0 <= column < w:
            walked.add((n, ch, row, column))
    assert footprint_elems(problem.tensor("input"), start, extent) == len(walked)


def test_stride_two_one_wide_filter_touches_a_quarter() -> None:
    image = conv2d(c=1, k=1, h=224, w=224, r=1, s=1, stride=2).tensor("input")
    assert footprint_elems(image, {}, {"P": 112, "Q": 112}) == 224 * 224 // 4


def test_rows_that_no_window_reaches_are_not_counted() -> None:
    # 8 rows, windows of 3 at 0, 3: rows 6 and 7 are stored but never read.
    problem = conv2d(c=1, k=1, h=8, w=8, r=3, s=3, stride=3)
    assert tensor_bytes(problem, problem.tensor("input")) == 4 * 6 * 6


def test_padding_is_not_memory() -> None:
    problem = conv2d(c=1, k=1, h=5, w=5, r=3, s=3, padding=1)
    assert tensor_bytes(problem, problem.tensor("input")) == 4 * 5 * 5
    corner = footprint_elems(problem.tensor("input"), {"P": 0, "Q": 0}, {"R": 3, "S": 3})
    assert corner == 2 * 2


def test_huge_plain_axes_cost_nothing() -> None:
    problem = gemm(m=2**40, n=1, k=2**10)
    assert tensor_bytes(problem, problem.tensor("A")) == 4 * 2**50
    whole = axis_extremes(problem.tensor("A").axes[0], (2**40,), ((2**30, 7),))
    assert (whole.total, whole.largest) == (2**40, 7)


@pytest.mark.parametrize(("first", "size", "count"), [(-3, 10**15, 7), (10**15 - 4, 10**15, 4)])
def test_far_offsets_need_no_bit_set(first: int, size: int, count: int) -> None:
    axis = Axis((("P", 1), ("R", 1)), offset=first, size=size)
    assert axis_count(axis, {}, {"P": 4, "R": 7}) == count
    assert axis_count(axis, {}, {"P": 10}) == count
    assert axis_extremes(axis, (4, 7), ((), ())) == (count, count, count)


def test_bytes_follow_the_element_size_of_each_tensor() -> None:
    problem = affine({"P": 3, "R": 2}, {"x": "2*P+R", "y": "P"}, element_bytes={"x": 2, "y": 8})
    assert [tensor_bytes(problem, tensor) for tensor in problem.tensors] == [12, 24]


def test_scalar_tensor_holds_one_element() -> None:
    problem = Problem("dot", (("K", 5),), (Tensor("x", (Axis((("K", 1),)),)), Tensor("s", ())), "s")
    assert footprint_elems(problem.tensor("s"), {}, problem.size) == 1
