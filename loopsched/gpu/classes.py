"""Requests of one access, counted by classes of iterations instead of one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from loopsched.base.arrays import Flags, Ints
from loopsched.gpu._count_kernels import (
    CONSTANT,
    GLOBAL,
    NOTHING,
    OFF,
    SHARED,
    Access,
    count_lanes,
    fold,
)
from loopsched.gpu._count_kernels import (
    classify as classify,
)
from loopsched.gpu.accesses import Counts
from loopsched.gpu.addresses import Geometry, PlacedAxis, Wide, all_inside, sums
from loopsched.machines.gpu_limits import Gpu
from loopsched.problems.problem import Tensor

_CODES = {"shared": SHARED, "constant": CONSTANT, "none": NOTHING}


@dataclass(frozen=True, slots=True)
class AxisUse:
    """How an access uses an axis.

    Parameters
    ----------
    axis : PlacedAxis
    stride : int or None, elements
        In a tile of shared memory; None: addresses are those of global memory.
    addresses, tests : bool
        Whether the axis is part of the address; whether lanes that are outside
        of what it stores are off.
    """

    axis: PlacedAxis
    stride: int | None = None
    addresses: bool = True
    tests: bool = True

    @property
    def dims(self) -> tuple[str, ...]:
        """Dimensions that move along the axis."""
        return tuple(dim for dim, _ in self.axis.terms)


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a kernel where threads access a tensor.

    Parameters
    ----------
    uses : tuple of AxisUse
    space : str
        ``global``, ``shared``, ``constant``, or ``none``: no access, lanes are
        counted all the same.
    element_bytes : int, bytes
    depth : int
        Time loops from this position inward are inside of it.
    tile : int
        Position before which the tile is filled.
    is_held : bool
        Whether all that the inner loops touch is accessed there, each once.
    is_guarded : bool
        Whether threads outside the output are off.
    offset_bytes : int, bytes
        Of the tensor, from an aligned address.
    wide : (int, int), optional
        Position of the loop along which an access takes several elements, and
        how many.
    """

    uses: tuple[AxisUse, ...]
    space: str
    element_bytes: int
    depth: int
    tile: int = 0
    is_held: bool = False
    is_guarded: bool = True
    offset_bytes: int = 0
    wide: Wide | None = None

    @property
    def access_bytes(self) -> int:
        """What one thread accesses at once."""
        return self.element_bytes * (self.wide[1] if self.wide else 1)


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes of iterations of one group of loops: shapes by thread, and how many."""

    shapes: Ints
    hist: Ints


def count_site(geometry: Geometry, site: Site, gpu: Gpu) -> Counts:
    """Count an access that each thread makes at its own places."""
    grouped: list[tuple[Classes, Ints]] = []
    plain: list[Classes] = []
    for dims, uses in _groups(geometry, site.uses):
        found = _group_classes(geometry, site, dims, uses, gpu)
        width = found.shapes.shape[1]
        if width == 1:
            plain.append(found)
        else:
            grouped.append((found, geometry.thread_places(dims)))
    threads = geometry.kernel.block_threads
    warps = -(-threads // gpu.warp_threads)
    lanes = np.full((warps * gpu.warp_threads, max(1, len(grouped))), -1, np.int64)
    lanes[:threads] = 0
    for number, (_, places) in enumerate(grouped):
        lanes[:threads, number] = places
    shaped = lanes.reshape(warps, gpu.warp_threads, -1)
    return _counted(site, [one for one, _ in grouped], plain, shaped, gpu)


def count_filling(
    geometry: Geometry, site: Site, shape: Sequence[int], gpu: Gpu, *, is_linear: bool
) -> tuple[Counts, int]:
    """Count an access by which a block fills a tile together; and its rounds a thread.

    Parameters
    ----------
    geometry : Geometry
    site : Site
        Its uses are the tensor's axes, in order.
    shape : sequence of int
        Of the tile.
    gpu : Gpu
    is_linear : bool
        Elements go to threads by their numbers; else rows go to thread_y and
        columns to thread_x.
    """
    block = geometry.kernel.block
    # Which axis of the block shares out each axis of the tile; -1: each thread walks it.
    along = [at if at < 2 else -1 for at in reversed(range(len(shape)))]
    moving = [at for at in range(len(shape)) if shape[at] > 1 and (is_linear or along[at] >= 0)]
    grouped: list[Classes] = []
    plain: list[Classes] = []
    used: set[str] = set()
    for at, use in enumerate(site.uses):
        used |= set(use.dims)
        found = _filling_classes(geometry, site, use, shape[at], at in moving, gpu)
        (grouped if at in moving else plain).append(found)
    rest = math.prod(
        len(geometry.grid(dim, site.depth, 0, False).outer)
        for dim in geometry.kernel.problem.dims
        if dim not in used
    )
    plain.append(_scalar(rest, _bins(site, gpu)[0]))
    if is_linear:
        lanes, rounds = _linear_lanes(geometry, [shape[at] for at in moving], gpu)
    else:
        sizes = [(shape[at], block[along[at]], along[at]) for at in moving]
        lanes, rounds = _row_lanes(geometry, sizes, gpu)
        rounds *= math.prod(shape[at] for at in range(len(shape)) if at not in moving)
    return _counted(site, grouped, plain, lanes, gpu), rounds


def _bins(site: Site, gpu: Gpu) -> tuple[int, int]:
    """In how many places of a line an element may begin, and their distance in bytes."""
    line = gpu.bank_bytes if site.space == "shared" else gpu.line_bytes
    if site.space in ("none", "constant"):
        return 1, 1
    per_bin = math.gcd(site.element_bytes, line)
    if site.offset_bytes:
        per_bin = math.gcd(per_bin, site.offset_bytes)
    return line // per_bin, per_bin


def _scalar(many: int, bins: int) -> Classes:
    hist = np.zeros((1, bins), np.int64)
    hist[0, 0] = many
    return Classes(np.zeros((1, 1), np.int64), hist)


def _groups(
    geometry: Geometry, uses: Sequence[AxisUse]
) -> list[tuple[tuple[str, ...], list[AxisUse]]]:
    """Join dimensions that share an axis, in the problem's order."""
    lead = {dim: dim for dim in geometry.kernel.problem.dims}

    def find(dim: str) -> str:
        while lead[dim] != dim:
            dim = lead[dim]
        return dim

    for use in uses:
        for dim in use.dims[1:]:
            lead[find(dim)] = find(use.dims[0])
    members: dict[str, list[str]] = {}
    for dim in lead:
        members.setdefault(find(dim), []).append(dim)
    return [
        (tuple(dims), [use for use in uses if use.dims and find(use.dims[0]) == head])
        for head, dims in members.items()
    ]


