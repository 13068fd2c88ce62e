"""``search``: the best schedule of every problem, with a proof or the gap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.base.errors import ConstraintError, ProblemError
from loopsched.base.files import GrowingFile
from loopsched.base.units import excess, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs, Selection, on
from loopsched.cli.origin import origin
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.machines.arch import Arch
    from loopsched.scheduler import Goal, Result

_EPILOG = """\b
loopsched search deepbench_conv                  94 layers on a Titan V
loopsched search resnet50 -a v100 --out v.jsonl  keep the results
loopsched search gemm:m=64,n=64,k=64 --top 3     one problem, three answers
loopsched search my.json --tiles divisors        a smaller space
loopsched search alexnet --plot roofline.svg     a picture of all layers
"""


@click.command(epilog=_EPILOG)
@options.inputs()
@options.goal
@options.constraints
@options.count(
    "--top",
    default=1,
    meaning="Keep the best schedule and the N - 1 next best found, one for each "
    "score; only the best is proven.",
)
@options.jobs()
@options.out
@options.proof
@options.plot("a roofline")
@options.plot("bytes per level and tensor", "--plot-bytes")
@options.form
def search(
    inputs: Inputs,
    top: int,
    jobs: int,
    out: str | None,
    proof: str | None,
    plot: tuple[Path, ...],
    plot_bytes: tuple[Path, ...],
    form: Style,
    **given: object,
) -> None:
    """Find the best schedule of every problem of WORKLOAD.

    WORKLOAD is a name, a file, or a problem such as gemm:m=4,n=3,k=2.
    """
    is_kept = out is not None or form != "table"  # a table alone shows no brackets
    found = searched(inputs, given, top=top, jobs=jobs, has_brackets=is_kept, proof=proof)
    try:
        output.report_rows(found.rows, out, form, found.progress, partial(_print, found, top))
    finally:  # also what an interruption leaves
        if found.results:
            _save_plots(found, inputs.name, plot, plot_bytes)


@dataclass(frozen=True, slots=True)
class Searched:
    """A search under way: its rows come layer by layer, and its results gather."""

    chosen: Selection
    machine: Arch
    rows: Iterator[list[Row]]
    results: list[Result]
    progress: output.Progress


def searched(
    inputs: Inputs,
    given: Mapping[str, object],
    *,
    top: int,
    jobs: int,
    has_brackets: bool,
    proof: str | None = None,
    kinds: int = 0,
) -> Searched:
    """Start the search that a command's options ask for; ``kinds``: schedules of each kind."""
    from loopsched.scheduler import search_workload

    chosen, machine = inputs.chosen, inputs.machine
    goal = options.goal_of(given, top=top)
    progress = output.Progress(len(chosen.numbers))
    found: Iterable[Result] = search_workload(
        chosen.workload, machine, goal, jobs=jobs, report=progress.report
    )
    if kinds:
        found = _of_kinds(found, goal, kinds - 1)
    source = goal.row | origin(inputs)
    results: list[Result] = []
    if proof is not None:
        if goal.value != "promised":
            raise ConstraintError("--proof: only promised values have proofs; use --value promised")
        found = _with_proofs(found, proof)
    if goal.strategy == "exact":
        output.announce_compilation()
    each = _rows(_kept(found, results), chosen, source, progress, has_brackets=has_brackets)
    rows = _with_kernels(each, chosen, machine) if machine.cpu is not None else each
    return Searched(chosen, machine, rows, results, progress)


def _kept(found: Iterable[Result], kept: list[Result]) -> Iterator[Result]:
    """Remember results as they pass."""
    for result in found:
        kept.append(result)
        yield result


def _of_kinds(found: Iterable[Result], goal: Goal, most: int) -> Iterator[Result]:
    from loopsched.scheduler.kinds import of_other_kinds, without_places

    for result in found:
        yield of_other_kinds(without_places(result, goal), goal, most)


def _with_proofs(found: Iterable[Result], path: str) -> Iterator[Result]:
    """Write the proof of each result as it passes."""
    from loopsched.scheduler.proof import proof_of

    with closing(GrowingFile(path)) as file:
        for result in found:
            try:
                file.append(proof_of(result) + "\n")
            except ConstraintError as error:  # a promise that the proof's definition does not give
                click.echo(f"no proof: {error}", err=True)
            yield result


