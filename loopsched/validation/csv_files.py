"""CSV files of measurements: found by path or shipped name; their rows, and all their faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from loopsched.base.csv_text import Sheet, Value, parsed, value_of
from loopsched.base.errors import InputError
from loopsched.base.files import read_text
from loopsched.base.resources import resource_dir, resource_names


class _Placed(Protocol):
    @property
    def place(self) -> str: ...


R = TypeVar("R", bound=_Placed)
T = TypeVar("T")
Source = str | os.PathLike[str] | Iterable[Mapping[str, Value]]

MOST_FAULTS = 50


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


def rows_read(
    sheet: Sheet,
    read: Callable[[str, dict[str, Value]], tuple[T | None, Iterable[str]]],
    ahead: Iterable[str] = (),
    skipped: list[str] | None = None,
) -> tuple[T, ...]:
    """Read every row of a table; ``read`` also gives what is wrong with its row.

    With ``skipped``, rows that cannot be read are told there, unless all are such rows.

    Raises
    ------
    InputError
        With all faults; those of ``ahead``, which reading may add to, come first.
    """
    found, faults = [], list[str]()
    for place, values in sheet.rows:
        row, wrong = (None, [values]) if isinstance(values, str) else read(place, values)
        wrong = list(wrong)
        faults += [f"{place}: {fault}" for fault in wrong]
        if row is not None:
            found.append(row)
        elif skipped is not None:
            skipped.append(f"{place}: {'; '.join(wrong)}")
    check(sheet.where, [*ahead, *([] if found and skipped is not None else faults)])
    return tuple(found)


def told(rows: Iterable[R], progress: Callable[[str], None] | None) -> Iterator[R]:
    """Go through rows, and say of each where it stands before anything is done with it."""
    for row in rows:
        if progress is not None:
            progress(row.place)
        yield row


def check(where: str, faults: Sequence[str]) -> None:
    """Raise all faults in one error, if there are any."""
    if len(faults) > MOST_FAULTS:
        faults = [*faults[:MOST_FAULTS], f"... and {len(faults) - MOST_FAULTS} more"]
    InputError.refuse(where, faults)


def shown(value: Value) -> str:
    """Quote a value in a message, cut if it is long."""
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
