"""Tiles placed one by one, walked literally: sets of elements, loaded and stored."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from oracle import Element, Moved, touched, walk

from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem


def tile_bytes(problem: Problem, schedule: Schedule, places: Mapping[str, int]) -> dict[str, int]:
    """Largest tile of each tensor."""
    steps = list(walk(problem, schedule))
    found = {}
    for tensor in problem.tensors:
        if tensor.name in places:
            visits = groupby(steps, key=lambda step, at=places[tensor.name]: step[0][:at])
            sizes = (
                len(touched(problem, (point for _, point in visit))[tensor.name])
                for _, visit in visits
            )
            found[tensor.name] = tensor.element_bytes * max(sizes)
    return found


def placed(
    problem: Problem,
    schedule: Schedule,
    places: Mapping[str, int],
    *,
    n_handed: int = 0,
    halo_reuse: bool = True,
    keeps: str = "sweep",
) -> Moved:
    """Walk all points in order; each tensor's tile is what its place encloses.

    A tile is replaced when a loop outside that indexes the tensor goes on; if that is
    the innermost one that goes on at all, and the window slides along it, what is there
    already is not loaded again: all that this sweep has loaded (``keeps="sweep"``), or
    the tile before (``keeps="tile"``).  The first ``n_handed`` loops hand out work: each
    of their iterations starts with nothing.  Of the output, what is there for the first
    time is not read; every tile that is replaced is written.
    """
    steps = list(walk(problem, schedule))
    reads, writes = {}, {}
    for tensor in problem.tensors:
        name, size = tensor.name, tensor.element_bytes
        if name not in places:
            continue
        at = places[name]
        goes_on = [
            i
            for i in range(n_handed, at)
            if tensor.is_indexed_by(schedule.loops[i].dim) and any(trip[i] for trip, _ in steps)
        ]
        upto = goes_on[-1] + 1 if goes_on else n_handed
        dim = schedule.loops[upto - 1].dim if goes_on else ""
        slides = halo_reuse and any(
            len(axis.terms) > 1 and dim in axis.dims for axis in tensor.axes
        )
        there: set[Element] = set()
        seen: set[Element] = set()
        before: tuple[int, ...] | None = None
        loaded = read = 0
        for key, visit in groupby(steps, key=lambda step, at=at: step[0][:at]):
            need = touched(problem, (point for _, point in visit))[name]
            if key[:upto] != before:
                if not (slides and before is not None and key[: upto - 1] == before[:-1]):
                    there = set()
                fresh = need - there
                there = there | need if keeps == "sweep" else need
                loaded += len(fresh)
                read += len(fresh & seen if name == problem.output else fresh)
                seen |= fresh
                before = key[:upto]
            assert need <= there
        reads[name], writes[name] = read * size, loaded * size * (name == problem.output)
    return Moved(reads, writes)
