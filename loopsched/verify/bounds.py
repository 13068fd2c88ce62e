"""Lower bounds for all schedules at once: what the leaves of a proof rest on (docs/proofs.md)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from itertools import permutations

from loopsched.arch import Arch, Level
from loopsched.problem import Axis, Problem
from loopsched.verify.machine import capacity_of, own_units, rate_of, units_of
from loopsched.verify.value import on_axis, reach, stored

Extents = tuple[int, ...]  # one of each dimension, in the problem's order
Pairs = list[tuple[int, int]]  # numbers of items, and their extents
Kept = tuple[tuple[frozenset[int], int | None], ...]  # each tensor's run, and what slides it


def least_moved(problem: Problem, arch: Arch) -> list[dict[str, tuple[int, int]]]:
    """Bound the bytes of each tensor, read and written, across each level's outer boundary."""
    sizes = problem.size
    found: list[dict[str, tuple[int, int]]] = []
    lone = not arch.compute.lane_unit and len(own_units(arch, arch.caches[-1])) == len(
        units_of(arch)
    )
    once, moved = {}, {}
    for t in problem.tensors:
        axes = [(a, tuple(sizes[d] for d in a.dims), ((),) * len(a.dims)) for a in t.axes]
        once[t.name] = every = math.prod(on_axis(*axis)[0] for axis in axes) * t.element_bytes
        if lone:  # no units share an access, so every point counts
            ones = [on_axis(a, n, ((1,),) * len(n))[0] for a, n, _ in axes]
            rest = math.prod(n for dim, n in problem.sizes if dim not in t.dims)
            every = math.prod(ones) * rest * t.element_bytes
        is_output = t.name == problem.output
        moved[t.name] = (every - is_output * once[t.name], is_output * every)
    for level in reversed(arch.caches):
        for t in problem.tensors:
            if t.name not in capacity_of(problem, level).passing:
                writes = moved[t.name][1] if passes_writes(level) else once[t.name]
                is_output = t.name == problem.output
                moved[t.name] = (0, writes) if is_output else (once[t.name], 0)
        found.insert(0, dict(moved))
    return found


def passes_writes(level: Level) -> bool:
    """Whether a level writes what the level inside it writes."""
    return level.write_policy == "through" and level.accumulate == "level"


@lru_cache(maxsize=65536)
def least_meetings(axis: Axis, sizes: Extents, at: int) -> list[int]:
    """Sum the least overlaps of neighbouring pieces along one term, for each number of them."""
    others = [
        (term, n) for i, (term, n) in enumerate(zip(axis.terms, sizes, strict=True)) if i != at
    ]
    marks = reach(tuple(term for term, _ in others), tuple(n for _, n in others))
    coefficient, width = axis.terms[at][1], marks.bit_length()
    if marks.bit_count() != width:
        return [0] * sizes[at]
    shared = []
    for x in range(1, sizes[at]):  # a piece that begins at x meets what the point before reaches
        low = axis.offset + coefficient * x
        high = low - coefficient + width
        if axis.size is not None:
            low, high = max(low, 0), min(high, axis.size)
        shared.append(max(0, high - low))
    sums = [0]
    for each in sorted(shared):
        sums.append(sums[-1] + each)
    return sums


