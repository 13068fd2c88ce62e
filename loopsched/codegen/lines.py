"""The lines that parts of operands lie in, and the caches that hold them."""

from __future__ import annotations

import math
from typing import NamedTuple

from loopsched.codegen.contraction import Contraction, Operand
from loopsched.codegen.core import Core, Counts
from loopsched.codegen.memory import LINE, PAGE
from loopsched.codegen.plan import LEAST_BYTES, merged_step

SHORT_RUN = 512
"""Runs of fewer bytes, half a page apart, are not foreseen by hardware."""
FULL = 0.75, 0.5
"""Shares of L1 and the last cache that what is used again may fill."""

Dims = tuple[tuple[str, int], ...]
"""Dimensions of a box of points with their sizes."""


class Footprint(NamedTuple):
    """Lines that a box of points touches, and how they lie.

    ``level`` is the nearest cache whose sets hold them all: 0 for L1, at most 2; ``fill``
    the share of their sets in L2 that they take.
    """

    lines: float
    run_bytes: float
    step_bytes: int
    level: int
    pages: float
    fill: float = 0.0

    @property
    def is_apart(self) -> bool:
        """Whether its runs lie in pages of their own, about."""
        return self.step_bytes >= PAGE // 2

    @property
    def is_far(self) -> bool:
        """Whether its runs lie where hardware does not foresee them."""
        return self.run_bytes < SHORT_RUN and self.is_apart


_LEVELS = ("", "_l2", "_l3", "_dram")
"""Where a line comes from."""


def take(found: Counts, what: str, level: int, lines: float) -> None:
    """Count lines as what they cost where a cache gives them, if that has a cost."""
    name = what + _LEVELS[level]
    if name in found:
        found[name] += lines


def lined(run: int, *apart: int) -> float:
    """Count the lines that so many bytes lie in, on average, which begin so far apart.

    Examples
    --------
    >>> lined(64, 128), lined(64, 96), lined(96, 96), lined(60, 64)
    (1.0, 1.5, 2.0, 1.0)
    """
    step = math.gcd(LINE, *apart)
    return (-(-run // step) * step + LINE - step) / LINE


class Lines:
    """The lines of one contraction's operands on one core; each box of points is looked at once."""

    def __init__(self, task: Contraction, core: Core) -> None:
        self.task, self.core = task, core
        self.element_bytes = task.left.element.n_bytes
        self.vector_bytes = core.lanes * max(LEAST_BYTES, self.element_bytes)
        """Of a vector of what is computed."""
        self.sizes = {one.name: self._bytes(one) for one in task.operands}
        """Bytes of each operand."""
        (first, last), second = FULL, core.l2_share
        self._full = first * core.l1_bytes, second * core.l2_bytes, last * core.last_bytes
        self.home = self.level(sum(self.sizes.values()))
        """The cache that holds all operands."""
        self._known: dict[tuple[str, Dims], Footprint] = {}
        self._tiled: dict[tuple[str, Dims, int, Dims], Footprint] = {}
        self._merged: dict[tuple[str, Dims], int | None] = {}

    def _bytes(self, operand: Operand) -> int:
        """Count what is read or written of an operand."""
        moves = [(abs(step), self.task.size(dim)) for dim, step in operand.steps]
        points = math.prod(size for step, size in moves if step)
        return min(points, 1 + sum(step * (size - 1) for step, size in moves)) * self.element_bytes

    def of(self, operand: Operand, dims: Dims) -> Footprint:
        """Count the lines of a box of points: runs, and runs of runs."""
        key = operand.name, dims
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._found(operand, dims)
        return found

    def _found(self, operand: Operand, dims: Dims) -> Footprint:
        size = self.element_bytes
        moves = sorted((abs(operand.step(dim)), n) for dim, n in dims if n > 1)
        span, levels = 1, list[tuple[int, int]]()
        for step, n in moves:
            if not step:
                continue
            if not levels and (step <= span or step * size < LINE):
                span += step * (n - 1)
            elif levels and step < math.prod(levels[-1]) and step % levels[-1][0] == 0:
                levels[-1] = levels[-1][0], levels[-1][1] + step // levels[-1][0] * (n - 1)
            else:
                levels.append((step, n))
        each = 1 + (span - 1) * size / LINE  # wherever a run begins in its first line
        runs = math.prod(n for _, n in levels)
        steps = [(step * size, n) for step, n in levels]
        far = max((step for step, _ in steps), default=0)
        level, fill, core = 0, 0.0, self.core
        caches = (core.l1_bytes, core.ways), (core.l2_bytes, core.l2_ways)
        for nearest, (capacity, ways) in enumerate(caches, 1):
            way = capacity // ways
            spots = math.prod(min(n, way // math.gcd(step, way)) for step, n in steps)
            fill = runs * each / (ways * min(way // LINE, spots * math.ceil(each)))
            if fill > 1:
                level = nearest
        is_apart = far >= PAGE // 2
        near, n_apart = span * size, 1  # bytes from end to end where steps are less than a page
        for step, n in steps:
            near, n_apart = (near + step * (n - 1), n_apart) if step < PAGE else (near, n_apart * n)
        pages = n_apart * max(1, near / PAGE) if is_apart else max(1, runs * each * LINE / PAGE)
        return Footprint(runs * each, span * size, far, level, pages, fill)

    def part(self, operand: Operand, dims: Dims, n: int, others: Dims) -> Footprint:
        """Count the lines of some points of a walk, and all of others."""
        key = operand.name, dims, n, others
        found = self._tiled.get(key)
        if found is None:
            taken: Dims = ()
            for dim, size in reversed(dims):
                taken = ((dim, min(size, max(1, n))), *taken)
                n = -(-n // size)
            found = self._tiled[key] = self.of(operand, taken + others)
        return found

    def step(self, operand: Operand, dims: Dims) -> int | None:
        """Find the step by which an operand moves over dimensions walked as one."""
        key = operand.name, dims
        if key not in self._merged:
            self._merged[key] = merged_step(operand, list(dims))
        return self._merged[key]

    def level(self, n_bytes: float) -> int:
        """Say which cache holds so much that is used again: 0 is L1, 3 is memory."""
        first, second, last = self._full
        return 0 if n_bytes <= first else 1 if n_bytes <= second else 2 if n_bytes <= last else 3

    def stays(self, fill: float, n_bytes: float) -> bool:
        """Whether lines that take a share of their sets stay in L2 beside so many bytes."""
        return fill + n_bytes / self.core.l2_bytes <= self.core.l2_share
