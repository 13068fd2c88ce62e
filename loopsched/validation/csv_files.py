"""CSV files of measurements: found by path or shipped name, cut into rows, cells read."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopsched.base.errors import InputError
from loopsched.base.files import read_text
from loopsched.base.resources import resource_dir, resource_names

Value = str | int | float | None
Source = str | os.PathLike[str] | Iterable[Mapping[str, Value]]

MOST_FAULTS = 50
_COUNT = re.compile(r"[+]?([0-9]{1,15})(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NOTHING = ("", "-", "na", "n/a", "nan", "none", "null")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of measurements.

    Parameters
    ----------
    where : str
        For messages: the file.
    names : tuple of str
        Of the columns of a file, in order; empty: each row has its own.
    rows : tuple of (str, mapping or str)
        Place, for messages, and values by column name; or what is wrong with
        the line.
    """

    where: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, dict[str, Value] | str], ...]


def sheet_of(source: Source, *kinds: str) -> Sheet:
    """Read a CSV file, a shipped one of some kinds by its name, or rows that are mappings.

    Raises
    ------
    InputError
        If a file cannot be read, or is not CSV.

    Examples
    --------
    >>> sheet_of("h200_kernels", "counters").names[0], sheet_of([{"a": "1.50"}]).rows
    ('case', (('row 0', {'a': 1.5}),))
    """
    if not isinstance(source, str | os.PathLike):
        rows = [
            {name: value_of(one) if isinstance(one, str) else one for name, one in row.items()}
            for row in source
        ]
        return Sheet("rows", (), tuple((f"row {at}", row) for at, row in enumerate(rows)))
    name = os.fspath(source)
    path = Path(name)
    shipped = {one: kind for kind in kinds for one in resource_names(kind, ".csv")}
    if name in shipped and not path.exists():
        path = resource_dir(shipped[name]) / f"{name}.csv"
    hint = f"; shipped are: {' '.join(shipped)}"
    return parsed(read_text(path, "a CSV file", where=name, hint=lambda: hint), name)


def parsed(text: str, where: str) -> Sheet:
    """Cut CSV text into rows: a line of column names, then a line each.

    Raises
    ------
    InputError
        If there is nothing in it, or it is not CSV.

    Examples
    --------
    >>> found = parsed("a,b" + chr(10) + "1,x" + chr(10) + "2", "mine.csv")
    >>> found.rows[0], found.rows[1][1].partition(";")[0]
    (('line 2', {'a': 1, 'b': 'x'}), '1 values, but 2 columns')
    """
    if not text.strip():
        raise InputError(f"{where}: is empty; a line of column names is needed")
    try:
        lines = [
            (reader.line_num, line)
            for reader in [csv.reader(io.StringIO(text, newline=""), strict=True)]
            for line in reader
            if any(cell.strip() for cell in line)
        ]
    except csv.Error as error:
        raise InputError(f"{where}: not CSV: {error}") from None
    names = tuple(name.strip() for name in lines[0][1])
    rows: list[tuple[str, dict[str, Value] | str]] = []
    for number, line in lines[1:]:
        if len(line) == len(names):
            values = {name: value_of(cell) for name, cell in zip(names, line, strict=True)}
            rows.append((f"line {number}", values))
        else:
            fault = f"{len(line)} values, but {len(names)} columns"
            hint = "a value with a comma in it stands in double quotes"
            rows.append((f"line {number}", f"{fault}; {hint}"))
    if not rows:
        raise InputError(f"{where}: no rows below the column names")
    return Sheet(where, names, tuple(rows))


def repeated(names: Sequence[str]) -> list[str]:
    """Say which column names occur more than once."""
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f"column '{name}' occurs more than once" for name in twice]


def value_of(text: str) -> Value:
    """Read a cell: a number, a text, or nothing.

    Examples
    --------
    >>> value_of(" 224.0 "), value_of("1e-3"), value_of("1x1"), value_of("n/a")
    (224, 0.001, '1x1', None)
    """
    text = text.strip()
    if text.casefold() in _NOTHING:
        return None
    count = _COUNT.fullmatch(text)
    if count:
        return int(count[1])
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def check(where: str, faults: Sequence[str]) -> None:
    """Raise all faults in one error, if there are any."""
    if len(faults) > MOST_FAULTS:
        faults = [*faults[:MOST_FAULTS], f"... and {len(faults) - MOST_FAULTS} more"]
    if faults:
        raise InputError.joined(where, faults)


def shown(value: Value) -> str:
    """Quote a value in a message, cut if it is long."""
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
