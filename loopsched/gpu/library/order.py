"""What DRAM must deliver for a launch order of tiles, in closed form.

Blocks run in written order, so many at a time, in lock-step along the sum.  Between
two uses of a panel lies what the blocks of a wave, or of a group, touch meanwhile: if
that exceeds what L2 keeps, the panel is fetched again.  docs/counters.md measures the
same with replays; here every wave is taken as like every other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.problem import Problem

# Lines of a set of L2; sets are chosen by a hash (docs/counters.md).
WAYS = 20


@dataclass(frozen=True, slots=True)
class Grid:
    """Tiles of an output and the order in which they are launched.

    Parameters
    ----------
    rows, columns : int
        Tiles of the output.
    group : int
        Rows of tiles that are launched together, the row changing first.
    at_once : int
        Blocks that advance side by side on the whole machine.
    a_bytes, b_bytes, c_bytes : int, bytes
        Of the whole operands and the output.

    Examples
    --------
    >>> Grid(64, 64, 8, 132, 2**28, 2**28, 2**28).blocks
    4096
    """

    rows: int
    columns: int
    group: int
    at_once: int
    a_bytes: int
    b_bytes: int
    c_bytes: int

    @property
    def blocks(self) -> int:
        """Tiles in all."""
        return self.rows * self.columns


def operand_reads(grid: Grid, capacity_bytes: int) -> float:
    """Count the bytes of A and B that an L2 of some capacity reads.

    Examples
    --------
    >>> whole = Grid(64, 64, 1, 132, 2**28, 2**28, 2**28)
    >>> round(operand_reads(whole, 2**40)) == 2**29
    True
    >>> operand_reads(whole, 2**20) > 10 * 2**29
    True
    """
    group = min(grid.group, grid.rows)
    groups = grid.rows / group
    row, column = grid.a_bytes / grid.rows, grid.b_bytes / grid.columns
    tile = grid.c_bytes / grid.blocks
    in_group = group * grid.columns
    if grid.at_once >= in_group:  # a wave holds whole groups: all columns, new rows
        waves = max(1.0, grid.blocks / grid.at_once)
        wave = grid.a_bytes / waves + grid.b_bytes + grid.c_bytes / waves
        again = 1 + (waves - 1) * evicted(wave / capacity_bytes)
        return grid.a_bytes + grid.b_bytes * again
    wide = grid.at_once / group
    high = min(group, grid.at_once)
    wave = high * row + max(1.0, wide) * column + grid.at_once * tile
    waves = in_group / grid.at_once
    a_again = 1 + (waves - 1) * evicted(wave / capacity_bytes)
    whole = group * row + grid.b_bytes + in_group * tile
    b_again = 1 + (groups - 1) * evicted(whole / capacity_bytes)
    if wide < 1:  # a wave holds a part of one column: its rows, and the column again
        b_again *= 1 + (1 / wide - 1) * evicted(wave / capacity_bytes)
    return grid.a_bytes * a_again + grid.b_bytes * b_again


def evicted(distance: float) -> float:
    """Probability that a line is gone after so much else, as a share of the capacity.

    Lines touched since fall into sets at random; they evict if as many as a
    set holds meet it (Hill and Smith, 1989).

    Examples
    --------
    >>> evicted(0.5) < 0.01, round(evicted(1.0), 2), evicted(2.0) > 0.99
    (True, 0.53, True)
    """
    mean = min(distance, 40.0) * WAYS
    term = kept = math.exp(-mean)
    for met in range(1, WAYS):
        term *= mean / met
        kept += term
    return max(0.0, 1 - kept)


def grouped_schedule(
    problem: Problem, tile_m: int, tile_n: int, tile_k: int, group_m: int, unit: str
) -> Schedule:
    """Write the grouped launch order of a tiled matrix product as a nest.

    Groups of ``group_m`` rows of tiles are launched one after another, the last
    one smaller; within a group, the row of tiles changes first.

    Examples
    --------
    >>> from loopsched import gemm
    >>> problem = gemm(m=100, n=64, k=32)
    >>> print(grouped_schedule(problem, 16, 32, 32, 2, "SM"))
    M:100@SM N:64@SM M:32@SM K:32 M:16 N:32 K:32
    """
    m, n, k = (problem.size[dim] for dim in "MNK")
    tile_m, tile_n, tile_k = min(tile_m, m), min(tile_n, n), min(tile_k, k)
    group = min(group_m * tile_m, m)
    text = f"M:{m}@{unit} N:{n}@{unit} M:{group}@{unit} K:{k} M:{tile_m} N:{tile_n} K:{tile_k}"
    return parse_schedule(text, problem)
