"""What Triton makes of a configuration: shared memory, registers, instructions."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from loopsched.gpu.calibrated import calibration_file
from loopsched.gpu.choice.space import Numbers, Space, kernel_names
from loopsched.machines.gpu_limits import Gpu

# Numbers fitted to measured kernels, and what the compiler made of these.
FILE = "choice/pipeline.json"
# Rows of the output that one instruction of four warps computes, and of one warp.
GROUP_ROWS, WARP_ROWS = 64, 16
GROUP_WARPS = 4
# Triton refuses larger arrays (`TRITON_MAX_TENSOR_NUMEL`).
MOST_ELEMENTS = 2**20
_COPY_BYTES = 16

# What kernels are compiled from: a product, a convolution of one filter position, or of several.
PRODUCT, POSITION, POSITIONS = "product", "position", "positions"
# Registers of a thread beside its sums, and for each sum, each copy of 16 bytes of A and B
# and each pair of fragments of A and B, where four warps multiply together and where one does:
# least squares over the compiler's counts in fp16, fp8 and TF32 (`registers` of pipeline.json);
# 11, 5 and 9 registers off on average.
_GUESSED = {
    PRODUCT: ((21.6, 0.93, 3.61, 5.72), (1.9, 1.21, 2.96, 2.41, 7.59, 0.61)),
    POSITION: ((17.6, 1.24, 1.94, 2.56), (1.7, 1.02, 1.94, 4.8, 6.74, 0.51)),
    POSITIONS: ((28.5, 1.03, 8.85, 7.91), (2.2, 0.93, 2.19, 11.41, 9.02, 0.47)),
}


@dataclass(frozen=True, slots=True)
class Resources:
    """What a block of each configuration takes.

    Parameters
    ----------
    by_group : array of bool
        Whether four warps issue a tensor-core instruction together.
    threads, registers, shared_bytes, spills : array
        Of a block, of a thread, of a block, of a thread.
    resident : array
        Blocks of an SM at a time; 0: none fits.
    """

    by_group: NDArray[np.bool_]
    threads: Numbers
    registers: Numbers
    shared_bytes: Numbers
    spills: Numbers
    resident: Numbers

    def kept(self, chosen: NDArray[np.bool_]) -> Resources:
        """Leave out those of configurations that are not chosen."""
        return Resources(*(getattr(self, one.name)[chosen] for one in fields(self)))


def resources(space: Space, gpu: Gpu, width: int, source: str = PRODUCT) -> Resources:
    """Say what blocks of a tiled product take, as the compiler told or as it would.

    Parameters
    ----------
    space : Space
    gpu : Gpu
    width : int, bytes
        Of an element of the operands.
    source : {"product", "position", "positions"}
        What kernels are compiled from.

    Notes
    -----
    The pipeline keeps ``stages`` steps of both operands where four warps multiply
    together, straight out of shared memory; one less where operands go through
    registers.  All 6,490 rows of spaces/triton_h100.csv agree.
    """
    bm, bn, bk = space["block_m"], space["block_n"], space["block_k"]
    stages, warps = space["stages"], space["warps"]
    by_group = issued_by_group(space, gpu)
    threads = warps * gpu.warp_threads
    buffers = np.where(by_group, stages, np.maximum(stages - 1, 1))
    shared = space.columns.get("shared_bytes", buffers * (bm + bn) * bk * width)
    guess = _guessed(space, by_group, threads, width, source)
    most = most_registers(gpu, threads)
    counted, spilled = np.minimum(guess, most), np.maximum(guess - most, 0.0)
    if is_measured(gpu):
        told = _told(space, width, source)
        counted, spilled = np.where(np.isnan(told), (counted, spilled), told)
    registers = space.columns.get("registers", counted)
    spills = space.columns.get("spills", spilled)
    resident = resident_blocks(gpu, warps, registers, shared)
    return Resources(by_group, threads, registers, shared, spills, resident)


def is_measured(gpu: Gpu) -> bool:
    """Say whether kernels were compiled and measured for such a GPU: Hopper alone."""
    return gpu.tensor_issue == "group" and not gpu.tensor_memory_bytes


def issued_by_group(space: Space, gpu: Gpu) -> NDArray[np.bool_]:
    """Say whose tensor-core instructions four warps issue together."""
    rows = space["block_m"] >= GROUP_ROWS
    together: NDArray[np.bool_] = rows & (space["warps"] >= GROUP_WARPS)
    return together & (gpu.tensor_issue == "group")


def most_registers(gpu: Gpu, threads: Numbers) -> Numbers:
    """Count the registers that a compiler gives each thread of a block, so that one block fits."""
    of_block: Numbers = gpu.registers // np.maximum(threads, 1) // 8 * 8
    return np.minimum(gpu.max_thread_registers, of_block)


def _told(space: Space, width: int, source: str) -> Numbers:
    """Registers and spills as the compiler told for a Hopper GPU; NaN where it was not asked."""
    names, stored = kernel_names(space), calibration_file(FILE)
    counts, spills = (stored[kind].get(f"{source} {width}", {}) for kind in ("registers", "spills"))
    registers = np.array([counts.get(name, np.nan) for name in names])
    spilled = np.array([spills.get(name, 0) for name in names])
    return np.stack((registers, np.where(np.isnan(registers), np.nan, spilled)))


def _guessed(
    space: Space, by_group: NDArray[np.bool_], threads: Numbers, width: int, source: str
) -> Numbers:
    bm, bn, bk, warps = space["block_m"], space["block_n"], space["block_k"], space["warps"]
    sums = bm * bn / threads
    copies = [rows * bk * width / threads / _COPY_BYTES for rows in (bm, bn)]
    down, across = warps_down(bm, warps), warps / warps_down(bm, warps)
    fragments = [bm / down / 4, bn / across / 4]
    ones = np.ones_like(sums)
    of_group, of_warp = _GUESSED[source]
    group = sum(c * x for c, x in zip(of_group, (ones, sums, *copies), strict=True))
    warp = sum(c * x for c, x in zip(of_warp, (ones, sums, *copies, *fragments), strict=True))
    return np.ceil(np.maximum(np.where(by_group, group, warp), 16.0) / 8) * 8


def warps_down(bm: Numbers, warps: Numbers) -> Numbers:
    """Count the warps of a block that stand one below the other."""
    return np.minimum(warps, np.maximum(bm / WARP_ROWS, 1.0))


def resident_blocks(gpu: Gpu, warps: Numbers, registers: Numbers, shared: Numbers) -> Numbers:
    """Count the blocks that an SM holds, by the rules of `loopsched.occupancy`."""
    of_warp = np.ceil(registers * gpu.warp_threads / gpu.register_unit) * gpu.register_unit
    by_registers = gpu.registers // np.maximum(of_warp, 1) // gpu.warp_unit * gpu.warp_unit // warps
    possible = (registers >= 1) & (registers <= gpu.max_thread_registers)
    by_registers = np.where(possible, by_registers, 0.0)
    unit = gpu.shared_unit_bytes
    taken = np.ceil((shared + gpu.system_shared_bytes) / unit) * unit
    by_shared = np.where(
        shared > gpu.max_block_shared_bytes, 0, gpu.shared_bytes // np.maximum(taken, 1)
    )
    by_warps = np.where(warps * gpu.warp_threads > gpu.max_block_threads, 0, gpu.max_warps // warps)
    by_both = np.minimum(np.minimum(by_registers, by_shared), by_warps)
    return np.minimum(by_both, float(gpu.max_blocks))


def refused(space: Space, width: int) -> NDArray[np.bool_]:
    """Say which configurations Triton would not compile: sizes are powers of two from 16.

    Examples
    --------
    >>> from loopsched.gpu.choice.space import space_of
    >>> names = ("block_m", "block_n", "block_k", "stages", "warps")
    >>> rows = [dict(zip(names, one)) for one in ((64, 64, 32, 3, 4), (96, 64, 32, 3, 4))]
    >>> refused(space_of(rows, names), 2).tolist()
    [False, True]
    """
    least = {"block_m": 16, "block_n": 16, "block_k": 32 if width == 1 else 16, "warps": 1}
    wrong = np.zeros(len(space), dtype=bool)
    for name, smallest in least.items():
        powers = np.log2(np.maximum(space[name], 1))
        wrong |= (space[name] < smallest) | (powers != np.floor(powers))
    bm, bn, bk = space["block_m"], space["block_n"], space["block_k"]
    return wrong | (np.maximum(bm * bn, np.maximum(bm, bn) * bk) > MOST_ELEMENTS)
