"""Stream the schedules of one buffer: every body, every class of orders, scored.

Here a *schedule* is what one buffer can tell apart of a nest: the extents of
its body (of those with equal numbers of pieces, the smallest) and the class of
orders of the loops around it.  The body is the largest region that fits: nests
whose body does not fit, or in which the region around it fits as well, are the
same to the buffer as others that are listed; they are counted, but not as
scored.  Loops inside the body and the order beyond the class change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

from loopsched.base.arguments import is_count, show
from loopsched.base.errors import ProblemError, ScheduleError
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.scheduler.blocks import Block, compose
from loopsched.scheduler.body import class_rows
from loopsched.scheduler.orders import OrderClass, relevance
from loopsched.scheduler.precedence import allowed_classes
from loopsched.scheduler.tables import NO_BYTES, Tables, check_bytes, tables_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loopsched.scheduler.body import ClassRows

    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Chunk:
    """Some scored schedules, one after the other.

    Parameters
    ----------
    bytes : array
        Reads and writes across the buffer's outer boundary.
    codes : array
        Which schedules: for `Stream.schedule`.
    """

    bytes: Ints
    codes: Ints


@dataclass(frozen=True)
class Scores:
    """What came of all schedules of one buffer.

    Parameters
    ----------
    schedule : Schedule or None
        The one that moves the fewest bytes; None if nothing fits.
    bytes : int or None
        What it moves.
    n_scored : int
        Schedules scored, each with its own extents and order class.
    n_too_large : int
        Choices whose body does not fit.
    n_covered : int
        Choices in which the region around the body fits too: a choice with
        fewer loops stands for them.
    histogram : tuple of int
        Scored schedules by the number of binary digits of their bytes; empty
        if not asked for.
    """

    schedule: Schedule | None
    bytes: int | None
    n_scored: int
    n_too_large: int
    n_covered: int
    histogram: tuple[int, ...] = ()


class Stream:
    """All schedules of a problem as one scratchpad under memory sees them.

    Parameters
    ----------
    problem : Problem
    capacity_bytes : int, bytes
        Room for all tensors together.
    candidates : tuple of tuple of int, optional
        Extents to choose from, each dimension, largest first, beginning with
        its size; by default the smallest for each number of pieces.

    Examples
    --------
    >>> from loopsched import gemm
    >>> stream = Stream(gemm(m=64, n=64, k=64), 4096)
    >>> found = stream.run()
    >>> found.n_scored, found.bytes
    (4851, 98304)
    """

    def __init__(
        self,
        problem: Problem,
        capacity_bytes: int,
        candidates: tuple[tuple[int, ...], ...] | None = None,
    ) -> None:
        import buffer_stream_kernels as kernels
        import numpy as np

        if not is_count(capacity_bytes, 0):
            raise ScheduleError(
                f"capacity_bytes is {show(capacity_bytes)}; a whole number >= 0 is needed"
            )
        check_bytes(problem)
        self.problem, self.capacity_bytes = problem, capacity_bytes
        self.tables: Tables = tables_for(problem, candidates=candidates)
        tables = self.tables
        self.classes, self.rows = _classes(problem, tables)
        one = np.ones(1, dtype=np.int64)
        values = np.concatenate(
            (tables.total, tables.slid_first, tables.slid_second, tables.pieces.ravel(), one)
        )
        sizes = np.ones_like(values)
        sizes[: len(tables.largest)] = tables.largest
        width = tables.pieces.shape[1]
        pieces_at = 3 * len(tables.total) + width * np.arange(len(problem.dims), dtype=np.int64)
        counts = [int(count) for count in tables.n_extents]
        radix = [prod(counts[at + 1 :]) for at in range(len(counts))]
        self._base = prod(counts)
        if self._base * (len(self.classes) + 1) >= NO_BYTES:
            raise ProblemError(f"problem '{problem.name}': too many bodies to number")
        self._radix = np.array(radix, dtype=np.int64)
        self._numbers = tables.numbers
        self._space = kernels.Space(
            self._radix, values, sizes, pieces_at, len(tables.total), tables.constant,
            capacity_bytes, _is_monotone(tables),
        )  # fmt: skip

    @property
    def n_choices(self) -> int:
        """Count the choices of extents and order class: scored, too large and covered."""
        return 1 + sum(
            prod(int(self.tables.n_extents[d]) - 1 for d in active if d >= 0)
            for active in self.rows.actives
        )

    def run(self, *, is_binned: bool = False) -> Scores:
        """Score every schedule; keep the best, and on request a histogram."""
        import numpy as np

        best = np.array([NO_BYTES, -1], dtype=np.int64)
        counts = np.zeros(3, dtype=np.int64)
        bins = np.zeros(64 if is_binned else 0, dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        winner, least = -1, NO_BYTES
        whole = self._whole_bytes()
        if whole is not None:  # no loop outside: code 0 of a class after all others
            winner, least, counts[0] = len(self.classes), whole, 1
            best[:] = whole, 0
            if is_binned:
                bins[whole.bit_length()] += 1
        else:
            counts[1] = 1
        for at in range(len(self.classes)):
            index = self._start(at)
            self._score(at, index, best, counts, bins, none, none)
            if int(best[0]) < least:
                least, winner = int(best[0]), at
        schedule = None if winner < 0 else self.schedule(winner * self._base + int(best[1]))
        scored, too_large, covered = (int(count) for count in counts)
        histogram = tuple(int(count) for count in bins)
        return Scores(schedule, least if schedule else None, scored, too_large, covered, histogram)

    def chunks(self, size: int = 2**20) -> Iterator[Chunk]:
        """Score every schedule, about ``size`` at a time.

        Examples
        --------
        >>> from loopsched import gemm
        >>> stream = Stream(gemm(m=64, n=64, k=64), 4096)
        >>> min(int(chunk.bytes.min()) for chunk in stream.chunks())
        98304
        """
        import numpy as np

        size = max(size, int(self.tables.n_extents.max()))
        best = np.array([NO_BYTES, -1], dtype=np.int64)
        counts, none = np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64)
        out, codes = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        whole = self._whole_bytes()
        if whole is not None:
            yield Chunk(np.array([whole]), np.array([len(self.classes) * self._base]))
        for at in range(len(self.classes)):
            index, is_done = self._start(at), False
            while not is_done:
                written, is_done = self._score(at, index, best, counts, none, out, codes)
                if written:
                    yield Chunk(out[:written].copy(), codes[:written] + at * self._base)

    def schedule(self, code: int) -> Schedule:
        """Write the schedule of a code as a nest.

        Examples
        --------
        >>> from loopsched import gemm
        >>> stream = Stream(gemm(m=8, n=8, k=8), 256)
        >>> print(stream.schedule(int(next(stream.chunks()).codes[0])))
        N:8 M:8 M:2 N:4 K:8
        """
        at, rest = divmod(code, self._base)
        if at == len(self.classes):
            return compose(self.problem, [])
        extents = []
        for dim, known, radix in zip(
            self.problem.dims, self.tables.extents, self._radix, strict=True
        ):
            number, rest = divmod(rest, int(radix))
            extents.append((dim, known[number]))
        inward = self.classes[at].inward
        active = [self.problem.dims[d] for d in self.rows.actives[at] if d >= 0]
        outer = [dim for dim in active if dim not in inward]
        return compose(self.problem, [Block((*outer, *reversed(inward)), tuple(extents))])

    def _whole_bytes(self) -> int | None:
        """What the nest without loops outside moves; None if it does not fit."""
        once = sum(tensor_bytes(self.problem, tensor) for tensor in self.problem.tensors)
        return once if once <= self.capacity_bytes else None

    def _start(self, at: int) -> Ints:
        import numpy as np

        index = np.zeros(len(self.problem.dims), dtype=np.int64)
        active = self.rows.actives[at]
        index[active[active >= 0]] = 1
        return index

    def _score(
        self, at: int, index: Ints, best: Ints, counts: Ints, bins: Ints, out: Ints, codes: Ints
    ) -> tuple[int, bool]:
        import buffer_stream_kernels as kernels
        import numpy as np

        tables = self.tables
        active = [int(d) for d in self.rows.actives[at] if d >= 0]
        # The longest list runs fastest: what the others give is multiplied once.
        fast = max(active, key=lambda d: int(tables.n_extents[d]))
        inner = self.problem.dims.index(self.classes[at].inward[0])
        slow = np.array([d for d in active if d != fast], dtype=np.int64)
        order = kernels.Class(slow, fast, inner, self.rows.runs[at], self.rows.slides[at])
        found = kernels.Found(best, counts, bins, out, codes)
        written, is_done = kernels.score_class(self._numbers, self._space, order, index, found)
        return int(written), bool(is_done)


def score_bodies(problem: Problem, capacity_bytes: int, *, is_binned: bool = False) -> Scores:
    """Score every schedule of a problem for one scratchpad under memory.

    Parameters
    ----------
    problem : Problem
    capacity_bytes : int, bytes
    is_binned : bool
        Whether to count schedules by the size of their traffic.

    Returns
    -------
    Scores

    Examples
    --------
    >>> from loopsched import gemm
    >>> found = score_bodies(gemm(m=4096, n=4096, k=4096), 4_718_592)
    >>> found.bytes
    603979776
    """
    return Stream(problem, capacity_bytes).run(is_binned=is_binned)


def _classes(problem: Problem, tables: Tables) -> tuple[tuple[OrderClass, ...], ClassRows]:
    """List the classes of orders of every set of loops with at least one."""
    tensors = relevance(problem)
    inside = {dim: frozenset[str]() for dim in problem.dims}
    free = [d for d, count in zip(problem.dims, tables.n_extents, strict=True) if count > 1]
    chosen = [
        (active, one)
        for many in range(1, len(free) + 1)
        for active in combinations(free, many)
        for one in allowed_classes(tensors, active, inside, by_innermost=True)
    ]
    return tuple(one for _, one in chosen), class_rows(problem.dims, len(tensors), chosen, True)


def _is_monotone(tables: Tables) -> bool:
    """Whether a smaller extent never needs more room, on any axis."""
    for axis, (first, second) in enumerate(tables.axis_dims):
        rows, columns = int(tables.n_extents[first]), int(tables.axis_stride[axis])
        start = int(tables.axis_start[axis])
        table = tables.largest[start : start + rows * columns].reshape(rows, columns)
        if (table[1:] > table[:-1]).any() or (second >= 0 and (table[:, 1:] > table[:, :-1]).any()):
            return False
    return True
