"""Steps of waves along one dimension: counted at once, they are what is found one by one."""

from __future__ import annotations

import random

import pytest
import strategies as own
from hypothesis import assume, given
from hypothesis import strategies as st
from test_replay import assert_promise_holds, in_waves

import loopsched
from loopsched.models import _along_kernels as kernels
from loopsched.models.replay import Nest, items_of, pools_of
from loopsched.models.traffic import Room
from loopsched.models.view import View, view_of
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem


@st.composite
def nests(draw: st.DrawFn, units: int = 2, most: int = 30) -> tuple[Problem, Schedule]:
    """Lists of items, all of which go through pieces of a dimension of their own."""
    size = st.integers(1, most)
    if draw(st.booleans()):
        width = draw(st.sampled_from([1, 2, 4]))
        problem = loopsched.gemm(m=draw(size), n=draw(size), k=draw(size), element_bytes=width)
    else:
        n, c, k, h, w = (draw(st.integers(1, max(1, most // 4))) for _ in range(5))
        r, s = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        problem = loopsched.conv2d(
            n=n, c=c, k=k, h=h + r - 1, w=w + s - 1, r=r, s=s, padding=draw(st.integers(0, 1))
        )
    dims = draw(st.permutations(problem.dims))
    along, *others = dims if draw(st.booleans()) else ["K" if "M" in dims else "C", *dims]
    others = [dim for dim in others if dim != along]
    left = dict(problem.size)
    loops: list[str] = []

    def add(dim: str, unit: str = "") -> None:
        loops.append(f"{dim}:{left[dim]}{unit}")
        left[dim] = draw(st.integers(1, left[dim]))

    for dim in others[: draw(st.integers(0, 1))]:
        add(dim)
    for dim in others[draw(st.integers(0, min(2, len(others) - 1))) :]:
        add(dim, "@GPC" if units > 1 else "@SM")
    if units > 1 and draw(st.booleans()):
        for dim in others[: draw(st.integers(1, 2))]:
            add(dim, "@SM")
    for _ in range(draw(st.integers(1, 2))):
        add(along)
    for dim in others[: draw(st.integers(0, len(others)))]:
        add(dim)
    inmost = draw(st.permutations(problem.dims))
    text = " ".join([*loops, *(f"{dim}:{left[dim]}" for dim in inmost)])
    return problem, loopsched.parse_schedule(text, problem)


def replays(view: View, room: Room, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Compare all replays of steps along a dimension; say which of them fit."""
    items = items_of(view)
    assert items is not None
    nest, fits = Nest(view, items), []
    for depth in nest.depths():
        for pool in pools_of(view.problem, room):
            if depth == nest.deepest or nest._steps(depth, pool) == (depth, depth):
                continue
            for item in items:
                at_once = nest._counts(item, depth, pool, 10**9, False, True)
                with monkeypatch.context() as patch:
                    patch.setattr(Nest, "_steps", lambda _, depth, pool: (depth, depth))
                    one_by_one = nest._counts(item, depth, pool, 10**9, False, True)
                assert at_once is not None
                assert one_by_one is not None
                (low, _, high), is_fit = at_once
                assert is_fit == one_by_one[1]
                if is_fit:  # else it ends somewhere
                    assert [low, high] == one_by_one[0][::2]
                fits.append(is_fit)
    return fits


@given(nests(), st.data())
def test_steps_at_once_are_steps_one_by_one(
    case: tuple[Problem, Schedule], data: st.DataObject
) -> None:
    problem, schedule = case
    instances = {"GPC": data.draw(st.integers(1, 9)), "SM": data.draw(st.integers(1, 4))}
    view = view_of(problem, schedule, instances=instances)
    room = Room.shared(data.draw(own.capacities(problem)))
    if data.draw(st.booleans()):
        room = Room(room.shared_bytes, ((problem.tensors[0].name, data.draw(st.integers(1, 500))),))
    with pytest.MonkeyPatch.context() as patch:
        assume(replays(view, room, patch))


def test_most_replays_of_a_grid_go_along_a_dimension() -> None:
    """So that the comparison above has something to compare, fitting and not."""
    drawn, found = random.Random(0), []
    for _ in range(60):
        m, n, k = (drawn.randint(2, 40) for _ in range(3))
        problem = loopsched.gemm(m=m, n=n, k=k, element_bytes=1)
        tiles = [drawn.randint(1, size) for size in (m, n, k)]
        text = "M:{}@SM N:{}@SM K:{} M:{} N:{} K:{}".format(m, n, k, *tiles)
        view = view_of(problem, loopsched.parse_schedule(text, problem), instances={"SM": 7})
        room = Room.shared(drawn.randint(10, m * n + n * k + m * k))
        with pytest.MonkeyPatch.context() as patch:
            found += replays(view, room, patch)
    assert len(found) > 40
    assert {*found} == {True, False}


@given(nests(units=1, most=8), st.integers(1, 6), st.data())
def test_steps_hold_the_simulation(
    case: tuple[Problem, Schedule], n: int, data: st.DataObject
) -> None:
    capacity = data.draw(own.capacities(case[0]))
    view = view_of(*case, instances={"SM": n})
    assert_promise_holds(view, capacity, in_waves(*case, capacity, n), 2**20)


@given(st.integers(-40, 40), st.integers(-9, 9), st.integers(0, 12), st.integers(-40, 40))
def test_members_above_a_limit(first: int, slope: int, n: int, limit: int) -> None:
    assert kernels.n_above(first, slope, n, limit) == sum(
        first + slope * i > limit for i in range(n)
    )
