"""Precedence between the loops of a block: which orders are allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import permutations

from loopsched.problems.problem import Problem
from loopsched.scheduler.orders import OrderClass, Relevance, order_graph

# For each dimension, those whose loops must stay inside its loop.
Inside = tuple[tuple[str, frozenset[str]], ...]


def find_cycle(problem: Problem, before: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Find dimensions that are each asked to be outside the next, in a circle.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> find_cycle(gemm(m=4, n=4, k=4), (("M", "K"), ("K", "M")))
    ('M', 'K', 'M')
    """
    import networkx as nx

    try:
        edges = nx.find_cycle(order_graph(problem, before))
    except nx.NetworkXNoCycle:
        return ()
    return (*(edge[0] for edge in edges), edges[0][0])


def inside_of(problem: Problem, before: tuple[tuple[str, str], ...]) -> Inside:
    """Close the pairs: for each dimension, all that must stay inside it.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> found = inside_of(gemm(m=4, n=4, k=4), (("M", "K"), ("K", "N")))
    >>> {dim: sorted(inner) for dim, inner in found}
    {'M': ['K', 'N'], 'N': [], 'K': ['N']}
    """
    if not before:
        return tuple((dim, frozenset()) for dim in problem.dims)
    import networkx as nx

    closed = nx.transitive_closure_dag(order_graph(problem, before))
    return tuple((dim, frozenset(closed.successors(dim))) for dim in problem.dims)


def allowed_orders(
    dims: Sequence[str], inside: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, ...]]:
    """List the orders of some loops that keep the precedence, outermost first.

    Examples
    --------
    >>> inside = {"M": frozenset("K"), "N": frozenset(), "K": frozenset()}
    >>> sorted("".join(order) for order in allowed_orders("MNK", inside))
    ['MKN', 'MNK', 'NMK']
    """
    edges = [(dim, inner) for dim in dims for inner in dims if inner in inside[dim]]
    if not edges:
        yield from permutations(dims)
        return
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(dims)
    graph.add_edges_from(edges)
    yield from map(tuple, nx.all_topological_sorts(graph))


@lru_cache(maxsize=65536)
def n_orders(dims: frozenset[str], inside: Inside) -> int:
    """Count the orders that `allowed_orders` lists.

    Examples
    --------
    >>> n_orders(frozenset("MNK"), (("M", frozenset("K")), ("N", frozenset())))
    3
    """
    if len(dims) < 2:
        return 1
    known = dict(inside)
    outermost = [d for d in dims if not any(d in known.get(o, ()) for o in dims if o != d)]
    return sum(n_orders(dims - {dim}, inside) for dim in outermost)


def allowed_classes(
    tensors: Relevance,
    active: tuple[str, ...],
    inside: Mapping[str, frozenset[str]],
    *,
    by_innermost: bool = False,
) -> tuple[OrderClass, ...]:
    """List the order classes that some allowed order belongs to.

    As `loopsched.scheduler.orders.order_classes`, under a precedence; with
    ``by_innermost``, orders with another innermost loop are another class.
    """
    found: dict[tuple[object, ...], OrderClass] = {}
    for inward in _inward(tensors, active, inside, ()):
        one = class_of(tensors, inward)
        key = (one.runs, one.slides, inward[:1] if by_innermost else None)
        found.setdefault(key, one)
    return tuple(found.values())


def class_of(tensors: Relevance, inward: tuple[str, ...]) -> OrderClass:
    """Find the class of an order, given innermost first."""
    runs, slides = [], []
    for indexed, sliding in tensors:
        outside = next((at for at, dim in enumerate(inward) if dim in indexed), len(inward))
        ends = inward[outside] if outside < len(inward) else None
        runs.append(tuple(sorted(inward[:outside])))
        slides.append(ends if ends in sliding else None)
    return OrderClass(inward, tuple(runs), tuple(slides))


def _inward(
    tensors: Relevance,
    active: tuple[str, ...],
    inside: Mapping[str, frozenset[str]],
    inward: tuple[str, ...],
) -> Iterator[tuple[str, ...]]:
    rest = [dim for dim in active if dim not in inward]
    if not rest or all(any(dim in indexed for dim in inward) for indexed, _ in tensors):
        yield inward
        return
    for dim in rest:
        if not any(other in inside[dim] for other in rest):
            yield from _inward(tensors, active, inside, (*inward, dim))
