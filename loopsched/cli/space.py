"""``space``: how many schedules a search would have to choose from."""

from __future__ import annotations

import click

from loopsched.base.units import count, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

_COLUMNS = (
    Column("#", "layer"),
    words("problem", "problem", shrinks="middle"),
    Column("schedules", "space_size", "{:,}".format, spare=1),
    Column("about", "space_size", ""),
)


_EPILOG = """\b
loopsched space resnet50                              every layer, and the sum
loopsched space gemm:m=64,n=64,k=64 --tiles powers2   fewer tile sizes
"""


@click.command(epilog=_EPILOG)
@options.inputs(has_element_bytes=False)
@options.constraints
@options.form
def space(inputs: Inputs, form: Style, **given: object) -> None:
    """Count the schedules that a search of WORKLOAD chooses from.

    WORKLOAD is a name, a file, or a problem such as gemm:m=4,n=3,k=2.
    Element sizes do not change the count.
    """
    from loopsched.base.rows import Row
    from loopsched.scheduler import space_size

    chosen, machine = inputs.chosen, inputs.machine
    constraints = options.constraints_of(given)
    rows: list[Row] = [
        {
            "layer": number,
            "problem": problem.name,
            "arch": inputs.arch,
            "space_size": space_size(problem, machine, constraints),
        }
        for number, problem in zip(chosen.numbers, chosen.workload.problems, strict=True)
    ]
    if not output.shows_table(_COLUMNS, rows, form):
        return
    click.echo()
    total = sum(row["space_size"] for row in rows)
    about = "" if f"{total:,}" == scaled(total) else f", about {scaled(total)}"
    output.print_text(f"{count(total, 'schedule')} in total{about}.")
