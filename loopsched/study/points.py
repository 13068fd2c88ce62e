"""Changed machines, and every problem of a workload searched and estimated on each.

A point is a machine with one number changed.  What two points share (the same
machine, or the same problem on it) is computed once; processes share the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loopsched.base.arguments import near, option_value, pairs, show
from loopsched.base.errors import ArchError, ConstraintError, ProblemError, ScheduleError
from loopsched.base.pool import each_in_order
from loopsched.machines.arch import Arch
from loopsched.models.buffer import QUICK
from loopsched.models.score import evaluate
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload
from loopsched.scheduler.goal import Goal

if TYPE_CHECKING:
    from loopsched.gpu.kernel import Kernel

MOST_POINTS = 10_000
# Factors beyond are slips, and no machine.
LEAST_FACTOR, MOST_FACTOR = 1e-6, 1e6
Search = tuple[float, int, str, bool, Schedule]
Said = tuple[float, str]
Launches = tuple[tuple["Kernel", int], ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """A machine with one number changed, or as it is.

    Parameters
    ----------
    key : str
        As in `Arch.keys`; empty: nothing is changed.
    factor : float
        Asked for.
    ratio : float
        What became of it: whole numbers are rounded, shares end at 1.
    arch : Arch
    """

    key: str
    factor: float
    ratio: float
    arch: Arch


@dataclass(frozen=True, slots=True)
class Layer:
    """One problem at one point.

    Parameters
    ----------
    time_s : float, seconds
        What the best schedule promises.
    dram_bytes : int, bytes
        The same.
    bound_by : str
        ``compute``, or the level that it waits for.
    proven : bool
        Whether no schedule of the space is faster.
    estimate_s : float or None, seconds
        What a library's kernel is expected to take; None: not for this
        problem or machine.
    estimate_bound_by : str or None
    """

    time_s: float
    dram_bytes: int
    bound_by: str
    proven: bool
    estimate_s: float | None
    estimate_bound_by: str | None


def parse_vary(texts: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Read which numbers are to be multiplied by what.

    Parameters
    ----------
    texts : sequence of str
        Each a key and its factors, as in ``dram.bandwidth=0.5,1,2``.

    Raises
    ------
    ConstraintError
        With all faults.

    Examples
    --------
    >>> parse_vary(["dram.bandwidth=0.5,2", "L2.capacity=2", "dram.bandwidth=4"])
    {'dram.bandwidth': (0.5, 2.0, 4.0), 'L2.capacity': (2.0,)}
    """
    found: dict[str, tuple[float, ...]] = {}
    faults = []
    for text in texts:
        key, equals, values = (part.strip() for part in text.partition("="))
        if not (key and equals and values):
            faults.append(f"'{text}' is not KEY=FACTOR,..., such as dram.bandwidth=0.5,2")
            continue
        for word in values.split(","):
            try:
                found[key] = (*found.get(key, ()), float(word))
            except ValueError:
                meant = "give what to multiply the machine's value by, such as 2"
                faults.append(f"{key}: factor '{word.strip()}' is not a number; {meant}")
    ConstraintError.refuse("vary", faults)
    return found


def changed_machines(arch: Arch, vary: Mapping[str, Sequence[float]] | None) -> list[Changed]:
    """List the machine as it is, then each with one number changed.

    Parameters
    ----------
    arch : Arch
    vary : mapping of str to sequence of float, optional
        Factors of each key; by default half and twice of every key,
        where such a machine can be.

    Raises
    ------
    ConstraintError
        With every key, factor and machine that cannot be.

    Examples
    --------
    >>> from loopsched import buffer_arch
    >>> arch = buffer_arch(capacity_bytes=1024)
    >>> [(point.key, point.factor) for point in changed_machines(arch, {"dram.bandwidth": [2]})]
    [('', 1.0), ('DRAM.bandwidth', 2.0)]
    """
    names = {key.casefold(): key for key in arch.keys}
    faults = []
    wanted: dict[str, dict[float, None]] = {}
    for key, factors in (vary or dict.fromkeys(arch.keys, (0.5, 2.0))).items():
        name = names.get(str(key).casefold())
        if name is None:
            faults.append(f"'{arch.name}' has no '{key}'; {near(key, arch.keys)}")
            continue
        if not factors:
            faults.append(f"{name}: no factors")
        for factor in factors:
            is_number = isinstance(factor, int | float) and not isinstance(factor, bool)
            if is_number and LEAST_FACTOR <= factor <= MOST_FACTOR:
                wanted.setdefault(name, {})[float(factor)] = None
            else:
                allowed = f"from {LEAST_FACTOR:g} to {MOST_FACTOR:g}"
                faults.append(f"{name}: factor {show(factor)} is not a number {allowed}")
    if sum(map(len, wanted.values())) > MOST_POINTS:
        faults.append(f"more than {MOST_POINTS} points")
    points = [Changed("", 1.0, 1.0, arch)]
    for key, each in wanted.items() if not faults else ():
        for factor in each:
            try:
                points.append(changed_machine(arch, key, factor))
            except ArchError as error:
                if vary is None:  # half of a single unit, say
                    continue
                faults += [f"{key} times {factor:g}: {fault}" for fault in error.problems]
    ConstraintError.refuse("vary", faults)
    return points


