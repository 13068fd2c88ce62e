"""Sensitivity: how a workload's time follows the parameters of the machine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Unpack, get_args

from loopsched.base.display import Shown
from loopsched.base.errors import ConstraintError, nearest
from loopsched.base.keywords import takes
from loopsched.base.pool import check_jobs
from loopsched.base.rows import Row, picked
from loopsched.machines.arch import Arch
from loopsched.problems.workload import Workload
from loopsched.scheduler.goal import Goal, Goals
from loopsched.study.points import (
    Changed,
    Launches,
    Layer,
    changed_machines,
    count_tasks,
    layers_of,
)

Quantity = Literal["time", "estimate", "dram_bytes"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)


@dataclass(frozen=True, slots=True)
class Point:
    """A whole workload on a machine with one number changed.

    Parameters
    ----------
    key : str
        What is changed; empty: nothing.
    factor, ratio : float
        Asked for, and what became of it after rounding.
    time_s : float, seconds
        Promised by the best schedules for this very machine, in all.
    dram_bytes : int, bytes
        The same.  Schedules are chosen for their time: another that is as
        fast may move less.
    bound_by : tuple of (str, int)
        Resource, and how many problems wait for it; most first.
    estimate_s : float or None, seconds
        What a library's kernels are expected to take on it, in all; None:
        not all of the problems can be estimated.
    estimate_bound_by : tuple of (str, int)
    n_proven, n_problems : int
        Problems whose schedule is proven best, and all.
    layers : tuple of Layer
        Problem by problem, in the workload's order.
    """

    key: str
    factor: float
    ratio: float
    time_s: float
    dram_bytes: int
    bound_by: tuple[tuple[str, int], ...]
    estimate_s: float | None
    estimate_bound_by: tuple[tuple[str, int], ...]
    n_proven: int
    n_problems: int
    layers: tuple[Layer, ...]

    def value(self, quantity: Quantity) -> float | None:
        """Read a quantity."""
        if quantity == "time":
            return self.time_s
        return self.estimate_s if quantity == "estimate" else float(self.dram_bytes)

    def waits_for(self, quantity: Quantity) -> tuple[tuple[str, int], ...]:
        """Say what binds: kernels if they are what is asked about, else schedules."""
        return self.estimate_bound_by if quantity == "estimate" else self.bound_by


@dataclass(frozen=True, slots=True)
class Parameter:
    """How a quantity follows one parameter of the machine.

    Parameters
    ----------
    key : str
    elasticity : float or None
        d ln(quantity) / d ln(number) around the machine as it is, by the
        nearest points below and above: -1 where twice the number halves the
        quantity, 0 where nothing changes.
    range_elasticity : float or None
        The same from the smallest to the largest point.
    lowest, highest : Point
        The smallest and the largest point, the machine as it is included.
    """

    key: str
    elasticity: float | None
    range_elasticity: float | None
    lowest: Point
    highest: Point


@dataclass(frozen=True, slots=True)
class Sensitivity(Shown):
    """How a workload responds to changes of the machine's parameters.

    Parameters
    ----------
    workload, arch : str
        Names.
    quantity : {'time', 'estimate', 'dram_bytes'}
        What parameters are ranked by.
    base : Point
        The machine as it is.
    points : tuple of Point
        In the order asked for.
    """

    workload: str
    arch: str
    quantity: Quantity
    base: Point
    points: tuple[Point, ...]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every number that was changed, those that matter most first."""
        return self.ranked(self.quantity)

    def ranked(self, quantity: Quantity) -> tuple[Parameter, ...]:
        """Rank the numbers by what the quantity does over their range."""
        keys = dict.fromkeys(point.key for point in self.points)
        found = [self._parameter(key, quantity) for key in keys]
        return tuple(sorted(found, key=lambda one: -_span(one, quantity)))

    def _parameter(self, key: str, quantity: Quantity) -> Parameter:
        mine = [point for point in self.points if point.key == key and point.ratio != 1]
        ladder = sorted([*mine, self.base], key=lambda point: point.ratio)
        at = ladder.index(self.base)
        below, above = ladder[max(0, at - 1)], ladder[min(at + 1, len(ladder) - 1)]
        return Parameter(
            key,
            _elasticity(below, above, quantity),
            _elasticity(ladder[0], ladder[-1], quantity),
            ladder[0],
            ladder[-1],
        )

    @property
    def rows(self) -> tuple[Row, ...]:
        """One row per point, the machine as it is first."""
        return tuple(self._row(point) for point in (self.base, *self.points))

    def _row(self, point: Point) -> Row:
        base = self.base
        change = None
        if point.estimate_s is not None and base.estimate_s:
            change = point.estimate_s / base.estimate_s - 1
        return {
            "key": point.key or None,
            **picked(point, "factor", "ratio", "time_s"),
            "time_change": point.time_s / base.time_s - 1,
            "bound_by": dict(point.bound_by),
            "dram_bytes": point.dram_bytes,
            "proven": point.n_proven,
            "problems": point.n_problems,
            "estimate_s": point.estimate_s,
            "estimate_change": change,
            "estimate_bound_by": dict(point.estimate_bound_by),
        }

    @property
    def summary(self) -> Row:
        """The machine as it is, and each parameter, ranked."""
        every: Row = {
            **picked(self, "workload", "arch", "quantity"),
            "points": len(self.points),
            "base": self._row(self.base),
        }
        return every | {"parameters": [self._about(one) for one in self.parameters]}

    def _about(self, one: Parameter) -> Row:
        return {
            **picked(one, "key", "elasticity", "range_elasticity"),
            "time_elasticity": self._parameter(one.key, "time").elasticity,
            "estimate_elasticity": self._parameter(one.key, "estimate").elasticity,
            "lowest_ratio": one.lowest.ratio,
            "highest_ratio": one.highest.ratio,
            "bound_by_lowest": dict(one.lowest.waits_for(self.quantity)),
            "bound_by_highest": dict(one.highest.waits_for(self.quantity)),
        }


