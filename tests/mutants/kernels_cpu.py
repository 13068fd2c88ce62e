"""Mutants of kernels for the CPU at hand: how they are cut, written, compiled and shared."""

from __future__ import annotations

from .mutant import In

_LLVM = "test_codegen.py::test_llvm_computes_random_kernels"
_C = "test_codegen.py::test_c_computes_random_kernels"
_KINDS = "test_plans.py::test_all_kinds_of_plans"
_NUMPY = "test_run.py::test_kernels_equal_numpy"

_plan = In("codegen/plan.py", "test_plans.py")
_plan.broken(
    "plan-no-last-block",
    "what whole blocks leave is not computed",
    "return size // walk.block, walk.block, size % walk.block",
    "return size // walk.block, walk.block, 0",
    f"{_KINDS}[product]",
)
_plan.broken(
    "plan-any-longer-step",
    "dimensions are walked as one that leave gaps",
    "elif operand.step(dim) != step * run:",
    "elif operand.step(dim) < step * run:",
    f"{_KINDS}[padded]",
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
    "if tiled and (len(plan.rows.inner) > 1 or plan.rows.block < task.size(*tiled)):",
    "if tiled and len(plan.rows.inner) > 1:",
    "::test_padding_is_left_out_where_loops_can_be_cut",
)
_plan.broken(
    "plan-outer-forgotten",
    "a dimension outside of blocks is not walked",
    "return self.dims[: self.cut]",
    "return self.dims[: self.cut - 1] if self.cut else ()",
    f"{_KINDS}[padded]",
)

_choose = In("codegen/choose.py", "test_choose.py")
_choose.broken(
    "choose-tiles-once",
    "tiles of one block count for all",
    'found["tile"] += n\n',
    'found["tile"] += times\n',
    "::test_counts_of_a_product",
)
_choose.broken(
    "choose-sums-read-once",
    "sums that come back are not read",
    'found["sum"] += n * sums * (1 if n_sums == 1 else 2)',
    'found["sum"] += n * sums',
    "::test_counts_of_a_product",
)
_choose.broken(
    "choose-loads-of-rows",
    "vectors of a tile are loaded for nothing",
    'found["load"] += n * depth * (tall + vectors)',
    'found["load"] += n * depth * tall',
    "::test_counts_of_a_product",
)
_choose.broken(
    "choose-copies-shared",
    "threads that share rows share their copies",
    "(shared * uneven + copies * plan.row_parts)",
    "(shared * uneven + copies)",
    "::test_threads_share_all_but_copies_of_their_own",
)
_choose.broken(
    "choose-padding-in-place",
    "an operand is read in place where it has padding",
    "    if operand.guards:\n        return False\n",
    "",
    f"{_KINDS}[padded]",
)
_choose.broken(
    "choose-apart-in-place",
    "elements that lie apart are read as if side by side",
    "merged_step(operand, dims) != 1:",
    "merged_step(operand, dims) is None:",
    f"{_KINDS}[product]",
)
_choose.broken(
    "choose-cores-keep-all",
    "some of a machine's cores have all of its caches",
    "n = max(1, level.instances * n_cores // units)",
    "n = level.instances",
    "test_run.py::test_fewer_cores_share_what_is_left",
)

_engine = In("codegen/engine.py", "test_plans.py")
_engine.broken(
    "engine-no-rest",
    "tiles that are not full are left out",
    "parts = [(0, whole, each), (whole, total, total - whole)]",
    "parts = [(0, whole, each)]",
    f"{_KINDS}[product]",
)
_engine.broken(
    "engine-rows-of-parts",
    "threads leave the last block of rows to nobody",
    "each = -(-total // plan.row_parts)",
    "each = total // plan.row_parts",
    f"{_KINDS}[padded]",
)
_engine.broken(
    "engine-row-in-padding",
    "the row behind the last one counts",
    "                < guard.size\n            )\n            for at",
    "                <= guard.size\n            )\n            for at",
    f"{_KINDS}[padded]",
)
_engine.broken(
    "engine-loop-into-padding",
    "a loop of the sum begins before what is stored",
    "reached = text.choice(text.less(end, 0), 0, end)",
    "reached = end",
    f"{_KINDS}[padded]",
)
_engine.broken(
    "engine-other-half",
    "of elements two apart the others are read",
    "count = [at % 2 == 0 and",
    "count = [at % 2 == 1 and",
    f"{_KINDS}[pixels]",
)
_engine.broken(
    "engine-later-forgets",
    "a later block of the sum forgets what was there",
    'return self.text.less(0, self.text.argument("first"))',
    'return self.text.less(9999, self.text.argument("first"))',
    "test_codegen.py::test_a_later_block_reaches_padding",
)

