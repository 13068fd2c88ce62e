"""``curve``: the least DRAM traffic of every problem at every capacity of a buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.base.units import binary, excess, format_capacity, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs, name_of
from loopsched.cli.origin import origin
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.curves.curve import Curve
    from loopsched.curves.staircase import Staircase
    from loopsched.machines.arch import Arch
    from loopsched.models.buffer import Policy
    from loopsched.show.plots.ski_slope import Form

_EPILOG = """\b
loopsched curve deepbench_conv --jobs 2          94 layers, a summary of each
loopsched curve gemm:m=64,n=64,k=64 --points     every step and its schedule
loopsched curve resnet50 --network --plot r.svg  one curve for all layers
loopsched curve vgg16 -a h200 --show bandwidth   the bandwidth needed
"""
_SHOWN = ("traffic", "bandwidth", "intensity")
_KEYS = {
    "traffic": ("dram_bytes", "B"),
    "bandwidth": ("required_dram_bandwidth_bytes_per_s", "B/s"),
    "intensity": ("operational_intensity", ""),
}
_SENTENCES = {
    "traffic": "Least DRAM traffic{found} with {buffer}",
    "bandwidth": "Least DRAM bandwidth{found}, with {buffer}, at which the units never wait",
    "intensity": "Highest operational intensity{found} (FLOP per byte of DRAM traffic) with "
    "{buffer}",
}
_BUFFERS = {"explicit": "one buffer", "lru": "one LRU cache (promised)"}
_GAP = (
    "gap: DRAM above the least of nests that hold the tiles of all tensors from the same loop "
    "inward, at most"
)
_MOST_KNEES = 3


@click.command(epilog=_EPILOG)
@options.inputs()
@options.policy(
    "explicit",
    "The buffer: a scratchpad that holds explicit tiles, or an LRU cache, for which the traffic "
    "is a promise.",
)
@click.option(
    "--network",
    is_flag=True,
    help="One curve for all layers: the sum of theirs, each times its count.",
)
@click.option("--points", is_flag=True, help="Show every step of the curves instead of a summary.")
@options.choice("--show", of=_SHOWN, meaning="Quantity shown against capacity.")
@options.jobs()
@options.out
@options.plot("the curves")
@options.form
def curve(
    inputs: Inputs,
    policy: Policy,
    show: Form,
    jobs: int,
    out: str | None,
    plot: tuple[Path, ...],
    form: Style,
    **shape: bool,
) -> None:
    """Find the least DRAM traffic of every problem at every buffer capacity.

    All tile sizes and loop orders are considered, with one buffer below DRAM.
    The traffic is proven least where it equals a lower bound for all nests that
    hold the tiles of all tensors from the same loop inward. WORKLOAD is a name, a file, or a
    problem such as gemm:m=4,n=3,k=2. The capacities of the machine's levels are
    marked.
    """
    from loopsched.curves import front_kernels
    from loopsched.curves.network import workload_curves
    from loopsched.models.machine import data_type_of

    chosen, machine = inputs.chosen, inputs.machine
    for problem in chosen.workload.problems:
        data_type_of(problem, machine)  # refuses what the machine has no rate for
    output.announce_compilation(front_kernels.grow_front, "the search of curves")
    report = _Report(inputs, show, form, _BUFFERS[policy], **shape)
    source = {"policy": policy, **origin(inputs)}
    found = workload_curves(chosen.workload, policy=policy, jobs=jobs)
    try:
        report.run(found, source, out)
    finally:  # also what an interruption leaves
        if plot and report.drawn:
            _plot(report, inputs.name, show, plot)


class _Report:
    """Rows of curves as they come, and a table at the end, or at Ctrl-C."""

    def __init__(
        self, inputs: Inputs, show: Form, form: Style, buffer: str, *, network: bool, points: bool
    ) -> None:
        self.buffer = buffer
        self.chosen, self.machine, self.is_network = inputs.chosen, inputs.machine, network
        self.on = inputs.on
        self.has_points, self.show, self.form = points, show, form
        self.curves: list[Curve] = []
        self.drawn: Sequence[Staircase] = [] if network else self.curves

    def run(self, found: Iterator[Curve], source: Row, out: str | None) -> None:
        """Take the curves, and write what is asked for."""
        progress = output.Progress(len(self.chosen.numbers))
        rows = self._rows(found, source, progress)
        output.report_rows(rows, out, self.form, progress, self._print)

    def _rows(
        self, found: Iterator[Curve], source: Row, progress: output.Progress
    ) -> Iterator[list[Row]]:
        counts = self.chosen.workload.counts
        for number, count, one in zip(self.chosen.numbers, counts, found, strict=True):
            self.curves.append(one)
            if not self.is_network:
                yield self._described(one, {"layer": number, "count": count}, source)
            progress.step(one.name)
        if self.is_network:
            whole = self.whole()
            self.drawn = [whole]
            yield self._described(whole, {}, source)

    def _described(self, one: Staircase, place: Row, source: Row) -> list[Row]:
        if self.has_points:
            return [place | row | source for row in one.rows(self.machine)]
        return [place | one.digest(self.machine) | source]

    def whole(self) -> Staircase:
        """Add up the layers there are: at Ctrl-C, only those that are done."""
        from loopsched.curves.network import NetworkCurve

        workload = self.chosen.workload
        name = name_of(workload) or workload.problems[0].name
        return NetworkCurve.of(name, tuple(self.curves), workload.counts[: len(self.curves)])

    def _print(self, rows: Sequence[Row]) -> None:
        if self.has_points:
            _print_points(rows, self.show)
            return
        _print_digests(
            rows, self.machine, self.show, f"{self.buffer} of {{}} below DRAM ({self.on})"
        )
        click.echo()
        done, n = len(self.curves), len(self.chosen.numbers)
        if n > 1 and not self.is_network:
            whole = self.whole().digest(self.machine)
            noun = f"all {n} layers" if done == n else f"{done} of {n} layers"
            _print_network(whole, self.machine, f"{noun}, each times its count")
        if len(rows) == 1:
            _print_knees(self.drawn[0], self.machine)


def _levels(machine: Arch) -> list[tuple[str, int]]:
    """Name the levels of known capacity, smallest first."""
    known = [(level.usable_bytes, level.name) for level in machine.caches if level.usable_bytes]
    return [(name, size) for size, name in sorted(known)]


def _print_digests(rows: Sequence[Row], machine: Arch, show: Form, buffer: str) -> None:
    key, unit = _KEYS[show]
    levels = _levels(machine)
    sizes = (Column(f"{name} {format_capacity(n)}", f"{name}_{key}", unit) for name, n in levels)
    columns = [
        *_number(rows[0], spare=5),
        words("problem", "problem", shrinks="middle"),
        Column("compulsory", "compulsory_bytes", "B", spare=1),
        *sizes,
        Column("enough", "useful_capacity_bytes", binary, spare=2),
        words("knees", _knees, spare=5),
        Column("steps", "n_steps", "", spare=4),
        Column("proven", lambda row: "all" if _is_proven(row) else f"{row['n_proven']:,}", spare=3),
    ]
    output.print_table(columns, rows)
    click.echo()
    effective = [one.name for one in machine.caches if one.effective_capacity_bytes]
    known = (
        f"{format_capacity(size)} ({name}{', effective' if name in effective else ''})"
        for name, size in levels
    )
    room = " or ".join(known) or "any capacity"
    found = "" if all(map(_is_proven, rows)) else " found"
    output.print_text(
        f"{_SENTENCES[show].format(found=found, buffer=buffer.format(room))}, over "
        "all tile sizes and loop orders. Capacity beyond 'enough' saves nothing; at a knee the "
        f"curve flattens. {_proven(rows)}"
    )


def _is_proven(row: Row) -> bool:
    return bool(row["n_proven"] == row["n_steps"])


def _proven(rows: Sequence[Row]) -> str:
    """Say at how many steps no nest does better, and what is known of the others."""
    n_proven, n_steps = (sum(row[key] for row in rows) for key in ("n_proven", "n_steps"))
    known = "over all nests that hold the tiles of all tensors from the same loop inward"
    if n_proven == n_steps:
        return f"Proven best at every capacity, {known}."
    return (
        f"Proven best at {n_proven:,} of {n_steps:,} steps, {known}; at the others, best with one "
        "loop per dimension around the tile; --points shows the gap at each."
    )


def _number(row: Row, spare: int = 0) -> list[Column]:
    """Make the column of layers' numbers; the sum of a network has none."""
    return [Column("#", "layer", spare=spare)] if "layer" in row else []


