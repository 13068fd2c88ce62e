"""``run``: problems compiled for this CPU, checked and timed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from loopsched.base.arguments import DATA_TYPE_BYTES
from loopsched.base.errors import ArchError
from loopsched.base.units import count, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs
from loopsched.cli.origin import origin
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.machines.arch import Arch
    from loopsched.problems.problem import Problem

# A type that a problem in one line names for its elements.
_NAMED = re.compile(r"""element_bytes"?\s*[=:]\s*"?([a-z]\w*)""")
_EPILOG = """\b
loopsched run gemm:m=1024,n=1024,k=1024               on all cores
loopsched run resnet50 --threads 1 --out one.jsonl    every layer, kept
loopsched run gemm:m=64,n=4096,k=1024 --measure 8     time the 8 best plans
loopsched run gemm:m=512,n=512,k=512 --type int8
loopsched run --onnx model.onnx --check               against ONNX Runtime
"""


@click.command(epilog=_EPILOG)
@click.argument("problem", metavar="[PROBLEM|WORKLOAD]", required=False)
@click.option("--onnx", metavar="MODEL.onnx", help="Run the layers of a model.")
@click.option(
    "--check",
    is_flag=True,
    help="Check against ONNX Runtime, too, and time it instead of NumPy, for fp32 GEMMs and "
    "forward convolutions; works with and without --onnx.",
)
@options.compiled
@options.count(
    "--measure", default=1, meaning="Time the kernels of the N best plans and keep the fastest."
)
@options.arch_of("host")
@options.out
@options.form
def run(
    problem: str | None,
    onnx: str | None,
    check: bool,
    layers: tuple[str, ...],
    threads: int | None,
    data_type: str | None,
    measure: int,
    arch: str,
    out: str | None,
    form: Style,
) -> None:
    """Compile PROBLEM for this CPU, check the result and time it against NumPy.

    Every distinct problem of a WORKLOAD is run. NumPy is timed on as many threads
    as the kernel. The column 'promised' is the time of the best schedule in the
    traffic model, 'estimated' the time of this kernel in the model that chose it.
    """
    if (problem is None) == (onnx is None):
        raise click.UsageError("give PROBLEM, WORKLOAD or --onnx MODEL.onnx, and only one of them")
    if data_type is None:
        _refuse_types(problem or "")
    inputs = Inputs(problem or onnx or "", layers, arch=arch)
    progress = output.Progress(len(inputs.chosen.numbers))
    rows = _rows(inputs, (threads, data_type, measure, check), progress)
    chosen = len(inputs.chosen.numbers)
    output.report_rows(
        rows, out, form, progress,
        lambda kept: _show(kept, chosen, inputs.machine, is_checked=check),
    )  # fmt: skip


def _refuse_types(text: str) -> None:
    """Refuse a type that is named and not computed with: a size alone would stand for another."""
    for name in _NAMED.findall(text):
        if name in DATA_TYPE_BYTES and name not in options.CPU_TYPES:
            allowed = ", ".join(map(repr, options.CPU_TYPES))
            raise click.BadParameter(
                f"{name!r} is not one of {allowed}.", param_hint="'element_bytes'"
            )


def _refuse_rates(problem: Problem, data_type: str | None, machine: Arch) -> None:
    """Refuse fp64 where nothing says how fast it is; no wider type could stand for it."""
    from loopsched.codegen.element import type_of

    known = machine.compute.data_types
    if (data_type or type_of(problem)) == "fp64" and "fp64" not in known:
        raise ArchError(
            f"'{machine.name}' has no rate for fp64 (it has: {' '.join(known)}); fp64 needs an "
            "architecture file that states its rate"
        )


def _rows(
    inputs: Inputs,
    given: tuple[int | None, str | None, int, bool],
    progress: output.Progress,
) -> Iterator[list[Row]]:
    from loopsched.codegen.choose import core_of
    from loopsched.codegen.compiled import n_threads_of
    from loopsched.codegen.measure import run_kernel

    threads, data_type, n_measured, onnx = given
    chosen, source = inputs.chosen, origin(inputs)
    core_of(inputs.machine, 4)  # refuses what is no CPU
    n_threads_of(inputs.machine, threads)  # refuses too many, before anything is compiled
    counts = chosen.workload.counts
    for number, one, times in zip(chosen.numbers, chosen.workload.problems, counts, strict=True):
        _refuse_rates(one, data_type, inputs.machine)
        click.echo(f"compiling {one.name}", err=True)
        _, found = run_kernel(
            one,
            inputs.machine,
            threads=threads,
            data_type=data_type,
            n_measured=n_measured,
            onnx=onnx,
        )
        yield [{"layer": number, "count": times} | found.row() | source]
        progress.step(one.name)


# What NumPy and ONNX Runtime are called in rows, and by people.
_REFERENCES = {"numpy": "NumPy"}


def _columns(reference: str, is_integer: bool) -> tuple[Column, ...]:
    return (
        words("problem", "problem", shrinks="middle"),
        Column("promised", "promised_s", "s", spare=2),
        Column("estimated", "estimate_s", "s", spare=1),
        Column("measured", "measured_s", "s"),
        Column(reference, "reference_s", "s"),
        Column("GOP/s" if is_integer else "GFLOP/s", "gflops", ""),
        words("bound by", "bound_by", spare=1),
    )


def _show(rows: list[Row], chosen: int, machine: Arch, *, is_checked: bool) -> None:
    threads = rows[0]["threads"]
    names = dict.fromkeys(row["reference"] for row in rows)
    checked = "all results equal NumPy's"
    if "ONNX Runtime" in names:
        checked += " and ONNX Runtime's" + ", where it was run" * (len(names) > 1)
    elif is_checked:
        what = "GEMMs and forward convolutions" if rows[0]["data_type"] == "fp32" else "fp32"
        checked += f"; ONNX Runtime checks {what} only"
    output.print_text(
        f"{rows[0]['data_type']} on {count(threads, 'thread')}, planned for "
        f"{machine.title or machine.name}; {checked}"
    )
    libraries = dict.fromkeys(row["library"] for row in rows if row["library"])
    if libraries:
        output.print_text(f"NumPy multiplies with {', '.join(libraries)}")
    named = " or ".join(_REFERENCES.get(name, name) for name in names)
    is_integer = all(row["data_type"] == "int8" for row in rows)
    output.print_table(_columns(named, is_integer), rows, [row["plan"] for row in rows])
    if is_integer and all(row["reference_s"] is None for row in rows):
        output.print_text(f"{named} is not timed in int8 (-).")
    if len(rows) > 1:
        total = {
            name: sum(row[name] * row["count"] for row in rows)
            for name in ("promised_s", "estimate_s", "measured_s")
        }
        done = (
            count(chosen, "problem") if len(rows) == chosen else f"{len(rows)} of {chosen} problems"
        )
        output.print_text(
            f"{done}, repeats included: promised {scaled(total['promised_s'], 's')}, "
            f"estimated {scaled(total['estimate_s'], 's')}, "
            f"measured {scaled(total['measured_s'], 's')}"
        )
