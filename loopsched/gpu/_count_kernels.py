"""Compiled loops of the counting: classes of places, and the lanes of each warp."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from loopsched.base.arrays import Flags, Ints
from loopsched.base.jit import jit, step

# A lane that does nothing.
OFF = -(2**60)
# What is counted of an access, in this order.
REQUESTS, LANES, SECTORS, LINES, WAVEFRONTS, USEFUL, PARTIAL = range(7)
GLOBAL, SHARED, CONSTANT, NOTHING = range(4)


@step
def _class_of(shapes: Ints, hashes: Ints, row: Ints, mixed: int, classes: int, last: int) -> int:
    """Find the class whose relative addresses these are, the latest first; -1: none yet."""
    for at in range(classes):
        c = last if at == 0 else (at - 1 if at <= last else at)
        if hashes[c] == mixed:
            is_same = True
            for t in range(len(row)):
                if shapes[c, t] != row[t]:
                    is_same = False
                    break
            if is_same:
                return c
    return -1


@jit
def classify(
    address: Ints, is_on: Flags, bins: int, power: int, scale: int
) -> tuple[Any, Any, int]:
    """Sort the iterations of some loops into classes that differ only in where they begin.

    ``address[i, t]`` is what thread t adds to the address at iteration i, in elements
    of ``scale`` bytes; there are ``bins`` beginnings (a power of two), two to
    the power of ``power`` bytes apart.  Returns the relative addresses of each
    class, OFF for lanes that are off; for each class and each beginning the
    number of iterations; and the number of classes.
    """
    many, width = address.shape
    room = 16
    shapes = np.empty((room, width), np.int64)
    hashes = np.empty(room, np.int64)
    hist = np.zeros((room, bins), np.int64)
    row = np.empty(width, np.int64)
    classes = 0
    last = 0
    if width == 1:
        shapes[0, 0] = 0
        for i in range(many):
            if is_on[i, 0]:
                hist[0, (address[i, 0] * scale >> power) & (bins - 1)] += 1
                classes = 1
        return shapes, hist, classes
    for i in range(many):
        base = 0
        is_any = False
        for t in range(width):
            if is_on[i, t]:
                base = address[i, t]
                is_any = True
                break
        if not is_any:
            continue
        mixed = 0
        for t in range(width):
            row[t] = address[i, t] - base if is_on[i, t] else OFF
            mixed = (mixed * 1000003 + row[t]) & 0xFFFFFFFF
        found = _class_of(shapes, hashes, row, mixed, classes, last)
        if found < 0:
            if classes == room:
                grown = np.empty((2 * room, width), np.int64)
                grown[:room] = shapes
                shapes = grown
                more = np.empty(2 * room, np.int64)
                more[:room] = hashes
                hashes = more
                wider = np.zeros((2 * room, bins), np.int64)
                wider[:room] = hist
                hist = wider
                room *= 2
            found = classes
            shapes[found] = row
            hashes[found] = mixed
            classes += 1
        last = found
        hist[found, (base * scale >> power) & (bins - 1)] += 1
    return shapes, hist, classes


@jit
def fold(one: Ints, other: Ints) -> Ints:
    """Combine classes of two groups of loops: all pairs, beginnings added."""
    n, bins = one.shape
    m = other.shape[0]
    out = np.zeros((n * m, bins), np.int64)
    for i in range(n):
        for j in range(m):
            for a in range(bins):
                if one[i, a]:
                    for b in range(bins):
                        if other[j, b]:
                            out[i * m + j, (a + b) % bins] += one[i, a] * other[j, b]
    return out


@jit
def _most_words(place: Ints, active: int, shift: int, elem: int, bank: int, load: Ints) -> int:
    """Count the words that the busiest bank delivers; one word serves any number of lanes."""
    load[:] = 0
    banks = len(load)
    done = (place[0] + shift) // bank - 1
    most = 0
    for i in range(active):
        begin = place[i] + shift
        end = (begin + elem - 1) // bank
        for word in range(max(begin // bank, done + 1), end + 1):
            load[word % banks] += 1
            most = max(most, load[word % banks])
        done = max(done, end)
    return most


class Access(NamedTuple):
    """An access: bytes of an element, of all that a thread accesses, of a beginning's step.

    Then the powers of two of a sector and of a line, bytes of a bank, the banks, the space.
    """

    step: int
    elem: int
    per_bin: int
    sector: int
    line: int
    bank: int
    banks: int
    space: int


@step
def _gather(picks: Ints, shapes: Ints, warp: Ints, size: int, place: Ints) -> tuple[int, int]:
    """Find where the lanes of a warp are, in order; how many there are, and are on."""
    present = 0
    active = 0
    for lane in range(warp.shape[0]):
        if warp[lane, 0] < 0:
            continue
        present += 1
        at = 0
        is_on = True
        for g in range(warp.shape[1]):
            moved = shapes[g, picks[g], warp[lane, g]]
            if moved == OFF:
                is_on = False
                break
            at += moved
        if is_on:
            # Sorted as they come: mostly they are already.
            at *= size
            spot = active
            while spot > 0 and place[spot - 1] > at:
                place[spot] = place[spot - 1]
                spot -= 1
            place[spot] = at
            active += 1
    return present, active


@jit
def count_lanes(
    hist: Ints, picks: Ints, shapes: Ints, lanes: Ints, access: Access, out: Ints
) -> None:
    """Run the lanes of every warp once for each combination of classes, and add up.

    ``lanes[v, l, g]`` is the thread's place in group g, -1 where lane l does not exist.
    """
    many, bins = hist.shape
    warps, wide, _ = lanes.shape
    elem, per_bin, sector, line = access.elem, access.per_bin, access.sector, access.line
    space = access.space
    place = np.empty(wide, np.int64)
    load = np.zeros(access.banks, np.int64)
    for n in range(many):
        total = 0
        for b in range(bins):
            total += hist[n, b]
        if total == 0:
            continue
        for v in range(warps):
            present, active = _gather(picks[n], shapes, lanes[v], access.step, place)
            if active == 0:
                continue
            out[REQUESTS] += total
            out[LANES] += active * total
            if active < present:
                out[PARTIAL] += total
            if space == NOTHING:
                continue
            distinct = 1
            for i in range(1, active):
                if place[i] != place[i - 1]:
                    distinct += 1
            out[USEFUL] += distinct * elem * total
            if space == CONSTANT:
                out[WAVEFRONTS] += distinct * total
                continue
            if space == SHARED:
                for b in range(bins):
                    if hist[n, b]:
                        most = _most_words(place, active, b * per_bin, elem, access.bank, load)
                        out[WAVEFRONTS] += most * hist[n, b]
                continue
            for b in range(bins):
                if hist[n, b] == 0:
                    continue
                shift = b * per_bin
                done_sector = ((place[0] + shift) >> sector) - 1
                done_line = ((place[0] + shift) >> line) - 1
                n_sectors = 0
                n_lines = 0
                for i in range(active):
                    begin = place[i] + shift
                    end = begin + elem - 1
                    last = end >> sector
                    if last > done_sector:
                        n_sectors += last - max((begin >> sector) - 1, done_sector)
                        done_sector = last
                        last = end >> line
                        if last > done_line:
                            n_lines += last - max((begin >> line) - 1, done_line)
                            done_line = last
                out[SECTORS] += n_sectors * hist[n, b]
                out[LINES] += n_lines * hist[n, b]
