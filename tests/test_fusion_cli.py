"""The command ``fuse``, and networks from model files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from loopsched import conv2d, fuse, load_network, residency
from loopsched.base.units import percent
from loopsched.cli import run
from loopsched.network.graph import Network
from loopsched.network.node import Node, Value
from loopsched.network.parts import part_of
from tests.onnx_models import mobilenet_v2, resnet50, save


def _out(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert run(["fuse", *arguments]) == status
    found = capsys.readouterr()
    return found.out if status == 0 else found.err


@pytest.fixture(scope="module")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(mobilenet_v2().proto(), tmp_path_factory.mktemp("models"), "mobilenet")


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Network:
    return load_network(save(resnet50().proto(), tmp_path_factory.mktemp("models"), "resnet"))


def test_a_table_says_groups_and_assumptions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = _out(capsys, "vgg16", "--layers", ":4", "--loops")
    assert "conv1_1 + conv1_2 + conv2_1 + conv2_2" in " ".join(text.split()).replace("...", "...")
    assert "for p in range(0, 112, 28):" in text
    assert "Assumed, so that shapes fit: conv1_2 -> pool 2x2 stride2 -> conv2_1." in text
    rows = json.loads(_out(capsys, "vgg16", "--layers", ":4", "--format", "json"))
    moved, apart = (sum(row[name] for row in rows) for name in ("dram_bytes", "unfused_bytes"))
    assert f" unfused: {percent(1 - moved / apart)} saved" in " ".join(text.split())


def test_no_pooling_is_assumed_where_none_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    options = "vgg16", "--layers", "1:3", "-c", "1MiB"
    assert "No chain from conv1_2 to conv2_1" in _out(capsys, *options, "--no-pooling")
    assert "No chain" not in _out(capsys, *options)


def test_a_whole_tile_has_no_halo(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    lines = _out(capsys, "vgg16", "-c", "1MiB").splitlines()
    (whole,) = (line.split() for line in lines if " whole " in line)
    assert whole[:4] == ["7", "6", "whole", "-"]


def test_rows_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    text = _out(capsys, "vgg16", "-c", "1MiB", "--format", "jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    assert sum(row["n_layers"] for row in rows) == 16
    assert all(row["working_set_bytes"] <= row["capacity_bytes"] == 2**20 for row in rows)
    assert all(row["dram_bytes"] + row["saved_bytes"] == row["unfused_bytes"] for row in rows)
    fused = [row for row in rows if row["n_layers"] > 1]
    assert all(row["halo"] and row["saved_bytes"] > 0 for row in fused)
    assert [row["schedule"] is None for row in rows] == [row in fused for row in rows]


def test_layers_are_put_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    block = ["-l", "conv2_reduce", "-l", "conv2_3x3", "-l", "conv2_expand"]
    rows = json.loads(_out(capsys, "resnet50", *block, "--format", "json"))
    assert [row["layers"] for row in rows] == ["conv2_reduce+conv2_3x3+conv2_expand"]
    halves = json.loads(
        _out(capsys, "resnet50", *block, "--element-bytes", "2", "--format", "json")
    )
    assert halves[0]["dram_bytes"] * 2 == rows[0]["dram_bytes"]


def test_a_plain_list_repeats_blocks_of_one_count(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(_out(capsys, "resnet50", "--format", "json"))
    block = next(row for row in rows if row["layers"] == "conv2_3x3+conv2_expand")
    assert block["count"] == 3
    assert sum(row["count"] * row["n_layers"] for row in rows) == 53 + 1


def test_models_are_cut_at_sums(
    capsys: pytest.CaptureFixture[str], mobilenet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = _out(capsys, str(mobilenet), "-c", "256KiB")
    assert "is added to what" in " ".join(text.split())
    assert "... and 1 more such pair." in text
    assert "Assumed" not in text  # the model says what its pooling reads
    rows = json.loads(_out(capsys, str(mobilenet), "-c", "256KiB", "--format", "json"))
    assert rows[-1]["layers"].endswith("head+classifier")
    rows = json.loads(_out(capsys, str(mobilenet), "-c", "256KiB", "--format", "json"))
    assert rows[0]["layers"].startswith("stem+stage0.0.depthwise+stage0.0.project+stage1.0.expand")
    part = json.loads(_out(capsys, str(mobilenet), "--layers", "0:3", "--format", "json"))
    assert [row["layers"] for row in part] == ["stem+stage0.0.depthwise+stage0.0.project"]


def test_values_that_a_stride_skips_are_not_computed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    point = {"op": "conv2d", "h": 16, "w": 16, "r": 1, "s": 1}
    layers = [point | {"c": 4, "k": 8}, point | {"c": 8, "k": 4, "stride": 2}]
    file = tmp_path / "skips.json"
    file.write_text(json.dumps({"layers": layers}))
    text = " ".join(_out(capsys, str(file)).split())
    # 8,192 multiply-accumulates and 2,048; a quarter of the first are needed.
    assert "saved, 60.0 % fewer multiply-accumulates." in text


def test_figures_of_a_network_agree(resnet: Network) -> None:
    capacity = 4 * 2**20
    plan, kept = fuse(resnet, capacity), residency(resnet, capacity)
    # One by one is the same in both, but for what the sums of residual blocks take in.
    assert kept.separate_bytes == plan.unfused_bytes + plan.sums_bytes
    # Stages of 256, 512, 1024 and 2048 channels, with a sum in every block.
    sums = [3 * 256 * 56**2, 4 * 512 * 28**2, 6 * 1024 * 14**2, 3 * 2048 * 7**2]
    assert plan.sums_bytes == 4 * sum(sums)
    assert kept.is_exact
    assert plan.dram_bytes < plan.unfused_bytes
    assert kept.dram_bytes < kept.separate_bytes
    names = [name for group in plan.groups for name in group.layers]
    assert sorted(names) == sorted(node.name for node in resnet.layers)


def test_residency_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = _out(capsys, "vgg16", "--residency", "-c", "8MiB", "--layers", "2:6")
    # Of conv2_1 and conv2_2 only one has room: each makes 6.1 MiB.
    assert "2 of 3 tensors between layers stay" in " ".join(text.split())
    assert "No other choice moves less. Assumed, so that shapes fit: conv2_2 -> pool" in " ".join(
        text.split()
    )
    rows = json.loads(_out(capsys, "vgg16", "--residency", "-c", "8MiB", "--format", "json"))
    assert len(rows) == 16
    assert all(row["saved_bytes"] >= 0 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["vgg16", "--layers", "4:2"], 3, "--layers is '4:2'; A:B with 0 <= A < B <= 12"),
        (["vgg16", "--layers", "x"], 3, "--layers is 'x'"),
        (["vgg16", "--layers", "3:3"], 3, "--layers is '3:3'"),
        (["vgg16", "-c", "4 parsecs"], 3, "4 parsecs"),
        (["vgg16", "-c", "8B"], 4, "problem 'conv1_1': nothing fits"),
        (["nothing"], 3, "nothing"),
        (["vgg16", "--halos", "keep"], 2, "'keep' is not one of"),
        (["vgg16", "--residency", "--loops"], 2, "do not apply to --residency"),
        (["vgg16", "-l", "conv9"], 3, "no layer 'conv9'"),
    ],
)
def test_wrong_usage_is_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str
) -> None:
    assert message in _out(capsys, *arguments, status=status)


def _pair(op: str) -> Network:
    """Two convolutions with an operator between them."""
    first, second = (
        conv2d(c=2, k=2, h=4, w=4, r=1, s=1, element_bytes=1, name=name) for name in "ab"
    )
    values = [Value(name, (1, 2, 4, 4), 1) for name in ("x", "y", "z", "u")]
    nodes = (
        Node("a", "Conv", first, ("x",), ("y",), (("input", "x"), ("output", "y"))),
        Node("between", op, None, ("y",), ("z",)),
        Node("b", "Conv", second, ("z",), ("u",), (("input", "z"), ("output", "u"))),
    )
    return Network("pair", nodes, tuple(values), ("x",), ("u",))


def test_what_lies_between_two_layers_may_need_more_than_a_tile() -> None:
    assert [group.layers for group in fuse(_pair("Relu"), 4096).groups] == [("a", "b")]
    for op in ("Transpose", "InstanceNormalization", "Softmax"):
        plan = fuse(_pair(op), 4096)
        assert [group.layers for group in plan.groups] == [("a",), ("b",)]
        assert plan.breaks[0].reason == f"{op} between them may need more than a tile of 'a'"


def test_a_part_of_a_model_keeps_its_edges(resnet: Network) -> None:
    # conv1 feeds two layers through a pooling of 3 x 3; one of them is left out.
    part = part_of(resnet, {"conv1", "layer1.0.conv1", "layer1.0.conv2"})
    assert [node.name for node in part.layers] == ["conv1", "layer1.0.conv1", "layer1.0.conv2"]
    plan = fuse(part, 4 * 2**20)
    assert plan.assumed == ()
    # The pooled tensor leaves the part: the other layer reads it.
    assert plan.groups[0].layers == ("conv1",)
    whole = residency(resnet, 4 * 2**20)
    layers = {layer.name: layer.separate_bytes for layer in whole.layers}
    kept = residency(part, 4 * 2**20)
    assert [layer.separate_bytes for layer in kept.layers] == [
        layers[node.name] for node in part.layers
    ]


def test_products_of_one_shape_are_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(_out(capsys, "bert_base", "--format", "json"))
    assert rows[0]["layers"] == "query_key_value"
    assert rows[0]["count"] == 36  # three in each of twelve layers


def test_a_sum_of_unknown_size_is_a_sum_all_the_same() -> None:
    pair = _pair("Relu")
    bare = tuple(replace(value, shape=None) for value in (*pair.values, Value("v", None, 1)))
    nodes = (*pair.nodes, Node("sum", "Add", None, ("u", "y"), ("v",)))
    plan = fuse(Network("pair", nodes, bare, ("x",), ("v",)), 4096)
    assert [group.layers for group in plan.groups] == [("a",), ("b",)]
