"""``kernel library``: how long a tuned library takes for GEMMs and convolutions."""

from __future__ import annotations

import click

from loopsched.base.rows import picked
from loopsched.cli import options, output
from loopsched.cli.estimates import estimate_lines
from loopsched.cli.inputs import select
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

_EPILOG = """\b
loopsched kernel library gemm:m=7680,n=16,k=2560 --arch v100
loopsched kernel library resnet50 --type fp16 --arch v100
loopsched kernel library vgg16 --layer 3 --algorithm WINOGRAD --arch titan_xp
"""
_SAID = ("kernel", "time_s", "low_s", "high_s", "time_bound_s", "bound_by", "basis")
_COLUMNS = (
    Column("#", "layer", spare=4),
    words("problem", "problem", shrinks="middle"),
    words("kernel", "kernel", shrinks="middle", spare=3),
    Column("time", "time_s", "s"),
    Column("low", "low_s", "s", spare=2),
    Column("high", "high_s", "s", spare=2),
    Column("at least", "time_bound_s", "s", spare=1),
    words("bound by", "bound_by", spare=5),
)


@click.command(epilog=_EPILOG)
@click.argument("workload")
@options.layers
@click.option(
    "--algorithm",
    metavar="NAME",
    help="Algorithm of convolutions, named as in DeepBench, such as IMPLICIT_GEMM; by default "
    "the fastest of the usual ones.",
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
    """Estimate the time of a tuned library's kernels (cuBLAS, cuDNN).

    WORKLOAD is a name, a file, or a problem such as gemm:m=64,n=64,k=64. Its
    problems are GEMMs and convolutions, forward or backward; caches are warm.
    """
    from loopsched.gpu.library.estimates import library_estimate
    from loopsched.machines.arch_file import load_arch

    chosen, machine = select(workload, layers), load_arch(arch)
    problems = chosen.workload.problems
    said = [
        library_estimate(one, machine, algorithm=algorithm, data_type=data_type) for one in problems
    ]
    if form == "table" and len(said) == 1:
        output.print_text(f"{problems[0].name} on {machine.name}, {data_type}")
        click.echo()
        output.print_titled((("kernel", said[0].kernel), *estimate_lines(said[0])))
        return
    of = {"arch": machine.name, "data_type": data_type}
    rows = [
        {"layer": number, "problem": problem.name, **of, **picked(one, *_SAID)}
        for number, problem, one in zip(chosen.numbers, problems, said, strict=True)
    ]
    if not output.shows_table(_COLUMNS, rows, form):
        return
    click.echo()
    bases = dict.fromkeys(one.basis for one in said)
    output.print_text(
        f"On {machine.name}, {data_type}; low to high: 80 % interval, from the sources below."
    )
    for basis in bases:
        output.print_text(f"- {basis}", hang="  ")
