"""Networks made of other networks: some of the layers, or elements of another size."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from loopsched.network.graph import Network
from loopsched.network.layers import Flows
from loopsched.network.node import Node


def part_of(network: Network, layers: Collection[str]) -> Network:
    """Take some layers of a network, with what is done with them and what passes between them.

    What others read of them leaves the part.

    Parameters
    ----------
    network : Network
    layers : collection of str
        Names.
    """
    flows = Flows(network.values)
    nodes: list[Node] = []
    leaving = list(network.outputs)
    for node in network.nodes:
        if flows.follow(node) in layers:
            nodes.append(node)
        else:
            leaving += node.inputs
    made = {name for node in nodes for name in node.outputs}
    outputs = tuple(dict.fromkeys(name for name in leaving if name in made))
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    used |= {name for node in nodes for _, name in node.operands}
    values = tuple(value for value in network.values if value.name in used)
    weights = {value.name for value in values if value.is_weight}
    read = dict.fromkeys(name for node in nodes for name in node.inputs)
    inputs = tuple(name for name in read if name not in made | weights)
    return replace(network, nodes=tuple(nodes), values=values, inputs=inputs, outputs=outputs)


def with_element_bytes(network: Network, element_bytes: int) -> Network:
    """Give every tensor of a network elements of one size."""
    nodes = tuple(
        replace(node, problem=node.problem and node.problem.with_element_bytes(element_bytes))
        for node in network.nodes
    )
    values = tuple(replace(value, element_bytes=element_bytes) for value in network.values)
    return replace(network, nodes=nodes, values=values)
