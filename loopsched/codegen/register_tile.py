"""Kernels of register tiles: the innermost functions of a contraction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from loopsched.codegen.contraction import Guard
from loopsched.codegen.element import Element
from loopsched.codegen.layout import Layout, Line, Place
from loopsched.codegen.memory import LINE
from loopsched.codegen.plan import asks_beside, asks_rows, chunks, length, merged_step, walked
from loopsched.codegen.writer import Number

UNROLL, MORE_UNROLLED = 2, 4
"""Steps of a sum that a loop does at once; more of short vectors, which do less at each."""
MANY_SUMS = 27
"""Of 32 registers so many vectors of sums leave none to read ahead for the next step in fp32:
LLVM, which would, spills some."""
GIVEN_AHEAD = 64
"""Points of the sum by which a tile asks for vectors that lie outside L2 when they are given."""
KEPT_BYTES = 8192
"""Rows of a block that are no more are found in L1 again: asking for them only takes time."""


class Level(NamedTuple):
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


class _Asked(NamedTuple):
    """Runs of the output that are asked for: where, how far apart, how many and how long.

    And how many at each step of a sum.
    """

    pointer: str
    step: int
    n: int
    run: int
    each: int


class Next(NamedTuple):
    """Lines beside the columns of a tile that it asks for at each point of its sum.

    How far behind its own the first of them lies, how far they lie apart, and how many.
    """

    first: Number
    step: int
    each: int


class Live(NamedTuple):
    """A kind of row tile: its rows, and those that count at each step of an unrolled dimension."""

    rows: int
    steps: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = ()


class Tiles:
    """Writes the kernels of all blocks: functions that compute one register tile.

    Smaller blocks are parts of the largest, so that they have kernels in common.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout, self.text = layout, layout.text
        task, plan, rows, cols = layout.task, layout.plan, layout.rows, layout.cols
        self.out_rows, self.out_cols = layout.line(task.out, rows), layout.line(task.out, cols)
        self.n_rows, self.n_cols = length(rows), length(cols)
        inner, across = {dim for dim, _ in rows}, walked(task, plan.cols)
        self.cut_guards = {}
        """Guards by the dimension of the sum whose loop they cut: their number in arguments."""
        self.row_guards = {}
        """Guards by the dimension of the sum that is unrolled for them: the dimension of rows."""
        self.col_guards = {}
        """The same of columns: the dimension, and their number in arguments."""
        for number, guard in enumerate(layout.skipped):
            (dim,) = (dim for dim, _ in guard.steps if dim in plan.sums.dims)
            row = [d for d, _ in guard.steps if d in inner]
            col = [d for d, _ in guard.steps if d in across]
            if row:
                self.row_guards[dim] = guard, row[0]
            elif col:
                self.col_guards[dim] = guard, col[0], f"p{number}"
            else:
                self.cut_guards[dim] = guard, f"p{number}"
        self.guarded = {*self.cut_guards, *self.row_guards, *self.col_guards}
        self.pitch = layout.right_pitch
        if plan.packs_left:
            by_sum = layout.is_left_panel or layout.is_left_wide
            self.left_rows = Line(1 if by_sum else layout.left_pitch())
            self.left_tile = layout.max_sum if layout.is_left_panel else self.left_rows.step
        else:
            self.left_rows, self.left_tile = layout.line(task.left, rows), 1
        if plan.packs_right:
            self.right_tile = layout.max_sum if layout.is_panel else 1
            self.right_cols = Line(1)
        else:
            self.right_tile = 1
            self.right_cols = layout.line(task.right, cols)

    def alike(self, parts: list[tuple[int, int, int]]) -> list[tuple[tuple[int, int, int], Live]]:
        """Cut runs of row tiles further, so that those of a run have the same rows that count."""
        found: list[tuple[tuple[int, int, int], Live]] = []
        for start, stop, rows in parts:
            if not self.row_guards:
                found.append(((start, stop, rows), Live(rows)))
                continue
            for at in range(start, stop, rows):
                live = Live(rows, tuple((d, self._counting(d, at, rows)) for d in self.row_guards))
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
            for at in range(self.layout.task.size(dim))
        )

    def levels(self, rows: int) -> tuple[tuple[Level, ...], int]:
        """Give the loops of the sum of a tile of so many rows, outermost first.

        And the steps of the outermost, of which tiles are told how many there are, for each
        step of the dimension of the sum that is cut.
        """
        layout, plan, task = self.layout, self.layout.plan, self.layout.task
        found: list[Level] = []
        run = scale = 1
        pitch = rows if layout.is_left_panel else layout.left_pitch() if layout.is_left_wide else 1
        for number, (dim, size) in reversed(list(enumerate(layout.sum_inner))):
            left = run * pitch if plan.packs_left else task.left.step(dim)
            right = run * self.pitch if plan.packs_right else task.right.step(dim)
            if number == 0 or size > 1 or dim in self.guarded:
                found.append(Level(None if number == 0 else size, left, right, dim))
            run *= size
        merged: list[Level] = []
        for level in found:
            below, far, wide, dim = merged[0] if merged else Level(None, 0, 0)
            is_apart = bool(self.guarded & {level.dim, dim})
            moves = level.left, level.right
            if below is None or is_apart or moves != (far * below, wide * below):
                merged.insert(0, level)
            elif level.size is None:
                scale = below
                merged[0] = Level(None, far, wide)
            else:
                merged[0] = Level(below * level.size, far, wide)
        return tuple(merged) or (Level(1, 0, 0),), scale

    @property
    def scale(self) -> int:
        """Steps of the outermost loop of a sum for each of the dimension that is cut."""
        return self.levels(1)[1]

    def at_once(self, rows: int, cols: int) -> int:
        """Say by how much a sum is unrolled: most in the highest and widest tiles of a block.

        Others are not unrolled, unless vectors are short: loops of single steps hold those up.
        """
        (highest, _), *_ = self.layout.heights(self.n_rows)
        is_whole = rows == highest and cols >= min(self.layout.plan.tile_cols, self.n_cols)
        size, _, _, dim = self.levels(rows)[0][-1]
        if dim in self.guarded:
            return 1
        whole, rest = (UNROLL, 1) if self._hides else (MORE_UNROLLED, UNROLL)
        most = whole if is_whole else rest
        return most if size is None else min(most, size)

    def write(self, name: str, live: Live, cols: int, numbers: Sequence[str]) -> str:
        """Write the kernel of a tile; return its name.

        What is packed begins where the tile does: so tiles of sums of any length are alike.
        Sums that lie apart in the output are left where ``out`` is (`room`).
        """
        text, rows = self.text, live.rows
        is_direct, is_apart = self._is_direct(cols), self.is_apart(cols)
        with text.function(name, self.layout.pointers, (*numbers, "row", "col")):
            row, col = text.argument("row"), text.argument("col")
            n = -(-cols // text.lanes)
            lefts = self._lefts(row, rows)
            out = text.argument("out")
            outs = [] if is_apart else self.out_rows.of(text, out, row, rows, self._out)
            self.mask = text.first_lanes(cols - (n - 1) * text.lanes)
            self.masks: list[str | None] = [None] * n
            if not self.layout.plan.packs_right:
                self.masks[-1] = self.mask
            self.tap_masks = {dim: self._tap_masks(dim, col, cols) for dim in self.col_guards}
            self.live, self.shape = dict(live.steps), (rows, n)
            self.next_rows, self.unroll = self._next_rows(rows), self.at_once(rows, cols)
            levels, _ = self.levels(rows)
            self.asked: _Asked | None = None
            self.asks_for_next = self.layout.asks_for_next
            self.next_cols = self._next_cols(cols) if self._asks(cols) else None
            if is_direct:
                outs = self._across(outs, col)
                self._ask(outs, cols, levels)
            elif not is_apart:
                outs = self.out_cols.of(text, outs[0][0], col, cols, self._out)
                self._ask(outs, rows, levels)
            totals = self._totals(levels, lefts, col, cols)
            if is_direct:
                self._finish(outs, totals, n)
            elif not is_apart:
                self._turn(outs, totals, (rows, n))
            else:
                for number, value in enumerate(totals):
                    at, vector = divmod(number, n)
                    start = at * self._room_pitch + vector * text.lanes
                    text.store(text.at(out, start, text.element), value, text.element)
        return name

    def _tap_masks(self, dim: str, col: Number, cols: int) -> list[list[str | None]]:
        """Give the masks of the vectors that a tile reads, at each step of a dimension.

        Vectors that lie inside in the first tile and in the last one have none.
        """
        text, (guard, across, position) = self.text, self.col_guards[dim]
        step, size, found = guard.step(across), self.layout.task.size(across), []
        start = text.add(text.argument(position), text.mul(col, step))
        for at in range(self.layout.task.size(dim)):
            masks, tap = list(self.masks), at * guard.step(dim)
            for number in range(len(masks)):
                first = number * text.lanes
                ends = first, size - max(1, cols - first - text.lanes + 1)
                places = [guard.offset + tap + end * step for end in ends]
                if min(places) < 0 or max(places) >= guard.size:
                    here = text.add(start, first * step + tap)
                    inside = text.lanes_inside(here, step, guard.size)
                    masks[number] = text.mask_and(masks[number], inside)
            found.append(masks)
        return found

    def _totals(
        self, levels: Sequence[Level], lefts: list[Place], col: Number, _: int
    ) -> list[str]:
        """Write the sums of a tile, row by row; columns are lanes."""
        rows, n = self.shape
        zeros = [self.text.zero()] * (rows * n)
        return self._sum(levels, _At(lefts, self._right(col)), zeros, range(rows))

    @property
    def _out(self) -> Element:
        return self.layout.task.out.element

    def _ask(self, outs: list[Place], run: int, levels: Sequence[Level]) -> None:
        """Ask for the lines that a tile will write: a run at each step of its sum, if they do."""
        (first, start), *others = outs
        step = others[0][1] - start if others and others[0][0] == first else 0
        n_steps = self._steps(levels) if self._hides else 0
        if step and n_steps > 1:
            each, pointer = -(-len(outs) // n_steps), self.text.at(first, start, self._out)
            self.asked = _Asked(pointer, step, len(outs), run, each)
            return
        for pointer, behind in outs:
            out = self.text.at(pointer, behind, self._out)
            self._fetch((out, 0), run - 1, self._out, writes=True)

    @property
    def _hides(self) -> bool:
        """Whether requests at each step of a sum hide behind what it multiplies.

        With vectors of 32 bytes a tile took up to twice as long with them.
        """
        return self.layout.vector_bytes >= LINE

    def _steps(self, levels: Sequence[Level]) -> int:
        """Say how many steps the outermost loop of a sum has at least; 0: nobody knows."""
        outermost, *inner = levels
        if outermost.dim in self.guarded:
            return 0
        size = min(self._counts(outermost))
        return size if inner else size // self.unroll

    def _counts(self, level: Level) -> list[int]:
        """List how many steps a loop of a sum may have."""
        if level.size is not None:
            return [level.size]
        _, *sizes = chunks(self.layout.task, self.layout.plan.sums)
        return [size * self.scale for size in sizes if size]

    def _fetch(
        self, at: Place, last: int, element: Element, *, first: int = 0, writes: bool = False
    ) -> None:
        """Ask for the lines of elements behind a place, from ``first`` on until the ``last``."""
        (pointer, behind), a_line = at, LINE // element.n_bytes
        for place in (*range(first, last, a_line), last):
            self.text.fetch(self.text.at(pointer, behind + place, element), writes=writes)

    def _is_direct(self, cols: int) -> bool:
        return self.out_cols.table is None and (self.out_cols.step == 1 or cols == 1)

    def is_apart(self, cols: int) -> bool:
        """Whether neither rows nor columns of a tile lie side by side in the output."""
        is_turned = self.out_rows.table is None and self.out_rows.step == 1
        return not is_turned and not self._is_direct(cols)

    def width(self, cols: int) -> int:
        """Give the columns that the kernel of a tile computes: some sums apart may be in vain."""
        if not self.is_apart(cols) or not self.layout.plan.packs_right:
            return cols
        return -(-cols // self.text.lanes) * self.text.lanes

    def _across(self, outs: list[Place], col: Number) -> list[Place]:
        """Move places of rows to a column."""
        text = self.text
        offset = text.mul(col, self.out_cols.step)
        moved = {one: text.at(one, offset, self._out) for one in dict.fromkeys(p for p, _ in outs)}
        return [(moved[one], behind) for one, behind in outs]

    def _lefts(self, row: Number, rows: int) -> list[Place]:
        text, layout = self.text, self.layout
        left = text.argument("left")
        if not layout.plan.packs_left:
            return self.left_rows.of(text, left, row, rows, layout.task.left.element)
        return [(left, place * self.left_rows.step) for place in range(rows)]

    def _right(self, col: Number) -> Place:
        text, layout = self.text, self.layout
        right = text.argument("right")
        if layout.plan.packs_right:
            return right, 0
        return self.right_cols.of(text, right, col, 1, layout.task.right.element)[0]

    def _sum(
        self,
        levels: Sequence[Level],
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
        if dim in self.tap_masks:
            every = self.masks
            for place, masks in enumerate(self.tap_masks[dim]):
                text.read_again()
                self.masks = masks
                totals = self._sum(inner, at.behind(place * left, place * wide), totals, rows)
            self.masks = every
            return totals
        start: Number = 0
        stop: Number = text.argument("count") if size is None else size
        if dim in self.cut_guards:
            start, stop = self._limits(*self.cut_guards[dim], stop)
        unroll, whole = 1 if inner else self.unroll, stop
        if any(one % unroll for one in self._counts(levels[0])):
            whole = text.mul(text.divided(stop, unroll)[0], unroll)
        with text.loop(start, whole, unroll, totals) as loop:
            values = loop.values
            if self.asked:
                self._fetch_step(self.asked, text.divided(loop.index, unroll)[0])
                self.asked = None
            if self.asks_for_next:
                self._fetch_source(text.divided(loop.index, unroll)[0], levels)
                self.asks_for_next = False
            here = self._moved(at, loop.index, left, wide)
            in_order = here.meets(left, unroll) or math.prod(self.shape) >= MANY_SUMS
            if self.next_rows and left == 1 and not self._is_dense:
                self._fetch_rows(here.lefts, loop.index)
            if inner and inner[0].dim in self.cut_guards:
                self._fetch_below(here, *inner)
            is_apart = self._meets_lines(left) and not any(self._meets_lines(x.left) for x in inner)
            for place in range(unroll):
                if place and in_order:
                    text.read_again()
                there = here.behind(place * left, place * wide)
                if self.next_rows and is_apart and self._is_dense:
                    self._fetch_next(there.lefts)
                values = self._sum(inner, there, values, rows)
            loop.carry(values)
        totals = loop.values
        if whole != stop:
            with text.loop(whole, stop, 1, totals) as loop:
                here = self._moved(at, loop.index, left, wide)
                loop.carry(self._point(here, loop.values, rows))
            totals = loop.values
        return totals

    def _fetch_step(self, asked: _Asked, number: Number) -> None:
        """Ask for some runs that will be written; for the last ones again when all were."""
        text, (pointer, step, n, run, each) = self.text, asked
        first = self._first(number, n, each, step)
        for place in range(each):
            out = text.at(pointer, text.add(first, place * step), self._out)
            self._fetch((out, 0), run - 1, self._out, writes=True)

    def _fetch_source(self, number: Number, levels: Sequence[Level]) -> None:
        """Ask for some lines of what this panel's columns in the next block are packed from.

        Tiles below each other share them; at each step of the outermost loop some, in order.
        """
        text, layout, (_, n) = self.text, self.layout, self.shape
        right = layout.task.right
        step, a_line = merged_step(right, layout.cols) or 0, LINE // right.element.n_bytes
        run = layout.next_run // a_line
        own = -(-n * text.lanes * run // self.n_below)
        n_steps = max(self._counts(levels[0])) // (1 if levels[1:] else self.unroll)
        each, below = -(-own // max(1, n_steps)), self._below()
        for place in range(each):
            at = text.add(text.mul(number, each), place)
            with text.when(text.less(at, own)):
                col, line = text.divided(text.add(text.mul(below, own), at), run)
                where = text.add(text.mul(col, step), text.mul(line, a_line))
                text.fetch(text.at(text.argument("next"), where, right.element))

    def _limits(self, guard: Guard, position: str, size: Number) -> tuple[Number, Number]:
        """Give the steps of a loop between which a guard holds."""
        text = self.text
        (dim,) = (dim for dim, _ in guard.steps if dim in self.layout.plan.sums.dims)
        step = guard.step(dim)
        at = text.mul(text.argument(position), -1)
        ends: list[Number] = []
        for end in (at, text.add(at, guard.size)):
            reached = text.choice(text.less(end, 0), 0, end)
            ends.append(text.least(text.divided(text.add(reached, step - 1), step)[0], size))
        return ends[0], ends[1]

    def _next_rows(self, rows: int) -> int:
        """Say how far the rows of the next tile lie from those of one, if tiles ask for them."""
        layout, left = self.layout, self.layout.task.left
        if not asks_rows(layout.task, layout.plan) or self.left_rows.table or not self._hides:
            return 0
        if self.n_rows * layout.max_sum * left.element.n_bytes <= KEPT_BYTES:
            return 0
        return rows * self.left_rows.step

    def _asks(self, cols: int) -> bool:
        layout = self.layout
        asks = asks_beside(layout.task, layout.plan, layout.vector_bytes)
        return asks and cols == layout.plan.tile_cols

    def _next_cols(self, cols: int) -> Next:
        """Say which lines of the columns beside its own a tile asks for at a point of its sum."""
        size = self.layout.task.right.element.n_bytes
        a_line = LINE // size  # their last elements: this tile has read the line before
        return self._shared(-(-cols * size // LINE), a_line, cols + a_line - 1)

    def _below(self) -> Number:
        """Count the tiles above this one in the largest blocks: the highest ones come first."""
        text, (highest, _) = self.text, self.layout.heights(self.n_rows)[0]
        number, _ = text.divided(text.add(text.argument("row"), highest - 1), highest)
        return text.least(number, self.n_below - 1)

    def _shared(self, n: int, step: int, far: int) -> Next:
        """Share requests for ``n`` places, from ``far`` on, among tiles below each other."""
        text = self.text
        each = -(-n // self.n_below)
        number = text.divided(self._below(), -(-n // each))[1]
        return Next(text.add(self._first(number, n, each, step), far), step, each)

    @property
    def n_below(self) -> int:
        """Tiles below each other in the largest blocks."""
        return sum(times for _, times in self.layout.heights(self.n_rows))

    def _first(self, number: Number, n: int, each: int, step: int) -> Number:
        """Say where some of ``n`` places begin, taken in order; the last ones end with them."""
        text = self.text
        return text.mul(text.least(text.mul(number, each), n - each), step)

    def _fetch_cols(self, at: Place, element: Element) -> None:
        """Ask for some of what the next columns are at a point of the sum."""
        if self.next_cols:
            (first, step, each), (pointer, behind) = self.next_cols, at
            pointer = self.text.at(pointer, first, element)
            for number in range(each):
                self.text.fetch(self.text.at(pointer, behind + number * step, element))

    def _fetch_rows(self, rows: Sequence[Place], index: Number) -> None:
        """Ask for what the next tile reads, where each row is a stream: each line once."""
        text, element = self.text, self.layout.task.left.element
        turns = LINE // element.n_bytes // self.unroll
        turn = text.divided(text.divided(index, self.unroll)[0], turns)[1]
        step, (pointer, behind) = self.left_rows.step, rows[0]
        pointer = text.at(pointer, text.mul(turn, step), element)
        for row in range(0, len(rows), turns):
            text.fetch(text.at(pointer, behind + self.next_rows + row * step, element))

    @property
    def _is_dense(self) -> bool:
        """Whether rows that follow each other share lines."""
        return not self._meets_lines(self.left_rows.step)

    def _meets_lines(self, step: int) -> bool:
        """Whether such a step leads to another line of the left operand."""
        return abs(step) * self.layout.task.left.element.n_bytes >= LINE

    def _fetch_next(self, rows: Sequence[Place]) -> None:
        """Ask for the lines that the next tile reads at such a step of the sum."""
        (pointer, behind), element = rows[0], self.layout.task.left.element
        last = (len(rows) - 1) * self.left_rows.step
        first = LINE // element.n_bytes - 1  # this tile has read the line before
        self._fetch((pointer, behind + self.next_rows), last, element, first=first)

    def _fetch_below(self, at: _At, down: Level, *across: Level) -> None:
        """Ask for what the window of a tile meets first where the next row of blocks begins."""
        task, plan, guard = self.layout.task, self.layout.plan, self.cut_guards[down.dim][0]
        if guard in task.left.guards:
            side, walk, operand = "left", plan.rows, task.left
            (pointer, behind), last = at.lefts[0], (len(at.lefts) - 1) * self.left_rows.step
        else:
            side, walk, operand = "right", plan.cols, task.right
            (pointer, behind), last = at.right, self.shape[1] * self.text.lanes - 1
        steps, below = dict(guard.steps), walk.outer[-1:]
        if walk.inner and walk.block == 1 < task.size(walk.inner[0]):
            below = walk.inner[:1]
        elif chunks(task, walk)[0] > 1:
            return
        if not set(below) & set(steps) or (side == "left" and self.left_rows.table):
            return
        move, tap, taps = steps[below[0]], steps[down.dim], task.size(down.dim)
        last += sum((one.size - 1) * getattr(one, side) for one in across if one.dim and one.size)
        behind += operand.step(below[0])
        for row in range(taps):
            if row * tap + move > (taps - 1) * tap:
                place = pointer, behind + row * getattr(down, side)
                self._fetch(place, last, operand.element)

    def _elements(self) -> tuple[Element, Element]:
        plan, task, own = self.layout.plan, self.layout.task, self.text.element
        return (
            own if plan.packs_left else task.left.element,
            own if plan.packs_right else task.right.element,
        )

    def _moved(self, at: _At, index: Number, left: int, wide: int) -> _At:
        """Move places by the steps of a loop."""
        of_left, of_right = self._elements()
        lefts = self._settled(at.lefts, self.text.mul(index, left), of_left)
        (right,) = self._settled([at.right], self.text.mul(index, wide), of_right)
        return _At(lefts, right)

    def _settled(self, places: Sequence[Place], far: Number, element: Element) -> list[Place]:
        """Move places by elements that only the program knows; each pointer once."""
        text = self.text
        moved = {
            one: text.settled(text.at(one, far, element))
            for one in dict.fromkeys(pointer for pointer, _ in places)
        }
        return [(moved[one], behind) for one, behind in places]

    def _point(self, at: _At, totals: list[str], rows: Sequence[int]) -> list[str]:
        """Write the products of one point of the sum."""
        text, n = self.text, self.shape[1]
        of_left, of_right = self._elements()
        vectors, own = [], text.lanes * of_right.n_bytes
        self._fetch_cols(at.right, of_right)
        for number in range(n if rows else 0):
            place = text.at(at.right[0], at.right[1] + number * text.lanes, of_right)
            if self.layout.plan.is_right_given and number * own % LINE == 0:
                text.fetch(text.at(place, GIVEN_AHEAD * self.pitch, of_right))
            vectors.append(text.load(place, of_right, self.masks[number]))
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
        if self.layout.n_sum_blocks == 1:
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

    @property
    def _room_pitch(self) -> int:
        """Elements from a row of sums to the next where they wait to be written."""
        return self.layout.n_vectors * self.text.lanes

    @property
    def room(self) -> int:
        """Elements that the sums of a tile take where they wait."""
        return self.layout.plan.tile_rows * self._room_pitch

    def write_scatter(self, name: str, rows: int) -> str:
        """Write what takes sums that wait to where they lie in the output; return its name."""
        text = self.text
        with text.function(name, ("sums", "out"), ("first", "row", "col", "count")):
            row, col, count = (text.argument(one) for one in ("row", "col", "count"))
            is_later = self._is_later()
            with text.loop(0, count) as across:
                at, out = text.add(col, across.index), text.argument("out")
                sums = text.settled(text.at(text.argument("sums"), across.index, text.element))
                ((out, behind),) = self.out_cols.of(text, out, at, 1, self._out)
                out = text.settled(text.at(out, behind, self._out))
                outs = self.out_rows.of(text, out, row, rows, self._out)
                for number, (pointer, behind) in enumerate(outs):
                    place = text.at(pointer, behind, self._out)
                    one = text.at(sums, number * self._room_pitch, text.element)
                    value = text.load_one(one, text.element)
                    if is_later:
                        value = text.plus_if(is_later, value, place, self._out)
                    text.store_one(place, value, self._out)
        return name
