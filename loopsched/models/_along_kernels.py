"""The compiled walk of waves that all go along one dimension, step by step.

Each instance has an item, and all of them go through the same pieces of a dimension that is
otherwise left whole; the loops inside are the same in every step.  A visit is one iteration of
these, as in `loopsched.models._replay_kernels.walk`, and what is counted is the same; but steps
are not followed one by one.  What is touched between two uses of an element is linear in the
step, for pieces of one length, so that those where it is too much are counted at once.

A *stamp* numbers the visits of one step of each wave: those of its other steps are like them.
What a tensor that has the dimension touches is counted for each unit of it, so that one walk
serves several ways to cut the dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit, leaf
from loopsched.models._replay_kernels import (
    FINISHED,
    OVERFLOW,
    VISIT,
    WINDOW,
    Tables,
    add_rows,
    begin,
    begun_in,
    enter,
    find_longest,
    goes_on,
    is_alike,
    row_of,
    shorter_in,
    step_on,
    take,
    works,
)

# What has not the dimension, and what has: columns of bytes.
WHOLE, EACH = range(2)
# Columns of an event, elements of a tensor that one visit touches and one before it did: stamps
# of the latter and the former, tensor, elements.
BEFORE, NOW, OF, ELEMS = range(4)


class Steps(NamedTuple):
    """Steps between the loops that `Tables` have, cut in some ways.

    ``runs``: steps of one length in a row: how many, and the length, the longest first.
    ``ends``: where those of each way to cut begin, and the last end.
    ``is_along``: 1 for a tensor that has the dimension.
    """

    runs: Ints
    ends: Ints
    is_along: Ints


class Past(NamedTuple):
    """What the waves so far leave behind, so that a walk can be taken up again.

    ``last``: of each cell the stamp of the last visit that touched it by itself.  ``moved``: for
    each tensor and such stamp, that of the last visit of what has it.  ``own``: bytes that each
    stamp was the last to touch.  ``slots``: for each tensor and stamp, the last event that it
    came before.  ``done``: as `loopsched.models._replay_kernels.Memory` has it.  For each way to
    cut steps, ``found``: as there; ``fits``: 0 once visits do not fit.
    """

    digits: Ints
    state: Ints
    last: Ints
    moved: Ints
    own: Ints
    slots: Ints
    done: Ints
    found: Ints
    fits: Ints


class Wave(NamedTuple):
    """What a wave works on: as `take` finds it, then the window, by stamps, then its visits.

    ``asking``: instances that touch a tensor, the tensor, and dimensions in which the item is
    short; ``ends``: where those of each tensor begin, and the last end.
    ``sums``: bytes that the stamps before one were the last to touch, up to this wave.
    ``again``: of them, those of a stamp and the later ones that this wave touches.
    ``tree``: the same of the visits so far, as Fenwick trees.
    ``firsts``: of what has not the dimension, each cell, its first visit, tensor, elements.
    ``touched``, ``new``, ``fresh``: bytes of each visit; of them, those that none before it of the
    wave has, and none of the window.  ``unseen``: elements of each tensor of the latter.
    ``visits``: for each tensor and piece, the last visit that touched it cell by cell.
    ``at_once``: for each tensor and such visit, the elements that it touched; -1 once another
    visit touched some of them.  ``at_work``: numbers of the instances that work in each visit.
    ``several``: as `enter` writes it.
    """

    lengths: Ints
    rows: Ints
    there: Ints
    asking: Ints
    ends: Ints
    longest: Ints
    sums: Ints
    again: Ints
    tree: Ints
    firsts: Ints
    touched: Ints
    new: Ints
    fresh: Ints
    unseen: Ints
    visits: Ints
    at_once: Ints
    at_work: Ints
    several: Ints


class Visit(NamedTuple):
    """A visit to a tensor: its stamp, the first stamps of its wave and of the window.

    ``t``: the tensor.  ``kind``: its column of bytes.  ``width``: bytes of an element.
    """

    stamp: int
    base: int
    low: int
    t: int
    kind: int
    width: int


@jit
def n_above(first: int, slope: int, n: int, limit: int) -> int:
    """Count the members of an arithmetic sequence that are above a limit.

    Examples
    --------
    >>> n_above(10, -3, 5, 3)
    3
    """
    if slope > 0:
        return max(0, n - max(0, (limit - first) // slope + 1))
    if slope < 0:
        return min(n, max(0, (first - limit - 1) // -slope + 1))
    return n if first > limit else 0


@leaf
def n_units_above(
    runs: Ints, length: int, after: int, before: int, here: int, wholes: Ints, limit: int
) -> int:
    """Count the units between whose uses in two waves more than a limit is touched.

    Parameters
    ----------
    runs : array of (steps, units a step)
    length : units in all of them
    after, before, here : bytes for each unit of the steps before, of those behind, and of one
    wholes : bytes of what has not the dimension: of the first step, of those in the middle, of
        the last, and of one that is all
    """
    found = begin = 0
    last = runs.shape[0] - 1
    for r in range(last + 1):
        n, piece, begun = runs[r, 0], runs[r, 1], begin
        begin += n * piece
        if r == 0:
            whole = wholes[3] if piece == length else wholes[0]
            if piece * here + (length - piece) * before + whole > limit:
                found += piece
            n, begun = n - 1, piece
        if r == last and piece < length:
            if (length - piece) * after + piece * here + wholes[2] > limit:
                found += piece
            n -= 1
        first = begun * after + piece * here + (length - begun - piece) * before + wholes[1]
        found += piece * n_above(first, piece * (after - before), n, limit)
    return found


@leaf
def n_pairs_above(runs: Ints, last: int, first: int, whole: int, limit: int) -> int:
    """Count the steps, but the first, before whose end and since the one before is too much.

    ``last``, ``first``: bytes for each unit of the step before, and of the step.
    """
    found = 0
    for r in range(runs.shape[0]):
        if runs[r, 1] * (last + first) + whole > limit:
            found += runs[r, 0] - 1
        if r and runs[r - 1, 1] * last + runs[r, 1] * first + whole > limit:
            found += 1
    return found


@leaf
def add(sums: Ints, at: int, kind: int, size: int) -> None:
    """Add bytes in a Fenwick tree."""
    while at < sums.shape[0]:
        sums[at, kind] += size
        at |= at + 1


@leaf
def sum_of(sums: Ints, n: int, kind: int) -> int:
    """Sum up the first bytes of a Fenwick tree."""
    found = 0
    while n > 0:
        found += sums[n - 1, kind]
        n &= n - 1
    return found


@jit
def grown(rows: Ints, n: int, more: int) -> Ints:
    """Make place for more rows behind the first ones."""
    larger = np.empty((2 * n + more, rows.shape[1]), np.int64)
    for i in range(n):
        for k in range(rows.shape[1]):
            larger[i, k] = rows[i, k]
    return larger


@leaf
def ask(tables: Tables, past: Past, wave: Wave, n_there: int) -> int:
    """List what the instances of a wave touch, alike ones once; returns how much that is."""
    n_tensors, stamp, n = tables.tensors.shape[0], past.state[VISIT] * wave.there.size, 0
    is_once = past.done.size > 1 and wave.touched.shape[0] > 1  # else it is sooner touched
    find_longest(wave.lengths, wave.there, n_there, wave.longest)
    for t in range(n_tensors):
        for i in range(n_there):
            pick = wave.there[i]
            if is_once and is_alike(
                tables.tensors, tables.axes, wave.lengths, wave.rows, past.done, t, pick, stamp
            ):
                continue
            wave.asking[n, 0], wave.asking[n, 1], wave.asking[n, 2] = pick, t, 0
            if wave.touched.shape[0] > 1:
                wave.asking[n, 2] = shorter_in(wave.lengths, pick, wave.longest)
            n += 1
        wave.ends[t + 1] = n
    return n


@jit
def most_events(tensors: Ints, axes: Ints, rows: Ints) -> int:
    """Bound the cells of one body of one tensor."""
    found = 1
    for t in range(tensors.shape[0]):
        cells = 1
        for a in range(tensors[t, 0], tensors[t, 1]):
            first, longest = axes[a, 2], 1
            end = axes[a + 1, 2] - 1 if a + 1 < axes.shape[0] else rows.size - 1
            for row in range(first, end):
                longest = max(longest, rows[row + 1] - rows[row])
            cells *= longest
        found = max(found, cells)
    return found


@jit
def places_of(tables: Tables, outside: int) -> Ints:
    """Give what an iteration of each inner loop adds to the number of a tensor's piece."""
    loops, tensors, axes = tables.loops, tables.tensors, tables.axes
    found = np.zeros((tensors.shape[0], loops.shape[0] - outside), np.int64)
    for t in range(tensors.shape[0]):
        n = 1
        for i in range(loops.shape[0] - 1, outside - 1, -1):
            for a in range(tensors[t, 0], tensors[t, 1]):
                for k in range(axes[a, 0], axes[a, 1]):
                    if tables.axis_dims[k, 0] == loops[i, 0]:
                        found[t, i - outside] = n
            if found[t, i - outside]:
                n *= loops[i, 3]
    return found


