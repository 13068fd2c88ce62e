"""Lower bounds for all schedules at once: what the leaves of a proof rest on (docs/proofs.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, combinations, pairwise, permutations

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
    """Bound the ways to list items of a dimension; the rest may be in a list of its own.

    Let the largest item be e, of low to high.  With all other dimensions fixed, n items of
    length m cost m * g(n), where g does not fall and g(a + b) <= g(a) + g(b).  Lists of items
    of e hold N in all, and cost e * g(N) or more; shorter items cover what is left, at g(1) a
    position.  If N >= ceil(n / e), one list of ceil(n / e) items costs no more.  If
    N = floor(n / e) - k, shorter items cover k * e + n % e positions or more, and
    e * g(N) + k * e * g(1) >= e * g(N + k): a list of floor(n / e) items and one for the rest
    cost no more.  So these two ways are enough.  The first costs no less than ceil(n / high)
    items of low.  The second falls with e while floor(n / e) stays the same, which it does if
    floor((n - 1) / low) == floor(n / high), but at a low that divides n, where both ways are
    one; so high is exact there.  Elsewhere, and where high divides n, floor(n / high) items
    of low are a bound.
    """
    one, whole = [(-(-n // high), low)], n // high
    if (n - 1) // low > whole or n % high == 0:  # of numbers that differ, the least; or no rest
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
        rate, lanes = readers.rate_of(problem, arch), readers.lanes_of(problem, arch)
        inside = math.prod(n for unit, n in units.items() if unit not in own)
        self.item_rate, self.all_rate = rate * inside, rate * math.prod(units.values())
        self.inside, self.at = inside * lanes, arch.caches.index(level)
        many = [unit for unit in units if unit in own and units[unit] > 1]
        listed = spatial[many[0]] if len(many) == 1 else ()
        cut = [at for at, (dim, n) in enumerate(problem.sizes) if dim in listed and n > 1]
        self.spatial = sorted(cut, key=lambda at: self.sizes[at])
        self.items = units[many[0]] if self.spatial else 0  # 0: steps are not bounded
        self.others = math.prod(n for at, n in enumerate(self.sizes) if at not in self.spatial)
        self.capacity, self.copies = readers.capacity_of(problem, level), 1 + level.double_buffered
        self.held = self.capacity.held(problem)
        single = {t.name: t.element_bytes * self.inside for t in self.held}
        self.has_bodies = level.kind == "scratchpad" or self.capacity.fits(single)
        self.sums = {}
        for t in problem.tensors:
            sums = [totals(a, tuple(problem.size[d] for d in a.dims)) for a in t.axes]
            dims = [tuple(map(problem.dims.index, a.dims)) for a in t.axes]
            others = [at for at, dim in enumerate(problem.dims) if dim not in t.dims]
            self.sums[t.name] = others, list(zip(sums, dims, strict=True))
        every = [readers.capacity_of(problem, each).held(problem) for each in arch.caches]
        brought = [{t.name: self.brought(t, [1] * len(self.sizes)) for t in held} for held in every]
        self.least = boundaries(problem, arch, points(problem, problem.tensors), brought)
        both = "" if readers.passes_writes(level) else problem.output
        self.weights = {t.name: t.element_bytes * (1 + (t.name == both)) for t in self.held}
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

    def moved(self, least: Extents, most: Extents, around: Extents, kept: Kept | None) -> int:
        """Bound what crosses the level's boundary: bodies between extents, in items ``around``."""
        outer = [-(-n // item) for n, item in zip(self.sizes, around, strict=True)]
        inner = [-(-n // e) for n, e in zip(self.sizes, map(min, most, around), strict=True)]
        found = self.fixed
        for i, t in enumerate(self.held):
            along = {*kept[i][0], kept[i][1]} - {-1} if kept else set()
            ways = self.reused(least, [at for at in sorted(along) if inner[at] > outer[at]])
            pieces = [[outer[i] if i in way else n for i, n in enumerate(inner)] for way in ways]
            found += self.weights[t.name] * min(self.brought(t, each) for each in pieces)
        return found

    def reused(self, least: Extents, along: list[int]) -> list[tuple[int, ...]]:
        """List the dimensions along which bodies of these extents or more may leave a tensor.

        ``along``: those of its run and slide along which bodies outnumber items.  In a cache, two
        bodies must fit as well: whatever part of the run a schedule cuts and keeps is a subset
        along which they did, so that the least over all such subsets is a bound.
        """
        if not along or self.level.kind == "scratchpad" or self.stays(least, tuple(along)):
            return [tuple(along)]
        some = (each for n in range(len(along)) for each in combinations(along, n))
        return [each for each in some if self.stays(least, each)] or [()]

    def can_be(self, least: Extents, kept: Kept) -> bool:
        """Whether bodies may be so long: they fit, or are single points side by side."""
        return self.stays(least, ()) if kept else math.prod(least) <= self.inside

    def stays(self, least: Extents, along: tuple[int, ...]) -> bool:
        """Whether bodies of these extents or more may fit, with the next along dimensions.

        Two bodies take no less than what is asked: along one dimension, neighbours cut from one
        piece are at least one position longer together than one alone; along more, tensors that
        these index count twice, and twice a footprint is no less than that of a body and one
        more position, which lies in some other body.
        """
        sizes = self.footprints(tuple([n + (along == (at,)) for at, n in enumerate(least)]))
        moving = {self.problem.dims[at] for at in along if len(along) > 1}
        two = {t.name: sizes[t.name] * (2 - moving.isdisjoint(t.dims)) for t in self.held}
        return self.capacity.fits(two)

    def footprints(self, least: Extents) -> dict[str, int]:
        """Bound the bytes of each tensor that the largest body touches, copies included.

        On each axis, not below what the first body touches; of bodies side by side, which may
        be anywhere, all but what the whole axis has outside what is stored.  c pieces of extent x
        at once count as an extent c * x, and no more than a body around them: there are
        no fewer than ceil(n / (c * x)) in turn, and translates of a piece touch as many
        positions as a stretch of c * x, or more.
        """
        found = {}
        for t in self.held:
            found[t.name] = t.element_bytes * self.copies
            for axis in t.axes:
                region = tuple(least[self.problem.dims.index(dim)] for dim in axis.dims)
                whole = tuple(self.problem.size[dim] for dim in axis.dims)
                free = replace(axis, size=None) if self.inside > 1 else axis
                outside = touched(free, whole) - touched(axis, whole)
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
        """List what loops around a body can leave in place, less what is never better.

        One is never better if, for each tensor, another has all of its run, and its slide or a
        slide where it has none: that one's bound is lower in every box.  The rest is sorted,
        tensor by tensor, by the places of the run's dimensions in the problem's sizes, then the
        slide's, none first.  Last nothing, of single points side by side, at most one for each
        unit and lane inside, where a cache may not hold one of each.
        """
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
        best.sort(key=lambda each: [(sorted(run), slide) for run, slide in each])
        return best + [()] * (not self.has_bodies)
