"""``show``: a schedule as loops, with what each level holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from loopsched.cli import options, output
from loopsched.cli.inputs import best_schedule, schedule_from, select, select_one

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch
    from loopsched.nests.nest import Schedule
    from loopsched.problems.problem import Problem

_EPILOG = """\b
loopsched show resnet50 --layer 0                      the best schedule
loopsched show gemm:m=64,n=64,k=64 'M:64 N:64 K:64'    yours
loopsched show results.jsonl --layer 3                 what a search has saved
"""


@click.command(epilog=_EPILOG)
@click.argument("problem")
@click.argument("schedule", required=False)
@options.layers
@options.element_bytes
@options.arch
@options.dialect
@click.option("--rank", type=click.IntRange(1), help="Of a result file: only this rank.")
def show(
    problem: str,
    schedule: str | None,
    layers: tuple[str, ...],
    element_bytes: int | None,
    arch: str,
    dialect: str,
    rank: int | None,
) -> None:
    """Show SCHEDULE, the best schedule of PROBLEM, or a result file's, as loops."""
    from loopsched.cli.saved import is_result_file, saved_schedules
    from loopsched.machines.arch_file import load_arch

    if schedule is None and is_result_file(problem):
        found = saved_schedules(problem, layers, rank)
    elif schedule is None:
        found = _best(problem, layers, element_bytes, load_arch(arch))
    else:
        one = select_one(problem, layers, element_bytes)
        found = iter([(one, schedule_from(schedule, one, dialect), load_arch(arch))])
    for number, (one, nest, machine) in enumerate(found):
        if number:
            click.echo()
        _show(one, nest, machine)


def _best(
    problem: str, layers: tuple[str, ...], element_bytes: int | None, arch: Arch
) -> Iterator[tuple[Problem, Schedule, Arch]]:
    for one in select(problem, layers, element_bytes).workload.problems:
        yield one, best_schedule(one, arch), arch


def _show(problem: Problem, schedule: Schedule, arch: Arch) -> None:
    from loopsched.models.reasons import annotate
    from loopsched.nests.notation import render_loops

    output.print_text(f"{problem.name} on {arch.name}: {schedule}")
    click.echo()
    click.echo(
        render_loops(problem, schedule, annotate(problem, schedule, arch), width=output.width())
    )
