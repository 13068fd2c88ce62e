"""The architecture file format: its keys, its JSON Schema, and writing it."""

from __future__ import annotations

from typing import Any

from loopsched.base.units import Kind, pattern
from loopsched.machines.arch import Arch
from loopsched.machines.gpu_limits import GPU_KEYS, Gpu, GpuKey
from loopsched.machines.levels import DATA_TYPES, KINDS, Compute, Level

TOP_KEYS = ("name", "title", "notes", "levels", "compute", "gpu", "constants")
LEVEL_KEYS = (
    "name",
    "kind",
    "inside",
    "capacity",
    "effective_capacity",
    "tensor_capacity",
    "line",
    "instances",
    "unit",
    "bandwidth",
    "peak_bandwidth",
    "holds",
    "may_hold",
    "write_policy",
    "accumulate",
    "double_buffered",
    "halo_reuse",
    "energy",
)
COMPUTE_KEYS = ("unit", "units", "clock", "max_clock", "macs", "lane_unit", "energy", "storage")
CONSTANT_KINDS: tuple[Kind, ...] = (
    "bytes",
    "bandwidth",
    "frequency",
    "time",
    "cycles",
    "macs_per_cycle",
    "flop_rate",
)


def arch_schema() -> dict[str, Any]:
    """Describe the file format as JSON Schema (draft 2020-12).

    Returns
    -------
    dict
        What `load_arch` checks beyond it: that levels and units fit together.

    Examples
    --------
    >>> arch_schema()["required"]
    ['name', 'levels', 'compute']
    """
    word = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$"}
    flag = {"type": "boolean"}
    size, rate = _quantity("bytes"), _quantity("bandwidth", "bandwidth_per_cycle")
    level = _object(
        {
            "name": word,
            "kind": {"enum": list(KINDS)},
            "inside": word,
            "capacity": size,
            "effective_capacity": size,
            "tensor_capacity": {"type": "object", "additionalProperties": size},
            "line": size,
            "instances": _sourced({"type": "integer", "minimum": 1}),
            "unit": word,
            "bandwidth": rate,
            "peak_bandwidth": rate,
            "holds": {"type": "array", "items": {"type": "string"}},
            "may_hold": {"type": "array", "items": {"type": "string"}},
            "write_policy": {"enum": ["back", "through"]},
            "accumulate": {"enum": ["level", "registers"]},
            "double_buffered": flag,
            "halo_reuse": flag,
            "energy": _quantity("energy_per_byte"),
        },
        required=["name", "kind"],
    )
    macs = _quantity("macs_per_cycle")
    compute = _object(
        {
            "unit": word,
            "units": _sourced({"type": "integer", "minimum": 1}),
            "clock": _quantity("frequency"),
            "max_clock": _quantity("frequency"),
            "macs": _object(dict.fromkeys(DATA_TYPES, macs), required=[]) | {"minProperties": 1},
            "lane_unit": word,
            "energy": _quantity("energy_per_mac"),
            "storage": size,
        },
        required=["unit", "units", "clock", "macs"],
    )
    text = {"type": "string"}
    constants = {"type": "object", "additionalProperties": _quantity(*CONSTANT_KINDS)}
    top = _object(
        {
            "name": {"type": "string", "minLength": 1},
            "title": text,
            "notes": text,
            "levels": {"type": "array", "items": level, "minItems": 2},
            "compute": compute,
            "gpu": _object(
                {entry.key: _gpu_number(entry) for entry in GPU_KEYS},
                required=[entry.key for entry in GPU_KEYS if entry.required],
            ),
            "constants": constants,
        },
        required=["name", "levels", "compute"],
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "loopsched architecture",
    } | top


def arch_to_dict(arch: Arch) -> dict[str, Any]:
    """Write an architecture as the data of a file, every number exactly.

    Examples
    --------
    >>> from loopsched.machines.arch import buffer_arch
    >>> data = arch_to_dict(buffer_arch(capacity_bytes=1024))
    >>> data["levels"][1]["capacity"]
    {'value': '1024 B'}
    """
    levels = list(arch.levels)
    data: dict[str, Any] = {
        "name": arch.name,
        "title": arch.title,
        "notes": arch.notes,
        "levels": [
            _level_to_dict(level, levels[position + 1] if position + 1 < len(levels) else None)
            for position, level in enumerate(levels)
        ],
        "compute": _compute_to_dict(arch.compute),
        "gpu": None if arch.gpu is None else _gpu_to_dict(arch.gpu),
        "constants": {
            constant.name: _with_source(f"{constant.value!r} {constant.unit}", constant.source)
            for constant in arch.constants
        },
    }
    return {key: value for key, value in data.items() if value or key in ("name", "levels")}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _sourced(value: dict[str, Any]) -> dict[str, Any]:
    source = {"type": "string"}
    return {"anyOf": [value, _object({"value": value, "source": source}, required=["value"])]}


