"""Your own tiled kernel in one call: what it takes, what it moves, how long it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from loopsched.arch import Arch
from loopsched.arguments import Checker
from loopsched.errors import ProblemError
from loopsched.footprint import tensor_bytes
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.library.calibration import Calibration, calibration, own_kernels
from loopsched.gpu.library.conv_gemm import product_of as conv_product_of
from loopsched.gpu.library.conv_layer import layer_of
from loopsched.gpu.library.gemm import product_of
from loopsched.gpu.library.machine import Machine, element_bytes, machine_of, sum_bytes
from loopsched.gpu.library.order import WAYS, Grid, operand_reads
from loopsched.gpu.library.spread import estimate_of, own_spread
from loopsched.gpu.library.tiles import Tile
from loopsched.gpu.library.wave import Product, compute_time, dram_rate, l2_rate, overlapped
from loopsched.gpu.occupancy import Occupancy, occupancy
from loopsched.gpu.result import Estimate
from loopsched.problem import Problem

# Registers of a thread beside its sums: addresses, fragments, counters.
_OTHER_REGISTERS = 48
_MOST_SPLIT, _MOST_STAGES, _LARGEST = 2**16, 64, 2**31
# Copies of 16 bytes need rows that a multiple of so many elements apart begin.
_ALIGNMENT = 16
_NARROW = 64
# One load of a thread moves at most so much.
_VECTOR_BYTES = 16


@dataclass(frozen=True, slots=True)
class TiledKernel:
    """A tiled kernel on a GPU: resources, traffic, bound and estimate.

    Parameters
    ----------
    problem, arch, data_type : str
    tile : tuple of int
        Rows, columns and terms of the sum that a block works on at a time.
    grid : tuple of int
        Tiles along rows and columns, parts of the sums, products of a batch.
    threads, registers, shared_bytes : int
        Of a block, of a thread, of a block.
    registers_given : bool
        Whether the registers were given; else they are a guess.
    occupancy : Occupancy
    waves : float
        Blocks over what the machine holds at a time.
    macs : int
    shared_bytes_read : int, bytes
        Loaded from shared memory by all warps, if each computes a part of the
        tile that is about square; on ordinary lanes what its loads keep busy.
    l2_bytes_read, l2_bytes_written : int, bytes
        Between the SMs and L2.
    dram_bytes_read, dram_bytes_written : float, bytes
        From a cold start.
    traffic_from : str
        ``closed form`` or ``replay``: where DRAM's bytes come from.
    estimate : Estimate

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> found = tiled_gemm(gemm(m=64, n=64, k=64), load_arch("v100"), tile=(64, 64, 8))
    >>> found.blocks, found.grid
    (1, (1, 1, 1, 1))
    """

    problem: str
    arch: str
    data_type: str
    tile: tuple[int, int, int]
    grid: tuple[int, int, int, int]
    threads: int
    registers: int
    registers_given: bool
    shared_bytes: int
    occupancy: Occupancy
    waves: float
    macs: int
    shared_bytes_read: int
    l2_bytes_read: int
    l2_bytes_written: int
    dram_bytes_read: float
    dram_bytes_written: float
    traffic_from: str
    estimate: Estimate

    @property
    def blocks(self) -> int:
        """Thread blocks of the grid."""
        return math.prod(self.grid)

    @property
    def intensity(self) -> tuple[tuple[str, float], ...]:
        """FLOP per byte at shared memory, L2 and DRAM."""
        flops = 2 * self.macs
        return (
            ("shared", flops / self.shared_bytes_read),
            ("L2", flops / (self.l2_bytes_read + self.l2_bytes_written)),
            ("DRAM", flops / (self.dram_bytes_read + self.dram_bytes_written)),
        )


def tiled_gemm(
    problem: Problem,
    arch: Arch,
    *,
    tile: tuple[int, int, int] = (128, 128, 32),
    group_m: int = 1,
    split_k: int = 1,
    stages: int = 3,
    threads: int = 256,
    data_type: str = "fp32",
    registers: int | None = None,
    replay: bool = False,
) -> TiledKernel:
    """Describe a CUTLASS-, Triton- or hand-written tiled matrix product.

    Parameters
    ----------
    problem : Problem
        A `gemm` or `batched_gemm`.
    arch : Arch
    tile : tuple of int
        Rows and columns of the output that a block computes, and terms of the
        sums that it takes a step.
    group_m : int
        Rows of tiles that are launched together, the row changing first; 1:
        row by row.
    split_k : int
        Blocks that share each sum; a second kernel adds their parts.
    stages : int
        Steps whose operands shared memory holds.
    threads : int
        Of a block.
    data_type : str
        ``fp32``, ``tf32``, ``fp16``, ``bf16``, ``int8``, ...: as the
        architecture has rates.
    registers : int, optional
        Of a thread; by default guessed from its share of the sums.
    replay : bool
        Replay all tiles through L2 instead of the closed form: slower, seconds
        for large products, and closer.

    Returns
    -------
    TiledKernel

    Raises
    ------
    ProblemError
        If the problem is of another kind, or a parameter cannot be.
    InputError
        If no block fits on an SM, with every resource that it exceeds.
    ArchError
        If the architecture is no GPU or lacks the data type.

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> found = tiled_gemm(
    ...     gemm(m=8192, n=8192, k=8192),
    ...     load_arch("h200"),
    ...     group_m=8,
    ...     data_type="tf32",
    ...     registers=128,
    ... )
    >>> found.occupancy.blocks, round(found.dram_bytes_read / 1e9, 1)  # measured: 3.5 GB
    (2, 3.2)
    >>> 10e-3 < found.estimate.time_s < 16e-3  # measured: 13.3 ms
    True
    """
    product = product_of(problem, data_type)
    return _tiled(
        problem,
        product,
        arch,
        touched_bytes=product.a_bytes + product.b_bytes + product.c_bytes,
        tile=tile,
        group_m=group_m,
        split_k=split_k,
        stages=stages,
        threads=threads,
        data_type=data_type,
        registers=registers,
        replay=replay,
    )


def tiled_conv(
    problem: Problem,
    arch: Arch,
    *,
    tile: tuple[int, int, int] = (128, 128, 32),
    group_m: int = 1,
    split_k: int = 1,
    stages: int = 3,
    threads: int = 256,
    data_type: str = "fp32",
    registers: int | None = None,
) -> TiledKernel:
    """Describe a tiled convolution, run as a matrix product without unrolling memory.

    Rows of the product are output pixels of all images, columns output
    channels, sums run over input channels and the filter.  Parameters are
    those of `tiled_gemm`; there is no replay.

    Raises
    ------
    ProblemError
        If it is no forward `conv2d` without groups.

    Examples
    --------
    >>> from loopsched import conv2d, load_arch
    >>> layer = conv2d(n=16, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)
    >>> found = tiled_conv(layer, load_arch("v100"), tile=(128, 64, 8), stages=2, threads=128)
    >>> found.grid, found.dram_bytes_read < 2 * 4 * 16 * 64 * 56 * 56
    ((392, 1, 1, 1), True)
    """
    product, touched = _conv_product(problem, data_type)
    return _tiled(
        problem,
        product,
        arch,
        touched_bytes=touched,
        tile=tile,
        group_m=group_m,
        split_k=split_k,
        stages=stages,
        threads=threads,
        data_type=data_type,
        registers=registers,
        replay=False,
    )


def _conv_product(problem: Problem, data_type: str) -> tuple[Product, int]:
    """Write it as a product; and the bytes that no kernel can leave untouched.

    Memory delivers whole sectors, so strides leave out less than they skip.
    """
    sizes = problem.size
    if problem.kind != "conv2d" or "G" in sizes or problem.output != "output":
        raise ProblemError(
            f"problem '{problem.name}': a forward conv2d without groups is needed, not "
            f"{problem.kind} over {' '.join(problem.dims)} with output '{problem.output}'"
        )
    width = element_bytes(data_type, problem.tensor("input").element_bytes)
    product = conv_product_of(layer_of(problem), width)
    product = replace(product, c_bytes=product.c_bytes // width * sum_bytes(width))
    stored = problem.with_element_bytes(
        {"input": width, "weight": width, "output": sum_bytes(width)}
    )
    return product, sum(tensor_bytes(stored, tensor) for tensor in stored.tensors)


def _tiled(
    problem: Problem,
    product: Product,
    arch: Arch,
    *,
    touched_bytes: int,
    tile: tuple[int, int, int],
    group_m: int,
    split_k: int,
    stages: int,
    threads: int,
    data_type: str,
    registers: int | None,
    replay: bool,
) -> TiledKernel:
    _check(tile, group_m, split_k, stages, threads, registers, product)
    machine = machine_of(arch, data_type)
    tile_m, tile_n, tile_k = tile
    guess = min(
        machine.gpu.max_thread_registers, math.ceil(tile_m * tile_n / threads) + _OTHER_REGISTERS
    )
    warps = math.ceil(threads / machine.gpu.warp_threads)
    warp_m, warp_n = _warp_tile(tile_m, tile_n, warps)
    micros = _micro(tile, threads)
    shape = Tile(
        tile_m,
        tile_n,
        tile_k,
        threads,
        guess if registers is None else registers,
        *micros,
        stages,
    )
    shared = shape.shared_bytes(product.element_bytes)
    fits = occupancy(machine.gpu, threads, shape.registers, shared)
    rows, columns = math.ceil(product.m / tile_m), math.ceil(product.n / tile_n)
    grid = (rows, columns, split_k, product.batch)
    blocks = math.prod(grid)
    in_vectors = _in_vectors(problem, product)
    fitted, cycles = _fitted(machine, data_type, in_vectors)
    product = replace(product, reads_output=False, copy_cycles=cycles)
    abreast = 1 if in_vectors[1] or min(tile_m, tile_n) < _NARROW else fits.blocks
    if replay:
        operands, source = _replayed(problem, tile, group_m, abreast, machine), "replay"
    else:
        order = Grid(
            rows,
            columns,
            group_m,
            max(1, machine.sms * abreast // split_k),
            product.a_bytes // product.batch,
            product.b_bytes // product.batch,
            product.c_bytes // product.batch,
        )
        operands, source = operand_reads(order, machine.l2_bytes) * product.batch, "closed form"
    # Parts of split sums, as fp32, written and read once more.
    parts = 4 * product.batch * product.m * product.n * split_k if split_k > 1 else 0
    spilled = parts if parts > machine.l2_bytes else 0
    panels = product.m * columns + product.n * rows
    l2_read = product.batch * product.k * product.element_bytes * panels + parts
    l2_written = product.c_bytes + parts
    dram_read, dram_written = operands + spilled, float(product.c_bytes + spilled)
    a_term = (warp_m + warp_n) * product.element_bytes
    if machine.on_lanes:  # each load of a warp takes all banks for a cycle, however little it is
        loads = sum(math.ceil(micro * product.element_bytes / _VECTOR_BYTES) for micro in micros)
        a_term = max(a_term, loads * machine.gpu.banks * machine.gpu.bank_bytes)
    shared_read = blocks * warps * a_term
    shared_read *= tile_k * math.ceil(math.ceil(product.k / split_k) / tile_k)

    times = {
        "compute": compute_time(
            product, shape, split_k, blocks, fits.blocks, True, machine, fitted
        ),
        "shared memory": shared_read
        / (machine.gpu.shared_bytes_per_cycle * min(machine.sms, blocks) * machine.clock_hz),
        "L2": (l2_read + l2_written) / l2_rate(machine, fitted),
        "DRAM": (dram_read + dram_written) / dram_rate(machine, fitted),
    }
    launches_s = fitted.launch * machine.gpu.launch_s
    if split_k > 1:
        launches_s += fitted.split * machine.gpu.launch_s
    time_s = overlapped(*times.values()) + launches_s
    bound_s, _ = repeated_bound(product.macs, touched_bytes, arch, data_type)
    name = f"{shape} group {group_m} split {split_k} stages {stages}"
    said = estimate_of(
        time_s,
        bound_s,
        (*times.items(), ("launch", launches_s)),
        name,
        own_spread(machine.gpu.measured_as, data_type),
    )
    return TiledKernel(
        problem=problem.name,
        arch=arch.name,
        data_type=data_type,
        tile=tile,
        grid=grid,
        threads=threads,
        registers=shape.registers,
        registers_given=registers is not None,
        shared_bytes=shared,
        occupancy=fits,
        waves=blocks / (fits.blocks * machine.sms),
        macs=product.macs,
        shared_bytes_read=shared_read,
        l2_bytes_read=l2_read,
        l2_bytes_written=l2_written,
        dram_bytes_read=dram_read,
        dram_bytes_written=dram_written,
        traffic_from=source,
        estimate=said,
    )


def _check(
    tile: tuple[int, int, int],
    group_m: int,
    split_k: int,
    stages: int,
    threads: int,
    registers: int | None,
    product: Product,
) -> None:
    check = Checker("tiled kernel", ProblemError)
    if not isinstance(tile, tuple) or len(tile) != 3:
        raise ProblemError(f"tile is {tile!r}; three whole numbers are needed, such as 128x128x32")
    for name, value in zip(("tile_m", "tile_n", "tile_k"), tile, strict=True):
        check.count(name, value)
    for name, value in (("group_m", group_m), ("split_k", split_k), ("stages", stages)):
        check.count(name, value)
    check.count("threads", threads)
    if registers is not None:
        check.count("registers", registers)
    check.finish()
    if split_k > product.k:
        raise ProblemError(f"split_k is {split_k}; sums have only {product.k} terms")


def _warp_tile(tile_m: int, tile_n: int, warps: int) -> tuple[int, int]:
    """Cut a tile among warps, each part as square as powers of two allow."""
    down, across = 1, 1
    while down * across < warps:
        if tile_m / down >= tile_n / across:
            down *= 2
        else:
            across *= 2
    return math.ceil(tile_m / down), math.ceil(tile_n / across)


def _micro(tile: tuple[int, int, int], threads: int) -> tuple[int, int]:
    """What a thread computes: about as many rows as columns."""
    outputs = max(1, tile[0] * tile[1] // threads)
    down = 1 << (math.isqrt(outputs).bit_length() - 1)
    return down, max(1, outputs // down)


def _in_vectors(problem: Problem, product: Product) -> tuple[bool, bool]:
    """Whether A and B, stored by rows, reach shared memory in vectors, asynchronously."""
    if problem.kind == "conv2d":
        return True, True
    return product.k % _ALIGNMENT == 0, product.n % _ALIGNMENT == 0


def _fitted(
    machine: Machine, data_type: str, in_vectors: tuple[bool, bool]
) -> tuple[Calibration, tuple[float, float]]:
    """Find the numbers for such a kernel, and the cycles of an element's copy."""
    fitted = calibration("fp32" if machine.on_lanes else "fp16")
    own = own_kernels()
    if data_type != "tf32":
        return fitted, (0.0, 0.0)
    # B that comes element by element is turned on the way: the cores then run at their rate.
    fitted = replace(fitted, pipe=own.tf32_pipe if in_vectors[1] else 1.0)
    of_a, of_b = (0.0 if whole else own.tf32_copy_cycles for whole in in_vectors)
    return fitted, (of_a, of_b)


def _replayed(
    problem: Problem, tile: tuple[int, int, int], group_m: int, abreast: int, machine: Machine
) -> float:
    """Replay the launch order tile by tile, with sets as measured L2s have."""
    if problem.kind != "gemm":
        raise ProblemError(f"problem '{problem.name}': only a gemm is replayed")
    from loopsched.validation.launches import grouped_schedule
    from loopsched.validation.tile_replay import reuse_profile

    schedule = grouped_schedule(problem, *tile, group_m, "SM")
    width = problem.tensor("A").element_bytes
    room = (tile[0] * tile[1] + tile[2] * (tile[0] + tile[1])) * max(4, width)
    found = reuse_profile(
        problem,
        schedule,
        machine.sms * abreast,
        room_bytes=room,
        capacity_bytes=machine.l2_bytes,
    )
    return found.read_bytes(machine.l2_bytes, ways=WAYS)
