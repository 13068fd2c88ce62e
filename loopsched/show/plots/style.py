"""How all plots look: sizes for print, colours that all can tell apart, axes with units.

Colours never stand alone: what has a colour also has a marker, a dash or a
hatch, so that a print in grey says the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from loopsched.show.table import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

# Inches: one column of a two-column paper, and the text of a page.
COLUMN, PAGE = 3.5, 7.0

# Inches; beside or in a narrower Axes there is no room for a legend.
NARROW = 4.0

# Points.
TITLE, LABEL, TICK, NOTE = 9.0, 8.0, 7.0, 6.5

# Okabe and Ito's colours, told apart by everybody; yellow is too light for points.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (8, 2, 2, 2, 2, 2)),
    (0, (3, 1)),
    (0, (1, 3)),
)
# Of areas that touch: as light and dark as can be told apart in grey.
FILLS = ("#0072B2", "#E69F00", "#B8E2F5", "#009E73", "#CC79A7", "#D55E00", "#000000")
# No dots or rings: as curves they make files large.
HATCHES = ("", "////", "----", "xxxx", "||||", "\\\\\\\\", "++++")
INK, GREY, PALE = "0.15", "0.5", "0.9"

# Characters; a title may reach beyond the spines.
_TITLE_PER_INCH = 16
_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
_PREFIXES |= {15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


class Look(NamedTuple):
    """What tells one group from the others, in colour and in grey."""

    colour: str
    fill: str
    marker: str
    dash: Any
    hatch: str


def look(number: int) -> Look:
    """Choose the look of a group by its number.

    After seven, colours come again with other markers, dashes and hatches.

    Examples
    --------
    >>> look(1).colour, look(1).marker, look(8).colour, look(8).marker
    ('#D55E00', 's', '#D55E00', '^')
    """
    n = len(COLOURS)
    i, j = number % n, (number + number // n) % n
    return Look(COLOURS[i], FILLS[i], MARKERS[j], DASHES[j], HATCHES[j])


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Choose a look for each name, in the order in which they first occur."""
    return {name: look(number) for number, name in enumerate(dict.fromkeys(names))}


