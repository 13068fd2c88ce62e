"""Times of mapped kernels: what must hold for any, and how far off they are."""

from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched import gemm, load_arch
from loopsched.base.errors import ArchError, InputError
from loopsched.gpu.counting import profile
from loopsched.gpu.estimate import estimate_kernel, estimate_steps, kernel_bound
from loopsched.gpu.instructions import executions, instructions
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.kernel_calibration import kernel_calibration
from loopsched.machines.arch import Arch
from loopsched.published.presets import (
    direct,
    filter_coarse,
    filter_colmap,
    filter_rowmap,
    filter_shared,
    layer_base,
    preset,
)

H200, TITAN_V, L4 = load_arch("h200"), load_arch("titan_v"), load_arch("l4")
SMALL = {"images": 2, "size": 256, "radius": 2}
KERNELS = (
    direct(16, 3, 4, 8, 8),
    filter_rowmap(**SMALL),
    filter_colmap(**SMALL),
    filter_shared(**SMALL),
    filter_coarse(**SMALL),
    layer_base(1, 20),
)


def tiled(m: int, n: int, k: int, tile: int, *, is_unrolled: bool) -> Kernel:
    return Kernel.of(
        gemm(m=m, n=n, k=k),
        f"M:{m}@block_y N:{n}@block_x K:{k} M:{tile}@thread_y N:{tile}@thread_x K:{tile}",
        reads={"A": "shared@K", "B": "shared@K"},
        guard="load",
        is_unrolled=is_unrolled,
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: str(one.name))
@pytest.mark.parametrize("arch", [H200, TITAN_V, L4], ids=lambda one: str(one.name))
def test_above_the_bound_and_within_its_spread(kernel: Kernel, arch: Arch) -> None:
    said = estimate_kernel(kernel, arch)
    assert said.time_bound_s == kernel_bound(kernel, arch, profile(kernel, arch)) < said.time_s
    assert said.time_bound_s <= said.low_s < said.time_s < said.high_s
    parts = dict(said.parts)
    assert said.bound_by == max(parts, key=lambda name: parts[name])
    assert max(parts.values()) <= said.time_s * (1 + 1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: str(one.name))
def test_cold_caches_and_slower_parts_never_help(kernel: Kernel) -> None:
    warm = estimate_kernel(kernel, TITAN_V, caches="warm").time_s
    cold = estimate_kernel(kernel, TITAN_V, caches="cold").time_s
    assert warm <= cold
    slower = (
        ("gpu.l2_latency", 2.0),
        ("gpu.l1_latency", 2.0),
        ("gpu.dram_latency", 2.0),
        ("gpu.fma_latency", 2.0),
        ("gpu.launch", 2.0),
        ("gpu.l1_bandwidth", 0.5),
        ("gpu.shared_bandwidth", 0.5),
        ("gpu.int_lanes", 0.5),
        ("DRAM.bandwidth", 0.5),
        ("compute.clock", 0.5),
        ("compute.macs", 0.5),
    )
    for key, factor in slower:
        found = estimate_kernel(kernel, TITAN_V.scaled(key, factor)).time_s
        assert found >= cold * (1 - 1e-12), key


def test_half_the_clock_doubles_what_happens_on_the_sms() -> None:
    kernel = tiled(512, 512, 512, 16, is_unrolled=True)
    fast = estimate_kernel(kernel, H200, caches="warm", clock_hz=2e9)
    slow = estimate_kernel(kernel, H200, caches="warm", clock_hz=1e9)
    for name in ("issue", "L1", "multiply-add", "integer", "latency"):
        assert dict(slow.parts)[name] == pytest.approx(2 * dict(fast.parts)[name])
    assert dict(slow.parts)["launch"] == dict(fast.parts)["launch"]


def test_whole_waves_count() -> None:
    """One block beyond a wave costs a wave, though of one block an SM."""
    held = profile(tiled(32, 32, 256, 32, is_unrolled=True), H200).occupancy.blocks
    full = held * H200.compute.units
    times = [
        estimate_kernel(tiled(32, 32 * blocks, 256, 32, is_unrolled=True), H200, caches="warm")
        for blocks in (full - 1, full, full + 1)
    ]
    latency = [dict(one.parts)["latency"] for one in times]
    assert latency[0] == pytest.approx(latency[1])
    assert latency[2] == pytest.approx(2 * latency[1])


