"""Compiled promises of an outermost cache whose waves end within an iteration.

The same as `loopsched.models.buffer` finds, by what each instance does alone, by lists of items,
and by replays (`loopsched.models._pool_kernels`).
"""

from __future__ import annotations

from loopsched.base.arrays import Ints
from loopsched.base.jit import part
from loopsched.models._pool_kernels import (
    ALONE_INSIDE,
    ANY,
    FITS,
    HIGH,
    HIGH_OF_LIST,
    IN_GROUP,
    IS_FOUND,
    LEAST_ALONE,
    LIST_LENGTH,
    LIST_MANY,
    MORE,
    MOST,
    N_INNER,
    N_KINDS,
    OF_LIST,
    TOTAL,
    WHOLE_SIZES,
    _go_inside,
    _is_listed,
    _list_segments,
    _replay,
)
from loopsched.models._promise_kernels import (
    ANEW,
    BITS,
    BOUNDARY,
    BUSY,
    CAPACITY,
    CUT_DIM,
    END,
    FIRST,
    FIRST_DIM,
    INDEXED,
    INSIDE,
    IS_CLIPPED,
    IS_PARALLEL,
    LATE,
    LENGTH,
    MANY,
    N_CUTS,
    N_DIMS,
    N_TENSORS,
    N_UNITS,
    NOW,
    OUTPUT,
    OWN,
    OWNS,
    PASSES,
    POSITION,
    ROOM,
    SECOND_DIM,
    SIZE,
    SIZES,
    _fit,
    _is_aligned,
    _promise,
    _see,
)
from loopsched.models.asked import ALWAYS
from loopsched.models.view import MOST_LISTS

MOST_WAYS = 2**18  # to the positions of an axis that are gone through


@part
def _run_on(w: Ints, fit: int, is_aligned: bool) -> bool:
    """Whether waves end within an iteration, or what one needs at a time does not fit."""
    is_merged = False
    for k in range(w[NOW, N_CUTS]):
        is_merged = is_merged or (fit < 0 and w[IS_PARALLEL, k] != 0)
    return is_merged or not (0 <= fit <= w[NOW, BOUNDARY] or is_aligned)


@part
def _parted(w: Ints) -> int:
    """Find the loop position inside which sums of earlier bodies may come."""
    if w[NOW, LATE] == ALWAYS:
        return ALWAYS
    parted = ALWAYS - 1
    for k in range(w[NOW, N_CUTS]):
        if w[POSITION, k] >= w[NOW, LATE] and w[BITS + w[NOW, OUTPUT], w[CUT_DIM, k]] & INDEXED:
            parted = min(parted, w[POSITION, k])
    return parted


@part
def _limit(w: Ints, t: int, is_asked: bool, parted: int) -> int:
    """Find the loop position inside which no body tells what is brought in of a tensor."""
    return min(w[ANEW, t], parted) if is_asked else ALWAYS


@part
def _count_alone(w: Ints, level: int, is_asked: bool) -> None:
    """Bound what instances in lock-step bring in, each in its share of the room."""
    many = 1
    for u in range(w[NOW, N_UNITS]):
        w[ALONE_INSIDE, u] = 0 if w[BUSY, u] or w[INSIDE + level, u] == 0 else 1
        if w[BUSY, u]:
            many *= max(1, w[INSIDE + level, u])
    for t in range(w[NOW, N_TENSORS]):
        if w[OWN, t] >= 0:
            w[OWN, t] //= many
    w[NOW, ROOM] //= many
    one = ALONE_INSIDE - INSIDE
    _see(w, one)
    _promise(w, _fit(w, 1), is_asked, one, LEAST_ALONE)
    for t in range(w[NOW, N_TENSORS]):
        w[OWN, t] = w[OWNS + level, t]
    w[NOW, ROOM] = w[CAPACITY, level]


@part
def _raise(w: Ints, level: int, row: int, is_asked: bool, high: int) -> None:
    """Raise what a closed form finds to what holds for waves that run on; into the row ``high``."""
    n_tensors, parted, is_within = w[NOW, N_TENSORS], _parted(w), True
    for t in range(n_tensors):
        if w[OWN, t] == PASSES:
            continue
        limit, is_first = _limit(w, t, is_asked, parted), True
        for s in range(t):
            is_same = w[OWN, s] != PASSES and _limit(w, s, is_asked, parted) == limit
            is_first = is_first and not is_same
        if not is_first:
            continue
        _replay(w, level, row, limit)
        for s in range(t, n_tensors):
            if w[OWN, s] != PASSES and _limit(w, s, is_asked, parted) == limit:
                w[high, s] = w[MOST, s] if w[MORE, IS_FOUND] and w[MORE, FITS] else ALWAYS
                is_within = is_within and w[high, s] <= w[row, s]
    if not is_within:
        _count_alone(w, level, is_asked)
    for t in range(n_tensors):
        if w[OWN, t] != PASSES:
            if not is_within:
                w[high, t] = min(w[high, t], w[LEAST_ALONE, t])
            w[high, t] = max(w[high, t], w[row, t])


