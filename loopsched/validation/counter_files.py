"""Files of measured counters: reading them, whatever their form, and all their faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loopsched.base.arguments import is_count
from loopsched.base.csv_text import Sheet, Value, repeated
from loopsched.base.errors import nearest
from loopsched.validation.csv_files import Source, check, rows_read, sheet_of, shown

# What is measured, by the names of the columns.
MEASURED = ("dram_read_bytes", "dram_write_bytes", "l2_read_sectors")
TILED_GEMM = ("M", "N", "K", "tile_m", "tile_n", "tile_k", "group_m")
LAUNCH = ("registers", "block_threads", "resident_blocks")
FORMS = {"tiled_gemm": TILED_GEMM, "kernels": ("case",), "schedules": ("problem", "schedule")}


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


def read_counters(source: Source) -> tuple[CounterRow, ...]:
    """Read measured counters: a file, a shipped one by its name, or rows that are mappings.

    An InputError has all faults.

    Examples
    --------
    >>> rows = read_counters("h200_tiled_gemm")
    >>> len(rows), rows[0].form, rows[0].count("tile_m")
    (45, 'tiled_gemm', 64)
    >>> read_counters([{"problem": "gemm:m=8,n=8,k=8", "schedule": "M:8 N:8 K:8"}])[0].form
    'schedules'
    """
    return counters_in(sheet_of(source, "counters"))


def counters_in(sheet: Sheet) -> tuple[CounterRow, ...]:
    """Take the rows of a table as measured counters; errors are those of `read_counters`.

    Examples
    --------
    >>> from loopsched.base.csv_text import parsed
    >>> lines = ["problem,schedule,dram_read_bytes", "deepbench_gemm#0,M:8 N:8 K:8,512"]
    >>> counters_in(parsed(chr(10).join(lines), "my.csv"))[0].measured("dram_read_bytes")
    512.0
    >>> lines.append("gemm:m=8,n=8,k=8,M:8 N:8 K:8,512")
    >>> counters_in(parsed(chr(10).join(lines), "my.csv"))
    Traceback (most recent call last):
        ...
    loopsched.base.errors.InputError: my.csv: line 3: 5 values, but 3 columns; a value ...
    """
    if sheet.names:  # what is wrong with columns is told once, not for each row
        check(sheet.where, _form(sheet.names)[1])

    def read(place: str, values: Mapping[str, Value]) -> tuple[CounterRow, list[str]]:
        form, wrong = _form(sheet.names or list(values))
        return CounterRow(place, form, values), wrong or list(_row_faults(form, values))

    return rows_read(sheet, read)


def _form(names: Sequence[str]) -> tuple[str, list[str]]:
    """Tell what rows with such columns describe, and what is wrong with the columns."""
    faults = repeated(names)
    for form, needed in FORMS.items():
        if faults or all(name in names for name in needed):
            return form, faults
    # The form that was meant: the one of which most is there.
    meant = max(FORMS, key=lambda form: sum(name in names for name in FORMS[form]) / 8)
    missing = [name for name in FORMS[meant] if name not in names]
    if len(missing) == len(FORMS[meant]):
        forms = "; or ".join(" ".join(needed) for needed in FORMS.values())
        return meant, [f"no columns describe the launches; needed are: {forms}"]
    return meant, [f"no column '{name}'; {nearest(name, names, 'there are')}" for name in missing]


def _row_faults(form: str, values: Mapping[str, Value]) -> Iterable[str]:
    for name in FORMS[form]:
        value = values[name]
        if form == "tiled_gemm":
            if not is_count(value, most=2**31 - 1):
                yield f"{name} is {shown(value)}; a whole number from 1 to 2147483647 is needed"
        elif not isinstance(value, str):
            yield f"{name} is {shown(value)}; a text is needed"
    for name in (*MEASURED, *LAUNCH):
        value = values.get(name)
        least, most = (0, 1e18) if name in MEASURED else (1, 65536)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and least <= float(value) <= most):
            ends = "of at least 0" if name in MEASURED else f"from {least} to {most}"
            yield f"{name} is {shown(value)}; a number {ends} is needed, or nothing"
