"""Exact footprints: how many distinct stored elements a region touches.

A region is an extent, and where padding matters a start, for each dimension.
Tensors are products of axes, and no dimension moves along two axes of one
tensor, so every count here is a product over axes; sums over a tiling are
products of sums.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from loopsched.base.arrays import Ints
from loopsched.problems.problem import Axis, Problem, Tensor

MOST_SWEEPS = 64
"""Pieces of the dimension that has fewer, for an axis to be counted from both of its ends."""


@lru_cache(maxsize=4096)
def reach(terms: tuple[tuple[int, int], ...]) -> int:
    """Mark the positions that sums of arithmetic progressions reach.

    Parameters
    ----------
    terms : tuple of (coefficient, extent)
        One progression ``0, coefficient, ..`` of ``extent`` members a term.

    Returns
    -------
    int
        A bit set: bit ``x`` is 1 if some choice of members adds up to ``x``.

    Examples
    --------
    A 1 wide filter at stride 2 leaves gaps, a 3 wide one does not.

    >>> bin(reach(((2, 3), (1, 1)))), bin(reach(((2, 3), (1, 3))))
    ('0b10101', '0b1111111')
    """
    bits = 1
    for coefficient, extent in terms:
        grown, copies = bits, 1
        while copies < extent:  # doubling: each pass at most doubles the members
            step = min(copies, extent - copies)
            grown |= grown << (coefficient * step)
            copies += step
        bits = grown
    return bits


def axis_count(axis: Axis, start: Mapping[str, int], extent: Mapping[str, int]) -> int:
    """Count the distinct stored positions that a region touches on an axis.

    Parameters
    ----------
    axis : Axis
    start, extent : mapping of dimension name to int
        The region: ``start <= index < start + extent``.  A dimension missing
        from ``start`` starts at 0; from ``extent``, it has extent 1.

    Returns
    -------
    int, elements

    Examples
    --------
    >>> rows = Axis((("P", 1), ("R", 1)), offset=-1, size=8)
    >>> axis_count(rows, {"P": 0}, {"P": 2, "R": 3})
    3
    >>> axis_count(rows, {"P": 3}, {"P": 2, "R": 3})
    4
    """
    if axis.is_plain:
        return max(1, extent.get(axis.dims[0], 1))
    # Only dimensions that move widen the reach: one alone needs no bit set, however long it is.
    moving = tuple((c, extent[dim]) for dim, c in axis.terms if extent.get(dim, 1) > 1)
    if axis.size is None:
        return moving[0][1] if len(moving) == 1 else reach(moving).bit_count()
    first = axis.offset + sum(c * start.get(dim, 0) for dim, c in axis.terms)
    if len(moving) == 1:
        coefficient, members = moving[0]
        skipped = max(0, -(first // coefficient))
        kept = min(members, -((first - axis.size) // coefficient))
        return max(0, kept - skipped)
    return _clipped_count(reach(moving), first, axis.size)


def _clipped_count(bits: int, first: int, size: int) -> int:
    """Count the marked positions inside [0, size), the first mark being at ``first``."""
    low = max(0, -first)
    high = min(bits.bit_length(), size - first)
    return ((bits >> low) & ((1 << (high - low)) - 1)).bit_count() if low < high else 0


def footprint_elems(tensor: Tensor, start: Mapping[str, int], extent: Mapping[str, int]) -> int:
    """Count the distinct stored elements of a tensor in one region.

    Parameters and result are those of `axis_count`, over all axes.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> image = conv2d(n=1, c=2, k=1, h=8, w=8, r=1, s=1, stride=2).tensor("input")
    >>> footprint_elems(image, {}, {"C": 2, "P": 4, "Q": 4})
    32
    """
    return math.prod(axis_count(axis, start, extent) for axis in tensor.axes)


def segments(size: int, extents: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Cut a dimension into the pieces that a chain of loops visits, in order.

    Parameters
    ----------
    size : int
        Size of the dimension.
    extents : sequence of int
        Tile extents, outermost first, none growing inward.

    Returns
    -------
    tuple of (start, length)

    Examples
    --------
    >>> segments(10, (4, 3))
    ((0, 3), (3, 1), (4, 3), (7, 1), (8, 2))
    """
    pieces = [(0, size)]
    for extent in extents:
        pieces = [
            (begin, min(extent, start + length - begin))
            for start, length in pieces
            for begin in range(start, start + length, extent)
        ]
    return tuple(pieces)


def n_segments(size: int, extents: Sequence[int]) -> int:
    """Count the pieces of `segments` without listing them.

    Examples
    --------
    >>> n_segments(10, (4, 3))
    5
    """
    return sum(segment_lengths(size, extents).values())


def segment_lengths(size: int, extents: Sequence[int]) -> dict[int, int]:
    """Count the pieces of `segments` by their length, without listing them.

    Examples
    --------
    >>> segment_lengths(10, (4, 3))
    {3: 2, 1: 2, 2: 1}
    """
    lengths = {size: 1}
    for extent in extents:
        lengths = cut_lengths(lengths, extent)
    return lengths


