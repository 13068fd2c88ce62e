"""``loopsched pick`` and ``loopsched validate choices``: what they print, write and refuse."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import loopsched
from loopsched import gemm, load_arch
from loopsched.cli import run
from loopsched.validation.choices import validate_choices

PRODUCT = "gemm:m=512,n=512,k=512"
SPACE = "block_m,block_n,block_k,stages,warps,group_m\n64,64,32,3,4,8\n128,128,64,4,8,8\n"
MEASURED = """kind,problem,data_type,block_m,block_n,block_k,stages,warps,group_m,time_us
gemm,512x512x512,fp16,64,64,32,3,4,8,9
gemm,512x512x512,fp16,128,128,64,4,8,8,12
gemm,512x512x512,fp16,library,,,,,,8
dance,512x512x512,fp16,64,64,32,3,4,8,12
"""


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    """Layers that two kernels compute, one that none does, and a batch of products."""
    window = {"h": 8, "w": 8, "r": 3, "s": 3}
    layers: list[dict[str, Any]] = [
        {"op": "conv2d", "name": "plain", "c": 64, "k": 64, **window},
        {"op": "conv2d", "name": "grouped", "c": 64, "k": 64, "groups": 64, **window},
        {"op": "gemm", "name": "last", "m": 16, "n": 512, "k": 256},
        {"op": "gemm", "name": "twice", "m": 32, "n": 512, "k": 256},
        {"op": "batched_gemm", "name": "heads", "batch": 4, "m": 16, "n": 512, "k": 256},
    ]
    file = tmp_path / "mixed.json"
    file.write_text(json.dumps({"name": "mixed", "layers": layers}))
    return str(file)


def _ok(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert run(list(arguments)) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 3) -> str:
    assert run(list(arguments)) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("Error: ") == 1
    return printed.err


def test_choices_are_shown_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = loopsched.pick(gemm(m=512, n=512, k=512), load_arch("h100"), top=2, explain=True)
    best = found.best
    out, err = _ok(capsys, "pick", PRODUCT, "--top", "2", "--explain")
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert err == ""
    words = " ".join(out.split())
    assert words.startswith(
        f"m512 n512 k512, fp16, triton_gemm on h100: at least {1e3 * best.cold_us:.1f} ns from a "
        f"cold L2 ({1e3 * best.bound_us:.1f} ns from a warm one); "
        f"720 configurations, {found.n_infeasible} cannot run, {found.n_may_be_best} may be best"
    )
    for one in found.choices:
        parts = dict(one.configuration)
        tile = "x".join(str(parts[name]) for name in ("block_m", "block_n", "block_k"))
        assert f"{tile} stages {parts['stages']} warps {parts['warps']}" in words
        assert one.why in words
    assert f"{found.best.estimate_us:.3f} us" in words
    assert "first choice" not in _ok(capsys, "pick", PRODUCT, "--top", "2")[0]
    few = _ok(capsys, "pick", PRODUCT, "--top", "2")[0].splitlines()
    assert len(few) == 7
    assert few[-1] == "(left out at 80 columns: 80 % interval, blocks/SM)"


def test_long_configurations_stand_below_their_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLBlast's have 14 parameters; in 80 columns nothing else is left out for them."""
    monkeypatch.setenv("COLUMNS", "80")
    given = ("gemm:m=256,n=256,k=256", "--kernel", "clblast_gemm", "--top", "2")
    lines = _ok(capsys, "pick", *given)[0].splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "17,956 configurations, " in " ".join(lines)
    titles = "# estimate 80 % interval bound by blocks/SM may be best"
    head = next(at for at, line in enumerate(lines) if " ".join(line.split()) == titles)
    assert lines[head + 2].split()[0] == "1"
    assert lines[head + 3].startswith("    MWG=")


