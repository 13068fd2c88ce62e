"""Instructions that the warps of a kernel execute.

Multiply-adds, loads and stores are exact.  What goes with them (addresses, loops,
tests) is a model: a few costs, fitted to counters (see docs/kernels.md), times exact
numbers of executions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from loopsched.gpu.kernel import BoundLoop, Kernel
from loopsched.gpu.kernel_calibration import InstructionCosts, kernel_calibration
from loopsched.gpu.views import DigitLayout


class Counted(Protocol):
    """What the model needs to know of an access."""

    @property
    def tensor(self) -> str: ...
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
    integer_ops : float
        Integer instructions by threads: a model.
    warp_efficiency : float
        Lanes that are on, of all lanes of the instructions.
    """

    multiply_adds: int
    memory: int
    overhead: float
    integer_ops: float
    warp_efficiency: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.multiply_adds + self.memory + self.overhead


@dataclass(frozen=True, slots=True)
class Executions:
    """How often the parts of a kernel that cost overhead are executed.

    Each is a pair: by warps, and by threads that are on.  The fields are those
    of `InstructionCosts`.
    """

    start: tuple[float, float]
    fill: tuple[float, float]
    digits: tuple[float, float]
    test: tuple[float, float]
    load: tuple[float, float]
    row: tuple[float, float]
    unrolled_load: tuple[float, float]
    unrolled_start: tuple[float, float]


def executions(
    kernel: Kernel,
    accesses: Sequence[Counted],
    multiply_adds: tuple[int, int],
    warp_threads: int,
) -> Executions:
    """Count the executions that cost overhead.

    Parameters
    ----------
    kernel : Kernel
    accesses : sequence
        As `loopsched.gpu.counting.profile` finds them.
    multiply_adds : (int, int)
        By warps, by threads.
    warp_threads : int
    """
    threads = kernel.n_blocks * kernel.block_threads
    warps = kernel.n_blocks * -(-kernel.block_threads // warp_threads)
    fills = [one for one in accesses if one.stage == "fill" and one.op == "store"]
    loads = [one for one in accesses if one.stage == "compute"]
    tested = [one for one in loads if one.is_tested and one.space not in ("shared", "constant")]
    nothing = (0.0, 0.0)
    starts = _starts(kernel, multiply_adds)
    if kernel.is_unrolled:
        loads = [one for one in loads if one.space not in ("shared", "constant")]
    return Executions(
        start=(warps, threads),
        fill=_sum(fills),
        digits=_sum([one for one in fills if isinstance(kernel.layout(one.tensor), DigitLayout)]),
        test=_sum(tested),
        load=nothing if kernel.is_unrolled else _sum(loads),
        row=nothing if kernel.is_unrolled else starts,
        unrolled_load=_sum(loads) if kernel.is_unrolled else nothing,
        unrolled_start=starts if kernel.is_unrolled else nothing,
    )


def instructions(
    kernel: Kernel,
    accesses: Sequence[Counted],
    multiply_adds: tuple[int, int],
    warp_threads: int,
    costs: InstructionCosts | None = None,
) -> Instructions:
    """Estimate what the warps of a kernel execute; see `executions` for parameters."""
    costs = kernel_calibration().instructions if costs is None else costs
    found = executions(kernel, accesses, multiply_adds, warp_threads)
    overhead = overhead_lanes = 0.0
    for name in Executions.__dataclass_fields__:
        by_warps, by_threads = getattr(found, name)
        overhead += getattr(costs, name) * by_warps
        overhead_lanes += getattr(costs, name) * by_threads
    by_warps = multiply_adds[0] + sum(one.requests for one in accesses)
    by_threads = multiply_adds[1] + sum(one.lanes for one in accesses)
    return Instructions(
        multiply_adds[0],
        by_warps - multiply_adds[0],
        overhead,
        costs.integer_share * overhead_lanes,
        (by_threads + overhead_lanes) / (warp_threads * (by_warps + overhead)),
    )


def _sum(accesses: Sequence[Counted]) -> tuple[float, float]:
    return float(sum(one.requests for one in accesses)), float(sum(one.lanes for one in accesses))


def _starts(kernel: Kernel, multiply_adds: tuple[int, int]) -> tuple[float, float]:
    """Count how often the innermost loops start: one that is not unrolled, or all that are."""
    inside = kernel.accumulators
    sums = list(_sums(kernel))
    if kernel.is_unrolled:
        filled = [read.position for _, read in kernel.reads if read.space == "shared"]
        sums = [loop for loop in sums if loop.position >= max(filled, default=0)]
    else:
        sums = sums[-1:]
    for loop in sums:
        inside *= loop.trips
    return multiply_adds[0] / inside, multiply_adds[1] / inside


def _sums(kernel: Kernel) -> Iterator[BoundLoop]:
    summed = set(kernel.problem.reduction_dims)
    for loop in kernel.time_loops:
        if loop.trips > 1 and loop.dim in summed:
            yield loop
