"""More mutants of kernels for the CPU: how they are cut, told, traced, checked and exported."""

from __future__ import annotations

from .mutant import In

_RANDOM = "test_codegen.py::test_llvm_computes_random_kernels"

_contraction = In("codegen/contraction.py", "test_codegen.py")
_contraction.broken(
    "contraction-first-phase-only",
    "of the gradient of a strided convolution's input one phase is computed",
    "for phase in range(min(step, length)):",
    "for phase in range(1):",
    _RANDOM,
)
_contraction.broken(
    "contraction-tap-of-another-phase",
    "each phase of a stride begins with the first tap",
    "first = starts[0] if starts else 0",
    "first = 0",
    _RANDOM,
)
_contraction.broken(
    "contraction-no-tap-still-multiplies",
    "where no tap reaches one of the operands is multiplied by zero",
    "if any(_never(guard, self.sizes)",
    "if all(_never(guard, self.sizes)",
    "::test_what_no_tap_reaches_is_zero_whatever_the_weights_are",
)
_contraction.broken(
    "contraction-gaps-of-an-output-covered",
    "an output that is stepped over counts as written everywhere",
    "high == size - 1 and all(step == 1 for step in line.steps.values())",
    "high == size - 1",
    _RANDOM,
)
_contraction.broken(
    "contraction-row-counts-itself",
    "the last axis of an array steps by its own length",
    "math.prod(shape[axis + 1 :])",
    "math.prod(shape[axis:])",
    ">>> row_major",
)

_described = In("codegen/described.py", "test_described.py")
_LOOPS = "::test_loops_are_those_of_the_program"
_described.broken(
    "described-parts-of-rows-untold",
    "that threads share the rows is not told",
    "    if plan.row_parts > 1:\n        _, block",
    "    if plan.row_parts > 99:\n        _, block",
    _LOOPS,
)
_described.broken(
    "described-batch-in-turn",
    "loops over batches are told as one thread's",
    "threads > 1) for dim in plan.batch]\n    if plan",
    "False) for dim in plan.batch]\n    if plan",
    _LOOPS,
)
_described.broken(
    "described-packs-the-other-side",
    "where the left operand is packed the right one is named",
    "task.left.name if plan.packs_left",
    "task.right.name if plan.packs_left",
    _LOOPS,
)
_described.broken(
    "described-steps-of-one",
    "loops in steps of one are told with their step",
    'if one.step > 1 else ""',
    'if one.step > 0 else ""',
    "::test_words",
)

_plan = In("codegen/plan.py", "test_described.py")
_plan.broken(
    "plan-next-block-has-no-room",
    "blocks of any size leave room in L2 for what the next one is packed from",
    "return has_room and not is_apart and turns_right(task, plan)",
    "return not is_apart and turns_right(task, plan)",
    "test_choose.py::test_squares_that_tiles_asked_for_cost_less",
)
_plan.broken(
    "plan-asks-where-one-tile-reads",
    "a tile alone asks for lines that some cache holds",
    "(is_shared or task.bytes_of(right) >= OUTSIDE_BYTES)",
    "(is_shared or size > 0)",
    "test_trace.py::test_tiles_ask_for_the_columns_beside_them",
)
_plan.broken(
    "plan-asks-for-lines-again",
    "what points of a sum share is asked for at each",
    "return is_lined and bool(steps) and min(steps) * size >= LINE",
    "return is_lined and bool(steps)",
    "test_trace.py::test_tiles_ask_for_the_columns_beside_them",
)
_plan.broken(
    "plan-asks-for-what-l2-holds",
    "columns of small operands are asked for, too",
    "vector_bytes < LINE or is_near:",
    "vector_bytes < LINE:",
    "test_trace.py::test_tiles_ask_for_the_columns_beside_them",
)
_plan.broken(
    "plan-asks-for-what-l3-holds",
    "plans that ask for nothing that the last cache holds ask for it, too",
    "NEAR_BYTES if plan.asks_l3 else L3_BYTES",
    "NEAR_BYTES",
    "test_choose.py::test_where_tiles_ask_for_columns_beside_theirs",
)
_plan.broken(
    "plan-rows-asked-for-always",
    "tiles ask for rows that the last cache holds, whatever the plan says",
    "return is_plain and (plan.asks_l3 or task.bytes_of(task.left) > L3_BYTES)",
    "return is_plain",
    "test_codegen.py::test_rows_that_the_last_cache_holds_are_asked_for_if_the_plan_says_so",
)
_plan.broken(
    "plan-sides-exchanged",
    "dimensions of the left operand are columns",
    '"cols" if dim in task.right.dims else "rows"',
    '"rows" if dim in task.right.dims else "cols"',
    "::test_words",
)
_plan.broken(
    "plan-parts-walked-as-one",
    "dimensions count as one although the inner one is not whole",
    "elif operand.step(dim) != step * run:",
    "elif operand.step(dim) < step * run:",
    ">>> merged_step",
)

