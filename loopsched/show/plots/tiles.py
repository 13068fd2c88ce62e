"""Two tile sizes and what they cost, as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from loopsched.base.errors import InputError, nearest
from loopsched.base.units import amount
from loopsched.show.plots import style
from loopsched.show.plots.figure import axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from loopsched.base.rows import Row
    from loopsched.study.tile_map import TileMap

Quantity = Literal["time", "dram_bytes"]
QUANTITIES: tuple[Quantity, ...] = ("time", "dram_bytes")
_FIELDS: dict[Quantity, tuple[str, str, str]] = {
    "time": ("time_s", "promised time", "s"),
    "dram_bytes": ("dram_bytes", "promised DRAM traffic", "B"),
}
# Points that a digit of a tick is wide, and room between ticks.
_DIGIT, _GAP = 4.5, 7.0


def tiles_rows(found: TileMap) -> list[Row]:
    """Describe every cell of the map, with the two sizes under their dimensions' names."""
    return found.rows()


def plot_tiles(
    found: TileMap, quantity: Quantity = "time", *, name: str = "", ax: Axes | None = None
) -> Axes:
    """Draw what other sizes of two tiles would cost.

    Darker is more. The line encloses where every level still holds what it holds under the
    schedule itself; what does not fit at all is hatched.  A cross marks the least of the
    map, a ring the schedule itself. ``name`` is that of the workload, for the title.

    Raises
    ------
    InputError
        If the quantity is unknown.

    See Also
    --------
    tile_map
    """
    if quantity not in QUANTITIES:
        raise InputError(f"quantity '{quantity}' is unknown; {nearest(str(quantity), QUANTITIES)}")
    field, what, unit = _FIELDS[quantity]
    ax = axes_of(ax, height=5.0)
    style.dress(ax, f"{style.heading(found.problem.name, name)} on {found.arch.name}")
    ax.grid(visible=False)
    first, second = found.dims
    style.label_x(ax, f"tile size of {second} (elements)")
    style.label_y(ax, f"tile size of {first} (elements)")
    values = _values(found, field)
    _sizes_axes(ax, found)
    finite = [value for row in values for value in row if math.isfinite(value)]
    if not finite:
        style.nothing(ax, "nothing fits")
        return ax
    _heat(ax, values, finite, what, unit)
    _outline(ax, found)
    _marks(ax, found, field, unit)
    style.legend_below(ax, 3 if style.inches(ax) > style.NARROW else 1)
    return ax


def _values(found: TileMap, field: str) -> list[list[float]]:
    cells = found.by_sizes
    return [
        [
            math.nan
            if cells[one, other].evaluation is None
            else float(getattr(cells[one, other].evaluation, field))
            for other in found.sizes[1]
        ]
        for one in found.sizes[0]
    ]


def _sizes_axes(ax: Axes, found: TileMap) -> None:
    """Number the cells from zero; write as many of their sizes as there is room for."""
    rows, columns = len(found.sizes[0]), len(found.sizes[1])
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(-0.5, rows - 0.5)
    ax.set_facecolor("white")
    digits = len(str(found.sizes[1][-1]))
    for axis, sizes, room in (
        (ax.xaxis, found.sizes[1], _DIGIT * digits + _GAP),
        (ax.yaxis, found.sizes[0], 2 * style.TICK),
    ):
        most = max(3, int(72 * style.inches(ax) / room))
        step = math.ceil(len(sizes) / most)
        places = list(range(len(sizes) - 1, -1, -step))
        axis.set_ticks(places, [f"{sizes[place]}" for place in places])


def _heat(
    ax: Axes, values: Sequence[Sequence[float]], finite: Sequence[float], name: str, unit: str
) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min(finite), max(finite)
    # Far from the best, more is only more: the colours are for what is near.
    top = min(high, 100 * low) if low > 0 else high
    ax.fill_between([-0.5, len(values[0]) - 0.5], -0.5, len(values) - 0.5, hatch="xxxx",
                    facecolor="white", edgecolor=style.GREY, linewidth=0, zorder=0)  # fmt: skip
    image = ax.imshow(
        values,
        norm=LogNorm(low, top) if low > 0 else None,
        cmap="viridis_r",
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=1,
    )
    if low == high:
        style.note(ax, f"{name} is {style.decimal(low, unit)} everywhere")
        return
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, extend="max" if top < high else "neither")
    bar.ax.tick_params(labelsize=style.TICK, width=0.6, length=2.5)
    bar.outline.set_linewidth(0.6)
    bar.set_label(name, fontsize=style.LABEL, color=style.INK)
    if low > 0:
        bar.ax.yaxis.set_major_locator(FixedLocator(style.log_ticks(low, top)))
        bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.decimal(value, unit)))


def _outline(ax: Axes, found: TileMap) -> None:
    """Draw a line around the cells where all levels hold what they are to hold."""
    kept = {
        (x, y)
        for y, first in enumerate(found.sizes[0])
        for x, second in enumerate(found.sizes[1])
        if found.by_sizes[first, second].keeps
    }
    edges = []
    for x, y in sorted(kept):
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if (x + dx, y + dy) not in kept:
                middle = (x + dx / 2, y + dy / 2)
                edges.append(
                    [
                        (middle[0] - dy / 2, middle[1] - dx / 2),
                        (middle[0] + dy / 2, middle[1] + dx / 2),
                    ]
                )
    if not edges:
        return
    from matplotlib.collections import LineCollection

    for width, colour in ((2.6, "white"), (1.2, "black")):
        ax.add_collection(LineCollection(edges, colors=colour, linewidths=width, zorder=3))
    ax.plot([], [], color="black", linewidth=1.2, label="same data fit in every level")


def _marks(ax: Axes, found: TileMap, field: str, unit: str) -> None:
    best = found.best(field)
    for sizes, marker, size, label in (
        (found.current, "o", 7, "the schedule"),
        (best.sizes, "x", 5, "least"),
    ):
        cell = found.by_sizes[sizes]
        value = None if cell.evaluation is None else getattr(cell.evaluation, field)
        place = [found.sizes[1].index(sizes[1])], [found.sizes[0].index(sizes[0])]
        ax.plot(*place, marker=marker, markersize=size + 1, markeredgewidth=2.8, linestyle="none",
                markerfacecolor="none", markeredgecolor="white", zorder=4)  # fmt: skip
        ax.plot(*place, marker=marker, markersize=size, markeredgewidth=1.3, linestyle="none",
                markerfacecolor="none", markeredgecolor="black", zorder=5,
                label=f"{label}: {amount(value, unit)}")  # fmt: skip
