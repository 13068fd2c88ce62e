"""A tornado: what each parameter of the machine does to the time, largest first."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from loopsched.base.units import amount, count
from loopsched.show.plots import style
from loopsched.show.plots.figure import axes_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from loopsched.base.rows import Row
    from loopsched.study.sensitivity import Parameter, Point, Quantity, Sensitivity

_LOWER = (style.COLOURS[1], "////", "smallest factor")
_HIGHER = (style.COLOURS[0], "", "largest factor")
_TITLES: dict[Quantity, str] = {
    "time": "best schedules, promised time",
    "estimate": "kernels, estimated time",
    "dram_bytes": "best schedules, promised DRAM traffic",
}
_MOST_BARS = 24
# Changes below this are drawn as nothing.
_LEAST = 5e-4


def quantities(found: Sensitivity) -> list[Quantity]:
    """Name what there is to draw: what schedules promise, and kernels, if they were estimated."""
    named: list[Quantity] = ["dram_bytes" if found.quantity == "dram_bytes" else "time"]
    return named if found.base.estimate_s is None else [*named, "estimate"]


def tornado_rows(found: Sensitivity) -> list[Row]:
    """Describe every bar, those that are too short to be drawn included.

    Returns
    -------
    list of dict
        For each quantity and parameter, its smallest and its largest point:
        ``ratio`` is that of the machine's number, ``change`` the quantity's,
        as a share.
    """
    return [
        {
            "quantity": quantity,
            "parameter": one.key,
            "end": end,
            "ratio": point.ratio,
            "value": point.value(quantity),
            "change": _change(found, quantity, point),
        }
        for quantity in quantities(found)
        for one in found.ranked(quantity)
        for end, point in (("lowest", one.lowest), ("highest", one.highest))
    ]


def plot_tornado(
    found: Sensitivity, quantity: Quantity | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw how far each parameter moves a quantity, sorted.

    Parameters
    ----------
    found : Sensitivity
    quantity : {'time', 'estimate', 'dram_bytes'}, optional
        By default the one that parameters are ranked by.
    ax : Axes, optional

    See Also
    --------
    sensitivity
    """
    quantity = quantity or found.quantity
    bars = _moving(found, quantity)
    ax = axes_of(ax, height=_height(len(bars)))
    style.dress(ax, _TITLES[quantity])
    changes = [100 * _change(found, quantity, point) for point in found.points]
    for position, one in enumerate(bars):
        ends = [
            (100 * _change(found, quantity, point), point, look)
            for point, look in ((one.lowest, _LOWER), (one.highest, _HIGHER))
            if point.key
        ]
        _bars(ax, position, ends)
    # Only as long as there are bars: below them stands the legend.
    if bars:
        ax.plot([0, 0], [-0.6, len(bars) - 0.4], color=style.INK, linewidth=0.8)
    ax.set_yticks(range(len(bars)), [one.key for one in bars])
    ax.set_ylim(max(1, len(bars)) + 0.5, -0.6)
    low, high = min([0.0, *changes]), max([0.0, *changes])
    room = 0.5 / max(style.inches(ax), 1.0) * max(high - low, 1.0)  # for the factors
    ax.set_xlim(low - room, high + room)
    base = amount(found.base.value(quantity), "B" if quantity == "dram_bytes" else "s")
    left_out = len({point.key for point in found.points}) - len(bars)
    others = ""
    if not bars:
        style.nothing(ax, f"no parameter changes it by {100 * _LEAST:.2f} %")
    elif left_out:
        others = f"\n{count(left_out, 'other')}: below {100 * _LEAST:.2f} %"
    style.label_x(ax, f"change (%) from {base}{others}")
    style.legend(ax, loc="lower right", ncols=2)  # below all bars
    ax.grid(visible=False, axis="y")
    return ax


def tornado_figure(found: Sensitivity, title: str = "") -> Figure:
    """Draw schedules, and kernels if they can be estimated, side by side.

    ``title`` says what of the workload was asked about, if not all.
    """
    named = quantities(found)
    n_bars = max(len(_moving(found, quantity)) for quantity in named)
    figure = new_figure(height=_height(n_bars))
    for ax, quantity in zip(figure.subplots(1, len(named), squeeze=False)[0], named, strict=True):
        plot_tornado(found, quantity, ax=ax)
        ax.set_ylim(max(1, n_bars) + 0.5, -0.6)  # bars of all panels are in line
    figure.suptitle(
        f"{title or found.workload} on {found.arch}", fontsize=style.TITLE, color=style.INK
    )
    return figure


def _height(n_bars: int) -> float:
    return 1.53 + 0.2 * max(1, n_bars)


def _change(found: Sensitivity, quantity: Quantity, point: Point) -> float:
    whole = found.base.value(quantity) or 1.0
    return (point.value(quantity) or whole) / whole - 1


def _moving(found: Sensitivity, quantity: Quantity) -> list[Parameter]:
    """Pick the parameters that a bar can show."""
    ranked = found.ranked(quantity)
    moving = [
        one
        for one in ranked
        if any(abs(_change(found, quantity, point)) > _LEAST for point in (one.lowest, one.highest))
    ]
    return moving[:_MOST_BARS]


def _bars(
    ax: Axes, position: int, ends: Sequence[tuple[float, Point, tuple[str, str, str]]]
) -> None:
    """Draw what a parameter does; of two factors, that of the lower change stands on the left."""
    lower = min(reversed(ends), key=itemgetter(0), default=None)
    for one in ends:
        change, point, (colour, hatch, label) = one
        ax.barh(position, change, 0.62, color=colour, hatch=hatch, edgecolor="white", linewidth=0,
                label=None if label in ax.get_legend_handles_labels()[1] else label)  # fmt: skip
        is_right = one is not lower if len(ends) > 1 else change > 0
        away, side = (2.5, "left") if is_right else (-2.5, "right")
        place = max(0.0, change) if is_right else min(0.0, change)
        text = f"\N{MULTIPLICATION SIGN}{point.ratio:.3g}"
        style.beside(ax, text, (place, position), (away, 0), side)
