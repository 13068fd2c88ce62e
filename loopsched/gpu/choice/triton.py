"""What Triton makes of a configuration: shared memory, registers, instructions."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from loopsched.gpu.choice.space import Numbers, Space
from loopsched.machines.gpu_limits import Gpu

# Rows of the output that one instruction of four warps computes, and of one warp.
GROUP_ROWS, WARP_ROWS = 64, 16
GROUP_WARPS = 4
# Triton refuses larger arrays (`TRITON_MAX_TENSOR_NUMEL`).
MOST_ELEMENTS = 2**20
_COPY_BYTES = 16

# Registers of a thread beside its sums, and for each sum, each copy of 16 bytes of A and B
# and each pair of fragments of A and B: least squares over the compiler's counts of 668
# kernels of spaces/triton_h100.csv; 6 registers off on average.
_GROUP_REGISTERS = (21.5, 1.18, 2.24, 2.71)
_WARP_REGISTERS = (1.7, 1.31, 3.0, 2.95, 6.97, 0.65)


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


def resources(space: Space, gpu: Gpu, width: int) -> Resources:
    """Say what blocks of a tiled product take, as the compiler told or as it would.

    Parameters
    ----------
    space : Space
    gpu : Gpu
    width : int, bytes
        Of an element of the operands.

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
    guess = _registers(space, by_group, threads, width)
    most = most_registers(gpu, threads)
    registers = space.columns.get("registers", np.minimum(guess, most))
    spills = space.columns.get("spills", np.maximum(guess - most, 0.0))
    resident = resident_blocks(gpu, warps, registers, shared)
    return Resources(by_group, threads, registers, shared, spills, resident)


def issued_by_group(space: Space, gpu: Gpu) -> NDArray[np.bool_]:
    """Say whose tensor-core instructions four warps issue together."""
    rows = space["block_m"] >= GROUP_ROWS
    together: NDArray[np.bool_] = rows & (space["warps"] >= GROUP_WARPS)
    return together & (gpu.tensor_issue == "group")


def most_registers(gpu: Gpu, threads: Numbers) -> Numbers:
    """Count the registers that a compiler gives each thread of a block, so that one block fits."""
    of_block: Numbers = gpu.registers // np.maximum(threads, 1) // 8 * 8
    return np.minimum(gpu.max_thread_registers, of_block)


def _registers(space: Space, by_group: NDArray[np.bool_], threads: Numbers, width: int) -> Numbers:
    bm, bn, bk, warps = space["block_m"], space["block_n"], space["block_k"], space["warps"]
    sums = bm * bn / threads
    copies = [rows * bk * width / threads / _COPY_BYTES for rows in (bm, bn)]
    down, across = warps_down(bm, warps), warps / warps_down(bm, warps)
    fragments = [bm / down / 4, bn / across / 4]
    ones = np.ones_like(sums)
    group = sum(c * x for c, x in zip(_GROUP_REGISTERS, (ones, sums, *copies), strict=True))
    warp = sum(
        c * x for c, x in zip(_WARP_REGISTERS, (ones, sums, *copies, *fragments), strict=True)
    )
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
