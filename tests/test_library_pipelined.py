"""Products of today's libraries: against measured rows, a literal walk, and what must hold."""

from __future__ import annotations

import itertools
import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import batched_gemm, gemm, gemm_estimate, library_estimate, load_arch
from loopsched.gpu.library.gemm import product_of
from loopsched.gpu.library.machine import machine_of
from loopsched.gpu.library.pipelined import pipelined, pipelined_spread, pipelined_time
from loopsched.machines.arch_file import arch_names
from loopsched.validation.time_files import read_times
from loopsched.validation.times import validate_times

ROOT = Path(__file__).parent.parent
FILE = json.loads(
    (ROOT / "loopsched/gpu/library/calibration_pipelined.json").read_text(encoding="utf-8")
)
GPUS = ("h100", "h200", "a100", "l40s", "b200", "rtx_3090")
SIZES = st.sampled_from([1, 2, 16, 17, 64, 100, 128, 300, 512, 1000, 2048, 4097, 16384])


@pytest.fixture(scope="module")
def rows() -> tuple[Mapping[str, Any], ...]:
    return validate_times("library_gemm_measured").rows


def off(rows: list[Mapping[str, Any]]) -> float:
    return 100 * math.fsum(abs(row["error"]) for row in rows) / len(rows)


def held_out(
    rows: tuple[Mapping[str, Any], ...], gpu: str, data_type: str
) -> list[Mapping[str, Any]]:
    return [
        row
        for row in rows
        if (row["gpu"], row["data_type"]) == (gpu, data_type)
        and zlib.crc32("x".join(map(str, sorted((row["n"], row["k"])))).encode()) % 2 == 0
    ]


@pytest.mark.parametrize(
    ("gpu", "data_type", "most", "most_of_small"),
    [("H100", "bf16", 12, 17), ("H100", "fp8", 20, 17), ("A100", "bf16", 15, 25)],
)
def test_families_that_were_held_out(
    rows: tuple[Mapping[str, Any], ...],
    gpu: str,
    data_type: str,
    most: float,
    most_of_small: float,
) -> None:
    mine = held_out(rows, gpu, data_type)
    said = FILE["errors"][f"{gpu.lower()} {data_type}"]
    assert len(mine) == said["held_out_rows"]
    assert off(mine) == pytest.approx(said["held_out_mape_percent"], abs=0.01)
    assert off(mine) <= most
    assert off([row for row in mine if row["m"] <= 20]) <= most_of_small
    within = [row["low_us"] <= row["time_us"] <= row["high_us"] for row in mine]
    assert sum(within) >= 0.75 * len(within)


def test_no_row_is_below_its_bound(rows: tuple[Mapping[str, Any], ...]) -> None:
    assert len(rows) == 1000
    assert all(row["bound_us"] <= row["time_us"] for row in rows)


