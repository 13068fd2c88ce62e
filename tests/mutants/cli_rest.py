"""More mutants of commands and figures."""

from __future__ import annotations

from .mutant import In

_sensitivity = In("cli/sensitivity.py", "test_sensitivity.py")
_sensitivity.broken(
    "sensitivity-cli-shares-in-percent",
    "changes are printed as shares with a sign of per cent",
    "change = signed_percent(share)",
    "change = signed_percent(share and share / 100)",
    "::test_table",
)
_sensitivity.broken(
    "sensitivity-cli-rounding-untold",
    "a factor that rounding changed is printed as it was asked for",
    "if abs(ratio / factor - 1) < 5e-3 else",
    "if abs(ratio / factor - 1) < 5 else",
    "::test_what_rounding_made_of_a_factor_is_told",
)
_sensitivity.broken(
    "sensitivity-cli-idle-by-time",
    "a parameter that changes DRAM traffic only is said to have no effect",
    'for name in ("time_s", "dram_bytes", "estimate_s"))',
    'for name in ("time_s",))',
    "::test_table",
    "::test_a_kernel_on_the_command_line",
)
_sensitivity.broken(
    "sensitivity-cli-open-are-proven",
    "the number of searches that are not proven is called that of those that are",
    '"all proven best" if not open_ else',
    '"all proven best" if open_ else',
    "::test_table",
)
_sensitivity.broken(
    "sensitivity-cli-same-as-idle",
    "a number that its factors leave as it is counts as one without effect",
    'all(row["ratio"] == 1 for row in rows if row["key"] == key)]',
    'all(row["ratio"] == 0 for row in rows if row["key"] == key)]',
    "::test_a_number_that_is_left_as_it_is",
)

CLI_REST = _sensitivity.mutants
