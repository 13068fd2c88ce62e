"""Files of measured counters: reading them, whatever their form, and all their faults."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loopsched.base.arguments import is_count
from loopsched.base.errors import InputError, nearest
from loopsched.base.resources import resource_names
from loopsched.validation.csv_files import (
    Value,
    check,
    read_csv,
    repeated,
    sheet_of,
    shown,
    value_of,
)

# What is measured, by the names of the columns.
MEASURED = ("dram_read_bytes", "dram_write_bytes", "l2_read_sectors")
TILED_GEMM = ("M", "N", "K", "tile_m", "tile_n", "tile_k", "group_m")
LAUNCH = ("registers", "block_threads", "resident_blocks")
FORMS = {
    "tiled_gemm": TILED_GEMM,
    "kernels": ("case",),
    "schedules": ("problem", "schedule"),
}


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One launch: what the file says of it.

    Parameters
    ----------
    place : str
        Where it stands, for messages.
    form : str
        A key of `FORMS`.
    values : mapping of str to str, int, float or None
        The file's columns, in its order; None: nothing is known.
    """

    place: str
    form: str
    values: Mapping[str, Value]

    def count(self, name: str) -> int:
        """Read a column that is known to hold a count."""
        value = self.values[name]
        return int(value) if isinstance(value, int | float) else 0

    def measured(self, name: str) -> float | None:
        """Read a measured value; None where there is none."""
        value = self.values.get(name)
        return float(value) if isinstance(value, int | float) else None


def shipped_counters() -> tuple[str, ...]:
    """List the files of measured counters that come with loopsched.

    Examples
    --------
    >>> "h200_tiled_gemm" in shipped_counters()
    True
    """
    return resource_names("counters", ".csv")


def read_counters(file: str | os.PathLike[str]) -> tuple[CounterRow, ...]:
    """Read measured counters from a file, or from a shipped one by its name.

    Raises
    ------
    InputError
        With all faults of the file.

    Examples
    --------
    >>> rows = read_counters("h200_tiled_gemm")
    >>> len(rows), rows[0].form, rows[0].count("tile_m")
    (45, 'tiled_gemm', 64)
    """
    return parse_counters(read_csv(file, "counters"), os.fspath(file))


def parse_counters(text: str, where: str = "counters") -> tuple[CounterRow, ...]:
    """Read measured counters from CSV text.

    Parameters
    ----------
    text : str
        A line of column names, then a line a launch.
    where : str
        For messages.

    Raises
    ------
    InputError
        With all faults of the text.

    Examples
    --------
    >>> lines = ["problem,schedule,dram_read_bytes", "deepbench_gemm#0,M:8 N:8 K:8,512"]
    >>> parse_counters(chr(10).join(lines))[0].measured("dram_read_bytes")
    512.0
    >>> parse_counters(chr(10).join([*lines, "gemm:m=8,n=8,k=8,M:8 N:8 K:8,512"]), "my.csv")
    Traceback (most recent call last):
        ...
    loopsched.base.errors.InputError: my.csv: line 3: 5 values, but 3 columns; a value ...
    """
    sheet = sheet_of(text, where)
    form = _form(list(sheet.names), where)
    faults: list[str] = []
    rows = []
    for place, values in sheet.rows:
        found = [values] if isinstance(values, str) else list(_row_faults(form, values))
        faults += [f"{place}: {fault}" for fault in found]
        if not found and not isinstance(values, str):
            rows.append(CounterRow(place, form, values))
    check(where, faults)
    return tuple(rows)


def rows_of(rows: Iterable[Mapping[str, Value]], where: str = "rows") -> tuple[CounterRow, ...]:
    """Take rows that are mappings, by the same rules as a file's.

    Examples
    --------
    >>> row = {"problem": "gemm:m=8,n=8,k=8", "schedule": "M:8 N:8 K:8"}
    >>> rows_of([row])[0].form
    'schedules'
    """
    found, faults = [], []
    for number, row in enumerate(rows):
        try:
            form = _form(list(row), where)
        except InputError as error:
            faults.append(f"row {number}: {str(error).removeprefix(f'{where}: ')}")
            continue
        values = {
            name: value_of(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        wrong = list(_row_faults(form, values))
        faults += [f"row {number}: {fault}" for fault in wrong]
        if not wrong:
            found.append(CounterRow(f"row {number}", form, values))
    check(where, faults)
    return tuple(found)


def _form(names: Sequence[str], where: str) -> str:
    twice = repeated(names)
    if twice:
        raise InputError.joined(where, twice)
    for form, needed in FORMS.items():
        if all(name in names for name in needed):
            return form
    # The form that was meant: the one of which most is there.
    meant = max(FORMS, key=lambda form: sum(name in names for name in FORMS[form]) / 8)
    missing = [name for name in FORMS[meant] if name not in names]
    if len(missing) == len(FORMS[meant]):
        forms = "; or ".join(" ".join(needed) for needed in FORMS.values())
        raise InputError(f"{where}: columns say of no launch what it was; needed are: {forms}")
    raise InputError.joined(
        where, [f"no column '{name}'; {nearest(name, names, 'there are')}" for name in missing]
    )


def _row_faults(form: str, values: Mapping[str, Value]) -> Iterable[str]:
    for name in FORMS[form]:
        value = values[name]
        if form == "tiled_gemm":
            if not is_count(value, most=2**31 - 1):
                yield f"{name} is {shown(value)}; a whole number from 1 to 2147483647 is needed"
        elif not isinstance(value, str):
            yield f"{name} is {shown(value)}; a text is needed"
    for name in MEASURED:
        value = values.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= float(value) < 1e18):
            yield f"{name} is {shown(value)}; a number of at least 0 is needed, or nothing"
    for name in LAUNCH:
        value = values.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 1 <= float(value) <= 65536):
            yield f"{name} is {shown(value)}; a number from 1 to 65536 is needed, or nothing"
