"""Mutants of measured times and of studies: files, bounds, sums, elasticities."""

from __future__ import annotations

from .mutant import In

_files = In("validation/time_files.py", "test_validation_times.py")
_files.broken(
    "report-letters-swapped",
    "inputs and outputs of report 003's products change places",
    "n, m, k = self.report",
    "m, n, k = self.report",
)
_files.broken(
    "strides-swapped",
    "stride of the width along the height",
    'stride=(borders["stride_h"], borders["stride_w"])',
    'stride=(borders["stride_w"], borders["stride_h"])',
)
_files.broken(
    "filter-sides-swapped",
    "width of the filter along the height",
    '"r": sizes.pop("filter_h"), "s": sizes.pop("filter_w")',
    '"r": sizes.pop("filter_w"), "s": sizes.pop("filter_h")',
)
_files.broken(
    "half-stored-as-float",
    "operands of fp16_mixed have four bytes",
    "        element_bytes = _ELEMENT_BYTES[data_type]\n",
    "        element_bytes = max(4, _ELEMENT_BYTES[data_type])\n",
)
_files.broken(
    "only-first-remark",
    "a row is set apart only by its first remark",
    'for part in said.split(";") if any',
    'for part in said.split(";")[:1] if any',
)

_summary = In("validation/time_summary.py", "test_validation_times.py")
_summary.broken(
    "arithmetic-mean-ratio",
    "the mean ratio is not geometric",
    "math.exp(sum(math.log(one.ratio) for one in rows) / len(rows))",
    "sum(one.ratio for one in rows) / len(rows)",
)
_summary.broken(
    "rows-apart-counted",
    "rows apart count with the others",
    "counted = [one for one in rows if not one.row.apart]",
    "counted = list(rows)",
)
_summary.broken(
    "columns-overwritten",
    "what the file says is lost where we have a column of the same name",
    "return _beside(self.row.values, said) | said",
    "return dict(self.row.values) | said",
)
_summary.broken(
    "worst-by-error",
    "estimates that are far too low are not among the worst",
    "key=lambda one: -abs(math.log(one.ratio))",
    "key=lambda one: -abs(one.ratio - 1)",
)
_summary.broken(
    "spread-without-low",
    "a measurement below the spread is within it",
    "self.estimate.low_s <= measured_s <= self.estimate.high_s",
    "measured_s <= self.estimate.high_s",
)

_times = In("validation/times.py", "test_validation_times.py")
_times.broken(
    "algorithm-always-known",
    "the row's algorithm is used even when the library is to choose",
    'algorithm = row.algorithm if choice == "known" else None',
    "algorithm = row.algorithm",
)
_times.broken(
    "wrong-labels-unsaid",
    "an algorithm that cannot have run is left out without a word",
    'remark = f"{error}: treated as unknown"',
    'remark = ""',
)
_times.broken(
    "estimates-of-another-gpu",
    "a problem is estimated on the first GPU only",
    "key = (row.problem, id(arch), algorithm, row.tiling, row.kernel, *operand)",
    "key = (row.problem, algorithm, row.tiling, row.kernel, *operand)",
)

_points = In("study/points.py", "test_sensitivity.py")
_points.broken(
    "ratio-as-asked",
    "rounding and limits do not change the ratio of a point",
    "ratio = machine.value(key) / arch.value(key)",
    "ratio = factor if key else arch.value(key)",
)
_points.broken(
    "kernels-as-searches",
    "estimates do not see what only kernels need",
    "whole = replace(point.arch, name=name)",
    "whole = replace(point.arch, name=name, gpu=points[0].arch.gpu)",
)
_points.broken(
    "others-not-tried",
    "a search that proves nothing does not look at other points",
    "        if best[3] or not key:\n",
    "        if best:\n",
)

_study = In("study/sensitivity.py", "test_sensitivity.py")
_study.broken(
    "elasticity-upside-down",
    "elasticity is the inverse of what it is",
    "return math.log(after / before) / math.log(high.ratio / low.ratio)",
    "return math.log(high.ratio / low.ratio) / (math.log(after / before) or 1.0)",
)
_study.broken(
    "elasticity-over-all",
    "elasticity around the machine as it is starts at the smallest point",
    "ladder[max(0, at - 1)], ladder[min(at + 1, len(ladder) - 1)]",
    "ladder[0], ladder[min(at + 1, len(ladder) - 1)]",
)
_study.broken(
    "counts-lost",
    "a layer that occurs often is counted once",
    "time_s=math.fsum(count * layer.time_s for count, layer in pairs)",
    "time_s=math.fsum(layer.time_s for count, layer in pairs)",
)
_study.broken(
    "traffic-not-searched",
    "schedules are chosen for time even when traffic is asked for",
    '"dram_bytes" if quantity == "dram_bytes" else "time"',
    '"time"',
)

TIMES = (
    *(*_files.mutants, *_summary.mutants, *_times.mutants),
    *(*_points.mutants, *_study.mutants),
)
