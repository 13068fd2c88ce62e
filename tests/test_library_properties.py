"""What must hold of every library and tiled kernel, whatever the GPU is called."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import (
    ArchError,
    InputError,
    ProblemError,
    arch_names,
    batched_gemm,
    conv2d,
    conv_estimate,
    gemm,
    gemm_estimate,
    load_arch,
    tiled_conv,
    tiled_gemm,
)
from loopsched.gpu.estimate import estimate_kernel
from loopsched.gpu.library.calibration import calibration
from loopsched.gpu.library.machine import machine_of
from loopsched.gpu.library.product import Product
from loopsched.gpu.library.tiles import Tile
from loopsched.gpu.library.wave import launch_time
from loopsched.gpu.result import Estimate, Spread, estimate_of
from loopsched.machines.arch import Arch
from loopsched.published.presets import preset

GPUS = tuple(name for name in arch_names() if load_arch(name).gpu is not None)
LAYER = {"n": 4, "c": 64, "k": 64, "h": 28, "w": 28, "r": 3, "s": 3, "padding": 1}


def own(arch: Arch) -> Estimate:
    product = gemm(m=2048, n=1024, k=4096)
    return tiled_gemm(product, arch, tile=(128, 64, 8), stages=2, threads=128).estimate


CALLS: dict[str, Callable[[Arch], Estimate]] = {
    "gemm": lambda arch: gemm_estimate(gemm(m=2048, n=16, k=4096), arch),
    "tiled": own,
    **{
        pass_: lambda arch, pass_=pass_: conv_estimate(conv2d(**LAYER, pass_=pass_), arch)  # type: ignore[misc]
        for pass_ in ("forward", "backward_data", "backward_weights")
    },
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", GPUS)
def test_a_copy_under_another_name_gives_the_same(
    name: str, call: Callable[[Arch], Estimate]
) -> None:
    arch = load_arch(name)
    said = call(arch)
    assert call(replace(arch, name="mine")) == said
    assert 0 < said.time_bound_s <= said.low_s <= said.time_s <= said.high_s


def test_only_a_gpu_that_was_measured_has_its_own_spread() -> None:
    for name, call in CALLS.items():
        known, strange = call(load_arch("v100")), call(load_arch("p100"))
        assert ("V100" in known.basis) == (name != "tiled")  # own kernels there: never measured
        assert "fitted to neither" in strange.basis or "no tiled kernel" in strange.basis


def test_what_no_row_is_like_has_the_widest_spread() -> None:
    v100 = load_arch("v100")
    batch = gemm_estimate(batched_gemm(batch=8, m=512, n=512, k=512), v100)
    assert batch.basis.startswith("no batched GEMM was measured")
    known = gemm_estimate(gemm(m=512, n=512, k=512), v100)
    assert batch.high_s / batch.time_s > 2 > known.high_s / known.time_s
    plain = conv_estimate(conv2d(**LAYER), v100)
    for change in ({"groups": 64}, {"dilation": 2}):
        strange = conv_estimate(conv2d(**(LAYER | change)), v100)
        assert strange.basis.startswith("no layer with groups or dilation was measured")
        assert strange.high_s / strange.time_s > plain.high_s / plain.time_s


def test_l2_of_the_file_is_used_where_kernels_are_known_to_reach_it() -> None:
    """The H200's file has a measured bandwidth: all loads of panels over it is the least time."""
    product, h200 = gemm(m=4096, n=4096, k=4096), load_arch("h200")
    found = tiled_gemm(product, h200, tile=(64, 64, 32), data_type="tf32", registers=64)
    moved = 2 * 4096 * 4096 * 64 * 4 + 4096 * 4096 * 4
    assert dict(found.estimate.parts)["L2"] == pytest.approx(moved / 9.55e12)


def test_a_cache_behind_l2_is_what_comes_before_memory() -> None:
    arch = load_arch("w6600")
    behind, l2 = (level for level in arch.caches if level.is_shared)
    found = machine_of(arch, "fp32")
    assert found.l2_bytes == behind.usable_bytes != l2.usable_bytes
    assert found.dram_bytes_per_s == behind.bandwidth_bytes_per_s != l2.bandwidth_bytes_per_s


def test_only_rates_beyond_packed_lanes_are_tensor_cores() -> None:
    """A P100 multiplies two halves a lane and a V100 four bytes (DP4A): no tensor cores."""
    on_lanes = {
        ("p100", "fp16"): True,
        ("m40", "fp16"): True,
        ("v100", "fp32"): True,
        ("v100", "fp16"): False,
        ("v100", "fp16_simt"): True,
        ("v100", "fp16_as_fp32"): True,
        ("v100", "int8"): True,
        ("titan_xp", "int8"): True,
        ("t4", "int8"): False,
        ("h200", "tf32"): False,
        ("rtx_3090", "tf32"): False,
        ("rtx_3090", "fp16"): False,
        ("rtx_3090", "bf16"): False,
        ("rtx_3090", "fp16_simt"): True,
        ("rtx_4090", "fp8"): False,
        ("rtx_2080_ti", "fp16"): False,
        ("h200", "fp16_simt"): True,
        ("l4", "tf32"): False,
    }
    for (name, data_type), expected in on_lanes.items():
        assert machine_of(load_arch(name), data_type).on_lanes == expected, (name, data_type)


