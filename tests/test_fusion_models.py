"""Fused groups of ONNX models: what lies between two layers, as the model has it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fusion_oracle import Layer, chains, group_costs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from loopsched import conv2d, fuse, gemm, load_onnx, residency
from loopsched.base.errors import ProblemError
from loopsched.fusion.graphs import network_chains
from loopsched.fusion.tiles import best_tile
from loopsched.network.graph import Network
from loopsched.network.node import Node, Value, Window
from tests.onnx_models import FLOAT, Model, resnet50, save


def _conv(model: Model, x: Any, name: str, k: int, c: int, **given: Any) -> Any:
    r, s = given.pop("kernel_shape", (1, 1))
    weight = model.weight(f"{name}.w", k, c // given.get("group", 1), r, s)
    return model.add("Conv", x, weight, name=name, kernel_shape=[r, s], **given)


def _groups(model: Model, folder: Path, capacity: int = 2**20) -> list[tuple[str, ...]]:
    return [group.layers for group in fuse(_network(model, folder), capacity).groups]


def _network(model: Model, folder: Path) -> Network:
    return load_onnx(model.save(folder))


def _model_of(layers: list[Layer]) -> Model:
    model = Model()
    first = layers[0]
    x: Any = model.input("x", [first.n, first.c, first.h, first.w])
    for at, layer in enumerate(layers):
        shape = {"kernel_shape": [layer.r, layer.s], "strides": list(layer.strides)}
        top, bottom, left, right = layer.pads
        shape |= {"pads": [top, left, bottom, right], "dilations": list(layer.dilations)}
        if layer.is_pool:
            x = model.add("MaxPool", x, **shape)
        else:
            groups = layer.c if layer.depthwise else 1
            x = _conv(model, x, f"layer{at}", layer.made, layer.c, group=groups, **shape)
        x = model.add("Relu", x)
    model.output(x)
    return model


@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chains(any_pools=True), st.data())
def test_groups_of_models_equal_a_literal_walk(
    tmp_path: Path, layers: list[Layer], data: st.DataObject
) -> None:
    if sum(not layer.is_pool for layer in layers) < 2:
        return
    layers = [replace(layer, element_bytes=4, weight_bytes=4, out_bytes=4) for layer in layers]
    found, breaks = network_chains(_network(_model_of(layers), tmp_path))
    assert (len(found), breaks) == (1, ())
    costs = {cost for _, cost in group_costs(layers)}
    room = data.draw(st.sampled_from(sorted({cost.room for cost in costs})))
    choice = best_tile(found[0].stages, room)
    least = min(cost for cost in costs if cost.room <= room)
    assert choice is not None
    assert (choice.dram_bytes, choice.macs) == (least.moved, least.macs)
    assert choice.working_set_bytes == least.room


_POOLS: list[tuple[str, dict[str, Any]]] = [
    ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [1, 2]}),
    ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 3], "auto_pad": "SAME_UPPER"}),
    ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ("GlobalAveragePool", {}),
    ("GlobalMaxPool", {}),
    ("ReduceMean", {"axes": [2, 3]}),
    ("ReduceMean", {"axes": [3]}),
    ("ReduceMax", {"axes": [-2]}),
]


@pytest.mark.parametrize(("op", "given_"), _POOLS)
def test_windows_are_what_the_evaluator_reads(
    tmp_path: Path, op: str, given_: dict[str, Any]
) -> None:
    high, wide = 7, 8
    model = Model(opset=12)
    x = model.input("x", [1, 1, high, wide])
    model.output(model.add(op, x, name="pool", **given_))
    run = ReferenceEvaluator(model.proto())
    (node,) = _network(model, tmp_path).nodes
    rows, columns = node.windows[2:]
    base = np.zeros((1, 1, high, wide), np.float32)
    (idle,) = run.run(None, {"x": base})
    for row, column in product(range(high), range(wide)):
        base[0, 0, row, column] = 1
        (lit,) = run.run(None, {"x": base})
        base[0, 0, row, column] = 0
        for p, q in product(*map(range, idle.shape[2:])):
            reads_row = p == row if rows is None else rows.reach(p) >> row & 1
            reads_column = q == column if columns is None else columns.reach(q) >> column & 1
            assert bool(reads_row and reads_column) == (lit[0, 0, p, q] != idle[0, 0, p, q])


@pytest.mark.parametrize(
    ("rank", "made", "keeps", "axes"),
    [(3, (2, 5), 0, {2}), (4, (2, 3), 0, {2, 3}), (2, (2, 1), 1, {1})],
)
def test_axes_given_as_numbers_are_found_by_shapes(
    tmp_path: Path, rank: int, made: tuple[int, ...], keeps: int, axes: set[int]
) -> None:
    model = Model(opset=18)
    shape = [2, 5, 7][:rank] if rank < 4 else [2, 3, 5, 7]
    x = model.input("x", shape)
    model.output(
        model.add("ReduceMean", x, model.number(*sorted(axes)), name="mean", keepdims=keeps)
    )
    (node,) = _network(model, tmp_path).nodes
    assert {at for at, window in enumerate(node.windows) if window} == axes


def test_nothing_of_resnet_is_assumed(tmp_path: Path) -> None:
    network = load_onnx(save(resnet50().proto(), tmp_path, "resnet"))
    problems = [node.problem for node in network.layers if node.problem is not None]
    # The plain list takes neighbours for a chain; in the network two layers read what the
    # first pooling makes, and the last one reads a sum.
    assumed = {(link.after, link.before) for link in fuse(problems, 2**20).assumed}
    assert assumed == {("conv1", "layer1.0.conv1"), ("layer4.2.conv3", "fc")}
    plan = fuse(network, 2**20)
    assert plan.assumed == ()
    links = {(link.after, link.before) for link in plan.links}
    assert ("layer1.0.conv1", "layer1.0.conv2") in links
    assert links.isdisjoint(assumed)
    (pool,) = (node for node in network.nodes if node.op == "MaxPool")
    rows = pool.windows[2]
    assert rows is not None
    assert (rows.read, rows.made, rows.taps, rows.stride, rows.before) == (112, 56, 3, 2, 1)


def test_poolings_are_those_of_the_model_not_those_that_shapes_ask_for(tmp_path: Path) -> None:
    model = Model()
    x = model.input("x", [1, 3, 28, 28])
    x = _conv(model, x, "a", 8, 3, kernel_shape=(7, 7), strides=[2, 2], pads=[3] * 4)
    x = model.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = _conv(model, x, "b", 8, 8, kernel_shape=(3, 3), pads=[1] * 4)
    x = model.add("Flatten", model.add("GlobalAveragePool", x))
    model.output(model.add("Gemm", x, model.weight("c.w", 8, 10), name="c"))
    network = _network(model, tmp_path)
    known = fuse(network, 2**20).links
    assert [(link.pool, link.is_assumed) for link in known] == [
        ("pool 3x3 stride2 pad1", False),
        ("pool 7x7 stride7", False),
    ]
    problems = [node.problem for node in network.layers if node.problem is not None]
    guessed = fuse(problems, 2**20).links
    assert [(link.pool, link.is_assumed) for link in guessed] == [
        ("pool 2x2 stride2", True),
        ("pool 7x7 stride7", True),
    ]


def test_overlapping_windows_have_halos(tmp_path: Path) -> None:
    model = Model()
    x = _conv(model, model.input("x", [1, 2, 9, 9]), "a", 2, 2)
    x = model.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])
    model.output(_conv(model, x, "b", 2, 2))
    plan = fuse(_network(model, tmp_path), 150, halos=["recompute"])
    assert [link.pool for link in plan.links] == ["pool 3x3 stride2"]
    assert plan.groups[0].is_fused
    assert plan.groups[0].extra_macs > 0


@pytest.mark.parametrize("order", [("open", "known"), ("known", "open")])
def test_a_pooling_of_unknown_windows_stands_alone_between_layers(order: tuple[str, str]) -> None:
    """Beside another pooling nothing says what its windows are."""
    none, two = None, Window(read=8, made=4, taps=2, stride=2)
    windows = {"open": (), "known": (none, none, two, two)}
    first, second = conv2d(c=2, k=2, h=8, w=8, r=1, s=1), conv2d(c=2, k=2, h=2, w=2, r=1, s=1)
    one, other = (Node(name, "MaxPool", None, (x,), (y,), windows=windows[name])
                  for name, x, y in zip(order, ("y", "p"), ("p", "q"), strict=True))  # fmt: skip
    network = Network(
        "pools",
        (
            Node("a", "Conv", first, ("x",), ("y",), (("input", "x"), ("output", "y"))),
            one,
            other,
            Node("b", "Conv", second, ("q",), ("z",), (("input", "q"), ("output", "z"))),
        ),
        tuple(map(Value, ("x", "y", "p", "q", "z"))),
        ("x",),
        ("z",),
    )
    _, breaks = network_chains(network)
    assert [one.reason for one in breaks] == [
        "MaxPool between them may need more than a tile of 'a'"
    ]


def test_a_second_operand_is_not_passed_on_by_rows(tmp_path: Path) -> None:
    model = Model()
    y = model.add("MatMul", model.input("x", [8, 8]), model.weight("u", 8, 8), name="a")
    model.output(model.add("MatMul", model.weight("v", 8, 8), y, name="b"))
    plan = fuse(_network(model, tmp_path), 4096)
    assert [group.layers for group in plan.groups] == [("a",), ("b",)]
    assert plan.breaks[0].reason == "'b' reads what 'a' makes as B"


@pytest.mark.parametrize("transposed", [0, 1])
def test_a_transposed_operand_is_not_passed_on_by_rows(tmp_path: Path, transposed: int) -> None:
    model = Model()
    y = model.add("Gemm", model.input("x", [8, 8]), model.weight("u", 8, 8), name="a")
    model.output(model.add("Gemm", y, model.weight("v", 8, 8), name="b", transA=transposed))
    assert _groups(model, tmp_path) == ([("a",), ("b",)] if transposed else [("a", "b")])


@pytest.mark.parametrize(("op", "is_apart"), [("GlobalAveragePool", True), ("Sigmoid", False)])
def test_an_image_times_its_own_mean_needs_all_of_it(
    tmp_path: Path, op: str, *, is_apart: bool
) -> None:
    model = Model()
    y = _conv(model, model.input("x", [1, 2, 6, 6]), "a", 2, 2)
    scaled = model.add("Mul", y, model.add(op, y))
    model.output(_conv(model, scaled, "b", 2, 2))
    assert _groups(model, tmp_path) == ([("a",), ("b",)] if is_apart else [("a", "b")])


@pytest.mark.parametrize(("axis", "is_apart"), [(-1, False), (2, False), (1, True)])
@pytest.mark.parametrize("op", ["LayerNormalization", "ReduceMean", "Softmax"])
def test_rows_are_mixed_by_norms_over_more_than_rows(
    tmp_path: Path, op: str, axis: int, *, is_apart: bool
) -> None:
    model = Model(opset=17)
    y = model.add("MatMul", model.input("x", [1, 8, 8]), model.weight("u", 8, 8), name="a")
    if op == "ReduceMean":
        z = model.add("Sub", y, model.add(op, y, axes=[axis]))
    elif op == "LayerNormalization":
        z = model.add(op, y, model.weight("scale", *[8] * (1 if axis != 1 else 2)), axis=axis)
    else:
        z = model.add(op, y, axis=axis)
    model.output(model.add("MatMul", z, model.weight("v", 8, 8), name="b"))
    assert _groups(model, tmp_path) == ([("a",), ("b",)] if is_apart else [("a", "b")])


def test_a_reshaped_image_is_not_pooled_as_it_was(tmp_path: Path) -> None:
    model = Model()
    y = _conv(model, model.input("x", [1, 2, 4, 4]), "a", 2, 2)
    y = model.add("Reshape", y, model.number(1, 2, 2, 8))
    y = model.add("MaxPool", y, kernel_shape=[1, 2], strides=[1, 2])
    model.output(_conv(model, y, "b", 2, 2))
    assert _groups(model, tmp_path) == [("a",), ("b",)]


def test_quantised_layers_pass_single_bytes_on(tmp_path: Path) -> None:
    byte = TensorProto.UINT8
    model = Model()
    x = model.input("x", [1, 2, 4, 4], byte)
    scale, zero = model.weight("scale"), model.weight("zero", kind=byte)
    for name in ("a", "b"):
        weight = model.add(
            "DequantizeLinear", model.weight(f"{name}.w", 2, 2, 1, 1, kind=byte), scale
        )
        y = model.add("Conv", model.add("DequantizeLinear", x, scale, zero), weight, name=name)
        x = model.add("QuantizeLinear", model.add("Relu", y), scale, zero)
    model.output(x, byte)
    network = _network(model, tmp_path)
    assert [group.layers for group in fuse(network, 4096).groups] == [("a", "b")]
    kept = residency(network, 4096)
    assert [tensor.size_bytes for tensor in kept.tensors] == [2 * 4 * 4]
    assert (kept.separate_bytes, kept.dram_bytes) == (4 * 32 + 8, 2 * 32 + 8)


def test_weights_that_are_cast_are_as_wide_as_they_are_stored(tmp_path: Path) -> None:
    model = Model()
    weight = model.add("Cast", model.weight("w", 8, 8, kind=TensorProto.FLOAT16), to=FLOAT)
    y = model.add("MatMul", model.input("x", [4, 8]), weight, name="a")
    model.output(model.add("MatMul", model.add("Cast", y, to=FLOAT), weight, name="b"))
    (first, second) = (node.problem for node in _network(model, tmp_path).layers)
    assert first is not None
    assert second is not None
    assert [tensor.element_bytes for tensor in first.tensors] == [4, 2, 4]
    assert [tensor.element_bytes for tensor in second.tensors] == [4, 2, 4]


def test_a_sum_with_what_a_layer_read_ends_a_group(tmp_path: Path) -> None:
    model = Model()
    weight = model.weight("w", 8, 8)
    h = model.add("Gemm", model.input("x", [8, 8]), weight, name="a")
    s = model.add("Add", model.add("Gemm", h, weight, name="b"), h)
    model.output(model.add("Gemm", s, weight, name="c"))
    plan = fuse(_network(model, tmp_path), 4096)
    assert [group.layers for group in plan.groups] == [("a",), ("b",), ("c",)]
    assert plan.sums_bytes == 4 * 8 * 8


def test_what_no_whole_number_of_64_bits_says_is_refused() -> None:
    huge = gemm(m=2**20, n=2**20, k=2**20)
    for find in (fuse, residency):
        with pytest.raises(ProblemError, match="can move more bytes than fit into 64 bits"):
            find([huge], 2**18)
