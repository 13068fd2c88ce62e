"""The best tile of a fused group: all tile sizes, both ways with halos, exact.

A group is worked out tile by tile of its last output, in one buffer that is
told what to keep.  In each tile the layers run one after the other; outputs
between them never leave the buffer.  See docs/fusion.md for what takes room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from loopsched.base.arrays import Flags, Floats, Ints
from loopsched.base.errors import ProblemError
from loopsched.fusion.extents import needs
from loopsched.fusion.rooms import HALOS, Halo, Sizes, Way, sides, sizes_of
from loopsched.fusion.stages import Stage
from loopsched.fusion.weights import Weights
from loopsched.problems.problem import MAX_MACS
from loopsched.scheduler.tables import trip_classes

# What is made small, DRAM bytes, multiply-accumulates, whether halos are kept, tiles, room.
_Key = tuple[float, int, int, bool, int, int]


@dataclass(frozen=True, slots=True)
class Pace:
    """What time a group takes at least on a machine."""

    macs_per_s: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The best tile of a group.

    Parameters
    ----------
    tile : (int, int, int)
        Images, rows and columns of the last output.
    way : Way
    dram_bytes, macs, working_set_bytes : int
    resident : tuple of bool
        Stages whose weights stay from the first tile to the last.
    """

    tile: tuple[int, int, int]
    way: Way
    dram_bytes: int
    macs: int
    working_set_bytes: int
    resident: tuple[bool, ...]


def ways(halos: Sequence[Halo]) -> Iterator[Way]:
    """List the ways that are to be tried, in the order in which ties are broken."""
    if "recompute" in halos:
        yield Way("recompute")
    if "retain" in halos:
        for keeps_input in (False, True):
            for columns_outside in (False, True):
                yield Way("retain", columns_outside, keeps_input)


def compulsory_bytes(stages: Sequence[Stage]) -> int:
    """Count what a group moves at least: touched input, weights and output once each."""
    first, last = stages[0], stages[-1]
    high, wide = sides(stages)
    touched = needs(high, last.rows.made).touched * needs(wide, last.columns.made).touched
    moved = first.batch * first.channels_in * first.bytes_in * touched
    return moved + output_bytes(last) + sum(stage.weight_bytes for stage in stages)


def output_bytes(stage: Stage) -> int:
    """Size of a stage's output."""
    return stage.positions * stage.channels_out * stage.bytes_out


def best_tile(
    stages: Sequence[Stage],
    capacity_bytes: int,
    halos: Sequence[Halo] = HALOS,
    pace: Pace | None = None,
) -> Choice | None:
    """Find the tile that moves the fewest bytes, or takes the least time; None if none fits.

    Ties: DRAM bytes, then multiply-accumulates, then making halos again before
    keeping them, then fewer tiles, then less room.

    Parameters
    ----------
    stages : sequence of Stage
        At least two layers, and the poolings between them.
    capacity_bytes : int
    halos : sequence of str
        What may be done with halos.
    pace : Pace, optional
        Minimise the time bound of this machine.

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d
    >>> from loopsched.fusion.stages import stage_of
    >>> layer = stage_of(conv2d(c=8, k=8, h=32, w=32, r=3, s=3, padding=1, element_bytes=1))
    >>> for halo in HALOS:
    ...     found = best_tile([layer, layer], 8192, [halo])
    ...     print(found.tile, found.dram_bytes, found.macs, found.working_set_bytes)
    (1, 16, 32) 18560 1216512 6080
    (1, 16, 32) 17536 1179648 6528
    """
    _check_size(stages)
    least = compulsory_bytes(stages)
    best: tuple[_Key, Choice] | None = None
    for way in ways(halos):
        sizes = sizes_of(tuple(stages), way)
        found = _least(stages, way, sizes, capacity_bytes, pace, best[0][0] if best else inf)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
        if best and pace is None and best[1].dram_bytes == least and way.halo == "recompute":
            macs = int(sizes_of(tuple(stages), way).macs.min()) * stages[0].batch
            if best[1].macs == macs:
                break  # retaining cannot do with less
    return best[1] if best else None


