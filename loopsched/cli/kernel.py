"""``kernel``: what a GPU kernel asks of a machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from loopsched.base.arguments import option_value, pairs
from loopsched.base.rows import picked
from loopsched.base.units import binary, count, percent, scaled
from loopsched.cli import options, output
from loopsched.cli.estimates import estimate_lines, estimate_text, occupancy_text
from loopsched.cli.group import Group
from loopsched.cli.inputs import Inputs
from loopsched.cli.kernel_library import library
from loopsched.cli.kernel_tiled import tiled
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.gpu.counting import AccessCount, Profile
    from loopsched.gpu.estimate import Caches
    from loopsched.gpu.kernel import Kernel
    from loopsched.gpu.result import Estimate
    from loopsched.machines.arch import Arch

_PRESET_EPILOG = """\b
loopsched kernel preset                                  list the presets
loopsched kernel preset layer_base layer=2 batch=100     a layer of report 002
loopsched kernel preset filter_coarse outputs=apart --arch h200
"""
_MAPPED_EPILOG = """\b
loopsched kernel mapped gemm:m=1024,n=1024,k=1024 \\
  'M:1024@block_y N:1024@block_x M:32@thread_y N:32@thread_x K:1024 K:32' \\
  --read A=shared@K --read B=shared@K,pitch=33 --guard load
