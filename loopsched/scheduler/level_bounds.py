"""Bounds of levels: the least that crosses each one's boundary, whatever the schedule.

Every level by itself: the body that moves the fewest bytes, of all extents and orders.
Together they bound time, energy and their product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

from loopsched.base.errors import EmptySpaceError
from loopsched.bounds.communication import communication_bound
from loopsched.machines.levels import Level
from loopsched.models.machine import data_type_of, nested_units, room_of
from loopsched.models.score import least_bytes
from loopsched.models.traffic import Room
from loopsched.problems.footprint import points_elems, tensor_bytes
from loopsched.scheduler.body import NO_INCUMBENT, Body, Keeps, best_body
from loopsched.scheduler.effort import Watch
from loopsched.scheduler.goal import Objective, Value
from loopsched.scheduler.least import least_tables
from loopsched.scheduler.space import Space
from loopsched.scheduler.tables import Tables, is_exhaustive, tables_for

# Nodes of one body before the best so far is taken.
MAX_BODY_NODES = 2**22


def keeps_of(level: Level, *, is_guaranteed: bool = False) -> Keeps:
    """How a level keeps what bodies leave; a scratchpad guarantees nothing by itself."""
    if level.kind == "cache":
        return Keeps(is_guaranteed)
    return Keeps(False, level.halo_reuse, 2 if level.double_buffered else 1)


def passes_writes(level: Level) -> bool:
    """Whether a level writes what the level inside it writes, however much it keeps."""
    return level.write_policy == "through" and level.accumulate == "level"


@dataclass
class LevelBounds:
    """What levels move at least, and the bodies that do; each is searched once.

    Parameters
    ----------
    space : Space
    value : {'promised', 'point', 'low'}
        Which traffic counts.
    watch : Watch, optional
        What the work is charged to.
    nodes : int
        Partial choices looked at.
    """

    space: Space
    value: Value
    watch: Watch = field(default_factory=Watch)
    nodes: int = 0

    def __post_init__(self) -> None:
        self.problem, arch = self.space.problem, self.space.arch
        self.arch = arch
        rate = arch.compute.rate(data_type_of(self.problem, arch))
        self.rate = float(rate * arch.compute.clock_hz)
        self.lanes = max(1, int(rate)) if arch.compute.lane_unit else 1
        counts = nested_units(arch)
        self.units = tuple((s, counts[s.unit]) for s in self.space.slots if s.unit is not None)
        self.instances = math.prod(count for _, count in self.units)
        self.spatial = self.space.spatial
        size = self.problem.size
        # No more work at once than there are points along the dimensions that a unit may share.
        busy = math.prod(min(n, math.prod(size[d] for d in s.dims)) for s, n in self.units)
        self.busy = min(busy, math.prod(size[dim] for dim in self.spatial))
        # Where units are nested or share sums, schedules are built by other rules (`arrays`).
        sums = set(self.spatial) - set(self.problem.parallel_dims)
        self.is_array = len(self.units) > 1 or bool(sums)
        self.unit = self.units[0][0].unit if self.units and not self.is_array else None
        self.shared = tuple(level for level in arch.caches if level.is_shared)
        self.private = tuple(level for level in arch.caches if not level.is_shared)
        self.least: dict[str, int] = {}
        self.placed: dict[str, int] = {}
        self._known: dict[tuple[Room, Keeps], tuple[Body | None, int]] = {}

    @cached_property
    def tables(self) -> Tables:
        """What no way of cutting the problem goes below."""
        return least_tables(self.problem)

    def body(
        self,
        level: Level,
        chains: tuple[tuple[int, ...], ...] | None = None,
        share_bytes: int | None = None,
    ) -> Body:
        """Find the best body of a level, inside outer extents if given."""
        room = room_of(self.problem, level)
        if share_bytes is not None:
            room = replace(room, shared_bytes=min(room.shared_bytes, share_bytes))
        found = self._best(level, room, tables_for(self.problem, chains))
        if found is None and share_bytes is not None:
            return self.body(level, chains)
        if found is None:
            found = self._single_points(level)
        self.nodes += found.nodes
        return found

    def best_inside(self, level: Level, tables: Tables) -> Body | None:
        """Find the best body of a level among given extents; None if none fits."""
        found = self._best(level, room_of(self.problem, level), tables)
        self.nodes += found.nodes if found else 0
        return found

    def _best(self, level: Level, room: Room, tables: Tables) -> Body | None:
        keeps = keeps_of(level, is_guaranteed=self.value == "promised")
        if level.kind == "cache" and not keeps.is_guaranteed:
            tables = tables.with_whole_sweeps()
        return self._body_of(tables, room, keeps)

    def _body_of(
        self, tables: Tables, room: Room, keeps: Keeps, below: int = NO_INCUMBENT
    ) -> Body | None:
        """Find the best body; what is asked again of the whole problem costs its work, not time."""
        is_whole = self.value == "promised" and below == NO_INCUMBENT and tables is self.tables
        known = self._known.get((room, keeps)) if is_whole else None
        if known is not None and self.watch.can_spend(known[1]):
            self.watch.spend(known[1])
            return known[0]
        before = self.watch.spent
        found = best_body(
            self.problem, room, keeps, tables=tables, below=below, watch=self.watch,
            most=MAX_BODY_NODES,
        )  # fmt: skip
        if is_whole:
            self._known[room, keeps] = found, self.watch.spent - before
        return found

    def least_body(
        self,
        level: Level,
        tables: Tables | None = None,
        *,
        below: int = NO_INCUMBENT,
        room: Room | None = None,
    ) -> Body | None:
        """Bound what any schedule moves into a level; None if not below ``below``."""
        tables = tables or self.tables
        if passes_writes(level):  # it reads at its visits, and writes at least once
            weight = tables.weight.clip(max=tables.element_bytes)
            tables = replace(tables, weight=weight, constant=0)
        # Items end a run of loops early, and a shorter run has a smaller reuse window.
        is_guaranteed = self.value == "promised" and (not self.units or level.is_shared)
        keeps = keeps_of(level, is_guaranteed=is_guaranteed)
        found = self._body_of(tables, room or room_of(self.problem, level), keeps, below)
        if found is None and below == NO_INCUMBENT:
            found = self._single_points(level)
        self.nodes += found.nodes if found else 0
        return found

    def _single_points(self, level: Level) -> Body:
        if level.kind == "scratchpad" and is_exhaustive(self.problem):
            raise EmptySpaceError(
                f"problem '{self.problem.name}': nothing fits, the operands of one point need "
                f"more than level '{level.name}' holds ({level.usable_bytes} B)"
            )
        ones = tuple((dim, 1) for dim in self.problem.dims)
        inward = tuple(d for d, n in self.problem.sizes if n > 1)
        return Body(self._unfitting_bytes(level), ones, inward, 0)

    def _unfitting_bytes(self, level: Level) -> int:
        """Bound the traffic of a cache that cannot hold what its instances need at once.

        Nothing is kept from step to step; but in a step, instances share what
        their points have in common.
        """
        held = {tensor.name for tensor in room_of(self.problem, level).held(self.problem)}
        size, total = self.problem.size, 0
        for tensor in self.problem.tensors:
            if tensor.name not in held:
                continue
            once = tensor_bytes(self.problem, tensor)
            alone = {axis.dims[0] for axis in tensor.axes if len(axis.dims) == 1}
            side_by_side = self.problem.dims if self.lanes > 1 else self.spatial
            sharing = math.prod(size[dim] for dim in side_by_side if dim not in alone)
            at_once = min(self._n_inside(level), sharing)
            steps = -(-self.problem.macs // at_once) * tensor.element_bytes
            moved = once if any(axis.size is not None for axis in tensor.axes) else max(once, steps)
            total += moved
            if tensor.name == self.problem.output and not passes_writes(level):
                total += moved - once
        return total

    def bound_bytes(self, level: Level) -> int:
        """Bound what crosses a level's outer boundary."""
        room = room_of(self.problem, level)
        if self.value != "promised":  # only the promise has a closed form
            return sum(tensor_bytes(self.problem, tensor) for tensor in self.problem.tensors)
        if level.name not in self.least:
            found = self.least_body(level)
            is_least = found is not None and found.is_least and is_exhaustive(self.problem)
            self.least[level.name] = found.bytes if found and is_least else self._known_bytes(level)
        least = self.least[level.name]
        if level.kind == "scratchpad":
            least = self._placed_bytes(level, least)
        if level.kind == "cache" and not self.fits_at_once(level):
            least = min(least, self._unfitting_bytes(level))
        if room.passing:
            least += self._passing_bytes(level, room.passing)
        return max(least, least_bytes(self.problem, self.arch, level))

    def _passing_bytes(self, level: Level, names: frozenset[str]) -> int:
        """Bound what passes a level by: what the levels inside, or the units, ask for."""
        total = 0
        for inner in self.arch.caches[self.arch.caches.index(level) + 1 :]:
            room = room_of(self.problem, inner)
            groups = [frozenset((name,)) for name in sorted(names - room.passing)]
            if inner.kind == "cache" and groups:  # not each at a loop of its own
                groups = [names - room.passing]
            for group in groups:
                alone = room if inner.kind == "cache" else room.only(group, self.problem)
                tables = self.tables.only(group)
                found = self.least_body(inner, tables, room=alone)
                if found is not None and found.is_least and is_exhaustive(self.problem):
                    least = found.bytes
                    # Where all units at once ask for more than it holds, it passes all on; what
                    # several of them ask for at once, they share.
                    if inner.kind == "cache" and not self.fits_at_once(inner):
                        is_alone = inner is self.arch.caches[-1] and self._n_inside(inner) == 1
                        least = min(least, self._asked_bytes(group, once=not is_alone))
                    total += least
                    names -= group
        return total + self._asked_bytes(names)

    def _asked_bytes(self, names: frozenset[str], *, once: bool = False) -> int:
        """Count what units ask for: every operand of every point; or each element ``once``."""
        total = 0
        for tensor in map(self.problem.tensor, names):
            least = tensor_bytes(self.problem, tensor)
            asked = points_elems(self.problem, tensor) * tensor.element_bytes
            is_output = tensor.name == self.problem.output
            total += least if once else asked * (1 + is_output) - is_output * least
        return total

    def _n_inside(self, level: Level) -> int:
        """Count the units inside one instance of a level, or their lanes."""
        return max(1, self.instances // level.instances) * self.lanes

    def _known_bytes(self, level: Level) -> int:
        """Bound a level's traffic by what no order of execution avoids."""
        room = room_of(self.problem, level)
        least = sum(tensor_bytes(self.problem, tensor) for tensor in room.held(self.problem))
        is_one = not room.own_bytes and not room.passing and self.fits_at_once(level)
        if is_one and self.value == "promised" and not passes_writes(level):
            least = max(least, communication_bound(self.problem, room.shared_bytes).bytes)
        return least

    def known_floor(self, objective: Objective) -> float:
        """Bound the objective in no time: by the arithmetic and by what no order avoids."""
        if objective == "dram_bytes":
            return self._known_bytes(self.arch.caches[0])
        time_s = self._compute_s()
        energy = self.problem.macs * (self.arch.compute.energy_pj_per_mac or 0.0)
        for outer, level in zip(self.arch.levels, self.arch.caches, strict=False):
            least = self._known_bytes(level)
            both = (outer.energy_pj_per_byte or 0.0) + (level.energy_pj_per_byte or 0.0)
            energy += least * both
            if level.bandwidth_bytes_per_s:
                time_s = max(time_s, least / level.bandwidth_bytes_per_s)
        return {"time": time_s, "energy": energy, "edp": energy * time_s}[objective]

    def _placed_bytes(self, level: Level, even: int) -> int:
        """Bound the traffic of a scratchpad, wherever tiles are placed."""
        if level.name not in self.placed:
            from loopsched.scheduler.placement import least_placed_bytes

            self.placed[level.name], nodes = least_placed_bytes(
                self.problem,
                room_of(self.problem, level),
                keeps_of(level),
                below=even,
                passes_writes=passes_writes(level),
            )
            self.nodes += nodes
        return self.placed[level.name]

    def fits_at_once(self, level: Level) -> bool:
        """Whether a level holds one point of each unit and lane inside, whatever the points."""
        room, many = room_of(self.problem, level), self._n_inside(level)
        return room.fits({t.name: many * t.element_bytes for t in room.held(self.problem)})

    def is_plain_cache(self, level: Level) -> bool:
        """Whether a level is a cache of all tensors, of one point of each unit at least."""
        room = room_of(self.problem, level)
        is_plain = level.kind == "cache" and not passes_writes(level)
        return is_plain and not room.passing and not room.own_bytes and self.fits_at_once(level)

    def level_s(self, level: Level) -> float:
        if not level.bandwidth_bytes_per_s:
            return 0.0
        return self.bound_bytes(level) / level.bandwidth_bytes_per_s

    def _compute_s(self) -> float:
        return -(-self.problem.macs // self.busy) / self.rate

    def _energy_floor(self) -> float:
        total = self.problem.macs * (self.arch.compute.energy_pj_per_mac or 0.0)
        for outer, level in zip(self.arch.levels, self.arch.caches, strict=False):
            both = (outer.energy_pj_per_byte or 0.0) + (level.energy_pj_per_byte or 0.0)
            total += self.bound_bytes(level) * both
        return total

    def _time_floor(self) -> float:
        """Bound time; inner levels' traffic only where it may matter."""
        known = self.shared if self.unit else self.arch.caches
        return max([self._compute_s(), *(self.level_s(level) for level in known)])

    def floor(self, objective: Objective) -> float:
        if objective == "dram_bytes":
            return self.bound_bytes(self.arch.caches[0])
        if objective == "time":
            return self._time_floor()
        energy = self._energy_floor()
        return energy if objective == "energy" else energy * self._time_floor()
