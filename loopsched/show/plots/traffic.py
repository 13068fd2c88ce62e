"""Bytes per level and tensor, as stacked bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loopsched.base.errors import InputError, nearest
from loopsched.base.rows import picked
from loopsched.base.units import scaled
from loopsched.show.plots import style
from loopsched.show.plots.figure import axes_of, new_figure
from loopsched.show.plots.layers import (
    Layer,
    are_best,
    are_schedules,
    layers_of,
    subject,
    titles_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from loopsched.base.rows import Row
    from loopsched.scheduler.result import Result

# Numbers and upright names under the bars that an inch has room for; bars with gaps.
_TICKS_PER_INCH, _NAMES_PER_INCH, _APART_PER_INCH = 4.5, 8, 7


def bytes_rows(results: Sequence[Result | Layer]) -> list[Row]:
    """Describe what each tensor of each layer moves across each boundary.

    Returns
    -------
    list of dict
        Promised ``read_bytes`` and ``write_bytes`` of one run; ``level`` is
        the outer side of the boundary, whose bandwidth they take.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> rows = bytes_rows([search(gemm(m=64, n=64, k=64), load_arch("titan_v"))])
    >>> [(row["level"], row["tensor"], row["read_bytes"]) for row in rows][:3]
    [('DRAM', 'A', 16384), ('DRAM', 'B', 16384), ('DRAM', 'C', 0)]
    """
    return [
        {
            "label": layer.label,
            "problem": layer.problem.name,
            "count": layer.count,
            "level": found.outer,
            "tensor": name,
            **picked(moved, "read_bytes", "write_bytes", "bytes"),
        }
        for layer in layers_of(results)
        for found in layer.evaluation.levels
        for name, moved in found.promised.items()
    ]


def plot_bytes(
    results: Sequence[Result | Layer],
    *,
    level: str | None = None,
    name: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the bytes that layers, or schedules of one layer, move, tensor by tensor.

    One layer: a bar for each boundary between levels.  Several: a bar for each layer, at
    one boundary; at the memory's, a line marks the lower bound of every schedule of the
    layer.

    Parameters
    ----------
    results : sequence of Result or Layer
    level : str, optional
        The outer side of the boundary; by default the memory.  One layer: only
        this boundary.
    name : str
        Of the workload, for the title.
    ax : Axes, optional

    Raises
    ------
    InputError
        If no layer has such a level.

    See Also
    --------
    search, plot_roofline
    """
    ax = axes_of(ax)
    layers = layers_of(results)
    rows = bytes_rows(layers)
    known = list(dict.fromkeys(row["level"] for row in rows))
    if level is not None and level not in known:
        raise InputError(f"no boundary of level '{level}'; {nearest(level, known)}")
    if not rows:
        style.dress(ax)
        style.nothing(ax, "no layers")
        return ax
    tensors = list(dict.fromkeys(row["tensor"] for row in rows))
    if len(layers) == 1:
        _boundaries(ax, layers[0], rows, [level] if level else known, tensors)
    else:
        _layers(ax, layers, level or known[0], tensors, is_memory=level in (None, known[0]))
    n_entries = len(tensors) + (len(layers) > 1 and level in (None, known[0]))
    rows_of_legend = math.ceil(n_entries / _legend_columns(ax, n_entries))
    style.titled(ax, style.heading(subject(layers), name), pad=4 + 10 * rows_of_legend)
    return ax


