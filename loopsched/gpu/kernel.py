"""Kernels: a schedule whose loops are bound to blocks and threads, and where data are read.

A kernel is written as a schedule in the usual notation: loops marked ``@block_x``,
``@block_y``, ``@block_z`` make the grid, ``@thread_x`` and so on the block; every thread
runs the others.  docs/kernels.md says what is counted from it and how.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, Unpack

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import InputError, gathered
from loopsched.base.keywords import refuse_unknown
from loopsched.gpu.reads import Read, read_from
from loopsched.gpu.views import DigitLayout
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.problem import Problem, Tensor
from loopsched.problems.projections import span
from loopsched.simulator.layout import Layout, placed

BLOCK_UNITS = ("block_x", "block_y", "block_z")
THREAD_UNITS = ("thread_x", "thread_y", "thread_z")
UNITS = BLOCK_UNITS + THREAD_UNITS

Guard = Literal["thread", "load"]
Padding = Literal["skip", "zero"]
AnyLayout = Layout | DigitLayout

# CUDA C++ Programming Guide, technical specifications: the same on all of its GPUs.
MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_THREADS = (1024, 1024, 64)

# Nvcc gives short kernels without a register tile about this many; see `Kernel.registers`.
USUAL_REGISTERS = 32


@dataclass(frozen=True, slots=True)
class BoundLoop:
    """One loop of a kernel, with what runs it.

    Parameters
    ----------
    dim : str
    kind : {'block', 'thread', 'time'}
    axis : int
        Of the grid or the block: 0, 1, 2 for x, y, z; -1 for ``time``.
    extent, step, trips, position : int
        As in `Schedule`; ``position`` counts from the outermost loop.
    """

    dim: str
    kind: Literal["block", "thread", "time"]
    axis: int
    extent: int
    step: int
    trips: int
    position: int


class How(TypedDict, total=False):
    """How a kernel is written, as keyword arguments; see `Kernel`."""

    guard: Guard
    padding: Padding
    registers: int | None
    is_unrolled: bool
    double_buffered: bool
    multiplies: bool
    shared_bytes: int | None


@dataclass(frozen=True, slots=True)
class Kernel:
    """A schedule mapped to blocks and threads, and where its tensors lie.

    Parameters
    ----------
    name : str
    problem : Problem
    schedule : Schedule
        Spatial loops carry ``block_x`` to ``block_z`` or ``thread_x`` to
        ``thread_z``.  Several loops may share an axis: the outermost is then
        the slowest part of its index.  A time loop outside a thread loop of
        its dimension gives each thread outputs that lie blockDim apart, one
        inside it adjacent outputs.
    reads : tuple of (str, Read)
        Where the kernel reads each input from; by default, from global memory.
    layouts : tuple of (str, Layout or DigitLayout)
        Those not named are stored in the problem's order.
    guard : {'thread', 'load'}
        ``thread``: a thread outside the output does nothing.  ``load``: every
        load and store is tested and threads outside compute with zeros.
    padding : {'skip', 'zero'}
        What a point that reads padding from global memory does: nothing, or multiply by
        zero without a load.
    registers : int or None
        Of a thread; None: estimated, see `registers_estimate`.
    is_unrolled : bool
        Whether the compiler unrolled the loops that threads run, so that their
        indices cost no instructions.
    double_buffered : bool
        Whether tiles in shared memory are filled while others are used.
    multiplies : bool
        False for kernels that only move data.
    shared_bytes : int or None, bytes
        Of a block; None: of the tiles that the reads name.

    Raises
    ------
    InputError
        With every fault found.

    See Also
    --------
    profile, estimate_kernel, preset

    Examples
    --------
    >>> from loopsched import gemm
    >>> kernel = Kernel.of(
    ...     gemm(m=1024, n=1024, k=1024),
    ...     "M:1024@block_y N:1024@block_x K:1024 M:32@thread_y N:32@thread_x K:32",
    ...     reads={"A": "shared@K", "B": "shared@K"},
    ...     guard="load",
    ... )
    >>> kernel.grid, kernel.block, kernel.n_blocks, kernel.tile_bytes
    ((32, 32, 1), (32, 32, 1), 1024, 8192)
    """

    name: str
    problem: Problem
    schedule: Schedule
    reads: tuple[tuple[str, Read], ...] = ()
    layouts: tuple[tuple[str, AnyLayout], ...] = ()
    guard: Guard = "thread"
    padding: Padding = "skip"
    registers: int | None = None
    is_unrolled: bool = False
    double_buffered: bool = False
    multiplies: bool = True
    shared_bytes: int | None = None
    loops: tuple[BoundLoop, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        units = [loop.unit for loop in self.schedule.loops if loop.unit not in (None, *UNITS)]
        faults = [f"no unit '{unit}'; {near(unit, UNITS)}" for unit in dict.fromkeys(units)]
        InputError.refuse(f"kernel '{self.name}'", faults)
        self.schedule.check(self.problem)
        self.schedule.check_even("a kernel")
        object.__setattr__(self, "loops", tuple(_bound(self.schedule)))
        InputError.refuse(f"kernel '{self.name}'", _faults(self))

    @classmethod
    def of(
        cls,
        problem: Problem,
        schedule: str | Schedule,
        *,
        reads: Mapping[str, str | Read] | None = None,
        layouts: Mapping[str, str | AnyLayout] | None = None,
        name: str | None = None,
        **how: Unpack[How],
    ) -> Kernel:
        """Build a kernel from texts; see `loopsched.gpu.reads.read_from` for reads.

        Further keywords are attributes of the kernel, from ``guard`` on.

        Raises
        ------
        InputError
            With every fault found.
        """
        refuse_unknown(how, [*How.__annotations__], "Kernel.of")
        nest = parse_schedule(schedule, problem) if isinstance(schedule, str) else schedule
        faults: list[str] = []
        places = dict[str, Read]()
        for tensor, one in (reads or {}).items():
            with gathered(faults, f"read of '{tensor}': "):
                places[tensor] = one if isinstance(one, Read) else read_from(one, nest)
        InputError.refuse(f"kernel for '{problem.name}'", faults)
        laid = {
            tensor: Layout.parse(one) if isinstance(one, str) else one
            for tensor, one in (layouts or {}).items()
        }
        return cls(
            name or problem.name, problem, nest, tuple(places.items()), tuple(laid.items()), **how
        )

    def renamed(self, name: str) -> Kernel:
        """Return the same kernel under another name."""
        return replace(self, name=name)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along x, y and z."""
        return self._shape("block")

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block along x, y and z."""
        return self._shape("thread")

    @property
    def n_blocks(self) -> int:
        """Blocks of the grid."""
        return math.prod(self.grid)

    @property
    def block_threads(self) -> int:
        """Threads of a block."""
        return math.prod(self.block)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Tensors that are read."""
        return tuple(one for one in self.problem.tensors if one.name != self.problem.output)

    @property
    def time_loops(self) -> tuple[BoundLoop, ...]:
        """Loops that every thread runs, outermost first."""
        return tuple(loop for loop in self.loops if loop.kind == "time")

    def innermost(self, tensor: Tensor) -> BoundLoop | None:
        """The innermost time loop that moves along a tensor."""
        moving = [loop for loop in self.time_loops if tensor.is_indexed_by(loop.dim)]
        return moving[-1] if moving else None

    @property
    def accumulators(self) -> int:
        """Outputs that a thread keeps at a time: its loops inside the outermost sum."""
        start = self.sum_position
        written = self.problem.output_tensor
        return math.prod(
            loop.trips
            for loop in self.time_loops
            if loop.position >= start and written.is_indexed_by(loop.dim)
        )

    @property
    def sum_position(self) -> int:
        """Position of the outermost time loop that sums; else past the last loop."""
        sums = set(self.problem.reduction_dims)
        at = [loop.position for loop in self.time_loops if loop.dim in sums]
        return min(at, default=len(self.loops))

    @property
    def registers_estimate(self) -> int:
        """Registers of a thread: given, or 31 and one for each output that it keeps.

        Of the measured kernels of one output a thread, all have 31 or 32.
        """
        if self.registers is not None:
            return self.registers
        return min(255, USUAL_REGISTERS - 1 + self.accumulators)

    @property
    def tile_bytes(self) -> int:
        """Shared memory of a block: the tiles, twice where double buffered."""
        if self.shared_bytes is not None:
            return self.shared_bytes
        total = 0
        for tensor in self.inputs:
            read = self.read(tensor.name)
            if read.space == "shared":
                shape, strides = self.tile(tensor)
                total += tensor.element_bytes * shape[0] * strides[0] if shape else 0
        return total * (2 if self.double_buffered else 1)

    def read(self, tensor: str) -> Read:
        """Where computing reads a tensor from."""
        return dict(self.reads).get(tensor, Read())

    def layout(self, tensor: str) -> AnyLayout:
        """How a tensor lies in global memory."""
        return dict(self.layouts).get(tensor, Layout())

    def tile(self, tensor: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape and strides, in elements, of a tensor's tile in shared memory."""
        read = self.read(tensor.name)
        shape = tuple(
            1 + sum(c * (self.span(dim, read.position) - 1) for dim, c in axis.terms) // divisor
            for axis, divisor in zip(tensor.axes, self._divisors(tensor), strict=True)
        )
        strides = [1] * len(shape)
        for at in range(len(shape) - 2, -1, -1):
            inner = shape[at + 1]
            is_row = at == len(shape) - 2
            strides[at] = strides[at + 1] * (max(inner, read.pitch or 0) if is_row else inner)
        return shape, tuple(strides)

    def span(self, dim: str, position: int) -> int:
        """Positions of a dimension from first to last that a block covers.

        Its threads, and the time loops from ``position`` inward, at one
        iteration of the others.
        """
        inside = [
            loop
            for loop in self.loops
            if loop.dim == dim
            and (loop.kind == "thread" or (loop.kind == "time" and loop.position >= position))
        ]
        return 1 + min(
            sum((loop.trips - 1) * loop.step for loop in inside),
            max((loop.extent for loop in inside), default=1) - 1,
        )

    def region_elems(self, tensor: Tensor, position: int) -> int:
        """Elements from first to last that a block covers from a position inward."""
        spans = {dim: self.span(dim, position) for dim in tensor.dims}
        return math.prod(span(axis, spans) for axis in tensor.axes)

    def _divisors(self, tensor: Tensor) -> tuple[int, ...]:
        layout = self.layout(tensor.name)
        if isinstance(layout, DigitLayout):
            return (1,) * len(tensor.axes)
        return tuple(span.divisor for span in placed(self.problem, tensor, layout).spans)

    def _shape(self, kind: str) -> tuple[int, int, int]:
        sizes = [1, 1, 1]
        for loop in self.loops:
            if loop.kind == kind:
                sizes[loop.axis] *= loop.trips
        return sizes[0], sizes[1], sizes[2]


def _bound(schedule: Schedule) -> Iterator[BoundLoop]:
    rows = zip(schedule.loops, schedule.steps, schedule.trips, strict=True)
    for position, (loop, step, trips) in enumerate(rows):
        unit = loop.unit
        kind: Literal["block", "thread", "time"] = "time"
        axis = -1
        if unit is not None:
            kind = "block" if unit in BLOCK_UNITS else "thread"
            axis = "xyz".index(unit[-1])
        yield BoundLoop(loop.dim, kind, axis, loop.extent, step, trips, position)


def _faults(kernel: Kernel) -> Iterator[str]:
    names = [tensor.name for tensor in kernel.inputs]
    for what, given in (("read", kernel.reads), ("layout", kernel.layouts)):
        known = names if what == "read" else [one.name for one in kernel.problem.tensors]
        for tensor in [tensor for tensor, _ in given if tensor not in known]:
            yield f"{what} of '{tensor}': no such tensor is read; {near(tensor, known)}"
    yield from _choices(kernel)
    written = kernel.problem.output_tensor
    for axis in written.axes:
        if axis.is_compound:
            yield (
                f"output '{written.name}': {' and '.join(axis.dims)} share an axis; "
                "a kernel's threads must write distinct elements"
            )
    sums = set(kernel.problem.reduction_dims)
    for loop in kernel.loops:
        if loop.kind == "thread" and loop.dim in sums:
            yield f"loop {loop.dim}:{loop.extent} is a reduction; threads cannot run it in parallel"
    last = max((loop.position for loop in kernel.loops if loop.kind == "block"), default=0)
    for loop in kernel.time_loops:
        if loop.position < last:
            yield f"loop {loop.dim}:{loop.extent} lies outside the grid; launch several kernels"
    for what, shape, most in (
        ("grid", kernel.grid, MOST_BLOCKS),
        ("block", kernel.block, MOST_THREADS),
    ):
        for letter, many, limit in zip("xyz", shape, most, strict=True):
            if many > limit:
                yield f"{what} has {show(many)} along {letter}; CUDA allows {limit}"
    if kernel.guard == "load":
        outer = dict(kernel.problem.sizes)
        for loop in kernel.loops:
            if loop.extent % loop.step and loop.extent != outer[loop.dim]:
                yield (
                    f"loop {loop.dim}:{loop.extent} is not a multiple of its step {loop.step}, "
                    "which guard 'load' needs: threads outside would repeat work"
                )
    for one in kernel.problem.tensors:
        layout = kernel.layout(one.name)
        try:
            if isinstance(layout, DigitLayout):
                layout.check(kernel.problem, one)
            else:
                placed(kernel.problem, one, layout)
        except InputError as error:
            yield from error.problems


def _choices(kernel: Kernel) -> Iterator[str]:
    for what, value, allowed in (
        ("guard", kernel.guard, ("thread", "load")),
        ("padding", kernel.padding, ("skip", "zero")),
    ):
        if value not in allowed:
            yield f"{what} is {show(value)}; {near(value, allowed)}"
    for what, number in (("registers", kernel.registers), ("shared_bytes", kernel.shared_bytes)):
        if number is not None and not is_count(number, 0):
            yield f"{what} is {show(number)}; a whole number is needed"
    for tensor, read in kernel.reads:
        for what, place in (("its tile is filled", read.at), ("it is held", read.held)):
            if place is not None and not 0 <= place <= len(kernel.loops):
                yield f"read of '{tensor}': {what} at {place}; loops are 0 to {len(kernel.loops)}"
        if read.space == "shared" and read.held is not None and read.held < read.position:
            yield f"read of '{tensor}': held from outside of where its tile is filled"
        if read.vector > 1:
            yield from _vector_faults(kernel, tensor, read)


def _vector_faults(kernel: Kernel, name: str, read: Read) -> Iterator[str]:
    """Complain where elements that follow each other in the loop do not in memory."""
    tensor = next((one for one in kernel.inputs if one.name == name), None)
    if tensor is None:
        return
    where = f"read of '{name}': vector of {read.vector}"
    loop = kernel.innermost(tensor)
    if loop is None or loop.step != 1 or loop.trips % read.vector:
        yield f"{where}: the innermost loop along it must go on one by one, in such multiples"
        return
    layout = kernel.layout(name)
    if isinstance(layout, DigitLayout) and read.space != "shared":
        yield f"{where}: its elements are not consecutive in memory"
        return
    at = next(at for at, axis in enumerate(tensor.axes) if loop.dim in axis.dims)
    strides = (
        kernel.tile(tensor)[1]
        if read.space == "shared" or isinstance(layout, DigitLayout)
        else placed(kernel.problem, tensor, layout).strides
    )
    if strides[at] != 1 or tensor.axes[at].is_compound:
        yield f"{where}: {loop.dim} does not run over consecutive elements in memory"
    elif any(stride % read.vector for other, stride in enumerate(strides) if other != at):
        yield f"{where}: rows do not begin at multiples of it; a pitch can mend that"
