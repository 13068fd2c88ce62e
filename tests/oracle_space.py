"""Every loop nest that a machine can run, and the least value of each objective over them.

Written without the scheduler.  A nest is any sequence of loops whose extents
shrink along each dimension: temporal loops of any dimension anywhere, any number
of them between two units, several of one dimension side by side; for each unit of
the machine at most one group of adjacent loops, or one of a single iteration, outer
units outside.  What a nest is worth, `loopsched.evaluate` says; what does not fit, it refuses.

`blocks_of` and `in_blocks` read the narrower space of one block of loops a level,
in which every dimension has at most one loop a block; `obeys` reads constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, factorial, prod

from loopsched import Constraints, Loop, Place, Problem, Schedule, evaluate
from loopsched.base.errors import ScheduleError
from loopsched.machines.arch import Arch
from loopsched.models.machine import roles

Nest = tuple[Loop, ...]
Unit = tuple[str, tuple[str, ...]]
OBJECTIVES = ("time", "dram_bytes", "energy", "edp")


# Nests --------------------------------------------------------------------------


def chains(size: int) -> Iterator[tuple[int, ...]]:
    """List the extents of one dimension's loops, outermost first: each starts with the size."""
    inner = range(size - 1, 1, -1)
    for many in range(len(inner) + 1):
        for chosen in combinations(inner, many):
            yield (size, *chosen)


def sequences(problem: Problem) -> Iterator[tuple[tuple[str, int], ...]]:
    """List every sequence of temporal loops that covers a problem, once."""
    free = [(dim, size) for dim, size in problem.sizes if size > 1]
    for chosen in product(*(chains(size) for _, size in free)):
        left = [[(dim, n) for n in chain] for (dim, _), chain in zip(free, chosen, strict=True)]
        yield from _merged(left)


def _merged(left: list[list[tuple[str, int]]]) -> Iterator[tuple[tuple[str, int], ...]]:
    if not any(left):
        yield ()
    for at, chain in enumerate(left):
        if chain:
            for rest in _merged([*left[:at], chain[1:], *left[at + 1 :]]):
                yield (chain[0], *rest)


def units_of(problem: Problem, arch: Arch, *, reductions: bool = True) -> list[Unit]:
    """List the units that can share work, outermost first, with the dims they may share.

    Parameters
    ----------
    reductions : bool
        Whether units inside a scratchpad that holds the output may share the sum of one
        element, too.
    """
    found = []
    around = 1
    counts = sorted(arch.spatial_units, key=lambda pair: pair[1])
    lanes = int(arch.compute.macs_per_cycle_per_unit[0][1])
    if arch.compute.lane_unit is not None:
        counts.append((arch.compute.lane_unit, counts[-1][1] * lanes))
    for unit, count in counts:
        outside = [level for level in arch.caches if level.instances < count]
        adds_up = reductions and bool(outside) and outside[-1].kind == "scratchpad"
        adds_up = adds_up and outside[-1].is_held(*roles(problem, problem.output_tensor))
        if count > around:
            found.append((unit, problem.dims if adds_up else problem.parallel_dims))
        around = count
    return found


def marked(loops: Sequence[tuple[str, int]], units: Sequence[Unit], start: int = 0) -> list[Nest]:
    """List the ways in which units may share a sequence of loops from ``start`` inward.

    A unit may also run a loop of one iteration, anywhere: all inside is then an item of
    its own, for one instance.  Which dimension such a loop names is all the same.
    """
    if not units:
        return [tuple(Loop(dim, extent) for dim, extent in loops)]
    (unit, dims), inner = units[0], units[1:]
    found = marked(loops, inner, start)
    for first in range(start, len(loops)):
        for end in range(first + 1, len(loops) + 1):
            if loops[end - 1][0] not in dims:
                break
            shared = tuple(Loop(dim, extent, unit) for dim, extent in loops[first:end])
            found += [(*nest[:first], *shared, *nest[end:]) for nest in marked(loops, inner, end)]
    for at in range(start, len(loops) + 1 if dims else 0):
        extent = next((n for dim, n in loops[at:] if dim == dims[0]), 1)
        one = Loop(dims[0], extent, unit)
        found += [(*nest[:at], one, *nest[at:]) for nest in marked(loops, inner, at)]
    return found


def all_nests(problem: Problem, units: Sequence[Unit]) -> Iterator[Nest]:
    """List every nest of a problem once."""
    for loops in sequences(problem):
        yield from marked(loops, units)


def n_nests(problem: Problem, n_units: int) -> int:
    """Bound the number of nests from above, quickly."""
    sizes = [size for _, size in problem.sizes if size > 1]
    total = 0
    for counts in product(*(range(1, size) for size in sizes)):
        loops = sum(counts)
        ways = factorial(loops) // prod(factorial(n) for n in counts)
        chosen = prod(comb(size - 2, n - 1) for size, n in zip(sizes, counts, strict=True))
        total += ways * chosen * (comb(loops + 2, 2) + 1) ** n_units
    return total


