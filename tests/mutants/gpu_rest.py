"""More mutants of kernels of GPUs: ordinary lanes, accesses, library products."""

from __future__ import annotations

from .mutant import In

_simt = In("gpu/choice/simt.py", "test_choice_simt.py")
_simt.broken(
    "simt-unrolled-anyhow",
    "terms at a time need not be a multiple of those that are unrolled",
    'at["KWG"] % at["KWI"] != 0',
    'at["KWG"] % at["KWI"] < 0',
    "::test_what_does_not_divide_cannot_run",
)
_simt.broken(
    "simt-both-operands-copied",
    "both operands take shared memory if one of them is copied",
    'shared = (at["SA"] * at["MWG"] + at["SB"] * at["NWG"])',
    'shared = at["SA"] * (at["MWG"] + at["NWG"])',
    "::test_shared_memory_and_residence_are_those_of_the_source",
)
_simt.broken(
    "simt-wide-loads-at-once",
    "loads of four words are served to all threads at once",
    "    at_a_time = len(words) // vector\n",
    "    at_a_time = len(words)\n",
    "::test_bank_conflicts_are_counted_as_by_hand",
)
_simt.broken(
    "simt-equal-words-conflict",
    "threads that ask for the same word wait for one another",
    "group = {word + i for word in words[first : first + at_a_time] for i in range(vector)}",
    "group = [word + i for word in words[first : first + at_a_time] for i in range(vector)]",
    "::test_bank_conflicts_are_counted_as_by_hand",
)
_simt.broken(
    "simt-padding-of-the-row",
    "padding sets each row of a tile at the beginning of the banks",
    '((at["block_size_x"] - row) % _BANKS)',
    "(-row % _BANKS)",
    "::test_shared_memory_and_residence_are_those_of_the_source",
)
_simt.broken(
    "simt-halo-one-wider",
    "a filter's tile has one more column than its windows reach",
    'at["tile_size_x"] + layer.s - 1\n',
    'at["tile_size_x"] + layer.s\n',
    "::test_shared_memory_and_residence_are_those_of_the_source",
)

_WALK = "test_gpu_counting.py::test_requests_are_those_of_a_literal_walk"
_SECTORS = "test_gpu_counting.py::test_footprints_are_those_of_a_literal_walk"

_counts = In("gpu/_count_kernels.py", "test_gpu_presets.py", "test_gpu_kernel.py")
_counts.broken(
    "gpu-lanes-off-count",
    "lanes that are off count as lanes at work",
    "            out[LANES] += active * total\n",
    "            out[LANES] += present * total\n",
    _WALK,
)
_counts.broken(
    "gpu-short-warps-are-partial",
    "a warp with fewer threads than others counts as one that leaves some out",
    "            if active < present:\n",
    "            if active < wide:\n",
    "test_gpu_kernel.py::test_partial_warps_and_barriers",
    _WALK,
)
_counts.broken(
    "gpu-word-served-often",
    "a word of a bank is served to each lane by itself",
    "range(max(begin // bank, done + 1), end + 1)",
    "range(begin // bank, end + 1)",
    _WALK,
)
_counts.broken(
    "gpu-beginnings-not-added",
    "of two groups of loops the later beginning counts",
    "out[i * m + j, (a + b) % bins] +=",
    "out[i * m + j, max(a, b)] +=",
    _WALK,
)
_counts.broken(
    "gpu-useful-bytes-twice",
    "bytes that several lanes ask for are useful several times",
    "                if place[i] != place[i - 1]:\n",
    "                if place[i] >= place[i - 1]:\n",
    _WALK,
)

_sectors = In("gpu/_footprint_kernels.py", "test_gpu_presets.py", "test_gpu_kernel.py")
_sectors.broken(
    "footprint-neighbours-share-a-unit",
    "blocks that follow each other run on one unit",
    "block = start + unit + k * units",
    "block = start + unit * resident + k",
)
_sectors.broken(
    "footprint-rows-of-the-grid",
    "rows of a grid are as long as it is high",
    "keys_y[block // nx % ny]",
    "keys_y[block // ny % ny]",
)
_sectors.broken(
    "footprint-together-as-alone",
    "blocks of a unit bring in what another has brought",
    "                    if seen < plane:\n",
    "                    if seen != mine:\n",
)

_footprints = In("gpu/footprints.py", "test_gpu_counting.py")
_footprints.broken(
    "footprints-shared-sectors-twice",
    "a sector in which two rows meet counts for both",
    "total -= int(after @ same)",
    "total -= 0 * int(after @ same)",
    _SECTORS,
)
_footprints.broken(
    "footprints-outer-axes-once",
    "axes of one position count once, however many blocks touch them",
    "many = math.prod(int(one.is_on.any(axis=1).sum()) for one in fixed)",
    "many = 1",
    "::test_a_single_row_counts_for_every_block_that_touches_it",
)

_kernel = In("gpu/kernel.py", "test_gpu_kernel.py")
_kernel.broken(
    "gpu-one-buffer-of-two",
    "tiles that are double buffered take their room once",
    "return total * (2 if self.double_buffered else 1)",
    "return total",
    "test_gpu_kernel.py",
    "test_gpu_presets.py",
)
_kernel.broken(
    "gpu-pitch-ignored",
    "a tile's pitch is its width",
    "(max(inner, read.pitch or 0) if is_row else inner)",
    "inner",
    "::test_columns_of_a_tile_meet_in_one_bank_unless_padded",
)
_kernel.broken(
    "gpu-last-loop-of-an-axis",
    "of several loops of an axis of the grid the last one counts",
    "sizes[loop.axis] *= loop.trips",
    "sizes[loop.axis] = loop.trips",
    "test_gpu_kernel.py",
    "test_gpu_presets.py",
)
_kernel.broken(
    "gpu-threads-share-sums",
    "threads may sum side by side",
    'if loop.kind == "thread" and loop.dim in sums:',
    'if loop.kind == "block" and loop.dim in sums:',
    "::test_what_is_wrong_is_said",
)

_classes = In("gpu/classes.py", "test_gpu_kernel.py", "test_gpu_presets.py")
_classes.broken(
    "gpu-held-elements-again",
    "of what inner loops touch each access counts, held or not",
    "        total *= len(np.unique(axis.moved(inner)))\n",
    "        total *= axis.moved(inner).size\n",
    "::test_a_held_tile_is_loaded_once_an_element",
)
_classes.broken(
    "gpu-constants-are-global",
    "constant memory is read as global memory is",
    '"constant": CONSTANT,',
    '"constant": GLOBAL,',
    "::test_constant_memory_serves_a_warp_at_once_where_it_asks_for_one_word",
)
_classes.broken(
    "gpu-rows-go-to-columns",
    "rows of a tile go to thread_x, columns to thread_y",
    "[at if at < 2 else -1 for at in reversed(range(len(shape)))]",
    "[at if at < 2 else -1 for at in range(len(shape))]",
    "test_gpu_kernel.py",
    "test_gpu_presets.py",
)

GPU_REST = tuple(
    mutant
    for file in (_simt, _counts, _sectors, _footprints, _kernel, _classes)
    for mutant in file.mutants
)
