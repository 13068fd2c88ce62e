"""What a cache is asked for through the levels inside it.

An outer cache sees only what the next inner level lacks.  What that level keeps grows
old outside unseen, and may be evicted there before it is asked for again.  So a cache
may count on data from one body to the next only where the levels inside certainly ask
for all of it anew in each body: because they start cold there, because more than they
hold has come in between, or because it is touched for the first time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from loopsched.arch import Level
from loopsched.models.reuse import Item, certain_cuts, fit_cut, fit_position, run_outside
from loopsched.models.traffic import Promise, Room
from loopsched.models.view import View
from loopsched.problem import Tensor

ALWAYS = 2**62
"""Further inward than any loop: what is asked for at every access."""


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
        output = view.indexed[view.problem.output]  # only where bodies part them
        apart = (c.position for c in view.cuts if c.dim in output and c.position >= self.late)
        return min(apart, default=ALWAYS - 1)

    def item(self, view: View, position: int) -> Item:
        """Find the item that a region is in, and what is written back at its end."""
        start = max((at for at in self.cold if at < position), default=0)
        if position <= self._parted(view):
            return Item(start, 0)
        busy = {loop.level for loop in view.inner_loops}
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


def asked_of_all(view: View) -> Asked:
    """What is asked of a level that has none inside."""
    names = [tensor.name for tensor in view.problem.tensors]
    every = {t.name: view.visits_elems(t, len(view.cuts)) for t in view.problem.tensors}
    always = dict.fromkeys(names, ALWAYS)
    return Asked(every, always, always, ALWAYS, ALWAYS)


def asked_through(
    view: View, room: Room, level: Level, asked: Asked, promised: Mapping[str, Promise]
) -> Asked:
    """What a level asks the next outer one for, being asked itself by those inside.

    ``promised`` is what it moves at most of each tensor.
    """
    problem = view.problem
    held = room.held(problem)
    if not held:
        return asked
    visits, anew, whole = dict(asked.visits), dict(asked.anew), asked.whole
    through = level.write_policy == "through" and level.accumulate == "level"
    for tensor in problem.tensors:
        part, is_output = promised[tensor.name], tensor.name == problem.output
        moved = part.write_bytes if is_output else part.read_bytes
        visits[tensor.name] = moved // tensor.element_bytes
    item = fit_position(view, view.boundary)
    cold = (*asked.cold, item) if view.boundary else asked.cold
    once = dict(asked.once)
    for tensor in held:
        is_once = visits[tensor.name] == view.visits_elems(tensor, view.boundary)
        once[tensor.name] = item if is_once else ALWAYS
    if level.kind == "scratchpad":
        fit = fit_cut(view, room, 2 if level.double_buffered else 1) or 0
        whole = min(whole, _position(view, fit))
        for tensor in held:
            run = run_outside(view, tensor, fit)
            upto = run.stop - (1 if run.slide and level.halo_reuse else 0)
            anew[tensor.name] = _position(view, upto)
        return Asked(visits, anew, once, asked.late, whole, asked.waiting, cold)
    deepest = min((asked.anew[tensor.name] for tensor in held), default=ALWAYS)
    for tensor in held:
        if not (through and tensor.name == problem.output):
            anew[tensor.name] = _asks_anew(view, room, tensor, deepest)
    keeps_sums = problem.output_tensor in held and not through
    if not keeps_sums:
        return Asked(visits, anew, once, asked.late, whole, asked.waiting, cold)
    size = dict(room.own_bytes).get(problem.output, room.shared_bytes)
    waiting = (*asked.waiting, (size, view.own_units))
    return Asked(visits, anew, once, min(asked.late, item), whole, waiting, cold)


def _asks_anew(view: View, room: Room, tensor: Tensor, deepest: int) -> int:
    """Find the innermost region whose visits all make a cache ask for a tensor anew."""
    upto = view.boundary  # items start cold
    for at in certain_cuts(view, room, tensor):
        if view.cuts[at].position < deepest:  # each iteration is asked of this cache
            upto = max(upto, at)
    visits = view.visits_elems(tensor, upto)
    while upto < len(view.cuts) and not view.cuts[upto].is_parallel:
        if view.visits_elems(tensor, upto + 1) > visits:
            break
        upto += 1  # no element is touched by two visits
    return _position(view, upto)


def _position(view: View, upto: int) -> int:
    """Translate a number of cuts into the innermost loop position of that region."""
    return view.cuts[upto].position if upto < len(view.cuts) else ALWAYS
