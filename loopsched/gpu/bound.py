"""What no run of an operation can beat, when it is repeated on warm data."""

from __future__ import annotations

from loopsched.machines.arch import Arch

# Data types that are computed as fp32 on the ordinary lanes, though stored smaller.
CONVERTED = {"fp16_as_fp32": "fp32"}


def repeated_bound(
    macs: float, touched_bytes: int, arch: Arch, data_type: str
) -> tuple[float, str]:
    """Bound the time of an operation that is run again and again.

    Parameters
    ----------
    macs : float
        Multiply-accumulates that cannot be left out.
    touched_bytes : int, bytes
        Of operands and output, each once.
    arch : Arch
    data_type : str

    Returns
    -------
    (float, str)
        Seconds, and the resource.

    Notes
    -----
    All units at the highest clock; and what cannot have stayed in the levels
    above the memory from one run to the next, at the data sheet's bandwidth.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> seconds, what = repeated_bound(8192**2, 4 * 8192**2, load_arch("v100"), "fp32")
    >>> round(1e6 * seconds), what
    (291, 'DRAM')
    """
    compute_s = macs / arch.compute.peak_macs_per_s(CONVERTED.get(data_type, data_type))
    outer = arch.caches[0]
    bandwidth = outer.bound_bandwidth_bytes_per_s
    # What is inside of the boundary, useful or not: all of it may hold data, but for what
    # units own, which loses it between kernels.
    units = arch.compute.units
    lasting = [one for one in arch.caches if one is outer or one.instances < units]
    kept = sum((one.capacity_bytes or 0) * one.instances for one in lasting)
    dram_s = max(0, touched_bytes - kept) / bandwidth if bandwidth else 0.0
    return max((compute_s, "compute"), (dram_s, "DRAM"))
