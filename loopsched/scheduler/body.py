"""The best body for one buffer: exact, over all extents and all orders.

Loops outside the body of a buffer need only one loop a dimension: merging two
loops of one dimension into the inner one never adds a visit, nor a step to a
reuse window.  The loops inside do not matter to this buffer.  So the optimum
over every nest is the optimum over one block of loops around one body.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from loopsched.base.arrays import Ints
from loopsched.models.traffic import Room
from loopsched.problems.problem import Problem
from loopsched.scheduler.effort import Watch
from loopsched.scheduler.orders import OrderClass, Relevance, main_classes, order_classes, relevance
from loopsched.scheduler.tables import Tables, tables_for, thinned

NO_INCUMBENT = 2**62
NO_LIMIT = 2**62
# Dimensions of which all subsets, and all orders of each, are listed.
MAX_FREE = 8
# Choices of the three longest lists of extents from which on a good body is looked for
# among few of each first.
MANY_BODIES = 2**20
FEW_EXTENTS = 48


@dataclass(frozen=True, slots=True)
class Body:
    """A body and the loops around it.

    Parameters
    ----------
    bytes : int
        Reads and writes across the buffer's outer boundary.
    extents : tuple of (str, int)
        Extents of the body, each dimension in the problem's order.
    inward : tuple of str
        Loops around it that do something, innermost first.
    nodes : int
        Partial choices looked at.
    is_least : bool
        Whether the search for it was completed.
    """

    bytes: int
    extents: tuple[tuple[str, int], ...]
    inward: tuple[str, ...]
    nodes: int
    is_least: bool = True


@dataclass(frozen=True, slots=True)
class Keeps:
    """How a buffer keeps what bodies leave in it.

    Parameters
    ----------
    is_guaranteed : bool
        Whether the guaranteed traffic of a cache counts; otherwise that of a scratchpad
        (with `Tables.with_whole_sweeps`, what a cache brings in if all that could stay does).
    halo_reuse, copies
        Scratchpads only: whether halos stay; 2 if double-buffered.
    """

    is_guaranteed: bool = True
    halo_reuse: bool = True
    copies: int = 1


GUARANTEED, PLACED = Keeps(), Keeps(is_guaranteed=False)


def best_body(
    problem: Problem,
    room: Room,
    keeps: Keeps = GUARANTEED,
    *,
    tables: Tables | None = None,
    below: int = NO_INCUMBENT,
    rows: ClassRows | None = None,
    watch: Watch | None = None,
    most: int = NO_LIMIT,
) -> Body | None:
    """Find the body that moves the fewest bytes; None if none is below ``below``.

    Parameters
    ----------
    problem : Problem
    room : Room
    keeps : Keeps
    tables : Tables, optional
        Those of `tables_for`, if outer loops or candidates are fixed.
    below : int, bytes
        Look only for something better.
    rows : ClassRows, optional
        Order classes to choose from; by default all.
    watch : Watch, optional
        What the work is charged to.
    most : int
        Nodes after which the best so far is returned (a single point, if there
        is none).

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> found = best_body(gemm(m=64, n=64, k=64), Room.shared(4096), PLACED)
    >>> found.bytes
    98304
    """
    tables = tables or tables_for(problem)
    rows = rows or _class_rows(
        relevance(problem),
        problem.dims,
        tuple(int(n) > 1 for n in tables.n_extents),
        keeps.halo_reuse,
    )
    watch = watch or Watch()
    near = None
    if math.prod(sorted(tables.n_extents.tolist())[-3:]) > MANY_BODIES:
        few = thinned(tables, FEW_EXTENTS)  # first something to hold the rest to
        near = best_body(
            problem, room, keeps, tables=few, below=below, rows=rows, watch=watch, most=most
        )
        below = near.bytes if near is not None and near.is_least else below
    found = _searched(tables, room, keeps, rows, below, watch, most)
    if found.order is None and near is not None and near.is_least:
        return replace(near, nodes=found.nodes + near.nodes, is_least=found.is_least)
    if found.order is None:
        ones = tuple((dim, 1) for dim in problem.dims)
        return None if found.is_least else Body(0, ones, problem.dims[::-1], found.nodes, False)
    inward = (*found.order.inward, *(d for d in found.active if d not in found.order.inward))
    extents = tuple(zip(problem.dims, found.extents, strict=True))
    return Body(found.bytes, extents, inward, found.nodes, found.is_least)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the kernel found: the order class, None if nothing; dims that are cut; extents."""

    bytes: int
    order: OrderClass | None
    active: tuple[str, ...]
    extents: tuple[int, ...]
    nodes: int
    is_least: bool


