"""``network``: the layers of a model, and what of it is not a layer."""

from __future__ import annotations

from typing import Any

import click

from loopsched.base.units import count, scaled
from loopsched.cli import options, output
from loopsched.cli.output import Style
from loopsched.network.graph import Network
from loopsched.show.table import Column, words

_EPILOG = """\b
loopsched network model.onnx --batch 8
loopsched network bert.onnx --dim sequence=128 --out bert.json
loopsched search model.onnx --batch 8     a model as WORKLOAD
"""
_LAYERS = (
    Column("#", "layer"),
    words("layer", "name", shrinks="middle"),
    words("operator", "operator", spare=3),
    words("shape", "shape", spare=1),
    Column("count", "count"),
    Column("work", "macs", "MAC"),
    Column("data", "data_bytes", "B", spare=2),
    Column("weights", "weight_bytes", "B", spare=4),
)
_LEFT_OUT = (
    words("left out", "operator"),
    Column("count", "count"),
    words("first", "name", shrinks="middle"),
)


@click.command(epilog=_EPILOG)
@click.argument("workload", metavar="MODEL")
@options.model
@click.option("--out", metavar="FILE", help="Also save the layers as a workload file: .json.")
@options.form
def network(workload: str, out: str | None, form: Style) -> None:
    """Show the layers of MODEL and its other operators.

    MODEL is an ONNX file, a ZigZag workload or any other workload. Identical layers
    share one row with a count. Weights are not read and may be missing.
    """
    from loopsched.network.rows import network_rows
    from loopsched.network.text import load_network
    from loopsched.problems.workload_write import save_workload

    found = load_network(workload)
    rows = network_rows(found)
    if out is not None:
        save_workload(found.workload(), out)
        output.wrote(out)
    if form != "table":
        output.print_rows(rows, form)
        return
    _show(found, rows)


def _show(found: Network, rows: list[dict[str, Any]]) -> None:
    layers = [row for row in rows if row["role"] == "layer"]
    if layers:
        output.print_table(_LAYERS, layers)
        click.echo()
    left_out = [row for row in rows if row["role"] == "unsupported"]
    if left_out:
        output.print_table(_LEFT_OUT, left_out, [row["why"] for row in left_out])
        click.echo()
    for role, text in (
        ("vector", "Without multiply-accumulates"),
        ("shape", "Only move or name data"),
    ):
        names = [f"{row['operator']} {row['count']}" for row in rows if row["role"] == role]
        if names:
            output.print_text(f"{text}: {', '.join(names)}.", hang="  ")
    output.print_text(_totals(found, layers, left_out), hang="  ")
    if found.source:
        output.print_text(found.source)


def _totals(found: Network, layers: list[dict[str, Any]], left_out: list[dict[str, Any]]) -> str:
    n_layers = sum(row["count"] for row in layers)
    text = f"{found.name}: {count(n_layers, 'layer')}, {len(layers):,} distinct, {found.macs:,} MAC"
    if found.params:
        text += f"; {found.params:,} parameters, {scaled(found.weight_bytes, 'B')}"
    n_left = sum(row["count"] for row in left_out)
    if n_left:
        text += f"; {count(n_left, 'operator')} with work left out"
    return f"{text}."
