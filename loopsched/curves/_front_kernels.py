"""The compiled search for the front of capacity and traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopsched._jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


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
def _corner(
    at: Ints,
    t: int,
    skip: int,
    table: Ints,
    tensor_axes: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
) -> int:
    """Multiply a table over the axes of a tensor; dimension ``skip`` stays whole."""
    product = 1
    for a in range(tensor_axes[t], tensor_axes[t + 1]):
        first, second = axis_dims[a, 0], axis_dims[a, 1]
        place = axis_start[a]
        if first != skip:
            place += at[first] * axis_stride[a]
        if second >= 0 and second != skip:
            place += at[second]
        product *= table[place]
    return product


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
def grow_front(
    front: Ints,
    n_steps: int,
    class_code: int,
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
    tensor_axes: Ints,
    is_indexed: Ints,
    weight: Ints,
    element_bytes: Ints,
    logs: Floats,
) -> tuple[Ints, int, int]:
    """Add to a front all choices of extents under one class of orders.

    ``front`` has the rows capacity, bytes and code, sorted by capacity.  Boxes of
    choices are halved until the front dominates the corner of least room and least
    traffic, which no choice of the box reaches.  Returns front, steps and boxes.
    """
    n_dims = len(n_extents)
    boxes = np.zeros((2 + n_extents.sum(), 2, n_dims), dtype=np.int64)
    boxes[0, 1] = n_extents - 1
    low, high = np.zeros(n_dims, dtype=np.int64), np.zeros(n_dims, dtype=np.int64)
    n_boxes, seen = 1, 0
    while n_boxes:
        n_boxes -= 1
        seen += 1
        low[:] = boxes[n_boxes, 0]
        high[:] = boxes[n_boxes, 1]
        wide = _widest(low, high, logs)
        room, moved = 0, 0
        for t in range(len(weight)):
            # The largest extents have the least traffic, the smallest need the least room.
            visits = weight[t]
            for d in range(n_dims):
                if is_indexed[t, d] == 0 and run[t, d] == 0:
                    visits *= pieces[d, low[d]]
            moved += visits * _corner(
                low,
                t,
                slides[t],
                total_bound if wide >= 0 else total,
                tensor_axes,
                axis_dims,
                axis_stride,
                axis_start,
            )
            room += element_bytes[t] * _corner(
                high,
                t,
                -1,
                largest_bound if wide >= 0 else largest,
                tensor_axes,
                axis_dims,
                axis_stride,
                axis_start,
            )
        within = _n_within(front, n_steps, room)
        if within and front[1, within - 1] <= moved:
            continue
        if wide < 0:
            if n_steps == front.shape[1]:
                grown = np.zeros((3, 2 * n_steps), dtype=np.int64)
                grown[:, :n_steps] = front
                front = grown
            code = class_code
            for d in range(n_dims):
                code += low[d] * radix[d]
            n_steps = _add(front, n_steps, within, room, moved, code)
            continue
        cut = _middle(low[wide], high[wide], logs, wide)
        boxes[n_boxes, 0] = low
        boxes[n_boxes, 1] = high
        boxes[n_boxes, 0, wide] = cut + 1
        boxes[n_boxes + 1, 0] = low
        boxes[n_boxes + 1, 1] = high
        boxes[n_boxes + 1, 1, wide] = cut
        n_boxes += 2
    return front, n_steps, seen
