"""What a plan costs on one core: events counted from how it is cut, each with its cycles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from operator import mul
from typing import NamedTuple

from loopsched.codegen.blocks import Blocks
from loopsched.codegen.contraction import Contraction, Guard, Operand
from loopsched.codegen.core import COSTS, NARROW_WAIT, Core, Counts
from loopsched.codegen.lines import Dims, Footprint, Lines, lined, take
from loopsched.codegen.memory import LINE, PAGE
from loopsched.codegen.packing import Packing
from loopsched.codegen.plan import (
    LEAST_BYTES,
    Plan,
    Walk,
    asks_beside,
    asks_rows,
    chunks,
    cut,
    heights,
    is_panel,
    length,
    roles,
)
from loopsched.codegen.shares import row_parts, slowest_share
from loopsched.codegen.window import KEPT_TAPS, strip_vectors

CROSSING = 0.9
"""Share of a window's vectors, as large as lines, that cross one and take two loads."""
APART_READ = 2.3
"""Cycles to read a vector of every second element, two at a time."""

_COPIES = (
    "copy",
    "run",
    "gather",
    "apart",
    "transpose",
    "transpose_near",
    "pack_l3",
    "pack_dram",
)

MANY_PAGES = 64
MANY_ROWS = 12
MOST_WAITING = 16
"""Lines that a tile writes while the next one already multiplies."""
MANY_STREAMS = 48
"""So many rows of the output that a block writes in turn are not foreseen."""
MOST_LINES = 0.12
"""So many lines a cycle of the left operand come from L2 without being waited for."""
ONE_SET_WAIT = 0.5
"""Cycles that a point of the sum takes more where its lines come from L2 to one set of L1."""
ALONE = 3
"""An element that is spread for a single multiply-add costs as much as so many others."""
SQUEEZED = 0.2
"""Share that is lost of lines that fill a set of L1, if another operand's pass through it."""
MOST_FOLLOWED = 16
"""So many runs that go on in the next tile are foreseen by hardware."""
PARTED = 1.01
"""What threads take that write planes of the same columns, of what they take without that.

Hardware fetches ahead plane by plane, up to the next thread's, which then waits for its lines.
Convolutions of two threads took 1.4 % longer so (22 layers on Zen 4), 8 % where these share no
last cache (6), 10 % on Emerald Rapids (13).
"""


_Part = tuple[Dims, int, int]
_Parting = Callable[[int, int, int], list[tuple[int, int]]]
"""Cuts so many points into tiles of a size, the largest block having so many."""


class _Block(NamedTuple):
    """A shape of blocks: its points, how many there are of it, and what surrounds it."""

    rows: Dims
    cols: Dims
    sums: Dims
    points: tuple[int, int, int]  # of each of these
    times: float
    counts: tuple[int, ...]  # blocks of rows, of columns and of the sum
    kept: tuple[float, float, float]  # bytes: right block, output over all rows, left over all rows
    source: float = 0.0  # bytes that packing the right block reads
    left: float = 0.0  # bytes of the left operand
    level: int = 0  # the nearest cache whose sets hold them
    fill: float = 0.0  # the share of their sets in L2
    kind: str = ""  # how they are read


