"""The few numbers of the time model of mapped kernels that were fitted, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from loopsched.gpu.calibrated import KERNELS, calibrated, first_spread
from loopsched.gpu.result import Spread


@dataclass(frozen=True, slots=True)
class InstructionCosts:
    """What a warp executes beside multiply-adds, loads and stores.

    Parameters
    ----------
    start : float
        Once: indices of the thread, the test that it has work, the end.
    fill : float
        For each element that it puts into a tile: loop, addresses, tests.
    digits : float
        For each of these whose address takes divisions (an unrolled image).
    test : float
        For each load that is tested against the edge of the data.
    load : float
        For each load inside loops that are not unrolled.
    row : float
        For each time that the innermost loop starts: it is unrolled by four,
        and its rest is not.
    unrolled_load : float
        For each global load inside loops that are unrolled.
    unrolled_start : float
        For each time that such loops start.
    """

    start: float
    fill: float
    digits: float
    test: float
    load: float
    row: float
    unrolled_load: float
    unrolled_start: float


@dataclass(frozen=True, slots=True)
class TimeShares:
    """How far a kernel comes of what the architecture file grants.

    ``issue`` is a share of the instructions that schedulers could start, ``launch`` the
    part of ``gpu.launch_s`` that a kernel in a row of kernels shows.
    """

    issue: float
    launch: float


@dataclass(frozen=True, slots=True)
class KernelCalibration:
    """The calibration of mapped kernels.

    Parameters
    ----------
    instructions : InstructionCosts
    time : TimeShares
    spread : Spread
        Its basis says on what the numbers were fitted.

    Examples
    --------
    >>> 0.7 < kernel_calibration().time.issue <= 1
    True
    """

    instructions: InstructionCosts
    time: TimeShares
    spread: Spread


@cache
def kernel_calibration() -> KernelCalibration:
    """Load the shipped calibration.

    Raises
    ------
    LoopschedError
        If the file lacks a number.
    """
    return KernelCalibration(
        calibrated(InstructionCosts, KERNELS, "instructions"),
        calibrated(TimeShares, KERNELS, "time"),
        first_spread(KERNELS, ("time",)),
    )
