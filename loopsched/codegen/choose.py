"""Choosing how a contraction is cut."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from heapq import heapify, heappop, heappush
from itertools import chain, islice, product

from loopsched.base.errors import ArchError
from loopsched.codegen.contraction import Contraction, Operand
from loopsched.codegen.core import Core, Counts
from loopsched.codegen.cost import Model
from loopsched.codegen.plan import (
    LEAST_BYTES,
    Plan,
    Walk,
    chunks,
    heights,
    inner_sizes,
    is_rounded,
    length,
    merged_step,
    roles,
    skips,
)
from loopsched.codegen.shares import row_parts
from loopsched.codegen.window import window_plan
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level


def core_of(arch: Arch, element_bytes: int) -> tuple[Core, int]:
    """Describe one core of a machine, as kernels of such elements see it, and count its cores.

    Raises
    ------
    ArchError
        If the machine has no ``cpu`` part.
    """
    cpu = arch.cpu
    if cpu is None:
        raise ArchError(
            f"'{arch.name}' is not a CPU: it has no 'cpu' part; 'host' is this machine's CPU"
        )
    clock, cores = arch.compute.clock_hz, arch.compute.units
    caches = [one for one in reversed(arch.caches) if one.kind == "cache"]
    sizes = [(one.capacity_bytes or 0) * one.instances // cores for one in caches]
    rate = (caches[0].bandwidth_bytes_per_s or 0) / cores / clock
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
            last_bytes=caches[-1].capacity_bytes or 0,
            ways=caches[0].ways or 8,
            l2_ways=caches[min(1, len(caches) - 1)].ways or 8,
            wide_l2_rate=rate if rate and cpu.fma_per_cycle * cpu.lanes(1) > 64 else math.inf,
            design=cpu.model or "",
        ),
        cores,
    )


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


def register_tiles(core: Core) -> list[tuple[int, int]]:
    """List register tiles (rows, vectors) whose sums, operands and broadcast fit registers.

    Tiles of fewer sums than half the registers never keep the multipliers busier.  Of 16
    registers LLVM fills many with broadcasts that only one vector needs, and spills sums.
    """
    found = set()
    for n in (1, 2, 3, 4, 6):
        most = min((core.registers - 1 - n) // n, 14)
        most = core.registers // 2 if n == 1 and core.is_narrow else most
        sizes = (most, 14, 12, 8, 7, 6, 4)
        found |= {(rows, n) for rows in sizes if core.registers // 2 <= rows * n <= most * n}
    return sorted(found | {(rows, 1) for rows in (14, 16, 28) if rows <= core.registers - 3})


def dot_tiles(core: Core) -> list[tuple[int, int]]:
    """List register tiles whose sums are vectors: rows and columns that fit registers."""
    most = core.registers - 1
    wide = [(rows, n) for rows in (1, 2, 3, 4) for n in (1, 2, 4, 8, 16)]
    return [one for one in (*wide, (3, 3), (4, 6), (5, 5)) if one[0] * one[1] + one[0] <= most]


def candidates(task: Contraction) -> Iterator[Plan]:
    """List ways to cut and pack a contraction whose right operand gives the vectors."""
    batch, rows, cols, sums = _ordered(task)
    row_walks = _walks(task, rows, (16, 64, 168))
    if task.left.guards and rows:  # tiles that leave out padding need a dimension whole
        row_walks.append(Walk(tuple(rows), len(rows) - 1, task.size(rows[-1])))
    slides = sum(task.size(dim) > 1 for dim in sums) > 1
    widths = (32, 64, 128, 200, 400) if slides else (64, 200, 400, 800)
    col_walks = _walks(task, cols, (*widths, 1 << 40))
    depths = (256, 512, 1024, *((2500, 5000) if slides else ()))
    if math.prod(map(task.size, rows)) <= FEW_ROWS:  # few rows of the right operand at a time
        depths = (8, 16, *depths)
    sum_walks = _walks(task, sums, (1 << 40,) if is_rounded(task) else depths)
    for walks in product(row_walks, col_walks, sum_walks):
        yield from _packed(task, Plan(tuple(batch), *walks, 1, 1))


def _ordered(task: Contraction) -> tuple[list[str], list[str], list[str], list[str]]:
    """List dimensions as they are walked, outermost first: of the batch, rows, columns, sums."""
    kinds = roles(task)
    rows, cols = (
        sorted(kinds[kind], key=lambda dim: -abs(task.out.step(dim))) for kind in ("rows", "cols")
    )
    sums = sorted(kinds["sums"], key=lambda dim: -abs(task.left.step(dim)))
    return kinds["batch"], rows, cols, sums


def dots(task: Contraction) -> Iterator[Plan]:
    """List ways to cut a contraction whose right operand lies along its sum.

    The left one is packed so, unless it does, too.
    """
    batch, rows, cols, sums = _ordered(task)
    sizes = [(dim, task.size(dim)) for dim in sums]
    packs_left, is_packed = (
        bool(one.guards) or merged_step(one, sizes) != 1 for one in (task.left, task.right)
    )
    if is_packed or length(sizes) < 2:
        return
    depths = (1 << 40,) if is_rounded(task) else (1024, 4096, 1 << 40)
    row_walks, col_walks = (_walks(task, dims, (64, 400, 1 << 40)) for dims in (rows, cols))
    for walks in product(row_walks, col_walks, _walks(task, sums, depths)):
        packs = packs_left, False
        yield Plan(tuple(batch), *walks, 1, 1, 1, *packs, sums_in_lanes=True)


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


MOST_CONVERTED = 32
"""Columns for which elements of two bytes or one are converted again; of more, once, as packed."""


def is_read_in_place(task: Contraction, plan: Plan, side: str) -> bool:
    """Whether a kernel can read an operand where it lies, and not convert elements often."""
    operand: Operand = getattr(task, side)
    if side == "left":
        n_cols = math.prod(map(task.size, plan.cols.dims))
        is_converted = operand.element.n_bytes < LEAST_BYTES and n_cols > MOST_CONVERTED
        return skips(task, plan) and not is_converted
    if operand.guards and (task.left.guards or not skips(task, plan, "right")):
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
                yield plan._replace(packs_left=packs_left, packs_right=packs_right)


def _whole(task: Contraction, walk: Walk, tile: int) -> Walk:
    """Cut columns into blocks of whole register tiles, if single points are cut."""
    size = task.size(walk.inner[0]) if walk.inner else 1
    if walk.cut < len(walk.dims) - 1 or walk.block >= size:
        return walk
    each = -(-size // -(-size // walk.block))
    return walk._replace(block=min(size, -(-each // tile) * tile))


FEW_ROWS = 4
"""So few rows are multiplied while some of the right operand passes by."""
FIRST_TILES, WIDE_TILES, ROUNDED_TILES = 4, 6, 12
"""So many register tiles of each way to cut and pack are tried first; more where two vectors of
64 bytes are multiplied in a cycle, and where sums are whole, so that blocks are large: of what
that takes their sums do not tell."""
FIRST_PLANS = 8
"""So many plans with these, at least, are counted."""
BEST_WAYS = 32
"""So many ways to cut and pack, or as many as plans are wanted, have all register tiles tried."""


Choice = tuple[float, Contraction, Plan]
"""The cycles of a plan, what it cuts, and the plan."""


def ranked(
    task: Contraction,
    core: Core,
    threads: int = 1,
    given: str | None = None,
    *,
    n: int | None = None,
) -> list[Choice]:
    """Rank plans of a contraction, best first, by the cycles of the slowest thread.

    The operand ``given``, if any, comes packed where plans pack it for columns.
    With ``n``, only about the first ``n`` are wanted: each way to cut and pack is tried
    with the register tiles that multiply fastest, and the best ways with all of them.
    """
    ranking, ways = Ranking(threads), list[list[_Way]]()
    for one in (task, task.swapped()):
        model = Model(one, core)
        for rows, lanes in product((1, 2, 4, 7), core.vectors):
            slid = window_plan(one, rows, lanes)
            if slid is not None and (lanes == core.lanes or one.size(slid.cols.dims[1]) <= lanes):
                ranking.add((model.slid(slid, threads), one, slid, -1))
        seen = set[Plan]()
        for plans in tiled(one, core, given):
            fresh = [plan for plan in plans if plan not in seen]
            ways.append([(model.sums(plan), model, plan, len(ways)) for plan in fresh])
            seen.update(plans)
    if n is None:
        ranking.count(chain(*ways))
    else:
        cut = [sorted(way, key=lambda one: one[0]) for way in ways]
        tiles = WIDE_TILES if core.is_wide else FIRST_TILES
        tiles = ROUNDED_TILES if is_rounded(task) else tiles
        ranking.count(chain(*(way[:tiles] for way in cut)), max(n, FIRST_PLANS))
        counted = dict.fromkeys(way for *_, way in ranking.best() if way >= 0)
        best = islice(counted, max(n, BEST_WAYS))
        ranking.count(chain(*(cut[way][tiles:] for way in best)), n)
    return [found[:3] for found in ranking.best()]


_Way = tuple[float, Model, Plan, int]
"""A plan: what its register tiles take at least, and the way to cut and pack that it shares."""
_Counting = Iterator[tuple[float, Counts | None]]
"""What `Model.estimates` gives."""
_Found = tuple[float, Contraction, Plan, int]
"""The cycles of a plan, what it cuts, and its way to cut and pack."""


class Ranking:
    """Plans whose cycles are known."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.found: list[_Found] = []
        self._firsts: list[float] = []  # the cycles of the first ones, negative: a heap
        self._moved: dict[tuple[int, Walk], float] = {}
        """What the first counted plan of a way with such columns moves, in cycles."""

    def best(self) -> list[_Found]:
        """List them, best first."""
        return sorted(self.found, key=lambda one: one[0])

    def add(self, one: _Found) -> None:
        """Add a plan."""
        self.found.append(one)
        heappush(self._firsts, -one[0])

    def count(self, plans: Iterable[_Way], n: int | None = None) -> None:
        """Count the cycles of plans, but not of those that can hardly be among the first ``n``."""
        given = list(plans)
        if n is None:
            for _, model, plan, way in given:
                self._add_parts(model, plan, way, model.counts(plan))
            return
        # What a plan takes at least: its sums; then, about, with what its way to cut and pack
        # moves; then what it takes if all blocks are like the largest ones.
        queue: list[tuple[float, int, _Counting | None]] = [
            (model.share(plan, self.threads) * sums, number, None)
            for number, (sums, model, plan, _) in enumerate(given)
        ]
        heapify(queue)
        while queue:
            least, number, counting = heappop(queue)
            if least > self._most(n):
                break
            sums, model, plan, way = given[number]
            counts = None
            if counting is None:
                counting = model.estimates(plan)
                key = way, plan.cols
                if key in self._moved:
                    counting = islice(counting, 1, None)
                else:
                    self._moved[key], _ = next(counting)
                cycles = sums + self._moved[key]
            else:
                cycles, counts = next(counting)
            if counts is None:
                cycles *= model.share(plan, self.threads)
                heappush(queue, (max(least, cycles), number, counting))
            else:
                self._add_parts(model, plan, way, counts)

    def _most(self, n: int) -> float:
        """Say what the last of the first ``n`` takes."""
        while len(self._firsts) > n:
            heappop(self._firsts)
        return -self._firsts[0] * (1 + 1e-9) if len(self._firsts) == n else math.inf

    def _add_parts(self, model: Model, plan: Plan, way: int, counts: Counts) -> None:
        """Add a plan that was counted, with its rows in one part and in several."""
        paid = model.paid(counts)
        for parts in row_parts(self.threads):
            shared = plan._replace(row_parts=parts)
            self.add((model.cycles(shared, self.threads, paid), model.task, shared, way))


