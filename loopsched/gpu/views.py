"""Layouts by digits: where a position on an axis is not one step but a number with places.

An unrolled image (im2col) that is never built is such a view: a row of it is a channel,
a filter row and a filter column, written as one number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopsched.base.arguments import show
from loopsched.base.errors import InputError
from loopsched.problems.problem import Problem, Tensor

Digits = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DigitLayout:
    """A tensor whose axes are numbers of several digits, each with its own stride.

    Parameters
    ----------
    axes : tuple of tuple of (int, int)
        For each axis its digits, slowest first: how many values, and how far
        one step moves in memory, in elements.
    size_elems : int
        Elements of memory that the view lies on.
    offset_bytes : int, bytes
        Added to the aligned address of the tensor.

    Examples
    --------
    The unrolled image of 3 channels of 8 x 8 under a 3 x 3 filter, 27 x 36:

    >>> view = DigitLayout.im2col(channels=3, height=8, width=8, r=3, s=3)
    >>> view.axes
    (((3, 64), (3, 8), (3, 1)), ((6, 8), (6, 1)))
    >>> view.address((4, 7))
    18
    """

    axes: tuple[Digits, ...]
    size_elems: int
    offset_bytes: int = 0

    @classmethod
    def im2col(
        cls, *, channels: int, height: int, width: int, r: int, s: int, images: int | None = None
    ) -> DigitLayout:
        """View an image as the matrix that a convolution multiplies.

        Rows are (channel, filter row, filter column), columns are the places
        of the output; with ``images``, an axis for them goes first.
        """
        plane = height * width
        rows: Digits = ((channels, plane), (r, width), (s, 1))
        columns: Digits = ((height - r + 1, width), (width - s + 1, 1))
        if images is None:
            return cls((rows, columns), channels * plane)
        batch: Digits = ((images, channels * plane),)
        return cls((batch, rows, columns), images * channels * plane)

    def address(self, index: tuple[int, ...]) -> int:
        """Address of an element, in elements."""
        total = 0
        for digits, place in zip(self.axes, index, strict=True):
            for values, stride in reversed(digits):
                total += place % values * stride
                place //= values
        return total

    def check(self, problem: Problem, tensor: Tensor) -> None:
        """Complain if the view does not suit a tensor.

        Raises
        ------
        InputError
            With every fault found.
        """
        faults = []
        if len(self.axes) != len(tensor.axes):
            faults.append(
                f"{len(self.axes)} axes of digits; '{tensor.name}' has {len(tensor.axes)}"
            )
        for digits, axis in zip(self.axes, tensor.axes, strict=False):
            if not axis.is_plain or axis.terms[0][1] != 1:
                faults.append(f"axis {show(axis.dims)} of '{tensor.name}' is not one dimension")
                continue
            room = math.prod(values for values, _ in digits)
            if room < problem.size[axis.dims[0]]:
                faults.append(
                    f"digits count to {room}; dimension '{axis.dims[0]}' has "
                    f"{problem.size[axis.dims[0]]}"
                )
        InputError.refuse(f"view of '{tensor.name}'", faults)
