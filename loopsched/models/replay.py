"""Replays of a nest, body by body, through a cache that evicts the least recently used.

A *visit* is one body, or in a wave the bodies of all instances at one step.  What
a visit touches is known; the order within it is not.  Two visits of an element
bound the data touched between its two uses from both sides:

* both visits and all between them hold no less.  If that fits, the element is
  certainly still there;
* the visits strictly between them hold no more.  If that, with the element, does
  not fit, it has certainly been evicted.

Where bodies are single points, order is known, and both bounds are the truth.
So deeper bodies cost more and say more; `replay` goes as deep as its budget
allows, or until the bounds meet.  Between them, ``point`` is what a cache does
that holds whole tiles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.models import _along_kernels as along_kernels
from loopsched.models import _replay_kernels as kernels
from loopsched.models.asked import ALWAYS
from loopsched.models.cells import MOST_ENTRIES, AxisCells, axis_cells
from loopsched.problems.footprint import footprint_elems, is_clipped, n_segments, segments
from loopsched.problems.problem import Axis, Problem, Tensor

if TYPE_CHECKING:
    from loopsched.models.traffic import Room
    from loopsched.models.view import InnerLoop, View

CHUNK = 2**16
MOST_ITEMS = 256
MOST_CELLS = 2**26
MOST_KNOWN = 4096


@dataclass(frozen=True, slots=True)
class Replayed:
    """Elements of each tensor that are brought in: at least, probably, at most.

    Parameters
    ----------
    low, point : dict of str to int
    anew : dict of str to int
        At most, by visits that touch them for the first time in the visit.
    fits : bool
        Whether each visit alone fits, so that it brings nothing in twice.
    """

    low: dict[str, int]
    point: dict[str, int]
    anew: dict[str, int]
    fits: bool

    @property
    def high(self) -> dict[str, int] | None:
        """At most; None where some visit alone did not fit."""
        return self.anew if self.fits else None

    def is_closed(self) -> bool:
        """Whether the bounds meet."""
        return self.low == self.high

    def __add__(self, other: Replayed) -> Replayed:
        """Add what two replays bring in."""
        return Replayed(
            {name: count + other.low[name] for name, count in self.low.items()},
            {name: count + other.point[name] for name, count in self.point.items()},
            {name: count + other.anew[name] for name, count in self.anew.items()},
            self.fits and other.fits,
        )

    def times(self, factor: int) -> Replayed:
        """Repeat a replay."""
        low, point, anew = (
            {name: factor * count for name, count in each.items()}
            for each in (self.low, self.point, self.anew)
        )
        return Replayed(low, point, anew, self.fits)


@dataclass(frozen=True, slots=True)
class Item:
    """A region that a buffer works on from a cold start, and how many are like it."""

    start: Mapping[str, int]
    length: Mapping[str, int]
    count: int


def replay(
    view: View,
    room: Room,
    budget: int,
    enough: Mapping[str, int] | None = None,
    inmost: int = ALWAYS,
) -> Replayed | None:
    """Replay a nest as deeply as a budget allows.

    Parameters
    ----------
    view : View
    room : Room
    budget : int
        Accesses of cells to follow, about.
    enough : mapping of str to int, optional
        Elements of each tensor; stop where ``high`` is not above them, and leave
        ``point`` out.
    inmost : int, optional
        Loop position inside which no body begins; then none is a single point either.

    Returns
    -------
    Replayed or None
        None if not even the outermost bodies can be followed.
    """
    nest = _nest_of(view)
    if nest is None:
        return None
    items, pools = nest.items, pools_of(view.problem, room)
    found: Replayed | None = None
    spent = 0
    for depth in nest.depths():
        is_point = depth == nest.deepest
        if inmost < ALWAYS and depth and (is_point or nest.loops[depth - 1].position >= inmost):
            break
        if depth < nest.deepest and not nest.may_fit(depth, room):
            continue
        cost = sum(nest.boxes(item, depth) for item in items) * len(view.problem.tensors)
        if cost > budget:
            break
        if found is not None and cost < 2 * spent and depth < nest.deepest:
            continue  # hardly finer than the last
        key = ("replay", depth, room, budget, enough is None)
        if key not in view.known:  # what a cache is asked for only says which depths count
            view.known[key] = replay_at(
                nest, items, depth, pools, budget, is_point=enough is None, stops=enough is not None
            )
        one: Replayed | None = view.known[key]
        if one is None:
            break
        spent = cost
        found = one if found is None else narrower(found, one)
        if found.is_closed() or (enough and found.high and is_within(found.high, enough)):
            break
    return found


def _nest_of(view: View) -> Nest | None:
    if "nest" not in view.known:
        items = items_of(view)
        view.known["nest"] = None if items is None else Nest(view, items)
    found: Nest | None = view.known["nest"]
    return found


def is_within(high: Mapping[str, int], enough: Mapping[str, int]) -> bool:
    """Whether no tensor brings in more than enough."""
    return all(count <= enough[name] for name, count in high.items())


def narrower(coarse: Replayed, fine: Replayed) -> Replayed:
    """Join what two replays of a nest say; the finer one has the better ``point``."""
    low = {name: max(count, fine.low[name]) for name, count in coarse.low.items()}
    anew = fine.anew if fine.fits or not coarse.fits else coarse.anew
    if coarse.fits and fine.fits:
        anew = {name: min(count, fine.anew[name]) for name, count in coarse.anew.items()}
    return Replayed(low, fine.point, anew, coarse.fits or fine.fits)


def replay_at(
    nest: Nest,
    items: Sequence[Item],
    depth: int,
    pools: Sequence[Pool],
    budget: int,
    *,
    is_point: bool,
    stops: bool = False,
) -> Replayed | None:
    """Replay all items, taken apart to one depth; None if that takes much more than the budget.

    A replay that ``stops`` ends at the first visit that does not fit: then its counts say too
    little, and nothing is brought in at most.
    """
    total: Replayed | None = None
    for item in items:
        parts: list[Replayed] = []
        for pool in pools:
            one = nest.run(item, depth, pool, budget, is_point=is_point, stops=stops)
            if one is None:
                return None
            parts.append(one)
        low = {name: count for part in parts for name, count in part.low.items()}
        point = {name: count for part in parts for name, count in part.point.items()}
        anew = {name: count for part in parts for name, count in part.anew.items()}
        fits = all(part.fits for part in parts)
        whole = Replayed(low, point, anew, fits).times(item.count)
        total = whole if total is None else total + whole
    return total


@dataclass(frozen=True, slots=True)
class Pool:
    """Tensors that share room, inputs first."""

    tensors: tuple[Tensor, ...]
    capacity_bytes: int


def pools_of(problem: Problem, room: Room) -> list[Pool]:
    """Put the tensors that share room together."""
    own = dict(room.own_bytes)
    held = sorted(room.held(problem), key=lambda tensor: tensor.name == problem.output)
    shared = tuple(tensor for tensor in held if tensor.name not in own)
    pools = [Pool((t,), own[t.name]) for t in held if t.name in own]
    return [Pool(shared, room.shared_bytes), *pools] if shared else pools


def items_of(view: View) -> list[Item] | None:
    """Find the kinds of items that a buffer starts cold; None if they are too many.

    Items of equal lengths differ only by what the padding clips of them.
    """
    problem = view.problem
    clipped = [axis for t in problem.tensors for axis in t.axes if is_clipped(axis, problem.size)]
    joint: list[set[str]] = []
    for dims in [{dim} for dim in problem.dims] + [set(axis.dims) for axis in clipped]:
        touching = [one for one in joint if one & dims]
        joint = [one for one in joint if not one & dims] + [dims.union(*touching)]
    kinds: list[list[Item]] = []
    for dims in joint:
        ordered = [dim for dim in problem.dims if dim in dims]
        is_placed = any(dims & set(axis.dims) for axis in clipped)
        pieces = [view.item_pieces(dim, is_placed=is_placed) for dim in ordered]
        kinds.append(_kinds(ordered, pieces, [a for a in clipped if set(a.dims) & dims]))
    if math.prod(len(kind) for kind in kinds) > MOST_ITEMS:
        return None
    return [
        Item(
            {dim: at for part in parts for dim, at in part.start.items()},
            {dim: size for part in parts for dim, size in part.length.items()},
            math.prod(part.count for part in parts),
        )
        for parts in itertools.product(*kinds)
    ]


def _kinds(
    dims: Sequence[str], pieces: Sequence[Mapping[tuple[int, int], int]], clipped: Sequence[Axis]
) -> list[Item]:
    found: dict[tuple[int, ...], Item] = {}
    for combination in itertools.product(*(part.items() for part in pieces)):
        start = {dim: at for dim, ((at, _), _) in zip(dims, combination, strict=True)}
        length = {dim: size for dim, ((_, size), _) in zip(dims, combination, strict=True)}
        key = [*length.values()]
        for axis in clipped:
            first = axis.offset + sum(c * start[dim] for dim, c in axis.terms)
            last = first + sum(c * (length[dim] - 1) for dim, c in axis.terms)
            key += [max(0, -first), max(0, last - (axis.size or 0) + 1)]
        count = math.prod(many for _, many in combination)
        before = found.get(tuple(key))
        found[tuple(key)] = Item(start, length, count + (before.count if before else 0))
    return list(found.values())


class Nest:
    """The loops inside an item, in the form that the kernel walks."""

    def __init__(self, view: View, items: Sequence[Item]) -> None:
        self.items = items
        self.problem = view.problem
        self.dims = view.problem.dims
        self.loops = view.inner_loops
        self.instances = view.instances
        self._whole = [
            (t, all(axis.is_plain for axis in t.axes))
            for t in view.problem.tensors
            if not any(axis.size for axis in t.axes)
        ]
        longest = {dim: max([item.length[dim] for item in items]) for dim in self.dims}
        now: dict[str, tuple[int, ...]] = dict.fromkeys(self.dims, ())
        self._inside: list[tuple[dict[str, tuple[int, ...]], dict[str, int]]] = [(now, longest)]
        for loop in self.loops:
            now = now | {loop.dim: (*now[loop.dim], loop.extent)}
            self._inside.append((now, self._inside[-1][1] | {loop.dim: loop.extent}))

    @property
    def deepest(self) -> int:
        """Number of loops."""
        return len(self.loops)

    def depths(self) -> Iterator[int]:
        """Numbers of loops outside a body, fewest first; lists of items are not taken apart."""
        for depth in range(len(self.loops) + 1):
            if 0 < depth < len(self.loops):
                group = self.loops[depth].group
                if group is not None and self.loops[depth - 1].group == group:
                    continue
            yield depth

    def chain(self, depth: int, dim: str) -> tuple[int, ...]:
        """Extents of the pieces that the first loops make of a dimension."""
        return self._inside[min(depth, self.deepest)][0][dim]

    def may_fit(self, depth: int, room: Room) -> bool:
        """Whether one body alone fits."""
        extents = self._inside[min(depth, self.deepest)][1]
        needs = {}
        for tensor, is_plain in self._whole:
            if tensor.name not in room.passing:
                elems = (
                    math.prod([extents[axis.dims[0]] for axis in tensor.axes])
                    if is_plain
                    else footprint_elems(tensor, {}, extents)
                )
                needs[tensor.name] = elems * tensor.element_bytes
        return room.fits(needs)

    def boxes(self, item: Item, depth: int) -> int:
        """Count the bodies of an item."""
        chains, length = self._inside[min(depth, self.deepest)][0], item.length
        return math.prod([_n_segments(length[dim], chains[dim]) for dim in self.dims])

    def program(self, item: Item, loops: Sequence[InnerLoop]) -> _Program:
        """Write the loops outside a body down as numbers."""
        size = dict(item.length)
        rows: list[list[int]] = []
        groups: list[list[int]] = []
        n_items: list[int] = []
        group_at: dict[int, int] = {}
        for i, loop in enumerate(loops):
            trips = -(-size[loop.dim] // loop.extent)
            later = tuple(after.extent for after in loops[i + 1 :] if after.dim == loop.dim)
            size[loop.dim] = min(size[loop.dim], loop.extent)
            number = -1
            listed = tuple(
                after.extent
                for after in loops[i + 1 :]
                if after.dim == loop.dim and after.group == loop.group
            )
            if loop.group is not None:
                if loop.group not in group_at:
                    group_at[loop.group] = len(groups)
                    groups.append([i, i, self.instances.get(loop.unit or "", 1), 1, 1])
                    n_items.append(1)
                number = group_at[loop.group]
                listed_before = [each.dim for each in loops[groups[number][0] : i]]
                groups[number][1] = i + 1
                groups[number][4] &= loop.dim not in listed_before
                n_items[number] *= trips
            rows.append(
                [
                    self.dims.index(loop.dim),
                    loop.extent,
                    _n_segments(loop.extent, later),
                    trips if number < 0 else 1,
                    number,
                    _n_segments(loop.extent, listed),
                ]
            )
        picks = 1
        for group, items in zip(reversed(groups), reversed(n_items), strict=True):
            group[3] = picks
            group[2] = max(1, min(group[2], items))
            picks *= group[2]
            rows[group[0]][3] = -(-items // group[2])  # waves
        visits = math.prod(row[3] for row in rows)
        return _Program(
            np.array(rows, np.int64).reshape(-1, 6),
            np.array(groups, np.int64).reshape(-1, 5),
            picks,
            visits,
        )

    def cells(
        self, item: Item, loops: Sequence[InnerLoop], tensor: Tensor
    ) -> list[AxisCells] | None:
        """Cells of each axis of a tensor; None if they are too many."""
        found: list[AxisCells] = []
        for axis in tensor.axes:
            region = tuple(
                (item.start[dim] if axis.size is not None else 0, item.length[dim])
                for dim in axis.dims
            )
            chains = tuple(
                tuple(loop.extent for loop in loops if loop.dim == dim) for dim in axis.dims
            )
            if (
                math.prod(_n_segments(r[1], c) for r, c in zip(region, chains, strict=True))
                > MOST_ENTRIES
            ):
                return None
            one = axis_cells(axis, region, chains)
            if one is None:
                return None
            found.append(one)
        return found

    def run(
        self, item: Item, depth: int, pool: Pool, budget: int, *, is_point: bool, stops: bool
    ) -> Replayed | None:
        """Replay one item, or look up what the same loops brought in before.

        Schedules that are alike often ask for the same replay: which tiles an item is cut
        into says nothing to a buffer that holds whole items.  None if it takes much more
        than the budget.
        """
        is_exact = depth == self.deepest
        loops = [
            (loop.dim, loop.extent, loop.group, self.instances.get(loop.unit or "", 1))
            for loop in self.loops[:depth]
        ]
        region = [(dim, item.start[dim], item.length[dim]) for dim in self.dims]
        key = (*loops, *region, pool, budget, is_exact, is_point, stops)
        if key not in _known:
            if len(_known) == MOST_KNOWN:
                _known.clear()
            _known[key] = self._counts(item, depth, pool, budget, is_exact or is_point, stops)
        found = _known[key]
        if found is None:
            return None
        names = [tensor.name for tensor in pool.tensors]
        low, point, anew = (dict(zip(names, part, strict=True)) for part in found[0])
        return Replayed(low, point, anew, found[1])

    def _counts(
        self, item: Item, depth: int, pool: Pool, budget: int, has_point: bool, stops: bool
    ) -> _Counts | None:
        """Replay one item: what is brought in at least, probably, at most; whether visits fit."""
        first, end = (depth, depth) if has_point or not stops else self._steps(depth, pool)
        loops = [*self.loops[:first], *self.loops[end:depth]]
        steps = {loop.dim: 1 for loop in self.loops[first:end]}  # unit by unit
        one_step = Item(item.start, {**item.length, **steps}, item.count)
        program = self.program(one_step, loops)
        cells = [self.cells(one_step, loops, tensor) for tensor in pool.tensors]
        per_box = 0.0
        for one in cells:
            if one is None:
                return None
            per_box += math.prod(len(c.columns) / max(1, len(c.rows) - 1) for c in one)
        n_steps, length = 1, dict(item.length)
        for loop in self.loops[first:end]:
            n_steps *= -(-length[loop.dim] // loop.extent)
            length[loop.dim] = loop.extent
        cost = max(n_steps * program.visits * program.picks / 4, self.boxes(item, depth) * per_box)
        walk = _walk(self.dims, program, one_step, pool, [one for one in cells if one is not None])
        if cost > 2 * budget or walk.n_cells > MOST_CELLS:
            return None
        if first == end:
            return _counted(walk, has_point, depth < self.deepest, stops)
        dim = self.loops[first].dim
        pieces = [piece for _, piece in segments(item.length[dim], self.chain(depth, dim))]
        return _counted_along(walk, pieces, [dim in tensor.dims for tensor in pool.tensors], first)

    def _steps(self, depth: int, pool: Pool) -> tuple[int, int]:
        """Find loops that make steps that all waves go through along one dimension.

        These are inside of all lists, along a dimension that nothing else cuts or slides along;
        where several are, those of the most steps.  If none are, they end where they begin.
        """
        loops, found, most = self.loops[:depth], (depth, depth), 1
        lists = [i for i, loop in enumerate(loops) if loop.group is not None]
        first = lists[-1] + 1 if lists else 0
        while first < depth:
            dim, end = loops[first].dim, first + 1
            while end < depth and loops[end].dim == dim:
                end += 1
            axes = (axis for t in pool.tensors for axis in t.axes if dim in axis.dims)
            n_steps = -(-self.problem.size[dim] // loops[end - 1].extent)
            is_cut = any(loop.dim == dim for loop in (*loops[:first], *loops[end:]))
            if n_steps > most and not is_cut and all(axis.is_plain for axis in axes):
                found, most = (first, end), n_steps
            first = end
        return found


_n_segments = lru_cache(maxsize=4096)(n_segments)  # those of a few lengths, many times
_Counts = tuple[list[list[int]], bool]
_known: dict[object, _Counts | None] = {}


@dataclass(frozen=True, slots=True)
class _Program:
    """Loops and lists of items for the kernel, and how far they go."""

    loops: Ints
    groups: Ints
    picks: int
    visits: int


@dataclass(frozen=True, slots=True)
class _Walk:
    """What the kernel walks, and how much that is."""

    tables: kernels.Tables
    picks: int
    visits: int
    n_cells: int
    n_boxes: int


def _walk(
    dims: Sequence[str],
    program: _Program,
    item: Item,
    pool: Pool,
    cells: Sequence[Sequence[AxisCells]],
) -> _Walk:
    widths = sorted({tensor.element_bytes for tensor in pool.tensors})
    tensors: list[list[int]] = []
    axes: list[list[int]] = []
    axis_dims: list[list[int]] = []
    rows: list[Ints] = []
    columns: list[Ints] = []
    weights: list[Ints] = []
    n_rows = n_columns = n_cells = n_boxes = 0
    for tensor, of_tensor in zip(pool.tensors, cells, strict=True):
        first = len(axes)
        factor = boxes = 1
        for axis, one in zip(tensor.axes, of_tensor, strict=True):
            begin = len(axis_dims)
            axis_dims += [
                [dims.index(dim), stride]
                for dim, stride in zip(axis.dims, one.strides, strict=True)
            ]
            axes.append([begin, len(axis_dims), n_rows, boxes])
            boxes *= len(one.rows) - 1
            rows.append(one.rows + n_columns)
            columns.append(one.columns * factor)
            weights.append(one.weights[one.columns])
            factor *= max(1, len(one.weights))
            n_rows += len(one.rows)
            n_columns += len(one.columns)
        width = tensor.element_bytes
        tensors.append([first, len(axes), width, n_cells, 1 + widths.index(width), n_boxes])
        n_cells += factor
        n_boxes += boxes
    empty = np.zeros(0, np.int64)
    limits = [pool.capacity_bytes, *(pool.capacity_bytes - width for width in widths)]
    tables = kernels.Tables(
        program.loops,
        program.groups,
        np.array([item.length[dim] for dim in dims], np.int64),
        np.array(tensors, np.int64).reshape(-1, 6),
        np.array(axes, np.int64).reshape(-1, 4),
        np.array(axis_dims, np.int64).reshape(-1, 2),
        np.concatenate([empty, *rows]),
        np.concatenate([empty, *columns]),
        np.concatenate([empty, *weights]),
        np.array(limits, np.int64),
    )
    return _Walk(tables, program.picks, program.visits, n_cells, n_boxes)


def _counted(walk: _Walk, has_point: bool, has_bounds: bool, stops: bool) -> _Counts:
    tables = walk.tables
    state = np.zeros(kernels.WINDOW + 2 * len(tables.limits), np.int64)
    state[kernels.HEAD] = state[kernels.TAIL] = -1
    is_once = not has_point and walk.n_boxes <= MOST_CELLS  # an LRU cache counts each use
    memory = kernels.Memory(
        digits=np.zeros(len(tables.loops), np.int64),
        state=state,
        links=np.full((walk.n_cells if has_point else 1, 2), -2, np.int64),
        cell_sizes=np.zeros(walk.n_cells if has_point else 1, np.int64),
        last=np.full(walk.n_cells if has_bounds else 1, -1, np.int64),
        at=np.zeros(walk.visits + 1 if has_bounds else 1, np.int64),
        done=np.full(walk.n_boxes if is_once else 1, -1, np.int64),
        found=np.zeros((len(tables.tensors), 3), np.int64),
    )
    while not state[kernels.FINISHED]:  # in chunks, so that an interruption is heard
        kernels.walk(tables, memory, walk.picks, has_point, has_bounds, stops, CHUNK)
    low, point, anew = memory.found.T.tolist()
    if not has_bounds:
        return [point, point, point], True
    return [low, point, anew], not state[kernels.OVERFLOW]


def _counted_along(
    walk: _Walk, pieces: Sequence[int], is_along: Sequence[bool], outside: int
) -> _Counts:
    runs = [(len(list(run)), piece) for piece, run in itertools.groupby(pieces)]
    ends = np.array([0, len(runs)], np.int64)
    steps = along_kernels.Steps(np.array(runs, np.int64), ends, np.array(is_along, np.int64))
    past = along_kernels.Past(
        digits=np.zeros(len(walk.tables.loops), np.int64),
        state=np.zeros(kernels.WINDOW + 1, np.int64),
        last=np.full(walk.n_cells, -1, np.int64),
        moved=np.zeros((len(is_along), walk.visits), np.int64),
        own=np.zeros((walk.visits, 2), np.int64),
        slots=np.zeros((len(is_along), walk.visits), np.int64),
        done=np.full(walk.n_boxes if walk.n_boxes <= MOST_CELLS else 1, -1, np.int64),
        found=np.zeros((1, len(is_along), 3), np.int64),
        fits=np.ones(1, np.int64),
    )
    while not past.state[kernels.FINISHED]:  # in chunks, so that an interruption is heard
        along_kernels.walk_along(walk.tables, steps, past, walk.picks, outside, CHUNK)
    low, point, anew = past.found[0].T.tolist()
    return [low, point, anew], not past.state[kernels.OVERFLOW]