def _searched(
    tables: Tables, room: Room, keeps: Keeps, rows: ClassRows, below: int, watch: Watch, most: int
) -> _Found:
    """Search all order classes and extents, in slices that are charged to the watch."""
    import numpy as np

    from loopsched.scheduler import kernels

    problem = tables.problem
    own = own_room(problem, room)
    constant = 0 if problem.output in room.passing else tables.constant
    numbers = tables.numbers
    if room.passing:
        numbers = numbers._replace(weight=np.where(own == -2, 0, tables.weight))
    orders = kernels.Orders(rows.actives, rows.runs, rows.slides, rows.least)
    buffer = kernels.Buffer(room.shared_bytes, own, keeps.copies, keeps.is_guaranteed)
    of_dims, of_tensors = np.zeros((4, len(problem.sizes)), int), np.zeros((2, len(own)), int)
    partial, index = kernels.Partial(*of_dims[:3], *of_tensors), of_dims[3]
    state = np.array([0, -1, -1], dtype=np.int64)
    found, nodes = min(below + constant, NO_INCUMBENT), 0
    while state[0] < len(rows.actives) and nodes < most:
        found, seen = kernels.best_body(
            numbers, orders, buffer, partial, state, index, found, watch.slice(most - nodes)
        )
        nodes += int(seen)
        watch.spend(int(seen))
    is_least = bool(state[0] >= len(rows.actives) and rows.is_complete)
    chosen = int(state[2])
    order = rows.classes[chosen] if chosen >= 0 else None
    active = tuple(problem.dims[d] for d in rows.actives[chosen] if d >= 0) if order else ()
    extents = tuple(each[int(at)] for each, at in zip(tables.extents, index, strict=True))
    return _Found(int(found) - constant, order, active, extents, nodes, is_least)


def own_room(problem: Problem, room: Room) -> Ints:
    """Room of each tensor's own; -1: it shares the room of others, -2: it passes."""
    import numpy as np

    if not (room.own_bytes or room.passing):
        return np.full(len(problem.tensors), -1)
    own = dict(room.own_bytes) | dict.fromkeys(room.passing, -2)
    return np.array([own.get(tensor.name, -1) for tensor in problem.tensors], dtype=np.int64)


@dataclass(frozen=True)
class ClassRows:
    """Order classes of all subsets of cut dimensions, as arrays for the kernel.

    ``least`` is 0 where the classes are those of all dimensions, some of which
    may stay whole; ``is_complete`` says whether every order has one.
    """

    classes: tuple[OrderClass, ...]
    actives: Ints
    runs: Ints
    slides: Ints
    least: int = 1
    is_complete: bool = True


@lru_cache(maxsize=1024)
def _class_rows(
    tensors: Relevance, dims: tuple[str, ...], can_cut: tuple[bool, ...], halo_reuse: bool
) -> ClassRows:
    from loopsched.scheduler.orders import _classes

    free = [dim for dim, can in zip(dims, can_cut, strict=True) if can]
    if len(free) > MAX_FREE:
        return replace(
            class_rows(
                dims, len(tensors), [(tuple(free), one) for one in main_classes(tensors, free)],
                halo_reuse,
            ),
            least=0,
            is_complete=False,
        )  # fmt: skip
    chosen: list[tuple[tuple[str, ...], OrderClass]] = []
    for many in range(len(free) + 1):
        for active in combinations(free, many):
            chosen.extend((active, order) for order in _classes(tensors, active))
    return class_rows(dims, len(tensors), chosen, halo_reuse)


def class_rows(
    dims: tuple[str, ...],
    n_tensors: int,
    chosen: list[tuple[tuple[str, ...], OrderClass]],
    halo_reuse: bool,
) -> ClassRows:
    """Write order classes, each with its cut dimensions, as arrays."""
    import numpy as np

    row = {dim: at for at, dim in enumerate(dims)}
    actives = np.full((len(chosen), len(dims) + 1), -1, dtype=np.int64)
    runs = np.zeros((len(chosen), n_tensors, len(dims)), dtype=np.int64)
    slides = np.full((len(chosen), n_tensors), -1, dtype=np.int64)
    for at, (active, order) in enumerate(chosen):
        actives[at, : len(active)] = [row[dim] for dim in active]
        for t, (run, slide) in enumerate(zip(order.runs, order.slides, strict=True)):
            for dim in run:
                runs[at, t, row[dim]] = 1
            if slide is not None and halo_reuse:
                slides[at, t] = row[slide]
    return ClassRows(tuple(order for _, order in chosen), actives, runs, slides)


__all__ = ["NO_INCUMBENT", "Body", "Keeps", "best_body", "order_classes"]
