"""Batches on processes of this computer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopsched.base.errors import LoopschedError
from loopsched.base.pool import DeadProcess, Processes
from loopsched.sweeps.batches import Batches
from loopsched.sweeps.tasks import Answer, Answers, Batch, run_batch

if TYPE_CHECKING:
    from concurrent.futures import Future

# One that is worked on and one that waits: no process is idle until it gets the next one.
_AHEAD = 2
# Without an answer from any: then it is no single search that they die of.
_MOST_DEATHS = 12


def on_processes(batches: Batches, jobs: int) -> Answers:
    """Work on batches, on so many processes; yield answers as they come.

    One job is done in this process.  Closing the iterator (or an interrupt)
    ends the processes.
    """
    if jobs == 1:
        while (batch := batches.take()) is not None:
            for task in batch.tasks:
                answers = run_batch(Batch((task,), batch.goal, batch.versions))
                batches.learn(answers)
                yield answers
        return
    with Processes(jobs, hears=False) as pool:  # an interrupt is this process's to handle
        yield from _spread(batches, pool, _AHEAD * jobs)


def _spread(batches: Batches, pool: Processes, most: int) -> Answers:
    from concurrent.futures import FIRST_COMPLETED, wait

    given: dict[Future[tuple[Answer, ...]], Batch] = {}
    deaths = 0
    while True:
        while len(given) < most and (batch := batches.take()) is not None:
            given[pool.submit(run_batch, batch)] = batch
        if not given:
            return
        for future in wait(given, return_when=FIRST_COMPLETED).done:
            batch = given.pop(future)
            try:
                answers = future.result()
            except DeadProcess as how:
                answers = batches.lost(batch, str(how))
                deaths += 1
                if deaths >= _MOST_DEATHS:
                    raise LoopschedError(
                        f"{deaths} processes in a row gave no answer; of the last one, {how}; "
                        "a script that sweeps on several needs: if __name__ == '__main__':"
                    ) from None
            else:
                deaths = 0
                batches.learn(answers)
            if answers:
                yield answers
