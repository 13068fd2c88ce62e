"""A network as rows of plain values: layers, and what is not a layer."""

from __future__ import annotations

from typing import Any

from loopsched.network.graph import Network
from loopsched.network.node import Node
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.problems.workload_schema import OPERATIONS
from loopsched.problems.workload_write import problem_fields

_KEYS = (
    "layer", "role", "name", "operator", "kind", "shape", "count", "macs", "data_bytes",
    "weight_bytes", "why",
)  # fmt: skip


def shape_text(problem: Problem) -> str:
    """Write a problem's shape as the builders name it by default.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> shape_text(gemm(m=8, n=4, k=2, transpose_b=True, name="mine"))
    'm8 n4 k2 nt'
    """
    fields = problem_fields(problem)
    operation = OPERATIONS[fields.pop("op")]
    known = operation.field_names()
    return operation.build(**{known[name].parameter: value for name, value in fields.items()}).name


def network_rows(network: Network) -> list[dict[str, Any]]:
    """Describe a network: a row for each different layer, then for what has no nest.

    Returns
    -------
    list of dict
        All with the same keys.  ``role`` is that of `Node`; ``count`` says how
        often; ``layer`` is the number in `Network.workload`, None where there
        is no nest; ``weight_bytes`` is None where it is not known what is a
        weight; ``why`` says why an unsupported operator has no nest.

    Examples
    --------
    >>> from loopsched.network.text import load_network
    >>> row = network_rows(load_network("bert_base"))[0]
    >>> row["name"], row["count"], row["shape"]
    ('query_key_value', 48, 'm384 n768 k768 nt')
    """
    weights = _stored(network)
    rows = [
        _layer_row(number, nodes[0], problem, sum(node.count for node in nodes), weights)
        for number, (problem, nodes) in enumerate(network.different.items())
    ]
    rows += [
        _row("unsupported", one.op, one.count, name=one.where, why=one.why)
        for one in network.unsupported
    ]
    return rows + [_row(role, op, count) for op, role, count in network.passed]


def _stored(network: Network) -> set[str]:
    """Find the weights, also where they are only turned or widened before they are used."""
    found = {value.name for value in network.values if value.is_weight}
    for node in network.nodes:
        is_same = node.role == "shape" or node.op == "DequantizeLinear"
        if is_same and node.inputs and node.inputs[0] in found:
            found |= set(node.outputs)
    return found


def _layer_row(
    number: int, node: Node, problem: Problem, count: int, weights: set[str]
) -> dict[str, Any]:
    sizes = {tensor.name: tensor_bytes(problem, tensor) for tensor in problem.tensors}
    stored = sum(sizes[tensor] for tensor, value in node.operands if value in weights)
    return _row(
        "layer",
        node.op,
        count,
        layer=number,
        name=node.name,
        kind=problem.kind,
        shape=shape_text(problem),
        macs=problem.macs,
        data_bytes=sum(sizes.values()),
        weight_bytes=stored if weights else None,
    )


def _row(role: str, op: str, count: int, **more: Any) -> dict[str, Any]:
    given = {"role": role, "operator": op, "count": count} | more
    return {key: given.get(key) for key in _KEYS}
