"""The compiled search for the front of capacity and traffic."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Floats, Ints
from loopsched.base.jit import jit, step
from loopsched.scheduler.kernels import (
    LARGEST,
    LARGEST_BOUND,
    SLID,
    TOTAL,
    TOTAL_BOUND,
    Numbers,
    is_solid,
    on_axes,
    times_repeated,
    window_pair,
    with_along,
)

NEVER = 2**62


class Choices(NamedTuple):
    """Choices of extents under one class of orders.

    ``box`` holds the first and the last choice of each dimension; ``radix`` and ``code``
    number them, the class included; ``logs[d]`` are the logarithms of the extents.
    """

    box: Ints
    run: Ints
    slides: Ints
    radix: Ints
    code: int
    logs: Floats


@step
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


@step
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


@step
def _widest(low: Ints, high: Ints, logs: Floats) -> int:
    """Find the dimension whose extents spread most over a box; -1 if it is one choice."""
    found, most = -1, -1.0
    for d in range(len(low)):
        if low[d] < high[d]:
            spread = logs[d, low[d]] - logs[d, high[d]]
            if spread > most:
                found, most = d, spread
    return found


@step
def _middle(low: int, high: int, logs: Floats, d: int) -> int:
    """Find the last choice of the upper half, by the logarithm of the extents."""
    middle = 0.5 * (logs[d, low] + logs[d, high])
    cut = low
    while cut + 1 < high and logs[d, cut + 1] >= middle:
        cut += 1
    return cut


@step
def _corner(
    n: Numbers, of: Choices, low: Ints, high: Ints, is_one: bool, needs: Ints
) -> tuple[int, int]:
    """Bound the room and the traffic of the choices between two.

    The largest extents have the least traffic, the smallest need the least room.
    """
    room, moved = 0, 0
    visits_of, room_of = (TOTAL, LARGEST) if is_one else (TOTAL_BOUND, LARGEST_BOUND)
    for t in range(len(n.weight)):
        needs[t] = n.element_bytes[t] * on_axes(n, room_of, high, t, -1)
        visits = times_repeated(n, low, t, of.run[t]) * on_axes(n, visits_of, low, t, of.slides[t])
        moved += n.weight[t] * visits
        room += needs[t]
    return room, moved


@step
def _loaded(n: Numbers, of: Choices, index: Ints) -> int:
    """Count the bytes that a scratchpad loads."""
    loaded = 0
    for t in range(len(n.weight)):
        visits = with_along(n, TOTAL, SLID, index, t, of.slides[t])
        loaded += n.weight[t] * times_repeated(n, index, t, of.run[t]) * visits
    return loaded


@step
def _windows(
    n: Numbers, of: Choices, index: Ints, needs: Ints, body: int, rooms: Ints, costs: Ints
) -> None:
    """Find what a cache needs to keep a tensor's halo, its run, or nothing, and what it moves.

    ``rooms[t, k]`` and ``costs[t, k]`` for k = 0, 1, 2; ``NEVER`` where a window has gaps.
    """
    empty = np.zeros_like(of.run[0])
    for t in range(len(n.weight)):
        slide = of.slides[t]
        for k in range(3):
            kept = slide if k == 0 else -1
            outside = empty if k == 2 else of.run[t]
            window = 0
            if k < 2:
                for b in range(len(n.weight)):
                    window += window_pair(n, needs, index, b, outside, kept)
            rooms[t, k] = max(body, window)
            visits = on_axes(n, TOTAL, index, t, kept)
            costs[t, k] = n.weight[t] * times_repeated(n, index, t, outside) * visits
        if slide >= 0 and not is_solid(n, index, t, slide):
            rooms[t, 0] = NEVER


@step
def _promised(rooms: Ints, costs: Ints, room: int) -> int:
    """Bytes that a cache of that room promises to move at most."""
    moved = 0
    for t in range(rooms.shape[0]):
        k = 0
        while rooms[t, k] > room:
            k += 1
        moved += costs[t, k]
    return moved


@step
def _add_better(front: Ints, n_steps: int, capacity: int, moved: int, code: int) -> int:
    """Add a step, if none that needs as little moves as little."""
    within = _n_within(front, n_steps, capacity)
    if within and front[1, within - 1] <= moved:
        return n_steps
    return _add(front, n_steps, within, capacity, moved, code)


@jit
def grow_front(
    n: Numbers, of: Choices, front: Ints, n_steps: int, is_guaranteed: bool
) -> tuple[int, int, bool]:
    """Add to a front the choices of extents in a box under one class of orders.

    ``front`` has the rows capacity, bytes and code, sorted by capacity.  Boxes of
    choices are halved until the front dominates the corner of least room and least
    traffic, which no choice of the box reaches.  A cache that guarantees reuse needs
    room for windows, too: such a choice is several steps.  Returns the steps, the
    boxes seen, and whether all is done: if not, ``front`` is full.  (Numbers only: an
    array handed back may meet an interruption.)
    """
    n_dims, n_tensors = len(n.n_extents), len(n.weight)
    needs = np.zeros(n_tensors, dtype=np.int64)
    rooms = np.zeros((n_tensors, 3), dtype=np.int64)
    costs = np.zeros((n_tensors, 3), dtype=np.int64)
    boxes = np.zeros((2 + n.n_extents.sum(), 2, n_dims), dtype=np.int64)
    boxes[0] = of.box
    low, high = np.zeros(n_dims, dtype=np.int64), np.zeros(n_dims, dtype=np.int64)
    n_boxes, seen = 1, 0
    while n_boxes:
        n_boxes -= 1
        seen += 1
        low[:] = boxes[n_boxes, 0]
        high[:] = boxes[n_boxes, 1]
        wide = _widest(low, high, of.logs)
        room, moved = _corner(n, of, low, high, wide < 0, needs)
        within = _n_within(front, n_steps, room)
        if within and front[1, within - 1] <= moved:
            continue
        if wide >= 0:
            cut = _middle(low[wide], high[wide], of.logs, wide)
            boxes[n_boxes + 1] = boxes[n_boxes]
            boxes[n_boxes, 0, wide] = cut + 1
            boxes[n_boxes + 1, 1, wide] = cut
            n_boxes += 2
            continue
        if n_steps + 3 * n_tensors > front.shape[1]:
            return n_steps, seen, False
        code = of.code + (low * of.radix).sum()
        if not is_guaranteed:  # the sums so far are of whole sweeps: no more than what is loaded
            n_steps = _add_better(front, n_steps, room, _loaded(n, of, low), code)
            continue
        _windows(n, of, low, needs, room, rooms, costs)
        for need in rooms.ravel():
            capacity = int(need)
            if capacity < NEVER:
                promised = _promised(rooms, costs, capacity)
                n_steps = _add_better(front, n_steps, capacity, promised, code)
    return n_steps, seen, True
