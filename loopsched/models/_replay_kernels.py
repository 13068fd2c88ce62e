"""The compiled walk behind `loopsched.models.replay`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopsched.base.jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

# Members of the state that a walk leaves behind, so that it can be taken up again.
HEAD, TAIL, USED, VISIT, OVERFLOW, FINISHED, WINDOW = 0, 1, 2, 3, 4, 5, 6


@jit
def n_pieces(loops: Ints, first: int, end: int, dim: int, length: int) -> int:
    """Count the pieces that some loops of a list make of a length of a dimension."""
    pieces = 0
    for k in range(first, end):
        if loops[k, 0] == dim:
            pieces += length // loops[k, 1] * loops[k, 5]
            length %= loops[k, 1]
    return pieces + (1 if length > 0 else 0)


@jit
def n_items(loops: Ints, first: int, end: int, lengths: Ints) -> int:
    """Count the items that some loops of a list make of a region."""
    items = 1
    for dim in range(lengths.size):
        items *= n_pieces(loops, first, end, dim, lengths[dim])
    return items


@jit
def locate(
    loops: Ints,
    groups: Ints,
    digits: Ints,
    pick: int,
    begin: int,
    stop: int,
    piece: Ints,
    length: Ints,
) -> bool:
    """Go into the pieces that one instance works on at one step, by some of the loops.

    ``pick`` numbers the instance of every group of these loops and of those
    inside, the outermost group's slowest.  ``piece`` and ``length`` are where
    the loops begin.  Returns whether there is such a piece.
    """
    left = pick
    i = begin
    while i < stop:
        group = loops[i, 4]
        if group < 0:
            dim, extent = loops[i, 0], loops[i, 1]
            digit = digits[i]
            length[dim] = min(extent, length[dim] - digit * extent)
            if length[dim] <= 0:
                return False
            piece[dim] += digit * loops[i, 2]
            i += 1
            continue
        first, end, n, inside = (
            groups[group, 0],
            groups[group, 1],
            groups[group, 2],
            groups[group, 3],
        )
        number = digits[i] * n + left // inside
        left %= inside
        items = n_items(loops, first, end, length)
        if number >= items:
            return False  # items of a list that its region clips are fewer
        inside_one = items if groups[group, 4] else 0
        for k in range(first, end):
            dim, extent = loops[k, 0], loops[k, 1]
            whole = length[dim]
            if inside_one:  # each dimension has one loop: the others' trips do not change
                inside_one //= (whole + extent - 1) // extent
                digit = number // inside_one
                number -= digit * inside_one
            else:
                length[dim] = min(extent, whole)
                others = n_items(loops, k + 1, end, length)  # of all iterations but the last
                digit = number // others
                number -= digit * others
            length[dim] = min(extent, whole - digit * extent)
            piece[dim] += digit * loops[k, 2]
        i = end
    return True


@jit
def step_on(loops: Ints, digits: Ints) -> int:
    """Go to the next step of the nest; return which loop went on, -1 if none could."""
    i = loops.shape[0] - 1
    while i >= 0:
        digits[i] += 1
        if digits[i] < loops[i, 3]:
            return int(i)
        digits[i] = 0
        i -= 1
    return -1


@jit
def touch(cell: int, size: int, capacity: int, sizes: Ints, links: Ints, state: Ints) -> bool:
    """Use a cell of an LRU cache; return whether it was there."""
    before, after = links[cell, 0], links[cell, 1]
    is_held = bool(before != -2)
    if state[HEAD] == cell:
        return True
    if is_held:
        links[before, 1] = after
        if after >= 0:
            links[after, 0] = before
        else:
            state[TAIL] = before
    else:
        sizes[cell] = size
        state[USED] += size
    head = state[HEAD]
    links[cell, 0] = -1
    links[cell, 1] = head
    if head >= 0:
        links[head, 0] = cell
    else:
        state[TAIL] = cell
    state[HEAD] = cell
    while state[USED] > capacity and state[TAIL] >= 0:
        last = state[TAIL]
        state[USED] -= sizes[last]
        state[TAIL] = links[last, 0]
        links[last, 0] = -2
        if state[TAIL] >= 0:
            links[state[TAIL], 1] = -1
        else:
            state[HEAD] = -1
    return is_held


@jit
def add_rows(axes: Ints, axis_dims: Ints, piece: Ints, found: Ints) -> None:
    """Add to the row of each axis what pieces of its dimensions are worth."""
    for axis in range(axes.shape[0]):
        for d in range(axes[axis, 0], axes[axis, 1]):
            found[axis] += piece[axis_dims[d, 0]] * axis_dims[d, 1]


@jit
def walk(
    loops: Ints,
    groups: Ints,
    picks: int,
    sizes: Ints,
    tensors: Ints,
    axes: Ints,
    axis_dims: Ints,
    rows: Ints,
    columns: Ints,
    weights: Ints,
    capacity: int,
    has_point: bool,
    has_bounds: bool,
    limits: Ints,
    digits: Ints,
    state: Ints,
    links: Ints,
    cell_sizes: Ints,
    last: Ints,
    at: Ints,
    done: Ints,
    found: Ints,
    most: int,
) -> None:
    """Visit bodies in order; count what is fetched, at least, in an LRU cache, and at most.

    ``loops``: dimension, extent, pieces in a full child, trips, group (-1: none),
    pieces that its list makes of a full child.
    ``groups``: first loop, end, instances, instances of the groups inside, whether no
    dimension comes twice.
    ``tensors``: first axis, end, bytes an element, first cell, number of its window, first box.
    ``axes``: first of its dims, end, first row, factor of its cells, first weight, factor of boxes.
    ``axis_dims``: dimension, factor of its pieces.
    ``done``: the last visit that took each box of cells; no other says more to bounds.
    ``state``: see the constants above; then start and bytes of each window, where
    window 0 is as long as whole visits fit, and window k+1 as ``limits[k+1]`` says.
    """
    n_dims, n_loops = sizes.size, loops.shape[0]
    piece = np.zeros(n_dims, np.int64)
    length = np.zeros(n_dims, np.int64)
    offset = np.zeros(n_dims, np.int64)
    row = np.zeros(axes.shape[0], np.int64)
    inner_rows = np.zeros(axes.shape[0], np.int64)
    most_axes = 1
    for t in range(tensors.shape[0]):
        most_axes = max(most_axes, tensors[t, 1] - tensors[t, 0])
    begin = np.zeros(most_axes, np.int64)
    end = np.zeros(most_axes, np.int64)
    now = np.zeros(most_axes, np.int64)
    several = np.zeros(most_axes, np.int64)
    fresh = np.zeros((256, 4), np.int64)
    n_limits = limits.size
    # What the outermost list makes of a wave stays while the loops inside go on.
    inside = groups[0, 1] if groups.shape[0] else 0
    n_inner = groups[0, 3] if groups.shape[0] else 1
    n_outer = picks // n_inner
    outer_pieces = np.zeros((n_outer, n_dims), np.int64)
    outer_lengths = np.zeros((n_outer, n_dims), np.int64)
    outer_rows = np.zeros((n_outer, axes.shape[0]), np.int64)
    is_there = np.zeros(n_outer, np.bool_)
    has_lists_inside = groups.shape[0] > 1
    is_once = done.size > 1
    went_on = -1
    for _ in range(most):
        visit = state[VISIT]
        n_fresh = 0
        if went_on < inside:
            for outer in range(n_outer):
                outer_pieces[outer] = 0
                outer_lengths[outer] = sizes
                is_there[outer] = locate(
                    loops,
                    groups,
                    digits,
                    outer * n_inner,
                    0,
                    inside,
                    outer_pieces[outer],
                    outer_lengths[outer],
                )
                outer_rows[outer] = axes[:, 2]
                add_rows(axes, axis_dims, outer_pieces[outer], outer_rows[outer])
        is_step = True
        if not has_lists_inside:  # then all instances are as far inside their items
            piece[:] = 0
            offset[:] = 0
            length[:] = sizes
            for i in range(inside, n_loops):
                dim = loops[i, 0]
                offset[dim] += digits[i] * loops[i, 1]
                piece[dim] += digits[i] * loops[i, 2]
                is_step = is_step and offset[dim] < length[dim]
                length[dim] = min(length[dim], offset[dim] + loops[i, 1])
            inner_rows[:] = 0
            add_rows(axes, axis_dims, piece, inner_rows)
        for pick in range(picks):
            outer = pick // n_inner
            is_working = is_step and is_there[outer]
            if is_working and has_lists_inside:
                for dim in range(n_dims):
                    piece[dim] = outer_pieces[outer, dim]
                    length[dim] = outer_lengths[outer, dim]
                is_working = locate(
                    loops, groups, digits, pick % n_inner, inside, n_loops, piece, length
                )
                row[:] = axes[:, 2]
                add_rows(axes, axis_dims, piece, row)
            elif is_working:
                for dim in range(n_dims):
                    if offset[dim] >= outer_lengths[outer, dim]:
                        is_working = False
                for axis in range(row.size):
                    row[axis] = outer_rows[outer, axis] + inner_rows[axis]
            if not is_working:
                continue
            for t in range(tensors.shape[0]):
                first_axis = tensors[t, 0]
                n_axes = tensors[t, 1] - first_axis
                if is_once:
                    box = tensors[t, 5]
                    for axis in range(first_axis, first_axis + n_axes):
                        box += (row[axis] - axes[axis, 2]) * axes[axis, 5]
                    if done[box] == visit:
                        continue
                    done[box] = visit
                is_empty = False
                n_several = 0  # axes with several cells; what the others are worth is common
                first_cell, first_elems = tensors[t, 3], 1
                for k in range(n_axes):
                    axis = first_axis + k
                    place = row[axis]
                    low, high = rows[place], rows[place + 1]
                    is_empty = is_empty or low == high
                    if high == low + 1:
                        column = columns[low]
                        first_cell += column * axes[axis, 3]
                        first_elems *= weights[axes[axis, 4] + column]
                    else:
                        begin[n_several], end[n_several], now[n_several] = low, high, low
                        several[n_several] = axis
                        n_several += 1
                if is_empty:
                    continue
                while True:
                    cell, elems = first_cell, first_elems
                    for k in range(n_several):
                        column = columns[now[k]]
                        axis = several[k]
                        cell += column * axes[axis, 3]
                        elems *= weights[axes[axis, 4] + column]
                    size = elems * tensors[t, 2]
                    if has_point and not touch(cell, size, capacity, cell_sizes, links, state):
                        found[t, 1] += elems
                    if has_bounds:
                        before = last[cell]
                        if before != visit:  # else another instance brought it in
                            if before >= 0:
                                at[before] -= size
                            at[visit] += size
                            last[cell] = visit
                            for k in range(n_limits):
                                if before < state[WINDOW + 2 * k]:
                                    state[WINDOW + 2 * k + 1] += size
                            if n_fresh == fresh.shape[0]:
                                grown = np.zeros((2 * n_fresh, 4), np.int64)
                                grown[:n_fresh] = fresh
                                fresh = grown
                            fresh[n_fresh, 0] = t
                            fresh[n_fresh, 1] = elems
                            fresh[n_fresh, 2] = before
                            # Certainly gone, if what whole visits touched since is too much.
                            start = state[WINDOW + 2 * tensors[t, 4]]
                            fresh[n_fresh, 3] = 1 if before < 0 or before + 1 < start else 0
                            n_fresh += 1
                    k = n_several - 1
                    while k >= 0:
                        now[k] += 1
                        if now[k] < end[k]:
                            break
                        now[k] = begin[k]
                        k -= 1
                    if k < 0:
                        break
        if has_bounds:
            if at[visit] > capacity:
                state[OVERFLOW] = 1
            for k in range(n_limits):
                start, held = state[WINDOW + 2 * k], state[WINDOW + 2 * k + 1]
                while start <= visit and held > limits[k]:
                    held -= at[start]
                    start += 1
                state[WINDOW + 2 * k], state[WINDOW + 2 * k + 1] = start, held
            for f in range(n_fresh):
                t, elems, before = fresh[f, 0], fresh[f, 1], fresh[f, 2]
                if fresh[f, 3] == 1:
                    found[t, 0] += elems
                if before < 0 or before < state[WINDOW]:
                    found[t, 2] += elems
            state[VISIT] += 1
        went_on = step_on(loops, digits)
        if went_on < 0:
            state[FINISHED] = 1
            return
