"""Compiled replays of what waves read and write, pool by pool.

The same as `loopsched.models.replay` finds; what a replay finds is kept in the table, and looked
up by the loops that it goes through.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit, part
from loopsched.models._along_kernels import Past, Steps, walk_along
from loopsched.models._promise_kernels import (
    ALONE,
    BITS,
    COLUMNS,
    DIM,
    END,
    FIRST,
    FIRST_DIM,
    FIRST_STEP,
    INDEXED,
    INSIDE,
    IS_CLIPPED,
    KIND,
    LEFT,
    LISTED,
    MANY,
    MOST_DIMS,
    N_DIMS,
    N_LOOPS,
    N_TENSORS,
    NEEDS,
    NO_DIM,
    NOW,
    OFFSET,
    OUTPUT,
    OWN,
    PASSES,
    PLAIN,
    ROOM,
    SECOND_DIM,
    SECOND_STEP,
    SHARED,
    SIZE,
    SIZES,
    UNIT,
    WIDTH,
    _cut,
    _fits,
    _n_stored,
    _reached,
    _whole,
)
from loopsched.models._promise_kernels import ROWS as FORMER_ROWS
from loopsched.models._replay_kernels import HEAD, OVERFLOW, TAIL, WINDOW, Memory, Tables, walk
from loopsched.models.asked import ALWAYS
from loopsched.models.buffer import PROMISE_EFFORT
from loopsched.models.cells import MOST_ENTRIES
from loopsched.models.replay import MOST_CELLS

AT_ONCE = 2**62  # steps: callers hand over few schedules at a time, to be interrupted
MOST_KNOWN = 4096
MOST_AHEAD = 31

# Rows behind those of `_promise_kernels`.  The first: how many loops are inside the item; what a
# replay says: whether there is one, and whether visits fit; the same of one depth; how many of
# the schedules to come differ in one loop only.
MORE = FORMER_ROWS
N_INNER, IS_FOUND, FITS, IS_ONE, ONE_FITS, N_AHEAD = range(6)
# A column for each loop inside the item; each tensor; each dimension; each unit inside of none.
IN_DIM, IN_EXTENT, IN_UNIT, IN_GROUP, IN_POSITION = range(MORE + 1, MORE + 6)
LOW, MOST, ONE_LOW, ONE_MOST, HIGH, HIGH_OF_LIST, OF_LIST, TOTAL, LEAST_ALONE = range(
    MORE + 6, MORE + 15
)
WHOLE_SIZES, N_KINDS, ALONE_INSIDE, KEY = range(MORE + 15, MORE + 19)
# For each dimension: lengths of lists of items, and how many are of each.
LIST_LENGTH = MORE + 19
LIST_MANY = LIST_LENGTH + MOST_DIMS + 1
# A row for each replay that is known: what was asked for, what became of it, and what it found.
KNOWN = LIST_MANY + MOST_DIMS + 1
# A row for each way to cut the steps of a replay: the number of their loop, its extent, outcome.
TRIED = KNOWN + MOST_KNOWN
# A column for each of those schedules: the dimension of the loop, its extent here and there.
AHEAD_DIM, AHEAD_FROM, AHEAD_TO = range(TRIED + MOST_AHEAD + 1, TRIED + MOST_AHEAD + 4)
ROWS = AHEAD_TO + 1
STEP_LOOP, STEP_EXTENT = 0, 1
DEPTH, POOL, KEY_SIZES, KEY_LOOPS = 0, 1, 2, 2 + MOST_DIMS
OUTCOME, KNOWN_LOW, KNOWN_MOST = 46, 47, 55
MOST_KEPT = (OUTCOME - KEY_LOOPS) // 2  # loops of a replay that is kept
TOO_MUCH, KNOWN_UNFIT, KNOWN_FITS = 1, 2, 3
ANY = -2  # a list of items, or none


# Loops inside the item -------------------------------------------------------------------------


@part
def _go_inside(w: Ints, level: int) -> bool:
    """Write down the loops inside the only item; False if there may be others."""
    n = group = 0
    for d in range(w[NOW, N_DIMS]):
        w[LEFT, d] = w[SIZES, d]
    for at in range(w[NOW, N_LOOPS]):
        d, unit = w[DIM, at], w[UNIT, at]
        if unit >= 0 and w[INSIDE + level, unit] == 0:
            return False
        if at and unit != w[UNIT, at - 1]:
            group += 1
        if w[LISTED, at] < w[LEFT, d]:
            w[LEFT, d] = w[LISTED, at]
            w[IN_DIM, n], w[IN_EXTENT, n], w[IN_UNIT, n] = d, w[LISTED, at], unit
            w[IN_GROUP, n], w[IN_POSITION, n] = group if unit >= 0 else -1, at
            n += 1
    w[MORE, N_INNER] = n
    return True


@part
def _list_segments(w: Ints, d: int, size: int, begin: int, end: int, group: int) -> int:
    """List the lengths of the pieces that some loops make of a size; returns how many lengths."""
    n = _whole(w, 0, size)
    for k in range(begin, end):
        if w[IN_DIM, k] == d and (group == ANY or w[IN_GROUP, k] == group):
            n = _cut(w, 0, n, w[IN_EXTENT, k], False)
    return n


@part
def _n_segments(w: Ints, d: int, size: int, begin: int, end: int, group: int) -> int:
    """Count those pieces."""
    n, total = _list_segments(w, d, size, begin, end, group), 0
    for i in range(n):
        total += w[MANY, i]
    return total


@part
def _n_boxes(w: Ints, depth: int) -> int:
    """Count the bodies of the item."""
    boxes = 1
    for d in range(w[NOW, N_DIMS]):
        boxes *= _n_segments(w, d, w[SIZES, d], 0, depth, ANY)
    return boxes


@part
def _may_fit(w: Ints, depth: int) -> bool:
    """Whether one body alone fits."""
    for d in range(w[NOW, N_DIMS]):
        w[LEFT, d] = w[SIZES, d]
    for k in range(depth):
        w[LEFT, w[IN_DIM, k]] = w[IN_EXTENT, k]
    for t in range(w[NOW, N_TENSORS]):
        w[NEEDS, t] = w[WIDTH, t]
        for a in range(w[FIRST, t], w[END, t]):
            first, second = w[LEFT, w[FIRST_DIM, a]], w[LEFT, w[SECOND_DIM, a]]
            w[NEEDS, t] *= first if w[KIND, a] == PLAIN else _reached(w, a, first, second)
        for a in range(w[FIRST, t], w[END, t]):
            if w[SIZE, a] > 0:  # its padding may take any part of a body away
                w[NEEDS, t] = 0
    return _fits(w)


@part
def _slides(w: Ints, d: int, pool: int) -> bool:
    """Whether a dimension moves some of the tensors that share room along an axis with another."""
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] == pool if pool < 0 else t == pool:
            for a in range(w[FIRST, t], w[END, t]):
                if d in (w[FIRST_DIM, a], w[SECOND_DIM, a]) and w[KIND, a] != PLAIN:
                    return True
    return False


@part
def _steps(w: Ints, depth: int, pool: int) -> tuple[int, int]:
    """Find loops that make steps, as `loopsched.models.replay` does: the first, and their end."""
    first, begin, end, most = 0, depth, depth, 1
    for k in range(depth):
        if w[IN_GROUP, k] >= 0:
            first = k + 1
    while first < depth:
        d, last, n_alike = w[IN_DIM, first], first, 0
        while last < depth and w[IN_DIM, last] == d:
            last += 1
        for k in range(depth):
            n_alike += w[IN_DIM, k] == d
        n_steps = -(-w[SIZES, d] // w[IN_EXTENT, last - 1])
        if n_steps > most and n_alike == last - first and not _slides(w, d, pool):
            begin, end, most = first, last, n_steps
        first = last
    return begin, end


# Cells -----------------------------------------------------------------------------------------


@part
def _moving(w: Ints, a: int) -> int:
    """Find the dimension that moves along an axis, if only one does."""
    return int(w[SECOND_DIM, a] if w[SIZES, w[SECOND_DIM, a]] > 1 else w[FIRST_DIM, a])


@part
def _is_listed(w: Ints, a: int) -> bool:
    """Whether the cells of an axis are more than the pieces of one dimension."""
    is_double = w[SIZES, w[FIRST_DIM, a]] > 1 and w[SIZES, w[SECOND_DIM, a]] > 1
    return bool(is_double or w[IS_CLIPPED, a])


@jit
def list_cells(
    first: Ints,
    second: Ints,
    c1: int,
    c2: int,
    offset: int,
    size: int,
    rows: Ints,
    columns: Ints,
    weights: Ints,
) -> int:
    """List the cells of an axis, as `loopsched.models.cells.axis_cells`, in any order.

    ``first``, ``second``: lengths of the pieces of its dimensions.  ``size``: -1 if all that is
    reached is stored.  ``weights``: of each entry of ``columns``.
    Returns how many there are; -1 if they are too many.
    """
    n1, n2 = first.sum(), second.sum()
    n_places = size if size >= 0 else c1 * (n1 - 1) + c2 * (n2 - 1) + 1
    cell = np.zeros(n_places, np.int64)
    n_owners = np.zeros(n_places, np.int64)
    seen = np.full(n_places, -1, np.int64)
    n_parts = min(n1 * n2, first.size * second.size * n_places) + 2
    parted = np.full(n_parts, -1, np.int64)  # the last row that took part of a cell
    heir = np.zeros(n_parts, np.int64)
    n_cells, n_kept = 1, 0
    for is_last in range(2):
        row = begin1 = n_listed = 0
        for k1 in range(first.size):
            begin2 = 0
            for k2 in range(second.size):
                rows[row] = n_listed
                start, n_x, n_y = offset + c1 * begin1 + c2 * begin2, first[k1], second[k2]
                if c2 == 1 and c1 > 0 and (c1 <= n_y or n_x == 1):  # an interval: each place once
                    n_x, n_y = 1, c1 * (n_x - 1) + n_y
                elif c1 == 1 and c2 > 0 and (c2 <= n_x or n_y == 1):
                    n_x, n_y = c2 * (n_y - 1) + n_x, 1
                for x in range(n_x):
                    for y in range(n_y):
                        at = start + c1 * x + c2 * y
                        if at < 0 or at >= n_places:
                            continue
                        one = cell[at]
                        if is_last:
                            if parted[one] != row:
                                parted[one] = row
                                columns[n_listed], weights[n_listed] = one, heir[one]
                                n_listed += 1
                        elif seen[at] != row:
                            seen[at] = row
                            n_owners[at] += 1
                            if parted[one] != row:
                                parted[one], heir[one] = row, n_cells
                                n_cells += 1
                            cell[at] = heir[one]
                begin2 += second[k2]
                row += 1
            begin1 += first[k1]
        rows[row] = n_listed
        if is_last:
            return int(n_kept)
        # Number the cells that are left, from 0.
        n_kept = most = n_stored = 0
        parted[:] = -1
        for at in range(n_places):
            if n_owners[at]:
                if parted[cell[at]] < 0:
                    parted[cell[at]] = n_kept
                    n_kept += 1
                cell[at] = parted[cell[at]]
                most, n_stored = max(most, n_owners[at]), n_stored + 1
        heir[:] = 0
        for at in range(n_places):
            if n_owners[at]:
                heir[cell[at]] += 1
        if n1 > 1 and n2 > 1 and max(1, most) * n_stored > MOST_ENTRIES:
            return -1
        parted[:] = -1
    return 0


# Replays ---------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """How much is walked: instances, visits, cells, boxes of cells, loops outside the steps."""

    picks: int
    visits: int
    n_cells: int
    n_boxes: int
    outside: int


class Pieces(NamedTuple):
    """Lengths of the pieces of all dimensions, and where those of each begin."""

    lengths: Ints
    firsts: Ints


@jit
def walked(
    tables: Tables, steps: Steps, shape: Shape, is_exact: bool, found: Ints, fits: Ints
) -> None:
    """Walk loops, and steps if there are any.

    For each way to cut steps, ``found``: elements of each tensor at least, probably, at most;
    ``fits``: 0 if visits do not fit.
    """
    digits = np.zeros(tables.loops.shape[0], np.int64)
    state = np.zeros(WINDOW + 2 * tables.limits.size, np.int64)
    n_done = 1 if is_exact or shape.n_boxes > MOST_CELLS else shape.n_boxes
    done = np.full(n_done, -1, np.int64)
    if steps.runs.shape[0]:
        past = Past(
            digits,
            state,
            np.full(shape.n_cells, -1, np.int64),
            np.zeros((tables.tensors.shape[0], shape.visits), np.int64),
            np.zeros((shape.visits, 2), np.int64),
            np.zeros((tables.tensors.shape[0], shape.visits), np.int64),
            done,
            found,
            fits,
        )
        walk_along(tables, steps, past, shape.picks, shape.outside, AT_ONCE)
        return
    state[HEAD] = state[TAIL] = -1
    n_kept, n_bound = (shape.n_cells, 1) if is_exact else (1, shape.n_cells)
    memory = Memory(
        digits,
        state,
        np.full((n_kept, 2), -2, np.int64),
        np.zeros(n_kept, np.int64),
        np.full(n_bound, -1, np.int64),
        np.zeros(1 if is_exact else shape.visits + 1, np.int64),
        done,
        found[0],
    )
    walk(tables, memory, shape.picks, is_exact, not is_exact, True, AT_ONCE)
    if is_exact:  # it is known which point comes first
        found[0, :, 0] = found[0, :, 1]
        found[0, :, 2] = found[0, :, 1]
    elif state[OVERFLOW] != 0:
        fits[0] = 0


@jit
def _write_loops(
    w: Ints, level: int, first: int, end: int, loops: Ints, groups: Ints
) -> tuple[int, int]:
    """Write loops and lists of items, as `Nest.program` has them; returns lists, and instances.

    Loops from ``first`` to ``end`` make steps, and are left out.
    """
    n_loops, n_groups, picks = loops.shape[0], 0, 1
    n_items, depth = np.ones(n_loops, np.int64), n_loops + end - first
    for d in range(w[NOW, N_DIMS]):
        w[LEFT, d] = w[SIZES, d]
    for i in range(n_loops):
        at = i if i < first else i + end - first
        d, extent, group = w[IN_DIM, at], w[IN_EXTENT, at], w[IN_GROUP, at]
        trips = -(-w[LEFT, d] // extent)
        w[LEFT, d] = extent
        loops[i, 0], loops[i, 1] = d, extent
        loops[i, 2] = _n_segments(w, d, extent, at + 1, depth, ANY)
        loops[i, 3], loops[i, 4] = trips, -1
        loops[i, 5] = _n_segments(w, d, extent, at + 1, depth, group)
        if group >= 0:
            if i == 0 or w[IN_GROUP, i - 1] != group:
                groups[n_groups, 0], groups[n_groups, 4] = i, 1
                groups[n_groups, 2] = w[INSIDE + level, w[IN_UNIT, i]]
                n_groups += 1
            g = n_groups - 1
            for k in range(groups[g, 0], i):
                if w[IN_DIM, k] == d:
                    groups[g, 4] = 0
            groups[g, 1] = i + 1
            n_items[g] *= trips
            loops[i, 3], loops[i, 4] = 1, g
    for g in range(n_groups - 1, -1, -1):
        groups[g, 3] = picks
        groups[g, 2] = max(1, min(groups[g, 2], n_items[g]))
        picks *= groups[g, 2]
        loops[groups[g, 0], 3] = -(-n_items[g] // groups[g, 2])  # waves
    return n_groups, picks


@jit
def _choose(w: Ints, pool: int, chosen: Ints) -> int:
    """List the tensors that share some room, inputs first; returns how many there are."""
    n = 0
    for is_output in range(2):
        for t in range(w[NOW, N_TENSORS]):
            is_in = w[OWN, t] == SHARED if pool < 0 else t == pool
            if is_in and (t == w[NOW, OUTPUT]) == (is_output == 1):
                chosen[n] = t
                n += 1
    return n


@jit
def _write_limits(w: Ints, capacity: int, chosen: Ints, limits: Ints, tensors: Ints) -> int:
    """Write what the room is less an element of each width, and which is whose; their number."""
    n_widths, limits[0] = 0, capacity
    for i in range(chosen.size):
        limit, k = capacity - w[WIDTH, chosen[i]], 1
        while k <= n_widths and limits[k] != limit:
            k += 1
        n_widths, limits[k], tensors[i, 4] = max(n_widths, k), limit, k
    return 1 + n_widths


@jit
def _list_pieces(w: Ints, d: int, depth: int, pieces: Ints) -> None:
    """List the lengths of the pieces that the first loops make of a dimension, in order."""
    at = i = 0
    while at < w[SIZES, d]:
        length, start = w[SIZES, d], at
        for k in range(depth):
            if w[IN_DIM, k] == d:
                extent = w[IN_EXTENT, k]
                length = min(extent, length - start // extent * extent)
                start %= extent
        pieces[i] = length
        at += length
        i += 1


@jit
def _write_axis(w: Ints, a: int, pieces: Pieces, tables: Tables, at: Ints) -> tuple[int, int, int]:
    """Write an axis and its cells; returns how many rows, cells, and entries of rows it has.

    ``at``: axes, dimensions of them, rows and entries written before; negative cells: too many.
    """
    firsts, d = pieces.firsts, _moving(w, a)
    rows, columns = tables.rows[at[2] :], tables.columns[at[3] :]
    weights, axis_dims = tables.weights[at[3] :], tables.axis_dims[at[1] :]
    n_rows = n_cells = n_listed = firsts[d + 1] - firsts[d]
    tables.axes[at[0], 0], tables.axes[at[0], 2] = at[1], at[2]
    axis_dims[0, 0], axis_dims[0, 1] = d, 1
    at[1] += 1
    if _is_listed(w, a):
        first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
        n_second = firsts[second + 1] - firsts[second]
        axis_dims[0, 0], axis_dims[0, 1] = first, n_second
        if second < w[NOW, N_DIMS] - 1:
            axis_dims[1, 0], axis_dims[1, 1] = second, 1
            at[1] += 1
        n_rows = (firsts[first + 1] - firsts[first]) * n_second
        n_cells = list_cells(
            pieces.lengths[firsts[first] : firsts[first + 1]],
            pieces.lengths[firsts[second] : firsts[second + 1]],
            w[FIRST_STEP, a],
            w[SECOND_STEP, a],
            w[OFFSET, a] if w[IS_CLIPPED, a] else 0,
            w[SIZE, a] if w[IS_CLIPPED, a] else -1,
            rows,
            columns,
            weights,
        )
        n_listed = rows[n_rows]
    else:
        for k in range(n_rows):
            rows[k], columns[k], weights[k] = k, k, pieces.lengths[firsts[d] + k]
        rows[n_rows] = n_rows
    for k in range(n_rows + 1):
        rows[k] += at[3]
    tables.axes[at[0], 1] = at[1]
    at[0] += 1
    at[2] += n_rows + 1
    at[3] += n_listed
    return n_rows, n_cells, n_listed


@jit
def _write_tensors(w: Ints, pieces: Pieces, chosen: Ints, tables: Tables) -> tuple[int, int, float]:
    """Write tensors, as `loopsched.models.replay` has them; returns cells, boxes, cells a body.

    Negative cells: too many.
    """
    n_cells = n_boxes = 0
    per_box = 0.0
    at = np.zeros(4, np.int64)
    for i in range(chosen.size):
        t = chosen[i]
        tables.tensors[i, 0], tables.tensors[i, 2] = at[0], w[WIDTH, t]
        tables.tensors[i, 3], tables.tensors[i, 5] = n_cells, n_boxes
        factor = boxes = 1
        of_body = 1.0
        for a in range(w[FIRST, t], w[END, t]):
            tables.axes[at[0], 3], begin = boxes, at[3]
            n_rows, of_axis, n_listed = _write_axis(w, a, pieces, tables, at)
            if of_axis < 0:
                return -1, 0, 0.0
            for k in range(begin, begin + n_listed):
                tables.columns[k] *= factor
            of_body *= n_listed / n_rows
            factor *= max(1, of_axis)
            boxes *= n_rows
        per_box += of_body
        tables.tensors[i, 1] = at[0]
        n_cells += factor
        n_boxes += boxes
    return n_cells, n_boxes, per_box


@jit
def _room_for(w: Ints, chosen: Ints, firsts: Ints) -> tuple[int, int, int]:
    """Count axes, and bound the rows and entries that they need."""
    n_axes = n_rows = n_entries = 0
    for t in chosen:
        for a in range(w[FIRST, t], w[END, t]):
            first, second, d = w[FIRST_DIM, a], w[SECOND_DIM, a], _moving(w, a)
            n_axes += 1
            n_rows += 1 + firsts[d + 1] - firsts[d]
            n_entries += firsts[d + 1] - firsts[d]
            if _is_listed(w, a):
                n_first, n_second = firsts[first + 1] - firsts[first], firsts[second + 1]
                n_rows += n_first * (n_second - firsts[second])
                n_entries += w[SIZES, first] * w[SIZES, second]
    return n_axes, n_rows, n_entries


@jit
def _list_runs(w: Ints, d: int, depth: int) -> Ints:
    """List the steps along a dimension: how many of one length in a row, and the length."""
    pieces = np.zeros(_n_segments(w, d, w[SIZES, d], 0, depth, ANY), np.int64)
    _list_pieces(w, d, depth, pieces)
    runs = np.zeros((pieces.size, 2), np.int64)
    n = 0
    for k in range(pieces.size):
        if k == 0 or pieces[k] != pieces[k - 1]:
            runs[n, 1] = pieces[k]
            n += 1
        runs[n - 1, 0] += 1
    return runs[:n]


@jit
def look_ahead(w: Ints, loops: Ints, ends: Ints, i: int) -> None:
    """List the schedules after one that are as it is but for the extent of one loop."""
    begin = ends[i - 1] if i else 0
    n = 0
    for j in range(i + 1, min(len(ends), i + 1 + MOST_AHEAD)):
        shift, other, n_others = ends[j - 1] - begin, -1, 0
        if ends[j] - ends[j - 1] != ends[i] - begin:
            continue
        for at in range(begin, ends[i]):
            if loops[at, 0] != loops[at + shift, 0] or loops[at, 2] != loops[at + shift, 2]:
                n_others = 2
            elif loops[at, 1] != loops[at + shift, 1]:
                n_others, other = n_others + 1, at
            if n_others > 1:
                break
        if n_others == 1:
            w[AHEAD_DIM, n], w[AHEAD_FROM, n] = loops[other, 0], loops[other, 1]
            w[AHEAD_TO, n] = loops[other + shift, 1]
            n += 1
    w[MORE, N_AHEAD] = n


@part
def _n_steps(w: Ints, along: int, first: int, end: int) -> int:
    """Count the steps that some loops make along a dimension."""
    steps, left = 1, w[SIZES, along]
    for k in range(first, end):
        steps *= -(-left // w[IN_EXTENT, k])
        left = w[IN_EXTENT, k]
    return int(steps)


@jit
def _list_cuts(
    w: Ints, along: int, depth: int, pool: int, first: int, most_steps: int, most_boxes: float
) -> tuple[Ints, Ints]:
    """List the steps along a dimension, then those of schedules to come; and where each end.

    Schedules that differ in the extent of the ``first`` loop only, and are replayed alike.
    """
    runs, extent, n = _list_runs(w, along, depth), w[IN_EXTENT, first], 1
    (begin, end), n_ahead = _steps(w, depth, pool), w[MORE, N_AHEAD]
    ends = np.zeros(n_ahead + 2, np.int64)
    ends[1] = runs.shape[0]
    for k in range(n_ahead):
        other, is_new = w[AHEAD_TO, k], w[AHEAD_TO, k] < w[SIZES, along]
        if w[AHEAD_DIM, k] != along or w[AHEAD_FROM, k] != extent:
            continue
        for cut in range(1, n):
            is_new = is_new and w[TRIED + cut, STEP_EXTENT] != other
        w[IN_EXTENT, first] = other
        first_step, last_step = _steps(w, depth, pool)
        is_alike = is_new and begin == first_step and end == last_step
        is_few = _n_steps(w, along, first, end) <= most_steps
        if is_alike and is_few and _n_boxes(w, depth) <= most_boxes:
            runs = np.concatenate((runs, _list_runs(w, along, depth)))
            ends[n + 1] = runs.shape[0]
            w[TRIED + n, STEP_LOOP], w[TRIED + n, STEP_EXTENT] = first, other
            n += 1
        w[IN_EXTENT, first] = extent
    return runs, ends[: n + 1]


@part
def _elems_of_items(w: Ints, t: int, depth: int, n_items: int) -> int:
    """Bound the elements of a tensor that items of a list touch, so many in a row."""
    least, stride = -1, 1
    for k in range(depth):
        stride *= -(-w[SIZES, w[IN_DIM, k]] // w[IN_EXTENT, k])
        w[LEFT, w[IN_DIM, k]] = w[SIZES, w[IN_DIM, k]]
    apart = many = 1  # regions of the first loops that there are, and are in a row
    for k in range(depth + 1):  # each region of the first loops is touched as a whole
        elems = min(apart, many)
        for a in range(w[FIRST, t], w[END, t]):
            first, second = w[LEFT, w[FIRST_DIM, a]], w[LEFT, w[SECOND_DIM, a]]
            one = first if w[KIND, a] == PLAIN else _reached(w, a, first, second)
            elems *= min(one, w[SIZE, a]) if w[SIZE, a] > 0 else one
        least = elems if least < 0 else min(least, elems)
        if k < depth:
            d, extent = w[IN_DIM, k], w[IN_EXTENT, k]
            trips = -(-w[SIZES, d] // extent)
            stride //= trips
            many = (n_items - 2) // stride + 2 if n_items > 1 else 1
            apart *= trips if w[BITS + t, d] & INDEXED else 1
            w[LEFT, d] = extent
    return int(least)


@part
def _comes_in_a_row(w: Ints, t: int, d: int, depth: int) -> bool:
    """Whether pieces of a dimension that touch an element are side by side, others being whole."""
    for a in range(w[FIRST, t], w[END, t]):
        other, step = w[SECOND_DIM, a], w[SECOND_STEP, a]
        if d == other:
            other, step = w[FIRST_DIM, a], w[FIRST_STEP, a]
        if d in (w[FIRST_DIM, a], w[SECOND_DIM, a]):
            for k in range(depth):
                if w[IN_DIM, k] == other:
                    return False
            if step > 1:
                return False
    return True


@part
def _longest_gap(w: Ints, t: int, depth: int) -> int:
    """Bound how many items of a list one that touches an element of a tensor is behind the last."""
    longest, stride, back = 0, 1, 0
    for k in range(depth - 1, -1, -1):
        d = w[IN_DIM, k]
        trips = -(-w[SIZES, d] // w[IN_EXTENT, k])
        if not w[BITS + t, d] & INDEXED:
            longest = max(longest, stride - back)
            back += (trips - 1) * stride
        elif not w[BITS + t, d] & ALONE:
            longest = max(longest, stride * (1 if _comes_in_a_row(w, t, d, depth) else trips))
        stride *= trips
    return longest


@part
def _stays_in_lists(w: Ints, depth: int, pool: int, n: int, capacity: int) -> bool:
    """Whether what waves of ``n`` items of a list touch again is certainly still there.

    That is where as many waves fit as may be from one use to the next, both held.
    """
    gap = total = 0
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] == pool if pool < 0 else t == pool:
            gap = max(gap, _longest_gap(w, t, depth))
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] == pool if pool < 0 else t == pool:
            elems = _elems_of_items(w, t, depth, n * ((gap + n - 1) // n + 1))
            total += elems * w[WIDTH, t]
    return bool(total <= capacity)


@part
def _count_once(w: Ints, pool: int) -> None:
    """Count all elements that tensors have, each brought in once."""
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] == pool if pool < 0 else t == pool:
            elems = 1
            for a in range(w[FIRST, t], w[END, t]):
                first, second = w[SIZES, w[FIRST_DIM, a]], w[SIZES, w[SECOND_DIM, a]]
                c1, c2 = w[FIRST_STEP, a], w[SECOND_STEP, a]
                if w[IS_CLIPPED, a]:
                    elems *= _n_stored(c1, c2, w[SIZE, a], w[OFFSET, a], first, second)
                else:
                    elems *= first if w[KIND, a] == PLAIN else _reached(w, a, first, second)
            w[TRIED, KNOWN_LOW + t] = w[TRIED, KNOWN_MOST + t] = elems


@part
def _replay_pool(w: Ints, level: int, depth: int, pool: int) -> int:
    """Replay tensors that share room: all that do, or one by itself.

    What became of it goes to the first of the rows `TRIED`; to more of them, what becomes of
    schedules to come.  Returns how many rows.
    """
    n_dims, is_exact = w[NOW, N_DIMS] - 1, depth == w[MORE, N_INNER]
    first = end = depth
    if not is_exact:
        first, end = _steps(w, depth, pool)
    along = w[IN_DIM, first] if first < end else NO_DIM
    n_loops = depth + first - end
    loops, groups = np.zeros((n_loops, 6), np.int64), np.zeros((n_loops, 5), np.int64)
    n_groups, picks = _write_loops(w, level, first, end, loops, groups)
    visits = 1
    for i in range(n_loops):
        visits *= loops[i, 3]
    w[TRIED, OUTCOME] = TOO_MUCH
    if _n_steps(w, along, first, end) * visits * picks > 8 * PROMISE_EFFORT:
        return 1
    every = np.zeros(w[NOW, N_TENSORS], np.int64)
    chosen = every[: _choose(w, pool, every)]
    firsts = np.zeros(n_dims + 2, np.int64)
    for d in range(n_dims + 1):
        n_cutting = 0 if d == along else depth
        firsts[d + 1] = firsts[d] + _n_segments(w, d, w[SIZES, d], 0, n_cutting, ANY)
    pieces = Pieces(np.zeros(firsts[n_dims + 1], np.int64), firsts)
    sizes = np.zeros(n_dims, np.int64)
    for d in range(n_dims + 1):
        if d == along:  # unit by unit
            pieces.lengths[firsts[d]] = 1
        else:
            _list_pieces(w, d, depth, pieces.lengths[firsts[d] : firsts[d + 1]])
        if d < n_dims:
            sizes[d] = 1 if d == along else w[SIZES, d]
    tensors, limits = np.zeros((chosen.size, 6), np.int64), np.zeros(1 + chosen.size, np.int64)
    capacity = w[NOW, ROOM] if pool < 0 else w[OWN, pool]
    n_limits = _write_limits(w, capacity, chosen, limits, tensors)
    n_axes, n_rows, n_entries = _room_for(w, chosen, firsts)
    tables = Tables(
        loops,
        groups[:n_groups],
        sizes,
        tensors,
        np.zeros((n_axes, 4), np.int64),
        np.zeros((2 * n_axes, 2), np.int64),
        np.zeros(n_rows, np.int64),
        np.zeros(n_entries, np.int64),
        np.zeros(n_entries, np.int64),
        limits[:n_limits],
    )
    n_cells, n_boxes, per_box = _write_tensors(w, pieces, chosen, tables)
    if n_cells < 0 or n_cells > MOST_CELLS or _n_boxes(w, depth) * per_box > 2 * PROMISE_EFFORT:
        return 1
    is_list = n_groups == 1 and groups[0, 0] == 0 and groups[0, 1] == depth and groups[0, 4] != 0
    if is_list and not is_exact and _stays_in_lists(w, depth, pool, picks, capacity):
        _count_once(w, pool)
        w[TRIED, OUTCOME] = KNOWN_FITS
        return 1
    is_along = np.zeros(chosen.size, np.int64)
    runs, ends = np.zeros((0, 2), np.int64), np.zeros(2, np.int64)
    if first < end:
        most_steps = 8 * PROMISE_EFFORT // (visits * picks)
        most_boxes = 2 * PROMISE_EFFORT / per_box if per_box > 0 else float(PROMISE_EFFORT)
        runs, ends = _list_cuts(w, along, depth, pool, first, most_steps, most_boxes)
        for i in range(chosen.size):
            is_along[i] = w[BITS + chosen[i], along] & INDEXED != 0
    n_cuts = ends.size - 1
    found, fits = np.zeros((n_cuts, chosen.size, 3), np.int64), np.ones(n_cuts, np.int64)
    shape = Shape(picks, visits, n_cells, n_boxes, first)
    walked(tables, Steps(runs, ends, is_along), shape, is_exact, found, fits)
    for cut in range(n_cuts):
        w[TRIED + cut, OUTCOME] = KNOWN_FITS if fits[cut] else KNOWN_UNFIT
        for i in range(chosen.size):
            w[TRIED + cut, KNOWN_LOW + chosen[i]] = found[cut, i, 0]
            w[TRIED + cut, KNOWN_MOST + chosen[i]] = found[cut, i, 2]
    return n_cuts


@part
def _run_pool(w: Ints, level: int, depth: int, pool: int) -> int:
    """Replay tensors that share room, or look up what the same loops brought in before.

    Figures go to the rows of one depth.
    """
    row = TRIED
    if depth > MOST_KEPT:
        _replay_pool(w, level, depth, pool)
    else:
        _write_key(w, depth, pool)
        row = _known_row(w, depth)
        if not _is_known(w, row, depth):
            n_cuts = _replay_pool(w, level, depth, pool)
            for cut in range(n_cuts - 1, -1, -1):
                _keep(w, depth, cut)
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] == pool if pool < 0 else t == pool:
            w[ONE_LOW, t], w[ONE_MOST, t] = w[row, KNOWN_LOW + t], w[row, KNOWN_MOST + t]
    return int(w[row, OUTCOME])


@part
def _write_key(w: Ints, depth: int, pool: int) -> None:
    """Write what a replay depends on: the loops that it goes through."""
    n_groups, group = 0, -1
    w[KEY, DEPTH] = 2 * depth + 2 + (1 if depth == w[MORE, N_INNER] else 0)
    w[KEY, POOL] = pool
    for d in range(w[NOW, N_DIMS] - 1):
        w[KEY, KEY_SIZES + d] = w[SIZES, d]
    for k in range(depth):
        number = 0
        if w[IN_GROUP, k] >= 0:
            if w[IN_GROUP, k] != group:
                n_groups += 1
            number = n_groups
        group = w[IN_GROUP, k]
        word = (number * (COLUMNS + 1) + w[IN_UNIT, k] + 1) * (MOST_DIMS + 1) + w[IN_DIM, k]
        w[KEY, KEY_LOOPS + 2 * k], w[KEY, KEY_LOOPS + 2 * k + 1] = word, w[IN_EXTENT, k]


@part
def _known_row(w: Ints, depth: int) -> int:
    """Find the row in which what is asked for is kept, if it is."""
    place = 0
    for k in range(KEY_LOOPS + 2 * depth):
        place = (place * 31 + w[KEY, k]) % 2147483647
    return int(KNOWN + place % MOST_KNOWN)


@part
def _is_known(w: Ints, row: int, depth: int) -> bool:
    is_known = True
    for k in range(KEY_LOOPS + 2 * depth):
        is_known = is_known and w[row, k] == w[KEY, k]
    return is_known


@part
def _keep(w: Ints, depth: int, cut: int) -> None:
    """Keep what becomes of a way to cut steps."""
    at = KEY_LOOPS + 2 * w[TRIED + cut, STEP_LOOP] + 1
    own = w[KEY, at]
    if cut:
        w[KEY, at] = w[TRIED + cut, STEP_EXTENT]
    row = _known_row(w, depth)
    for k in range(KEY_LOOPS + 2 * depth):
        w[row, k] = w[KEY, k]
    w[row, OUTCOME] = w[TRIED + cut, OUTCOME]
    for t in range(w[NOW, N_TENSORS]):
        w[row, KNOWN_LOW + t] = w[TRIED + cut, KNOWN_LOW + t]
        w[row, KNOWN_MOST + t] = w[TRIED + cut, KNOWN_MOST + t]
    w[KEY, at] = own


@part
def _replay_at(w: Ints, level: int, depth: int) -> bool:
    """Replay the item, taken apart to one depth; False if that takes too much."""
    w[MORE, ONE_FITS] = 1
    has_shared = False
    for t in range(w[NOW, N_TENSORS]):
        has_shared = has_shared or w[OWN, t] == SHARED
    for pool in range(-1, w[NOW, N_TENSORS]):
        if (pool < 0 and has_shared) or (pool >= 0 and w[OWN, pool] >= 0):
            outcome = _run_pool(w, level, depth, pool)
            if outcome == TOO_MUCH:
                return False
            if outcome == KNOWN_UNFIT:
                w[MORE, ONE_FITS] = 0
    return True


@part
def _join(w: Ints) -> None:
    """Join what one depth says with what those before it did."""
    for t in range(w[NOW, N_TENSORS]):
        if not w[MORE, IS_FOUND]:
            w[LOW, t], w[MOST, t] = w[ONE_LOW, t], w[ONE_MOST, t]
            continue
        w[LOW, t] = max(w[LOW, t], w[ONE_LOW, t])
        if w[MORE, ONE_FITS] and w[MORE, FITS]:
            w[MOST, t] = min(w[MOST, t], w[ONE_MOST, t])
        elif w[MORE, ONE_FITS] or not w[MORE, FITS]:
            w[MOST, t] = w[ONE_MOST, t]
    if not w[MORE, IS_FOUND]:
        w[MORE, FITS] = 0
    w[MORE, FITS] = max(w[MORE, FITS], w[MORE, ONE_FITS])
    w[MORE, IS_FOUND] = 1


@part
def _replay(w: Ints, level: int, enough: int, limit: int) -> None:
    """Replay as deeply as the effort allows; ``enough``: row of what need not be undercut."""
    n_tensors, n_loops, spent = w[NOW, N_TENSORS], w[MORE, N_INNER], 0
    w[MORE, IS_FOUND] = 0
    for depth in range(n_loops + 1):
        is_point = depth == n_loops
        is_list = 0 < depth < n_loops and w[IN_GROUP, depth] >= 0
        if is_list and w[IN_GROUP, depth] == w[IN_GROUP, depth - 1]:
            continue
        if limit < ALWAYS and depth and (is_point or w[IN_POSITION, depth - 1] >= limit):
            return
        if not is_point and not _may_fit(w, depth):
            continue
        cost = _n_boxes(w, depth) * n_tensors
        if cost > PROMISE_EFFORT:
            return
        if w[MORE, IS_FOUND] and cost < 2 * spent and not is_point:
            continue  # hardly finer than the last
        if not _replay_at(w, level, depth):
            return
        spent = cost
        _join(w)
        is_settled = w[MORE, FITS] != 0  # no deeper body says more of any tensor
        for t in range(n_tensors):
            if w[OWN, t] != PASSES:
                is_closed = w[LOW, t] == w[MOST, t]
                is_settled = is_settled and (is_closed or w[MOST, t] <= w[enough, t])
        if is_settled:
            return
