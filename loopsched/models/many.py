"""The figures of many schedules at once, as arrays to sort and to filter by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loopsched.base.arguments import Checker
from loopsched.base.arrays import Flags, Floats, Ints
from loopsched.base.errors import CapacityError, ScheduleError
from loopsched.base.pool import check_jobs
from loopsched.machines.arch import Arch
from loopsched.models.machine import rate_of
from loopsched.models.score import Promised, promised
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

TOO_LARGE = 2**63 - 1
"""Bytes of a schedule that does not fit: it comes last, however rows are sorted."""


@dataclass(frozen=True)
class Figures:
    """Scores of many schedules as `loopsched.evaluate` gives them: one row each, in order.

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
    jobs: int = 1,
) -> Figures:
    """Score many schedules of a problem on a machine.

    Parameters
    ----------
    problem : Problem
    schedules : iterable of Schedule
    arch : Arch
    data_type : str, optional
        As for `loopsched.evaluate`.
    jobs : int
        Threads that run compiled code at a time; the figures are the same.

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
    Most schedules are scored by machine code that is compiled once, in 25 s, when 15,000
    come together; until then, fewer are scored one by one.  Where the promise is a closed
    form, a schedule takes some 10 to 40 microseconds.  Where waves of thread blocks end
    within an iteration, as in most grids of tile sizes without loops around the blocks, the
    promise rests on replays: 20 to 70 microseconds for products of matrices on a Titan V, and
    10 to 120 for convolutions of DeepBench.  Python scores one by one, in 0.1 to 30
    milliseconds each: tiles that are placed, scratchpads that keep halos, and such waves in
    levels that are not the outermost, or in an outermost level of several instances.

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

    from loopsched.models import _promise_kernels as kernels
    from loopsched.models.promises import promised_many

    check = Checker("evaluate_many", ScheduleError)
    nests = check.each("schedules", schedules, Schedule, "a Schedule")
    check.finish()
    check_jobs(jobs, ScheduleError)
    rate = rate_of(problem, arch, data_type)
    lanes = max(1, int(rate))
    found = promised_many(problem, nests, arch, lanes, jobs)
    pace = np.where(found[:, kernels.HAS_LANES] == 1, rate / lanes, rate)
    compute_s = found[:, kernels.STEPS] / (pace * arch.compute.clock_hz)
    time_s = compute_s.copy()
    names = [level.name for level in arch.caches]
    moved = dict(zip(names, found[:, kernels.BYTES :].T, strict=True))
    for level in arch.caches:
        if level.bandwidth_bytes_per_s:
            np.maximum(time_s, moved[level.name] / level.bandwidth_bytes_per_s, out=time_s)
    fits = found[:, kernels.OUTCOME] != kernels.TOO_LARGE
    for at in np.flatnonzero(found[:, kernels.OUTCOME] == kernels.UNKNOWN).tolist():
        one = _one(at, problem, nests[at], arch, rate)
        fits[at] = one is not None
        if one is not None:
            time_s[at], compute_s[at] = one.time_s, one.compute_s
            for name, part in zip(names, one.moved, strict=True):
                if part.promised_bytes > TOO_LARGE:  # whole numbers stay whole, however large
                    moved[name] = moved[name].astype(object)
                moved[name][at] = part.promised_bytes
    time_s[~fits] = compute_s[~fits] = np.inf
    for numbers in moved.values():
        numbers[~fits] = TOO_LARGE
    return Figures(time_s, compute_s, moved[names[0]], moved, fits)


def _one(at: int, problem: Problem, schedule: Schedule, arch: Arch, rate: float) -> Promised | None:
    """Score one schedule by itself; None if it does not fit."""
    try:
        return promised(problem, schedule, arch, rate)[1]
    except CapacityError:
        return None
    except ScheduleError as error:
        raise ScheduleError.joined(f"schedule number {at}", [str(error)]) from None
