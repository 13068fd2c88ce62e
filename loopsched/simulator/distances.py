"""Stack distances: one pass that gives the traffic of every capacity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

import numpy as np

from loopsched.base.arguments import Checker
from loopsched.base.arrays import Ints
from loopsched.base.errors import InputError
from loopsched.base.keywords import hides_private
from loopsched.simulator import _distances
from loopsched.simulator.cache import Kept, Progress, Source, tensor_counts, watched
from loopsched.simulator.result import LevelCounts
from loopsched.simulator.trace import Memory

# Bits of time are numbered in 32 bits, and there must be some to spare.
_MAX_UNITS = 2**29


@dataclass(frozen=True)
class Distances:
    """Stack distances of one tensor's accesses.

    The *distance* of an access is the least capacity of a fully associative
    LRU cache, in bytes, in which it hits.

    Parameters
    ----------
    name : str
    accesses : int
    first : int
        Elements or lines: their first touches hit at no capacity.
    bytes : tuple of int
        Distances that occur, ascending.
    counts : tuple of int
        Accesses at each.
    left_bytes, left_counts : tuple of int
        For the output: from which capacity on how many elements or lines are
        still in the cache at the end.
    """

    name: str
    accesses: int
    first: int
    bytes: tuple[int, ...]
    counts: tuple[int, ...]
    left_bytes: tuple[int, ...] = ()
    left_counts: tuple[int, ...] = ()

    def misses(self, capacity_bytes: int) -> int:
        """Count the accesses that miss in a cache of some capacity."""
        return self.first + sum(
            many for far, many in zip(self.bytes, self.counts, strict=True) if far > capacity_bytes
        )


@hides_private
@dataclass(frozen=True)
class StackDistances:
    """Reads and writes of an LRU cache of any capacity.

    Parameters
    ----------
    problem, schedule : str
    line_bytes : int or None
        None: elements.
    tensors : mapping of str to Distances
        In the problem's order.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule, stack_distances
    >>> problem = gemm(m=8, n=8, k=8, element_bytes=1)
    >>> found = stack_distances(problem, parse_schedule("M:8 N:8 K:8 M:3 N:3 K:8", problem))
    >>> [found.traffic(capacity).bytes for capacity in (30, 90, 150)]
    [733, 320, 192]
    """

    problem: str
    schedule: str
    line_bytes: int | None
    tensors: Mapping[str, Distances]
    _memory: Memory = field(repr=False)

    @property
    def capacities(self) -> tuple[int, ...]:
        """Capacities from which on there are more hits, or more is left at the end; ascending."""
        found = {far for each in self.tensors.values() for far in each.bytes + each.left_bytes}
        return tuple(sorted(found))

    def traffic(self, capacity_bytes: int, *, flush: bool = True) -> LevelCounts:
        """Count what a cache of some capacity moves.

        Parameters
        ----------
        capacity_bytes : int, bytes
        flush : bool
            Whether what is dirty at the end is written back and counted.

        Raises
        ------
        InputError
            If the capacity is not a whole number of bytes, 0 or more.
        """
        check = Checker("traffic", InputError)
        capacity = check.count("capacity_bytes", capacity_bytes, 0)
        check.finish()
        order = [self.tensors[name] for name in self._memory.names]
        misses = tuple(each.misses(capacity) for each in order)
        left = [
            sum(
                many
                for far, many in zip(each.left_bytes, each.left_counts, strict=True)
                if far <= capacity
            )
            for each in order
        ]
        kept = Kept(
            misses,
            tuple(each.first for each in order),
            tuple(many - stay for many, stay in zip(misses, left, strict=True)),
        )
        found = tensor_counts(self._memory, [each.accesses for each in order], kept, flush=flush)
        return LevelCounts("cache", "DRAM", capacity, 1, found)


def measure(source: Source, schedule: str, progress: Progress | None = None) -> StackDistances:
    """Find the stack distances of all accesses of a source."""
    memory = source.memory
    unit = gcd(*memory.unit_bytes)
    weights = np.array([size // unit for size in memory.unit_bytes], dtype=np.int64)
    bounds = np.array(memory.bounds, dtype=np.int64)
    units = int((np.diff(bounds) * weights).sum())
    if units > _MAX_UNITS:
        raise InputError(
            f"'{memory.problem.name}' takes {units * unit:,} bytes; stack distances can be "
            f"measured up to {_MAX_UNITS * unit:,}: count lines (line_bytes), or simulate one "
            "capacity"
        )
    n_words = max(256, -(-4 * units // 64) + int(weights.max()))
    starts = _block_starts(n_words)
    words = np.zeros(n_words, dtype=np.uint64)
    blocks = np.zeros(int(starts[-1]), dtype=np.int32)
    last = np.full(memory.bounds[-1], -1, dtype=np.int32)
    state = np.zeros(1, dtype=np.int64)
    histogram = np.zeros((len(weights), units + 1), dtype=np.int64)
    first = np.zeros(len(weights), dtype=np.int64)
    own = _distances.Stack(bounds, weights, last, words, blocks, starts, state, histogram, first)
    for ids in watched(source, progress):
        _distances.distances(ids, own)
    now = _distances.compact(int(state[0]), words, blocks, starts, last)
    found = {}
    for t, name in enumerate(memory.names):
        far = np.flatnonzero(histogram[t])
        left: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        if name == memory.problem.output:
            mine = last[bounds[t] : bounds[t + 1]]
            depth, many = np.unique(now - mine[mine >= 0].astype(np.int64), return_counts=True)
            left = tuple((depth * unit).tolist()), tuple(many.tolist())
        found[name] = Distances(
            name,
            int(source.accesses[t]),
            int(first[t]),
            tuple((far * unit).tolist()),
            tuple(histogram[t, far].tolist()),
            *left,
        )
    ordered = {tensor.name: found[tensor.name] for tensor in memory.problem.tensors}
    return StackDistances(memory.problem.name, schedule, memory.line_bytes, ordered, memory)


def _block_starts(n_words: int) -> Ints:
    """Lay out the levels of blocks, each of 16 of the level below, until 16 are left."""
    starts, bits = [0], 10
    while True:
        many = (n_words * 64 - 1 >> bits) + 2
        starts.append(starts[-1] + many)
        if many <= 17:
            return np.array(starts, dtype=np.int64)
        bits += 4
