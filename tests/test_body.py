"""The best body for one buffer against every two-block nest, and extents with gaps."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import permutations, product
from random import Random

import oracle
import pytest
from oracle_search import random_problem

import loopsched
from loopsched.base.errors import ScheduleError
from loopsched.models.traffic import Room
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.builders import PASSES, affine
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.scheduler.body import GUARANTEED, PLACED, Keeps, best_body
from loopsched.scheduler.tables import tables_for


def _two_blocks(problem: Problem) -> set[Schedule]:
    """Every nest of one block of loops around a body, in any order."""
    found = set()
    sizes = [(dim, size) for dim, size in problem.sizes if size > 1]
    for tiles in product(*(range(1, size + 1) for _, size in sizes)):
        outside = [Loop(dim, size) for (dim, size), t in zip(sizes, tiles, strict=True) if t < size]
        inside = [Loop(dim, t) for (dim, _), t in zip(sizes, tiles, strict=True) if t > 1]
        for outer in permutations(outside):
            for inner in permutations(inside):
                found.add(Schedule((*outer, *inner)))
    return found


@pytest.mark.parametrize("policy", ["lru", "explicit"])
def test_nothing_in_two_blocks_moves_less(policy: str) -> None:
    seed = n_cases = 0
    while n_cases < 40:
        rng = Random(seed)
        seed += 1
        problem = random_problem(rng)
        if sum(size > 1 for _, size in problem.sizes) > 3 or problem.macs == 1:
            continue
        n_cases += 1
        capacity = rng.randint(12, 120)
        moved = []
        for nest in _two_blocks(problem):
            try:
                found = loopsched.traffic(
                    problem,
                    nest,
                    capacity_bytes=capacity,
                    policy=policy,  # type: ignore[arg-type]
                )
            except ScheduleError:
                continue
            moved.append(found.promised_bytes)
        least = best_body(problem, Room.shared(capacity), Keeps(policy == "lru"))
        if least is None:  # not one point fits; a cache then misses on every access
            assert policy == "lru" or not moved
        else:
            assert least.bytes == min(moved)


def test_no_walk_of_tiles_with_gaps_loads_less() -> None:
    """Every nest of two blocks, walked literally, strides and dilations leaving gaps."""
    rng = Random(7)
    n_cases = n_gaps = 0
    while n_cases < 40:
        problem = loopsched.conv2d(
            c=1, k=rng.randint(1, 2), p=rng.randint(3, 9), q=1, r=rng.randint(2, 3), s=1,
            stride=(rng.randint(1, 3), 1), dilation=(rng.randint(2, 3), 1), element_bytes=1,
            pass_=rng.choice(PASSES),
        )  # fmt: skip
        n_cases += 1
        capacity = rng.randint(4, 16)
        walks = [oracle.explicit(problem, nest, capacity) for nest in _two_blocks(problem)]
        moved = [walk.total for walk in walks if walk is not None]
        least = best_body(problem, Room.shared(capacity), PLACED)
        assert (least.bytes if least else None) == min(moved, default=None)
        tables = tables_for(problem).with_whole_sweeps()
        whole = best_body(problem, Room.shared(capacity), PLACED, tables=tables)
        n_gaps += bool(least and whole and whole.bytes < least.bytes)
    assert n_gaps


def test_a_body_found_among_few_extents_first_moves_what_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a window keeps as it slides was looked up at wrong places."""
    for height, stride, padding in product((9, 14), (1, 2), (0, 1)):
        layer = loopsched.conv2d(
            n=1, c=2, k=2, h=height, w=height, r=3, s=3, stride=stride, padding=padding
        )
        for room, keeps in product((Room.shared(40), Room.shared(200)), (PLACED, GUARANTEED)):
            at_once = best_body(layer, room, keeps)
            with monkeypatch.context() as few:
                few.setattr("loopsched.scheduler.body.MANY_BODIES", 30)
                few.setattr("loopsched.scheduler.body.FEW_EXTENTS", 3)
                after_few = best_body(layer, room, keeps)
            assert (at_once and at_once.bytes) == (after_few and after_few.bytes)


