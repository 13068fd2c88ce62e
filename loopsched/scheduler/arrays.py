"""Starts for machines with units in units, or whose units can share a sum.

A *spread* says how many pieces of each dimension every unit works on side by
side.  Spreads are listed greedily: a unit takes as much of one dimension as it
has instances for, then of the next.  The best by compute steps, and then by
how often operands are copied, are built into schedules: the blocks of levels
between are either left out or the best body of multiples of what the units
inside want.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import permutations, product
from math import prod

from loopsched.machines.levels import Level
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.scheduler.allowed import Choice
from loopsched.scheduler.blocks import Block, compose
from loopsched.scheduler.body import Body
from loopsched.scheduler.space import BlockSlot, Space
from loopsched.scheduler.tables import Tables, multiples, tables_for

MAX_SPREADS = 18
MAX_THRIFTY = 8
MAX_DIMS = 3
MAX_FILLS = 160

Spread = tuple[dict[str, int], ...]
Bodies = Callable[[Level, Tables], Body | None]


@dataclass(frozen=True)
class Start:
    """A schedule and the choice of the space that it is."""

    schedule: Schedule
    choice: Choice


def array_starts(
    space: Space, units: Sequence[tuple[BlockSlot, int]], best_body: Bodies
) -> Iterator[Start]:
    """Build schedules for the spreads that promise most, best first.

    Parameters
    ----------
    space : Space
    units : sequence of (slot, count)
        The spatial blocks, outermost first, and instances in one of the next outer unit.
    best_body : callable
        Finds the best body of a level among given extents; None if none fits.
    """
    n_levels = len(space.slots) - len(units)
    for is_cut in sorted(product((False, True), repeat=n_levels), key=sum):
        for spread in spreads(space.problem, units):
            yield _build(space, spread, is_cut, best_body)


def spreads(problem: Problem, units: Sequence[tuple[BlockSlot, int]]) -> tuple[Spread, ...]:
    """List ways to spread a problem over units, the fewest steps first."""
    key = tuple((slot.dims, count) for slot, count in units)
    return _spreads(problem, key)


@lru_cache(maxsize=256)
def _spreads(
    problem: Problem, units: tuple[tuple[tuple[str, ...], int], ...]
) -> tuple[Spread, ...]:
    found: list[tuple[Spread, dict[str, int]]] = [((), dict(problem.size))]
    for dims, count in units:
        grown = []
        for spread, left in found:
            for fill in _fills(tuple((dim, left[dim]) for dim in dims if left[dim] > 1), count):
                after = {dim: -(-n // fill.get(dim, 1)) for dim, n in left.items()}
                grown.append(((*spread, fill), after))
        grown.sort(key=lambda pair: _rank(problem, *pair))
        found = grown[:MAX_FILLS]
    thrifty = sorted(found, key=lambda pair: prod(_rank(problem, *pair)[:2]))
    best = dict.fromkeys(
        str(spread) for spread, _ in (*found[:MAX_SPREADS], *thrifty[:MAX_THRIFTY])
    )
    known = {str(spread): spread for spread, _ in found}
    return tuple(known[name] for name in best)


def _rank(problem: Problem, spread: Spread, left: Mapping[str, int]) -> tuple[int, int, str]:
    """Order spreads: steps of a unit, then what all units hold at least."""
    side_by_side = {dim: prod(fill.get(dim, 1) for fill in spread) for dim in left}
    copied = sum(
        weight * prod(many for dim, many in side_by_side.items() if dim not in inside)
        for inside, weight in _weights(problem)
    )
    return prod(left.values()), copied, str(spread)


@lru_cache(maxsize=256)
def _weights(problem: Problem) -> tuple[tuple[frozenset[str], int], ...]:
    """Dimensions of each tensor, and the bytes that they span, those of the output twice."""
    size, found = problem.size, []
    for tensor in problem.tensors:
        inside = frozenset(tensor.dims)
        weight = tensor.element_bytes * (1 + (tensor.name == problem.output))
        found.append((inside, weight * prod(size[dim] for dim in inside)))
    return tuple(found)


@lru_cache(maxsize=4096)
def _fills(sizes: tuple[tuple[str, int], ...], count: int) -> tuple[dict[str, int], ...]:
    """List pieces a dimension that instances of one unit can take at once."""
    found: dict[tuple[tuple[str, int], ...], None] = {}
    for many in range(min(MAX_DIMS, len(sizes)) + 1):
        for chosen in permutations(sizes, many):
            free, fill = count, []
            for dim, size in chosen:
                pieces = -(-size // -(-size // min(size, free)))  # no more than do something
                if pieces > 1:
                    fill.append((dim, pieces))
                    free //= pieces
            found.setdefault(tuple(sorted(fill)))
    return tuple(dict(fill) for fill in found)


def _build(space: Space, spread: Spread, is_cut: Sequence[bool], best_body: Bodies) -> Start:
    """Put a spread and the bodies of levels together, from the memory inward."""
    problem = space.problem
    now = dict(problem.size)
    blocks: list[Block] = []
    chains: list[dict[str, int]] = []
    waiting, cuts = list(spread), list(is_cut)
    for slot in space.slots:
        if slot.unit is not None:
            fill = waiting.pop(0)
            inside = {dim: -(-now[dim] // n) for dim, n in fill.items()}
            block = Block(tuple(fill), tuple(inside.items()), slot.unit)
        else:
            best = partial(best_body, space.arch.level(slot.name))
            block = _level_block(problem, best, chains, waiting, now) if cuts.pop(0) else _NONE
        now.update(block.extents)
        blocks.append(block)
        chains.append(dict(now))
    return Start(compose(problem, blocks), _choice(space, blocks, chains))


_NONE = Block((), ())


def _level_block(
    problem: Problem,
    best: Callable[[Tables], Body | None],
    chains: Sequence[Mapping[str, int]],
    inside: Sequence[Mapping[str, int]],
    now: Mapping[str, int],
) -> Block:
    wanted = {dim: prod(fill.get(dim, 1) for fill in inside) for dim in now}
    candidates = tuple(
        multiples(now[dim], wanted[dim]) if wanted[dim] < now[dim] else (now[dim],)
        for dim in problem.dims
    )
    outer = tuple(tuple(one[dim] for one in chains) for dim in problem.dims)
    tables = tables_for(problem, outer if chains else None, candidates)
    body = best(tables)
    if body is None:
        return _NONE
    cut = {dim: extent for dim, extent in body.extents if extent < now[dim]}
    return Block(tuple(d for d in reversed(body.inward) if d in cut), tuple(cut.items()))


def _choice(space: Space, blocks: Sequence[Block], chains: Sequence[Mapping[str, int]]) -> Choice:
    """Say which point of the space some blocks are."""
    dims = space.problem.dims
    extents = tuple(tuple(one[dim] for one in chains) for dim in dims)
    orders = []
    before: Mapping[str, int] = space.problem.size
    for block, after in zip((*blocks, _NONE), (*chains, dict.fromkeys(dims, 1)), strict=True):
        cut = [dim for dim in dims if after[dim] < before[dim]]
        order = [dim for dim in block.order if dim in cut]
        orders.append((*order, *(dim for dim in cut if dim not in order)))
        before = after
    return Choice(extents, tuple(orders))
