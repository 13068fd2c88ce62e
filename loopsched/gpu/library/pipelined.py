"""Products of today's libraries: the fastest of many tiles, all worked out at once.

Kernels copy operands to shared memory asynchronously, some steps ahead, and blocks stay
on their SM: it begins a tile while it ends the one before.  So no waves are counted, but
the tiles of the busiest SM.  Its time is the largest of arithmetic, what L2 and DRAM
deliver, and the latency of copies over the bytes in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from loopsched.gpu.calibrated import calibrated, first_spread
from loopsched.gpu.library.machine import Machine
from loopsched.gpu.library.product import Product, Run
from loopsched.gpu.result import Spread

Numbers = NDArray[np.float64]
FILE = "library/calibration_pipelined.json"

_SIDES = ((64, 16), (64, 32), (64, 64), (128, 32), (128, 64), (128, 128), (256, 64), (256, 128))
# Groups of four warps multiply in multiples of eight columns, and libraries use that.
_MORE = ((64, 96), (64, 128), (64, 192), (128, 96), (128, 160), (128, 192), (192, 192), (192, 256))
_SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
# A step brings so many bytes of each row and column: a line.
_STEP_BYTES = 128
_MOST_STAGES, _SEVERAL_STAGES, _MOST_RESIDENT = 8, 4, 4
# What overlaps is joined by norms of this power: the largest, and a little of the others.
_OVERLAP = 8.0
# Part of a tile's beginning and end that is not hidden behind the tile before.
_SHOWN = 0.5
# B is a layer's weights, and so many layers take turns: it is warm if all of them fit.
_LAYERS = 5
_SHARPNESS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelined:
    """Numbers that no document gives; the file says what they were fitted on.

    Parameters
    ----------
    dram : float
        Achieved DRAM bandwidth over ``gpu.dram_efficiency`` times the data sheet's.
    by_warp : float, cycles
        What a step takes besides its arithmetic where single warps issue it.
    begin_cycles, sum_cycles : float, cycles
        To begin a tile, besides a DRAM latency; to store one of its sums.
    pj_mac : float, picojoule
        Energy of a multiply-accumulate of two bytes, all else included.
    launch : float
        From one call to the next, in launches of the machine file.
    scale_launches : float
        Of fp8: launches of the kernels that scale A down to fp8.
    scale_bytes : float, bytes
        What these move for each element of A, at the streaming bandwidth.

    Examples
    --------
    >>> 0.5 < pipelined().dram < 1
    True
    """

    dram: float
    by_warp: float
    begin_cycles: float
    sum_cycles: float
    pj_mac: float
    launch: float
    scale_launches: float
    scale_bytes: float


@cache
def pipelined() -> Pipelined:
    """Read the fitted numbers."""
    return calibrated(Pipelined, FILE, "parameters")


def pipelined_spread(measured_as: str, data_type: str) -> Spread:
    """Find the rows most like it: same GPU and data type, or a GPU never fitted.

    Examples
    --------
    >>> pipelined_spread("h100", "bf16").basis
    'H100 bf16 GEMMs held out of the fit'
    """
    return first_spread(FILE, (f"{measured_as} {data_type}", "other"))


@cache
def _kernels(by_group: bool) -> tuple[Numbers, Numbers, Numbers]:
    """Rows, columns and splits of all kernels, each once."""
    sides = _SIDES + _MORE if by_group else _SIDES
    tiles = dict.fromkeys([*sides, *(side[::-1] for side in sides)])
    every = np.array([(*tile, split) for tile in tiles for split in _SPLITS], dtype=np.float64)
    return every[:, 0], every[:, 1], every[:, 2]


def pipelined_time(
    product: Product, machine: Machine, fit: Pipelined, *, scales: bool = False
) -> Run:
    """Find the tile and split that finish first.

    Parameters
    ----------
    product : Product
        With A along its sums, and B, too.
    machine : Machine
    fit : Pipelined
    scales : bool
        Whether A comes in 16 bits and is scaled down to single bytes first.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> from loopsched.gpu.library.gemm import product_of
    >>> from loopsched.gpu.library.machine import machine_of
    >>> product = product_of(gemm(m=16, n=4096, k=4096), "bf16")
    >>> pipelined_time(product, machine_of(load_arch("h100"), "bf16"), pipelined()).kernel
    '16x64x64'
    """
    clock, gpu = machine.max_clock_hz, machine.gpu
    rows, columns, splits = _kernels(gpu.tensor_issue == "group")
    deep = _STEP_BYTES / product.element_bytes
    tiles = product.batch * np.ceil(product.m / rows) * np.ceil(product.n / columns) * splits
    steps = np.ceil(np.ceil(product.k / deep) / splits)
    tile_bytes = (rows + columns) * _STEP_BYTES
    room = gpu.max_block_shared_bytes or gpu.shared_bytes
    resident = np.clip(room // (tile_bytes * _SEVERAL_STAGES), 1, _MOST_RESIDENT)
    stages = np.clip(room // (tile_bytes * resident), 2, _MOST_STAGES)
    turns = np.ceil(tiles / machine.sms)
    beside = np.minimum(turns, resident)

    more = 0.0 if gpu.tensor_issue == "group" else fit.by_warp
    compute = turns * steps * (rows * columns * deep / machine.macs_per_cycle + more)
    l2 = tiles * steps * tile_bytes / (machine.l2_bytes_per_s / clock)
    dram = _dram_bytes(product, machine) / (_streaming(machine) * fit.dram / clock)
    ahead = np.minimum(stages - 1, steps) * beside
    latency = turns * steps * gpu.dram_latency / ahead
    begin = gpu.dram_latency + fit.begin_cycles
    ends = begin * (1 + (np.ceil(turns / beside) - 1) * _SHOWN)
    ends = ends + fit.sum_cycles * rows * columns * (1 + (turns - 1) * _SHOWN)
    together = _joined(compute, l2, np.full_like(l2, dram), latency) + ends
    energy_s = 0.0
    if gpu.power_w:
        joule = 1e-12 * fit.pj_mac * product.macs * product.element_bytes / 2
        energy_s = joule / gpu.power_w
    busy_s = _joined(together / clock, np.full_like(l2, energy_s))
    summed = 2 * 4 * splits * product.batch * product.m * product.n / machine.l2_bytes_per_s
    split_s = np.where(splits > 1, gpu.launch_s + summed, 0.0)
    launch_s = fit.launch * gpu.launch_s
    scale_s = 0.0
    if scales:
        of_a = product.batch * product.m * product.k * fit.scale_bytes
        scale_s = fit.scale_launches * gpu.launch_s + of_a / _streaming(machine)
    at = int(np.argmin(busy_s + split_s))
    split = f" split {splits[at]:.0f}" if splits[at] > 1 else ""
    parts = [
        ("compute", max(float(compute[at]) / clock, energy_s)),
        ("L2", float(l2[at]) / clock),
        ("DRAM", dram / clock),
        ("latency", float(latency[at] + ends[at]) / clock),
        ("split", float(split_s[at])),
        ("launch", launch_s),
    ]
    if scales:
        parts.append(("scaling", scale_s))
    return Run(
        float(busy_s[at] + split_s[at]) + launch_s + scale_s,
        tuple(parts),
        f"{rows[at]:.0f}x{columns[at]:.0f}x{deep:.0f}{split}",
    )


def _streaming(machine: Machine) -> float:
    return machine.dram_bytes_per_s * machine.gpu.dram_efficiency


def _dram_bytes(product: Product, machine: Machine) -> float:
    a, b, c = product.a_bytes, product.b_bytes, product.c_bytes
    of_b = _lost(a + _LAYERS * b + c, machine)
    return b * of_b + a * _lost(a + b + c, machine) + c  # outputs are written, fit or not


def _lost(touched: float, machine: Machine) -> float:
    """Share of what was touched that L2 holds no more when it is needed again."""
    return 1 / (1 + (machine.l2_bytes / touched) ** _SHARPNESS)


def _joined(*times: Numbers) -> Numbers:
    """Join times that overlap; see `wave.overlapped`."""
    together = np.stack(times)
    most: Numbers = together.max(axis=0)
    total: Numbers = ((together / most) ** _OVERLAP).sum(axis=0)
    return most * total ** (1 / _OVERLAP)
