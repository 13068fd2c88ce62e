"""The compiled walk of waves that all go along one dimension, step by step.

Each instance has an item, and all of them go through the same pieces of a dimension that is
otherwise left whole, innermost.  So every step of a wave touches one piece of each tensor that
has the dimension, and the wave's whole share of each that has not.  A visit is one step, as in
`loopsched.models._replay_kernels.walk`, and what is counted is the same; but steps are not
followed one by one.  What is touched between two uses of an element is linear in the step, for
pieces of one length, so that those where it is too much are counted at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit
from loopsched.models._replay_kernels import (
    FINISHED,
    OVERFLOW,
    VISIT,
    WINDOW,
    Tables,
    step_on,
    take,
)

# Columns of what is known of a wave: bytes of which it was the last to touch, of what has not the
# dimension and, for each unit of it, of what has; 1 + the last wave to touch some of them again;
# elements of each tensor that this one did.
WHOLE, EACH, AGAIN, ELEMS = range(4)
HELD = WINDOW + 1


class Steps(NamedTuple):
    """Steps inside the loops that `Tables` have.

    ``runs``: steps of one length in a row: how many, and the length, the longest first.
    ``is_along``: 1 for a tensor that has the dimension.
    """

    runs: Ints
    is_along: Ints


class Past(NamedTuple):
    """What the waves so far leave behind, so that a walk can be taken up again.

    ``waves``: see the constants above.  ``sums``: Fenwick trees of the first two.
    """

    digits: Ints
    state: Ints
    last: Ints
    waves: Ints
    sums: Ints
    found: Ints


class Wave(NamedTuple):
    """What a wave works on: as `take` finds it, then for each tensor, then waves.

    ``touched``: elements of each tensor, bytes of what has not the dimension and, for each unit,
    of what has.  ``fresh``: those that nothing of the window has touched, nor the wave before it.
    ``seen``: waves that have touched the others, the last first.
    """

    lengths: Ints
    begins: Ints
    there: Ints
    now: Ints
    touched: Ints
    fresh: Ints
    seen: Ints


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


@jit
def n_lost(
    runs: Ints,
    length: int,
    after: int,
    before: int,
    own: int,
    left: int,
    whole: int,
    limit: int,
) -> int:
    """Count the units whose two uses, and all between, touch more than a limit.

    Parameters
    ----------
    runs : array of (steps, units a step)
    length : units in all of them
    after, before : bytes for each unit that waves since the first use were the last to touch,
        of the units that this wave has gone through, and of the others
    own, left : the same of the wave of the first use
    whole : bytes of what has not the dimension
    """
    found = begin = 0
    for r in range(runs.shape[0]):
        n, piece = runs[r, 0], runs[r, 1]
        end = begin + piece
        first = end * after + piece * own + (length - end) * (before + left) + whole
        found += piece * n_above(first, piece * (after - before - left), n, limit)
        begin += n * piece
    return found


@jit
def n_gone(
    runs: Ints,
    length: int,
    after: int,
    before: int,
    left: int,
    wholes: Ints,
    limit: int,
) -> int:
    """Count the units between whose uses more than a limit is touched, both uses left out.

    As `n_lost`; ``wholes`` are of the first step, of those in the middle, of the last, and of
    one that is all.
    """
    found = begin = 0
    last = runs.shape[0] - 1
    for r in range(last + 1):
        n, piece, begun = runs[r, 0], runs[r, 1], begin
        begin += n * piece
        if r == 0:
            whole = wholes[3] if piece == length else wholes[0]
            if length * before + (length - piece) * left + whole > limit:
                found += piece
            n, begun = n - 1, piece
        if r == last and piece < length:
            if (length - piece) * after + piece * before + wholes[2] > limit:
                found += piece
            n -= 1
        first = begun * after + (length - begun) * before + (length - begun - piece) * left
        found += piece * n_above(first + wholes[1], piece * (after - before - left), n, limit)
    return found


@jit
def n_heavy(runs: Ints, each: int, whole: int, limit: int) -> int:
    """Count the steps, but the first, that touch more than a limit with the one before."""
    found = 0
    for r in range(runs.shape[0]):
        if 2 * runs[r, 1] * each + whole > limit:
            found += runs[r, 0] - 1
        if r and (runs[r - 1, 1] + runs[r, 1]) * each + whole > limit:
            found += 1
    return found


@jit
def gather(tables: Tables, steps: Steps, past: Past, wave: Wave, n_there: int, length: int) -> int:
    """Touch what a wave does, and count the elements of each tensor; returns how many are seen."""
    number, window = past.state[VISIT], past.state[WINDOW]
    tensors, rows, now, begins = tables.tensors, tables.rows, wave.now, wave.begins
    touched, fresh, seen, waves = wave.touched, wave.fresh, wave.seen, past.waves
    n_seen = 0
    for t in range(tensors.shape[0]):
        fresh[t] = 0
    for t in range(touched.size):
        touched[t] = 0
    for i in range(n_there):
        for t in range(tensors.shape[0]):
            first, end = tensors[t, 0], tensors[t, 1]
            is_done = False
            for a in range(first, end):
                now[a] = rows[begins[wave.there[i], a]]
                is_done = is_done or now[a] == rows[begins[wave.there[i], a] + 1]
            while not is_done:
                cell, elems = tensors[t, 3], 1
                for a in range(first, end):
                    cell += tables.columns[now[a]]
                    elems *= tables.weights[now[a]]
                before = past.last[cell]
                if before != number:  # else another instance brought it in
                    past.last[cell] = number
                    units = length if steps.is_along[t] else 1
                    elems //= units
                    size = elems * tensors[t, 2]
                    touched[t] += elems
                    touched[tensors.shape[0] + steps.is_along[t]] += size
                    if before < window:
                        past.state[HELD] += size * units
                    if before < 0 or before < window - 1:
                        fresh[t] += elems
                    else:
                        if waves[before, AGAIN] != number + 1:
                            waves[before, AGAIN] = number + 1
                            for k in range(tensors.shape[0]):
                                waves[before, ELEMS + k] = 0
                            at = n_seen
                            while at and seen[at - 1] < before:
                                seen[at] = seen[at - 1]
                                at -= 1
                            seen[at] = before
                            n_seen += 1
                        waves[before, ELEMS + t] += elems
                a = end - 1
                while a >= first:
                    now[a] += 1
                    if now[a] < rows[begins[wave.there[i], a] + 1]:
                        break
                    now[a] = rows[begins[wave.there[i], a]]
                    a -= 1
                is_done = a < first
    return n_seen


@jit
def add(sums: Ints, wave: int, kind: int, size: int) -> None:
    """Add to a wave's bytes in a Fenwick tree."""
    while wave < sums.shape[0]:
        sums[wave, kind] += size
        wave |= wave + 1


