"""Mutants of what is below all: checks, units, processes, rows."""

from __future__ import annotations

from .mutant import In

_arguments = In("base/arguments.py", "test_builders.py")
_arguments.broken(
    "arguments-truth-is-a-count",
    "True counts as the whole number 1",
    "return isinstance(value, int) and not isinstance(value, bool) and least",
    "return isinstance(value, int) and least",
    "test_arch.py::test_impossible_levels",
)
_arguments.broken(
    "kernel-given-twice",
    "the last of two settings counts",
    "        if name in found:\n            raise",
    "        if name in found and not value:\n            raise",
    "test_cli_kernel.py::test_complaints",
)
_arguments.broken(
    "kernel-empty-value",
    "a setting without a value passes",
    "if not (name and equals and value):",
    "if not (name and equals):",
    "test_cli_kernel.py::test_complaints",
)
_arguments.broken(
    "arguments-yes-is-a-word",
    "true is read as a word",
    '    if text in ("true", "false"):',
    '    if text in ("True", "False"):',
    ">>> option_value",
)
_arguments.broken(
    "arguments-long-numbers-shown",
    "a number of thousands of digits is written out",
    "and value.bit_length() > 256:",
    "and value.bit_length() < 0:",
    "::test_bad_convolution_arguments",
)
_arguments.broken(
    "arguments-limit-let-through",
    "sizes of 2**60 pass",
    "        if number >= MAX_COUNT:",
    "        if number > MAX_COUNT:",
    "::test_bad_convolution_arguments",
)
_arguments.broken(
    "arguments-only-first-fault",
    "of several faults only the first is told",
    "self.faults.append(text)",
    "self.faults[:] = self.faults[:1] or [text]",
    "::test_all_faults_at_once_and_no_consequential_ones",
)
_arguments.broken(
    "arguments-pair-swapped",
    "width and height change places",
    'return self.count(f"{name}[0]", value[0]), self.count(f"{name}[1]", value[1])',
    'return self.count(f"{name}[1]", value[1]), self.count(f"{name}[0]", value[0])',
    "::test_output_size_counts_the_windows_that_fit",
)
_arguments.broken(
    "arguments-flag-of-any-number",
    "any number passes as a truth value",
    "(isinstance(value, int) and value in (0, 1)):",
    "isinstance(value, int):",
    "::test_bad_gemm_arguments",
)
_arguments.broken(
    "arguments-default-type-wide",
    "tensors without a given size have 8 bytes an element",
    'DATA_TYPE_BYTES["fp32"])',
    'DATA_TYPE_BYTES["fp64"])',
    "::test_element_bytes_in_every_form",
)
_arguments.broken(
    "arguments-largest-element",
    "elements of more than 1,024 bytes pass",
    "if size > 1024:",
    "if size > 1 << 20:",
    "::test_bad_convolution_arguments",
)
_pool = In("base/pool.py", "test_pool.py")
_pool.broken(
    "pool-part-of-a-process",
    "1.5 jobs are taken",
    "    if not is_count(jobs):\n",
    "    if not jobs or jobs < 1:\n",
    ">>> check_jobs",
)
_pool.broken(
    "pool-as-they-come",
    "answers come in another order than the calls",
    "found = waiting[0].result()",
    "found = waiting[-1].result()",
    "test_search.py::test_jobs_change_nothing",
)
_pool.broken(
    "pool-children-orphaned",
    "processes live on when the one that started them is killed",
    "    end_with_parent()\n    with",
    "    with",
    "::test_no_process_outlives_its_parent",
)
_pool.broken(
    "pool-death-unexplained",
    "a process that dies leaves its caller without a message",
    "else DeadProcess(how)",
    "else LoopschedError(how)",
    "::test_a_process_that_dies_is_one_message",
)
_pool.broken(
    "pool-closed-starts",
    "a pool that is closed starts processes that nobody ends",
    "            if self._is_closed:",
    "            if False:",
    "::test_a_call_that_comes_late_starts_no_process_in_a_closed_pool",
)
_pool.broken(
    "pool-no-jobs",
    "no processes at all are taken",
    "    if not is_count(jobs):\n",
    "    if not is_count(jobs, 0):\n",
    "::test_jobs_are_whole_numbers_above_zero[each_in_order-0]",
)
_rows = In("base/rows.py", "test_results.py")
_rows.broken(
    "rows-infinite-as-text",
    "what is not finite is written as a word that is no JSON",
    "return json.dumps(_finite(value), allow_nan=False",
    "return json.dumps(value, allow_nan=True",
    "::test_json_is_one_list_and_infinite_is_null",
)
_rows.broken(
    "rows-nested-in-csv",
    "nested values get a column",
    "if not isinstance(value, list | dict)",
    "if not isinstance(value, list)",
    "::test_csv_quotes_and_leaves_nested_values_out",
)
_rows.broken(
    "rows-head-on-every-line",
    "each row of CSV has a head",
    "        if not self._n_rows:\n            writer.writeheader()",
    "        if self._n_rows >= 0:\n            writer.writeheader()",
    "::test_csv_quotes_and_leaves_nested_values_out",
)
_rows.broken(
    "rows-line-of-the-list",
    "a fault in a line is told at its line within the row",
    'where = line + getattr(error, "lineno", 1) - 1',
    'where = getattr(error, "lineno", 1)',
    "::test_a_broken_file_is_one_message",
)
_rows.broken(
    "rows-numbers-from-zero",
    "lines are counted from 0",
    "for number, line in enumerate(text.splitlines(), 1):",
    "for number, line in enumerate(text.splitlines(), 0):",
    "::test_a_broken_file_is_one_message",
)
_rows.broken(
    "rows-any-value-is-a-row",
    "a row that is no object passes",
    "        if not isinstance(row, dict):",
    "        if row is None:",
    "::test_a_broken_file_is_one_message",
)
_units = In("base/units.py", "test_units.py")
_units.broken(
    "units-binary-is-decimal",
    "a kibibyte counts 1,000 bytes",
    '"Ki": 2**10',
    '"Ki": 10**3',
    "::test_bytes",
)
_units.broken(
    "units-exponent-unbounded",
    "an exponent of any length is multiplied out",
    "abs(int(exponent[1])) > _LARGEST_EXPONENT",
    "abs(int(exponent[1])) > 10**9",
    "::test_refusals_of_bytes",
)
_units.broken(
    "units-zero-allowed",
    "a quantity of zero passes",
    "    if value <= 0:\n        raise",
    "    if value < 0:\n        raise",
    "::test_refusals_of_bytes",
)
_units.broken(
    "units-part-of-a-byte",
    "a part of a byte is cut off instead of refused",
    "if value.denominator != 1:",
    "if value.denominator < 1:",
    "::test_refusals_of_bytes",
)
_units.broken(
    "units-capacity-rounds",
    "a capacity is written ten times too large",
    'return f"{_trim(thousandths / 1000)} {prefix}B"',
    'return f"{_trim(thousandths / 100)} {prefix}B"',
    "::test_capacity_text_means_the_same_bytes",
)
_units.broken(
    "units-prefix-before-rounding",
    "a number that rounds up to the next prefix keeps its own",
    "    power = 3 * math.floor(math.log10(abs(rounded)) / 3)",
    "    power = 3 * math.floor(math.log10(abs(value)) / 3)",
    "test_render.py::test_scaled",
)
_units.broken(
    "units-advice-on-kb-lost",
    "KB is called unknown, not ambiguous",
    "    if unit in _ADVICE:",
    "    if unit in _UNITS:",
    "::test_refusals_of_bytes",
)

