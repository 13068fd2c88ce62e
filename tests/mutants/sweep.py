"""Mutants of sweeps: ranges, places of results, torn shards, locks, totals, retries."""

from __future__ import annotations

from .mutant import In

_vary = In("sweeps/vary.py", "test_sweep.py::test_values_ranges_and_factors")
_vary.broken(
    "range-scales-swapped",
    "a range in logarithms has equal steps",
    'if scale == "log" else',
    'if scale != "log" else',
)

_plan = In("sweeps/plan.py", "test_sweep.py")
_plan.broken(
    "cell-of-another-task",
    "rows stand under the wrong machine",
    'arch["machine"] * n_problems + layer["at"]',
    'layer["at"] * n_problems + arch["machine"]',
    "test_sweep.py::test_rows_are_what_searches_of_the_changed_machines_find",
)
_plan.broken(
    "changed-machine-accepted",
    "a folder goes on with a machine of the same name that is another",
    "        elif before[name] != after[name]:\n",
    "        elif False:\n",
    "test_sweep_folder.py::test_a_machine_that_changed_under_its_name_is_refused",
)

_folder = In("sweeps/folder.py", "test_sweep_folder.py")
_folder.broken(
    "check-sum-ignored",
    "a line with a changed byte counts",
    "if found and found[2] == _check(found[1], found[3]):",
    "if found:",
    "test_sweep_folder.py::test_a_changed_byte_is_found",
)
_folder.broken(
    "lock-shared",
    "two processes may work on one folder",
    "fcntl.LOCK_EX | fcntl.LOCK_NB",
    "fcntl.LOCK_SH | fcntl.LOCK_NB",
    "test_sweep_folder.py::test_two_processes_on_one_folder_are_refused",
)

_batches = In("sweeps/batches.py", "test_sweep.py")
_batches.broken(
    "innocent-blamed",
    "a batch that dies counts as an attempt of each of its searches",
    "kept = attempt if len(batch.tasks) == 1 else 0",
    "kept = attempt",
    "test_sweep.py::test_a_lost_batch_comes_back_one_by_one_and_not_for_ever",
)

_summary = In("sweeps/summary.py", "test_sweep.py")
_summary.broken(
    "count-forgotten",
    "a layer that occurs several times counts once",
    'self.times.append(count * row["time_s"])',
    'self.times.append(row["time_s"])',
    "test_sweep.py::test_totals_count_layers_and_leave_out_the_second_best",
)
_summary.broken(
    "front-of-one-number",
    "a machine leaves the front if another is better in anything",
    "(rivals <= point).all(axis=1)",
    "(rivals <= point).any(axis=1)",
    "test_sweep.py::test_the_front_leaves_out_what_costs_more_and_gives_no_more",
)
_summary.broken(
    "parts-have-a-place",
    "a machine with one of its layers is the best",
    " or self.n_layers < self.n_wanted:",
    ":",
    "test_sweep.py::test_a_machine_with_layers_to_do_has_no_place",
)

SWEEP = (
    *_vary.mutants,
    *_plan.mutants,
    *_folder.mutants,
    *_batches.mutants,
    *_summary.mutants,
)
