"""Caches over one scratchpad, walked literally: what each boundary carries.

The scratchpad loads a tile whenever a loop that indexes the tensor goes on, keeping
what the tile before shares with it where the window slides, and stores what it lets
go of the output.  These loads and stores are all that the caches outside see.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from oracle import Element, Position, fit, walk

from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

Request = tuple[bool, Element]  # whether it is a store; what


def moved_behind(
    problem: Problem,
    schedule: Schedule,
    scratchpad_bytes: int,
    cache_bytes: Sequence[int],
    *,
    halo_reuse: bool = True,
) -> list[int] | None:
    """Bytes across the outer boundary of each cache, the innermost first; None: nothing fits."""
    requests = _tiles(problem, schedule, scratchpad_bytes, halo_reuse=halo_reuse)
    if requests is None:
        return None
    found = []
    for capacity in cache_bytes:
        requests = list(_cache(problem, requests, capacity))
        size = {tensor.name: tensor.element_bytes for tensor in problem.tensors}
        found.append(sum(size[name] for _, (name, _) in requests))
    return found


def _tiles(
    problem: Problem, schedule: Schedule, capacity: int, *, halo_reuse: bool
) -> list[Request] | None:
    """What a scratchpad loads and stores, in order."""
    found = fit(problem, schedule, capacity)
    if found is None:
        return None
    position, visits = found
    steps = [trip for trip, _ in walk(problem, schedule)]
    moves = [any(trip[at] for trip in steps) for at in range(len(schedule.loops))]
    held: dict[str, set[Element]] = {tensor.name: set() for tensor in problem.tensors}
    before: dict[str, Position] = {}
    seen: set[Element] = set()
    requests: list[Request] = []
    for key, sets in visits:
        for tensor in problem.tensors:
            name, is_output = tensor.name, tensor.name == problem.output
            goes_on = [
                at
                for at in range(position)
                if moves[at] and tensor.is_indexed_by(schedule.loops[at].dim)
            ]
            now = key[: goes_on[-1] + 1] if goes_on else ()
            if name in before and before[name] == now:
                continue
            dim = schedule.loops[goes_on[-1]].dim if goes_on else ""
            slides = halo_reuse and any(
                len(axis.terms) > 1 and dim in axis.dims for axis in tensor.axes
            )
            stays = held[name] if slides and before.get(name, ())[:-1] == now[:-1] else set()
            need = sets[name]
            if is_output:
                requests += [(True, one) for one in sorted(held[name] - (stays & need))]
            fresh = sorted(need - stays)
            requests += [(False, one) for one in fresh if not is_output or one in seen]
            seen |= need
            held[name], before[name] = need, now
    return requests + [(True, one) for one in sorted(held[problem.output])]


def _cache(problem: Problem, requests: Iterable[Request], capacity: int) -> Iterator[Request]:
    """What a cache that evicts the least recently used asks for; at the end, it writes back."""
    size = {tensor.name: tensor.element_bytes for tensor in problem.tensors}
    lines: OrderedDict[Element, bool] = OrderedDict()
    used = 0
    for is_store, one in requests:
        if one in lines:
            lines.move_to_end(one)
            lines[one] |= is_store
            continue
        if not is_store:
            yield False, one
        lines[one] = is_store
        used += size[one[0]]
        while used > capacity and lines:
            old, is_dirty = lines.popitem(last=False)
            used -= size[old[0]]
            if is_dirty:
                yield True, old
    yield from ((True, one) for one, is_dirty in lines.items() if is_dirty)
