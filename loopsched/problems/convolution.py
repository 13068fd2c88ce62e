"""Convolutions: their geometry, and the problem of each training pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loopsched.base.arguments import Checker, near, show
from loopsched.base.errors import ProblemError
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.projections import ElementBytes, check_spans, plain

PASSES = ("forward", "backward_data", "backward_weights")
_CONV_TENSORS = ("input", "weight", "output")
_WRITTEN = {"forward": "output", "backward_data": "input", "backward_weights": "weight"}
_AUTOMATIC = ("same", "valid")

Pair = int | tuple[int, int]
Padding = int | tuple[int, int] | tuple[int, int, int, int] | str


@dataclass(frozen=True, slots=True)
class _Side:
    """Geometry of a convolution along the height or the width."""

    stored: int
    computed: int
    filter: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def reach(self) -> int:
        return (self.computed - 1) * self.stride + self.window

    @property
    def window(self) -> int:
        return (self.filter - 1) * self.dilation + 1


def conv2d(
    *,
    n: int = 1,
    c: int,
    k: int,
    h: int | None = None,
    w: int | None = None,
    p: int | None = None,
    q: int | None = None,
    r: int,
    s: int,
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    pass_: str = "forward",
    element_bytes: ElementBytes = 4,
    name: str | None = None,
) -> Problem:
    """Build a two-dimensional convolution, or one of its two gradients.

    Parameters
    ----------
    n, c, k : int
        Batch, input channels and output channels, over all groups.
    h, w : int, optional
        Height and width of the stored input.
    p, q : int, optional
        Height and width of the output, instead; the stored input is then
        exactly what is reached, less the padding.
    r, s : int
        Height and width of the filter.
    stride, dilation : int or (height, width)
    padding : int, (height, width), (top, bottom, left, right), "same" or "valid"
        Positions outside the stored input; they are not memory.  "same" gives
        an output of ``ceil(h / stride)``, odd padding going below and right;
        "valid" is 0.
    groups : int
        Divides c and k; ``groups=c`` is a depthwise convolution.
    pass_ : str
        ``forward``, ``backward_data`` (the input's gradient is written) or
        ``backward_weights`` (the weight's): the same nest, another output.
    element_bytes : int, data type or mapping of tensor name to either
        Stored size of an element: 4, ``"fp16"``, ``{"input": "int8"}``.
    name : str, optional
        By default the sizes and what differs from the defaults.

    Returns
    -------
    Problem
        Dimensions N K C P Q R S, with G after N if there are groups; K and C
        are then those of one group.  Tensors input, weight, output: the two
        that are read, in this order, then the written one.

    Raises
    ------
    ProblemError
        With every fault found.

    See Also
    --------
    gemm, affine

    Examples
    --------
    >>> problem = conv2d(n=16, c=64, k=64, h=224, w=224, r=3, s=3, padding=1)
    >>> problem.name, problem.size["P"], problem.macs
    ('n16 c64 h224 w224 k64 r3 s3 pad1', 224, 29595009024)
    >>> conv2d(c=32, k=32, p=7, q=7, r=3, s=3, groups=32).dims
    ('N', 'G', 'K', 'C', 'P', 'Q', 'R', 'S')
    """
    check = Checker("conv2d", ProblemError)
    sizes = {"N": check.count("n", n)}
    inner = {"K": check.count("k", k), "C": check.count("c", c)}
    n_groups = check.count("groups", groups)
    for dim, size in inner.items():
        if size % n_groups and not any(f.startswith(f"{dim.lower()} is") for f in check.faults):
            check.fault(
                f"groups is {show(n_groups)}; it must divide {dim.lower()}, which is {show(size)}"
            )
    filter_size = check.count("r", r), check.count("s", s)
    strides, dilations = check.pair("stride", stride), check.pair("dilation", dilation)
    pads = _padding(check, padding)
    which = check.choice("pass", pass_, PASSES)
    widths = check.element_bytes(element_bytes, _CONV_TENSORS)
    given = (("h", h), ("p", p)), (("w", w), ("q", q))
    sides = []
    for i in (0, 1):
        before, after = (0, 0) if isinstance(pads, str) else pads[2 * i : 2 * i + 2]
        side = _Side(0, 0, filter_size[i], strides[i], dilations[i], before, after)
        sides.append(_solve(check, side, given[i], pads == "same"))
    title = check.name(name, "")
    check.finish()

    high, wide = sides
    grouped = n_groups > 1
    if grouped:
        sizes["G"] = n_groups
    sizes |= {dim: size // n_groups for dim, size in inner.items()}
    sizes |= {"P": high.computed, "Q": wide.computed, "R": high.filter, "S": wide.filter}
    group = ("G",) if grouped else ()
    image = (_image_axis("P", "R", high), _image_axis("Q", "S", wide))
    tensors = [
        Tensor("input", (*plain("N", *group, "C"), *image), widths["input"]),
        Tensor("weight", plain(*group, "K", "C", "R", "S"), widths["weight"]),
        Tensor("output", plain("N", *group, "K", "P", "Q"), widths["output"]),
    ]
    check_spans(check, tensors, sizes)
    check.finish()
    written = _WRITTEN[which]
    # Both gradients read the output's gradient; the written tensor goes last.
    tensors.sort(key=lambda tensor: tensor.name == written)
    if which == "backward_data":
        tensors = [tensors[1], tensors[0], tensors[2]]
    attributes = (
        ("input_size", (high.stored, wide.stored)),
        ("stride", strides),
        ("padding", (high.before, high.after, wide.before, wide.after)),
        ("dilation", dilations),
        ("groups", n_groups),
        ("pass", which),
    )
    title = title or _conv_name(sizes, n_groups, sides, which)
    return Problem(title, tuple(sizes.items()), tuple(tensors), written, "conv2d", attributes)


def _image_axis(dim: str, filter_dim: str, side: _Side) -> Axis:
    terms = ((dim, side.stride), (filter_dim, side.dilation))
    return Axis(terms, offset=-side.before, size=side.stored)


def _padding(check: Checker, padding: object) -> tuple[int, int, int, int] | str:
    if isinstance(padding, str):
        if padding in _AUTOMATIC:
            return padding
        check.fault(
            f"padding is {show(padding)}; a number or a word is needed; {near(padding, _AUTOMATIC)}"
        )
        return "valid"
    if isinstance(padding, (tuple, list)):
        if len(padding) not in (2, 4):
            check.fault(
                f"padding is {show(padding)}; one number, (height, width) or "
                "(top, bottom, left, right) is needed"
            )
            return "valid"
        parts = [check.count(f"padding[{i}]", part, 0) for i, part in enumerate(padding)]
        if len(parts) == 2:
            return parts[0], parts[0], parts[1], parts[1]
        return parts[0], parts[1], parts[2], parts[3]
    one = check.count("padding", padding, 0)
    return one, one, one, one


def _solve(
    check: Checker, side: _Side, given: tuple[tuple[str, object], tuple[str, object]], same: bool
) -> _Side:
    """Complete a side from the input's or the output's extent, whichever is given."""
    (stored_name, stored), (computed_name, computed) = given
    if (stored is None) == (computed is None):
        what = "neither is" if stored is None else "both are"
        check.fault(
            f"{stored_name} (input) and {computed_name} (output): {what} given; give exactly one"
        )
        return replace(side, stored=1, computed=1)
    name, value = given[0] if computed is None else given[1]
    n_faults = len(check.faults)
    size = check.count(name, value)
    if n_faults < len(check.faults):
        return replace(side, stored=1, computed=1)
    if computed is None:
        return _from_stored(check, replace(side, stored=size), name, same)
    return _from_computed(check, replace(side, computed=size), name, same)


def _from_stored(check: Checker, side: _Side, name: str, same: bool) -> _Side:
    if same:
        side = replace(side, computed=-(-side.stored // side.stride))
        return _pad_evenly(side)
    padded = side.stored + side.before + side.after
    if padded < side.window:
        check.fault(
            f"{name} is {side.stored} ({padded} with padding), but the filter covers {side.window} "
            f"({side.filter} at dilation {side.dilation}) and must fit inside"
        )
        return replace(side, computed=1)
    return replace(side, computed=(padded - side.window) // side.stride + 1)


def _from_computed(check: Checker, side: _Side, name: str, same: bool) -> _Side:
    if same:
        return _pad_evenly(replace(side, stored=min(side.computed * side.stride, side.reach)))
    stored = side.reach - side.before - side.after
    if stored < 1:
        check.fault(
            f"{name} is {side.computed}: its windows reach {side.reach} positions, all of them "
            f"padding ({side.before} + {side.after}); padding must be smaller"
        )
        stored = 1
    return replace(side, stored=stored)


def _pad_evenly(side: _Side) -> _Side:
    total = max(0, side.reach - side.stored)
    return replace(side, before=total // 2, after=total - total // 2)


def _conv_name(sizes: Mapping[str, int], groups: int, sides: Sequence[_Side], which: str) -> str:
    high, wide = sides
    words = [
        f"n{sizes['N']} c{sizes['C'] * groups} h{high.stored} w{wide.stored}",
        f"k{sizes['K'] * groups} r{high.filter} s{wide.filter}",
        _word("stride", 1, (high.stride, wide.stride)),
        _word("pad", 0, (high.before, high.after, wide.before, wide.after)),
        _word("dil", 1, (high.dilation, wide.dilation)),
        f"g{groups}" if groups > 1 else "",
        which if which != "forward" else "",
    ]
    return " ".join(word for word in words if word)


def _word(label: str, usual: int, values: tuple[int, ...]) -> str:
    """Write a parameter as short as it can be: 1, 1x2, or 0x1x0x1."""
    if len(values) == 4 and values[0] == values[1] and values[2] == values[3]:
        values = values[1:3]
    if len(set(values)) > 1:
        return label + "x".join(map(str, values))
    return "" if values[0] == usual else f"{label}{values[0]}"
