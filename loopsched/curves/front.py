"""The curve of a problem: a branch and bound over all bodies and classes of orders.

What one buffer can tell apart of a nest is its body and the class of orders of
the loops around it (`loopsched.scheduler.body`).  Every choice is a point: the
room that its body needs, and the bytes that it moves.  The curve is the front of
these points.  Both numbers are monotone in every extent, so that a *box* of
choices has a corner which no choice in it beats; once a known point is as good
as that corner, the box is done, and else it is cut in two.

Choices have one loop of a dimension around the body.  Where padding or gaps make
several loops of one dimension worth trying, the same front over the least that
any chain of cuts has (`loopsched.scheduler.least`) bounds all nests.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

from loopsched.base.arrays import Ints
from loopsched.base.errors import ProblemError
from loopsched.curves.curve import Curve
from loopsched.curves.staircase import NestBound, Stairs
from loopsched.models.buffer import Policy, check_policy
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.scheduler.least import cuts_evenly, least_tables
from loopsched.scheduler.orders import OrderClass, order_classes
from loopsched.scheduler.tables import NO_BYTES, Tables, check_bytes, tables_for

_FIRST_ROOM = 4096


def traffic_curve(problem: Problem, *, policy: Policy = "explicit") -> Curve:
    """Find the least DRAM traffic of a problem at every capacity of one buffer, and bound it.

    Parameters
    ----------
    problem : Problem
    policy : {'explicit', 'lru'}
        ``explicit``: a scratchpad in which tiles are placed and halos kept. ``lru``: a
        cache that evicts the least recently used, with the traffic that it never exceeds.

    Returns
    -------
    Curve
        At every capacity the least over all tile sizes, whether they divide or not, and all
        loop orders with one loop per dimension around the tile; and ``nest_bound``, a lower
        bound for every nest, whatever its loops, that keeps all tiles at one place. The two
        are equal where no window has gaps or padding; elsewhere they may differ
        (``is_proven_at``).

    Raises
    ------
    ScheduleError
        If the policy is unknown.
    ProblemError
        If an axis is indexed by more than two dimensions, bytes do not fit into
        64 bits, or there is nothing but padding.

    See Also
    --------
    communication_bound, network_curve, plot_ski_slope

    References
    ----------
    Q. Huang et al., *Mind the Gap: Attainable Data Movement and Operational Intensity Bounds
    for Tensor Algorithms* (Orojenesis), ISCA 2024.

    Examples
    --------
    >>> from loopsched import gemm
    >>> curve = traffic_curve(gemm(m=4096, n=4096, k=4096))
    >>> curve.at(4_718_592), curve.at(98_304)
    (603979776, 3623878656)
    """
    check_policy(policy)
    check_bytes(problem)
    front = _Front.of(problem, tables_for(problem), policy)
    if cuts_evenly(problem):
        bound, nodes = NestBound(front.capacities_bytes, front.dram_bytes), front.nodes
    else:
        least = _Front.of(problem, least_tables(problem), policy)
        bound, nodes = _bound(least, front.capacities_bytes[0]), front.nodes + least.nodes
    return Curve(
        problem,
        front.capacities_bytes,
        front.dram_bytes,
        front.bodies,
        front.inward,
        bound,
        policy,
        nodes,
    )


def _bound(front: _Front, begin: int) -> NestBound:
    """Take a front as a bound from the capacity on at which one point fits."""
    first = front.step(begin) or 0
    return NestBound((begin, *front.capacities_bytes[first + 1 :]), front.dram_bytes[first:])


@dataclass(frozen=True, slots=True)
class _Front(Stairs):
    """The front of capacity and traffic over all choices of some tables."""

    capacities_bytes: tuple[int, ...]
    dram_bytes: tuple[int, ...]
    bodies: tuple[tuple[int, ...], ...]
    inward: tuple[tuple[str, ...], ...]
    nodes: int

    @classmethod
    def of(cls, problem: Problem, tables: Tables, policy: Policy) -> _Front:
        import numpy as np

        from loopsched.curves import front_kernels

        boxes = _boxes(problem, tables, policy)
        counts = [int(count) for count in tables.n_extents]
        base = prod(counts)
        _check(problem, base * len(boxes))
        radix = np.array([prod(counts[at + 1 :]) for at in range(len(counts))], dtype=np.int64)
        logs = np.zeros(tables.pieces.shape, dtype=np.float64)
        for row, extents in enumerate(tables.extents):
            logs[row, : len(extents)] = np.log2(extents)
        numbers = tables.numbers
        front, n_steps, nodes = np.zeros((3, _FIRST_ROOM), dtype=np.int64), 0, 0
        for at, (one, box) in enumerate(boxes):
            choices = front_kernels.Choices(box, *_arrays(problem, one), radix, at * base, logs)
            is_done = False
            while not is_done:
                n_steps, seen, is_done = front_kernels.grow_front(
                    numbers, choices, front, n_steps, policy == "lru"
                )
                nodes += int(seen)
                if not is_done:  # again with more room: what is found remains
                    front = np.concatenate((front, np.zeros_like(front)), axis=1)
        codes = [divmod(code, base) for code in front[2, :n_steps].tolist()]
        return cls(
            tuple(front[0, :n_steps].tolist()),
            tuple(moved - tables.constant for moved in front[1, :n_steps].tolist()),
            tuple(_extents(tables, radix, code) for _, code in codes),
            tuple(boxes[at][0].inward for at, _ in codes),
            nodes,
        )


def _boxes(problem: Problem, tables: Tables, policy: Policy) -> tuple[tuple[OrderClass, Ints], ...]:
    """List classes of orders, each with the first and the last choice of every dimension.

    Loops of one iteration do nothing: for a scratchpad the classes of all loops
    hold those of fewer, too; those left out stand outermost.  A cache may keep a
    tensor through a whole run of loops or not at all, so that it matters which
    loops there are; and a shorter run may fit where a longer one does not.
    """
    import numpy as np

    counts = [int(count) for count in tables.n_extents]
    free = tuple(d for d, count in zip(problem.dims, counts, strict=True) if count > 1)
    last = np.array(counts, dtype=np.int64) - 1
    if policy == "explicit":
        whole = np.array([np.zeros_like(last), last])
        return tuple((one, whole) for one in undominated(order_classes(problem, free)))
    found = []
    for many in range(len(free), -1, -1):
        for active in combinations(free, many):
            cut = np.array([dim in active for dim in problem.dims], dtype=np.int64)
            box = np.array([cut, cut * last])
            found += [(one, box) for one in order_classes(problem, active)]
    return tuple(found)


def undominated(classes: tuple[OrderClass, ...]) -> tuple[OrderClass, ...]:
    """Leave out classes of orders that are never better than another for a scratchpad.

    In a class that dominates, each tensor has at least the run, and slides at
    least where it does.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> layer = conv2d(c=8, k=8, h=8, w=8, r=3, s=3, padding=1, n=2)
    >>> classes = order_classes(layer, layer.dims)
    >>> len(classes), [one.inward[0] for one in undominated(classes)]
    (29, ['K', 'K', 'K', 'K', 'P', 'Q', 'R', 'S'])
    """
    return tuple(
        one
        for at, one in enumerate(classes)
        if not any(
            _dominates(other, one) and (place < at or not _dominates(one, other))
            for place, other in enumerate(classes)
            if place != at
        )
    )


def _dominates(one: OrderClass, other: OrderClass) -> bool:
    return all(
        set(run) <= set(longer) and slide in (None, kept)
        for longer, run, kept, slide in zip(
            one.runs, other.runs, one.slides, other.slides, strict=True
        )
    )


def _arrays(problem: Problem, one: OrderClass) -> tuple[Ints, Ints]:
    """Write the run and the slide of each tensor as arrays."""
    import numpy as np

    run = np.array([[dim in each for dim in problem.dims] for each in one.runs], dtype=np.int64)
    slides = [-1 if dim is None else problem.dims.index(dim) for dim in one.slides]
    return run.reshape(len(slides), -1), np.array(slides, dtype=np.int64)


def _extents(tables: Tables, radix: Ints, code: int) -> tuple[int, ...]:
    found = []
    for known, each in zip(tables.extents, radix.tolist(), strict=True):
        number, code = divmod(code, each)
        found.append(known[number])
    return tuple(found)


def _check(problem: Problem, n_choices: int) -> None:
    check_bytes(problem)
    if n_choices >= NO_BYTES:
        raise ProblemError(f"problem '{problem.name}': too many bodies to number")
    if not any(tensor_bytes(problem, tensor) for tensor in problem.tensors):
        raise ProblemError(f"problem '{problem.name}': moves nothing; all it reaches is padding")
