"""Compiled loops of the search: the only module of the scheduler that numba sees.

All numbers are exact 64-bit integers; callers check that they cannot overflow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.jit import jit, step
from loopsched.problems._axis_kernels import is_unbroken, stretch_count

# Rows of `Numbers.tables`; behind each of the sums and the largest pieces, the same lowered to what
# is monotone; behind what is along an axis' first dimension, the same along its second.
TOTAL, TOTAL_BOUND, LARGEST, LARGEST_BOUND, IS_GAPLESS = range(5)
PAIR, SLID = 5, 7
# Columns of `Numbers.axes`.
FIRST, SECOND, STRIDE, START = range(4)


class Numbers(NamedTuple):
    """What kernels know of a problem: see `loopsched.scheduler.tables.Tables`.

    Few arrays, as each costs every compiled function a handful of arguments.
    """

    pieces: Ints
    n_extents: Ints
    axes: Ints
    tables: Ints
    tensor_axes: Ints
    is_indexed: Ints
    weight: Ints
    element_bytes: Ints


class Orders(NamedTuple):
    """Classes of orders.

    ``actives[c, k]`` lists the dimensions of class ``c`` that may be cut (-1 ends it), to
    candidates from number ``least``; ``runs[c, t, d]`` marks the run of tensor t,
    ``slides[c, t]`` its slide.
    """

    actives: Ints
    runs: Ints
    slides: Ints
    least: int


class Buffer(NamedTuple):
    """What a buffer holds.

    ``own[t]`` is the room of tensor t alone; -1 where it shares ``capacity``, -2 where it passes.
    """

    capacity: int
    own: Ints
    copies: int
    is_guaranteed: bool


class Partial(NamedTuple):
    """A choice that is made in part.

    ``chosen`` holds the candidates' numbers; ``loose`` the largest extents that are still
    possible, ``tight`` the smallest; ``needs`` and ``window`` are for the bytes of each tensor.
    """

    chosen: Ints
    loose: Ints
    tight: Ints
    needs: Ints
    window: Ints


class Line(NamedTuple):
    """An axis ``c1*i + c2*j + offset`` clipped to ``[0, size)``; -1: not clipped."""

    c1: int
    c2: int
    offset: int
    size: int


@step
def _new_marks(line: Line, n1: int, n2: int) -> Ints:
    """Make marks for positions that are counted one by one, and behind them the last stamp."""
    return np.zeros(line.c1 * n1 + line.c2 * n2 + 2, dtype=np.int64)


@jit
def _count(line: Line, first: int, n1: int, n2: int, marks: Ints) -> int:
    """Count the stored positions of ``first + c1*i + c2*j``."""
    c1, c2, _, size = line
    if is_unbroken(c1, n1, c2, n2):
        return stretch_count(first, c1 * (n1 - 1) + c2 * (n2 - 1) + 1, size)
    marks[-1] += 1
    count = 0
    for i in range(n1):
        for j in range(n2):
            at = c1 * i + c2 * j
            if size >= 0 and not 0 <= first + at < size:
                continue
            if marks[at] != marks[-1]:
                marks[at] = marks[-1]
                count += 1
    return count


@jit
def _added(line: Line, first: int, n1: int, n2: int, before: int, marks: Ints) -> int:
    """Count what a piece adds to the one ``before`` it, so long along the first dimension."""
    c1, c2, _, size = line
    step = c1 * before
    if is_unbroken(c1, n1, c2, n2) and is_unbroken(c1, before, c2, n2):
        end = first + c1 * (n1 - 1) + c2 * (n2 - 1) + 1
        begin = max(first, first - step + c1 * (before - 1) + c2 * (n2 - 1) + 1)
        return stretch_count(begin, max(0, end - begin), size)
    marks[-1] += 2
    stamp = marks[-1]
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
def _pieces_of(outer: Ints, extent: int) -> Ints:
    """Cut stretches: where each piece begins, its length, whether another is before it."""
    many = 0
    for p in range(outer.shape[0]):
        many += -(-outer[p, 1] // extent)
    pieces = np.zeros((many, 3), dtype=np.int64)
    at = 0
    for p in range(outer.shape[0]):
        for x in range(0, outer[p, 1], extent):
            pieces[at, 0], pieces[at, 1] = outer[p, 0] + x, min(extent, outer[p, 1] - x)
            pieces[at, 2] = x > 0
            at += 1
    return pieces


@step
def _longest(outer: Ints) -> int:
    """Find the length of the longest stretch."""
    longest = 0
    for p in range(outer.shape[0]):
        longest = max(longest, outer[p, 1])
    return longest


@jit
def axis_table(
    line: Line, outer1: Ints, extents1: Ints, outer2: Ints, extents2: Ints, out: Ints
) -> None:
    """Tabulate an axis.

    ``out`` gets seven rows: the sum over all pieces, the largest piece, bounds
    for a pair of pieces along either dimension, whether a piece is unbroken, the
    sum of what pieces add to the ones before them along either dimension.
    """
    longest1, longest2 = _longest(outer1), _longest(outer2)
    marks = _new_marks(line, 2 * longest1, 2 * longest2)
    turned = Line(line.c2, line.c1, line.offset, line.size)
    unclipped = Line(line.c1, line.c2, 0, -1)
    for a in range(len(extents1)):
        pieces1 = _pieces_of(outer1, extents1[a])
        for b in range(len(extents2)):
            e1, e2 = extents1[a], extents2[b]
            at = a * len(extents2) + b
            largest = 0
            pieces2 = _pieces_of(outer2, e2)
            for p in range(len(pieces1)):
                for q in range(len(pieces2)):
                    n1, n2 = pieces1[p, 1], pieces2[q, 1]
                    first = line.c1 * pieces1[p, 0] + line.c2 * pieces2[q, 0] + line.offset
                    count = _count(line, first, n1, n2, marks)
                    largest = max(largest, count)
                    out[0, at] += count
                    out[5, at] += _added(line, first, n1, n2, e1, marks) if pieces1[p, 2] else count
                    out[6, at] += (
                        _added(turned, first, n2, n1, e2, marks) if pieces2[q, 2] else count
                    )
            out[1, at] = largest
            for along in range(2):
                d1 = min(2 * e1, longest1) if along == 0 else e1
                d2 = min(2 * e2, longest2) if along == 1 else e2
                both = _count(unclipped, 0, d1, d2, marks)
                if line.size >= 0:
                    both = min(both, line.size)
                out[2 + along, at] = min(both, 2 * largest)
            out[4, at] = 1 if is_unbroken(line.c1, e1, line.c2, e2) else 0


@jit
def least_axis_table(line: Line, extents1: Ints, extents2: Ints, out: Ints) -> None:
    """Bound the pieces of an axis from below, however unevenly it is cut.

    ``out`` gets three rows: the largest piece, and a pair of pieces along
    either dimension.  The first extents are those of the whole dimensions.
    """
    whole1, whole2 = extents1[0], extents2[0]
    marks = _new_marks(line, whole1 + 1, whole2 + 1)
    unclipped = Line(line.c1, line.c2, 0, -1)
    for a in range(len(extents1)):
        for b in range(len(extents2)):
            n1, n2 = extents1[a], extents2[b]
            at = a * len(extents2) + b
            # The first piece; one around the middle of either dimension.
            one = max(
                _count(line, line.offset, n1, n2, marks),
                _count(line, line.offset + line.c1 * (whole1 // 2), 1, n2, marks),
                _count(line, line.offset + line.c2 * (whole2 // 2), n1, 1, marks),
            )
            out[0, at] = one
            for along in range(2):
                d1 = min(n1 + 1, whole1) if along == 0 else n1
                d2 = min(n2 + 1, whole2) if along == 1 else n2
                both = _count(unclipped, 0, d1, d2, marks)
                if line.size >= 0:
                    both = min(both, line.size)
                out[1 + along, at] = max(one, min(both, 2 * one))


@jit
def least_sums(line: Line, whole1: int, whole2: int, points: Ints, out: Ints) -> None:
    """Bound the sum on an axis over all ways to cut its second dimension.

    ``out[i, e]`` receives the least sum over pieces of at most ``e`` of which
    the first is ``e`` long, if ``points[i]`` windows of the first dimension
    meet with no padding beside (``c2`` is 1, or there are none).
    """
    marks = _new_marks(line, whole1, whole2)
    union = np.zeros((whole2, whole2 + 1), dtype=np.int64)
    for y in range(whole2):
        for n in range(1, whole2 - y + 1):
            union[y, n] = _count(line, line.offset + line.c2 * y, whole1, n, marks)
    least = np.zeros(whole2 + 1, dtype=np.int64)
    for i in range(len(points)):
        for e in range(1, whole2 + 1):
            for end in range(e, whole2 + 1):
                best = 2**62
                for n in range(1, e + 1):
                    y = end - n
                    if (y < e and y != 0) or (y == 0 and n != e):
                        continue  # the first piece is whole
                    both = points[i] * max(0, n - line.c1)
                    best = min(best, (least[y] if y else 0) + union[y, n] + both)
                least[end] = best
            out[i, e] = least[whole2]


@step
def on_axes(n: Numbers, row: int, index: Ints, t: int, skip: int) -> int:
    """Multiply a table over the axes of a tensor; dimension ``skip`` stays whole."""
    product = 1
    for a in range(n.tensor_axes[t], n.tensor_axes[t + 1]):
        first, second, at = n.axes[a, FIRST], n.axes[a, SECOND], n.axes[a, START]
        if first != skip:
            at += index[first] * n.axes[a, STRIDE]
        if second >= 0 and second != skip:
            at += index[second]
        product *= n.tables[row, at]
    return product


@step
def with_along(n: Numbers, row: int, other: int, index: Ints, t: int, along: int) -> int:
    """Multiply a table over the axes of a tensor; another one where a dimension moves along."""
    product = 1
    for a in range(n.tensor_axes[t], n.tensor_axes[t + 1]):
        first, second = n.axes[a, FIRST], n.axes[a, SECOND]
        at = n.axes[a, START] + index[first] * n.axes[a, STRIDE]
        if second >= 0:
            at += index[second]
        if along >= 0 and first == along:
            product *= n.tables[other, at]
        elif along >= 0 and second == along:
            product *= n.tables[other + 1, at]
        else:
            product *= n.tables[row, at]
    return product


@step
def times_repeated(n: Numbers, index: Ints, t: int, run: Ints) -> int:
    """Count how often a tensor's pieces come again: along what does not index it."""
    product = 1
    for d in range(n.pieces.shape[0]):
        if n.is_indexed[t, d] == 0:
            product *= n.pieces[d, 0 if run[d] else index[d]]
    return product