@leaf
def number_at_work(wave: Wave, n_asking: int, offset: Ints, was: Ints, passed: Ints) -> int:
    """Number the instances that work at an offset: equal numbers mean the same ones.

    ``was``: the offset before.  ``passed``: of each dimension the longest item that ends before.
    """
    found = 0
    for dim in range(offset.size):
        if was[dim] != offset[dim]:
            was[dim], longest = offset[dim], 0
            for i in range(n_asking):
                if wave.asking[i, 2]:
                    length = wave.lengths[wave.asking[i, 0], dim]
                    if longest < length <= offset[dim]:
                        longest = length
            passed[dim] = longest
        found = found * wave.longest[dim] + passed[dim]
    return found


@leaf
def event_at(past: Past, events: Ints, n: int, before: int, stamp: int, t: int) -> int:
    """Find the event of what one stamp touched before another did, or begin it as number ``n``."""
    event = past.slots[t, before]
    if (
        event < n
        and events[event, BEFORE] == before
        and events[event, NOW] == stamp
        and events[event, OF] == t
    ):
        return int(event)
    past.slots[t, before] = n
    events[n, BEFORE], events[n, NOW], events[n, OF], events[n, ELEMS] = before, stamp, t, 0
    return n


@leaf
def moves_on(past: Past, wave: Wave, visit: Visit, then: int, events: Ints, counts: Ints) -> bool:
    """Touch at once what a visit before did of a tensor, if nothing else has touched it since.

    ``then``: the last visit that touched the same piece cell by cell, or -1.
    """
    t, at = visit.t, visit.stamp - visit.base
    if then < 0 or wave.at_once[t, then] < 0 or wave.at_work[then] != wave.at_work[at]:
        return False
    counts[2], counts[3], counts[4] = wave.at_once[t, then], 0, 0
    if counts[2]:
        before = past.moved[t, visit.base + then]
        past.moved[t, visit.base + then] = visit.stamp
        event = event_at(past, events, counts[0], before, visit.stamp, t)
        events[event, ELEMS] += counts[2]
        past.own[before, visit.kind] -= counts[2] * visit.width
        counts[0] = max(counts[0], event + 1)
    return True


