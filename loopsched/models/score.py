"""The score of a schedule on a machine: bytes, times, and what binds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from loopsched.base import jit
from loopsched.base.display import Shown
from loopsched.base.jit import is_enabled, is_kept, is_loaded
from loopsched.base.keywords import hides_private
from loopsched.bounds.communication import communication_bound
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.asked import Asked
from loopsched.models.buffer import EFFORT, Closed, Traffic, explicit_traffic, lru_traffic
from loopsched.models.compute import Steps, compute_steps
from loopsched.models.filters import asked_through
from loopsched.models.machine import Sight, nested_units, rate_of, sights
from loopsched.models.places import check_places, placed_in, resolved
from loopsched.models.traffic import Bracket, Moved, Promise, TensorTraffic, accesses
from loopsched.models.view import View, view_of
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem


@dataclass(frozen=True)
class LevelTraffic(Moved):
    """Traffic across the outer boundary of one level of a machine.

    Parameters
    ----------
    promised : mapping of str to Promise
        Promised bytes of each tensor.
    fit_position : int
        As `Traffic` has it of the level's own buffer.
    working_set_bytes : int
    """

    promised: Mapping[str, Promise]
    fit_position: int
    working_set_bytes: int
    _found: _Parts | tuple[_Levels, int] = field(repr=False, compare=False)

    @cached_property
    def _parts(self) -> _Parts:
        if isinstance(self._found, _Parts):
            return self._found
        levels, at = self._found
        return levels.found[at]._parts

    @property
    def own(self) -> Traffic:
        """What the level's own buffer moves."""
        return self._parts.own

    @cached_property
    def tensors(self) -> dict[str, TensorTraffic]:
        """Bracket of each tensor's bytes."""
        return self._parts.tensors()


@dataclass(frozen=True)
class _Parts:
    """What crosses a level's outer boundary for itself, and what for the levels inside.

    Parameters
    ----------
    own : Traffic
        What the level's own buffer moves.
    inner : LevelTraffic or Accesses
        What the next inner level, or the units themselves, ask for.
    passing : frozenset of str
        Tensors that do not enter the level: their traffic is the inner one's.
    writes_through : bool
        Whether every write of the inner level goes on outward.
    """

    own: Traffic
    inner: LevelTraffic | Accesses
    passing: frozenset[str]
    writes_through: bool

    def promised(self) -> Mapping[str, Promise]:
        """Promised bytes of each tensor."""
        if not (self.passing or self.writes_through):
            return self.own.promised
        found = {}
        for name, inner in self.inner.promised.items():
            found[name] = inner if name in self.passing else self.own.promised[name]
            if self.writes_through and name not in self.passing:
                found[name] = Promise(found[name].read_bytes, inner.write_bytes)
        return found

    def tensors(self) -> dict[str, TensorTraffic]:
        """Bracket of each tensor's bytes."""
        found = {}
        for name, inner in self.inner.tensors.items():
            found[name] = inner if name in self.passing else self.own.tensors[name]
            if self.writes_through and name not in self.passing:
                found[name] = TensorTraffic(name, found[name].read_bytes, inner.write_bytes)
        return found


@dataclass(frozen=True)
class _Levels:
    """The levels of a schedule whose promises are known already."""

    problem: Problem
    schedule: Schedule
    arch: Arch
    lanes: int
    effort: int

    @cached_property
    def found(self) -> tuple[LevelTraffic, ...]:
        """What they move, with all that it rests on."""
        return level_traffic(self.problem, self.schedule, self.arch, self.lanes, effort=self.effort)


@dataclass(frozen=True)
class Accesses(Moved):
    """What the units ask for, point by point."""

    problem: Problem

    @property
    def promised(self) -> Mapping[str, Promise]:
        """Bytes of each tensor."""
        return accesses(self.problem)

    @cached_property
    def tensors(self) -> dict[str, TensorTraffic]:
        """Exact brackets."""
        return {
            name: TensorTraffic(
                name, Bracket.exact(part.read_bytes), Bracket.exact(part.write_bytes)
            )
            for name, part in self.promised.items()
        }


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
    moved : LevelTraffic
        Bytes across the outer boundary, all instances together.
    time_s : float, seconds
        Promised bytes at the sustained bandwidth.
    time_bound_s : float, seconds
        What no order of execution avoids, at the highest bandwidth.
    operational_intensity : float, FLOP per byte
        Of the promised bytes across the outer boundary.
    utilisation : float
        Share of the promised time in which the boundary is busy.
    """

    name: str
    outer: str
    capacity_bytes: int | None
    moved: LevelTraffic
    time_s: float
    time_bound_s: float
    operational_intensity: float
    utilisation: float

    @property
    def working_set_bytes(self) -> int:
        """Footprint of the body that fits, or of the tiles placed, in one instance."""
        return self.moved.working_set_bytes

    @property
    def fit_position(self) -> int:
        """Position of the outermost loop whose whole region fits, or innermost place of a tile."""
        return self.moved.fit_position

    @property
    def tensors(self) -> dict[str, TensorTraffic]:
        """Bracket of each tensor's bytes across the outer boundary."""
        return self.moved.tensors

    @property
    def promised(self) -> Mapping[str, Promise]:
        """Promised bytes of each tensor across the outer boundary."""
        return self.moved.promised