def literal(m: int, n: int, k: int, name: str, data_type: str) -> float:
    """Work out the least time over all kernels, dealing tiles to SMs one by one."""
    arch = load_arch(name)
    machine, fit, gpu = machine_of(arch, data_type), pipelined(), arch.kernel_limits
    width = {"bf16": 2, "fp8": 1}[data_type]
    sides = [(64, 16), (64, 32), (64, 64), (128, 32), (128, 64), (128, 128), (256, 64), (256, 128)]
    if gpu.tensor_issue == "group":
        sides += [(64, 96), (64, 128), (64, 192), (128, 96), (128, 160), (128, 192)]
        sides += [(192, 192), (192, 256)]
    stream = machine.dram_bytes_per_s * gpu.dram_efficiency
    operands = {"a": m * k * width, "b": n * k * width, "c": m * n * 2}

    def lost(touched: int) -> float:
        return touched**4 / (touched**4 + machine.l2_bytes**4)

    once = lost(sum(operands.values()))
    moved = operands["b"] * lost(sum(operands.values()) + 4 * operands["b"])
    moved += operands["a"] * once + operands["c"]
    energy_s = fit.pj_mac * 1e-12 * m * n * k * width / 2 / gpu.power_w if gpu.power_w else 0.0

    def joined(*times: float) -> float:
        return max(times) * sum((one / max(times)) ** 8 for one in times) ** 0.125

    best = math.inf
    for rows, columns in {*sides, *((b, a) for a, b in sides)}:
        for split in (1, 2, 3, 4, 6, 8, 12, 16):
            queues = [0] * machine.sms
            corners = itertools.product(range(0, m, rows), range(0, n, columns), range(split))
            for at, _ in enumerate(corners):
                queues[at % machine.sms] += 1
            longest = max(queues)
            steps = math.ceil(math.ceil(k * width / 128) / split)
            tile = 128 * (rows + columns)
            fit_in = gpu.max_block_shared_bytes // tile
            resident = max(1, min(4, fit_in // 4))
            stages = max(2, min(8, fit_in // resident))
            beside = min(longest, resident)
            mma = rows * columns * 128 / width / machine.macs_per_cycle
            mma += 0 if gpu.tensor_issue == "group" else fit.by_warp
            seconds = joined(
                longest * steps * mma / machine.max_clock_hz,
                sum(queues) * steps * tile / machine.l2_bytes_per_s,
                moved / (stream * fit.dram),
                longest
                * steps
                * gpu.dram_latency
                / (min(stages - 1, steps) * beside)
                / machine.max_clock_hz,
            )
            begin = (gpu.dram_latency + fit.begin_cycles) * (1 + -(-longest // beside)) / 2
            end = fit.sum_cycles * rows * columns * (1 + longest) / 2
            seconds = joined(seconds + (begin + end) / machine.max_clock_hz, energy_s)
            if split > 1:
                seconds += gpu.launch_s + 8 * split * m * n / machine.l2_bytes_per_s
            best = min(best, seconds)
    if data_type == "fp8":
        best += fit.scale_launches * gpu.launch_s + fit.scale_bytes * m * k / stream
    return best + fit.launch * gpu.launch_s


@pytest.mark.parametrize(
    ("name", "data_type"),
    [("h100", "bf16"), ("h100", "fp8"), ("a100", "bf16"), ("b200", "bf16"), ("l40s", "bf16")],
)
@pytest.mark.parametrize(
    "shape", [(1, 32, 32), (8, 4096, 4096), (100, 700, 65536), (2048, 1030, 96), (3000, 2000, 5000)]
)
def test_a_literal_walk_agrees(shape: tuple[int, int, int], name: str, data_type: str) -> None:
    m, n, k = shape
    machine = machine_of(load_arch(name), data_type)
    product = product_of(gemm(m=m, n=n, k=k), data_type)
    found = pipelined_time(product, machine, pipelined(), scales=data_type == "fp8")
    assert found.time_s == pytest.approx(literal(m, n, k, name, data_type), rel=1e-9)


@given(SIZES, SIZES, SIZES, st.sampled_from("mnk"), st.sampled_from(GPUS))
def test_more_work_is_never_faster(m: int, n: int, k: int, dim: str, name: str) -> None:
    arch = load_arch(name)
    sizes = {"m": m, "n": n, "k": k}
    before = gemm_estimate(gemm(**sizes), arch, data_type="bf16")
    for more in (1, 63, sizes[dim]):
        after = gemm_estimate(gemm(**sizes | {dim: sizes[dim] + more}), arch, data_type="bf16")
        assert after.time_s >= before.time_s * (1 - 1e-9)
    assert before.time_bound_s <= before.low_s <= before.time_s <= before.high_s


@given(SIZES, SIZES, SIZES, st.sampled_from(["dram.bandwidth", "l2.bandwidth", "compute.clock"]))
def test_more_of_a_resource_is_never_slower(m: int, n: int, k: int, key: str) -> None:
    arch = load_arch("h100")
    problem = gemm(m=m, n=n, k=k)
    before = gemm_estimate(problem, arch, data_type="bf16").time_s
    after = gemm_estimate(problem, arch.scaled(key, 1.5), data_type="bf16").time_s
    assert after <= before * (1 + 1e-9)


def test_the_file_says_which_libraries_are_of_today() -> None:
    today = {name for name in arch_names() if load_arch(name).gpu is not None}
    today = {name for name in today if load_arch(name).kernel_limits.library == "ampere"}
    assert {"a100", "h100", "h200", "l40s", "b200", "l4", "rtx_3090"} <= today
    assert not today & {"v100", "titan_v", "titan_xp", "m40", "t4", "titan_rtx", "mi300x"}
    problem = gemm(m=64, n=4096, k=4096)
    found = gemm_estimate(problem, load_arch("h100"), data_type="bf16")
    old = gemm_estimate(problem, load_arch("h100"), data_type="bf16", library="tensor")
    assert "latency" in dict(found.parts)
    assert "latency" not in dict(old.parts)
    assert "latency" not in dict(gemm_estimate(problem, load_arch("h100")).parts)


def test_spreads_are_of_the_same_gpu_and_type_or_of_all() -> None:
    assert pipelined_spread("a100", "bf16").basis.startswith("A100 bf16")
    wide = pipelined_spread("h200", "bf16")
    for name in ("h100 bf16", "h100 fp8", "a100 bf16"):
        own = pipelined_spread(*name.split())
        assert wide.low <= own.low < 1 < own.high <= wide.high


def test_fp8_is_scaled_from_16_bits_and_gives_16() -> None:
    problem, h100 = gemm(m=4096, n=32, k=8192), load_arch("h100")
    assert product_of(problem, "fp8").c_bytes == 2 * 4096 * 32
    scaling = dict(gemm_estimate(problem, h100, data_type="fp8").parts)["scaling"]
    # Read twice and written once, 5 bytes an element, at most at the data sheet's rate.
    assert scaling > 5 * 4096 * 8192 / 3.35e12
    assert "scaling" not in dict(gemm_estimate(problem, h100, data_type="int8").parts)


def test_a_batch_is_its_products_side_by_side() -> None:
    h100 = load_arch("h100")
    one = library_estimate(gemm(m=2048, n=2048, k=2048), h100, data_type="bf16")
    many = library_estimate(batched_gemm(batch=8, m=2048, n=2048, k=2048), h100, data_type="bf16")
    assert 6 * one.time_s < many.time_s < 9 * one.time_s
    assert many.high_s / many.time_s > one.high_s / one.time_s


def test_columns_of_published_tables() -> None:
    row = {"gpu": "L40S", "data_type": "bf16", "m": 4, "n": 64, "k": 32, "time_us": 5.5}
    names = {"H100": "h100", "A100": "a100", "H200": "h200", "L40S": "l40s", "B200": "b200"}
    for gpu, arch in names.items():
        (found,) = read_times([row | {"gpu": gpu}])
        assert (found.arch, found.data_type, found.precision) == (arch, "bf16", "bf16")
        assert found.problem.macs == 4 * 64 * 32
    (found,) = read_times([row | {"data_type": "fp8"}])
    assert [tensor.element_bytes for tensor in found.problem.tensors] == [1, 1, 2]
