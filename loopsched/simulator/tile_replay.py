"""Replays of a schedule tile by tile, for every cache capacity in one pass.

The items of the spatial loops run in written order, one an instance and wave, all
items of a wave in lock-step.  What comes out is not a number of misses but how far
apart the uses of each tile are: from that follow the misses of any capacity, and of
caches that are not fully associative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loopsched.base.arrays import Floats, Ints
from loopsched.base.errors import ScheduleError
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.footprint import footprint_elems
from loopsched.problems.problem import Problem
from loopsched.simulator import _tile_kernels as kernels

# A step of one item may touch this much before steps are split up.
STEP_BYTES = 2**15
BINS_A_CAPACITY = 128
BINS = 16 * BINS_A_CAPACITY
MOST_ITEMS = 2**22
MOST_TOUCHES = 10**9
MOST_TILES = 2**26


@dataclass(frozen=True, slots=True)
class ReuseProfile:
    """How far apart the uses of tiles are.

    Parameters
    ----------
    bin_bytes : int
        Width of the bins below.
    read_cold_bytes : int
        First reads of inputs.
    read_again : tuple of int, bytes
        Later reads of inputs, by what was touched since the last use, the tile
        included; the last bin is open.
    written_again : tuple of int, bytes
        Later uses of tiles of the output.
    written_left : tuple of int, bytes
        Tiles of the output, by what was touched from their last use to the end.
    """

    bin_bytes: int
    read_cold_bytes: int
    read_again: tuple[int, ...]
    written_again: tuple[int, ...]
    written_left: tuple[int, ...]

    def read_bytes(self, capacity_bytes: int, ways: int | None = None) -> float:
        """Bytes that a cache of some capacity reads from memory.

        Parameters
        ----------
        capacity_bytes : int
            At most eight times the one that the profile was made for.
        ways : int, optional
            Lines that a set holds; sets are chosen by a hash.  None: fully
            associative.
        """
        again = np.array(self.read_again, float) + np.array(self.written_again, float)
        return self.read_cold_bytes + float(self._gone(capacity_bytes, ways) @ again)

    def write_bytes(self, capacity_bytes: int, ways: int | None = None) -> float:
        """Bytes written back by the end; what is dirty then stays in the cache."""
        once = np.array(self.written_again, float) + np.array(self.written_left, float)
        return float(self._gone(capacity_bytes, ways) @ once)

    def _gone(self, capacity_bytes: int, ways: int | None) -> Floats:
        distances = (np.arange(len(self.read_again)) + 0.5) * self.bin_bytes
        distances[-1] = math.inf
        return eviction_probability(distances / capacity_bytes, ways)


def eviction_probability(distance: Floats, ways: int | None = None) -> Floats:
    """Probability that a line was evicted since its last use.

    Parameters
    ----------
    distance : array of float
        Data touched since, as a share of the capacity.
    ways : int, optional
        None: fully associative, so certain beyond the capacity.

    Returns
    -------
    array of float

    Notes
    -----
    Lines touched since fall into sets at random; those that meet one set are
    about Poisson distributed, and evict if there are ``ways`` of them (Smith
    1978; Hill and Smith, IEEE Transactions on Computers 38(12), 1989).

    Examples
    --------
    >>> import numpy as np
    >>> eviction_probability(np.array([0.5, 1.5])).tolist()
    [0.0, 1.0]
    >>> eviction_probability(np.array([0.5, 1.0, 1.5]), ways=20).round(2).tolist()
    [0.0, 0.53, 0.98]
    """
    if ways is None:
        return np.where(distance > 1, 1.0, 0.0)
    mean = np.minimum(distance, 40.0) * ways
    term = np.exp(-mean)
    kept = term.copy()
    for met in range(1, ways):
        term = term * mean / met
        kept += term
    gone: Floats = np.maximum(1 - kept, 0.0)
    return gone


def reuse_profile(
    problem: Problem, schedule: Schedule, instances: int, *, room_bytes: int, capacity_bytes: int
) -> ReuseProfile:
    """Replay a schedule, tile by tile.

    Parameters
    ----------
    problem : Problem
        Every axis of its tensors moves with one dimension.
    schedule : Schedule
        One run of spatial loops, of one unit.
    instances : int
        Items that run side by side.
    room_bytes : int
        What an instance can hold: its tiles are the largest region that fits.
    capacity_bytes : int
        The capacity of most interest: the bins are a 128th of it wide.

    Raises
    ------
    ScheduleError
        If the problem or the schedule is of another form, or too large.

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=256, n=256, k=256)
    >>> nest = parse_schedule("M:256@SM N:256@SM K:256 M:64 N:64 K:32", problem)
    >>> found = reuse_profile(problem, nest, 4, room_bytes=65536, capacity_bytes=2**20)
    >>> found.read_cold_bytes, found.read_bytes(2**16), found.read_bytes(2**20)
    (524288, 1310720.0, 524288.0)
    """
    schedule.check_even("a replay of tiles")
    first, inside = _spatial(problem, schedule)
    position = _body(problem, schedule, inside, room_bytes)
    nest = _coarser(problem, schedule, inside, position)
    begins, starts, lengths = _items(problem, nest, first, inside)
    offsets, extents = _steps(problem, nest, inside, position)
    n_touches = len(starts) * len(offsets) * len(problem.tensors)
    if n_touches > MOST_TOUCHES:
        raise ScheduleError(
            f"schedule '{schedule}': {n_touches} tiles to follow; at most {MOST_TOUCHES}"
        )
    bin_bytes = max(1, capacity_bytes // BINS_A_CAPACITY)
    layout = _layout(problem, starts, lengths, offsets, extents)
    n_tiles, many = layout.n_tiles, len(problem.tensors)
    replay = kernels.Replay(
        bin_bytes,
        cold=np.zeros(many, np.int64),
        again=np.zeros((many, BINS), np.int64),
        state=np.zeros(3, np.int64),
        stamp=np.zeros(n_tiles, np.int64),
        tree=np.zeros(2 * n_tiles + 17, np.int64),
        slot=np.full(n_tiles, -1, np.int64),
        owner=np.full(2 * n_tiles + 16, -1, np.int64),
        size=np.zeros(n_tiles, np.int64),
    )
    for begin, end in zip(begins, [*begins[1:], len(starts)], strict=True):
        for at in range(begin, end, instances):
            wave = slice(at, min(at + instances, end))
            kernels.run_wave(starts[wave], lengths[wave], layout, replay)
    cold, again, left = replay.cold, replay.again, np.zeros(BINS, np.int64)
    kernels.left_behind(replay, layout.first_written, left)
    written = [t.name for t in problem.tensors].index(problem.output)
    reads = again.sum(axis=0) - again[written]
    return ReuseProfile(
        bin_bytes,
        int(cold.sum() - cold[written]),
        tuple(reads.tolist()),
        tuple(again[written].tolist()),
        tuple(left.tolist()),
    )


def _spatial(problem: Problem, schedule: Schedule) -> tuple[int, int]:
    """Find the run of spatial loops: the first, and the first one after."""
    at = [i for i, loop in enumerate(schedule.loops) if loop.is_spatial]
    faults = []
    if len({schedule.loops[i].unit for i in at}) > 1 or (at and at[-1] - at[0] >= len(at)):
        faults.append("a replay by tiles needs one run of spatial loops, of one unit")
    for tensor in problem.tensors:
        if any(len(axis.terms) != 1 or axis.size is not None for axis in tensor.axes):
            faults.append(f"tensor '{tensor.name}': a replay by tiles cannot slide windows")
    ScheduleError.refuse(f"schedule '{schedule}'", faults)
    return (at[0], at[-1] + 1) if at else (0, 0)


def _body(problem: Problem, schedule: Schedule, inside: int, room_bytes: int) -> int:
    """Find the position from which on a region fits an instance."""
    for position in range(inside, len(schedule.loops)):
        if _held(problem, schedule.extents_from(position)) <= room_bytes:
            return position
    return len(schedule.loops)


def _held(problem: Problem, extents: Mapping[str, int]) -> int:
    return sum(t.element_bytes * footprint_elems(t, {}, extents) for t in problem.tensors)


def _read(problem: Problem, extents: Mapping[str, int]) -> int:
    inputs = (t for t in problem.tensors if t.name != problem.output)
    return sum(t.element_bytes * footprint_elems(t, {}, extents) for t in inputs)


def _coarser(problem: Problem, schedule: Schedule, inside: int, position: int) -> Schedule:
    """Widen small bodies along the innermost loop around them, to have fewer steps.

    Items stay in step within a few KiB of their own data; a cache of megabytes
    does not tell the difference.
    """
    if position == inside or position >= len(schedule.loops):
        return schedule
    dim = schedule.loops[position - 1].dim
    if any(loop.dim == dim for loop in schedule.loops[inside : position - 1]):
        return schedule
    limit = schedule.loops[position - 1].extent
    body = schedule.extents_from(position)
    wide = body.get(dim, 1)
    while 2 * wide <= limit and _read(problem, {**body, dim: 2 * wide}) <= STEP_BYTES:
        wide *= 2
    loops = list(schedule.loops)
    inner = [i for i in range(position, len(loops)) if loops[i].dim == dim]
    if not inner:
        return schedule
    for i in inner:
        loops[i] = Loop(dim, wide if i == inner[0] else loops[i].extent)
    return Schedule.of(loops)


def _split(starts: Ints, lengths: Ints, dim: int, step: int) -> tuple[Ints, Ints, Ints]:
    """Cut regions into pieces of ``step`` along one dimension, in order."""
    counts = -(-lengths[:, dim] // step)
    if int(counts.sum()) > MOST_TILES:
        raise ScheduleError(f"{int(counts.sum())} regions to follow; at most {MOST_TILES}")
    parent = np.repeat(np.arange(len(starts)), counts)
    firsts = np.cumsum(counts) - counts
    number = np.arange(len(parent)) - firsts[parent]
    starts, lengths = starts[parent].copy(), lengths[parent].copy()
    starts[:, dim] += number * step
    lengths[:, dim] = np.minimum(step, lengths[:, dim] - number * step)
    return parent, starts, lengths


def _items(
    problem: Problem, schedule: Schedule, first: int, inside: int
) -> tuple[list[int], Ints, Ints]:
    """List the items in order: where each list begins, and the items' regions."""
    starts = np.zeros((1, len(problem.dims)), np.int64)
    lengths = np.array([[size for _, size in problem.sizes]], np.int64)
    lists = np.zeros(1, np.int64)
    for i, loop in enumerate(schedule.loops[:inside]):
        dim = problem.dims.index(loop.dim)
        parent, starts, lengths = _split(starts, lengths, dim, schedule.steps[i])
        lists = np.arange(len(starts)) if i < first else lists[parent]
        if len(starts) > MOST_ITEMS:
            raise ScheduleError(f"schedule '{schedule}': {len(starts)} items; at most {MOST_ITEMS}")
    begins = [0, *(np.flatnonzero(np.diff(lists)) + 1).tolist()]
    return begins, starts, lengths


