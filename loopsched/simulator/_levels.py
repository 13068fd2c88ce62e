"""Compiled LRU caches of many instances: requests in, requests of the misses out.

Each cache is a pool of nodes, found by hashing and kept in order of use by a
doubly linked list, so that memory grows with what caches hold.  A request is an
element's or line's number, the instance that asks, and what it asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopsched.base.jit import jit
from loopsched.simulator._lru import tensor_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Ids = NDArray[np.int32]

# What is asked for: read; write all of it; read and write it in place.
READ, WRITE, UPDATE = 0, 1, 2
# Added where a whole line, not an element of it, is asked for.
LINE = 4

# Columns of `counts`.
ACCESSES, MISSES, BACKS, READ_BYTES, WRITE_BYTES = 0, 1, 2, 3, 4

# Columns of `nodes`: what is held, next in the bucket, before and after in order of use, dirty.
ONE, NEXT, BEFORE, AFTER, DIRTY = 0, 1, 2, 3, 4

# Columns of `lists`: most and least recently used, first free, room in use.
HEAD, TAIL, FREE, USED = 0, 1, 2, 3


@jit
def bucket_of(one: int, bits: int) -> int:
    """Spread numbers over 2**bits buckets; with 31 bits each has its own."""
    if bits == 31:
        return one
    return ((int(one) * 2654435769) & 0xFFFFFFFF) >> (32 - bits)


@jit
def clear(nodes: Ids, buckets: Ids, lists: Ints) -> None:
    """Empty every cache."""
    buckets[:] = -1
    for c in range(nodes.shape[0]):
        lists[c, HEAD], lists[c, TAIL], lists[c, FREE], lists[c, USED] = -1, -1, 0, 0
        for i in range(nodes.shape[1]):
            nodes[c, i, NEXT] = i + 1 if i + 1 < nodes.shape[1] else -1


@jit
def evict(
    c: int,
    instance: int,
    bits: int,
    bounds: Ints,
    units: Ints,
    nodes: Ids,
    buckets: Ids,
    lists: Ints,
    counts: Ints,
    out: Ids,
    n_out: int,
) -> int:
    """Drop the least recently used of cache c; returns the number of requests out."""
    node = lists[c, TAIL]
    one = nodes[c, node, ONE]
    b = bucket_of(one, bits)
    at = buckets[c, b]
    if at == node:
        buckets[c, b] = nodes[c, node, NEXT]
    else:
        while nodes[c, at, NEXT] != node:
            at = nodes[c, at, NEXT]
        nodes[c, at, NEXT] = nodes[c, node, NEXT]
    before = nodes[c, node, BEFORE]
    lists[c, TAIL] = before
    if before < 0:
        lists[c, HEAD] = -1
    else:
        nodes[c, before, AFTER] = -1
    nodes[c, node, NEXT] = lists[c, FREE]
    lists[c, FREE] = node
    t = tensor_of(one, bounds)
    lists[c, USED] -= units[t]
    if nodes[c, node, DIRTY]:
        counts[t, BACKS] += 1
        counts[t, WRITE_BYTES] += units[t]
        out[n_out, 0], out[n_out, 1], out[n_out, 2] = one, instance, WRITE + LINE
        n_out += 1
    return n_out


@jit
def level(
    requests: Ids,
    first: int,
    n: int,
    instance_of: Ids,
    caches_of: Ids,
    n_parts: int,
    is_through: bool,
    capacities: Ints,
    bits: int,
    bounds: Ints,
    elements: Ints,
    units: Ints,
    nodes: Ids,
    buckets: Ids,
    lists: Ints,
    seen: NDArray[np.uint8],
    counts: Ints,
    margin: int,
    out: Ids,
    state: Ints,
) -> int:
    """Run requests ``first`` to ``n`` through one level; returns where it stopped.

    It stops where fewer than ``margin`` requests more can be put ``out``;
    ``state[0]`` is how many were.  ``instance_of`` translates who asks into this
    level's instance, ``caches_of[t]`` is the part of it that holds a tensor, or
    -1: it passes by.  ``seen[i]`` is 1 once anything of i was written.
    """
    n_out = 0
    k = first
    while k < n and n_out + margin <= len(out):
        one, kind = requests[k, 0], requests[k, 2]
        instance = instance_of[requests[k, 1]]
        k += 1
        t = tensor_of(one, bounds)
        asked = kind & (LINE - 1)
        size = units[t] if kind & LINE else elements[t]
        counts[t, ACCESSES] += 1
        part = caches_of[t]
        if part < 0:
            counts[t, MISSES] += 1
            if asked == READ or (asked == UPDATE and seen[one]):
                counts[t, READ_BYTES] += size
            if asked != READ:
                counts[t, WRITE_BYTES] += size
                seen[one] = 1
            out[n_out, 0], out[n_out, 1], out[n_out, 2] = one, instance, kind
            n_out += 1
            continue
        c = instance * n_parts + part
        b = bucket_of(one, bits)
        node = buckets[c, b]
        while node >= 0 and nodes[c, node, ONE] != one:
            node = nodes[c, node, NEXT]
        if node >= 0:
            before = nodes[c, node, BEFORE]
            if before >= 0:  # else it is the most recently used
                after = nodes[c, node, AFTER]
                nodes[c, before, AFTER] = after
                if after >= 0:
                    nodes[c, after, BEFORE] = before
                else:
                    lists[c, TAIL] = before
                head = lists[c, HEAD]
                nodes[c, node, BEFORE], nodes[c, node, AFTER] = -1, head
                nodes[c, head, BEFORE] = node
                lists[c, HEAD] = node
            if asked != READ:
                seen[one] = 1
                if not is_through:
                    nodes[c, node, DIRTY] = 1
        else:
            counts[t, MISSES] += 1
            if asked == READ or (asked == UPDATE and seen[one]):
                counts[t, READ_BYTES] += units[t]
                out[n_out, 0], out[n_out, 1], out[n_out, 2] = one, instance, READ + LINE
                n_out += 1
            node = lists[c, FREE]
            lists[c, FREE] = nodes[c, node, NEXT]
            head = lists[c, HEAD]
            nodes[c, node, ONE], nodes[c, node, NEXT] = one, buckets[c, b]
            nodes[c, node, BEFORE], nodes[c, node, AFTER] = -1, head
            nodes[c, node, DIRTY] = 1 if asked != READ and not is_through else 0
            buckets[c, b] = node
            lists[c, HEAD] = node
            if head >= 0:
                nodes[c, head, BEFORE] = node
            else:
                lists[c, TAIL] = node
            if asked != READ:
                seen[one] = 1
            lists[c, USED] += units[t]
            while lists[c, USED] > capacities[part]:
                n_out = evict(
                    c, instance, bits, bounds, units, nodes, buckets, lists, counts, out, n_out
                )
        if is_through and asked != READ:
            counts[t, WRITE_BYTES] += size
            out[n_out, 0], out[n_out, 1], out[n_out, 2] = one, instance, WRITE + (kind & LINE)
            n_out += 1
    state[0] = n_out
    return k


@jit
def flush(
    n_parts: int,
    bits: int,
    bounds: Ints,
    units: Ints,
    nodes: Ids,
    buckets: Ids,
    lists: Ints,
    counts: Ints,
    out: Ids,
) -> int:
    """Empty all caches, least recently used first, as far as there is room for requests."""
    n_out = 0
    for c in range(nodes.shape[0]):
        while lists[c, TAIL] >= 0:
            if n_out == len(out):
                return n_out
            n_out = evict(
                c, c // n_parts, bits, bounds, units, nodes, buckets, lists, counts, out, n_out
            )
    return n_out


@jit
def label(ids: Ids, items: Ids, n: int, path: Ints, output: int, requests: Ids, kind: int) -> None:
    """Make requests of accesses: ``kind`` for the output's numbers, reads for all others."""
    for k in range(n):
        requests[k, 0] = ids[k]
        requests[k, 1] = path[items[k]]
        requests[k, 2] = kind if ids[k] >= output else READ
