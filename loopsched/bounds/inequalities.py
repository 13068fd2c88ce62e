"""Few elements allow few points: inequalities after Loomis, Whitney and Finner."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from loopsched.bounds.windows import WEIGHT_SCALE, Split, Weight, splits, stored_work
from loopsched.problems.problem import Problem

# More tensors than this have too many inequalities to try; the bound is then compulsory.
_MAX_TENSORS = 6


@dataclass(frozen=True, slots=True)
class Inequality:
    """``work**root <= factor * product of elems**powers``, whatever the set of points.

    The work of a set is the sum of its points' weights, each at least 1; points
    with an operand in the padding have none.

    Parameters
    ----------
    powers : tuple of int
        One a tensor.
    root, factor : int
    work : int
        Of all points together, rounded down.
    grain : int
        The largest weight of a point, rounded up; 1: all weights are 1.
    """

    powers: tuple[int, ...]
    root: int
    factor: int
    work: int
    grain: int

    @property
    def degree(self) -> int:
        """Sum of the powers."""
        return sum(self.powers)


def inequalities(problem: Problem, size: Mapping[str, int]) -> list[Inequality]:
    """Find inequalities between points and the elements that they touch.

    Parameters
    ----------
    problem : Problem
    size : mapping of dimension name to int
        The problem's, or 1 for dimensions that are counted apart.

    Examples
    --------
    Loomis and Whitney's, for a product of matrices, and three that are weaker
    but where there are few elements of one tensor:

    >>> from loopsched import gemm
    >>> problem = gemm(m=4, n=5, k=6)
    >>> [(one.powers, one.root) for one in inequalities(problem, problem.size)]
    [((0, 2, 2), 2), ((1, 1, 1), 2), ((2, 0, 2), 2), ((2, 2, 0), 2)]
    """
    tensors = problem.tensors
    if len(tensors) > _MAX_TENSORS:
        return []
    moving = [dim for dim, extent in size.items() if extent > 1]
    cover = {tuple(i for i, t in enumerate(tensors) if t.is_indexed_by(dim)) for dim in moving}
    if () in cover:
        return []  # a dimension that touches nothing: one element allows any number of points
    work_of = cache(lambda weights: stored_work(problem, size, weights))
    windows = {
        (i, j): cuts
        for i, tensor in enumerate(tensors)
        for j, axis in enumerate(tensor.axes)
        if (cuts := splits(axis, size)) != [()]  # else it costs nothing
    }
    useful: list[Inequality] = []
    for root in (2, 3) if len(tensors) > 3 else (2,):
        found = [
            _inequality(problem, windows, powers, root, work_of)
            for powers in product(range(root + 1), repeat=len(tensors))
            if all(sum(powers[i] for i in at) >= root for at in cover)
        ]
        useful += [one for one in found if not any(_is_tighter(other, one) for other in found)]
    # Of degree 1 there is nothing to gain over compulsory traffic.
    return [one for one in useful if one.degree > one.root]


def _is_tighter(one: Inequality, other: Inequality) -> bool:
    no_looser = one.factor <= other.factor and one.work >= other.work
    return no_looser and one != other and all(map(operator.le, one.powers, other.powers))


def _inequality(
    problem: Problem,
    windows: Mapping[tuple[int, int], list[tuple[Split, ...]]],
    powers: tuple[int, ...],
    root: int,
    work_of: Callable[[tuple[Weight, ...]], tuple[int, int]],
) -> Inequality:
    factor = 1
    weights: list[Weight] = []
    for (i, j), cuts in windows.items():
        ways = [_way(problem, powers, root, i, cut) for cut in cuts]
        most, cut, weight = min(ways, key=lambda way: _strength(way, root))
        factor *= most
        if any(one > WEIGHT_SCALE for one in weight):
            weights.append(((i, j), (cut[0], weight)))
    work, grain = work_of(tuple(weights))
    return Inequality(powers, root, factor, work, grain)


_Way = tuple[int, tuple[Split, ...], tuple[int, ...]]


def _way(
    problem: Problem, powers: Sequence[int], root: int, i: int, cut: tuple[Split, ...]
) -> _Way:
    """Factor that a cut costs, and the weights of its residues."""
    factor = 1
    weight: tuple[int, ...] = (WEIGHT_SCALE,)
    for split in cut:
        # Tensors with an axis of this dimension alone have other elements in each class.
        apart = sum(_powers_apart(problem, powers, i, split.dim))
        lost = max(0, root - apart)
        factor *= split.classes**lost
        if lost and powers[i] + apart >= root and split.modulus > 1:
            weight = tuple(
                _root_below(split.classes**lost * WEIGHT_SCALE**root // many**lost, root)
                for many in split.values
            )
    return factor, cut, weight


def _powers_apart(problem: Problem, powers: Sequence[int], i: int, dim: str) -> Iterator[int]:
    for k, (power, tensor) in enumerate(zip(powers, problem.tensors, strict=True)):
        if k != i and any(axis.dims == (dim,) for axis in tensor.axes):
            yield power


def _strength(way: _Way, root: int) -> float:
    """How many points an element may stand for: the fewer, the better."""
    factor, cut, weight = way
    mean = 1.0
    if len(weight) > 1:
        split = cut[0]
        pairs = zip(split.values, weight, strict=True)
        mean = sum(many * one for many, one in pairs) / split.size / WEIGHT_SCALE
    return math.log(factor) / root - math.log(mean)


def _root_below(value: int, degree: int) -> int:
    """Find the largest whole number whose power of ``degree`` is at most ``value``."""
    if value <= 0:
        return 0
    root = 1 << -(-value.bit_length() // degree)
    while True:  # Newton's steps fall until the root is reached
        lower = ((degree - 1) * root + value // root ** (degree - 1)) // degree
        if lower >= root:
            return root
        root = lower


def root_above(value: int, degree: int) -> int:
    """Find the least whole number whose power of ``degree`` is at least ``value``.

    Examples
    --------
    >>> root_above(8, 3), root_above(9, 3), root_above(0, 3)
    (2, 3, 0)
    """
    return _root_below(value - 1, degree) + 1 if value > 0 else 0
