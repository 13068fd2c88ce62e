"""Batches on processes of this computer.

Each process has a pipe of its own, so that it is known who died, and of what.
A process whose parent is gone ends by itself.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from loopsched.base.errors import LoopschedError
from loopsched.sweeps.batches import Batches
from loopsched.sweeps.tasks import Answer, Answers, Batch, run_batch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

# One that is worked on and one that waits: no process is idle while its answer travels.
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
                answers = run_batch(Batch((task,), batch.options, batch.versions))
                batches.learn(answers)
                yield answers
        return
    workers: list[_Worker] = []
    try:
        workers += [_Worker.start() for _ in range(jobs)]
        yield from _spread(batches, workers)
    finally:
        for worker in workers:
            worker.end()


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection[Any, Any]
    given: deque[Batch] = field(default_factory=deque)

    @classmethod
    def start(cls) -> _Worker:
        from multiprocessing import get_context

        context = get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()  # so that the pipe ends when the process does
        return cls(process, mine)

    def send(self, batch: Batch) -> None:
        self.given.append(batch)
        try:
            self.pipe.send(batch)
        except OSError:
            return  # it is dead, which its end of the pipe will tell

    def end(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _spread(batches: Batches, workers: list[_Worker]) -> Answers:
    from multiprocessing.connection import wait

    deaths = 0
    while True:
        _feed(batches, workers)
        busy = {worker.pipe: worker for worker in workers if worker.given}
        if not busy:
            return
        for pipe in wait(list(busy)):
            worker = next(one for one in workers if one.pipe is pipe)
            try:
                answers: tuple[Answer, ...] = worker.pipe.recv()
            except (EOFError, OSError):
                workers.remove(worker)
                why, answers = _buried(batches, worker)
                deaths += 1
                if deaths >= _MOST_DEATHS:
                    raise LoopschedError(
                        f"{deaths} processes in a row gave no answer; of the last one, {why}; "
                        "a script that sweeps on several needs: if __name__ == '__main__':"
                    ) from None
                workers.append(_Worker.start())
            else:
                deaths = 0
                worker.given.popleft()
                batches.learn(answers)
            if answers:
                yield answers


def _feed(batches: Batches, workers: list[_Worker]) -> None:
    """Give everyone one batch before anyone gets a second."""
    for depth in range(_AHEAD):
        for worker in workers:
            if len(worker.given) == depth:
                batch = batches.take()
                if batch is None:
                    return
                worker.send(batch)


def _buried(batches: Batches, worker: _Worker) -> tuple[str, tuple[Answer, ...]]:
    """Take back what a dead process had: it died of the first batch, if of any.

    Returns how it died, and the tasks that are given up.
    """
    worker.end()
    code = worker.process.exitcode or 0
    how = f"by signal {-code}" if code < 0 else f"with exit status {code}"
    why = f"its process died {how}"
    for batch in reversed(list(worker.given)[1:]):
        batches.give_back(batch)
    return why, batches.lost(worker.given[0], why)


def _serve(pipe: Connection[Any, Any]) -> None:
    """Answer batches until the parent is gone."""
    import signal

    # An interrupt is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting: SimpleQueue[Batch] = SimpleQueue()
    # A thread reads, so that neither side ever waits for the other to read.
    threading.Thread(target=_receive, args=(pipe, waiting), daemon=True).start()
    while True:
        answers = run_batch(waiting.get())
        try:
            pipe.send(answers)
        except OSError:
            return


def _receive(pipe: Connection[Any, Any], waiting: SimpleQueue[Batch]) -> None:
    while True:
        try:
            waiting.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(1)  # also in the middle of a search: nobody is left to hear of it
