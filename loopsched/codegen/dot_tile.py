"""Kernels of register tiles whose lanes hold points of the sum: both operands lie along it."""

from __future__ import annotations

from collections.abc import Sequence

from loopsched.codegen.layout import Layout, Place
from loopsched.codegen.plan import length
from loopsched.codegen.register_tile import Level, Next, Tiles
from loopsched.codegen.writer import Number


class DotTiles(Tiles):
    """Writes tiles as dot products: a vector of sums for each row and column, added up at the end.

    No element is spread: both operands are read as vectors.
    """

    def levels(self, rows: int) -> tuple[tuple[Level, ...], int]:
        """Give the loop of the sum: its dimensions are walked as one."""
        return (Level(None, 1, 1),), length(self.layout.sum_inner[1:])

    def at_once(self, rows: int, cols: int) -> int:
        """Say by how much a sum is unrolled: not beyond its lanes."""
        return 1

    @property
    def _hides(self) -> bool:
        return False

    def _next_cols(self, cols: int) -> Next:
        return self._shared(cols, self.right_cols.step, cols * self.right_cols.step)

    def _totals(
        self, levels: Sequence[Level], lefts: list[Place], col: Number, cols: int
    ) -> list[str]:
        text, (rows, _), right = self.text, self.shape, self.layout.task.right.element
        rights = self.right_cols.of(text, text.argument("right"), col, cols, right)
        stop: Number = text.argument("count")
        lanes, whole = text.lanes, stop
        if any(one % lanes for one in self._counts(*levels)):
            whole = text.mul(text.divided(stop, lanes)[0], lanes)
        totals = [text.zero()] * (rows * cols)
        with text.loop(0, whole, lanes, totals) as loop:
            loop.carry(self._products((lefts, rights), loop.index, loop.values, None))
        totals = loop.values
        if whole != stop:
            with text.loop(whole, stop, lanes, totals) as loop:
                mask = text.lanes_inside(0, 1, text.add(stop, text.mul(whole, -1)))
                loop.carry(self._products((lefts, rights), loop.index, loop.values, mask))
            totals = loop.values
        lines = [totals[row : row + cols] for row in range(0, rows * cols, cols)]
        if not self._is_direct(cols) and not self.is_apart(cols):  # rows lie side by side
            lines = [list(one) for one in zip(*lines, strict=True)]
        return [
            text.added_up(line[start : start + lanes])
            for line in lines
            for start in range(0, len(line), lanes)
        ]

    def _turn(self, places: list[Place], totals: list[str], shape: tuple[int, int]) -> None:
        """Write a tile whose rows lie side by side."""
        text, (rows, _) = self.text, shape
        self.mask = text.first_lanes(rows - (-(-rows // text.lanes) - 1) * text.lanes)
        self._finish(places, totals, -(-rows // text.lanes))

    def _products(
        self,
        places: tuple[Sequence[Place], Sequence[Place]],
        index: Number,
        totals: Sequence[str],
        mask: str | None,
    ) -> list[str]:
        """Write the products of as many points of the sum as there are lanes."""
        text, (of_left, of_right), made = self.text, self._elements(), list(totals)
        settled = [
            self._settled(side, index, one)
            for side, one in zip(places, (of_left, of_right), strict=True)
        ]
        if not mask:
            self._fetch_cols(settled[1][0], of_right)
        lefts, rights = (
            [text.at(*place, element) for place in side]
            for side, element in zip(settled, (of_left, of_right), strict=True)
        )
        rows = [text.load(one, of_left, mask) for one in lefts]
        for col, place in enumerate(rights):
            vector = text.load(place, of_right, mask)
            for row, one in enumerate(rows):
                at = row * len(rights) + col
                made[at] = text.fma(one, vector, made[at])
        return made


def tiles_of(layout: Layout) -> Tiles:
    """Make what writes the register tiles of a plan."""
    return (DotTiles if layout.plan.sums_in_lanes else Tiles)(layout)