@hides_private
@dataclass(frozen=True)
class Evaluation(Shown):
    """Score of a schedule: what it promises, and what no run can beat.

    Parameters
    ----------
    time_s : float, seconds
        Promised: the largest of compute time and of the levels' times with
        guaranteed traffic, at sustained clock and bandwidths.
    time_bound_s : float, seconds
        No run of this schedule is faster: edge items not counted as full, what
        no order of execution avoids across every boundary, highest clock and
        bandwidths.
    problem_bound_s : float, seconds
        No implementation of this algorithm is faster, operands coming from
        memory: peak rate, and the communication bound of all that is on chip.
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

    See Also
    --------
    evaluate, Result
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
    _of: tuple[Problem, Arch] = field(repr=False, compare=False)

    @property
    def arch(self) -> Arch:
        """The machine that the schedule is scored on."""
        return self._of[1]

    @cached_property
    def least_dram_bytes(self) -> int:
        """No schedule moves less through an outermost cache of this size.

        The communication bound of its usable capacity, or of all that is on chip where some
        tensors pass the level; found when it is asked for.
        """
        return _least_dram_bytes(*self._of)

    @property
    def dram_read_bytes(self) -> int:
        """Promised reads from memory."""
        return self.levels[0].promised_read_bytes

    @property
    def dram_write_bytes(self) -> int:
        """Promised writes to memory, the flush at the end included."""
        return self.levels[0].promised_write_bytes

    @property
    def dram_bytes(self) -> int:
        """Promised reads and writes of the memory."""
        return self.levels[0].promised_bytes

    @property
    def required_dram_bandwidth_bytes_per_s(self) -> float:
        """Memory bandwidth at which compute would not wait for memory."""
        return self.dram_bytes / self.compute_time_s

    def level(self, name: str) -> LevelScore:
        """Find a level's score by name."""
        return {level.name: level for level in self.levels}[name]


def evaluate(
    problem: Problem,
    schedule: Schedule,
    arch: Arch,
    *,
    data_type: str | None = None,
    effort: int = EFFORT,
) -> Evaluation:
    """Score a schedule of a problem on a machine.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Spatial loops are bound to units of the machine, as in ``M:1024@SM``.
    arch : Arch
    data_type : str, optional
        The type whose compute rate counts; by default that of the widest input.
    effort : int
        How many tile accesses may be replayed per level to narrow the
        brackets; 0: closed forms only.

    Returns
    -------
    Evaluation

    Raises
    ------
    ScheduleError
        If the schedule does not suit problem and machine, or does not fit a
        scratchpad (`CapacityError`), or its tiles do not where they are placed.
    ArchError
        If the machine has no rate for the data type.

    See Also
    --------
    evaluate_many, search, simulate, explain

    Notes
    -----
    A process that has scored some schedules uses the compiled code of `evaluate_many` if it is
    cached, and compiles it after 15,000: same figures, in about a tenth of the time.
    Brackets are computed when they are read.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, parse_schedule
    >>> problem = gemm(m=1024, n=1024, k=1024)
    >>> nest = parse_schedule("M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8", problem)
    >>> score = evaluate(problem, nest, load_arch("titan_v"))
    >>> score.bound_by, score.compute_steps, score.dram_bytes
    ('compute', 16777216, 16777216)
    """
    rate = rate_of(problem, arch, data_type)
    arch, found = promised(problem, schedule, arch, rate, effort=effort)
    compute_s, time_s = found.compute_s, found.time_s
    compute_bound_s = found.steps.least / (found.pace * arch.compute.max_clock_hz)
    bound_by = "compute"
    slowest = compute_s
    for outer, time in zip(arch.levels, found.level_s, strict=False):
        if time > slowest:
            slowest, bound_by = time, outer.name
    levels = tuple(
        _level_score(problem, arch, outer, level, moved, time_s)
        for outer, level, moved in zip(arch.levels, arch.caches, found.moved, strict=False)
    )
    # Divided as the schedule's own bound is, so that rounding keeps their order.
    peak_s = (problem.macs / found.side_by_side) / (found.pace * arch.compute.max_clock_hz)
    return Evaluation(
        time_s=time_s,
        time_bound_s=max(compute_bound_s, *(level.time_bound_s for level in levels)),
        problem_bound_s=max(peak_s, levels[0].time_bound_s),
        bound_by=bound_by,
        compute_time_s=compute_s,
        compute_steps=found.steps.promised,
        compute_utilisation=problem.macs / (found.steps.promised * found.side_by_side),
        energy_pj=_energy_pj(problem, arch, found.moved),
        levels=levels,
        _of=(problem, arch),
    )


