"""Mutants of the search around its kernels: constraints, climbs, budgets, results."""

from __future__ import annotations

from .mutant import In

_scheduler = In("scheduler/__init__.py", "test_search.py")
_scheduler.broken(
    "search-one-choice-of-levels",
    "the space counts only the first choice of what levels hold",
    "return sum(n_schedules(choice.space) for choice in choices(problem, arch, constraints))",
    "return n_schedules(next(iter(choices(problem, arch, constraints))).space)",
    "test_may_hold.py::test_a_search_is_the_best_of_all_choices",
)
_scheduler.broken(
    "search-first-fault-only",
    "faults of the constraints are told for the first problem",
    "    faults = []\n    for problem in workload.problems:",
    "    faults = []\n    for problem in workload.problems[:1]:",
    "::test_constraints_are_checked_before_the_first_result",
)
_scheduler.broken(
    "search-constraints-at-their-turn",
    "constraints are checked when their problem's turn comes",
    "    if goal.constraints is not None:  #",
    "    if goal.constraints is None:  #",
    "::test_constraints_are_checked_before_the_first_result",
)
_scheduler.broken(
    "search-constraints-dropped",
    "constraints are forgotten",
    "space = space_of(problem, arch, sought.constraints)",
    "space = space_of(problem, arch)",
    "test_constraints.py::TestEmpty::test_the_last_constraint_to_blame_is_named",
)
_scheduler.broken(
    "search-strategy-ignored",
    "every search is exact",
    '        if sought.strategy != "exact":',
    '        if sought.strategy == "":',
    "test_sampling.py::TestExhaustive::test_finds_the_best_of_all",
)
_placement_kernels = In("scheduler/_placement_kernels.py", "test_placement.py")
_placement_kernels.broken(
    "placement-left-out-unsaid",
    "what the limit of nodes leaves out is not part of the bound",
    "return incumbent, best_form, nodes, min(left_out, incumbent)",
    "return incumbent, best_form, nodes, incumbent",
    "::test_a_search_cut_short_says_what_it_left_out",
)
_placement_kernels.broken(
    "placement-widest-may-not-fit",
    "the largest extents are taken although they do not fit",
    "                high = middle\n            else:\n                low = middle + 1",
    "                low = middle + 1\n            else:\n                high = middle",
    "::test_products_that_another_mapper_places",
)
_allowed = In("scheduler/allowed.py", "test_constraints.py")
_allowed.broken(
    "allowed-powers-without-size",
    "the size is no extent of powers of two",
    "{*(1 << n for n in range(size.bit_length())), size}",
    "{1 << n for n in range(size.bit_length())}",
    "::TestSpace::test_size_and_members_are_those_of_a_naive_enumeration",
)
_allowed.broken(
    "allowed-square-divisors",
    "the root of a square is no divisor",
    "range(1, int(size**0.5) + 1)",
    "range(1, int(size**0.5 - 0.5) + 1)",
    "::TestSpace::test_size_and_members_are_those_of_a_naive_enumeration",
)
_allowed.broken(
    "allowed-looser-bound",
    "of two bounds on an extent the looser holds",
    "low, high = max(low, least), min(high, most)",
    "low, high = min(low, least), max(high, most)",
    "::TestSpace::test_size_and_members_are_those_of_a_naive_enumeration",
)
_allowed.broken(
    "allowed-lead-uncut",
    "a loop of the prefix may have one iteration",
    "        keep = inner < outer[-1]",
    "        keep = inner <= outer[-1]",
    "::TestSpace::test_prefix_keeps_exactly_the_schedules_that_begin_with_it",
)
_allowed.broken(
    "allowed-blocked-inside-lead",
    "a loop may stand outside one of the prefix that has to be inside it",
    "            may |= frozenset(dims) - blocked",
    "            may |= frozenset(dims)",
    "::TestSpace::test_prefix_keeps_exactly_the_schedules_that_begin_with_it",
)
_constrained = In("scheduler/constrained.py", "test_constraints.py")
_constrained.broken(
    "constrained-whole-list-short",
    "a space small enough to score in full loses its last schedules",
    "                for choice in every_choice(limits):\n",
    "                for choice in islice(every_choice(limits), 100):\n",
    "::TestSearch::test_small_spaces_are_proven",
)
_constrained.broken(
    "constrained-precedence-reversed",
    "loops stand the wrong way round where a precedence orders them",
    "if not any(other in inside[d] for other in rest))",
    "if not any(d in inside[other] for other in rest))",
    "::TestSearch::test_large_spaces",
)
_constrained.broken(
    "constrained-must-is-free",
    "a loop that a constraint asks for may be left out",
    "            if now[dim] not in steps:\n                must.append(dim)",
    "            if now[dim] not in steps:\n                may.append(dim)",
    "::TestSearch::test_bounds_hold_where_not_everything_is_scored",
)
_constrained.broken(
    "constrained-nothing-when-stopped",
    "a search that ends before its first score has no result",
    "    if not found.best and not is_complete:",
    "    if found.best and not is_complete:",
    "test_effort.py::test_ctrl_c_prints_the_best_so_far",
)

SCHEDULER = (
    *_scheduler.mutants,
    *_placement_kernels.mutants,
    *_allowed.mutants,
    *_constrained.mutants,
)
