"""``export``: a schedule for other tools, and as code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.base.errors import InputError
from loopsched.base.files import suffixed, write_text
from loopsched.base.units import count
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs

if TYPE_CHECKING:
    from loopsched.exchange.exported import Exported
    from loopsched.machines.arch import Arch
    from loopsched.nests.nest import Schedule
    from loopsched.problems.problem import Problem

_FORMS = ("timeloop", "zigzag", "python", "c", "llvm", "triton", "tvm")
_PROGRAMS = ("c", "llvm")
_NAMED = ("python", *_PROGRAMS)
_SUFFIXES = {"c": (".c",), "llvm": (".ll",), "triton": (".json",)} | {
    **dict.fromkeys(("python", "tvm"), (".py",)),
    **dict.fromkeys(("timeloop", "zigzag"), (".yaml", ".yml")),
}
_EPILOG = """\b
loopsched export resnet50 --layer 2 --to timeloop -o dir    the best schedule
loopsched export gemm:m=9,n=9,k=9 'M:9 N:9 K:9' --to c      yours
loopsched export resnet50 --layer 2 --to c --arch host      as 'run' does
loopsched export results.jsonl --to zigzag -o dir           saved by a search
"""


@click.command(epilog=_EPILOG)
@options.inputs("problem", schedule=False)
@click.option(
    "--to",
    "form",
    type=click.Choice(_FORMS),
    required=True,
    help="Format to write; triton: parameters as JSON (kernels: 'loopsched pick --emit').",
)
@options.target(
    "File (with a suffix) or folder to write; by default standard output.",
    "FILE|FOLDER",
)
@click.option(
    "--residual",
    is_flag=True,
    help="Timeloop: write partial tiles as P=7,3, for timeloop-model; by default dimensions are "
    "enlarged.",
)
@options.text("--name", metavar="NAME", meaning="Name of the function in code.", default="compute")
@options.rank
def export(
    inputs: Inputs, form: str, target: str | None, residual: bool, name: str, rank: int | None
) -> None:
    """Write a schedule for other tools, or as code.

    PROBLEM is a workload (--layer selects problems), or a problem such as
    gemm:m=4,n=3,k=2. SCHEDULE is text or @FILE; by default the best one is found by
    a search. PROBLEM may also be a file of saved results, whose schedules are
    written.
    """
    if form != "timeloop":
        options.refuse(options.stated("residual"), "only to --to timeloop")
    if form not in _NAMED:
        options.refuse(options.stated("name"), "only to --to python, c and llvm")
    if target is not None and _is_file(Path(target)):
        suffixed(target, _SUFFIXES[form], f"what '--to {form}' writes")
    is_chosen = rank is None and not inputs.has_schedules
    if form in _PROGRAMS and is_chosen and inputs.machine.cpu is not None:
        problems = inputs.chosen.workload.problems
        made = [
            (one, _exported(form, name, residual, one, None, inputs.machine)) for one in problems
        ]
        _finish(made, target)
        return
    found = list(inputs.schedules(rank))
    if form == "zigzag":
        from loopsched.exchange.zigzag import to_zigzag

        # One workload of all layers; the machine of a result file is one, too.
        made = [(found[0][0], to_zigzag([(one, nest) for one, nest, _ in found], found[0][2]))]
    else:
        made = [
            (one, _exported(form, name, residual, one, nest, machine))
            for one, nest, machine in found
        ]
    _finish(made, target)


def _finish(made: list[tuple[Problem, Exported]], target: str | None) -> None:
    _deliver(made, target)
    output.print_notes(_notes(made))


def _exported(
    form: str, name: str, residual: bool, problem: Problem, schedule: Schedule | None, arch: Arch
) -> Exported:
    if form in _PROGRAMS:
        from loopsched.exchange.kernel_code import to_c, to_llvm

        return (to_c if form == "c" else to_llvm)(problem, schedule, arch, name=name)
    if schedule is None:
        raise InputError(f"a schedule is needed for {form}")
    if form == "timeloop":
        from loopsched.exchange.timeloop import to_timeloop

        return to_timeloop(problem, schedule, arch, residual=residual)
    if form == "triton":
        from loopsched.exchange.tiles import to_triton

        return to_triton(problem, schedule, arch)
    if form == "tvm":
        from loopsched.exchange.tvm_code import to_tvm

        return to_tvm(problem, schedule)
    from loopsched.exchange.python_code import to_python

    return to_python(problem, schedule, name=name)


def _notes(made: list[tuple[Problem, Exported]]) -> Iterator[str]:
    """Give each sentence once; what does not hold for all names the problems it is of."""
    names: dict[str, list[str]] = {}
    for one, files in made:
        for sentence in files.lost:
            names.setdefault(sentence, []).append(one.name)
    for sentence, of in names.items():
        if len(of) == len(made):
            yield sentence
        else:
            yield f"{of[0]}{f' and {len(of) - 1} more' if len(of) > 1 else ''}: {sentence}"


def _deliver(made: list[tuple[Problem, Exported]], target: str | None) -> None:
    """Print what was made, or write it: one problem's files, or a folder for each."""
    if target is None:
        for number, (_, files) in enumerate(made):
            click.echo(("\n" if number else "") + files.text(), nl=False)
        return
    place = Path(target)
    if _is_file(place):
        if len(made) > 1:
            raise InputError(f"{target}: {len(made)} problems need a folder")
        files = made[0][1]
        if len(files.files) > 1 and not files.is_one_document:
            raise InputError(f"{target}: {' and '.join(files.names)} need a folder")
        # A program names its file where it says how to build it.
        text = files.text().replace(f" {files.names[0]} ", f" {shlex.quote(place.name)} ", 1)
        write_text(place, text)
        output.wrote(target)
        return
    for number, (problem, files) in enumerate(made):
        files.write(place if len(made) == 1 else place / f"{number:03}_{_plain(problem.name)}")
    output.wrote(target, count(sum(len(files.files) for _, files in made), "file"))


def _is_file(place: Path) -> bool:
    """Whether a place to write to is a file, not a folder."""
    return bool(place.suffix) and not place.is_dir()


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:60]
