"""Layers in order, with the tensors that one makes and others read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopsched.fusion.chains import Link, chains_of, listed
from loopsched.fusion.stages import Pool
from loopsched.network.graph import Network
from loopsched.network.node import Node
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload


@dataclass(frozen=True, slots=True)
class Read:
    """What a layer reads of what another one, by its number, made.

    ``operands`` are the tensors of the reader's problem that it is; ``taken_bytes`` are what
    the reader's output takes in of it besides, once and whole (the sum of a residual block).
    """

    producer: int
    operands: tuple[str, ...]
    taken_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Flow:
    """One layer in the order of execution.

    Parameters
    ----------
    name : str
    problem : Problem or None
        None: an operator that is no nest; what it moves is not counted.
    count : int
        How often it runs.
    reads : tuple of Read
    size_bytes : int
        What its output takes on chip: what it makes, or what others read of it
        after a reshaping, whichever is more.
    leaves : bool
        Whether the output must be written in any case.
    """

    name: str
    problem: Problem | None
    count: int
    reads: tuple[Read, ...]
    size_bytes: int
    leaves: bool


def flows_of(
    layers: Sequence[Problem | Pool] | Workload | Network, *, assume_pooling: bool = True
) -> tuple[tuple[Flow, ...], tuple[Link, ...]]:
    """List the layers of a network, or of chains in a plain list.

    Also the poolings that are assumed because the shapes require them; each once.

    Raises
    ------
    WorkloadError
        If there is no layer.
    """
    if isinstance(layers, Network):
        return _network_flows(layers), ()
    if isinstance(layers, Workload):
        chains, _ = chains_of(layers.problems, layers.counts, assume_pooling=assume_pooling)
    else:
        chains, _ = chains_of(listed(layers), assume_pooling=assume_pooling)
    flows: list[Flow] = []
    for chain in chains:
        before: int | None = None
        for at, problem in enumerate(chain.layers):
            size = tensor_bytes(problem, problem.output_tensor)
            reads: tuple[Read, ...] = ()
            if before is not None:
                reads = (Read(before, (problem.tensors[0].name,)),)
            before = len(flows)
            is_last = at + 1 == len(chain.layers)
            flows.append(Flow(problem.name, problem, chain.count, reads, size, is_last))
    links = (link for chain in chains for link in chain.links if link.is_assumed)
    return tuple(flows), tuple(dict.fromkeys(links))


def _network_flows(network: Network) -> tuple[Flow, ...]:
    graph: Any = network.graph()
    place = {name: at for at, name in enumerate(graph.nodes)}
    sizes = {value.name: value.size_bytes for value in network.values}
    flows = []
    for name, data in graph.nodes(data=True):
        node: Node = data["node"]
        reads = tuple(
            Read(place[producer], edge["operands"], sum(sizes[name] or 0 for name in edge["taken"]))
            for producer, _, edge in graph.in_edges(name, data=True)
        )
        made = 0
        if node.problem is not None:
            made = tensor_bytes(node.problem, node.problem.output_tensor)
        flows.append(
            Flow(
                name,
                node.problem,
                node.count,
                reads,
                max(made, _read_bytes(sizes, graph, name)),
                bool(data["outputs"]),
            )
        )
    if not any(flow.problem for flow in flows):
        raise network.no_layers()
    return tuple(flows)


def _read_bytes(sizes: Mapping[str, int | None], graph: Any, name: str) -> int:
    """Count the bytes of all values that others read of a layer's output, each once."""
    found: dict[str, int] = {}
    for _, _, edge in graph.out_edges(name, data=True):
        for value in edge["values"]:
            known = sizes[value]
            found[value] = edge["bytes"] if known is None else known
    return sum(found.values())


def sums_bytes(network: Network) -> int:
    """Count what outputs take in from other layers, as in residual blocks, with counts."""
    return sum(
        flow.count * read.taken_bytes
        for flow in _network_flows(network)
        for read in flow.reads
        if flow.problem is not None
    )
