"""``explore``: search, and open the page of what was found."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path

import click

from loopsched.base.rows import Row
from loopsched.cli import options, page_file
from loopsched.cli.inputs import Inputs
from loopsched.cli.origin import origin
from loopsched.cli.search import Searched, searched
from loopsched.problems.problem import Problem

_EPILOG = """\b
loopsched explore resnet50                             25 layers on a Titan V
loopsched explore gemm:m=1760,n=128,k=1760 -a h200     one problem
loopsched explore vgg16 --no-open -o vgg16.html        only write the page
"""

# So many problems have their alternatives within some seconds; 94 take a minute and a half.
_FEW = 30


@click.command(epilog=_EPILOG)
@options.inputs()
@options.goal_in_full
@options.constraints
@options.count(
    "--top",
    meaning="Keep the N best schedules; by default 3 for up to 30 problems, else 1, because more "
    "take longer.",
)
@options.jobs()
@page_file.curves
@page_file.reasons
@page_file.measured
@options.target("File to write; by default in a new temporary folder.")
@click.option("--no-open", is_flag=True, help="Write the page without opening a browser.")
def explore(
    inputs: Inputs,
    top: int | None,
    jobs: int,
    curves: bool,
    reasons: bool,
    measured: str | None,
    target: str | None,
    no_open: bool,
    **given: object,
) -> None:
    """Search every problem of WORKLOAD and open the page of the results.

    WORKLOAD is a name, a file, or a problem such as gemm:m=4,n=3,k=2.
    """
    path = None if target is None else page_file.page_target(target, inputs.text)
    if top is None:
        top = 3 if len(inputs.chosen.numbers) <= _FEW else 1
    times = page_file.measured_rows(measured, origin(inputs))
    found = searched(inputs, given, top=top, jobs=jobs, has_brackets=True)
    rows: list[Row] = []
    is_whole = False
    try:
        with found.progress:
            for some in found.rows:
                rows += some
        is_whole = True
    finally:  # an interruption or a fault leaves a page of the layers that are done
        if rows:
            path = path or Path(tempfile.mkdtemp(prefix="loopsched-")) / "explore.html"
            page_file.write_page(
                path,
                rows,
                _done(found, rows),
                found.machine,
                has_curves=curves and is_whole,
                has_reasons=reasons and is_whole,
                n_jobs=jobs,
                measured=times,
            )
    if not (no_open or path is None or webbrowser.open(path.resolve().as_uri())):
        click.echo(f"no browser found; open {path}", err=True)


def _done(found: Searched, rows: list[Row]) -> dict[int, Problem]:
    """Problems of the layers that have results."""
    done = {row["layer"] for row in rows}
    numbered = zip(found.chosen.numbers, found.chosen.workload.problems, strict=True)
    return {number: problem for number, problem in numbered if number in done}
