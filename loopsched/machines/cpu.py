"""What a CPU grants a kernel: its instructions, vector registers, units and pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from loopsched.base.errors import ArchError
from loopsched.machines.keys import Key, Sources, key_faults


@dataclass(frozen=True, slots=True)
class Cpu:
    """Instructions, registers and rates of one core, for code generated for it.

    Cores, clocks and caches are ordinary levels and compute of the machine.
    An ArchError names all values that cannot be.

    Parameters
    ----------
    isa : {'x86-64', 'aarch64'}
    vector_bytes : int, bytes
        Of the widest vector that generated code uses.
    vector_registers : int
        Of that width, in one core.
    fma_per_cycle : int
        Multiply-adds of full vectors that one core starts a cycle.
    fma_latency : int or float, cycles
        From one multiply-add to the next that needs its result.
    load_per_cycle : int
        Full vectors that one core loads from L1 a cycle.
    page_bytes : int, bytes
        Of an ordinary page of memory.
    tlb_entries : int or None
        Pages that the last TLB of a core holds.  None: not known.
    features : tuple of str
        What LLVM calls the extensions of the instruction set.
    model : str or None
        What LLVM calls the processor.  None: not known.
    sources : tuple of (str, str)
        Where each number comes from: key of the file, document.

    Examples
    --------
    >>> cpu = Cpu("x86-64", 64, 32, 1, 4, 1, 4096, features=("avx2", "fma", "avx512f"))
    >>> cpu.lanes(4), cpu.independent_sums
    (16, 4)
    """

    isa: str
    vector_bytes: int
    vector_registers: int
    fma_per_cycle: int
    fma_latency: float
    load_per_cycle: int
    page_bytes: int
    tlb_entries: int | None = None
    features: tuple[str, ...] = ()
    model: str | None = None
    sources: Sources = ()

    def __post_init__(self) -> None:
        ArchError.refuse("cpu", cpu_faults(self))

    def lanes(self, element_bytes: int) -> int:
        """Count the elements of one vector."""
        return self.vector_bytes // element_bytes

    @property
    def independent_sums(self) -> int:
        """Vectors of sums that must be under way for the multipliers never to wait."""
        return int(-(-self.fma_latency * self.fma_per_cycle // 1))


FEATURES = {
    "x86-64": (
        *("sse4.2", "avx", "avx2", "fma", "f16c", "bmi2", "avxvnni", "avxvnniint8", "avxifma"),
        *("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512ifma"),
        *("avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq"),
        *("avx512bf16", "avx512fp16", "avx512vp2intersect", "amx-tile", "amx-int8", "amx-bf16"),
        *("amx-fp16", "gfni", "vaes", "vpclmulqdq"),
    ),
    "aarch64": (
        *("fp-armv8", "neon", "lse", "rdm", "crc", "fullfp16", "fp16fml", "dotprod", "complxnum"),
        *("jsconv", "rcpc", "bf16", "i8mm", "sve", "sve2", "sme", "sme2"),
    ),
}
"""LLVM's names of extensions that bear on generated code, for each instruction set."""
MODELS = {
    "x86-64": (
        *("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "znver2", "znver3", "znver4", "znver5"),
        *("haswell", "broadwell", "skylake", "skylake-avx512", "cascadelake", "cooperlake"),
        *("icelake-client", "icelake-server", "tigerlake", "rocketlake", "alderlake"),
        *("raptorlake", "sapphirerapids", "emeraldrapids", "graniterapids"),
    ),
    "aarch64": (
        *("generic", "neoverse-n1", "neoverse-v1", "neoverse-n2", "neoverse-v2"),
        *("apple-m1", "apple-m2", "apple-m3", "apple-m4"),
    ),
}
"""LLVM's names of processors, for each instruction set."""
WIDTHS: dict[str, dict[int, str]] = {
    "x86-64": {32: "avx", 64: "avx512f"},
    "aarch64": dict.fromkeys((32, 64, 128, 256), "sve"),
}
"""Vector widths above 16 bytes of each instruction set, and the feature that each needs."""

_varied = partial(Key, required=True, along=())
CPU_KEYS = (
    Key("isa", "isa", "choice", True, tuple(FEATURES)),
    Key("model", "model", "choice", words=tuple(name for one in MODELS.values() for name in one)),
    Key(
        "features",
        "features",
        "names",
        words=tuple(name for one in FEATURES.values() for name in one),
    ),
    Key("vector", "vector_bytes", "bytes", True),
    _varied("vector_registers", "vector_registers", "count"),
    _varied("fma_per_cycle", "fma_per_cycle", "count"),
    _varied("fma_latency", "fma_latency", "cycles"),
    _varied("load_per_cycle", "load_per_cycle", "count"),
    Key("page", "page_bytes", "bytes", True),
    Key("tlb_entries", "tlb_entries", "count"),
)
"""Keys of the `cpu` part, in the order of files."""


def cpu_faults(cpu: Cpu) -> Iterator[str]:
    """Say what is wrong with the `cpu` part taken alone."""
    faults = tuple(key_faults(cpu, CPU_KEYS))
    yield from faults
    if faults:
        return
    for feature in cpu.features:
        if feature not in FEATURES[cpu.isa]:
            yield f"feature '{feature}' is not one of {cpu.isa}"
    if cpu.model is not None and cpu.model not in MODELS[cpu.isa]:
        yield f"model '{cpu.model}' is not of {cpu.isa}"
    widths = {16: ""} | WIDTHS[cpu.isa]
    needed = widths.get(cpu.vector_bytes)
    if needed is None:
        allowed = " ".join(map(str, widths))
        yield f"vectors of {cpu.isa} have {allowed} bytes, not {cpu.vector_bytes}"
    elif needed and needed not in cpu.features:
        yield f"vectors of {cpu.vector_bytes} bytes need '{needed}' among the features"
