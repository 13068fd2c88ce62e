"""Exact sizes of constrained spaces, and schedules drawn evenly from them.

A schedule is a chain of extents for each dimension and an order for each
block.  How many orders a block has depends on which loops it holds, and
without a precedence only on how many.  So dimensions are added one group after
the other (those that a precedence ties together are one group), and what is
kept is the number of ways for each number of loops a block.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, product
from math import comb, factorial, prod

from loopsched.base.arrays import Ints, Objects
from loopsched.base.errors import ConstraintError
from loopsched.scheduler.allowed import Allowed, Choice, allowed, parts
from loopsched.scheduler.precedence import Inside, allowed_orders, n_orders
from loopsched.scheduler.space import Space

Numbers = Ints | Objects
Counts = tuple[int, ...]
# In which blocks a dimension has a loop: one 0 or 1 a place.
Pattern = tuple[int, ...]
MAX_TIED = 2**21


@dataclass(frozen=True)
class Chains:
    """The chains of extents of one dimension.

    Parameters
    ----------
    limits : Allowed
    row : int
        The dimension's number.
    """

    limits: Allowed
    row: int

    def ways(self) -> dict[Pattern, int]:
        """Count the chains that have their loops in certain blocks."""
        return {
            pattern: total
            for pattern, steps in self.tables().items()
            if (total := int(steps[-1].sum()))
        }

    def tables(self) -> dict[Pattern, list[Numbers]]:
        """For each pattern, the number of chains that end in each extent, block by block."""
        import numpy as np

        limits, row = self.limits, self.row
        dim, size = limits.problem.sizes[row]
        lists = limits.extents[row]
        kind = np.int64 if size ** max(1, len(lists)) < 2**62 else object
        now: dict[Pattern, list[Numbers]] = {(): []}
        outer = np.array([size], dtype=np.int64)
        start = np.ones(1, dtype=kind)
        for at, inner in enumerate(lists):
            grown: dict[Pattern, list[Numbers]] = {}
            place = limits.places[at]
            for pattern, steps in now.items():
                ways = steps[-1] if steps else start
                if dim not in place.lead:
                    kept = np.zeros(len(inner), dtype=kind)
                    _, here, there = np.intersect1d(outer, inner, return_indices=True)
                    kept[there] = ways[here]
                    if kept.any():
                        grown[(*pattern, 0)] = [*steps, kept]
                if dim in place.may_cut:
                    above = np.concatenate((np.cumsum(ways[::-1])[::-1], np.zeros(1, dtype=kind)))
                    cut = above[np.searchsorted(outer, inner, side="right")]
                    if cut.any():
                        grown[(*pattern, 1)] = [*steps, cut]
            now, outer = grown, inner
        found: dict[Pattern, list[Numbers]] = {}
        for pattern, steps in now.items():
            ways = steps[-1] if steps else start
            for left in (0, 1):
                ends = np.where(outer > 1, ways, 0) if left else np.where(outer == 1, ways, 0)
                if ends.any():
                    found[(*pattern, left)] = [*steps[:-1], ends] if steps else [ends]
        return found

    def draw(self, pattern: Pattern, rng: random.Random) -> tuple[int, ...]:
        """Draw one of the chains of a pattern, each as likely as any other."""
        import numpy as np

        lists = self.limits.extents[self.row]
        if not lists:
            return ()
        steps = _known_tables(self)[pattern]
        chain: list[int] = []
        for at in range(len(lists) - 1, -1, -1):
            ways = steps[at]
            if chain:
                inside = chain[-1]
                keep = lists[at] > inside if pattern[at + 1] else lists[at] == inside
                ways = np.where(keep, ways, 0)
            sums = np.cumsum(ways)
            mark = rng.randrange(int(sums[-1]))
            chain.append(int(lists[at][np.searchsorted(sums, mark, side="right")]))
        return tuple(reversed(chain))


@lru_cache(maxsize=64)
def _tables_of(space: Space, row: int) -> dict[Pattern, list[Numbers]]:
    return Chains(allowed(space), row).tables()


def _known_tables(chains: Chains) -> dict[Pattern, list[Numbers]]:
    return _tables_of(chains.limits.space, chains.row)


@dataclass
class Group:
    """Dimensions that a precedence ties together; usually one.

    ``stages[i]`` counts the ways of the first i dimensions by what is known of
    each block: how many loops it has, if only one order of them is allowed, or
    which ones (a bit set).
    """

    rows: tuple[int, ...]
    is_line: bool
    ways: list[dict[Pattern, int]]
    stages: list[dict[Counts, int]] = field(default_factory=list)

    def bits(self, pattern: Pattern, at: int) -> Counts:
        """What a dimension adds to the key."""
        return pattern if self.is_line else tuple(bit << at for bit in pattern)

    def counts(self, key: Counts) -> Counts:
        """Numbers of loops a block."""
        return key if self.is_line else tuple(bits.bit_count() for bits in key)


@dataclass
class Counter:
    """Exact counts of one space, kept so that schedules can be drawn."""

    limits: Allowed
    inside: Inside
    groups: list[Group]
    totals: list[dict[Counts, int]]

    @property
    def size(self) -> int:
        """Schedules of the space."""
        return sum(self.totals[-1].values())

    def orders(self, group: Group, key: Counts) -> int:
        """Count the orders of a group's own loops, all blocks together."""
        if group.is_line:
            return 1
        dims = self.limits.problem.dims
        return prod(
            n_orders(
                frozenset(
                    dims[row]
                    for at, row in enumerate(group.rows)
                    if bits >> at & 1 and dims[row] not in place.lead
                ),
                self.inside,
            )
            for bits, place in zip(key, self.limits.places, strict=True)
        )

    def draw(self, rng: random.Random) -> Choice:
        """Draw a schedule, each as likely as any other."""
        chains: dict[int, tuple[int, ...]] = {}
        blocks = [list(place.lead) for place in self.limits.places]
        state = _pick(self.totals[-1], rng)
        picked: list[tuple[Group, Counts]] = []
        for at in range(len(self.groups) - 1, -1, -1):
            group, before = self.groups[at], self.totals[at]
            weights = {}
            for key, many in group.stages[-1].items():
                rest = _less(state, group.counts(key))
                if rest in before:
                    merged = _merges(rest, group.counts(key))
                    weights[key] = many * self.orders(group, key) * before[rest] * merged
            key = _pick(weights, rng)
            state = _less(state, group.counts(key))
            picked.append((group, key))
        for group, key in reversed(picked):
            for row, pattern in self._draw_patterns(group, key, rng).items():
                chains[row] = Chains(self.limits, row).draw(pattern, rng)
        cuts = self.limits.cut_dims([chains[row] for row in sorted(chains)])
        orders = []
        for place, block, dims in zip(self.limits.places, blocks, cuts, strict=True):
            free = [dim for dim in dims if dim not in place.lead]
            orders.append((*block, *draw_order(free, self.inside, rng)))
        return Choice(tuple(chains[row] for row in sorted(chains)), tuple(orders))

    def _draw_patterns(self, group: Group, key: Counts, rng: random.Random) -> dict[int, Pattern]:
        found = {}
        for at in range(len(group.rows) - 1, -1, -1):
            before, weights = group.stages[at], {}
            for pattern, many in group.ways[at].items():
                rest = _less(key, group.bits(self.free(group.rows[at], pattern), at))
                if rest in before:
                    weights[pattern] = many * before[rest]
            pattern = _pick(weights, rng)
            key = _less(key, group.bits(self.free(group.rows[at], pattern), at))
            found[group.rows[at]] = pattern
        return found

    def free(self, row: int, pattern: Pattern) -> Pattern:
        """Leave out the loops whose place in their block's order is given."""
        dim = self.limits.problem.dims[row]
        return tuple(
            bit if dim not in place.lead else 0
            for bit, place in zip(pattern, self.limits.places, strict=True)
        )


