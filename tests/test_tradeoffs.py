"""Pareto sets: nothing in them is dominated, nothing left out dominates."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_search import every_nest, random_machine, random_problem

import loopsched
from loopsched.base.errors import InputError, ScheduleError
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.scheduler.tradeoffs import Tradeoff, non_dominated, pareto

PROBLEM = loopsched.gemm(m=60, n=48, k=36)
ARCH = loopsched.load_arch("titan_v")
SCORE = loopsched.evaluate(PROBLEM, parse_schedule("M:60 N:48 K:36 M:4 N:4", PROBLEM), ARCH)


def _points(costs: list[tuple[int, int, int]]) -> list[Tradeoff]:
    return [Tradeoff(c, float(t), d, Schedule(()), SCORE) for t, d, c in costs]


@given(st.lists(st.tuples(*[st.integers(1, 4)] * 3), max_size=20))
def test_exactly_the_undominated_costs_remain(costs: list[tuple[int, int, int]]) -> None:
    kept = {point.costs for point in non_dominated(_points(costs))}
    for cost in costs:
        beaten = any(o != cost and all(a <= b for a, b in zip(o, cost, strict=True)) for o in costs)
        assert (cost in kept) != beaten


def test_less_capacity_never_moves_less() -> None:
    buffer = loopsched.buffer_arch(capacity_bytes=2**15)
    front = pareto(PROBLEM, buffer)
    assert len(front) > 3
    moved = [point.dram_bytes for point in front]
    assert moved == sorted(moved)
    for point in front:
        arch = buffer.with_value("buffer.capacity", point.capacity_bytes)
        assert loopsched.evaluate(PROBLEM, point.schedule, arch).dram_bytes == point.dram_bytes


def test_given_capacities_are_the_only_ones() -> None:
    front = pareto(PROBLEM, ARCH, capacities_bytes=[2**17, 2**18])
    assert {point.capacity_bytes for point in front} <= {2**17, 2**18}


# Small random spaces whose fronts have points between the fastest and the most frugal schedule.
@pytest.mark.parametrize("seed", [188, 724, 793, 1035, 1118, 1170, 1549, 2169])
def test_no_schedule_of_a_whole_space_is_beyond_the_front(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng)
    arch = random_machine(rng, problem)
    costs = set()
    for loops in every_nest(problem, arch):
        with suppress(ScheduleError):
            score = loopsched.evaluate(problem, Schedule(loops), arch)
            costs.add((score.time_s, score.dram_bytes))
    least = {
        one
        for one in costs
        if not any(o != one and o[0] <= one[0] and o[1] <= one[1] for o in costs)
    }
    assert len(least) > 2
    own = [arch.caches[0].capacity_bytes or 0]
    found = pareto(problem, arch, capacities_bytes=own, step=0.0)
    assert {(point.time_s, point.dram_bytes) for point in found} == least
    coarse = pareto(problem, arch, capacities_bytes=own, step=0.5)
    for time_s, dram_bytes in least:
        assert any(p.time_s <= 1.5 * time_s and p.dram_bytes <= 1.5 * dram_bytes for p in coarse)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"capacities_bytes": "4 KiB"}, "capacities_bytes is '4 KiB'; a sequence of whole"),
        ({"capacities_bytes": 4096}, "capacities_bytes is 4096; a sequence of whole numbers"),
        ({"capacities_bytes": ["4 KiB"]}, "capacities_bytes is '4 KiB'; a whole number >= 1"),
        ({"step": float("nan")}, "step is nan; a number >= 0 is needed"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^pareto: {message}"):
        pareto(PROBLEM, ARCH, **given)
