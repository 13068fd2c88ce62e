"""Loop-order classes: all orders that no traffic formula can tell apart.

What a body costs depends on the loops around it only through the *run* of each
tensor: the loops just outside the body that do not index it.  Walking outward,
once every tensor has met a loop that indexes it, the rest of the order is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, permutations
from typing import TYPE_CHECKING

from loopsched.problems.problem import Problem

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class OrderClass:
    """One class of orders of the loops around a body.

    Parameters
    ----------
    inward : tuple of str
        Representative order, innermost first, up to where it stops to matter.
    runs : tuple of tuple of str
        For each tensor, the dimensions of its run, sorted by name.
    slides : tuple of (str or None)
        For each tensor, the dimension that ends its run if its window slides
        along it.
    """

    inward: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]
    slides: tuple[str | None, ...]


def order_classes(problem: Problem, active: tuple[str, ...]) -> tuple[OrderClass, ...]:
    """List the classes of orders of some loops around a body.

    Parameters
    ----------
    problem : Problem
    active : tuple of str
        Dimensions that have a loop with more than one iteration.

    Examples
    --------
    GEMM has three: A, B or C stays.

    >>> from loopsched.problems.builders import gemm
    >>> [c.inward[0] for c in order_classes(gemm(m=4, n=4, k=4), ("M", "N", "K"))]
    ['M', 'N', 'K']
    """
    return _classes(relevance(problem), active)


Relevance = tuple[tuple[frozenset[str], frozenset[str]], ...]
# Orders of tensors that are tried where there are too many dimensions to list the classes.
MAX_MAIN = 120


def relevance(problem: Problem) -> Relevance:
    """Collect, for each tensor, the dimensions that index it and those that slide."""
    return tuple(
        (
            frozenset(tensor.dims),
            frozenset(dim for axis in tensor.axes if axis.is_compound for dim in axis.dims),
        )
        for tensor in problem.tensors
    )


@lru_cache(maxsize=4096)
def _classes(tensors: Relevance, active: tuple[str, ...]) -> tuple[OrderClass, ...]:
    return _distinct(tensors, _prefixes(tensors, active, ()))


def main_classes(tensors: Relevance, active: Sequence[str]) -> tuple[OrderClass, ...]:
    """List the classes in which tensors stay as long as they can, one before the other.

    Without windows that slide, no order lets any tensor stay longer than one of
    these does: whoever stays longest, the others' runs begin like its own.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> problem = gemm(m=4, n=4, k=4)
    >>> [c.inward[0] for c in main_classes(relevance(problem), problem.dims)]
    ['N', 'M', 'K']
    """
    return _distinct(
        tensors,
        (_staying(order, active) for order in islice(permutations(tensors), MAX_MAIN)),
    )


def _staying(
    order: Sequence[tuple[frozenset[str], object]], active: Sequence[str]
) -> tuple[str, ...]:
    """Order loops, innermost first: before the others those that leave most tensors alone."""

    def stay(dim: str) -> int:
        for at, (indexed, _) in enumerate(order):
            if dim in indexed:
                return at
        return len(order)

    return tuple(sorted(active, key=lambda dim: -stay(dim)))


def _distinct(tensors: Relevance, orders: Iterable[tuple[str, ...]]) -> tuple[OrderClass, ...]:
    found: dict[tuple[object, ...], OrderClass] = {}
    for inward in orders:
        runs, slides = [], []
        for indexed, sliding in tensors:
            run: list[str] = []
            slide = None
            for dim in inward:
                if dim in indexed:
                    slide = dim if dim in sliding else None
                    break
                run.append(dim)
            runs.append(tuple(sorted(run)))
            slides.append(slide)
        found.setdefault(
            (tuple(runs), tuple(slides)), OrderClass(inward, tuple(runs), tuple(slides))
        )
    return tuple(found.values())


def _prefixes(
    tensors: Relevance, active: tuple[str, ...], inward: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    pinned = not any(indexed.isdisjoint(inward) for indexed, _ in tensors)
    rest = [dim for dim in active if dim not in inward]
    if pinned or not rest:
        yield inward
        return
    for dim in rest:
        yield from _prefixes(tensors, active, (*inward, dim))


def order_graph(problem: Problem, before: tuple[tuple[str, str], ...] = ()) -> nx.DiGraph[str]:
    """Build the precedence graph of a problem's loops.

    Parameters
    ----------
    problem : Problem
    before : tuple of (outer, inner)
        Pairs of dimensions of which the first must stay outside the second.

    Returns
    -------
    networkx.DiGraph
        A node a dimension, with its size; an edge from outer to inner.  Its
        topological orders are the allowed loop orders.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    for dim, size in problem.sizes:
        graph.add_node(dim, size=size)
    graph.add_edges_from(before)
    return graph
