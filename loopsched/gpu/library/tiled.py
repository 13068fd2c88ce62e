"""Your own tiled kernel in one call: what it takes, what it moves, how long it runs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from loopsched.base.arguments import Checker, show
from loopsched.base.errors import ProblemError
from loopsched.gpu.bound import repeated_bound
from loopsched.gpu.library.calibration import own_spread
from loopsched.gpu.library.conv_gemm import product_of as conv_product_of
from loopsched.gpu.library.conv_layer import layer_of
from loopsched.gpu.library.gemm import product_of, stored_as
from loopsched.gpu.library.launch import (
    Launch,
    Moved,
    moved_by,
    operand_bytes,
    replayed_bytes,
    seconds_of,
)
from loopsched.gpu.library.machine import element_bytes, machine_of, output_bytes, sum_bytes
from loopsched.gpu.library.product import Product
from loopsched.gpu.library.tiles import Tile
from loopsched.gpu.library.wave import overlapped
from loopsched.gpu.occupancy import Occupancy, occupancy
from loopsched.gpu.result import Estimate, estimate_of
from loopsched.machines.arch import Arch
from loopsched.machines.gpu_limits import Gpu
from loopsched.problems.footprint import problem_bytes
from loopsched.problems.problem import Problem

# Registers of a thread beside its sums: addresses, fragments, counters.
_OTHER_REGISTERS = 48
_REGISTER_BYTES = 4
# Vectors need rows that begin a multiple of so many elements apart.
_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a kernel of your own cuts a product.

    Parameters
    ----------
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
    registers : int or None
        Of a thread; None: guessed from its share of the sums.

    Raises
    ------
    ProblemError
        If a value cannot be; all faults at once.

    Examples
    --------
    >>> Tiling((128, 64, 8), threads=128).stages
    3
    """

    tile: tuple[int, int, int] = (128, 128, 32)
    group_m: int = 1
    split_k: int = 1
    stages: int = 3
    threads: int = 256
    registers: int | None = None

    def __post_init__(self) -> None:
        check = Checker("tiled kernel", ProblemError)
        if not isinstance(self.tile, tuple) or len(self.tile) != 3:
            raise ProblemError(
                f"tile is {show(self.tile)}; three whole numbers are needed, such as 128x128x32"
            )
        for name, value in zip(("tile_m", "tile_n", "tile_k"), self.tile, strict=True):
            check.count(name, value)
        for name in ("group_m", "split_k", "stages", "threads"):
            check.count(name, getattr(self, name))
        if self.registers is not None:
            check.count("registers", self.registers)
        check.finish()


@dataclass(frozen=True, slots=True)
class TiledKernel(Moved):
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
    problem: Problem, arch: Arch, *, data_type: str = "fp32", replay: bool = False, **tiling: Any
) -> TiledKernel:
    """Describe a tiled GEMM as CUTLASS, Triton or hand-written code computes it.

    Parameters
    ----------
    problem : Problem
        A `gemm` or `batched_gemm`.
    arch : Arch
    data_type : str
        ``fp32``, ``tf32``, ``fp16``, ``bf16``, ``int8``, ...: as the
        architecture has rates.
    replay : bool
        Replay all tiles of one GEMM, without split K, through L2 instead of
        the closed form: more accurate, but takes seconds for large GEMMs.
    **tiling
        ``tile``, ``group_m``, ``split_k``, ``stages``, ``threads``,
        ``registers``: see `loopsched.gpu.library.tiled.Tiling`.

    Raises
    ------
    ProblemError
        If the problem is of another kind, or a parameter is not allowed.
    InputError
        If no block fits on an SM, with every resource that it exceeds.
    ArchError
        If the architecture is not a GPU or lacks the data type.

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

    See Also
    --------
    tiled_conv : the same for convolutions.
    """
    product = product_of(problem, data_type)
    touched = product.a_bytes + product.b_bytes + product.c_bytes
    cut = Tiling(**tiling)
    if replay:
        _check_replay(problem, cut.split_k)
    return _tiled(problem, product, touched, arch, cut, data_type, replay)


