"""Numbers that a model computes from shapes: what lengths and axes are made of.

Values are arrays of numbers; None stands for one that is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopsched.network.onnx_operator import Operator
from loopsched.network.onnx_read import tensor_in, whole, wholes

Numbers = NDArray[np.object_]
_Rule = Callable[[Operator, Sequence[Numbers]], Numbers]

_MOST = 1024
# ONNX's numbers of float, float16, double and bfloat16.
_FLOATS = (1, 10, 11, 16)
# Stands for an input that is left out.
_NOTHING: Numbers = np.empty(0, dtype=object)


def numbers_of(values: Any) -> Numbers:
    """Make an array of numbers, of any shape.

    Examples
    --------
    >>> numbers_of([1, None]).tolist()
    [1, None]
    """
    return np.array(values, dtype=object)


def compute(operator: Operator, inputs: Sequence[Numbers | None]) -> Numbers | None:
    """Compute what an operator gives, if its inputs are numbers.

    Parameters
    ----------
    operator : Operator
    inputs : sequence of array or None
        None: not numbers, or left out.

    Returns
    -------
    array or None

    Examples
    --------
    >>> gather = Operator("g", "Gather", "", ("shape", "i"), ("length",), {"axis": 0})
    >>> compute(gather, [numbers_of([8, None, 64]), numbers_of(2)]).tolist()
    64
    """
    rule = _RULES.get(operator.op)
    if rule is None or operator.domain or not inputs:
        return None
    if any(name and one is None for name, one in zip(operator.inputs, inputs, strict=True)):
        return None
    try:
        found = numbers_of(rule(operator, [_NOTHING if one is None else one for one in inputs]))
    except (ArithmeticError, IndexError, LookupError, TypeError, ValueError):
        return None  # numbers that do not fit the operator, or are not known
    return found if found.size <= _MOST else None


def _ints(values: Numbers) -> list[int]:
    return [int(one) for one in values.reshape(-1)]


def _axes(operator: Operator, given: Sequence[Numbers]) -> tuple[int, ...]:
    """Axes: an attribute in older operator sets, an input in newer ones."""
    if len(given) > 1 and given[1] is not _NOTHING:
        return tuple(_ints(given[1]))
    return wholes(operator.attributes, "axes")


def _concat(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    return np.concatenate([np.atleast_1d(one) for one in given], whole(operator.attributes, "axis"))


def _slice(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    found = operator.attributes
    rows = [tuple(_ints(each)) for each in given[1:]]
    if "starts" in found:
        rows = [wholes(found, name) for name in ("starts", "ends", "axes")]
    starts, ends, axes, steps = (*rows, (), ())[:4]
    axes, steps = axes or tuple(range(len(starts))), steps or (1,) * len(starts)
    cuts: list[slice] = [slice(None)] * given[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        cuts[axis] = slice(start, end, step)
    return given[0][tuple(cuts)]


def _small(shape: Sequence[int]) -> Sequence[int]:
    if math.prod(shape) > _MOST:
        raise ValueError("too many")
    return shape


def _of_shape(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    from onnx import numpy_helper

    shape = _small(_ints(given[0]))
    tensor = tensor_in(operator.attributes, "value")
    value = 0 if tensor is None else numpy_helper.to_array(tensor).reshape(-1)[0].item()
    return np.full(shape, value, dtype=object)


def _range(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    start, stop, step = (int(one.reshape(-1)[0]) for one in given)
    places = range(start, stop, step)
    _small([len(places)])
    return numbers_of(list(places))


def _expand(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    shape = tuple(_small(_ints(given[1])))
    return np.broadcast_to(given[0], np.broadcast_shapes(given[0].shape, shape))


def _product(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    if len(given) > 1 or operator.attributes.get("axes"):
        raise ValueError("along some axes only")
    total = numbers_of(math.prod(given[0].reshape(-1)))
    return (
        total.reshape((1,) * given[0].ndim) if whole(operator.attributes, "keepdims", 1) else total
    )


def _cast(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    if operator.attributes.get("to") in _FLOATS:
        return given[0]
    flat = [None if one is None else int(one) for one in given[0].reshape(-1)]
    return numbers_of(flat).reshape(given[0].shape)


def _clip(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    # Attributes in older operator sets, inputs that may be left out in newer ones.
    limits = [operator.attributes.get("min"), operator.attributes.get("max")]
    for at, one in enumerate(given[1:]):
        limits[at] = one.item() if one is not _NOTHING else None
    found = given[0]
    if limits[0] is not None:
        found = np.maximum(found, limits[0])
    return found if limits[1] is None else np.minimum(found, limits[1])


def _turn(operator: Operator, given: Sequence[Numbers]) -> Numbers:
    return np.transpose(given[0], wholes(operator.attributes, "perm") or None)


def _each(rule: Callable[..., float]) -> _Rule:
    """Apply a rule of single numbers to each of arrays that broadcast."""

    def apply(operator: Operator, given: Sequence[Numbers]) -> Numbers:
        alike = np.broadcast_arrays(*given)
        flat = zip(*(one.reshape(-1) for one in alike), strict=True)
        return numbers_of([rule(*each) for each in flat]).reshape(alike[0].shape)

    return apply


def _divided(a: float, b: float) -> float:
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # towards zero, as ONNX has it


def _chosen(condition: int, first: int, other: int) -> int:
    if condition is None:
        raise ValueError("not known")
    return first if condition else other


def _same(a: int, b: int) -> int:
    if a is None or b is None:
        raise ValueError("not known")
    return int(a == b)


_RULES: Mapping[str, _Rule] = {
    "Abs": _each(abs),
    "Add": _each(lambda a, b: a + b),
    "Cast": _cast,
    "Clip": _clip,
    "Ceil": _each(math.ceil),
    "Concat": _concat,
    "ConstantOfShape": _of_shape,
    "Div": _each(_divided),
    "Equal": _each(_same),
    "Expand": _expand,
    "Floor": _each(math.floor),
    "Gather": lambda operator, given: np.take(
        given[0], given[1].astype(np.int64), axis=whole(operator.attributes, "axis")
    ),
    "Greater": _each(lambda a, b: int(a > b)),
    "Identity": lambda _, given: given[0],
    "Less": _each(lambda a, b: int(a < b)),
    "Max": _each(max),
    "Min": _each(min),
    "Mod": _each(lambda a, b: a % b),
    "Mul": _each(lambda a, b: a * b),
    "Neg": _each(lambda a: -a),
    "Not": _each(lambda a: int(not a)),
    "Range": _range,
    "ReduceProd": _product,
    "Reshape": lambda _, given: given[0].reshape(_ints(given[1])),
    "Slice": _slice,
    "Squeeze": lambda operator, given: np.squeeze(given[0], _axes(operator, given) or None),
    "Sub": _each(lambda a, b: a - b),
    "Transpose": _turn,
    "Unsqueeze": lambda operator, given: np.expand_dims(given[0], _axes(operator, given)),
    "Where": _each(_chosen),
}