@step
def fits(buffer: Buffer, needs: Ints) -> bool:
    """Whether what tensors need leaves each its room."""
    shared = 0
    for t in range(len(needs)):
        if buffer.own[t] >= 0:
            if needs[t] > buffer.own[t]:
                return False
        elif buffer.own[t] == -1:
            shared += needs[t]
    return shared <= buffer.capacity


@step
def window_pair(n: Numbers, one: Ints, index: Ints, b: int, run: Ints, slide: int) -> int:
    """Bound what two consecutive bodies touch of tensor ``b``."""
    between, touching, only = 0, 0, -1
    for d in range(len(run)):
        if (run[d] or d == slide) and n.pieces[d, index[d]] > n.pieces[d, 0]:
            between += 1
            only = d
            if n.is_indexed[b, d]:
                touching += 1
    if touching == 0:
        return int(one[b])
    if between > 1:
        return int(2 * one[b])
    pair = with_along(n, LARGEST, PAIR, index, b, only)
    return int(min(n.element_bytes[b] * pair, 2 * one[b]))


@step
def is_solid(n: Numbers, index: Ints, t: int, slide: int) -> bool:
    """Whether a tensor's pieces have no gaps on the axes along which its window slides."""
    ones = 1
    for a in range(n.tensor_axes[t], n.tensor_axes[t + 1]):
        first, second = n.axes[a, FIRST], n.axes[a, SECOND]
        if slide in (first, second):
            at = n.axes[a, START] + index[first] * n.axes[a, STRIDE]
            ones *= n.tables[IS_GAPLESS, at + (index[second] if second >= 0 else 0)]
    return ones != 0


