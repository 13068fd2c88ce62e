"""What is told of kernels is what their programs do."""

from __future__ import annotations

import json
import re

import pytest
from kernel_fuzz import case

from loopsched import (
    Problem,
    ProblemError,
    conv2d,
    einsum,
    gemm,
    kernel_schedules,
    load_arch,
)
from loopsched import compile as compiled
from loopsched.cli import run
from loopsched.codegen.choose import core_of, ranked
from loopsched.codegen.contraction import contractions
from loopsched.codegen.described import KernelSchedule, of_plan
from loopsched.codegen.element import FP32
from loopsched.codegen.engine import Engine, form
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.plan import Plan, Walk, even

SERVER = load_arch("epyc_9654")
CORE = core_of(SERVER, 4)[0]
KIND = FP32, CORE.lanes


def jobs_of(schedule: KernelSchedule) -> int:
    """Multiply the trips of the loops that threads share."""
    n = 1
    for one in schedule.loops:
        n *= one.trips if one.is_parallel else 1
    return n


@pytest.mark.parametrize("seed", range(30))
def test_loops_are_those_of_the_program(seed: int) -> None:
    """Jobs, copies and products of random kernels, counted in what is written."""
    problem = case(seed).problem
    try:
        tasks = contractions(problem)
    except NotImplementedError:
        (schedule,) = kernel_schedules(problem, SERVER, data_type="fp32")
        assert schedule.estimate_s is None
        return
    for task in tasks:
        for _, one, plan in ranked(task, CORE, 2)[seed % 7 :: 997]:
            text = LlvmText(*KIND)
            engine = form(plan)(text, one, plan, "f")
            engine.write()
            program = text.text()
            found = of_plan(task, plan, KIND, 2, 1.0)
            assert jobs_of(found) == engine.n_jobs
            assert jobs_of(of_plan(task, plan, KIND, 1, 1.0)) == 1
            packed = {loop.packs for loop in found.loops} - {""}
            sides = {"left": one.left.name, "right": one.right.name}
            assert packed == {name for side, name in sides.items() if f"@f_pack_{side}" in program}
            for loop in found.loops:
                is_part = loop.is_parallel and loop.dims == plan.rows.dims  # may have no rows
                if len(loop.dims) == 1 and not is_part:
                    size = one.size(loop.dims[0])
                    assert (loop.trips - 1) * loop.step < size


@pytest.mark.parametrize(("k", "n_written"), [(500, 2), (501, 3)])
def test_a_tile_has_so_many_products(k: int, n_written: int) -> None:
    """Rows by vectors, as often as its sum is unrolled, and once for what is left of it, if any.

    The less high tiles of a block are not unrolled.
    """
    (task,) = contractions(gemm(m=61, n=256, k=k))
    _, one, plan = ranked(task, CORE)[0]
    found = of_plan(task, plan, KIND, 1, 1.0)
    text = LlvmText(*KIND)
    Engine(text, one, plan, "f").write()
    tiles = re.findall(r"define [^\n]*@f_tile\d+_(\d+)_(\d+)\((.*?)\n}", text.text(), re.S)
    bodies = {(int(rows), int(cols)): body for rows, cols, body in tiles}
    assert found.unroll == 2
    for (rows, _), times in zip(even(61, found.tile_rows), (n_written, 1), strict=True):
        n = rows * -(-found.tile_cols // found.lanes)
        body = bodies[rows, found.tile_cols]
        assert body.count("call <16 x float> @llvm.fma") == n * times


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            gemm(m=1500, n=1500, k=1500, transpose_b=True),
            "parallel .* packs B; .*tile .* M x .* N in .* along N; K unrolled by 2",
        ),
        (
            conv2d(n=1, c=96, k=96, h=56, w=56, r=3, s=3, padding=1, groups=96),
            "parallel G; tile . P x 16 Q in 1 vector of 16 along Q; R,S fully unrolled",
        ),
        (
            conv2d(n=1, c=512, k=512, h=7, w=7, r=3, s=3, padding=1),
            "parallel K by .*packs weight; P; tile 7 Q x .* along K; S fully unrolled",
        ),
        (einsum("ab,bc,cd->ad", {"a": 50, "b": 60, "c": 70, "d": 80}), "parallel a .*along d"),
    ],
    ids=lambda one: one.name if isinstance(one, Problem) else "",
)
def test_words(problem: Problem, text: str) -> None:
    (found,) = kernel_schedules(problem, SERVER, threads=2)
    assert re.fullmatch(text, found.text())


@pytest.mark.parametrize(
    "problem",
    [
        gemm(m=60, n=50, k=40),
        einsum("ab,ab->a", {"a": 9, "b": 8}),
        einsum("ab,bc,cd->ad", {"a": 5, "b": 6, "c": 7, "d": 8}),
        conv2d(n=1, c=4, k=6, h=9, w=9, r=3, s=3, stride=2, pass_="backward_data"),
    ],
    ids=lambda one: one.name,
)
def test_what_is_told_is_what_is_compiled(problem: Problem) -> None:
    kernel = compiled(problem, "host", bias=(), relu=False)
    assert kernel.schedules == kernel_schedules(problem, "host", threads=kernel.threads)


def test_the_tile_that_is_told_is_the_highest_that_is_written() -> None:
    (task,) = contractions(gemm(m=60, n=64, k=64))
    walks = Walk(("M",), 0, 60), Walk(("N",), 0, 64), Walk(("K",), 0, 64)
    plan = Plan((), *walks, 28, 16)
    assert "tile 20 M x 16 N" in of_plan(task, plan, KIND, 1, 0.0).text()
    text = LlvmText(*KIND)
    Engine(text, task, plan, "f").write()
    assert set(re.findall(r"define [^\n]*@f_tile\d+_(\d+)_", text.text())) == {"20"}


def test_what_is_asked_for_is_checked_as_for_kernels() -> None:
    problem = gemm(m=4, n=4, k=4)
    for given, told in (
        ({"data_type": "fp16"}, "data_type is 'fp16'"),
        ({"threads": -1}, "threads is -1"),
        ({"threads": "2"}, "threads is '2'"),
        ({"threads": 97}, "threads is 97; 'epyc_9654' has 96 cores"),
    ):
        with pytest.raises(ProblemError, match=told):
            kernel_schedules(problem, SERVER, **given)  # type: ignore[arg-type]


def test_a_search_for_a_cpu_tells_of_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["search", "gemm:m=40,n=50,k=60", "--arch", "epyc_9654", "--top", "2"]
    assert run(given) == 0
    assert "\n    plan: " in capsys.readouterr().out
    assert run([*given, "--format", "json"]) == 0
    best, second = json.loads(capsys.readouterr().out)
    (kernel,) = best["kernel"]
    (wanted,) = kernel_schedules(gemm(m=40, n=50, k=60), SERVER)
    assert kernel == json.loads(json.dumps(wanted.row()))
    assert second["kernel"] == []
    assert run(["search", "gemm:m=4,n=4,k=4,element_bytes=3", "--arch", "epyc_9654"]) == 0
    assert "plan: " not in capsys.readouterr().out
