"""What a kernel computes: sums of products of two operands, in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from loopsched.codegen.element import FP32, Element
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.projections import span


@dataclass(frozen=True)
class Guard:
    """A position that must lie in ``[0, size)``, or the operand counts as zero there."""

    steps: tuple[tuple[str, int], ...]
    offset: int
    size: int

    def step(self, dim: str) -> int:
        """How far the position moves with a dimension."""
        return self._moves.get(dim, 0)

    @cached_property
    def _moves(self) -> dict[str, int]:
        return dict(self.steps)


@dataclass(frozen=True)
class Operand:
    """Where the points of an iteration space find a tensor.

    Parameters
    ----------
    name : str
    element : Element
        As it is stored.
    steps : tuple of (str, int), elements
        How far the address moves with each dimension.
    offset : int, elements
        Of the point whose indices are all zero.
    guards : tuple of Guard
    """

    name: str
    element: Element
    steps: tuple[tuple[str, int], ...]
    offset: int = 0
    guards: tuple[Guard, ...] = ()

    def step(self, dim: str) -> int:
        """How far the address moves with a dimension."""
        return self._moves.get(dim, 0)

    @cached_property
    def _moves(self) -> dict[str, int]:
        return dict(self.steps)

    @property
    def dims(self) -> frozenset[str]:
        """Dimensions that it depends on."""
        return frozenset(dim for dim, _ in self.steps)


@dataclass(frozen=True)
class Contraction:
    """``out[...] = sum of left[...] * right[...]`` over the points of an iteration space."""

    sizes: tuple[tuple[str, int], ...]
    out: Operand
    left: Operand
    right: Operand

    def size(self, dim: str) -> int:
        """Size of a dimension."""
        return self._extents[dim]

    @cached_property
    def _extents(self) -> dict[str, int]:
        return dict(self.sizes)

    @property
    def dims(self) -> tuple[str, ...]:
        """All dimensions."""
        return tuple(dim for dim, _ in self.sizes)

    @property
    def macs(self) -> int:
        """Points."""
        return math.prod(size for _, size in self.sizes)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What is read, then what is written."""
        return self.left, self.right, self.out

    def bytes_of(self, operand: Operand) -> int:
        """Bytes that an operand's points take, windows of them each on its own."""
        return math.prod(self.size(dim) for dim in operand.dims) * operand.element.n_bytes

    @cached_property
    def n_bytes(self) -> int:
        """Bytes that all operands' points take."""
        return sum(map(self.bytes_of, self.operands))

    def based(self) -> Contraction:
        """The same with operands that begin where their first points lie."""
        left, right, out = (replace(one, offset=0) for one in self.operands)
        return replace(self, left=left, right=right, out=out)

    def swapped(self) -> Contraction:
        """The same with the two operands in the other order."""
        return replace(self, left=self.right, right=self.left)