@contextmanager
def context() -> Iterator[None]:
    """Draw with these settings, whatever a user's own file of settings says."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "font.size": LABEL,
                "hatch.linewidth": 0.5,
                "pdf.fonttype": 42,  # text that can be searched and edited
                "savefig.dpi": 300,
                "svg.hashsalt": "loopsched",
            }
        )
        yield


def dress(ax: Axes, title: str = "") -> None:
    """Give an Axes the fonts, spines and grid of all plots."""
    ax.tick_params(labelsize=TICK, width=0.6, length=2.5, colors=INK, labelcolor=INK)
    ax.tick_params(which="minor", width=0.4, length=1.5)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_linewidth(0.6)
        spine.set_color(INK)
    ax.grid(color=PALE, linewidth=0.5)
    ax.set_axisbelow(True)
    if title:
        titled(ax, title)


def titled(ax: Axes, title: str, *remarks: str, pad: float = 4.0) -> None:
    """Set a title, shortened to the width there is, with small lines below it."""
    for number, line in enumerate(reversed(remarks)):
        offset = (0, pad + 1.2 * NOTE * number)
        beside(ax, line, (0.5, 1), offset, "center", "bottom", xycoords="axes fraction")
    text = shortened(title, max(12, int(_TITLE_PER_INCH * inches(ax))))
    ax.set_title(text, fontsize=TITLE, color=INK, pad=pad + 1.2 * NOTE * len(remarks) + 2.5)


def beside(
    ax: Axes,
    text: str,
    place: tuple[float, float],
    offset: tuple[float, float],
    ha: str = "left",
    va: str = "center",
    **look: Any,
) -> None:
    """Write a small text some points away from a place in the data."""
    look = {"fontsize": NOTE, "color": INK, **look}
    ax.annotate(text, place, offset, textcoords="offset points", ha=ha, va=va, **look)


def legend(ax: Axes, **where: Any) -> None:
    """Add a legend, if something has a label, on white."""
    if ax.get_legend_handles_labels()[0]:
        found = ax.legend(fontsize=NOTE, title_fontsize=NOTE, labelcolor=INK, **where)
        found.set_zorder(6)
        handles: list[Any] = list(found.legend_handles)
        for handle in handles:
            if hasattr(handle, "set_sizes"):  # points of many sizes: one in the legend
                handle.set_sizes([24.0])
        frame = found.get_frame()
        frame.set(linewidth=0, facecolor="white", alpha=0.85)


def legend_below(ax: Axes, ncols: int, title: str | None = None) -> None:
    """Add a legend below the name of the horizontal axis, however high the Axes is."""
    from matplotlib.transforms import ScaledTranslation

    down = ScaledTranslation(0, -(LABEL + TICK + 14) / 72, ax.figure.dpi_scale_trans)
    legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=ncols, title=title,
           bbox_transform=ax.transAxes + down)  # fmt: skip


def nothing(ax: Axes, text: str) -> None:
    """Say in the middle why there is nothing to see."""
    ax.text(0.5, 0.5, text, ha="center", va="center", fontsize=LABEL, color=INK,
            transform=ax.transAxes)  # fmt: skip


def note(ax: Axes, text: str) -> None:
    """Add a remark below the upper left corner."""
    ax.text(0.02, 0.98, text, ha="left", va="top", fontsize=NOTE, color=INK,
            transform=ax.transAxes)  # fmt: skip


def label_x(ax: Axes, text: str) -> None:
    """Name the horizontal axis."""
    ax.set_xlabel(text, fontsize=LABEL, color=INK)


def label_y(ax: Axes, text: str) -> None:
    """Name the vertical axis."""
    ax.set_ylabel(text, fontsize=LABEL, color=INK)


def heading(what: str, name: str = "") -> str:
    """Write a title: the workload, and what of it is shown.

    Examples
    --------
    >>> heading("25 layers", "resnet50"), heading("conv1")
    ('resnet50: 25 layers', 'conv1')
    """
    return f"{name}: {what}" if name and name != what else what


def decimal(value: float, unit: str = "") -> str:
    """Write a tick of an axis with a decimal prefix and its unit; without one, no fraction has any.

    Examples
    --------
    >>> decimal(2e9, "B"), decimal(1500), decimal(0.2), decimal(0, "s"), decimal(5e-6, "s")
    ('2 GB', '1.5 k', '0.2', '0', '5 µs')
    """
    if not value:
        return "0"
    power = max(_power(value), -12 if unit else 0)
    return f"{value / 10.0**power:.4g} {_PREFIXES[power]}{unit}".rstrip()


def _power(value: float) -> int:
    """Choose the decimal prefix of a number that is not 0, as a power of ten."""
    return min(max(3 * math.floor(math.log10(abs(value) * (1 + 1e-9)) / 3), -12), 18)


def binary(value: float) -> str:
    """Write a tick of an axis of capacities with a binary prefix.

    Examples
    --------
    >>> binary(32768), binary(4718592), binary(16)
    ('32 KiB', '4.5 MiB', '16 B')
    """
    power = min(max(int(math.log2(max(value, 1)) / 10 + 1e-9), 0), len(_BINARY) - 1)
    return f"{value / 1024**power:.4g} {_BINARY[power]}B"


def log_axis(axis: XAxis | YAxis, low: float, high: float, unit: str = "") -> None:
    """Make an axis logarithmic over a range, with ticks in decimal prefixes.

    Parameters
    ----------
    axis : XAxis or YAxis
        ``ax.xaxis`` or ``ax.yaxis``.
    low, high : float
        Above zero.
    unit : str
        Of the ticks; without one, the name of the axis is to say it.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    _limits(axis, low, high)
    most = min(7, max(3, round(2.6 * inches(axis.axes))))
    axis.set_major_locator(FixedLocator(log_ticks(low, high, most)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: decimal(value, unit)))
    if high / low < 1e7:
        minor = [i * 10.0**n for n in _decades(low, high) for i in range(2, 10)]
        axis.set_minor_locator(FixedLocator([each for each in minor if low <= each <= high]))
    else:
        axis.set_minor_locator(FixedLocator([10.0**n for n in _decades(low, high)]))
    axis.set_minor_formatter(NullFormatter())


