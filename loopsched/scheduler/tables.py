"""Tables that let a compiled kernel score one buffer's body in a few steps.

For one buffer the extents of the body are chosen from a short list for each
dimension.  Everything that the reuse model needs is a product of numbers that
depend on one dimension or one axis only; they are tabulated here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from loopsched.base.arrays import Ints
from loopsched.base.errors import ProblemError
from loopsched.problems.footprint import is_clipped, segment_lengths, segments, tensor_bytes
from loopsched.problems.problem import Axis, Problem

if TYPE_CHECKING:
    from loopsched.scheduler.kernels import Numbers


# Longest dimension of which every number of pieces is tried, and every meeting point looked at.
MAX_SIZE = 2**22
# Pieces of a compound axis that are looked at one by one, over all choices of extents.
MAX_PIECES = 2**27
# Where it is more: cut into powers of two, up to so many.
MAX_CUTS = 2**10
# Pieces between outer loops of which the place is looked at.
MAX_OUTER = 2**12

# Choices on an axis whose numbers are kept for the next problem with such an axis.
MAX_KEPT = 2048

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
    slid_first, slid_second : flat arrays
        The sum over all pieces if, along either dimension, each keeps what it
        shares with the one before.
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
    slid_first: Ints
    slid_second: Ints
    tensor_axes: Ints
    is_indexed: Ints
    weight: Ints
    element_bytes: Ints
    constant: int

    @cached_property
    def lengths(self) -> Ints:
        """The extents, a row a dimension."""
        import numpy as np

        rows = np.ones(self.pieces.shape, dtype=np.int64)
        for row, extents in enumerate(self.extents):
            rows[row, : len(extents)] = extents
        return rows

    def only(self, names: frozenset[str]) -> Tables:
        """Count the bytes of some tensors alone."""
        counted = [tensor.name in names for tensor in self.problem.tensors]
        constant = self.constant if self.problem.output in names else 0
        return replace(self, weight=self.weight * counted, constant=constant)

    @cached_property
    def numbers(self) -> Numbers:
        """What kernels are handed; sums and largest pieces lowered to what is monotone, too."""
        import numpy as np

        from loopsched.scheduler import kernels

        tables = np.stack((
            self.total, self.total, self.largest, self.largest, self.is_gapless,
            self.pair_first, self.pair_second, self.slid_first, self.slid_second,
        ))  # fmt: skip
        axes = np.column_stack((self.axis_dims, self.axis_stride, self.axis_start))
        for (first, _, columns, start), (_, axis) in zip(
            axes.tolist(), _axes_by_row(self.problem), strict=True
        ):
            if axis.is_plain:  # they are
                continue
            count = int(self.n_extents[first])
            rows = tables[:, start : start + count * columns].reshape(-1, count, columns)
            least = np.minimum.accumulate
            total, largest = rows[kernels.TOTAL, ::-1, ::-1], rows[kernels.LARGEST]
            rows[kernels.TOTAL_BOUND, ::-1, ::-1] = least(least(total, 0), 1)
            rows[kernels.LARGEST_BOUND] = least(least(largest, 0), 1)
        return kernels.Numbers(
            self.pieces,
            self.n_extents,
            axes,
            tables,
            self.tensor_axes,
            self.is_indexed,
            self.weight,
            self.element_bytes,
        )

    def with_whole_sweeps(self) -> Tables:
        """Let a window that slides keep all that its sweep has touched, not the last tile alone.

        What a cache may keep at best, and the least that a scratchpad loads.
        """
        import numpy as np

        if has_plain_axes(self.problem):
            return self
        slid = np.stack((self.slid_first, self.slid_second))
        for at, (_, axis) in enumerate(_axes_by_row(self.problem)):
            if axis.is_plain:  # a piece shares nothing with the one before
                continue
            first, second = self.axis_dims[at].tolist()
            rows, columns = int(self.n_extents[first]), int(self.axis_stride[at])
            start = int(self.axis_start[at])
            where = slice(start, start + rows * columns)
            totals = self.total[where].reshape(rows, columns)
            slid[0, where].reshape(rows, columns)[:] = totals[:1]
            if second >= 0:
                slid[1, where].reshape(rows, columns)[:] = totals[:, :1]
        return replace(self, slid_first=slid[0], slid_second=slid[1])


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
    return _tables_for(problem, chains, candidates)


@lru_cache(maxsize=4)  # a search asks for the same several times
def _tables_for(
    problem: Problem,
    chains: tuple[tuple[int, ...], ...] | None,
    candidates: tuple[tuple[int, ...], ...] | None,
) -> Tables:
    import numpy as np

    chains = chains or tuple(() for _ in problem.dims)
    lengths = [
        segment_lengths(size, chain) for (_, size), chain in zip(problem.sizes, chains, strict=True)
    ]
    along = [_axes_of(problem, dim) for dim in problem.dims]
    outer = [
        _outer_pieces(size, chain, known, axes)
        for (_, size), chain, known, axes in zip(problem.sizes, chains, lengths, along, strict=True)
    ]
    if candidates is None:
        candidates = tuple(
            [
                _candidates(problem, dim, pieces, axes)
                for dim, pieces, axes in zip(problem.dims, outer, along, strict=True)
            ]
        )
    axis_dims, flat = [], []
    for rows, axis in _axes_by_row(problem):
        first, second = rows[0], rows[1] if len(rows) == 2 else -1
        axis_dims.append((first, second))
        size = problem.sizes[first][1]
        other = (outer[second], candidates[second]) if second >= 0 else (((0, 1),), (1,))
        flat.append(_axis_numbers(axis, outer[first], size, candidates[first], *other))
    sizes = {tensor.name: tensor.element_bytes for tensor in problem.tensors}
    none = np.zeros((len(_NUMBERS), 0), dtype=np.int64)  # scalars have no axes
    numbers = dict(zip(_NUMBERS, np.concatenate([none, *flat], axis=1), strict=True))
    return Tables(
        problem=problem,
        extents=candidates,
        pieces=_counted(candidates, lengths),
        n_extents=np.array([len(extents) for extents in candidates], dtype=np.int64),
        axis_dims=np.array(axis_dims, dtype=np.int64).reshape(-1, 2),
        axis_stride=np.array(
            [len(candidates[second]) if second >= 0 else 1 for _, second in axis_dims],
            dtype=np.int64,
        ),
        axis_start=_starts([parts.shape[1] for parts in flat])[:-1],
        tensor_axes=_starts([len(tensor.axes) for tensor in problem.tensors]),
        is_indexed=np.array(
            [[dim in t.dims for dim in problem.dims] for t in problem.tensors],
            dtype=np.int64,
        ).reshape(len(problem.tensors), -1),
        weight=np.array([size + size * (name == problem.output) for name, size in sizes.items()]),
        element_bytes=np.array(list(sizes.values()), dtype=np.int64),
        constant=tensor_bytes(problem, problem.output_tensor),
        **numbers,
    )


# What `_axis_numbers` returns, in its order.
_NUMBERS = (
    "total", "largest", "pair_first", "pair_second", "is_gapless", "slid_first", "slid_second",
)  # fmt: skip


def _starts(lengths: Iterable[int]) -> Ints:
    """Say where parts of these lengths start, one behind the other, and where the last ends."""
    import numpy as np

    return np.array([0, *accumulate(lengths)], dtype=np.int64)


def _counted(candidates: tuple[tuple[int, ...], ...], lengths: Sequence[Mapping[int, int]]) -> Ints:
    """Count the pieces into which each extent cuts a dimension's segments."""
    import numpy as np

    width = max(len(extents) for extents in candidates)
    pieces = np.zeros((len(candidates), width), dtype=np.int64)
    for row, (extents, known) in enumerate(zip(candidates, lengths, strict=True)):
        each = np.array(extents, dtype=np.int64)
        pieces[row, : len(extents)] = sum(
            many * -(-length // each) for length, many in known.items()
        )
    return pieces


def _axes_by_row(problem: Problem) -> Iterator[tuple[list[int], Axis]]:
    """List all axes, tensor by tensor, with the rows of the dimensions that move along each."""
    index = {dim: row for row, dim in enumerate(problem.dims)}
    for tensor in problem.tensors:
        for axis in tensor.axes:
            rows = [index[dim] for dim in axis.dims]
            if len(rows) > 2:
                raise ProblemError(
                    f"problem '{problem.name}': an axis of '{tensor.name}' moves with "
                    f"{len(rows)} dims; the search handles at most 2"
                )
            yield rows, axis


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
    if longest > MAX_SIZE:
        return _some_extents(lengths)
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


def multiples(size: int, extent: int) -> tuple[int, ...]:
    """List extents of a dimension in whole pieces of another extent, largest first.

    Examples
    --------
    >>> multiples(10, 3)
    (10, 6, 3)
    """
    whole = -(-size // extent)
    found = {min(size, extent * many) for many in trip_classes((whole,))}
    return tuple(sorted(found | {size}, reverse=True))


def _some_extents(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """List small extents and small numbers of pieces, and between them steps of one in 256."""
    longest = max(lengths)
    found = {*range(1, 1025), *(-(-longest // trips) for trips in range(1, 1025))}
    found |= {2**power for power in range(longest.bit_length())}
    extent = 1024
    while extent < longest:
        found.add(extent)
        extent += extent >> 8
    return tuple(sorted((e for e in found if e <= longest), reverse=True))


@lru_cache(maxsize=64)
def is_exhaustive(problem: Problem) -> bool:
    """Whether the extents that are tried, by default, are all that can be best.

    Examples
    --------
    >>> from loopsched import gemm
    >>> is_exhaustive(gemm(m=4096, n=4096, k=4096)), is_exhaustive(gemm(m=2**40, n=4, k=4))
    (True, False)
    """
    return all(size <= MAX_SIZE for _, size in problem.sizes) and not any(
        _is_long(problem, axis) for tensor in problem.tensors for axis in tensor.axes
    )


def _is_long(problem: Problem, axis: Axis) -> bool:
    """Whether there are too many pieces of an axis to look at each, for all choices."""
    if axis.is_plain:
        return False
    choices = 1
    for dim in axis.dims:
        size = problem.size[dim]
        uneven = is_clipped(axis, problem.size) or _may_have_gaps(axis)
        tried = size if uneven else 2 * math.isqrt(size)
        choices *= max(1, tried + int(size * math.log(size + 1)))
    return choices > MAX_PIECES


def _outer_pieces(
    size: int, chain: tuple[int, ...], lengths: Mapping[int, int], axes: Sequence[Axis]
) -> tuple[tuple[int, int], ...]:
    """Cut a dimension as outer loops do: starts and lengths.

    Where the place does not matter, one piece of each length will do; where there
    are too many to look at, the first.  (Then nothing is a bound; see
    `is_exhaustive`.)
    """
    if all(axis.is_plain for axis in axes):
        return tuple((0, length) for length in sorted(lengths))
    if sum(lengths.values()) > MAX_OUTER:
        return ((0, max(lengths)),)
    return segments(size, chain)


def _candidates(
    problem: Problem, dim: str, outer: tuple[tuple[int, int], ...], axes: Sequence[Axis]
) -> tuple[int, ...]:
    classes = trip_classes(tuple(sorted({length for _, length in outer})))
    uneven = [axis for axis in axes if is_clipped(axis, problem.size) or _may_have_gaps(axis)]
    if any(_is_long(problem, axis) for axis in axes):
        longest = max(length for _, length in outer)
        trips = [2**power for power in range(MAX_CUTS.bit_length()) if 2**power <= longest]
        return tuple(sorted({-(-longest // many) for many in trips}, reverse=True))
    if not uneven:
        return classes
    return _with_uneven(problem, dim, outer, classes, tuple(uneven))


@lru_cache(maxsize=64)
def has_plain_axes(problem: Problem) -> bool:
    """Whether pieces of a length touch as much wherever they lie, and share nothing."""
    return all(axis.is_plain for tensor in problem.tensors for axis in tensor.axes)


def _axes_of(problem: Problem, dim: str) -> list[Axis]:
    return [axis for tensor in problem.tensors for axis in tensor.axes if dim in axis.dims]


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
    longest = max(length for _, length in outer)
    every = tuple(range(longest, 0, -1))
    keep = set(classes)
    for axis in axes:
        others = [name for name in axis.dims if name != dim]
        size = problem.size[others[0]] if others else 1
        choices = trip_classes((size,)) if others else (1,)
        pieces = ((0, size),)
        if others and axis.dims[0] != dim:
            found = _axis_numbers(axis, pieces, size, choices, outer, every).copy()
            numbers = found.reshape(7, len(choices), longest).swapaxes(1, 2)
        else:
            found = _axis_numbers(axis, outer, longest, every, pieces, choices).copy()
            numbers = found.reshape(7, longest, len(choices))
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
    size_first: int,
    first: tuple[int, ...],
    outer_second: tuple[tuple[int, int], ...],
    second: tuple[int, ...],
) -> Ints:
    step = axis.terms[1][1] if axis.is_compound else 1
    of_axis = (axis.terms[0][1], step, axis.offset, axis.size, axis.is_plain, size_first)
    count = _known_numbers if len(first) * len(second) <= MAX_KEPT else _new_numbers
    return count(of_axis, outer_first, first, outer_second, second)


def _new_numbers(
    of_axis: tuple[int, int, int, int | None, bool, int],
    outer_first: tuple[tuple[int, int], ...],
    first: tuple[int, ...],
    outer_second: tuple[tuple[int, int], ...],
    second: tuple[int, ...],
) -> Ints:
    import numpy as np

    from loopsched.scheduler.kernels import Line, axis_table

    c1, c2, offset, size, is_plain, size_first = of_axis
    numbers = np.zeros((len(_NUMBERS), len(first) * len(second)), dtype=np.int64)
    if is_plain:
        numbers[:] = size_first  # all totals
        numbers[1] = first
        numbers[2:4] = np.minimum(2 * numbers[1], first[0])
        numbers[4] = 1
        return numbers
    axis_table(
        Line(c1, c2, offset, -1 if size is None else size),
        np.array(outer_first, dtype=np.int64),
        np.array(first, dtype=np.int64),
        np.array(outer_second, dtype=np.int64),
        np.array(second, dtype=np.int64),
        numbers,
    )
    return numbers


# Axes that differ by their names only are alike, and layers of a network have many of those.
_known_numbers = lru_cache(maxsize=512)(_new_numbers)


def thinned(tables: Tables, most: int) -> Tables:
    """Keep at most so many extents of each dimension, the largest and the smallest among them."""
    import numpy as np

    # np.unique would import numpy.ma, 13 ms of the first search.
    keep = [
        np.array(sorted({*np.linspace(0, count - 1, min(most, count)).astype(np.int64).tolist()}))
        for count in tables.n_extents.tolist()
    ]
    flat, starts, at = [], [], 0
    for axis, (first, second) in enumerate(tables.axis_dims.tolist()):
        rows, stride = keep[first] * tables.axis_stride[axis], np.zeros(1, dtype=np.int64)
        if second >= 0:
            stride = keep[second]
        flat.append((tables.axis_start[axis] + rows[:, None] + stride).ravel())
        starts.append(at)
        at += len(flat[-1])
    chosen = np.concatenate([np.zeros(0, dtype=np.int64), *flat])
    pieces = np.zeros((len(keep), max(len(kept) for kept in keep)), dtype=np.int64)
    for row, kept in enumerate(keep):
        pieces[row, : len(kept)] = tables.pieces[row, kept]
    return replace(
        tables,
        extents=tuple(
            tuple(known[i] for i in kept.tolist())
            for known, kept in zip(tables.extents, keep, strict=True)
        ),
        pieces=pieces,
        n_extents=np.array([len(kept) for kept in keep], dtype=np.int64),
        axis_stride=np.array(
            [len(keep[second]) if second >= 0 else 1 for _, second in tables.axis_dims.tolist()],
            dtype=np.int64,
        ),
        axis_start=np.array(starts, dtype=np.int64),
        **{name: getattr(tables, name)[chosen] for name in _NUMBERS},
    )
