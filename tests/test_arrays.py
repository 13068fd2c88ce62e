"""Spreads over units: what they do, and in what order, counted by hand."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched import conv2d, gemm
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.scheduler.arrays import MAX_SPREADS, spreads
from loopsched.scheduler.space import BlockSlot

PROBLEMS = (
    gemm(m=10, n=6, k=4),
    gemm(m=64, n=3, k=5, element_bytes={"A": 1, "C": 8}),
    conv2d(n=2, c=3, k=5, p=7, q=4, r=1, s=1),
)


def units_of(
    problem: Problem, counts: tuple[int, ...], shares_sums: bool = False
) -> list[tuple[BlockSlot, int]]:
    dims = problem.dims if shares_sums else problem.parallel_dims
    return [(BlockSlot(f"unit{i}", f"unit{i}", dims), count) for i, count in enumerate(counts)]


def side_by_side(spread: tuple[Mapping[str, int], ...], dim: str) -> int:
    return prod(fill.get(dim, 1) for fill in spread)


def cost(problem: Problem, spread: tuple[Mapping[str, int], ...]) -> tuple[int, int]:
    """Steps of one unit, and bytes that all hold together: sums are read and written."""
    left = problem.size
    for fill in spread:
        left = {dim: -(-size // fill.get(dim, 1)) for dim, size in left.items()}
    held = 0
    for tensor in problem.tensors:
        copies = prod(side_by_side(spread, dim) for dim in problem.dims if dim not in tensor.dims)
        once = tensor_bytes(problem, tensor)
        held += copies * once * (2 if tensor.name == problem.output else 1)
    return prod(left.values()), held


@given(
    st.sampled_from(PROBLEMS), st.lists(st.integers(1, 12), min_size=1, max_size=2), st.booleans()
)
@settings(max_examples=30)
def test_spreads_use_what_there_is_and_come_best_first(
    problem: Problem, counts: list[int], shares_sums: bool
) -> None:
    found = spreads(problem, units_of(problem, tuple(counts), shares_sums))
    assert found
    for spread in found:
        assert len(spread) == len(counts)
        left = dict(problem.size)
        for fill, count in zip(spread, counts, strict=True):
            assert prod(fill.values()) <= count
            for dim, pieces in fill.items():
                # One piece less would have a longer step: no piece is without work.
                assert -(-left[dim] // pieces) < -(-left[dim] // (pieces - 1))
                left[dim] = -(-left[dim] // pieces)
    costs = [cost(problem, spread) for spread in found]
    first = costs[:MAX_SPREADS]
    assert first == sorted(first)
    assert min(costs)[0] == costs[0][0]


@pytest.mark.parametrize("count", [1, 4, 5, 6, 60])
def test_all_units_work_where_sizes_allow_it(count: int) -> None:
    best = spreads(gemm(m=60, n=7, k=3), units_of(gemm(m=60, n=7, k=3), (count,)))[0]
    assert cost(gemm(m=60, n=7, k=3), best)[0] == 60 // count * 7 * 3
