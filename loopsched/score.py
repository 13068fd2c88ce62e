"""The score of a schedule on a machine: bytes, times, and what binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopsched.arch import Arch, Level
from loopsched.footprint import tensor_bytes
from loopsched.models.compute import compute_steps
from loopsched.models.machine import (
    data_type_of,
    instances_inside,
    nested_units,
    own_units,
    room_of,
)
from loopsched.models.reuse import (
    Bracket,
    Moved,
    TensorTraffic,
    Traffic,
    explicit_traffic,
    lru_traffic,
)
from loopsched.models.view import View, view_of
from loopsched.nest import Schedule
from loopsched.problem import Problem


@dataclass(frozen=True)
class LevelScore(Moved):
    """What one level does under a schedule.

    Parameters
    ----------
    name : str
    outer : str
        The level across whose inner side the bytes come.
    capacity_bytes : int or None
        Usable bytes of one instance.
    working_set_bytes : int
        Footprint of the body that fits, in one instance.
    fit_position : int
        Position of the outermost loop whose whole region fits.
    tensors : mapping of str to TensorTraffic
        Bytes across the outer boundary, all instances together.
    time_s, time_bound_s : float, seconds
        Promised bytes at the sustained bandwidth; least bytes at the highest.
    operational_intensity : float, FLOP per byte
        Of the promised bytes across the outer boundary.
    utilisation : float
        Share of the promised time in which the boundary is busy.
    """

    name: str
    outer: str
    capacity_bytes: int | None
    working_set_bytes: int
    fit_position: int
    tensors: Mapping[str, TensorTraffic]
    time_s: float
    time_bound_s: float
    operational_intensity: float
    utilisation: float


@dataclass(frozen=True)
class Evaluation:
    """Score of a schedule: what it promises, and what no run can beat.

    Parameters
    ----------
    time_s : float, seconds
        Promised: the largest of compute time and of the levels' times with
        guaranteed traffic, at sustained clock and bandwidths.
    time_bound_s : float, seconds
        No run of this schedule is faster: least traffic, highest clock.
    problem_bound_s : float, seconds
        No implementation of this algorithm is faster, operands coming from
        memory: peak rate, and each tensor moved once.
    bound_by : str
        ``compute``, or the level whose inner side is the bottleneck.
    compute_time_s : float, seconds
    compute_steps : int
        Multiply-accumulate steps of the busiest unit.
    compute_utilisation : float
        Useful share of the units' time, edges and partial waves counted.
    energy_pj : float or None, picojoules
        None where the architecture gives no energies.
    levels : tuple of LevelScore
        Outermost first.
    """

    time_s: float
    time_bound_s: float
    problem_bound_s: float
    bound_by: str
    compute_time_s: float
    compute_steps: int
    compute_utilisation: float
    energy_pj: float | None
    levels: tuple[LevelScore, ...]

    @property
    def dram_read_bytes(self) -> int:
        """Promised reads from memory."""
        return self.levels[0].read_bytes.high

    @property
    def dram_write_bytes(self) -> int:
        """Promised writes to memory, the flush at the end included."""
        return self.levels[0].write_bytes.high

    @property
    def dram_bytes(self) -> int:
        """Promised reads and writes of the memory."""
        return self.levels[0].bytes.high

    @property
    def required_dram_bandwidth_bytes_per_s(self) -> float:
        """Memory bandwidth at which compute would not wait for memory."""
        return self.dram_bytes / self.compute_time_s

    def level(self, name: str) -> LevelScore:
        """Find a level's score by name."""
        return {level.name: level for level in self.levels}[name]


def evaluate(
    problem: Problem, schedule: Schedule, arch: Arch, *, data_type: str | None = None
) -> Evaluation:
    """Score a schedule of a problem on a machine.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Spatial loops are bound to units of the machine, as in ``M:1024@SM``.
    arch : Arch
    data_type : str, optional
        Whose compute rate counts; by default that of the widest input.

    Returns
    -------
    Evaluation

    Raises
    ------
    ScheduleError
        If the schedule does not suit problem and machine, or does not fit a
        scratchpad.
    ArchError
        If the machine has no rate for the data type.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, parse_schedule
    >>> problem = gemm(m=1024, n=1024, k=1024)
    >>> nest = parse_schedule("M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8", problem)
    >>> score = evaluate(problem, nest, load_arch("titan_v"))
    >>> score.bound_by, score.compute_steps, score.dram_bytes
    ('compute', 16777216, 16777216)
    """
    schedule.check(problem)
    rate = arch.compute.rate(data_type or data_type_of(problem, arch))
    lanes = max(1, int(rate))
    steps = compute_steps(problem, schedule, nested_units(arch, lanes))
    has_lanes = any(loop.level == arch.compute.lane_unit for loop in schedule.loops if loop.level)
    pace = rate / lanes if has_lanes else rate  # a unit's steps, or a lane's
    compute_s = steps.promised / (pace * arch.compute.clock_hz)
    compute_bound_s = steps.least / (pace * arch.compute.max_clock_hz)
    moved = level_traffic(problem, schedule, arch, lanes)
    times = [_times(level, found) for level, found in zip(arch.caches, moved, strict=True)]
    time_s = max(compute_s, *(time for time, _ in times))
    bound_by = "compute"
    slowest = compute_s
    for outer, (time, _) in zip(arch.levels, times, strict=False):
        if time > slowest:
            slowest, bound_by = time, outer.name
    levels = tuple(
        _level_score(problem, outer, level, found, time, time_s)
        for outer, level, found, time in zip(arch.levels, arch.caches, moved, times, strict=False)
    )
    side_by_side = arch.compute.units * (lanes if has_lanes else 1)
    # Divided as the schedule's own bound is, so that rounding keeps their order.
    peak_s = (problem.macs / side_by_side) / (pace * arch.compute.max_clock_hz)
    memory_bandwidth = arch.caches[0].bound_bandwidth_bytes_per_s
    compulsory = sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
    memory_s = compulsory / memory_bandwidth if memory_bandwidth else 0.0
    return Evaluation(
        time_s=time_s,
        time_bound_s=max(compute_bound_s, *(bound for _, bound in times)),
        problem_bound_s=max(peak_s, memory_s),
        bound_by=bound_by,
        compute_time_s=compute_s,
        compute_steps=steps.promised,
        compute_utilisation=problem.macs / (steps.promised * side_by_side),
        energy_pj=_energy_pj(problem, arch, moved),
        levels=levels,
    )


