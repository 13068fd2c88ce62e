"""What a notebook shows of our objects: small tables, every text escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

from loopsched.base.units import binary, format_capacity, percent, scaled
from loopsched.show.table import Column, Table, words

if TYPE_CHECKING:
    from loopsched.curves.staircase import Staircase
    from loopsched.gpu.choice.dispatch import Dispatch
    from loopsched.gpu.choice.pick import Pick
    from loopsched.machines.arch import Arch
    from loopsched.models.score import Evaluation
    from loopsched.nests.nest import Schedule
    from loopsched.problems.workload import Workload
    from loopsched.scheduler.result import Result


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
    rows = zip(schedule.loops, schedule.steps, schedule.trips, strict=True)
    columns = (
        words("loop", lambda row: row[0].dim),
        Column("extent", lambda row: row[0].extent),
        Column("step", lambda row: row[1]),
        Column("trips", lambda row: row[2]),
        words("run by", lambda row: row[0].unit or "temporal"),
    )
    return _code(str(schedule)) + Table(columns, list(rows)).html()


def workload_html(workload: Workload) -> str:
    """Show a workload: its problems with sizes and counts."""
    columns = (
        Column("#"),
        words("problem", lambda row: row[1].name),
        Column("count"),
        words("kind", lambda row: row[1].kind),
        words("sizes", lambda row: " ".join(f"{dim}={size}" for dim, size in row[1].sizes)),
        Column("work", lambda row: row[1].macs, "MAC"),
    )
    rows = list(zip(count(), workload.problems, workload.counts, strict=False))
    head = _said(
        workload.name,
        f"{len(rows)} problems, {scaled(workload.macs, 'MAC')} with counts",
        *filter(None, [workload.source]),
    )
    return head + Table(columns, rows).html()


LEVEL_COLUMNS = (
    words("level", "name"),
    words("kind", "kind"),
    Column("capacity", "capacity_bytes", format_capacity),
    Column("instances", "instances"),
    Column("outer bandwidth", "bandwidth_bytes_per_s", "B/s"),
)


def arch_html(arch: Arch) -> str:
    """Show a machine: its levels and its units."""
    compute = arch.compute
    rates = ", ".join(f"{name} {rate}" for name, rate in compute.macs_per_cycle_per_unit)
    head = _said(
        arch.title or arch.name,
        f"{compute.units} {compute.unit} at {scaled(compute.clock_hz, 'Hz')}; "
        f"MAC per cycle each: {rates}",
    )
    return head + Table(LEVEL_COLUMNS, arch.levels).html()


def evaluation_html(evaluation: Evaluation) -> str:
    """Show a score: times, and the traffic of every level."""
    head = _said(
        f"{scaled(evaluation.time_s, 's')}, bound by {evaluation.bound_by}",
        f"at least {scaled(evaluation.time_bound_s, 's')}; no schedule is below "
        f"{scaled(evaluation.problem_bound_s, 's')}",
        f"compute {scaled(evaluation.compute_time_s, 's')}, units "
        f"{percent(evaluation.compute_utilisation)} useful",
    )
    columns = (
        words("boundary", lambda level: f"{level.outer} - {level.name}"),
        Column("read", "promised_read_bytes", "B"),
        Column("written", "promised_write_bytes", "B"),
        Column("time", "time_s", "s"),
        Column("busy", "utilisation", "%"),
        Column("FLOP/B", "operational_intensity", ""),
    )
    return head + Table(columns, evaluation.levels).html()


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
        columns = (
            Column("rank", lambda pair: pair[0]),
            words("alternative", lambda pair: pair[1].schedule),
            Column("time", lambda pair: pair[1].evaluation.time_s, "s"),
            Column("DRAM", lambda pair: pair[1].evaluation.dram_bytes, "B"),
        )
        others = Table(columns, list(enumerate(result.alternatives, 2))).html()
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
        [what, binary(capacity), scaled(moved, "B"), scaled(2 * curve.macs / moved)]
        for what, capacity, moved in marks
    ]
    return head + Table([words(""), *map(Column, ["capacity", "DRAM", "FLOP/B"])], rows).html()


def rows_html(title: str, rows: Sequence[Mapping[str, object]], *lines: str) -> str:
    """Show rows of plain values, without nested ones and columns that are empty.

    Examples
    --------
    >>> print(rows_html("mine", [{"a": 0.25, "b": [1]}]))
    <p><b>mine</b></p><table>...<th style="text-align: right; ...">a</th></tr>...>0.25</td>...
    """
    names = [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if not any(isinstance(row.get(name), (list, tuple, dict)) for row in rows)
        and any(_cell(row.get(name)) not in ("-", "") for row in rows)
    ]
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    columns = [
        Column(name, numeric=not any(isinstance(row.get(name), str) for row in rows))
        for name in names
    ]
    return _said(title, *lines) + Table(columns, cells).html()


def _choices_html(title: str, found: Pick | Dispatch, *lines: str) -> str:
    """Show the configurations of a kernel; what all rows share stands in the title."""
    shared = ("problem", "arch", "kernel", "data_type", "n", "k")
    rows = [{key: row[key] for key in row if key not in shared} for row in found.rows()]
    return rows_html(f"{title}, {found.data_type} on {found.arch}", rows, *lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


# By name, so that showing a machine does not import the search.
_WRITERS: dict[str, Callable[[Any], str]] = {
    "Arch": arch_html,
    "ChoiceValidation": lambda one: rows_html("choices against measured kernels", one.rows),
    "Dispatch": lambda one: _choices_html(f"rows x {one.n} x {one.k}", one),
    "Evaluation": evaluation_html,
    "Pick": lambda one: _choices_html(
        f"{one.problem}, {one.kernel}",
        one,
        f"{one.n_configurations} configurations, {one.n_infeasible} cannot run, "
        f"{one.n_may_be_best} may be best",
    ),
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
