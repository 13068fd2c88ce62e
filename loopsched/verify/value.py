"""The value of one schedule, as docs/proofs.md defines it; shares no code with the models."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache, partial, reduce
from itertools import product
from operator import or_
from typing import NamedTuple

from loopsched.base.errors import ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.nests.nest import Place, Schedule
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.verify import readers
from loopsched.verify.readers import Capacity, Groups, Loops

Chain = tuple[int, ...]  # extents along a dimension, outermost first
Chains = tuple[Chain, ...]
Region = dict[str, tuple[int, int]]  # start and length along each dimension
Span = tuple[tuple[int, int], ...]  # start and length along each dimension of an axis
Tiles = list[tuple[Span, ...]]  # of a tensor: a span on each axis
Counts = dict[str, int]  # of each tensor
Count = Callable[[Groups], Counts]  # of what a level brings in
MOST_ITEMS = 100_000  # of a list that is followed
Moved = dict[str, tuple[int, int]]  # bytes of each tensor, read and written


@lru_cache(maxsize=4096)
def reach(terms: Loops, lengths: Chain) -> int:
    """Mark, as bits, the sums of 0, c, .., c * (n - 1) over the terms of an axis."""
    marks = 1
    for (_, c), length in zip(terms, lengths, strict=True):
        for n in (1 << i for i in range((length - 1).bit_length())):
            marks |= marks << c * min(n, length - n)
    return marks


@lru_cache(maxsize=65536)
def pieces(size: int, chain: Chain) -> tuple[tuple[int, int], ...]:
    """List start and length of the pieces into which a chain of extents cuts a dimension."""
    found = [(0, size)]
    for extent in chain:
        found = [(x, min(extent, s + n - x)) for s, n in found for x in range(s, s + n, extent)]
    return tuple(found)


def stored(axis: Axis, span: Span) -> int:
    """Mark, as bits, the stored positions of an axis that a span touches."""
    marks = reach(axis.terms, tuple([n for _, n in span]))
    first = sum(c * x for (_, c), (x, _) in zip(axis.terms, span, strict=True))
    if axis.size is None:
        return marks << first
    return marks << first + max(0, axis.offset) >> max(0, -axis.offset) & (1 << axis.size) - 1


def parts_of(axis: Axis, spans: set[Span]) -> dict[Span, Span]:
    """Take what spans touch on an axis apart; a span has all of a part, or nothing.

    A part is a number that no other one has, and how many stored positions it is.
    """
    if len(axis.terms) == 1 and axis.size is None:
        return {span: span for span in spans}
    marks = {span: stored(axis, span) for span in spans}
    parts = [reduce(or_, marks.values())]
    for each in marks.values():
        parts = [x for part in parts for x in (part & each, part & ~each) if x]
    return {span: tuple([(x, x.bit_count()) for x in parts if x & marks[span]]) for span in spans}


@lru_cache(maxsize=65536)
def on_axis(axis: Axis, sizes: Chain, chains: Chains, slide: int = -1) -> tuple[int, int]:
    """Return the sum and the largest of an axis' stored positions over all pieces.

    Along the term ``slide``, a piece counts only what the one before it did not touch; the
    largest is what both of them touch.
    """
    if len(axis.terms) == 1 and axis.size is None:
        return sizes[0], min(sizes[0], *chains[0][:-1], (chains[0] or sizes)[-1] << (slide == 0))
    fresh, most, sweeps = 0, 0, {x for x, _ in pieces(sizes[slide], chains[slide][:-1])}
    for each in product(*map(pieces, sizes, chains)):
        marks, known = stored(axis, each), 0
        if slide >= 0 and each[slide][0] not in sweeps:
            n = chains[slide][-1]
            known = stored(axis, (*each[:slide], (each[slide][0] - n, n), *each[slide + 1 :]))
        fresh, most = fresh + (marks & ~known).bit_count(), max(most, (marks | known).bit_count())
    return fresh, most


def count_steps(problem: Problem, groups: Groups, units: dict[str, int]) -> int:
    """Count the steps of the unit that works longest: each wave lasts as its largest item."""

    @cache
    def steps(region: Chain, groups: Groups) -> int:
        if not any(unit for unit, _ in groups):
            return math.prod(region)
        (unit, loops), rest = groups[0], groups[1:]
        chains = [tuple(e for name, e in loops if name == dim) for dim in problem.dims]
        parts = [Counter(n for _, n in found) for found in map(pieces, region, chains)]
        if unit:
            items = math.prod(part.total() for part in parts)
            return -(-items // units[unit]) * steps(tuple(map(max, parts)), rest)
        many = product(*(part.items() for part in parts))
        return sum(math.prod(k for _, k in x) * steps(tuple(n for n, _ in x), rest) for x in many)

    return steps(tuple(problem.size.values()), groups)


class Cut(NamedTuple):
    """A loop as one level sees it: pieces of ``extent``, in turn or side by side."""

    dim: str
    extent: int
    is_parallel: bool
    loop: int  # its place in the schedule


class Inner(NamedTuple):
    """What a level sees of the one inside it."""

    seen: Counts  # elements that are asked for
    once: set[str]  # tensors of which each item asks for every element once, in the same step
    items: Groups  # the loops that hand out its items, each of which it starts cold
    turns: Loops  # those right inside them, where all levels inside are caches


def in_turn(length: int, chain: list[Cut]) -> int:
    """Count the pieces of a dimension that come one after the other."""
    if not chain:
        return 1
    n, rest = divmod(length, step := chain[0].extent)
    parts = {min(length, step): 1} if chain[0].is_parallel else {step: n, rest: rest > 0}
    return sum(many * in_turn(n, chain[1:]) for n, many in parts.items())


class View(NamedTuple):
    """A schedule as one level sees it: its cuts; those before ``start`` hand out items."""

    problem: Problem
    cuts: tuple[Cut, ...]
    start: int = 0
    is_even: bool = True  # whether each wave ends with whole iterations

    def chain(self, dim: str, upto: int) -> list[Cut]:
        """List the first cuts of a dimension, what runs side by side at their end together."""
        found = [cut for cut in self.cuts[:upto] if cut.dim == dim]
        while found and found[-1].is_parallel:
            found.pop()
        return found

    def on(self, axis: Axis, upto: int, slide: str | None = None) -> tuple[int, int]:
        """Return sum and largest over the pieces, those side by side together.

        Along a slide, a piece counts what the one before did not touch, and the largest both.
        """
        sizes, copies = tuple(self.problem.size[dim] for dim in axis.dims), 1
        chains = [self.chain(dim, upto) for dim in axis.dims]
        for length, chain in zip(sizes, chains, strict=True):
            for cut in chain:
                copies *= -(-length // cut.extent) if cut.is_parallel else 1
                length = min(length, cut.extent)
        at = axis.dims.index(slide) if slide in axis.dims else -1
        ends = tuple(tuple(cut.extent for cut in chain) for chain in chains)
        (total, _), (_, one) = (on_axis(axis, sizes, ends, x) for x in (at, -1))
        both = copies * (on_axis(replace(axis, size=None), sizes, ends, at)[1] if at >= 0 else one)
        return total, both if at < 0 else min(2 * one * copies, both, axis.size or both)

    def visits(self, tensor: Tensor, upto: int, slide: str | None = None) -> int:
        """Sum the elements of a tensor over all visits of the body inside ``upto`` cuts."""
        others = [dim for dim in self.problem.dims if dim not in tensor.dims]
        repeats = math.prod(in_turn(self.problem.size[d], self.chain(d, upto)) for d in others)
        return repeats * math.prod(self.on(axis, upto, slide)[0] for axis in tensor.axes)

    def footprint(self, tensor: Tensor, upto: int, slide: str | None = None) -> int:
        """Return the most bytes of a tensor that a body touches, or with the one before it."""
        return tensor.element_bytes * math.prod(self.on(a, upto, slide)[1] for a in tensor.axes)

    def marks(self, axis: Axis, upto: int) -> int:
        """Mark, as bits, what a whole body touches on an axis, padding included."""
        ends = ([self.problem.size[d], *(c.extent for c in self.chain(d, upto))] for d in axis.dims)
        return reach(axis.terms, tuple(map(min, ends)))

    def run(self, tensor: Tensor, upto: int) -> tuple[list[Cut], int, str | None]:
        """Find the cuts around a body that leave a tensor, how many are left, what slides it."""
        moving: list[Cut] = []
        for at in range(upto, self.start, -1):
            cut = self.cuts[at - 1]
            if not cut.is_parallel and cut.dim in tensor.dims:
                (axis,) = (axis for axis in tensor.axes if cut.dim in axis.dims)
                return moving, at, cut.dim if axis.is_compound else None
            moving += [] if cut.is_parallel else [cut]
        return moving, self.start, None

    def kept(self, tensor: Tensor, upto: int, stays: Callable[[list[Cut]], bool]) -> int:
        """Count what a cache brings in, by what stays while it goes along some cuts."""
        moving, stop, slide = self.run(tensor, upto)
        if slide:
            (axis,) = (axis for axis in tensor.axes if slide in axis.dims)
            marks = self.marks(axis, upto)
            if marks.bit_count() == marks.bit_length() and stays([*moving, self.cuts[stop - 1]]):
                return self.visits(tensor, stop, slide)
        return self.visits(tensor, stop if stays(moving) else upto)


def view_of(problem: Problem, groups: Groups, inside: dict[str, int]) -> View:
    """Look at a schedule from one level: units ``inside`` share it, others have their own."""
    cuts: list[Cut] = []
    start, place, together, is_even = 0, 0, 1, True
    lengths = {dim: {size} for dim, size in problem.sizes}
    for unit, loops in groups:
        n, spans, turns, sides = inside.get(unit or "", 1), [], list[Cut](), list[Cut]()
        for at, (dim, step) in enumerate(loops, place):
            if step < max(lengths[dim]):
                spans.append((at, dim, step, {-(-length // step) for length in lengths[dim]}))
            lengths[dim] = {part for x in lengths[dim] for _, part in pieces(x, (step,))}
        is_regular = all(len(trips) == 1 for *_, trips in spans)
        is_even &= is_regular or together == 1 or unit not in inside
        free, items = n, 1
        for at, dim, step, trips in reversed(spans):
            trip = max(trips)
            many = min(trip, free)
            if items <= n < items * trip and n > 1:  # the loop that the instances divide
                is_whole = n % items == 0 and (at == spans[0][0] or trip % (n // items) == 0)
                is_even &= is_whole and is_regular
            free, items = free // many if many == trip else 1, items * trip
            turns = [Cut(dim, step * many, False, at), *turns] if many < trip else turns
            sides = [Cut(dim, step, True, at), *sides] if many > 1 else sides
        cuts, place = cuts + turns + sides, place + len(loops)
        together *= n if spans else 1
        start = len(cuts) if unit and unit not in inside else start
    return View(problem, tuple(cuts), start, is_even)


def walk(problem: Problem, loops: Loops) -> list[Region]:
    """Take a problem apart, loop by loop."""
    found: list[Region] = [{dim: (0, size) for dim, size in problem.sizes}]
    for dim, step in loops:
        parts = ((each, part) for each in found for part in pieces(each[dim][1], (step,)))
        found = [{**each, dim: (each[dim][0] + x, n)} for each, (x, n) in parts]
    return found


def changed(problem: Problem, sizes: dict[str, int], change: Callable[[Axis], Axis]) -> Problem:
    """Return a problem of other sizes, each axis changed."""
    tensors = (replace(t, axes=tuple(map(change, t.axes))) for t in problem.tensors)
    return replace(problem, sizes=tuple(sizes.items()), tensors=tuple(tensors))


def piece_of(problem: Problem, region: Region) -> Problem:
    """Return a region as a problem of its own."""

    def moved(axis: Axis) -> Axis:
        ahead = sum(c * region[dim][0] for dim, c in axis.terms) if axis.size else 0
        return replace(axis, offset=axis.offset + ahead)

    return changed(problem, {dim: n for dim, (_, n) in region.items()}, moved)


def cheapest(view: View, room: Capacity, most: Counts, times: Counts, uneven: set[str]) -> Counts:
    """Count what a cache brings in at the best depth; nothing if no body fits.

    Of each tensor, ``most`` tiles are present at once and ``times`` are brought in.  Nothing
    stays while the body moves along ``uneven`` dimensions.
    """
    held = [t for t in view.problem.tensors if t.name in most]
    twice, ways = [*held, *(t for t in held if t.name == view.problem.output)], list[Counts]()
    for upto in range(view.start, len(view.cuts) + 1):
        sizes = {t.name: most[t.name] * view.footprint(t, upto) for t in held}

        def stays(along: list[Cut], upto: int = upto, sizes: Counts = sizes) -> bool:
            moving = {cut.dim for cut in along}
            two = {t.name: sizes[t.name] * (2 - moving.isdisjoint(t.dims)) for t in held}
            if upto and along == [view.cuts[upto - 1]]:  # from one body to the next
                two = {t.name: most[t.name] * view.footprint(t, upto, along[0].dim) for t in held}
            return moving.isdisjoint(uneven) and room.fits(two)

        if stays([]):
            ways.append({t.name: times[t.name] * view.kept(t, upto, stays) for t in held})
    return min(ways, key=lambda x: sum(t.element_bytes * x[t.name] for t in twice), default={})


def tiles_of(tensor: Tensor, items: list[Region]) -> Tiles:
    """List the tile of a tensor that each item has."""
    return [tuple([tuple([item[d] for d in a.dims]) for a in tensor.axes]) for item in items]


def followed(held: list[Tensor], tiles: dict[str, Tiles], n: int, room: Capacity) -> Counts:
    """Count what a cache brings in by waves of n items; nothing if one does not fit.

    A wave finds what those before it touched, back to where all that is touched since still fits.
    Tiles fall into cells: a part of each axis.
    """
    numbers, items = dict[Span, int](), list[list[list[int]]]()
    for at, t in enumerate(held):
        own = {tile: list[int]() for tile in tiles[t.name]}
        parts = [parts_of(axis, {tile[i] for tile in own}) for i, axis in enumerate(t.axes)]
        for tile in own:
            found = product([(at, 1)], *map(dict.__getitem__, parts, tile))
            own[tile] = [numbers.setdefault(cell, len(numbers)) for cell in found]
        items.append([own[tile] for tile in tiles[t.name]])
    known = [(held[x[0][0]].name, math.prod([elements for _, elements in x])) for x in numbers]
    there, size, moved, gone = OrderedDict[int, int](), Counter[str](), Counter[str](), -1
    for now, i in enumerate(range(0, len(items[0]), n)):
        touched = [cells for each in items for cells in each[i : i + n]]
        before = {cell: there.pop(cell, -1) for cell in set().union(*touched)}
        there.update(dict.fromkeys(before, now))  # the wave that touched them last
        for name, elements in [known[cell] for cell, last in before.items() if last < 0]:
            size[name] += elements
        while not room.fits({t.name: t.element_bytes * size[t.name] for t in held}):
            cell, gone = there.popitem(last=False)
            size[known[cell][0]] -= known[cell][1]
        if gone == now:
            return {}
        for name, elements in [known[cell] for cell, last in before.items() if last <= gone]:
            moved[name] += elements
    return moved


@lru_cache(maxsize=64)
def in_order(problem: Problem, loops: Loops, n: int, room: Capacity) -> Counts:
    """Follow a list of items; nothing where it is long, or whole items of a wave do not fit."""
    items, held = walk(problem, loops), room.held(problem)
    tiles = {t.name: tiles_of(t, items) for t in held}
    return followed(held, tiles, n, room) if len(items) <= MOST_ITEMS else {}


def in_waves(problem: Problem, groups: Groups, inside: dict[str, int], room: Capacity) -> Counts:
    """Bound what a list of items brings in, from a cold start.

    A list of up to ``MOST_ITEMS`` items is followed wave by wave, items whole.  All that was
    touched since a cell's last use then fits, in whatever order within the waves, so that it was
    not evicted; and a wave that fits brings nothing in twice.

    Of longer lists, and where a wave does not fit, each wave brings in every different tile that
    it has once, and all tiles count as the largest, and without padding.  ``most`` is the largest
    number of different tiles in a wave, ``total`` the sum over waves.  Bodies, inside an item,
    fit if ``most`` tiles of each tensor do; two bodies are ``most`` pairs; and what an item
    brings in counts ``total`` times.  Runs and slides count only along dimensions in which all
    items are equally long: items advance together, and a short one waits.  So what lies between
    two uses within a wave is one body of each item, or two; nothing is taken to stay from wave
    to wave.  If loops inside share the cache, too, every point counts.
    """
    n, held = inside[groups[0][0] or ""], room.held(problem)
    if found := in_order(problem, groups[0][1], n, room):
        return found
    items = walk(problem, groups[0][1])
    lengths = {dim: {item[dim][1] for item in items} for dim in problem.dims}
    longest = {dim: max(each) for dim, each in lengths.items()}
    item = view_of(changed(problem, longest, lambda a: replace(a, size=None)), groups[1:], inside)
    if not any(cut.is_parallel for cut in item.cuts):
        waves = [slice(i, i + n) for i in range(0, len(items), n)]
        many = {t.name: [len(set(tiles_of(t, items[wave]))) for wave in waves] for t in held}
        most, total = ({name: f(each) for name, each in many.items()} for f in (max, sum))
        uneven = {dim for dim, each in lengths.items() if len(each) > 1}
        found = cheapest(item, room, most, total, uneven)
    return found or points(problem, held)


def cached(problem: Problem, groups: Groups, inside: dict[str, int], capacity: Capacity) -> Counts:
    """Count the elements of each tensor that a cache brings in.

    The count of `cheapest` holds where each wave ends with whole iterations, or where whole items
    fit.  Whole iterations: where instances run out within a loop of a list, the items inside one
    of its iterations divide the instances, and the quotient divides its iterations (not needed of
    the list's outermost loop); and all lists have the same iterations, as lists inside lists
    always must.  Elsewhere that count is the least, and each piece of the loops outside the first
    list that shares the cache is a problem of its own, whose counts are added.
    """
    view, held = view_of(problem, groups, inside), capacity.held(problem)
    ones = {t.name: 1 for t in held}
    found = cheapest(view, capacity, ones, ones, set())
    is_whole = capacity.fits({t.name: view.footprint(t, view.start) for t in held})
    if not found or view.is_even or is_whole:
        return found or points(problem, held)
    at = next((i for i, (unit, _) in enumerate(groups) if unit in inside), 0)
    outside = tuple(loop for _, loops in groups[:at] for loop in loops)
    listed = Counter[str]()
    for piece, many in Counter(piece_of(problem, x) for x in walk(problem, outside)).items():
        counts = (cached if at else in_waves)(piece, groups[at:], inside, capacity)
        listed.update({name: n * many for name, n in counts.items()})
    return {name: max(n, listed[name]) for name, n in found.items()}


def behind(view: View, count: Count, room: Capacity, inner: Inner, least: Counts) -> Counts:
    """Bound what a cache brings in that sees only what the level inside it lacks.

    That is no less than ``least``, what it would bring in if it saw all.  Of each tensor it is at
    most the least of these, whatever the level inside keeps:

    * what that level brings in; of a tensor that it does not hold, what it is asked for;
    * what the cache brings in of the nest that ends where items are handed to that level, which
      starts each of them cold and so asks for all of it;
    * if all levels further in are caches: what it brings in of the nest that ends with the first
      n loops inside those items, with nothing kept from item to item.  These loops cut bodies; all
      but the last index the tensor on axes of one dimension, and the last does so too (bodies
      share nothing), or is none of the others' dimensions, not of the tensor and on no axis of
      several (bodies in a row ask alike), or is on an axis of several, waves end evenly, and
      as many bodies in a row as may touch one element fit together, tensors that the loop
      indexes counted so many times;
    * the same, for any n, of a tensor with plain axes of which the level inside brings in each
      element once an item, if waves end evenly: units that share an element ask for it in the
      same step.
    """
    most, problem, held = dict(inner.seen), view.problem, room.held(view.problem)
    tied = {dim for t in problem.tensors for a in t.axes if a.is_compound for dim in a.dims}
    for n, (last, step) in enumerate((("", 1), *inner.turns)):
        if all(most[name] <= counted for name, counted in least.items()):
            break
        # No machine has such a unit: nothing stays from one of its items to the next.
        found = count((*inner.items, ("items", ()), (None, inner.turns[:n])) if n else inner.items)
        upto = sum(cut.loop < n + sum(len(loops) for _, loops in inner.items) for cut in view.cuts)
        others = {dim for dim, _ in inner.turns[: max(0, n - 1)]}
        for t in held:
            parts = {axis.dims[0] for axis in t.axes if not axis.is_compound}
            stays = last in parts or last not in {*t.dims, *others, *tied}
            for axis in (a for a in t.axes if a.is_compound and last in a.dims):
                many = -(-view.marks(axis, upto).bit_length() // (step * dict(axis.terms)[last]))
                sizes = {x.name: view.footprint(x, upto) * many ** (last in x.dims) for x in held}
                stays = view.is_even and room.fits(sizes)
            if (others <= parts and stays) or (view.is_even and t.name in inner.once):
                most[t.name] = min(most[t.name], found[t.name])
    return {name: max(counted, most[name]) for name, counted in least.items()}


def points(problem: Problem, tensors: Iterable[Tensor]) -> Counts:
    """Count the elements of tensors point by point: nothing stays."""
    view = View(problem, tuple(Cut(dim, 1, False, 0) for dim in problem.dims))
    return {t.name: view.visits(t, len(view.cuts)) for t in tensors}


def tiled(view: View, level: Level, capacity: Capacity, places: list[Place]) -> Counts:
    """Count the elements of each tensor that a scratchpad brings in."""
    held, copies = capacity.held(view.problem), 1 + level.double_buffered
    depths = [{t.name: j for t in held} for j in range(view.start, len(view.cuts) + 1)]
    if places:
        depths = [{x.tensor: sum(c.loop < x.position for c in view.cuts) for x in places}]
    for upto in depths:
        sizes = {t.name: copies * view.footprint(t, upto[t.name]) for t in held}
        if capacity.fits(sizes) and min(upto.values(), default=view.start) >= view.start:
            found = {}
            for t in held:
                _, stop, slide = view.run(t, upto[t.name])
                found[t.name] = view.visits(t, stop, slide if level.halo_reuse else None)
            return found
    raise ScheduleError(f"level '{level.name}': tiles do not fit")


def boundaries(problem: Problem, arch: Arch, asked: Counts, brought: list[Counts]) -> list[Moved]:
    """Return the bytes of each tensor, read and written, across each level's outer boundary.

    ``asked``: elements that the arithmetic asks for; ``brought``: what each level brings in.
    """
    once = View(problem, ()).visits(problem.output_tensor, 0)
    moved, found = Moved(), list[Moved]()
    for level, counts in [(None, asked), *reversed([*zip(arch.caches, brought, strict=True)])]:
        for t in problem.tensors:
            if t.name in counts:
                n, is_output = counts[t.name] * t.element_bytes, t.name == problem.output
                passes = level and readers.passes_writes(level)
                writes = moved[t.name][1] if passes else n * is_output
                moved[t.name] = (n - once * t.element_bytes * is_output, writes)
        found = [dict(moved), *found]
    return found[:-1]


def value_of(problem: Problem, schedule: Schedule, arch: Arch, objective: str) -> Fraction:
    """Return the value of a schedule, exactly."""
    schedule.check(problem)
    units, brought, asked = readers.units_of(arch), list[Counts](), points(problem, problem.tensors)
    groups, inner = readers.groups_of(schedule, units), Inner(asked, set(), (), ())
    plain = [t for t in problem.tensors if all(axis.is_plain for axis in t.axes)]
    for at, level in reversed([*enumerate(arch.caches)]):
        own, capacity = readers.own_units(arch, level), readers.capacity_of(problem, level)
        inside = {unit: n for unit, n in units.items() if unit not in own}
        places = [place for place in schedule.places if place.level == level.name]
        view, counted = view_of(problem, groups, inside), Counts()
        if level.kind == "cache":
            count = partial(cached, problem, inside=inside, capacity=capacity)
            counted = count(groups)
            counted = behind(view, count, capacity, inner, counted) if brought else counted
        brought = [counted or tiled(view, level, capacity, places), *brought]
        last = max((i for i, (unit, _) in enumerate(groups, 1) if unit in own), default=0)
        inner = Inner(inner.seen | brought[0], set(), groups[:last], ())
        if {each.kind for each in arch.caches[at:]} == {"cache"}:
            once = {t.name for t in plain if inner.seen[t.name] == view.visits(t, view.start)}
            inner = inner._replace(once=once, turns=readers.in_turn(groups[last:]))
    level_bytes = [sum(map(sum, x.values())) for x in boundaries(problem, arch, asked, brought)]
    seconds = count_steps(problem, groups, units) / readers.rate_of(problem, arch)
    return resources(problem, arch, objective, seconds, level_bytes)


def resources(
    problem: Problem, arch: Arch, objective: str, steps: Fraction, level_bytes: list[int]
) -> Fraction:
    """Combine steps in seconds and the bytes of each level into the objective."""
    rates = [level.bandwidth_bytes_per_s for level in arch.caches]
    time = max([steps, *(n / Fraction(r) for r, n in zip(rates, level_bytes, strict=True) if r)])
    if objective in ("time", "dram_bytes"):
        return time if objective == "time" else Fraction(level_bytes[0])
    mac, *each = readers.energies_of(arch)
    moved = [n * (a + b) for n, a, b in zip(level_bytes, each, each[1:], strict=False)]
    return (problem.macs * mac + sum(moved)) * {"energy": Fraction(1), "edp": time}[objective]
