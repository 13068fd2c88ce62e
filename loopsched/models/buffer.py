"""What crosses the outer boundary of one buffer: a cache or a scratchpad.

For a cache, closed forms (`loopsched.models.reuse`) give a promise and a first
bracket, and a replay of the schedule's bodies (`loopsched.models.replay`) narrows
the bracket.  That is done when somebody asks for it: a search does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import CapacityError, ScheduleError
from loopsched.models.asked import ALWAYS, Asked
from loopsched.models.places import check_held
from loopsched.models.reuse import (
    certain_visits,
    fit_cut,
    fit_position,
    guaranteed_visits,
    placed_visits,
    steady_visits,
)
from loopsched.models.traffic import Bracket, Moved, Promise, Room, TensorTraffic
from loopsched.models.view import View, view_of
from loopsched.nests.nest import Place, Schedule
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem

Policy = Literal["lru", "explicit"]
POLICIES: tuple[Policy, ...] = ("lru", "explicit")

EFFORT = 2**20
"""Accesses of tiles that are replayed for a bracket, about: some tenths of a second at most."""

QUICK = 2**15
"""The same for what a search returns: a millisecond a level."""

PROMISE_EFFORT = 2**19
"""The same for the promise of waves that end within a loop."""


@dataclass(frozen=True)
class Traffic(Moved):
    """Traffic of all tensors across one boundary.

    Parameters
    ----------
    promised : mapping of str to Promise
    fit_position : int
        Position of the outermost loop whose whole region fits; the number of
        loops if only single points do.  If tiles are placed one by one, the
        innermost place.
    working_set_bytes : int
        Footprint of that region, or of the tiles, all tensors together.
    """

    promised: Mapping[str, Promise]
    fit_position: int
    working_set_bytes: int
    _finder: Finder = field(repr=False, compare=False)

    @cached_property
    def tensors(self) -> Mapping[str, TensorTraffic]:
        """Bracket of each tensor's traffic."""
        return self._finder.tensors()

    @property
    def view(self) -> View:
        """The schedule as the buffer sees it."""
        return self._finder.view

    @property
    def room(self) -> Room:
        """What the buffer offers to the problem's tensors."""
        return self._finder.room


@dataclass(frozen=True, slots=True)
class Finder:
    """What it takes to bracket a buffer's traffic, once it is asked for."""

    view: View
    room: Room
    is_placed: bool
    visits: Mapping[str, int]
    effort: int
    asked: Asked | None

    def tensors(self) -> dict[str, TensorTraffic]:
        """Bracket each tensor's traffic."""
        if self.is_placed:
            brackets = {name: Bracket.exact(count) for name, count in self.visits.items()}
        else:
            brackets = _cache_visits(self.view, self.room, self.visits, self.effort, self.asked)
        problem = self.view.problem
        found = {}
        for tensor in self.room.held(problem):
            size, visits = tensor.element_bytes, brackets[tensor.name]
            moved = Bracket(visits.low * size, visits.point * size, visits.high * size)
            if tensor.name == problem.output:
                first = tensor_bytes(problem, tensor)  # first visits bring nothing in
                back = Bracket(moved.low - first, moved.point - first, moved.high - first)
                found[tensor.name] = TensorTraffic(tensor.name, back, moved)
            else:
                found[tensor.name] = TensorTraffic(tensor.name, moved, Bracket.exact(0))
        return found


