"""Every search answers within its budget, with a schedule that nothing simple beats."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from tilings import best_tiling

import loopsched
from loopsched.base.errors import ConstraintError
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload
from loopsched.scheduler import Constraints, exact, warm_up
from loopsched.scheduler.effort import DEFAULT_WORK, Budget, Effort, Stopped, Watch
from loopsched.scheduler.goal import Objective
from loopsched.scheduler.orders import main_classes, order_classes, relevance

TITAN = loopsched.load_arch("titan_v")
LETTERS = "abcdefghijkl"


def _contraction(length: int) -> Problem:
    return loopsched.einsum("abcdefgh,efghijkl->abcdijkl", dict.fromkeys(LETTERS, length))


# They never ended before there were budgets.
ENDLESS = {
    "long": loopsched.gemm(m=2**40, n=4, k=4),
    "cube": loopsched.gemm(m=2**18, n=2**18, k=2**18),
    "contraction": _contraction(4),
}


# Eleven dimensions that units may share: each way to cut them has 2,048 kinds of lists.
OUTER = {"outer": loopsched.einsum("abcdef,fghijkl->abcdeghijkl", dict.fromkeys("abcdefghijkl", 4))}


@pytest.mark.parametrize("name", [*ENDLESS, *OUTER])
@pytest.mark.parametrize("objective", ["time", "dram_bytes"])
def test_the_time_limit_is_kept(name: str, objective: Objective) -> None:
    warm_up()  # compiled before the clock starts
    begin = time.process_time()
    problem = (ENDLESS | OUTER)[name]
    found = loopsched.search(problem, TITAN, objective=objective, time_limit_s=1.0)
    assert time.process_time() - begin < 2.0
    effort = found.certificate.effort
    assert effort.budget.time_s == 1.0
    if effort.stopped:
        assert effort.stopped == "time limit"
        assert not found.certificate.proven
    assert found.certificate.lower_bound <= found.certificate.value


@pytest.mark.parametrize("name", ENDLESS)
def test_the_default_budget_is_enough_for_a_good_answer(name: str) -> None:
    found = loopsched.search(ENDLESS[name], TITAN).certificate
    assert found.effort.budget.work == DEFAULT_WORK
    assert found.effort.work < DEFAULT_WORK
    assert found.gap < 0.01


def test_a_budget_gives_the_same_for_any_number_of_jobs() -> None:
    problems = tuple(
        replace(loopsched.gemm(m=m, n=2111, k=k, element_bytes=2), name=f"{m} {k}")
        for m, k in ((5124, 700), (33708, 512), (4099, 260))
    )
    workload = Workload("three", problems, (1, 1, 1))
    for budget in (1, 60_000):
        one, two = (
            [
                (
                    str(r.schedule),
                    r.certificate.lower_bound,
                    r.certificate.nodes,
                    r.certificate.effort,
                )
                for r in loopsched.search_workload(workload, TITAN, jobs=jobs, budget=budget)
            ]
            for jobs in (1, 2)
        )
        assert one == two
        if budget == 1:
            assert [effort.stopped for *_, effort in one] == ["budget"] * 3


def test_more_budget_is_never_worse_and_bounds_hold() -> None:
    problem = loopsched.gemm(m=33708, n=3999, k=512)
    best = loopsched.search(problem, TITAN).certificate
    value = float("inf")
    for budget in (1, 10_000, 100_000, 300_000):
        found = loopsched.search(problem, TITAN, budget=budget).certificate
        assert found.value <= value
        value = found.value
        assert found.lower_bound <= best.value <= value


def test_a_gap_ends_a_search() -> None:
    problem = loopsched.gemm(m=33708, n=3999, k=512)
    found = loopsched.search(problem, TITAN, gap=0.5).certificate
    assert found.effort.stopped == "gap"
    assert 0 < found.gap <= 0.5
    assert found.effort.work < loopsched.search(problem, TITAN).certificate.effort.work


def test_other_strategies_and_constraints_keep_to_a_budget() -> None:
    problem = loopsched.gemm(m=300, n=200, k=100)
    for strategy in ("random", "local", "exhaustive"):
        small = loopsched.gemm(m=3, n=4, k=5) if strategy == "exhaustive" else problem
        found = loopsched.search(small, TITAN, strategy=strategy, budget=50_000)  # type: ignore[arg-type]
        assert found.certificate.effort.stopped == "budget"
    tiles = Constraints(tiles="divisors")
    found = loopsched.search(problem, TITAN, constraints=tiles, budget=10)
    assert found.certificate.effort.stopped == "budget"
    assert found.certificate.lower_bound <= found.certificate.value


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"budget": 0}, "budget is 0"),
        ({"time_limit_s": -1}, "time_limit_s"),
        ({"gap": -1}, "gap is -1"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        loopsched.search(ENDLESS["long"], TITAN, **wrong)  # type: ignore[arg-type]


def test_a_watch_reports_and_ends() -> None:
    told: list[tuple[float, float]] = []
    watch = Watch(Budget(gap=0.1), lambda best, bound: told.append((best, bound)))
    watch._told -= 10
    watch.settle(2.0, 1.0)
    watch.settle(2.0, 1.0)
    assert told == [(2.0, 1.0)]
    with pytest.raises(Stopped):
        watch.settle(1.05, 1.0)
    assert watch.effort().stopped == "gap"


def test_a_watch_charges_shares_and_says_what_ended_it() -> None:
    watch = Watch(Budget(work=100))
    watch.spend(40)
    part = watch.part(3)
    assert part.budget.work == 20
    part.spend(19)
    watch.join(part)
    assert (watch.spent, watch.can_spend(40), watch.can_spend(41)) == (59, True, False)
    watch.why, part.why = "gap", "budget"
    watch.join(part)
    assert watch.effort() == Effort(Budget(work=100), 78, "budget")
    watch.why, part.why = "time limit", "gap"
    watch.join(part)
    assert watch.why == "time limit"
    with watch.stopping():
        watch.spend(2)
        raise KeyboardInterrupt
    assert (watch.spent, watch.why) == (99, "interrupt")
    last = Watch(Budget(work=10))
    with last.stopping():
        last.spend(10)
        raise AssertionError("the budget is used up")
    assert (last.why, Budget(work=7).of_exact().work) == ("budget", 7)


def test_an_interrupt_returns_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    score = exact.evaluate
    calls = 0

    def interrupted(*given: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return score(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(exact, "evaluate", interrupted)
    workload = Workload("two", (ENDLESS["cube"], ENDLESS["long"]), (1, 1))
    results = iter(loopsched.search_workload(workload, TITAN))
    found = next(results)
    assert found.certificate.effort.stopped == "interrupt"
    assert found.certificate.lower_bound <= found.certificate.value < float("inf")
    with pytest.raises(KeyboardInterrupt):
        next(results)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_prints_the_best_so_far() -> None:
    # It takes some seconds; the interrupt comes when it is under way.
    code = (
        "import os, signal, sys, threading\n"
        "from loopsched.cli import run\n"
        "from loopsched.scheduler import warm_up\n"
        "warm_up()\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "problem = ['conv2d:n=7,c=500,k=300,h=97,w=89,r=5,s=3,stride=2', '-a', 'mi300x']\n"
        "sys.exit(run(['search', *problem, '--format', 'jsonl']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 130, done.stderr
    [row] = [json.loads(line) for line in done.stdout.splitlines()]
    assert row["stopped"] == "interrupt"
    assert row["lower_bound"] <= row["time_s"]
    assert "Traceback" not in done.stderr
    assert signal.getsignal(signal.SIGINT) is not None


def test_orders_of_few_dims_are_among_the_main_classes() -> None:
    # Where no window slides, every order's runs are within those of a main class.
    for problem in (loopsched.gemm(m=4, n=4, k=4), loopsched.batched_gemm(batch=3, m=4, n=4, k=4)):
        main = main_classes(relevance(problem), problem.dims)
        for order in order_classes(problem, problem.dims):
            assert any(
                all(
                    set(run) <= set(other) for run, other in zip(order.runs, each.runs, strict=True)
                )
                for each in main
            )


@pytest.mark.parametrize(
    ("arch", "shape", "width"),
    [
        ("titan_v", (2**20, 2**20, 2**20), 4),
        ("h200", (131072, 131072, 131072), 4),
        ("t4", (2048, 3978, 512), 2),
    ],
)
def test_no_tiling_by_hand_is_better(arch: str, shape: tuple[int, int, int], width: int) -> None:
    m, n, k = shape
    problem = loopsched.gemm(m=m, n=n, k=k, element_bytes=width)
    machine = loopsched.load_arch(arch)
    best, text = best_tiling(problem, machine)
    found = loopsched.search(problem, machine).certificate
    assert found.value <= best * (1 + 1e-12), text
    assert found.gap < 0.1
