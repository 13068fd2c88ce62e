"""``archs`` and ``workloads``: what there is to choose from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from loopsched.base.units import base_unit, format_capacity, scaled
from loopsched.cli import options, output
from loopsched.cli.output import Style
from loopsched.machines.gpu_limits import GPU_KEYS
from loopsched.problems.footprint import tensor_bytes
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.machines.arch import Arch
    from loopsched.machines.gpu_limits import Gpu
    from loopsched.machines.keys import Key
    from loopsched.machines.levels import Level
    from loopsched.problems.workload import Workload


@click.command(epilog="A file of your own works wherever a name does.")
@click.argument("name", required=False)
@options.form
def archs(name: str | None, form: Style) -> None:
    """List the architectures, or show NAME with the source of every number."""
    from loopsched.machines.arch_file import arch_names, arch_to_dict, load_arch

    if name:
        arch = load_arch(name)
        if form == "table":
            _show_arch(arch)
        else:
            output.print_rows([{**arch_to_dict(arch), "digest": arch.digest}], form)
        return
    found = [load_arch(each) for each in arch_names()]
    if form == "table":
        output.print_table(_ARCHS, [_arch_cells(arch) for arch in found])
    else:
        output.print_rows((_arch_row(arch) for arch in found), form)


_ARCHS = (
    words("name"),
    words("machine", shrinks="end"),
    Column("fp32 peak"),
    Column("DRAM", spare=1),
    words("caches, outermost first", shrinks="middle"),
)


def _arch_cells(arch: Arch) -> list[str]:
    row = _arch_row(arch)
    return [
        arch.name,
        arch.title,
        scaled(row["peak_fp32_flops_per_s"], "FLOP/s"),
        scaled(row["dram_bandwidth_bytes_per_s"], "B/s"),
        ", ".join(_cache_text(level) for level in arch.caches),
    ]


def _arch_row(arch: Arch) -> Row:
    rate = arch.compute.peak_macs_per_s("fp32") if "fp32" in arch.compute.data_types else None
    return {
        "name": arch.name,
        "title": arch.title,
        "digest": arch.digest,
        "peak_fp32_flops_per_s": rate and 2 * rate,
        "dram_bandwidth_bytes_per_s": arch.caches[0].bandwidth_bytes_per_s,
        "levels": [
            {
                "name": level.name,
                "kind": level.kind,
                "capacity_bytes": level.capacity_bytes,
                "instances": level.instances,
            }
            for level in arch.levels
        ],
    }


def _cache_text(level: Level) -> str:
    copies = f" x {level.instances}" if level.instances > 1 else ""
    return f"{level.name} {_capacity(level)}{copies}"


def _capacity(level: Level) -> str:
    return "-" if level.capacity_bytes is None else format_capacity(level.capacity_bytes)


def _show_arch(arch: Arch) -> None:
    output.print_text(f"{arch.name}: {arch.title}" if arch.title else arch.name)
    if arch.notes:
        output.print_text(" ".join(arch.notes.split()))
    click.echo()
    output.print_table(
        (
            words("level"),
            words("kind"),
            Column("capacity"),
            Column("instances"),
            Column("from outside"),
            Column("line", spare=2),
            Column("energy", spare=1),
        ),
        [_level_cells(level) for level in arch.levels],
        [_sources(level.sources) for level in arch.levels],
    )
    compute = arch.compute
    click.echo()
    output.print_table(
        (words("compute"), Column("units"), Column("clock"), Column("highest clock")),
        [[compute.unit, str(compute.units), *_clocks(compute.clock_hz, compute.max_clock_hz)]],
        [_sources(compute.sources)],
    )
    click.echo()
    output.print_table(
        (words("data type"), Column("MAC/cycle a unit"), Column("peak")),
        [
            [name, f"{rate:g}", scaled(2 * compute.peak_macs_per_s(name), "FLOP/s")]
            for name, rate in compute.macs_per_cycle_per_unit
        ],
    )
    if arch.gpu is not None:
        click.echo()
        cited = dict(arch.gpu.sources)
        output.print_table(
            (words("of a GPU"), Column("value")),
            [[entry.key, _gpu_value(arch.gpu, entry)] for entry in GPU_KEYS],
            [cited.get(entry.key, "") for entry in GPU_KEYS],
        )
    if arch.constants:
        click.echo()
        output.print_table(
            (words("constant"), Column("value"), words("unit")),
            [[each.name, f"{each.value:,}", each.unit] for each in arch.constants],
            [each.source for each in arch.constants],
        )


def _gpu_value(gpu: Gpu, entry: Key) -> str:
    value = getattr(gpu, entry.field)
    if entry.kind == "choice":
        return str(value)
    if entry.kind == "share" and not entry.required and not value:
        return "not known"
    if entry.kind == "bytes":
        return format_capacity(value) if value else "0"
    if entry.kind == "time":
        return scaled(value, "s")
    unit = f" {base_unit(entry.kind)}" if entry.kind in ("bandwidth_per_cycle", "cycles") else ""
    return f"{value:,}{unit}"


def _level_cells(level: Level) -> list[str]:
    energy = level.energy_pj_per_byte
    return [
        level.name,
        level.kind,
        _capacity(level),
        str(level.instances),
        scaled(level.bandwidth_bytes_per_s, "B/s"),
        f"{level.line_bytes} B" if level.line_bytes else "-",
        f"{energy:g} pJ/B" if energy is not None else "-",
    ]


def _clocks(*hertz: float) -> list[str]:
    return [scaled(each, "Hz") for each in hertz]


def _sources(sources: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{key}: {source}" for key, source in sources)


@click.command(epilog="A file of your own works wherever a name does.")
@click.argument("name", required=False)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of workload files.")
@options.form
def workloads(name: str | None, schema: bool, form: Style) -> None:
    """List the workloads, or show the problems of NAME."""
    from loopsched.cli.inputs import select
    from loopsched.network.text import load_workload
    from loopsched.problems.workload import workload_names, workload_schema

    if schema:
        click.echo(json.dumps(workload_schema(), indent=2))
        return
    columns = _PROBLEMS if name else _WORKLOADS
    if name:
        rows = _problem_rows(select(name).workload)
        cells = [_problem_cells(row) for row in rows]
    else:
        rows = [_workload_row(load_workload(each)) for each in workload_names()]
        cells = [_workload_cells(row) for row in rows]
    if form == "table":
        output.print_table(columns, cells)
    else:
        output.print_rows(rows, form)


_WORKLOADS: tuple[Column, ...] = (
    words("name"),
    Column("problems"),
    words("kinds", spare=1),
    Column("work"),
    words("source", shrinks="end"),
)
_PROBLEMS: tuple[Column, ...] = (
    Column("#"),
    words("problem", shrinks="middle"),
    Column("count", spare=1),
    words("kind"),
    Column("work"),
    Column("data"),
    Column("FLOP/B"),
)


def _workload_row(workload: Workload) -> Row:
    return {
        "name": workload.name,
        "problems": len(workload.problems),
        "kinds": " ".join(sorted({problem.kind for problem in workload.problems})),
        "macs": workload.macs,
        "source": workload.source,
    }


def _workload_cells(row: Row) -> list[str]:
    macs = scaled(row["macs"], "MAC")
    return [*(str(row[key]) for key in ("name", "problems", "kinds")), macs, str(row["source"])]


def _problem_rows(workload: Workload) -> list[Row]:
    return [
        {
            "layer": number,
            "problem": problem.name,
            "count": workload.counts[number],
            "kind": problem.kind,
            "sizes": dict(problem.size),
            "macs": problem.macs,
            "data_bytes": sum(tensor_bytes(problem, tensor) for tensor in problem.tensors),
        }
        for number, problem in enumerate(workload.problems)
    ]


def _problem_cells(row: Row) -> list[str]:
    return [
        *(str(row[key]) for key in ("layer", "problem", "count", "kind")),
        scaled(row["macs"], "MAC"),
        scaled(row["data_bytes"], "B"),
        f"{2 * row['macs'] / row['data_bytes']:.4g}",
    ]
