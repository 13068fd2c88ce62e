"""Written programs compute what a sum over all points does, and touch nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from kernel_fuzz import AARCH64, Case, case, check_aarch64, check_c, check_infinite, check_llvm

from loopsched import compile as compiled
from loopsched import conv2d, einsum, load_arch
from loopsched.codegen.measure import check

HOST = load_arch("host")


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_llvm_computes_random_kernels(first: int) -> None:
    assert not [fault for seed in range(first, first + 10) if (fault := check_llvm(case(seed)))]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("option", ["-O1", "-march=native"])
@pytest.mark.parametrize("seed", [100, 101, 200026])  # the last: garbage in unused lanes
def test_c_computes_random_kernels(seed: int, option: str, tmp_path: Path) -> None:
    assert check_c(case(seed), tmp_path, option) is None


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_reads_elements_two_apart(tmp_path: Path) -> None:
    assert check_c(case(135), tmp_path) is None


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_computes_bf16(tmp_path: Path) -> None:
    assert check_c(case(104), tmp_path) is None


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


@pytest.mark.parametrize("expression", ["a,b->ab", "ab,bc,cd->ad", "ab->ba", "ab,ab->"])
@pytest.mark.parametrize("data_type", ["fp32", "bf16", "int8"])
def test_any_product_is_compiled(expression: str, data_type: str) -> None:
    """None summed, one operand, three: what is no sum of products of two, and what is just so."""
    sizes = {one: 5 + 14 * place for place, one in enumerate("abcd") if one in expression}
    check(compiled(einsum(expression, sizes), HOST, data_type=data_type))


@pytest.mark.parametrize("seed", [1318, 1631, 1365])
def test_a_window_of_the_output_guards_all_that_moves_with_it(seed: int) -> None:
    """Both operands, or none, move over a dimension that shares an axis of the output."""
    assert check_llvm(case(seed)) is None


def test_a_block_of_one_point_is_packed() -> None:
    assert check_llvm(case(2593)) is None


def test_a_later_block_reaches_padding() -> None:
    assert check_llvm(case(2927)) is None
