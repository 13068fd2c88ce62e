"""``loopsched kernel library``: what it prints and what it refuses."""

from __future__ import annotations

import json

import pytest

from loopsched import conv_estimate, gemm, gemm_estimate, load_arch, load_workload
from loopsched.cli import run


def test_one_product(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["kernel", "library", "gemm:m=7680,n=16,k=2560", "--arch", "v100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "m7680 n16 k2560 on v100, fp32"
    assert max(map(len, lines)) <= 80
    said = gemm_estimate(gemm(m=7680, n=16, k=2560), load_arch("v100"))
    text = " ".join(" ".join(lines).split())
    assert f"kernel {said.kernel} time {1e6 * said.time_s:.1f} us estimated" in text
    assert said.basis in text


def test_a_workload_is_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["kernel", "library", "resnet50", "--arch", "v100", "--type", "fp16"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["#", "problem", "kernel", "time", "low", "high", "at", "least"]
    assert len([line for line in lines if " us " in line]) == len(
        load_workload("resnet50").problems
    )
    # Both bases are named: convolutions, and the product at the end.
    first, second = (line for line in lines if line.startswith("- "))
    assert "forward layers held out" in first
    assert "GEMMs held out" in second


def test_rows_are_the_librarys(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--layer", "3", "--algorithm", "IMPLICIT_GEMM", "--arch", "m40"]
    assert run(["kernel", "library", "resnet50", *options, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    layer = load_workload("resnet50").problems[3]
    said = conv_estimate(layer, load_arch("m40"), algorithm="IMPLICIT_GEMM")
    assert (row["layer"], row["problem"], row["kernel"]) == (3, layer.name, said.kernel)
    for name in ("time_s", "low_s", "high_s", "time_bound_s", "bound_by", "basis"):
        assert row[name] == getattr(said, name)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["resnet50", "--algorithm", "WINOGRAD"],
            3,
            "problem 'conv1': WINOGRAD needs a 3x3",
        ),
        (["resnet50", "--algorithm", "winograd"], 3, "did you mean 'WINOGRAD'?"),
        (["bert_base", "--algorithm", "FFT"], 3, "algorithms are for convolutions only"),
        (["vgg16", "--type", "fp8"], 3, "'titan_v': no rate for data type 'fp8'"),
        (["vgg16", "--arch", "diannao"], 3, "'diannao' has no 'gpu' part"),
        (["vgg17"], 3, "did you mean 'vgg16'?"),
    ],
)
def test_what_is_refused(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kernel", "library", *arguments]) == code
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out
