"""The workload reader: forms it takes, and every malformed file answered in one message."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopsched.base.errors import LoopschedError, WorkloadError
from loopsched.base.resources import resource_dir
from loopsched.network.text import load_workload
from loopsched.problems.builders import affine, batched_gemm, conv2d, einsum, gemm
from loopsched.problems.problem import Problem
from loopsched.problems.workload import (
    Workload,
    parse_workload,
    workload_names,
    workload_schema,
)

CONV: dict[str, Any] = {"op": "conv2d", "c": 3, "k": 8, "h": 9, "w": 9, "r": 3, "s": 3}
GEMM: dict[str, Any] = {"op": "gemm", "m": 4, "n": 3, "k": 2}


def read(*layers: Any, **top: Any) -> Workload:
    return parse_workload({"layers": list(layers), **top}, "x.json", "x")


def write(folder: Path, contents: bytes | str | dict[str, Any]) -> Path:
    path = folder / "x.json"
    if isinstance(contents, dict):
        contents = json.dumps(contents)
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    return path


# --- what is understood -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "problem"),
    [
        (CONV, conv2d(c=3, k=8, h=9, w=9, r=3, s=3)),
        (
            {**CONV, "n": 2, "stride": [2, 1], "padding": [0, 1, 0, 1], "pass": "backward_data"},
            conv2d(n=2, c=3, k=8, h=9, w=9, r=3, s=3, stride=(2, 1), padding=(0, 1, 0, 1),
                   pass_="backward_data"),
        ),
        (
            {"op": "conv2d", "c": 4, "k": 4, "p": 5, "q": 6, "r": 3, "s": 3, "groups": 4,
             "padding": "same", "dilation": 2, "element_bytes": {"output": "fp32", "input": 1}},
            conv2d(c=4, k=4, p=5, q=6, r=3, s=3, groups=4, padding="same", dilation=2,
                   element_bytes={"output": 4, "input": 1}),
        ),
        ({**GEMM, "transpose_b": True}, gemm(m=4, n=3, k=2, transpose_b=True)),
        ({**GEMM, "op": "batched_gemm", "batch": 5}, batched_gemm(batch=5, m=4, n=3, k=2)),
        (
            {"op": "einsum", "expression": "mk,kn->mn", "sizes": {"m": 2, "n": 3, "k": 4}},
            einsum("mk,kn->mn", {"m": 2, "n": 3, "k": 4}),
        ),
        (
            {"op": "affine", "sizes": {"P": 8, "R": 3}, "output": "y",
             "tensors": {"y": "P", "x": "P+R-1<8", "f": "R"}},
            affine({"P": 8, "R": 3}, {"y": "P", "x": "P+R-1<8", "f": "R"}, output="y"),
        ),
    ],
    ids=["conv", "conv pass", "conv by output", "gemm", "batched", "einsum", "affine"],
)  # fmt: skip
def test_each_operation_is_its_builder(layer: dict[str, Any], problem: Problem) -> None:
    jsonschema.validate({"layers": [layer]}, workload_schema())
    workload = read(layer)
    assert workload.problems == (problem,)
    assert workload.counts == (1,)


def test_aliases_and_case() -> None:
    layer = {
        "OP": "conv2d", "Batch": 2, "in_channels": 3, "K": 8, "height": 9, "OX": 7,
        "kernel_h": 3, "FX": 3, "strides": 1, "pad": [1, 0],
    }  # fmt: skip
    assert read(layer).problems == (conv2d(n=2, c=3, k=8, h=9, q=7, r=3, s=3, padding=(1, 0)),)
    stored = {"op": "conv2d", "c": 3, "k": 8, "iy": 9, "ix": 7, "fy": 3, "fx": 2}
    assert read(stored).problems == (conv2d(c=3, k=8, h=9, w=7, r=3, s=2),)


def test_element_bytes_of_the_file_holds_where_a_layer_is_silent() -> None:
    workload = read(GEMM, {**GEMM, "element_bytes": 8}, element_bytes="fp16")
    assert [p.tensors[0].element_bytes for p in workload.problems] == [2, 8]


def test_names_counts_and_totals() -> None:
    workload = read(
        {**GEMM, "count": 3}, {**GEMM, "name": "mine"}, GEMM, {**GEMM, "count": 2},
        name="four", source="here",
    )  # fmt: skip
    names = [problem.name for problem in workload.problems]
    assert names == ["m4 n3 k2", "mine", "m4 n3 k2 #2", "m4 n3 k2 #3"]
    assert (workload.name, workload.source, workload.counts) == ("four", "here", (3, 1, 1, 2))
    assert workload.macs == 7 * 24


def test_a_default_name_gives_way_to_a_chosen_one() -> None:
    workload = read(GEMM, {**GEMM, "name": "m4 n3 k2"})
    assert [problem.name for problem in workload.problems] == ["m4 n3 k2 #2", "m4 n3 k2"]


def test_problems_is_another_word_for_layers() -> None:
    assert parse_workload({"problems": [GEMM]}, "x", "x") == read(GEMM)


def test_whole_floats_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = '\ufeff{"layers": [{"op": "gemm", "m": 4.0, "n": 3e0, "k": 2}]}'
    path = write(tmp_path, text)
    assert load_workload(path) == read(GEMM)
    assert load_workload(str(path)) == read(GEMM)


def test_a_shipped_name_and_its_path_are_the_same_workload() -> None:
    path = resource_dir("workloads") / "alexnet.json"
    assert load_workload("alexnet") == load_workload(path)


def test_a_shipped_name_wins_over_a_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alexnet").write_text(json.dumps({"layers": [GEMM]}))
    assert len(load_workload("alexnet").problems) == 8
    assert len(load_workload("./alexnet").problems) == 1


# --- what is refused: contents ----------------------------------------------------------------

# Field by field: what is wrong, and the whole of what is said about it.
BAD_LAYERS: list[tuple[Any, str]] = [
    (5, "layer 0: found 5; an object such as {'op': 'gemm', ...} is needed"),
    ([GEMM], "layer 0: found [{'k': 2, 'm': 4, 'n': 3, 'op': 'gemm'}]; an object"),
    (None, "layer 0: found None; an object"),
    ({}, "layer 0: no 'op'; one of conv2d gemm batched_gemm einsum affine"),
    ({**GEMM, "op": "gem"}, "layer 0: op is 'gem'; did you mean 'gemm'? (allowed: conv2d"),
    ({**GEMM, "op": 3}, "layer 0: op is 3; allowed: conv2d"),
    ({**GEMM, "op": ["gemm"]}, "layer 0: op is ['gemm']; allowed"),
    ({**GEMM, "name": "fc"} | {"m": 0}, "layer 0 'fc': m is 0; a whole number >= 1 is needed"),
    ({**GEMM, "m": -4}, "layer 0: m is -4; a whole number"),
    ({**GEMM, "m": 4.5}, "layer 0: m is 4.5; a whole number"),
    ({**GEMM, "m": "4"}, "layer 0: m is '4'; a whole number"),
    ({**GEMM, "m": None}, "layer 0: m is None; a whole number"),
    ({**GEMM, "m": True}, "layer 0: m is True; a whole number"),
    ({**GEMM, "m": float("nan")}, "layer 0: m is nan; a whole number"),
    ({**GEMM, "m": float("inf")}, "layer 0: m is inf; a whole number"),
    ({**GEMM, "m": 10**25}, "layer 0: m is 10000000000000000000000000; less than 2**60"),
    ({**GEMM, "m": 2**40, "n": 2**40}, "more than 2**62 multiply-accumulates"),
    ({**GEMM, "mm": 3}, "layer 0: unknown field 'mm'; did you mean 'm'? (allowed: op name"),
    ({**CONV, "strid": 3}, "layer 0: unknown field 'strid'; did you mean 'stride'?"),
    ({**CONV, "N": 3, "batch": 3}, "layer 0: 'n' is given twice, also as 'batch'"),
    ({"op": "gemm", "m": 3, "k": 2}, "layer 0: no 'n' (columns of the result)"),
    ({**GEMM, "count": 0}, "layer 0: count is 0; a whole number >= 1"),
    ({**GEMM, "count": "two"}, "layer 0: count is 'two'; a whole number"),
    ({**GEMM, "name": 5}, "layer 0: name is 5; one printable line"),
    ({**GEMM, "name": ""}, "layer 0: name is ''; one printable line"),
    (
        {**GEMM, "element_bytes": "half"},
        "layer 0: element_bytes is 'half'; a number of bytes or a type is needed; allowed",
    ),
    ({**GEMM, "element_bytes": {"X": 2}}, "layer 0: element_bytes: no tensor 'X'; allowed: A"),
    ({**GEMM, "transpose_a": "no"}, "layer 0: transpose_a is 'no'; true or false"),
    ({**CONV, "r": 10}, "layer 0: h is 9 (9 with padding), but the filter covers 10"),
    ({**CONV, "p": 7}, "layer 0: h (input) and p (output): both are given"),
    ({**CONV, "h": None}, "layer 0: h (input) and p (output): neither is given"),
    ({**CONV, "groups": 2}, "layer 0: groups is 2; it must divide c, which is 3"),
    ({**CONV, "pass": "fwd"}, "layer 0: pass is 'fwd'; did you mean 'forward'"),
    ({**CONV, "padding": {"top": 1}}, "layer 0: padding is {'top': 1}; a whole number"),
    ({"op": "einsum", "expression": "ii->i", "sizes": {"i": 2}}, "'i' occurs 2 times in operand"),
    ({"op": "einsum", "expression": "i->i", "sizes": {"j": 2}}, "layer 0: no size for 'i'"),
    ({"op": "einsum", "expression": "i->i"}, "layer 0: no 'sizes' (size of each letter)"),
    ({"op": "einsum", "sizes": {"i": 2}}, "layer 0: no 'expression' (such as 'mk,kn->mn')"),
    ({"op": "affine", "sizes": {"P": 2}}, "layer 0: no 'tensors' (axes of each, such as"),
    ({"op": "affine", "sizes": {"P": 2}, "tensors": {"x": "Q"}}, "tensor 'x': unknown dim 'Q'"),
    ({"op": "affine", "sizes": [2], "tensors": {"x": "P"}}, "layer 0: sizes is [2]; a mapping"),
]


@pytest.mark.parametrize(("layer", "message"), BAD_LAYERS)
def test_bad_layers(layer: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        read(layer)
    assert str(caught.value).startswith("x.json: layer 0")
    assert message in str(caught.value)
    assert len(caught.value.problems) == 1, "one cause, one fault"


BAD_TOPS: list[tuple[Any, str]] = [
    ([GEMM], "x.json: found [{'k': 2, 'm': 4, 'n': 3, 'op': 'gemm'}]; an object with"),
    ("gemm", "x.json: found 'gemm'; an object"),
    ({}, "x.json: neither 'layers' nor 'problems'; give one of them"),
    ({"layers": [GEMM], "problems": [GEMM]}, "x.json: both 'layers' and 'problems'"),
    ({"layers": []}, "x.json: layers is empty; at least one layer is needed"),
    ({"layers": GEMM}, "x.json: layers is {"),
    ({"layers": 3}, "x.json: layers is 3; a list of layers is needed"),
    ({"layers": [GEMM], "sorce": "me"}, "unknown field 'sorce'; did you mean 'source'?"),
    ({"layers": [GEMM], "name": ["x"]}, "x.json: name is ['x']; printable text is needed"),
    ({"layers": [GEMM], "source": 3}, "x.json: source is 3; printable text is needed"),
    ({"layers": [GEMM], "source": "\ud800"}, r"source is '\ud800'; printable text"),
    ({"layers": [GEMM, GEMM], "element_bytes": 0}, "x.json: element_bytes is 0; a whole number"),
    ({"layers": [GEMM], "element_bytes": {"A": 2}}, "element_bytes of the file is a mapping"),
]


@pytest.mark.parametrize(("data", "message"), BAD_TOPS)
def test_bad_tops(data: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_workload(data, "x.json", "x")
    assert message in str(caught.value)
    assert len(caught.value.problems) == 1


def test_same_chosen_name_twice() -> None:
    with pytest.raises(WorkloadError) as caught:
        read({**GEMM, "name": "a"}, GEMM, {**CONV, "name": "a"})
    assert str(caught.value) == "x.json: layer 2 'a': layer 0 has the same name"


def test_all_faults_of_a_file_together() -> None:
    with pytest.raises(WorkloadError) as caught:
        read({**GEMM, "m": 0, "n": 0}, CONV, {"op": "conv"}, {**CONV, "name": "c", "r": 99})
    assert str(caught.value).splitlines()[0] == "x.json: 4 errors"
    assert [fault.split(":")[0] for fault in caught.value.problems] == [
        "layer 0", "layer 0", "layer 2", "layer 3 'c'",
    ]  # fmt: skip


def test_thousands_of_faults_are_cut_short() -> None:
    with pytest.raises(WorkloadError) as caught:
        read(*[{**GEMM, "m": 0}] * 3000)
    assert len(caught.value.problems) == 201
    assert caught.value.problems[-1] == "and 2800 more"


# --- what is refused: files -------------------------------------------------------------------

GOOD = json.dumps({"layers": [GEMM]})
BAD_FILES: list[tuple[bytes | str, str]] = [
    ("", "is empty; a JSON object with 'layers' is needed"),
    (" \n\t ", "is empty"),
    (GOOD[:-3], "line 1, column"),
    (GOOD[:20], "line 1, column"),
    (GOOD + "]", "not JSON: Extra data (found ']')"),
    ("{'layers': []}", "not JSON: Expecting property name"),
    ('{"layers":\n [1,]}', "line 2, column"),
    ('{"layers": [' + GOOD + "\n// comment\n]}", "line 2, column 1: not JSON"),
    (b"\x8babc", "is not UTF-8 text: byte 0 is 0x8b"),
    (b"\x1f\x8b\x08\x00abc", "cannot be unpacked: "),
    (b"\x7fELF\x02\x01\x01\x00\x00", "line 1, column 1: not JSON: Expecting value"),
    (GOOD.encode("utf-16"), "is not UTF-8 text: byte 0 is 0xff"),
    ('{"name": "café", "layers": []}'.encode("latin-1"), "is not UTF-8 text: byte 13 is 0xe9"),
    ("[" * 200_000, "nested too deeply"),
    ('{"a":' * 100_000, "nested too deeply"),
    ('{"layers": [{"op": "gemm", "m": NaN, "n": 1, "k": 1}]}', "layer 0: m is nan; a whole"),
    ('{"layers": [{"op": "gemm", "m": -Infinity, "n": 1, "k": 1}]}', "layer 0: m is -inf; a w"),
    ('{"layers": [{"op": "gemm", "m": 1e999, "n": 1, "k": 1}]}', "layer 0: m is inf; a whole"),
    ('{"layers": [{"op": "gemm", "m": 1' + "0" * 9999 + ', "n": 1, "k": 1}]}', "m is inf"),
    ('{"layers": [{"op": "gemm", "m": 1, "n": 1, "k": 1, "m": 2}]}', "key 'm' occurs more than"),
    ('{"layers": [], "layers": []}', "key 'layers' occurs more than once"),
    (
        '{"layers": [{"op": "einsum", "expression": "i->i", "sizes": {"i": 1, "i": 2}}]}',
        "layer 0: key 'i' occurs more than once",
    ),
    ("null", "found None; an object with 'layers' is needed"),
    ("3", "found 3; an object"),
    ('"layers"', "found 'layers'; an object"),
]


@pytest.mark.parametrize(("contents", "message"), BAD_FILES)
def test_bad_files(tmp_path: Path, contents: bytes | str, message: str) -> None:
    path = write(tmp_path, contents)
    with pytest.raises(WorkloadError) as caught:
        load_workload(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_nesting_below_the_limit_is_shown_short(tmp_path: Path) -> None:
    path = write(tmp_path, '{"layers": ' + "[" * 900 + "]" * 900 + "}")
    with pytest.raises(WorkloadError, match=r"layer 0: found \[\[\[\.\.\.\]\]\]"):
        load_workload(path)


def test_a_folder_is_not_a_workload(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="is a folder; a JSON object with"):
        load_workload(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(WorkloadError, match="is not a regular file"):
        load_workload(tmp_path / "pipe.json")


def test_a_file_too_large_is_not_parsed(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="larger than 16 MiB"):
        load_workload(write(tmp_path, b" " * (16 * 2**20 + 1)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("deepbench_cnov", "no shipped workload of that name; did you mean 'deepbench_conv'"),
        ("attention:4x32x4096x128x1", "'loopsched pick' takes attention and grouped GEMMs, pick"),
        ("workloads/resnet5.json", "did you mean 'resnet50'"),
        ("nothing/like it", r"no such file.*; allowed: alexnet "),
        ("", "is a folder|no such file"),
        ("a\0b", "cannot be read"),
        ("x" * 5000, "cannot be read"),
        ("\udcff\ud800", "cannot be read|no such file"),
        (5, "workload is 5; a name or a path is needed"),
        (None, "workload is None; a name or a path"),
    ],
)  # fmt: skip
def test_unknown_names_and_impossible_paths(name: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        load_workload(name)


def test_an_unreadable_file_says_why(tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    with pytest.raises(WorkloadError, match=r"loop\.json: cannot be read: Too many levels"):
        load_workload(tmp_path / "loop.json")


# --- workloads built in Python ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("problems", "counts", "message"),
    [
        ((), (), "no problems; at least one is needed"),
        ((gemm(m=1, n=1, k=1),), (1, 2), "2 counts for 1 problems"),
        ((gemm(m=1, n=1, k=1),), (0,), "count is 0; a whole number >= 1"),
        ((gemm(m=1, n=1, k=1),) * 2, (), "'m1 n1 k1' names 2 problems; names are unique"),
    ],
)
def test_bad_workloads(problems: Any, counts: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        Workload("mine", problems, counts)


# --- where shipped files lie ------------------------------------------------------------------


def test_the_packaged_folder_wins_and_its_absence_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopsched.base.resources._PACKAGE", tmp_path / "loopsched")
    with pytest.raises(LoopschedError, match=r"no shipped folder 'workloads'.*reinstall"):
        workload_names()
    (tmp_path / "workloads").mkdir()
    assert workload_names() == ()
    packaged = tmp_path / "loopsched" / "data" / "workloads"
    packaged.mkdir(parents=True)
    write(packaged, {"layers": [GEMM]})
    assert workload_names() == ("x",)
    assert load_workload("x") == read(GEMM)


# --- fuzzing ----------------------------------------------------------------------------------

KEYS = [*"nckhwpqrsmAx", "op", "name", "count", "layers", "problems", "sizes", "tensors",
        "expression", "element_bytes", "stride", "padding", "groups", "pass", "output"]  # fmt: skip
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["conv2d", "gemm", "einsum", "affine", "same", "fp16", "mk,kn->mn", "M K"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=3),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)
VALID = [
    (resource_dir("workloads") / f"{name}.json").read_bytes()
    for name in workload_names()
    if not name.startswith("deepbench")
]


def survives(load: Any, *arguments: Any) -> None:
    """Either a workload that can be used, or a WorkloadError of bearable length."""
    faults: tuple[str, ...] = ()
    try:
        workload = load(*arguments)
    except WorkloadError as error:
        faults = error.problems
    assert faults or workload.macs >= 1
    assert all(0 < len(fault) < 2000 for fault in faults)


@given(json_values)
def test_any_json_value(data: Any) -> None:
    survives(parse_workload, data, "x.json", "x")


@given(st.lists(st.dictionaries(st.sampled_from(list("opnckhwrsm")), json_values, max_size=9)
                .map(lambda d: {**GEMM, **d}), min_size=1, max_size=3))  # fmt: skip
def test_any_values_in_the_fields_of_a_layer(layers: list[Any]) -> None:
    survives(read, *layers)


@given(st.sampled_from(sorted(CONV)), json_values, st.sampled_from(
    ["stride", "padding", "dilation", "groups", "pass", "element_bytes", "count", "name"]
), json_values)  # fmt: skip
def test_any_two_values_in_a_convolution(one: str, first: Any, other: str, second: Any) -> None:
    survives(read, {**CONV, other: second, one: first})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, contents: bytes) -> None:
    survives(load_workload, write(tmp_path, contents))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_to_a_valid_file(tmp_path: Path, data: st.DataObject) -> None:
    contents = bytearray(data.draw(st.sampled_from(VALID)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(contents) - 1))
        until = min(len(contents), at + data.draw(st.integers(0, 8)))
        contents[at:until] = data.draw(
            st.binary(max_size=6)
            | st.sampled_from([b"null", b"-1", b"0", b"1e400", b'"', b"{", b"]", b",", b"NaN"])
        )
        contents = contents or bytearray(b" ")
    survives(load_workload, write(tmp_path, bytes(contents)))


@given(st.text(max_size=30))
def test_any_name(name: str) -> None:
    survives(load_workload, "no-such-folder/" + name)
