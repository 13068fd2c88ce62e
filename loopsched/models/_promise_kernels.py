"""Compiled promises of many schedules: what `loopsched.models.score` says of one, in closed form.

All numbers are exact 64-bit integers; callers check that they cannot overflow.  A schedule that
the closed form does not speak of is left to its Python form, as are places and halos.
"""

from __future__ import annotations

from math import gcd

from loopsched.base.arrays import Ints
from loopsched.base.jit import part
from loopsched.models.asked import ALWAYS
from loopsched.problems._axis_kernels import is_unbroken, stretch_count

# What becomes of a schedule, and the columns that say so.  `WAVES`: but for the bytes of the
# outermost level, whose waves end within an iteration.
PROMISED, UNKNOWN, TOO_LARGE, WAVES = range(4)
OUTCOME, STEPS, LEAST_STEPS, HAS_LANES, BYTES = range(5)
# Behind the bytes of each level, if there are more columns: for each level where what fits
# begins, its bytes, and what is read and written of each tensor.
FIT, HELD, PARTS = range(3)
# All that is worked with is one table, as each array costs every compiled function a handful of
# arguments.  It has so many columns, for at most so many:
COLUMNS = 64
MOST_LOOPS, MOST_DIMS, MOST_TENSORS, MOST_LEVELS = 31, 12, 8, 8
MOST_ALONG, MOST_SPREAD, MOST_LISTS = 15, 8, 256  # cuts of a dimension, axes that are not plain
_DIMS = MOST_DIMS + 1  # of which the last, of size 1, stands in where an axis has but one
# Rows.  The first: how many there are; cuts, of them outside an item, a stamp; the item that a
# body is in and the sums that come where it ends; what a cache is asked for; shared bytes.
NOW = 0
N_DIMS, N_TENSORS, N_LEVELS, N_UNITS, OUTPUT, LANE, N_LOOPS = range(7)
N_CUTS, BOUNDARY, STAMP, ITEM, LATE_BYTES, LATE, TILES, N_COLD, N_WAITING, ROOM = range(7, 17)
OUTSIDE = 17  # cuts around what fits; -1: nothing does
# A column for each tensor: the problem; bytes of its own in a level, a number to work with,
# visits that are promised, behind the levels inside, of one body; bytes that are moved; what a
# cache is asked for.
WIDTH, FIRST, END, WHOLE_BYTES, READS, WRITES, IS_PLAIN = range(1, 8)
OWN, NEEDS, VISITS, BEHIND, TRIED, READ, WRITTEN, ASKED, ANEW, ONCE = range(8, 18)
# A column for each axis, dimension, loop, member of a list of items, cut, level, item that begins
# cold, level of sums that wait, unit.
FIRST_DIM, SECOND_DIM, FIRST_STEP, SECOND_STEP, OFFSET, SIZE, N_MOVING, KIND, IS_CLIPPED = range(
    18, 27
)
SIZES, LEFT, N_ALONG = range(27, 30)
DIM, EXTENT, UNIT, STEP, LISTED = range(30, 35)
RUN_AT, RUN_LENGTH, RUN_EXTENT, RUN_MANY = range(35, 39)
CUT_DIM, CUT_EXTENT, IS_PARALLEL, POSITION = range(39, 43)
CAPACITY, IS_PAD, COPIES, KEEPS_HALO, WRITES_THROUGH = range(43, 48)
COLD, LATEST, NESTED, BUSY = range(48, 52)
# Several rows each, from here on: what a dimension is to tensor t; what tensors own in level l;
# instances of a unit inside one of level l, 0 if each has its own l; whose own sums wait.
BITS = 52
OWNS = BITS + MOST_TENSORS
INSIDE = OWNS + MOST_LEVELS
OWNERS = INSIDE + MOST_LEVELS
# For each dimension: how many cuts before the k-th are along it; what its first k cuts leave.
DEPTH = OWNERS + MOST_LEVELS
PIECES, SHORTEST, WHOLE, LONGEST, ABREAST, CHAIN, KINDS, LENGTH, MANY = (
    DEPTH + _DIMS * i for i in range(1, 10)
)
KNOWN = DEPTH + 10 * _DIMS
LISTS = KNOWN + MOST_SPREAD * (MOST_ALONG + 1)
ROWS = LISTS + MOST_LISTS
TOTAL, LARGEST, SMALLEST, OF = range(4)
# What an axis is: plain, or the number of one of those that `KNOWN` knows.
PLAIN = 0
# Bits of what a dimension is to a tensor; one for all tensors: it moves along plain axes only.
INDEXED, SLIDING, ALONE, STEADY = 1, 2, 4, 8
# Bytes that are no level's own for a tensor: it shares them with others, or passes by.
SHARED, PASSES = -1, -2
NO_DIM = -1


@part
def _add(w: Ints, side: int, n: int, length: int, many: int) -> int:
    """Add pieces of a length to those that are counted by it."""
    for i in range(n):
        if w[LENGTH + side, i] == length:
            w[MANY + side, i] += many
            return n
    w[LENGTH + side, n], w[MANY + side, n] = length, many
    return n + 1


