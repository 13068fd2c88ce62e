"""Small ONNX models that are odd in one way each, structure only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import TensorProto, helper

from tests.onnx_models import BOOL, FLOAT, INT64, Model, body

INT8, UINT8, INT32, HALF = (
    TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.FLOAT16,
)  # fmt: skip


def dynamic_batch() -> Model:
    model = Model()
    x = model.input("x", ["n", 3, 32, 32])
    model.output(model.add("Conv", x, model.weight("w", 8, 3, 3, 3), name="conv"))
    return model


def opset_9() -> Model:
    """Axes are attributes, and a Slice has its numbers there too."""
    model = Model(opset=9)
    x = model.input("x", ["n", 64, 28, 28])
    length = model.add("Slice", model.add("Shape", x), starts=[0], ends=[1], axes=[0])
    wide = model.add("Concat", length, model.number(-1), axis=0)
    y = model.add("Reshape", x, wide)
    y = model.add("Unsqueeze", model.add("Gemm", y, model.weight("w", 64 * 784, 10)), axes=[0])
    model.output(model.add("Squeeze", y, axes=[0]))
    return model


def latest() -> Model:
    from onnx import defs

    model = dynamic_batch()
    model.opset = defs.onnx_opset_version()
    return model


def split() -> Model:
    model = Model()
    x = model.input("x", [4, 96])
    parts = model.add("Split", x, model.number(32, 64), n=2, axis=1)
    left = model.add("MatMul", parts[0], model.weight("w", 32, 8), name="left")
    right = model.add("MatMul", parts[1], model.weight("u", 64, 8), name="right")
    model.output(model.add("Concat", left, right, axis=1))
    return model


def by_shape() -> Model:
    """Lengths, known only once shapes are, choose branches inside branches and trip counts."""
    model = Model()
    model.input("x", ["n", 16])
    model.weight("w", 16, 8)
    model.weight("u", 16, 8)
    length = model.add("Gather", model.add("Shape", "x"), model.number(1, shape=[]))
    is_wide = model.add("Equal", length, model.number(16, shape=[]))
    inner = helper.make_node("If", [is_wide], ["i"], "inner", then_branch=_branch("w", 8),
                             else_branch=_branch("u", 8))  # fmt: skip
    outer = model.add("If", is_wide, then_branch=body([inner], [], [("i", FLOAT, None)]),
                      else_branch=_branch("u", 8), name="outer")  # fmt: skip
    step = body(
        [helper.make_node("Identity", ["go"], ["on"]),
         helper.make_node("MatMul", ["h", "v"], ["g"], "step")],
        [("i", INT64, []), ("go", BOOL, []), ("h", FLOAT, None)],
        [("on", BOOL, []), ("g", FLOAT, None)],
    )  # fmt: skip
    model.weight("v", 8, 8)
    model.output(model.add("Loop", length, "", outer, body=step, name="repeat"))
    return model


def _branch(name: str, width: int) -> Any:
    node = helper.make_node("MatMul", ["x", name], [f"{name}_y"], name=f"with_{name}")
    return body([node], [], [(f"{name}_y", FLOAT, None)])


def branches(known: bool) -> Model:
    model = Model()
    model.input("x", [4, 16])
    model.weight("w", 16, 8)
    model.weight("u", 16, 8)
    condition = model.number(0, shape=[], kind=BOOL) if known else model.input("c", [], BOOL)
    y = model.add(
        "If", condition, then_branch=_branch("w", 8), else_branch=_branch("u", 8), name="choose"
    )
    model.output(model.add("MatMul", y, model.weight("v", 8, 2), name="after"))
    return model


def loop(known: bool, grows: bool = False, until: bool = False) -> Model:
    model = Model()
    x = model.input("x", [4, 16])
    model.weight("w", 16, 16)
    trips = model.number(5, shape=[]) if known else model.input("n", [], INT64)
    condition = model.input("c", [], BOOL) if until else ""
    nodes = [
        helper.make_node("MatMul", ["h", "w"], ["g"], name="step"),
        helper.make_node("Identity", ["go"], ["go_on"]),
        helper.make_node("Relu", ["g"], ["row"]),
    ]
    if grows:
        nodes.append(helper.make_node("Concat", ["h", "g"], ["longer"], axis=0))
    inside = body(
        nodes,
        [("i", INT64, []), ("go", BOOL, []), ("h", FLOAT, None)],
        [("go_on", BOOL, []), ("longer" if grows else "g", FLOAT, None), ("row", FLOAT, None)],
    )
    last, rows = model.add("Loop", trips, condition, x, n=2, body=inside, name="repeat")
    model.output(last)
    model.output(model.add("MatMul", rows, model.weight("v", 16, 2), name="after"))
    return model


def loop_in_loop() -> Model:
    """Three trips of a loop around five of another, and one product after those."""
    model = Model()
    x = model.input("x", [4, 16])
    model.weight("w", 16, 16)
    state = [("i", INT64, []), ("go", BOOL, []), ("h", FLOAT, None)]
    goes_on = helper.make_node("Identity", ["go"], ["on"])

    def steps(name: str, *before: Any) -> Any:
        given = before[0].output[0] if before else "h"
        step = helper.make_node("MatMul", [given, "w"], ["g"], name)
        return body([goes_on, *before, step], state, [("on", BOOL, []), ("g", FLOAT, None)])

    few, many = model.number(3, shape=[]), model.number(5, shape=[])
    body_of_inner = steps("inner_step")
    inner = helper.make_node("Loop", [many, "", "h"], ["inner_h"], "inner", body=body_of_inner)
    model.output(model.add("Loop", few, "", x, body=steps("outer_step", inner), name="outer"))
    return model


def scan() -> Model:
    model = Model()
    start, steps = model.input("h0", ["n", 16]), model.input("x", [7, "n", 16])
    model.weight("w", 16, 16)
    inside = body(
        [
            helper.make_node("MatMul", ["h", "w"], ["g"], name="step"),
            helper.make_node("Add", ["g", "one"], ["next"]),
            helper.make_node("Identity", ["next"], ["out"]),
        ],
        [("h", FLOAT, None), ("one", FLOAT, None)],
        [("next", FLOAT, None), ("out", FLOAT, None)],
    )
    _, rows = model.add("Scan", start, steps, n=2, body=inside, num_scan_inputs=1, name="scan")
    model.output(model.add("MatMul", rows, model.weight("v", 16, 2), name="after"))
    return model


def unknown_operator() -> Model:
    model = Model()
    x = model.input("x", [4, 16])
    y = model.add("Fancy", x, name="fancy")
    model.output(model.add("MatMul", y, model.weight("w", 16, 8), name="after"))
    return model


def custom_domain() -> Model:
    model = Model()
    x = model.input("x", [4, 16])
    y = model.add("MatMul", x, model.weight("w", 16, 8), name="before")
    model.output(model.add("Quantum", y, name="quantum", domain="my.domain"))
    return model


def no_shapes() -> Model:
    model = Model()
    x = model.input("x", None)
    y = model.add("Conv", x, model.weight("w", 8, 3, 3, 3), name="conv")
    model.output(model.add("MatMul", y, y, name="square"))
    return model


def quantised() -> Model:
    """An operator with scales, and floating-point ones between conversions."""
    model = Model()
    x = model.input("x", ["n", 16, 8, 8], UINT8)
    scale, zero = model.number(1, shape=[], kind=FLOAT), model.number(0, shape=[], kind=UINT8)
    w = model.weight("w", 32, 16, 3, 3, kind=INT8)
    none = model.number(0, shape=[], kind=INT8)
    y = model.add("QLinearConv", x, scale, zero, w, scale, none, scale, zero, name="qconv")
    y = model.add("DequantizeLinear", y, scale, zero)
    u = model.add("DequantizeLinear", model.weight("u", 32, 32, 1, 1, kind=INT8), scale, none)
    y = model.add("QuantizeLinear", model.add("Conv", y, u, name="between"), scale, zero)
    model.output(model.add("ConvInteger", y, model.weight("v", 8, 32, 1, 1, kind=INT8), name="int"))
    return model


def one_axis() -> Model:
    model = Model()
    x = model.input("x", ["n", 80, 3000])
    y = model.add("Conv", x, model.weight("w", 384, 80, 3), pads=[1, 1], strides=[2], name="conv")
    model.output(y)
    return model


def three_axes() -> Model:
    model = Model()
    x = model.input("x", ["n", 3, 16, 112, 112])
    y = model.add(
        "Conv", x, model.weight("w", 64, 3, 3, 7, 7), pads=[1, 3, 3, 1, 3, 3], strides=[1, 2, 2],
        name="conv",
    )  # fmt: skip
    y = model.add("Conv", y, model.weight("u", 64, 16, 3, 3, 3), group=4, name="grouped")
    model.output(model.add("ConvTranspose", y, model.weight("v", 64, 8, 2, 2, 2), strides=[2] * 3,
                           name="back"))  # fmt: skip
    return model


def transposed() -> Model:
    model = Model()
    x = model.input("x", ["n", 64, 16, 16])
    y = model.add("ConvTranspose", x, model.weight("w", 64, 32, 4, 4), strides=[2, 2],
                  pads=[1, 1, 1, 1], name="up")  # fmt: skip
    y = model.add("ConvTranspose", y, model.weight("u", 32, 8, 3, 3), strides=[2, 2], group=2,
                  auto_pad="SAME_UPPER", name="same")  # fmt: skip
    model.output(model.add("ConvTranspose", y, model.weight("v", 16, 4, 3, 3), strides=[2, 2],
                           output_padding=[1, 1], pads=[1, 1, 1, 1], name="padded"))  # fmt: skip
    return model


def grouped() -> Model:
    model = Model()
    x = model.input("x", ["n", 32, 17, 31])
    for name, groups, more in (
        ("groups", 4, {"pads": [0, 1, 2, 3]}),
        ("depthwise", 32, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
        ("dilated", 1, {"dilations": [2, 3], "auto_pad": "VALID"}),
    ):
        weight = model.weight(f"{name}_w", 32, 32 // groups, 3, 3)
        x = model.add("Conv", x, weight, group=groups, name=name, **more)
    model.output(x)
    return model


def products() -> Model:
    """Matrix products of every kind of batch."""
    model = Model()
    a, b = model.input("a", [2, 12, 5, 7]), model.input("b", [12, 7, 3])
    shared = model.add("MatMul", a, b, name="partly_shared")
    model.output(model.add("MatMul", shared, model.weight("w", 3, 4), name="one_weight"))
    model.output(model.add("MatMul", model.weight("u", 6, 5), a, name="weight_first"))
    model.output(model.add("MatMul", a, model.weight("v", 7), name="vector"))
    model.output(model.add("Einsum", a, b, equation="bhmk,hkn->bhmn", name="sum"))
    model.output(model.add("Einsum", a, b, equation="...mk,...kn", name="dots"))
    model.output(model.add("Einsum", a, a, equation="bhii,bhkk->bhik", name="diagonal"))
    model.output(model.add("Gemm", model.weight("t", 9, 4), model.weight("s", 3, 9), transA=1,
                           transB=1, name="turned"))  # fmt: skip
    return model


def recurrent() -> Model:
    model = Model()
    x = model.input("x", [20, 8, 32])
    outputs = model.add("LSTM", x, model.weight("w", 2, 256, 32), model.weight("r", 2, 256, 64),
                        n=3, hidden_size=64, direction="bidirectional", name="lstm")  # fmt: skip
    model.output(outputs[0])
    return model


def attention() -> Model:
    model = Model(opset=23)
    q = model.input("q", ["n", 8, 128, 64])
    k, v = model.input("k", ["n", 2, 256, 64]), model.input("v", ["n", 2, 256, 64])
    model.output(model.add("Attention", q, k, v, name="attention"))
    return model


def contributed() -> Model:
    model = Model()
    x = model.input("x", [2, 16, 64])
    made = {"domain": "com.microsoft"}
    y = model.add("Attention", x, model.weight("w", 64, 192), num_heads=4, name="packed", **made)
    y = model.add("SkipLayerNormalization", y, x, model.weight("g", 64), **made)
    y = model.add("FusedMatMul", y, model.weight("u", 32, 64), transB=1, name="fused", **made)
    model.output(model.add("MatMulNBits", y, name="narrow", **made))
    return model


def kin() -> Model:
    """Fused, quantised and dynamic forms of products and convolutions; heads in one axis."""
    model = Model()
    made = {"domain": "com.microsoft"}
    scale, zero = model.number(1, shape=[], kind=FLOAT), model.number(0, shape=[], kind=INT8)
    x = model.input("x", ["n", 8, 10, 10])
    y = model.add("FusedConv", x, model.weight("w", 4, 8, 3, 3), activation="Relu", name="conv",
                  **made)  # fmt: skip
    y = model.add("Flatten", y)
    model.output(model.add("FusedGemm", y, model.weight("g", 16, 256), transB=1, name="gemm",
                           **made))  # fmt: skip
    a, b = model.input("a", ["n", 6, 16], INT8), model.weight("b", 16, 24, kind=INT8)
    model.output(model.add("MatMulInteger", a, b, name="integer"))
    model.output(model.add("QLinearMatMul", a, scale, zero, b, scale, zero, scale, zero,
                           name="linear"))  # fmt: skip
    q = model.input("q", [2, 12, 64])
    k, v = model.input("k", [2, 20, 64]), model.input("v", [2, 20, 32])
    joined = model.add("MultiHeadAttention", q, k, v, num_heads=4, name="heads", **made)
    model.output(model.add("MatMul", joined, model.weight("o", 32, 2), name="after"))
    model.output(model.add("DynamicQuantizeMatMul", q, model.weight("d", 64, 8, kind=INT8),
                           name="dynamic", **made))  # fmt: skip
    model.output(model.add("FusedMatMul", q, k, transA=0, transB=1, name="scores", **made))
    steps = model.input("steps", [5, 3, 10])
    gates = model.weight("wg", 1, 21, 10), model.weight("rg", 1, 21, 7)
    model.output(model.add("GRU", steps, *gates, n=2, hidden_size=7, name="gru")[0])
    return model


def functions() -> Model:
    model = Model()
    x = model.input("x", [4, 16])
    inner = helper.make_node("MatMul", ["a", "b"], ["c"], name="inside")
    model.functions.append(
        helper.make_function("mine", "Dense", ["a", "b"], ["c"], [inner],
                             [helper.make_opsetid("", 17)])
    )  # fmt: skip
    model.output(model.add("Dense", x, model.weight("w", 16, 8), domain="mine", name="call"))
    return model


def half() -> Model:
    model = Model(kind=HALF)
    x = model.input("x", ["n", 16])
    model.output(model.add("Gemm", x, model.weight("w", 16, 8), name="gemm"))
    return model


def cycle() -> Model:
    model = Model()
    x = model.input("x", [4, 16])
    model.output(model.add("MatMul", x, model.weight("w", 16, 8), name="before"))
    for made, read in (("p", "q"), ("q", "p")):
        node = helper.make_node("MatMul", [read, "w"], [made], name=f"makes_{made}")
        model.nodes.append(node)
    return model


def unsorted() -> Model:
    model = split()
    model.nodes.reverse()
    return model


def fourier() -> Model:
    model = Model(opset=17)
    x = model.input("x", [1, 128, 1])
    y = model.add("DFT", x, axis=1, name="fft")
    model.output(model.add("Det", y, name="det"))
    return model


ODD: dict[str, Callable[[], Model]] = {
    "dynamic_batch": dynamic_batch,
    "opset_9": opset_9,
    "latest": latest,
    "split": split,
    "if_known": lambda: branches(True),
    "if_unknown": lambda: branches(False),
    "by_shape": by_shape,
    "loop_known": lambda: loop(True),
    "loop_unknown": lambda: loop(False),
    "loop_until": lambda: loop(True, until=True),
    "loop_growing": lambda: loop(True, grows=True),
    "scan": scan,
    "unknown_operator": unknown_operator,
    "custom_domain": custom_domain,
    "no_shapes": no_shapes,
    "quantised": quantised,
    "one_axis": one_axis,
    "three_axes": three_axes,
    "transposed": transposed,
    "grouped": grouped,
    "products": products,
    "recurrent": recurrent,
    "attention": attention,
    "contributed": contributed,
    "kin": kin,
    "functions": functions,
    "half": half,
    "cycle": cycle,
    "unsorted": unsorted,
    "fourier": fourier,
}
