"""Mutants of kernels for the CPU at hand: how they are cut, written, compiled and shared."""

from __future__ import annotations

from .mutant import In

_KINDS = "test_plans.py::test_all_kinds_of_plans"

_plan = In("codegen/plan.py", "test_plans.py")
_plan.broken(
    "plan-heights-of-their-own",
    "small blocks have tiles that no other block has",
    "if {*dict(found)} <= {*dict(known)} else",
    "if {*dict(found)} else",
    ">>> heights",
)
_plan.broken(
    "plan-no-last-block",
    "what whole blocks leave is not computed",
    "return size // walk.block, walk.block, size % walk.block",
    "return size // walk.block, walk.block, 0",
    f"{_KINDS}[product]",
)
_plan.broken(
    "plan-rows-begin-anywhere",
    "packed rows begin in the midst of a line",
    "n = -(-n // a_line) * a_line",
    "n = n + 0",
    "test_codegen.py::test_packed_rows_begin_with_lines",
)
_plan.broken(
    "plan-rows-a-page-apart",
    "packed rows lie a multiple of a page apart",
    "return (n + a_line * (n * vector_bytes % PAGE == 0)) * lanes",
    "return n * lanes",
    "test_codegen.py::test_packed_rows_begin_with_lines",
)
_plan.broken(
    "plan-two-guards",
    "padding is left out where two guards move with one dimension",
    "if len(sums) != 1 or sums & seen or",
    "if len(sums) != 1 or",
    "::test_padding_is_left_out_where_loops_can_be_cut",
)
_plan.broken(
    "plan-part-of-a-row",
    "padding is left out of blocks of any part of a row",
    "can_be_tiled = len(inner) == 1 and plan.rows.block == task.size(inner[0])",
    "can_be_tiled = len(inner) == 1",
    "::test_padding_is_left_out_where_loops_can_be_cut",
)

_plan.broken(
    "plan-outer-blocks",
    "padding is left out where blocks move its edges, too",
    "if tiled and (outer or not can_be_tiled):",
    "if tiled and not can_be_tiled:",
    f"{_KINDS}[blocked-rows]",
)

_plan.broken(
    "plan-never-across",
    "tiles go down columns where L1 holds the right operand's block",
    "math.prod(reach.values()) * n_bytes <= HELD_BYTES",
    "math.prod(reach.values()) * n_bytes < HELD_BYTES",
    "test_trace.py::test_a_product_touches_what_is_written_out",
)
_plan.broken(
    "plan-reach-counted-twice",
    "windows that overlap count as if they did not",
    "key = dim if plan.packs_right else abs(right.step(dim))",
    "key = dim",
    "::test_tiles_go_across_where_l1_holds_the_block",
)

