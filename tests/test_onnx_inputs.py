"""ONNX files of strangers: what a model leaves open is given, what it repeats is counted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.case.node import collect_testcases

from loopsched import load_network, load_onnx
from loopsched.base.errors import WorkloadError
from loopsched.cli import run
from tests.onnx_macs import by_evaluator, by_runtime
from tests.onnx_models import FLOAT, INT64, Model, save


def twice() -> Model:
    """Two open axes of one name, as PaddlePaddle's converter writes them."""
    model = Model()
    x = model.input("x", [None, 3, "?", "?"])
    model.output(model.add("Conv", x, model.weight("w", 4, 3, 3, 3)))
    return model


MACS = 46 * 190 * 4 * 27


@pytest.mark.parametrize(
    "given", [{"inputs": {"x": (2, 3, 48, 192)}}, {"inputs": {"x": [2, 3, 48, 192]}, "batch": 2}]
)
def test_whole_shapes_are_given(given: dict[str, Any], tmp_path: Path) -> None:
    found = load_onnx(twice().save(tmp_path), **given)
    assert found.macs == 2 * MACS
    assert "x [2, 3, 48, 192]" in found.source


def test_shapes_say_what_symbols_of_other_inputs_are(tmp_path: Path) -> None:
    model = Model()
    x, y = model.input("x", ["n", "k"]), model.input("y", ["k", "m"])
    model.output(model.add("MatMul", x, y))
    path = model.save(tmp_path)
    assert load_onnx(path, inputs={"x": (2, 5)}, dims={"m": 7}).macs == 2 * 5 * 7
    model.inputs[1] = helper.make_tensor_value_info("y", FLOAT, ["n", "m"])
    path = model.save(tmp_path)
    # n is 2 there and 3 here: the model calls two lengths the same.
    assert load_onnx(path, inputs={"x": (2, 3), "y": (3, 4)}).macs == 2 * 3 * 4
    model.output(model.add("MatMul", model.input("z", ["n", 6]), model.weight("w", 6, 5)))
    path = model.save(tmp_path)  # of a third input it says nothing
    assert load_onnx(path, inputs={"x": (2, 3), "y": (3, 4)}).macs == 2 * 3 * 4 + 6 * 5


def chosen() -> Model:
    """A rate in an input decides which branch runs, as in models of speech."""
    model = Model()
    model.input("x", ["n", 16])
    model.weight("w", 16, 8)
    model.weight("u", 16, 2)
    sr = model.input("sr", [], INT64)
    fast = model.add("Equal", sr, model.number(16000, shape=[]))
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("MatMul", ["x", weight], [f"{name}_out"])], name, [],
            [helper.make_tensor_value_info(f"{name}_out", FLOAT, None)],
        )
        for name, weight in (("then", "w"), ("else", "u"))
    }  # fmt: skip
    model.output(model.add("If", fast, **branches))
    return model


@pytest.mark.parametrize(("rate", "width"), [(16000, 8), (8000, 2)])
def test_values_decide_what_runs(rate: int, width: int, tmp_path: Path) -> None:
    path = chosen().save(tmp_path)
    found = load_onnx(path, values={"sr": rate})
    assert (found.macs, found.unsupported) == (16 * width, ())
    assert load_onnx(path).unsupported


def test_a_value_may_be_a_shape_or_a_truth_value(tmp_path: Path) -> None:
    model = Model()
    x, shape = model.input("x", [24]), model.input("shape", ["rank"], INT64)
    model.output(model.add("MatMul", model.add("Reshape", x, shape), model.weight("w", 6, 2)))
    path = model.save(tmp_path)
    assert load_onnx(path, values={"shape": (4, 6)}).macs == 48
    assert load_network(f"{path}:value:shape=4x6").macs == 48
    model = chosen()
    model.nodes = [node for node in model.nodes if node.op_type == "If"]
    model.nodes[0].input[0] = "flag"
    model.input("flag", [], TensorProto.BOOL)
    path = model.save(tmp_path)
    assert load_network(f"{path}:value:flag=true").macs == 128
    assert load_network(f"{path}:value:flag=false").macs == 32


def test_the_command_gives_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = twice()
    model.inputs[0].name = model.nodes[0].input[0] = "net/x:0"
    path = str(model.save(tmp_path))
    assert run(["network", path, "--input", "net/x:0=2,3,48,192", "--format", "csv"]) == 0
    assert f",{2 * MACS}," in capsys.readouterr().out
    path = str(chosen().save(tmp_path))
    assert run(["network", path, "--batch", "3", "--input-value", "sr=8000"]) == 0
    assert " 96 MAC" in capsys.readouterr().out
    words = ["--input-value", "sr=8000", "--value", "low", "--strategy", "random"]
    assert run(["search", path, "--batch", "3", *words]) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inputs": {"y": (1,)}}, "inputs: no input 'y'; .*x"),
        ({"inputs": {"x": (1, 4, 8, 8)}}, r"'x' is given \[1, 4, 8, 8\]; the model has \[\?, 3, "),
        ({"inputs": {"x": (1, 3, 8)}}, r"'x' is given \[1, 3, 8\]"),
        ({"inputs": {"x": (1, 3, 0, 8)}}, "a whole number >= 1"),
        ({"inputs": {"x": (1, 3, 8, 8)}, "dims": {"?": 9}}, r"its \? is to be 9"),
        ({"values": {"sr": 1}}, "values: no input 'sr'"),
        ({"values": {"x": 1}}, "'x' is given 1 values"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=message):
        load_onnx(twice().save(tmp_path), **given)


