"""Mutants of files of counters."""

from __future__ import annotations

from .mutant import In

_counter_files = In("validation/counter_files.py", "test_cli_validate.py")
_counter_files.broken(
    "counters-negative",
    "a negative count passes",
    "(0, 1e18) if name in MEASURED",
    "(-1e18, 1e18) if name in MEASURED",
    "::test_bad_files",
)
_counter_files.broken(
    "counters-no-threads",
    "blocks of no threads pass",
    "else (1, 65536)",
    "else (0, 65536)",
    "::test_bad_files",
)
_counter_files.broken(
    "counters-fault-of-first-line",
    "only the first fault of a line is told",
    "return CounterRow(place, form, values), wrong or list(_row_faults(form, values))",
    "return CounterRow(place, form, values), wrong or list(_row_faults(form, values))[:1]",
    "::test_bad_files",
)
_counter_files.broken(
    "counters-size-zero",
    "a product of no rows passes",
    "            if not is_count(value, most=2**31 - 1):",
    "            if not is_count(value, 0, 2**31 - 1):",
    "::test_bad_files",
)
_counter_files.broken(
    "counters-column-twice",
    "a column may occur twice",
    "faults = repeated(names)",
    "faults = repeated(names)[9:]",
    "::test_bad_files",
)
_counter_files.broken(
    "counters-missing-is-zero",
    "what was not measured counts as 0",
    "return float(value) if isinstance(value, int | float) else None",
    "return float(value) if isinstance(value, int | float) else 0.0",
    "test_validation.py::test_what_was_not_measured_is_not_zero",
)
_counter_files.broken(
    "counters-text-of-number",
    "a problem that is a number passes",
    "        elif not isinstance(value, str):\n            yield",
    "        elif value is None:\n            yield",
    "::test_bad_files",
)

VALIDATION = _counter_files.mutants