@leaf
def bring(
    tables: Tables,
    past: Past,
    wave: Wave,
    visit: Visit,
    inner_rows: Ints,
    offset: Ints,
    events: Ints,
    counts: Ints,
) -> None:
    """Touch, cell by cell, what a visit does of a tensor.

    ``counts``: events and first visits so far, then elements touched, of them new and fresh.
    """
    tensors, rows, columns, weights = tables.tensors, tables.rows, tables.columns, tables.weights
    last, moved, own, firsts = past.last, past.moved, past.own, wave.firsts
    t, stamp, known, event = visit.t, visit.stamp, -1, 0
    n, n_first, touched, new, fresh = counts[0], counts[1], 0, 0, 0
    moved[t, stamp], begun = stamp, begun_in(offset)
    for asked in range(wave.ends[t], wave.ends[t + 1]):
        pick = wave.asking[asked, 0]
        if wave.asking[asked, 2] & begun and not works(wave.lengths, pick, offset):
            continue
        first_cell, first_elems, n_around, low, high = enter(
            tensors, rows, columns, weights, t, wave.rows, pick, inner_rows, wave.several
        )
        while True:
            row_cell, row_elems = row_of(
                columns, weights, wave.several, n_around, first_cell, first_elems
            )
            for entry in range(np.uint64(low), np.uint64(high)):
                cell, elems = row_cell, row_elems
                if n_around >= 0:
                    cell += columns[entry]
                    elems *= weights[entry]
                with_it = last[np.uint64(cell)]
                before = moved[t, with_it] if with_it >= 0 else -1
                if before != stamp:  # else another instance brought it in
                    last[np.uint64(cell)] = stamp
                    touched += elems
                    if before < visit.base:
                        new += elems
                        if visit.kind == 0:
                            firsts[n_first, 0], firsts[n_first, 1] = cell, stamp
                            firsts[n_first, 2], firsts[n_first, 3] = t, elems
                            n_first += 1
                    else:
                        wave.at_once[t, with_it - visit.base] = -1
                    if before < visit.low:
                        fresh += elems
                    else:
                        own[before, visit.kind] -= elems * visit.width
                        if before != known:
                            known, event = before, event_at(past, events, n, before, stamp, t)
                            n = max(n, event + 1)
                        events[event, ELEMS] += elems
            if n_around <= 0 or not goes_on(wave.several, n_around):
                break
    counts[0], counts[1], counts[2], counts[3], counts[4] = n, n_first, touched, new, fresh
    wave.at_once[t, stamp - visit.base] = touched


