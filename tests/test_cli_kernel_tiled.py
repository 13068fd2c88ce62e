"""``loopsched kernel tiled``: what it prints and what it refuses."""

from __future__ import annotations

import csv
import io
import json

import pytest

from loopsched import conv2d, gemm, load_arch, load_workload, tiled_conv, tiled_gemm
from loopsched.cli import run

BIG = ["kernel", "tiled", "gemm:m=8192,n=8192,k=8192", "--type", "tf32", "--arch", "h200"]
CONV = "conv2d:n=16,c=64,k=64,h=56,w=56,r=3,s=3,padding=1"


def test_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run([*BIG, "--group-m", "8", "--registers", "128"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "m8192 n8192 k8192 on h200, tf32, tile 128x128x32"
    said = " ".join(lines)
    assert "4,096 blocks: 64 x 64 tiles; 15.52 waves" in said
    assert "256 threads, 128 registers each, 96.00 KiB of shared memory" in said
    assert "25.0 %: 2 blocks per SM, limited by registers and shared memory" in said
    assert "Triton TF32 GEMMs on an H200 whose shapes were not fitted" in said
    # Each block loads 128 rows and 128 columns of 8,192 words; the output is 268 MB.
    assert next(line for line in lines if line.startswith("L2 ")).split() == [
        "L2", "34.36", "GB", "268.4", "MB", "31.75",
    ]  # fmt: skip


def test_estimated_registers_are_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BIG) == 0
    assert "112 registers each (estimated)" in " ".join(capsys.readouterr().out.split())


def test_one_block_of_one_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "tiled", "gemm:m=128,n=128,k=4096"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert " 1 block: 1 x 1 tiles; " in said
    assert run(["kernel", "tiled", "gemm:m=128,n=128,k=4096", "--split-k", "2"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert " 2 blocks: 1 x 1 tiles x 2 parts of the reduction; " in said
    assert ": 1 block per SM, " in said
    assert "DRAM traffic computed in closed form" in said


def test_rows_are_the_librarys(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tile", "64x32x16", "--split-k", "3", "--stages", "2", "--threads", "128"]
    problem = "gemm:m=500,n=300,k=1000"
    assert run(["kernel", "tiled", problem, *options, "--arch", "v100", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    found = tiled_gemm(
        gemm(m=500, n=300, k=1000),
        load_arch("v100"),
        tile=(64, 32, 16),
        split_k=3,
        stages=2,
        threads=128,
    )
    assert (row["grid"], row["blocks"], row["tile"]) == ("8x10x3x1", 240, "64x32x16")
    assert row["time_s"] == found.estimate.time_s
    assert row["time_bound_s"] == found.estimate.time_bound_s
    assert row["dram_bytes_read"] == found.dram_bytes_read
    assert row["compute_s"] == dict(found.estimate.parts)["compute"]
    assert row["registers_given"] is False
    assert row["l2_bytes_read"] == found.l2_bytes_read != found.l2_bytes_written
    assert row["l2_bytes_written"] == found.l2_bytes_written


def test_a_layer_of_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["deepbench_gemm", "--layer", "2", "--format", "json"]
    assert run(["kernel", "tiled", *arguments]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["flops"] == load_workload("deepbench_gemm").problems[2].flops


def test_convolutions(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tile", "128x64x8", "--threads", "128", "--arch", "v100", "--format", "csv"]
    assert run(["kernel", "tiled", CONV, *options]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    layer = conv2d(n=16, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)
    found = tiled_conv(layer, load_arch("v100"), tile=(128, 64, 8), threads=128)
    assert row["grid"] == "392x1x1x1"
    assert int(row["flops"]) == layer.flops
    assert float(row["time_s"]) == found.estimate.time_s


def test_a_replay_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    problem = "gemm:m=512,n=512,k=512"
    assert run(["kernel", "tiled", problem, "--replay", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["traffic_from"] == "replay"
    assert row["dram_bytes_read"] == pytest.approx(2 * 4 * 512 * 512, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["gemm:m=8,n=8,k=8", "--tile", "8x8"], 2, "not three whole numbers such as 128x128x32"),
        (["gemm:m=8,n=8,k=8", "--stages", "0"], 2, "'0' is not a whole number >= 1"),
        ([CONV, "--replay"], 2, "--replay is for GEMMs only"),
        (["gemm:m=8,n=8,k=8", "--tile", "0x8x8"], 3, "tile_m is 0; a whole number >= 1 is needed"),
        (["gemm:m=8,n=8,k=8", "--split-k", "9"], 3, "split_k is 9; K has only 8 elements"),
        (["gemm:m=8,n=8", "--arch", "v100"], 3, "'k'"),
        (["gemm:m=8,n=8,k=8", "--type", "fp31"], 3, "no rate for data type 'fp31'; did you mean"),
        (["gemm:m=8,n=8,k=8", "--arch", "titan_v_report_003"], 3, "no 'gpu' part"),
        (["gemm:m=8,n=8,k=8", "--threads", "2048"], 3, "at most 1,024 are allowed"),
        (["einsum:expression=ij,jk->ik", "--arch", "v100"], 3, "no size for 'j'"),
    ],
)
def test_faults(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kernel", "tiled", *arguments]) == status
    printed = capsys.readouterr()
    assert not printed.out
    assert said in printed.err
    assert "Traceback" not in printed.err
