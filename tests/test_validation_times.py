"""Bounds and estimates against measured times: reading, bounds, statistics."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched.base.csv_text import Value, parsed
from loopsched.base.errors import InputError, ProblemError
from loopsched.base.resources import resource_names
from loopsched.gpu.library.conv_layer import layer_of
from loopsched.gpu.library.tiled import Tiling
from loopsched.gpu.result import Estimate
from loopsched.machines.arch_file import load_arch
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.validation import times
from loopsched.validation.time_files import (
    GPUS,
    TimeRow,
    read_times,
    times_in,
)
from loopsched.validation.time_summary import roofline
from loopsched.validation.times import validate_times

MEASUREMENTS = Path(__file__).parent.parent / "measurements"
GEMM = "gpu,precision,m,n,k,a_t,b_t,time_us,anomaly\n"
CONV = (
    "gpu,w,h,c,n,k,filter_w,filter_h,pad_w,pad_h,stride_w,stride_h,pass,algo,time_us\n"
    "V100,8,6,3,2,5,3,1,1,0,2,1,{pass_},{algo},40\n"
)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """Let estimates be 100 us a GMAC, and note what was asked."""
    asked: list[dict[str, object]] = []

    def library_estimate(problem: Problem, arch: object, **how: object) -> Estimate:
        asked.append({"problem": problem, "arch": arch, **how})
        if how["algorithm"] == "FFT":
            raise ProblemError("FFT cannot stride\nnor dilate")
        time_s = problem.macs * 1e-13
        return Estimate(time_s, time_s / 2, 1.5 * time_s, time_s / 10, "DRAM", (), "one kernel")

    monkeypatch.setattr(times, "library_estimate", library_estimate)
    return asked


def parse_times(text: str, where: str = "times") -> tuple[TimeRow, ...]:
    return times_in(parsed(text, where))


def product_row(time_us: float, m: int = 1000, **more: Value) -> dict[str, Value]:
    """Build a row whose estimate is m / 10 microseconds."""
    return {"gpu": "V100", "m": m, "n": 1000, "k": 1000, "time_us": time_us, **more}


def test_shipped_files() -> None:
    assert set(resource_names("measurements", ".csv")) == {
        "deepbench_conv_measured",
        "deepbench_gemm_measured",
        "library_gemm_measured",
        "titan_v_measured",
    }
    for name, n_rows in (("deepbench_conv_measured", 852), ("deepbench_gemm_measured", 466)):
        with (MEASUREMENTS / f"{name}.csv").open(newline="") as sheet:
            raw = list(csv.DictReader(sheet))
        rows = read_times(name)
        assert len(rows) == len(raw) == n_rows
        for row, line in zip(rows, raw, strict=True):
            assert row.time_us == float(line["time_us"])
            assert row.arch == {"V100": "v100", "TitanXp": "titan_xp", "M40": "m40"}[line["gpu"]]
            width = 4 if line["precision"] == "fp32" else 2
            assert {tensor.element_bytes for tensor in row.problem.tensors} == {width}
            assert (row.algorithm or "") == line.get("algo", "")
            assert not row.apart


def test_a_convolution_by_hand() -> None:
    (row,) = parse_times(CONV.format(pass_="bwd_params", algo="winograd"))
    # Width 8 with one of padding on both sides, filter 3, stride 2: 4 outputs; height 6.
    assert row.problem.size == {"N": 2, "K": 5, "C": 3, "P": 6, "Q": 4, "R": 1, "S": 3}
    assert row.problem.output == "weight"
    assert (row.kind, row.pass_, row.algorithm, row.precision) == (
        "conv", "bwd_params", "WINOGRAD", "fp32"
    )  # fmt: skip
    for short, written in (("fwd", "output"), ("", "output"), ("bwd_inputs", "input")):
        (row,) = parse_times(CONV.format(pass_=short, algo=""))
        assert (row.problem.output, row.algorithm) == (written, None)


def test_one_column_for_both_paddings_and_strides() -> None:
    text = "w,h,c,n,k,filter_w,filter_h,pad,stride,time_us\n9,9,1,1,1,3,3,1,2,5\n"
    (row,) = parse_times(text)
    assert (row.problem.size["P"], row.problem.size["Q"], row.arch) == (5, 5, None)


def test_a_product_by_hand() -> None:
    (row,) = parse_times(GEMM + "m40,FP16_mixed,2,3,5,1,0,7,\n")
    assert row.problem.size == {"M": 2, "N": 3, "K": 5}
    assert (row.a_transposed, row.b_transposed, row.data_type) == (True, False, "fp16")
    assert (row.pass_, row.kind, row.arch) == ("", "gemm", "m40")


def test_report_003s_letters() -> None:
    rows = read_times("titan_v_measured")
    fully = next(row for row in rows if row.values["gemm_n"] == 25088)
    # As DeepBench ran it, 25,088 outputs; and as the report's model takes it, 25,088 inputs.
    assert fully.problem.size == {"M": 25088, "N": 64, "K": 4096}
    assert fully.report_problem.size == {"M": 64, "N": 4096, "K": 25088}
    assert {row.arch for row in rows} == {"titan_v"}
    assert {(row.precision, row.data_type) for row in rows} == {("half (32)", "fp16_as_fp32")}
    apart = [row for row in rows if row.apart]
    assert len(apart) == 5
    assert all("Kernel Size Analysis" in str(row.values["section"]) for row in apart)


def test_a_problem_as_text() -> None:
    rows = parse_times(
        "problem,gpu,precision,time_us\n"
        '"gemm:m=8,n=4,k=2",T4,,3\n'
        "deepbench_conv#0,T4,fp16_mixed,300\n"
    )
    assert rows[0].problem.size == {"M": 8, "N": 4, "K": 2}
    assert rows[0].problem.tensor("A").element_bytes == 4
    assert (rows[1].kind, rows[1].problem.tensor("input").element_bytes) == ("conv", 2)


def test_a_product_with_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns as in the shipped file of a Triton product; the estimate gets the tiles."""
    asked: list[tuple[object, ...]] = []

    def tiled_estimate(problem: Problem, arch: object, *how: object) -> Estimate:
        asked.append((problem.size, *how))
        return Estimate(2e-6, 1e-6, 3e-6, 1e-6, "L2")

    monkeypatch.setattr(times, "tiled_estimate", tiled_estimate)
    line = "M,N,K,tile_m,tile_n,tile_k,group_m,time_us,registers,block_threads,split_k\n"
    rows = parse_times(line + "64,32,16,8,4,2,3,1,72.0,128.0,\n")
    assert rows[0].kind == "tiled"
    found = validate_times([rows[0].values], "h200")
    tiling = Tiling((8, 4, 2), group_m=3, split_k=1, stages=3, threads=128, registers=72)
    assert asked == [({"M": 64, "N": 32, "K": 16}, tiling, "tf32")]
    assert found.rows[0]["estimate_us"] == pytest.approx(2)
    with pytest.raises(InputError, match=r"2 errors\n.*tile_k is 0; .*\n.*split_k is -1"):
        parse_times(line + "64,32,16,8,4,0,3,1,72,128,-1\n")
    with pytest.raises(InputError, match="no column 'tile_m'"):
        parse_times("m,n,k,tile_n,tile_k,group_m,time_us\n1,1,1,1,1,1,1\n")
    text = "problem,time_us,tile_m,tile_n,tile_k,group_m\ndeepbench_conv#0,5,8,8,8,1\n"
    with pytest.raises(InputError, match="conv2d with tiles; only GEMMs"):
        parse_times(text)


