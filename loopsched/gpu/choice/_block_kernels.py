"""Compiled walk of blocks over processors: one begins where another has ended."""

from __future__ import annotations

import numpy as np

from loopsched.base.arrays import Floats, Ints
from loopsched.base.jit import jit, step

# Work below this share of a step is done; ends as near as this are one.
_DONE, _TOGETHER = 1e-9, 1 + 1e-10
# Waves of blocks that are followed one by one.
_WAVES = 4


@step
def _next_end(left: Floats, many: int, round_cycles: Floats) -> float:
    """Cycles until the first of an SM's blocks ends."""
    least = left[0]
    for slot in range(1, many):
        least = min(least, left[slot])
    return float(least * round_cycles[many])


@step
def _set(least: Floats, leaves: int, sm: int, end: float) -> None:
    """Change an SM's end in a tree of ends: a node holds the lesser of its two."""
    at = leaves + sm
    least[at] = end
    while at > 1:
        at >>= 1
        least[at] = min(least[2 * at], least[2 * at + 1])


@step
def _first_end(least: Floats, leaves: int) -> int:
    """SM that ends first; of those that end together the first, whatever the last bits say."""
    together, at = least[1] * _TOGETHER, 1
    while at < leaves:
        at *= 2
        if least[at] > together:
            at += 1
    return at - leaves


@step
def drained(lengths: Floats, sms: int, resident: int, round_cycles: Floats) -> float:
    """Run blocks of so many steps, in order; return the cycles."""
    left = np.zeros((sms, resident))
    many = np.zeros(sms, dtype=np.int64)
    last = np.zeros(sms)
    leaves = 1
    while leaves < sms:
        leaves *= 2
    ends = np.full(2 * leaves, np.inf)
    at = 0
    for _ in range(resident):
        for sm in range(sms):
            if at < len(lengths):
                left[sm, many[sm]] = lengths[at]
                many[sm] += 1
                at += 1
    for sm in range(sms):
        if many[sm]:
            _set(ends, leaves, sm, _next_end(left[sm], many[sm], round_cycles))
    now = 0.0
    while ends[1] < np.inf:
        sm = _first_end(ends, leaves)
        now = ends[leaves + sm]
        done = (now - last[sm]) / round_cycles[many[sm]]
        last[sm] = now
        slot = 0
        for _ in range(many[sm]):
            left[sm, slot] -= done
            if left[sm, slot] > _DONE:
                slot += 1
            elif at < len(lengths):
                left[sm, slot] = lengths[at]
                at += 1
                slot += 1
            else:
                many[sm] -= 1
                left[sm, slot] = left[sm, many[sm]]
        end = now + _next_end(left[sm], many[sm], round_cycles) if many[sm] else np.inf
        _set(ends, leaves, sm, end)
    return now


@step
def _alike(
    blocks: int, length: float, sms: int, resident: int, round_cycles: Floats, crowded: float
) -> float:
    """Run blocks of equal length, all of a wave ending together.

    What is left over is shared evenly, or SMs that come first take as many as they hold, as
    `drained` lets them.
    """
    if blocks < sms * resident:
        return float(length * round_cycles[-(-blocks // sms)])
    left = blocks % (sms * resident)
    now = float(length * (blocks // (sms * resident)) * round_cycles[resident])
    if left:
        now += length * crowded * round_cycles[min(left, resident)]
        now += length * (1 - crowded) * round_cycles[-(-left // sms)]
    return now


@jit
def blocks_cycles(
    block: Floats,
    keys: int,
    is_causal: bool,
    heads: int,
    sms: int,
    more: Floats,
    rounds: Floats,
    crowded: float,
) -> Floats:
    """Cycles of each configuration's blocks, which start in order as others end; steps of a head.

    Parameters
    ----------
    block : array
        Queries and keys of a block's step, and blocks that an SM holds, a row a configuration.
    keys : int
        Of a head, and its queries.
    is_causal : bool
        Whether a block sees only the keys up to its last query.
    heads, sms : int
    more : array
        Steps in which a block could do what it does besides.
    rounds : array
        Cycles in which each of so many resident blocks does a step, a row a configuration.
    crowded : float
        How often equal blocks that are left over crowd on few SMs: 1 always, 0 never.
    """
    found = np.zeros((len(block), 2))
    for one in range(len(block)):
        rows, columns, resident = int(block[one, 0]), int(block[one, 1]), int(block[one, 2])
        down = -(-keys // rows)
        # Of unlike blocks, those of earlier heads are taken to keep all processors busy.
        walked = min(heads, -(-_WAVES * sms * resident // down)) if is_causal else heads
        lengths = np.zeros(down * walked if is_causal else 0)
        for at in range(down):
            seen = min((at + 1) * rows, keys) if is_causal else keys
            steps = -(-seen // columns)
            found[one, 1] += steps
            for head in range(walked if is_causal else 0):
                lengths[head * down + at] = steps + more[one]
        before = (heads - walked) * (found[one, 1] + down * more[one]) / (sms * resident)
        found[one, 0] = before * rounds[one, resident]
        if is_causal:
            found[one, 0] += drained(lengths, sms, resident, rounds[one])
        else:
            length = float(-(-keys // columns)) + more[one]
            found[one, 0] += _alike(down * walked, length, sms, resident, rounds[one], crowded)
    return found


@jit
def listed_steps(blocks: Ints, steps: Ints, places: Ints) -> Ints:
    """Steps until the last of a list of blocks ends, each started where a place is free first.

    Parameters
    ----------
    blocks : array
        Equal blocks that follow each other, of each stretch of the list; a row a configuration.
    steps : array
        Of a block of each stretch.
    places : array
        Blocks that run at a time.
    """
    found = np.zeros(len(blocks), dtype=np.int64)
    for one in range(len(blocks)):
        # So many places become free at the same time.
        free, many = np.zeros(places[one], dtype=np.int64), np.zeros(places[one], dtype=np.int64)
        many[0], used = places[one], 1
        for stretch in range(blocks.shape[1]):
            left = blocks[one, stretch]
            while left > 0:
                first = 0
                for at in range(1, used):
                    if free[at] < free[first]:
                        first = at
                started = min(left, many[first])
                left -= started
                end = free[first] + steps[one, stretch]
                found[one] = max(found[one], end)
                many[first] -= started
                if many[first] == 0:
                    used -= 1
                    free[first], many[first] = free[used], many[used]
                for at in range(used + 1):
                    if at == used:
                        free[at], many[at] = end, started
                        used += 1
                        break
                    if free[at] == end:
                        many[at] += started
                        break
    return found
