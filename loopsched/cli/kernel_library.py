"""``kernel library``: how long a tuned library takes for products and convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loopsched.base.units import scaled
from loopsched.cli import options, output
from loopsched.cli.estimates import estimate_lines
from loopsched.cli.output import Style
from loopsched.network.selection import select
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.gpu.result import Estimate
    from loopsched.problems.problem import Problem

_EPILOG = """\b
loopsched kernel library gemm:m=7680,n=16,k=2560 --arch v100
loopsched kernel library resnet50 --type fp16 --arch v100
loopsched kernel library vgg16 --layer 3 --algorithm WINOGRAD --arch titan_xp
"""
_COLUMNS = (
    Column("#", spare=4),
    words("problem", shrinks="middle"),
    words("kernel", shrinks="middle", spare=3),
    Column("time"),
    Column("low", spare=2),
    Column("high", spare=2),
    Column("bound", spare=1),
    words("bound by", spare=5),
)


@click.command(epilog=_EPILOG)
@click.argument("workload")
@options.layers
@click.option(
    "--algorithm",
    metavar="NAME",
    help="Of convolutions, in DeepBench's words, such as IMPLICIT_GEMM; by default the fastest "
    "of those that libraries take.",
)
@options.data_type
@options.arch
@options.form
def library(
    workload: str,
    layers: tuple[str, ...],
    algorithm: str | None,
    data_type: str,
    arch: str,
    form: Style,
) -> None:
    """Estimate how long cuBLAS- and cuDNN-class libraries take.

    WORKLOAD is a name, a file, or a problem such as gemm:m=64,n=64,k=64: matrix
    products and convolutions of any pass, each repeated on warm data.
    """
    from loopsched.gpu.library.estimates import library_estimate
    from loopsched.machines.arch_file import load_arch

    chosen, machine = select(workload, layers), load_arch(arch)
    problems = chosen.workload.problems
    said = [
        library_estimate(one, machine, algorithm=algorithm, data_type=data_type) for one in problems
    ]
    if form != "table":
        rows = zip(chosen.numbers, problems, said, strict=True)
        output.print_rows((_row(*one, machine.name, data_type) for one in rows), form)
        return
    if len(said) == 1:
        output.print_text(f"{problems[0].name} on {machine.name}, {data_type}")
        click.echo()
        for title, text in (("kernel", said[0].kernel), *estimate_lines(said[0])):
            output.print_text(f"{title:<14}{text}", hang=" " * 14)
        return
    output.print_table(
        _COLUMNS,
        [
            [
                str(number),
                problem.name,
                one.kernel,
                *(scaled(s, "s") for s in (one.time_s, one.low_s, one.high_s, one.time_bound_s)),
                one.bound_by,
            ]
            for number, problem, one in zip(chosen.numbers, problems, said, strict=True)
        ],
    )
    click.echo()
    output.print_text("low to high: eight cases of ten, by " + "; ".join(_bases(said)))


def _bases(said: list[Estimate]) -> list[str]:
    return list(dict.fromkeys(one.basis for one in said))


def _row(number: int, problem: Problem, said: Estimate, arch: str, data_type: str) -> Row:
    return {
        "number": number,
        "problem": problem.name,
        "arch": arch,
        "data_type": data_type,
        "kernel": said.kernel,
        "time_s": said.time_s,
        "low_s": said.low_s,
        "high_s": said.high_s,
        "time_bound_s": said.time_bound_s,
        "bound_by": said.bound_by,
        "basis": said.basis,
    }
