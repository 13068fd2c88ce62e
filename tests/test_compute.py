"""Compute steps against items that are handed out one by one."""

from __future__ import annotations

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems, schedules

from loopsched.base.errors import ScheduleError
from loopsched.models.compute import Steps, check_spatial, compute_steps
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import gemm

NESTINGS = (("SM",), ("SM", "lane"), ("GPC", "SM", "lane"))


@given(st.data(), st.sampled_from(NESTINGS))
def test_steps_are_those_of_a_literal_assignment(
    data: st.DataObject, units: tuple[str, ...]
) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=units))
    instances = {unit: data.draw(st.integers(1, 6)) for unit in units}
    found = compute_steps(problem, schedule, instances)
    literal = oracle.assign(problem, schedule, instances)
    assert found.promised == literal.waves
    for makespan in (literal.barriers, literal.rounds, literal.greedy):
        assert found.least <= makespan <= found.promised


@given(st.data())
def test_without_spatial_loops_one_unit_does_all(data: st.DataObject) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem))
    steps = compute_steps(problem, schedule, {"SM": 80})
    assert steps == Steps(problem.macs, problem.macs)


@pytest.mark.parametrize(
    ("nest", "instances", "steps"),
    [
        # Five items of 2 x 4 x 4 on four instances: two waves.
        ("M:10@SM N:4 K:4 M:2", {"SM": 4}, Steps(64, 64)),
        # Four items, the last of 1 row: as long as a full one, or the work spread evenly.
        ("M:10@SM N:4 K:4 M:3", {"SM": 4}, Steps(48, 48)),
        # One wave of two items, 7 rows and 3.
        ("M:10@SM N:4 K:4 M:7", {"SM": 2}, Steps(112, 112)),
        # Ten items on three: the tenth alone; no assignment beats ceil(160 / 3).
        ("M:10@SM N:4 K:4", {"SM": 3}, Steps(64, 64)),
        # A barrier each iteration of K: four lists of ten items.
        ("K:4 M:10@SM N:4", {"SM": 8}, Steps(4 * 2 * 4, 4 * 2 * 4)),
        # Items of 4, 4 and 2 rows, 16 lists: two waves each, or half of 10 rows an instance.
        ("N:4 K:4 M:10@SM M:4", {"SM": 2}, Steps(16 * 2 * 4, 16 * 5)),
        # Lanes inside: 4 columns on 3 lanes take two rounds.
        ("M:10@SM K:4 N:4@lane M:5", {"SM": 2, "lane": 3}, Steps(4 * 2 * 5, 4 * 2 * 5)),
    ],
)
def test_by_hand(nest: str, instances: dict[str, int], steps: Steps) -> None:
    problem = gemm(m=10, n=4, k=4)
    assert compute_steps(problem, parse_schedule(nest, problem), instances) == steps


def test_huge_counts_are_exact() -> None:
    size = 2**20
    problem = gemm(m=size, n=size, k=size)
    nest = parse_schedule(f"M:{size}@SM N:{size}@SM K:{size} M:128 N:128", problem)
    waves = -(-(2**26) // 80)
    expected = waves * 128 * 128 * size
    assert compute_steps(problem, nest, {"SM": 80}) == Steps(expected, expected)


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        ([("M", 4, "SN")], "loop 'M:4@SN': unknown unit 'SN'; did you mean 'SM'"),
        ([("M", 4, "SM"), ("K", 4, None), ("N", 4, "SM")], "unit 'SM' are not adjacent"),
        ([("M", 4, "lane"), ("N", 4, "SM")], "loops of 'SM' belong outside those of 'lane'"),
        ([("M", 4, "lane"), ("N", 4, "SM"), ("K", 4, "lane")], "'lane' are not adjacent"),
    ],
)
def test_spatial_loops_that_no_machine_runs(
    loops: list[tuple[str, int, str | None]], message: str
) -> None:
    schedule = Schedule.of(Loop(*loop) for loop in loops)
    with pytest.raises(ScheduleError, match=message):
        check_spatial(schedule, ("SM", "lane"))
    with pytest.raises(ScheduleError, match=message):
        compute_steps(gemm(m=4, n=4, k=4), schedule, {"SM": 2, "lane": 4})


def test_every_fault_is_named() -> None:
    schedule = Schedule.of([Loop("M", 4, "SN"), Loop("N", 4, "lane"), Loop("K", 4, "SM")])
    with pytest.raises(ScheduleError, match="2 errors") as caught:
        check_spatial(schedule, ("SM", "lane"))
    assert len(caught.value.problems) == 2
    with pytest.raises(ScheduleError, match="the machine has no such units"):
        check_spatial(Schedule.of([Loop("M", 4, "SM")]), ())
