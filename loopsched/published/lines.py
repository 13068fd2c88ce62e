"""Lines of reports that only measured: what is printed, and ours beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loopsched.published.result import Line, ReportTable, Value

Ours = Callable[[str, str], tuple[Value, str]]


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