def _check_size(stages: Sequence[Stage]) -> None:
    last = stages[-1]
    for stage in stages:
        most = stage.batch * stage.rows.made * stage.columns.made * max(1, stage.macs)
        most = max(most, stage.batch * stage.rows.read * stage.columns.read * stage.channels_in * 8)
        if most * last.rows.made * last.columns.made >= MAX_MACS:
            raise ProblemError(
                f"'{stage.name}' is too large to be fused: tiles of one position would take more "
                "than 2**62 multiply-accumulates or bytes"
            )


def _least(
    stages: Sequence[Stage],
    way: Way,
    sizes: Sizes,
    capacity_bytes: int,
    pace: Pace | None,
    most: float,
) -> tuple[_Key, Choice] | None:
    """Choose images, rows and columns of a tile, and the weights that stay.

    What cannot be made as small as ``most`` may be left out.
    """
    import numpy as np

    last = stages[-1]
    high, wide = last.rows.made, last.columns.made
    trips = np.outer(-(-high // np.arange(1, high + 1)), -(-wide // np.arange(1, wide + 1)))
    weights = Weights(
        tuple(stage.weight_bytes for stage in stages),
        tuple(stage.weight_element_bytes for stage in stages),
    )
    all_bytes = sum(weights.sizes)
    macs = last.batch * sizes.macs
    feature_maps = last.batch * sizes.input_bytes + output_bytes(last)
    floor = _worth(pace, macs, feature_maps + all_bytes)
    best: tuple[_Key, Choice] | None = None
    for images in trip_classes((last.batch,)):
        live = images * sizes.live
        n_tiles = trips * -(-last.batch // images)
        hopeful = floor <= (min(most, best[0][0]) if best else most)
        resident, needed = _with_weights(weights, live, n_tiles, capacity_bytes, hopeful)
        moved = resident + (all_bytes - resident) * n_tiles + feature_maps
        fits = resident >= 0
        if not fits.any():
            continue
        keys: list[Ints | Floats] = [moved, macs, n_tiles, needed]
        if pace is not None:
            keys.insert(0, _worth(pace, macs, moved))
        at = _first_least(keys, fits)
        chosen = Choice(
            (images, at[0] + 1, at[1] + 1), way,
            int(moved[at]), int(macs[at]), int(needed[at]),
            weights.chosen(live[:, *at], int(resident[at]), int(needed[at])),
        )  # fmt: skip
        retains = way.halo == "retain"
        first = float(keys[0][at]), chosen.dram_bytes, chosen.macs
        key = (*first, retains, int(n_tiles[at]), chosen.working_set_bytes)
        if best is None or key < best[0]:
            best = key, chosen
    return best


def _worth(pace: Pace | None, macs: Ints, moved: Ints) -> Ints | Floats:
    """Count what is made small: bytes, or a machine's time."""
    import numpy as np

    if pace is None:
        return moved
    worth: Ints | Floats = np.maximum(macs / pace.macs_per_s, moved / pace.bytes_per_s)
    return worth


def _with_weights(
    weights: Weights, live: Ints, n_tiles: Ints, capacity_bytes: int, hopeful: Flags
) -> tuple[Ints, Ints]:
    """Find what weights stay of every hopeful tile that fits (else -1), and its working set.

    Where there is one tile, nothing needs to stay.
    """
    import numpy as np

    resident, needed = np.full(n_tiles.shape, -1), np.zeros_like(n_tiles)
    hopeful = hopeful & (live.max(axis=0) <= capacity_bytes)
    several, one = hopeful & (n_tiles > 1), hopeful & (n_tiles == 1)
    resident[several], needed[several] = weights.most_resident(live[:, several], capacity_bytes)
    needed[one] = weights.none_resident(live[:, one])
    resident[one] = np.where(needed[one] <= capacity_bytes, 0, -1)
    return resident, needed


def _first_least(keys: Sequence[Ints | Floats], fits: Flags) -> tuple[int, int]:
    """Find the first place where the first key is least, then the second, ..."""
    import numpy as np

    for key in keys:
        least = key[fits].min()
        fits = fits & (key == least)
    row, column = np.argwhere(fits)[0]
    return int(row), int(column)