class Model:
    """Estimates plans of one contraction on one core: counts of events, each with its cost."""

    def __init__(self, task: Contraction, core: Core) -> None:
        self.task, self.core = task, core
        self.lines, self.blocks = Lines(task, core), Blocks(task)
        self.packing = Packing(task, core, self.lines, self.blocks)
        self._costs, self._latency = core.costs, core.fma_latency
        self._each = list(self._costs.values())
        self._apart = tuple(
            [cost * (is_copy == (name in _COPIES)) for name, cost in self._costs.items()]
            for is_copy in (False, True)
        )
        """What events cost that threads share, and those that each of them pays."""
        if core.is_narrow:
            self._latency += NARROW_WAIT
        kinds = roles(task)
        self._sums = sorted(kinds["sums"], key=lambda dim: -abs(task.left.step(dim)))
        sums = [dim for dim in self._sums if task.size(dim) > 1]
        self._is_along = bool(sums) and task.left.step(sums[-1]) == 1
        self._crossing = self._crossed(sums)
        apart = task.right.step(sums[-1]) * self.lines.element_bytes if sums else 0
        is_long = bool(sums) and task.size(sums[-1]) > core.ways
        is_in_one_set = is_long and apart != 0 and apart % PAGE == 0
        self._one_set = core.one_set_cycles * is_in_one_set
        """Cycles that points of a sum take at least that find the right operand in place."""
        lanes = [dim for dim, step in task.right.steps if step == 1]  # vectors are whole
        cut = [one for one in task.right.guards if not any(map(one.step, lanes))]
        packed = False, True
        real = [math.prod(map(self._inside, one)) for one in (task.left.guards, cut)]
        self._real = {
            (left, right): (1.0 if left else real[0]) * (1.0 if right else real[1])
            for left, right in product(packed, packed)
        }
        """Share of the points of the sum that tiles compute, by whether operands are packed."""
        self._begun = {packs: self._limits(*packs) for packs in product(packed, packed)}
        """How often tiles begin loops over taps for a point of the sum, by the same."""
        self._split = tuple(map(self._in_two_lines, (task.left, task.right)))
        self._summed: dict[tuple[object, ...], tuple[float, float, float]] = {}
        self._paced: dict[tuple[object, ...], float] = {}
        self._parts: dict[tuple[Walk, int, _Parting], list[_Part]] = {}
        self._stores: dict[tuple[object, ...], tuple[Counts, float, float]] = {}
        self._shares: dict[tuple[object, ...], float] = {}

    def _inside(self, guard: Guard) -> float:
        """Say at which share of an operand's points a guard holds."""
        positions = [guard.offset]
        for dim, step in guard.steps:
            positions = [one + at * step for one in positions for at in range(self.task.size(dim))]
        return sum(0 <= one < guard.size for one in positions) / len(positions)

    def cycles(
        self, plan: Plan, threads: int = 1, paid: tuple[float, float] | None = None
    ) -> float:
        """Estimate what the slowest thread takes; ``paid`` is what the plan's counts cost."""
        shared, copies = paid or self.paid(self.counts(plan))
        if threads == 1:
            return shared + copies
        n_rows = self.blocks.n_blocks(plan.rows)
        uneven = -(-n_rows // plan.row_parts) * plan.row_parts / n_rows
        share = self._share(plan, threads, plan.row_parts)
        share *= PARTED if self._meets_planes(plan) else 1.0
        return share * (shared * uneven + copies * plan.row_parts)

    def _meets_planes(self, plan: Plan) -> bool:
        """Whether threads write different planes of the same columns, job by job.

        Where the right operand is read in place: packing it keeps them apart in time.
        """
        if plan.row_parts == 1 or plan.packs_right:
            return False
        n_jobs = self._batch_size(plan) * self.blocks.n_blocks(plan.cols)
        out, rows = self.task.out, (dim for dim, size in self.blocks.whole(plan.rows) if size > 1)
        apart = min((abs(out.step(dim)) for dim in rows), default=0) * out.element.n_bytes
        return n_jobs > 1 and apart >= PAGE

    def share(self, plan: Plan, threads: int) -> float:
        """Say which share of what one thread takes the slowest takes at least."""
        if threads == 1:
            return 1.0
        key = plan.batch, plan.cols, threads
        if key not in self._shares:
            parts = row_parts(threads)
            self._shares[key] = min(self._share(plan, threads, each) for each in parts)
        return self._shares[key]

    def _share(self, plan: Plan, threads: int, row_parts: int) -> float:
        rounds = math.prod(self.task.size(dim) for dim in (*plan.batch, *plan.cols.outer))
        n_whole, block, rest = chunks(self.task, plan.cols)
        return slowest_share(threads, rounds * row_parts, n_whole, rest / block)

    def paid(self, counts: Counts) -> tuple[float, float]:
        """Give the cycles of what is counted: what threads share, and copies of each of them."""
        shared, copied = (sum(map(mul, one, counts.values())) for one in self._apart)
        return shared, copied

    def sums(self, plan: Plan) -> float:
        """Estimate what a plan's register tiles take at least, on one thread."""
        points, tiles, stores = self._sum_parts(plan)
        n_sums = self.blocks.n_blocks(plan.sums)
        again = n_sums * (1 if n_sums == 1 else 2)
        return self._batch_size(plan) * (points + n_sums * tiles + again * stores)

    def _sum_parts(self, plan: Plan) -> tuple[float, float, float]:
        """Give the cycles of all sums, and of one block of them: tiles, and what they write."""
        packs = plan.packs_left, plan.packs_right, plan.sums_in_lanes
        key = plan.rows, plan.cols, plan.tile_rows, plan.tile_cols, packs
        found = self._summed.get(key)
        if found is None:
            pace, tiles, dots, stores, costs = 0.0, 0.0, 0.0, 0.0, self._costs
            for rows, tall, n_tall in self._parted(plan.rows, plan.tile_rows, heights):
                for cols, wide, n_wide in self._parted(plan.cols, plan.tile_cols, _widths):
                    n = n_tall * n_wide
                    tiles += n
                    dots += n * tall * wide * plan.sums_in_lanes
                    pace += n * self._point(plan, rows, (tall, wide))
                    stores += n * self._stored(rows, cols, (tall, wide))[2]
            points = math.prod(self.task.size(dim) for dim in plan.sums.dims)
            begun = costs["tile"] * tiles + costs["dot"] * dots
            found = self._summed[key] = points * pace, begun, stores
        return found

    def _point(self, plan: Plan, rows: Dims, tile: tuple[int, int]) -> float:
        """Give the cycles of a point of the sum in a tile."""
        key = plan.packs_left, plan.packs_right, plan.sums_in_lanes, rows, tile
        found = self._paced.get(key)
        if found is None:
            costs, (tall, wide) = self._costs, tile
            vectors = self._vectors(plan, wide)
            issue, wait = self._pace(plan, tall, vectors)
            found = costs["issue"] * issue + costs["latency"] * wait
            found += costs["clash"] * self._clashes(plan, rows, tall)
            found += costs["spread"] * tall * self._spreads(plan, vectors)
            self._paced[key] = found
        return found

    def _parted(self, walk: Walk, tile: int, parts_of: _Parting) -> list[_Part]:
        """List the sizes of register tiles: dimensions of their block, size, how many."""
        key = walk, tile, parts_of
        if key not in self._parts:
            blocks = self.blocks.of(walk)
            self._parts[key] = [
                (dims, size, n * each)
                for dims, n in blocks
                for size, each in parts_of(length(dims), tile, length(blocks[0][0]))
            ]
        return self._parts[key]

    def _batch_size(self, plan: Plan) -> int:
        return math.prod(self.task.size(dim) for dim in plan.batch)

    def _all(self, counts: Counts) -> float:
        """Give the cycles of counts of all kinds, in the order of `COSTS`."""
        cycles: float = sum(map(mul, self._each, counts.values()))
        return cycles

    def _paid(self, counts: Counts) -> float:
        paid: float = sum(map(mul, map(self._costs.__getitem__, counts), counts.values()))
        return paid

    def _pace(self, plan: Plan, tall: int, vectors: int, lines: float = 0.0) -> tuple[float, float]:
        """Give the cycles that a point of the sum takes in a tile, and those that it waits.

        Lines that come from L2 while it multiplies keep L1 from giving loads.
        """
        if plan.sums_in_lanes:
            return self._dot_pace((tall, vectors), plan.packs_left, lines)
        core, real = self.core, self._real[plan.packs_left, plan.packs_right]
        loads = (tall + vectors) / max(2.0, core.load_per_cycle) + lines * LINE / core.wide_l2_rate
        issue = real * max(tall * vectors / core.fma_per_cycle, loads)
        return issue, max(0.0, self._latency - issue)

    def _dot_pace(
        self, tile: tuple[int, int], packs_left: bool, lines: float
    ) -> tuple[float, float]:
        """Give the same where lanes hold points of the sum; vectors in two lines take two loads."""
        core, (tall, wide), (left, right) = self.core, tile, self._split
        loads = (tall * (1 + left * (not packs_left)) + wide * (1 + right)) / core.load_per_cycle
        loads += lines * core.lanes * LINE / core.wide_l2_rate
        issue = max(tall * wide / core.fma_per_cycle, loads)
        return issue / core.lanes, max(0.0, self._latency - issue) / core.lanes

    def _vectors(self, plan: Plan, wide: int) -> int:
        """Count the vectors that a tile reads of so many columns at each step of its sum."""
        return wide if plan.sums_in_lanes else -(-wide // self.core.lanes)

    def _spreads(self, plan: Plan, vectors: int) -> int:
        """Count instructions that spread an element of the left operand, as far as they cost."""
        if plan.sums_in_lanes or not (vectors > 1 or self.core.is_narrow):
            return 0
        return ALONE if vectors == 1 else 1

    def slid(self, plan: Plan, threads: int) -> float:
        """Estimate what the slowest thread takes for a window that slides."""
        task, core = self.task, self.core
        jobs = self._batch_size(plan)
        down, across = (task.size(dim) for dim in plan.cols.dims)
        far, near = (task.size(dim) for dim in plan.sums.dims)
        vectors, halves = -(-across // plan.tile_cols), core.lanes // plan.tile_cols
        step = abs(task.right.step(plan.cols.dims[1]))
        rows, taps = plan.tile_rows, far * near
        tiles = -(-down // rows)
        reads: float = (step * (rows - 1) + far) * near
        if step == 1:  # most cross lines
            n_bytes = plan.tile_cols * max(LEAST_BYTES, self.lines.element_bytes)
            reads *= (1 + CROSSING * n_bytes / LINE) / core.load_per_cycle
        else:
            reads *= APART_READ
        wide, begun = 1, 0.0
        if taps > KEPT_TAPS:
            wide = strip_vectors(across, rows, plan.tile_cols)
            begun = (2 * rows - 1) * self._costs["strip"] * vectors / wide
        if taps > KEPT_TAPS or rows + taps >= core.registers:  # weights are read again
            reads += taps * rows / wide / core.load_per_cycle
        sums = rows * taps / core.fma_per_cycle
        tile = max(sums, reads) / halves * self._costs["issue"]
        edges = min(vectors, 2)
        plane = tiles * (vectors * tile + begun + edges * self._costs["edge"])
        lines = (down * across * (1 + step**2)) * self.lines.element_bytes / LINE
        if jobs * lines * LINE > core.l2_bytes:
            plane += lines * self._costs["pass"]
        return -(-jobs // threads) * plane

    def counts(self, plan: Plan) -> Counts:
        """Count what a plan does, whoever does it."""
        *_, found = self._counted(plan)
        return found

    def estimates(self, plan: Plan) -> Iterator[tuple[float, Counts | None]]:
        """Estimate what a plan takes on one thread, each time closer; at last give its counts.

        First what blocks move before their tiles begin, then with these, from the largest blocks
        alone.  Others are taken to cost as much a point.
        """
        rows, *others = (self.blocks.points(walk) for walk in (plan.rows, plan.cols, plan.sums))
        every = self._batch_size(plan) * math.prod(others)
        counting = self._counted(plan)
        around = self._all(next(counting))
        moved = self._all(next(counting)) - around
        yield every * (around + rows * moved), None
        block = self._all(next(counting)) - around
        yield every * (around + rows * block), None
        *_, counts = counting
        yield math.nan, counts

    def _counted(self, plan: Plan) -> Iterator[Counts]:
        """Count what a plan does, the largest blocks first; give what was counted, at last all.

        First what surrounds blocks of rows, then what one of them moves, then its tiles.
        """
        task, found = self.task, dict.fromkeys(COSTS, 0.0)
        rows, cols, sums = (self.blocks.of(walk) for walk in (plan.rows, plan.cols, plan.sums))
        counts = tuple(map(self.blocks.n_blocks, (plan.rows, plan.cols, plan.sums)))
        every = self.blocks.whole(plan.rows)
        for sum_dims, sum_times in sums:
            left = self.lines.of(task.left, every + sum_dims).lines * LINE
            for col_dims, col_times in cols:
                times = float(col_times * sum_times)
                right, source = self.packing.right(found, plan, (col_dims, sum_dims), times)
                out = self.lines.of(task.out, every + col_dims)
                self._output(found, out, times, (counts[2], left + right))
                kept = right, out.lines * LINE, left
                yield found
                for row_dims, n in rows:
                    dims = row_dims, col_dims, sum_dims
                    points = length(row_dims), length(col_dims), length(sum_dims)
                    block = _Block(*dims, points, times * n, counts, kept, source)
                    block = self._left(found, plan, block)
                    if plan.packs_left:
                        self.packing.left(found, plan, (row_dims, sum_dims), block.times)
                    yield found
                    self._block(found, plan, block)
                    yield found
        yield self._batched(found, plan)

    def _batched(self, found: Counts, plan: Plan) -> Counts:
        batch = self._batch_size(plan)
        return {name: batch * n for name, n in found.items()} if batch > 1 else found

    def _output(
        self, found: Counts, out: Footprint, times: float, around: tuple[int, float]
    ) -> None:
        """Count lines of the output over all rows: first written, then added to."""
        n_sums, others = around
        take(found, "write", self.lines.home, out.lines * times / n_sums)
        level = max(self.lines.level(out.lines * LINE + others), out.level)
        take(found, "again", level, out.lines * times * (1 - 1 / n_sums))

    def _left(self, found: Counts, plan: Plan, block: _Block) -> _Block:
        """Count how a block of the left operand comes in; say how it lies."""
        task, times = self.task, block.times
        (n_rows, _, depth), (n_row_blocks, n_col_blocks, n_sums) = block.points, block.counts
        kept = sum(block.kept)
        source = self.lines.of(task.left, block.rows + block.sums)
        lines = min(source.lines, block.kept[2] / LINE / n_row_blocks)  # new to this block of rows
        is_held = self.lines.stays(source.fill, block.kept[0])
        both = self.lines.level(block.kept[0] + 2 * source.lines * LINE)
        before = source.lines - lines if both > 1 or not is_held else 0.0
        if is_held and n_sums > 1 and self.lines.level(kept) < 2:  # and by sums
            whole = self.lines.of(task.left, self.blocks.whole(plan.rows, plan.sums)).lines
            lines = min(lines, whole / n_sums / n_row_blocks)
        kind = "read"
        if self.lines.part(task.left, block.rows, min(self.core.lanes, n_rows), block.sums).is_far:
            kind = "ahead" if self._is_along and asks_rows(task, plan) else "far"
        if n_sums > 1:
            kept += self.lines.sizes[task.left.name] - block.kept[2]
        later = max(1, self.lines.level(kept)) if n_col_blocks > 1 else self.lines.home
        first = kind if source.is_far else "read"
        runs = lines * LINE / source.run_bytes if first == "read" and source.is_apart else 0.0
        for level, share in ((self.lines.home, 1 / n_col_blocks), (later, 1 - 1 / n_col_blocks)):
            take(found, first, level, lines * times * share)
            take(found, first, min(level, max(2, both)), before * times * share)
            take(found, "start", level, runs * times * share)
        if not plan.packs_left:
            left, level, fill = source.lines * LINE, source.level, source.fill
            return block._replace(left=left, level=level, fill=fill, kind=kind)
        return block._replace(left=float(n_rows * depth * self.lines.element_bytes), kind=kind)

    def _block(self, found: Counts, plan: Plan, block: _Block) -> None:
        """Count what the register tiles of a block do."""
        n_rows, n_cols, depth = block.points
        panel = plan.tile_cols * depth * self.lines.element_bytes
        is_lost = not self.lines.stays(block.fill, panel)
        level = max(self.lines.level(block.left + panel), block.level, 2 * is_lost)
        n_tiles = -(-n_cols // plan.tile_cols)
        for wide, n in cut(n_cols, plan.tile_cols):
            pages, lines = self._panels(found, plan, block, (wide, n))
            self._tiles(found, plan, block, (wide, n), (level, pages, lines))
        if level > 1:
            walked = sum(
                n * self._left_tile(plan, block, tall).lines
                for tall, n in self.blocks.heights(plan, n_rows)
            )
            first = block.left / LINE if is_lost else walked  # tiles share no lost lines
            again = max(0.0, walked * n_tiles - first)
            take(found, block.kind, level, block.times * again)

    def _block_level(self, block: _Block) -> int:
        """Say where a block is of which all was used."""
        n_rows, n_cols, _ = block.points
        n_bytes = block.kept[0] + block.left + n_rows * n_cols * self.lines.element_bytes
        return self.packing.level(n_bytes, block.source)

    def _panel(self, plan: Plan, block: _Block, wide: int) -> Footprint:
        """Give the lines of the right operand that a register tile reads."""
        if plan.packs_right:
            return self.packing.panel(plan, block.points[2], wide)
        return self.lines.part(self.task.right, block.cols, wide, block.sums)

    def _lift(self, plan: Plan, tall: int) -> str:
        """Name what lines of the left operand cost that L1 does not hold."""
        if tall <= MANY_ROWS:
            return "rise"
        return "heap" if plan.packs_left else "many" if self._is_along else "rise"

    def _crossed(self, sums: list[str]) -> float:
        """Say which share of the vectors of the right operand, read in place, lie in two lines."""
        size, right = self.lines.element_bytes, self.task.right
        return self._across(math.gcd(LINE, *(right.step(dim) * size for dim in sums)))

    def _across(self, step: int) -> float:
        """Say which share of vectors lie in two lines that begin at multiples of some bytes."""
        n_inside = (LINE - self.core.lanes * self.lines.element_bytes) // step + 1
        return 1 - n_inside * step / LINE

    def _least(self, plan: Plan, wide: int) -> float:
        """Give the cycles at least from one line of columns that L2 gives to the next.

        Where columns lie apart for each point of the sum; of those in place more lines are
        counted than there are where all rows begin with a line.
        """
        least = self.core.l2_line_cycles
        if plan.sums_in_lanes or not least or (plan.packs_right and is_panel(self.task, plan)):
            return 0.0
        least *= self._real[plan.packs_left, plan.packs_right]
        right, size = self.task.right, self.lines.element_bytes
        if plan.packs_right or any(abs(right.step(dim)) == 1 for dim in self._sums):
            return least
        apart = [step * size for _, step in right.steps if abs(step) != 1]
        lines = lined(wide * size, plan.tile_cols * size, *apart)
        return least * lines / (1 + (wide - 1) * size / LINE)

    def _in_two_lines(self, operand: Operand) -> float:
        """Say which share of vectors along the sum lie in two lines, wherever rows begin."""
        size, sums = self.lines.element_bytes, {*self._sums}
        steps = [step * size for dim, step in operand.steps if dim not in sums and step]
        return 0.0 if all(step % LINE == 0 for step in steps) else self._across(size)

    def _left_tile(self, plan: Plan, block: _Block, tall: int) -> Footprint:
        if plan.packs_left:
            n_bytes = tall * block.points[2] * self.lines.element_bytes
            return Footprint(n_bytes / LINE, n_bytes, 0, 0, 0)
        return self.lines.part(self.task.left, block.rows, tall, block.sums)

    def _panels(
        self, found: Counts, plan: Plan, block: _Block, part: tuple[int, int]
    ) -> tuple[float, tuple[float, float]]:
        """Count vectors that register tiles of a width read.

        Give the pages that a tile reads, and the lines that the first tile of a
        block and later ones find outside L1.
        """
        task, (wide, n) = self.task, part
        (n_rows, n_cols, _), times = block.points, block.times * n
        tall, _ = self.blocks.heights(plan, n_rows)[0]
        tile, panel = self._left_tile(plan, block, tall), self._panel(plan, block, wide)
        level = max(self.lines.level((panel.lines + tile.lines) * LINE), panel.level)
        asks = panel.level < 2 and asks_beside(task, plan, self.lines.vector_bytes)
        n_tall = -(-n_rows // tall)
        again = times * panel.lines * (n_tall - 1) if level else 0.0
        n_row_blocks, first = block.counts[0], self._block_level(block)
        if first >= 1:
            found["near"] += times * panel.lines
        if first >= 2:
            if plan.packs_right:
                share = 1 - plan.is_right_given / n_row_blocks
                take(found, "spill", first, times * panel.lines * share)
            else:
                again_far = times * panel.lines * (1 - 1 / n_row_blocks)
                first_tile = wide / n_cols if asks else 1.0  # nothing asks for a block's first
                take(found, "far", first, again_far * first_tile)
                take(found, "next", first, again_far * (1 - first_tile))
        found["near"] += again
        take(found, "read" if plan.packs_right else "far", level, again)
        if not (plan.packs_right or plan.sums_in_lanes):
            vectors = -(-wide // self.core.lanes)
            found["cross"] += times * n_tall * block.points[2] * vectors * self._crossing
        if not plan.packs_right and wide == min(plan.tile_cols, n_cols):
            self._first_read(found, plan, block, (panel, wide if asks else 0))
        outside = panel.lines * (first >= 1), panel.lines * (level >= 1)
        return tile.pages + (0 if plan.packs_right else panel.pages), outside

    def _first_read(
        self, found: Counts, plan: Plan, block: _Block, part: tuple[Footprint, int]
    ) -> None:
        """Count how lines of the right operand come in that a block reads in place.

        ``part`` is what a tile reads, and its width, if tiles ask for what is beside.
        """
        (_, n_cols, depth), (panel, asking) = block.points, part
        source = self.lines.of(self.task.right, block.cols + block.sums)
        is_far = panel.is_far and depth > MOST_FOLLOWED
        hops = source.is_apart and source.run_bytes < PAGE and depth > 1
        is_met = block.counts[2] > 1 or self.blocks.n_outer(plan.cols) > 1
        n_before = 1 if is_met else block.counts[1]  # blocks that go on where one ends
        for level, each in self.packing.source_lines(plan, source, block.sums):
            lines = each * block.times / block.counts[0]
            if asking:
                alone = lines * asking / n_cols / n_before
                take(found, "next", level, lines - alone)
                lines = alone
            take(found, "far" if is_far else "read", level, lines)
            if is_far:
                take(found, "leap", level, lines * LINE / panel.run_bytes)
            elif hops:
                take(found, "hop", level, lines * LINE / source.run_bytes)

    def _tiles(
        self,
        found: Counts,
        plan: Plan,
        block: _Block,
        part: tuple[int, int],
        outside: tuple[int, float, tuple[float, float]],
    ) -> None:
        """Count what the register tiles of a width do."""
        task, (wide, n_wide), (level, pages, (fresh, again)) = self.task, part, outside
        n_rows, _, depth = block.points
        vectors = self._vectors(plan, wide)
        each = block.times * n_wide
        first = int(fresh != again)
        is_copied = plan.packs_right or plan.sums_in_lanes
        one_set = 0.0 if is_copied else self._one_set
        least = self._least(plan, wide)
        for tall, n_tall in self.blocks.heights(plan, n_rows):
            n = each * n_tall
            left = self._left_tile(plan, block, tall).lines
            for lines, n_tiles in (
                ((fresh, 1), (again, n_tall - 1)) if first else ((again, n_tall),)
            ):
                if not n_tiles:
                    continue
                near = (lines + left * (level >= 1)) / depth
                issue, wait = self._pace(plan, tall, vectors, near)
                issue = max(issue, least * lines / depth)
                if lines > 0 and one_set:
                    issue = max(issue + ONE_SET_WAIT, one_set)
                found["issue"] += each * n_tiles * depth * issue
                found["latency"] += each * n_tiles * depth * wait
            first = 0
            found["tile"] += n
            found["spread"] += n * depth * tall * self._spreads(plan, vectors)
            found["dot"] += n * tall * wide * plan.sums_in_lanes
            found["limit"] += n * depth * self._begun[plan.packs_left, plan.packs_right]
            found["mask"] += n * bool(task.right.guards and not plan.packs_right)
            if level >= 1:
                found[self._lift(plan, tall)] += n * left
                if not plan.sums_in_lanes:
                    found["rush"] += n * max(0.0, left - MOST_LINES * depth * issue)
            if pages > MANY_PAGES:
                found["page"] += n * pages
            if plan.sums_in_lanes:
                found["clash"] += n * depth * self._lost(task.right, block.cols, wide)
            else:
                found["clash"] += n * depth * self._clashes(plan, block.rows, tall)
            self._written(found, block, (tall, wide), n * (1 if block.counts[2] == 1 else 2))

    def _limits(self, packs_left: bool, packs_right: bool) -> float:
        """Count for a point of the sum how often a tile begins its loops over taps."""
        sides = (packs_left, self.task.left), (packs_right, self.task.right)
        taps = [
            self.task.size(dim)
            for is_packed, operand in sides
            for guard in (() if is_packed else operand.guards)
            for dim, _ in guard.steps
            if dim in self._sums
        ]
        return 1 / math.prod(taps) if taps else 0.0

    def _clashes(self, plan: Plan, rows: Dims, tall: int) -> float:
        """Count the left lines of a point of the sum that others of their sets push out of L1."""
        is_elsewhere = plan.packs_left or plan.sums_in_lanes
        return 0.0 if is_elsewhere else self._lost(self.task.left, rows, tall, 1)

    def _lost(self, operand: Operand, dims: Dims, n: int, others: int = 0) -> float:
        """Count such lines of some points of a walk, of which each is a run along the sum.

        ``others`` are the ways of these sets that lines of another operand pass through.
        """
        if length(dims) == 1:
            return 0.0
        step = abs(operand.step(dims[-1][0])) * self.lines.element_bytes
        spots = max(math.gcd(step, PAGE), LINE) / PAGE
        share = 1.0 if n * spots > self.core.ways else SQUEEZED
        is_lost = step >= 1024 and n * spots + others > self.core.ways
        return share * n / self.core.lanes * is_lost

    def _written(self, found: Counts, block: _Block, tile: tuple[int, int], n: float) -> None:
        """Count how a tile's sums are written; and read, if they are twice as many."""
        task, core, size, (tall, wide) = self.task, self.core, self.lines.element_bytes, tile
        stores, lines, _ = self._stored(block.rows, block.cols, tile)
        for name, times in stores.items():
            found[name] += n * times
        if not lines:
            return
        dim, last = block.cols[-1] if block.cols else ("", 0)
        own = self.lines.part(task.out, block.rows, tall, ((dim, min(last, wide)),) if dim else ())
        column = self.lines.part(task.out, block.cols, wide, block.rows)
        panel = block.points[2] * -(-wide // core.lanes) * core.lanes * size
        if own.level:
            found["crowd"] += n * lines
        elif max(self.lines.level(column.lines * LINE + panel), column.level):
            found["touch"] += n * lines

    def _stored(self, rows: Dims, cols: Dims, tile: tuple[int, int]) -> tuple[Counts, float, float]:
        """Count how the sums of a tile are written once.

        Give the lines, if they lie together, and the cycles, too.
        """
        key = rows, cols, tile
        if key in self._stores:
            return self._stores[key]
        task, core, (tall, wide) = self.task, self.core, tile
        vectors, lines = -(-wide // core.lanes), 0.0
        found: Counts = (
            {"burst": max(0, tall * vectors - MOST_WAITING)} if self.lines.home > 1 else {}
        )
        if self.lines.step(task.out, cols) == 1:
            found |= {"sum": tall * vectors, "masked": tall * bool(wide % core.lanes)}
            lines = tall * self._written_lines(wide)
            if length(rows) >= MANY_STREAMS and self.lines.sizes[task.out.name] > core.l2_bytes:
                found["streams"] = tall
        elif self.lines.step(task.out, rows) == 1:
            squares = -(-tall // core.lanes)
            found |= {"square": squares * vectors, "turn": squares * wide}
            lines = wide * self._written_lines(tall)
        else:
            found["scatter"] = tall * wide
        self._stores[key] = found, lines, self._paid(found)
        return self._stores[key]

    def _written_lines(self, n: int) -> float:
        """Count the lines that sums side by side lie in, on average over the output's tiles."""
        out, size = self.task.out, self.task.out.element.n_bytes
        steps = [step * size for _, step in out.steps if abs(step) != 1]
        return lined(n * size, n * size, *steps)


def _widths(n_cols: int, tile: int, _: int) -> list[tuple[int, int]]:
    return cut(n_cols, tile)
