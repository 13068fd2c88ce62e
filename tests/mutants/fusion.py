"""Mutants of fusion: reach of windows, what tiles hold, cuts, what stays."""

from __future__ import annotations

from .mutant import In

_window = In("network/window.py", "test_fusion.py")
_window.broken(
    "fusion-padding-outside",
    "windows are not shifted by the padding in front",
    "first = position * self.stride - self.before",
    "first = position * self.stride",
)

_extents = In("fusion/extents.py", "test_fusion.py")
_extents.broken(
    "fusion-edge-tiles-whole",
    "tiles at the edge are counted like the largest",
    "            sum(counts),\n            max(counts),\n",
    "            len(counts) * max(counts),\n            max(counts),\n",
)
_extents.broken(
    "fusion-kept-rows-dropped",
    "rows that only the tile at work still needs are not in the buffer",
    "old & piece.read & ~after,",
    "old & piece.read & ~after & piece.new,",
)

_rooms = In("fusion/rooms.py", "test_fusion.py")
_rooms.broken(
    "fusion-last-output-whole",
    "the last output does not pass slice by slice",
    "        return whole_in + slice_out\n",
    "        return whole_in + whole_out\n",
)
_rooms.broken(
    "fusion-input-read-once",
    "an input that is not kept is counted once all the same",
    "read = np.outer(rolling(high, size[0]).total, rolling(wide, size[1]).total)",
    "read = np.outer(rolling(high, size[0]).largest, rolling(wide, size[1]).largest)",
)

_weights = In("fusion/weights.py", "test_fusion.py")
_weights.broken(
    "fusion-no-room-for-streams",
    "weights that are fetched again need no room",
    "room = np.maximum(spare - element, 0)",
    "room = np.maximum(spare, 0)",
)

_tiles = In("fusion/tiles.py", "test_fusion.py")
_tiles.broken(
    "fusion-least-room-first",
    "of equal tiles those with the least room are taken, however many there are",
    "[moved, macs, n_tiles, room]",
    "[moved, macs, room, n_tiles]",
)

_graphs = In("fusion/graphs.py", "test_fusion_models.py")
_graphs.broken(
    "fusion-any-operand-passes",
    "a layer is fused with what it reads as another operand than the first",
    'if edge["operands"] != (first,):',
    'if edge["operands"] == (first, first):',
)

_windows = In("network/onnx_windows.py", "test_fusion_models.py")
_windows.broken(
    "network-pools-without-pads",
    "windows of poolings are not shifted by the padding in front",
    "axes = zip(large, small, taps, strides, dilations, before, strict=True)",
    "axes = zip(large, small, taps, strides, dilations, [0] * len(taps), strict=True)",
)

_cuts = In("fusion/cuts.py", "test_fusion.py")
_cuts.broken(
    "fusion-pairs-only",
    "groups of more than two layers are never tried",
    "for start in range(stop - 2, -1, -1):",
    "for start in range(stop - 2, max(-1, stop - 3), -1):",
)

_caches = In("fusion/caches.py", "test_fusion_cache.py")
_caches.broken(
    "fusion-lru-one-tile",
    "an LRU cache is said to need room for one tile's data, not for two",
    "    steps = 2\n",
    "    steps = 1\n",
)

_residents = In("fusion/residents.py", "test_fusion_residency.py")
_residents.broken(
    "residency-freed-early",
    "a tensor leaves before its last reader has run",
    "if self.last[one] > at)",
    "if self.last[one] > at + 1)",
)
_residents.broken(
    "residency-sums-free",
    "what an output takes in costs nothing",
    "read.taken_bytes for read in flow.reads if read.producer not in resident",
    "read.taken_bytes for read in flow.reads if read.producer in resident",
)

FUSION = tuple(
    one
    for file in (
        _window,
        _extents,
        _rooms,
        _weights,
        _tiles,
        _graphs,
        _windows,
        _cuts,
        _caches,
        _residents,
    )
    for one in file.mutants
)
