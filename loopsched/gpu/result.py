"""What is said about the time of a kernel: a bound, and an estimate with its spread."""

from __future__ import annotations

import math
from dataclasses import dataclass

Parts = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time of one kernel, or of the kernels of one operation, on a machine.

    Parameters
    ----------
    time_s : float, seconds
        The estimate; the true time may be on either side.
    low_s, high_s : float, seconds
        80 % interval of the time.
    time_bound_s : float, seconds
        No correct run of the same algorithm can be faster.
    bound_by : str
        The resource whose share is largest, such as ``DRAM`` or ``compute``.
    parts : tuple of (str, float)
        Seconds that each resource alone would take; they overlap, so they do
        not add up to the estimate.
    kernel : str
        Kernel that is taken to run, such as ``128x64x8 split-K 4`` or ``winograd``.
    basis : str
        What the interval rests on: measured rows, and which were held out.

    Examples
    --------
    >>> Estimate(2e-6, 1e-6, 3e-6, 5e-7, "DRAM", (("DRAM", 1.5e-6),)).slack
    4.0
    """

    time_s: float
    low_s: float
    high_s: float
    time_bound_s: float
    bound_by: str
    parts: Parts = ()
    kernel: str = ""
    basis: str = ""

    @property
    def slack(self) -> float:
        """The estimate over the bound; infinite where the bound is zero."""
        return self.time_s / self.time_bound_s if self.time_bound_s else math.inf


@dataclass(frozen=True, slots=True)
class Spread:
    """80 % interval of measured times over their estimates.

    Parameters
    ----------
    low, high : float
    basis : str
        Which rows those were.

    Examples
    --------
    >>> Spread(0.9, 1.2, "two rows").high
    1.2
    """

    low: float
    high: float
    basis: str


def estimate_of(time_s: float, bound_s: float, parts: Parts, kernel: str, like: Spread) -> Estimate:
    """Make an estimate from a time, with the spread of rows like it.

    The estimate is never below the bound, nor outside of its own spread.

    Examples
    --------
    >>> found = estimate_of(2e-3, 1e-3, (("compute", 2e-3),), "128x128x8", Spread(1.1, 1.5, ""))
    >>> found.bound_by, found.low_s, found.time_s, found.high_s
    ('compute', 0.002, 0.002, 0.003)
    """
    time_s = max(time_s, bound_s)
    return Estimate(
        time_s=time_s,
        low_s=max(bound_s, min(1.0, like.low) * time_s),
        high_s=max(1.0, like.high) * time_s,
        time_bound_s=bound_s,
        bound_by=max(parts, key=lambda part: part[1])[0],
        parts=parts,
        kernel=kernel,
        basis=like.basis,
    )