def _group_classes(
    geometry: Geometry, site: Site, dims: tuple[str, ...], uses: Sequence[AxisUse], gpu: Gpu
) -> Classes:
    addressing = {dim for use in uses if use.addresses for dim in use.dims}
    grids = {
        dim: geometry.grid(
            dim, site.depth, site.tile, site.is_held and dim in addressing, site.wide
        )
        for dim in dims
    }
    guards = [grids[dim].is_inside for dim in dims] if site.is_guarded else []
    if not uses and all(one is None for one in guards):
        return _scalar(math.prod(len(grid.outer) for grid in grids.values()), _bins(site, gpu)[0])
    shape = tuple(
        math.prod(len(getattr(grid, part)) for grid in grids.values())
        for part in ("outer", "inner", "threads")
    )
    is_on = np.ones(shape, np.bool_)
    if site.is_guarded:
        is_on &= all_inside(grids[dim] for dim in dims)
    address = np.zeros(shape, np.int64)
    kept = []
    for use in uses:
        terms = dict(use.axis.terms)
        steps = [terms.get(dim, 0) for dim in dims]
        inner = sums([grids[dim].inner for dim in dims], steps)
        threads = sums([grids[dim].threads for dim in dims], steps)
        if use.stride is not None:
            near = sums([grids[dim].near for dim in dims], steps)
            address += _outer_sum(near, inner, threads) * use.stride
            kept.append(inner)
            continue
        outer = sums([grids[dim].outer for dim in dims], steps)
        stored = _outer_sum(outer, inner, threads) + use.axis.origin
        if use.tests:
            is_on &= (stored >= 0) & (stored < use.axis.count)
        if use.addresses:
            address += use.axis.address(stored)
            kept.append(inner)
    if shape[1] > 1:
        address, is_on = _once_each(address, is_on, np.stack(kept))
    return _classified(site, gpu, address, is_on)


