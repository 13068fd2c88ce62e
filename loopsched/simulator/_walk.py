"""Compiled walk of a loop nest: which addresses its points touch, in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ids, Ints
from loopsched.base.jit import jit, step


class Walk(NamedTuple):
    """Loops, which are an odometer, and where a walk along them stands.

    ``loop[i]`` holds step, parent (the next outer loop of the same dimension,
    or -1) and the size to cover where there is no parent; ``delta[i, t]`` is
    how far one iteration of loop i moves in tensor t.  ``clip[a]`` holds the
    tensor and size of an axis that runs into padding, ``shift`` and ``place``
    are its steps and position.  ``address[i]`` is where the loops outside i
    have come to.
    """

    loop: Ints
    delta: Ints
    shift: Ints
    clip: Ints
    line_bits: int
    now: Ints
    end: Ints
    address: Ints
    place: Ints


@jit
def reset(walk: Walk, first: int) -> None:
    """Set the loops from ``first`` inward to their first iterations."""
    loop, now, end, address, place = walk.loop, walk.now, walk.end, walk.address, walk.place
    for i in range(first, loop.shape[0]):
        parent = loop[i, 1]
        if parent < 0:
            now[i] = 0
            end[i] = loop[i, 2]
        else:
            now[i] = now[parent]
            end[i] = min(now[parent] + loop[parent, 0], end[parent])
        for t in range(address.shape[1]):
            address[i + 1, t] = address[i, t]
        for a in range(place.shape[1]):
            place[i + 1, a] = place[i, a]


@step
def step_along(walk: Walk, i: int, many: int) -> None:
    """Move by iterations of loop i: addresses, and positions that may be in the padding."""
    for t in range(walk.delta.shape[1]):
        walk.address[i + 1, t] += many * walk.delta[i, t]
    for a in range(walk.shift.shape[1]):
        walk.place[i + 1, a] += many * walk.shift[i, a]


@step
def advance(walk: Walk) -> bool:
    """Go on to the next run of the innermost loop; False if there is none."""
    i = walk.loop.shape[0] - 2
    while i >= 0:
        walk.now[i] += walk.loop[i, 0]
        if walk.now[i] < walk.end[i]:
            break
        i -= 1
    if i < 0:
        return False
    step_along(walk, i, 1)
    reset(walk, i + 1)
    return True


@step
def find_stored(walk: Walk, n: int, low: Ints, high: Ints) -> bool:
    """Find which of the next ``n`` iterations are stored, by tensor; True if all are."""
    last = walk.loop.shape[0] - 1
    low[:] = 0
    high[:] = n
    for a in range(walk.clip.shape[0]):
        t, size = walk.clip[a, 0], walk.clip[a, 1]
        first, move = walk.place[last + 1, a], walk.shift[last, a]
        # Positions never fall along a loop: those inside are one stretch.
        if first < 0:
            skipped = n if move == 0 else min(n, (-first + move - 1) // move)
            low[t] = max(low[t], skipped)
        if first + (n - 1) * move >= size:
            kept = 0
            if first < size:
                kept = n if move == 0 else (size - first + move - 1) // move
            high[t] = min(high[t], kept)
    return bool(low.max() == 0 and high.min() == n)


@jit
def fill(walk: Walk, state: Ints, accesses: Ints, out: Ids) -> int:
    """Write the next accesses of one walker, as many as there is room for.

    ``state[0]`` becomes 1 at the end of the walk.  Returns how many were written.
    """
    delta, address, line_bits = walk.delta, walk.address, walk.line_bits
    last = walk.loop.shape[0] - 1
    n_tensors = delta.shape[1]
    stride = walk.loop[last, 0]
    low = np.zeros(n_tensors, dtype=np.int64)
    high = np.zeros(n_tensors, dtype=np.int64)
    at = np.zeros(n_tensors, dtype=np.int64)
    written = 0
    while state[0] == 0:
        left = (walk.end[last] - walk.now[last] + stride - 1) // stride
        n = min(left, (len(out) - written) // n_tensors)
        if n == 0:
            break
        if walk.clip.shape[0] == 0 or find_stored(walk, n, low, high):
            for t in range(n_tensors):
                accesses[t] += n
            if n_tensors == 3:
                at0, at1, at2 = address[last + 1, 0], address[last + 1, 1], address[last + 1, 2]
                by0, by1, by2 = delta[last, 0], delta[last, 1], delta[last, 2]
                for _ in range(n):
                    out[written] = at0 >> line_bits
                    out[written + 1] = at1 >> line_bits
                    out[written + 2] = at2 >> line_bits
                    at0 += by0
                    at1 += by1
                    at2 += by2
                    written += 3
            else:
                for t in range(n_tensors):
                    at[t] = address[last + 1, t]
                for _ in range(n):
                    for t in range(n_tensors):
                        out[written] = at[t] >> line_bits
                        at[t] += delta[last, t]
                        written += 1
        else:
            for t in range(n_tensors):
                at[t] = address[last + 1, t]
                accesses[t] += max(0, high[t] - low[t])
            for k in range(n):
                for t in range(n_tensors):
                    if low[t] <= k < high[t]:
                        out[written] = at[t] >> line_bits
                        written += 1
                    at[t] += delta[last, t]
        if n < left:
            walk.now[last] += n * stride
            step_along(walk, last, n)
        elif not advance(walk):
            state[0] = 1
    return written


class Items(NamedTuple):
    """Items that walk the same loops in lock-step.

    ``bases[i, t]`` is where item i begins in tensor t, ``places`` the same for
    axes that run into padding.  Items may be shorter than the loops: item i is
    left out where ``now[inner[d]]`` is not below ``lengths[i, d]``.
    """

    bases: Ints
    places: Ints
    inner: Ints
    lengths: Ints


@jit
def fill_group(walk: Walk, group: Items, state: Ints, accesses: Ints, out: Ids, items: Ids) -> int:
    """Write the next accesses of a group, and which item makes each, as `fill` does.

    ``state[1]`` is the item whose turn it is.
    """
    bases, lengths, clip, now = group.bases, group.lengths, walk.clip, walk.now
    last = walk.loop.shape[0] - 1
    here, stands = walk.address[last + 1], walk.place[last + 1]
    n_items, n_tensors = bases.shape
    written = 0
    item = state[1]
    while state[0] == 0:
        fitting = min(n_items - item, (len(out) - written) // n_tensors)
        if fitting == 0:
            break
        stop = item + fitting
        for i in range(item, stop):
            is_there = True
            for d in range(lengths.shape[1]):
                if now[group.inner[d]] >= lengths[i, d]:
                    is_there = False
            if not is_there:
                continue
            for t in range(n_tensors):
                is_stored = True
                for a in range(clip.shape[0]):
                    if clip[a, 0] == t:
                        at = group.places[i, a] + stands[a]
                        if at < 0 or at >= clip[a, 1]:
                            is_stored = False
                if is_stored:
                    out[written] = (bases[i, t] + here[t]) >> walk.line_bits
                    items[written] = i
                    written += 1
                    accesses[t] += 1
        item = stop
        if item < n_items:
            break
        item = 0
        now[last] += walk.loop[last, 0]
        if now[last] < walk.end[last]:
            step_along(walk, last, 1)
        elif not advance(walk):
            state[0] = 1
    state[1] = item
    return written
