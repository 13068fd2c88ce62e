"""Mutants of kernels of GPUs: addresses, footprints, counts, traffic."""

from __future__ import annotations

from .mutant import In

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
    "trips *= loop.trips if loop.position < place else 1",
    "trips *= loop.trips if loop.position <= place else 1",
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

GPU = _counting.mutants