@takes(Goal)
def sensitivity(
    workload: Workload,
    arch: Arch,
    vary: Mapping[str, Sequence[float]] | None = None,
    goal: Goal | None = None,
    *,
    quantity: Quantity = "time",
    jobs: int = 1,
    kernels: Sequence[Launches | None] | None = None,
    progress: Callable[[str], None] | None = None,
    **fields: Unpack[Goals],
) -> Sensitivity:
    """Change parameters of a machine, one at a time, and search everything again.

    Parameters
    ----------
    workload : Workload
    arch : Arch
    vary : mapping of str to sequence of float, optional
        Keys of `Arch.keys`, and factors; by default half and twice of each.
    goal : Goal, optional
        Of every search, as for `search`; the quantity says what it minimises.
    quantity : {'time', 'estimate', 'dram_bytes'}
        What parameters are ranked by: the promised time of the best
        schedules, the estimated time of a library's kernels, on which
        latencies act, or the promised traffic, for which schedules are then
        searched that move least.
    jobs : int
        Processes; results are the same for any number.
    kernels : sequence of Launches or None, optional
        One for each problem: hand-written kernels, each with how often it is
        started, as `loopsched.published.presets.preset` builds them, that are
        estimated instead of the library's.
    progress : callable, optional
        Called with a text after each step; `loopsched.study.sensitivity.Study.n_steps` counts
        them.
    objective, strategy, value, top, constraints, seed, samples, budget, time_limit_s, gap
        Fields of the `Goal`; they override those of ``goal``.

    Raises
    ------
    ConstraintError
        If a key, a factor or an argument is not allowed, or parameters are to be
        ranked by estimates and a problem has none.
    ArchError
        If kernels are to be estimated and the machine is not a GPU.

    See Also
    --------
    sweep, plot_tornado

    Examples
    --------
    Traffic of a product that waits for memory all the time:

    >>> from loopsched import Workload, buffer_arch, gemm
    >>> mine = Workload("mine", (gemm(m=64, n=64, k=64),))
    >>> arch = buffer_arch(capacity_bytes=2048, bandwidth_bytes_per_s=1e9)
    >>> found = sensitivity(mine, arch, {"dram.bandwidth": [0.5, 2], "buffer.capacity": [2]})
    >>> [(one.key, round(one.elasticity, 2)) for one in found.parameters]
    [('DRAM.bandwidth', -1.0), ('buffer.capacity', -0.42)]
    """
    study = Study(workload, arch, vary, Goal.of(goal, fields, "sensitivity"), quantity, kernels)
    return study.found(list(study.points(jobs, progress)))


