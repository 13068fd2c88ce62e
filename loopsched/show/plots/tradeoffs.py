"""The Pareto front of time, DRAM traffic and capacity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loopsched.base.rows import picked
from loopsched.base.units import count
from loopsched.show.plots import style
from loopsched.show.plots.figure import axes_of
from loopsched.show.plots.labels import Spot, place_labels
from loopsched.show.table import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from loopsched.base.rows import Row
    from loopsched.scheduler.tradeoffs import Tradeoff

Fronts = Mapping[str, Sequence["Tradeoff"]]

_MOST_NAMED = len(style.MARKERS)
_AREA = 34.0


def pareto_rows(fronts: Fronts) -> list[Row]:
    """Describe every point of every front.

    Parameters
    ----------
    fronts : mapping of str to sequence of Tradeoff
        What `loopsched.pareto` finds for each problem, by its name.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, pareto
    >>> front = pareto(gemm(m=256, n=256, k=256), load_arch("titan_v"))
    >>> pareto_rows({"mine": front})[0]["capacity_bytes"]
    294912
    """
    return [
        {
            "problem": name,
            **picked(point, "capacity_bytes", "time_s", "dram_bytes"),
            "bound_by": point.evaluation.bound_by,
            "schedule": str(point.schedule),
        }
        for name, front in fronts.items()
        for point in front
    ]


def plot_pareto(fronts: Fronts, *, name: str = "", ax: Axes | None = None) -> Axes:
    """Draw time over DRAM traffic; the darker a point, the larger the capacity.

    Points of one problem and one capacity are joined: along them, time is traded
    for traffic.  ``name`` is that of the workload, for the title.  Up to seven problems
    have markers of their own; names of more stand beside a point, where there is room.

    See Also
    --------
    pareto
    """
    ax = axes_of(ax)
    names = list(fronts)
    title = names[0] if len(names) == 1 else count(len(names), "layer")
    points = [point for front in fronts.values() for point in front]
    machines = dict.fromkeys(map(_machine, points))
    on = f" on {' and '.join(machines)}" if machines else ""
    style.dress(ax, style.heading(title, name) + on)
    style.label_x(ax, "DRAM traffic")
    style.label_y(ax, "promised time")
    if not points:
        style.nothing(ax, "nothing fits")
        return ax
    style.log_axis(ax.xaxis, *style.margins([point.dram_bytes for point in points], 0.1), "B")
    style.log_axis(ax.yaxis, *style.margins([point.time_s for point in points], 0.1), "s")
    shades = _shades(points)
    spots: list[Spot] = []
    for number, (name, front) in enumerate(fronts.items()):
        marker = style.MARKERS[number % _MOST_NAMED] if len(names) <= _MOST_NAMED else "o"
        drawn = _front(ax, name, front, marker, shades, is_named=1 < len(names) <= _MOST_NAMED)
        if len(names) > 1:  # beside one point of each problem, where the legend has no names
            text = shortened(name, 20) if len(names) > _MOST_NAMED else ""
            drawn = [spot._replace(text="" if at else text) for at, spot in enumerate(drawn)]
        spots += drawn
    level = points[0].evaluation.levels[0].name
    if len(names) > 1:
        _capacities(ax, shades, f"capacity of {level}")
    else:
        style.note(ax, f"beside the points: capacity of {level}")
    place_labels(ax, spots)
    return ax


def _machine(point: Tradeoff) -> str:
    """Name the machine of a point without its capacity, which points differ in."""
    score = point.evaluation
    varied = f"[{score.levels[0].name}.capacity={point.capacity_bytes:g}]"
    return score.arch.name.removesuffix(varied)


def _shades(points: Sequence[Tradeoff]) -> dict[int, str]:
    """Choose a colour for each capacity: light to dark."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    sizes = sorted({point.capacity_bytes for point in points})
    low, high = math.log2(sizes[0]), math.log2(sizes[-1])
    found = {}
    for size in sizes:
        share = (math.log2(size) - low) / (high - low) if high > low else 1.0
        found[size] = to_hex(colormaps["viridis"](0.9 - 0.85 * share))
    return found


def _front(
    ax: Axes,
    name: str,
    front: Sequence[Tradeoff],
    marker: str,
    shades: Mapping[int, str],
    *,
    is_named: bool,
) -> list[Spot]:
    spots = []
    for size, colour in shades.items():
        same = [point for point in front if point.capacity_bytes == size]
        if not same:
            continue
        x, y = [point.dram_bytes for point in same], [point.time_s for point in same]
        ax.plot(x, y, color=style.GREY, linewidth=0.6, zorder=2)
        ax.scatter(x, y, s=_AREA, color=colour, marker=marker, edgecolors=style.INK,
                   linewidths=0.4, zorder=3)  # fmt: skip
        # Once a line; the other points are only kept free.
        texts = [style.binary(size), *[""] * (len(same) - 1)]
        spots += [
            Spot(point.dram_bytes, point.time_s, math.sqrt(_AREA) / 2, text)
            for point, text in zip(same, texts, strict=True)
        ]
    if is_named:
        ax.scatter([], [], s=24, color=style.GREY, marker=marker, label=shortened(name, 28))
    return spots


def _capacities(ax: Axes, shades: Mapping[int, str], title: str) -> None:
    """Say in the legend which colour is which capacity: the ends, and some between."""
    sizes = sorted(shades, reverse=True)
    step = max(1, -(-len(sizes) // 6))
    ax.plot([], [], linestyle="none", label=title)
    for size in sizes[::step]:
        ax.scatter([], [], s=24, color=shades[size], edgecolors=style.INK, linewidths=0.4,
                   label=style.binary(size))  # fmt: skip
    if style.inches(ax) < style.NARROW:
        style.legend_below(ax, 2)
    else:
        style.legend(ax, loc="center left", bbox_to_anchor=(1.0, 0.5))
