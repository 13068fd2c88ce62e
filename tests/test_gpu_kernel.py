"""Kernels: what a schedule becomes on a GPU, small cases by hand, and complaints."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from typing import get_type_hints

import pytest

from loopsched import InputError, conv2d, gemm, load_arch
from loopsched.gpu.accesses import AccessCount
from loopsched.gpu.counting import Profile, profile
from loopsched.gpu.kernel import How, Kernel
from loopsched.gpu.reads import Read, read_from
from loopsched.gpu.traffic import TensorTraffic
from loopsched.gpu.views import DigitLayout
from loopsched.machines.arch import Arch
from loopsched.nests.notation import parse_schedule
from loopsched.problems.problem import Problem
from loopsched.problems.projections import affine

V100 = load_arch("v100")
PRODUCT = gemm(m=64, n=64, k=32)
TILED = "M:64@block_y N:64@block_x M:32@thread_y N:32@thread_x K:32"


def access(found: Profile, tensor: str, op: str, stage: str) -> AccessCount:
    (one,) = [
        one for one in found.accesses if (one.tensor, one.op, one.stage) == (tensor, op, stage)
    ]
    return one


def counted(schedule: str, **options: object) -> Profile:
    return profile(Kernel.of(PRODUCT, schedule, **options), V100)  # type: ignore[arg-type]


# By hand


def test_time_loops_outside_threads_give_outputs_a_block_apart() -> None:
    """Each warp stores 32 floats in a row, or every second of 64."""
    apart = counted("M:64@block_y N:64@block_x M:8@thread_y N:64 N:32@thread_x K:32")
    adjacent = counted("M:64@block_y N:64@block_x M:8@thread_y N:64@thread_x N:2 K:32")
    assert apart.block == adjacent.block == (32, 8, 1)
    assert apart.store_sectors == 64 * 64 * 4 // 32
    assert adjacent.store_sectors == 2 * apart.store_sectors
    assert apart.store_requests == adjacent.store_requests == 64 * 64 // 32


def test_columns_of_a_tile_meet_in_one_bank_unless_padded() -> None:
    """Threads of a warp down a column of a 32 x 32 tile of floats."""
    text = "M:64@block_y N:64@block_x M:32@thread_x N:32@thread_y K:32"
    plain = counted(text, reads={"A": "shared@block"})
    padded = counted(text, reads={"A": "shared@block,pitch=33"})
    conflict = access(plain, "A", "load", "compute")
    assert conflict.wavefronts == 32 * conflict.requests
    free = access(padded, "A", "load", "compute")
    assert free.wavefronts == free.requests == conflict.requests
    assert (plain.shared_bytes, padded.shared_bytes) == (4 * 32 * 32, 4 * 32 * 33)


def test_constant_memory_serves_a_warp_at_once_where_it_asks_for_one_word() -> None:
    same = counted(TILED, reads={"A": "constant"})
    apart = counted(TILED, reads={"B": "constant"})
    one, many = access(same, "A", "load", "compute"), access(apart, "B", "load", "compute")
    assert one.wavefronts == one.requests == 4 * 32 * 32
    assert many.wavefronts == 32 * many.requests
    assert one.sectors == one.lines == 0


def test_a_tensor_waits_in_a_register_while_inner_loops_do_not_move_along_it() -> None:
    found = counted("M:64@block_y N:64@block_x M:8@thread_y N:64 K:32 N:32@thread_x")
    # N:64 goes round twice, outside of k: both are loaded twice.
    assert access(found, "A", "load", "compute").trips == 64
    inner = counted("M:64@block_y N:64@block_x M:8@thread_y N:32@thread_x K:32")
    assert access(inner, "A", "load", "compute").trips == 32
    outer = counted("M:64@block_y N:64@block_x M:8@thread_y K:32 N:64 N:32@thread_x")
    assert access(outer, "A", "load", "compute").trips == 32
    assert access(outer, "B", "load", "compute").trips == 64
    assert Kernel.of(PRODUCT, "M:64@thread_x K:32 N:64").accumulators == 64


def test_a_held_tile_is_loaded_once_an_element() -> None:
    problem = conv2d(c=1, k=1, h=1, w=66, r=1, s=3)
    text = "N:1 K:1 C:1 P:1 R:1 Q:64@thread_x S:3 Q:2"
    slid = profile(Kernel.of(problem, text, reads={"input": "global,held=R"}), V100)
    again = profile(Kernel.of(problem, text), V100)
    assert access(slid, "input", "load", "compute").trips == 4  # 2 outputs, 3 taps
    assert access(again, "input", "load", "compute").trips == 6
    assert access(slid, "input", "load", "compute").requests == 4


def test_partial_warps_and_barriers() -> None:
    found = counted("M:64@block_y N:64@block_x M:5@thread_y N:10@thread_x K:32")
    assert found.grid == (7, 13, 1)
    assert found.n_warps == 2 * 91
    assert found.partial_warps == 91
    assert counted(TILED).partial_warps == 0
    steps = "M:64@block_y N:64@block_x M:32@thread_y N:32@thread_x K:32 K:8"
    tiles = {"A": "shared@K", "B": "shared@K"}
    assert counted(steps, reads=tiles).syncs == 8
    assert counted(steps, reads=tiles, double_buffered=True).syncs == 4
    assert counted(TILED, reads={"A": "shared@block"}).syncs == 1
    twice = counted(steps, reads=tiles, double_buffered=True)
    assert twice.shared_bytes == 2 * counted(steps, reads=tiles).shared_bytes


def test_what_goes_past_l1_misses_it() -> None:
    cached, past = counted(TILED), counted(TILED, reads={"A": "l2", "B": "l2"})
    assert cached.l1_hit > 0.8
    assert past.l2_read_sectors == past.load_sectors == cached.load_sectors
    assert past.l1_hit == 0
    # Half the loads go past L1: what hits is what the other half finds there.
    half = counted(TILED, reads={"B": "l2"})
    own, other = (access(half, tensor, "load", "compute").sectors for tensor in "AB")
    missed = next(one.l1_miss_sectors for one in half.traffic.tensors if one.tensor == "A")
    assert 0 < missed < own
    assert half.l1_hit == pytest.approx((own - missed) / (own + other))


def test_waves_and_intensities_are_ratios_of_what_is_counted() -> None:
    found = counted(TILED, reads={"A": "shared@block"})
    assert found.waves == found.n_blocks / (found.occupancy.blocks * V100.compute.units)
    stored = 4 * 64 * 64
    assert found.dram_write_bytes == stored
    assert found.intensity("DRAM") == found.flops / (found.dram_read_bytes + stored)
    assert found.intensity("L1") == found.flops / (32 * (found.load_sectors + stored // 32))


def test_linear_loaders_pay_for_narrow_tiles() -> None:
    text = "M:64@block_y N:64@block_x M:32@thread_y N:32@thread_x K:32 K:4"
    rows = counted(text, reads={"A": "shared@K"})
    linear = counted(text, reads={"A": "shared@K,by=linear"})
    # Four floats a row: four lanes of each of 32 warps, or all of four warps.
    assert access(rows, "A", "load", "fill").requests == 4 * 8 * 32
    assert access(linear, "A", "load", "fill").requests == 4 * 8 * 4
    assert access(rows, "A", "load", "fill").lanes == access(linear, "A", "load", "fill").lanes


def test_vectors_are_loaded_at_once() -> None:
    one = counted(TILED, reads={"A": "shared@block"})
    four = counted(TILED, reads={"A": "shared@block,vector=4"})
    before, after = (access(found, "A", "load", "compute") for found in (one, four))
    # All lanes of a warp ask for the same four words.
    assert (before.trips, after.trips) == (32, 8)
    assert before.wavefronts == before.requests == 4 * after.requests == 4 * after.wavefronts
    assert before.useful_bytes == after.useful_bytes
    # 32 rows a warp, each of 128 bytes: a quarter of the requests, as many sectors.
    text = "M:64@block_y N:64@block_x N:32@thread_y M:32@thread_x K:32"
    plain, wide = (counted(text, reads={"A": f"global,vector={many}"}) for many in (1, 4))
    assert access(wide, "A", "load", "compute").requests * 4 == 4 * 32 * 32
    assert (
        access(wide, "A", "load", "compute").sectors * 4
        == access(plain, "A", "load", "compute").sectors
    )


def test_a_view_is_what_unrolling_would_build() -> None:
    view = DigitLayout.im2col(channels=2, height=4, width=5, r=2, s=3)
    image = [[[100 * c + 10 * y + x for x in range(5)] for y in range(4)] for c in range(2)]
    flat = [value for plane in image for row in plane for value in row]
    for row in range(2 * 2 * 3):
        c, r, s = row // 6, row // 3 % 2, row % 3
        for column in range(3 * 3):
            p, q = divmod(column, 3)
            assert flat[view.address((row, column))] == image[c][p + r][q + s]


# Complaints


@pytest.mark.parametrize(
    ("schedule", "options", "said"),
    [
        ("M:64@block_w N:64 K:32", {}, "no unit 'block_w'; did you mean"),
        ("M:64 N:64@block_x K:32", {}, "M:64 lies outside the grid"),
        ("M:64@thread_x N:64 K:32@thread_y", {}, "K:32 is a reduction; threads cannot"),
        (TILED, {"reads": {"D": "global"}}, "'D': no such tensor"),
        (TILED, {"reads": {"A": "shared@5", "B": "shared@9"}}, "place 9: loops are numbered 0"),
        (TILED, {"reads": {"A": Read("shared", at=9)}}, "its tile is filled at 9; loops are 0"),
        (TILED, {"reads": {"A": "shared@K,held=block"}}, "held from outside"),
        (TILED, {"reads": {"A": "global,pitch=3"}}, "'pitch' is for shared memory"),
        (TILED, {"reads": {"A": "shared,pitch=x"}}, "pitch is 'x'; elements"),
        (TILED, {"reads": {"A": "shared,pich=3"}}, "no option 'pich'; did you mean 'pitch'"),
        (TILED, {"reads": {"A": "shared,zero=never"}}, "zero is 'never'"),
        (TILED, {"reads": {"A": "sh!"}}, "is not a place such as"),
        (TILED, {"reads": {"A": "shared@K,by=hand"}}, "by is 'hand'"),
        (TILED, {"reads": {"A": "shared@block,vector=3"}}, "vector is 3"),
        (TILED, {"reads": {"A": "shared@block,vector=2,held=4"}}, "no 'vector'"),
        (
            TILED,
            {"reads": {"B": "shared@block,vector=2"}},
            "not run over consecutive elements",
        ),
        (TILED, {"reads": {"A": "shared@block,vector=2,pitch=33"}}, "a pitch can mend"),
        (TILED + " K:3", {"reads": {"A": "shared@K,vector=2"}}, "in such multiples"),
        (TILED, {"guard": "none"}, "guard is 'none'"),
        (TILED, {"padding": "none"}, "padding is 'none'"),
        (TILED, {"registers": -1}, "registers is -1"),
        (TILED, {"layouts": {"A": "M"}}, "each axis once is needed"),
        (TILED, {"layouts": {"A": DigitLayout((((64, 32),),), 2048)}}, "1 axes of digits"),
        (
            TILED,
            {"layouts": {"A": DigitLayout((((4, 32),), ((32, 1),)), 2048)}},
            "digits count to 4; dimension 'M' has 64",
        ),
        (
            "M:64@block_y M:24@thread_y M:7 N:64@block_x K:32",
            {"guard": "load"},
            "M:24 is not a multiple of its step 7",
        ),
    ],
)
def test_what_is_wrong_is_said(schedule: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        counted(schedule, **options)


@pytest.mark.parametrize(
    ("problem", "schedule", "said"),
    [
        (gemm(m=70000, n=4, k=4), "M:70000@block_y N:4@thread_x K:4", "70000 along y; CUDA allows"),
        (gemm(m=100, n=4, k=4), "M:100@thread_z N:4@block_x K:4", "block has 100 along z"),
        (gemm(m=4, n=4, k=10**8), "M:4@thread_y N:4@thread_x K:100000000", "'A': 100000000 iter"),
    ],
)
def test_what_is_too_large_is_said(problem: Problem, schedule: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        profile(Kernel.of(problem, schedule), V100)


def test_several_faults_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        counted(TILED, reads={"A": "shard", "B": "shared@Q"})
    assert len(caught.value.problems) == 2


def test_outputs_whose_axes_are_shared_are_refused() -> None:
    problem = affine({"P": 4, "R": 3}, {"y": "P", "f": "R", "x": "P+R"}, output="x")
    with pytest.raises(InputError, match="P and R share an axis"):
        Kernel.of(problem, "P:4@thread_x R:3")


def test_places_are_read_from_text() -> None:
    nest = parse_schedule(TILED + " K:8", PRODUCT)
    assert read_from("shared@K", nest) == Read("shared", at=5)
    assert read_from("shared@block", nest) == Read("shared", at=0)
    assert read_from("shared@4,by=linear,via=l2,zero=no", nest) == Read(
        "shared", at=4, loaders="linear", via="l2", zero_fill=False
    )
    assert read_from("readonly,held=K", nest) == Read("readonly", held=5)


def test_a_machine_that_is_no_gpu_is_refused() -> None:
    with pytest.raises(InputError, match="has no 'gpu' part"):
        profile(Kernel.of(PRODUCT, TILED), load_arch("diannao"))


SCRIPT = """
from dataclasses import asdict
from loopsched import load_arch, preset, profile
for name, options in (
    ("gemm_tiled", {"m": 40, "n": 70, "k": 30, "tile": 16}),
    ("filter_colmap", {"images": 1, "size": 40, "radius": 1}),
    ("layer_fused", {"layer": 2, "batch": 1}),
):
    ((kernel, _),) = preset(name, **options)
    print(asdict(profile(kernel, load_arch("h200"))))
