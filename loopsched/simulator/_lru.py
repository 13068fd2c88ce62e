"""Compiled LRU cache: accesses in a ring, of which the latest of each element counts.

Every access is appended; the oldest entries are dropped as room is needed, and
skipped where the element was accessed again since.  When the ring is full, the
entries that count move to its beginning.
"""

from __future__ import annotations

from loopsched.base.arrays import Ids, Ints
from loopsched.base.jit import jit

# Of `last`: never touched; touched, and evicted since.
NEVER, EVICTED = -1, -2


@jit
def tensor_of(one: int, bounds: Ints) -> int:
    """Find the tensor whose elements or lines ``one`` is among."""
    t = 0
    while one >= bounds[t + 1]:
        t += 1
    return t


@jit
def lru(
    ids: Ids,
    capacity: int,
    bounds: Ints,
    weights: Ints,
    last: Ids,
    ring: Ids,
    state: Ints,
    counts: Ints,
) -> None:
    """Run accesses through the cache.

    ``last[i]`` is where in the ring the latest access of i is.  ``state`` holds
    tail, head and the room in use; ``counts[t]`` misses, first touches and
    evictions.
    """
    tail, head, used = state[0], state[1], state[2]
    size = len(ring)
    for k in range(len(ids)):
        one = ids[k]
        before = last[one]
        if head == size:
            kept = 0
            for i in range(tail, head):
                other = ring[i]
                if last[other] == i:
                    ring[kept] = other
                    last[other] = kept
                    kept += 1
            tail, head = 0, kept
        ring[head] = one
        last[one] = head
        head += 1
        if before < 0:
            t = tensor_of(one, bounds)
            counts[t, 0] += 1
            if before == NEVER:
                counts[t, 1] += 1
            used += weights[t]
            while used > capacity:
                other = ring[tail]
                if last[other] == tail:
                    last[other] = EVICTED
                    gone = tensor_of(other, bounds)
                    used -= weights[gone]
                    counts[gone, 2] += 1
                tail += 1
    state[0], state[1], state[2] = tail, head, used
