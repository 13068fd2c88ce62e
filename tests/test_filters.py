"""What caches promise behind other levels, against the simulator of whole machines."""

from __future__ import annotations

import random

import pytest
from model_cases import random_case

from loopsched.base.errors import InputError
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.buffer import lru_traffic
from loopsched.models.score import evaluate
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.simulator import simulate

UNITS = ((), ("SM",), ("CLU", "SM"))


def two_caches(outer: int, inner: int) -> Arch:
    levels = (
        Level("DRAM", "memory", None),
        Level("L2", "cache", outer, bandwidth_bytes_per_s=1.0),
        Level("L1", "cache", inner, bandwidth_bytes_per_s=1.0),
    )
    return Arch("two", levels, Compute("core", 1, 1.0, 1.0, (("fp32", 1.0),)))


def test_what_the_inner_cache_keeps_grows_old_outside() -> None:
    """The outer cache sees only misses: alone it would move 96 bytes, behind another 100."""
    problem = conv2d(
        c=2, k=1, h=5, w=1, r=1, s=1, stride=(2, 1), padding=(2, 1, 1, 0), dilation=(1, 2),
        pass_="backward_data",
    )  # fmt: skip
    arch = two_caches(30, 10)
    nest = parse_schedule("C:2 Q:2 P:4", problem)
    moved = evaluate(problem, nest, arch).level("L2").moved
    assert simulate(problem, nest, arch=arch).level("L2").bytes == 100
    assert simulate(problem, nest, arch=arch, sees="all").level("L2").bytes == 96
    assert 100 <= moved.bytes.high <= moved.promised_bytes


@pytest.mark.parametrize("seed", range(3))
def test_promises_hold_behind_other_caches(seed: int) -> None:
    rng = random.Random(seed)
    n_filtered = 0
    for _ in range(150):
        case = random_case(rng, units=UNITS, shares_sums=False)
        try:
            score = evaluate(case.problem, case.schedule, case.arch, effort=2**12)
        except InputError:
            continue
        found = simulate(case.problem, case.schedule, arch=case.arch)
        for level, seen in zip(score.levels, found.levels, strict=True):
            assert seen.bytes <= level.moved.bytes.high, str(case)
            assert level.moved.bytes.high <= level.moved.promised_bytes, str(case)
        n_filtered += len(case.arch.caches) > 1
    assert n_filtered > 50


@pytest.mark.parametrize(
    "text",
    ["M:1280@SM N:1024@SM K:1024 M:128 N:128 K:32", "N:1024 M:1280@SM K:1024 M:16 N:64 K:8"],
)
def test_items_that_start_cold_ask_for_all_anew(text: str) -> None:
    """The usual GPU: what the shared cache promises is what it would if it saw everything."""
    problem = gemm(m=1280, n=1024, k=1024)
    own = evaluate(problem, parse_schedule(text, problem), load_arch("titan_v")).levels[0].moved.own
    assert own.promised == lru_traffic(own.view, own.room).promised
