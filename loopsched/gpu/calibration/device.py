"""What the microbenchmarks ask of a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Properties:
    """What the driver says of a GPU.

    Parameters
    ----------
    name : str
    capability : (int, int)
    sms : int
    max_clock_hz, memory_clock_hz : float, hertz
    bus_bits : int
    memory_bytes, l2_bytes : int, bytes
    shared_bytes, block_shared_bytes, system_shared_bytes : int, bytes
        Of an SM, of a block at most, of each block for the system.
    registers, threads, blocks : int
        Of an SM.
    """

    name: str
    capability: tuple[int, int]
    sms: int
    max_clock_hz: float
    memory_clock_hz: float
    bus_bits: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes: int
    block_shared_bytes: int
    system_shared_bytes: int
    registers: int
    threads: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel of `kernels.cu`, and how it is launched.

    Parameters
    ----------
    kernel : str
    blocks, threads : int
        Of the kernel, and of a block.
    steps : int
        Of the loop that is timed.
    n_bytes : int, bytes
        Of the data that it reads; `RINGS` find a ring of so many.
    cold : bool
        Whether L2 holds nothing of a ring.
    """

    kernel: str
    blocks: int
    threads: int
    steps: int
    n_bytes: int = 0
    cold: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What a launch took.

    Parameters
    ----------
    cycles : float
        Of the loop that is timed, the median over blocks.
    time_s : float, seconds
        Of the whole kernel.
    """

    cycles: float
    time_s: float


# Kernels that follow a ring through memory.
RINGS = ("chase_l1", "chase_past_l1")


class Device(Protocol):
    """A GPU that runs the kernels of `kernels.cu`, or what stands in for one."""

    @property
    def properties(self) -> Properties:
        """What the driver says."""

    def run(self, launch: Launch) -> Run:
        """Launch once."""

    def empty_s(self) -> float:
        """Take the seconds between two events around an empty kernel of a block an SM."""
