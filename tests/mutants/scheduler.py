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
    "search-a-fault-of-one-is-of-all",
    "a fault that some problems have is told of all",
    "is_every = len(names) == len(workload.problems) > 1",
    "is_every = len(workload.problems) > 1",
    "test_cli_search.py::TestOut::test_a_fault_of_every_problem_is_said_once",
)
_scheduler.broken(
    "search-first-fault-only",
    "faults of the constraints are told for the first problem",
    "that have each fault\n    for problem in workload.problems:",
    "that have each fault\n    for problem in workload.problems[:1]:",
    "::test_constraints_are_checked_before_the_first_result",
)
_scheduler.broken(
    "search-constraints-at-their-turn",
    "constraints are checked when their problem's turn comes",
    "    if sought.constraints is not None:  #",
    "    if sought.constraints is None:  #",
    "::test_constraints_are_checked_before_the_first_result",
)
_scheduler.broken(
    "space-constraints-unchecked",
    "what no search would take leaves a space of no schedules",
    "    space_of(problem, arch, constraints)  #",
    "    space_of(problem, arch)  #",
    "test_cli.py::TestFront::test_bad_input_is_3_and_one_message",
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
_placement_kernels.broken(
    "placement-moved-once",
    "tiles that are fetched again count once",
    "            cost += n.weight[t] * repeats * on_axes",
    "            cost += n.weight[t] * on_axes",
    "::test_products_that_another_mapper_places",
)
_placement_kernels.broken(
    "placement-whole-is-one",
    "what is left uncut is taken for a single position",
    "chosen[code] if code >= 0 else 0 if code == WHOLE else n.n_extents[d] - 1",
    "chosen[code] if code >= 0 else 0 if code == ONE else n.n_extents[d] - 1",
    "::test_products_that_another_mapper_places",
)
_placement_kernels.broken(
    "placement-first-form-only",
    "of all forms of nests only the first is looked at",
    "    for s in range(len(forms.n_variables)):\n        many",
    "    for s in range(1):\n        many",
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
_arrays = In("scheduler/arrays.py", "test_arrays.py")
_arrays.broken(
    "arrays-pieces-without-work",
    "a unit takes more pieces than have work",
    "pieces = -(-size // -(-size // min(size, free)))  # no more than do something",
    "pieces = min(size, free)",
    "::test_spreads_use_what_there_is_and_come_best_first",
)
_arrays.broken(
    "arrays-instances-used-twice",
    "every dimension has all instances to itself",
    "                    free //= pieces",
    "                    free //= 1",
    "::test_spreads_use_what_there_is_and_come_best_first",
)
_arrays.broken(
    "arrays-slowest-first",
    "spreads come with the most steps first",
    "grown.sort(key=lambda pair: _rank(problem, *pair))",
    "grown.sort(key=lambda pair: _rank(problem, *pair), reverse=True)",
    "::test_spreads_use_what_there_is_and_come_best_first",
)
_arrays.broken(
    "arrays-own-dims-copied",
    "operands count as copied along their own dimensions",
    "if dim not in inside)",
    "if dim in inside)",
    "::test_spreads_use_what_there_is_and_come_best_first",
)
_arrays.broken(
    "arrays-rest-cut-off",
    "what is left of a dimension for the next unit is rounded down",
    "after = {dim: -(-n // fill.get(dim, 1)) for dim, n in left.items()}",
    "after = {dim: n // fill.get(dim, 1) for dim, n in left.items()}",
    "::test_spreads_use_what_there_is_and_come_best_first",
)
_climbing = In("scheduler/climbing.py", "test_sampling.py")
_climbing.broken(
    "climbing-one-too-many",
    "one more schedule is scored than asked for",
    "            if found.n_scored >= samples or",
    "            if found.n_scored > samples or",
    "::TestRandom::test_certificates_claim_no_more_than_they_know",
)
_climbing.broken(
    "climbing-prefix-swapped",
    "loops of the prefix are swapped",
    "for left in range(len(limits.places[at].lead), len(order) - 1)",
    "for left in range(len(order) - 1)",
    "::TestLocal::test_neighbours_are_one_step_away",
)
_climbing.broken(
    "climbing-order-broken",
    "a swap puts a loop outside one that must stay outside it",
    "if order[left + 1] not in limits.inside[order[left]]",
    "if order[left] not in limits.inside[order[left + 1]]",
    "::TestLocal::test_neighbours_are_one_step_away",
)
_climbing.broken(
    "climbing-slot-outside",
    "a new loop enters outside one that must stay outside it",
    "low = max([first, *(at + 1 for at, other in enumerate(order) if dim in inside[other])])",
    "low = first",
    "::TestLocal::test_neighbours_are_one_step_away",
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
    "constrained-tiles-ignored",
    "extents of a wave side by side are left out of the bound",
    "if level.is_shared and dim in self.limits.space.spatial:",
    "if not level.is_shared and dim in self.limits.space.spatial:",
    "::TestSearch::test_bounds_hold_for_waves",
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
    "constrained-items-in-any-order",
    "spatial loops ignore the precedence",
    "if not any(outer in inside[dim] for i, dim in enumerate(order) for outer in order[:i])",
    "if order",
    "::TestSearch::test_bounds_hold_on_any_machine",
)
_constrained.broken(
    "constrained-prefix-inside",
    "loops of a prefix may stand inside the others of their block",
    "found[dim] = found[dim] | (frozenset(self.problem.dims) - {*place.lead[: at + 1]})",
    "found[dim] = found[dim] | frozenset(place.lead[at + 1 :])",
    "::TestSearch::test_bounds_hold_where_not_everything_is_scored",
)
_constraints = In("scheduler/constraints.py", "test_constraints.py")
_constraints.broken(
    "constraints-least-is-most",
    "a lower bound is read as an upper one",
    'low = 1 if sign == "<=" else number\n        high = UNBOUNDED if sign == ">=" else number',
    'low = 1 if sign == ">=" else number\n        high = UNBOUNDED if sign == "<=" else number',
    "::TestParse::test_every_form_of_bound",
)
_constraints.broken(
    "constraints-prefix-is-free",
    "a prefix counts as no constraint",
    "not self.before and not self.prefix.strip()",
    "not self.before",
    "::TestCheck::test_messages",
)
_constraints.broken(
    "constraints-none-is-a-dim",
    "'none' is read as a dimension",
    '["none"]:\n            shared = ()',
    '["none"]:\n            shared = ("none",)',
    "::TestParse::test_no_spatial_dims",
)
_constraints.broken(
    "constraints-triples-cut",
    "of an order of three only the ends are kept",
    "    return pairwise(words)",
    "    return [(words[0], words[-1])]",
    "::TestParse::test_every_form_of_bound",
)
_constraints.broken(
    "constraints-first-fault",
    "only the first text that cannot be read is told",
    "bounds = [found for text in fix if (found := _bound(text, faults))]",
    "bounds = [found for text in fix if not faults and (found := _bound(text, faults))]",
    "::TestParse::test_all_faults_at_once",
)
_effort = In("scheduler/effort.py", "test_effort.py")
_effort.broken(
    "effort-budget-overdrawn",
    "a search ends one unit after its budget",
    "self.spent >= self.budget.work:",
    "self.spent > self.budget.work:",
    "::test_a_watch_charges_shares_and_says_what_ended_it",
)
_effort.broken(
    "effort-parts-share-nothing",
    "each part of a search may use all that is left",
    "work = max(1, (work - self.spent) // parts)",
    "work = max(1, work - self.spent)",
    "::test_a_watch_charges_shares_and_says_what_ended_it",
)
_effort.broken(
    "effort-parts-forgotten",
    "what parts use is not charged",
    "        self.spent += part.spent\n",
    "        self.spent += 0\n",
    "::test_a_watch_charges_shares_and_says_what_ended_it",
)
_effort.broken(
    "effort-default-for-all",
    "a budget given is replaced by the default",
    "        if self.work is not None:\n            return self\n",
    "        if self.work is None:\n            return self\n",
    "::test_a_watch_charges_shares_and_says_what_ended_it",
)
_effort.broken(
    "effort-gap-hides-end",
    "a part that reached its gap hides that another ran out",
    'if part.why and self.why in ("", "gap"):',
    'if part.why and self.why == "":',
    "::test_a_watch_charges_shares_and_says_what_ended_it",
)
_result = In("scheduler/result.py", "test_certificate.py")
_result.broken(
    "result-samples-without-reason",
    "nobody says that only samples were tried",
    'if self.strategy in ("random", "local"):',
    'if self.strategy == "":',
    "test_cli_search.py::TestSearch::test_why_there_is_no_proof_is_said",
)
_result.broken(
    "result-constraints-without-reason",
    "nobody says that the bound covers what constraints exclude",
    'return "bound" if known.space.constraints.is_free else "constraints"',
    'return "bound"',
    "test_cli_search.py::TestSearch::test_why_there_is_no_proof_is_said",
)
_result.broken(
    "result-gap-of-the-value",
    "the gap is relative to the value",
    "return self.value / self.lower_bound - 1 if",
    "return 1 - self.lower_bound / self.value if",
    "::test_a_gap_is_relative_to_the_bound",
)
_result.broken(
    "result-proven-has-a-gap",
    "a proven result has a gap where its bound is rounded",
    "if self.proven or self.value == self.lower_bound:",
    "if self.value == self.lower_bound:",
    "::test_a_gap_is_relative_to_the_bound",
)
_result.broken(
    "result-ties-by-steps-first",
    "ties go by compute steps before DRAM bytes",
    "        _bytes(evaluation.levels[0], value),\n        evaluation.compute_steps,",
    "        evaluation.compute_steps,\n        _bytes(evaluation.levels[0], value),",
    "::test_objectives_are_those_of_the_traffic_that_is_gone_by",
)
_result.broken(
    "result-edp-is-energy",
    "the energy-delay product is the energy",
    "return evaluation.energy_pj * time_of(evaluation, value)",
    "return evaluation.energy_pj",
    "::test_objectives_are_those_of_the_traffic_that_is_gone_by",
)
_result.broken(
    "result-still-proven",
    "a result without a log stays proven",
    "return replace(self, proven=False, unlogged=why)",
    "return replace(self, unlogged=why)",
    "::test_a_gap_is_relative_to_the_bound",
)
_result.broken(
    "result-last-level-is-dram",
    "the traffic of the innermost level is minimised",
    "return _bytes(evaluation.levels[0], value)\n    if objective",
    "return _bytes(evaluation.levels[-1], value)\n    if objective",
    "test_exact.py::test_the_search_finds_the_least_of_every_space",
)
_rows = In("scheduler/rows.py", "test_certificate.py")
_rows.broken(
    "totals-count-once",
    "a problem that occurs three times counts once",
    'sum(row["count"] * row["dram_bytes"] for row in kept)',
    'sum(row["dram_bytes"] for row in kept)',
    "::test_totals_count_problems_as_often_as_they_occur_and_searches_once",
)
_rows.broken(
    "totals-times-once",
    "the time of a problem that occurs three times counts once",
    'sum(row["count"] * row["time_s"] for row in kept)',
    'sum(row["time_s"] for row in kept)',
    "::test_totals_count_problems_as_often_as_they_occur_and_searches_once",
)
_rows.broken(
    "totals-nodes-each-time",
    "nodes count as often as the problem occurs",
    'nodes=sum(row["nodes"] for row in kept)',
    'nodes=sum(row["count"] * row["nodes"] for row in kept)',
    "::test_totals_count_problems_as_often_as_they_occur_and_searches_once",
)
_rows.broken(
    "rows-rank-from-zero",
    "the best schedule has rank 0",
    "enumerate(found, 1)",
    "enumerate(found, 0)",
    "::test_rows_say_what_was_found",
)
_rows.broken(
    "rows-point-is-promised",
    "the point of a bracket is its high end",
    'picked(getattr(level, name), "low", "point", "high")',
    'picked(high := getattr(level, name), "low", "point", "high") | {"point": high.high}',
    "::test_rows_say_what_was_found",
)

SCHEDULER = (
    *_scheduler.mutants,
    *_placement_kernels.mutants,
    *_allowed.mutants,
    *_arrays.mutants,
    *_climbing.mutants,
    *_constrained.mutants,
    *_constraints.mutants,
    *_effort.mutants,
    *_result.mutants,
    *_rows.mutants,
)