def tiled_conv(
    problem: Problem, arch: Arch, *, data_type: str = "fp32", **tiling: Any
) -> TiledKernel:
    """Describe a tiled convolution, run as a matrix product without unrolling memory.

    Rows of the product are output pixels of all images, columns output
    channels, sums run over input channels and the filter.  Parameters and
    errors are those of `tiled_gemm`; there is no replay.

    Parameters
    ----------
    problem : Problem
        A forward `conv2d` without groups.
    arch : Arch
    data_type : str
    **tiling
        See `loopsched.gpu.library.tiled.Tiling`.

    See Also
    --------
    tiled_gemm, conv_estimate

    Examples
    --------
    >>> from loopsched import conv2d, load_arch
    >>> layer = conv2d(n=16, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)
    >>> found = tiled_conv(layer, load_arch("v100"), tile=(128, 64, 8), stages=2, threads=128)
    >>> found.grid, found.dram_bytes_read < 2 * 4 * 16 * 64 * 56 * 56
    ((392, 1, 1, 1), True)
    """
    product, touched = _conv_product(problem, data_type)
    return _tiled(problem, product, touched, arch, Tiling(**tiling), data_type, replay=False)


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
    out = output_bytes(width, data_type)
    product = replace(product, c_bytes=product.c_bytes // width * out)
    stored = problem.with_element_bytes({"input": width, "weight": width, "output": out})
    return product, problem_bytes(stored)


def _tiled(
    problem: Problem,
    product: Product,
    touched_bytes: int,
    arch: Arch,
    tiling: Tiling,
    data_type: str,
    replay: bool,
) -> TiledKernel:
    if tiling.split_k > product.k:
        raise ProblemError(f"split_k is {tiling.split_k}; K has only {product.k} elements")
    machine = machine_of(arch, data_type)
    _check_sums(tiling, machine.gpu, sum_bytes(product.element_bytes))
    shape = _shape(tiling, machine.gpu)
    shared = shape.shared_bytes(product.element_bytes)
    launch = Launch(
        replace(product, reads_output=False),
        machine,
        shape,
        occupancy(machine.gpu, shape.threads, shape.registers, shared),
        tiling.group_m,
        tiling.split_k,
        *_in_vectors(problem, product),
    )
    if replay:
        operands, source = replayed_bytes(launch, stored_as(problem, data_type)), "replay"
    else:
        operands, source = operand_bytes(launch), "closed form"
    moved = moved_by(launch, operands)
    parts = seconds_of(launch, moved, data_type)
    *together, launches = (seconds for _, seconds in parts)
    return TiledKernel(
        problem=problem.name,
        arch=arch.name,
        data_type=data_type,
        tile=tiling.tile,
        grid=launch.grid,
        threads=shape.threads,
        registers=shape.registers,
        registers_given=tiling.registers is not None,
        shared_bytes=shared,
        occupancy=launch.occupancy,
        waves=launch.waves,
        macs=product.macs,
        **asdict(moved),
        traffic_from=source,
        estimate=estimate_of(
            overlapped(*together) + launches,
            repeated_bound(product.macs, touched_bytes, arch, data_type)[0],
            parts,
            f"{shape} group {tiling.group_m} split {tiling.split_k} stages {tiling.stages}",
            own_spread(machine.gpu.measured_as, data_type),
        ),
    )


def _check_sums(tiling: Tiling, gpu: Gpu, width: int) -> None:
    """Refuse tiles whose sums alone are more than the registers of the threads."""
    rows, columns, _ = tiling.tile
    sums = math.ceil(rows * columns / tiling.threads)
    registers = math.ceil(sums * width / _REGISTER_BYTES)
    is_apart = gpu.tensor_memory_bytes > 0
    if registers > gpu.max_thread_registers and not is_apart:
        raise ProblemError(
            f"tile {rows}x{columns} by {tiling.threads} threads: {sums:,} sums of {width} bytes "
            f"are {registers:,} registers of a thread, which has {gpu.max_thread_registers}; "
            "take a smaller tile, or more threads"
        )
    held = _REGISTER_BYTES * gpu.registers + gpu.tensor_memory_bytes
    if rows * columns * width > held:
        raise ProblemError(
            f"tile {rows}x{columns}: its sums of {width} bytes are {rows * columns * width:,} "
            f"bytes, and an SM's registers{' and tensor memory' * is_apart} have {held:,}; "
            "take a smaller tile"
        )


def _shape(tiling: Tiling, gpu: Gpu) -> Tile:
    tile, threads = tiling.tile, tiling.threads
    sums = math.ceil(tile[0] * tile[1] / threads)
    guess = min(gpu.max_thread_registers, sums + _OTHER_REGISTERS)
    return Tile(*tile, threads, tiling.registers or guess, *_micro(tile, threads), tiling.stages)


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


def _check_replay(problem: Problem, split_k: int) -> None:
    if problem.kind != "gemm":
        raise ProblemError(f"problem '{problem.name}': only a gemm is replayed")
    if split_k > 1:
        raise ProblemError(f"split_k is {split_k}; only whole sums are replayed: split_k 1")
