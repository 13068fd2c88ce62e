"""What makes an architecture impossible, fault by fault."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from loopsched.errors import nearest
from loopsched.units import MAX_BYTES

if TYPE_CHECKING:
    from loopsched.arch import Arch, Compute, Level

KINDS = ("memory", "cache", "scratchpad")
DATA_TYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp16_simt")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_CHOICES = (("write_policy", ("back", "through")), ("accumulate", ("level", "registers")))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_BYTES


def _is_positive(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 < value < math.inf


def _is_word(value: object) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def level_faults(level: Level) -> Iterator[str]:
    """Say what is wrong with one level taken alone."""
    if not _is_word(level.name):
        yield f"name {level.name!r} must be a word of letters, digits and underscores"
    if level.kind not in KINDS:
        yield f"kind {level.kind!r}: unknown; {nearest(str(level.kind), KINDS)}"
    for field in ("capacity_bytes", "line_bytes", "effective_capacity_bytes"):
        value = getattr(level, field)
        if value is not None and not _is_count(value):
            yield f"{field} must be a whole number from 1 to 2**62, not {value!r}"
    for field in ("bandwidth_bytes_per_s", "peak_bandwidth_bytes_per_s", "energy_pj_per_byte"):
        value = getattr(level, field)
        if value is not None and not _is_positive(value):
            yield f"{field} must be above zero and finite, not {value!r}"
    if not _is_count(level.instances):
        yield f"instances must be a whole number >= 1, not {level.instances!r}"
    elif level.instances > 1 and level.unit is None:
        yield f"has {level.instances} instances, so it needs 'unit', the word for their loops"
    if level.unit is not None and not _is_word(level.unit):
        yield f"unit {level.unit!r} must be a word of letters, digits and underscores"
    for field, allowed in _CHOICES:
        value = getattr(level, field)
        if value not in allowed:
            yield f"{field} {value!r}: unknown; {nearest(str(value), allowed)}"
    yield from _holding_faults(level)
    yield from _capacity_faults(level)


def _holding_faults(level: Level) -> Iterator[str]:
    allowed = None if level.holds is None else (*level.holds, *level.may_hold)
    if allowed == ():
        yield "holds is empty: the level could hold nothing"
    if level.kind == "memory" and level.may_hold:
        yield "the memory holds every tensor; leave may_hold out"
    buffers = [name for name, _ in level.tensor_capacity_bytes]
    for name in level.may_hold:
        if name in (level.holds or ()):
            yield f"may_hold names '{name}', which holds says is always here; keep one"
    for what, names in (
        ("holds", level.holds or ()),
        ("may_hold", level.may_hold),
        ("tensor_capacity", tuple(buffers)),
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{what} names '{name}' twice"
    for name, size in level.tensor_capacity_bytes:
        if not _is_count(size):
            yield f"tensor_capacity '{name}' must be a whole number >= 1, not {size!r}"
        elif _is_count(level.capacity_bytes) and size > level.capacity_bytes:
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
    parts = (("effective_capacity", level.effective_capacity_bytes), ("line", level.line_bytes))
    for field, size in parts:
        if _is_count(size) and _is_count(level.capacity_bytes) and size > level.capacity_bytes:
            yield f"{field} ({size} B) is above the capacity ({level.capacity_bytes} B)"
    bandwidth, peak = level.bandwidth_bytes_per_s, level.peak_bandwidth_bytes_per_s
    if peak is not None and bandwidth is None:
        yield "peak_bandwidth needs a bandwidth beside it"
    elif _is_positive(peak) and _is_positive(bandwidth) and peak < bandwidth:
        yield f"peak_bandwidth ({peak!r} B/s) is below the bandwidth ({bandwidth!r} B/s)"


def compute_faults(compute: Compute) -> Iterator[str]:
    """Say what is wrong with the compute units taken alone."""
    for field in ("unit", "lane_unit"):
        word = getattr(compute, field)
        if not _is_word(word) and not (field == "lane_unit" and word is None):
            yield f"{field} {word!r} must be a word of letters, digits and underscores"
    if compute.unit == compute.lane_unit:
        yield f"unit and lane_unit are the same word '{compute.unit}'"
    if not _is_count(compute.units):
        yield f"units must be a whole number >= 1, not {compute.units!r}"
    for field in ("clock_hz", "max_clock_hz"):
        if not _is_positive(getattr(compute, field)):
            yield f"{field} must be above zero and finite, not {getattr(compute, field)!r}"
    low, high = compute.clock_hz, compute.max_clock_hz
    if _is_positive(low) and _is_positive(high) and high < low:
        yield f"max_clock ({high:g} Hz) is below clock ({low:g} Hz)"
    storage = compute.storage_bytes
    if storage is not None and not _is_count(storage):
        yield f"storage_bytes must be a whole number >= 1, not {storage!r}"
    if compute.energy_pj_per_mac is not None and not _is_positive(compute.energy_pj_per_mac):
        yield f"energy_pj_per_mac must be above zero, not {compute.energy_pj_per_mac!r}"
    if not compute.macs_per_cycle_per_unit:
        yield "macs is empty: name at least one data type"
    names = list(compute.data_types)
    for name, macs in compute.macs_per_cycle_per_unit:
        if name not in DATA_TYPES:
            yield f"macs: unknown data type '{name}'; {nearest(str(name), DATA_TYPES)}"
        elif not _is_positive(macs):
            yield f"macs of '{name}' must be above zero and finite, not {macs!r}"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"macs names '{name}' twice"


def arch_faults(arch: Arch) -> Iterator[str]:
    """Say where levels and units do not fit together."""
    if not arch.name or not isinstance(arch.name, str):
        yield f"name {arch.name!r} must be text"
    if len(arch.levels) < 2:
        yield "levels: a machine needs a memory and at least one level below it"
    seen: set[str] = set()
    for position, level in enumerate(arch.levels):
        if level.name.casefold() in seen | {"compute"}:
            yield f"levels[{position}]: the name '{level.name}' is taken; names are unique"
        seen.add(level.name.casefold())
        if (level.kind == "memory") != (position == 0):
            yield (
                f"levels[{position}] '{level.name}' is of kind '{level.kind}'; "
                "the outermost level, and only that, is the memory"
            )
    for outer, inner in zip(arch.levels, arch.levels[1:], strict=False):
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
                    f"'{inner.name}' ({inner.capacity_bytes} B) is larger than '{outer.name}' "
                    f"({outer.capacity_bytes} B) around it"
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
