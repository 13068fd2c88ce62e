"""More mutants of curves, nests, studies, measurements, bounds and proofs."""

from __future__ import annotations

from .mutant import In

_staircase = In("curves/staircase.py", "test_curve.py")
_staircase.broken(
    "stairs-begin-late",
    "a step begins one byte later",
    "at = bisect_right(self.capacities_bytes, capacity_bytes) - 1",
    "at = bisect_right(self.capacities_bytes, capacity_bytes - 1) - 1",
)
_staircase.broken(
    "stairs-intensity-of-macs",
    "operational intensity counts a multiply-accumulate once",
    "tuple(2 * self.macs / moved for moved in self.dram_bytes)",
    "tuple(self.macs / moved for moved in self.dram_bytes)",
)
_staircase.broken(
    "stairs-knees-crowd",
    "knees stand next to each other",
    "return max(one, other) > _REACH * min(one, other)",
    "return max(one, other) > min(one, other)",
)

_kernels = In("curves/front_kernels.py", "test_curve.py")
_kernels.broken(
    "cache-full-is-too-full",
    "a cache that is just full keeps nothing of a window",
    "        while rooms[t, k] > room:\n",
    "        while rooms[t, k] >= room and k < 2:\n",
    "::test_cache_by_brute_force",
)

_nest = In("nests/nest.py", "test_nest.py")
_nest.broken(
    "nest-beyond-the-size",
    "an outermost loop may cover more than the dimension",
    "        elif dim in first and first[dim] != whole:\n",
    "        elif dim in first and first[dim] < whole:\n",
)
_nest.broken(
    "nest-regions-innermost",
    "a region is as long as the innermost loop inside it",
    "for loop in reversed(self.loops[position:]):",
    "for loop in self.loops[position:]:",
)
_nest.broken(
    "nest-pairs-need-no-loop",
    "a dimension of two positions needs no loop",
    "        if dim not in first and whole > 1:\n",
    "        if dim not in first and whole > 2:\n",
)

_map = In("study/tile_map.py", "test_plots.py::TestTiles")
_map.broken(
    "map-best-of-the-other-kind",
    "of equal sizes the one that takes longest or moves most is best",
    "                getattr(cell.evaluation, other),\n",
    "                -getattr(cell.evaluation, other),\n",
)
_map.broken(
    "map-largest-untiled",
    "the largest dimensions are varied, tiled or not",
    "key=lambda dim: (n_loops[dim] < 2, -problem.size[dim])",
    "key=lambda dim: -problem.size[dim]",
)
_map.broken(
    "map-without-the-schedule",
    "a map may leave out the sizes of the schedule itself",
    "    kept = {1, current, whole}\n",
    "    kept = {1, whole}\n",
)

_points = In("study/points.py", "test_sensitivity.py")
_points.broken(
    "vary-last-text-counts",
    "of two texts for a number the last counts",
    "found[key] = (*found.get(key, ()), float(word))",
    "found[key] = (float(word),)",
    ">>> parse_vary",
)
_points.broken(
    "kernels-searched-again",
    "numbers that only kernels need make another machine for searches",
    "return replace(arch, name=name, gpu=None)",
    "return replace(arch, name=name)",
    "::test_kernel_numbers_need_no_search",
)
_points.broken(
    "kernels-of-all-launches",
    "a kernel's estimate is that of all its launches",
    "return found.time_s / launches, found.bound_by",
    "return found.time_s, found.bound_by",
    "::test_kernels_that_are_started_often",
)

_study = In("study/sensitivity.py", "test_sensitivity.py")
_study.broken(
    "study-least-first",
    "what matters least comes first",
    "key=lambda one: -_span(one, quantity)))",
    "key=lambda one: _span(one, quantity)))",
    ">>> sensitivity",
)

_compare = In("validation/compare.py", "test_validation.py")
_compare.broken(
    "compare-all-is-left",
    "all that is written stays in the cache at the end",
    "return min(moved, capacity) * written / moved",
    "return written",
    "::test_the_model_alone_predicts_tiled_products",
    "::test_kernels_are_predicted",
)
_compare.broken(
    "compare-missing-is-zero",
    "reads and writes are compared though one of them was not measured",
    "is_known = len(known) == len(guessed) == len(names)",
    "is_known = bool(known)",
    "::test_measurements_may_be_missing",
)
_compare.broken(
    "compare-bound-is-below",
    "a measurement at its bound is below it",
    "isinstance(least, int | float) and measured < least",
    "isinstance(least, int | float) and measured <= least",
    "::test_what_is_below_the_bounds_is_counted",
    "::test_no_measurement_is_below_what_must_move",
)

