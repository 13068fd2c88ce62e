"""Search: the best schedule of a problem on a machine, with a proof or the gap."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import fields as fields_of
from functools import cache
from typing import TYPE_CHECKING, Unpack

from loopsched.base.errors import ConstraintError
from loopsched.base.keywords import takes
from loopsched.base.pool import check_jobs, each_in_order
from loopsched.scheduler.allowed import space_of
from loopsched.scheduler.constraints import Constraints
from loopsched.scheduler.counting import n_schedules
from loopsched.scheduler.effort import Effort, Report, Watch
from loopsched.scheduler.goal import (
    OBJECTIVES,
    STRATEGIES,
    VALUES,
    Goal,
    Goals,
    Objective,
    Strategy,
    Value,
)
from loopsched.scheduler.result import Certificate, Result, Results, Scored, prove_with
from loopsched.scheduler.space import Space

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch
    from loopsched.problems.problem import Problem
    from loopsched.problems.workload import Workload

MAX_TRIED = 2**16
"""Points of a problem that is called proven only if its log was tried."""


@takes(Goal)
def search(
    problem: Problem,
    arch: Arch,
    goal: Goal | None = None,
    *,
    report: Report | None = None,
    **fields: Unpack[Goals],
) -> Result:
    """Find the best schedule of a problem on a machine.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    goal : Goal, optional
        What to find, and what may be used for that.
    report : callable, optional
        Called with the best value and the lower bound, a few times a second.
    objective, strategy, value, top, constraints, seed, samples, budget, time_limit_s, gap
        Fields of the `Goal`; they override those of ``goal``.

    Returns
    -------
    Result
        ``certificate.effort`` says what ended the search early, if anything
        did.  An interrupt (Ctrl-C) ends it, too, with the best so far.

    Raises
    ------
    ConstraintError
        If an argument names what does not exist.
    EmptySpaceError
        If no schedule is left, or nothing fits.

    See Also
    --------
    search_workload, evaluate, space_size, verify_proof

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> result = search(gemm(m=1024, n=1024, k=1024), load_arch("titan_v"))
    >>> result.certificate.proven, result.evaluation.bound_by
    (True, 'compute')
    """
    sought = Goal.of(goal, fields)
    if sought.time_limit_s is not None:
        warm_up(has_scratchpads=arch.has_scratchpads)
    space = space_of(problem, arch, sought.constraints)
    watch = Watch(sought.allowed, report)

    def one(space: Space, watch: Watch, rival: float = float("inf")) -> Result:
        if sought.strategy != "exact":
            from loopsched.scheduler.sampling import sampled_search

            return sampled_search(space, sought, watch)
        if not space.constraints.is_free:
            from loopsched.scheduler.constrained import constrained_search

            return constrained_search(space, sought, watch)
        from loopsched.scheduler.exact import exact_search

        return exact_search(space, sought, watch, rival=rival)

    from loopsched.scheduler.choices import has_choice, search_choices

    if not has_choice(problem, arch):
        found = one(space, watch)
    else:
        from loopsched.scheduler.exact import quick_bound

        found = search_choices(space, one, quick_bound, sought, watch)
    if not found.certificate.proven or problem.macs > MAX_TRIED:
        return found  # of large problems it is taken on trust (docs/proofs.md)
    from loopsched.scheduler.proof import settled

    return settled(found)


@cache
def warm_up(*, has_scratchpads: bool = False) -> None:
    """Compile the search, or load it, before anything is timed.

    The part that places tiles one by one is left out where no machine has a scratchpad.
    """
    from loopsched.machines.arch import Arch, buffer_arch
    from loopsched.machines.levels import Compute, Level
    from loopsched.problems.builders import conv2d, gemm

    levels = (
        Level("memory", "memory", None),
        Level("shared", "cache", 600, bandwidth_bytes_per_s=0.5),
        Level("own", "cache", 100, unit="core", instances=3, bandwidth_bytes_per_s=4.0),
    )
    units = Compute("core", 3, 1.0, 1.0, (("fp32", 0.01),))
    small = Arch("small", levels, units)
    for problem in (gemm(m=7, n=11, k=5), conv2d(c=1, k=3, h=9, w=4, r=3, s=2, padding=(1, 0))):
        search(problem, small)
    if has_scratchpads:
        search(gemm(m=4, n=4, k=4), buffer_arch(capacity_bytes=64, policy="explicit"))


@takes(Goal)
def search_workload(
    workload: Workload,
    arch: Arch,
    goal: Goal | None = None,
    *,
    jobs: int = 1,
    report: Report | None = None,
    **fields: Unpack[Goals],
) -> Results:
    """Search every problem of a workload, in order.

    Parameters
    ----------
    workload : Workload
    arch : Arch
    goal : Goal, optional
        As for `search`, with a budget and a time limit for each problem.
    jobs : int
        Processes; results are the same, in the same order, for any number.
    report : callable, optional
        As for `search`; not called from other processes.
    objective, strategy, value, top, constraints, seed, samples, budget, time_limit_s, gap
        Fields of the `Goal`; they override those of ``goal``.

    Returns
    -------
    Results
        A sequence; each result is found when it is first asked for.  Problems
        that differ by name only are searched once.

    Raises
    ------
    KeyboardInterrupt
        After an interrupt, while results are read; the best so far of the
        problems being searched come first.

    See Also
    --------
    search, sweep, report_html

    Examples
    --------
    >>> from loopsched import Workload, gemm, load_arch
    >>> layers = [gemm(m=64, n=64, k=64, name=f"layer {i}") for i in range(3)]
    >>> found = search_workload(Workload("three", tuple(layers)), load_arch("titan_v"))
    >>> len(found), found[2].problem.name, len({each.schedule for each in found})
    (3, 'layer 2', 1)
    """
    sought = Goal.of(goal, fields, "search_workload")
    check_jobs(jobs)
    if sought.constraints is not None:  # all that is wrong with them, before the first result
        _check_constraints(workload, arch, sought.constraints)
    return Results(len(workload.problems), _searched(workload, arch, sought, jobs, report))


def _searched(
    workload: Workload, arch: Arch, goal: Goal, jobs: int, report: Report | None
) -> Iterator[Result]:
    told = report if jobs == 1 or len(workload.problems) == 1 else None
    is_interrupted = False
    firsts: dict[Hashable, Problem] = {}
    for problem in workload.problems:
        firsts.setdefault(_but_for_its_name(problem), problem)
    work = [(problem, arch, goal, told) for problem in firsts.values()]
    searched = each_in_order(_search_one, work, jobs)
    found: dict[Hashable, Result] = {}
    for problem in workload.problems:
        key = _but_for_its_name(problem)
        if key not in found:
            found[key] = next(searched)
        result = found[key].of(problem)
        yield result
        is_interrupted |= result.certificate.effort.stopped == "interrupt"
        if is_interrupted and jobs == 1:
            break
    if is_interrupted:
        raise KeyboardInterrupt


def _but_for_its_name(problem: Problem) -> Hashable:
    return tuple(
        getattr(problem, each.name)
        for each in fields_of(problem)
        if each.compare and each.name != "name"
    )


def _search_one(problem: Problem, arch: Arch, goal: Goal, report: Report | None) -> Result:
    result = search(problem, arch, goal, report=report)
    _ = result.evaluation.least_dram_bytes  # here, that is in as many processes as search
    return result


def _check_constraints(workload: Workload, arch: Arch, constraints: Constraints) -> None:
    having: dict[str, list[str]] = {}  # the problems, by name, that have each fault
    for problem in workload.problems:
        try:
            space_of(problem, arch, constraints)
        except ConstraintError as error:
            for fault in dict.fromkeys(error.problems):
                having.setdefault(fault, []).append(problem.name)
    faults = []
    for fault, names in having.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        is_every = len(names) == len(workload.problems) > 1
        faults.append(fault if is_every else f"problem '{names[0]}'{others}: {fault}")
    ConstraintError.refuse("constraints", faults)


def space_size(problem: Problem, arch: Arch, constraints: Constraints | None = None) -> int:
    """Count the schedules of the space, without listing them.

    See Also
    --------
    search

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> space_size(gemm(m=2, n=2, k=1), buffer_arch(capacity_bytes=64))
    6
    """
    from loopsched.scheduler.choices import choices

    space_of(problem, arch, constraints)  # refuses constraints that no search would take
    return sum(n_schedules(choice.space) for choice in choices(problem, arch, constraints))


def _proof(result: Result) -> str:
    from loopsched.scheduler.proof import proof_of

    return proof_of(result)


prove_with(_proof)

__all__ = [
    "OBJECTIVES", "STRATEGIES", "VALUES", "Certificate", "Constraints", "Effort", "Goal",
    "Objective", "Result", "Scored", "Space", "Strategy", "Value", "search", "search_workload",
    "space_of", "space_size",
]  # fmt: skip
