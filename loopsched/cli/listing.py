"""``archs`` and ``workloads``: what there is to choose from."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from loopsched.base.rows import Row, picked
from loopsched.base.units import base_unit, format_capacity, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Selection
from loopsched.cli.output import Style
from loopsched.machines.arch import Arch
from loopsched.machines.keys import Key
from loopsched.problems.footprint import problem_bytes
from loopsched.problems.workload import Workload
from loopsched.show.notebook import LEVEL_COLUMNS
from loopsched.show.table import Column, words


@click.command(epilog="Wherever a NAME is accepted, a file of your own is, too.")
@click.argument("name", required=False)
@options.form
def archs(name: str | None, form: Style) -> None:
    """List the architectures, or show NAME with the sources of its numbers.

    The NAME 'host' is this machine's CPU.
    """
    from loopsched.machines.arch_file import arch_names, arch_to_dict, load_arch

    if name:
        arch = load_arch(name)
        if form == "table":
            show_arch(arch)
        else:
            output.print_rows([{**arch_to_dict(arch), "digest": arch.digest}], form)
        return
    rows = [_arch_row(load_arch(each)) for each in arch_names()]
    if form == "table":
        output.print_table(
            _ARCHS, rows, [", ".join(map(_cache, row["levels"][1:])) for row in rows]
        )
        click.echo()
        output.print_text("Below each: its levels, outermost first. 'archs NAME' has the sources.")
    else:
        output.print_rows(rows, form)


_ARCHS = (
    words("name", "name"),
    words("machine", "title", shrinks="end"),
    Column("fp32 peak", "peak_fp32_flops_per_s", "FLOP/s"),
    Column("DRAM", "dram_bandwidth_bytes_per_s", "B/s"),
)


def _arch_row(arch: Arch) -> Row:
    rate = arch.compute.peak_macs_per_s("fp32") if "fp32" in arch.compute.data_types else None
    return {
        **picked(arch, "name", "title", "digest"),
        "peak_fp32_flops_per_s": rate and 2 * rate,
        "dram_bandwidth_bytes_per_s": arch.caches[0].bandwidth_bytes_per_s,
        "levels": [
            picked(level, "name", "kind", "capacity_bytes", "effective_capacity_bytes", "instances")
            for level in arch.levels
        ],
    }


def _cache(level: Row) -> str:
    copies = f" x {level['instances']}" if level["instances"] > 1 else ""
    size, usable = level["capacity_bytes"], level["effective_capacity_bytes"]
    effective = f" ({format_capacity(usable)} effective)" if usable else ""
    return f"{level['name']} {'-' if size is None else format_capacity(size)}{effective}{copies}"


_LEVELS = (
    *LEVEL_COLUMNS,
    Column("line", lambda one: f"{one.line_bytes} B" if one.line_bytes else None, spare=2),
    Column("ways", "ways", spare=3),
    Column("energy", "energy_pj_per_byte", "{:g} pJ/B".format, spare=1),
)


def show_arch(arch: Arch) -> None:
    """Print a machine, its numbers and their sources."""
    output.print_text(f"{arch.name}: {arch.title}" if arch.title else arch.name)
    if arch.notes:
        output.print_text(" ".join(arch.notes.split()))
    click.echo()
    output.print_table(_LEVELS, arch.levels, [_sources(level.sources) for level in arch.levels])
    compute = arch.compute
    click.echo()
    cited = [dict(level.sources) for level in arch.levels] + [dict(compute.sources)]
    columns = (
        words("compute", "unit"),
        Column("units", "units"),
        Column("clock", "clock_hz", "Hz"),
        Column("highest clock", "max_clock_hz", "Hz"),
    )
    output.print_table(columns, [compute], [_sources(compute.sources)])
    click.echo()
    output.print_table(
        (words("data type"), Column("MAC/cycle per unit"), Column("peak")),
        [
            (name, _grouped(rate), _peak(2 * compute.peak_macs_per_s(name), name))
            for name, rate in compute.macs_per_cycle_per_unit
        ],
    )
    for name in ("gpu", "cpu"):
        if (keys := arch.parts.get(name)) is None:
            continue
        click.echo()
        part = getattr(arch, name)
        cited.append(dict(part.sources) | _listed(part, keys))
        output.print_table(
            (words(f"{name.upper()} parameter"), Column("value")),
            [[entry.key, _part_value(part, entry)] for entry in keys],
            [cited[-1].get(entry.key, "") for entry in keys],
        )
    if arch.constants:
        click.echo()
        output.print_table(
            (words("constant"), Column("value"), words("unit")),
            [[each.name, f"{each.value:,}", each.unit] for each in arch.constants],
            [each.source for each in arch.constants],
        )
        cited.append({each.name: each.source for each in arch.constants})
    if any("unverified" in source for sources in cited for source in sources.values()):
        click.echo()
        output.print_text("unverified: cited from memory, not checked against the source.")


def _grouped(rate: float) -> str:
    return f"{int(rate):,}" if rate == int(rate) else f"{rate:g}"


def _peak(rate: float, data_type: str) -> str:
    return scaled(rate, "OP/s" if data_type.startswith("int") else "FLOP/s")


def _listed(part: object, keys: Sequence[Key]) -> dict[str, str]:
    """List the words of parts that may be many."""
    lists = [(entry.key, getattr(part, entry.field)) for entry in keys if entry.kind == "names"]
    return {key: " ".join(names) for key, names in lists}


def _part_value(part: object, entry: Key) -> str:
    value = getattr(part, entry.field)
    if value is None:
        return "not known"
    if entry.kind == "choice":
        return str(value)
    if entry.kind == "names":
        return str(len(value))
    if entry.kind in ("share", "power") and not entry.required and not value:
        return "not known"
    if entry.kind == "bytes":
        return format_capacity(value)
    if entry.kind == "time":
        return scaled(value, "s")
    if entry.kind in ("bandwidth_per_cycle", "cycles", "power"):
        return f"{value:,} {base_unit(entry.kind)}"
    return f"{value:,}"


def _sources(sources: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{key}: {source}" for key, source in sources)


@click.command(epilog="Wherever a NAME is accepted, a file of your own is, too.")
@click.argument("name", required=False)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of workload files.")
@options.layer
@options.form
def workloads(name: str | None, schema: bool, layers: tuple[str, ...], form: Style) -> None:
    """List the workloads, or show the problems of NAME."""
    from loopsched.cli.inputs import select
    from loopsched.network.text import load_workload
    from loopsched.problems.workload import workload_names, workload_schema

    if schema:
        click.echo(json.dumps(workload_schema(), indent=2))
        return
    if name:
        output.shows_table(_PROBLEMS, _problem_rows(select(name, layers)), form)
    else:
        every = [_workload_row(load_workload(each)) for each in workload_names()]
        output.shows_table(_WORKLOADS, every, form)


_WORKLOADS = (
    words("name", "name"),
    Column("problems", "problems"),
    words("kinds", "kinds", spare=1),
    Column("work", "macs", "MAC"),
    words("source", "source", shrinks="end"),
)
_PROBLEMS = (
    Column("#", "layer"),
    words("problem", "problem", shrinks="middle"),
    Column("count", "count", spare=1),
    words("kind", "kind"),
    Column("work", "macs", "MAC"),
    Column("data", "data_bytes", "B"),
    Column("FLOP/B", lambda row: 2 * row["macs"] / row["data_bytes"], ""),
)


def _workload_row(workload: Workload) -> Row:
    return {
        "name": workload.name,
        "problems": len(workload.problems),
        "kinds": " ".join(sorted({problem.kind for problem in workload.problems})),
        "macs": workload.macs,
        "source": workload.source,
    }


def _problem_rows(chosen: Selection) -> list[Row]:
    found = chosen.workload
    return [
        {
            "layer": number,
            "problem": problem.name,
            "count": count,
            "kind": problem.kind,
            "sizes": dict(problem.size),
            "macs": problem.macs,
            "data_bytes": problem_bytes(problem),
        }
        for number, problem, count in zip(chosen.numbers, found.problems, found.counts, strict=True)
    ]
