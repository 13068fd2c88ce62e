"""What goes between L1, L2 and DRAM while a kernel runs: a model on exact footprints.

A block loads a sector of its footprint once while that fits its part of L1; blocks of
one multiprocessor that read the same places at the same time share them; L2 sees fewer
requests where several multiprocessors ask for the same at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.gpu._footprint_kernels import overlapped, shared_keys
from loopsched.gpu.accesses import AccessCount
from loopsched.gpu.addresses import Geometry, indices
from loopsched.gpu.footprints import NOWHERE, axis_reach, footprint_sectors
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.occupancy import Occupancy
from loopsched.machines.arch import Arch
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Tensor
from loopsched.problems.projections import span

# Waves that are looked at for what blocks share: the first and the last.
_WAVES = 2
# Of blocks that ran before on a unit, those whose data may still be in its L1.
_MOST_WAVES = 4
# For what blocks of one unit share: so many units; of windows, so many places of each.
_UNITS = 8
_MOST_PLACES = 2**16


@dataclass(frozen=True, slots=True)
class TensorTraffic:
    """What goes between L1, L2 and DRAM of one tensor.

    Parameters
    ----------
    tensor : str
    block_sectors : int
        Distinct sectors of each block, added up.
    l1_miss_sectors : int
        That a multiprocessor asks for.
    sharers : float
        Multiprocessors that ask for the same in the same step.
    l2_sectors : int
        That L2 is asked for, or that are written to it.
    dram_bytes : int
    """

    tensor: str
    block_sectors: int
    l1_miss_sectors: int
    sharers: float
    l2_sectors: int
    dram_bytes: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """What goes between L1, L2 and DRAM.

    Parameters
    ----------
    l1_miss_sectors, l2_read_sectors, l2_write_sectors : int
    dram_read_bytes, dram_write_bytes : int, bytes
    tensors : tuple of TensorTraffic
        Inputs, then the output.
    """

    l1_miss_sectors: int
    l2_read_sectors: int
    l2_write_sectors: int
    dram_read_bytes: int
    dram_write_bytes: int
    tensors: tuple[TensorTraffic, ...]


def traffic_of(
    geometry: Geometry, accesses: Sequence[AccessCount], held: Occupancy, arch: Arch
) -> Traffic:
    """Model the traffic of a kernel whose accesses were counted."""
    kernel = geometry.kernel
    gpu = arch.kernel_limits
    room = gpu.l1_bytes - held.blocks * (kernel.tile_bytes + gpu.system_shared_bytes)
    depth = _fitting_depth(kernel, room // held.blocks)
    # Data of blocks that ran before may still be there.
    lasting = room // (held.blocks * max(1, _region_bytes(kernel, 0)))
    stay = held.blocks * max(1, min(_MOST_WAVES, lasting))
    units = arch.compute.units
    found = []
    for tensor in kernel.inputs:
        loads = [
            one
            for one in accesses
            if one.tensor == tensor.name and one.op == "load" and one.sectors
        ]
        asked = sum(one.sectors for one in loads)
        if not asked:
            continue
        _, on_units, distinct = _sharing(geometry, tensor, held.blocks, arch, units)
        sharers = on_units / distinct
        block_sectors = missed = asked
        if any(one.space != "l2" for one in loads):
            block_sectors = min(asked, _block_sectors(geometry, tensor, depth, gpu.sector_bytes))
            blocks, kept, _ = _sharing(geometry, tensor, stay, arch, min(units, _UNITS))
            missed = round(block_sectors * kept / blocks)
            if any(axis.is_compound for axis in tensor.axes):
                missed = round(block_sectors * _window_share(geometry, tensor, stay, arch))
        per_line = gpu.line_bytes // gpu.sector_bytes
        filled = asked / max(1, sum(one.lines for one in loads)) / per_line
        # Between the SMs and L2, requests for the same line in the same step of the same
        # loops are merged, the better the more of the line each asks for.
        merged = gpu.merged_share * filled * (1 - 1 / sharers)
        found.append(
            TensorTraffic(
                tensor.name,
                block_sectors,
                missed,
                sharers,
                round(missed * (1 - merged)),
                _dram_bytes(geometry, tensor, held.blocks, arch),
            )
        )
    written = _written(geometry, accesses)
    return Traffic(
        sum(one.l1_miss_sectors for one in found),
        sum(one.l2_sectors for one in found),
        written.l2_sectors,
        sum(one.dram_bytes for one in found),
        written.dram_bytes,
        (*found, written),
    )


def _written(geometry: Geometry, accesses: Sequence[AccessCount]) -> TensorTraffic:
    """Stores go through L1; L2 collects the parts of a line."""
    sectors = sum(one.sectors for one in accesses if one.op == "store" and one.space == "global")
    tensor = geometry.kernel.problem.output_tensor
    stored = _stored_bytes(geometry, tensor)
    return TensorTraffic(tensor.name, sectors, sectors, 1.0, sectors, stored)


def _stored_bytes(geometry: Geometry, tensor: Tensor) -> int:
    laid = geometry.placed[tensor.name]
    touched = tensor_bytes(geometry.kernel.problem, tensor)
    return min(touched, laid.size_elems * tensor.element_bytes) if laid.is_view else touched


def _fitting_depth(kernel: Kernel, room_bytes: int) -> int:
    """Find the outermost place in the nest from where a block's data fit its part of L1."""
    for depth in [0, *(loop.position + 1 for loop in kernel.time_loops)]:
        if _region_bytes(kernel, depth) <= room_bytes:
            return depth
    return len(kernel.loops)


