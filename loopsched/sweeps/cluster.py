"""Batches on a cluster, by Dask.  Workers compute; only this process writes."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from loopsched.errors import LoopschedError, MissingExtraError, SweepError
from loopsched.sweeps.batches import Batches
from loopsched.sweeps.tasks import Answer, Answers, Batch, run_batch, version_faults, versions

_EXTRA = "a cluster needs Dask: pip install 'loopsched[dask]'"
# For each thread, with those that are worked on: messages take their time.
_AHEAD = 3
_PATIENCE_S = 10


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


def on_cluster(batches: Batches, client: Any, threads: int) -> Answers:
    """Work on batches, on a cluster; yield answers as they come.

    What a dead worker had is done again by the others.  Closing the iterator
    (or an interrupt) cancels what has not begun.
    """
    from distributed import as_completed

    # Equal keys of two clients would be one task to Dask.
    name = f"loopsched-{uuid4().hex}"
    given: dict[Any, Batch] = {}
    completed: Any = as_completed
    arriving = completed([], raise_errors=False)
    count = 0
    try:
        while True:
            while len(given) < _AHEAD * threads and (batch := batches.take()) is not None:
                future = client.submit(run_batch, batch, key=f"{name}-{count}", pure=False)
                count += 1
                given[future] = batch
                arriving.add(future)
            if not given:
                return
            future = next(arriving)
            yield from _answered(batches, future, given.pop(future))
    finally:
        client.cancel(list(given), force=True)


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
