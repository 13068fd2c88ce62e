"""The compiled loop that scores one schedule after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loopsched.base.jit import jit, step
from loopsched.scheduler.kernels import FIRST, SECOND, START, STRIDE, Numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class Space(NamedTuple):
    """What bodies of a problem are numbered and scored by.

    ``values`` are sums over all pieces, from ``slid_at`` on of what pieces add where the
    window slides along an axis' first dimension, then along its second, pieces, and a 1.
    ``sizes`` are the largest pieces.  ``is_monotone`` says that no smaller extent needs more
    room: then the fitting ones are found by halving.
    """

    radix: Ints
    values: Ints
    sizes: Ints
    pieces_at: Ints
    slid_at: int
    constant: int
    capacity: int
    is_monotone: bool


class Class(NamedTuple):
    """A class of orders, the loop that runs fastest, and the dimension of the innermost."""

    slow: Ints
    fast: int
    inner: int
    run: Ints
    slides: Ints


class Found(NamedTuple):
    """What is found.

    ``best`` keeps the fewest bytes and their code; ``counts`` the scored, the too large and those
    whose next larger region fits as well; ``bins``, if there are any, the scored by their number
    of binary digits; ``out`` and ``codes``, if there is room at all, each schedule's bytes.
    """

    best: Ints
    counts: Ints
    bins: Ints
    out: Ints
    codes: Ints


@step
def _prepare(n: Numbers, space: Space, of: Class, index: Ints, factors: Ints, where: Ints) -> None:
    """Multiply together all that does not depend on the fast dimension.

    ``factors[t]``: of the visits' bytes, of the body's, and of the body's with
    the innermost loop's dimension whole.  ``where[t]``: start and step of what
    the fast dimension picks from ``values``, from ``sizes``, and from ``sizes``
    with the innermost loop's dimension whole.
    """
    values, sizes, fast, inner, slides = space.values, space.sizes, of.fast, of.inner, of.slides
    for t in range(len(n.weight)):
        visits, body, around = n.weight[t], n.element_bytes[t], n.element_bytes[t]
        where[t, 0::2], where[t, 1::2] = len(values) - 1, 0
        for a in range(n.tensor_axes[t], n.tensor_axes[t + 1]):
            d1, d2 = n.axes[a, FIRST], n.axes[a, SECOND]
            # The place of this axis' number, but for the fast dimension's part.
            fast_step = around_step = slid = 0
            at = around_at = n.axes[a, START]
            if slides[t] >= 0 and slides[t] in (d1, d2):
                slid = space.slid_at if d1 == slides[t] else 2 * space.slid_at
            for k in range(2):
                d = d1 if k == 0 else d2
                if d < 0:
                    continue
                stride = n.axes[a, STRIDE] if k == 0 else 1
                if d == fast:
                    fast_step = stride
                    if d != inner:
                        around_step = stride
                else:
                    at += index[d] * stride
                    if d != inner:
                        around_at += index[d] * stride
            if fast_step:
                where[t, 0], where[t, 1] = at + slid, fast_step
                where[t, 2], where[t, 3] = at, fast_step
                where[t, 4], where[t, 5] = around_at, around_step
            else:
                visits *= values[at + slid]
                body *= sizes[at]
                around *= sizes[around_at]
        for d in range(len(index)):
            if n.is_indexed[t, d] == 0 and of.run[t, d] == 0:
                if d == fast:
                    where[t, 0], where[t, 1] = space.pieces_at[d], 1
                else:
                    visits *= values[space.pieces_at[d] + index[d]]
        factors[t, 0], factors[t, 1], factors[t, 2] = visits, body, around


@step
def _needed(factors: Ints, where: Ints, sizes: Ints, which: int, i: int) -> int:
    """Bytes of the body (1), or of the region around it (2)."""
    need = 0
    for t in range(factors.shape[0]):
        need += factors[t, which] * sizes[where[t, 2 * which] + i * where[t, 2 * which + 1]]
    return need


@step
def _first_fitting(
    factors: Ints, where: Ints, sizes: Ints, which: int, count: int, capacity: int
) -> int:
    """Find the first choice of the fast dimension that fits; ``count`` if none does."""
    low, high = 1, count
    while low < high:
        middle = (low + high) // 2
        if _needed(factors, where, sizes, which, middle) <= capacity:
            high = middle
        else:
            low = middle + 1
    return low


@step
def _keep(found: Found, moved: int, code: int, written: int) -> int:
    """Put a schedule into its bin, and write it; return how many were written."""
    if len(found.bins):
        digits = 0
        while moved >> digits:
            digits += 1
        found.bins[digits] += 1
    if len(found.out):
        found.out[written], found.codes[written] = moved, code
        written += 1
    return written


@step
def _take_next(n: Numbers, of: Class, index: Ints, found: Found, is_covered: bool) -> bool:
    """Take the next choice of the slow dimensions; return whether there is one.

    Where the region around fits from the first choice on, it fits for all smaller ones.
    """
    subtree = n.n_extents[of.fast] - 1
    for k in range(len(of.slow) - 1, -1, -1):
        d = of.slow[k]
        if is_covered:
            found.counts[2] += (n.n_extents[d] - 1 - index[d]) * subtree
            subtree *= n.n_extents[d] - 1
            is_covered = index[d] == 1
            index[d] = n.n_extents[d] - 1
        index[d] += 1
        if index[d] < n.n_extents[d]:
            return True
        index[d] = 1
    return False


@jit
def score_class(n: Numbers, space: Space, of: Class, index: Ints, found: Found) -> tuple[int, bool]:
    """Score every choice of extents under one class of orders.

    ``index`` is where to begin, and is left where to go on.  Returns how many
    schedules were written, and whether all is done.
    """
    n_tensors = len(n.weight)
    factors = np.zeros((n_tensors, 3), dtype=np.int64)
    where = np.zeros((n_tensors, 6), dtype=np.int64)
    written, count = 0, n.n_extents[of.fast]
    values, sizes, capacity = space.values, space.sizes, space.capacity
    least, is_kept = found.best[0], len(found.bins) + len(found.out) > 0
    while True:
        if len(found.out) and len(found.out) - written < count:
            return written, False
        _prepare(n, space, of, index, factors, where)
        code = 0
        for d in of.slow:
            code += index[d] * space.radix[d]
        first, last = 1, count  # those that fit, and with the region around too large
        if space.is_monotone:
            first = _first_fitting(factors, where, sizes, 1, count, capacity)
            last = max(first, _first_fitting(factors, where, sizes, 2, count, capacity))
            found.counts[1] += first - 1
            found.counts[2] += count - last
        found.counts[0] += last - first
        for i in range(first, last):
            if not space.is_monotone:
                if _needed(factors, where, sizes, 1, i) > capacity:
                    found.counts[0] -= 1
                    found.counts[1] += 1
                    continue
                if _needed(factors, where, sizes, 2, i) <= capacity:
                    found.counts[0] -= 1
                    found.counts[2] += 1
                    continue
            moved = -space.constant
            for t in range(n_tensors):
                moved += factors[t, 0] * values[where[t, 0] + i * where[t, 1]]
            if moved < least:
                least = found.best[0] = moved
                found.best[1] = code + i * space.radix[of.fast]
            if is_kept:
                written = _keep(found, moved, code + i * space.radix[of.fast], written)
        is_covered = space.is_monotone and first == 1 and last == 1
        if not _take_next(n, of, index, found, is_covered):
            return written, True