def _save_plots(
    found: Searched, name: str, plot: Sequence[Path], plot_bytes: Sequence[Path]
) -> None:
    if not (plot or plot_bytes):
        return
    from loopsched.show.plots.layers import Layer
    from loopsched.show.plots.roofline import plot_roofline, roofline_rows
    from loopsched.show.plots.traffic import bytes_figure, bytes_rows

    chosen, machine, results = found.chosen, found.machine, found.results
    # Fewer results than problems: it was interrupted.
    numbered = zip(results, chosen.numbers, chosen.workload.counts, strict=False)
    layers = [
        Layer(result.problem, result.evaluation, str(number), count, 1 + len(result.alternatives))
        for result, number, count in numbered
    ]
    if len(results) == 1 and (best := results[0]).alternatives:  # beside each other
        scores = [best.evaluation, *(each.evaluation for each in best.alternatives)]
        layers = [
            Layer(best.problem, score, f"{chosen.numbers[0]}.{rank}")  # as in the table
            for rank, score in enumerate(scores, 1)
        ]
    output.save_plots(
        plot,
        lambda: roofline_rows(layers, machine),
        lambda: plot_roofline(layers, machine, name=name),
    )
    output.save_plots(plot_bytes, lambda: bytes_rows(layers), lambda: bytes_figure(layers, name))


def _rows(
    results: Iterator[Result],
    chosen: Selection,
    source: Row,
    progress: output.Progress,
    *,
    has_brackets: bool,
) -> Iterator[list[Row]]:
    from loopsched.scheduler.result import objective_value
    from loopsched.scheduler.rows import result_rows

    counts = chosen.workload.counts
    for number, count, result in zip(chosen.numbers, counts, results, strict=True):
        place: Row = {"layer": number, "count": count}
        scores = [result.evaluation, *(each.evaluation for each in result.alternatives)]
        sought = [objective_value(score, result.objective, source["value"]) for score in scores]
        rows = result_rows(result, has_brackets=has_brackets)
        yield [
            place | row | {"objective_value": value} | source
            for row, value in zip(rows, sought, strict=True)
        ]
        progress.step(result.problem.name)


def _with_kernels(
    groups: Iterator[list[Row]], chosen: Selection, machine: Arch
) -> Iterator[list[Row]]:
    """Add to the best schedule of each problem how kernels compute it on a CPU."""
    from loopsched.codegen.described import kernel_schedules

    for problem, rows in zip(chosen.workload.problems, groups, strict=False):
        try:
            found = [one.row() for one in kernel_schedules(problem, machine)]
        except ProblemError:  # of no type that kernels have
            found = []
        yield [row | {"kernel": [] if row["rank"] > 1 else found} for row in rows]


def _details(row: Row) -> str:
    """Write the schedule, and below it each kernel."""
    kernels = dict.fromkeys(one["text"] for one in row.get("kernel", ()))
    return "\n".join([row["schedule"], *(f"plan: {text}" for text in kernels)])


def _columns(rows: Sequence[Row], top: int) -> tuple[Column, ...]:
    """Choose what to show: what was sought stays at any width, and so does the time."""
    objective, value = rows[0]["objective"], rows[0]["value"]
    is_known = all(row["energy_pj"] is not None for row in rows)
    spare = 0 if objective in ("energy", "edp") else 1
    energy = Column("energy", lambda row: row["energy_pj"] * 1e-12, "J", spare=spare)
    product = Column("energy x time", lambda row: row["energy_pj"] * 1e-12 * row["time_s"], "J s")
    factor, unit = options.OBJECTIVE_UNITS[objective]
    sought = Column(
        f"{value} {_TITLES[objective]}", lambda row: row["objective_value"] * factor, unit
    )
    return (
        Column(
            "#" if top == 1 else "#.rank",
            "layer" if top == 1 else lambda row: f"{row['layer']}.{row['rank']}",
        ),
        words("problem", "problem", shrinks="middle"),
        *([Column("count", "count")] if any(row["count"] > 1 for row in rows) else []),
        *([sought] if value != "promised" else []),
        Column("time", "time_s", "s"),
        words("bound by", "bound_by"),
        Column("DRAM", "dram_bytes", "B"),
        *([energy] if is_known else []),
        *([product] if objective == "edp" else []),
        Column("needs", "required_dram_bandwidth_bytes_per_s", "B/s", spare=2),
        Column("units", "compute_utilisation", "%", spare=3),
        Column("at least", "time_bound_s", "s", spare=4),
        Column("space", "space_size", "", spare=5),
        Column("gap", _gap),
    )