def inches(ax: Axes) -> float:
    """Estimate how wide an Axes is on paper, before it is laid out."""
    return float(ax.get_position().width * ax.figure.bbox.width / ax.figure.figure.dpi)


def capacity_axis(axis: XAxis | YAxis, low: float, high: float) -> None:
    """Make an axis of capacities: powers of two, in binary prefixes."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    _limits(axis, low, high)
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    most = max(2, int(2.2 * inches(axis.axes)))
    step = max(1, -(-(last - first + 1) // most))
    if step > 2:  # 1 KiB, 32 KiB, 1 MiB: steps that meet the prefixes
        step = next((n for n in (5, 10, 20) if n >= step), step)
    powers = [n for n in range(first, last + 1) if n % step == 0] or [first]
    axis.set_major_locator(FixedLocator([2.0**n for n in powers]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: binary(value)))


def linear_axis(axis: XAxis | YAxis, name: str, unit: str, high: float) -> None:
    """Name an axis from zero, its unit with the prefix that suits the largest value."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    power = _power(high) if high > 0 else 0
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 10.0**power:.6g}"))
    axis.set_label_text(f"{name} ({_PREFIXES[power]}{unit})", fontsize=LABEL, color=INK)


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Choose ticks of a logarithmic axis: decades, or 1-2-5, or as a ruler has them.

    Examples
    --------
    >>> log_ticks(1e3, 1e6)
    [1000.0, 10000.0, 100000.0, 1000000.0]
    >>> log_ticks(3, 40), log_ticks(1, 1e9, 4)
    ([5.0, 10.0, 20.0], [1.0, 1000.0, 1000000.0, 1000000000.0])
    """
    decades = _decades(low, high)
    exact = [n for n in decades if _within(10.0**n, low, high)]
    for step in (1, 2, 3, 6, 12):
        powers = [n for n in exact if n % step == 0]
        if len(powers) <= most:
            break
    if len(exact) >= 3:
        return [10.0**n for n in (powers if len(powers) > 1 else exact[:: len(exact) - 1])]
    fine = [i * 10.0**n for n in decades for i in (1, 2, 5)]
    fine = [tick for tick in fine if _within(tick, low, high)]
    ticks = fine if len(fine) >= 3 else _ruler(low, high)
    return ticks[:: max(1, math.ceil(len(ticks) / most))]


def _ruler(low: float, high: float) -> list[float]:
    """Choose evenly spaced round numbers in a range of less than a decade."""
    base = 10.0 ** math.floor(math.log10((high - low) / 4))
    found: list[float] = []
    for step in (10 * base, 5 * base, 2 * base, base):
        found = [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(found) >= 3:
            break
    return found


def _decades(low: float, high: float) -> range:
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def _within(value: float, low: float, high: float) -> bool:
    return low * (1 - 1e-9) <= value <= high * (1 + 1e-9)


def _limits(axis: XAxis | YAxis, low: float, high: float) -> None:
    name = axis.axis_name  # x or y
    getattr(axis.axes, f"set_{name}scale")("log")
    getattr(axis.axes, f"set_{name}lim")(low, high)


def margins(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """Find limits of a logarithmic axis with some room around the values.

    Examples
    --------
    >>> low, high = margins([10.0, 1000.0], 0.5)
    >>> round(low, 6), round(high, 6)
    (1.0, 10000.0)
    """
    low, high = min(values), max(values)
    room = max((high / low) ** share, 1.1)
    return low / room, high * room
