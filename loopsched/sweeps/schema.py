"""The form of a sweep's file, as a JSON Schema."""

from __future__ import annotations

from loopsched.base.arguments import DATA_TYPE_BYTES, MAX_NAME
from loopsched.scheduler.constraints import TILES
from loopsched.scheduler.goal import OBJECTIVES
from loopsched.sweeps.spec import NUMBERS, WORDS
from loopsched.sweeps.vary import COMBINE, MOST_STEPS, SCALES

Schema = dict[str, object]

_TEXT: Schema = {"type": "string", "minLength": 1}
_NAME: Schema = {**_TEXT, "maxLength": MAX_NAME}


def _whole(least: int, most: int) -> Schema:
    # The reader of YAML leaves numbers as text.
    number: Schema = {"type": "integer", "minimum": least, "maximum": most}
    return {"anyOf": [number, {"type": "string", "pattern": "^[0-9]+$"}]}


def _one_or_list(one: Schema) -> Schema:
    return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


def _fields(fields: Schema, required: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


# Quantities have units, counts and factors have none.
_VALUE: Schema = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEXT]}
_RANGE = _fields(
    {"from": _VALUE, "to": _VALUE, "steps": _whole(2, MOST_STEPS), "scale": {"enum": list(SCALES)}},
    ("from", "to", "steps"),
)
_VALUES: Schema = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE, "minItems": 1}, _RANGE]}
_ARCH = _fields(
    {
        "arch": {**_TEXT, "description": "name or file of an architecture"},
        "name": _NAME,
        "vary": {
            "type": "object",
            "minProperties": 1,
            "description": "parameters of the machine, such as L2.capacity, with their values",
            "additionalProperties": {
                "anyOf": [_VALUES, _fields({"factors": _VALUES}, ("factors",))]
            },
        },
        "combine": {"enum": list(COMBINE)},
    },
    ("arch",),
)
_WORKLOAD = _fields(
    {
        "workload": {**_TEXT, "description": "name, file, or a problem in one line"},
        "name": _NAME,
        "layers": {
            "anyOf": [
                {"type": ["string", "integer"]},
                {"type": "array", "items": {"type": ["string", "integer"]}},
            ]
        },
        "element_bytes": {"anyOf": [_whole(1, 1024), {"enum": list(DATA_TYPE_BYTES)}]},
    },
    ("workload",),
)
_CONSTRAINTS = _fields(
    {
        "tiles": {"enum": list(TILES)},
        "fix": _one_or_list(_TEXT),
        "spatial": {"type": "string"},
        "order": _one_or_list(_TEXT),
        "prefix": {"type": "string"},
    }
)


def sweep_schema() -> Schema:
    """Describe the files of sweeps as a JSON Schema.

    See Also
    --------
    sweep

    Examples
    --------
    >>> sorted(sweep_schema()["required"])
    ['archs', 'workloads']
    """
    objective: Schema = {"enum": list(OBJECTIVES)}
    fields: Schema = {
        "archs": _one_or_list({"anyOf": [_TEXT, _ARCH]}),
        "workloads": _one_or_list({"anyOf": [_TEXT, _WORKLOAD]}),
        "objectives": _one_or_list(objective),
        **{name: {"enum": list(of)} for name, of in WORDS.items()},
        **{name: _whole(*ends) for name, ends in NUMBERS.items()},
        "constraints": _CONSTRAINTS,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A sweep of loopsched",
        **_fields(fields, ("archs", "workloads")),
    }