@part
def _is_raised(w: Ints, row: int, high: int) -> bool:
    """Whether a row of numbers is not another."""
    is_raised = False
    for t in range(w[NOW, N_TENSORS]):
        is_raised = is_raised or (w[OWN, t] != PASSES and w[row, t] != w[high, t])
    return bool(is_raised)


@part
def _list_kinds(w: Ints, d: int) -> int:
    """List the lengths of what loops outside all lists of items make of a dimension."""
    end = 0
    while end < w[MORE, N_INNER] and w[IN_GROUP, end] < 0:
        end += 1
    return _list_segments(w, d, w[SIZES, d], 0, end, ANY)


@part
def _has_lists(w: Ints) -> bool:
    """Whether lists of items are of several kinds, and not too many."""
    kinds = 1
    for d in range(w[NOW, N_DIMS]):
        kinds *= _list_kinds(w, d)
    for t in range(w[NOW, N_TENSORS]):
        for a in range(w[FIRST, t], w[END, t]):
            if w[IS_CLIPPED, a]:
                return False
    return 1 < kinds <= MOST_LISTS


@part
def _count_list(w: Ints, level: int, is_asked: bool) -> bool:
    """Count what one list of items brings in; False where that is for Python to find."""
    _see(w, level)
    is_aligned = _is_aligned(w, level)
    fit = _fit(w, 1)
    _promise(w, fit, is_asked, level, OF_LIST)
    if _run_on(w, fit, is_aligned):
        _go_inside(w, level)
        _raise(w, level, OF_LIST, is_asked, HIGH_OF_LIST)
        if _is_raised(w, OF_LIST, HIGH_OF_LIST):
            for t in range(w[NOW, N_TENSORS]):
                w[OF_LIST, t] = w[HIGH_OF_LIST, t]
            return not _has_lists(w)
    return True


@part
def _list_by_list(w: Ints, level: int, is_asked: bool) -> bool:
    """Count what lists of items bring in, each from a cold start; False: for Python to find."""
    n_dims, n_lists, is_told = w[NOW, N_DIMS], 1, True
    for d in range(n_dims):
        n = _list_kinds(w, d)
        n_lists *= n
        w[WHOLE_SIZES, d], w[N_KINDS, d] = w[SIZES, d], n
        for i in range(n):
            w[LIST_LENGTH + d, i], w[LIST_MANY + d, i] = w[LENGTH, i], w[MANY, i]
    for t in range(w[NOW, N_TENSORS]):
        w[TOTAL, t] = 0
    for number in range(n_lists):
        left, many = number, 1
        for d in range(n_dims):
            i = left % w[N_KINDS, d]
            left //= w[N_KINDS, d]
            w[SIZES, d] = w[LIST_LENGTH + d, i]
            many *= w[LIST_MANY + d, i]
        is_told = is_told and _count_list(w, level, is_asked)
        for t in range(w[NOW, N_TENSORS]):
            w[TOTAL, t] += many * w[OF_LIST, t]
    for d in range(n_dims):
        w[SIZES, d] = w[WHOLE_SIZES, d]
    return is_told


@part
def _raise_waves(w: Ints, level: int, row: int, is_asked: bool) -> bool:
    """Raise what a closed form finds in a row; False where that is for Python to do."""
    for t in range(w[NOW, N_TENSORS]):
        for a in range(w[FIRST, t], w[END, t]):
            n_ways = w[SIZES, w[FIRST_DIM, a]] * w[SIZES, w[SECOND_DIM, a]]
            if _is_listed(w, a) and max(n_ways, w[SIZE, a]) > MOST_WAYS:
                return False
    if not _go_inside(w, level):
        return False
    _raise(w, level, row, is_asked, HIGH)
    is_told = True
    if _is_raised(w, row, HIGH):
        if _has_lists(w):
            is_told = _list_by_list(w, level, is_asked)
            for t in range(w[NOW, N_TENSORS]):
                w[HIGH, t] = min(w[HIGH, t], w[TOTAL, t])
        for t in range(w[NOW, N_TENSORS]):
            w[row, t] = max(w[row, t], w[HIGH, t])
    _see(w, level)
    _is_aligned(w, level)
    return is_told
