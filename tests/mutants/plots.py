"""Mutants of plots: places of points and labels, sums of bars, tile maps, files."""

from __future__ import annotations

from .mutant import In

_roofline = In("show/plots/roofline.py", "test_plots.py::TestRoofline")
_roofline.broken(
    "points-at-the-bound",
    "layers stand as high as their roof, not as their time says",
    '"flop_per_s": problem.flops / score.time_s,',
    '"flop_per_s": problem.flops / score.problem_bound_s,',
)
_roofline.broken(
    "all-levels-at-memory",
    "a layer's points at inner levels are drawn as if they were at the memory",
    'at_memory = [row for row in shown if row["level"] == arch.memory.name]',
    "at_memory = list(shown)",
)

_labels = In("show/plots/labels.py", "test_plots.py::TestLabels")
_labels.broken(
    "labels-forget-each-other",
    "a label may stand over another",
    "                taken.append(box)\n",
    "",
)

_traffic = In("show/plots/traffic.py", "test_plots.py::TestBytes")
_traffic.broken(
    "bars-not-stacked",
    "each tensor's bar begins at zero",
    "ax.bar(places, moved_bytes, width, bottom=ends,",
    "ax.bar(places, moved_bytes, width, bottom=0,",
)

_map = In("study/tile_map.py", "test_plots.py::TestTiles")
_map.broken(
    "tile-sizes-rounded-down",
    "tile sizes that need one more trip than the next larger",
    "size = -(-whole // trips)",
    "size = whole // trips",
)
_map.broken(
    "outline-inside-out",
    "levels that hold less count as holding as much",
    "all(now <= then for now, then in zip(_held(score), held, strict=True))",
    "all(now >= then for now, then in zip(_held(score), held, strict=True))",
)

_figure = In("show/plots/figure.py", "test_plots.py::TestFiles", "test_plots.py::TestCommands")
_figure.broken(
    "last-row-lost",
    "the data of a plot lack their last row",
    "for row in rows:\n            to.write(row)",
    "for row in rows[:-1]:\n            to.write(row)",
)

_slope = In("show/plots/ski_slope.py", "test_plots.py::TestSkiSlope")
_slope.broken(
    "steps-before",
    "a capacity has the traffic of the next step",
    'ax.step(x, y, where="post", color=look.colour',
    'ax.step(x, y, where="pre", color=look.colour',
)

PLOTS = (
    *_roofline.mutants,
    *_labels.mutants,
    *_traffic.mutants,
    *_map.mutants,
    *_figure.mutants,
    *_slope.mutants,
)
