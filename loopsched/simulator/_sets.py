"""Compiled set-associative cache: LRU lists over the ways of each set, or random victims."""

from __future__ import annotations

from typing import NamedTuple

from loopsched.base.arrays import Ids, Ints
from loopsched.base.jit import jit
from loopsched.simulator._lru import EVICTED, NEVER, tensor_of

_ALL = (1 << 32) - 1


@jit
def draw(state: Ints, many: int) -> int:
    """Draw a number below ``many`` (at most 2**31) from a generator of 32 bits."""
    # Marsaglia, Xorshift RNGs (2003), the triple 13, 17, 5.
    x = int(state[0])
    x ^= (x << 13) & _ALL
    x ^= x >> 17
    x ^= (x << 5) & _ALL
    state[0] = x
    return (x * many) >> 32


class Sets(NamedTuple):
    """A cache of ``n_sets`` sets, and its lines.

    ``starts[t]`` is what to add to a line's number for its place in memory.
    ``where[i]`` is the slot of line i; slots of one set are neighbours.
    ``heads[s]`` is the most recently used slot of a set, ``before`` and
    ``after`` make its slots a ring.  ``missed`` takes the lines of the first misses.
    """

    n_sets: int
    ways: int
    is_random: bool
    starts: Ints
    where: Ids
    lines: Ids
    before: Ids
    after: Ids
    heads: Ids
    filled: Ids
    random: Ints
    missed: Ids


@jit
def sets(ids: Ids, bounds: Ints, own: Sets, counts: Ints) -> int:
    """Run accesses of lines through the cache; ``counts[t]`` as for `_lru.lru`.

    Returns how many lines it ``missed``, as far as they found room.
    """
    ways, is_random, where, lines = own.ways, own.is_random, own.where, own.lines
    before, after, heads, filled = own.before, own.after, own.heads, own.filled
    missed, n_missed = own.missed, 0
    for k in range(len(ids)):
        one = ids[k]
        slot = where[one]
        if slot >= 0:
            if is_random:
                continue
            s = slot // ways
            head = heads[s]
            if slot == head:
                continue
            tail = before[head]
            if slot == tail:  # the ring only turns
                heads[s] = slot
                continue
            after[before[slot]] = after[slot]
            before[after[slot]] = before[slot]
            before[slot], after[slot] = tail, head
            after[tail], before[head] = slot, slot
            heads[s] = slot
            continue
        t = tensor_of(one, bounds)
        counts[t, 0] += 1
        if n_missed < len(missed):
            missed[n_missed] = one
            n_missed += 1
        if slot == NEVER:
            counts[t, 1] += 1
        s = (one + own.starts[t]) % own.n_sets
        if filled[s] < ways:
            slot = s * ways + filled[s]
            filled[s] += 1
            if filled[s] == 1:
                before[slot], after[slot] = slot, slot
            else:
                head = heads[s]
                tail = before[head]
                before[slot], after[slot] = tail, head
                after[tail], before[head] = slot, slot
        else:
            slot = s * ways + draw(own.random, ways) if is_random else before[heads[s]]
            gone = lines[slot]
            where[gone] = EVICTED
            counts[tensor_of(gone, bounds), 2] += 1
        heads[s] = slot
        lines[slot] = one
        where[one] = slot
    return n_missed
