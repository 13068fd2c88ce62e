"""How long the blocks of a mapped kernel take: what an SM can issue, and what a thread waits for.

Blocks that an SM holds together make a wave.  A wave takes as long as the busiest of
its resources (instructions to start, L1 with shared memory, multiply-add and integer
lanes) and the chain of latencies that one thread waits for, joined as the sides of a
right angle: either hides most of the other where it is much longer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from loopsched.gpu.counting import AccessCount, Profile
from loopsched.gpu.instructions import Instructions
from loopsched.gpu.kernel import Kernel
from loopsched.machines.arch import Arch
from loopsched.machines.gpu_limits import Gpu
from loopsched.problems.footprint import tensor_bytes

# Loops of unknown trips are unrolled by so many: loads of that many iterations overlap.
UNROLL = 4
# A barrier with one warp, and each further one: measured on an H200, in cycles.
BARRIER = 13.0
BARRIER_WARP = 2.0
# Of the instructions that go with loads and loops, so many use the integer lanes and the
# multiply-add lanes (counters of 77 kernels on an H200); the rest are branches and the like.
ON_INTEGER_LANES = 0.5
ON_MULTIPLY_LANES = 0.3


def waves(
    kernel: Kernel, found: Profile, work: Instructions, arch: Arch, *, issue: float, is_cold: bool
) -> list[tuple[int, dict[str, float]]]:
    """List the waves of a kernel: how many are alike, and the cycles of one by what they go into.

    Those are each resource of the busiest SM alone, and the latencies that one thread waits for.

    Parameters
    ----------
    kernel : Kernel
    found : Profile
    work : Instructions
    arch : Arch
    issue : float
        Share of the schedulers' instructions that is reached.
    is_cold : bool
        Whether the first wave finds nothing in L2.
    """
    held = found.occupancy.blocks
    units = arch.compute.units
    full, rest = divmod(found.n_blocks, held * units)
    shapes: list[tuple[int, int, bool]] = []
    if full:
        shapes.append((1, held, is_cold))
        shapes.append((full - 1, held, False))
    if rest:
        shapes.append((1, -(-rest // units), is_cold and not full))
    return [
        (
            many,
            _pipes(found, work, arch, blocks, issue)
            | {"latency": _chain(kernel, found, arch, cold)},
        )
        for many, blocks, cold in shapes
        if many
    ]


def together(wave: Mapping[str, float]) -> float:
    """Cycles of a wave whose parts overlap.

    Examples
    --------
    >>> together({"issue": 3.0, "L1": 1.0, "latency": 4.0})
    5.0
    """
    return math.hypot(max(of for name, of in wave.items() if name != "latency"), wave["latency"])


def _pipes(
    found: Profile, work: Instructions, arch: Arch, blocks: int, issue: float
) -> dict[str, float]:
    gpu = arch.kernel_limits
    share = blocks / found.n_blocks
    lanes = arch.compute.rate("fp32")
    overhead_lanes = gpu.warp_threads * work.overhead
    loads = [one for one in found.accesses if one.is_global]
    sectors = sum(one.sectors for one in loads if one.op == "load")
    lines = sum(one.lines for one in loads if one.op == "load")
    stored = sum(one.sectors for one in loads if one.op == "store")
    passes = sum(one.wavefronts for one in found.accesses if one.space == "shared")
    l1 = (
        max(
            (sectors + stored) * gpu.sector_bytes / gpu.l1_bytes_per_cycle,
            lines / gpu.l1_lines_per_cycle,
        )
        + passes * gpu.banks * gpu.bank_bytes / gpu.shared_bytes_per_cycle
    )
    multiplies = found.fma_thread_instructions + ON_MULTIPLY_LANES * overhead_lanes
    return {
        "issue": share * work.total / gpu.schedulers / issue,
        "L1": share * l1,
        "multiply-add": share * multiplies / lanes,
        "integer": share * ON_INTEGER_LANES * overhead_lanes / gpu.int_lanes,
    }


def _chain(kernel: Kernel, found: Profile, arch: Arch, is_cold: bool) -> float:
    """Add up what one thread waits for, one thing after another."""
    gpu = arch.kernel_limits
    total = found.syncs * (BARRIER + BARRIER_WARP * -(-kernel.block_threads // gpu.warp_threads))
    fills = [one for one in found.accesses if one.stage == "fill" and one.op == "load"]
    for place in {kernel.read(one.tensor).position for one in fills}:
        together = [one for one in fills if kernel.read(one.tensor).position == place]
        total += max(_fill_wait(kernel, one, found, gpu, is_cold) for one in together)
    total += _sum_wait(kernel, found, gpu)
    for one in found.accesses:
        if one.stage == "compute" and one.is_global:
            total += _miss_wait(kernel, one, found, gpu, is_cold)
        elif one.space == "constant":
            total += _constant_wait(kernel, one, gpu)
    return total


def _fill_wait(kernel: Kernel, one: AccessCount, found: Profile, gpu: Gpu, is_cold: bool) -> float:
    """Rounds of a filling follow one another; the first of a row finds new lines."""
    missed = _missed_share(one, found)
    near = gpu.l1_latency + missed * (gpu.l2_latency - gpu.l1_latency)
    if not is_cold:
        return one.trips * one.rounds * near
    first = gpu.l1_latency + missed * (gpu.dram_latency - gpu.l1_latency)
    new = min(one.rounds, _row_rounds(kernel, one))
    return one.trips * (new * first + (one.rounds - new) * near)


def _row_rounds(kernel: Kernel, one: AccessCount) -> int:
    """Rounds of a filling that begin rows of the tile."""
    read = kernel.read(one.tensor)
    if read.loaders == "linear":
        return one.rounds
    tensor = kernel.problem.tensor(one.tensor)
    shape, _ = kernel.tile(tensor)
    rows = shape[-2] if len(shape) > 1 else 1
    return -(-rows // kernel.block[1])


def _missed_share(one: AccessCount, found: Profile) -> float:
    """Share of an access's requests that bring something new to its block.

    What other blocks of the SM bring at the same time is waited for all the same.
    """
    if not one.sectors:
        return 0.0
    through = sum(
        other.sectors
        for other in found.accesses
        if other.tensor == one.tensor and other.op == "load" and other.is_global
    )
    fresh = next(
        (part.block_sectors for part in found.traffic.tensors if part.tensor == one.tensor), 0
    )
    hit = max(0.0, 1 - fresh / through) if through else 1.0
    return float(1 - hit ** (one.sectors / max(1, one.requests)))


def _sum_wait(kernel: Kernel, found: Profile, gpu: Gpu) -> float:
    """Multiply-adds into one output follow each other; loads overlap as far as unrolled."""
    threads = kernel.n_blocks * kernel.block_threads
    iterations = found.fma_thread_instructions / threads / kernel.accumulators
    latency = {"shared": gpu.shared_latency, "constant": gpu.constant_latency}
    waits = [
        latency.get(one.space, gpu.l1_latency)
        for one in found.accesses
        if one.stage == "compute" and one.op == "load"
    ]
    return iterations * (gpu.fma_latency + max(waits, default=0.0) / UNROLL)


def _miss_wait(kernel: Kernel, one: AccessCount, found: Profile, gpu: Gpu, is_cold: bool) -> float:
    """Each new sector of data that all threads read together makes them all wait."""
    part = next((part for part in found.traffic.tensors if part.tensor == one.tensor), None)
    if part is None or not one.requests:
        return 0.0
    fresh = part.block_sectors / found.n_blocks / max(1.0, one.sectors / one.requests)
    tensor = kernel.problem.tensor(one.tensor)
    by_thread = {loop.dim for loop in kernel.loops if loop.kind == "thread" and loop.trips > 1}
    if any(tensor.is_indexed_by(dim) for dim in by_thread):
        fresh /= -(-kernel.block_threads // gpu.warp_threads)
    return fresh * (gpu.dram_latency if is_cold else gpu.l2_latency)


def _constant_wait(kernel: Kernel, one: AccessCount, gpu: Gpu) -> float:
    """Constants that overflow their first cache come from the next, one after another."""
    tensor = kernel.problem.tensor(one.tensor)
    used = min(
        kernel.region_elems(tensor, 0) * tensor.element_bytes, tensor_bytes(kernel.problem, tensor)
    )
    if used <= gpu.constant_cache_bytes:
        return 0.0
    return one.trips * gpu.constant_far_latency
