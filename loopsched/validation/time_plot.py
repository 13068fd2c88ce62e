"""Estimates over measured times, as a figure."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopsched.render import percent
from loopsched.validation.plot import new_figure, plot_target, save_figure
from loopsched.validation.time_summary import Compared, errors

if TYPE_CHECKING:
    from loopsched.validation.times import TimeValidation

# Okabe and Ito's colours, told apart by everybody; yellow is too light for points.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_BAND = 0.25
_TITLES = {
    "conv": "convolutions",
    "gemm": "matrix products",
    "tiled": "tiled kernels",
    "kernel": "hand-written kernels",
}
_APART = "apart"


def plot_times(found: TimeValidation, path: str | os.PathLike[str]) -> None:
    """Draw estimates over measured times on logarithmic axes.

    One panel for convolutions and one for products; a colour and a marker for
    each GPU and data type.

    Parameters
    ----------
    found : TimeValidation
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
    >>> plot_times(None, "errors.txt")
    Traceback (most recent call last):
        ...
    loopsched.errors.InputError: errors.txt: a plot ends in .svg, .png or .pdf
    """
    target = plot_target(path)
    kinds = [kind for kind in _TITLES if any(one.row.kind == kind for one in found.compared)]
    figure = new_figure(figsize=(5.6 * len(kinds), 5.4))
    labels = list(dict.fromkeys(_label(one) for one in found.compared))
    styles = {
        label: (COLOURS[i % len(COLOURS)], _MARKERS[i % len(_MARKERS)])
        for i, label in enumerate(label for label in labels if label != _APART)
    }
    styles[_APART] = ("#999999", "x")
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        _panel(axes, kind, [one for one in found.compared if one.row.kind == kind], styles)
    save_figure(figure, target)


def _label(one: Compared) -> str:
    return _APART if one.row.apart else f"{one.gpu} {one.row.precision}"


def _panel(
    axes: Any, kind: str, rows: Sequence[Compared], styles: Mapping[str, tuple[str, str]]
) -> None:
    axes.set_title(f"{_TITLES[kind]}: estimate over measurement", fontsize=11)
    axes.set_xlabel("measured time (us)")
    axes.set_ylabel("estimated time (us)")
    every = [value for one in rows for value in (one.row.time_us, one.estimate_us)]
    low = 10.0 ** math.floor(math.log10(min(every)))
    high = 10.0 ** math.ceil(math.log10(max(every) * 1.001))
    for scale, limits in ((axes.set_xscale, axes.set_xlim), (axes.set_yscale, axes.set_ylim)):
        scale("log")
        limits(low, high)
    axes.set_aspect("equal")
    ends = [low, high]
    axes.fill_between(
        ends,
        [(1 - _BAND) * end for end in ends],
        [(1 + _BAND) * end for end in ends],
        color="0.9",
        lw=0,
        label=f"within {100 * _BAND:.0f} %",
    )
    axes.plot(ends, ends, color="0.5", lw=1)
    for label, (colour, marker) in styles.items():
        group = [one for one in rows if _label(one) == label]
        if not group:
            continue
        axes.scatter(
            [one.row.time_us for one in group],
            [one.estimate_us for one in group],
            s=16,
            alpha=0.65,
            color=colour,
            marker=marker,
            linewidths=1 if marker == "x" else 0,
            label=f"{label}: {len(group)} rows, MAPE {percent(_mape(group))}",
        )
    axes.legend(loc="upper left", fontsize=8, frameon=False)


def _mape(rows: Sequence[Compared]) -> float | None:
    found = errors(rows)["mape"]
    return found if isinstance(found, float) else None
