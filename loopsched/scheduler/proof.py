"""Proofs that can be checked: a tree of boxes that covers all schedules (docs/proofs.md).

The checker's own bounds (`loopsched.verify`) decide which leaf closes a box; what is
found here is only where to split.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from loopsched.arch import Arch
from loopsched.arch_format import arch_to_dict
from loopsched.nest import Schedule
from loopsched.problem import Problem
from loopsched.projections import projection_text
from loopsched.verify.bounds import Bounds
from loopsched.verify.log import FORMAT, Node, halves, thresholds
from loopsched.verify.machine import own_units, units_of
from loopsched.verify.value import value_of

MAX_BOXES = 100_000


@dataclass
class Tree:
    """A tree in the making, for one bound."""

    bounds: Bounds
    steps: int | None
    moved: int | None
    max_boxes: int
    words: list[str] = field(default_factory=list)
    boxes: int = 0

    def grow(self) -> bool:
        """Close every box; returns whether that worked."""
        ones, sizes = (1,) * len(self.bounds.sizes), self.bounds.sizes
        todo: list[Node] = [(ones, sizes, ones, sizes, None)]
        while todo:
            node = todo.pop()
            leaf = self.leaf(node)
            if leaf:
                self.words.append(leaf)
                self.boxes += 1
                continue
            split = self.split(node)
            if split is None or self.boxes + len(todo) > self.max_boxes:
                return False
            self.words.append(f"{split[0]}{split[1]}<={split[2]}")
            todo += halves(self.bounds, node, split, "")
        return True

    def leaf(self, node: Node) -> str | None:
        """Find a leaf that closes a box."""
        low, high = node[0], node[1]
        if self.moved is not None and self.bounds.moved(high, high) >= self.moved:
            return "D"
        if self.steps is not None and self.bounds.items and self.bounds.takes(low, high, self.steps):
            return "S"
        return None

    def split(self, node: Node) -> tuple[str, str, str] | None:
        """Choose where to split a box: the shortest dimension first, at a number of pieces."""
        order = sorted(self.bounds.spatial, key=lambda at: self.bounds.sizes[at])
        for at in order:
            extent = middle(self.bounds.sizes[at], node[0][at], node[1][at])
            if extent:
                return "", self.bounds.problem.dims[at], str(extent)
        return None


def middle(size: int, low: int, high: int) -> int | None:
    """Find an extent to split a range at, such that no number of pieces is on both sides."""
    fewest, most = -(-size // high), -(-size // low)
    if fewest == most:
        return None
    count = (fewest + most) // 2 if most - fewest < 8 else max(fewest, math.isqrt(fewest * most))
    # Extents that make more than `count` pieces, and those that do not.
    return -(-size // count) - 1
