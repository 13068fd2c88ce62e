"""How far estimates were off on rows that they were not fitted on, made into a spread."""

from __future__ import annotations

from collections.abc import Mapping

from loopsched.errors import LoopschedError
from loopsched.gpu.library.calibration import calibration_file
from loopsched.gpu.result import Estimate

Parts = tuple[tuple[str, float], ...]


def estimate_of(
    time_s: float, bound_s: float, parts: Parts, kernel: str, arch: str, data_type: str
) -> Estimate:
    """Make an estimate from a time, with the spread of rows like it.

    ``data_type`` begins with ``own`` for kernels that are no library's.

    Examples
    --------
    >>> found = estimate_of(2e-3, 1e-3, (("compute", 2e-3),), "128x128x8", "v100", "fp32")
    >>> found.bound_by, found.low_s < 2e-3 < found.high_s, found.basis
    ('compute', True, 'V100 fp32 GEMMs held out of the fit')
    """
    low, high, basis = _spread(arch, data_type)
    time_s = max(time_s, bound_s)
    return Estimate(
        time_s=time_s,
        low_s=max(bound_s, low * time_s),
        high_s=max(time_s, high * time_s),
        time_bound_s=bound_s,
        bound_by=max(parts, key=lambda part: part[1])[0],
        parts=parts,
        kernel=kernel,
        basis=basis,
    )


def _spread(arch: str, data_type: str) -> tuple[float, float, str]:
    """Find the rows most like it: of the GPU and data type, else of other GPUs."""
    spreads = calibration_file()["spreads"]
    base = arch.partition("[")[0]
    if isinstance(spreads, Mapping):
        like = "another gpu" if data_type == "fp32" else "other"
        like = "own" if data_type.startswith("own ") else like
        for key in (f"{base} {data_type}", like):
            found = spreads.get(key)
            if isinstance(found, Mapping):
                return float(found["low"]), float(found["high"]), str(found["basis"])
    raise LoopschedError("calibration.json: no spreads")
