"""The architecture file format: its keys, its JSON Schema, and writing it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from loopsched.base.units import Kind, exact, pattern
from loopsched.machines.arch import Arch
from loopsched.machines.cpu import CPU_KEYS
from loopsched.machines.gpu_limits import GPU_KEYS
from loopsched.machines.keys import Key
from loopsched.machines.levels import BOUNDARY, COMPUTE_KEYS, LEVEL_KEYS

TOP_KEYS = ("name", "title", "notes", "levels", "compute", "gpu", "cpu", "constants")
RATES: tuple[Kind, ...] = ("bandwidth", "bandwidth_per_cycle")
CONSTANT_KINDS: tuple[Kind, ...] = (
    "bytes", "bandwidth", "frequency", "time", "cycles", "macs_per_cycle", "flop_rate",
)  # fmt: skip


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
    text = {"type": "string"}
    constants = {"type": "object", "additionalProperties": _quantity(*CONSTANT_KINDS)}
    top = _object(
        {
            "name": {"type": "string", "minLength": 1},
            "title": text,
            "notes": text,
            "levels": {"type": "array", "items": _part(LEVEL_KEYS), "minItems": 2},
            "compute": _part(COMPUTE_KEYS),
            "gpu": _part(GPU_KEYS),
            "cpu": _part(CPU_KEYS),
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
    {'value': '1 KiB'}
    """
    own = [entry for entry in LEVEL_KEYS if entry.key not in BOUNDARY]
    inward = [entry for entry in LEVEL_KEYS if entry.key in BOUNDARY]
    data: dict[str, Any] = {
        "name": arch.name,
        "title": arch.title,
        "notes": arch.notes,
        "levels": [
            _values(level, own) | (_values(inner, inward) if inner else {})
            for level, inner in zip_longest(arch.levels, arch.caches)
        ],
        "compute": _values(arch.compute, COMPUTE_KEYS),
        "gpu": None if arch.gpu is None else _values(arch.gpu, GPU_KEYS),
        "cpu": None if arch.cpu is None else _values(arch.cpu, CPU_KEYS),
        "constants": {
            constant.name: _with_source(f"{constant.value!r} {constant.unit}", constant.source)
            for constant in arch.constants
        },
    }
    return {key: value for key, value in data.items() if value or key in ("name", "levels")}


def _part(keys: Sequence[Key]) -> dict[str, Any]:
    """Describe a part of the file."""
    properties = {}
    for entry in keys:
        value = _schema(entry)
        if entry.of_each:
            value = (
                _object(dict.fromkeys(entry.words, value), required=[]) | {"minProperties": 1}
                if entry.words
                else {"type": "object", "additionalProperties": value}
            )
        properties[entry.key] = value
    return _object(properties, required=[entry.key for entry in keys if entry.required])


def _schema(entry: Key) -> dict[str, Any]:
    match entry.kind:
        case "word":
            return {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$"}
        case "choice":
            return _sourced({"enum": list(entry.words)})
        case "flag":
            return {"type": "boolean"}
        case "names":
            items = {"enum": list(entry.words)} if entry.words else {"type": "string"}
            return _sourced({"type": "array", "items": items})
        case "count":
            return _sourced({"type": "integer", "minimum": 1})
        case "share":
            return _sourced({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
        case "rate":
            return _quantity(*RATES)
        case kind:
            return _quantity(kind)


def _values(part: object, keys: Sequence[Key]) -> dict[str, Any]:
    """Write what a part states, each number with its source."""
    sources = dict(getattr(part, "sources", ()))
    data: dict[str, Any] = {}
    for entry in keys:
        value = getattr(part, entry.field) if entry.field else None
        if value is None or value == () or (value == 0 and value is not False):
            continue  # what this machine does not have
        if entry.of_each:
            data[entry.key] = {
                name: _with_source(_text(each, entry), sources.get(f"{entry.key}.{name}"))
                for name, each in value
            }
        elif entry.kind in ("word", "flag", "choice", "names") and entry.key not in sources:
            data[entry.key] = _text(value, entry)
        else:
            data[entry.key] = _with_source(_text(value, entry), sources.get(entry.key))
    return data


def _text(value: Any, entry: Key) -> object:
    match entry.kind:
        case "word" | "flag" | "count" | "share" | "choice":
            return value
        case "names":
            return list(value) if isinstance(value, tuple) else value
        case "rate":
            return exact(value, RATES[0])
        case kind:
            return exact(value, kind)


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


def _with_source(value: object, source: str | None) -> dict[str, Any]:
    return {"value": value, "source": source} if source else {"value": value}
