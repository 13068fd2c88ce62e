"""``pareto``: what time, DRAM traffic and capacity cost each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.base.errors import EmptySpaceError
from loopsched.base.units import binary, count
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.machines.arch import Arch
    from loopsched.problems.problem import Problem
    from loopsched.scheduler.tradeoffs import Tradeoff

_EPILOG = """\b
loopsched pareto gemm:m=1760,n=128,k=1760
loopsched pareto resnet50 -l conv1 --plot front.svg
loopsched pareto my.json -c '4 MiB' -c '1 MiB' --format csv
"""


@click.command(epilog=_EPILOG)
@options.inputs()
@options.many(
    "--capacity",
    "-c",
    "capacities",
    metavar="SIZE",
    meaning="Capacity of the level next to memory; may be repeated. By default the machine's, "
    "halved as long as something fits and no inner level is larger.",
)
@options.jobs()
@options.plot("the fronts")
@options.form
def pareto(
    inputs: Inputs, capacities: Sequence[str], jobs: int, plot: tuple[Path, ...], form: Style
) -> None:
    """Find the Pareto front of time, DRAM traffic and capacity.

    WORKLOAD is a name, a file, or a problem such as gemm:m=4,n=3,k=2. At each
    capacity, finds the fastest schedule, the one that moves the least data, and
    schedules in between.
    """
    from loopsched.base.pool import each_in_order

    chosen, machine = inputs.chosen, inputs.machine
    sizes = [options.size_of("--capacity", text) for text in capacities] or None
    output.announce_compilation()
    problems = chosen.workload.problems
    fronts: dict[str, tuple[Tradeoff, ...]] = {}
    try:
        with output.Progress(len(problems)) as progress:
            work = [(problem, machine, sizes) for problem in problems]
            for number, problem, front in zip(
                chosen.numbers, problems, each_in_order(_front, work, jobs), strict=True
            ):
                name = problem.name  # problems of one name are told apart by their numbers
                fronts[f"{name} ({number})" if name in fronts else name] = front
                progress.step(problem.name)
    finally:  # also what an interruption leaves
        if any(fronts.values()):
            _report(fronts, inputs, plot, form)
    if not any(fronts.values()):
        raise EmptySpaceError(f"no schedule of '{chosen.workload.name}' fits into {machine.name}")


def _front(problem: Problem, arch: Arch, sizes: Iterable[int] | None) -> tuple[Tradeoff, ...]:
    from loopsched.scheduler.tradeoffs import pareto as front_of

    return front_of(problem, arch, capacities_bytes=sizes)


def _report(
    fronts: Mapping[str, Sequence[Tradeoff]], inputs: Inputs, plot: Sequence[Path], form: Style
) -> None:
    from loopsched.show.plots.tradeoffs import pareto_rows, plot_pareto

    rows = pareto_rows(fronts)
    if form == "table":
        _print(rows, fronts, inputs.on)
    else:
        output.print_rows(rows, form)
    output.save_plots(plot, lambda: rows, lambda: plot_pareto(fronts, name=inputs.name))


_COLUMNS = (
    words("problem", "problem", shrinks="middle"),
    Column("capacity", "capacity_bytes", binary),
    Column("time", "time_s", "s"),
    Column("DRAM", "dram_bytes", "B"),
    words("bound by", "bound_by"),
)


def _print(rows: Sequence[Row], fronts: Mapping[str, Sequence[Tradeoff]], machine: str) -> None:
    from loopsched.scheduler.tradeoffs import STEP

    output.print_table(_COLUMNS, rows, [row["schedule"] for row in rows])
    click.echo()
    empty = [name for name, front in fronts.items() if not front]
    if empty:
        output.print_text(f"Nothing fits: {', '.join(empty)}.")
    output.print_text(
        f"On {machine}: {count(len(rows), 'schedule')} on the Pareto front of time, DRAM traffic "
        "and capacity. Searched at each capacity of the level next to memory: the fastest "
        "schedule, the one that moves least, and schedules between them, so close that one of "
        f"them is within {100 * STEP:g} % of any other schedule in both time and traffic."
    )
