"""Architectures: levels that hold data, and units that compute."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

from loopsched.base.arguments import near, show
from loopsched.base.display import Shown
from loopsched.base.errors import ArchError, nearest
from loopsched.base.units import format_capacity
from loopsched.machines.cpu import CPU_KEYS, Cpu
from loopsched.machines.gpu_limits import GPU_KEYS, Gpu
from loopsched.machines.keys import Key, scaled_part
from loopsched.machines.levels import COMPUTE_KEYS, DATA_TYPES, LEVEL_KEYS, Compute, Level


@dataclass(frozen=True, slots=True)
class Constant:
    """A further number of a machine that the traffic model does not need.

    Parameters
    ----------
    name : str
    value : int or float
        In ``unit``.
    unit : str
        Base unit: ``B``, ``B/s``, ``Hz``, ``s``, ``cycles``, ``MAC/cycle``,
        ``FLOP/s``.
    source : str

    Examples
    --------
    >>> Constant("l2_latency", 193, "cycles").value
    193
    """

    name: str
    value: int | float
    unit: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Arch(Shown):
    """A machine: levels from the memory to the innermost, and compute units.

    Parameters
    ----------
    name : str
    levels : tuple of Level
        Outermost first; the first, and only it, is the memory.
    compute : Compute
    title : str
        The machine's full name.
    constants : tuple of Constant
        Further numbers, such as latencies.
    notes : str
        What a reader of results should know.
    gpu : Gpu or None
        What concerns kernels, where the machine is a GPU.
    cpu : Cpu or None
        What concerns generated code, where it is a CPU.

    Raises
    ------
    ArchError
        If levels and units do not fit together; all faults at once.

    See Also
    --------
    load_arch, buffer_arch, Level

    Examples
    --------
    >>> arch = buffer_arch(capacity_bytes=98304, policy="explicit")
    >>> [level.name for level in arch.levels], arch.caches[0].kind
    (['DRAM', 'buffer'], 'scratchpad')
    """

    name: str
    levels: tuple[Level, ...]
    compute: Compute
    title: str = ""
    constants: tuple[Constant, ...] = ()
    notes: str = ""
    gpu: Gpu | None = None
    cpu: Cpu | None = None

    def __post_init__(self) -> None:
        ArchError.refuse(f"architecture '{self.name}'", arch_faults(self))

    def __hash__(self) -> int:  # quick; what else differs is compared
        return hash((self.name, self.levels))

    @property
    def memory(self) -> Level:
        """The outermost level."""
        return self.levels[0]

    @property
    def caches(self) -> tuple[Level, ...]:
        """All levels but the memory, outermost first."""
        return self.levels[1:]

    @property
    def has_scratchpads(self) -> bool:
        """Whether some level is a scratchpad, whose tiles may be placed one by one."""
        return any(level.kind == "scratchpad" for level in self.caches)

    @property
    def spatial_units(self) -> tuple[tuple[str, int], ...]:
        """Units that spatial loops outside the lanes may name, and their counts."""
        units = {level.unit: level.instances for level in self.levels if level.unit}
        units.setdefault(self.compute.unit, self.compute.units)
        return tuple(units.items())

    @property
    def has_energies(self) -> bool:
        """Whether it states the energies of the arithmetic and of every level."""
        stated = (self.compute.energy_pj_per_mac, *(one.energy_pj_per_byte for one in self.levels))
        return None not in stated

    def level(self, name: str) -> Level:
        """Find a level by its name, whatever its case.

        Raises
        ------
        ArchError
            If there is none; names those that exist.

        Examples
        --------
        >>> buffer_arch(capacity_bytes=1024).level("Buffer").capacity_bytes
        1024
        """
        return self.levels[self._position(name)]

    def inside_bytes(self, level: Level) -> int | None:
        """All that can hold data inside a level's outer boundary, in one instance.

        None if what a unit can hold is not known.

        Examples
        --------
        >>> from loopsched import load_arch
        >>> titan_v = load_arch("titan_v")
        >>> [titan_v.inside_bytes(level) for level in titan_v.caches]
        [36175872, 393216]
        """
        storage = self.compute.storage_bytes
        if storage is None:
            return None
        total = -(-self.compute.units // level.instances) * storage
        for inner in self.levels[self._position(level.name) :]:
            if inner.capacity_bytes is None and not inner.tensor_capacity_bytes:
                return None
            held = (inner.capacity_bytes or 0) + sum(n for _, n in inner.tensor_capacity_bytes)
            total += -(-inner.instances // level.instances) * held
        return total

    def constant(self, name: str) -> int | float:
        """Look up a further number of the machine, in its base unit.

        Raises
        ------
        ArchError
            If there is none of that name; names those that exist.
        """
        for constant in self.constants:
            if constant.name == name:
                return constant.value
        known = [constant.name for constant in self.constants]
        raise ArchError(f"'{self.name}' has no constant '{name}'; {nearest(name, known)}")

    @property
    def digest(self) -> str:
        """Hash of everything that results depend on: not of titles and sources.

        Examples
        --------
        >>> one, two = buffer_arch(capacity_bytes=1024), buffer_arch(capacity_bytes=2048)
        >>> len(one.digest), one.digest == two.digest
        (16, False)
        """
        content = asdict(self)
        parts: list[tuple[Any, Any, tuple[Key, ...]]]
        parts = [(content["compute"], Compute, COMPUTE_KEYS)]
        parts += [(level, Level, LEVEL_KEYS) for level in content["levels"]]
        parts += [(content["gpu"], Gpu, GPU_KEYS)] if self.gpu else []
        parts += [(content["cpu"], Cpu, CPU_KEYS)] if self.cpu else []
        for part, kind, keys in parts:
            usual = {one.name: one.default for one in fields(kind)}
            for entry in keys:
                if entry.is_later and part[entry.field] == usual[entry.field]:
                    del part[entry.field]
        for part in (content, *(part for part, *_ in parts), *content["constants"]):
            for key in ("title", "notes", "sources", "source"):
                part.pop(key, None)
        for name in ("gpu", "cpu"):
            if content[name] is None:
                del content[name]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def with_value(self, key: str, value: float | int) -> Arch:
        """Replace one number.

        Parameters
        ----------
        key : str
            ``<level>.capacity``, ``<level>.bandwidth`` (of what the level
            delivers *inward*, as in the files, so ``DRAM.bandwidth`` is the
            memory's), ``compute.clock`` (moves the highest clock by the same
            factor), ``compute.units`` or ``compute.macs`` (a factor); of a
            GPU also ``gpu.l2_latency``, ``gpu.shared`` and others of `keys`.
        value : int or float
            In bytes, bytes per second, hertz.

        Raises
        ------
        ArchError
            If the key names nothing, or the value or the machine that results cannot be.

        Examples
        --------
        >>> arch = buffer_arch(capacity_bytes=1024).with_value("buffer.capacity", 2048)
        >>> arch.level("buffer").capacity_bytes
        2048
        """
        current = self.value(key)
        _check_factor(key, value)
        # Exactly, so that the value asked for is the value set.
        factor = Fraction(value) / Fraction(current)
        return self._changed(key, factor, f"{self.name}[{key}={value:g}]")

    def scaled(self, key: str, factor: float) -> Arch:
        """Multiply one number, for studies of sensitivity.

        Keys and errors are those of `with_value`.

        Parameters
        ----------
        key : str
        factor : float
            Above 0.  Bytes and counts are rounded to whole numbers.  Scaling
            a level's capacity scales its useful part and its buffers too;
            scaling a bandwidth, its peak.

        Returns
        -------
        Arch
            Named after the original and the change.

        Examples
        --------
        >>> arch = buffer_arch(capacity_bytes=1024).scaled("dram.bandwidth", 2)
        >>> arch.name, arch.level("buffer").bandwidth_bytes_per_s
        ('buffer[dram.bandwidth*2]', 200000000000.0)
        """
        self.value(key)
        _check_factor(key, factor, "factor of ")
        return self._changed(key, Fraction(factor), f"{self.name}[{key}*{factor:g}]")

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that `scaled` and `with_value` accept."""
        keys = [
            f"{outer.name}.bandwidth"
            for outer, inner in pairwise(self.levels)
            if inner.bandwidth_bytes_per_s is not None
        ]
        keys += [f"{level.name}.capacity" for level in self.levels if level.capacity_bytes]
        for part, table in self.parts.items():
            keys += [f"{part}.{entry.key}" for entry in table if entry.along is not None]
        return tuple(keys)

    @property
    def parts(self) -> dict[str, tuple[Key, ...]]:
        """Parts beside the levels that the machine has, and their keys."""
        parts: dict[str, tuple[Key, ...]] = {"compute": COMPUTE_KEYS}
        if self.gpu is not None:
            parts["gpu"] = GPU_KEYS
        if self.cpu is not None:
            parts["cpu"] = CPU_KEYS
        return parts

    @property
    def kernel_limits(self) -> Gpu:
        """The machine's `gpu`.

        Raises
        ------
        ArchError
            If the machine is not a GPU.
        """
        if self.gpu is None:
            raise ArchError(
                f"'{self.name}' has no 'gpu' part, which kernels need; choose a GPU such as h100, "
                "or give your own file a 'gpu' part like that of a shipped GPU"
            )
        return self.gpu

    @property
    def code_limits(self) -> Cpu:
        """The machine's `cpu`.

        Raises
        ------
        ArchError
            If the machine is no CPU.
        """
        if self.cpu is None:
            raise ArchError(
                f"'{self.name}' has no 'cpu' part, which generated code needs; "
                "'loopsched detect' writes that of this machine"
            )
        return self.cpu

    def _changed(self, key: str, factor: Fraction, name: str) -> Arch:
        owner, _, field = key.casefold().partition(".")
        if owner == "compute":
            levels = self.levels
            if field == "units":  # each unit brings the levels that are its own
                levels = tuple(
                    replace(level, instances=round(level.instances * factor))
                    if level.unit == self.compute.unit
                    else level
                    for level in levels
                )
            compute = scaled_part(self.compute, COMPUTE_KEYS, field, factor)
            return replace(self, name=name, levels=levels, compute=compute)
        if owner == "gpu":
            gpu = scaled_part(self.kernel_limits, GPU_KEYS, field, factor)
            return replace(self, name=name, gpu=gpu)
        if owner == "cpu":
            cpu = scaled_part(self.code_limits, CPU_KEYS, field, factor)
            return replace(self, name=name, cpu=cpu)
        # A level's inward bandwidth is kept with the next inner level.
        position = self._position(owner) + (field == "bandwidth")
        changed = scaled_part(self.levels[position], LEVEL_KEYS, field, factor)
        levels = (*self.levels[:position], changed, *self.levels[position + 1 :])
        return replace(self, name=name, levels=levels)

    def value(self, key: str) -> float:
        """Look up the number that a key of `keys` names.

        Parameters
        ----------
        key : str
            As for `with_value`, whatever its case.

        Returns
        -------
        float
            In bytes, bytes per second, hertz, cycles, ...; of
            ``compute.macs``, which is a factor, 1.

        Raises
        ------
        ArchError
            If the key names nothing.

        Examples
        --------
        >>> buffer_arch(capacity_bytes=1024).value("buffer.capacity")
        1024.0
        """
        known = {name.casefold(): name for name in self.keys}
        found = known.get(str(key).casefold())
        if found is None:
            raise ArchError(f"'{self.name}' has no '{key}'; {near(key, self.keys)}")
        owner, _, field = found.partition(".")
        if owner == "compute":
            values = {"clock": self.compute.clock_hz, "units": float(self.compute.units)}
            return values.get(field, 1.0)
        if owner in ("gpu", "cpu"):
            name = next(entry.field for entry in self.parts[owner] if entry.key == field)
            return float(getattr(getattr(self, owner), name))
        position = self._position(owner)
        if field == "bandwidth":
            return self.levels[position + 1].bandwidth_bytes_per_s or 0.0
        return float(self.levels[position].capacity_bytes or 0)

    def _position(self, name: str) -> int:
        for position, level in enumerate(self.levels):
            if level.name.casefold() == str(name).casefold():
                return position
        names = [level.name for level in self.levels]
        raise ArchError(f"'{self.name}' has no level '{name}'; {near(name, names)}")


