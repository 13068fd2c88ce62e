"""What is worth knowing of a curve at a glance, as one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopsched.base.rows import picked

if TYPE_CHECKING:
    from loopsched.curves.staircase import Staircase
    from loopsched.machines.arch import Arch


def digest_row(curve: Staircase, arch: Arch) -> dict[str, Any]:
    """Describe a curve by plain values: its ends, its knees, and a machine's levels.

    Parameters
    ----------
    curve : Curve or NetworkCurve
    arch : Arch
        Capacities are what data can use of one instance of each level.

    Returns
    -------
    dict
        ``n_proven`` of the ``n_steps`` are proven least.  For each level of a
        known capacity the keys ``<level>_capacity_bytes``,
        ``<level>_dram_bytes`` (None if nothing fits),
        ``<level>_nest_bound_bytes`` (which no nest whose operands share one
        tile is below), ``<level>_bound_bytes`` (which no order of execution
        is), ``<level>_operational_intensity`` and
        ``<level>_required_dram_bandwidth_bytes_per_s``; knees as a list.

    Raises
    ------
    ArchError
        If the machine has no rate for the problem's elements.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm, traffic_curve
    >>> row = digest_row(traffic_curve(gemm(m=64, n=64, k=64)), buffer_arch(capacity_bytes=4096))
    >>> row["compulsory_bytes"], row["buffer_dram_bytes"], row["useful_capacity_bytes"]
    (49152, 98304, 16896)
    """
    row: dict[str, Any] = {
        "problem": curve.name,
        "macs": curve.macs,
        "n_steps": len(curve),
        **picked(curve, "n_proven", "least_capacity_bytes"),
        "most_dram_bytes": curve.dram_bytes[0],
        **picked(curve, "useful_capacity_bytes", "compulsory_bytes"),
    }
    seconds = curve.compute_time_s(arch)
    for level in arch.caches:
        if level.usable_bytes is not None:
            row |= _at(curve, level.name, level.usable_bytes, seconds)
    row["knees"] = [
        picked(knee, "capacity_bytes", "dram_bytes", "saved_before", "saved_after")
        for knee in curve.knees
    ]
    return row


def _at(curve: Staircase, name: str, capacity: int, seconds: float) -> dict[str, Any]:
    moved = curve.at(capacity)
    return {
        f"{name}_capacity_bytes": capacity,
        f"{name}_dram_bytes": moved,
        f"{name}_nest_bound_bytes": curve.nest_bound.at(capacity),
        f"{name}_bound_bytes": curve.bound_bytes(capacity),
        f"{name}_operational_intensity": None if moved is None else 2 * curve.macs / moved,
        f"{name}_required_dram_bandwidth_bytes_per_s": None if moved is None else moved / seconds,
    }
