"""One cache under the memory: the compiled policies, fed chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from loopsched.base.arguments import show
from loopsched.base.arrays import Ids, Ints
from loopsched.base.errors import InputError
from loopsched.simulator import _belady, _lru, _sets
from loopsched.simulator.result import TensorCounts, in_order
from loopsched.simulator.trace import Memory

# Told, after every chunk, how many accesses are done.
Progress = Callable[[int], None]

# The optimum looks ahead: it keeps 8 bytes of each access, here 4 GiB in all.
MAX_AHEAD = 2**29

# Accesses of lines at a time.
_AT_ONCE = 1 << 16


class Source(Protocol):
    """Something that generates accesses: see `Walker` and `Waves`."""

    memory: Memory
    accesses: Ints

    def chunks(self) -> Iterator[Ids]:
        """Generate the accesses in order."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a policy counted, tensor by tensor: columns of `_lru.lru`'s counts."""

    misses: tuple[int, ...]
    first: tuple[int, ...]
    evicted: tuple[int, ...]

    @classmethod
    def of(cls, counts: Ints) -> Kept:
        """Read a kernel's counts."""
        columns = [tuple(int(one) for one in column) for column in counts.T]
        return cls(*columns)


def watched(source: Source, progress: Progress | None) -> Iterator[Ids]:
    """Generate the accesses in order, and tell after every chunk how many are done."""
    done = 0
    for ids in source.chunks():
        yield ids
        if progress is not None:
            done += len(ids)
            progress(done)


