"""Compute time of a schedule: steps of the machine's units, waves included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from loopsched.base.errors import ScheduleError, nearest
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import segment_lengths
from loopsched.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class Steps:
    """Multiply-accumulate steps that one unit makes, one after the other.

    Parameters
    ----------
    promised : int
        Every wave takes as long as the largest item of its list.
    least : int
        No assignment of the items in this order takes fewer: no edge item
        counts as a full one.
    """

    promised: int
    least: int


def compute_steps(problem: Problem, schedule: Schedule, instances: Mapping[str, int]) -> Steps:
    """Count the steps of the unit that works longest.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    instances : mapping of unit name to int
        How many of each unit there are inside one of the next outer unit,
        outermost unit first.

    Raises
    ------
    ScheduleError
        If a spatial loop names an unknown unit, or the loops of one unit are
        not adjacent, or a unit's loops are outside those of the unit around it.

    Examples
    --------
    Five items on four instances make two waves.

    >>> from loopsched.problems.builders import gemm
    >>> from loopsched.nests.notation import parse_schedule
    >>> problem = gemm(m=10, n=4, k=4)
    >>> nest = parse_schedule("M:10@SM N:4 K:4 M:2", problem)
    >>> compute_steps(problem, nest, {"SM": 4})
    Steps(promised=64, least=64)
    """
    check_spatial(schedule, tuple(instances))
    spread = dict.fromkeys([loop.dim for loop in schedule.loops if loop.unit is not None])
    where = {dim: at for at, dim in enumerate(spread)}
    lists = {tuple([problem.size[dim] for dim in spread]): (1, 1)}
    # The pieces of any other dimension add up to the whole of it.
    rest = math.prod([size for dim, size in problem.sizes if dim not in spread])
    loops = [
        pair for pair in zip(schedule.loops, schedule.steps, strict=True) if pair[0].dim in spread
    ]
    last = max((at for at, (loop, _) in enumerate(loops) if loop.is_spatial), default=-1)
    at = 0
    while at <= last:
        loop, step = loops[at]
        if loop.unit is None:
            lists = _split(lists, where[loop.dim], step)
            at += 1
            continue
        items: dict[int, tuple[int, ...]] = {}
        unit = loop.unit
        while at <= last and loops[at][0].unit == unit:
            dim = where[loops[at][0].dim]
            items[dim] = (*items.get(dim, ()), loops[at][1])
            at += 1
        lists = _run(lists, items, instances[unit])
    promised = rest * sum(math.prod(lengths) * many for lengths, (many, _) in lists.items())
    least = rest * sum(math.prod(lengths) * many for lengths, (_, many) in lists.items())
    units = {loop.unit for loop in schedule.loops if loop.unit is not None}
    side_by_side = math.prod(instances[unit] for unit in units)
    return Steps(promised, max(least, -(-problem.macs // side_by_side)))


Lists = dict[tuple[int, ...], tuple[int, int]]


def _split(lists: Lists, dim: int, step: int) -> Lists:
    """A temporal loop: each of its iterations is a list of its own."""
    found: Lists = {}
    for lengths, (promised, least) in lists.items():
        full, rest = divmod(lengths[dim], step)
        for length, trips in ((step, full), (rest, 1)):
            if length and trips:
                key = (*lengths[:dim], length, *lengths[dim + 1 :])
                before = found.get(key, (0, 0))
                found[key] = (before[0] + promised * trips, before[1] + least * trips)
    return found


def _run(lists: Lists, items: Mapping[int, tuple[int, ...]], instances: int) -> Lists:
    """Adjacent spatial loops: one list of items, run ``instances`` at a time."""
    found: Lists = {}
    known: dict[tuple[int, int], tuple[int, int, int]] = {}  # largest item, all, such as that
    for lengths, (promised, least) in lists.items():
        key = list(lengths)
        n_items, n_full = 1, 1
        for dim, extents in items.items():
            cut = (dim, lengths[dim])
            if cut not in known:
                pieces = segment_lengths(lengths[dim], extents)
                largest = max(pieces)
                known[cut] = largest, sum(pieces.values()), pieces[largest]
            key[dim], many, full = known[cut]
            n_items *= many
            n_full *= full
        waves, full_waves = -(-n_items // instances), -(-n_full // instances)
        before = found.get(tuple(key), (0, 0))
        found[tuple(key)] = (before[0] + promised * waves, before[1] + least * full_waves)
    return found


def check_spatial(schedule: Schedule, units: tuple[str, ...]) -> None:
    """Raise ScheduleError unless the spatial loops suit the machine's units."""
    faults: list[str] = []
    seen: list[str] = []
    before: str | None = None
    for loop in schedule.loops:
        if loop.unit is not None and loop.unit not in units:
            allowed = nearest(loop.unit, units) if units else "the machine has no such units"
            faults.append(f"loop '{loop}': unknown unit '{loop.unit}'; {allowed}")
        elif loop.unit is not None and loop.unit != before:
            if loop.unit in seen:
                faults.append(f"loop '{loop}': the loops of unit '{loop.unit}' are not adjacent")
            elif seen and units.index(loop.unit) < units.index(seen[-1]):
                faults.append(
                    f"loop '{loop}': loops of '{loop.unit}' belong outside those of '{seen[-1]}'"
                )
            seen.append(loop.unit)
        before = loop.unit
    ScheduleError.refuse("schedule", faults)
