"""More mutants of sweeps: values, plans, run folders, sums."""

from __future__ import annotations

from .mutant import In

_vary = In("sweeps/vary.py", "test_sweep.py")
_vary.broken(
    "vary-units-in-parts",
    "a range of whole numbers has fractions",
    "yield max(1, round(value)) if is_whole else float",
    "yield max(1, value) if is_whole else float",
    "::test_a_range_of_whole_numbers_is_whole_and_names_no_machine_twice",
)
_vary.broken(
    "vary-zip-of-unequal",
    "lists of different lengths are paired",
    "        if len(set(lengths)) > 1 and not check.faults:\n",
    "        if not lengths and not check.faults:\n",
    "::test_one_fault",
    "::test_zip_pairs_values",
)
_vary.broken(
    "vary-range-without-end",
    "a range stops before its last value",
    "share = step / (steps - 1)",
    "share = step / steps",
    "::test_values_ranges_and_factors",
)
_vary.broken(
    "vary-factor-beyond",
    "any factor is taken",
    "    if number is None or not LEAST_FACTOR <= number <= MOST_FACTOR:\n",
    "    if number is None or number <= 0:\n",
    "::test_one_fault",
    "::test_all_faults_of_a_file_at_once",
)

_plan = In("sweeps/plan.py", "test_sweep.py", "test_sweep_folder.py")
_plan.broken(
    "plan-names-are-problems",
    "problems that differ in their name are searched twice",
    "problems.setdefault(problem.renamed(PROBLEM), len(problems))",
    "problems.setdefault(problem, len(problems))",
    "test_sweep.py::test_equal_work_is_done_once_and_told_everywhere",
)
_plan.broken(
    "plan-version-untold",
    "a folder of another version is taken",
    '_SAME = ("format", "version", "spec",',
    '_SAME = ("format", "spec",',
    "test_sweep_folder.py::test_another_version_is_refused",
)
_plan.broken(
    "plan-all-differences",
    "of hundreds of machines that differ all are told",
    "    if len(found) > _MOST_TOLD:\n",
    "    if len(found) > 10**6:\n",
    "test_sweep_folder.py::test_what_is_another_is_told_and_no_more",
)

_folder = In("sweeps/folder.py", "test_sweep_folder.py")
_folder.broken(
    "folder-strange-files",
    "a folder with something else in it is taken",
    "            if strange:\n",
    "            if not strange and len(strange):\n",
    "::test_a_folder_with_something_else_is_refused",
)
_folder.broken(
    "folder-of-two",
    "two processes may work on a folder, after one another in every line",
    "fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "fcntl.LOCK_SH | fcntl.LOCK_NB)",
    "::test_two_processes_on_one_folder_are_refused",
)
_folder.broken(
    "folder-lost-manifest",
    "answers whose manifest is lost are taken for this sweep's",
    "return not any(one.stat().st_size for one in path.iterdir())",
    "return True",
    "::test_shards_without_their_manifest_are_not_another_sweeps",
)

_summary = In("sweeps/summary.py", "test_sweep.py")
_summary.broken(
    "summary-second-best-added",
    "all alternatives of a layer are added up",
    '        if row["rank"] is not None and row["rank"] > 1:\n',
    '        if row["rank"] is not None and row["rank"] > 9:\n',
    "::test_totals_count_layers_and_leave_out_the_second_best",
)
_summary.broken(
    "summary-parts-placed",
    "a machine that has not all layers yet has a place",
    "        if self.n_failed or self.n_layers < self.n_wanted:\n",
    "        if self.n_failed:\n",
    "::test_a_machine_with_layers_to_do_has_no_place",
)
_summary.broken(
    "summary-product-of-sums",
    "the energy-delay product is counted once for a layer that occurs often",
    'self.products.append(count * row["energy_pj"] * row["time_s"])',
    'self.products.append(row["energy_pj"] * row["time_s"])',
    "::test_energy_delay_products_are_summed_with_counts",
)

SWEEPS_REST = tuple(mutant for file in (_vary, _plan, _folder, _summary) for mutant in file.mutants)
