"""Labels beside points: as many as there is room for, none over another."""

from __future__ import annotations

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
    taken = [*_texts(ax, points), *_lines(ax, points)]
    places = [
        tuple(float(n) * points for n in ax.transData.transform((each.x, each.y))) for each in spots
    ]
    taken += [
        Box(x - each.radius, y - each.radius, x + each.radius, y + each.radius)
        for (x, y), each in zip(places, spots, strict=True)
    ]
    shown = []
    for (x, y), spot in zip(places, spots, strict=True):
        if not spot.text:
            continue
        for box, side in _candidates(x, y, spot, _size_of(ax, spot.text, size, points)):
            near = Box(box.left - _GAP, box.low, box.right + _GAP, box.high)
            if _is_inside(box, frame) and all(near.is_free_of(other) for other in taken):
                taken.append(box)
                shown.append(spot.text)
                _write(ax, spot, side, size)
                break
    return shown


def _size_of(ax: Axes, text: str, size: float, points: float) -> tuple[float, float]:
    """Measure a text as it will be drawn: width and height in points."""
    written = ax.text(0, 0, text, fontsize=size)
    extent = written.get_window_extent()
    written.remove()
    return float(extent.width) * points, float(extent.height) * points


def _candidates(
    x: float, y: float, spot: Spot, size: tuple[float, float]
) -> Iterator[tuple[Box, tuple[int, int]]]:
    wide, high = size
    away = spot.radius + _GAP
    for side in _SIDES:
        reach = away if 0 in side else 0.75 * away
        left = x + side[0] * reach - (0.5 - 0.5 * side[0]) * wide
        low = y + side[1] * reach - (0.5 - 0.5 * side[1]) * high
        yield Box(left, low, left + wide, low + high), side


def _write(ax: Axes, spot: Spot, side: tuple[int, int], size: float) -> None:
    away = spot.radius + _GAP
    reach = away if 0 in side else 0.75 * away
    across = ("right", "center", "left")[side[0] + 1]
    down = ("top", "center_baseline", "bottom")[side[1] + 1]
    offset = (side[0] * reach, side[1] * reach)
    style.beside(ax, spot.text, (spot.x, spot.y), offset, across, down, fontsize=size, zorder=5)


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
