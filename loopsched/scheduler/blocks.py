"""Blocks of loops, and the schedule that they make up.

A schedule of the searched space is a list of blocks, outermost first.  Each
takes the region so far apart, every dimension at most once; the loops inside
the last block cover what is left, one loop a dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class Block:
    """One block of loops.

    Parameters
    ----------
    order : tuple of str
        Dimensions, outermost first; those that are not cut have no loop.
    extents : tuple of (str, int)
        Extents of the region inside the block; others stay as they are.
    unit : str or None
        Unit whose instances run the loops, if they are spatial.
    """

    order: tuple[str, ...]
    extents: tuple[tuple[str, int], ...]
    unit: str | None = None


def compose(problem: Problem, blocks: Sequence[Block]) -> Schedule:
    """Write blocks as one schedule.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> problem = gemm(m=8, n=8, k=8)
    >>> around = Block(("N", "M"), (("M", 4), ("N", 2)))
    >>> str(compose(problem, [around]))
    'N:8 M:8 M:4 N:2 K:8'
    """
    now = dict(problem.size)
    loops: list[Loop] = []
    for block in blocks:
        inside: Mapping[str, int] = dict(block.extents)
        order = (*block.order, *(dim for dim in problem.dims if dim not in block.order))
        for dim in order:
            extent = inside.get(dim, now[dim])
            if extent < now[dim]:
                loops.append(Loop(dim, now[dim], block.unit))
        for dim, extent in inside.items():
            now[dim] = min(now[dim], extent)
    loops += [Loop(dim, now[dim]) for dim in problem.dims if now[dim] > 1]
    return Schedule(tuple(loops))