def traffic(
    problem: Problem,
    schedule: Schedule,
    *,
    capacity_bytes: int,
    policy: Policy = "lru",
    halo_reuse: bool = True,
    double_buffered: bool = False,
    effort: int = EFFORT,
) -> Traffic:
    """Find what a schedule moves between memory and one buffer under it.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Spatial loops, too, are taken as sequential (`loopsched.evaluate` knows a machine's
        instances). Tiles may be placed one by one, in one scratchpad.
    capacity_bytes : int, bytes
        For all tensors together.
    policy : {'lru', 'explicit'}
        A cache that evicts the least recently used, or a scratchpad into which
        tiles are placed.
    halo_reuse : bool
        Explicit only: whether the overlap of neighbouring tiles stays.
    double_buffered : bool
        Explicit only: whether each tile takes twice its size.
    effort : int
        LRU only: how many accesses of tiles may be replayed to narrow the
        bracket.  Nests of fewer accesses are exact; 0: closed forms only.

    Returns
    -------
    Traffic
        Reads, and writes including the flush at the end.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem, the policy is unknown, or
        nothing fits a scratchpad.

    See Also
    --------
    evaluate, simulate, traffic_curve

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=8, n=8, k=8, element_bytes=1)
    >>> nest = parse_schedule("M:8 N:8 K:8 M:3 N:3 K:8", problem)
    >>> found = traffic(problem, nest, capacity_bytes=90)
    >>> found.bytes, found.promised_bytes
    (Bracket(low=320, point=320, high=320), 320)
    """
    check_policy(policy)
    for name, number in (("capacity_bytes", capacity_bytes), ("effort", effort)):
        if not is_count(number, 0):
            raise ScheduleError(f"{name} is {show(number)}; a whole number >= 0 is needed")
    view = view_of(problem, schedule.check(problem))
    room = Room.shared(capacity_bytes)
    if policy == "explicit":
        _check_one_level(schedule.places, room, problem)
        return explicit_traffic(
            view, room, schedule.places, halo_reuse=halo_reuse, double_buffered=double_buffered
        )
    schedule.check_even("a cache")
    return lru_traffic(view, room, effort=effort)


def _check_one_level(places: Sequence[Place], room: Room, problem: Problem) -> None:
    levels = list(dict.fromkeys(place.level for place in places))
    if len(levels) > 1:
        raise ScheduleError(f"one buffer is asked for, and tiles are placed in {' '.join(levels)}")
    ScheduleError.refuse(
        "schedule", check_held(places, (tensor.name for tensor in room.held(problem)))
    )


def check_policy(policy: object) -> None:
    """Refuse a policy that does not exist.

    Raises
    ------
    ScheduleError
        If it is neither of `POLICIES`.
    """
    if policy not in POLICIES:
        raise ScheduleError(f"policy '{policy}' is unknown; {near(policy, POLICIES)}")


def explicit_traffic(
    view: View,
    room: Room,
    places: Sequence[Place] = (),
    *,
    halo_reuse: bool = True,
    double_buffered: bool = False,
) -> Traffic:
    """Find the traffic of a scratchpad into which tiles are placed.

    Each tensor's tile is what the loops inside its place touch of it; without
    places, what the loops of the outermost region that fits touch.

    Of a tile, what the next one of the same sweep shares with it is kept, and no more:
    where a stride leaves gaps that later tiles fill, those load what is between.

    Raises
    ------
    CapacityError
        If not even the data of one point fits, or the tiles do not fit where
        they are placed.
    """
    copies = 2 if double_buffered else 1
    tensors = room.held(view.problem)
    if places:
        upto = {place.tensor: view.n_cuts(place.position) for place in places}
        fit = max(upto.values())
        _check_fits(view, room, upto, places[0].level, copies)
    else:
        found = fit_cut(view, room, copies)
        if found is None:
            raise CapacityError("not even the operands of one point fit into the scratchpad")
        fit, upto = found, {tensor.name: found for tensor in tensors}
    visits = {t.name: placed_visits(view, t, upto[t.name], slides=halo_reuse) for t in tensors}
    held = sum(view.footprint_bytes(tensor, upto[tensor.name]) for tensor in tensors)
    return _traffic(view, room, fit, visits, held, is_placed=True)


