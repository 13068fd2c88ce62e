"""Draw the pictures of docs/model.md; with --check, say whether they are up to date.

Numbers in them come from the library: footprints from `loopsched.problems.footprint`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import loopsched
from loopsched.problems.footprint import footprint_elems
from loopsched.show.plots.figure import new_figure, save_figure
from loopsched.show.plots.style import COLOURS, GREY, INK, context

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent.parent / "docs" / "images"
CAPACITY = 90
HATCHES = ("", "////", "\\\\\\\\", "----")  # lines only: dots make large files


def regions() -> Figure:
    """Working sets of the regions inside each loop, and which of them fits."""
    problem = loopsched.gemm(m=8, n=8, k=8, element_bytes=1)
    nest = loopsched.parse_schedule("M:8 N:8 K:8 M:3 N:3 K:8", problem)
    figure = new_figure(height=2.6)
    axes = figure.subplots()
    names = ["the whole nest", *(f"inside {loop}" for loop in nest.loops)]
    extents = dict(problem.sizes)
    inner = {"M": [8, 3, 1], "N": [8, 3, 1], "K": [8, 8, 1]}
    rows = [dict(extents)]
    for loop in nest.loops:
        inner[loop.dim].pop(0)
        extents[loop.dim] = inner[loop.dim][0]
        rows.append(dict(extents))
    start = dict.fromkeys(problem.sizes, 0)
    left = [0] * len(rows)
    for number, tensor in enumerate(problem.tensors):
        sizes = [footprint_elems(tensor, start, row) for row in rows]
        axes.barh(range(len(rows)), sizes, left=left, color=COLOURS[number], hatch=HATCHES[number],
                  edgecolor="white", label=tensor.name, height=0.7)  # fmt: skip
        left = [a + b for a, b in zip(left, sizes, strict=True)]
    for at, total in enumerate(left):
        note = f" {total} B" + (", fits" if total <= CAPACITY else "")
        axes.text(total, at, note, va="center", fontsize=7)
    axes.set_yticks(range(len(rows)), names)
    axes.axvline(CAPACITY, color=INK, linewidth=1)
    axes.text(CAPACITY + 2, len(rows) - 1, f"capacity {CAPACITY} B", fontsize=7, va="center")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 215)
    axes.set_xlabel("bytes that the region touches")
    axes.legend(loc="lower right", ncols=3, frameon=False)
    _bare(axes)
    return figure


def halo() -> Figure:
    """Two neighbouring windows on the input, and what stays between them."""
    from matplotlib.patches import Rectangle

    figure = new_figure(height=2.1)
    axes = figure.subplots()
    for x in range(12):
        for y in range(5):
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor="white", edgecolor="0.85"))
    for at, number in ((0, 0), (4, 1)):
        axes.add_patch(
            Rectangle((at + 0.06, 0.06), 5.88, 4.88, facecolor=COLOURS[number], alpha=0.25)
        )
        axes.add_patch(
            Rectangle((at + 0.06, 0.06), 5.88, 4.88, fill=False, edgecolor=COLOURS[number], lw=1.5)
        )
    axes.add_patch(Rectangle((4, 0), 2, 5, fill=False, hatch="////", edgecolor=INK, lw=0))
    axes.text(2, 5.25, "input of one tile: 4 columns of the result", ha="center", fontsize=7)
    axes.text(8, 5.25, "input of the next", ha="center", fontsize=7)
    axes.annotate("halo: filter width - 1\ncolumns, kept", (5, 0), (5, -1.6), ha="center",
                  fontsize=7, arrowprops={"arrowstyle": "-", "color": INK})  # fmt: skip
    axes.annotate("", (10.9, 2.5), (10.05, 2.5), arrowprops={"arrowstyle": "->", "color": INK})
    axes.set_xlim(-0.2, 12.2)
    axes.set_ylim(-1.8, 5.9)
    axes.set_aspect("equal")
    axes.axis("off")
    return figure


def waves() -> Figure:
    """Tiles of a result on eight units: waves that run on from row to row."""
    from matplotlib.patches import Rectangle

    figure = new_figure(height=2.2)
    for axes, columns, title in zip(
        figure.subplots(1, 2),
        (7, 8),
        ("7 columns of tiles, 8 units: waves run on", "8 columns: each wave is a row"),
        strict=True,
    ):
        for item in range(4 * columns):
            row, column = divmod(item, columns)
            wave = item // 8
            axes.add_patch(
                Rectangle((column, -row), 0.94, 0.9, facecolor=COLOURS[wave], alpha=0.75,
                          hatch=HATCHES[wave], edgecolor="white")
            )  # fmt: skip
            axes.text(column + 0.47, -row + 0.45, str(wave + 1), ha="center", va="center",
                      fontsize=7, bbox={"facecolor": "white", "lw": 0, "pad": 1})  # fmt: skip
        axes.set_title(title)
        axes.set_xlim(-0.1, 8.1)
        axes.set_ylim(-3.2, 1.1)
        axes.set_aspect("equal")
        axes.axis("off")
    return figure


def values() -> Figure:
    """How bounds, simulation, brackets and promise lie to one another."""
    figure = new_figure(height=1.5)
    axes = figure.subplots()
    axes.annotate("", (10.2, 0), (-0.4, 0), arrowprops={"arrowstyle": "->", "color": INK})
    axes.plot([3, 6], [0, 0], color=COLOURS[4], lw=9, alpha=0.6, solid_capstyle="butt")
    marks = (
        (0.2, "compulsory", "every tensor once"),
        (1.7, "bound", "no schedule below"),
        (3, "low", "certainly moved"),
        (4.5, "point", "estimate"),
        (6, "high", "moved at most"),
        (8, "promise", "what search minimises"),
    )
    for x, name, note in marks:
        axes.plot(x, 0, "|", color=INK, ms=14)
        axes.text(x, 0.55, name, ha="center", fontsize=8, weight="bold")
        axes.text(x, -1.0, note.replace(" ", "\n", 1), ha="center", va="center", fontsize=7)
    axes.text(4.5, 1.25, "a simulated LRU cache lies here", ha="center", fontsize=7, color=GREY)
    axes.text(10.2, 0.3, "bytes", ha="right", fontsize=7)
    axes.set_xlim(-0.6, 10.4)
    axes.set_ylim(-1.6, 1.7)
    axes.axis("off")
    return figure


def _bare(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


PICTURES = {"regions": regions, "halo": halo, "waves": waves, "values": values}


def main() -> int:
    """Draw all pictures, or compare them with those that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if one differs")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--suffix", default=".svg", choices=(".svg", ".png", ".pdf"))
    given = parser.parse_args()
    stale = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if given.check else given.folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, draw in PICTURES.items():
            target = folder / f"model_{name}{given.suffix}"
            with context():
                save_figure(draw(), target)
            if given.check and target.read_bytes() != (given.folder / target.name).read_bytes():
                stale.append(target.name)
    print(f"out of date: {', '.join(stale)}" if stale else "pictures are up to date")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
