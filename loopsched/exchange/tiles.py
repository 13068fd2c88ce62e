"""Tile parameters of a schedule for kernels in Triton's style."""

from __future__ import annotations

import json
import math
from typing import Any

from loopsched.exchange.exported import Exported
from loopsched.machines.arch import Arch
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import footprint_elems
from loopsched.problems.problem import Problem

_MEANING = {
    "grid": "programs along each dimension, in the order in which program ids run, slowest first",
    "BLOCK_*": "what one program covers of a dimension of the output; of a summed dimension, "
    "what it takes at a time",
    "GROUP_SIZE_*": "programs of this dimension that are numbered together before the next "
    "dimension moves on, as in grouped program ids",
    "num_warps": "warps of a program: a thread keeps at most 128 sums, if 32 warps suffice",
    "num_stages": "steps of operands that shared memory has room for, at most 4; 2 where copies "
    "are not asynchronous, or where the innermost level is double buffered",
}
_WARP, _USUAL_WARPS, _MOST_WARPS = 32, 4, 32
# Sums that a thread keeps beside operands and addresses, and still runs beside others.
_MOST_SUMS = 128
_MOST_STAGES = 4


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
        Says how many stages its shared memory has room for.

    Returns
    -------
    Exported
        ``tiles.json``: blocks are the schedule's innermost tile, rounded up to powers of
        two; ``lost`` says what a program cannot express of the schedule, and which tiles
        were rounded.

    See Also
    --------
    to_triton_kernel, pick

    Examples
    --------
    >>> import json
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=8192, n=8192, k=8192)
    >>> nest = parse_schedule(
    ...     "M:8192@SM N:8192@SM M:1024@SM K:8192 M:128 N:128 K:32", problem)
    >>> found = json.loads(to_triton(problem, nest).text())
    >>> {key: value for key, value in found.items() if key.isupper() or "BLOCK" in key}
    {'BLOCK_M': 128, 'BLOCK_N': 128, 'BLOCK_K': 32, 'GROUP_SIZE_M': 8}
    >>> found["grid"], found["programs"], found["num_warps"]
    ({'M': 64, 'N': 64}, 4096, 4)
    """
    schedule.check(problem)
    schedule.check_even("a Triton kernel")
    end = _programs_end(problem, schedule)
    inner = _tile_begin(schedule, end)
    item = dict.fromkeys(problem.dims, 1) | schedule.extents_from(end)
    tile = dict.fromkeys(problem.dims, 1) | schedule.extents_from(inner)
    blocks = {dim: 1 << (size - 1).bit_length() for dim, size in tile.items()}
    # Programs side by side share no sums, unless the schedule itself wants that.
    grid = {
        loop.dim: -(-problem.size[loop.dim] // size[loop.dim])
        for loops, size in ((schedule.loops[:end], item), (schedule.loops[end:inner], blocks))
        for loop in loops
        if loop.is_spatial or loop.dim in problem.parallel_dims
    }
    for dim in grid.keys() & set(problem.parallel_dims):
        grid[dim] = -(-problem.size[dim] // blocks[dim])
    lost = [
        f"BLOCK_{dim}: the schedule does not tile the reduction over {dim}"
        for dim in problem.reduction_dims
        if tile[dim] == item[dim] > 1
    ]
    lost += [
        f"programs along {dim} add to the same output, which needs atomics or a second pass"
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
    found |= _launch(problem, blocks, arch)
    lost += [
        f"BLOCK_{dim} is {blocks[dim]}, with a mask: the schedule's tile of {size} is not a "
        "power of two"
        for dim, size in tile.items()
        if size & (size - 1)
    ]
    more = [dim for dim in problem.parallel_dims if tile[dim] < item[dim]]
    if more:
        lost.append(
            f"what one program does in turn ({', '.join(more)}: "
            f"{' x '.join(str(item[dim]) for dim in more)} in tiles of "
            f"{' x '.join(str(tile[dim]) for dim in more)}) becomes several programs"
        )
    outside = [str(loop) for loop in schedule.loops[:end] if not loop.is_spatial]
    if outside and any(loop.is_spatial for loop in schedule.loops):
        lost.append(
            f"loops around the programs ({', '.join(outside)}): in Triton, all programs form "
            "one grid, and each computes a whole sum"
        )
    order = " ".join(str(loop) for loop in schedule.loops[end:])
    lost.append(f"the order of loops inside a program ({order or 'none'}) is Triton's")
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


def _tile_begin(schedule: Schedule, end: int) -> int:
    """Find where the innermost tile begins: loops over single positions, and those of lanes."""
    begin = len(schedule.loops)
    while begin > end and (schedule.loops[begin - 1].is_spatial or schedule.steps[begin - 1] == 1):
        begin -= 1
    return begin


def _launch(problem: Problem, blocks: dict[str, int], arch: Arch | None) -> dict[str, int]:
    """Choose warps by the sums of a thread, stages by what shared memory holds."""
    sums = math.prod(blocks[dim] for dim in problem.parallel_dims)
    warps = 1 << max(0, -(-sums // (_WARP * _MOST_SUMS)) - 1).bit_length()
    found = {"num_warps": min(_MOST_WARPS, max(_USUAL_WARPS, warps))}
    if arch is not None and arch.gpu is not None:
        step = sum(
            footprint_elems(tensor, {}, blocks) * tensor.element_bytes
            for tensor in problem.tensors
            if tensor.name != problem.output
        )
        most = _MOST_STAGES if arch.gpu.library == "ampere" else 2
        found["num_stages"] = max(1, min(most, arch.gpu.max_block_shared_bytes // step))
    elif arch is not None and arch.levels[-1].double_buffered:
        found["num_stages"] = 2
    return found


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