_choose = In("codegen/cost.py", "test_choose.py")
_lines = In("codegen/lines.py", "test_choose.py")
_packing = In("codegen/packing.py", "test_choose.py")
_core = In("codegen/core.py", "test_choose.py")
_core.broken(
    "core-zen-5-halved",
    "a Zen 5 of halved vectors is taken for one of whole ones",
    "return self.is_wide and self.design == ZEN5",
    "return self.design == ZEN5",
    "::test_zen_5_is_a_kind_of_its_own",
)
_core.broken(
    "core-masks-dear-on-zen-5",
    "padded images are packed on Zen 5, as on other wide cores",
    "return not self.is_wide or self.is_zen5",
    "return not self.is_wide",
    "::test_zen_5_is_a_kind_of_its_own",
)
_core.broken(
    "core-one-share-of-l2",
    "Zen 5 keeps as much in L2 as others",
    "return 0.7 if self.is_zen5 else 0.8",
    "return 0.8",
    "::test_what_is_used_again_leaves_room_in_l2",
)
_lines.broken(
    "lines-stay-in-a-full-l2",
    "lines stay in L2 that leave no room in their sets",
    "<= self.core.l2_share",
    "<= 1",
    "::test_what_is_used_again_leaves_room_in_l2",
)
_packing.broken(
    "packing-rows-follow-from-memory",
    "rows that are transposed are foreseen, however many they are",
    "source.is_far or is_many",
    "source.is_far",
    "::test_rows_that_are_transposed_come_far_from_memory",
)
_packing.broken(
    "packing-rows-far-in-short-vectors",
    "few rows at once are not foreseen either",
    "self.lines.home > 2 and self.lines.vector_bytes >= LINE",
    "self.lines.home > 2",
    "::test_rows_that_are_transposed_come_far_from_memory",
)
_choose.broken(
    "choose-rows-come-ahead",
    "rows that no tile asks for come as if they did",
    "self._is_along and asks_rows(task, plan)",
    "self._is_along",
    "::test_rows_that_tiles_ask_for_come_ahead",
)
_choose.broken(
    "choose-tiles-once",
    "tiles of one block count for all",
    'found["tile"] += n\n',
    'found["tile"] += block.times\n',
    "::test_counts_of_a_product",
)
_choose.broken(
    "choose-sets-in-parallel",
    "lines of one set of L1 come as fast as others",
    "if lines > 0 and one_set:",
    "if lines < 0 and one_set:",
    "::test_lines_of_one_set_come_one_by_one",
)
_choose.broken(
    "choose-full-sets-hold",
    "rows that fill a set of L1 lose nothing to what passes through",
    "self._lost(self.task.left, rows, tall, 1)",
    "self._lost(self.task.left, rows, tall)",
    "::test_rows_that_fill_a_set_lose_lines_to_what_passes_through",
)
_choose.broken(
    "choose-one-line-in-one-set",
    "one line that is read again counts as many of a set",
    "is_long and apart != 0 and",
    "is_long and",
    "::test_one_line_that_is_read_again_shares_its_set_with_none",
)
_choose.broken(
    "choose-bound-of-other-rows",
    "what register tiles take at least counts lines that sums in lanes do not lose",
    "is_elsewhere = plan.packs_left or plan.sums_in_lanes",
    "is_elsewhere = plan.packs_left",
    "::test_what_register_tiles_take_is_part_of_what_plans_take",
)
_choose.broken(
    "choose-no-rush",
    "lines of the left operand never hold up each other",
    "max(0.0, left - MOST_LINES * depth * issue)",
    "max(0.0, left - depth * issue)",
    "::test_lines_of_which_half_is_read_come_in_a_rush",
)
_lines.broken(
    "choose-lines-written-anywhere",
    "runs that begin at lines are taken to begin anywhere",
    "math.gcd(LINE, *apart)",
    "4",
    "::test_lines_that_sums_are_written_to",
)
_choose.broken(
    "choose-sums-read-once",
    "sums that come back are not read",
    "n * (1 if block.counts[2] == 1 else 2)",
    "n",
    "::test_counts_of_a_product",
)
_choose.broken(
    "choose-broadcasts-once",
    "elements of one point of the sum count for all",
    'found["spread"] += n * depth * tall',
    'found["spread"] += n * tall',
    "::test_counts_of_a_product",
)
_choose.broken(
    "choose-vectors-never-cross",
    "vectors read in place begin where lines do",
    "self._across(math.gcd(LINE, *(right.step(dim) * size for dim in sums)))",
    "self._across(self.core.lanes * size)",
    "::test_vectors_read_in_place_may_lie_in_two_lines",
)
_choose.broken(
    "choose-dimensions-of-one-cross",
    "dimensions of one point move vectors off the start of their lines",
    "self._crossing = self._crossed(sums)",
    "self._crossing = self._crossed(self._sums)",
    "::test_vectors_read_in_place_may_lie_in_two_lines",
)
_choose.broken(
    "choose-asked-for-without-room",
    "what is asked for is taken to wait in L2, which has no sets for it",
    "asks = panel.level < 2 and asks_beside(",
    "asks = asks_beside(",
    "test_choose.py::test_runs_of_many_rows_are_far_and_those_of_few_are_asked_for",
)
_choose.broken(
    "choose-first-tiles-asked-for",
    "what the first tile of a block reads was asked for, too",
    "is_met = block.counts[2] > 1 or self.blocks.n_outer(plan.cols) > 1",
    "is_met = self.blocks.n_outer(plan.cols) > 1",
    "test_choose.py::test_runs_of_many_rows_are_far_and_those_of_few_are_asked_for",
)
_choose.broken(
    "choose-runs-never-begin",
    "runs that follow each other begin anew",
    'if first == "read" and source.is_apart else 0.0',
    'if first == "read" else 0.0',
    "::test_runs_of_rows_begin_with_each_block_of_a_sum",
)
_choose.broken(
    "choose-lost-lines-are-shared",
    "rows share lines that the sets of L2 do not hold",
    "is_held = self.lines.stays(source.fill, block.kept[0])",
    "is_held = True",
    "::test_lines_lost_to_others_of_their_sets_are_read_again",
)
_choose.broken(
    "choose-tiles-share-lost-lines",
    "tiles of a block share lines that the sets of L2 do not hold",
    "first = block.left / LINE if is_lost else walked",
    "first = walked",
    "::test_tiles_share_no_lines_that_the_sets_do_not_hold",
)
_lines.broken(
    "choose-short-vectors-fill-lines",
    "a vector of 32 bytes fills a line of a packed block",
    "self.vector_bytes = core.lanes * max(",
    "self.vector_bytes = 2 * core.lanes * max(",
    "::test_counts_where_broadcasts_are_instructions",
)
_choose.broken(
    "choose-broadcasts-free",
    "broadcasts that one vector needs take no instruction, whatever the registers",
    "or not (vectors > 1 or self.core.is_narrow):",
    "or not vectors > 1:",
    "::test_counts_where_broadcasts_are_instructions",
)
_choose.broken(
    "choose-broadcasts-for-one-vector",
    "an element that is spread for one multiply-add costs no more than for many",
    "return ALONE if vectors == 1 else 1",
    "return 1",
    "::test_counts_where_broadcasts_are_instructions",
)
_APART = "::test_lines_of_columns_that_lie_apart"
_packing.broken(
    "choose-panels-everywhere",
    "columns of a block that is packed whole follow each other",
    "lines = run / LINE if run == pitch else lined(",
    "lines = run / LINE if run else lined(",
    _APART,
)
_choose.broken(
    "choose-lines-at-once",
    "L2 gives lines of columns as fast as they are multiplied",
    "issue = max(issue, least * lines / depth)",
    "issue = max(issue, 0.0)",
    _APART,
)
_choose.broken(
    "choose-panels-wait",
    "what is packed tile by tile comes no faster than what lies apart",
    "or not least or (plan.packs_right and is_panel(self.task, plan)):",
    "or not least:",
    _APART,
)
_choose.broken(
    "choose-columns-anywhere",
    "columns in place lie in as many lines as if rows began anywhere",
    "return least * lines / (1 + (wide - 1) * size / LINE)",
    "return least",
    "::test_columns_in_place_wait_for_the_lines_that_there_are",
)
_choose.broken(
    "choose-taps-begin-with-lines",
    "taps along a row are no reason for it to begin anywhere in a line",
    "if plan.packs_right or any(abs(right.step(dim)) == 1 for dim in self._sums):",
    "if plan.packs_right:",
    "::test_columns_in_place_wait_for_the_lines_that_there_are",
)
_lines.broken(
    "choose-parts-of-tiles-anywhere",
    "what is left over of a tile begins anywhere in a line",
    "step = math.gcd(LINE, *apart)",
    "step = math.gcd(LINE, run, *apart)",
    ">>> lined",
)
_choose.broken(
    "choose-windows-share-nothing",
    "rows that windows of the block before read, too, cost nothing outside L2",
    "before = source.lines - lines if both > 1 or not is_held else 0.0",
    "before = 0.0",
    "::test_rows_of_an_image_that_windows_share[True]",
)
_packing.broken(
    "choose-packed-windows-share-nothing",
    "rows that the packed block before was read from, too, cost nothing outside L2",
    "before = source.lines - new if both > 1 else 0.0",
    "before = 0.0",
    "::test_rows_of_an_image_that_windows_share[False]",
)
_lines.broken(
    "choose-a-page-for-each-row",
    "rows of an image lie in pages of their own",
    "if step < PAGE else (near, n_apart * n)",
    "if step < LINE else (near, n_apart * n)",
    "::test_rows_of_an_image_share_its_pages",
)
_choose.broken(
    "choose-burst-of-all",
    "stores wait for none of the lines that a tile writes",
    "max(0, tall * vectors - MOST_WAITING)",
    "max(0, tall * vectors)",
    "::test_lines_that_stores_cannot_wait_with",
)
_choose.broken(
    "choose-burst-in-l2",
    "lines in L2 are waited for, too",
    "MOST_WAITING)} if self.lines.home > 1 else {}",
    "MOST_WAITING)} if self.lines.home > 0 else {}",
    "::test_lines_that_stores_cannot_wait_with",
)
_choose.broken(
    "choose-around-twice",
    "what is around the tiles counts twice in what the largest blocks tell",
    "yield every * (around + rows * block)",
    "yield every * (2 * around + rows * block)",
    "::test_what_the_largest_blocks_tell",
)
_lines.broken(
    "choose-ways-of-l1",
    "lines of one set are kept without end",
    "spots * math.ceil(each))",
    "64 * math.ceil(each))",
    "::test_rows_that_lie_in_one_set",
)
_choose.broken(
    "choose-parts-alone",
    "threads never meet, although they write planes of the same columns",
    "return n_jobs > 1 and apart >= PAGE",
    "return n_jobs > 1 and apart >= 100 * PAGE",
    "::test_threads_that_write_planes_of_the_same_columns",
)
_choose.broken(
    "choose-parts-always-meet",
    "threads that walk all columns at once meet, too",
    "return n_jobs > 1 and apart >= PAGE",
    "return apart >= PAGE",
    "::test_threads_that_write_planes_of_the_same_columns",
)

