"""More mutants of the search: bounds on pieces, items and waves, and the proofs it writes."""

from __future__ import annotations

from .mutant import In

_CLOSE = "test_verify.py::test_proofs_close"
_KNOWN = "test_verify.py::test_where_logs_are_known_to_close_they_close"

_proof = In("scheduler/proof.py", "test_verify.py")
_proof.broken(
    "proof-of-any-value",
    "a value that is no promise gets a proof",
    "if promised != certificate.value:",
    "if promised > 2 * certificate.value:",
    "::test_only_promised_values_have_proofs",
)
_proof.broken(
    "proof-settled-on-trust",
    "a result stays proven though the bound of its log is below it",
    "        if bound < goal:\n",
    "        if bound < 0:\n",
    "test_exact.py::test_a_strided_filter_is_best_cut_unevenly",
)
_proof.broken(
    "proof-found-order-only",
    "a log names the order of items that was found, whatever its rule makes of that",
    "for order in orders[:MAX_ORDERS]:",
    "for order in orders[:0]:",
    "::test_a_log_names_the_order_that_its_rule_makes_least_of",
)
_proof.broken(
    "proof-bytes-never-close",
    "logs of least traffic are not known to close",
    'return is_even and result.objective in ("time", "dram_bytes")',
    'return is_even and result.objective == "time"',
    "::test_where_logs_are_known_to_close_they_close",
)
_proof.broken(
    "proof-rounding-stays",
    "a bound that rounding has put below the value stays there",
    "best if is_met else min(best, least)",
    "min(best, least)",
    "::test_proofs_close",
    "::test_where_logs_are_known_to_close_they_close",
)
_search = In("scheduler/__init__.py", "test_exact.py")
_search.broken(
    "proof-small-on-trust",
    "logs of small problems are not tried",
    "problem.macs > MAX_TRIED",
    "problem.macs < MAX_TRIED",
    "::test_a_strided_filter_is_best_cut_unevenly",
)

_item_bounds = In("scheduler/item_bounds.py", "test_item_bounds.py", "test_margins.py")
_item_bounds.broken(
    "item-waves-half-empty-free",
    "the bound on steps counts full waves only",
    "steps += -(-n_items // instances) * work",
    "steps += n_items // instances * work",
    ">>> least_item_s",
)
_item_bounds.broken(
    "item-steps-of-one-sum",
    "the bound on steps leaves out dimensions that units do not share",
    "seconds = steps * (alone / macs_per_s)",
    "seconds = steps * (1 / macs_per_s)",
    ">>> least_item_s",
)
_item_bounds.broken(
    "item-long-rest-in-one-item",
    "a rest that is longer than an item is bounded as one item",
    "            if 0 < rest < item and dim in",
    "            if 0 < rest and dim in",
    "::test_a_rest_is_cut_into_items_too",
)
_item_bounds.broken(
    "item-steps-and-bytes-add",
    "steps and items' data are bounded one after the other",
    "np.maximum(seconds, _moved(limits, chosen) / inner_bytes_per_s)",
    "np.add(seconds, _moved(limits, chosen) / inner_bytes_per_s)",
    "::test_steps_and_data_of_items_overlap",
)
_item_bounds.broken(
    "item-never-alone",
    "what is shared by nobody is bounded as if it were",
    "    return min(least_s, alone_s)\n",
    "    return least_s\n",
    "::test_what_nobody_shares_brings_its_data_in_once",
)

_waves = In("scheduler/waves.py", "test_waves.py")
_waves.broken(
    "waves-inside-unsplit",
    "the loop inside a barrier is as long as the one outside",
    "inside.append(Loop(loop.dim, min(loop.extent, now * steps[i]), unit))",
    "inside.append(Loop(loop.dim, loop.extent, unit))",
    ">>> with_barriers",
)
_waves.broken(
    "waves-aligned-backwards",
    "orders are judged by the opposite order",
    "ends_with_iterations([{trips[loop]} for loop in order], instances)",
    "ends_with_iterations([{trips[loop]} for loop in order[::-1]], instances)",
    ">>> aligned_orders",
)
_waves.broken(
    "waves-last-item-as-long",
    "the last item of a wave is as long as the others",
    "sizes.append((dim, max(1, size - (many - 1) * longest)))",
    "sizes.append((dim, least[dim]))",
    ">>> one_wave",
)
_waves.broken(
    "waves-tiles-by-all-items",
    "each tensor has a tile for every item of a wave",
    "math.prod(pieces.get(dim, 1) for dim in tensor.dims)",
    "math.prod(pieces.get(dim, 1) for dim in problem.dims)",
    ">>> one_wave",
)

_OPEN = "test_waves.py::test_products_that_stayed_open_are_proven"
_FASTER = "test_waves.py::test_no_schedule_is_faster_than_the_bound_of_its_pieces"
_HELD = "test_waves.py::test_items_bring_in_what_they_hold"
_LEAST = "test_exact.py::test_the_search_finds_the_least_of_every_space"

