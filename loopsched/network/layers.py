"""Which layer's tensors go to which layer: the graph of layers, and its chains.

Operators without a nest (`Node.role` ``vector`` and ``shape``) are taken as
done where their data are: with the last layer that their inputs come from,
their *host*.  What a layer and the operators that it hosts read from another
layer, or from the operators that that one hosts, is an edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from loopsched.network.node import Node, Value
from loopsched.network.operators import BLIND
from loopsched.problems.footprint import tensor_bytes

if TYPE_CHECKING:
    import networkx as nx

# They give other names, orders or readings to data that stay as they are stored.
_VIEWS = "DequantizeLinear Dropout Flatten Identity Reshape Squeeze Transpose Unsqueeze"
VIEWS = frozenset(_VIEWS.split())


class Flows:
    """Who hosts every value, under what name its data first appeared, and after what."""

    def __init__(self, values: Iterable[Value]) -> None:
        self.values: dict[str, Value] = {value.name: value for value in values}
        self.host: dict[str, str] = {}
        self.root: dict[str, str] = {}
        self.via: dict[str, tuple[str, ...]] = {}
        self.position: dict[str, int] = {}

    def root_of(self, value: str) -> str:
        return self.root.get(value, value)

    def follow(self, node: Node) -> str | None:
        """Find the layer with which a node is done, and note where its outputs come from."""
        host = self._host_of(node)
        if host == node.name:
            self.position[host] = len(self.position)
        if host is not None:
            self._note(node, host)
        return host

    def _host_of(self, node: Node) -> str | None:
        if node.role in ("layer", "unsupported"):
            return node.name
        if node.op in BLIND:
            return None
        hosts = [self.host[name] for name in node.inputs if name in self.host]
        return max(hosts, key=lambda name: self.position[name], default=None)

    def _note(self, node: Node, host: str) -> None:
        all_own = [name for name in node.inputs if self.host.get(name) == host]
        own = all_own[0] if all_own else None
        before = (one for name in all_own for one in self.via[name])
        via = () if node.name == host or own is None else (*dict.fromkeys(before), node.name)
        for name in node.outputs:
            self.host[name] = host
            self.via[name] = via
            if node.op in VIEWS and own is not None and name == node.outputs[0]:
                self.root[name] = self.root_of(own)


def layer_graph(
    nodes: Iterable[Node], values: Iterable[Value], outputs: Sequence[str]
) -> nx.DiGraph[str]:
    """Build the graph of layers, with the tensors that pass between them.

    Parameters
    ----------
    nodes, values, outputs
        Of a `Network`.

    Returns
    -------
    networkx.DiGraph
        Nodes are names of layers and of unsupported operators, in order, with
        attributes ``node`` (the `Node`), ``position`` and ``outputs`` (values
        that leave the network from here).  An edge from producer to consumer
        has ``values`` (names; a reshaped tensor goes by its first name),
        ``bytes`` (their size, each once), ``operands`` (tensors of the
        consumer's problem that they are), ``taken`` (those of the values that
        operators done with the consumer read, such as the sum of a residual
        block) and ``via`` (names of all operators on the way from the producer
        to the first value).

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> nodes = (
    ...     Node("a", "Gemm", gemm(m=2, n=3, k=4), (), ("y",), (("C", "y"),)),
    ...     Node("relu", "Relu", None, ("y",), ("z",)),
    ...     Node("b", "Gemm", gemm(m=2, n=5, k=3), ("z",), ("u",), (("A", "z"), ("C", "u"))),
    ... )
    >>> shapes = {"y": (2, 3), "z": (2, 3), "u": (2, 5)}
    >>> values = tuple(Value(name, shape) for name, shape in shapes.items())
    >>> graph = layer_graph(nodes, values, ["u"])
    >>> edge = graph.edges["a", "b"]
    >>> edge["values"], edge["bytes"], edge["operands"], edge["taken"], edge["via"]
    (('z',), 24, ('A',), (), ('relu',))
    >>> graph.nodes["b"]["outputs"]
    ('u',)
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    flows = Flows(values)
    for node in nodes:
        host = flows.follow(node)
        if host == node.name:
            graph.add_node(host, node=node, position=flows.position[host], outputs=())
        if host is not None:
            _add_edges(graph, flows, node, host)
    for name in dict.fromkeys(outputs):
        if name in flows.host:
            graph.nodes[flows.host[name]]["outputs"] += (name,)
    return graph


def _add_edges(graph: nx.DiGraph[str], flows: Flows, node: Node, host: str) -> None:
    for name in dict.fromkeys(node.inputs):
        producer = flows.host.get(name)
        if producer is None or producer == host:
            continue
        edge = graph.get_edge_data(producer, host)
        if edge is None:
            graph.add_edge(
                producer, host, values=(), bytes=0, operands=(), taken=(), via=flows.via[name]
            )
            edge = graph.edges[producer, host]
        root = flows.root_of(name)
        if node.name != host and root not in edge["taken"]:
            edge["taken"] += (root,)
        if root not in edge["values"]:
            edge["values"] += (root,)
            edge["bytes"] += _bytes(flows, node, name)
        edge["operands"] += tuple(
            tensor
            for tensor, value in node.operands
            if value == name and tensor not in edge["operands"]
        )


def _bytes(flows: Flows, node: Node, name: str) -> int:
    """Size of a value; if its shape is not known, of the operand that it is."""
    known = flows.values[flows.root_of(name)].size_bytes
    if known is not None:
        return known
    tensors = [tensor for tensor, value in node.operands if value == name]
    if node.problem is None or not tensors:
        return 0
    return tensor_bytes(node.problem, node.problem.tensor(tensors[0]))


def layer_chains(graph: nx.DiGraph[str]) -> tuple[tuple[Node, ...], ...]:
    """Cut the layers into the longest runs where one feeds only the next.

    A layer continues the run of its producer if that is the only layer whose
    tensors are its operands, if it is that one's only consumer, if nothing of
    the producer leaves the network, and if both run equally often.  A sum
    with another layer's tensor on the way out does not end a run; a reader of
    the tensor elsewhere does.

    Parameters
    ----------
    graph : networkx.DiGraph
        Of `layer_graph`.

    Returns
    -------
    tuple of tuple of Node
        Every layer is in one of them, most of them in runs of one where
        nothing is known of the tensors between.

    Examples
    --------
    >>> from loopsched import load_network
    >>> chains = layer_chains(load_network("vgg16").graph())
    >>> {len(chain) for chain in chains}
    {1}
    """
    chains: list[list[Node]] = []
    last: dict[str, list[Node]] = {}
    for name, data in graph.nodes(data=True):
        node: Node = data["node"]
        if not node.is_layer:
            continue
        feeding = [each for each, _, edge in graph.in_edges(name, data=True) if edge["operands"]]
        chain = last.get(feeding[0]) if len(feeding) == 1 else None
        if chain is None or not _continues(graph, feeding[0], node):
            chain = []
            chains.append(chain)
        chain.append(node)
        last[name] = chain
    return tuple(map(tuple, chains))


def _continues(graph: nx.DiGraph[str], producer: str, node: Node) -> bool:
    data = graph.nodes[producer]
    alone = graph.out_degree(producer) == 1 and len(graph.edges[producer, node.name]["values"]) == 1
    return alone and not data["outputs"] and data["node"].count == node.count
