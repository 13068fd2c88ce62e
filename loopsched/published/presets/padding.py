"""Tiles of blocks: problems that are smaller, and what is loaded at once from their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopsched.problems.problem import Problem, Tensor


def cut(problem: Problem, sizes: Mapping[str, Mapping[str, int]]) -> Problem:
    """Say what is stored of tensors whose dimensions were made longer.

    Parameters
    ----------
    problem : Problem
    sizes : mapping of tensor to mapping of dimension to int
        Places that the axis of that dimension has.

    Examples
    --------
    >>> from loopsched import gemm
    >>> cut(gemm(m=32, n=64, k=8), {"C": {"M": 12}}).tensor("C").axes[0].size
    12
    """
    tensors = tuple(_cut(tensor, sizes.get(tensor.name, {})) for tensor in problem.tensors)
    return replace(problem, tensors=tensors)


def _cut(tensor: Tensor, sizes: Mapping[str, int]) -> Tensor:
    axes = []
    for axis in tensor.axes:
        found = [size for dim, size in sizes.items() if dim in axis.dims]
        axes.append(replace(axis, size=found[0]) if found else axis)
    return replace(tensor, axes=tuple(axes))


def row_vector(tile: int) -> int:
    """Say how many elements of its row of a tile a thread loads at once.

    Two where rows are even: passes of shared memory of the ``gemm_tile*``
    kernels in counters/h200_kernels.csv are then met within 2 %, and the shared
    loads that report 002 prints (Figure 3) within 1 %; one by one, both are
    30 % too many.

    Examples
    --------
    >>> row_vector(24), row_vector(5)
    (2, 1)
    """
    return 2 - tile % 2
