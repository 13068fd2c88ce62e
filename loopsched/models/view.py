"""What one buffer sees of a schedule: a list of cuts, outermost first.

A *cut* is a loop seen from a buffer: it takes a region apart along one
dimension, into pieces of the given extent.  Sequential cuts visit their pieces
one after the other.  A parallel cut hands its pieces to instances *inside* the
buffer, which work on them in lock-step, so that all pieces are present at once.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import (
    Extremes,
    axis_extremes,
    axis_slid,
    cut_lengths,
    is_clipped,
    segment_lengths,
    segments,
)
from loopsched.problems.problem import Axis, Problem, Tensor

MOST_LISTS = 16
"""Kinds of lists of items that are looked at one by one."""


class Cut(NamedTuple):
    """One step of taking the iteration space apart.

    Parameters
    ----------
    dim : str
    extent : int
        Length of the pieces, as far as they are not clipped.
    is_parallel : bool
        Whether the pieces run side by side inside the buffer.
    position : int
        Position of the loop in the schedule.
    """

    dim: str
    extent: int
    is_parallel: bool
    position: int


class InnerLoop(NamedTuple):
    """A loop inside one item of the buffer, as it runs.

    Parameters
    ----------
    dim : str
    extent : int
        Length of its pieces, as far as they are not clipped.
    group : int or None
        Which list of items it belongs to; None: temporal.
    unit : str or None
        Whose instances run that list.
    position : int
        Position of the loop in the schedule.
    """

    dim: str
    extent: int
    group: int | None
    unit: str | None
    position: int


@dataclass(frozen=True)
class View:
    """A schedule as one buffer sees it.

    Parameters
    ----------
    problem : Problem
    cuts : tuple of Cut
        Cuts that do something, outermost first.
    boundary : int
        Cuts before this one hand out work items to the instances of this
        buffer or of an outer one: nothing survives from item to item.
    schedule : Schedule
    instances : mapping of unit name to int
        Instances inside this buffer that share the work of a spatial loop.
    own_units : frozenset of str
        Units whose instances each own such a buffer, or lie outside it.
    n_sliced : int
        Further loops that are taken as outside an item (`sliced`).

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> from loopsched.nests.notation import parse_schedule
    >>> problem = gemm(m=8, n=8, k=4)
    >>> view = view_of(problem, parse_schedule("M:8 N:8 K:4 M:2", problem))
    >>> [(cut.dim, cut.extent) for cut in view.cuts]
    [('M', 2), ('N', 1), ('K', 1), ('M', 1)]
    >>> view.visits_elems(problem.tensor("B"), 2)
    128
    """

    problem: Problem
    cuts: tuple[Cut, ...]
    boundary: int
    schedule: Schedule = field(compare=False)
    instances: Mapping[str, int] = field(compare=False)
    own_units: frozenset[str] = field(compare=False)
    n_sliced: int = field(default=0, compare=False)
    known: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    _axes: dict[object, Extremes] = field(default_factory=dict, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """Leave what has been looked up behind: its keys hold in this process only."""
        return self.__dict__ | {"known": {}, "_axes": {}}

    @property
    def sizes(self) -> Mapping[str, int]:
        """Size of each dimension."""
        return self.problem.size

    @cached_property
    def _by_dim(self) -> dict[str, tuple[Cut, ...]]:
        """Cuts of each dimension, outermost first."""
        found: dict[str, tuple[Cut, ...]] = dict.fromkeys(self.problem.dims, ())
        for cut in self.cuts:
            found[cut.dim] += (cut,)
        return found

    @cached_property
    def _lines(self) -> dict[str, _Line]:
        """What the cuts of each dimension leave, for every number of them."""
        size = self.problem.size
        return {
            dim: _line(size[dim], tuple([(cut.extent, cut.is_parallel) for cut in cuts]))
            for dim, cuts in self._by_dim.items()
        }

    @cached_property
    def _depth(self) -> dict[str, list[int]]:
        """How many of the first cuts are along each dimension, for every number of cuts."""
        found: dict[str, list[int]] = {dim: [0] for dim in self.problem.dims}
        for at, cut in enumerate(self.cuts, 1):
            depths = found[cut.dim]
            depths += depths[-1:] * (at - len(depths))
            depths.append(depths[-1] + 1)
        for depths in found.values():
            depths += depths[-1:] * (len(self.cuts) + 1 - len(depths))
        return found

    @cached_property
    def _split(self) -> tuple[dict[str, tuple[int, ...]], tuple[InnerLoop, ...]]:
        chains, inner = _split(self.problem, self.schedule, self.own_units)
        for loop in inner[: self.n_sliced]:
            chains[loop.dim] += (loop.extent,)
        return chains, inner[self.n_sliced :]

    def sliced(self, n_loops: int) -> View:
        """Take some loops inside an item as outside: smaller items, each with a cold start."""
        return replace(self, n_sliced=self.n_sliced + n_loops)

    @property
    def outer_chains(self) -> dict[str, tuple[int, ...]]:
        """Extents of the pieces into which loops outside an item cut each dimension."""
        return self._split[0]

    @property
    def inner_loops(self) -> tuple[InnerLoop, ...]:
        """Loops inside an item that do something, outermost first."""
        return self._split[1]

    @cached_property
    def is_aligned(self) -> bool:
        """Whether every wave ends with a whole iteration of the loop where instances run out.

        Waves run on across a list of items; the parallel cuts stand for waves that do not.
        """
        if not any(loop.unit and loop.unit not in self.own_units for loop in self.schedule.loops):
            return True
        chains, inner = self._split
        last = max((at for at, loop in enumerate(inner, 1) if loop.group is not None), default=0)
        inner = inner[:last]  # what stands inside of all lists has no waves
        lengths = {dim: set(segment_lengths(size, chains[dim])) for dim, size in self.sizes.items()}
        at, side_by_side = 0, 1
        while at < len(inner):
            first = inner[at]
            end = at + 1
            while first.group is not None and end < len(inner) and inner[end].group == first.group:
                end += 1
            trips = []
            for loop in inner[at:end]:
                trips.append({-(-length // loop.extent) for length in lengths[loop.dim]})
                whole = [loop.extent] if max(lengths[loop.dim]) >= loop.extent else []
                rests = (length % loop.extent for length in lengths[loop.dim])
                lengths[loop.dim] = {*whole, *(rest for rest in rests if rest)}
            n = self.instances.get(first.unit or "", 1)
            if first.group is not None:
                # Lists side by side, of different lengths, fall out of step.
                if side_by_side > 1 and any(len(each) > 1 for each in trips):
                    return False
                if not ends_with_iterations(trips, n):
                    return False
                side_by_side *= n
            at = end
        return True

    @cached_property
    def lists(self) -> list[tuple[View, int]]:
        """Look at each kind of list of items by itself, and count the lists like it.

        Empty if lists differ by more than their lengths, are of one kind or too many, or
        stand inside items.
        """
        problem, chains = self.problem, {dim: list(at) for dim, at in self.outer_chains.items()}
        is_clip = any(is_clipped(axis, self.sizes) for t in problem.tensors for axis in t.axes)
        if is_clip or any(chains.values()):
            return []
        for loop in self.inner_loops:
            if loop.group is not None:
                break
            chains[loop.dim].append(loop.extent)
        kinds = [segment_lengths(size, chains[dim]).items() for dim, size in self.sizes.items()]
        if not 1 < math.prod(len(kind) for kind in kinds) <= MOST_LISTS:
            return []
        found = []
        for lengths in itertools.product(*kinds):
            sizes = tuple(zip(problem.dims, (length for length, _ in lengths), strict=True))
            part = replace(problem, sizes=sizes)
            one = view_of(part, self.schedule, instances=self.instances, own_units=self.own_units)
            found.append((one, math.prod(many for _, many in lengths)))
        return found

    def one_of_those_inside(self) -> tuple[View, int]:
        """Look at what one of the instances inside works on, and count them."""
        if "one" not in self.known:
            units = frozenset(loop.unit for loop in self.inner_loops if loop.unit is not None)
            alone = view_of(self.problem, self.schedule, own_units=units | self.own_units)
            many = math.prod(max(1, self.instances.get(unit, 1)) for unit in units)
            self.known["one"] = alone, many
        found: tuple[View, int] = self.known["one"]
        return found

    def item_pieces(self, dim: str, *, is_placed: bool) -> dict[tuple[int, int], int]:
        """Pieces of a dimension that items work on: start and length, and how many.

        Where the place does not matter, all of a length are counted together.
        """
        if is_placed:
            return dict.fromkeys(segments(self.sizes[dim], self.outer_chains[dim]), 1)
        lengths = segment_lengths(self.sizes[dim], self.outer_chains[dim])
        return {(0, length): many for length, many in lengths.items()}

    def n_cuts(self, position: int) -> int:
        """Count the cuts by loops outside a position of the schedule."""
        return sum(cut.position < position for cut in self.cuts)

    def chain(self, dim: str, upto: int) -> tuple[Cut, ...]:
        """Cuts of one dimension among the first ``upto``."""
        return self._by_dim[dim][: self._depth[dim][upto]]

    def n_pieces(self, dim: str, upto: int) -> int:
        """Count the pieces of a dimension that are visited one after the other."""
        return self._lines[dim].n_pieces[self._depth[dim][upto]]

    def shortest(self, dim: str, upto: int) -> int:
        """Length of the shortest piece of a dimension, each parallel one by itself."""
        return self._lines[dim].shortest[self._depth[dim][upto]]

    def _whole_extents(self, dim: str, upto: int) -> tuple[int, ...]:
        """Extents of the cuts of a dimension up to the last sequential one."""
        line = self._lines[dim]
        return line.extents[: line.n_whole[self._depth[dim][upto]]]

    def axis_extremes(self, axis: Axis, upto: int) -> Extremes:
        """Total, largest and smallest count on an axis over all pieces.

        Parallel pieces that are whole are taken together; where they are cut
        further, what they share is counted for each (an upper bound).
        """
        depths = [self._depth[dim][upto] for dim in axis.dims]
        key = (id(axis), *depths)
        found = self._axes.get(key)
        if found is None:
            sizes = tuple([self.sizes[dim] for dim in axis.dims])
            chains = tuple([self._whole_extents(dim, upto) for dim in axis.dims])
            one = axis_extremes(axis, sizes, chains)
            largest = one.largest * self.n_copies(axis, upto)
            found = self._axes[key] = Extremes(one.total, largest, one.smallest)
        return found

    def largest(self, axis: Axis, upto: int) -> int:
        """Largest count on an axis, as `axis_extremes` has it."""
        if not axis.is_plain:
            return self.axis_extremes(axis, upto).largest
        (dim,) = axis.dims
        return self._lines[dim].held[self._depth[dim][upto]]

    def n_copies(self, axis: Axis, upto: int) -> int:
        """Count the parallel pieces of an axis that are cut further, and so counted apart."""
        copies = 1
        for dim in axis.dims:
            copies *= self._lines[dim].copies[self._depth[dim][upto]]
        return copies

    def visits_elems(self, tensor: Tensor, upto: int, apart: str | None = None) -> int:
        """Sum the footprints of all visits to the region inside ``upto`` cuts.

        Parallel pieces of the dimension ``apart`` are counted each for itself.
        """
        known: _Known | None = self.known.get(tensor.name)
        if known is None:
            known = self.known[tensor.name] = self._known_of(tensor)
        if not known.spread:
            return known.visits[upto]
        key = ("visits", tensor.name, upto, apart)
        visits: int | None = self.known.get(key)
        if visits is None:
            totals = [self._total(axis, upto, apart) for axis in known.spread]
            visits = self.known[key] = known.visits[upto] * math.prod(totals)
        return visits

    def slid_elems(self, tensor: Tensor, upto: int) -> int:
        """Sum what each visit to the region inside ``upto`` cuts adds to the one before.

        The last of these cuts slides the tensor's window; instances keep their own halos.
        """
        key = ("slid", tensor.name, upto)
        found: int | None = self.known.get(key)
        if found is None:
            dim = self.cuts[upto - 1].dim
            (axis,) = (axis for axis in tensor.axes if dim in axis.dims)
            chains = tuple(self._whole_extents(name, upto) for name in axis.dims)
            sizes = tuple(self.sizes[name] for name in axis.dims)
            slid = axis_slid(axis, sizes, chains, axis.dims.index(dim))
            whole = self.axis_extremes(axis, upto).total
            found = self.visits_elems(tensor, upto) * slid // whole if whole else 0
            self.known[key] = found
        return found

    def _total(self, axis: Axis, upto: int, apart: str | None) -> int:
        if apart is None or apart not in axis.dims:
            return self.axis_extremes(axis, upto).total
        sizes = tuple(self.sizes[dim] for dim in axis.dims)
        extents = tuple(
            tuple(cut.extent for cut in self.chain(dim, upto))
            if dim == apart
            else self._whole_extents(dim, upto)
            for dim in axis.dims
        )
        return axis_extremes(axis, sizes, extents).total

    def footprint_bytes(self, tensor: Tensor, upto: int) -> int:
        """Footprint of a tensor in the largest region inside ``upto`` cuts."""
        known: _Known | None = self.known.get(tensor.name)
        if known is None:
            known = self.known[tensor.name] = self._known_of(tensor)
        if not known.spread:
            return known.held[upto]
        key = (tensor.name, upto)
        held: int | None = self.known.get(key)
        if held is None:
            largest = [self.axis_extremes(axis, upto).largest for axis in known.spread]
            held = self.known[key] = known.held[upto] * math.prod(largest)
        return held

    def _known_of(self, tensor: Tensor) -> _Known:
        n, depth, lines = len(self.cuts) + 1, self._depth, self._lines
        whole, spread = 1, []
        held, visits = [tensor.element_bytes] * n, [1] * n
        for axis in tensor.axes:
            if not axis.is_plain:
                spread.append(axis)
                continue
            (dim,) = axis.dims
            whole *= self.sizes[dim]
            of = lines[dim].held
            held = [many * of[k] for many, k in zip(held, depth[dim], strict=True)]
        for dim, line in lines.items():
            if len(line.n_pieces) > 1 and dim not in tensor.dims:
                of = line.n_pieces
                visits = [many * of[k] for many, k in zip(visits, depth[dim], strict=True)]
        return _Known(held, [whole * many for many in visits], spread)

    def extents(self, upto: int) -> dict[str, int]:
        """Extent of a full region inside ``upto`` cuts, whole parallel pieces together."""
        return {dim: line.longest[self._depth[dim][upto]] for dim, line in self._lines.items()}


class _Known(NamedTuple):
    """What is known of a tensor for every number of cuts, but for its axes that are not plain."""

    held: list[int]  # bytes
    visits: list[int]
    spread: list[Axis]


class _Line(NamedTuple):
    """One dimension with its cuts; of all but their extents, an entry for every number of cuts."""

    extents: tuple[int, ...]
    n_pieces: tuple[int, ...]  # visited one after the other
    shortest: tuple[int, ...]  # each parallel piece by itself
    n_whole: tuple[int, ...]  # cuts up to the last sequential one
    longest: tuple[int, ...]  # piece of those
    copies: tuple[int, ...]  # of it that run at once, cut further
    held: tuple[int, ...]  # of it; copies are counted apart


@lru_cache(maxsize=8192)
def _line(size: int, cuts: tuple[tuple[int, bool], ...]) -> _Line:
    visited = every = {size: 1}
    n_pieces, shortest = [1], [size]
    n_whole, longest, copies = [0], [size], [1]
    length, abreast = size, 1
    for at, (extent, is_parallel) in enumerate(cuts, 1):
        is_one = visited is every
        every = cut_lengths(every, extent)
        shortest.append(min(every))
        if is_parallel:  # side by side: as many steps as the longest takes
            taken: dict[int, int] = {}
            for piece, many in visited.items():
                most = min(piece, extent)
                taken[most] = taken.get(most, 0) + many
            visited = taken
            abreast *= -(-length // extent)
            length = min(length, extent)
            n_whole.append(n_whole[-1])
            longest.append(longest[-1])
            copies.append(copies[-1])
        else:
            visited = every if is_one else cut_lengths(visited, extent)
            length = min(length, extent)
            n_whole.append(at)
            longest.append(length)
            copies.append(abreast)
        n_pieces.append(sum(visited.values()))
    parts = n_pieces, shortest, n_whole, longest, copies, map(operator.mul, longest, copies)
    return _Line(tuple([extent for extent, _ in cuts]), *map(tuple, parts))


def ends_with_iterations(trips: Sequence[set[int]], instances: int) -> bool:
    """Whether waves of a list with these trip counts, outermost first, end with iterations."""
    if math.prod(max(each) for each in trips) <= instances or instances == 1:
        return True
    if any(len(each) > 1 for each in trips):
        return False
    inside = 1
    for i in reversed(range(len(trips))):
        (count,) = trips[i]
        if inside * count > instances:
            at_once, rest = divmod(instances, inside)
            is_outermost = all(max(each) == 1 for each in trips[:i])
            return rest == 0 and (is_outermost or count % at_once == 0)
        inside *= count
    return True


def view_of(
    problem: Problem,
    schedule: Schedule,
    *,
    instances: Mapping[str, int] | None = None,
    own_units: frozenset[str] = frozenset(),
) -> View:
    """Look at a schedule from one buffer.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    instances : mapping of unit name to int, optional
        Instances inside this buffer that share the work of a spatial loop.
    own_units : frozenset of str
        Units whose instances each own such a buffer (or lie outside it): their
        spatial loops hand out work items.
    """
    key = problem, schedule, tuple((instances or {}).items()), own_units
    view = _view_of(*key)
    # What an equal problem looks like is known by the axes of that one.
    return view if view.problem is problem else _view_of.__wrapped__(*key)


@lru_cache(maxsize=256)  # a schedule is looked at several times, by levels and by lists of items
def _view_of(
    problem: Problem,
    schedule: Schedule,
    counts: tuple[tuple[str, int], ...],
    own_units: frozenset[str],
) -> View:
    instances = dict(counts)
    cuts: list[Cut] = []
    boundary = 0
    run: list[tuple[int, str, int, int]] = []
    size = problem.size
    extent_now = dict(size)

    def close_run() -> None:
        if run:
            cuts.extend(_waves(run, instances.get(unit, 1)))
            run.clear()

    unit = ""
    for position, (loop, step) in enumerate(
        zip(schedule.loops, schedule.listed_steps, strict=True)
    ):
        inner = loop.unit is not None and loop.unit not in own_units
        if run and (not inner or loop.unit != unit):
            close_run()
        extent = min(step, extent_now[loop.dim])
        if inner:
            unit = loop.unit or ""
            run.append((position, loop.dim, extent_now[loop.dim], extent))
        elif extent < extent_now[loop.dim]:
            cuts.append(Cut(loop.dim, extent, False, position))
        extent_now[loop.dim] = extent
        if loop.unit in own_units:
            boundary = len(cuts)
    close_run()
    return View(problem, tuple(cuts), boundary, schedule, instances, own_units)


def _split(
    problem: Problem, schedule: Schedule, own_units: frozenset[str]
) -> tuple[dict[str, tuple[int, ...]], tuple[InnerLoop, ...]]:
    """Split a schedule at the innermost loop that hands out items to such buffers."""
    levels = [loop.unit for loop in schedule.loops]
    first = max((i + 1 for i, level in enumerate(levels) if level in own_units), default=0)
    chains: dict[str, tuple[int, ...]] = dict.fromkeys(problem.dims, ())
    size = dict(problem.size)
    inner: list[InnerLoop] = []
    group = 0
    for position, (loop, step) in enumerate(
        zip(schedule.loops, schedule.listed_steps, strict=True)
    ):
        if position and loop.unit != levels[position - 1]:
            group += 1
        if step >= size[loop.dim]:
            continue
        size[loop.dim] = step
        if position < first:
            chains[loop.dim] += (step,)
        else:
            number = group if loop.is_spatial else None
            inner.append(InnerLoop(loop.dim, step, number, loop.unit, position))
    return chains, tuple(inner)


def _waves(run: list[tuple[int, str, int, int]], instances: int) -> list[Cut]:
    """Split a run of spatial loops into waves, then into what a wave runs at once.

    The innermost loops fill the instances first; waves are aligned to whole
    iterations of the loop at which the instances run out.
    """
    taken = at_once([-(-length // extent) for _, _, length, extent in run], instances)
    cuts = [
        Cut(dim, extent * many, False, position)
        for (position, dim, length, extent), many in zip(run, taken, strict=True)
        if extent * many < length
    ]
    cuts += [
        Cut(dim, extent, True, position)
        for (position, dim, _, extent), many in zip(run, taken, strict=True)
        if many > 1
    ]
    return cuts


def at_once(trips: Sequence[int], instances: int) -> list[int]:
    """Count the iterations of each loop of a list that run at once, outermost first.

    The innermost loops fill the instances first.

    Examples
    --------
    >>> at_once([6, 4, 3], 8)
    [1, 2, 3]
    """
    free, found = max(1, instances), []
    for trip in reversed(trips):
        now = min(trip, free)
        free = free // now if now == trip else 1
        found.append(now)
    return found[::-1]