class Promised(NamedTuple):
    """What a schedule promises.

    Parameters
    ----------
    steps : Steps
    pace : float
        Steps a cycle of one unit, or of one lane.
    side_by_side : int
        Units, or lanes, that work at a time.
    compute_s : float, seconds
    moved : tuple of LevelTraffic
        Of each level but the memory, outermost first.
    level_s : tuple of float, seconds
        How long each of them takes.
    """

    steps: Steps
    pace: float
    side_by_side: int
    compute_s: float
    moved: tuple[LevelTraffic, ...]
    level_s: tuple[float, ...]

    @property
    def time_s(self) -> float:
        """What the slowest of all takes."""
        return max(self.compute_s, *self.level_s)


def promised(
    problem: Problem, schedule: Schedule, arch: Arch, rate: float, *, effort: int = EFFORT
) -> tuple[Arch, Promised]:
    """Find what a schedule promises, and the machine whose levels hold what it has them hold.

    ``rate`` is the steps a cycle of one unit.
    """
    lanes = max(1, int(rate))
    known = _known(problem, schedule, arch, lanes, effort) if _is_quick() else None
    if known is None:
        schedule, arch = resolved(problem, schedule.check(problem), arch)
        steps = compute_steps(problem, schedule, nested_units(arch, lanes))
        known = steps, level_traffic(problem, schedule, arch, lanes, effort=effort)
    steps, moved = known
    has_lanes = any(loop.unit == arch.compute.lane_unit for loop in schedule.loops if loop.unit)
    pace = rate / lanes if has_lanes else rate
    return arch, Promised(
        steps=steps,
        pace=pace,
        side_by_side=arch.compute.units * (lanes if has_lanes else 1),
        compute_s=steps.promised / (pace * arch.compute.clock_hz),
        moved=moved,
        level_s=tuple(map(_time, arch.caches, moved)),
    )


LOADED_FROM = 16
"""Schedules scored by one process for which it is worth to load compiled code that is kept."""

_n_scored = 0


def _is_quick() -> bool:
    """Whether compiled code says at once what a schedule promises; asked for each of them."""
    global _n_scored
    _n_scored += 1
    if _n_scored < LOADED_FROM or not is_enabled():
        return False
    from loopsched.models._level_kernels import promise_all

    if is_loaded(promise_all) or _n_scored % LOADED_FROM:
        return is_loaded(promise_all)
    from loopsched.models.promises import COMPILED_FROM

    return is_kept(promise_all) or (_n_scored >= COMPILED_FROM and jit.compiles_ahead)