def cut_lengths(lengths: Mapping[int, int], extent: int) -> dict[int, int]:
    """Cut pieces, counted by their length, into shorter ones.

    Examples
    --------
    >>> cut_lengths({10: 1, 6: 2}, 4)
    {4: 4, 2: 3}
    """
    found: dict[int, int] = {}
    for length, many in lengths.items():
        full, rest = divmod(length, extent)
        if full:
            found[extent] = found.get(extent, 0) + many * full
        if rest:
            found[rest] = found.get(rest, 0) + many
    return found


def is_clipped(axis: Axis, sizes: Mapping[str, int]) -> bool:
    """Whether part of what the dimensions reach on an axis is padding.

    Examples
    --------
    >>> is_clipped(Axis((("P", 1), ("R", 1)), -1, 8), {"P": 8, "R": 3})
    True
    """
    if axis.size is None:
        return False
    last = axis.offset + sum(c * (sizes[dim] - 1) for dim, c in axis.terms)
    return axis.offset < 0 or last >= axis.size


class Extremes(NamedTuple):
    """Total, largest and smallest count over the pieces of a tiling."""

    total: int
    largest: int
    smallest: int


@lru_cache(maxsize=65536)
def axis_extremes(
    axis: Axis, sizes: tuple[int, ...], chains: tuple[tuple[int, ...], ...]
) -> Extremes:
    """Sum, maximise and minimise `axis_count` over all pieces of a tiling.

    Parameters
    ----------
    axis : Axis
    sizes : tuple of int
        Size of each dimension of the axis, in the order of its terms.
    chains : tuple of tuple of int
        Tile extents of each of them, outermost first; empty: whole.

    Examples
    --------
    Two tiles of a 3 wide filter over 8 stored positions: 5 each, 2 shared.

    >>> rows = Axis((("P", 1), ("R", 1)), offset=-1, size=8)
    >>> axis_extremes(rows, (8, 3), ((4,), ()))
    Extremes(total=10, largest=5, smallest=5)
    """
    if not is_clipped(axis, dict(zip(axis.dims, sizes, strict=True))):
        shapes = _shapes(axis, sizes, chains)
        counts = [_n_reached(axis, shape) for shape in shapes]
        return Extremes(sum(map(operator.mul, counts, shapes.values())), max(counts), min(counts))
    pieces = tuple(segments(size, chain) for size, chain in zip(sizes, chains, strict=True))
    if len(axis.terms) == 2 and min(map(len, pieces)) <= MOST_SWEEPS:
        return _swept_extremes(axis, pieces, _shapes(axis, sizes, chains))
    total, largest, smallest = 0, 0, None
    for shape, first in _places(axis, pieces):
        count = _clipped_counts(_reach_of(axis, shape), first, axis.size)
        total += int(count.sum())
        largest = max(largest, int(count.max()))
        least = int(count.min())
        smallest = least if smallest is None else min(smallest, least)
    return Extremes(total, largest, smallest or 0)


def _shapes(
    axis: Axis, sizes: tuple[int, ...], chains: tuple[tuple[int, ...], ...]
) -> dict[tuple[int, ...], int]:
    """Count the pieces of a tiling by their lengths along the dimensions of an axis."""
    kinds = [segment_lengths(size, chain) for size, chain in zip(sizes, chains, strict=True)]
    many = (math.prod(counts) for counts in product(*[kind.values() for kind in kinds]))
    return dict(zip(product(*kinds), many, strict=True))


def _swept_extremes(
    axis: Axis, pieces: tuple[tuple[tuple[int, int], ...], ...], shapes: dict[tuple[int, ...], int]
) -> Extremes:
    """Find the extremes on an axis of two dimensions where only pieces at its ends are clipped.

    For each piece of the dimension that has fewer, those of the other are looked at from both
    ends, up to the first that is stored as a whole.
    """
    along = 0 if len(pieces[0]) >= len(pieces[1]) else 1
    (_, c), (_, step) = axis.terms[along], axis.terms[1 - along]
    size, whole = axis.size or 0, dict(shapes)
    counts: dict[int, int] = {}
    reaches = {shape: _reach_of(axis, shape) for shape in shapes}
    for start, length in pieces[1 - along]:
        origin = axis.offset + step * start
        past = size - origin - step * (length - 1)  # an end of a piece here is clipped
        line, left = pieces[along], 0
        right = len(line)
        while left < right and origin + c * line[left][0] < 0:
            left += 1
        while left < right and c * (line[right - 1][0] + line[right - 1][1] - 1) >= past:
            right -= 1
        for at, one in (*line[:left], *line[right:]):
            shape: tuple[int, ...] = (one, length) if along == 0 else (length, one)
            whole[shape] -= 1
            first = origin + c * at
            count = _clipped_count(reaches[shape], first, size)
            counts[count] = counts.get(count, 0) + 1
    for shape, many in whole.items():
        if many:
            count = _n_reached(axis, shape)
            counts[count] = counts.get(count, 0) + many
    return Extremes(sum(map(operator.mul, counts, counts.values())), max(counts), min(counts))


