"""The ski slope: the least DRAM traffic against the capacity of a buffer.

After Huang et al., "Mind the Gap: Attainable Data Movement and Operational
Intensity Bounds for Tensor Algorithms" (Orojenesis), ISCA 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from loopsched.base.errors import InputError, nearest
from loopsched.base.units import count
from loopsched.show.plots import style
from loopsched.show.plots.figure import axes_of
from loopsched.show.plots.labels import End, label_ends
from loopsched.show.table import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from loopsched.base.rows import Row
    from loopsched.curves.staircase import Staircase
    from loopsched.machines.arch import Arch

Form = Literal["traffic", "bandwidth", "intensity"]
FORMS: tuple[Form, ...] = ("traffic", "bandwidth", "intensity")

# The name of the axis, and the unit of its ticks.
_LABELS: dict[Form, tuple[str, str]] = {
    "traffic": ("DRAM traffic", "B"),
    "bandwidth": ("DRAM bandwidth that keeps up", "B/s"),
    "intensity": ("operational intensity (FLOP/B)", ""),
}
# What a curve alone is called.
_BEST: dict[Form, str] = {
    "traffic": "least traffic",
    "bandwidth": "with the least traffic",
    "intensity": "with the least traffic",
}
# Of more curves than the first, only those with the most traffic have names and colours.
_MOST_NAMED, _LARGEST = 24, 12
# More curves than this have no marks at their knees.
_MOST_KNEES = 7
# Characters of a name at the end of a curve, an inch of the Axes.
_NAME_PER_INCH = 3.5
_BOUND_SAMPLES = 80


def ski_slope_rows(curves: Sequence[Staircase], arch: Arch | None = None) -> list[Row]:
    """Describe every step of every curve.

    Parameters
    ----------
    curves : sequence of Curve
    arch : Arch, optional
        Adds the bandwidth at which its units never wait.

    Returns
    -------
    list of dict
        As the curves' own ``rows``, one curve after the other.

    Examples
    --------
    >>> from loopsched import gemm, traffic_curve
    >>> [row["dram_bytes"] for row in ski_slope_rows([traffic_curve(gemm(m=2, n=2, k=2))])][-1]
    48
    """
    return [row for curve in curves for row in curve.rows(arch)]


def plot_ski_slope(
    curves: Sequence[Staircase],
    *,
    arch: Arch | None = None,
    form: Form = "traffic",
    whole: Staircase | None = None,
    name: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the least DRAM traffic at every capacity of a buffer, as a staircase.

    A single curve is drawn with its knees, its compulsory traffic, the lower bound of every
    order of execution and, unless all of it is proven least, that of nests that keep all
    tiles at one place; several curves only with their names at their ends. Of more than two
    dozen, the twelve with the most traffic have names; the others are grey.

    Parameters
    ----------
    curves : sequence of Curve
    arch : Arch, optional
        Marks the capacities of its levels, one instance of each.
    form : {'traffic', 'bandwidth', 'intensity'}
        Bytes; bytes a second at which the machine's units would never wait
        (this needs ``arch``); or operations a byte.
    whole : Staircase, optional
        All layers together, drawn thick beside the curves.
    name : str
        Of the workload, for the title.
    ax : Axes, optional

    Raises
    ------
    InputError
        If the form is unknown, or needs a machine and has none.

    See Also
    --------
    traffic_curve
    """
    if form not in FORMS:
        raise InputError(f"form '{form}' is unknown; {nearest(str(form), FORMS)}")
    if form == "bandwidth" and arch is None:
        raise InputError("the form 'bandwidth' needs an arch, whose units are to be kept busy")
    ax = axes_of(ax)
    style.dress(ax)
    # Above the names of levels.
    pad = 6.0 if arch is None else 2.8 * style.NOTE
    machine = "" if arch is None else f" on {arch.name}"
    style.titled(ax, _title(curves, name) + machine, pad=pad)
    drawn = [curve for curve in curves if curve.capacities_bytes]
    style.label_x(ax, f"capacity of the {_buffer(curves)}")
    label, unit = _LABELS[form]
    style.label_y(ax, label)
    if not drawn:
        style.nothing(ax, "no curve")
        return ax
    left, right = _span(drawn, arch)
    heights: list[float] = []
    ends: list[End] = []
    named = _named(drawn)
    for number, curve in enumerate(drawn):
        value = _value(curve, form, arch)
        look = style.look(named.index(number)) if number in named else None
        heights += _stairs(ax, curve, value, look, len(drawn), right, _BEST[form])
        if look is not None:
            ends.append(End(heights[-1], _short(ax, curve.name), look.colour, look.dash))
    if whole is not None:
        heights += _whole(ax, whole, _value(whole, form, arch), right)
        ends.append(End(heights[-1], "all, times count", "black", "-"))
    if len(drawn) == 1:
        heights += _limits(ax, drawn[0], _value(drawn[0], form, arch), left, right)
    style.capacity_axis(ax.xaxis, left, right)
    style.log_axis(ax.yaxis, *style.margins(heights, 0.08), unit)
    if arch is not None:
        _machine(ax, arch, left, right)
    if len(drawn) == 1:  # inside, a legend would hide curves or capacities
        style.legend_below(ax, 2 if style.inches(ax) > style.NARROW else 1)
        return ax
    if len(named) < len(drawn):
        style.note(ax, f"in colour: the {len(named)} layers with the most traffic")
    label_ends(ax, ends)
    return ax


