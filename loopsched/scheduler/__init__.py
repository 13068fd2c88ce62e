"""Search: the best schedule of a problem on a machine, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from loopsched.base.arguments import near, show
from loopsched.base.errors import ConstraintError
from loopsched.base.pool import check_jobs, each_in_order
from loopsched.scheduler.allowed import space_of
from loopsched.scheduler.constraints import Constraints
from loopsched.scheduler.counting import n_schedules
from loopsched.scheduler.effort import Budget, Effort, Report, Watch
from loopsched.scheduler.result import (
    OBJECTIVES,
    VALUES,
    Certificate,
    Objective,
    Result,
    Scored,
    Value,
    prove_with,
)
from loopsched.scheduler.space import Space

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch
    from loopsched.problems.problem import Problem
    from loopsched.problems.workload import Workload

Strategy = Literal["exact", "exhaustive", "random", "local"]
STRATEGIES: tuple[Strategy, ...] = ("exact", "exhaustive", "random", "local")


def search(
    problem: Problem,
    arch: Arch,
    *,
    objective: Objective = "time",
    strategy: Strategy = "exact",
    value: Value = "high",
    top: int = 1,
    constraints: Constraints | None = None,
    seed: int = 0,
    samples: int = 1000,
    budget: int | None = None,
    time_limit_s: float | None = None,
    gap: float = 0.0,
    report: Report | None = None,
) -> Result:
    """Find the best schedule of a problem on a machine.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    objective : {'time', 'dram_bytes', 'energy', 'edp'}
        What to minimise.  Ties: DRAM bytes, compute time, inner traffic.
    strategy : {'exact', 'exhaustive', 'random', 'local'}
        ``exact`` bounds and proves; ``exhaustive`` scores every schedule of
        the space; ``random`` and ``local`` are there for comparison.
    value : {'high', 'point', 'low'}
        Which traffic to score with: guaranteed (what the schedule promises),
        expected, or least.
    top : int
        How many schedules to return, the best included.
    constraints : Constraints, optional
        What schedules of the space must satisfy.
    seed : int
        Of the random and local strategies.
    samples : int
        Schedules that the random and local strategies score, for each choice of what
        levels keep.
    budget : int, optional
        Units of work (a unit is one partial choice looked at) after which the
        best so far is returned, with its gap; the same result on any machine.
        By default that of `loopsched.scheduler.effort.DEFAULT_WORK` for the
        exact search, and none for the others.
    time_limit_s : float, seconds, optional
        The same by the clock, so that results depend on the machine.
    gap : float
        Stop when the best is proven to be within this fraction of the optimum.
    report : callable, optional
        Called with the best value and the lower bound, a few times a second.

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

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> result = search(gemm(m=1024, n=1024, k=1024), load_arch("titan_v"))
    >>> result.certificate.proven, result.evaluation.bound_by
    (True, 'compute')
    """
    _check(objective, strategy, value, top)
    allowed = Budget(budget, time_limit_s, gap)
    if allowed.time_s is not None:
        warm_up(has_scratchpads=arch.has_scratchpads)
    space = space_of(problem, arch, constraints)
    is_exact = strategy == "exact"
    watch = Watch(allowed.of_exact() if is_exact else allowed, report)

    def one(space: Space, watch: Watch, rival: float = float("inf")) -> Result:
        if is_exact and not space.constraints.is_free:
            from loopsched.scheduler.constrained import constrained_search

            return constrained_search(space, objective=objective, value=value, top=top, watch=watch)
        if is_exact:
            from loopsched.scheduler.exact import exact_search

            return exact_search(
                space, objective=objective, value=value, top=top, watch=watch, rival=rival
            )
        from loopsched.scheduler.sampling import sampled_search

        return sampled_search(
            space, objective=objective, strategy=strategy, value=value, top=top, seed=seed,
            samples=samples, watch=watch,
        )  # fmt: skip

    from loopsched.scheduler.choices import has_choice, search_choices
    from loopsched.scheduler.proof import settled

    if not has_choice(problem, arch):
        return settled(one(space, watch))
    from loopsched.scheduler.exact import quick_bound

    return settled(search_choices(
        space, one, lambda choice: quick_bound(choice, objective, value), objective=objective,
        value=value, top=top, watch=watch, is_exact=is_exact,
    ))  # fmt: skip


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


def search_workload(
    workload: Workload,
    arch: Arch,
    *,
    jobs: int = 1,
    objective: Objective = "time",
    strategy: Strategy = "exact",
    value: Value = "high",
    top: int = 1,
    constraints: Constraints | None = None,
    seed: int = 0,
    samples: int = 1000,
    budget: int | None = None,
    time_limit_s: float | None = None,
    gap: float = 0.0,
    report: Report | None = None,
) -> Iterator[Result]:
    """Search every problem of a workload, in order.

    Parameters
    ----------
    workload : Workload
    arch : Arch
    jobs : int
        Processes; results are the same, in the same order, for any number.
    objective, strategy, value, top, constraints, seed, samples
        As for `search`.
    budget, time_limit_s, gap
        As for `search`, for each problem.
    report : callable, optional
        As for `search`; not called from other processes.

    Yields
    ------
    Result

    Raises
    ------
    KeyboardInterrupt
        After an interrupt, but first the best so far of the problems in hand are
        yielded.
    """
    _check(objective, strategy, value, top)
    Budget(budget, time_limit_s, gap)  # checked before the first result
    check_jobs(jobs)
    if constraints is not None:  # all that is wrong with them, before the first result
        _check_constraints(workload, arch, constraints)
    options = {
        "objective": objective,
        "strategy": strategy,
        "value": value,
        "top": top,
        "constraints": constraints,
        "seed": seed,
        "samples": samples,
        "budget": budget,
        "time_limit_s": time_limit_s,
        "gap": gap,
        "report": report if jobs == 1 or len(workload.problems) == 1 else None,
    }
    is_interrupted = False
    work = [(problem, arch, options) for problem in workload.problems]
    for result in each_in_order(_search_one, work, jobs):
        yield result
        is_interrupted |= result.certificate.effort.stopped == "interrupt"
        if is_interrupted and jobs == 1:
            break
    if is_interrupted:
        raise KeyboardInterrupt


def _search_one(problem: Problem, arch: Arch, options: Mapping[str, Any]) -> Result:
    result = search(problem, arch, **options)
    _ = result.evaluation.least_dram_bytes  # here, that is in as many processes as search
    return result


def _check_constraints(workload: Workload, arch: Arch, constraints: Constraints) -> None:
    faults = []
    for problem in workload.problems:
        try:
            space_of(problem, arch, constraints)
        except ConstraintError as error:
            faults += [f"problem '{problem.name}': {fault}" for fault in error.problems]
    if faults:
        raise ConstraintError.joined("constraints", faults)


def space_size(problem: Problem, arch: Arch, constraints: Constraints | None = None) -> int:
    """Count the schedules of the space, without listing them.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> space_size(gemm(m=2, n=2, k=1), buffer_arch(capacity_bytes=64))
    6
    """
    from loopsched.scheduler.choices import choices

    return sum(n_schedules(choice.space) for choice in choices(problem, arch, constraints))


def _check(objective: str, strategy: str, value: str, top: int) -> None:
    faults = [
        f"{what} '{given}' is unknown; {near(given, allowed)}"
        for what, given, allowed in (
            ("objective", objective, OBJECTIVES),
            ("strategy", strategy, STRATEGIES),
            ("value", value, VALUES),
        )
        if given not in allowed
    ]
    if not isinstance(top, int) or top < 1:
        faults.append(f"top is {show(top)}; a whole number >= 1 is needed")
    if faults:
        raise ConstraintError.joined("search", faults)


def _proof(result: Result) -> str:
    from loopsched.scheduler.proof import proof_of

    return proof_of(result)


prove_with(_proof)

__all__ = [
    "OBJECTIVES",
    "STRATEGIES",
    "VALUES",
    "Certificate",
    "Constraints",
    "Effort",
    "Objective",
    "Result",
    "Scored",
    "Space",
    "Strategy",
    "Value",
    "search",
    "search_workload",
    "space_of",
    "space_size",
]
