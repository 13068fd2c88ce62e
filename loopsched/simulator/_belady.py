"""Compiled optimum of Belady: evict what is next used furthest in the future.

The times at which what is held is used next are set bits of a vector as long
as the trace, with a summary bit for every 64, and so on: the highest set bit is
the next victim's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ids, Ints, Words
from loopsched.base.jit import jit
from loopsched.simulator._lru import tensor_of

_ONE = np.uint64(1)


@jit
def next_uses(ids: Ids, first: int, stop: int, seen: Ids, following: Ids) -> None:
    """Find when each access of a stretch is repeated, later stretches being done.

    ``seen[i]`` is when i is touched next; -1: never again.
    """
    for back in range(stop - first):
        k = stop - 1 - back
        following[k] = seen[ids[k]]
        seen[ids[k]] = k


@jit
def put(at: int, words: Words, starts: Ints) -> None:
    """Set a bit, and those that summarise it."""
    for level in range(len(starts) - 1):
        words[starts[level] + (at >> 6)] |= _ONE << np.uint64(at & 63)
        at >>= 6


@jit
def drop(at: int, words: Words, starts: Ints) -> None:
    """Clear a bit, and those that then summarise nothing."""
    for level in range(len(starts) - 1):
        word = starts[level] + (at >> 6)
        words[word] &= ~(_ONE << np.uint64(at & 63))
        if words[word] != 0:
            return
        at >>= 6


@jit
def highest(words: Words, starts: Ints) -> int:
    """Find the highest set bit; there must be one."""
    at = 0
    for down in range(len(starts) - 1):
        word = words[starts[len(starts) - 2 - down] + at]
        bit = 0
        for shift in (32, 16, 8, 4, 2, 1):
            if word >> np.uint64(bit + shift) != 0:
                bit += shift
        at = (at << 6) + bit
    return at


class Optimum(NamedTuple):
    """A cache that knows what comes.

    ``held[i]`` is 1 for what is in the cache, 0 for what was, -1 for what never
    was.  ``idle`` lists what is held and never used again; the set bits of
    ``words`` are when the others are.  ``state`` holds the length of that list
    and the room in use.
    """

    capacity: int
    bounds: Ints
    weights: Ints
    held: Ids
    idle: Ids
    words: Words
    starts: Ints
    state: Ints


@jit
def belady(ids: Ids, following: Ids, first: int, stop: int, own: Optimum, counts: Ints) -> None:
    """Run a stretch of the trace through the cache; ``counts[t]`` as for `_lru.lru`."""
    bounds, weights, held, idle = own.bounds, own.weights, own.held, own.idle
    words, starts, state = own.words, own.starts, own.state
    n_idle, used = state[0], state[1]
    for k in range(first, stop):
        one = ids[k]
        if held[one] == 1:
            drop(k, words, starts)
        else:
            t = tensor_of(one, bounds)
            counts[t, 0] += 1
            if held[one] < 0:
                counts[t, 1] += 1
            if weights[t] > own.capacity:  # it passes through
                counts[t, 2] += 1
                held[one] = 0
                continue
            while used + weights[t] > own.capacity:
                if n_idle:
                    n_idle -= 1
                    other = idle[n_idle]
                else:
                    at = highest(words, starts)
                    drop(at, words, starts)
                    other = ids[at]
                held[other] = 0
                gone = tensor_of(other, bounds)
                used -= weights[gone]
                counts[gone, 2] += 1
            used += weights[t]
            held[one] = 1
        if following[k] < 0:
            idle[n_idle] = one
            n_idle += 1
        else:
            put(following[k], words, starts)
    state[0], state[1] = n_idle, used
