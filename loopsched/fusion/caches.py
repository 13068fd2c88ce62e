"""How large a cache must be to keep, unasked, what a fused group keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from loopsched.fusion.extents import Piece, needs, sweep
from loopsched.fusion.rooms import Way, buffer_positions, sides
from loopsched.fusion.stages import Stage
from loopsched.network.node import Window


def lru_bytes(stages: Sequence[Stage], tile: tuple[int, int, int], way: Way) -> int:
    """Bound what is touched between two uses of anything that a group keeps.

    All weights; the buffers between layers, at addresses that every tile uses
    again; and what passes through meanwhile: the input and output of two
    tiles, or, where halos are kept, of two rows of tiles; of more, where a
    dilation or padding lets rows of tiles go by without a use.

    Parameters
    ----------
    stages : sequence of Stage
    tile : (int, int, int)
        Images, rows and columns of a tile of the last output.
    way : Way

    Examples
    --------
    >>> from loopsched import conv2d
    >>> from loopsched.fusion.stages import stage_of
    >>> layer = stage_of(conv2d(c=8, k=8, h=32, w=32, r=3, s=3, padding=1, element_bytes=1))
    >>> lru_bytes([layer, layer], (1, 4, 32), Way("recompute"))
    8832
    """
    first, last = stages[0], stages[-1]
    images, size = tile[0], [tile[1], tile[2]]
    made = [last.rows.made, last.columns.made]
    windows = sides(stages)
    steps = 2
    if way.halo == "retain":
        inside = 0 if way.columns_outside else 1
        sweep_of = windows[1 - inside], made[1 - inside], size[1 - inside]
        steps = 1 + _longest_gap(*sweep_of, begins_anew=images < last.batch)
        size[inside] = made[inside]
    read = [
        _most_read(axis, whole, one, way)
        for axis, whole, one in zip(windows, made, size, strict=True)
    ]
    in_bytes, out_bytes = first.channels_in * first.bytes_in, last.channels_out * last.bytes_out
    passing = images * steps * (read[0] * read[1] * in_bytes + size[0] * size[1] * out_bytes)
    everything = first.batch * first.rows.read * first.columns.read * in_bytes
    everything += last.positions * out_bytes
    if way.halo == "recompute" and any(
        needs(axis, whole).smallest[one - 1] == 0
        for axis, whole, one in zip(windows, made, size, strict=True)
    ):
        passing = everything
    between = zip(stages[1:], buffer_positions(stages, tile, way), strict=True)
    buffers = sum(stage.channels_in * stage.bytes_in * many for stage, many in between)
    weights = sum(stage.weight_bytes for stage in stages)
    return weights + buffers + min(passing, everything)


def _most_read(windows: tuple[Window, ...], made: int, size: int, way: Way) -> int:
    """Find the most positions of a group's input that one tile reads along an axis."""
    if way.halo == "recompute":
        return int(needs(windows, made).largest[size - 1])
    return max(piece.read.bit_count() for piece in sweep(windows, made, size))


def _longest_gap(windows: tuple[Window, ...], made: int, size: int, *, begins_anew: bool) -> int:
    """Find how many tiles of a sweep go by at most from one use of something to the next."""
    longest = 1
    for at in range(len(windows)):
        pieces = sweep(windows[at:], made, size)
        for uses in _uses(pieces).values():
            longest = max([longest, *(later - one for one, later in pairwise(uses))])
        runs = [i for i, piece in enumerate(sweep(windows[at + 1 :], made, size)) if piece.new]
        if begins_anew:  # with the next images
            runs += [one + len(pieces) for one in runs[:1]]
        longest = max([longest, *(later - one for one, later in pairwise(runs))])
    return longest


def _uses(pieces: Iterable[Piece]) -> dict[int, list[int]]:
    """List the tiles that read each position."""
    found: dict[int, list[int]] = {}
    for at, piece in enumerate(pieces):
        bits = piece.read
        while bits:
            found.setdefault((bits & -bits).bit_length() - 1, []).append(at)
            bits &= bits - 1
    return found
