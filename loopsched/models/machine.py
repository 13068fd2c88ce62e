"""How a problem and an architecture meet: roles, rooms, units, data types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from loopsched.base.errors import ArchError, nearest
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.traffic import Room
from loopsched.problems.problem import Problem, Tensor

NOTHING = "nothing"
"""What a level holds that every tensor bypasses."""
_ROLES = ("input", "weight", "output")
# What to look for first, by the size of the widest input element.
_DATA_TYPES = {1: ("int8", "fp8"), 2: ("fp16", "bf16"), 4: ("fp32", "tf32"), 8: ("fp64",)}


def roles(problem: Problem, tensor: Tensor) -> tuple[str, str]:
    """Name a tensor as architecture files may: by name, and by role.

    The output is what is written, whatever its name; the weight is what is read
    under that name, or else every operand but the first.  The words ``input``,
    ``weight`` and ``output`` mean roles, even where a tensor bears such a name:
    a gradient reads the tensor "output".

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> problem = gemm(m=2, n=2, k=2)
    >>> [roles(problem, tensor)[1] for tensor in problem.tensors]
    ['input', 'weight', 'output']
    """
    role = _role(problem, tensor)
    return (role if tensor.name in _ROLES else tensor.name), role


def _role(problem: Problem, tensor: Tensor) -> str:
    if tensor.name == problem.output:
        return "output"
    read = [other.name for other in problem.tensors if other.name != problem.output]
    if "weight" in read:
        return "weight" if tensor.name == "weight" else "input"
    return "weight" if tensor.name != "input" and tensor.name in read[1:] else "input"


def room_of(problem: Problem, level: Level) -> Room:
    """Find the room that a level offers to a problem's tensors.

    Raises
    ------
    ArchError
        If the level is unbounded, or all that it holds are names that the problem lacks.
    """
    usable = level.usable_bytes
    if level.holds is None and not level.tensor_capacity_bytes and usable is not None:
        return Room(usable)
    own: list[tuple[str, int]] = []
    passing = set()
    buffers = dict(level.tensor_capacity_bytes)
    for tensor in problem.tensors:
        names = roles(problem, tensor)
        if not level.is_held(*names):
            passing.add(tensor.name)
            continue
        sizes = [buffers[name] for name in names if name in buffers]
        if sizes:
            own.append((tensor.name, sizes[0]))
        elif usable is None:
            raise ArchError(f"level '{level.name}' has no capacity for tensor '{tensor.name}'")
    known = {*_ROLES, NOTHING}
    strange = [name for name in (*(level.holds or ()), *level.may_hold) if name not in known]
    if strange and len(passing) == len(problem.tensors):
        raise ArchError(
            f"level '{level.name}' holds '{strange[0]}', which '{problem.name}' lacks; "
            f"{nearest(strange[0], dict.fromkeys((*_ROLES, *(t.name for t in problem.tensors))))}"
        )
    return Room(usable or 0, tuple(own), frozenset(passing))


def own_units(arch: Arch, level: Level) -> frozenset[str]:
    """Units whose instances each have such a level, or are outside it.

    None for a level of the whole machine, even if there is but one unit.
    """
    if level.unit is None:
        return frozenset()
    units = dict(arch.spatial_units)
    return frozenset(unit for unit, count in units.items() if count <= level.instances)


def instances_inside(arch: Arch, level: Level, lanes: int = 0) -> dict[str, int]:
    """How many of each unit inside one instance of a level there are in one of the next outer.

    With ``lanes``, the lanes of one unit come last, if the machine names them.

    Examples
    --------
    >>> from loopsched.machines.arch_file import load_arch
    >>> arch = load_arch("titan_v")
    >>> instances_inside(arch, arch.level("L2"), 64), instances_inside(arch, arch.level("L1"), 64)
    ({'SM': 80, 'lane': 64}, {'lane': 64})
    """
    own = own_units(arch, level)
    return {unit: n for unit, n in nested_units(arch, lanes).items() if unit not in own}


@lru_cache(maxsize=256)
def nested_units(arch: Arch, lanes: int = 0) -> Mapping[str, int]:
    """How many of each unit there are in one of the next outer, outermost first.

    With ``lanes``, the lanes of one unit come last, if the machine names them.

    Examples
    --------
    >>> from loopsched.machines.arch_file import load_arch
    >>> nested_units(load_arch("titan_v"))
    {'SM': 80}
    """
    found: dict[str, int] = {}
    around = 1
    for unit, count in sorted(arch.spatial_units, key=lambda pair: pair[1]):
        found[unit] = count // around
        around = count
    if lanes and arch.compute.lane_unit is not None:
        found[arch.compute.lane_unit] = lanes
    return found


class Sight(NamedTuple):
    """How a level sees the schedules of a problem.

    Parameters
    ----------
    level : Level
    room : Room
    instances : mapping of unit name to int
        As `instances_inside` has them.
    own_units : frozenset of str
    """

    level: Level
    room: Room
    instances: Mapping[str, int]
    own_units: frozenset[str]


@lru_cache(maxsize=256)
def sights(problem: Problem, arch: Arch, lanes: int = 0) -> tuple[Sight, ...]:
    """Say how each level but the memory sees the schedules of a problem, outermost first."""
    return tuple(
        Sight(
            level,
            room_of(problem, level),
            instances_inside(arch, level, lanes),
            own_units(arch, level),
        )
        for level in arch.caches
    )


def rate_of(problem: Problem, arch: Arch, data_type: str | None = None) -> int | float:
    """Look up the multiply-accumulates a cycle of one unit, of a type or the problem's own.

    Raises
    ------
    ArchError
        If the machine has no rate for the data type; names the machine.
    """
    with ArchError.at(f"'{arch.name}'"):
        if data_type:
            return arch.compute.rate(data_type)
    return arch.compute.rate(data_type_of(problem, arch))


@lru_cache(maxsize=256)
def data_type_of(problem: Problem, arch: Arch) -> str:
    """Choose the data type whose rate counts: the widest input's, or the output's if it is alone.

    Raises
    ------
    ArchError
        If the machine knows none of that width, nor a wider one.
    """
    inputs = [t for t in problem.tensors if t.name != problem.output]
    width = max(tensor.element_bytes for tensor in inputs or problem.tensors)
    known = arch.compute.data_types
    for size in sorted(_DATA_TYPES):
        if size >= width:
            for name in _DATA_TYPES[size]:
                if name in known:
                    return name
    raise ArchError(
        f"'{arch.name}' has no rate for elements of {width} bytes (it has: {' '.join(known)}); "
        "--element-bytes (element_bytes or data_type in Python) changes their size"
    )
