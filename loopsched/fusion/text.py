"""Fused groups as loops, to be read by people."""

from __future__ import annotations

from collections.abc import Iterable

from loopsched.base.units import binary
from loopsched.fusion.extents import needs, sweep
from loopsched.fusion.plan import FusedGroup, last_sizes, tile_dims
from loopsched.fusion.rooms import sides
from loopsched.nests.loops_text import render_loops

_INDENT = "    "


def render_group(group: FusedGroup) -> str:
    """Render a group as loops over tiles, with what every stage makes of each.

    Extents are those of the largest tile, as ``[channels, rows, columns]``; a
    layer alone is rendered as its schedule.

    Returns
    -------
    str
        Without a line break at the end.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> from loopsched.fusion import fuse
    >>> first = conv2d(c=3, k=16, h=64, w=64, r=3, s=3, padding=1, name="first")
    >>> second = conv2d(c=16, k=16, h=64, w=64, r=3, s=3, padding=1, name="second")
    >>> print(render_group(fuse([first, second], 65536, halos=["recompute"]).groups[0]))
    # all weights stay, 10.69 KiB
    for p in range(0, 64, 22):
        for q in range(0, 64, 32):
            read    [3, 26, 34]
            first   [3, 26, 34] -> [16, 24, 33]
            second  [16, 24, 33] -> [16, 22, 32]
            write   [16, 22, 32]
    """
    problem = group.stages[0].problem
    if group.schedule is not None and problem is not None:
        return render_loops(problem, group.schedule)
    whole = dict(zip(tile_dims(group.stages[-1]), last_sizes(group.stages[-1]), strict=False))
    tile = dict(group.tile)
    lines: list[str] = []
    for dim in group.order:
        head = f"for {dim.lower()} in range(0, {whole[dim]}, {tile[dim]}):"
        lines.append(_INDENT * len(lines) + head)
    body = _INDENT * len(lines)
    lines = [f"# {note}" for note in _notes(group)] + lines
    made = _made(group)
    width = max(len(stage.name) for stage in group.stages)
    first, last = group.stages[0], group.stages[-1]
    lines.append(f"{body}{'read':<{width}}  {_shape(first.channels_in, made[0])}")
    for stage, before, after in zip(group.stages, made, made[1:], strict=False):
        step = f"{_shape(stage.channels_in, before)} -> {_shape(stage.channels_out, after)}"
        lines.append(f"{body}{stage.name:<{width}}  {step}")
    lines.append(f"{body}{'write':<{width}}  {_shape(last.channels_out, made[-1])}")
    return "\n".join(lines)


def _shape(channels: int, extents: tuple[int, int, int]) -> str:
    images, rows, columns = extents
    image = [channels, rows, columns] if (rows, columns) != (1, 1) or images == 1 else [channels]
    return str([images, *image] if images > 1 else image)


def _notes(group: FusedGroup) -> list[str]:
    layers = [stage for stage in group.stages if stage.problem is not None]
    stay, others, names_left = [], [], list(group.resident_weights)
    for stage in layers:  # copies of a layer bear one name
        if stage.name in names_left:
            names_left.remove(stage.name)
            stay.append(stage)
        else:
            others.append(stage)
    notes = []
    if stay and group.order:
        size = binary(sum(stage.weight_bytes for stage in stay))
        whose = f"weights of {_listed(stage.name for stage in stay)}" if others else "all weights"
        notes.append(f"{whose} stay, {size}")
    if group.order and others:
        names = _listed(stage.name for stage in others)
        notes.append(f"weights of {names} are fetched for every tile")
    if group.halo == "retain" and group.order:
        where = "" if group.keeps_input else " between the layers"
        notes.append(f"what later tiles need of every tensor{where} is kept")
        notes.append("extents: the most new positions in any tile")
    return notes


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _made(group: FusedGroup) -> list[tuple[int, int, int]]:
    """Find the largest extents that a tile makes of every tensor, the input first."""
    last = group.stages[-1]
    whole, sizes = last_sizes(last), list(dict(group.tile).values())
    high, wide = (*sizes, 1, 1)[1:3]
    found: list[tuple[int, int, int]] = []
    for at in range(len(group.stages) + 1):
        windows = sides(group.stages[at:])
        extents = []
        for window, made, size in zip(windows, whole[1:], (high, wide), strict=True):
            if group.halo == "retain":
                extents.append(max(one.new.bit_count() for one in sweep(window, made, size)))
            else:
                extents.append(int(needs(window, made).largest[size - 1]))
        found.append((sizes[0], extents[0], extents[1]))
    return found
