"""``show``: a schedule as loops, with what each level holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch
    from loopsched.nests.nest import Schedule
    from loopsched.problems.problem import Problem

_EPILOG = """\b
loopsched show resnet50 --layer 0                      the best schedule
loopsched show gemm:m=64,n=64,k=64 'M:64 N:64 K:64'    yours
loopsched show results.jsonl --layer 3                 saved by a search
"""


@click.command(epilog=_EPILOG)
@options.inputs("problem", schedule=False)
@options.rank
def show(inputs: Inputs, rank: int | None) -> None:
    """Show a schedule as loops, with what each level holds.

    PROBLEM is a workload (--layer selects problems), or a problem such as
    gemm:m=4,n=3,k=2. SCHEDULE is text or @FILE; by default the best one is found by
    a search. PROBLEM may also be a file of saved results, whose schedules are
    shown.
    """
    for number, (one, nest, machine) in enumerate(inputs.schedules(rank)):
        if number:
            click.echo()
        _show(one, nest, machine)


def _show(problem: Problem, schedule: Schedule, arch: Arch) -> None:
    from loopsched.models.reasons import annotate
    from loopsched.nests.loops_text import render_loops

    output.print_text(f"{problem.name} on {arch.name}: {schedule}")
    click.echo()
    click.echo(
        render_loops(problem, schedule, annotate(problem, schedule, arch), width=output.width())
    )
