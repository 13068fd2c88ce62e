"""The compiled walk behind `loopsched.models.replay`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit, leaf

# Members of the state that a walk leaves behind, so that it can be taken up again.
HEAD, TAIL, USED, VISIT, WAVE, OVERFLOW, FINISHED, WINDOW = range(8)


class Tables(NamedTuple):
    """What is walked: loops, lists of items, and the tensors that share some room.

    ``loops``: dimension, extent, pieces in a full child, trips, group (-1: none),
    pieces that its list makes of a full child.
    ``groups``: first loop, end, instances, instances of the groups inside, whether no
    dimension comes twice.
    ``sizes``: of the dimensions.
    ``tensors``: first axis, end, bytes an element, first cell, number of its window, first box.
    ``axes``: first of its dims, end, first row, factor of boxes.
    ``axis_dims``: dimension, factor of its pieces.
    ``rows``: where the entries of each begin.
    ``columns``, ``weights``: what each entry of a row adds to the cell's number, and its elements.
    ``limits``: bytes of the room, then what they are less an element of each width.
    """

    loops: Ints
    groups: Ints
    sizes: Ints
    tensors: Ints
    axes: Ints
    axis_dims: Ints
    rows: Ints
    columns: Ints
    weights: Ints
    limits: Ints


class Memory(NamedTuple):
    """What a walk leaves behind, so that it can be taken up again.

    ``state``: see the constants above; then start and bytes of each window, where
    window 0 is as long as whole visits fit, and window k+1 as ``limits[k+1]`` says.
    ``links``, ``cell_sizes``: of an LRU cache.  ``last``, ``at``: the last visit of each cell,
    and bytes last touched at each visit.
    ``done``: for each box of cells, wave * picks + pick of the last that a wave's item began
    at; of equal ones as long, no other says more to bounds.
    ``found``: elements of each tensor that are fetched at least, in an LRU cache, at most.
    """

    digits: Ints
    state: Ints
    links: Ints
    cell_sizes: Ints
    last: Ints
    at: Ints
    done: Ints
    found: Ints


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
    i: int,
    stop: int,
    piece: Ints,
    length: Ints,
) -> bool:
    """Go into the pieces that one instance works on at one step, by loops from ``i`` to ``stop``.

    ``pick`` numbers the instance of every group of these loops, the outermost
    group's slowest.  ``piece`` and ``length`` are where the loops begin.
    Returns whether there is such a piece.
    """
    left = pick
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
        if groups[group, 4]:  # each dimension has one loop: the others' trips do not change
            for k in range(end - 1, first - 1, -1):
                dim, extent = loops[k, 0], loops[k, 1]
                trips = (length[dim] + extent - 1) // extent
                digit = number % trips
                number //= trips
                length[dim] = min(extent, length[dim] - digit * extent)
                piece[dim] += digit * loops[k, 2]
            if number > 0:
                return False  # items of a list that its region clips are fewer
            i = end
            continue
        if number >= n_items(loops, first, end, length):
            return False
        for k in range(first, end):
            dim, extent = loops[k, 0], loops[k, 1]
            whole = length[dim]
            length[dim] = min(extent, whole)
            others = n_items(loops, k + 1, end, length)  # of all iterations but the last
            digit = number // others
            number -= digit * others
            length[dim] = min(extent, whole - digit * extent)
            piece[dim] += digit * loops[k, 2]
        i = end
    return True


@leaf
def step_on(loops: Ints, digits: Ints, ended: int) -> int:
    """Go to the next step of the nest; return which loop went on, -1 if none could.

    From loop ``ended`` inward there are no more steps in the iterations around them.
    """
    digits[ended:] = 0
    i = ended - 1
    while i >= 0:
        digits[i] += 1
        if digits[i] < loops[i, 3]:
            return int(i)
        digits[i] = 0
        i -= 1
    return -1


@leaf
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


@leaf
def shorter_in(lengths: Ints, pick: int, longest: Ints) -> int:
    """Give a bit for each dimension in which an instance's item is shorter than the longest."""
    found = 0
    for dim in range(longest.size):
        found |= (lengths[pick, dim] < longest[dim]) << dim
    return found


@leaf
def begun_in(offset: Ints) -> int:
    """Give a bit for each dimension in which an offset is not the first."""
    found = 0
    for dim in range(offset.size):
        found |= (offset[dim] > 0) << dim
    return found


