"""`loopsched simulate`: what it prints, and how it fails."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from loopsched import Layout, gemm, parse_schedule, simulate
from loopsched.cli import run

GEMM = "gemm:m=12,n=10,k=14"
NEST = "M:12@SM N:10 K:14 M:4 N:3"
PROBLEM = gemm(m=12, n=10, k=14)
SCHEDULE = parse_schedule(NEST, PROBLEM)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


def call(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert run(["simulate", *words]) == status
    captured = capsys.readouterr()
    assert (captured.err == "") == (status == 0)
    return captured.out if status == 0 else captured.err


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    found = json.loads(call(capsys, *words, "--format", "json"))
    assert isinstance(found, list)
    return found


def test_rows_are_the_library_s_counts(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, GEMM, NEST, "--capacity", "256 B")
    expected = simulate(PROBLEM, SCHEDULE, capacity_bytes=256)
    assert [row["tensor"] for row in found] == ["all", "A", "B", "C"]
    for row in found[1:]:
        counts = expected.tensors[str(row["tensor"])]
        for name in ("accesses", "hits", "misses", "write_backs", "read_bytes", "write_bytes"):
            assert row[name] == getattr(counts, name)
    assert found[0]["read_bytes"] == expected.read_bytes
    assert found[0]["capacity_bytes"] == 256


@pytest.mark.parametrize("extra", [[], ["--line", "32 B"], ["--no-flush"], ["--instances", "2"]])
def test_several_capacities_are_one_table(
    extra: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["64B", "512B", "1KiB"]
    together = rows(capsys, GEMM, NEST, *extra, *(word for size in sizes for word in ("-c", size)))
    alone = [row for size in sizes for row in rows(capsys, GEMM, NEST, *extra, "-c", size)]
    assert together == alone
    table = call(capsys, GEMM, NEST, "-c", "64B", "-c", "512B")
    assert table.count("DRAM - cache") == 2


def test_every_option_reaches_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-c", "512B", "--line", "32B", "--ways", "4", "--policy", "random", "--seed", "7"]
    words += ["--layout", "A=KM", "--layout", "C=M,N:16", "--align", "64B"]
    words += ["--write-policy", "through"]
    expected = simulate(
        PROBLEM,
        SCHEDULE,
        capacity_bytes=512,
        line_bytes=32,
        ways=4,
        policy="random",
        seed=7,
        layouts={
            "A": Layout(("K", "M"), align_bytes=64),
            "C": Layout(("M", "N"), (("N", 16),), align_bytes=64),
        },
        write_policy="through",
    )
    found = rows(capsys, GEMM, NEST, *words)
    assert [row["misses"] for row in found[1:]] == [e.misses for e in expected.tensors.values()]
    assert found[0]["write_bytes"] == 4 * PROBLEM.macs


def test_what_is_dirty_may_stay(capsys: pytest.CaptureFixture[str]) -> None:
    flushed = rows(capsys, GEMM, NEST, "-c", "64KiB")
    stays = rows(capsys, GEMM, NEST, "-c", "64KiB", "--no-flush")
    assert (flushed[0]["write_bytes"], stays[0]["write_bytes"]) == (4 * 12 * 10, 0)


def test_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, GEMM, NEST, "--arch", "titan_v")
    assert [(row["level"], row["instances"]) for row in found[::4]] == [("L2", 1), ("L1", 80)]
    tiles = rows(capsys, GEMM, NEST, "--arch", "titan_v", "-g", "tile")
    assert [row["read_bytes"] for row in tiles] == [row["read_bytes"] for row in found]
    assert "80 x 96 KiB" in call(capsys, GEMM, NEST, "--arch", "titan_v")


def test_csv(capsys: pytest.CaptureFixture[str]) -> None:
    text = call(capsys, GEMM, NEST, "-c", "512B", "--format", "csv")
    assert [row["tensor"] for row in csv.DictReader(io.StringIO(text))] == ["all", "A", "B", "C"]


@pytest.mark.parametrize(
    ("words", "message", "status"),
    [
        ([], "give --capacity (once or more), or --arch", 2),
        (["-c", "1KiB", "--arch", "titan_v"], "give --capacity or --arch, not both", 2),
        (["-c", "1KiB", "--arch", "titan_v"], "or --arch", 2),
        (["-c", "1KiB", "--policy", "fifo"], "'fifo' is not one of", 2),
        (["-c", "1KB"], "write kB or KiB", 3),
        (["-c", "1000B", "--line", "32B", "--ways", "2"], "a multiple of ways * line_bytes", 3),
        (["-c", "1KiB", "--ways", "2"], "give line_bytes", 3),
        (["-c", "1KiB", "--layout", "D=MN"], "no tensor 'D'", 3),
        (["-c", "1KiB", "--layout", "A=MK", "--layout", "KM"], "names no tensor", 3),
        (["-c", "1KiB", "--layout", "A=MK", "--layout", "A=KM"], "given twice", 3),
        (["-c", "1KiB", "--instances", "SM=x"], "is not N, or UNIT=N", 3),
        (["-c", "1KiB", "--instances", "XM=2"], "no loop of unit 'XM'", 3),
        (["--arch", "diannao"], "'buffers' of 'diannao' is a scratchpad", 3),
        (["--arch", "titan_w"], "did you mean 'titan_v'", 3),
        (["--arch", "diannao"], "'loopsched analyze' (loopsched.evaluate in Python) counts it", 3),
        (["-c", "10B", "--line", "64B"], "Error: simulate: line (64 B) is above the capacity", 3),
        (["-c", "1KiB", "-c", "10B", "--line", "64B"], "Error: simulate: line (64 B) is above", 3),
        (["-c", "1KiB", "-g", "tile", "--line", "64B"], "--line does not apply to --gran", 2),
        (["-c", "1KiB", "-g", "tile", "--no-flush"], "--no-flush does not apply to --gran", 2),
        (["-c", "1KiB", "-g", "tile", "--layout", "A=KM"], "--layout does not apply to --gran", 2),
        (["-a", "v100", "-g", "tile", "--sees", "all"], "--sees does not apply to --gran", 2),
        (["-c", "1KiB", "--warm"], "--warm applies only with --arch", 2),
        (["-c", "1KiB", "--sees", "all", "--warm"], "--sees and --warm apply only with --arch", 2),
        (["-c", "1KiB", "--seed", "4"], "--seed applies only to --policy random", 2),
        (["-a", "titan_v", "--policy", "belady"], "--policy applies only with --capacity; a", 2),
        (["-a", "titan_v", "--ways", "2"], "--ways applies only with --capacity", 2),
    ],
)
def test_faults(
    words: list[str], message: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    text = call(capsys, GEMM, NEST, *words, status=status)
    assert message in text
    assert "Traceback" not in text


def test_an_interruption_comes_through_at_once() -> None:
    """Hours of work are announced, and end at Ctrl-C with status 130."""
    command = [sys.executable, "-m", "loopsched", "simulate", "gemm:m=9000,n=9000,k=9000"]
    command += ["M:9000 N:9000 K:9000 M:100 N:100", "-c", "1MiB"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert process.stderr is not None
        announced = process.stderr.readline()
        assert "2.187e+12 accesses, up to 12.15 h at 50 million per second; Ctrl-C" in announced
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:  # hours, if the signal was ignored
        process.kill()
    assert time.monotonic() - sent < 2
    assert (process.returncode, out) == (130, "")
    assert "Error: interrupted" in err
    assert "Traceback" not in err
