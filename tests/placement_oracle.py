"""Brute force over nests of one scratchpad: every loop, order, extent and place of a tile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from loopsched.models.reuse import steady_visits
from loopsched.models.traffic import Room
from loopsched.models.view import View, view_of
from loopsched.nests.nest import Loop, Place, Schedule
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem, Tensor


def every_nest(problem: Problem, most_cuts: int) -> Iterator[Schedule]:
    """Every way to take the space apart, any number of loops a dimension, uneven ones too."""

    def descend(now: dict[str, int], loops: list[Loop]) -> Iterator[Schedule]:
        inner = [Loop(dim, extent) for dim, extent in now.items() if extent > 1]
        yield Schedule((*loops, *inner))
        if len(loops) < most_cuts:
            for dim, extent in now.items():
                for smaller in range(1, extent):
                    step = {**now, dim: smaller}
                    yield from descend(step, [*loops, Loop(dim, extent)])

    yield from descend(problem.size, [])


def best(
    problem: Problem, room: Room, most_cuts: int, *, halo_reuse: bool = True, copies: int = 1
) -> tuple[int, Schedule] | None:
    """Fewest bytes of all nests and places, and one that moves them."""
    found: tuple[int, Schedule] | None = None
    held = room.held(problem)
    output = problem.output_tensor
    first = tensor_bytes(problem, output) if output in held else 0  # its first visits read nothing
    for nest in every_nest(problem, most_cuts):
        view = view_of(problem, nest)
        each = [undominated(options(view, tensor, copies, halo_reuse)) for tensor in held]
        for chosen in product(*each):
            moved = sum(cost for _, cost, _ in chosen) - first
            if found is not None and moved >= found[0]:
                continue
            if room.fits({t.name: need for t, (need, _, _) in zip(held, chosen, strict=True)}):
                places = (
                    Place(0 if at == 0 else view.cuts[at - 1].position + 1, "L1", t.name)
                    for t, (_, _, at) in zip(held, chosen, strict=True)
                )
                found = moved, Schedule(nest.loops, tuple(places))
    return found


def undominated(options: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    kept: list[tuple[int, int, int]] = []
    for one in sorted(options):
        if not kept or one[1] < kept[-1][1]:
            kept.append(one)
    return kept


def options(
    view: View, tensor: Tensor, copies: int, halo_reuse: bool
) -> list[tuple[int, int, int]]:
    """Bytes of the tile, bytes moved, and cuts outside, for every place of a tensor."""
    weight = tensor.element_bytes * (2 if tensor.name == view.problem.output else 1)
    return [
        (
            copies * view.footprint_bytes(tensor, at),
            weight * steady_visits(view, tensor, at, slides=halo_reuse),
            at,
        )
        for at in range(len(view.cuts) + 1)
    ]