_stages = In("codegen/stages.py", "test_codegen.py")
_stages.broken(
    "stages-rounds-side-by-side",
    "loops outside those that threads share are shared too",
    "return Order(loops, n_serial, n_shared) if n_shared",
    "return Order(loops, 0, n_serial + n_shared) if n_shared",
    ">>> order_of",
)
_stages.broken(
    "stages-output-not-zeroed",
    "sums are added to what lies in the output",
    "if not nest.is_direct:\n            zero",
    "if nest.is_direct:\n            zero",
    _RANDOM,
)
_stages.broken(
    "stages-copy-not-zeroed",
    "the wide copy of a narrow output begins with what lies in it",
    '            (zero, _plain(zero), ["work"]),\n',
    "",
    "::test_a_narrow_output_is_summed_in_a_copy",
)
_stages.broken(
    "stages-operands-as-asked",
    "a plan that exchanges the operands finds them as they were",
    "tuple(each.name for each in one.operands)",
    "tuple(each.name for each in tasks[number].operands)",
    "test_exchange_code.py::test_a_chosen_plan_may_exchange_the_operands",
)

_writer = In("codegen/writer.py", "test_codegen.py")
_RANDOM = "::test_llvm_computes_random_kernels"
_writer.broken(
    "added-first-half",
    "of lanes that are added up some count twice",
    "first, second = (self.mixed(full[0], full[1], side) for side in sides)",
    "first, second = (self.mixed(full[0], full[1], sides[0]) for side in sides)",
    "::test_sums_in_lanes_compute_random_kernels",
)
_writer.broken(
    "writer-functions-by-arguments",
    "a function serves all others that take as much, whatever they do",
    "key = *pointers, *numbers, *self._lines[body:]",
    "key = *pointers, *numbers",
    "::test_functions_that_do_the_same_are_written_once",
)
_writer.broken(
    "writer-tables-of-anybody",
    "tables are named as if nothing else of a program were",
    'f"{user}_table{len(self._tables)}"',
    'f"table{len(self._tables)}"',
    "test_exchange_code.py::test_a_function_is_named_as_no_table_of_its_program",
)
_writer.broken(
    "writer-shorter-tables",
    "of two tables that begin alike the shorter is kept",
    "self._tables.get(name, ()), new, key=len)",
    "self._tables.get(name, new), new, key=lambda one: -len(one))",
    "::test_tables_that_begin_alike_are_one",
)
_writer.broken(
    "writer-second-is-first",
    "of every second element always the first is taken",
    "range(start, start + step * self.lanes, step)",
    "range(0, step * self.lanes, step)",
    "::test_windows_that_slide_compute_random_kernels",
)
_writer.broken(
    "writer-squares-turned-twice",
    "a transposition exchanges neighbouring lanes",
    "for side in (0, lanes)]",
    "for side in (lanes, 0)]",
    _RANDOM,
)
_writer.broken(
    "writer-groups-as-they-were",
    "groups of lanes are exchanged as if they were as many as in a vector of 32 bytes",
    "group << n, across",
    "group, across",
    "::test_squares_are_turned_by_instructions",
)
_FOLDED = "::test_what_is_known_is_computed_before"
_writer.broken(
    "writer-known-term-lost",
    "a known term of a sum is left out where another is not known",
    'return self._arithmetic("+", total, known) if known else total',
    "return total",
    _FOLDED,
)
_writer.broken(
    "writer-zero-times",
    "zero times a number is the number",
    "return one if factor else 0",
    "return one",
    _FOLDED,
)
_writer.broken(
    "writer-quotient-is-rest",
    "what is divided by one is its rest",
    "            return one, 0\n",
    "            return 0, one\n",
    _FOLDED,
)
_writer.broken(
    "writer-least-is-most",
    "of two known numbers the larger is taken",
    "return min(one, other)",
    "return max(one, other)",
    _FOLDED,
)
_writer.broken(
    "writer-least-turned",
    "of two numbers that are not known the larger is taken",
    "self.choice(self.less(one, other), one, other)",
    "self.choice(self.less(one, other), other, one)",
    _FOLDED,
)

