"""Problems, machines and schedules as the plain data that the page's model takes."""

from __future__ import annotations

from typing import Any

from loopsched.bounds.communication import communication_bound
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.nests.nest import Schedule
from loopsched.nests.schedule_file import schedule_to_dict
from loopsched.problems.problem import Problem

Plain = dict[str, Any]

MOST_EXACT = 2**53 - 1


def problem_data(problem: Problem, arch: Arch | None = None) -> Plain:
    """Describe a problem by values that JSON knows.

    Parameters
    ----------
    problem : Problem
    arch : Arch, optional
        With it, ``bounds`` holds the communication bound at each capacity that
        the score on this machine needs, so that the page need not find them:
        they do not depend on the schedule, and cost more than all the rest.

    Returns
    -------
    dict

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


def schedule_data(schedule: Schedule) -> Plain:
    """Describe a schedule by values that JSON knows, as a schedule file does.

    Examples
    --------
    >>> from loopsched.nests.nest import Loop
    >>> schedule_data(Schedule((Loop("M", 8, "SM"), Loop("M", 2))))
    {'loops': [{'dim': 'M', 'extent': 8, 'unit': 'SM'}, {'dim': 'M', 'extent': 2}]}
    """
    return schedule_to_dict(schedule)


def _level_data(level: Level) -> Plain:
    return {
        "name": level.name,
        "kind": level.kind,
        "capacity_bytes": whole(level.capacity_bytes),
        "effective_capacity_bytes": whole(level.effective_capacity_bytes),
        "instances": level.instances,
        "unit": level.unit,
        "bandwidth_bytes_per_s": level.bandwidth_bytes_per_s,
        "peak_bandwidth_bytes_per_s": level.peak_bandwidth_bytes_per_s,
        "holds": None if level.holds is None else list(level.holds),
        "tensor_capacity_bytes": [[name, whole(n)] for name, n in level.tensor_capacity_bytes],
        "write_policy": level.write_policy,
        "accumulate": level.accumulate,
        "double_buffered": level.double_buffered,
        "halo_reuse": level.halo_reuse,
        "energy_pj_per_byte": level.energy_pj_per_byte,
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
