"""Networks as chains: cut where tensors branch, join, or leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loopsched.errors import WorkloadError
from loopsched.fusion.chains import Break, Chain, Link, first_stage, joined, pool_of
from loopsched.fusion.stages import Stage
from loopsched.network.graph import Network, Node

# Operators that give data another order: neighbours are then no neighbours any more.
_REORDERS = frozenset({"Transpose", "DepthToSpace", "SpaceToDepth", "Slice", "Gather", "Concat"})


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
    moved = [op for op in via if op in _REORDERS]
    if moved:
        return f"{moved[0]} between them gives the data another order"
    return None


def with_element_bytes(network: Network, element_bytes: int) -> Network:
    """Give every tensor of a network elements of one size."""
    nodes = tuple(
        replace(node, problem=node.problem and node.problem.with_element_bytes(element_bytes))
        for node in network.nodes
    )
    values = tuple(replace(value, element_bytes=element_bytes) for value in network.values)
    return replace(network, nodes=nodes, values=values)
