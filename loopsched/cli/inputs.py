"""Inputs as a command line gives them: workloads, single problems, schedules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from loopsched.base.errors import InputError, ScheduleError
from loopsched.base.files import MEBIBYTE, read_text
from loopsched.cli import output
from loopsched.network import selection
from loopsched.network.selection import Selection as Selection
from loopsched.network.selection import choose
from loopsched.problems.problem import Problem

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch
    from loopsched.nests.nest import Schedule
    from loopsched.problems.workload import Workload


def select(text: str, layers: Sequence[str] = (), element_bytes: int | None = None) -> Selection:
    """Find the problems that are to be worked on; a file of results has none."""
    _refuse_results(text)
    return selection.select(text, layers, element_bytes)


def select_one(text: str, layers: Sequence[str] = (), element_bytes: int | None = None) -> Problem:
    """Find the one problem that is to be worked on; a file of results has none."""
    _refuse_results(text)
    return selection.select_one(text, layers, element_bytes)


def _refuse_results(text: str) -> None:
    from loopsched.cli.saved import is_result_file, refuse_layers

    if is_result_file(text):
        refuse_layers(text)
        raise InputError(
            f"{text}: saved results, where a workload is needed; 'loopsched report {text}' makes a "
            f"page of them, 'loopsched show {text}' shows their loops"
        )


def _refuse_other_inputs(results: str) -> None:
    """Refuse options that say what the rows of a result file say themselves."""
    context = click.get_current_context(silent=True)
    for name in ("arch", "element_bytes"):
        if context and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} does not apply to {results}: its rows say what it is")


def name_of(workload: Workload) -> str:
    """Name a workload; none for a problem in one line, which has its own."""
    is_own = [problem.name for problem in workload.problems] == [workload.name]
    return "" if is_own else workload.name


@dataclass(frozen=True)
class Inputs:
    """What a command line names, loaded when it is asked for.

    Parameters
    ----------
    text : str
        A WORKLOAD or PROBLEM.
    layers : sequence of str
    element_bytes : int, optional
    arch : str
        As the command line has it.
    schedule_text : str, optional
        A schedule, or ``@FILE``.
    dialect : str
    """

    text: str
    layers: tuple[str, ...] = ()
    element_bytes: int | None = None
    arch: str = ""
    schedule_text: str | None = None
    dialect: str = "loopsched"

    @cached_property
    def whole(self) -> Selection:
        """All problems of the workload."""
        return select(self.text, (), self.element_bytes)

    @cached_property
    def chosen(self) -> Selection:
        """The problems of the workload that are meant."""
        return choose(self.whole.workload, self.layers) if self.layers else self.whole

    @cached_property
    def problem(self) -> Problem:
        """The one problem that is meant."""
        return select_one(self.text, self.layers, self.element_bytes)

    @cached_property
    def machine(self) -> Arch:
        """The machine."""
        from loopsched.machines.arch_file import load_arch

        return load_arch(self.arch)

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule that is given, else the best one."""
        if self.schedule_text is None:
            return best_schedule(self.problem, self.machine)
        return schedule_from(self.schedule_text, self.problem, self.dialect)

    @property
    def name(self) -> str:
        """The name of the workload; none for a problem in one line, which has its own."""
        return name_of(self.whole.workload)

    @property
    def on(self) -> str:
        """The machine and the data types whose rates count there, for people."""
        return on(self.machine, self.chosen.workload.problems)

    @property
    def has_schedules(self) -> bool:
        """Whether schedules are given, by text or in a result file."""
        from loopsched.cli.saved import is_result_file

        return self.schedule_text is not None or is_result_file(self.text)

    def schedules(self, rank: int | None) -> Iterator[tuple[Problem, Schedule, Arch]]:
        """Go through what is given: one schedule, a result file's, or each problem's best."""
        from loopsched.cli.saved import is_result_file, refuse_layers, saved_schedules

        is_saved = is_result_file(self.text)
        if rank is not None and not is_saved and self.whole:
            raise click.UsageError("--rank is for files of saved results")
        if is_saved:
            refuse_layers(self.text)
            if self.schedule_text is not None:
                raise click.UsageError(
                    f"{self.text} holds saved results, which have their schedules; leave out "
                    "SCHEDULE"
                )
            _refuse_other_inputs(self.text)
            yield from saved_schedules(self.text, self.layers, rank)
        elif self.schedule_text is not None:
            yield self.problem, self.schedule, self.machine
        else:
            for one in self.chosen.workload.problems:
                yield one, best_schedule(one, self.machine), self.machine


def on(machine: Arch, problems: Iterable[Problem]) -> str:
    """Name a machine and the data types whose rates count for some problems.

    Examples
    --------
    >>> from loopsched.machines.arch_file import load_arch
    >>> on(load_arch("v100"), [select_one("gemm:m=4,n=3,k=2", element_bytes=2)])
    'v100, fp16'
    """
    from loopsched.models.machine import data_type_of

    types = dict.fromkeys(data_type_of(problem, machine) for problem in problems)
    return f"{machine.name}, {' and '.join(types)}"


def schedule_from(text: str, problem: Problem, dialect: str = "loopsched") -> Schedule:
    """Read a schedule: as text, or from a file named ``@FILE``.

    Examples
    --------
    >>> problem = select_one("gemm:m=4,n=3,k=2")
    >>> print(schedule_from("m:4 n:3 k:2", problem))
    M:4 N:3 K:2
    """
    from loopsched.nests.notation import parse_schedule
    from loopsched.nests.schedule_file import read_schedule_dict

    if not text.startswith("@"):
        return parse_schedule(text, problem, dialect=dialect)
    path = Path(text[1:])
    if path.suffix == ".json":
        return read_schedule_dict(path, problem)
    content = read_text(
        path, "a schedule such as 'M:4 N:3 K:2'", most_bytes=MEBIBYTE, error=ScheduleError
    )
    with ScheduleError.at(str(path)):
        return parse_schedule(content, problem, dialect=dialect)


def best_schedule(problem: Problem, arch: Arch) -> Schedule:
    """Search for the best schedule, with every default."""
    from loopsched.scheduler import search

    output.announce_compilation()
    return search(problem, arch).schedule