def bytes_figure(results: Sequence[Result | Layer], name: str = "") -> Figure:
    """Draw all boundaries of several layers below each other, or one layer's side by side."""
    layers = layers_of(results)
    levels = list(dict.fromkeys(row["level"] for row in bytes_rows(layers)))
    if len(layers) <= 1:
        figure = new_figure(height=1.1 + 0.4 * max(1, len(levels)))
        plot_bytes(layers, name=name, ax=figure.subplots())
        return figure
    figure = new_figure(height=0.6 + 2.2 * len(levels))
    panels = figure.subplots(len(levels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, level in zip(panels, levels, strict=True):
        plot_bytes(layers, level=level, name=name, ax=ax)
        if ax is not panels[0]:
            ax.set_title("")
        if ax is not panels[0] and ax.get_legend() is not None:
            ax.get_legend().remove()
        if ax is not panels[-1]:
            ax.set_xlabel("")
    return figure


def _boundaries(
    ax: Axes, layer: Layer, rows: Sequence[Row], levels: Sequence[str], tensors: Sequence[str]
) -> None:
    """Lay one layer's boundaries on top of each other, the memory's first."""
    style.dress(ax)
    ends = [0.0] * len(levels)
    for tensor, look in style.looks(tensors).items():
        moved = [_moved(rows, layer.label, level, tensor) for level in levels]
        ax.barh(range(len(levels)), moved, 0.6, left=ends, color=look.fill, hatch=look.hatch,
                edgecolor="white", linewidth=0.4, label=tensor)  # fmt: skip
        ends = [end + more for end, more in zip(ends, moved, strict=True)]
    for position, end in enumerate(ends):
        style.beside(ax, scaled(int(end), "B"), (end, position), (3, 0))
    names = [found.name for found in layer.evaluation.levels if found.outer in levels]
    pairs = zip(levels, names, strict=True)
    ax.set_yticks(range(len(levels)), [f"{outer} - {inner}" for outer, inner in pairs])
    ax.set_ylim(len(levels) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, max(ends) * 1.22 or 1)
    style.linear_axis(ax.xaxis, "bytes moved", "B", max(ends))
    _legend(ax, len(tensors))


def _layers(
    ax: Axes,
    layers: Sequence[Layer],
    level: str,
    tensors: Sequence[str],
    *,
    is_memory: bool,
) -> None:
    style.dress(ax)
    ends = [0.0] * len(layers)
    places = range(len(layers))
    inches = style.inches(ax)
    # Thin bars have no gaps, so that their hatches go on in the next.
    is_thin = len(layers) > _APART_PER_INCH * inches
    width = 1.0 if is_thin else 0.72
    by_key = {(id(layer), tensor): 0 for layer in layers for tensor in tensors}
    for layer in layers:
        for found in layer.evaluation.levels:
            if found.outer == level:
                for tensor, moved in found.promised.items():
                    by_key[id(layer), tensor] = moved.bytes
    for tensor, look in style.looks(tensors).items():
        moved_bytes = [by_key[id(layer), tensor] for layer in layers]
        ax.bar(places, moved_bytes, width, bottom=ends, color=look.fill,
               hatch=look.hatch, edgecolor="white", linewidth=0 if is_thin else 0.3,
               label=tensor)  # fmt: skip
        ends = [end + more for end, more in zip(ends, moved_bytes, strict=True)]
    if is_memory:
        ax.hlines(
            [layer.evaluation.least_dram_bytes for layer in layers],
            [place - width / 2 for place in places],
            [place + width / 2 for place in places],
            color="black",
            linewidth=1.2,
            label="lower bound, any order",
        )
    titles = titles_of(layers)
    is_named = len(layers) <= _NAMES_PER_INCH * inches and titles != [one.label for one in layers]
    if is_named:
        ax.set_xticks(list(places), titles, rotation=90)
    else:
        step = max(1, math.ceil(len(layers) / (_TICKS_PER_INCH * inches)))
        ax.set_xticks(list(places)[::step], [layer.label for layer in layers][::step])
    ax.set_xlim(-0.6, len(layers) - 0.4)
    ax.set_ylim(0, max(ends) * 1.08 or 1)
    ax.grid(visible=False, axis="x")
    name = "" if is_named else "schedule" if are_schedules(layers) else "layer"
    style.label_x(ax, "the best schedule of each layer" if are_best(layers) else name)
    style.linear_axis(ax.yaxis, f"{level} traffic", "B", max(ends))
    _legend(ax, len(tensors) + is_memory)


def _legend(ax: Axes, n_entries: int) -> None:
    style.legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0),
                 ncols=_legend_columns(ax, n_entries), borderaxespad=0.2, columnspacing=1.2,
                 handlelength=1.5)  # fmt: skip


def _legend_columns(ax: Axes, n_entries: int) -> int:
    return min(n_entries, max(2, int(1.6 * style.inches(ax))))


def _moved(rows: Sequence[Row], label: str, level: str, tensor: str) -> int:
    return sum(
        row["bytes"]
        for row in rows
        if (row["label"], row["level"], row["tensor"]) == (label, level, tensor)
    )