@jit
def gather(
    tables: Tables,
    steps: Steps,
    past: Past,
    wave: Wave,
    outside: int,
    low: int,
    most: int,
    events: Ints,
) -> tuple[int, int, int, Ints]:
    """Touch what one step of a wave does, for each unit of it.

    What a visit touches of a tensor, and one before it did and none since, moves on at once.

    ``low``: the first stamp of the window.  ``most``: events of one visit.
    Returns the numbers of visits, of events and of first visits, and the events.
    """
    inner, digits = tables.loops[outside:], past.digits[outside:]
    n_dims, n_tensors, n_slots = wave.longest.size, tables.tensors.shape[0], wave.touched.shape[0]
    base, n_loops, n_asking = past.state[VISIT] * n_slots, inner.shape[0], int(wave.ends[-1])
    scratch, counts = np.zeros((5, n_dims), np.int64), np.zeros(5, np.int64)
    piece, reach, offset, was, passed = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    inner_rows, steps_to = np.zeros(tables.axes.shape[0], np.int64), places_of(tables, outside)
    has_short = False
    for i in range(n_asking):
        has_short = has_short or wave.asking[i, 2] != 0
    wave.visits[:] = -1
    wave.unseen[:] = 0
    at = 0
    while True:
        stamp = base + at
        ended = begin(inner, digits, 0, n_loops, wave.longest, piece, offset, reach)
        if ended == n_loops:
            for kind in range(2):
                wave.touched[at, kind] = wave.new[at, kind] = wave.fresh[at, kind] = 0
            if counts[0] + most > events.shape[0]:
                events = grown(events, counts[0], most)
            inner_rows[:] = 0
            add_rows(tables.axes, tables.axis_dims, piece, inner_rows)
            wave.at_work[at] = (
                number_at_work(wave, n_asking, offset, was, passed) if has_short else 0
            )
            for t in range(n_tensors):
                kind, width, place = steps.is_along[t], tables.tensors[t, 2], 0
                for i in range(n_loops):
                    place += digits[i] * steps_to[t, i]
                visit = Visit(stamp, base, low, t, kind, width)
                if not moves_on(past, wave, visit, wave.visits[t, place], events, counts):
                    wave.visits[t, place] = at
                    bring(tables, past, wave, visit, inner_rows, offset, events, counts)
                wave.touched[at, kind] += counts[2] * width
                wave.new[at, kind] += counts[3] * width
                wave.fresh[at, kind] += counts[4] * width
                wave.unseen[t] += counts[4]
            past.own[stamp, 0] += wave.touched[at, 0]
            past.own[stamp, 1] += wave.touched[at, 1]
            at += 1
        if step_on(inner, digits, ended) < 0:
            return at, counts[0], counts[1], events


