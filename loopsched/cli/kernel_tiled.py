"""``kernel tiled``: a tiled GEMM or convolution of your own on a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from loopsched.base.rows import picked
from loopsched.base.units import binary, count, scaled
from loopsched.cli import options, output
from loopsched.cli.estimates import estimate_lines, occupancy_text
from loopsched.cli.inputs import select_one
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.gpu.library.tiled import TiledKernel

_EPILOG = """\b
loopsched kernel tiled gemm:m=8192,n=8192,k=8192 --group-m 8 -a h200
loopsched kernel tiled gemm:m=512,n=512,k=65536 --tile 64x64x8 --split-k 16
loopsched kernel tiled resnet50 --layer 4 --tile 128x64x8
"""

_TRAFFIC = {
    "closed form": "computed in closed form from the order of blocks",
    "replay": "counted in a replay of every tile through L2",
}


@click.command(epilog=_EPILOG)
@click.argument("problem")
@options.text(
    "--tile",
    metavar="MxNxK",
    meaning="Rows and columns of a block's output tile, and its K step.",
    default="128x128x32",
)
@options.count(
    "--group-m",
    default=1,
    meaning="Rows of tiles in a group of blocks; within a group the row changes fastest.",
)
@options.count(
    "--split-k", default=1, meaning="Blocks among which the reduction of each output tile is split."
)
@options.count("--stages", default=3, meaning="K steps held in shared memory at once.")
@options.count("--threads", default=256, meaning="Threads per block.")
@options.count("--registers", meaning="Registers per thread; estimated by default.")
@options.data_type
@click.option(
    "--replay",
    is_flag=True,
    help="Replay every tile of a GEMM through L2: slower, more accurate.",
)
@options.layers
@options.arch
@options.form
def tiled(
    problem: str,
    tile: str,
    data_type: str,
    replay: bool,
    layers: tuple[str, ...],
    arch: str,
    form: Style,
    **counts: int | None,
) -> None:
    """Estimate your own tiled kernel: resources, traffic and time.

    PROBLEM is a GEMM or a forward convolution, such as gemm:m=64,n=64,k=64, or a
    workload with --layer. A convolution runs as a GEMM of output pixels by
    output channels.
    """
    from loopsched.gpu.library.tiled import tiled_conv, tiled_gemm
    from loopsched.machines.arch_file import load_arch

    tiling = {"tile": _tile(tile), **counts}
    one, machine = select_one(problem, layers), load_arch(arch)
    if one.kind == "conv2d":
        if replay:
            raise click.UsageError("--replay is for GEMMs only")
        found = tiled_conv(one, machine, data_type=data_type, **tiling)
    else:
        found = tiled_gemm(one, machine, data_type=data_type, replay=replay, **tiling)
    if form == "table":
        _show(found)
    else:
        output.print_rows([_row(found)], form)


def _tile(text: str) -> tuple[int, int, int]:
    cut = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})", text.strip())
    if cut is None:
        raise click.BadParameter(
            f"'{text[:40]}' is not three whole numbers such as 128x128x32", param_hint="'--tile'"
        )
    m, n, k = (int(part) for part in cut.groups())
    return m, n, k


def _show(found: TiledKernel) -> None:
    tile = "x".join(map(str, found.tile))
    output.print_text(f"{found.problem} on {found.arch}, {found.data_type}, tile {tile}")
    click.echo()
    output.print_titled(_sums(found))
    click.echo()
    intensity = {level: scaled(value) for level, value in found.intensity}
    l2 = [scaled(n, "B") for n in (found.l2_bytes_read, found.l2_bytes_written)]
    dram = [scaled(n, "B") for n in (found.dram_bytes_read, found.dram_bytes_written)]
    rows = [
        ["shared memory", scaled(found.shared_bytes_read, "B"), "", intensity["shared"]],
        ["L2", *l2, intensity["L2"]],
        ["DRAM", *dram, intensity["DRAM"]],
    ]
    titles = map(Column, ["read", "written", "FLOP/B"])
    output.print_table([words("traffic"), *titles], rows)


def _sums(found: TiledKernel) -> Iterator[tuple[str, str]]:
    yield from estimate_lines(found.estimate)
    down, across, split, batch = found.grid
    parts = f" x {split} parts of the reduction" if split > 1 else ""
    more = f" x {batch} GEMMs" if batch > 1 else ""
    yield (
        "grid",
        f"{count(found.blocks, 'block')}: {down} x {across} tiles{parts}{more}; "
        f"{found.waves:.4g} waves",
    )
    guessed = "" if found.registers_given else " (estimated)"
    yield (
        "block",
        f"{found.threads} threads, {found.registers} registers each{guessed}, "
        f"{binary(found.shared_bytes)} of shared memory",
    )
    yield "occupancy", occupancy_text(found.occupancy)
    yield "DRAM traffic", _TRAFFIC[found.traffic_from]


def _row(found: TiledKernel) -> Row:
    said = found.estimate
    row = picked(found, "problem", "arch", "data_type") | {
        "tile": "x".join(map(str, found.tile)),
        "kernel": said.kernel,
        "grid": "x".join(map(str, found.grid)),
    }
    row |= picked(found, "blocks", "waves", "threads", "registers", "registers_given")
    row |= {
        "shared_bytes": found.shared_bytes,
        "resident_blocks": found.occupancy.blocks,
        "occupancy": found.occupancy.share,
        "limited_by": " ".join(found.occupancy.limited_by),
        "flops": 2 * found.macs,
    }
    row |= picked(
        found, "shared_bytes_read", "l2_bytes_read", "l2_bytes_written", "dram_bytes_read",
        "dram_bytes_written", "traffic_from",
    )  # fmt: skip
    row |= picked(said, "time_s", "low_s", "high_s", "time_bound_s", "bound_by", "basis")
    return row | {f"{name.replace(' ', '_')}_s": seconds for name, seconds in said.parts}
