"""Compiled loops of the search: the only module of the scheduler that numba sees.

All numbers are exact 64-bit integers; callers check that they cannot overflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopsched.base.jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@jit
def _stretch_count(first: int, width: int, size: int) -> int:
    """Count the positions of an unbroken stretch that are stored."""
    if size < 0:
        return width
    return max(0, min(size, first + width) - max(0, first))


@jit
def _gappy_count(
    first: int, c1: int, n1: int, c2: int, n2: int, size: int, marks: Ints, stamp: int
) -> int:
    count = 0
    for i in range(n1):
        for j in range(n2):
            at = c1 * i + c2 * j
            if size >= 0 and not 0 <= first + at < size:
                continue
            if marks[at] != stamp:
                marks[at] = stamp
                count += 1
    return count


@jit
def _added(
    first: int,
    c1: int,
    n1: int,
    c2: int,
    n2: int,
    before: int,
    step: int,
    size: int,
    marks: Ints,
    stamp: int,
) -> int:
    """Count what a piece adds to the one ``step`` positions before it, of ``before`` instead of n1.

    ``marks`` gets two stamps, this one and the one before.
    """
    if _is_unbroken(c1, n1, c2, n2) and _is_unbroken(c1, before, c2, n2):
        end = first + c1 * (n1 - 1) + c2 * (n2 - 1) + 1
        begin = max(first, first - step + c1 * (before - 1) + c2 * (n2 - 1) + 1)
        return _stretch_count(begin, max(0, end - begin), size)
    for i in range(before):
        for j in range(n2):
            marks[c1 * i + c2 * j] = stamp - 1
    count = 0
    for i in range(n1):
        for j in range(n2):
            at = step + c1 * i + c2 * j
            if size >= 0 and not 0 <= first - step + at < size:
                continue
            if marks[at] < stamp - 1:
                marks[at] = stamp
                count += 1
    return count


@jit
def axis_table(
    outer1: Ints,
    extents1: Ints,
    c1: int,
    outer2: Ints,
    extents2: Ints,
    c2: int,
    offset: int,
    size: int,
    out: Ints,
) -> None:
    """Tabulate an axis ``c1*i + c2*j + offset`` clipped to ``[0, size)``.

    ``out`` gets seven rows: the sum over all pieces, the largest piece, bounds
    for a pair of pieces along either dimension, whether a piece is unbroken, the
    sum of what pieces add to the ones before them along either dimension.
    ``size`` is -1 where nothing is clipped.
    """
    longest1 = outer1[:, 1].max()
    longest2 = outer2[:, 1].max()
    marks = np.zeros(c1 * (2 * longest1) + c2 * (2 * longest2) + 1, dtype=np.int64)
    stamp = 0
    for a in range(len(extents1)):
        for b in range(len(extents2)):
            e1, e2 = extents1[a], extents2[b]
            at = a * len(extents2) + b
            total, largest, slid1, slid2 = 0, 0, 0, 0
            for p in range(outer1.shape[0]):
                x = outer1[p, 0]
                while x < outer1[p, 0] + outer1[p, 1]:
                    n1 = min(e1, outer1[p, 0] + outer1[p, 1] - x)
                    for q in range(outer2.shape[0]):
                        y = outer2[q, 0]
                        while y < outer2[q, 0] + outer2[q, 1]:
                            n2 = min(e2, outer2[q, 0] + outer2[q, 1] - y)
                            first = c1 * x + c2 * y + offset
                            width = c1 * (n1 - 1) + c2 * (n2 - 1) + 1
                            if _is_unbroken(c1, n1, c2, n2):
                                count = _stretch_count(first, width, size)
                            else:
                                stamp += 1
                                count = _gappy_count(first, c1, n1, c2, n2, size, marks, stamp)
                            total += count
                            largest = max(largest, count)
                            new1, new2 = count, count
                            if x > outer1[p, 0]:
                                stamp += 2
                                new1 = _added(
                                    first, c1, n1, c2, n2, e1, c1 * e1, size, marks, stamp
                                )
                            if y > outer2[q, 0]:
                                stamp += 2
                                new2 = _added(
                                    first, c2, n2, c1, n1, e2, c2 * e2, size, marks, stamp
                                )
                            slid1 += new1
                            slid2 += new2
                            y += e2
                    x += e1
            out[0, at] = total
            out[1, at] = largest
            for along in range(2):
                d1 = min(2 * e1, longest1) if along == 0 else e1
                d2 = min(2 * e2, longest2) if along == 1 else e2
                if _is_unbroken(c1, d1, c2, d2):
                    both = c1 * (d1 - 1) + c2 * (d2 - 1) + 1
                else:
                    stamp += 1
                    both = _gappy_count(0, c1, d1, c2, d2, -1, marks, stamp)
                if size >= 0:
                    both = min(both, size)
                out[2 + along, at] = min(both, 2 * largest)
            out[4, at] = 1 if _is_unbroken(c1, e1, c2, e2) else 0
            out[5, at], out[6, at] = slid1, slid2


@jit
def _count(
    first: int, c1: int, n1: int, c2: int, n2: int, size: int, marks: Ints, stamp: int
) -> int:
    """Count the stored positions of ``first + c1*i + c2*j``."""
    if _is_unbroken(c1, n1, c2, n2):
        return _stretch_count(first, c1 * (n1 - 1) + c2 * (n2 - 1) + 1, size)
    return _gappy_count(first, c1, n1, c2, n2, size, marks, stamp)


@jit
def least_axis_table(
    extents1: Ints, c1: int, extents2: Ints, c2: int, offset: int, size: int, out: Ints
) -> None:
    """Bound the pieces of an axis from below, however unevenly it is cut.

    ``out`` gets three rows: the largest piece, and a pair of pieces along
    either dimension.  The first extents are those of the whole dimensions;
    ``size`` is -1 where nothing is clipped.
    """
    whole1, whole2 = extents1[0], extents2[0]
    marks = np.zeros(c1 * (whole1 + 1) + c2 * (whole2 + 1) + 1, dtype=np.int64)
    stamp = 0
    for a in range(len(extents1)):
        for b in range(len(extents2)):
            n1, n2 = extents1[a], extents2[b]
            at = a * len(extents2) + b
            one = 0
            for place in range(3):  # the first piece; one around the middle of either dimension
                first, m1, m2 = offset, n1, n2
                if place == 1:
                    first, m1 = offset + c1 * (whole1 // 2), 1
                elif place == 2:
                    first, m2 = offset + c2 * (whole2 // 2), 1
                stamp += 1
                one = max(one, _count(first, c1, m1, c2, m2, size, marks, stamp))
            out[0, at] = one
            for along in range(2):
                d1 = min(n1 + 1, whole1) if along == 0 else n1
                d2 = min(n2 + 1, whole2) if along == 1 else n2
                stamp += 1
                both = _count(0, c1, d1, c2, d2, -1, marks, stamp)
                if size >= 0:
                    both = min(both, size)
                out[1 + along, at] = max(one, min(both, 2 * one))


@jit
def least_sums(
    c1: int, whole1: int, c2: int, whole2: int, offset: int, size: int, points: Ints, out: Ints
) -> None:
    """Bound the sum on an axis over all ways to cut its second dimension.

    ``out[i, e]`` receives the least sum over pieces of at most ``e`` of which
    the first is ``e`` long, if ``points[i]`` windows of the first dimension
    meet with no padding beside (`c2` is 1, or there are none).
    """
    marks = np.zeros(c1 * whole1 + c2 * whole2 + 1, dtype=np.int64)
    union = np.zeros((whole2, whole2 + 1), dtype=np.int64)
    stamp = 0
    for y in range(whole2):
        for n in range(1, whole2 - y + 1):
            stamp += 1
            union[y, n] = _count(offset + c2 * y, c1, whole1, c2, n, size, marks, stamp)
    least = np.zeros(whole2 + 1, dtype=np.int64)
    for i in range(len(points)):
        for e in range(1, whole2 + 1):
            for end in range(e, whole2 + 1):
                best = 2**62
                for n in range(1, e + 1):
                    y = end - n
                    if (y < e and y != 0) or (y == 0 and n != e):
                        continue  # the first piece is whole
                    both = points[i] * max(0, n - c1)
                    best = min(best, (least[y] if y else 0) + union[y, n] + both)
                least[end] = best
            out[i, e] = least[whole2]


@jit
def _is_unbroken(c1: int, n1: int, c2: int, n2: int) -> bool:
    """Whether ``c1*i + c2*j`` takes every value between its ends."""
    if n1 == 1 and n2 == 1:
        return True
    if n1 == 1:
        return c2 == 1
    if n2 == 1:
        return c1 == 1
    if c2 == 1 and c1 <= n2:
        return True
    return c1 == 1 and c2 <= n1


@jit
def envelope(flat: Ints, rows: int, columns: int, start: int, is_forward: bool, out: Ints) -> None:
    """Replace each number by the least of those behind it, or before it, both ways."""
    step = -1 if is_forward else 1
    for at_i in range(rows):
        i = rows - 1 - at_i if is_forward else at_i
        for at_j in range(columns):
            j = columns - 1 - at_j if is_forward else at_j
            least = flat[start + i * columns + j]
            if at_i:
                least = min(least, out[start + (i - step) * columns + j])
            if at_j:
                least = min(least, out[start + i * columns + j - step])
            out[start + i * columns + j] = least


@jit
def on_axes(
    table: Ints,
    index: Ints,
    t: int,
    skip: int,
    tensor_axes: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
) -> int:
    """Multiply a table over the axes of a tensor; dimension ``skip`` stays whole."""
    product = 1
    for a in range(tensor_axes[t], tensor_axes[t + 1]):
        d1, d2 = axis_dims[a, 0], axis_dims[a, 1]
        at = axis_start[a]
        if d1 != skip:
            at += index[d1] * axis_stride[a]
        if d2 >= 0 and d2 != skip:
            at += index[d2]
        product *= table[at]
    return product


@jit
def slid_on_axes(
    total: Ints,
    slid_first: Ints,
    slid_second: Ints,
    index: Ints,
    t: int,
    slide: int,
    tensor_axes: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
) -> int:
    """Multiply the sums over the axes of a tensor whose window slides along a dimension."""
    product = 1
    for a in range(tensor_axes[t], tensor_axes[t + 1]):
        d1, d2 = axis_dims[a, 0], axis_dims[a, 1]
        at = axis_start[a] + index[d1] * axis_stride[a]
        if d2 >= 0:
            at += index[d2]
        if slide >= 0 and d1 == slide:
            product *= slid_first[at]
        elif slide >= 0 and d2 == slide:
            product *= slid_second[at]
        else:
            product *= total[at]
    return product


@jit
def times_repeated(index: Ints, t: int, run: Ints, pieces: Ints, is_indexed: Ints) -> int:
    """Count how often a tensor's pieces come again: along what does not index it."""
    product = 1
    for d in range(pieces.shape[0]):
        if is_indexed[t, d] == 0:
            product *= pieces[d, 0 if run[d] else index[d]]
    return product