def passings(problem: Problem, arch: Arch) -> Iterator[tuple[Place, ...]]:
    """List what may pass: every set of the tensors that each level lets a schedule choose."""
    free = []
    for level in arch.caches:
        for tensor in problem.tensors:
            words = {*roles(problem, tensor)}
            if words & {*level.may_hold} and not words & {*(level.holds or ())}:
                free.append(Place(-1, level.name, tensor.name))
    for many in range(len(free) + 1):
        yield from combinations(free, many)


# Values -------------------------------------------------------------------------


@dataclass(frozen=True)
class Scored:
    """A schedule and its value under each objective that the machine has data for."""

    schedule: Schedule
    values: dict[str, float]


def scored(problem: Problem, arch: Arch, nests: Iterable[Nest | Schedule]) -> list[Scored]:
    """Score the nests that fit."""
    found = []
    for nest in nests:
        schedule = nest if isinstance(nest, Schedule) else Schedule(nest)
        try:
            score = evaluate(problem, schedule, arch, effort=0)
        except ScheduleError:
            continue
        values = {"time": score.time_s, "dram_bytes": float(score.dram_bytes)}
        if score.energy_pj is not None:
            values |= {"energy": score.energy_pj, "edp": score.energy_pj * score.time_s}
        found.append(Scored(schedule, values))
    return found


def least(nests: Iterable[Scored], objective: str) -> Scored | None:
    """Find the best of some nests; of equals, the shortest."""
    return min(
        nests,
        key=lambda one: (one.values[objective], len(one.schedule.loops), str(one.schedule)),
        default=None,
    )


# Blocks and constraints ---------------------------------------------------------


def blocks_of(problem: Problem, arch: Arch) -> list[tuple[str, str | None]]:
    """List the blocks of loops, outermost first, by name and unit; the last has no name."""
    units = [unit for unit, _ in units_of(problem, arch)]
    blocks: list[tuple[str, str | None]] = []
    for level in arch.caches:
        if level.instances > 1 and level.unit in units:
            units.remove(level.unit)
            blocks.append((level.unit, level.unit))
        blocks.append((level.name, None))
    return [*blocks, *((unit, unit) for unit in units), ("", None)]


def assignments(
    nest: Nest, blocks: Sequence[tuple[str, str | None]], *, once: bool
) -> Iterator[list[Nest]]:
    """Cut a nest into blocks; ``once``: every dimension at most once in each."""
    if not blocks:
        if not nest:
            yield []
        return
    for end in range(len(nest) + 1):
        part = nest[:end]
        if any(loop.unit != blocks[0][1] for loop in part):
            return
        if once and len({loop.dim for loop in part}) < end:
            return
        for rest in assignments(nest[end:], blocks[1:], once=once):
            yield [part, *rest]


def in_blocks(nest: Nest, blocks: Sequence[tuple[str, str | None]]) -> bool:
    """Whether a nest is one block a level, every dimension at most once in each."""
    return next(assignments(nest, blocks, once=True), None) is not None


def obeys(
    problem: Problem,
    nest: Nest,
    constraints: Constraints,
    blocks: Sequence[tuple[str, str | None]],
    *,
    once: bool = False,
) -> bool:
    """Whether a nest can be cut into blocks such that it satisfies all constraints."""
    size = problem.size
    if not all(_is_tile(constraints.tiles, size[loop.dim], loop.extent) for loop in nest):
        return False
    begin = constraints.prefix.split()
    if [str(loop) for loop in nest[: len(begin)]] != begin:
        return False
    if 1 in Schedule(nest).trips[: len(begin)]:  # a prefix means loops that go on
        return False
    shared = constraints.spatial
    if shared is not None and any(loop.unit and loop.dim not in shared for loop in nest):
        return False
    pairs = _closed(constraints.before)
    return any(
        all(_in_order(part, pairs) for part in parts)
        and _within(problem, parts, blocks, constraints)
        for parts in assignments(nest, blocks, once=once)
    )


def _is_tile(tiles: str, size: int, extent: int) -> bool:
    if extent == size or tiles == "all":
        return True
    return size % extent == 0 if tiles == "divisors" else bin(extent).count("1") == 1


def _closed(before: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    pairs = set(before)
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            return pairs
        pairs |= more


def _in_order(part: Nest, pairs: set[tuple[str, str]]) -> bool:
    return not any((inner.dim, outer.dim) in pairs for outer, inner in combinations(part, 2))


def _within(
    problem: Problem,
    parts: Sequence[Nest],
    blocks: Sequence[tuple[str, str | None]],
    constraints: Constraints,
) -> bool:
    """Whether the extents inside each block are within their bounds."""
    for dim, name, low, high in constraints.extents:
        at = [block for block, _ in blocks].index(name)
        inside = [loop.extent for part in parts[at + 1 :] for loop in part if loop.dim == dim]
        is_cut = any(loop.dim == dim for part in parts[: at + 1] for loop in part)
        extent = inside[0] if inside else 1 if is_cut else problem.size[dim]
        if not low <= extent <= high:
            return False
    return True
