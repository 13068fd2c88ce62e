"""What a notebook shows of our objects: small tables, every text escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from loopsched.base.units import binary, format_capacity, percent, scaled

if TYPE_CHECKING:
    from loopsched.curves.staircase import Staircase
    from loopsched.machines.arch import Arch
    from loopsched.models.score import Evaluation
    from loopsched.nests.nest import Schedule
    from loopsched.problems.workload import Workload
    from loopsched.scheduler.result import Result

_MOST_ROWS = 100
_RIGHT = ' style="text-align: right; padding: 0 0.6em"'
_LEFT = ' style="text-align: left; padding: 0 0.6em"'


def table_html(
    titles: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int] = (0,)
) -> str:
    """Make a table; numbers stand to the right.

    Parameters
    ----------
    titles : sequence of str
    rows : iterable of sequence of str
        At most a hundred are shown.
    words : sequence of int
        Columns that are words, by position.

    Examples
    --------
    >>> print(table_html(["name", "bytes"], [["<L2>", "12"]]))
    <table><thead><tr><th style="text-align: left; ...">name</th>...<td ...>&lt;L2&gt;</td>...
    """
    sides = [_LEFT if place in words else _RIGHT for place in range(len(titles))]
    head = "".join(
        f"<th{side}>{escape(title)}</th>" for side, title in zip(sides, titles, strict=True)
    )
    source = iter(rows)
    body = [
        "".join(f"<td{side}>{escape(cell)}</td>" for side, cell in zip(sides, row, strict=True))
        for row in islice(source, _MOST_ROWS)
    ]
    more = sum(1 for _ in source)
    if more:
        body.append(f'<td colspan="{len(titles)}">and {more} more</td>')
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def to_html(value: Any) -> str:
    """Show any of our objects."""
    name = next(each.__name__ for each in type(value).__mro__ if each.__name__ in _WRITERS)
    return _WRITERS[name](value)


def _said(title: str, *lines: str) -> str:
    """Write a title and what is to be said under it."""
    return "".join([f"<p><b>{escape(title)}</b>", *(f"<br>{escape(one)}" for one in lines), "</p>"])


def _code(text: str) -> str:
    return f"<p><code>{escape(text)}</code></p>"


def schedule_html(schedule: Schedule) -> str:
    """Show a schedule: its text, and how often each loop runs."""
    rows = [
        [loop.dim, str(loop.extent), str(step), str(trips), loop.level or "temporal"]
        for loop, step, trips in zip(schedule.loops, schedule.steps, schedule.trips, strict=True)
    ]
    titles = ["loop", "extent", "step", "trips", "run by"]
    return _code(str(schedule)) + table_html(titles, rows, words=(0, 4))


def workload_html(workload: Workload) -> str:
    """Show a workload: its problems with sizes and counts."""
    rows = [
        [
            str(number),
            problem.name,
            str(count),
            problem.kind,
            " ".join(f"{dim}={size}" for dim, size in problem.sizes),
            scaled(problem.macs, "MAC"),
        ]
        for number, (problem, count) in enumerate(
            zip(workload.problems, workload.counts, strict=True)
        )
    ]
    titles = ["#", "problem", "count", "kind", "sizes", "work"]
    head = _said(
        workload.name,
        f"{len(rows)} problems, {scaled(workload.macs, 'MAC')} with counts",
        *filter(None, [workload.source]),
    )
    return head + table_html(titles, rows, words=(1, 3, 4))


def arch_html(arch: Arch) -> str:
    """Show a machine: its levels and its units."""
    rows = [
        [
            level.name,
            level.kind,
            "-" if level.capacity_bytes is None else format_capacity(level.capacity_bytes),
            str(level.instances),
            scaled(level.bandwidth_bytes_per_s, "B/s"),
        ]
        for level in arch.levels
    ]
    compute = arch.compute
    rates = ", ".join(f"{name} {rate}" for name, rate in compute.macs_per_cycle_per_unit)
    head = _said(
        arch.title or arch.name,
        f"{compute.units} {compute.unit} at {scaled(compute.clock_hz, 'Hz')}; "
        f"MAC a cycle of one: {rates}",
    )
    titles = ["level", "kind", "capacity", "instances", "from outside"]
    return head + table_html(titles, rows, words=(0, 1))


def evaluation_html(evaluation: Evaluation) -> str:
    """Show a score: times, and the traffic of every level."""
    head = _said(
        f"{scaled(evaluation.time_s, 's')}, bound by {evaluation.bound_by}",
        f"at least {scaled(evaluation.time_bound_s, 's')}; no schedule is below "
        f"{scaled(evaluation.problem_bound_s, 's')}",
        f"compute {scaled(evaluation.compute_time_s, 's')}, units "
        f"{percent(evaluation.compute_utilisation)} useful",
    )
    rows = [
        [
            f"{level.outer} - {level.name}",
            scaled(level.promised_read_bytes, "B"),
            scaled(level.promised_write_bytes, "B"),
            scaled(level.time_s, "s"),
            percent(level.utilisation),
            f"{level.operational_intensity:.4g}",
        ]
        for level in evaluation.levels
    ]
    titles = ["boundary", "read", "written", "time", "busy", "FLOP/B"]
    return head + table_html(titles, rows)


def result_html(result: Result) -> str:
    """Show what a search found: the best schedule, its score, and what is proven."""
    certificate = result.certificate
    proof = "proven best" if certificate.proven else f"gap {percent(certificate.gap)}"
    head = _said(
        f"{result.problem.name} on {result.arch.name}",
        f"least {result.objective}, {proof}; {certificate.nodes} nodes visited",
    )
    others = ""
    if result.alternatives:
        rows = [
            [
                str(rank),
                str(each.schedule),
                scaled(each.evaluation.time_s, "s"),
                scaled(each.evaluation.dram_bytes, "B"),
            ]
            for rank, each in enumerate(result.alternatives, 2)
        ]
        others = table_html(["rank", "alternative", "time", "DRAM"], rows, words=(1,))
    return head + _code(str(result.schedule)) + evaluation_html(result.evaluation) + others


def curve_html(curve: Staircase) -> str:
    """Show a curve: its ends and its knees."""
    marks = [("least", curve.capacities_bytes[0], curve.dram_bytes[0])]
    marks += [("knee", knee.capacity_bytes, knee.dram_bytes) for knee in curve.knees]
    marks += [("all that helps", curve.capacities_bytes[-1], curve.dram_bytes[-1])]
    head = _said(
        curve.name,
        f"{len(curve)} steps, {curve.n_proven} proven; "
        f"{scaled(curve.compulsory_bytes, 'B')} move at any capacity",
    )
    rows = [
        [what, binary(capacity), scaled(moved, "B"), f"{2 * curve.macs / moved:.4g}"]
        for what, capacity, moved in marks
    ]
    return head + table_html(["", "capacity", "DRAM", "FLOP/B"], rows)


def rows_html(title: str, rows: Sequence[Mapping[str, object]], *lines: str) -> str:
    """Show rows of plain values, without nested ones.

    Examples
    --------
    >>> print(rows_html("mine", [{"a": 0.25, "b": [1]}]))
    <p><b>mine</b></p><table>...<th style="text-align: right; ...">a</th></tr>...>0.25</td>...
    """
    names = [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if not any(isinstance(row.get(name), (list, tuple, dict)) for row in rows)
    ]
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    words = [
        place
        for place, name in enumerate(names)
        if any(isinstance(row.get(name), str) for row in rows)
    ]
    return _said(title, *lines) + table_html(names, cells, words=words)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return str(value)


# By name, so that showing a machine does not import the search.
_WRITERS: dict[str, Callable[[Any], str]] = {
    "Arch": arch_html,
    "Evaluation": evaluation_html,
    "Result": result_html,
    "Schedule": schedule_html,
    "Sensitivity": lambda one: rows_html(f"{one.workload} on {one.arch}: what if", one.rows),
    "Staircase": curve_html,
    "TimeValidation": lambda one: rows_html(
        f"estimated against measured times: {one.summary.get('file')}", one.rows
    ),
    "Validation": lambda one: rows_html(
        f"predicted against measured on {one.summary.get('arch')}", one.rows
    ),
    "Workload": workload_html,
}