def _check_fits(view: View, room: Room, upto: Mapping[str, int], level: str, copies: int) -> None:
    needs = {
        tensor.name: copies * view.footprint_bytes(tensor, upto[tensor.name])
        for tensor in room.held(view.problem)
    }
    if room.fits(needs):
        return
    own = dict(room.own_bytes)
    faults = [
        f"the tile of '{name}' takes {need} B, its own capacity is {own[name]} B"
        for name, need in needs.items()
        if name in own and need > own[name]
    ]
    shared = {name: need for name, need in needs.items() if name not in own}
    if sum(shared.values()) > room.shared_bytes:
        parts = ", ".join(f"{name} {need} B" for name, need in shared.items())
        faults.append(
            f"the tiles placed there take {sum(shared.values())} B ({parts}), its capacity is "
            f"{room.shared_bytes} B"
        )
    twice = " (double buffered: every tile counts twice)" if copies > 1 else ""
    raise CapacityError.joined(f"level '{level}'{twice}", faults)


class Closed(NamedTuple):
    """What closed forms find of a cache whose waves end with whole iterations.

    Parameters
    ----------
    fit : int or None
        As `fit_cut` finds it.
    visits, behind : dict of str to int
        As `promised_visits` finds them: for a cache that sees every access, and behind the
        levels inside it; that only if something fits.
    """

    fit: int | None
    visits: dict[str, int]
    behind: dict[str, int]


def lru_traffic(
    view: View,
    room: Room,
    *,
    effort: int = EFFORT,
    asked: Asked | None = None,
    closed: Closed | None = None,
) -> Traffic:
    """Bracket the traffic of a cache that evicts the least recently used.

    ``asked`` is what the levels inside let it see; without, it sees every access.
    ``closed`` is left out if it is not known yet.
    """
    fit = closed.fit if closed else fit_cut(view, room)
    visits = _closed_visits(view, room, fit, known=closed.visits if closed else None)
    if asked is not None and asked.is_filtered:
        behind = closed.behind if closed else None
        visits = _filtered(view, room, fit, visits, asked, behind)
    fit = len(view.cuts) if fit is None else fit
    held = sum(view.footprint_bytes(tensor, fit) for tensor in room.held(view.problem))
    return _traffic(view, room, fit, visits, held, is_placed=False, effort=effort, asked=asked)


def _closed_visits(
    view: View,
    room: Room,
    fit: int | None,
    asked: Asked | None = None,
    known: dict[str, int] | None = None,
) -> dict[str, int]:
    visits = promised_visits(view, room, fit, asked) if known is None else known
    is_whole = fit is not None and fit <= view.boundary
    is_merged = fit is None and any(cut.is_parallel for cut in view.cuts)
    if is_merged or not (is_whole or view.is_aligned):
        # Not what the closed form speaks of: waves end within an iteration, or what
        # one wave needs at a time does not fit.
        high = _raised(view, room, visits, asked)
        apart = _list_by_list(view, room, asked) if high != visits else {}
        visits = {n: max(count, min(high[n], apart.get(n, high[n]))) for n, count in visits.items()}
    return visits


def _list_by_list(view: View, room: Room, asked: Asked | None) -> dict[str, int]:
    """Count what lists of items bring in at most, each from a cold start; {}: not known.

    Lists of other lengths run in other waves, so that a rest may fall out of step with the
    waves of the whole lists; by itself each kind of list may well be what the closed form
    speaks of.  A cache that evicts the least recently used brings in no more for what it
    held before.
    """
    total: dict[str, int] = {}
    for part, many in view.lists:
        found = _closed_visits(part, room, fit_cut(part, room), asked)
        for name, count in found.items():
            total[name] = total.get(name, 0) + many * count
    return total


def _filtered(
    view: View,
    room: Room,
    fit: int | None,
    visits: dict[str, int],
    asked: Asked,
    behind: dict[str, int] | None,
) -> dict[str, int]:
    """Raise what holds for a cache that sees all to what holds behind the levels inside."""
    if fit is None or fit_position(view, fit) > asked.whole:
        certain = dict(asked.visits)  # tiles come in at once that no body here holds
    else:
        closed = _closed_visits(view, room, fit, asked, behind)
        certain = {
            t.name: min(closed[t.name], asked.most(view, t)) for t in room.held(view.problem)
        }
    return {name: max(count, certain[name]) for name, count in visits.items()}


