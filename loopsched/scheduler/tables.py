"""Tables that let a compiled kernel score one buffer's body in a few steps.

For one buffer the extents of the body are chosen from a short list for each
dimension.  Everything that the reuse model needs is a product of numbers that
depend on one dimension or one axis only; they are tabulated here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from loopsched.errors import ProblemError
from loopsched.footprint import (
    axis_count,
    axis_extremes,
    is_clipped,
    n_segments,
    reach,
    segments,
    tensor_bytes,
)
from loopsched.problem import Axis, Problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


# Longest dimension of which all ways to list items are tried for a bound.
MAX_LISTED = 1024

# More than kernels count to, and so what they take for no answer yet.
NO_BYTES = 2**62


def check_bytes(problem: Problem) -> None:
    """Refuse a problem whose worst schedule moves more bytes than kernels can count.

    Raises
    ------
    ProblemError
    """
    weights = sum(2 * tensor.element_bytes for tensor in problem.tensors)
    if problem.macs * weights >= NO_BYTES:
        raise ProblemError(
            f"problem '{problem.name}': {problem.macs} points can move more bytes than fit "
            "into 64 bits"
        )


@dataclass(frozen=True)
class Tables:
    """The numbers behind one buffer's choice of a body.

    Parameters
    ----------
    problem : Problem
    extents : tuple of tuple of int
        Candidate extents of each dimension, largest (no cut) first.
    pieces : array (dims, candidates)
        Sequential pieces of each dimension when cut so, outer cuts included.
    axis_dims : array (axes, 2)
        The dimensions of each axis; -1 where there is no second one.
    axis_stride : array (axes,)
        Candidates of the second dimension, to index the flat tables.
    axis_start : array (axes,)
        Where the axis' numbers start in the flat tables.
    total, largest, pair_first, pair_second, is_gapless : flat arrays
        For each choice on an axis: the sum over all pieces, the largest piece,
        the bound for two pieces next to each other along either dimension, and
        whether a piece is unbroken.
    tensor_axes : array (tensors + 1,)
        Axes of tensor t are those from ``tensor_axes[t]`` to the next.
    is_indexed : array (tensors, dims)
    weight : array (tensors,)
        Bytes that one visited element moves: its size, twice for the output.
    element_bytes : array (tensors,)
    constant : int
        Bytes to take off the sum: the output's first visits read nothing.
    """

    problem: Problem
    extents: tuple[tuple[int, ...], ...]
    pieces: Ints
    n_extents: Ints
    axis_dims: Ints
    axis_stride: Ints
    axis_start: Ints
    total: Ints
    largest: Ints
    pair_first: Ints
    pair_second: Ints
    is_gapless: Ints
    tensor_axes: Ints
    is_indexed: Ints
    weight: Ints
    element_bytes: Ints
    constant: int


def tables_for(
    problem: Problem,
    chains: tuple[tuple[int, ...], ...] | None = None,
    candidates: tuple[tuple[int, ...], ...] | None = None,
) -> Tables:
    """Tabulate a problem for one buffer.

    Parameters
    ----------
    problem : Problem
    chains : tuple of tuple of int, optional
        Extents of the loops outside this buffer's block, each dimension.
    candidates : tuple of tuple of int, optional
        Extents to choose from, each dimension, largest first and starting with
        the uncut extent; by default every extent that is not dominated.
    """
    import numpy as np

    chains = chains or tuple(() for _ in problem.dims)
    outer = [segments(size, chain) for (_, size), chain in zip(problem.sizes, chains, strict=True)]
    if candidates is None:
        candidates = tuple(
            _candidates(problem, dim, pieces)
            for dim, pieces in zip(problem.dims, outer, strict=True)
        )
    width = max(len(extents) for extents in candidates)
    pieces = np.zeros((len(candidates), width), dtype=np.int64)
    for row, (extents, cut) in enumerate(zip(candidates, outer, strict=True)):
        lengths = Counter(length for _, length in cut)
        each = np.array(extents, dtype=np.int64)
        pieces[row, : len(extents)] = sum(
            many * -(-length // each) for length, many in lengths.items()
        )
    index = {dim: row for row, dim in enumerate(problem.dims)}
    axis_dims, strides, starts, offsets = [], [], [], [0]
    flat: list[list[Ints]] = []
    at = 0
    for tensor in problem.tensors:
        for axis in tensor.axes:
            rows = [index[dim] for dim in axis.dims]
            if len(rows) > 2:
                from loopsched.errors import ProblemError

                raise ProblemError(
                    f"problem '{problem.name}': an axis of '{tensor.name}' moves with "
                    f"{len(rows)} dims; the search handles at most 2"
                )
            second = rows[1] if len(rows) == 2 else -1
            parts = _axis_numbers(
                axis,
                outer[rows[0]],
                candidates[rows[0]],
                outer[second] if second >= 0 else ((0, 1),),
                candidates[second] if second >= 0 else (1,),
            )
            axis_dims.append((rows[0], second))
            strides.append(len(candidates[second]) if second >= 0 else 1)
            starts.append(at)
            at += len(parts[0])
            flat.append(list(parts))
        offsets.append(len(axis_dims))
    none = np.zeros(0, dtype=np.int64)  # scalars have no axes
    numbers = [np.concatenate([none, *(parts[k] for parts in flat)]) for k in range(5)]
    output = problem.output_tensor
    return Tables(
        problem=problem,
        extents=candidates,
        pieces=pieces,
        n_extents=np.array([len(extents) for extents in candidates], dtype=np.int64),
        axis_dims=np.array(axis_dims, dtype=np.int64).reshape(-1, 2),
        axis_stride=np.array(strides, dtype=np.int64),
        axis_start=np.array(starts, dtype=np.int64),
        total=numbers[0],
        largest=numbers[1],
        pair_first=numbers[2],
        pair_second=numbers[3],
        is_gapless=numbers[4],
        tensor_axes=np.array(offsets, dtype=np.int64),
        is_indexed=np.array(
            [[t.is_indexed_by(dim) for dim in problem.dims] for t in problem.tensors],
            dtype=np.int64,
        ).reshape(len(problem.tensors), -1),
        weight=np.array(
            [t.element_bytes * (1 + (t.name == problem.output)) for t in problem.tensors],
            dtype=np.int64,
        ),
        element_bytes=np.array([t.element_bytes for t in problem.tensors], dtype=np.int64),
        constant=tensor_bytes(problem, output),
    )


@lru_cache(maxsize=4096)
def trip_classes(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """List the smallest extent for each number of pieces, largest extent first.

    Parameters
    ----------
    lengths : tuple of int
        Lengths to be cut, each into pieces of the extent.

    Examples
    --------
    >>> trip_classes((10,))
    (10, 5, 4, 3, 2, 1)
    """
    import numpy as np

    longest = max(lengths)
    if len(lengths) == 1:
        classes = {-(-longest // trips) for trips in range(1, int(longest**0.5) + 2)}
        classes.update(range(1, int(longest**0.5) + 2))
        return tuple(sorted({-(-longest // (-(-longest // e))) for e in classes}, reverse=True))
    extent = np.arange(1, longest + 1, dtype=np.int64)
    n_pieces = np.zeros(longest, dtype=np.int64)
    for length in lengths:
        n_pieces += -(-length // extent)
    keep = np.concatenate(([True], n_pieces[1:] < n_pieces[:-1]))
    found = extent[keep].tolist()
    if found[-1] != longest:  # uncut is always a choice, and the first
        found.append(longest)
    return tuple(reversed(found))


def _candidates(problem: Problem, dim: str, outer: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    classes = trip_classes(tuple(sorted(length for _, length in outer)))
    uneven = [
        axis
        for tensor in problem.tensors
        for axis in tensor.axes
        if dim in axis.dims and (is_clipped(axis, problem.size) or _may_have_gaps(axis))
    ]
    if not uneven:
        return classes
    return _with_uneven(problem, dim, outer, classes, tuple(uneven))


def _may_have_gaps(axis: Axis) -> bool:
    """Whether small pieces may touch an axis with gaps, and then less than their width."""
    return axis.is_compound and any(coefficient > 1 for _, coefficient in axis.terms)


def _with_uneven(
    problem: Problem,
    dim: str,
    outer: tuple[tuple[int, int], ...],
    classes: tuple[int, ...],
    axes: tuple[Axis, ...],
) -> tuple[int, ...]:
    """Add extents larger than their class needs that are better in something.

    With stride 2, filter tiles of 3 and 1 touch less of a row than two of 2: the
    windows of the last do not meet.  With padding on one side only, the first
    tile may be longer than the last and both hold as much.
    """
    import numpy as np

    longest = max(length for _, length in outer)
    every = tuple(range(longest, 0, -1))
    keep = set(classes)
    for axis in axes:
        others = [name for name in axis.dims if name != dim]
        size = problem.size[others[0]] if others else 1
        choices = trip_classes((size,)) if others else (1,)
        pieces = ((0, size),)
        if others and axis.dims[0] != dim:
            found = np.stack(_axis_numbers(axis, pieces, choices, outer, every))
            numbers = found.reshape(5, len(choices), longest).swapaxes(1, 2)
        else:
            found = np.stack(_axis_numbers(axis, outer, every, pieces, choices))
            numbers = found.reshape(5, longest, len(choices))
        numbers[4] *= -1  # unbroken is better; of all others, less
        smallest = classes[-1]
        for row in range(longest - 1, -1, -1):
            extent = every[row]
            if extent in classes:
                smallest = extent
            elif (numbers[:, row] < numbers[:, longest - smallest]).any():
                keep.add(extent)
    return tuple(sorted(keep, reverse=True))


def _axis_numbers(
    axis: Axis,
    outer_first: tuple[tuple[int, int], ...],
    first: tuple[int, ...],
    outer_second: tuple[tuple[int, int], ...],
    second: tuple[int, ...],
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    import numpy as np

    from loopsched.scheduler._kernels import axis_table

    if axis.is_plain:
        largest = np.array(first, dtype=np.int64)
        size = sum(length for _, length in outer_first)
        pair = np.minimum(2 * largest, largest[0])
        ones = np.ones_like(largest)
        return np.full_like(largest, size), largest, pair, pair, ones
    shape = (5, len(first) * len(second))
    numbers = np.zeros(shape, dtype=np.int64)
    terms = axis.terms
    axis_table(
        np.array(outer_first, dtype=np.int64),
        np.array(first, dtype=np.int64),
        terms[0][1],
        np.array(outer_second, dtype=np.int64),
        np.array(second, dtype=np.int64),
        terms[1][1] if len(terms) > 1 else 1,
        axis.offset,
        -1 if axis.size is None else axis.size,
        numbers,
    )
    return numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]


def tables_for_cuts(problem: Problem, cuts: Mapping[str, tuple[tuple[int, int], ...]]) -> Tables:
    """Tabulate given ways to list and cut some dimensions; the rest stays whole.

    Parameters
    ----------
    problem : Problem
    cuts : mapping of str to tuple of (listed, extent)
        For each dimension, the choices: extent of a list, extent of an item.
    """
    size = problem.size
    choices = tuple(cuts.get(dim, ((size[dim], size[dim]),)) for dim in problem.dims)
    tables = tables_for(problem, candidates=tuple((1,) * len(found) for found in choices))
    pieces = tables.pieces.copy()
    for row, (dim, found) in enumerate(zip(problem.dims, choices, strict=True)):
        pieces[row, : len(found)] = [n_segments(size[dim], chain) for chain in found]
    total = tables.total.copy()
    axes = [axis for tensor in problem.tensors for axis in tensor.axes]
    for at, axis in enumerate(axes):
        rows = [int(row) for row in tables.axis_dims[at] if row >= 0]
        sizes = tuple(size[dim] for dim in axis.dims)
        total[int(tables.axis_start[at]) :][: math.prod(len(choices[row]) for row in rows)] = [
            axis_extremes(axis, sizes, chains).total
            for chains in product(*(choices[row] for row in rows))
        ]
    return replace(tables, pieces=pieces, total=total)


def relaxed_tables(problem: Problem, pieces: Mapping[str, int]) -> Tables:
    """Tabulate a problem so that no way of cutting some pieces does better.

    Parameters
    ----------
    problem : Problem
    pieces : mapping of str to int
        How often each of these dimensions is cut outside; however unevenly.

    Returns
    -------
    Tables
        Every number is at most that of any choice of outer extents with as
        many pieces and a body of the same or larger extents.
    """
    size = problem.size
    candidates = tuple(
        tuple(e for e in trip_classes((size[dim],)) if e <= -(-size[dim] // pieces.get(dim, 1)))
        for dim in problem.dims
    )
    tables = with_least_halos(tables_for(problem, candidates=candidates), n_item_extents=1)
    return with_least_pieces(tables)


def with_least_pieces(tables: Tables) -> Tables:
    """Lower the largest pieces on clipped axes to the least that uneven cuts can have.

    Inside an outer cut, pieces need not begin at multiples of their extent: the
    longest of them may lie where padding takes most of it.  Two things are
    certain: the piece at the start is whole, and some piece holds the middle.
    """
    import numpy as np

    largest = tables.largest.copy()
    pairs = tables.pair_first.copy(), tables.pair_second.copy()
    at = 0
    for tensor in tables.problem.tensors:
        for axis in tensor.axes:
            start = int(tables.axis_start[at])
            count = math.prod(int(tables.n_extents[d]) for d in tables.axis_dims[at] if d >= 0)
            lost = _padding(axis, tables.problem.size)
            certain = _certain_pieces(tables, axis, at) if lost else 0
            for numbers in (largest, *pairs):
                part = numbers[start : start + count]
                # The first choice is the whole dimension, which lies in one place only.
                part[1:] = np.maximum(part - lost, certain)[1:]
            at += 1
    return replace(tables, largest=largest, pair_first=pairs[0], pair_second=pairs[1])


def _certain_pieces(tables: Tables, axis: Axis, at: int) -> Ints:
    """Count, for each choice on an axis, what some piece touches however it is cut."""
    import numpy as np

    sizes = tuple(tables.problem.size[dim] for dim in axis.dims)
    rows = [int(row) for row in tables.axis_dims[at] if row >= 0]
    choices = product(*(tables.extents[row] for row in rows))
    return np.array([_certain(axis, extents, sizes) for extents in choices], dtype=np.int64)


@lru_cache(maxsize=65536)
def _certain(axis: Axis, extents: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """Count what some piece touches, however each dimension is cut into such extents.

    Of one dimension, the piece at the start; of the other, that too, or the
    piece that holds a position in the middle or at the end.
    """
    first = dict(zip(axis.dims, extents, strict=True))
    best = axis_count(axis, {}, first)
    for dim, size in zip(axis.dims, sizes, strict=True):
        for x in (size // 2, size - 1):
            best = max(best, axis_count(axis, {dim: x}, {**first, dim: 1}))
    return best


def _padding(axis: Axis, size: Mapping[str, int]) -> int:
    """Count positions outside the tensor, on both sides."""
    if axis.size is None:
        return 0
    last = axis.offset + sum(coefficient * (size[dim] - 1) for dim, coefficient in axis.terms)
    return max(0, -axis.offset) + max(0, last - (axis.size - 1))


def with_least_halos(tables: Tables, n_item_extents: int | None = None) -> Tables:
    """Lower the sums on clipped axes to the least that as many pieces can have.

    Where padding is clipped, two pieces that meet near the edge share less.
    Along one dimension, each meeting point adds what is shared there, whatever
    the other pieces are; so the least sum has the meeting points that share
    least.  Windows with gaps are taken without any sharing.

    The first ``n_item_extents`` extents (None: all) are those of work items,
    which can only meet where lists of equal items do.
    """
    import numpy as np

    total = tables.total.copy()
    problem = tables.problem
    at = 0
    for tensor in problem.tensors:
        for axis in tensor.axes:
            if is_clipped(axis, problem.size) or axis.is_compound:
                _least_totals(tables, axis, at, total, n_item_extents)
            at += 1
    return replace(tables, total=np.minimum(total, tables.total))


def _least_totals(
    tables: Tables, axis: Axis, at: int, total: Ints, n_item_extents: int | None
) -> None:
    import numpy as np

    size = tables.problem.size
    start = int(tables.axis_start[at])
    rows = [int(d) for d in tables.axis_dims[at] if d >= 0]
    counts = [int(tables.n_extents[d]) for d in rows]
    union = axis_extremes(axis, tuple(size[dim] for dim in axis.dims), ((),) * len(rows)).total
    added = []
    for k, row in enumerate(rows):
        dim, coefficient = axis.terms[k]
        window = 1 + sum(c * (size[name] - 1) for name, c in axis.terms if name != dim)
        x = np.arange(1, size[dim], dtype=np.int64)
        low = axis.offset + coefficient * x
        high = low - coefficient + window  # first position after the piece before
        if axis.size is not None:
            low, high = np.clip(low, 0, axis.size), np.clip(high, 0, axis.size)
        shared = np.maximum(0, high - low)
        if not _is_interval(axis, dim, size):
            shared[:] = 0
        pieces = tables.pieces[row, : counts[k]] - 1
        least = np.concatenate(([0], np.cumsum(np.sort(shared))))[pieces]
        if size[dim] <= MAX_LISTED:
            items = _least_listed(tuple(shared.tolist()))[pieces]
            least[:n_item_extents] = items[:n_item_extents]
            least = np.maximum(least, least[0])
        added.append(least)
    # Cutting a second dimension as well never makes the sum smaller.
    both = np.maximum.outer(added[0], added[1]) if len(added) == 2 else added[0]
    total[start : start + both.size] = union + both.ravel()


@lru_cache(maxsize=512)
def _least_listed(shared: tuple[int, ...]) -> Ints:
    """Sum what is shared at the meeting points, least for each number of them.

    Over all lists of one length, each cut into items of one extent.
    """
    import numpy as np

    from loopsched.scheduler._kernels import least_listed

    least = np.full(len(shared) + 1, 2**62, dtype=np.int64)
    least_listed(np.array((0, *shared), dtype=np.int64), least)
    return least


def _is_interval(axis: Axis, dim: str, size: Mapping[str, int]) -> bool:
    bits = reach(tuple((c, 1 if name == dim else size[name]) for name, c in axis.terms))
    return bits.bit_count() == bits.bit_length()