@jit
def _fits(needs: Ints, capacity: int, own: Ints) -> bool:
    shared = 0
    for t in range(len(needs)):
        if own[t] >= 0:
            if needs[t] > own[t]:
                return False
        elif own[t] == -1:
            shared += needs[t]
    return shared <= capacity


@jit
def window_pair(
    one: Ints,
    index: Ints,
    b: int,
    run: Ints,
    slide: int,
    tensor_axes: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    largest: Ints,
    pair_first: Ints,
    pair_second: Ints,
    is_indexed: Ints,
    element_bytes: Ints,
    pieces: Ints,
) -> int:
    """Bound what two consecutive bodies touch of tensor ``b``."""
    between, touching, only = 0, 0, -1
    for d in range(len(run)):
        if (run[d] or d == slide) and pieces[d, index[d]] > pieces[d, 0]:
            between += 1
            only = d
            if is_indexed[b, d]:
                touching += 1
    if touching == 0:
        return int(one[b])
    if between > 1:
        return int(2 * one[b])
    product = element_bytes[b]
    for a in range(tensor_axes[b], tensor_axes[b + 1]):
        d1, d2 = axis_dims[a, 0], axis_dims[a, 1]
        at = axis_start[a] + index[d1] * axis_stride[a]
        if d2 >= 0:
            at += index[d2]
        if d1 == only:
            product *= pair_first[at]
        elif d2 == only:
            product *= pair_second[at]
        else:
            product *= largest[at]
    return int(min(product, 2 * one[b]))


