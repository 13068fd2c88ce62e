"""What a GPU grants a kernel: residence limits, rates inside an SM, latencies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from loopsched.base.errors import ArchError
from loopsched.machines.keys import Key, Sources, key_faults


@dataclass(frozen=True, slots=True)
class Gpu:
    """Limits, rates and latencies of a GPU, for kernels mapped onto it.

    Everything counts for one SM unless it says otherwise.  Latencies are in
    cycles of the SM's clock, without contention.  An ArchError names all values
    that cannot be.

    Parameters
    ----------
    schedulers : int
        Warp schedulers; each starts at most one instruction of a warp a cycle.
    max_threads, max_blocks : int
        Resident threads and blocks.
    registers : int
        Of 32 bits.
    shared_bytes : int, bytes
        Most that can be shared memory.
    max_block_shared_bytes : int, bytes
        Most that one block may ask for.
    l1_bytes : int, bytes
        L1 cache, together with shared memory where they are one.
    int_lanes : int
        32-bit integer additions a cycle.
    l1_bytes_per_cycle, shared_bytes_per_cycle : int or float
        What loads can take from L1 and from shared memory.
    fma_latency, shared_latency, l1_latency, l2_latency, dram_latency : int or float, cycles
        From one dependent instruction to the next: a multiply-add, a load that
        hits shared memory, L1, L2, and one that goes to DRAM.
    constant_latency, constant_far_latency : int or float, cycles
        Of a broadcast from the constant cache, and from the one behind it.
    launch_s : float, seconds
        From the end of a kernel to the start of the next in a stream.
    dram_efficiency : float
        Share of the data sheet's DRAM bandwidth that streaming reads achieve.
    max_block_threads, max_thread_registers, warp_threads : int
    register_unit : int
        A warp's registers come in multiples of it.
    warp_unit : int
        Registers go to warps of a block in groups of so many.
    shared_unit_bytes, system_shared_bytes : int, bytes
        Shared memory comes in multiples of the one; the system takes the other
        of each block.
    constant_cache_bytes : int, bytes
        Of the first constant cache.
    l1_lines_per_cycle : int
        Lines that L1 can look up a cycle.
    merged_share : float
        Of the requests that several SMs make for the same whole lines at the
        same time, those that L2 does not see.  0: not known, so it sees them all.
    l2_efficiency : float
        Share of the file's L2 bandwidth that tiled kernels achieve.  0: not
        known, so what was fitted for another GPU.
    power_w : float, watts
        Most that the card draws for long.  0: not known.
    tensor_issue : {'warp', 'group'}
        Whether tensor cores take their instructions from single warps, or from
        groups of four that read operands out of shared memory.
    tensor_memory_bytes : int, bytes
        Of an SM, for the sums of tensor cores alone.  0: those are in registers.
    library : {'volta', 'maxwell', 'ampere'}
        Generation of libraries: the tiles that products in fp32 have, and from
        Ampere on kernels for tensor cores that copy asynchronously.
    measured_as : {'none', 'v100', 'titan_v', 'h200', 'h100', 'a100'}
        GPU whose measured times the spreads of library estimates are of.
    banks, bank_bytes, sector_bytes, line_bytes, constant_bytes : int
    sources : tuple of (str, str)
        Where each number comes from: key of the file, document.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> gpu = load_arch("titan_v").gpu
    >>> gpu.max_threads, gpu.max_warps, gpu.shared_bytes
    (2048, 64, 98304)
    """

    schedulers: int
    max_threads: int
    max_blocks: int
    registers: int
    shared_bytes: int
    max_block_shared_bytes: int
    l1_bytes: int
    int_lanes: int
    l1_bytes_per_cycle: float
    shared_bytes_per_cycle: float
    fma_latency: float
    shared_latency: float
    l1_latency: float
    l2_latency: float
    dram_latency: float
    constant_latency: float
    constant_far_latency: float
    launch_s: float
    dram_efficiency: float
    max_block_threads: int = 1024
    max_thread_registers: int = 255
    warp_threads: int = 32
    register_unit: int = 256
    warp_unit: int = 4
    shared_unit_bytes: int = 256
    system_shared_bytes: int = 0
    banks: int = 32
    bank_bytes: int = 4
    sector_bytes: int = 32
    line_bytes: int = 128
    constant_bytes: int = 65536
    constant_cache_bytes: int = 2048
    l1_lines_per_cycle: int = 4
    merged_share: float = 0.0
    l2_efficiency: float = 0.0
    power_w: float = 0.0
    tensor_issue: str = "warp"
    tensor_memory_bytes: int = 0
    library: str = "volta"
    measured_as: str = "none"
    sources: Sources = ()

    def __post_init__(self) -> None:
        ArchError.refuse("gpu", key_faults(self, GPU_KEYS))

    @property
    def max_warps(self) -> int:
        """Resident warps of an SM."""
        return self.max_threads // self.warp_threads


_MEASURED = ("none", "v100", "titan_v", "h200", "h100", "a100")
_LATENCIES = ("fma", "shared", "l1", "l2", "dram", "constant", "constant_far")
_varied = partial(Key, required=True, along=())
_count, _bytes = partial(Key, kind="count"), partial(Key, kind="bytes")
GPU_KEYS = (
    _count("schedulers", "schedulers", required=True),
    _varied("threads", "max_threads", "count"),
    _varied("blocks", "max_blocks", "count"),
    _count("block_threads", "max_block_threads"),
    _count("warp", "warp_threads"),
    _varied("registers", "registers", "count"),
    _count("thread_registers", "max_thread_registers"),
    _count("register_unit", "register_unit"),
    _count("warp_unit", "warp_unit"),
    _varied("shared", "shared_bytes", "bytes", along=("block_shared", "l1")),
    _bytes("block_shared", "max_block_shared_bytes", required=True),
    _bytes("shared_unit", "shared_unit_bytes"),
    _bytes("system_shared", "system_shared_bytes", least=0),
    _bytes("l1", "l1_bytes", required=True),
    _bytes("constant", "constant_bytes"),
    _bytes("constant_cache", "constant_cache_bytes"),
    _count("banks", "banks"),
    _bytes("bank", "bank_bytes"),
    _bytes("sector", "sector_bytes"),
    _bytes("line", "line_bytes"),
    _varied("int_lanes", "int_lanes", "count"),
    _varied("l1_bandwidth", "l1_bytes_per_cycle", "bandwidth_per_cycle"),
    _count("l1_lines", "l1_lines_per_cycle"),
    _varied("shared_bandwidth", "shared_bytes_per_cycle", "bandwidth_per_cycle"),
    *(_varied(f"{one}_latency", f"{one}_latency", "cycles") for one in _LATENCIES),
    _varied("launch", "launch_s", "time"),
    _varied("dram_efficiency", "dram_efficiency", "share"),
    Key("merged_share", "merged_share", "share", least=0),
    Key("l2_efficiency", "l2_efficiency", "share", least=0),
    Key("power", "power_w", "power", least=0, is_later=True),
    Key("tensor_issue", "tensor_issue", "choice", words=("warp", "group"), is_later=True),
    _bytes("tensor_memory", "tensor_memory_bytes", least=0, is_later=True),
    Key("library", "library", "choice", words=("volta", "maxwell", "ampere")),
    Key("measured_as", "measured_as", "choice", words=_MEASURED),
)
"""Keys of the `gpu` part, in the order of files."""
