"""Compiled stack distances: how much else was touched since the last time.

Time is a vector of bits: the latest access of an element sets as many bits as
the element has units of size, earlier ones are cleared.  The distance of an
access is the number of bits set since the element's last one, its own included.
Bits are counted in blocks of 16 to the power of k words, nearest first, and
never beyond the present, so that near reuse costs little.  When the vector is
full, the set bits move to its beginning: it need only be a few times as long
as what the problem touches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ids, Ints, Words
from loopsched.base.jit import is_enabled, jit
from loopsched.simulator._lru import tensor_of

_FIVES = np.uint64(0x5555555555555555)
_THREES = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
_ONE, _TWO, _FOUR, _TOP = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def _ones_of(word: np.uint64) -> int:
    """Count the set bits of a word, in a way that compilers know as one instruction."""
    word = word - ((word >> _ONE) & _FIVES)
    word = (word & _THREES) + ((word >> _TWO) & _THREES)
    word = (word + (word >> _FOUR)) & _NIBBLES
    return int(np.int64((word * _BYTES) >> _TOP))


def _ones_in_python(word: np.uint64) -> int:
    """Count the set bits of a word without the overflow that the other way counts on."""
    return int(word).bit_count()


ones = jit(_ones_of) if is_enabled() else _ones_in_python


@jit
def mark(at: int, many: int, words: Words) -> None:
    """Set ``many`` bits from ``at``."""
    for i in range(at, at + many):
        words[i >> 6] |= _ONE << np.uint64(i & 63)


@jit
def compact(now: int, words: Words, blocks: Ids, starts: Ints, last: Ids) -> int:
    """Move all set bits to the beginning of time; returns the new present."""
    n_words = len(words)
    ranks = np.zeros(n_words + 1, dtype=np.int64)
    for w in range(n_words):
        ranks[w + 1] = ranks[w] + ones(words[w])
    for one in range(len(last)):
        at = last[one]
        if at >= 0:
            below = words[at >> 6] & ((_ONE << np.uint64(at & 63)) - _ONE)
            last[one] = ranks[at >> 6] + ones(below)
    live = int(ranks[n_words])
    for w in range(n_words):
        words[w] = 0
    for w in range(live >> 6):
        words[w] = _ALL
    if live & 63:
        words[live >> 6] = (_ONE << np.uint64(live & 63)) - _ONE
    for level in range(len(starts) - 1):
        bits = 10 + 4 * level
        for b in range(starts[level + 1] - starts[level]):
            blocks[starts[level] + b] = max(0, min(1 << bits, live - (b << bits)))
    return live


@jit
def add(at: int, many: int, blocks: Ids, starts: Ints) -> None:
    """Count ``many`` more bits at ``at`` in every level of blocks."""
    bits = 10
    for level in range(len(starts) - 1):
        blocks[starts[level] + (at >> bits)] += many
        bits += 4


@jit
def since(at: int, now: int, words: Words, blocks: Ids, starts: Ints) -> int:
    """Count the bits set from ``at`` to the present."""
    w, stop = at >> 6, now >> 6
    found = ones(words[w] >> np.uint64(at & 63))
    edge = w | 15
    if stop <= edge:
        for i in range(w + 1, stop + 1):
            found += ones(words[i])
        return found
    for i in range(w + 1, edge + 1):
        found += ones(words[i])
    bits = 10
    for level in range(len(starts) - 1):
        b, stop = at >> bits, now >> bits
        edge = b | 15
        start = starts[level]
        if stop <= edge:
            for i in range(b + 1, stop + 1):
                found += blocks[start + i]
            return found
        for i in range(b + 1, edge + 1):
            found += blocks[start + i]
        bits += 4
    return found


class Stack(NamedTuple):
    """What was touched, in order of use, and what has been counted so far.

    ``last[i]`` is the first bit of i's latest access, or -1; ``state[0]`` the
    present; ``histogram[t, d]`` counts accesses of tensor t at distance d, in
    units of size; ``first[t]`` those without one.
    """

    bounds: Ints
    weights: Ints
    last: Ids
    words: Words
    blocks: Ids
    starts: Ints
    state: Ints
    histogram: Ints
    first: Ints


@jit
def distances(ids: Ids, own: Stack) -> None:
    """Count the stack distances of some accesses."""
    bounds, weights, last, words, blocks, starts, state, histogram, first = own
    now = state[0]
    room = len(words) * 64
    for k in range(len(ids)):
        one = ids[k]
        t = tensor_of(one, bounds)
        weight = weights[t]
        if now + weight > room:
            # The bits of all blocks beyond the present were never set.
            now = compact(now, words, blocks, starts, last)
        at = last[one]
        if at < 0:
            first[t] += 1
            add(now, weight, blocks, starts)
            if weight > 1:
                add_over(now, weight, blocks, starts)
        else:
            histogram[t, since(at, now, words, blocks, starts)] += 1
            if weight == 1:
                words[at >> 6] &= ~(_ONE << np.uint64(at & 63))
                bits = 10
                for level in range(len(starts) - 1):
                    old, new = at >> bits, now >> bits
                    if old == new:
                        break
                    blocks[starts[level] + old] -= 1
                    blocks[starts[level] + new] += 1
                    bits += 4
            else:
                for i in range(at, at + weight):
                    words[i >> 6] &= ~(_ONE << np.uint64(i & 63))
                add(at, -weight, blocks, starts)
                add_over(at, -weight, blocks, starts)
                add(now, weight, blocks, starts)
                add_over(now, weight, blocks, starts)
        mark(now, weight, words)
        last[one] = now
        now += weight
    state[0] = now


@jit
def add_over(at: int, many: int, blocks: Ids, starts: Ints) -> None:
    """Give the blocks that an element reaches into their share of what `add` counted."""
    sign = 1 if many > 0 else -1
    end = at + many * sign
    bits = 10
    for level in range(len(starts) - 1):
        b = at >> bits
        while end > (b + 1) << bits:
            over = end - ((b + 1) << bits)
            blocks[starts[level] + b] -= over * sign
            blocks[starts[level] + b + 1] += over * sign
            b += 1
        bits += 4
