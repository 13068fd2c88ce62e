"""``analyze``: what a given schedule costs, by this or by an older model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from loopsched.base.rows import picked
from loopsched.base.units import binary, format_capacity, holding, percent, scaled
from loopsched.cli import options, output
from loopsched.cli.inputs import Inputs, on
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.machines.arch import Arch
    from loopsched.models.buffer import Policy
    from loopsched.models.score import Evaluation, LevelScore
    from loopsched.models.traffic import Bracket
    from loopsched.nests.nest import Place, Schedule
    from loopsched.problems.problem import Problem

_EPILOG = """\b
loopsched analyze gemm:m=64,n=64,k=64 'M:64@SM N:64 K:64 M:8'
loopsched analyze resnet50 --layer 3 @schedule.txt --arch v100
loopsched analyze gemm:m=9,n=9,k=9 'M:9 N:9 K:9' --capacity '1 KiB'
loopsched analyze gemm:m=64,n=256,k=256 'n:64 c:256 k:256 n:32 c:32 k:32' \\
    --model yalsa --dialect yalsa
"""


@click.command(epilog=_EPILOG)
@options.inputs("problem", schedule=False)
@options.size(
    "--capacity",
    meaning="In place of --arch: count the traffic between DRAM and one buffer of this size. It "
    "has no rates, so there are no times.",
)
@options.policy("lru", "With --capacity: an LRU cache, or an explicit scratchpad.")
@options.choice(
    "--model",
    of=["reuse", "yalsa", "report_003"],
    meaning="reuse: loopsched's own model; yalsa: tables of required bandwidth, as Yalsa, an "
    "earlier program, prints them; report_003: the model of report 003 "
    "('loopsched reproduce'), without SCHEDULE.",
)
@options.count(
    "--effort",
    least=0,
    meaning="Tile accesses to replay for 'at least' and 'at most', by default a million; "
    "0: closed forms only.",
)
@options.form
def analyze(
    inputs: Inputs,
    capacity: str | None,
    policy: Policy,
    model: str,
    effort: int | None,
    form: Style,
) -> None:
    """Score SCHEDULE of PROBLEM: traffic, time and bottleneck.

    PROBLEM is a workload with --layer, or a problem such as gemm:m=4,n=3,k=2.
    SCHEDULE is text or @FILE.
    """
    if model == "report_003":
        _report003(inputs.chosen.workload.problems, form)
        return
    if inputs.schedule_text is None:
        raise click.UsageError("give a SCHEDULE; only --model report_003 has its own")
    source = click.get_current_context().get_parameter_source
    if capacity is not None and source("arch") is not ParameterSource.DEFAULT:
        raise click.UsageError("give --capacity or --arch, not both")
    if capacity is None and source("policy") is not ParameterSource.DEFAULT:
        raise click.UsageError("--policy is for the buffer of --capacity; give its size")
    one, nest = inputs.problem, inputs.schedule
    if model == "yalsa":
        _yalsa(one, nest, form)
        return
    from loopsched.machines.arch import buffer_arch
    from loopsched.models.buffer import EFFORT
    from loopsched.models.score import evaluate
    from loopsched.scheduler.rows import evaluation_row

    machine = (
        inputs.machine
        if capacity is None
        else buffer_arch(capacity_bytes=options.size_of("--capacity", capacity), policy=policy)
    )
    score = evaluate(one, nest, machine, effort=EFFORT if effort is None else effort)
    if form == "table":
        _show(one, nest, machine, score, has_rates=capacity is None)
        return
    row = evaluation_row(score)
    if capacity is not None:
        row = _without_rates(row) | {"levels": [_without_rates(each) for each in row["levels"]]}
    head: Row = {"problem": one.name, "arch": machine.name, "schedule": str(nest)}
    output.print_rows([head | row], form)


# What a score says of speed: of a buffer that has only a size, nothing.
_RATES = (
    "time_s", "time_bound_s", "problem_bound_s", "bound_by", "compute_time_s",
    "compute_utilisation", "required_dram_bandwidth_bytes_per_s", "utilisation",
)  # fmt: skip


def _without_rates(row: Row) -> Row:
    return {name: None if name in _RATES else value for name, value in row.items()}


_LEVELS = (
    words("boundary", lambda row: "" if row[1] else f"{row[0].outer} - {row[0].name}"),
    words("tensor", lambda row: row[1] or "all"),
    Column("at least", lambda row: row[2].low, "B"),
    Column("point", lambda row: row[2].point, "B", spare=2),
    Column("at most", lambda row: row[2].high, "B", spare=2),
    Column("promised", lambda row: row[3].bytes, "B"),
    Column("read", lambda row: row[3].read_bytes, "B", spare=3),
    Column("written", lambda row: row[3].write_bytes, "B", spare=3),
    Column("time", lambda row: "" if row[1] else scaled(row[0].time_s, "s")),
    Column("busy", lambda row: "" if row[1] else percent(row[0].utilisation), spare=1),
    Column("FLOP/B", lambda row: "" if row[1] else scaled(row[0].operational_intensity), spare=1),
)


def _show(
    problem: Problem, schedule: Schedule, machine: Arch, score: Evaluation, *, has_rates: bool
) -> None:
    """Print a score for people: the sums, then every boundary."""
    from loopsched.models.places import placed_in
    from loopsched.nests.nest import PASSES

    where = on(machine, [problem]) if has_rates else machine.title
    output.print_text(f"{problem.name} on {where}: {schedule}")
    click.echo()
    for title, text in _sums(problem, score, machine, has_rates=has_rates):
        click.echo(f"{title:<10}{text}")
    click.echo()
    columns = [one for one in _LEVELS if has_rates or one.title not in ("time", "busy")]
    output.print_table(columns, [row for level in score.levels for row in _boundary(level)])
    for level in score.levels:
        held = binary(level.working_set_bytes)
        held = f"2 x {held}" if machine.level(level.name).double_buffered else held
        room = (
            "" if level.capacity_bytes is None else f" of {format_capacity(level.capacity_bytes)}"
        )
        marks = placed_in(schedule.places, level.name)
        places = [place for place in marks if place.position != PASSES]
        body = ", ".join(f"{place.tensor} from {_inside(schedule, place)}" for place in places)
        body = body or " ".join(map(str, schedule.loops[level.fit_position :])) or "one point"
        passing = " ".join(place.tensor for place in marks if place.position == PASSES)
        body += f"; {passing} passes" if passing else ""
        output.print_text(f"{holding(level.name)} {held}{room}: {body}")


def _inside(schedule: Schedule, place: Place) -> str:
    if place.position == len(schedule.loops):
        return "one point"
    return f"{schedule.loops[place.position]} inward"


def _sums(
    problem: Problem, score: Evaluation, machine: Arch, *, has_rates: bool
) -> Iterator[tuple[str, str]]:
    needs = ""
    if has_rates:
        yield (
            "time",
            f"{scaled(score.time_s, 's')} promised; bound {scaled(score.time_bound_s, 's')}, "
            f"{scaled(score.problem_bound_s, 's')} for any schedule",
        )
        yield "bound by", score.bound_by
        yield (
            "compute",
            f"{scaled(problem.flops, 'FLOP')} in {scaled(score.compute_time_s, 's')}, "
            f"utilisation of the units {percent(score.compute_utilisation)}",
        )
        needs = f"; needs {scaled(score.required_dram_bandwidth_bytes_per_s, 'B/s')}"
    yield (
        "DRAM",
        f"{scaled(score.dram_bytes, 'B')}: {scaled(score.dram_read_bytes, 'B')} read, "
        f"{scaled(score.dram_write_bytes, 'B')} written{needs}",
    )
    ratio = score.dram_bytes / max(1, score.least_dram_bytes)
    here = "the same" if ratio == 1 else f"{ratio:.3g} times that"
    yield (
        "any order",
        f"{scaled(score.least_dram_bytes, 'B')} of DRAM traffic at least; here {here}",
    )
    if score.energy_pj is not None:
        parts = ", ".join(
            f"{name} {scaled(pj * 1e-12, 'J')}" for name, pj in _energies(score, machine)
        )
        yield "energy", f"{scaled(score.energy_pj * 1e-12, 'J')}: {parts}"


def _energies(score: Evaluation, machine: Arch) -> Iterator[tuple[str, float]]:
    """Yield what each level's accesses take, and the rest: the arithmetic."""
    crossed = [0, *(level.promised_bytes for level in score.levels), 0]
    rest = score.energy_pj or 0.0
    for at, level in enumerate(machine.levels):
        taken = (crossed[at] + crossed[at + 1]) * (level.energy_pj_per_byte or 0.0)
        rest -= taken
        yield level.name, taken
    yield "arithmetic", rest


