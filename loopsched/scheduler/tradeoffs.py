"""Trade-offs: schedules that no other beats in time, DRAM bytes and capacity at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from loopsched.base.errors import EmptySpaceError
from loopsched.machines.arch import Arch
from loopsched.models.score import Evaluation
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.scheduler.allowed import space_of
from loopsched.scheduler.exact import exact_search
from loopsched.scheduler.goal import Goal, Objective

_BOTH: tuple[Objective, ...] = ("time", "dram_bytes")


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """One point of a Pareto set.

    Parameters
    ----------
    capacity_bytes : int
        Capacity of the level next to the memory for which the schedule was
        made, and at which its traffic is promised.
    time_s : float, seconds
    dram_bytes : int
    schedule : Schedule
    evaluation : Evaluation
        At that capacity.
    """

    capacity_bytes: int
    time_s: float
    dram_bytes: int
    schedule: Schedule
    evaluation: Evaluation

    @property
    def costs(self) -> tuple[float, int, int]:
        """What is compared: time, DRAM bytes, capacity; less is better."""
        return self.time_s, self.dram_bytes, self.capacity_bytes


def pareto(
    problem: Problem, arch: Arch, *, capacities_bytes: Iterable[int] | None = None
) -> tuple[Tradeoff, ...]:
    """Find schedules that trade time, DRAM bytes and on-chip capacity.

    At each capacity of the level next to the memory, the fastest schedule and
    the one that moves least are searched; of all these, those remain that no
    other equals or beats in all three.  (Schedules between the two extremes of
    one capacity are not searched for.)

    Parameters
    ----------
    problem : Problem
    arch : Arch
    capacities_bytes : iterable of int, optional
        By default the machine's own, halved as long as something fits and no
        inner level is larger.

    Returns
    -------
    tuple of Tradeoff
        Largest capacity first, then by time.

    See Also
    --------
    search, traffic_curve

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> front = pareto(gemm(m=512, n=512, k=512), load_arch("titan_v"))
    >>> [(point.capacity_bytes, point.dram_bytes) for point in front][:2]
    [(1179648, 3145728), (589824, 4194304)]
    """
    found: list[Tradeoff] = []
    level = arch.caches[0]
    if capacities_bytes is None:
        inner = max((other.capacity_bytes or 0 for other in arch.caches[1:]), default=0)
        capacities: Iterator[int] = _halved(level.capacity_bytes or 0, max(inner, 64))
    else:
        capacities = iter(sorted(set(capacities_bytes), reverse=True))
    for capacity in capacities:
        smaller = arch.with_value(f"{level.name}.capacity", capacity)
        try:
            found += [_best(problem, smaller, capacity, objective) for objective in _BOTH]
        except EmptySpaceError:
            break
    return non_dominated(found)


def _best(problem: Problem, arch: Arch, capacity: int, objective: Objective) -> Tradeoff:
    result = exact_search(space_of(problem, arch), Goal(objective))
    score = result.evaluation
    return Tradeoff(capacity, score.time_s, score.dram_bytes, result.schedule, score)


def _halved(capacity: int, least: int) -> Iterator[int]:
    while capacity >= least:
        yield capacity
        capacity //= 2


def non_dominated(points: Iterable[Tradeoff]) -> tuple[Tradeoff, ...]:
    """Keep the points that no other equals or beats in everything.

    Of equal ones the first stays.
    """
    kept: list[Tradeoff] = []
    for point in sorted(points, key=lambda each: (each.costs, str(each.schedule))):
        if not any(
            all(a <= b for a, b in zip(better.costs, point.costs, strict=True)) for better in kept
        ):
            kept.append(point)
    return tuple(sorted(kept, key=lambda each: (-each.capacity_bytes, each.costs)))
