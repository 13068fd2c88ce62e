"""Predictions beside measured counters: the shipped figures, and each part of them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import InputError, conv2d, gemm, load_arch
from loopsched.base.csv_text import parsed
from loopsched.base.resources import resource_dir, resource_names
from loopsched.base.statistics import percentile, rank_correlation
from loopsched.gpu.addresses import Geometry
from loopsched.gpu.counting import profile
from loopsched.gpu.footprints import footprint_sectors
from loopsched.network.selection import problem_of
from loopsched.validation import Validation, read_counters, validate_counters
from loopsched.validation.counter_files import counters_in
from loopsched.validation.kernels import kernel_launch, kernel_of
from loopsched.validation.launches import launch_of

COUNTERS = resource_dir("counters")
CAPACITY_SHAPE = "32768"  # the third of the rows that the effective capacity was fitted to


def shipped(name: str) -> list[dict[str, Any]]:
    with (COUNTERS / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def errors(found: Validation, name: str) -> Mapping[str, float]:
    summary = found.summary[name]
    assert isinstance(summary, Mapping)
    return summary


@pytest.fixture(scope="module")
def tiled() -> Validation:
    return validate_counters("h200_tiled_gemm")


@pytest.fixture(scope="module")
def kernels() -> Validation:
    return validate_counters("h200_kernels", "h200")


# The shipped files


def test_tiled_products_are_predicted(tiled: Validation) -> None:
    for name, median, p90 in (
        ("dram_bytes", 0.03, 0.2),
        ("dram_read_bytes", 0.03, 0.2),
        ("l2_read_sectors", 0.05, 0.15),
    ):
        found = errors(tiled, name)
        assert found["rows"] == 45
        assert found["median_error"] <= median
        assert found["p90_error"] <= p90
        assert found["rank_correlation"] >= 0.98
    assert errors(tiled, "dram_write_bytes")["p90_error"] <= 0.1
    assert {row["predicted_by"] for row in tiled.rows} == {"simulator"}


def test_the_capacity_was_fitted_to_one_third_and_holds_for_the_rest(tiled: Validation) -> None:
    def mean_error(found: Validation, is_fitted: bool) -> float:
        rows = [row for row in found.rows if (str(row["M"]) == CAPACITY_SHAPE) == is_fitted]
        assert len(rows) == (15 if is_fitted else 30)
        return sum(abs(float(str(row["error_dram_read_bytes"]))) for row in rows) / len(rows)

    assert mean_error(tiled, True) == pytest.approx(0.048, abs=0.003)
    assert mean_error(tiled, False) == pytest.approx(0.035, abs=0.003)


def test_products_of_other_sizes_are_predicted() -> None:
    """Nothing was fitted to these rows; every fifth, for time."""
    found = validate_counters(shipped("h200_tiled_gemm_more")[::5])
    reads, sectors = errors(found, "dram_read_bytes"), errors(found, "l2_read_sectors")
    assert reads["rows"] == 34
    assert reads["median_error"] <= 0.03
    assert reads["p90_error"] <= 0.2
    assert min(reads["rank_correlation"], sectors["rank_correlation"]) >= 0.98
    assert sectors["median_error"] <= 0.05
    assert sectors["p90_error"] <= 0.17  # every row: 15.5 %
    assert found.summary["bound_violations"] == 0


def test_products_measured_afterwards_are_predicted() -> None:
    found = validate_counters(shipped("h200_tiled_gemm_held_out")[::6])
    reads = errors(found, "dram_read_bytes")
    assert reads["rows"] == 20
    assert reads["median_error"] <= 0.03
    assert reads["p90_error"] <= 0.25  # every row: 21.5 %
    assert reads["rank_correlation"] >= 0.98
    assert found.summary["bound_violations"] == 0


def test_dram_bytes_of_tiles_drawn_at_random_are_predicted() -> None:
    """160 launches of ten shapes, measured last; every fifth, for time."""
    found = validate_counters(shipped("h200_tiled_gemm_fresh")[::5])
    moved, reads = errors(found, "dram_bytes"), errors(found, "dram_read_bytes")
    assert moved["rows"] == reads["rows"] == 32
    assert moved["median_error"] <= 0.03
    assert moved["p90_error"] <= 0.15  # every row: 9.5 %
    assert reads["p90_error"] <= 0.25  # every row: 16.3 %
    assert found.summary["bound_violations"] == 0


def test_multiprocessors_receive_the_sectors_that_are_predicted() -> None:
    """Between L2 and the multiprocessors requests are merged; behind it nothing is lost."""
    rows = read_counters(shipped("h200_tiled_gemm_more"))
    for row in rows:
        predicted = launch_of(row, "SM").l2_sectors
        assert predicted == pytest.approx(row.measured("sm_read_sectors"), rel=0.006)


def test_kernels_are_predicted(kernels: Validation) -> None:
    reads, sectors = errors(kernels, "dram_read_bytes"), errors(kernels, "l2_read_sectors")
    assert reads["rows"] == sectors["rows"] == 23
    assert reads["median_error"] <= 0.001
    assert reads["max_error"] <= 0.05
    assert sectors["rank_correlation"] >= 0.98
    assert sectors["median_error"] <= 0.025
    assert sectors["max_error"] <= 0.15
    for row in kernels.rows:
        if str(row["case"]).startswith("filt"):
            assert abs(float(str(row["error_l2_read_sectors"]))) <= 0.04


def test_sectors_that_tiled_kernels_ask_for_are_exact() -> None:
    tiled = [row for row in shipped("h200_kernels") if row["case"].startswith("gemm_tile")]
    assert tiled
    for row in tiled:
        found = profile(kernel_of(row["case"]), load_arch("h200"))
        blocks = sum(one.block_sectors for one in found.traffic.tensors[:-1])
        assert blocks == float(row["global_load_sectors"])


def test_no_measurement_is_below_what_must_move(tiled: Validation, kernels: Validation) -> None:
    assert tiled.summary["bound_violations"] == kernels.summary["bound_violations"] == 0
    nominal = load_arch("h200").level("L2").capacity_bytes
    assert nominal is not None
    for row in shipped("h200_tiled_gemm"):
        m, n, k = (int(row[dim]) for dim in "MNK")
        assert float(row["dram_read_bytes"]) > 4 * (m * k + k * n)
        assert float(row["dram_write_bytes"]) > max(0, 4 * m * n - nominal)
    bounds = [(row["bound_dram_read_bytes"], row["bound_dram_write_bytes"]) for row in kernels.rows]
    image = 4 * 16 * 2048 * 2048
    assert bounds[0] == (image + 4 * 9, image - nominal)
    assert bounds[10] == (4 * (32 * 34 * 34 + 32 * 32 * 9), 0)
    assert bounds[-1] == (4 * 1000 * (2000 + 3000), 0)


def test_rows_keep_the_columns_of_the_file(tiled: Validation) -> None:
    for before, after in zip(shipped("h200_tiled_gemm"), tiled.rows, strict=True):
        assert list(after)[: len(before)] == list(before)
        assert all(float(value) == after[name] for name, value in before.items())


def test_what_is_shipped_has_its_origin_described() -> None:
    text = (COUNTERS / "README.md").read_text(encoding="utf-8")
    assert set(resource_names("counters", ".csv")) >= {"h200_tiled_gemm", "h200_kernels"}
    for name in resource_names("counters", ".csv"):
        assert f"{name}.csv" in text


# Single rows

ROW = {"M": 512, "N": 512, "K": 512, "tile_m": 64, "tile_n": 64, "tile_k": 32, "group_m": 8}


def test_measurements_may_be_missing() -> None:
    measured = {"dram_read_bytes": "", "dram_write_bytes": 2**20, "l2_read_sectors": None}
    found = validate_counters([ROW | measured])
    (row,) = found.rows
    assert row["predicted_dram_read_bytes"] == 2 * 4 * 512 * 512
    assert row["predicted_l2_read_sectors"] == 8 * 8 * 2 * 64 * 512 * 4 // 32
    assert row["error_dram_read_bytes"] is row["dram_read_bytes"] is None
    assert errors(found, "dram_read_bytes")["rows"] == 0
    assert errors(found, "dram_read_bytes")["rank_correlation"] is None
    assert [errors(found, f"dram_{name}")["rows"] for name in ("write_bytes", "bytes")] == [1, 0]


def test_what_was_not_measured_is_not_zero() -> None:
    (row,) = read_counters([ROW | {"dram_read_bytes": None, "l2_read_sectors": 0}])
    assert (row.measured("dram_read_bytes"), row.measured("l2_read_sectors")) == (None, 0.0)


def test_what_is_below_the_bounds_is_counted() -> None:
    wide = ROW | {"M": 8192, "N": 8192, "K": 32}
    low = wide | {"dram_read_bytes": 2 * 4 * 8192 * 32 - 1, "dram_write_bytes": 2**28 - 60 * 2**20}
    high = wide | {"dram_read_bytes": 2 * 4 * 8192 * 32, "dram_write_bytes": 0}
    found = validate_counters([low, high])
    assert found.summary["bound_violations"] == 2


def test_the_model_alone_predicts_tiled_products() -> None:
    found = validate_counters("h200_tiled_gemm", method="evaluate")
    for name in ("dram_bytes", "dram_read_bytes"):
        assert errors(found, name)["rows"] == 45
        assert errors(found, name)["median_error"] <= 0.1
        assert errors(found, name)["p90_error"] <= 0.3
        assert errors(found, name)["rank_correlation"] >= 0.98


def test_a_schedule_as_text_is_the_same_as_its_tiles() -> None:
    text = "M:512@SM N:512@SM M:512@SM K:512 M:64 N:64 K:32"
    written = {"problem": "gemm:m=512,n=512,k=512", "schedule": text}
    (one,) = validate_counters([ROW]).rows
    (other,) = validate_counters([written]).rows
    assert one["schedule"] == text
    for name in ("dram_read_bytes", "dram_write_bytes", "l2_read_sectors"):
        assert one[f"predicted_{name}"] == other[f"predicted_{name}"]


def test_windows_are_left_to_the_model() -> None:
    conv = '{"op": "conv2d", "c": 8, "k": 16, "h": 34, "w": 34, "r": 3, "s": 3}'
    row = {"problem": conv, "schedule": "K:16@SM P:32@SM Q:32 C:8 R:3 S:3 K:8 P:4"}
    (found,) = validate_counters([row]).rows
    assert found["predicted_by"] == "evaluate"
    assert found["predicted_dram_read_bytes"] == 4 * (8 * 34 * 34 + 16 * 8 * 9)


@pytest.mark.parametrize(
    "change",
    [{"M": 1}, {"N": 7}, {"K": 3}, {"tile_m": 1024}, {"tile_k": 700}, {"group_m": 2**31 - 1}],
)
def test_every_size_can_be_predicted(change: Mapping[str, int]) -> None:
    sizes = ROW | change
    (row,) = validate_counters([sizes]).rows
    m, n, k = (sizes[dim] for dim in "MNK")
    assert row["predicted_dram_read_bytes"] == 4 * (m * k + k * n)


def test_blocks_abreast_follow_the_launch() -> None:
    def abreast(**change: int) -> int:
        row = ROW | {"N": 7000, "tile_m": 128, "tile_n": 128, "block_threads": 256} | change
        return launch_of(*read_counters([row]), "SM").abreast

    assert abreast(N=7008) == 1  # 16 divides N: the oldest block goes first
    assert abreast() == 2  # 97 of 228 KiB of shared memory
    assert abreast(registers=128) == 2
    assert abreast(registers=129) == 1
    assert abreast(tile_m=64, tile_n=64, block_threads=128) == 4
    assert abreast(tile_m=32) == 1


def test_problems_are_read_from_one_cell() -> None:
    assert problem_of("gemm:m=4,n=3,k=2") == problem_of('{"op": "gemm", "m": 4, "n": 3, "k": 2}')
    assert problem_of("gemm: m = 4, n=3 ,k=2").sizes == gemm(m=4, n=3, k=2).sizes
    image = problem_of("conv2d:c=2,k=3,h=8,w=8,r=3,s=3,padding=same")
    assert image.sizes == conv2d(n=1, c=2, k=3, h=8, w=8, r=3, s=3, padding="same").sizes
    assert problem_of("deepbench_gemm#0") == problem_of(
        f"deepbench_gemm#{problem_of('deepbench_gemm#0').name}"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gemm:m=4,n", "'n' is not field=value"),
        ("gemm:m=4,m=5", "field 'm' is given twice"),
        ("gem:m=4", "did you mean 'gemm'"),
        ("{", "not JSON"),
        ("deepbench_gemm", "deepbench_gemm#LAYER"),
        ("deepbench_gemm#999", "no layer 999; layers are numbered 0 to"),
        ("nothing#1", "nothing"),
    ],
)
def test_bad_problems_are_named(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        problem_of(text)


def test_only_known_methods_and_machines() -> None:
    with pytest.raises(InputError, match="allowed are: simulator evaluate"):
        validate_counters([ROW], method="magic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no cache before memory"):
        validate_counters([ROW], "diannao")


# Kernels, counted literally


@pytest.mark.parametrize("name", ["rowmap", "colmap", "shared", "coarse2"])
def test_filters_load_rows_with_their_halo(name: str) -> None:
    radius, size, images, x, y = 2, 50, 3, 12, 5
    across, down = {"rowmap": (y, x), "coarse2": (2 * x, 2 * y)}.get(name, (x, y))
    sectors = 0
    for top in range(0, size, down):
        for left in range(0, size, across):
            rows = range(max(0, top - radius), min(size, min(top + down, size) + radius))
            columns = range(max(0, left - radius), min(size, min(left + across, size) + radius))
            for i in [z * size + i for z in range(images) for i in rows]:
                sectors += len({4 * (i * size + j) // 32 for j in columns})
    kernel = kernel_of(f"filt_{name} R={radius} S={size} Z={images} b={x}x{y}")
    assert footprint_sectors(Geometry(kernel), kernel.inputs[0], 0, 32) == sectors
    launch = kernel_launch(kernel.name, load_arch("h200"))
    assert launch.compulsory_read_bytes == 4 * (images * size * size + (2 * radius + 1) ** 2)
    assert launch.written_bytes == 4 * images * size * size


def test_direct_shares_what_one_multiprocessor_loads() -> None:
    size, across, inputs, outputs, block, units = 10, 3, 3, 4, 4, 5
    pitch = size + across - 1
    side = -(-size // block)
    held: dict[int, set[tuple[str, int]]] = {unit: set() for unit in range(units)}
    for number in range(side * side * outputs):
        loaded = held[number % units]
        place = number % (side * side)
        for channel in range(inputs):
            for i in range(min(block, size - place // side * block) + across - 1):
                for j in range(min(block, size - place % side * block) + across - 1):
                    row, column = place // side * block + i, place % side * block + j
                    # A sector counts for each channel: channels are loaded one after another.
                    word = (channel * pitch + row) * pitch + column
                    loaded.add((f"image {channel}", 4 * word // 32))
    case = f"direct S={size} K={across} Ni={inputs} Nn={outputs} b={block}"
    arch = load_arch("h200").with_value("compute.units", units)
    image = profile(kernel_of(case), arch).traffic.tensors[0]
    # What overlaps is taken from the first channel; others begin elsewhere in a sector.
    assert image.l1_miss_sectors == pytest.approx(sum(map(len, held.values())), rel=0.05)
    assert image.block_sectors > 1.3 * image.l1_miss_sectors


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("filt_colmap R=1 S=0 Z=16 b=32x8", "sizes are at least 1"),
        ("filt_diag R=1 S=8 Z=16 b=32x8", "not a known kernel"),
        ("direct S=32 K=3 Ni=0 Nn=32 b=4", "at least 1"),
        ("gemm_tile0 M=8 N=8 K=8", "at least 1"),
    ],
)
def test_bad_cases_are_named(case: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        kernel_of(case)


# Files and figures


def test_files_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    row = '"gemm:m=8,n=8,k=8",M:8 N:8 K:8,5.12e2,"a, b"'
    text = f"problem,schedule,dram_read_bytes,note\r\n{row}\r\n\r\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    (row,) = read_counters(path)
    assert row.values == {
        "problem": "gemm:m=8,n=8,k=8",
        "schedule": "M:8 N:8 K:8",
        "dram_read_bytes": 512.0,
        "note": "a, b",
    }


def test_long_lists_of_faults_are_cut() -> None:
    with pytest.raises(InputError) as caught:
        counters_in(parsed("case\n" + "7\n" * 200, "my.csv"))
    assert len(caught.value.problems) == 51
    assert caught.value.problems[-1] == "... and 150 more"


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_percentiles_are_numpys(values: list[float], share: float) -> None:
    assert percentile(values, share) == pytest.approx(float(np.percentile(values, 100 * share)))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_rank_correlation_is_the_correlation_of_ranks(pairs: list[tuple[int, int]]) -> None:
    left, right = ([float(pair[i]) for pair in pairs] for i in (0, 1))
    found = rank_correlation(left, right)

    def rank(values: list[float]) -> list[float]:
        return [sum(a < b for a in values) + (values.count(b) + 1) / 2 for b in values]

    if len(set(left)) == 1 or len(set(right)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(float(np.corrcoef(rank(left), rank(right))[0, 1]))