@jit
def count_within(
    tensors: Ints,
    limits: Ints,
    runs: Ints,
    is_along: Ints,
    touched: Ints,
    found: Ints,
    base: int,
    n_visits: int,
    events: Ints,
) -> None:
    """Count what visits bring in again of what earlier ones of the same step touched."""
    held, used = np.zeros(n_visits, np.int64), np.zeros(limits.size, np.int64)
    starts = np.zeros(limits.size, np.int64)
    for r in range(runs.shape[0]):
        piece, n, is_counted = runs[r, 1], 0, False
        for k in range(runs.shape[0]):
            if runs[k, 1] == piece:
                n += runs[k, 0]
                is_counted = is_counted or k < r
        if is_counted:
            continue
        starts[:] = 0
        used[:] = 0
        at = 0
        for visit in range(n_visits):
            first = at
            held[visit] = touched[visit, WHOLE] + piece * touched[visit, EACH]
            while at < events.shape[0] and events[at, NOW] == base + visit:
                before, t = events[at, BEFORE] - base, events[at, OF]
                if before >= 0:
                    elems = events[at, ELEMS] * (piece if is_along[t] else 1)
                    if before + 1 < starts[tensors[t, 4]]:
                        found[t, 0] += elems * n
                    size = elems * tensors[t, 2]
                    held[before] -= size
                    for k in range(limits.size):
                        used[k] -= size if before >= starts[k] else 0
                at += 1
            for k in range(limits.size):
                used[k] += held[visit]
                while starts[k] <= visit and used[k] > limits[k]:
                    used[k] -= held[starts[k]]
                    starts[k] += 1
            for k in range(first, at):
                t = events[k, OF]
                if 0 <= events[k, BEFORE] - base < starts[0]:
                    found[t, 2] += events[k, ELEMS] * (piece if is_along[t] else 1) * n


@jit
def count_between(
    tensors: Ints,
    limits: Ints,
    runs: Ints,
    last_visits: Ints,
    moved: Ints,
    own: Ints,
    new: Ints,
    firsts: Ints,
    found: Ints,
    base: int,
    n_visits: int,
) -> None:
    """Count what steps bring in again of what the step before touched."""
    whole, n = 0, firsts.shape[0]
    tree = np.zeros((n_visits, 1), np.int64)  # bytes by the last visit, if the first is later
    begun = np.zeros(n_visits + 1, np.int64)  # bytes for each unit, by the first visit
    ended = np.zeros(n_visits + 1, np.int64)  # by the last
    for visit in range(n_visits):
        begun[visit + 1] = begun[visit] + new[visit, EACH]
        whole += own[base + visit, WHOLE]
    for visit in range(n_visits - 1, -1, -1):
        ended[visit] = ended[visit + 1] + own[base + visit, EACH]
    end = n - 1
    while end >= 0:
        first, k = firsts[end, 1] - base, end
        while k >= 0 and firsts[k, 1] - base == first:
            cell, t, elems = firsts[k, 0], firsts[k, 2], firsts[k, 3]
            last = moved[t, last_visits[cell]] - base
            held = whole - sum_of(tree, last, 0)
            many = n_pairs_above(runs, ended[last], begun[first + 1], held, limits[0])
            found[t, 2] += elems * many
            k -= 1
        for at in range(k + 1, end + 1):
            size = firsts[at, 3] * tensors[firsts[at, 2], 2]
            last = moved[firsts[at, 2], last_visits[firsts[at, 0]]] - base
            add(tree, last, 0, size)
        for at in range(k + 1, end + 1):
            cell, t, elems = firsts[at, 0], firsts[at, 2], firsts[at, 3]
            last = moved[t, last_visits[cell]] - base
            held, limit = whole - sum_of(tree, last + 1, 0), limits[tensors[t, 4]]
            many = n_pairs_above(runs, ended[last + 1], begun[first], held, limit)
            found[t, 0] += elems * many
        end = k


@leaf
def sum_up(own: Ints, sums: Ints, low: int, end: int) -> None:
    """Sum up what some stamps were the last to touch."""
    for at in range(end - low):
        for kind in range(2):
            sums[at + 1, kind] = sums[at, kind] + own[low + at, kind]


