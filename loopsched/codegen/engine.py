"""The program of a contraction: blocks, packing, register tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from loopsched.codegen.contraction import Contraction, Guard, Operand
from loopsched.codegen.plan import Plan, Sizes, Walk, chunks, inner_sizes, length, merged_step
from loopsched.codegen.writer import Number, Writer

UNROLL = 4


@dataclass(frozen=True, slots=True)
class Line:
    """Where the points of a block lie that is walked as one: by a step, or by a table."""

    step: int
    table: str | None = None

    def at(self, text: Writer, first: Number, place: int) -> Number:
        """Offset of a point, in elements."""
        if self.table is None:
            return text.add(text.mul(first, self.step), place * self.step)
        return text.entry(self.table, text.add(first, place))


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
    """

    def __init__(self, text: Writer, task: Contraction, plan: Plan, name: str) -> None:
        self.text, self.task, self.plan, self.name = text, task, plan, name
        self.lanes = text.lanes
        self._tables = 0
        self._written: set[str] = set()
        self.n_vectors = -(-plan.tile_cols // self.lanes)
        _, sum_block, sum_rest = chunks(task, plan.sums)
        self._sum_inner = inner_sizes(task, plan.sums, sum_block)
        self.max_sum = length(self._sum_inner)
        outer = math.prod(task.size(dim) for dim in plan.sums.outer)
        self.n_sum_blocks = outer * (chunks(task, plan.sums)[0] + bool(sum_rest))
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
        return (vectors + (vectors * self.lanes * self.text.element.n_bytes % 4096 == 0)) * self.lanes

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
            rooms.append(panels * pitch * self.max_sum + 2 * self.lanes)
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

    def left_pitch(self) -> int:
        """Elements between packed rows of the left operand, or the height of a panel."""
        if self.is_left_panel:
            return self.plan.tile_rows
        pitch = -(-self.max_sum // self.lanes) * self.lanes
        return pitch + self.lanes

    def left_room(self) -> int:
        """Elements of a packed block of the left operand."""
        if not self.plan.packs_left:
            return 0
        rows = max(length(inner_sizes(self.task, self.plan.rows, one)) for one in self.row_chunks)
        tiles = -(-rows // self.plan.tile_rows) * self.plan.tile_rows
        size = tiles * (self.max_sum if self.is_left_panel else self.left_pitch())
        return -(-(size + 2 * self.lanes) // 1024) * 1024

    @property
    def work_room(self) -> int:
        """Elements that a thread needs besides its operands."""
        return self.right_room() + self.left_room()

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
        for rows in self.row_chunks:
            for cols in self.col_chunks:
                self._write_block(rows, cols)
        if plan.packs_right:
            for cols in self.col_chunks:
                self._write_pack_right(cols)
        if plan.packs_left:
            for rows in self.row_chunks:
                self._write_pack_left(rows)
        with text.function(
            self.name, ("left", "right", "out", "work"), ("first", "last"), is_public=True
        ):
            with text.loop(text.argument("first"), text.argument("last")) as jobs:
                self._job(jobs.index)

    def _job(self, job: Number) -> None:
        text, plan = self.text, self.plan
        origin, rest = Origin(), job
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
                self._sums(origin, whole, part)
            with text.when(is_last):
                self._sums(origin, left_over, part)
        else:
            self._sums(origin, whole if count else left_over, part)

    def _sums(self, origin: Origin, cols: int, part: Number) -> None:
        """Walk the blocks of the sum."""
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
            if self.plan.packs_right:
                self._call_pack("right", cols, inside, count)
            self._row_blocks(inside, cols, part, count, blocks.index)

    def _row_blocks(
        self, origin: Origin, cols: int, part: Number, count: Number, first: Number
    ) -> None:
        text, task, plan = self.text, self.task, self.plan
        n_whole, block, rest = chunks(task, plan.rows)
        total = n_whole + bool(rest)
        each = -(-total // plan.row_parts)
        with _nested(text, [(dim, task.size(dim)) for dim in plan.rows.outer], origin) as inside:
            if plan.row_parts == 1:
                start: Number = 0
                stop: Number = total
            else:
                start = text.mul(part, each)
                stop = text.least(text.add(start, each), total)
            whole_stop = text.least(stop, n_whole)
            if n_whole:
                with text.loop(start, whole_stop) as blocks:
                    self._row_block(inside, blocks.index, block, cols, count, first)
            if rest:
                if plan.row_parts == 1:
                    self._row_block(inside, n_whole, rest, cols, count, first)
                else:
                    with text.when(text.equal(stop, total)), text.when(text.less(start, total)):
                        self._row_block(inside, n_whole, rest, cols, count, first)

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
            left = text.at(left, self.right_room(), text.element)
        else:
            left = text.at(text.argument("left"), inside.of(text, task.left), task.left.element)
        right = text.argument("work")
        if not plan.packs_right:
            right = text.at(text.argument("right"), inside.of(text, task.right), task.right.element)
        out = text.at(text.argument("out"), inside.of(text, task.out), task.out.element)
        text.call(f"{self.name}_block_{rows}_{cols}", (left, right, out), (count, first))

    # A block: register tiles

    def _line(self, operand: Operand, dims: Sizes) -> Line:
        step = merged_step(operand, dims)
        if step is not None:
            return Line(step)
        offsets = [0]
        for dim, size in dims:
            offsets = [one + at * operand.step(dim) for one in offsets for at in range(size)]
        self._tables += 1
        return Line(0, self.text.table(f"{self.name}_table{self._tables}", offsets))

    def _write_block(self, row_chunk: int, col_chunk: int) -> None:
        """Write the walk over the register tiles of a block."""
        text, plan, task = self.text, self.plan, self.task
        row_dims = inner_sizes(task, plan.rows, row_chunk)
        col_dims = inner_sizes(task, plan.cols, col_chunk)
        tiles = _Tiles(self, row_dims, col_dims, col_chunk)
        n_rows, n_cols = length(row_dims), length(col_dims)
        high, wide = min(plan.tile_rows, n_rows), plan.tile_cols
        row_parts = [(0, n_rows // high * high, high), (n_rows // high * high, n_rows, n_rows % high)]
        col_parts = [(0, n_cols // wide * wide, wide), (n_cols // wide * wide, n_cols, n_cols % wide)]
        stem = f"{self.name}_{row_chunk}_{col_chunk}"
        names = {}
        for _, _, rows in row_parts:
            for _, _, cols in col_parts:
                if rows and cols and (n_rows >= rows and n_cols >= cols):
                    names[rows, cols] = tiles.write(stem, rows, cols)
        pointers = ("left", "right", "out")
        with text.function(f"{self.name}_block_{row_chunk}_{col_chunk}", pointers, ("count", "first")):
            given = [text.argument(one) for one in pointers]
            numbers = [text.argument("count"), text.argument("first")]
            for col_start, col_stop, cols in col_parts:
                if col_start == col_stop:
                    continue
                with text.loop(col_start, col_stop, cols) as across:
                    for row_start, row_stop, rows in row_parts:
                        if row_start == row_stop:
                            continue
                        with text.loop(row_start, row_stop, rows) as down:
                            text.call(names[rows, cols], given, [*numbers, down.index, across.index])

    # Packing

    def _call_pack(self, side: str, chunk: int, origin: Origin, count: Number) -> None:
        text = self.text
        operand = getattr(self.task, side)
        source = text.at(text.argument(side), origin.of(text, operand), operand.element)
        target = text.argument("work")
        if side == "left":
            target = text.at(target, self.right_room(), text.element)
        positions = [origin.of(text, guard) for guard in operand.guards]
        text.call(f"{self.name}_pack_{side}_{chunk}", (source, target), (count, *positions))

    def _write_pack_right(self, chunk: int) -> None:
        plan, task = self.plan, self.task
        dims = inner_sizes(task, plan.cols, chunk)
        pitch = self.right_pitch(chunk)
        sums = self._sum_dims(pitch)
        if not self._is_panel(chunk):
            columns, run = [], 1
            for dim, size in reversed(dims):
                columns.insert(0, (dim, size, run))
                run *= size
            self._write_pack("right", chunk, [(sums, columns)])
            return
        step = merged_step(task.right, dims)
        assert step is not None
        width, parts = length(dims), []
        whole = width // pitch
        panel = _Flat("panel", step * pitch)
        lane = _Flat("lane", step)
        if whole:
            tiles = [(panel, whole, pitch * self.max_sum)]
            parts.append(([*sums, *tiles], [(lane, pitch, 1)]))
        if width % pitch:
            place = (panel, 1, pitch * self.max_sum, whole)
            parts.append(([place, *sums], [(lane, width % pitch, 1)]))
        self._write_pack("right", chunk, parts)

    def _sum_dims(self, pitch: int) -> list[tuple[str, int | None, int]]:
        """The dimensions of a packed sum: its cut one has as many steps as is asked for."""
        found: list[tuple[str, int | None, int]] = []
        run = pitch
        for number, (dim, size) in reversed(list(enumerate(self._sum_inner))):
            found.insert(0, (dim, None if number == 0 else size, run))
            run *= size
        return found

    def _write_pack_left(self, chunk: int) -> None:
        plan, task = self.plan, self.task
        dims = inner_sizes(task, plan.rows, chunk)
        pitch = self.left_pitch()
        if not self.is_left_panel:
            rows, run = [], pitch
            for dim, size in reversed(dims):
                rows.insert(0, (dim, size, run))
                run *= size
            self._write_pack("left", chunk, [(rows, self._sum_dims(1))])
            return
        step = merged_step(task.left, dims)
        assert step is not None
        n_rows, parts = length(dims), []
        high = min(pitch, n_rows)
        panel, lane = _Flat("panel", step * pitch), _Flat("lane", step)
        for whole, rows, first in ((n_rows // high, high, 0), (1, n_rows % high, n_rows // high)):
            if rows and whole:
                place = (panel, whole, pitch * self.max_sum, first)
                parts.append(([place, *self._sum_dims(pitch)], [(lane, rows, 1)]))
        self._write_pack("left", chunk, parts)

    def _write_pack(self, side: str, chunk: int, parts: Sequence[tuple]) -> None:
        text = self.text
        operand: Operand = getattr(self.task, side)
        positions = [f"p{number}" for number in range(len(operand.guards))]
        with text.function(
            f"{self.name}_pack_{side}_{chunk}", ("source", "target"), ("count", *positions)
        ):
            at = [text.argument(one) for one in positions]
            for outer, run in parts:
                _Copy(text, operand).walk([*outer, *run], (0, 0), at)


@dataclass(frozen=True, slots=True)
class _Flat:
    """A dimension that stands for several walked as one; guards do not see it."""

    name: str
    step: int


class _Copy:
    """Writes loops that copy a block of an operand."""

    def __init__(self, text: Writer, operand: Operand) -> None:
        self.text, self.operand = text, operand

    def _step(self, dim: str | _Flat) -> int:
        return dim.step if isinstance(dim, _Flat) else self.operand.step(dim)

    def walk(
        self, dims: Sequence[tuple], offsets: tuple[Number, Number], positions: list[Number]
    ) -> None:
        """Write one loop for each dimension, and vectors for the last one."""
        text, (source, target) = self.text, offsets
        (dim, size, jump), *rest = [one[:3] for one in dims[:1]] + list(dims[1:])
        first = dims[0][3] if len(dims[0]) > 3 else 0
        moves = [0 if isinstance(dim, _Flat) else g.step(dim) for g in self.operand.guards]
        if not rest:
            self._run(dim, size, jump, offsets, positions)
            return
        stop = text.argument("count") if size is None else first + size
        with text.loop(first, stop) as loop:
            at = loop.index
            inside = [
                text.add(one, text.mul(at, move)) if move else one
                for one, move in zip(positions, moves, strict=True)
            ]
            places = (
                text.add(source, text.mul(at, self._step(dim))),
                text.add(target, text.mul(at, jump)),
            )
            self.walk(rest, places, inside)

    def _run(
        self,
        dim: str | _Flat,
        size: int | None,
        jump: int,
        offsets: tuple[Number, Number],
        positions: list[Number],
    ) -> None:
        text, operand = self.text, self.operand
        assert jump == 1
        moves = [0 if isinstance(dim, _Flat) else g.step(dim) for g in operand.guards]
        truth = None
        for guard, at, move in zip(operand.guards, positions, moves, strict=True):
            if not move:
                here = text.inside(at, guard.size)
                truth = here if truth is None else text.both(truth, here)
        whole = None if size is None else size // text.lanes * text.lanes
        if size is None:  # the cut dimension of a sum
            count = text.argument("count")
            n_whole, _ = text.divided(count, text.lanes)
            stop = text.mul(n_whole, text.lanes)
            with text.loop(0, stop, text.lanes) as loop:
                self._vector(dim, loop.index, None, offsets, positions, moves, truth)
            left = text.add(count, text.mul(stop, -1))
            with text.when(text.less(stop, count)):
                mask = text.lanes_inside(0, 1, left)
                self._vector(dim, stop, mask, offsets, positions, moves, truth)
            return
        if whole:
            if whole > 8 * text.lanes:
                with text.loop(0, whole, text.lanes) as loop:
                    self._vector(dim, loop.index, None, offsets, positions, moves, truth)
            else:
                for start in range(0, whole, text.lanes):
                    self._vector(dim, start, None, offsets, positions, moves, truth)
        if size % text.lanes:
            mask = text.first_lanes(size % text.lanes)
            self._vector(dim, whole, mask, offsets, positions, moves, truth)

    def _vector(self, dim, start, mask, offsets, positions, moves, truth) -> None:
        text, operand = self.text, self.operand
        step = self._step(dim)
        for guard, at, move in zip(operand.guards, positions, moves, strict=True):
            if move:
                here = text.add(at, text.mul(start, move))
                mask = text.mask_and(mask, text.lanes_inside(here, move, guard.size))
        if truth is not None:
            mask = text.mask_if(truth, mask)
        source = text.add(offsets[0], text.mul(start, step))
        value = text.load(
            text.at(text.argument("source"), source, operand.element), operand.element, mask, step
        )
        target = text.at(text.argument("target"), text.add(offsets[1], start), text.element)
        text.store(target, value, text.element)


class _nested:
    """Loops around what is written inside; gives the origin with their indices."""

    def __init__(self, text: Writer, dims: Sizes, origin: Origin) -> None:
        self._text, self._dims, self._origin = text, dims, origin
        self._open: list = []

    def __enter__(self) -> Origin:
        inside = Origin(dict(self._origin.index))
        for dim, size in self._dims:
            loop = self._text.loop(0, size)
            inside.index[dim] = loop.__enter__().index
            self._open.append(loop)
        return inside

    def __exit__(self, *_: object) -> None:
        for loop in reversed(self._open):
            loop.__exit__(None, None, None)


class _Tiles:
    """Writes the kernels of a block: functions that compute one register tile."""

    def __init__(self, engine: Engine, rows: Sizes, cols: Sizes, col_chunk: int) -> None:
        self.engine, self.text = engine, engine.text
        task, plan = engine.task, engine.plan
        self.out_rows, self.out_cols = engine._line(task.out, rows), engine._line(task.out, cols)
        self.levels = self._levels(col_chunk)
        if plan.packs_left:
            high, pitch = plan.tile_rows, engine.left_pitch()
            self.left_rows = Line(1 if engine.is_left_panel else pitch)
            self.left_tile = engine.max_sum if engine.is_left_panel else pitch
            assert high
        else:
            self.left_rows = engine._line(task.left, rows)
        if plan.packs_right:
            self.right_tile = engine.max_sum if engine._is_panel(col_chunk) else 1
            self.right_cols = Line(1)
        else:
            self.right_tile = 1
            self.right_cols = engine._line(task.right, cols)
            assert self.right_cols.step == 1 or length(cols) == 1

    def _levels(self, col_chunk: int) -> list[tuple[int | None, int, int]]:
        """Loops of a sum, outermost first: steps (None: as many as asked for), and both moves."""
        engine, plan, task = self.engine, self.engine.plan, self.engine.task
        found: list[tuple[int | None, int, int]] = []
        run = 1
        pitch = engine.right_pitch(col_chunk)
        for number, (dim, size) in reversed(list(enumerate(engine._sum_inner))):
            if plan.packs_left:
                left = run * (engine.left_pitch() if engine.is_left_panel else 1)
            else:
                left = task.left.step(dim)
            right = run * pitch if plan.packs_right else task.right.step(dim)
            found.insert(0, (None if number == 0 else size, left, right))
            run *= size
        merged: list[tuple[int | None, int, int]] = []
        self.scale = 1  # steps of the outermost loop for each that is asked for
        for size, left, right in reversed(found):
            if merged and merged[0][0] is not None:
                below, far, wide = merged[0]
                if left == far * below and right == wide * below:
                    if size is None:
                        self.scale = below
                        merged[0] = (None, far, wide)
                    else:
                        merged[0] = (below * size, far, wide)
                    continue
            merged.insert(0, (size, left, right))
        return merged or [(1, 0, 0)]

    def write(self, stem: str, rows: int, cols: int) -> str:
        """Write the kernel of a tile; return its name."""
        text = self.text
        name = f"{stem}_tile_{rows}_{cols}"
        with text.function(
            name, ("left", "right", "out"), ("count", "first", "row", "col")
        ):
            row, col = text.argument("row"), text.argument("col")
            n = -(-cols // text.lanes)
            lefts = self._lefts(row, rows)
            right = self._right(col)
            outs = [
                text.at(text.argument("out"), self.out_rows.at(text, row, place), self._out)
                for place in range(rows)
            ]
            if self._is_direct(cols):
                start = self.out_cols.at(text, col, 0)
                outs = [text.at(one, start, self._out) for one in outs]
                for one in outs:
                    text.fetch(one)
            self.mask = text.first_lanes(cols - (n - 1) * text.lanes)
            totals = self._sum(self.levels, lefts, right, [text.zero()] * (rows * n), (rows, n))
            if self._is_direct(cols):
                self._finish(outs, totals, n)
            else:
                self._scatter(outs, totals, (rows, cols, n), col)
        return name

    @property
    def _out(self):
        return self.engine.task.out.element

    def _is_direct(self, cols: int) -> bool:
        return self.out_cols.table is None and (self.out_cols.step == 1 or cols == 1)

    def _lefts(self, row: Number, rows: int) -> list[str]:
        text, engine = self.text, self.engine
        left = text.argument("left")
        if not engine.plan.packs_left:
            element = engine.task.left.element
            return [
                text.at(left, self.left_rows.at(text, row, place), element) for place in range(rows)
            ]
        base = text.at(left, text.mul(row, self.left_tile), text.element)
        return [text.at(base, place * self.left_rows.step, text.element) for place in range(rows)]

    def _right(self, col: Number) -> str:
        text, engine = self.text, self.engine
        right = text.argument("right")
        if engine.plan.packs_right:
            return text.at(right, text.mul(col, self.right_tile), text.element)
        element = engine.task.right.element
        return text.at(right, self.right_cols.at(text, col, 0), element)

    def _sum(self, levels, lefts, right, totals, shape) -> list[str]:
        """Write the loops of the sum; the innermost is unrolled."""
        text = self.text
        (size, left, wide), *inner = levels
        stop: Number = size if size is not None else text.mul(text.argument("count"), self.scale)
        if inner:
            with text.loop(0, stop, 1, totals) as loop:
                moved, here = self._moved(lefts, right, text.mul(loop.index, 1), left, wide)
                loop.carry(self._sum(inner, moved, here, loop.values, shape))
            return loop.values
        unroll = UNROLL if size is None else min(UNROLL, size)
        if size is None:
            n_whole, _ = text.divided(stop, unroll)
            whole: Number = text.mul(n_whole, unroll)
        else:
            whole = size // unroll * unroll
        with text.loop(0, whole, unroll, totals) as loop:
            values = loop.values
            moved, here = self._moved(lefts, right, loop.index, left, wide)
            for place in range(unroll):
                values = self._point(moved, here, values, shape, (place * left, place * wide))
            loop.carry(values)
        totals = loop.values
        if size is None or size % unroll:
            with text.loop(whole, stop, 1, totals) as loop:
                moved, here = self._moved(lefts, right, loop.index, left, wide)
                loop.carry(self._point(moved, here, loop.values, shape, (0, 0)))
            totals = loop.values
        return totals

    def _elements(self):
        plan, task, own = self.engine.plan, self.engine.task, self.text.element
        return (
            own if plan.packs_left else task.left.element,
            own if plan.packs_right else task.right.element,
        )

    def _moved(self, lefts, right, index, left, wide):
        text = self.text
        of_left, of_right = self._elements()
        far = text.mul(index, left)
        return [text.at(one, far, of_left) for one in lefts], text.at(
            right, text.mul(index, wide), of_right
        )

    def _point(self, lefts, right, totals, shape, offsets) -> list[str]:
        """Write the products of one point of the sum."""
        text, (rows, n) = self.text, shape
        of_left, of_right = self._elements()
        vectors = []
        for number in range(n):
            place = text.at(right, offsets[1] + number * text.lanes, of_right)
            is_masked = number == n - 1 and not self.engine.plan.packs_right
            vectors.append(text.load(place, of_right, self.mask if is_masked else None))
        made = list(totals)
        for row in range(rows):
            one = text.spread(text.load_one(text.at(lefts[row], offsets[0], of_left), of_left))
            for number in range(n):
                made[row * n + number] = text.fma(one, vectors[number], made[row * n + number])
        return made

    def _finish(self, outs, totals, n) -> None:
        """Add to what earlier blocks of the sum have left, and write."""
        text = self.text
        is_later = None
        if self.engine.n_sum_blocks > 1:
            is_later = text.less(0, text.argument("first"))
        for number in range(n):
            mask = self.mask if number == n - 1 else None
            later = text.mask_if(is_later, mask) if is_later else None
            for row, out in enumerate(outs):
                place = text.at(out, number * text.lanes, self._out)
                value = totals[row * n + number]
                if later:
                    value = text.plus(value, text.load(place, self._out, later))
                text.store(place, value, self._out, mask)

    def _scatter(self, outs, totals, shape, col) -> None:
        """Write a tile whose columns do not lie side by side, by way of a buffer."""
        text, (rows, cols, n) = self.text, shape
        room = text.room(rows * n * text.lanes)
        for number, value in enumerate(totals):
            text.store(text.at(room, number * text.lanes, text.element), value, text.element)
        is_later = None
        if self.engine.n_sum_blocks > 1:
            is_later = text.less(0, text.argument("first"))
        with text.loop(0, cols) as across:
            offset = self.out_cols.at(text, text.add(col, across.index), 0)
            for row in range(rows):
                place = text.at(outs[row], offset, self._out)
                start = text.add(across.index, row * n * text.lanes)
                value = text.load_one(text.at(room, start, text.element), text.element)
                if is_later:
                    value = text.plus_if(is_later, value, place, self._out)
                text.store_one(place, value, self._out)
