"""The compiled search for the front of capacity and traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopsched.base.jit import jit
from loopsched.scheduler.kernels import on_axes, slid_on_axes, times_repeated, window_pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEVER = 2**62


@jit
def _n_within(front: Ints, n_steps: int, capacity: int) -> int:
    """Count the steps that need at most a capacity."""
    low, high = 0, n_steps
    while low < high:
        middle = (low + high) // 2
        if front[0, middle] <= capacity:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _add(front: Ints, n_steps: int, within: int, capacity: int, moved: int, code: int) -> int:
    """Add a step that no other dominates; ``within`` others need at most its capacity."""
    first = within
    if within and front[0, within - 1] == capacity:
        first -= 1
    last = first
    while last < n_steps and front[1, last] >= moved:
        last += 1
    shift = 1 - (last - first)
    if shift > 0:
        for i in range(n_steps, first, -1):
            for row in range(3):
                front[row, i] = front[row, i - 1]
    elif shift < 0:
        for i in range(last, n_steps):
            for row in range(3):
                front[row, i + shift] = front[row, i]
    front[0, first], front[1, first], front[2, first] = capacity, moved, code
    return n_steps + shift


@jit
def _widest(low: Ints, high: Ints, logs: Floats) -> int:
    """Find the dimension whose extents spread most over a box; -1 if it is one choice."""
    found, most = -1, -1.0
    for d in range(len(low)):
        if low[d] < high[d]:
            spread = logs[d, low[d]] - logs[d, high[d]]
            if spread > most:
                found, most = d, spread
    return found


@jit
def _middle(low: int, high: int, logs: Floats, d: int) -> int:
    """Find the last choice of the upper half, by the logarithm of the extents."""
    middle = 0.5 * (logs[d, low] + logs[d, high])
    cut = low
    while cut + 1 < high and logs[d, cut + 1] >= middle:
        cut += 1
    return cut


@jit
def _windows(
    index: Ints,
    run: Ints,
    slides: Ints,
    needs: Ints,
    body: int,
    pieces: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    total: Ints,
    largest: Ints,
    pair_first: Ints,
    pair_second: Ints,
    is_gapless: Ints,
    tensor_axes: Ints,
    is_indexed: Ints,
    weight: Ints,
    element_bytes: Ints,
    rooms: Ints,
    costs: Ints,
) -> None:
    """Find what a cache needs to keep a tensor's halo, its run, or nothing, and what it moves.

    ``rooms[t, k]`` and ``costs[t, k]`` for k = 0, 1, 2; ``NEVER`` where a window has gaps.
    """
    empty = np.zeros_like(run[0])
    for t in range(len(weight)):
        slide = slides[t]
        for k in range(3):
            kept = slide if k == 0 else -1
            outside = empty if k == 2 else run[t]
            rooms[t, k] = body
            if k < 2:
                window = 0
                for b in range(len(weight)):
                    window += window_pair(
                        needs,
                        index,
                        b,
                        outside,
                        kept,
                        tensor_axes,
                        axis_dims,
                        axis_stride,
                        axis_start,
                        largest,
                        pair_first,
                        pair_second,
                        is_indexed,
                        element_bytes,
                        pieces,
                    )
                rooms[t, k] = max(body, window)
            costs[t, k] = (
                weight[t]
                * times_repeated(index, t, outside, pieces, is_indexed)
                * on_axes(total, index, t, kept, tensor_axes, axis_dims, axis_stride, axis_start)
            )
        if slide >= 0:
            for a in range(tensor_axes[t], tensor_axes[t + 1]):
                first, second = axis_dims[a, 0], axis_dims[a, 1]
                if slide in (first, second):
                    at = axis_start[a] + index[first] * axis_stride[a]
                    if second >= 0:
                        at += index[second]
                    if is_gapless[at] == 0:
                        rooms[t, 0] = NEVER


@jit
def _promised(rooms: Ints, costs: Ints, room: int) -> int:
    """Bytes that a cache of that room promises to move at most."""
    moved = 0
    for t in range(rooms.shape[0]):
        k = 0
        while rooms[t, k] > room:
            k += 1
        moved += costs[t, k]
    return moved


@jit
def grow_front(
    front: Ints,
    n_steps: int,
    class_code: int,
    box: Ints,
    run: Ints,
    slides: Ints,
    pieces: Ints,
    n_extents: Ints,
    radix: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    total: Ints,
    total_bound: Ints,
    largest: Ints,
    largest_bound: Ints,
    pair_first: Ints,
    pair_second: Ints,
    is_gapless: Ints,
    slid_first: Ints,
    slid_second: Ints,
    tensor_axes: Ints,
    is_indexed: Ints,
    weight: Ints,
    element_bytes: Ints,
    logs: Floats,
    is_guaranteed: bool,
) -> tuple[int, int, bool]:
    """Add to a front the choices of extents in a box under one class of orders.

    ``front`` has the rows capacity, bytes and code, sorted by capacity.  Boxes of
    choices are halved until the front dominates the corner of least room and least
    traffic, which no choice of the box reaches.  A cache that guarantees reuse needs
    room for windows, too: such a choice is several steps.  Returns the steps, the
    boxes seen, and whether all is done: if not, ``front`` is full.  (Numbers only: an
    array handed back may meet an interruption.)
    """
    n_dims, n_tensors = len(n_extents), len(weight)
    needs = np.zeros(n_tensors, dtype=np.int64)
    rooms = np.zeros((n_tensors, 3), dtype=np.int64)
    costs = np.zeros((n_tensors, 3), dtype=np.int64)
    boxes = np.zeros((2 + n_extents.sum(), 2, n_dims), dtype=np.int64)
    boxes[0] = box
    low, high = np.zeros(n_dims, dtype=np.int64), np.zeros(n_dims, dtype=np.int64)
    n_boxes, seen = 1, 0
    while n_boxes:
        n_boxes -= 1
        seen += 1
        low[:] = boxes[n_boxes, 0]
        high[:] = boxes[n_boxes, 1]
        wide = _widest(low, high, logs)
        room, moved = 0, 0
        visits_of, room_of = (total_bound, largest_bound) if wide >= 0 else (total, largest)
        for t in range(n_tensors):
            # The largest extents have the least traffic, the smallest need the least room.
            # (Millions of times: written out, not called.)
            visits, body = weight[t], element_bytes[t]
            for a in range(tensor_axes[t], tensor_axes[t + 1]):
                first, second = axis_dims[a, 0], axis_dims[a, 1]
                start, stride = axis_start[a], axis_stride[a]
                visited, held = start, start + high[first] * stride
                if first != slides[t]:
                    visited += low[first] * stride
                if second >= 0:
                    held += high[second]
                    if second != slides[t]:
                        visited += low[second]
                visits *= visits_of[visited]
                body *= room_of[held]
            for d in range(n_dims):
                if is_indexed[t, d] == 0 and run[t, d] == 0:
                    visits *= pieces[d, low[d]]
            moved += visits
            needs[t] = body
            room += body
        within = _n_within(front, n_steps, room)
        if within and front[1, within - 1] <= moved:
            continue
        if wide < 0:
            if n_steps + 3 * n_tensors > front.shape[1]:
                return n_steps, seen, False
            code = class_code
            for d in range(n_dims):
                code += low[d] * radix[d]
            if not is_guaranteed:
                moved = 0  # the sums so far are of whole sweeps: no more than what is loaded
                for t in range(n_tensors):
                    moved += (
                        weight[t]
                        * times_repeated(low, t, run[t], pieces, is_indexed)
                        * slid_on_axes(
                            total,
                            slid_first,
                            slid_second,
                            low,
                            t,
                            slides[t],
                            tensor_axes,
                            axis_dims,
                            axis_stride,
                            axis_start,
                        )
                    )
                if within == 0 or front[1, within - 1] > moved:
                    n_steps = _add(front, n_steps, within, room, moved, code)
                continue
            _windows(
                low,
                run,
                slides,
                needs,
                room,
                pieces,
                axis_dims,
                axis_stride,
                axis_start,
                total,
                largest,
                pair_first,
                pair_second,
                is_gapless,
                tensor_axes,
                is_indexed,
                weight,
                element_bytes,
                rooms,
                costs,
            )
            for t in range(n_tensors):
                for k in range(3):
                    if rooms[t, k] < NEVER:
                        promised = _promised(rooms, costs, rooms[t, k])
                        within = _n_within(front, n_steps, rooms[t, k])
                        if within == 0 or front[1, within - 1] > promised:
                            n_steps = _add(front, n_steps, within, rooms[t, k], promised, code)
            continue
        cut = _middle(low[wide], high[wide], logs, wide)
        boxes[n_boxes, 0] = low
        boxes[n_boxes, 1] = high
        boxes[n_boxes, 0, wide] = cut + 1
        boxes[n_boxes + 1, 0] = low
        boxes[n_boxes + 1, 1] = high
        boxes[n_boxes + 1, 1, wide] = cut
        n_boxes += 2
    return n_steps, seen, True