@part
def _cut(w: Ints, side: int, n: int, extent: int, is_parallel: bool) -> int:
    """Cut pieces, counted by their length, into shorter ones.

    Parallel ones are there at once: they take as many steps as the longest of them.
    """
    full = kept = 0
    for i in range(n):
        length, many = w[LENGTH + side, i], w[MANY + side, i]
        if not is_parallel:
            full += many * (length // extent)
            length %= extent
        if length:
            kept = _add(w, side, kept, min(length, extent), many)
    return _add(w, side, kept, extent, full) if full else kept


@part
def _whole(w: Ints, side: int, size: int) -> int:
    """Begin with one piece."""
    w[LENGTH + side, 0], w[MANY + side, 0] = size, 1
    return 1


# Axes of two dimensions -------------------------------------------------------------------------


@part
def _n_stored(c1: int, c2: int, size: int, first: int, n1: int, n2: int) -> int:
    """Count the positions of ``first + c1*i + c2*j`` in ``[0, size)``; size -1: all of them."""
    if is_unbroken(c1, n1, c2, n2):
        return stretch_count(first, c1 * (n1 - 1) + c2 * (n2 - 1) + 1, size)
    common = gcd(c1, c2)
    before, ahead = c2 // common, c1 // common
    count = 0
    for i in range(n1):  # of several ways to a position, the one with the least i counts
        at = first + c1 * i
        low, high = 0, n2
        if i >= before:
            low = max(0, n2 - ahead)
        if size >= 0:
            low, high = max(low, -(at // c2)), min(high, -((at - size) // c2))
        count += max(0, high - low)
    return count


# Schedules -------------------------------------------------------------------------------------


@part
def _read(w: Ints, loops: Ints, begin: int, end: int) -> bool:
    """Take over the loops of a schedule; whether they cover the problem, and are not too many."""
    w[NOW, N_LOOPS] = end - begin
    if end - begin > MOST_LOOPS:
        return False
    for d in range(w[NOW, N_DIMS]):
        w[LEFT, d], w[N_ALONG, d] = 1, 0
    for at in range(end - begin - 1, -1, -1):
        d, extent, unit = loops[begin + at, 0], loops[begin + at, 1], loops[begin + at, 2]
        if d < 0 or unit < -1 or 2 * w[N_ALONG, d] + 2 > MOST_ALONG:
            return False
        w[N_ALONG, d] += 1
        w[DIM, at], w[EXTENT, at], w[UNIT, at] = d, extent, unit
        w[STEP, at] = w[LISTED, at] = w[LEFT, d]
        w[LEFT, d] = extent
    is_covered = True
    for d in range(w[NOW, N_DIMS]):
        is_covered = is_covered and w[LEFT, d] == w[SIZES, d]
    return is_covered


@part
def _merge_lists(w: Ints) -> None:
    """Take steps out that split a unit's list of items into the same items."""
    outer = 0  # loops whose steps may yet go, in `run`
    dim = unit = -1
    for at in range(w[NOW, N_LOOPS]):
        d, u = w[DIM, at], w[UNIT, at]
        if w[STEP, at] < w[EXTENT, at]:
            if u < 0 or d != dim or u != unit:
                outer, dim, unit = 0, d, u
            while outer > 0 and w[LISTED, w[RUN_AT, outer - 1]] % w[STEP, at] == 0:
                outer -= 1
                w[LISTED, w[RUN_AT, outer]] = w[SIZES, d]
            w[RUN_AT, outer] = at
            outer += 1


@part
def _are_nested(w: Ints) -> bool:
    """Whether the loops of every unit are adjacent, and inside those of the units around it."""
    last, before = -1, -1
    for at in range(w[NOW, N_LOOPS]):
        unit = w[UNIT, at]
        if unit >= 0 and unit != before:
            if unit <= last:
                return False
            last = unit
        before = unit
    return True


@part
def _count_steps(w: Ints, found: Ints, row: int) -> bool:
    """Count steps of the busiest unit: `loopsched.models.compute`; False: too many lists.

    Each list has how many are like it, then how many of them no order of items avoids.
    """
    n_dims, n_lists = w[NOW, N_DIMS], 1
    for d in range(n_dims):
        w[LISTS, d] = w[SIZES, d]
    w[LISTS, n_dims] = w[LISTS, n_dims + 1] = 1
    last = at = 0
    for k in range(w[NOW, N_LOOPS]):
        if w[UNIT, k] >= 0:
            last = k + 1
    while at < last:
        d, unit, end = w[DIM, at], w[UNIT, at], at + 1
        if unit < 0:
            extent = w[STEP, at]
            if 2 * n_lists > MOST_LISTS:
                return False
            for i in range(n_lists):
                full, rest = w[LISTS + i, d] // extent, w[LISTS + i, d] % extent
                if full and rest:
                    for k in range(n_dims + 2):
                        w[LISTS + n_lists, k] = w[LISTS + i, k]
                    w[LISTS + n_lists, d] = rest
                    n_lists += 1
                if full:
                    w[LISTS + i, d] = extent
                    w[LISTS + i, n_dims] *= full
                    w[LISTS + i, n_dims + 1] *= full
        else:
            while end < last and w[UNIT, end] == unit:
                end += 1
            for i in range(n_lists):
                _share(w, i, at, end, w[NESTED, unit])
        at = end
    found[row, STEPS] = found[row, LEAST_STEPS] = 0
    for i in range(n_lists):
        points = 1
        for d in range(n_dims):
            points *= w[LISTS + i, d]
        found[row, STEPS] += points * w[LISTS + i, n_dims]
        found[row, LEAST_STEPS] += points * w[LISTS + i, n_dims + 1]
    return True


@part
def _share(w: Ints, row: int, first: int, end: int, instances: int) -> None:
    """Run a list of items on some instances: what is left is the largest item, in waves."""
    n_dims, items, as_long = w[NOW, N_DIMS], 1, 1
    for d in range(n_dims):
        n = _whole(w, 0, w[LISTS + row, d])
        for at in range(first, end):
            if w[DIM, at] == d:
                n = _cut(w, 0, n, w[STEP, at], False)
        many = longest = 0
        for i in range(n):
            many += w[MANY, i]
            longest = max(longest, w[LENGTH, i])
        w[LISTS + row, d] = longest
        items *= many
        for i in range(n):
            if w[LENGTH, i] == longest:
                as_long *= w[MANY, i]
    w[LISTS + row, n_dims] *= -(-items // instances)
    w[LISTS + row, n_dims + 1] *= -(-as_long // instances)


# Views -----------------------------------------------------------------------------------------


@part
def _see(w: Ints, level: int) -> None:
    """Write down the cuts that a level sees: `loopsched.models.view.view_of`."""
    for d in range(w[NOW, N_DIMS]):
        w[LEFT, d] = w[SIZES, d]
    w[NOW, N_CUTS] = w[NOW, BOUNDARY] = 0
    w[NOW, STAMP] += 1
    n_run, shared = 0, -1
    for at in range(w[NOW, N_LOOPS]):
        d, unit = w[DIM, at], w[UNIT, at]
        is_inner = unit >= 0 and w[INSIDE + level, unit] > 0
        if n_run and unit != shared:
            _close_run(w, n_run, w[INSIDE + level, shared])
            n_run = 0
        extent = min(w[LISTED, at], w[LEFT, d])
        if is_inner:
            shared = unit
            w[RUN_AT, n_run], w[RUN_LENGTH, n_run] = at, w[LEFT, d]
            w[RUN_EXTENT, n_run] = extent
            n_run += 1
        elif extent < w[LEFT, d]:
            _add_cut(w, d, extent, 0, at)
        w[LEFT, d] = extent
        if unit >= 0 and not is_inner:
            w[NOW, BOUNDARY] = w[NOW, N_CUTS]
    if n_run:
        _close_run(w, n_run, w[INSIDE + level, shared])
    _draw_lines(w)


@part
def _add_cut(w: Ints, dim: int, extent: int, is_parallel: int, position: int) -> None:
    at = w[NOW, N_CUTS]
    w[CUT_DIM, at], w[CUT_EXTENT, at] = dim, extent
    w[IS_PARALLEL, at], w[POSITION, at] = is_parallel, position
    w[NOW, N_CUTS] = at + 1


@part
def _close_run(w: Ints, n_run: int, instances: int) -> None:
    """Split a list of items into waves, and these into what runs at once."""
    free = max(1, instances)
    for i in range(n_run - 1, -1, -1):
        trip = -(-w[RUN_LENGTH, i] // w[RUN_EXTENT, i])
        w[RUN_MANY, i] = min(trip, free)
        free = free // w[RUN_MANY, i] if w[RUN_MANY, i] == trip else 1
    for i in range(n_run):
        at, length, extent, many = w[RUN_AT, i], w[RUN_LENGTH, i], w[RUN_EXTENT, i], w[RUN_MANY, i]
        if extent * many < length:
            _add_cut(w, w[DIM, at], extent * many, 0, at)
    for i in range(n_run):
        at, extent = w[RUN_AT, i], w[RUN_EXTENT, i]
        if w[RUN_MANY, i] > 1:
            _add_cut(w, w[DIM, at], extent, 1, at)


@part
def _draw_lines(w: Ints) -> None:
    """Say of every dimension what its cuts leave: `loopsched.models.view._line`."""
    for d in range(w[NOW, N_DIMS]):
        length, abreast, k = w[SIZES, d], 1, 0
        w[PIECES + d, 0], w[SHORTEST + d, 0], w[WHOLE + d, 0] = 1, length, 0
        w[LONGEST + d, 0], w[ABREAST + d, 0], w[KINDS + d, 0] = length, 1, 1
        n_visited, n_every = _whole(w, 0, length), _whole(w, 1, length)
        for at in range(w[NOW, N_CUTS]):
            w[DEPTH + d, at] = k
            if w[CUT_DIM, at] != d:
                continue
            extent, is_parallel, k = w[CUT_EXTENT, at], w[IS_PARALLEL, at] != 0, k + 1
            n_every = _cut(w, 1, n_every, extent, False)
            n_visited = _cut(w, 0, n_visited, extent, is_parallel)
            if is_parallel:
                abreast *= -(-length // extent)
            length = min(length, extent)
            w[WHOLE + d, k], w[LONGEST + d, k], w[ABREAST + d, k] = k, length, abreast
            if is_parallel:  # taken together
                w[WHOLE + d, k], w[LONGEST + d, k] = w[WHOLE + d, k - 1], w[LONGEST + d, k - 1]
                w[ABREAST + d, k] = w[ABREAST + d, k - 1]
            w[CHAIN + d, k], w[KINDS + d, k] = extent, n_every
            w[PIECES + d, k], w[SHORTEST + d, k] = 0, length
            for i in range(n_visited):
                w[PIECES + d, k] += w[MANY, i]
            for i in range(n_every):
                w[SHORTEST + d, k] = min(w[SHORTEST + d, k], w[LENGTH + 1, i])
        w[DEPTH + d, w[NOW, N_CUTS]] = k


@part
def _is_aligned(w: Ints, level: int) -> bool:
    """Whether waves end with iterations, as `View.is_aligned`; notes which units are busy."""
    first = last = 0
    for u in range(w[NOW, N_UNITS]):
        w[BUSY, u] = 0
    for at in range(w[NOW, N_LOOPS]):
        if w[UNIT, at] >= 0 and w[INSIDE + level, w[UNIT, at]] == 0:
            first = at + 1
    for d in range(w[NOW, N_DIMS]):
        w[LEFT, d] = w[SIZES, d]
    for at in range(w[NOW, N_LOOPS]):
        d, unit = w[DIM, at], w[UNIT, at]
        if w[LISTED, at] < w[LEFT, d]:
            w[LEFT, d] = w[LISTED, at]
            if at >= first and unit >= 0:
                w[BUSY, unit] = 1
                last = at + 1
    for d in range(w[NOW, N_DIMS]):
        w[LEFT, d] = _whole(w, d, w[SIZES, d])  # kinds of pieces
    at, abreast = 0, 1
    while at < last:
        end, unit = at + 1, w[UNIT, at]
        while at >= first and unit >= 0 and end < last and w[UNIT, end] == unit:
            end += 1
        n_trips = 0
        for k in range(at, end):
            n_trips += _pass(w, k, n_trips)
        if at >= first and unit >= 0 and n_trips:
            for k in range(n_trips):
                if abreast > 1 and w[RUN_AT, k] != w[RUN_LENGTH, k]:
                    return False
            if not _ends_with_iterations(w, n_trips, w[INSIDE + level, unit]):
                return False
            abreast *= w[INSIDE + level, unit]
        at = end
    return True


@part
def _pass(w: Ints, at: int, n_trips: int) -> int:
    """Cut the lengths that a loop finds, and note its least and most trips; 0: it does nothing."""
    d, extent = w[DIM, at], w[LISTED, at]
    n = w[LEFT, d]
    longest = shortest = w[LENGTH + d, 0]
    for i in range(1, n):
        longest = max(longest, w[LENGTH + d, i])
        shortest = min(shortest, w[LENGTH + d, i])
    w[RUN_AT, n_trips], w[RUN_LENGTH, n_trips] = -(-shortest // extent), -(-longest // extent)
    w[LEFT, d] = _cut(w, d, n, extent, False)
    return 1 if longest > extent else 0


@part
def _ends_with_iterations(w: Ints, n_trips: int, instances: int) -> bool:
    """Whether waves of a list end with iterations, as `loopsched.models.view` has it."""
    most, is_one = 1, True
    for k in range(n_trips):
        most *= w[RUN_LENGTH, k]
        is_one = is_one and w[RUN_AT, k] == w[RUN_LENGTH, k]
    if most <= instances or instances == 1:
        return True
    if not is_one:
        return False
    inside = 1
    for k in range(n_trips - 1, -1, -1):
        trips = w[RUN_LENGTH, k]
        if inside * trips > instances:
            is_outermost = most == inside * trips
            return instances % inside == 0 and (is_outermost or trips % (instances // inside) == 0)
        inside *= trips
    return True


# Footprints ------------------------------------------------------------------------------------


@part
def _at(w: Ints, row: int, dim: int, upto: int) -> int:
    """What the first cuts leave of a dimension."""
    return int(w[row + dim, w[DEPTH + dim, upto]])


@part
def _list_pieces(w: Ints, side: int, d: int, n_cuts: int) -> int:
    """Count the pieces that a dimension's first cuts make by their length."""
    n = _whole(w, side, w[SIZES, d])
    for k in range(1, n_cuts + 1):
        n = _cut(w, side, n, w[CHAIN + d, k], False)
    return n


@part
def _piece(w: Ints, d: int, n_cuts: int, start: int) -> int:
    """Find the length of the piece that begins somewhere."""
    length = w[SIZES, d]
    for k in range(1, n_cuts + 1):
        extent = w[CHAIN + d, k]
        length = min(extent, length - start // extent * extent)
        start %= extent
    return int(length)


@part
def _count_pieces(w: Ints, a: int, n_first: int, n_second: int) -> tuple[int, int, int]:
    """Total, largest and smallest count on an axis over all pieces of its dimensions."""
    first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
    c1, c2 = w[FIRST_STEP, a], w[SECOND_STEP, a]
    total, largest, smallest = 0, 0, 2**62
    if not w[IS_CLIPPED, a]:
        n1, n2 = _list_pieces(w, 0, first, n_first), _list_pieces(w, 1, second, n_second)
        for i in range(n1):
            for k in range(n2):
                elems = _n_stored(c1, c2, -1, 0, w[LENGTH, i], w[LENGTH + 1, k])
                total += elems * w[MANY, i] * w[MANY + 1, k]
                largest, smallest = max(largest, elems), min(smallest, elems)
        return total, largest, smallest
    x = 0
    while x < w[SIZES, first]:
        one, y = _piece(w, first, n_first, x), 0
        while y < w[SIZES, second]:
            two, at = _piece(w, second, n_second, y), w[OFFSET, a] + c1 * x + c2 * y
            elems = _n_stored(c1, c2, w[SIZE, a], at, one, two)
            total += elems
            largest, smallest = max(largest, elems), min(smallest, elems)
            y += two
        x += one
    return total, largest, smallest


@part
def _extreme(w: Ints, a: int, n_first: int, n_second: int, which: int) -> int:
    """Look up a total, largest or smallest count, or find all three."""
    row = KNOWN + (w[KIND, a] - 1) * (MOST_ALONG + 1) + n_first
    at = 4 * n_second
    if w[row, at + OF] != w[NOW, STAMP]:
        total, largest, smallest = _count_pieces(w, a, n_first, n_second)
        w[row, at + TOTAL], w[row, at + LARGEST], w[row, at + SMALLEST] = total, largest, smallest
        w[row, at + OF] = w[NOW, STAMP]
    return int(w[row, at + which])


@part
def _extreme_at(w: Ints, a: int, upto: int, row: int) -> int:
    """An extreme where parallel pieces that are whole are taken together."""
    first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
    return _extreme(w, a, _at(w, WHOLE, first, upto), _at(w, WHOLE, second, upto), row)


@part
def _largest(w: Ints, a: int, upto: int) -> int:
    """Largest count on an axis, parallel pieces that are cut further each for itself."""
    first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
    abreast = _at(w, ABREAST, first, upto) * _at(w, ABREAST, second, upto)
    if w[KIND, a] == PLAIN:
        return _at(w, LONGEST, first, upto) * abreast
    return _extreme_at(w, a, upto, LARGEST) * abreast


@part
def _held(w: Ints, t: int, upto: int) -> int:
    """Bytes of a tensor in the largest region inside some cuts."""
    held = w[WIDTH, t]
    for a in range(w[FIRST, t], w[END, t]):
        held *= _largest(w, a, upto)
    return int(held)


@part
def _visits(w: Ints, t: int, upto: int, apart: int) -> int:
    """Elements of all visits to a region; parallel pieces of ``apart`` each for itself."""
    visits = 1
    for a in range(w[FIRST, t], w[END, t]):
        first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
        if w[KIND, a] == PLAIN:
            visits *= w[SIZES, first]
            continue
        n_first, n_second = _at(w, WHOLE, first, upto), _at(w, WHOLE, second, upto)
        if apart == first:
            n_first = w[DEPTH + first, upto]
        elif apart == second:
            n_second = w[DEPTH + second, upto]
        visits *= _extreme(w, a, n_first, n_second, TOTAL)
    for d in range(w[NOW, N_DIMS]):
        if w[DEPTH + d, upto] and not w[BITS + t, d] & INDEXED:
            visits *= _at(w, PIECES, d, upto)
    return int(visits)


@part
def _reached(w: Ints, a: int, first: int, second: int) -> int:
    """Count what extents reach on an axis, stored or not."""
    return _n_stored(w[FIRST_STEP, a], w[SECOND_STEP, a], -1, 0, first, second)


# Reuse -----------------------------------------------------------------------------------------


@part
def _fits(w: Ints) -> bool:
    """Whether bytes of each tensor fit the level together."""
    total = 0
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] == SHARED:
            total += w[NEEDS, t]
        elif w[OWN, t] != PASSES and w[NEEDS, t] > w[OWN, t]:
            return False
    return bool(total <= w[NOW, ROOM])


@part
def _fit(w: Ints, copies: int) -> int:
    """Find the outermost cut whose body fits; -1 if not even one point does."""
    for upto in range(w[NOW, BOUNDARY], w[NOW, N_CUTS] + 1):
        for t in range(w[NOW, N_TENSORS]):
            if w[OWN, t] != PASSES:
                w[NEEDS, t] = copies * _held(w, t, upto)
        if _fits(w):
            return int(upto)
    return -1


@part
def _position(w: Ints, upto: int) -> int:
    """Translate a number of cuts into the outermost loop position inside them."""
    return int(w[POSITION, upto - 1] + 1) if upto else 0


@part
def _inmost(w: Ints, upto: int) -> int:
    """Translate a number of cuts into the innermost loop position of that region."""
    return int(w[POSITION, upto]) if upto < w[NOW, N_CUTS] else ALWAYS


@part
def _run(w: Ints, t: int, upto: int, start: int) -> tuple[int, int, int]:
    """Find the outermost cut of the run outside a body, where it stops, and the slide or -1."""
    low = upto
    while upto > w[NOW, BOUNDARY] and w[POSITION, upto - 1] >= start:
        if not w[IS_PARALLEL, upto - 1]:
            word = w[BITS + t, w[CUT_DIM, upto - 1]]
            if word & INDEXED:
                return low, upto, upto - 1 if word & SLIDING else -1
            low = upto - 1
        upto -= 1
    return low, upto, -1


@part
def _pair_on_axis(w: Ints, a: int, upto: int, dim: int, many: int) -> int:
    """Bound what neighbouring pieces of a dimension touch on an axis."""
    first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
    one = _largest(w, a, upto)
    if dim != first and dim != second:
        return one
    around = w[SIZES, dim]
    for k in range(1, w[DEPTH + dim, upto - 1] + 1):
        around = min(around, w[CHAIN + dim, k])
    n_first, n_second = _at(w, LONGEST, first, upto), _at(w, LONGEST, second, upto)
    both = min(many * _at(w, LONGEST, dim, upto), around)
    if w[KIND, a] != PLAIN:
        both = _reached(
            w, a, both if dim == first else n_first, both if dim == second else n_second
        )
    both *= _at(w, ABREAST, first, upto) * _at(w, ABREAST, second, upto)
    if w[SIZE, a] > 0:
        both = min(both, w[SIZE, a])
    return int(min(many * one, both))


@part
def _pair(w: Ints, t: int, upto: int, low: int, many: int) -> int:
    """Bound the bytes that bodies touch, one after the other by steps of the cuts from ``low``."""
    one = _held(w, t, upto)
    n_between, is_moved = 0, False
    for k in range(low, upto):
        if not w[IS_PARALLEL, k]:
            n_between += 1
            is_moved = is_moved or w[BITS + t, w[CUT_DIM, k]] & INDEXED != 0
    if not is_moved:
        return one
    if n_between > 1 or w[IS_PARALLEL, upto - 1]:
        return many * one
    held = w[WIDTH, t]
    for a in range(w[FIRST, t], w[END, t]):
        held *= _pair_on_axis(w, a, upto, w[CUT_DIM, upto - 1], many)
    return int(min(many * one, held))


@part
def _stays(w: Ints, upto: int, low: int, many: int) -> bool:
    """Whether consecutive bodies fit together, and the sums that come where an item ends."""
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] != PASSES:
            w[NEEDS, t] = _pair(w, t, upto, low, many)
    if w[OWN, w[NOW, OUTPUT]] != PASSES and w[POSITION, low] < w[NOW, ITEM]:
        w[NEEDS, w[NOW, OUTPUT]] += w[NOW, LATE_BYTES]
    return _fits(w)


@part
def _is_gapless(w: Ints, t: int, dim: int, upto: int) -> bool:
    """Whether a body touches an unbroken stretch where the window slides."""
    for a in range(w[FIRST, t], w[END, t]):
        first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
        if dim in (first, second):
            n1, n2 = _at(w, LONGEST, first, upto), _at(w, LONGEST, second, upto)
            if not is_unbroken(w[FIRST_STEP, a], n1, w[SECOND_STEP, a], n2):
                return False
    return True


@part
def _n_touching(w: Ints, t: int, dim: int, upto: int) -> int:
    """Count the bodies of a sweep that may touch one element."""
    for a in range(w[FIRST, t], w[END, t]):
        first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
        if dim in (first, second):
            n1, n2 = _at(w, LONGEST, first, upto), _at(w, LONGEST, second, upto)
            c1, c2 = w[FIRST_STEP, a], w[SECOND_STEP, a]
            width = c1 * (n1 - 1) + c2 * (n2 - 1)
            return int(width // (c1 * n1 if dim == first else c2 * n2) + 1)
    return 1


@part
def _is_steady(w: Ints, low: int, upto: int) -> bool:
    """Whether the bodies of a run are alike: one dimension, alone on its axes, in equal pieces."""
    dim, n_run, kinds = -1, 0, 0
    for k in range(upto - 1, low - 1, -1):
        if not w[IS_PARALLEL, k]:
            if n_run == 0:
                dim = w[CUT_DIM, k]
                kinds = _at(w, KINDS, dim, k + 1)
            elif w[CUT_DIM, k] != dim:
                return False
            n_run += 1
    return bool(w[BITS + w[NOW, OUTPUT], dim] & STEADY != 0 and (n_run == 1 or kinds == 1))


@part
def _guaranteed(w: Ints, t: int, upto: int) -> int:
    """Elements that come in if only what certainly stays between bodies does."""
    low, stop, slide = _run(w, t, upto, 0)
    if slide >= 0 and _is_gapless(w, t, w[CUT_DIM, slide], upto) and _stays(w, upto, slide, 2):
        return _visits(w, t, stop - 1, w[CUT_DIM, slide])
    if low == upto or _stays(w, upto, low, 2):
        return _visits(w, t, stop, NO_DIM)
    return _visits(w, t, upto, NO_DIM)


@part
def _lasting(w: Ints, t: int, upto: int) -> int:
    """The same, whatever the levels inside keep."""
    low, stop, slide = _run(w, t, upto, w[NOW, ITEM])
    if low < upto and _is_steady(w, low, upto) and _stays(w, upto, low, 2):
        return _visits(w, t, stop, NO_DIM)
    low, stop, slide = _run(w, t, upto, 0)
    if slide >= 0 and low == upto and _is_gapless(w, t, w[CUT_DIM, slide], upto):
        many = _n_touching(w, t, w[CUT_DIM, slide], upto)
        if _stays(w, upto, slide, many):
            return _visits(w, t, stop - 1, w[CUT_DIM, slide])
    return _visits(w, t, upto, NO_DIM)


@part
def _weight(w: Ints, t: int) -> int:
    """Bytes that an element moves in all: sums come and go."""
    return int(w[WIDTH, t] * (2 if t == w[NOW, OUTPUT] else 1))


@part
def _promise(w: Ints, fit: int, is_asked: bool, level: int, row: int) -> None:
    """Take the best body, as `loopsched.models.reuse.guaranteed_visits`; into a row of visits."""
    n_cuts, n_tensors = w[NOW, N_CUTS], w[NOW, N_TENSORS]
    least = -1
    w[NOW, ITEM] = w[NOW, LATE_BYTES] = 0
    if fit < 0:
        for t in range(n_tensors):
            w[row, t] = _visits(w, t, n_cuts, NO_DIM)
        return
    for upto in range(fit, n_cuts + 1):
        position, total, steady = _position(w, upto), 0, 0
        if is_asked:
            _enter(w, position, level)
        for t in range(n_tensors):
            if w[OWN, t] == PASSES:
                continue
            if is_asked and position > w[ANEW, t]:
                w[TRIED, t] = _lasting(w, t, upto)
            else:
                w[TRIED, t] = _guaranteed(w, t, upto)
            total += _weight(w, t) * w[TRIED, t]
        if least < 0 or total < least:
            least = total
            for t in range(n_tensors):
                w[row, t] = w[TRIED, t]
        for t in range(n_tensors):
            if w[OWN, t] != PASSES:
                _, stop, slide = _run(w, t, upto, 0)
                upto_steady = stop - 1 if slide >= 0 else stop
                steady += _weight(w, t) * _visits(w, t, upto_steady, NO_DIM)
        if steady >= least:
            return


# What a cache is asked for ---------------------------------------------------------------------


@part
def _enter(w: Ints, position: int, level: int) -> None:
    """Find the item that a region is in, and what is written back at its end."""
    w[NOW, ITEM] = w[NOW, LATE_BYTES] = 0
    for i in range(w[NOW, N_COLD]):
        if w[COLD, i] < position:
            w[NOW, ITEM] = max(w[NOW, ITEM], w[COLD, i])
    late = w[NOW, LATE]
    if late == ALWAYS:
        return
    parted, outside = ALWAYS - 1, 0
    for k in range(w[NOW, N_CUTS]):
        if w[POSITION, k] < late:
            outside += 1
        elif w[BITS + w[NOW, OUTPUT], w[CUT_DIM, k]] & INDEXED:
            parted = min(parted, w[POSITION, k])
    if position <= parted:
        return
    waiting = 0
    for i in range(w[NOW, N_WAITING]):
        size = w[LATEST, i]
        for u in range(w[NOW, N_UNITS]):
            if w[OWNERS + i, u] and w[BUSY, u]:
                size *= max(1, w[INSIDE + level, u])
        waiting += size
    w[NOW, LATE_BYTES] = min(waiting, _held(w, w[NOW, OUTPUT], outside))


@part
def _most(w: Ints, t: int) -> int:
    """Bound the elements that a cache brings in, if it holds one body: what is asked for."""
    asked, once = w[ASKED, t], w[ONCE, t]
    if once == ALWAYS or not w[IS_PLAIN, t]:
        return int(asked)
    outside = 0
    for k in range(w[NOW, N_CUTS]):
        outside += w[POSITION, k] < once
    return int(min(asked, _visits(w, t, outside, NO_DIM)))


@part
def _least_on_axis(w: Ints, a: int, at: int, shortest: int) -> int:
    """Bound from below what all iterations but one of a cut touch on an axis."""
    first, second = w[FIRST_DIM, a], w[SECOND_DIM, a]
    dim, left = w[CUT_DIM, at], shortest - w[CUT_EXTENT, at]
    if dim != first and dim != second:
        if w[KIND, a] == PLAIN:
            return _at(w, SHORTEST, first, at)
        return _extreme_at(w, a, at, SMALLEST)
    if w[KIND, a] == PLAIN:
        return int(left)
    if w[IS_CLIPPED, a]:
        return 0
    if w[N_MOVING, a] == 1:
        return int(left)
    n_first, n_second = _at(w, SHORTEST, first, at), _at(w, SHORTEST, second, at)
    half = max(1, left // 2)
    return _reached(w, a, half if dim == first else n_first, half if dim == second else n_second)


@part
def _between(w: Ints, at: int) -> int:
    """Bound from below what all iterations but one of a cut touch; -1 if there is but one."""
    shortest = _at(w, SHORTEST, w[CUT_DIM, at], at)
    if shortest <= w[CUT_EXTENT, at]:
        return -1
    total = 0
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] == SHARED:
            size = w[WIDTH, t]
            for a in range(w[FIRST, t], w[END, t]):
                size *= _least_on_axis(w, a, at, shortest)
            total += size
    return int(total)


@part
def _ask_anew(w: Ints) -> None:
    """Find for each tensor the innermost region whose visits all make a cache ask for it anew."""
    n_tensors, n_cuts, boundary = w[NOW, N_TENSORS], w[NOW, N_CUTS], w[NOW, BOUNDARY]
    deepest, widest, is_split = ALWAYS, 0, False
    for t in range(n_tensors):
        w[NEEDS, t] = boundary  # cuts outside the region
        if w[OWN, t] != PASSES:
            deepest = min(deepest, w[ANEW, t])
        if w[OWN, t] == SHARED:
            widest = max(widest, w[WIDTH, t])
    for k in range(n_cuts):
        is_split = is_split or w[IS_PARALLEL, k] != 0
    for at in range(boundary, 0 if is_split else n_cuts):
        held = widest
        for t in range(n_tensors):
            if w[OWN, t] == SHARED:
                held += _held(w, t, at)
        if held <= w[NOW, ROOM]:
            break
        others = _between(w, at)
        for t in range(n_tensors):
            is_alone = w[BITS + t, w[CUT_DIM, at]] & ALONE != 0 and w[OWN, t] == SHARED
            is_anew = others >= 0 and others + w[WIDTH, t] > w[NOW, ROOM]
            if is_alone and is_anew and w[POSITION, at] < deepest:
                w[NEEDS, t] = at
    for t in range(n_tensors):
        if w[OWN, t] != PASSES:
            upto = w[NEEDS, t]
            visits = _visits(w, t, upto, NO_DIM)
            while upto < n_cuts and not w[IS_PARALLEL, upto]:
                if _visits(w, t, upto + 1, NO_DIM) > visits:
                    break
                upto += 1
            w[NEEDS, t] = _inmost(w, upto)


@part
def _pass_on(w: Ints, level: int, fit: int) -> None:
    """Say what a level asks the next outer one for: `loopsched.models.filters.asked_through`."""
    n_tensors, output = w[NOW, N_TENSORS], w[NOW, OUTPUT]
    holds_any = False
    for t in range(n_tensors):
        holds_any = holds_any or w[OWN, t] != PASSES
    if not holds_any:
        if level == w[NOW, N_LEVELS] - 1:
            for t in range(n_tensors):
                w[ASKED, t] = _visits(w, t, w[NOW, N_CUTS], NO_DIM)
        return
    item, boundary = _position(w, w[NOW, BOUNDARY]), w[NOW, BOUNDARY]
    for t in range(n_tensors):
        w[ASKED, t] = w[WRITTEN if t == output else READ, t] // w[WIDTH, t]
        if w[OWN, t] != PASSES:
            is_once = w[ASKED, t] == _visits(w, t, boundary, NO_DIM)
            w[ONCE, t] = item if is_once else ALWAYS
    if boundary:
        w[COLD, w[NOW, N_COLD]] = item
        w[NOW, N_COLD] += 1
    if w[IS_PAD, level]:
        w[NOW, TILES] = min(w[NOW, TILES], _inmost(w, fit))
        for t in range(n_tensors):
            if w[OWN, t] != PASSES:
                _, stop, slide = _run(w, t, fit, 0)
                upto = stop - 1 if slide >= 0 and w[KEEPS_HALO, level] else stop
                w[ANEW, t] = _inmost(w, upto)
        return
    _ask_anew(w)
    for t in range(n_tensors):
        if w[OWN, t] != PASSES and not (w[WRITES_THROUGH, level] and t == output):
            w[ANEW, t] = w[NEEDS, t]
    if w[OWN, output] != PASSES and not w[WRITES_THROUGH, level]:
        last = w[NOW, N_WAITING]
        w[LATEST, last] = w[OWN, output] if w[OWN, output] != SHARED else w[NOW, ROOM]
        for u in range(w[NOW, N_UNITS]):
            w[OWNERS + last, u] = w[INSIDE + level, u] == 0
        w[NOW, N_WAITING] += 1
        w[NOW, LATE] = min(w[NOW, LATE], item)
