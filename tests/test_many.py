"""The figures of many schedules: those of `evaluate`, one by one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import machines, problems, schedules

from loopsched.base.errors import CapacityError, ScheduleError
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.many import TOO_LARGE, evaluate_many
from loopsched.models.score import evaluate
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import gemm
from loopsched.problems.problem import Problem


def assert_as_one_by_one(problem: Problem, nests: list[Schedule], arch: Arch) -> int:
    """Compare every figure; returns how many schedules fit."""
    found = evaluate_many(problem, iter(nests), arch)
    assert list(found.level_bytes) == [level.name for level in arch.caches]
    for at, nest in enumerate(nests):
        row = [numbers[at] for numbers in found.level_bytes.values()]
        try:
            one = evaluate(problem, nest, arch)
        except CapacityError:
            assert not found.fits[at]
            assert found.time_s[at] == found.compute_time_s[at] == math.inf
            assert {found.dram_bytes[at], *row} == {TOO_LARGE}
            continue
        assert found.fits[at]
        assert (found.time_s[at], found.compute_time_s[at]) == (one.time_s, one.compute_time_s)
        assert found.dram_bytes[at] == one.dram_bytes
        assert row == [level.moved.promised_bytes for level in one.levels]
    return int(found.fits.sum())


@given(st.data())
def test_any_schedules_on_any_machine(data: st.DataObject) -> None:
    problem = data.draw(problems())
    problem = problem.with_element_bytes(
        {tensor.name: min(4, tensor.element_bytes) for tensor in problem.tensors}
    )
    arch = data.draw(machines(problem, has_scratchpads=data.draw(st.booleans())))
    units = ("SM",) if data.draw(st.booleans()) else ()
    nests = data.draw(st.lists(schedules(problem, units=units), max_size=4))
    assert_as_one_by_one(problem, nests, arch)


def test_tiles_that_do_not_fit_are_rows_like_others() -> None:
    problem = gemm(m=8, n=8, k=8)
    arch = buffer_arch(capacity_bytes=256, policy="explicit")
    texts = ("M:8 N:8 K:8 [buffer A B C] M:4 N:4 K:4", "M:8 N:8 K:8 [buffer A B C] M:4 N:4 K:8")
    nests = [parse_schedule(text, problem) for text in texts]
    assert assert_as_one_by_one(problem, nests, arch) == 1


def test_lanes_and_levels_that_a_schedule_chooses() -> None:
    levels = (
        Level("DRAM", "memory", None),
        Level("L2", "cache", 600, bandwidth_bytes_per_s=10.0, may_hold=("A", "C")),
        Level("L1", "cache", 200, unit="SM", instances=3, bandwidth_bytes_per_s=40.0),
    )
    rates = (("fp32", 4.0),)
    arch = Arch("chosen", levels, Compute("SM", 3, 1.0, 1.0, rates, lane_unit="lane"))
    problem = gemm(m=9, n=8, k=7)
    texts = (
        "M:9@SM N:8 K:7 M:4 N:4",
        "[L2 -A] M:9@SM N:8 K:7 M:4 N:4",
        "[L2 -A -C] M:9 N:8@SM K:7 N:4@lane",
    )
    assert assert_as_one_by_one(problem, [parse_schedule(t, problem) for t in texts], arch) == 3


def test_more_bytes_than_64_bits_stay_exact() -> None:
    problem, arch = gemm(m=2**20, n=2**20, k=2**20), buffer_arch(capacity_bytes=64)
    nest = parse_schedule(f"M:{2**20} N:{2**20} K:{2**20}", problem)
    found = evaluate_many(problem, [nest], arch)
    assert found.dram_bytes[0] == evaluate(problem, nest, arch).dram_bytes > 2**63


def test_none_at_all() -> None:
    found = evaluate_many(gemm(m=2, n=2, k=2), [], buffer_arch(capacity_bytes=64))
    assert found.time_s.shape == found.fits.shape == found.dram_bytes.shape == (0,)


def test_a_schedule_of_another_problem_is_named() -> None:
    problem = gemm(m=4, n=4, k=4)
    nests = [parse_schedule("M:4 N:4 K:4", problem), Schedule(())]
    with pytest.raises(ScheduleError, match=r"schedule number 1: schedule for .m4 n4 k4"):
        evaluate_many(problem, nests, buffer_arch(capacity_bytes=64))