@leaf
def begin(
    loops: Ints,
    digits: Ints,
    first: int,
    end: int,
    longest: Ints,
    piece: Ints,
    offset: Ints,
    reach: Ints,
) -> int:
    """Find where a point of some loops begins in an item, and which piece of its cells that is.

    Returns the first loop that begins behind the end of the longest item, ``end`` if none does.
    """
    for dim in range(longest.size):
        piece[dim], offset[dim], reach[dim] = 0, 0, longest[dim]
    for i in range(first, end):
        dim = loops[i, 0]
        offset[dim] += digits[i] * loops[i, 1]
        piece[dim] += digits[i] * loops[i, 2]
        if offset[dim] >= reach[dim]:
            end = i
            break
        reach[dim] = min(reach[dim], offset[dim] + loops[i, 1])
    return end


@leaf
def works(lengths: Ints, pick: int, offset: Ints) -> bool:
    """Whether an instance's item goes on beyond an offset."""
    dim = 0
    while dim < offset.size and offset[dim] < lengths[pick, dim]:
        dim += 1
    return bool(dim == offset.size)


@leaf
def goes_on(several: Ints, n: int) -> bool:
    """Go to the next entries, the last of some axes fastest; False after the last ones."""
    k = n - 1
    while k >= 0:
        several[2, k] += 1
        if several[2, k] < several[1, k]:
            return True
        several[2, k] = several[0, k]
        k -= 1
    return False


@leaf
def enter(
    tensors: Ints,
    rows: Ints,
    columns: Ints,
    weights: Ints,
    t: int,
    outer: Ints,
    pick: int,
    inner: Ints,
    several: Ints,
) -> tuple[int, int, int, int, int]:
    """Find the cells of a body of a tensor: an entry of each of its axes.

    ``outer``, ``inner``: what gives the row of an axis, together.  ``several``: first entries
    of axes that have several, their ends, and the first ones again.
    Returns the cell and the elements that axes of one entry make; how many of the others are
    around the innermost one, -1 if there is none; its first entry and its end.
    """
    cell, elems, n, low, high = tensors[t, 3], 1, -1, 0, 1
    for axis in range(tensors[t, 0], tensors[t, 1]):
        place = outer[pick, axis] + inner[axis]
        first, end = rows[place], rows[place + 1]
        if end == first + 1:  # what it is worth is common
            cell += columns[first]
            elems *= weights[first]
            continue
        if n >= 0:
            several[0, n], several[1, n], several[2, n] = low, high, low
        n, low, high = n + 1, first, end
        if first == end:
            return cell, elems, 0, first, end
    return cell, elems, n, low, high


@leaf
def row_of(
    columns: Ints, weights: Ints, several: Ints, n: int, cell: int, elems: int
) -> tuple[int, int]:
    """Add to a cell and its elements what the entries of so many axes around a row are worth."""
    for k in range(n):
        cell += columns[several[2, k]]
        elems *= weights[several[2, k]]
    return cell, elems


@leaf
def find_longest(lengths: Ints, there: Ints, n_there: int, longest: Ints) -> None:
    """Find the longest item of a wave in each dimension."""
    longest[:] = 0
    for i in range(n_there):
        for dim in range(longest.size):
            longest[dim] = max(longest[dim], lengths[there[i], dim])


@leaf
def add_rows(axes: Ints, axis_dims: Ints, piece: Ints, found: Ints) -> None:
    """Add to the row of each axis what pieces of its dimensions are worth."""
    for axis in range(axes.shape[0]):
        for d in range(axes[axis, 0], axes[axis, 1]):
            found[axis] += piece[axis_dims[d, 0]] * axis_dims[d, 1]


@leaf
def count_up(loops: Ints, first: int, end: int, counts: Ints, trips: Ints, more: int) -> None:
    """Go on in a list of items by some, the innermost loop's iterations fastest."""
    for k in range(end - 1, first - 1, -1):
        counts[k] += more
        if counts[k] < trips[k] or k == first:
            return
        more = counts[k] // trips[k]
        counts[k] -= more * trips[k]


