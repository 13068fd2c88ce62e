"""Choosing how a contraction is cut: a model of one core's pipes and of its caches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from loopsched.base.errors import ArchError
from loopsched.codegen.contraction import Contraction, Operand
from loopsched.codegen.plan import (
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
from loopsched.machines.arch import Arch

# Cycles, fitted on one Zen 4 core: to start a register tile and a job, to read and write a
# vector of its sums, to copy a vector into a packed block, to start a run of a copy, to gather
# or scatter one element.
TILE_START, JOB_START, TILE_VECTOR = 20.0, 60.0, 1.5
COPY_VECTOR, RUN_START, GATHER_ELEMENT, SCATTER_ELEMENT = 2.0, 3.0, 1.5, 3.0


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
    l3_bytes: int
    l2_per_cycle: float
    l3_per_cycle: float
    memory_per_cycle: float
    hertz: float
    page_bytes: int = 4096
    tlb_entries: int = 1024


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
    sizes, rates = [], []
    for level in reversed([one for one in arch.caches if one.kind == "cache"]):
        sizes.append((level.capacity_bytes or 0) * level.instances // cores)
        rate = level.bandwidth_bytes_per_s or 0.0
        rates.append(rate / clock / cores)
    sizes += sizes[-1:] * (3 - len(sizes))
    rates += rates[-1:] * (3 - len(rates))
    return (
        Core(
            lanes=cpu.lanes(element_bytes),
            registers=cpu.vector_registers,
            fma_per_cycle=cpu.fma_per_cycle,
            fma_latency=cpu.fma_latency,
            load_per_cycle=cpu.load_per_cycle,
            l1_bytes=sizes[0],
            l2_bytes=sizes[1],
            l3_bytes=sizes[2],
            l2_per_cycle=rates[0],
            l3_per_cycle=rates[1],
            memory_per_cycle=rates[2],
            hertz=clock,
            page_bytes=cpu.page_bytes,
            tlb_entries=cpu.tlb_entries or 1024,
        ),
        cores,
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan is expected to take on one core, in cycles.

    Parameters
    ----------
    multiply : float
        In register tiles.
    sums : float
        To begin tiles, and to read and write their sums.
    pack : float
        To copy blocks.
    memory : float
        To wait for data that no cache near the core holds.
    """

    multiply: float
    sums: float
    pack: float
    memory: float

    @property
    def cycles(self) -> float:
        """All of it."""
        return self.multiply + self.sums + self.pack + self.memory


