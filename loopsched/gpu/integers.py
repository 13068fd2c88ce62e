"""Integer instructions of a kernel: a model with few constants, stated here.

The constants follow from counters of 23 kernels on an H200 (counters/h200_kernels.csv);
how far they are off is in docs/kernels.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from loopsched.gpu.classes import Counts
from loopsched.gpu.kernel import Kernel

# Instructions by a thread: its own indices, and the test that it is inside the output.
PROLOGUE = 40.0
# For each execution: address, test and loop of what they belong to.
FILL = 8.0
TESTED = 3.75
UNTESTED = 1.2
SHARED = 1.1


class Counted(Protocol):
    """What the model needs to know of an access."""

    @property
    def op(self) -> str: ...
    @property
    def space(self) -> str: ...
    @property
    def stage(self) -> str: ...
    @property
    def requests(self) -> int: ...
    @property
    def lanes(self) -> int: ...
    @property
    def is_tested(self) -> bool: ...


def integer_instructions(
    kernel: Kernel, accesses: Sequence[Counted], fma: Counts, warp_threads: int
) -> tuple[float, float]:
    """Estimate integer instructions by threads, and the lanes that are on, of all.

    Every access costs instructions for its address: more where a test goes
    with it, none in shared or constant memory where loops are unrolled.
    """
    threads = kernel.n_blocks * kernel.block_threads
    warps = kernel.n_blocks * -(-kernel.block_threads // warp_threads)
    integers = PROLOGUE * threads
    lanes, slots = PROLOGUE * threads, PROLOGUE * warps
    for one in accesses:
        cost = _cost(one, kernel.is_unrolled)
        integers += cost * one.lanes
        lanes += (cost + 1) * one.lanes
        slots += (cost + 1) * one.requests
    if kernel.multiplies:
        lanes += fma.lanes
        slots += fma.requests
    return integers, lanes / (warp_threads * slots)


def _cost(one: Counted, is_unrolled: bool) -> float:
    if one.stage == "fill":
        return FILL if one.op == "load" else 0.0
    if one.space in ("shared", "constant"):
        return 0.0 if is_unrolled else SHARED
    if one.is_tested and one.stage == "compute":
        return TESTED
    return 0.25 * UNTESTED if is_unrolled else UNTESTED
