"""What tiles of a last output need of every tensor before it, along one image axis.

Everything is counted over exact sets of positions, held as the bits of an
integer, for every tile size from 1 to the whole axis: gaps that strides and
dilations leave, padding and smaller edge tiles included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from loopsched.network.window import Window

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class Ranges:
    """The union of what a range of positions marks, from tables of doubled lengths."""

    def __init__(self, masks: Sequence[int]) -> None:
        self._tables = [list(masks)]
        length = 1
        while 2 * length <= len(masks):
            last = self._tables[-1]
            self._tables.append([last[i] | last[i + length] for i in range(len(last) - length)])
            length *= 2

    def union(self, start: int, stop: int) -> int:
        """Join the marks of positions from ``start`` to before ``stop``."""
        level = (stop - start).bit_length() - 1
        table = self._tables[level]
        return table[start] | table[stop - (1 << level)]

    def of(self, bits: int) -> int:
        """Join the marks of the positions that are set."""
        found = 0
        while bits:
            start = (bits & -bits).bit_length() - 1
            length = (~(bits >> start) & ((bits >> start) + 1)).bit_length() - 1
            found |= self.union(start, start + length)
            bits = bits >> (start + length) << (start + length)
        return found


@dataclass(frozen=True)
class Needs:
    """What tiles need of one tensor along one axis, by tile size less one.

    Parameters
    ----------
    total, largest, smallest : array
        Positions of all tiles together, of the largest and of the smallest, if
        each tile is worked out from the group's input alone.
    touched : int
        Different positions that are needed at all.
    """

    total: Ints
    largest: Ints
    smallest: Ints
    touched: int


@lru_cache(maxsize=4096)
def needs(windows: tuple[Window, ...], made: int) -> Needs:
    """Count what tiles of the last output need of the first tensor.

    Parameters
    ----------
    windows : tuple of Window
        Of the stages from that tensor to the last output; none: that output.
    made : int
        Size of the last output.

    Examples
    --------
    Two 3 wide filters: tiles of 4 need 8, or 6 at an edge, of 12 positions.

    >>> three = Window(read=12, made=12, taps=3, before=1)
    >>> found = needs((three, three), 12)
    >>> int(found.total[3]), int(found.largest[3]), found.touched
    (20, 8, 12)
    """
    import numpy as np

    reach = Ranges(_reaches(windows, made))
    total, largest, smallest = np.zeros((3, made), np.int64)
    for size in range(1, made + 1):
        counts = [
            reach.union(start, min(start + size, made)).bit_count()
            for start in range(0, made, size)
        ]
        total[size - 1], largest[size - 1], smallest[size - 1] = (
            sum(counts),
            max(counts),
            min(counts),
        )
    return Needs(total, largest, smallest, reach.union(0, made).bit_count())


@lru_cache(maxsize=4096)
def _reaches(windows: tuple[Window, ...], made: int) -> tuple[int, ...]:
    """Mark what each position of the last output needs of the first tensor."""
    if not windows:
        return tuple(1 << position for position in range(made))
    first = _window_ranges(windows[0])
    return tuple(first.of(bits) for bits in _reaches(windows[1:], made))


@lru_cache(maxsize=256)
def _window_ranges(window: Window) -> Ranges:
    return Ranges([window.reach(position) for position in range(window.made)])


@dataclass(frozen=True, slots=True)
class Piece:
    """What one tile of a sweep adds to and needs of a tensor, nothing being made twice.

    Parameters
    ----------
    read : int
        Positions that it reads, as bits; some from earlier tiles.
    new : int
        Those of them that no earlier tile read.
    """

    read: int
    new: int


@lru_cache(maxsize=16384)
def sweep(windows: tuple[Window, ...], made: int, size: int) -> tuple[Piece, ...]:
    """Follow a tensor through a sweep of tiles that keep what later ones need.

    Each tile makes of every tensor only what is not there yet, and reads only
    what that takes.

    Examples
    --------
    >>> three = Window(read=12, made=12, taps=3, before=1)
    >>> [(bin(one.read), bin(one.new)) for one in sweep((three,), 12, 6)]
    [('0b1111111', '0b1111111'), ('0b111111100000', '0b111110000000')]
    """
    if not windows:
        ends = ((start, min(start + size, made)) for start in range(0, made, size))
        bits = [(1 << stop) - (1 << start) for start, stop in ends]
        return tuple(Piece(one, one) for one in bits)
    reach = _window_ranges(windows[0])
    found, before = [], 0
    for later in sweep(windows[1:], made, size):
        read = reach.of(later.new)
        found.append(Piece(read, read & ~before))
        before |= read
    return tuple(found)


@dataclass(frozen=True)
class Rolling:
    """A tensor's sweeps along one axis as numbers, for every tile size.

    Its content while tile (a, b) of a sweep over rows, then columns, is made
    is a sum of products, one factor a row of tiles, the other a column of
    tiles (see `held`).  Rows ``starts[s - 1]`` to ``starts[s]`` are those of
    tile size ``s``.

    Parameters
    ----------
    outer, inner : array
        The factors as the axis that is swept outside, and inside.
    outer_starts, inner_starts : array
    total : array
        Positions read by all tiles, by tile size less one.
    largest : array
        By the largest of them.
    """

    outer: Ints
    inner: Ints
    outer_starts: Ints
    inner_starts: Ints
    total: Ints
    largest: Ints


@lru_cache(maxsize=1024)
def rolling(windows: tuple[Window, ...], made: int) -> Rolling:
    """Tabulate a tensor's sweeps for every tile size.  Parameters as for `needs`."""
    import numpy as np

    outer: list[tuple[int, ...]] = []
    inner: list[tuple[int, ...]] = []
    starts: tuple[list[int], list[int]] = ([], [])
    total, largest = np.zeros(made, np.int64), np.zeros(made, np.int64)
    for size in range(1, made + 1):
        pieces = sweep(windows, made, size)
        counts = [piece.read.bit_count() for piece in pieces]
        total[size - 1], largest[size - 1] = sum(counts), max(counts)
        starts[0].append(len(outer))
        starts[1].append(len(inner))
        outer += dict.fromkeys(_outer_factors(pieces))
        inner += dict.fromkeys(_inner_factors(pieces))
    return Rolling(
        np.array(outer, np.int64), np.array(inner, np.int64),
        np.array((*starts[0], len(outer)), np.int64),
        np.array((*starts[1], len(inner)), np.int64),
        total, largest,
    )  # fmt: skip


