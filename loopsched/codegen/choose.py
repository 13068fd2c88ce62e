"""Choosing how a contraction is cut: a model of one core's pipes and of its caches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from loopsched.base.errors import ArchError
from loopsched.codegen.contraction import Contraction, Guard, Operand
from loopsched.codegen.plan import (
    FAR_BYTES,
    Plan,
    Sizes,
    Walk,
    chunks,
    inner_sizes,
    length,
    merged_step,
    roles,
    skips,
)
from loopsched.codegen.window import window_plan
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level

# Cycles for one of each, fitted to GEMM plans measured on a Zen 4 core (docs/running.md).
COSTS = {
    "issue": 1.02,  # cycle in which multiply-adds or loads are issued
    "latency": 0.9,  # cycle of a chain of sums that is too short
    "tile": 20.0,  # register tile begun
    "across": 150.0,  # register tile whose sums are written across, begun
    "sum": 1.5,  # vector of sums read or written
    "scatter": 3.5,  # sum written by itself
    "load": 0.02,  # vector or element that a tile loads
    "spread": 0.06,  # element of the left operand that several vectors of a tile are multiplied by
    "rise": 1.0,  # line of the left operand that a tile reads from L2
    "many": 3.0,  # the same where the rows of a tile are more than L1 follows
    "near": 0.3,  # vector of a packed block from L2
    "place": 0.3,  # vector read in place that lies in L2
    "far": 1.8,  # vector read in place that does not stay in L2
    "reach": 10.0,  # point of the sum at which a tile reads vectors in another of many pages
    "clash": 20.0,  # line of the left operand lost to others of its set in L1
    "copy": 6.0,  # vector copied into a packed block
    "run": 3.0,  # run of a copy
    "leap": 10.0,  # run of a copy in a page of its own
    "guard": 2.0,  # vector of a copy that may lie in padding
    "gather": 1.6,  # element copied by itself
    "square": 8.5,  # vector copied by squares that are transposed
    "haul": 8.5,  # more for each of these that lies outside L2
    "turn": 6.5,  # vector of sums written across
    "spill": 3.0,  # vector of a packed block that L2 does not hold, each time it is walked
    "line": 24.5,  # line of an operand that lies outside L2
    "given": 10.0,  # line of a packed operand, given so, that lies outside L2
    "ahead": 11.0,  # line of an operand that lies outside L2, asked for before it is needed
    "jump": 60.0,  # line read in place that lies outside L2, far from the one before
    "streams": 6.5,  # row of a tile written where too many rows of a large output are
    "edge": 30.0,  # tile of a window at the edge of its plane
    "pass": 1.5,  # line that a window reads or writes outside L2
    "page": 1.85,  # page that a tile walks in place along a sum, if they are many
    "drain": 7.5,  # line of the output that goes there, or comes back
}


@dataclass(frozen=True, slots=True)
class Core:
    """What one core offers a kernel, in cycles and bytes; caches as far as it may use them."""

    lanes: int
    registers: int
    fma_per_cycle: float
    fma_latency: float
    load_per_cycle: float
    l1_bytes: int
    l2_bytes: int
    hertz: float
    ways: int = 8


def core_of(arch: Arch, element_bytes: int) -> tuple[Core, int]:
    """Describe one core of a machine, as kernels of such elements see it, and count its cores.

    Raises
    ------
    ArchError
        If the machine has no ``cpu`` part.
    """
    cpu = arch.cpu
    if cpu is None:
        raise ArchError(f"'{arch.name}' is no CPU: it has no 'cpu' part; 'host' is the one at hand")
    clock, cores = arch.compute.clock_hz, arch.compute.units
    caches = [one for one in reversed(arch.caches) if one.kind == "cache"]
    sizes = [(one.capacity_bytes or 0) * one.instances // cores for one in caches]
    return (
        Core(
            lanes=cpu.lanes(element_bytes),
            registers=cpu.vector_registers,
            fma_per_cycle=cpu.fma_per_cycle,
            fma_latency=cpu.fma_latency,
            load_per_cycle=cpu.load_per_cycle,
            l1_bytes=sizes[0],
            l2_bytes=sizes[min(1, len(sizes) - 1)],
            hertz=clock,
            ways=arch.caches[-2].ways or 8 if len(arch.caches) > 1 else 8,
        ),
        cores,
    )


APART_READ = 2.3
"""Cycles to read a vector of every second element, two at a time."""

PAGE = 4096
MANY_STREAMS = 48
"""So many rows of the output that a block writes in turn are not foreseen."""


def on_cores(arch: Arch, n_cores: int) -> Arch:
    """Give a CPU that has only some of its cores; what they share stays whole.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> on_cores(load_arch("epyc_9654"), 2).compute.units
    2
    """
    units = arch.compute.units
    if n_cores == units:
        return arch

    def part(level: Level) -> Level:
        if level.instances == 1:
            return level
        n = max(1, level.instances * n_cores // units)
        rate, peak = level.bandwidth_bytes_per_s, level.peak_bandwidth_bytes_per_s
        share = n / level.instances
        return replace(
            level,
            instances=n,
            unit=level.unit if n > 1 else None,
            bandwidth_bytes_per_s=rate and rate * share,
            peak_bandwidth_bytes_per_s=peak and peak * share,
        )

    compute = replace(arch.compute, units=n_cores)
    return replace(arch, levels=tuple(map(part, arch.levels)), compute=compute)


Counts = dict[str, float]
"""How often each of `COSTS` is paid."""


def register_tiles(core: Core) -> list[tuple[int, int]]:
    """List register tiles (rows, vectors) whose sums, operands and broadcast fit registers.

    Tiles of fewer sums than half the registers never keep the multipliers busier.
    """
    found = set()
    for n in (1, 2, 3, 4, 6):
        most = min((core.registers - 1 - n) // n, 14)
        sizes = (most, 14, 12, 8, 7, 6, 4)
        found |= {(rows, n) for rows in sizes if core.registers // 2 <= rows * n <= most * n}
    return sorted(found | {(rows, 1) for rows in (14, 16, 28) if rows <= core.registers - 3})


def candidates(task: Contraction, core: Core) -> Iterator[tuple[Contraction, Plan]]:
    """List ways to cut a contraction; either operand may give the vectors."""
    for one in (task, task.swapped()):
        kinds = roles(one)
        out = one.out
        rows = sorted(kinds["rows"], key=lambda dim: -abs(out.step(dim)))
        cols = sorted(kinds["cols"], key=lambda dim: -abs(out.step(dim)))
        sums = sorted(kinds["sums"], key=lambda dim: -abs(one.left.step(dim)))
        row_walks = _walks(one, rows, (16, 64, 168))
        if one.left.guards and rows:  # tiles that leave out padding need a dimension whole
            row_walks.append(Walk(tuple(rows), len(rows) - 1, one.size(rows[-1])))
        slides = sum(one.size(dim) > 1 for dim in sums) > 1
        widths = (32, 64, 128, 200, 400) if slides else (64, 200, 400, 800, 1600)
        col_walks = _walks(one, cols, (*widths, 1 << 40))
        depths = (256, 512, 1024, *((2500, 5000) if slides else ()))
        is_narrow = one.out.element.n_bytes < 4
        sum_walks = _walks(one, sums, (1 << 40,) if is_narrow else depths)
        for row_walk in row_walks:
            for col_walk in col_walks:
                for sum_walk in sum_walks:
                    plan = Plan(tuple(kinds["batch"]), row_walk, col_walk, sum_walk, 1, 1)
                    for made in _packed(one, plan):
                        yield one, made


def _walks(task: Contraction, dims: Sequence[str], lengths: Sequence[int]) -> list[Walk]:
    """Cut dimensions into blocks of about so many points, of even size."""
    found = set()
    for target in lengths:
        run, cut = 1, len(dims)
        while cut > 0 and run * task.size(dims[cut - 1]) <= target:
            cut -= 1
            run *= task.size(dims[cut])
        if cut == 0:
            found.add(Walk(tuple(dims), 0, task.size(dims[0]) if dims else 1))
            continue
        size = task.size(dims[cut - 1])
        most = max(1, target // run)
        block = -(-size // -(-size // most))
        if run == 1 and block < size:
            block = -(-block // 8) * 8
        found.add(Walk(tuple(dims), cut - 1, min(block, size)))
    return sorted(found, key=lambda walk: (walk.cut, walk.block))


def is_read_in_place(task: Contraction, plan: Plan, side: str) -> bool:
    """Whether a kernel can read an operand where it lies."""
    operand: Operand = getattr(task, side)
    if side == "left":
        return skips(task, plan)
    if operand.guards:
        return False
    _, block, rest = chunks(task, plan.cols)
    for chunk in {block, rest} - {0}:
        dims = inner_sizes(task, plan.cols, chunk)
        if length(dims) > 1 and merged_step(operand, dims) != 1:
            return False
    return True


def _packed(task: Contraction, plan: Plan) -> Iterator[Plan]:
    for packs_left in (False, True):
        for packs_right in (False, True):
            is_left_fit = packs_left or is_read_in_place(task, plan, "left")
            if is_left_fit and (packs_right or is_read_in_place(task, plan, "right")):
                yield replace(plan, packs_left=packs_left, packs_right=packs_right)


class Model:
    """Estimates plans of one contraction on one core: counts of events, each with its cost."""

    def __init__(self, task: Contraction, core: Core) -> None:
        self.task, self.core = task, core
        self.element_bytes = task.left.element.n_bytes
        kinds = roles(task)
        self._batch = frozenset(kinds["batch"])
        sums = sorted(kinds["sums"], key=lambda dim: -abs(task.left.step(dim)))
        self._sums = sums
        self._is_turned = merged_step(task.right, [(d, task.size(d)) for d in sums]) == 1
        self._real = math.prod(self._inside(guard) for guard in task.left.guards)

    def _inside(self, guard: Guard) -> float:
        """Say at which share of an operand's points a guard holds."""
        positions = [guard.offset]
        for dim, step in guard.steps:
            positions = [one + at * step for one in positions for at in range(self.task.size(dim))]
        return sum(0 <= one < guard.size for one in positions) / len(positions)

    def cycles(self, plan: Plan, threads: int = 1, counts: Counts | None = None) -> float:
        """Estimate what the slowest thread takes."""
        counts = counts or self.counts(plan)
        shared = sum(COSTS[name] * n for name, n in counts.items() if name not in _COPIES)
        copies = sum(COSTS[name] * counts[name] for name in _COPIES)
        if threads == 1:
            return shared + copies
        n_rows = sum(count for _, count in self._blocks(plan.rows))
        uneven = -(-n_rows // plan.row_parts) * plan.row_parts / n_rows
        rounds = math.prod(self.task.size(dim) for dim in (*plan.batch, *plan.cols.outer))
        n_whole, block, rest = chunks(self.task, plan.cols)
        share = slowest_share(threads, rounds * plan.row_parts, n_whole, rest / block)
        return share * (shared * uneven + copies * plan.row_parts)

    def counts(self, plan: Plan) -> Counts:
        """Count what a plan does, whoever does it."""
        task = self.task
        outer = math.prod(task.size(dim) for dim in plan.sums.outer)
        n_whole, _, rest = chunks(task, plan.sums)
        n_sums = outer * (n_whole + bool(rest))
        depth = math.prod(task.size(dim) for dim in plan.sums.dims) / n_sums
        found = dict.fromkeys(COSTS, 0.0)
        row_blocks, col_blocks = self._blocks(plan.rows), self._blocks(plan.cols)
        for cols, n_cols in col_blocks:
            if plan.packs_right and not plan.is_right_given:
                self._copy(found, cols, n_cols * n_sums * depth, task.right)
            for rows, n_rows in row_blocks:
                times = float(n_cols * n_rows * n_sums)
                self._tiles(found, plan, (rows, cols), (times, depth, n_sums))
                if plan.packs_left:
                    self._copy_left(found, rows, plan.tile_rows, times, depth)
        n_blocks = [sum(count for _, count in one) for one in (row_blocks, col_blocks)]
        self._lines(found, plan, (n_blocks[0], n_blocks[1], n_sums))
        batch = math.prod(task.size(dim) for dim in plan.batch)
        return {name: batch * n for name, n in found.items()}

    def slid(self, plan: Plan, threads: int) -> float:
        """Estimate what the slowest thread takes for a window that slides."""
        task, core = self.task, self.core
        jobs = math.prod(task.size(dim) for dim in plan.batch)
        down, across = (task.size(dim) for dim in plan.cols.dims)
        far, near = (task.size(dim) for dim in plan.sums.dims)
        vectors = -(-across // core.lanes)
        step = abs(task.right.step(plan.cols.dims[1]))
        tiles = -(-down // plan.tile_rows)
        reads = (step * (plan.tile_rows - 1) + far) * near
        pace = reads / core.load_per_cycle if step == 1 else reads * APART_READ
        tile = max(plan.tile_rows * far * near / core.fma_per_cycle, pace) * COSTS["issue"]
        edges = min(vectors, 2)
        plane = tiles * (vectors * tile + edges * COSTS["edge"])
        lines = (down * across * (1 + step**2)) * self.element_bytes / 64
        if jobs * lines * 64 > core.l2_bytes:
            plane += lines * COSTS["pass"]
        return -(-jobs // threads) * plane

    def _blocks(self, walk: Walk) -> list[tuple[Sizes, int]]:
        """List the shapes of blocks, and how many there are of each."""
        task = self.task
        outer = math.prod(task.size(dim) for dim in walk.outer)
        n_whole, block, rest = chunks(task, walk)
        found = [(inner_sizes(task, walk, block), outer * n_whole)] if n_whole else []
        return found + ([(inner_sizes(task, walk, rest), outer)] if rest else [])

    def _tiles(
        self,
        found: Counts,
        plan: Plan,
        block: tuple[Sizes, Sizes],
        amounts: tuple[float, float, int],
    ) -> None:
        """Count what the register tiles of a block do."""
        core, task = self.core, self.task
        (rows, cols), (times, depth, n_sums) = block, amounts
        n_rows, n_cols = length(rows), length(cols)
        padded = -(-n_cols // plan.tile_cols) * plan.tile_cols
        if plan.packs_right and padded * depth * self.element_bytes > 0.7 * core.l2_bytes:
            found["spill"] += times * depth * padded / core.lanes
        is_direct = merged_step(task.out, cols) == 1
        left_step = abs(task.left.step(rows[-1][0])) * self.element_bytes if rows else 0
        real = 1.0 if plan.packs_left else self._real
        pages = 0.0 if plan.packs_left else self._pages(depth)
        for wide, n_wide in _parts(n_cols, plan.tile_cols):
            vectors = -(-wide // core.lanes)
            stream = self._stream(plan, depth, vectors, (n_rows > plan.tile_rows, n_cols))
            for tall, n_tall in _parts(n_rows, min(plan.tile_rows, n_rows)):
                n = times * n_wide * n_tall
                sums = tall * vectors
                issue = real * max(
                    sums / core.fma_per_cycle, (tall + vectors) / (2 * core.load_per_cycle)
                )
                found["issue"] += n * depth * issue
                found["latency"] += n * depth * max(0.0, core.fma_latency - issue)
                found["tile"] += n
                if stream:
                    found[stream] += n * depth * vectors
                if not plan.packs_right and self._is_apart(depth):
                    found["reach"] += n * depth
                if is_direct:
                    if n_rows >= MANY_STREAMS and self._elements(task.out) * 4 > core.l2_bytes:
                        found["streams"] += n * tall
                    found["sum"] += n * sums * (1 if n_sums == 1 else 2)
                elif merged_step(task.out, rows) == 1:
                    lines = -(-tall // core.lanes) * wide
                    found["across"] += n
                    found["turn"] += n * lines * (1 if n_sums == 1 else 2)
                else:
                    found["scatter"] += n * tall * wide
                found["page"] += n * pages
                if not plan.packs_left and left_step >= 1024:
                    in_set = tall * max(math.gcd(left_step, PAGE), 64) / PAGE
                    if in_set > core.ways:
                        found["clash"] += n * depth * tall / core.lanes
                    elif tall > 2 * core.ways:
                        found["many"] += n * depth * tall / core.lanes
                found["load"] += n * depth * (tall + vectors)
                if vectors > 1:
                    found["spread"] += n * depth * tall
                if n_rows * depth * self.element_bytes > 0.6 * core.l1_bytes:
                    found["rise"] += n * depth * tall / core.lanes

    def _pages(self, depth: float) -> float:
        """Count pages that a tile walks in place along the sum of the left operand, if many."""
        task = self.task
        sums = [(abs(task.left.step(dim)), task.size(dim)) for dim in self._sums]
        if not sums:
            return 0.0
        step, size = max(sums)
        inner = math.prod(n for _, n in sums) / size
        pages = depth / inner * min(1.0, step * self.element_bytes / 4096)
        return pages if pages > 64 else 0.0

    def _stream(
        self, plan: Plan, depth: float, vectors: int, block: tuple[bool, int]
    ) -> str | None:
        """Say from where the vectors of a register tile come."""
        core, task = self.core, self.task
        is_reused, n_cols = block
        panel = depth * vectors * core.lanes * self.element_bytes
        if plan.packs_right:
            walked = panel if is_reused else depth * n_cols * self.element_bytes
            return None if walked <= 0.6 * core.l1_bytes else "near"
        inner = plan.sums.dims[-1:]  # none, if nothing is summed
        step = sum(abs(task.right.step(dim)) for dim in inner) * self.element_bytes
        span = core.l2_bytes // core.ways
        kept = core.ways * span // max(math.gcd(step, span), 64)
        fits = depth <= 0.75 * kept and panel < 0.6 * core.l2_bytes
        return "place" if fits or not is_reused else "far"

    def _is_apart(self, depth: float) -> bool:
        """Whether vectors read in place along the sum lie in more pages than a core follows."""
        return depth >= 64 and self._far(self.task.right) * self.element_bytes >= PAGE // 2

    def _copy(self, found: Counts, dims: Sizes, times: float, operand: Operand) -> None:
        """Count what it takes to pack a block whose vectors go along columns."""
        lanes = self.core.lanes
        step = merged_step(operand, dims)
        if step is not None and not any(g.step(d) for g in operand.guards for d, _ in dims):
            run, runs = length(dims), 1
        else:
            run, step = dims[-1][1], operand.step(dims[-1][0])
            runs = length(dims) // run
        vectors = -(-run // lanes)
        found["run"] += times * runs
        if self._far(operand) * self.element_bytes >= PAGE:
            found["leap"] += times * runs
        found["guard"] += times * runs * vectors * len(operand.guards)
        if step == 1:
            found["copy"] += times * runs * vectors
        elif runs == 1 and not operand.guards and self._is_turned:
            found["square"] += times * vectors
        else:
            found["gather"] += times * runs * run

    def _far(self, operand: Operand) -> int:
        """Say how far an operand moves along the sum, at most."""
        return max((abs(operand.step(dim)) for dim in self._sums), default=0)

    def _copy_left(
        self, found: Counts, dims: Sizes, tile_rows: int, times: float, depth: float
    ) -> None:
        vectors = length(dims) * depth / self.core.lanes
        found["copy"] += times * vectors
        found["guard"] += times * vectors * len(self.task.left.guards)
        found["run"] += times * length(dims)
        if self._far(self.task.left) * self.element_bytes >= PAGE and dims:
            runs = length(dims) / min(length(dims), tile_rows)
            found["leap"] += times * depth * runs

    def _lines(self, found: Counts, plan: Plan, blocks: tuple[int, int, int]) -> None:
        """Count lines that L2 does not hold, for each time that an operand is walked."""
        task, half = self.task, self.core.l2_bytes / 2
        n_rows, n_cols, n_sums = blocks
        left, right, out = (
            self._elements(operand) * self.element_bytes
            for operand in (task.left, task.right, task.out)
        )
        if right > half:
            block = length(inner_sizes(task, plan.cols, plan.cols.block)) * self.element_bytes
            block *= length(inner_sizes(task, plan.sums, plan.sums.block))
            turned = plan.packs_right and self._is_turned
            kind = "haul" if turned else "line" if plan.packs_right else "jump"
            kind = "given" if plan.is_right_given else "ahead" if self._asks(plan) else kind
            found[kind] += right / 64
            if not plan.packs_right and block > 1.5 * half:
                found["line"] += right / 64 * (n_rows - 1) / 2
        if left > half:
            far = self._far(task.left) * self.element_bytes >= PAGE
            along = bool(self._sums) and task.left.step(self._sums[-1]) == 1
            asked = along and not plan.packs_left and not task.left.guards
            found["ahead" if asked else "jump" if far else "line"] += left / 64 * 0.5
            found["ahead" if asked else "line"] += left / 64 * 0.5 * (n_cols - 1)
        if out > half:
            width = length(inner_sizes(task, plan.cols, plan.cols.block))
            turned = merged_step(task.out, inner_sizes(task, plan.cols, 2)) != 1 and width > 1
            found["drain"] += out / 64 * (2 * n_sums - 1) * (2 if turned else 1)

    def _asks(self, plan: Plan) -> bool:
        """Whether copies of the right operand ask for lines of what comes later."""
        right, dims = self.task.right, inner_sizes(self.task, plan.cols, plan.cols.block)
        if not plan.packs_right or right.guards or not dims or right.step(dims[-1][0]) != 1:
            return False
        steps = [abs(right.step(dim)) for dim in self._sums]
        return bool(steps) and min(steps) * self.element_bytes >= FAR_BYTES

    def _elements(self, operand: Operand) -> int:
        """Count what is read or written of an operand for one point of the batch."""
        moves = [
            (abs(step), self.task.size(dim))
            for dim, step in operand.steps
            if dim not in self._batch
        ]
        points = math.prod(size for step, size in moves if step)
        return min(points, 1 + sum(step * (size - 1) for step, size in moves))


_COPIES = ("copy", "run", "leap", "guard", "gather", "square")


SPEEDS = (1.0, 0.9, 0.75)
"""Of the last thread, which starts later and shares its CPU now and then."""


@lru_cache(maxsize=4096)
def slowest_share(threads: int, rounds: int, n_whole: int, rest: float) -> float:
    """Say after which share of all work the last thread ends, on average over `SPEEDS`.

    Jobs are rounds of whole blocks of columns and one of a rest (a share of a
    block).  Each thread takes its own in order, then those of others.

    Examples
    --------
    >>> [round(slowest_share(2, 1, n_jobs, 0.0), 3) for n_jobs in (2, 8, 32)]
    [0.574, 0.56, 0.538]
    >>> slowest_share(2, 1, 1, 0.25)  # a small block beside a large one
    0.8
    """
    sizes = [*[1.0] * n_whole, *([rest] if rest else [])]
    n_jobs, total = rounds * len(sizes), rounds * sum(sizes)
    if n_jobs > 32 * threads:
        mean = sum(1 / (threads - 1 + speed) for speed in SPEEDS) / len(SPEEDS)
        return mean + max(sizes) / total / 2
    found = 0.0
    for last in SPEEDS:
        speeds = [*[1.0] * (threads - 1), last]
        limits = [n_jobs * one // threads for one in range(threads + 1)]
        queues = [list(range(*ends))[::-1] for ends in pairwise(limits)]
        clocks = [0.0] * threads
        while any(queues):
            one = clocks.index(min(clocks))
            whose = next(at for at in range(one - threads, one) if queues[at])
            clocks[one] += sizes[queues[whose].pop() % len(sizes)] / speeds[one]
        found += max(clocks) / total / len(SPEEDS)
    return found


def _parts(total: int, each: int) -> list[tuple[int, int]]:
    """Cut a length into equal parts and a rest: sizes with their counts."""
    found = [(each, total // each)] if total >= each else []
    return found + ([(total % each, 1)] if total % each else [])


def _whole(task: Contraction, walk: Walk, tile: int) -> Walk:
    """Cut columns into blocks of whole register tiles, if single points are cut."""
    size = task.size(walk.inner[0]) if walk.inner else 1
    if walk.cut < len(walk.dims) - 1 or walk.block >= size:
        return walk
    each = -(-size // -(-size // walk.block))
    return replace(walk, block=min(size, -(-each // tile) * tile))


def ranked(
    task: Contraction, core: Core, threads: int = 1, given: str | None = None
) -> list[tuple[float, Contraction, Plan]]:
    """Rank plans of a contraction, best first, by the cycles of the slowest thread.

    The operand ``given``, if any, comes packed where plans pack it for columns.
    """
    models: dict[int, Model] = {}
    found = []
    seen: set[tuple[bool, Plan]] = set()
    for one in (task, task.swapped()):
        for rows in (1, 2, 4, 7):
            slid = window_plan(one, rows, core.lanes)
            if slid is not None:
                found.append((Model(one, core).slid(slid, threads), one, slid))
    for one, plan in candidates(task, core):
        model = models.setdefault(id(one.left), Model(one, core))
        if plan.packs_right and one.right.name == given:
            plan = replace(plan, is_right_given=True)
        highest = length(inner_sizes(one, plan.rows, plan.rows.block))
        for rows, n in sorted({(min(rows, highest), n) for rows, n in register_tiles(core)}):
            cols = _whole(one, plan.cols, n * core.lanes)
            made = replace(plan, cols=cols, tile_rows=rows, tile_cols=n * core.lanes)
            if (one is task, made) in seen:
                continue
            seen.add((one is task, made))
            counts = model.counts(made)
            for parts in sorted({1, threads, 4 * threads} if threads > 1 else {1}):
                shared = replace(made, row_parts=parts)
                found.append((model.cycles(shared, threads, counts), one, shared))
    return sorted(found, key=lambda one: one[0])
