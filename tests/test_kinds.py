"""Alternatives that differ in kind."""

from __future__ import annotations

import itertools

import pytest

from loopsched import Schedule, conv2d, evaluate, gemm, load_arch, parse_schedule, search
from loopsched.problems.problem import Problem
from loopsched.scheduler.constraints import Constraints
from loopsched.scheduler.goal import Goal
from loopsched.scheduler.kinds import kind_of, of_other_kinds

ARCH = load_arch("titan_v")
PRODUCT = gemm(m=512, n=512, k=512)
CONV = conv2d(n=4, c=32, k=64, h=30, w=30, r=3, s=3, padding=1)


def kind(problem: Problem, schedule: Schedule) -> object:
    return kind_of(problem, schedule, evaluate(problem, schedule, ARCH))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("M:512@SM N:512 K:512 M:8 N:128", True),  # another tile
        ("M:512@SM N:512 M:8 N:64 K:512", True),  # another order inside
        ("N:512@SM M:512 K:512 M:8 N:64", False),  # another dimension is shared
        ("M:512 N:512 K:512 M:8 N:64", False),  # no unit shares: latency of one of them binds
        ("M:512@SM K:512 N:512 M:8 K:1", False),  # sums leave L1 and come back
    ],
)
def test_kinds_are_told_apart(text: str, same: bool) -> None:
    best = parse_schedule("M:512@SM N:512 K:512 M:8 N:64", PRODUCT)
    assert (kind(PRODUCT, best) == kind(PRODUCT, parse_schedule(text, PRODUCT))) is same


@pytest.mark.parametrize("problem", [PRODUCT, CONV], ids=["product", "convolution"])
@pytest.mark.parametrize("top", [1, 4])
def test_alternatives_differ_in_kind_and_are_best_of_theirs(problem: Problem, top: int) -> None:
    goal = Goal(top=top)
    result = search(problem, ARCH, goal)
    found = of_other_kinds(result, goal, most=9)
    assert (found.schedule, found.certificate) == (result.schedule, result.certificate)
    nests = [found.schedule, *(one.schedule for one in found.alternatives)]
    for one, other in itertools.combinations(nests, 2):
        assert kind(problem, one) != kind(problem, other)
    times = [one.evaluation.time_s for one in found.alternatives]
    assert times == sorted(times)
    best = {loop.dim for loop in result.schedule.loops if loop.unit}
    allowed = set(result.certificate.space.spatial)
    for dim in best:  # none that does without one of the shared dimensions is faster
        without = Constraints(spatial=tuple(sorted(allowed - {dim})))
        least = search(problem, ARCH, constraints=without).evaluation.time_s
        others = [
            one.evaluation.time_s
            for one in found.alternatives
            if dim not in {loop.dim for loop in one.schedule.loops if loop.unit}
        ]
        assert min(others) == least


def test_so_many_are_kept() -> None:
    goal = Goal(top=4)
    result = search(CONV, ARCH, goal)
    every = of_other_kinds(result, goal, most=9).alternatives
    assert of_other_kinds(result, goal, most=1).alternatives == every[:1]
    assert of_other_kinds(result, Goal(strategy="random"), most=9).alternatives != every


def test_constraints_hold_for_alternatives_too() -> None:
    goal = Goal(constraints=Constraints(tiles="powers2", spatial=("K", "P")))
    found = of_other_kinds(search(CONV, ARCH, goal), goal, most=9)
    assert found.alternatives
    for one in found.alternatives:
        for loop in one.schedule.loops:
            assert loop.extent & (loop.extent - 1) == 0 or loop.extent == CONV.size[loop.dim]
            assert not loop.unit or loop.dim in "KP"
