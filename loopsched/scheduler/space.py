"""The space of schedules that is searched: blocks, extents, orders."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from loopsched.arch import Arch, Level
from loopsched.errors import ConstraintError, nearest
from loopsched.models.machine import roles
from loopsched.problem import Problem
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

    def size(self) -> int:
        """Count the schedules: every choice of extents and orders, once."""
        if self.choices:
            return sum(choice.size() for choice in self.choices)
        if not self.constraints.is_free:
            from loopsched.scheduler.allowed import parts
            from loopsched.scheduler.counting import counter

            return sum(counter(part).size for part in parts(self))
        sizes = tuple(
            (size, tuple(dim in slot.dims for slot in self.slots))
            for dim, size in self.problem.sizes
            if size > 1
        )
        return _count(tuple(sorted(sizes)), len(self.slots))


def space_of(problem: Problem, arch: Arch, constraints: Constraints | None = None) -> Space:
    """Build the space of schedules.

    There is one temporal block for each level but the memory, outermost first,
    and a spatial block for each unit before the first level of which its
    instances have their own.  Instances share the dimensions that index the
    output; where the level around them is a scratchpad, in which their partial
    sums meet, any dimension.

    Raises
    ------
    ConstraintError
        If a constraint names what does not exist.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> space = space_of(gemm(m=4, n=4, k=4), load_arch("titan_v"))
    >>> [slot.name for slot in space.slots], space.spatial
    (['L2', 'SM', 'L1'], ('M', 'N'))
    """
    constraints = constraints or Constraints()
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
    space = Space(problem, arch, constraints, tuple(slots))
    if not constraints.is_free:
        from loopsched.scheduler.allowed import check

        check(space)
    return space


def _shared_dims(problem: Problem, around: Level, constraints: Constraints) -> tuple[str, ...]:
    """Dimensions that instances inside a level may share."""
    allowed = constraints.spatial
    if allowed is None:
        sums_meet = around.kind == "scratchpad" and _holds_output(problem, around)
        allowed = problem.dims if sums_meet else problem.parallel_dims
    return tuple(dim for dim in problem.dims if dim in allowed)


def _holds_output(problem: Problem, level: Level) -> bool:
    return level.is_held(*roles(problem, problem.output_tensor))


@lru_cache(maxsize=4096)
def _count(sizes: tuple[tuple[int, tuple[bool, ...]], ...], n_slots: int) -> int:
    """Count schedules by how many loops each block has.

    A dimension of size D is cut in some blocks, to extents that shrink
    strictly; what is left is 1, or more and then looped over inside.  The
    numbers of loops a block are the exponents of a polynomial, packed into one
    integer; a block of k loops has k! orders.
    """
    places = n_slots + 1
    base = len(sizes) + 1
    most = 1
    for size, may in sizes:
        free = sum(may)
        most *= sum(math.comb(free, k) * math.comb(size - 1, k) for k in range(free + 1))
    bits = 64 * (most.bit_length() // 64 + 1)
    packed = 1
    for size, may in sizes:
        grown = 0
        for chosen in range(2**n_slots):
            cuts = [b for b in range(n_slots) if chosen >> b & 1]
            if not all(may[b] for b in cuts):
                continue
            shift = sum(base**b for b in cuts)
            to_one = math.comb(size - 2, len(cuts) - 1) if cuts else 0
            to_more = math.comb(size - 2, len(cuts))
            if to_one:
                grown += (packed * to_one) << (bits * shift)
            if to_more:
                grown += (packed * to_more) << (bits * (shift + base**n_slots))
        packed = grown
    width = bits // 8
    raw = packed.to_bytes(width * base**places, "little")
    total = 0
    for at in range(base**places):
        many = int.from_bytes(raw[at * width : (at + 1) * width], "little")
        if many:
            orders, rest = 1, at
            for _ in range(places):
                orders *= math.factorial(rest % base)
                rest //= base
            total += many * orders
    return total
