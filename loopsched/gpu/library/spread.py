"""How far estimates were off on rows that they were not fitted on, made into a spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loopsched.errors import LoopschedError
from loopsched.gpu.library.calibration import calibration_file
from loopsched.gpu.result import Estimate

Parts = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """Where eight of ten measured times lay, over their estimates.

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


def product_spread(measured_as: str, data_type: str) -> Spread:
    """Find the rows of library products most like it: same GPU and data type, or others.

    ``measured_as`` is what the architecture file says.

    Examples
    --------
    >>> product_spread("v100", "fp32").basis
    'V100 fp32 GEMMs held out of the fit'
    """
    other = "another gpu" if data_type == "fp32" else "other"
    return first_of(calibration_file(), (f"{measured_as} {data_type}", other))


def own_spread(measured_as: str, data_type: str) -> Spread:
    """The same of kernels that are no library's.

    Examples
    --------
    >>> own_spread("h200", "tf32").low > own_spread("h200", "fp32").low
    True
    """
    return first_of(calibration_file(), (f"{measured_as} own {data_type}", "own"))


def first_of(calibrated: Mapping[str, object], keys: Iterable[str]) -> Spread:
    """Look up the first spread that a calibration has.

    Raises
    ------
    LoopschedError
        If it has none of them.
    """
    spreads = calibrated["spreads"]
    for key in keys:
        found = spreads.get(key) if isinstance(spreads, Mapping) else None
        if isinstance(found, Mapping):
            return Spread(float(found["low"]), float(found["high"]), str(found["basis"]))
    raise LoopschedError(f"a calibration has none of the spreads {', '.join(keys)}")
