"""Schedules one step away from a good one: what else is nearly as good."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from loopsched.nests.moves import Move
from loopsched.nests.nest import Schedule
from loopsched.nests.ops import drop_unit_loops
from loopsched.scheduler.tables import trip_classes


def variations(schedule: Schedule) -> Iterator[Schedule]:
    """List the schedules one of the `steps` away, without loops of one iteration.

    Examples
    --------
    >>> from loopsched.nests.nest import Loop
    >>> nest = Schedule((Loop("M", 4), Loop("K", 2), Loop("M", 2)))
    >>> [str(other) for other in variations(nest)]
    ['M:4 K:2', 'K:2 M:4', 'K:2 M:4 M:2', 'M:4 M:2 K:2']
    """
    nest = Schedule(schedule.loops)
    return (drop_unit_loops(step.apply(nest)) for step in steps(nest))


def steps(schedule: Schedule) -> Iterator[Move]:
    """List the moves that make one tile larger or smaller, or swap two loops.

    Tiles go to the next extent with another trip count, or away; only loops
    of different dimensions that are both temporal, or of one unit, are swapped.

    Examples
    --------
    >>> from loopsched.nests.nest import Loop
    >>> [str(step) for step in steps(Schedule((Loop("M", 4), Loop("K", 2), Loop("M", 2))))]
    ['resize 2 1', 'resize 2 4', 'interchange 0 1', 'interchange 1 2']
    """
    loops = schedule.loops
    for at, loop in enumerate(loops):
        outer = [other.extent for other in loops[:at] if other.dim == loop.dim]
        if outer:
            for extent in _next_extents(outer[-1], loop.extent, schedule.steps[at]):
                yield Move("resize", (at, extent))
    for at, (first, second) in enumerate(pairwise(loops)):
        if first.dim != second.dim and first.unit == second.unit:
            yield Move("interchange", (at, at + 1))


def _next_extents(outer: int, extent: int, inner: int) -> list[int]:
    """Find the next smaller and larger extents, between those of the loops around."""
    classes = sorted({*trip_classes((outer,)), extent})
    here = classes.index(extent)
    near = [*classes[max(0, here - 1) : here], *classes[here + 1 : here + 2]]
    return [max(inner, min(outer, other)) for other in near]
