"""Sweeps on a cluster of Dask: the same bytes, whoever dies, and only where versions agree."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, KilledWorker, LocalCluster

from loopsched.base.errors import LoopschedError, SweepError
from loopsched.sweeps import cluster, tasks
from loopsched.sweeps.batches import Batches
from loopsched.sweeps.cluster import _answered, check_workers, on_cluster
from loopsched.sweeps.plan import plan_of
from loopsched.sweeps.run import load_run, sweep
from loopsched.sweeps.spec import read_spec
from loopsched.sweeps.tasks import Batch, run_batch, versions

SPEC = {
    "archs": [{"arch": "titan_v", "vary": {"L2.capacity": ["1 MiB", "2 MiB", "4 MiB"]}}],
    "workloads": [{"workload": "deepbench_conv", "layers": [0, 3, 8, 9]}],
}
MINE = versions()
pytestmark = [
    # What Dask leaves to the collector is not ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as local,
        Client(local) as client,
    ):
        yield client


def test_a_killed_worker_changes_no_byte(client: Client, tmp_path: Path) -> None:
    victim = sorted(client.run(os.getpid).values())[0]
    told: list[int] = []

    def kill(done: int, total: int) -> None:
        told.append(done)
        if len(told) == 2:
            os.kill(victim, signal.SIGKILL)

    sweep(SPEC, tmp_path / "cluster", client=client, progress=kill)
    assert 0 < told[1] < 12  # it died amid the work
    sweep(SPEC, tmp_path / "here")
    wanted = (tmp_path / "here/results.jsonl").read_bytes()
    assert (tmp_path / "cluster/results.jsonl").read_bytes() == wanted
    lines = (tmp_path / "cluster/shards/000001.jsonl").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 12


def test_what_a_process_began_a_cluster_ends(client: Client, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(SPEC, tmp_path / "run", progress=stop)
    assert load_run(tmp_path / "run").n_done == 5
    sweep(SPEC, tmp_path / "run", client=client)
    sweep(SPEC, tmp_path / "here", results="parquet")
    sweep(SPEC, tmp_path / "run", results="parquet")
    wanted = (tmp_path / "here/results.parquet").read_bytes()
    assert (tmp_path / "run/results.parquet").read_bytes() == wanted


class Lacking:
    """A future whose worker cannot even read it."""

    def result(self) -> None:
        raise ModuleNotFoundError("No module named 'loopsched'")


class Dead:
    """A future whose workers died of it."""

    def result(self) -> None:
        worker = type("Worker", (), {"address": "tcp://nowhere:2"})
        raise KilledWorker("key", worker, 3)


def test_a_batch_that_kills_workers_is_taken_apart_and_then_told() -> None:
    batches = Batches(plan_of(read_spec(SPEC), "1"), (), 1)
    batch = batches.take()
    assert batch is not None
    assert len(batch.tasks) > 1
    assert list(_answered(batches, Dead(), batch)) == []
    alone = [batches.take() for _ in batch.tasks]
    assert [one.tasks for one in alone if one] == [(task,) for task in batch.tasks]
    last = alone[0]
    for _ in range(2):
        assert last is not None
        assert list(_answered(batches, Dead(), last)) == []
        last = batches.take()
    assert last is not None
    given_up = list(_answered(batches, Lacking(), last))
    assert given_up[0][0].failure.endswith("ModuleNotFoundError: No module named 'loopsched'")
    [[answer]] = _answered(batches, Dead(), last)
    assert answer.failure == "given up after 3 times: its worker died, tcp://nowhere:2"


class Cluster:
    """As much of a client as the check of workers needs."""

    def __init__(self, theirs: Any = MINE, **found: Any) -> None:
        self.theirs = theirs
        self.found = found
        self.scheduler = type("Scheduler", (), {"address": "tcp://nowhere:1"})

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.found, 4)

    def run(self, *_: Any, workers: list[str], **__: Any) -> dict[str, Any]:
        return {worker: self.found[worker] for worker in workers}

    def run_on_scheduler(self, function: Any) -> Any:
        if self.theirs is None:
            raise ModuleNotFoundError("No module named 'loopsched'\n")
        return self.theirs


def test_workers_are_counted_by_their_threads() -> None:
    assert check_workers(Cluster(a=versions(), b=versions())) == 8


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (Cluster(), "it has no workers"),
        (Cluster(a=versions(), b=(("loopsched", "0.0.1"),)), "worker b: loopsched 0.0.1, not "),
        (Cluster(None, a=versions()), "scheduler 'tcp://nowhere:1': cannot run loopsched: Module"),
        (Cluster([("loopsched", "0.0.1")], a=versions()), "nowhere:1': loopsched 0.0.1, not "),
        (Cluster(a=ModuleNotFoundError("No module named 'loopsched'")), "worker a: cannot run"),
    ],
)
def test_workers_that_would_compute_something_else_are_refused(
    client: Cluster, message: str
) -> None:
    with pytest.raises(SweepError, match=message):
        check_workers(client)


class Deserted(Cluster):
    """A client of a cluster whose workers are gone, or that itself is."""

    def nthreads(self) -> dict[str, int]:
        if "scheduler" in self.found:
            raise OSError("no connection")
        return {}

    def submit(self, *_: Any, **__: Any) -> Any:
        return type("Never", (), {"add_done_callback": lambda *_: None})()

    def cancel(self, futures: list[Any], **_: Any) -> None:
        self.cancelled = futures


@pytest.mark.parametrize("client", [Deserted(), Deserted(scheduler=None)])
def test_a_cluster_without_workers_is_given_up(
    client: Deserted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_LOOK_S", 0.01)
    monkeypatch.setattr(cluster, "_ALONE_S", 0.03)
    batches = Batches(plan_of(read_spec(SPEC), "1"), (), 1)
    with pytest.raises(LoopschedError, match=r"no workers for 0\.03 s; the same command resumes"):
        next(on_cluster(batches, client))
    assert len(client.cancelled) == 3  # as for one worker: it may come


def test_a_worker_that_comes_and_lacks_the_library_ends_the_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacks = ModuleNotFoundError("No module named 'loopsched'")
    client = Cluster(a=versions(), gone=OSError("no connection"))
    monkeypatch.setattr(cluster, "_LOOK_S", 0.01)
    crew = cluster._Crew(client)
    assert crew.threads() == 8
    client.found["b"] = lacks
    time.sleep(0.02)
    with pytest.raises(SweepError, match="worker b: cannot run loopsched: ModuleNotFoundError"):
        crew.threads()


def test_a_worker_that_comes_late_with_another_version_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loopsched.sweeps import local

    def elsewhere(batch: Batch) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(tasks, "versions", lambda: (("loopsched", "0.0.1"),))
            return run_batch(batch)

    monkeypatch.setattr(local, "run_batch", elsewhere)
    with pytest.raises(LoopschedError, match=r"a worker runs loopsched 0\.0\.1, not "):
        sweep(SPEC, tmp_path)
    assert load_run(tmp_path).n_done == 0