_times = In("validation/times.py", "test_validation_times.py")
_times.broken(
    "times-any-gpu",
    "rows of two GPUs are compared with one",
    "        if len(gpus) > 1:\n",
    "        if len(gpus) > 9:\n",
)
_times.broken(
    "times-no-rows",
    "no row that is asked for is no fault",
    "    if not kept:\n        said",
    "    if kept is None:\n        said",
)
_times.broken(
    "times-case-matters",
    "a GPU's name is asked for as it is written",
    'return ("" if value is None else str(value)).casefold() == wanted.strip().casefold()',
    'return ("" if value is None else str(value)) == wanted.strip()',
    "::test_where",
)

_windows = In("bounds/windows.py", "test_lower_bounds.py")
_windows.broken(
    "windows-clipped-twice",
    "two axes that clip one dimension are counted as if they were apart",
    "                if is_clip:\n                    return 0, 1",
    "                if not split and not seen:\n                    return 0, 1",
    "::test_dimensions_clipped_twice_leave_the_compulsory_bound",
)
_windows.broken(
    "windows-runs-too-few",
    "the last run of a dimension, if it is short, is no class",
    "return Split(dim, size[dim], -(-size[dim] // length), length)",
    "return Split(dim, size[dim], max(1, size[dim] // length), length)",
    "::test_no_two_points_of_a_class_meet",
)

_inequalities = In("bounds/inequalities.py", "test_lower_bounds.py")
_inequalities.broken(
    "inequalities-own-elements-apart",
    "a tensor's own elements tell its classes apart",
    "        if k != i and any(axis.dims == (dim,) for axis in tensor.axes):\n",
    "        if any(dim in axis.dims for axis in tensor.axes):\n",
    "::test_no_set_of_points_breaks_an_inequality",
)
_inequalities.broken(
    "inequalities-any-power-tighter",
    "an inequality is left out if another is tighter in one power",
    "and all(map(operator.le, one.powers, other.powers))",
    "and any(map(operator.lt, one.powers, other.powers))",
    ">>> inequalities",
)

_cli_times = In("cli/validate_times.py", "test_cli_validate_times.py")
_cli_times.broken(
    "validate-cli-milliseconds",
    "times of the furthest rows are a thousand times too long",
    'return scaled(time_us * 1e-6, "s")',
    'return scaled(time_us * 1e-3, "s")',
    "::test_groups_have_a_sum_and_rows_their_times",
)
_cli_times.broken(
    "validate-cli-where-of-nothing",
    "a filter without a column is passed over",
    "        if not equals or not column.strip():\n",
    "        if not column:\n",
)
_cli_times.broken(
    "validate-cli-no-sum",
    "of several groups no sum is printed",
    "    if len(rows) > 1:\n        rows.append",
    "    if len(rows) > 9:\n        rows.append",
    "::test_groups_have_a_sum_and_rows_their_times",
)

_report003 = In("published/model_003.py", "test_report003.py")
_report003.broken(
    "report003-image-at-any-stride",
    "report 003: loops run over the stored image at other strides, too",
    'if dim in ("P", "Q") and stride == 1:',
    'if dim in ("P", "Q"):',
)
_report003.broken(
    "report003-nothing-takes-nothing",
    "report 003: times below half a microsecond are printed as 0",
    "return max(1, round(self.time_us))",
    "return round(self.time_us)",
)

_log = In("verify/log.py", "test_verify.py")
_log.broken(
    "proof-largest-body-closes",
    "a box is closed if its largest body does not fit",
    "return kept is not None and not self.bounds.can_be(low, kept)",
    "return kept is not None and not self.bounds.can_be(high, kept)",
    "::test_a_leaf_of_another_kind_holds_only_by_its_own_rule",
    "::test_false_claims_of_broken_searches_are_refused",
    "::test_changed_proofs_are_refused_unless_still_true",
)

STUDIES_REST = tuple(
    mutant
    for file in (
        _staircase, _kernels, _nest, _map, _points, _study, _compare, _times, _windows,
        _inequalities, _cli_times, _report003, _log,
    )
    for mutant in file.mutants
)  # fmt: skip
