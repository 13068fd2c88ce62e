"""``tiles``: what two tile sizes of a schedule do to its time or traffic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from loopsched.base.units import scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs, on
from loopsched.cli.output import Style
from loopsched.show.table import Column

if TYPE_CHECKING:
    from loopsched.study.tile_map import TileMap

_EPILOG = """\b
loopsched tiles gemm:m=1760,n=128,k=1760 --plot tiles.svg
loopsched tiles resnet50 -l conv1 --dims K,Q --quantity dram_bytes
loopsched tiles gemm:m=64,n=64,k=64 'M:64@SM N:64 K:64 M:8' --dims M,N
"""
_FIELDS = {"time": ("time_s", "s"), "dram_bytes": ("dram_bytes", "B")}
# Characters of a column of the table, the gap before it included.
_WIDE = 9
_MOST_COLUMNS, _MOST_ROWS = 12, 16


@click.command(epilog=_EPILOG)
@options.inputs("problem", schedule=False)
@click.option(
    "--dims",
    "pair",
    metavar="DIM,DIM",
    help="Dimensions whose tiles change: M,N for their innermost loops, or M:128,N for the loop "
    "of that extent. By default the two largest tiled dimensions.",
)
@options.choice(
    "--quantity", "-q", of=list(_FIELDS), meaning="Quantity to map: promised time or DRAM traffic."
)
@options.count(
    "--steps", least=3, most=200, default=16, meaning="At most this many sizes per dimension."
)
@options.jobs("Score N rows of the map in parallel.")
@options.plot("the heat map")
@options.form
def tiles(
    inputs: Inputs,
    pair: str | None,
    quantity: Literal["time", "dram_bytes"],
    steps: int,
    jobs: int,
    plot: tuple[Path, ...],
    form: Style,
) -> None:
    """Map the cost of SCHEDULE over two of its tile sizes.

    PROBLEM is a workload with --layer, or a problem such as gemm:m=4,n=3,k=2.
    SCHEDULE is text or @FILE; by default the best one is found by a search.
    """
    from loopsched.show.plots.tiles import plot_tiles, tiles_rows
    from loopsched.study.tile_map import check_dims, tile_map

    one, machine = inputs.problem, inputs.machine
    chosen = [dim.strip() for dim in pair.split(",")] if pair else []
    if inputs.schedule_text is None:
        check_dims(one, chosen)  # before the search
    nest = inputs.schedule
    # Rows are as many as the first dimension has sizes, `steps` at most.
    with output.Progress(steps) as progress:
        found = tile_map(one, machine, nest, chosen, steps=steps, jobs=jobs, progress=progress.step)
    if form == "table":
        _print(found, quantity)
    else:
        output.print_rows(tiles_rows(found), form)
    output.save_plots(
        plot, lambda: tiles_rows(found), lambda: plot_tiles(found, quantity, name=inputs.name)
    )


def _print(found: TileMap, quantity: str) -> None:
    field, unit = _FIELDS[quantity]
    best = found.best(field)
    least = getattr(best.evaluation, field)
    first, second = found.dims
    room = min(_MOST_COLUMNS, (output.width() - 10) // _WIDE)
    rows = _thinned(found.sizes[0], (found.current[0], best.sizes[0]), _MOST_ROWS)
    columns = _thinned(found.sizes[1], (found.current[1], best.sizes[1]), max(2, room))
    cells, most = [], 1
    for one in rows:
        line = []
        for other in columns:
            tried = found.by_sizes[one, other]
            score, sizes = tried.evaluation, (one, other)
            text = "-" if score is None else f"{getattr(score, field) / least:.2f}"
            mark = "*" * (sizes == found.current) + "<" * (sizes == best.sizes)
            line.append((text, mark + "!" * (not tried.keeps)))
        most = max(most, *(len(mark) for _, mark in line))
        cells.append(line)
    titles = [Column(f"{first} \\ {second}"), *(Column(f"{n}{' ' * most}") for n in columns)]
    texts = [[text + mark.ljust(most) for text, mark in line] for line in cells]
    output.print_table(titles, [[one, *line] for one, line in zip(rows, texts, strict=True)])
    click.echo()
    shown = len(rows) * len(columns)
    what = "Promised time" if quantity == "time" else "Promised DRAM traffic"
    output.print_text(
        f"{what} with tiles of {first} (down) and {second} (across), relative to the least over "
        f"all {len(found.cells)} pairs of sizes: {scaled(least, unit)} at {first} {best.sizes[0]}, "
        f"{second} {best.sizes[1]} (<). *: the schedule; !: a level holds less than with the "
        "given schedule; -: does not fit."
        + (f" {shown} are shown; --format csv has all." if shown < len(found.cells) else "")
    )
    output.print_text(
        f"{found.problem.name} on {on(found.arch, [found.problem])}: {found.schedule}"
    )


def _thinned(sizes: Sequence[int], wanted: Sequence[int], most: int) -> list[int]:
    """Leave sizes out evenly until few enough remain; never those that are wanted.

    Examples
    --------
    >>> _thinned([1, 2, 4, 8, 16, 32], [4], 4)
    [1, 4, 16, 32]
    """
    if len(sizes) <= most:
        return list(sizes)
    kept = {*wanted, sizes[-1]}
    for step in range(2, len(sizes) + 1):
        found = kept | set(sizes[::step])
        if len(found) <= most:
            return sorted(found)
    return sorted(kept)
