"""The work itself, wherever it is done: a batch of searches, answered by text."""

from __future__ import annotations

import platform
import time
import traceback
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache

from loopsched.base.errors import LoopschedError
from loopsched.base.rows import Row, json_text
from loopsched.base.version import __version__
from loopsched.scheduler import Goal, warm_up
from loopsched.scheduler.rows import result_rows
from loopsched.sweeps.plan import FOUND, MACHINE, PROBLEM, Task


@dataclass(frozen=True, slots=True)
class Batch:
    """Tasks that travel together.

    Parameters
    ----------
    tasks : tuple of Task
    goal : Goal
        Of each search, except its objective.
    versions : tuple of (str, str)
        What the process that works on it must run.
    attempt : int
        How often a process has died of it.
    """

    tasks: tuple[Task, ...]
    goal: Goal
    versions: tuple[tuple[str, str], ...]
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one task.

    Parameters
    ----------
    task : int
    rows : str
        JSON; empty: there are none.
    failure : str
        Why there are none, which is no property of the task.
    seconds : float
        How long it took.
    """

    task: int
    rows: str
    failure: str = ""
    seconds: float = 0.0


# Answers as they come; closing it ends the work.
Answers = Generator[tuple[Answer, ...], None, None]


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """Say what results might depend on in this process."""
    import numba
    import numpy as np

    return (
        ("loopsched", __version__),
        ("python", ".".join(platform.python_version_tuple()[:2])),
        ("numpy", str(np.__version__)),
        ("numba", str(numba.__version__)),
    )


def version_faults(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Say what differs between two processes.

    Examples
    --------
    >>> version_faults({"numpy": "2.0", "numba": "0.61"}, {"numpy": "2.0", "numba": "0.60"})
    ['numba 0.60, not 0.61']
    """
    return [
        f"{name} {theirs.get(name, 'missing')}, not {version}"
        for name, version in mine.items()
        if theirs.get(name) != version
    ]


def run_batch(batch: Batch) -> tuple[Answer, ...]:
    """Work on a batch; never fails.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> task = Task(0, gemm(m=4, n=4, k=4), buffer_arch(capacity_bytes=8), "time")
    >>> [answer] = run_batch(Batch((task,), Goal(), versions()))
    >>> answer.rows.startswith('[{"rank": 1, "schedule": "'), answer.failure
    (True, '')
    """
    faults = version_faults(dict(batch.versions), dict(versions()))
    if faults:
        failure = f"a worker runs {', '.join(faults)}"
        return tuple(Answer(task.number, "", failure) for task in batch.tasks)
    warm_up()
    return tuple(_answer(task, batch.goal) for task in batch.tasks)


def _answer(task: Task, goal: Goal) -> Answer:
    start = time.perf_counter()
    try:
        rows = _rows(task, goal)
    except Exception:
        # A fault of ours in one search; the others are worth having.
        failure = traceback.format_exc().strip()
        return Answer(task.number, "", failure, time.perf_counter() - start)
    return Answer(task.number, json_text(rows), "", time.perf_counter() - start)


def _rows(task: Task, goal: Goal) -> list[Row]:
    from loopsched.scheduler import search

    try:
        result = search(task.problem, task.arch, goal, objective=task.objective)
    except LoopschedError as error:
        return [_failed(str(error))]
    found = []
    for row in result_rows(result, has_brackets=False):
        # The problem and the objective stand at the head of a row.
        found.append({name: row[name] for name in FOUND} | {"error": None})
    return found


def _failed(reason: str) -> Row:
    text = reason.removeprefix(f"problem '{PROBLEM}': ").replace(f"'{MACHINE}'", MACHINE)
    return {**dict.fromkeys(FOUND), "error": text.replace(f"'{PROBLEM}'", PROBLEM)}