def changed_machine(arch: Arch, key: str, factor: float) -> Changed:
    """Multiply one number of a machine.

    Raises
    ------
    ArchError
        If the result cannot be.

    Examples
    --------
    >>> from loopsched import buffer_arch
    >>> changed_machine(buffer_arch(capacity_bytes=1001), "buffer.capacity", 0.5).ratio
    0.4995004995004995
    """
    machine = arch.scaled(key, factor)
    # Rounding and limits may leave less than was asked for.
    ratio = machine.value(key) / arch.value(key) if key != "compute.macs" else factor
    return Changed(key, factor, ratio, machine)


def searched_machine(arch: Arch, name: str) -> Arch:
    """Leave out what a search does not look at, so that equal machines are equal."""
    # A search knows nothing of what only kernels need.
    return replace(arch, name=name, gpu=None)


def layers_of(
    problems: Sequence[Problem],
    points: Sequence[Changed],
    goal: Goal,
    jobs: int,
    progress: Callable[[str], None] | None = None,
    kernels: Sequence[Launches | None] | None = None,
) -> Iterator[tuple[Layer, ...]]:
    """Search and estimate every problem at every point, in order, on ``jobs`` processes.

    Closing the iterator (or an interrupt) ends the processes.
    """
    work = _Work(problems, points, goal, kernels)
    every = dict.fromkeys(task for number in range(len(points)) for task in work.tasks(number))
    known: dict[_Task, Any] = {}
    with closing(each_in_order(_run, [work.given(task) for task in every], jobs)) as answers:
        for number in range(len(points)):
            for task in work.tasks(number):
                if task not in known:  # answers come in this order
                    known[task] = next(answers)
                    if progress is not None:
                        progress(work.title(number))
            yield work.layers(number, known)


def count_tasks(
    problems: Sequence[Problem],
    points: Sequence[Changed],
    kernels: Sequence[Launches | None] | None = None,
) -> int:
    """Count the searches and estimates that differ."""
    work = _Work(problems, points, Goal(), kernels)
    return len({task for number in range(len(points)) for task in work.tasks(number)})


_Task = tuple[str, int, int]
_Case = tuple[Problem, Launches | None]


