"""Compiled walk of a loop nest: which addresses its points touch, in order.

Loops are an odometer.  ``loop[i]`` holds step, parent (the next outer loop of
the same dimension, or -1) and the size to cover where there is no parent;
``delta[i, t]`` is how far one iteration of loop i moves in tensor t.
``address[i]`` is where the loops outside i have come to.
"""

from __future__ import annotations

import numpy as np

from loopsched.base.arrays import Ids, Ints
from loopsched.base.jit import jit


@jit
def reset(first: int, loop: Ints, now: Ints, end: Ints, address: Ints, place: Ints) -> None:
    """Set the loops from ``first`` inward to their first iterations."""
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


@jit
def advance(
    loop: Ints, delta: Ints, shift: Ints, now: Ints, end: Ints, address: Ints, place: Ints
) -> bool:
    """Go on to the next run of the innermost loop; False if there is none."""
    i = loop.shape[0] - 2
    while i >= 0:
        now[i] += loop[i, 0]
        if now[i] < end[i]:
            break
        i -= 1
    if i < 0:
        return False
    for t in range(address.shape[1]):
        address[i + 1, t] += delta[i, t]
    for a in range(place.shape[1]):
        place[i + 1, a] += shift[i, a]
    reset(i + 1, loop, now, end, address, place)
    return True


@jit
def fill(
    loop: Ints,
    delta: Ints,
    shift: Ints,
    clip: Ints,
    line_bits: int,
    now: Ints,
    end: Ints,
    address: Ints,
    place: Ints,
    state: Ints,
    accesses: Ints,
    out: Ids,
) -> int:
    """Write the next accesses of one walker, as many as there is room for.

    ``clip[a]`` holds the tensor and size of an axis that runs into padding,
    ``shift`` and ``place`` are its steps and position.  ``state[0]`` becomes 1
    at the end of the walk.  Returns how many were written.
    """
    last = loop.shape[0] - 1
    n_tensors = delta.shape[1]
    n_clips = clip.shape[0]
    step = loop[last, 0]
    low = np.zeros(n_tensors, dtype=np.int64)
    high = np.zeros(n_tensors, dtype=np.int64)
    at = np.zeros(n_tensors, dtype=np.int64)
    written = 0
    while state[0] == 0:
        left = (end[last] - now[last] + step - 1) // step
        n = min(left, (len(out) - written) // n_tensors)
        if n == 0:
            break
        is_whole = True
        if n_clips:
            for t in range(n_tensors):
                low[t], high[t] = 0, n
            for a in range(n_clips):
                t, size = clip[a, 0], clip[a, 1]
                first, move = place[last + 1, a], shift[last, a]
                # Positions never fall along a loop: those inside are one stretch.
                if first < 0:
                    skipped = n if move == 0 else min(n, (-first + move - 1) // move)
                    low[t] = max(low[t], skipped)
                if first + (n - 1) * move >= size:
                    kept = 0
                    if first < size:
                        kept = n if move == 0 else (size - first + move - 1) // move
                    high[t] = min(high[t], kept)
            for t in range(n_tensors):
                if low[t] > 0 or high[t] < n:
                    is_whole = False
        if is_whole:
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
            now[last] += n * step
            for t in range(n_tensors):
                address[last + 1, t] += n * delta[last, t]
            for a in range(n_clips):
                place[last + 1, a] += n * shift[last, a]
        elif not advance(loop, delta, shift, now, end, address, place):
            state[0] = 1
    return written


@jit
def fill_group(
    loop: Ints,
    delta: Ints,
    shift: Ints,
    clip: Ints,
    line_bits: int,
    now: Ints,
    end: Ints,
    address: Ints,
    place: Ints,
    bases: Ints,
    places: Ints,
    inner: Ints,
    lengths: Ints,
    state: Ints,
    accesses: Ints,
    out: Ids,
    items: Ids,
) -> int:
    """Write the next accesses of items that walk the same loops in lock-step.

    ``bases[i, t]`` is where item i begins in tensor t, ``places`` the same for
    axes that run into padding.  Items may be shorter than the loops: item i is
    left out where ``now[inner[d]]`` is not below ``lengths[i, d]``.
    ``state[1]`` is the item whose turn it is.  ``items`` gets who accesses.
    """
    last = loop.shape[0] - 1
    n_tensors = delta.shape[1]
    n_clips = clip.shape[0]
    n_items = bases.shape[0]
    step = loop[last, 0]
    is_even = n_clips == 0 and lengths.shape[1] == 0
    written = 0
    item = state[1]
    while state[0] == 0:
        fitting = min(n_items - item, (len(out) - written) // n_tensors)
        if fitting == 0:
            break
        stop = item + fitting
        if is_even:
            for i in range(item, stop):
                for t in range(n_tensors):
                    out[written] = (bases[i, t] + address[last + 1, t]) >> line_bits
                    items[written] = i
                    written += 1
            for t in range(n_tensors):
                accesses[t] += fitting
        else:
            for i in range(item, stop):
                is_there = True
                for d in range(lengths.shape[1]):
                    if now[inner[d]] >= lengths[i, d]:
                        is_there = False
                if not is_there:
                    continue
                for t in range(n_tensors):
                    is_stored = True
                    for a in range(n_clips):
                        if clip[a, 0] == t:
                            at = places[i, a] + place[last + 1, a]
                            if at < 0 or at >= clip[a, 1]:
                                is_stored = False
                    if is_stored:
                        out[written] = (bases[i, t] + address[last + 1, t]) >> line_bits
                        items[written] = i
                        written += 1
                        accesses[t] += 1
        item = stop
        if item < n_items:
            break
        item = 0
        now[last] += step
        if now[last] < end[last]:
            for t in range(n_tensors):
                address[last + 1, t] += delta[last, t]
            for a in range(n_clips):
                place[last + 1, a] += shift[last, a]
        elif not advance(loop, delta, shift, now, end, address, place):
            state[0] = 1
    state[1] = item
    return written
