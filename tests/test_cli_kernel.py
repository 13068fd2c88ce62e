"""``kernel preset`` and ``kernel mapped``: what they print, and their complaints."""

from __future__ import annotations

import json

import pytest

from loopsched.base.units import scaled
from loopsched.cli import run

GEMM = (
    "gemm:m=1024,n=1024,k=1024",
    "M:1024@block_y N:1024@block_x M:32@thread_y N:32@thread_x K:1024 K:32",
)
TILES = ("--read", "A=shared@K", "--read", "B=shared@K", "--guard", "load")


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run(["kernel", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    found = json.loads("\n".join(lines(capsys, *arguments, "--format", "json")))
    assert isinstance(found, list)
    return found


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = rows(capsys, "preset")
    assert listed[0]["preset"] == "direct"
    assert "block=16" in str(listed[0]["options"])
    text = lines(capsys, "preset")
    assert any(line.startswith("layer_base") for line in text)


def test_a_preset_is_described(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = lines(capsys, "preset", "layer_base", "layer=1", "batch=1000", "--arch", "v100")
    assert max(map(len, text)) <= 80
    page = " ".join(" ".join(text).split())
    assert "396,000 across the edge of the output (16.5 %)" in page
    assert "1,000 x 12 x 25 = 300,000 blocks of 16 x 16 x 1 threads" in page
    assert "57.4 % of their bytes useful" in page


def test_what_makes_a_preset_another_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "preset", "filter_coarse", "outputs=apart"]) == 0
    assert capsys.readouterr().out.startswith("filter_coarse (apart) on titan_v")


def test_a_preset_of_two_kernels_has_two_rows(capsys: pytest.CaptureFixture[str]) -> None:
    unroll, multiply = rows(capsys, "preset", "layer_unroll", "batch=7")
    assert (unroll["kernel"], unroll["launches"]) == ("unroll", 7)
    assert (multiply["kernel"], multiply["launches"]) == ("multiply", 7)
    assert multiply["flops"] == 2 * 12 * 49 * 66 * 66
    # Of each of two tiles a warp stores 2 rows, loads 32 of B, and those of A two by two.
    passes = 137 * 32 * 2 * (2 + 32 + 16)
    assert multiply["intensity_shared"] == pytest.approx(2 * 12 * 49 * 66 * 66 / (128 * passes))
    assert unroll["intensity_shared"] is None  # it uses none


def test_what_a_kernel_does_not_use_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = lines(capsys, "preset", "gemm_naive")
    assert text[0].startswith("gemm_naive (gemm_naive16) on titan_v, fp32: M:1024@block_y")
    page = "\n".join(text)
    assert "passes" not in page
    assert "\nshared " not in page
    assert "  1,024  " in page  # times that a thread loads
    text = lines(capsys, "preset", "filter_shared")
    assert text[0].startswith("filter_shared on titan_v")
    page = "\n".join(text)
    assert "  passes" in page
    assert "passes: cycles" in page
    assert "\nshared " in page


def test_times_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (warm,) = rows(capsys, "preset", "direct", "--caches", "warm")
    (cold,) = rows(capsys, "preset", "direct")
    assert float(str(warm["time_s"])) < float(str(cold["time_s"]))
    assert "H200" in str(cold["basis"])
    unroll, multiply = rows(capsys, "preset", "layer_unroll", "batch=7")
    times = [float(str(row["time_s"])) for row in (unroll, multiply)]
    text = lines(capsys, "preset", "layer_unroll", "batch=7")
    assert max(map(len, text)) <= 80
    assert sum(line.startswith("time ") for line in text) == 2
    assert sum("launched 7 times" in line for line in text) == 2
    (total,) = [line.split() for line in text if line.startswith("total")]
    assert float(total[1]) == pytest.approx(7e6 * sum(times), rel=1e-3)
    assert total[2] == "us"


def test_a_schedule_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rows(capsys, "mapped", *GEMM, *TILES, "--arch", "h200", "--unrolled")
    assert row["load_sectors"] == 8388608
    assert row["shared_bytes"] == 8192
    (padded,) = rows(capsys, "mapped", *GEMM, "--read", "A=shared@K,pitch=33", *TILES[2:])
    assert padded["shared_bytes"] == 4 * (32 * 33 + 32 * 32)
    text = lines(capsys, "mapped", *GEMM, *TILES, "--registers", "64")
    assert any("64 registers per thread, 8.000 KiB" in line for line in text)
    traffic = next(line.split() for line in text if line.startswith("L2 "))
    (row,) = rows(capsys, "mapped", *GEMM, *TILES, "--registers", "64")
    assert traffic[1:5] == [
        *scaled(32 * int(str(row["l2_read_sectors"])), "B").split(),
        *scaled(32 * int(str(row["l2_write_sectors"])), "B").split(),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("preset", "dirct"), "did you mean 'direct'"),
        (("preset", "direct", "size"), "option 'size' is not NAME=VALUE, such as batch=100"),
        (("preset", "direct", "size="), "option 'size=' is not NAME=VALUE"),
        (("preset", "direct", "size=x"), "size is 'x'; a whole number such as 32 is needed"),
        (("preset", "direct", "unrolled=7"), "unrolled is 7; true or false is needed"),
        (("preset", "filter_coarse", "outputs=7"), "a word such as adjacent is needed"),
        (("mapped", *GEMM, "--read", "A=shard"), "did you mean 'shared'"),
        (("mapped", *GEMM, "--read", "A=shared@Q"), "no time loop over 'Q'"),
        (("mapped", *GEMM, "--read", "A=shared@K", "--read", "A=l2"), "'A' is given twice"),
        (("mapped", *GEMM, "--read", "C=l2"), "no such tensor is read"),
        (("mapped", *GEMM, "--layout", "A=M"), "each axis once is needed"),
        (("mapped", GEMM[0], GEMM[1].replace("thread_x", "thread_w")), "no unit 'thread_w'"),
        (("mapped", *GEMM, "--read", "A=global@K"), "only shared memory has a place"),
        (("mapped", *GEMM, "--registers", "900"), "registers per thread; at most 255"),
        (("mapped", GEMM[0], "M:1024 N:1024 K:1024@thread_x"), "threads cannot run it"),
    ],
)
def test_complaints(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert run(["kernel", *arguments]) == 3
    captured = capsys.readouterr()
    assert said in captured.err
    assert not captured.out