@dataclass(frozen=True, slots=True)
class Product:
    """``out[...] += product of operands`` over the points of an iteration space.

    Parameters
    ----------
    sizes : tuple of (str, int)
    out : Operand
    reads : tuple of Operand
    parallel : tuple of str
        Dimensions whose points write apart.
    covers_out : bool
        Whether each element of the output belongs to one point of its dimensions.
    value : int
        What a product of no operands is.
    """

    sizes: tuple[tuple[str, int], ...]
    out: Operand
    reads: tuple[Operand, ...]
    parallel: tuple[str, ...]
    covers_out: bool
    value: int = 1

    def size(self, dim: str) -> int:
        """Size of a dimension."""
        return dict(self.sizes)[dim]

    @property
    def dims(self) -> tuple[str, ...]:
        """All dimensions."""
        return tuple(dim for dim, _ in self.sizes)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What is read, then what is written."""
        return (*self.reads, self.out)


def stored_shape(problem: Problem, tensor: Tensor) -> tuple[int, ...]:
    """Say how many elements of a tensor are stored along each axis.

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d
    >>> problem = conv2d(c=3, k=8, h=9, w=7, r=3, s=3, padding=1)
    >>> stored_shape(problem, problem.tensor("input"))
    (1, 3, 9, 7)
    """
    size = problem.size
    return tuple(axis.size if axis.size is not None else span(axis, size) for axis in tensor.axes)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Steps of the axes of an array whose last axis is contiguous.

    Examples
    --------
    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def contractions(
    problem: Problem,
    elements: Mapping[str, Element] | None = None,
    axis_steps: Mapping[str, Sequence[int]] | None = None,
) -> list[Contraction]:
    """Take a problem apart into sums of products that write disjoint parts of the output.

    Parameters
    ----------
    problem : Problem
        With two tensors that are read.
    elements : mapping of tensor name to Element, optional
        How tensors are stored; fp32 by default.
    axis_steps : mapping of tensor name to sequence of int, elements, optional
        How far each axis steps in memory; by default the last one is contiguous.

    Returns
    -------
    list of Contraction
        One; or, where several dimensions share an axis of the output (the
        gradient of a convolution's input), one for each phase of the stride.

    Raises
    ------
    NotImplementedError
        If the problem has no such form.
    """
    read = [tensor for tensor in problem.tensors if tensor.name != problem.output]
    if len(read) != 2:
        raise NotImplementedError(f"{len(read)} tensors are read")
    spaces = [_Space(dict(problem.sizes), [problem.output_tensor, *read], problem)]
    for number, axis in enumerate(problem.output_tensor.axes):
        spaces = [part for space in spaces for part in space.apart(number, axis)]
    return [space.contraction(elements or {}, axis_steps or {}) for space in spaces]


def product(
    problem: Problem,
    elements: Mapping[str, Element] | None = None,
    axis_steps: Mapping[str, Sequence[int]] | None = None,
) -> Product:
    """Place a problem in memory as it is: any number of operands, any output.

    Parameters
    ----------
    problem, elements, axis_steps
        As for `contractions`.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> product(gemm(m=4, n=3, k=2)).reads[1].steps
    (('K', 3), ('N', 1))
    """
    read = [tensor for tensor in problem.tensors if tensor.name != problem.output]
    space = _Space(dict(problem.sizes), [problem.output_tensor, *read], problem)
    found = [
        space.operand(tensor, lines, (elements or {}).get(tensor.name, FP32), axis_steps or {})
        for tensor, lines in zip(space.tensors, space.lines, strict=True)
    ]
    shape = stored_shape(problem, problem.output_tensor)
    is_covered = all(
        len(line.steps) <= 1 and _covers(line, space.sizes, length)
        for line, length in zip(space.lines[0], shape, strict=True)
    )
    sizes = tuple(space.sizes.items())
    return Product(sizes, found[0], tuple(found[1:]), problem.parallel_dims, is_covered)


def elementwise(
    problem: Problem,
    out: Operand,
    out_steps: Sequence[int],
    read: tuple[Operand, Sequence[int]] | None,
) -> Product:
    """Write every element of the output: as another operand has it, or zero."""
    shape = stored_shape(problem, problem.output_tensor)
    dims = tuple(f"axis{number}" for number in range(len(shape))) or ("axis",)

    def stepping(one: Operand, steps: Sequence[int]) -> Operand:
        return replace(one, steps=tuple(zip(dims, steps, strict=False)), offset=0, guards=())

    reads = (stepping(*read),) if read else ()
    sizes = tuple(zip(dims, shape or (1,), strict=True))
    return Product(sizes, stepping(out, out_steps), reads, dims, True, 0)


@dataclass
class _Line:
    """A position on an axis: steps by dimension, and an offset."""

    steps: dict[str, int]
    offset: int
    step: int = 1  # of the stored axis

    def replaced(self, dim: str, steps: Mapping[str, int], offset: int) -> _Line:
        factor = self.steps.get(dim, 0)
        kept = {d: c for d, c in self.steps.items() if d != dim}
        for other, by in steps.items():
            kept[other] = kept.get(other, 0) + factor * by
        return _Line({d: c for d, c in kept.items() if c}, self.offset + factor * offset)


class _Space:
    """An iteration space whose output axes are being made plain."""

    def __init__(self, sizes: dict[str, int], tensors: Sequence[Tensor], problem: Problem) -> None:
        self.sizes, self.tensors, self.problem = sizes, tensors, problem
        self.lines = [
            [_Line(dict(a.terms), a.offset if a.size is not None else 0) for a in tensor.axes]
            for tensor in tensors
        ]
        # What replaced dimensions must lie in, and which tensors move over them.
        self.limits: list[tuple[_Line, int, tuple[int, ...]]] = []

    def copy(self) -> _Space:
        other = _Space(dict(self.sizes), self.tensors, self.problem)
        other.lines = [list(lines) for lines in self.lines]
        other.limits = list(self.limits)
        return other

    def replace(self, dim: str, steps: Mapping[str, int], offset: int) -> None:
        self.lines = [[one.replaced(dim, steps, offset) for one in lines] for lines in self.lines]
        self.limits = [
            (one.replaced(dim, steps, offset), size, holders) for one, size, holders in self.limits
        ]
        del self.sizes[dim]

    def apart(self, number: int, axis: Axis) -> Iterator[_Space]:
        """Give spaces in which one dimension alone moves along an axis of the output."""
        line = self.lines[0][number]
        length = axis.size if axis.size is not None else span(axis, self.problem.size)
        if len(line.steps) == 1 and _covers(line, self.sizes, length):
            yield self
            return
        if len(line.steps) != 2:
            raise NotImplementedError("an axis of the output with padding or three dimensions")
        (far, step), (near, by) = sorted(
            line.steps.items(), key=lambda one: -one[1] * self.sizes[one[0]]
        )
        for phase in range(min(step, length)):
            yield self._phase(number, (far, step), (near, by), (phase, length))

    def _phase(
        self, number: int, far: tuple[str, int], near: tuple[str, int], part: tuple[int, int]
    ) -> _Space:
        """Solve ``position = far + near`` for the far dimension, where it has a solution."""
        made = self.copy()
        (dim, step), (other, by), (phase, length) = far, near, part
        target = phase - self.lines[0][number].offset
        cycle = step // math.gcd(step, by)
        starts = [b for b in range(min(cycle, self.sizes[other])) if (target - by * b) % step == 0]
        first = starts[0] if starts else 0
        count = (self.sizes[other] - 1 - first) // cycle + 1 if starts else 1
        position, turn = f"{dim}+{other}", f"{other}/"
        made.sizes[position] = (length - 1 - phase) // step + 1
        made.sizes[turn] = count
        made.replace(other, {turn: cycle}, first)
        size = self.sizes[dim] if starts else 0
        shift = (target - by * first) // step
        steps = {position: 1, turn: -by * cycle // step}
        holders = tuple(n for n, one in enumerate(self.tensors) if n and dim in one.dims)
        made.limits.append((_Line(dict(steps), shift), size, holders))
        made.replace(dim, steps, shift)
        made.lines[0][number] = _Line({position: step}, phase)
        return made

    def contraction(
        self, elements: Mapping[str, Element], axis_steps: Mapping[str, Sequence[int]]
    ) -> Contraction:
        made = [
            self.operand(tensor, lines, elements.get(tensor.name, FP32), axis_steps)
            for tensor, lines in zip(self.tensors, self.lines, strict=True)
        ]
        for line, size, holders in self.limits:
            if _covers(line, self.sizes, size, inside=True):
                continue
            if not holders or any(not set(line.steps) <= made[n].dims for n in holders):
                raise NotImplementedError("no operand moves over all that the output's axis does")
            for place in holders:
                guards = (*made[place].guards, _guard(line, size))
                made[place] = replace(made[place], guards=guards)
        if any(_never(guard, self.sizes) for one in made for guard in one.guards):
            # No tap reaches it: zero by zero, once, whatever the operands have.
            sizes = {dim: n if dim in made[0].dims else 1 for dim, n in self.sizes.items()}
            nothing = (Guard((), -1, 1),)
            read = (replace(one, offset=0, guards=nothing) for one in made[1:])
            return Contraction(tuple(sizes.items()), made[0], *read)
        return Contraction(tuple(self.sizes.items()), *made)

    def operand(
        self,
        tensor: Tensor,
        lines: Sequence[_Line],
        element: Element,
        axis_steps: Mapping[str, Sequence[int]],
    ) -> Operand:
        shape = stored_shape(self.problem, tensor)
        strides = axis_steps.get(tensor.name) or row_major(shape)
        steps: dict[str, int] = {}
        offset, guards = 0, []
        for line, stride, axis in zip(lines, strides, tensor.axes, strict=True):
            offset += stride * line.offset
            for dim, step in line.steps.items():
                steps[dim] = steps.get(dim, 0) + step * stride
            if axis.size is not None and not _covers(line, self.sizes, axis.size, inside=True):
                guards.append(_guard(line, axis.size))
        return Operand(tensor.name, element, tuple(steps.items()), offset, tuple(guards))


def _guard(line: _Line, size: int) -> Guard:
    return Guard(tuple(line.steps.items()), line.offset, size)


def _ends(
    steps: Iterable[tuple[str, int]], offset: int, sizes: Mapping[str, int]
) -> tuple[int, int]:
    """Give the lowest and the highest of positions."""
    ends = [step * (sizes[dim] - 1) for dim, step in steps]
    return offset + sum(min(0, end) for end in ends), offset + sum(max(0, end) for end in ends)


def _never(guard: Guard, sizes: Mapping[str, int]) -> bool:
    """Whether a guard holds at no point, as its ends tell."""
    low, high = _ends(guard.steps, guard.offset, sizes)
    return high < 0 or low >= guard.size


def _covers(line: _Line, sizes: Mapping[str, int], size: int, *, inside: bool = False) -> bool:
    """Whether positions never leave what is stored; of an output, whether they are all of it."""
    low, high = _ends(line.steps.items(), line.offset, sizes)
    if inside:
        return low >= 0 and high < size
    return low == 0 and high == size - 1 and all(step == 1 for step in line.steps.values())
