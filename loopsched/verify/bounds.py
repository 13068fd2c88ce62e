"""Lower bounds for all schedules at once: what the leaves of a proof rest on (docs/proofs.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, pairwise, permutations

from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.verify import readers
from loopsched.verify.readers import Spatial
from loopsched.verify.value import boundaries, on_axis, points, resources, stored

Extents = tuple[int, ...]  # one of each dimension, in the problem's order
Kept = tuple[tuple[frozenset[int], int], ...]  # each tensor's run, and what slides it or -1
Lists = list[tuple[int, int]]  # numbers of items, and their extents


@lru_cache(maxsize=4096)
def totals(axis: Axis, sizes: Extents) -> Callable[[Extents], int]:
    """Bound the sum of an axis' stored positions over all pieces, by the numbers of pieces.

    It is that of the whole and, along any one term, of the least overlaps of neighbours.
    """
    spans, sums = tuple((0, n) for n in sizes), []
    for at, n in enumerate(sizes if axis.is_compound else ()):
        marks = (stored(axis, (*spans[:at], (x, 1), *spans[at + 1 :])) for x in range(n))
        shared = [(one & other).bit_count() for one, other in pairwise(marks)]
        sums.append(list(accumulate(sorted(shared), initial=0)))
    whole = touched(axis, sizes)
    return cache(lambda n: whole + max((x[n[i] - 1] for i, x in enumerate(sums)), default=0))


@lru_cache(maxsize=65536)
def lists_of(n: int, low: int, high: int) -> list[Lists]:
    """Bound the ways to list items of a dimension; the rest may be in a list of its own."""
    one, whole = [(-(-n // high), low)], n // high
    if (n - 1) // low > whole:  # of numbers that differ, the least
        return [[(whole, low)]]
    return [one, [(whole, high), (1, n - whole * high)]]


@lru_cache(maxsize=4096)
def ways_of(ranges: tuple[tuple[int, int, int], ...]) -> list[Lists]:
    """Combine the ways to list items along several dimensions."""
    ways: list[Lists] = [[(1, 1)]]
    for each in ranges:
        ends = lists_of(*each)
        ways = [[(n * k, e * m) for n, e in way for k, m in end] for way in ways for end in ends]
    return ways


def touched(axis: Axis, lengths: Extents) -> int:
    """Count the stored positions of a region at the start of an axis."""
    return on_axis(axis, lengths, ((),) * len(lengths))[0]


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

    def __init__(self, problem: Problem, arch: Arch, level: Level, spatial: Spatial) -> None:
        self.problem, self.arch, self.level = problem, arch, level
        self.sizes: Extents = tuple(n for _, n in problem.sizes)
        units, own = readers.units_of(arch), readers.own_units(arch, level)
        rate, lane = readers.rate_of(problem, arch), arch.compute.lane_unit
        inside = math.prod(n for unit, n in units.items() if unit not in own)
        self.item_rate, self.all_rate = rate * inside, rate * math.prod(units.values())
        many = [unit for unit in units if unit in own and units[unit] > 1]
        listed = spatial[many[0]] if len(many) == 1 else ()
        cut = [at for at, (dim, n) in enumerate(problem.sizes) if dim in listed and n > 1]
        self.spatial = sorted(cut, key=lambda at: self.sizes[at])
        self.items = units[many[0]] if self.spatial else 0  # 0: steps are not bounded
        self.others = math.prod(n for at, n in enumerate(self.sizes) if at not in self.spatial)
        inside *= max(1, int(rate / Fraction(arch.compute.clock_hz))) if lane else 1
        self.is_shared = inside > 1
        self.capacity, self.copies = readers.capacity_of(problem, level), 1 + level.double_buffered
        self.held = self.capacity.held(problem)
        single = {t.name: t.element_bytes * inside for t in self.held}
        self.has_bodies = level.kind == "scratchpad" or self.capacity.fits(single)
        self.sums = {}
        for t in problem.tensors:
            sums = [totals(a, tuple(problem.size[d] for d in a.dims)) for a in t.axes]
            dims = [tuple(map(problem.dims.index, a.dims)) for a in t.axes]
            others = [at for at, dim in enumerate(problem.dims) if dim not in t.dims]
            self.sums[t.name] = others, list(zip(sums, dims, strict=True))
        once = {t.name: self.brought(t, [1] * len(self.sizes)) for t in problem.tensors}
        every = [readers.capacity_of(problem, each).held(problem) for each in arch.caches]
        brought = [{t.name: once[t.name] for t in held} for held in every]
        if len(readers.own_units(arch, arch.caches[-1])) == len(units) and not lane:
            once = points(problem, problem.tensors)  # none share an access
        self.least, self.at = boundaries(problem, arch, once, brought), arch.caches.index(level)
        self.weights = {t.name: t.element_bytes for t in self.held}
        if problem.output in self.weights and not readers.passes_writes(level):
            self.weights[problem.output] *= 2
        least = sum(n * brought[self.at][name] for name, n in self.weights.items())
        self.fixed = sum(map(sum, self.least[self.at].values())) - least

    def brought(self, tensor: Tensor, pieces: list[int]) -> int:
        """Bound the elements of a tensor that come in, by the numbers of pieces."""
        others, axes = self.sums[tensor.name]
        sums = [total(tuple([pieces[at] for at in dims])) for total, dims in axes]
        return math.prod([pieces[at] for at in others]) * math.prod(sums)

    def value(self, objective: str, steps: int, moved: int) -> Fraction:
        """Bound the objective by a number of steps and the bytes that cross the tree's level."""
        level_bytes = [sum(map(sum, each.values())) for each in self.least]
        level_bytes[self.at] = max(level_bytes[self.at], moved)
        seconds = max(self.problem.macs / self.all_rate, steps / self.item_rate)
        return resources(self.problem, self.arch, objective, seconds, level_bytes)

    def moved(self, most: Extents, around: Extents, kept: Kept | None) -> int:
        """Bound what crosses the level's boundary: bodies and items of at most these extents."""
        outer = [-(-n // item) for n, item in zip(self.sizes, around, strict=True)]
        inner = [-(-n // e) for n, e in zip(self.sizes, map(min, most, around), strict=True)]
        found = self.fixed
        for i, t in enumerate(self.held):
            pieces = inner.copy()
            for at in (*kept[i][0], kept[i][1]) if kept else ():
                pieces[at] = outer[at] if at >= 0 else pieces[at]
            found += self.weights[t.name] * self.brought(t, pieces)
        return found

    def footprints(self, least: Extents) -> dict[str, int]:
        """Bound the bytes of each tensor that the largest body touches, copies included.

        On each axis, not below what the first body touches; of bodies side by side, which may
        be anywhere, all but what the whole axis has outside what is stored.
        """
        found = {}
        for t in self.held:
            found[t.name] = t.element_bytes * self.copies
            for axis in t.axes:
                region = tuple(least[self.problem.dims.index(dim)] for dim in axis.dims)
                whole = tuple(self.problem.size[dim] for dim in axis.dims)
                free = replace(axis, size=None) if self.is_shared else axis
                outside = touched(free, whole) - touched(axis, whole) if self.is_shared else 0
                found[t.name] *= max(0, touched(free, region) - outside)
        return found

    def steps(self, least: Extents, most: Extents) -> Iterator[int]:
        """Bound the steps of a unit's items between these extents, for each way to list them."""
        *first, last = [(self.sizes[at], least[at], most[at]) for at in self.spatial]
        for lists in ways_of(tuple(first)):
            for end in lists_of(*last):
                steps = [-(-n * k // self.items) * e * m for n, e in lists for k, m in end]
                yield sum(steps) * self.others

    def classes(self) -> list[Kept]:
        """List what loops around a body can leave in place, less what is never better."""
        slides, place = self.level.kind == "cache" or self.level.halo_reuse, self.problem.dims.index
        found: set[Kept] = set()
        for order in permutations(at for at, n in enumerate(self.sizes) if n > 1):
            kept = []
            for t in self.held:
                first = next((at for at in order if self.problem.dims[at] in t.dims), -1)
                run = order[: order.index(first)] if first >= 0 else order
                windows = {place(d) for a in t.axes if a.is_compound and slides for d in a.dims}
                kept.append((frozenset(run), first if first in windows else -1))
            found.add(tuple(kept))

        def is_within(one: Kept, other: Kept) -> bool:
            pairs = zip(one, other, strict=True)
            return one != other and all(a <= b and s in (-1, r) for (a, s), (b, r) in pairs)

        best = [one for one in found if not any(is_within(one, other) for other in found)]
        return sorted(best, key=lambda each: [(sorted(run), slide) for run, slide in each])
