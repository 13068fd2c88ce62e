"""The space of schedules that is searched: blocks, extents, orders."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.base.errors import ConstraintError, nearest
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.machine import roles
from loopsched.problems.problem import Problem
from loopsched.scheduler.constraints import Constraints


@dataclass(frozen=True, slots=True)
class BlockSlot:
    """A place for one block of loops.

    Parameters
    ----------
    name : str
        The level whose tile the block encloses, or the unit that runs it.
    unit : str or None
        The unit, if its loops are spatial.
    dims : tuple of str
        Dimensions that may have a loop here.
    """

    name: str
    unit: str | None
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Space:
    """All schedules of a problem on a machine under constraints.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    constraints : Constraints
    slots : tuple of BlockSlot
        Blocks, outermost first; one more, without a name, covers the rest.
    prefix_at : tuple of int or None
        The blocks in which the loops of the prefix stand; None: any.
    choices : tuple of Space
        Where levels may hold tensors or let them pass: the space of each choice.
    """

    problem: Problem
    arch: Arch
    constraints: Constraints
    slots: tuple[BlockSlot, ...]
    prefix_at: tuple[int, ...] | None = None
    choices: tuple[Space, ...] = ()

    @property
    def spatial(self) -> tuple[str, ...]:
        """Dimensions that instances of some unit may share."""
        shared = {dim for slot in self.slots if slot.unit is not None for dim in slot.dims}
        return tuple(dim for dim in self.problem.dims if dim in shared)


def plain_space(problem: Problem, arch: Arch, constraints: Constraints) -> Space:
    """Build the space of schedules; constraints beside the spatial ones are not looked at."""
    faults = [
        f"spatial dim '{dim}' is unknown; {nearest(dim, problem.dims)}"
        for dim in constraints.spatial or ()
        if dim not in problem.dims
    ]
    if faults:
        raise ConstraintError.joined("constraints", faults)
    slots, around = [], arch.memory
    waiting = [
        (unit, n) for unit, n in sorted(arch.spatial_units, key=lambda pair: pair[1]) if n > 1
    ]
    for level in (*arch.caches, None):
        while waiting and (level is None or waiting[0][1] <= level.instances):
            unit = waiting.pop(0)[0]
            slots.append(BlockSlot(unit, unit, _shared_dims(problem, around, constraints)))
        if level is not None:
            slots.append(BlockSlot(level.name, None, problem.dims))
            around = level
    return Space(problem, arch, constraints, tuple(slots))


def _shared_dims(problem: Problem, around: Level, constraints: Constraints) -> tuple[str, ...]:
    """Dimensions that instances inside a level may share."""
    allowed = constraints.spatial
    if allowed is None:
        sums_meet = around.kind == "scratchpad" and _holds_output(problem, around)
        allowed = problem.dims if sums_meet else problem.parallel_dims
    return tuple(dim for dim in problem.dims if dim in allowed)


def _holds_output(problem: Problem, level: Level) -> bool:
    return level.is_held(*roles(problem, problem.output_tensor))
