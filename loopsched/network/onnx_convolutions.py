"""Nests of ONNX convolutions: one to three axes, forward and transposed."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.network.onnx_read import wholes
from loopsched.network.onnx_view import Part, UnsayableError, View
from loopsched.problems.convolution import conv2d
from loopsched.problems.problem import Problem
from loopsched.problems.projections import affine

# One for each axis.
Lengths = tuple[int, ...]
# Letters of the output's and the filter's axes, for three.
_OUTER, _INNER = "OPQ", "TRS"


@dataclass(frozen=True, slots=True)
class Geometry:
    """A convolution as its forward pass: ``large`` is the input's side, ``small`` the output's."""

    batch: int
    channels: int
    filters: int
    groups: int
    large: Lengths
    small: Lengths
    window: Lengths
    strides: Lengths
    dilations: Lengths
    begins: Lengths
    ends: Lengths

    def problem(self, pass_: str, widths: dict[str, int]) -> Problem:
        """Build the nest; one axis is a picture one high, three are spelt out."""
        if len(self.large) == 3:
            return self._volume(pass_, widths)
        high, wide = (0, 1) if len(self.large) == 2 else (None, 0)

        def both(values: Lengths, one: int) -> tuple[int, int]:
            return (one if high is None else values[high], values[wide])

        h, w = both(self.large, 1)
        r, s = both(self.window, 1)
        top, left = both(self.begins, 0)
        bottom, right = both(self.ends, 0)
        return conv2d(
            n=self.batch, c=self.channels, k=self.filters, h=h, w=w, r=r, s=s,
            stride=both(self.strides, 1), padding=(top, bottom, left, right),
            dilation=both(self.dilations, 1), groups=self.groups, pass_=pass_,
            element_bytes=widths,
        )  # fmt: skip

    def _volume(self, pass_: str, widths: dict[str, int]) -> Problem:
        for name, size in (("channels", self.channels), ("filters", self.filters)):
            if size % self.groups:
                raise UnsayableError(f"{self.groups} groups do not divide {size} {name}")
        grouped = self.groups > 1
        sizes = {"N": self.batch} | ({"G": self.groups} if grouped else {})
        sizes |= {"K": self.filters // self.groups, "C": self.channels // self.groups}
        sizes |= dict(zip(_OUTER, self.small, strict=True))
        sizes |= dict(zip(_INNER, self.window, strict=True))
        group = "G " if grouped else ""
        image = " ".join(
            f"{stride}*{outer}+{dilation}*{inner}-{begin}<{size}"
            for outer, inner, stride, dilation, begin, size in zip(
                _OUTER, _INNER, self.strides, self.dilations, self.begins, self.large, strict=True
            )
        )
        tensors = {
            "input": f"N {group}C {image}",
            "weight": f"{group}K C {' '.join(_INNER)}",
            "output": f"N {group}K {' '.join(_OUTER)}",
        }
        written = "output" if pass_ == "forward" else "input"
        return affine(sizes, tensors, output=written, element_bytes=widths)


def convolution(view: View, weight: int = 1) -> list[Part]:
    """Build the nest of Conv and of its kin; ``weight`` is the filter's place."""
    image, filters = view.shape(0), view.shape(weight)
    strides, dilations, window = _window(view, filters, _rank(image, filters))
    large = image[2:]
    begins, ends = pads(view, large, window, strides, dilations)
    reaches = _reaches(window, dilations)
    small = tuple(
        (size + begin + end - reach) // stride + 1
        for size, begin, end, reach, stride in zip(
            large, begins, ends, reaches, strides, strict=True
        )
    )
    groups = view.integer("group", 1)
    if image[1] != filters[1] * groups:
        raise UnsayableError(f"{image[1]} channels, but filters of {filters[1]} in {groups} groups")
    if min(small) < 1:
        raise UnsayableError("the filter is larger than the padded input")
    geometry = Geometry(
        image[0], image[1], filters[0], groups, large, small, window, strides, dilations,
        begins, ends,
    )  # fmt: skip
    widths = {
        "input": view.width(0), "weight": view.width(weight), "output": view.output_width,
    }  # fmt: skip
    operands = (("input", view.name(0)), ("weight", view.name(weight)), ("output", view.output))
    return [Part(geometry.problem("forward", widths), operands)]


