"""Small operations on schedules: each returns a new schedule.

A loop is named by its position from the outside, or by its dimension if that
has one loop only.  `drop_unit_loops` changes only how the same thing is
written, the others what the machine does; none changes what the outermost loops cover.
Places of tiles stay between the same positions; a loop added or dropped moves
those inside of it along.  As values, operations are `loopsched.nests.moves`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from loopsched.base.arguments import is_count, show
from loopsched.base.errors import ScheduleError, nearest
from loopsched.nests.nest import PASSES, Loop, Place, Schedule


def tile(schedule: Schedule, dim: str, extent: int, position: int | None = None) -> Schedule:
    """Cut a dimension into tiles: add a loop over the inside of one tile.

    Parameters
    ----------
    schedule : Schedule
    dim : str
        A dimension that has a loop.
    extent : int
        Tile size; at most the extent of the loop of the same dimension around
        it, at least that of the one inside.
    position : int, optional
        Where the new loop stands; by default innermost.

    Raises
    ------
    ScheduleError
        If the dimension has no loop or the tile does not fit there.

    See Also
    --------
    split, resize, reorder

    Examples
    --------
    ``M:64 N:64 K:64`` -> ``M:64 N:64 K:64 M:8``

    >>> before = Schedule((Loop("M", 64), Loop("N", 64), Loop("K", 64)))
    >>> print(tile(before, "M", 8))
    M:64 N:64 K:64 M:8
    >>> print(tile(before, "M", 8, position=2))
    M:64 N:64 M:8 K:64
    """
    outermost = _positions(schedule, dim)[0]
    end = len(schedule.loops)
    place = end if position is None else position
    if not is_count(place, 0, end):
        raise ScheduleError(f"tile: position is {show(place)}; 0 to {end} is allowed")
    whole = schedule.loops[outermost].extent
    if place <= outermost and not is_count(extent, 1, whole):
        raise ScheduleError(f"tile: extent of '{dim}' is {show(extent)}; 1 to {whole} is allowed")
    loops = list(schedule.loops)
    loops.insert(place, Loop(dim, extent))
    return Schedule(tuple(loops), _moved(schedule, lambda at: at + (at > place)))


def split(schedule: Schedule, loop: int | str, extent: int) -> Schedule:
    """Split a loop in two: one over tiles, and directly inside one over a tile.

    Both stay bound to the unit of the loop, if it is spatial.

    Parameters
    ----------
    schedule : Schedule
    loop : int or str
        Position from the outside, or a dimension with one loop.
    extent : int
        Tile size, between the step and the extent of the loop.

    Raises
    ------
    ScheduleError
        If there is no such loop or the tile size does not fit.

    See Also
    --------
    tile, resize, bind_spatial

    Examples
    --------
    ``M:64 K:64`` -> ``M:64 M:8 K:64``

    >>> print(split(Schedule((Loop("M", 64), Loop("K", 64))), "M", 8))
    M:64 M:8 K:64
    >>> placed = Schedule((Loop("M", 64), Loop("K", 64)), (Place(1, "L1", "A"),))
    >>> print(split(placed, "M", 8))
    M:64 M:8 [L1 A] K:64
    """
    place = _position(schedule, loop)
    loops = list(schedule.loops)
    loops.insert(place + 1, replace(loops[place], extent=extent))
    return Schedule(tuple(loops), _moved(schedule, lambda at: at + (at > place)))


def resize(schedule: Schedule, loop: int | str, extent: int) -> Schedule:
    """Change a tile size; the other tiles of the dimension adapt.

    Loops further in get no larger than the tile, those further out no smaller.

    Parameters
    ----------
    schedule : Schedule
    loop : int or str
        Position from the outside, or a dimension with one loop.
    extent : int
        At most what the outermost loop of the dimension covers; for that loop, exactly this.

    Raises
    ------
    ScheduleError
        If there is no such loop, or the tile is larger than the dimension.

    See Also
    --------
    tile, split, drop_loop

    Examples
    --------
    ``M:64 K:64 M:16 M:8`` -> ``M:64 K:64 M:4 M:4``

    >>> before = Schedule((Loop("M", 64), Loop("K", 64), Loop("M", 16), Loop("M", 8)))
    >>> print(resize(before, 2, 4))
    M:64 K:64 M:4 M:4
    >>> print(resize(before, 3, 32))
    M:64 K:64 M:32 M:32
    """
    place = _position(schedule, loop)
    dim = schedule.loops[place].dim
    outermost, *inner = _positions(schedule, dim)
    whole = schedule.loops[outermost].extent
    if not is_count(extent, whole if place == outermost else 1, whole):
        least = (
            f"{whole}, which the outermost loop covers," if place == outermost else f"1 to {whole}"
        )
        raise ScheduleError(f"resize: extent of '{dim}' is {show(extent)}; {least} is allowed")
    loops = list(schedule.loops)
    for at in inner:
        bound = max if at < place else min
        now = extent if at == place else bound(loops[at].extent, extent)
        loops[at] = replace(loops[at], extent=now)
    return replace(schedule, loops=tuple(loops))


def drop_loop(schedule: Schedule, loop: int | str) -> Schedule:
    """Take a loop away; the next one of its dimension inside covers what it covered.

    Parameters
    ----------
    schedule : Schedule
    loop : int or str
        Position from the outside, or a dimension with one loop.

    Raises
    ------
    ScheduleError
        If there is no such loop, or it is the only one of a dimension longer than 1.

    See Also
    --------
    tile, split, resize

    Examples
    --------
    ``M:64 K:64 M:16 M:8`` -> ``M:64 K:64 M:8``

    >>> before = Schedule((Loop("M", 64), Loop("K", 64), Loop("M", 16), Loop("M", 8)))
    >>> print(drop_loop(before, 2))
    M:64 K:64 M:8
    >>> print(drop_loop(before, 0))
    K:64 M:64 M:8
    """
    place = _position(schedule, loop)
    loops = list(schedule.loops)
    gone = loops.pop(place)
    outermost, *inner = _positions(schedule, gone.dim)
    if place == outermost and inner:
        loops[inner[0] - 1] = replace(loops[inner[0] - 1], extent=gone.extent)
    elif place == outermost and gone.extent > 1:
        raise ScheduleError(f"drop_loop: '{gone}' is the only loop of its dimension; keep it")
    return Schedule(tuple(loops), _moved(schedule, lambda at: at - (at > place)))


def reorder(schedule: Schedule, order: Sequence[int] | Sequence[str]) -> Schedule:
    """Put the loops into another order.

    Parameters
    ----------
    schedule : Schedule
    order : sequence of int, or of str
        From the outside in, each loop once: positions in the old order, or
        dimensions, where a dimension's loops keep their order.

    Raises
    ------
    ScheduleError
        If a loop is missing or named twice, or a small tile would stand
        outside a larger one of the same dimension.

    See Also
    --------
    interchange, tile

    Examples
    --------
    ``M:64 K:32 M:8`` -> ``K:32 M:64 M:8``

    >>> before = Schedule((Loop("M", 64), Loop("K", 32), Loop("M", 8)))
    >>> print(reorder(before, ["K", "M", "M"]))
    K:32 M:64 M:8
    >>> print(reorder(before, [0, 2, 1]))
    M:64 M:8 K:32
    """
    listed: list[object] = [*order] if isinstance(order, Sequence) else [order]
    named = [place for place in listed if isinstance(place, str)]
    n_loops = len(schedule.loops)
    if named and len(named) == len(listed):
        places = list(_by_dim(schedule, named))
    else:
        places = [place for place in listed if is_count(place, 0)]
    if len(places) != len(listed) or sorted(places) != list(range(n_loops)):
        raise ScheduleError(
            f"reorder: order is {show(listed)}; each of the positions 0 to {n_loops - 1}, or "
            f"of the dimensions of '{schedule}', is needed once"
        )
    return replace(schedule, loops=tuple(schedule.loops[place] for place in places))


def interchange(schedule: Schedule, first: int | str, second: int | str) -> Schedule:
    """Exchange two loops.

    Parameters
    ----------
    schedule : Schedule
    first, second : int or str
        Position from the outside, or a dimension with one loop.

    Raises
    ------
    ScheduleError
        If there is no such loop, or a small tile would stand outside a larger
        one of the same dimension.

    See Also
    --------
    reorder, tile

    Examples
    --------
    ``M:64 N:32 K:16`` -> ``K:16 N:32 M:64``

    >>> print(interchange(Schedule((Loop("M", 64), Loop("N", 32), Loop("K", 16))), "M", "K"))
    K:16 N:32 M:64
    """
    loops = list(schedule.loops)
    one, other = _position(schedule, first), _position(schedule, second)
    loops[one], loops[other] = loops[other], loops[one]
    return replace(schedule, loops=tuple(loops))


def bind_spatial(schedule: Schedule, loop: int | str, unit: str) -> Schedule:
    """Make a loop spatial: the instances of a unit run its iterations.

    Parameters
    ----------
    schedule : Schedule
    loop : int or str
        Position from the outside, or a dimension with one loop.
    unit : str
        Name of the unit, such as ``SM``.

    Raises
    ------
    ScheduleError
        If there is no such loop, or the unit is not a plain word.

    See Also
    --------
    unbind, split

    Examples
    --------
    ``M:64 K:64`` -> ``M:64@SM K:64``

    >>> print(bind_spatial(Schedule((Loop("M", 64), Loop("K", 64))), "M", "SM"))
    M:64@SM K:64
    """
    if not isinstance(unit, str) or not unit.isidentifier():
        raise ScheduleError(f"bind_spatial: unit is {show(unit)}; the name of a level is needed")
    return _bound(schedule, _position(schedule, loop), unit)


def unbind(schedule: Schedule, loop: int | str | None = None) -> Schedule:
    """Make a spatial loop temporal again, or all of them.

    Parameters
    ----------
    schedule : Schedule
    loop : int or str, optional
        Position from the outside, or a dimension with one loop; without it,
        every loop.

    See Also
    --------
    bind_spatial

    Examples
    --------
    ``M:64@SM N:8@SM K:64`` -> ``M:64 N:8 K:64``

    >>> before = Schedule((Loop("M", 64, "SM"), Loop("N", 8, "SM"), Loop("K", 64)))
    >>> print(unbind(before))
    M:64 N:8 K:64
    >>> print(unbind(before, "N"))
    M:64@SM N:8 K:64
    """
    if loop is None:
        return replace(schedule, loops=tuple(replace(one, unit=None) for one in schedule.loops))
    return _bound(schedule, _position(schedule, loop), None)


def drop_unit_loops(schedule: Schedule) -> Schedule:
    """Drop temporal loops that have one iteration.

    Examples
    --------
    ``N:1 M:8 K:4 M:8`` -> ``K:4 M:8``

    >>> before = Schedule((Loop("N", 1), Loop("M", 8), Loop("K", 4), Loop("M", 8)))
    >>> print(drop_unit_loops(before))
    K:4 M:8
    """
    kept = [
        trips > 1 or loop.is_spatial
        for loop, trips in zip(schedule.loops, schedule.trips, strict=True)
    ]
    if all(kept):
        return schedule
    loops = (loop for loop, is_kept in zip(schedule.loops, kept, strict=True) if is_kept)
    return Schedule(tuple(loops), _moved(schedule, lambda at: sum(kept[:at])))


def _moved(schedule: Schedule, move: Callable[[int], int]) -> tuple[Place, ...]:
    """Move the places of a schedule along with its loops."""
    return tuple(
        place if place.position == PASSES else replace(place, position=move(place.position))
        for place in schedule.places
    )


def _bound(schedule: Schedule, place: int, unit: str | None) -> Schedule:
    loops = list(schedule.loops)
    loops[place] = replace(loops[place], unit=unit)
    return replace(schedule, loops=tuple(loops))


def _positions(schedule: Schedule, dim: str) -> list[int]:
    found = [place for place, loop in enumerate(schedule.loops) if loop.dim == dim]
    if found:
        return found
    if not isinstance(dim, str):
        raise ScheduleError(f"dim is {show(dim)}; the name of a dimension is needed")
    hint = nearest(dim[:40], schedule.dims)
    raise ScheduleError(f"no loop of dim {show(dim)} in '{schedule}'; {hint}")


def _position(schedule: Schedule, loop: int | str) -> int:
    if isinstance(loop, int):
        last = len(schedule.loops) - 1
        if not is_count(loop, 0, last):
            raise ScheduleError(f"no loop {show(loop)} in '{schedule}'; positions are 0 to {last}")
        return loop
    found = _positions(schedule, loop)
    if len(found) > 1:
        places = ", ".join(map(str, found))
        raise ScheduleError(f"dim '{loop}' has loops at {places} in '{schedule}'; name one of them")
    return found[0]


def _by_dim(schedule: Schedule, dims: Sequence[str]) -> Iterable[int]:
    """Turn dimension names into positions; a name stands for its next loop."""
    left = {dim: iter(_positions(schedule, dim)) for dim in dict.fromkeys(dims)}
    for dim in dims:
        place = next(left[dim], None)
        if place is None:
            count = len(_positions(schedule, dim))
            raise ScheduleError(
                f"reorder: dim '{dim}' is named {dims.count(dim)} times; '{schedule}' has {count} "
                "of its loops"
            )
        yield place