def _named(curves: Sequence[Staircase]) -> list[int]:
    """Choose which of the curves have names: all, or those with the most traffic."""
    every = range(len(curves))
    if len(curves) <= _MOST_NAMED:
        return [*every]
    return sorted(sorted(every, key=lambda i: -curves[i].dram_bytes[-1])[:_LARGEST])


def _short(ax: Axes, name: str) -> str:
    return shortened(name, max(14, int(_NAME_PER_INCH * style.inches(ax))))


def _title(curves: Sequence[Staircase], name: str) -> str:
    return style.heading(curves[0].name if len(curves) == 1 else count(len(curves), "layer"), name)


def _buffer(curves: Sequence[Staircase]) -> str:
    """Name what holds the data: a scratchpad unless all curves are of an LRU cache."""
    policies = {
        getattr(one, "policy", None) for each in curves for one in getattr(each, "curves", [each])
    }
    return "LRU cache" if policies == {"lru"} else "buffer"


def _whole(
    ax: Axes, curve: Staircase, value: Callable[[float], float], right: float
) -> list[float]:
    x = [*map(float, curve.capacities_bytes), right]
    y = [value(moved) for moved in (*curve.dram_bytes, curve.dram_bytes[-1])]
    ax.step(x, y, where="post", color="black", linewidth=2)
    return y


def _span(curves: Sequence[Staircase], arch: Arch | None) -> tuple[float, float]:
    ends = [each for curve in curves for each in (curve.capacities_bytes[0],
            curve.capacities_bytes[-1])]  # fmt: skip
    sizes = [] if arch is None else [level.usable_bytes or 0 for level in arch.caches]
    return min(ends) / 1.5, max([*ends, *sizes]) * 2.0


def _value(curve: Staircase, form: Form, arch: Arch | None) -> Callable[[float], float]:
    """Make what turns bytes into what the vertical axis shows."""
    if form == "intensity":
        flops = 2 * curve.macs
        return lambda moved: flops / moved
    if form == "bandwidth" and arch is not None:
        seconds = curve.compute_time_s(arch)
        return lambda moved: moved / seconds
    return float


def _stairs(
    ax: Axes,
    curve: Staircase,
    value: Callable[[float], float],
    look: style.Look | None,
    n_curves: int,
    right: float,
    best: str,
) -> list[float]:
    x = [*map(float, curve.capacities_bytes), right]
    y = [value(moved) for moved in (*curve.dram_bytes, curve.dram_bytes[-1])]
    if look is None:
        ax.step(x, y, where="post", color=style.GREY, linewidth=0.5, alpha=0.5, zorder=1.7)
        return y
    best += "" if curve.n_proven == len(curve) else " found"
    ax.step(x, y, where="post", color=look.colour, linewidth=1.3 if n_curves <= _MOST_KNEES else 1,
            linestyle=look.dash, label=best if n_curves == 1 else None)  # fmt: skip
    if n_curves > _MOST_KNEES:
        return y
    knees = [knee.index for knee in curve.knees]
    ax.plot(
        [x[i] for i in knees],
        [y[i] for i in knees],
        linestyle="none",
        marker=look.marker,
        markersize=4,
        markerfacecolor="white",
        markeredgecolor=look.colour,
        label="knees" if n_curves == 1 and knees else None,
        zorder=4,
    )
    return y


def _limits(
    ax: Axes, curve: Staircase, value: Callable[[float], float], left: float, right: float
) -> list[float]:
    """Draw what no schedule, and no buffer, can go below."""
    share = (right / left) ** (1 / _BOUND_SAMPLES)
    x = [int(left * share**i) for i in range(_BOUND_SAMPLES + 1)]
    y = [value(curve.bound_bytes(capacity)) for capacity in x]
    ax.plot(x, y, color=style.COLOURS[1], linewidth=1, linestyle=style.DASHES[2],
            zorder=1.8, label="bound for any order of execution")  # fmt: skip
    if curve.n_proven < len(curve):
        bound = curve.nest_bound
        stairs = [value(moved) for moved in (*bound.dram_bytes, bound.dram_bytes[-1])]
        ax.step([*bound.capacities_bytes, right], stairs, where="post", color=style.COLOURS[2],
                linewidth=0.8, zorder=1.9,
                label="bound if all tiles are held from one loop inward")  # fmt: skip
        y += stairs
    least = value(curve.compulsory_bytes)
    ax.axhline(least, color=style.GREY, linewidth=0.8, linestyle=style.DASHES[1],
               label="compulsory: everything once")  # fmt: skip
    return [*y, least]


def _machine(ax: Axes, arch: Arch, left: float, right: float) -> None:
    """Mark the capacity of one instance of each level."""
    for level in arch.caches:
        size = level.usable_bytes
        if size is None or not left <= size <= right:
            continue
        ax.axvline(size, color=style.INK, linewidth=0.7, linestyle=style.DASHES[3])
        whole = level.capacity_bytes
        nominal = f" of {style.binary(whole)}" if whole and whole != size else ""
        text, at = f"{level.name}\n{style.binary(size)}{nominal}", ("data", "axes fraction")
        style.beside(ax, text, (size, 1.0), (0, 1.5), "center", "bottom", xycoords=at)