@jit
def moved(weight: int, repeats: int, elems: int) -> int:
    """Multiply; what is more than kernels count to becomes less, but still more than all else."""
    if float(weight) * float(repeats) * float(elems) >= 2.0**58:
        return 2**58
    return weight * repeats * elems


@jit
def best_body(
    pieces: Ints,
    n_extents: Ints,
    axis_dims: Ints,
    axis_stride: Ints,
    axis_start: Ints,
    total: Ints,
    total_bound: Ints,
    largest: Ints,
    largest_bound: Ints,
    pair_first: Ints,
    pair_second: Ints,
    is_gapless: Ints,
    slid_first: Ints,
    slid_second: Ints,
    tensor_axes: Ints,
    is_indexed: Ints,
    weight: Ints,
    element_bytes: Ints,
    actives: Ints,
    runs: Ints,
    slide_dims: Ints,
    capacity: int,
    own: Ints,
    copies: int,
    is_guaranteed: bool,
    least: int,
    incumbent: int,
    best_index: Ints,
    state: Ints,
    places: Ints,
    limit: int,
) -> tuple[int, int]:
    """Find the body and the order class that move the fewest bytes.

    ``actives[c, k]`` lists the dimensions of class ``c`` that may be cut (-1
    ends it), to candidates from number ``least``; ``runs[c, t, d]`` marks the
    run of tensor t; ``slide_dims[c, t]`` its slide.  Returns the bytes
    (``incumbent`` if none is better) and nodes; ``best_index`` receives the
    candidates' numbers, ``state`` the class to go on with, the depth in it (-1:
    at its beginning) and the best class (-1: none).  Comes back after ``limit``
    nodes; called again with the same ``state`` and ``places``, it goes on.
    """
    n_dims = pieces.shape[0]
    n_tensors = len(weight)
    index, bound_at, small_at = places[0], places[1], places[2]
    needs = np.zeros(n_tensors, dtype=np.int64)
    window = np.zeros(n_tensors, dtype=np.int64)
    empty = np.zeros(n_dims, dtype=np.int64)
    hints = np.zeros((n_dims, n_dims), dtype=np.int64)  # what fitted in the node before
    nodes = 0
    for c in range(state[0], actives.shape[0]):
        depth_of = 0
        while depth_of < n_dims and actives[c, depth_of] >= 0:
            depth_of += 1
        k = state[1]
        if k < 0:
            index[:] = 0
            bound_at[:] = 0
            small_at[:] = 0
            for j in range(depth_of):
                d = actives[c, j]
                bound_at[d] = least
                small_at[d] = n_extents[d] - 1
            k = 0
            if depth_of:
                index[actives[c, 0]] = least - 1
        while k >= 0:
            if nodes >= limit:
                state[0], state[1] = c, k
                return incumbent, nodes
            leaf = k >= depth_of - 1
            if depth_of:
                d = actives[c, k]
                index[d] += 1
                if index[d] >= n_extents[d]:
                    bound_at[d] = least
                    small_at[d] = n_extents[d] - 1
                    k -= 1
                    continue
                bound_at[d] = index[d]
                small_at[d] = index[d]
            nodes += 1
            bound = 0
            for t in range(n_tensors):
                skip = slide_dims[c, t]
                bound += moved(
                    weight[t],
                    times_repeated(bound_at, t, runs[c, t], pieces, is_indexed),
                    on_axes(
                        total_bound,
                        bound_at,
                        t,
                        skip,
                        tensor_axes,
                        axis_dims,
                        axis_stride,
                        axis_start,
                    ),
                )
            if bound >= incumbent:
                if depth_of == 0:
                    break
                bound_at[d] = least
                small_at[d] = n_extents[d] - 1
                k -= 1
                continue
            for t in range(n_tensors):
                needs[t] = (
                    copies
                    * element_bytes[t]
                    * on_axes(
                        largest if leaf else largest_bound,
                        small_at,
                        t,
                        -1,
                        tensor_axes,
                        axis_dims,
                        axis_stride,
                        axis_start,
                    )
                )
            fits = _fits(needs, capacity, own)
            if not fits:
                if depth_of == 0:
                    break
                continue
            if not leaf:
                # The largest extents of the rest that leave room, one by one: near those before.
                for j in range(k + 1, depth_of):
                    e = actives[c, j]
                    low, high, step = least, n_extents[e] - 1, 1
                    middle = hints[k, j] - 1
                    while low < high:
                        if middle < low or middle >= high:
                            middle = (low + high) // 2
                        small_at[e] = middle
                        for t in range(n_tensors):
                            needs[t] = (
                                copies
                                * element_bytes[t]
                                * on_axes(
                                    largest_bound,
                                    small_at,
                                    t,
                                    -1,
                                    tensor_axes,
                                    axis_dims,
                                    axis_stride,
                                    axis_start,
                                )
                            )
                        if _fits(needs, capacity, own):
                            high = middle
                            middle -= step
                        else:
                            low = middle + 1
                            middle += step
                        step *= 2
                    hints[k, j] = low
                    small_at[e] = n_extents[e] - 1
                    bound_at[e] = low
                bound = 0
                for t in range(n_tensors):
                    bound += moved(
                        weight[t],
                        times_repeated(bound_at, t, runs[c, t], pieces, is_indexed),
                        on_axes(
                            total_bound,
                            bound_at,
                            t,
                            slide_dims[c, t],
                            tensor_axes,
                            axis_dims,
                            axis_stride,
                            axis_start,
                        ),
                    )
                first = bound_at[actives[c, k + 1]]
                for j in range(k + 1, depth_of):
                    bound_at[actives[c, j]] = least
                if bound < incumbent:
                    k += 1
                    index[actives[c, k]] = first - 1
                continue
            cost = 0
            for t in range(n_tensors):
                slide = slide_dims[c, t]
                run = runs[c, t]
                if is_guaranteed:
                    ok = True
                    if slide >= 0:
                        for a in range(tensor_axes[t], tensor_axes[t + 1]):
                            d1, d2 = axis_dims[a, 0], axis_dims[a, 1]
                            if d1 == slide or d2 == slide:
                                at = axis_start[a] + index[d1] * axis_stride[a]
                                if d2 >= 0:
                                    at += index[d2]
                                ok = ok and is_gapless[at] == 1
                        if ok:
                            for b in range(n_tensors):
                                window[b] = window_pair(
                                    needs,
                                    index,
                                    b,
                                    run,
                                    slide,
                                    tensor_axes,
                                    axis_dims,
                                    axis_stride,
                                    axis_start,
                                    largest,
                                    pair_first,
                                    pair_second,
                                    is_indexed,
                                    element_bytes,
                                    pieces,
                                )
                            ok = _fits(window, capacity, own)
                        if not ok:
                            slide = -1
                    has_run = False
                    for e in range(n_dims):
                        has_run = has_run or run[e] != 0
                    if slide < 0 and has_run:
                        for b in range(n_tensors):
                            window[b] = window_pair(
                                needs,
                                index,
                                b,
                                run,
                                -1,
                                tensor_axes,
                                axis_dims,
                                axis_stride,
                                axis_start,
                                largest,
                                pair_first,
                                pair_second,
                                is_indexed,
                                element_bytes,
                                pieces,
                            )
                        if not _fits(window, capacity, own):
                            run = empty
                cost += moved(
                    weight[t],
                    times_repeated(index, t, run, pieces, is_indexed),
                    slid_on_axes(
                        total,
                        slid_first,
                        slid_second,
                        index,
                        t,
                        slide,
                        tensor_axes,
                        axis_dims,
                        axis_stride,
                        axis_start,
                    ),
                )
            if cost < incumbent:
                incumbent = cost
                state[2] = c
                best_index[:] = index
            if depth_of == 0:
                break
        state[1] = -1
    state[0] = actives.shape[0]
    return incumbent, nodes
