"""More mutants of the explorer page: its roofline, editor, table and model."""

from __future__ import annotations

from .mutant import In

_POINTS = "::test_points_of_the_roofline_choose_the_layer"
_LIVE = "::test_live_changes_score_as_the_library_does"

_roofline = In("show/page/ui/roofline.js", "test_page.py")
_roofline.broken(
    "page-bytes-per-flop",
    "operational intensity is bytes per FLOP",
    "return moved ? one.flops / moved : null;",
    "return moved ? moved / one.flops : null;",
    _POINTS,
)
_roofline.broken(
    "page-points-from-high-to-low",
    "the arrow to the right goes to the point of the next lower intensity",
    ".sort((a, b) => intensity(LAYERS[a]",
    ".sort((b, a) => intensity(LAYERS[a]",
    _POINTS,
)
_roofline.broken(
    "page-points-skipped",
    "the arrow to the right passes over every second point",
    "const steps = { ArrowRight: 1,",
    "const steps = { ArrowRight: 2,",
    _POINTS,
)
_roofline.broken(
    "page-roofline-of-first-level",
    "the roofline stays at the outermost level, whatever is chosen",
    "      state.boundary = Number(value);\n",
    "      state.boundary = 0;\n",
    _POINTS,
)
_roofline.broken(
    "page-edited-point-unseen",
    "what is made of a layer by hand has no point",
    "if (text === best().schedule || !moved) return null;",
    "if (text !== best().schedule || !moved) return null;",
    _LIVE,
)
_roofline.broken(
    "page-filter-leaves-points",
    "points of layers that a filter leaves out stay",
    "watch(['filter', 'size'], drawRoofline);",
    "watch(['size'], drawRoofline);",
    "::test_filters_leave_what_is_asked_for",
)

_editor = In("show/page/ui/editor.js", "test_page.py")
_editor.broken(
    "page-keys-the-other-way",
    "Alt and the arrow upward move a loop inward",
    "place + (event.key === 'ArrowUp' ? -1 : 1)",
    "place + (event.key === 'ArrowUp' ? 1 : -1)",
    _LIVE,
)
_editor.broken(
    "page-moved-loop-loses-focus",
    "a loop that is moved by keys loses the focus",
    "  edited(loops, { place, what });\n",
    "  edited(loops, null);\n",
    _LIVE,
)
_editor.broken(
    "page-text-fault-unsaid",
    "a text that cannot be read is not called wrong",
    "    state.fault = error.message || String(error);\n    drawFault();\n",
    "    state.fault = error.message || String(error);\n",
    "::test_text_is_a_way_to_edit_and_says_what_is_wrong",
)
_editor.broken(
    "page-dragged-the-wrong-way",
    "a loop is dropped as far from the end as it should be from the beginning",
    "index !== from && each < middle).length",
    "index !== from && each > middle).length",
    "::test_a_loop_is_dragged_to_its_place",
)
_editor.broken(
    "page-reset-to-itself",
    "the best schedule can be reset to itself",
    "byId('reset').disabled = state.text === best().schedule && !state.fault;",
    "byId('reset').disabled = false;",
    "::test_what_is_edited_stays_and_can_be_taken_back",
)

_state = In("show/page/ui/state.js", "test_page.py")
_state.broken(
    "page-wrong-layer-unsaid",
    "an address of a layer that is not there is passed over in silence",
    "  if (index < 0) return { index: 0, fault:",
    "  if (index < -1) return { index: 0, fault:",
    "::test_an_address_is_a_view",
)
_state.broken(
    "page-address-text-raw",
    "a schedule from an address stays as it was typed",
    "return { index, text: plain(text, index) };",
    "return { index, text: plain(text, index) && text };",
    "::test_an_address_is_a_view",
)
_state.broken(
    "page-address-always-long",
    "the address of a layer names its best schedule, too",
    "  if (text !== LAYERS[index].found[0].schedule) {\n    parts",
    "  if (text) {\n    parts",
    "::test_keys_choose_a_layer_everywhere",
)
_state.broken(
    "page-fault-stays",
    "a fault is shown until the page is loaded again",
    "  state.fault = '';\n  try {",
    "  try {",
    "::test_what_is_edited_stays_and_can_be_taken_back",
)

