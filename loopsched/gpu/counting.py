"""What a kernel asks of a GPU: requests, sectors, conflicts, divergence, traffic.

Requests and what they are made of are exact; see docs/kernels.md for what is a model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from loopsched.base.errors import InputError
from loopsched.gpu.accesses import AccessCount, Op
from loopsched.gpu.addresses import Geometry, PlacedAxis
from loopsched.gpu.classes import (
    AxisUse,
    Site,
    count_filling,
    count_site,
    held_elements,
    tensor_uses,
)
from loopsched.gpu.integers import integer_instructions
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.occupancy import Occupancy, occupancy
from loopsched.gpu.traffic import Traffic, traffic_of
from loopsched.machines.arch import Arch
from loopsched.machines.gpu_limits import Gpu
from loopsched.problems.problem import Tensor

__all__ = ["MOST_ITERATIONS", "AccessCount", "Profile", "compute_depth", "profile"]

# Iterations of the loops along one axis of a tensor; they are looked at one by one.
MOST_ITERATIONS = 2**23


@dataclass(frozen=True, slots=True)
class Profile:
    """What a kernel asks of a GPU.

    Parameters
    ----------
    name : str
    grid, block : tuple of int
        Along x, y, z.
    n_blocks, n_warps : int
    partial_warps : int
        Warps with fewer threads than they have room for.
    divergent_warps : int
        Warps of which some threads are inside the output and some outside.
    flops : int
        Of the problem.
    fma_thread_instructions, fma_warp_instructions : int
        Multiply-adds executed, by threads and by warps; without inactive lanes, with work
        on padding where the kernel does it.
    integer_ops : float
        By threads; a model, see `loopsched.gpu.integers`.
    warp_efficiency : float
        Share of a warp's lanes that are active, over all instructions of that model.
    registers : int
        Of a thread; an estimate where the kernel does not say.
    shared_bytes : int, bytes
        Of a block.
    occupancy : Occupancy
    waves : float
        Number of blocks over the number that the GPU holds at a time.
    syncs : int
        Barriers that a thread passes.
    accesses : tuple of AccessCount
    traffic : Traffic
        A model: what goes between L1, L2 and DRAM.
    sector_bytes : int, bytes
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    n_blocks: int
    n_warps: int
    partial_warps: int
    divergent_warps: int
    flops: int
    fma_thread_instructions: int
    fma_warp_instructions: int
    integer_ops: float
    warp_efficiency: float
    registers: int
    shared_bytes: int
    occupancy: Occupancy
    waves: float
    syncs: int
    accesses: tuple[AccessCount, ...]
    traffic: Traffic
    sector_bytes: int = 32

    def total(self, field: str, op: Op, space: str = "global") -> int:
        """Add up a field of the accesses; ``global`` stands for all its paths."""
        return sum(
            int(getattr(one, field))
            for one in self.accesses
            if one.op == op and (one.is_global if space == "global" else one.space == space)
        )

    @property
    def load_requests(self) -> int:
        """Requests of global loads."""
        return self.total("requests", "load")

    @property
    def load_sectors(self) -> int:
        """Sectors of global loads."""
        return self.total("sectors", "load")

    @property
    def store_requests(self) -> int:
        """Requests of global stores."""
        return self.total("requests", "store")

    @property
    def store_sectors(self) -> int:
        """Sectors of global stores."""
        return self.total("sectors", "store")

    @property
    def sectors_per_load_request(self) -> float:
        """Sectors that a global load touches, on average."""
        return self.load_sectors / max(1, self.load_requests)

    @property
    def load_efficiency(self) -> float:
        """Distinct bytes that global loads ask for, over the sectors that they touch."""
        return self.total("useful_bytes", "load") / max(1, self.sector_bytes * self.load_sectors)

    @property
    def store_efficiency(self) -> float:
        """Distinct bytes that global stores write, over the sectors that they touch."""
        return self.total("useful_bytes", "store") / max(1, self.sector_bytes * self.store_sectors)

    @property
    def divergence(self) -> float:
        """Share of warps that lie across the edge of the output."""
        return self.divergent_warps / self.n_warps

    @property
    def l1_hit(self) -> float:
        """Share of all loaded sectors, those that bypass L1 included, that hit L1; a model."""
        loaded = self.load_sectors
        return 1 - min(1.0, self.traffic.l1_miss_sectors / loaded) if loaded else 0.0

    @property
    def l2_read_sectors(self) -> int:
        """Sectors that L2 is asked for; a model."""
        return self.traffic.l2_read_sectors

    @property
    def l2_write_sectors(self) -> int:
        """Sectors written to L2."""
        return self.traffic.l2_write_sectors

    @property
    def dram_read_bytes(self) -> int:
        """Bytes read from DRAM; a model."""
        return self.traffic.dram_read_bytes

    @property
    def dram_write_bytes(self) -> int:
        """Bytes written to DRAM, those still in L2 at the end included; a model."""
        return self.traffic.dram_write_bytes

    def intensity(self, level: Literal["L1", "shared", "L2", "DRAM"]) -> float:
        """Floating-point operations for each byte that moves at a level."""
        sectors = self.load_sectors + self.store_sectors
        ops: tuple[Op, Op] = "load", "store"
        wavefronts = sum(self.total("wavefronts", op, "shared") for op in ops)
        moved = {
            "L1": self.sector_bytes * sectors,
            "shared": 128 * wavefronts,
            "L2": self.sector_bytes * (self.l2_read_sectors + self.l2_write_sectors),
            "DRAM": self.dram_read_bytes + self.dram_write_bytes,
        }[level]
        return self.flops / moved if moved else float("inf")


