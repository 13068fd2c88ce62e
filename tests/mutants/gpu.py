"""Mutants of kernels of GPUs: addresses, footprints, counts, traffic."""

from __future__ import annotations

from .mutant import In

_footprint_kernels = In("gpu/_footprint_kernels.py", "test_gpu_counting.py")
_footprint_kernels.broken(
    "footprint-off-counts",
    "positions that are off touch sectors",
    "if not reach.is_on[i, t]:\n                    continue\n                begin",
    "if not reach.is_on[i, 0]:\n                    continue\n                begin",
    "::test_footprints_are_those_of_a_literal_walk",
)
_footprint_kernels.broken(
    "footprint-rows-apart",
    "rows that meet in a sector are told apart",
    "            if end >= begin:",
    "            if end > begin:",
    "::test_footprints_are_those_of_a_literal_walk",
)
_addresses = In("gpu/addresses.py", "test_gpu_kernel.py")
_addresses.broken(
    "addresses-edge-inside",
    "points beyond a loop's extent count as inside",
    "is_inside = is_inside & (offset < loop.extent)",
    "is_inside = is_inside & (offset <= loop.extent)",
    "test_gpu_counting.py::test_requests_are_those_of_a_literal_walk",
)
_addresses.broken(
    "addresses-threads-y-first",
    "threads are numbered y fastest",
    "along = [number % sizes[0], number // sizes[0] % sizes[1],",
    "along = [number // sizes[1] % sizes[0], number % sizes[1],",
    "::test_time_loops_outside_threads_give_outputs_a_block_apart",
)
_addresses.broken(
    "addresses-time-loops-inside",
    "a loop just outside a place counts as inside it",
    'int(loop.kind == "time" and loop.position >= depth)',
    'int(loop.kind == "time" and loop.position > depth)',
    "::test_time_loops_outside_threads_give_outputs_a_block_apart",
)
_addresses.broken(
    "addresses-vector-steps",
    "vectors take the steps of single elements",
    "step=loop.step * many)",
    "step=loop.step)",
    "::test_vectors_are_loaded_at_once",
)
_addresses.broken(
    "addresses-trips-inside",
    "a place is come to as often as the loops inside it say",
    "for loop in self.kernel.time_loops if loop.position < depth)",
    "for loop in self.kernel.time_loops if loop.position >= depth)",
    "::test_a_tensor_waits_in_a_register_while_inner_loops_do_not_move_along_it",
)
_counting = In("gpu/counting.py", "test_gpu_kernel.py")
_counting.broken(
    "profile-partial-warps-always",
    "blocks of whole warps have partial ones too",
    "kernel.n_blocks if kernel.block_threads % gpu.warp_threads else 0",
    "kernel.n_blocks",
    "::test_partial_warps_and_barriers",
)
_counting.broken(
    "profile-warps-rounded-down",
    "a block's last warp that is not full does not count",
    "warps = -(-kernel.block_threads // gpu.warp_threads)",
    "warps = max(1, kernel.block_threads // gpu.warp_threads)",
    "::test_partial_warps_and_barriers",
)
_counting.broken(
    "profile-waves-of-one-block",
    "waves count one block at a time on a multiprocessor",
    "waves=kernel.n_blocks / (held.blocks * arch.compute.units)",
    "waves=kernel.n_blocks / arch.compute.units",
    "::test_waves_and_intensities_are_ratios_of_what_is_counted",
)
_counting.broken(
    "profile-barrier-once",
    "nobody waits before tiles are filled again",
    "total += trips * (1 if kernel.double_buffered or trips == 1 else 2)",
    "total += trips",
    "::test_partial_warps_and_barriers",
)
_counting.broken(
    "profile-barrier-inside",
    "loops inside the filling repeat its barriers",
    "math.prod(loop.trips for loop in kernel.time_loops if loop.position < place)",
    "math.prod(loop.trips for loop in kernel.time_loops if loop.position <= place)",
    "::test_partial_warps_and_barriers",
)
_counting.broken(
    "profile-reach-one-further",
    "a position that is the last of an axis counts as outside",
    "reach >= axis.count",
    "reach >= axis.count - 1",
    "test_gpu_presets.py::test_every_measured_kernel_is_counted_exactly",
)
_counting.broken(
    "profile-padding-macs",
    "points without an output count as work asked for",
    "    if not cut:\n        return kernel.problem.macs",
    "    if cut is not None:\n        return kernel.problem.macs",
    "test_gpu_presets.py::test_report_002_several_launches",
)
_counting.broken(
    "profile-vector-loads-each",
    "vector loads are counted element by element",
    "        // read.vector\n        * (held",
    "        * (held",
    "::test_vectors_are_loaded_at_once",
)
_counting.broken(
    "profile-intensity-reads-only",
    "the intensity at DRAM forgets what is written",
    '"DRAM": self.dram_read_bytes + self.dram_write_bytes',
    '"DRAM": self.dram_read_bytes',
    "::test_waves_and_intensities_are_ratios_of_what_is_counted",
)
_footprints = In("gpu/footprints.py", "test_gpu_counting.py")
_footprints.broken(
    "footprints-rest-once",
    "blocks that do not move along a tensor touch it once together",
    "    return rest * _separate(reaches,",
    "    return _separate(reaches,",
    "::test_footprints_are_those_of_a_literal_walk",
)
_footprints.broken(
    "footprints-offset-ignored",
    "a tensor begins at a sector, wherever it lies",
    "    begins[offset_bytes % sector // per_bin] = 1",
    "    begins[0] = 1",
    "::test_footprints_are_those_of_a_literal_walk",
)
_footprints.broken(
    "footprints-meeting-rows",
    "rows that meet in a sector count it twice",
    "            total -= int(after @ same)",
    "            total -= 0 * int(after @ same)",
    "::test_footprints_are_those_of_a_literal_walk",
)
_library_tiled = In("gpu/library/tiled.py", "test_library_tiled.py")
_library_tiled.broken(
    "tiled-written-unread",
    "the intensity at L2 forgets what is written",
    "flops / (self.l2_bytes_read + self.l2_bytes_written)",
    "flops / self.l2_bytes_read",
    "test_cli_kernel_tiled.py::test_table",
)
_library_tiled.broken(
    "tiled-guess-wins",
    "the guess of the registers overrides what is given",
    "tiling.registers or guess",
    "guess or tiling.registers",
    "::test_times_of_shapes_that_were_not_fitted_within_15_percent",
)
_library_tiled.broken(
    "tiled-vectors-of-columns",
    "vectors of A need aligned columns",
    "return product.k % _ALIGNMENT == 0, product.n % _ALIGNMENT == 0",
    "return product.n % _ALIGNMENT == 0, product.k % _ALIGNMENT == 0",
    "::test_times_of_shapes_that_were_not_fitted_within_15_percent",
)
_library_tiled.broken(
    "tiled-split-beyond",
    "sums may be split into more parts than terms",
    "    if tiling.split_k > product.k:",
    "    if tiling.split_k > 2 * product.k:",
    "::test_faults_are_named",
)
_library_tiled.broken(
    "tiled-launches-overlap",
    "launches overlap with the work",
    "overlapped(*together) + launches,",
    "max(overlapped(*together), launches),",
    "::test_times_of_shapes_that_were_not_fitted_within_15_percent",
)
_reads = In("gpu/reads.py", "test_gpu_kernel.py")
_reads.broken(
    "reads-outermost-of-dim",
    "a place named by a dimension is outside its loop",
    "            return position + 1\n",
    "            return position\n",
    "::test_partial_warps_and_barriers",
)
_reads.broken(
    "reads-default-zero-no",
    "places outside a tensor are not set to zero where nothing is said",
    'zero = options.get("zero", "yes")',
    'zero = options.get("zero", "no")',
    "::test_places_are_read_from_text",
)
_reads.broken(
    "reads-pitch-anywhere",
    "a pitch is taken where there is no tile",
    'for name, given in (("at", read.at), ("pitch", read.pitch)):',
    'for name, given in (("at", read.at),):',
    "::test_what_is_wrong_is_said",
)
_reads.broken(
    "reads-held-vectors",
    "vectors are loaded into what is held",
    "    if read.vector != 1 and read.held is not None:",
    "    if read.vector != 1 and read.held == 99:",
    "::test_what_is_wrong_is_said",
)
_reads.broken(
    "reads-any-vector",
    "vectors of any length are loaded",
    "    if read.vector not in (1, 2, 4, 8, 16):",
    "    if read.vector < 1:",
    "::test_what_is_wrong_is_said",
)
_traffic = In("gpu/traffic.py", "test_gpu_kernel.py")
_traffic.broken(
    "traffic-sharers-inverted",
    "the more units share, the fewer requests are merged",
    "merged = gpu.merged_share * filled * (1 - 1 / sharers)",
    "merged = gpu.merged_share * filled / sharers",
    "test_validation.py::test_kernels_are_predicted",
)
_traffic.broken(
    "traffic-slowest-first",
    "the grid is launched slowest index first",
    "        for axis in (2, 1, 0)\n",
    "        for axis in (0, 1, 2)\n",
    "::test_a_panel_is_read_again_where_more_than_l2_passes_between",
)
_traffic.broken(
    "traffic-room-unbounded",
    "what passes between two uses always fits L2",
    "if blocks <= wave or _passing(geometry, inside) <= room:",
    "if blocks <= wave or room:",
    "::test_a_panel_is_read_again_where_more_than_l2_passes_between",
)
_traffic.broken(
    "traffic-window-overlap",
    "windows of neighbours share nothing",
    "    return together / alone if alone else 1.0",
    "    return 1.0",
    "test_validation.py::test_kernels_are_predicted",
)
_traffic.broken(
    "traffic-read-twice",
    "a panel that is read again is read twice, however often",
    "        again *= max(1.0, trips / max(1.0, wave / blocks))",
    "        again *= 2.0",
    "::test_a_panel_is_read_again_where_more_than_l2_passes_between",
)

GPU = (
    *_footprint_kernels.mutants,
    *_addresses.mutants,
    *_counting.mutants,
    *_footprints.mutants,
    *_library_tiled.mutants,
    *_reads.mutants,
    *_traffic.mutants,
)