@jit
def sum_of(sums: Ints, n: int, kind: int) -> int:
    """Sum up the bytes of the first waves."""
    found = 0
    while n > 0:
        found += sums[n - 1, kind]
        n &= n - 1
    return found


@jit
def count(tables: Tables, steps: Steps, past: Past, wave: Wave, n_seen: int, length: int) -> None:
    """Count what a wave's steps bring in: what is new, gone for certain, or perhaps."""
    tensors, limits, runs, is_along = tables.tensors, tables.limits, steps.runs, steps.is_along
    number, waves, sums, found = past.state[VISIT], past.waves, past.sums, past.found
    n_tensors, fresh = tensors.shape[0], wave.fresh
    whole, each = int(wave.touched[n_tensors]), int(wave.touched[n_tensors + 1])
    heavy = n_heavy(runs, each, whole, limits[0])
    first, final = runs[0, 1], runs[runs.shape[0] - 1, 1]
    for t in range(n_tensors):
        units = length if is_along[t] else 1
        found[t, 0] += fresh[t] * units
        found[t, 2] += fresh[t] * units
        if not is_along[t]:
            found[t, 2] += wave.touched[t] * heavy
    wholes = np.zeros(4, np.int64)
    all_wholes, all_eaches = sum_of(sums, number, WHOLE), sum_of(sums, number, EACH)
    again = again_whole = 0  # what later ones of those seen are no longer the last to touch
    for i in range(n_seen):
        since = wave.seen[i]
        own, whole_own = waves[since, EACH], waves[since, WHOLE]
        left, whole_left = own, whole_own
        for t in range(n_tensors):
            size = waves[since, ELEMS + t] * tensors[t, 2]
            if is_along[t]:
                own -= size
            else:
                whole_own -= size
        before = all_eaches - sum_of(sums, since + 1, EACH)
        whole_before = all_wholes - sum_of(sums, since + 1, WHOLE)
        after, whole_after = before - again + each, whole_before - again_whole + whole
        wholes[0] = whole_before + whole_left
        wholes[1] = whole_after + whole_own
        wholes[2] = whole_after
        wholes[3] = whole_before
        lost = n_lost(runs, length, after, before, own, left, wholes[1], limits[0])
        # The last step of that wave and the first of this one.
        if first == length:
            ends = length * (after + own)
        else:
            ends = first * after + (length - first) * before + final * left
        is_lost = ends + wholes[1] > limits[0]
        for t in range(n_tensors):
            elems = waves[since, ELEMS + t]
            limit = limits[tensors[t, 4]]
            if elems and is_along[t]:
                found[t, 2] += elems * lost
                found[t, 0] += elems * n_gone(runs, length, after, before, left, wholes, limit)
            elif elems:
                found[t, 2] += elems if is_lost else 0
                found[t, 0] += elems if length * before + whole_before > limit else 0
        again, again_whole = again + left - own, again_whole + whole_left - whole_own
        waves[since, EACH], waves[since, WHOLE] = own, whole_own
        for t in range(n_tensors):
            add(sums, since, is_along[t], -waves[since, ELEMS + t] * tensors[t, 2])
    waves[number, WHOLE], waves[number, EACH] = whole, each
    add(sums, number, WHOLE, whole)
    add(sums, number, EACH, each)


