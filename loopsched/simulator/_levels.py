"""Compiled LRU caches of many instances: requests in, requests of the misses out.

Each cache is a pool of nodes, found by hashing and kept in order of use by a
doubly linked list, so that memory grows with what caches hold.  A request is an
element's or line's number, the instance that asks, and what it asks for.
"""

from __future__ import annotations

from typing import NamedTuple

from loopsched.base.arrays import Bytes, Ids, Ints
from loopsched.base.jit import jit
from loopsched.simulator._lru import tensor_of

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


class Caches(NamedTuple):
    """All instances of one level: what they are, what they hold, and what they count.

    ``instance_of`` translates who asks into this level's instance, ``caches_of[t]``
    is the part of it that holds a tensor, or -1: it passes by.  ``seen[i]`` is 1
    once anything of i was written; ``state[0]`` is how many requests are ``out``.
    """

    instance_of: Ids
    caches_of: Ids
    n_parts: int
    is_through: bool
    capacities: Ints
    bits: int
    bounds: Ints
    elements: Ints
    units: Ints
    nodes: Ids
    buckets: Ids
    lists: Ints
    seen: Bytes
    counts: Ints
    margin: int
    out: Ids
    state: Ints


@jit
def clear(nodes: Ids, buckets: Ids, lists: Ints) -> None:
    """Empty every cache."""
    buckets[:] = -1
    for c in range(nodes.shape[0]):
        lists[c, HEAD], lists[c, TAIL], lists[c, FREE], lists[c, USED] = -1, -1, 0, 0
        for i in range(nodes.shape[1]):
            nodes[c, i, NEXT] = i + 1 if i + 1 < nodes.shape[1] else -1


@jit
def send(own: Caches, n_out: int, one: int, instance: int, kind: int) -> int:
    """Put a request out; returns how many there are then."""
    own.out[n_out, 0], own.out[n_out, 1], own.out[n_out, 2] = one, instance, kind
    return n_out + 1


@jit
def evict(own: Caches, c: int, instance: int, n_out: int) -> int:
    """Drop the least recently used of cache c; returns the number of requests out."""
    nodes, lists = own.nodes, own.lists
    node = lists[c, TAIL]
    one = nodes[c, node, ONE]
    b = bucket_of(one, own.bits)
    at = own.buckets[c, b]
    if at == node:
        own.buckets[c, b] = nodes[c, node, NEXT]
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
    t = tensor_of(one, own.bounds)
    lists[c, USED] -= own.units[t]
    if nodes[c, node, DIRTY]:
        own.counts[t, BACKS] += 1
        own.counts[t, WRITE_BYTES] += own.units[t]
        return send(own, n_out, one, instance, WRITE + LINE)
    return n_out


@jit
def touch(nodes: Ids, lists: Ints, c: int, node: int) -> None:
    """Make a node of cache c the most recently used."""
    before = nodes[c, node, BEFORE]
    if before < 0:
        return
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


@jit
def insert(own: Caches, c: int, b: int, one: int, is_dirty: bool) -> None:
    """Hold one more in cache c, the most recently used, whatever room that takes."""
    nodes, lists = own.nodes, own.lists
    node, head = lists[c, FREE], lists[c, HEAD]
    lists[c, FREE] = nodes[c, node, NEXT]
    nodes[c, node, ONE], nodes[c, node, NEXT] = one, own.buckets[c, b]
    nodes[c, node, BEFORE], nodes[c, node, AFTER] = -1, head
    nodes[c, node, DIRTY] = 1 if is_dirty else 0
    own.buckets[c, b] = node
    lists[c, HEAD] = node
    if head >= 0:
        nodes[c, head, BEFORE] = node
    else:
        lists[c, TAIL] = node
    lists[c, USED] += own.units[tensor_of(one, own.bounds)]


@jit
def pass_by(own: Caches, n_out: int, one: int, instance: int, kind: int, size: int) -> int:
    """Hand a request on of what this level does not hold; returns the number of requests out."""
    t, asked = tensor_of(one, own.bounds), kind & (LINE - 1)
    own.counts[t, MISSES] += 1
    if asked == READ or (asked == UPDATE and own.seen[one]):
        own.counts[t, READ_BYTES] += size
    if asked != READ:
        own.counts[t, WRITE_BYTES] += size
        own.seen[one] = 1
    return send(own, n_out, one, instance, kind)


@jit
def level(requests: Ids, first: int, n: int, own: Caches) -> int:
    """Run requests ``first`` to ``n`` through one level; returns where it stopped.

    It stops where fewer than ``margin`` requests more can be put ``out``.
    """
    nodes, lists, counts, seen = own.nodes, own.lists, own.counts, own.seen
    bounds, is_through = own.bounds, own.is_through
    n_out = 0
    k = first
    while k < n and n_out + own.margin <= len(own.out):
        one, kind = requests[k, 0], requests[k, 2]
        instance = own.instance_of[requests[k, 1]]
        k += 1
        t = tensor_of(one, bounds)
        asked = kind & (LINE - 1)
        size = own.units[t] if kind & LINE else own.elements[t]
        counts[t, ACCESSES] += 1
        part = own.caches_of[t]
        if part < 0:
            n_out = pass_by(own, n_out, one, instance, kind, size)
            continue
        c = instance * own.n_parts + part
        b = bucket_of(one, own.bits)
        node = own.buckets[c, b]
        while node >= 0 and nodes[c, node, ONE] != one:
            node = nodes[c, node, NEXT]
        if node >= 0:
            touch(nodes, lists, c, node)
            if asked != READ and not is_through:
                nodes[c, node, DIRTY] = 1
        else:
            counts[t, MISSES] += 1
            if asked == READ or (asked == UPDATE and seen[one]):
                counts[t, READ_BYTES] += own.units[t]
                n_out = send(own, n_out, one, instance, READ + LINE)
            insert(own, c, b, one, asked != READ and not is_through)
            while lists[c, USED] > own.capacities[part]:
                n_out = evict(own, c, instance, n_out)
        if asked != READ:
            seen[one] = 1
            if is_through:
                counts[t, WRITE_BYTES] += size
                n_out = send(own, n_out, one, instance, WRITE + (kind & LINE))
    own.state[0] = n_out
    return k


@jit
def flush(own: Caches) -> int:
    """Empty all caches, least recently used first, as far as there is room for requests."""
    n_out = 0
    for c in range(own.nodes.shape[0]):
        while own.lists[c, TAIL] >= 0:
            if n_out == len(own.out):
                return n_out
            n_out = evict(own, c, c // own.n_parts, n_out)
    return n_out


@jit
def label(ids: Ids, items: Ids, n: int, path: Ints, output: int, requests: Ids, kind: int) -> None:
    """Make requests of accesses: ``kind`` for the output's numbers, reads for all others."""
    for k in range(n):
        requests[k, 0] = ids[k]
        requests[k, 1] = path[items[k]]
        requests[k, 2] = kind if ids[k] >= output else READ
