"""More mutants of measurements: CSV files, and what is predicted of them."""

from __future__ import annotations

from .mutant import In

_csv = In("validation/csv_files.py", "test_validation.py")
_text = In("base/csv_text.py", "test_validation.py")
_text.broken(
    "csv-count-is-a-fraction",
    "224.0 is read as no whole number",
    '_COUNT = re.compile(r"[+]?([0-9]{1,15})(\\.0*)?")',
    '_COUNT = re.compile(r"[+]?([0-9]{1,15})")',
    ">>> value_of",
)
_text.broken(
    "csv-na-is-a-text",
    "a value that is not available is read as a text",
    '_NOTHING = ("", "-", "na", "n/a", "nan",',
    '_NOTHING = ("", "-", "na", "nan",',
    ">>> value_of",
)
_csv.broken(
    "csv-rows-from-one",
    "the first row that is given is called row 1",
    "for at, row in enumerate(rows)))",
    "for at, row in enumerate(rows, 1)))",
    ">>> sheet_of",
)
_text.broken(
    "csv-lines-from-zero",
    "a message names the line before the wrong one",
    "(reader.line_num, line)",
    "(reader.line_num - 1, line)",
    ">>> parsed",
)
_csv.broken(
    "csv-faults-uncut",
    "a file with thousands of faults is answered with as many lines",
    "    if len(faults) > MOST_FAULTS:\n",
    "    if len(faults) > 10**6:\n",
    "::test_long_lists_of_faults_are_cut",
)
_text.broken(
    "csv-names-alone",
    "a file of column names alone is taken",
    '    if not rows:\n        raise InputError(f"{where}: no rows',
    '    if rows is None:\n        raise InputError(f"{where}: no rows',
    "test_validation_times.py::test_bad_files",
)

VALIDATION_REST = (*_csv.mutants, *_text.mutants)