@step
def moved(weight: int, repeats: int, elems: int) -> int:
    """Multiply; what is more than kernels count to becomes less, but still more than all else."""
    if float(weight) * float(repeats) * float(elems) >= 2.0**58:
        return 2**58
    return weight * repeats * elems


@step
def _least(n: Numbers, index: Ints, runs: Ints, slides: Ints) -> int:
    """Bound what bodies of at most such extents move."""
    least = 0
    for t in range(len(n.weight)):
        elems = on_axes(n, TOTAL_BOUND, index, t, slides[t])
        least += moved(n.weight[t], times_repeated(n, index, t, runs[t]), elems)
    return least


@step
def _has_room(n: Numbers, buffer: Buffer, row: int, index: Ints, needs: Ints) -> bool:
    """Find what each tensor needs, and whether all fit."""
    for t in range(len(needs)):
        needs[t] = buffer.copies * n.element_bytes[t] * on_axes(n, row, index, t, -1)
    return fits(buffer, needs)


@step
def _widen(
    n: Numbers, buffer: Buffer, rest: Ints, least: int, partial: Partial, hints: Ints
) -> None:
    """Find the largest extents of the rest that leave room, each beside the smallest others.

    They are looked for near ``hints``, those of the node before.
    """
    for e in rest:
        low, high = least, n.n_extents[e] - 1
        middle, further = hints[e] - 1, 1
        while low < high:
            if middle < low or middle >= high:
                middle = (low + high) // 2
            partial.tight[e] = middle
            if _has_room(n, buffer, LARGEST_BOUND, partial.tight, partial.needs):
                high = middle
                middle -= further
            else:
                low = middle + 1
                middle += further
            further *= 2
        hints[e] = low
        partial.tight[e] = n.n_extents[e] - 1
        partial.loose[e] = low


