"""Operations on schedules: what they keep, against a literal walk of the points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.errors import ScheduleError
from loopsched.nests.nest import PASSES, Loop, Place, Schedule
from loopsched.nests.ops import (
    bind_spatial,
    drop_unit_loops,
    interchange,
    reorder,
    split,
    tile,
    unbind,
)

Point = tuple[tuple[str, int], ...]
SIZES = {"M": 7, "N": 4, "K": 3}


def walk(schedule: Schedule) -> list[Point]:
    """List the points in the order of the loops: each loop cuts up its region."""
    return [point for point, _ in visits(schedule)]


def visits(schedule: Schedule) -> list[tuple[Point, dict[str, Any]]]:
    """List the points, each with the region that every placed tensor's tile is of."""
    tiles: dict[str, Any] = {}
    passing = {place.tensor: "passes" for place in schedule.places if place.position == PASSES}

    def inside(position: int, region: dict[str, range]) -> Iterator[tuple[Point, dict[str, Any]]]:
        for place in schedule.places:
            if place.position == position:
                tiles[place.tensor] = tuple(sorted((d, r.start, r.stop) for d, r in region.items()))
        if position == len(schedule.loops):
            yield tuple((dim, region[dim].start) for dim in sorted(region)), tiles | passing
            return
        dim = schedule.loops[position].dim
        step = schedule.steps[position]
        whole = region[dim]
        for start in range(whole.start, whole.stop, step):
            piece = range(start, min(start + step, whole.stop))
            yield from inside(position + 1, {**region, dim: piece})

    first = {loop.dim: range(loop.extent) for loop in reversed(schedule.loops)}
    return list(inside(0, first))


@st.composite
def placed(draw: st.DrawFn) -> Schedule:
    schedule = draw(schedules())
    places = st.integers(0, len(schedule.loops)) | st.just(PASSES)
    return replace(schedule, places=tuple(Place(draw(places), "L1", name) for name in "ABC"))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    loops = []
    left = dict(SIZES)
    for dim in draw(st.permutations("MNK")):
        loops.append(Loop(dim, SIZES[dim], draw(st.sampled_from([None, None, "SM"]))))
    for dim in draw(st.lists(st.sampled_from("MNK"), max_size=5)):
        left[dim] = draw(st.integers(1, left[dim]))
        place = draw(st.integers(0, len(loops)))
        last = max(i for i, loop in enumerate(loops) if loop.dim == dim)
        loops.insert(max(place, last + 1), Loop(dim, left[dim]))
    return Schedule(tuple(loops))


@given(schedules())
def test_every_point_is_visited_exactly_once(schedule: Schedule) -> None:
    points = walk(schedule)
    assert len(points) == 7 * 4 * 3
    assert len(set(points)) == len(points)


@given(schedules(), st.data())
def test_tiling_visits_every_point_exactly_once(schedule: Schedule, data: st.DataObject) -> None:
    dim = data.draw(st.sampled_from("MNK"))
    extents = [loop.extent for loop in schedule.loops if loop.dim == dim]
    tiled = tile(schedule, dim, data.draw(st.integers(1, min(extents))))
    assert tiled.loops[:-1] == schedule.loops
    assert sorted(walk(tiled)) == sorted(walk(schedule))


