"""Tile parameters of a schedule for kernels in Triton's style."""

from __future__ import annotations

import json
import math
from typing import Any

from loopsched.exchange.exported import Exported
from loopsched.machines.arch import Arch
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem

_MEANING = {
    "grid": "programs along each dimension, in the order in which program ids run, slowest first",
    "BLOCK_*": "what one program covers of a dimension of the output; of a summed dimension, "
    "what it takes at a time",
    "GROUP_SIZE_*": "programs of this dimension that are numbered together before the next "
    "dimension moves on, as in grouped program ids",
    "num_stages": "2 where the machine's innermost level is double buffered; else yours to choose",
}


def to_triton(problem: Problem, schedule: Schedule, arch: Arch | None = None) -> Exported:
    """Write the tiles of a schedule as parameters of a Triton kernel.

    A program is one work item: an iteration of all spatial loops of the
    outermost unit, or, without spatial loops, of the leading loops over
    dimensions of the output.  Errors are those of `to_c`.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    arch : Arch, optional
        Says whether its innermost level is double buffered.

    Returns
    -------
    Exported
        ``tiles.json``; ``lost`` says what a program does not know of the
        schedule, and which tiles are no powers of two.

    See Also
    --------
    to_triton_kernel, pick

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=8192, n=8192, k=8192)
    >>> nest = parse_schedule(
    ...     "M:8192@SM N:8192@SM M:1024@SM K:8192 M:128 N:128 K:32", problem)
    >>> found = json.loads(to_triton(problem, nest).text())
    >>> {key: value for key, value in found.items() if key.isupper() or "BLOCK" in key}
    {'BLOCK_M': 128, 'BLOCK_N': 128, 'BLOCK_K': 32, 'GROUP_SIZE_M': 8}
    >>> found["grid"], found["programs"]
    ({'M': 64, 'N': 64}, 4096)
    """
    schedule.check(problem)
    schedule.check_even("a Triton kernel")
    end = _programs_end(problem, schedule)
    item = dict.fromkeys(problem.dims, 1) | schedule.extents_from(end)
    # Programs side by side share no sums, unless the schedule itself wants that.
    grid = {
        loop.dim: -(-problem.size[loop.dim] // item[loop.dim])
        for loop in schedule.loops[:end]
        if loop.is_spatial or loop.dim in problem.parallel_dims
    }
    blocks, lost = _blocks(problem, schedule, end, item)
    lost += [
        f"programs along {dim} add to the same output: that takes atomics, or a second pass"
        for dim, count in grid.items()
        if count > 1 and dim not in problem.parallel_dims
    ]
    found: dict[str, Any] = {
        "problem": problem.name,
        "schedule": str(schedule),
        "grid": grid,
        "programs": math.prod(grid.values()),
        **{f"BLOCK_{dim}": size for dim, size in blocks.items()},
        **_groups(schedule, end),
    }
    if arch is not None and arch.levels[-1].double_buffered:
        found["num_stages"] = 2
    lost += [
        f"BLOCK_{dim} is {size}, no power of two: a Triton block needs "
        f"{1 << (size - 1).bit_length()} and a mask"
        for dim, size in blocks.items()
        if size & (size - 1)
    ]
    outside = [str(loop) for loop in schedule.loops[:end] if not loop.is_spatial]
    if outside and any(loop.is_spatial for loop in schedule.loops):
        lost.append(
            f"loops around the programs ({', '.join(outside)}): there, all programs are of one "
            "grid, and each takes a whole sum"
        )
    inner = [str(loop) for loop in schedule.loops[end:]]
    lost.append(f"the order of loops inside a program ({' '.join(inner) or 'none'}) is Triton's")
    found["meaning"] = _MEANING
    return Exported((("tiles.json", json.dumps(found, indent=2) + "\n"),), tuple(lost))


def _programs_end(problem: Problem, schedule: Schedule) -> int:
    """Find the position behind the loops whose iterations are programs."""
    units = [loop.unit for loop in schedule.loops if loop.unit]
    if units:
        return max(i for i, loop in enumerate(schedule.loops) if loop.unit == units[0]) + 1
    end = 0
    written = set(problem.parallel_dims)
    seen: set[str] = set()
    for loop in schedule.loops:
        if loop.dim not in written or loop.dim in seen:
            break
        # A loop over single positions makes no tile: it belongs to the program.
        if not any(other.dim == loop.dim for other in schedule.loops[end + 1 :]):
            break
        seen.add(loop.dim)
        end += 1
    return end


def _blocks(
    problem: Problem, schedule: Schedule, end: int, item: dict[str, int]
) -> tuple[dict[str, int], list[str]]:
    """Say what a program covers, and of summed dimensions what it takes at a time."""
    blocks = dict(item)
    lost = []
    inside = list(zip(schedule.loops[end:], schedule.steps[end:], strict=True))
    for dim in problem.reduction_dims:
        for place, (loop, step) in enumerate(inside):
            if loop.dim == dim:
                # Loops over the program's tile inside it: the sum is taken in pieces.
                later = [other for other, _ in inside[place + 1 :]]
                if any(_moves(problem, other, item) for other in later):
                    blocks[dim] = step
                break
        if blocks[dim] == item[dim] and item[dim] > 1:
            lost.append(f"BLOCK_{dim}: the sum over {dim} is not taken in pieces here")
    return blocks, lost


def _moves(problem: Problem, loop: Loop, item: dict[str, int]) -> bool:
    return loop.dim not in problem.reduction_dims and item[loop.dim] > 1


def _groups(schedule: Schedule, end: int) -> dict[str, int]:
    """Find dimensions whose programs are numbered in groups."""
    loops = list(zip(schedule.loops[:end], schedule.trips[:end], strict=True))
    found = {}
    for place, (loop, _) in enumerate(loops):
        inner = [trips for other, trips in loops[place + 1 :] if other.dim == loop.dim]
        between = {other.dim for other, _ in loops[place + 1 :]} - {loop.dim}
        if inner and between:
            found[f"GROUP_SIZE_{loop.dim}"] = inner[0]
    return found