def _steps(problem: Problem, schedule: Schedule, inside: int, position: int) -> tuple[Ints, Ints]:
    """List the bodies of a full item in order: their offsets and extents."""
    whole = schedule.extents_from(inside)
    starts = np.zeros((1, len(problem.dims)), np.int64)
    lengths = np.array([[whole.get(dim, 1) for dim in problem.dims]], np.int64)
    for i, loop in list(enumerate(schedule.loops))[inside:position]:
        dim = problem.dims.index(loop.dim)
        _, starts, lengths = _split(starts, lengths, dim, schedule.steps[i])
        if len(starts) > MOST_TILES:
            raise ScheduleError(f"schedule '{schedule}': more than {MOST_TILES} steps an item")
    return starts, lengths


def _layout(
    problem: Problem, starts: Ints, lengths: Ints, offsets: Ints, extents: Ints
) -> kernels.Layout:
    pieces: list[Ints] = []
    counts: list[int] = []
    for dim, size in enumerate(problem.size.values()):
        is_start = np.zeros(size, np.bool_)
        regions = np.unique(np.stack([starts[:, dim], lengths[:, dim]], axis=1), axis=0)
        steps = np.unique(offsets[:, dim])
        for start, length in regions.tolist():
            is_start[start + steps[steps < length]] = True
        pieces.append(np.cumsum(is_start, dtype=np.int64) - 1)
        counts.append(int(is_start.sum()))
    # The output's tiles come last, so that they are known by their numbers.
    order = sorted(range(len(problem.tensors)), key=lambda t: _is_output(problem, t))
    tensors = np.zeros((len(order), 3), np.int64)
    strides = np.full((len(order), len(counts)), -1, np.int64)
    n_tiles = first_written = 0
    for t in order:
        tensor = problem.tensors[t]
        if _is_output(problem, t):
            first_written = n_tiles
        tensors[t] = n_tiles, tensor.element_bytes, _is_output(problem, t)
        many = 1
        for dim, name in enumerate(problem.dims):
            if tensor.is_indexed_by(name):
                strides[t, dim] = many
                many *= counts[dim]
        n_tiles += many
    if n_tiles > MOST_TILES:
        raise ScheduleError(f"problem '{problem.name}': {n_tiles} tiles; at most {MOST_TILES}")
    first_piece = np.cumsum([0, *(len(part) for part in pieces)])[:-1]
    return kernels.Layout(
        offsets,
        extents,
        tensors,
        strides,
        np.concatenate(pieces),
        first_piece.astype(np.int64),
        n_tiles,
        first_written,
    )


def _is_output(problem: Problem, t: int) -> bool:
    return problem.tensors[t].name == problem.output
