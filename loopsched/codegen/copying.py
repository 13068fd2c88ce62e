"""Copies of blocks of operands: packing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loopsched.codegen.contraction import Contraction, Operand
from loopsched.codegen.plan import FAR_BYTES, Sizes
from loopsched.codegen.writer import Number, Writer

AHEAD_BYTES = 6144
"""How far ahead of what is copied lines are asked for, if runs lie apart."""
MOST_STRAIGHT, AT_ONCE = 8, 4
"""More vectors of a run are copied in a loop, so many at a time."""


@dataclass(frozen=True, slots=True)
class Flat:
    """A dimension that stands for several walked as one; guards do not see it."""

    name: str
    step: int


class Span(NamedTuple):
    """A dimension of a copy: steps (None: as many as are asked for), and how far each writes."""

    dim: str | Flat
    size: int | None
    jump: int
    first: int = 0


def spans_of(dims: Sizes, jump: int) -> list[Span]:
    """List the dimensions of a copy whose points follow each other in its target."""
    found: list[Span] = []
    for dim, size in reversed(dims):
        found.insert(0, Span(dim, size, jump))
        jump *= size
    return found


class _Run(NamedTuple):
    """The innermost dimension of a copy, and where it begins: in its source and in its target."""

    dim: str | Flat
    source: str
    target: str
    positions: list[Number] | None
    """Of guards at its first point; None: all of it lies in padding."""


class Copy:
    """Writes loops that copy a block of an operand."""

    def __init__(self, text: Writer, task: Contraction, operand: Operand) -> None:
        self.text, self.task, self.operand = text, task, operand
        self.ahead = 0
        """Elements from what is copied to what is asked for; 0: nothing is."""

    def _far_ahead(self, spans: Sequence[Span]) -> int:
        """Say where runs lie that are copied some time after others, if far from these."""
        *outer, (last, size, _, _) = spans
        if self._step(last) not in (1, 2) or size is None or self.operand.guards:
            return 0
        run = size * self._step(last)
        for dim, n, _, _ in reversed(outer):
            step = abs(self._step(dim))
            if n != 1 and step * self.operand.element.n_bytes >= FAR_BYTES and step != run:
                return max(1, AHEAD_BYTES // (run * self.operand.element.n_bytes)) * step
            run *= n or 1
        return 0

    def _step(self, dim: str | Flat) -> int:
        return dim.step if isinstance(dim, Flat) else self.operand.step(dim)

    def _moves(self, dim: str | Flat) -> list[int]:
        return [0 if isinstance(dim, Flat) else g.step(dim) for g in self.operand.guards]

    def write(self, spans: Sequence[Span], positions: list[Number]) -> None:
        """Write a copy; its guards stand where they do at its first point."""
        self.ahead = self._far_ahead(spans)
        self._walk(spans, (0, 0), positions)

    def _walk(
        self, spans: Sequence[Span], offsets: tuple[Number, Number], positions: list[Number]
    ) -> None:
        """Write one loop for each dimension, and vectors for the last one."""
        text, (source, target) = self.text, offsets
        (dim, size, jump, first), *rest = spans
        if not rest:
            self._run(dim, size, offsets, positions)
            return
        stop = text.argument("count") if size is None else first + size
        with text.loop(first, stop) as loop:
            inside = [
                text.add(at, text.mul(loop.index, move))
                for at, move in zip(positions, self._moves(dim), strict=True)
            ]
            places = (
                text.add(source, text.mul(loop.index, self._step(dim))),
                text.add(target, text.mul(loop.index, jump)),
            )
            self._walk(rest, places, inside)

    def _run(
        self,
        dim: str | Flat,
        size: int | None,
        offsets: tuple[Number, Number],
        positions: list[Number],
    ) -> None:
        text = self.text
        truth = None
        for guard, at, move in zip(self.operand.guards, positions, self._moves(dim), strict=True):
            if not move:
                here = text.inside(at, guard.size)
                truth = here if truth is None else text.both(truth, here)
        source = text.at(text.argument("source"), offsets[0], self.operand.element)
        source = text.settled(source)
        target = text.settled(text.at(text.argument("target"), offsets[1], text.element))
        run = _Run(dim, source, target, positions)
        if truth is None:
            self._points(run, size)
            return
        with text.when(truth):
            self._points(run, size)
        with text.when(text.negated(truth)):
            self._points(run._replace(positions=None), size)

    def _points(self, run: _Run, size: int | None) -> None:
        """Copy a run, vector by vector."""
        text, lanes = self.text, self.text.lanes
        if size is None:  # the cut dimension of a sum
            count = text.argument("count")
            stop = text.mul(text.divided(count, lanes)[0], lanes)
            with text.loop(0, stop, lanes) as loop:
                self._vector(run, loop.index, lanes, is_sure=not any(self._moves(run.dim)))
            with text.when(text.less(stop, count)):
                mask = text.lanes_inside(0, 1, text.add(count, text.mul(stop, -1)))
                self._vector(run, stop, mask, is_sure=False)
            return
        kinds = [self._is_sure(run.dim, at, size) for at in range(0, size, lanes)]
        at = 0
        while at < size:
            is_sure, stop = kinds[at // lanes], at + lanes
            while stop + lanes <= size and kinds[stop // lanes] == is_sure:
                stop += lanes
            n = (stop - at) // lanes
            if n > MOST_STRAIGHT:
                end = at + n // AT_ONCE * AT_ONCE * lanes
                with text.loop(at, end, AT_ONCE * lanes) as loop:
                    for place in range(AT_ONCE):
                        start = text.add(loop.index, place * lanes)
                        self._vector(run, start, lanes, is_sure=is_sure)
                at = end
            for start in range(at, stop, lanes):
                self._vector(run, start, min(lanes, size - start), is_sure=is_sure)
            at = stop

    def _is_sure(self, dim: str | Flat, start: int, size: int) -> bool:
        """Whether a vector of a run of some size can never lie in padding, wherever it begins."""
        n = min(self.text.lanes, size - start)
        for guard, move in zip(self.operand.guards, self._moves(dim), strict=True):
            if isinstance(dim, Flat) or not move:
                continue
            later = move * (self.task.size(dim) - size)  # where the last block begins
            low, high = guard.offset + min(0, later), guard.offset + max(0, later)
            for other, step in guard.steps:
                if other != dim:
                    low += min(0, step * (self.task.size(other) - 1))
                    high += max(0, step * (self.task.size(other) - 1))
            ends = (start * move, (start + n - 1) * move)
            if not (low + min(ends) >= 0 and high + max(ends) < guard.size):
                return False
        return True

    def _vector(self, run: _Run, start: Number, live: int | str | None, *, is_sure: bool) -> None:
        """Copy a vector: some first lanes, or those of a mask."""
        text = self.text
        target = text.at(run.target, start, text.element)
        if run.positions is None:
            text.store(target, text.zero(), text.element)
            return
        element, step = self.operand.element, self._step(run.dim)
        source = text.at(run.source, text.mul(start, step), element)
        for half in range(step if self.ahead else 0):
            text.fetch(text.at(source, self.ahead + half * text.lanes, element))
        if step == 2 and isinstance(live, int) and is_sure:
            value = self._apart(source, live)
        else:
            mask = text.first_lanes(live) if isinstance(live, int) else live
            if not is_sure:
                mask = text.mask_and(mask, self._inside(run, run.positions, start))
            value = text.load(source, element, mask, step)
        text.store(target, value, text.element)

    def _inside(self, run: _Run, positions: list[Number], start: Number) -> str | None:
        """Give the lanes of a vector that do not lie in padding."""
        text, mask = self.text, None
        moves = self._moves(run.dim)
        for guard, at, move in zip(self.operand.guards, positions, moves, strict=True):
            if move:
                here = text.add(at, text.mul(start, move))
                mask = text.mask_and(mask, text.lanes_inside(here, move, guard.size))
        return mask

    def _apart(self, place: str, live: int) -> str:
        """Read a vector whose elements lie two apart: as two, of which every second lane counts."""
        text, element = self.text, self.operand.element
        halves = []
        for first in (0, text.lanes):
            count = [at % 2 == 0 and at < 2 * live for at in range(first, first + text.lanes)]
            half, mask = text.at(place, first, element), text.some_lanes(count)
            halves.append(text.load(half, element, mask) if any(count) else text.zero())
        return text.picked(halves[0], halves[1], 0, 2)