def _knees(row: Row) -> str:
    bends = sorted(row["knees"], key=lambda knee: knee["saved_after"] / knee["saved_before"])
    kept = sorted(knee["capacity_bytes"] for knee in bends[:_MOST_KNEES])
    return ", ".join(binary(size) for size in kept)


def _print_network(row: Row, machine: Arch, what: str) -> None:
    parts = [
        f"{scaled(row[f'{name}_dram_bytes'], 'B')} with {format_capacity(size)} ({name}; lower "
        f"bound {scaled(row[f'{name}_bound_bytes'], 'B')})"
        for name, size in _levels(machine)
    ]
    output.print_text(
        f"{what[0].upper()}{what[1:]}: {', '.join(parts)}, "
        f"{scaled(row['compulsory_bytes'], 'B')} with {binary(row['useful_capacity_bytes'])} "
        "(enough)."
    )


def _print_knees(one: Staircase, machine: Arch) -> None:
    """Print the capacities that stand out, smallest first, with what to do there."""
    from loopsched.curves.curve import Curve

    marks = {knee.capacity_bytes: "knee" for knee in one.knees}
    marks |= {size: name for name, size in _levels(machine) if one.at(size) is not None}
    marks.setdefault(one.useful_capacity_bytes, "enough")
    seconds = one.compute_time_s(machine)
    rows, schedules = [], []
    for capacity, mark in sorted(marks.items()):
        moved = one.at(capacity) or 0
        gap = _gap(moved, one.nest_bound.at(capacity) or 0)
        least, intensity = one.bound_bytes(capacity), 2 * one.macs / moved
        rows.append((capacity, mark, moved, gap, least, intensity, moved / seconds))
        if isinstance(one, Curve):
            schedules.append(str(one.schedule(one.step(capacity) or 0)))
    columns = (
        Column("capacity", unit=binary), words("mark"), Column("DRAM", unit="B"),
        Column("gap", spare=1), Column("lower bound", unit="B"),
        Column("FLOP/B", unit=""), Column("needs", unit="B/s"),
    )  # fmt: skip
    output.print_table(columns, rows, schedules)
    click.echo()
    output.print_text(
        f"{_GAP}; lower bound: no execution in any order moves less; needs: bandwidth at which "
        "the units never wait for DRAM."
    )


def _gap(moved: int, bound: int) -> str:
    """How far traffic is from what no nest is below; 0 where it is proven least."""
    return "0" if moved == bound else excess(moved / bound - 1)


def _print_points(rows: Sequence[Row], show: Form) -> None:
    key, unit = _KEYS[show]
    columns = [
        *_number(rows[0]),
        words("problem", "problem", shrinks="middle"),
        Column("capacity", "capacity_bytes", "{:,} B".format),
        Column(show, key, unit),
        Column("gap", lambda row: _gap(row["dram_bytes"], row["nest_bound_bytes"])),
    ]
    output.print_table(columns, rows, [row["schedule"] for row in rows if "schedule" in row])
    click.echo()
    output.print_text(f"{_GAP}.")


def _plot(report: _Report, name: str, show: Form, targets: tuple[Path, ...]) -> None:
    from loopsched.show.plots.ski_slope import plot_ski_slope, ski_slope_rows

    drawn, machine = report.drawn, report.machine
    whole = report.whole() if len(drawn) > 1 else None
    output.save_plots(
        targets,
        lambda: ski_slope_rows(drawn, machine),
        lambda: plot_ski_slope(drawn, arch=machine, form=show, whole=whole, name=name),
    )
