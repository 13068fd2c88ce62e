"""Exact search: bounds from each resource alone, joined until they meet.

Every resource gives a bound that holds for all schedules of the space: the
least traffic across each boundary (`body`), and the least time of any cut into
work items (`items`).  Schedules are built to reach the bounds; where the best
one does, it is optimal, and the certificate says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import permutations

from loopsched.arch import Arch, Level
from loopsched.errors import EmptySpaceError, ScheduleError
from loopsched.footprint import tensor_bytes
from loopsched.models.buffer import QUICK, promised_visits
from loopsched.models.compute import compute_steps
from loopsched.models.machine import (
    data_type_of,
    instances_inside,
    nested_units,
    own_units,
    room_of,
)
from loopsched.models.reuse import visits_bytes
from loopsched.models.view import at_once, view_of
from loopsched.nest import Schedule
from loopsched.problem import Problem
from loopsched.scheduler.blocks import Block, compose
from loopsched.scheduler.body import NO_INCUMBENT, Body, best_body
from loopsched.scheduler.enumerate import schedules
from loopsched.scheduler.items import Items, Pace, best_items, refined_items
from loopsched.scheduler.placement import best_placement, least_placed_bytes
from loopsched.scheduler.result import (
    Certificate,
    Objective,
    Result,
    Scored,
    Value,
    objective_value,
    rank,
)
from loopsched.scheduler.space import Space
from loopsched.scheduler.tables import (
    relaxed_tables,
    tables_for,
    trip_classes,
    with_least_halos,
    with_least_pieces,
)
from loopsched.scheduler.tile_places import with_best_places
from loopsched.scheduler.variations import variations
from loopsched.scheduler.waves import aligned_orders, with_barriers
from loopsched.score import Evaluation, evaluate

Extents = dict[str, int]

# Ways to cut items that are looked at one by one before the gap is left open.
MAX_OPEN = 8192
# Where bounds are not met: spaces that are listed, nests of them that are scored.
MAX_LISTED = 32768
MAX_SCORED = 8192
MAX_REFINED = 64
MAX_TRIED = 24
# Schedules whose tiles are placed one by one, too, where that may be better.
MAX_PLACED = 8
WIDENINGS = (1.0001, 1.001, 1.01, 1.05, 1.2, float("inf"))


@dataclass
class Searcher:
    """One exact search in progress.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    objective, value
        What is minimised.
    spatial : tuple of str
        Dimensions that instances may share.
    """

    problem: Problem
    arch: Arch
    objective: Objective
    value: Value
    spatial: tuple[str, ...]
    nodes: int = 0
    found: dict[Schedule, Evaluation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arch = self.arch
        self.rate = float(
            arch.compute.rate(data_type_of(self.problem, arch)) * arch.compute.clock_hz
        )
        units = nested_units(arch)
        self.unit: str | None = None
        self.instances = 1
        for unit, count in reversed(units.items()):
            if count > 1:
                self.unit, self.instances = unit, count
        self.shared = tuple(level for level in arch.caches if level.is_shared)
        self.private = tuple(level for level in arch.caches if not level.is_shared)
        if self.unit is None or len(units) > 1:
            self.spatial = self.spatial if self.unit else ()
        self.least: dict[str, Body] = {}
        self.placed: dict[str, int] = {}
        self.best = float("inf")
        self.private_floors: dict[tuple[tuple[str, int], ...], float | None] = {}

    def run(self) -> tuple[float, bool]:
        """Search; returns the lower bound and whether it is met."""
        floor = self._floor()
        if self.objective == "time" and self.unit:
            floor = self._items_first(floor)
        else:
            self._try_memory_first()
        self._place_tiles(floor)
        best = self.best
        return min(floor, best), best <= floor

    @property
    def has_scratchpads(self) -> bool:
        """Whether tiles can be placed one by one: more schedules than are ever listed."""
        return any(level.kind == "scratchpad" for level in self.arch.caches)

    def run_all(self, space: Space, floor: float) -> bool:
        """Score every schedule of a small space; returns whether it was small enough."""
        nests = list(schedules(space))
        units = nested_units(self.arch)
        if self.objective == "time":  # most are slower for their compute time alone
            most = self.best * self.rate * (1 + 1e-12)
            nests = [n for n in nests if compute_steps(self.problem, n, units).promised <= most]
        if len(nests) > MAX_SCORED:
            return False
        for nest in nests:
            self.nodes += 1
            self.consider(nest)
            if self._worth(nest) <= floor:
                break
        return not self.has_scratchpads or self.best <= floor

    def _worth(self, schedule: Schedule) -> float:
        found = self.found.get(schedule)
        return objective_value(found, self.objective, self.value) if found else float("inf")

    def consider(self, schedule: Schedule) -> None:
        """Score a schedule and remember it, if the machine can run it.

        If its waves end within an iteration and bring data in twice for that,
        score also what keeps them from it.
        """
        if schedule in self.found:
            return
        self._score(schedule)
        if self.unit is None or not self.shared:
            return
        if self.objective == "time" and not self._is_late(schedule):
            return
        if view_of(self.problem, schedule, instances={self.unit: self.instances}).is_aligned:
            return
        for other in aligned_orders(schedule, self.unit, self.instances):
            self._score(other)
        with_barrier = with_barriers(self.problem, schedule, self.unit, self.instances)
        if with_barrier is not None:
            self._score(with_barrier)

    def _score(self, schedule: Schedule) -> None:
        # What runs at once may not fit into a scratchpad that instances share.
        with suppress(ScheduleError):
            if schedule not in self.found:
                found = evaluate(self.problem, schedule, self.arch, effort=QUICK)
                self.found[schedule] = found
                self.best = min(self.best, objective_value(found, self.objective, self.value))

    def _is_late(self, schedule: Schedule) -> bool:
        """Whether a schedule waits for data, which waves may have brought in twice."""
        found = self.found.get(schedule)
        return found is not None and found.bound_by != "compute"

    def ranked(self) -> list[tuple[Schedule, Evaluation]]:
        """List the schedules found, best first."""
        return sorted(
            self.found.items(),
            key=lambda pair: (rank(pair[1], self.objective, self.value), str(pair[0])),
        )

    def distinct(self) -> list[tuple[Schedule, Evaluation]]:
        """List the schedules found, best first, one for each score."""
        first: dict[object, tuple[Schedule, Evaluation]] = {}
        for schedule, evaluation in self.ranked():
            first.setdefault(rank(evaluation, self.objective, self.value), (schedule, evaluation))
        return list(first.values())

    def look_around(self, space: Space, top: int) -> None:
        """Score what is one step away from the best ones, until enough are known."""
        from loopsched.scheduler.allowed import allows

        done: set[Schedule] = set()
        while True:
            near = [schedule for schedule, _ in self.distinct()[:top]]
            here = next((schedule for schedule in near if schedule not in done), None)
            if here is None:
                return
            done.add(here)
            worst = self._worth(near[-1]) if len(near) == top else float("inf")
            for other in variations(here):
                if other in self.found or self._is_slower(other, worst):
                    continue
                if allows(space, other) is None:
                    with suppress(ScheduleError):  # does not fit a scratchpad
                        self.consider(other)

    def _is_slower(self, schedule: Schedule, time_s: float) -> bool:
        """Whether the arithmetic of a schedule alone takes longer."""
        if self.objective != "time":
            return False
        steps = compute_steps(self.problem, schedule, nested_units(self.arch)).promised
        return steps > time_s * self.rate * (1 + 1e-12)

    # Bounds -----------------------------------------------------------------

    def body(
        self,
        level: Level,
        chains: tuple[tuple[int, ...], ...] | None = None,
        share_bytes: int | None = None,
        *,
        is_bound: bool = False,
    ) -> Body:
        """Find the best body of a level, inside outer extents if given."""
        is_cache = level.kind == "cache"
        room = room_of(self.problem, level)
        if share_bytes is not None:
            room = replace(room, shared_bytes=min(room.shared_bytes, share_bytes))
        tables = tables_for(self.problem, chains) if chains else None
        if is_bound and level not in self.shared[:1]:  # inside outer cuts, which may be uneven
            tables = with_least_pieces(with_least_halos(tables_for(self.problem)))
        if is_bound and _passes_writes(level):  # it reads at its visits, and writes at least once
            tables = tables or tables_for(self.problem)
            tables = replace(tables, weight=tables.element_bytes, constant=0)
        found = best_body(
            self.problem,
            room,
            tables=tables,
            is_guaranteed=self._is_guaranteed(level, is_bound=is_bound),
            halo_reuse=is_cache or level.halo_reuse,
            copies=2 if level.double_buffered and not is_cache else 1,
        )
        if found is None and share_bytes is not None:
            return self.body(level, chains)
        if found is None:
            found = self._single_points(level)
        self.nodes += found.nodes
        return found

    def _is_guaranteed(self, level: Level, *, is_bound: bool) -> bool:
        """Whether only guaranteed reuse counts.

        Not for bounds of levels that instances own: items end a run of loops
        early, and a shorter run has a smaller reuse window.
        """
        own = is_bound and self.unit is not None and not level.is_shared
        return level.kind == "cache" and self.value == "high" and not own

    def _single_points(self, level: Level) -> Body:
        if level.kind == "scratchpad":
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
            sharing = math.prod(size[dim] for dim in self.spatial if dim not in alone)
            at_once = min(self.instances, sharing) if level.is_shared else 1
            steps = -(-self.problem.macs // at_once) * tensor.element_bytes
            moved = once if any(axis.size is not None for axis in tensor.axes) else max(once, steps)
            total += moved
            if tensor.name == self.problem.output and not _passes_writes(level):
                total += moved - once
        return total

    def _bound_bytes(self, level: Level) -> int:
        if self.value != "high":  # only the promise has a closed form
            held = room_of(self.problem, level).held(self.problem)
            return sum(tensor_bytes(self.problem, tensor) for tensor in held)
        if level.name not in self.least:
            self.least[level.name] = self.body(level, is_bound=True)
        least = self.least[level.name].bytes
        if level.kind == "scratchpad":
            least = self._placed_bytes(level, least)
        if level.is_shared and level.kind == "cache" and not self._fits_at_once(level):
            least = min(least, self._unfitting_bytes(level))
        return least

    def _placed_bytes(self, level: Level, even: int) -> int:
        """Bound the traffic of a scratchpad, wherever tiles are placed."""
        if level.name not in self.placed:
            self.placed[level.name], nodes = least_placed_bytes(
                self.problem,
                room_of(self.problem, level),
                halo_reuse=level.halo_reuse,
                copies=2 if level.double_buffered else 1,
                below=even,
                passes_writes=_passes_writes(level),
            )
            self.nodes += nodes
        return self.placed[level.name]

    def _fits_at_once(self, level: Level) -> bool:
        """Whether a level has room for one point of each instance, whatever the points."""
        room = room_of(self.problem, level)
        many = self.instances if level.is_shared else 1
        return room.fits({t.name: many * t.element_bytes for t in room.held(self.problem)})

    def _level_s(self, level: Level) -> float:
        if not level.bandwidth_bytes_per_s:
            return 0.0
        return self._bound_bytes(level) / level.bandwidth_bytes_per_s

    def _compute_s(self) -> float:
        return -(-self.problem.macs // self.instances) / self.rate

    def _energy_floor(self) -> float:
        total = self.problem.macs * (self.arch.compute.energy_pj_per_mac or 0.0)
        for outer, level in zip(self.arch.levels, self.arch.caches, strict=False):
            both = (outer.energy_pj_per_byte or 0.0) + (level.energy_pj_per_byte or 0.0)
            total += self._bound_bytes(level) * both
        return total

    def _time_floor(self) -> float:
        """Bound time; inner levels' traffic only where it may matter."""
        known = self.shared if self.unit else self.arch.caches
        return max([self._compute_s(), *(self._level_s(level) for level in known)])

    def _floor(self) -> float:
        if self.objective == "dram_bytes":
            return self._bound_bytes(self.arch.caches[0])
        if self.objective == "time":
            return self._time_floor()
        energy = self._energy_floor()
        return energy if self.objective == "energy" else energy * self._time_floor()

    # Schedules ---------------------------------------------------------------

    def _place_tiles(self, floor: float) -> None:
        """Place tiles one by one: in the best nest for that, and in the best ones found.

        Where only the time is least already, that may save bytes.
        """
        is_bytes = self.objective == "dram_bytes"
        if not self.has_scratchpads or (is_bytes and self.best <= floor):
            return
        level = self.arch.caches[0]
        if level.kind == "scratchpad" and (self.unit is None or is_bytes):
            found = best_placement(
                self.problem,
                room_of(self.problem, level),
                halo_reuse=level.halo_reuse,
                copies=2 if level.double_buffered else 1,
                below=int(self.best) if is_bytes and self.found else NO_INCUMBENT,
            )
            if found is not None:
                self.nodes += found.nodes
                self._score(found.schedule(level.name))
        if is_bytes and self.best <= floor:
            return
        for schedule, _ in self.distinct()[:MAX_PLACED]:
            self._score(with_best_places(self.problem, schedule, self.arch))

    def _try_memory_first(self) -> None:
        """Build from the memory inward: each level's best body in the last one's."""
        blocks: list[Block] = []
        chains: list[Extents] = []
        for level in self.shared:
            body = self.least.get(level.name) if not chains else None
            body = body or self.body(level, self._chains(chains))
            blocks.append(Block(tuple(reversed(body.inward)), body.extents))
            chains.append(dict(body.extents))
        if not self.unit:
            self.consider(compose(self.problem, blocks))
            return
        region = chains[-1] if chains else self.problem.size
        for items in self._items_inside(region):
            cut = dict(region)
            cut.update({dim: min(extent, cut[dim]) for dim, extent in items.extents})
            self._spread(blocks, chains, cut, any_order=True)
        # One unit alone shares nothing twice; or not even two points fit at once.
        if self.objective != "time" or not self.found:
            self._spread(blocks, chains, dict(region), any_order=True)

    def _items_inside(self, region: Extents) -> tuple[Items, ...]:
        """Cut one list's region into items, as if it were the whole problem."""
        sizes = tuple((dim, region[dim]) for dim in self.problem.dims)
        part = replace(self.problem, sizes=sizes)
        items, nodes = best_items(part, self.spatial, self._pace(0.0))
        self.nodes += nodes
        return items

    def _pace(self, floor_s: float) -> Pace:
        bandwidth = self.private[0].bandwidth_bytes_per_s if self.private else None
        if self.value != "high":
            bandwidth = None
        return Pace(self.instances, self.rate, bandwidth or float("inf"), floor_s)

    def _chains(self, outer: list[Extents]) -> tuple[tuple[int, ...], ...] | None:
        if not outer:
            return None
        return tuple(tuple(extents[dim] for extents in outer) for dim in self.problem.dims)

    def _spread(
        self,
        blocks: list[Block],
        chains: list[Extents],
        cut: Extents,
        *,
        any_order: bool = False,
    ) -> None:
        """Give items to instances in the best order; inside, each level's best body."""
        region = chains[-1] if chains else self.problem.size
        trips = {
            dim: -(-region[dim] // cut[dim]) for dim in self.problem.dims if cut[dim] < region[dim]
        }
        extents = tuple((dim, cut[dim]) for dim in trips)
        for inner in self._inside([*chains, cut]):
            orders = [tuple(trips)] if any_order else distinct_orders(trips, self.instances)
            made = [
                compose(self.problem, [*blocks, Block(order, extents, self.unit), *inner])
                for order in orders
            ]
            if len(made) > 1:
                made.sort(key=lambda schedule: (self._memory_bytes(schedule), str(schedule)))
            self.consider(made[0])

    def _inside(self, outer: list[Extents]) -> list[list[Block]]:
        """Build the loops inside an item: each level's best body in the last one's.

        Instances in lock-step share the level outside, so besides the best
        body there is the best of those that fit there all at once.
        """
        shares: list[int | None] = [None]
        if self.shared and self.private:
            usable = self.shared[-1].usable_bytes or 0
            own = self.private[0].usable_bytes or 0
            if usable < own * self.instances:
                shares.append(usable // self.instances)
        found: list[list[Block]] = []
        for share in shares:
            chains, blocks = list(outer), []
            for level in self.private:
                body = self.body(level, self._chains(chains), share)
                blocks.append(Block(tuple(reversed(body.inward)), body.extents))
                chains.append(dict(body.extents))
            if blocks not in found:
                found.append(blocks)
        return found

    def _memory_bytes(self, schedule: Schedule) -> int:
        if not self.shared:
            return 0
        level = self.shared[0]
        view = view_of(
            self.problem, schedule, instances=instances_inside(self.arch, level),
            own_units=own_units(self.arch, level),
        )  # fmt: skip
        return visits_bytes(self.problem, promised_visits(view, room_of(self.problem, level)))

    # Time, from the items outward ---------------------------------------------

    def _items_first(self, floor: float) -> float:
        """Build from the items outward until their bound meets the best time.

        Returns a lower bound on the time of every schedule of the space.
        """
        pace = self._pace(floor)
        items, nodes = best_items(self.problem, self.spatial, pace)
        self.nodes += nodes
        for chosen in items:
            self._from_items(chosen)
        if self.best <= items[0].least_s:
            return self.best
        self._try_memory_first()
        if self.best <= items[0].least_s:
            return self.best
        return self._close(pace, items[0].least_s)

    def _close(self, pace: Pace, least: float) -> float:
        """Exclude every other cut into items, or build it; bound what is left."""
        if self.private:  # cheap, and often the end of it
            pace = replace(
                pace, floor_s=max(pace.floor_s, *(self._level_s(level) for level in self.private))
            )
            if self.best <= pace.floor_s:
                return self.best
        settled: set[tuple[tuple[str, int], ...]] = set()
        reached, tried, unsettled = least, 0, float("inf")
        for widening in WIDENINGS:
            limit = min(self.best, least * widening)
            rest, nodes = best_items(
                self.problem, self.spatial, pace, below_s=limit, collect=MAX_OPEN
            )
            self.nodes += nodes
            if len(rest) >= MAX_OPEN:
                break
            for chosen in rest:
                if chosen.extents + chosen.listed in settled or chosen.least_s >= self.best:
                    continue
                settled.add(chosen.extents + chosen.listed)
                floor = max(chosen.least_s, self._private_floor(chosen))
                if floor < self.best:
                    floor = max(floor, self._refined_floor(chosen, pace))
                if floor < self.best and tried < MAX_TRIED:
                    tried += 1
                    self._from_items(chosen)
                unsettled = min(unsettled, floor)
            reached = limit
            if reached >= self.best:
                break
        return min(unsettled, max(reached, least), self.best)

    def _private_floor(self, items: Items) -> float:
        """Bound the inner traffic of all schedules with as many pieces."""
        level = self.private[0] if self.private else None
        if level is None or not level.bandwidth_bytes_per_s or self.value != "high":
            return 0.0
        if not self._fits_at_once(level) or _passes_writes(level) or level.kind == "scratchpad":
            return self._level_s(level)
        pieces = tuple(sorted(items.pieces))
        if pieces not in self.private_floors:
            self.private_floors[pieces] = self._least_private_s(level, pieces)
        least = self.private_floors[pieces]
        return self.best if least is None else least

    def _least_private_s(self, level: Level, pieces: tuple[tuple[str, int], ...]) -> float | None:
        """Seconds of the least inner traffic with so many pieces; None: not below the best."""
        bandwidth = level.bandwidth_bytes_per_s or float("inf")
        is_cache = level.kind == "cache"
        found = best_body(
            self.problem,
            room_of(self.problem, level),
            tables=relaxed_tables(self.problem, dict(pieces)),
            is_guaranteed=self._is_guaranteed(level, is_bound=True),
            halo_reuse=is_cache or level.halo_reuse,
            copies=2 if level.double_buffered and not is_cache else 1,
            below=int(self.best * bandwidth) + 1,
        )
        if found is None:
            return None
        self.nodes += found.nodes
        return found.bytes / bandwidth

    def _refined_floor(self, items: Items, pace: Pace) -> float:
        """Bound all schedules with as many pieces by looking at each way to cut."""
        size = self.problem.size
        if any(size[dim] > MAX_REFINED for dim, many in items.pieces if many > 1):
            return 0.0
        least, nodes = refined_items(self.problem, items, pace, below_s=self.best)
        self.nodes += nodes
        return self.best if least is None else least

    def _from_items(self, items: Items) -> None:
        size = self.problem.size
        cut = {**size, **dict(items.extents)}
        listed = dict(items.listed)
        if listed:
            block = Block(tuple(listed), tuple(listed.items()))
            self._spread([block], [{**size, **listed}], cut)
        else:
            self._spread([], [], cut)
        if self.best > items.least_s:
            self._lists_in_memory_order(cut)

    def _lists_in_memory_order(self, cut: Extents) -> None:
        """Cut whole items into lists whose data stay in the shared level."""
        if not self.shared:
            return
        candidates = tuple(
            _multiples(size, cut[dim]) if cut[dim] < size else trip_classes((size,))
            for dim, size in self.problem.sizes
        )
        body = best_body(
            self.problem,
            room_of(self.problem, self.shared[0]),
            tables=tables_for(self.problem, candidates=candidates),
            is_guaranteed=self.value == "high",
        )
        if body is None:
            return
        self.nodes += body.nodes
        region = dict(body.extents)
        inside = {dim: min(extent, region[dim]) for dim, extent in cut.items()}
        self._spread([Block(tuple(reversed(body.inward)), body.extents)], [region], inside)


def _passes_writes(level: Level) -> bool:
    """Whether a level writes what the level inside it writes, however much it keeps."""
    return level.write_policy == "through" and level.accumulate == "level"


def _multiples(size: int, extent: int) -> tuple[int, ...]:
    whole = -(-size // extent)
    found = {min(size, extent * many) for many in trip_classes((whole,))}
    return tuple(sorted(found | {size}, reverse=True))


def distinct_orders(trips: Extents, instances: int) -> Iterator[tuple[str, ...]]:
    """List the orders of spatial loops that lead to different waves.

    Examples
    --------
    >>> list(distinct_orders({"M": 4, "N": 2}, 8))
    [('M', 'N')]
    """
    seen = set()
    for order in permutations(trips):
        taken = list(zip(order, at_once([trips[dim] for dim in order], instances), strict=True))
        after = tuple((dim, now) for dim, now in taken if now < trips[dim])
        key = (after, frozenset(taken))
        if key not in seen:
            seen.add(key)
            yield order


def exact_search(space: Space, *, objective: Objective, value: Value, top: int) -> Result:
    """Search exactly; see `loopsched.search`."""
    if not space.constraints.is_free:
        from loopsched.scheduler.constrained import constrained_search

        return constrained_search(space, objective=objective, value=value, top=top)
    searcher = Searcher(space.problem, space.arch, objective, value, space.spatial)
    floor, proven = searcher.run()
    if not proven and space.size() <= MAX_LISTED:
        proven = searcher.run_all(space, floor)
    schedule, evaluation = searcher.ranked()[0]
    behind: list[tuple[Schedule, Evaluation]] = []
    if top > 1:
        searcher.look_around(space, top)
        last = rank(evaluation, objective, value)
        behind = [pair for pair in searcher.distinct() if rank(pair[1], objective, value) > last]
    best = objective_value(evaluation, objective, value)
    return Result(
        space.problem, space.arch, objective, "exact", schedule, evaluation,
        Certificate(proven, best if proven else floor, best, searcher.nodes, space),
        tuple(Scored(s, e) for s, e in behind[: top - 1]),
    )  # fmt: skip
