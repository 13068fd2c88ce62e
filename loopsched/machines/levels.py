"""Levels that hold data, and units that compute; what makes one impossible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import ArchError
from loopsched.machines.keys import Key, Sources, is_positive, key_faults

KINDS = ("memory", "cache", "scratchpad")
DATA_TYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp16_simt")


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the machine that holds data.

    Parameters
    ----------
    name : str
        A word of letters, digits and underscores.
    kind : {"memory", "cache", "scratchpad"}
        ``cache`` keeps what was used last (LRU); in a ``scratchpad`` the
        schedule places tiles; ``memory`` is the outermost level.
    capacity_bytes : int or None, bytes
        Of one instance.  None: unbounded (the memory).
    instances : int
        How many the whole machine has; 1: shared by all units.
    unit : str or None
        Word that marks the loops run by the instances, as in ``M:1024@SM``;
        needed when there are several.
    bandwidth_bytes_per_s : float or None, bytes per second
        Of this level's *outer* boundary, toward the next outer level, summed
        over all instances, at the sustained clock.  The memory has none.
    line_bytes : int or None, bytes
        Line; or sector, where sectors are fetched separately.
    holds : tuple of str or None
        Tensors or roles (``input``, ``weight``, ``output``) that may live here; others
        bypass it. None: all.
    may_hold : tuple of str
        Tensors or roles that a schedule may keep here or let pass, whatever
        ``holds`` says; kept unless the schedule says otherwise.
    tensor_capacity_bytes : tuple of (str, int)
        Roles or tensors with a buffer of their own, and its size.
    write_policy : {"back", "through"}
        Whether a written line waits for its eviction or goes on at once.
    accumulate : {"level", "registers"}
        Where partial sums of the resident tile are kept.  With registers a write-through
        level still sees one write per residency.
    double_buffered : bool
        Whether half the capacity is filled while the other is used.
    halo_reuse : bool
        Scratchpad: whether the overlap of neighbouring tiles is kept.
    effective_capacity_bytes : int or None, bytes
        Useful part of the nominal capacity.  None: all of it.
    energy_pj_per_byte : float or None, picojoules
        Of one byte read from or written to this level.
    sources : tuple of (str, str)
        Where each number comes from: key of the file, document.
    peak_bandwidth_bytes_per_s : float or None, bytes per second
        Highest possible bandwidth of the outer boundary, for bounds: at the
        highest clock, or a looser limit where the bandwidth was measured.
        None: ``bandwidth_bytes_per_s``.
    ways : int or None
        Lines that one set of a cache holds.  None: not known; models of
        traffic take every line to fit anywhere.

    Raises
    ------
    ArchError
        If a value cannot be; all faults at once.

    See Also
    --------
    Arch

    Examples
    --------
    >>> Level("L2", "cache", 4_718_592, bandwidth_bytes_per_s=652.8e9).usable_bytes
    4718592
    """

    name: str
    kind: Literal["memory", "cache", "scratchpad"]
    capacity_bytes: int | None
    instances: int = 1
    unit: str | None = None
    bandwidth_bytes_per_s: float | None = None
    line_bytes: int | None = None
    holds: tuple[str, ...] | None = None
    tensor_capacity_bytes: tuple[tuple[str, int], ...] = ()
    write_policy: Literal["back", "through"] = "back"
    accumulate: Literal["level", "registers"] = "level"
    double_buffered: bool = False
    halo_reuse: bool = True
    effective_capacity_bytes: int | None = None
    energy_pj_per_byte: float | None = None
    sources: Sources = ()
    peak_bandwidth_bytes_per_s: float | None = None
    may_hold: tuple[str, ...] = ()
    ways: int | None = None

    def __post_init__(self) -> None:
        ArchError.refuse(f"level '{self.name}'", level_faults(self))

    def __hash__(self) -> int:  # quick; what else differs is compared
        return hash((self.name, self.capacity_bytes, self.instances, self.bandwidth_bytes_per_s))

    @property
    def usable_bytes(self) -> int | None:
        """Capacity of one instance that data can use; None: unbounded."""
        if self.effective_capacity_bytes is not None:
            return self.effective_capacity_bytes
        return self.capacity_bytes

    @property
    def is_shared(self) -> bool:
        """Whether one instance serves the whole machine."""
        return self.instances == 1

    @property
    def bound_bandwidth_bytes_per_s(self) -> float | None:
        """Bandwidth of the outer boundary that no run can exceed."""
        if self.peak_bandwidth_bytes_per_s is not None:
            return self.peak_bandwidth_bytes_per_s
        return self.bandwidth_bytes_per_s

    def is_held(self, *names: str) -> bool:
        """Whether a tensor known by any of these names or roles lives here, if none may pass.

        Examples
        --------
        >>> Level("SB", "scratchpad", 32768, holds=("weight",)).is_held("A", "input")
        False
        """
        return self.holds is None or any(name in (*self.holds, *self.may_hold) for name in names)


