"""Predictions beside measurements: the rows, the errors, the bounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from loopsched.base.arguments import show
from loopsched.base.csv_text import Value
from loopsched.base.display import Shown
from loopsched.base.errors import ArchError, InputError, gathered
from loopsched.base.statistics import percentile, rank_correlation
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import as_arch
from loopsched.machines.levels import Level
from loopsched.validation.counter_files import MEASURED, CounterRow, counters_in
from loopsched.validation.csv_files import Source, check, sheet_of, told
from loopsched.validation.launch import Launch
from loopsched.validation.launches import launch_of, loaded_sectors

Method = Literal["simulator", "evaluate"]
METHODS: tuple[Method, ...] = get_args(Method)

# Lines that a set of an H200's L2 holds: Accel-Sim, gpgpu-sim
# configs/tested-cfgs/SM90_H200 (256 sets of 20 lines of 128 bytes a slice).
L2_WAYS = 20
# Tiles that `evaluate` may follow, about: to the steps inside the blocks of large kernels.
EFFORT = 2**24
# Caches are cold at the start; at the end, dirty lines may stay.
_BOUNDS = {"dram_read_bytes": "bound_dram_read_bytes", "dram_write_bytes": "bound_dram_write_bytes"}


@dataclass(frozen=True, slots=True)
class Validation(Shown):
    """Predictions beside measurements.

    Parameters
    ----------
    rows : tuple of mapping
        Of each row the file's columns, then ``schedule``, ``predicted_by``,
        ``predicted_*``, ``error_*`` (relative; None where nothing was measured)
        and ``bound_*``.
    summary : mapping
        ``arch``, ``rows``, ``with``; for each measured column, and ``dram_bytes``
        (reads and writes together), the number of rows
        compared, the median, 90th percentile, mean and maximum of the absolute
        relative error, and the rank correlation; and ``bound_violations``, the
        measurements below what must move.
    """

    rows: tuple[Mapping[str, Value], ...]
    summary: Mapping[str, object]


def validate_counters(
    counters: Source,
    arch: str | os.PathLike[str] | Arch = "h200",
    *,
    method: Method = "simulator",
    ways: int | None = L2_WAYS,
    progress: Callable[[str], None] | None = None,
) -> Validation:
    """Compare predicted with measured traffic, launch by launch.

    Parameters
    ----------
    counters : str, path or iterable of mappings
        A file of measured counters (docs/counters.md), the name of a shipped one, or its rows.
    arch : str, path or Arch
        The machine it was measured on.
    method : {'simulator', 'evaluate'}
        Replay tiles through the last cache before memory, or take the value of
        `loopsched.evaluate`.
    ways : int, optional
        Lines per set of that cache; None: fully associative.  Only for the simulator.
    progress : callable, optional
        Called with a text before each row.

    Raises
    ------
    InputError
        With all faults of the file.

    See Also
    --------
    validate_times, plot_measured

    Examples
    --------
    >>> row = {"problem": "gemm:m=256,n=256,k=256", "dram_read_bytes": 530000}
    >>> row |= {"schedule": "M:256@SM N:256@SM K:256 M:64 N:64 K:32"}
    >>> found = validate_counters([row], "h200")
    >>> found.rows[0]["predicted_dram_read_bytes"], found.summary["bound_violations"]
    (524288, 0)
    """
    if method not in METHODS:
        raise InputError(f"method is {show(method)}; allowed are: {' '.join(METHODS)}")
    machine = as_arch(arch)
    sheet = sheet_of(counters, "counters")
    where, rows = sheet.where, counters_in(sheet)
    l2, unit, units = _shared_cache(machine)
    launches, faults = [], list[str]()
    for row in rows:
        with gathered(faults, f"{row.place}: "):
            launches.append(launch_of(row, unit, machine))
    check(where, faults)
    found = []
    for row, launch in zip(told(rows, progress), launches, strict=True):
        with gathered(faults, f"{row.place}: "):
            predicted = _predict(launch, machine, l2, units, method, ways)
            found.append(_compared(row, launch, l2, predicted))
    check(where, faults)
    return Validation(tuple(found), _summary(found, machine, method))


def _shared_cache(arch: Arch) -> tuple[Level, str, int]:
    """Find the cache that all units share, before memory."""
    if len(arch.levels) < 2 or arch.levels[1].kind != "cache" or not arch.levels[1].is_shared:
        raise ArchError(f"'{arch.name}' has no cache before memory that all units share")
    return arch.levels[1], arch.compute.unit, arch.compute.units


@dataclass(frozen=True, slots=True)
class _Prediction:
    by: str
    dram_read_bytes: float
    dram_write_bytes: float
    l2_read_sectors: float | None


def _predict(
    launch: Launch, arch: Arch, l2: Level, units: int, method: Method, ways: int | None
) -> _Prediction:
    capacity = l2.usable_bytes or 0
    if launch.streams or launch.schedule is None:
        return _streamed(launch, capacity)
    if method == "simulator":
        from loopsched.base.errors import ScheduleError
        from loopsched.simulator.tile_replay import reuse_profile

        rooms = (level.usable_bytes for level in arch.levels[2:] if level.usable_bytes)
        private = next(rooms, 2**18)
        try:
            profile = reuse_profile(
                launch.problem,
                launch.schedule,
                units * launch.abreast,
                room_bytes=private // launch.abreast,
                capacity_bytes=capacity,
            )
        except ScheduleError:  # windows, or spatial loops apart: not for tiles
            return _evaluated(launch, arch)
        sectors = launch.l2_sectors
        return _Prediction(
            "simulator",
            profile.read_bytes(capacity, ways),
            profile.write_bytes(capacity, ways),
            sectors if sectors is not None else _evaluated(launch, arch).l2_read_sectors,
        )
    return _evaluated(launch, arch)


def _streamed(launch: Launch, capacity: int) -> _Prediction:
    """Predict what passes once: the cache ends up with the last of all that passed."""
    moved = launch.compulsory_read_bytes + launch.written_bytes
    left = _left(moved, launch.written_bytes, capacity)
    sectors = launch.l2_sectors
    written = launch.written_bytes - left
    return _Prediction("footprint", launch.compulsory_read_bytes, written, sectors)


def _evaluated(launch: Launch, arch: Arch) -> _Prediction:
    from loopsched.models.score import evaluate

    if launch.schedule is None:
        raise InputError("a launch without a schedule cannot be evaluated")
    machine = _abreast(arch, launch.abreast)
    score = evaluate(launch.problem, launch.schedule, machine, effort=EFFORT)
    sectors: float | None = launch.l2_sectors
    if sectors is None and len(score.levels) > 1:
        sectors = loaded_sectors(score.levels[1].read_bytes.point)
    memory = score.levels[0]
    read, written = memory.read_bytes.point, memory.write_bytes.point
    left = _left(read + written, written, machine.caches[0].usable_bytes or 0)
    return _Prediction("evaluate", read, written - left, sectors)


def _left(moved: int, written: int, capacity: int) -> float:
    """Estimate what is dirty at the end: the cache holds the last of all that passed."""
    return min(moved, capacity) * written / moved


def _abreast(arch: Arch, many: int) -> Arch:
    """Put several units in the place of each, which share what it had."""
    if many == 1:
        return arch

    def shared(level: Level) -> Level:
        sizes = {
            name: size // many
            for name in ("capacity_bytes", "effective_capacity_bytes")
            if (size := getattr(level, name)) is not None
        }
        return replace(level, instances=level.instances * many, **sizes)

    levels = [one if one.instances == 1 else shared(one) for one in arch.levels]
    compute = replace(arch.compute, units=arch.compute.units * many)
    return replace(arch, levels=tuple(levels), compute=compute)


def _compared(
    row: CounterRow, launch: Launch, l2: Level, predicted: _Prediction
) -> dict[str, Value]:
    found = dict(row.values)
    if "schedule" not in found:
        found["schedule"] = None if launch.schedule is None else str(launch.schedule)
    found["predicted_by"] = predicted.by
    values = (predicted.dram_read_bytes, predicted.dram_write_bytes, predicted.l2_read_sectors)
    rounded = [None if value is None else round(value) for value in values]
    found |= {f"predicted_{name}": value for name, value in zip(MEASURED, rounded, strict=True)}
    for name, value in zip(MEASURED, rounded, strict=True):
        measured = row.measured(name)
        found[f"error_{name}"] = None if value is None or not measured else value / measured - 1
    found["bound_dram_read_bytes"] = launch.compulsory_read_bytes
    found["bound_dram_write_bytes"] = max(0, launch.written_bytes - (l2.capacity_bytes or 0))
    return found


def _summary(rows: list[dict[str, Value]], arch: Arch, method: Method) -> dict[str, object]:
    summary: dict[str, object] = {"arch": arch.name, "with": method, "rows": len(rows)}
    summary["dram_bytes"] = _errors(
        [_sum(row, ("dram_read_bytes", "dram_write_bytes")) for row in rows]
    )
    for name in MEASURED:
        summary[name] = _errors([_sum(row, (name,)) for row in rows])
    summary["bound_violations"] = sum(
        _is_below(row, *pair) for row in rows for pair in _BOUNDS.items()
    )
    return summary


def _sum(row: Mapping[str, Value], names: Sequence[str]) -> tuple[float, float] | None:
    """Add up what was measured and what was predicted, if all of it is known."""
    measured = [row.get(name) for name in names]
    predicted = [row[f"predicted_{name}"] for name in names]
    known = [float(value) for value in measured if isinstance(value, int | float)]
    guessed = [float(value) for value in predicted if isinstance(value, int | float)]
    is_known = len(known) == len(guessed) == len(names)
    return (sum(known), sum(guessed)) if is_known else None


def _errors(pairs: Iterable[tuple[float, float] | None]) -> dict[str, object]:
    compared = [pair for pair in pairs if pair is not None]
    errors = [abs(guess / value - 1) for value, guess in compared if value]
    return {
        "rows": len(compared),
        "rows_measured_zero": len(compared) - len(errors),
        "median_error": percentile(errors, 0.5),
        "p90_error": percentile(errors, 0.9),
        "mean_error": sum(errors) / len(errors) if errors else None,
        "max_error": max(errors, default=None),
        "rank_correlation": rank_correlation(
            [value for value, _ in compared], [guess for _, guess in compared]
        ),
    }


def _is_below(row: Mapping[str, Value], name: str, bound: str) -> bool:
    measured, least = row.get(name), row[bound]
    return isinstance(measured, int | float) and isinstance(least, int | float) and measured < least
