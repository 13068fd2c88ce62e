"""Cells: groups of stored positions that every piece of a tiling touches together or not at all."""

from __future__ import annotations

import itertools
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
    pieces = [
        np.array(segments(length, chain), dtype=np.int64).reshape(-1, 2)
        for (_, length), chain in zip(region, chains, strict=True)
    ]
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
    shapes: dict[tuple[int, ...], Ints] = {}
    places, owners, n_entries = [], [], 0
    combinations = itertools.product(*(part.tolist() for part in pieces))
    if n_rows > MOST_ENTRIES:
        return None
    for row, combination in enumerate(combinations):
        shape = tuple(length for _, length in combination)
        if shape not in shapes:
            terms = tuple((c, length) for (_, c), length in zip(axis.terms, shape, strict=True))
            bits = bin(reach(terms))[:1:-1]
            shapes[shape] = np.flatnonzero(np.array(list(bits)) == "1")
        first = origin + sum(
            c * begin for (_, c), (begin, _) in zip(axis.terms, combination, strict=True)
        )
        place = first + shapes[shape]
        if axis.size is not None:
            place = place[(place >= 0) & (place < axis.size)]
        n_entries += len(place)
        if n_entries > MOST_ENTRIES:
            return None
        places.append(place)
        owners.append(np.full(len(place), row, dtype=np.int64))
    return _group(np.concatenate(places), np.concatenate(owners), n_rows)


def _group(place: Ints, owner: Ints, n_rows: int) -> tuple[Ints, Ints, Ints] | None:
    """Put positions with the same owners into one cell."""
    positions, place = np.unique(place, return_inverse=True)
    order = np.lexsort((owner, place))
    place, owner = place[order], owner[order]
    counts = np.bincount(place, minlength=len(positions))
    most = int(counts.max(initial=1))
    if most * len(positions) > MOST_ENTRIES:
        return None
    table = np.full((len(positions), most), -1, dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    table[place, np.arange(len(place)) - starts[place]] = owner
    kinds, cell = np.unique(table, axis=0, return_inverse=True)
    weights = np.bincount(cell.ravel(), minlength=len(kinds))
    of_cell, slot = np.nonzero(kinds >= 0)
    owners = kinds[of_cell, slot]
    order = np.lexsort((of_cell, owners))
    rows = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=n_rows))))
    return rows, of_cell[order], weights
