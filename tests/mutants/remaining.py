"""Mutants of modules that had few: compiled kernels, workloads, loops, proofs, the page."""

from __future__ import annotations

from .mutant import In

_kernel = In("base/kernel.py", "test_jit.py")
_AGAIN = "::test_a_kernel_is_compiled_again_when_one_that_it_calls_changes"
_kernel.broken(
    "jit-callees-unseen",
    "a kernel that calls a changed one is taken from disk",
    "called = [x.py_func for x in known if isinstance(x, Step)]",
    "called = []",
    _AGAIN,
)
_kernel.broken(
    "jit-array-layout-trusted",
    "arrays are handed over as always, whatever this numba does",
    "if not is_same or models.default_manager[types.int64[::1]]._fields != _MEMBERS:",
    "if not is_same:",
    "::test_a_numba_that_hands_arrays_over_otherwise_runs_them_itself",
)
_kernel.broken(
    "jit-full-disk-ends-it",
    "a full disk ends what would run without it",
    "        except OSError as error:\n            _say",
    "        except FileNotFoundError as error:\n            _say",
    "::test_a_full_disk_keeps_no_kernel",
)
_kernel.broken(
    "jit-disk-unseen",
    "a kernel on disk counts as not compiled",
    "return self.is_loaded() or not self._shelf.is_empty()",
    "return self.is_loaded()",
    _AGAIN,
)
_kernel.broken(
    "jit-never-kept",
    "kernels are compiled in every process",
    "kept = None if self._plain else self._shelf.read(kinds)",
    "kept = None",
    "::test_a_kept_kernel_needs_no_numba",
)
_kernel.broken(
    "jit-parts-stay-behind",
    "what others compile of a kernel's parts does not have what these call",
    'self._shared_module = self._whole("linkonce_odr")',
    "self._shared_module = self._final_module",
    "::test_parts_become_one_kernel_beside_what_numba_compiles",
)
_kernel.broken(
    "jit-runtime-linked-first",
    "what numba compiled before is asked for what is called so far, and no more",
    "                    others[one] = None\n",
    "                    if one not in seen:\n                        seen.add(one)\n"
    "                        whole.link_in(one._get_module_for_linking(), preserve=True)\n",
    "::test_parts_become_one_kernel_after_what_numba_compiled",
)
_code = In("base/machine_code.py", "test_jit.py")
_code.broken(
    "jit-interrupt-lost",
    "an interrupt while LLVM calls back is forgotten",
    "if late and callable(now):",
    "if not late and callable(now):",
    "::test_an_interrupt_while_llvm_calls_back_is_not_lost",
)
_code.broken(
    "jit-interrupt-handler-put-back",
    "who answers interrupts since one came is forgotten",
    "if signal.getsignal(signal.SIGINT) is answer:",
    "if callable(before):",
    "::test_interrupts_are_answered_once_by_who_answers_them_then",
)
_code.broken(
    "code-sums-unread",
    "machine code that is cut short is loaded",
    'if total == b"%08x" % crc32(rest):',
    "if total:",
    "::test_a_broken_kernel_is_compiled_again",
)
_code.broken(
    "code-digest-unnamed",
    "code of a changed function is taken for that of the new one",
    'self._own = f"{self._all}.{digest:08x}"',
    'self._own = f"{self._all}.0"',
    _AGAIN,
)
_code.broken(
    "code-runtime-alone",
    "numba itself is not asked for what code needs",
    "for add in (_add_runtime, _add_numba):",
    "for add in (_add_runtime,):",
    "::test_either_way_to_load_a_kernel_suffices",
)
_code.broken(
    "code-old-is-there",
    "code of the function as it was counts as kept",
    'folder.glob(f"{self._own}.*.code")',
    'folder.glob(f"{self._all}.*.code")',
    _AGAIN,
)
_code.broken(
    "code-old-stays",
    "code of the function as it was is never removed",
    "if not old.name.startswith(self._own):",
    "if old.name == self._own:",
    _AGAIN,
)
_workload = In("problems/workload.py", "test_workload.py")
_workload.broken(
    "workload-numbers-from-one",
    "the second layer of a shape is number 1",
    "times.get(default, 1) + 1",
    "times.get(default, 0) + 1",
    ">>> parse_workload",
)
_workload.broken(
    "workload-counts-once",
    "a layer counts once, however often it occurs",
    "sum(n * one.macs for n, one in",
    "sum(one.macs for n, one in",
    ">>> Workload",
)
_workload.broken(
    "workload-file-beats-layer",
    "the file's element size holds where a layer has its own",
    'arguments.setdefault("element_bytes", element_bytes)',
    'arguments["element_bytes"] = element_bytes',
    "::test_element_bytes_of_the_file_holds_where_a_layer_is_silent",
)
_workload.broken(
    "workload-file-wins",
    "a file wins over a shipped workload of its name",
    "isinstance(name_or_path, str) and name_or_path in workload_names():",
    "not Path(name_or_path).exists() and name_or_path in workload_names():",
    "::test_a_shipped_name_wins_over_a_file",
)
_workload.broken(
    "workload-last-faults",
    "of too many faults, the first are left out",
    "check.faults[_MAX_FAULTS:] = ",
    "check.faults[:_MAX_FAULTS] = ",
    "::test_thousands_of_faults_are_cut_short",
)
_workload.broken(
    "workload-alias-again",
    "a field may be given by two names",
    "elif field.name in found:",
    "elif key in found:",
    "::test_bad_layers",
)
_loops = In("nests/loops_text.py", "test_notation.py")
_loops.broken(
    "loops-offsets-added",
    "an index to the left of its window is written to the right",
    "{'-' if axis.offset < 0 else '+'}",
    "{'+'}",
    ">>> index_text",
)
_loops.broken(
    "loops-begin-at-zero",
    "loops that begin at 0 say so",
    'return end if span.start == "0" else',
    "return",
    ">>> render_loops",
)
_loops.broken(
    "loops-one-name",
    "loops of one dimension share a variable",
    'names.append(_free(f"{base[loop.dim]}{depth}", taken) if depth else base[loop.dim])',
    "names.append(base[loop.dim])",
    ">>> render_loops",
)
_loops.broken(
    "loops-edge-crossed",
    "a tile that does not divide the one around it goes beyond its edge",
    "        if around % inner:\n",
    "        if not around % inner:\n",
    ">>> loop_spans",
)
_loops.broken(
    "loops-passing-held",
    "what a level lets pass is said to be held there",
    '"lets pass" if place.position == PASSES else "holds"',
    '"holds"',
    "test_may_hold.py",
)
_loops.broken(
    "loops-notes-over-the-edge",
    "notes are set beside loops that leave no room for them",
    "is_beside = room >= min(longest, _LEAST_NOTE)",
    "is_beside = room > 0",
    "test_notation.py",
)
_readers = In("verify/readers.py", "test_verify.py")
_readers.broken(
    "readers-no-exact-fit",
    "what fills a level exactly does not fit",
    "if name not in self.own) <= self.shared",
    "if name not in self.own) < self.shared",
    "::test_where_logs_are_known_to_close_they_close",
    "::test_proofs_close",
    "::test_the_value_is_that_of_evaluate_or_above",
)
_readers.broken(
    "readers-wider-rate",
    "elements are multiplied at the rate of wider ones",
    "if size >= width for n in",
    "if size > width for n in",
    "::test_the_checker_multiplies_at_the_rate_of_evaluate",
)
_readers.broken(
    "readers-space-ignored",
    "a proof may name a schedule outside the space that it speaks of",
    "if loop.unit and loop.dim not in spatial.get(loop.unit, ()):",
    "if loop.unit and loop.dim in ():",
    "::test_what_is_wrong_is_said",
)
_readers.broken(
    "readers-own-shared",
    "units that share a level are taken to own it",
    "{unit for unit, count in arch.spatial_units if count <= most}",
    "{unit for unit, count in arch.spatial_units if most}",
    "::test_a_level_is_owned_by_the_units_that_have_one_each_or_hold_it",
)
_readers.broken(
    "readers-any-format",
    "a proof of another format is read",
    ' or data["format"] != FORMAT:',
    ":",
    "::test_what_is_wrong_is_said",
    "::test_what_is_no_proof_is_refused",
)
_cli_sweep = In("cli/sweep.py", "test_sweep_folder.py")
_cli_sweep.broken(
    "sweep-cli-jobs-in-the-manifest",
    "how many processes worked is kept as if results depended on it",
    '("--jobs", "-j", "--scheduler", "--results", "--format")',
    '("--scheduler", "--format")',
    "::test_the_command_keeps_what_makes_rows_and_not_how_many_processes",
)
_cli_sweep.broken(
    "sweep-cli-suffix-stays",
    "the run folder is named after the whole file",
    '    return Path(f"{stem}.sweep")',
    '    return Path(f"{name}.sweep")',
    "::test_the_command_prints_totals_and_how_far_it_is",
)
_cli_sweep.broken(
    "sweep-cli-interrupt-unsaid",
    "an interruption does not say how far it is",
    '        click.echo(f"{shown.text}; the same command resumes", err=True)\n',
    "",
    "::test_an_interrupted_command_keeps_what_is_done",
)
_cli_sweep.broken(
    "sweep-cli-log-always",
    "a file gets a line for every search",
    "time.monotonic() - self._logged >= _LOG_S:",
    "time.monotonic() - self._logged >= 0:",
    "::test_progress_is_told_now_and_then_where_nobody_looks",
)
_cli_sweep.broken(
    "sweep-cli-parts-placed",
    "failures pass for layers that are to be done",
    '(row["failed"], " fail") if row["failed"] else (row["missing"], " to do")',
    '(row["missing"], " to do")',
    "::test_the_command_tells_why_layers_fail",
)
_cli_sweep.broken(
    "sweep-cli-crew-and-jobs",
    "processes of this computer and a cluster may be asked for at once",
    "if scheduler is not None and jobs > 1:",
    "if scheduler is None and jobs > 99:",
    "::test_wrong_commands",
)
_run = In("sweeps/run.py", "test_sweep.py")
_run.broken(
    "sweep-done-without-results",
    "a run whose results are not written is complete",
    "return self.n_done == self.n_tasks and bool(self.results)",
    "return self.n_done == self.n_tasks or bool(self.results)",
    "test_sweep_folder.py::test_a_killed_command_tells_how_far_it_is_and_gives_no_place_to_parts",
    "test_sweep_folder.py::test_results_that_were_not_written_are_not_complete",
)
_run.broken(
    "sweep-failures-untold",
    "searches that failed are not told",
    "failures += [answer for answer in answers if answer.failure]",
    "failures += []",
    "::test_a_search_that_fails_by_a_bug_of_ours_is_told_and_the_others_kept",
)
_run.broken(
    "sweep-results-unwritten",
    "a sweep ends without a file of results",
    "        if not path.exists():\n",
    "        if path.exists():\n",
    "test_sweep_folder.py::test_the_command_prints_totals_and_how_far_it_is",
)
_run.broken(
    "sweep-progress-late",
    "how much is done already is not told at the beginning",
    "    if progress is not None:\n        progress(len(run.shards), plan.n_tasks)\n    if len",
    "    if len",
    "test_sweep_folder.py::test_progress_begins_with_what_is_done",
)
_cluster = In("sweeps/cluster.py", "test_sweep_cluster.py")
_cluster.broken(
    "cluster-one-thread-each",
    "a worker counts once, however many threads it has",
    "return max(1, sum(threads.values()))",
    "return max(1, len(threads))",
    "::test_workers_are_counted_by_their_threads",
)
_cluster.broken(
    "cluster-scheduler-unchecked",
    "a scheduler with another loopsched passes on what it cannot read",
    "    SweepError.refuse(f\"scheduler '{address}'\", faults)\n",
    "",
    "::test_workers_that_would_compute_something_else_are_refused",
)
_cluster.broken(
    "cluster-late-workers-trusted",
    "workers that come late are not looked at",
    "if new := workers.keys() - self._known:",
    "if new := set() & self._known:",
    "::test_a_worker_that_comes_and_lacks_the_library_ends_the_sweep",
)
_cluster.broken(
    "cluster-ahead-of-nobody",
    "one batch at a time is given to each thread",
    "_AHEAD = 3\n",
    "_AHEAD = 1\n",
    "::test_a_cluster_without_workers_is_given_up",
)
_cluster.broken(
    "cluster-dead-worker-is-fault",
    "what a dead worker had is told as an error of the library",
    'f"its worker died, {error.last_worker.address}"',
    "_line(error)",
    "::test_a_batch_that_kills_workers_is_taken_apart_and_then_told",
)
_MODEL = "test_page_model.py"
_footprint = In("show/page/model/footprint.js", _MODEL)
_footprint.broken(
    "page-clip-beyond",
    "one position beyond the tensor is touched",
    "Math.min(Math.max(size - first, 0), reached.span)",
    "Math.min(Math.max(size - first + 1, 0), reached.span)",
)
_footprint.broken(
    "page-reach-without-stride",
    "steps of a strided dimension are taken as steps of one",
    "const shift = factor * step;",
    "const shift = step;",
)
_footprint.broken(
    "page-pieces-whole",
    "the last piece is as long as the others",
    "Math.min(extent, start + length - begin)",
    "extent",
)
_footprint.broken(
    "page-pieces-counted-once",
    "whole pieces inside several tiles are counted in one",
    "(cut.get(extent) || 0) + many * full",
    "(cut.get(extent) || 0) + full",
)
_footprint.broken(
    "page-halo-in-place",
    "the piece before is taken to begin where this one does",
    "!earlier.marks[x + shift]",
    "!earlier.marks[x]",
)
_machine = In("show/page/model/machine.js", _MODEL)
_machine.broken(
    "page-effective-ignored",
    "all of a cache is of use, whatever its file says",
    "given(level.effective_capacity_bytes) === null\n        ? level.capacity_bytes",
    "level.capacity_bytes !== null\n        ? level.capacity_bytes",
)
_machine.broken(
    "page-first-is-weight",
    "the first operand counts as a weight",
    "read.slice(1).includes(tensor.name)",
    "read.includes(tensor.name)",
)
_machine.broken(
    "page-own-shared",
    "units that are as many as a level's instances share it",
    "arch.units.filter(([, n]) => n <= level.instances)",
    "arch.units.filter(([, n]) => n < level.instances)",
)
_machine.broken(
    "page-wider-rate",
    "elements are multiplied at the rate of wider ones",
    "if (size < width) continue;",
    "if (size <= width) continue;",
)
_machine.broken(
    "page-units-not-nested",
    "units inside others are counted all in all",
    "found.set(unit, quotient(n, around));",
    "found.set(unit, n);",
)
_score = In("show/page/model/score.js", _MODEL)
_score.broken(
    "page-lanes-at-full-rate",
    "each lane computes at the rate of its unit",
    "const pace = hasLanes ? rate / lanes : rate;",
    "const pace = rate;",
)
_score.broken(
    "page-bound-at-sustained-clock",
    "the bound of arithmetic takes the sustained clock",
    "Number(steps.least) / (pace * arch.maxClock)",
    "Number(steps.least) / (pace * arch.clock)",
)
_score.broken(
    "page-bound-by-inner",
    "the level inside a slow boundary is named, not the one outside",
    "[slowest, boundBy] = [one, arch.levels[i].name]",
    "[slowest, boundBy] = [one, arch.caches[i].name]",
)
_score.broken(
    "page-writes-through-once",
    "a level that writes through writes as seldom as one that writes back",
    "writesThrough ? inner.promised[number].writes : writes",
    "writes",
)
_score.broken(
    "page-energy-one-side",
    "a boundary takes the energy of its inner side",
    "((arch.levels[i].energy || 0) + (level.energy || 0))",
    "(level.energy || 0)",
)

REMAINING = (
    *_kernel.mutants,
    *_code.mutants,
    *_workload.mutants,
    *_loops.mutants,
    *_readers.mutants,
    *_cli_sweep.mutants,
    *_run.mutants,
    *_cluster.mutants,
    *_footprint.mutants,
    *_machine.mutants,
    *_score.mutants,
)
