"""Exact search: bounds from each resource alone, joined until they meet.

Every resource gives a bound that holds for all schedules of the space: the
least traffic across each boundary (`level_bounds`), and the least time of any cut into
work items (`items`, `piece_bounds`).  Schedules are built to reach the bounds; where the best
one does, it is optimal, and the certificate says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, permutations
from random import Random

from loopsched.base.errors import ConstraintError, EmptySpaceError, LoopschedError, ScheduleError
from loopsched.machines.levels import Level
from loopsched.models.buffer import QUICK, promised_visits
from loopsched.models.compute import compute_steps
from loopsched.models.machine import nested_units, room_of, sights
from loopsched.models.reuse import fit_cut, steady_visits, visits_bytes
from loopsched.models.score import Evaluation, evaluate
from loopsched.models.view import View, at_once, view_of
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import tensor_bytes
from loopsched.scheduler.allowed import allowed, allows, free_space
from loopsched.scheduler.arrays import Start, array_starts
from loopsched.scheduler.blocks import Block, compose
from loopsched.scheduler.body import NO_INCUMBENT, Body, Keeps, best_body
from loopsched.scheduler.climbing import climb, climb_from
from loopsched.scheduler.counting import n_schedules
from loopsched.scheduler.effort import COUNTING, SCORING, Budget, Watch
from loopsched.scheduler.enumerate import schedules
from loopsched.scheduler.goal import Goal, Objective, Value
from loopsched.scheduler.items import Items, Pace, best_items, unlike_first
from loopsched.scheduler.level_bounds import MAX_BODY_NODES, LevelBounds, keeps_of
from loopsched.scheduler.piece_bounds import PieceBounds
from loopsched.scheduler.ranking import Ranking, is_whole
from loopsched.scheduler.result import Certificate, Result, Scored, objective_value, rank
from loopsched.scheduler.space import Space
from loopsched.scheduler.starts import Rough, starts, wave_blocks
from loopsched.scheduler.tables import is_exhaustive, multiples, tables_for, trip_classes
from loopsched.scheduler.variations import variations
from loopsched.scheduler.waves import aligned_orders, with_barriers

Extents = dict[str, int]

# Ways to cut items that are looked at one by one before the gap is left open.
MAX_OPEN = 8192
# Where bounds are not met: spaces that are listed, nests of them that are scored.
MAX_LISTED = 32768
MAX_SCORED = 8192
MAX_TRIED = 24
# Machines with units in units: schedules that are built, climbs from the best of them while
# the value is not near the bound, and schedules that a climb scores.
MAX_SPREADS = 120
MAX_CLIMBS = 10
MAX_POLISH = 200
MAX_CLIMBED = 2**20
NEAR = 1.01
# Nodes of one list of items before the best so far is taken.
MAX_ITEM_NODES = 2**22
# Utilisation below which ties are broken with a search of its own, and its nodes.
IDLE = 0.5
MAX_FILLING_NODES = 2**16
# Orders of spatial loops that are listed, and that are tried.
MAX_PERMUTATIONS = 5040
MAX_ORDERS = 64
# Iterations beyond which bounds take seconds.
LARGE = 2**44
# Textbook tiles; ways to order their waves that are listed, and scored; steps of polishing.
MAX_STARTS = 12
MAX_WAVES = 48
MAX_ORDERED = 6
MAX_POLISHED = 96
# Items that are also tried in long steps, and how long those are.
MAX_REPLAYED = 6
LONG_STEPS = (16, 32, 64)
# Schedules whose tiles are placed one by one, too, where that may be better.
MAX_PLACED = 8
WIDENINGS = (1.0001, 1.001, 1.01, 1.05, 1.2, float("inf"))


@dataclass
class Searcher:
    """One exact search in progress.

    Parameters
    ----------
    space : Space
    objective, value
        What is minimised.
    watch : Watch, optional
        What the work is charged to; it may end the search at any time.
    floor : float
        The lower bound that is known so far, for every schedule of the space.
    rival : float
        A value that another machine reaches: schedules that cannot be below are not sought.
    """

    space: Space
    objective: Objective
    value: Value
    watch: Watch = field(default_factory=Watch)
    floor: float = 0.0
    rival: float = float("inf")
    has_started: bool = False
    found: dict[Schedule, Evaluation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.problem, self.arch = self.space.problem, self.space.arch
        self.bounds = bounds = LevelBounds(self.space, self.value, self.watch)
        self.rate, self.units, self.instances = bounds.rate, bounds.units, bounds.instances
        self.spatial, self.is_array, self.unit = bounds.spatial, bounds.is_array, bounds.unit
        self.shared, self.private = bounds.shared, bounds.private
        self.best = float("inf")

    def run(self) -> tuple[float, bool]:
        """Search; returns the lower bound and whether it is met."""
        is_large = self._is_large()
        if is_large:
            self._raise_floor(self.bounds.known_floor(self.objective))
            if not self.is_array:
                self._try_starts()
        self._raise_floor(self.bounds.floor(self.objective))
        if self.floor >= self.rival:
            return self.floor, False
        if self.is_array:
            self._spread_units(self.floor)
        elif self.objective == "time" and self.unit:
            self._raise_floor(self._items_first(self.floor))
        else:
            self._try_memory_first()
            self._try_starts()
            self._try_inside_first()
        self._place_tiles(self.floor)
        if self.best > self.floor and not is_large:
            self._raise_floor(self.bounds.known_floor(self.objective))
        best = self.best
        return min(self.floor, best), best <= self.floor

    def fill_units(self) -> None:
        """Where data set the time and most units are idle, score the fastest items, too.

        They may be as fast as the few large ones that were found first.
        """
        if self.objective != "time" or self.unit is None or self.is_array:
            return
        best = self.first()[1]
        if best.bound_by == "compute" or best.compute_utilisation >= IDLE:
            return
        if not self.watch.can_spend(2 * MAX_FILLING_NODES):
            return
        pace = Pace(self.instances, self.rate, float("inf"))
        items, nodes = best_items(
            self.problem, self.spatial, pace, watch=self.watch, most=MAX_FILLING_NODES
        )
        self.bounds.nodes += nodes
        for chosen in items:
            cut = self._spread_items(chosen)
            if self.first()[1].compute_utilisation < IDLE:
                self._lists_in_memory_order(cut)

    def _is_large(self) -> bool:
        """Whether bounds take so long that schedules come first."""
        return math.prod(size for _, size in self.problem.sizes) > LARGE

    def _raise_floor(self, floor: float) -> None:
        """Note a lower bound that holds for every schedule of the space."""
        self.floor = max(self.floor, floor)
        self.watch.settle(self.best, self.floor)

    def run_all(self, space: Space, floor: float) -> bool:
        """Score every schedule of a small space; returns whether that was all."""
        nests = list(schedules(space))
        units = nested_units(self.arch)
        if self.objective == "time":  # most are slower for their compute time alone
            most = self.best * self.rate * (1 + 1e-12)
            nests = [n for n in nests if compute_steps(self.problem, n, units).promised <= most]
        if len(nests) > MAX_SCORED:
            return False
        for nest in nests:
            self.bounds.nodes += 1
            self.consider(nest)
            if self._worth(nest) <= floor:
                break
        return True

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
        if self._memory_view(schedule).is_aligned:
            return
        for other in islice(aligned_orders(schedule, self.unit, self.instances), MAX_ORDERS):
            self._score(other)
        with_barrier = with_barriers(self.problem, schedule, self.unit, self.instances)
        if with_barrier is not None:
            self._score(with_barrier)

    def _score(self, schedule: Schedule) -> None:
        # What runs at once may not fit into a scratchpad that instances share.
        with suppress(ScheduleError):
            if schedule not in self.found:
                if self.found:  # one schedule is scored whatever the budget
                    self.watch.spend(SCORING)
                found = evaluate(self.problem, schedule, self.arch, effort=QUICK)
                self.found[schedule] = found
                self.best = min(self.best, objective_value(found, self.objective, self.value))
                self.watch.settle(self.best, self.floor)

    def plain(self) -> None:
        """Score the nest as it is written, single points innermost."""
        size = self.problem.size
        ones = tuple((dim, 1) for dim in size)
        self._score(compose(self.problem, [Block(tuple(size), ones)]))
        if not self.found:
            raise EmptySpaceError(f"problem '{self.problem.name}': nothing fits {self.arch.name}")

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

    def first(self) -> tuple[Schedule, Evaluation]:
        """Find the best of the schedules found: the first of `ranked`."""
        ranks = [rank(each, self.objective, self.value) for each in self.found.values()]
        least = min(ranks)
        best = [pair for pair, at in zip(self.found.items(), ranks, strict=True) if at == least]
        return best[0] if len(best) == 1 else min(best, key=lambda pair: str(pair[0]))

    def distinct(self) -> list[tuple[Schedule, Evaluation]]:
        """List the schedules found, best first, one for each score."""
        first: dict[object, tuple[Schedule, Evaluation]] = {}
        for schedule, evaluation in self.ranked():
            first.setdefault(rank(evaluation, self.objective, self.value), (schedule, evaluation))
        return list(first.values())

    def look_around(self, space: Space, top: int) -> None:
        """Score what is one step away from the best ones, until enough are known."""
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
        self.watch.spend(COUNTING)
        steps = compute_steps(self.problem, schedule, nested_units(self.arch)).promised
        return steps > time_s * self.rate * (1 + 1e-12)

    # Schedules ---------------------------------------------------------------

    def _spread_units(self, floor: float) -> float:
        """Build spreads over nested units, then climb from the best, and from others."""
        starts: list[tuple[float, Start]] = []
        for start in islice(
            array_starts(self.space, self.units, self.bounds.best_inside), MAX_SPREADS
        ):
            self._score(start.schedule)
            starts.append((self._worth(start.schedule), start))
            if self.best <= floor:
                return floor
        starts = sorted((s for s in starts if s[0] < float("inf")), key=lambda pair: pair[0])
        if not starts or max(self.problem.size.values()) > MAX_CLIMBED:
            return floor
        found = Ranking(self.space, Goal(self.objective, value=self.value), self.watch)
        limits, rng = allowed(self.space), Random(0)
        try:
            for number, (_, start) in enumerate(starts[:MAX_CLIMBS]):
                if number and found.least <= floor * NEAR:
                    break
                samples = found.n_scored + (MAX_POLISH if number else 2 * MAX_POLISH)
                climb_from(found, limits, start.choice, rng, samples, floor)
            if found.least > floor * NEAR:
                climb(found, Random(0), found.n_scored + 2 * MAX_POLISH)
        finally:  # also where the budget ends it
            self.bounds.nodes += found.n_scored
            for _, _, schedule, evaluation in found.best:
                self.found[schedule] = evaluation
                self.best = min(self.best, found.least)
        return floor

    def _place_tiles(self, floor: float) -> None:
        """Place tiles one by one: in the best nest for that, and in the best ones found.

        Where only the time is least already, that may save bytes.
        """
        is_bytes = self.objective == "dram_bytes"
        if not self.arch.has_scratchpads or (is_bytes and self.best <= floor):
            return
        from loopsched.scheduler.placement import best_placement
        from loopsched.scheduler.tile_places import with_best_places

        level = self.arch.caches[0]
        if level.kind == "scratchpad" and (self.unit is None or is_bytes):
            found = best_placement(
                self.problem,
                room_of(self.problem, level),
                keeps_of(level),
                below=int(self.best) if is_bytes and self.found else NO_INCUMBENT,
            )
            if found is not None:
                self.bounds.nodes += found.nodes
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
            body = self.bounds.body(level, self._chains(chains))
            blocks.append(Block(tuple(reversed(body.inward)), body.extents))
            chains.append(dict(body.extents))
        if not self.unit:
            self.consider(compose(self.problem, blocks))
            return
        region = chains[-1] if chains else dict(self.problem.size)
        for items in self._items_inside(region):
            cut = dict(region)
            cut.update({dim: min(extent, cut[dim]) for dim, extent in items.extents})
            self._spread(blocks, chains, cut, any_order=True)
        # One unit alone shares nothing twice; or not even two points fit at once.
        if self.objective != "time" or not self.found:
            self._spread(blocks, chains, dict(region), any_order=True)

    def _try_inside_first(self) -> None:
        """Build from each inner level outward, in pieces of its best body, and polish.

        Memory first, an outer level may leave an inner one a region of a bad shape.
        """
        if self.unit or self.objective == "dram_bytes" or self.best <= self.floor:
            return
        for at in range(1, len(self.shared)):
            pieces = [dict(self.bounds.body(self.shared[at]).extents)]
            for level in reversed(self.shared[:at]):
                body = self._body_in_pieces(level, pieces[0])
                if body is None:
                    break
                pieces.insert(0, dict(body.extents))
            else:
                self._from_pieces(pieces)
        if len(self.shared) > 1:
            self._polish()

    def _body_in_pieces(self, level: Level, piece: Extents) -> Body | None:
        """Find the best body of a level in whole pieces of an inner one."""
        candidates = tuple(
            multiples(size, piece[dim]) if piece[dim] < size else (size,)
            for dim, size in self.problem.sizes
        )
        return self.bounds.best_inside(level, tables_for(self.problem, candidates=candidates))

    def _from_pieces(self, pieces: list[Extents]) -> None:
        """Build from the bodies of the outer levels, each in its best order."""
        blocks: list[Block] = []
        chains: list[Extents] = []
        for at, level in enumerate(self.shared):
            if at < len(pieces):
                fixed = tuple((pieces[at][dim],) for dim in self.problem.dims)
                tables = tables_for(self.problem, self._chains(chains), fixed)
                body = self.bounds.best_inside(level, tables)
            else:
                body = self.bounds.body(level, self._chains(chains))
            if body is None:
                return
            blocks.append(Block(tuple(reversed(body.inward)), body.extents))
            chains.append(dict(body.extents))
        self.consider(compose(self.problem, blocks))

    def _items_inside(self, region: Extents) -> tuple[Items, ...]:
        """Cut one list's region into items, as if it were the whole problem."""
        sizes = tuple((dim, region[dim]) for dim in self.problem.dims)
        part = replace(self.problem, sizes=sizes)
        items, nodes = best_items(
            part, self.spatial, self._pace(0.0), watch=self.watch, most=MAX_ITEM_NODES
        )
        self.bounds.nodes += nodes
        return items

    def _pace(self, floor_s: float) -> Pace:
        bandwidth = self.private[0].bandwidth_bytes_per_s if self.private else None
        if self.value != "promised":
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
            orders = [tuple(trips)]
            if not any_order:
                orders = list(islice(distinct_orders(trips, self.instances), MAX_ORDERS))
            made = [
                compose(self.problem, [*blocks, Block(order, extents, self.unit), *inner])
                for order in orders
            ]
            if len(made) > 1:
                self.watch.spend(COUNTING * len(made))
            self.consider(self._least_of(made))

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
                body = self.bounds.body(level, self._chains(chains), share)
                blocks.append(Block(tuple(reversed(body.inward)), body.extents))
                chains.append(dict(body.extents))
            if blocks not in found:
                found.append(blocks)
        return found

    def _least_of(self, made: list[Schedule]) -> Schedule:
        """Choose the schedule that moves least from memory, by its text among equals."""
        if len(made) == 1 or not self.shared:
            return min(made, key=str)
        room = room_of(self.problem, self.shared[0])
        once = sum(tensor_bytes(self.problem, tensor) for tensor in room.held(self.problem))
        best: tuple[int, Schedule] | None = None
        for schedule in sorted(made, key=str):
            view = self._memory_view(schedule)
            fit = fit_cut(view, room)
            if best is not None and fit is not None:
                steady = {
                    tensor.name: steady_visits(view, tensor, fit, slides=True)
                    for tensor in room.held(self.problem)
                }
                if visits_bytes(self.problem, steady) >= best[0]:  # it moves no less than that
                    continue
            moved = visits_bytes(self.problem, promised_visits(view, room, fit))
            if best is None or moved < best[0]:
                best = moved, schedule
            if best[0] <= once:  # no other moves less
                break
        return best[1] if best else made[0]

    def _memory_view(self, schedule: Schedule) -> View:
        """Look at a schedule from the outermost level, as its score does."""
        sight = sights(self.problem, self.arch, self.bounds.lanes)[0]
        own = sight.own_units
        return view_of(self.problem, schedule, instances=sight.instances, own_units=own)

    # Time, from the items outward ---------------------------------------------

    def _items_first(self, floor: float) -> float:
        """Build from the items outward until their bound meets the best time.

        Returns a lower bound on the time of every schedule of the space.
        """
        pace = self._pace(floor)
        items, nodes = best_items(
            self.problem, self.spatial, pace, watch=self.watch, most=MAX_ITEM_NODES
        )
        self.bounds.nodes += nodes
        is_least = nodes < MAX_ITEM_NODES and is_exhaustive(self.problem)
        least = items[0].least_s if is_least else floor
        self._raise_floor(least)
        for chosen in items:
            self._from_items(chosen)
        if self.best <= least:
            return self.best
        for chosen in items:
            self._in_long_steps(chosen)
        if self.best <= least:
            return self.best
        for chosen in items:
            self._in_waves({**self.problem.size, **dict(chosen.extents)}, dict(chosen.listed))
        if self.best <= least:
            return self.best
        self._try_starts()
        if self.best <= least:
            return self.best
        self._try_memory_first()
        if self.best <= least:
            return self.best
        return self._close(pace, least) if is_least else least

    def _try_starts(self) -> None:
        """Score what textbooks would do, so that nothing simple is better."""
        if self.best <= self.floor or self.unit is None or self.has_started:
            return
        if n_schedules(self.space) <= MAX_LISTED:  # all of it will be scored
            return
        self.has_started = True
        for cut in starts(self.problem, self.spatial, self._rough(), MAX_STARTS):
            self._in_waves({**self.problem.size, **cut})
            if self.best <= self.floor:
                return
        self._polish()

    def _rough(self) -> Rough:
        """What rough scores ask of the machine."""
        shared = self.shared[0] if self.shared else None
        inner = self.private[0] if self.private else None
        return Rough(
            self.instances,
            self.rate,
            (shared.bandwidth_bytes_per_s if shared else None) or float("inf"),
            (inner.bandwidth_bytes_per_s if inner else None) or float("inf"),
            (self.shared[-1].usable_bytes or 0) if self.shared else 0,
        )

    def _in_waves(self, cut: Extents, listed: Extents | None = None) -> None:
        """Give items to instances in waves that end with whole iterations."""
        if self.unit is None:
            return
        known = sorted(
            wave_blocks(self.problem, cut, self.unit, self.instances, listed),
            key=lambda pair: pair[1],
        )
        inner: list[list[Block]] = []
        tried = 0
        for blocks, _ in known[:MAX_WAVES]:
            if self._is_slower(compose(self.problem, blocks), self.best):
                continue
            inner = inner or self._inside([cut])
            for each in inner:
                self._score(compose(self.problem, [*blocks, *each]))
            tried += 1
            if tried >= MAX_ORDERED or self.best <= self.floor:
                return

    def _polish(self) -> None:
        """Move to better schedules one step away, while there are any."""
        here, left = None, MAX_POLISHED
        while self.found and left > 0 and self.best > self.floor:
            best = self.first()[0]
            if best == here:
                return
            here = best
            for other in variations(here):
                if other in self.found or self._is_slower(other, self.best):
                    continue
                if allows(self.space, other) is None:
                    left -= 1
                    self._score(other)

    def _close(self, pace: Pace, least: float) -> float:
        """Exclude every other cut into items, or build it; bound what is left."""
        if self.private:  # cheap, and often the end of it
            pace = replace(
                pace,
                floor_s=max(pace.floor_s, *(self.bounds.level_s(level) for level in self.private)),
            )
            if self.best <= pace.floor_s:
                return self.best
        self._raise_floor(min(self.best, pace.floor_s))
        settled: set[tuple[tuple[str, int], ...]] = set()
        pieces = PieceBounds(self.bounds)
        reached, tried, unsettled = least, 0, float("inf")
        for widening in WIDENINGS:
            limit = min(self.best, least * widening)
            rest, nodes = best_items(
                self.problem, self.spatial, pace, below_s=limit, collect=MAX_OPEN,
                watch=self.watch, most=MAX_ITEM_NODES,
            )  # fmt: skip
            self.bounds.nodes += nodes
            if len(rest) >= MAX_OPEN or nodes >= MAX_ITEM_NODES:
                break
            for chosen in unlike_first(rest):
                if chosen.extents + chosen.listed in settled or chosen.least_s >= self.best:
                    continue
                settled.add(chosen.extents + chosen.listed)
                floor = pieces.least_s(chosen, self.best)
                if floor < self.best and tried < MAX_TRIED:
                    tried += 1
                    self._from_items(chosen)
                    if self.best > floor and tried <= MAX_REPLAYED:
                        self._in_long_steps(chosen)
                    if self.best > floor:
                        cut = {**self.problem.size, **dict(chosen.extents)}
                        self._in_waves(cut, dict(chosen.listed))
                unsettled = min(unsettled, floor)
            reached = limit
            self._raise_floor(min(unsettled, max(reached, least), self.best))
            if reached >= self.best:
                break
        return min(unsettled, max(reached, least), self.best)

    def _from_items(self, items: Items) -> None:
        cut = self._spread_items(items)
        if self.best > items.least_s:
            self._lists_in_memory_order(cut)

    def _spread_items(self, items: Items) -> Extents:
        size = self.problem.size
        cut = {**size, **dict(items.extents)}
        listed = dict(items.listed)
        if listed:
            block = Block(tuple(listed), tuple(listed.items()))
            self._spread([block], [{**size, **listed}], cut)
        else:
            self._spread([], [], cut)
        return cut

    def _in_long_steps(self, items: Items) -> None:
        """Build items whose steps are long: few enough for a replay to vouch for them.

        Where waves run on, a promise rests on a replay, which can only follow so
        many steps; bodies with the least traffic have the shortest ones.
        """
        if not self.shared or len(self.private) != 1 or self.unit is None:
            return
        cut = {**self.problem.size, **dict(items.extents)}
        listed = dict(items.listed)
        around = {**self.problem.size, **listed}
        trips = {d: -(-around[d] // cut[d]) for d in around if cut[d] < around[d]}
        extents = tuple((dim, cut[dim]) for dim in trips)
        orders = [*islice(distinct_orders(trips, self.instances), MAX_ORDERED)]
        for length in LONG_STEPS:
            inner = self._long_body(cut, length)
            if inner is None:
                continue
            for order in orders:
                blocks = [Block(order, extents, self.unit), inner]
                for turned in [listed, dict(reversed(listed.items()))][: max(1, len(listed))]:
                    before = [Block(tuple(turned), tuple(listed.items()))] if listed else []
                    self._score(compose(self.problem, [*before, *blocks]))
                    if self.best <= items.least_s:
                        return

    def _long_body(self, cut: Extents, length: int) -> Block | None:
        """Find the best body of an item, in steps of a length along what is not shared."""
        candidates = []
        for dim, extent in cut.items():
            parts = range(1, 9) if dim in self.spatial else (1,)
            known = {-(-extent // many) for many in parts}
            if dim not in self.spatial and extent > length:
                known.add(length)
            candidates.append(tuple(sorted(known, reverse=True)))
        level = self.private[0]
        body = best_body(
            self.problem,
            room_of(self.problem, level),
            Keeps(level.kind == "cache"),
            tables=tables_for(self.problem, self._chains([cut]), tuple(candidates)),
            watch=self.watch,
            most=MAX_BODY_NODES,
        )
        if body is None or not body.is_least:
            return None
        return Block(tuple(reversed(body.inward)), body.extents)

    def _lists_in_memory_order(self, cut: Extents) -> None:
        """Cut whole items into lists whose data stay in the shared level."""
        if not self.shared:
            return
        candidates = tuple(
            multiples(size, cut[dim]) if cut[dim] < size else trip_classes((size,))
            for dim, size in self.problem.sizes
        )
        body = best_body(
            self.problem,
            room_of(self.problem, self.shared[0]),
            Keeps(self.value == "promised"),
            tables=tables_for(self.problem, candidates=candidates),
            watch=self.watch,
            most=MAX_BODY_NODES,
        )
        if body is None:
            return
        self.bounds.nodes += body.nodes
        region = dict(body.extents)
        inside = {dim: min(extent, region[dim]) for dim, extent in cut.items()}
        self._spread([Block(tuple(reversed(body.inward)), body.extents)], [region], inside)


def distinct_orders(trips: Extents, instances: int) -> Iterator[tuple[str, ...]]:
    """List the orders of spatial loops that lead to different waves.

    Examples
    --------
    >>> list(distinct_orders({"M": 4, "N": 2}, 8))
    [('M', 'N')]
    """
    seen = set()
    for order in islice(permutations(trips), MAX_PERMUTATIONS):
        taken = list(zip(order, at_once([trips[dim] for dim in order], instances), strict=True))
        after = tuple((dim, now) for dim, now in taken if now < trips[dim])
        key = (after, frozenset(taken))
        if key not in seen:
            seen.add(key)
            yield order


def quick_bound(space: Space, goal: Goal) -> float:
    """Bound the objective of every schedule of a space, in no time."""
    return LevelBounds(space, goal.value).known_floor(goal.objective)


def exact_search(
    space: Space, goal: Goal, watch: Watch | None = None, *, rival: float = float("inf")
) -> Result:
    """Search a space without constraints exactly; `Searcher` says what ``rival`` is."""
    objective, value, top = goal.objective, goal.value, goal.top
    watch = watch or Watch(Budget().of_exact())
    searcher = Searcher(space, objective, value, watch, rival=rival)
    proven = listed = False
    with watch.stopping():
        _, proven = searcher.run()
        if not proven and searcher.floor < rival and n_schedules(space) <= MAX_LISTED:
            listed = searcher.run_all(space, searcher.floor)
        if searcher.found and searcher.floor < rival:
            searcher.fill_units()
    if not searcher.found:  # ended before anything was scored
        searcher.plain()
    schedule, evaluation = searcher.first()
    if top > 1 and not watch.is_over:
        with watch.stopping():
            searcher.look_around(space, top)
    best = objective_value(evaluation, objective, value)
    proven = proven or best <= searcher.floor or (listed and is_whole(space))
    behind = []
    if top > 1:
        last = rank(evaluation, objective, value)
        behind = [pair for pair in searcher.distinct() if rank(pair[1], objective, value) > last]
    return Result(
        space.problem, space.arch, objective, "exact", schedule, evaluation,
        Certificate(
            proven, best if proven else searcher.floor, best, searcher.bounds.nodes, space, listed,
            watch.effort(),
        ),
        tuple(Scored(s, e) for s, e in behind[: top - 1]),
    )  # fmt: skip


def free_bound(space: Space, goal: Goal, watch: Watch) -> float:
    """Find a bound for a constrained space: the exact one of the free space.

    0 where the exact search has none.  It uses what is left of the watch's budget.
    """
    inner = watch.rest()
    try:
        found = exact_search(free_space(space), replace(goal, top=1), inner)
    except ConstraintError:
        raise
    except LoopschedError:
        return 0.0
    if inner.why == "interrupt":
        raise KeyboardInterrupt
    watch.spend(inner.spent)
    return found.certificate.lower_bound
