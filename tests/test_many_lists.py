"""Lists of items whose waves keep what comes again: a bound tells what replays find."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from test_many_waves import RATES, layers, one_by_one, products, windows

from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.models import _promise_kernels as kernels
from loopsched.models import promises
from loopsched.models.replay import Nest
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import affine
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem


def lists(rng: random.Random, problem: Problem) -> Schedule:
    """One list of items along some dimensions, the others whole."""
    dims = rng.sample(list(problem.dims), len(problem.dims))
    n = rng.randint(1, len(dims))
    most = rng.choice([2, 5, 99])
    loops = [Loop(dim, problem.size[dim], "SM" if i < n else None) for i, dim in enumerate(dims)]
    loops += [Loop(dim, rng.randint(1, min(most, problem.size[dim]))) for dim in dims[:n]]
    return Schedule.of(loops).check(problem)


def machine(rng: random.Random, problem: Problem) -> Arch:
    """One cache that units share, of some part of what there is."""
    whole = sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
    size = max(8, math.ceil(whole * rng.choice([0.3, 0.6, 0.8, 0.9, 0.95, 1.0]) * rng.random()))
    levels = Level("DRAM", "memory", None), Level("L2", "cache", size, bandwidth_bytes_per_s=1.0)
    units = rng.choice([1, 2, 3, 5, 7])
    return Arch("random", levels, Compute("SM", units, 1.0, 1.0, RATES, lane_unit="lane"))


@pytest.mark.parametrize("problems", [layers, products, windows])
def test_lists_that_stay_bring_all_in_once(
    problems: Callable[[random.Random], Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's form follows every wave."""
    monkeypatch.setattr(promises, "COMPILED_FROM", 0)
    monkeypatch.setattr(Nest, "_steps", lambda _, depth, pool: (depth, depth))
    rng, n_once, n_more = random.Random(3), 0, 0
    for _ in range(250):
        problem = problems(rng)
        arch = machine(rng, problem)
        drawn = [lists(rng, problem) for _ in range(4)]
        found = promises.promised_many(problem, drawn, arch, 4)
        once = sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
        for nest, row in zip(drawn, found.tolist(), strict=True):
            if row[kernels.OUTCOME] == kernels.PROMISED:
                assert row[kernels.BYTES :] == one_by_one(problem, nest, arch, 4), str(nest)
                n_once += row[kernels.BYTES] == once
                n_more += row[kernels.BYTES] > once
    assert n_once > 40
    assert n_more > 200


def test_an_element_comes_again_after_all_the_items_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """X comes again with the next K, behind all items of C and P; Y with the next C."""
    monkeypatch.setattr(promises, "COMPILED_FROM", 0)
    problem = affine(
        {"P": 6, "R": 2, "K": 3, "C": 2}, {"X": "3*P + R, C", "W": "R, K", "Y": "P, K"},
        element_bytes={"X": 1, "W": 2, "Y": 2},
    )  # fmt: skip
    nest = parse_schedule("K:3@SM C:2@SM P:6@SM R:2 K:1 C:2 P:1", problem)
    assert promised(problem, nest, units=5, capacity=56) == 77


def test_items_in_a_row_reach_into_other_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of six items, two of the same columns each, touch columns of two items at least."""
    monkeypatch.setattr(promises, "COMPILED_FROM", 0)
    problem = affine(
        {"D": 2, "E": 10}, {"X": "E", "Y": "D, E", "Z": "E"},
        element_bytes={"X": 1, "Y": 4, "Z": 2},
    )  # fmt: skip
    nest = parse_schedule("E:10@SM D:2@SM E:4 D:1", problem)
    assert promised(problem, nest, units=3, capacity=51) == 125


def promised(problem: Problem, nest: Schedule, units: int, capacity: int) -> int:
    """What compiled code promises of one cache that units share, as Python's form does."""
    cache = Level("L2", "cache", capacity, bandwidth_bytes_per_s=1.0)
    compute = Compute("SM", units, 1.0, 1.0, RATES)
    arch = Arch("shared", (Level("DRAM", "memory", None), cache), compute)
    (found,) = promises.promised_many(problem, [nest], arch, 4).tolist()
    assert found[kernels.OUTCOME] == kernels.PROMISED
    assert found[kernels.BYTES :] == one_by_one(problem, nest, arch, 4)
    return int(found[kernels.BYTES])
