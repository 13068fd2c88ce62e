"""Every kind of plan of a contraction, not only the first choice, gives the sums of all points."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from loopsched import Problem, conv2d, gemm, load_arch
from loopsched.codegen import plan as cutting
from loopsched.codegen.choose import core_of, ranked, register_tiles
from loopsched.codegen.compiled import build
from loopsched.codegen.contraction import Contraction, contractions, stored_shape
from loopsched.codegen.element import BF16, FP32, Element
from loopsched.codegen.engine import Engine
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.plan import Plan, Walk, goes_across, length, skips
from loopsched.codegen.reference import reference
from loopsched.codegen.shares import SPEEDS, slowest_share
from loopsched.problems.problem import Axis, Tensor

CORE = core_of(load_arch("host"), 4)[0]
CHANNELS = {"c": 5, "k": 37, "n": 2}


def blocked(k: int, blocks: int, width: int, c: int) -> Problem:
    """Make a padded convolution of one axis, whose points are walked in blocks."""
    window = Axis((("A", width), ("Q", 1), ("S", 1)), -1, blocks * width)
    single = {dim: Axis(((dim, 1),)) for dim in "KAQCS"}
    tensors = (
        Tensor("input", (single["C"], window)),
        Tensor("weight", tuple(map(single.__getitem__, "KCS"))),
        Tensor("output", tuple(map(single.__getitem__, "KAQ"))),
    )
    sizes = ("K", k), ("A", blocks), ("Q", width), ("C", c), ("S", 3)
    return Problem("blocked", sizes, tensors, "output")


PROBLEMS = {
    "blocked": blocked(4, 2, 32, 3),
    "blocked-rows": blocked(16, 3, 17, 3),
    "wide": conv2d(**CHANNELS, h=5, w=53, r=3, s=4, stride=(2, 1), padding=(1, 1, 2, 3)),
    "padded": conv2d(**CHANNELS, h=9, w=17, r=3, s=3, padding=1),
    "strided": conv2d(**CHANNELS, h=9, w=18, r=3, s=3, stride=2, padding=1),
    "apart": conv2d(**CHANNELS, h=9, w=15, r=3, s=2, dilation=2, padding=(2, 1, 0, 3)),
    "pixels": conv2d(**CHANNELS, h=6, w=31, r=1, s=1, stride=2),
    "grouped": conv2d(n=1, c=6, k=34, h=7, w=7, r=3, s=3, padding=1, groups=2),
    "gradient": conv2d(n=2, c=4, k=18, h=7, w=9, r=3, s=3, padding=1, pass_="backward_data"),
    "depthwise": conv2d(n=2, c=3, k=3, h=11, w=35, r=3, s=3, padding=1, groups=3),
    "depthwise-2": conv2d(n=1, c=3, k=3, h=9, w=38, r=3, s=5, stride=2, padding=2, groups=3),
    "depthwise-3": conv2d(n=1, c=2, k=2, h=9, w=38, r=3, s=3, stride=(1, 3), dilation=2, groups=2),
    "depthwise-narrow": conv2d(n=2, c=3, k=3, h=11, w=13, r=3, s=5, stride=2, padding=2, groups=3),
    "depthwise-gradient": conv2d(
        n=1, c=3, k=3, h=9, w=21, r=3, s=3, padding=1, groups=3, pass_="backward_data"
    ),
    "deep": conv2d(n=1, c=37, k=21, h=5, w=7, r=1, s=1),
    "vector": gemm(m=1, n=43, k=101, transpose_b=True),
    "product": gemm(m=45, n=50, k=70, transpose_b=True),
}


def kind_of(task: Contraction, plan: Plan) -> tuple[Any, ...]:
    """Say which of the structures a plan has."""
    if plan.slides:
        return ("window", plan.tile_rows, plan.tile_cols)
    engine = Engine(LlvmText(FP32, CORE.lanes), task, plan, "f")
    return (
        task.left.name,
        plan.packs_left and (engine.is_left_panel, engine.is_left_wide),
        plan.packs_right and engine.is_turned,
        bool(task.left.guards) and not plan.packs_left,
        bool(task.right.guards) and not plan.packs_right,
        plan.sums_in_lanes and engine._is_left_turned(length(engine.rows)),
        plan.tile_rows > CORE.lanes,
        any(
            task.size(walk.inner[0]) % walk.block > 0
            for walk in (plan.rows, plan.cols, plan.sums)
            if walk.inner
        ),
    )


def as_cut(plan: Plan, task: Contraction) -> tuple[float, Contraction, Plan]:
    """Choose a plan that is given."""
    return 0.0, task, plan


def some_plans(problem: Problem) -> list[tuple[Contraction, Plan]]:
    """Draw a plan of each kind."""
    draw = random.Random(5)
    (task,) = contractions(problem)
    kinds: dict[tuple[Any, ...], list[tuple[Contraction, Plan]]] = {}
    for _, one, plan in ranked(task, CORE):
        kinds.setdefault(kind_of(one, plan), []).append((one, plan))
    return [draw.choice(kinds[kind]) for kind in sorted(kinds, key=repr)]


def surrounded(values: Any) -> Any:
    """Copy an array to where all around it is no number."""
    room = np.full(values.size + 256, np.nan, "f4")
    inside = room[128 : 128 + values.size].reshape(values.shape)
    inside[...] = values
    return inside


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_kinds_of_plans(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS[name]
    draw = np.random.default_rng(3)
    arrays = {
        tensor.name: surrounded(draw.integers(-4, 5, stored_shape(problem, tensor)))
        for tensor in problem.tensors
    }
    out = arrays[problem.output]
    wanted = reference(problem, arrays, np.empty(out.shape))
    plans = some_plans(problem)
    assert len(plans) > 2
    for number, (task, plan) in enumerate(plans):
        monkeypatch.setattr(cutting, "HELD_BYTES", (0, 1 << 14)[number % 2])  # down, or across
        shared = plan if plan.slides else plan._replace(row_parts=2)
        (part,) = build([task], partial(as_cut, shared), (FP32, CORE.lanes), f"{shared}")
        room = np.full(part.room // 4 + 16, np.nan, "f4")
        room = room[-room.ctypes.data // 4 % 16 :]
        out[...] = np.nan
        given = [arrays[one].ctypes.data for one in part.tensors]
        half = part.n_jobs // 2
        for first, last in ((half, part.n_jobs), (0, half)):
            part.run(*given, room.ctypes.data, first, last)
        assert np.array_equal(out, wanted), shared
        around = out.base
        assert np.isnan(around[:128]).all()
        assert np.isnan(around[-128:]).all()


def test_padding_is_left_out_where_loops_can_be_cut() -> None:
    (task,) = contractions(PROBLEMS["padded"])
    kinds = [plan for _, one, plan in ranked(task, CORE) if one.left.guards and not plan.packs_left]
    assert kinds
    assert all(plan.rows.inner == ("Q",) and plan.rows.block == 17 for plan in kinds)
    task = replace(task, left=replace(task.left, guards=task.left.guards * 2))
    assert not skips(task, kinds[0])  # two guards on one dimension of the sum


def test_tiles_go_across_where_l1_holds_the_block() -> None:
    for c, is_across in ((3, True), (8, False)):  # rows of 226 elements, three a channel
        task = contractions(conv2d(n=1, c=c, k=64, h=224, w=224, r=3, s=3, padding=1))[0]
        cols, sums = Walk(("P", "Q"), 1, 224), Walk(("C", "R", "S"), 0, c)
        plan = Plan(("N",), Walk(("K",), 0, 16), cols, sums, 4, 64, packs_right=False)
        assert goes_across(task := task.swapped(), plan) == is_across
        assert not goes_across(task, plan._replace(packs_right=True))  # points that are copied
        assert not goes_across(task, plan._replace(sums_in_lanes=True))


def test_taps_that_share_elements_are_read_apart() -> None:
    def fences(stride: int) -> int:
        (task,) = contractions(conv2d(n=1, c=2, k=16, h=1, w=200, r=1, s=8, stride=stride))
        one, plan = next(
            (one, plan)
            for _, one, plan in ranked(task, CORE)
            if one.left.name == "input" and not plan.packs_left and plan.tile_rows == 8
        )
        text = LlvmText(FP32, CORE.lanes)
        Engine(text, one, plan, "f").write()
        return text.text().count("fence syncscope")

    assert fences(1) > 0
    assert fences(4) == 0  # no two rows meet in the steps of one iteration


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("rest", [0.0, 0.3])
def test_the_last_thread_ends_between_even_shares_and_one_block_more(
    threads: int, rest: float
) -> None:
    for rounds in (1, 2, 7, 100):
        for n_whole in (1, 5):
            share = slowest_share(threads, rounds, n_whole, rest)
            even = np.mean([1 / (threads - 1 + speed) for speed in SPEEDS])
            block = 1 / (rounds * (n_whole + rest))
            assert even <= share <= even + block / min(SPEEDS)


@pytest.mark.parametrize("registers", [16, 32])
def test_a_register_tile_leaves_room_for_its_operands(registers: int) -> None:
    """Sums, the vectors of a point, and a number of the other operand."""
    tiles = register_tiles(replace(CORE, registers=registers))
    assert len(tiles) > 4
    assert all(rows * n + n + 1 <= registers for rows, n in tiles)
    # Of 16, LLVM fills those left with broadcasts that one vector needs, and spills sums.
    assert max(rows for rows, n in tiles if n == 1) == (8 if registers == 16 else 28)


@pytest.mark.parametrize(("element", "n"), [(FP32, 300), (BF16, 300), (BF16, 20)])
def test_elements_that_are_converted_are_packed(element: Element, n: int) -> None:
    """Of the left operand, unless few columns meet them."""
    problem = gemm(m=40, n=n, k=30)
    (task,) = contractions(problem, {one.name: element for one in problem.tensors})
    some = {plan.packs_left for _, one, plan in ranked(task, CORE) if one == task}
    assert some == ({True} if (element, n) == (BF16, 300) else {True, False})


def test_blocks_of_columns_are_whole_tiles() -> None:
    for n in (256, 777, 1000):
        (task,) = contractions(gemm(m=40, n=n, k=30))
        blocks = {(plan.cols.block, plan.tile_cols) for _, _, plan in ranked(task, CORE)}
        assert len(blocks) > 4
        assert all(block % tile == 0 or block in (n, 40) for block, tile in blocks)