_table = In("show/page/ui/table.js", "test_page.py")
_table.broken(
    "page-time-once",
    "a layer that occurs often counts once in the time of all",
    "  return one.count * one.found[0].time_s;\n",
    "  return one.found[0].time_s;\n",
    "::test_page_opens_on_the_first_layer",
    "::test_filters_leave_what_is_asked_for",
)
_table.broken(
    "page-bound-not-filtered",
    "the filter by what bounds a layer shows the others",
    "if (state.bound && one.found[0].bound_by !== state.bound)",
    "if (state.bound && one.found[0].bound_by === state.bound)",
    "::test_filters_leave_what_is_asked_for",
)
_table.broken(
    "page-any-word",
    "one of several words of a filter is enough",
    ".filter(Boolean).every((word) => isIn(text, word))",
    ".filter(Boolean).some((word) => isIn(text, word))",
    "::test_numbers_of_a_filter_are_whole",
)
_table.broken(
    "page-end-is-a-page",
    "the key End goes ten rows down, as in a longer table",
    "return shownOrder[Math.max(0, Math.min(shownOrder.length - 1, place + step))];",
    "return shownOrder[Math.max(0, Math.min(shownOrder.length - 2, place + step))];",
    "::test_keys_choose_a_layer_everywhere",
)

_replay = In("show/page/model/replay.js", "test_page_model.py")
_replay.broken(
    "page-replay-one-wave",
    "waves of a list of items are as many as its items",
    "= quotientAbove(nItems[g], groups[g].instances); // waves",
    "= nItems[g]; // waves",
)

_replay.broken(
    "page-replay-unfit-counts",
    "a replay bounds what comes in though some body did not fit",
    "return replayed.fits ? replayed.anew : null;",
    "return replayed.anew;",
)
_replay.broken(
    "page-replay-cells-of-one",
    "a cell of several elements is one",
    "for (const weight of one.weights) weights.push(weight);",
    "for (const weight of one.weights) weights.push(weight ? 1 : 0);",
)
_replay.broken(
    "page-replay-cuts-lists",
    "a list of items is taken apart",
    "if (group !== null && this.loops[depth - 1].group === group) continue;",
    "if (group === -1) continue;",
)
_replay.broken(
    "page-replay-inside-others",
    "bodies are replayed that levels inside take apart",
    "if (depth === nest.deepest || nest.loops[depth - 1].position >= inmost) break;",
    "if (depth > nest.deepest) break;",
)

_reuse = In("show/page/model/reuse.js", "test_page_model.py")
_reuse.broken(
    "page-window-of-one",
    "two bodies in a row take the room of one",
    "if (between.length > 1 || view.cuts[upto - 1] !== between[0]) return BigInt(many) * one;",
    "if (between.length > 1 || view.cuts[upto - 1] !== between[0]) return one;",
)
_reuse.broken(
    "page-parallel-cut-ends-run",
    "a dimension that is handed out ends a run of bodies that share",
    "    if (!cut.isParallel) {\n      if (tensor.indexed",
    "    if (cut) {\n      if (tensor.indexed",
)

_reuse.broken(
    "page-first-body-is-best",
    "the largest body is the best, however little stays with it",
    "if (best === null || total < least) [best, least] = [visits, total];",
    "if (best === null) [best, least] = [visits, total];",
)
_reuse.broken(
    "page-shares-undivided",
    "instances that share a level each have all of it",
    "return { ...room, shared: room.shared / n, own };",
    "return { ...room, own };",
)
_reuse.broken(
    "page-uneven-runs-last",
    "a run of unequal bodies counts as steady",
    "if (run.inner.length && isSteady(view, run.inner)) {",
    "if (run.inner.length) {",
)