def test_one_thread_waits_as_long_as_by_hand() -> None:
    """A block of one warp: each of 4 trips loads a tile, waits, and sums 32 products."""
    kernel = tiled(4, 8, 128, 4, is_unrolled=True)
    kernel = Kernel.of(
        gemm(m=4, n=8, k=128),
        "M:4@block_y N:8@block_x K:128 M:4@thread_y N:8@thread_x K:32",
        reads={"A": "shared@K", "B": "shared@K"},
        guard="load",
    )
    found = profile(kernel, TITAN_V)
    gpu = TITAN_V.kernel_limits
    rounds = max(one.rounds for one in found.accesses if one.stage == "fill")
    assert (found.n_blocks, rounds, found.syncs) == (1, 8, 8)
    by_hand = 4 * 8 * gpu.l2_latency  # rounds of filling the larger tile, from L2
    by_hand += 8 * 15  # barriers of one warp
    by_hand += 128 * (gpu.fma_latency + gpu.shared_latency / 4)
    said = dict(estimate_kernel(kernel, TITAN_V, caches="warm").parts)["latency"]
    assert said * TITAN_V.compute.clock_hz == pytest.approx(by_hand, rel=0.05)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 6),
    st.sampled_from([4, 8, 16]),
    st.booleans(),
)
def test_instructions_add_up(m: int, n: int, k: int, tile: int, is_unrolled: bool) -> None:
    kernel = tiled(m * tile, n * tile, k * tile, tile, is_unrolled=is_unrolled)
    found = profile(kernel, H200)
    multiply_adds = found.fma_warp_instructions
    work = instructions(kernel, found.accesses, multiply_adds, 32)
    assert work.multiply_adds == found.fma_warp_instructions
    assert work.memory == sum(one.requests for one in found.accesses)
    assert work.total > work.multiply_adds + work.memory
    often = executions(kernel, found.accesses, multiply_adds, 32)
    warps = found.n_blocks * math.ceil(tile**2 / 32)
    assert often.start == warps
    # Tiles are filled by every warp, once for A and once for B, each trip along K.
    assert often.fill == 2 * k * warps
    assert (often.unrolled_start, often.row) == ((k * warps, 0) if is_unrolled else (0, k * warps))
    # Both operands are loaded from shared memory for each multiply-add.
    assert often.load == (0 if is_unrolled else 2 * multiply_adds)
    assert (often.test, often.digits, often.unrolled_load) == (0, 0, 0)


def test_views_cost_divisions() -> None:
    (batched, _), *_ = preset("layer_batched", batch=2)
    found = profile(batched, H200)
    often = executions(batched, found.accesses, found.fma_warp_instructions, 32)
    assert 0 < often.digits < often.fill


def test_steps_add_up() -> None:
    steps = preset("layer_unroll", batch=50)
    said = estimate_steps(steps, TITAN_V)
    alone = [estimate_kernel(kernel, TITAN_V, caches="warm").time_s for kernel, _ in steps]
    assert said.time_s == pytest.approx(50 * sum(alone))
    assert said.kernel == "50 x unroll, 50 x multiply"
    once = estimate_steps(preset("layer_base", batch=50), TITAN_V)
    assert once == replace(estimate_kernel(preset("layer_base", batch=50)[0][0], TITAN_V))


def outer_product(m: int, n: int) -> Kernel:
    """Blocks of 4 warps: each loads a number of A and a line of B, and stores a line of C."""
    return Kernel.of(
        gemm(m=m, n=n, k=1),
        f"M:{m}@block_y N:{n}@block_x M:4@thread_y N:32@thread_x K:1",
    )


def test_only_the_first_wave_is_cold() -> None:
    """What a kernel waits for more with empty caches is the same however long it runs."""
    extra = []
    for many in (1, 2, 5):
        full = outer_product(4 * H200.compute.units, 32 * 16 * many)
        cold, warm = (
            dict(estimate_kernel(full, H200, caches=caches).parts)["latency"]
            for caches in ("cold", "warm")  # type: ignore[arg-type]
        )
        extra.append(cold - warm)
    assert extra[0] > 0
    assert extra == pytest.approx([extra[0]] * 3)


def test_what_l1_l2_and_dram_move_by_hand() -> None:
    """Of each warp 1 + 4 sectors in and 4 out; C, 66 MiB, does not fit into L2."""
    m, n = 32 * H200.compute.units, 4096
    kernel = outer_product(m, n)
    found = profile(kernel, H200)
    parts = dict(estimate_kernel(kernel, H200, caches="warm").parts)
    warps = m * n / 32
    cycles = warps * 9 * 32 / 128 / H200.compute.units
    assert parts["L1"] == pytest.approx(cycles / H200.compute.clock_hz)
    moved = 32 * (found.l2_read_sectors + found.l2_write_sectors)
    assert found.l2_write_sectors == 4 * warps
    assert parts["L2"] == pytest.approx(moved / 9.55e12)
    assert parts["DRAM"] >= 4 * m * n / 4.8e12
    small = estimate_kernel(outer_product(m, 256), H200, caches="warm")
    assert dict(small.parts)["DRAM"] == 0


