"""Cells: groups of stored positions that every piece of a tiling touches together or not at all."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.problems.footprint import reach, segments
from loopsched.problems.problem import Axis

MOST_ENTRIES = 2**22


class AxisCells(NamedTuple):
    """Cells of one axis, and which of them each combination of pieces touches.

    Parameters
    ----------
    strides : tuple of int
        What one piece further along each dimension of the axis adds to the row.
    rows : int array
        Where the cells of each row begin in ``columns``; one more than rows.
    columns : int array
        Cells, row by row, ascending.
    weights : int array
        Positions in each cell.
    """

    strides: tuple[int, ...]
    rows: Ints
    columns: Ints
    weights: Ints


@lru_cache(maxsize=4096)
def axis_cells(
    axis: Axis, region: tuple[tuple[int, int], ...], chains: tuple[tuple[int, ...], ...]
) -> AxisCells | None:
    """Split what a region touches on an axis into cells.

    Parameters
    ----------
    axis : Axis
    region : tuple of (start, length)
        One for each dimension of the axis.
    chains : tuple of tuple of int
        Tile extents of each of them, outermost first.

    Returns
    -------
    AxisCells or None
        None if there are too many to list.

    Examples
    --------
    Two tiles of four rows under a filter of three: the second begins two rows
    before the first one's window ends.

    >>> rows = Axis((("P", 1), ("R", 1)))
    >>> cells = axis_cells(rows, ((0, 8), (0, 3)), ((4,), ()))
    >>> cells.weights.tolist(), cells.columns.tolist(), cells.rows.tolist()
    ([4, 2, 4], [0, 1, 1, 2], [0, 2, 4])
    """
    listed = [segments(length, chain) for (_, length), chain in zip(region, chains, strict=True)]
    if axis.is_plain:  # each piece is a cell
        n = len(listed[0])
        weights = np.array([length for _, length in listed[0]], dtype=np.int64)
        return AxisCells((1,), np.arange(n + 1), np.arange(n), weights)
    pieces = [np.array(part, dtype=np.int64).reshape(-1, 2) for part in listed]
    strides: list[int] = []
    n_rows = 1
    for part in reversed(pieces):
        strides.insert(0, n_rows)
        n_rows *= len(part)
    origin = axis.offset + sum(
        c * start for (_, c), (start, _) in zip(axis.terms, region, strict=True)
    )
    moving = sum(length > 1 for _, length in region)
    touched = _touched_alone if moving <= 1 else _touched
    found = touched(axis, pieces, n_rows, origin)
    return None if found is None else AxisCells(tuple(strides), *found)


def _touched_alone(
    axis: Axis, pieces: list[Ints], n_rows: int, origin: int
) -> tuple[Ints, Ints, Ints]:
    """Cells where one dimension moves: its pieces touch nothing in common."""
    weights = np.ones(n_rows, dtype=np.int64)
    first = np.full(n_rows, origin, dtype=np.int64)
    coefficient = 1
    for part, (_, factor) in zip(pieces, axis.terms, strict=True):
        if len(part) > 1 or part[0, 1] > 1:
            weights, first = part[:, 1].copy(), origin + part[:, 0] * factor
            coefficient = factor
    if axis.size is not None:
        skipped = np.maximum(0, -(first // coefficient))
        kept = np.minimum(weights, -((first - axis.size) // coefficient))
        weights = np.maximum(0, kept - skipped)
    is_stored = weights > 0
    rows = np.concatenate(([0], np.cumsum(is_stored)))
    return rows, np.arange(int(is_stored.sum())), weights[is_stored]


def _touched(
    axis: Axis, pieces: list[Ints], n_rows: int, origin: int
) -> tuple[Ints, Ints, Ints] | None:
    if n_rows > MOST_ENTRIES:
        return None
    first = np.full(1, origin, dtype=np.int64)
    kind = np.zeros(1, dtype=np.int64)  # of the lengths of a row's pieces
    shapes: list[tuple[int, ...]] = [()]
    for part, (_, c) in zip(pieces, axis.terms, strict=True):
        lengths, of = np.unique(part[:, 1], return_inverse=True)
        first = np.add.outer(first, c * part[:, 0]).ravel()
        kind = np.add.outer(kind * len(lengths), of.ravel()).ravel()
        shapes = [(*shape, length) for shape in shapes for length in lengths.tolist()]
    places, owners, n_entries = [], [], 0
    for number, shape in enumerate(shapes):
        inside = _reached(tuple([(c, n) for (_, c), n in zip(axis.terms, shape, strict=True)]))
        rows = np.flatnonzero(kind == number)
        n_parts = 1 + len(rows) * len(inside) // MOST_ENTRIES
        for some in np.array_split(rows, n_parts) if n_parts > 1 else (rows,):
            place = np.add.outer(first[some], inside).ravel()
            owner = np.repeat(some, len(inside))
            if axis.size is not None:
                is_stored = (place >= 0) & (place < axis.size)
                place, owner = place[is_stored], owner[is_stored]
            n_entries += len(place)
            if n_entries > MOST_ENTRIES:
                return None
            places.append(place)
            owners.append(owner)
    return _group(np.concatenate(places), np.concatenate(owners), n_rows)


@lru_cache(maxsize=1024)
def _reached(terms: tuple[tuple[int, int], ...]) -> Ints:
    """List the positions that `reach` marks."""
    bits = bin(reach(terms))[:1:-1]
    return np.flatnonzero(np.frombuffer(bits.encode(), np.uint8) == ord("1"))


def _group(place: Ints, owner: Ints, n_rows: int) -> tuple[Ints, Ints, Ints] | None:
    """Put positions with the same owners into one cell; cells are in the order of their owners."""
    order = np.lexsort((owner, place))
    place, owner = place[order], owner[order]
    starts = np.flatnonzero(np.diff(place, prepend=place[:1] - 1))
    ends = np.append(starts, len(place))[1:]
    if int((ends - starts).max(initial=1)) * len(starts) > MOST_ENTRIES:
        return None
    text = owner.astype(">u4").tobytes()  # in this form, lists compare as their bytes do
    lists = [text[4 * at : 4 * end] for at, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    many: dict[bytes, int] = {}
    for one in lists:
        many[one] = many.get(one, 0) + 1
    kinds = sorted(many)
    owners = np.frombuffer(b"".join(kinds), ">u4").astype(np.int64)
    of_cell = np.repeat(np.arange(len(kinds)), [len(one) // 4 for one in kinds])
    rows = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=n_rows))))
    weights = np.array([many[one] for one in kinds], dtype=np.int64)
    return rows, of_cell[np.argsort(owners, kind="stable")], weights
