"""``sweep``: architectures x workloads x objectives, kept in a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loopsched.base.errors import SweepError
from loopsched.cli import options, output
from loopsched.cli.origin import repeatable
from loopsched.cli.output import Style
from loopsched.show.table import Column, words

if TYPE_CHECKING:
    from loopsched.base.rows import Row
    from loopsched.sweeps.run import SweepRun

_EPILOG = """\b
loopsched sweep caches.yaml --jobs 2           into caches.sweep
loopsched sweep caches.yaml -o night --results parquet
loopsched sweep night                          progress and table
loopsched sweep caches.yaml --scheduler tcp://10.0.0.1:8786
"""
_SUFFIXES = (".yaml", ".yml", ".json")
# Machines of one workload and objective that the table shows.
_MOST_SHOWN = 8
# Reasons why layers fail.
_MOST_ERRORS = 3


@click.command(epilog=_EPILOG)
@click.argument("spec", metavar="SPEC", required=False)
@click.option(
    "--out",
    "-o",
    metavar="FOLDER",
    help="Run folder; by default named after SPEC, in the current folder.",
)
@options.jobs("Use N processes.")
@click.option("--scheduler", metavar="tcp://HOST:PORT", help="Use a Dask cluster.")
@options.choice(
    "--results", of=["jsonl", "parquet"], meaning="Format of the results file in the run folder."
)
@click.option("--status", is_flag=True, help="Only print the progress of SPEC or its run folder.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of SPEC files.")
@options.form
def sweep(
    spec: str | None,
    out: str | None,
    jobs: int,
    scheduler: str | None,
    results: str,
    status: bool,
    schema: bool,
    form: Style,
) -> None:
    """Search every workload on every machine that SPEC describes.

    The run folder keeps finished work, and the same command resumes after any
    interruption. Given a run folder instead of SPEC, the command only shows its
    progress and results. --format applies to the totals on standard output.
    """
    if schema and status:
        raise click.UsageError("--schema and --status exclude each other")
    if schema:
        from loopsched.sweeps.schema import sweep_schema

        click.echo(json.dumps(sweep_schema(), indent=2))
        return
    if spec is None:
        raise click.UsageError("Missing argument 'SPEC'.")
    if status or Path(spec).is_dir():
        searching = options.stated("jobs", "scheduler", "results")
        options.refuse(searching, "where nothing is searched: SPEC is a run folder, or --status")
        is_file = Path(spec).is_file()
        folder = Path(out) if out else _default_folder(spec) if is_file else Path(spec)
        _look(folder, form, is_short=status)
        return
    if scheduler is not None and jobs > 1:
        raise click.UsageError(
            "--jobs is for this computer; --scheduler uses the cluster's workers"
        )
    folder = Path(out) if out else _default_folder(spec)
    run = _run(spec, folder, jobs, scheduler, results)
    _print(run, form)


def _default_folder(spec: str) -> Path:
    name = Path(spec).name
    stem = next((name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)), name)
    return Path(f"{stem}.sweep")


def _run(spec: str, folder: Path, jobs: int, scheduler: str | None, results: str) -> SweepRun:
    from loopsched.sweeps.run import sweep as run_sweep

    client = None
    shown = _Shown(is_here=scheduler is None)
    if scheduler is not None:
        from loopsched.sweeps.cluster import connect

        client = connect(scheduler)
    command = repeatable(
        click.get_current_context().obj, ("--jobs", "-j", "--scheduler", "--results", "--format")
    )
    try:
        with shown:
            return run_sweep(
                spec,
                folder,
                jobs=jobs,
                client=client,
                results=results,
                command=command,
                progress=shown.tell,
            )
    except KeyboardInterrupt:
        click.echo(f"{shown.text}; the same command resumes", err=True)
        raise
    finally:
        if client is not None:
            client.close()


# Between lines of progress where standard error is a file.
_LOG_S = 60


class _Shown(output.Progress):
    """Progress with the time that is left, as this process has known it.

    Parameters
    ----------
    is_here : bool
        Whether this computer searches, and may have to compile first.
    """

    def __init__(self, is_here: bool) -> None:
        super().__init__(2)  # how many there are is told later
        self.is_here = is_here
        self._first: int | None = None
        self._start = self._logged = time.monotonic()
        self.text = "0 searches done"

    def tell(self, done: int, total: int) -> None:
        """Show how far it is."""
        if self._first is None:
            if self.is_here:
                output.announce_compilation()
            self._first, self._start = done, time.monotonic()
        self.text = f"{done} of {total} searches done"
        new, seconds = done - self._first, time.monotonic() - self._start
        left = ""
        if new > min(10, total // 20) and done < total:  # the first compile the search
            left = f", {_duration(seconds / new * (total - done))} left"
        line = f"{self.text} ({100 * done // total} %){left}"
        self._show(line)
        if not self._is_shown and time.monotonic() - self._logged >= _LOG_S:
            self._logged = time.monotonic()
            click.echo(line, err=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _look(folder: Path, form: Style, *, is_short: bool) -> None:
    """Say how far a run is, and unless it is to be short what it has found."""
    from loopsched.sweeps.run import load_run

    if not folder.exists():
        raise SweepError(f"{folder}: no such folder")
    run = load_run(folder)
    if not is_short:
        _print(run, form)
    elif form == "table":
        click.echo(_state(run))
    else:
        output.print_rows([_status(run)], form)


def _status(run: SweepRun) -> Row:
    return {
        "folder": str(run.folder),
        "done": run.n_done,
        "total": run.n_tasks,
        "complete": run.is_complete,
        "results": ",".join(path.name for path in run.results),
    }


def _state(run: SweepRun) -> str:
    done = f"{run.n_done} of {run.n_tasks} searches done"
    if run.is_complete:
        return f"{run.folder}: {done}; results in {', '.join(one.name for one in run.results)}."
    return f"{run.folder}: {done}; the same command resumes."


def _print(run: SweepRun, form: Style) -> None:
    rows = run.machines()
    if form != "table":
        output.print_rows(rows, form)
        return
    for _, group in groupby(rows, key=lambda row: (row["workload"], row["objective"])):
        _print_group(list(group), run)
    if len({row["arch"] for row in rows}) > 1 and any(row["is_front"] for row in rows):
        output.print_text(
            "* no variation of the same machine with smaller parameters does as well."
        )
    output.print_text(_state(run))


def _print_group(rows: Sequence[Mapping[str, Any]], run: SweepRun) -> None:
    """Print the machines of a workload: what was varied and what was sought at any width."""
    keys, objective = run.keys, rows[0]["objective"]
    is_one = len({row["base"] for row in rows}) == 1  # then the title names it
    where = f" on {rows[0]['base']}" if is_one else ""
    what = f"{rows[0]['workload']}{where}, least {options.OBJECTIVES[objective]}"
    click.echo(
        output.styled(", ".join([what, *run.manifest.get("data_types", ())]) + ":", bold=True)
    )
    shown = rows if len(rows) <= _MOST_SHOWN + 2 else rows[:_MOST_SHOWN]
    has_energy = any(row["energy_pj"] is not None for row in rows)
    is_energy = objective in ("energy", "edp")
    machine = words("machine", "base" if keys else "arch", shrinks="middle")
    columns = [
        *([] if is_one and keys else [machine]),
        *(Column(key, partial(_number, key)) for key in keys),
        Column("", lambda row: "*" if row["is_front"] else ""),
        Column("time", lambda row: _placed(row, "time_s"), "s", spare=objective != "time"),
        Column("/ best", lambda row: row["place"] and f"{row['relative']:.3f}", spare=3),
        Column(
            "DRAM", lambda row: _placed(row, "dram_bytes"), "B", spare=objective != "dram_bytes"
        ),
        *([Column("energy", _energy, "J", spare=not is_energy)] if has_energy else []),
        Column("proven", _told, spare=2),
    ]
    output.print_table(columns, shown)
    if len(shown) < len(rows):
        front = sum(row["is_front"] for row in rows[len(shown) :])
        more = f" ({front} of them marked *)" if front else ""
        click.echo(f"and {len(rows) - len(shown)} more{more}")
    errors = dict.fromkeys(row["error"] for row in rows if row["error"] is not None)
    for error in list(errors)[:_MOST_ERRORS]:
        output.print_text(f"fails: {error}", hang="  ")
    click.echo()


def _number(key: str, row: Mapping[str, Any]) -> str | None:
    """Write one of the numbers, which have columns of their own."""
    from loopsched.sweeps.vary import shown

    return None if row[key] is None else shown(key, row[key])


def _placed(row: Mapping[str, Any], key: str) -> Any:
    """Look up a sum, which counts only where nothing fails or is missing."""
    return None if row["place"] is None else row[key]


def _energy(row: Mapping[str, Any]) -> float | None:
    return None if row["place"] is None else (row["energy_pj"] or 0) * 1e-12


def _told(row: Mapping[str, Any]) -> str:
    many, what = row["proven"], ""
    if row["place"] is None:
        many, what = (row["failed"], " fail") if row["failed"] else (row["missing"], " to do")
    elif many == row["layers"]:
        return "all"
    return f"{many} of {row['layers']}{what}"
