"""Yalsa's DianNao: execution time and FLOP rate.

`diannao_time` and `diannao_flops` are the original's, bit for bit.  Two things
in them are slips.  The original divides cycles by a frequency of 1, meaning
GHz, and calls the result seconds, so its times are nanoseconds and its FLOPs
are GFLOP/s.  And its
examples put the first array (the image) in the synapse buffer and the weights
in the small neuron buffer; name ``tensors`` to place them as DianNao does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopsched.base.arguments import near, show
from loopsched.base.errors import ProblemError
from loopsched.models.float32 import single
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.published.yalsa import bandwidth_table, volume_table, yalsa_scratchpad

_FLOPS_PER_ITERATION = 2
_BYTES_PER_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class DianNao:
    """The accelerator as Yalsa describes it.

    Parameters
    ----------
    synapse_bytes, neuron_in_bytes, neuron_out_bytes : int, bytes
        Its three scratchpads.
    memory_gib_per_s : int, 2**30 bytes a second
    iterations_per_cycle : int
    frequency_ghz : float, GHz
    element_bytes : int, bytes

    Examples
    --------
    >>> DianNao().synapse_bytes
    32768
    """

    synapse_bytes: int = 32_768
    neuron_in_bytes: int = 2_048
    neuron_out_bytes: int = 2_048
    memory_gib_per_s: int = 200
    iterations_per_cycle: int = 256
    frequency_ghz: float = 1.0
    element_bytes: int = 2


def diannao_time(
    problem: Problem,
    schedule: Schedule,
    *,
    machine: DianNao | None = None,
    tensors: tuple[str, str, str] | None = None,
) -> float:
    """Compute the original's execution time: cycles over a frequency in GHz.

    Parameters
    ----------
    problem : Problem
        With three tensors.
    schedule : Schedule
        Temporal loops only.
    machine : DianNao, optional
    tensors : tuple of str, optional
        Names of the tensors in the synapse, neuron-in and neuron-out buffer;
        by default, as in the original's examples, the problem's order.

    Returns
    -------
    float
        Nanoseconds, which the original takes for seconds.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem, or has spatial loops.
    ProblemError
        If the problem has not three tensors, or lacks one of ``tensors``.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=64, n=256, k=256)
    >>> schedule = parse_schedule("M:64 K:256 N:256 M:32 K:32 N:32", problem)
    >>> diannao_time(problem, schedule)
    40435.7890625
    """
    machine = machine or DianNao()
    names = _buffer_order(problem, tensors)
    sizes = (machine.synapse_bytes, machine.neuron_in_bytes, machine.neuron_out_bytes)
    needed = yalsa_scratchpad(
        problem,
        schedule,
        capacity_bytes=dict(zip(names, sizes, strict=True)),
        iterations_per_cycle=machine.iterations_per_cycle,
        element_bytes=machine.element_bytes,
    )
    bytes_per_cycle = 0.0
    for name in names:
        bytes_per_cycle = single(bytes_per_cycle + needed[name][0])
    frequency = single(machine.frequency_ghz)
    gib_per_s = single(single(single(bytes_per_cycle / _BYTES_PER_GIB) * frequency) * 1e9)
    slowdown = single(gib_per_s / single(machine.memory_gib_per_s))
    compute = single(single(problem.macs // machine.iterations_per_cycle) / frequency)
    return max(compute, single(slowdown * compute))


def diannao_flops(
    problem: Problem,
    schedule: Schedule,
    *,
    machine: DianNao | None = None,
    tensors: tuple[str, str, str] | None = None,
) -> float:
    """Compute the original's FLOP rate: in fact, GFLOP/s.

    Parameters and errors are those of `diannao_time`.

    Returns
    -------
    float
        Infinity for a problem below one cycle of work.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=64, n=256, k=256)
    >>> schedule = parse_schedule("M:64 K:256 N:256 M:32 K:32 N:32", problem)
    >>> f"{diannao_flops(problem, schedule):.6f}"
    '207.455032'
    """
    time = diannao_time(problem, schedule, machine=machine, tensors=tensors)
    if time == 0:
        return math.inf
    return single(single(problem.macs * _FLOPS_PER_ITERATION) / time)


def yalsa_report(problem: Problem, schedule: Schedule, *, title: str) -> str:
    """Render everything that the original prints for one of its examples.

    Parameters
    ----------
    problem, schedule
        As for `diannao_time`.
    title : str
        Heading, without its dashes.

    Returns
    -------
    str
        Begins with an empty line and ends with a line break, as the original.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=64, n=256, k=256)
    >>> schedule = parse_schedule("M:64 K:256 N:256 M:32 K:32 N:32", problem)
    >>> text = yalsa_report(problem, schedule, title="Example MM Analysis")
    >>> text.splitlines()[1], text.splitlines()[-1]
    (' ----- Example MM Analysis ----- ', 'DianNao Flops 207.455032')
    """
    return (
        f"\n ----- {title} ----- \n"
        f"{volume_table(problem, schedule)}\n\n"
        f"{bandwidth_table(problem, schedule)}\n"
        f"DianNao Flops {diannao_flops(problem, schedule):f}\n"
    )


def _buffer_order(problem: Problem, tensors: tuple[str, str, str] | None) -> tuple[str, ...]:
    known = [tensor.name for tensor in problem.tensors]
    if len(known) != 3:
        raise ProblemError(
            f"problem '{problem.name}' has {len(known)} tensors; DianNao has a buffer for three"
        )
    if tensors is None:
        return tuple(known)
    faults = [f"no tensor '{name}'; {near(name, known)}" for name in tensors if name not in known]
    if not faults and sorted(tensors) != sorted(known):
        faults.append(f"tensors {show(tensors)}: each of {' '.join(known)} goes into one buffer")
    ProblemError.refuse(f"problem '{problem.name}'", faults)
    return tensors
