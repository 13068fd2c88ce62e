"""What packing costs: lines read and written, vectors copied, squares transposed."""

from __future__ import annotations

import math

from loopsched.codegen.blocks import Blocks
from loopsched.codegen.contraction import Contraction
from loopsched.codegen.core import COSTS, Core, Counts
from loopsched.codegen.lines import Dims, Footprint, Lines, lined, take
from loopsched.codegen.memory import LINE
from loopsched.codegen.plan import (
    FAR_BYTES,
    Plan,
    Walk,
    asks_for_next,
    cut,
    inner_sizes,
    length,
    packed_pitch,
    turns_right,
)


class Packing:
    """Counts what packing blocks of one contraction's operands costs one core."""

    def __init__(self, task: Contraction, core: Core, lines: Lines, blocks: Blocks) -> None:
        self.task, self.core, self.lines, self.blocks = task, core, lines, blocks
        self._known: dict[tuple[object, ...], tuple[Counts, tuple[float, float]]] = {}
        self._pitches: dict[tuple[Walk, int], int] = {}

    def right(
        self, found: Counts, plan: Plan, dims: tuple[Dims, Dims], times: float
    ) -> tuple[float, float]:
        """Count what it takes to pack blocks of the right operand.

        Give the bytes of a block, and those that packing it reads.
        """
        if not plan.packs_right:
            return self.lines.of(self.task.right, dims[0] + dims[1]).lines * LINE, 0.0
        kind = plan.is_right_given, plan.sums_in_lanes
        key = dims, plan.tile_cols, plan.cols, plan.sums, kind
        if key not in self._known:
            each = dict.fromkeys(COSTS, 0.0)
            sizes = self._pack_right(each, plan, dims)
            self._known[key] = {name: n for name, n in each.items() if n}, sizes
        once, sizes = self._known[key]
        for name, n in once.items():
            found[name] += n * times
        return sizes

    def _pack_right(
        self, found: Counts, plan: Plan, dims: tuple[Dims, Dims]
    ) -> tuple[float, float]:
        """Count the same for one block."""
        (cols, sums), task = dims, self.task
        source = self.lines.of(task.right, cols + sums)
        width = -(-length(cols) // plan.tile_cols) * plan.tile_cols
        block = float(width * length(sums) * self.lines.element_bytes)
        if plan.is_right_given:
            kind = "read" if self.lines.home < 3 else "ahead"
            take(found, kind, self.lines.home, block / LINE)
            return block, 0.0
        turns = turns_right(task, plan)
        is_asked = turns and asks_for_next(task, plan, self.lines.vector_bytes)
        is_many = turns and self.lines.home > 2 and self.lines.vector_bytes >= LINE
        is_far = source.is_far or is_many  # of data in memory hardware follows few rows at once
        kind = "ahead" if self._asks(plan) else "far" if is_far else "read"
        if is_asked:
            kind = "next"
        for level, lines in self.source_lines(plan, source, sums):
            take(found, kind, level, lines)
        level = self.level(block, source.lines * LINE)
        take(found, "pack", level, block / LINE)
        if turns:
            squares = math.prod(-(-length(one) // self.core.lanes) for one in dims)
            found["transpose_near" if is_asked else "transpose"] += squares
        else:
            self._copy_right(found, plan, dims)
        return block, source.lines * LINE

    def level(self, n_bytes: float, source: float) -> int:
        """Say which cache holds what is packed; what it is read from pushes it out of the last."""
        level = self.lines.level(n_bytes)
        return self.lines.level(n_bytes + source) if level == 2 else level

    def source_lines(
        self, plan: Plan, source: Footprint, sums: Dims
    ) -> tuple[tuple[int, float], ...]:
        """Count lines of a block of the right operand, with the level that they come from.

        First those that are new, then those that the block before read, too, unless L2 has them.
        """
        n_blocks = self.blocks.n_blocks(plan.cols)
        whole = self.lines.of(self.task.right, self.blocks.whole(plan.cols) + sums)
        new = min(source.lines, whole.lines / n_blocks)
        both = self.lines.level(2 * source.lines * LINE)
        before = source.lines - new if both > 1 else 0.0
        return (self.lines.home, new), (min(self.lines.home, both), before)

    def _asks(self, plan: Plan) -> bool:
        """Whether copies of the right operand ask for lines of what comes later."""
        right, dims = self.task.right, inner_sizes(self.task, plan.cols, plan.cols.block)
        if right.guards or not dims or right.step(dims[-1][0]) != 1:
            return False
        steps = [abs(right.step(dim)) for dim in plan.sums.dims]
        return bool(steps) and min(steps) * self.lines.element_bytes >= FAR_BYTES

    def _copy_right(self, found: Counts, plan: Plan, dims: tuple[Dims, Dims]) -> None:
        (cols, sums), right, lanes = dims, self.task.right, self.core.lanes
        width, depth, step = length(cols), length(sums), self.lines.step(right, cols)
        if step is None or any(guard.step(dim) for guard in right.guards for dim, _ in cols):
            dim, run = cols[-1]
            self._runs(found, depth * (width // run), run, right.step(dim))
        else:
            for wide, n in cut(width, -(-plan.tile_cols // lanes) * lanes):
                self._runs(found, depth * n, wide, step)

    def left(self, found: Counts, plan: Plan, dims: tuple[Dims, Dims], times: float) -> None:
        """Count what it takes to pack blocks of the left operand: their rows and sums."""
        (rows, sums), left = dims, self.task.left
        n_rows, depth, step = length(rows), length(sums), self.lines.step(left, rows)
        if plan.sums_in_lanes:
            lanes, wide = self.core.lanes, self.lines.step(left, sums)
            if step == 1 and wide is not None and not left.guards and min(n_rows, depth) >= lanes:
                found["transpose"] += times * -(-depth // lanes) * -(-n_rows // lanes)
            else:
                dim, run = sums[-1]
                self._runs(found, times * n_rows * depth / run, run, left.step(dim))
            return
        along = [dim for dim, size in sums if size > 1]
        down = [dim for dim, size in rows if size > 1]
        is_guarded = any(g.step(dim) for g in left.guards for dim in plan.rows.inner)
        if along and left.step(along[-1]) != 1 and step is not None and not is_guarded:
            for tall, n in self.blocks.heights(plan, n_rows):
                self._runs(found, times * depth * n, tall, step)
            return
        is_wide = down and (not along or abs(left.step(down[-1])) < abs(left.step(along[-1])))
        walked = rows if is_wide else sums
        if walked:
            dim, run = walked[-1]
            self._runs(found, times * n_rows * depth / run, run, left.step(dim))

    def _runs(self, found: Counts, times: float, n: int, step: int) -> None:
        """Count copies of runs of some elements."""
        found["run"] += times
        if abs(step) in (1, 2):
            found["copy" if step == 1 else "apart"] += times * -(-n // self.core.lanes)
        else:
            found["gather"] += times * n

    def panel(self, plan: Plan, depth: int, wide: int) -> Footprint:
        """Give the lines that a register tile reads of a packed block of the right operand."""
        lanes, vector = self.core.lanes, self.lines.vector_bytes
        run, pitch = -(-wide // lanes) * vector, self._pitch(plan)
        lines = run / LINE if run == pitch else lined(run, plan.tile_cols // lanes * vector, pitch)
        return Footprint(depth * lines, float(depth * run), 0, 0, 0)

    def _pitch(self, plan: Plan) -> int:
        """Give the bytes between two rows of a packed block of the right operand."""
        key = plan.cols, plan.tile_cols
        if key not in self._pitches:
            lanes = self.core.lanes
            pitch = packed_pitch(self.task, plan, lanes, self.lines.vector_bytes)
            self._pitches[key] = pitch // lanes * self.lines.vector_bytes
        return self._pitches[key]
