"""The compiled walk behind `loopsched.simulator.tile_replay`.

Time is a list of slots, one a touch; a tree of partial sums (Fenwick's) over them
holds each tile's bytes at its latest touch.  The distance of a touch is what lies
between the tile's last slot, its own bytes included, and now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit, step

# Members of the running state.
NOW, LIVE, STEP = 0, 1, 2


@jit
def add(tree: Ints, at: int, amount: int) -> None:
    """Add to one slot of a tree of partial sums."""
    i = at + 1
    while i < tree.shape[0]:
        tree[i] += amount
        i += i & -i


@jit
def below(tree: Ints, at: int) -> int:
    """Sum all slots before one."""
    total, i = 0, at
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@jit
def compact(tree: Ints, slot: Ints, owner: Ints, size: Ints) -> int:
    """Move the slots in use to the beginning of time; returns how many there are."""
    n = 0
    for at in range(owner.shape[0]):
        tile = owner[at]
        if tile >= 0 and slot[tile] == at:
            owner[n] = tile
            slot[tile] = n
            n += 1
    owner[n:] = -1
    tree[:] = 0
    for at in range(n):
        tree[at + 1] = size[owner[at]]
    for i in range(1, tree.shape[0]):
        parent = i + (i & -i)
        if parent < tree.shape[0]:
            tree[parent] += tree[i]
    return n


class Layout(NamedTuple):
    """Tiles, and what the bodies of an item touch.

    ``offsets``, ``extents``: bodies of a full item, step by step.  ``tensors``:
    first tile, bytes an element, whether written.  ``strides``: of tile numbers
    along each dimension, -1: not indexed.  ``pieces``: number of the tile that
    begins at a position, from ``first_piece`` on.  Written tiles come last.
    """

    offsets: Ints
    extents: Ints
    tensors: Ints
    strides: Ints
    pieces: Ints
    first_piece: Ints
    n_tiles: int
    first_written: int


class Replay(NamedTuple):
    """The tiles in order of use, and what has been counted so far."""

    bin_bytes: int
    cold: Ints
    again: Ints
    state: Ints
    stamp: Ints
    tree: Ints
    slot: Ints
    owner: Ints
    size: Ints


@step
def touch(replay: Replay, t: int, tile: int, amount: int) -> None:
    """Touch a tile of a tensor, and count it by what was touched since the last time."""
    state, tree, slot = replay.state, replay.tree, replay.slot
    owner, size, again = replay.owner, replay.size, replay.again[t]
    if state[NOW] == owner.shape[0]:
        state[NOW] = compact(tree, slot, owner, size)
    before = slot[tile]
    if before >= 0:
        distance = state[LIVE] - below(tree, before)
        again[min((distance - 1) // replay.bin_bytes, again.shape[0] - 1)] += amount
        add(tree, before, -size[tile])
        owner[before] = -1
    else:
        state[LIVE] += amount
        size[tile] = amount
        replay.cold[t] += amount
    slot[tile] = state[NOW]
    owner[state[NOW]] = tile
    add(tree, state[NOW], size[tile])
    state[NOW] += 1


@jit
def run_wave(starts: Ints, lengths: Ints, layout: Layout, replay: Replay) -> None:
    """Run items on these regions in lock-step; what several touch in a step, they touch once."""
    offsets, extents, tensors, strides = layout[:4]
    stamp, state = replay.stamp, replay.state
    n_items, n_dims = starts.shape
    written = np.full(n_items, -1, np.int64)
    written_bytes = np.zeros(n_items, np.int64)
    for body in range(offsets.shape[0] + 1):
        state[STEP] += 1
        is_end = body == offsets.shape[0]
        for item in range(n_items):
            is_inside = not is_end
            if not is_end:
                for d in range(n_dims):
                    is_inside = is_inside and offsets[body, d] < lengths[item, d]
                if not is_inside:
                    continue
            for t in range(tensors.shape[0]):
                tile, amount = tensors[t, 0], tensors[t, 1]
                if not is_end:
                    for d in range(n_dims):
                        if strides[t, d] >= 0:
                            at = starts[item, d] + offsets[body, d]
                            tile += strides[t, d] * layout.pieces[layout.first_piece[d] + at]
                            amount *= min(extents[body, d], lengths[item, d] - offsets[body, d])
                if tensors[t, 2]:
                    # Sums stay in registers: a tile is written when its item leaves it.
                    done, done_bytes = written[item], written_bytes[item]
                    if not is_end and done == tile:
                        continue
                    written[item], written_bytes[item] = tile, amount
                    if done < 0 or stamp[done] == state[STEP]:
                        continue
                    stamp[done] = state[STEP]
                    touch(replay, t, done, done_bytes)
                elif not is_end and stamp[tile] != state[STEP]:
                    stamp[tile] = state[STEP]
                    touch(replay, t, tile, amount)


@jit
def left_behind(replay: Replay, first: int, left: Ints) -> None:
    """Sort the written tiles, those from number ``first``, by what was touched since."""
    slot, owner, size = replay.slot, replay.owner, replay.size
    depth = 0
    for at in range(replay.state[NOW] - 1, -1, -1):
        tile = owner[at]
        if tile >= 0 and slot[tile] == at:
            depth += size[tile]
            if tile >= first:
                left[min((depth - 1) // replay.bin_bytes, left.shape[0] - 1)] += size[tile]