def buffer_arch(
    *,
    capacity_bytes: int,
    policy: Literal["lru", "explicit"] = "lru",
    bandwidth_bytes_per_s: float = 100e9,
    macs_per_cycle: int | float = 256,
) -> Arch:
    """Build a machine of one buffer below DRAM, for theory and tests.

    Parameters
    ----------
    capacity_bytes : int, bytes
    policy : {"lru", "explicit"}
        A cache, or a scratchpad.
    bandwidth_bytes_per_s : float, bytes per second
        Between DRAM and the buffer.
    macs_per_cycle : int or float
        At 1 GHz, for every data type.

    Raises
    ------
    ArchError
        If a value is not allowed.

    See Also
    --------
    load_arch, traffic

    Examples
    --------
    >>> buffer_arch(capacity_bytes=98304, policy="explicit").level("buffer").kind
    'scratchpad'
    """
    kinds: dict[str, Literal["cache", "scratchpad"]] = {"lru": "cache", "explicit": "scratchpad"}
    if policy not in kinds:
        raise ArchError(f"policy {show(policy)}: unknown; {near(policy, kinds)}")
    buffer = Level(
        "buffer", kinds[policy], capacity_bytes, bandwidth_bytes_per_s=bandwidth_bytes_per_s
    )
    rates = tuple((name, macs_per_cycle) for name in DATA_TYPES)
    kept = "one LRU cache" if policy == "lru" else "one buffer"
    return Arch(
        "buffer",
        (Level("DRAM", "memory", None), buffer),
        Compute("core", 1, 1e9, 1e9, rates),
        title=f"{kept} of {format_capacity(capacity_bytes)} below DRAM",
    )