@given(schedules(), st.data())
def test_splitting_by_a_multiple_of_the_step_keeps_the_order(
    schedule: Schedule, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(schedule.loops) - 1))
    step, extent = schedule.steps[place], schedule.loops[place].extent
    inner = data.draw(st.integers(1, extent // step)) * step
    cut = split(schedule, place, inner)
    assert walk(cut) == walk(schedule)
    assert cut.loops[place].unit == cut.loops[place + 1].unit == schedule.loops[place].unit


@given(placed(), st.data())
def test_tiles_stay_what_they_were(schedule: Schedule, data: st.DataObject) -> None:
    """What changes only how loops are written leaves every placed tile its region."""
    before = visits(schedule)
    assert visits(drop_unit_loops(schedule)) == before
    place = data.draw(st.integers(0, len(schedule.loops) - 1))
    step, extent = schedule.steps[place], schedule.loops[place].extent
    inner = data.draw(st.integers(1, extent // step)) * step
    assert visits(split(schedule, place, inner)) == before


def test_a_tile_goes_inside_the_places_at_its_position() -> None:
    whole = tuple(Loop(dim, 8) for dim in "MNK")
    marks = Place(PASSES, "L1", "A"), Place(1, "L1", "B"), Place(2, "L1", "C")
    found = tile(Schedule(whole, marks), "M", 4, position=1)
    assert str(found) == "[L1 -A] M:8 [L1 B] M:4 N:8 [L1 C] K:8"


@given(schedules(), st.data())
def test_reordering_back_is_the_identity(schedule: Schedule, data: st.DataObject) -> None:
    names = [loop.dim for loop in schedule.loops]
    order = data.draw(st.permutations(names))
    moved = reorder(schedule, order)
    assert [loop.dim for loop in moved.loops] == order
    assert reorder(moved, names) == schedule
    assert sorted(walk(moved)) == sorted(walk(schedule))


@given(schedules(), st.data())
def test_reordering_by_position_and_its_inverse(schedule: Schedule, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(schedule.loops))))
    try:
        moved = reorder(schedule, order)
    except ScheduleError:  # a small tile outside a larger one
        chains = [[schedule.loops[i] for i in order if schedule.loops[i].dim == d] for d in "MNK"]
        assert any(a.extent < b.extent for chain in chains for a, b in pairwise(chain))
        return
    assert moved.loops == tuple(schedule.loops[i] for i in order)
    assert reorder(moved, [order.index(i) for i in range(len(order))]) == schedule


@given(schedules(), st.data())
def test_interchanging_twice_is_the_identity(schedule: Schedule, data: st.DataObject) -> None:
    places = st.integers(0, len(schedule.loops) - 1)
    one, other = data.draw(places), data.draw(places)
    try:
        moved = interchange(schedule, one, other)
    except ScheduleError:
        between = schedule.loops[min(one, other) : max(one, other) + 1]
        ends = {between[0].dim, between[-1].dim}
        assert any(len({x.extent for x in between if x.dim == dim}) > 1 for dim in ends)
        return
    assert interchange(moved, one, other) == schedule


@given(schedules())
def test_unit_loops_change_nothing(schedule: Schedule) -> None:
    slim = drop_unit_loops(schedule)
    assert all(t > 1 or one.is_spatial for t, one in zip(slim.trips, slim.loops, strict=True))
    assert walk(slim) == walk(schedule)
    shared = [one for one in schedule.loops if one.is_spatial]
    assert [one for one in slim.loops if one.is_spatial] == shared


@given(schedules())
def test_binding_and_unbinding(schedule: Schedule) -> None:
    loose = unbind(schedule)
    assert not any(loop.is_spatial for loop in loose.loops)
    bound = loose
    for place, loop in enumerate(schedule.loops):
        if loop.unit:
            bound = bind_spatial(bound, place, loop.unit)
    assert bound == schedule


BASE = Schedule((Loop("M", 64), Loop("K", 32), Loop("M", 8)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tile(BASE, "MM", 4), "no loop of dim 'MM'.*did you mean 'M'"),
        (lambda: tile(BASE, 3, 4), "dim is 3; the name of a dimension is needed"),  # type: ignore[arg-type]
        (lambda: tile(BASE, "M", 16), "extent 16 grows inward"),
        (lambda: tile(BASE, "M", 0), "extent is 0"),
        (lambda: tile(BASE, "M", 4, position=0), "extent 64 grows inward"),
        (lambda: tile(BASE, "M", 4, position=4), "position is 4; 0 to 3 is allowed"),
        (lambda: tile(BASE, "M", 4, position=-1), "position is -1; 0 to 3 is allowed"),
        (lambda: split(BASE, "M", 8), "dim 'M' has loops at 0, 2 in .*; name one of them"),
        (lambda: split(BASE, 0, 4), "extent 8 grows inward"),
        (lambda: split(BASE, 0, 65), "extent 65 grows inward"),
        (lambda: split(BASE, 3, 2), "no loop 3 in .*; positions are 0 to 2"),
        (lambda: split(BASE, -1, 2), "no loop -1 in"),
        (lambda: split(BASE, True, 2), "no loop True in"),
        (lambda: split(BASE, 1.0, 2), r"dim is 1\.0"),  # type: ignore[arg-type]
        (lambda: reorder(BASE, [0, 1]), r"order is \[0, 1\]; each of the positions 0 to 2"),
        (lambda: reorder(BASE, [0, 1, 1]), "is needed once"),
        (lambda: reorder(BASE, [0, 1, True]), "is needed once"),
        (lambda: reorder(BASE, []), "is needed once"),
        (lambda: reorder(BASE, [0, "K", 2]), "is needed once"),  # type: ignore[list-item]
        (lambda: reorder(BASE, [2, 1, 0]), "extent 64 grows inward"),
        (lambda: reorder(BASE, ["M", "K"]), "is needed once"),
        (lambda: reorder(BASE, ["M", "K", "K"]), "dim 'K' is named 2 times; .* has 1 of its"),
        (lambda: reorder(BASE, ["M", "K", "N"]), "no loop of dim 'N'"),
        (lambda: interchange(BASE, 0, 2), "grows inward"),
        (lambda: interchange(BASE, "K", "Q"), "no loop of dim 'Q'"),
        (lambda: bind_spatial(BASE, 0, ""), "unit is ''; the name of a level"),
        (lambda: bind_spatial(BASE, 0, "S M"), "unit is 'S M'"),
        (lambda: bind_spatial(BASE, "N", "SM"), "no loop of dim 'N'"),
        (lambda: unbind(BASE, 9), "no loop 9"),
    ],
)
def test_what_cannot_be_done(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        call()