_pieces = In("scheduler/piece_bounds.py", "test_waves.py")
_pieces.broken(
    "pieces-inner-traffic-free",
    "items are bounded without what so many of them bring in",
    "floor = max(items.least_s, self._private_s(items, below_s))",
    "floor = items.least_s",
    _HELD,
)
_pieces.broken(
    "pieces-full-wave-unbounded",
    "as many items as instances are taken for more than a wave",
    "if part is None or n_items > self.levels.instances or",
    "if part is None or n_items >= self.levels.instances or",
    _OPEN,
)
_pieces.broken(
    "pieces-sums-come-once",
    "sums that a shared level lets go are not read again",
    "return whole + (2 * times - 2) * tensor_bytes(self.problem, output)",
    "return whole",
    _OPEN,
)
_pieces.broken(
    "pieces-waves-of-one-list",
    "more lists than one are bounded by what one list moves",
    "return min(least, least_s_of_lists(self.problem, pieces, self.levels.rate))",
    "return least",
    _FASTER,
)
_pieces.broken(
    "pieces-bodies-too-long",
    "bodies are taken to be longer than they have to be",
    "found[dim], first = known[middle], middle + 1",
    "found[dim], first = known[first], middle + 1",
    _FASTER,
)
_pieces.broken(
    "pieces-waves-unbounded",
    "what a single wave brings in is never bounded",
    "        if floor < below_s:\n",
    "        if floor > below_s:\n",
    _OPEN,
)
_pieces.broken(
    "pieces-alike-along-one",
    "items cut alike along one dimension are bounded alike",
    "pieces = tuple(sorted(items.pieces))\n",
    "pieces = tuple(sorted(items.pieces))[:1]\n",
    _HELD,
)

_starts = In("scheduler/starts.py", "test_waves.py")
_starts.broken(
    "starts-no-three-halves",
    "extents between two powers are not tried",
    "found |= {3 * extent // 2 for extent in found",
    "found |= {extent for extent in found",
    ">>> tile_extents",
)
_starts.broken(
    "starts-rows-of-one-tile",
    "the block around a row of tiles is as long as one",
    "row = {inner: min(side, around[inner])}",
    "row = {inner: min(inside[inner], around[inner])}",
    ">>> wave_blocks",
)
_starts.broken(
    "starts-small-divisors",
    "instances are divided by numbers up to their root only",
    "return sorted({*small, *(number // each for each in small)})",
    "return sorted(small)",
    ">>> wave_blocks",
)
_starts.broken(
    "starts-one-order",
    "blocks around waves are tried in one order",
    "for turned in dict.fromkeys((names, names[::-1])):",
    "for turned in (names,):",
    ">>> wave_blocks",
)

_BEST = "::test_the_best_items_of_all"
_items = In("scheduler/items.py", "test_margins.py")
_items.broken(
    "items-alike-in-a-row",
    "items cut alike but along one dimension come one after the other",
    "        alike[kind] += 1\n",
    "        alike[kind] += 0\n",
    ">>> unlike_first",
)
_items.broken(
    "items-rest-is-whole",
    "the item of a rest is as long as the others",
    "-(-rest // self.extent), min(self.extent, rest),",
    "-(-rest // self.extent), self.extent,",
    _BEST,
)
_items.broken(
    "items-rest-left-out",
    "a rest shorter than an item is none",
    "-(-rest // self.extent), min(self.extent, rest),",
    "rest // self.extent, min(self.extent, rest),",
    _BEST,
)
_items.broken(
    "items-never-single",
    "items of one position are not tried",
    "found = [_Cut(size, size, extent) for extent in extents]",
    "found = [_Cut(size, size, extent) for extent in extents if extent > 1]",
    _BEST,
    _LEAST,
)

_exact = In("scheduler/exact.py", "test_exact.py", "test_search.py")
_exact.broken(
    "exact-units-never-filled",
    "of schedules that wait for data alike, the one that leaves units idle is best",
    "if not self.watch.can_spend(2 * MAX_FILLING_NODES):",
    "if True:",
    "::test_of_schedules_that_wait_for_data_alike_the_one_that_fills_the_units_is_best",
)
_exact.broken(
    "exact-busy-units-filled-only",
    "only where units are busy, one that fills them is scored",
    'if best.bound_by == "compute" or best.compute_utilisation >= IDLE:',
    'if best.bound_by == "compute" or best.compute_utilisation < IDLE:',
    "::test_of_schedules_that_wait_for_data_alike_the_one_that_fills_the_units_is_best",
)
_exact.broken(
    "search-one-alternative-more",
    "one schedule more than asked for is listed",
    "for s, e in behind[: top - 1]),",
    "for s, e in behind[:top]),",
    "test_search.py",
    "test_certificate.py",
)
_exact.broken(
    "search-alternatives-by-name",
    "alternatives differ in their text only",
    "first.setdefault(rank(evaluation, self.objective, self.value), (schedule, evaluation))",
    "first.setdefault(str(schedule), (schedule, evaluation))",
    "test_search.py",
)
_exact.broken(
    "search-equal-orders-tried",
    "orders that lead to the same waves are listed each",
    "        if key not in seen:\n            seen.add(key)\n            yield order",
    "        if key:\n            seen.add(key)\n            yield order",
    ">>> distinct_orders",
)
_exact.broken(
    "search-open-is-excluded",
    "cuts into items that stay open count as excluded",
    "            if reached >= self.best:\n                break\n"
    "        return min(unsettled, max(reached, least), self.best)",
    "            if reached >= self.best:\n                break\n        return self.best",
    "test_exact.py",
    "test_false_proofs.py",
)
_exact.broken(
    "search-free-value-is-bound",
    "what the free space reaches bounds the constrained one, proven or not",
    "    return found.certificate.lower_bound\n",
    "    return 1.001 * found.certificate.value\n",
    "test_constraints.py::TestSearch::test_what_a_small_budget_finds_is_no_bound",
)

