"""Batches on a cluster, by Dask.  Workers compute; only this process writes."""

from __future__ import annotations

import math
import time
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from loopsched.errors import LoopschedError, MissingExtraError, SweepError
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
        If there are no workers, or one of them runs something else.
    """
    threads: dict[str, int] = client.nthreads()
    if not threads:
        raise SweepError(f"scheduler '{client.scheduler.address}': it has no workers")
    found = client.run(versions, on_error="return")
    faults = []
    for address, theirs in sorted(found.items()):
        if isinstance(theirs, BaseException):
            faults.append(f"worker {address}: cannot run loopsched: {theirs}")
        else:
            faults += [
                f"worker {address}: {one}" for one in version_faults(dict(versions()), dict(theirs))
            ]
    if faults:
        raise SweepError.joined("cluster", faults)
    return max(1, sum(threads.values()))


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
        self._threads = 0
        self._looked = -math.inf
        self._seen = time.monotonic()

    def threads(self) -> int:
        """Count the threads that there are.

        Raises
        ------
        LoopschedError
            If there have been none for long.
        """
        now = time.monotonic()
        if now - self._looked >= _LOOK_S:
            self._looked = now
            try:
                self._threads = sum(self._client.nthreads().values())
            except OSError:  # the scheduler may come back, as workers may
                self._threads = 0
            if self._threads:
                self._seen = now
            elif now - self._seen >= _ALONE_S:
                raise LoopschedError(
                    f"the cluster has had no workers for {_ALONE_S} s; the same command goes on"
                )
        return self._threads


def _answered(batches: Batches, future: Any, batch: Batch) -> Answers:
    from distributed import CancelledError, KilledWorker

    try:
        answers: tuple[Answer, ...] = future.result()
    except CancelledError:
        raise LoopschedError("the cluster gave the work up; the same command goes on") from None
    except KilledWorker as error:
        answers = batches.lost(batch, f"its worker died, {error.last_worker.address}")
    except Exception as error:  # as of a worker that came late and lacks a library
        answers = batches.lost(batch, f"{type(error).__name__}: {error}")
    else:
        batches.learn(answers)
    if answers:
        yield answers
