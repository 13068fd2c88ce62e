"""The least compute steps and item data that the extents left by constraints allow.

Derived here.  All lists of items that an outer block makes are of two lengths
along a dimension: whole ones, and one for the rest.  If the rest is at least an
item long, its items are as large as all others; if not, it is one smaller item.
Lists whose items are equal need no fewer waves apart than they would together,
so the steps of a schedule are at least those of one list for each combination
of whole items and rests.  Dimensions that instances do not share only multiply
the steps, however they are cut.

Nothing stays from item to item in an instance's own level, so across its outer
boundary each item's data move at least once; cutting further never moves less.
Where nothing is shared, all is one item, whatever the loops outside cut.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from loopsched.base.arrays import Ints
from loopsched.scheduler.allowed import Allowed, allowed
from loopsched.scheduler.least import least_tables

MAX_WAYS = 500_000


def least_item_s(
    limits: Allowed, instances: int, macs_per_s: float, inner_bytes_per_s: float = float("inf")
) -> float:
    """Bound the time for steps and items' data, over all schedules that are left.

    Parameters
    ----------
    limits : Allowed
    instances : int
        Of the unit that runs the spatial block.
    macs_per_s : float
        Of one instance.
    inner_bytes_per_s : float
        Bandwidth into the instances' own level, all together.

    Returns
    -------
    float, seconds
        0 if there is no such block, or too much to choose from.

    Examples
    --------
    Nine rows on four instances: three waves of one row, for two columns each.

    >>> from loopsched import gemm, load_arch
    >>> from loopsched.scheduler import Constraints, space_of
    >>> from loopsched.scheduler.allowed import allowed
    >>> arch = load_arch("titan_v")
    >>> divisors = Constraints(tiles="divisors", spatial=("M",))
    >>> least_item_s(allowed(space_of(gemm(m=9, n=2, k=1), arch, divisors)), 4, 1.0)
    6.0
    """
    import numpy as np

    units = [at for at, place in enumerate(limits.places) if place.unit]
    if len(units) != 1 or units[0] > 1:
        return 0.0
    if not limits.places[units[0]].lead and any(one.lead for one in limits.places[units[0] :]):
        # Blocks with several loops of a dimension may end the prefix outside of the units.
        constraints = replace(limits.space.constraints, prefix="")
        limits = allowed(replace(limits.space, constraints=constraints, prefix_at=None))
    problem, spatial = limits.problem, limits.space.spatial
    ways = [
        _ways(limits, row, size, units[0])
        for row, (dim, size) in enumerate(problem.sizes)
        if dim in spatial
    ]
    if prod(len(found) for found in ways) > MAX_WAYS:
        return 0.0
    alone = prod(size for dim, size in problem.sizes if dim not in spatial)
    grids = np.meshgrid(*(np.arange(len(found)) for found in ways), indexing="ij")
    chosen = [found[grid.ravel()] for found, grid in zip(ways, grids, strict=True)]
    steps: Ints = np.zeros(prod(len(found) for found in ways), dtype=np.int64)
    for rests in product((False, True), repeat=len(ways)):
        n_items: Ints = np.ones_like(steps)
        work: Ints = np.ones_like(steps)
        for way, is_rest in zip(chosen, rests, strict=True):
            n_items = n_items * (1 if is_rest else way[:, 1])
            work = work * (way[:, 2] if is_rest else way[:, 0])
        steps += -(-n_items // instances) * work
    seconds = steps * (alone / macs_per_s)
    least_s = float(np.maximum(seconds, _moved(limits, chosen) / inner_bytes_per_s).min())
    if not all(_may_stay_whole(limits, row, units[0]) for row in range(len(problem.dims))):
        return least_s
    one = [np.array([[problem.size[dim], 1, 0]]) for dim in problem.dims if dim in spatial]
    alone_s = max(problem.macs / macs_per_s, int(_moved(limits, one)[0]) / inner_bytes_per_s)
    return min(least_s, alone_s)


def _may_stay_whole(limits: Allowed, row: int, unit: int) -> bool:
    """Whether a dimension needs no loop of the unit."""
    outers = limits.extents[row][unit - 1].tolist() if unit else [limits.problem.sizes[row][1]]
    return any(outer in limits.steps(row, unit, outer) for outer in outers)


def _moved(limits: Allowed, chosen: list[Ints]) -> Ints:
    """Bytes that go into items and out of them, at least."""
    import numpy as np

    problem, spatial = limits.problem, limits.space.spatial
    cut = dict(zip([dim for dim in problem.dims if dim in spatial], chosen, strict=True))
    candidates, index = [], []
    for dim, size in problem.sizes:
        items = cut[dim][:, 0] if dim in cut else np.array([size])
        known = sorted({size, *items.tolist()})
        candidates.append(tuple(known[::-1]))
        index.append(len(known) - 1 - np.searchsorted(known, items))
    tables = least_tables(problem, candidates=tuple(candidates))
    moved: Ints = np.full(1, -tables.constant, dtype=np.int64)
    for t, weight in enumerate(tables.weight.tolist()):
        part: Ints = np.full(1, weight, dtype=np.int64)
        for row in range(len(problem.dims)):
            if not tables.is_indexed[t, row]:
                part = part * tables.pieces[row][index[row]]
        for axis in range(tables.tensor_axes[t], tables.tensor_axes[t + 1]):
            first, second = tables.axis_dims[axis].tolist()
            place = tables.axis_start[axis] + index[first] * tables.axis_stride[axis]
            part = part * tables.total[place + (index[second] if second >= 0 else 0)]
        moved = moved + part
    return moved


def _ways(limits: Allowed, row: int, size: int, unit: int) -> Ints:
    """List the ways to cut a dimension: item, number of whole items, rest."""
    import numpy as np

    found = set()
    dim = limits.problem.dims[row]
    for outer in limits.extents[row][0].tolist() if unit else [size]:
        items = limits.steps(row, unit, outer).tolist()
        if len(items) * len(limits.extents[row][0]) > MAX_WAYS:  # too many; none is left out
            return np.zeros((MAX_WAYS + 1, 3), dtype=np.int64)
        for item in items:
            lists, rest = divmod(size, outer)
            if 0 < rest < item and dim in limits.places[0].may_cut:
                found.add((item, lists * -(-outer // item), rest))
            else:
                found.add((item, -(-size // item), 0))
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)