def profile(kernel: Kernel, arch: Arch) -> Profile:
    """Count what a kernel asks of a GPU.

    Parameters
    ----------
    kernel : Kernel
    arch : Arch
        With a ``gpu`` part.

    Raises
    ------
    ArchError
        If the machine is not a GPU.
    InputError
        If no block fits on a multiprocessor, or one axis takes more than `MOST_ITERATIONS`
        iterations.

    See Also
    --------
    estimate_kernel, occupancy

    Examples
    --------
    >>> from loopsched import gemm, load_arch
    >>> kernel = Kernel.of(
    ...     gemm(m=64, n=64, k=8), "M:64@block_y N:64@block_x M:16@thread_y N:16@thread_x K:8"
    ... )
    >>> found = profile(kernel, load_arch("h200"))
    >>> found.load_requests, found.load_sectors, found.store_sectors
    (2048, 4096, 512)
    """
    gpu = arch.kernel_limits
    held = occupancy(gpu, kernel.block_threads, kernel.registers_estimate, kernel.tile_bytes)
    _check_size(kernel)
    geometry = Geometry(kernel)
    accesses = tuple(_accesses(geometry, gpu))
    tests = _skip_tests(geometry, len(kernel.loops)) + _output_tests(geometry)
    is_guarded = kernel.guard == "thread"
    fma = count_site(
        geometry, Site(tests, "none", 1, len(kernel.loops), is_guarded=is_guarded), gpu
    )
    edges = tensor_uses(geometry.placed[kernel.problem.output].axes)
    edge = count_site(
        geometry, Site(tuple(AxisUse(one.axis, None, False) for one in edges), "none", 1, 0), gpu
    )
    warps = -(-kernel.block_threads // gpu.warp_threads)
    integer_ops, efficiency = integer_instructions(kernel, accesses, fma, gpu.warp_threads)
    return Profile(
        name=kernel.name,
        grid=kernel.grid,
        block=kernel.block,
        n_blocks=kernel.n_blocks,
        n_warps=kernel.n_blocks * warps,
        partial_warps=kernel.n_blocks if kernel.block_threads % gpu.warp_threads else 0,
        divergent_warps=edge.partial,
        flops=2 * _useful_macs(geometry, gpu) if kernel.multiplies else 0,
        fma_thread_instructions=fma.lanes if kernel.multiplies else 0,
        fma_warp_instructions=fma.requests if kernel.multiplies else 0,
        integer_ops=integer_ops,
        warp_efficiency=efficiency,
        registers=kernel.registers_estimate,
        shared_bytes=kernel.tile_bytes,
        occupancy=held,
        waves=kernel.n_blocks / (held.blocks * arch.compute.units),
        syncs=_barriers(kernel),
        accesses=accesses,
        traffic=traffic_of(geometry, accesses, held, arch),
        sector_bytes=gpu.sector_bytes,
    )


def _check_size(kernel: Kernel) -> None:
    """Refuse kernels with more iterations along one axis than can be looked at."""
    trips = dict.fromkeys(kernel.problem.dims, 1)
    for loop in kernel.loops:
        trips[loop.dim] *= loop.trips
    faults = []
    for tensor in kernel.problem.tensors:
        for axis in tensor.axes:
            many = math.prod(trips[dim] for dim in axis.dims)
            if many > MOST_ITERATIONS:
                faults.append(
                    f"axis {' and '.join(axis.dims)} of '{tensor.name}': {many} iterations; "
                    f"at most {MOST_ITERATIONS} are counted"
                )
    InputError.refuse(f"kernel '{kernel.name}'", faults)


def _accesses(geometry: Geometry, gpu: Gpu) -> Iterator[AccessCount]:
    kernel = geometry.kernel
    for tensor in kernel.inputs:
        if kernel.read(tensor.name).space == "shared":
            yield from _fillings(geometry, tensor, gpu)
        yield _compute_load(geometry, tensor, gpu)
    tensor = kernel.problem.output_tensor
    laid = geometry.placed[tensor.name]
    depth = kernel.sum_position
    site = Site(
        tensor_uses(laid.axes),
        "global",
        tensor.element_bytes,
        depth,
        is_held=True,
        is_guarded=kernel.guard == "thread",
        offset_bytes=laid.offset_bytes,
    )
    found = count_site(geometry, site, gpu)
    trips = geometry.trips(depth) * held_elements(geometry, tensor, depth)
    yield AccessCount(tensor.name, "store", "global", "epilogue", trips, 1, True, **asdict(found))


def _fillings(geometry: Geometry, tensor: Tensor, gpu: Gpu) -> Iterator[AccessCount]:
    """Count the loads that fill a tile, and the stores."""
    kernel = geometry.kernel
    read = kernel.read(tensor.name)
    laid = geometry.placed[tensor.name]
    shape, strides = kernel.tile(tensor)
    trips = geometry.trips(read.position)
    is_linear = read.loaders == "linear"
    for op, space in (("load", read.via), ("store", "shared")):
        uses = tensor_uses(laid.axes, None if op == "load" else strides)
        if op == "store" and read.zero_fill:
            uses = tensor_uses(laid.axes, strides, tests=False)
        offset = laid.offset_bytes if op == "load" else 0
        where = "shared" if space == "shared" else "global"
        site = Site(uses, where, tensor.element_bytes, read.position, offset_bytes=offset)
        found, rounds = count_filling(geometry, site, shape, gpu, is_linear=is_linear)
        name: Op = "load" if op == "load" else "store"
        yield AccessCount(tensor.name, name, space, "fill", trips, rounds, True, **asdict(found))


def _compute_load(geometry: Geometry, tensor: Tensor, gpu: Gpu) -> AccessCount:
    kernel = geometry.kernel
    read = kernel.read(tensor.name)
    laid = geometry.placed[tensor.name]
    depth = compute_depth(kernel, tensor)
    is_held = read.held is not None
    is_guarded = kernel.guard == "thread"
    tests = _skip_tests(geometry, depth) + _output_tests(geometry)
    if read.space == "shared":
        uses = tensor_uses(laid.axes, kernel.tile(tensor)[1], tests=False)
    else:
        uses = tensor_uses(laid.axes, tests=read.space != "constant")
    known = {use.axis for use in uses if use.tests}
    extra = tuple(use for use in tests if use.axis not in known)
    where = read.space if read.space in ("shared", "constant") else "global"
    loop = kernel.innermost(tensor)
    wide = (loop.position, read.vector) if loop is not None and read.vector > 1 else None
    site = Site(
        uses + extra,
        where,
        tensor.element_bytes,
        depth,
        read.position if read.space == "shared" else 0,
        is_held,
        is_guarded,
        laid.offset_bytes if where == "global" else 0,
        wide,
    )
    found = count_site(geometry, site, gpu)
    trips = (
        geometry.trips(depth)
        // read.vector
        * (held_elements(geometry, tensor, depth) if is_held else 1)
    )
    is_padded = bool(_skip_tests(geometry, depth))
    is_padded |= any(_can_leave(geometry, axis) for axis in laid.axes if axis.terms)
    is_tested = where == "global" and (not is_guarded or is_padded)
    return AccessCount(
        tensor.name, "load", read.space, "compute", trips, 1, is_tested, **asdict(found)
    )


def compute_depth(kernel: Kernel, tensor: Tensor) -> int:
    """Position in the nest before which computing loads a tensor's elements."""
    read = kernel.read(tensor.name)
    if read.held is not None:
        return read.held
    moving = [loop.position + 1 for loop in kernel.time_loops if tensor.is_indexed_by(loop.dim)]
    return max([*moving, read.position if read.space == "shared" else 0], default=0)


def _can_leave(geometry: Geometry, axis: PlacedAxis) -> bool:
    """Whether points of the problem lie outside of what an axis stores."""
    size = geometry.kernel.problem.size
    reach = axis.origin + sum(step * (size[dim] - 1) for dim, step in axis.terms)
    return axis.origin < 0 or reach >= axis.count


def _skip_tests(geometry: Geometry, depth: int) -> tuple[AxisUse, ...]:
    """Tests for padding that enclose a place: a point in it is left out altogether."""
    kernel = geometry.kernel
    if kernel.padding != "skip" or kernel.guard == "load":
        return ()
    found = []
    for tensor in kernel.inputs:
        if kernel.read(tensor.name).space in ("shared", "constant"):
            continue
        for axis in geometry.placed[tensor.name].axes:
            dims = [dim for dim, _ in axis.terms]
            is_outside = all(
                loop.position < depth for loop in kernel.time_loops if loop.dim in dims
            )
            if is_outside and _can_leave(geometry, axis):
                found.append(AxisUse(axis, None, False))
    return tuple(found)


def _output_tests(geometry: Geometry) -> tuple[AxisUse, ...]:
    """Tests that keep threads off whose outputs do not exist, beyond the dimensions' own."""
    kernel = geometry.kernel
    axes = geometry.placed[kernel.problem.output].axes
    if kernel.guard != "thread":
        return ()
    return tuple(AxisUse(axis, None, False) for axis in axes if _can_leave(geometry, axis))


def _useful_macs(geometry: Geometry, gpu: Gpu) -> int:
    """Count points whose output exists: all, unless dimensions were made longer."""
    kernel = geometry.kernel
    axes = geometry.placed[kernel.problem.output].axes
    cut = [axis for axis in axes if axis.terms and _can_leave(geometry, axis)]
    if not cut:
        return kernel.problem.macs
    uses = tuple(AxisUse(axis, None, False) for axis in cut)
    return count_site(geometry, Site(uses, "none", 1, len(kernel.loops)), gpu).lanes


def _barriers(kernel: Kernel) -> int:
    """Count barriers: after each filling, and before the next one of the same tiles."""
    places = {
        kernel.read(tensor.name).position
        for tensor in kernel.inputs
        if kernel.read(tensor.name).space == "shared"
    }
    total = 0
    for place in places:
        trips = math.prod(loop.trips for loop in kernel.time_loops if loop.position < place)
        total += trips * (1 if kernel.double_buffered or trips == 1 else 2)
    return total
