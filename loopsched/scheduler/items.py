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

from dataclasses import dataclass

from loopsched.problem import Problem
from loopsched.scheduler.tables import tables_for, trip_classes, with_least_halos


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

    Returns
    -------
    items, nodes : tuple of Items, int
    """
    import numpy as np

    from loopsched.scheduler import _kernels

    size = problem.size
    split = [dim for dim in problem.dims if dim in spatial and size[dim] > 1]
    split.sort(key=lambda dim: size[dim])
    options = {dim: _options(size[dim]) for dim in split}
    candidates = tuple(
        tuple(sorted({extent for extent, _ in options[dim]}, reverse=True))
        if dim in options
        else (size[dim],)
        for dim in problem.dims
    )
    tables = with_least_halos(tables_for(problem, candidates=candidates))
    width = max([len(found) for found in options.values()], default=1)
    shape = (len(problem.dims), width)
    extents = np.ones(shape, dtype=np.int64)
    extent_at = np.zeros(shape, dtype=np.int64)
    is_cut = np.zeros(shape, dtype=np.int64)
    n_options = np.zeros(len(problem.dims), dtype=np.int64)
    row = {dim: at for at, dim in enumerate(problem.dims)}
    for dim in split:
        d = row[dim]
        n_options[d] = len(options[dim])
        for o, (extent, cut) in enumerate(options[dim]):
            extents[d, o] = extent
            extent_at[d, o] = candidates[d].index(extent)
            is_cut[d, o] = cut
    leaves = np.zeros((max(1, collect), max(1, len(split))), dtype=np.int64)
    leaf_s = np.full(len(leaves), np.inf)
    reduction = problem.macs
    for dim in split:
        reduction //= size[dim]
    kept, nodes = _kernels.best_items(
        tables.pieces, tables.axis_dims, tables.axis_stride, tables.axis_start, tables.total,
        tables.tensor_axes, tables.is_indexed, tables.weight, tables.constant,
        np.array([size[dim] for dim in problem.dims], dtype=np.int64),
        np.array([row[dim] for dim in split], dtype=np.int64), n_options, extent_at, is_cut,
        extents, pace.instances, reduction, problem.macs, pace.macs_per_s,
        pace.inner_bytes_per_s, pace.floor_s, below_s, collect > 0, leaves, leaf_s,
    )  # fmt: skip
    found = []
    for at in range(min(int(kept), len(leaves))):
        chosen = [options[dim][int(leaves[at, k])] for k, dim in enumerate(split)]
        found.append(
            Items(
                tuple((dim, extent) for dim, (extent, _) in zip(split, chosen, strict=True)),
                tuple(
                    (dim, size[dim] - size[dim] % extent)
                    for dim, (extent, cut) in zip(split, chosen, strict=True)
                    if cut
                ),
                float(leaf_s[at]),
                tuple(
                    (dim, -(-size[dim] // extent))
                    for dim, (extent, _) in zip(split, chosen, strict=True)
                ),
            )
        )
    found.sort(key=lambda items: items.least_s)
    return tuple(found), int(nodes)


def _options(size: int) -> tuple[tuple[int, bool], ...]:
    """List (extent, whether the rest is a list of its own), fewest items first."""
    found = [(extent, False) for extent in trip_classes((size,))]
    floors = {size // (-(-size // extent)) for extent, _ in found}
    floors |= {size // (size // extent) for extent, _ in found}
    found += [(extent, True) for extent in floors if size % extent]
    return tuple(sorted(found, key=lambda option: (-option[0], option[1])))
