"""Yalsa's model against the original program's own answers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.errors import InputError, ProblemError, ScheduleError
from loopsched.models.float32 import single, wrap_int32
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import conv2d, einsum, gemm
from loopsched.problems.problem import Problem
from loopsched.published.diannao import (
    DianNao,
    diannao_flops,
    diannao_time,
    yalsa_report,
)
from loopsched.published.yalsa import yalsa_bandwidth, yalsa_scratchpad, yalsa_volumes

DATA = Path(__file__).parent / "data"
REFERENCE = json.loads((DATA / "yalsa_reference.json").read_text())

CONV = conv2d(n=1, c=108, k=200, p=32, q=32, r=4, s=4)
CONV_LOOPS = "n:1 y:32 x:32 k:200 y:8 x:8 k:64 s:4 r:4 c:108 k:16 c:16"
GEMM = gemm(m=64, n=256, k=256)
GEMM_LOOPS = "n:64 c:256 k:256 n:32 c:32 k:32"


def problem_of(case: dict[str, Any]) -> Problem:
    d = case["dims"]
    size = case["datatype_bytes"]
    if case["kind"] == "gemm":
        return gemm(m=d["n"], n=d["k"], k=d["c"], element_bytes=size)
    return conv2d(
        n=d["n"], c=d["c"], k=d["k"], p=d["y"], q=d["x"], r=d["r"], s=d["s"], element_bytes=size
    )


def test_the_reference_has_150_nests_of_both_kinds() -> None:
    assert len(REFERENCE) == 150
    assert {case["kind"] for case in REFERENCE} == {"conv", "gemm"}


@pytest.mark.parametrize("case", REFERENCE, ids=range(len(REFERENCE)))
def test_reference_nest(case: dict[str, Any]) -> None:
    problem = problem_of(case)
    schedule = parse_schedule(case["loops"], problem, dialect="yalsa")
    machine = {
        "capacity_bytes": case["cache_bytes"],
        "iterations_per_cycle": case["iters_per_cycle"],
    }

    assert [list(row) for row in yalsa_volumes(problem, schedule)] == case["volumes"]

    bandwidth, fit_level = yalsa_bandwidth(problem, schedule, **machine)
    assert fit_level == case["fit_level"]
    assert bandwidth == single(case["bytes_per_cycle"])  # the very same 32-bit float

    apart = yalsa_scratchpad(problem, schedule, **machine)
    for (ours, level), (theirs, their_level) in zip(
        apart.values(), case["scratchpad"], strict=True
    ):
        assert level == their_level
        assert ours == single(theirs)


def test_both_examples_print_as_the_original_byte_for_byte() -> None:
    conv = parse_schedule(CONV_LOOPS, CONV, dialect="yalsa")
    product = parse_schedule(GEMM_LOOPS, GEMM, dialect="yalsa")
    text = yalsa_report(CONV, conv, title="Example Conv Analysis")
    text += yalsa_report(GEMM, product, title="Example MM Analysis")
    assert text == (DATA / "yalsa_examples.txt").read_text()


def test_element_size_comes_from_the_problem_unless_given() -> None:
    schedule = parse_schedule(GEMM_LOOPS, GEMM, dialect="yalsa")
    machine = {"capacity_bytes": 8192, "iterations_per_cycle": 16}
    half = yalsa_bandwidth(GEMM.with_element_bytes(2), schedule, **machine)
    assert half == (3.0, 3)  # the original's table, row 8192
    assert yalsa_bandwidth(GEMM, schedule, element_bytes=2, **machine) == half
    # One 32x32x32 tile: 2 bytes of A and B, 4 of C; 8,192 bytes do not fit *below* 8,192.
    mixed = GEMM.with_element_bytes({"A": 2, "B": 2})
    assert yalsa_bandwidth(mixed, schedule, **machine)[1] == 4
    assert yalsa_bandwidth(mixed, schedule, capacity_bytes=8193, iterations_per_cycle=16) == (
        8192 * 16 / 32**3,
        3,
    )


def test_strides_carry_the_bounding_box_on() -> None:
    problem = conv2d(c=1, k=1, p=4, q=4, r=3, s=1, stride=2)
    schedule = parse_schedule("P:4 Q:4 R:3", problem)
    # Rows reach from 0 to 2*3+2, columns from 0 to 2*3: 9 x 7.
    assert yalsa_volumes(problem, schedule)[0] == (63, 3, 16)


def test_spatial_loops_are_refused() -> None:
    schedule = parse_schedule("M:64@SM N:256 K:256", GEMM)
    with pytest.raises(ScheduleError, match=r"no spatial loops, found 'M:64@SM'.*unbind"):
        yalsa_volumes(GEMM, schedule)


def test_a_schedule_of_another_problem_is_refused() -> None:
    schedule = parse_schedule(GEMM_LOOPS, GEMM, dialect="yalsa")
    with pytest.raises(ScheduleError, match="outermost loop of 'M' covers 64"):
        yalsa_volumes(gemm(m=65, n=256, k=256), schedule)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, math.nan, "8"])
def test_numbers_that_are_no_counts_are_refused(value: Any) -> None:
    schedule = parse_schedule(GEMM_LOOPS, GEMM, dialect="yalsa")
    with pytest.raises(InputError, match=r"capacity_bytes is .*; a whole number >= 1 is needed"):
        yalsa_bandwidth(GEMM, schedule, capacity_bytes=value, iterations_per_cycle=16)
    with pytest.raises(InputError, match="2 errors"):
        yalsa_bandwidth(
            GEMM, schedule, capacity_bytes=8, iterations_per_cycle=value, element_bytes=value
        )


def test_a_scratchpad_needs_a_capacity_for_each_tensor() -> None:
    schedule = parse_schedule(GEMM_LOOPS, GEMM, dialect="yalsa")
    with pytest.raises(InputError, match="no capacity for B, C"):
        yalsa_scratchpad(GEMM, schedule, capacity_bytes={"A": 8}, iterations_per_cycle=16)


def test_times_are_nanoseconds() -> None:
    schedule = parse_schedule(GEMM_LOOPS, GEMM, dialect="yalsa")
    # 64*256*256 points at 256 a cycle are 16,384 cycles, each a nanosecond at 1 GHz.
    swapped = ("B", "A", "C")
    assert diannao_time(GEMM, schedule, tensors=swapped) == 16_384
    assert diannao_flops(GEMM, schedule, tensors=swapped) == 512


def test_the_clock_scales_compute_time_and_not_memory_time() -> None:
    schedule = parse_schedule(GEMM_LOOPS, GEMM, dialect="yalsa")
    fast, slow = DianNao(frequency_ghz=2), DianNao(frequency_ghz=0.125)
    assert diannao_time(GEMM, schedule, machine=slow) == 8 * 16_384
    assert diannao_time(GEMM, schedule, machine=fast) == pytest.approx(
        diannao_time(GEMM, schedule), rel=1e-6
    )


def test_less_than_a_cycle_of_work_has_no_rate() -> None:
    tiny = gemm(m=2, n=2, k=2)
    schedule = parse_schedule("M:2 N:2 K:2", tiny)
    assert diannao_time(tiny, schedule) == 0
    assert diannao_flops(tiny, schedule) == math.inf


def test_diannao_names_what_it_cannot_place() -> None:
    schedule = parse_schedule(GEMM_LOOPS, GEMM, dialect="yalsa")
    with pytest.raises(ProblemError, match="no tensor 'weights'"):
        diannao_time(GEMM, schedule, tensors=("A", "weights", "C"))
    with pytest.raises(ProblemError, match="each of A B C goes into one buffer"):
        diannao_time(GEMM, schedule, tensors=("A", "A", "C"))
    four = einsum("i,i,i->i", sizes={"i": 3})
    with pytest.raises(ProblemError, match="has 4 tensors; DianNao has a buffer for three"):
        diannao_time(four, parse_schedule("i:3", four))


@given(st.integers(-(2**70), 2**70))
def test_single_rounds_integers_once(value: int) -> None:
    near = single(value)
    assert near == int(near)
    # No 24-bit number lies nearer; ties go to the even one.
    shift = max(abs(value).bit_length() - 24, 0)
    low, rest = divmod(abs(value), 1 << shift)
    half = (1 << shift) / 2
    up = rest > half or (rest == half and shift > 0 and low % 2 == 1)
    assert abs(near) == (low + up) << shift


def test_single_overflows_to_infinity() -> None:
    assert single(1e39) == math.inf
    assert single(-(10**400)) == -math.inf


@given(st.integers(-(2**40), 2**40))
def test_wrapping_keeps_the_low_32_bits(value: int) -> None:
    wrapped = wrap_int32(value)
    assert -(2**31) <= wrapped < 2**31
    assert (wrapped - value) % 2**32 == 0