_compiled = In("codegen/compiled.py", "test_run.py")
_compiled.broken(
    "compiled-output-is-input",
    "an output that is an input is written while it is read",
    "is_apart = not any(np.may_share_memory(out, one) for one in read)",
    "is_apart = True",
    "::test_output_may_be_an_input",
)
_compiled.broken(
    "compiled-layouts-stay",
    "layouts are never let go",
    "if len(self._parts) == _MOST_LAYOUTS:",
    "if len(self._parts) == -1:",
    "::test_layouts_are_let_go",
)
_compiled.broken(
    "compiled-more-threads-than-cpus",
    "threads wait for each other on one CPU",
    "most = min(cores, here)",
    "most = cores",
    "::test_threads_run_on_cpus_at_hand",
)
_compiled.broken(
    "compiled-steps-of-one-element",
    "strides of axes of one element make another layout",
    "step // one.itemsize if n > 1 else alone",
    "step // one.itemsize + (0 if n > 1 else alone)",
    "::test_an_axis_of_one_element_has_no_step",
)
_compiled.broken(
    "compiled-known-overlap",
    "an output that overlaps an input of a known layout is written while it is read",
    "place < end and out < place + span",
    "place < out and out < place + span",
    "::test_arrays_that_lie_elsewhere_than_those_before",
)
_compiled.broken(
    "compiled-known-read-only",
    "an output of a known layout is written though it must not be",
    "if known is None or not out.flags.writeable or not",
    "if known is None or not",
    "::test_arrays_that_lie_elsewhere_than_those_before",
)

