"""``report``: saved by a search, as a page to explore."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.base.errors import InputError, LoopschedError
from loopsched.cli import options, page_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopsched.base.rows import Row
    from loopsched.machines.arch import Arch
    from loopsched.problems.problem import Problem

_EPILOG = """\b
loopsched search resnet50 --top 3 --out r.jsonl && loopsched report r.jsonl
loopsched report r.jsonl -o resnet50.html --curves --reasons --jobs 2
"""


@click.command(epilog=_EPILOG)
@click.argument("results")
@options.target("File to write.", default="report.html")
@page_file.curves
@page_file.reasons
@page_file.measured
@options.jobs()
def report(
    results: str, target: str, curves: bool, reasons: bool, measured: str | None, jobs: int
) -> None:
    """Write RESULTS as an explorer page: one HTML file that any browser opens offline.

    RESULTS is what 'loopsched search --out' saved: .jsonl, .json or .parquet.
    """
    path = page_file.page_target(target, results)
    rows, problems, arch = _loaded(results)
    page_file.write_page(
        path,
        _of_kinds(rows, problems, arch),
        problems,
        arch,
        has_curves=curves,
        has_reasons=reasons,
        n_jobs=jobs,
        measured=page_file.measured_rows(measured, rows[0]),
    )


def _of_kinds(rows: list[Row], problems: Mapping[int, Problem], arch: Arch) -> list[Row]:
    """Leave out schedules of the same kind as a better one."""
    from loopsched.models.score import evaluate
    from loopsched.nests.notation import parse_schedule
    from loopsched.scheduler.kinds import kind_of
    from loopsched.show.page.rows import rows_by_layer

    kept: list[Row] = []
    for number, found in rows_by_layer(rows, len(arch.caches)).items():
        first: dict[object, Row] = {}
        for row in found:
            kind: object = row["rank"]
            with suppress(InputError, KeyError):  # the page says what is wrong with the row
                problem = problems[number]
                schedule = parse_schedule(row["schedule"], problem)
                kind = kind_of(problem, schedule, evaluate(problem, schedule, arch))
            first.setdefault(kind, row)
        kept += first.values()
    return kept


def _loaded(results: str) -> tuple[list[Row], dict[int, Problem], Arch]:
    """Load rows with their problems and machine, checked to be what was searched."""
    from loopsched.cli.saved import is_result_file, saved_rows

    if not is_result_file(results):
        _refuse_workload(results)
    if results.endswith(".csv") and Path(results).exists():
        raise InputError(f"{results}: rows in CSV leave out the levels; save .jsonl")
    found = list(saved_rows(results))
    if not found:
        raise InputError(f"{results}: no rows; a page needs at least one result")
    for key in ("arch_digest", "workload_digest", "objective"):
        values = list(dict.fromkeys(str(one.row.get(key)) for one in found))
        if len(values) > 1:
            name = key.removesuffix("_digest")
            raise InputError(
                f"{results}: rows of {len(values)} searches ('{name}' differs); "
                "a page shows one: make one of each"
            )
    problems = {int(one.row["layer"]): one.problem for one in found if "layer" in one.row}
    return [one.row for one in found], problems, found[0].arch


def _refuse_workload(text: str) -> None:
    """Say what to do with a workload: it is to be searched first."""
    from loopsched.cli.inputs import select

    with suppress(LoopschedError):
        select(text)
        raise click.UsageError(
            f"{text} is a workload; RESULTS is a file that a search has saved; "
            f"'loopsched explore {text}' searches it and opens the page"
        )
