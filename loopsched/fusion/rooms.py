"""What tiles of a group take and cost, for every tile size: capacity, input, arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from loopsched.base.arrays import Ints
from loopsched.fusion.extents import Held, kept, needs, passing, tile_starts
from loopsched.fusion.stages import Stage
from loopsched.network.node import Window

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


# Times at which a tensor's content is counted (see `Held`).
_BEFORE, _WORK, _AFTER = 0, 1, 2


@dataclass(frozen=True)
class Sizes:
    """What the tiles of one image take, by rows and columns of a tile, less one.

    Parameters
    ----------
    live : array, bytes
        Stage by stage: the most data that is on chip at once while it works,
        of any tile, weights left out.
    input_bytes : array
        What all tiles together bring in of the group's input.
    macs : array
        Multiply-accumulates of all tiles.
    """

    live: Ints
    input_bytes: Ints
    macs: Ints


def sides(stages: Sequence[Stage]) -> tuple[tuple[Window, ...], tuple[Window, ...]]:
    """List the windows of stages along the height and along the width."""
    return tuple(one.rows for one in stages), tuple(one.columns for one in stages)


@lru_cache(maxsize=16)
def sizes_of(stages: tuple[Stage, ...], way: Way) -> Sizes:
    """Tabulate a group's tiles of every size."""
    import numpy as np

    rows, columns = _tensors(stages, way)
    first, retains = stages[0], way.halo == "retain"
    if way.keeps_input:
        read = _positions(stages, 0, once=True)
    else:
        read = np.outer(rows[0].total, columns[0].total)
    macs = sum(
        _positions(stages, at + 1, once=retains) * stage.macs for at, stage in enumerate(stages)
    )
    live = _live(stages, columns, rows) if way.columns_outside else _live(stages, rows, columns)
    live = live.transpose(0, 2, 1) if way.columns_outside else live
    return Sizes(live, read * (first.channels_in * first.bytes_in), np.asarray(macs))


def _positions(stages: Sequence[Stage], at: int, *, once: bool) -> Ints:
    """Count positions of a tensor that all tiles need: each once, or once a tile."""
    import numpy as np

    made = stages[-1].rows.made, stages[-1].columns.made
    rows, columns = (needs(one, size) for one, size in zip(sides(stages[at:]), made, strict=True))
    if once:
        return np.full(made, rows.touched * columns.touched, np.int64)
    return np.outer(rows.total, columns.total)


def _tensors(stages: tuple[Stage, ...], way: Way) -> tuple[list[Held], list[Held]]:
    """Follow each tensor, the input first, along the height and along the width."""
    made = stages[-1].rows.made, stages[-1].columns.made
    rows, columns = (
        [_tensor(windows[at:], size, way, is_input=not at) for at in range(len(stages) + 1)]
        for windows, size in zip(sides(stages), made, strict=True)
    )
    return rows, columns


def _tensor(windows: tuple[Window, ...], made: int, way: Way, *, is_input: bool) -> Held:
    retains = way.halo == "retain"
    if retains and (way.keeps_input or not is_input):
        return kept(windows, made)
    return passing(windows, made, keeps=retains)


def _live(stages: tuple[Stage, ...], outer: Sequence[Held], inner: Sequence[Held]) -> Ints:
    """Find the most bytes that are on chip at once, stage by stage, over all tiles.

    What is there in one tile is added up before the largest tile is taken.
    """
    import numpy as np

    from loopsched.fusion._held_kernels import most_live

    size = len(outer[0].total), len(inner[0].total)
    live = np.zeros((len(stages), *size), np.int64)
    most_live(
        np.stack([one.outer for one in outer], axis=1), tile_starts(size[0]),
        np.stack([one.inner for one in inner], axis=1), tile_starts(size[1]),
        _ends(stages), live,
    )  # fmt: skip
    return live


def _ends(stages: Sequence[Stage]) -> Ints:
    """Count bytes per position of each tensor and time, as a stage begins and as it ends.

    Where it goes channel by channel, the bytes change by as much from each
    channel to the next, so that one of the ends has the most.

    Returns
    -------
    array, (stages, 2, tensors, times)
    """
    first = stages[0]
    many = first.channels_in, *(stage.channels_out for stage in stages)
    width = first.bytes_in, *(stage.bytes_out for stage in stages)
    return _ends_of(many, width, tuple(stage.by_channel for stage in stages))


@lru_cache(maxsize=256)
def _ends_of(many: tuple[int, ...], width: tuple[int, ...], by_channel: tuple[bool, ...]) -> Ints:
    import numpy as np

    n = len(by_channel)
    found = np.zeros((n, 2, n + 1, 3), np.int64)
    for at in range(n):
        begin, end = found[at]
        found[at, :, :at, _AFTER] = many[:at]
        found[at, :, at + 2 :, _BEFORE] = many[at + 2 :]
        found[at, :, at, _WORK], found[at, :, at + 1, _WORK] = many[at : at + 2]
        if at == 0:  # read slice by slice
            begin[at] = many[at] - 1, 1, 0
        if at == 0 or by_channel[at]:
            end[at] = 0, 1, many[at] - 1
        if at + 1 == n:  # written slice by slice
            found[at, :, n, _WORK] = 1
        elif by_channel[at]:
            begin[at + 1] = many[at + 1] - 1, 1, 0
    found *= np.array(width)[:, np.newaxis]
    return found


def buffer_positions(
    stages: Sequence[Stage], tile: tuple[int, int, int], way: Way
) -> tuple[int, ...]:
    """Count the positions that each tensor between the stages needs at most, images together.

    Of each tensor by itself: what buffers at addresses of their own take.
    """
    rows, columns = _tensors(tuple(stages), way)
    row, column = (
        slice(*tile_starts(len(axis[0].total))[size - 1 : size + 1])
        for axis, size in ((rows, tile[1]), (columns, tile[2]))
    )
    found = []
    for high, wide in list(zip(rows, columns, strict=True))[1:-1]:
        if way.columns_outside:
            held = wide.outer[column] @ high.inner[row, _WORK].T
        else:
            held = high.outer[row] @ wide.inner[column, _WORK].T
        found.append(tile[0] * int(held.max()))
    return tuple(found)