@jit
def take(tables: Tables, digits: Ints, inside: int, lengths: Ints, rows: Ints, there: Ints) -> int:
    """Find what each instance works on in a wave; list those that have an item, and count them.

    ``inside``: loops outside of what the wave's items are taken apart by.
    ``lengths``, ``rows``: for each instance, of each dimension and each axis.
    """
    loops, groups, sizes, axes, n_there = tables.loops, tables.groups, tables.sizes, tables.axes, 0
    places, lists = np.zeros((3, sizes.size), np.int64), np.ones((2, loops.shape[0]), np.int64)
    piece, begun, length = places[0], places[1], places[2]
    counts, trips, first, stop = lists[0], lists[1], 0, 0
    for dim in range(sizes.size):
        length[dim] = sizes[dim]
    # The items of a list, if there is but one that has no dimension twice, are counted through.
    if groups.shape[0] == 1 and groups[0, 4] and groups[0, 1] <= inside:
        if not locate(loops, groups, digits, 0, 0, groups[0, 0], begun, length):
            return 0
        first, stop = groups[0, 0], groups[0, 1]
    # What an iteration of each of its loops adds to the rows; behind them, where it begins.
    steps = np.zeros((stop - first + 1, axes.shape[0]), np.int64)
    for k in range(first, stop):
        piece[loops[k, 0]] = loops[k, 2]
        add_rows(axes, tables.axis_dims, piece, steps[k - first])
        piece[loops[k, 0]], counts[k] = 0, 0
        trips[k] = -(-length[loops[k, 0]] // loops[k, 1])
    for axis in range(axes.shape[0]):
        steps[stop - first, axis] = axes[axis, 2]
    add_rows(axes, tables.axis_dims, begun, steps[stop - first])
    if stop:
        count_up(loops, first, stop, counts, trips, digits[first] * groups[0, 2])
    for pick in range(there.size):
        for dim in range(sizes.size):
            lengths[pick, dim] = length[dim]
        for axis in range(axes.shape[0]):
            rows[pick, axis] = steps[stop - first, axis]
        is_there = True
        for k in range(first, stop):
            dim, extent = loops[k, 0], loops[k, 1]
            lengths[pick, dim] = min(extent, length[dim] - counts[k] * extent)
            is_there = is_there and lengths[pick, dim] > 0
            for axis in range(axes.shape[0]):
                rows[pick, axis] += counts[k] * steps[k - first, axis]
        if stop:
            count_up(loops, first, stop, counts, trips, 1)
        is_listed = is_there
        if is_there and stop < inside:
            piece[:] = 0
            is_there = locate(loops, groups, digits, pick, stop, inside, piece, lengths[pick])
            is_listed = is_there or groups.shape[0] != 1 or groups[0, 1] < inside
            add_rows(axes, tables.axis_dims, piece, rows[pick])
        if is_there:
            there[n_there] = pick
            n_there += 1
        elif not is_listed:
            break  # those that come later in the list are not there either
    return n_there


@leaf
def is_alike(
    tensors: Ints,
    axes: Ints,
    lengths: Ints,
    rows: Ints,
    done: Ints,
    t: int,
    pick: int,
    stamp: int,
) -> bool:
    """Whether an instance before this one began at the same box of a tensor, and is as long."""
    box = tensors[t, 5]
    for axis in range(tensors[t, 0], tensors[t, 1]):
        box += (rows[pick, axis] - axes[axis, 2]) * axes[axis, 3]
    alike = done[box] - stamp
    done[box] = stamp + pick
    is_one = alike >= 0
    for dim in range(lengths.shape[1]):
        is_one = is_one and lengths[alike, dim] == lengths[pick, dim]
    return bool(is_one)


@jit
def settle(tensors: Ints, limits: Ints, state: Ints, at: Ints, found: Ints, touched: Ints) -> bool:
    """Count what a visit brings in, and move the windows on; whether the visit fits.

    ``touched``: tensors, elements, and the last visit before that touched them.
    """
    visit, whole, anew = state[VISIT], state[WINDOW], 0
    at[visit] = 0
    for i in range(touched.shape[0]):
        t, elems, before = touched[i, 0], touched[i, 1], touched[i, 2]
        size = elems * tensors[t, 2]
        at[visit] += size
        if before >= 0:
            at[before] -= size
        # Certainly gone, if what whole visits touched since is too much.
        if before < 0 or before + 1 < state[WINDOW + 2 * tensors[t, 4]]:
            found[t, 0] += elems
        if before < whole:
            anew += size
            found[t, 2] += elems
        for k in range(1, limits.size):
            if whole <= before < state[WINDOW + 2 * k]:
                state[WINDOW + 2 * k + 1] += size
    for k in range(limits.size):
        start, held = state[WINDOW + 2 * k], state[WINDOW + 2 * k + 1] + anew
        while start <= visit and held > limits[k]:
            held -= at[start]
            start += 1
        state[WINDOW + 2 * k], state[WINDOW + 2 * k + 1] = start, held
    if state[WINDOW] > whole:  # the window that whole visits fit may yet end after it
        for i in range(touched.shape[0]):
            if whole <= touched[i, 2] < state[WINDOW]:
                found[touched[i, 0], 2] += touched[i, 1]
    return bool(at[visit] <= limits[0])


@jit
def walk(
    tables: Tables,
    memory: Memory,
    picks: int,
    has_point: bool,
    has_bounds: bool,
    stops: bool,
    most: int,
) -> None:
    """Visit bodies in order; count what is fetched, at least, in an LRU cache, and at most.

    With ``stops``, the first visit that does not fit is the last.
    """
    loops, groups, sizes, tensors = tables.loops, tables.groups, tables.sizes, tables.tensors
    axes, axis_dims, rows, columns = tables.axes, tables.axis_dims, tables.rows, tables.columns
    weights, limits, digits, state = tables.weights, tables.limits, memory.digits, memory.state
    links, cell_sizes, last, at = memory.links, memory.cell_sizes, memory.last, memory.at
    done, found, capacity = memory.done, memory.found, limits[0]
    n_dims, n_loops, n_tensors = sizes.size, loops.shape[0], tensors.shape[0]
    piece = np.zeros(n_dims, np.int64)
    reach = np.zeros(n_dims, np.int64)
    offset = np.zeros(n_dims, np.int64)
    inner_rows = np.zeros(axes.shape[0], np.int64)
    several = np.zeros((3, axes.shape[0]), np.int64)
    kept = np.empty((last.size, 3), np.int64)  # a visit brings no cell in twice
    # What lists make of a wave stays while the loops inside all of them go on.
    inside = groups[groups.shape[0] - 1, 1] if groups.shape[0] else 0
    outer_lengths = np.zeros((picks, n_dims), np.int64)
    longest = np.zeros(n_dims, np.int64)
    outer_rows = np.zeros((picks, axes.shape[0]), np.int64)
    there = np.zeros(picks, np.int64)
    asking = np.zeros((picks * tensors.shape[0], 3), np.int64)
    n_asking = 0
    is_once = done.size > 1
    went_on = -1
    for _ in range(most):
        visit = state[VISIT]
        n_kept = of = -1
        if went_on < inside:
            n_asking = 0
            state[WAVE] += 1
            stamp = state[WAVE] * picks
            n_there = take(tables, digits, inside, outer_lengths, outer_rows, there)
            find_longest(outer_lengths, there, n_there, longest)
            for i in range(n_there * n_tensors):
                t, place = i // n_there, i % n_there
                if has_point:  # an LRU cache is told of each instance in turn
                    place, t = i // n_tensors, i % n_tensors
                pick = there[place]
                if is_once and is_alike(
                    tensors, axes, outer_lengths, outer_rows, done, t, pick, stamp
                ):
                    continue
                asking[n_asking, 0], asking[n_asking, 1] = pick, t
                n_asking += 1
            for asked in range(n_asking):
                asking[asked, 2] = shorter_in(outer_lengths, asking[asked, 0], longest)
        ended = n_loops
        if not n_asking:  # nor has a list more waves after an empty one
            ended = groups[0, 0] if groups.shape[0] == 1 else inside
        ended = begin(loops, digits, inside, ended, longest, piece, offset, reach)
        if ended == n_loops:
            inner_rows[:] = 0
            add_rows(axes, axis_dims, piece, inner_rows)
            begun = begun_in(offset)
            for asked in range(n_asking):
                pick, t = asking[asked, 0], asking[asked, 1]
                # Items that are not short are as long as any.
                if asking[asked, 2] & begun and not works(outer_lengths, pick, offset):
                    continue
                if t != of:
                    of, one = t, visit
                first_cell, first_elems, n_around, low, high = enter(
                    tensors, rows, columns, weights, t, outer_rows, pick, inner_rows, several
                )
                while True:
                    row_cell, row_elems = row_of(
                        columns, weights, several, n_around, first_cell, first_elems
                    )
                    # Numbers without sign are taken as they are; others may count from the end.
                    for entry in range(np.uint64(low), np.uint64(high)):
                        cell, elems = row_cell, row_elems
                        if n_around >= 0:
                            cell += columns[entry]
                            elems *= weights[entry]
                        if has_point:
                            size = elems * tensors[t, 2]
                            if not touch(cell, size, capacity, cell_sizes, links, state):
                                found[t, 1] += elems
                        before = last[np.uint64(cell)] if has_bounds else visit
                        if before == visit:  # or another instance brought it in
                            continue
                        last[np.uint64(cell)] = visit
                        if before != one:
                            one, n_kept = before, n_kept + 1
                            kept[n_kept, 0], kept[n_kept, 1], kept[n_kept, 2] = t, 0, before
                        kept[n_kept, 1] += elems
                    if n_around <= 0 or not goes_on(several, n_around):
                        break
        if has_bounds and ended == n_loops:
            if not settle(tensors, limits, state, at, found, kept[: n_kept + 1]):
                state[OVERFLOW] = 1
                if stops:
                    state[FINISHED] = 1
                    return
            state[VISIT] += 1
        went_on = step_on(loops, digits, ended)
        if went_on < 0:
            state[FINISHED] = 1
            return
