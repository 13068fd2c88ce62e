"""Networks: operators in order, the values they pass on, and the layers among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopsched.base.arguments import Checker, show
from loopsched.base.errors import WorkloadError
from loopsched.network.layers import layer_chains, layer_graph
from loopsched.network.node import Node, Role, Value
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Operators of one kind that were left out for one reason.

    Parameters
    ----------
    op : str
    count : int
        How many there are.
    where : str
        Name of the first.
    why : str
    """

    op: str
    count: int
    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Network:
    """A network as a graph of operators.

    Parameters
    ----------
    name : str
    nodes : tuple of Node
        Producers before consumers.
    values : tuple of Value
        Every value that a node names.
    inputs, outputs : tuple of str
        Names of the values that the network takes and gives; weights are not inputs.
    source : str
        Where it comes from.

    Raises
    ------
    WorkloadError
        If a name occurs twice, a value is missing or produced twice, or a
        node stands before a producer of its inputs.

    See Also
    --------
    load_onnx, load_network

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> first, second = gemm(m=8, n=32, k=16, name="up"), gemm(m=8, n=16, k=32, name="down")
    >>> network = Network(
    ...     "feed_forward",
    ...     (
    ...         Node("up", "Gemm", first, ("x", "w"), ("y",), (("A", "x"), ("B", "w"), ("C", "y"))),
    ...         Node("relu", "Relu", None, ("y",), ("z",)),
    ...         Node("down", "Gemm", second, ("z",), ("out",), (("A", "z"), ("C", "out"))),
    ...     ),
    ...     (Value("x", (8, 16)), Value("w", (16, 32), is_weight=True), Value("y", (8, 32)),
    ...      Value("z", (8, 32)), Value("out", (8, 16))),
    ...     ("x",),
    ...     ("out",),
    ... )
    >>> network.macs, network.params, list(network.graph().edges)
    (8192, 512, [('up', 'down')])
    """

    name: str
    nodes: tuple[Node, ...]
    values: tuple[Value, ...]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        check = Checker(f"network {show(self.name)}", WorkloadError)
        names = {value.name for value in self.values}
        _check_unique(check, "nodes", (node.name for node in self.nodes))
        _check_unique(check, "values", (value.name for value in self.values))
        for what, given in (("input", self.inputs), ("output", self.outputs)):
            for name in given:
                if name not in names:
                    check.fault(f"{what} {show(name)} is not a value")
        _check_order(check, self.nodes, names)
        check.finish()

    @classmethod
    def from_workload(cls, workload: Workload) -> Network:
        """Make a network of a plain list of problems: no tensor passes between them.

        Examples
        --------
        >>> from loopsched import load_workload
        >>> resnet = load_workload("resnet50")
        >>> Network.from_workload(resnet).macs == resnet.macs
        True
        """
        nodes, values = [], []
        for problem, count in zip(workload.problems, workload.counts, strict=True):
            operands = tuple((one.name, f"{problem.name}/{one.name}") for one in problem.tensors)
            read = tuple(name for tensor, name in operands if tensor != problem.output)
            written = tuple(name for tensor, name in operands if tensor == problem.output)
            nodes.append(
                Node(problem.name, problem.kind, problem, read, written, operands, count=count)
            )
            values += [
                Value(name, element_bytes=one.element_bytes)
                for one, (_, name) in zip(problem.tensors, operands, strict=True)
            ]
        return cls(workload.name, tuple(nodes), tuple(values), source=workload.source)

    @property
    def layers(self) -> tuple[Node, ...]:
        """The nodes that have a loop nest, in order."""
        return tuple(node for node in self.nodes if node.is_layer)

    @property
    def different(self) -> dict[Problem, list[Node]]:
        """The layers of each different problem, whose name is then left out."""
        found: dict[Problem, list[Node]] = {}
        for node in self.layers:
            if node.problem is not None:
                found.setdefault(node.problem.renamed("-"), []).append(node)
        return found

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole network."""
        return sum(node.macs for node in self.nodes)

    @property
    def params(self) -> int:
        """Stored parameters, in elements; each once, however often it is used."""
        return sum(value.size_elems or 0 for value in self.values if value.is_weight)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the stored parameters."""
        return sum(value.size_bytes or 0 for value in self.values if value.is_weight)

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        """Operators whose work is in no nest, with the reason; equal ones counted."""
        found: dict[tuple[str, str], list[Node]] = {}
        for node in self.nodes:
            if node.role == "unsupported":
                found.setdefault((node.op, node.why), []).append(node)
        return tuple(
            Unsupported(op, sum(node.count for node in nodes), nodes[0].name, why)
            for (op, why), nodes in found.items()
        )

    @property
    def passed(self) -> tuple[tuple[str, Role, int], ...]:
        """Operators without products, with their role and how many there are."""
        found = Counter((node.op, node.role) for node in self.nodes)
        return tuple(
            (op, role, count)
            for (op, role), count in found.items()
            if role == "vector" or role == "shape"
        )

    def value(self, name: str) -> Value:
        """Find a value by name."""
        for value in self.values:
            if value.name == name:
                return value
        raise WorkloadError(f"network {show(self.name)}: no value {show(name)}")

    def workload(self) -> Workload:
        """List the different problems, each with how often it runs.

        Two layers are one problem if they differ in nothing but the name; the
        first one's is kept.  A WorkloadError refuses networks without loop nests.

        Examples
        --------
        >>> from loopsched.problems.builders import gemm
        >>> twice = [Node(name, "Gemm", gemm(m=2, n=3, k=4), (), ()) for name in ("q", "k")]
        >>> found = Network("mine", tuple(twice), ()).workload()
        >>> found.problems[0].name, found.counts
        ('q', (2,))
        """
        if not self.layers:
            raise self.no_layers()
        different = self.different
        problems = tuple(bare.renamed(nodes[0].name) for bare, nodes in different.items())
        counts = tuple(sum(node.count for node in nodes) for nodes in different.values())
        left = ", ".join(f"{one.op} {one.count}" for one in self.unsupported)
        source = f"{self.source}; left out: {left}" if left else self.source
        return Workload(self.name, problems, counts, source)

    def no_layers(self) -> WorkloadError:
        """Make the error that no layer has a loop nest, with the first reason."""
        rows = self.unsupported
        more = f", and {len(rows) - 1} more reasons" if len(rows) > 1 else ""
        blame = f": {rows[0].op} {show(rows[0].where)}: {rows[0].why}{more}" if rows else ""
        return WorkloadError(f"network {show(self.name)}: no layer has a loop nest{blame}")

    def graph(self) -> nx.DiGraph[str]:
        """Build the graph of layers; see `loopsched.network.layers.layer_graph`."""
        return layer_graph(self.nodes, self.values, self.outputs)

    def chains(self) -> tuple[tuple[Node, ...], ...]:
        """Cut the layers into runs where one feeds only the next.

        See `loopsched.network.layers.layer_chains`.
        """
        return layer_chains(self.graph())


def _check_unique(check: Checker, what: str, names: Iterable[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            check.fault(f"{show(name)} names {times} {what}; names are unique")


def _check_order(check: Checker, nodes: Iterable[Node], values: set[str]) -> None:
    produced: dict[str, str] = {}
    read: dict[str, str] = {}
    for node in nodes:
        used = (*node.inputs, *node.outputs, *(value for _, value in node.operands))
        for name in dict.fromkeys(used):
            if name not in values:
                check.fault(f"node {show(node.name)}: {show(name)} is not a value")
        for name in node.inputs:
            read.setdefault(name, node.name)
        for name in node.outputs:
            if name in produced:
                check.fault(f"{show(name)} is produced by {produced[name]} and by {node.name}")
            elif name in read:
                check.fault(f"{show(name)} is read by {read[name]} before {node.name} produces it")
            produced[name] = node.name