_orders = In("scheduler/orders.py", "test_orders.py")
_orders.broken(
    "orders-shortest-stay-first",
    "those loops come innermost that move most tensors",
    "key=lambda dim: -stay(dim)))",
    "key=lambda dim: stay(dim)))",
    ">>> main_classes",
)
_orders.broken(
    "orders-runs-in-their-order",
    "runs of the same loops in another order are told apart",
    "runs.append(tuple(sorted(run)))",
    "runs.append(tuple(run))",
    "::test_counts_of_the_usual_problems",
    "::test_classes_are_those_of_all_permutations",
)
_orders.broken(
    "orders-everything-slides",
    "any index of a tensor is taken for a window's",
    "for axis in tensor.axes if axis.is_compound for dim in axis.dims",
    "for axis in tensor.axes for dim in axis.dims",
    "::test_relevance_names_what_indexes_and_what_slides",
)
_orders.broken(
    "orders-graph-reversed",
    "the graph of orders leads from inner loops to outer ones",
    "graph.add_edges_from(before)",
    "graph.add_edges_from((inner, outer) for outer, inner in before)",
    "::test_precedence_graph",
)

_body = In("scheduler/body.py", "test_body.py", "test_exact.py")
_body.broken(
    "body-passing-takes-room",
    "what passes a level takes room there",
    "dict(room.own_bytes) | dict.fromkeys(room.passing, -2)",
    "dict(room.own_bytes) | dict.fromkeys(room.passing, -1)",
    "test_may_hold.py",
    _LEAST,
)
_body.broken(
    "body-passing-output-held",
    "an output that passes a level is first written there",
    "constant = 0 if problem.output in room.passing else tables.constant\n    numbers",
    "constant = tables.constant\n    numbers",
    "::test_a_tensor_that_passes_costs_nothing_here",
)
_body.broken(
    "body-one-copy",
    "a double-buffered scratchpad takes its room once",
    "kernels.Buffer(room.shared_bytes, own, keeps.copies, keeps.is_guaranteed)",
    "kernels.Buffer(room.shared_bytes, own, 1, keeps.is_guaranteed)",
    "::test_double_buffering_halves_the_room",
)
_body.broken(
    "body-runs-of-one-loop",
    "a tensor stays through one loop of a run at most",
    "            for dim in run:\n",
    "            for dim in run[:1]:\n",
    "test_body.py",
    "test_known_optima.py",
    _LEAST,
)

_placement = In("scheduler/placement.py", "test_placement.py")
_placement.broken(
    "placement-many-tensors-unbounded",
    "problems of many tensors are bounded by what is known to be possible",
    "        return min(once, below), 0\n",
    "        return below, 0\n",
    "::test_more_tensors_than_are_ordered_are_bounded_by_what_they_are",
)
_placement.broken(
    "placement-as-good-is-better",
    "a placement that moves as much as is known is returned",
    "return replace(made, bytes=moved) if moved < below else None",
    "return replace(made, bytes=moved) if moved <= below else None",
    "::test_tables_that_promise_too_much_return_nothing_worse",
)
_placement.broken(
    "placement-cut-short-unsaid",
    "what a search that is cut short leaves out is not bounded",
    "min(found.bytes, found.left_out, below)",
    "min(found.bytes, below)",
    "::test_a_search_cut_short_says_what_it_left_out",
)
_placement.broken(
    "placement-padded-windows-tabulated",
    "windows that padding clips are bounded by cuts of one length",
    "is_clipped(axis, problem.size) or (axis.is_compound",
    "(axis.is_compound",
    "::test_brute_force_over_nests_and_places",
)

BOUNDS_REST = tuple(
    mutant
    for file in (
        _proof, _search, _item_bounds, _waves, _pieces, _starts, _items, _exact, _orders, _body,
        _placement,
    )
    for mutant in file.mutants
)  # fmt: skip
