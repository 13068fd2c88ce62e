"""``import``: problems, machines and schedules out of other tools' files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.base.errors import InputError
from loopsched.cli import options, output
from loopsched.cli.detect import write_arch
from loopsched.cli.group import Group
from loopsched.cli.output import Style

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.exchange.timeloop import Imported

_EPILOG = """\b
loopsched import timeloop arch.yaml prob.yaml map.yaml
loopsched import timeloop folder --arch-out arch.yaml --workload-out my.json
"""


@click.group("import", cls=Group)
def import_() -> None:
    """Read the files of other tools: import timeloop FILES."""


@import_.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True)
@options.count(
    "--element-bytes",
    most=1024,
    meaning="Element size; by default the machine's datawidth, else 4.",
)
@click.option(
    "--arch-out",
    metavar="FILE",
    help="Also write the machine as an architecture file (.yaml or .json).",
)
@click.option(
    "--workload-out", metavar="FILE", help="Also write the problem as a workload file (.json)."
)
@options.form
def timeloop(
    files: tuple[str, ...],
    element_bytes: int | None,
    arch_out: str | None,
    workload_out: str | None,
    form: Style,
) -> None:
    """Read Timeloop FILES (version 0.3 or 0.4), or folders of them."""
    from loopsched.exchange.timeloop import read_timeloop

    found = read_timeloop(files, element_bytes=element_bytes)
    if arch_out is not None:
        _write_arch(found, arch_out)
    if workload_out is not None:
        _write_workload(found, workload_out)
    if form == "table":
        _show(found)
    else:
        output.print_rows([_row(found)], form)
    output.print_notes(found.remarks)


def _write_arch(found: Imported, path: str) -> None:
    from dataclasses import replace

    from loopsched.machines.arch_file import arch_to_dict

    if found.arch is None:
        raise InputError(f"{path}: not written: the files have no section 'architecture'")
    name = Path(path).stem if found.arch.name == "timeloop" else found.arch.name
    write_arch(arch_to_dict(replace(found.arch, name=name)), Path(path))


def _write_workload(found: Imported, path: str) -> None:
    from loopsched.problems.workload import Workload
    from loopsched.problems.workload_write import save_workload

    if found.problem is None:
        raise InputError(f"{path}: not written: the files have no section 'problem'")
    if Path(path).suffix != ".json":
        raise InputError(f"{path}: a workload file ends in .json")
    save_workload(Workload(Path(path).stem, (found.problem,)), path)
    output.wrote(path)


def _show(found: Imported) -> None:
    from loopsched.base.units import format_capacity
    from loopsched.problems.projections import projection_text

    if found.problem is not None:
        sizes = " ".join(f"{dim}={size}" for dim, size in found.problem.sizes)
        output.print_text(f"problem   {found.problem.name}: {sizes}", hang="          ")
        for tensor in found.problem.tensors:
            arrow = "written" if tensor.name == found.problem.output else "read"
            output.print_text(f"          {tensor.name}[{projection_text(tensor)}] {arrow}")
        if any("<" in projection_text(tensor) for tensor in found.problem.tensors):
            output.print_text(
                "          <N: the axis has N positions; indices beyond it are padding"
            )
    if found.arch is not None:
        levels = ", ".join(
            level.name
            + (f" {format_capacity(level.capacity_bytes)}" if level.capacity_bytes else "")
            + (f" x {level.instances}" if level.instances > 1 else "")
            for level in found.arch.levels
        )
        compute = found.arch.compute
        output.print_text(
            f"machine   {levels}; {compute.units} {compute.unit} of "
            f"{compute.macs_per_cycle_per_unit[0][1]} MAC/cycle",
            hang="          ",
        )
    if found.schedule is not None:
        output.print_text(f"schedule  {found.schedule}", hang="          ")


def _row(found: Imported) -> Row:
    from loopsched.machines.arch_file import arch_to_dict
    from loopsched.problems.projections import projection_text

    problem = found.problem
    tensors = {} if problem is None else {t.name: projection_text(t) for t in problem.tensors}
    return {
        "problem": problem and problem.name,
        "sizes": dict(problem.size) if problem else None,
        "tensors": tensors,
        "output": problem and problem.output,
        "schedule": found.schedule and str(found.schedule),
        "arch": found.arch and arch_to_dict(found.arch),
        "remarks": list(found.remarks),
    }
