"""``compare``: why one schedule is worse than another, or than the best."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from loopsched.base.errors import ScheduleError
from loopsched.base.units import percent, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs, best_schedule, on, schedule_from
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.models.reasons import Comparison


_EPILOG = """\b
loopsched compare gemm:m=64,n=64,k=64 'M:64@SM N:64 K:64 M:8'   with the best
loopsched compare gemm:m=64,n=64,k=64 'M:64 N:64 K:64' 'K:64 M:64 N:64'
"""


@click.command(epilog=_EPILOG)
@options.inputs("problem", schedule=True)
@click.argument("other", required=False)
@options.form
def compare(inputs: Inputs, other: str | None, form: Style) -> None:
    """Explain why SCHEDULE of PROBLEM is worse than OTHER, or than the best.

    PROBLEM is a workload with --layer, or a problem such as gemm:m=4,n=3,k=2.
    SCHEDULE and OTHER are text or @FILE; by default OTHER is the best
    one, found by a search. The output names the loop that refetches each tensor, the
    level that overflows, and the moves that lead from SCHEDULE to OTHER: a loop is named
    by its dimension or its place, 0 the outermost.
    """
    from loopsched.base.rows import Row
    from loopsched.models.reasons import compare as compare_schedules
    from loopsched.nests.moves import moves_between
    from loopsched.scheduler.rows import evaluation_row

    one, machine, mine = inputs.problem, inputs.machine, inputs.schedule
    theirs = schedule_from(other, one, inputs.dialect) if other else best_schedule(one, machine)
    found = compare_schedules(one, mine, theirs, machine)
    moves = ""
    with suppress(ScheduleError):  # tiles are placed one by one
        moves = " | ".join(map(str, moves_between(mine, theirs)))
    if form != "table":
        pairs = ((mine, found.first, found.reasons, moves), (theirs, found.second, (), ""))
        rows: list[Row] = [
            {"problem": one.name, "arch": machine.name, "schedule": str(nest)}
            | evaluation_row(score)
            | {"reasons": list(reasons), "moves": steps}
            for nest, score, reasons, steps in pairs
        ]
        output.print_rows(rows, form)
        return
    name = "other" if other else "best"
    output.print_text(f"{one.name} on {on(machine, [one])}")
    output.print_text(f"this: {mine}")
    output.print_text(f"{name}: {theirs}")
    if moves:
        output.print_text(f"moves: {moves}")
    click.echo()
    columns = (words(""), Column("this"), Column(name), Column("ratio"))
    output.print_table(columns, list(_rows(found)))
    click.echo()
    for reason in found.reasons or (
        f"no level moves more bytes and nothing takes longer than in the {name} schedule",
    ):
        output.print_text(f"- {reason}", hang="  ")
    if moves:
        click.echo()
        output.print_text(
            f"moves: lead from this to {name}; a loop is named by its dimension or its place, 0 "
            "the outermost."
        )


def _rows(found: Comparison) -> Iterator[list[str]]:
    first, second = found.first, found.second
    yield _row("time", first.time_s, second.time_s, "s")
    yield ["bound by", first.bound_by, second.bound_by, ""]
    yield _row("compute", first.compute_time_s, second.compute_time_s, "s")
    useful = [percent(score.compute_utilisation) for score in (first, second)]
    yield ["utilisation", *useful, ""]
    for mine, theirs in zip(first.levels, second.levels, strict=True):
        name = f"{mine.outer} - {mine.name}"
        yield _row(name, mine.promised_bytes, theirs.promised_bytes, "B")


def _row(title: str, mine: float, theirs: float, unit: str) -> list[str]:
    ratio = scaled(mine / theirs) if theirs else "-"
    return [title, scaled(mine, unit), scaled(theirs, unit), ratio]
