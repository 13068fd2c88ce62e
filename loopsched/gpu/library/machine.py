"""The numbers of an architecture that tiled kernels meet, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.base.arguments import DATA_TYPE_BYTES
from loopsched.base.errors import ArchError
from loopsched.gpu.bound import CONVERTED as CONVERTED
from loopsched.machines.arch import Arch
from loopsched.machines.gpu_limits import Gpu

ELEMENT_BYTES = {**DATA_TYPE_BYTES, "fp16_simt": 2, "fp16_as_fp32": 2}
# Bytes of a lane: two halves, or four of one byte, are multiplied by one instruction.
_LANE_BYTES = 4
# No ordinary lane multiplies these.
_TENSOR_ONLY = ("tf32", "fp8")
# What an SM can receive a cycle, where a file says nothing of L2: half a line.
_LINES_PER_CYCLE = 0.5


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU as tiled kernels see it.

    Parameters
    ----------
    gpu : Gpu
    sms : int
    clock_hz, max_clock_hz : float, hertz
        Sustained, and highest.
    macs_per_cycle : float
        Of one SM, for the data type asked for.
    lanes : float
        fp32 multiply-adds a cycle of one SM.
    on_lanes : bool
        Whether the ordinary lanes compute, not tensor cores: the rate is no
        more than lanes of packed elements give.
    dram_bytes_per_s, l2_bytes_per_s : float, bytes per second
        Of the data sheet, and of L2 toward the SMs.
    l2_bytes : int, bytes
        Of the cache before memory: behind L2, where there is another.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> machine_of(load_arch("v100"), "fp16").macs_per_cycle
    512
    """

    gpu: Gpu
    sms: int
    clock_hz: float
    max_clock_hz: float
    macs_per_cycle: float
    lanes: float
    on_lanes: bool
    dram_bytes_per_s: float
    l2_bytes_per_s: float
    l2_bytes: int

    @property
    def packed(self) -> float:
        """Multiply-adds of one instruction of a lane."""
        return max(1.0, self.macs_per_cycle / self.lanes)


def element_bytes(data_type: str, otherwise: int) -> int:
    """Width of a data type in memory; ``otherwise`` where it is not known.

    Examples
    --------
    >>> element_bytes("fp16_as_fp32", 4), element_bytes("int8", 4)
    (2, 1)
    """
    return ELEMENT_BYTES.get(str(data_type), otherwise)


def sum_bytes(width: int) -> int:
    """Width of a sum: those of single bytes take four.

    Examples
    --------
    >>> sum_bytes(1), sum_bytes(2)
    (4, 2)
    """
    return 4 if width == 1 else width


def output_bytes(width: int, data_type: str) -> int:
    """Width of a stored sum: what scales sums of fp8 gives 16 bits.

    Examples
    --------
    >>> output_bytes(1, "int8"), output_bytes(1, "fp8"), output_bytes(2, "fp16")
    (4, 2, 2)
    """
    return 2 if data_type == "fp8" else sum_bytes(width)


def machine_of(arch: Arch, data_type: str) -> Machine:
    """Collect what a tiled kernel of a data type meets on an architecture.

    Raises
    ------
    ArchError
        If the architecture is not a GPU, has no rate for the data type, or lacks L2 or the
        bandwidth of its memory.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> titan_v = load_arch("titan_v")
    >>> machine_of(titan_v, "fp32").sms
    80
    >>> [machine_of(titan_v, name).on_lanes for name in ("fp16", "int8")]
    [False, True]
    >>> machine_of(load_arch("rtx_3090"), "fp16").on_lanes
    False
    """
    gpu = arch.kernel_limits
    caches = [level for level in arch.caches if level.is_shared]
    if not caches or caches[-1] is arch.caches[-1]:
        raise ArchError(f"'{arch.name}' has no shared cache above its {arch.compute.unit}s")
    l2 = caches[0]
    inner = next(level for level in arch.caches if not level.is_shared)
    dram, behind_l2 = l2.bandwidth_bytes_per_s, inner.bandwidth_bytes_per_s
    room = l2.usable_bytes
    if dram is None or room is None:
        raise ArchError(f"'{arch.name}': no bandwidth of its memory, or no capacity of {l2.name}")
    compute = arch.compute
    with ArchError.at(f"'{arch.name}'"):
        macs = compute.rate(CONVERTED.get(str(data_type), data_type))
        lanes = compute.rate("fp32")
    packed = 1 if data_type in CONVERTED else max(1, _LANE_BYTES // element_bytes(data_type, 4))
    of_lanes = packed * lanes
    if packed == 2:
        of_lanes = dict(compute.macs_per_cycle_per_unit).get("fp16_simt", of_lanes)
    if behind_l2 is None:
        behind_l2 = _LINES_PER_CYCLE * gpu.line_bytes * compute.units * compute.clock_hz
    return Machine(
        gpu=gpu,
        sms=compute.units,
        clock_hz=compute.clock_hz,
        max_clock_hz=compute.max_clock_hz,
        macs_per_cycle=macs,
        lanes=lanes,
        on_lanes=data_type not in _TENSOR_ONLY and macs <= of_lanes,
        dram_bytes_per_s=dram,
        l2_bytes_per_s=behind_l2,
        l2_bytes=room,
    )
