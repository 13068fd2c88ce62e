"""Distinct sectors that the blocks of a kernel touch, from a place in the nest inward."""

from __future__ import annotations

import math

import numpy as np

from loopsched.base.arrays import Flags, Ints
from loopsched.gpu._footprint_kernels import Reach, joined_rows, row_sectors, view_sectors
from loopsched.gpu.addresses import DimGrid, Geometry, PlacedAxis, all_inside
from loopsched.problems.problem import Tensor

# Axes that are touched whole are joined into one while that has so many places.
_MOST_JOINED = 2**18
# Places of a view that are followed one by one; more are taken from every nth block.
_MOST_FOLLOWED = 2**19


# What an axis of one position touches.
NOWHERE = Reach(np.zeros((1, 1), np.int64), np.ones((1, 1), np.bool_), 1, 1)


def footprint_sectors(geometry: Geometry, tensor: Tensor, depth: int, sector_bytes: int) -> int:
    """Count distinct sectors of each block, at each iteration outside a place; added up.

    Exact for a tensor whose axes are steps in memory, but that two of its
    axes beyond the fastest two may share a sector, which counts twice, and
    so may images of a view that one block visits.
    """
    laid = geometry.placed[tensor.name]
    used = {dim for axis in tensor.axes for dim in axis.dims}
    rest = math.prod(
        len(geometry.grid(dim, depth, 0, False).outer)
        for dim in geometry.kernel.problem.dims
        if dim not in used
    )
    reaches = [axis_reach(geometry, tensor, axis, depth) for axis in laid.axes]
    if laid.is_view:
        return rest * _followed(reaches, tensor.element_bytes, sector_bytes)
    return rest * _separate(reaches, tensor.element_bytes, sector_bytes, laid.offset_bytes)


def axis_reach(geometry: Geometry, tensor: Tensor, axis: PlacedAxis, depth: int) -> Reach:
    """Find what blocks touch along an axis: a whole tile, or what computing needs."""
    kernel = geometry.kernel
    read = kernel.read(tensor.name)
    grids = [geometry.grid(dim, depth, 0, True) for dim, _ in axis.terms]
    outer = axis.moved(grid.outer for grid in grids) + axis.origin
    if read.space == "shared":
        extent = 1 + sum(
            step * (kernel.span(dim, min(depth, read.position)) - 1) for dim, step in axis.terms
        )
        stored = outer[:, None] + np.arange(extent, dtype=np.int64)
        is_on = (stored >= 0) & (stored < axis.count)
    else:
        inner = axis.moved(grid.inner for grid in grids)
        threads = axis.moved(grid.threads for grid in grids)
        places, which = np.unique(inner[:, None] + threads[None, :], return_inverse=True)
        stored = outer[:, None] + places
        is_on = (stored >= 0) & (stored < axis.count)
        if kernel.guard == "thread" and any(grid.is_inside is not None for grid in grids):
            is_on &= _touched(grids, len(outer), which.reshape(-1), len(places))
    digits = axis.digits
    return Reach(axis.address(stored), is_on, digits[-1][1], axis.count)


def _touched(grids: list[DimGrid], many: int, which: Ints, places: int) -> Flags:
    """Tell which places some point inside all loops touches."""
    flat = all_inside(grids).reshape(many, -1)
    found = np.zeros((many, places), np.bool_)
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(places))
    found[:] = np.logical_or.reduceat(flat[:, order], starts, axis=1)
    return found


