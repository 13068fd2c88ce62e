"""Yalsa's model, bit for bit: the bandwidth that a loop nest asks of its memory.

The model finds the first loop whose whole region fits into the buffer, and
reloads that region on every visit.  Extents need not divide and nothing is
clipped.  An input that two dimensions index counts with its bounding box; the
original knows stride 1 only, other strides are the same rule carried on.

Source: PolyArch/yalsa, whose answers for 150 nests and two printed examples
are in ``tests/data``; the tests compare all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from loopsched.base.arguments import is_count, show
from loopsched.base.errors import InputError, ScheduleError
from loopsched.models.float32 import single
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem, Tensor

_TABLE_CAPACITIES = tuple(16 << doublings for doublings in range(20))


def yalsa_volume(tensor: Tensor, extents: Mapping[str, int]) -> int:
    """Count the elements of a tensor in a region, as Yalsa does: a bounding box.

    Parameters
    ----------
    tensor : Tensor
    extents : mapping of dimension name to int
        Extents of the region; a missing dimension has extent 1.

    Returns
    -------
    int, elements

    Examples
    --------
    >>> from loopsched.problems.problem import Axis, Tensor
    >>> rows = Tensor("rows", (Axis((("P", 1), ("R", 1))),))
    >>> yalsa_volume(rows, {"P": 8, "R": 4})
    11
    """
    return math.prod(
        1 + sum(coefficient * (extents.get(dim, 1) - 1) for dim, coefficient in axis.terms)
        for axis in tensor.axes
    )


def yalsa_volumes(problem: Problem, schedule: Schedule) -> tuple[tuple[int, ...], ...]:
    """Count the elements that each loop's region touches, tensor by tensor.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Temporal loops only.

    Returns
    -------
    tuple of tuple of int, elements
        One row a loop, outermost first; one column a tensor, in the problem's
        order.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem, or has spatial loops.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=64, n=256, k=256)
    >>> schedule = parse_schedule("M:64 K:256 N:256 M:32 K:32 N:32", problem)
    >>> yalsa_volumes(problem, schedule)[:3]
    ((16384, 65536, 16384), (8192, 65536, 8192), (1024, 8192, 8192))
    """
    checked = _checked(problem, schedule)
    return tuple(
        tuple(yalsa_volume(tensor, extents) for tensor in problem.tensors)
        for extents in _regions(checked)[:-1]
    )


def yalsa_bandwidth(
    problem: Problem,
    schedule: Schedule,
    *,
    capacity_bytes: int,
    iterations_per_cycle: int,
    element_bytes: int | None = None,
) -> tuple[float, int]:
    """Compute the bandwidth that a nest asks of the memory behind a cache.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Temporal loops only.
    capacity_bytes : int, bytes
        Size of the cache; what fits must be smaller.
    iterations_per_cycle : int
        Points of the iteration space that the machine executes in a cycle.
    element_bytes : int, optional
        Size of one element of every tensor; each tensor's own if not given.

    Returns
    -------
    bytes_per_cycle : float
        Rounded to a 32-bit float at every step, as in the original.
    fit_level : int
        Position of the first loop whose region fits; the number of loops if
        none does.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem, or has spatial loops.
    InputError
        If a number is not a whole number above 0.

    See Also
    --------
    evaluate

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=64, n=256, k=256).with_element_bytes(2)
    >>> schedule = parse_schedule("M:64 K:256 N:256 M:32 K:32 N:32", problem)
    >>> yalsa_bandwidth(problem, schedule, capacity_bytes=8192, iterations_per_cycle=16)
    (3.0, 3)
    """
    return _bandwidth(
        problem, schedule, problem.tensors, capacity_bytes, iterations_per_cycle, element_bytes
    )


def yalsa_scratchpad(
    problem: Problem,
    schedule: Schedule,
    *,
    capacity_bytes: int | Mapping[str, int],
    iterations_per_cycle: int,
    element_bytes: int | None = None,
) -> dict[str, tuple[float, int]]:
    """Compute the bandwidth tensor by tensor, each with a buffer of its own.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Temporal loops only.
    capacity_bytes : int or mapping of tensor name to int, bytes
        Size of the buffer that each tensor has to itself.
    iterations_per_cycle, element_bytes : int
        As for `yalsa_bandwidth`.

    Returns
    -------
    dict of tensor name to (bytes_per_cycle, fit_level)

    Raises
    ------
    ScheduleError, InputError
        As `yalsa_bandwidth`; also if a tensor has no capacity.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=64, n=256, k=256).with_element_bytes(2)
    >>> schedule = parse_schedule("M:64 K:256 N:256 M:32 K:32 N:32", problem)
    >>> yalsa_scratchpad(problem, schedule, capacity_bytes=2048, iterations_per_cycle=256)
    {'A': (16.0, 4), 'B': (512.0, 5), 'C': (16.0, 4)}
    """
    capacities = _capacities(problem, capacity_bytes)
    return {
        tensor.name: _bandwidth(
            problem,
            schedule,
            (tensor,),
            capacities[tensor.name],
            iterations_per_cycle,
            element_bytes,
        )
        for tensor in problem.tensors
    }


def volume_table(problem: Problem, schedule: Schedule) -> str:
    """Render the volumes by loop level as the original prints them.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=4, n=3, k=2)
    >>> print(volume_table(problem, parse_schedule("M:4 N:3 K:2", problem)))
    Array Volumes by Loop Level: (in element count)
    Loop Level         a         b         c
             0         8         6        12
             1         2         6         3
             2         2         2         1
    """
    heads = ["Loop Level", *_array_names(problem)]
    lines = ["Array Volumes by Loop Level: (in element count)", _row(heads)]
    lines += [
        _row([level, *volumes]) for level, volumes in enumerate(yalsa_volumes(problem, schedule))
    ]
    return "\n".join(lines)


def bandwidth_table(
    problem: Problem, schedule: Schedule, *, iterations_per_cycle: int = 16, element_bytes: int = 2
) -> str:
    r"""Render the bandwidth for caches of 16 B to 8 MiB as the original prints it.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=4, n=3, k=2)
    >>> schedule = parse_schedule("M:4 N:3 K:2", problem)
    >>> print("\n".join(bandwidth_table(problem, schedule).splitlines()[:4]))
    Assume 16 iters/cycle, datatype size: 2 bytes
     cache size(B)  b/w (B/cyc) fit_lvl
                16        80.00       2
                32        58.67       1
    """
    lines = [
        f"Assume {iterations_per_cycle} iters/cycle, datatype size: {element_bytes} bytes",
        f"{'cache size(B)':>14}{'b/w (B/cyc)':>13}{'fit_lvl':>8}",
    ]
    for capacity, bandwidth, fit_level in bandwidths(
        problem, schedule, iterations_per_cycle, element_bytes
    ):
        lines.append(f"{capacity:14d}{bandwidth:13.2f}{fit_level:8d}")
    return "\n".join(lines)


def bandwidths(
    problem: Problem, schedule: Schedule, iterations_per_cycle: int = 16, element_bytes: int = 2
) -> Iterator[tuple[int, float, int]]:
    """Yield capacities of 16 B to 8 MiB, each with what `yalsa_bandwidth` gives for it."""
    for capacity in _TABLE_CAPACITIES:
        yield (
            capacity,
            *_bandwidth(
                problem, schedule, problem.tensors, capacity, iterations_per_cycle, element_bytes
            ),
        )


def _row(cells: list[object]) -> str:
    return "".join(f"{cell:>10}" for cell in cells)


def _array_names(problem: Problem) -> list[object]:
    names = [tensor.name for tensor in problem.tensors]
    initials = [name[0].lower() for name in names]
    return list(initials if len(set(initials)) == len(names) else names)


def _capacities(problem: Problem, capacity_bytes: int | Mapping[str, int]) -> dict[str, int]:
    names = [tensor.name for tensor in problem.tensors]
    if not isinstance(capacity_bytes, Mapping):
        return dict.fromkeys(names, capacity_bytes)
    absent = [name for name in names if name not in capacity_bytes]
    if absent:
        raise InputError(
            f"capacity_bytes: no capacity for {', '.join(absent)}; each tensor has one"
        )
    return {name: capacity_bytes[name] for name in names}


def _checked(problem: Problem, schedule: Schedule) -> Schedule:
    spatial = [str(loop) for loop in schedule.loops if loop.is_spatial]
    if spatial:
        raise ScheduleError(
            f"Yalsa's model has no spatial loops, found '{' '.join(spatial)}'; "
            "make them temporal with loopsched.nests.ops.unbind"
        )
    schedule.check_even("Yalsa's model")
    return schedule.check(problem)


def _regions(schedule: Schedule) -> list[dict[str, int]]:
    """Extents of the region of each loop, outermost first, and of one point."""
    extents = dict.fromkeys(schedule.dims, 1)
    regions = [dict(extents)]
    for loop in reversed(schedule.loops):
        extents[loop.dim] = loop.extent
        regions.append(dict(extents))
    return regions[::-1]


def _bandwidth(
    problem: Problem,
    schedule: Schedule,
    tensors: tuple[Tensor, ...],
    capacity_bytes: int,
    iterations_per_cycle: int,
    element_bytes: int | None,
) -> tuple[float, int]:
    _check_counts(capacity_bytes, iterations_per_cycle, element_bytes)
    regions = _regions(_checked(problem, schedule))
    for fit_level, extents in enumerate(regions):  # noqa: B007
        reloaded_bytes = sum(
            yalsa_volume(tensor, extents) * (element_bytes or tensor.element_bytes)
            for tensor in tensors
        )
        if reloaded_bytes < capacity_bytes:
            break
    return required_bandwidth(reloaded_bytes, extents, iterations_per_cycle), fit_level


def required_bandwidth(
    reloaded_bytes: int, extents: Mapping[str, int], iterations_per_cycle: int
) -> float:
    """Divide what one visit to a region loads by the cycles that it computes.

    Every step is rounded to a 32-bit float, in the original's order.

    Examples
    --------
    >>> required_bandwidth(6144, {"M": 32, "N": 32, "K": 32}, 16)
    3.0
    """
    iterations = single(math.prod(extents.values()))
    return single(single(reloaded_bytes) / single(iterations / single(iterations_per_cycle)))


def _check_counts(
    capacity_bytes: int, iterations_per_cycle: int, element_bytes: int | None
) -> None:
    given = {"capacity_bytes": capacity_bytes, "iterations_per_cycle": iterations_per_cycle}
    if element_bytes is not None:
        given["element_bytes"] = element_bytes
    faults = [
        f"{name} is {show(value)}; a whole number >= 1 is needed"
        for name, value in given.items()
        if not is_count(value)
    ]
    InputError.refuse("Yalsa's model", faults)