def level_traffic(
    problem: Problem, schedule: Schedule, arch: Arch, lanes: int = 1
) -> tuple[Traffic, ...]:
    """Find the traffic across the outer boundary of each level but the memory.

    ``lanes`` is how many lanes of one unit work side by side.

    Tensors that a level does not hold pass it by: their traffic is what the
    next inner level, or the units themselves, ask for.
    """
    inward: list[Traffic] = []
    behind: Mapping[str, TensorTraffic] = {}
    for level in reversed(arch.caches):
        view = view_of(
            problem,
            schedule,
            instances=instances_inside(arch, level, lanes),
            own_units=own_units(arch, level),
        )
        if not behind:
            behind = _accesses(view)
        found = _one_level(view, level, behind)
        behind = found.tensors
        inward.append(found)
    return tuple(reversed(inward))


def _accesses(view: View) -> dict[str, TensorTraffic]:
    """What the units ask for, point by point."""
    problem = view.problem
    accesses = {}
    for tensor in problem.tensors:
        every = view.visits_elems(tensor, len(view.cuts)) * tensor.element_bytes
        writes, reads = 0, every
        if tensor.name == problem.output:
            writes, reads = every, every - tensor_bytes(problem, tensor)
        accesses[tensor.name] = TensorTraffic(
            tensor.name, Bracket.exact(reads), Bracket.exact(writes)
        )
    return accesses


def _one_level(view: View, level: Level, behind: Mapping[str, TensorTraffic]) -> Traffic:
    problem = view.problem
    room = room_of(problem, level)
    if level.kind == "scratchpad":
        found = explicit_traffic(
            view, room, halo_reuse=level.halo_reuse, double_buffered=level.double_buffered
        )
    else:
        found = lru_traffic(view, room)
    tensors = dict(found.tensors)
    for name, inner in behind.items():
        if name in room.passing:
            tensors[name] = inner
        elif level.write_policy == "through" and level.accumulate == "level":
            own = tensors[name]
            tensors[name] = TensorTraffic(name, own.read_bytes, inner.write_bytes)
    ordered = {tensor.name: tensors[tensor.name] for tensor in problem.tensors}
    return Traffic(ordered, found.fit_position, found.working_set_bytes)


def _times(level: Level, found: Traffic) -> tuple[float, float]:
    """Promised and least time of a level's outer boundary; 0 if unlimited."""
    sustained, highest = level.bandwidth_bytes_per_s, level.bound_bandwidth_bytes_per_s
    return (
        found.bytes.high / sustained if sustained else 0.0,
        found.bytes.low / highest if highest else 0.0,
    )


def _level_score(
    problem: Problem,
    outer: Level,
    level: Level,
    found: Traffic,
    times: tuple[float, float],
    time_s: float,
) -> LevelScore:
    return LevelScore(
        name=level.name,
        outer=outer.name,
        capacity_bytes=level.usable_bytes,
        working_set_bytes=found.working_set_bytes,
        fit_position=found.fit_position,
        tensors=found.tensors,
        time_s=times[0],
        time_bound_s=times[1],
        operational_intensity=problem.flops / found.bytes.high,
        utilisation=times[0] / time_s if time_s else 0.0,
    )


def _energy_pj(problem: Problem, arch: Arch, moved: tuple[Traffic, ...]) -> float | None:
    """Energy of both sides of every boundary, and of the arithmetic."""
    per_mac = arch.compute.energy_pj_per_mac
    if per_mac is None or any(level.energy_pj_per_byte is None for level in arch.levels):
        return None
    total = problem.macs * per_mac
    for outer, level, found in zip(arch.levels, arch.caches, moved, strict=False):
        both = (outer.energy_pj_per_byte or 0.0) + (level.energy_pj_per_byte or 0.0)
        total += found.bytes.high * both
    return total
