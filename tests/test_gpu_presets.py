"""Kernels of the reports: what their authors printed, and what counters of an H200 say."""

from __future__ import annotations

import csv
import re
from functools import cache

import pytest

from loopsched import InputError, load_arch
from loopsched.base.resources import resource_dir
from loopsched.gpu.counting import Profile, profile
from loopsched.published.presets import (
    direct,
    filter_coarse,
    gemm_tiled,
    layer_base,
    preset,
    presets,
)
from loopsched.validation.kernels import kernel_of


@cache
def found(name: str, arch: str = "v100", **options: int | str) -> Profile:
    ((kernel, launches),) = preset(name, **options)
    assert launches == 1
    return profile(kernel, load_arch(arch))


# Report 001


def test_report_001_sectors_of_baseline_and_variant_1() -> None:
    baseline, variant = found("filter_rowmap"), found("filter_colmap")
    assert baseline.grid == (128, 128, 16)
    assert baseline.sectors_per_load_request == pytest.approx(9.58, abs=0.005)
    assert variant.sectors_per_load_request == pytest.approx(2.95, abs=0.005)
    assert baseline.load_sectors == pytest.approx(4_854_582_783, rel=1e-5)
    assert 100 * baseline.l1_hit == pytest.approx(99.32, abs=0.2)


def test_report_001_sectors_of_variant_2() -> None:
    assert found("filter_shared").load_sectors == pytest.approx(23_676_700, rel=1e-4)
    assert found("filter_shared", y=8).load_sectors == 32_811_328  # as an H200 counted it


def test_report_001_a_sliding_window_halves_the_loads_of_shared_memory() -> None:
    adjacent, apart = found("filter_coarse"), found("filter_coarse", outputs="apart")

    def image_loads(one: Profile) -> int:
        return sum(
            access.requests
            for access in one.accesses
            if (access.tensor, access.space, access.op) == ("input", "shared", "load")
        )

    # Two rows of 2 + 10 pixels for each of 11 rows of the filter; else 4 x 121.
    assert image_loads(adjacent) * (4 * 121) == image_loads(apart) * (11 * 2 * 12)
    assert adjacent.fma_thread_instructions == apart.fma_thread_instructions
    assert adjacent.fma_thread_instructions == 16 * 2048**2 * 121


# Report 002


@pytest.mark.parametrize(
    ("layer", "grid", "divergent", "warps", "load", "store", "warp"),
    [
        (1, (1000, 12, 25), 396_000, 2_400_000, 57.4, 68.6, 83.9),
        (2, (1000, 24, 4), 360_000, 768_000, 56.9, 65.9, 81.5),
    ],
)
def test_report_002_base_kernel(
    layer: int,
    grid: tuple[int, int, int],
    divergent: int,
    warps: int,
    load: float,
    store: float,
    warp: float,
) -> None:
    one = found("layer_base", layer=layer)
    assert one.grid == grid
    assert (one.divergent_warps, one.n_warps) == (divergent, warps)
    assert 100 * one.load_efficiency == pytest.approx(load, abs=0.1)
    assert 100 * one.store_efficiency == pytest.approx(store, abs=0.3)
    assert 100 * one.warp_efficiency == pytest.approx(warp, abs=2)
    assert one.flops == 2 * layer_base(layer).problem.macs


def test_report_002_occupancies_are_those_printed() -> None:
    assert found("layer_batched").occupancy.blocks == 3
    assert 100 * found("layer_batched").occupancy.share == pytest.approx(84.4, abs=0.05)
    assert found("layer_tuned").occupancy.share == 1
    assert found("layer_tuned").occupancy.blocks == 8
    assert found("layer_shared").occupancy.share == 0.75


def test_report_002_transactions_of_its_figure_3() -> None:
    """Optimization 4, layer 1, 100 images: what nvprof counted."""
    one = found("layer_batched", batch=100)
    assert one.store_sectors == 817_200
    assert one.l2_write_sectors == pytest.approx(817_216, rel=1e-4)
    assert one.load_sectors == pytest.approx(4_969_298, rel=0.002)
    assert one.total("wavefronts", "store", "shared") == pytest.approx(1_973_762, rel=0.005)
    assert one.total("wavefronts", "load", "shared") == pytest.approx(35_613_646, rel=0.01)


def test_report_002_several_launches() -> None:
    kernels = preset("layer_unroll", layer=2, batch=1000)
    assert [(kernel.name, launches) for kernel, launches in kernels] == [
        ("unroll", 1000),
        ("multiply", 1000),
    ]
    unroll, multiply = (profile(kernel, load_arch("v100")) for kernel, _ in kernels)
    assert unroll.flops == unroll.fma_thread_instructions == 0
    assert unroll.total("lanes", "store") == 12 * 49 * 27 * 27
    assert multiply.flops == 2 * 24 * 588 * 729
    # 32 x 32 threads over 24 x 729 outputs, sums in steps of 32.
    assert multiply.fma_thread_instructions == 32 * 736 * 608
    assert multiply.grid == (23, 1, 1)