def _less(one: Counts, other: Counts) -> Counts:
    return tuple(a - b for a, b in zip(one, other, strict=True))


def _merges(one: Counts, other: Counts) -> int:
    """Count the ways to shuffle two lots of ordered loops together, block by block."""
    return prod(comb(a + b, b) for a, b in zip(one, other, strict=True))


def _pick(weights: dict[Counts, int], rng: random.Random) -> Counts:
    mark = rng.randrange(sum(weights.values()))
    for key, many in weights.items():
        mark -= many
        if mark < 0:
            return key
    raise ConstraintError("nothing to draw from: the space is empty")


def draw_order(dims: list[str], inside: Inside, rng: random.Random) -> tuple[str, ...]:
    """Draw an allowed order of loops, each as likely as any other."""
    known, rest, order = dict(inside), list(dims), []
    if not any(known[dim] for dim in dims):
        rng.shuffle(rest)
        return tuple(rest)
    while rest:
        weights: dict[Counts, int] = {
            (at,): n_orders(frozenset(rest) - {dim}, inside)
            for at, dim in enumerate(rest)
            if not any(dim in known[other] for other in rest if other != dim)
        }
        order.append(rest.pop(_pick(weights, rng)[0]))
    return tuple(order)


def counter(space: Space) -> Counter:
    """Count a space.

    Raises
    ------
    ConstraintError
        If a precedence ties so many dimensions together, without saying their
        order, that the orders cannot be counted.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import Constraints, space_of
    >>> arch, problem = buffer_arch(capacity_bytes=64), gemm(m=2, n=2, k=1)
    >>> counter(space_of(problem, arch)).size
    6
    >>> counter(space_of(problem, arch, Constraints(before=(("M", "N"),)))).size
    4
    """
    return _counter(space)