@jit
def count_again(
    tensors: Ints,
    limits: Ints,
    runs: Ints,
    is_along: Ints,
    sums: Ints,
    again: Ints,
    tree: Ints,
    new: Ints,
    unseen: Ints,
    found: Ints,
    base: int,
    n_visits: int,
    events: Ints,
    low: int,
    length: int,
) -> None:
    """Count what a wave brings in again of what earlier ones of the window touched."""
    n_slots, n = new.shape[0], events.shape[0]
    first, final = runs[0, 1], runs[runs.shape[0] - 1, 1]
    size = base - low  # of the window
    again[: size + 1] = 0
    tree[:size] = 0
    sides = np.zeros((6, 2), np.int64)
    fresh, total = sides[0], sides[1]
    for visit in range(n_visits):
        for kind in range(2):
            total[kind] += new[visit, kind]
    for k in range(n):
        t = events[k, OF]
        if events[k, BEFORE] < base:
            at = events[k, BEFORE] - low
            again[at, is_along[t]] += events[k, ELEMS] * tensors[t, 2]
    for at in range(size - 1, -1, -1):
        for kind in range(2):
            again[at, kind] += again[at + 1, kind]
    # Of either kind: since the wave of the first use, of that wave, of the window's end.
    before, left, after, own = sides[2], sides[3], sides[4], sides[5]
    wholes = np.zeros(4, np.int64)
    k = visit = 0
    while visit < n_visits:
        upto = k
        while upto < n and events[upto, NOW] == base + visit:
            upto += 1
        for is_most in range(2):
            # Certainly gone: both visits left out.  Perhaps: both are held.
            for e in range(k, upto):
                stamp, t = events[e, BEFORE], events[e, OF]
                if stamp >= base:
                    continue
                at = stamp - low
                begin = at // n_slots * n_slots
                end = begin + n_slots
                for kind in range(2):
                    before[kind] = sums[size, kind] - sums[end, kind]
                    left[kind] = sums[end, kind] - sums[begin, kind]
                    after[kind] = before[kind] + total[kind] - again[end, kind]
                    own[kind] = left[kind] - again[begin, kind] + again[end, kind]
                limit = limits[0] if is_most else limits[tensors[t, 4]]
                if length * (after[EACH] + own[EACH]) + after[WHOLE] + own[WHOLE] <= limit:
                    continue
                at += 1 - is_most
                edge = sums[end, EACH] - sums[at, EACH]
                edge_whole = sums[end, WHOLE] - sums[at, WHOLE]
                here = before[EACH] + edge + fresh[EACH] + sum_of(tree, at, EACH)
                only = before[WHOLE] + edge_whole + fresh[WHOLE] + sum_of(tree, at, WHOLE)
                if is_along[t]:
                    wholes[0] = before[WHOLE] + left[WHOLE] + fresh[WHOLE]
                    wholes[0] += sum_of(tree, begin, WHOLE)
                    wholes[1] = after[WHOLE] + own[WHOLE]
                    wholes[2] = before[WHOLE] + edge_whole + total[WHOLE] - again[at, WHOLE]
                    wholes[3] = only
                    many = n_units_above(
                        runs, length, after[EACH], before[EACH] + left[EACH], here, wholes, limit
                    )
                else:
                    ends = length * here
                    if first < length:
                        ends = length * before[EACH] + final * edge
                        ends += first * (fresh[EACH] + sum_of(tree, end, EACH))
                    many = 1 if ends + only > limit else 0
                found[t, 2 if is_most else 0] += events[e, ELEMS] * many
            if not is_most:
                for e in range(k, upto):
                    stamp, t = events[e, BEFORE], events[e, OF]
                    if stamp < base:
                        amount = events[e, ELEMS] * tensors[t, 2]
                        add(tree, stamp - low, is_along[t], amount)
                fresh[WHOLE] += unseen[visit, WHOLE]
                fresh[EACH] += unseen[visit, EACH]
        k = upto
        visit += 1


@jit
def count_wave(
    tables: Tables,
    steps: Steps,
    past: Past,
    wave: Wave,
    cut: int,
    base: int,
    low: int,
    sizes: tuple[int, int],
    length: int,
    events: Ints,
) -> bool:
    """Count what a wave brings in with steps that are cut in one way; whether visits fit.

    ``sizes``: visits and first visits.
    """
    n_visits, n_firsts = sizes
    tensors, limits, is_along = tables.tensors, tables.limits, steps.is_along
    found, runs = past.found[cut], steps.runs[steps.ends[cut] : steps.ends[cut + 1]]
    least, each, whole = limits.min(), 0, 0
    for t in range(tensors.shape[0]):
        unseen = wave.unseen[t] * (length if is_along[t] else 1)
        found[t, 0] += unseen
        found[t, 2] += unseen
    for visit in range(n_visits):
        whole += wave.new[visit, WHOLE]
        each += wave.new[visit, EACH]
        touched = wave.touched[visit, WHOLE] + runs[0, 1] * wave.touched[visit, EACH]
        if touched > limits[0]:
            return False
    if runs[0, 1] * each + whole > least:
        count_within(tensors, limits, runs, is_along, wave.touched, found, base, n_visits, events)
    if 2 * runs[0, 1] * each + whole > least:
        firsts = wave.firsts[:n_firsts]
        count_between(
            tensors, limits, runs, past.last, past.moved, past.own, wave.new, firsts, found, base,
            n_visits,
        )  # fmt: skip
    count_again(
        tensors, limits, runs, is_along, wave.sums, wave.again, wave.tree, wave.new, wave.fresh,
        found, base, n_visits, events, low, length,
    )  # fmt: skip
    return True


