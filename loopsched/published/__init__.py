"""The four reports that this work began with: their tables, reproduced, and ours beside.

``reproduce`` is the way in; docs/reports.md says what came of it.
"""

from __future__ import annotations

from importlib import import_module

from loopsched.base.errors import InputError, nearest
from loopsched.published.result import Line, ReportTable, Reproduction, Summary, printed

__all__ = ["REPORTS", "Line", "ReportTable", "Reproduction", "Summary", "reproduce", "title_of"]

REPORTS = ("report_000", "report_001", "report_002", "report_003")


def reproduce(name: str) -> Reproduction:
    """Reproduce the printed tables of a report, beside loopsched's own answers.

    Parameters
    ----------
    name : str
        ``report_000`` to ``report_003``.

    Returns
    -------
    Reproduction
        Line by line what was measured, the report's own prediction where it has
        one, computed again, and loopsched's count or estimate.

    Raises
    ------
    InputError
        If there is no such report.

    See Also
    --------
    preset

    Examples
    --------
    >>> found = reproduce("report_000")
    >>> line = found.table("block").lines[0]
    >>> line.group, line.row, line.measured, line.printed, line.is_followed
    ('execution time', '4', '0.050335', '0.068', True)
    """
    module = import_module(f"loopsched.published.{_file(name)}")
    found: Reproduction = module.reproduction()
    return found


def title_of(name: str) -> str:
    """Say in a line what a report is about.

    Examples
    --------
    >>> title_of("report_001")
    'Four kernels that filter images (2025)'
    """
    title: str = printed(_file(name))["title"]
    return title


def _file(name: str) -> str:
    full = f"report_{name.removeprefix('report_').removeprefix('report')}"
    if full not in REPORTS:
        raise InputError(f"no report '{name}'; {nearest(name, REPORTS)}")
    return full
