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

PLOTS_REST = tuple(
    mutant for file in (_slope, _traffic, _tiles, _roofline) for mutant in file.mutants
)
