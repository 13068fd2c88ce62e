"""Where tensors lie in memory: order of axes, padding, alignment."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import InputError, gathered
from loopsched.problems.problem import Axis, Problem, Tensor

# What the CUDA runtime promises of an allocation (CUDA C++ Programming Guide, device memory).
ALIGN_BYTES = 256

_WORD = re.compile(r"([A-Za-z_]\w*)(?::([0-9]{1,18}))?")
# Rows and columns of an image and of a filter, under the names that frameworks use.
_IMAGE = {"P": "H", "R": "H", "Q": "W", "S": "W"}


@dataclass(frozen=True, slots=True)
class Layout:
    """How one tensor is laid out in memory.

    Parameters
    ----------
    axes : tuple of str
        Axes, slowest first, each named by a dimension that moves along it.
        Of a convolution's tensors, H and W name the rows and columns; N
        and C, the filters of a weight and the channels of an output.
        Empty: the order in which the problem lists them.
    room : tuple of (str, int)
        Positions that an axis takes in memory, where they are more than its own:
        ``("K", 4100)`` gives rows of 4,096 a leading dimension of 4,100.
    align_bytes : int, bytes
        Power of two of which the address is a multiple.  No two tensors share
        a line, whatever it is.
    offset_bytes : int, bytes
        Added to the aligned address.

    Raises
    ------
    InputError
        If a value is not allowed.

    See Also
    --------
    simulate

    Examples
    --------
    >>> Layout.parse("NHWC").axes
    ('N', 'H', 'W', 'C')
    >>> Layout.parse("M K:4100")
    Layout(axes=('M', 'K'), room=(('K', 4100),), align_bytes=256, offset_bytes=0)
    """

    axes: tuple[str, ...] = ()
    room: tuple[tuple[str, int], ...] = ()
    align_bytes: int = ALIGN_BYTES
    offset_bytes: int = 0

    def __post_init__(self) -> None:
        InputError.refuse("layout", _faults(self))

    @classmethod
    def parse(cls, text: str, *, align_bytes: int = ALIGN_BYTES) -> Layout:
        """Read a layout: ``NHWC``, or words with the room they take, ``M K:4100``.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        if not isinstance(text, str):
            raise InputError(f"layout {show(text)} is not text such as 'NHWC' or 'M K:4100'")
        words = [word for word in re.split(r"[\s,]+", text) if word]
        if len(words) == 1 and words[0].isalpha():
            words = list(words[0])
        found = [_WORD.fullmatch(word) for word in words]
        bad = [word for word, match in zip(words, found, strict=True) if match is None]
        if bad or not words:
            what = f"'{bad[0]}' is" if bad else "it is"
            raise InputError(
                f"layout {show(text)}: {what} not an axis such as K, or K:4100 with its room"
            )
        pairs = [match.groups() for match in found if match is not None]
        room = tuple((name, int(many)) for name, many in pairs if many is not None)
        return cls(tuple(name for name, _ in pairs), room, align_bytes)


LayoutLike = Layout | str


def _faults(layout: Layout) -> Iterable[str]:
    for name in dict.fromkeys(layout.axes):
        if layout.axes.count(name) > 1:
            yield f"axis {show(name)} is given {layout.axes.count(name)} times"
    for name, many in layout.room:
        if not is_count(many, most=2**60 - 1):
            yield f"room of axis {show(name)} is {show(many)}; a whole number >= 1 is needed"
    align, offset = layout.align_bytes, layout.offset_bytes
    if not is_count(align, most=2**40) or align & (align - 1):
        yield f"align_bytes is {show(align)}; a power of two up to 2**40 is needed"
    if not is_count(offset, 0, 2**40):
        yield f"offset_bytes is {show(offset)}; a whole number from 0 to 2**40 is needed"


