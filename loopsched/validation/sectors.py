"""Sectors that rows of memory are made of: exact counts, alignment included."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loopsched.base.arrays import Ints

SECTOR_BYTES = 32


def tile_bounds(size: int, tile: int) -> Ints:
    """List the begin and end of every tile of a dimension, the last one clipped."""
    begins = np.arange(0, size, tile, dtype=np.int64)
    return np.stack([begins, np.minimum(begins + tile, size)], axis=1)


def span_sectors(rows: Sequence[int] | Ints, pitch_bytes: int, spans: Ints) -> int:
    """Count the sectors of the same spans of bytes in many rows.

    Parameters
    ----------
    rows : sequence of int
        Numbers of the rows; one that occurs twice counts twice.
    pitch_bytes : int
        From one row to the next; row 0 begins a sector.
    spans : array of int, bytes
        A line for each span: begin and end, from the row's beginning.

    Examples
    --------
    A row of 40 bytes that holds one span of 32: every fourth row begins a sector.

    >>> import numpy as np
    >>> [span_sectors([row], 40, np.array([[0, 32]])) for row in range(5)]
    [1, 2, 2, 2, 1]
    """
    period = SECTOR_BYTES // math.gcd(SECTOR_BYTES, pitch_bytes)
    many = np.bincount(np.asarray(rows, np.int64) % period, minlength=period)
    spans = spans[spans[:, 1] > spans[:, 0]]
    total = 0
    for phase, count in enumerate(many.tolist()):
        begin = phase * pitch_bytes + spans[:, 0]
        end = phase * pitch_bytes + spans[:, 1]
        total += count * int((-(-end // SECTOR_BYTES) - begin // SECTOR_BYTES).sum())
    return total


def panel_sectors(m: int, n: int, k: int, tile_m: int, tile_n: int, step_k: int) -> int:
    """Count the sectors that the blocks of a tiled product of fp32 matrices load.

    Every block loads its rows of A and its columns of B once, in steps along k.
    Both are stored by rows.

    Examples
    --------
    >>> panel_sectors(128, 128, 64, 64, 64, 32)
    4096
    """
    rows_a = span_sectors(np.arange(m), 4 * k, 4 * tile_bounds(k, step_k))
    rows_b = span_sectors(np.arange(k), 4 * n, 4 * tile_bounds(n, tile_n))
    return rows_a * -(-n // tile_n) + rows_b * -(-m // tile_m)