@lru_cache(maxsize=65536)
def axis_slid(
    axis: Axis, sizes: tuple[int, ...], chains: tuple[tuple[int, ...], ...], along: int
) -> int:
    """Sum what pieces add on an axis where each keeps what it shares with the one before.

    Parameters
    ----------
    axis, sizes, chains
        As for `axis_extremes`.
    along : int
        Number of the dimension whose last cut slides the window: between its pieces
        only what the next one does not share with the last one is added.

    Examples
    --------
    The tiles touch 0 1 3 4, 2 3 5 6 and 4 5 7 8: the last one lacks what the first had.

    >>> axis_slid(Axis((("P", 1), ("R", 3))), (6, 2), ((2,), ()), 0)
    10
    """
    pieces = [segments(size, chain) for size, chain in zip(sizes, chains, strict=True)]
    begins = {start for start, _ in segments(sizes[along], chains[along][:-1])}
    coefficient, extent = axis.terms[along][1], chains[along][-1]
    total = 0
    for is_first in (True, False):
        part = list(pieces)
        part[along] = tuple(one for one in pieces[along] if (one[0] in begins) == is_first)
        for shape, first in _places(axis, tuple(part)):
            bits = _reach_of(axis, shape)
            if not is_first:
                before = _reach_of(axis, (*shape[:along], extent, *shape[along + 1 :]))
                bits &= ~(before >> coefficient * extent)
            total += int(_clipped_counts(bits, first, axis.size).sum())
    return total


def _places(
    axis: Axis, pieces: tuple[tuple[tuple[int, int], ...], ...]
) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """List, for each shape of a piece, the first positions of all pieces that have it."""
    import numpy as np

    starts: list[dict[int, Ints]] = []
    for part, (_, coefficient) in zip(pieces, axis.terms, strict=True):
        both = np.array(part, dtype=np.int64).reshape(-1, 2)
        lengths = sorted(set(both[:, 1].tolist()))
        starts.append({one: both[both[:, 1] == one, 0] * coefficient for one in lengths})
    for shape in product(*starts):
        first = np.full(1, axis.offset, dtype=np.int64)
        for begin, length in zip(starts, shape, strict=True):
            first = np.add.outer(first, begin[length]).ravel()
        yield shape, first


def _reach_of(axis: Axis, shape: tuple[int, ...]) -> int:
    return reach(tuple((c, length) for (_, c), length in zip(axis.terms, shape, strict=True)))


def _n_reached(axis: Axis, shape: tuple[int, ...]) -> int:
    """Count the positions that a region reaches on an axis, stored or not."""
    moving = tuple([(c, n) for (_, c), n in zip(axis.terms, shape, strict=True) if n > 1])
    if len(moving) <= 1:  # one dimension alone needs no bit set, however long it is
        return moving[0][1] if moving else 1
    return reach(moving).bit_count()


def _clipped_counts(bits: int, first: Ints, size: int | None) -> Ints:
    """Count, for each first position, the marked positions inside [0, size)."""
    import numpy as np

    width = bits.bit_length()
    if size is None:
        return np.full(first.shape, bits.bit_count(), dtype=np.int64)
    packed = np.frombuffer(bits.to_bytes((width + 7) // 8, "little"), dtype=np.uint8)
    marks = np.unpackbits(packed, bitorder="little")[:width]
    before = np.concatenate(([0], np.cumsum(marks, dtype=np.int64)))
    low = np.clip(-first, 0, width)
    high = np.clip(size - first, 0, width)
    return before[np.maximum(high, low)] - before[low]


def points_elems(problem: Problem, tensor: Tensor) -> int:
    """Count the elements that all points of a problem ask for, one by one.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> problem = gemm(m=4, n=3, k=2)
    >>> points_elems(problem, problem.tensor("A"))
    24
    """
    size = problem.size
    asked = math.prod(n for dim, n in problem.sizes if dim not in tensor.dims)
    for axis in tensor.axes:
        sizes = tuple(size[dim] for dim in axis.dims)
        if is_clipped(axis, size):
            asked *= axis_extremes(axis, sizes, ((1,),) * len(sizes)).total
        else:
            asked *= math.prod(sizes)
    return asked


@lru_cache(maxsize=4096)
def tensor_bytes(problem: Problem, tensor: Tensor) -> int:
    """Size in bytes of what the whole iteration space touches of a tensor.

    Examples
    --------
    >>> from loopsched import gemm
    >>> problem = gemm(m=4, n=3, k=2)
    >>> [tensor_bytes(problem, tensor) for tensor in problem.tensors]
    [32, 24, 48]
    """
    return footprint_elems(tensor, {}, problem.size) * tensor.element_bytes


def problem_bytes(problem: Problem) -> int:
    """Size in bytes of what the whole iteration space touches, each element once."""
    return sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