def _region_bytes(kernel: Kernel, depth: int) -> int:
    """Bytes through L1 that a block touches from a place in the nest inward."""
    total = 0
    for tensor in kernel.inputs:
        if kernel.read(tensor.name).space in ("constant", "l2"):
            continue
        total += kernel.region_elems(tensor, depth) * tensor.element_bytes
    return total


def _block_sectors(geometry: Geometry, tensor: Tensor, depth: int, sector: int) -> int:
    """Count what each block loads if its data from a place inward fit.

    The innermost loop outside that place that moves along the tensor streams
    through it (the reuse model of docs/model.md).
    """
    moving = [
        loop.position
        for loop in geometry.kernel.time_loops
        if loop.position < depth and tensor.is_indexed_by(loop.dim)
    ]
    return footprint_sectors(geometry, tensor, max(moving, default=0), sector)


def _sharing(
    geometry: Geometry, tensor: Tensor, resident: int, arch: Arch, looked_at: int
) -> tuple[int, int, int]:
    """Count blocks, places they read apart on each unit, and places apart, in some waves."""
    kernel = geometry.kernel
    along_x, along_y, along_z = (_keys(kernel, tensor, axis) for axis in range(3))
    size = arch.compute.units * resident
    waves = -(-kernel.n_blocks // size)
    picked = np.unique(np.linspace(0, waves - 1, min(_WAVES, waves)).astype(np.int64)) * size
    blocks, on_units, distinct = shared_keys(
        along_x, along_y, along_z, picked, arch.compute.units, resident, looked_at
    )
    return int(blocks), int(on_units), int(distinct)


def _window_share(geometry: Geometry, tensor: Tensor, resident: int, arch: Arch) -> float:
    """Compare what blocks of one unit load together with what each alone would.

    Windows of neighbours overlap.  Only the fastest two axes are looked at, on
    some units of the wave in the middle; elsewhere blocks differ or do not.
    """
    kernel = geometry.kernel
    laid = geometry.placed[tensor.name]
    order = sorted(range(len(laid.axes)), key=lambda at: laid.axes[at].digits[-1][1])
    fast = order[:2]
    gpu = arch.kernel_limits
    size = arch.compute.units * resident
    begin = (-(-kernel.n_blocks // size) - 1) // 2 * size
    end = min(begin + size, kernel.n_blocks)
    blocks = [
        np.arange(begin + unit, end, arch.compute.units)
        for unit in range(min(_UNITS // 2, arch.compute.units))
    ]
    reaches = [axis_reach(geometry, tensor, laid.axes[at], 0) for at in fast]
    dims = [tuple(dim for dim, _ in laid.axes[at].terms) for at in fast]
    others = [dim for dim in tensor.dims if not any(dim in some for some in dims)]
    if len(reaches) == 1:
        reaches, dims = [*reaches, NOWHERE], [*dims, ()]
    elem, sector = tensor.element_bytes, gpu.sector_bytes
    columns, rows = (
        one._replace(address=(one.address - one.address.min()) * elem) for one in reaches
    )
    reach = int(rows.address.max()) + int(columns.address.max())
    stamp = np.zeros(reach // sector + 2, np.int64)
    most = max(1, _MOST_PLACES // (rows.address.shape[1] * columns.address.shape[1]))
    alone = together = mark = 0
    for numbers in blocks:
        numbers = numbers[:most]
        along = (others, dims[1], dims[0])
        key, row_of, column_of = (_iterations(kernel, numbers, some) for some in along)
        one, all_, mark = overlapped(key, row_of, column_of, rows, columns, sector, stamp, mark)
        alone, together = alone + int(one), together + int(all_)
    return together / alone if alone else 1.0


def _iterations(kernel: Kernel, numbers: Ints, dims: Sequence[str]) -> Ints:
    """Number, for some blocks, the iterations of the grid loops over some dimensions."""
    index = indices(kernel, "block", numbers)
    total = np.zeros_like(numbers)
    for dim in dims:
        for loop in kernel.loops:
            if loop.kind == "block" and loop.dim == dim:
                total = total * loop.trips + index[loop.position]
    return total


def _keys(kernel: Kernel, tensor: Tensor, axis: int) -> Ints:
    """Number the blocks along an axis of the grid by the part of the tensor they read."""
    key = np.zeros(1, np.int64)
    for loop in kernel.loops:
        if loop.kind != "block":
            continue
        weight = math.prod(
            one.trips
            for one in kernel.loops
            if one.kind == "block" and one.position > loop.position
        )
        step = weight if tensor.is_indexed_by(loop.dim) else 0
        if loop.axis == axis:
            key = (key[:, None] + np.arange(loop.trips, dtype=np.int64) * step).ravel()
    return key


def _dram_bytes(geometry: Geometry, tensor: Tensor, resident: int, arch: Arch) -> int:
    """Read a tensor once, or again where too much passes before it is needed again.

    Grid loops that do not move along the tensor reuse it.  A loop's reuse is
    lost where what all inputs bring in during one of its iterations exceeds
    L2; iterations that run in one wave share all the same.
    """
    kernel = geometry.kernel
    once = _stored_bytes(geometry, tensor)
    room = arch.caches[0].usable_bytes or 0
    order = _launch_order(kernel)
    wave = resident * arch.compute.units
    again = 1.0
    for number, (dim, trips) in enumerate(order):
        if tensor.is_indexed_by(dim) or trips == 1:
            continue
        inside = order[number + 1 :]
        blocks = math.prod(many for _, many in inside)
        if blocks <= wave or _passing(geometry, inside) <= room:
            continue
        again *= max(1.0, trips / max(1.0, wave / blocks))
    return round(once * again)


def _launch_order(kernel: Kernel) -> list[tuple[str, int]]:
    """Grid loops from the slowest to the fastest block index."""
    return [
        (loop.dim, loop.trips)
        for axis in (2, 1, 0)
        for loop in kernel.loops
        if loop.kind == "block" and loop.axis == axis
    ]


def _passing(geometry: Geometry, inside: Iterable[tuple[str, int]]) -> int:
    """Bytes of all tensors that the blocks of some inner grid loops touch, about."""
    kernel = geometry.kernel
    size = kernel.problem.size
    trips: dict[str, int] = {}
    for dim, many in inside:
        trips[dim] = trips.get(dim, 1) * many
    moved = {dim: min(n, trips.get(dim, 1) * kernel.span(dim, 0)) for dim, n in size.items()}
    total = 0
    for tensor in kernel.problem.tensors:
        elems = math.prod(span(axis, moved) for axis in tensor.axes)
        total += min(elems, geometry.placed[tensor.name].size_elems) * tensor.element_bytes
    return total
