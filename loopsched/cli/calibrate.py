"""``calibrate``: measure the machine at hand."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from loopsched.cli import options, output
from loopsched.cli.output import Style
from loopsched.show.table import Column, words


@click.group()
def calibrate() -> None:
    """Measure the machine at hand, and write what was measured."""


@calibrate.command(
    epilog="""\b
loopsched calibrate cpu --arch-out host.yaml   then: search ... --arch host.yaml
"""
)
@click.option(
    "--arch-out",
    "out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write an architecture file (.yaml or .json), too.",
)
@options.form
def cpu(out: Path | None, form: Style) -> None:
    """Measure this CPU: clock, multiply-adds, bandwidth and latency of every level.

    It takes about half a minute and all cores that this process may use; let nothing else run.
    """
    from loopsched.cli.detect import write_arch
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
        output.print_text(
            f"vectors of {host.vector_bytes} bytes: {measured.fma_per_cycle} multiply-adds a cycle,"
            f" one every {measured.fma_latency:g} cycles in a chain;"
            f" {measured.load_per_cycle} loads a cycle"
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