_window = In("codegen/window.py", "test_plans.py")
_window.broken(
    "window-reads-before",
    "an element before the first counts",
    "        0 <= g.offset + point * g.step(dim)",
    "        -1 <= g.offset + point * g.step(dim)",
    f"{_KINDS}[depthwise]",
)
_window.broken(
    "window-writes-beyond",
    "the last vector of a row is written whole",
    "        mask = text.first_lanes(n_cols)\n",
    "        mask = None\n",
    f"{_KINDS}[depthwise]",
)
_window.broken(
    "window-row-of-taps",
    "taps read the row behind theirs",
    "+ far * task.right.step(self.far)\n                    users",
    "+ (far + 1) * task.right.step(self.far)\n                    users",
    f"{_KINDS}[depthwise]",
)
_window.broken(
    "window-other-half",
    "of two taps that are read at once the other one counts",
    "text.every_second(*halves[first], near % 2)",
    "text.every_second(*halves[first], 1 - near % 2)",
    f"{_KINDS}[depthwise-2]",
)
_window.broken(
    "window-down-is-across",
    "the output's rows are as far apart as the input's",
    "text.mul(at[0], task.out.step(self.down)), at[1]",
    "text.mul(at[0], task.right.step(self.down)), at[1]",
    f"{_KINDS}[depthwise-2]",
)

_general = In("codegen/general.py", "test_codegen.py")
_general.broken(
    "general-no-rest",
    "rows that fill no tile are left out",
    "known, around = {1, high}, self.task.size(nest.rows)",
    "known, around = {high}, self.task.size(nest.rows)",
    "::test_any_product_is_compiled",
)
_general.broken(
    "general-forgets",
    "sums of more than one factor begin anew at each point",
    "return text.fma(self._product(factors[:-1], zero), factors[-1], total)",
    "return text.fma(self._product(factors[:-1], zero), factors[-1], zero)",
    "::test_any_product_is_compiled",
)
_general.broken(
    "general-one-end",
    "a tile lies inside if it begins there",
    "for position in (first, text.add(first, reach)):",
    "for position in (first,):",
    "::test_a_window_of_the_output_guards_all_that_moves_with_it",
)
_general.broken(
    "general-always-direct",
    "sums that are walked in parts are written, not added",
    "    is_direct = is_once and task.covers_out\n",
    "    is_direct = task.covers_out\n",
    "test_exchange_code.py",
)
_general.broken(
    "general-rows-in-place",
    "all rows of a tile read the first one's elements",
    "moved = row * self._down(one) + number * text.lanes * across\n        pointer",
    "moved = number * text.lanes * across\n        pointer",
    "::test_any_product_is_compiled",
)

_writer = In("codegen/writer.py", "test_codegen.py")
_writer.broken(
    "writer-adds-nothing-known",
    "known terms are left out",
    'return self._arithmetic("+", total, known) if known else total',
    "return total",
    f"{_KINDS}[depthwise]",
)
_llvm = In("codegen/llvm_text.py", "test_codegen.py")
_llvm.broken(
    "llvm-even-lanes",
    "odd elements are read as even ones",
    "for lane in range(start, 2 * lanes, 2))",
    "for lane in range(0, 2 * lanes, 2))",
    f"{_KINDS}[depthwise-2]",
)
_llvm.broken(
    "llvm-half-is-up",
    "bf16 is rounded up from the middle",
    "self._all('i32', 32767, lanes)",
    "self._all('i32', 32768, lanes)",
    f"{_NUMPY}",
)
_llvm.broken(
    "llvm-relu-of-positive",
    "ReLU keeps what is negative",
    'else "fcmp olt"',
    'else "fcmp ogt"',
    "test_run.py::test_epilogues",
)
_llvm.broken(
    "llvm-int8-has-no-sign",
    "int8 is read as if it had no sign",
    'f"sext {source} {raw} to {kind}"',
    'f"zext {source} {raw} to {kind}"',
    f"{_NUMPY}",
)
_llvm.broken(
    "llvm-lanes-before",
    "lanes before the first element count as inside",
    'f"icmp ult <{lanes} x i64> {places}, {sizes}"',
    'f"icmp slt <{lanes} x i64> {places}, {sizes}"',
    f"{_KINDS}[padded]",
)