def test_a_warp_has_the_tensor_core_of_its_scheduler_alone() -> None:
    """64 x 64 x 32 at 512 a cycle are 256 cycles of four warps, 1,024 of one."""
    v100, fitted = machine_of(load_arch("v100"), "fp16"), calibration("fp16")
    for threads, turns in ((32, 4), (64, 2), (96, 4 / 3), (128, 1), (256, 1)):
        tile = Tile(64, 64, 32, threads, 80, 32, 32)
        short, long = (
            dict(launch_time(Product(64, 64, k, 1, 0, 0, 0, 2), tile, 1, v100, fitted).parts)[
                "compute"
            ]
            for k in (3200, 6400)
        )
        step = turns * 256 / fitted.pipe + fitted.barrier
        assert long - short == pytest.approx(100 * step / v100.clock_hz)


def test_packed_halves_take_half_the_time_where_lanes_are_busy() -> None:
    product, p100 = gemm(m=4096, n=4096, k=4096), load_arch("p100")
    whole = gemm_estimate(product, p100)
    half = gemm_estimate(product, p100, data_type="fp16")
    assert whole.kernel == half.kernel
    ratio = dict(half.parts)["compute"] / dict(whole.parts)["compute"]
    assert 0.5 < ratio < 0.7  # other instructions are as many
    assert half.time_bound_s == pytest.approx(whole.time_bound_s / 2)


def test_tiles_that_do_not_fit_are_not_taken() -> None:
    """9.6 KiB of shared memory hold 64x64x8 in fp32, twice 4 KiB, and nothing larger."""
    small = load_arch("v100").scaled("gpu.shared", 0.1)
    assert gemm_estimate(gemm(m=4096, n=4096, k=512), small).kernel == "64x64x8"
    with pytest.raises(InputError, match="does not fit: 10 KiB of shared memory"):
        conv_estimate(conv2d(**LAYER), small)
    # The fused Winograd's block does not fit, a block of 128 x 32 does.
    narrow = load_arch("v100").scaled("gpu.shared", 0.15)
    assert not conv_estimate(conv2d(**LAYER), narrow).kernel.startswith("winograd 2x2")
    with pytest.raises(InputError, match="does not fit"):
        conv_estimate(conv2d(**LAYER), narrow, algorithm="WINOGRAD")


def test_memory_gives_whole_sectors_of_a_strided_input() -> None:
    """Every second column is asked for: rows come whole, every second row."""
    layer = conv2d(n=64, c=64, k=64, h=64, w=64, r=1, s=1, stride=2)
    found = tiled_conv(layer, load_arch("v100"), tile=(128, 64, 8), stages=2, threads=128)
    assert found.dram_bytes_read >= 4 * 64 * 64 * 32 * 64


def test_a_library_must_have_kernels_for_the_data_type() -> None:
    product, v100 = gemm(m=64, n=64, k=64), load_arch("v100")
    with pytest.raises(ProblemError, match="no library 'tensor' for fp32 on SIMT lanes"):
        gemm_estimate(product, v100, library="tensor")
    with pytest.raises(ProblemError, match="no library 'half' for fp16 on tensor cores"):
        gemm_estimate(product, v100, data_type="fp16", library="half")
    for call in (gemm_estimate, tiled_gemm):
        with pytest.raises(ArchError, match="no rate for data type"):
            call(product, v100, data_type=["fp32"])  # type: ignore[arg-type]


def test_a_replay_reads_the_data_type_asked_for() -> None:
    """Everything fits into an H200's L2: each operand is read once, two bytes an element."""
    product, h200 = gemm(m=1024, n=512, k=2048), load_arch("h200")
    for data_type, width in (("fp16", 2), ("tf32", 4)):
        found = tiled_gemm(product, h200, data_type=data_type, replay=True)
        assert found.dram_bytes_read == width * (1024 + 512) * 2048
    with pytest.raises(ProblemError, match="split_k is 2; only whole sums are replayed"):
        tiled_gemm(product, h200, split_k=2, replay=True)


@given(
    st.floats(1e-9, 1e3),
    st.floats(1e-9, 1e3),
    st.floats(0.1, 3.0),
    st.floats(0.1, 3.0),
)
def test_an_estimate_lies_within_its_spread(
    time_s: float, bound_s: float, low: float, high: float
) -> None:
    """Rows of another GPU may all lie on one side; the estimate stays inside all the same."""
    said = estimate_of(time_s, bound_s, (("compute", time_s),), "", Spread(low, high, ""))
    assert bound_s == said.time_bound_s <= said.low_s <= said.time_s <= said.high_s
    assert said.time_s == max(time_s, bound_s)
    assert said.slack == pytest.approx(max(1, time_s / bound_s))


def test_a_copy_that_fits_into_l2_has_no_bound_and_no_finite_slack() -> None:
    kernel = preset("layer_unroll", batch=1)[0][0]
    said = estimate_kernel(kernel, load_arch("h200"))
    assert said.time_bound_s == 0 < said.time_s
    assert said.slack == math.inf