def _known(
    problem: Problem, schedule: Schedule, arch: Arch, lanes: int, effort: int
) -> tuple[Steps, tuple[LevelTraffic, ...]] | None:
    """Look at a schedule by compiled code; None if that does not speak of it."""
    from loopsched.models import _promise_kernels as kernels
    from loopsched.models.promises import promised_one

    known = promised_one(problem, schedule, arch, lanes)
    if known is None:
        return None
    row, waves = known
    units = {loop.unit for loop in schedule.loops if loop.unit is not None}
    instances = nested_units(arch, lanes)
    least = -(-problem.macs // math.prod([instances[unit] for unit in units]))
    steps = Steps(row[kernels.STEPS], max(row[kernels.LEAST_STEPS], least))
    names = [tensor.name for tensor in problem.tensors]
    levels = _Levels(problem, schedule, arch, lanes, effort)
    moved = []
    for at in range(len(arch.caches)):
        begin = kernels.BYTES + len(arch.caches) + at * (kernels.PARTS + 2 * len(names))
        fit, held, *parts = row[begin : begin + kernels.PARTS + 2 * len(names)]
        each = dict(zip(names, map(Promise, parts[::2], parts[1::2]), strict=True))
        moved.append(LevelTraffic(each, fit, held, (levels, at)))
    if waves is not None:
        sight = sights(problem, arch, lanes)[0]
        inner = moved[1] if len(moved) > 1 else Accesses(problem)
        moved[0] = _one_level(_seen(sight, problem, schedule), sight, inner, effort, *waves)
    return steps, tuple(moved)


def level_traffic(
    problem: Problem, schedule: Schedule, arch: Arch, lanes: int = 1, *, effort: int = EFFORT
) -> tuple[LevelTraffic, ...]:
    """Find the traffic across the outer boundary of each level but the memory.

    ``lanes`` is how many lanes of one unit work side by side.

    Tensors that a level does not hold pass it by: their traffic is what the
    next inner level, or the units themselves, ask for.
    """
    check_places(problem, schedule, arch)
    inward: list[LevelTraffic] = []
    behind: LevelTraffic | Accesses = Accesses(problem)
    asked: Asked | None = None
    for sight in reversed(sights(problem, arch, lanes)):
        view = _seen(sight, problem, schedule)
        behind = _one_level(view, sight, behind, effort, asked)
        inward.append(behind)
        if len(inward) < len(arch.caches):
            asked = asked_through(view, sight.room, sight.level, asked, behind.promised)
    return tuple(reversed(inward))


def _seen(sight: Sight, problem: Problem, schedule: Schedule) -> View:
    return view_of(problem, schedule, instances=sight.instances, own_units=sight.own_units)


def _one_level(
    view: View,
    sight: Sight,
    inner: LevelTraffic | Accesses,
    effort: int,
    asked: Asked | None,
    closed: Closed | None = None,
) -> LevelTraffic:
    level, room = sight.level, sight.room
    if level.kind == "scratchpad":
        own = explicit_traffic(
            view,
            room,
            placed_in(view.schedule.places, level.name),
            halo_reuse=level.halo_reuse,
            double_buffered=level.double_buffered,
        )
    else:
        own = lru_traffic(view, room, effort=effort, asked=asked, closed=closed)
    writes_through = level.write_policy == "through" and level.accumulate == "level"
    parts = _Parts(own, inner, room.passing, writes_through)
    return LevelTraffic(parts.promised(), own.fit_position, own.working_set_bytes, parts)


def _time(level: Level, found: LevelTraffic) -> float:
    """Promised time of a level's outer boundary; 0 if it is unlimited."""
    sustained = level.bandwidth_bytes_per_s
    return found.promised_bytes / sustained if sustained else 0.0


def _level_score(
    problem: Problem,
    arch: Arch,
    outer: Level,
    level: Level,
    found: LevelTraffic,
    time_s: float,
) -> LevelScore:
    own_time_s = _time(level, found)
    least = least_bytes(problem, arch, level)
    highest = level.bound_bandwidth_bytes_per_s
    return LevelScore(
        name=level.name,
        outer=outer.name,
        capacity_bytes=level.usable_bytes,
        moved=found,
        time_s=own_time_s,
        time_bound_s=least / highest if highest else 0.0,
        operational_intensity=problem.flops / found.promised_bytes
        if found.promised_bytes
        else math.inf,
        utilisation=own_time_s / time_s if time_s else 0.0,
    )


def _least_dram_bytes(problem: Problem, arch: Arch) -> int:
    """Bound what the modelled outermost level moves, in any order.

    Tensors that pass it may stay further in, so that those levels count, too.
    """
    level = arch.caches[0]
    room = level.usable_bytes
    if level.holds is not None or room is None:
        return least_bytes(problem, arch, level)
    room += sum(size for _, size in level.tensor_capacity_bytes)
    return communication_bound(problem, room).bytes


@lru_cache(maxsize=1024)
def least_bytes(problem: Problem, arch: Arch, level: Level) -> int:
    """Bound what crosses a level's outer boundary, whatever is kept inside."""
    inside = arch.inside_bytes(level)
    if inside is None:
        return sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
    return communication_bound(problem, inside).bytes


def _energy_pj(problem: Problem, arch: Arch, moved: tuple[LevelTraffic, ...]) -> float | None:
    """Energy of both sides of every boundary, and of the arithmetic."""
    per_mac = arch.compute.energy_pj_per_mac
    if per_mac is None or not arch.has_energies:
        return None
    total = problem.macs * per_mac
    for outer, level, found in zip(arch.levels, arch.caches, moved, strict=False):
        both = (outer.energy_pj_per_byte or 0.0) + (level.energy_pj_per_byte or 0.0)
        total += found.promised_bytes * both
    return total
