"""Work items for the instances of a unit: how to cut the parallel dimensions.

For compute time and for the data that items must get in, it is enough to look
at two ways of cutting a dimension of size D into n pieces (derived here):

* one list of ``n`` items of ``ceil(D/n)``: any other extent with as many
  pieces has larger items;
* a list of ``n`` items of ``floor(D/n)`` and a list for the rest: if the lists
  of a dimension are full of equal items, one list with all of them has no more
  waves; so only a rest smaller than an item can gain from a list of its own,
  and then the largest such item is best.

Every other choice of outer tiles and items takes as many steps or more, and
moves as much or more into the items.  What it may save is memory traffic.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from loopsched.base.arrays import Ints
from loopsched.problems.problem import Problem
from loopsched.scheduler.effort import Watch
from loopsched.scheduler.least import least_tables
from loopsched.scheduler.tables import Tables, trip_classes


@dataclass(frozen=True, slots=True)
class Items:
    """One way to cut a problem into work items.

    Parameters
    ----------
    extents : tuple of (str, int)
        Extents of an item along the dimensions that are cut.
    listed : tuple of (str, int)
        Extents of the full lists, where the rest is a list of its own.
    least_s : float, seconds
        Lower bound of the time of every schedule in which items are cut so.
    pieces : tuple of (str, int)
        How many items there are along each of these dimensions.
    """

    extents: tuple[tuple[str, int], ...]
    listed: tuple[tuple[str, int], ...]
    least_s: float
    pieces: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a machine works, for bounds on items.

    Parameters
    ----------
    instances : int
    macs_per_s : float
        Of one instance.
    inner_bytes_per_s : float
        Bandwidth into the items' own level, over all instances.
    floor_s : float, seconds
        A time that no schedule can beat for another reason.
    """

    instances: int
    macs_per_s: float
    inner_bytes_per_s: float
    floor_s: float = 0.0


def best_items(
    problem: Problem,
    spatial: tuple[str, ...],
    pace: Pace,
    *,
    below_s: float = float("inf"),
    collect: int = 0,
    watch: Watch | None = None,
    most: int = 2**62,
) -> tuple[tuple[Items, ...], int]:
    """Find the items with the least bound on time.

    Parameters
    ----------
    problem : Problem
    spatial : tuple of str
        Dimensions that may be cut.
    pace : Pace
    below_s : float, seconds
        Look only for bounds below this.
    collect : int
        0: only the best.  Otherwise up to so many, all below ``below_s``,
        best first.
    watch : Watch, optional
        What the work is charged to.
    most : int
        Nodes after which the best so far are returned.

    Returns
    -------
    items, nodes : tuple of Items, int
        The nodes are ``most`` or more if the search is not complete.
    """
    size = problem.size
    options = {dim: _best_cuts(size[dim]) for dim in _split_dims(problem, spatial)}
    candidates = tuple(
        tuple(sorted({cut.extent for cut in options[dim]}, reverse=True))
        if dim in options
        else (size[dim],)
        for dim in problem.dims
    )
    tables = least_tables(problem, candidates=candidates)
    where = {}
    for dim, cuts in options.items():
        place = {extent: at for at, extent in enumerate(candidates[problem.dims.index(dim)])}
        where[dim] = tuple(place[cut.extent] for cut in cuts)
    return _enumerate(options, tables, where, pace, below_s, collect, watch or Watch(), most)


def unlike_first(found: Sequence[Items]) -> list[Items]:
    """Order items by their bounds; of equal ones, those cut alike but along one dimension last.

    Examples
    --------
    >>> cuts = [(1, 80), (1, 81), (2, 40), (2, 41)]
    >>> items = [Items((), (), 1.0, (("N", n), ("M", m))) for n, m in cuts]
    >>> [tuple(dict(each.pieces).values()) for each in unlike_first(items)]
    [(1, 80), (2, 40), (1, 81), (2, 41)]
    """
    alike: Counter[tuple[float, tuple[tuple[str, int], ...]]] = Counter()
    ranked = []
    for items in found:
        kind = (items.least_s, items.pieces[:-1])
        ranked.append((items.least_s, alike[kind], items))
        alike[kind] += 1
    return [items for _, _, items in sorted(ranked, key=lambda one: one[:2])]


