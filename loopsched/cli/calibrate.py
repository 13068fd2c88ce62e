"""``calibrate``: measure the machine at hand and write its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.base.errors import ArchError
from loopsched.base.files import target_of, write_text
from loopsched.cli import options, output
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.gpu.calibration.machine import Calibration

_EPILOG = """\b
loopsched calibrate gpu --arch-out my_gpu.yaml
loopsched pick gemm:m=4096,n=4096,k=4096 --arch my_gpu.yaml
"""


@click.group()
def calibrate() -> None:
    """Measure the machine at hand: calibrate gpu."""


@calibrate.command(epilog=_EPILOG)
@click.option("--arch-out", metavar="FILE.yaml", help="Write the machine as a file for --arch.")
@click.option(
    "--like",
    metavar="NAME|FILE",
    help="Machine for what cannot be measured; by default the shipped one of this GPU, else "
    "one of its compute capability.",
)
@options.form
def gpu(arch_out: str | None, like: str | None, form: Style) -> None:
    """Measure NVIDIA's GPU at hand with microbenchmarks; less than a minute.

    Needs its driver, and the compiler NVRTC that torch, CuPy and the CUDA toolkit bring.
    """
    from loopsched.exchange.yaml_out import to_yaml
    from loopsched.gpu.calibration.machine import calibrate_gpu
    from loopsched.machines.arch_file import arch_to_dict

    if arch_out is not None:
        if Path(arch_out).suffix not in (".yaml", ".yml"):
            raise ArchError(f"{arch_out}: the file of a machine ends in .yaml")
        target_of(arch_out)
    name = "my_gpu" if arch_out is None else Path(arch_out).stem
    found = calibrate_gpu(name=name, like=like)
    if form == "table":
        _show(found)
    else:
        output.print_rows(found.rows(), form)
    if arch_out is not None:
        write_text(arch_out, to_yaml(arch_to_dict(found.arch)))
        click.echo(f"wrote {arch_out}", err=True)


_COLUMNS = (
    words("what", "what"),
    Column("here", lambda one: one["here"], lambda value: f"{value:.4g}"),
    Column("in its file", lambda one: one["file"], lambda value: f"{value:.4g}"),
    words("unit", "unit"),
    words("how", "how", shrinks="end", spare=1),
)


def _show(found: Calibration) -> None:
    same = "the same GPU" if found.is_same else "another GPU"
    output.print_text(f"{found.properties.name}; beside it '{found.like.name}', {same}")
    output.print_table(_COLUMNS, found.rows())
