"""The accesses of a schedule, as numbers of elements or lines, chunk by chunk.

Elements, or lines of memory, are numbered without gaps between tensors, the
inputs in the problem's order and the output last.  One point reads the inputs
in that order, then reads and writes the output in place: one access.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loopsched.base.arguments import show
from loopsched.base.arrays import Ids
from loopsched.base.errors import InputError
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import is_clipped
from loopsched.problems.problem import Problem
from loopsched.simulator._walk import Walk, fill, reset
from loopsched.simulator.layout import Layout, Placed, placed

# Accesses at a time: they stay in a core's own cache, and Ctrl-C is served between them.
CHUNK = 1 << 14
# Elements or lines are numbered in 32 bits.
MAX_IDS = 2**31 - 2**16


@dataclass(frozen=True)
class Memory:
    """What the accesses of a problem fall on: elements, or lines.

    Parameters
    ----------
    problem : Problem
    tensors : tuple of Placed
        Inputs in the problem's order, then the output.
    line_bytes : int or None
        None: elements.

    Examples
    --------
    >>> from loopsched import gemm
    >>> memory = Memory.of(gemm(m=4, n=4, k=4), None, 64)
    >>> memory.bounds, memory.unit_bytes
    ((0, 1, 2, 3), (64, 64, 64))
    """

    problem: Problem
    tensors: tuple[Placed, ...]
    line_bytes: int | None

    @classmethod
    def of(
        cls, problem: Problem, layouts: Mapping[str, Placed] | None, line_bytes: int | None
    ) -> Memory:
        """Number what a problem touches; layouts matter to lines only.

        Raises
        ------
        InputError
            If elements do not fit lines, or there are too many.
        """
        order = [t for t in problem.tensors if t.name != problem.output] + [problem.output_tensor]
        if layouts is None or line_bytes is None:
            found = tuple(placed(problem, tensor, Layout()) for tensor in order)
        else:
            found = tuple(layouts[tensor.name] for tensor in order)
        memory = cls(problem, found, line_bytes)
        if line_bytes is not None:
            _check_lines(memory, line_bytes)
        if memory.bounds[-1] > MAX_IDS:
            what = "elements" if line_bytes is None else "lines"
            raise InputError(
                f"'{problem.name}' has {memory.bounds[-1]:,} {what}; at most {MAX_IDS:,} can be "
                "simulated; larger lines (line_bytes), or tiles (granularity 'tile'), need fewer"
            )
        return memory

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tensors in the order of their numbers."""
        return tuple(each.tensor.name for each in self.tensors)

    @property
    def unit_bytes(self) -> tuple[int, ...]:
        """What is moved at once of each tensor: an element, or a line."""
        return tuple(self.line_bytes or each.tensor.element_bytes for each in self.tensors)

    @property
    def line_bits(self) -> int:
        """Binary digits of an address inside a line; 0 for elements."""
        return 0 if self.line_bytes is None else self.line_bytes.bit_length() - 1

    @cached_property
    def addresses(self) -> tuple[int, ...]:
        """Byte address of each tensor's storage, aligned, one after the other."""
        found, free = [], 0
        for each in self.tensors:
            align = max(each.layout.align_bytes, self.line_bytes or 1)
            start = -(-free // align) * align + each.layout.offset_bytes
            found.append(start)
            free = start + each.size_elems * each.tensor.element_bytes
        return tuple(found)

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """First number of each tensor, and the number after the last."""
        found = [0]
        for each, address in zip(self.tensors, self.addresses, strict=True):
            many = each.size_elems
            if self.line_bytes is not None:
                end = address + many * each.tensor.element_bytes
                many = -(-end // self.line_bytes) - address // self.line_bytes
            found.append(found[-1] + many)
        return tuple(found)

    @cached_property
    def origins(self) -> tuple[int, ...]:
        """Where the first point of the space touches each tensor.

        In elements counted from the first number; or in bytes, so that a
        shift by `line_bits` gives the line's number.
        """
        found = []
        for each, first, address in zip(self.tensors, self.bounds, self.addresses, strict=False):
            if self.line_bytes is None:
                found.append(first + each.origin)
            else:
                inside = address % self.line_bytes
                start = each.origin * each.tensor.element_bytes
                found.append(first * self.line_bytes + inside + start)
        return tuple(found)

    def move(self, dim: str) -> tuple[int, ...]:
        """How far a step along a dimension goes in each tensor, as `origins` counts."""
        return tuple(
            each.coefficient(dim) * (1 if self.line_bytes is None else each.tensor.element_bytes)
            for each in self.tensors
        )

    @cached_property
    def clips(self) -> tuple[tuple[int, int, int, dict[str, int]], ...]:
        """Axes that run into padding: tensor, size, first position, coefficients."""
        size = self.problem.size
        found = []
        for t, each in enumerate(self.tensors):
            for axis in each.tensor.axes:
                if axis.size is not None and is_clipped(axis, size):
                    found.append((t, axis.size, axis.offset, dict(axis.terms)))
        return tuple(found)


def _check_lines(memory: Memory, line_bytes: int) -> None:
    faults = []
    for each in memory.tensors:
        name, size = each.tensor.name, each.tensor.element_bytes
        if line_bytes % size:
            faults.append(
                f"line_bytes is {show(line_bytes)}; a multiple of the {size} bytes of an element "
                f"of '{name}' is needed"
            )
        elif each.layout.offset_bytes % size:
            faults.append(
                f"layout of '{name}': offset_bytes is {each.layout.offset_bytes}; "
                f"a multiple of its element size, {size}, is needed"
            )
    InputError.refuse("lines", faults)


def walk_of(
    memory: Memory, loops: list[tuple[str, int, int]], lengths: Mapping[str, int] | None = None
) -> tuple[tuple[str, ...], Walk]:
    """Prepare loops for the walk, which begins with the first point of the space.

    Parameters
    ----------
    memory : Memory
    loops : list of (dim, extent, step)
        Outermost first; those of one iteration are left out, and neighbours
        along one dimension are joined where that changes no order.
    lengths : mapping of str to int, optional
        What the outermost loops cover, where it is less than their extents;
        addresses and positions then count from where an item begins.

    Returns
    -------
    dims : tuple of str
        Dimension of each loop.
    walk : Walk
    """
    joined: list[tuple[str, int, int]] = []
    for dim, extent, step in loops:
        if extent <= step:
            continue
        if joined and joined[-1][0] == dim and joined[-1][2] % step == 0:
            joined[-1] = (dim, joined[-1][1], step)
        else:
            joined.append((dim, extent, step))
    if not joined:  # one point: a loop of one iteration
        joined.append((memory.problem.dims[0], 1, 1))
    outer: dict[str, int] = {}
    table = []
    for at, (dim, extent, step) in enumerate(joined):
        whole = extent if lengths is None else min(extent, lengths.get(dim, extent))
        table.append((step, outer.get(dim, -1), whole))
        outer[dim] = at
    moves = {dim: memory.move(dim) for dim in outer}
    delta = [[step * far for far in moves[dim]] for dim, _, step in joined]
    shift = [[step * terms.get(dim, 0) for *_, terms in memory.clips] for dim, _, step in joined]
    n_loops, n_tensors, n_clips = len(joined), len(memory.tensors), len(memory.clips)
    clip = [(t, size) for t, size, _, _ in memory.clips]
    walk = Walk(
        np.array(table, np.int64).reshape(n_loops, 3),
        np.array(delta, np.int64).reshape(n_loops, n_tensors),
        np.array(shift, np.int64).reshape(n_loops, n_clips),
        np.array(clip, np.int64).reshape(n_clips, 2),
        memory.line_bits,
        now=np.zeros(n_loops, np.int64),
        end=np.zeros(n_loops, np.int64),
        address=np.zeros((n_loops + 1, n_tensors), np.int64),
        place=np.zeros((n_loops + 1, n_clips), np.int64),
    )
    if lengths is None:
        walk.address[0] = memory.origins
        walk.place[0] = [first for _, _, first, _ in memory.clips]
    reset(walk, 0)
    return tuple(dim for dim, _, _ in joined), walk


def loops_of(schedule: Schedule) -> list[tuple[str, int, int]]:
    """List dimension, extent and step of each loop."""
    pairs = zip(schedule.loops, schedule.steps, strict=True)
    return [(loop.dim, loop.extent, step) for loop, step in pairs]


class Walker:
    """Walks the loops of a schedule in sequence.

    Parameters
    ----------
    memory : Memory
    schedule : Schedule
        Spatial loops are taken as sequential.

    Attributes
    ----------
    accesses : array
        Accesses of each tensor so far; padding is none.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=1, n=2, k=2)
    >>> walker = Walker(Memory.of(problem, None, None), parse_schedule("N:2 K:2", problem))
    >>> [chunk.tolist() for chunk in walker.chunks()]
    [[0, 2, 6, 1, 4, 6, 0, 3, 7, 1, 5, 7]]
    """

    def __init__(self, memory: Memory, schedule: Schedule) -> None:
        self.memory, self.schedule = memory, schedule
        self.accesses = np.zeros(len(memory.tensors), dtype=np.int64)

    def chunks(self, size: int = CHUNK) -> Iterator[Ids]:
        """Generate the accesses in order; each chunk is overwritten by the next."""
        _, walk = walk_of(self.memory, loops_of(self.schedule))
        state = np.zeros(1, dtype=np.int64)
        out = np.empty(max(size, len(self.memory.tensors)), dtype=np.int32)
        while not state[0]:
            yield out[: fill(walk, state, self.accesses, out)]