@pytest.mark.parametrize("text", ["input:x=3x", "input:x=a", "value:x=a", "value:x", "input:=3"])
def test_texts_that_give_nothing_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="is not NAME="):
        load_network(f"{twice().save(tmp_path)}:{text}")


def test_functions_that_multiply_are_refused_at_once(tmp_path: Path) -> None:
    model = Model()
    x = model.input("x", [4, 16])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    for at in range(40):
        calls = [helper.make_node(f"f{at + 1}", [a], [b], domain="mine") for a, b in ("ab", "bc")]
        model.functions.append(helper.make_function("mine", f"f{at}", ["a"], ["c"], calls, sets))
    last = [helper.make_node("Relu", ["a"], ["c"])]
    model.functions.append(helper.make_function("mine", "f40", ["a"], ["c"], last, sets))
    model.output(model.add("f0", x, domain="mine"))
    with pytest.raises(WorkloadError, match=r"model.onnx: .* 1,099,511,627,776 operators"):
        load_onnx(model.save(tmp_path))


def test_equal_operators_are_asked_about_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnx import shape_inference

    asked = []
    original = shape_inference.infer_node_outputs

    def counted(*args: Any, **given: Any) -> Any:
        asked.append(1)
        return original(*args, **given)

    monkeypatch.setattr(shape_inference, "infer_node_outputs", counted)
    model = Model()
    x = model.input("x", [4, 16])
    model.weight("w", 16, 16)
    for _ in range(100):
        x = model.add("MatMul", x, "w", name="same")
    model.output(x)
    found = load_onnx(model.save(tmp_path))
    assert len(asked) == 1
    assert [node.name for node in found.layers[:3]] == ["same", "same #2", "same #3"]
    assert found.macs == 100 * 4 * 256


def test_lists_that_equal_operators_make_are_each_known(tmp_path: Path) -> None:
    model = Model()
    x = model.input("x", [6, 4])
    for _ in range(2):
        parts = model.add("SequenceConstruct", x, x)
        part = model.add("SequenceAt", parts, model.number(1, shape=[]))
        model.output(model.add("MatMul", part, model.weight(f"w{len(model.tensors)}", 4, 5)))
    assert load_onnx(model.save(tmp_path)).macs == 2 * 6 * 4 * 5


def test_a_shape_without_elements_is_known(tmp_path: Path) -> None:
    model = Model()
    x = model.input("x", [2, 4, 3])
    none = model.add("ConstantOfShape", model.number(2, 4, 0))
    y = model.add("Concat", none, x, axis=2)
    model.output(model.add("Conv", y, model.weight("w", 4, 1, 2), group=4))
    assert load_onnx(model.save(tmp_path)).macs == 2 * 4 * 2 * 2


def test_larger_outputs_of_transposed_convolutions(tmp_path: Path) -> None:
    model = Model()
    x = model.input("x", [1, 2, 3, 3])
    y = model.add("ConvTranspose", x, model.weight("w", 2, 4, 3, 3), strides=[3, 2],
                  output_shape=[10, 8])  # fmt: skip
    model.output(model.add("Conv", y, model.weight("u", 1, 4, 1, 1)))
    assert load_onnx(model.save(tmp_path)).macs == 2 * 9 * 4 * 9 + 80 * 4


def test_quantised_recurrent_layers_of_the_runtime(tmp_path: Path) -> None:
    model = Model()
    x = model.input("x", [5, 2, 8])
    w = helper.make_tensor("w", TensorProto.INT8, [2, 8, 12], [1] * 192)
    r = helper.make_tensor("r", TensorProto.INT8, [2, 3, 12], [1] * 72)
    scale = helper.make_tensor("scale", FLOAT, [2], [1.0] * 2)
    zero = helper.make_tensor("zero", TensorProto.INT8, [2], [0] * 2)
    model.tensors += [w, r, scale, zero]
    made = model.add("DynamicQuantizeLSTM", x, "w", "r", "", "", "", "", "", "scale", "zero",
                     "scale", "zero", n=1, domain="com.microsoft", hidden_size=3,
                     direction="bidirectional")  # fmt: skip
    model.output(model.add("MatMul", made, model.weight("v", 3, 7)))
    model.tensors[-1] = helper.make_tensor("v", FLOAT, [3, 7], [0.0] * 21)
    proto = model.proto()
    proto.ir_version = 10
    found = load_onnx(save(proto, tmp_path))
    assert not found.unsupported
    expected = by_runtime(proto, {"x": np.zeros((5, 2, 8), np.float32)})
    assert found.macs == expected == 5 * 2 * 2 * 12 * (8 + 3) + 5 * 2 * 2 * 3 * 7


KINDS = "lstm|gru|rnn|conv|convtranspose|einsum|matmul|gemm|basic_conv|attention_.d|affine_grid"


@pytest.mark.filterwarnings("ignore")
def test_the_cases_of_the_library_are_counted_as_they_run(tmp_path: Path) -> None:
    """`benchmarks.onnx_campaign` goes through all of them."""
    path = tmp_path / "model.onnx"
    n_equal = 0
    for case in collect_testcases(None):
        if not re.fullmatch(f"test_(q?linear)?({KINDS})(integer)?(_.*)?", case.name):
            continue
        path.write_bytes(case.model.SerializeToString())
        feeds = dict(
            zip([one.name for one in case.model.graph.input], case.data_sets[0][0], strict=False)
        )
        rows = {
            name: value.tolist()
            for name, value in feeds.items()
            if value.dtype == np.int64 and value.ndim == 1
        }
        found = load_onnx(path, values=rows if "affine_grid" in case.name else None)
        assert not found.unsupported, case.name
        assert found.macs == by_evaluator(case.model, feeds), case.name
        n_equal += bool(found.macs)
    assert n_equal > 150