def test_report_002_implicit_and_explicit_unrolling_compute_the_same() -> None:
    (kernel, launches), *_ = preset("layer_fused", layer=1, batch=10)
    one = profile(kernel, load_arch("v100"))
    assert launches * one.flops == found("layer_batched", layer=1, batch=10).flops
    assert launches * one.flops == found("layer_base", layer=1, batch=10).flops
    assert found("layer_restrict", layer=2, batch=10).total("requests", "load", "readonly") > 0


# Report 000 and matrices


def test_report_000_flops_are_its_formula() -> None:
    for size, taps, inputs, outputs, block in ((32, 3, 32, 32, 8), (16, 5, 4, 8, 32)):
        one = profile(direct(size, taps, inputs, outputs, block), load_arch("titan_v"))
        assert one.flops == 2 * size * size * taps * taps * inputs * outputs
        assert one.fma_thread_instructions * 2 == one.flops


def test_small_problems_keep_whole_blocks() -> None:
    one = direct(size=16, block=32)
    assert one.block == (32, 32, 1)
    tiled = profile(gemm_tiled(m=12, n=100, k=20, tile=24), load_arch("v100"))
    assert tiled.flops == 2 * 12 * 100 * 20
    assert tiled.grid == (5, 1, 1)
    assert tiled.fma_thread_instructions == 24 * 120 * 20
    assert tiled.total("lanes", "store") == 12 * 100


# Counters


def rows() -> list[dict[str, str]]:
    with (resource_dir("counters") / "h200_kernels.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows(), ids=lambda row: re.sub(r"\W+", "-", row["case"]))
def test_every_measured_kernel_is_counted_exactly(row: dict[str, str]) -> None:
    kernel = kernel_of(row["case"], int(float(row["registers"])))
    one = profile(kernel, load_arch("h200"))
    assert one.load_requests == float(row["global_load_requests"])
    assert one.load_sectors == float(row["global_load_sectors"])
    assert one.store_requests == float(row["global_store_requests"])
    assert one.store_sectors == float(row["global_store_sectors"])
    assert one.fma_thread_instructions == float(row["ffma_thread_insts"])
    assert one.n_blocks == float(row["grid_blocks"])
    assert round(100 * one.occupancy.share, 2) == float(row["theoretical_occupancy_pct"])
    # Models from here on.
    assert one.l2_read_sectors == pytest.approx(float(row["l2_read_sectors"]), rel=0.15)
    assert one.dram_read_bytes == pytest.approx(float(row["dram_read_bytes"]), rel=0.05)
    assert 32 * one.warp_efficiency == pytest.approx(float(row["threads_per_inst"]), rel=0.06)
    assert one.integer_ops == pytest.approx(float(row["integer_thread_insts"]), rel=0.22)


@pytest.mark.parametrize("tile", [16, 24, 32])
def test_passes_of_shared_memory_with_a_loaded_two_by_two(tile: int) -> None:
    (row,) = [one for one in rows() if one["case"].startswith(f"gemm_tile{tile} M=1024")]
    one = profile(gemm_tiled(tile=tile), load_arch("h200"))
    passes = one.total("wavefronts", "load", "shared") + one.total("wavefronts", "store", "shared")
    # The counter has two for each global store too.
    assert passes + 2 * one.store_requests == pytest.approx(
        float(row["shared_wavefronts"]), rel=0.02
    )


# Names


def test_every_preset_can_be_built_and_counted() -> None:
    for one in presets():
        for kernel, launches in preset(one.name):
            assert launches >= 1
            assert profile(kernel, load_arch("titan_v")).load_requests > 0
        assert one.title[0].isupper()
    assert filter_coarse(outputs="apart").name == "filter_coarse apart"


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("filter_row", {}, "did you mean 'filter_rowmap'"),
        ("direct", {"sise": 3}, "no option 'sise'; did you mean 'size'"),
        ("direct", {"size": 0}, "size is 0; at least 1"),
        ("direct", {"size": "a"}, "a whole number such as 32 is needed"),
        ("layer_base", {"layer": 3}, "layers 1 and 2"),
        ("layer_tuned", {"layer": 3}, "layers 1 and 2"),
        ("filter_coarse", {"outputs": "near"}, "adjacent apart"),
    ],
)
def test_what_is_wrong_with_a_preset_is_said(
    name: str, options: dict[str, int | str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        preset(name, **options)
