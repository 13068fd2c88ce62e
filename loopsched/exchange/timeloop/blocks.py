"""Loops in blocks: which node of the machine each loop of a schedule belongs to.

Timeloop and ZigZag want one loop of each dimension at every node, temporal ones
at storage and spatial ones at fan-outs, and all work of a fan-out at once.  Where
a schedule is not of that form it is brought into it, and what changes is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from loopsched.base.errors import ScheduleError, nearest
from loopsched.base.units import binary, format_capacity
from loopsched.exchange.factors import Factor, factors, rounded
from loopsched.exchange.names import free_name
from loopsched.exchange.timeloop.nodes import Node
from loopsched.models.machine import roles
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.footprint import footprint_elems
from loopsched.problems.problem import Axis, Problem


@dataclass(slots=True)
class Block:
    """The loops of one node, outermost first."""

    node: Node
    factors: list[Factor] = field(default_factory=list)

    @property
    def dims(self) -> set[str]:
        """Dimensions that have a loop here."""
        return {factor.dim for factor in self.factors}


def blocks(
    problem: Problem, schedule: Schedule, nodes: Sequence[Node]
) -> tuple[list[Block], tuple[str, ...]]:
    """Assign loops to nodes.

    Returns
    -------
    (list of Block, tuple of str)
        One block a node, dummies included where the nodes had no place; and
        how what they say differs from the schedule.

    Raises
    ------
    ScheduleError
        If spatial loops do not suit the machine.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, parse_schedule
    >>> from loopsched.exchange.timeloop.nodes import machine_nodes
    >>> problem = gemm(m=512, n=512, k=1024)
    >>> nest = parse_schedule("M:512@SM N:512@SM K:1024 M:64 N:64 K:8", problem)
    >>> found, lost = blocks(problem, nest, machine_nodes(load_arch("titan_v"), 64))
    >>> for block in found:
    ...     print(block.node.name, *block.factors)
    DRAM
    L2
    SM M=8 N=8
    SM_loops K=128
    L1 M=64 N=64 K=8
    lane
    MAC
    """
    schedule.check(problem)
    schedule.check_even("a mapping file")
    _check_spatial(problem, schedule, nodes)
    waved, waves = _in_one_wave(schedule, {node.unit: node for node in nodes if node.unit})
    legal, changed = rounded(waved)
    return _assigned(problem, legal, nodes), (*waves, *changed)


def _check_spatial(problem: Problem, schedule: Schedule, nodes: Sequence[Node]) -> None:
    order = {node.unit: place for place, node in enumerate(nodes) if node.kind == "fan"}
    faults = []
    last: str | None = None
    closed: set[str] = set()
    for loop in schedule.loops:
        if loop.unit is not None and loop.unit not in order:
            units = [str(unit) for unit in order]
            faults.append(f"loop {loop}: no unit '{loop.unit}'; {nearest(loop.unit, units)}")
            continue
        if loop.unit != last and last is not None:
            closed.add(last)
        if loop.unit is not None and (
            loop.unit in closed or any(order[loop.unit] < order[one] for one in closed)
        ):
            faults.append(
                f"loop {loop}: it stands apart from another loop of '{loop.unit}', or within "
                "one of an inner unit; in a mapping file, all loops of a unit stand together, "
                "outer units first"
            )
        last = loop.unit
    ScheduleError.refuse(f"schedule for '{problem.name}'", faults)


def _in_one_wave(schedule: Schedule, fans: dict[str, Node]) -> tuple[Schedule, list[str]]:
    """Leave as many spatial iterations as there are instances; the rest take turns."""
    loops, steps = schedule.loops, schedule.steps
    found: list[Loop] = []
    lost: list[str] = []
    place = 0
    while place < len(loops):
        unit = loops[place].unit
        end = place + 1
        while unit is not None and end < len(loops) and loops[end].unit == unit:
            end += 1
        if unit is None:
            found.append(loops[place])
        else:
            run, n_items = _one_run(loops[place:end], steps[place:end], fans[unit].count)
            found += run
            if n_items > fans[unit].count:
                lost.append(
                    f"{n_items:,} work items share {fans[unit].count} instances of {unit}: they "
                    f"are written as spatial loops over at most {fans[unit].count} of them and "
                    "temporal loops over the rest"
                )
        place = end
    return Schedule(tuple(found)), lost


def _one_run(loops: Sequence[Loop], steps: Sequence[int], count: int) -> tuple[list[Loop], int]:
    spatial: list[Loop] = []
    temporal: list[Loop] = []
    left, n_items = count, 1
    for loop, step in zip(reversed(loops), reversed(steps), strict=True):
        trips = -(-loop.extent // step)
        n_items *= trips
        # Loops around one that takes turns do so, too, or their order would change.
        if trips <= left and not temporal:
            spatial.append(loop)
            left //= trips
            continue
        temporal.append(replace(loop, unit=None))
        if left > 1:
            spatial.append(Loop(loop.dim, step * left, loop.unit))
        left = 1
    return [*reversed(temporal), *reversed(spatial)], n_items


def _assigned(problem: Problem, schedule: Schedule, nodes: Sequence[Node]) -> list[Block]:
    found = [Block(node) for node in nodes]
    taken = {node.name for node in nodes}
    starts = [_start(problem, schedule, node) for node in nodes]
    starts_by_name = {node.name: start for node, start in zip(nodes, starts, strict=True)}
    here = 0
    every = factors(schedule)
    for place, factor in enumerate(every):
        if factor.trips == 1:
            continue
        if factor.unit is not None:
            here = next(i for i, block in enumerate(found) if block.node.unit == factor.unit)
            _add_spatial(found[here], factor)
            continue
        limit = _next_fan(found, every[place:])
        for i in range(here + 1, limit):
            node = found[i].node
            if node.kind == "storage" and starts_by_name[node.name] <= place:
                here = i
        if not found[here].node.takes_temporal or factor.dim in found[here].dims:
            name = found[here].node.name.removesuffix("_loops")
            dummy = Node(free_name(f"{name}_loops", taken), "dummy")
            here += 1
            found.insert(here, Block(dummy))
        found[here].factors.append(factor)
    return found


def _next_fan(found: Sequence[Block], later: Sequence[Factor]) -> int:
    """Find the fan-out that the next spatial loop belongs to: none may pass it before."""
    units = [factor.unit for factor in later if factor.unit is not None and factor.trips > 1]
    for i, block in enumerate(found):
        if units and block.node.unit == units[0]:
            return i
    return len(found) - 1


def _add_spatial(block: Block, factor: Factor) -> None:
    """Add a loop of a mesh; two of one dimension, all at once, are one."""
    for i, other in enumerate(block.factors):
        if other.dim == factor.dim:
            last = (other.last - 1) * factor.trips + factor.last
            block.factors[i] = replace(other, trips=other.trips * factor.trips, last=last)
            return
    block.factors.append(factor)


def _start(problem: Problem, schedule: Schedule, node: Node) -> int:
    """Find the outermost loop whose whole region fits a storage."""
    if node.level is None or node.level.kind == "memory":
        return 0
    for place in range(len(schedule.loops)):
        room = node.level.usable_bytes
        if room is not None and _held_bytes(problem, schedule.extents_from(place), node) <= room:
            return place
    return len(schedule.loops)


def _held_bytes(problem: Problem, extents: dict[str, int], node: Node) -> int:
    """Count what a tile takes of a storage, padding included."""
    level = node.level
    total = 0
    whole = dict.fromkeys(problem.dims, 1) | extents
    for tensor in problem.tensors:
        if level is None or not level.is_held(*roles(problem, tensor)):
            continue
        inside = replace(tensor, axes=tuple(Axis(axis.terms) for axis in tensor.axes))
        elems = footprint_elems(inside, dict.fromkeys(problem.dims, 0), whole)
        total += elems * tensor.element_bytes * (2 if level.double_buffered else 1)
    return total


def overfull(problem: Problem, found: Sequence[Block]) -> list[str]:
    """Say which storages cannot hold the tile that the loops inside them cover."""
    extents = dict.fromkeys(problem.dims, 1)
    said = []
    for block in reversed(found):
        for factor in reversed(block.factors):
            extents[factor.dim] = min(extents[factor.dim] * factor.trips, problem.size[factor.dim])
        level = block.node.level
        if level is None or level.usable_bytes is None or level.kind == "memory":
            continue
        held = _held_bytes(problem, extents, block.node)
        if held > level.usable_bytes:
            size, room = binary(held), format_capacity(level.usable_bytes)
            if size == binary(level.usable_bytes):
                size = f"{held:,} B"
            said.append(
                f"its tile at {level.name} is {size}, more than {level.name}'s "
                f"{room}; Timeloop will refuse the mapping"
            )
    return said[::-1]
