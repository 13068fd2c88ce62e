"""Report 000's model of a direct convolution kernel on a Titan V.

The kernel: a block of threads computes one tile of one output channel; for each
input channel it copies the tile's input, halo included, into shared memory.  The
model counts operations, divides them by peak rates for a compute time, and adds
up three memory times.  Everything is kept as the report's code has it, whole
divisions and the fitted divisor included.  It is a reproduction for comparison,
not a recommendation.

What its printed tables tell beyond its text (tests/test_report000.py):

- Both peak rates of its Figure 8b have lost a zero: its compute times need
  13.8e12 FLOP/s, and at least four times that for integers.
- The clock, which Figure 8b does not give, is the 1.2 GHz of its text.
- Memory time is the bandwidth-limited fill and synapses of its second method,
  and the reads of shared memory of its first.
- "Exec. Time" is the sum of compute and memory time.  TOPs are taken over the
  larger of the two, as its text says.
- The input of its L1 intensity is stored ``Nx + Kx`` wide, one more than needed.

With that, all its printed predictions follow to the last digit; its errors do,
too, if each time is first rounded to 1e-6 ms and TOPs to six digits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from loopsched.base.arguments import near, show
from loopsched.base.errors import InputError, ProblemError
from loopsched.problems.problem import Problem

Method = Literal["bandwidth", "latency"]
METHODS: tuple[Method, ...] = ("bandwidth", "latency")

_FLOAT_BYTES = 4
_TERA = 1e12
_SIMPLE = ("N", "K", "C", "P", "Q", "R", "S")


@dataclass(frozen=True, slots=True)
class Report000Constants:
    """The constants of report 000, Figure 8b, as its tables need them.

    Parameters
    ----------
    flops_per_s, int_ops_per_s : float, operations/s
        Peak rates.  Printed as 1,380,000,000,000 and 5,520,000,000,000; the
        compute times of Figures 15 to 18 follow from ten times as much.
    clock_hz : float, Hz
        From the report's text (by nvidia-smi); not in Figure 8b.
    sms, warp_threads, sm_blocks, sm_warps, sm_threads, block_threads : int
        Limits of the card.
    sm_shared_bytes, block_shared_bytes : int, bytes
    update_bytes : int, bytes
        What one read from DRAM brings into L1.
    l2_line_bytes : int, bytes
    dram_bytes_per_s : float, B/s
        Measured on a V100 (its Figure 7); the report takes GiB for GB.
    shared_cycles, l2_cycles, dram_cycles : int, cycles
        Latencies, measured on a V100; of DRAM, with a hit in the TLB.
    fitted_divisor : float
        Divides the integer operations, times 32 over the width of a block.

    Examples
    --------
    >>> Report000Constants().flops_per_s / Report000Constants.printed().flops_per_s
    10.0
    """

    flops_per_s: float = 13.8e12
    int_ops_per_s: float = 55.2e12
    clock_hz: float = 1.2e9
    sms: int = 80
    warp_threads: int = 32
    sm_blocks: int = 32
    sm_warps: int = 64
    sm_threads: int = 2_048
    block_threads: int = 1_024
    sm_shared_bytes: int = 98_304
    block_shared_bytes: int = 49_152
    update_bytes: int = 128
    l2_line_bytes: int = 64
    dram_bytes_per_s: float = 750e9
    shared_cycles: int = 19
    l2_cycles: int = 193
    dram_cycles: int = 375
    fitted_divisor: float = 60 * 1.69

    def __post_init__(self) -> None:
        faults = [
            f"{field.name} is {show(value)}; it must be a number above 0"
            for field in fields(self)
            if not isinstance(value := getattr(self, field.name), int | float) or not value > 0
        ]
        InputError.refuse("constants of report 000", faults)

    @classmethod
    def printed(cls) -> Report000Constants:
        """Give the constants with the peak rates as Figure 8b prints them."""
        return replace(cls(), flops_per_s=1.38e12, int_ops_per_s=5.52e12)


@dataclass(frozen=True, slots=True)
class Report000Prediction:
    """What report 000's model says of one kernel.

    Parameters
    ----------
    flops, int_ops : int
        Operations; the integer operations after the fitted divisor.
    thread_int_ops : int
        Integer operations a thread, before the divisor (Equation 1).
    grid : tuple of int
        Blocks along x, y and z.
    sm_iterations : int
        Times that a multiprocessor fills up with threads (Figure 12).
    blocks_at_a_time : int
        Blocks that the whole card holds (Figure 16).
    compute_s : float, seconds
    fill_s, shared_s, synapse_s : float, seconds
        The parts of the memory time: DRAM to shared memory, reads of shared
        memory, reads of weights.
    l1_intensity, l2_intensity, dram_intensity : int
        Operations a byte, cut to whole numbers.
    warnings : tuple of str
        What the report's program would warn of, and compute on.

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d
    >>> said = report000_prediction(conv2d(c=32, k=32, p=32, q=32, r=3, s=3), 32)
    >>> said.blocks, said.sm_iterations, said.blocks_at_a_time
    (32, 1, 160)
    """

    flops: int
    int_ops: int
    thread_int_ops: int
    grid: tuple[int, int, int]
    sm_iterations: int
    blocks_at_a_time: int
    compute_s: float
    fill_s: float
    shared_s: float
    synapse_s: float
    l1_intensity: int
    l2_intensity: int
    dram_intensity: int
    warnings: tuple[str, ...] = ()

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def total_ops(self) -> int:
        """Floating-point and integer operations."""
        return self.flops + self.int_ops

    @property
    def memory_s(self) -> float:
        """Memory time: its three parts, one after the other."""
        return self.fill_s + self.shared_s + self.synapse_s

    @property
    def execution_s(self) -> float:
        """What the tables call execution time: compute and memory time, added."""
        return self.compute_s + self.memory_s

    @property
    def limit_s(self) -> float:
        """What the text calls execution time: the larger of the two."""
        return max(self.compute_s, self.memory_s)

    @property
    def tops(self) -> float:
        """Tera-operations a second, over the larger of the two times."""
        return self.total_ops / self.limit_s / _TERA


def report000_prediction(
    problem: Problem,
    block: int | tuple[int, int],
    *,
    constants: Report000Constants | None = None,
    memory: Method = "bandwidth",
) -> Report000Prediction:
    """Predict operations and times of the direct kernel as report 000 does.

    Parameters
    ----------
    problem : Problem
        A `conv2d` of one image, of stride and dilation 1, without groups.  The
        report speaks of ``Nx Ny Kx Ky Ni Nn``: here ``Q P S R C K``.
    block : int or (int, int)
        Threads of a block along x and y; one number: square.
    constants : Report000Constants, optional
    memory : {'bandwidth', 'latency'}
        How filling shared memory and reading weights are timed: by bytes over
        DRAM bandwidth (the report's second method, which its tables use), or
        by latencies and blocks at a time (its first).

    Raises
    ------
    ProblemError
        If the problem is of another kind.
    InputError
        If the block is impossible, or wider than the fitted divisor knows of.

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d
    >>> said = report000_prediction(conv2d(c=32, k=32, p=32, q=32, r=3, s=3), 32)
    >>> said.flops, said.int_ops, round(said.tops, 5)
    (18874368, 72575626, 1.58886)
    >>> f"{said.compute_s * 1e3:.3f} {said.memory_s * 1e3:.3f} {said.execution_s * 1e3:.3f}"
    '0.003 0.058 0.061'
    """
    constants = constants or Report000Constants()
    if memory not in METHODS:
        raise InputError(f"memory is {show(memory)}; {near(memory, METHODS)}")
    kernel = _kernel(problem, block, constants)
    thread_int_ops = _thread_int_ops(kernel)
    divisor = constants.fitted_divisor * (32 // kernel.block_x)
    flops = 2 * kernel.outputs * kernel.taps
    int_ops = int(thread_int_ops * kernel.outputs / divisor)
    iterations, compute_s = _compute(kernel, flops, int_ops, constants)
    at_a_time = _blocks_at_a_time(kernel, constants)
    fill = _fill_by_bytes if memory == "bandwidth" else _fill_by_latency
    synapse = _synapse_by_bytes if memory == "bandwidth" else _synapse_by_latency
    ops = flops + int_ops
    # Stored one wider than the loops reach, as the printed intensities need it.
    input_bytes = _FLOAT_BYTES * kernel.ni * (kernel.ny + kernel.ky) * (kernel.nx + kernel.kx)
    synapse_bytes = _FLOAT_BYTES * kernel.nn * kernel.taps
    output_bytes = _FLOAT_BYTES * kernel.outputs
    return Report000Prediction(
        flops=flops,
        int_ops=int_ops,
        thread_int_ops=thread_int_ops,
        grid=kernel.grid,
        sm_iterations=iterations,
        blocks_at_a_time=at_a_time,
        compute_s=compute_s,
        fill_s=fill(kernel, at_a_time, constants),
        shared_s=_shared(kernel, at_a_time, constants),
        synapse_s=synapse(kernel, at_a_time, constants),
        l1_intensity=ops // input_bytes,
        l2_intensity=ops // synapse_bytes,
        dram_intensity=ops // (synapse_bytes + output_bytes),
        warnings=_warnings(kernel, constants),
    )


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The report's own names for the sizes."""

    nx: int
    ny: int
    kx: int
    ky: int
    ni: int
    nn: int
    block_x: int
    block_y: int

    @property
    def outputs(self) -> int:
        return self.nx * self.ny * self.nn

    @property
    def taps(self) -> int:
        """Multiply-accumulates an output."""
        return self.kx * self.ky * self.ni

    @property
    def tile_x(self) -> int:
        return self.block_x + self.kx - 1

    @property
    def tile_y(self) -> int:
        return self.block_y + self.ky - 1

    @property
    def tile_bytes(self) -> int:
        return _FLOAT_BYTES * self.tile_x * self.tile_y

    @property
    def threads(self) -> int:
        return self.block_x * self.block_y

    @property
    def grid(self) -> tuple[int, int, int]:
        """Figure 11."""
        return -(-self.nx // self.block_x), -(-self.ny // self.block_y), self.nn

    @property
    def fills(self) -> int:
        """Tiles that all blocks together copy into shared memory."""
        x, y, z = self.grid
        return x * y * z * self.ni


def _kernel(
    problem: Problem, block: int | tuple[int, int], constants: Report000Constants
) -> _Kernel:
    if problem.kind != "conv2d" or tuple(problem.dims) != _SIMPLE:
        raise ProblemError(
            f"problem '{problem.name}': report 000 models conv2d without groups, "
            f"not {problem.kind} over {' '.join(problem.dims)}"
        )
    size = problem.size
    steps = {c for axis in problem.tensor("input").axes for _, c in axis.terms}
    if size["N"] != 1 or steps != {1} or problem.output_tensor.name != "output":
        raise ProblemError(
            f"problem '{problem.name}': report 000 models the forward pass of one image, "
            "stride and dilation 1"
        )
    x, y = (block, block) if isinstance(block, int) else block
    if not (1 <= x <= 32 and y >= 1 and x * y <= constants.block_threads):
        raise InputError(
            f"block of {x} x {y} threads; report 000's model has blocks of up to 32 threads "
            f"along x and {constants.block_threads} in all"
        )
    return _Kernel(
        size["Q"], size["P"], size["S"], size["R"], size["C"], size["K"], block_x=x, block_y=y
    )


def _thread_int_ops(kernel: _Kernel) -> int:
    """Equation 1, with the whole divisions of its code (Figure 10)."""
    rounds = (kernel.tile_y // kernel.block_y) * (kernel.tile_x // kernel.block_x)
    window = kernel.ky * kernel.kx
    return 8 + kernel.ni * (6 * kernel.tile_y * kernel.tile_x + 9 * window + rounds)


def _compute(
    kernel: _Kernel, flops: int, int_ops: int, constants: Report000Constants
) -> tuple[int, float]:
    """Figures 12 and 13: iterations of a multiprocessor, and compute time."""
    x, y, z = kernel.grid
    active = min(x * y * z, constants.sms)
    blocks_per_sm = -(-(x * y * z) // active)
    iterations = -(-blocks_per_sm * kernel.threads // constants.sm_threads)
    share = active / constants.sms
    slower = max(
        int_ops / (constants.int_ops_per_s * share), flops / (constants.flops_per_s * share)
    )
    return iterations, iterations * slower


def _blocks_at_a_time(kernel: _Kernel, constants: Report000Constants) -> int:
    """Figure 16 (the first of that number): limits of a multiprocessor, times all of them."""
    warps = -(-kernel.threads // constants.warp_threads)
    per_sm = min(
        constants.sm_threads // kernel.threads,
        constants.sm_shared_bytes // kernel.tile_bytes,
        constants.sm_warps // warps,
        constants.sm_blocks,
    )
    if per_sm == 0:
        raise InputError(
            f"a tile of {kernel.tile_bytes} bytes: shared memory of a multiprocessor "
            f"has {constants.sm_shared_bytes}; no block would run"
        )
    return per_sm * constants.sms


def _fill_by_latency(kernel: _Kernel, at_a_time: int, constants: Report000Constants) -> float:
    """Figure 14: its `ceil` is around a whole division, so it rounds down."""
    reads = kernel.tile_bytes // constants.update_bytes
    return reads * constants.dram_cycles / constants.clock_hz * kernel.fills / at_a_time


def _fill_by_bytes(kernel: _Kernel, _: int, constants: Report000Constants) -> float:
    """Figure 17 (the first of that number)."""
    return kernel.fills * kernel.tile_bytes / constants.dram_bytes_per_s


def _shared(kernel: _Kernel, at_a_time: int, constants: Report000Constants) -> float:
    """Reads of shared memory in the convolution loop; only in the report's text."""
    thread_s = kernel.taps * constants.shared_cycles / constants.clock_hz
    return kernel.outputs * thread_s / (at_a_time * kernel.threads)


def _synapse_by_latency(kernel: _Kernel, at_a_time: int, constants: Report000Constants) -> float:
    """Figure 15: lines from DRAM, then hits in L2; `ceil` again rounds down, but to 1."""
    x, y, _ = kernel.grid
    lines = max(1, kernel.ky * kernel.kx * _FLOAT_BYTES // constants.l2_line_bytes)
    layers = kernel.ni * kernel.nn
    line_s = (constants.l2_cycles + constants.dram_cycles) / constants.clock_hz
    l2_s = constants.l2_cycles / constants.clock_hz
    fetch_s = lines * line_s * layers / max(1, at_a_time // (x * y))
    hits = kernel.nx * kernel.ny * layers - lines * layers
    return fetch_s + hits * l2_s / (at_a_time * kernel.threads)


def _synapse_by_bytes(kernel: _Kernel, _: int, constants: Report000Constants) -> float:
    """Figure 16 (the second of that number): every thread reads every weight from DRAM."""
    return kernel.outputs * kernel.taps * _FLOAT_BYTES / constants.dram_bytes_per_s


def _warnings(kernel: _Kernel, constants: Report000Constants) -> tuple[str, ...]:
    if kernel.tile_bytes <= constants.block_shared_bytes:
        return ()
    return (
        f"the tile takes {kernel.tile_bytes} bytes of shared memory; "
        f"a block has {constants.block_shared_bytes}",
    )
