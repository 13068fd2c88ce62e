"""Exhaustive, random and local search on spaces small enough to list."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched.base.errors import ConstraintError, EmptySpaceError
from loopsched.machines.arch import buffer_arch
from loopsched.machines.arch_file import load_arch
from loopsched.models.score import Evaluation, evaluate
from loopsched.nests.nest import Schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.scheduler import Constraints, Goal, Strategy, ranking, sampling, search, space_of
from loopsched.scheduler.allowed import allowed, allows
from loopsched.scheduler.climbing import neighbours
from loopsched.scheduler.counting import counter, every_choice, n_schedules
from loopsched.scheduler.enumerate import schedules
from loopsched.scheduler.result import rank
from loopsched.scheduler.sampling import sampled_search

TITAN = load_arch("titan_v")
SMALL = TITAN.with_value("L1.capacity", 64).with_value("L2.capacity", 160)
GEMM = gemm(m=4, n=3, k=2)
CONV = conv2d(n=2, c=3, k=4, h=6, w=5, r=3, s=3, padding=1)

CONSTRAINTS = (
    Constraints(),
    Constraints(tiles="divisors", before=(("C", "K"),)),
    Constraints(tiles="powers2", prefix="P:6 K:4@SM"),
    Constraints(extents=(("K", "L1", 1, 2), ("C", "L2", 3, 3)), before=(("P", "Q"), ("P", "R"))),
)


class TestExhaustive:
    @pytest.mark.parametrize("objective", ["time", "dram_bytes"])
    def test_finds_the_best_of_all(self, objective: Any) -> None:
        space = space_of(GEMM, SMALL)
        ranks = sorted(rank(evaluate(GEMM, nest, SMALL), objective) for nest in schedules(space))
        found = search(GEMM, SMALL, objective=objective, strategy="exhaustive", top=3)
        assert found.certificate.listed
        assert found.certificate.nodes == found.certificate.space_size == n_schedules(space)
        best = (found, *found.alternatives)
        assert [rank(one.evaluation, objective) for one in best] == ranks[:3]
        assert len({one.schedule for one in best}) == 3

    def test_nests_are_those_of_another_enumeration(self) -> None:
        space = space_of(GEMM, SMALL)
        limits = allowed(space)
        found = {limits.schedule(choice) for choice in every_choice(limits)}
        assert found == set(schedules(space))

    def test_refuses_large_spaces_and_says_how_large(self) -> None:
        problem = gemm(m=64, n=64, k=64)
        size = n_schedules(space_of(problem, TITAN))
        with pytest.raises(ConstraintError, match=f"{size:,} schedules; exhaustive takes at most"):
            search(problem, TITAN, strategy="exhaustive")


class TestRandom:
    @pytest.mark.parametrize("given", CONSTRAINTS, ids=str)
    def test_draws_are_in_the_space(self, given: Constraints) -> None:
        space = space_of(CONV, TITAN, given)
        limits, counted, rng = allowed(space), counter(space), random.Random(3)
        for _ in range(40):
            assert allows(space, limits.schedule(counted.draw(rng))) is None

    @pytest.mark.parametrize(
        "given",
        [
            Constraints(),
            Constraints(before=(("M", "K"),)),
            Constraints(before=(("M", "K"), ("M", "N")), tiles="divisors"),
            Constraints(prefix="N:2 M:3"),
        ],
        ids=str,
    )
    def test_each_schedule_is_as_likely(self, given: Constraints) -> None:
        self._is_even(gemm(m=3, n=2, k=2), given)

    def test_tied_dimensions_of_many_sizes_are_drawn_evenly(self) -> None:
        self._is_even(gemm(m=5, n=1, k=6), Constraints(before=(("M", "K"),)))

    def _is_even(self, problem: Problem, given: Constraints) -> None:
        space = space_of(problem, buffer_arch(capacity_bytes=64), given)
        counted, rng = counter(space), random.Random(11)
        per_choice = 60
        seen = Counter(counted.draw(rng) for _ in range(per_choice * counted.size))
        assert set(seen) == set(every_choice(allowed(space)))
        # Chi squared over size - 1 degrees of freedom: mean 1, here within five deviations.
        excess = sum((many - per_choice) ** 2 / per_choice for many in seen.values())
        degrees = counted.size - 1
        assert abs(excess / degrees - 1) < 5 * (2 / degrees) ** 0.5

    @pytest.mark.parametrize("strategy", ["random", "local"])
    def test_the_seed_decides(self, strategy: Any) -> None:
        def run(seed: int) -> Any:
            found = search(CONV, SMALL, strategy=strategy, seed=seed, samples=60, top=2)
            return found.schedule, found.certificate, found.alternatives

        assert run(1) == run(1)
        assert run(1) != run(2)

    @pytest.mark.parametrize("strategy", ["random", "local"])
    def test_certificates_claim_no_more_than_they_know(self, strategy: Any) -> None:
        exact = search(CONV, SMALL, objective="dram_bytes").certificate
        for samples in (1, 400):
            found = search(
                CONV, SMALL, objective="dram_bytes", strategy=strategy, samples=samples
            ).certificate
            assert found.nodes == samples
            assert found.lower_bound == (found.value if found.proven else exact.lower_bound)
            assert found.proven == (found.value <= exact.lower_bound)
            assert found.value >= exact.value


class TestLocal:
    @pytest.mark.parametrize("given", CONSTRAINTS, ids=str)
    def test_neighbours_are_one_step_away(self, given: Constraints) -> None:
        space = space_of(CONV, TITAN, given)
        limits, rng = allowed(space), random.Random(5)
        counted = counter(space)
        for _ in range(5):
            here = counted.draw(rng)
            steps = list(neighbours(limits, here, rng))
            for step in steps:
                assert allows(space, limits.schedule(step)) is None
                changed = [a != b for a, b in zip(here.extents, step.extents, strict=True)]
                assert sum(changed) <= 1
                if not any(changed):
                    swapped = [a for a, b in zip(here.orders, step.orders, strict=True) if a != b]
                    assert len(swapped) == 1

    def test_every_small_space_is_connected(self) -> None:
        """From one schedule, steps lead to all others: hill climbing can get anywhere."""
        space = space_of(GEMM, TITAN, Constraints(tiles="divisors", before=(("M", "K"),)))
        limits, rng = allowed(space), random.Random(0)
        everything = set(every_choice(limits))
        reached, fresh = set[Any](), {next(every_choice(limits))}
        for _ in range(60):
            reached |= fresh
            fresh = {
                step for here in fresh for _ in range(2) for step in neighbours(limits, here, rng)
            } - reached
        assert reached == everything

    def test_climbing_beats_drawing(self) -> None:
        problem = gemm(m=1760, n=128, k=1760)
        climbed, drawn = (
            search(problem, TITAN, strategy=strategy, samples=300).certificate.value
            for strategy in ("local", "random")
        )
        assert climbed < drawn


class TestFaults:
    def test_nothing_fits(self) -> None:
        arch = buffer_arch(capacity_bytes=8, policy="explicit")
        with pytest.raises(EmptySpaceError, match="none of the 50 schedules looked at fits"):
            sampled_search(space_of(GEMM, arch), Goal(strategy="random", samples=50))

    def test_arguments(self) -> None:
        with pytest.raises(ConstraintError, match="strategy 'anneal' is unknown"):
            Goal(strategy="anneal")  # type: ignore[arg-type]
        with pytest.raises(ConstraintError, match="samples is 0"):
            Goal(samples=0)

    @pytest.mark.parametrize("strategy", ["exhaustive", "random", "local"])
    def test_an_interrupt_keeps_the_best_so_far(
        self, strategy: Strategy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scored: list[Schedule] = []

        def interrupted(*given: Any, **options: Any) -> Evaluation:
            if len(scored) == 20:
                raise KeyboardInterrupt
            scored.append(given[1])
            return evaluate(*given, **options)

        monkeypatch.setattr(ranking, "evaluate", interrupted)
        found = sampled_search(space_of(GEMM, SMALL), Goal("dram_bytes", strategy))
        assert rank(found.evaluation, "dram_bytes") == min(
            rank(evaluate(GEMM, nest, SMALL), "dram_bytes") for nest in scored
        )
        assert found.certificate.space_size == 2247

    def test_an_interrupt_before_anything_is_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: Any, **__: Any) -> Evaluation:
            raise KeyboardInterrupt

        monkeypatch.setattr(ranking, "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sampled_search(space_of(GEMM, SMALL), Goal(strategy="random"))


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(8, 60))
@settings(max_examples=10)
def test_exact_and_exhaustive_agree(m: int, n: int, k: int, room: int) -> None:
    problem, arch = gemm(m=m, n=n, k=k), buffer_arch(capacity_bytes=4 * room)
    exact, every = (
        search(problem, arch, objective="dram_bytes", strategy=strategy).certificate
        for strategy in ("exact", "exhaustive")
    )
    assert (exact.value, exact.space_size) == (every.value, every.space_size)


def test_streaming_starts_at_once() -> None:
    """A space far too large to list gives its first schedules."""
    limits = allowed(space_of(gemm(m=32, n=8, k=8), TITAN))
    assert len(set(islice(every_choice(limits), 100))) == 100
    assert sampling.MAX_EXHAUSTIVE == 10_000_000