def _boundary(level: LevelScore) -> Iterator[tuple[LevelScore, str, Bracket, Any]]:
    """Yield what crosses a boundary in all, then tensor by tensor."""
    from loopsched.models.traffic import Promise

    promised = Promise(level.promised_read_bytes, level.promised_write_bytes)
    yield level, "", level.bytes, promised
    for name, each in level.tensors.items():
        yield level, name, each.bytes, level.promised[name]


def _yalsa(problem: Problem, schedule: Schedule, form: Style) -> None:
    from loopsched.published.diannao import yalsa_report
    from loopsched.published.yalsa import bandwidths

    if form == "table":
        click.echo(yalsa_report(problem, schedule, title=f"{problem.name} Analysis"), nl=False)
        return
    head: Row = {"problem": problem.name, "schedule": str(schedule)}
    names = ("capacity_bytes", "bytes_per_cycle", "fit_level")
    lines = bandwidths(problem, schedule)
    output.print_rows((head | dict(zip(names, line, strict=True)) for line in lines), form)


def _report003(problems: Sequence[Problem], form: Style) -> None:
    from loopsched.published.model_003 import report003_time

    said = ((problem.name, report003_time(problem)) for problem in problems)
    rows = [{"problem": name, **picked(one, *_REPORT003)} for name, one in said]
    if output.shows_table(_REPORT003_COLUMNS, rows, form):
        click.echo()
        output.print_text(
            "On report 003's Titan V. rounded: as the report prints times, in whole microseconds, "
            "at least 1. B/cycle: bytes per cycle that the loops, without tiles, need from DRAM to "
            "keep all units busy, cut to a whole number."
        )


_REPORT003 = (
    "time_us", "printed_us", "compute_us", "memory_us", "bound", "bytes_per_cycle", "fit_level",
)  # fmt: skip
_REPORT003_COLUMNS = (
    words("problem", "problem", shrinks="middle"),
    Column("predicted", lambda row: f"{row['time_us']:.1f} us"),
    Column("rounded", lambda row: f"{row['printed_us']} us"),
    Column("compute", lambda row: f"{row['compute_us']:.1f} us"),
    Column("memory", lambda row: f"{row['memory_us']:.1f} us"),
    words("bound by", "bound"),
    Column("B/cycle", "bytes_per_cycle", spare=1),
)
