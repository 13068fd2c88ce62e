"""The figures of many schedules, and of one by compiled code: those of `evaluate`, one by one."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from collections.abc import Iterator
from itertools import islice
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import machines, problems, schedules

from loopsched.base import jit
from loopsched.base.errors import CapacityError, ScheduleError
from loopsched.base.pool import each_in_order
from loopsched.machines.arch import Arch, buffer_arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models import _promise_kernels as kernels
from loopsched.models import promises, score
from loopsched.models.many import TOO_LARGE, evaluate_many
from loopsched.models.score import Evaluation, evaluate
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.scheduler import space_of
from loopsched.scheduler.climbing import draws

ASKED = score._is_quick


class Form:
    """How one schedule is scored by itself."""

    is_compiled = False


@pytest.fixture(autouse=True, scope="module")
def compiled() -> Iterator[None]:
    """Few schedules, too, go through the compiled form; one by itself does if that is asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(promises, "COMPILED_FROM", 0)
        patch.setattr(score, "_is_quick", lambda: Form.is_compiled)
        yield


def by_compiled_code(problem: Problem, nest: Schedule, arch: Arch) -> Evaluation | None:
    """Score one schedule by compiled code as far as that goes; None if it does not fit."""
    Form.is_compiled = True
    try:
        return evaluate(problem, nest, arch)
    except CapacityError:
        return None
    finally:
        Form.is_compiled = False


def assert_as_one_by_one(problem: Problem, nests: list[Schedule], arch: Arch) -> int:
    """Compare every figure; returns how many schedules fit."""
    found = evaluate_many(problem, iter(nests), arch)
    assert list(found.level_bytes) == [level.name for level in arch.caches]
    for at, nest in enumerate(nests):
        row = [numbers[at] for numbers in found.level_bytes.values()]
        try:
            one = evaluate(problem, nest, arch)
        except CapacityError:
            assert by_compiled_code(problem, nest, arch) is None
            assert not found.fits[at]
            assert found.time_s[at] == found.compute_time_s[at] == math.inf
            assert {found.dram_bytes[at], *row} == {TOO_LARGE}
            continue
        assert found.fits[at]
        assert (found.time_s[at], found.compute_time_s[at]) == (one.time_s, one.compute_time_s)
        assert found.dram_bytes[at] == one.dram_bytes
        assert row == [level.moved.promised_bytes for level in one.levels]
        quick = by_compiled_code(problem, nest, arch)
        assert quick == one
        if quick and isinstance(quick.levels[0].moved._found, score._Parts):
            mine, whole = quick.levels[0].moved.own, one.levels[0].moved.own
            assert (mine, mine._finder.asked) == (whole, whole._finder.asked)
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


BIG = (
    gemm(m=1760, n=7000, k=1760),
    conv2d(n=4, c=1, k=32, h=161, w=70, r=5, s=20, stride=2),
    conv2d(n=8, c=64, k=64, h=56, w=56, r=3, s=3, padding=1),
    conv2d(n=8, c=64, k=96, h=28, w=28, r=1, s=1, stride=2),
    conv2d(n=2, c=32, k=32, h=30, w=30, r=3, s=3, padding=2, dilation=2, groups=4),
)


@pytest.mark.parametrize("problem", BIG, ids=lambda problem: problem.name)
@pytest.mark.parametrize("name", ["titan_v", "diannao"])
def test_tilings_of_what_networks_compute(problem: Problem, name: str) -> None:
    arch = load_arch(name)
    if name == "diannao":
        problem = problem.with_element_bytes(2)
    chosen = islice(draws(space_of(problem, arch), random.Random(1)), 24)
    nests = [limits.schedule(choice) for limits, choice in chosen]
    rate = arch.compute.rate("fp16" if name == "diannao" else "fp32")
    found = promises.promised_many(problem, nests, arch, max(1, int(rate)))
    known = found[:, kernels.OUTCOME] != kernels.UNKNOWN
    assert known.sum() > (12 if name == "titan_v" else 1)  # a scratchpad's halos are not known
    # What is not known waits for a replay: the same code, one by one.
    assert_as_one_by_one(problem, [nests[at] for at in known.nonzero()[0]], arch)


