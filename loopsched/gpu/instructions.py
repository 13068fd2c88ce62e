"""Instructions that the warps of a kernel execute.

Multiply-adds, loads and stores are exact.  What goes with them (addresses, loops,
tests) is a model: a few costs, fitted to counters (see docs/kernels.md), times exact
numbers of executions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from loopsched.gpu.accesses import AccessCount
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.kernel_calibration import InstructionCosts, kernel_calibration
from loopsched.gpu.views import DigitLayout


@dataclass(frozen=True, slots=True)
class Instructions:
    """Instructions by warps, over all blocks.

    Parameters
    ----------
    multiply_adds : int
    memory : int
        Loads and stores.
    overhead : float
        Addresses, loops, tests: a model.
    """

    multiply_adds: int
    memory: int
    overhead: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.multiply_adds + self.memory + self.overhead


@dataclass(frozen=True, slots=True)
class Executions(InstructionCosts):
    """How often warps execute the parts of a kernel that cost overhead, named as their costs."""


def executions(
    kernel: Kernel, accesses: Sequence[AccessCount], multiply_adds: int, warp_threads: int
) -> Executions:
    """Count the executions that cost overhead.

    Parameters
    ----------
    kernel : Kernel
    accesses : sequence
        As `loopsched.gpu.counting.profile` finds them.
    multiply_adds : int
        By warps.
    warp_threads : int
    """
    warps = kernel.n_blocks * -(-kernel.block_threads // warp_threads)
    fills = [one for one in accesses if one.stage == "fill" and one.op == "store"]
    loads = [one for one in accesses if one.stage == "compute"]
    tested = [one for one in loads if one.is_tested and one.space not in ("shared", "constant")]
    starts = _starts(kernel, multiply_adds)
    if kernel.is_unrolled:
        loads = [one for one in loads if one.space not in ("shared", "constant")]
    return Executions(
        start=warps,
        fill=_sum(fills),
        digits=_sum([one for one in fills if isinstance(kernel.layout(one.tensor), DigitLayout)]),
        test=_sum(tested),
        load=0.0 if kernel.is_unrolled else _sum(loads),
        row=0.0 if kernel.is_unrolled else starts,
        unrolled_load=_sum(loads) if kernel.is_unrolled else 0.0,
        unrolled_start=starts if kernel.is_unrolled else 0.0,
    )


def instructions(
    kernel: Kernel, accesses: Sequence[AccessCount], multiply_adds: int, warp_threads: int
) -> Instructions:
    """Estimate what the warps of a kernel execute; see `executions` for parameters."""
    costs = kernel_calibration().instructions
    found = executions(kernel, accesses, multiply_adds, warp_threads)
    overhead = sum(
        getattr(costs, entry.name) * getattr(found, entry.name) for entry in fields(Executions)
    )
    return Instructions(multiply_adds, sum(one.requests for one in accesses), overhead)


def _sum(accesses: Sequence[AccessCount]) -> float:
    return float(sum(one.requests for one in accesses))


def _starts(kernel: Kernel, multiply_adds: int) -> float:
    """Count how often the innermost loops start: one that is not unrolled, or all that are."""
    inside = kernel.accumulators
    summed = kernel.problem.reduction_dims
    sums = [loop for loop in kernel.time_loops if loop.trips > 1 and loop.dim in summed]
    if kernel.is_unrolled:
        filled = [read.position for _, read in kernel.reads if read.space == "shared"]
        sums = [loop for loop in sums if loop.position >= max(filled, default=0)]
    else:
        sums = sums[-1:]
    for loop in sums:
        inside *= loop.trips
    return multiply_adds / inside
