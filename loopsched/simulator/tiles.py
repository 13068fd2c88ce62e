"""Whole tiles through LRU caches: what schedules do whose inner tiles are placed explicitly.

The innermost loops are a *tile*: one visit reads its parts of the inputs, then
its part of the output, each all at once, in pieces that no other tile divides.
Every level sees the tiles of all units in lock-step, as `loopsched.evaluate`
has it.  `loopsched.models.replay` walks the tiles.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopsched.base.errors import InputError
from loopsched.machines.arch import Arch
from loopsched.models.machine import instances_inside, own_units, room_of
from loopsched.models.replay import Nest, items_of, pools_of, replay_at
from loopsched.models.traffic import Room
from loopsched.models.view import View, view_of
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.simulator.result import LevelCounts, TensorCounts
from loopsched.simulator.system import lanes_of

_UNLIMITED = 2**62


def tile_position(schedule: Schedule) -> int:
    """Find the first loop of the tile: of the innermost temporal loops, each dimension's last.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=64, n=64, k=64)
    >>> nest = parse_schedule("M:64@SM N:64@SM K:64 M:8 N:8 K:4", problem)
    >>> nest.loops[tile_position(nest)]
    Loop(dim='M', extent=8, unit=None)
    """
    inside: set[str] = set()
    for at in reversed(range(len(schedule.loops))):
        loop = schedule.loops[at]
        if loop.is_spatial or loop.dim in inside:
            return at + 1
        inside.add(loop.dim)
    return 0


def one_cache(
    problem: Problem, schedule: Schedule, capacity_bytes: int, instances: Mapping[str, int]
) -> dict[str, TensorCounts]:
    """Move whole tiles through one LRU cache.

    Raises
    ------
    InputError
        If there are too many tiles.
    """
    view = view_of(problem, schedule, instances=instances)
    return _counts(view, schedule, Room.shared(capacity_bytes))


def system(problem: Problem, schedule: Schedule, arch: Arch) -> tuple[LevelCounts, ...]:
    """Move whole tiles through each level of a machine.

    Raises
    ------
    InputError
        If there are too many tiles.
    """
    found: list[LevelCounts] = []
    behind = _asked(problem, schedule)
    lanes = lanes_of(arch, problem, schedule)
    for level, outer in zip(reversed(arch.caches), reversed(arch.levels[:-1]), strict=True):
        inside = instances_inside(arch, level, lanes)
        view = view_of(problem, schedule, instances=inside, own_units=own_units(arch, level))
        room = room_of(problem, level)
        own = _counts(view, schedule, room)
        through = level.write_policy == "through" and level.accumulate == "level"
        tensors: dict[str, TensorCounts] = {}
        for tensor in problem.tensors:
            name, inner = tensor.name, behind[tensor.name]
            if name in room.passing:
                tensors[name] = inner
            elif through and name == problem.output:
                one = own[name]
                tensors[name] = TensorCounts(
                    name, one.accesses, one.misses, 0, one.read_bytes, inner.write_bytes
                )
            else:
                tensors[name] = own[name]
        behind = tensors
        found.append(
            LevelCounts(level.name, outer.name, level.usable_bytes, level.instances, tensors)
        )
    return tuple(reversed(found))


def _asked(problem: Problem, schedule: Schedule) -> dict[str, TensorCounts]:
    """What all tiles ask for, were there no cache at all."""
    found = {}
    for tensor in problem.tensors:
        elems = _tiles_elems(problem, schedule)[tensor.name]
        every, size = elems * tensor.element_bytes, tensor.element_bytes
        if tensor.name == problem.output:
            first = tensor_bytes(problem, tensor)
            found[tensor.name] = TensorCounts(
                tensor.name, elems, elems, every // size, every - first, every
            )
        else:
            found[tensor.name] = TensorCounts(tensor.name, elems, elems, 0, every, 0)
    return found


def _tiles_elems(problem: Problem, schedule: Schedule) -> dict[str, int]:
    """Elements of each tensor in all tiles, every visit counted."""
    view = view_of(problem, schedule)
    position = tile_position(schedule)
    upto = sum(cut.position < position for cut in view.cuts)
    return {tensor.name: view.visits_elems(tensor, upto) for tensor in problem.tensors}


def _counts(view: View, schedule: Schedule, room: Room) -> dict[str, TensorCounts]:
    """Move the tiles that one kind of buffer sees, every item from a cold start."""
    problem = view.problem
    items = items_of(view)
    found = None
    if items is not None:
        nest = Nest(view, items)
        depth = _depth(view, schedule)
        pools = pools_of(problem, room)
        found = replay_at(nest, items, depth, pools, _UNLIMITED, is_point=True)
    if found is None:
        raise InputError(
            f"'{problem.name}' has too many tiles of '{schedule}' to list what each touches: "
            "take larger ones, or granularity 'element'"
        )
    asked = _tiles_elems(problem, schedule)
    counts = {}
    for tensor in room.held(problem):
        name, size = tensor.name, tensor.element_bytes
        brought = found.point[name]
        reads, backs = brought * size, 0
        if name == problem.output:
            reads, backs = reads - tensor_bytes(problem, tensor), brought
        counts[name] = TensorCounts(name, asked[name], brought, backs, reads, backs * size)
    return counts


def _depth(view: View, schedule: Schedule) -> int:
    """Count the loops outside the tile that do something inside an item."""
    position = tile_position(schedule)
    owned = [at for at, loop in enumerate(schedule.loops) if loop.unit in view.own_units]
    first = owned[-1] + 1 if owned else 0
    size = dict(view.problem.size)
    depth = 0
    for at, (loop, step) in enumerate(zip(schedule.loops, schedule.steps, strict=True)):
        if at < position and step < size[loop.dim]:
            depth += at >= first
            size[loop.dim] = step
    return depth
