"""A launch that was measured: what ran, and what must move."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import problem_bytes, tensor_bytes
from loopsched.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch to predict.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    abreast : int
        Resident blocks of one multiprocessor that advance side by side.
    l2_sectors : int or None
        Sectors that multiprocessors load, counted from addresses; None: from
        the bytes that the schedule moves.
    compulsory_read_bytes, written_bytes : int
        Inputs and output, each once.
    streams : bool
        Inputs and output pass once, at one pace: nothing has to be replayed.
    """

    problem: Problem
    schedule: Schedule | None
    abreast: int
    l2_sectors: int | None
    compulsory_read_bytes: int
    written_bytes: int
    streams: bool = False


def compulsory_bytes(problem: Problem) -> tuple[int, int]:
    """Count the bytes of all inputs, and of the output."""
    written = tensor_bytes(problem, problem.output_tensor)
    return problem_bytes(problem) - written, written
