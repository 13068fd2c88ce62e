"""What a plan costs on one core: events counted from how it is cut, each with its cycles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from operator import mul
from typing import NamedTuple

from loopsched.codegen.contraction import Contraction, Guard, Operand
from loopsched.codegen.core import COSTS, NARROW_WAIT, Core
from loopsched.codegen.memory import LINE, PAGE
from loopsched.codegen.plan import (
    FAR_BYTES,
    LEAST_BYTES,
    Plan,
    Walk,
    asks_beside,
    asks_for_next,
    chunks,
    cut,
    heights,
    inner_sizes,
    is_panel,
    length,
    merged_step,
    packed_pitch,
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
_LEVELS = ("", "_l2", "_l3", "_dram")
"""Where a line comes from."""

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
SHORT_RUN = 512
"""Runs of fewer bytes, half a page apart, are not foreseen by hardware."""
PARTED = 1.01
"""What threads take that write planes of the same columns, of what they take without that.

Hardware fetches ahead plane by plane, up to the next thread's, which then waits for its lines.
Convolutions of two threads took 1.4 % longer so (22 layers on Zen 4), 8 % where these share no
last cache (6), 10 % on Emerald Rapids (13).
"""
FULL = 0.75, 0.8, 0.5
"""Shares of L1, L2 and the last cache that what is used again may fill."""


_Dims = tuple[tuple[str, int], ...]
_Part = tuple[_Dims, int, int]
_Parting = Callable[[int, int, int], list[tuple[int, int]]]
"""Cuts so many points into tiles of a size, the largest block having so many."""
Counts = dict[str, float]
"""How often each of `COSTS` is paid."""


class Footprint(NamedTuple):
    """Lines that a box of points touches, and how they lie.

    ``level`` is the nearest cache whose sets hold them all: 0 for L1, at most 2; ``fill``
    the share of their sets in L2 that they take.
    """

    lines: float
    run_bytes: float
    step_bytes: int
    level: int
    pages: float
    fill: float = 0.0

    @property
    def is_apart(self) -> bool:
        """Whether its runs lie in pages of their own, about."""
        return self.step_bytes >= PAGE // 2

    @property
    def is_far(self) -> bool:
        """Whether its runs lie where hardware does not foresee them."""
        return self.run_bytes < SHORT_RUN and self.is_apart


class _Block(NamedTuple):
    """A shape of blocks: its points, how many there are of it, and what surrounds it."""

    rows: _Dims
    cols: _Dims
    sums: _Dims
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
        self._costs, self._latency = core.costs, core.fma_latency
        self._each = list(self._costs.values())
        self._apart = tuple(
            [cost * (is_copy == (name in _COPIES)) for name, cost in self._costs.items()]
            for is_copy in (False, True)
        )
        """What events cost that threads share, and those that each of them pays."""
        if core.is_narrow:
            self._latency += NARROW_WAIT
        self.element_bytes = task.left.element.n_bytes
        self._vector_bytes = core.lanes * max(LEAST_BYTES, self.element_bytes)
        kinds = roles(task)
        self._sums = sorted(kinds["sums"], key=lambda dim: -abs(task.left.step(dim)))
        sums = [dim for dim in self._sums if task.size(dim) > 1]
        self._is_along = bool(sums) and task.left.step(sums[-1]) == 1
        self._crossing = self._crossed(sums)
        apart = task.right.step(sums[-1]) * self.element_bytes if sums else 0
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
        self._sizes = {one.name: self._bytes(one) for one in task.operands}
        sizes = core.l1_bytes, core.l2_bytes, core.last_bytes
        self._full = tuple(share * size for share, size in zip(FULL, sizes, strict=True))
        self._home = self._level(sum(self._sizes.values()))
        self._summed: dict[tuple[object, ...], tuple[float, float, float]] = {}
        self._paced: dict[tuple[object, ...], float] = {}
        self._parts: dict[tuple[Walk, int, _Parting], list[_Part]] = {}
        self._more: dict[Walk, float] = {}
        self._stores: dict[tuple[object, ...], tuple[Counts, float, float]] = {}
        self._packings: dict[tuple[object, ...], tuple[Counts, tuple[float, float]]] = {}
        self._pitches: dict[tuple[Walk, int], int] = {}
        self._numbers: dict[Walk, int] = {}
        self._shares: dict[tuple[object, ...], float] = {}
        self._known: dict[tuple[str, _Dims], Footprint] = {}
        self._tiled: dict[tuple[str, _Dims, int, _Dims], Footprint] = {}
        self._walks: dict[Walk, list[tuple[_Dims, int]]] = {}
        self._merged: dict[tuple[str, _Dims], int | None] = {}

    def _inside(self, guard: Guard) -> float:
        """Say at which share of an operand's points a guard holds."""
        positions = [guard.offset]
        for dim, step in guard.steps:
            positions = [one + at * step for one in positions for at in range(self.task.size(dim))]
        return sum(0 <= one < guard.size for one in positions) / len(positions)

    def _bytes(self, operand: Operand) -> int:
        """Count what is read or written of an operand."""
        moves = [(abs(step), self.task.size(dim)) for dim, step in operand.steps]
        points = math.prod(size for step, size in moves if step)
        return min(points, 1 + sum(step * (size - 1) for step, size in moves)) * self.element_bytes

    def cycles(
        self, plan: Plan, threads: int = 1, paid: tuple[float, float] | None = None
    ) -> float:
        """Estimate what the slowest thread takes; ``paid`` is what the plan's counts cost."""
        shared, copies = paid or self.paid(self.counts(plan))
        if threads == 1:
            return shared + copies
        n_rows = self._n_blocks(plan.rows)
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
        n_jobs = self._batch_size(plan) * self._n_blocks(plan.cols)
        out, rows = self.task.out, (dim for dim, size in self._whole(plan.rows) if size > 1)
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
        n_sums = self._n_blocks(plan.sums)
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

    def _point(self, plan: Plan, rows: _Dims, tile: tuple[int, int]) -> float:
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
            blocks = self._blocks(walk)
            self._parts[key] = [
                (dims, size, n * each)
                for dims, n in blocks
                for size, each in parts_of(length(dims), tile, length(blocks[0][0]))
            ]
        return self._parts[key]

    def _heights(self, plan: Plan, n_rows: int) -> list[tuple[int, int]]:
        """Cut rows of a block into register tiles."""
        return heights(n_rows, plan.tile_rows, length(self._blocks(plan.rows)[0][0]))

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
            n_bytes = plan.tile_cols * max(LEAST_BYTES, self.element_bytes)
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
        lines = (down * across * (1 + step**2)) * self.element_bytes / LINE
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
        rows, *others = (self._points(walk) for walk in (plan.rows, plan.cols, plan.sums))
        every = self._batch_size(plan) * math.prod(others)
        counting = self._counted(plan)
        around = self._all(next(counting))
        moved = self._all(next(counting)) - around
        yield every * (around + rows * moved), None
        block = self._all(next(counting)) - around
        yield every * (around + rows * block), None
        *_, counts = counting
        yield math.nan, counts

    def _points(self, walk: Walk) -> float:
        """Say how many times as many points a walk has as its largest blocks."""
        if walk not in self._more:
            (dims, n), *_ = self._blocks(walk)
            self._more[walk] = length(self._whole(walk)) / (length(dims) * n)
        return self._more[walk]

    def _counted(self, plan: Plan) -> Iterator[Counts]:
        """Count what a plan does, the largest blocks first; give what was counted, at last all.

        First what surrounds blocks of rows, then what one of them moves, then its tiles.
        """
        task, found = self.task, dict.fromkeys(COSTS, 0.0)
        rows, cols, sums = (self._blocks(walk) for walk in (plan.rows, plan.cols, plan.sums))
        counts = tuple(map(self._n_blocks, (plan.rows, plan.cols, plan.sums)))
        every = self._whole(plan.rows)
        for sum_dims, sum_times in sums:
            left = self.footprint(task.left, every + sum_dims).lines * LINE
            for col_dims, col_times in cols:
                times = float(col_times * sum_times)
                right, source = self._right(found, plan, (col_dims, sum_dims), times)
                out = self.footprint(task.out, every + col_dims)
                self._output(found, out, times, (counts[2], left + right))
                kept = right, out.lines * LINE, left
                yield found
                for row_dims, n in rows:
                    dims = row_dims, col_dims, sum_dims
                    points = length(row_dims), length(col_dims), length(sum_dims)
                    block = _Block(*dims, points, times * n, counts, kept, source)
                    block = self._left(found, plan, block)
                    if plan.packs_left:
                        self._copy_left(found, plan, block)
                    yield found
                    self._block(found, plan, block)
                    yield found
        yield self._batched(found, plan)

    def _batched(self, found: Counts, plan: Plan) -> Counts:
        batch = self._batch_size(plan)
        return {name: batch * n for name, n in found.items()} if batch > 1 else found

    def _blocks(self, walk: Walk) -> list[tuple[_Dims, int]]:
        """List the shapes of blocks, and how many there are of each."""
        found = self._walks.get(walk)
        if found is None:
            task = self.task
            outer = self._n_outer(walk)
            n_whole, block, rest = chunks(task, walk)
            every = ((block, outer * n_whole), (rest, outer if rest else 0))
            found = [(tuple(inner_sizes(task, walk, size)), n) for size, n in every if n]
            self._walks[walk] = found
        return found

    def _n_blocks(self, walk: Walk) -> int:
        if walk not in self._numbers:
            self._numbers[walk] = sum(n for _, n in self._blocks(walk))
        return self._numbers[walk]

    def _n_outer(self, walk: Walk) -> int:
        return math.prod(self.task.size(dim) for dim in walk.outer)

    def _whole(self, *walks: Walk) -> _Dims:
        return tuple((dim, self.task.size(dim)) for walk in walks for dim in walk.dims)

    # Lines, and where they come from

    def footprint(self, operand: Operand, dims: _Dims) -> Footprint:
        """Count the lines of a box of points: runs, and runs of runs."""
        key = operand.name, dims
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._lines(operand, dims)
        return found

    def _lines(self, operand: Operand, dims: _Dims) -> Footprint:
        size = self.element_bytes
        moves = sorted((abs(operand.step(dim)), n) for dim, n in dims if n > 1)
        span, levels = 1, list[tuple[int, int]]()
        for step, n in moves:
            if not step:
                continue
            if not levels and (step <= span or step * size < LINE):
                span += step * (n - 1)
            elif levels and step < math.prod(levels[-1]) and step % levels[-1][0] == 0:
                levels[-1] = levels[-1][0], levels[-1][1] + step // levels[-1][0] * (n - 1)
            else:
                levels.append((step, n))
        each = 1 + (span - 1) * size / LINE  # wherever a run begins in its first line
        runs = math.prod(n for _, n in levels)
        steps = [(step * size, n) for step, n in levels]
        far = max((step for step, _ in steps), default=0)
        level, fill, core = 0, 0.0, self.core
        caches = (core.l1_bytes, core.ways), (core.l2_bytes, core.l2_ways)
        for nearest, (capacity, ways) in enumerate(caches, 1):
            way = capacity // ways
            spots = math.prod(min(n, way // math.gcd(step, way)) for step, n in steps)
            fill = runs * each / (ways * min(way // LINE, spots * math.ceil(each)))
            if fill > 1:
                level = nearest
        is_apart = far >= PAGE // 2
        near, n_apart = span * size, 1  # bytes from end to end where steps are less than a page
        for step, n in steps:
            near, n_apart = (near + step * (n - 1), n_apart) if step < PAGE else (near, n_apart * n)
        pages = n_apart * max(1, near / PAGE) if is_apart else max(1, runs * each * LINE / PAGE)
        return Footprint(runs * each, span * size, far, level, pages, fill)

    def _part(self, operand: Operand, dims: _Dims, n: int, others: _Dims) -> Footprint:
        """Count the lines of some points of a walk, and all of others."""
        key = operand.name, dims, n, others
        found = self._tiled.get(key)
        if found is None:
            taken: _Dims = ()
            for dim, size in reversed(dims):
                taken = ((dim, min(size, max(1, n))), *taken)
                n = -(-n // size)
            found = self._tiled[key] = self.footprint(operand, taken + others)
        return found

    def _step(self, operand: Operand, dims: _Dims) -> int | None:
        """Find the step by which an operand moves over dimensions walked as one."""
        key = operand.name, dims
        if key not in self._merged:
            self._merged[key] = merged_step(operand, list(dims))
        return self._merged[key]

    def _level(self, n_bytes: float) -> int:
        """Say which cache holds so much that is used again: 0 is L1, 3 is memory."""
        first, second, last = self._full
        return 0 if n_bytes <= first else 1 if n_bytes <= second else 2 if n_bytes <= last else 3

    @staticmethod
    def _take(found: Counts, what: str, level: int, lines: float) -> None:
        name = what + _LEVELS[level]
        if name in found:
            found[name] += lines

    def _output(
        self, found: Counts, out: Footprint, times: float, around: tuple[int, float]
    ) -> None:
        """Count lines of the output over all rows: first written, then added to."""
        n_sums, others = around
        self._take(found, "write", self._home, out.lines * times / n_sums)
        level = max(self._level(out.lines * LINE + others), out.level)
        self._take(found, "again", level, out.lines * times * (1 - 1 / n_sums))

    # Packing

    def _right(
        self, found: Counts, plan: Plan, dims: tuple[_Dims, _Dims], times: float
    ) -> tuple[float, float]:
        """Count what it takes to pack blocks of the right operand.

        Give the bytes of a block, and those that packing it reads.
        """
        if not plan.packs_right:
            return self.footprint(self.task.right, dims[0] + dims[1]).lines * LINE, 0.0
        kind = plan.is_right_given, plan.sums_in_lanes
        key = dims, plan.tile_cols, plan.cols, plan.sums, kind
        if key not in self._packings:
            each = dict.fromkeys(COSTS, 0.0)
            sizes = self._pack_right(each, plan, dims)
            self._packings[key] = {name: n for name, n in each.items() if n}, sizes
        once, sizes = self._packings[key]
        for name, n in once.items():
            found[name] += n * times
        return sizes

    def _pack_right(
        self, found: Counts, plan: Plan, dims: tuple[_Dims, _Dims]
    ) -> tuple[float, float]:
        """Count the same for one block."""
        (cols, sums), task = dims, self.task
        source = self.footprint(task.right, cols + sums)
        width = -(-length(cols) // plan.tile_cols) * plan.tile_cols
        block = float(width * length(sums) * self.element_bytes)
        if plan.is_right_given:
            kind = "read" if self._home < 3 else "ahead"
            self._take(found, kind, self._home, block / LINE)
            return block, 0.0
        turns = self._turns_right(cols, sums)
        is_asked = turns and asks_for_next(task, plan, self._vector_bytes)
        kind = "ahead" if self._asks(plan) else "far" if source.is_far else "read"
        if is_asked:
            kind = "next"
        for level, lines in self._source_lines(plan, source, sums):
            self._take(found, kind, level, lines)
        level = self._packed_level(block, source.lines * LINE)
        self._take(found, "pack", level, block / LINE)
        if turns:
            squares = math.prod(-(-length(one) // self.core.lanes) for one in dims)
            found["transpose_near" if is_asked else "transpose"] += squares
        else:
            self._copy_right(found, plan, dims)
        return block, source.lines * LINE

    def _turns_right(self, cols: _Dims, sums: _Dims) -> bool:
        """Whether packing the right operand transposes."""
        right, step = self.task.right, self._step(self.task.right, cols)
        return not right.guards and step not in (None, 1) and self._step(right, sums) == 1

    def _packed_level(self, n_bytes: float, source: float) -> int:
        """Say which cache holds what is packed; what it is read from pushes it out of the last."""
        level = self._level(n_bytes)
        return self._level(n_bytes + source) if level == 2 else level

    def _source_lines(
        self, plan: Plan, source: Footprint, sums: _Dims
    ) -> tuple[tuple[int, float], ...]:
        """Count lines of a block of the right operand, with the level that they come from.

        First those that are new, then those that the block before read, too, unless L2 has them.
        """
        n_blocks = self._n_blocks(plan.cols)
        whole = self.footprint(self.task.right, self._whole(plan.cols) + sums)
        new = min(source.lines, whole.lines / n_blocks)
        both = self._level(2 * source.lines * LINE)
        before = source.lines - new if both > 1 else 0.0
        return (self._home, new), (min(self._home, both), before)

    def _asks(self, plan: Plan) -> bool:
        """Whether copies of the right operand ask for lines of what comes later."""
        right, dims = self.task.right, inner_sizes(self.task, plan.cols, plan.cols.block)
        if right.guards or not dims or right.step(dims[-1][0]) != 1:
            return False
        steps = [abs(right.step(dim)) for dim in self._sums]
        return bool(steps) and min(steps) * self.element_bytes >= FAR_BYTES

    def _copy_right(self, found: Counts, plan: Plan, dims: tuple[_Dims, _Dims]) -> None:
        (cols, sums), right, lanes = dims, self.task.right, self.core.lanes
        width, depth, step = length(cols), length(sums), self._step(right, cols)
        if step is None or any(guard.step(dim) for guard in right.guards for dim, _ in cols):
            dim, run = cols[-1]
            self._runs(found, depth * (width // run), run, right.step(dim))
        else:
            for wide, n in cut(width, -(-plan.tile_cols // lanes) * lanes):
                self._runs(found, depth * n, wide, step)

    def _copy_left(self, found: Counts, plan: Plan, block: _Block) -> None:
        left, (n_rows, _, depth) = self.task.left, block.points
        sums = [dim for dim, size in block.sums if size > 1]
        rows = [dim for dim, size in block.rows if size > 1]
        step = self._step(left, block.rows)
        is_guarded = any(g.step(dim) for g in left.guards for dim in plan.rows.inner)
        if plan.sums_in_lanes:
            lanes, wide = self.core.lanes, self._step(left, block.sums)
            if step == 1 and wide is not None and not left.guards and min(n_rows, depth) >= lanes:
                found["transpose"] += block.times * -(-depth // lanes) * -(-n_rows // lanes)
            else:
                dim, run = block.sums[-1]
                self._runs(found, block.times * n_rows * depth / run, run, left.step(dim))
            return
        if sums and left.step(sums[-1]) != 1 and step is not None and not is_guarded:
            for tall, n in self._heights(plan, n_rows):
                self._runs(found, block.times * depth * n, tall, step)
            return
        is_wide = rows and (not sums or abs(left.step(rows[-1])) < abs(left.step(sums[-1])))
        walked = block.rows if is_wide else block.sums
        if walked:
            dim, run = walked[-1]
            self._runs(found, block.times * n_rows * depth / run, run, left.step(dim))

    def _runs(self, found: Counts, times: float, n: int, step: int) -> None:
        """Count copies of runs of some elements."""
        found["run"] += times
        if abs(step) in (1, 2):
            found["copy" if step == 1 else "apart"] += times * -(-n // self.core.lanes)
        else:
            found["gather"] += times * n

    # Blocks

    def _left(self, found: Counts, plan: Plan, block: _Block) -> _Block:
        """Count how a block of the left operand comes in; say how it lies."""
        task, times = self.task, block.times
        (n_rows, _, depth), (n_row_blocks, n_col_blocks, n_sums) = block.points, block.counts
        kept = sum(block.kept)
        source = self.footprint(task.left, block.rows + block.sums)
        lines = min(source.lines, block.kept[2] / LINE / n_row_blocks)  # new to this block of rows
        is_held = self._stays(source.fill, block.kept[0])
        both = self._level(block.kept[0] + 2 * source.lines * LINE)
        before = source.lines - lines if both > 1 or not is_held else 0.0
        if is_held and n_sums > 1 and self._level(kept) < 2:  # and by sums
            whole = self.footprint(task.left, self._whole(plan.rows, plan.sums)).lines
            lines = min(lines, whole / n_sums / n_row_blocks)
        kind = "read"
        if self._part(task.left, block.rows, min(self.core.lanes, n_rows), block.sums).is_far:
            is_asked = not plan.packs_left and not task.left.guards and self._is_along
            kind = "ahead" if is_asked else "far"
        if n_sums > 1:
            kept += self._sizes[task.left.name] - block.kept[2]
        later = max(1, self._level(kept)) if n_col_blocks > 1 else self._home
        first = kind if source.is_far else "read"
        runs = lines * LINE / source.run_bytes if first == "read" and source.is_apart else 0.0
        for level, share in ((self._home, 1 / n_col_blocks), (later, 1 - 1 / n_col_blocks)):
            self._take(found, first, level, lines * times * share)
            self._take(found, first, min(level, max(2, both)), before * times * share)
            self._take(found, "start", level, runs * times * share)
        if not plan.packs_left:
            left, level, fill = source.lines * LINE, source.level, source.fill
            return block._replace(left=left, level=level, fill=fill, kind=kind)
        return block._replace(left=float(n_rows * depth * self.element_bytes), kind=kind)

    def _stays(self, fill: float, n_bytes: float) -> bool:
        """Whether lines that take a share of their sets stay in L2 beside so many bytes."""
        return fill + n_bytes / self.core.l2_bytes <= FULL[1]

    def _block(self, found: Counts, plan: Plan, block: _Block) -> None:
        """Count what the register tiles of a block do."""
        n_rows, n_cols, depth = block.points
        panel = plan.tile_cols * depth * self.element_bytes
        is_lost = not self._stays(block.fill, panel)
        level = max(self._level(block.left + panel), block.level, 2 * is_lost)
        n_tiles = -(-n_cols // plan.tile_cols)
        for wide, n in cut(n_cols, plan.tile_cols):
            pages, lines = self._panels(found, plan, block, (wide, n))
            self._tiles(found, plan, block, (wide, n), (level, pages, lines))
        if level > 1:
            walked = sum(
                n * self._left_tile(plan, block, tall).lines
                for tall, n in self._heights(plan, n_rows)
            )
            first = block.left / LINE if is_lost else walked  # tiles share no lost lines
            again = max(0.0, walked * n_tiles - first)
            self._take(found, block.kind, level, block.times * again)

    def _block_level(self, block: _Block) -> int:
        """Say where a block is of which all was used."""
        n_rows, n_cols, _ = block.points
        n_bytes = block.kept[0] + block.left + n_rows * n_cols * self.element_bytes
        return self._packed_level(n_bytes, block.source)

    def _panel(self, plan: Plan, block: _Block, wide: int) -> Footprint:
        """Give the lines of the right operand that a register tile reads."""
        if not plan.packs_right:
            return self._part(self.task.right, block.cols, wide, block.sums)
        depth = block.points[2]
        run = -(-wide // self.core.lanes) * self._vector_bytes
        tile, pitch = plan.tile_cols // self.core.lanes * self._vector_bytes, self._pitch(plan)
        lines = run / LINE if run == pitch else self._lined(run, tile, pitch)
        return Footprint(depth * lines, float(depth * run), 0, 0, 0)

    def _pitch(self, plan: Plan) -> int:
        """Give the bytes between two rows of a packed block of the right operand."""
        key = plan.cols, plan.tile_cols
        if key not in self._pitches:
            lanes = self.core.lanes
            pitch = packed_pitch(self.task, plan, lanes, self._vector_bytes)
            self._pitches[key] = pitch // lanes * self._vector_bytes
        return self._pitches[key]

    @staticmethod
    def _lined(run: int, *apart: int) -> float:
        """Count the lines that so many bytes lie in, which begin so far apart."""
        return (run + LINE - math.gcd(LINE, run, *apart)) / LINE

    def _lift(self, plan: Plan, tall: int) -> str:
        """Name what lines of the left operand cost that L1 does not hold."""
        if tall <= MANY_ROWS:
            return "rise"
        return "heap" if plan.packs_left else "many" if self._is_along else "rise"

    def _crossed(self, sums: list[str]) -> float:
        """Say which share of the vectors of the right operand, read in place, lie in two lines."""
        size, right = self.element_bytes, self.task.right
        return self._across(math.gcd(LINE, *(right.step(dim) * size for dim in sums)))

    def _across(self, step: int) -> float:
        """Say which share of vectors lie in two lines that begin at multiples of some bytes."""
        n_inside = (LINE - self.core.lanes * self.element_bytes) // step + 1
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
        if plan.packs_right:
            return least
        right, size = self.task.right, self.element_bytes
        steps = [step * size for _, step in right.steps if abs(step) != 1]
        return least * self._lined(wide * size, *steps) / (1 + (wide - 1) * size / LINE)

    def _in_two_lines(self, operand: Operand) -> float:
        """Say which share of vectors along the sum lie in two lines, wherever rows begin."""
        size, sums = self.element_bytes, {*self._sums}
        steps = [step * size for dim, step in operand.steps if dim not in sums and step]
        return 0.0 if all(step % LINE == 0 for step in steps) else self._across(size)

    def _left_tile(self, plan: Plan, block: _Block, tall: int) -> Footprint:
        if plan.packs_left:
            n_bytes = tall * block.points[2] * self.element_bytes
            return Footprint(n_bytes / LINE, n_bytes, 0, 0, 0)
        return self._part(self.task.left, block.rows, tall, block.sums)

    def _panels(
        self, found: Counts, plan: Plan, block: _Block, part: tuple[int, int]
    ) -> tuple[float, tuple[float, float]]:
        """Count vectors that register tiles of a width read.

        Give the pages that a tile reads, and the lines that the first tile of a
        block and later ones find outside L1.
        """
        task, (wide, n) = self.task, part
        (n_rows, n_cols, _), times = block.points, block.times * n
        tall, _ = self._heights(plan, n_rows)[0]
        tile, panel = self._left_tile(plan, block, tall), self._panel(plan, block, wide)
        level = max(self._level((panel.lines + tile.lines) * LINE), panel.level)
        asks = panel.level < 2 and asks_beside(task, plan, self._vector_bytes)
        n_tall = -(-n_rows // tall)
        again = times * panel.lines * (n_tall - 1) if level else 0.0
        n_row_blocks, first = block.counts[0], self._block_level(block)
        if first >= 1:
            found["near"] += times * panel.lines
        if first >= 2:
            if plan.packs_right:
                share = 1 - plan.is_right_given / n_row_blocks
                self._take(found, "spill", first, times * panel.lines * share)
            else:
                again_far = times * panel.lines * (1 - 1 / n_row_blocks)
                first_tile = wide / n_cols if asks else 1.0  # nothing asks for a block's first
                self._take(found, "far", first, again_far * first_tile)
                self._take(found, "next", first, again_far * (1 - first_tile))
        found["near"] += again
        self._take(found, "read" if plan.packs_right else "far", level, again)
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
        source = self.footprint(self.task.right, block.cols + block.sums)
        is_far = panel.is_far and depth > MOST_FOLLOWED
        hops = source.is_apart and source.run_bytes < PAGE and depth > 1
        is_met = block.counts[2] > 1 or self._n_outer(plan.cols) > 1
        n_before = 1 if is_met else block.counts[1]  # blocks that go on where one ends
        for level, each in self._source_lines(plan, source, block.sums):
            lines = each * block.times / block.counts[0]
            if asking:
                alone = lines * asking / n_cols / n_before
                self._take(found, "next", level, lines - alone)
                lines = alone
            self._take(found, "far" if is_far else "read", level, lines)
            if is_far:
                self._take(found, "leap", level, lines * LINE / panel.run_bytes)
            elif hops:
                self._take(found, "hop", level, lines * LINE / source.run_bytes)

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
        for tall, n_tall in self._heights(plan, n_rows):
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

    def _clashes(self, plan: Plan, rows: _Dims, tall: int) -> float:
        """Count the left lines of a point of the sum that others of their sets push out of L1."""
        is_elsewhere = plan.packs_left or plan.sums_in_lanes
        return 0.0 if is_elsewhere else self._lost(self.task.left, rows, tall, 1)

    def _lost(self, operand: Operand, dims: _Dims, n: int, others: int = 0) -> float:
        """Count such lines of some points of a walk, of which each is a run along the sum.

        ``others`` are the ways of these sets that lines of another operand pass through.
        """
        if length(dims) == 1:
            return 0.0
        step = abs(operand.step(dims[-1][0])) * self.element_bytes
        spots = max(math.gcd(step, PAGE), LINE) / PAGE
        share = 1.0 if n * spots > self.core.ways else SQUEEZED
        is_lost = step >= 1024 and n * spots + others > self.core.ways
        return share * n / self.core.lanes * is_lost

    def _written(self, found: Counts, block: _Block, tile: tuple[int, int], n: float) -> None:
        """Count how a tile's sums are written; and read, if they are twice as many."""
        task, core, size, (tall, wide) = self.task, self.core, self.element_bytes, tile
        stores, lines, _ = self._stored(block.rows, block.cols, tile)
        for name, times in stores.items():
            found[name] += n * times
        if not lines:
            return
        dim, last = block.cols[-1] if block.cols else ("", 0)
        own = self._part(task.out, block.rows, tall, ((dim, min(last, wide)),) if dim else ())
        column = self._part(task.out, block.cols, wide, block.rows)
        panel = block.points[2] * -(-wide // core.lanes) * core.lanes * size
        if own.level:
            found["crowd"] += n * lines
        elif max(self._level(column.lines * LINE + panel), column.level):
            found["touch"] += n * lines

    def _stored(
        self, rows: _Dims, cols: _Dims, tile: tuple[int, int]
    ) -> tuple[Counts, float, float]:
        """Count how the sums of a tile are written once.

        Give the lines, if they lie together, and the cycles, too.
        """
        key = rows, cols, tile
        if key in self._stores:
            return self._stores[key]
        task, core, (tall, wide) = self.task, self.core, tile
        vectors, lines = -(-wide // core.lanes), 0.0
        found: Counts = {"burst": max(0, tall * vectors - MOST_WAITING)} if self._home > 1 else {}
        if self._step(task.out, cols) == 1:
            found |= {"sum": tall * vectors, "masked": tall * bool(wide % core.lanes)}
            lines = tall * self._written_lines(wide)
            if length(rows) >= MANY_STREAMS and self._sizes[task.out.name] > core.l2_bytes:
                found["streams"] = tall
        elif self._step(task.out, rows) == 1:
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
        return self._lined(n * size, *(step * size for _, step in out.steps if abs(step) != 1))


def _widths(n_cols: int, tile: int, _: int) -> list[tuple[int, int]]:
    return cut(n_cols, tile)
