"""``reproduce``: the tables of the reports, what they predict, and what we do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import click

from loopsched.base.units import percent, signed_percent
from loopsched.cli import options, output
from loopsched.show.table import Column, Table, words

if TYPE_CHECKING:
    from loopsched.published import Line, ReportTable, Reproduction, Summary

    Group = tuple[Line, ...]

_EPILOG = """\b
loopsched reproduce
loopsched reproduce report_000
loopsched reproduce report_003 --format csv
"""


@click.command(epilog=_EPILOG)
@click.argument("report", required=False)
@options.summed_form("Tables for people; for programs, {summary, rows} (json) or rows (csv).")
def reproduce(report: str | None, form: Literal["table", "json", "csv"]) -> None:
    """Reproduce the tables of a report and compare them with loopsched's figures.

    REPORT is report_000, report_001, report_002 or report_003; without it,
    they are listed. Rows have, where known, the measurement, the report's
    prediction (*: recomputed here, it differs), and loopsched's count or estimate.
    """
    from loopsched.published import reproduce as reproduced
    from loopsched.published import title_of

    if report is None:
        _list(form)
        return
    title_of(report)  # refuses what is none of them
    if not report.endswith("003"):  # it is about a library's kernels, which are not counted
        output.announce_counts()
    found = reproduced(report)
    if form == "json":
        from dataclasses import asdict

        from loopsched.base.rows import json_text

        head = {key: getattr(found, key) for key in ("name", "title", "source", "arch", "remarks")}
        sums = [asdict(one) for one in found.summary]
        click.echo(json_text({**head, "summary": sums, "rows": list(found.rows)}))
    elif form == "csv":
        output.print_rows((dict(row) for row in found.rows), form)
    else:
        _show(found)


def _list(form: Literal["table", "json", "csv"]) -> None:
    from loopsched.published import REPORTS, title_of

    rows = [{"report": name, "title": title_of(name)} for name in REPORTS]
    if form == "table":
        cells = [[row["report"], row["title"]] for row in rows]
        output.print_table([words("report"), words("what it is about", shrinks="end")], cells)
    else:
        output.print_rows(rows, form)


def _show(found: Reproduction) -> None:
    output.print_text(f"{found.name}: {found.title}")
    output.print_text(found.source)
    has_theirs = any(line.printed for table in found.tables for line in table.lines)
    theirs = "theirs: the report's prediction, as printed; " * has_theirs
    output.print_text(
        f"measured: as printed; {theirs}ours: loopsched's, for "
        f"{found.arch} (see 'loopsched archs {found.arch}'). Errors are relative to the "
        "measurement; of values in percent they are percentage points (pt)."
    )
    for table in found.tables:
        click.echo()
        _show_table(table)
    click.echo()
    _show_summary(found.summary)
    for remark in found.remarks:
        click.echo()
        output.print_text(remark)


def _show_table(table: ReportTable) -> None:
    click.echo(output.styled(table.title, bold=True))
    compared = [(group, lines) for group, lines in table.groups() if _is_measured(lines)]
    if compared:
        _show_compared(compared)
    predicted = [(group, lines) for group, lines in table.groups() if not _is_measured(lines)]
    if any(line.printed for _, lines in predicted for line in lines):
        click.echo()
        _show_across("theirs", predicted, _theirs)
    if any(line.ours is not None for _, lines in predicted for line in lines):
        click.echo()
        _show_across("ours", predicted, lambda line: _value(line.ours))
    for line in table.lines:
        for note in _notes(line):
            output.print_text(note, hang="  ")


def _is_measured(lines: Group) -> bool:
    return any(line.measured for line in lines)


def _show_compared(groups: Sequence[tuple[str, Group]]) -> None:
    """Show what was measured: a line each, predictions beside."""
    has_theirs = any(line.printed for _, lines in groups for line in lines)
    has_ours = any(line.ours is not None for _, lines in groups for line in lines)
    columns = [words("", shrinks="middle"), Column("measured")]
    columns += [Column("theirs"), Column("error")] * has_theirs
    columns += [Column("ours"), Column("error")] * has_ours
    rows = []
    for group, lines in groups:
        units = {line.unit for line in lines}
        shared = units.pop() if len(units) == 1 else ""
        rows.append([_with_unit(group, shared), *[""] * (len(columns) - 1)])
        for line in lines:
            label = line.row if shared else _with_unit(line.row, line.unit)
            cells = [f"  {label}", _printed(line.measured)]
            if has_theirs:
                cells += [_theirs(line), _error(line.error_theirs, line.unit)]
            if has_ours:
                cells += [_value(line.ours), _error(line.error_ours, line.unit)]
            rows.append(cells)
    output.print_table(columns, _fitting(columns, rows))


def _show_across(
    whose: str, groups: Sequence[tuple[str, Group]], cell: Callable[[Line], str]
) -> None:
    """Show what nobody measured: a column a quantity."""
    cells = {group: {line.row: cell(line) for line in lines} for group, lines in groups}
    kept = {group: column for group, column in cells.items() if any(column.values())}
    units = {group: lines[0].unit for group, lines in groups}
    columns = [words(whose), *(Column(_with_unit(group, units[group])) for group in kept)]
    labels = list(dict.fromkeys(line.row for _, lines in groups for line in lines))
    rows = [[f"  {label}", *(kept[group].get(label, "") for group in kept)] for label in labels]
    output.print_table(columns, _fitting(columns, rows))


def _fitting(columns: Sequence[Column], rows: list[list[str]]) -> list[list[str]]:
    """Leave out the separators of thousands where a table is too wide with them."""
    lines = Table([Column(one.title) for one in columns], rows).text(output.width()).splitlines()
    if max(map(len, lines)) <= output.width():
        return rows
    return [[label, *(cell.replace(",", "") for cell in cells)] for label, *cells in rows]


def _with_unit(text: str, unit: str) -> str:
    return f"{text} ({unit})" if unit else text


def _printed(text: str) -> str:
    """Show a printed value with the digits it has."""
    whole, point, decimals = text.partition(".")
    if whole.isdigit():
        whole = f"{int(whole):,}"
    return f"{whole}{point}{decimals}"


def _theirs(line: Line) -> str:
    return _printed(line.printed) + ("*" if line.is_followed is False else "")


def _value(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return _printed(f"{value:#.4g}".removesuffix(".") if abs(value) < 1e4 else f"{value:.0f}")
    return _printed(str(value))


def _error(error: float | None, unit: str) -> str:
    if error is None:
        return ""
    if unit == "%":
        return "0.0 pt" if abs(error) < 0.05 else f"{error:+.1f} pt"
    return "<0.1 %" if 0 < abs(error) < 0.0005 else signed_percent(error)


def _notes(line: Line) -> Iterator[str]:
    if line.is_followed is False:
        yield f"* {line.row}: its formulas give {_value(line.theirs)}, not {_printed(line.printed)}"
    if line.note:
        yield f"{line.group}, {line.row}: {line.note}"


def _show_summary(sums: Sequence[Summary]) -> None:
    rows: list[list[str]] = []
    tables = [one.table for one in sums]
    for position, one in enumerate(sums):
        title = one.table or "Together"
        is_alone = one.table != "" and tables.count(one.table) == 1
        if not is_alone and one.table not in tables[:position]:
            rows.append([title, *[""] * 5])
        rows.append(
            [
                title if is_alone else f"  {one.group}",
                ", ".join(dict.fromkeys(str(n) for n in (one.rows_theirs, one.rows_ours) if n)),
                _mean(one.mean_error_theirs, one.unit),
                _mean(one.mean_error_ours, one.unit),
                "" if one.rank_theirs is None else f"{one.rank_theirs:.3f}",
                "" if one.rank_ours is None else f"{one.rank_ours:.3f}",
            ]
        )
    if not rows:
        return
    titles = ("rows", "theirs", "ours", "r theirs", "r ours")
    kept = [i for i in range(6) if i < 2 or any(row[i] for row in rows)]
    first = "mean error; r: rank correlation" if max(kept) > 3 else "mean error"
    columns = [words(first, shrinks="middle"), *(Column(title) for title in titles)]
    output.print_table([columns[i] for i in kept], [[row[i] for i in kept] for row in rows])
    if any("," in row[1] for row in rows):
        output.print_text("rows: theirs, ours where these differ.")


def _mean(error: float | None, unit: str) -> str:
    if error is None:
        return ""
    return f"{error:.1f} pt" if unit == "%" else percent(error)
