"""Networks as chains: cut where tensors branch, join, or leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loopsched.base.errors import ProblemError
from loopsched.fusion.chains import Break, Chain, Link, first_stage, joined, link_of
from loopsched.fusion.stages import Stage, Windows
from loopsched.network.graph import Network
from loopsched.network.node import Node
from loopsched.problems.problem import Problem


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Operators that a tile of their input is enough for: one value at a time, or one
# position with all its channels.
_BY_TILE = _names(
    """
    Abs Add BatchNormalization Cast Ceil Celu Clip DequantizeLinear Div Dropout Elu Erf Exp Flatten
    Floor Gelu HardSigmoid HardSwish Identity LRN LeakyRelu Log Max Min Mish Mul Neg PRelu Pow
    QuantizeLinear Reciprocal Relu Reshape Round Selu Shrink Sigmoid Sign Softplus Softsign Sqrt
    Squeeze Sub Sum Swish Tanh ThresholdedRelu Unsqueeze Where
    """
)
# A tile is enough if their windows say so; where those are not known, shapes may tell.
_POOLS = _names(
    """
    AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool ReduceL1 ReduceL2
    ReduceMax ReduceMean ReduceMin ReduceSum ReduceSumSquare
    """
)
# Enough for rows of a matrix product, which a tile has whole.
_BY_ROW = _names("LayerNormalization LogSoftmax RMSNormalization SkipLayerNormalization Softmax")


def network_chains(
    network: Network, *, assume_pooling: bool = True
) -> tuple[tuple[Chain, ...], tuple[Break, ...]]:
    """Cut a network into chains.

    A layer continues a chain if it is the only reader of what the chain's last
    layer made, if that one's output takes no other layer's tensor in on the
    way (the sum of a residual block), and if the shapes fit.

    Parameters
    ----------
    network : Network
    assume_pooling : bool
        As for `loopsched.fusion.fuse`.

    Returns
    -------
    tuple of Chain, tuple of Break
        Every layer is in one chain, alone if need be.

    Raises
    ------
    WorkloadError
        If the network has no layer.
    """
    graph: Any = network.graph()
    by_name = {node.name: node for node in network.nodes}
    chains: list[Chain] = []
    breaks: list[Break] = []
    for nodes in network.chains():
        stages: list[Stage] = []
        links: list[Link] = []
        for node in nodes:
            if node.problem is None:
                continue
            problem = node.problem.renamed(node.name)
            if not stages:
                stages = [first_stage(problem)]
                continue
            before = stages[-1]
            way = _way(graph, by_name, before.name, node)
            more = way if isinstance(way, str) else _joined(before, problem, way, assume_pooling)
            if isinstance(more, str):
                breaks.append(Break(before.name, node.name, more))
                chains.append(Chain(tuple(stages), nodes[0].count, tuple(links)))
                stages, links = [first_stage(problem)], []
                continue
            links.append(link_of(before, more, is_assumed=isinstance(way, _Way) and way.is_open))
            stages += more
        if stages:
            chains.append(Chain(tuple(stages), nodes[0].count, tuple(links)))
    if not chains:
        raise network.no_layers()
    return tuple(chains), tuple(breaks)


@dataclass(frozen=True, slots=True)
class _Way:
    """The poolings on the way to a value; whether there is one of unknown windows."""

    pools: tuple[Windows, ...] = ()
    is_open: bool = False


def _joined(before: Stage, problem: Problem, way: _Way, assume: bool) -> list[Stage] | str:
    try:
        return joined(before, problem, way.pools, way.is_open and assume)
    except ProblemError as error:  # a reshaping on the way to a pooling
        return str(error)


def _way(graph: Any, by_name: Mapping[str, Node], producer: str, node: Node) -> _Way | str:
    """Find what lies between a layer and its producer; or why they cannot be fused."""
    others = [other for other, _, edge in graph.in_edges(producer, data=True) if edge["taken"]]
    if others:
        return f"'{producer}' is added to what '{others[0]}' makes"
    edge = graph.edges[producer, node.name]
    if edge["taken"]:
        return f"'{node.name}' is added to what '{producer}' makes, too"
    first = node.problem.tensors[0].name if node.problem is not None else ""
    if edge["operands"] != (first,):
        return f"'{node.name}' reads what '{producer}' makes as {' and '.join(edge['operands'])}"
    maker: Node = graph.nodes[producer]["node"]
    is_matrix = maker.problem is not None and maker.problem.kind == "gemm"
    ways = dict.fromkeys(maker.outputs, _Way())
    found = _Way()
    for one in (by_name[name] for name in edge["via"]):
        own = list(dict.fromkeys(ways[name] for name in one.inputs if name in ways))
        if len(own) > 1:
            return f"{one.op} between them joins tensors of different windows"
        more = _through(one, own[0], is_matrix)
        if more is None:
            return f"{one.op} between them may need more than a tile of '{producer}'"
        ways |= dict.fromkeys(one.outputs, more)
        found = more
    return found


def _through(node: Node, way: _Way, is_matrix: bool) -> _Way | None:
    """Go on through an operator; None if more than a tile may be needed."""
    if is_matrix:
        is_by_row = node.op in _BY_ROW or (node.op in _POOLS and bool(node.windows))
        return way if node.op in _BY_TILE or (is_by_row and not any(node.windows[:-1])) else None
    if node.op in _BY_TILE:
        return way
    if node.op not in _POOLS or way.is_open:
        return None
    if not node.windows:
        return _Way(is_open=True) if not way.pools else None
    if node.windows[0] is not None or not 3 <= len(node.windows) <= 4:
        return None
    rows, columns = (None, *node.windows[2:])[-2:]  # one axis is an image one high
    return _Way((*way.pools, (rows, columns))) if rows or columns else way
