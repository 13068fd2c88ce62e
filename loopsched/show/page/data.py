"""Problems, machines and schedules as the plain data that the page's model takes."""

from __future__ import annotations

from typing import Any

from loopsched.bounds.communication import communication_bound
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.problems.problem import Problem

Plain = dict[str, Any]

MOST_EXACT = 2**53 - 1
# What the model takes of a level as it is.
_LEVEL = (
    "name", "kind", "instances", "unit", "bandwidth_bytes_per_s", "peak_bandwidth_bytes_per_s",
    "holds", "write_policy", "accumulate", "double_buffered", "halo_reuse", "energy_pj_per_byte",
)  # fmt: skip


def problem_data(problem: Problem, arch: Arch | None = None) -> Plain:
    """Describe a problem by values that JSON knows.

    Parameters
    ----------
    problem : Problem
    arch : Arch, optional
        With it, ``bounds`` holds the communication bound at each capacity that
        the score on this machine needs, so that the page need not find them:
        they do not depend on the schedule, and cost more than all the rest.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> data = problem_data(gemm(m=4, n=3, k=2))
    >>> data["sizes"], data["tensors"][0]["axes"][0]
    ([['M', 4], ['N', 3], ['K', 2]], {'terms': [['M', 1]], 'offset': 0, 'size': None})
    """
    data: Plain = {
        "name": problem.name,
        "kind": problem.kind,
        "sizes": [[dim, size] for dim, size in problem.sizes],
        "tensors": [
            {
                "name": tensor.name,
                "element_bytes": tensor.element_bytes,
                "axes": [
                    {
                        "terms": [[dim, factor] for dim, factor in axis.terms],
                        "offset": axis.offset,
                        "size": axis.size,
                    }
                    for axis in tensor.axes
                ],
            }
            for tensor in problem.tensors
        ],
        "output": problem.output,
    }
    if arch is not None:
        data["bounds"] = {
            str(room): whole(communication_bound(problem, room).bytes)
            for room in _bounded_bytes(arch)
        }
    return data


def arch_data(arch: Arch) -> Plain:
    """Describe what the model needs of a machine by values that JSON knows.

    Examples
    --------
    >>> from loopsched.machines.arch import buffer_arch
    >>> data = arch_data(buffer_arch(capacity_bytes=1024))
    >>> data["levels"][1]["name"], data["levels"][1]["capacity_bytes"]
    ('buffer', 1024)
    """
    compute = arch.compute
    return {
        "name": arch.name,
        "title": arch.title,
        "levels": [_level_data(level) for level in arch.levels],
        "compute": {
            "unit": compute.unit,
            "units": compute.units,
            "clock_hz": compute.clock_hz,
            "max_clock_hz": compute.max_clock_hz,
            "macs_per_cycle_per_unit": [list(pair) for pair in compute.macs_per_cycle_per_unit],
            "lane_unit": compute.lane_unit,
            "energy_pj_per_mac": compute.energy_pj_per_mac,
            "storage_bytes": whole(compute.storage_bytes),
        },
    }


def _level_data(level: Level) -> Plain:
    return {name: getattr(level, name) for name in _LEVEL} | {
        "capacity_bytes": whole(level.capacity_bytes),
        "effective_capacity_bytes": whole(level.effective_capacity_bytes),
        "tensor_capacity_bytes": [(name, whole(n)) for name, n in level.tensor_capacity_bytes],
    }


def _bounded_bytes(arch: Arch) -> list[int]:
    """Capacities whose communication bound the score of a schedule takes."""
    rooms = {arch.inside_bytes(level) for level in arch.caches}
    outermost = arch.caches[0]
    if outermost.holds is None and outermost.usable_bytes is not None:
        own = sum(size for _, size in outermost.tensor_capacity_bytes)
        rooms.add(outermost.usable_bytes + own)
    return sorted(room for room in rooms if room is not None)


def whole(value: int | None) -> int | str | None:
    """A whole number as JavaScript reads it without losing a digit: as text if it is large."""
    return str(value) if value is not None and value > MOST_EXACT else value