def test_hand_written_kernels() -> None:
    rows = read_times("h200_kernels")
    assert {row.kind for row in rows} == {"kernel"}
    (direct,) = [row for row in rows if row.values["case"] == "direct S=32 K=3 Ni=32 Nn=32 b=8"]
    assert (direct.pass_, direct.algorithm) == ("", None)
    assert direct.problem.macs == 32 * 32 * 32 * 32 * 3 * 3
    assert direct.kernel is not None
    assert direct.kernel.registers == direct.values["registers"]
    found = validate_times([dict(direct.values)], "h200").rows[0]
    # Measured: 50 us.
    assert isinstance(found["estimate_us"], float)
    assert 10 < found["estimate_us"] < 250
    with pytest.raises(
        InputError, match=r"2 errors\n.*time_us is missing.*\n.*is not a known kernel"
    ):
        parse_times("case,time_us\ndirec S=3,\n")


def test_names_of_gpus() -> None:
    plain = ("V100", "P100", "T4", "M40", "H200", "A100", "H100", "L40S", "B200")
    known = {name: name.lower() for name in plain}
    known |= {"1080Ti": "gtx_1080ti", "TitanXp": "titan_xp", "TitanV": "titan_v"}
    known |= {"TitanX_Pascal": "titan_x_pascal", "TitanX_Maxwell": "titan_x_maxwell"}
    assert sorted(known) == sorted(GPUS)
    for name, arch in known.items():
        for word in (name, name.lower(), name.upper(), arch, name.replace("Titan", "Titan ")):
            assert read_times([product_row(1.0, gpu=word)])[0].arch == arch