def run_lru(source: Source, capacity_bytes: int, progress: Progress | None = None) -> Kept:
    """Replay through a fully associative LRU cache."""
    memory = source.memory
    n_ids, units = memory.bounds[-1], memory.unit_bytes
    live = min(n_ids, capacity_bytes // min(units)) + 1
    last = np.full(n_ids, _lru.NEVER, dtype=np.int32)
    # Four times what is held: the ring is tidied up once for three rounds of accesses.
    ring = np.empty(min(4 * live + 4096, 2**31 - 1), dtype=np.int32)
    state = np.zeros(3, dtype=np.int64)
    counts = np.zeros((len(units), 3), dtype=np.int64)
    bounds = np.array(memory.bounds, dtype=np.int64)
    weights = np.array(units, dtype=np.int64)
    for ids in watched(source, progress):
        _lru.lru(ids, capacity_bytes, bounds, weights, last, ring, state, counts)
    return Kept.of(counts)


def run_sets(
    source: Source,
    capacity_bytes: int,
    ways: int,
    *,
    is_random: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Kept:
    """Replay through a set-associative cache of lines."""
    memory = source.memory
    line_bytes = memory.line_bytes or memory.unit_bytes[0]
    bounds = np.array(memory.bounds, dtype=np.int64)
    places = [address // line_bytes for address in memory.addresses]
    starts = np.array(places, dtype=np.int64) - bounds[:-1]
    n_sets = capacity_bytes // (line_bytes * ways)
    own = _empty(memory.bounds[-1], n_sets, ways, starts, is_random=is_random, seed=seed)
    counts = np.zeros((len(memory.tensors), 3), dtype=np.int64)
    for ids in watched(source, progress):
        _sets.sets(ids, bounds, own, counts)
    return Kept.of(counts)


def _empty(
    n_lines: int,
    n_sets: int,
    ways: int,
    starts: Ints,
    *,
    is_random: bool = False,
    seed: int = 0,
    n_missed: int = 0,
) -> _sets.Sets:
    """Make a set-associative cache that holds nothing."""
    slots = n_sets * ways
    where = np.full(n_lines, _lru.NEVER, dtype=np.int32)
    lines, before, after = (np.zeros(slots, dtype=np.int32) for _ in range(3))
    heads, filled = np.zeros(n_sets, dtype=np.int32), np.zeros(n_sets, dtype=np.int32)
    # Any seed, also 0, must start the generator away from 0; neighbours far from each other.
    random = np.array([(seed * 0x9E3779B1 + 0x7F4A7C15) % (2**32 - 1) + 1], dtype=np.int64)
    missed = np.empty(n_missed, dtype=np.int32)
    return _sets.Sets(
        n_sets, ways, is_random, starts, where, lines, before, after, heads, filled, random, missed
    )


class LineCache:
    """A set-associative LRU cache of the lines of one block of memory.

    Parameters
    ----------
    n_lines : int
        Lines of the block; the first of them belongs to the first set.
    n_sets, ways : int

    Examples
    --------
    >>> cache = LineCache(8, n_sets=2, ways=1)
    >>> cache.missed(np.array([0, 1, 0, 2, 0], dtype=np.int32)).tolist()
    [0, 1, 2, 0]
    """

    def __init__(self, n_lines: int, n_sets: int, ways: int) -> None:
        self._bounds = np.array([0, n_lines], dtype=np.int64)
        starts = np.zeros(1, dtype=np.int64)
        self._own = _empty(n_lines, n_sets, ways, starts, n_missed=_AT_ONCE)
        self._counts = np.zeros((1, 3), dtype=np.int64)

    def missed(self, lines: Ids) -> Ids:
        """Access lines in turn; return those that were not held."""
        found = []
        for first in range(0, len(lines), _AT_ONCE):
            part = lines[first : first + _AT_ONCE]
            n_missed = _sets.sets(part, self._bounds, self._own, self._counts)
            found.append(self._own.missed[:n_missed].copy())
        return np.concatenate(found) if found else lines[:0]


def run_belady(source: Source, capacity_bytes: int, progress: Progress | None = None) -> Kept:
    """Replay with Belady's optimum; the whole trace is kept in memory.

    Raises
    ------
    InputError
        If the trace is too long.
    """
    memory = source.memory
    most = memory.problem.macs * len(memory.tensors)
    if most > MAX_AHEAD:
        raise InputError(
            f"policy 'belady' looks ahead through {show(most)} accesses; at most {MAX_AHEAD:,} "
            "can be kept in memory: take a smaller problem, or 'lru'"
        )
    parts = [ids.copy() for ids in source.chunks()]
    ids = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
    del parts
    n, n_ids = len(ids), memory.bounds[-1]
    following = np.empty(n, dtype=np.int32)
    seen = np.full(n_ids, -1, dtype=np.int32)
    stretch = 1 << 16
    for first in reversed(range(0, n, stretch)):
        _belady.next_uses(ids, first, min(n, first + stretch), seen, following)
    held = np.full(n_ids, -1, dtype=np.int32)
    idle = np.empty(n_ids, dtype=np.int32)
    sizes: list[int] = []
    many = n
    while not sizes or many > 1:
        many = -(-many // 64)
        sizes.append(max(1, many))
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    words = np.zeros(int(starts[-1]), dtype=np.uint64)
    state = np.zeros(2, dtype=np.int64)
    counts = np.zeros((len(memory.tensors), 3), dtype=np.int64)
    bounds = np.array(memory.bounds, dtype=np.int64)
    weights = np.array(memory.unit_bytes, dtype=np.int64)
    own = _belady.Optimum(capacity_bytes, bounds, weights, held, idle, words, starts, state)
    for first in range(0, n, stretch):
        stop = min(n, first + stretch)
        _belady.belady(ids, following, first, stop, own, counts)
        if progress is not None:
            progress(stop)
    return Kept.of(counts)


def tensor_counts(
    memory: Memory,
    accesses: Sequence[int],
    kept: Kept,
    *,
    is_through: bool = False,
    flush: bool = True,
) -> dict[str, TensorCounts]:
    """Turn what a policy kept into reads and writes.

    The first touch of the output brings nothing in.  What is written stays
    dirty until it is evicted or flushed, or goes through at once.
    """
    found = []
    for t, (each, unit) in enumerate(zip(memory.tensors, memory.unit_bytes, strict=True)):
        name, many = each.tensor.name, int(accesses[t])
        misses, reads, backs, written = kept.misses[t], kept.misses[t], 0, 0
        if name == memory.problem.output:
            reads -= kept.first[t]
            if is_through:
                written = many * each.tensor.element_bytes
            else:
                backs = misses if flush else kept.evicted[t]
                written = backs * unit
        found.append(TensorCounts(name, many, misses, backs, reads * unit, written))
    return in_order([tensor.name for tensor in memory.problem.tensors], found)
