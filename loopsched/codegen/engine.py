"""The program of a contraction: jobs, blocks, packing, register tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from loopsched.codegen.contraction import Contraction, Operand
from loopsched.codegen.copying import Copy, Flat, Span, spans_of
from loopsched.codegen.dot_tile import tiles_of
from loopsched.codegen.element import Element
from loopsched.codegen.layout import Layout, Origin
from loopsched.codegen.plan import (
    Plan,
    chunks,
    cut,
    goes_across,
    inner_sizes,
    length,
    merged_step,
    runs,
    turns_right,
)
from loopsched.codegen.register_tile import Live, Tiles
from loopsched.codegen.window import Window
from loopsched.codegen.writer import Number, Writer

_Part = tuple[int, int, int]
_SCATTER = 0
"""Among the kernels of tiles by their width: what takes sums that lie apart to their places."""


class Engine(Layout):
    """Writes the functions of one contraction.

    Parameters
    ----------
    text, task, plan, name
        As `Layout` takes them.
    only_packs : bool
        Whether they only pack the right operand, into the output, as plans
        find it to which it is given so.
    """

    def __init__(
        self, text: Writer, task: Contraction, plan: Plan, name: str, *, only_packs: bool = False
    ) -> None:
        super().__init__(text, task, plan._replace(row_parts=1) if only_packs else plan, name)
        self.only_packs = only_packs
        self._right = ""  # where the packed block of the right operand is
        self._next: tuple[str, ...] = ()  # what the next one is packed from, if tiles ask for it

    def write(self) -> None:
        """Write the function ``<name>(left, right, out, work, first, last)``: some of the jobs."""
        text, plan = self.text, self.plan
        tiles, written = tiles_of(self), dict[Live, dict[int, str]]()
        for rows in () if self.only_packs else self.row_chunks:
            for cols in self.col_chunks:
                self._write_block(rows, cols, tiles, written)
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
            if self.asks_for_next:
                self._next = (self._next_source(inside, blocks.index, n_blocks),)
            if not self.only_packs:
                self._row_blocks(inside, cols, job[0], count, blocks.index)

    def _next_source(self, origin: Origin, block: Number, n_blocks: int) -> str:
        """Say where the next block of the sum begins; after the last, the next columns' first."""
        text, right, (sums, cols) = self.text, self.task.right, (self.plan.sums, self.plan.cols)
        along, across = (
            right.step(walk.inner[0]) * walk.block if walk.inner else 0 for walk in (sums, cols)
        )
        is_more = text.less(block, n_blocks - 1)
        moved = text.choice(is_more, along, across - along * (n_blocks - 1))
        here = text.at(text.argument("right"), origin.of(text, right), right.element)
        return text.at(here, moved, right.element)

    def _row_blocks(
        self, origin: Origin, cols: int, part: Number, count: Number, first: Number
    ) -> None:
        text, task, plan = self.text, self.task, self.plan
        n_whole, block, rest = chunks(task, plan.rows)
        n_blocks, (total, each) = n_whole + bool(rest), self.row_blocks
        start: Number = text.mul(part, each)
        stop = text.least(text.add(start, each), total)
        following = self._next
        with text.loop(start, stop) as blocks:
            if following:  # each block asks for a part of each column
                done = text.mul(text.add(blocks.index, text.mul(start, -1)), self.next_run)
                done = text.least(done, max(0, self.max_sum - self.next_run))
                self._next = (text.at(following[0], done, task.right.element),)
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
            left = text.at(left, self.left_start, text.element)
        else:
            left = text.at(text.argument("left"), inside.of(text, task.left), task.left.element)
        right = self._right
        if not plan.packs_right:
            right = text.at(text.argument("right"), inside.of(text, task.right), task.right.element)
        out = text.at(text.argument("out"), inside.of(text, task.out), task.out.element)
        positions = [inside.of(text, guard) for guard in self.skipped]
        given = left, right, out, *self._next
        text.call(f"{self.name}_block_{rows}_{cols}", given, (count, first, *positions))

    # A block: register tiles

    def _write_block(
        self, row_chunk: int, col_chunk: int, tiles: Tiles, written: dict[Live, dict[int, str]]
    ) -> None:
        """Write the walk over the register tiles of a block, and those not written before."""
        text, plan, task = self.text, self.plan, self.task
        n_rows = length(inner_sizes(task, plan.rows, row_chunk))
        n_cols = length(inner_sizes(task, plan.cols, col_chunk))
        row_parts = tiles.alike(runs(self.heights(n_rows)))
        col_parts = runs(cut(n_cols, min(plan.tile_cols, n_cols)))
        numbers = ["count", "first", *(f"p{number}" for number in range(len(self.skipped)))]
        name, pointers = f"{self.name}_block_{row_chunk}_{col_chunk}", self.pointers
        is_apart = any(tiles.is_apart(cols) for *_, cols in col_parts)
        for _, live in row_parts:
            names = written.setdefault(live, {})
            own = f"{self.name}_tile{list(written).index(live)}_{live.rows}"
            if is_apart and _SCATTER not in names:
                names[_SCATTER] = tiles.write_scatter(f"{own}_out", live.rows)
            for wide in dict.fromkeys(tiles.width(cols) for *_, cols in col_parts):
                if wide not in names:
                    names[wide] = tiles.write(f"{own}_{wide}", live, wide, numbers)
        with text.function(name, pointers, numbers):
            left, right, out, *following = (text.argument(one) for one in pointers)
            count, first, *others = (text.argument(one) for one in numbers)
            room = text.room(tiles.room) if is_apart else out
            step = merged_step(task.right, self.cols) or 0
            for (row, live), (col, cols) in self._walk(row_parts, col_parts):
                left_at, right_at, sums = left, right, room if tiles.is_apart(cols) else out
                if plan.packs_left:
                    left_at = text.at(left, text.mul(row, tiles.left_tile), text.element)
                if plan.packs_right:
                    right_at = text.at(right, text.mul(col, tiles.right_tile), text.element)
                beside = [
                    text.at(one, text.mul(col, step), task.right.element) for one in following
                ]
                passed = [text.mul(count, tiles.scale), first, *others, row, col]
                names, given = written[live], (left_at, right_at, sums, *beside)
                text.call(names[tiles.width(cols)], given, passed)
                if sums != out:
                    text.call(names[_SCATTER], (room, out), [first, row, col, cols])

    def _walk(
        self, row_parts: Sequence[tuple[_Part, Live]], col_parts: Sequence[_Part]
    ) -> Iterator[tuple[tuple[Number, Live], tuple[Number, int]]]:
        """Walk the tiles of a block: where each begins, and what its rows and columns are."""
        downs, acrosses = row_parts, [(part, part[2]) for part in col_parts]
        is_across = goes_across(self.task, self.plan)
        slow: Sequence[tuple[_Part, Any]] = downs if is_across else acrosses
        fast: Sequence[tuple[_Part, Any]] = acrosses if is_across else downs
        for part, one in slow:
            with self.text.loop(*part) as outer:
                for other, two in fast:
                    with self.text.loop(*other) as inner:
                        pair = (outer.index, one), (inner.index, two)
                        yield pair if is_across else pair[::-1]

    # Packing

    def _call_pack(self, side: str, chunk: int, origin: Origin, count: Number) -> None:
        text = self.text
        operand = getattr(self.task, side)
        source = text.at(text.argument(side), origin.of(text, operand), operand.element)
        target = self._right
        if side == "left":
            target = text.at(text.argument("work"), self.left_start, text.element)
        positions = [origin.of(text, guard) for guard in operand.guards]
        text.call(f"{self.name}_pack_{side}_{chunk}", (source, target), (count, *positions))

    def _write_pack_right(self, chunk: int) -> None:
        plan, task = self.plan, self.task
        dims = inner_sizes(task, plan.cols, chunk)
        pitch = self.right_pitch
        sums = self._sum_dims(pitch)
        if not self.is_panel:
            self._write_pack("right", chunk, [[*sums, *spans_of(dims, 1)]])
            return
        step = merged_step(task.right, self.cols) or 0
        width, parts = length(dims), []
        if self.is_turned:
            self._write_turned(chunk, runs(cut(width, pitch)), step)
            return
        panel, lane = Flat("panel", step * pitch), Flat("lane", step)
        whole, rest = divmod(width, pitch)
        if whole:
            tiles = Span(panel, whole, pitch * self.max_sum)
            parts.append([*sums, tiles, Span(lane, pitch, 1)])
        if rest:
            place = Span(panel, 1, pitch * self.max_sum, whole)
            parts.append([place, *sums, Span(lane, rest, 1)])
        self._write_pack("right", chunk, parts)

    @property
    def is_turned(self) -> bool:
        """Whether packing columns side by side transposes: the sum is contiguous in memory."""
        return self.lanes > 1 and turns_right(self.task, self.plan)

    def _write_turned(self, chunk: int, parts: list[tuple[int, int, int]], step: int) -> None:
        """Write a copy of squares that are transposed in registers.

        The last squares of a sum overlap those before; sums shorter than a square are copied
        one by one.
        """
        text, pitch = self.text, self.right_pitch
        element = self.task.right.element
        with text.function(f"{self.name}_pack_right_{chunk}", ("source", "target"), ("count",)):
            run = text.mul(text.argument("count"), length(self.sum_inner[1:]))
            last, is_short = text.add(run, -text.lanes), text.less(run, text.lanes)
            is_long = text.negated(is_short)
            for start, stop, width in parts:
                with text.loop(start, stop, width) as panels:
                    source = text.at(text.argument("source"), text.mul(panels.index, step), element)
                    target = text.mul(panels.index, self.max_sum)
                    target = text.at(text.argument("target"), target, text.element)
                    with text.when(is_short):
                        self._copy_short(source, target, run, (width, pitch, step))
                    with text.when(is_long):
                        for square in runs(cut(width, text.lanes)):
                            with text.loop(*square) as across:
                                here = text.at(source, text.mul(across.index, step), element)
                                there = text.at(target, across.index, text.element)
                                with text.loop(0, run, text.lanes) as along:
                                    at = text.least(along.index, last)
                                    sizes = square[2], pitch, step
                                    self._square(here, there, at, sizes, element)

    def _copy_short(
        self, source: str, target: str, run: Number, sizes: tuple[int, int, int]
    ) -> None:
        """Copy the points of a sum for the columns of a panel one by one."""
        text, element, (width, pitch, step) = self.text, self.task.right.element, sizes
        with text.loop(0, width) as across:
            here = text.at(source, text.mul(across.index, step), element)
            there = text.at(target, across.index, text.element)
            with text.loop(0, run) as along:
                value = text.load_one(text.at(here, along.index, element), element)
                place = text.at(there, text.mul(along.index, pitch), text.element)
                text.store_one(place, value, text.element)

    def _square(
        self,
        source: str,
        target: str,
        at: Number,
        sizes: tuple[int, int, int],
        element: Element,
    ) -> None:
        """Transpose some points of the sum for some columns of a panel, or of rows for some."""
        text, (width, pitch, step) = self.text, sizes
        source = text.at(source, at, element)
        target = text.at(target, text.mul(at, pitch), text.element)
        values = [text.load(text.at(source, one * step, element), element) for one in range(width)]
        values += [text.zero()] * (text.lanes - width)
        for place, value in enumerate(text.transposed(values)):
            text.store(text.at(target, place * pitch, text.element), value, text.element)

    def _sum_dims(self, pitch: int) -> list[Span]:
        """The dimensions of a packed sum: its cut one has as many steps as is asked for."""
        found = spans_of(self.sum_inner, pitch)
        if not found:  # nothing is summed
            return [Span(Flat("point", 1), 1, 1)]
        return [found[0]._replace(size=None), *found[1:]]

    def _write_pack_left(self, chunk: int) -> None:
        plan, task = self.plan, self.task
        dims = inner_sizes(task, plan.rows, chunk)
        if not self.is_left_panel:
            pitch = self.left_pitch()
            if self._is_left_turned(length(dims)):
                self._write_turned_left(chunk, length(dims), pitch)
                return
            if self.is_left_wide:
                spans = [*self._sum_dims(pitch), *spans_of(dims, 1)]
            else:
                spans = [*spans_of(dims, pitch), *self._sum_dims(1)]
            self._write_pack("left", chunk, [spans])
            return
        step, parts = merged_step(task.left, dims) or 0, []
        for start, stop, high in runs(self.heights(length(dims))):
            place = Span(Flat("start", step), 1, self.max_sum, start)
            panels = Span(Flat("panel", step * high), (stop - start) // high, high * self.max_sum)
            lane = Span(Flat("lane", step), high, 1)
            parts.append([place, panels, *self._sum_dims(high), lane])
        self._write_pack("left", chunk, parts)

    def _is_left_turned(self, n_rows: int) -> bool:
        """Whether packing rows for lanes that hold points of the sum transposes squares of both."""
        left = self.task.left
        _, *sums = chunks(self.task, self.plan.sums)
        least = min(filter(None, sums)) * length(self.sum_inner[1:])
        return (
            self.plan.sums_in_lanes
            and not left.guards
            and min(n_rows, least) >= self.lanes
            and merged_step(left, self.rows) == 1
            and merged_step(left, self.sum_inner) is not None
        )

    def _write_turned_left(self, chunk: int, n_rows: int, pitch: int) -> None:
        """Write a copy of squares that are transposed in registers; the last overlap others."""
        text, left, lanes = self.text, self.task.left, self.lanes
        step = merged_step(left, self.sum_inner) or 0
        with text.function(f"{self.name}_pack_left_{chunk}", ("source", "target"), ("count",)):
            run = text.mul(text.argument("count"), length(self.sum_inner[1:]))
            with text.loop(0, run, lanes) as along:
                at = text.least(along.index, text.add(run, -lanes))
                source = text.at(text.argument("source"), text.mul(at, step), left.element)
                target = text.at(text.argument("target"), at, text.element)
                with text.loop(0, n_rows, lanes) as across:
                    row = text.least(across.index, n_rows - lanes)
                    self._square(source, target, row, (lanes, pitch, step), left.element)

    def _write_pack(self, side: str, chunk: int, parts: Sequence[Sequence[Span]]) -> None:
        text = self.text
        operand: Operand = getattr(self.task, side)
        positions = [f"p{number}" for number in range(len(operand.guards))]
        with text.function(
            f"{self.name}_pack_{side}_{chunk}", ("source", "target"), ("count", *positions)
        ):
            at: list[Number] = [text.argument(one) for one in positions]
            for spans in parts:
                Copy(text, self.task, operand).write(spans, at)


def form(plan: Plan) -> type[Engine | Window]:
    """Say what writes a plan's program."""
    return Window if plan.slides else Engine
