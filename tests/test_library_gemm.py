"""Times of library products: against measured rows, by hand, and properties that must hold."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import (
    ArchError,
    ProblemError,
    batched_gemm,
    conv2d,
    conv_estimate,
    einsum,
    gemm,
    library_estimate,
    load_arch,
)
from loopsched.gpu.calibrated import CONVOLUTIONS, PRODUCTS, calibration_file
from loopsched.gpu.library.calibration import (
    calibration,
    conv_calibration,
    conv_spread,
    own_spread,
    product_spread,
)
from loopsched.gpu.library.gemm import gemm_estimate, product_of
from loopsched.gpu.library.machine import machine_of
from loopsched.gpu.library.product import Product
from loopsched.gpu.library.tiles import LIBRARIES, SGEMM_TILES, Tile
from loopsched.gpu.library.wave import achieved, launch_time, resident_blocks, tiled_time
from loopsched.gpu.result import Estimate
from loopsched.machines.arch import Arch
from loopsched.problems.problem import Problem

ROOT = Path(__file__).parent.parent
FILE = json.loads((ROOT / "loopsched/gpu/library/calibration.json").read_text(encoding="utf-8"))
GPUS = {"V100": "v100", "TitanXp": "titan_xp", "M40": "m40"}
V100 = load_arch("v100")
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Row:
    gpu: str
    precision: str
    shape: Shape
    a_transposed: bool
    time_s: float

    @property
    def problem(self) -> Problem:
        m, n, k = self.shape
        return gemm(m=m, n=n, k=k)

    @property
    def element_bytes(self) -> int:
        return 4 if self.precision == "fp32" else 2

    def estimate(self) -> Estimate:
        data_type = "fp32" if self.precision == "fp32" else "fp16"
        arch = load_arch(GPUS[self.gpu])
        return gemm_estimate(
            self.problem, arch, data_type=data_type, a_transposed=self.a_transposed
        )


def read(name: str) -> list[dict[str, str]]:
    with (ROOT / "measurements" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


ROWS = [
    Row(
        line["gpu"],
        line["precision"],
        (int(line["m"]), int(line["n"]), int(line["k"])),
        line["a_t"] == "1",
        float(line["time_us"]) * 1e-6,
    )
    for line in read("deepbench_gemm_measured.csv")
]
TITAN_V = [line for line in read("titan_v_measured.csv") if line["kind"] == "gemm"]


def shapes(families: Iterable[str]) -> set[Shape]:
    found = set()
    for family in families:
        for word in family.split():
            m, n, k = (int(part) for part in word.split("x"))
            found.add((m, n, k))
    return found


def mape(rows: Iterable[Row]) -> float:
    return 100 * statistics.fmean(abs(row.estimate().time_s / row.time_s - 1) for row in rows)


def rows_of(gpu: str, precision: str = "fp32") -> list[Row]:
    return [row for row in ROWS if (row.gpu, row.precision) == (gpu, precision)]


def of_half(precision: str, half: str) -> list[Row]:
    section = FILE["data_types"]["fp32" if precision == "fp32" else "fp16"]
    chosen = shapes(section[half])
    return [row for row in rows_of("V100", precision) if row.shape in chosen]


# What the file says of its fit.


@pytest.mark.parametrize("precision", ["fp32", "fp16_mixed"])
def test_halves_are_of_families_that_do_not_meet(precision: str) -> None:
    section = FILE["data_types"]["fp32" if precision == "fp32" else "fp16"]
    fitted, held_out = shapes(section["fitted_families"]), shapes(section["held_out_families"])
    measured = {row.shape for row in rows_of("V100", precision)}
    assert fitted | held_out == measured
    for m, n, k in fitted:
        for other_m, other_n, other_k in held_out:
            assert m != other_m or (n != other_n and k != other_k)
    assert section["fitted_rows"] == len(of_half(precision, "fitted_families"))
    assert section["held_out_rows"] == len(of_half(precision, "held_out_families"))


def test_few_numbers_are_fitted() -> None:
    assert len(FILE["data_types"]["fp32"]["fitted"]) == 9
    assert FILE["data_types"]["fp16"]["fitted"] == ["pipe", "strided"]
    lanes, tensor = (FILE["data_types"][name]["parameters"] for name in ("fp32", "fp16"))
    assert {name for name in lanes if lanes[name] != tensor[name]} == {"pipe", "strided"}
    assert calibration("fp32") != calibration("fp16")


@pytest.mark.parametrize("precision", ["fp32", "fp16_mixed"])
def test_errors_of_the_file_are_those_of_the_model(precision: str) -> None:
    section = FILE["data_types"]["fp32" if precision == "fp32" else "fp16"]
    for half in ("fitted", "held_out"):
        said = section[f"{half}_mape_percent"]
        assert mape(of_half(precision, f"{half}_families")) == pytest.approx(said, abs=0.01)


# Goals of the project, on rows that were not fitted.


def test_products_of_a_v100_that_were_held_out_within_8_percent() -> None:
    assert mape(of_half("fp32", "held_out_families")) <= 8


@pytest.mark.parametrize("gpu", ["TitanXp", "M40"])
def test_gpus_never_fitted_within_25_percent(gpu: str) -> None:
    rows = rows_of(gpu)
    assert len(rows) == 160
    assert mape(rows) <= 25


def test_tensor_cores_that_were_held_out_within_30_percent() -> None:
    assert mape(of_half("fp16_mixed", "held_out_families")) <= 30


def test_products_of_report_003_within_30_percent() -> None:
    """None was fitted: a tile of 128 x 64, sums not split, the clock of report 000."""
    errors = []
    for line in TITAN_V:
        m, n, k = (int(float(line[name])) for name in ("gemm_n", "gemm_m", "gemm_k"))
        found = gemm_estimate(gemm(m=m, n=n, k=k), load_arch("titan_v"), data_type="fp16_as_fp32")
        measured_s = float(line["time_us"]) * 1e-6
        assert found.time_bound_s < measured_s
        errors.append(abs(found.time_s / measured_s - 1))
    assert len(errors) == 24
    assert 100 * statistics.fmean(errors) <= 30


def test_spreads_cover_eight_rows_of_ten() -> None:
    for rows in (of_half("fp32", "held_out_families"), rows_of("TitanXp") + rows_of("M40")):
        inside = 0
        for row in rows:
            found = row.estimate()
            inside += found.low_s <= row.time_s <= found.high_s
        assert 0.75 <= inside / len(rows) <= 0.9


def test_no_measured_row_beats_the_bound() -> None:
    for row in ROWS:
        found = row.estimate()
        assert found.time_bound_s < row.time_s
        m, n, k = row.shape
        arch = load_arch(GPUS[row.gpu])
        per_cycle = {"V100": 64 if row.element_bytes == 4 else 512}.get(row.gpu, 128)
        peak = per_cycle * arch.compute.units * arch.compute.max_clock_hz
        sheet = {"V100": 900e9, "TitanXp": 547.7e9, "M40": 288.4e9}[row.gpu]
        l2 = 6 * 2**20 if row.gpu == "V100" else 3 * 2**20
        cold = row.element_bytes * (m * k + k * n + m * n) - l2
        assert found.time_bound_s == pytest.approx(max(m * n * k / peak, cold / sheet))


# By hand.


def test_whole_waves_by_hand() -> None:
    """4096^3 in 128 x 128 x 8: 1,024 blocks, 160 at a time: six waves and 64 blocks."""
    p = calibration("fp32")
    product = Product(4096, 4096, 4096, 1, 2**26, 2**26, 2**26, 4)
    machine = machine_of(V100, "fp32")
    found = launch_time(product, SGEMM_TILES[0], 1, machine, p)
    # A step of a block is 128 * 128 * 8 multiply-adds on 64 lanes.
    full = 512 * 2 * 2048 / p.pipe + p.fill * 375
    last = 512 * (2048 / p.pipe + p.barrier) + p.fill * 375
    assert dict(found.parts)["compute"] == pytest.approx((6 * full + last) / 1312e6)
    # Each block loads 128 rows and 128 columns of 4,096 words; the output is read and written.
    l2_bytes = 1024 * 2 * 128 * 4096 * 4 + 2 * 2**26
    assert dict(found.parts)["L2"] == pytest.approx(l2_bytes / achieved(machine, p)[1])


def test_a_lone_warp_leaves_three_schedulers_idle() -> None:
    p = calibration("fp32")
    one_warp = Tile(32, 32, 8, 32, 128, 4, 8)
    four = Tile(32, 32, 8, 128, 128, 4, 8)
    machine = machine_of(V100, "fp32")
    product = Product(32, 32, 8000, 1, 0, 0, 0, 4)
    alone = launch_time(product, one_warp, 1, machine, p).parts[0][1]
    together = launch_time(product, four, 1, machine, p).parts[0][1]
    fill = p.fill * 375 / 1312e6
    # 256 multiply-adds a step and lane of 16; four warps share them.
    step = (32 * 32 * 8 / 16 / p.pipe + p.barrier) / 1312e6
    assert alone == pytest.approx(1000 * step + fill)
    assert together < alone


def test_maxwell_lanes_wait_for_their_issue_slots() -> None:
    """Four schedulers feed 128 lanes: every other instruction costs a multiply-add."""
    p = calibration("fp32")
    product = Product(4096, 4096, 4096, 1, 0, 0, 0, 4)
    times = {}
    for name, lanes in (("m40", 128), ("v100", 64)):
        arch = load_arch(name)
        found = launch_time(product, SGEMM_TILES[0], 1, machine_of(arch, "fp32"), p)
        least = 4096**3 / (lanes * arch.compute.units * arch.compute.clock_hz * p.pipe)
        times[name] = dict(found.parts)["compute"] / least
    # 512 multiply-adds, 32 loads of fragments, 4 copies, 8 others.
    assert times["m40"] == pytest.approx(556 / 512 * 43 / 42.67, rel=0.03)
    assert times["v100"] < times["m40"]


def test_resident_blocks_by_hand() -> None:
    v100 = machine_of(V100, "fp32")
    assert [resident_blocks(tile, 4, v100) for tile in SGEMM_TILES[:4]] == [2, 4, 4, 8]
    # 80 registers: 65,536 / (80 * 256) = 3 blocks of 256 threads.
    assert resident_blocks(Tile(64, 32, 32, 256, 80, 8, 4), 4, v100) == 3


def test_half_tiles_of_report_003_by_hand() -> None:
    """25,088 rows are 196 blocks of 128; 80 SMs take four, 320 at a time, so each runs 3."""
    found = gemm_estimate(
        gemm(m=25088, n=1, k=4096), load_arch("titan_v"), data_type="fp16_as_fp32"
    )
    cycles = 3 * 4096 * 128 * 64 / 64
    assert found.kernel == "128x64x8"
    assert dict(found.parts)["compute"] == pytest.approx(cycles / 1.2e9, rel=0.03)


# Properties.

SIZES = st.sampled_from([1, 16, 31, 64, 100, 128, 512, 1000, 2048, 4096, 7001])
TYPES = st.sampled_from(["fp32", "fp16"])


@given(SIZES, SIZES, SIZES, st.sampled_from(["v100", "titan_xp", "m40", "h200"]), TYPES)
def test_estimates_are_ordered_and_repeat(m: int, n: int, k: int, name: str, kind: str) -> None:
    arch = load_arch(name)
    problem = gemm(m=m, n=n, k=k)
    found = gemm_estimate(problem, arch, data_type=kind)
    assert found.time_bound_s <= found.low_s <= found.time_s <= found.high_s
    assert found == gemm_estimate(problem, arch, data_type=kind)
    assert found.time_s >= arch.kernel_limits.launch_s
    resources = {"compute", "L2", "DRAM", "split", "launch"}
    if (name, kind) == ("h200", "fp16"):
        resources.add("latency")
    assert {name for name, _ in found.parts} == resources


@given(
    SIZES,
    SIZES,
    SIZES,
    st.sampled_from(["dram.bandwidth", "l2.bandwidth", "compute.clock"]),
    st.sampled_from([1.1, 2.0, 8.0]),
)
def test_more_of_a_resource_is_never_slower(m: int, n: int, k: int, key: str, more: float) -> None:
    problem = gemm(m=m, n=n, k=k)
    before = gemm_estimate(problem, V100).time_s
    assert gemm_estimate(problem, V100.scaled(key, more)).time_s <= before * (1 + 1e-9)


@given(st.integers(1, 40), SIZES, st.sampled_from([512, 4096, 20000]))
def test_twice_the_rows_take_at_most_twice_as_long(rows: int, n: int, k: int) -> None:
    m = 128 * rows
    one, two = gemm(m=m, n=n, k=k), gemm(m=2 * m, n=n, k=k)
    # What was warm in L2 may come from DRAM, at its latency, once it is twice as much.
    both = gemm_estimate(two, V100).time_s
    assert both <= 2.2 * gemm_estimate(one, V100).time_s + 8 * (m * (k + n)) / 600e9


@given(st.integers(3, 20), st.integers(3, 20), st.integers(100, 4000))
def test_sums_are_not_split_where_blocks_fill_the_gpu(down: int, across: int, k: int) -> None:
    machine, p = machine_of(V100, "fp32"), calibration("fp32")
    # Whole waves of 160 blocks: there is nothing that a split could fill.
    product = Product(128 * 16 * down, 128 * 10 * across, k, 1, 0, 0, 2**20, 4)
    for tile in SGEMM_TILES[:2]:
        whole = launch_time(product, tile, 1, machine, p).time_s
        assert all(
            launch_time(product, tile, split, machine, p).time_s > whole for split in (2, 3, 8)
        )


def test_long_sums_are_split() -> None:
    found = gemm_estimate(gemm(m=512, n=8, k=500_000), V100)
    assert "split" in found.kernel
    whole = tiled_time(
        product_of(gemm(m=512, n=8, k=500_000), "fp32"),
        SGEMM_TILES,
        machine_of(V100, "fp32"),
        calibration("fp32"),
        splits=(1,),
    )
    assert whole.time_s > 4 * found.time_s


def test_a_transposed_a_streams_more_slowly() -> None:
    for row in rows_of("V100"):
        plain = gemm_estimate(row.problem, V100).time_s
        assert gemm_estimate(row.problem, V100, a_transposed=True).time_s >= plain
    m, n, k = 512, 8, 500_000
    ratio = (
        gemm_estimate(gemm(m=m, n=n, k=k), V100, a_transposed=True).time_s
        / gemm_estimate(gemm(m=m, n=n, k=k), V100).time_s
    )
    assert ratio == pytest.approx(1827 / 1294, rel=0.1)


def test_a_batch_is_its_products_side_by_side() -> None:
    one = gemm_estimate(gemm(m=2048, n=2048, k=2048), V100)
    many = gemm_estimate(batched_gemm(batch=8, m=2048, n=2048, k=2048), V100)
    assert many.time_bound_s == pytest.approx(8 * one.time_bound_s)
    assert 7 * one.time_s < many.time_s <= 8.2 * one.time_s


def test_operands_are_as_wide_as_their_type() -> None:
    problem = gemm(m=64, n=32, k=16)
    assert product_of(problem, "fp16").a_bytes == 64 * 16 * 2
    assert product_of(problem, "int8").b_bytes == 16 * 32
    assert product_of(problem, "int8").c_bytes == 64 * 32 * 4


def test_what_never_was_measured_has_a_wider_spread() -> None:
    problem = gemm(m=4096, n=4096, k=4096)
    known = gemm_estimate(problem, V100)
    other = gemm_estimate(problem, load_arch("h200"))
    strange = gemm_estimate(problem, V100, data_type="int8")
    widths = [found.high_s / found.low_s for found in (known, other, strange)]
    assert widths == sorted(widths)
    assert "wider than any measured one" in strange.basis
    assert "fitted to neither" in other.basis


def test_scaled_architectures_keep_their_library() -> None:
    m40 = load_arch("m40").scaled("dram.bandwidth", 2)
    assert gemm_estimate(gemm(m=512, n=16, k=512), m40).kernel == "128x128x8"


# What cannot be.


def arch_without_gpu() -> Arch:
    return load_arch("diannao")


def test_faults_are_named() -> None:
    problem = gemm(m=64, n=64, k=64)
    with pytest.raises(ArchError, match="no 'gpu' part"):
        gemm_estimate(problem, arch_without_gpu(), data_type="int16")
    with pytest.raises(ArchError, match=r"no rate for data type 'tf32'.*fp32"):
        gemm_estimate(problem, V100, data_type="tf32")
    with pytest.raises(ProblemError, match=r"no library 'volt' for fp32 .*; did you mean 'volta'"):
        gemm_estimate(problem, V100, library="volt")
    with pytest.raises(ProblemError, match="gemm or batched_gemm is needed, not conv2d"):
        gemm_estimate(conv2d(c=4, k=4, h=8, w=8, r=3, s=3), V100)


def test_every_library_has_kernels() -> None:
    for library in LIBRARIES.values():
        assert library.tiles
        assert library.splits[0] == 1


def test_library_estimate_is_that_of_the_operation() -> None:
    v100 = load_arch("v100")
    layer = conv2d(n=8, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)
    assert library_estimate(layer, v100) == conv_estimate(layer, v100)
    stored = gemm(m=1760, n=64, k=1760, transpose_a=True)
    assert library_estimate(stored, v100) == gemm_estimate(stored, v100, a_transposed=True)
    plain = library_estimate(stored, v100, a_transposed=False)
    assert plain == gemm_estimate(stored, v100) != library_estimate(stored, v100)
    with pytest.raises(ProblemError, match="algorithms are for convolutions only"):
        library_estimate(stored, v100, algorithm="FFT")
    with pytest.raises(ProblemError, match="not for einsum over i k l j"):
        library_estimate(einsum("ijk,jl->ikl", {"i": 2, "j": 2, "k": 2, "l": 2}), v100)


def test_numbers_come_from_where_they_were_fitted() -> None:
    for kind, file in ((calibration, PRODUCTS), (conv_calibration, CONVOLUTIONS)):
        known = calibration_file(file)["data_types"]
        for data_type in ("fp32", "fp16"):
            assert kind(data_type).pipe == known[data_type]["parameters"]["pipe"]
    spreads = calibration_file(PRODUCTS)["spreads"]
    assert product_spread("v100", "fp16").basis == spreads["v100 fp16"]["basis"]
    assert product_spread("k80", "fp32").basis == spreads["another gpu"]["basis"]
    assert product_spread("k80", "fp16").basis == spreads["other"]["basis"]
    assert own_spread("h200", "tf32").basis == spreads["h200 own tf32"]["basis"]
    assert own_spread("v100", "fp32").basis == spreads["own"]["basis"]
    spreads = calibration_file(CONVOLUTIONS)["spreads"]
    for word, is_known in (("known", True), ("any", False)):
        found = conv_spread("v100", "fp32", "forward", is_known=is_known)
        assert found.basis == spreads[f"v100 fp32 forward {word}"]["basis"]
