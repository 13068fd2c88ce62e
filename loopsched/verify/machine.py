"""What a proof takes from a problem and a machine: capacities, units, exact rates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from loopsched.arch import Arch, Level
from loopsched.errors import ArchError
from loopsched.problem import Problem, Tensor

ROLES = ("input", "weight", "output")
DATA_TYPES = {1: ("int8", "fp8"), 2: ("fp16", "bf16"), 4: ("fp32", "tf32"), 8: ("fp64",)}


@dataclass(frozen=True, slots=True)
class Capacity:
    """Bytes of a level: shared ones, some tensors' own, and which tensors pass it by."""

    shared: int
    own: dict[str, int]
    passing: frozenset[str]

    def fits(self, sizes: dict[str, int]) -> bool:
        """Whether these bytes per tensor fit together."""
        if any(sizes.get(name, 0) > most for name, most in self.own.items()):
            return False
        return sum(n for name, n in sizes.items() if name not in self.own) <= self.shared

    def divided(self, n: int) -> Capacity:
        """Return an n-th of it, rounded down."""
        own = {name: most // n for name, most in self.own.items()}
        return Capacity(self.shared // n, own, self.passing)


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


def rate_of(problem: Problem, arch: Arch) -> tuple[Fraction, int]:
    """Return multiply-accumulates per second of one compute unit, and its lanes."""
    read = [t.element_bytes for t in problem.tensors if t.name != problem.output]
    width = max(read or [tensor.element_bytes for tensor in problem.tensors])
    known = dict(arch.compute.macs_per_cycle_per_unit)
    names = (n for size in sorted(DATA_TYPES) if size >= width for n in DATA_TYPES[size])
    name = next((name for name in names if name in known), None)
    if name is None:
        raise ArchError(f"'{arch.name}' has no rate for elements of {width} bytes")
    return Fraction(known[name]) * Fraction(arch.compute.clock_hz), max(1, int(known[name]))


def resources(
    problem: Problem, arch: Arch, objective: str, steps: Fraction, level_bytes: list[int]
) -> Fraction:
    """Combine steps in seconds and the bytes of each level into the objective."""
    if objective == "dram_bytes":
        return Fraction(level_bytes[0])
    moved = list(zip(arch.caches, level_bytes, strict=True))
    bandwidths = [(level.bandwidth_bytes_per_s, n) for level, n in moved]
    time = max([steps, *(n / Fraction(each) for each, n in bandwidths if each)])
    if objective == "time":
        return time
    per_byte = [level.energy_pj_per_byte for level in arch.levels]
    if arch.compute.energy_pj_per_mac is None or None in per_byte:
        raise ArchError(f"'{arch.name}' does not give an energy for every level and the arithmetic")
    energy = problem.macs * Fraction(arch.compute.energy_pj_per_mac)
    for outer, inner, n in zip(per_byte, per_byte[1:], level_bytes, strict=False):
        energy += n * (Fraction(outer or 0) + Fraction(inner or 0))
    return energy * time if objective == "edp" else energy
