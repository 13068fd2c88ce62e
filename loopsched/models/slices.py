"""Slices of a nest too long to replay: each alone, and what it finds of the ones before.

A slice is what some outer loops leave: many visits, of few kinds.  Replayed from a
cold start, a slice of each kind tells what all of them bring in again by
themselves, whatever came before.  What a slice touches for the first time may
still be there from earlier slices; visits of whole slices bound that.  A cache
holds no more than its size at the start of a slice, so that slices much larger
than the cache say nearly all.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopsched.models.replay import Item, Nest, Pool, Replayed, items_of, pools_of, replay_at
from loopsched.models.traffic import Room
from loopsched.models.view import View
from loopsched.problems.footprint import footprint_elems
from loopsched.problems.problem import Tensor


def replay_slices(view: View, room: Room, budget: int) -> Replayed | None:
    """Replay a nest by its slices: the largest ones that a budget allows.

    Parameters
    ----------
    view : View
    room : Room
    budget : int
        Accesses to follow, about.

    Returns
    -------
    Replayed or None
        Its ``point`` is its ``high``.  None if there are no slices, or too many
        kinds of them.
    """
    items = items_of(view)
    if items is None:
        return None
    nest = Nest(view, items)
    pools = pools_of(view.problem, room)
    n_tensors = len(view.problem.tensors)
    for depth in nest.depths():
        if depth == 0 or any(loop.group is not None for loop in nest.loops[:depth]):
            continue  # the steps of a wave are no items
        inside = view.sliced(depth)
        kinds = items_of(inside)
        if kinds is None:
            continue
        alone = Nest(inside, kinds)
        if sum(alone.boxes(kind, alone.deepest) for kind in kinds) * n_tensors > budget:
            continue
        inner = replay_at(alone, kinds, alone.deepest, pools, budget, is_point=True)
        if inner is None:
            continue
        visits = sum(nest.boxes(item, depth) for item in items)
        first = None
        if visits * n_tensors <= budget:
            first = replay_at(nest, items, depth, pools, budget, is_point=False)
        return _together(items, kinds, pools, inner, first)
    return None


def _together(
    items: Sequence[Item],
    kinds: Sequence[Item],
    pools: Sequence[Pool],
    inner: Replayed,
    first: Replayed | None,
) -> Replayed:
    """Add what slices bring in again to what they find missing at first."""
    low, high = {}, {}
    for pool in pools:
        for tensor in pool.tensors:
            name = tensor.name
            touched = sum(kind.count * _elems(tensor, kind) for kind in kinds)
            held = pool.capacity_bytes // tensor.element_bytes
            missing = max(
                sum(kind.count * max(0, _elems(tensor, kind) - held) for kind in kinds),
                sum(item.count * _elems(tensor, item) for item in items),
                first.low[name] if first else 0,
            )
            at_most = min(touched, first.anew[name]) if first else touched
            again = inner.point[name] - touched
            low[name], high[name] = again + missing, again + at_most
    return Replayed(low, high, high, fits=True)


def _elems(tensor: Tensor, item: Item) -> int:
    return footprint_elems(tensor, item.start, item.length)
