"""Promises of many schedules at once, by one compiled function where it speaks of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import compress
from typing import NamedTuple, cast

import numpy as np

from loopsched.base.arrays import Ints
from loopsched.base.errors import ArchError
from loopsched.base.jit import is_kept
from loopsched.machines.arch import Arch
from loopsched.models import _promise_kernels as kernels
from loopsched.models._level_kernels import promise_all
from loopsched.models._pool_kernels import MOST_AHEAD, ROWS
from loopsched.models.asked import Asked
from loopsched.models.buffer import Closed
from loopsched.models.machine import nested_units, sights
from loopsched.models.reuse import lonely_dims
from loopsched.models.traffic import accesses
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import is_clipped, tensor_bytes
from loopsched.problems.problem import Problem

LARGE = 2**61
"""What 64-bit integers hold with some to spare."""

COMPILED_FROM = 15_000
"""Schedules for which it is worth to compile what is not kept: that takes as long as they do."""


SOME = MOST_AHEAD + 1
"""Schedules that are scored before an interruption is heard, and are looked ahead to."""


class _Desk:
    """A problem and a machine as numbers, and what a schedule's words are there.

    Parameters
    ----------
    problem : Problem
    arch : Arch
    lanes : int
    """

    def __init__(self, problem: Problem, arch: Arch, lanes: int) -> None:
        self._of = problem, arch, lanes
        self._dim_at = {dim: at for at, dim in enumerate(problem.dims)}
        self._unit_at: dict[str | None, int] = {None: -1}
        self._units = tuple(nested_units(arch, lanes))
        self._unit_at |= {unit: at for at, unit in enumerate(self._units)}
        first = _table(problem, arch, lanes)
        self.is_known = first is not None
        self._spare = [] if first is None else [first]
        n_levels, n_tensors = len(arch.caches), len(problem.tensors)
        self.n_columns = kernels.BYTES + n_levels * (1 + kernels.PARTS + 2 * n_tensors)

    def loops(self, schedules: Sequence[Schedule]) -> tuple[Ints, Ints] | None:
        """Write schedules down as numbers, if 64 bits hold them."""
        dim_at, unit_at = self._dim_at, self._unit_at
        numbers: list[int] = []
        ends: list[int] = []
        for schedule in schedules:
            if schedule.places:
                numbers += (-1, 1, -1)
            else:
                for loop in schedule.loops:
                    numbers += dim_at.get(loop.dim, -1), loop.extent, unit_at.get(loop.unit, -2)
            ends.append(len(numbers) // 3)
        try:
            return np.array(numbers, np.int64).reshape(-1, 3), np.array(ends, np.int64)
        except OverflowError:
            return None

    @contextmanager
    def table(self) -> Iterator[Ints]:
        """Lend a table to work in: each thread that is in the kernel needs one of its own."""
        try:
            table = self._spare.pop()
        except IndexError:
            table = cast(Ints, _table(*self._of))  # it has been written before
        yield table
        self._spare.append(table)

    def waves(self, table: Ints) -> Waves:
        """Read what is known of the outermost level where that is all but its waves."""
        problem, arch, _ = self._of
        names = [tensor.name for tensor in problem.tensors]

        def row(at: int) -> dict[str, int]:
            return dict(zip(names, table[at, : len(names)].tolist(), strict=True))

        own = table[kernels.OWN, : len(names)].tolist()
        held = [name for name, size in zip(names, own, strict=True) if size != kernels.PASSES]
        fit, late, whole, n_cold, n_waiting = table[kernels.NOW, _OF_WAVES].tolist()
        visits, behind = row(kernels.VISITS), row(kernels.BEHIND)
        asked = None
        if len(arch.caches) > 1:
            waits = range(n_waiting)
            owners = (table[kernels.OWNERS + at, : len(self._units)].tolist() for at in waits)
            sizes = table[kernels.LATEST, :n_waiting].tolist()
            waiting = tuple(
                (size, frozenset(compress(self._units, are)))
                for size, are in zip(sizes, owners, strict=True)
            )
            cold = tuple(table[kernels.COLD, :n_cold].tolist())
            asked = Asked(
                row(kernels.ASKED), row(kernels.ANEW), row(kernels.ONCE), late, whole, waiting, cold
            )  # fmt: skip
        return Waves(
            asked,
            Closed(
                None if fit < 0 else fit,
                {name: visits[name] for name in held},
                {name: behind[name] for name in held},
            ),
        )


class Waves(NamedTuple):
    """What is known of an outermost level but how its waves run.

    Parameters
    ----------
    asked : Asked or None
        What the levels inside ask it for; None if there are none.
    closed : Closed
    """

    asked: Asked | None
    closed: Closed


_OF_WAVES = [kernels.OUTSIDE, kernels.LATE, kernels.TILES, kernels.N_COLD, kernels.N_WAITING]
_desk = lru_cache(maxsize=64)(_Desk)


def promised_many(
    problem: Problem, schedules: Sequence[Schedule], arch: Arch, lanes: int, jobs: int = 1
) -> Ints:
    """Find what schedules promise, where compiled code tells it; ``jobs`` threads at a time.

    Returns
    -------
    array of int
        A row for each schedule: whether it is `PROMISED`, `TOO_LARGE` for a scratchpad or
        `UNKNOWN` here; steps, and the least of them; whether lanes are used; bytes of each
        level, outermost first.
    """
    found = np.full((len(schedules), kernels.BYTES + len(arch.caches)), kernels.UNKNOWN, np.int64)
    if len(schedules) >= COMPILED_FROM or is_kept(promise_all):
        desk = _desk(problem, arch, lanes)
        if desk.is_known:
            _promise_each(desk, schedules, found, jobs)
    found[found[:, kernels.OUTCOME] == kernels.WAVES, kernels.OUTCOME] = kernels.UNKNOWN
    return found


def _promise_each(desk: _Desk, schedules: Sequence[Schedule], found: Ints, jobs: int) -> None:
    """Promise some schedules at a time, so that an interruption is heard."""
    starts = iter(range(0, len(schedules), SOME))

    def promise_some() -> None:
        with desk.table() as table:
            for at in starts:  # each thread takes the next ones that are left
                loops = desk.loops(schedules[at : at + SOME])
                if loops is not None:
                    promise_all(table, *loops, found[at : at + SOME])

    n_threads = min(jobs, -(-len(schedules) // SOME))
    if n_threads < 2:
        return promise_some()
    with ThreadPoolExecutor(n_threads) as threads:
        try:
            for thread in [threads.submit(promise_some) for _ in range(n_threads)]:
                thread.result()
        finally:
            deque(starts, maxlen=0)  # the others end once one is interrupted


def promised_one(
    problem: Problem, schedule: Schedule, arch: Arch, lanes: int
) -> tuple[list[int], Waves | None] | None:
    """Find what a schedule promises, and what fits each level; None if no closed form tells it.

    Of the outermost level, it may leave open how waves run.
    """
    desk = _desk(problem, arch, lanes)
    loops = desk.loops((schedule,)) if desk.is_known else None
    if loops is None:
        return None
    found = np.zeros((1, desk.n_columns), np.int64)
    with desk.table() as table:
        promise_all(table, *loops, found)
        row: list[int] = found[0].tolist()
        waves = desk.waves(table) if row[kernels.OUTCOME] == kernels.WAVES else None
    return (row, waves) if row[kernels.OUTCOME] in (kernels.PROMISED, kernels.WAVES) else None


def _table(problem: Problem, arch: Arch, lanes: int) -> Ints | None:
    """Write a problem and a machine down as numbers; None where they are too large for that."""
    axes = [axis for tensor in problem.tensors for axis in tensor.axes]
    spread = [axis for axis in axes if not axis.is_plain]
    units = nested_units(arch, lanes)
    if (
        len(problem.dims) > kernels.MOST_DIMS
        or len(problem.tensors) > kernels.MOST_TENSORS
        or len(arch.caches) > kernels.MOST_LEVELS
        or len(spread) > kernels.MOST_SPREAD
        or max(len(axes), len(units)) > kernels.COLUMNS
        or any(len(axis.terms) > 2 for axis in axes)
    ):
        return None
    table = np.zeros((ROWS, kernels.COLUMNS), np.int64)
    try:
        most = _write_levels(table, problem, arch, lanes)
    except ArchError:
        return None
    n_instances = math.prod(units.values())
    largest = max(
        most * len(arch.caches) * n_instances,
        _most_steps(problem, len(units)),
        _most_bytes(problem, n_instances),
    )
    if largest >= LARGE:
        return None
    _write_problem(table, problem)
    return table


def _most_steps(problem: Problem, n_units: int) -> int:
    """Bound the steps of any schedule, edges counted as full items.

    k loops of one unit along one dimension make items that are at most k + 1 times the
    dimension, all as long as the longest; that is most where all loops are spread evenly.
    """
    places = max(1, n_units * len(problem.dims))
    return problem.macs * math.ceil((1 + kernels.MOST_LOOPS / places) ** places)


def _most_bytes(problem: Problem, n_instances: int) -> int:
    """Bound sums of visits, and what bodies that touch an element hold: one for each instance."""
    n_tensors = len(problem.tensors)
    widest = max(tensor.element_bytes for tensor in problem.tensors)
    reached = max(
        math.prod(1 + sum(c * problem.size[dim] for dim, c in axis.terms) for axis in tensor.axes)
        for tensor in problem.tensors
    )
    held = reached * n_instances * max(problem.size.values())
    return int(widest * n_tensors * max(4 * problem.macs, held))


def _write_problem(table: Ints, problem: Problem) -> None:
    one = len(problem.dims)  # a dimension of size 1
    dim_at = {dim: at for at, dim in enumerate(problem.dims)}
    names = [tensor.name for tensor in problem.tensors]
    counts = one + 1, len(names), names.index(problem.output)
    table[kernels.NOW, [kernels.N_DIMS, kernels.N_TENSORS, kernels.OUTPUT]] = counts
    table[kernels.SIZES, : one + 1] = *problem.size.values(), 1
    every = [axis for tensor in problem.tensors for axis in tensor.axes]
    spread = [axis for axis in every if not axis.is_plain]
    a = n_spread = 0
    for t, tensor in enumerate(problem.tensors):
        of_tensor = (
            tensor.element_bytes, a, a + len(tensor.axes), tensor_bytes(problem, tensor),
            *accesses(problem)[tensor.name], all(axis.is_plain for axis in tensor.axes),
        )  # fmt: skip
        table[kernels.WIDTH : kernels.IS_PLAIN + 1, t] = of_tensor
        for axis in tensor.axes:
            n_spread += not axis.is_plain
            terms = [(dim_at[d], 1 if axis.is_plain else c) for d, c in axis.terms]
            (d1, c1), (d2, c2) = [*terms, (one, 1)][:2]
            table[kernels.FIRST_DIM : kernels.IS_CLIPPED + 1, a] = (
                d1, d2, c1, c2, axis.offset, axis.size or -1,
                sum(problem.size[dim] > 1 for dim in axis.dims),
                kernels.PLAIN if axis.is_plain else n_spread, is_clipped(axis, problem.size),
            )  # fmt: skip
            a += 1
        lonely = lonely_dims(problem, tensor)
        for dim, at in dim_at.items():
            table[kernels.BITS + t, at] = (
                kernels.INDEXED * (dim in tensor.dims)
                + kernels.SLIDING * (dim in tensor.sliding)
                + kernels.ALONE * (dim in lonely)
                + kernels.STEADY * all(dim not in axis.dims for axis in spread)
            )


def _write_levels(table: Ints, problem: Problem, arch: Arch, lanes: int) -> int:
    """Write the levels down; returns the most bytes that one has for some tensors."""
    nested, lane, most = nested_units(arch, lanes), arch.compute.lane_unit, 0
    counts = len(arch.caches), len(nested), [*nested].index(lane) if lane else -1
    table[kernels.NOW, [kernels.N_LEVELS, kernels.N_UNITS, kernels.LANE]] = counts
    table[kernels.NESTED, : len(nested)] = [*nested.values()]
    for at, (level, room, instances, _) in enumerate(sights(problem, arch, lanes)):
        is_pad = level.kind == "scratchpad"
        through = level.write_policy == "through" and level.accumulate == "level"
        copies = 2 if is_pad and level.double_buffered else 1
        sizes = dict(room.own_bytes) | dict.fromkeys(room.passing, kernels.PASSES)
        most = max(most, room.shared_bytes, *sizes.values())
        if most >= LARGE:
            break
        of_level = room.shared_bytes, is_pad, copies, level.halo_reuse, through
        table[kernels.CAPACITY : kernels.WRITES_THROUGH + 1, at] = of_level
        for t, tensor in enumerate(problem.tensors):
            table[kernels.OWNS + at, t] = sizes.get(tensor.name, kernels.SHARED)
        for u, unit in enumerate(nested):
            table[kernels.INSIDE + at, u] = instances.get(unit, 0)
    return most
