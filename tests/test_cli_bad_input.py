"""Malformed files and arguments, from the command line: one message, status 3."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopsched.cli import run

LAYER = '{"op": "gemm", "m": 4, "n": 3, "k": 2}'
CONV = '{"op": "conv2d", "c": 8, "k": 8, "h": 8, "w": 8, "r": 3, "s": 3%s}'


def layers(*texts: str) -> str:
    return '{"layers": [' + ", ".join(texts) + "]}"


def conv(more: str) -> str:
    return layers(CONV % f", {more}")


# Contents of the file, and what the message must name: place, value, remedy.
WORKLOADS: dict[str, tuple[str | bytes, list[str]]] = {
    "empty": ("", ["is empty"]),
    "blank": (" \n", ["is empty"]),
    "binary": (bytes(range(256)), ["not UTF-8 text", "byte"]),
    "utf16": ("{}".encode("utf-16"), ["not UTF-8 text"]),
    "truncated": ('{"layers": [{"op": "gemm", "m":', ["line 1", "not JSON"]),
    "trailing": (layers(LAYER) + "x", ["line 1", "not JSON"]),
    "deep": ("[" * 100_000, ["nested too deeply"]),
    "list": (f"[{LAYER}]", ["a workload is an object"]),
    "number": ("3", ["found 3"]),
    "no layers": ("{}", ["'layers'"]),
    "no layer": (layers(), ["at least one"]),
    "layers not a list": ('{"layers": {}}', ["a list of layers"]),
    "layer not an object": (layers("7"), ["layer 0", "found 7"]),
    "misspelt key": ('{"layer": [' + LAYER + "]}", ["'layer'", "did you mean 'layers'?"]),
    "key twice": ('{"layers": [{"op": "gemm", "m": 1, "m": 2, "n": 1, "k": 1}]}', ["more than"]),
    "no op": (layers('{"m": 1}'), ["layer 0", "no 'op'"]),
    "op misspelt": (layers('{"op": "gem", "m": 1}'), ["'gem'", "did you mean 'gemm'?"]),
    "op a number": (layers('{"op": 3}'), ["op is 3"]),
    "field misspelt": (layers('{"op": "gemm", "m": 1, "n": 1, "kk": 1}'), ["'kk'"]),
    "field missing": (layers('{"op": "gemm", "m": 1, "n": 1}'), ["no 'k'"]),
    "zero": (layers('{"op": "gemm", "m": 0, "n": 1, "k": 1}'), ["m is 0", ">= 1"]),
    "negative": (layers('{"op": "gemm", "m": -4, "n": 1, "k": 1}'), ["m is -4"]),
    "NaN": (layers('{"op": "gemm", "m": NaN, "n": 1, "k": 1}'), ["m is nan"]),
    "infinite": (layers('{"op": "gemm", "m": 1e999, "n": 1, "k": 1}'), ["m is inf"]),
    "fraction": (layers('{"op": "gemm", "m": 1.5, "n": 1, "k": 1}'), ["m is 1.5"]),
    "text": (layers('{"op": "gemm", "m": "4", "n": 1, "k": 1}'), ["m is '4'"]),
    "boolean": (layers('{"op": "gemm", "m": true, "n": 1, "k": 1}'), ["m is True"]),
    "null": (layers('{"op": "gemm", "m": null, "n": 1, "k": 1}'), ["m is None"]),
    "huge": (layers('{"op": "gemm", "m": 1' + "0" * 400 + ', "n": 1, "k": 1}'), ["m is a number"]),
    "huge product": (layers('{"op": "gemm", "m": 1000000000, "n": 1000000000, "k": 1000000000}'),
                     ["2**62"]),
    "same name": (layers('{"op": "gemm", "m": 1, "n": 1, "k": 1, "name": "a"}',
                         '{"op": "gemm", "m": 2, "n": 1, "k": 1, "name": "a"}'), ["same name"]),
    "count 0": (layers('{"op": "gemm", "m": 1, "n": 1, "k": 1, "count": 0}'), ["count is 0"]),
    "large filter": (conv('"padding": 0').replace('"r": 3', '"r": 9'), ["9", "8"]),
    "h and p": (conv('"p": 6'), ["h", "p"]),
    "stride 0": (conv('"stride": 0'), ["stride is 0"]),
    "stride of three": (conv('"stride": [1, 1, 1]'), ["stride"]),
    "negative padding": (conv('"padding": -1'), ["padding is -1"]),
    "odd groups": (conv('"groups": 3'), ["3", "8"]),
    "unknown pass": (conv('"pass": "sideways"'), ["'sideways'", "forward"]),
    "unknown type": (conv('"element_bytes": "fp33"'), ["'fp33'", "did you mean 'fp32'?"]),
    "several": (layers('{"op": "gemm", "m": 0, "n": 1, "k": 1}', '{"op": "x"}'), ["2 errors"]),
}  # fmt: skip

GOOD_ARCH = """\
name: mine
levels:
  - {name: DRAM, kind: memory, bandwidth: 100 GB/s}
  - {name: L2, kind: cache, capacity: 1 MiB}
