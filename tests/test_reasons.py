"""Explanations: the loops they name must account for the traffic they explain."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from loopsched.machines.arch_file import buffer_arch, load_arch
from loopsched.models.buffer import traffic
from loopsched.models.reasons import LevelReason, annotate, compare, explain
from loopsched.nests.loops_text import render_loops
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem

GEMM = gemm(m=64, n=64, k=64)


def reasons(problem: Problem, text: str, capacity: int) -> LevelReason:
    arch = buffer_arch(capacity_bytes=capacity, policy="explicit")
    (level,) = explain(problem, parse_schedule(text, problem), arch)
    return level


@pytest.mark.parametrize(
    ("text", "refetched"),
    [
        # 4 x 4 tiles of 16: each loop outside fetches the tensor that it does not index again.
        ("M:64 N:64 K:64 M:16 N:16", {"A": [(1, 4)], "B": [(0, 4)], "C": []}),
        ("K:64 M:64 N:64 K:16 M:16 N:16", {"A": [], "B": [(1, 4)], "C": [(0, 4)]}),
        ("N:64 K:64 M:64 K:16 N:8", {"A": [(0, 8)], "B": [], "C": [(1, 4)]}),
        # Of two loops of N that fetch A again the outer one is named.
        ("M:64 N:64 K:64 N:32 K:32 M:16 N:16", {"A": [(1, 4)], "B": [(0, 4)], "C": [(2, 2)]}),
    ],
)
def test_gemm_refetches(text: str, refetched: dict[str, list[tuple[int, int]]]) -> None:
    found = reasons(GEMM, text, 3072)
    assert {each.tensor: list(each.refetched_by) for each in found.tensors} == refetched


@pytest.mark.parametrize(
    "text",
    ["M:64 N:64 K:64 M:16 N:16", "N:64 M:64 K:64 M:24 N:10 K:7", "K:64 N:64 M:64 M:9 N:9 K:9"],
)
@pytest.mark.parametrize("capacity", [64, 1024, 3000])
def test_named_loops_account_for_all_traffic(text: str, capacity: int) -> None:
    found = reasons(GEMM, text, capacity)
    nest = parse_schedule(text, GEMM)
    steady = traffic(GEMM, nest, capacity_bytes=capacity, policy="explicit").promised
    for each in found.tensors:
        times = math.prod(times for _, times in each.refetched_by)
        once = tensor_bytes(GEMM, GEMM.tensor(each.tensor))
        moved = steady[each.tensor]
        assert each.bytes >= moved.bytes
        visits = moved.write_bytes if each.tensor == "C" else moved.read_bytes
        assert visits == times * once
        assert each.halo == 0


def test_halo_of_tiles_is_counted() -> None:
    # Rows 0-9 and 8-17 for tiles of 8 and a window of 3: two of 18 rows twice, unless they slide.
    problem = conv2d(c=1, k=4, p=16, q=8, r=3, s=3)
    found = reasons(problem, "P:16 K:4 Q:8 P:8 R:3 S:3", 4000)
    (image,) = (each for each in found.tensors if each.tensor == "input")
    assert image.bytes == image.once_bytes
    found = reasons(problem, "K:4 P:16 Q:8 R:3 S:3 P:8", 400)
    (image,) = (each for each in found.tensors if each.tensor == "input")
    assert image.refetched_by
    assert image.halo > 0


def test_the_overflowing_region_is_named() -> None:
    found = reasons(GEMM, "M:64 N:64 K:64 M:16 N:16", 2048)
    # Inside K: 16 of A and B and 16 x 16 of C; inside N all 64 of the sums as well.
    assert found.score.fit_position == 3
    assert found.score.working_set_bytes == 4 * (16 + 16 + 256)
    assert found.overflow_position == 2
    assert found.overflow_bytes == 4 * (2 * 16 * 64 + 256)


def test_a_double_buffer_holds_what_half_of_it_would() -> None:
    nest = parse_schedule("M:64 N:64 K:64 M:16 N:16", GEMM)
    half = buffer_arch(capacity_bytes=8192, policy="explicit")  # the body of M does not fit
    pair = replace(half.caches[0], capacity_bytes=16384, double_buffered=True)
    (single,) = explain(GEMM, nest, half)
    (double,) = explain(GEMM, nest, replace(half, levels=(half.memory, pair)))
    kept = "overflow_position", "overflow_bytes", "tensors"
    assert [getattr(double, name) for name in kept] == [getattr(single, name) for name in kept]
    assert double.score.working_set_bytes == single.score.working_set_bytes
    assert double.score.fit_position == single.score.fit_position


def test_nothing_overflows_where_everything_fits() -> None:
    found = reasons(GEMM, "M:64 N:64 K:64", 2**20)
    assert found.score.fit_position == 0
    assert found.overflow_position is None
    assert all(each.bytes == each.once_bytes for each in found.tensors)


def test_a_tensor_that_passes_is_said_to() -> None:
    arch = load_arch("diannao")
    problem = gemm(m=32, n=32, k=32, element_bytes=2)
    nest = parse_schedule("M:32 N:32 K:32 M:16 N:16 K:16", problem)
    for level, reason in zip(arch.caches, explain(problem, nest, arch), strict=True):
        for each in reason.tensors:
            role = {"A": "input", "B": "weight", "C": "output"}[each.tensor]
            assert each.is_held == level.is_held(role)


def test_notes_go_with_the_rendering() -> None:
    arch = load_arch("titan_v")
    problem = gemm(m=1024, n=1024, k=1024)
    nest = parse_schedule("M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8", problem)
    text = render_loops(problem, nest, annotate(problem, nest, arch), width=120)
    assert "L1 holds 38.00 KiB of 96 KiB: A B C" in text
    assert "C stays in L2 and L1" in text


class TestCompare:
    ARCH = load_arch("titan_v")
    PROBLEM = gemm(m=1024, n=1024, k=1024)

    def reasons(self, one: str, two: str) -> str:
        first, second = (parse_schedule(text, self.PROBLEM) for text in (one, two))
        return "\n".join(compare(self.PROBLEM, first, second, self.ARCH).reasons)

    def test_small_tiles_fetch_more_often(self) -> None:
        text = self.reasons(
            "M:1024@SM N:1024@SM K:1024 M:16 N:16 K:8", "M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8"
        )
        assert "L2 to L1, B: 268.4 MB against 33.55 MB (8.0 times)" in text
        assert "loop M:1024@SM fetches it 64 times, not 8" in text

    def test_the_heaviest_comes_first(self) -> None:
        text = self.reasons(
            "K:1024 M:1024@SM N:1024@SM K:64 M:64 N:64", "M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8"
        )
        heads = [line.partition(":")[0] for line in text.splitlines() if " against " in line]
        assert heads == ["L2 to L1, C", "L2 to L1, B", "DRAM to L2, C"]
        # A and B swap their shares of what is moved: one is worse, and only that is told.
        wide, high = (
            "M:1024@SM N:1024@SM K:1024 M:64 N:128",
            "M:1024@SM N:1024@SM K:1024 M:128 N:64",
        )
        told = self.reasons(wide, high)
        assert "L2 to L1, B: " in told
        assert "L2 to L1, A: " not in told

    def test_overlap_of_tiles_is_named(self) -> None:
        # Eight tiles of 4 rows each, or two of 10, of 18 rows; along the width they slide.
        problem = conv2d(c=1, k=4, p=16, q=8, r=3, s=3)
        nests = [parse_schedule(f"P:16 Q:8 K:4 P:{p} Q:2 R:3 S:3", problem) for p in (2, 8)]
        arch = buffer_arch(capacity_bytes=400, policy="explicit")
        text = "\n".join(compare(problem, *nests, arch).reasons)
        assert "overlap of its tiles adds 78 %, not 11 %" in text

    def test_idle_units_are_named(self) -> None:
        text = self.reasons(
            "M:1024@SM N:1024 K:1024 M:512", "M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8"
        )
        assert "compute: units do useful work 2.5 % of the time against 80.0 %" in text

    def test_overflow_is_named(self) -> None:
        text = self.reasons(
            "M:1024@SM N:1024@SM K:1024 M:128 N:512 K:256",
            "M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8",
        )
        assert "loop K:1024 fetches it 4 times" in text
        # 256 of A, 256 x 512 of B, 512 of C.
        assert "L1 (96 KiB) overflows: from loop N:512 inward, 515.0 KiB are needed" in text

    def test_equal_schedules_have_no_reason(self) -> None:
        one = "M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8"
        assert self.reasons(one, one) == ""
