"""How many blocks of threads one multiprocessor holds at a time, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.base.arguments import Checker
from loopsched.base.errors import InputError
from loopsched.base.units import format_capacity
from loopsched.machines.gpu_limits import Gpu


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What of a kernel is resident on one multiprocessor.

    Parameters
    ----------
    blocks : int
    warps : int
        Of all these blocks; a warp filled in part counts.
    share : float
        Of the warps that the multiprocessor could hold: theoretical occupancy.
    limited_by : tuple of str
        The resources that allow no further block, as in `limits`.
    limits : tuple of (str, int)
        Blocks that each resource alone would allow: ``warps``, ``blocks``,
        ``registers``, and ``shared memory`` where some is taken.
    """

    blocks: int
    warps: int
    share: float
    limited_by: tuple[str, ...]
    limits: tuple[tuple[str, int], ...]


def occupancy(gpu: Gpu, threads: int, registers: int, shared_bytes: int = 0) -> Occupancy:
    """Work out the theoretical occupancy of a kernel.

    Parameters
    ----------
    gpu : Gpu
    threads : int
        Of a block.
    registers : int
        Of a thread.
    shared_bytes : int, bytes
        Per block, without the system's part.

    Raises
    ------
    InputError
        If no block fits, with every resource that it exceeds.

    See Also
    --------
    profile, tiled_gemm

    Notes
    -----
    NVIDIA's rules (CUDA C++ Programming Guide, hardware multithreading): a block
    takes whole warps; a warp's registers come in multiples of ``register_unit``
    and go to groups of ``warp_unit`` warps; shared memory comes in multiples
    of ``shared_unit_bytes``, with the system's part of each block added.

    Examples
    --------
    Report 002's blocks of 24 x 24 threads with 31 registers:

    >>> from loopsched import load_arch
    >>> found = occupancy(load_arch("v100").kernel_limits, 24 * 24, 31)
    >>> found.blocks, found.warps, found.share, found.limited_by
    (3, 54, 0.84375, ('warps', 'registers'))
    """
    check = Checker("occupancy", InputError)
    check.count("threads", threads)
    check.count("registers", registers)
    check.count("shared_bytes", shared_bytes, least=0)
    check.finish()
    warps = -(-threads // gpu.warp_threads)
    limits: tuple[tuple[str, int], ...] = (
        ("warps", gpu.max_warps // warps),
        ("blocks", gpu.max_blocks),
        ("registers", _resident_warps(gpu, registers) // warps),
    )
    taken = _taken_shared_bytes(gpu, shared_bytes)
    if taken:
        limits += (("shared memory", gpu.shared_bytes // taken),)
    InputError.refuse(
        f"a block of {threads:,} threads does not fit",
        _excesses(gpu, threads, registers, shared_bytes, dict(limits)),
    )
    blocks = min(many for _, many in limits)
    limited_by = tuple(name for name, many in limits if many == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / gpu.max_warps, limited_by, limits)


def _resident_warps(gpu: Gpu, registers: int) -> int:
    """Count the warps whose registers fit."""
    unit = gpu.register_unit
    of_warp = -(-registers * gpu.warp_threads // unit) * unit
    return gpu.registers // of_warp // gpu.warp_unit * gpu.warp_unit


def _taken_shared_bytes(gpu: Gpu, shared_bytes: int) -> int:
    unit = gpu.shared_unit_bytes
    return -(-(shared_bytes + gpu.system_shared_bytes) // unit) * unit


def _excesses(
    gpu: Gpu, threads: int, registers: int, shared_bytes: int, limits: dict[str, int]
) -> list[str]:
    asked = (
        ("threads per block", threads, gpu.max_block_threads),
        ("registers per thread", registers, gpu.max_thread_registers),
    )
    faults = [
        f"{value:,} {what}; at most {most:,} are allowed"
        for what, value, most in asked
        if value > most
    ]
    if shared_bytes > (most := gpu.max_block_shared_bytes):
        faults.append(
            f"{format_capacity(shared_bytes)} of shared memory per block; at most "
            f"{format_capacity(most)} is allowed"
        )
    if not faults:
        faults = [f"{name}: an SM cannot hold one block" for name, n in limits.items() if not n]
    return faults
