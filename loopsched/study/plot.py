"""A tornado plot: what each number of the machine does to the time, largest first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from loopsched.study.sensitivity import Parameter, Point, Quantity, Sensitivity
from loopsched.validation.plot import new_figure, plot_target, save_figure

# Okabe and Ito's blue and vermilion, told apart by everybody; hatched for prints in grey.
_LOWER, _HIGHER = "#D55E00", "#0072B2"
_TITLES: dict[Quantity, str] = {
    "time": "best schedules, promised time",
    "estimate": "kernels, expected time",
    "dram_bytes": "best schedules, promised DRAM traffic",
}
_MOST_BARS = 24
# Changes below this are drawn as nothing.
_LEAST = 5e-4


def plot_sensitivity(found: Sensitivity, path: str | os.PathLike[str]) -> None:
    """Draw how far each parameter moves the time, sorted.

    One panel for the promised time of the best schedules (or their DRAM
    traffic, if parameters are ranked by that), one for kernels
    if they can be estimated.

    Parameters
    ----------
    found : Sensitivity
    path : str or path
        Where to write; its ending says in which format.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the file cannot be written.

    Examples
    --------
    >>> plot_sensitivity(None, "tornado.txt")
    Traceback (most recent call last):
        ...
    loopsched.errors.InputError: tornado.txt: a plot ends in .svg, .png or .pdf
    """
    target = plot_target(path)
    quantities: list[Quantity] = ["dram_bytes" if found.quantity == "dram_bytes" else "time"]
    if found.base.estimate_s is not None:
        quantities.append("estimate")
    ranked = {quantity: _moving(found, quantity) for quantity in quantities}
    n_bars = max(len(bars) for bars in ranked.values())
    figure = new_figure(figsize=(6.2 * len(quantities), 2.1 + 0.3 * n_bars))
    panels = figure.subplots(1, len(quantities), squeeze=False)[0]
    for axes, quantity in zip(panels, quantities, strict=True):
        _panel(axes, quantity, ranked[quantity], found)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.suptitle(f"{found.workload} on {found.arch}", fontsize=11)
    save_figure(figure, target)


def _moving(found: Sensitivity, quantity: Quantity) -> list[Parameter]:
    """Pick the parameters that a bar can show, or the first if there are none."""
    whole = found.base.value(quantity) or 1.0
    ranked = found.ranked(quantity)
    moving = [
        one
        for one in ranked
        if any(
            abs((point.value(quantity) or whole) / whole - 1) > _LEAST
            for point in (one.lowest, one.highest)
        )
    ]
    return moving[:_MOST_BARS] or list(ranked[:1])


def _panel(axes: Any, quantity: Quantity, bars: Sequence[Parameter], found: Sensitivity) -> None:
    whole = found.base.value(quantity) or 1.0
    changes = [100 * ((point.value(quantity) or whole) / whole - 1) for point in found.points]
    widest = max([1.0, *map(abs, changes)])
    for position, one in enumerate(bars):
        for point, colour, hatch in ((one.lowest, _LOWER, "///"), (one.highest, _HIGHER, "")):
            change = 100 * ((point.value(quantity) or whole) / whole - 1)
            if point.key:
                axes.barh(position, change, 0.62, color=colour, hatch=hatch, edgecolor="white",
                          linewidth=0, alpha=0.85)  # fmt: skip
                axes.annotate(
                    f"x{point.ratio:.3g}",
                    (change, position),
                    xytext=(3 if change > 0 else -3, 0),
                    textcoords="offset points",
                    ha="left" if change > 0 else "right",
                    va="center",
                    fontsize=7,
                )
    axes.axvline(0, color="0.3", lw=0.8)
    axes.set_yticks(range(len(bars)), [one.key for one in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    low, high = min([0.0, *changes]), max([0.0, *changes])
    axes.set_xlim(low - 0.12 * widest, high + 0.12 * widest)
    left_out = len({point.key for point in found.points}) - len(bars)
    others = f"; {left_out} others: less than {100 * _LEAST:.2f} %" if left_out else ""
    axes.set_xlabel(f"change (%) from {_amount(found.base, quantity)}{others}")
    axes.set_title(_TITLES[quantity], fontsize=10)
    axes.grid(axis="x", color="0.9", lw=0.6)
    axes.set_axisbelow(True)


def _legend() -> list[Any]:
    from matplotlib.patches import Patch

    lower = Patch(facecolor=_LOWER, hatch="///", edgecolor="white", label="smallest factor")
    return [lower, Patch(facecolor=_HIGHER, label="largest factor")]


def _amount(base: Point, quantity: Quantity) -> str:
    from loopsched.render import scaled

    return scaled(base.value(quantity), "B" if quantity == "dram_bytes" else "s")