@step
def _has_window(n: Numbers, buffer: Buffer, partial: Partial, run: Ints, slide: int) -> bool:
    """Whether two consecutive bodies fit, so that a cache keeps what they share."""
    for b in range(len(n.weight)):
        partial.window[b] = window_pair(n, partial.needs, partial.chosen, b, run, slide)
    return fits(buffer, partial.window)


@step
def _cost(
    n: Numbers, buffer: Buffer, partial: Partial, runs: Ints, slides: Ints, empty: Ints
) -> int:
    """Count the bytes that a body moves."""
    cost, index = 0, partial.chosen
    for t in range(len(n.weight)):
        slide, run = slides[t], runs[t]
        if buffer.is_guaranteed:
            if slide >= 0 and not (
                is_solid(n, index, t, slide) and _has_window(n, buffer, partial, run, slide)
            ):
                slide = -1
            if slide < 0 and run.any() and not _has_window(n, buffer, partial, run, -1):
                run = empty
        elems = with_along(n, TOTAL, SLID, index, t, slide)
        cost += moved(n.weight[t], times_repeated(n, index, t, run), elems)
    return cost


@step
def _leave_open(n: Numbers, partial: Partial, d: int, least: int) -> None:
    """Take back the choice of a dimension's extent."""
    partial.loose[d] = least
    partial.tight[d] = n.n_extents[d] - 1


@step
def _take_next(n: Numbers, partial: Partial, d: int) -> bool:
    """Cut a dimension the next way; return whether there is one."""
    partial.chosen[d] += 1
    if partial.chosen[d] >= n.n_extents[d]:
        return False
    partial.loose[d] = partial.tight[d] = partial.chosen[d]
    return True


@step
def _n_active(orders: Orders, c: int) -> int:
    """Count the dimensions that a class cuts.

    (Not by comparing arrays: a kernel that does so takes 0.3 s longer to load.)
    """
    many = 0
    while orders.actives[c, many] >= 0:
        many += 1
    return many


@jit
def best_body(
    n: Numbers,
    orders: Orders,
    buffer: Buffer,
    partial: Partial,
    state: Ints,
    best_index: Ints,
    incumbent: int,
    limit: int,
) -> tuple[int, int]:
    """Find the body and the order class that move the fewest bytes.

    Returns the bytes (``incumbent`` if none is better) and nodes; ``best_index``
    receives the candidates' numbers, ``state`` the class to go on with, the depth in
    it (-1: at its beginning) and the best class (-1: none).  Comes back after
    ``limit`` nodes; called again with the same ``state`` and ``partial``, it goes on.
    """
    index, loose, least = partial.chosen, partial.loose, orders.least
    empty = np.zeros(len(index), dtype=np.int64)
    hints = np.zeros((len(index), len(index)), dtype=np.int64)
    nodes = 0
    for c in range(state[0], orders.actives.shape[0]):
        active = orders.actives[c, : _n_active(orders, c)]
        runs, slides = orders.runs[c], orders.slides[c]
        k = state[1]
        if k < 0:
            index[:] = loose[:] = partial.tight[:] = 0
            for d in active:
                _leave_open(n, partial, d, least)
            index[active[:1]] = least - 1
            k = 0
        while k >= 0:
            if nodes >= limit:
                state[0], state[1] = c, k
                return incumbent, nodes
            if len(active) and not _take_next(n, partial, active[k]):
                _leave_open(n, partial, active[k], least)
                k -= 1
                continue
            nodes += 1
            is_leaf = k >= len(active) - 1
            if _least(n, loose, runs, slides) >= incumbent:
                if len(active):
                    _leave_open(n, partial, active[k], least)
                k -= 1
                continue
            row = LARGEST if is_leaf else LARGEST_BOUND
            if _has_room(n, buffer, row, partial.tight, partial.needs):
                if not is_leaf:
                    _widen(n, buffer, active[k + 1 :], least, partial, hints[k])
                    first, bound = loose[active[k + 1]], _least(n, loose, runs, slides)
                    loose[active[k + 1 :]] = least
                    if bound < incumbent:
                        k += 1
                        index[active[k]] = first - 1
                    continue
                cost = _cost(n, buffer, partial, runs, slides, empty)
                if cost < incumbent:
                    incumbent = cost
                    state[2] = c
                    best_index[:] = index
            if len(active) == 0:
                break
        state[1] = -1
    state[0] = orders.actives.shape[0]
    return incumbent, nodes
