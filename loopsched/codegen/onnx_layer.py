"""Layers as ONNX Runtime computes them: another implementation to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loopsched.base.arrays import Array
from loopsched.base.errors import MissingExtraError
from loopsched.problems.problem import Problem

Run = Callable[[Sequence[Array]], Array]


def onnx_layer(problem: Problem, threads: int) -> Run | None:
    """Build a model of one layer in fp32, and what runs it.

    Parameters
    ----------
    problem : Problem
        A product, also batched, or a forward convolution; None is returned for others.
    threads : int
        That ONNX Runtime may use.

    Returns
    -------
    callable or None
        Takes what is read as contiguous arrays, in the problem's order.

    Raises
    ------
    MissingExtraError
        If onnx or onnxruntime is not installed.
    """
    node = _convolution(problem) if problem.kind == "conv2d" else _product(problem)
    if node is None:
        return None
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError:
        raise MissingExtraError(
            "comparing with ONNX Runtime needs onnx and onnxruntime; install both, or "
            "loopsched with the extra 'check'"
        ) from None
    operator, attributes, shapes, turns = node
    floats = TensorProto.FLOAT
    inputs = [
        helper.make_tensor_value_info(name, floats, shape)
        for name, shape in zip("ab", shapes, strict=True)
    ]
    output = helper.make_tensor_value_info("c", floats, None)
    names, nodes = ["a", "b"], []
    for place, turn in enumerate(turns):
        if turn:
            nodes.append(helper.make_node("Transpose", [names[place]], [f"t{place}"], perm=turn))
            names[place] = f"t{place}"
    nodes.append(helper.make_node(operator, names, ["c"], **attributes))
    graph = helper.make_graph(nodes, "layer", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def run(arrays: Sequence[Array]) -> Array:
        given = [one.reshape(shape) for one, shape in zip(arrays, shapes, strict=True)]
        found: Array = session.run(["c"], {"a": given[0], "b": given[1]})[0]
        return found

    return run


_Node = tuple[str, dict[str, Any], list[list[int]], list[list[int]]]


def _convolution(problem: Problem) -> _Node | None:
    """Describe a forward convolution: groups are part of the channels."""
    given: dict[str, Any] = dict(problem.attributes)
    if given["pass"] != "forward":
        return None
    size, groups = problem.size, given["groups"]
    top, bottom, left, right = given["padding"]
    channels = size["C"] * groups, size["K"] * groups
    shapes = [
        [size["N"], channels[0], *given["input_size"]],
        [channels[1], size["C"], size["R"], size["S"]],
    ]
    attributes = {
        "strides": list(given["stride"]),
        "dilations": list(given["dilation"]),
        "pads": [top, left, bottom, right],
        "group": groups,
    }
    return "Conv", attributes, shapes, [[], []]


def _product(problem: Problem) -> _Node | None:
    if problem.kind not in ("gemm", "batched_gemm"):
        return None
    given: dict[str, Any] = dict(problem.attributes)
    shapes, turns = [], []
    for tensor, side in zip(problem.tensors, ("transpose_a", "transpose_b"), strict=False):
        dims = [problem.size[axis.dims[0]] for axis in tensor.axes]
        order = list(range(len(dims)))
        shapes.append(dims)
        turns.append([*order[:-2], order[-1], order[-2]] if given[side] else [])
    return "MatMul", {}, shapes, turns