def _check_factor(key: str, number: object, what: str = "") -> None:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number > 0:
        raise ArchError(f"{what}'{key}' must be a number above zero, not {show(number)}")
    if not math.isfinite(number):
        raise ArchError(f"'{key}' cannot become infinite")


def arch_faults(arch: Arch) -> Iterator[str]:
    """Say where levels and units do not fit together."""
    if not arch.name or not isinstance(arch.name, str):
        yield f"name {show(arch.name)} must be text"
    if len(arch.levels) < 2:
        yield "levels: a machine needs a memory and at least one level below it"
    seen: set[str] = set()
    for position, level in enumerate(arch.levels):
        if level.name.casefold() in seen | set(arch.parts):
            yield f"levels[{position}]: the name '{level.name}' is taken; names are unique"
        seen.add(level.name.casefold())
        if (level.kind == "memory") != (position == 0):
            yield (
                f"levels[{position}] '{level.name}' is of kind '{level.kind}'; "
                "the outermost level, and only that, is the memory"
            )
    for outer, inner in pairwise(arch.levels):
        yield from _nesting_faults(outer, inner)
    yield from _size_faults(arch.caches)
    yield from _unit_faults(arch)
    names = [constant.name for constant in arch.constants]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"constants: '{name}' appears twice"


def _nesting_faults(outer: Level, inner: Level) -> Iterator[str]:
    if inner.instances % outer.instances:
        yield (
            f"'{inner.name}' has {inner.instances} instances, not a multiple of the "
            f"{outer.instances} of '{outer.name}' around it"
        )
    if inner.kind != "memory" and inner.bandwidth_bytes_per_s is None:
        yield f"'{outer.name}' needs a bandwidth toward '{inner.name}'"