compute: {unit: SM, units: 4, clock: 1 GHz, macs: {fp32: 64 MAC/cycle}}
"""
# What to replace in a good file, by what, and what the message must name.
ARCHS: dict[str, tuple[str, str, list[str]]] = {
    "unknown key": ("kind: cache", "kind: cache, colour: red", ["colour"]),
    "misspelt key": ("capacity:", "capacty:", ["capacty", "did you mean 'capacity'?"]),
    "unknown kind": ("kind: cache", "kind: cash", ["cash", "did you mean 'cache'?"]),
    "no unit": ("1 MiB", "1048576", ["1048576", "unit"]),
    "wrong unit": ("1 MiB", "1 GHz", ["1 GHz", "unit"]),
    "ambiguous unit": ("1 MiB", "1024 KB", ["kB or KiB"]),
    "zero capacity": ("1 MiB", "0 B", ["above zero"]),
    "negative bandwidth": ("100 GB/s", "-1 GB/s", ["above zero"]),
    "NaN clock": ("1 GHz", "nan GHz", ["nan"]),
    "huge": ("1 MiB", "1e40 B", ["1e40"]),
    "no levels": ("levels:", "level:", ["levels"]),
    "no compute": ("compute:", "computer:", ["compute"]),
    "same name": ("name: L2", "name: DRAM", ["DRAM"]),
    "a cycle": ("name: L2,", "name: L2, inside: L2,", ["L2", "inside"]),
    "no memory": ("kind: memory", "kind: cache", ["memory"]),
    "two memories": ("kind: cache", "kind: memory", ["memory"]),
    "no units": ("units: 4", "units: 0", ["units"]),
    "unknown type": ("fp32:", "fp31:", ["fp31", "did you mean 'fp32'?"]),
    "no name": ("name: mine", "title: mine", ["name"]),
    "broken YAML": ("levels:", "levels: [", ["line"]),
    "a tab": ("  - {name: L2", "\t- {name: L2", ["line"]),
    "an alias": ("1 MiB", "*size", ["line"]),
    "a Python object": ("1 MiB", "!!python/object/apply:os.getcwd []", ["line"]),
    "only a word": (GOOD_ARCH, "titan", ["mapping"]),
    "empty": (GOOD_ARCH, "", ["empty"]),
    "not text": (GOOD_ARCH, "\0\1", ["control characters"]),
}
SCHEDULES: dict[str, tuple[str, list[str]]] = {
    "empty": ("", ["M:4"]),
    "unknown dim": ("M:4 N:3 Z:2 K:2", ["unknown dim 'Z'"]),
    "missing dim": ("M:4 N:3", ["'K'", "add 'K:2'"]),
    "short": ("M:2 N:3 K:2", ["it must cover the size, 'M:4'"]),
    "growing": ("M:4 N:3 K:2 M:2 M:3", ["grows inward"]),
    "zero": ("M:4 N:3 K:2 M:0", ["extent is '0'"]),
    "negative": ("M:4 N:3 K:2 M:-1", ["extent is '-1'"]),
    "NaN": ("M:nan N:3 K:2", ["extent is 'nan'"]),
    "huge": ("M:4 N:3 K:" + "9" * 5000, ["extent is"]),
    "no colon": ("M4 N:3 K:2", ["did you mean 'M:4'?"]),
    "no unit": ("M:4@ N:3 K:2", ["unit is ''"]),
    "unknown unit": ("M:4@SN N:3 K:2", ["unknown unit 'SN'; did you mean 'SM'?"]),
    "units apart": ("M:4@SM N:3 K:2@SM", ["not adjacent"]),
    "not loops": ("for m in range(4):", ["not a loop"]),
}


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(words) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize("case", WORKLOADS)
def test_workload(case: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    content, named = WORKLOADS[case]
    path = tmp_path / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    text = complaint(capsys, "workloads", str(path))
    assert "bad.json" in text
    assert not [word for word in named if word not in text], text


def test_the_arch_that_is_spoilt_is_good(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD_ARCH, encoding="utf-8")
    assert run(["archs", str(path), "--format", "json"]) == 0


@pytest.mark.parametrize("case", ARCHS)
def test_arch(case: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before, after, named = ARCHS[case]
    path = tmp_path / "bad.yaml"
    assert before in GOOD_ARCH
    path.write_text(GOOD_ARCH.replace(before, after), encoding="utf-8")
    text = complaint(capsys, "archs", str(path))
    assert "bad.yaml" in text
    assert not [word for word in named if word not in text], text


@pytest.mark.parametrize("case", SCHEDULES)
@pytest.mark.parametrize("is_file", [False, True])
def test_schedule(
    case: str, is_file: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text, named = SCHEDULES[case]
    path = tmp_path / "bad.txt"
    path.write_text(text, encoding="utf-8")
    message = complaint(capsys, "analyze", "gemm:m=4,n=3,k=2", f"@{path}" if is_file else text)
    assert not [word for word in named if word not in message], message


@pytest.mark.parametrize("command", ["workloads", "archs"])
@pytest.mark.parametrize("name", ["none.json", "none.yaml", "folder.json", "a\0b.json"])
def test_file_that_cannot_be(
    command: str, name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "folder.json").mkdir()
    complaint(capsys, command, f"{tmp_path}/{name}")


@pytest.mark.parametrize("command", ["workloads", "archs"])
@pytest.mark.parametrize("name", ["x" * 5000, "a\nb", "-", "~", "{"])
def test_name_that_cannot_be(command: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    complaint(capsys, command, name)
