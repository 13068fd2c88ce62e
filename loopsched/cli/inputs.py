"""Inputs as a command line gives them: workloads, single problems, schedules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loopsched.base.errors import InputError, ScheduleError
from loopsched.base.files import MEBIBYTE, read_text
from loopsched.network.selection import Selection as Selection
from loopsched.network.selection import select as select
from loopsched.network.selection import select_one as select_one
from loopsched.problems.problem import Problem

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch
    from loopsched.nests.nest import Schedule


def schedule_from(text: str, problem: Problem, dialect: str = "loopsched") -> Schedule:
    """Read a schedule: as text, or from a file named ``@FILE``.

    Examples
    --------
    >>> problem = select_one("gemm:m=4,n=3,k=2")
    >>> print(schedule_from("m:4 n:3 k:2", problem))
    M:4 N:3 K:2
    """
    from loopsched.nests.notation import parse_schedule, read_schedule_dict

    if not text.startswith("@"):
        return parse_schedule(text, problem, dialect=dialect)
    path = Path(text[1:])
    if path.suffix == ".json":
        return read_schedule_dict(path, problem)
    content = read_text(
        path, "a schedule such as 'M:4 N:3 K:2'", most_bytes=MEBIBYTE, error=ScheduleError
    )
    try:
        return parse_schedule(content, problem, dialect=dialect)
    except InputError as error:
        raise ScheduleError.joined(str(path), error.problems) from None


def best_schedule(problem: Problem, arch: Arch) -> Schedule:
    """Search for the best schedule, with every default."""
    from loopsched.scheduler import search

    return search(problem, arch).schedule
