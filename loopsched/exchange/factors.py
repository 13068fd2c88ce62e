"""Schedules in factors: how often each loop runs, instead of what it covers.

Timeloop, ZigZag and TVM split a dimension into factors, so that each tile is
a whole number of the next smaller tiles, and only the last one of the whole
dimension may be cut short.  Tiles that do not divide the tile around them
have no such form; they are rounded up, and that is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopsched.nests.nest import Loop, Schedule


@dataclass(frozen=True, slots=True)
class Factor:
    """One loop in factors.

    Parameters
    ----------
    dim : str
    trips : int
        Iterations over a full tile.
    last : int
        Iterations in the last tile of every loop around it.
    unit : str or None
        As of a loop.

    Examples
    --------
    >>> str(Factor("P", 7, 3)), str(Factor("P", 4, 4))
    ('P=7,3', 'P=4')
    """

    dim: str
    trips: int
    last: int
    unit: str | None = None

    def __str__(self) -> str:
        text = f"{self.dim}={self.trips}"
        return text if self.last == self.trips else f"{text},{self.last}"


def rounded(schedule: Schedule) -> tuple[Schedule, tuple[str, ...]]:
    """Round tiles up to whole numbers of the next smaller ones.

    Returns
    -------
    (Schedule, tuple of str)
        What factors can say, and one sentence for each tile that was changed.

    Examples
    --------
    >>> nest = Schedule((Loop("P", 10), Loop("P", 7), Loop("P", 3)))
    >>> rounded(nest)
    (Schedule(loops=(Loop(dim='P', extent=10, unit=None), Loop(dim='P', extent=9, unit=None),
    Loop(dim='P', extent=3, unit=None)), places=()),
    ('tile P:7 becomes P:9, a multiple of P:3',))
    """
    whole = {loop.dim: loop.extent for loop in reversed(schedule.loops)}
    inner = dict.fromkeys(whole, 1)
    first = {loop.dim: place for place, loop in reversed(list(enumerate(schedule.loops)))}
    loops, lost = [], []
    for place in range(len(schedule.loops) - 1, -1, -1):
        loop = schedule.loops[place]
        step = inner[loop.dim]
        extent = loop.extent
        if place != first[loop.dim]:
            # A tile that would reach beyond the dimension is the dimension.
            extent = min(-(-loop.extent // step) * step, whole[loop.dim])
            if extent != loop.extent:
                lost.append(
                    f"tile {loop.dim}:{loop.extent} becomes {loop.dim}:{extent}, "
                    f"a multiple of {loop.dim}:{step}"
                )
        loops.append(Loop(loop.dim, extent, loop.unit))
        inner[loop.dim] = extent
    return Schedule(tuple(reversed(loops))), tuple(reversed(lost))


def factors(schedule: Schedule) -> tuple[Factor, ...]:
    """Write a schedule whose tiles nest in whole numbers as factors.

    Examples
    --------
    >>> nest = Schedule((Loop("P", 10), Loop("K", 4), Loop("P", 3)))
    >>> [str(factor) for factor in factors(nest)]
    ['P=4', 'K=4', 'P=3,1']
    """
    left = {loop.dim: loop.extent - 1 for loop in reversed(schedule.loops)}
    found = []
    for loop, step, trips in zip(schedule.loops, schedule.steps, schedule.trips, strict=True):
        last, left[loop.dim] = divmod(left[loop.dim], step)
        found.append(Factor(loop.dim, trips, last + 1, loop.unit))
    return tuple(found)


def from_factors(found: tuple[Factor, ...], sizes: Mapping[str, int]) -> Schedule:
    """Write factors as loops, without those that run once.

    The outermost loop of a dimension covers its size, whatever its factors
    multiply to.

    Examples
    --------
    >>> nest = from_factors((Factor("P", 4, 4), Factor("P", 3, 1)), {"P": 10})
    >>> str(nest)
    'P:10 P:3'
    """
    inner = dict.fromkeys(sizes, 1)
    loops: list[Loop] = []
    for factor in reversed(found):
        if factor.trips > 1:
            inner[factor.dim] *= factor.trips
            extent = min(inner[factor.dim], sizes[factor.dim])
            loops.append(Loop(factor.dim, extent, factor.unit))
    loops.reverse()
    seen: set[str] = set()
    for place, loop in enumerate(loops):
        if loop.dim not in seen:
            loops[place] = Loop(loop.dim, sizes[loop.dim], loop.unit)
        seen.add(loop.dim)
    return Schedule(tuple(loops))
