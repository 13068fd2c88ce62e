"""Search under constraints: everything where there is little, else from the best bodies.

A small space is scored in full.  In a large one schedules are built block by
block, each with the best body that the constraints leave it, and polished by
hill climbing.  The bound is that of the unconstrained space, which holds for
every part of it, or the least traffic of any body with the extents that are
left.  A result is proven only if it meets the bound or all were scored.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice
from math import prod

from loopsched.base.arrays import Floats, Ints
from loopsched.machines.levels import Level
from loopsched.models.machine import room_of
from loopsched.problems.problem import Tensor
from loopsched.scheduler.allowed import (
    Allowed,
    Choice,
    Place,
    allowed,
    check_not_empty,
    parts,
    tile_extents,
)
from loopsched.scheduler.body import Body, ClassRows, best_body, class_rows
from loopsched.scheduler.climbing import climb_from
from loopsched.scheduler.counting import every_choice, n_schedules
from loopsched.scheduler.effort import Budget, Watch
from loopsched.scheduler.exact import distinct_orders, free_bound
from loopsched.scheduler.goal import Goal
from loopsched.scheduler.item_bounds import least_item_s
from loopsched.scheduler.least import least_tables
from loopsched.scheduler.level_bounds import LevelBounds, keeps_of
from loopsched.scheduler.orders import OrderClass, Relevance, relevance
from loopsched.scheduler.precedence import allowed_classes
from loopsched.scheduler.ranking import Ranking
from loopsched.scheduler.result import Result
from loopsched.scheduler.space import Space
from loopsched.scheduler.tables import Tables, is_exhaustive, tables_for

MAX_SCORED = 4096
MAX_ITEMS = 6
MAX_ITEM_WAYS = 200_000
MAX_POLISH = 256
MAX_CANDIDATES = 512

Extents = dict[str, int]


def constrained_search(space: Space, goal: Goal, watch: Watch | None = None) -> Result:
    """Search a constrained space.

    Parameters
    ----------
    space : Space
    goal : Goal
    watch : Watch, optional
        What the work is charged to.

    Returns
    -------
    Result
        With ``proven`` only if every schedule of the space was scored or the
        best one meets a bound that holds for all of them.

    Raises
    ------
    EmptySpaceError
        If no schedule is left, naming the constraint that took the last.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import Constraints, space_of
    >>> point = Constraints(prefix="M:8 K:8 N:8 M:2 K:2 N:2")
    >>> space = space_of(gemm(m=8, n=8, k=8), buffer_arch(capacity_bytes=64), point)
    >>> found = constrained_search(space, Goal("dram_bytes"))
    >>> str(found.schedule), found.certificate.space_size, found.certificate.proven
    ('M:8 K:8 N:8 M:2 K:2 N:2', 1, True)
    """
    check_not_empty(space)
    watch = watch or Watch(Budget().of_exact())
    found = Ranking(space, goal, watch)
    builders = [Builder(allowed(part), found) for part in parts(space)]
    is_complete, floor = False, 0.0
    with watch.stopping():
        if n_schedules(space) <= MAX_SCORED:
            for limits in (builder.limits for builder in builders):
                for choice in every_choice(limits):
                    found.add(limits.schedule(choice))
            is_complete = True
        else:
            floor = free_bound(space, goal, watch)
            floor = max(floor, min(builder.floor() for builder in builders))
            for builder in builders:
                builder.climb(floor)
    if not found.best and not is_complete:  # ended before anything was scored
        limits = builders[0].limits
        found.add(limits.schedule(next(every_choice(limits))))
    nodes = sum(builder.nodes for builder in builders)
    return found.result(floor=floor, is_complete=is_complete, nodes=nodes)


@dataclass(frozen=True)
class Partial:
    """The outer blocks of a schedule.

    Parameters
    ----------
    chains : tuple of dict of str to int
        Extents inside each block.
    orders : tuple of tuple of str
    """

    chains: tuple[Extents, ...] = ()
    orders: tuple[tuple[str, ...], ...] = ()

    def grown(self, extents: Extents, order: tuple[str, ...]) -> Partial:
        """Add a block."""
        return Partial((*self.chains, extents), (*self.orders, order))


class Builder:
    """Builds schedules block by block from the best bodies that are allowed."""

    def __init__(self, limits: Allowed, found: Ranking) -> None:
        space = limits.space
        self.limits, self.found = limits, found
        self.problem, self.arch = space.problem, space.arch
        self.bounds = LevelBounds(space, found.goal.value, found.watch)
        self.counts = {slot.unit: count for slot, count in self.bounds.units}
        self.row = {dim: at for at, dim in enumerate(self.problem.dims)}
        self.nodes = 0
        self.best: Choice | None = None

    def consider(self, choice: Choice) -> None:
        """Score a choice and remember the best one."""
        before = self.found.best[0][:2] if self.found.best else None
        self.found.add(self.limits.schedule(choice))
        if self.found.best and self.found.best[0][:2] != before:
            self.best = choice

    def climb(self, floor: float) -> None:
        """Build schedules and polish the best one, until a bound is met."""
        found = self.found
        for choice in self.build():
            self.consider(choice)
            if found.least <= floor:
                return
        if self.best is not None:
            most = found.n_scored + MAX_POLISH
            climb_from(found, self.limits, self.best, random.Random(0), most)

    # Bounds ---------------------------------------------------------------------

    def floor(self) -> float:
        """Bound the objective by the least steps and traffic with the extents that are left."""
        steps_s = 0.0
        if self.found.goal.objective == "time":
            inner = self.bounds.private[0] if self.bounds.private else None
            bandwidth = (
                inner.bandwidth_bytes_per_s
                if inner and self.found.goal.value == "promised"
                else None
            )
            steps_s = least_item_s(
                self.limits,
                self.bounds.instances,
                self.bounds.rate,
                bandwidth or float("inf"),
            )
        return max(steps_s, self._traffic_floor())

    def _traffic_floor(self) -> float:
        if self.limits.space.constraints.tiles == "all" or self.found.goal.value != "promised":
            return 0.0
        for level in self.arch.caches:
            tables = self._least_tables(level)
            if tables is None:
                return 0.0
            body = self.bounds.least_body(level, tables)
            is_least = body is not None and body.is_least and is_exhaustive(self.problem)
            self.bounds.least[level.name] = body.bytes if body and is_least else 0
        floor = self.bounds.floor(self.found.goal.objective)
        if self.found.goal.objective == "time":
            floor = max(floor, *(self.bounds.level_s(level) for level in self.arch.caches))
        return floor

    def _least_tables(self, level: Level) -> Tables | None:
        """Tabulate the extents that any loop may give a body; None: too many."""
        candidates = []
        for dim, size in self.problem.sizes:
            known = {1, size, *map(int, tile_extents(self.limits.space.constraints.tiles, size))}
            if level.is_shared and dim in self.limits.space.spatial:  # a wave side by side
                known |= {
                    extent * many
                    for extent in tuple(known)
                    for many in range(1, min(self.bounds.instances, size // extent) + 1)
                }
            known = set(_by_trips(size, sorted(known)))
            if len(known) > MAX_CANDIDATES:
                return None
            candidates.append(tuple(sorted(known, reverse=True)))
        return least_tables(self.problem, candidates=tuple(candidates))

    def _body(
        self,
        level: Level,
        candidates: tuple[tuple[int, ...], ...],
        outer: tuple[Extents, ...],
        rows: ClassRows | None,
    ) -> Body | None:
        chains = tuple(tuple(one[dim] for one in outer) for dim in self.problem.dims)
        is_cache = level.kind == "cache"
        tables = tables_for(self.problem, chains if outer else None, candidates)
        body = best_body(
            self.problem,
            room_of(self.problem, level),
            keeps_of(level, is_guaranteed=self.found.goal.value == "promised"),
            tables=tables.with_whole_sweeps() if is_cache else tables,
            rows=rows,
            watch=self.found.watch,
        )
        self.nodes += body.nodes if body else 0
        return body

    # Schedules --------------------------------------------------------------------

    def build(self) -> Iterator[Choice]:
        """Build schedules: from the memory inward, and from the items outward."""
        yield from self._complete(Partial())
        units = [at for at, place in enumerate(self.limits.places) if place.unit]
        if not units:
            return
        unit = units[0]
        whole = self._uncut(unit)
        if whole is None:
            return
        yield from self._complete(whole)
        for items in self._items(whole):
            yield from self._complete(Partial(), items)

    def _uncut(self, upto: int) -> Partial | None:
        """Leave the outer blocks as large as they may be."""
        partial = Partial()
        for at in range(upto):
            steps = {dim: self._steps(partial, at, dim) for dim in self.problem.dims}
            extents = {dim: int(found[-1]) for dim, found in steps.items()}
            partial = partial.grown(extents, self._order(partial, at, extents, ()))
        return partial

    def _now(self, partial: Partial) -> Extents:
        return partial.chains[-1] if partial.chains else dict(self.problem.size)

    def _steps(self, partial: Partial, at: int, dim: str) -> Ints:
        return self.limits.steps(self.row[dim], at, self._now(partial)[dim])

    def _complete(self, partial: Partial, items: Extents | None = None) -> Iterator[Choice]:
        at = len(partial.chains)
        places = self.limits.places
        if at == len(places) - 1:
            last = dict.fromkeys(self.problem.dims, 1)
            done = partial.grown(last, self._order(partial, at, last, ()))
            chains = tuple(tuple(one[dim] for one in done.chains[:-1]) for dim in self.problem.dims)
            yield Choice(chains, done.orders)
        elif places[at].unit is None:
            yield from self._complete(self._level_block(partial, at, items), items)
        else:
            ways = self._items(partial) if items is None else [self._fitted(partial, at, items)]
            for extents in ways:
                for order in islice(self._spatial_orders(partial, at, extents), 8):
                    yield from self._complete(partial.grown(extents, order), items)

    def _level_block(self, partial: Partial, at: int, items: Extents | None) -> Partial:
        """Add the best block for a level."""
        place, now = self.limits.places[at], self._now(partial)
        is_outside = any(later.unit for later in self.limits.places[at + 1 :])
        candidates, must, may = [], [], []
        for dim in self.problem.dims:
            steps = [int(extent) for extent in self._steps(partial, at, dim)]
            if items is not None and is_outside:
                whole = [e for e in steps if e >= items[dim] and e % items[dim] == 0]
                steps = whole if whole else [e for e in steps if e >= items[dim]] or steps
            smaller = _by_trips(now[dim], [extent for extent in steps if extent < now[dim]])
            candidates.append((now[dim], *reversed(smaller)))
            if now[dim] not in steps:
                must.append(dim)
            if smaller:
                may.append(dim)
        rows = _rows(
            relevance(self.problem),
            self.problem.dims,
            tuple(may),
            tuple(must),
            tuple(sorted(self._inside(place).items())),
            self.arch.level(place.name).halo_reuse or self.arch.level(place.name).kind == "cache",
        )
        body = None
        if rows is not None:
            body = self._body(self.arch.level(place.name), tuple(candidates), partial.chains, rows)
        if body is None:
            extents = {dim: int(self._steps(partial, at, dim)[-1]) for dim in self.problem.dims}
            return partial.grown(extents, self._order(partial, at, extents, ()))
        extents = dict(body.extents)
        return partial.grown(extents, self._order(partial, at, extents, body.inward))

    def _inside(self, place: Place) -> dict[str, frozenset[str]]:
        """Find the precedence in a block; its leading loops are outside the rest."""
        found = {dim: inside - {*place.lead} for dim, inside in self.limits.inside.items()}
        for at, dim in enumerate(place.lead):
            found[dim] = found[dim] | (frozenset(self.problem.dims) - {*place.lead[: at + 1]})
        return found

    def _order(
        self, partial: Partial, at: int, extents: Extents, inward: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Order a block's loops: inward as wished, as far as the precedence lets."""
        now, inside = self._now(partial), self._inside(self.limits.places[at])
        wished = [*inward, *reversed(self.problem.dims)]
        rest = [d for d in dict.fromkeys(wished) if extents[d] < now[d]]
        order: list[str] = []
        while rest:
            inner = next(d for d in rest if not any(other in inside[d] for other in rest))
            order.append(inner)
            rest.remove(inner)
        return tuple(reversed(order))

    # Items --------------------------------------------------------------------------

    def _spatial_orders(
        self, partial: Partial, at: int, extents: Extents
    ) -> Iterator[tuple[str, ...]]:
        now, place = self._now(partial), self.limits.places[at]
        trips = {d: -(-now[d] // extents[d]) for d in self.problem.dims if extents[d] < now[d]}
        inside = self._inside(place)
        legal = [
            order
            for order in distinct_orders(trips, self.counts[place.unit])
            if not any(outer in inside[dim] for i, dim in enumerate(order) for outer in order[:i])
        ]
        yield from legal or [self._order(partial, at, extents, ())]

    def _fitted(self, partial: Partial, at: int, items: Extents) -> Extents:
        found = {}
        for dim in self.problem.dims:
            steps = self._steps(partial, at, dim)
            below = steps[steps <= items[dim]]
            found[dim] = int(below[-1] if len(below) else steps[0])
        return found

    def _items(self, partial: Partial) -> list[Extents]:
        """Choose item extents by compute steps and by what the items' data weigh."""
        import numpy as np

        at, now = len(partial.chains), self._now(partial)
        lists: list[list[int]] = []
        for dim in self.problem.dims:
            lists.append(_by_trips(now[dim], [int(e) for e in self._steps(partial, at, dim)]))
        while prod(len(found) for found in lists) > MAX_ITEM_WAYS:
            longest = max(lists, key=len)
            longest[:] = longest[::2]
        grids = np.meshgrid(*(np.array(found, dtype=np.float64) for found in lists), indexing="ij")
        item = {dim: grid.ravel() for dim, grid in zip(self.problem.dims, grids, strict=True)}
        pieces = [np.ceil(now[dim] / extent) for dim, extent in item.items()]
        n_items = np.prod(pieces, axis=0)
        n_lists = prod(-(-size // now[dim]) for dim, size in self.problem.sizes)
        waves = np.ceil(n_items / self.counts[self.limits.places[at].unit]) * n_lists
        seconds = waves * np.prod(list(item.values()), axis=0) / self.bounds.rate
        moved = n_items * n_lists * sum(_bytes(t, item) for t in self.problem.tensors)
        inner = self.bounds.private[0] if self.bounds.private else None
        bandwidth = (inner.bandwidth_bytes_per_s if inner else None) or float("inf")
        score = np.maximum(seconds, moved / bandwidth)
        ranked = np.lexsort((moved, score))[:MAX_ITEMS]
        return [{dim: int(extent[way]) for dim, extent in item.items()} for way in ranked]


def _bytes(tensor: Tensor, item: Mapping[str, Floats]) -> Floats | float:
    """Weigh the data of an item, roughly: windows as bounding boxes."""
    found: Floats | float = float(tensor.element_bytes)
    for axis in tensor.axes:
        found = found * (1 + sum(c * (item[dim] - 1) for dim, c in axis.terms))
    return found


def _by_trips(size: int, extents: list[int] | range) -> list[int]:
    """Keep the smallest extent for each trip count, smallest first."""
    found: dict[int, int] = {}
    for extent in extents:
        found.setdefault(-(-size // extent), extent)
    return sorted(found.values())


@lru_cache(maxsize=1024)
def _rows(
    tensors: Relevance,
    dims: tuple[str, ...],
    may: tuple[str, ...],
    must: tuple[str, ...],
    inside: tuple[tuple[str, frozenset[str]], ...],
    halo_reuse: bool,
) -> ClassRows | None:
    """List the order classes that are allowed, of every set of loops that is."""
    known = dict(inside)
    free = [dim for dim in may if dim not in must]
    chosen: list[tuple[tuple[str, ...], OrderClass]] = []
    for many in range(len(free) + 1):
        for extra in combinations(free, many):
            active = tuple(dim for dim in dims if dim in must or dim in extra)
            chosen.extend((active, one) for one in allowed_classes(tensors, active, known))
    return class_rows(dims, len(tensors), chosen, halo_reuse) if chosen else None
