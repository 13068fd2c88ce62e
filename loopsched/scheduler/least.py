"""Least pieces, sums and halos: what no way of cutting a dimension can go below.

A body sees each dimension cut into pieces by a chain of loops, one or several,
evenly or not.  Whatever the chain, if its last extent is ``e`` then (derived
here, for a dimension of size D):

* there are at least ``ceil(D/e)`` pieces;
* ``[0, e)`` is a piece, and every position lies in one, so the largest piece
  holds at least what those hold, padding taken off;
* where two pieces meet, what the windows of the two positions beside share is
  counted twice, so the sum over n pieces is at least the union and the n - 1
  smallest of these; cutting a second dimension too never makes it smaller;
* two pieces next to each other are at least ``e + 1`` long together, if they
  are cut from one.

All of these are monotone in ``e``: of the extents with equal ``ceil(D/e)`` the
smallest is a bound for all.  Every bound of a search rests on these tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from loopsched.base.arrays import Ints
from loopsched.problems.footprint import axis_extremes, is_clipped, reach
from loopsched.problems.problem import Axis, Problem
from loopsched.scheduler.tables import (
    MAX_KEPT,
    NO_BYTES,
    Tables,
    has_plain_axes,
    tables_for,
    trip_classes,
)

# Longest windows of which all ways to cut are tried, and of which all numbers of pieces are;
# most places where pieces may meet with padding beside.
MAX_TRIED = 32
MAX_WINDOW = 4096
MAX_CLIPPED = 65536


def least_tables(
    problem: Problem,
    *,
    candidates: tuple[tuple[int, ...], ...] | None = None,
    pieces: Mapping[str, int] | None = None,
) -> Tables:
    """Tabulate a problem so that no nest does better than the tables say.

    Parameters
    ----------
    problem : Problem
    candidates : tuple of tuple of int, optional
        Extents that a body may have, each dimension, largest first and
        beginning with its size; by default the smallest for each number of
        pieces.
    pieces : mapping of str to int, optional
        Instead: into how many items each dimension is cut outside, at least.

    Returns
    -------
    Tables
        Every number is at most that of any nest whose body has such extents.

    Examples
    --------
    Padding on one side: a piece of 4 may hold 2 positions only, and it does.

    >>> from loopsched import conv2d
    >>> padded = conv2d(c=1, k=1, h=5, w=1, r=1, s=1, stride=(2, 1), padding=(2, 0, 0, 0))
    >>> tables = least_tables(padded, candidates=((1,), (1,), (1,), (4, 2), (1,), (1,), (1,)))
    >>> rows = tables.axis_start[2]
    >>> tables.largest[rows : rows + 2].tolist()
    [3, 1]
    """
    if has_plain_axes(problem) and pieces is None:
        return tables_for(problem, candidates=candidates)
    if candidates is None:
        most = {dim: -(-size // (pieces or {}).get(dim, 1)) for dim, size in problem.sizes}
        candidates = tuple(
            tuple(e for e in trip_classes((size,)) if e <= most[dim]) for dim, size in problem.sizes
        )
    tables = tables_for(problem, candidates=candidates)
    numbers = [
        table.copy()
        for table in (tables.total, tables.largest, tables.pair_first, tables.pair_second)
    ]
    gapless = tables.is_gapless.copy()
    at = 0
    for tensor in problem.tensors:
        for axis in tensor.axes:
            if not axis.is_plain:
                rows = [int(row) for row in tables.axis_dims[at] if row >= 0]
                start = int(tables.axis_start[at])
                extents = tuple(tables.extents[row] for row in rows)
                where = slice(start, start + math.prod(map(len, extents)))
                sizes = tuple(problem.sizes[row][1] for row in rows)
                for table, part in zip(numbers, _least(axis, sizes, extents), strict=True):
                    table[where] = part
                gapless[where] = 1  # where a larger extent of the class is
            at += 1
    total, largest, pair_first, pair_second = numbers
    return replace(
        tables, total=total, largest=largest, pair_first=pair_first, pair_second=pair_second,
        is_gapless=gapless,
    ).with_whole_sweeps()  # fmt: skip


def extents_from(problem: Problem, shortest: Mapping[str, int]) -> Tables:
    """Tabulate a problem as `least_tables`, for bodies of certain extents or longer."""
    candidates = []
    for dim, size in problem.sizes:
        least = min(size, shortest.get(dim, 1))
        known = {max(extent, least) for extent in trip_classes((size,))}
        candidates.append(tuple(sorted(known, reverse=True)))
    return least_tables(problem, candidates=tuple(candidates))


def cut_below(problem: Problem, along: str, most: int, capacity_bytes: int) -> Tables:
    """Tabulate a problem as `least_tables`, for bodies of a certain extent or shorter.

    All axes of the problem are plain.  The dimension's whole length stays among the extents,
    as tables begin with it, and is said to take more than the capacity.
    """
    candidates = [trip_classes((size,)) for _, size in problem.sizes]
    row = problem.dims.index(along)
    whole, *shorter = candidates[row]
    candidates[row] = (whole, *(extent for extent in shorter if extent <= most))
    tables = least_tables(problem, candidates=tuple(candidates))
    largest = tables.largest.copy()
    for axis, (first, _) in enumerate(tables.axis_dims.tolist()):
        if first == row:
            largest[int(tables.axis_start[axis])] = capacity_bytes + 1
    return replace(tables, largest=largest)


def cuts_evenly(problem: Problem) -> bool:
    """Whether a second loop of a dimension in one block is never better.

    A chain of loops cuts no fewer pieces than its last loop would alone.  Where
    no window has gaps or padding, its longest piece is as large, and the sum
    over more pieces is larger; elsewhere a shorter piece may lie where it saves.

    Examples
    --------
    >>> from loopsched import conv2d, gemm
    >>> cuts_evenly(gemm(m=4, n=4, k=4))
    True
    >>> cuts_evenly(conv2d(c=1, k=1, h=8, w=8, r=3, s=3, padding=1))
    False
    """
    size = problem.size
    return all(
        lies_evenly(axis, size)
        for tensor in problem.tensors
        for axis in tensor.axes
        if any(size[dim] > 3 for dim in axis.dims)  # three are cut to two and one, or to ones
    )


def lies_evenly(axis: Axis, size: Mapping[str, int]) -> bool:
    """Whether what pieces touch on an axis depends on their lengths, not on where they lie."""
    has_gaps = axis.is_compound and any(coefficient > 1 for _, coefficient in axis.terms)
    return not has_gaps and not is_clipped(axis, size)


def _least(
    axis: Axis, sizes: tuple[int, ...], extents: tuple[tuple[int, ...], ...]
) -> tuple[Ints, ...]:
    """Bound sums, the largest piece and pairs along either dimension, for each choice."""
    terms = tuple((f"d{number}", c) for number, (_, c) in enumerate(axis.terms))
    count = _known_least if math.prod(map(len, extents)) <= MAX_KEPT else _new_least
    return count(replace(axis, terms=terms), sizes, extents)


def _new_least(
    axis: Axis, sizes: tuple[int, ...], extents: tuple[tuple[int, ...], ...]
) -> tuple[Ints, ...]:
    return _totals(axis, sizes, extents), *_pieces(axis, extents)


# Axes that differ by their names only are alike.
_known_least = lru_cache(maxsize=64)(_new_least)


def _pieces(axis: Axis, extents: tuple[tuple[int, ...], ...]) -> Ints:
    """Bound the largest piece, and a pair along either dimension, for each choice."""
    import numpy as np

    from loopsched.scheduler.kernels import Line, least_axis_table

    first = np.array(extents[0], dtype=np.int64)
    second = np.array(extents[1] if len(extents) == 2 else (1,), dtype=np.int64)
    least = np.zeros((3, len(first) * len(second)), dtype=np.int64)
    c1, c2 = axis.terms[0][1], axis.terms[1][1] if len(extents) == 2 else 1
    size = -1 if axis.size is None else axis.size
    least_axis_table(Line(c1, c2, axis.offset, size), first, second, least)
    return least


def _totals(axis: Axis, sizes: tuple[int, ...], extents: tuple[tuple[int, ...], ...]) -> Ints:
    """Bound the sum over all pieces of an axis, for each choice."""
    import numpy as np

    size = dict(zip(axis.dims, sizes, strict=True))
    union = axis_extremes(axis, sizes, ((),) * len(sizes)).total
    meet = [-(-whole // np.array(each)) - 1 for whole, each in zip(sizes, extents, strict=True)]
    shared = [_Shared.at(axis, k, size) for k in range(len(sizes))]
    alone = [each.sums(many) for each, many in zip(shared, meet, strict=True)]
    if len(sizes) == 1:
        return union + alone[0]
    found = np.maximum.outer(alone[0], alone[1])
    for k, grid in ((0, found), (1, found.T)):  # each piece of the other dimension is cut, too
        is_solid = axis.terms[1 - k][1] == 1
        points = np.maximum(0, meet[k] - shared[k].n_clipped) * is_solid
        whole = size[axis.dims[1 - k]]
        if whole <= MAX_TRIED:
            least = _tried(axis, k, size, points)[:, meet[1 - k]] - union
        elif is_solid and whole <= MAX_WINDOW:
            many = np.arange(1, whole + 1)
            both = np.maximum(0, whole - many * axis.terms[k][1])
            sums = shared[1 - k].sums(many - 1) + np.outer(points, both)
            # With so many pieces, or more.
            least = np.minimum.accumulate(sums[:, ::-1], axis=1)[:, ::-1][:, meet[1 - k]]
        else:
            continue
        np.maximum(grid, least, out=grid)
    return union + found.ravel()


def _tried(axis: Axis, along: int, size: Mapping[str, int], points: Ints) -> Ints:
    """Bound the sum by all ways to cut a short dimension, for each number of its cuts.

    ``points`` says how many windows meet along the other dimension.
    """
    import numpy as np

    from loopsched.scheduler.kernels import Line, least_sums

    (first, c1), (second, c2) = axis.terms[along], axis.terms[1 - along]
    whole, bound = size[second], -1 if axis.size is None else axis.size
    sums = np.zeros((len(points), whole + 1), dtype=np.int64)
    least_sums(Line(c1, c2, axis.offset, bound), size[first], whole, points, sums)
    found = np.full((len(points), whole), NO_BYTES, dtype=np.int64)
    for extent in range(1, whole + 1):
        cuts = -(-whole // extent) - 1
        found[:, cuts] = np.minimum(found[:, cuts], sums[:, extent])
    return found


@dataclass(frozen=True)
class _Shared:
    """What the windows on both sides of a meeting point share, other dimensions whole.

    Parameters
    ----------
    clipped : array
        Sums of the least of those with padding in them, by their number.
    whole : int
        Of every other; at least that of any clipped one.
    """

    clipped: Ints
    whole: int

    @classmethod
    def at(cls, axis: Axis, along: int, size: Mapping[str, int]) -> _Shared:
        import numpy as np

        dim, step = axis.terms[along]
        window = tuple((c, size[name]) for name, c in axis.terms if name != dim)
        width = 1 + sum(c * (many - 1) for c, many in window)
        none = np.zeros(1, dtype=np.int64)
        if step >= width or reach(window).bit_count() < width:  # no overlap, or gaps
            return cls(none, 0)
        many = size[dim] - 1
        if axis.size is None:
            return cls(none, width - step)
        before = min(many, max(0, -(axis.offset // step)))
        after = max(before, min(many, (axis.size - axis.offset - width) // step))
        if many - (after - before) > MAX_CLIPPED:
            return cls(none, 0)
        x = np.concatenate((np.arange(1, before + 1), np.arange(after + 1, many + 1)))
        low = axis.offset + step * x
        high = low - step + width  # first position after the window before
        both = np.clip(high, 0, axis.size) - np.clip(low, 0, axis.size)
        return cls(np.concatenate(([0], np.cumsum(np.sort(np.maximum(0, both))))), width - step)

    @property
    def n_clipped(self) -> int:
        """Meeting points with padding in a window beside."""
        return len(self.clipped) - 1

    def sums(self, many: Ints) -> Ints:
        """Sum the least of so many meeting points."""
        import numpy as np

        among = np.minimum(many, self.n_clipped)
        return self.clipped[among] + (many - among) * self.whole
