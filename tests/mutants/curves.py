"""Mutants of the curves: fronts, boxes, classes, knees, sums."""

from __future__ import annotations

from .mutant import In

_kernels = In("curves/front_kernels.py", "test_curve.py")
_kernels.broken(
    "front-keeps-dominated",
    "a step that needs more room and moves more stays on the front",
    "while last < n_steps and front[1, last] >= moved:",
    "while last < first and front[1, last] >= moved:",
)
_kernels.broken(
    "box-cut-loses-choice",
    "a choice next to the cut belongs to neither half of a box",
    "boxes[n_boxes + 1, 1, wide] = cut\n",
    "boxes[n_boxes + 1, 1, wide] = max(low[wide], cut - 1)\n",
)
_kernels.broken(
    "box-corner-exact",
    "the corner of a box takes the traffic of its smallest extents",
    "times_repeated(n, low, t, of.run[t]) * on_axes(n, visits_of",
    "times_repeated(n, high, t, of.run[t]) * on_axes(n, visits_of",
)
_kernels.broken(
    "cache-window-is-body",
    "a cache keeps a run without room for the window",
    "rooms[t, k] = max(body, window)",
    "rooms[t, k] = body",
)

_front = In("curves/front.py", "test_curve.py")
_front.broken(
    "slides-dominated",
    "a class dominates another although it slides along another loop",
    "set(run) <= set(longer) and slide in (None, kept)",
    "set(run) <= set(longer)",
)
_front.broken(
    "cache-loses-subsets",
    "caches try the orders of all loops only",
    "for many in range(len(free), -1, -1):",
    "for many in range(len(free), len(free) - 1, -1):",
)
_front.broken(
    "first-visits-read",
    "the output's first visits read, too",
    "tuple(moved - tables.constant for",
    "tuple(moved for",
)

_bound = In("curves/front.py", "test_false_proofs.py::test_a_curve_knows_uneven_cuts")
_bound.broken(
    "curve-always-even",
    "a curve counts as proven, however windows are clipped",
    "if cuts_evenly(problem):",
    "if problem.dims:",
)
_bound.broken(
    "curve-bound-single-cuts",
    "the bound of a curve knows one loop of a dimension only",
    "least = _Front.of(problem, least_tables(problem), policy)",
    "least = _Front.of(problem, tables_for(problem), policy)",
)

_network = In("curves/network.py", "test_curve.py")
_network.broken(
    "network-counts-once",
    "what a layer saves at a step counts once, however often it occurs",
    "saved = count * (one",
    "saved = (one",
)
_network.broken(
    "network-bound-is-found",
    "the bound of a network is what was found",
    "_added([curve.nest_bound for curve in curves]",
    "_added([curve for curve in curves]",
)

_staircase = In("curves/staircase.py", "test_curve.py")
_staircase.broken(
    "knee-looks-one-way",
    "a bend is what was saved before, whatever is saved after",
    "return math.log2(self.saved_before) - math.log2(self.saved_after)",
    "return math.log2(self.saved_before)",
)
_staircase.broken(
    "step-bound-at-begin",
    "a step is bounded where it begins, not up to the next",
    "(self.nest_bound.at(end - 1) or 0 for end in self.capacities_bytes[1:])",
    "(self.nest_bound.at(begin) or 0 for begin in self.capacities_bytes[:-1])",
)

CURVES = tuple(
    mutant for group in (_kernels, _front, _bound, _network, _staircase) for mutant in group.mutants
)
