"""Schedules one step away from a good one: what else is nearly as good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.ops import drop_unit_loops
from loopsched.scheduler.tables import trip_classes


def variations(schedule: Schedule) -> Iterator[Schedule]:
    """List the schedules with one tile larger or smaller, or two loops swapped.

    Tiles go to the next extent with another trip count, or away; only loops
    of different dimensions that are both temporal, or of one unit, are swapped.

    Examples
    --------
    >>> from loopsched.nests.nest import Loop
    >>> nest = Schedule((Loop("M", 4), Loop("K", 2), Loop("M", 2)))
    >>> [str(other) for other in variations(nest)]
    ['M:4 K:2', 'K:2 M:4', 'K:2 M:4 M:2', 'M:4 M:2 K:2']
    """
    loops = schedule.loops
    for at, loop in enumerate(loops):
        outer = [other.extent for other in loops[:at] if other.dim == loop.dim]
        if outer:
            inner = schedule.steps[at]
            for extent in _next_extents(outer[-1], loop.extent, inner):
                yield _with(loops, at, replace(loop, extent=extent))
    for at, (first, second) in enumerate(pairwise(loops)):
        if first.dim != second.dim and first.unit == second.unit:
            swapped = (*loops[:at], second, first, *loops[at + 2 :])
            yield drop_unit_loops(Schedule(swapped))


def _with(loops: tuple[Loop, ...], at: int, loop: Loop) -> Schedule:
    return drop_unit_loops(Schedule((*loops[:at], loop, *loops[at + 1 :])))


def _next_extents(outer: int, extent: int, inner: int) -> list[int]:
    """Find the next smaller and larger extents, between those of the loops around."""
    classes = sorted({*trip_classes((outer,)), extent})
    here = classes.index(extent)
    near = [*classes[max(0, here - 1) : here], *classes[here + 1 : here + 2]]
    return [max(inner, min(outer, other)) for other in near]
