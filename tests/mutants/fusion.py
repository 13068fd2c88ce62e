"""Mutants of fusion: reach of windows, what tiles hold, cuts, what stays."""

from __future__ import annotations

from .mutant import In

_window = In("network/node.py", "test_fusion.py")
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
    "        np.add.reduceat(counts, starts),\n        np.maximum",
    "        np.maximum.reduceat(counts, starts) * np.add.reduceat(counts > 0, starts),\n"
    "        np.maximum",
)
_extents.broken(
    "fusion-kept-rows-dropped",
    "rows that later rows of tiles read are not in the buffer behind the tile",
    "rows.append((n_work, n_after, n_before))",
    "rows.append((n_work, 0, n_before))",
)

_rooms = In("fusion/rooms.py", "test_fusion.py")
_rooms.broken(
    "fusion-last-output-whole",
    "the last output does not pass slice by slice",
    "found[at, :, n, _WORK] = 1",
    "found[at, :, n, _WORK] = many[n]",
)
_rooms.broken(
    "fusion-input-read-once",
    "an input that is not kept is counted once all the same",
    "        read = np.outer(rows[0].total, columns[0].total)",
    "        read = _positions(stages, 0, once=True)",
)

_kernels = In("fusion/_held_kernels.py", "test_fusion.py")
_kernels.broken(
    "fusion-most-of-different-tiles",
    "the most of a tile's input is added to the most that another tile makes",
    "                one, other = _factors(outer, times, ends[at, end])\n",
    "                one, other = _factors(outer, times, ends[at, end])\n"
    "                for k in range(one.shape[1]):\n"
    "                    one[:, k] = np.max(one[:, k])\n",
)

_weights = In("fusion/weights.py", "test_fusion.py")
_weights.broken(
    "fusion-no-room-for-streams",
    "weights that are fetched again take no capacity",
    "np.maximum(live + elements - peak, 0)",
    "np.maximum(live - peak, 0)",
)
_weights.broken(
    "fusion-element-of-any-layer",
    "an element of weights takes capacity while layers work that have none passing",
    "np.maximum(live + elements - peak, 0) * (elements > 0)",
    "np.maximum(peak + elements - peak, 0) * (elements > 0)",
)

_tiles = In("fusion/tiles.py", "test_fusion.py")
_tiles.broken(
    "fusion-least-room-first",
    "of equal tiles those with the least room are taken, however many there are",
    "[moved, macs, n_tiles, needed]",
    "[moved, macs, needed, n_tiles]",
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
        _kernels,
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
