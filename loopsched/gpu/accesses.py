"""What is counted of an access of a kernel, over all of its blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Op = Literal["load", "store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How often an access happens, and what it touches.

    Parameters
    ----------
    requests : int
        Executions by warps with at least one lane on.
    lanes : int
        Executions by threads.
    sectors, lines : int
        Distinct ones of each request, added up; 0 where it is not global memory.
    wavefronts : int
        Passes of shared or constant memory; 0 for global memory.
    useful_bytes : int, bytes
        Distinct ones of each request, added up.
    partial : int
        Executions by warps that some of their lanes leave out.
    """

    requests: int
    lanes: int
    sectors: int
    lines: int
    wavefronts: int
    useful_bytes: int
    partial: int


@dataclass(frozen=True, slots=True)
class AccessCount(Counts):
    """One access of a kernel, and its counts.

    Parameters
    ----------
    tensor : str
    op : {'load', 'store'}
    space : str
        ``global``, ``l2`` (past L1), ``readonly``, ``shared``, ``constant``.
    stage : {'fill', 'compute', 'epilogue'}
        Filling of a tile, the sums, what comes after them.
    trips : int
        How often a thread comes to the access.
    rounds : int
        Executions a trip, one after another, where a tile is filled.
    is_tested : bool
        Whether each execution tests that its place exists.
    """

    tensor: str
    op: Op
    space: str
    stage: Literal["fill", "compute", "epilogue"]
    trips: int
    rounds: int
    is_tested: bool

    @property
    def is_global(self) -> bool:
        """Whether it goes to global memory, by whichever path."""
        return self.space not in ("shared", "constant")