class Bounds:
    """Bounds of one problem on one machine, for trees that cut the work of one level.

    Parameters
    ----------
    problem, arch : Problem, Arch
    level : Level
        Whose items and bodies a tree takes apart.
    spatial : dict of str to tuple of str
        Dimensions that the loops of each unit may have.
    """

    def __init__(
        self, problem: Problem, arch: Arch, level: Level, spatial: dict[str, tuple[str, ...]]
    ) -> None:
        self.problem, self.arch, self.level = problem, arch, level
        self.sizes: Extents = tuple(n for _, n in problem.sizes)
        self.place = {dim: at for at, dim in enumerate(problem.dims)}
        units, own = units_of(arch), own_units(arch, level)
        rate, lanes = rate_of(problem, arch)
        inside = [n for unit, n in units.items() if unit not in own]
        shared = [unit for unit in units if unit in own and units[unit] > 1]
        self.has_items = bool(own)
        self.items = units[shared[0]] if len(shared) == 1 else 0  # 0: items are not bounded
        cut = spatial.get(shared[0], ()) if self.items else ()
        self.spatial = sorted(
            (at for dim, at in self.place.items() if dim in cut and self.sizes[at] > 1),
            key=lambda at: self.sizes[at],
        )
        self.items = self.items if self.spatial and len(self.spatial) < 6 else 0
        self.others = math.prod(n for at, n in enumerate(self.sizes) if at not in self.spatial)
        self._lists: dict[object, list[Pairs]] = {}
        self.item_rate = rate * math.prod(inside)
        self.is_shared = math.prod(inside) * (lanes if arch.compute.lane_unit else 1) > 1
        self.ideal_s = problem.macs / (rate * math.prod(units.values()))
        self.capacity = capacity_of(problem, level)
        self.copies = 1 + (level.kind == "scratchpad" and level.double_buffered)
        self.least = least_moved(problem, arch)
        self.at = arch.caches.index(level)
        self.held = [t for t in problem.tensors if t.name not in self.capacity.passing]
        through, inner = passes_writes(level), self.least[self.at]
        self.fixed = sum(sum(inner[name]) for name in self.capacity.passing)
        self.parts: list[
            tuple[int, tuple[int, ...], list[tuple[dict[Extents, int], Axis, Extents]]]
        ] = []
        for t in self.held:
            is_output = t.name == problem.output
            if is_output:
                self.fixed += inner[t.name][1] if through else 0
                self.fixed -= (
                    math.prod(self.total(a, (1,) * len(a.dims)) for a in t.axes) * t.element_bytes
                )
            weight = t.element_bytes * (1 + (is_output and not through))
            rest = tuple(at for dim, at in self.place.items() if dim not in t.dims)
            compound: list[tuple[dict[Extents, int], Axis, Extents]] = []
            for a in t.axes:  # one dimension alone: each position is in one piece
                if a.is_compound:
                    compound.append(({}, a, tuple(self.place[d] for d in a.dims)))
                else:
                    weight *= self.total(a, (1,))
            self.parts.append((weight, rest, compound))
        points = {t.name: t.element_bytes * math.prod([lanes, *inside]) for t in self.held}
        n_dims = sum(n > 1 for n in self.sizes)  # whose orders can be listed
        self.has_bodies = n_dims <= 8 and (level.kind == "scratchpad" or self.capacity.fits(points))

    def total(self, axis: Axis, counts: Extents) -> int:
        """Bound the sum of stored positions over all pieces, however uneven, by their numbers."""
        sizes = tuple(self.problem.size[dim] for dim in axis.dims)
        whole = on_axis(axis, sizes, ((),) * len(sizes))[0]
        if len(sizes) == 1:
            return whole
        return whole + max(least_meetings(axis, sizes, k)[n - 1] for k, n in enumerate(counts))

    def moved(self, most: Extents, around: Extents, kept: Kept | None = None) -> int:
        """Bound what crosses the level's boundary: bodies and items of at most these extents."""
        outer = [-(-n // e) for n, e in zip(self.sizes, around, strict=True)]
        inner = outer
        if kept is not None:
            inner = [max(o, -(-n // e)) for o, n, e in zip(outer, self.sizes, most, strict=True)]
        found = self.fixed
        for i, (weight, rest, axes) in enumerate(self.parts):
            run, slide = kept[i] if kept else ((), None)
            for at in rest:
                weight *= outer[at] if at in run else inner[at]
            for totals, axis, dims in axes:
                key = tuple([outer[at] if at == slide else inner[at] for at in dims])
                if key not in totals:
                    totals[key] = self.total(axis, key)
                weight *= totals[key]
            found += weight
        return found

    def footprints(self, least: Extents) -> dict[str, int]:
        """Bound the bytes of each tensor that the largest body touches, copies included."""
        found = {}
        for t in self.held:
            most = math.prod(
                self.largest(a, [least[self.place[d]] for d in a.dims]) for a in t.axes
            )
            found[t.name] = most * t.element_bytes * self.copies
        return found

    def largest(self, axis: Axis, least: list[int]) -> int:
        """Bound what the largest piece touches on an axis: not below that of the first one."""
        if axis.size is None or not self.is_shared:
            return stored(axis, axis.offset, tuple(least))
        found = 0  # pieces side by side: along each dimension alone, the others in one place
        for at, (dim, c) in enumerate(axis.terms):
            start = axis.offset
            for other, k in axis.terms:  # the first that is stored
                if other != dim and start < 0:
                    start += k * min(self.problem.size[other] - 1, -(start // k))
            if start >= 0:
                alone = replace(axis, terms=((dim, c),))
                found = max(found, stored(alone, start, (least[at],)))
        return found

    def takes(self, least: Extents, most: Extents, steps: int) -> bool:
        """Whether items between these extents take so many steps, however they are listed."""
        *first, last = self.spatial
        ranges = tuple([(at, least[at], most[at]) for at in first])
        if ranges not in self._lists:
            self._lists[ranges] = self._ways(ranges)
        ends, items = self._ends(last, least[last], most[last]), self.items
        need = -(-steps // self.others)
        for lists in self._lists[ranges]:
            for end in ends:
                if sum([-(-n * k // items) * e * m for n, e in lists for k, m in end]) < need:
                    return False
        return True

    def _ways(self, ranges: tuple[tuple[int, int, int], ...]) -> list[Pairs]:
        """List the ways to make lists along some dimensions: numbers of items, and extents."""
        ways: list[Pairs] = [[(1, 1)]]
        for each in ranges:
            ends = self._ends(*each)
            ways = [
                [(n * k, e * m) for n, e in way for k, m in end] for way in ways for end in ends
            ]
        return ways

    def _ends(self, at: int, low: int, high: int) -> list[Pairs]:
        """Bound the ways to list items of a dimension; the rest may be in a list of its own."""
        n, whole = self.sizes[at], self.sizes[at] // high
        one_list = [(-(-n // high), low)]
        if high == n or (low == high and n % high == 0):
            return [one_list]
        if n // (low if n % low else low + 1) > whole:
            return [[(whole, low)]]
        rest = n - whole * high
        return [one_list, [(whole, high), (1, rest)] if rest else [(whole, high)]]

    def classes(self) -> list[Kept]:
        """List what loops around a body can leave in place, less what is never better."""
        dims = [self.place[dim] for dim, n in self.problem.sizes if n > 1]
        halo = self.level.kind == "cache" or self.level.halo_reuse
        indexed = [{self.place[d] for d in t.dims} for t in self.held]
        windows = [
            {self.place[d] for a in t.axes if a.is_compound and halo for d in a.dims}
            for t in self.held
        ]
        found: set[Kept] = set()
        for order in permutations(dims):
            kept = []
            for index, window in zip(indexed, windows, strict=True):
                at = next((i for i, dim in enumerate(order) if dim in index), len(order))
                slides = at < len(order) and order[at] in window
                kept.append((frozenset(order[:at]), order[at] if slides else None))
            found.add(tuple(kept))
        best = [x for x in found if not any(x != y and _is_within(x, y) for y in found)]
        return sorted(best, key=lambda x: [(sorted(run), -1 if s is None else s) for run, s in x])


def _is_within(one: Kept, other: Kept) -> bool:
    return all(a <= b and s in (None, r) for (a, s), (b, r) in zip(one, other, strict=True))