def test_steps_run_at_least_once() -> None:
    kernel = layer_base(1, 20)
    for many in (0, -1, 1.5):
        with pytest.raises(InputError, match=rf"runs of '{kernel.name}' is {many};"):
            estimate_steps([(kernel, many)], TITAN_V)  # type: ignore[list-item]
    for clock in (0, math.nan, math.inf, "2e9", True):
        with pytest.raises(InputError, match="a number above zero"):
            estimate_kernel(kernel, TITAN_V, clock_hz=clock)  # type: ignore[arg-type]


def test_padding_that_is_skipped_is_not_in_the_bound() -> None:
    """A 5 x 5 filter over 8 x 8 pixels: (3 + 4 + 5 * 4 + 4 + 3)^2 of the 40^2 products exist."""
    kernel = filter_rowmap(images=4096, size=8, radius=2, x=8, y=8)
    inside = 4096 * 34**2
    peak = H200.compute.peak_macs_per_s("fp32")
    assert kernel_bound(kernel, H200, profile(kernel, H200)) == pytest.approx(inside / peak)


def test_constants_that_overflow_their_cache_are_waited_for() -> None:
    """Report 002's optimization 2: 24 rows of 588 weights, one far load after another."""
    kernel = preset("layer_constant", layer=2, batch=1)[1][0]
    gpu = TITAN_V.kernel_limits
    said = dict(estimate_kernel(kernel, TITAN_V).parts)["latency"] * TITAN_V.compute.clock_hz
    assert said > 588 * gpu.constant_far_latency
    small = replace(gpu, constant_cache_bytes=65536)
    near = dict(estimate_kernel(kernel, replace(TITAN_V, gpu=small)).parts)["latency"]
    assert near * TITAN_V.compute.clock_hz < said / 2


# How far off -------------------------------------------------------------------------


def test_calibration_says_on_what_it_was_fitted() -> None:
    found = kernel_calibration()
    assert "52 kernels on an H200" in found.spread.basis
    assert 0.7 < found.time.issue <= 1


def kernels_of_the_fit() -> ModuleType:
    """Import benchmarks/fit_kernels.py, which builds the measured kernels."""
    path = Path(__file__).parent.parent / "benchmarks" / "fit_kernels.py"
    spec = importlib.util.spec_from_file_location("fit_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_measured_kernels() -> None:
    """Counts are the counters', and times as near as the calibration claims."""
    fit = kernels_of_the_fit()
    rows = list(fit.measured(H200))
    assert len(rows) == 52
    for one in rows:
        assert one.found.load_requests == one.number("global_load_requests"), one.case
        assert one.found.load_sectors == one.number("global_load_sectors"), one.case
        assert one.found.store_requests == one.number("global_store_requests"), one.case
        assert one.found.store_sectors == one.number("global_store_sectors"), one.case
        assert one.found.fma_thread_instructions == one.number("ffma_thread_insts"), one.case
        total = instructions(one.kernel, one.found.accesses, one.multiply_adds, 32).total
        assert total == pytest.approx(one.number("warp_insts"), rel=0.17), one.case
    errors = [abs(math.expm1(error)) for error in fit.time_errors(rows, H200)]
    assert sum(errors) / len(errors) < 0.085
    assert max(errors) < 0.31


def test_eight_of_ten_measurements_lie_within_the_spread() -> None:
    """Reports 000 to 002 and the counters' kernels: 23, 4, 16 and 23 times."""
    ratios = kernels_of_the_fit().other_ratios(kernel_calibration())
    assert len(ratios) == 66
    spread = kernel_calibration().spread
    inside = sum(spread.low <= ratio <= spread.high for ratio in ratios)
    assert 0.75 * 66 <= inside <= 0.85 * 66
    assert "66 other measurements" in spread.basis


def test_report_001_on_an_l4() -> None:
    """Four kernel times in milliseconds; nothing was fitted to them."""
    measured = (37.59, 8.82, 4.93, 2.10)
    kernels = (filter_rowmap(), filter_colmap(), filter_shared(), filter_coarse())
    said = [1e3 * estimate_kernel(kernel, L4).time_s for kernel in kernels]
    assert said == sorted(said, reverse=True)
    for mine, theirs in zip(said, measured, strict=True):
        ratio = (said[0] / mine) / (measured[0] / theirs)
        assert 1 / 1.35 < ratio < 1.35, (said, measured)


def test_bad_input() -> None:
    kernel = KERNELS[0]
    with pytest.raises(InputError, match=r"caches 'hot': unknown; .*cold warm"):
        estimate_kernel(kernel, H200, caches="hot")  # type: ignore[arg-type]
    with pytest.raises(ArchError, match="no 'gpu' part"):
        estimate_kernel(kernel, load_arch("diannao"))
    with pytest.raises(InputError, match="clock"):
        estimate_kernel(kernel, H200, clock_hz=-1.0)
    assert math.isfinite(estimate_kernel(kernel, H200).time_s)
