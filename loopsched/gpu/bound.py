"""What no run of an operation can beat, on warm data or from cold caches."""

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
    return _bound(macs, max(0, touched_bytes - _kept_bytes(arch)), arch, data_type)


def cold_bound(
    macs: float, read_bytes: int, written_bytes: int, arch: Arch, data_type: str
) -> tuple[float, str]:
    """Bound the time of an operation of whose data no cache holds anything when it starts.

    What it reads comes from the memory; of what it writes, caches may hold the rest at the end.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> seconds, what = cold_bound(8192**2, 4 * 8192**2, 0, load_arch("v100"), "fp32")
    >>> round(1e6 * seconds), what
    (298, 'DRAM')
    """
    moved = read_bytes + max(0, written_bytes - _kept_bytes(arch))
    return _bound(macs, moved, arch, data_type)


def _kept_bytes(arch: Arch) -> int:
    # What is inside of the boundary, useful or not: all of it may hold data, but for what
    # units own, which loses it between kernels.
    units = arch.compute.units
    lasting = [one for one in arch.caches if one is arch.caches[0] or one.instances < units]
    return sum((one.capacity_bytes or 0) * one.instances for one in lasting)


def _bound(macs: float, moved_bytes: int, arch: Arch, data_type: str) -> tuple[float, str]:
    compute_s = macs / arch.compute.peak_macs_per_s(CONVERTED.get(data_type, data_type))
    bandwidth = arch.caches[0].bound_bandwidth_bytes_per_s
    dram_s = moved_bytes / bandwidth if bandwidth else 0.0
    return max((compute_s, "compute"), (dram_s, "DRAM"))
