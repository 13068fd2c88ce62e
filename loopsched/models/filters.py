"""What a cache is asked for through the levels inside it.

An outer cache sees only what the next inner level lacks.  What that level keeps grows
old outside unseen, and may be evicted there before it is asked for again.  So a cache
may count on data from one body to the next only where the levels inside certainly ask
for all of it anew in each body: because they start cold there, because more than they
hold has come in between, or because it is touched for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopsched.machines.levels import Level
from loopsched.models.asked import ALWAYS, Asked
from loopsched.models.reuse import certain_cuts, fit_cut, fit_position, run_outside
from loopsched.models.traffic import Promise, Room
from loopsched.models.view import View
from loopsched.problems.problem import Tensor


def asked_of_all(view: View, *, is_held: bool = False) -> Asked:
    """What is asked of a level that has none inside; how often is left out if it ``is_held``."""
    tensors = view.problem.tensors
    every = {} if is_held else {t.name: view.visits_elems(t, len(view.cuts)) for t in tensors}
    always = dict.fromkeys([tensor.name for tensor in tensors], ALWAYS)
    return Asked(every, always, always, ALWAYS, ALWAYS)


def asked_through(
    view: View, room: Room, level: Level, asked: Asked | None, promised: Mapping[str, Promise]
) -> Asked:
    """What a level asks the next outer one for, being asked itself by those inside.

    ``asked`` is None where none is inside; ``promised`` is what it moves at most of each
    tensor.
    """
    problem = view.problem
    held = room.held(problem)
    asked = asked or asked_of_all(view, is_held=bool(held))
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