_view = In("show/page/model/view.js", "test_page_model.py")
_view.broken(
    "page-copies-uncounted",
    "pieces that are handed out and cut further are counted once",
    "if (cut.isParallel) copies *= BigInt(quotientAbove(length, cut.extent));",
    "if (cut.isParallel) copies *= 1n;",
)
_view.broken(
    "page-rest-is-no-piece",
    "a rest that is shorter is no piece of its own",
    "      if (rest) add(rest, many);\n",
    "      if (rest > cut.extent) add(rest, many);\n",
)
_view.broken(
    "page-waves-end-anywhere",
    "waves count as ending with iterations if the rest divides",
    "return rest === 0 && (isOutermost || count % quotient(instances, inside) === 0);",
    "return rest === 0;",
)
_view.broken(
    "page-whole-loops-cut",
    "a loop of one iteration counts as a cut",
    "    } else if (extent < length) {\n      cuts.push",
    "    } else if (extent <= length) {\n      cuts.push",
)
_view.broken(
    "page-visits-of-others-once",
    "a tensor that a dimension does not index is visited once for all its pieces",
    "if (!tensor.indexed[d]) visits *= this.nPieces(d, upto);",
    "if (!tensor.indexed[d]) visits *= 1n;",
)

_walk = In("show/page/model/walk.js", "test_page_model.py")
_walk.broken(
    "page-cache-first-in-first-out",
    "what is used again is not kept longer",
    "    if (this.head === cell) return true;\n",
    "    if (isHeld) return true;\n",
)
_walk.broken(
    "page-window-keeps-all",
    "what a window has left behind stays in it",
    "this.held -= at[this.start++];",
    "this.start++;",
)

_walk.broken(
    "page-window-counts-again",
    "what is in a window already counts in it again",
    "if (before < this.start) this.held += size;",
    "this.held += size;",
)
_walk.broken(
    "page-overflow-unseen",
    "a visit that does not fit is said to fit",
    "if (at[visit] > capacity) this.overflows = true;",
    "if (at[visit] > capacity) this.overflows = false;",
)

_report = In("show/page/report.py", "test_page.py")
_report.broken(
    "page-large-problem-taken",
    "problems too large for the page's model are shown",
    "if problem_bytes(problem) > _MOST_BYTES or largest > MOST_EXACT:",
    "if largest > MOST_EXACT:",
    "::test_what_the_page_could_not_score_is_refused",
)

_report.broken(
    "page-unreadable-schedules",
    "rows whose schedule the page cannot read are shown",
    "faults += [fault for row in rows for fault in _misfits(problem, row)]",
    "faults += []",
    "::test_what_the_page_could_not_score_is_refused",
)

_rows = In("show/page/rows.py", "test_page.py")
_rows.broken(
    "page-rows-without-best",
    "a layer without its best schedule is shown",
    "    if 1 not in ranks:\n",
    "    if 0 in ranks:\n",
    "::test_rows_that_are_none_of_a_search_are_refused",
)
_rows.broken(
    "page-rows-one-is-true",
    "1 counts as true",
    '_TRUTH = (lambda value: isinstance(value, bool), "true or false")',
    '_TRUTH = (lambda value: isinstance(value, int), "true or false")',
    "::test_rows_that_are_none_of_a_search_are_refused",
)
_rows.broken(
    "page-rows-nan",
    "NaN counts as a number",
    "and (isinstance(value, int) or math.isfinite(value))",
    "and (isinstance(value, int) or value != math.inf)",
    "::test_rows_that_are_none_of_a_search_are_refused",
)
_rows.broken(
    "page-rows-other-machine",
    "rows of a machine with more levels are taken",
    'if not faults and len(row["levels"]) != n_levels:',
    'if not faults and len(row["levels"]) > n_levels:',
    "::test_rows_that_are_none_of_a_search_are_refused",
)

PAGE_REST = tuple(
    mutant
    for file in (_roofline, _editor, _state, _table, _replay, _reuse, _view, _walk, _report, _rows)
    for mutant in file.mutants
)
