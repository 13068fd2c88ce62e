"""One launch of a tiled kernel of one's own: what it moves, how long each resource takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from loopsched.gpu.calibrated import PRODUCTS, calibrated
from loopsched.gpu.library.calibration import Calibration, OwnKernels, calibration
from loopsched.gpu.library.machine import Machine
from loopsched.gpu.library.order import WAYS, Grid, grouped_schedule, operand_reads
from loopsched.gpu.library.product import Product
from loopsched.gpu.library.tiles import Tile
from loopsched.gpu.library.wave import VECTOR_BYTES, achieved, compute_time
from loopsched.gpu.occupancy import Occupancy
from loopsched.gpu.result import Parts
from loopsched.problems.problem import Problem

# Below so many rows or columns of a tile, blocks of an SM no longer run one after another.
_NARROW = 64
# Parts of split sums are kept as fp32.
_PART_BYTES = 4


@dataclass(frozen=True, slots=True)
class Launch:
    """A tiled kernel as it is launched.

    Parameters
    ----------
    product : Product
    machine : Machine
    tile : Tile
    occupancy : Occupancy
    group_m, split_k : int
        Rows of tiles that are launched together; parts of each sum.
    a_in_vectors, b_in_vectors : bool
        Whether rows of an operand reach shared memory in vectors,
        asynchronously.
    """

    product: Product
    machine: Machine
    tile: Tile
    occupancy: Occupancy
    group_m: int
    split_k: int
    a_in_vectors: bool
    b_in_vectors: bool

    @property
    def grid(self) -> tuple[int, int, int, int]:
        """Tiles along rows and columns, parts of the sums, products of a batch."""
        product, tile = self.product, self.tile
        rows, columns = math.ceil(product.m / tile.m), math.ceil(product.n / tile.n)
        return rows, columns, self.split_k, product.batch

    @property
    def blocks(self) -> int:
        """Thread blocks in all."""
        return math.prod(self.grid)

    @property
    def waves(self) -> float:
        """Blocks over what the machine holds at a time."""
        return self.blocks / (self.occupancy.blocks * self.machine.sms)

    @property
    def abreast(self) -> int:
        """Blocks of an SM that advance side by side: see docs/counters.md."""
        is_alone = self.b_in_vectors or min(self.tile.m, self.tile.n) < _NARROW
        return 1 if is_alone else self.occupancy.blocks


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that a launch reads and writes at each level: see `tiled.TiledKernel`."""

    shared_bytes_read: int
    l2_bytes_read: int
    l2_bytes_written: int
    dram_bytes_read: float
    dram_bytes_written: float


def moved_by(launch: Launch, operands: float) -> Moved:
    """Count the bytes at each level, if DRAM reads so many of the operands."""
    product = launch.product
    rows, columns, split, _ = launch.grid
    # Parts of split sums are written and read once more.
    parts = _PART_BYTES * product.batch * product.m * product.n * split if split > 1 else 0
    spilled = parts if parts > launch.machine.l2_bytes else 0
    panels = product.m * columns + product.n * rows
    return Moved(
        shared_bytes_read=_shared_bytes(launch),
        l2_bytes_read=product.batch * product.k * product.element_bytes * panels + parts,
        l2_bytes_written=product.c_bytes + parts,
        dram_bytes_read=operands + spilled,
        dram_bytes_written=float(product.c_bytes + spilled),
    )


def _shared_bytes(launch: Launch) -> int:
    """Count what warps load, if each computes a part of the tile that is about square."""
    tile, gpu = launch.tile, launch.machine.gpu
    width = launch.product.element_bytes
    warps = math.ceil(tile.threads / gpu.warp_threads)
    a_term = sum(_warp_tile(tile.m, tile.n, warps)) * width
    if launch.machine.on_lanes:  # a load of a warp takes all banks for a cycle, however little
        micros = tile.micro_m, tile.micro_n
        loads = sum(math.ceil(micro * width / VECTOR_BYTES) for micro in micros)
        a_term = max(a_term, loads * gpu.banks * gpu.bank_bytes)
    terms = tile.k * math.ceil(math.ceil(launch.product.k / launch.split_k) / tile.k)
    return launch.blocks * warps * a_term * terms


def operand_bytes(launch: Launch) -> float:
    """Count what DRAM reads of the operands, in closed form."""
    product, machine = launch.product, launch.machine
    rows, columns, split, batch = launch.grid
    order = Grid(
        rows,
        columns,
        launch.group_m,
        max(1, machine.sms * launch.abreast // split),
        product.a_bytes // batch,
        product.b_bytes // batch,
        product.c_bytes // batch,
    )
    return operand_reads(order, machine.l2_bytes) * batch


def replayed_bytes(launch: Launch, problem: Problem) -> float:
    """The same by a replay of the launch order tile by tile, with sets as measured L2s have."""
    from loopsched.simulator.tile_replay import reuse_profile

    tile, machine = launch.tile, launch.machine
    schedule = grouped_schedule(problem, tile.m, tile.n, tile.k, launch.group_m, "SM")
    elems = tile.m * tile.n + tile.k * (tile.m + tile.n)
    found = reuse_profile(
        problem,
        schedule,
        machine.sms * launch.abreast,
        room_bytes=elems * max(_PART_BYTES, launch.product.element_bytes),
        capacity_bytes=machine.l2_bytes,
    )
    return found.read_bytes(machine.l2_bytes, ways=WAYS)


def seconds_of(launch: Launch, moved: Moved, data_type: str) -> Parts:
    """Work out what each resource alone takes, launches last."""
    machine, tile, split = launch.machine, launch.tile, launch.split_k
    fitted, cycles = _fitted(launch, data_type)
    product = replace(launch.product, copy_cycles=cycles)
    resident = launch.occupancy.blocks
    dram_per_s, l2_per_s = achieved(machine, fitted)
    shared_rate = machine.gpu.shared_bytes_per_cycle * min(machine.sms, launch.blocks)
    return (
        (
            "compute",
            compute_time(product, tile, split, launch.blocks, resident, True, machine, fitted),
        ),
        ("shared memory", moved.shared_bytes_read / (shared_rate * machine.clock_hz)),
        ("L2", (moved.l2_bytes_read + moved.l2_bytes_written) / l2_per_s),
        ("DRAM", (moved.dram_bytes_read + moved.dram_bytes_written) / dram_per_s),
        ("launch", (fitted.launch + (fitted.split if split > 1 else 0)) * machine.gpu.launch_s),
    )


def _fitted(launch: Launch, data_type: str) -> tuple[Calibration, tuple[float, float]]:
    """Find the numbers for such a kernel, and the cycles of an element's copy."""
    fitted = calibration("fp32" if launch.machine.on_lanes else "fp16")
    if data_type != "tf32":
        return fitted, (0.0, 0.0)
    own = calibrated(OwnKernels, PRODUCTS, "tiled", "parameters")
    # B that comes element by element is turned on the way: the cores then run at their rate.
    fitted = replace(fitted, pipe=own.tf32_pipe if launch.b_in_vectors else 1.0)
    of_a = 0.0 if launch.a_in_vectors else own.tf32_copy_cycles
    of_b = 0.0 if launch.b_in_vectors else own.tf32_copy_cycles
    return fitted, (of_a, of_b)


def _warp_tile(tile_m: int, tile_n: int, warps: int) -> tuple[int, int]:
    """Cut a tile among warps, each part as square as powers of two allow."""
    down, across = 1, 1
    while down * across < warps:
        if tile_m / down >= tile_n / across:
            down *= 2
        else:
            across *= 2
    return math.ceil(tile_m / down), math.ceil(tile_n / across)