_c = In("codegen/c_text.py", "test_codegen.py")
_c.broken(
    "c-lanes-in-reverse",
    "a mask's lanes are written one too far",
    "{{ {element.c} x = value[lane];",
    "{{ {element.c} x = value[lane ? lane - 1 : 0];",
    _C,
)
_c.broken(
    "c-sums-begin-anew",
    "a product is not added",
    "({one} * {other} + {total})",
    "({one} * {other} + 0 * {total})",
    _C,
)
_c.broken(
    "c-even-lanes",
    "every second element is read from the first vector alone",
    "return self._mixed(one, other, range(start, 2 * self.lanes, 2))",
    "return self._mixed(one, one, range(start, 2 * self.lanes, 2))",
    "test_codegen.py::test_c_reads_elements_two_apart",
)
_c.broken(
    "c-apart-is-near",
    "elements that lie apart are read side by side",
    "at + @ * step * {element.n_bytes}",
    "at + @ * {element.n_bytes}",
    _C,
)
_c.broken(
    "c-bf16-low-half",
    "bf16 is read into the low half",
    "({value}, bits) << 16)",
    "({value}, bits) << 15)",
    "test_codegen.py::test_c_computes_bf16",
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
    "compiled-output-of-one-element",
    "elements of the output that are one are written in any order",
    "or not is_apart or not _is_nested(out):",
    "or not is_apart:",
    "::test_elements_of_an_output_that_are_one",
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
    "compiled-fork-at-once",
    "a fork does not wait for what is built",
    "        before=_BUILDING.acquire,\n        after_in_parent=_BUILDING.release,\n"
    "        after_in_child=_BUILDING.release,\n",
    "        before=lambda: None,\n",
    "::test_a_fork_waits_for_what_is_built",
)
_compiled.broken(
    "compiled-masks-ignored",
    "masked arrays are read as if they had no mask",
    " or isinstance(one, np.ma.MaskedArray):",
    ":",
    "::test_wrong_arrays",
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
    "                    first,\n",
    "                    0,\n",
    "::test_each_job_is_done_once",
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
    "described-parallel-alone",
    "one thread shares loops",
    "loops = [KernelLoop((dim,), 1, task.size(dim), threads > 1) for dim in plan.batch]\n    if",
    "loops = [KernelLoop((dim,), 1, task.size(dim), True) for dim in plan.batch]\n    if",
    "::test_loops_are_those_of_the_program",
)
_described.broken(
    "described-all-packed",
    "operands that are read in place are packed",
    'task.left.name if plan.packs_left else ""',
    "task.left.name",
    "::test_loops_are_those_of_the_program",
)
_described.broken(
    "described-no-rest",
    "the last block is no iteration",
    "yield KernelLoop(dims, block, n_whole + bool(rest), is_parallel, packs)",
    "yield KernelLoop(dims, block, max(1, n_whole), is_parallel, packs)",
    "::test_loops_are_those_of_the_program",
)
_described.broken(
    "described-unrolled-always",
    "sums are told to be unrolled by more than they are",
    "unroll = 1 if is_single else UNROLL",
    "unroll = 1 if is_single else 2 * UNROLL",
    "::test_a_tile_has_so_many_products",
)

_validated = In("validation/cpu.py", "test_validation_cpu.py")
_validated.broken(
    "cpu-error-of-estimate",
    "errors are relative to the estimate",
    'error = guess / row["measured_s"] - 1',
    'error = 1 - row["measured_s"] / guess',
    "::test_sums_of_a_file",
)
_validated.broken(
    "cpu-below-estimate",
    "what is faster than its estimate violates the bound",
    'row["measured_s"] < row["bound_s"]}',
    'row["measured_s"] < row["estimate_s"]}',
    "::test_sums_of_a_file",
)
_validated.broken(
    "cpu-first-is-last",
    "the first choice is any that was timed",
    "next(one.measured_s for one in some if one.rank == 1)",
    "next(one.measured_s for one in some[::-1])",
    "::test_the_first_choice_of_each_part_counts",
)

KERNELS_CPU = (
    *_plan.mutants,
    *_choose.mutants,
    *_engine.mutants,
    *_window.mutants,
    *_general.mutants,
    *_writer.mutants,
    *_llvm.mutants,
    *_c.mutants,
    *_compiled.mutants,
    *_threads.mutants,
    *_described.mutants,
    *_validated.mutants,
)