@dataclass(frozen=True, slots=True)
class Compute:
    """The units that multiply and accumulate.

    An ArchError names all values that cannot be.

    Parameters
    ----------
    unit : str
        Word for one unit, such as ``SM``.
    units : int
        How many.
    clock_hz : float, hertz
        Sustained clock: what a promised time is computed with.
    max_clock_hz : float, hertz
        Highest clock: what a bound is computed with.
    macs_per_cycle_per_unit : tuple of (str, int or float)
        Multiply-accumulates a cycle for each data type.  ``fp16``, ``bf16``,
        ``tf32``, ``fp8`` and ``int8`` mean the fastest units that take such
        operands: tensor cores with wide accumulation where there are some,
        else packed arithmetic, else conversion to fp32.  ``fp16_simt`` means
        packed fp16 on the SIMT lanes.
    lane_unit : str or None
        Word that marks loops run by the lanes of one unit.
    energy_pj_per_mac : float or None, picojoules
    sources : tuple of (str, str)
    storage_bytes : int or None
        What one unit can hold beside its levels: registers, other buffers.
        None: not known.

    Examples
    --------
    >>> Compute("SM", 80, 1.2e9, 1.455e9, (("fp32", 64),)).peak_macs_per_s("fp32")
    7449600000000.0
    """

    unit: str
    units: int
    clock_hz: float
    max_clock_hz: float
    macs_per_cycle_per_unit: tuple[tuple[str, int | float], ...]
    lane_unit: str | None = None
    energy_pj_per_mac: float | None = None
    sources: Sources = ()
    storage_bytes: int | None = None

    def __post_init__(self) -> None:
        ArchError.refuse("compute", compute_faults(self))

    @property
    def data_types(self) -> tuple[str, ...]:
        """Data types with a known rate."""
        return tuple(name for name, _ in self.macs_per_cycle_per_unit)

    def rate(self, data_type: str) -> int | float:
        """Look up the multiply-accumulates a cycle of one unit.

        Raises
        ------
        ArchError
            If the machine has no rate for the data type; names those it has.

        Examples
        --------
        >>> Compute("SM", 80, 1.2e9, 1.455e9, (("fp32", 64), ("fp16", 512))).rate("fp16")
        512
        """
        for name, macs in self.macs_per_cycle_per_unit:
            if name == data_type:
                return macs
        meant = "" if data_type in DATA_TYPES else data_type
        raise ArchError(f"no rate for data type '{data_type}'; {near(meant, self.data_types)}")

    def peak_macs_per_s(self, data_type: str) -> float:
        """Multiply-accumulates a second of all units at the highest clock."""
        return self.rate(data_type) * self.units * self.max_clock_hz


