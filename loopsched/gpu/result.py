"""What is said about the time of a kernel: a bound, and an estimate with its spread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time of one kernel, or of the kernels of one operation, on a machine.

    Parameters
    ----------
    time_s : float, seconds
        The estimate; the true time may be on either side.
    low_s, high_s : float, seconds
        Where the time is expected in eight cases of ten.
    time_bound_s : float, seconds
        No correct run of the same algorithm can be faster.
    bound_by : str
        The resource whose share is largest, such as ``DRAM`` or ``compute``.
    parts : tuple of (str, float)
        Seconds that each resource alone would take; they overlap, so they do
        not add up to the estimate.
    kernel : str
        What is taken to run, such as ``128x64x8 split-K 4`` or ``winograd``.
    basis : str
        What the spread rests on: rows, and which were held out.

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
    parts: tuple[tuple[str, float], ...] = ()
    kernel: str = ""
    basis: str = ""

    @property
    def slack(self) -> float:
        """The estimate over the bound."""
        return self.time_s / self.time_bound_s
