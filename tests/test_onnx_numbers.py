"""Numbers computed from shapes, against ONNX's own evaluator; shapes behind them; files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from loopsched import load_network, load_onnx
from loopsched.network.onnx_numbers import compute, numbers_of
from loopsched.network.onnx_operator import Operator
from loopsched.network.onnx_read import has_data, read_model, scalar
from tests.onnx_models import FLOAT, INT64, Model

SEVEN = helper.make_tensor("seven", INT64, [1], [7])
CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Div", [[7, -7, 7, -7, 6], [2, 2, -2, -2, 3]], {}),
    ("Div", [[7.0, -7.0], [2.0, 4.0]], {}),
    ("Mod", [[7, -7, 7], [3, 3, 4]], {}),
    ("Sub", [[[1, 2], [3, 4]], [10, 20]], {}),
    ("Min", [[3, 9], [5, 1]], {}),
    ("Slice", [[1, 2, 3, 4, 5], [4], [-(2**31)], [0], [-1]], {}),
    ("Slice", [[1, 2, 3, 4, 5], [-1], [0], [0], [-2]], {}),
    ("Slice", [[[1, 2, 3], [4, 5, 6]], [1], [2**31], [1]], {}),
    ("ConstantOfShape", [[2, 3]], {}),
    ("ConstantOfShape", [[2]], {"value": SEVEN}),
    ("Unsqueeze", [[4, 5], [1]], {}),
    ("Squeeze", [[[4], [5]], [1]], {}),
    ("Squeeze", [[[4]]], {}),
    ("Gather", [[[1, 2], [3, 4]], 1], {"axis": 1}),
    ("Concat", [[1, 2], [3]], {"axis": 0}),
    ("Reshape", [[1, 2, 3, 4, 5, 6], [2, -1]], {}),
    ("Expand", [[1, 2], [3, 1]], {}),
    ("Range", [2, 11, 3], {}),
    ("ReduceProd", [[[2, 3], [4, 5]]], {}),
    ("ReduceProd", [[2, 3, 4]], {"keepdims": 0}),
    ("Cast", [[2.75, -2.75]], {"to": INT64}),
    ("Cast", [[2.75, -2.75]], {"to": FLOAT}),
    ("Where", [[1, 0], [5, 6], [7, 8]], {}),
    ("Equal", [[1, 2], [1, 3]], {}),
    ("Ceil", [[1.25, -1.25]], {}),
    ("Transpose", [[[1, 2, 3], [4, 5, 6]]], {}),
    ("Transpose", [[[[1, 2], [3, 4]]]], {"perm": (1, 0, 2)}),
    ("Clip", [[-3, 0, 9], 0, 5], {}),
    ("Clip", [[-3, 0, 9], -1], {}),
]


def operator(op: str, many: int, attributes: Mapping[str, Any]) -> Operator:
    names = tuple(f"x{i}" for i in range(many))
    return Operator("one", op, "", names, ("y",), dict(attributes))


def by_onnx(op: str, inputs: list[Any], attributes: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    kinds = (bool,) if op == "Where" else ()
    arrays = [np.array(one, dtype=kind) for one, kind in zip(inputs, kinds, strict=False)]
    arrays += [np.array(one) for one in inputs[len(kinds) :]]
    if op in ("Cast", "Ceil") or "." in str(inputs[0]):
        arrays = [one.astype(np.float32) for one in arrays]
    names = [f"x{i}" for i in range(len(inputs))]
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in zip(names, arrays, strict=True)
    ]
    node = helper.make_node(op, names, ["y"], **attributes)
    made = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    graph = helper.make_graph([node], "one", given, [made])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    found: np.ndarray[Any, Any] = ReferenceEvaluator(model).run(
        None, dict(zip(names, arrays, strict=True))
    )[0]
    return found


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES)
def test_numbers_are_those_of_onnx(op: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    known = compute(operator(op, len(inputs), attributes), [numbers_of(one) for one in inputs])
    expected = by_onnx(op, inputs, attributes)
    assert known is not None
    assert (known.shape, known.tolist()) == (expected.shape, expected.astype(object).tolist())


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Where", [[None], [1], [2]]),
        ("Equal", [[None], [None]]),
        ("Add", [[None], [1]]),
        ("Div", [[1], [0]]),
        ("Range", [0, 10**9, 1]),
        ("Expand", [[1], [10**9]]),
        ("ConstantOfShape", [[2000]]),
    ],
)
def test_what_is_not_known_or_too_long_is_no_number(op: str, inputs: list[Any]) -> None:
    assert compute(operator(op, len(inputs), {}), [numbers_of(one) for one in inputs]) is None


def test_a_place_that_is_not_known_stays_so() -> None:
    gather = operator("Gather", 2, {"axis": 0})
    found = compute(gather, [numbers_of([8, None, 64]), numbers_of([1, 2])])
    assert found is not None
    assert found.tolist() == [None, 64]


def test_lengths_from_part_of_a_shape(tmp_path: Path) -> None:
    model = Model()
    x, y = model.input("x", [4, 16]), model.input("y", [64])
    tail = model.add("Shape", x, start=1)
    rows = model.add("Reshape", y, model.add("Concat", model.number(4), tail, axis=0))
    model.output(model.add("MatMul", rows, model.weight("w", 16, 8)))
    assert load_onnx(model.save(tmp_path)).macs == 4 * 16 * 8


def test_fused_operators_have_the_shapes_of_what_they_fuse(tmp_path: Path) -> None:
    model = Model()
    made = {"domain": "com.microsoft"}
    q, k = model.input("q", [2, 12, 64]), model.input("k", [2, 12, 32])
    y = model.add("FusedMatMul", q, k, transA=1, name="sums", **made)
    model.output(model.add("MatMul", y, model.weight("w", 32, 5)))
    image, more = model.input("i", [1, 3, 8, 8]), model.input("z", [1, 4, 6, 6])
    filters = model.weight("f", 4, 3, 3, 3), model.weight("b", 4)
    z = model.add("FusedConv", image, *filters, more, activation="Relu", **made)
    model.output(model.add("MatMul", z, model.weight("v", 6, 2)))
    products = 2 * 64 * 12 * 32 + 2 * 64 * 32 * 5
    assert load_onnx(model.save(tmp_path)).macs == products + 36 * 4 * 27 + 4 * 6 * 6 * 2


def test_branches_of_different_shapes_leave_a_shape_open(tmp_path: Path) -> None:
    model = Model()
    model.input("x", [4, 16])
    bodies = []
    for name, width in (("w", 8), ("u", 6)):
        model.weight(name, 16, width)
        node = helper.make_node("MatMul", ["x", name], [f"{name}_y"], name=f"with_{name}")
        out = helper.make_tensor_value_info(f"{name}_y", FLOAT, None)
        bodies.append(helper.make_graph([node], name, [], [out]))
    condition = model.input("c", [], TensorProto.BOOL)
    y = model.add("If", condition, then_branch=bodies[0], else_branch=bodies[1])
    model.output(model.add("MatMul", y, model.weight("v", 8, 2), name="after"))
    found = load_onnx(model.save(tmp_path))
    assert "after" in [one.where for one in found.unsupported]


def test_large_weights_are_dropped_wherever_they_are(tmp_path: Path) -> None:
    def big(name: str, size: int) -> TensorProto:
        return numpy_helper.from_array(np.ones(size, np.float32), name)

    inner = helper.make_node("Constant", [], ["t"], value=big("in", 2000))
    out = helper.make_tensor_value_info("t", FLOAT, None)
    body = helper.make_graph([inner], "body", [], [out], [big("kept", 1024), big("lost", 1025)])
    model = Model()
    condition = model.input("c", [], TensorProto.BOOL)
    model.tensors.append(big("weight", 3000))
    model.output(model.add("If", condition, then_branch=body, else_branch=body))
    read = read_model(model.save(tmp_path))
    assert [has_data(one) for one in read.graph.initializer] == [False]
    for attribute in read.graph.node[0].attribute:
        assert [has_data(one) for one in attribute.g.initializer] == [True, False]
        assert not has_data(attribute.g.node[0].attribute[0].t)


def test_single_numbers_are_read_where_they_are() -> None:
    def one(kind: int, *values: int) -> TensorProto:
        return helper.make_tensor("t", kind, [len(values)], values)

    assert scalar(one(INT64, 7)) == 7
    assert scalar(one(TensorProto.BOOL, 1)) is True
    assert scalar(one(INT64, 7, 8)) is None
    assert scalar(one(FLOAT, 7)) is None
    away = one(INT64, 7)
    away.data_location = TensorProto.EXTERNAL
    assert scalar(away) is None


def test_a_batch_that_is_given_counts_more_than_that_of_the_text(tmp_path: Path) -> None:
    model = Model()
    model.output(model.add("MatMul", model.input("x", ["n", 16]), model.weight("w", 16, 8)))
    path = model.save(tmp_path)
    assert load_network(f"{path}:batch=8").macs == 8 * 16 * 8
    assert load_network(f"{path}:batch=8", batch=2).macs == 2 * 16 * 8
    odd = path.rename(tmp_path / "MODEL.ONNX")
    assert load_network(f"{odd}:batch=3").macs == 3 * 16 * 8
    named = odd.rename(tmp_path / "mine.onnx:n=5")
    assert load_network(named, batch=4).macs == 4 * 16 * 8


def test_bounds_may_be_attributes_or_missing() -> None:
    old = operator("Clip", 1, {"min": 0.0, "max": 6.0})
    found = compute(old, [numbers_of([-1.5, 3.0, 8.0])])
    assert found is not None
    assert found.tolist() == [0.0, 3.0, 6.0]
    above = Operator("one", "Clip", "", ("x", "", "high"), ("y",), {})
    found = compute(above, [numbers_of([-1, 3, 8]), None, numbers_of(6)])
    assert found is not None
    assert found.tolist() == [-1, 3, 6]
    assert compute(above, [numbers_of([None, 3, 8]), None, numbers_of(6)]) is None


def test_pads_turned_on_the_way_and_lengths_clipped(tmp_path: Path) -> None:
    """As PyTorch's old exporter writes F.pad, and timm its padding to the same length."""
    model = Model()
    x = model.input("x", [1, 3, 15, 15])
    length = model.add("Gather", model.add("Shape", x), model.number(3, shape=[]))
    least = model.add("Clip", model.add("Sub", length, model.number(14, shape=[])),
                      model.number(0, shape=[]))  # fmt: skip
    least = model.add("Unsqueeze", least, model.number(0))
    rows = model.add("Concat", model.number(0), least, model.number(0), least, model.number(0, 0),
                     model.number(0, 0), axis=0)  # fmt: skip
    pairs = model.add("Reshape", rows, model.number(-1, 2))
    turned = model.add("Slice", pairs, model.number(-1), model.number(-(2**62)), model.number(0),
                       model.number(-1))  # fmt: skip
    flat = model.add("Reshape", model.add("Transpose", turned, perm=[1, 0]), model.number(-1))
    wide = model.add("Pad", x, flat)
    model.output(model.add("Conv", wide, model.weight("w", 4, 3, 2, 2), strides=[2, 2]))
    assert load_onnx(model.save(tmp_path)).macs == 8 * 8 * 4 * 3 * 2 * 2


def test_numbers_that_are_split_or_cast_alike(tmp_path: Path) -> None:
    model = Model(opset=18)
    x, y = model.input("x", [4, 6]), model.input("y", [48])
    rows, _ = model.add("Split", model.add("Shape", x), model.number(1, 1), n=2, axis=0)
    alike = model.add("CastLike", rows, model.number(1))
    shape = model.add("Concat", alike, model.number(12), axis=0)
    model.output(model.add("MatMul", model.add("Reshape", y, shape), model.weight("w", 12, 5)))
    assert load_onnx(model.save(tmp_path)).macs == 4 * 12 * 5


def test_narrow_numbers_do_not_hide_a_shape(tmp_path: Path) -> None:
    model = Model(opset=18)
    x = model.input("x", [2, 3, 4], kind=TensorProto.BFLOAT16)
    zero = model.add("Cast", model.number(0, shape=[]), to=TensorProto.BFLOAT16)
    y = model.add("Pad", x, model.number(0, 0, 0, 0, 0, 1), zero)
    model.output(model.add("MatMul", y, model.weight("w", 5, 7, kind=TensorProto.BFLOAT16)))
    assert load_onnx(model.save(tmp_path)).macs == 2 * 3 * 5 * 7
