"""More mutants of plots: slopes, bars, maps of tiles, rooflines."""

from __future__ import annotations

from .mutant import In

_slope = In("show/plots/ski_slope.py", "test_plots.py::TestSkiSlope")
_slope.broken(
    "slope-intensity-of-macs",
    "operational intensity counts a multiply-accumulate once",
    "        flops = 2 * curve.macs\n",
    "        flops = curve.macs\n",
)
_slope.broken(
    "slope-knees-of-neighbours",
    "knees are drawn one step too far out",
    "        [y[i] for i in knees],\n",
    "        [y[i - 1] for i in knees],\n",
)
_slope.broken(
    "slope-open-is-proven",
    "a curve that is proven is drawn with a bound of its own",
    "    if curve.n_proven < len(curve):\n",
    "    if curve.n_proven <= len(curve):\n",
)
_slope.broken(
    "slope-bound-of-the-nest",
    "the bound on all orders is drawn where everything moves once",
    "y = [value(curve.bound_bytes(capacity)) for capacity in x]",
    "y = [value(curve.compulsory_bytes) for capacity in x]",
)
_slope.broken(
    "slope-bandwidth-in-bytes",
    "the bandwidth that keeps up is drawn as bytes",
    "        return lambda moved: moved / seconds\n",
    "        return lambda moved: moved + 0 * seconds\n",
)

_traffic = In("show/plots/traffic.py", "test_plots.py::TestBytes")
_traffic.broken(
    "bars-side-by-side",
    "bars of a layer's tensors begin where the first ends",
    "ends = [end + more for end, more in zip(ends, moved_bytes, strict=True)]",
    "ends = ends if any(ends) else [float(more) for more in moved_bytes]",
)
_traffic.broken(
    "bars-of-every-boundary",
    "layers show what crosses their last boundary, whichever is asked for",
    "            if found.outer == level:\n",
    "            if found.outer:\n",
)
_traffic.broken(
    "bars-least-of-inner-levels",
    "what memory moves at least is drawn at other levels, too",
    "is_memory=level in (None, known[0]))",
    "is_memory=level not in (None, known[0]))",
)
_traffic.broken(
    "bars-one-boundary-to-left",
    "bars of one layer's boundaries begin at zero",
    "moved, 0.6, left=ends,",
    "moved, 0.6, left=0,",
)
_traffic.broken(
    "bars-all-ticks",
    "every layer is named under its bar, however many there are",
    "step = max(1, math.ceil(len(layers) / (_TICKS_PER_INCH * inches)))",
    "step = 1",
)

_tiles = In("show/plots/tiles.py", "test_plots.py::TestTiles")
_tiles.broken(
    "tiles-axes-swapped",
    "the sizes of the two dimensions change axes",
    "(ax.xaxis, found.sizes[1], _DIGIT * digits + _GAP),\n        (ax.yaxis, found.sizes[0],",
    "(ax.xaxis, found.sizes[0], _DIGIT * digits + _GAP),\n        (ax.yaxis, found.sizes[1],",
)
_tiles.broken(
    "tiles-all-ticks",
    "as many sizes are written as there are",
    "step = math.ceil(len(sizes) / most)",
    "step = 1",
)
_tiles.broken(
    "tiles-marks-swapped",
    "the cross is where the schedule is",
    '        (best.sizes, "x", 5, "least"),\n',
    '        (found.current, "x", 5, "least"),\n',
)

_roofline = In("show/plots/roofline.py", "test_plots.py::TestRoofline")
_roofline.broken(
    "roofline-roofs-of-macs",
    "the highest roof counts a multiply-accumulate once",
    "return 2 * compute.rate(data_type) * compute.units * compute.clock_hz",
    "return compute.rate(data_type) * compute.units * compute.clock_hz",
)
_roofline.broken(
    "roofline-roof-of-bandwidth",
    "a layer's roof is that of the bandwidth, however high",
    "min(peak, intensity * width) if width else peak",
    "intensity * width if width else peak",
)
_roofline.broken(
    "roofline-slopes-go-on",
    "slopes go on above the highest rate",
    "ends = [left, min(right, top / width)]",
    "ends = [left, right]",
)

