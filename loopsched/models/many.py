"""The figures of many schedules at once, as arrays to sort and to filter by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loopsched.base.arrays import Flags, Floats, Ints
from loopsched.base.errors import CapacityError, ScheduleError
from loopsched.machines.arch import Arch
from loopsched.models.machine import data_type_of
from loopsched.models.score import promised
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

TOO_LARGE = 2**63 - 1
"""Bytes of a schedule that does not fit: it comes last, however rows are sorted."""


@dataclass(frozen=True)
class Figures:
    """What `loopsched.evaluate` says of many schedules: one row each, in their order.

    Where a schedule does not fit a scratchpad, times are infinite, and bytes the
    largest 64-bit number.

    Parameters
    ----------
    time_s, compute_time_s : array of float, seconds
    dram_bytes : array of int
    level_bytes : mapping of level name to array of int
        Promised bytes across the outer boundary of each level.
    fits : array of bool
    """

    time_s: Floats
    compute_time_s: Floats
    dram_bytes: Ints
    level_bytes: Mapping[str, Ints]
    fits: Flags


def evaluate_many(
    problem: Problem,
    schedules: Iterable[Schedule],
    arch: Arch,
    *,
    data_type: str | None = None,
) -> Figures:
    """Score many schedules of a problem on a machine.

    Parameters
    ----------
    problem : Problem
    schedules : iterable of Schedule
    arch : Arch
    data_type : str, optional
        As for `loopsched.evaluate`.

    Returns
    -------
    Figures
        The same as `loopsched.evaluate` finds, one by one, without brackets.

    Raises
    ------
    ScheduleError
        If a schedule does not suit problem and machine; one that only does not
        fit has ``fits`` False instead.

    See Also
    --------
    evaluate, tile_map

    Notes
    -----
    Each schedule is scored by itself: in half a millisecond to one and a half, where its promise
    is a closed form.  One whose waves end within an iteration may take some 15 ms: its promise
    rests on a replay.  Those are one in 27 of random tilings of DeepBench's products of matrices
    on a Titan V, and one in eight of its convolutions'.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, parse_schedule
    >>> problem = gemm(m=1024, n=1024, k=1024)
    >>> text = "M:1024@SM N:1024@SM K:1024 M:128 N:{} K:8"
    >>> nests = [parse_schedule(text.format(n), problem) for n in (32, 64, 128)]
    >>> found = evaluate_many(problem, nests, load_arch("titan_v"))
    >>> nests[found.dram_bytes.argmin()].loops[4].extent, found.level_bytes["L1"].tolist()
    (128, [171966464, 104857600, 71303168])
    """
    import numpy as np

    rate = arch.compute.rate(data_type or data_type_of(problem, arch))
    rows = [_row(at, problem, nest, arch, rate) for at, nest in enumerate(schedules)]
    times = np.array([row[:2] for row in rows], dtype=np.float64).reshape(-1, 2)
    level_bytes = {
        level.name: _whole([row[2 + at] for row in rows]) for at, level in enumerate(arch.caches)
    }
    return Figures(
        time_s=times[:, 0],
        compute_time_s=times[:, 1],
        dram_bytes=level_bytes[arch.caches[0].name],
        level_bytes=level_bytes,
        fits=np.isfinite(times[:, 0]),
    )


def _row(
    at: int, problem: Problem, schedule: Schedule, arch: Arch, rate: float
) -> tuple[float, ...]:
    try:
        _, found = promised(problem, schedule, arch, rate)
    except CapacityError:
        return (float("inf"), float("inf"), *(TOO_LARGE for _ in arch.caches))
    except ScheduleError as error:
        raise ScheduleError.joined(f"schedule number {at}", [str(error)]) from None
    return (found.time_s, found.compute_s, *(moved.promised_bytes for moved in found.moved))


def _whole(values: Sequence[float]) -> Ints:
    """Keep whole numbers whole, however large."""
    import numpy as np

    is_small = all(value <= TOO_LARGE for value in values)
    return np.array(values, dtype=np.int64 if is_small else object)