def transposed_convolution(view: View) -> list[Part]:
    """Build the nest of ConvTranspose: the input's gradient of a convolution."""
    image, filters = view.shape(0), view.shape(1)
    rank = _rank(image, filters)
    strides, dilations, window = _window(view, filters, rank)
    groups = view.integer("group", 1)
    if image[1] != filters[0]:
        raise UnsayableError(f"{image[1]} channels, but filters of {filters[0]}")
    small = image[2:]
    begins, ends, large = _crops(view, small, _reaches(window, dilations), strides)
    geometry = Geometry(
        image[0], filters[1] * groups, image[1], groups, large, small, window, strides, dilations,
        begins, ends,
    )  # fmt: skip
    widths = {
        "input": view.output_width, "weight": view.width(1), "output": view.width(0),
    }  # fmt: skip
    problem = geometry.problem("backward_data", widths)
    sides = tuple(problem.size[dim] for dim in _OUTER if dim in problem.size)
    if rank < 3 and sides[-rank:] != small:
        raise UnsayableError("output_padding is as large as the stride")
    operands = (("output", view.name(0)), ("weight", view.name(1)), ("input", view.output))
    return [Part(problem, operands)]


def _rank(image: Lengths, filters: Lengths) -> int:
    rank = len(filters) - 2
    if not 1 <= rank <= 3 or len(image) != len(filters):
        raise UnsayableError(
            f"an input of {len(image)} and a filter of {len(filters)} axes; 3 to 5 each, as "
            "many in both, are needed"
        )
    return rank


def _window(view: View, filters: Lengths, rank: int) -> tuple[Lengths, ...]:
    ones = (1,) * rank
    window = view.integers("kernel_shape", filters[2:])
    strides, dilations = view.integers("strides", ones), view.integers("dilations", ones)
    if window != filters[2:] or min(*strides, *dilations, *window) < 1:
        raise UnsayableError("its filter, strides or dilations are invalid")
    return strides, dilations, window


def _reaches(window: Lengths, dilations: Lengths) -> Lengths:
    return tuple((size - 1) * step + 1 for size, step in zip(window, dilations, strict=True))


def pads(
    view: View, large: Lengths, window: Lengths, strides: Lengths, dilations: Lengths
) -> tuple[Lengths, Lengths]:
    """Find the padding before and behind every axis, of a convolution or a pooling."""
    rank = len(large)
    automatic = view.word("auto_pad", "NOTSET")
    if automatic in ("NOTSET", ""):
        given = view.integers("pads", (0,) * (2 * rank))
        if min(given) < 0:
            raise UnsayableError("negative pads cut the input")
        return given[:rank], given[rank:]
    if automatic == "VALID":
        return (0,) * rank, (0,) * rank
    if automatic not in ("SAME_UPPER", "SAME_LOWER"):
        raise UnsayableError(f"auto_pad is {automatic[:40]!r}")
    totals = [
        max(0, (-(-size // stride) - 1) * stride + reach - size)
        for size, stride, reach in zip(large, strides, _reaches(window, dilations), strict=True)
    ]
    return _halves(totals, automatic)


def _halves(totals: list[int], automatic: str) -> tuple[Lengths, Lengths]:
    """Share out totals before and behind; what is odd goes behind only with SAME_UPPER."""
    less = tuple(total // 2 for total in totals)
    more = tuple(total - total // 2 for total in totals)
    return (less, more) if automatic == "SAME_UPPER" else (more, less)


def _crops(
    view: View, small: Lengths, reaches: Lengths, strides: Lengths
) -> tuple[Lengths, Lengths, Lengths]:
    """Find what a transposed convolution cuts off at both ends, and its output's size."""
    rank = len(small)
    added = view.integers("output_padding", (0,) * rank)
    whole = tuple(
        stride * (size - 1) + extra + reach
        for stride, size, extra, reach in zip(strides, small, added, reaches, strict=True)
    )
    automatic = view.word("auto_pad", "NOTSET")
    wanted = wholes(view.operator.attributes, "output_shape")
    if automatic in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = tuple(size * stride for size, stride in zip(small, strides, strict=True))
    if wanted:
        sides = wanted[-rank:]
        if len(sides) != rank:
            raise UnsayableError(f"output_shape is {list(wanted)}; {rank} lengths are needed")
        # What no window reaches, at the end of a larger output, is zero.
        totals = [max(0, full - side) for full, side in zip(whole, sides, strict=True)]
        if min(sides) < 1:
            raise UnsayableError(f"output_shape is {list(wanted)}; whole numbers are needed")
        return *_halves(totals, automatic), sides
    pads = view.integers("pads", (0,) * (2 * rank)) if automatic != "VALID" else (0,) * (2 * rank)
    begins, ends = pads[:rank], pads[rank:]
    large = tuple(full - begin - end for full, begin, end in zip(whole, begins, ends, strict=True))
    if min(large) < 1 or min(pads) < 0:
        raise UnsayableError("its pads leave no output")
    return begins, ends, large