def test_wide_tables_say_intervals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    best = loopsched.pick(gemm(m=512, n=512, k=512), load_arch("h100"), top=1).best
    head, *_, row = _ok(capsys, "pick", PRODUCT, "--top", "1")[0].splitlines()[1:]
    titles = ("estimate", "80 % interval", "bound by", "blocks/SM", "may be best")
    assert all(title in head for title in titles)
    times = [f"{one:.4g} us" for one in (best.estimate_us, best.low_us, best.high_us)]
    assert " ".join([times[0], "", times[1], "to", times[2]]) in row
    assert " ".join(row.split()).endswith(f"{best.bound_by} {best.resident_blocks} yes")


def test_what_was_never_measured_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A type or a GPU of which no measurements were compared; of products of 7 ms, one bound."""
    large = "gemm:m=16384,n=16384,k=16384"
    for options, is_said in (
        (("--arch", "h100"), False),
        (("--arch", "h200", "--type", "fp8"), False),
        (("--arch", "a100"), True),
        (("--arch", "h200", "--type", "int8"), True),
    ):
        out = _ok(capsys, "pick", large, "--top", "1", *options)[0]
        assert ("was measured on" in out) == is_said
        assert "from a cold L2" not in out


@pytest.mark.parametrize("form", ["json", "csv"])
def test_programs_get_the_rows_of_the_library(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    out, _ = _ok(capsys, "pick", PRODUCT, "--top", "3", "--type", "bf16", "--format", form)
    wanted = loopsched.pick(
        gemm(m=512, n=512, k=512), load_arch("h100"), top=3, data_type="bf16"
    ).rows()
    rows = json.loads(out) if form == "json" else list(csv.DictReader(io.StringIO(out)))
    if form == "csv":
        assert rows == [{name: str(value) for name, value in row.items()} for row in wanted]
    else:
        assert rows == wanted


def test_a_workload_is_what_kernels_compute_of_it(
    capsys: pytest.CaptureFixture[str], mixed: str
) -> None:
    """Kernels with other parameters share the columns of one file: no value is under another."""
    out, err = _ok(capsys, "pick", mixed, "--top", "1", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["problem"], row["kernel"]) for row in rows] == [
        ("plain", "triton_conv"),
        ("last", "triton_gemm"),
        ("twice", "triton_gemm"),
        ("heads", "triton_gemm"),
    ]
    assert rows[0].get("group_m") == ""
    assert rows[1]["group_m"] in "18"
    for row in rows:
        assert None not in row
        assert float(row["bound_us"]) <= float(row["low_us"]) <= float(row["estimate_us"])
    assert err == "left out: problem 'grouped': a forward conv2d without groups is needed\n"
    table, _ = _ok(capsys, "pick", mixed, "--top", "1")
    assert len(table.split("\n\n")) == 4
    assert "grouped" in _refused(capsys, "pick", mixed, "--layer", "grouped")


def test_nothing_that_a_kernel_computes_is_bad_input(
    capsys: pytest.CaptureFixture[str], mixed: str
) -> None:
    layers = [word for name in ("last", "twice", "heads") for word in ("--layer", name)]
    assert run(["pick", mixed, "--kernel", "triton_conv", *layers, "--format", "json"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    said = printed.err.splitlines()
    assert said[0] == "left out: problem 'last' and 1 more: a conv2d is needed, not gemm over M N K"
    assert said[1].startswith("left out: problem 'heads': ")
    assert printed.err.endswith("no kernel computes any of its 3 problems\n")


def test_tables_over_rows(capsys: pytest.CaptureFixture[str], mixed: str) -> None:
    """Of a workload: one list for programs, a table for each size of weights once."""
    out, err = _ok(capsys, "pick", mixed, "--dispatch", "40", "--format", "json")
    wanted = loopsched.dispatch(512, 256, load_arch("h100"), most_m=40)
    assert json.loads(out) == wanted.rows()
    assert [line.split("'")[1] for line in err.splitlines()] == ["plain", "grouped", "heads"]
    named, _ = _ok(
        capsys, "pick", mixed, "--dispatch", "40", "--kernel", "triton_gemm", "--format", "json"
    )
    assert named == out
    table, _ = _ok(capsys, "pick", mixed, "--dispatch", "40", "--layer", "last")
    lines = table.splitlines()
    assert lines[0].startswith("rows x 512 x 256, fp16, on h100; regret")
    rows = [line for line in lines if not line.startswith("(left out at")]
    assert [" ".join(line.split()[:3]) for line in rows[-3:]] == [
        "1 to 16",
        "17 to 32",
        "33 to 40",
    ]
    assert "single GEMM" in _refused(capsys, "pick", mixed, "--dispatch", "9", "--layer", "heads")


def test_own_spaces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(SPACE)
    out, _ = _ok(capsys, "pick", PRODUCT, "--space", str(file), "--format", "json")
    rows = json.loads(out)
    assert sorted(row["block_m"] for row in rows) == [64, 128]
    out, _ = _ok(
        capsys, "pick", PRODUCT, "--space", str(file), "--dispatch", "9", "--format", "json"
    )
    given = [{name: row[name] for name in SPACE.split("\n")[0].split(",")} for row in rows]
    wanted = loopsched.dispatch(512, 512, load_arch("h100"), most_m=9, space=given)
    assert json.loads(out) == wanted.rows()
    file.write_text(SPACE.replace("block_k", "blok_k").replace(",3,4,", ",3,0,"))
    said = _refused(capsys, "pick", PRODUCT, "--space", str(file))
    assert f"{file}: space: 2 errors" in said
    assert said.count("no block_k; did you mean 'blok_k'? (columns: block_m block_n blok_k") == 1
    assert "configuration 1: warps must be a whole number from 1, not 0" in said
    file.write_text(SPACE.replace(",3,4,", ",3,,"))
    said = _refused(capsys, "pick", PRODUCT, "--space", str(file))
    assert "configuration 1: warps is empty; a whole number from 1 is needed" in said


def test_a_kernel_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, mixed: str
) -> None:
    best = loopsched.pick(gemm(m=512, n=512, k=512), load_arch("h100"), top=1).best.configuration
    out, err = _ok(capsys, "pick", PRODUCT, "--emit", "triton")
    compile(out, "kernel.py", "exec")
    assert "M, N, K = 512, 512, 512\n" in out
    assert f"STAGES, WARPS = {best['stages']}, {best['warps']}\n" in out
    file = tmp_path / "kernel.py"
    printed, err = _ok(capsys, "pick", PRODUCT, "--emit", "triton", "-o", str(file))
    assert (printed, err) == ("", f"wrote {file}\n")
    assert file.read_text() == out
    assert "one is needed" in _refused(capsys, "pick", mixed, "--emit", "triton")
    _, err = _ok(capsys, "pick", PRODUCT, "-a", "titan_v", "--emit", "triton")
    assert err.startswith("No triton_gemm in fp16 was measured on titan_v")
    conv, _ = _ok(capsys, "pick", mixed, "--layer", "plain", "--emit", "triton")
    assert "N, H, W, C, K = 1, 8, 8, 64, 64\n" in conv


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kernel", "triton_gem"], "unknown kernel 'triton_gem'; did you mean 'triton_gemm'?"),
        (["--kernel", "triton_conv"], "conv2d"),
        (["--type", "int7"], "no rate for data type 'int7'; did you mean 'int8'?"),
        (["--emit", "triton", "--type", "int8"], "no file for data type 'int8'"),
        (["--space", "not_there.csv"], "not_there.csv"),
        (["--arch", "diannao"], "diannao"),
    ],
)
def test_bad_input_is_one_message(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert said in _refused(capsys, "pick", PRODUCT, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--emit", "triton", "--dispatch", "4"],
        ["--top", "2", "--dispatch", "4"],
        ["--explain", "--dispatch", "4"],
        ["--kernel", "clblast_gemm", "--dispatch", "4"],
        ["-o", "x.py"],
        ["--top", "0"],
    ],
)
def test_wrong_usage_is_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    _refused(capsys, "pick", PRODUCT, *arguments, code=2)


@pytest.fixture
def measured(tmp_path: Path) -> str:
    file = tmp_path / "mine.csv"
    file.write_text(MEASURED)
    return str(file)


def test_measured_spaces_are_shown_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, measured: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = validate_choices(measured, "h100")
    out, err = _ok(capsys, "validate", "choices", measured)
    assert all(len(line) <= 80 for line in out.splitlines())
    assert err == ""
    one = found.problems[0]
    row = out.splitlines()[2]
    assert row.startswith("gemm 512x512x512 ")
    shown = f"9.000 us {one['first_1']:.3f} 1.000 1.000 {100 * one['mape']:.1f} %"
    assert one["first_1"] == pytest.approx(12 / 9)
    assert shown in " ".join(row.split())
    assert row.endswith("yes")
    words = " ".join(out.split())
    assert "Measurements below the bound: 0. Left out: 1 row of kind 'dance', which is" in words
    assert words.endswith("The largest set is 100.0 % of its space.")
    group = next(line for line in out.splitlines() if line.startswith("gemm fp16"))
    assert f"{one['first_1']:.3f} {one['first_1']:.3f}" in group


def test_measured_spaces_for_programs(capsys: pytest.CaptureFixture[str], measured: str) -> None:
    found = validate_choices(measured, "h200")
    out, _ = _ok(capsys, "validate", "choices", measured, "--arch", "h200", "--format", "json")
    assert json.loads(out) == {"summary": found.summary, "rows": list(found.rows)}
    out, _ = _ok(capsys, "validate", "choices", measured, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["block_m"], row["time_us"]) for row in rows] == [("64", "9"), ("128", "12")]
    every = _ok(capsys, "validate", "choices", measured, "--kernel", "triton_gemm")[0]
    assert "dance" not in every


def test_measured_spaces_that_are_wrong(capsys: pytest.CaptureFixture[str], measured: str) -> None:
    assert "did you mean 'triton_gemm'" in _refused(
        capsys, "validate", "choices", measured, "--kernel", "triton_gem"
    )
    Path(measured).write_text(MEASURED.replace("512x512x512", "512x512"))
    assert "is not MxNxK" in _refused(capsys, "validate", "choices", measured)


def test_sizes_of_no_kind_are_told_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    for text, said in (
        ("atention:1x32x1:8192x128x0x8", "did you mean 'attention'? (problems: gemm conv2d "),
        (
            "512x6144x4096",
            "says no kind of problem; problems: gemm conv2d batched_gemm attention ",
        ),
    ):
        assert said in _refused(capsys, "pick", text)
    assert "field '8x8x8' is not field=value" in _refused(capsys, "pick", "gemm:8x8x8")


def test_a_known_type_that_a_machine_lacks_is_not_taken_for_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = _refused(capsys, "pick", PRODUCT, "--arch", "a100", "--type", "fp8")
    assert "no rate for data type 'fp8'; allowed: fp32 tf32 " in said


def test_problems_of_measured_files_may_be_written_as_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(MEASURED)
    found = validate_choices(file, "h100")
    file.write_text(MEASURED.replace("512x512x512", '"gemm:m=512,n=512,k=512"'))
    same = validate_choices(file, "h100")
    assert [one | {"problem": ""} for one in found.problems] == [
        one | {"problem": ""} for one in same.problems
    ]
    file.write_text(MEASURED.split("gemm,")[0] + "gemm,512x512x512,fp16,64,64,32,3,4,8,\n")
    with pytest.raises(loopsched.InputError, match=r"mine\.csv: no row has a time"):
        validate_choices(file, "h100")