"""


def test_python_and_compiled_counts_agree() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "LOOPSCHED_JIT": jit},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for jit in ("0", "1")
    ]
    assert said[0] == said[1]
    assert said[0].count("gemm_tile16") == 1


def test_an_unknown_keyword_is_named_with_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"Kernel.of\(\) has no argument 'gard'; did you mean"):
        Kernel.of(PRODUCT, TILED, gard="load")  # type: ignore[call-arg]


def test_keywords_are_the_fields_of_a_kernel() -> None:
    hints = get_type_hints(Kernel)
    assert get_type_hints(How).items() <= hints.items()
    names = [field.name for field in fields(Kernel) if field.init]
    assert list(How.__annotations__) == names[names.index("guard") :]


# Traffic by hand


def moved(problem: Problem, schedule: str, arch: Arch = V100) -> dict[str, TensorTraffic]:
    found = profile(Kernel.of(problem, schedule), arch)
    return {one.tensor: one for one in found.traffic.tensors}


@pytest.mark.parametrize(("columns", "times"), [(8192, 1), (65536, 256)])
def test_a_panel_is_read_again_where_more_than_l2_passes_between(columns: int, times: int) -> None:
    """Rows of blocks are launched one after the other: B comes in again for each."""
    problem = gemm(m=8192, n=columns, k=16)
    text = f"M:8192@block_y N:{columns}@block_x M:32@thread_y N:32@thread_x K:16"
    found = moved(problem, text)
    assert found["A"].dram_bytes == 4 * 8192 * 16
    assert found["B"].dram_bytes == times * 4 * 16 * columns
    assert found["C"].dram_bytes == 4 * 8192 * columns


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_requests_of_several_multiprocessors_are_merged(share: float) -> None:
    """Two by two blocks: each row of A, each column of B is asked for by two of them."""
    limits = replace(V100.kernel_limits, merged_share=share)
    text = "M:64@block_y N:64@block_x M:32@thread_y N:32@thread_x K:32"
    found = moved(PRODUCT, text, replace(V100, gpu=limits))
    assert (found["A"].sharers, found["B"].sharers) == (2, 2)
    # Whole lines of B; of A single words, a sector each of four in a line.
    for name, filled in (("A", 1 / 4), ("B", 1)):
        missed = found[name].l1_miss_sectors
        assert missed == 4 * 32 * 32 * 4 // 32
        assert found[name].l2_sectors == round(missed * (1 - share * filled / 2))
