"""Labels beside points: as many as there is room for, none over another.

Points at one place share a label.  Where there is no room beside a point, its label
stands further away, at the end of a thin line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from loopsched.show.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Spot(NamedTuple):
    """A marker with its label: place in data, radius of the marker in points."""

    x: float
    y: float
    radius: float
    text: str


class Box(NamedTuple):
    """A rectangle on paper, in points."""

    left: float
    low: float
    right: float
    high: float

    def is_free_of(self, other: Box) -> bool:
        """Whether two rectangles have nothing in common."""
        is_beside = self.right <= other.left or other.right <= self.left
        return is_beside or self.high <= other.low or other.high <= self.low


# Where a label may stand: right, left, above, below, then the corners.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
_GAP = 1.0
# Points between two labels in a line, so that they do not read as one.
_BETWEEN = 4.0
# Points between a marker and its label: beside it, or at the end of a line.
_REACHES = (0.0, 8.0, 14.0, 22.0, 32.0, 44.0)
# Markers count as one if they are no further apart than so many points, or a share of a radius.
_SAME, _SHARE = 1.0, 0.6
# Points between the squares that stand for a line, and how many there are at most.
_STEP, _MOST_STEPS = 4.0, 400


def place_labels(ax: Axes, spots: Sequence[Spot], size: float = style.NOTE) -> list[str]:
    """Write labels beside points, the first spots first; those without room are left out.

    The figure is laid out as it is now: set limits and all other texts before.

    Parameters
    ----------
    ax : Axes
    spots : sequence of Spot
        All points: those without a text are only kept free.
    size : float, points

    Returns
    -------
    list of str
        The texts that found room.
    """
    root = ax.figure.figure
    root.draw_without_rendering()
    points = 72.0 / root.dpi
    frame = _box(ax.get_window_extent(), points)
    taken, lines = [*_texts(ax, points)], [*_lines(ax, points)]
    places = [
        tuple(float(n) * points for n in ax.transData.transform((each.x, each.y))) for each in spots
    ]
    markers = [
        Box(x - each.radius, y - each.radius, x + each.radius, y + each.radius)
        for (x, y), each in zip(places, spots, strict=True)
    ]
    shown = []
    for group in _gathered(places, spots):
        text = ", ".join(dict.fromkeys(spots[i].text for i in group if spots[i].text))
        spot = max((spots[i] for i in group), key=lambda one: one.radius)._replace(text=text)
        if not text:
            continue
        x, y = places[group[0]]
        others = [box for i, box in enumerate(markers) if i not in group]
        for box, at in _candidates(x, y, spot, _size_of(ax, text, size, points)):
            near = Box(box.left - _GAP, box.low, box.right + _GAP, box.high)
            clear = Box(box.left - _BETWEEN, box.low, box.right + _BETWEEN, box.high)
            leader = [*_leader((x, y), at.offset, spot.radius)] if at.is_far else []
            if (
                _is_inside(box, frame)
                and all(near.is_free_of(one) for one in (*markers, *lines))
                and all(one.is_free_of(other) for one in leader for other in others)
                and all(one.is_free_of(other) for one in (clear, *leader) for other in taken)
            ):
                taken.append(box)
                taken += leader
                shown.append(text)
                _write(ax, spot, at, size)
                break
    return shown


def _gathered(places: Sequence[Sequence[float]], spots: Sequence[Spot]) -> list[list[int]]:
    """Gather spots that lie on one another, the first spots first."""
    groups: list[list[int]] = []
    for i, (x, y) in enumerate(places):
        for group in groups:
            x0, y0 = places[group[0]]
            near = max(_SAME, _SHARE * max(spots[i].radius, spots[group[0]].radius))
            if spots[i].text and math.dist((x, y), (x0, y0)) < near:
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _leader(place: Sequence[float], offset: tuple[float, float], radius: float) -> Iterator[Box]:
    """Cover the line from a marker to a label that is not beside it with small squares."""
    length = math.hypot(*offset)
    n = int((length - radius) / _STEP)
    for i in range(n + 1):
        share = 1 - i * _STEP / length
        x, y = place[0] + share * offset[0], place[1] + share * offset[1]
        yield Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5)


class End(NamedTuple):
    """The right end of a line, with its name and its look: height in data."""

    y: float
    text: str
    colour: str
    dash: Any


# Points from the end of a line to its name; heights of names, as a share of their size.
_ASIDE, _APART = 14.0, 1.15


def label_ends(ax: Axes, ends: Sequence[End], size: float = style.NOTE) -> None:
    """Write names at the right of an Axes, each at the end of its line, none over another.

    A piece of each line leads to its name.  The limits of the Axes are set before.
    """
    root = ax.figure.figure
    root.draw_without_rendering()
    points = 72.0 / root.dpi
    frame = _box(ax.get_window_extent(), points)
    right = ax.get_xlim()[1]
    ordered = sorted(ends, key=lambda end: end.y)
    heights = [float(ax.transData.transform((right, end.y))[1]) * points for end in ordered]
    apart = spread(heights, _APART * size, frame.low, frame.high)
    for end, height, place in zip(ordered, heights, apart, strict=True):
        arrow = {
            "arrowstyle": "-", "linewidth": 0.9, "color": end.colour, "linestyle": end.dash,
            "patchA": None, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5),
        }  # fmt: skip
        style.beside(ax, end.text, (right, end.y), (_ASIDE, place - height), va="center_baseline",
                     fontsize=size, arrowprops=arrow, annotation_clip=False)  # fmt: skip


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move rising heights apart to a gap at least, each as little as can be, inside a range.

    Examples
    --------
    >>> spread([1, 1, 9], 2, 0, 10), spread([9, 9.5], 2, 0, 10)
    ([0.0, 2.0, 9.0], [8.0, 10.0])
    """
    # Less its gaps, each is to be no lower than the one before: the means of those that meet.
    groups: list[list[float]] = []
    for i, height in enumerate(heights):
        groups.append([height - i * gap])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    most = high - (len(heights) - 1) * gap
    means = [_clamped(_mean(group), low, max(low, most)) for group in groups for _ in group]
    return [float(mean + i * gap) for i, mean in enumerate(means)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _clamped(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _size_of(ax: Axes, text: str, size: float, points: float) -> tuple[float, float]:
    """Measure a text as it will be drawn: width and height in points."""
    written = ax.text(0, 0, text, fontsize=size)
    extent = written.get_window_extent()
    written.remove()
    return float(extent.width) * points, float(extent.height) * points


class _Side(NamedTuple):
    """Where a label stands: which side of its point, and how many points away."""

    across: int
    up: int
    offset: tuple[float, float]
    is_far: bool


def _candidates(
    x: float, y: float, spot: Spot, size: tuple[float, float]
) -> Iterator[tuple[Box, _Side]]:
    wide, high = size
    for further in _REACHES:
        for across, up in _SIDES:
            reach = (spot.radius + _GAP + further) * (1.0 if 0 in (across, up) else 0.75)
            offset = (across * reach, up * reach)
            left = x + offset[0] - (0.5 - 0.5 * across) * wide
            low = y + offset[1] - (0.5 - 0.5 * up) * high
            box = Box(left, low, left + wide, low + high)
            yield box, _Side(across, up, offset, further > 0)


def _write(ax: Axes, spot: Spot, side: _Side, size: float) -> None:
    across = ("right", "center", "left")[side.across + 1]
    down = ("top", "center_baseline", "bottom")[side.up + 1]
    look: dict[str, Any] = {"fontsize": size, "zorder": 5}
    if side.is_far:
        look["arrowprops"] = {
            "arrowstyle": "-", "linewidth": 0.5, "color": style.GREY, "patchA": None,
            "shrinkA": 0, "shrinkB": spot.radius,
            "relpos": (0.5 - 0.5 * side.across, 0.5 - 0.5 * side.up),
        }  # fmt: skip
    style.beside(ax, spot.text, (spot.x, spot.y), side.offset, across, down, **look)


def _texts(ax: Axes, points: float) -> Iterator[Box]:
    """Find what is written already, the legend included."""
    for text in ax.texts:
        yield _box(text.get_window_extent(), points)
    legend = ax.get_legend()
    if legend is not None:
        yield _box(legend.get_window_extent(), points)


def _lines(ax: Axes, points: float) -> Iterator[Box]:
    """Cover the lines that were drawn with small squares."""
    for line in ax.lines:
        shown: Any = line.get_path().transformed(line.get_transform())
        ends = [[float(n) * points for n in end] for end in shown.vertices]
        if len(ends) == 1:  # a marker alone
            (x, y), half = ends[0], line.get_markersize() / 2
            yield Box(x - half, y - half, x + half, y + half)
        for (x0, y0), (x1, y1) in pairwise(ends):
            n = min(int(max(abs(x1 - x0), abs(y1 - y0)) / _STEP) + 1, _MOST_STEPS)
            for i in range(n + 1):
                x, y = x0 + (x1 - x0) * i / n, y0 + (y1 - y0) * i / n
                yield Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5)


def _box(extent: Any, points: float) -> Box:
    x0, y0, x1, y1 = (float(n) * points for n in extent.extents)
    return Box(x0, y0, x1, y1)


def _is_inside(box: Box, frame: Box) -> bool:
    is_across = frame.left <= box.left and box.right <= frame.right
    return is_across and frame.low <= box.low and box.high <= frame.high
