"""What follows the sums: a bias is added, and what is negative becomes zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopsched.codegen.element import Element, Types
from loopsched.codegen.writer import Number, Writer


class Epilogue(NamedTuple):
    """What is done to an output once its sums are complete.

    Parameters
    ----------
    shape : tuple of int
        Of the output.
    steps : tuple of int, elements
        Of its axes.
    bias_steps : tuple of int, elements
        By which the bias moves with each axis; empty: there is none.
    relu : bool
    """

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    bias_steps: tuple[int, ...]
    relu: bool

    @property
    def n_jobs(self) -> int:
        """Iterations of the outermost axis: they may be shared by threads."""
        return self.shape[0] if self.shape else 1

    def write(self, text: Writer, types: Types, name: str) -> None:
        """Write the function ``<name>(bias, unused, out, work, first, last)``."""
        with text.function(
            name, ("left", "right", "out", "work"), ("first", "last"), is_public=True
        ):
            limits = text.argument("first"), text.argument("last")
            _Pass(text, types, self).walk(0, limits, (0, 0))


class _Pass:
    """Writes the loops of an epilogue."""

    def __init__(self, text: Writer, types: Types, what: Epilogue) -> None:
        self.text, self.types, self.what = text, types, what

    def walk(
        self, axis: int, limits: tuple[Number, Number], offsets: tuple[Number, Number]
    ) -> None:
        """Write one loop an axis; the innermost goes by vectors where it can."""
        text, what = self.text, self.what
        rank = len(what.shape)
        if axis == rank:
            self._point(offsets)
            return
        bias_step = what.bias_steps[axis] if what.bias_steps else 0
        is_vector = axis == rank - 1 and axis > 0 and what.steps[axis] == 1 and bias_step in (0, 1)
        if is_vector:
            self._vectors(what.shape[axis], offsets, bias_step)
            return
        with text.loop(*limits) as loop:
            moved = (
                text.add(offsets[0], text.mul(loop.index, what.steps[axis])),
                text.add(offsets[1], text.mul(loop.index, bias_step)),
            )
            inner = what.shape[axis + 1] if axis + 1 < rank else 0
            self.walk(axis + 1, (0, inner), moved)

    def _bias(self, offset: Number) -> str:
        return self.text.at(self.text.argument("left"), offset, self._stored)

    @property
    def _stored(self) -> Element:
        """How a bias is stored: as sums are, but for bf16, which has its own."""
        return self.types.out

    def _vectors(self, size: int, offsets: tuple[Number, Number], bias_step: int) -> None:
        text, out = self.text, self.types.out
        one = None
        if self.what.bias_steps and not bias_step:
            one = text.spread(text.load_one(self._bias(offsets[1]), self._stored))

        def at(start: Number, mask: str | None) -> None:
            place = text.at(text.argument("out"), text.add(offsets[0], start), out)
            value = text.load(place, out, mask)
            if self.what.bias_steps:
                more = one
                if more is None:
                    more = text.load(self._bias(text.add(offsets[1], start)), self._stored, mask)
                value = text.plus(value, more)
            text.store(place, text.positive(value) if self.what.relu else value, out, mask)

        whole = size // text.lanes * text.lanes
        if whole:
            with text.loop(0, whole, text.lanes) as loop:
                at(loop.index, None)
        if size > whole:
            at(whole, text.first_lanes(size - whole))

    def _point(self, offsets: tuple[Number, Number]) -> None:
        text, out = self.text, self.types.out
        place = text.at(text.argument("out"), offsets[0], out)
        value = text.load_one(place, out)
        if self.what.bias_steps:
            value = text.plus(value, text.load_one(self._bias(offsets[1]), self._stored))
        text.store_one(place, text.positive(value) if self.what.relu else value, out)


def bias_steps(dims: Sequence[str], steps: Sequence[int], axes: Sequence[str]) -> tuple[int, ...]:
    """Say how a bias over some dimensions moves with each axis of the output.

    Examples
    --------
    >>> bias_steps(("K",), (2,), ("N", "K", "P", "Q"))
    (0, 2, 0, 0)
    """
    moves = dict(zip(dims, steps, strict=True))
    return tuple(moves.get(axis, 0) for axis in axes)
