"""Schedules drawn at random, and climbs from them to better neighbours."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate

from loopsched.scheduler.allowed import Allowed, Choice, parts
from loopsched.scheduler.counting import counter
from loopsched.scheduler.ranking import Rank, Ranking
from loopsched.scheduler.space import Space


def draws(space: Space, rng: random.Random) -> Iterator[tuple[Allowed, Choice]]:
    """Draw schedules, each as likely as any other."""
    counted = [counter(part) for part in parts(space)]
    sizes = [each.size for each in counted]
    while True:
        one = counted[0]
        if len(counted) > 1:
            mark = rng.randrange(sum(sizes))
            one = next(o for o, end in zip(counted, accumulate(sizes), strict=True) if mark < end)
        yield one.limits, one.draw(rng)


def climb(found: Ranking, rng: random.Random, samples: int) -> None:
    """Climb from random starts until ``samples`` are scored."""
    drawn = draws(found.space, rng)
    while found.n_scored < samples:
        limits, start = next(drawn)
        climb_from(found, limits, start, rng, samples)


def climb_from(
    found: Ranking,
    limits: Allowed,
    start: Choice,
    rng: random.Random,
    samples: int,
    enough: float = 0.0,
) -> None:
    """Move to better neighbours until there are none, or ``samples`` are scored.

    A value of the objective that is as low as ``enough`` ends it, too.
    """
    here = start
    height: Rank | None = found.add(limits.schedule(here))
    while True:
        for neighbour in neighbours(limits, here, rng):
            if found.n_scored >= samples or found.least <= enough:
                return
            score = found.add(limits.schedule(neighbour))
            if score is not None and (height is None or score < height):
                here, height = neighbour, score
                break
        else:
            return


def neighbours(limits: Allowed, choice: Choice, rng: random.Random) -> Iterator[Choice]:
    """List the choices one step away, in random order.

    A step makes the extent of one dimension inside one block larger or
    smaller, to the next trip count or about double or half, or swaps two loops
    next to each other.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler.allowed import allowed, space_of
    >>> limits = allowed(space_of(gemm(m=4, n=2, k=1), buffer_arch(capacity_bytes=64)))
    >>> here = Choice(((2,), (2,), (1,)), (("M",), ("M", "N")))
    >>> found = [str(limits.schedule(step)) for step in neighbours(limits, here, random.Random(0))]
    >>> "M:4 N:2 M:2" in found
    True
    """
    moves: list[tuple[int, int, int]] = []
    for row, (_, size) in enumerate(limits.problem.sizes):
        for at, extent in enumerate(choice.extents[row]):
            moves += [(row, at, new) for new in _near(limits, row, at, size, extent)]
    swaps = [
        (-1, at, left)
        for at, order in enumerate(choice.orders)
        for left in range(len(limits.places[at].lead), len(order) - 1)
        if order[left + 1] not in limits.inside[order[left]]
    ]
    steps = moves + swaps
    rng.shuffle(steps)
    for row, at, new in steps:
        if row < 0:
            yield _swapped(choice, at, new)
            continue
        chain = _fitted(limits, row, choice.extents[row], at, new)
        if chain is not None:
            yield _with_chain(limits, choice, row, chain, rng)


def _near(limits: Allowed, row: int, at: int, size: int, extent: int) -> list[int]:
    import numpy as np

    known = limits.extents[row][at]
    trips = -(-size // extent)
    targets = [2 * extent, -(-extent // 2), -(-size // (trips + 1)), extent + 1, extent - 1]
    if trips > 1:
        targets.append(-(-size // (trips - 1)))
    places = np.searchsorted(known, np.array(targets))
    places = np.clip(places, 0, len(known) - 1)
    return sorted({int(known[place]) for place in places} - {extent})


def _fitted(
    limits: Allowed, row: int, chain: tuple[int, ...], at: int, new: int
) -> tuple[int, ...] | None:
    """Change one extent of a chain, and the others as little as that asks for."""
    dim, size = limits.problem.sizes[row]
    wanted = [max(extent, new) if i < at else extent for i, extent in enumerate(chain)]
    wanted[at] = new
    outer, found = size, list[int]()
    for i, extent in enumerate(wanted):
        steps = limits.steps(row, i, outer)
        if len(steps) == 0:
            return None
        below = steps[steps <= extent]
        outer = int(below[-1] if len(below) else steps[0])
        found.append(outer)
    if found[at] != new or (dim in limits.places[-1].lead and found[-1] == 1):
        return None
    return tuple(found)


def _swapped(choice: Choice, at: int, left: int) -> Choice:
    order = list(choice.orders[at])
    order[left], order[left + 1] = order[left + 1], order[left]
    orders = (*choice.orders[:at], tuple(order), *choice.orders[at + 1 :])
    return Choice(choice.extents, orders)


def _with_chain(
    limits: Allowed, choice: Choice, row: int, chain: tuple[int, ...], rng: random.Random
) -> Choice:
    extents = (*choice.extents[:row], chain, *choice.extents[row + 1 :])
    orders = []
    for place, dims, was in zip(
        limits.places, limits.cut_dims(extents), choice.orders, strict=True
    ):
        order = [dim for dim in was if dim in dims]
        for dim in dims:
            if dim not in order:
                order.insert(rng.choice(_slots(limits, order, dim, len(place.lead))), dim)
        orders.append(tuple(order))
    return Choice(extents, tuple(orders))


def _slots(limits: Allowed, order: list[str], dim: str, first: int) -> list[int]:
    """Where a loop may enter an order."""
    inside = limits.inside
    low = max([first, *(at + 1 for at, other in enumerate(order) if dim in inside[other])])
    high = min([len(order), *(at for at, other in enumerate(order) if other in inside[dim])])
    return list(range(low, high + 1))
