"""What a GPU grants a kernel: residence limits, rates inside an SM, latencies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple

from loopsched.base.arguments import near, show
from loopsched.base.errors import ArchError
from loopsched.base.units import MAX_BYTES

Sources = tuple[tuple[str, str], ...]


def times(value: float, factor: Fraction) -> float:
    """Multiply, rounding once: a number over another, times that other, is the number.

    Examples
    --------
    >>> times(652.8e9, Fraction(900e9) / Fraction(652.8e9))
    900000000000.0
    """
    try:
        return float(Fraction(value) * factor)
    except OverflowError:
        return math.inf


class GpuKey(NamedTuple):
    """One number of the ``gpu`` part of an architecture file."""

    key: str
    field: str
    kind: Literal["count", "share", "bytes", "bandwidth_per_cycle", "cycles", "time", "word"]
    required: bool
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """Limits, rates and latencies of a GPU, for kernels mapped onto it.

    Everything counts for one SM unless it says otherwise.  Latencies are in
    cycles of the SM's clock, without contention.

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
        same time, those that L2 does not see.  0: it sees them all.
    l2_efficiency : float
        Share of the file's L2 bandwidth that tiled kernels achieve.  0: not
        known, so what was fitted for another GPU.
    library : {'volta', 'maxwell'}
        Generation of the tiles that library products in fp32 have.
    measured_as : {'none', 'v100', 'titan_v', 'h200'}
        GPU whose measured times the spreads of library estimates are of.
    banks, bank_bytes, sector_bytes, line_bytes, constant_bytes : int
    sources : tuple of (str, str)
        Where each number comes from: key of the file, document.

    Raises
    ------
    ArchError
        If a value cannot be; all faults at once.

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
    library: str = "volta"
    measured_as: str = "none"
    sources: Sources = ()

    def __post_init__(self) -> None:
        faults = list(_faults(self))
        if faults:
            raise ArchError.joined("gpu", faults)

    @property
    def max_warps(self) -> int:
        """Resident warps of an SM."""
        return self.max_threads // self.warp_threads

    def scaled(self, key: str, factor: Fraction) -> Gpu:
        """Multiply one number; counts and bytes are rounded.

        More shared memory also raises what one block may ask for, and the
        store that L1 shares with it.

        Raises
        ------
        ArchError
            If the result cannot be.
        """
        entry = next(entry for entry in GPU_KEYS if entry.key == key)
        names = [entry.field]
        if entry.field == "shared_bytes":
            names += ["max_block_shared_bytes", "l1_bytes"]
        changed: dict[str, float] = {}
        for name in names:
            value = getattr(self, name)
            whole = entry.kind in ("count", "bytes")
            changed[name] = round(value * factor) if whole else times(value, factor)
        if entry.kind == "share":
            changed[entry.field] = min(1.0, changed[entry.field])
        # `replace` cannot see that each name keeps its own type.
        return replace(self, **changed)  # type: ignore[arg-type]


GPU_KEYS = (
    GpuKey("schedulers", "schedulers", "count", True),
    GpuKey("threads", "max_threads", "count", True),
    GpuKey("blocks", "max_blocks", "count", True),
    GpuKey("block_threads", "max_block_threads", "count", False),
    GpuKey("warp", "warp_threads", "count", False),
    GpuKey("registers", "registers", "count", True),
    GpuKey("thread_registers", "max_thread_registers", "count", False),
    GpuKey("register_unit", "register_unit", "count", False),
    GpuKey("warp_unit", "warp_unit", "count", False),
    GpuKey("shared", "shared_bytes", "bytes", True),
    GpuKey("block_shared", "max_block_shared_bytes", "bytes", True),
    GpuKey("shared_unit", "shared_unit_bytes", "bytes", False),
    GpuKey("system_shared", "system_shared_bytes", "bytes", False),
    GpuKey("l1", "l1_bytes", "bytes", True),
    GpuKey("constant", "constant_bytes", "bytes", False),
    GpuKey("constant_cache", "constant_cache_bytes", "bytes", False),
    GpuKey("banks", "banks", "count", False),
    GpuKey("bank", "bank_bytes", "bytes", False),
    GpuKey("sector", "sector_bytes", "bytes", False),
    GpuKey("line", "line_bytes", "bytes", False),
    GpuKey("int_lanes", "int_lanes", "count", True),
    GpuKey("l1_bandwidth", "l1_bytes_per_cycle", "bandwidth_per_cycle", True),
    GpuKey("l1_lines", "l1_lines_per_cycle", "count", False),
    GpuKey("shared_bandwidth", "shared_bytes_per_cycle", "bandwidth_per_cycle", True),
    GpuKey("fma_latency", "fma_latency", "cycles", True),
    GpuKey("shared_latency", "shared_latency", "cycles", True),
    GpuKey("l1_latency", "l1_latency", "cycles", True),
    GpuKey("l2_latency", "l2_latency", "cycles", True),
    GpuKey("dram_latency", "dram_latency", "cycles", True),
    GpuKey("constant_latency", "constant_latency", "cycles", True),
    GpuKey("constant_far_latency", "constant_far_latency", "cycles", True),
    GpuKey("launch", "launch_s", "time", True),
    GpuKey("dram_efficiency", "dram_efficiency", "share", True),
    GpuKey("merged_share", "merged_share", "share", False),
    GpuKey("l2_efficiency", "l2_efficiency", "share", False),
    GpuKey("library", "library", "word", False, ("volta", "maxwell")),
    GpuKey("measured_as", "measured_as", "word", False, ("none", "v100", "titan_v", "h200")),
)
"""Keys of the file, in its order."""

# What a study of sensitivity may change; the rest are rules, not sizes.
VARIABLE_KEYS = (
    *("threads", "blocks", "registers", "shared", "int_lanes"),
    *("l1_bandwidth", "shared_bandwidth"),
    *("fma_latency", "shared_latency", "l1_latency", "l2_latency", "dram_latency"),
    *("constant_latency", "constant_far_latency", "launch", "dram_efficiency"),
)


def _faults(gpu: Gpu) -> Iterator[str]:
    for entry in GPU_KEYS:
        value = getattr(gpu, entry.field)
        if entry.kind == "word":
            if value not in entry.words:
                yield f"{entry.key} {show(value)}: unknown; {near(value, entry.words)}"
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if entry.kind in ("count", "bytes"):
            least = 0 if entry.field == "system_shared_bytes" else 1
            if not is_number or not isinstance(value, int) or not least <= value <= MAX_BYTES:
                yield f"{entry.key} must be a whole number >= {least}, not {show(value)}"
        elif entry.kind == "share" and not entry.required and is_number and value == 0:
            continue
        elif not is_number or not 0 < value < math.inf:
            yield f"{entry.key} must be above zero and finite, not {show(value)}"
        elif entry.kind == "share" and value > 1:
            yield f"{entry.key} is a share, so at most 1, not {show(value)}"
