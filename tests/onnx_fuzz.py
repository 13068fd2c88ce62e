"""Broken and random ONNX models for the reader to survive."""

from __future__ import annotations

import random
from typing import Any

from onnx import AttributeProto, TensorProto, defs, helper

from tests.onnx_models import BOOL, FLOAT, INT64

_OPERATORS = sorted(
    {schema.name for schema in defs.get_all_schemas_with_history() if not schema.domain}
)
_TEXTS = {
    "usual": "Conv ConvTranspose Gemm MatMul Einsum QLinearConv QLinearMatMul LSTM GRU RNN "
    "Attention Reshape Transpose Slice Concat Gather Split Squeeze Unsqueeze Shape Loop If Scan "
    "MatMulInteger ConvInteger Constant ConstantOfShape Expand Where Range Cast",
    "contributed": "Attention MultiHeadAttention FusedConv FusedGemm FusedMatMul QGemm "
    "SkipLayerNormalization",
    "attributes": "axis axes perm pads strides dilations group kernel_shape auto_pad equation "
    "transA transB to value value_int value_ints num_heads q_num_heads kv_num_heads hidden_size "
    "layout output_padding output_shape keepdims start end starts ends steps num_scan_inputs "
    "scan_input_axes body then_branch else_branch",
}
_USUAL, _CONTRIBUTED, _ATTRIBUTES = (text.split() for text in _TEXTS.values())
_WORDS = ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "ij,jk->ik", "...ij,...jk", "i,i->",
          "ii,ij->j", "a,b->ab", ".a,b", "", "x")  # fmt: skip
_SHAPES: Any = (None, [], [2, 3], ["n", 3, 8, 8], ["n", "s", 16], [2, 3, 4], [1, 2, 3, 4, 5],
                [0, 3], [None, 4])  # fmt: skip


def flipped(content: bytes, rng: random.Random) -> bytes:
    """Change, drop and add some bytes."""
    found = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        place, how = rng.randrange(len(found) + 1), rng.random()
        if how < 0.6:
            found[place : place + 1] = bytes([rng.randrange(256)])
        elif how < 0.75:
            del found[place : place + rng.randrange(1, 6)]
        elif how < 0.9:
            found[place:place] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 4)))
        else:
            del found[place + 1 :]
    return bytes(found)


class RandomModels:
    """Random graphs of random operators with random attributes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.n_made = 0

    def model(self) -> Any:
        version = self.rng.choice([1, 7, 9, 11, 13, 17, 21, 28, 99])
        graph = self.graph(0, self.rng.randrange(1, 8))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])

    def mutated(self, model: Any) -> Any:
        """Change some fields of a model that was right."""
        for _ in range(self.rng.randrange(1, 5)):
            node = self.rng.choice(model.graph.node) if model.graph.node else None
            which = self.rng.randrange(6)
            if node is None:
                break
            if which == 0:
                node.attribute.append(self.attribute(0))
            elif which == 1 and node.attribute:
                self.change(self.rng.choice(node.attribute), node)
            elif which == 2 and model.graph.initializer:
                tensor = self.rng.choice(model.graph.initializer)
                tensor.dims[:] = [*tensor.dims[:-1], self.rng.choice([-1, 0, 1, 5, 2**62])]
            elif which == 3 and node.input:
                place = self.rng.randrange(len(node.input))
                node.input[place] = self.rng.choice(["", "x", "w", "v1", "v2", "zz"])
            elif which == 4:
                node.op_type = self.rng.choice(_OPERATORS)
            else:
                model.graph.node.remove(node)
        return model

    def change(self, attribute: Any, node: Any) -> None:
        value = self.rng.choice([-5, 0, 1, 3, 2**50])
        if attribute.ints:
            attribute.ints[self.rng.randrange(len(attribute.ints))] = value
        elif attribute.type == attribute.INT:
            attribute.i = value
        else:
            node.attribute.remove(attribute)

    def numbers(self) -> list[int]:
        few = range(self.rng.randrange(5))
        return [self.rng.choice([-1, 0, 1, 2, 3, 4, 7, 2**40]) for _ in few]

    def tensor(self, name: str) -> Any:
        kind = self.rng.choice([FLOAT, INT64, BOOL, TensorProto.FLOAT16, TensorProto.INT8])
        dims = [self.rng.choice([0, 1, 1, 2, 3]) for _ in range(self.rng.randrange(4))]
        size = 1
        for one in dims:
            size *= one
        if self.rng.random() < 0.7:
            return helper.make_tensor(name, kind, dims, [self.rng.randrange(4)] * size)
        strange = [self.rng.choice([-3, 0, 1, 3, 64, 2**61]) for _ in dims]
        return TensorProto(name=name, data_type=self.rng.choice([kind, 99, 0]), dims=strange)

    def attribute(self, depth: int) -> Any:
        name, draw = self.rng.choice(_ATTRIBUTES), self.rng.random()
        value: Any = 1.5
        if name in ("body", "then_branch", "else_branch") and draw < 0.8 and depth < 3:
            value = self.graph(depth + 1, self.rng.randrange(4))
        elif name == "value" and draw < 0.9:
            value = self.tensor("t")
        elif (name in ("auto_pad", "equation") and draw < 0.8) or 0.8 < draw < 0.9:
            value = self.rng.choice(_WORDS)
        elif draw < 0.5:
            value = self.numbers()
        elif draw < 0.8:
            value = self.rng.choice([-1, 0, 1, 2, 4, 10**12])
        if value == []:
            return AttributeProto(name=name)
        return helper.make_attribute(name, value)

    def info(self, name: str) -> Any:
        kind = self.rng.choice([FLOAT, FLOAT, INT64, BOOL, TensorProto.INT8])
        return helper.make_tensor_value_info(name, kind, self.rng.choice(_SHAPES))

    def graph(self, depth: int, n_nodes: int) -> Any:
        names = ["x", "y", "", "w", "m", *(f"o{i}" for i in range(self.n_made)[-4:])]
        own = f"b{depth}_" if depth else ""
        inputs = [self.info(own + name) for name in ("x", "y")[: self.rng.randrange(3)]]
        nodes = []
        for _ in range(n_nodes):
            usual = self.rng.random() < 0.75
            op, domain = self.rng.choice(_USUAL if usual else _OPERATORS), ""
            if self.rng.random() < 0.1:
                op, domain = self.rng.choice(_CONTRIBUTED), "com.microsoft"
            made = []
            for _ in range(self.rng.randrange(4) if self.rng.random() < 0.2 else 1):
                self.n_made += 1
                fresh = self.rng.random() < 0.95
                made.append(f"o{self.n_made}" if fresh else self.rng.choice(names))
            read = [self.rng.choice(names) for _ in range(self.rng.randrange(5))]
            node = helper.make_node(op, read, made, self.rng.choice(["", "a"]), domain=domain)
            node.attribute.extend(self.attribute(depth) for _ in range(self.rng.randrange(4)))
            nodes.append(node)
            names += made
        outputs = [self.info(self.rng.choice(names)) for _ in range(self.rng.randrange(4))]
        tensors = [self.tensor(name) for name in ("w", "m")[: self.rng.randrange(3)]]
        return helper.make_graph(nodes, "graph", inputs, outputs, tensors)
