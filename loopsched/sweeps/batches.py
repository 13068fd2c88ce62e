"""Batches of searches, each about as long as any other.

A batch costs a few milliseconds to send and to write down, a search from
half a millisecond to minutes.  How long a search takes is learnt from the same
problem on another machine, and until then from all others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable

from loopsched.sweeps.plan import Plan, Task
from loopsched.sweeps.tasks import Answer, Batch, versions

# Of a batch: long beside what it costs, short beside what a kill may lose.
_SECONDS = 0.4
_MOST_TASKS = 200
_FIRST_GUESS = 0.1
# A search whose process has died so often is given up.
MOST_ATTEMPTS = 3


class Batches:
    """The work that is left, cut to size as it is asked for.

    Parameters
    ----------
    plan : Plan
    done : container of int
        Tasks that need not be done.
    workers : int
        Processes that share the work.
    """

    def __init__(self, plan: Plan, done: Container[int], workers: int) -> None:
        self._plan = plan
        self._goal = plan.spec.goal
        self._left = deque(number for number in range(plan.n_tasks) if number not in done)
        self._again: deque[Batch] = deque()
        self._workers = workers
        self._seconds: dict[int, float] = {}
        self._mean = _FIRST_GUESS
        self._n_learnt = 0

    def take(self) -> Batch | None:
        """Cut the next batch; None: there is no more, for now."""
        if self._again:
            return self._again.popleft()
        if not self._left:
            return None
        # Towards the end batches get shorter, so that nobody waits for the last one.
        share = len(self._left) * self._mean / (2 * self._workers)
        room = min(_SECONDS, share)
        tasks: list[Task] = []
        while self._left and len(tasks) < _MOST_TASKS:
            room -= self._seconds.get(self._kind(self._left[0]), self._mean)
            if tasks and room < 0:
                break
            tasks.append(self._plan.task(self._left.popleft()))
        return Batch(tuple(tasks), self._goal, versions())

    def learn(self, answers: Iterable[Answer]) -> None:
        """Note how long searches took."""
        for answer in answers:
            self._seconds[self._kind(answer.task)] = answer.seconds
            self._n_learnt += 1
            self._mean += (answer.seconds - self._mean) / self._n_learnt

    def lost(self, batch: Batch, why: str) -> tuple[Answer, ...]:
        """Take back a batch that got no answer: each of its tasks gets a batch of its own.

        A task that has had its chances is answered by why it failed.
        """
        attempt = batch.attempt + 1
        if len(batch.tasks) == 1 and attempt >= MOST_ATTEMPTS:
            reason = f"given up after {attempt} times: {why}"
            return (Answer(batch.tasks[0].number, "", reason),)
        # What several were in is no attempt of any one of them.
        kept = attempt if len(batch.tasks) == 1 else 0
        self._again.extend(Batch((task,), batch.goal, batch.versions, kept) for task in batch.tasks)
        return ()

    def _kind(self, number: int) -> int:
        """Number the problem and objective: much the same work on every machine."""
        return number % (len(self._plan.problems) * len(self._plan.spec.objectives))