def _separate(reaches: list[Reach], elem: int, sector: int, offset_bytes: int) -> int:
    """Count rows by where in a sector they begin; axes multiply."""
    ordered = sorted((one for one in reaches if one.places > 1), key=lambda one: one.stride)
    fixed = [one for one in reaches if one.places <= 1]
    many = math.prod(int(one.is_on.any(axis=1).sum()) for one in fixed)
    if not ordered:
        return many
    per_bin = math.gcd(elem, sector)
    per_bin = math.gcd(per_bin, offset_bytes) if offset_bytes else per_bin
    bins = sector // per_bin
    fast, rest = ordered[0], ordered[1:]
    while rest:
        joined = _joined(fast, rest[0])
        if joined is None:
            break
        (fast, times), rest = joined, rest[1:]
        many *= times
    begins = np.zeros(bins, np.int64)
    begins[offset_bytes % sector // per_bin] = 1
    after = begins
    for number, one in enumerate(rest):
        at = (one.address[one.is_on] * elem // per_bin) % bins
        begins_next = _cyclic(begins, np.bincount(at, minlength=bins))
        if number == 0:
            # Rows that have a row after them in the same block.
            pairs = one.is_on[:, :-1] & one.is_on[:, 1:]
            with_next = (one.address[:, :-1][pairs] * elem // per_bin) % bins
            after = _cyclic(begins, np.bincount(with_next, minlength=bins))
        else:
            after = _cyclic(after, np.bincount(at, minlength=bins))
        begins = begins_next
    fast = _packed(fast)
    total = int(begins @ row_sectors(fast, elem, sector, per_bin, bins))
    if rest and len(rest[0].address[0]) > 1:
        pitch = int(rest[0].address[0, 1] - rest[0].address[0, 0])
        width = int((fast.address.max(axis=1) - fast.address.min(axis=1)).max())
        if (pitch - width) * elem < 2 * sector:
            same = joined_rows(fast, pitch, elem, sector, per_bin, bins)
            total -= int(after @ same)
    return many * total


def _joined(fast: Reach, row: Reach) -> tuple[Reach, int] | None:
    """Join rows that every block touches whole and that follow one another."""
    whole = fast.is_on.sum(axis=1)
    used = whole > 0
    is_whole = bool((whole[used] == fast.places).all()) and used.any()
    if not is_whole or row.stride != fast.stride * fast.places:
        return None
    if row.address.size * fast.places > _MOST_JOINED:
        return None
    first = int(np.flatnonzero(used)[0])
    columns = np.sort(fast.address[first][fast.is_on[first]])
    address = (row.address[:, :, None] + columns).reshape(len(row.address), -1)
    is_on = np.repeat(row.is_on, len(columns), axis=1)
    joined = Reach(address, is_on, fast.stride, row.places * fast.places)
    return joined, int(used.sum())


def _packed(reach: Reach, step: int = 1) -> Reach:
    """Take every nth iteration, in C's order."""
    address, is_on = reach.address[::step], reach.is_on[::step]
    return reach._replace(address=np.ascontiguousarray(address), is_on=np.ascontiguousarray(is_on))


def _cyclic(one: Ints, other: Ints) -> Ints:
    bins = len(one)
    out = np.zeros(bins, np.int64)
    for at in np.flatnonzero(one):
        out += one[at] * np.roll(other, at)
    return out


def _followed(reaches: list[Reach], elem: int, sector: int) -> int:
    """Follow a view's addresses one by one; images that begin alike are followed once."""
    missing = 3 - len(reaches)
    *outer, rows, columns = [NOWHERE] * missing + [_packed(one) for one in reaches]
    at = np.zeros(1, np.int64)
    for one in outer:
        at = (at[:, None] + one.address[one.is_on]).ravel()
    period = sector // math.gcd(sector, elem)
    begins, times = np.unique(at % period, return_counts=True)
    cost = len(begins) * rows.address.size * columns.address.size
    step = min(len(columns.address), -(-cost // _MOST_FOLLOWED))
    picked = _packed(columns, step)
    scale = len(columns.address) / len(picked.address)
    shift = max(0, (sector // elem).bit_length() - 1)
    total = 0.0
    room = (period + int(rows.address.max()) + int(columns.address.max())) * elem // sector + 2
    for begin, many in zip(begins.tolist(), times.tolist(), strict=True):
        stamp = np.zeros(room, np.int64)
        followed = view_sectors(np.array([begin]), rows, picked, shift, stamp)
        total += many * scale * followed
    return round(total)
