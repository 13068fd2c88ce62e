"""Readers: problems, schedules, files of proofs, and what a machine says of a problem."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, takewhile
from typing import Any

from loopsched.base.errors import ArchError, ProofError, ScheduleError
from loopsched.base.files import read_text
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.problem import Problem, Tensor
from loopsched.problems.projections import parse_projection

FORMAT = "loopsched-proof-2"
KEYS = {"problem", "machine", "objective", "spatial", "schedule", "best", "bound", "level", "tree"}
SPLIT = re.compile(r"([^\W\d]\w*)<=([0-9]{1,18})")
ROLES = ("input", "weight", "output")
DATA_TYPES = {1: ("int8", "fp8"), 2: ("fp16", "bf16"), 4: ("fp32", "tf32"), 8: ("fp64",)}
Spatial = dict[str, tuple[str, ...]]  # dimensions that the loops of each unit may have
Loops = tuple[tuple[str, int], ...]  # dimension and step
Groups = tuple[tuple[str | None, Loops], ...]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Bytes of a level: shared ones, some tensors' own, and which tensors pass it by."""

    shared: int
    own: dict[str, int] = field(hash=False)
    passing: frozenset[str]

    def fits(self, sizes: dict[str, int]) -> bool:
        """Whether these bytes per tensor fit together."""
        if any(sizes.get(name, 0) > most for name, most in self.own.items()):
            return False
        return sum(n for name, n in sizes.items() if name not in self.own) <= self.shared

    def held(self, problem: Problem) -> list[Tensor]:
        """List the tensors that do not pass by."""
        return [tensor for tensor in problem.tensors if tensor.name not in self.passing]


def words_of(problem: Problem, tensor: Tensor) -> tuple[str, ...]:
    """List what a machine may call a tensor: its name, unless that is a role's, and its role."""
    read = [other.name for other in problem.tensors if other.name != problem.output]
    is_weight = "weight" in read and tensor.name == "weight"
    if "weight" not in read:
        is_weight = tensor.name != "input" and tensor.name in read[1:]
    role = "output" if tensor.name == problem.output else "weight" if is_weight else "input"
    return (role,) if tensor.name in ROLES else (tensor.name, role)


def capacity_of(problem: Problem, level: Level) -> Capacity:
    """Find what a level offers to each tensor."""
    own, passing, buffers = {}, set(), dict(level.tensor_capacity_bytes)
    for tensor in problem.tensors:
        words = words_of(problem, tensor)
        sizes = [buffers[word] for word in words if word in buffers]
        if level.holds is not None and not any(word in level.holds for word in words):
            passing.add(tensor.name)
        elif sizes:
            own[tensor.name] = sizes[0]
        elif level.usable_bytes is None:
            raise ArchError(f"level '{level.name}' has no capacity for tensor '{tensor.name}'")
    return Capacity(level.usable_bytes or 0, own, frozenset(passing))


def units_of(arch: Arch) -> dict[str, int]:
    """Count each unit per instance of the next outer one, outermost first."""
    found, around = {}, 1
    for unit, count in sorted(arch.spatial_units, key=lambda pair: pair[1]):
        found[unit], around = count // around, count
    return found


def own_units(arch: Arch, level: Level) -> set[str]:
    """Name the units of which each instance has such a level, or contains it."""
    most = level.instances if level.unit else 0
    return {unit for unit, count in arch.spatial_units if count <= most}


def passes_writes(level: Level) -> bool:
    """Whether a level writes what the level inside it writes."""
    return level.write_policy == "through" and level.accumulate == "level"


def rate_of(problem: Problem, arch: Arch) -> Fraction:
    """Return multiply-accumulates per second of one compute unit."""
    read = [t.element_bytes for t in problem.tensors if t.name != problem.output]
    width = max(read or [tensor.element_bytes for tensor in problem.tensors])
    known = dict(arch.compute.macs_per_cycle_per_unit)
    names = (n for size in sorted(DATA_TYPES) if size >= width for n in DATA_TYPES[size])
    name = next((name for name in names if name in known), None)
    if name is None:
        raise ArchError(f"'{arch.name}' has no rate for elements of {width} bytes")
    return Fraction(known[name]) * Fraction(arch.compute.clock_hz)


def lanes_of(problem: Problem, arch: Arch) -> int:
    """Count the lanes of a unit that a schedule may name."""
    lanes = rate_of(problem, arch) / Fraction(arch.compute.clock_hz)
    return max(1, int(lanes)) if arch.compute.lane_unit else 1


def energies_of(arch: Arch) -> list[Fraction]:
    """Return the energies of the arithmetic and of a byte at each level."""
    given = [arch.compute.energy_pj_per_mac, *(level.energy_pj_per_byte for level in arch.levels)]
    if None in given:
        raise ArchError(f"'{arch.name}' does not give an energy for every level and the arithmetic")
    return [Fraction(energy or 0) for energy in given]


def groups_of(schedule: Schedule, units: dict[str, int]) -> Groups:
    """Join adjacent spatial loops of a unit into one list of items; loops with their steps."""
    found: list[tuple[str | None, Loops]] = []
    for loop, step in zip(schedule.loops, schedule.listed_steps, strict=True):
        if loop.unit and found and found[-1][0] == loop.unit:
            found[-1] = (loop.unit, (*found[-1][1], (loop.dim, step)))
        else:
            found.append((loop.unit, ((loop.dim, step),)))
    runs = [unit for unit, _ in found if unit]
    if runs != [unit for unit in units if unit in runs]:
        raise ScheduleError(f"spatial loops run by {runs}; the machine has {list(units)}")
    return tuple(found)


def in_turn(groups: Groups) -> Loops:
    """Take the loops before the next that run side by side."""
    return tuple(loop for _, loops in takewhile(lambda x: not x[0], groups) for loop in loops)


def read_spatial(data: dict[str, list[str]], problem: Problem, arch: Arch) -> Spatial:
    """Read the dimensions that the loops of each unit may have."""
    spatial = {unit: tuple(dims) for unit, dims in data.items()}
    if {*spatial} != {*units_of(arch)} or {*chain(*spatial.values())} - {*problem.dims}:
        raise ProofError("'spatial' must list dimensions for each unit of the machine")
    return spatial


def read_schedule(text: str, problem: Problem, spatial: Spatial) -> Schedule:
    """Read a schedule that keeps to what loops of each unit may have."""
    schedule = parse_schedule(text, problem)
    for loop in schedule.loops:
        if loop.unit and loop.dim not in spatial.get(loop.unit, ()):
            raise ProofError(f"schedule: {loop} is outside the space that 'spatial' states")
    return schedule


def read_problem(data: dict[str, Any]) -> Problem:
    """Read a problem from the plain form in which a proof states it."""
    tensors = tuple(
        Tensor(name, parse_projection(axes), size) for name, axes, size in data["tensors"]
    )
    return Problem(data["name"], tuple((d, n) for d, n in data["sizes"]), tensors, data["output"])


def read_line(text: str) -> dict[str, Any]:
    """Read a proof, as far as it is one."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.keys() != KEYS | {"format"} or data["format"] != FORMAT:
        raise ProofError(f"not a proof of format {FORMAT}, with {', '.join(sorted(KEYS))}")
    return data


def read_proofs(path: str | os.PathLike[str]) -> list[str]:
    """Read the lines of a file of proofs."""
    return read_text(path, "a file of proofs", error=ProofError).splitlines()
