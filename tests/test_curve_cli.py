"""The command ``curve``: rows, tables, files, exit codes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopsched import Curve, gemm, load_arch, load_workload, network_curve, traffic_curve
from loopsched.base.units import binary, percent, scaled
from loopsched.cli import run

SMALL = "gemm:m=24,n=20,k=16"
PADDED = {
    "name": "w",
    "layers": [{"op": "conv2d", "c": 2, "k": 4, "h": 9, "w": 9, "r": 3, "s": 3, "padding": 1}],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert run(["curve", *arguments]) == status
    out, err = capsys.readouterr()
    return err if status else out


def test_digest_rows_are_the_librarys(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = json.loads(call(capsys, SMALL, "-a", "v100", "--format", "json"))
    curve = traffic_curve(gemm(m=24, n=20, k=16))
    expected = curve.digest(load_arch("v100"))
    assert {key: row[key] for key in expected} == expected
    assert (row["layer"], row["count"], row["arch"]) == (0, 1, "v100")
    assert row["command"] == f"loopsched curve {SMALL} -a v100 --format json"


def test_points_are_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    lines = call(capsys, SMALL, "--points", "--format", "jsonl").splitlines()
    rows = [json.loads(line) for line in lines]
    curve = traffic_curve(gemm(m=24, n=20, k=16))
    assert [row["capacity_bytes"] for row in rows] == list(curve.capacities_bytes)
    assert [row["dram_bytes"] for row in rows] == list(curve.dram_bytes)
    assert rows[4]["schedule"] == str(curve.schedule(4))
    assert "--jobs" not in rows[0]["command"]


def test_network_is_one_curve(capsys: pytest.CaptureFixture[str]) -> None:
    text = call(capsys, "alexnet", "--network", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(text))
    whole = network_curve(load_workload("alexnet"))
    assert row["problem"] == "alexnet"
    assert int(row["L2_dram_bytes"]) == whole.at(4_718_592)
    assert int(row["n_steps"]) == len(whole)
    (alone,) = json.loads(call(capsys, "gemm:m=24,n=20,k=16", "--network", "--format", "json"))
    assert alone["problem"] == "m24 n20 k16"
    points = call(capsys, "alexnet", "-l", "6", "-l", "7", "--network", "--points")
    assert points.splitlines()[0].split() == ["problem", "capacity", "traffic", "gap"]


def test_policy(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = json.loads(call(capsys, SMALL, "--policy", "lru", "--format", "json"))
    cache = traffic_curve(gemm(m=24, n=20, k=16), policy="lru")
    assert (row["policy"], row["n_steps"]) == ("lru", len(cache))
    assert "one LRU cache (promised) of 96 KiB" in call(capsys, SMALL, "--policy", "lru")


def test_table_of_layers(capsys: pytest.CaptureFixture[str]) -> None:
    for width in (80, 120):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            text = call(capsys, "alexnet")
        assert max(map(len, text.splitlines())) <= width
        assert "L1 96 KiB  L2 4.5 MiB" in text
        assert "All 8 layers, each times its count" in text
    assert "knees" in text


def test_table_of_one_problem_shows_what_to_do_at_its_knees(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = call(capsys, "gemm:m=512,n=512,k=512", "--show", "intensity")
    curve = traffic_curve(gemm(m=512, n=512, k=512))
    assert curve.knees
    for knee in curve.knees:
        assert f"    {curve.schedule(knee.index)}\n" in text
        size = f"{binary(knee.capacity_bytes)} "
        line = next(line for line in text.splitlines() if line.lstrip().startswith(size))
        assert f" {scaled(2 * curve.macs / knee.dram_bytes)} " in line
    assert "Highest operational intensity" in text
    said = " ".join(call(capsys, SMALL, "--show", "bandwidth").split())
    assert "Least DRAM bandwidth, with one buffer of 96 KiB (L1) or 4.5 MiB (L2) below DRAM" in said
    assert "at which the units never wait, over all tile sizes and loop orders" in said
    assert "knee" in text


def test_shown_quantity(capsys: pytest.CaptureFixture[str]) -> None:
    for show, unit in (("traffic", "kB"), ("bandwidth", "B/s"), ("intensity", "")):
        line = call(capsys, SMALL, "--points", "--show", show).splitlines()
        assert line[0].split()[-2:] == [show, "gap"]
        *_, value, gap = line[2].split()
        assert value.endswith(unit)
        assert "gap: DRAM above the least of nests" in " ".join(line)
        assert gap == "0"


def test_what_is_proven_is_said(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert "Proven best at every capacity" in " ".join(call(capsys, SMALL).split())
    (folder / "w.json").write_text(json.dumps(PADDED))
    curve = traffic_curve(load_workload("w.json").problems[0])
    assert 0 < curve.n_proven < len(curve)
    (row,) = json.loads(call(capsys, "w.json", "--format", "json"))
    assert (row["n_proven"], row["n_steps"]) == (curve.n_proven, len(curve))
    said = " ".join(call(capsys, "w.json").split())
    assert f"Proven best at {curve.n_proven} of {len(curve)} steps" in said
    lines = call(capsys, "w.json", "--points", "--format", "jsonl").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["nest_bound_bytes"] for row in rows] == list(curve.step_bounds)
    shown = [line.split() for line in call(capsys, "w.json", "--points").splitlines()]
    gaps = [cells[-2:] for cells in shown if len(cells) > 4 and cells[0] == "0"]
    unproven = [cells for cells in gaps if cells[-1] == "%"]
    assert len(unproven) == len(curve) - curve.n_proven
    open_ = [
        percent(moved / bound - 1).split()
        for moved, bound in zip(curve.dram_bytes, curve.step_bounds, strict=True)
        if moved > bound
    ]
    assert unproven == open_


def test_files(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    plots = ["--plot", "a.svg", "--plot", "a.csv"]
    assert run(["curve", SMALL, "--out", "rows.jsonl", *plots]) == 0
    assert capsys.readouterr().err.endswith("wrote a.svg\nwrote a.csv\n")
    assert json.loads((folder / "rows.jsonl").read_text())["n_steps"] > 5
    assert "least traffic" in (folder / "a.svg").read_text()
    rows = list(csv.DictReader(io.StringIO((folder / "a.csv").read_text())))
    curve = traffic_curve(gemm(m=24, n=20, k=16))
    assert [int(row["capacity_bytes"]) for row in rows] == list(curve.capacities_bytes)


@pytest.mark.parametrize("network", [[], ["--network"]])
def test_an_interruption_leaves_what_is_done(
    network: list[str],
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def one(*_: object, **__: object) -> Iterator[Curve]:
        yield traffic_curve(gemm(m=24, n=20, k=16))
        raise KeyboardInterrupt

    monkeypatch.setattr("loopsched.curves.network.workload_curves", one)
    files = ["--out", "rows.jsonl", "--plot", "a.csv"]
    assert run(["curve", "alexnet", *network, *files]) == 130
    out = capsys.readouterr().out
    if network:  # a sum of some layers is not the network's
        assert out == ""
        assert not (folder / "a.csv").exists()
        return
    assert "1 of 8 layers" in out
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 1
    assert "m24 n20 k16" in (folder / "a.csv").read_text()


def test_bytes_do_not_depend_on_jobs(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    chosen = ["alexnet", "-l", "0", "-l", "6", "-l", "7"]
    one = call(capsys, *chosen, "--points", "--format", "csv")
    assert call(capsys, *chosen, "--points", "--format", "csv", "--jobs", "2") == one


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nowhere"], 3, "nowhere"),
        ([SMALL, "-a", "titan_w"], 3, "titan_v"),
        ([SMALL, "--plot", "a.gif"], 3, "a plot ends in"),
        ([SMALL, "--jobs", "0"], 2, "'0' is not a whole number >= 1"),
        ([SMALL, "--show", "time"], 2, "'time' is not one of"),
        ([SMALL, "--element-bytes", "8", "--out", "a.csv"], 3, "no rate for elements of 8 bytes"),
        (["gemm:m=2000000,n=2000000,k=200000"], 3, "more bytes than fit into 64 bits"),
    ],
)
def test_bad_input(
    arguments: list[str],
    status: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
) -> None:
    assert message in call(capsys, *arguments, status=status)
    assert not list(folder.iterdir())
