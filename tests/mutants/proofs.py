"""Mutants of the checker of proofs: rules that accept too much."""

from __future__ import annotations

from .mutant import In

_STEPS = "test_verify.py::test_steps_of_items_are_the_least_of_all_lists"
_WINDOW = "test_verify.py::test_no_way_to_cut_a_window_touches_less"
_LEAF = "test_verify.py::test_a_leaf_of_another_kind_holds_only_by_its_own_rule"
_SAID = "test_verify.py::test_what_is_wrong_is_said"

_bounds = In("verify/bounds.py", _STEPS)
_bounds.broken(
    "proof-no-rest-list",
    "a rest of items is never in a list of its own",
    "return [one_list, [(whole, high), (1, rest)] if rest else [(whole, high)]]",
    "return [one_list]",
)
_bounds.broken(
    "proof-box-at-high",
    "items of a box are as long as its longest",
    "one_list = [(-(-n // high), low)]",
    "one_list = [(-(-n // high), high)]",
)
_bounds.broken(
    "proof-overlaps-largest",
    "pieces meet where they share most",
    "for each in sorted(shared):",
    "for each in sorted(shared, reverse=True):",
    _WINDOW,
)
_bounds.broken(
    "proof-overlap-of-padding",
    "what pieces share in the padding counts",
    "low, high = max(low, 0), min(high, axis.size)",
    "low, high = low, high",
    _WINDOW,
)
_bounds.broken(
    "proof-overlap-over-gaps",
    "windows with gaps share all that is between them",
    "    if marks.bit_count() != width:",
    "    if width < 0:",
    _WINDOW,
)

_log = In("verify/log.py", _SAID)
_log.broken(
    "proof-value-unchecked",
    "the schedule may have any value",
    "    if value != best:",
    "    if value > 2 * best:",
)
_log.broken(
    "proof-boxes-left-open",
    "a tree may end before all boxes are closed",
    "    if todo:\n",
    "    if len(todo) > 1:\n",
)
_log.broken(
    "proof-split-outside",
    "a split may lie outside its box",
    "not low[at] <= extent < high[at]",
    "not low[at] <= extent <= high[at]",
)
_log.broken(
    "proof-any-leaf",
    "steps of a box need not reach the bound",
    "bounds.takes(low, high, steps)",
    "bounds.takes(low, high, steps // 2)",
    _LEAF,
)

PROOFS = tuple(mutant for group in (_bounds, _log) for mutant in group.mutants)