_threads = In("codegen/threads.py", "test_crew.py")
_threads.broken(
    "threads-beyond-the-last",
    "the last jobs go on beyond their end",
    "%to = select i1 %is_whole, i64 %j, i64 %stop",
    "%to = select i1 %is_whole, i64 %j, i64 %j",
    "::test_each_job_is_done_once",
)
_threads.broken(
    "threads-others-first",
    "a thread leaves its own jobs to others",
    "%v = phi i64 [ 0, %entry ], [ %w, %over ]",
    "%v = phi i64 [ 1, %entry ], [ %w, %over ]",
    "::test_jobs_of_a_thread_that_never_comes_are_done",
)
_threads.broken(
    "threads-all-begin-at-zero",
    "each thread's jobs begin with the first",
    "store atomic i64 %begun, ptr %next_at",
    "store atomic i64 0, ptr %next_at",
    "::test_each_job_is_done_once",
)
_threads.broken(
    "threads-share-a-room",
    "all threads are given the room of the first",
    "%room_at = getelementptr i64, ptr %rooms, i64 %self",
    "%room_at = getelementptr i64, ptr %rooms, i64 0",
    "::test_threads_are_given_the_same_and_a_room_each",
)
_threads.broken(
    "threads-take-any-number-of-arguments",
    "what there is no room for is written over what lies behind",
    "if n + 3 > _MOST_ARGUMENTS or not",
    "if not",
    "::test_more_than_threads_can_be_given_is_left_to_the_caller",
)
_threads.broken(
    "threads-no-one-takes-over",
    "jobs of a thread that never comes are not done",
    "%is_turn = icmp slt i64 %v, %n\n",
    "%is_turn = icmp slt i64 %v, 1\n",
    "::test_jobs_of_a_thread_that_never_comes_are_done",
)
_threads.broken(
    "threads-on-the-callers-cpu",
    "other threads may take the caller's CPU",
    "allowed = os.sched_getaffinity(0) - {cpu}",
    "allowed = os.sched_getaffinity(0)",
    "::test_others_are_kept_off_the_cpu_of_the_caller",
)

_described = In("codegen/described.py", "test_described.py")
_described.broken(
    "described-unrolled-always",
    "sums are told to be unrolled by more than they are",
    "        tiles.at_once(high, plan.tile_cols)",
    "        2 * tiles.at_once(high, plan.tile_cols)",
    "::test_a_tile_has_so_many_products",
)

KERNELS_CPU = (
    *_plan.mutants,
    *_choose.mutants,
    *_core.mutants,
    *_lines.mutants,
    *_packing.mutants,
    *_compiled.mutants,
    *_threads.mutants,
    *_described.mutants,
)
