"""What a cache is asked for, and the items in which the levels inside start cold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from loopsched.models.view import View
from loopsched.problems.problem import Tensor

ALWAYS = 2**62
"""Further inward than any loop: what is asked for at every access."""


class Item(NamedTuple):
    """What a body is inside of: the levels further in start cold where it begins.

    Parameters
    ----------
    start : int
        Loop position.
    late_bytes : int
        Sums of earlier bodies that are written back where it ends.
    """

    start: int
    late_bytes: int


WHOLE = Item(0, 0)
"""The whole nest."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a cache is asked for by the levels inside it.

    Parameters
    ----------
    visits : mapping of str to int
        Elements of each tensor that are asked for at most.
    anew : mapping of str to int
        Loop position for each tensor: every visit to a region that begins there,
        or further out, asks for all of the tensor's elements in it.
    once : mapping of str to int
        Loop position for each tensor: a region that begins there asks for each of its
        elements at most once; `ALWAYS` if that is not known.
    late : int
        Loop position of regions at whose end all sums have been written back; within
        smaller ones, those of earlier bodies may still come.
    waiting : tuple of (bytes, units)
        What one instance of each level inside that writes back late can hold of sums, and
        the units that have such a level.
    cold : tuple of int
        Loop positions of the items that levels inside start cold.
    whole : int
        Loop position of the tiles that scratchpads inside load at once: within
        smaller regions, more than their own data comes in.
    """

    visits: Mapping[str, int]
    anew: Mapping[str, int]
    once: Mapping[str, int]
    late: int
    whole: int
    waiting: tuple[tuple[int, frozenset[str]], ...] = ()
    cold: tuple[int, ...] = ()

    @property
    def is_filtered(self) -> bool:
        """Whether any access is kept from the cache."""
        return any(at < ALWAYS for at in (self.whole, self.late, *self.anew.values()))

    def inmost(self, view: View) -> dict[str, int]:
        """Find the loop position for each tensor inside which no body tells what is brought in."""
        late = self._parted(view)
        return {name: min(at, late) for name, at in self.anew.items()}

    def _parted(self, view: View) -> int:
        """Find the loop position inside which sums of earlier bodies may come."""
        if self.late == ALWAYS:
            return ALWAYS
        output = view.problem.output_tensor.dims  # only where bodies part them
        apart = (c.position for c in view.cuts if c.dim in output and c.position >= self.late)
        return min(apart, default=ALWAYS - 1)

    def item(self, view: View, position: int) -> Item:
        """Find the item that a region is in, and what is written back at its end."""
        start = max((at for at in self.cold if at < position), default=0)
        if position <= self._parted(view):
            return Item(start, 0)
        busy = {loop.unit for loop in view.inner_loops}
        waiting = sum(
            size * math.prod(view.instances.get(unit, 1) for unit in units & busy)
            for size, units in self.waiting
        )
        sums = view.footprint_bytes(view.problem.output_tensor, view.n_cuts(self.late))
        return Item(start, min(waiting, sums))

    def most(self, view: View, tensor: Tensor) -> int:
        """Bound the elements that a cache brings in, if it holds one body: what is asked for.

        Instances that ask once do so in the same body.
        """
        asked = self.visits[tensor.name]
        if self.once[tensor.name] == ALWAYS or not all(axis.is_plain for axis in tensor.axes):
            return asked
        outside = sum(cut.position < self.once[tensor.name] for cut in view.cuts)
        return min(asked, view.visits_elems(tensor, outside))
