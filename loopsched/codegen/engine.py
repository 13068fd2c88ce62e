"""The program of a contraction: blocks, packing, register tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from loopsched.codegen.contraction import Contraction, Guard, Operand
from loopsched.codegen.element import Element
from loopsched.codegen.plan import (
    FAR_BYTES,
    Plan,
    Sizes,
    Walk,
    chunks,
    cut,
    even,
    inner_sizes,
    length,
    merged_step,
)
from loopsched.codegen.writer import Number, Writer

UNROLL = 2
LINE_BYTES = 64
GIVEN_AHEAD = 64
"""Points of the sum by which a tile asks for vectors that lie outside L2 when they are given."""
KEPT_BYTES = 8192
"""Rows of a block that are no more are found in L1 again: asking for them only takes time."""
AHEAD_BYTES = 6144
"""How far ahead of what is copied lines are asked for, if runs lie apart."""

Place = tuple[str, int]
"""A pointer, and elements behind it."""


@dataclass(frozen=True, slots=True)
class Line:
    """Where the points of a block lie that is walked as one: by a step, or by a table."""

    step: int
    table: str | None = None

    def of(
        self, text: Writer, pointer: str, first: Number, n: int, element: Element
    ) -> list[Place]:
        """Places of the points from ``first`` on."""
        if self.table is None:
            base = text.at(pointer, text.mul(first, self.step), element)
            return [(base, place * self.step) for place in range(n)]
        offsets = [text.entry(self.table, text.add(first, place)) for place in range(n)]
        return [(text.at(pointer, offset, element), 0) for offset in offsets]


@dataclass(slots=True)
class Origin:
    """Where a block begins: the index of each dimension that is set."""

    index: dict[str, Number] = field(default_factory=dict)

    def of(self, text: Writer, operand: Operand | Guard) -> Number:
        """Address of an operand, or position of a guard, at the origin."""
        terms = [text.mul(at, operand.step(dim)) for dim, at in self.index.items()]
        return text.add(operand.offset, *terms)


class Engine:
    """Writes the functions of one contraction.

    Parameters
    ----------
    text : Writer
    task : Contraction
    plan : Plan
    name : str
        What the names of its functions begin with.
    only_packs : bool
        Whether they only pack the right operand, into the output, as plans
        find it to which it is given so.
    """

    def __init__(
        self, text: Writer, task: Contraction, plan: Plan, name: str, *, only_packs: bool = False
    ) -> None:
        if only_packs:
            plan = plan._replace(row_parts=1)
        self.text, self.task, self.plan, self.name = text, task, plan, name
        self.only_packs = only_packs
        self._right = ""  # where the packed block of the right operand is
        self.lanes = text.lanes
        self._tables: dict[tuple[int, ...], str] = {}
        self._tiles: dict[tuple[object, ...], str] = {}
        self.n_vectors = -(-plan.tile_cols // self.lanes)
        _, sum_block, sum_rest = chunks(task, plan.sums)
        self._sum_inner = inner_sizes(task, plan.sums, sum_block)
        self.max_sum = length(self._sum_inner)
        outer = math.prod(task.size(dim) for dim in plan.sums.outer)
        self.n_sum_blocks = outer * (chunks(task, plan.sums)[0] + bool(sum_rest))
        self.skipped: tuple[Guard, ...] = () if plan.packs_left else task.left.guards
        """Guards that tiles leave points out for."""
        self.row_chunks = self._variants(plan.rows)
        self.col_chunks = self._variants(plan.cols)

    def _variants(self, walk: Walk) -> list[int]:
        count, block, rest = chunks(self.task, walk)
        return ([block] if count else []) + ([rest] if rest else [])

    # Layout of packed blocks

    def right_pitch(self, chunk: int) -> int:
        """Elements between two rows of a packed block of the right operand, or a panel's width."""
        if self._is_panel(chunk):
            return self.n_vectors * self.lanes
        width = length(inner_sizes(self.task, self.plan.cols, chunk))
        vectors = -(-width // self.lanes)
        return (
            vectors + (vectors * self.lanes * self.text.element.n_bytes % 4096 == 0)
        ) * self.lanes

    def _is_panel(self, chunk: int) -> bool:
        """Whether columns lie as one in the right operand: then they are packed tile by tile."""
        dims = inner_sizes(self.task, self.plan.cols, chunk)
        return merged_step(self.task.right, dims) is not None and not any(
            guard.step(dim) for guard in self.task.right.guards for dim, _ in dims
        )

    def right_room(self) -> int:
        """Elements of a packed block of the right operand."""
        if not self.plan.packs_right:
            return 0
        rooms = []
        for chunk in self.col_chunks:
            width = length(inner_sizes(self.task, self.plan.cols, chunk))
            pitch = self.right_pitch(chunk)
            panels = -(-width // pitch) if self._is_panel(chunk) else 1
            rooms.append(panels * pitch * self.max_sum + self.lanes * max(2, pitch))
        return -(-max(rooms) // 1024) * 1024

    @property
    def is_left_panel(self) -> bool:
        """Whether the left operand is packed by tiles of rows: its rows are contiguous."""
        inner = [dim for dim, size in self._sum_inner if size > 1]
        if not inner or self.task.left.step(inner[-1]) == 1:
            return False
        return all(
            merged_step(self.task.left, inner_sizes(self.task, self.plan.rows, chunk)) is not None
            for chunk in self.row_chunks
        ) and not any(g.step(dim) for g in self.task.left.guards for dim in self.plan.rows.inner)

    @property
    def is_left_wide(self) -> bool:
        """Whether the left operand is packed with all rows of a block side by side."""
        rows = [dim for dim, size in inner_sizes(self.task, self.plan.rows, 2) if size > 1]
        sums = [dim for dim, size in self._sum_inner if size > 1]
        if self.is_left_panel or not rows:
            return False
        left = self.task.left
        return not sums or abs(left.step(rows[-1])) < abs(left.step(sums[-1]))

    def left_pitch(self) -> int:
        """Elements between packed rows of the left operand, or between points of its sum."""
        if self.is_left_wide:
            chunk = max(self.row_chunks)
            vectors = -(-length(inner_sizes(self.task, self.plan.rows, chunk)) // self.lanes)
            return (vectors + (vectors % 16 == 0)) * self.lanes
        pitch = -(-self.max_sum // self.lanes) * self.lanes
        return pitch + self.lanes

    def left_room(self) -> int:
        """Elements of a packed block of the left operand."""
        if not self.plan.packs_left:
            return 0
        rows = max(length(inner_sizes(self.task, self.plan.rows, one)) for one in self.row_chunks)
        size = rows * (self.max_sum if self.is_left_panel else self.left_pitch())
        if self.is_left_wide:
            size = self.max_sum * self.left_pitch()
        return -(-(size + 2 * self.lanes) // 1024) * 1024

    @property
    def work_room(self) -> int:
        """Elements that a thread needs besides its operands."""
        return self._left_start + self.left_room()

    @property
    def _left_start(self) -> int:
        return 0 if self.plan.is_right_given else self.right_room()

    @property
    def packed_room(self) -> int:
        """Elements of the right operand when all of it is packed, as it is given."""
        if not self.plan.is_right_given:
            return 0
        return self.n_jobs // self.plan.row_parts * self.n_sum_blocks * self.right_room()

    # Jobs

    @property
    def job_counts(self) -> list[tuple[str, int]]:
        """What a job's number stands for, slowest first."""
        plan, task = self.plan, self.task
        counts = [(f"rows:{plan.row_parts}", plan.row_parts)]
        counts += [(dim, task.size(dim)) for dim in plan.batch]
        counts += [(dim, task.size(dim)) for dim in plan.cols.outer]
        count, _, rest = chunks(task, plan.cols)
        return [*counts, ("cols", count + bool(rest))]

    @property
    def n_jobs(self) -> int:
        """Jobs that threads share."""
        return math.prod(count for _, count in self.job_counts)

    def write(self) -> None:
        """Write the function ``<name>(left, right, out, work, first, last)``: some of the jobs."""
        text, plan = self.text, self.plan
        for rows in () if self.only_packs else self.row_chunks:
            for cols in self.col_chunks:
                self._write_block(rows, cols)
        if self._packs_now:
            for cols in self.col_chunks:
                self._write_pack_right(cols)
        if plan.packs_left and not self.only_packs:
            for rows in self.row_chunks:
                self._write_pack_left(rows)
        pointers, limits = ("left", "right", "out", "work"), ("first", "last")
        with (
            text.function(self.name, pointers, limits, is_public=True),
            text.loop(text.argument("first"), text.argument("last")) as jobs,
        ):
            self._job(jobs.index)

    @property
    def _packs_now(self) -> bool:
        """Whether these functions pack the right operand, and do not find it packed."""
        return self.only_packs or (self.plan.packs_right and not self.plan.is_right_given)

    def _job(self, job: Number) -> None:
        text, plan = self.text, self.plan
        origin, rest = Origin(), job
        column = job
        if plan.is_right_given and plan.row_parts > 1:
            column = text.divided(job, self.n_jobs // plan.row_parts)[1]
        part: Number = 0
        block: Number = 0
        for number, (dim, count) in reversed(list(enumerate(self.job_counts))):
            if number == 0:
                part = rest if count > 1 else 0
                break
            rest, at = text.divided(rest, count)
            if dim == "cols":
                block = at
            else:
                origin.index[dim] = at
        if plan.cols.inner:
            origin.index[plan.cols.inner[0]] = text.mul(block, plan.cols.block)
        count, whole, left_over = chunks(self.task, plan.cols)
        if count and left_over:
            is_last = text.equal(block, count)
            with text.when(text.negated(is_last)):
                self._sums(origin, whole, (part, column))
            with text.when(is_last):
                self._sums(origin, left_over, (part, column))
        else:
            self._sums(origin, whole if count else left_over, (part, column))

    def _sums(self, origin: Origin, cols: int, job: tuple[Number, Number]) -> None:
        """Walk the blocks of the sum, for a part of the rows and a block of columns."""
        text, task, walk = self.text, self.task, self.plan.sums
        n_blocks = chunks(task, walk)[0] + bool(chunks(task, walk)[2])
        n_outer = math.prod(task.size(dim) for dim in walk.outer)
        with text.loop(0, n_outer * n_blocks) as blocks:
            inside = Origin(dict(origin.index))
            rest, block = text.divided(blocks.index, n_blocks)
            for dim in reversed(walk.outer):
                rest, inside.index[dim] = text.divided(rest, task.size(dim))
            count: Number = 1
            if walk.inner:
                start = text.mul(block, walk.block)
                inside.index[walk.inner[0]] = start
                size = task.size(walk.inner[0])
                count = text.least(text.add(text.mul(start, -1), size), walk.block)
                if size % walk.block == 0:
                    count = walk.block
            self._right = text.argument("work")
            if self.plan.is_right_given:
                packed = text.argument("out" if self.only_packs else "right")
                number = text.add(text.mul(job[1], self.n_sum_blocks), blocks.index)
                place = text.mul(number, self.right_room())
                self._right = text.at(packed, place, text.element)
            if self._packs_now:
                self._call_pack("right", cols, inside, count)
            if not self.only_packs:
                self._row_blocks(inside, cols, job[0], count, blocks.index)

    def _row_blocks(
        self, origin: Origin, cols: int, part: Number, count: Number, first: Number
    ) -> None:
        text, task, plan = self.text, self.task, self.plan
        n_whole, block, rest = chunks(task, plan.rows)
        n_blocks = n_whole + bool(rest)
        total = n_blocks * math.prod(task.size(dim) for dim in plan.rows.outer)
        each = -(-total // plan.row_parts)
        start: Number = text.mul(part, each)
        stop = text.least(text.add(start, each), total)
        with text.loop(start, stop) as blocks:
            inside = Origin(dict(origin.index))
            outer, number = text.divided(blocks.index, n_blocks)
            for dim in reversed(plan.rows.outer):
                outer, inside.index[dim] = text.divided(outer, task.size(dim))
            if not (n_whole and rest):
                self._row_block(inside, number, block if n_whole else rest, cols, count, first)
                return
            is_rest = text.equal(number, n_whole)
            with text.when(text.negated(is_rest)):
                self._row_block(inside, number, block, cols, count, first)
            with text.when(is_rest):
                self._row_block(inside, number, rest, cols, count, first)

    def _row_block(
        self, origin: Origin, number: Number, rows: int, cols: int, count: Number, first: Number
    ) -> None:
        text, plan, task = self.text, self.plan, self.task
        inside = Origin(dict(origin.index))
        if plan.rows.inner:
            inside.index[plan.rows.inner[0]] = text.mul(number, plan.rows.block)
        left = text.argument("work")
        if plan.packs_left:
            self._call_pack("left", rows, inside, count)
            left = text.at(left, self._left_start, text.element)
        else:
            left = text.at(text.argument("left"), inside.of(text, task.left), task.left.element)
        right = self._right
        if not plan.packs_right:
            right = text.at(text.argument("right"), inside.of(text, task.right), task.right.element)
        out = text.at(text.argument("out"), inside.of(text, task.out), task.out.element)
        positions = [inside.of(text, guard) for guard in self.skipped]
        text.call(
            f"{self.name}_block_{rows}_{cols}", (left, right, out), (count, first, *positions)
        )

    # A block: register tiles

    def _line(self, operand: Operand, dims: Sizes) -> Line:
        step = merged_step(operand, dims)
        if step is not None:
            return Line(step)
        offsets = [0]
        for dim, size in dims:
            offsets = [one + at * operand.step(dim) for one in offsets for at in range(size)]
        name = self._tables.setdefault(tuple(offsets), f"{self.name}_table{len(self._tables)}")
        return Line(0, self.text.table(name, offsets))

    def _write_block(self, row_chunk: int, col_chunk: int) -> None:
        """Write the walk over the register tiles of a block."""
        text, plan, task = self.text, self.plan, self.task
        row_dims = inner_sizes(task, plan.rows, row_chunk)
        col_dims = inner_sizes(task, plan.cols, col_chunk)
        tiles = _Tiles(self, row_dims, col_dims, col_chunk)
        n_rows, n_cols = length(row_dims), length(col_dims)
        row_parts = tiles.alike(_runs(even(n_rows, plan.tile_rows)))
        col_parts = _runs(cut(n_cols, min(plan.tile_cols, n_cols)))
        numbers = ["count", "first", *(f"p{number}" for number in range(len(self.skipped)))]
        names = {
            (live, cols): self._tile(tiles, live, cols, numbers)
            for live in dict.fromkeys(live for _, live in row_parts)
            for _, _, cols in col_parts
        }
        pointers = ("left", "right", "out")
        with text.function(f"{self.name}_block_{row_chunk}_{col_chunk}", pointers, numbers):
            given = [text.argument(one) for one in pointers]
            passed = [text.argument(one) for one in numbers]
            for col_part in col_parts:
                with text.loop(*col_part) as across:
                    for row_part, live in row_parts:
                        with text.loop(*row_part) as down:
                            text.call(
                                names[live, col_part[2]], given, [*passed, down.index, across.index]
                            )

    def _tile(self, tiles: _Tiles, live: _Live, cols: int, numbers: Sequence[str]) -> str:
        """Write the kernel of a register tile, unless another block has the same; name it."""
        key = *tiles.layout(live.rows, cols), live, cols
        if key not in self._tiles:
            name = f"{self.name}_tile{len(self._tiles)}_{live.rows}_{cols}"
            self._tiles[key] = tiles.write(name, live, cols, numbers)
        return self._tiles[key]

    # Packing

    def _call_pack(self, side: str, chunk: int, origin: Origin, count: Number) -> None:
        text = self.text
        operand = getattr(self.task, side)
        source = text.at(text.argument(side), origin.of(text, operand), operand.element)
        target = self._right
        if side == "left":
            target = text.at(text.argument("work"), self._left_start, text.element)
        positions = [origin.of(text, guard) for guard in operand.guards]
        text.call(f"{self.name}_pack_{side}_{chunk}", (source, target), (count, *positions))

    def _write_pack_right(self, chunk: int) -> None:
        plan, task = self.plan, self.task
        dims = inner_sizes(task, plan.cols, chunk)
        pitch = self.right_pitch(chunk)
        sums = self._sum_dims(pitch)
        if not self._is_panel(chunk):
            self._write_pack("right", chunk, [[*sums, *_spans(dims, 1)]])
            return
        step = merged_step(task.right, dims) or 0
        width, parts = length(dims), []
        if self.is_turned(chunk):
            self._write_turned(chunk, _runs(cut(width, pitch)), step)
            return
        panel, lane = _Flat("panel", step * pitch), _Flat("lane", step)
        whole, rest = divmod(width, pitch)
        if whole:
            tiles = _Span(panel, whole, pitch * self.max_sum)
            parts.append([*sums, tiles, _Span(lane, pitch, 1)])
        if rest:
            place = _Span(panel, 1, pitch * self.max_sum, whole)
            parts.append([place, *sums, _Span(lane, rest, 1)])
        self._write_pack("right", chunk, parts)

    def is_turned(self, chunk: int) -> bool:
        """Whether packing columns side by side transposes: the sum is contiguous in memory."""
        right = self.task.right
        dims = inner_sizes(self.task, self.plan.cols, chunk)
        return (
            self._is_panel(chunk)
            and not right.guards
            and self.lanes > 1
            and merged_step(right, dims) != 1
            and merged_step(right, self._sum_inner) == 1
        )

    def _write_turned(self, chunk: int, parts: list[tuple[int, int, int]], step: int) -> None:
        """Write a copy of squares that are transposed in registers."""
        text, pitch = self.text, self.right_pitch(chunk)
        element = self.task.right.element
        with text.function(f"{self.name}_pack_right_{chunk}", ("source", "target"), ("count",)):
            run = text.mul(text.argument("count"), length(self._sum_inner[1:]))
            for start, stop, width in parts:
                with text.loop(start, stop, width) as panels:
                    source = text.at(text.argument("source"), text.mul(panels.index, step), element)
                    target = text.mul(panels.index, self.max_sum)
                    target = text.at(text.argument("target"), target, text.element)
                    for square in _runs(cut(width, text.lanes)):
                        part = (square[2], pitch, step)
                        with text.loop(*square) as across:
                            here = text.at(source, text.mul(across.index, step), element)
                            there = text.at(target, across.index, text.element)
                            with text.loop(0, run, text.lanes) as along:
                                left = text.add(run, text.mul(along.index, -1))
                                mask = text.lanes_inside(0, 1, left)
                                self._square(here, there, along.index, part, mask)

    def _square(
        self, source: str, target: str, at: Number, sizes: tuple[int, int, int], mask: str
    ) -> None:
        """Transpose some points of the sum for some columns of a panel."""
        text, element, (width, pitch, step) = self.text, self.task.right.element, sizes
        source = text.at(source, at, element)
        target = text.at(target, text.mul(at, pitch), text.element)
        values = [
            text.load(text.at(source, one * step, element), element, mask) for one in range(width)
        ]
        values += [text.zero()] * (text.lanes - width)
        for place, value in enumerate(text.transposed(values)):
            text.store(text.at(target, place * pitch, text.element), value, text.element)

    def _sum_dims(self, pitch: int) -> list[_Span]:
        """The dimensions of a packed sum: its cut one has as many steps as is asked for."""
        found = _spans(self._sum_inner, pitch)
        if not found:  # nothing is summed
            return [_Span(_Flat("point", 1), 1, 1)]
        return [found[0]._replace(size=None), *found[1:]]

    def _write_pack_left(self, chunk: int) -> None:
        plan, task = self.plan, self.task
        dims = inner_sizes(task, plan.rows, chunk)
        if not self.is_left_panel:
            pitch = self.left_pitch()
            if self.is_left_wide:
                spans = [*self._sum_dims(pitch), *_spans(dims, 1)]
            else:
                spans = [*_spans(dims, pitch), *self._sum_dims(1)]
            self._write_pack("left", chunk, [spans])
            return
        step, parts = merged_step(task.left, dims) or 0, []
        for start, stop, high in _runs(even(length(dims), plan.tile_rows)):
            place = _Span(_Flat("start", step), 1, self.max_sum, start)
            panels = _Span(_Flat("panel", step * high), (stop - start) // high, high * self.max_sum)
            lane = _Span(_Flat("lane", step), high, 1)
            parts.append([place, panels, *self._sum_dims(high), lane])
        self._write_pack("left", chunk, parts)

    def _write_pack(self, side: str, chunk: int, parts: Sequence[Sequence[_Span]]) -> None:
        text = self.text
        operand: Operand = getattr(self.task, side)
        positions = [f"p{number}" for number in range(len(operand.guards))]
        with text.function(
            f"{self.name}_pack_{side}_{chunk}", ("source", "target"), ("count", *positions)
        ):
            at: list[Number] = [text.argument(one) for one in positions]
            for spans in parts:
                copy = _Copy(text, self.task, operand)
                copy.ahead = copy._ahead(spans)
                copy.walk(spans, (0, 0), at)


@dataclass(frozen=True, slots=True)
class _Flat:
    """A dimension that stands for several walked as one; guards do not see it."""

    name: str
    step: int


class _Span(NamedTuple):
    """A dimension of a copy: steps (None: as many as are asked for), and how far each writes."""

    dim: str | _Flat
    size: int | None
    jump: int
    first: int = 0


def _spans(dims: Sizes, jump: int) -> list[_Span]:
    """List the dimensions of a copy whose points follow each other in its target."""
    found: list[_Span] = []
    for dim, size in reversed(dims):
        found.insert(0, _Span(dim, size, jump))
        jump *= size
    return found


class _Run(NamedTuple):
    """The innermost dimension of a copy, and where it begins."""

    dim: str | _Flat
    offsets: tuple[Number, Number]
    positions: list[Number]
    truth: str | None


class _Copy:
    """Writes loops that copy a block of an operand."""

    def __init__(self, text: Writer, task: Contraction, operand: Operand) -> None:
        self.text, self.task, self.operand = text, task, operand
        self.ahead = 0
        """Elements from what is copied to what is asked for; 0: nothing is."""

    def _ahead(self, spans: Sequence[_Span]) -> int:
        """Say where runs lie that are copied some time after others, if far from these."""
        *outer, (last, size, _, _) = spans
        if self._step(last) != 1 or size is None or self.operand.guards:
            return 0
        run = size
        for dim, n, _, _ in reversed(outer):
            step = abs(self._step(dim))
            if n != 1 and step * self.operand.element.n_bytes >= FAR_BYTES and step != run:
                return max(1, AHEAD_BYTES // (run * self.operand.element.n_bytes)) * step
            run *= n or 1
        return 0

    def _step(self, dim: str | _Flat) -> int:
        return dim.step if isinstance(dim, _Flat) else self.operand.step(dim)

    def _moves(self, dim: str | _Flat) -> list[int]:
        return [0 if isinstance(dim, _Flat) else g.step(dim) for g in self.operand.guards]

    def walk(
        self, spans: Sequence[_Span], offsets: tuple[Number, Number], positions: list[Number]
    ) -> None:
        """Write one loop for each dimension, and vectors for the last one."""
        text, (source, target) = self.text, offsets
        (dim, size, jump, first), *rest = spans
        if not rest:
            self._run(dim, size, offsets, positions)
            return
        stop = text.argument("count") if size is None else first + size
        with text.loop(first, stop) as loop:
            inside = [
                text.add(at, text.mul(loop.index, move))
                for at, move in zip(positions, self._moves(dim), strict=True)
            ]
            places = (
                text.add(source, text.mul(loop.index, self._step(dim))),
                text.add(target, text.mul(loop.index, jump)),
            )
            self.walk(rest, places, inside)

    def _run(
        self,
        dim: str | _Flat,
        size: int | None,
        offsets: tuple[Number, Number],
        positions: list[Number],
    ) -> None:
        text, lanes = self.text, self.text.lanes
        truth = None
        for guard, at, move in zip(self.operand.guards, positions, self._moves(dim), strict=True):
            if not move:
                here = text.inside(at, guard.size)
                truth = here if truth is None else text.both(truth, here)
        run = _Run(dim, offsets, positions, truth)
        if size is None:  # the cut dimension of a sum
            count = text.argument("count")
            stop = text.mul(text.divided(count, lanes)[0], lanes)
            with text.loop(0, stop, lanes) as loop:
                self._vector(run, loop.index, lanes, is_sure=not any(self._moves(dim)))
            with text.when(text.less(stop, count)):
                mask = text.lanes_inside(0, 1, text.add(count, text.mul(stop, -1)))
                self._vector(run, stop, mask, is_sure=False)
            return
        kinds = [self._is_sure(dim, at, size) for at in range(0, size, lanes)]
        at = 0
        while at < size:
            is_sure, stop = kinds[at // lanes], at + lanes
            while stop + lanes <= size and kinds[stop // lanes] == is_sure:
                stop += lanes
            if stop - at > 8 * lanes:
                with text.loop(at, stop, lanes) as loop:
                    self._vector(run, loop.index, lanes, is_sure=is_sure)
            else:
                for start in range(at, stop, lanes):
                    self._vector(run, start, min(lanes, size - start), is_sure=is_sure)
            at = stop

    def _is_sure(self, dim: str | _Flat, start: int, size: int) -> bool:
        """Whether a vector of a run of some size can never lie in padding, wherever it begins."""
        n = min(self.text.lanes, size - start)
        for guard, move in zip(self.operand.guards, self._moves(dim), strict=True):
            if isinstance(dim, _Flat) or not move:
                continue
            later = move * (self.task.size(dim) - size)  # where the last block begins
            low, high = guard.offset + min(0, later), guard.offset + max(0, later)
            for other, step in guard.steps:
                if other != dim:
                    low += min(0, step * (self.task.size(other) - 1))
                    high += max(0, step * (self.task.size(other) - 1))
            ends = (start * move, (start + n - 1) * move)
            if not (low + min(ends) >= 0 and high + max(ends) < guard.size):
                return False
        return True

    def _vector(self, run: _Run, start: Number, live: int | str | None, *, is_sure: bool) -> None:
        """Copy a vector: some first lanes, or those of a mask."""
        text, operand, (dim, offsets, positions, truth) = self.text, self.operand, run
        step = self._step(dim)
        place = text.at(
            text.argument("source"), text.add(offsets[0], text.mul(start, step)), operand.element
        )
        if self.ahead:
            text.fetch(text.at(place, self.ahead, operand.element))
        if step == 2 and isinstance(live, int) and is_sure:
            value = self._apart(place, live, truth)
        else:
            mask = text.first_lanes(live) if isinstance(live, int) else live
            moves = [] if is_sure else zip(operand.guards, positions, self._moves(dim), strict=True)
            for guard, at, move in moves:
                if move:
                    here = text.add(at, text.mul(start, move))
                    mask = text.mask_and(mask, text.lanes_inside(here, move, guard.size))
            if truth is not None:
                mask = text.mask_if(truth, mask)
            value = text.load(place, operand.element, mask, step)
        target = text.at(text.argument("target"), text.add(offsets[1], start), text.element)
        text.store(target, value, text.element)

    def _apart(self, place: str, live: int, truth: str | None) -> str:
        """Read a vector whose elements lie two apart: as two, of which every second lane counts."""
        text, element = self.text, self.operand.element
        halves = []
        for first in (0, text.lanes):
            count = [at % 2 == 0 and at < 2 * live for at in range(first, first + text.lanes)]
            mask = text.some_lanes(count)
            if truth is not None:
                mask = text.mask_if(truth, mask)
            half = text.at(place, first, element)
            halves.append(text.load(half, element, mask) if any(count) else text.zero())
        return text.picked(halves[0], halves[1], 0, 2)


def _runs(parts: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Place parts of a length one behind the other: start, stop and step of each kind."""
    ends = [0, *accumulate(size * n for size, n in parts)]
    return [(*ends, size) for ends, (size, _) in zip(pairwise(ends), parts, strict=True)]


class _Level(NamedTuple):
    """A loop of a sum: steps (None: as many as are asked for), and how both operands move."""

    size: int | None
    left: int
    right: int
    dim: str = ""


class _At(NamedTuple):
    """Where a tile is in its operands: a place for each row, and one for the vectors."""

    lefts: list[Place]
    right: Place

    def behind(self, left: int, right: int) -> _At:
        """Move all places by known steps."""
        pointer, place = self.right
        return _At([(one, at + left) for one, at in self.lefts], (pointer, place + right))

    def meets(self, left: int, n_steps: int) -> bool:
        """Whether some row reads what another one does at another of so many steps."""
        places = set(self.lefts)
        moves = range(left, left * n_steps, left) if left else ()
        return any((one, at + move) in places for move in moves for one, at in places)


class _Live(NamedTuple):
    """A kind of row tile: its rows, and those that count at each step of an unrolled dimension."""

    rows: int
    steps: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = ()


class _Tiles:
    """Writes the kernels of a block: functions that compute one register tile."""

    def __init__(self, engine: Engine, rows: Sizes, cols: Sizes, col_chunk: int) -> None:
        self.engine, self.text = engine, engine.text
        task, plan = engine.task, engine.plan
        self.out_rows, self.out_cols = engine._line(task.out, rows), engine._line(task.out, cols)
        self.n_rows, self.n_cols = length(rows), length(cols)
        inner = {dim for dim, _ in rows}
        self.cut_guards = {}
        """Guards by the dimension of the sum whose loop they cut: their number in arguments."""
        self.row_guards = {}
        """Guards by the dimension of the sum that is unrolled for them: the dimension of rows."""
        for number, guard in enumerate(engine.skipped):
            (dim,) = (dim for dim, _ in guard.steps if dim in plan.sums.dims)
            row = [d for d, _ in guard.steps if d in inner]
            if row:
                self.row_guards[dim] = guard, row[0]
            else:
                self.cut_guards[dim] = guard, f"p{number}"
        self.pitch = engine.right_pitch(col_chunk)
        if plan.packs_left:
            by_sum = engine.is_left_panel or engine.is_left_wide
            self.left_rows = Line(1 if by_sum else engine.left_pitch())
            self.left_tile = engine.max_sum if engine.is_left_panel else self.left_rows.step
        else:
            self.left_rows, self.left_tile = engine._line(task.left, rows), 1
        if plan.packs_right:
            self.right_tile = engine.max_sum if engine._is_panel(col_chunk) else 1
            self.right_cols = Line(1)
        else:
            self.right_tile = 1
            self.right_cols = engine._line(task.right, cols)

    def alike(self, parts: list[tuple[int, int, int]]) -> list[tuple[tuple[int, int, int], _Live]]:
        """Cut runs of row tiles further, so that those of a run have the same rows that count."""
        found: list[tuple[tuple[int, int, int], _Live]] = []
        for start, stop, rows in parts:
            if not self.row_guards:
                found.append(((start, stop, rows), _Live(rows)))
                continue
            for at in range(start, stop, rows):
                live = _Live(rows, tuple((d, self._counting(d, at, rows)) for d in self.row_guards))
                if found and found[-1][1] == live:
                    found[-1] = ((found[-1][0][0], at + rows, rows), live)
                else:
                    found.append(((at, at + rows, rows), live))
        return found

    def _counting(self, dim: str, start: int, rows: int) -> tuple[tuple[int, ...], ...]:
        """List the rows of a tile that a guard lets count, at each step of a dimension."""
        guard, row = self.row_guards[dim]
        return tuple(
            tuple(
                place
                for place in range(rows)
                if 0
                <= guard.offset + (start + place) * guard.step(row) + at * guard.step(dim)
                < guard.size
            )
            for at in range(self.engine.task.size(dim))
        )

    def levels(self, rows: int) -> tuple[tuple[_Level, ...], int]:
        """Give the loops of the sum of a tile of so many rows, outermost first.

        And the steps of the outermost for each that is asked for.
        """
        engine, plan, task = self.engine, self.engine.plan, self.engine.task
        found: list[_Level] = []
        run = scale = 1
        pitch = rows if engine.is_left_panel else engine.left_pitch() if engine.is_left_wide else 1
        for number, (dim, size) in reversed(list(enumerate(engine._sum_inner))):
            left = run * pitch if plan.packs_left else task.left.step(dim)
            right = run * self.pitch if plan.packs_right else task.right.step(dim)
            found.append(_Level(None if number == 0 else size, left, right, dim))
            run *= size
        merged: list[_Level] = []
        guarded = {*self.cut_guards, *self.row_guards}
        for level in found:
            below, far, wide, dim = merged[0] if merged else _Level(None, 0, 0)
            is_apart = bool(guarded & {level.dim, dim})
            moves = level.left, level.right
            if below is None or is_apart or moves != (far * below, wide * below):
                merged.insert(0, level)
            elif level.size is None:
                scale = below
                merged[0] = _Level(None, far, wide)
            else:
                merged[0] = _Level(below * level.size, far, wide)
        return tuple(merged) or (_Level(1, 0, 0),), scale

    def layout(self, rows: int, cols: int) -> tuple[object, ...]:
        """Give all that kernels of such tiles take from their block."""
        lines = self.left_rows, self.right_cols, self.out_rows, self.out_cols
        steps = self.left_tile, self.right_tile, self.pitch, self.levels(rows)
        paced = self._next_rows(rows), self._unroll(rows, cols)
        return lines, steps, *self.cut_guards.items(), *self.row_guards, *paced

    def _unroll(self, rows: int, cols: int) -> int:
        """Say by how much sums are unrolled: only in the highest and widest tiles of a block."""
        (highest, _), *_ = even(self.n_rows, self.engine.plan.tile_rows)
        is_whole = rows == highest and cols >= min(self.engine.plan.tile_cols, self.n_cols)
        return UNROLL if is_whole else 1

    def write(self, name: str, live: _Live, cols: int, numbers: Sequence[str]) -> str:
        """Write the kernel of a tile; return its name."""
        text, rows = self.text, live.rows
        with text.function(name, ("left", "right", "out"), (*numbers, "row", "col")):
            row, col = text.argument("row"), text.argument("col")
            n = -(-cols // text.lanes)
            lefts = self._lefts(row, rows)
            right = self._right(col)
            outs = self.out_rows.of(text, text.argument("out"), row, rows, self._out)
            if self._is_direct(cols):
                outs = self._across(outs, col)
                self._fetch(outs, cols)
            elif self._is_turned:
                outs = self.out_cols.of(text, outs[0][0], col, cols, self._out)
                self._fetch(outs, rows)
            self.mask = text.first_lanes(cols - (n - 1) * text.lanes)
            self.live, self.shape = dict(live.steps), (rows, n)
            self.next_rows, self.unroll = self._next_rows(rows), self._unroll(rows, cols)
            zeros = [text.zero()] * (rows * n)
            levels, self.scale = self.levels(rows)
            totals = self._sum(levels, _At(lefts, right), zeros, range(rows))
            if self._is_direct(cols):
                self._finish(outs, totals, n)
            elif self._is_turned:
                self._turn(outs, totals, (rows, n))
            else:
                self._scatter(outs, totals, (rows, cols, n), col)
        return name

    @property
    def _out(self) -> Element:
        return self.engine.task.out.element

    def _fetch(self, outs: list[Place], cols: int) -> None:
        """Ask for the lines that a tile will write, while it sums."""
        a_line = LINE_BYTES // self._out.n_bytes
        for pointer, behind in outs:
            for place in (*range(0, cols - 1, a_line), cols - 1):
                self.text.fetch(self.text.at(pointer, behind + place, self._out), writes=True)

    def _is_direct(self, cols: int) -> bool:
        return self.out_cols.table is None and (self.out_cols.step == 1 or cols == 1)

    @property
    def _is_turned(self) -> bool:
        return self.out_rows.table is None and self.out_rows.step == 1

    def _across(self, outs: list[Place], col: Number) -> list[Place]:
        """Move places of rows to a column."""
        text = self.text
        offset = text.mul(col, self.out_cols.step)
        moved = {one: text.at(one, offset, self._out) for one in dict.fromkeys(p for p, _ in outs)}
        return [(moved[one], behind) for one, behind in outs]

    def _lefts(self, row: Number, rows: int) -> list[Place]:
        text, engine = self.text, self.engine
        left = text.argument("left")
        if not engine.plan.packs_left:
            return self.left_rows.of(text, left, row, rows, engine.task.left.element)
        base = text.at(left, text.mul(row, self.left_tile), text.element)
        return [(base, place * self.left_rows.step) for place in range(rows)]

    def _right(self, col: Number) -> Place:
        text, engine = self.text, self.engine
        right = text.argument("right")
        if engine.plan.packs_right:
            return text.at(right, text.mul(col, self.right_tile), text.element), 0
        return self.right_cols.of(text, right, col, 1, engine.task.right.element)[0]

    def _sum(
        self,
        levels: Sequence[_Level],
        at: _At,
        totals: list[str],
        rows: Sequence[int],
    ) -> list[str]:
        """Write the loops of the sum; the innermost is unrolled."""
        text = self.text
        if not levels:
            return self._point(at, totals, rows)
        (size, left, wide, dim), *inner = levels
        if dim in self.live:
            for place, counting in enumerate(self.live[dim]):
                text.read_again()  # neighbouring steps read the same elements
                kept = [one for one in rows if one in counting]
                totals = self._sum(inner, at.behind(place * left, place * wide), totals, kept)
            return totals
        start: Number = 0
        stop: Number = size if size is not None else text.mul(text.argument("count"), self.scale)
        if dim in self.cut_guards:
            start, stop = self._limits(*self.cut_guards[dim], stop)
        unroll = 1 if inner or dim in self.cut_guards else self.unroll
        unroll = unroll if size is None else min(unroll, size)
        n_whole, _ = text.divided(stop, unroll)
        whole: Number = stop if unroll == 1 else text.mul(n_whole, unroll)
        with text.loop(start, whole, unroll, totals) as loop:
            values = loop.values
            here = self._moved(at, loop.index, left, wide)
            is_shared = here.meets(left, unroll)
            if left == 1 and self.next_rows:
                self._fetch_rows(here.lefts, loop.index)
            if inner and inner[0].dim in self.cut_guards:
                self._fetch_below(here.lefts, *inner)
            for place in range(unroll):
                if place and is_shared:
                    text.read_again()
                values = self._sum(inner, here.behind(place * left, place * wide), values, rows)
            loop.carry(values)
        totals = loop.values
        if unroll > 1 and whole != stop:
            with text.loop(whole, stop, 1, totals) as loop:
                here = self._moved(at, loop.index, left, wide)
                loop.carry(self._point(here, loop.values, rows))
            totals = loop.values
        return totals

    def _limits(self, guard: Guard, position: str, size: Number) -> tuple[Number, Number]:
        """Give the steps of a loop between which a guard holds."""
        text = self.text
        (dim,) = (dim for dim, _ in guard.steps if dim in self.engine.plan.sums.dims)
        step = guard.step(dim)
        at = text.mul(text.argument(position), -1)
        ends: list[Number] = []
        for end in (at, text.add(at, guard.size)):
            reached = text.choice(text.less(end, 0), 0, end)
            ends.append(text.least(text.divided(text.add(reached, step - 1), step)[0], size))
        return ends[0], ends[1]

    def _next_rows(self, rows: int) -> int:
        """Say how far the rows of the next tile lie from those of one, if tiles ask for them."""
        engine = self.engine
        if engine.plan.packs_left or engine.task.left.guards or self.left_rows.table:
            return 0
        if self.n_rows * engine.max_sum * engine.task.left.element.n_bytes <= KEPT_BYTES:
            return 0
        return rows * self.left_rows.step

    def _fetch_rows(self, rows: Sequence[Place], index: Number) -> None:
        """Ask for what the next tile reads, which are streams that start anew: each line once."""
        text, element = self.text, self.engine.task.left.element
        turns = LINE_BYTES // element.n_bytes // self.unroll
        turn = text.divided(text.divided(index, self.unroll)[0], turns)[1]
        step, (pointer, behind) = self.left_rows.step, rows[0]
        pointer = text.at(pointer, text.mul(turn, step), element)
        for row in range(0, len(rows), turns):
            text.fetch(text.at(pointer, behind + self.next_rows + row * step, element))

    def _fetch_below(self, rows: Sequence[Place], down: _Level, *across: _Level) -> None:
        """Ask for what the window of a tile meets first where the next row of blocks begins."""
        task, walk = self.engine.task, self.engine.plan.rows
        steps = dict(self.cut_guards[down.dim][0].steps)
        if not walk.outer or walk.outer[-1] not in steps or self.left_rows.table:
            return
        if chunks(task, walk)[0] > 1:
            return
        move, tap, taps = steps[walk.outer[-1]], steps[down.dim], task.size(down.dim)
        last = (len(rows) - 1) * self.left_rows.step
        last += sum((one.size - 1) * one.left for one in across if one.dim and one.size)
        pointer, behind = rows[0]
        behind += task.left.step(walk.outer[-1])
        element = task.left.element
        for row in range(taps):
            if row * tap + move > (taps - 1) * tap:
                for place in (*range(0, last, LINE_BYTES // element.n_bytes), last):
                    at = behind + row * down.left + place
                    self.text.fetch(self.text.at(pointer, at, element))

    def _elements(self) -> tuple[Element, Element]:
        plan, task, own = self.engine.plan, self.engine.task, self.text.element
        return (
            own if plan.packs_left else task.left.element,
            own if plan.packs_right else task.right.element,
        )

    def _moved(self, at: _At, index: Number, left: int, wide: int) -> _At:
        """Move places by the steps of a loop."""
        text = self.text
        of_left, of_right = self._elements()
        far = text.mul(index, left)
        moved = {one: text.at(one, far, of_left) for one in dict.fromkeys(p for p, _ in at.lefts)}
        pointer, behind = at.right
        return _At(
            [(moved[one], place) for one, place in at.lefts],
            (text.at(pointer, text.mul(index, wide), of_right), behind),
        )

    def _point(self, at: _At, totals: list[str], rows: Sequence[int]) -> list[str]:
        """Write the products of one point of the sum."""
        text, n = self.text, self.shape[1]
        of_left, of_right = self._elements()
        vectors = []
        for number in range(n if rows else 0):
            place = text.at(at.right[0], at.right[1] + number * text.lanes, of_right)
            if self.engine.plan.is_right_given:
                text.fetch(text.at(place, GIVEN_AHEAD * self.pitch, of_right))
            is_masked = number == n - 1 and not self.engine.plan.packs_right
            vectors.append(text.load(place, of_right, self.mask if is_masked else None))
        made = list(totals)
        for row in rows:
            one = text.spread(text.load_one(text.at(*at.lefts[row], of_left), of_left))
            for number in range(n):
                made[row * n + number] = text.fma(one, vectors[number], made[row * n + number])
        return made

    def _finish(self, outs: list[Place], totals: list[str], n: int) -> None:
        """Add to what earlier blocks of the sum have left, and write."""
        text = self.text
        is_later = self._is_later()
        for number in range(n):
            mask = self.mask if number == n - 1 else None
            later = text.mask_if(is_later, mask) if is_later else None
            for row, out in enumerate(outs):
                place = text.at(out[0], out[1] + number * text.lanes, self._out)
                value = totals[row * n + number]
                if later:
                    value = text.plus(value, text.load(place, self._out, later))
                text.store(place, value, self._out, mask)

    def _is_later(self) -> str | None:
        if self.engine.n_sum_blocks == 1:
            return None
        return self.text.less(0, self.text.argument("first"))

    def _turn(self, places: list[Place], totals: list[str], shape: tuple[int, int]) -> None:
        """Write a tile whose rows lie side by side, vector by vector of rows."""
        text, (rows, n) = self.text, shape
        lanes, is_later = text.lanes, self._is_later()
        for first in range(0, rows, lanes):
            mask = text.first_lanes(rows - first)
            later = text.mask_if(is_later, mask) if is_later else None
            for number in range(n):
                group = [totals[row * n + number] for row in range(first, min(rows, first + lanes))]
                group += [text.zero()] * (lanes - len(group))
                lined = places[number * lanes : (number + 1) * lanes]
                for value, (pointer, behind) in zip(text.transposed(group), lined, strict=False):
                    place = text.at(pointer, behind + first, self._out)
                    if later:
                        value = text.plus(value, text.load(place, self._out, later))
                    text.store(place, value, self._out, mask)

    def _scatter(
        self, outs: list[Place], totals: list[str], shape: tuple[int, int, int], col: Number
    ) -> None:
        """Write a tile whose columns do not lie side by side, by way of a buffer."""
        text, (rows, cols, n) = self.text, shape
        room = text.room(rows * n * text.lanes)
        for number, value in enumerate(totals):
            text.store(text.at(room, number * text.lanes, text.element), value, text.element)
        is_later = self._is_later()
        with text.loop(0, cols) as across:
            for row in range(rows):
                ((pointer, behind),) = self.out_cols.of(
                    text, text.at(*outs[row], self._out), text.add(col, across.index), 1, self._out
                )
                place = text.at(pointer, behind, self._out)
                start = text.add(across.index, row * n * text.lanes)
                value = text.load_one(text.at(room, start, text.element), text.element)
                if is_later:
                    value = text.plus_if(is_later, value, place, self._out)
                text.store_one(place, value, self._out)
