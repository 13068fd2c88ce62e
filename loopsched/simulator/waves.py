"""Items of work on several instances: waves of them, in lock-step.

Adjacent spatial loops of one unit make a list of items, which instances take
``n`` at a time.  In a wave every item makes one iteration of its own loops
before any makes the next.  Units may be nested: an item of one is then shared
out among instances of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from loopsched.base.arrays import Flags, Ids, Ints
from loopsched.nests.nest import Schedule
from loopsched.simulator._walk import Items, fill_group
from loopsched.simulator.trace import CHUNK, Memory, loops_of, walk_of

Loops = list[tuple[str, int, int]]


@dataclass(frozen=True)
class Run:
    """Temporal loops, then the spatial loops of one unit inside them.

    Parameters
    ----------
    outside : list of (dim, extent, step)
    unit : str
    items : list of (dim, extent, step)
    instances : int
        That take items of one list.
    """

    outside: Loops
    unit: str
    items: Loops
    instances: int


@dataclass(frozen=True)
class Group:
    """Items that are at work together, in the order in which they take turns.

    Parameters
    ----------
    start, length : array, a row an item
        Region of each dimension.
    path : array
        Which instance each item is on, counted over all units of the schedule.
    """

    start: Ints
    length: Ints
    path: Ints

    def __len__(self) -> int:
        return len(self.path)

    def only(self, which: Ints | Flags) -> Group:
        """Keep some items, or put them in another order."""
        return Group(self.start[which], self.length[which], self.path[which])


@dataclass(frozen=True)
class Step:
    """One event of a schedule's execution.

    Parameters
    ----------
    group : Group or None
        Items that walk the innermost loops now.
    ended : int or None
        Number of the run whose wave is at its end.
    """

    group: Group | None
    ended: int | None = None


def runs_of(schedule: Schedule, instances: Mapping[str, int]) -> tuple[tuple[Run, ...], Loops]:
    """Take a schedule apart at its spatial loops; what is left is inside all of them.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> nest = parse_schedule("M:8@SM N:8 K:8 M:2", gemm(m=8, n=8, k=8))
    >>> runs, inside = runs_of(nest, {"SM": 3})
    >>> [(run.unit, run.items, run.instances) for run in runs]
    [('SM', [('M', 8, 2)], 3)]
    >>> inside
    [('N', 8, 1), ('K', 8, 1), ('M', 2, 1)]
    """
    runs: list[Run] = []
    outside: Loops = []
    before = None
    for loop, one in zip(schedule.loops, loops_of(schedule), strict=True):
        if loop.unit is None or loop.unit not in instances:
            outside.append(one)
            before = None
        elif loop.unit == before:
            runs[-1].items.append(one)
        else:
            runs.append(Run(outside, loop.unit, [one], instances[loop.unit]))
            outside, before = [], loop.unit
    return tuple(runs), outside


class Waves:
    """Walks a schedule whose spatial loops run on several instances.

    Parameters
    ----------
    memory : Memory
    schedule : Schedule
    instances : mapping of unit to int
        Instances of each unit inside one of the next outer unit; loops of
        other units are taken as sequential.

    Attributes
    ----------
    accesses : array
        Accesses of each tensor so far.

    Examples
    --------
    Two instances share an accumulation; then one computes the last row.

    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=3, n=1, k=2)
    >>> memory = Memory.of(problem, None, None)
    >>> walker = Waves(memory, parse_schedule("M:3@SM K:2 N:1", problem), {"SM": 2})
    >>> [ids.tolist() for ids in walker.chunks()]
    [[0, 6, 8, 2, 6, 9, 1, 7, 8, 3, 7, 9], [4, 6, 10, 5, 7, 10]]
    """

    def __init__(self, memory: Memory, schedule: Schedule, instances: Mapping[str, int]) -> None:
        self.memory = memory
        self.dims = memory.problem.dims
        self.runs, self.inside = runs_of(schedule, instances)
        self.accesses = np.zeros(len(memory.tensors), dtype=np.int64)

    def steps(self) -> Iterator[Step]:
        """Generate the groups of items in order, and the ends of waves."""
        sizes = np.array([[size for _, size in self.memory.problem.sizes]], dtype=np.int64)
        whole = Group(np.zeros_like(sizes), sizes, np.zeros(1, dtype=np.int64))
        yield from self._inside(0, whole)

    def _inside(self, number: int, group: Group) -> Iterator[Step]:
        if number == len(self.runs):
            yield Step(group)
            return
        run = self.runs[number]
        for part in self._iterations(run.outside, group):
            for wave in self._waves(run, part):
                yield from self._inside(number + 1, wave)
                yield Step(None, number)

    def _iterations(self, loops: Loops, group: Group) -> Iterator[Group]:
        """Go through temporal loops with all items at once, in lock-step."""
        if not loops:
            yield group
            return
        (dim, _, step), rest = loops[0], loops[1:]
        at = self.dims.index(dim)
        for begin in range(0, int(group.length[:, at].max()), step):
            active = group.only(group.length[:, at] > begin)
            active.start[:, at] += begin
            active.length[:, at] = (active.length[:, at] - begin).clip(max=step)
            yield from self._iterations(rest, active)

    def _waves(self, run: Run, group: Group) -> Iterator[Group]:
        if len(group) == 1 and len({dim for dim, _, _ in run.items}) == len(run.items):
            yield from self._waves_of_one(run, group)
            return
        items, parent = group, np.arange(len(group))
        for dim, _, step in run.items:
            at = self.dims.index(dim)
            trips = -(-items.length[:, at] // step)
            which = np.repeat(np.arange(len(items)), trips)
            begin = np.arange(len(which)) - np.repeat(np.cumsum(trips) - trips, trips)
            items, parent = items.only(which), parent[which]
            items.start[:, at] += begin * step
            items.length[:, at] = (items.length[:, at] - begin * step).clip(max=step)
        many = np.bincount(parent, minlength=len(group))
        number = np.arange(len(parent)) - np.repeat(np.cumsum(many) - many, many)
        wave = number // run.instances
        items.path[:] = items.path * run.instances + number % run.instances
        order = np.argsort(wave, kind="stable")  # by wave, then by the item outside
        ends = np.cumsum(np.bincount(wave))
        for first, stop in zip([0, *ends[:-1]], ends, strict=True):
            yield items.only(order[first:stop])

    def _waves_of_one(self, run: Run, group: Group) -> Iterator[Group]:
        """Cut one list into waves, of which only one is made at a time."""
        places = [self.dims.index(dim) for dim, _, _ in run.items]
        steps = [step for _, _, step in run.items]
        trips = [
            -(-int(group.length[0, at]) // step) for at, step in zip(places, steps, strict=True)
        ]
        n_items = int(np.prod(trips, dtype=object))
        for first in range(0, n_items, run.instances):
            number = np.arange(first, min(first + run.instances, n_items))
            wave = group.only(np.zeros(len(number), dtype=np.int64))
            wave.path[:] = wave.path * run.instances + np.arange(len(number))
            for at, step, many in reversed(list(zip(places, steps, trips, strict=True))):
                number, begin = np.divmod(number, many)
                wave.start[:, at] += begin * step
                wave.length[:, at] = (wave.length[:, at] - begin * step).clip(max=step)
            yield wave

    def walk(self, group: Group, size: int = CHUNK) -> Iterator[tuple[Ids, Ids]]:
        """Generate the accesses of a group, with the item that makes each."""
        memory = self.memory
        longest = dict(zip(self.dims, group.length.max(axis=0).tolist(), strict=True))
        dims, walk = walk_of(memory, self.inside, longest)
        moves = np.array([memory.move(dim) for dim in self.dims], dtype=np.int64)
        terms = [[c.get(dim, 0) for *_, c in memory.clips] for dim in self.dims]
        bends = np.array(terms, dtype=np.int64).reshape(len(self.dims), len(memory.clips))
        first = np.array([at for _, _, at, _ in memory.clips], dtype=np.int64)
        # Of the dimensions that differ between items: where in a tile a point is.
        uneven = [
            (len(dims) - 1 - dims[::-1].index(dim), at)
            for at, dim in enumerate(self.dims)
            if dim in dims and group.length[:, at].min() < longest[dim]
        ]
        together = Items(
            np.array(memory.origins, dtype=np.int64) + group.start @ moves,
            first + group.start @ bends,
            np.array([loop for loop, _ in uneven], dtype=np.int64),
            np.ascontiguousarray(group.length[:, [at for _, at in uneven]]),
        )
        state = np.zeros(2, dtype=np.int64)
        ids = np.empty(max(size, len(memory.tensors)), dtype=np.int32)
        items = np.empty(len(ids), dtype=np.int32)
        while not state[0]:
            n = fill_group(walk, together, state, self.accesses, ids, items)
            yield ids[:n], items[:n]

    def chunks(self, size: int = CHUNK) -> Iterator[Ids]:
        """Generate all accesses in order; each chunk is overwritten by the next."""
        for step in self.steps():
            if step.group is not None:
                for ids, _ in self.walk(step.group, size):
                    yield ids
