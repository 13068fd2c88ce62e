"""Predictions over measurements: traffic over counters, estimates over times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopsched.base.units import percent
from loopsched.show.plots import style
from loopsched.show.plots.figure import axes_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from loopsched.base.rows import Row
    from loopsched.validation import TimeValidation, Validation
    from loopsched.validation.choices import ChoiceValidation

_COUNTERS = (
    ("dram_read_bytes", "DRAM reads", "B"),
    ("dram_write_bytes", "DRAM writes", "B"),
    ("l2_read_sectors", "L2 reads", "sectors"),
)
_KINDS = {
    "conv": "convolutions",
    "gemm": "GEMMs",
    "grouped": "grouped GEMMs",
    "attn": "attention",
    "decode": "decoding",
    "clblast_gemm": "CLBlast's GEMMs",
    "filter": "filters",
    "tiled": "tiled kernels",
    "kernel": "hand-written kernels",
}
_APART = "apart"
_APART_LABEL = "listed separately"
_APART_LOOK = style.Look(style.GREY, style.GREY, "x", ":", "")


@dataclass(frozen=True, slots=True)
class Pair:
    """One prediction beside its measurement, in the unit of its comparison."""

    group: str
    measured: float
    predicted: float

    @property
    def is_positive(self) -> bool:
        """Whether it has a place on logarithmic axes."""
        return self.measured > 0 and self.predicted > 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Predictions of one quantity beside its measurements: one panel.

    Parameters
    ----------
    title : str
    unit : str
    band : float
        Share within which predictions count as near.
    pairs : tuple of Pair
    """

    title: str
    unit: str
    band: float
    pairs: tuple[Pair, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, in order; rows that are listed separately come last."""
        names = dict.fromkeys(pair.group for pair in self.pairs)
        return tuple(sorted(names, key=lambda name: name == _APART))


def comparisons(found: Validation | TimeValidation | ChoiceValidation) -> tuple[Comparison, ...]:
    """Split what was validated into panels: by counter, or by kind of kernel."""
    from loopsched.validation import TimeValidation
    from loopsched.validation.choices import ChoiceValidation

    if isinstance(found, TimeValidation):
        return tuple(_times(found))
    if isinstance(found, ChoiceValidation):
        return tuple(_choices(found))
    return tuple(_counters(found))


def _times(found: TimeValidation) -> Iterator[Comparison]:
    for kind, title in _KINDS.items():
        pairs = [
            Pair(
                _APART if one.row.apart else f"{one.gpu} {one.row.precision}",
                1e-6 * one.row.time_us,
                1e-6 * one.estimate_us,
            )
            for one in found.compared
            if one.row.kind == kind
        ]
        if pairs:
            yield Comparison(title, "s", 0.25, tuple(pairs))


def _choices(found: ChoiceValidation) -> Iterator[Comparison]:
    for group in found.summary["groups"]:
        pairs = [
            Pair(
                "may be best" if row["may_be_best"] else "others",
                1e-6 * row["time_us"],
                1e-6 * row["estimate_us"],
            )
            for row in found.rows
            if (row["kind"], row["data_type"]) == (group["kind"], group["data_type"])
        ]
        title = f"{_KINDS[group['kind']]}, {group['data_type']}"
        yield Comparison(title, "s", 0.25, tuple(pairs))


def _counters(found: Validation) -> Iterator[Comparison]:
    for name, title, unit in _COUNTERS:
        pairs = []
        for row in found.rows:
            measured, predicted = row.get(name), row[f"predicted_{name}"]
            if isinstance(measured, int | float) and isinstance(predicted, int | float):
                pairs.append(Pair("", float(measured), float(predicted)))
        yield Comparison(title, unit, 0.2, tuple(pairs))


def measured_rows(found: Sequence[Comparison]) -> list[Row]:
    """Describe every pair of every panel.

    Examples
    --------
    >>> measured_rows([Comparison("DRAM reads", "B", 0.2, (Pair("", 4.0, 5.0),))])
    [{'panel': 'DRAM reads', 'group': '', 'unit': 'B', 'measured': 4.0, 'predicted': 5.0}]
    """
    return [
        {
            "panel": one.title,
            "group": pair.group,
            "unit": one.unit,
            "measured": pair.measured,
            "predicted": pair.predicted,
        }
        for one in found
        for pair in one.pairs
    ]


def plot_measured(found: Comparison, *, name: str = "", ax: Axes | None = None) -> Axes:
    """Draw predictions over measurements on logarithmic axes of one scale.

    A colour and a marker for each group; its errors are in the legend.

    Parameters
    ----------
    found : Comparison
        One of what `loopsched.show.plots.measured.comparisons` makes of a validation.
    name : str
        Of what was measured, for the title.
    ax : Axes, optional

    See Also
    --------
    validate_counters, validate_times
    """
    ax = axes_of(ax, 3.4, 3.4)
    style.dress(ax)
    style.titled(ax, style.heading(found.title, name), *_remarks(found))
    is_short = found.unit in ("s", "B")  # then it stands beside each number
    unit, told = (found.unit, "") if is_short else ("", f" ({found.unit})")
    style.label_x(ax, f"measured{told}")
    style.label_y(ax, f"{'estimate' if found.unit == 's' else 'predicted'}{told}")
    shown = [pair for pair in found.pairs if pair.is_positive]
    if not shown:
        style.nothing(ax, "nothing to compare")
        return ax
    every = [value for pair in shown for value in (pair.measured, pair.predicted)]
    low, high = style.margins(every)
    style.log_axis(ax.xaxis, low, high, unit)
    style.log_axis(ax.yaxis, low, high, unit)
    ax.set_box_aspect(1)
    ends = [low, high]
    near = f"within {100 * found.band:.0f} %"
    ax.fill_between(ends, [(1 - found.band) * end for end in ends],
                    [(1 + found.band) * end for end in ends], color=style.PALE, linewidth=0,
                    label=near)  # fmt: skip
    ax.plot(ends, ends, color=style.GREY, linewidth=0.8)
    for number, group in enumerate(found.groups):
        _points(ax, found, group, _APART_LOOK if group == _APART else style.look(number))
    title = "rows; errors: median, mean" if any(found.groups) else None
    style.legend_below(ax, 1, title=title)  # inside, it would cover the line
    return ax


def _remarks(found: Comparison) -> list[str]:
    """Say under the title what a panel without groups shows, and what it does not."""
    lines = []
    if found.groups == ("",) and (errors := _errors(found.pairs)):
        rows, median, mean = errors
        lines += [f"rows: {rows}", f"errors: median {median}, mean {mean}"]
    hidden = sum(not pair.is_positive for pair in found.pairs)
    if hidden:
        # What was measured or predicted as nothing has no place on a logarithmic axis.
        lines.append(f"{hidden:,} with 0: not shown")
    return lines


def _errors(pairs: Sequence[Pair]) -> tuple[str, str, str] | None:
    """Say how many pairs there are, and the median and mean of their errors."""
    off = sorted(abs(pair.predicted / pair.measured - 1) for pair in pairs if pair.is_positive)
    if not off:
        return None
    median = (off[(len(off) - 1) // 2] + off[len(off) // 2]) / 2
    mean = math.fsum(off) / len(off)
    return f"{len(off):,}", percent(median), percent(mean)


def _points(ax: Axes, found: Comparison, group: str, look: style.Look) -> None:
    pairs = [pair for pair in found.pairs if pair.group == group and pair.is_positive]
    errors = _errors(pairs)
    if errors is None:
        return
    rows, median, mean = errors
    label = _APART_LABEL if group == _APART else group
    ax.scatter(
        [pair.measured for pair in pairs],
        [pair.predicted for pair in pairs],
        s=10,
        alpha=0.65,
        color=look.colour,
        marker=look.marker,
        linewidths=0.8 if look.marker == "x" else 0,
        label=f"{label}: {rows}; {median}, {mean}" if group else None,
    )


def measured_figure(found: Sequence[Comparison], name: str = "") -> Figure:
    """Draw all panels side by side, under the name of what was measured.

    Panels of several groups have legends: two of them stand side by side.
    """
    n = max(1, len(found))
    n_groups = max((len(one.groups) for one in found), default=1)
    most = 2 if n_groups > 1 else n
    across, down = min(n, most), -(-n // most)
    height = (2.9 if across > 2 else 3.9 + 0.13 * (n_groups + (n_groups > 1))) * down
    figure = new_figure(width=max(style.COLUMN, min(style.PAGE, 3.5 * across)), height=height)
    panels = figure.subplots(down, across, squeeze=False).flatten()
    for ax, one in zip(panels, found, strict=False):
        plot_measured(one, name=name if n == 1 else "", ax=ax)
    for ax in panels[n:]:
        ax.remove()
    if not found:
        style.dress(panels[0])
        style.nothing(panels[0], "nothing to compare")
    if name and n > 1:
        figure.suptitle(name, fontsize=style.TITLE, color=style.INK)
    # Square panels shrink as room is made for legends and remarks: the layout takes four passes.
    for _ in range(3):
        figure.draw_without_rendering()
    return figure