def _apart(
    task: Contraction, tiles: Sequence[tuple[int, int]], walk: Walk
) -> list[tuple[int, int]]:
    """List register tiles; of heights that cut all blocks of rows alike, the least."""
    _, *sizes = chunks(task, walk)
    blocks = [length(inner_sizes(task, walk, size)) for size in sizes if size]
    least: dict[tuple[object, ...], int] = {}

    def lowest(rows: int) -> int:
        cut = tuple(tuple(heights(one, rows, blocks[0])) for one in blocks)
        return least.setdefault(cut, rows)

    return sorted({(lowest(rows), n) for rows, n in sorted(tiles)})


def tiled(task: Contraction, core: Core, given: str | None) -> Iterator[list[Plan]]:
    """List ways to cut and pack a contraction, each with all register tiles."""
    whole = cache(partial(_whole, task))
    tiles_of = cache(partial(_apart, task, register_tiles(core)))
    for found in candidates(task):
        plan = found._replace(asks_l3=core.asks_l3)
        if task.right.guards and not (plan.packs_right or core.masks_are_cheap):
            continue
        if plan.packs_right and task.right.name == given:
            plan = plan._replace(is_right_given=True)
        plans = []
        for rows, n in tiles_of(plan.rows):
            wide = n * core.lanes
            cols = whole(plan.cols, wide)
            plans.append(Plan(plan.batch, plan.rows, cols, plan.sums, rows, wide, *plan[6:]))
        yield plans
    lowest = cache(partial(_apart, task, dot_tiles(core)))
    for plan in dots(task) if core.lanes > 1 else ():
        yield [
            plan._replace(tile_rows=rows, tile_cols=n, cols=whole(plan.cols, n))
            for rows, n in lowest(plan.rows)
        ]