"""


_caches = options.choice(
    "--caches",
    of=["cold", "warm"],
    meaning="State of L2 at the start: cold for a single run, warm for repeated ones.",
)


@click.group(cls=Group)
def kernel() -> None:
    """Count the resources of a GPU kernel and estimate its time (docs/kernels.md)."""


kernel.add_command(library)
kernel.add_command(tiled)


@kernel.command(epilog=_PRESET_EPILOG)
@click.argument("name", required=False)
@click.argument("settings", nargs=-1, metavar="[OPTION=VALUE]...")
@_caches
@options.arch
@options.form
def preset(
    name: str | None, settings: tuple[str, ...], caches: Caches, arch: str, form: Style
) -> None:
    """Describe a kernel of the four reports; without NAME, list all.

    The reports are those of 'loopsched reproduce'.
    """
    from loopsched.machines.arch_file import load_arch
    from loopsched.published.presets import preset as build

    if name is None:
        _list(form)
        return
    given = pairs(settings, "option", "NAME=VALUE, such as batch=100")
    values = {option: option_value(text) for option, text in given.items()}
    _report(build(name, **values), load_arch(arch), caches, form, name)


@kernel.command(epilog=_MAPPED_EPILOG)
@options.inputs("problem", schedule=True)
@options.many(
    "--read",
    "reads",
    metavar="TENSOR=WHERE",
    meaning="Where a tensor is read: global (default), l2, readonly, constant or shared@PLACE, "
    "with options: 'shared@K,pitch=33', 'global,held=R'. PLACE: block; a dimension (inside the "
    "outermost of its loops that each thread runs); or a loop's number from 0 (before it). "
    "pitch=N: row length in elements; held=PLACE: from there inward, each thread keeps what it "
    "loads in registers. May be repeated.",
)
@options.layouts("TENSOR=AXES")
@options.choice(
    "--guard",
    of=["thread", "load"],
    meaning="Threads outside the output are idle (thread), or compute with guarded loads (load).",
)
@options.choice(
    "--padding",
    of=["skip", "zero"],
    meaning="Points in the padding are skipped, or multiplied by zero.",
)
@options.count("--registers", meaning="Registers per thread; estimated by default.")
@click.option("--unrolled", "is_unrolled", is_flag=True, help="Each thread's loops are unrolled.")
@click.option("--double-buffered", is_flag=True, help="Shared-memory tiles are double-buffered.")
@_caches
@options.form
def mapped(
    inputs: Inputs,
    reads: tuple[str, ...],
    layouts: tuple[str, ...],
    caches: Caches,
    form: Style,
    **given: Any,
) -> None:
    """Describe SCHEDULE of PROBLEM as a GPU kernel.

    Loops marked @block_x, @block_y or @block_z form the grid, those marked
    @thread_x and so on a thread block; each thread runs the other loops.
    """
    from loopsched.gpu.kernel import Kernel

    built = Kernel.of(
        inputs.problem,
        inputs.schedule,
        reads=pairs(reads, "--read", "NAME=VALUE, such as input=shared@C"),
        layouts=pairs(layouts, "--layout", "NAME=VALUE, such as input=NHWC"),
        **given,
    )
    _report(((built, 1),), inputs.machine, caches, form)


def _list(form: Style) -> None:
    from loopsched.published.presets import presets

    rows = [
        {
            "preset": one.name,
            "title": one.title,
            "options": " ".join(
                f"{name}={str(value).lower() if isinstance(value, bool) else value}"
                for name, value in one.options.items()
            ),
        }
        for one in presets()
    ]
    if form != "table":
        output.print_rows(rows, form)
        return
    for row in rows:
        output.print_text(f"{row['preset']:<16}{row['title']}", hang=" " * 16)
        output.print_text(f"{'':<16}{row['options']}", hang=" " * 16)


def _report(
    kernels: Sequence[tuple[Kernel, int]], arch: Arch, caches: Caches, form: Style, name: str = ""
) -> None:
    from loopsched.gpu.counting import profile
    from loopsched.gpu.estimate import estimate_kernel, joined, kept_caches
    from loopsched.gpu.rows import profile_row

    output.announce_counts()
    described = []
    for built, launches in kernels:
        found = profile(built, arch)
        kept = kept_caches(caches, launches)
        said = estimate_kernel(built, arch, caches=kept, found=found)
        described.append((built, launches, found, said))
    if form != "table":
        rows = (profile_row(found, many) | _times(said) for _, many, found, said in described)
        output.print_rows(rows, form)
        return
    for number, (built, launches, found, said) in enumerate(described):
        if number:
            click.echo()
        own = found.name.removeprefix(f"{name} ")
        often = f", launched {launches} times" if launches > 1 else ""
        title = f"{name} ({own})" if name not in ("", found.name) else found.name
        output.print_text(f"{title} on {arch.name}, fp32{often}: {built.schedule}")
        click.echo()
        output.print_titled((*estimate_lines(said), *_lines(found, built)))
        click.echo()
        columns = [*_ACCESSES, *[_PASSES] * (not _is_global(found))]
        useful = Column("useful", partial(_useful, found.sector_bytes), spare=1)
        output.print_table([*columns, useful], found.accesses)
        click.echo()
        _print_traffic(found)
    if len(described) > 1 or described[0][1] > 1:
        total = joined([(said, launches) for _, launches, _, said in described])
        click.echo()
        output.print_titled([("total", estimate_text(total))])
    click.echo()
    passes = (
        "passes: cycles that shared or constant memory takes for a request, 1 without conflicts; "
    )
    output.print_text(
        f"requests: of all warps; sectors: pieces of {described[0][2].sector_bytes} B of global "
        f"memory that they touch; {'' if all(_is_global(one[2]) for one in described) else passes}"
        "useful: share of the sectors' bytes that threads use."
    )


def _is_global(found: Profile) -> bool:
    """Whether a kernel uses neither shared nor constant memory."""
    return all(one.is_global for one in found.accesses)


def _times(said: Estimate) -> Row:
    times = picked(said, "time_s", "low_s", "high_s", "time_bound_s", "bound_by")
    return times | {"parts_s": dict(said.parts), "basis": said.basis}


def _lines(found: Profile, built: Kernel) -> Iterator[tuple[str, str]]:
    grid, block = (" x ".join(map("{:,}".format, shape)) for shape in (found.grid, found.block))
    blocks = count(found.n_blocks, "block")
    yield "grid", f"{grid} = {blocks} of {block} threads; {found.waves:.4g} waves"
    yield (
        "warps",
        f"{found.n_warps:,}; {found.divergent_warps:,} across the edge of the output "
        f"({percent(found.divergence)}), {found.partial_warps:,} partial",
    )
    warps = f" and {count(found.occupancy.warps, 'warp')}"
    yield "occupancy", occupancy_text(found.occupancy, warps)
    guessed = " (estimated)" if built.registers is None else ""
    shared = binary(found.shared_bytes)
    yield (
        "block",
        f"{found.registers} registers per thread{guessed}, {shared} of shared memory, "
        f"{found.syncs:,} __syncthreads()",
    )
    yield (
        "work",
        f"{scaled(found.flops, 'FLOP')}; {found.fma_thread_instructions:,} multiply-adds by "
        f"threads, {found.fma_warp_instructions:,} by warps",
    )
    yield (
        "instructions",
        f"{found.integer_ops:,.0f} on integers (estimated); "
        f"{percent(found.warp_efficiency)} of lanes active",
    )
    per_load = f"{found.sectors_per_load_request:.4g}"
    yield (
        "global",
        f"{per_load} sector{'s' * (per_load != '1')} per load request, "
        f"{percent(found.load_efficiency)} of their bytes useful; stores "
        f"{percent(found.store_efficiency)}",
    )


_ACCESSES = (
    words("access", lambda one: f"{one.tensor} {one.op}", shrinks="middle"),
    words("space", "space"),
    words("stage", "stage"),
    Column("per thread", lambda one: one.trips * one.rounds, "{:,}".format, spare=2),
    Column("requests", "requests", "{:,}".format),
    Column("sectors", lambda one: f"{one.sectors:,}" if one.is_global else ""),
    Column("per req.", lambda one: _ratio(one.sectors, one.requests) if one.is_global else ""),
)
_PASSES = Column(
    "passes", lambda one: "" if one.is_global else _ratio(one.wavefronts, one.requests)
)


def _useful(sector_bytes: int, one: AccessCount) -> str:
    return percent(one.useful_bytes / (sector_bytes * one.sectors)) if one.sectors else ""


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def _print_traffic(found: Profile) -> None:
    l2 = [
        scaled(found.sector_bytes * n, "B") for n in (found.l2_read_sectors, found.l2_write_sectors)
    ]
    dram = [scaled(n, "B") for n in (found.dram_read_bytes, found.dram_write_bytes)]
    rows = [
        ["L1", percent(found.l1_hit), "", "", _intensity(found, "L1")],
        ["L2", "", *l2, _intensity(found, "L2")],
        ["DRAM", "", *dram, _intensity(found, "DRAM")],
    ]
    if math.isfinite(found.intensity("shared")):
        rows.insert(1, ["shared", "", "", "", _intensity(found, "shared")])
    titles = map(Column, ["hits", "read", "written", "FLOP/B"])
    output.print_table([words("traffic (model)"), *titles], rows)


def _intensity(found: Profile, level: Literal["L1", "shared", "L2", "DRAM"]) -> str:
    value = found.intensity(level)
    return scaled(value) if math.isfinite(value) else "-"
