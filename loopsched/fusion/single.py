"""The least traffic of one layer alone, in a buffer that is told what to keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from loopsched.models.traffic import Room
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem
from loopsched.scheduler.blocks import Block, compose
from loopsched.scheduler.body import PLACED, Body, best_body
from loopsched.scheduler.tables import check_bytes


@dataclass(frozen=True, slots=True)
class Single:
    """The best schedule of one layer.

    Parameters
    ----------
    dram_bytes : int
    schedule : Schedule
    tile : tuple of (str, int)
        What of the layer is in the buffer at once, dimension by dimension.
    """

    dram_bytes: int
    schedule: Schedule
    tile: tuple[tuple[str, int], ...]


def least_bytes(
    problem: Problem, room_bytes: int, resident: frozenset[str] = frozenset()
) -> int | None:
    """Find the least traffic of a layer in a room; None if not one point fits.

    Parameters
    ----------
    problem : Problem
    room_bytes : int
        For the tensors that are not resident.
    resident : frozenset of str
        Tensors that lie elsewhere on chip: they cost nothing.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> problem = gemm(m=64, n=64, k=64)
    >>> least_bytes(problem, 4096), least_bytes(problem, 4096, frozenset({"A", "C"}))
    (98304, 16384)
    """
    check_bytes(problem)
    found = _body(problem.renamed("-"), room_bytes, resident)
    return found.bytes if found else None


def single(problem: Problem, room_bytes: int) -> Single | None:
    """Find the best schedule of a layer alone; None if not one point fits.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> found = single(gemm(m=64, n=64, k=64), 4096)
    >>> found.dram_bytes, str(found.schedule)
    (98304, 'N:64 M:64 K:64 M:32 N:22 K:5')
    """
    check_bytes(problem)
    body = _body(problem.renamed("-"), room_bytes, frozenset())
    if body is None:
        return None
    schedule = compose(problem, [Block(tuple(reversed(body.inward)), body.extents)])
    return Single(body.bytes, schedule, body.extents)


@lru_cache(maxsize=65536)
def _body(problem: Problem, room_bytes: int, resident: frozenset[str]) -> Body | None:
    if room_bytes < 0:
        return None
    everything = frozenset(tensor.name for tensor in problem.tensors)
    if resident >= everything:
        return Body(0, tuple(problem.sizes), (), 0)
    room = Room(room_bytes, (), resident)
    return best_body(problem, room, PLACED)
