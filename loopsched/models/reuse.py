"""The reuse model in closed form: what one buffer's schedule lets it keep.

Derived here from the nest itself, after model.md of the project's design notes:

* The *body* at a position is the region inside it.  If its working set fits,
  everything inside one visit of the body is loaded once.
* Between consecutive visits of the body, a tensor that the loop in between does
  not index stays, and a window that slides keeps its halo.  That needs room for
  the *reuse window*: the parts of two consecutive bodies that are touched
  between two uses of an element.

`placed_visits` is what a scratchpad loads that keeps, of the tile before, what the next
one shares with it.  `steady_visits` takes the reuse between bodies for granted once the
body fits, whole sweeps of a window included.
`guaranteed_visits` grants it only where the whole of two consecutive bodies
fits, which is enough for any order of accesses in an LRU cache.
`certain_visits` charges a visit only where more than the capacity is touched, in
any order, since the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from loopsched.models.asked import WHOLE, Asked, Item
from loopsched.models.traffic import Room
from loopsched.models.view import Cut, View
from loopsched.problems.footprint import (
    axis_count,
    is_clipped,
    reach,
    segment_lengths,
    tensor_bytes,
)
from loopsched.problems.problem import Axis, Problem, Tensor


def fit_cut(view: View, room: Room, copies: int = 1) -> int | None:
    """Find the outermost cut whose body fits; None if not even one point does."""
    tensors = room.held(view.problem)
    upto = view.boundary
    needs = {t.name: copies * view.footprint_bytes(t, upto) for t in tensors}
    while not room.fits(needs):
        if upto == len(view.cuts):
            return None
        dim = view.cuts[upto].dim
        upto += 1
        for tensor in tensors:
            if dim in tensor.dims:  # the others stay as large
                needs[tensor.name] = copies * view.footprint_bytes(tensor, upto)
    return upto


def visits_bytes(problem: Problem, visits: Mapping[str, int]) -> int:
    """Turn elements brought in into bytes read and written, all tensors together."""
    total = 0
    for name, elems in visits.items():
        tensor = problem.tensor(name)
        is_output = name == problem.output
        total += elems * tensor.element_bytes * (1 + is_output)
        if is_output:
            total -= tensor_bytes(problem, tensor)  # first visits bring nothing in
    return total


def fit_position(view: View, upto: int) -> int:
    """Translate a number of cuts into a loop position of the schedule."""
    if upto == 0:
        return 0
    return view.cuts[upto - 1].position + 1


class Run(NamedTuple):
    """The loops just outside a body that leave a tensor where it is.

    Parameters
    ----------
    inner : tuple of Cut
        Sequential cuts outside the body that do not index the tensor, up to
        the first one that does.
    stop : int
        Number of cuts outside all of them.
    slide : Cut or None
        The cut that ended the run, if the tensor's window slides along it.
    """

    inner: tuple[Cut, ...]
    stop: int
    slide: Cut | None


def run_outside(view: View, tensor: Tensor, upto: int, start: int = 0) -> Run:
    """Find the run of cuts outside a body that do not index a tensor, from loop ``start`` on."""
    key = ("run", tensor.name, upto, start)
    found: Run | None = view.known.get(key)
    if found is None:
        found = view.known[key] = _new_run_outside(view, tensor, upto, start)
    return found


def _new_run_outside(view: View, tensor: Tensor, upto: int, start: int) -> Run:
    inner: list[Cut] = []
    indexed = tensor.dims
    while upto > view.boundary and view.cuts[upto - 1].position >= start:
        cut = view.cuts[upto - 1]
        if not cut.is_parallel:
            if cut.dim in indexed:
                slides = cut.dim in tensor.sliding
                return Run(tuple(inner), upto, cut if slides else None)
            inner.append(cut)
        upto -= 1
    return Run(tuple(inner), upto, None)


def placed_visits(view: View, tensor: Tensor, upto: int, *, slides: bool) -> int:
    """Count the elements that a scratchpad loads: of the tile before, it keeps what it is told."""
    run = run_outside(view, tensor, upto)
    if slides and run.slide:
        return view.slid_elems(tensor, run.stop)
    return view.visits_elems(tensor, run.stop)


def steady_visits(view: View, tensor: Tensor, upto: int, *, slides: bool) -> int:
    """Count the elements that a cache brings in if all that could stay does."""
    run = run_outside(view, tensor, upto)
    return view.visits_elems(tensor, run.stop - (1 if slides and run.slide else 0))


def guaranteed_visits(
    view: View, room: Room, fit: int, asked: Asked | None = None
) -> dict[str, int]:
    """Take the best body: fewest bytes in all, with only guaranteed reuse.

    A body inside the loop positions ``asked.anew`` may ask for nothing that an earlier one
    asked for: only what stays until its last use is kept (`loopsched.models.filters`).
    """
    tensors = room.held(view.problem)
    weight = {t.name: t.element_bytes * (1 + (t.name == view.problem.output)) for t in tensors}
    best: dict[str, int] | None = None
    least = 0
    for upto in range(fit, len(view.cuts) + 1):
        position = fit_position(view, upto)
        item = asked.item(view, position) if asked else WHOLE
        visits = {
            t.name: _lasting_at(view, room, t, upto, item)
            if asked is not None and position > asked.anew[t.name]
            else _guaranteed_at(view, room, t, upto, item)
            for t in tensors
        }
        total = sum(weight[name] * count for name, count in visits.items())
        if best is None or total < least:
            best, least = visits, total
        steady = (weight[t.name] * steady_visits(view, t, upto, slides=True) for t in tensors)
        if sum(steady) >= least:  # a smaller body has no fewer visits
            break
    return best or {}


def _guaranteed_at(view: View, room: Room, tensor: Tensor, upto: int, item: Item) -> int:
    key = ("guaranteed", tensor.name, upto, room, item)
    found: int | None = view.known.get(key)
    if found is None:
        found = view.known[key] = _new_guaranteed_at(view, room, tensor, upto, item)
    return found


def _new_guaranteed_at(view: View, room: Room, tensor: Tensor, upto: int, item: Item) -> int:
    run = run_outside(view, tensor, upto)
    slide = run.slide
    if slide and is_gapless(view, tensor, slide, upto):
        between = (*run.inner, slide)
        if _stays(view, room, upto, between, item):
            # Windows side by side run into each other's stretches at another time.
            return view.visits_elems(tensor, run.stop - 1, apart=slide.dim)
    if not run.inner or _stays(view, room, upto, run.inner, item):
        return view.visits_elems(tensor, run.stop)
    return view.visits_elems(tensor, upto)


def _lasting_at(view: View, room: Room, tensor: Tensor, upto: int, item: Item) -> int:
    """Grant the reuse that holds whatever the levels inside keep.

    That of a run of equal bodies of an item, in each of which they ask for the same or for
    nothing; of a window's halo if all bodies that touch an element fit together.
    """
    run = run_outside(view, tensor, upto, item.start)
    is_steady = bool(run.inner) and _is_steady(view, run.inner)
    if is_steady and _stays(view, room, upto, run.inner, item):
        return view.visits_elems(tensor, run.stop)
    run = run_outside(view, tensor, upto)
    if run.slide and not run.inner and is_gapless(view, tensor, run.slide, upto):
        many = _n_touching(view, tensor, run.slide, upto)
        if _stays(view, room, upto, (run.slide,), item, many):
            return view.visits_elems(tensor, run.stop - 1, apart=run.slide.dim)
    return view.visits_elems(tensor, upto)


def _stays(
    view: View, room: Room, upto: int, between: tuple[Cut, ...], item: Item, many: int = 2
) -> bool:
    """Whether consecutive bodies fit together, and the sums that come where an item ends."""
    output, held = view.problem.output, room.held(view.problem)
    late = {output: item.late_bytes if between[-1].position < item.start else 0}
    ones = {t.name: view.footprint_bytes(t, upto) for t in held}
    most = {name: many * one + late.get(name, 0) for name, one in ones.items()}
    if room.fits(most):  # if they share nothing
        return True
    return room.fits(
        {
            t.name: _pair_bytes(view, t, ones[t.name], upto, between, many) + late.get(t.name, 0)
            for t in held
        }
    )


def _is_steady(view: View, run: tuple[Cut, ...]) -> bool:
    """Whether the bodies of a run are alike: one dimension, alone on its axes, in equal pieces."""
    dim = run[0].dim
    axes = [axis for tensor in view.problem.tensors for axis in tensor.axes if dim in axis.dims]
    if any(cut.dim != dim for cut in run) or not all(axis.is_plain for axis in axes):
        return False
    upto = view.cuts.index(run[0]) + 1
    lengths = segment_lengths(view.sizes[dim], tuple(cut.extent for cut in view.chain(dim, upto)))
    return len(run) == 1 or len(lengths) == 1


def _n_touching(view: View, tensor: Tensor, slide: Cut, upto: int) -> int:
    """Count the bodies of a sweep that may touch one element."""
    extents = view.extents(upto)
    (axis,) = (axis for axis in tensor.axes if slide.dim in axis.dims)
    width = sum(c * (extents[dim] - 1) for dim, c in axis.terms)
    (step,) = (c * extents[dim] for dim, c in axis.terms if dim == slide.dim)
    return width // step + 1


def is_gapless(view: View, tensor: Tensor, slide: Cut, upto: int) -> bool:
    """Whether a body touches an unbroken stretch where the window slides.

    Only then do the visits that touch an element follow one another.
    """
    extents = view.extents(upto)
    return all(_is_unbroken(axis, extents) for axis in tensor.axes if slide.dim in axis.dims)


def _is_unbroken(axis: Axis, extents: Mapping[str, int]) -> bool:
    moving = tuple((c, extents[dim]) for dim, c in axis.terms if extents[dim] > 1)
    if len(moving) <= 1:  # one dimension alone needs no bit set, however long it is
        return all(c == 1 for c, _ in moving)
    bits = reach(moving)
    return bits.bit_count() == bits.bit_length()


def _pair_bytes(
    view: View, tensor: Tensor, one: int, upto: int, between: tuple[Cut, ...], many: int
) -> int:
    """Bound what two or more bodies touch, one after the other by steps of the cuts between."""
    indexed = tensor.dims
    if not any(cut.dim in indexed for cut in between):
        return one
    if len(between) > 1 or view.cuts[upto - 1] is not between[0]:
        return many * one
    elems = 1
    dim = between[0].dim
    for axis in tensor.axes:
        if dim in axis.dims:
            elems *= _pair_on_axis(view, axis, upto, dim, many)
        else:
            elems *= view.largest(axis, upto)
    return min(many * one, elems * tensor.element_bytes)


def _pair_on_axis(view: View, axis: Axis, upto: int, dim: str, many: int) -> int:
    """Bound what neighbouring pieces of a dimension touch on its axis."""
    one = view.largest(axis, upto)
    extents = view.extents(upto)
    around = min([cut.extent for cut in view.chain(dim, upto - 1)], default=view.sizes[dim])
    extents[dim] = both = min(many * extents[dim], around)
    if not axis.is_plain:
        both = axis_count(replace(axis, size=None), {}, extents)
    both *= view.n_copies(axis, upto)
    return min(many * one, both, axis.size or both)


def certain_visits(view: View, room: Room, tensor: Tensor) -> int:
    """Count the visits whose data has certainly been evicted since the last one.

    Consider the loop ``r`` that indexes the tensor on an axis of its own.  In
    each execution of the region from ``r`` inward an element belongs to one
    iteration of ``r``; since its last use all other iterations have run.  If
    they touch more than the room, the whole region is fetched anew each time.
    """
    regions = (view.boundary, *certain_cuts(view, room, tensor))  # items start cold
    return max(view.visits_elems(tensor, upto) for upto in regions)


def certain_cuts(view: View, room: Room, tensor: Tensor) -> Iterator[int]:
    """List the regions, by their number of cuts, that are fetched anew at each visit."""
    if tensor.name in dict(room.own_bytes):
        return
    alone = lonely_dims(view.problem, tensor)
    for upto, dim, others in _all_between(view, room):
        if dim in alone and others + tensor.element_bytes > room.shared_bytes:
            yield upto


def _all_between(view: View, room: Room) -> list[tuple[int, str, int]]:
    """List cuts, each with its dimension and what all iterations but one touch at least.

    From where all that is touched fits, less does.
    """
    key = ("between", room.shared_bytes, room.own_bytes, room.passing)
    found: list[tuple[int, str, int]] | None = view.known.get(key)
    if found is None:
        found = view.known[key] = []
        own = dict(room.own_bytes)
        sharing = [t for t in room.held(view.problem) if t.name not in own]
        largest = max([tensor.element_bytes for tensor in sharing], default=0)
        is_split = any(cut.is_parallel for cut in view.cuts)
        for upto in range(view.boundary, 0 if is_split else len(view.cuts)):
            held = sum([view.footprint_bytes(tensor, upto) for tensor in sharing])
            if held + largest <= room.shared_bytes:
                break
            others = _least_between(view, sharing, upto)
            if others is not None:
                found.append((upto, view.cuts[upto].dim, others))
    return found


@lru_cache(maxsize=1024)
def lonely_dims(problem: Problem, tensor: Tensor) -> frozenset[str]:
    """Dimensions that alone move along an axis of a tensor."""
    moving = [_moving(problem, axis) for axis in tensor.axes]
    return frozenset(dims[0] for dims in moving if len(dims) == 1)


def _least_between(view: View, tensors: Sequence[Tensor], upto: int) -> int | None:
    """Bound from below what all iterations but one of a cut touch."""
    cut = view.cuts[upto]
    shortest = view.shortest(cut.dim, upto)
    if shortest <= cut.extent:
        return None
    total = 0
    for tensor in tensors:
        elems = 1
        for axis in tensor.axes:
            elems *= _least_on_axis(view, axis, cut, upto, shortest)
        total += elems * tensor.element_bytes
    return total


def _least_on_axis(view: View, axis: Axis, cut: Cut, upto: int, shortest: int) -> int:
    if cut.dim not in axis.dims:
        if axis.is_plain:
            return view.shortest(axis.dims[0], upto)
        return view.axis_extremes(axis, upto).smallest
    if axis.is_plain:
        return shortest - cut.extent
    if is_clipped(axis, view.sizes):
        return 0
    if len(_moving(view.problem, axis)) == 1:
        return shortest - cut.extent
    # The iterations before and after may overlap: count the longer side only.
    extents = {dim: view.shortest(dim, upto) for dim in axis.dims}
    extents[cut.dim] = max(1, (shortest - cut.extent) // 2)
    return axis_count(axis, {}, extents)


def _moving(problem: Problem, axis: Axis) -> tuple[str, ...]:
    """Dimensions of an axis that have more than one position."""
    return tuple(dim for dim in axis.dims if problem.size[dim] > 1)
