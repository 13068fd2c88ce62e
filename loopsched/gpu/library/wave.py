"""Time of a tiled kernel: whole waves of blocks, steps along the sum, and what they move.

A block computes a tile of the output in steps along the sum.  Blocks run in waves:
as many as fit into the SMs, then the rest.  A step takes as long as its arithmetic,
issued by the warps that are there, or as its loads let it.  L2 and DRAM must deliver
the panels meanwhile.  Sums may be split among blocks; a second kernel adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from loopsched.base.errors import InputError
from loopsched.gpu.library.calibration import Calibration
from loopsched.gpu.library.machine import Machine
from loopsched.gpu.library.product import Product, Timed
from loopsched.gpu.library.tiles import SPLITS, Tile
from loopsched.gpu.occupancy import occupancy

# A sum is not split further once there are so many waves of blocks.
_MOST_WAVES = 8
# A part of a split sum has at least so many steps.
_LEAST_STEPS = 4
# Bytes that one load or store instruction of a thread moves at most.
VECTOR_BYTES = 16
_WORDS = 4
# Of a step, beside loads, stores and arithmetic: counters, pointers, barrier.
_STEP_INSTRUCTIONS = 8
# Compute, L2 and DRAM overlap but for their edges: a norm close to the largest.
_OVERLAP = 8.0
# No GPU streams at more than this share of its data sheet's bandwidth.
_MOST_DRAM = 0.95


def tiled_time(
    product: Product,
    tiles: Iterable[Tile],
    machine: Machine,
    fitted: Calibration,
    *,
    splits: Sequence[int] = SPLITS,
) -> Timed:
    """Find the tile and split that finish first, as a tuned library would.

    If no tile fits on an SM, an `InputError` says why.

    Parameters
    ----------
    product : Product
        For a convolution as implicit GEMM: ``m`` output channels or pixels,
        ``k = C*R*S``, ``a_bytes``/``b_bytes`` of the stored tensors (so DRAM
        sees each once, L2 the unrolled panels), `extra_instructions` for
        index arithmetic, ``batch`` = groups.
    tiles : iterable of Tile
    machine : Machine
        From `machine.machine_of(arch, data_type)`.
    fitted : Calibration
        From `calibration.calibration(data_type)`; ``dataclasses.replace``
        gives another algorithm a number of its own.
    splits : sequence of int
        Into how many parts the sums may be cut; ``(1,)`` forbids it.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> from loopsched.gpu.library.gemm import product_of
    >>> from loopsched.gpu.library.calibration import calibration
    >>> from loopsched.gpu.library.machine import machine_of
    >>> from loopsched.gpu.library.tiles import SGEMM_TILES
    >>> product = product_of(gemm(m=512, n=8, k=500_000), "fp32")
    >>> v100, fitted = machine_of(load_arch("v100"), "fp32"), calibration("fp32")
    >>> tiled_time(product, SGEMM_TILES, v100, fitted).split > 1
    True
    """
    found = (
        launch_time(product, tile, split, machine, fitted, resident=resident)
        for tile, resident in fitting(tiles, product.element_bytes, machine)
        for split in splits
        if split == 1 or _may_split(product, tile, split, resident * machine.sms)
    )
    return min(found, key=lambda timed: timed.time_s)


def _may_split(product: Product, tile: Tile, split: int, at_once: int) -> bool:
    if product.k < split * _LEAST_STEPS * tile.k:
        return False
    blocks = math.ceil(product.m / tile.m) * math.ceil(product.n / tile.n) * product.batch
    return blocks * split <= _MOST_WAVES * at_once


def launch_time(
    product: Product,
    tile: Tile,
    split: int,
    machine: Machine,
    fitted: Calibration,
    *,
    resident: int | None = None,
) -> Timed:
    """Work out the time of one tile and split; see the module for how.

    ``resident`` is what `resident_blocks` says, where it is known already.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> from loopsched.gpu.library.calibration import calibration
    >>> from loopsched.gpu.library.machine import machine_of
    >>> v100, fitted = machine_of(load_arch("v100"), "fp32"), calibration("fp32")
    >>> warm = Product(4096, 4096, 4096, 1, 0, 0, 0, 4)
    >>> found = launch_time(warm, Tile(128, 128, 8, 256, 128, 8, 8), 1, v100, fitted)
    >>> found.kernel, round(found.time_s * 1e3, 2)
    ('128x128x8', 10.42)
    """
    rows, columns = -(-product.m // tile.m), -(-product.n // tile.n)
    blocks = rows * columns * split * product.batch
    if resident is None:
        resident = resident_blocks(tile, product.element_bytes, machine)
    at_once = resident * machine.sms
    all_bytes = product.a_bytes + product.b_bytes + product.c_bytes
    is_cold = all_bytes > machine.l2_bytes
    compute_s = compute_time(product, tile, split, blocks, resident, is_cold, machine, fitted)

    dram_per_s, l2_per_s = achieved(machine, fitted)
    stores = product.c_bytes * (2 if product.reads_output and split == 1 else 1)
    panels = product.m * columns + product.n * rows
    l2_bytes = product.batch * product.k * product.element_bytes * panels + stores
    dram_bytes = 0.0
    if is_cold:
        loads = _loads(product, tile, rows, columns, at_once if split == 1 else math.inf, machine)
        dram_bytes = max(0.0, loads + stores - machine.l2_bytes)
    l2_s = l2_bytes / l2_per_s
    dram_s = dram_bytes / dram_per_s * (fitted.strided if product.is_strided else 1.0)
    together_s = overlapped(compute_s, l2_s, dram_s)

    split_s = 0.0
    if split > 1:  # parts are written and read again, as fp32, and the output written
        moved = 2 * split * 4 * product.batch * product.m * product.n + product.c_bytes
        split_s = fitted.split * machine.gpu.launch_s
        split_s += moved / (l2_per_s if moved < machine.l2_bytes else dram_per_s)
    launch_s = fitted.launch * machine.gpu.launch_s
    parts = (
        ("compute", compute_s),
        ("L2", l2_s),
        ("DRAM", dram_s),
        ("split", split_s),
        ("launch", launch_s),
    )
    return Timed(together_s + split_s + launch_s, tile, split, parts)


def achieved(machine: Machine, fitted: Calibration) -> tuple[float, float]:
    """Bandwidths of DRAM and of L2 that kernels achieve, bytes per second.

    That of L2 is as the architecture file knows it, or as it was fitted.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> from loopsched.gpu.library.calibration import calibration
    >>> from loopsched.gpu.library.machine import machine_of
    >>> round(achieved(machine_of(load_arch("v100"), "fp32"), calibration("fp32"))[0] / 1e9)
    792
    >>> h200 = machine_of(load_arch("h200"), "tf32")
    >>> achieved(h200, calibration("fp16"))[1] == h200.l2_bytes_per_s
    True
    """
    dram = machine.dram_bytes_per_s * min(_MOST_DRAM, machine.gpu.dram_efficiency * fitted.dram)
    return dram, machine.l2_bytes_per_s * (machine.gpu.l2_efficiency or fitted.l2)


def resident_blocks(tile: Tile, element_bytes: int, machine: Machine) -> int:
    """Count the blocks that an SM runs side by side.

    Raises
    ------
    InputError
        If not even one fits.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> from loopsched.gpu.library.machine import machine_of
    >>> resident_blocks(Tile(128, 128, 8, 256, 128, 8, 8), 4, machine_of(load_arch("v100"), "fp32"))
    2
    """
    shared = tile.shared_bytes(element_bytes)
    return occupancy(machine.gpu, tile.threads, tile.registers, shared).blocks


def fitting(
    tiles: Iterable[Tile], element_bytes: int, machine: Machine
) -> Iterator[tuple[Tile, int]]:
    """Name the tiles that fit on an SM, each with its resident blocks.

    Raises
    ------
    InputError
        If none fits.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> from loopsched.gpu.library.machine import machine_of
    >>> from loopsched.gpu.library.tiles import SGEMM_TILES
    >>> small = machine_of(load_arch("v100").scaled("gpu.shared", 0.1), "fp32")
    >>> [str(tile) for tile, _ in fitting(SGEMM_TILES[:4], 4, small)]
    ['64x64x8']
    """
    refused: InputError | None = None
    fits = False
    for tile in tiles:
        try:
            resident = resident_blocks(tile, element_bytes, machine)
        except InputError as error:
            refused = error
            continue
        fits = True
        yield tile, resident
    if refused is not None and not fits:
        raise refused


def overlapped(*times: float) -> float:
    """Combine times that overlap but for their edges, seconds.

    Examples
    --------
    >>> round(overlapped(1.0, 0.5), 3), round(overlapped(1.0, 1.0), 3)
    (1.0, 1.091)
    """
    longest = max(times)
    if not longest:
        return 0.0
    total = math.fsum((time / longest) ** _OVERLAP for time in times)
    return longest * math.pow(total, 1 / _OVERLAP)


def compute_time(
    product: Product,
    tile: Tile,
    split: int,
    blocks: int,
    resident: int,
    is_cold: bool,
    machine: Machine,
    fitted: Calibration,
) -> float:
    """Time of all waves if nothing but SMs and latencies counts, seconds."""
    gpu = machine.gpu
    steps = math.ceil(math.ceil(product.k / split) / tile.k)
    shown = fitted.latency * (gpu.dram_latency if is_cold else gpu.l2_latency)
    alone = max(_busy(product, tile, 1, machine) / fitted.pipe, shown) + fitted.barrier

    def wave(side_by_side: int) -> float:
        busy = _busy(product, tile, side_by_side, machine) / fitted.pipe
        return steps * max(busy, alone) + fitted.fill * gpu.dram_latency

    full, rest = divmod(blocks, resident * machine.sms)
    cycles = full * wave(resident) if full else 0.0
    if rest:
        cycles += wave(-(-rest // machine.sms))
    return cycles / machine.clock_hz


def _busy(product: Product, tile: Tile, side_by_side: int, machine: Machine) -> float:
    """Cycles that an SM's schedulers need for one step of its blocks.

    Warps stay with their scheduler, so a few of them leave others idle.
    """
    gpu = machine.gpu
    warps = math.ceil(tile.threads / gpu.warp_threads)
    together = side_by_side * warps / gpu.schedulers
    turns = math.ceil(together) if together < gpu.schedulers else together
    if not machine.on_lanes:  # each scheduler has a tensor core of its own
        of_a, of_b = product.copy_cycles
        copies = (tile.m * of_a + tile.n * of_b) * tile.k
        a_block = tile.m * tile.n * tile.k / machine.macs_per_cycle * turns / together
        return side_by_side * (a_block + copies)
    multiplies = tile.m * tile.n * tile.k / tile.threads
    vector = VECTOR_BYTES / product.element_bytes
    words = -(-tile.micro_m // _WORDS) + -(-tile.micro_n // _WORDS)
    fragments = multiplies / (tile.micro_m * tile.micro_n) * words
    copies = 2 * (tile.m + tile.n) * tile.k / tile.threads / vector
    others = fragments + copies + _STEP_INSTRUCTIONS + product.extra_instructions
    per_multiply = gpu.warp_threads * gpu.schedulers / machine.macs_per_cycle
    a_warp = max(multiplies * per_multiply, multiplies / machine.packed + others)
    return a_warp * turns


def _loads(
    product: Product, tile: Tile, rows: int, columns: int, at_once: float, machine: Machine
) -> float:
    """Bytes of operands that DRAM must deliver.

    Blocks of a wave share panels in L2; the next wave finds those gone unless
    both operands fit.  The order of blocks is taken as the best of three: rows
    first, columns first, or about square.
    """
    operands = product.a_bytes + product.b_bytes
    if operands <= machine.l2_bytes or rows * columns <= at_once:
        return operands
    best = math.inf
    for tall in (rows, at_once, math.sqrt(at_once * tile.n / tile.m)):
        high = max(1.0, min(tall, rows, at_once))
        wide = min(columns, max(1.0, at_once / high))
        best = min(best, product.a_bytes * columns / wide + product.b_bytes * rows / high)
    return max(operands, best)
