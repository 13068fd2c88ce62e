"""The order of an ONNX graph's nodes: producers before consumers."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any

from loopsched.network.onnx_read import attributes, text


def inner_nodes(values: Iterable[Any]) -> Iterator[Any]:
    """Every node in the graphs among the values of attributes, and in theirs."""
    for value in values:
        if hasattr(value, "node"):
            for node in value.node:
                yield node
                yield from inner_nodes(attributes(node).values())


def ordered(nodes: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Put producers before consumers, else in the order given.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto

    Returns
    -------
    list, list
        And those that wait for themselves: nodes of a cycle and what comes
        after it.
    """
    makers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in map(text, node.output):
            makers.setdefault(name, i)
    sorter = TopologicalSorter({i: _needs(node, i, makers) for i, node in enumerate(nodes)})
    with suppress(CycleError):  # what waits for no cycle is sorted all the same
        sorter.prepare()
    ready, order = list(sorter.get_ready()), list[int]()
    heapq.heapify(ready)
    while ready:
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
        for at in sorter.get_ready():
            heapq.heappush(ready, at)
    done = set(order)
    return [nodes[i] for i in order], [node for i, node in enumerate(nodes) if i not in done]


def _needs(node: Any, i: int, makers: dict[str, int]) -> set[int]:
    """Which nodes must come before one; itself, if it reads what it makes."""
    own = [text(name) for name in node.input]
    inside = {text(name) for one in inner_nodes(attributes(node).values()) for name in one.input}
    needs = {makers[name] for name in own if name and name in makers}
    return needs | {makers[name] for name in inside if name and makers.get(name, i) != i}
