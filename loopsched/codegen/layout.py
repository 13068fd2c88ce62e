"""Where a contraction's operands lie: in memory, and in the blocks that are packed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from loopsched.codegen.contraction import Contraction, Guard, Operand
from loopsched.codegen.element import Element
from loopsched.codegen.memory import LINE
from loopsched.codegen.plan import (
    Plan,
    Sizes,
    Walk,
    asks_for_next,
    chunks,
    heights,
    inner_sizes,
    is_panel,
    largest,
    length,
    merged_step,
    packed_pitch,
)
from loopsched.codegen.writer import Number, Writer

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


class Layout:
    """The blocks of one contraction under a plan, and how they lie once packed.

    Parameters
    ----------
    text : Writer
    task : Contraction
    plan : Plan
    name : str
        What the names of its functions and tables begin with.
    """

    def __init__(self, text: Writer, task: Contraction, plan: Plan, name: str) -> None:
        self.text, self.task, self.plan, self.name = text, task, plan, name
        self.lanes = text.lanes
        self.n_vectors = -(-plan.tile_cols // self.lanes)
        _, sum_block, sum_rest = chunks(task, plan.sums)
        self.sum_inner = inner_sizes(task, plan.sums, sum_block)
        self.max_sum = length(self.sum_inner)
        outer = math.prod(task.size(dim) for dim in plan.sums.outer)
        self.n_sum_blocks = outer * (chunks(task, plan.sums)[0] + bool(sum_rest))
        self.skipped: tuple[Guard, ...] = () if plan.packs_left else task.left.guards
        self.skipped += () if plan.packs_right else task.right.guards
        """Guards that tiles leave points out for."""
        self.row_chunks = self._variants(plan.rows)
        self.col_chunks = self._variants(plan.cols)

    def _variants(self, walk: Walk) -> list[int]:
        count, block, rest = chunks(self.task, walk)
        return ([block] if count else []) + ([rest] if rest else [])

    @property
    def rows(self) -> Sizes:
        """Rows of the largest blocks."""
        return largest(self.task, self.plan.rows)

    @property
    def cols(self) -> Sizes:
        """Columns of the largest blocks."""
        return largest(self.task, self.plan.cols)

    def heights(self, n_rows: int) -> list[tuple[int, int]]:
        """Cut rows of a block into register tiles: sizes with their counts."""
        return heights(n_rows, self.plan.tile_rows, length(self.rows))

    def line(self, operand: Operand, dims: Sizes) -> Line:
        """Say how points of an operand lie that are walked as one; write the table, if any."""
        step = merged_step(operand, dims)
        if step is not None:
            return Line(step)
        offsets = [0]
        for dim, size in dims:
            offsets = [one + at * operand.step(dim) for one in offsets for at in range(size)]
        return Line(0, self.text.table(self.name, offsets))

    @cached_property
    def right_pitch(self) -> int:
        """Elements between two rows of a packed block of the right operand, or a panel's width."""
        return packed_pitch(self.task, self.plan, self.lanes, self.vector_bytes)

    @property
    def pointers(self) -> tuple[str, ...]:
        """Name the pointers that blocks and tiles are given."""
        return ("left", "right", "out", *(["next"] if self.asks_for_next else []))

    @cached_property
    def asks_for_next(self) -> bool:
        """Whether tiles ask for what the next block of the right operand is packed from."""
        return asks_for_next(self.task, self.plan, self.vector_bytes)

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector of what is computed."""
        return self.lanes * self.text.element.n_bytes

    @property
    def row_blocks(self) -> tuple[int, int]:
        """Count blocks of rows, and those of a job."""
        n_whole, _, rest = chunks(self.task, self.plan.rows)
        total = (n_whole + bool(rest)) * math.prod(map(self.task.size, self.plan.rows.outer))
        return total, -(-total // self.plan.row_parts)

    @property
    def next_run(self) -> int:
        """Elements of each of the next block's columns that a block of rows asks for."""
        a_line = LINE // self.task.right.element.n_bytes
        return -(-self.max_sum // (a_line * self.row_blocks[1])) * a_line

    @property
    def is_panel(self) -> bool:
        """Whether columns are packed tile by tile."""
        return is_panel(self.task, self.plan)

    def right_room(self) -> int:
        """Elements of a packed block of the right operand."""
        if not self.plan.packs_right:
            return 0
        pitch = self.right_pitch
        panels = -(-length(self.cols) // pitch) if self.is_panel else 1
        room = panels * pitch * self.max_sum + self.lanes * max(2, pitch)
        return -(-room // 1024) * 1024

    @property
    def is_left_panel(self) -> bool:
        """Whether the left operand is packed by tiles of rows: its rows are contiguous."""
        inner = [dim for dim, size in self.sum_inner if size > 1]
        if self.plan.sums_in_lanes or not inner or self.task.left.step(inner[-1]) == 1:
            return False
        is_one = merged_step(self.task.left, self.rows) is not None
        guards = self.task.left.guards
        return is_one and not any(g.step(dim) for g in guards for dim in self.plan.rows.inner)

    @property
    def is_left_wide(self) -> bool:
        """Whether the left operand is packed with all rows of a block side by side."""
        rows = [dim for dim, size in inner_sizes(self.task, self.plan.rows, 2) if size > 1]
        sums = [dim for dim, size in self.sum_inner if size > 1]
        if self.plan.sums_in_lanes or self.is_left_panel or not rows:
            return False
        left = self.task.left
        return not sums or abs(left.step(rows[-1])) < abs(left.step(sums[-1]))

    def left_pitch(self) -> int:
        """Elements between packed rows of the left operand, or between points of its sum."""
        if self.is_left_wide:
            vectors = -(-length(self.rows) // self.lanes)
            return (vectors + (vectors % 16 == 0)) * self.lanes
        pitch = -(-self.max_sum // self.lanes) * self.lanes
        return pitch + self.lanes

    def left_room(self) -> int:
        """Elements of a packed block of the left operand."""
        if not self.plan.packs_left:
            return 0
        size = length(self.rows) * (self.max_sum if self.is_left_panel else self.left_pitch())
        if self.is_left_wide:
            size = self.max_sum * self.left_pitch()
        return -(-(size + 2 * self.lanes) // 1024) * 1024

    @property
    def work_room(self) -> int:
        """Elements that a thread needs besides its operands."""
        return self.left_start + self.left_room()

    @property
    def left_start(self) -> int:
        """Elements before a packed block of the left operand."""
        return 0 if self.plan.is_right_given else self.right_room()

    @property
    def packed_room(self) -> int:
        """Elements of the right operand when all of it is packed, as it is given."""
        if not self.plan.is_right_given:
            return 0
        return self.n_jobs // self.plan.row_parts * self.n_sum_blocks * self.right_room()

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
