"""What poolings, and sums over axes, read for one position of their output."""

from __future__ import annotations

from itertools import combinations

from loopsched.network.node import Window
from loopsched.network.onnx_convolutions import pads
from loopsched.network.onnx_read import whole, wholes
from loopsched.network.onnx_type import Type
from loopsched.network.onnx_view import UnsayableError, View

Windows = tuple[Window | None, ...]

_POOLS = ("AveragePool", "LpPool", "MaxPool")
_WHOLE_IMAGE = ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
_OVER_ROWS = ("LayerNormalization", "LogSoftmax", "RMSNormalization", "Softmax")


def windows_of(view: View) -> Windows:
    """Find the windows of an operator, as `Node.windows` has them; empty: not known."""
    op = view.operator.op
    if view.operator.domain:
        return ()
    try:
        if op in _POOLS:
            return _pool(view)
        if op in _WHOLE_IMAGE:
            shape = view.shape(0)
            return (None, None, *(Window(size, 1, size, size) for size in shape[2:]))
        if op.startswith("Reduce"):
            return _reduction(view)
        if op in _OVER_ROWS:
            return _over_rows(view)
    except UnsayableError:
        pass  # shapes or attributes that cannot be: nothing is known
    return ()


def _made(view: View) -> tuple[int, ...]:
    found = view.types.get(view.output, Type()).shape
    if found is None:
        raise UnsayableError("its output is not known")
    return found


def _pool(view: View) -> Windows:
    large, small = view.shape(0)[2:], _made(view)[2:]
    ones = (1,) * len(large)
    taps = wholes(view.operator.attributes, "kernel_shape")
    strides, dilations = view.integers("strides", ones), view.integers("dilations", ones)
    if not len(taps) == len(small) == len(large) or min((*taps, *strides, *dilations)) < 1:
        raise UnsayableError("its windows are invalid")
    before, _ = pads(view, large, taps, strides, dilations)
    axes = zip(large, small, taps, strides, dilations, before, strict=True)
    return (None, None, *(Window(*one) for one in axes))


def _reduction(view: View) -> Windows:
    shape, made = view.shape(0), _made(view)
    if whole(view.operator.attributes, "keepdims", 1):
        axes = {at for at, (one, left) in enumerate(zip(shape, made, strict=False)) if one != left}
    else:
        axes = _left_out(shape, made, wholes(view.operator.attributes, "axes"))
    return tuple(
        Window(size, 1, size, size) if at in axes else None for at, size in enumerate(shape)
    )


def _left_out(shape: tuple[int, ...], made: tuple[int, ...], given: tuple[int, ...]) -> set[int]:
    """Find the axes that are no more there: as given, or as shapes say, if they leave no doubt."""
    rank = len(shape)
    if given:
        return {axis % rank for axis in given}
    fitting = [
        gone
        for gone in combinations(range(rank), rank - len(made))
        if tuple(size for at, size in enumerate(shape) if at not in gone) == made
    ]
    if len(fitting) != 1:
        raise UnsayableError("which axes are summed is not known")
    return set(fitting[0])


def _over_rows(view: View) -> Windows:
    """All axes from the given one on: so it is but for newer Softmax, whose one axis may be less.

    Where that one is left out, it was the second in older operator sets, and is the last now.
    """
    shape = view.shape(0)
    left_out = 1 if view.operator.op.endswith("Softmax") else -1
    axis = whole(view.operator.attributes, "axis", left_out) % len(shape) if shape else 0
    return tuple(
        Window(size, size, 2 * size - 1, before=size - 1) if at >= axis and size > 1 else None
        for at, size in enumerate(shape)
    )
