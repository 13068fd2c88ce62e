"""What tiles of a last output need of every tensor before it, along one image axis.

Everything is counted over exact sets of positions, held as the bits of an
integer, for every tile size from 1 to the whole axis: gaps that strides and
dilations leave, padding and smaller edge tiles included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from loopsched.base.arrays import Ints
from loopsched.network.node import Window


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


@lru_cache(maxsize=1024)
def tile_starts(made: int) -> Ints:
    """Count the tiles of all smaller sizes: where those of a size start in a flat list.

    Examples
    --------
    >>> tile_starts(4).tolist()
    [0, 4, 6, 8, 9]
    """
    import numpy as np

    sizes = np.arange(1, made + 1)
    return np.concatenate(([0], np.cumsum(-(-made // sizes))))


@dataclass(frozen=True)
class Needs:
    """What tiles need of one tensor along one axis, each worked out from the group's input.

    Parameters
    ----------
    counts : array
        Positions of each tile, those of size 1 first (see `tile_starts`).
    total, largest, smallest : array
        By tile size less one: of all tiles together, the largest, the smallest.
    touched : int
        Different positions that are needed at all.
    """

    counts: Ints
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
    counts = np.array(
        [
            reach.union(start, min(start + size, made)).bit_count()
            for size in range(1, made + 1)
            for start in range(0, made, size)
        ],
        np.int64,
    )
    starts = tile_starts(made)[:-1]
    return Needs(
        counts,
        np.add.reduceat(counts, starts),
        np.maximum.reduceat(counts, starts),
        np.minimum.reduceat(counts, starts),
        reach.union(0, made).bit_count(),
    )


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
class Held:
    """What of one tensor is on chip along one axis, tile by tile of every tile size.

    In a sweep over tiles (a, b), positions that are there are a sum of three
    products: along the inner axis there are positions at the tile, those
    behind that later rows of tiles read, and those ahead that earlier rows of
    tiles left; of each as many along the outer axis as `outer` says.  That is
    so at each of three times: before the tile works on the tensor, when it has
    all that it reads, and after it.

    Parameters
    ----------
    outer : array, (tiles, 3)
        Positions at inner ones at, behind and ahead of the tile.
    inner : array, (tiles, 3, 3)
        Positions by time (before, at work, after), each at, behind and ahead.
    total : array
        Positions read by all tiles, by tile size less one.
    """

    outer: Ints
    inner: Ints
    total: Ints


@lru_cache(maxsize=4096)
def kept(windows: tuple[Window, ...], made: int) -> Held:
    """Follow a tensor of which all that later tiles read stays.  Parameters as for `needs`.

    Examples
    --------
    Tiles of 6 read 7 of 12 positions; 2 of them stay for the second tile.

    >>> three = Window(read=12, made=12, taps=3, before=1)
    >>> held = kept((three,), 12)
    >>> held.outer[tile_starts(12)[5] :][:2].tolist()
    [[7, 2, 0], [7, 0, 2]]
    """
    import numpy as np

    rows, states, read = [], [], []
    for size in range(1, made + 1):
        pieces = sweep(windows, made, size)
        later = _later(pieces)
        old = 0
        for at, piece in enumerate(pieces):
            now = old | piece.new
            before, after = old & later[at], now & later[at + 1]
            work = before | piece.new
            behind = (old & ~before).bit_count()
            ahead = (later[at] & ~old).bit_count()
            n_before, n_work, n_after = before.bit_count(), work.bit_count(), after.bit_count()
            rows.append((n_work, n_after, n_before))
            states.append((
                n_before, behind, ahead,
                n_work, behind, ahead - piece.new.bit_count(),
                n_after, (now & ~after).bit_count(), (later[at + 1] & ~now).bit_count(),
            ))  # fmt: skip
            read.append(piece.read.bit_count())
            old = now
    return Held(
        np.array(rows, np.int64),
        np.array(states, np.int64).reshape(-1, 3, 3),
        np.add.reduceat(np.array(read, np.int64), tile_starts(made)[:-1]),
    )


@lru_cache(maxsize=4096)
def passing(windows: tuple[Window, ...], made: int, *, keeps: bool) -> Held:
    """Follow a tensor of which nothing stays from tile to tile.  Parameters as for `needs`.

    ``keeps``: whether tensors behind it are kept, so that tiles read less.
    """
    import numpy as np

    if keeps:
        sweeps = [sweep(windows, made, size) for size in range(1, made + 1)]
        counts = np.array([one.read.bit_count() for pieces in sweeps for one in pieces], np.int64)
    else:
        counts = needs(windows, made).counts
    inner = np.zeros((len(counts), 3, 3), np.int64)
    inner[:, 1, 0] = counts
    total = np.add.reduceat(counts, tile_starts(made)[:-1])
    return Held(inner[:, 1], inner, total)


def _later(pieces: Sequence[Piece]) -> list[int]:
    """Join what each piece and those after it read; none at the end."""
    found = [0]
    for piece in reversed(pieces):
        found.append(found[-1] | piece.read)
    return found[::-1]