def test_bom_and_line_ends() -> None:
    plain = parse_times(GEMM + "V100,,4,4,4,0,0,7,\n")
    crlf = (GEMM + "V100,,4,4,4,0,0,7,\n").replace("\n", "\r\n")
    assert parse_times(crlf) == plain


# Text of the file, and what the message must say.
BAD: dict[str, tuple[str, list[str]]] = {
    "empty": ("", ["is empty; a line of column names"]),
    "blank": ("\n \n", ["is empty"]),
    "no rows": (GEMM, ["no rows below the column names"]),
    "saved results": ('{"layer": 0, "time_s": 1}\n', ["holds JSON; a file of comma-separated"]),
    "unknown columns": (
        "a,b\n1,2\n", ["no column 'time_us'", "needed are: problem; or case; or w h c"]
    ),
    "missing": (
        "gpu,m,nn,time\nV100,1,1,1\n",
        ["3 errors", "no column 'time_us'; did you mean 'time'?", "no column 'n'; did you mean "
         "'nn'?", "no column 'k'"],
    ),
    "missing padding": (
        "w,h,c,n,k,filter_w,filter_h,stride,time_us\n8,8,1,1,1,3,3,1,5\n",
        ["no column 'pad_w'", "no column 'pad_h'"],
    ),
    "twice": ("m,n,k,time_us,m\n1,1,1,1,1\n", ["column 'm' occurs more than once"]),
    "quote": ('m,n,k,time_us\n"1,1,1,1\n', ["not CSV"]),
    "several": (
        GEMM
        + "V100,,x,1,1,0,0,1,\nV100,,1,0,1,0,0,-3,\nV100,1,1\nV100,,1,1,1,2,0,0,\n"
        + "V101,fp31,1,1,1,0,0,nan,\n",
        ["9 errors", "line 2: m is 'x'; a whole number from 1", "line 3: time_us is -3.0",
         "line 3: n is 0", "line 4: 3 values, but 9 columns", "line 5: time_us is 0",
         "line 5: a_t is 2", "line 6: time_us is missing", "line 6: gpu is 'V101'; did you mean "
         "'V100'?", "line 6: precision is 'fp31'; did you mean 'fp32'?"],
    ),
    "huge": (
        GEMM + "V100,,99999999999,1,1,0,0,1e300,\nV100,," + "9" * 4000 + ",1,1,0,0,1,\n",
        ["line 2: m is 99999999999", "line 2: time_us is 1e+300", "line 3: m is '999"],
    ),
    "product": (
        GEMM + "V100,,2147483647,2147483647,2147483647,0,0,1,\n",
        ["line 2: ", "2**62 multiply-accumulates"],
    ),
    "report": (
        "w,h,c,n,k,filter_w,filter_h,stride,pad,time_us,gemm_m\n8,8,1,1,1,3,3,1,0,5,x\n",
        ["gemm_m is 'x'; a whole number from 1", "no column 'gemm_k'", "no column 'gemm_n'"],
    ),
    "kind": ("kind,m,n,k,time_us\nconvolution,1,1,1,1\n", ["kind is 'convolution'; did you mean"]),
    "text": ("problem,time_us\ngemm:m=8,5\n", ["line 2:", "n"]),
    "groups": (
        'problem,time_us\n"conv2d:c=4,k=4,h=4,w=4,r=1,s=1,groups=2",5\n',
        ["line 2: problem is a grouped convolution"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str) -> None:
    text, parts = BAD[name]
    with pytest.raises(InputError) as caught:
        parse_times(text, "bad.csv")
    assert str(caught.value).startswith("bad.csv: ")
    for part in parts:
        assert part in str(caught.value)


def test_algorithm_pass_and_output_size() -> None:
    text = CONV.format(pass_="fw", algo="WINOGRADE") + "V100,2,2,1,1,1,3,5,0,0,1,1,,,9\n"
    with pytest.raises(InputError) as caught:
        parse_times(text)
    assert len(caught.value.problems) == 4
    said = str(caught.value)
    assert "line 2: pass is 'fw'; did you mean 'fwd'?" in said
    assert "line 2: algo is 'WINOGRADE'; did you mean 'WINOGRAD'?" in said
    # An output would be smaller than one: the filter is larger than the image, both ways.
    assert "line 3: h is 2 (2 with padding), but the filter covers 5" in said
    assert "line 3: w is 2 (2 with padding), but the filter covers 3" in said


def test_rows_that_are_mappings() -> None:
    assert read_times([product_row(2)])[0].time_us == 2
    with pytest.raises(InputError, match="row 1: time_us is 0"):
        read_times([product_row(2), product_row(0)])
    with pytest.raises(InputError, match="rows: no rows"):
        read_times([])


# Bounds.


@given(
    h=st.integers(1, 7), w=st.integers(1, 7), r=st.integers(1, 4), s=st.integers(1, 4),
    stride=st.integers(1, 3), pad=st.integers(0, 4), dilation=st.integers(1, 2),
)  # fmt: skip
def test_multiplications_that_touch_something_stored(
    h: int, w: int, r: int, s: int, stride: int, pad: int, dilation: int
) -> None:
    try:
        problem = conv2d(
            n=2, c=3, k=2, h=h, w=w, r=r, s=s, stride=stride, padding=pad, dilation=dilation
        )
    except ProblemError:
        return
    size = problem.size
    inside = sum(
        0 <= p * stride + i * dilation - pad < h and 0 <= q * stride + j * dilation - pad < w
        for p, q, i, j in product(
            range(size["P"]), range(size["Q"]), range(size["R"]), range(size["S"])
        )
    )
    assert layer_of(problem).inner_macs == 2 * 3 * 2 * inside


def test_roofline_by_hand() -> None:
    arch = load_arch("v100")
    assert roofline(gemm(m=1, n=1, k=1000), arch) == pytest.approx(4 * 2001 / 900e9)
    assert roofline(gemm(m=2048, n=2048, k=2048), arch) == pytest.approx(
        2048**3 / (80 * 64 * 1.53e9)
    )


@pytest.mark.parametrize("algorithm", ["known", "any"])
@pytest.mark.parametrize("name", resource_names("measurements", ".csv"))
def test_nothing_measured_is_below_its_bound(name: str, algorithm: Literal["known", "any"]) -> None:
    found = validate_times(name, algorithm=algorithm)
    assert found.summary["bound_violations"] == 0
    for row in found.rows:
        bound, said, low, high = (
            row[key] for key in ("bound_us", "estimate_us", "low_us", "high_us")
        )
        assert isinstance(bound, float)
        assert isinstance(said, float)
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert 0 < bound <= said
        assert bound <= low < high


# Statistics, with estimates known beforehand.


def test_summary_by_hand(said: list[dict[str, object]]) -> None:
    # Estimates are 100, 200 and 400 us; measured, a half, the same, twice.
    rows = [product_row(50.5), product_row(200, 2000), product_row(800, 4000)]
    found = validate_times(rows)
    summary = found.summary
    assert summary["rows"] == 3
    assert summary["mape"] == pytest.approx((49.5 / 50.5 + 0 + 0.5) / 3)
    assert summary["median_error"] == pytest.approx(0.5)
    assert summary["geometric_mean_ratio"] == pytest.approx((100 / 50.5 / 2) ** (1 / 3))
    assert summary["rank_correlation"] == pytest.approx(1)
    assert summary["bound_violations"] == 0
    # From half to one and a half of the estimate: 50.5 and 200, not 800.
    assert summary["within_spread"] == pytest.approx(2 / 3)
    assert [row["error"] for row in found.rows] == [
        pytest.approx(49.5 / 50.5), pytest.approx(0), pytest.approx(-0.5)
    ]  # fmt: skip
    first = found.rows[0]
    assert list(first)[:5] == ["gpu", "m", "n", "k", "time_us"]
    assert (first["bound_us"], first["estimate_us"]) == (pytest.approx(10), pytest.approx(100))
    assert (first["low_us"], first["high_us"]) == (pytest.approx(50), pytest.approx(150))
    assert (first["bound_by"], first["kernel"], first["apart"]) == ("DRAM", "one kernel", None)
    assert [len(str(one["arch"])) > 0 for one in said] == [True] * 3


@pytest.mark.parametrize(("time_us", "share"), [(49, 0), (51, 1), (149, 1), (151, 0)])
def test_within_the_spread_on_both_sides(
    said: list[dict[str, object]], time_us: float, share: float
) -> None:
    """The estimate is 100 us, from 50 to 150."""
    assert validate_times([product_row(time_us)]).summary["within_spread"] == share


def test_violations_groups_and_rows_apart(said: list[dict[str, object]]) -> None:
    rows = [
        product_row(9.5),  # the bound is 10
        product_row(100, gpu="M40"),
        product_row(100, precision="fp16_mixed"),
        product_row(1, anomaly="kernel-size block: slow;quantised>=7%"),
    ]
    summary = validate_times(rows).summary
    assert (summary["rows"], summary["rows_apart"]) == (3, 1)
    assert summary["bound_violations"] == 1
    groups = summary["groups"]
    assert isinstance(groups, list)
    assert [(g["kind"], g["gpu"], g["precision"], g["pass"], g["rows"]) for g in groups] == [
        ("gemm", "V100", "fp32", "", 1),
        ("gemm", "M40", "fp32", "", 1),
        ("gemm", "V100", "fp16_mixed", "", 1),
    ]
    apart = summary["apart"]
    assert isinstance(apart, list)
    assert [(one["reason"], one["rows"], one["bound_violations"]) for one in apart] == [
        ("kernel-size block: slow", 1, 1)
    ]
    worst = summary["worst"]
    assert isinstance(worst, list)
    assert worst[0]["place"] == "row 0"
    assert worst[0]["reason"].startswith("measured below the bound, which takes fp32: ")
    assert worst[0]["reason"].endswith("estimate bound by DRAM, one kernel")


def test_worst_rows_are_the_furthest_off_either_way(said: list[dict[str, object]]) -> None:
    rows = [product_row(90), product_row(25), product_row(1000)]
    summary = validate_times(rows, worst=2).summary
    worst = summary["worst"]
    assert isinstance(worst, list)
    # A tenth is further off than four times; an error of 300 % is not more than one of -90 %.
    assert [row["time_us"] for row in worst] == [1000, 25]
    small = validate_times([product_row(3, 30)]).summary["worst"]
    assert isinstance(small, list)
    assert "rounded to whole us (up to 17 %)" in small[0]["reason"]


def test_algorithm_known_or_not(said: list[dict[str, object]]) -> None:
    rows = times_rows = [dict(parse_times(CONV.format(pass_="fwd", algo="WINOGRAD"))[0].values)]
    known = validate_times(rows).rows[0]
    asked = [one["algorithm"] for one in said]
    any_ = validate_times(times_rows, algorithm="any").rows[0]
    assert asked == ["WINOGRAD"]
    assert [one["algorithm"] for one in said[1:]] == [None]
    macs = 2 * 5 * 3 * 6 * 4 * 3
    assert known["bound_us"] == any_["bound_us"] == pytest.approx(macs * 1e-13 / 10 * 1e6)
    with pytest.raises(InputError, match="algorithm is 'best'; "):
        validate_times(rows, algorithm="best")  # type: ignore[arg-type]


def test_each_problem_is_asked_once(said: list[dict[str, object]]) -> None:
    validate_times([product_row(3), product_row(4), product_row(5, gpu="T4")])
    assert len(said) == 2


def test_a_label_that_cannot_be_right(said: list[dict[str, object]]) -> None:
    """The row counts, as one whose algorithm is not known, and says why."""
    rows = [
        dict(parse_times(CONV.format(pass_="fwd", algo=algo))[0].values) for algo in ("FFT", "")
    ]
    found = validate_times(rows)
    doubted, unknown = found.rows
    assert doubted["remark"] == "FFT cannot stride\nnor dilate: treated as unknown"
    assert unknown["remark"] is None
    assert doubted["estimate_us"] == unknown["estimate_us"]
    assert doubted["algo"] == "FFT"
    assert [one["algorithm"] for one in said] == ["FFT", None]
    assert found.summary["rows_remarked"] == 1
    worst = found.summary["worst"]
    assert isinstance(worst, list)
    assert worst[0]["reason"].startswith("algorithm FFT is impossible, treated as unknown; ")
    with pytest.raises(InputError, match=r"rows: 2 errors\n  row 0: .*fp64.*\n  row 1: .*fp64"):
        validate_times([product_row(3, precision="fp64", gpu="M40")] * 2, algorithm="any")


def test_columns_of_the_file_are_never_lost(said: list[dict[str, object]]) -> None:
    """Its own ``error`` is kept beside ours, and so is what a second run adds to the first."""
    row = product_row(100, error="mine", file_error="too", note="kept")
    found = validate_times([row]).rows[0]
    assert (found.get("file_error"), found.get("file_file_error")) == ("too", "mine")
    assert (found["error"], found["note"]) == (pytest.approx(0), "kept")
    again = validate_times([found]).rows[0]
    assert again["file_bound_us"] == again["bound_us"] == found["bound_us"]
    assert {"too", "mine"} <= set(again.values())


def test_choice_of_machine(said: list[dict[str, object]]) -> None:
    nameless = {name: v for name, v in product_row(10).items() if name != "gpu"}
    with pytest.raises(InputError, match=r"1 rows name no GPU, the first at row 0; .*1080Ti"):
        validate_times([nameless])
    validate_times([nameless], "t4")
    validate_times([product_row(10)], load_arch("p100"))
    assert [getattr(one["arch"], "name", "") for one in said] == ["t4", "p100"]
    with pytest.raises(InputError, match="rows are of V100 M40; choose some with gpu=NAME"):
        validate_times([product_row(10), product_row(10, gpu="M40")], "v100")
    one = validate_times([product_row(10), product_row(10, gpu="M40")], "m40", where={"gpu": "m40"})
    assert one.summary["rows"] == 1


def test_where(said: list[dict[str, object]]) -> None:
    rows = [product_row(10), product_row(10, 2000, anomaly="odd")]
    assert validate_times(rows, where={"m": "2000"}).rows[0]["m"] == 2000
    assert validate_times(rows, where={"anomaly": ""}).rows[0]["m"] == 1000
    rows.append(product_row(10, 3000, anomaly="Odd"))
    assert len(validate_times(rows, where={"anomaly": "odd "}).rows) == 2
    with pytest.raises(InputError, match="no column 'pas'"):
        validate_times(rows, where={"pas": "fwd"})
    with pytest.raises(InputError, match="no row with m=3"):
        validate_times(rows, where={"m": "3"})


def test_report_003_beside(said: list[dict[str, object]]) -> None:
    """The report prints 62,190 us for its first product, 1,199 us measured."""
    found = validate_times("titan_v_measured", where={"gemm_n": "25088", "gemm_m": "64"})
    report_us = found.rows[0]["report003_us"]
    assert isinstance(report_us, float)
    assert round(report_us) == 62190
    assert found.summary["report003_mape"] == pytest.approx(62190 / 1199 - 1, rel=1e-4)
    # 64 fp32 lanes of 80 SMs at 1455 MHz.
    assert found.rows[0]["roofline_us"] == pytest.approx(64 * 25088 * 4096 / (80 * 64 * 1455))
