"""Loops and schedules: geometry against a literal walk, and every refusal."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.errors import ScheduleError
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.builders import gemm


def trips_of_a_full_tile(extent: int, step: int) -> int:
    return len(range(0, extent, step))


@given(st.lists(st.tuples(st.sampled_from("MNK"), st.integers(1, 40)), max_size=8))
def test_steps_trips_and_regions(pairs: list[tuple[str, int]]) -> None:
    left = {"M": 40, "N": 40, "K": 40}
    loops = []
    for dim, extent in pairs:
        left[dim] = min(left[dim], extent)
        loops.append(Loop(dim, left[dim]))
    schedule = Schedule(tuple(loops))
    for position, loop in enumerate(loops):
        inner = [one.extent for one in loops[position + 1 :] if one.dim == loop.dim]
        step = inner[0] if inner else 1
        assert schedule.steps[position] == step
        assert schedule.trips[position] == trips_of_a_full_tile(loop.extent, step)
    for position in range(len(loops) + 1):
        region = schedule.extents_from(position)
        for dim in schedule.dims:
            inside = [one.extent for one in loops[position:] if one.dim == dim]
            assert region[dim] == max(inside, default=1)


def test_text_and_order() -> None:
    schedule = Schedule.of(Loop(*loop) for loop in [("K", 4), ("M", 8, "SM"), ("M", 2)])
    assert str(schedule) == "K:4 M:8@SM M:2"
    assert schedule.dims == ("K", "M")
    assert [loop.is_spatial for loop in schedule.loops] == [False, True, False]
    assert hash(schedule) == hash(Schedule(schedule.loops))


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        ([Loop("M", 0)], "loop of 'M': extent is 0; a whole number >= 1 is needed"),
        ([Loop("M", -3)], "extent is -3"),
        ([Loop("M", True)], "extent is True"),
        ([Loop("M", 2.0)], "extent is 2.0"),  # type: ignore[arg-type]
        ([Loop("M", math.nan)], "extent is nan"),  # type: ignore[arg-type]
        ([Loop("M", "8")], "extent is '8'"),  # type: ignore[arg-type]
        ([Loop("M", 4), Loop("M", 8)], "extent 8 grows inward; .* covers only 4"),
        ([Loop("M", 4), Loop("M", 10**5000)], "extent a number of 16610 bits grows inward"),
        ([Loop("", 4)], "dim '' of a loop is not a plain word"),
        ([Loop("M:4", 4)], "dim 'M:4' of a loop is not a plain word"),
        ([Loop(3, 4)], "dim 3 of a loop is not a plain word"),  # type: ignore[arg-type]
        ([Loop("M", 4, "")], "unit '' of a loop is not a plain word"),
        ([Loop("M", 4, "a b")], "unit 'a b' of a loop is not a plain word"),
        ([("M", 4)], r"\('M', 4\) is not a Loop; write Loop\('K', 64\)"),
    ],
)
def test_impossible_loops_are_refused(loops: list[Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        Schedule(tuple(loops))


def test_all_faults_come_at_once() -> None:
    with pytest.raises(ScheduleError, match="3 errors") as caught:
        Schedule((Loop("M", 0), Loop("N", 4), Loop("N", 5), Loop("K", 1, "-")))
    assert len(caught.value.problems) == 3


def test_only_a_single_position_needs_no_loop() -> None:
    problem = gemm(m=4, n=2, k=1)
    with pytest.raises(ScheduleError, match=r"dim 'N' \(size 2\) has no loop"):
        Schedule((Loop("M", 4),)).check(problem)
    assert Schedule((Loop("M", 4), Loop("N", 2))).check(problem)


def test_check_says_what_does_not_cover_the_problem() -> None:
    problem = gemm(m=8, n=4, k=1)
    assert Schedule((Loop("N", 4), Loop("M", 8))).check(problem).dims == ("N", "M")
    with pytest.raises(ScheduleError, match="schedule for 'm8 n4 k1': 3 errors") as caught:
        Schedule((Loop("M", 9), Loop("KK", 2))).check(problem)
    assert caught.value.problems == (
        "unknown dim 'KK'; did you mean 'K'? (allowed: M N K)",
        "outermost loop of 'M' covers 9; it must cover the size, 8",
        "dim 'N' (size 4) has no loop; add 'N:4'",
    )
    with pytest.raises(ScheduleError, match="covers a number of 16610 bits"):
        Schedule((Loop("M", 10**5000), Loop("N", 4))).check(problem)
