"""Curves by brute force: every tile size, every loop order, elements counted one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product

from oracle import Element, element

from loopsched.problems.problem import Problem

Steps = list[tuple[int, int]]


def staircase(points: Iterable[tuple[int, int]]) -> Steps:
    """Keep of (capacity, bytes) what no smaller capacity does as well."""
    kept: Steps = []
    for capacity, moved in sorted(points):
        if not kept or moved < kept[-1][1]:
            kept.append((capacity, moved))
    return kept


def every_step(problem: Problem, extents: Sequence[Sequence[int]] | None = None) -> Steps:
    """The staircase over all given tile sizes (default: all there are) and all loop orders."""
    choices = extents or [range(1, size + 1) for _, size in problem.sizes]
    return staircase(
        point
        for tile in product(*choices)
        for point in _orders(problem, dict(zip(problem.dims, tile, strict=True)))
    )


def _orders(problem: Problem, tile: dict[str, int]) -> Iterator[tuple[int, int]]:
    starts = {dim: range(0, size, tile[dim]) for dim, size in problem.sizes}
    touched = {
        place: _touched(problem, dict(zip(problem.dims, place, strict=True)), tile)
        for place in product(*starts.values())
    }
    room = sum(
        tensor.element_bytes * max(len(sets[t]) for sets in touched.values())
        for t, tensor in enumerate(problem.tensors)
    )
    loops = [dim for dim in problem.dims if len(starts[dim]) > 1]
    for order in permutations(loops):
        visits = []
        for at in product(*(starts[dim] for dim in order)):
            place = dict.fromkeys(problem.dims, 0) | dict(zip(order, at, strict=True))
            visits.append((at, touched[tuple(place.values())]))
        moved = sum(_moved(problem, t, order, visits) for t in range(len(problem.tensors)))
        yield room, moved


def _touched(problem: Problem, start: dict[str, int], tile: dict[str, int]) -> list[set[Element]]:
    ranges = [range(start[dim], min(size, start[dim] + tile[dim])) for dim, size in problem.sizes]
    points = [dict(zip(problem.dims, at, strict=True)) for at in product(*ranges)]
    return [
        {one for point in points if (one := element(tensor, point)) is not None}
        for tensor in problem.tensors
    ]


def _moved(
    problem: Problem,
    t: int,
    order: tuple[str, ...],
    visits: list[tuple[tuple[int, ...], list[set[Element]]]],
) -> int:
    """Bytes of one tensor: tiles stay while no loop that indexes it goes on; halos along it."""
    tensor = problem.tensors[t]
    indexing = [i for i, dim in enumerate(order) if tensor.is_indexed_by(dim)]
    inner = indexing[-1] if indexing else -1
    slides = inner >= 0 and any(
        len(axis.terms) > 1 and order[inner] in axis.dims for axis in tensor.axes
    )
    held: set[Element] = set()
    seen: set[Element] = set()
    brought = again = 0
    before: tuple[int, ...] | None = None
    for at, sets in visits:
        now = at[: inner + 1]
        if now == before:
            continue
        if not (slides and before is not None and now[:-1] == before[:-1]):
            held = set()
        fresh = sets[t] - held
        held = sets[t]
        brought += len(fresh)
        again += len(fresh & seen)
        seen |= fresh
        before = now
    if tensor.name == problem.output:
        return (brought + again) * tensor.element_bytes
    return brought * tensor.element_bytes
