"""Networks as chains: cut where tensors branch, join, or leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loopsched.errors import WorkloadError
from loopsched.fusion.chains import Break, Chain, Link, first_stage, joined, pool_of
from loopsched.fusion.stages import Stage
from loopsched.network.graph import Network, Node


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Operators that a tile of their input is enough for: one value at a time, one
# position with all its channels, or a pooling, whose reach the shapes tell.
_BY_TILE = _names(
    """
    Abs Add AveragePool BatchNormalization Cast Ceil Celu Clip DequantizeLinear Div Dropout Elu Erf
    Exp Flatten Floor Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool HardSigmoid HardSwish
    Identity LRN LeakyRelu Log LpPool Max MaxPool Min Mish Mul Neg PRelu Pow QuantizeLinear
    Reciprocal ReduceMean Relu Reshape Round Selu Shrink Sigmoid Sign Softplus Softsign Sqrt
    Squeeze Sub Sum Swish Tanh ThresholdedRelu Unsqueeze Where
    """
)
# The same for rows of a matrix product, which a tile has whole.
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
    chains: list[Chain] = []
    breaks: list[Break] = []
    for nodes in network.chains():
        stages: list[Stage] = []
        links: list[Link] = []
        for node in nodes:
            if node.problem is None:
                continue
            more: str | list[Stage]
            problem = node.problem.renamed(node.name)
            if not stages:
                stages = [first_stage(problem)]
                continue
            before = stages[-1]
            more = _why_cut(graph, before.name, node) or joined(
                before, problem, None, assume_pooling
            )
            if isinstance(more, str):
                breaks.append(Break(before.name, node.name, more))
                chains.append(Chain(tuple(stages), nodes[0].count, tuple(links)))
                stages, links = [first_stage(problem)], []
                continue
            pool = pool_of(more[0]) if len(more) > 1 else None
            links.append(Link(before.name, node.name, pool, pool is not None))
            stages += more
        if stages:
            chains.append(Chain(tuple(stages), nodes[0].count, tuple(links)))
    if not chains:
        raise WorkloadError(f"network '{network.name}': no layer has a loop nest")
    return tuple(chains), tuple(breaks)


def _why_cut(graph: Any, producer: str, node: Node) -> str | None:
    """Say why a layer cannot be fused with its producer, whatever the shapes."""
    via: Sequence[str] = graph.edges[producer, node.name]["via"]
    others = [
        other
        for other, _, edge in graph.in_edges(producer, data=True)
        if not set(edge["operands"]) and other != producer
    ]
    if others:
        return f"'{producer}' adds up with what '{others[0]}' makes"
    problem = graph.nodes[producer]["node"].problem
    is_matrix = problem is not None and problem.kind == "gemm"
    allowed = _BY_TILE | _BY_ROW if is_matrix else _BY_TILE
    more = [op for op in via if op not in allowed]
    if more:
        return f"{more[0]} between them may need more than a tile of '{producer}'"
    return None


def with_element_bytes(network: Network, element_bytes: int) -> Network:
    """Give every tensor of a network elements of one size."""
    nodes = tuple(
        replace(node, problem=node.problem and node.problem.with_element_bytes(element_bytes))
        for node in network.nodes
    )
    values = tuple(replace(value, element_bytes=element_bytes) for value in network.values)
    return replace(network, nodes=nodes, values=values)