_reference = In("codegen/reference.py", "test_run.py")
_SUM = "::test_the_reference_is_the_sum_of_all_points"
_reference.broken(
    "reference-last-index-lost",
    "the last index that reaches what is stored is left out",
    "(size - 1 - offset) // step + 1)",
    "(size - 1 - offset) // step)",
    _SUM,
)
_reference.broken(
    "reference-first-place-is-padding",
    "what a tap reaches first counts as padding",
    "if not 0 <= offset < size:",
    "if not 0 < offset < size:",
    _SUM,
)
_reference.broken(
    "reference-unreached-tap-ends",
    "a tap that reaches nothing ends the sum",
    "        if limits is None:\n            continue",
    "        if limits is None:\n            break",
    "::test_taps_that_reach_padding_only_add_nothing",
)
_reference.broken(
    "reference-padding-lost",
    "what is stored begins where the padding does",
    "start = axis.offset if axis.size is not None else 0",
    "start = 0",
    _SUM,
)
_reference.broken(
    "reference-adds-to-what-is-there",
    "sums over taps are added to what lies in the output",
    "    if not is_whole or len(read) != 2:\n        out[...] = 0\n",
    "",
    _SUM,
)

_measure = In("codegen/measure.py", "test_run.py")
_measure.broken(
    "measure-halves-rounded-up",
    "what lies between two bf16 numbers is stored as the upper one",
    "return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)",
    "return ((bits + 0x8000) >> 16)",
    "::test_stored_numbers",
)
_measure.broken(
    "measure-any-numbers-will-do",
    "a kernel is right if its output has the shape",
    "if not np.array_equal(found, wanted):",
    "if found.shape != wanted.shape:",
    "::test_a_wrong_kernel_is_found",
)
_measure.broken(
    "measure-fewer-of-the-best",
    "of an odd number of plans fewer than half are the best",
    "random.Random(seed), -(-n // 2)",
    "random.Random(seed), n // 2",
    "test_validation_cpu.py::test_plans_that_are_timed",
)
_measure.broken(
    "measure-one-seed",
    "plans are drawn alike whatever the seed",
    "draw, n_best = [], random.Random(seed)",
    "draw, n_best = [], random.Random(0)",
    "test_validation_cpu.py::test_plans_that_are_timed",
)
_measure.broken(
    "measure-quick-calls-once",
    "functions are timed less than five times",
    "min(50, max(least, rounds))",
    "min(50, max(1, rounds))",
    "::test_medians_are_of_five_times_or_more",
)
_measure.broken(
    "measure-least-for-median",
    "the least time is told as the median",
    "return [median(found) for found in times]",
    "return [min(found) for found in times]",
    "::test_medians_are_of_five_times_or_more",
)

_trace = In("codegen/trace.py", "test_trace.py")
_PRODUCT = "::test_a_product_touches_what_is_written_out"
_trace.broken(
    "trace-vectors-are-elements",
    "of a whole vector its first element is touched",
    "self._touch(pointer, self.lanes * element.n_bytes)",
    "self._touch(pointer, element.n_bytes)",
    _PRODUCT,
)
_trace.broken(
    "trace-second-line-lost",
    "of an access across two lines one is touched twice",
    "found[np.cumsum(many) - 1] = last\n",
    "found[np.cumsum(many) - 1] = first\n",
    _PRODUCT,
)
_trace.broken(
    "trace-last-notes-lost",
    "what is noted last is not replayed",
    "program.n_jobs)\n        drain()",
    "program.n_jobs)",
    _PRODUCT,
)
_trace.broken(
    "trace-caches-see-everything",
    "a cache sees also what the one before it holds",
    "lines = cache.missed(lines)\n            counts[number] += len(lines)",
    "counts[number] += len(cache.missed(lines))",
    _PRODUCT,
)
_trace.broken(
    "trace-packed-before",
    "room to pack into is in the caches before anything runs",
    'take(np.arange(at[""] // LINE',
    'take(np.arange(at["end"] // LINE',
    "::test_what_fits_is_missed_only_where_it_is_packed",
)

