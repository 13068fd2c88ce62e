"""Order classes against every permutation."""

from __future__ import annotations

from itertools import permutations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems, tiles

from loopsched.models.buffer import traffic
from loopsched.models.view import view_of
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.scheduler.orders import order_classes, order_graph, relevance

Signature = tuple[tuple[frozenset[str], str | None], ...]


def signature(problem: Problem, inward: tuple[str, ...]) -> Signature:
    """For each tensor: the loops before the first that indexes it, and what slides there."""
    found = []
    for tensor in problem.tensors:
        run: set[str] = set()
        slide = None
        for dim in inward:
            axes = [axis for axis in tensor.axes if dim in axis.dims]
            if axes:
                slide = dim if any(len(axis.terms) > 1 for axis in axes) else None
                break
            run.add(dim)
        found.append((frozenset(run), slide))
    return tuple(found)


@given(st.data())
def test_classes_are_those_of_all_permutations(data: st.DataObject) -> None:
    problem = data.draw(problems())
    active = tuple(dim for dim in problem.dims if data.draw(st.booleans()))
    classes = order_classes(problem, active)
    found = [
        tuple((frozenset(run), slide) for run, slide in zip(one.runs, one.slides, strict=True))
        for one in classes
    ]
    assert len(set(found)) == len(found)
    assert set(found) == {signature(problem, order) for order in permutations(active)}
    for one, as_found in zip(classes, found, strict=True):
        rest = tuple(dim for dim in active if dim not in one.inward)
        assert set(one.inward) <= set(active)
        for tail in permutations(rest):  # the rest of the order is free
            assert signature(problem, (*one.inward, *tail)) == as_found


@settings(max_examples=25)
@given(st.data())
def test_one_class_moves_the_same_bytes(data: st.DataObject) -> None:
    """Around one body that just fits, traffic depends on the class alone."""
    problem = data.draw(problems())
    inner = data.draw(tiles(problem.size))
    active = tuple(dim for dim in problem.dims if inner[dim] < problem.size[dim])[:4]
    inner = {dim: inner[dim] if dim in active else problem.size[dim] for dim in inner}
    body = [Loop(dim, extent) for dim, extent in inner.items()]
    by_class: dict[Signature, set[tuple[int, ...]]] = {}
    for order in permutations(active):
        outer = [Loop(dim, problem.size[dim]) for dim in reversed(order)]
        nest = Schedule.of([*outer, *body]).check(problem)
        view = view_of(problem, nest)
        room = sum(view.footprint_bytes(tensor, len(active)) for tensor in problem.tensors)
        found = traffic(problem, nest, capacity_bytes=room, policy="explicit")
        if found.fit_position == len(active):  # no outer body fits as well
            bytes_moved = tuple(part.bytes.point for part in found.tensors.values())
            by_class.setdefault(signature(problem, order), set()).add(bytes_moved)
    assert all(len(alike) == 1 for alike in by_class.values())


def test_counts_of_the_usual_problems() -> None:
    """A handful of classes where there are factorials of orders."""
    product = gemm(m=4, n=4, k=4)
    assert len(order_classes(product, product.dims)) == 3
    conv = conv2d(n=4, c=4, k=4, p=4, q=4, r=3, s=3)
    expected = {signature(conv, order) for order in permutations(conv.dims)}
    assert len(order_classes(conv, conv.dims)) == len(expected) < 5040 // 50
    assert len(order_classes(product, ())) == 1


def test_relevance_names_what_indexes_and_what_slides() -> None:
    found = relevance(conv2d(n=2, c=2, k=2, p=2, q=2, r=2, s=2))
    assert found[0] == (frozenset("NCPRQS"), frozenset("PRQS"))
    assert found[1] == (frozenset("KCRS"), frozenset())
    assert found[2] == (frozenset("NKPQ"), frozenset())


@pytest.mark.parametrize(
    ("before", "n_orders"), [((), 6), ((("M", "K"),), 3), ((("M", "K"), ("K", "N")), 1)]
)
def test_precedence_graph(before: tuple[tuple[str, str], ...], n_orders: int) -> None:
    graph = order_graph(gemm(m=4, n=5, k=6), before)
    assert dict(graph.nodes(data="size")) == {"M": 4, "N": 5, "K": 6}
    orders = list(nx.all_topological_sorts(graph))
    assert len(orders) == n_orders
    for order in orders:
        assert all(order.index(a) < order.index(b) for a, b in before)
