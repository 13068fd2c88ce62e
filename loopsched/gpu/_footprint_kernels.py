"""Compiled loops of the traffic model: distinct sectors, and blocks that share them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Flags, Ints
from loopsched.base.jit import jit


class Reach(NamedTuple):
    """Addresses of what one axis touches, for each iteration outside the place."""

    address: Ints
    is_on: Flags
    stride: int
    places: int


@jit
def row_sectors(reach: Reach, elem: int, sector: int, per_bin: int, bins: int) -> Ints:
    """Count distinct sectors of rising addresses, for each beginning; over all iterations."""
    found = np.zeros(bins, np.int64)
    many, width = reach.address.shape
    for i in range(many):
        for b in range(bins):
            done = -(2**60)
            for t in range(width):
                if not reach.is_on[i, t]:
                    continue
                begin = reach.address[i, t] * elem + b * per_bin
                end = (begin + elem - 1) // sector
                if end > done:
                    found[b] += end - max(begin // sector - 1, done)
                    done = end
    return found


@jit
def joined_rows(reach: Reach, pitch: int, elem: int, sector: int, per_bin: int, bins: int) -> Ints:
    """Count rows whose last sector is the first of the row after, for each beginning."""
    found = np.zeros(bins, np.int64)
    many, width = reach.address.shape
    for i in range(many):
        first = width
        last = -1
        for t in range(width):
            if reach.is_on[i, t]:
                first = min(first, t)
                last = t
        if last < 0:
            continue
        for b in range(bins):
            end = (reach.address[i, last] * elem + elem - 1 + b * per_bin) // sector
            begin = ((reach.address[i, first] + pitch) * elem + b * per_bin) // sector
            if end >= begin:
                found[b] += 1
    return found


@jit
def view_sectors(outer: Ints, rows: Reach, columns: Reach, shift: int, stamp: Ints) -> int:
    """Count distinct sectors of sums of addresses, one combination of iterations at a time.

    A sector holds two to the power of ``shift`` elements.
    """
    total = 0
    mark = 0
    for o in range(len(outer)):
        for i in range(rows.address.shape[0]):
            for j in range(columns.address.shape[0]):
                mark += 1
                for r in range(rows.address.shape[1]):
                    if not rows.is_on[i, r]:
                        continue
                    for c in range(columns.address.shape[1]):
                        if not columns.is_on[j, c]:
                            continue
                        place = (outer[o] + rows.address[i, r] + columns.address[j, c]) >> shift
                        if stamp[place] != mark:
                            stamp[place] = mark
                            total += 1
    return total


@jit
def shared_keys(
    keys_x: Ints,
    keys_y: Ints,
    keys_z: Ints,
    starts: Ints,
    units: int,
    resident: int,
    looked_at: int,
) -> tuple[int, int, int]:
    """Count, in some waves, blocks, distinct keys of each unit added up, and distinct keys.

    Block i runs on unit i modulo units; a wave fills every unit with its
    residents.  Only the first units are looked at.
    """
    nx, ny = len(keys_x), len(keys_y)
    total = nx * ny * len(keys_z)
    blocks = 0
    on_units = 0
    distinct = 0
    held = np.empty(resident, np.int64)
    wave = np.empty(looked_at * resident, np.int64)
    for start in starts:
        many = 0
        for unit in range(looked_at):
            n = 0
            for k in range(resident):
                block = start + unit + k * units
                if block >= total:
                    break
                held[n] = keys_x[block % nx] + keys_y[block // nx % ny] + keys_z[block // (nx * ny)]
                n += 1
            blocks += n
            ordered = np.sort(held[:n])
            for i in range(n):
                if i == 0 or ordered[i] != ordered[i - 1]:
                    wave[many] = ordered[i]
                    many += 1
        on_units += many
        ordered = np.sort(wave[:many])
        for i in range(many):
            if i == 0 or ordered[i] != ordered[i - 1]:
                distinct += 1
    return blocks, on_units, distinct


@jit
def overlapped(
    key: Ints,
    row_of: Ints,
    column_of: Ints,
    rows: Reach,
    columns: Reach,
    sector: int,
    stamp: Ints,
    mark: int,
) -> tuple[int, int, int]:
    """Count sectors of some blocks of one unit: of each alone, and of all together.

    Block i reads ``rows[row_of[i]]`` and ``columns[column_of[i]]``, addresses in bytes, of the
    plane ``key[i]``.
    ``stamp`` holds no mark above ``mark``; the last one used is returned too.
    """
    alone = 0
    together = 0
    many = len(key)
    is_done = np.zeros(many, np.bool_)
    for first in range(many):
        if is_done[first]:
            continue
        plane = mark + 1
        mark = plane + many
        for i in range(first, many):
            if key[i] != key[first]:
                continue
            is_done[i] = True
            mine = plane + i - first
            for r in range(rows.address.shape[1]):
                if not rows.is_on[row_of[i], r]:
                    continue
                for c in range(columns.address.shape[1]):
                    if not columns.is_on[column_of[i], c]:
                        continue
                    address = rows.address[row_of[i], r] + columns.address[column_of[i], c]
                    place = address // sector
                    seen = stamp[place]
                    if seen < plane:
                        together += 1
                    if seen != mine:
                        alone += 1
                        stamp[place] = mine
    return alone, together, mark
