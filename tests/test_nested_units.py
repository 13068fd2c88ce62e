"""Units in units: what a level promises, against the simulator of whole machines."""

from __future__ import annotations

import random

import pytest
from model_cases import random_case

from loopsched.base.errors import InputError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.reasons import explain
from loopsched.models.score import evaluate
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import gemm
from loopsched.simulator import simulate


def test_items_of_a_unit_are_shared_by_the_units_in_it() -> None:
    """Two SMs a CLU take two of four rows at a time; all four SMs, no more than that."""
    problem = gemm(m=4, n=2, k=1)
    levels = (
        Level("DRAM", "memory", None),
        Level("L2", "cache", 12, bandwidth_bytes_per_s=1.0),
        Level("CL", "cache", 4, 2, "CLU", 1.0),
        Level("L1", "cache", 4, 4, "SM", 1.0),
    )
    arch = Arch("nested", levels, Compute("SM", 4, 1.0, 1.0, (("fp32", 1.0),)))
    nest = parse_schedule("N:2@CLU M:4@SM", problem)
    score = evaluate(problem, nest, arch)
    assert simulate(problem, nest, arch=arch).level("L2").bytes == 76
    seen = simulate(problem, nest, arch=arch, sees="all").level("L2").bytes
    moved = score.level("L2").moved
    assert moved.bytes.low == seen == 80
    assert seen <= moved.bytes.high <= moved.promised_bytes


@pytest.mark.parametrize("seed", range(3))
def test_brackets_hold_levels_that_see_all_accesses(seed: int) -> None:
    rng = random.Random(seed)
    n_nested = 0
    for _ in range(120):
        case = random_case(rng, units=(("SM",), ("CLU", "SM"), ("CLU", "SM", "core")))
        try:
            score = evaluate(case.problem, case.schedule, case.arch, effort=2**12)
        except InputError:
            continue
        found = simulate(case.problem, case.schedule, arch=case.arch, sees="all")
        for level, seen in zip(score.levels, found.levels, strict=True):
            bracket = level.moved.bytes
            assert bracket.low <= seen.bytes <= bracket.high, str(case)
            assert seen.bytes <= level.moved.promised_bytes, str(case)
        n_nested += len({loop.unit for loop in case.schedule.loops if loop.unit}) > 1
    assert n_nested > 20


def test_reasons_know_the_lanes() -> None:
    """Eight lanes side by side touch eight rows of A at a time."""
    compute = Compute("core", 1, 1.0, 1.0, (("fp32", 8.0),), lane_unit="lane")
    levels = (Level("DRAM", "memory", None), Level("L1", "cache", 600, bandwidth_bytes_per_s=1.0))
    problem = gemm(m=64, n=8, k=8)
    nest = parse_schedule("M:64@lane N:8 K:8", problem)
    arch = Arch("lanes", levels, compute)
    (reason,) = explain(problem, nest, arch)
    assert (
        reason.score.working_set_bytes == evaluate(problem, nest, arch).levels[0].working_set_bytes
    )
    assert (reason.score.working_set_bytes, reason.overflow_bytes) == (320, 768)