@dataclass(frozen=True, slots=True)
class Study:
    """What `sensitivity` is asked; points are yielded as they are done."""

    workload: Workload
    arch: Arch
    vary: Mapping[str, Sequence[float]] | None = None
    goal: Goal | None = None
    quantity: Quantity = "time"
    kernels: Sequence[Launches | None] | None = None

    @property
    def n_steps(self) -> int:
        """The searches and estimates that differ.

        Examples
        --------
        The number 1 changes nothing, and a layer that occurs twice is searched once:

        >>> from loopsched import Workload, buffer_arch, gemm
        >>> two = Workload("two", (gemm(m=4, n=4, k=4), gemm(m=4, n=4, k=4, name="again")))
        >>> Study(two, buffer_arch(capacity_bytes=64), {"dram.bandwidth": [0.5, 1, 2]}).n_steps
        3
        """
        machines = changed_machines(self.arch, self.vary)
        return count_tasks(self.workload.problems, machines, self.kernels)

    def points(
        self, jobs: int = 1, progress: Callable[[str], None] | None = None
    ) -> Iterator[Point]:
        """Yield the points as they are done, the machine as it is first.

        Errors are those of `sensitivity`.
        """
        quantity, kernels, workload = self.quantity, self.kernels, self.workload
        if quantity not in QUANTITIES:
            raise ConstraintError(f"quantity '{quantity}'; {nearest(str(quantity), QUANTITIES)}")
        check_jobs(jobs)
        if quantity == "estimate" or kernels is not None:
            _ = self.arch.kernel_limits
        machines = changed_machines(self.arch, self.vary)
        minimised = "dram_bytes" if quantity == "dram_bytes" else "time"
        goal = Goal.of(self.goal, {"objective": minimised})
        if kernels is not None and len(kernels) != len(workload.problems):
            raise ConstraintError(f"{len(kernels)} kernels for {len(workload.problems)} problems")
        found = layers_of(workload.problems, machines, goal, jobs, progress, kernels)
        for changed, layers in zip(machines, found, strict=True):
            point = _point(changed, layers, workload.counts)
            if quantity == "estimate" and point.estimate_s is None:
                names = [
                    problem.name
                    for problem, layer in zip(workload.problems, layers, strict=True)
                    if layer.estimate_s is None
                ]
                raise ConstraintError(f"quantity 'estimate': no library's kernel for '{names[0]}'")
            yield point

    def found(self, points: Sequence[Point]) -> Sensitivity:
        """Say what some of the points, the first among them, show."""
        names = self.workload.name, self.arch.name
        return Sensitivity(*names, self.quantity, points[0], tuple(points[1:]))


def _point(changed: Changed, layers: tuple[Layer, ...], counts: Sequence[int]) -> Point:
    pairs = list(zip(counts, layers, strict=True))
    bound, estimated = Counter[str](), Counter[str]()
    for count, layer in pairs:
        bound[layer.bound_by] += count
        if layer.estimate_bound_by is not None:
            estimated[layer.estimate_bound_by] += count
    estimates = [count * layer.estimate_s for count, layer in pairs if layer.estimate_s is not None]
    return Point(
        **picked(changed, "key", "factor", "ratio"),
        time_s=math.fsum(count * layer.time_s for count, layer in pairs),
        dram_bytes=sum(count * layer.dram_bytes for count, layer in pairs),
        bound_by=_ordered(bound),
        estimate_s=math.fsum(estimates) if len(estimates) == len(pairs) else None,
        estimate_bound_by=_ordered(estimated),
        n_proven=sum(count for count, layer in pairs if layer.proven),
        n_problems=sum(counts),
        layers=layers,
    )


def _ordered(counted: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _elasticity(low: Point, high: Point, quantity: Quantity) -> float | None:
    before, after = low.value(quantity), high.value(quantity)
    if not before or not after or low.ratio == high.ratio:
        return None
    return math.log(after / before) / math.log(high.ratio / low.ratio)


def _span(one: Parameter, quantity: Quantity) -> float:
    """Say how far a quantity moves over a parameter's range, in logarithms."""
    low, high = one.lowest.value(quantity), one.highest.value(quantity)
    return abs(math.log(high / low)) if low and high else 0.0