class _Work:
    """What has to be computed, by numbers of distinct problems and machines."""

    def __init__(
        self,
        problems: Sequence[Problem],
        points: Sequence[Changed],
        goal: Goal,
        kernels: Sequence[Launches | None] | None = None,
    ) -> None:
        first: dict[_Case, int] = {}
        cases = zip(problems, kernels or [None] * len(problems), strict=True)
        self._problem = [
            first.setdefault((problem.renamed("problem"), kernel), len(first))
            for problem, kernel in cases
        ]
        self.cases = tuple(first)
        self.goal = goal
        self.points = points
        # Schedules of problems, by what was changed: empty, nothing.
        self._seen: dict[tuple[int, str], list[Schedule]] = {}
        machines: dict[Arch, int] = {}
        name = points[0].arch.name
        self._searched, self._estimated = [], []
        for point in points:
            bare = searched_machine(point.arch, name)
            self._searched.append(machines.setdefault(bare, len(machines)))
            whole = replace(point.arch, name=name)
            self._estimated.append(machines.setdefault(whole, len(machines)))
        self.machines = tuple(machines)

    def tasks(self, number: int) -> Iterator[_Task]:
        """List the tasks of a point."""
        for problem in self._problem:
            yield "search", problem, self._searched[number]
            if self.machines[self._estimated[number]].gpu is not None:
                yield "estimate", problem, self._estimated[number]

    def given(self, task: _Task) -> tuple[Any, ...]:
        """List what a process needs for a task."""
        what, case, machine = task
        return what, *self.cases[case], self.machines[machine], self.goal

    def layers(self, number: int, known: Mapping[_Task, Any]) -> tuple[Layer, ...]:
        """Put a point's results together."""
        found = []
        for problem in self._problem:
            time_s, dram_bytes, bound_by, proven, schedule = self._search(number, problem, known)
            said: Said | None = known.get(("estimate", problem, self._estimated[number]))
            found.append(Layer(time_s, dram_bytes, bound_by, proven, *(said or (None, None))))
            mine = self._seen.setdefault((problem, self.points[number].key), [])
            if schedule not in mine:
                mine.append(schedule)
        return tuple(found)

    def _search(self, number: int, problem: int, known: Mapping[_Task, Any]) -> Search:
        """Take what a search found; if nothing is proven, or what another point's found."""
        best: Search = known["search", problem, self._searched[number]]
        key = self.points[number].key
        if best[3] or not key:
            return best
        tried = [*self._seen[problem, ""], *self._seen.get((problem, key), ())]
        machine = self.machines[self._searched[number]]
        for schedule in tried:
            with suppress(ScheduleError):  # does not fit this machine's scratchpad
                score = evaluate(self.cases[problem][0], schedule, machine, effort=QUICK)
                other = (score.time_s, score.dram_bytes, score.bound_by, False, schedule)
                best = min(best, other, key=self._rank)
        return best

    def _rank(self, found: Search) -> tuple[float, float]:
        time_s, dram_bytes = found[:2]
        if self.goal.objective == "dram_bytes":
            return dram_bytes, time_s
        return time_s, dram_bytes

    def title(self, number: int) -> str:
        """Name a point for people."""
        point = self.points[number]
        return f"{point.key} x {point.factor:g}" if point.key else point.arch.name


def _run(
    what: str, problem: Problem, kernel: Launches | None, arch: Arch, goal: Goal
) -> Search | Said | None:
    if what == "search":
        from loopsched.scheduler import search

        found = search(problem, arch, goal)
        if found.certificate.effort.stopped == "interrupt":
            raise KeyboardInterrupt
        score = found.evaluation
        proven = found.certificate.proven
        return score.time_s, score.dram_bytes, score.bound_by, proven, found.schedule
    return estimate(problem, arch) if kernel is None else kernel_estimate(kernel, arch)


def kernel_workload(text: str) -> tuple[Workload, tuple[Launches]]:
    """Make a workload of a kernel of the reports.

    Parameters
    ----------
    text : str
        A preset with its options, as in ``direct,size=64``.

    Returns
    -------
    (Workload, tuple of Launches)
        Its problem, as often as its largest kernel is started; and its kernels.

    Examples
    --------
    >>> workload, kernels = kernel_workload("layer_unroll,batch=100")
    >>> workload.problems[0].name, workload.counts
    ('layer_unroll,batch=100', (100,))
    >>> [(kernel.name, launches) for kernel, launches in kernels[0]]
    [('unroll', 100), ('multiply', 100)]
    """
    from loopsched.published.presets import preset

    name, *settings = (part.strip() for part in text.split(","))
    options = pairs(settings, f"kernel '{text}': option", "OPTION=VALUE", ConstraintError)
    steps = preset(name, **{option: option_value(value) for option, value in options.items()})
    kernel, launches = _largest(steps)
    problem = kernel.problem.renamed(text)
    return Workload(name, (problem,), (launches,)), (steps,)


def _largest(kernels: Launches) -> tuple[Kernel, int]:
    return max(kernels, key=lambda step: step[0].multiplies * step[0].problem.macs)


def kernel_estimate(kernels: Launches, arch: Arch) -> Said:
    """Estimate kernels that run one after another, a launch of the largest one's share."""
    from loopsched.gpu.estimate import estimate_steps

    _, launches = _largest(kernels)
    found = estimate_steps(kernels, arch)
    return found.time_s / launches, found.bound_by


def estimate(problem: Problem, arch: Arch) -> Said | None:
    """Estimate a library's kernel: seconds and what binds; None: not this kind."""
    from loopsched.gpu.library.estimates import library_estimate
    from loopsched.models.machine import data_type_of

    try:
        found = library_estimate(problem, arch, data_type=data_type_of(problem, arch))
    except ProblemError:
        return None
    return found.time_s, found.bound_by
