"""Multiply-accumulates of a run of an ONNX model, counted as its operators are defined.

Knows nothing of loopsched: it looks at the shapes that a run really has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Shapes = Sequence[Shape | None]


def _convolution(weight: int) -> Callable[..., int]:
    """Each element of the output takes the whole of one filter."""

    def count(inputs: Shapes, outputs: Shapes, _: Mapping[str, Any]) -> int:
        filters, made = inputs[weight], outputs[0]
        assert filters is not None
        assert made is not None
        return math.prod(made) * math.prod(filters[1:])

    return count


def _transposed(inputs: Shapes, outputs: Shapes, _: Mapping[str, Any]) -> int:
    """Each element of the input goes to the whole of one filter."""
    image, filters = inputs[:2]
    assert image is not None
    assert filters is not None
    return math.prod(image) * math.prod(filters[1:])


def _product(inputs: Shapes, outputs: Shapes, found: Mapping[str, Any]) -> int:
    left, made = inputs[0], outputs[0]
    assert left is not None
    assert made is not None
    summed = left[0] if found.get("transA") and len(left) == 2 else left[-1]
    return math.prod(made) * summed


def _sum(inputs: Shapes, outputs: Shapes, found: Mapping[str, Any]) -> int:
    """Every combination of indices is one product, if there are two operands."""
    given = [one for one in inputs if one is not None]
    if len(given) != 2:
        return 0
    equation = found["equation"]
    equation = equation.decode() if isinstance(equation, bytes) else equation
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, given, strict=True):
        before, dots, after = term.partition("...")
        hidden = len(shape) - len(before) - len(after)
        axes = [*before, *(f"hidden{at - hidden}" for at in range(hidden)), *after]
        assert dots or not hidden
        for axis, size in zip(axes, shape, strict=True):
            sizes[axis] = max(sizes.get(axis, 1), size)
    return math.prod(sizes.values())


def _recurrent(gates: int) -> Callable[..., int]:
    def count(inputs: Shapes, outputs: Shapes, found: Mapping[str, Any]) -> int:
        rows, weights = inputs[:2]
        assert rows is not None
        assert weights is not None
        directions = weights[0]
        hidden = found.get("hidden_size") or weights[1] // gates
        return rows[0] * rows[1] * directions * gates * hidden * (rows[2] + hidden)

    return count


def _quantised_recurrent(inputs: Shapes, outputs: Shapes, _: Mapping[str, Any]) -> int:
    rows, weights, again = inputs[:3]
    assert rows is not None
    assert weights is not None
    assert again is not None
    return rows[0] * rows[1] * (math.prod(weights) + math.prod(again))


def _attention(inputs: Shapes, outputs: Shapes, found: Mapping[str, Any]) -> int:
    """Each query meets each key, then each value: the depth of both is summed over."""
    query, key, value = inputs[:3]
    assert query is not None
    assert key is not None
    assert value is not None
    past = inputs[4] if len(inputs) > 4 else None
    keys = key[-2] + (past[2] if past else 0)
    if len(query) == 4:
        pairs, depths = query[0] * query[1] * query[2] * keys, query[3] + value[3]
    else:
        heads, groups = found["q_num_heads"], found["kv_num_heads"]
        pairs = query[0] * heads * query[1] * keys
        depths = query[2] // heads + value[2] // groups
    return pairs * depths


COUNTED: Mapping[str, Callable[[Shapes, Shapes, Mapping[str, Any]], int]] = {
    "Attention": _attention,
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "ConvTranspose": _transposed,
    "DynamicQuantizeLSTM": _quantised_recurrent,
    "Einsum": _sum,
    "FusedConv": _convolution(1),
    "GRU": _recurrent(3),
    "Gemm": _product,
    "LSTM": _recurrent(4),
    "MatMul": _product,
    "MatMulInteger": _product,
    "QLinearConv": _convolution(3),
    "QLinearMatMul": _product,
    "RNN": _recurrent(1),
}


def _shapes(values: Sequence[Any]) -> list[Shape | None]:
    return [tuple(one.shape) if hasattr(one, "shape") else None for one in values]


@contextmanager
def counting() -> Iterator[list[int]]:
    """Count what ONNX's own evaluator runs, bodies of loops and functions included.

    Yields
    ------
    list of int
        The multiply-accumulates of every operator that has some.
    """
    from onnx.reference.op_run import OpRun

    counts: list[int] = []
    inside: list[str] = []

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **given: Any) -> Any:
            op = self.onnx_node.op_type
            rule = COUNTED.get(op)
            if rule is None or inside:
                return original(self, *args, **given)
            inside.append(op)
            try:
                found = original(self, *args, **given)
            finally:
                inside.pop()
            attributes = {name: getattr(self, name, None) for name in self.attributes_names_}
            counts.append(rule(_shapes(args), _shapes(found), attributes))
            return found

        return run

    kinds = [OpRun]
    for kind in kinds:
        kinds += kind.__subclasses__()
    originals = {kind: kind.__dict__["run"] for kind in kinds if "run" in kind.__dict__}
    for kind, original in originals.items():
        kind.run = watched(original)
    try:
        yield counts
    finally:
        for kind, original in originals.items():
            kind.run = original


def by_evaluator(model: Any, feeds: Mapping[str, Any]) -> int:
    """Count with ONNX's own evaluator: slow, but it sees everything."""
    from onnx.reference import ReferenceEvaluator

    with counting() as counts:
        ReferenceEvaluator(model).run(None, dict(feeds))
    return sum(counts)


def by_runtime(model: Any, feeds: Mapping[str, Any]) -> int:
    """Count with onnxruntime, every value between operators an output: no bodies are seen."""
    import onnx
    import onnxruntime

    told = onnx.ModelProto()
    told.CopyFrom(model)
    names = {one.name for one in told.graph.output}
    wanted = [node for node in told.graph.node if node.op_type in COUNTED]
    for name in dict.fromkeys(
        name for node in wanted for name in (*node.input, *node.output[:1]) if name
    ):
        if name not in names:
            told.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(told.SerializeToString(), options)
    made = dict(zip([one.name for one in session.get_outputs()], session.run(None, dict(feeds)),
                    strict=True))  # fmt: skip
    shapes = {name: np.shape(value) for name, value in made.items()}
    total = 0
    for node in wanted:
        given = [shapes.get(name) if name else None for name in node.input]
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        out = [shapes.get(name) for name in node.output]
        total += COUNTED[node.op_type](given, out, attributes)
    return total
