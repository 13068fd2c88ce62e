"""``calibrate``: measure this CPU or GPU and write its file."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.cli import options, output
from loopsched.cli.detect import arch_target, write_arch
from loopsched.cli.group import Group
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.gpu.calibration.machine import Calibration

_arch_out = click.option(
    "--arch-out",
    "out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=lambda context, parameter, given: given and arch_target(given),
    help="Also write an architecture file (.yaml or .json).",
)


@click.group(cls=Group)
def calibrate() -> None:
    """Measure this CPU or GPU for an architecture file."""


@calibrate.command(
    epilog="""\b
loopsched calibrate cpu --arch-out host.yaml
loopsched search resnet50 --arch host.yaml
"""
)
@_arch_out
@options.form
def cpu(out: Path | None, form: Style) -> None:
    """Measure this CPU's clock, arithmetic, bandwidths and latencies.

    Takes about half a minute on all cores that this process may use; run nothing
    else meanwhile.
    """
    from loopsched.codegen.rates import measure
    from loopsched.machines.arch_file import arch_from_dict
    from loopsched.machines.arch_format import arch_to_dict
    from loopsched.machines.host import data_of, read_host

    host = read_host()
    measured, rows = measure(
        host, date.today().isoformat(), lambda what: click.echo(f"measuring {what} ...", err=True)
    )
    arch = arch_from_dict(data_of(host, measured), where="calibrate cpu")
    if form == "table":
        output.print_text(f"{arch.title}, {(measured.clock_hz or 0) / 1e9:.2f} GHz")
        adds, loads = measured.fma_per_cycle, measured.load_per_cycle
        output.print_text(
            f"vectors of {host.vector_bytes} bytes: {adds} multiply-add{'s' * (adds != 1)} per "
            f"cycle, one every {measured.fma_latency:g} cycles in a chain;"
            f" {loads} load{'s' * (loads != 1)} per cycle"
        )
        click.echo()
    output.shows_table(_LEVELS, rows, form)
    if out is not None:
        write_arch(arch_to_dict(arch), out)


_LEVELS = (
    words("from", "level"),
    Column("cores", "cores"),
    Column("bandwidth", "bytes_per_s", "B/s"),
    Column("latency", "latency_cycles", "{} cycles".format),
)


_GPU = """\b
loopsched calibrate gpu --arch-out my_gpu.yaml
loopsched pick gemm:m=4096,n=4096,k=4096 --arch my_gpu.yaml
"""


@calibrate.command(epilog=_GPU)
@_arch_out
@click.option(
    "--like",
    metavar="NAME|FILE",
    help="Architecture from which to copy what cannot be measured; by default the shipped one of "
    "this GPU, else one of its compute capability.",
)
@options.form
def gpu(out: Path | None, like: str | None, form: Style) -> None:
    """Measure this machine's NVIDIA GPU with microbenchmarks.

    Takes less than a minute. Needs NVIDIA's driver, and NVRTC, which the CUDA
    toolkit, CUDA builds of torch and 'pip install nvidia-cuda-nvrtc' include.
    """
    from loopsched.gpu.calibration.machine import calibrate_gpu
    from loopsched.machines.arch_file import arch_to_dict

    name = "my_gpu" if out is None else out.stem
    found = calibrate_gpu(name=name, like=like)
    if form == "table":
        _show(found)
    else:
        output.print_rows(found.rows(), form)
    if out is not None:
        write_arch(arch_to_dict(found.arch), out)


_RATES = (
    words("what", "what"),
    Column("here", lambda one: one["here"], lambda value: f"{value:.4g}"),
    Column("in its file", lambda one: one["file"], lambda value: f"{value:.4g}"),
    words("unit", "unit"),
    words("how", "how", shrinks="end", spare=1),
)


def _show(found: Calibration) -> None:
    same = "the same GPU" if found.is_same else "another GPU"
    output.print_text(f"{found.properties.name}; compared with '{found.like.name}', {same}")
    output.print_table(_RATES, found.rows())
