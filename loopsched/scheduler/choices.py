"""Which tensors levels keep, where the machine leaves a choice: one search for each.

A choice is a machine of its own, whose levels hold what is chosen (`models.places`).
The choices are searched one after the other, the most promising first; one whose bound
is no better than what has been found is left out.  The least of all bounds holds for
every schedule of every choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, combinations, product

from loopsched.base.errors import ConstraintError, EmptySpaceError
from loopsched.machines.arch import Arch
from loopsched.models.places import optional_tensors, resolved
from loopsched.nests.nest import PASSES, Place, Schedule
from loopsched.problems.problem import Problem
from loopsched.scheduler.allowed import space_of
from loopsched.scheduler.constraints import Constraints
from loopsched.scheduler.effort import Watch
from loopsched.scheduler.goal import Goal
from loopsched.scheduler.result import Certificate, Result, Scored, rank
from loopsched.scheduler.space import Space

Search = Callable[[Space, Watch, float], Result]


@dataclass(frozen=True, slots=True)
class Choice:
    """Tensors that pass levels, and the space of the machine that is left."""

    passing: tuple[Place, ...]
    space: Space

    def marked(self, schedule: Schedule) -> Schedule:
        """Say in a schedule what passes."""
        return replace(schedule, places=(*self.passing, *schedule.places))


def has_choice(problem: Problem, arch: Arch) -> bool:
    """Whether a schedule may say which tensors some level keeps."""
    return any(optional_tensors(problem, level) for level in arch.caches)


def choices(problem: Problem, arch: Arch, constraints: Constraints | None) -> Iterator[Choice]:
    """List the machines, the one that keeps everything first.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> arch = buffer_arch(capacity_bytes=64)
    >>> free = replace(arch, levels=(arch.memory, replace(arch.caches[0], may_hold=("A", "C"))))
    >>> found = choices(gemm(m=4, n=4, k=4), free, None)
    >>> [" ".join(map(str, choice.passing)) for choice in found]
    ['', '[buffer -A]', '[buffer -C]', '[buffer -A] [buffer -C]']
    """
    ways = []
    for level in arch.caches:
        names = optional_tensors(problem, level)
        subsets = chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))
        ways.append([tuple(Place(PASSES, level.name, name) for name in some) for some in subsets])
    for chosen in product(*ways):
        passing = tuple(chain.from_iterable(chosen))
        machine = resolved(problem, Schedule((), passing), arch)[1]
        with suppress(ConstraintError):  # units share fewer dims where no sums can meet
            yield Choice(passing, space_of(problem, machine, constraints))


def search_choices(
    space: Space,
    search: Search,
    floor: Callable[[Space, Goal], float],
    goal: Goal,
    watch: Watch,
) -> Result:
    """Search a machine that leaves a choice.

    Parameters
    ----------
    space : Space
        Of the machine with its choice.
    search : callable
        Searches the space of one choice, watched, told the best value so far.
    floor : callable
        Bounds a space in no time.
    goal : Goal
    watch : Watch
        What the work is charged to; each choice may use an equal part of what is left.

    Raises
    ------
    EmptySpaceError
        If no choice leaves a schedule.
    """
    found = list(choices(space.problem, space.arch, space.constraints))
    left = sorted((floor(choice.space, goal), at) for at, choice in enumerate(found))
    known: list[tuple[Choice, Result]] = []
    bounds: list[float] = []
    failed = EmptySpaceError(f"problem '{space.problem.name}': no schedule is left")
    best = float("inf")
    for number, (least, at) in enumerate(left):
        bounds.append(least)
        if least >= best or watch.why == "interrupt":
            continue
        part = watch.part(len(left) - number)
        try:
            result = search(found[at].space, part, best)
        except EmptySpaceError as error:
            failed = error
            if goal.strategy == "exact" and space.constraints.is_free:
                bounds[-1] = float("inf")
        else:
            known.append((found[at], result))
            bounds[-1] = max(least, result.certificate.lower_bound)
            best = min(best, result.certificate.value)
        watch.join(part)
    if not known:
        raise failed
    scored = [
        (
            rank(one.evaluation, goal.objective, goal.value),
            Scored(choice.marked(one.schedule), one.evaluation),
        )
        for choice, result in known
        for one in (Scored(result.schedule, result.evaluation), *result.alternatives)
    ]
    scored.sort(key=lambda pair: (pair[0], len(pair[1].schedule.places), str(pair[1].schedule)))
    behind = {order: one for order, one in reversed(scored) if order > scored[0][0]}
    proven = min(bounds) >= best
    certificate = Certificate(
        proven,
        best if proven else min(bounds),
        best,
        sum(result.certificate.nodes for _, result in known),
        replace(space, choices=tuple(choice.space for choice in found)),
        all(result.certificate.listed for _, result in known),
        watch.effort(),
    )
    return Result(
        space.problem, space.arch, goal.objective, known[0][1].strategy, scored[0][1].schedule,
        scored[0][1].evaluation, certificate,
        tuple(behind[order] for order in sorted(behind)[: goal.top - 1]),
    )  # fmt: skip
