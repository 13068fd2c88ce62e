"""Which tensors a level holds, and from which loop inward a scratchpad holds each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from loopsched.base.errors import ScheduleError, nearest
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.machine import NOTHING, own_units, roles, room_of
from loopsched.nests.nest import PASSES, Place, Schedule
from loopsched.problems.problem import Problem


def placed_in(places: Iterable[Place], level: str) -> tuple[Place, ...]:
    """List the places of one level's tiles; none if it holds all from one loop inward."""
    return tuple(place for place in places if place.level == level)


def resolved(problem: Problem, schedule: Schedule, arch: Arch) -> tuple[Schedule, Arch]:
    """Take a schedule's choice of passing tensors over into the machine.

    Returns
    -------
    schedule, arch
        Without marks of passing tensors; with levels that hold the others.

    Raises
    ------
    ScheduleError
        If the machine has no such level, or leaves no choice of that tensor there.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from loopsched import buffer_arch, gemm, parse_schedule
    >>> problem, arch = gemm(m=4, n=4, k=4), buffer_arch(capacity_bytes=64)
    >>> free = replace(arch, levels=(arch.memory, replace(arch.caches[0], may_hold=("A", "C"))))
    >>> nest = parse_schedule("[buffer -A] M:4 N:4 K:4", problem)
    >>> schedule, machine = resolved(problem, nest, free)
    >>> str(schedule), machine.caches[0].holds
    ('M:4 N:4 K:4', ('B', 'C'))
    """
    passing = tuple(place for place in schedule.places if place.position == PASSES)
    if not passing:
        return schedule, arch
    ScheduleError.refuse(f"schedule on '{arch.name}'", _passing_faults(problem, passing, arch))
    rest = tuple(place for place in schedule.places if place.position != PASSES)
    levels = (_keeping(problem, level, placed_in(passing, level.name)) for level in arch.levels)
    return replace(schedule, places=rest), replace(arch, levels=tuple(levels))


def _passing_faults(problem: Problem, passing: Sequence[Place], arch: Arch) -> Iterator[str]:
    levels = {level.name: level for level in arch.caches}
    for place in passing:
        level = levels.get(place.level)
        if level is None:
            yield (
                f"{place}: '{arch.name}' has no level '{place.level}'; "
                f"{nearest(place.level, levels)}"
            )
        elif place.tensor not in optional_tensors(problem, level):
            yield (
                f"{place}: '{level.name}' leaves no choice of '{place.tensor}'; its may_hold lists "
                f"what may pass: {' '.join(level.may_hold) or 'nothing'}"
            )


def optional_tensors(problem: Problem, level: Level) -> tuple[str, ...]:
    """List the tensors that a schedule may keep in a level or let pass."""
    return tuple(
        tensor.name
        for tensor in problem.tensors
        if any(word in level.may_hold for word in roles(problem, tensor))
        and not any(word in (level.holds or ()) for word in roles(problem, tensor))
    )


def _keeping(problem: Problem, level: Level, passing: Sequence[Place]) -> Level:
    """Build a level that certain tensors pass."""
    if not passing:
        return level
    names = {place.tensor for place in passing}
    words = {tensor.name: roles(problem, tensor) for tensor in problem.tensors}
    held = {
        name: known[0]
        for name, known in words.items()
        if name not in names and level.is_held(*known)
    }
    for name in sorted(names):
        if any(word in held.values() for word in words[name]):
            raise ScheduleError(
                f"level '{level.name}': '{name}' goes by a word that means another tensor, too; "
                "give the tensors other names"
            )
    buffers = dict(level.tensor_capacity_bytes)
    sizes = {word: [buffers[w] for w in words[name] if w in buffers] for name, word in held.items()}
    return replace(
        level,
        holds=tuple(dict.fromkeys(held.values())) or (NOTHING,),
        may_hold=(),
        tensor_capacity_bytes=tuple((word, found[0]) for word, found in sizes.items() if found),
    )


def check_places(problem: Problem, schedule: Schedule, arch: Arch) -> None:
    """Refuse places that a machine does not have.

    Raises
    ------
    ScheduleError
        If a place names a level that is unknown, a cache or the memory; if
        its tensor passes the level; if other tensors of the level have no
        place; if a place stands between loops of one unit, or outside the
        loops that hand out work to the level's instances; if a level's tile
        would be larger than that of the level around it.
    """
    if not schedule.places:
        return
    levels = {level.name: level for level in arch.levels}
    faults: list[str] = []
    for name in dict.fromkeys(place.level for place in schedule.places):
        places = placed_in(schedule.places, name)
        if name not in levels:
            pads = [level.name for level in arch.levels if level.kind == "scratchpad"]
            allowed = nearest(name, pads) if pads else "the machine has no scratchpads"
            faults.append(f"{places[0]}: '{arch.name}' has no level '{name}'; {allowed}")
        elif levels[name].kind != "scratchpad":
            faults.append(
                f"{places[0]}: '{name}' is a {levels[name].kind}; tiles are placed in scratchpads "
                "only"
            )
        else:
            faults += _level_faults(problem, schedule, arch, levels[name], places)
    faults += _order_faults(schedule, [level.name for level in arch.caches])
    ScheduleError.refuse(f"schedule on '{arch.name}'", faults)


def check_held(places: Sequence[Place], held: Iterable[str]) -> Iterator[str]:
    """Say what is missing or too much among one level's places."""
    names = tuple(held)
    placed = {place.tensor for place in places}
    for place in places:
        if place.tensor not in names:
            yield f"{place}: tensor '{place.tensor}' passes '{place.level}'; leave its place out"
    missing = [name for name in names if name not in placed]
    if missing and len(missing) < len(names):
        level = places[0].level
        yield (
            f"level '{level}' has places for some tensors and none for {' '.join(missing)}; add "
            f"'[{level} {' '.join(missing)}]'"
        )


def _level_faults(
    problem: Problem, schedule: Schedule, arch: Arch, level: Level, places: Sequence[Place]
) -> Iterator[str]:
    yield from check_held(places, (t.name for t in room_of(problem, level).held(problem)))
    loops, own = schedule.loops, own_units(arch, level)
    handed = max((at for at, loop in enumerate(loops) if loop.unit in own), default=-1)
    for place in places:
        at = place.position
        if at <= handed:
            yield (
                f"{place}: each instance of '{level.name}' holds tiles of its own work; place it "
                f"inside loop '{loops[handed]}'"
            )
        elif 0 < at < len(loops) and loops[at].is_spatial and loops[at - 1].unit == loops[at].unit:
            yield (
                f"{place}: stands between loops of unit '{loops[at].unit}', which are one list of "
                "work; place it outside or inside all of them"
            )


def _order_faults(schedule: Schedule, levels: Sequence[str]) -> Iterator[str]:
    """A tile has to come out of the tile of the next outer level that has a place for it."""
    for tensor in dict.fromkeys(place.tensor for place in schedule.places):
        at = {place.level: place for place in schedule.places if place.tensor == tensor}
        chain = [at[name] for name in levels if name in at]
        for outer, inner in pairwise(chain):
            if inner.position < outer.position:
                yield (
                    f"{inner}: stands outside '{outer}', the place of the same tensor in a level "
                    "further out; place it further in"
                )
