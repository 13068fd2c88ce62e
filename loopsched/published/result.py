"""What reproducing a report gives: its tables line by line, and how far off each side is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopsched.base.rows import picked
from loopsched.base.statistics import rank_correlation

Value = int | float | str | None
# Called with a line's `kernel` and `ours`: a value, and whether it is a count or an estimate.
Ours = Callable[[str, str], tuple[Value, str]]
_FOLDER = Path(__file__).parent / "data"
TIMES = ("s", "ms", "us")
# Two lines are in order or not: nothing that a correlation could tell.
_LEAST_RANKED = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a report's table, with what is predicted for it.

    Parameters
    ----------
    group, row : str
        What the table's lines are about, from general to particular.
    unit : str
        ``%`` is a share: its errors are differences in points.
    measured : str
        As the report prints it; empty if it was not measured.
    printed : str
        The report's own prediction, as printed.
    theirs : int or float, optional
        The same from the report's model, computed again here.
    ours : int, float or str, optional
        Loopsched's own count or estimate.
    ours_is : {'', 'count', 'estimate'}
    printed_error : str
        The error that the report prints for its prediction, in per cent.
    note : str

    Examples
    --------
    >>> line = Line("memory time", "32", "ms", "0.060", printed="0.058", theirs=0.05756)
    >>> line.is_followed, round(line.error_theirs, 3)
    (True, -0.041)
    """

    group: str
    row: str
    unit: str
    measured: str
    printed: str = ""
    theirs: int | float | None = None
    ours: Value = None
    ours_is: str = ""
    printed_error: str = ""
    note: str = ""

    @property
    def is_followed(self) -> bool | None:
        """Whether the printed prediction follows from the model; None without both."""
        if not self.printed or self.theirs is None:
            return None
        return with_decimals_of(self.printed, self.theirs) == self.printed

    @property
    def prediction(self) -> int | float | None:
        """The report's prediction: with all its digits if those printed follow."""
        if self.is_followed:
            return self.theirs
        value = number(self.printed)
        return None if isinstance(value, str) else value

    @property
    def error_theirs(self) -> float | None:
        """Error of the report's prediction: relative, or in points of a share."""
        return self._error(self.prediction)

    @property
    def error_ours(self) -> float | None:
        """Error of ours, in the same way."""
        return self._error(self.ours)

    def _error(self, predicted: Value) -> float | None:
        measured = number(self.measured)
        if not isinstance(predicted, int | float) or not isinstance(measured, int | float):
            return None
        if self.unit == "%":
            return predicted - measured
        return predicted / measured - 1 if measured else None


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One table of a report."""

    name: str
    title: str
    lines: tuple[Line, ...]

    def groups(self) -> Iterator[tuple[str, tuple[Line, ...]]]:
        """Give the lines group by group, in the order in which groups begin."""
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            found.setdefault(line.group, []).append(line)
        for group, lines in found.items():
            yield group, tuple(lines)


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors over some lines of one unit.

    Parameters
    ----------
    table, group : str
    unit : str
    rows_theirs, rows_ours : int
        Lines on which each side is compared with what was measured.
    mean_error_theirs, mean_error_ours : float, optional
        Means of the errors without their sign.
    rank_theirs, rank_ours : float, optional
        Rank correlations with what was measured; of three times or more only.
    """

    table: str
    group: str
    unit: str
    rows_theirs: int
    rows_ours: int
    mean_error_theirs: float | None
    mean_error_ours: float | None
    rank_theirs: float | None
    rank_ours: float | None


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A report's printed tables, reproduced, beside loopsched's own answers.

    Parameters
    ----------
    name, title, source : str
    arch : str
        The architecture that loopsched's answers are for.
    tables : tuple of ReportTable
    remarks : tuple of str
        What follows from the report and what does not.
    pools : tuple of (str, tuple of str)
        Tables to be summed up together, under a title.
    """

    name: str
    title: str
    source: str
    arch: str
    tables: tuple[ReportTable, ...]
    remarks: tuple[str, ...] = ()
    pools: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(
        cls, report: Mapping[str, Any], arch: str, tables: Iterable[ReportTable], **more: Any
    ) -> Reproduction:
        """Reproduce a report from its file, as `printed` reads it."""
        head = (report["name"], report["title"], report["source"])
        return cls(*head, arch, tuple(tables), **more)

    def table(self, name: str) -> ReportTable:
        """Find a table by name."""
        return next(table for table in self.tables if table.name == name)

    @property
    def summary(self) -> tuple[Summary, ...]:
        """Mean errors and ranks of each group with two lines or more, then of the pools."""
        found = [
            summed(table.title, group, lines)
            for table in self.tables
            for group, lines in table.groups()
        ]
        for title, names in self.pools:
            lines = tuple(line for name in names for line in self.table(name).lines)
            found.append(summed("", title, lines))
        return tuple(one for one in found if one is not None)

    @property
    def rows(self) -> tuple[Mapping[str, Value], ...]:
        """One flat row per line, for programs."""
        return tuple(
            {
                "report": self.name,
                "table": table.name,
                **picked(line, "group", "row", "unit"),
                "measured": number(line.measured),
                "theirs_printed": line.printed or None,
                "theirs": line.theirs,
                "theirs_follows": line.is_followed,
                "ours": line.ours,
                "ours_is": line.ours_is or None,
                **picked(line, "error_theirs", "error_ours"),
                "error_in": "points" if line.unit == "%" else "relative",
                "printed_error_percent": number(line.printed_error),
                "note": line.note or None,
            }
            for table in self.tables
            for line in table.lines
        )


def number(text: str) -> Value:
    """Read a printed value: a number if it is one, None if there is nothing.

    Examples
    --------
    >>> number("385524"), number("0.058"), number("16 x 16 x 1"), number("")
    (385524, 0.058, '16 x 16 x 1', None)
    """
    if not text:
        return None
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def with_decimals_of(printed: str, value: float) -> str:
    """Write a value with as many decimals as a printed one.

    Examples
    --------
    >>> with_decimals_of("0.060", 0.0595), with_decimals_of("385524", 385524)
    ('0.059', '385524')
    """
    return f"{value:.{len(printed.partition('.')[2])}f}"


def summed(table: str, group: str, lines: Iterable[Line]) -> Summary | None:
    """Sum up the errors of some lines; None of fewer than two that can be compared."""
    compared = [line for line in lines if isinstance(number(line.measured), int | float)]
    ours = [line for line in compared if line.error_ours is not None]
    theirs = [line for line in compared if line.error_theirs is not None]
    units = {line.unit for line in (*ours, *theirs)}
    if max(len(ours), len(theirs)) < 2 or len(units) > 1:
        return None
    (unit,) = units
    return Summary(
        table,
        group,
        unit,
        len(theirs),
        len(ours),
        _mean(line.error_theirs for line in theirs),
        _mean(line.error_ours for line in ours),
        _rank([(line.measured, line.prediction) for line in theirs]) if unit in TIMES else None,
        _rank([(line.measured, line.ours) for line in ours]) if unit in TIMES else None,
    )


def _mean(errors: Iterable[float | None]) -> float | None:
    sizes = [abs(error) for error in errors if error is not None]
    return sum(sizes) / len(sizes) if sizes else None


def _rank(pairs: Iterable[tuple[str, Value]]) -> float | None:
    numbers = [
        (float(measured), float(predicted))
        for measured, predicted in pairs
        if isinstance(predicted, int | float)
    ]
    if len(numbers) < _LEAST_RANKED:
        return None
    return rank_correlation([pair[0] for pair in numbers], [pair[1] for pair in numbers])


def printed(name: str) -> Mapping[str, Any]:
    """Read a report's printed tables: ``name``, ``title``, ``source`` and ``tables``.

    Examples
    --------
    >>> [table["name"] for table in printed("report_000")["tables"]]
    ['block', 'channel', 'kernel', 'size']
    """
    found: Mapping[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def measured_table(table: Mapping[str, Any], ours: Ours) -> ReportTable:
    """Build a table from its file.

    Parameters
    ----------
    table : mapping
        ``name``, ``title`` and ``lines``; a line has ``group``, ``row``,
        ``unit``, ``measured``, and, where there is something of ours,
        ``kernel`` and ``ours``.
    ours : callable
        Called with a line's ``kernel`` and ``ours``; gives a value and whether
        it is a ``count`` or an ``estimate``.
    """
    lines = []
    for line in table["lines"]:
        value, basis = ours(line["kernel"], line["ours"]) if "ours" in line else (None, "")
        lines.append(
            Line(
                line["group"],
                line["row"],
                line["unit"],
                line["measured"],
                ours=value,
                ours_is="" if value is None else basis,
                note=line.get("note", ""),
            )
        )
    return ReportTable(table["name"], table["title"], tuple(lines))
