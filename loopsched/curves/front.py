"""The exact curve: a branch and bound over all bodies and classes of orders.

What one buffer can tell apart of a nest is its body and the class of orders of
the loops around it (`loopsched.scheduler.body`).  Every choice is a point: the
room that its body needs, and the bytes that it moves.  The curve is the front of
these points.  Both numbers are monotone in every extent, so that a *box* of
choices has a corner which no choice in it beats; once a known point is as good
as that corner, the box is done, and else it is cut in two.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from loopsched.curves.curve import Curve
from loopsched.errors import ProblemError
from loopsched.problem import Problem
from loopsched.scheduler.orders import OrderClass, order_classes
from loopsched.scheduler.tables import Tables, tables_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_FIRST_ROOM = 1024
_NO_BYTES = 2**62


def traffic_curve(problem: Problem) -> Curve:
    """Find the least DRAM traffic of a problem at every capacity of one buffer.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Curve
        Exact at every capacity, over all tile sizes, whether they divide or
        not, and all loop orders: at each the proven optimum of ``search`` with
        ``objective="dram_bytes"`` on a scratchpad of that capacity.

    Raises
    ------
    ProblemError
        If an axis moves with more than two dimensions, or bytes do not fit
        into 64 bits.

    Examples
    --------
    >>> from loopsched import gemm
    >>> curve = traffic_curve(gemm(m=4096, n=4096, k=4096))
    >>> curve.at(4_718_592), curve.at(98_304)
    (603979776, 3623878656)
    """
    import numpy as np

    from loopsched.curves import _front_kernels

    tables = tables_for(problem)
    classes = undominated_classes(problem, tables)
    counts = [int(count) for count in tables.n_extents]
    base = prod(counts)
    _check(problem, base * len(classes))
    radix = np.array([prod(counts[at + 1 :]) for at in range(len(counts))], dtype=np.int64)
    total_bound, largest_bound = _bounds(tables)
    logs = np.zeros(tables.pieces.shape, dtype=np.float64)
    for row, extents in enumerate(tables.extents):
        logs[row, : len(extents)] = np.log2(extents)
    front, n_steps, nodes = np.zeros((3, _FIRST_ROOM), dtype=np.int64), 0, 0
    for at, one in enumerate(classes):
        run, slides = _arrays(problem, one)
        front, n_steps, seen = _front_kernels.grow_front(
            front, n_steps, at * base, run, slides, tables.pieces, tables.n_extents, radix,
            tables.axis_dims, tables.axis_stride, tables.axis_start, tables.total, total_bound,
            tables.largest, largest_bound, tables.tensor_axes, tables.is_indexed, tables.weight,
            tables.element_bytes, logs,
        )  # fmt: skip
        nodes += int(seen)
    codes = [divmod(code, base) for code in front[2, :n_steps].tolist()]
    return Curve(
        problem,
        tuple(front[0, :n_steps].tolist()),
        tuple(moved - tables.constant for moved in front[1, :n_steps].tolist()),
        tuple(_extents(tables, radix, code) for _, code in codes),
        tuple(classes[at].inward for at, _ in codes),
        nodes,
    )


def undominated_classes(problem: Problem, tables: Tables) -> tuple[OrderClass, ...]:
    """List the classes of orders of all loops that can be best.

    Loops of one iteration do nothing, so the classes of all loops hold those of
    fewer: of these, the loops left out stand outermost.  A class is dominated if
    in another each tensor has at least its run, and slides at least where it does.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> layer = conv2d(c=8, k=8, h=8, w=8, r=3, s=3, padding=1, n=2)
    >>> [one.inward[0] for one in undominated_classes(layer, tables_for(layer))]
    ['K', 'K', 'K', 'K', 'P', 'Q', 'R', 'S']
    """
    free = tuple(d for d, n in zip(problem.dims, tables.n_extents, strict=True) if n > 1)
    classes = order_classes(problem, free)
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


def _bounds(tables: Tables) -> tuple[Ints, Ints]:
    """Lower what is not monotone on an axis to what is."""
    import numpy as np

    from loopsched.scheduler import _kernels

    bounds = np.empty_like(tables.total), np.empty_like(tables.largest)
    for axis in range(len(tables.axis_dims)):
        first = int(tables.n_extents[tables.axis_dims[axis, 0]])
        second, start = int(tables.axis_stride[axis]), int(tables.axis_start[axis])
        _kernels.envelope(tables.total, first, second, start, True, bounds[0])
        _kernels.envelope(tables.largest, first, second, start, False, bounds[1])
    return bounds


def _extents(tables: Tables, radix: Ints, code: int) -> tuple[int, ...]:
    found = []
    for known, each in zip(tables.extents, radix.tolist(), strict=True):
        number, code = divmod(code, each)
        found.append(known[number])
    return tuple(found)


def _check(problem: Problem, n_choices: int) -> None:
    weights = sum(2 * tensor.element_bytes for tensor in problem.tensors)
    if problem.macs * weights >= _NO_BYTES:
        raise ProblemError(
            f"problem '{problem.name}': {problem.macs} points can move more bytes than fit "
            "into 64 bits"
        )
    if n_choices >= _NO_BYTES:
        raise ProblemError(f"problem '{problem.name}': too many bodies to number")
