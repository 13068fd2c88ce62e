"""Addresses of a kernel's accesses, by groups of loops that move independently.

An axis of a tensor is moved by a few dimensions; what a thread does elsewhere only
shifts its addresses.  So the loops fall into groups (joined by axes and by tests), each
with few classes of iterations: relative addresses of the threads, which of them are on,
and where in a line they begin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from loopsched.base.arrays import Flags, Ints
from loopsched.gpu.kernel import BoundLoop, Kernel
from loopsched.gpu.views import DigitLayout, Digits
from loopsched.problems.problem import Tensor
from loopsched.simulator.layout import placed


@dataclass(frozen=True, slots=True)
class PlacedAxis:
    """One axis of a tensor in memory: from positions of loops to addresses.

    Parameters
    ----------
    terms : tuple of (str, int)
        Dimension and how many stored places one step of it moves.
    origin : int
        Stored place that the first iteration touches.
    count : int
        Stored places; others are no memory.
    digits : tuple of (int, int)
        How a stored place turns into an address, as in `DigitLayout`.
    """

    terms: tuple[tuple[str, int], ...]
    origin: int
    count: int
    digits: Digits

    def moved(self, parts: Iterable[Ints]) -> Ints:
        """Add up what the iterations of its dimensions move."""
        return sums(parts, (step for _, step in self.terms))

    def address(self, stored: Ints) -> Ints:
        """Addresses, in elements, of stored places."""
        if len(self.digits) == 1:
            return stored * self.digits[0][1]
        total = np.zeros_like(stored)
        left = stored
        for values, stride in reversed(self.digits[1:]):
            left, digit = np.divmod(left, values)
            total += digit * stride
        return total + left * self.digits[0][1]


@dataclass(frozen=True, slots=True)
class PlacedTensor:
    """A tensor in global memory.

    Parameters
    ----------
    axes : tuple of PlacedAxis
    offset_bytes : int, bytes
    size_elems : int
        Of the memory that it lies in.
    is_view : bool
        Whether different places may have the same address.
    """

    axes: tuple[PlacedAxis, ...]
    offset_bytes: int
    size_elems: int
    is_view: bool = False


def place_tensor(kernel: Kernel, tensor: Tensor) -> PlacedTensor:
    """Lay a tensor out as the kernel says."""
    layout = kernel.layout(tensor.name)
    size = kernel.problem.size
    if isinstance(layout, DigitLayout):
        axes = tuple(
            PlacedAxis(axis.terms, 0, size[axis.dims[0]], digits)
            for axis, digits in zip(tensor.axes, layout.axes, strict=True)
        )
        return PlacedTensor(axes, layout.offset_bytes, layout.size_elems, True)
    laid = placed(kernel.problem, tensor, layout)
    axes = tuple(
        PlacedAxis(
            tuple((dim, c // span.divisor) for dim, c in axis.terms),
            (axis.offset - span.first) // span.divisor,
            span.count,
            ((span.count, stride),),
        )
        for axis, span, stride in zip(tensor.axes, laid.spans, laid.strides, strict=True)
    )
    return PlacedTensor(axes, layout.offset_bytes, laid.size_elems)


@dataclass(frozen=True, slots=True)
class DimGrid:
    """Positions of one dimension: outer iterations, inner ones, threads.

    Parameters
    ----------
    outer : array of int
        Of blocks, and of time loops outside the place.
    near : array of int
        The part of ``outer`` that time loops inside the filling of a tile move.
    inner : array of int
        Of time loops inside the place.
    threads : array of int
    is_inside : array of bool, outer x inner x threads
        Whether every loop is within its extent; None: all are.
    """

    outer: Ints
    near: Ints
    inner: Ints
    threads: Ints
    is_inside: Flags | None


def all_inside(grids: Iterable[DimGrid]) -> Flags:
    """Join the tests of several dimensions, over all of their iterations together."""
    is_inside = np.ones((1, 1, 1), np.bool_)
    for grid in grids:
        sizes = (len(grid.outer), len(grid.inner), len(grid.threads))
        one = np.ones(sizes, np.bool_) if grid.is_inside is None else grid.is_inside
        a = is_inside.shape
        joined = is_inside[:, None, :, None, :, None] & one[None, :, None, :, None, :]
        is_inside = joined.reshape(a[0] * sizes[0], a[1] * sizes[1], a[2] * sizes[2])
    return is_inside


Wide = tuple[int, int]


def _widened(loop: BoundLoop, position: int, many: int) -> BoundLoop:
    if loop.position != position:
        return loop
    return replace(loop, trips=loop.trips // many, step=loop.step * many)


class Geometry:
    """The loops of a kernel, and positions of its dimensions at a place in the nest."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.loops: dict[str, tuple[BoundLoop, ...]] = dict.fromkeys(kernel.problem.dims, ())
        for loop in kernel.loops:
            self.loops[loop.dim] += (loop,)
        self.placed = {one.name: place_tensor(kernel, one) for one in kernel.problem.tensors}
        self.thread_index = indices(kernel, "thread", np.arange(kernel.block_threads))
        self._grids: dict[tuple[str, int, int, bool, Wide | None], DimGrid] = {}

    def grid(
        self, dim: str, depth: int, tile: int, with_inner: bool, wide: Wide | None = None
    ) -> DimGrid:
        """Positions of a dimension at a place.

        Parameters
        ----------
        dim : str
        depth : int
            The place: time loops from this position inward are inner.
        tile : int
            Position before which a tile is filled, for ``near``.
        with_inner : bool
            Else inner loops stand at their first iteration.
        wide : (int, int), optional
            Position of a loop, and how many of its iterations one access serves.
        """
        key = (dim, depth, tile, with_inner, wide)
        if key not in self._grids:
            self._grids[key] = self._make_grid(*key)
        return self._grids[key]

    def _make_grid(
        self, dim: str, depth: int, tile: int, with_inner: bool, wide: Wide | None
    ) -> DimGrid:
        loops = self.loops[dim]
        if wide is not None:
            loops = tuple(_widened(loop, *wide) for loop in loops)
        kinds = [
            2 if loop.kind == "thread" else int(loop.kind == "time" and loop.position >= depth)
            for loop in loops
        ]
        pairs = list(zip(loops, kinds, strict=True))
        outside, *others = ([loop for loop, kind in pairs if kind == at] for at in range(3))
        outer, inner, threads = map(_combined, (outside, *others))
        is_near = [loop.kind == "time" and loop.position >= tile for loop in outside]
        near = _combined(outside, is_near)
        if not with_inner:
            inner = inner[:1]
        is_inside = None
        if any(loop.extent % loop.step for loop in self.loops[dim]):
            is_inside = self._inside(loops, kinds, (len(outer), len(inner), len(threads)))
        return DimGrid(outer, near, inner, threads, is_inside)

    @staticmethod
    def _inside(
        loops: Sequence[BoundLoop], kinds: Sequence[int], shape: tuple[int, int, int]
    ) -> Flags:
        """Test each loop's extent, from the innermost outward."""
        left = [np.arange(many, dtype=np.int64) for many in shape]
        offset = np.zeros((1, 1, 1), np.int64)
        is_inside = np.ones((1, 1, 1), np.bool_)
        for loop, kind in zip(reversed(loops), reversed(kinds), strict=True):
            left[kind], index = np.divmod(left[kind], loop.trips)
            along = [1, 1, 1]
            along[kind] = -1
            offset = offset + (index * loop.step).reshape(along)
            is_inside = is_inside & (offset < loop.extent)
        return np.broadcast_to(is_inside, shape)

    def thread_loops(self, dims: Iterable[str]) -> list[BoundLoop]:
        """Loops over some dimensions that threads share out, in the dimensions' order."""
        return [loop for dim in dims for loop in self.loops[dim] if loop.kind == "thread"]

    def thread_places(self, dims: Iterable[str]) -> Ints:
        """For every thread of a block, which of the group's thread iterations it runs."""
        place = np.zeros(self.kernel.block_threads, np.int64)
        for loop in self.thread_loops(dims):
            place = place * loop.trips + self.thread_index[loop.position]
        return place

    def trips(self, depth: int) -> int:
        """How often a thread comes to a place: trips of the time loops outside it."""
        return math.prod(loop.trips for loop in self.kernel.time_loops if loop.position < depth)


def _combined(loops: Sequence[BoundLoop], counts: Sequence[bool] | None = None) -> Ints:
    """Positions of all iterations of some loops, the outermost slowest."""
    total = np.zeros(1, np.int64)
    for number, loop in enumerate(loops):
        step = loop.step if counts is None or counts[number] else 0
        total = (total[:, None] + np.arange(loop.trips, dtype=np.int64) * step).ravel()
    return total


def indices(kernel: Kernel, kind: Literal["block", "thread"], number: Ints) -> dict[int, Ints]:
    """Index of some blocks, or threads of a block, in each loop they share; x is fastest."""
    sizes = kernel.grid if kind == "block" else kernel.block
    along = [number % sizes[0], number // sizes[0] % sizes[1], number // (sizes[0] * sizes[1])]
    found = {}
    for loop in reversed(kernel.loops):
        if loop.kind == kind:
            along[loop.axis], found[loop.position] = np.divmod(along[loop.axis], loop.trips)
    return found


def sums(parts: Iterable[Ints], steps: Iterable[int]) -> Ints:
    """Add up what several dimensions move, over all of their iterations together."""
    total = np.zeros(1, np.int64)
    for part, step in zip(parts, steps, strict=True):
        total = (total[:, None] + part * step).ravel()
    return total