@lru_cache(maxsize=64)
def _counter(space: Space) -> Counter:
    limits = allowed(space)
    inside = tuple(limits.inside.items())
    found = Counter(limits, inside, [], [{(0,) * len(limits.places): 1}])
    if limits.is_empty:
        found.totals.append({})
        return found
    for rows, is_line in _tied(limits):
        ways = [Chains(limits, row).ways() for row in rows]
        group = Group(rows, is_line, ways)
        _fill(found, group)
        found.groups.append(group)
        table: dict[Counts, int] = {}
        for key, many in group.stages[-1].items():
            counts = group.counts(key)
            table[counts] = table.get(counts, 0) + many * found.orders(group, key)
        grown: dict[Counts, int] = {}
        for state, before in found.totals[-1].items():
            for counts, many in table.items():
                after = tuple(a + b for a, b in zip(state, counts, strict=True))
                grown[after] = grown.get(after, 0) + before * many * _merges(state, counts)
        found.totals.append(grown)
    return found


def _fill(found: Counter, group: Group) -> None:
    stages: list[dict[Counts, int]] = [{(0,) * len(found.limits.places): 1}]
    for at, (row, ways) in enumerate(zip(group.rows, group.ways, strict=True)):
        grown: dict[Counts, int] = {}
        for key, before in stages[-1].items():
            for pattern, many in ways.items():
                bits = group.bits(found.free(row, pattern), at)
                after = tuple(a + b for a, b in zip(key, bits, strict=True))
                grown[after] = grown.get(after, 0) + before * many
        if len(grown) > MAX_TIED:
            dims = " ".join(found.limits.problem.dims[row] for row in group.rows)
            raise ConstraintError(
                f"the orders of {dims} are tied together but not given in full, too many to "
                "count; give the order of all of them"
            )
        stages.append(grown)
    group.stages = stages


