"""ONNX models of known networks, structure only: weights are named, their files do not exist."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

Shape = Sequence[int | str | None] | None
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def stored(name: str, shape: Sequence[int], kind: int = FLOAT) -> TensorProto:
    """A weight of which only name, type and shape are there."""
    tensor = TensorProto(name=name, data_type=kind, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="there_is_no_such_file.bin")
    return tensor


class Model:
    """Collects the nodes of a model; values have names of their own."""

    def __init__(self, opset: int = 17, kind: int = FLOAT) -> None:
        self.opset = opset
        self.kind = kind
        self.nodes: list[Any] = []
        self.tensors: list[TensorProto] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.functions: list[Any] = []
        self.n_values = 0

    def input(self, name: str, shape: Shape, kind: int | None = None) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind or self.kind, shape))
        return name

    def output(self, name: str, kind: int | None = None) -> str:
        self.outputs.append(helper.make_tensor_value_info(name, kind or self.kind, None))
        return name

    def weight(self, name: str, *shape: int, kind: int | None = None) -> str:
        self.tensors.append(stored(name, shape, kind or self.kind))
        return name

    def number(self, *values: int, shape: Sequence[int] | None = None, kind: int = INT64) -> str:
        name = f"number_{len(self.tensors)}"
        dims = [len(values)] if shape is None else shape
        self.tensors.append(helper.make_tensor(name, kind, dims, list(values)))
        return name

    def add(self, op: str, *inputs: str, n: int = 1, name: str = "", **attributes: Any) -> Any:
        made = []
        for _ in range(n):
            self.n_values += 1
            made.append(f"v{self.n_values}")
        node = helper.make_node(op, inputs, made, name=name or f"{op}_{self.n_values}")
        node.domain = attributes.pop("domain", "")
        for key, value in attributes.items():
            node.attribute.append(helper.make_attribute(key, value))
        self.nodes.append(node)
        return made[0] if n == 1 else tuple(made)

    def graph(self) -> Any:
        return helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, self.tensors)

    def proto(self, *domains: str) -> Any:
        names = dict.fromkeys(["", *domains, *(node.domain for node in self.nodes)])
        sets = [helper.make_opsetid(name, 1 if name else self.opset) for name in names]
        return helper.make_model(
            self.graph(), opset_imports=sets, functions=self.functions, producer_name="test"
        )

    def save(self, folder: Path, name: str = "model") -> Path:
        path = folder / f"{name}.onnx"
        path.write_bytes(self.proto().SerializeToString())
        return path


def _conv(
    model: Model, x: str, name: str, c: int, k: int, r: int, stride: int = 1, groups: int = 1
) -> str:
    """A convolution without bias and its normalisation, as torchvision has them."""
    weight = model.weight(f"{name}.weight", k, c // groups, r, r)
    pad = r // 2
    y = model.add(
        "Conv", x, weight, name=name, kernel_shape=[r, r], strides=[stride, stride],
        pads=[pad, pad, pad, pad], group=groups,
    )  # fmt: skip
    parts = ("scale", "shift", "mean", "variance")
    return str(
        model.add("BatchNormalization", y, *(model.weight(f"{name}.{one}", k) for one in parts))
    )


def _linear(model: Model, x: str, name: str, inner: int, outer: int) -> str:
    weight = model.weight(f"{name}.weight", outer, inner)
    bias = model.weight(f"{name}.bias", outer)
    return str(model.add("Gemm", x, weight, bias, name=name, transB=1))


def resnet50(batch: int | str = 1, opset: int = 17, kind: int = FLOAT) -> Model:
    """ResNet-50 version 1.5, as torchvision has it."""
    model = Model(opset, kind)
    x = model.input("image", [batch, 3, 224, 224])
    x = model.add("Relu", _conv(model, x, "conv1", 3, 64, 7, 2))
    x = model.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    c = 64
    for stage, (width, n_blocks) in enumerate(zip((64, 128, 256, 512), (3, 4, 6, 3), strict=True)):
        for block in range(n_blocks):
            name = f"layer{stage + 1}.{block}"
            stride = 2 if stage and not block else 1
            y = model.add("Relu", _conv(model, x, f"{name}.conv1", c, width, 1))
            y = model.add("Relu", _conv(model, y, f"{name}.conv2", width, width, 3, stride))
            y = _conv(model, y, f"{name}.conv3", width, 4 * width, 1)
            if not block:
                x = _conv(model, x, f"{name}.downsample", c, 4 * width, 1, stride)
            x = model.add("Relu", model.add("Add", y, x))
            c = 4 * width
    x = model.add("Flatten", model.add("GlobalAveragePool", x))
    model.output(_linear(model, x, "fc", 2048, 1000))
    return model


def mobilenet_v2(batch: int | str = 1) -> Model:
    """MobileNet-v2 of width 1, as torchvision has it."""
    model = Model()

    def bounded(y: str) -> str:
        return str(model.add("Clip", y, model.number(0, shape=[], kind=FLOAT),
                             model.number(6, shape=[], kind=FLOAT)))  # fmt: skip

    x = bounded(_conv(model, model.input("image", [batch, 3, 224, 224]), "stem", 3, 32, 3, 2))
    c = 32
    settings = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for stage, (expansion, k, n_blocks, first) in enumerate(settings):
        for block in range(n_blocks):
            name = f"stage{stage}.{block}"
            stride = first if not block else 1
            wide, y = c * expansion, x
            if expansion > 1:
                y = bounded(_conv(model, y, f"{name}.expand", c, wide, 1))
            y = bounded(_conv(model, y, f"{name}.depthwise", wide, wide, 3, stride, wide))
            y = _conv(model, y, f"{name}.project", wide, k, 1)
            x = model.add("Add", x, y) if stride == 1 and c == k else y
            c = k
    x = bounded(_conv(model, x, "head", c, 1280, 1))
    x = model.add("Flatten", model.add("GlobalAveragePool", x))
    model.output(_linear(model, x, "classifier", 1280, 1000))
    return model


def vgg16(batch: int | str = 1) -> Model:
    """VGG-16, configuration D."""
    model = Model()
    x, c = model.input("image", [batch, 3, 224, 224]), 3
    for stage, (k, n_layers) in enumerate(
        zip((64, 128, 256, 512, 512), (2, 2, 3, 3, 3), strict=True)
    ):
        for i in range(n_layers):
            name = f"conv{stage + 1}_{i + 1}"
            weight, bias = model.weight(f"{name}.weight", k, c, 3, 3), model.weight(f"{name}.b", k)
            y = model.add("Conv", x, weight, bias, name=name, pads=[1, 1, 1, 1])
            x, c = model.add("Relu", y), k
        x = model.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = model.add("Flatten", x)
    x = model.add("Relu", _linear(model, x, "fc6", 25088, 4096))
    x = model.add("Relu", _linear(model, x, "fc7", 4096, 4096))
    model.output(_linear(model, x, "fc8", 4096, 1000))
    return model


def _norm(model: Model, x: str, name: str, width: int = 768) -> str:
    scale, shift = model.weight(f"{name}.scale", width), model.weight(f"{name}.shift", width)
    return str(model.add("LayerNormalization", x, scale, shift, axis=-1))


def _lengths(model: Model, x: str) -> tuple[str, str]:
    """Batch and sequence of a value, read from its shape while the model runs."""
    shape = model.add("Shape", x)
    found = [
        model.add("Unsqueeze", model.add("Gather", shape, model.number(i, shape=[])),
                  model.number(0))
        for i in (0, 1)
    ]  # fmt: skip
    return found[0], found[1]


def bert_base(batch: int | str = "batch", sequence: int | str = "sequence") -> Model:
    """BERT-base, as an exporter writes it: weights turned by a Transpose, open lengths."""
    model = Model()
    ids = model.input("input_ids", [batch, sequence], INT64)
    kinds = model.input("token_type_ids", [batch, sequence], INT64)
    places = model.add("Slice", model.weight("position_ids", 1, 512, kind=INT64),
                       model.number(0), _lengths(model, ids)[1], model.number(1))  # fmt: skip
    x = model.add("Gather", model.weight("word_embeddings", 30522, 768), ids)
    for name, rows, index in (("type", 2, kinds), ("position", 512, places)):
        table = model.weight(f"{name}_embeddings", rows, 768)
        x = model.add("Add", x, model.add("Gather", table, index))
    x = _norm(model, x, "embeddings")

    def dense(y: str, name: str, inner: int, outer: int) -> str:
        weight = model.weight(f"{name}.weight", outer, inner)
        turned = model.add("Transpose", weight, perm=[1, 0])
        product = model.add("MatMul", y, turned, name=name)
        return str(model.add("Add", model.weight(f"{name}.bias", outer), product))

    for i in range(12):
        name = f"layer.{i}"
        n, s = _lengths(model, x)
        split = model.add("Concat", n, s, model.number(12), model.number(64), axis=0)
        heads = [
            model.add("Reshape", dense(x, f"{name}.{one}", 768, 768), split)
            for one in ("query", "key", "value")
        ]
        q = model.add("Transpose", heads[0], perm=[0, 2, 1, 3])
        k = model.add("Transpose", heads[1], perm=[0, 2, 3, 1])
        v = model.add("Transpose", heads[2], perm=[0, 2, 1, 3])
        scores = model.add("MatMul", q, k, name=f"{name}.scores")
        scaled = model.add("Div", scores, model.number(8, shape=[], kind=FLOAT))
        context = model.add("MatMul", model.add("Softmax", scaled), v, name=f"{name}.context")
        joined = model.add("Concat", n, s, model.number(768), axis=0)
        flat = model.add("Reshape", model.add("Transpose", context, perm=[0, 2, 1, 3]), joined)
        x = _norm(model, model.add("Add", dense(flat, f"{name}.out", 768, 768), x), f"{name}.a")
        wide = model.add("Erf", dense(x, f"{name}.up", 768, 3072))
        x = _norm(model, model.add("Add", dense(wide, f"{name}.down", 3072, 768), x), f"{name}.b")
    first = model.add("Gather", x, model.number(0, shape=[]), axis=1)
    model.output(x)
    model.output(model.add("Tanh", _linear(model, first, "pooler", 768, 768)))
    return model


def gpt2(batch: int | str = 1, sequence: int | str = 1024) -> Model:
    """GPT-2 of 124 M parameters: Gemm over folded rows, one product split in three."""
    model = Model()
    ids = model.input("input_ids", [batch, sequence], INT64)
    places = model.input("position_ids", [1, sequence], INT64)
    words = model.weight("wte", 50257, 768)
    x = model.add(
        "Add", model.add("Gather", words, ids),
        model.add("Gather", model.weight("wpe", 1024, 768), places),
    )  # fmt: skip

    def dense(y: str, name: str, inner: int, outer: int) -> str:
        weight = model.weight(f"{name}.weight", inner, outer)
        rows = model.add("Reshape", y, model.number(-1, inner))
        flat = model.add("Gemm", rows, weight, model.weight(f"{name}.bias", outer), name=name)
        n, s = _lengths(model, y)
        whole = model.add("Concat", n, s, model.number(outer), axis=0)
        return str(model.add("Reshape", flat, whole))

    for i in range(12):
        name = f"h.{i}"
        both = dense(_norm(model, x, f"{name}.ln_1"), f"{name}.attn.c_attn", 768, 2304)
        parts = model.add("Split", both, model.number(768, 768, 768), n=3, axis=2)
        q, k, v = (model.add("Reshape", part, model.number(0, 0, 12, 64)) for part in parts)
        q = model.add("Transpose", q, perm=[0, 2, 1, 3])
        k = model.add("Transpose", k, perm=[0, 2, 3, 1])
        v = model.add("Transpose", v, perm=[0, 2, 1, 3])
        scores = model.add("MatMul", q, k, name=f"{name}.attn.scores")
        masked = model.add("Where", model.add("Greater", scores, scores), scores, scores)
        context = model.add("MatMul", model.add("Softmax", masked), v, name=f"{name}.attn.context")
        back = model.add("Transpose", context, perm=[0, 2, 1, 3])
        flat = model.add("Reshape", back, model.number(0, 0, 768))
        x = model.add("Add", x, dense(flat, f"{name}.attn.c_proj", 768, 768))
        up = dense(_norm(model, x, f"{name}.ln_2"), f"{name}.mlp.c_fc", 768, 3072)
        x = model.add("Add", x, dense(model.add("Tanh", up), f"{name}.mlp.c_proj", 3072, 768))
    turned = model.add("Transpose", words, perm=[1, 0])
    model.output(model.add("MatMul", _norm(model, x, "ln_f"), turned, name="lm_head"))
    return model


def body(
    nodes: Sequence[Any],
    inputs: Sequence[tuple[str, int, Shape]],
    outputs: Sequence[tuple[str, int, Shape]],
    tensors: Sequence[TensorProto] = (),
) -> Any:
    """A graph inside a node."""
    infos = [
        [helper.make_tensor_value_info(*one) for one in several] for several in (inputs, outputs)
    ]
    return helper.make_graph(list(nodes), "body", *infos, list(tensors))


def save(proto: Any, folder: Path, name: str = "model") -> Path:
    path = folder / f"{name}.onnx"
    onnx.save(proto, path)
    return path