def test_few_schedules_are_worth_no_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "COMPILED_FROM", 2)
    monkeypatch.setattr(promises, "is_kept", lambda kernel: False)
    problem, arch = gemm(m=8, n=8, k=8), buffer_arch(capacity_bytes=256)
    nest = parse_schedule("M:8 N:8 K:8 M:4 N:4", problem)
    few, many = (promises.promised_many(problem, [nest] * n, arch, 1) for n in (1, 2))
    assert few[:, kernels.OUTCOME].tolist() == [kernels.UNKNOWN]
    assert many[:, kernels.OUTCOME].tolist() == [kernels.PROMISED] * 2
    assert assert_as_one_by_one(problem, [nest], arch) == 1


@pytest.mark.parametrize("policy", ["through", "back"])
def test_waves_that_end_within_an_iteration(policy: Literal["through", "back"]) -> None:
    """Of lanes, in an outermost level that each processor has for itself: left to Python."""
    levels = (
        Level("DRAM", "memory", None),
        Level("L2", "cache", 40_000, unit="SM", instances=5, bandwidth_bytes_per_s=10.0),
        Level(
            "L1", "cache", 10_000, unit="SM", instances=5, bandwidth_bytes_per_s=40.0,
            holds=("output",), write_policy=policy, accumulate="level",
        ),
    )  # fmt: skip
    arch = Arch("own", levels, Compute("SM", 5, 1.0, 1.0, (("fp32", 64.0),), lane_unit="lane"))
    problem, n_waves = gemm(m=512, n=512, k=512), 0
    for m, n, k in itertools.product((7, 8, 11), (3, 5), (8, 20, 512)):
        text = f"M:512@SM N:512@SM K:512 M:60@lane N:40@lane K:{k} M:{m} N:{n}"
        nest = parse_schedule(text, problem)
        known = promises.promised_one(problem, nest, arch, 64)
        if known is not None and known[1] is not None:
            n_waves += assert_as_one_by_one(problem, [nest], arch)
    assert n_waves > 3


def test_brackets_of_a_score_by_compiled_code() -> None:
    problem, arch = gemm(m=1024, n=1024, k=1024), load_arch("titan_v")
    nest = parse_schedule("M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8", problem)
    one, quick = evaluate(problem, nest, arch), by_compiled_code(problem, nest, arch)
    assert quick is not None
    copied = pickle.loads(pickle.dumps(quick))
    for level, mine, his in zip(one.levels, quick.levels, copied.levels, strict=True):
        assert level.tensors == mine.tensors == his.tensors
        assert level.moved.own == mine.moved.own


def test_compiled_code_is_loaded_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []
    monkeypatch.setattr(score, "LOADED_FROM", 3)
    monkeypatch.setattr(promises, "COMPILED_FROM", 9)
    monkeypatch.setattr(score, "_n_scored", 0)
    monkeypatch.setattr(score, "is_loaded", lambda kernel: len(looked) > 1)
    monkeypatch.setattr(score, "is_kept", lambda kernel: looked.append(True) or len(looked) > 1)
    is_quick = [ASKED() for _ in range(8)]
    assert is_quick == [False] * 5 + [True] * 3
    assert len(looked) == 2


@pytest.mark.parametrize("compiles_ahead", [True, False])
def test_compiled_code_is_made_when_it_pays(
    compiles_ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command, and no process of a pool, makes what it can do without."""
    monkeypatch.setattr(jit, "compiles_ahead", compiles_ahead)
    monkeypatch.setattr(score, "LOADED_FROM", 2)
    monkeypatch.setattr(promises, "COMPILED_FROM", 5)
    monkeypatch.setattr(score, "_n_scored", 0)
    monkeypatch.setattr(score, "is_loaded", lambda kernel: False)
    monkeypatch.setattr(score, "is_kept", lambda kernel: False)
    assert [ASKED() for _ in range(7)] == [False] * 5 + [compiles_ahead, False]


def test_processes_of_a_pool_compile_nothing_ahead() -> None:
    assert jit.compiles_ahead
    assert [*each_in_order(compiles_ahead, [(0,), (1,)], 2)] == [False] * 2


def compiles_ahead(_: int) -> bool:
    return jit.compiles_ahead


def test_a_unit_that_is_not_there_is_named() -> None:
    problem = gemm(m=8, n=8, k=8)
    nest = parse_schedule("M:8@SM N:8 K:8", problem)
    with pytest.raises(ScheduleError, match=r"schedule number 0: .*unknown unit 'SM'"):
        evaluate_many(problem, [nest], buffer_arch(capacity_bytes=256))


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
