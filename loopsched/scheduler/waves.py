"""Waves that end with whole iterations of a loop: by their order, or by a barrier."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from loopsched.models.view import at_once, ends_with_iterations
from loopsched.nest import Loop, Schedule
from loopsched.problem import Problem

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
    places = [i for i, loop in enumerate(loops) if loop.level == unit]
    if not places or places[-1] - places[0] + 1 != len(places):
        return None
    size = problem.size
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

    Yields
    ------
    Schedule

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=15, n=64, k=8)
    >>> nest = parse_schedule("M:15@SM N:64@SM K:8 M:3 N:16", problem)
    >>> [str(other) for other in aligned_orders(nest, "SM", 5)]
    ['N:64@SM M:15@SM K:8 M:3 N:16']
    """
    loops = schedule.loops
    places = [i for i, loop in enumerate(loops) if loop.level == unit]
    if not places or places[-1] - places[0] + 1 != len(places):
        return
    spatial = loops[places[0] : places[-1] + 1]
    if len({loop.dim for loop in spatial}) < len(spatial):
        return
    trips = dict(zip(loops, schedule.trips, strict=True))
    for order in itertools.islice(itertools.permutations(spatial), MAX_PERMUTATIONS):
        if order != spatial and ends_with_iterations([{trips[loop]} for loop in order], instances):
            yield Schedule((*loops[: places[0]], *order, *loops[places[-1] + 1 :]))
