"""``loopsched validate``: what it prints, draws and refuses."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from loopsched.cli import run

GEMM = "M,N,K,tile_m,tile_n,tile_k,group_m,dram_read_bytes,dram_write_bytes,l2_read_sectors\n"
ROWS = GEMM + "512,512,512,64,64,32,8,2200000,0,520000\n512,512,256,64,64,32,8,1050000,,270000\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(ROWS)
    return path


def test_table(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run(["validate", "counters", str(file)]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].startswith("launch                   DRAM read  read pred.  read error  DRAM ")
    assert lines[2].startswith("512x512x512 64x64x32 g8   2.200 MB    2.097 MB      -4.7 % ")
    assert any(
        line.split()
        == ["DRAM", "read", "2", "2.4", "%", "4.2", "%", "2.4", "%", "4.7", "%", "1.000"]
        for line in lines
    )
    assert lines[-1].endswith("below the lower bound: 0.")
    assert printed.err == ""


def test_the_table_fits_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["validate", "counters", "h200_kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].endswith("read error  L2 sectors  L2 error")


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "counters", str(file), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"summary", "rows"}
    assert found["summary"]["with"] == "simulator"
    assert found["summary"]["dram_write_bytes"] == {
        "rows": 1, "rows_measured_zero": 1, "median_error": None, "p90_error": None,
        "mean_error": None, "max_error": None, "rank_correlation": None,
    }  # fmt: skip
    first, second = found["rows"]
    assert list(first)[:10] == GEMM.strip().split(",")
    assert first["predicted_dram_read_bytes"] == 2 * 4 * 512 * 512
    assert second["dram_write_bytes"] is None
    assert second["predicted_l2_read_sectors"] == 64 * 2 * 64 * 256 * 4 // 32


def test_csv(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["validate", "counters", str(file), "--with", "evaluate", "--format", "csv"]
    assert run(command) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["predicted_by"] for row in rows] == ["evaluate"] * 2
    assert rows[1]["dram_write_bytes"] == ""
    assert rows[0]["predicted_dram_read_bytes"] == str(2 * 4 * 512 * 512)


def test_plot(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = []
    for name in ("one.svg", "two.svg"):
        assert run(["validate", "counters", str(file), "--plot", str(tmp_path / name)]) == 0
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    assert drawn[0].startswith(b"<?xml")
    assert run(["validate", "counters", str(file), "--plot", str(tmp_path / "no" / "x.png")]) == 3
    assert "cannot be written: no such folder" in capsys.readouterr().err


def test_plot_without_matplotlib(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(["validate", "counters", str(file), "--plot", "x.svg"]) == 1
    assert "the extra 'plot'" in capsys.readouterr().err
    assert run(["validate", "counters", str(file), "--plot", "x.txt"]) == 3
    assert "x.txt: a plot ends in .svg, .png, .pdf or .csv" in capsys.readouterr().err


# Contents of the file, and what the message must name.
BAD: dict[str, tuple[str | bytes, list[str]]] = {
    "empty": ("", ["is empty"]),
    "binary": (bytes(range(256)), ["not UTF-8 text"]),
    "no rows": (GEMM, ["no rows"]),
    "unknown columns": ("a,b\n1,2\n", ["M N K tile_m", "case", "problem schedule"]),
    "misspelt": (ROWS.replace("tile_k", "tilek"), ["no column 'tile_k'", "mean 'tilek'?"]),
    "column twice": (ROWS.replace("group_m", "tile_k"), ["'tile_k' occurs more than once"]),
    "quote": (GEMM + '"512,512\n', ["not CSV"]),
    "several": (
        GEMM + "512,x,512,64,64,32,8,1,1,1\n512,512\n512,512,512,0,64,1.5,8,-1,many,1\n",
        ["6 errors", "line 2: N is 'x'", "line 3: 2 values, but 10 columns", "line 4: tile_m is 0",
         "line 4: tile_k is 1.5", "line 4: dram_read_bytes is -1"],
    ),
    "huge": (GEMM + "99999999999,1,1,1,1,1,1,1,1,1\n", ["M is 99999999999", "2147483647"]),
    "launch": (GEMM.replace("l2_read_sectors", "block_threads") + "8,8,8,8,8,8,1,1,1,0\n",
               ["line 2: block_threads is 0; a number from 1 to 65536"]),
    "number": ("problem,schedule\n7,M:8 N:8 K:8\n", ["line 2: problem is 7; a text is needed"]),
    "kernel": ("case\nfilt\ndirect S=1\n", ["2 errors", "line 2: case 'filt' is no", "line 3"]),
    "schedule": ("problem,schedule\n\"gemm:m=8,n=8,k=8\",M:8 N:8 Q:8\n",
                 ["line 2:", "'Q'"]),
    "unit": ("problem,schedule\n\"gemm:m=8,n=8,k=8\",M:8@XX N:8 K:8\n", ["XX"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, said = BAD[name]
    path = tmp_path / "bad.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert run(["validate", "counters", str(path)]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Error: ")
    for words in said:
        assert words in printed.err


def test_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "counters", "no_such_file.csv"]) == 3
    assert "no such file; shipped are: h200_" in capsys.readouterr().err