_compiled = In("codegen/compiled.py", "test_run.py")
_store = In("codegen/kept.py", "test_run.py")
_store.broken(
    "kept-turns-stay-short",
    "after a program is compiled, Python's threads go on taking short turns",
    "            sys.setswitchinterval(turn)",
    "            pass",
    "::test_what_is_compiled_is_not_disturbed",
)
_store.broken(
    "kept-built-at-once",
    "threads build at the same time, and restore what others set",
    "with BUILDING, _undisturbed(),",
    "with _undisturbed(),",
    "::test_threads_that_build_at_once_restore_what_they_found",
)
_store.broken(
    "kept-cycles-stay",
    "after a program is compiled, Python never looks for cycles again",
    "            if is_searching:",
    "            if not is_searching:",
    "::test_what_is_compiled_is_not_disturbed",
)
_compiled.broken(
    "compiled-plans-timed-elsewhere",
    "plans are timed where their operands begin, not where their first points lie",
    "self._compiled([one])[0].started(task)",
    "self._compiled([one])[0]",
    "test_codegen.py::test_plans_are_timed_on_what_they_read",
)
_compiled.broken(
    "compiled-phases-begin-together",
    "phases of a stride that share a program write to one place",
    "starts=(first, 0, out))",
    "starts=(first, 0, 0))",
    "test_codegen.py::test_phases_of_a_stride_share_programs",
)
_compiled.broken(
    "compiled-elements-that-are-one",
    "an output of which elements are one is written in place",
    "if n > 1 and step < reach:",
    "if n > 1 and step < 0:",
    ">>> _is_nested",
)

_store.broken(
    "kept-pieces-cut-elsewhere",
    "pieces of a kept program begin where others end",
    "ends = [0, *accumulate(sizes)]",
    "ends = [0, *sizes]",
    "::test_programs_are_compiled_in_pieces_and_kept_whole",
)
_compiled.broken(
    "compiled-kept-for-any-threads",
    "a plan for one thread is taken for several",
    'f"{self.core} {self.threads} {given}"',
    'f"{self.core} {given}"',
    "::test_what_is_kept_is_not_chosen_again",
)
_store.broken(
    "kept-threads-that-must-start",
    "nothing is compiled where no thread can be started",
    "except RuntimeError:  # no thread can be started",
    "except ZeroDivisionError:",
    "::test_programs_are_compiled_where_no_thread_can_be_started",
)
_text = In("codegen/llvm_text.py", "test_codegen.py")
_text.broken(
    "pieces-tables-grow",
    "a function of an earlier module reads beyond its table",
    "        self._whole.update(used)\n",
    "",
    "::test_a_table_that_a_piece_has_does_not_grow",
)

_cost = In("codegen/cost.py", "test_plans.py")
_blocks = In("codegen/blocks.py", "test_plans.py")
_packing = In("codegen/packing.py", "test_plans.py")
_shares = In("codegen/shares.py", "test_plans.py")
_shares.broken(
    "choose-small-blocks-first",
    "all jobs are as large as the rest",
    "sizes[queues[whose].pop() % len(sizes)]",
    "sizes[queues[whose].pop() % len(sizes) - 1]",
    ">>> slowest_share",
)

_choose = In("codegen/choose.py", "test_plans.py")
_choose.broken(
    "choose-whole-sums-with-few-tiles",
    "blocks of whole sums are tried with as few register tiles as others",
    "tiles = ROUNDED_TILES if is_rounded(task) else tiles",
    "tiles = FIRST_TILES",
    "test_choose.py::test_several_register_tiles_are_tried_first",
)
_choose.broken(
    "choose-converts-again",
    "elements that have to be converted are read in place, whatever meets them",
    "and not is_converted",
    "",
    "::test_elements_that_are_converted_are_packed",
)
_choose.broken(
    "choose-few-cores-have-all",
    "some cores have the bandwidth of all caches",
    "share = n / level.instances",
    "share = 1.0",
    "test_run.py::test_fewer_cores_share_what_is_left",
)

_choose.broken(
    "choose-blocks-of-any-width",
    "blocks of columns end inside a register tile",
    "block=min(size, -(-each // tile) * tile))",
    "block=min(size, each))",
    "::test_blocks_of_columns_are_whole_tiles",
)
_choose.broken(
    "choose-in-any-order",
    "plans are not ranked by what they take",
    "return sorted(self.found, key=lambda one: one[0])",
    "return self.found",
    "test_choose.py::test_the_first_are_the_least",
)
_choose.broken(
    "choose-more-than-registers",
    "sums of a tile fill all registers",
    "most = min((core.registers - 1 - n) // n, 14)",
    "most = min(core.registers // n, 14)",
    "::test_a_register_tile_leaves_room_for_its_operands",
)
_choose.broken(
    "choose-first-few-seen",
    "plans are left out that could be among the first",
    "if least > self._most(n):",
    "if least > 2 * self._most(n) / 3:",
    "test_choose.py::test_the_first_are_the_least",
)

