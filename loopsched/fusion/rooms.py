"""What tiles of a group take and cost, for every tile size: room, input, arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from loopsched.fusion.extents import Rolling, held, needs, rolling
from loopsched.fusion.stages import Stage
from loopsched.network.window import Window

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Halo = Literal["recompute", "retain"]
HALOS: tuple[Halo, ...] = ("recompute", "retain")


@dataclass(frozen=True, slots=True)
class Way:
    """A way to go from tile to tile.

    Parameters
    ----------
    halo : {'recompute', 'retain'}
        Whether each tile makes all that it needs, or keeps what later tiles
        need of every tensor between the layers.
    columns_outside : bool
        Retaining only: whether tiles go down columns, not along rows.
    keeps_input : bool
        Retaining only: whether the group's input is kept likewise; else tiles
        read their part of it channel by channel.
    """

    halo: Halo
    columns_outside: bool = False
    keeps_input: bool = False


@dataclass(frozen=True)
class Sizes:
    """What the tiles of one image take, by rows and columns of a tile, less one.

    Parameters
    ----------
    room : array, bytes
        Of the data of one tile, weights left out.
    input_bytes : array
        What all tiles together bring in of the group's input.
    macs : array
        Multiply-accumulates of all tiles.
    """

    room: Ints
    input_bytes: Ints
    macs: Ints


def sides(stages: Sequence[Stage]) -> tuple[tuple[Window, ...], tuple[Window, ...]]:
    """List the windows of stages along the height and along the width."""
    return tuple(one.rows for one in stages), tuple(one.columns for one in stages)


@lru_cache(maxsize=16)
def sizes_of(stages: tuple[Stage, ...], way: Way) -> Sizes:
    """Tabulate a group's tiles of every size."""
    return _recomputed(stages) if way.halo == "recompute" else _retained(stages, way)


def _recomputed(stages: tuple[Stage, ...]) -> Sizes:
    import numpy as np

    last = stages[-1]
    high, wide = sides(stages)
    room = macs = np.zeros((last.rows.made, last.columns.made), dtype=np.int64)
    largest = total = room
    for at in range(len(stages), -1, -1):
        rows, columns = needs(high[at:], last.rows.made), needs(wide[at:], last.columns.made)
        behind, made = largest, total
        largest = np.outer(rows.largest, columns.largest)
        total = np.outer(rows.total, columns.total)
        if at < len(stages):
            step = _step(stages[at], largest, behind, at == 0, at == len(stages) - 1)
            room = np.maximum(room, step)
            macs = macs + made * stages[at].macs
    first = stages[0]
    return Sizes(room, total * (first.channels_in * first.bytes_in), macs)


def _step(stage: Stage, read: Ints, made: Ints, is_first: bool, is_last: bool) -> Ints:
    """Count the room of one stage's data: a tile before, a tile behind, whole or in slices."""
    import numpy as np

    slice_in, slice_out = read * stage.bytes_in, made * stage.bytes_out
    whole_in, whole_out = slice_in * stage.channels_in, slice_out * stage.channels_out
    if is_first:
        return slice_in + whole_out
    if is_last:
        return whole_in + slice_out
    if stage.by_channel:
        # Channel by channel, in the place of the channel before.
        least: Ints = np.minimum(whole_in, slice_out + np.maximum(whole_in - whole_out, 0))
        return least + whole_out
    return whole_in + whole_out


def _retained(stages: tuple[Stage, ...], way: Way) -> Sizes:
    import numpy as np

    first, last = stages[0], stages[-1]
    high, wide = sides(stages)
    size = last.rows.made, last.columns.made
    # A slice of the last output passes through.
    room = np.multiply.outer(
        np.arange(1, size[0] + 1, dtype=np.int64), np.arange(1, size[1] + 1, dtype=np.int64)
    )
    room = room * last.bytes_out
    macs = 0
    for at, stage in enumerate(stages):
        rows, columns = rolling(high[at:], size[0]), rolling(wide[at:], size[1])
        if at or way.keeps_input:
            room = room + _most_held(rows, columns, way) * (stage.channels_in * stage.bytes_in)
        else:
            room = room + np.outer(rows.largest, columns.largest) * stage.bytes_in
        made = needs(high[at + 1 :], size[0]).touched * needs(wide[at + 1 :], size[1]).touched
        macs += made * stage.macs
    if way.keeps_input:
        touched = needs(high, size[0]).touched * needs(wide, size[1]).touched
        read = np.full(size, touched, dtype=np.int64)
    else:
        read = np.outer(rolling(high, size[0]).total, rolling(wide, size[1]).total)
    input_bytes = read * (first.channels_in * first.bytes_in)
    return Sizes(room, input_bytes, np.full(size, macs, dtype=np.int64))


def buffer_positions(
    stages: Sequence[Stage], tile: tuple[int, int, int], way: Way
) -> tuple[int, ...]:
    """Count the positions that each tensor between the stages has room for, images together."""
    last = stages[-1]
    size = last.rows.made, last.columns.made
    images, row, column = tile[0], tile[1] - 1, tile[2] - 1
    found = []
    for at in range(1, len(stages)):
        high, wide = sides(stages[at:])
        if way.halo == "recompute":
            many = int(needs(high, size[0]).largest[row] * needs(wide, size[1]).largest[column])
        else:
            both = rolling(high, size[0]), rolling(wide, size[1])
            many = _most_held(*both, way)[row, column]
        found.append(images * int(many))
    return tuple(found)


def _most_held(rows: Rolling, columns: Rolling, way: Way) -> Ints:
    return held(columns, rows).T if way.columns_outside else held(rows, columns)
