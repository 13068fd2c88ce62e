"""Searches on real layers: certificates met, results in order, same for any number of jobs."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import loopsched
from loopsched.base.errors import ConstraintError
from loopsched.problems.workload import Workload
from loopsched.scheduler import search_workload
from loopsched.scheduler.result import rank

ARCH = loopsched.load_arch("titan_v")


@pytest.mark.parametrize("name", ["deepbench_conv", "deepbench_gemm"])
def test_every_deepbench_problem_is_proven(name: str) -> None:
    open_ones = [
        result.problem.name
        for result in search_workload(loopsched.load_workload(name), ARCH)
        if not result.certificate.proven or result.certificate.gap
    ]
    assert open_ones == []


def test_a_promise_is_between_the_bounds() -> None:
    for problem in loopsched.load_workload("alexnet").problems:
        score = loopsched.search(problem, ARCH).evaluation
        assert score.problem_bound_s <= score.time_bound_s <= score.time_s


def test_a_returned_schedule_scores_what_the_result_says() -> None:
    problem = loopsched.gemm(m=300, n=200, k=100)
    result = loopsched.search(problem, ARCH, top=4)
    assert len(result.alternatives) == 3
    for scored in (result, *result.alternatives):
        again = loopsched.parse_schedule(str(scored.schedule), problem)
        assert loopsched.evaluate(problem, again, ARCH) == scored.evaluation
    times = [result.evaluation.time_s, *(a.evaluation.time_s for a in result.alternatives)]
    assert times == sorted(times)


def test_alternatives_differ_in_more_than_names() -> None:
    result = loopsched.search(loopsched.gemm(m=96, n=50, k=40), ARCH, top=6)
    ranks = [rank(s.evaluation, "time") for s in (result, *result.alternatives)]
    assert ranks == sorted(set(ranks))
    assert len(ranks) == 6


def test_jobs_change_nothing() -> None:
    whole = loopsched.load_workload("alexnet")
    some = Workload("some", whole.problems[:3])
    one = [(r.schedule, r.certificate) for r in search_workload(some, ARCH)]
    two = [(r.schedule, r.certificate) for r in search_workload(some, ARCH, jobs=2)]
    assert one == two


def test_a_larger_cache_never_needs_more_memory_traffic() -> None:
    problem = loopsched.conv2d(n=2, c=24, k=40, h=20, w=20, r=3, s=3, padding=1)
    moved = [
        loopsched.search(
            problem, loopsched.buffer_arch(capacity_bytes=2**k), objective="dram_bytes"
        ).evaluation.dram_bytes
        for k in range(8, 20)
    ]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] == 4 * (2 * 24 * 400 + 40 * 24 * 9 + 2 * 40 * 400)


def test_all_wrong_arguments_are_named_at_once() -> None:
    problem = loopsched.gemm(m=2, n=2, k=2)
    with pytest.raises(ConstraintError, match=r"(?s)objective 'tiem'.*'time'.*strategy 'exat'"):
        loopsched.search(problem, ARCH, objective="tiem", strategy="exat", top=0)  # type: ignore[arg-type]


def test_constraints_are_checked_before_the_first_result() -> None:
    constraints = loopsched.Constraints(before=(("K", "P"),))
    with pytest.raises(ConstraintError, match=r"problem 'fc6' and 2 more: .*unknown dim 'P'"):
        search_workload(loopsched.load_workload("vgg16"), ARCH, constraints=constraints)


def test_an_objective_without_data_says_what_is_missing() -> None:
    refused = f"needs an energy for every level.*, which '{ARCH.name}' does not state; of those"
    with pytest.raises(ConstraintError, match=refused):
        loopsched.search(loopsched.gemm(m=2, n=2, k=2), ARCH, objective="energy")


def test_equal_layers_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from loopsched import scheduler

    searched = []
    original = scheduler.search

    def counted(problem: loopsched.Problem, *given: Any, **more: Any) -> loopsched.Result:
        searched.append(problem.name)
        return original(problem, *given, **more)

    monkeypatch.setattr(scheduler, "search", counted)
    shapes = [(8, 4, 2), (4, 8, 2)] * 50
    layers = tuple(
        loopsched.gemm(m=m, n=n, k=k, name=f"layer {i}") for i, (m, n, k) in enumerate(shapes)
    )
    results = list(search_workload(Workload("many", layers), ARCH))
    assert searched == ["layer 0", "layer 1"]
    assert [result.problem for result in results] == list(layers)
    # As if each had been searched alone.
    alone = original(layers[7], ARCH)
    for one in (results[7], search_workload(Workload("many", layers), ARCH, jobs=2)[7]):
        for name in ("problem", "schedule", "certificate", "proof"):
            assert getattr(one, name) == getattr(alone, name)
        assert one.evaluation.time_s == alone.evaluation.time_s


def test_results_are_a_list_that_is_found_when_it_is_read() -> None:
    layers = tuple(loopsched.gemm(m=m, n=4, k=2) for m in (2, 3, 5, 7))
    results = search_workload(Workload("four", layers), ARCH)
    assert repr(results) == "<4 results, 0 found>"
    assert results[1].problem == layers[1]
    assert repr(results) == "<4 results, 2 found>"
    twice = [[result.problem for result in results] for _ in range(2)]
    assert twice == [list(layers)] * 2
    assert (len(results), results[-1].problem) == (4, layers[3])
    assert [result.problem for result in results[1:3]] == list(layers[1:3])
    with pytest.raises(IndexError):
        _ = results[4]


def test_text_stands_for_problems_machines_and_workloads() -> None:
    problem, arch = loopsched.gemm(m=64, n=64, k=64), loopsched.load_arch("v100")
    search: Any = loopsched.search
    assert search("gemm:m=64,n=64,k=64", "v100") == loopsched.search(problem, arch)
    assert search(arch="v100", problem=problem).problem == problem
    whole: Any = loopsched.search_workload
    assert len(whole("vgg16", "v100")) == len(loopsched.load_workload("vgg16").problems)
    shown: Any = loopsched.to_timeloop
    assert shown("gemm:m=4,n=3,k=2").names == ("problem.yaml",)
    estimate: Any = loopsched.tiled_gemm
    assert estimate("gemm:m=64,n=64,k=64", "v100").macs == 64**3
    with pytest.raises(loopsched.WorkloadError, match="no shipped workload"):
        search("gem", "v100")
    assert pickle.loads(pickle.dumps(loopsched.search)) is loopsched.search