def _gap(row: Row) -> str:
    if row["rank"] > 1:
        return ""
    return "0" if row["proven"] else excess(row["gap"])


_TRAFFIC = {"point": "with estimated traffic (point)", "low": "with least traffic (low)"}
_TITLES = {"time": "time", "dram_bytes": "DRAM", "energy": "energy", "edp": "energy x time"}
_REASONS = {
    "budget": "Stopped early: {}, budget used up (--budget).",
    "time limit": "Stopped early: {}, time limit reached (--time-limit).",
    "gap": "Stopped early: {}, gap reached (--gap).",
    "interrupt": "Stopped early: {}, interrupted.",
    "constraints": "Not proven: {}; the bound also covers schedules that the constraints exclude, "
    "and not all that they allow were tried.",
    "listed": "Not proven: {}; every schedule of the space was scored, but one with more loops may "
    "be better.",
    "samples": "Not proven: {}; only samples were tried (--strategy exact proves).",
    "bound": "Not proven: {}; no schedule that was found meets the bound.",
}


def _print(found: Searched, top: int, rows: Sequence[Row]) -> None:
    from loopsched.scheduler.rows import totals

    chosen, n_problems = found.chosen, len(found.chosen.numbers)
    output.print_table(_columns(rows, top), rows, list(map(_details, rows)))
    best = [row for row in rows if row["rank"] == 1]
    sums = totals(best)
    click.echo()
    done = f"{len(best)}" if len(best) == n_problems else f"{len(best)} of {n_problems}"
    noun = "problem" if n_problems == 1 else "problems"
    times = sum(row["count"] for row in best)
    if times > len(best):
        noun += f" ({times:,} with repetitions)"
    known = sums.energy_pj
    objective, value = rows[0]["objective"], rows[0]["value"]
    sought = "" if objective == "time" else f", for the least {options.OBJECTIVES[objective]}"
    promised = "" if value == "promised" else "promised "
    if promised:
        sought = f", for the least {options.OBJECTIVES[objective]} {_TRAFFIC[value]}"
    energy = "" if known is None else f" and {scaled(known * 1e-12, 'J')}"
    output.print_text(
        f"{done} {noun} on {on(found.machine, chosen.workload.problems)}{sought}: "
        f"{promised}{scaled(sums.time_s, 's')}{energy} in total, at least "
        f"{scaled(sums.time_bound_s, 's')} in any run of these schedules; "
        f"{scaled(sums.dram_bytes, 'B')} of DRAM traffic, at least "
        f"{scaled(sums.least_dram_bytes, 'B')} in any order."
    )
    bound = ", ".join(
        f"{name}: {many} of {len(best)}" if at == 0 else f"by {name}: {many}"
        for at, (name, many) in enumerate(sums.bound_by)
    )
    proven = "all" if sums.n_proven == len(best) else f"{sums.n_proven} of {len(best)}"
    visited = "nodes visited" if rows[0]["strategy"] == "exact" else "schedules scored"
    output.print_text(
        f"Bound by {bound}. Proven best: {proven}, among {scaled(sums.space_size)} schedules "
        f"({scaled(sums.nodes)} {visited})."
    )
    if any(0 < row["gap"] < math.inf for row in best):
        output.print_text(
            "gap: how far a schedule may be above the optimum, as a share of the bound."
        )
    if any(row["gap"] == math.inf for row in best):
        output.print_text("gap -: no bound is known.")
    if many := sum(not row["proven"] and row["gap"] == 0 for row in best):
        output.print_text(f"At their bound, but not proven: {many}.")
    for reason, what in _REASONS.items():
        if many := sum(row["stopped"] == reason and not row["proven"] for row in best):
            output.print_text(what.format(many))