def register_tiles(core: Core) -> list[tuple[int, int]]:
    """List register tiles (rows, vectors) whose sums, operands and broadcast fit registers."""
    found = set()
    for n in (1, 2, 3, 4, 6):
        most = min((core.registers - 1 - n) // n, 14)
        found |= {(rows, n) for rows in (most, 14, 12, 8, 7, 6, 4, 1) if 1 <= rows <= most}
    return sorted(found)


def candidates(task: Contraction, core: Core) -> Iterator[tuple[Contraction, Plan]]:
    """List ways to cut a contraction; either operand may give the vectors."""
    for one in (task, task.swapped()):
        kinds = roles(one)
        out = one.out
        rows = sorted(kinds["rows"], key=lambda dim: -abs(out.step(dim)))
        cols = sorted(kinds["cols"], key=lambda dim: -abs(out.step(dim)))
        sums = sorted(kinds["sums"], key=lambda dim: -abs(one.left.step(dim)))
        row_walks = _walks(one, rows, (64, 168))
        if one.left.guards and rows:  # tiles that leave out padding need a dimension whole
            row_walks.append(Walk(tuple(rows), len(rows) - 1, one.size(rows[-1])))
        col_walks = _walks(one, cols, (64, 200, 400, 1024, 1 << 40))
        is_narrow = one.out.element.n_bytes < 4
        sum_walks = _walks(one, sums, (1 << 40,) if is_narrow else (256, 512, 1024))
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
            if packs_left or is_read_in_place(task, plan, "left"):
                if packs_right or is_read_in_place(task, plan, "right"):
                    yield replace(plan, packs_left=packs_left, packs_right=packs_right)


class Model:
    """Estimates plans of one contraction on one core."""

    def __init__(self, task: Contraction, core: Core) -> None:
        self.task, self.core = task, core
        self.element_bytes = task.left.element.n_bytes

    def estimate(self, plan: Plan) -> Estimate:
        """Say what a plan takes if one core does all of it."""
        task, core = self.task, self.core
        sums = math.prod(task.size(dim) for dim in plan.sums.dims)
        outer = math.prod(task.size(dim) for dim in plan.sums.outer)
        n_whole, block, rest = chunks(task, plan.sums)
        n_sum_blocks = outer * (n_whole + bool(rest))
        depth = sums / n_sum_blocks
        batch = math.prod(task.size(dim) for dim in plan.batch)
        row_blocks = self._blocks(plan.rows)
        col_blocks = self._blocks(plan.cols)
        n_row_blocks = sum(count for _, count in row_blocks)
        multiply = per_sums = pack = memory = 0.0
        for cols, n_cols in col_blocks:
            width = length(cols)
            if plan.packs_right:
                pack += n_cols * n_sum_blocks * self._copy(cols, depth, self.task.right)
            for rows, n_rows in row_blocks:
                count = n_cols * n_rows
                one, each = self._tiles(plan, rows, cols, depth, n_sum_blocks)
                multiply += count * n_sum_blocks * one
                per_sums += count * n_sum_blocks * each
                if plan.packs_left:
                    pack += count * n_sum_blocks * self._copy_left(rows, depth)
        multiply, per_sums, pack = (batch * one for one in (multiply, per_sums, pack))
        memory = batch * self._memory(plan, n_row_blocks, col_blocks, depth, n_sum_blocks)
        return Estimate(multiply, per_sums, pack, memory)

    def thread_cycles(self, plan: Plan, threads: int) -> float:
        """Say what the slowest of several threads takes."""
        task = self.task
        whole = self.estimate(plan)
        if threads == 1:
            return whole.cycles
        n_rows = sum(count for _, count in self._blocks(plan.rows))
        jobs = math.prod(task.size(dim) for dim in plan.batch)
        jobs *= sum(count for _, count in self._blocks(plan.cols))
        most = -(-jobs * plan.row_parts // threads) / (jobs * plan.row_parts)
        uneven = -(-n_rows // plan.row_parts) * plan.row_parts / n_rows
        work = (whole.multiply + whole.sums) * uneven + whole.memory
        return most * (work + whole.pack * plan.row_parts) + JOB_START

    def _blocks(self, walk: Walk) -> list[tuple[Sizes, int]]:
        """List the shapes of blocks, and how many there are of each."""
        task = self.task
        outer = math.prod(task.size(dim) for dim in walk.outer)
        n_whole, block, rest = chunks(task, walk)
        found = [(inner_sizes(task, walk, block), outer * n_whole)] if n_whole else []
        return found + ([(inner_sizes(task, walk, rest), outer)] if rest else [])

    def _tiles(
        self, plan: Plan, rows: Sizes, cols: Sizes, depth: float, n_sum_blocks: int
    ) -> tuple[float, float]:
        """Cycles of a block's register tiles: for products, and to begin and end."""
        core, task = self.core, self.task
        n_rows, n_cols = length(rows), length(cols)
        is_direct = merged_step(task.out, cols) == 1
        per_vector = TILE_VECTOR * (2 if n_sum_blocks > 1 else 1)
        multiply = start = 0.0
        high = min(plan.tile_rows, n_rows)
        for wide, n_wide in _parts(n_cols, plan.tile_cols):
            vectors = -(-wide // core.lanes)
            stream = vectors * core.lanes * self.element_bytes / core.l2_per_cycle
            for tall, n_tall in _parts(n_rows, high):
                issue = tall * vectors / core.fma_per_cycle
                loads = (vectors + tall) / core.load_per_cycle
                pace = max(issue, loads, core.fma_latency, stream)
                multiply += n_wide * n_tall * depth * pace
                end = tall * vectors * per_vector if is_direct else tall * wide * SCATTER_ELEMENT
                start += n_wide * n_tall * (TILE_START + end)
        return multiply, start

    def _copy(self, dims: Sizes, depth: float, operand: Operand) -> float:
        """Cycles to pack a block whose vectors go along columns."""
        lanes = self.core.lanes
        points = length(dims)
        step = merged_step(operand, dims)
        if step is not None and not any(g.step(d) for g in operand.guards for d, _ in dims):
            run, runs = points, 1
        else:
            run, step = dims[-1][1], operand.step(dims[-1][0])
            runs = points // run
        vectors = -(-run // lanes)
        each = COPY_VECTOR if step == 1 else lanes * GATHER_ELEMENT
        guard = 2.0 * len(operand.guards) * vectors
        return depth * runs * (RUN_START + vectors * each + guard)

    def _copy_left(self, dims: Sizes, depth: float) -> float:
        lanes = self.core.lanes
        operand = self.task.left
        points = length(dims)
        guard = 2.0 * len(operand.guards)
        return points * depth / lanes * (COPY_VECTOR + guard) + points * RUN_START

    def _memory(
        self,
        plan: Plan,
        n_row_blocks: int,
        col_blocks: list[tuple[Sizes, int]],
        depth: float,
        n_sum_blocks: int,
    ) -> float:
        """Cycles that wait for data outside L2, roughly: each operand from where its re-reads lie."""
        task, core, size = self.task, self.core, self.element_bytes
        sums = depth * n_sum_blocks
        rows = math.prod(task.size(dim) for dim in plan.rows.dims)
        cols = math.prod(task.size(dim) for dim in plan.cols.dims)
        n_col_blocks = sum(count for _, count in col_blocks)
        left, right, out = rows * sums * size, cols * sums * size, rows * cols * size
        cost = 0.0
        for once, times in ((left, n_col_blocks), (right, 1), (out, 2 * n_sum_blocks)):
            far = core.memory_per_cycle if left + right + out > core.l3_bytes else core.l3_per_cycle
            if left + right + out <= core.l2_bytes:
                continue
            cost += once / far
            if times > 1 and once > core.l2_bytes / 2:
                near = core.l3_per_cycle if once <= core.l3_bytes else core.memory_per_cycle
                cost += (times - 1) * once / near
        if not plan.packs_right:
            step = max(abs(task.right.step(dim)) for dim in plan.sums.dims) if plan.sums.dims else 0
            if step * size >= core.page_bytes and right > core.l2_bytes / 2:
                cost += right / (plan.tile_cols * size) * 6.0
        return cost


def _parts(total: int, each: int) -> list[tuple[int, int]]:
    """Cut a length into equal parts and a rest: sizes with their counts."""
    found = [(each, total // each)] if total >= each else []
    return found + ([(total % each, 1)] if total % each else [])


def ranked(
    task: Contraction, core: Core, threads: int = 1
) -> list[tuple[float, Contraction, Plan]]:
    """Rank plans of a contraction, best first, by the cycles of the slowest thread."""
    models: dict[int, Model] = {}
    found = []
    for one, plan in candidates(task, core):
        model = models.setdefault(id(one.left), Model(one, core))
        for parts in sorted({1, threads}):
            for rows, n in register_tiles(core):
                made = replace(plan, tile_rows=rows, tile_cols=n * core.lanes, row_parts=parts)
                found.append((model.thread_cycles(made, threads), one, made))
    return sorted(found, key=lambda one: one[0])
