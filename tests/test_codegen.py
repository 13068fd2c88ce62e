"""Written programs compute what a sum over all points does, and touch nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_fuzz import (
    AARCH64,
    Case,
    case,
    check_aarch64,
    check_c,
    check_infinite,
    check_llvm,
    dots_case,
    masked_case,
    point_by_point,
    sliding_case,
)

from loopsched import Problem, conv2d, einsum, gemm, load_arch
from loopsched import compile as compiled
from loopsched.base.errors import ProblemError
from loopsched.base.machine_code import widest_vector
from loopsched.codegen.c_text import CText
from loopsched.codegen.choose import core_of
from loopsched.codegen.compiled import CompiledKernel, How
from loopsched.codegen.contraction import contractions, row_major, stored_shape
from loopsched.codegen.element import BF16, FP32, FP64, Element
from loopsched.codegen.engine import Engine
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.measure import check, numbers, stored
from loopsched.codegen.plan import Plan, Walk, packed_pitch, roles
from loopsched.codegen.threads import n_cpus
from loopsched.codegen.window import Window, window_plan
from loopsched.problems.projections import affine

HOST = load_arch("host")


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_llvm_computes_random_kernels(first: int) -> None:
    assert not [fault for seed in range(first, first + 10) if (fault := check_llvm(case(seed)))]


@pytest.mark.parametrize("seed", [175, 205])
def test_blocks_that_lie_otherwise_have_tiles_of_their_own(seed: int) -> None:
    """The last block of columns is narrower, and so is what is packed of it."""
    assert check_llvm(case(seed)) is None


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_windows_that_slide_compute_random_kernels(first: int) -> None:
    cases = map(sliding_case, range(first, first + 10))
    assert not [fault for one in cases if (fault := check_llvm(one))]


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_sums_in_lanes_compute_random_kernels(first: int) -> None:
    cases = map(dots_case, range(first, first + 10))
    assert not [fault for one in cases if (fault := check_llvm(one))]


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_padded_images_read_in_place_compute_random_kernels(first: int) -> None:
    cases = map(masked_case, range(first, first + 10))
    assert not [fault for one in cases if (fault := check_llvm(one))]


@pytest.mark.parametrize("name", ["ryzen_7950x", "epyc_7763"])
def test_vectors_are_no_wider_than_those_of_this_cpu(name: str) -> None:
    problem, widest = gemm(m=37, n=41, k=29), widest_vector()
    kernel = compiled(problem, name, threads=1)
    described = load_arch(name).cpu
    assert described is not None
    width = min(described.vector_bytes, widest or described.vector_bytes)
    assert kernel.core.lanes == width // 4
    a, b = np.ones((37, 29), np.float32), np.ones((29, 41), np.float32)
    out = np.empty((37, 41), np.float32)
    kernel(a, b, out)
    assert (out == 29).all()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("option", ["-O1", "-march=native"])
@pytest.mark.parametrize("seed", [100, 101, 200026])  # the last: garbage in unused lanes
def test_c_computes_random_kernels(seed: int, option: str, tmp_path: Path) -> None:
    assert check_c(case(seed), tmp_path, option) is None


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("element", [FP32, BF16])
def test_c_builds_without_warnings_for_any_cpu(element: Element, tmp_path: Path) -> None:
    """Also where vectors are wider than its registers: no function takes them or gives them."""
    (task,) = contractions(gemm(m=37, n=53, k=61), dict.fromkeys("ABC", element))
    walks = (Walk((dim,), 0, size) for dim, size in task.sizes)
    text = CText(FP32, 8)
    Engine(text, task, Plan((), *walks, 4, 24, packs_right=False), "f").write()
    source = tmp_path / "f.c"
    source.write_text(text.text())
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-c"]
    made = subprocess.run(["gcc", *flags, source, "-o", tmp_path / "f.o"], capture_output=True)
    assert made.returncode == 0, made.stderr.decode()[-2000:]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_reads_elements_two_apart(tmp_path: Path) -> None:
    assert check_c(case(135), tmp_path) is None


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_slides_windows_two_apart(tmp_path: Path) -> None:
    steps = {seed: sliding_case(seed).problem.attributes for seed in range(40)}
    seeds = [seed for seed, known in steps.items() if dict(known)["stride"] == (2, 2)]
    for seed in seeds[:2]:
        assert check_c(sliding_case(seed), tmp_path) is None


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_computes_bf16(tmp_path: Path) -> None:
    assert check_c(case(104), tmp_path) is None
    problem = gemm(m=3, n=21, k=1500)  # many sums lie between two numbers of bf16
    steps = {one.name: row_major(stored_shape(problem, one)) for one in problem.tensors}
    assert check_c(Case(0, problem, "bf16", steps, 8, 16, False), tmp_path) is None


@pytest.mark.skipif(not all(map(shutil.which, AARCH64)), reason="no compiler for AArch64")
@pytest.mark.parametrize("back", ["llvm", "c"])
def test_kernels_for_aarch64(back: str, tmp_path: Path) -> None:
    for seed in (300000, 300001):
        assert check_aarch64(case(seed), tmp_path, back) is None


def is_real_and_no_gradient_of_an_input(one: Case) -> bool:
    is_gradient = ("pass", "backward_data") in one.problem.attributes
    return one.data_type in ("fp32", "fp64") and not is_gradient


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_what_is_infinite_stays_where_it_belongs(first: int) -> None:
    cases = filter(is_real_and_no_gradient_of_an_input, map(case, range(first, first + 20)))
    assert not [fault for one in cases if (fault := check_infinite(one))]


def test_what_no_tap_reaches_is_zero_whatever_the_weights_are() -> None:
    problem = conv2d(n=1, c=2, k=3, h=7, w=7, r=1, s=1, stride=2, pass_="backward_data")
    kernel = compiled(problem)
    found = kernel(np.ones((1, 3, 4, 4), "f4"), np.full((3, 2, 1, 1), np.inf, "f4"))
    assert (found[:, :, ::2, ::2] == np.inf).all()
    found[:, :, ::2, ::2] = 0
    assert not found.any()


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the sums other ones, the check would say so."""
    one = next(one for seed in range(100) if (one := case(seed)).data_type == "fp32")
    monkeypatch.setattr("kernel_fuzz.point_by_point", lambda problem, arrays: _off(one, arrays))
    assert "wrong, first 0" in (check_llvm(one) or "")


