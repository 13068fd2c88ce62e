"""The compiled loop that scores one schedule after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopsched.base.jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@jit
def _prepare(
    index: Ints,
    fast: int,
    inner: int,
    run: Ints,
    slides: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    tensor_axes: Ints,
    is_indexed: Ints,
    weight: Ints,
    element_bytes: Ints,
    values: Ints,
    sizes: Ints,
    pieces_at: Ints,
    slid_at: int,
    factors: Ints,
    where: Ints,
) -> None:
    """Multiply together all that does not depend on the fast dimension.

    ``values`` are sums over all pieces, from ``slid_at`` on of what pieces add where the
    window slides along an axis' first dimension, then along its second, pieces, and a 1.
    ``factors[t]``: of the visits' bytes, of the body's, and of the body's with
    the innermost loop's dimension whole.  ``where[t]``: start and step of what
    the fast dimension picks from ``values``, from ``sizes``, and from ``sizes``
    with the innermost loop's dimension whole.
    """
    one_at = len(values) - 1
    for t in range(len(weight)):
        visits, body, around = weight[t], element_bytes[t], element_bytes[t]
        where[t, 0], where[t, 1] = one_at, 0
        where[t, 2], where[t, 3] = one_at, 0
        where[t, 4], where[t, 5] = one_at, 0
        for a in range(tensor_axes[t], tensor_axes[t + 1]):
            d1, d2 = axis_dims[a, 0], axis_dims[a, 1]
            # The place of this axis' number, but for the fast dimension's part.
            step = 0
            at = axis_start[a]
            around_at = at
            around_step = 0
            slid = 0
            if slides[t] >= 0:
                slid = slid_at if d1 == slides[t] else 2 * slid_at if d2 == slides[t] else 0
            for k in range(2):
                d = d1 if k == 0 else d2
                if d < 0:
                    continue
                stride = axis_stride[a] if k == 0 else 1
                if d == fast:
                    step = stride
                    if d != inner:
                        around_step = stride
                else:
                    at += index[d] * stride
                    if d != inner:
                        around_at += index[d] * stride
            if step:
                where[t, 0], where[t, 1] = at + slid, step
                where[t, 2], where[t, 3] = at, step
                where[t, 4], where[t, 5] = around_at, around_step
            else:
                visits *= values[at + slid]
                body *= sizes[at]
                around *= sizes[around_at]
        for d in range(len(index)):
            if is_indexed[t, d] == 0 and run[t, d] == 0:
                if d == fast:
                    where[t, 0], where[t, 1] = pieces_at[d], 1
                else:
                    visits *= values[pieces_at[d] + index[d]]
        factors[t, 0], factors[t, 1], factors[t, 2] = visits, body, around


@jit
def _needed(factors: Ints, where: Ints, sizes: Ints, which: int, i: int) -> int:
    """Bytes of the body (1), or of the region around it (2)."""
    need = 0
    for t in range(factors.shape[0]):
        need += factors[t, which] * sizes[where[t, 2 * which] + i * where[t, 2 * which + 1]]
    return need


@jit
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


@jit
def score_class(
    index: Ints,
    slow: Ints,
    fast: int,
    inner: int,
    run: Ints,
    slides: Ints,
    n_extents: Ints,
    radix: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    tensor_axes: Ints,
    is_indexed: Ints,
    weight: Ints,
    element_bytes: Ints,
    values: Ints,
    sizes: Ints,
    pieces_at: Ints,
    slid_at: int,
    constant: int,
    capacity: int,
    is_monotone: bool,
    best: Ints,
    counts: Ints,
    bins: Ints,
    out: Ints,
    codes: Ints,
) -> tuple[int, bool]:
    """Score every choice of extents under one class of orders.

    ``is_monotone`` says that no smaller extent needs more room: then the fitting
    ones are found by halving.  ``index`` is where to begin, and is left where to
    go on.  Each schedule's bytes go to ``out`` if it has room at all, and into
    ``bins`` by their number of binary digits if there are any.  ``best`` keeps the
    fewest and its code; ``counts`` the scored, the too large and those whose next
    larger region fits as well.  Returns how many were written, and whether all is
    done.
    """
    n_tensors = len(weight)
    factors = np.zeros((n_tensors, 3), dtype=np.int64)
    where = np.zeros((n_tensors, 6), dtype=np.int64)
    written, scored, too_large, covered = 0, 0, 0, 0
    least, least_code = best[0], best[1]
    count = n_extents[fast]
    while True:
        if len(out) and len(out) - written < count:
            best[0], best[1] = least, least_code
            counts[0] += scored
            counts[1] += too_large
            counts[2] += covered
            return written, False
        _prepare(
            index,
            fast,
            inner,
            run,
            slides,
            axis_dims,
            axis_stride,
            axis_start,
            tensor_axes,
            is_indexed,
            weight,
            element_bytes,
            values,
            sizes,
            pieces_at,
            slid_at,
            factors,
            where,
        )
        code = 0
        for k in range(len(slow)):
            code += index[slow[k]] * radix[slow[k]]
        first, last = 1, count  # those that fit, and with the region around too large
        if is_monotone:
            first = _first_fitting(factors, where, sizes, 1, count, capacity)
            last = max(first, _first_fitting(factors, where, sizes, 2, count, capacity))
            too_large += first - 1
            covered += count - last
        for i in range(first, last):
            if not is_monotone:
                if _needed(factors, where, sizes, 1, i) > capacity:
                    too_large += 1
                    continue
                if _needed(factors, where, sizes, 2, i) <= capacity:
                    covered += 1
                    continue
            moved = -constant
            for t in range(n_tensors):
                moved += factors[t, 0] * values[where[t, 0] + i * where[t, 1]]
            scored += 1
            if moved < least:
                least = moved
                least_code = code + i * radix[fast]
            if len(out):
                out[written] = moved
                codes[written] = code + i * radix[fast]
                written += 1
            if len(bins):
                digits, rest = 0, moved
                while rest:
                    digits += 1
                    rest >>= 1
                bins[digits] += 1
        k = len(slow) - 1
        # Where the region around fits from the first choice on, it fits for all smaller ones.
        is_covered = is_monotone and first == 1 and last == 1
        subtree = count - 1
        while k >= 0:
            d = slow[k]
            if is_covered:
                covered += (n_extents[d] - 1 - index[d]) * subtree
                subtree *= n_extents[d] - 1
                is_covered = index[d] == 1
                index[d] = n_extents[d] - 1
            index[d] += 1
            if index[d] < n_extents[d]:
                break
            index[d] = 1
            k -= 1
        if k < 0:
            best[0], best[1] = least, least_code
            counts[0] += scored
            counts[1] += too_large
            counts[2] += covered
            return written, True
