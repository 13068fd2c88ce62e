"""Integer instructions of a kernel: a model with few constants, stated here.

The constants were fitted by hand to the integer instructions of 23 kernels on an H200
(counters/h200_kernels.csv); how far they are off is in docs/kernels.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopsched.gpu.accesses import AccessCount, Counts
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.views import DigitLayout

# Instructions by a thread: its own indices, and the test that it is inside the output.
PROLOGUE = 34.0
# For each round of a filling, and for each load of it.
ROUND, FILL = 2.0, 4.5
# Two divisions and remainders for a place in an image that is unrolled while it is read.
DIGITS = 40.0
# For each load: with a test that its place exists, without, from shared or constant memory.
TESTED, UNTESTED, SHARED = 3.3, 1.2, 0.64
# For each start of the innermost loop that sums.
ROW = 11.0


def integer_instructions(
    kernel: Kernel, accesses: Sequence[AccessCount], fma: Counts, warp_threads: int
) -> tuple[float, float]:
    """Estimate integer instructions by threads, and the lanes that are on, of all.

    Every access costs instructions for its address: more where a test goes
    with it, none in shared or constant memory where loops are unrolled.  So do
    the loops, unless they are unrolled.
    """
    threads = kernel.n_blocks * kernel.block_threads
    warps = kernel.n_blocks * -(-kernel.block_threads // warp_threads)
    fill = "fill", "load"
    rounds = sum(one.trips * one.rounds for one in accesses if (one.stage, one.op) == fill)
    starts = 0.0 if kernel.is_unrolled or not kernel.multiplies else 1 / _innermost(kernel)
    integers = (PROLOGUE + ROUND * rounds) * threads + ROW * starts * fma.lanes
    # By lanes and by warps, all instructions.
    lanes = integers + (fma.lanes if kernel.multiplies else 0)
    slots = (PROLOGUE + ROUND * rounds) * warps + ROW * starts * fma.requests
    slots += fma.requests if kernel.multiplies else 0
    for one in accesses:
        cost = _cost(kernel, one)
        integers += cost * one.lanes
        lanes += (cost + 1) * one.lanes
        slots += (cost + 1) * one.requests
    return integers, lanes / (warp_threads * slots)


def _innermost(kernel: Kernel) -> float:
    """Points that a thread computes between two starts of the innermost loop that sums."""
    sums = [
        loop.trips for loop in kernel.time_loops if loop.dim in set(kernel.problem.reduction_dims)
    ]
    is_only = sum(trips > 1 for trips in sums) < 2
    return float("inf") if is_only else float(sums[-1] * kernel.accumulators)


def _cost(kernel: Kernel, one: AccessCount) -> float:
    if one.stage == "fill":
        is_view = isinstance(kernel.layout(one.tensor), DigitLayout)
        return (FILL + (DIGITS if is_view else 0.0)) if one.op == "load" else 0.0
    if one.space in ("shared", "constant"):
        return 0.0 if kernel.is_unrolled else SHARED
    if one.is_tested and one.stage == "compute":
        return TESTED
    return 0.25 * UNTESTED if kernel.is_unrolled else UNTESTED
