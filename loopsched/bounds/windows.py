"""Windows: how many points meet one element where dimensions share an axis.

Dimensions are cut into classes inside which no two points meet; there an axis
is as good as separate axes.  Proofs: docs/lower_bounds.md, section 4.

Where a stride a' does not divide a filter, values of r with different remainders modulo a'
have different inputs and weights.  Let rho_g be the number of values with remainder g, and h_g
their points.  Then h_g <= sqrt(rho_g I_g W_g O), and by Cauchy-Schwarz the sum of
h_g / sqrt(rho_g) is at most sqrt(I W O).  So a point weighs sqrt(rho / rho_g) instead of 1, in
the inequality and in the phases, which then have equal weight up to one point's.

On an axis of more than two dimensions, a dimension is cut into so many interleaved classes
that its steps exceed the reach of the smaller terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from loopsched.problems.footprint import is_clipped
from loopsched.problems.problem import Axis, Problem

# Weights of points are whole multiples of 1 / WEIGHT_SCALE.
WEIGHT_SCALE = 2**20
# Points of an axis that are looked at one by one; beyond, fewer are counted: still safe.
_MAX_WALK = 2**12


@dataclass(frozen=True, slots=True)
class Split:
    """A dimension cut into classes.

    Parameters
    ----------
    dim : str
    size : int
        Of the dimension.
    classes : int
    modulus : int
        Classes are runs of so many values.  Values that differ modulo this
        never meet: each residue has its own part of the axis, and as many
        classes as it has values.  1: nothing is known but ``classes``.
    """

    dim: str
    size: int
    classes: int
    modulus: int = 1

    @property
    def values(self) -> tuple[int, ...]:
        """Number of values with each residue, as far as there are any."""
        return tuple(
            -(-(self.size - residue) // self.modulus)
            for residue in range(min(self.modulus, self.size))
        )


def splits(axis: Axis, size: Mapping[str, int]) -> list[tuple[Split, ...]]:
    """List ways to cut dimensions so that no two points of a class meet on an axis.

    Examples
    --------
    A 5 wide filter at stride 2: three outputs meet an even position, two an odd one.

    >>> rows = Axis((("P", 2), ("R", 1)))
    >>> [(one.dim, one.classes, one.values) for one, in splits(rows, {"P": 9, "R": 5})]
    [('P', 9, (9,)), ('R', 3, (3, 2))]
    """
    terms = [(dim, c) for dim, c in axis.terms if size[dim] > 1]
    if len(terms) < 2:
        return [()]
    if len(terms) == 2:
        (one, a), (two, b) = terms
        common = math.gcd(a, b)
        # a*(x - x') = b*(y' - y) only if b/common divides x - x', and a/common y - y'.
        return [(_runs(one, size, b // common),), (_runs(two, size, a // common),)]
    found, reach = [], 0
    for dim, c in sorted(terms, key=lambda term: term[1]):
        # Values that are `classes` apart step over all that the smaller terms reach.
        classes = min(size[dim], -(-(reach + 1) // c))
        found.append(Split(dim, size[dim], classes))
        reach += c * classes * (-(-size[dim] // classes) - 1)
    return [tuple(found)]


def _runs(dim: str, size: Mapping[str, int], length: int) -> Split:
    return Split(dim, size[dim], -(-size[dim] // length), length)


# Position of a tensor and of its axis, to a split and the weight of each of its residues.
Weight = tuple[tuple[int, int], tuple[Split, tuple[int, ...]]]


def stored_work(
    problem: Problem, size: Mapping[str, int], weights: Iterable[Weight]
) -> tuple[int, int]:
    """Add up the weights of all points none of whose operands is padding.

    Parameters
    ----------
    problem : Problem
    size : mapping of dimension name to int
        The problem's, or 1 for dimensions that are counted apart.
    weights : iterable of Weight
        Of axes whose points do not all weigh 1.

    Returns
    -------
    tuple of int
        The sum, rounded down, at times smaller; and the largest weight of a
        point, rounded up.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> layer = conv2d(c=1, k=1, h=4, w=4, r=3, s=3, padding=1)
    >>> stored_work(layer, layer.size, ())
    (100, 1)
    """
    weighted = dict(weights)
    total, largest, scale = math.prod(size.values()), 1, 1
    seen: set[str] = set()
    for i, tensor in enumerate(problem.tensors):
        for j, axis in enumerate(tensor.axes):
            is_clip = is_clipped(axis, size)
            split, weight = weighted.get((i, j), (None, ()))
            if seen & set(axis.dims):
                if is_clip:
                    return 0, 1  # two axes clip one dimension: their counts do not multiply
                continue  # without weights: they are at least 1
            if split is not None and split.size > _MAX_WALK:
                split = None
            if not is_clip and split is None:
                continue
            seen |= set(axis.dims)
            total //= math.prod(size[dim] for dim in axis.dims)
            if split is None:
                total *= _count(axis, size)
            else:
                total *= sum(
                    weight[value % split.modulus] * _count(axis, size, (split.dim, value))
                    for value in range(split.size)
                )
                largest *= max(weight)
                scale *= WEIGHT_SCALE
    return total // scale, -(-largest // scale)


def _count(axis: Axis, size: Mapping[str, int], fixed: tuple[str, int] | None = None) -> int:
    """Count points of an axis that are stored, one dimension held fixed."""
    held, at = fixed or ("", 0)
    first = axis.offset + sum(c * at for dim, c in axis.terms if dim == held)
    free = [(dim, c) for dim, c in axis.terms if dim != held]
    if axis.size is None:
        return math.prod(size[dim] for dim, _ in free)
    *others, (dim, step) = sorted(free, key=lambda term: size[term[0]])
    count = 0
    places = product(*(range(0, c * size[other], c) for other, c in others))
    for place, _ in zip(places, range(_MAX_WALK), strict=False):
        begin = max(0, -((first + sum(place)) // step))
        end = min(size[dim], -((first + sum(place) - axis.size) // step))
        count += max(0, end - begin)
    return count