def _quantity(*kinds: Kind) -> dict[str, Any]:
    return _sourced({"type": "string", "pattern": pattern(*kinds)})


def _level_to_dict(level: Level, inner: Level | None) -> dict[str, Any]:
    sources = dict(level.sources)
    data: dict[str, Any] = {"name": level.name, "kind": level.kind}
    if level.capacity_bytes is not None:
        data["capacity"] = _with_source(f"{level.capacity_bytes} B", sources.get("capacity"))
    for key, value, unit in (
        ("effective_capacity", level.effective_capacity_bytes, "B"),
        ("line", level.line_bytes, "B"),
        ("energy", level.energy_pj_per_byte, "pJ/B"),
    ):
        if value is not None:
            data[key] = _with_source(f"{value!r} {unit}", sources.get(key))
    if level.tensor_capacity_bytes:
        data["tensor_capacity"] = {
            name: _with_source(f"{size} B", sources.get(f"tensor_capacity.{name}"))
            for name, size in level.tensor_capacity_bytes
        }
    data["instances"] = _with_source(level.instances, sources.get("instances"))
    if level.unit is not None:
        data["unit"] = level.unit
    if level.holds is not None:
        data["holds"] = list(level.holds)
    if level.may_hold:
        data["may_hold"] = list(level.may_hold)
    if inner is not None:
        inner_sources = dict(inner.sources)
        for key, rate in (
            ("bandwidth", inner.bandwidth_bytes_per_s),
            ("peak_bandwidth", inner.peak_bandwidth_bytes_per_s),
        ):
            if rate is not None:
                data[key] = _with_source(f"{rate!r} B/s", inner_sources.get(key))
    data |= {
        "write_policy": level.write_policy,
        "accumulate": level.accumulate,
        "double_buffered": level.double_buffered,
        "halo_reuse": level.halo_reuse,
    }
    return data


def _compute_to_dict(compute: Compute) -> dict[str, Any]:
    sources = dict(compute.sources)
    data: dict[str, Any] = {
        "unit": compute.unit,
        "units": _with_source(compute.units, sources.get("units")),
        "clock": _with_source(f"{compute.clock_hz!r} Hz", sources.get("clock")),
        "max_clock": _with_source(f"{compute.max_clock_hz!r} Hz", sources.get("max_clock")),
        "macs": {
            name: _with_source(f"{macs!r} MAC/cycle", sources.get(f"macs.{name}"))
            for name, macs in compute.macs_per_cycle_per_unit
        },
    }
    if compute.lane_unit is not None:
        data["lane_unit"] = compute.lane_unit
    if compute.energy_pj_per_mac is not None:
        data["energy"] = _with_source(
            f"{compute.energy_pj_per_mac!r} pJ/MAC", sources.get("energy")
        )
    if compute.storage_bytes is not None:
        data["storage"] = _with_source(f"{compute.storage_bytes} B", sources.get("storage"))
    return data


def _gpu_number(entry: GpuKey) -> dict[str, Any]:
    if entry.kind == "count":
        return _sourced({"type": "integer", "minimum": 1})
    if entry.kind == "word":
        return _sourced({"enum": list(entry.words)})
    if entry.kind == "share":
        return _sourced({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
    return _quantity(entry.kind)


_GPU_UNITS = {"bytes": "B", "bandwidth_per_cycle": "B/cycle", "cycles": "cycles", "time": "s"}


def _gpu_to_dict(gpu: Gpu) -> dict[str, Any]:
    sources = dict(gpu.sources)
    data: dict[str, Any] = {}
    for entry in GPU_KEYS:
        value = getattr(gpu, entry.field)
        if value == 0:
            continue  # what this machine does not have
        unit = _GPU_UNITS.get(entry.kind)
        text = value if unit is None else f"{value!r} {unit}"
        data[entry.key] = _with_source(text, sources.get(entry.key))
    return data


def _with_source(value: object, source: str | None) -> dict[str, Any]:
    return {"value": value, "source": source} if source else {"value": value}
