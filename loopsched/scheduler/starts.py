"""Textbook starts: tiles for a unit's own level, and whole waves of them side by side.

What anybody would try by hand: tiles in powers of two or in equal parts along
the parallel dimensions, waves nearly square, an outer block for the shared
level.  They are scored roughly, all at once; a search builds and scores the
best few, so that nothing simple is ever better than what it returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import isqrt, prod

from loopsched.base.arrays import Floats
from loopsched.problems.problem import Problem
from loopsched.scheduler.blocks import Block

Extents = Mapping[str, int]
# Ways to cut the parallel dimensions that are scored roughly.
MAX_WAYS = 60_000


@dataclass(frozen=True, slots=True)
class Rough:
    """What a machine offers, as far as rough scores ask.

    Parameters
    ----------
    instances : int
        Of the unit that shares the work.
    macs_per_s : float
        Of one instance.
    memory_bytes_per_s, inner_bytes_per_s : float
        Bandwidth of the memory, and into the instances' own levels together.
    shared_bytes : int
        Capacity of the level that instances share; 0: none.
    """

    instances: int
    macs_per_s: float
    memory_bytes_per_s: float
    inner_bytes_per_s: float
    shared_bytes: int


def tile_extents(size: int, most: int) -> list[int]:
    """List extents to try: powers of two, and equal parts of the dimension.

    Examples
    --------
    >>> tile_extents(40, 99)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 20, 21, 24, 30, 32, 40]
    """
    found = {min(size, 2**power) for power in range(size.bit_length() + 1)}
    found |= {-(-size // parts) for parts in range(1, min(size, 16) + 1)}
    found |= {3 * extent // 2 for extent in found if 1 < extent < size and extent % 2 == 0}
    listed = sorted(extent for extent in found if extent <= size)
    while len(listed) > most:
        listed = [*listed[:-1:2], listed[-1]]
    return listed


def starts(
    problem: Problem, spatial: Sequence[str], rough: Rough, many: int
) -> Iterator[dict[str, int]]:
    """List tiles for the instances, the best by a rough score first.

    Parameters
    ----------
    problem : Problem
    spatial : sequence of str
        Dimensions that instances may share.
    rough : Rough
    many : int

    Yields
    ------
    dict of str to int
        Extents of one tile; dimensions that are not shared stay whole.
    """
    import numpy as np

    size = problem.size
    dims = [dim for dim in problem.dims if dim in spatial and size[dim] > 1]
    if not dims:
        return
    most = max(3, int(MAX_WAYS ** (1 / len(dims))))
    lists = [tile_extents(size[dim], most) for dim in dims]
    while prod(len(found) for found in lists) > 4 * MAX_WAYS:
        longest = max(lists, key=len)
        longest[:] = [*longest[:-1:2], longest[-1]]
    grids = np.meshgrid(*(np.array(found, dtype=np.float64) for found in lists), indexing="ij")
    tiles = {dim: grid.ravel() for dim, grid in zip(dims, grids, strict=True)}
    score, steps_s, moved = rough_scores(problem, tiles, rough)
    for way in np.lexsort((moved, steps_s, score))[:many].tolist():
        yield {dim: int(extent[way]) for dim, extent in tiles.items()}


def rough_scores(
    problem: Problem, tiles: Mapping[str, Floats], rough: Rough
) -> tuple[Floats, Floats, Floats]:
    """Estimate the time of many choices of tiles: arithmetic, inner and memory traffic.

    Parameters
    ----------
    problem : Problem
    tiles : mapping of str to array
        Extents along the dimensions that are cut.
    rough : Rough

    Returns
    -------
    time_s, steps_s, moved_bytes : arrays
        The estimate, the arithmetic's part of it, and the inner traffic.
    """
    import numpy as np

    size = problem.size
    trips = {dim: np.ceil(size[dim] / extent) for dim, extent in tiles.items()}
    n_items = np.prod(list(trips.values()), axis=0)
    work = np.prod(list(tiles.values()), axis=0)
    alone = prod(extent for dim, extent in problem.sizes if dim not in tiles)
    steps_s = np.ceil(n_items / rough.instances) * work * (alone / rough.macs_per_s)
    whole = {dim: float(extent) for dim, extent in problem.sizes} | dict(tiles)
    moved = n_items * sum(_bytes(problem, at, whole) for at in range(len(problem.tensors)))
    memory = np.full_like(moved, np.inf)
    names = list(tiles)
    for first, second in permutations(names, 2) if len(names) > 1 else [(names[0], names[0])]:
        for side in _divisors(rough.instances):
            wave = {dim: np.ones_like(n_items) for dim in names}
            wave[first] = np.minimum(side, trips[first])
            if second != first:
                wave[second] = np.minimum(rough.instances // side, trips[second])
            region = whole | {dim: tiles[dim] * wave[dim] for dim in names}
            now = np.zeros_like(moved)
            present = np.zeros_like(moved)
            for at, tensor in enumerate(problem.tensors):
                each = _bytes(problem, at, region)
                is_output = tensor.name == problem.output
                visits = np.prod([np.ceil(trips[dim] / wave[dim]) for dim in names], axis=0)
                now += visits * each
                present += each if is_output else 0.0
            # Tiles of the output stay while the sums are built.
            now = np.where(present < 0.9 * rough.shared_bytes, now, moved)
            memory = np.minimum(memory, now)
    time_s = np.maximum(steps_s, moved / rough.inner_bytes_per_s)
    return np.maximum(time_s, memory / rough.memory_bytes_per_s), steps_s, moved


def _bytes(problem: Problem, at: int, extents: Mapping[str, Floats | float]) -> Floats | float:
    """Weigh what a region touches of a tensor, roughly: windows as bounding boxes."""
    tensor = problem.tensors[at]
    found: Floats | float = float(tensor.element_bytes)
    for axis in tensor.axes:
        found = found * (1 + sum(c * (extents[dim] - 1) for dim, c in axis.terms))
    return found


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def wave_blocks(
    problem: Problem, cut: Extents, unit: str, instances: int, listed: Extents | None = None
) -> Iterator[tuple[list[Block], int]]:
    """List the ways to take tiles in waves that end with whole iterations.

    A temporal block around lists of tiles, so that the innermost spatial loop of
    a list has as many iterations as divide the instances; or, where whole groups of so
    many make up a list, another spatial loop around them, which leaves lists as they are.

    Parameters
    ----------
    problem : Problem
    cut : mapping of str to int
        Extents of a tile.
    unit : str
    instances : int
    listed : mapping of str to int, optional
        Where the rest of a dimension is a list of its own: extents of the others.

    Yields
    ------
    blocks, traffic : list of Block, int
        Blocks outside a tile, and a rough figure of what waves bring in, to
        rank them by.

    Examples
    --------
    >>> from loopsched import gemm
    >>> from loopsched.scheduler.blocks import compose
    >>> problem = gemm(m=64, n=64, k=8)
    >>> found = [
    ...     str(compose(problem, blocks))
    ...     for blocks, _ in wave_blocks(problem, {"M": 8, "N": 8}, "SM", 4)
    ... ]
    >>> found[0], found[4]
    ('N:64 M:64@SM M:8 N:8 K:8', 'M:64 N:64 M:16@SM N:16@SM M:8 N:8 K:8')
    >>> [nest for nest in found if nest.count("@") == 3][:2]
    ['N:64@SM M:64@SM N:16@SM M:8 N:8 K:8', 'N:64@SM M:64@SM N:32@SM M:8 N:8 K:8']
    """
    size = problem.size
    inside = {dim: min(cut.get(dim, size[dim]), size[dim]) for dim in problem.dims}
    trips = {dim: -(-size[dim] // inside[dim]) for dim in problem.dims if inside[dim] < size[dim]}
    around = {dim: (listed or {}).get(dim, size[dim]) for dim in trips}
    ranked = sorted(trips, key=lambda dim: -trips[dim])[:3]
    pairs = list(permutations(ranked, 2)) if len(ranked) > 1 else [(dim, dim) for dim in ranked]
    for (outer, inner), across in product(pairs, _divisors(instances)):
        side, down = inside[inner] * across, instances // across
        if side > around[inner] and across > 1 and side - around[inner] >= inside[inner]:
            continue
        row = {inner: min(side, around[inner])}
        wave = row if outer == inner else {outer: min(inside[outer] * down, around[outer]), **row}
        moved = sum(
            int(_bytes(problem, at, inside | wave)) for at in range(len(problem.tensors))
        ) * prod(-(-size[dim] // (inside | wave)[dim]) for dim in trips)
        order = (*(dim for dim in trips if dim not in wave), *wave)
        spread = Block(order, tuple((dim, inside[dim]) for dim in trips), unit)
        for region in (row, wave):
            extents = _extents(size, around | region)
            names = tuple(dim for dim, _ in extents)
            for turned in dict.fromkeys((names, names[::-1])):
                yield [Block(turned, extents), spread], moved
        n_outer, n_inner = (-(-around[dim] // inside[dim]) for dim in (outer, inner))
        if outer != inner and 1 < across < n_inner and n_inner % across == n_outer % down == 0:
            extents = _extents(size, around)
            group = Block((inner,), ((inner, side),), unit)
            yield [Block(tuple(dim for dim, _ in extents), extents), group, spread], moved


def _extents(size: Extents, region: Extents) -> tuple[tuple[str, int], ...]:
    """Extents of a region, where it is less than the whole."""
    return tuple((dim, region[dim]) for dim in region if region[dim] < size[dim])
