"""Batches on a cluster, by Dask.  Workers compute; only this process writes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from loopsched.base.errors import LoopschedError, MissingExtraError, SweepError
from loopsched.sweeps.batches import Batches
from loopsched.sweeps.tasks import Answer, Answers, Batch, run_batch, version_faults, versions

_EXTRA = "a cluster needs Dask: pip install 'loopsched[dask]'"
# For each thread, with those that are worked on: messages take their time.
_AHEAD = 3
_PATIENCE_S = 10
# Between looks at who is there; and how long nobody may be.
_LOOK_S = 5
_ALONE_S = 300


def connect(address: str) -> Any:
    """Reach a scheduler of Dask.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    SweepError
        If there is no scheduler.
    """
    try:
        import distributed
    except ImportError:
        raise MissingExtraError(_EXTRA) from None
    client: Any = distributed.Client
    try:
        return client(address, timeout=_PATIENCE_S)
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SweepError(f"scheduler '{address}': {reason}") from None


def check_workers(client: Any) -> int:
    """Count the threads of a cluster, once it is sure that they compute what we would.

    Raises
    ------
    SweepError
        If there are no workers, or one of them runs something else; or if the
        scheduler, which reads what it passes on, has not this loopsched.
    """
    threads: dict[str, int] = client.nthreads()
    address = client.scheduler.address
    if not threads:
        raise SweepError(f"scheduler '{address}': it has no workers")
    mine = dict(versions())
    try:
        theirs = dict(client.run_on_scheduler(versions))
    except Exception as error:  # whatever happened there is raised here
        raise SweepError(f"scheduler '{address}': cannot run loopsched: {_line(error)}") from None
    name = "loopsched"
    faults = version_faults({name: mine[name]}, theirs)
    SweepError.refuse(f"scheduler '{address}'", faults)
    _check_versions(client, threads)
    return max(1, sum(threads.values()))


def _check_versions(client: Any, workers: Iterable[str]) -> None:
    faults = []
    found = client.run(versions, workers=list(workers), on_error="return")
    for address, theirs in sorted(found.items()):
        if isinstance(theirs, OSError):
            continue  # it has gone meanwhile
        if isinstance(theirs, BaseException):
            faults.append(f"worker {address}: cannot run loopsched: {_line(theirs)}")
        else:
            faults += [
                f"worker {address}: {one}" for one in version_faults(dict(versions()), dict(theirs))
            ]
    SweepError.refuse("cluster", faults)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def on_cluster(batches: Batches, client: Any) -> Answers:
    """Work on batches, on a cluster; yield answers as they come.

    What a dead worker had is done again by the others, and by those that come
    later; a cluster that stays without any is given up.  Closing the iterator
    (or an interrupt) cancels what has not begun.
    """
    # Equal keys of two clients would be one task to Dask.
    name = f"loopsched-{uuid4().hex}"
    given: dict[Any, Batch] = {}
    arrived: SimpleQueue[Any] = SimpleQueue()
    crew = _Crew(client)
    count = 0
    try:
        while True:
            room = _AHEAD * max(1, crew.threads())
            while len(given) < room and (batch := batches.take()) is not None:
                future = client.submit(run_batch, batch, key=f"{name}-{count}", pure=False)
                count += 1
                given[future] = batch
                future.add_done_callback(arrived.put)
            if not given:
                return
            try:
                future = arrived.get(timeout=_LOOK_S)
            except Empty:
                continue
            yield from _answered(batches, future, given.pop(future))
    finally:
        client.cancel(list(given), force=True)


class _Crew:
    """The workers of a cluster, looked at every few seconds."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._known: frozenset[str] = frozenset()
        self._threads = 0
        self._looked = -math.inf
        self._seen = time.monotonic()

    def threads(self) -> int:
        """Count the threads that there are.

        Raises
        ------
        LoopschedError
            If there have been none for long.
        SweepError
            If one that has come runs something else: it would take a lot of
            work, and fail at once.
        """
        now = time.monotonic()
        if now - self._looked >= _LOOK_S:
            self._looked = now
            try:
                workers = self._client.nthreads()
                if new := workers.keys() - self._known:
                    _check_versions(self._client, new)
            except OSError:  # the scheduler may come back, as workers may
                workers = {}
            self._known = frozenset(workers)
            self._threads = sum(workers.values())
            if self._threads:
                self._seen = now
            elif now - self._seen >= _ALONE_S:
                raise LoopschedError(
                    f"the cluster has had no workers for {_ALONE_S} s; the same command resumes"
                )
        return self._threads


def _answered(batches: Batches, future: Any, batch: Batch) -> Answers:
    from distributed import CancelledError, KilledWorker

    try:
        answers: tuple[Answer, ...] = future.result()
    except CancelledError:
        raise LoopschedError("the cluster gave the work up; the same command resumes") from None
    except KilledWorker as error:
        answers = batches.lost(batch, f"its worker died, {error.last_worker.address}")
    except Exception as error:  # as of a worker that came late and lacks a library
        answers = batches.lost(batch, _line(error))
    else:
        batches.learn(answers)
    if answers:
        yield answers