def test_a_larger_tile_may_touch_less_where_windows_have_gaps() -> None:
    # Tiles of 3 and 1 along R touch 5 + 3 positions with stride 2, two tiles of 2 touch 4 + 4.
    image = Axis((("P", 2), ("R", 1)))
    tensors = (Tensor("X", (image,), 1), Tensor("Y", (Axis((("P", 1),)),), 1))
    problem = Problem("gaps", (("P", 2), ("R", 4)), tensors, "Y")
    arch = loopsched.buffer_arch(capacity_bytes=7, policy="explicit")
    result = loopsched.search(problem, arch, objective="dram_bytes")
    every = [
        loopsched.evaluate(problem, nest, arch).dram_bytes
        for nest in _two_blocks(problem)
        if _fits(problem, nest, arch)
    ]
    assert result.certificate.proven
    assert result.evaluation.dram_bytes == min(every)


UNEVEN = {
    "a filter of stride 3 leaves gaps": (
        affine({"P": 6, "R": 2}, {"x": "P + 3*R", "y": "P"}, output="x", element_bytes=1),
        "lru", 12,
    ),
    "padding before what is stored": (
        affine(
            {"P": 4}, {"x": "P - 2 < 2", "w": "", "y": "P"}, output="x",
            element_bytes={"x": 4, "w": 1, "y": 2},
        ),
        "lru", 12,
    ),
    "tiles of windows with gaps": (
        affine(
            {"P": 4, "R": 3}, {"x": "P + 2*R", "w": "R", "y": "P"}, output="x",
            element_bytes={"x": 2, "w": 1, "y": 1},
        ),
        "explicit", 10,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNEVEN)
def test_larger_extents_that_touch_less_are_tried(name: str) -> None:
    problem, policy, capacity = UNEVEN[name]
    moved = []
    for nest in _two_blocks(problem):
        with suppress(ScheduleError):
            found = loopsched.traffic(
                problem,
                nest,
                capacity_bytes=capacity,
                policy=policy,  # type: ignore[arg-type]
            )
            moved.append(found.promised_bytes)
    least = best_body(problem, Room.shared(capacity), Keeps(policy == "lru"))
    assert least is not None
    assert least.bytes == min(moved)


def _fits(problem: Problem, nest: Schedule, arch: loopsched.Arch) -> bool:
    try:
        loopsched.evaluate(problem, nest, arch)
    except ScheduleError:
        return False
    return True


def test_a_tensor_that_passes_costs_nothing_here() -> None:
    problem = loopsched.gemm(m=8, n=8, k=8, element_bytes=1)
    for name in "ABC":
        found = best_body(problem, Room(1000, (), frozenset(name)), PLACED)
        assert found is not None
        assert found.bytes == 2 * 64


def test_double_buffering_halves_the_room() -> None:
    problem = loopsched.gemm(m=64, n=60, k=56)
    for room in (64, 1000, 4096):
        twice = best_body(problem, Room.shared(2 * room), Keeps(False, copies=2))
        once = best_body(problem, Room.shared(room), PLACED)
        assert twice is not None
        assert once is not None
        assert twice.bytes == once.bytes


def test_a_bound_knows_double_buffers() -> None:
    problem = loopsched.gemm(m=96, n=80, k=64)
    once = loopsched.buffer_arch(capacity_bytes=4096, policy="explicit")
    level = replace(once.caches[0], capacity_bytes=8192, double_buffered=True)
    twice = replace(once, levels=(once.memory, level))
    best = [loopsched.search(problem, arch, objective="dram_bytes") for arch in (once, twice)]
    assert best[0].evaluation.dram_bytes == best[1].evaluation.dram_bytes
    assert best[1].certificate.proven
