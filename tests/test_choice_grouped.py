"""Products of unlike sizes in one launch: the list of blocks against a literal walk, estimates."""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_choices import validated

from loopsched import Grouped, batched_gemm, gemm, load_arch, pick
from loopsched.base.errors import InputError, ProblemError
from loopsched.cli import run
from loopsched.gpu.choice._block_kernels import listed_steps
from loopsched.gpu.choice.families import TRITON_GEMM, TRITON_GROUPED
from loopsched.gpu.choice.pick import rank
from loopsched.validation.choices import validate_choices

H200 = load_arch("h200")
SIZE = st.integers(1, 3000)
PRODUCT = st.tuples(SIZE, SIZE, SIZE)


def _walked(stretches: list[tuple[int, int]], places: int) -> int:
    """Give each block of the list the place that is free first."""
    free = [0] * places
    last = 0
    for many, steps in stretches:
        for _ in range(many):
            end = heapq.heappop(free) + steps
            heapq.heappush(free, end)
            last = max(last, end)
    return last


@given(
    stretches=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=6),
    places=st.integers(1, 30),
)
def test_blocks_start_where_a_place_is_free_first(
    stretches: list[tuple[int, int]], places: int
) -> None:
    blocks = np.array([[many for many, _ in stretches]] * 2)
    steps = np.array([[one for _, one in stretches]] * 2)
    found = listed_steps(blocks, steps, np.array([places, 2 * places]))
    assert found.tolist() == [_walked(stretches, places), _walked(stretches, 2 * places)]


@given(product=PRODUCT, many=st.integers(1, 9))
def test_equal_products_are_a_batch(product: tuple[int, int, int], many: int) -> None:
    m, n, k = product
    one = gemm(m=m, n=n, k=k) if many == 1 else batched_gemm(batch=many, m=m, n=n, k=k)
    space = TRITON_GROUPED.tried()
    found = rank(Grouped((product,) * many), H200, TRITON_GROUPED, space, "fp16")
    wanted = rank(one, H200, TRITON_GEMM, space, "fp16")
    assert found.times.time_s == pytest.approx(wanted.times.time_s, rel=1e-9)
    assert found.times.waves == pytest.approx(wanted.times.waves, rel=1e-9)
    assert found.bound_s == pytest.approx(wanted.bound_s, rel=1e-9)


@given(products=st.lists(PRODUCT, min_size=1, max_size=5), more=PRODUCT)
def test_steps_are_those_of_the_walk(
    products: list[tuple[int, int, int]], more: tuple[int, int, int]
) -> None:
    """Between all places busy all the time, and that and the longest block."""
    space = TRITON_GROUPED.tried().kept(np.arange(720) % 37 == 0)
    fewer = rank(Grouped(tuple(products)), H200, TRITON_GROUPED, space, "fp16")
    found = rank(Grouped((*products, more)), H200, TRITON_GROUPED, space, "fp16")
    for at in range(len(found.space)):
        one = found.space.configuration(at)
        stretches = [
            (-(-m // one["block_m"]) * -(-n // one["block_n"]), -(-k // one["block_k"]))
            for m, n, k in (*products, more)
        ]
        places = int(132 * found.taken.resident[at])
        n_blocks = sum(many for many, _ in stretches)
        assert found.times.waves[at] == pytest.approx(n_blocks / places)
        if n_blocks < 3000:
            steps, total = _walked(stretches, places), sum(many * one for many, one in stretches)
            assert total / places <= steps <= total / places + max(one for _, one in stretches)
    assert fewer.bound_s <= found.bound_s


def test_long_sums_go_first() -> None:
    """A list that ends with its longest blocks leaves most places idle at the end."""
    short, long = (4096, 4096, 256), (256, 256, 16_384)
    space = [{"block_m": 128, "block_n": 128, "block_k": 64, "stages": 4, "warps": 8, "group_m": 8}]
    ahead, behind = (
        pick(Grouped(order), H200, space=space).best.estimate_us
        for order in ((long, short, short), (short, short, long))
    )
    assert ahead < behind
    alone = pick(Grouped((long,)), H200, space=space).best.estimate_us
    assert alone < ahead


def test_groups_have_names_and_faults(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one = Grouped.named("16x512x64+8x512x64")
    assert one.name == "16x512x64+8x512x64"
    assert one.macs == 24 * 512 * 64
    assert one.elems == 24 * 64 + 2 * 512 * 64 + 24 * 512
    for text in ("16x512", "16x512x64+", "16x512x64x2", ""):
        with pytest.raises(ProblemError, match="is not MxNxK"):
            Grouped.named(text)
    with pytest.raises(ProblemError, match="m of product 2"):
        Grouped(((1, 2, 3), (0, 2, 3)))
    with pytest.raises(ProblemError, match="products"):
        Grouped(())
    with pytest.raises(ProblemError, match="triton_gemm computes a GEMM or a convolution"):
        pick(one, H200, kernel="triton_gemm")
    with pytest.raises(ProblemError, match="triton_grouped computes several GEMMs in one launch"):
        pick(gemm(m=8, n=8, k=8), H200, kernel="triton_grouped")
    assert run(["pick", "grouped:16x512x64+8x512x64", "--top", "1", "--arch", "h200"]) == 0
    assert "triton_grouped on h200" in capsys.readouterr().out
    assert run(["pick", "grouped:16x512x64+8x512x64", "--emit", "triton"]) == 0
    assert "PRODUCTS = [(16, 512, 64), (8, 512, 64)]\n" in capsys.readouterr().out
    assert run(["pick", "grouped:16x512x64+8x512x64", "--dispatch", "4"]) == 3
    assert capsys.readouterr().err.count("Error: ") == 1
    file = tmp_path / "mine.csv"
    file.write_text(
        "kind,problem,block_m,block_n,block_k,stages,warps,group_m,time_us\n"
        "grouped,16x512x64+8x512x64,16,64,32,3,4,8,9\n"
    )
    assert validate_choices(file, "h200").problems[0]["configurations"] == 1
    with pytest.raises(InputError, match="the only configuration of triton_grouped cannot run"):
        row = {"block_m": 96, "block_n": 64, "block_k": 32, "stages": 3, "warps": 4, "group_m": 8}
        pick(one, H200, space=[row])


def test_lists_measured_on_a_gpu_that_nothing_was_fitted_to(tmp_path: Path) -> None:
    found = validated("h200_triton_more.csv.gz", H200, tmp_path)
    (group,) = [one for one in found.summary["groups"] if one["kind"] == "grouped"]
    assert (group["problems"], group["rows"]) == (10, 1500)
    assert group["first_1"] <= 1.016
    assert group["first_1_worst"] <= 1.07
    assert group["first_5_worst"] <= 1.01
    assert group["set_share"] <= 0.15
    assert (group["sets_without_best"], group["bound_violations"], group["refused"]) == (0, 0, 0)