def _tied(limits: Allowed) -> list[tuple[tuple[int, ...], bool]]:
    """Group the dimensions by the precedence; say whether it leaves one order only."""
    import networkx as nx

    dims, inside = limits.problem.dims, limits.inside
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(dims)))
    graph.add_edges_from(
        (a, b) for a in range(len(dims)) for b in range(len(dims)) if dims[b] in inside[dims[a]]
    )
    groups = []
    for rows in nx.connected_components(graph):
        pairs = sum(len(inside[dims[row]]) for row in rows)
        groups.append((tuple(sorted(rows)), pairs == len(rows) * (len(rows) - 1) // 2))
    return sorted(groups)


def choices(limits: Allowed) -> list[list[tuple[int, ...]]]:
    """List all chains of extents of each dimension.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import space_of
    >>> choices(allowed(space_of(gemm(m=3, n=2, k=1), buffer_arch(capacity_bytes=64))))
    [[(1,), (2,), (3,)], [(1,), (2,)], [(1,)]]
    """
    found = []
    for row, (_, size) in enumerate(limits.problem.sizes):
        chains: list[tuple[int, ...]] = [()]
        for at in range(len(limits.extents[row])):
            chains = [
                (*chain, int(extent))
                for chain in chains
                for extent in limits.steps(row, at, chain[-1] if chain else size)
            ]
        if limits.problem.dims[row] in limits.places[-1].lead:
            chains = [chain for chain in chains if (chain or (size,))[-1] > 1]
        found.append(chains)
    return found


def every_choice(limits: Allowed) -> Iterator[Choice]:
    """Stream every point of the space, in a fixed order, with nothing kept.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm
    >>> from loopsched.scheduler import space_of
    >>> space = space_of(gemm(m=2, n=2, k=1), buffer_arch(capacity_bytes=64))
    >>> limits = allowed(space)
    >>> [str(limits.schedule(choice)) for choice in every_choice(limits)]
    ['M:2 N:2', 'N:2 M:2', 'M:2 N:2', 'N:2 M:2', 'M:2 N:2', 'N:2 M:2']
    """
    for chains in product(*choices(limits)):
        cuts = limits.cut_dims(chains)
        orders = [
            [
                (*place.lead, *rest)
                for rest in allowed_orders(
                    [dim for dim in dims if dim not in place.lead], limits.inside
                )
            ]
            for place, dims in zip(limits.places, cuts, strict=True)
        ]
        for chosen in product(*orders):
            yield Choice(tuple(chains), tuple(chosen))


def n_schedules(space: Space) -> int:
    """Count the schedules of a space: every choice of extents and orders, once."""
    if space.choices:
        return sum(map(n_schedules, space.choices))
    if not space.constraints.is_free:
        return sum(counter(part).size for part in parts(space))
    sizes = tuple(
        (size, tuple(dim in slot.dims for slot in space.slots))
        for dim, size in space.problem.sizes
        if size > 1
    )
    return _count(tuple(sorted(sizes)), len(space.slots))


@lru_cache(maxsize=4096)
def _count(sizes: tuple[tuple[int, tuple[bool, ...]], ...], n_slots: int) -> int:
    """Count schedules by how many loops each block has.

    A dimension of size D is cut in some blocks, to extents that shrink
    strictly; what is left is 1, or more and then looped over inside.  The
    numbers of loops a block are the exponents of a polynomial, packed into one
    integer; a block of k loops has k! orders.
    """
    # A block's exponent is at most the number of dimensions that it may cut.
    radix = [1 + sum(may[b] for _, may in sizes) for b in range(n_slots)] + [1 + len(sizes)]
    most = prod(factorial(one - 1) for one in radix)
    for size, may in sizes:
        most *= sum(comb(sum(may), k) * comb(size - 1, k) for k in range(sum(may) + 1))
    spans = [most.bit_length() * prod(radix[:b]) for b in range(n_slots + 1)]
    packed = 1
    for size, may in sizes:
        free = [span for span, is_free in zip(spans, may, strict=False) if is_free]
        grown = 0
        for n_cuts in range(len(free) + 1):
            part = packed * comb(size - 2, n_cuts) << spans[-1]
            part += packed * comb(size - 2, n_cuts - 1) if n_cuts else 0
            for cuts in combinations(free, n_cuts) if part else ():
                grown += part << sum(cuts)
        packed = grown
    for span, n in zip(reversed(spans), reversed(radix), strict=True):  # each number of loops
        packed = sum((packed >> span * k & (1 << span) - 1) * factorial(k) for k in range(n))
    return packed
