"""What a search is to find, and what it may use for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import ConstraintError
from loopsched.base.keywords import object_of
from loopsched.scheduler.constraints import Constraints
from loopsched.scheduler.effort import Budget

Objective = Literal["time", "dram_bytes", "energy", "edp"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
Strategy = Literal["exact", "exhaustive", "random", "local"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
Value = Literal["promised", "point", "low"]
VALUES: tuple[Value, ...] = get_args(Value)


class Goals(TypedDict, total=False):
    """The fields of a `Goal`, as keyword arguments."""

    objective: Objective
    strategy: Strategy
    value: Value
    top: int
    constraints: Constraints | None
    seed: int
    samples: int
    budget: int | None
    time_limit_s: float | None
    gap: float


@dataclass(frozen=True, slots=True)
class Goal:
    """What a search is to find, and what it may use for that.

    Functions that take a goal take its fields as keyword arguments, too.

    Parameters
    ----------
    objective : {'time', 'dram_bytes', 'energy', 'edp'}
        What to minimise.  Ties: DRAM bytes, compute time, inner traffic.
    strategy : {'exact', 'exhaustive', 'random', 'local'}
        ``exact`` bounds and proves; ``exhaustive`` scores every schedule of
        the space; ``random`` and ``local`` are there for comparison.
    value : {'promised', 'point', 'low'}
        Which traffic to score with: what the schedule promises
        (``promised_bytes``), the estimate, or the least (``bytes.point`` and
        ``bytes.low`` of `Evaluation`).
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
        Units of work (one for a partial choice looked at, 4,096 for a schedule
        scored) after which the best so far is returned, with its gap; the same
        result on any machine.
        By default that of `loopsched.scheduler.effort.DEFAULT_WORK` for the
        exact search, and none for the others.
    time_limit_s : float, seconds, optional
        The same by the clock, so that results depend on the machine.
    gap : float
        Stop when the best is proven to be within this fraction of the optimum.

    Raises
    ------
    ConstraintError
        With everything that cannot be.

    See Also
    --------
    search, search_workload

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm, search
    >>> least = Goal(objective="dram_bytes", top=2)
    >>> found = search(gemm(m=8, n=8, k=8), buffer_arch(capacity_bytes=256), least)
    >>> found.evaluation.dram_bytes, len(found.alternatives)
    (1024, 1)
    """

    objective: Objective = "time"
    strategy: Strategy = "exact"
    value: Value = "promised"
    top: int = 1
    constraints: Constraints | None = None
    seed: int = 0
    samples: int = 1000
    budget: int | None = None
    time_limit_s: float | None = None
    gap: float = 0.0

    def __post_init__(self) -> None:
        faults = [
            f"{what} {show(given)} is unknown; {near(given, allowed)}"
            for what, given, allowed in (
                ("objective", self.objective, OBJECTIVES),
                ("strategy", self.strategy, STRATEGIES),
                ("value", self.value, VALUES),
            )
            if given not in allowed
        ]
        for name, number in (("top", self.top), ("samples", self.samples)):
            if not is_count(number):
                faults.append(f"{name} is {show(number)}; a whole number >= 1 is needed")
        try:
            _ = self.allowed
        except ConstraintError as error:
            faults += error.problems
        if faults:
            raise ConstraintError.joined("search", faults)

    @classmethod
    def of(cls, goal: Goal | None, keywords: Mapping[str, Any], where: str = "search") -> Goal:
        """Put together what a function is given: a goal, single fields of it, or both."""
        return object_of(cls, goal, keywords, where)

    @property
    def allowed(self) -> Budget:
        """What it may use."""
        given = Budget(self.budget, self.time_limit_s, self.gap)
        return given.of_exact() if self.strategy == "exact" else given

    @property
    def row(self) -> dict[str, object]:
        """What rows of results say of it beside the objective."""
        return {"strategy": self.strategy, "value": self.value, "seed": self.seed}
