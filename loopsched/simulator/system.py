"""Several levels of caches with several instances, fed wave by wave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from loopsched.base.arrays import Ids, Ints
from loopsched.base.errors import ArchError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.compute import check_spatial
from loopsched.models.machine import data_type_of, nested_units, own_units, room_of
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.simulator import _levels
from loopsched.simulator.cache import Progress
from loopsched.simulator.result import LevelCounts, TensorCounts, in_order
from loopsched.simulator.trace import CHUNK, Memory
from loopsched.simulator.waves import Run, Waves

_REQUESTS = 1 << 13
# More than this is refused before it is asked for.
_MAX_NODES = 2**30


def lanes_of(arch: Arch, problem: Problem, schedule: Schedule) -> int:
    """How many lanes of one unit work side by side; 1 where no loop is shared by lanes."""
    lane_unit = arch.compute.lane_unit
    if lane_unit is None or all(loop.unit != lane_unit for loop in schedule.loops):
        return 1
    return max(1, int(arch.compute.rate(data_type_of(problem, arch))))


def units_of(arch: Arch, problem: Problem, schedule: Schedule) -> dict[str, int]:
    """How many of each unit share the items of its loops, outermost unit first.

    Raises
    ------
    ScheduleError
        If the spatial loops do not suit the machine.
    """
    found = nested_units(arch, lanes_of(arch, problem, schedule))
    check_spatial(schedule, tuple(found))
    return dict(found)


def check_caches(arch: Arch) -> None:
    """Raise ArchError unless all levels but the memory are caches."""
    for level in arch.caches:
        if level.kind != "cache":
            raise ArchError(
                f"level '{level.name}' of '{arch.name}' is a {level.kind}: the schedule places its "
                "tiles, so its traffic needs no replay; 'loopsched analyze' (loopsched.evaluate in "
                "Python) counts it exactly. Only caches are simulated"
            )


def _digits(arch: Arch, level: Level, runs: tuple[Run, ...]) -> tuple[list[tuple[int, int]], int]:
    """Say, for each run, into how many instances of a level it leads, and how many share one.

    Also the number of runs that hand out items to instances of the level.
    """
    own, counts = own_units(arch, level), dict(arch.spatial_units)
    found: list[tuple[int, int]] = []
    n_own = 0
    for number, run in enumerate(runs):
        if run.unit in own:
            found.append((run.instances, 1))
            n_own = number + 1
            continue
        sharing = counts[run.unit] // level.instances if run.unit in counts else run.instances
        found.append((-(-run.instances // sharing), sharing))
        break
    found += [(1, run.instances) for run in runs[len(found) :]]
    return found, n_own


def _instances(digits: list[tuple[int, int]], runs: tuple[Run, ...]) -> Ints:
    """Instance of a level for every path through the runs."""
    paths = np.arange(prod(run.instances for run in runs), dtype=np.int64)
    found, weight = np.zeros_like(paths), 1
    for run, (many, sharing) in zip(reversed(runs), reversed(digits), strict=True):
        paths, digit = np.divmod(paths, run.instances)
        found += digit // sharing * weight
        weight *= many
    return found


@dataclass
class _Caches:
    """All instances of one level, and what they count."""

    level: Level
    n_own_runs: int
    tables: _levels.Caches

    @classmethod
    def of(
        cls, memory: Memory, level: Level, instance_of: Ids, n_instances: int, n_own_runs: int
    ) -> _Caches:
        room = room_of(memory.problem, level)
        own = dict(room.own_bytes)
        capacities = [room.shared_bytes, *own.values()]
        part_of = {name: part for part, name in enumerate(own, 1)}
        caches_of = [-1 if name in room.passing else part_of.get(name, 0) for name in memory.names]
        least = min(memory.unit_bytes)
        n_ids = memory.bounds[-1]
        n_nodes = min(max(capacities) // least, n_ids) + 2
        n_caches = n_instances * len(capacities)
        if n_nodes * n_caches > _MAX_NODES:
            raise ArchError(
                f"level '{level.name}': {n_caches:,} caches of {n_nodes:,} elements or lines are "
                "too many to simulate; count larger lines (line_bytes)"
            )
        bits = max(8, (2 * n_nodes - 1).bit_length())
        if n_caches == 1 or n_ids <= 1 << bits:
            bits, n_buckets = 31, n_ids
        else:
            n_buckets = 1 << bits
        margin = max(memory.unit_bytes) // least + 4
        tables = _levels.Caches(
            instance_of=instance_of,
            caches_of=np.array(caches_of, dtype=np.int32),
            n_parts=len(capacities),
            is_through=level.write_policy == "through" and level.accumulate == "level",
            capacities=np.array(capacities, dtype=np.int64),
            bits=bits,
            bounds=np.array(memory.bounds, dtype=np.int64),
            elements=np.array([each.tensor.element_bytes for each in memory.tensors], np.int64),
            units=np.array(memory.unit_bytes, dtype=np.int64),
            nodes=np.empty((n_caches, n_nodes, 5), dtype=np.int32),
            buckets=np.empty((n_caches, n_buckets), dtype=np.int32),
            lists=np.zeros((n_caches, 4), dtype=np.int64),
            seen=np.zeros(n_ids, dtype=np.uint8),
            counts=np.zeros((len(memory.tensors), 5), dtype=np.int64),
            margin=margin,
            out=np.empty((max(_REQUESTS, 4 * margin), 3), dtype=np.int32),
            state=np.zeros(1, dtype=np.int64),
        )
        _levels.clear(tables.nodes, tables.buckets, tables.lists)
        return cls(level, n_own_runs, tables)


class System:
    """A machine's caches under a schedule.

    Parameters
    ----------
    memory : Memory
    schedule : Schedule
    arch : Arch
    units : mapping of unit to int
        From `units_of`.
    sees : {'misses', 'all'}
        What an outer level sees: what inner levels ask it for, or all accesses
        of the units.
    is_warm : bool
        Whether caches that units own keep what they hold from item to item.
    """

    def __init__(
        self,
        memory: Memory,
        schedule: Schedule,
        arch: Arch,
        units: Mapping[str, int],
        *,
        sees: str = "misses",
        is_warm: bool = False,
    ) -> None:
        self.memory, self.arch = memory, arch
        self.waves = Waves(memory, schedule, units)
        self.sees_all = sees == "all"
        self.is_warm = is_warm
        self.levels: list[_Caches] = []  # innermost first
        runs = self.waves.runs
        behind: Ints | None = None
        for level in reversed(arch.caches):
            digits, n_own = _digits(arch, level, runs)
            places = _instances(digits, runs)
            if behind is None or self.sees_all:
                instance_of = places
            else:
                instance_of = np.zeros(int(behind.max()) + 1, dtype=np.int64)
                instance_of[behind] = places
            many = prod(many for many, _ in digits)
            self.levels.append(_Caches.of(memory, level, instance_of.astype(np.int32), many, n_own))
            behind = places

    def run(self, *, flush: bool = True, progress: Progress | None = None) -> None:
        """Replay the schedule; ``flush`` writes back what is dirty at the end."""
        requests = np.empty((max(CHUNK, len(self.memory.tensors)), 3), dtype=np.int32)
        output = self.memory.bounds[-2]
        done = 0
        for step in self.waves.steps():
            if step.group is not None:
                for ids, items in self.waves.walk(step.group):
                    n = len(ids)
                    _levels.label(ids, items, n, step.group.path, output, requests, _levels.UPDATE)
                    for depth in range(len(self.levels) if self.sees_all else 1):
                        self._pass(depth, requests, n)
                    done += n
                    if progress is not None:
                        progress(done)
            elif not self.is_warm:
                for depth, caches in enumerate(self.levels):
                    if caches.n_own_runs - 1 == step.ended:
                        self._flush(depth)
        if flush:
            for depth in range(len(self.levels)):
                self._flush(depth)

    def _pass(self, depth: int, requests: Ids, n: int) -> None:
        """Hand requests to a level, and what it asks for to the next one out."""
        if depth == len(self.levels):
            return
        own = self.levels[depth].tables
        at = 0
        while at < n:
            at = _levels.level(requests, at, n, own)
            if not self.sees_all:
                self._pass(depth + 1, own.out, int(own.state[0]))

    def _flush(self, depth: int) -> None:
        own = self.levels[depth].tables
        while True:
            n = _levels.flush(own)
            if not self.sees_all:
                self._pass(depth + 1, own.out, n)
            if n < len(own.out):
                return

    def counts(self) -> tuple[LevelCounts, ...]:
        """What every level counted, outermost first."""
        found: list[LevelCounts] = []
        behind: Mapping[str, TensorCounts] | None = None
        outer = [level.name for level in self.arch.levels]
        for own, around in zip(self.levels, reversed(outer[:-1]), strict=True):
            tensors = self._tensors(own)
            if self.sees_all and behind is not None:
                tensors = {
                    name: self._as_asked(own, name, each, behind[name])
                    for name, each in tensors.items()
                }
            behind = tensors
            level = own.level
            found.append(
                LevelCounts(level.name, around, level.usable_bytes, level.instances, tensors)
            )
        return tuple(reversed(found))

    def _tensors(self, own: _Caches) -> dict[str, TensorCounts]:
        rows = zip(self.memory.names, own.tables.counts.tolist(), strict=True)
        found = [TensorCounts(name, *row) for name, row in rows]
        return in_order([tensor.name for tensor in self.memory.problem.tensors], found)

    def _as_asked(
        self, own: _Caches, name: str, each: TensorCounts, behind: TensorCounts
    ) -> TensorCounts:
        """Where a level passes on what the next inner one asks for, count that."""
        if own.tables.caches_of[self.memory.names.index(name)] < 0:
            return replace(each, read_bytes=behind.read_bytes, write_bytes=behind.write_bytes)
        if own.tables.is_through:
            return replace(each, write_bytes=behind.write_bytes)
        return each
