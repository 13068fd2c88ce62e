"""Compiled walk of blocks over processors: one begins where another has ended."""

from __future__ import annotations

import numpy as np

from loopsched.base.arrays import Floats
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
def drained(lengths: Floats, sms: int, resident: int, round_cycles: Floats) -> float:
    """Run blocks of so many steps, in order; return the cycles."""
    left = np.zeros((sms, resident))
    many = np.zeros(sms, dtype=np.int64)
    last, ends = np.zeros(sms), np.full(sms, np.inf)
    at = 0
    for _ in range(resident):
        for sm in range(sms):
            if at < len(lengths):
                left[sm, many[sm]] = lengths[at]
                many[sm] += 1
                at += 1
    for sm in range(sms):
        if many[sm]:
            ends[sm] = _next_end(left[sm], many[sm], round_cycles)
    now = 0.0
    while True:
        soonest = ends.min()
        if soonest == np.inf:
            return now
        # Of SMs that end together the first, whatever the last bits say.
        sm = int(np.argmax(ends <= soonest * _TOGETHER))
        now = ends[sm]
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
        ends[sm] = np.inf
        if many[sm]:
            ends[sm] = now + _next_end(left[sm], many[sm], round_cycles)


@jit
def blocks_cycles(
    block: Floats, keys: int, is_causal: bool, heads: int, sms: int, more: Floats, rounds: Floats
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
    """
    found = np.zeros((len(block), 2))
    for one in range(len(block)):
        rows, columns, resident = int(block[one, 0]), int(block[one, 1]), int(block[one, 2])
        down = -(-keys // rows)
        # Those of earlier heads are taken to keep all processors busy.
        walked = min(heads, -(-_WAVES * sms * resident // down))
        lengths = np.zeros(down * walked)
        for at in range(down):
            seen = min((at + 1) * rows, keys) if is_causal else keys
            steps = -(-seen // columns)
            found[one, 1] += steps
            for head in range(walked):
                lengths[head * down + at] = steps + more[one]
        before = (heads - walked) * (found[one, 1] + down * more[one]) / (sms * resident)
        found[one, 0] = before * rounds[one, resident]
        found[one, 0] += drained(lengths, sms, resident, rounds[one])
    return found
