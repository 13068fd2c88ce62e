"""Sweeps: begin one, go on with it, read what it has found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopsched.base.arguments import near, show
from loopsched.base.arrow_rows import need_arrow
from loopsched.base.errors import LoopschedError, SweepError
from loopsched.base.pool import check_jobs
from loopsched.base.rows import Row
from loopsched.base.version import __version__
from loopsched.sweeps.batches import Batches
from loopsched.sweeps.files import arrow_table, write_results
from loopsched.sweeps.folder import RESULTS, RunFolder, Shards, all_rows, read_manifest
from loopsched.sweeps.local import on_processes
from loopsched.sweeps.plan import Plan, n_tasks, plan_of
from loopsched.sweeps.spec import read_spec
from loopsched.sweeps.summary import machine_rows
from loopsched.sweeps.tasks import Answer, Answers

if TYPE_CHECKING:
    from distributed import Client
    from pandas import DataFrame
    from pyarrow import Table

Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SweepRun:
    """A run folder as it was when it was read.

    Parameters
    ----------
    folder : Path
    manifest : dict
        What the results were made from.
    n_tasks, n_done : int
        Searches in all, each different one once; and those that are done.
    results : tuple of Path
        Complete result files.
    """

    folder: Path
    manifest: Mapping[str, Any]
    n_tasks: int
    n_done: int
    results: tuple[Path, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Numbers of the machines that were varied; each is a column of the rows."""
        return tuple(self.manifest["keys"])

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.n_done == self.n_tasks and bool(self.results)

    def rows(self) -> Iterator[Row]:
        """List what was found so far, in the order of the results."""
        shards = Shards(self.folder, self.n_tasks)
        try:
            yield from all_rows(self.manifest, shards)
        finally:
            shards.close()

    def machines(self) -> list[Row]:
        """Sum up every workload on every machine, the best machine first.

        A machine some of whose layers are still ``missing`` has no place yet.
        See `loopsched.sweeps.summary.machine_rows`.
        """
        layers = {one["name"]: len(one["layers"]) for one in self.manifest["workloads"]}
        return machine_rows(self.rows(), self.keys, layers)

    def to_arrow(self) -> Table:
        """Put the rows into an Arrow table, with the types of the Parquet file."""
        return arrow_table(self.rows(), self.manifest)

    def to_pandas(self, *, flat: bool = True) -> DataFrame:
        """Put the rows into a pandas data frame, as `loopsched.to_pandas` does."""
        from loopsched.exchange.frames import to_pandas

        return to_pandas(self, flat=flat)


def load_run(folder: str | os.PathLike[str]) -> SweepRun:
    """Read a run folder, whether its sweep is done, at work or was killed.

    Raises
    ------
    SweepError
        If it is no run folder.

    See Also
    --------
    sweep

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = sweep({"archs": ["titan_v"], "workloads": ["gemm:m=64,n=64,k=64"]}, folder)
    >>> [row["bound_by"] for row in load_run(folder).rows()]
    ['L2']
    """
    path = Path(folder)
    manifest = read_manifest(path)
    total = n_tasks(manifest)
    shards = Shards(path, total)
    done = [path / name for name in RESULTS.values() if (path / name).exists()]
    return SweepRun(path, manifest, total, len(shards), tuple(done))


def sweep(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    jobs: int = 1,
    client: Client | None = None,
    results: str = "jsonl",
    command: str = "",
    progress: Told | None = None,
) -> SweepRun:
    """Search every workload on every machine, for every objective; or resume such a sweep.

    Parameters
    ----------
    spec : dict, str or path
        What to search: see docs/sweeps.md, and `sweep_schema` for the form.
    folder : path
        New, empty, or that of the same sweep, whose finished work is kept.
    jobs : int
        Processes; results are the same for any number, to the byte.
    client : distributed.Client, optional
        Work on its cluster instead, with the same results.
    results : {'jsonl', 'parquet'}
        Format of the results file.
    command : str
        For the manifest.
    progress : callable, optional
        Called with the searches done and those in all, at the beginning and
        each time there are more.

    Raises
    ------
    SweepError
        With every fault of the sweep; if the folder is another sweep's, or a
        process works on it.
    LoopschedError
        If a search's process died several times.  All other results are kept.

    See Also
    --------
    load_run, sweep_schema, sensitivity

    Examples
    --------
    >>> import tempfile
    >>> memory = {"arch": "titan_v", "vary": {"DRAM.bandwidth": {"factors": [0.5, 1, 2]}}}
    >>> spec = {"archs": [memory], "workloads": ["gemm:m=4096,n=8,k=4096"]}
    >>> run = sweep(spec, tempfile.mkdtemp())
    >>> for one in run.machines():
    ...     print(one["arch"], round(one["relative"], 2))
    titan_v[DRAM.bandwidth*2] 1.0
    titan_v[DRAM.bandwidth*1] 2.0
    titan_v[DRAM.bandwidth*0.5] 4.0
    """
    check_jobs(jobs, SweepError)
    if results not in RESULTS:
        raise SweepError(f"results is {show(results)}; {near(results, RESULTS)}")
    if results == "parquet":
        need_arrow()  # before the work, not after it
    plan = plan_of(read_spec(spec), __version__, command)
    with RunFolder(folder, plan.manifest) as run:
        failures = _work(plan, run, jobs, client, progress)
        if failures:
            raise LoopschedError(_told(plan, failures, run.path))
        path = run.path / RESULTS[results]
        if not path.exists():
            write_results(path, all_rows(run.manifest, run.shards), run.manifest)
    return load_run(folder)


def _work(
    plan: Plan, run: RunFolder, jobs: int, client: Client | None, progress: Told | None
) -> list[Answer]:
    """Do what is left, write it down as it comes, and return what failed."""
    failures: list[Answer] = []
    if progress is not None:
        progress(len(run.shards), plan.n_tasks)
    if len(run.shards) == plan.n_tasks:
        return failures
    shard = run.shards.new()
    answering = _answering(plan, run, jobs, client)
    try:
        for answers in answering:
            shard.add(answer for answer in answers if not answer.failure)
            failures += [answer for answer in answers if answer.failure]
            if progress is not None:
                progress(len(run.shards), plan.n_tasks)
    finally:
        answering.close()
        shard.close()
    return failures


def _answering(plan: Plan, run: RunFolder, jobs: int, client: Client | None) -> Answers:
    if client is None:
        return on_processes(Batches(plan, run.shards, jobs), jobs)
    from loopsched.sweeps.cluster import check_workers, on_cluster

    threads = check_workers(client)
    return on_cluster(Batches(plan, run.shards, threads), client)


def _told(plan: Plan, failures: list[Answer], folder: Path) -> str:
    shown = [f"  {plan.title(one.task)}: {one.failure}" for one in failures[:5]]
    if len(failures) > len(shown):
        shown.append(f"  and {len(failures) - len(shown)} more")
    head = f"{len(failures)} of {plan.n_tasks} searches failed; the others are kept in {folder}"
    return "\n".join([head, *shown])
