"""What the blocks of configurations have to do, and how long that takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopsched.gpu.choice.space import Numbers


@dataclass(frozen=True, slots=True)
class Work:
    """What the blocks of each configuration have to do.

    Parameters
    ----------
    blocks, steps : array
        Of the kernel, and of a block.
    tile_bytes : array, bytes
        Of both operands' part of a step.
    l2_bytes : array, bytes
        That a block's step asks of L2, what rows cost besides included.
    tensor_cycles : array, cycles
        Of a step of a block alone.
    rows, sums : array
        Of A's tile; sums of a block.
    term_bytes : array, bytes
        Of the terms that a step adds to each sum, one after another.
    wait_cycles, block_cycles : array, cycles
        More latency of a step; more time of a block for each resident block.
    dram_bytes : callable
        Bytes from and to DRAM of the kernel, for so many blocks at a time.
    alone_cycles : array, cycles
        That a step of a block takes longer if no other block multiplies meanwhile.
    macs, width : float
        Multiply-accumulates of the kernel; bytes of an element.
    after_s : array, seconds
        Of another kernel that ends the work.
    shared_bytes : array, bytes
        Of `l2_bytes`, what blocks launched next to each other ask for together.
    """

    blocks: Numbers
    steps: Numbers
    tile_bytes: Numbers
    l2_bytes: Numbers
    tensor_cycles: Numbers
    rows: Numbers
    sums: Numbers
    term_bytes: Numbers
    wait_cycles: Numbers
    block_cycles: Numbers
    dram_bytes: Callable[[Numbers], Numbers]
    alone_cycles: Numbers
    macs: float
    width: int
    after_s: Numbers
    shared_bytes: Numbers | float = 0.0


@dataclass(frozen=True, slots=True)
class Times:
    """Times of all configurations.

    Parameters
    ----------
    time_s : array, seconds
    parts : mapping of str to array, seconds
        What each resource alone would take by name, were all blocks like
        those of a full wave.
    waves : array
    """

    time_s: Numbers
    parts: dict[str, Numbers]
    waves: Numbers
