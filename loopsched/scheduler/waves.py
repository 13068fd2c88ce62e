"""Waves: orders and barriers that end them with whole iterations; items that are one wave."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from loopsched.models.view import at_once, ends_with_iterations
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem

# Orders of spatial loops that are looked at.
MAX_PERMUTATIONS = 5040


def with_barriers(
    problem: Problem, schedule: Schedule, unit: str, instances: int
) -> Schedule | None:
    """Turn the spatial loops that no single wave completes into temporal ones.

    Waves run on across a list of items, so that one may end within a row of
    tiles and the next begin there.  With a temporal loop around as many rows as
    there are instances for, it does not, at the cost of idle instances.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    unit : str
        Whose spatial loops are meant; adjacent ones.
    instances : int

    Returns
    -------
    Schedule or None
        None if one wave takes the whole list, there is no list or more than
        one, or a dimension would have two temporal loops outside.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=64, n=48, k=8)
    >>> nest = parse_schedule("M:64@SM N:48@SM K:8 M:4 N:16", problem)
    >>> str(with_barriers(problem, nest, "SM", 7))
    'M:64 M:8@SM N:48@SM K:8 M:4 N:16'
    """
    loops, steps = schedule.loops, schedule.steps
    places = [i for i, loop in enumerate(loops) if loop.unit == unit]
    if not places or places[-1] - places[0] + 1 != len(places):
        return None
    size = dict(problem.size)
    lengths = []
    for loop, step in zip(loops, steps, strict=True):
        lengths.append(size[loop.dim])
        size[loop.dim] = min(size[loop.dim], step)
    trips = [-(-lengths[i] // steps[i]) for i in places]
    outside: list[Loop] = []
    inside: list[Loop] = []
    for i, trip, now in zip(places, trips, at_once(trips, instances), strict=True):
        loop = loops[i]
        if now > 1:
            inside.append(Loop(loop.dim, min(loop.extent, now * steps[i]), unit))
        if now < trip:
            outside.append(Loop(loop.dim, loop.extent))
    before = loops[: places[0]]
    dims = [loop.dim for loop in (*before, *outside)]
    if not outside or len(set(dims)) < len(dims):
        return None
    return Schedule((*before, *outside, *inside, *loops[places[-1] + 1 :]))


def aligned_orders(schedule: Schedule, unit: str, instances: int) -> Iterator[Schedule]:
    """Reorder the spatial loops so that every wave of a full list ends with a whole iteration.

    Parameters
    ----------
    schedule, unit, instances
        As for `with_barriers`.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=15, n=64, k=8)
    >>> nest = parse_schedule("M:15@SM N:64@SM K:8 M:3 N:16", problem)
    >>> [str(other) for other in aligned_orders(nest, "SM", 5)]
    ['N:64@SM M:15@SM K:8 M:3 N:16']
    """
    loops = schedule.loops
    places = [i for i, loop in enumerate(loops) if loop.unit == unit]
    if not places or places[-1] - places[0] + 1 != len(places):
        return
    spatial = loops[places[0] : places[-1] + 1]
    if len({loop.dim for loop in spatial}) < len(spatial):
        return
    trips = dict(zip(loops, schedule.trips, strict=True))
    for order in itertools.islice(itertools.permutations(spatial), MAX_PERMUTATIONS):
        if order != spatial and ends_with_iterations([{trips[loop]} for loop in order], instances):
            yield Schedule((*loops[: places[0]], *order, *loops[places[-1] + 1 :]))


def one_wave(problem: Problem, pieces: Mapping[str, int], steps: int) -> Problem | None:
    """Write the problem of the shortest item, each tensor as wide as its tiles in all items.

    If all items run at once, a body of the level they share holds, of each tensor, as many
    equal tiles as there are items along the dimensions that index it, and loops outside the
    body visit them together.  In one list all items of a dimension are alike but the last,
    which takes the rest; how long the others may be, and so how short the last, follows from
    the steps.  What a body holds and moves of items so short is no more than of any others
    (derived here; `tests/test_waves.py`).

    Parameters
    ----------
    problem : Problem
    pieces : mapping of str to int
        How many items there are along each dimension that is cut.
    steps : int
        Points of the largest item, at most.

    Returns
    -------
    Problem or None
        None if tiles of a tensor may overlap, or some are padding.

    Examples
    --------
    >>> from loopsched import gemm
    >>> found = one_wave(gemm(m=64, n=48, k=8, element_bytes=2), {"M": 4, "N": 5}, 1280)
    >>> found.sizes, [(tensor.name, tensor.element_bytes) for tensor in found.tensors]
    ((('M', 16), ('N', 8), ('K', 8)), [('A', 8), ('B', 10), ('C', 40)])
    """
    if not all(axis.is_plain for tensor in problem.tensors for axis in tensor.axes):
        return None
    least = {dim: -(-size // pieces.get(dim, 1)) for dim, size in problem.sizes}
    points, sizes = math.prod(least.values()), []
    for dim, size in problem.sizes:
        many, longest = pieces.get(dim, 1), max(least[dim], steps // (points // least[dim]))
        sizes.append((dim, max(1, size - (many - 1) * longest)))
    widths = {
        tensor.name: tensor.element_bytes * math.prod(pieces.get(dim, 1) for dim in tensor.dims)
        for tensor in problem.tensors
    }
    return replace(problem, sizes=tuple(sizes)).with_element_bytes(widths)


def least_s_of_lists(problem: Problem, pieces: Mapping[str, int], macs_per_s: float) -> float:
    """Bound the time of more lists than one, where equal items as long as the largest are so many.

    Beside the list with the largest item there is one of a position or more.

    Examples
    --------
    Sixteen rows in items of 4: lists of 15 and of 1 take one row longer than one list.

    >>> from loopsched import gemm
    >>> least_s_of_lists(gemm(m=16, n=10, k=8), {"M": 4, "N": 5}, 1.0)
    80.0
    """
    item = {dim: -(-size // pieces.get(dim, 1)) for dim, size in problem.sizes}
    points = math.prod(item.values())
    cut = [item[dim] for dim, many in pieces.items() if many > 1]
    return (points + points // max(cut)) / macs_per_s if cut else float("inf")