_errors = In("base/errors.py", "test_errors.py")
_errors.broken(
    "errors-faults-in-one",
    "several faults of a file are kept as one",
    "tuple(problems) or (message,)",
    "(message,)",
    "::test_several_faults_are_one_error_with_a_line_each",
)
_errors.broken(
    "errors-one-fault-passes",
    "a file with one fault is taken",
    "        if found:\n            raise",
    "        if len(found) > 1:\n            raise",
    "::test_any_fault_is_refused",
)
_errors.broken(
    "errors-inner-kind-rises",
    "what is wrong in a file is raised as an error of another kind of file",
    "raise cls.joined(where, error.problems) from None",
    "raise error.joined(where, error.problems) from None",
    "::test_a_fault_is_one_of_the_file_that_it_is_found_in",
)
_errors.broken(
    "errors-first-of-several",
    "of several faults of a part the first is told",
    'f"{where}{fault}" for fault in error.problems]',
    'f"{where}{fault}" for fault in error.problems[:1]]',
    "::test_faults_of_a_part_are_all_told",
)
_errors.broken(
    "errors-empty-is-input",
    "a space with nothing left is bad input",
    "class EmptySpaceError(LoopschedError):",
    "class EmptySpaceError(InputError):",
    "::test_an_empty_space_is_not_bad_input",
)
_errors.broken(
    "errors-shortest-is-meant",
    "of the names in a word the shortest is meant",
    "if len(name) > 2 and name in word), key=len)[-1:]",
    "if len(name) > 2 and name in word), key=len)[:1]",
    "::test_nearest_names_the_meant_word",
)

BASE = (
    *_arguments.mutants,
    *_pool.mutants,
    *_rows.mutants,
    *_units.mutants,
    *_errors.mutants,
)
