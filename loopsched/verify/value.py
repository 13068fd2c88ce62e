"""The value of one schedule, as docs/proofs.md defines it; shares no code with the models."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from operator import itemgetter
from typing import Any

from loopsched.arch import Arch, Level
from loopsched.errors import ScheduleError
from loopsched.nest import Schedule
from loopsched.problem import Axis, Problem, Tensor
from loopsched.verify.machine import Capacity, capacity_of, own_units, rate_of, resources, units_of

Loops = tuple[tuple[str, int], ...]  # dimension and step
Group = tuple[str | None, Loops]
Chain = tuple[int, ...]
Tile = tuple[tuple[int, int], ...]  # start and length along each dimension of a tensor


@lru_cache(maxsize=4096)
def reach(terms: Loops, lengths: Chain) -> int:
    """Mark, as bits, the sums of 0, c, .., c * (n - 1) over the terms of an axis."""
    marks = 1
    for (_, c), length in zip(terms, lengths, strict=True):
        n = 1
        while n < length:
            step = min(n, length - n)
            marks, n = marks | marks << (c * step), n + step
    return marks


def stored(axis: Axis, first: int, lengths: Chain) -> int:
    """Count the stored positions of a region on an axis, from its first position."""
    if axis.size is None and len(lengths) == 1:
        return lengths[0]
    return clipped(axis, first, reach(axis.terms, lengths))


def clipped(axis: Axis, first: int, marks: int) -> int:
    """Count the marked positions that are stored."""
    if axis.size is None:
        return marks.bit_count()
    marks = marks >> -first if first < 0 else marks << first
    return (marks & ((1 << axis.size) - 1)).bit_count()


@lru_cache(maxsize=65536)
def pieces(size: int, chain: Chain) -> tuple[tuple[int, int], ...]:
    """List start and length of the pieces into which a chain of extents cuts a dimension."""
    found = [(0, size)]
    for extent in chain:
        found = [(x, min(extent, s + n - x)) for s, n in found for x in range(s, s + n, extent)]
    return tuple(found)


@lru_cache(maxsize=65536)
def on_axis(axis: Axis, sizes: Chain, chains: tuple[Chain, ...]) -> tuple[int, int]:
    """Return the sum and the largest of an axis' stored positions over all pieces."""
    if len(axis.terms) == 1 and axis.size is None:
        return sizes[0], min((sizes[0], *chains[0]))
    met: Counter[tuple[int, Chain]] = Counter()
    for each in product(*map(pieces, sizes, chains)):
        first = axis.offset + sum(c * x for (_, c), (x, _) in zip(axis.terms, each, strict=True))
        met[first, tuple(n for _, n in each)] += 1
    counts = [(stored(axis, *region), many) for region, many in met.items()]
    return sum(count * many for count, many in counts), max(count for count, _ in counts)


@lru_cache(maxsize=4096)
def slid_on(axis: Axis, sizes: Chain, chains: tuple[Chain, ...], at: int) -> int:
    """Sum what each piece touches that the one before it, in its sweep of a term, did not."""
    starts, total = {x for x, _ in pieces(sizes[at], chains[at][:-1])}, 0
    (_, c), extent = axis.terms[at], chains[at][-1]
    for each in product(*map(pieces, sizes, chains)):
        first = axis.offset + sum(k * x for (_, k), (x, _) in zip(axis.terms, each, strict=True))
        lengths = tuple(n for _, n in each)
        marks = reach(axis.terms, lengths)
        if each[at][0] not in starts:
            before = reach(axis.terms, (*lengths[:at], extent, *lengths[at + 1 :]))
            marks &= ~(before >> c * extent)
        total += clipped(axis, first, marks)
    return total


def groups_of(schedule: Schedule, units: dict[str, int]) -> list[Group]:
    """Join adjacent spatial loops of a unit into one list of items; loops with their steps."""
    found: list[Group] = []
    for loop, step in zip(schedule.loops, schedule.listed_steps, strict=True):
        if loop.level and found and found[-1][0] == loop.level:
            found[-1] = (loop.level, (*found[-1][1], (loop.dim, step)))
        else:
            found.append((loop.level, ((loop.dim, step),)))
    runs = [unit for unit, _ in found if unit]
    if runs != [unit for unit in units if unit in runs]:
        raise ScheduleError(f"spatial loops run by {runs}; the machine has {list(units)}")
    return found


