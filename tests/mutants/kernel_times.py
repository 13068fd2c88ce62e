"""Mutants of the times of mapped kernels: waves, pipes, chains of latencies, instructions."""

from __future__ import annotations

from .mutant import In

_timing = In("gpu/timing.py", "test_gpu_estimate.py")
_timing.broken(
    "kernel-last-wave-forgotten",
    "blocks that do not fill a wave of a mapped kernel take no time",
    "    if rest:\n        shapes.append(",
    "    if rest and not full:\n        shapes.append(",
)
_timing.broken(
    "every-wave-is-cold",
    "later waves wait for DRAM as the first does",
    "shapes.append((full - 1, held, False))",
    "shapes.append((full - 1, held, is_cold))",
)
_timing.broken(
    "chain-hides-pipes",
    "of an SM's resources and the chain of latencies only the longer counts",
    "return math.hypot(",
    "return max(",
)
_timing.broken(
    "one-scheduler",
    "all warps of an SM are started by one scheduler",
    "share * work.total / gpu.schedulers / issue",
    "share * work.total / issue",
)
_timing.broken(
    "stores-beside-l1",
    "what is stored does not pass L1",
    "(sectors + stored) * gpu.sector_bytes",
    "sectors * gpu.sector_bytes",
)
_timing.broken(
    "barriers-for-free",
    "nobody waits at barriers",
    "total = found.syncs * (",
    "total = 0 * found.syncs * (",
)
_timing.broken(
    "fillings-overlap",
    "rounds of a filling come all at once",
    "return one.trips * one.rounds * near",
    "return one.trips * near",
)
_timing.broken(
    "sums-without-latency",
    "multiply-adds into one sum do not wait for each other",
    "iterations * (gpu.fma_latency + ",
    "iterations * (0 * gpu.fma_latency + ",
)
_timing.broken(
    "loads-never-overlap",
    "loads of unrolled iterations come one after another",
    "max(waits, default=0.0) / UNROLL",
    "max(waits, default=0.0)",
)
_timing.broken(
    "constants-always-near",
    "constants that overflow their cache are as near as others",
    "if used <= gpu.constant_cache_bytes:",
    "if used > 0:",
)

_estimate = In("gpu/estimate.py", "test_gpu_estimate.py")
_estimate.broken(
    "skipped-padding-in-the-bound",
    "a kernel's bound counts multiplications with padding that it skips",
    "min(kernel.problem.macs, found.fma_thread_instructions)",
    "kernel.problem.macs",
)
_estimate.broken(
    "steps-once",
    "kernels that run many times take the time of one run",
    "sum(many * getattr(one, field) for one, many in said)",
    "sum(getattr(one, field) for one, many in said)",
)
_estimate.broken(
    "steps-cold",
    "a kernel that is started again and again finds L2 empty each time",
    'return caches if launches == 1 else "warm"',
    "return caches",
)
_estimate.broken(
    "clock-ignored",
    "a clock that is given changes nothing",
    "clock = arch.compute.clock_hz if clock_hz is None else clock_hz",
    "clock = arch.compute.clock_hz",
)
_estimate.broken(
    "l2-beside-everything",
    "what L2 delivers takes no time",
    "l2_s = sectors * gpu.sector_bytes / inner.bandwidth_bytes_per_s",
    "l2_s = 0.0",
)
_estimate.broken(
    "warm-means-no-dram",
    "a launch that is repeated moves nothing from DRAM, however large its data",
    'if caches == "warm" and problem_bytes(kernel.problem) <= (outer.usable_bytes or 0):',
    'if caches == "warm":',
)

_instructions = In("gpu/instructions.py", "test_gpu_estimate.py")
_instructions.broken(
    "partial-warps-lost",
    "a warp that is filled in part executes nothing",
    "warps = kernel.n_blocks * -(-kernel.block_threads // warp_threads)",
    "warps = kernel.n_blocks * (kernel.block_threads // warp_threads)",
)
_instructions.broken(
    "divisions-everywhere",
    "every filling takes divisions, not only that of an unrolled image",
    "if isinstance(kernel.layout(one.tensor), DigitLayout)]",
    "if one]",
)
_instructions.broken(
    "inner-loop-starts-once-a-sum",
    "the innermost loop starts once for each output",
    "        sums = sums[-1:]\n",
    "        sums = sums[:]\n",
)
_instructions.broken(
    "fillings-unrolled-away",
    "a loop around a filling is unrolled as those inside",
    "if loop.position >= max(filled, default=0)]",
    "if loop]",
)

KERNEL_TIMES = (*_timing.mutants, *_estimate.mutants, *_instructions.mutants)
