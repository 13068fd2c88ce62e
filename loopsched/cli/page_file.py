"""The explorer page as a file, for the commands that make one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopsched.base.arguments import is_count
from loopsched.base.errors import InputError, ProblemError
from loopsched.base.files import suffixed, target_of, write_text
from loopsched.base.units import count, scaled
from loopsched.cli import output

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.curves.curve import Curve
    from loopsched.machines.arch import Arch
    from loopsched.problems.problem import Problem

curves = click.option(
    "--curves", is_flag=True, help="Add the least traffic of every layer at each capacity."
)
reasons = click.option(
    "--reasons", is_flag=True, help="Add why each alternative is worse than the best."
)


measured = click.option(
    "--measured",
    metavar="RUNS",
    help="Add the measured times that 'run --out RUNS' saved.",
)


def measured_rows(path: str | None, source: Row) -> dict[int, Row]:
    """Load what was measured, by layer, checked to be of the workload and machine of a page."""
    from loopsched.base.rows import read_rows

    found: dict[int, Row] = {}
    for place, row in read_rows(path) if path else ():
        where = f"{path}: row {place}"
        is_right = {
            "layer": is_count(row.get("layer"), 0),
            "measured_s": isinstance(row.get("measured_s"), float),
            "threads": is_count(row.get("threads")),
            "data_type": isinstance(row.get("data_type"), str),
        }
        for name, is_one in is_right.items():
            if not is_one:
                raise InputError(f"{where}: no '{name}'; is it what 'run --out' has saved?")
        for name in ("workload_digest", "arch_digest"):
            if row.get(name) != source.get(name):
                what = {"arch_digest": "machine"}.get(name, "workload")
                raise InputError(
                    f"{where}: measured for another {what} than that of the page; repeat "
                    f"'loopsched run' with the page's {what}"
                )
        if row["layer"] in found:
            raise InputError(f"{where}: layer {row['layer']} was measured twice; give one run")
        found[row["layer"]] = row
    return found


def page_target(path: str, source: str) -> Path:
    """Check, before the work, where a page is to be written: not over its source.

    Examples
    --------
    >>> page_target("no_such_folder/report.html", "results.jsonl")
    Traceback (most recent call last):
        ...
    loopsched.base.errors.InputError: no_such_folder/report.html: cannot be written: no such ...
    """
    if os.path.realpath(target_of(path)) == os.path.realpath(source):
        raise InputError(f"{path}: cannot be written: the page is made from it")
    return suffixed(path, (".html", ".htm"), "a page")


def write_page(
    target: Path,
    rows: list[Row],
    problems: dict[int, Problem],
    arch: Arch,
    *,
    has_curves: bool,
    has_reasons: bool,
    n_jobs: int,
    measured: Mapping[int, Row],
) -> None:
    """Write the page under its name once it is complete, and say so.

    An interruption leaves a page with the curves and reasons that are found.
    """
    from loopsched.show.page.report import report_html

    curves: dict[int, Curve] = {}
    reasons: dict[tuple[int, int], tuple[str, ...]] = {}
    try:
        if has_curves:
            _find_curves(curves, problems, n_jobs)
        if has_reasons:
            _find_reasons(reasons, rows, problems, arch, n_jobs)
    finally:
        page = report_html(rows, problems, arch, curves=curves, reasons=reasons, measured=measured)
        write_text(target, page)
        size = scaled(target.stat().st_size, "B")
        output.wrote(target, f"{count(len(problems), 'layer')}, {size}")


def _find_curves(found: dict[int, Curve], problems: dict[int, Problem], n_jobs: int) -> None:
    from loopsched.base.pool import each_in_order
    from loopsched.curves import front_kernels

    output.announce_compilation(front_kernels.grow_front, "the search of curves")
    with output.Progress(len(problems)) as progress:
        curves = each_in_order(_curve, [(problem,) for problem in problems.values()], n_jobs)
        for (number, problem), one in zip(problems.items(), curves, strict=True):
            if isinstance(one, str):
                click.echo(f"no curve: {one}", err=True)
            else:
                found[number] = one
            progress.step(f"curve of {problem.name}")


def _curve(problem: Problem) -> Curve | str:
    """Find a curve, or say why there is none: the page can do without."""
    from loopsched.curves.front import traffic_curve

    try:
        return traffic_curve(problem)
    except ProblemError as error:
        return str(error)


def _find_reasons(
    found: dict[tuple[int, int], tuple[str, ...]],
    rows: list[Row],
    problems: dict[int, Problem],
    arch: Arch,
    n_jobs: int,
) -> None:
    from loopsched.base.pool import each_in_order
    from loopsched.show.page.rows import rows_by_layer

    layers = rows_by_layer(rows, len(arch.caches))
    pairs = [(number, row) for number, found in layers.items() for row in found[1:]]
    arguments = [
        (problems[number], row["schedule"], layers[number][0]["schedule"], arch)
        for number, row in pairs
    ]
    with output.Progress(len(pairs)) as progress:
        for (number, row), why in zip(pairs, each_in_order(_why, arguments, n_jobs), strict=True):
            found[number, int(row["rank"])] = why
            progress.step(f"why {problems[number].name}, {row['rank']}, is worse")


def _why(problem: Problem, schedule: str, best: str, arch: Arch) -> tuple[str, ...]:
    from loopsched.models.reasons import compare
    from loopsched.nests.notation import parse_schedule

    worse, better = (parse_schedule(text, problem) for text in (schedule, best))
    return compare(problem, worse, better, arch).reasons