@dataclass(frozen=True, slots=True)
class _Cut:
    """Lists of ``listed`` along a dimension, cut into items of ``extent``."""

    size: int
    listed: int
    extent: int

    @property
    def lists(self) -> tuple[int, int, int, int, int]:
        """Full lists, items in each, their extent; items in the rest, their extent."""
        many, rest = divmod(self.size, self.listed)
        full = min(self.extent, self.listed)
        return (
            many, -(-self.listed // self.extent), full,
            -(-rest // self.extent), min(self.extent, rest),
        )  # fmt: skip

    @property
    def n_pieces(self) -> int:
        """Items along the dimension."""
        many, items, _, rest, _ = self.lists
        return many * items + rest


def _split_dims(problem: Problem, spatial: tuple[str, ...]) -> list[str]:
    size = problem.size
    split = [dim for dim in problem.dims if dim in spatial and size[dim] > 1]
    return sorted(split, key=lambda dim: size[dim])


@lru_cache(maxsize=256)
def _best_cuts(size: int) -> tuple[_Cut, ...]:
    """List the cuts that nothing beats (see above), fewest items first."""
    extents = trip_classes((size,))
    floors = {size // (-(-size // extent)) for extent in extents}
    floors |= {size // (size // extent) for extent in extents}
    found = [_Cut(size, size, extent) for extent in extents]
    found += [_Cut(size, size - size % e, e) for e in floors if size % e]
    return tuple(sorted(found, key=lambda cut: (-cut.extent, -cut.listed)))


@lru_cache(maxsize=256)
def _lists(size: int) -> Ints:
    """List what `_best_cuts` makes of a dimension, for the kernel."""
    import numpy as np

    return np.array([cut.lists for cut in _best_cuts(size)], dtype=np.int64)


def _enumerate(
    options: Mapping[str, tuple[_Cut, ...]],
    tables: Tables,
    where: Mapping[str, tuple[int, ...]],
    pace: Pace,
    below_s: float,
    collect: int,
    watch: Watch,
    most: int,
) -> tuple[tuple[Items, ...], int]:
    import numpy as np

    from loopsched.scheduler import _item_kernels as kernels

    problem, size = tables.problem, tables.problem.size
    split = list(options)
    row = {dim: at for at, dim in enumerate(problem.dims)}
    width = max([len(found) for found in options.values()], default=1)
    lists = np.ones((len(row), width, 5), dtype=np.int64)
    table_at = np.zeros((len(row), width), dtype=np.int64)
    n_options = np.zeros(len(row), dtype=np.int64)
    for dim, known in options.items():
        n_options[row[dim]] = len(known)
        lists[row[dim], : len(known)] = _lists(size[dim])
        table_at[row[dim], : len(known)] = where[dim]
    leaves = np.zeros((max(1, collect), max(1, len(split))), dtype=np.int64)
    leaf_s = np.full(len(leaves), np.inf)
    reduction = problem.macs // math.prod(size[dim] for dim in split)
    state = np.full(2 + max(1, len(split)), -1, dtype=np.int64)
    state[:2] = 0
    sums = kernels.Sums(
        tables.pieces, tables.axis_dims, tables.axis_stride, tables.axis_start, tables.total,
        tables.tensor_axes, tables.is_indexed, tables.weight, tables.constant,
    )  # fmt: skip
    cuts = kernels.Cuts(
        np.array([size[dim] for dim in problem.dims], dtype=np.int64),
        np.array([row[dim] for dim in split], dtype=np.int64),
        n_options, table_at, lists, reduction, problem.macs,
    )  # fmt: skip
    speed = kernels.Speed(pace.instances, pace.macs_per_s, pace.inner_bytes_per_s, pace.floor_s)
    kept = kernels.Kept(leaves, leaf_s, state, np.ones(len(split) + 1, dtype=np.float64))
    nodes = 0
    while state[0] >= 0 and nodes < most and not (collect and state[1] >= collect):
        below_s, seen = kernels.best_items(
            sums, cuts, speed, kept, below_s, collect > 0, watch.slice(most - nodes)
        )
        nodes += int(seen)
        watch.spend(int(seen))
    found = []
    for at in range(int(state[1])):
        chosen = {dim: options[dim][int(leaves[at, k])] for k, dim in enumerate(split)}
        found.append(_items_of(chosen, float(leaf_s[at])))
    found.sort(key=lambda items: items.least_s)
    return tuple(found), nodes


def _items_of(chosen: Mapping[str, _Cut], least_s: float) -> Items:
    return Items(
        tuple((dim, cut.extent) for dim, cut in chosen.items()),
        tuple((dim, cut.listed) for dim, cut in chosen.items() if cut.listed < cut.size),
        least_s,
        tuple((dim, cut.n_pieces) for dim, cut in chosen.items()),
    )
