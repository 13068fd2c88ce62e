"""Trade-offs: schedules that no other beats in time, DRAM bytes and capacity at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Real

from loopsched.base.arguments import Checker, show
from loopsched.base.errors import EmptySpaceError, InputError
from loopsched.machines.arch import Arch
from loopsched.models.score import Evaluation, evaluate
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.scheduler.allowed import space_of
from loopsched.scheduler.exact import exact_search
from loopsched.scheduler.goal import Goal, Objective

# Points of a front are sought that are this much better in time or in traffic.
STEP = 0.05


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
    problem: Problem,
    arch: Arch,
    *,
    capacities_bytes: Iterable[int] | None = None,
    step: float = STEP,
) -> tuple[Tradeoff, ...]:
    """Find schedules that trade time, DRAM bytes and on-chip capacity.

    At each capacity of the level next to the memory, the fastest schedule, the
    one that moves least, and those between them are searched; of all these,
    those remain that no other equals or beats in all three.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    capacities_bytes : iterable of int, optional
        By default the machine's own, halved as long as something fits and no
        inner level is larger.
    step : float
        How fine the front is: where every search ends with its proof, any
        schedule of the space, at each capacity, takes at least 1 / (1 + step) of
        the time and of the bytes of one in the front.

    Returns
    -------
    tuple of Tradeoff
        Largest capacity first, then by time.

    Raises
    ------
    InputError
        If an argument cannot be.

    See Also
    --------
    search, traffic_curve

    Notes
    -----
    Between a fast schedule (t, D) and a frugal one (T, d) lies another if and
    only if one takes less than T on the same machine with a DRAM bandwidth of
    D / T, as time is the longest of what the arithmetic and the levels take:
    the weighted Chebyshev scalarisation, which reaches every point of a front.
    The search for time finds the one that takes least, and the two gaps
    beside it are searched in turn.

    References
    ----------
    V. J. Bowman, *On the Relationship of the Tchebycheff Norm and the Efficient
    Frontier of Multiple-Criteria Objectives*, 1976.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> front = pareto(gemm(m=256, n=256, k=256), load_arch("titan_v"))
    >>> [(point.capacity_bytes, point.dram_bytes) for point in front][:2]
    [(294912, 786432), (147456, 1048576)]
    """
    check = Checker("pareto", InputError)
    if isinstance(step, bool) or not isinstance(step, Real) or not 0 <= step < math.inf:
        check.fault(f"step is {show(step)}; a number >= 0 is needed, such as 0.05")
    given = []
    if capacities_bytes is not None:
        if isinstance(capacities_bytes, Iterable) and not isinstance(capacities_bytes, str):
            given = [check.count("capacities_bytes", one) for one in capacities_bytes]
        else:
            check.fault(
                f"capacities_bytes is {show(capacities_bytes)}; a sequence of whole numbers is "
                "needed, such as [98304] for 96 KiB"
            )
    check.finish()
    found: list[Tradeoff] = []
    level = arch.caches[0]
    if capacities_bytes is None:
        inner = max((other.capacity_bytes or 0 for other in arch.caches[1:]), default=0)
        capacities: Iterator[int] = _halved(level.capacity_bytes or 0, max(inner, 64))
    else:
        capacities = iter(sorted(set(given), reverse=True))
    for capacity in capacities:
        smaller = arch.with_value(f"{level.name}.capacity", capacity)
        try:
            found += _fronts(problem, smaller, capacity, step)
        except EmptySpaceError:
            break
    return non_dominated(found)


def _fronts(problem: Problem, arch: Arch, capacity: int, step: float) -> list[Tradeoff]:
    """Find the front of time and DRAM bytes at one capacity, dominated ones among it."""

    def best(objective: Objective, bandwidth: float | None = None) -> Tradeoff:
        machine = arch if bandwidth is None else arch.with_value(memory, bandwidth)
        schedule = exact_search(space_of(problem, machine), Goal(objective)).schedule
        score = evaluate(problem, schedule, arch)
        return Tradeoff(capacity, score.time_s, score.dram_bytes, schedule, score)

    memory = f"{arch.levels[0].name}.bandwidth"
    found = [best("time"), best("dram_bytes")]
    gaps = [(found[0], found[1])]
    while gaps:
        fast, frugal = gaps.pop()
        wide = 1 + step
        if frugal.time_s <= wide * fast.time_s or fast.dram_bytes <= wide * frugal.dram_bytes:
            continue
        between = best("time", fast.dram_bytes / frugal.time_s)
        if between.time_s < frugal.time_s and between.dram_bytes < fast.dram_bytes:
            found.append(between)
            gaps += [(fast, between), (between, frugal)]
    return found


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
