"""Profiles of kernels as plain values, for programs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Literal

from loopsched.gpu.counting import Profile

_LEVELS: tuple[Literal["L1", "shared", "L2", "DRAM"], ...] = ("L1", "shared", "L2", "DRAM")

# What goes by the same name in a profile.
_WARPS = ("partial_warps", "divergent_warps", "warp_efficiency", "registers", "shared_bytes")
_COUNTS = (
    "waves", "syncs", "flops", "fma_thread_instructions", "fma_warp_instructions", "integer_ops",
    "load_requests", "load_sectors", "sectors_per_load_request", "load_efficiency",
    "store_requests", "store_sectors", "store_efficiency", "l1_hit", "l2_read_sectors",
    "l2_write_sectors", "dram_read_bytes", "dram_write_bytes",
)  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def profile_row(found: Profile, launches: int = 1) -> dict[str, Any]:
    """Describe a profile by plain values.

    Parameters
    ----------
    found : Profile
    launches : int
        How often the kernel is started.

    Returns
    -------
    dict
        The names are those of the attributes; ``accesses`` and ``tensors``
        hold one dictionary an access, and a tensor in the traffic model.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> from loopsched.gpu.counting import profile
    >>> from loopsched.published.presets import gemm_tiled
    >>> row = profile_row(profile(gemm_tiled(), load_arch("h200")))
    >>> row["load_sectors"], row["occupancy"], row["accesses"][0]["requests"]
    (8388608, 1.0, 1048576)
    """
    return {
        "kernel": found.name,
        "launches": launches,
        "grid": "x".join(map(str, found.grid)),
        "block": "x".join(map(str, found.block)),
        "blocks": found.n_blocks,
        "warps": found.n_warps,
        **{name: getattr(found, name) for name in _WARPS},
        "occupancy": found.occupancy.share,
        "resident_blocks": found.occupancy.blocks,
        "resident_warps": found.occupancy.warps,
        "limited_by": " ".join(found.occupancy.limited_by),
        **{name: getattr(found, name) for name in _COUNTS},
        **{f"intensity_{one.lower()}": _finite(found.intensity(one)) for one in _LEVELS},
        "accesses": [asdict(one) for one in found.accesses],
        "tensors": [asdict(one) for one in found.traffic.tensors],
    }
