"""``loopsched validate times``: what it prints, draws and refuses."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest

from loopsched.cli import run

ROWS = """gpu,precision,m,n,k,a_t,b_t,time_us,anomaly
V100,fp32,5124,9124,2560,0,0,18587,
V100,fp32,35,8457,2560,0,0,218,quantised>=7%
M40,fp32,64,64,64,0,0,1,unusable: not believed
"""
OUT = ["bound_us", "estimate_us", "low_us", "high_us", "bound_by", "kernel", "error"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    # As spreadsheets write it.
    path.write_bytes(("\ufeff" + ROWS.replace("\n", "\r\n")).encode())
    return path


def test_table(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["validate", "times", str(file), "--worst", "1"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].split()[:3] == ["group", "rows", "MAPE"]
    assert lines[2].split()[:4] == ["gemm", "V100", "fp32", "2"]
    assert lines[3].startswith("apart: unusable")
    assert lines[3].split()[-2:] != ["0", "-"]
    assert "largest errors, by the ratio of estimate and measurement:" in lines
    assert "the MAPE of the plain roofline is " in " ".join(printed.out.split())
    assert printed.err == ""


def test_json_is_summary_and_rows(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "times", str(file), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"summary", "rows"}
    rows = found["rows"]
    names = ROWS.splitlines()[0].split(",")
    assert list(rows[0]) == [*names, *OUT, "roofline_us", "report003_us", "remark", "apart"]
    assert (rows[0]["time_us"], rows[0]["anomaly"], rows[0]["apart"]) == (18587, None, None)
    assert rows[2]["apart"] == "unusable: not believed"
    for row in rows:
        assert row["bound_us"] <= row["low_us"] <= row["estimate_us"] <= row["high_us"]
        assert row["error"] == pytest.approx(row["estimate_us"] / row["time_us"] - 1)
    # 5124 x 9124 x 2560 multiply-adds on 80 x 64 lanes at 1530 MHz.
    assert rows[0]["bound_us"] == pytest.approx(5124 * 9124 * 2560 / (80 * 64 * 1530), rel=1e-3)
    summary = found["summary"]
    assert (summary["rows"], summary["rows_apart"], summary["bound_violations"]) == (2, 1, 0)
    assert summary["mape"] == pytest.approx((abs(rows[0]["error"]) + abs(rows[1]["error"])) / 2)


def test_groups_have_a_sum_and_rows_their_times(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    file.write_text(ROWS + "V100,fp16,1760,1760,1760,0,0,300,\n")
    assert run(["validate", "times", str(file), "--worst", "3"]) == 0
    printed = capsys.readouterr().out
    titles = [line.split()[0] for line in printed.splitlines() if line.strip()]
    assert titles.count("all") == 1
    assert {"18.59 ms", "218.0 us", "300.0 us"} <= set(re.findall(r"[\d.]+ [mu]?s", printed))


def test_labels_that_cannot_be_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "conv.csv"
    line = "V100,8,8,64,4,64,5,5,2,1,{},90\n"
    path.write_text(
        "gpu,w,h,c,n,k,filter_w,filter_h,pad,stride,algo,time_us\n"
        + line.format("WINOGRAD")
        + line.format("IMPLICIT_GEMM")
    )
    assert run(["validate", "times", str(path)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "group rows MAPE" in words
    assert "1 row has an algorithm that cannot run its problem" in words
    assert "algorithm WINOGRAD is impossible, treated as unknown" in words
    assert run(["validate", "times", str(path), "--format", "csv"]) == 0
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert "WINOGRAD needs a 3x3 filter" in first["remark"]
    assert second["remark"] == ""


def test_csv_keeps_the_columns(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["validate", "times", str(file), "--format", "csv", "--where", "gpu=v100"]
    assert run(command) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["m"] for row in rows] == ["5124", "35"]
    assert float(rows[0]["estimate_us"]) > float(rows[0]["bound_us"])


def test_shipped_names_and_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["validate", "times", "deepbench_conv_measured", "--format", "json"]
    chosen = [word for column in ("gpu=V100", "pass=fwd", "precision=fp32", "n=8") for word in
              ("--where", column)]  # fmt: skip
    estimates = {}
    for algorithm in ("known", "any"):
        assert run([*command, *chosen, "--algorithm", algorithm]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["summary"]["algorithm"] == algorithm
        assert found["summary"]["bound_violations"] == 0
        estimates[algorithm] = [row["estimate_us"] for row in found["rows"]]
    assert len(estimates["known"]) == len(estimates["any"]) > 10
    assert estimates["known"] != estimates["any"]


def test_plot(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = []
    for name in ("one.svg", "two.svg"):
        assert run(["validate", "times", str(file), "--plot", str(tmp_path / name)]) == 0
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    assert drawn[0].startswith(b"<?xml")
    capsys.readouterr()
    (tmp_path / "folder.svg").mkdir()
    for name, what in (("no/x.png", "no such folder"), ("folder.svg", "is a folder")):
        assert run(["validate", "times", str(file), "--plot", str(tmp_path / name)]) == 3
        printed = capsys.readouterr()
        assert f"cannot be written: {what}" in printed.err
        assert printed.out == ""


def test_plot_without_matplotlib(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(["validate", "times", str(file), "--plot", "x.svg"]) == 1
    printed = capsys.readouterr()
    assert "the extra 'plot'" in printed.err
    assert printed.out == ""
    assert run(["validate", "times", str(file), "--plot", "x.txt"]) == 3
    assert "x.txt: a plot ends in .svg, .png, .pdf or .csv" in capsys.readouterr().err


# Contents of the file, arguments, and what the message must name.
BAD: dict[str, tuple[str | bytes, list[str], list[str]]] = {
    "empty": ("", [], ["is empty"]),
    "only a mark": (b"\xef\xbb\xbf", [], ["is empty"]),
    "binary": (bytes(range(256)), [], ["not UTF-8 text"]),
    "utf-16": (ROWS.encode("utf-16"), [], ["not UTF-8 text"]),
    "columns": (ROWS.replace("time_us", "time"), [], ["no column 'time_us'; did you mean 'time'?"]),
    "several": (
        ROWS.replace("V100", "V10").replace("18587", "-1").replace("5124", "0"), ["--strict"],
        ["4 errors", "line 2: gpu is 'V10'; did you mean 'V100'?", "line 2: time_us is -1",
         "line 2: m is 0", "line 3: gpu"],
    ),
    "where": (ROWS, ["--where", "gpus=V100"], ["no column 'gpus'; did you mean 'gpu'?"]),
    "nothing left": (ROWS, ["--where", "gpu=T4"], ["no row with gpu=T4"]),
    "machines": (ROWS, ["--arch", "v100"], ["rows are of V100 M40; choose some with gpu=NAME"]),
    "no machine": (ROWS.replace("gpu", "card"), [], ["3 rows name no GPU, the first at line 2"]),
    "unknown machine": (ROWS, ["--arch", "v1000", "-w", "gpu=M40"], ["v1000"]),
    "no rate": (ROWS.replace("M40,fp32", "M40,fp64"), ["--strict"], ["line 4: ", "fp64"]),
    "no row is right": (ROWS.replace("V100", "V10").replace("M40", "M4"), [], ["3 errors"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, arguments, said = BAD[name]
    path = tmp_path / "bad.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert run(["validate", "times", str(path), *arguments]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Error: ")
    for words in said:
        assert words in printed.err


def test_rows_that_cannot_be_read_are_skipped_counted_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.csv"
    odd = ROWS.replace("V100,fp32,35", "V100,fp12,35") + "M40,fp64,64,64,64,0,0,1,\n"
    path.write_text(odd)
    assert run(["validate", "times", str(path), "--format", "json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert [row["m"] for row in found["rows"]] == [5124, 64]
    assert [one[:8] for one in found["summary"]["skipped"]] == ["line 3: ", "line 5: "]
    assert printed.err.startswith(
        "skipped 2 rows (--strict refuses the file):\n  line 3: precision"
    )
    path.write_text(odd + "V100,fp32,0,1,1,0,0,1,\n" * 20)
    assert run(["validate", "times", str(path)]) == 0
    assert "and 12 more: --format json has all" in capsys.readouterr().err


def test_what_the_columns_of_report_003_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "times", "titan_v_measured", "--worst", "60"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "formulas give 2,238,781 us, not the 25,322 us that it prints; algo GEMM" in said
    assert "half (32): fp32 arithmetic on fp16 data." in said


def test_thousands_of_rows_are_grouped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "many.csv").write_text(ROWS.splitlines()[0] + "\nV100,fp32,64,64,64,0,0,9," * 1000)
    assert run(["validate", "times", str(tmp_path / "many.csv"), "--worst", "0"]) == 0
    assert " 1,000 " in capsys.readouterr().out


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "times", "no_such_file.csv"]) == 3
    assert "no such file; shipped are: deepbench_conv" in capsys.readouterr().err
    assert run(["validate", "times", "titan_v_measured", "--where", "gpu"]) == 2
    assert run(["validate", "times", "titan_v_measured", "--algorithm", "best"]) == 2


def test_times_of_a_type_that_is_not_said_are_not_blamed_on_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report's model is of a Titan V: elsewhere its errors would be thousandfold."""
    file = tmp_path / "mine.csv"
    file.write_text("m,n,k,time_us\n512,6144,4096,52\n")
    assert run(["validate", "times", str(file), "--arch", "h100"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "measured below the bound, which takes fp32: no column 'precision'; " in out
    assert "report 003" not in out
    file.write_text("m,n,k,time_us,precision\n512,6144,4096,20,fp16\n")
    assert run(["validate", "times", str(file), "--arch", "h100"]) == 0
    assert "measured below the bound; " in " ".join(capsys.readouterr().out.split())
    assert run(["validate", "times", str(file), "--arch", "v100"]) == 0
    out = capsys.readouterr().out
    assert out.count("report 003") == 2
    file.write_text("m;n;k;time_us\n512;6144;4096;52\n")
    assert run(["validate", "times", str(file), "--arch", "h100"]) == 3
    assert "mine.csv: columns are divided by semicolons; commas are" in capsys.readouterr().err
