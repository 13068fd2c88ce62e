"""A convolution's sizes as kernels see them, and the matrix product of each pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopsched.base.errors import ProblemError
from loopsched.problems.problem import Problem

_PASSES = {"output": "forward", "input": "backward_data", "weight": "backward_weights"}
# What DRAM and L2 deliver at least, in bytes: an input row is taken whole below this.
_SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class Layer:
    """Sizes of a convolution.

    Parameters
    ----------
    pass_ : str
        ``forward``, ``backward_data`` or ``backward_weights``.
    n, groups : int
    c, k : int
        Channels of one group.
    h, w, p, q, r, s : int
        Stored input, output and filter: height, then width.
    stride, dilation : (int, int)
    padding : (int, int, int, int)
        Top, bottom, left, right.
    """

    pass_: str
    n: int
    groups: int
    c: int
    k: int
    h: int
    w: int
    p: int
    q: int
    r: int
    s: int
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the direct algorithm, those with padding too."""
        return self.n * self.groups * self.k * self.c * self.p * self.q * self.r * self.s

    @property
    def inner_macs(self) -> int:
        """Those that do not multiply by padding."""
        high = _inside(self.p, self.r, self.h, self.stride[0], self.dilation[0], self.padding[0])
        wide = _inside(self.q, self.s, self.w, self.stride[1], self.dilation[1], self.padding[2])
        return self.n * self.groups * self.k * self.c * high * wide

    @property
    def is_unit_stride(self) -> bool:
        """Whether neighbouring windows are one position apart and have no holes."""
        return self.stride == (1, 1) and self.dilation == (1, 1)

    def input_elems(self, element_bytes: int) -> int:
        """Elements of the input that memory delivers: rows, or sectors of them, whole."""
        rows = _touched(self.p, self.r, self.h, self.stride[0], self.dilation[0], self.padding[0])
        columns = self.w
        if self.stride[1] * element_bytes > _SECTOR_BYTES:
            columns = _touched(
                self.q, self.s, self.w, self.stride[1], self.dilation[1], self.padding[2]
            )
        return self.n * self.groups * self.c * rows * columns

    @property
    def weight_elems(self) -> int:
        """Elements of the filters."""
        return self.groups * self.k * self.c * self.r * self.s

    @property
    def output_elems(self) -> int:
        """Elements of the output."""
        return self.n * self.groups * self.k * self.p * self.q


def layer_of(problem: Problem) -> Layer:
    """Take a convolution's sizes; refuse another kind of problem.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> layer = layer_of(conv2d(n=2, c=3, k=8, h=9, w=9, r=3, s=3, stride=2))
    >>> layer.p, layer.macs
    (4, 6912)
    """
    attributes = dict(problem.attributes)
    try:
        high, wide = _pair(attributes["input_size"])
        stride, dilation = _pair(attributes["stride"]), _pair(attributes["dilation"])
        top, bottom, left, right = _numbers(attributes["padding"])
        size = problem.size
        n, c, k, p, q, r, s = (size[dim] for dim in "NCKPQRS")
        pass_ = _PASSES[problem.output]
    except (KeyError, TypeError, ValueError):
        raise ProblemError(
            f"problem '{problem.name}': a conv2d is needed, "
            f"not {problem.kind} over {' '.join(problem.dims)}"
        ) from None
    pads, groups = (top, bottom, left, right), size.get("G", 1)
    return Layer(pass_, n, groups, c, k, high, wide, p, q, r, s, stride, dilation, pads)


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, Sequence) or not all(isinstance(one, int) for one in value):
        raise TypeError
    return tuple(value)


def _pair(value: object) -> tuple[int, int]:
    high, wide = _numbers(value)
    return high, wide


def _inside(outputs: int, taps: int, stored: int, stride: int, dilation: int, before: int) -> int:
    """Pairs of an output and a filter position that meet a stored position."""
    total = 0
    for tap in range(taps):
        # 0 <= output * stride + shift < stored
        shift = tap * dilation - before
        first = max(0, -(shift // stride))
        last = min(outputs - 1, (stored - 1 - shift) // stride)
        total += max(0, last - first + 1)
    return total


def _touched(outputs: int, taps: int, stored: int, stride: int, dilation: int, before: int) -> int:
    """Stored positions along an axis that some window covers."""
    reach = (taps - 1) * dilation + 1
    if stride <= reach and dilation == 1:
        first, last = max(0, -before), min(stored, (outputs - 1) * stride + reach - before)
        return max(0, last - first)
    return min(stored, _inside(outputs, taps, stored, stride, dilation, before))
