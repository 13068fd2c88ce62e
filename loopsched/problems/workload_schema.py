"""The fields of a workload file: one table for its reader and for its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopsched.base.arguments import DATA_TYPE_BYTES, MAX_COUNT, MAX_NAME
from loopsched.problems.builders import PASSES, affine, batched_gemm, conv2d, einsum, gemm
from loopsched.problems.problem import Problem

_COUNT: dict[str, object] = {"type": "integer", "minimum": 1, "exclusiveMaximum": MAX_COUNT}
_NONE_OR_MORE: dict[str, object] = {"type": "integer", "minimum": 0, "exclusiveMaximum": MAX_COUNT}
_WIDTH: dict[str, object] = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1024},
                    {"enum": list(DATA_TYPE_BYTES)}]}  # fmt: skip
_TEXT: dict[str, object] = {"type": "string", "minLength": 1}

_KINDS: dict[str, dict[str, object]] = {
    "count": _COUNT,
    "pair": {"anyOf": [_COUNT, {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}]},
    "padding": {
        "anyOf": [
            _NONE_OR_MORE,
            {"type": "array", "items": _NONE_OR_MORE, "minItems": 2, "maxItems": 2},
            {"type": "array", "items": _NONE_OR_MORE, "minItems": 4, "maxItems": 4},
            {"enum": ["same", "valid"]},
        ]
    },
    "flag": {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}]},
    "pass": {"enum": list(PASSES)},
    "name": {**_TEXT, "maxLength": MAX_NAME},
    "text": _TEXT,
    "width": _WIDTH,
    "widths": {"anyOf": [_WIDTH, {"type": "object", "additionalProperties": _WIDTH}]},
    "sizes": {"type": "object", "minProperties": 1, "additionalProperties": _COUNT},
    "projections": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "string"},
    },
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a layer.

    Parameters
    ----------
    name : str
        In the file.
    kind : str
        What values it takes.
    text : str
        What it means.
    required : bool
    aliases : tuple of str
        Other names that the reader understands, whatever their case.
    """

    name: str
    kind: str
    text: str
    required: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def parameter(self) -> str:
        """Name of the builder's parameter."""
        return "pass_" if self.name == "pass" else self.name


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of layer: the function that builds it, and its fields."""

    build: Callable[..., Problem]
    text: str
    fields: tuple[Field, ...]

    def field_names(self) -> dict[str, Field]:
        """Every name that the reader understands, in lower case."""
        return {
            name.casefold(): field
            for field in (*COMMON, *self.fields)
            for name in (field.name, *field.aliases)
        }


COMMON = (
    Field("op", "text", "the kind of layer", required=True),
    Field("name", "name", "unique in the file; by default the sizes"),
    Field("count", "count", "how often the layer occurs in the network; by default once"),
    Field("element_bytes", "widths", "bytes or data type, for all tensors or by tensor name"),
)

_TRANSPOSES = (
    Field("transpose_a", "flag", "A is stored as [K,M]", aliases=("trans_a", "a_t")),
    Field("transpose_b", "flag", "B is stored as [N,K]", aliases=("trans_b", "b_t")),
)
_MATMUL = (
    Field("m", "count", "rows of the result", required=True),
    Field("n", "count", "columns of the result", required=True),
    Field("k", "count", "length of the reduction", required=True),
    *_TRANSPOSES,
)

OPERATIONS: dict[str, Operation] = {
    "conv2d": Operation(
        conv2d,
        "Convolution; exactly one of h and p, and one of w and q.",
        (
            Field("n", "count", "batch; by default 1", aliases=("batch", "b")),
            Field("c", "count", "input channels, of all groups", True, ("in_channels",)),
            Field("k", "count", "output channels, of all groups", True, ("out_channels",)),
            Field("h", "count", "height of the stored input", aliases=("height", "iy")),
            Field("w", "count", "width of the stored input", aliases=("width", "ix")),
            Field("p", "count", "height of the output", aliases=("out_h", "oy")),
            Field("q", "count", "width of the output", aliases=("out_w", "ox")),
            Field("r", "count", "height of the filter", True, ("filter_h", "kernel_h", "fy")),
            Field("s", "count", "width of the filter", True, ("filter_w", "kernel_w", "fx")),
            Field("stride", "pair", "one, or height and width", aliases=("strides",)),
            Field(
                "padding",
                "padding",
                "one, height and width, or top, bottom, left and right; or same, valid",
                aliases=("pad",),
            ),
            Field("dilation", "pair", "one, or height and width", aliases=("dilations",)),
            Field("groups", "count", "divides c and k; c for depthwise", aliases=("group",)),
            Field("pass", "pass", "which tensor is written: output, input or weight"),
        ),
    ),
    "gemm": Operation(gemm, "GEMM: C[M,N] += A[M,K] * B[K,N].", _MATMUL),
    "batched_gemm": Operation(
        batched_gemm,
        "Independent GEMMs of one shape.",
        (Field("batch", "count", "how many", True, ("b",)), *_MATMUL),
    ),
    "einsum": Operation(
        einsum,
        "Sum of products over letters; tensors are named A, B, C, ...",
        (
            Field("expression", "text", "such as 'mk,kn->mn'", True, ("equation",)),
            Field("sizes", "sizes", "size of each letter", True),
        ),
    ),
    "affine": Operation(
        affine,
        "Any problem: tensors indexed by sums of dimensions.",
        (
            Field("sizes", "sizes", "size of each dimension", True),
            Field("tensors", "projections", "axes of each, such as 'N C 2*P+R-1<224'", True),
            Field("output", "text", "the tensor that is written; by default the last"),
        ),
    ),
}

TOP = (
    Field("name", "name", "by default the file's"),
    Field("source", "text", "where the layers come from"),
    Field("element_bytes", "width", "bytes or data type, where a layer does not say"),
    Field("$schema", "text", "of this schema; not read"),
)
LAYERS = ("layers", "problems")


def workload_schema() -> dict[str, object]:
    """Build the JSON Schema (draft 2020-12) of workload files.

    The reader also takes other names for some fields (`Field.aliases`), any
    case, and whole numbers written as ``3.0``; the schema has the plain form.

    Returns
    -------
    dict
        Ready for `json.dump`.

    Examples
    --------
    >>> sorted(workload_schema()["$defs"])
    ['affine', 'batched_gemm', 'conv2d', 'einsum', 'gemm']
    """
    layers = {
        "type": "array",
        "minItems": 1,
        "description": "the layers, in order",
        "items": {"anyOf": [{"$ref": f"#/$defs/{op}"} for op in OPERATIONS]},
    }
    properties: dict[str, object] = {field.name: _field_schema(field) for field in TOP}
    properties |= dict.fromkeys(LAYERS, layers)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "loopsched workload",
        "type": "object",
        "properties": properties,
        "oneOf": [{"required": [key]} for key in LAYERS],
        "additionalProperties": False,
        "$defs": {op: _layer_schema(op, operation) for op, operation in OPERATIONS.items()},
    }


def _field_schema(field: Field) -> dict[str, object]:
    return {"description": field.text, **_KINDS[field.kind]}


def _layer_schema(op: str, operation: Operation) -> dict[str, object]:
    fields = (*COMMON, *operation.fields)
    properties = {field.name: _field_schema(field) for field in fields}
    properties["op"] = {"const": op}
    schema: dict[str, object] = {
        "description": operation.text,
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }
    if op == "conv2d":
        schema["allOf"] = [
            {"oneOf": [{"required": [one]} for one in pair]} for pair in (("h", "p"), ("w", "q"))
        ]
    return schema
