"""Compiled: the most that is on chip at once, for every pair of tile sizes."""

from __future__ import annotations

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit


@jit
def most_live(
    outer: Ints, outer_starts: Ints, times: Ints, inner_starts: Ints, ends: Ints, live: Ints
) -> None:
    """Raise ``live`` (stages, outer sizes, inner sizes) to the most bytes of any two tiles.

    Tiles of size s are rows ``starts[s - 1]`` to ``starts[s]`` of ``outer``
    (tiles, tensors, zones) and ``times`` (tiles, tensors, times, zones);
    ``ends`` (stages, 2, tensors, times) are bytes per position.
    """
    for at in range(len(ends)):
        for end in range(2):
            if end == 0 or np.any(ends[at, 0] != ends[at, 1]):
                one, other = _factors(outer, times, ends[at, end])
                rows, row_starts = _extreme(one, outer_starts)
                columns, column_starts = _extreme(other, inner_starts)
                _most_products(rows, row_starts, columns, column_starts, live[at])


@jit
def _factors(outer: Ints, times: Ints, byte_counts: Ints) -> tuple[Ints, Ints]:
    """Join positions along the outer axis, and bytes along the inner one, that are not all 0."""
    n_tensors, n_times = byte_counts.shape
    one = np.zeros((outer.shape[0], 3 * n_tensors), np.int64)
    other = np.zeros((times.shape[0], 3 * n_tensors), np.int64)
    width = 0
    for tensor in range(n_tensors):
        for zone in range(3):
            used = False
            for time in range(n_times):
                each = byte_counts[tensor, time]
                if each:
                    for tile in range(len(times)):
                        many = each * times[tile, tensor, time, zone]
                        other[tile, width] += many
                        used = used or many != 0
            if used and np.any(outer[:, tensor, zone]):
                one[:, width] = outer[:, tensor, zone]
                width += 1
            else:
                other[:, width] = 0
    return one[:, :width], other[:, :width]


@jit
def _extreme(rows: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Keep the rows of each block that may have the largest product with a row >= 0.

    A row half way between its neighbours has not, nor has one that another
    row of its block is nowhere less than.
    """
    width = rows.shape[1]
    found = np.empty(rows.shape, np.int64)
    found_starts = np.zeros(len(starts), np.int64)
    many = 0
    for s in range(len(starts) - 1):
        first = many
        for a in range(starts[s], starts[s + 1]):
            leave_out = starts[s] < a < starts[s + 1] - 1
            k = 0
            while leave_out and k < width:
                leave_out = 2 * rows[a, k] == rows[a - 1, k] + rows[a + 1, k]
                k += 1
            b = first
            while not leave_out and b < many:
                k = 0
                while k < width and rows[a, k] <= found[b, k]:
                    k += 1
                leave_out = k == width
                b += 1
            if not leave_out:
                found[many] = rows[a]
                many += 1
        found_starts[s + 1] = many
    return found[:many], found_starts


@jit
def _most_products(
    outer: Ints, outer_starts: Ints, inner: Ints, inner_starts: Ints, most: Ints
) -> None:
    """Raise ``most`` to the largest sum of products over each pair of blocks of rows."""
    width = outer.shape[1]
    for s in range(len(outer_starts) - 1):
        for t in range(len(inner_starts) - 1):
            best = most[s, t]
            for a in range(outer_starts[s], outer_starts[s + 1]):
                for b in range(inner_starts[t], inner_starts[t + 1]):
                    total = 0
                    for k in range(width):
                        total += outer[a, k] * inner[b, k]
                    best = max(best, total)
            most[s, t] = best