def _later(pieces: Sequence[Piece]) -> list[int]:
    """Join what the pieces after each one read; the whole sweep's reads come first."""
    found = [0]
    for piece in reversed(pieces):
        found.append(found[-1] | piece.read)
    return found[::-1]


def _outer_factors(pieces: Sequence[Piece]) -> list[tuple[int, ...]]:
    """Sort the rows of each tile by why they are there.

    Old rows that later tiles need, new ones that later tiles need, old ones
    that only this one needs, new ones that only this one needs; all new ones.
    """
    later, old, found = _later(pieces), 0, []
    for at, piece in enumerate(pieces):
        after = later[at + 1]
        sets = (
            old & after,
            piece.new & after,
            old & piece.read & ~after,
            piece.new & ~after,
            piece.new,
        )
        found.append(tuple(one.bit_count() for one in sets))
        old |= piece.new
    return found


def _inner_factors(pieces: Sequence[Piece]) -> list[tuple[int, ...]]:
    """Count the columns at which rows of each sort are there, before a tile's new ones.

    All; those made so far; those still to be read; both; the tile's new ones.
    """
    later, old, found = _later(pieces), 0, []
    for at, piece in enumerate(pieces):
        sets = (later[0], old, later[at], old & later[at], piece.new)
        found.append(tuple(one.bit_count() for one in sets))
        old |= piece.new
    return found


def held(outer: Rolling, inner: Rolling) -> Ints:
    """Find the most positions that a tensor holds at once in a sweep.

    Parameters
    ----------
    outer, inner : Rolling
        The axis swept outside, and the one inside.

    Returns
    -------
    array
        By tile size less one, of the outer axis and of the inner one.
    """
    import numpy as np

    from loopsched.fusion._held_kernels import most_products

    found = np.zeros((len(outer.total), len(inner.total)), dtype=np.int64)
    most_products(outer.outer, outer.outer_starts, inner.inner, inner.inner_starts, found)
    return found