_cost.broken(
    "choose-blocks-of-one-row",
    "what surrounds blocks is taken to grow with their rows",
    "yield every * (around + rows * block)",
    "yield every * rows * (around + block)",
    "test_choose.py::test_what_the_largest_blocks_tell",
)
_choose.broken(
    "choose-moved-by-any-tile",
    "what the first register tile of a way moves is taken for all",
    "key = way, plan.cols",
    "key = way, plan.rows",
    "test_choose.py::test_several_register_tiles_are_tried_first",
)
_choose.broken(
    "choose-few-wide-tiles",
    "wide cores try as few register tiles of a way first as others",
    "tiles = WIDE_TILES if core.is_wide else FIRST_TILES",
    "tiles = FIRST_TILES",
    "test_choose.py::test_several_register_tiles_are_tried_first",
)
_cost.broken(
    "choose-moved-by-every-row",
    "what the largest blocks move is taken to be moved again by each of their rows",
    "(around + rows * moved)",
    "(around + length(self._whole(plan.rows)) * moved)",
    "test_choose.py::test_what_the_largest_blocks_tell",
)
_blocks.broken(
    "choose-largest-blocks-once",
    "there is one block of the largest shape",
    "/ (length(dims) * n)",
    "/ length(dims)",
    "test_choose.py::test_what_the_largest_blocks_tell",
)
_cost.broken(
    "choose-most-uneven-threads",
    "of ways to share rows the worst is what a plan takes at least",
    "self._shares[key] = min(",
    "self._shares[key] = max(",
    "test_choose.py::test_the_first_are_the_least",
)
_choose.broken(
    "choose-worst-tiles-first",
    "each way is tried first with the register tiles that multiply slowest",
    "key=lambda one: one[0]) for",
    "key=lambda one: -one[0]) for",
    "test_choose.py::test_several_register_tiles_are_tried_first",
)
_choose.broken(
    "choose-first-tiles-only",
    "other register tiles than the first are never tried",
    "cut[way][tiles:]",
    "cut[way][:FIRST_TILES]",
    "test_choose.py::test_what_is_tried_with_few_register_tiles_first",
)
_packing.broken(
    "choose-packed-blocks-alone",
    "what is packed is alone in the last cache",
    "return self.lines.level(n_bytes + source) if level == 2 else level",
    "return level",
    "test_choose.py::test_what_packing_reads_pushes_blocks_out_of_the_last_cache",
)
_cost.broken(
    "choose-batch-of-one",
    "the largest blocks of one of a batch tell of all",
    "every = self._batch_size(plan) * math.prod(others)",
    "every = math.prod(others)",
    "test_choose.py::test_what_the_largest_blocks_tell",
)

_code = In("exchange/kernel_code.py", "test_exchange_code.py")
_code.broken(
    "code-first-round-again",
    "every round does the jobs of the first",
    'f"round * {each}", f"(round + 1) * {each}"',
    '"0", str(each)',
    "::test_sums_outside_threads_are_rounds",
)
_code.broken(
    "code-wrong-ends-well",
    "a program that finds itself wrong ends as if it were right",
    '"      return 1;",',
    '"      return 0;",',
    "::test_a_program_checks_itself",
)
_code.broken(
    "code-other-sizes-unsaid",
    "that elements are stored in another size is not told",
    "if element.n_bytes != tensor.element_bytes:",
    "if element.n_bytes < tensor.element_bytes:",
    "::test_c_says_what_it_has_no_type_for",
)
_code.broken(
    "code-cores-without-vectors",
    "any machine's kernel is written as that of a CPU",
    "if arch is None or not is_cpu:",
    "if arch is None:",
    "::test_a_program_needs_a_schedule_or_a_cpu",
)
_code.broken(
    "code-vectors-of-256-bits",
    "vectors are those of AVX2, whatever the CPU has",
    "lanes, registers = arch.cpu.lanes(size), arch.cpu.vector_registers",
    "lanes, registers = lanes, arch.cpu.vector_registers",
    "::test_vectors_are_those_of_the_cpu",
)
_measure.broken(
    "measure-parts-of-sums-rounded",
    "plans that are drawn cut sums that the output rounds",
    'if kind == "sums" and is_rounded(one):',
    'if kind == "rows" and is_rounded(one):',
    "test_validation_cpu.py::test_plans_that_are_drawn_compute_what_others_do",
)

WRITTEN_REST = tuple(
    mutant
    for file in (
        _contraction, _described, _plan, _stages, _writer, _reference, _measure, _trace,
        _compiled, _store, _cost, _packing, _blocks, _shares, _choose, _code, _text,
    )
    for mutant in file.mutants
)  # fmt: skip