def _classified(site: Site, gpu: Gpu, address: Ints, is_on: Flags) -> Classes:
    """Sort iterations into classes, the last axis being the threads."""
    bins, per_bin = _bins(site, gpu)
    flat = np.ascontiguousarray(address.reshape(-1, address.shape[-1]))
    on = np.ascontiguousarray(is_on.reshape(flat.shape))
    shapes, hist, many = classify(flat, on, bins, per_bin.bit_length() - 1, site.element_bytes)
    return Classes(shapes[:many], hist[:many])


def _outer_sum(outer: Ints, inner: Ints, threads: Ints) -> Ints:
    return outer[:, None, None] + inner[None, :, None] + threads[None, None, :]


def _once_each(address: Ints, is_on: Flags, places: Ints) -> tuple[Ints, Flags]:
    """Keep one inner iteration for each element, on where any of them is."""
    _, first, which = np.unique(places, axis=1, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    joined = np.zeros((address.shape[0], len(first), address.shape[2]), np.bool_)
    for inner, at in enumerate(which):
        joined[:, at] |= is_on[:, inner]
    return address[:, first], joined


def _filling_classes(
    geometry: Geometry, site: Site, use: AxisUse, extent: int, is_moving: bool, gpu: Gpu
) -> Classes:
    """Classes of where a tile begins on one axis; its places are the threads."""
    begin = use.axis.moved(geometry.grid(dim, site.depth, 0, False).outer for dim in use.dims)
    places = np.arange(extent, dtype=np.int64)
    stored = begin[:, None] + use.axis.origin + places
    is_on = (stored >= 0) & (stored < use.axis.count) | (not use.tests)
    if use.stride is None:
        address = use.axis.address(stored)
    else:
        address = np.broadcast_to(places * use.stride, stored.shape)
    if not is_moving:
        address, is_on = address.reshape(-1, 1), is_on.reshape(-1, 1)
    return _classified(site, gpu, address, is_on)


def _row_lanes(
    geometry: Geometry, sizes: Sequence[tuple[int, int, int]], gpu: Gpu
) -> tuple[Ints, int]:
    """Places of the lanes of all warps in all rounds, where rows go to thread_y."""
    block = geometry.kernel.block
    threads = math.prod(block)
    number = np.arange(threads, dtype=np.int64)
    along = (number % block[0], number // block[0] % block[1])
    rounds = [-(-extent // many) for extent, many, _ in sizes]
    total = math.prod(rounds)
    warps = -(-threads // gpu.warp_threads)
    lanes = np.full((total, warps * gpu.warp_threads, max(1, len(sizes))), -1, np.int64)
    left = np.arange(total, dtype=np.int64)
    is_on = np.ones((total, threads), np.bool_)
    if not sizes:
        lanes[:, :threads] = 0
    # A tile of one column is loaded by the threads of the first column.
    for axis in range(2):
        if axis not in [which for _, _, which in sizes]:
            is_on &= along[axis] == 0
    is_on &= number // (block[0] * block[1]) == 0
    for at in reversed(range(len(sizes))):
        extent, many, axis = sizes[at]
        left, index = np.divmod(left, rounds[at])
        place = along[axis][None, :] + index[:, None] * many
        lanes[:, :threads, at] = place
        is_on &= place < extent
    lanes[:, :threads][~is_on] = -1
    return lanes.reshape(total * warps, gpu.warp_threads, -1), total


def _linear_lanes(geometry: Geometry, sizes: Sequence[int], gpu: Gpu) -> tuple[Ints, int]:
    """Places of the lanes of all warps in all rounds, elements going to threads in order."""
    threads = geometry.kernel.block_threads
    elems = math.prod(sizes)
    rounds = -(-elems // threads)
    warps = -(-threads // gpu.warp_threads)
    number = np.full((rounds, warps * gpu.warp_threads), elems, np.int64)
    number[:, :threads] = np.arange(rounds * threads).reshape(rounds, threads)
    is_on = number < elems
    lanes = np.zeros((*number.shape, max(1, len(sizes))), np.int64)
    for at in reversed(range(len(sizes))):
        number, lanes[:, :, at] = np.divmod(number, sizes[at])
    lanes[~is_on] = -1
    return lanes.reshape(rounds * warps, gpu.warp_threads, -1), rounds


def _counted(
    site: Site, grouped: Sequence[Classes], plain: Sequence[Classes], lanes: Ints, gpu: Gpu
) -> Counts:
    """Combine the classes of all groups and run the lanes through each combination."""
    bins, per_bin = _bins(site, gpu)
    hist = np.zeros((1, bins), np.int64)
    hist[0, site.offset_bytes % (bins * per_bin) // per_bin] = 1
    out = np.zeros(7, np.int64)
    everything = [*plain, *grouped]
    if all(len(one.hist) for one in everything):
        for one in everything:
            hist = fold(hist, np.ascontiguousarray(one.hist))
        picks = np.zeros((len(hist), max(1, len(grouped))), np.int64)
        number = np.arange(len(hist), dtype=np.int64)
        for at in reversed(range(len(grouped))):
            number, picks[:, at] = np.divmod(number, len(grouped[at].hist))
        sector, line = (size.bit_length() - 1 for size in (gpu.sector_bytes, gpu.line_bytes))
        code = _CODES.get(site.space, GLOBAL)
        sizes = site.element_bytes, site.access_bytes, per_bin
        access = Access(*sizes, sector, line, gpu.bank_bytes, gpu.banks, code)
        count_lanes(hist, picks, _stacked(grouped), lanes, access, out)
    return Counts(**{one.name: int(n) for one, n in zip(fields(Counts), out, strict=True)})


def _stacked(grouped: Sequence[Classes]) -> Ints:
    if not grouped:
        return np.zeros((1, 1, 1), np.int64)
    room = [max(one.shapes.shape[at] for one in grouped) for at in range(2)]
    stacked = np.full((len(grouped), *room), OFF, np.int64)
    for number, one in enumerate(grouped):
        many, width = one.shapes.shape
        stacked[number, :many, :width] = one.shapes
    return stacked


def tensor_uses(
    axes: Iterable[PlacedAxis], strides: Sequence[int] | None = None, *, tests: bool = True
) -> tuple[AxisUse, ...]:
    """Use all axes of a tensor, in global memory or in a tile with these strides."""
    return tuple(
        AxisUse(axis, None if strides is None else strides[at], tests=tests)
        for at, axis in enumerate(axes)
    )


def held_elements(geometry: Geometry, tensor: Tensor, depth: int) -> int:
    """Count the elements of a tensor that a thread's loops from a place inward touch."""
    total = 1
    for axis in geometry.placed[tensor.name].axes:
        inner = (geometry.grid(dim, depth, 0, True).inner for dim, _ in axis.terms)
        total *= len(np.unique(axis.moved(inner)))
    return total