LEVEL_KEYS = (
    Key("name", "name", "word", True),
    Key("kind", "kind", "choice", True, KINDS),
    Key("inside", "", "word"),
    Key("capacity", "capacity_bytes", "bytes", along=("effective_capacity", "tensor_capacity")),
    Key("effective_capacity", "effective_capacity_bytes", "bytes"),
    Key("tensor_capacity", "tensor_capacity_bytes", "bytes", of_each=True),
    Key("line", "line_bytes", "bytes"),
    Key("ways", "ways", "count", is_later=True),
    Key("instances", "instances", "count"),
    Key("unit", "unit", "word"),
    Key("bandwidth", "bandwidth_bytes_per_s", "rate", along=("peak_bandwidth",)),
    Key("peak_bandwidth", "peak_bandwidth_bytes_per_s", "rate"),
    Key("holds", "holds", "names"),
    Key("may_hold", "may_hold", "names", is_later=True),
    Key("write_policy", "write_policy", "choice", words=("back", "through")),
    Key("accumulate", "accumulate", "choice", words=("level", "registers")),
    Key("double_buffered", "double_buffered", "flag"),
    Key("halo_reuse", "halo_reuse", "flag"),
    Key("energy", "energy_pj_per_byte", "energy_per_byte"),
)
"""Keys of a level, in the order of files."""
BOUNDARY = ("bandwidth", "peak_bandwidth")  # kept with the next inner level
COMPUTE_KEYS = (
    Key("unit", "unit", "word", True),
    Key("units", "units", "count", True, along=()),
    Key("clock", "clock_hz", "frequency", True, along=("max_clock",)),
    Key("max_clock", "max_clock_hz", "frequency"),
    Key("macs", "macs_per_cycle_per_unit", "macs_per_cycle", True, DATA_TYPES, True, ()),
    Key("lane_unit", "lane_unit", "word"),
    Key("energy", "energy_pj_per_mac", "energy_per_mac"),
    Key("storage", "storage_bytes", "bytes", is_later=True),
)
"""Keys of the compute units, in the order of files."""


def level_faults(level: Level) -> Iterator[str]:
    """Say what is wrong with one level taken alone."""
    yield from key_faults(level, LEVEL_KEYS)
    if is_count(level.instances) and level.instances > 1 and level.unit is None:
        yield f"has {level.instances} instances, so it needs 'unit', the word for their loops"
    yield from _holding_faults(level)
    yield from _capacity_faults(level)


def _holding_faults(level: Level) -> Iterator[str]:
    allowed = None if level.holds is None else (*level.holds, *level.may_hold)
    if allowed == ():
        yield "holds is empty: the level could hold nothing"
    if level.kind == "memory" and level.may_hold:
        yield "the memory holds every tensor; leave may_hold out"
    for name in level.may_hold:
        if name in (level.holds or ()):
            yield f"may_hold names '{name}', which holds says is always here; keep one"
    for name, size in level.tensor_capacity_bytes:
        if is_count(size) and is_count(level.capacity_bytes) and size > level.capacity_bytes:
            yield f"tensor_capacity '{name}' ({size} B) is above the capacity of the level"
        if allowed is not None and name not in allowed:
            yield f"tensor_capacity '{name}' is not among what the level holds"


def _capacity_faults(level: Level) -> Iterator[str]:
    if level.kind == "memory":
        if level.instances != 1:
            yield "the memory must have one instance"
        for field in ("bandwidth_bytes_per_s", "peak_bandwidth_bytes_per_s"):
            if getattr(level, field) is not None:
                yield (
                    f"a memory has no level around it, so no {field}; "
                    "the outermost level, and only that, is the memory"
                )
        return
    if level.capacity_bytes is None:
        yield f"a {level.kind} needs a capacity"
        return
    if level.ways is not None and level.kind != "cache":
        yield f"ways are those of a cache, not of a {level.kind}"
    parts = (("effective_capacity", level.effective_capacity_bytes), ("line", level.line_bytes))
    for field, size in parts:
        if is_count(size) and is_count(level.capacity_bytes) and size > level.capacity_bytes:
            yield f"{field} ({size} B) is above the capacity ({level.capacity_bytes} B)"
    bandwidth, peak = level.bandwidth_bytes_per_s, level.peak_bandwidth_bytes_per_s
    if peak is not None and bandwidth is None:
        yield "peak_bandwidth needs a bandwidth beside it"
    elif is_positive(peak) and is_positive(bandwidth) and peak < bandwidth:
        yield f"peak_bandwidth ({show(peak)} B/s) is below the bandwidth ({show(bandwidth)} B/s)"


def compute_faults(compute: Compute) -> Iterator[str]:
    """Say what is wrong with the compute units taken alone."""
    yield from key_faults(compute, COMPUTE_KEYS)
    if compute.unit == compute.lane_unit:
        yield f"unit and lane_unit are the same word '{compute.unit}'"
    low, high = compute.clock_hz, compute.max_clock_hz
    if is_positive(low) and is_positive(high) and high < low:
        yield f"max_clock ({high:g} Hz) is below clock ({low:g} Hz)"
    if not compute.macs_per_cycle_per_unit:
        yield "macs is empty: name at least one data type"