@jit
def walk_along(
    tables: Tables, steps: Steps, past: Past, picks: int, outside: int, most: int
) -> None:
    """Visit waves in order; count what their steps fetch, at least and at most.

    It ends once no way to cut the steps has visits that fit.  ``outside``: loops outside the steps.
    """
    loops, groups, state, limits = tables.loops, tables.groups, past.state, tables.limits
    n_tensors, n_axes, n_dims = tables.tensors.shape[0], tables.axes.shape[0], tables.sizes.size
    n_slots, n_stamps = 1, past.own.shape[0]
    for i in range(outside, loops.shape[0]):
        n_slots *= loops[i, 3]
    length = 0
    for r in range(steps.ends[1]):  # of each way to cut
        length += steps.runs[r, 0] * steps.runs[r, 1]
    of_stamps = np.zeros((3, n_stamps + 1, 2), np.int64)
    of_visits = np.zeros((3, n_slots, 2), np.int64)
    of_tensors = np.zeros((2, n_tensors, n_slots), np.int64)
    wave = Wave(
        np.zeros((picks, n_dims), np.int64),
        np.zeros((picks, n_axes), np.int64),
        np.zeros(picks, np.int64),
        np.zeros((picks * n_tensors, 3), np.int64),
        np.zeros(n_tensors + 1, np.int64),
        np.zeros(n_dims, np.int64),
        of_stamps[0],
        of_stamps[1],
        of_stamps[2],
        np.empty((past.last.size, 4), np.int64),
        of_visits[0],
        of_visits[1],
        of_visits[2],
        np.zeros(n_tensors, np.int64),
        of_tensors[0],
        of_tensors[1],
        np.zeros(n_slots, np.int64),
        np.zeros((3, n_axes), np.int64),
    )
    widest = most_events(tables.tensors, tables.axes, tables.rows)
    events = np.empty((64, 4), np.int64)
    for _ in range(most):
        ended = outside
        n_there = take(tables, past.digits, outside, wave.lengths, wave.rows, wave.there)
        if n_there:
            base, low, n_fitting = state[VISIT] * n_slots, state[WINDOW] * n_slots, 0
            sum_up(past.own, wave.sums, low, base)
            end = base - low
            start = n_slots
            while start < end:  # waves after which more than the room is touched
                held = wave.sums[end, WHOLE] - wave.sums[start, WHOLE]
                if held + length * (wave.sums[end, EACH] - wave.sums[start, EACH]) <= limits[0]:
                    break
                state[WINDOW] += 1
                start += n_slots
            if low < state[WINDOW] * n_slots:
                low = state[WINDOW] * n_slots
                sum_up(past.own, wave.sums, low, base)
            n_asking = ask(tables, past, wave, n_there)
            n_visits, n_events, n_firsts, events = gather(
                tables, steps, past, wave, outside, low, n_asking * widest, events
            )
            for cut in range(past.fits.size):
                if past.fits[cut]:
                    sizes, seen = (n_visits, n_firsts), events[:n_events]
                    if count_wave(tables, steps, past, wave, cut, base, low, sizes, length, seen):
                        n_fitting += 1
                    else:
                        past.fits[cut] = 0
            if n_fitting == 0:
                state[OVERFLOW] = state[FINISHED] = 1
                return
            state[VISIT] += 1
        elif groups.shape[0] == 1 and groups[0, 1] == outside:
            ended = groups[0, 0]  # nor has a list more waves after an empty one
        if step_on(loops[:outside], past.digits[:outside], ended) < 0:
            state[FINISHED] = 1
            return