_labels = In("show/plots/labels.py", "test_plots.py::TestLabels")
_labels.broken(
    "labels-over-the-frame",
    "a label may stand beyond the right edge",
    "frame.left <= box.left and box.right <= frame.right",
    "frame.left <= box.left",
)
_labels.broken(
    "labels-of-each-point",
    "points at one place have labels of their own",
    "near = max(_SAME, _SHARE * max(spots[i].radius, spots[group[0]].radius))",
    "near = 0.0",
)
_labels.broken(
    "labels-run-on",
    "labels in a line read as one",
    "clear = Box(box.left - _BETWEEN, box.low, box.right + _BETWEEN, box.high)",
    "clear = box",
)
_labels.broken(
    "labels-lines-over-points",
    "the line from a label to its point passes over other points",
    "                and all(one.is_free_of(other) for one in leader for other in others)\n",
    "",
)
_labels.broken(
    "labels-spread-beyond",
    "names at the ends of lines are moved apart beyond the top",
    "most = high - (len(heights) - 1) * gap",
    "most = high",
    ">>> spread",
)

_tornado = In("show/plots/tornado.py", "test_plots.py")
_tornado.broken(
    "tornado-ratios-for-changes",
    "bars are as long as what is left, not as what changes",
    "(point.value(quantity) or whole) / whole - 1",
    "(point.value(quantity) or whole) / whole",
    "::TestTornado::test_bars_are_the_changes",
)
_tornado.broken(
    "tornado-ends-swapped",
    "the smallest value of a parameter has the look of the largest",
    "((one.lowest, _LOWER), (one.highest, _HIGHER))",
    "((one.lowest, _HIGHER), (one.highest, _LOWER))",
    "::TestTornado::test_bars_are_the_changes",
)
_tornado.broken(
    "tornado-rows-ends-swapped",
    "in the data the smallest value of a parameter is called the highest",
    '(("lowest", one.lowest), ("highest", one.highest))',
    '(("highest", one.lowest), ("lowest", one.highest))',
    "::TestTornado::test_rows_and_figure",
)
_tornado.broken(
    "tornado-gains-are-nothing",
    "a parameter that makes all faster only has no bar",
    "if any(abs(_change(found, quantity, point)) > _LEAST for",
    "if any(_change(found, quantity, point) > _LEAST for",
    "::TestTornado::test_only_the_largest_have_bars_and_the_others_are_counted",
)
_tornado.broken(
    "tornado-all-bars",
    "as many parameters have bars as there are",
    "return moving[:_MOST_BARS]",
    "return moving",
    "::TestTornado::test_only_the_largest_have_bars_and_the_others_are_counted",
)
_tornado.broken(
    "tornado-factors-inside",
    "of two factors, that of the higher change stands on the left",
    "lower = min(reversed(ends),",
    "lower = max(reversed(ends),",
    "::TestTornado::test_factors_of_a_bar_do_not_overlap",
)

_tradeoffs = In("show/plots/tradeoffs.py", "test_plots.py::TestPareto")
_tradeoffs.broken(
    "pareto-axes-swapped",
    "time is drawn where traffic is, and the other way round",
    "        ax.scatter(x, y, s=_AREA,",
    "        ax.scatter(y, x, s=_AREA,",
)
_tradeoffs.broken(
    "pareto-dark-to-light",
    "larger capacities are lighter",
    "(0.9 - 0.85 * share)",
    "(0.05 + 0.85 * share)",
)
_tradeoffs.broken(
    "pareto-machine-of-a-point",
    "the machine has the capacity of one point in its name",
    "return score.arch.name.removesuffix(varied)",
    "return score.arch.name",
)
_tradeoffs.broken(
    "pareto-capacities-again-and-again",
    "the capacity stands at each point of a line",
    '[style.binary(size), *[""] * (len(same) - 1)]',
    "[style.binary(size)] * len(same)",
)
_tradeoffs.broken(
    "pareto-all-capacities",
    "the legend has every capacity, however many there are",
    "step = max(1, -(-len(sizes) // 6))",
    "step = 1",
)
_tradeoffs.broken(
    "pareto-data-without-its-front",
    "the data call the capacity of the first point that of all",
    '**picked(point, "capacity_bytes", "time_s", "dram_bytes"),',
    '**picked(front[0], "capacity_bytes", "time_s", "dram_bytes"),',
)

PLOTS_REST = tuple(
    mutant
    for file in (_slope, _traffic, _tiles, _roofline, _labels, _tornado, _tradeoffs)
    for mutant in file.mutants
)
