"""``sensitivity``: what becomes of a workload when parameters of the machine change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from loopsched.base.units import count, scaled, signed_percent
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs, name_of, on
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.study.sensitivity import Point, Sensitivity

_EPILOG = """\b
loopsched sensitivity deepbench_conv --jobs 2
loopsched sensitivity resnet50 -v dram.bandwidth=0.5,1,2,4 -v L2.capacity=2
loopsched sensitivity kernel:direct,size=64 -q estimate -v gpu.l2_latency=2
"""
_KERNEL = "kernel:"


@click.command(epilog=_EPILOG)
@options.inputs()
@options.many(
    "--vary",
    "-v",
    "vary",
    metavar="KEY=FACTORS",
    meaning="Multiply a parameter of the machine, as in dram.bandwidth=0.5,1,2; may be repeated. "
    "By default every parameter, by 0.5 and 2.",
)
@options.choice(
    "--quantity",
    "-q",
    of=["time", "estimate", "dram_bytes"],
    meaning="Rank by the best schedules' promised time, by the estimated time of a library's "
    "kernels or of the given one (which latencies affect), or by DRAM traffic, which is then "
    "minimised.",
)
@options.constraints
@options.jobs("Run N searches in parallel.")
@options.plot("a tornado chart")
@options.form
def sensitivity(
    inputs: Inputs,
    vary: Sequence[str],
    quantity: Literal["time", "estimate", "dram_bytes"],
    jobs: int,
    plot: tuple[Path, ...],
    form: Style,
    **given: object,
) -> None:
    """Change parameters of a machine one at a time and search WORKLOAD again.

    WORKLOAD is a name, a file, a problem such as gemm:m=4,n=3,k=2, or a kernel of
    the reports such as kernel:direct,size=64 ('loopsched kernel preset'). --vary
    takes bandwidths and capacities of levels, compute.units, compute.clock,
    compute.macs, and for GPUs gpu.l2_latency and others; give an unknown key to list all.
    """
    from loopsched.study.points import kernel_workload, parse_vary
    from loopsched.study.sensitivity import Study

    kernels = None
    if inputs.text.startswith(_KERNEL):
        if inputs.layers or inputs.element_bytes is not None:
            raise click.UsageError(
                "--layer and --element-bytes do not apply to kernels of the reports"
            )
        chosen, kernels = kernel_workload(inputs.text.removeprefix(_KERNEL))
    else:
        chosen = inputs.chosen.workload
    machine = inputs.machine
    wanted: Mapping[str, Sequence[float]] | None = parse_vary(vary) or None
    study = Study(chosen, machine, wanted, options.goal_of(given), quantity, kernels)
    steps = study.n_steps
    output.announce_compilation()
    done: list[Point] = []
    try:
        with output.Progress(steps) as progress:
            for point in study.points(jobs, progress.step):
                done.append(point)
    finally:  # also what an interruption leaves
        if done:
            found = study.found(done)
            whose = "a library's kernels" if kernels is None else inputs.text
            name = name_of(chosen)
            where = (f" of {name}" if name else "") + f" on {on(machine, chosen.problems)}"
            _print(found, form, whose, where)
            if plot and len(done) > 1:
                from loopsched.show.plots.style import heading
                from loopsched.show.plots.tornado import tornado_figure, tornado_rows

                title = chosen.name
                if kernels is not None:
                    title = f"kernel {chosen.problems[0].name}"
                elif len(chosen.problems) == 1:
                    title = heading(chosen.problems[0].name, name)
                output.save_plots(
                    plot, lambda: tornado_rows(found), lambda: tornado_figure(found, title)
                )


def _print(found: Sensitivity, form: Style, whose: str, where: str) -> None:
    if form == "csv" or form == "jsonl":
        output.print_rows(map(_flat if form == "csv" else dict, found.rows), form)
    else:
        output.print_summed(found, form, lambda _: _show(found, whose, where))


def _flat(row: Mapping[str, object]) -> dict[str, object]:
    """Write what binds as text, for formats without maps."""
    return {
        name: _counted(value) if isinstance(value, Mapping) else value
        for name, value in row.items()
    }


_POINTS = (
    words("changed", lambda row: row["key"] or "nothing"),
    Column("by", lambda row: _factor(row) if row["key"] else ""),
    Column("time, change", lambda row: _changed(row, "time")),
    Column("DRAM", "dram_bytes", "B", spare=1),
    Column("kernels, change", lambda row: _changed(row, "estimate")),
    words("bound by", lambda row: _waits(row["bound_by"]), spare=2),
)


def _show(found: Sensitivity, whose: str, where: str) -> None:
    rows: Sequence[Mapping[str, Any]] = found.rows
    summary: Mapping[str, Any] = found.summary
    keys = [one["key"] for one in summary["parameters"]]
    same = [key for key in keys if all(row["ratio"] == 1 for row in rows if row["key"] == key)]
    idle = [
        key
        for key in keys
        if key not in same and all(_is_same(row, rows[0]) for row in rows if row["key"] == key)
    ]
    shown = [row for row in rows if row["key"] not in (*idle, *same)]
    has_kernels = any(row["estimate_s"] is not None for row in rows)
    output.print_table(_POINTS if has_kernels else (*_POINTS[:4], *_POINTS[5:]), shown)
    moving = [one for one in summary["parameters"] if one["key"] not in (*idle, *same)]
    if moving:
        click.echo()
        ends = [(one["bound_by_lowest"], one["bound_by_highest"]) for one in moving]
        waits = ["" if low == high else " -> ".join(map(_waits, (low, high))) for low, high in ends]
        is_kernels = found.quantity == "estimate"
        other, own = ("schedules", "time") if is_kernels else ("kernels", "estimate")
        columns = [
            words("parameter", "key"),
            Column("elasticity", "elasticity", _signed),
            Column("range", "range_elasticity", _signed),
        ]
        if has_kernels:
            columns.append(Column(other, f"{own}_elasticity", _signed))
        output.print_table(columns, moving, waits)
    click.echo()
    if idle:
        output.print_text(f"Without effect: {', '.join(idle)}.")
    if same:
        output.print_text(f"Unchanged by these factors: {', '.join(same)}.")
    base = found.base
    least = "DRAM traffic" if found.quantity == "dram_bytes" else "time"
    searches = sum(row["problems"] for row in shown)
    open_ = sum(row["problems"] - row["proven"] for row in shown)
    proven = "all proven best" if not open_ else f"{searches - open_} of {searches} proven best"
    output.print_text(
        f"{count(base.n_problems, 'problem')}{where}, searched again at every "
        f"point for the least {least}; {proven}. time, DRAM: promised by the schedules"
        + (f"; kernels: estimated for {whose}." if has_kernels else ".")
    )
    if moving:
        is_kernels = found.quantity == "estimate"
        quantity = "the kernels' time" if is_kernels else least
        waiting, other = ("kernels", "schedules") if is_kernels else ("schedules", "kernels")
        below = (
            f" Below, where they change: {waiting} bound by each resource, at the smallest -> at "
            "the largest point."
        )
        output.print_text(
            f"Elasticity: d ln({quantity}) / d ln(parameter), between the nearest points below and "
            "above 1, and over the range"
            + (f"; {other}: the same for the {other}' time" if has_kernels else "")
            + f".{below if any(waits) else ''}"
        )


def _is_same(row: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    return all(row[name] == base[name] for name in ("time_s", "dram_bytes", "estimate_s"))


def _factor(row: Mapping[str, Any]) -> str:
    """Write a factor, or what became of it if rounding or a limit changed it."""
    factor, ratio = row["factor"], row["ratio"]
    return f"{factor:g}" if abs(ratio / factor - 1) < 5e-3 else f"{factor:g} ({ratio:.3g})"


def _changed(row: Mapping[str, Any], what: str) -> str:
    """Write a time, and by how much it has changed: nothing where nothing was changed."""
    share = row[f"{what}_change"]
    change = signed_percent(share)
    return f"{scaled(row[f'{what}_s'], 's')} {change if row['key'] else '':>8}"


def _signed(value: float) -> str:
    return f"{value:+.3f}" if round(value, 3) else "0.000"


def _counted(bound_by: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in bound_by.items())


def _waits(bound_by: Mapping[str, int]) -> str:
    """Write what binds; of one problem, without its number."""
    return next(iter(bound_by)) if sum(bound_by.values()) == 1 else _counted(bound_by)
