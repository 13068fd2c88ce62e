"""Better places for the tiles of a given nest: each tensor's at a loop of its own."""

from __future__ import annotations

from itertools import product

from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.machine import instances_inside, own_units, room_of
from loopsched.models.reuse import fit_cut, placed_visits
from loopsched.models.view import View, view_of
from loopsched.nests.nest import Place, Schedule
from loopsched.problems.problem import Problem, Tensor

MOST_CHOICES = 100_000

Option = tuple[int, int, int]


def with_best_places(problem: Problem, schedule: Schedule, arch: Arch) -> Schedule:
    """Place the tiles of each scratchpad where the fewest bytes cross its outer boundary.

    The loops stay as they are; levels that gain nothing keep all tiles together.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm, parse_schedule
    >>> problem = gemm(m=64, n=64, k=64)
    >>> nest = parse_schedule("M:64 N:64 K:64 N:4 M:3", problem)
    >>> print(with_best_places(problem, nest, buffer_arch(capacity_bytes=64, policy="explicit")))
    M:64 N:64 [buffer C] K:64 [buffer A] N:4 [buffer B] M:3
    """
    places: tuple[Place, ...] = ()
    for level in arch.caches:
        if level.kind == "scratchpad":
            places += _best_in(problem, schedule, arch, level, places)
    return Schedule(schedule.loops, places)


def _best_in(
    problem: Problem, schedule: Schedule, arch: Arch, level: Level, outer: tuple[Place, ...]
) -> tuple[Place, ...]:
    own = own_units(arch, level)
    view = view_of(
        problem, schedule, instances=instances_inside(arch, level), own_units=own
    )  # fmt: skip
    room, copies = room_of(problem, level), 2 if level.double_buffered else 1
    fit = fit_cut(view, room, copies)
    tensors = room.held(problem)
    if fit is None or not tensors:
        return ()
    weight = {t.name: t.element_bytes * (1 + (t.name == problem.output)) for t in tensors}
    even = sum(
        weight[t.name] * placed_visits(view, t, fit, slides=level.halo_reuse) for t in tensors
    )
    options = [
        _options(view, tensor, weight[tensor.name] , copies, level.halo_reuse,
            [at for at in _positions(schedule, own)
             if all(at >= place.position for place in outer if place.tensor == tensor.name)])
        for tensor in tensors
    ]  # fmt: skip
    n_choices = 1
    for each in options:
        n_choices *= len(each)
    if n_choices > MOST_CHOICES:
        return ()
    best: tuple[Option, ...] | None = None
    least = even
    for chosen in product(*options):
        moved = sum(bytes_moved for _, bytes_moved, _ in chosen)
        if moved < least and room.fits(
            {t.name: need for t, (need, _, _) in zip(tensors, chosen, strict=True)}
        ):
            best, least = chosen, moved
    if best is None:
        return ()
    return tuple(Place(at, level.name, t.name) for t, (_, _, at) in zip(tensors, best, strict=True))


def _positions(schedule: Schedule, own: frozenset[str]) -> list[int]:
    """Where tiles may be placed: inside what hands out work, not between one unit's loops."""
    loops = schedule.loops
    first = max((at + 1 for at, loop in enumerate(loops) if loop.unit in own), default=0)
    return [
        at
        for at in range(first, len(loops) + 1)
        if at in (0, len(loops)) or not loops[at].is_spatial or loops[at - 1].unit != loops[at].unit
    ]


def _options(
    view: View, tensor: Tensor, weight: int, copies: int, slides: bool, positions: list[int]
) -> list[Option]:
    """Tile and traffic of a tensor at each position, without what is no better in either."""
    every = sorted(
        (
            copies * view.footprint_bytes(tensor, view.n_cuts(at)),
            weight * placed_visits(view, tensor, view.n_cuts(at), slides=slides),
            at,
        )
        for at in positions
    )
    kept: list[Option] = []
    for one in every:
        if not kept or one[1] < kept[-1][1]:
            kept.append(one)
    return kept
