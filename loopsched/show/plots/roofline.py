"""The roofline: performance against operational intensity, under the machine's limits.

After Williams, Waterman and Patterson, "Roofline: An Insightful Visual
Performance Model for Multicore Architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loopsched.base.units import scaled
from loopsched.models.machine import data_type_of
from loopsched.show.plots import style
from loopsched.show.plots.figure import axes_of
from loopsched.show.plots.labels import Spot, place_labels
from loopsched.show.plots.layers import Layer, are_best, layers_of, subject, titles_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from loopsched.base.rows import Row
    from loopsched.machines.arch import Arch
    from loopsched.scheduler.result import Result

_LEAST_AREA, _MOST_AREA = 10.0, 150.0
# Up to so many layers, a layer is also marked at its intensities further in.
_MOST_DETAILED = 8
# Of more layers, only the slowest have their numbers.
_MOST_LABELLED, _SLOWEST = 24, 12
# Pixels between the middle of a roof's name and a point.
_CLEAR = 45
# Pixels between the name of a flat roof and a point; points of paper that a slope's name is high.
_AROUND, _HIGH = 8, 10.5
_COMPUTE = "compute"


def roofline_rows(results: Sequence[Result | Layer], arch: Arch) -> list[Row]:
    """Describe each layer at each boundary between levels.

    Returns
    -------
    list of dict
        ``flops`` and ``bytes`` of one run, their ratio, ``flop_per_s`` at the
        promised time, and ``roof_flop_per_s``: what bandwidth and units allow
        at that intensity.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> arch = load_arch("titan_v")
    >>> row = roofline_rows([search(gemm(m=64, n=64, k=64), arch)], arch)[0]
    >>> row["level"], row["flops"], row["bytes"], row["bound_by"]
    ('DRAM', 524288, 49152, 'L2')
    """
    rows: list[Row] = []
    for layer in layers_of(results):
        score, problem = layer.evaluation, layer.problem
        peak = _peak(arch, data_type_of(problem, arch))
        for level, found in zip(arch.caches, score.levels, strict=True):
            intensity = found.operational_intensity
            width = level.bandwidth_bytes_per_s
            rows.append(
                {
                    "label": layer.label,
                    "problem": problem.name,
                    "count": layer.count,
                    "level": found.outer,
                    "flops": problem.flops,
                    "bytes": found.promised_bytes,
                    "operational_intensity": intensity,
                    "time_s": score.time_s,
                    "flop_per_s": problem.flops / score.time_s,
                    "roof_flop_per_s": min(peak, intensity * width) if width else peak,
                    "bound_by": score.bound_by,
                }
            )
    return rows


def plot_roofline(
    results: Sequence[Result | Layer], arch: Arch, *, name: str = "", ax: Axes | None = None
) -> Axes:
    """Draw layers under the roofs of a machine.

    Each layer is a point: its promised performance over its operational
    intensity at the memory.  Colour and marker say what binds it; its area, its
    share of the whole time.  Names stand beside up to eight points, numbers
    beside more; of more than two dozen, only the slowest twelve have them.  ``name`` is
    that of the workload, for the title.  Up to eight layers are also marked, small,
    at their intensities further in.  There is a roof for each level's bandwidth
    and for each rate of the units; those of data types that no layer has are
    dotted, as far as they are in the picture, which is scaled to the layers.

    See Also
    --------
    search, plot_bytes

    References
    ----------
    S. Williams, A. Waterman and D. Patterson, *Roofline: An Insightful Visual Performance
    Model for Multicore Architectures*, CACM 52(4), 2009.
    """
    ax = axes_of(ax)
    layers = layers_of(results)
    rows = roofline_rows(layers, arch)
    style.dress(ax, f"{style.heading(subject(layers), name)} on {arch.name}")
    style.label_x(ax, f"operational intensity at {arch.memory.name} (FLOP/B)")
    style.label_y(ax, "performance")
    shown = [row for row in rows if 0 < row["operational_intensity"] < math.inf]
    used = {data_type_of(layer.problem, arch) for layer in layers} or {*arch.compute.data_types}
    rates = _rates(arch)
    _limits(ax, arch, [peak for peak, names in rates.items() if used & set(names)], shown)
    marks = style.looks([*(level.name for level in arch.levels[:-1]), _COMPUTE])
    at_memory = [row for row in shown if row["level"] == arch.memory.name]
    is_few = len(layers) <= _MOST_DETAILED
    names = titles_of(layers) if is_few else [layer.label for layer in layers]
    spots = _points(
        ax, at_memory, marks, dict(zip([one.label for one in layers], names, strict=True))
    )
    if is_few:
        _further_in(ax, shown, marks)
    hidden = len(layers) - len(at_memory)
    notes = [f"{hidden} without traffic: not shown"] if hidden else []
    if len(spots) > _MOST_LABELLED:
        spots = [spot._replace(text="") if n >= _SLOWEST else spot for n, spot in enumerate(spots)]
        notes.append(f"numbers: of the {_SLOWEST} slowest, where there is room")
    if are_best(layers):
        notes.append("drawn: the best schedule" + (" of each layer" if len(layers) > 1 else ""))
    if notes:
        style.note(ax, "\n".join(notes))
    style.legend(ax, loc="lower right", title="bound by")
    points = [
        (row["operational_intensity"], row["flop_per_s"])
        for row in (shown if is_few else at_memory)
    ]
    _roofs(ax, arch, rates, used, marks, points)
    if len(layers) > 1:
        place_labels(ax, spots)
    return ax


def _peak(arch: Arch, data_type: str) -> float:
    compute = arch.compute
    return 2 * compute.rate(data_type) * compute.units * compute.clock_hz


def _rates(arch: Arch) -> dict[float, list[str]]:
    """Gather data types by their rate."""
    found: dict[float, list[str]] = {}
    for name in arch.compute.data_types:
        found.setdefault(_peak(arch, name), []).append(name)
    return found


def _limits(ax: Axes, arch: Arch, rates: Sequence[float], rows: Sequence[Row]) -> None:
    widths = [level.bandwidth_bytes_per_s for level in arch.caches if level.bandwidth_bytes_per_s]
    ridges = [peak / width for peak in rates for width in widths]
    x = [*ridges, *(row["operational_intensity"] for row in rows)]
    y = [*rates, *(row["flop_per_s"] for row in rows)]
    if not rows:
        y.append(min(rates) / 1000)
    # The slopes are to be seen, too: from a tenth of the lowest rate.
    style.log_axis(ax.xaxis, min(x) / 3, max(x) * 4)
    style.log_axis(ax.yaxis, min(min(y) / 2.5, min(rates) / 10), max(y) * 1.6, "FLOP/s")


def _points(
    ax: Axes, rows: Sequence[Row], marks: dict[str, style.Look], names: dict[str, str]
) -> list[Spot]:
    whole = max((row["time_s"] * row["count"] for row in rows), default=1.0)
    area = {
        id(row): _LEAST_AREA + (_MOST_AREA - _LEAST_AREA) * row["time_s"] * row["count"] / whole
        if len({row["problem"] for row in rows}) > 1
        else 40.0
        for row in rows
    }
    counts = Counter(row["bound_by"] for row in rows)
    for name, look in marks.items():
        group = [row for row in rows if row["bound_by"] == name]
        if group:
            ax.scatter(
                [row["operational_intensity"] for row in group],
                [row["flop_per_s"] for row in group],
                s=[area[id(row)] for row in group],
                color=look.colour,
                marker=look.marker,
                alpha=0.7,
                edgecolors="white",
                linewidths=0.4,
                label=f"{name}: {counts[name]}",
                zorder=4,
            )
    longest = sorted(rows, key=lambda row: -row["time_s"] * row["count"])
    return [
        Spot(
            row["operational_intensity"],
            row["flop_per_s"],
            math.sqrt(area[id(row)]) / 2,
            names[row["label"]],
        )
        for row in longest
    ]


def _further_in(ax: Axes, rows: Sequence[Row], marks: dict[str, style.Look]) -> None:
    """Mark layers at the intensities of inner boundaries, on a thin line."""
    named = set()
    for label in dict.fromkeys(row["label"] for row in rows):
        own = [row for row in rows if row["label"] == label]
        x = [row["operational_intensity"] for row in own]
        ax.plot(x, [own[0]["flop_per_s"]] * len(x), color=style.GREY, linewidth=0.6, zorder=3)
        for row in own[1:]:
            look = marks[row["level"]]
            is_first = row["level"] not in named
            named.add(row["level"])
            ax.plot(
                row["operational_intensity"],
                row["flop_per_s"],
                marker=look.marker,
                markersize=3,
                markerfacecolor="white",
                markeredgecolor=look.colour,
                linestyle="none",
                label=f"(intensity at {row['level']})" if is_first else None,
                zorder=3,
            )


def _roofs(
    ax: Axes,
    arch: Arch,
    rates: dict[float, list[str]],
    used: set[str],
    marks: dict[str, style.Look],
    points: Sequence[tuple[float, float]],
) -> None:
    left, right = ax.get_xlim()
    top = max((peak for peak, names in rates.items() if used & set(names)), default=max(rates))
    slopes: dict[float, list[str]] = {}  # of equal ones, the innermost is on top
    for level, cache in zip(arch.levels, arch.caches, strict=False):
        if cache.bandwidth_bytes_per_s is not None:
            slopes.setdefault(cache.bandwidth_bytes_per_s, []).append(level.name)
    for width, levels in slopes.items():
        ends = [left, min(right, top / width)]
        look = marks[levels[-1]]
        ax.plot(ends, [width * x for x in ends], color=look.colour, linewidth=1.2,
                linestyle=look.dash, zorder=2)  # fmt: skip
        _along(ax, width, top, f"{', '.join(levels)} {scaled(width, 'B/s')}", look.colour, points)
    reach = max((cache.bandwidth_bytes_per_s or 0 for cache in arch.caches), default=0)
    for peak, names in rates.items():
        is_used = bool(used & set(names))
        if not is_used and peak > ax.get_ylim()[1]:
            continue
        colour = marks[_COMPUTE].colour if is_used else style.GREY
        start = max(left, peak / reach) if reach else left
        ax.plot([start, right], [peak, peak], color=colour,
                linewidth=1.2 if is_used else 0.7, zorder=2,
                linestyle="-" if is_used else style.DASHES[2])  # fmt: skip
        text = f"{', '.join(names)} {scaled(peak, 'FLOP/s')}"
        _upon(ax, start, right, peak, text, colour, points)


def _upon(
    ax: Axes,
    left: float,
    right: float,
    peak: float,
    text: str,
    colour: str,
    points: Sequence[tuple[float, float]],
) -> None:
    """Write on a flat roof, at its right end or where no points are; else below it."""
    places = [ax.transData.transform(point) for point in points]
    for x, across, aside, up in (
        (right, "right", -1.0, 1.5),
        (left, "left", 3.0, 1.5),
        (math.sqrt(left * right), "center", 0.0, 1.5),
        (right, "right", -1.0, -5.5),
    ):
        down = "bottom" if up > 0 else "top"
        style.beside(ax, text, (x, peak), (aside, up), across, down, color=colour)
        box = ax.texts[-1].get_window_extent().padded(_AROUND)
        if up < 0 or not any(box.contains(*place) for place in places):
            return
        ax.texts[-1].remove()


def _along(
    ax: Axes,
    width: float,
    top: float,
    text: str,
    colour: str,
    points: Sequence[tuple[float, float]],
) -> None:
    """Write along a slope, where it comes into the picture or, past points, further up."""
    root = ax.figure.figure
    root.draw_without_rendering()
    (left, right), low = ax.get_xlim(), ax.get_ylim()[0]
    start = max(left, low / width)
    end = min(right, top / width)
    (x0, y0), (x1, y1) = ax.transData.transform([(start, width * start), (end, width * end)])
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    places = [ax.transData.transform(point) for point in points]

    def room(share: float) -> float:
        """Find how many pixels the middle of the name is from all points."""
        middle = (x0 + (x1 - x0) * (share + 0.12), y0 + (y1 - y0) * (share + 0.12))
        return min((math.dist(middle, place) for place in places), default=math.inf)

    # The name is on the left of the slope, and is not to reach into the axis.
    high = _HIGH * root.dpi / 72 * math.sin(math.radians(angle))
    axis = ax.transData.transform((left, 1))[0]
    least = min(0.5, max(0.1, (axis + high - x0) / (x1 - x0)))
    share = next((one for one in (least, 0.3, 0.5) if room(one) > _CLEAR), least)
    at = start * (end / start) ** share
    away = (-2.5 * math.sin(math.radians(angle)), 2.5 * math.cos(math.radians(angle)))
    look: dict[str, Any] = {"rotation": angle, "rotation_mode": "anchor", "color": colour}
    style.beside(ax, text, (at, width * at), away, va="bottom", **look)
