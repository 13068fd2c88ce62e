"""Operands packed once for many calls."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
from kernel_fuzz import case, drawn, point_by_point, stored

from loopsched import Problem, ProblemError, conv2d, einsum, gemm, load_arch
from loopsched import compile as compiled
from loopsched.codegen import compiled as module
from loopsched.codegen.choose import ranked
from loopsched.codegen.compiled import CompiledKernel, How
from loopsched.codegen.core import Core
from loopsched.codegen.element import DATA_TYPES
from loopsched.codegen.threads import n_cpus

HOST = load_arch("host")


def some_cases(n: int) -> list[tuple[int, Problem, str]]:
    """Draw problems of two operands with types."""
    found = []
    for seed in range(40_000, 50_000):
        one = case(seed)
        if len(one.problem.tensors) == 3:
            found.append((seed, one.problem, one.data_type))
        if len(found) == n:
            break
    return found


@pytest.mark.parametrize(("seed", "problem", "data_type"), some_cases(16))
def test_any_plan_finds_what_was_packed(
    seed: int, problem: Problem, data_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)

    def any_plan(*given: Any, **_: Any) -> list[Any]:
        found = ranked(*given)
        packed = [one for one in found if one[2].is_right_given]
        return [draw.choice(packed or found)]

    monkeypatch.setattr(module, "ranked", any_plan)
    lanes = 64 // DATA_TYPES[data_type].compute.n_bytes
    core = Core(lanes, 32, 1, 4, 1.5, 2**15, 2**20, 3.7e9)
    kernel = CompiledKernel(problem, core, data_type, How(draw.choice([1, 2])))
    numbers_ = drawn(case(seed))
    wanted = stored(point_by_point(problem, numbers_), data_type, is_out=True)
    first, second = (stored(numbers_[name], data_type, is_out=False) for name in kernel.names[:2])
    packed = kernel.pack(second)
    second[...] = 1  # the copy does not see it
    out = np.ones_like(wanted)
    for given in (first, first, np.array(first, order="F")):
        out[...] = 1
        kernel(given, packed, out)
        assert np.array_equal(out, wanted)


def test_a_packed_weight_may_be_pickled_with_its_kernel() -> None:
    kernel = compiled(gemm(m=9, n=37, k=11), HOST, bias="N", relu=True)
    draw = np.random.default_rng(3)
    a, b, bias = (draw.random(kernel.shapes[name], np.float32) for name in kernel.names[:3])
    other, packed = pickle.loads(pickle.dumps((kernel, kernel.pack(b))))
    assert np.array_equal(other(a, packed, bias), kernel(a, b, bias))


def test_several_plans_are_timed_with_what_is_packed() -> None:
    problem = conv2d(n=1, c=20, k=36, h=9, w=9, r=3, s=3, padding=1)
    kernel = compiled(problem, HOST, measure=3, threads=1)
    image, weight = (np.ones(kernel.shapes[name], "f4") for name in kernel.names[:2])
    assert np.array_equal(kernel(image, kernel.pack(weight)), kernel(image, weight))


def test_only_the_kernel_that_packed_it_takes_it_and_only_in_its_place() -> None:
    kernel, other = (compiled(gemm(m=8, n=8, k=8), HOST, relu=one) for one in (False, True))
    square = np.ones((8, 8), "f4")
    packed = kernel.pack(square)
    for callee, given, message in (
        (other, (square, packed), "another kernel's packed 'B'"),
        (kernel, (packed, square), "array 1 is this kernel's packed 'B'"),
        (kernel, (square, square, packed), "array 3 is this kernel's"),
    ):
        with pytest.raises(ProblemError, match=message):
            callee(*given)


def test_what_cannot_be_packed() -> None:
    kernel = compiled(gemm(m=2, n=4, k=3), HOST)
    with pytest.raises(ProblemError, match=r"'B' has shape \(4, 3\); \(3, 4\)"):
        kernel.pack(np.zeros((4, 3), "f4"))
    with pytest.raises(ProblemError, match="'B' has elements of float64"):
        kernel.pack(np.zeros((3, 4)))
    several = compiled(einsum("ab,bc,cd->ad", {"a": 2, "b": 3, "c": 4, "d": 5}), HOST)
    with pytest.raises(ProblemError, match="multiplies 3 tensors"):
        several.pack(np.zeros((3, 4), "f4"))


def test_lanes_that_nothing_is_copied_into_are_zero() -> None:
    """Tiles multiply them, too; subnormal numbers there took ten times as long on Intel's cores."""
    dirty = [np.full(54_096, 1, np.uint8) for _ in range(8)]
    del dirty
    assert not any(CompiledKernel._new_room(50_000)[2].any() for _ in range(8))


@pytest.mark.skipif(n_cpus() < 2, reason="two threads need two CPUs")
def test_threads_copy_into_the_same_rooms_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one thread has written lies in its own cache."""
    kernel = compiled(gemm(m=64, n=640, k=64), "host", threads=2)
    seen: list[tuple[int, ...]] = []

    class Crew:
        def run(self, function: int, given: object, rooms: list[int], n_jobs: int) -> bool:
            seen.append(tuple(rooms))
            return False

    monkeypatch.setattr(module, "crew", lambda n: Crew())
    a, b = np.ones((64, 64), np.float32), np.ones((64, 640), np.float32)
    for _ in range(3):
        kernel(a, b)
    assert len(seen[0]) == 2
    assert seen == seen[:1] * 3
