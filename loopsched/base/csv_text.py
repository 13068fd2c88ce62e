"""CSV text as rows of values, each with its place for messages."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from loopsched.base.errors import InputError

Value = str | int | float | None

_COUNT = re.compile(r"[+]?([0-9]{1,15})(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NOTHING = ("", "-", "na", "n/a", "nan", "none", "null")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table.

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
    if text.lstrip().startswith(("{", "[")):
        raise InputError(f"{where}: holds JSON; a file of comma-separated values is needed")
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
    if len(names) == 1 and ";" in names[0]:
        raise InputError(f"{where}: columns are divided by semicolons; commas are needed")
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


def repeated(names: Sequence[str]) -> list[str]:
    """Say which column names occur more than once."""
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f"column '{name}' occurs more than once" for name in twice]
