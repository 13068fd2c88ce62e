"""The shapes of blocks that the walks of a plan cut, and how many there are of each."""

from __future__ import annotations

import math

from loopsched.codegen.contraction import Contraction
from loopsched.codegen.lines import Dims
from loopsched.codegen.plan import Plan, Walk, chunks, heights, inner_sizes, length


class Blocks:
    """The blocks of one contraction; each walk is cut once."""

    def __init__(self, task: Contraction) -> None:
        self.task = task
        self._walks: dict[Walk, list[tuple[Dims, int]]] = {}
        self._numbers: dict[Walk, int] = {}
        self._more: dict[Walk, float] = {}

    def of(self, walk: Walk) -> list[tuple[Dims, int]]:
        """List the shapes of blocks, and how many there are of each."""
        found = self._walks.get(walk)
        if found is None:
            task = self.task
            outer = self.n_outer(walk)
            n_whole, block, rest = chunks(task, walk)
            every = ((block, outer * n_whole), (rest, outer if rest else 0))
            found = [(tuple(inner_sizes(task, walk, size)), n) for size, n in every if n]
            self._walks[walk] = found
        return found

    def n_blocks(self, walk: Walk) -> int:
        """Count the blocks of a walk."""
        if walk not in self._numbers:
            self._numbers[walk] = sum(n for _, n in self.of(walk))
        return self._numbers[walk]

    def n_outer(self, walk: Walk) -> int:
        """Count the points of the dimensions that are walked one by one."""
        return math.prod(self.task.size(dim) for dim in walk.outer)

    def whole(self, *walks: Walk) -> Dims:
        """List all dimensions of walks with their sizes."""
        return tuple((dim, self.task.size(dim)) for walk in walks for dim in walk.dims)

    def points(self, walk: Walk) -> float:
        """Say how many times as many points a walk has as its largest blocks."""
        if walk not in self._more:
            (dims, n), *_ = self.of(walk)
            self._more[walk] = length(self.whole(walk)) / (length(dims) * n)
        return self._more[walk]

    def heights(self, plan: Plan, n_rows: int) -> list[tuple[int, int]]:
        """Cut rows of a block into register tiles: sizes with their counts."""
        return heights(n_rows, plan.tile_rows, length(self.of(plan.rows)[0][0]))
