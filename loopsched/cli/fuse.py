"""``fuse``: layers that run together tile by tile, and what that saves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from loopsched.base.errors import WorkloadError
from loopsched.base.units import binary, count, percent, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs
from loopsched.cli.output import Style
from loopsched.network.selection import choose
from loopsched.problems.workload import Workload
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.fusion import FusionPlan, Link, Residency
    from loopsched.network.graph import Network
    from loopsched.problems.problem import Problem

_EPILOG = """\b
loopsched fuse vgg16 --capacity 1MiB
loopsched fuse resnet50 -l conv2_reduce -l conv2_3x3 -l conv2_expand \\
    -c 256KiB --loops
loopsched fuse vgg16 --layers 0:4 --halos recompute --objective time
"""
_MOST_BREAKS = 4
_WHOLE = "whole"
_RESIDENT = (
    Column("#", "layer"),
    words("layer", "problem", shrinks="middle"),
    Column("times", "count"),
    words("kept on chip", "stay", shrinks="end"),
    Column("capacity left", "room_bytes", binary, spare=2),
    Column("DRAM", "dram_bytes", "B"),
    Column("DRAM, none kept", "separate_bytes", "B"),
)
_GROUPS = (
    Column("#", "group"),
    Column("layers", "n_layers"),
    Column("times", "count"),
    words("tile", "cut"),
    words("halos", lambda row: "-" if row["cut"] == _WHOLE else row["halo"], spare=3),
    Column("buffer", "working_set_bytes", binary, spare=1),
    Column("DRAM", "dram_bytes", "B"),
    Column("unfused", lambda row: row["unfused_bytes"] if row["n_layers"] > 1 else None, "B"),
    Column(
        "extra MACs",
        lambda row: percent(_extra(row["extra_macs"], row["macs"])) if row["extra_macs"] else "0",
        spare=2,
    ),
)


@click.command(epilog=_EPILOG)
@options.inputs()
@click.option(
    "--layers",
    "span",
    metavar="A:B",
    help="Only problems A to B-1, by number; either may be omitted.",
)
@options.size(
    "--capacity",
    "-c",
    meaning="On-chip capacity for tiles and tensors, such as 4MiB; by default that of the "
    "machine's level next to memory.",
)
@options.choice(
    "--objective",
    "-o",
    of=["dram_bytes", "time"],
    meaning="What to minimise; time: the roofline bound of each group.",
)
@options.choice(
    "--halos",
    of=["both", "recompute", "retain"],
    meaning="Where tiles overlap: recompute the shared values, retain them, or choose the better.",
)
@options.count("--max-layers", meaning="Maximum number of layers per group.")
@click.option(
    "--residency",
    "keeps_tensors",
    is_flag=True,
    help="Instead run layers one by one and choose the tensors that stay on chip.",
)
@click.option(
    "--no-pooling", is_flag=True, help="Do not assume a pooling layer where shapes require one."
)
@click.option("--loops", is_flag=True, help="Show every group as loops.")
@options.form
def fuse(
    inputs: Inputs,
    span: str | None,
    capacity: str | None,
    no_pooling: bool,
    keeps_tensors: bool,
    loops: bool,
    form: Style,
    **given: Any,
) -> None:
    """Find the consecutive layers of WORKLOAD to run together, tile by tile.

    WORKLOAD is a name, a file or an ONNX model. In a plain list, consecutive
    problems whose shapes fit form a chain; several --layer options set the
    order. A model keeps its own edges, and is cut where tensors branch or
    join.
    """
    from loopsched.fusion import fuse as find
    from loopsched.fusion import residency

    is_grouped = given != {"objective": "dram_bytes", "halos": "both", "max_layers": None}
    if keeps_tensors and (is_grouped or loops):
        raise click.UsageError(
            "--objective, --halos, --max-layers and --loops do not apply to --residency"
        )
    machine = inputs.machine
    room = None if capacity is None else options.size_of("--capacity", capacity)
    chosen = _given(inputs, span)
    output.announce_compilation()
    if keeps_tensors:
        kept = residency(chosen, room, arch=machine, assume_pooling=not no_pooling)
        if form != "table":
            output.print_rows(kept.rows(), form)
            return
        print_residency(kept, machine.name)
        _say_edges(chosen, bool(kept.tensors))
        return
    halos = ["recompute", "retain"] if given["halos"] == "both" else [given["halos"]]
    given |= {"halos": halos, "assume_pooling": not no_pooling}
    plan = find(chosen, room, arch=machine, **given)
    if form != "table":
        output.print_rows(plan.rows(), form)
        return
    print_plan(plan, machine.name, show_loops=loops)
    _say_edges(chosen, bool(plan.links))


def _say_edges(chosen: object, has_chains: bool) -> None:
    if has_chains and isinstance(chosen, Workload | tuple):
        output.print_text(
            "A workload lists no edges: neighbours whose shapes fit form a chain.", hang="  "
        )


def _given(inputs: Inputs, span: str | None) -> Workload | Network | tuple[Problem, ...]:
    """Load a model as a network, anything else as a list; or only some layers, in a row."""
    from loopsched.network.text import is_model, load_network

    if is_model(inputs.text):
        from loopsched.network.parts import part_of, with_element_bytes

        network = load_network(inputs.text)
        if inputs.element_bytes is not None:
            network = with_element_bytes(network, inputs.element_bytes)
        if span is None and not inputs.layers:
            return network
        problems = [node.problem.renamed(node.name) for node in network.layers if node.problem]
        chosen = choose(Workload(network.name, tuple(problems)), inputs.layers).workload
        first, stop = _span(span, len(chosen.problems))
        return part_of(network, {problem.name for problem in chosen.problems[first:stop]})
    chosen = inputs.chosen.workload
    first, stop = _span(span, len(chosen.problems))
    return chosen.problems[first:stop] if inputs.layers or span is not None else chosen


def _span(text: str | None, many: int) -> tuple[int, int]:
    """Read ``a:b`` as the numbers of problems from a to before b; None: all.

    Examples
    --------
    >>> _span("2:", 12), _span(":4", 12)
    ((2, 12), (0, 4))
    """
    if text is None:
        return 0, many
    found = re.fullmatch(r"(\d{0,9}):(\d{0,9})", text.strip())
    first, stop = (int(found[1] or 0), int(found[2] or many)) if found else (0, -1)
    if not 0 <= first < stop <= many:
        raise WorkloadError(
            f"--layers is '{text}'; A:B with 0 <= A < B <= {many} is needed, such as 0:{many}"
        )
    return first, stop


def print_plan(plan: FusionPlan, arch: str, *, show_loops: bool) -> None:
    """Print a plan as a table with a summary."""
    cuts = [" ".join(f"{dim}:{n}" for dim, n in group.cut_tile) for group in plan.groups]
    rows = [{**row, "cut": cut or _WHOLE} for row, cut in zip(plan.rows(), cuts, strict=True)]
    time = Column("time", "time_s", "s", spare=0 if plan.objective == "time" else 5)
    _print_table((*_GROUPS, time), rows, [" + ".join(group.layers) for group in plan.groups])
    if show_loops:
        _print_loops(plan)
    click.echo()
    saved = plan.saved_bytes / plan.unfused_bytes if plan.unfused_bytes else 0.0
    extra = _extra(plan.extra_macs, plan.macs)
    output.print_text(
        f"{scaled(plan.dram_bytes, 'B')} of DRAM traffic with {binary(plan.capacity_bytes)} on "
        f"{arch}; {scaled(plan.unfused_bytes, 'B')} unfused: {percent(saved)} saved, "
        f"{percent(abs(extra))} {'fewer' if extra < 0 else 'more'} multiply-accumulates."
    )
    if plan.sums_bytes:
        output.print_text(
            f"Not counted, fused or not: {scaled(plan.sums_bytes, 'B')} of other addends of "
            "outputs, as in residual blocks."
        )
    _say_assumed(plan.assumed)
    for one in plan.breaks[:_MOST_BREAKS]:
        output.print_text(f"No chain from {one.after} to {one.before}: {one.reason}.", hang="  ")
    if len(plan.breaks) > _MOST_BREAKS:
        output.print_text(f"... and {count(len(plan.breaks) - _MOST_BREAKS, 'more such pair')}.")


def _say_assumed(links: Sequence[Link]) -> None:
    pools = [f"{link.after} -> {link.pool} -> {link.before}" for link in links]
    if pools:
        output.print_text("Assumed, so that shapes fit: " + "; ".join(pools) + ".")


def _print_table(
    columns: Sequence[Column], rows: Sequence[Row], details: Sequence[str] = ()
) -> None:
    """Print a table; how often each row occurs only if one occurs more than once."""
    if all(row["count"] == 1 for row in rows):
        columns = [column for column in columns if column.of != "count"]
    output.print_table(columns, rows, details)


def _extra(extra: int, macs: int) -> float:
    """Part of the multiply-accumulates that layers one by one compute."""
    return extra / (macs - extra) if extra else 0.0


def _print_loops(plan: FusionPlan) -> None:
    from loopsched.fusion import render_group

    for at, group in enumerate(plan.groups):
        click.echo()
        output.print_text(f"{at}: {' + '.join(group.layers)}", hang="   ")
        click.echo(render_group(group))


def print_residency(kept: Residency, arch: str) -> None:
    """Print what stays on chip as a table with a summary."""
    rows = [
        {**row, "stay": ", ".join(layer.resident) or "-"}
        for row, layer in zip(kept.rows(), kept.layers, strict=True)
    ]
    _print_table(_RESIDENT, rows)
    click.echo()
    stay = sum(tensor.is_resident for tensor in kept.tensors)
    saved = kept.saved_bytes / kept.separate_bytes if kept.separate_bytes else 0.0
    proof = (
        "No other choice moves less."
        if kept.is_exact
        else f"Another choice could move at most {percent(kept.gap)} less."
    )
    output.print_text(
        f"{stay} of {len(kept.tensors)} tensors between layers stay on chip: "
        f"{scaled(kept.dram_bytes, 'B')} of DRAM traffic with {binary(kept.capacity_bytes)} on "
        f"{arch}; {scaled(kept.separate_bytes, 'B')} with none kept: {percent(saved)} saved. "
        f"{proof}"
    )
    _say_assumed(kept.assumed)