def count_steps(problem: Problem, groups: list[Group], units: dict[str, int]) -> int:
    """Count the steps of the unit that works longest: each wave lasts as its largest item."""
    while groups and groups[-1][0] is None:
        groups = groups[:-1]  # they split no list
    regions = Counter({tuple(problem.size.values()): 1})
    for unit, loops in groups:
        chains = [tuple(e for name, e in loops if name == dim) for dim in problem.dims]
        cut: Counter[Chain] = Counter()
        for region, many in regions.items():
            parts = [Counter(n for _, n in found) for found in map(pieces, region, chains)]
            if unit is None:
                for each in product(*(part.items() for part in parts)):
                    cut[tuple(n for n, _ in each)] += many * math.prod(k for _, k in each)
            else:
                items = math.prod(part.total() for part in parts)
                cut[tuple(map(max, parts))] += many * -(-items // units[unit])
        regions = cut
    return sum(math.prod(region) * many for region, many in regions.items())


@dataclass(frozen=True, slots=True)
class Cut:
    """A loop as one level sees it: pieces of ``extent``, in turn or side by side."""

    dim: str
    extent: int
    is_parallel: bool
    loop: int = 0  # its place in the schedule


@dataclass(frozen=True)
class View:
    """A schedule as one level sees it: its cuts; those before ``start`` hand out items."""

    problem: Problem
    cuts: tuple[Cut, ...]
    start: int
    is_even: bool = True  # whether each wave ends with whole iterations

    def chain(self, dim: str, upto: int, apart: str | None = None) -> list[Cut]:
        """List the first cuts of a dimension, what runs side by side at their end together."""
        found = [cut for cut in self.cuts[:upto] if cut.dim == dim]
        while found and found[-1].is_parallel and dim != apart:
            found.pop()
        return found

    def on(self, axis: Axis, upto: int, apart: str | None = None) -> tuple[int, int]:
        """Return sum and largest over the pieces, those side by side together."""
        sizes, copies = tuple(self.problem.size[dim] for dim in axis.dims), 1
        chains = [self.chain(dim, upto, apart) for dim in axis.dims]
        for length, chain in zip(sizes, chains, strict=True):
            for cut in chain:
                copies *= -(-length // cut.extent) if cut.is_parallel else 1
                length = min(length, cut.extent)
        total, largest = on_axis(axis, sizes, tuple(tuple(c.extent for c in x) for x in chains))
        return total, largest * copies

    def n_pieces(self, dim: str, upto: int) -> int:
        """Count the pieces of a dimension that come one after the other."""
        found = Counter({self.problem.size[dim]: 1})
        for cut in self.chain(dim, upto):
            now: Counter[int] = Counter()
            for length, many in found.items():
                parts = Counter(n for _, n in pieces(length, (cut.extent,)))
                for part, k in {max(parts): 1}.items() if cut.is_parallel else parts.items():
                    now[part] += many * k
            found = now
        return found.total()

    def visits(self, tensor: Tensor, upto: int, apart: str | None = None) -> int:
        """Sum the elements of a tensor over all visits of the body inside ``upto`` cuts."""
        others = [dim for dim in self.problem.dims if dim not in tensor.dims]
        repeats = math.prod(self.n_pieces(dim, upto) for dim in others)
        return repeats * math.prod(self.on(axis, upto, apart)[0] for axis in tensor.axes)

    def slid(self, tensor: Tensor, upto: int) -> int:
        """Sum what each visit adds to the one before, the last cut sliding the window."""
        dim, found = self.cuts[upto - 1].dim, self.visits(tensor, upto)
        (axis,) = (axis for axis in tensor.axes if dim in axis.dims)
        sizes = tuple(self.problem.size[d] for d in axis.dims)
        chains = tuple(tuple(c.extent for c in self.chain(d, upto)) for d in axis.dims)
        whole = self.on(axis, upto)[0]
        return found * slid_on(axis, sizes, chains, axis.dims.index(dim)) // whole if whole else 0

    def footprint(self, tensor: Tensor, upto: int) -> int:
        """Return the most bytes of a tensor that a body touches."""
        return tensor.element_bytes * math.prod(self.on(axis, upto)[1] for axis in tensor.axes)

    def run(self, tensor: Tensor, upto: int) -> tuple[list[Cut], int, Cut | None]:
        """Find the cuts around a body that leave a tensor, how many are left, what slides it."""
        inner: list[Cut] = []
        for at in range(upto, self.start, -1):
            cut = self.cuts[at - 1]
            if not cut.is_parallel and cut.dim in tensor.dims:
                slides = any(cut.dim in a.dims and a.is_compound for a in tensor.axes)
                return inner, at, cut if slides else None
            inner += [] if cut.is_parallel else [cut]
        return inner, self.start, None

    def kept(self, tensor: Tensor, upto: int, capacity: Capacity, held: list[Tensor]) -> int:
        """Count what a cache brings in if two bodies must fit for anything to stay."""
        inner, stop, slide = self.run(tensor, upto)

        def fits(between: list[Cut]) -> bool:
            moving = {cut.dim for cut in between}
            return capacity.fits(
                {t.name: self.footprint(t, upto) * (2 - moving.isdisjoint(t.dims)) for t in held}
            )

        if slide and self._is_solid(tensor, slide.dim, upto) and fits([*inner, slide]):
            return self.visits(tensor, stop - 1, slide.dim)
        return self.visits(tensor, stop if not inner or fits(inner) else upto)

    def _is_solid(self, tensor: Tensor, dim: str, upto: int) -> bool:
        for axis in (axis for axis in tensor.axes if dim in axis.dims):
            chains = [
                (self.problem.size[d], *(c.extent for c in self.chain(d, upto))) for d in axis.dims
            ]
            marks = reach(axis.terms, tuple(map(min, chains)))
            if marks.bit_count() != marks.bit_length():
                return False
        return True


def view_of(problem: Problem, groups: list[Group], inside: dict[str, int]) -> View:
    """Look at a schedule from one level: units ``inside`` share it, others have their own."""
    cuts: list[Cut] = []
    start, now, together, is_even = 0, dict(problem.size), 1, True
    lengths = {dim: {size} for dim, size in problem.sizes}
    place = 0
    for unit, loops in groups:
        free = max(1, inside.get(unit or "", 1))
        side_by_side: list[Cut] = []
        in_turn: list[Cut] = []
        spans = []
        for at, (dim, step) in enumerate(loops, place):
            trips = {-(-length // step) for length in lengths[dim]}
            lengths[dim] = {part for x in lengths[dim] for _, part in pieces(x, (step,))}
            if step < now[dim]:
                spans.append((at, dim, step, now[dim], trips))
                now[dim] = step
        if unit in inside and spans:
            is_even &= ends_evenly([each for *_, each in spans], free)
            is_even &= together == 1 or all(len(each) == 1 for *_, each in spans)
            together *= free
        place += len(loops)
        for at, dim, extent, length, _ in reversed(spans):
            trip = -(-length // extent)
            many = min(trip, free)
            free = free // many if many == trip else 1
            in_turn += [Cut(dim, extent * many, False, at)] if extent * many < length else []
            side_by_side += [Cut(dim, extent, True, at)] if many > 1 else []
        cuts += in_turn[::-1] + side_by_side[::-1]
        start = len(cuts) if unit and unit not in inside else start
    return View(problem, tuple(cuts), start, is_even)


def ends_evenly(trips: list[set[int]], n: int) -> bool:
    """Whether each wave of n items ends with whole iterations of the loop that it divides."""
    counts, inside = [max(each) for each in trips], 1
    for at in reversed(range(len(counts))):
        if inside * counts[at] > n > 1:
            is_last = math.prod(counts[:at]) == 1
            is_whole = n % inside == 0 and (is_last or counts[at] % (n // inside) == 0)
            return is_whole and all(len(each) == 1 for each in trips)
        inside *= counts[at]
    return True


def walk(region: dict[str, tuple[int, int]], loops: Loops) -> Iterator[dict[str, tuple[int, int]]]:
    """Take a region apart, loop by loop."""
    if not loops:
        yield region
        return
    dim, step = loops[0]
    first, length = region[dim]
    for x in range(first, first + length, step):
        yield from walk({**region, dim: (x, min(step, first + length - x))}, loops[1:])


def in_waves(
    problem: Problem, groups: list[Group], inside: dict[str, int], level: Capacity
) -> dict[str, int] | None:
    """Follow items wave by wave: what the wave before had is there if the two fit together."""
    at = next(i for i, (unit, _) in enumerate(groups) if unit in inside)
    n, whole = inside[groups[at][0] or ""], {dim: (0, size) for dim, size in problem.sizes}
    waves = []
    for region in walk(whole, tuple(x for _, loops in groups[:at] for x in loops)):
        items = list(walk(region, groups[at][1]))
        waves += [items[i : i + n] for i in range(0, len(items), n)]
    longest = {dim: max(item[dim][1] for wave in waves for item in wave) for dim in problem.dims}

    held = [tensor for tensor in problem.tensors if tensor.name not in level.passing]
    outline = view_of(replace(problem, sizes=tuple(longest.items())), groups[at + 1 :], inside)

    @cache
    def sized(tensor: Tensor, lengths: Chain, upto: int) -> tuple[int, int]:
        sizes = {**longest, **dict(zip(tensor.dims, lengths, strict=True))}
        view = View(replace(problem, sizes=tuple(sizes.items())), outline.cuts, 0)
        return view.visits(tensor, view.run(tensor, upto)[1]), view.footprint(tensor, upto)

    def placed(tensor: Tensor, place: Tile, upto: int) -> tuple[int, int]:
        start = {dim: x for dim, (x, _) in zip(tensor.dims, place, strict=True)}
        axes = tuple(
            replace(a, offset=a.offset + sum(c * start[d] for d, c in a.terms)) if a.size else a
            for a in tensor.axes
        )
        return sized(replace(tensor, axes=axes), tuple(n for _, n in place), upto)

    for upto in range(len(outline.cuts) + 1):
        cut = {c.dim for c in outline.cuts[:upto]}
        found = dict.fromkeys((t.name for t in held), 0)
        before: dict[str, set[Tile]] = {t.name: set() for t in held}
        known: dict[str, dict[Tile, tuple[int, int]]] = {t.name: {} for t in held}
        stays = True  # whether all items of the wave before ended together
        for wave in waves:
            tiles, step, turn = {}, {}, {}
            for t in held:
                get, sizes = itemgetter(*t.dims), known[t.name]
                now = set(map(get, wave)) if len(t.dims) > 1 else {(get(x),) for x in wave}
                sizes.update((x, placed(t, x, upto)) for x in now if x not in sizes)
                last = before[t.name] - now if cut.isdisjoint(t.dims) else before[t.name]
                size, tiles[t.name] = sum(sizes[x][1] for x in now), now
                step[t.name] = size if cut.isdisjoint(t.dims) else 2 * size
                turn[t.name] = size + sum(sizes[x][1] for x in last)
            if not level.fits(step):
                break
            stays = stays and level.fits(turn)
            for t in held:
                is_kept = stays and cut.isdisjoint(t.dims)
                fresh = tiles[t.name] - before[t.name] if is_kept else tiles[t.name]
                found[t.name] += sum(known[t.name][x][0] for x in fresh)
            stays = all(len({item[dim][1] for item in wave}) == 1 for dim in cut)
            before = tiles
        else:
            return found
    return None


def in_rows(
    problem: Problem, groups: list[Group], inside: dict[str, int], level: Capacity
) -> list[dict[str, int]]:
    """Take outer spatial loops as a sequence of rows, each of a wave's items or more.

    What stays from row to row is there if three or four rows fit: waves run on into the next row.
    """
    at = next(i for i, (unit, _) in enumerate(groups) if unit in inside)
    unit, loops = groups[at]
    held = [tensor for tensor in problem.tensors if tensor.name not in level.passing]
    for k in range(1, len(loops)):
        view = view_of(problem, [*groups[:at], (None, loops[:k])], {})
        upto = len(view.cuts)
        lengths = {dim: {size} for dim, size in problem.sizes}
        for dim, step in (x for _, group in [*groups[:at], (None, loops[:k])] for x in group):
            lengths[dim] = {n for size in lengths[dim] for _, n in pieces(size, (step,))}
        items = math.prod(-(-min(lengths[dim]) // step) for dim, step in loops[k:])
        many = 3 if items >= 2 * inside[unit or ""] else 4
        cut = {c.dim for c in view.cuts}
        rows = {
            t.name: view.footprint(t, upto) * (1 if cut.isdisjoint(t.dims) else many) for t in held
        }
        if items >= inside[unit or ""] and level.fits(rows):
            return [{t.name: view.visits(t, view.run(t, upto)[1]) for t in held}]
    return []


def brought_in(
    problem: Problem,
    level: Level,
    groups: list[Group],
    units: dict[str, int],
    own: set[str],
    places: list[Any],
) -> dict[str, int]:
    """Count the elements of each tensor that a level brings in, as it promises."""
    capacity = capacity_of(problem, level)
    held = [tensor for tensor in problem.tensors if tensor.name not in capacity.passing]
    inside = {unit: n for unit, n in units.items() if unit not in own}
    view = view_of(problem, groups, inside)
    copies = 1 + (level.kind == "scratchpad" and level.double_buffered)
    depths = [
        upto
        for upto in range(view.start, len(view.cuts) + 1)
        if capacity.fits({t.name: copies * view.footprint(t, upto) for t in held})
    ]
    if level.kind == "scratchpad":
        upto = {place.tensor: sum(c.loop < place.position for c in view.cuts) for place in places}
        upto = upto or {t.name: depths[0] for t in held if depths}
        need = {t.name: copies * view.footprint(t, upto[t.name]) for t in held if t.name in upto}
        if len(need) < len(held) or not capacity.fits(need):
            raise ScheduleError(f"level '{level.name}': tiles do not fit")
        found = {}
        for t in held:
            _, stop, slide = view.run(t, upto[t.name])
            slides = slide is not None and level.halo_reuse
            found[t.name] = view.slid(t, stop) if slides else view.visits(t, stop)
        return found
    if depths and (view.is_even or depths[0] <= view.start):
        ways = [{t.name: view.kept(t, upto, capacity, held) for t in held} for upto in depths]
    elif any(unit in inside for unit, _ in groups) and not own:
        ways = in_rows(problem, groups, inside, capacity)
        ways = ways or [in_waves(problem, groups, inside, capacity) or {}]
    else:
        ways = []
    if not any(ways):  # nothing stays for certain
        ways = [{t.name: view_of(problem, groups, {}).visits(t, 2**30) for t in held}]
    weight = {t.name: t.element_bytes * (1 + (t.name == problem.output)) for t in held}
    return min(filter(None, ways), key=lambda way: sum(weight[t] * n for t, n in way.items()))


def value_of(problem: Problem, schedule: Schedule, arch: Arch, objective: str) -> Fraction:
    """Return the value of a schedule, exactly."""
    schedule.check(problem)
    rate, lanes = rate_of(problem, arch)
    lane, units = arch.compute.lane_unit, units_of(arch)
    units |= {lane: lanes} if lane else {}
    groups = groups_of(schedule, units)
    once = View(problem, (), 0).visits(problem.output_tensor, 0)

    def both(tensor: Tensor, count: int) -> tuple[int, int]:
        """Turn elements brought in into bytes read and written: the first time reads nothing."""
        is_output, size = tensor.name == problem.output, tensor.element_bytes
        return (count - is_output * once) * size, is_output * count * size

    moved: list[int] = []
    inner: dict[str, tuple[int, int]] = {}
    for level in reversed(arch.caches):
        own = own_units(arch, level)
        if not inner:  # what the units ask for, point by point
            view = view_of(problem, groups, {u: n for u, n in units.items() if u not in own})
            inner = {t.name: both(t, view.visits(t, len(view.cuts))) for t in problem.tensors}
        places = [place for place in schedule.places if place.level == level.name]
        counts = brought_in(problem, level, groups, units, own, places)
        found = {t.name: both(t, counts[t.name]) for t in problem.tensors if t.name in counts}
        if level.write_policy == "through" and level.accumulate == "level":
            found = {name: (reads, inner[name][1]) for name, (reads, _) in found.items()}
        inner = inner | found
        moved.insert(0, sum(reads + writes for reads, writes in inner.values()))
    has_lanes = any(unit == lane for unit, _ in groups if unit)
    seconds = count_steps(problem, groups, units) / (rate / lanes if has_lanes else rate)
    return resources(problem, arch, objective, seconds, moved)
