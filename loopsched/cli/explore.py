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
loopsched explore vgg16 -a host --measured run.jsonl   times of 'run --out'
"""

# The next best schedules of so many problems take some seconds; of 94, a minute and a half.
_FEW = 30
_KINDS = 3


@click.command(epilog=_EPILOG)
@options.inputs()
@options.goal_in_full
@options.constraints
@options.count(
    "--top",
    meaning="Show the best schedule and up to N - 1 alternatives that differ from it in kind: "
    "in what binds, in the dimensions split across units, or in the tensors that cross a boundary "
    "once; by default 3.",
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
    """Search every problem of WORKLOAD and open the explorer page of the results.

    WORKLOAD is a name, a file, or a problem such as gemm:m=4,n=3,k=2.
    """
    path = None if target is None else page_file.page_target(target, inputs.text)
    few = len(inputs.chosen.numbers) <= _FEW
    times = page_file.measured_rows(measured, origin(inputs))
    found = searched(
        inputs,
        given,
        top=top or (_KINDS if few else 1),
        jobs=jobs,
        has_brackets=True,
        kinds=top or _KINDS,
    )
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
