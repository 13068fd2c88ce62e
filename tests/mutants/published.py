"""Mutants of the reports and their kernels."""

from __future__ import annotations

from .mutant import In

_model_000 = In("published/model_000.py", "test_report000.py")
_model_000.broken(
    "model000-printed-peaks",
    "the peaks are those that are printed",
    "flops_per_s: float = 13.8e12",
    "flops_per_s: float = 1.38e12",
    "::test_printed_predictions",
)
_model_000.broken(
    "model000-input-as-reached",
    "the stored input is as wide as the loops reach",
    "(kernel.ny + kernel.ky) * (kernel.nx + kernel.kx)",
    "(kernel.ny + kernel.ky - 1) * (kernel.nx + kernel.kx - 1)",
    "::test_printed_predictions",
)
_model_000.broken(
    "model000-larger-time",
    "the execution time is the larger of the two",
    "return self.compute_s + self.memory_s",
    "return max(self.compute_s, self.memory_s)",
    "::test_printed_predictions",
)
_model_000.broken(
    "model000-rounded-up",
    "the ceiling around a whole division rounds up",
    "reads = kernel.tile_bytes // constants.update_bytes",
    "reads = -(-kernel.tile_bytes // constants.update_bytes)",
    "::test_latency_method_by_hand",
)
_model_000.broken(
    "model000-all-at-once",
    "multiprocessors hold any number of threads",
    "iterations = -(-blocks_per_sm * kernel.threads // constants.sm_threads)",
    "iterations = 1",
    "::test_printed_predictions",
)
_presets = In("published/presets/__init__.py", "test_gpu_presets.py")
_presets.broken(
    "presets-zero-sizes",
    "a size of 0 passes",
    'return 0 if option == "radius" else 1',
    "return 0",
    "::test_what_is_wrong_with_a_preset_is_said",
)
_presets.broken(
    "presets-launched-twice",
    "a kernel alone is started twice",
    "return ((built, 1),) if isinstance(built, Kernel) else built",
    "return ((built, 2),) if isinstance(built, Kernel) else built",
    "test_cli_kernel.py::test_times_are_told",
)
_presets.broken(
    "presets-listed-backwards",
    "presets are listed last first",
    "return tuple(_PRESETS.values())",
    "return tuple(_PRESETS.values())[::-1]",
    "test_cli_kernel.py::test_presets_are_listed",
)
_presets.broken(
    "presets-nothing-needed",
    "sizes may be below one",
    "and value < _least(option):",
    "and value < -_least(option):",
    "::test_what_is_wrong_with_a_preset_is_said",
)
_presets_report002 = In("published/presets/report002.py", "test_gpu_presets.py")
_presets_report002.broken(
    "report002-maps-forgotten",
    "sums run over one map",
    "return self.inputs * self.taps**2",
    "return self.taps**2",
    "::test_report_002_several_launches",
)
_presets_report002.broken(
    "report002-tiles-swapped",
    "the best tiles of the layers change places",
    "_BEST_TILES = {1: 16, 2: 24}",
    "_BEST_TILES = {1: 24, 2: 16}",
    "::test_report_002_occupancies_are_those_printed",
)
_presets_report002.broken(
    "report002-launched-once",
    "unrolling is started once for all images",
    "return ((_unrolling(one), batch), (_multiply(one, tile), batch))",
    "return ((_unrolling(one), 1), (_multiply(one, tile), 1))",
    "::test_report_002_several_launches",
)
_presets_report002.broken(
    "report002-unrolled-always",
    "the unrolling kernel multiplies",
    "        multiplies=False,\n",
    "        multiplies=True,\n",
    "::test_report_002_several_launches",
)
_presets_report002.broken(
    "report002-registers-alike",
    "kernels in shared memory have the registers of tiled ones",
    "_SHARED_REGISTERS = 40",
    "_SHARED_REGISTERS = 31",
    "::test_report_002_occupancies_are_those_printed",
)
_report_000 = In("published/report_000.py", "test_reproduce.py")
_report_000.broken(
    "report000-activation",
    "the activation of each output is not counted",
    'flops = said.flops + size["P"] * size["Q"] * size["K"]',
    "flops = said.flops",
    "::TestOurs::test_000_flops",
)
_report_000.broken(
    "report000-milliseconds",
    "times are in seconds",
    '"execution_ms": seconds * 1e3',
    '"execution_ms": seconds',
    "::TestOurs::test_000_times",
)
_report_000.broken(
    "report000-usual-filter",
    "the filter is 5 wide where it is not varied",
    '"filter": 3, "size": 32}',
    '"filter": 5, "size": 32}',
    "::TestOurs::test_000_flops",
)
_report_000.broken(
    "report000-unrounded",
    "errors are taken of times that are not rounded",
    "round(said.compute_s * 1e3, 6) + round(said.memory_s * 1e3, 6)",
    "said.compute_s * 1e3 + said.memory_s * 1e3",
    "::TestPrinted::test_000",
)
_report_000.broken(
    "report000-all-digits",
    "TOPs have all their digits",
    'float(f"{said.tops:.6g}")',
    "said.tops",
    "::TestPrinted::test_000",
)
_result = In("published/result.py", "test_reproduce.py")
_result.broken(
    "result-shares-relative",
    "errors of a share are relative",
    '        if self.unit == "%":\n            return predicted - measured',
    '        if self.unit == "points":\n            return predicted - measured',
    "::TestLine::test_shares_differ_in_points",
)
_result.broken(
    "result-signed-mean",
    "errors of unlike sign cancel",
    "sizes = [abs(error) for error in errors if error is not None]",
    "sizes = [error for error in errors if error is not None]",
    "::TestLine::test_sums",
)
_result.broken(
    "result-ranks-of-two",
    "two lines have a rank correlation",
    "_LEAST_RANKED = 3",
    "_LEAST_RANKED = 2",
    "::TestLine::test_sums",
)
_result.broken(
    "result-printed-digits",
    "a prediction has only the digits that are printed",
    "        if self.is_followed:\n            return self.theirs",
    "        if self.is_followed is None:\n            return self.theirs",
    "::TestLine::test_all_digits_count_where_the_printed_ones_follow",
)
_result.broken(
    "result-pools-summed-once",
    "tables that are summed up together are left out",
    "        for title, names in self.pools:",
    "        for title, names in self.pools[:0]:",
    "::TestDocs::test_mean_errors",
)

PUBLISHED = (
    *_model_000.mutants,
    *_presets.mutants,
    *_presets_report002.mutants,
    *_report_000.mutants,
    *_result.mutants,
)