@dataclass(frozen=True, slots=True)
class Span:
    """Positions that an axis stores: ``first + divisor * k`` for ``0 <= k < count``."""

    first: int
    divisor: int
    count: int

    @classmethod
    def of(cls, axis: Axis, size: Mapping[str, int]) -> Span:
        """Find what an axis stores.

        Examples
        --------
        >>> Span.of(Axis((("P", 2),), offset=3), {"P": 4})
        Span(first=3, divisor=2, count=4)
        """
        if axis.size is not None:
            return cls(0, 1, axis.size)
        moving = [(c, size[dim]) for dim, c in axis.terms if size[dim] > 1]
        divisor = math.gcd(*(c for c, _ in moving)) or 1
        return cls(axis.offset, divisor, sum(c // divisor * (n - 1) for c, n in moving) + 1)


@dataclass(frozen=True, slots=True)
class Placed:
    """One tensor in memory.

    Parameters
    ----------
    tensor : Tensor
    spans : tuple of Span
        Of each axis, in the tensor's order.
    strides : tuple of int, elements
        Of each axis, in the tensor's order.
    size_elems : int
        Room that the tensor takes, padding in between included.
    layout : Layout
    """

    tensor: Tensor
    spans: tuple[Span, ...]
    strides: tuple[int, ...]
    size_elems: int
    layout: Layout

    def coefficient(self, dim: str) -> int:
        """How far a step along a dimension moves in memory, in elements."""
        moved = 0
        for axis, span, stride in zip(self.tensor.axes, self.spans, self.strides, strict=True):
            moved += sum(c // span.divisor * stride for name, c in axis.terms if name == dim)
        return moved

    @property
    def origin(self) -> int:
        """Address, in elements, of what the first point of the space touches."""
        return sum(
            (axis.offset - span.first) // span.divisor * stride
            for axis, span, stride in zip(self.tensor.axes, self.spans, self.strides, strict=True)
        )


def placed(problem: Problem, tensor: Tensor, layout: Layout = Layout()) -> Placed:
    """Lay one tensor out.

    Raises
    ------
    InputError
        If the layout does not suit the tensor.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> problem = conv2d(n=1, c=3, k=4, h=8, w=8, r=3, s=3, padding=1)
    >>> placed(problem, problem.tensor("input"), Layout.parse("NHWC")).strides
    (192, 1, 24, 3)
    """
    spans = tuple(Span.of(axis, problem.size) for axis in tensor.axes)
    names = _names(problem, tensor)
    order = _order(tensor, names, layout)
    room = [span.count for span in spans]
    for name, many in layout.room:
        at = _find(tensor, names, name)
        if many < room[at]:
            raise InputError(
                f"layout of '{tensor.name}': axis '{name}' has {room[at]} positions; "
                f"a room of {many} is too small"
            )
        room[at] = many
    strides, elems = [0] * len(room), 1
    for at in reversed(order):
        strides[at] = elems
        elems *= room[at]
    return Placed(tensor, spans, tuple(strides), elems, layout)


def _names(problem: Problem, tensor: Tensor) -> list[set[str]]:
    """Names of each axis: its dimensions, and what frameworks call it."""
    names = [set(axis.dims) for axis in tensor.axes]
    if problem.kind != "conv2d":
        return names
    taken = set(tensor.dims)
    for found in names:
        found |= {_IMAGE[dim] for dim in found & set(_IMAGE)}
        if "K" in found and tensor.name == "output":
            found |= {"C"} - taken
        if "K" in found and tensor.name == "weight":
            found |= {"N"} - taken
    return names


def _find(tensor: Tensor, names: list[set[str]], name: str) -> int:
    for at, known in enumerate(names):
        if name in known:
            return at
    allowed = sorted({name for known in names for name in known})
    raise InputError(f"layout of '{tensor.name}': no axis {show(name)}; {near(name, allowed)}")


def _order(tensor: Tensor, names: list[set[str]], layout: Layout) -> list[int]:
    if not layout.axes:
        return list(range(len(names)))
    order = [_find(tensor, names, name) for name in layout.axes]
    missing = [at for at in range(len(names)) if at not in order and names[at]]
    if missing or len(set(order)) < len(order):
        wanted = " ".join("/".join(sorted(known)) for known in names if known)
        raise InputError(
            f"layout of '{tensor.name}' is {' '.join(layout.axes)}; "
            f"each axis once is needed: {wanted}"
        )
    return [at for at in range(len(names)) if at not in order] + order


def layouts_of(
    problem: Problem, layouts: Mapping[str, LayoutLike] | LayoutLike | None
) -> dict[str, Placed]:
    """Lay all tensors of a problem out.

    Parameters
    ----------
    problem : Problem
    layouts : mapping of tensor name to Layout or str, or one for all, or None
        Tensors not named are stored in the problem's order.

    Raises
    ------
    InputError
        With every fault found.

    Examples
    --------
    >>> from loopsched import gemm
    >>> problem = gemm(m=4, n=4, k=8)
    >>> layouts_of(problem, {"A": "K M"})["A"].strides
    (1, 4)
    """
    known = [tensor.name for tensor in problem.tensors]
    faults: list[str] = []
    chosen: dict[str, LayoutLike] = {}
    if isinstance(layouts, (Layout, str)):
        chosen = dict.fromkeys(known, layouts)
    elif isinstance(layouts, Mapping):
        for name, one in layouts.items():
            if name in known:
                chosen[name] = one
            else:
                faults.append(f"no tensor {show(name)}; {near(name, known)}")
    elif layouts is not None:
        faults.append(f"{show(layouts)} is not a layout, nor a mapping of tensors to layouts")
    found = {}
    for tensor in problem.tensors:
        one = chosen.get(tensor.name, Layout())
        with gathered(faults):
            layout = one if isinstance(one, Layout) else Layout.parse(one)
            found[tensor.name] = placed(problem, tensor, layout)
    InputError.refuse("layouts", faults)
    return found