def _off(one: Case, arrays: dict[str, np.ndarray]) -> np.ndarray:
    from kernel_fuzz import drawn

    return np.full(drawn(one)[one.problem.output].shape, 12345)


def test_sums_between_two_bf16_numbers_become_the_even_one() -> None:
    kernel = compiled(gemm(m=1, n=40, k=2), HOST, data_type="bf16")
    odd = np.arange(40) * 2.0 + 1
    given = stored(np.array([[256.0, 1.0]]), BF16), stored(np.array([np.ones(40), odd]), BF16)
    found = numbers(kernel(*given), BF16)
    assert found.tolist() == [list(256 + (odd + 1) // 4 * 4)]  # 257 lies beside 256, 259 260


@pytest.mark.parametrize("expression", ["a,b->ab", "ab,bc,cd->ad", "ab->ba", "ab,ab->"])
@pytest.mark.parametrize("data_type", ["fp32", "bf16", "int8"])
def test_any_product_is_compiled(expression: str, data_type: str) -> None:
    """None summed, one operand, three: what is no sum of products of two, and what is just so."""
    sizes = {one: 5 + 14 * place for place, one in enumerate("abcd") if one in expression}
    check(compiled(einsum(expression, sizes), HOST, data_type=data_type))


@pytest.mark.parametrize("n", [9, 25])
def test_threads_take_any_number_of_operands(n: int) -> None:
    """More than the caller can tell other threads of: then it does all jobs itself."""
    expression = ",".join(["ab", "bc"] * (n // 2) + ["ab"] * (n % 2)) + "->ac"
    sizes = {"a": 300, "b": 2, "c": 300}
    check(compiled(einsum(expression, sizes), HOST, threads=min(2, n_cpus())))


@pytest.mark.parametrize("seed", [1318, 1631, 1365])
def test_a_window_of_the_output_guards_all_that_moves_with_it(seed: int) -> None:
    """Both operands, or none, move over a dimension that shares an axis of the output."""
    assert check_llvm(case(seed)) is None


def test_a_narrow_output_is_summed_in_a_copy() -> None:
    """Sums of parts of a bf16 output, which an axis with two dimensions has, stand in fp32."""
    problem = affine({"a": 7, "b": 5, "c": 300}, {"x": "a c", "w": "c b", "y": "a+b"})
    steps = {one.name: row_major(stored_shape(problem, one)) for one in problem.tensors}
    assert check_llvm(Case(0, problem, "bf16", steps, 8, 16, is_general=True)) is None


def test_what_is_known_is_computed_before() -> None:
    """Sums, products, quotients and least ones are the same whichever operands are known."""
    for values in product((0, 1, 6, 7), (0, 3, 11), (0, 1, 4), (True, False), (True, False)):
        one, other, factor, *is_known = values
        text, names = CText(FP32, 8), {"one": one, "other": other}
        pair = (one if is_known[0] else "one", other if is_known[1] else "other")
        by = factor + 1
        found = [
            text.add(*pair, 5, pair[0]),
            text.mul(pair[0], factor),
            *text.divided(pair[0], by),
            text.least(*pair),
        ]
        for line in text.text().splitlines():
            for name, term in re.findall(r"^  \w+ (v\d+) = (.*);$", line):
                plain = re.sub(r"\(u?num\)", "", term).replace("/", "//")
                plain = re.sub(r"(.*) \? (.*) : (.*)", r"(\2) if (\1) else (\3)", plain)
                names[name] = eval(plain, {}, names)
        right = [2 * one + other + 5, one * factor, *divmod(one, by), min(one, other)]
        assert [names.get(str(each), each) for each in found] == right, values


@pytest.mark.parametrize(
    ("problem", "n_lines"),
    [
        (gemm(m=8, n=48, k=64), 4),  # a row at each step
        (gemm(m=8, n=48, k=14), 2 * 4),  # seven steps of two points: two rows at each
        (gemm(m=8, n=48, k=3), 8 * 4),  # one step: all rows before it
        (gemm(m=8, n=16, k=64, transpose_a=True, transpose_b=True), 2),
    ],
    ids=lambda one: one.name if isinstance(one, Problem) else "",
)
def test_lines_to_be_written_are_asked_for(problem: Problem, n_lines: int) -> None:
    """Those of one row at each step, or of more if there are fewer steps; the last ones again."""
    (task,) = contractions(problem)
    walks = (Walk((dim,), 0, size) for dim, size in task.sizes)
    cols = problem.size["N"]
    text = LlvmText(FP32, 16)
    Engine(text, task, Plan((), *walks, 8, cols), "f").write()
    (tile,) = re.findall(r"define [^\n]*@f_tile0_8_\d+\(.*?\n}", text.text(), re.S)
    assert tile.count("i32 1, i32 3") == n_lines
    before, *_ = tile.split("phi i64")
    assert before.count("i32 1, i32 3") == (n_lines if n_lines > 8 else 0)


def asked_rows(m: int, *, asks_l3: bool) -> int:
    """Count requests, for what is read, of tiles of eight rows and a vector."""
    (task,) = contractions(gemm(m=m, n=64, k=2048))
    walks = Walk(("M",), 0, 64), Walk(("N",), 0, 64), Walk(("K",), 0, 2048)
    text = LlvmText(FP32, 16)
    Engine(text, task, Plan((), *walks, 8, 16, asks_l3=asks_l3), "f").write()
    (tile,) = re.findall(r"define [^\n]*@f_tile0_8_16\(.*?\n}", text.text(), re.S)
    return tile.count("i32 0, i32 2")


def test_rows_that_the_last_cache_holds_are_asked_for_if_the_plan_says_so() -> None:
    """Rows of A that are 2048 elements long: 512 of them are 4 MB, 2048 are 16."""
    asked = asked_rows(512, asks_l3=True)
    assert asked > 0
    assert asked_rows(512, asks_l3=False) == 0
    assert asked_rows(2048, asks_l3=False) == asked_rows(2048, asks_l3=True) == asked


@pytest.mark.parametrize(("rows", "cols", "n"), [(14, 32, 1), (13, 32, 0), (9, 48, 1), (8, 48, 0)])
def test_steps_of_tall_tiles_stay_in_order(rows: int, cols: int, n: int) -> None:
    """LLVM reads ahead for the second of two steps, and spills sums if they are many."""
    (task,) = contractions(gemm(m=rows, n=cols, k=64))
    walks = (Walk((dim,), 0, size) for dim, size in task.sizes)
    text = LlvmText(FP32, 16)
    Engine(text, task, Plan((), *walks, rows, cols), "f").write()
    (tile,) = re.findall(rf"define [^\n]*@f_tile0_{rows}_{cols}\(.*?\n}}", text.text(), re.S)
    assert tile.count("fence ") == n


def test_steps_of_tall_tiles_stay_in_order_where_some_rows_count() -> None:
    """Channels-last, taps of a row in the padding: a tile keeps the sums that a tap leaves out."""
    problem = conv2d(c=64, k=96, h=14, w=14, r=1, s=5, padding=(0, 0, 2, 2))
    steps = {"input": (64 * 196, 1, 14 * 64, 64), "output": (96 * 196, 1, 14 * 96, 96)}
    steps["weight"] = (1, 96, 5 * 64 * 96, 64 * 96)
    (task,) = contractions(problem, None, steps)
    walks = Walk(("N", "P", "Q"), 2, 14), Walk(("K",), 0, 96), Walk(("R", "S", "C"), 1, 5)
    text = LlvmText(FP32, 16)
    Engine(text, task, Plan((), *walks, 14, 32), "f").write()
    (tile,) = re.findall(r"define [^\n]*@f_tile0_14_32\(.*?\n}", text.text(), re.S)
    rows = [sum(0 <= q + s - 2 < 14 for q in range(14)) for s in range(5)]
    assert len(re.findall(r"call .* @llvm.fma", tile)) == 2 * 2 * sum(rows)  # of two steps
    assert tile.count("fence ") == 2 * 5  # before each tap, and between two steps


def test_columns_that_are_left_over_have_a_panel_of_their_own() -> None:
    kernel = compiled(gemm(m=200, n=1003, k=300), "host", threads=1)
    a, b = (
        np.random.default_rng(at).integers(-3, 4, shape).astype("f4")
        for at, shape in enumerate(((200, 300), (300, 1003)))
    )
    assert np.array_equal(kernel(a, b), a @ b)
    assert np.array_equal(kernel(a, kernel.pack(b)), a @ b)


@pytest.mark.parametrize(("packs", "widths"), [(True, ["16"]), (False, ["16", "4"])])
def test_sums_that_lie_apart_may_be_more_than_are_written(packs: bool, widths: list[str]) -> None:
    """So tiles of 13 and 16 columns are one, but where they would read behind an operand."""
    problem = conv2d(c=20, k=8, h=6, w=6, r=1, s=1, stride=2, pass_="backward_data")
    task = max(contractions(problem), key=lambda one: one.size("K"))
    kinds, text = roles(task), LlvmText(FP32, 16)
    rows, sums = (Walk(tuple(kinds[one]), 0, task.size(kinds[one][0])) for one in ("rows", "sums"))
    plan = Plan((), rows, Walk(("C",), 0, 20), sums, 3, 16, packs_left=True, packs_right=packs)
    Engine(text, task, plan, "f").write()
    assert re.findall(r"define [^\n]*@f_tile0_3_(\d+)\(", text.text()) == widths
    assert len(re.findall(r"call void @f_tile0_3_out\(.*, i64 (?:16|4)\)", text.text())) == 2


@pytest.mark.parametrize(
    ("sizes", "read"),
    [
        # 24 rows side by side, at two steps: two lines that this tile does not meet
        ({"w": 48}, [39, 47, 96 + 39, 96 + 47]),
        # the same two elements apart: the last of 48 is not read
        ({"w": 96, "stride": 2}, [63, 79, 94, 192 + 63, 192 + 79, 192 + 94]),
        # each row of a window, wherever its lines begin
        ({"h": 4, "w": 50, "r": 3, "s": 3}, [39, 47]),
        # a block that stays in L1 is not asked for
        ({"c": 16, "w": 48}, []),
    ],
    ids=str,
)
def test_what_the_next_tile_reads_is_asked_for(sizes: dict[str, int], read: list[int]) -> None:
    """Where rows share lines: at each step of the sum that leads to others, as far as it reads."""
    (task,) = contractions(conv2d(**{"c": 64, "k": 16, "h": 2, "r": 1, "s": 1, **sizes}))
    sums = Walk(("C", "R", "S"), 0, task.size("C"))
    rows, cols = Walk(("P", "Q"), 1, 48), Walk(("K",), 0, 16)
    text = LlvmText(FP32, 16)
    Engine(text, task, Plan((), rows, cols, sums, 24, 16), "f").write()
    tile = re.findall(r"define [^\n]*@f_tile0_\d+_16\(.*?\n}", text.text(), re.S)[0]
    places = dict(re.findall(r"(%v\d+) = getelementptr i32, ptr %v\d+, i64 (\d+)", tile))
    asked = re.findall(r"prefetch.p0\(ptr (%v\d+), i32 0, i32 2", tile)
    assert [int(places[one]) for one in asked] == read


@pytest.mark.parametrize(
    ("window", "stride", "element", "rows"),
    [
        (3, 1, FP32, [1, 2, 4]),  # tiles of seven rows for nine kinds of edges are much code
        (5, 1, FP32, [1, 2, 4, 7]),
        (7, 1, FP32, [1, 2, 4]),
        (7, 2, FP32, [1, 2]),
        (9, 1, FP32, [1, 2, 4, 7]),
        (31, 1, FP32, [1, 2, 4]),
        (3, 3, FP32, [1, 2]),
        (3, 3, BF16, []),  # read one by one
        (3, 2, BF16, [1, 2, 4]),
    ],
)
def test_windows_slide_where_that_is_fast_and_soon_compiled(
    window: int, stride: int, element: Element, rows: list[int]
) -> None:
    problem = conv2d(c=8, k=8, groups=8, h=40, w=40, r=window, s=window, stride=stride)
    (task,) = contractions(problem, {one.name: element for one in problem.tensors})
    both = task, task.swapped()
    assert [n for n in (1, 2, 4, 7) if any(window_plan(one, n, 16) for one in both)] == rows
    problem = conv2d(
        c=8, k=8, groups=8, h=112, w=112, r=3, s=3, stride=2, padding=1, pass_="backward_weights"
    )  # two rows of the window meet no line of the image at taps that follow each other
    (task,) = contractions(problem)
    both = task, task.swapped()
    assert [n for n in (1, 2, 4) if any(window_plan(one, n, 8) for one in both)] == [1]
    long = conv2d(c=8, k=8, groups=8, h=2, w=1000, r=2, s=500)  # 500 taps for each vector
    (task,) = contractions(long)
    assert not any(window_plan(one, 1, 16) for one in (task, task.swapped()))


@pytest.mark.parametrize(("h", "r", "stride", "n"), [(30, 3, 3, 4), (14, 3, 2, 4), (12, 1, 2, 2)])
@pytest.mark.parametrize("threads", [1, 2])
def test_phases_of_a_stride_share_programs(
    h: int, r: int, stride: int, n: int, threads: int
) -> None:
    """They differ in where they begin and in what lies in padding; many write zeros alone."""
    problem = conv2d(
        c=9, k=20, h=h, w=h, r=r, s=r, stride=stride, padding=r // 2, pass_="backward_data"
    )
    tasks = contractions(problem)
    assert len(tasks) == stride**2
    assert len({one.based() for one in tasks}) == n
    kernel = CompiledKernel(problem, core_of(load_arch("host"), 4)[0], "fp32", How(threads))
    arrays = [
        np.random.default_rng(at).integers(-3, 4, kernel.shapes[name]).astype("f4")
        for at, name in enumerate(kernel.names)
    ]
    wanted = point_by_point(problem, dict(zip(kernel.names, arrays, strict=True)))
    first, second, out = arrays
    assert np.array_equal(kernel(first, second, out), wanted)
    assert np.array_equal(kernel(first, kernel.pack(second)), wanted)


def test_plans_are_timed_on_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs begin where their operands' first points lie, which padding moves."""
    seen: list[tuple[int, ...]] = []
    monkeypatch.setattr(CompiledKernel, "_share", lambda _, part, __: seen.append(part.starts))
    problem = conv2d(c=8, k=8, h=12, w=12, r=3, s=3, padding=1)
    kernel = compiled(problem, "host", threads=1, measure=2)
    assert {min(one, default=0) for one in seen} == {
        -4 * (12 + 1)
    }  # a row and an element before the first
    assert all(part.starts in seen for part in kernel.parts(kernel._plain_steps()))


def test_part_of_a_vector_is_written() -> None:
    """With a mask where a vector is a line; else in pieces: AMD's cores take long for masks."""
    found = []
    for text in (LlvmText(FP32, 8), LlvmText(FP32, 16), CText(FP32, 8), CText(FP32, 16)):
        lanes = text.lanes
        with text.function("f", ("out",), ()):
            text.store(text.argument("out"), text.zero(), FP32, text.first_lanes(lanes - 1))
        found.append(text.text())
    assert re.findall(r"store (<?\d* ?x? ?float>?) %v\d+, ptr", found[0]) == [
        "<4 x float>",
        "<2 x float>",
        "float",
    ]
    assert ["masked.store" in one for one in found] == [False, True, False, False]
    assert ["memcpy(out, &v1, 28);" in one for one in found] == [False, False, True, False]


def test_short_vectors_ask_once() -> None:
    """A tile of 32-byte vectors asks for what it writes before its sum, and for nothing else.

    Its sum is unrolled by four: its steps are short.
    """
    (task,) = contractions(gemm(m=48, n=16, k=64))
    text = LlvmText(FP32, 8)
    walks = (Walk((dim,), 0, size) for dim, size in task.sizes)
    Engine(text, task, Plan((), *walks, 6, 16), "f").write()
    (tile,) = re.findall(r"define [^\n]*@f_tile0_6_\d+\(.*?\n}", text.text(), re.S)
    before, *_ = tile.split("phi i64")
    assert tile.count("call void @llvm.prefetch") == before.count("i32 1, i32 3") == 6 * 2


@pytest.mark.parametrize(
    ("k", "block", "steps"), [(64, 64, 4), (12, 8, 4), (13, 8, 5), (13, 13, 5)]
)
def test_points_that_unrolling_leaves_over(k: int, block: int, steps: int) -> None:
    """They have a loop only where some block of the sum has them."""
    (task,) = contractions(gemm(m=6, n=16, k=k))
    text = LlvmText(FP32, 8)
    walks = Walk(("M",), 0, 6), Walk(("N",), 0, 16), Walk(("K",), 0, block)
    Engine(text, task, Plan((), *walks, 6, 16), "f").write()
    assert text.text().count("call <8 x float> @llvm.fma") == steps * 6 * 2


@pytest.mark.parametrize(("lanes", "steps"), [(8, 2), (16, 1)])
def test_tiles_that_are_left_over_are_unrolled(lanes: int, steps: int) -> None:
    """By two where vectors are short: a loop of single steps takes a third longer."""
    (task,) = contractions(gemm(m=11, n=16, k=64))
    text = LlvmText(FP32, lanes)
    walks = (Walk((dim,), 0, size) for dim, size in task.sizes)
    Engine(text, task, Plan((), *walks, 6, 16), "f").write()
    (tile,) = re.findall(r"define [^\n]*@f_tile\d_5_\d+\(.*?\n}", text.text(), re.S)
    assert tile.count(f"call <{lanes} x float> @llvm.fma") == steps * 5 * (16 // lanes)


@pytest.mark.parametrize(
    ("size", "rows", "lanes", "pitch"),
    [
        *((56, 3, lanes, 176) for lanes in (4, 8, 16)),
        (56, 1, 8, 64),
        (6, 1, 8, 8),
        (64, 16, 8, 1024 + 16),
        (64, 16, 16, 1024 + 16),
    ],
)
def test_packed_rows_begin_with_lines(size: int, rows: int, lanes: int, pitch: int) -> None:
    """Rows of a padded image side by side; but none lie a multiple of a page apart."""
    (task,) = contractions(conv2d(c=8, k=8, h=size, w=size, r=3, s=3, padding=1))
    walks = Walk(("K",), 0, 8), Walk(("N", "P", "Q"), 1, rows), Walk(("C", "R", "S"), 0, 8)
    plan = Plan((), *walks, 4, 3 * lanes)
    assert packed_pitch(task.swapped(), plan, lanes, 4 * lanes) == pitch


def test_places_around_one_are_left_as_they_are() -> None:
    """LLVM does not look where the pointers of inner loops come from, which takes long."""
    (product_,) = contractions(gemm(m=6, n=16, k=64))
    walks = (Walk((dim,), 0, size) for dim, size in product_.sizes)
    problem = conv2d(c=8, k=8, groups=8, h=40, w=40, r=3, s=3, padding=1)
    (task,) = contractions(problem)
    ((one, plan),) = [(x, p) for x in (task, task.swapped()) if (p := window_plan(x, 2, 8))]
    tile, window = LlvmText(FP32, 8), LlvmText(FP32, 8)
    Engine(tile, product_, Plan((), *walks, 6, 16), "f").write()
    Window(window, one, plan, "f").write()
    for text, n in ((tile, 2), (window, 3 * 3)):  # a copy and a sum; tiles inside and at edges
        assert text.text().count("= freeze ptr") == 2 * n


def test_sums_that_lie_apart_are_written_by_one_function() -> None:
    """Tiles of a height leave them to it, whatever their width and however long their sums are."""
    problem = conv2d(c=3, k=8, h=36, w=36, r=5, s=5, stride=2, padding=2, pass_="backward_data")
    text, programs = LlvmText(FP32, 8), []
    for number, task in enumerate(dict.fromkeys(one.based() for one in contractions(problem))):
        rows, cols = Walk(("C",), 0, 3), Walk(("N", "P+R", "Q+S"), 1, 2)
        one = task if task.right.name == "output" else task.swapped()
        sums = Walk(tuple(roles(one)["sums"]), 0, 8)
        programs.append(Engine(text, one, Plan((), rows, cols, sums, 3, 24), f"f{number}"))
        programs[-1].write()
    tiles = re.findall(r"define [^\n]*_tile\d+_3_\d+\(.*?\n}", text.text(), re.S)
    calls = [re.findall(r"call void @(\w+_out)\(", tile) for tile in tiles]
    assert len(programs) == 4
    assert len(tiles) > 4
    assert calls == [calls[0]] * len(tiles)


def test_strips_are_as_much_code_backwards() -> None:
    """Rows of a window that follow each other are a loop, whichever way they are met."""
    counts = set()
    for pass_ in ("forward", "backward_data"):
        problem = conv2d(c=8, k=8, groups=8, h=40, w=40, r=7, s=7, padding=3, pass_=pass_)
        (task,) = contractions(problem)
        plans = [(one, window_plan(one, 4, 16)) for one in (task, task.swapped())]
        ((one, plan),) = [(one, plan) for one, plan in plans if plan]
        text = LlvmText(FP32, 16)
        Window(text, one, plan, "f").write()
        counts.add(text.text().count("call <16 x float> @llvm.fma"))
    assert counts == {4**2 * 7 * 3}


def test_long_runs_are_copied() -> None:
    """Of 18 vectors and a rest: in a loop of several, without and with padding, two apart, too."""
    for stride in (1, 2):
        problem = conv2d(c=1, k=4, h=3, w=74 * stride, r=3, s=3, padding=1, stride=stride)
        steps = {one.name: row_major(stored_shape(problem, one)) for one in problem.tensors}
        for seed in range(8):
            assert check_llvm(Case(seed, problem, "fp32", steps, 4, 32, is_general=False)) is None


@pytest.mark.parametrize("data_type", ["fp32", "int8"])
def test_packed_squares_end_with_the_sum(data_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of more points than a vector has lanes, as many, and fewer."""
    squares, write = list[int](), Engine._square
    monkeypatch.setattr(Engine, "_square", lambda *given: (squares.append(1), write(*given))[1])
    for c in (3, 8, 13):
        problem = gemm(m=3, n=20, k=c, transpose_b=True)
        steps = {one.name: row_major(stored_shape(problem, one)) for one in problem.tensors}
        squares.clear()
        for seed in range(8):
            one = Case(seed, problem, data_type, steps, 8, 16, is_general=False)
            assert check_llvm(one) is None
        assert squares


@pytest.mark.parametrize(("element", "lanes"), [(FP32, 4), (FP32, 8), (FP32, 16), (FP64, 8)])
def test_squares_are_turned_by_instructions(element: Element, lanes: int) -> None:
    """Each step mixes groups of 16 bytes inside, or moves them."""
    group, steps = 16 // element.n_bytes, list[list[int]]()

    class Lanes(CText):
        def mixed(self, one: Any, other: Any, picks: Iterable[int]) -> Any:
            steps.append(list(picks))
            return tuple((*one, *other)[at] for at in steps[-1])

    rows: Any = [tuple((row, lane) for lane in range(lanes)) for row in range(lanes)]
    assert Lanes(element, lanes).transposed(rows) == [*zip(*rows, strict=True)]
    for one in steps:
        groups = [one[at : at + group] for at in range(0, lanes, group)]
        is_moved = all(at == [*range(at[0], at[0] + group)] for at in groups)
        inside = {
            tuple(lane % lanes - place for lane in each)
            for place, each in zip(range(0, lanes, group), groups, strict=True)
        }
        assert is_moved or len(inside) == 1


def test_tables_that_begin_alike_are_one() -> None:
    for text in (LlvmText(FP32, 8), CText(FP32, 8)):
        tables = [text.table("f", one) for one in ([0, 1], [0, 1, 5], [0], [0, 2])]
        assert len(set(tables[:3])) == 1
        assert tables[3] not in tables[:3]
        assert re.findall(r"\[3(?: x i64)?\]", text.text())
        assert text.text().count("f_table") == 2


def test_a_table_that_a_piece_has_does_not_grow() -> None:
    text = LlvmText(FP32, 8)
    with text.function("f", (), ()):
        first = text.table("f", [0, 1])
        text.entry(first, 1)
    (piece,) = text.pieces(is_whole=False, least=1)
    assert "[2 x i64]" in piece
    assert text.table("f", [0]) == first == text.table("f", [0, 1])
    assert text.table("f", [0, 1, 5]) != first
    assert not list(text.pieces(is_whole=True))


def test_functions_that_do_the_same_are_written_once() -> None:
    """And so are those that call them."""
    for text in (LlvmText(FP32, 8), CText(FP32, 8)):
        for name, place in (("f", 1), ("g", 1), ("h", 2)):
            with text.function(name, ("out",), ("at",)):
                out = text.at(text.argument("out"), place, FP32)
                text.store(out, text.zero(), FP32)
            with text.function(f"{name}{name}", ("out",), ("at",)):
                text.call(name, [text.argument("out")], [text.argument("at")])
        with text.function("every", ("out",), (), is_public=True):
            for name in ("ff", "gg", "hh"):
                text.call(name, [text.argument("out")], [0])
        called = re.findall(r"^  (?:call void @)?(\w+)\((?!\w+\))", text.text(), re.M)
        assert [one for one in called if one in {"ff", "gg", "hh"}] == ["ff", "ff", "hh"]
        assert [one for one in called if one in {"f", "g", "h"}] == ["f", "h"]


def test_a_block_of_one_point_is_packed() -> None:
    assert check_llvm(case(2593)) is None


def test_a_later_block_reaches_padding() -> None:
    assert check_llvm(case(2927)) is None


def test_memory_of_arrays_begins_with_a_line() -> None:
    """Also what is drawn, written by default, or copied because code cannot address it."""
    kernel = compiled(gemm(m=5, n=7, k=3), HOST)
    given = [kernel.empty(name) for name in kernel.names]
    for name, one in zip(kernel.names, given, strict=True):
        assert one.shape == kernel.shapes[name]
        assert one.ctypes.data % 64 == 0
        one[...] = 1
    assert kernel(*given[:2]).ctypes.data % 64 == 0
    assert (kernel(*given[:2]) == 3).all()
    with pytest.raises(ProblemError, match=r"has no array 'D'; allowed: A B C"):
        kernel.empty("D")