@jit
def walk_along(
    tables: Tables, steps: Steps, past: Past, picks: int, length: int, most: int
) -> None:
    """Visit waves in order; count what their steps fetch, at least and at most.

    It ends at the first step that does not fit.  ``length``: of all steps together.
    """
    loops, groups, state = tables.loops, tables.groups, past.state
    n_loops, n_tensors, n_axes = loops.shape[0], tables.tensors.shape[0], tables.axes.shape[0]
    wave = Wave(
        np.zeros((picks, tables.sizes.size), np.int64),
        np.zeros((picks, n_axes), np.int64),
        np.zeros(picks, np.int64),
        np.zeros(n_axes, np.int64),
        np.zeros(n_tensors + 2, np.int64),
        np.zeros(n_tensors, np.int64),
        np.zeros(past.waves.shape[0], np.int64),
    )
    for _ in range(most):
        number, ended = state[VISIT], n_loops
        n_there = take(tables, past.digits, n_loops, wave.lengths, wave.begins, wave.there)
        if n_there:
            n_seen = gather(tables, steps, past, wave, n_there, length)
            held = wave.touched[n_tensors] + steps.runs[0, 1] * wave.touched[n_tensors + 1]
            if held > tables.limits[0]:
                state[OVERFLOW] = state[FINISHED] = 1
                return
            count(tables, steps, past, wave, n_seen, length)
            start = state[WINDOW]
            while start <= number and state[HELD] > tables.limits[0]:
                state[HELD] -= past.waves[start, WHOLE] + length * past.waves[start, EACH]
                start += 1
            state[WINDOW] = start
            state[VISIT] += 1
        elif groups.shape[0] == 1 and groups[0, 1] == n_loops:
            ended = groups[0, 0]  # nor has a list more waves after an empty one
        if step_on(loops, past.digits, ended) < 0:
            state[FINISHED] = 1
            return
