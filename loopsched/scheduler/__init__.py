"""Search: the best schedule of a problem on a machine, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from loopsched.errors import ConstraintError, nearest
from loopsched.scheduler.constraints import Constraints
from loopsched.scheduler.result import (
    OBJECTIVES,
    VALUES,
    Certificate,
    Objective,
    Result,
    Scored,
    Value,
)
from loopsched.scheduler.space import Space, space_of

if TYPE_CHECKING:
    from loopsched.arch import Arch
    from loopsched.problem import Problem
    from loopsched.workload import Workload

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
        Schedules that the random and local strategies score.

    Returns
    -------
    Result

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
    space = space_of(problem, arch, constraints)
    if strategy == "exact":
        from loopsched.scheduler.exact import exact_search

        return exact_search(space, objective=objective, value=value, top=top)
    from loopsched.scheduler.sampling import sampled_search

    return sampled_search(
        space, objective=objective, strategy=strategy, value=value, top=top, seed=seed,
        samples=samples,
    )  # fmt: skip


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

    Yields
    ------
    Result
    """
    from loopsched.scheduler.parallel import in_order

    _check(objective, strategy, value, top)
    if jobs < 1:
        raise ConstraintError(f"jobs is {jobs}; at least 1 is needed")
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
    }
    yield from in_order(workload.problems, arch, options, jobs)


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
    return space_of(problem, arch, constraints).size()


def _check(objective: str, strategy: str, value: str, top: int) -> None:
    faults = [
        f"{what} '{given}' is unknown; {nearest(str(given), allowed)}"
        for what, given, allowed in (
            ("objective", objective, OBJECTIVES),
            ("strategy", strategy, STRATEGIES),
            ("value", value, VALUES),
        )
        if given not in allowed
    ]
    if not isinstance(top, int) or top < 1:
        faults.append(f"top is {top!r}; a whole number >= 1 is needed")
    if faults:
        raise ConstraintError.joined("search", faults)


__all__ = [
    "OBJECTIVES",
    "STRATEGIES",
    "VALUES",
    "Certificate",
    "Constraints",
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