def _raised(
    view: View, room: Room, visits: Mapping[str, int], asked: Asked | None
) -> dict[str, int]:
    """Raise what a closed form finds to what holds for waves that run on."""
    from loopsched.models.replay import is_within

    high = _replayed(view, room, PROMISE_EFFORT, asked, visits)
    if len(high) < len(visits) or not is_within(high, visits):
        alone = _each_alone(view, room, asked)
        high = {name: min(count, high.get(name, count)) for name, count in alone.items()}
    return {name: max(count, high[name]) for name, count in visits.items()}


def _replayed(
    view: View,
    room: Room,
    effort: int,
    asked: Asked | None,
    enough: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Bound tensors by replays of bodies that ask for all of each anew, as far as they tell."""
    from loopsched.models.replay import replay

    found: dict[str, int] = {}
    inmost = asked.inmost(view) if asked else {}
    limits = {t.name: inmost.get(t.name, ALWAYS) for t in room.held(view.problem)}
    for limit in dict.fromkeys(limits.values()):
        replayed = replay(view, room, effort, enough, limit)
        high = (replayed.high if replayed else None) or {}
        found |= {name: count for name, count in high.items() if limits[name] == limit}
    return found


def promised_visits(
    view: View, room: Room, fit: int | None = None, asked: Asked | None = None
) -> dict[str, int]:
    """Count the elements that a cache brings in at most, waves ending with whole iterations."""
    fit = fit_cut(view, room) if fit is None else fit
    if fit is None:  # nothing is ever reused for certain
        return {t.name: view.visits_elems(t, len(view.cuts)) for t in room.held(view.problem)}
    return guaranteed_visits(view, room, fit, asked)


def _traffic(
    view: View,
    room: Room,
    fit: int,
    visits: Mapping[str, int],
    held: int,
    *,
    is_placed: bool,
    effort: int = 0,
    asked: Asked | None = None,
) -> Traffic:
    problem = view.problem
    promised = {}
    for tensor in room.held(problem):
        moved = visits[tensor.name] * tensor.element_bytes
        if tensor.name == problem.output:
            promised[tensor.name] = Promise(moved - tensor_bytes(problem, tensor), moved)
        else:
            promised[tensor.name] = Promise(moved, 0)
    finder = Finder(view, room, is_placed, visits, effort, asked)
    return Traffic(promised, fit_position(view, fit), held, finder)


def _cache_visits(
    view: View, room: Room, promised: Mapping[str, int], effort: int, asked: Asked | None
) -> dict[str, Bracket]:
    """Bracket the elements of each tensor that a cache brings in."""
    tensors = room.held(view.problem)
    low = {tensor.name: certain_visits(view, room, tensor) for tensor in tensors}
    high = dict(promised)
    fit = fit_cut(view, room)
    at = len(view.cuts) if fit is None else fit
    point = {t.name: steady_visits(view, t, at, slides=fit is not None) for t in tensors}
    if effort and low != high:
        from loopsched.models.replay import narrower, replay
        from loopsched.models.slices import replay_slices

        whole = replay(view, room, effort)
        slices = None if whole and whole.is_closed() else replay_slices(view, room, effort)
        point = whole.point if whole else point  # slices know too little of each other
        found = narrower(slices, whole) if whole and slices else whole or slices
        if found is not None:
            low = {name: max(count, found.low[name]) for name, count in low.items()}
        most = (found.high if found is not None else None) or {}
        if asked is not None and asked.is_filtered:
            most = {} if asked.whole < ALWAYS else _replayed(view, room, effort, asked)
        high = {name: min(count, most.get(name, count)) for name, count in high.items()}
    return {
        name: Bracket(low[name], min(max(point[name], low[name]), high[name]), high[name])
        for name in low
    }


def _each_alone(view: View, room: Room, asked: Asked | None) -> dict[str, int]:
    """Bound what instances in lock-step bring in, each in its share of the room.

    Between two uses of an element by one instance, the others go through steps
    like its own, so an n-th of the room that is enough for one is enough for all.
    """
    alone, n = view.one_of_those_inside()
    return promised_visits(alone, room.divided(n), asked=asked)
