"""More mutants of layers run together: cuts, tiles, capacities, sweeps, resident tensors."""

from __future__ import annotations

from .mutant import In

_FITS = "::test_bad_input_is_said"
_TIMES = "::test_times_equal_brute_force"
_BEST = "::test_the_best_tile_equals_a_literal_walk_of_all_tiles"
_BRUTE = "::test_the_programme_equals_brute_force_over_all_partitions_and_tiles"

_cuts = In("fusion/cuts.py", "test_fusion.py")
_cuts.broken(
    "fusion-floor-twice",
    "groups are passed over by twice what they move at least",
    "        least = compulsory_bytes(stages)\n        pace",
    "        least = 2 * compulsory_bytes(stages)\n        pace",
    _BRUTE,
)
_cuts.broken(
    "fusion-counts-lost",
    "a block that occurs often counts once",
    "[replace(group, count=chain.count) for group in cuts.best()]",
    "[replace(group, count=1) for group in cuts.best()]",
    "::test_a_plan_counts_a_block_as_often_as_it_occurs",
)
_cuts.broken(
    "fusion-time-of-both",
    "arithmetic and memory wait for each other",
    "return max(macs / pace.macs_per_s, dram_bytes / pace.bytes_per_s)",
    "return macs / pace.macs_per_s + dram_bytes / pace.bytes_per_s",
    _TIMES,
)
_cuts.broken(
    "fusion-one-layer-fewer",
    "groups have one layer less than they may",
    "stop - start > self.max_layers:",
    "stop - start >= self.max_layers:",
    "::test_groups_have_as_many_layers_as_they_may",
)
_cuts.broken(
    "fusion-time-of-no-machine",
    "least time is looked for without a machine",
    'if objective == "time" and arch is None:',
    'if objective != "time" and arch is None and not halos:',
    _FITS,
)

_tiles = In("fusion/tiles.py", "test_fusion.py")
_tiles.broken(
    "fusion-resident-weights-reload",
    "weights that stay are loaded for each tile all the same",
    "moved = resident + (all_bytes - resident) * n_tiles + feature_maps",
    "moved = resident + all_bytes * n_tiles + feature_maps",
    _BRUTE,
    _BEST,
)
_tiles.broken(
    "fusion-edge-is-no-tile",
    "a tile at the edge is none of its own",
    "np.outer(-(-high // np.arange(1, high + 1)),",
    "np.outer(high // np.arange(1, high + 1),",
    _BRUTE,
    _BEST,
)
_tiles.broken(
    "fusion-images-share-room",
    "tiles of several images take the room of one",
    "        live = images * sizes.live\n",
    "        live = sizes.live\n",
    _BRUTE,
    _BEST,
)
_tiles.broken(
    "fusion-macs-of-one-image",
    "multiply-accumulates are those of one image",
    "    macs = last.batch * sizes.macs\n",
    "    macs = 1 * sizes.macs\n",
    "::test_images_of_a_batch_are_worked_out_each",
)

_rooms = In("fusion/rooms.py", "test_fusion.py")
_rooms.broken(
    "fusion-input-never-kept",
    "a group's input is not kept where it is said to be",
    "if retains and (way.keeps_input or not is_input):",
    "if retains and not is_input:",
    _BRUTE,
    _BEST,
)
_rooms.broken(
    "fusion-halos-made-once",
    "halos that are made again cost nothing",
    "_positions(stages, at + 1, once=retains) * stage.macs",
    "_positions(stages, at + 1, once=True) * stage.macs",
    _BRUTE,
    _BEST,
)
_rooms.broken(
    "fusion-input-whole",
    "the group's input does not pass channel by channel",
    "        if at == 0 or by_channel[at]:\n",
    "        if by_channel[at]:\n",
    _BRUTE,
    _BEST,
)
_rooms.broken(
    "fusion-buffers-of-one-image",
    "buffers hold one image of a tile",
    "found.append(tile[0] * int(held.max()))",
    "found.append(int(held.max()))",
    "test_fusion_cache.py::test_buffers_hold_all_images_of_a_tile",
)

_extents = In("fusion/extents.py", "test_fusion.py")
_extents.broken(
    "fusion-made-again",
    "a sweep that keeps halos makes them again",
    "found.append(Piece(read, read & ~before))",
    "found.append(Piece(read, read))",
    ">>> sweep",
)
_extents.broken(
    "fusion-ahead-counts-all",
    "what is there already counts as being ahead",
    "            ahead = (later[at] & ~old).bit_count()\n",
    "            ahead = later[at].bit_count()\n",
    _BEST,
    _BRUTE,
)
_extents.broken(
    "fusion-nothing-leaves",
    "what no later tile reads is there while a tile is at work",
    "            work = before | piece.new\n",
    "            work = old | piece.new\n",
    _BEST,
    _BRUTE,
)

_residents = In("fusion/residents.py", "test_fusion_residency.py")
_residents.broken(
    "residency-made-in-memory",
    "a tensor that stays is written to memory all the same",
    "        if at in resident:\n            own.append",
    "        if at not in self.last:\n            own.append",
)
_residents.broken(
    "residency-cut-is-exact",
    "a choice of some sets only is said to be exact",
    "                is_exact = False\n",
    "                is_exact = True\n",
)
_residents.broken(
    "residency-bound-of-the-worst",
    "the bound on other choices adds up the worst of each layer",
    "            total += flow.count * min(options)\n",
    "            total += flow.count * max(options)\n",
)

FUSION_REST = tuple(
    mutant for file in (_cuts, _tiles, _rooms, _extents, _residents) for mutant in file.mutants
)