def _size_faults(levels: tuple[Level, ...]) -> Iterator[str]:
    """Check that a tensor's way inward leads to ever smaller levels."""
    for position, inner in enumerate(levels):
        for outer in reversed(levels[:position]):
            pair = (level for level in (outer, inner) if level.holds is not None)
            held = [{*(level.holds or ()), *level.may_hold} for level in pair]
            if len(held) == 2 and not held[0] & held[1]:
                continue
            if (inner.capacity_bytes or 0) > (outer.capacity_bytes or 0):
                yield (
                    f"'{inner.name}' ({format_capacity(inner.capacity_bytes or 0)}) is larger than "
                    f"'{outer.name}' ({format_capacity(outer.capacity_bytes or 0)}) around it"
                )
            break


def _unit_faults(arch: Arch) -> Iterator[str]:
    counts: dict[str, int] = {}
    for level in arch.levels:
        if level.unit is None:
            continue
        if counts.setdefault(level.unit, level.instances) != level.instances:
            yield (
                f"unit '{level.unit}' counts {counts[level.unit]} and, at '{level.name}', "
                f"{level.instances}; a word stands for one count"
            )
    compute, innermost = arch.compute, arch.levels[-1]
    if compute.unit in counts and counts[compute.unit] != compute.units:
        yield (
            f"compute has {compute.units} units '{compute.unit}', but levels have "
            f"{counts[compute.unit]} instances of that unit"
        )
    elif compute.units % innermost.instances:
        yield (
            f"compute has {compute.units} units, not a multiple of the {innermost.instances} "
            f"instances of '{innermost.name}'"
        )
    if compute.lane_unit in counts:
        yield f"lane_unit '{compute.lane_unit}' is already the unit of a level"
