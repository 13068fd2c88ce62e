"""Literal oracles: slow walks that know nothing of the library's formulas.

Everything here visits iteration points one by one and keeps sets of elements.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem, Tensor

Position = tuple[int, ...]
Point = dict[str, int]
Element = tuple[str, Position]


@dataclass(frozen=True)
class Moved:
    """Bytes that each tensor moved."""

    reads: dict[str, int]
    writes: dict[str, int]

    def of(self, tensor: str) -> int:
        return self.reads[tensor] + self.writes[tensor]

    @property
    def total(self) -> int:
        return sum(self.reads.values()) + sum(self.writes.values())


def walk(problem: Problem, schedule: Schedule) -> Iterator[tuple[Position, Point]]:
    """Every iteration point in order, with the iteration number of each loop."""
    loops = schedule.loops
    inner_extents = [
        next((later.extent for later in loops[i + 1 :] if later.dim == loop.dim), 1)
        for i, loop in enumerate(loops)
    ]

    def descend(
        i: int, trip: Position, low: Point, high: Point
    ) -> Iterator[tuple[Position, Point]]:
        if i == len(loops):
            yield trip, dict(low)
            return
        dim, step = loops[i].dim, inner_extents[i]
        begin, end = low[dim], high[dim]
        for number, at in enumerate(range(begin, end, step)):
            low[dim], high[dim] = at, min(at + step, end)
            yield from descend(i + 1, (*trip, number), low, high)
        low[dim], high[dim] = begin, end

    yield from descend(0, (), dict.fromkeys(problem.dims, 0), dict(problem.sizes))


def element(tensor: Tensor, point: Point) -> Element | None:
    """The stored element that a point touches; None where it is padding."""
    place = []
    for axis in tensor.axes:
        at = axis.offset + sum(coefficient * point[dim] for dim, coefficient in axis.terms)
        if axis.size is not None and not 0 <= at < axis.size:
            return None
        place.append(at)
    return tensor.name, tuple(place)


def touched(problem: Problem, points: Iterable[Point]) -> dict[str, set[Element]]:
    """Distinct elements of each tensor that some points touch."""
    found: dict[str, set[Element]] = {tensor.name: set() for tensor in problem.tensors}
    for point in points:
        for tensor in problem.tensors:
            one = element(tensor, point)
            if one is not None:
                found[tensor.name].add(one)
    return found


def compulsory(problem: Problem) -> dict[str, int]:
    """Bytes of each tensor that the whole problem touches."""
    nest = Schedule.of(Loop(dim, size) for dim, size in problem.sizes)
    whole = touched(problem, (point for _, point in walk(problem, nest)))
    return {t.name: len(whole[t.name]) * t.element_bytes for t in problem.tensors}


class Lru:
    """A fully associative cache of bytes that evicts the least recently used element.

    The output is read and written in place, written back when evicted, and its
    first touch brings nothing in.  `flush` writes back what is left.
    """

    def __init__(self, problem: Problem, capacity_bytes: int) -> None:
        self.problem = problem
        self.capacity_bytes = capacity_bytes
        self.size = {tensor.name: tensor.element_bytes for tensor in problem.tensors}
        inputs = [t for t in problem.tensors if t.name != problem.output]
        self.order = (*inputs, problem.output_tensor)
        self.reads = dict.fromkeys(self.size, 0)
        self.writes = dict.fromkeys(self.size, 0)
        self.written: set[Element] = set()
        self.held: OrderedDict[Element, None] = OrderedDict()
        self.used = 0

    def run(self, points: Iterable[Point]) -> None:
        for point in points:
            for tensor in self.order:
                one = element(tensor, point)
                if one is not None:
                    self._touch(one)

    def _touch(self, one: Element) -> None:
        if one in self.held:
            self.held.move_to_end(one)
            return
        name = one[0]
        if name != self.problem.output or one in self.written:
            self.reads[name] += self.size[name]
        if name == self.problem.output:
            self.written.add(one)
        self.held[one] = None
        self.used += self.size[name]
        while self.used > self.capacity_bytes and self.held:
            self._evict()

    def _evict(self) -> None:
        name = self.held.popitem(last=False)[0][0]
        self.used -= self.size[name]
        if name == self.problem.output:
            self.writes[name] += self.size[name]

    def flush(self) -> None:
        while self.held:
            self._evict()

    @property
    def moved(self) -> Moved:
        return Moved(self.reads, self.writes)


def simulate(problem: Problem, schedule: Schedule, capacity_bytes: int) -> Moved:
    """One cache under the memory, all loops taken in sequence."""
    cache = Lru(problem, capacity_bytes)
    cache.run(point for _, point in walk(problem, schedule))
    cache.flush()
    return cache.moved


def simulate_private(
    problem: Problem, schedule: Schedule, capacity_bytes: int, units: Sequence[str]
) -> Moved:
    """A cache of each instance of some units: each work item starts and ends cold."""
    last = max((i for i, loop in enumerate(schedule.loops) if loop.unit in units), default=-1)
    cache = Lru(problem, capacity_bytes)
    for _, item in groupby(walk(problem, schedule), key=lambda step: step[0][: last + 1]):
        cache.run(point for _, point in item)
        cache.flush()
    return cache.moved


def fit(
    problem: Problem, schedule: Schedule, fits: Mapping[str, int] | int
) -> tuple[int, list[tuple[Position, dict[str, set[Element]]]]] | None:
    """First loop position whose largest body fits, and all visits to that body, in order."""
    steps = list(walk(problem, schedule))
    for position in range(len(schedule.loops) + 1):
        visits = [
            (key, touched(problem, (point for _, point in visit)))
            for key, visit in groupby(steps, key=lambda step: step[0][:position])
        ]
        largest = {
            t.name: t.element_bytes * max(len(sets[t.name]) for _, sets in visits)
            for t in problem.tensors
        }
        if isinstance(fits, int):
            is_good = sum(largest.values()) <= fits
        else:
            is_good = all(largest[name] <= room for name, room in fits.items())
        if is_good:
            return position, visits
    return None


def explicit(
    problem: Problem,
    schedule: Schedule,
    room: Mapping[str, int] | int,
    *,
    halo_reuse: bool = True,
    keeps: str = "tile",
) -> Moved | None:
    """A scratchpad into which the tiles of the first body that fits are placed.

    A tile stays until a loop that indexes the tensor goes on.  Of those, the
    innermost that goes on at all keeps the halo, if the tensor's window slides along
    it: all that this sweep has loaded (``keeps="sweep"``), or only what the
    last tile shares with the next (``keeps="tile"``).
    """
    found = fit(problem, schedule, room)
    if found is None:
        return None
    position, visits = found
    moves = [
        max(trip[i] for trip, _ in walk(problem, schedule)) > 0 for i in range(len(schedule.loops))
    ]
    reads, writes = {}, {}
    for tensor in problem.tensors:
        name, size = tensor.name, tensor.element_bytes
        relevant = [
            i for i in range(position) if moves[i] and tensor.is_indexed_by(schedule.loops[i].dim)
        ]
        inner = relevant[-1] if relevant else -1
        dim = schedule.loops[inner].dim
        slides = (
            halo_reuse
            and inner >= 0
            and any(len(axis.terms) > 1 and dim in axis.dims for axis in tensor.axes)
        )
        held: set[Element] = set()
        seen: set[Element] = set()
        brought = fetched = 0
        before: Position | None = None
        for key, sets in visits:
            now, need = key[: inner + 1], sets[name]
            if now == before:
                continue
            is_sweep = slides and before is not None and now[:-1] == before[:-1]
            fresh = need - held if is_sweep else need
            held = held | need if is_sweep and keeps == "sweep" else set(need)
            brought += len(fresh)
            fetched += len(fresh & seen if name == problem.output else fresh)
            seen |= fresh
            before = now
        reads[name] = fetched * size
        writes[name] = brought * size if name == problem.output else 0
    return Moved(reads, writes)


@dataclass(frozen=True)
class Item:
    """A work item: its place in the list, and its steps.

    A step has the iteration numbers of the loops inside the item, and a point.
    """

    trip: Position
    steps: list[tuple[Position, Point]]

    @property
    def points(self) -> list[Point]:
        return [point for _, point in self.steps]


def item_lists(problem: Problem, schedule: Schedule, unit: str) -> list[list[Item]]:
    """Lists of work items that one unit's spatial loops make.

    Each iteration of the loops outside the spatial ones is a list of its own.
    """
    at = [i for i, loop in enumerate(schedule.loops) if loop.unit == unit]
    first, inside = at[0], at[-1] + 1
    return [
        [
            Item(trip[first:], [(inner[inside:], point) for inner, point in steps])
            for trip, steps in groupby(of_list, key=lambda step: step[0][:inside])
        ]
        for _, of_list in groupby(walk(problem, schedule), key=lambda step: step[0][:first])
    ]


def joined(schedule: Schedule) -> Schedule:
    """Leave out loops of a list that split a dimension where their neighbour further out could."""
    loops = [loop for loop, trip in zip(schedule.loops, schedule.trips, strict=True) if trip > 1]
    steps = Schedule(tuple(loops)).steps
    passing = tuple(place for place in schedule.places if place.position < 0)
    for at in range(len(loops) - 1):
        for end in range(at + 1, len(loops)):
            run = loops[at : end + 1]
            if not all(
                loop.unit and (loop.dim, loop.unit) == (run[0].dim, run[0].unit) for loop in run
            ):
                break
            if all(step % steps[end] == 0 for step in steps[at:end]):
                return joined(Schedule((*loops[: at + 1], *loops[end + 1 :]), passing))
    return Schedule(tuple(loops), passing)


def waves(items: Sequence[Item], n: int) -> list[list[Item]]:
    """Cut a list of items into waves of ``n``."""
    return [list(items[i : i + n]) for i in range(0, len(items), n)]


def aligned_waves(schedule: Schedule, items: Sequence[Item], n: int) -> list[list[Item]]:
    """Cut a list into waves that never cross the loop at which the instances run out.

    The inner loops of a full list fill the instances; the next loop runs as
    many of its iterations at once as still have room, the outer ones none.
    """
    trips = [
        trip for loop, trip in zip(schedule.loops, schedule.trips, strict=True) if loop.is_spatial
    ]
    at_once, free = [], n
    for trip in reversed(trips):
        at_once.insert(0, min(trip, free))
        free = free // trip if free >= trip else 1
    found: dict[Position, list[Item]] = {}
    for item in items:
        block = tuple(number // many for number, many in zip(item.trip, at_once, strict=True))
        found.setdefault(block, []).append(item)
    return list(found.values())


def lock_step(wave: Sequence[Item]) -> list[Point]:
    """Points of a wave, loop iteration by iteration, each on all items in turn."""
    steps = sorted(
        ((trip, number, point) for number, item in enumerate(wave) for trip, point in item.steps),
        key=lambda step: step[:2],
    )
    return [point for _, _, point in steps]


def units_in_lock_step(
    problem: Problem, schedule: Schedule, instances: Mapping[str, int]
) -> list[Point]:
    """Points of units inside units, all lists side by side run wave by wave.

    Time is a tuple: of temporal loops the iteration, of lists the wave.  At one
    time, instances take turns, the outermost unit's slowest.
    """
    loops = schedule.loops

    def order(i: int, part: list[tuple[Position, Point]]) -> list[tuple[Position, Position, Point]]:
        if i == len(loops):
            return [((), (), point) for _, point in part]
        end = i + 1
        while loops[i].unit and end < len(loops) and loops[end].unit == loops[i].unit:
            end += 1
        n = instances[str(loops[i].unit)] if loops[i].unit else 0
        found = []
        for number, (_, group) in enumerate(groupby(part, key=lambda step: step[0][i:end])):
            now, who = ((number // n,), (number % n,)) if n else ((number,), ())
            for time, turn, point in order(end, list(group)):
                found.append(((*now, *time), (*who, *turn), point))
        return found

    steps = sorted(order(0, list(walk(problem, schedule))), key=lambda step: step[:2])
    return [point for _, _, point in steps]


@dataclass(frozen=True)
class Steps:
    """Steps of a machine, assigned literally.

    ``waves``: every wave is as long as the longest item of its *list*;
    ``barriers``: as its own longest item; ``rounds``: item i goes to instance
    i modulo n, without a barrier; ``greedy``: to whoever is free first.
    """

    waves: int
    barriers: int
    rounds: int
    greedy: int


def assign(problem: Problem, schedule: Schedule, instances: Mapping[str, int]) -> Steps:
    """Hand out the items of all spatial loops, units inside units."""
    loops = schedule.loops
    steps = list(walk(problem, schedule))

    def time(i: int, part: list[tuple[Position, Point]]) -> Steps:
        if not any(loop.is_spatial for loop in loops[i:]):
            return Steps(*[len(part)] * 4)
        if not loops[i].is_spatial:
            of_trips = [time(i + 1, list(g)) for _, g in groupby(part, key=lambda s: s[0][i])]
            return Steps(
                sum(t.waves for t in of_trips),
                sum(t.barriers for t in of_trips),
                sum(t.rounds for t in of_trips),
                sum(t.greedy for t in of_trips),
            )
        end = i
        while end < len(loops) and loops[end].unit == loops[i].unit:
            end += 1
        items = [time(end, list(g)) for _, g in groupby(part, key=lambda s: s[0][i:end])]
        n = instances[str(loops[i].unit)]
        n_waves = -(-len(items) // n)
        rounds, greedy = [0] * n, [0] * n
        for number, item in enumerate(items):
            rounds[number % n] += item.rounds
            greedy[greedy.index(min(greedy))] += item.greedy
        return Steps(
            n_waves * max(item.waves for item in items),
            sum(max(item.barriers for item in items[k : k + n]) for k in range(0, len(items), n)),
            max(rounds),
            max(greedy),
        )

    return time(0, steps)
