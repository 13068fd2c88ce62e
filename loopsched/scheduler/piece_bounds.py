"""Bounds on the time of all schedules that cut a problem into as many items.

The search for items bounds steps and the items' own data.  What is bounded here is what
else instances and the level that they share have to bring in for so many items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from loopsched.machines.levels import Level
from loopsched.models.machine import room_of
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.scheduler.body import PLACED, best_body
from loopsched.scheduler.items import Items
from loopsched.scheduler.least import cut_below, extents_from, least_tables
from loopsched.scheduler.level_bounds import MAX_BODY_NODES, LevelBounds, passes_writes
from loopsched.scheduler.tables import trip_classes
from loopsched.scheduler.waves import least_s_of_lists, one_wave

Extents = dict[str, int]
Pieces = tuple[tuple[str, int], ...]


@dataclass
class PieceBounds:
    """Bounds for numbers of pieces, with what was found for earlier ones.

    Parameters
    ----------
    levels : LevelBounds
    """

    levels: LevelBounds
    known: dict[Pieces, float | None] = field(default_factory=dict)

    @property
    def problem(self) -> Problem:
        """What is cut."""
        return self.levels.problem

    def least_s(self, items: Items, below_s: float) -> float:
        """Bound the time of all schedules whose largest items cut a problem into as many pieces.

        They may have more, of which some are shorter.  From ``below_s`` on, no further.
        """
        floor = max(items.least_s, self._private_s(items, below_s))
        if floor < below_s:
            floor = max(floor, self.wave_s(items, below_s))
        return floor

    def _private_s(self, items: Items, below_s: float) -> float:
        """Bound the inner traffic of all schedules with as many pieces."""
        level = self.levels.private[0] if self.levels.private else None
        if level is None or not level.bandwidth_bytes_per_s or self.levels.value != "promised":
            return 0.0
        if (
            not self.levels.fits_at_once(level)
            or passes_writes(level)
            or level.kind == "scratchpad"
        ):
            return self.levels.level_s(level)
        pieces = tuple(sorted(items.pieces))
        if pieces not in self.known:
            self.known[pieces] = self._least_private_s(level, pieces, below_s)
        least = self.known[pieces]
        return below_s if least is None else least

    def _least_private_s(
        self, level: Level, pieces: tuple[tuple[str, int], ...], below_s: float
    ) -> float | None:
        """Seconds of the least inner traffic with so many pieces; None: not below the best."""
        bandwidth = level.bandwidth_bytes_per_s or float("inf")
        tables = least_tables(self.problem, pieces=dict(pieces))
        found = self.levels.least_body(level, tables, below=int(below_s * bandwidth) + 1)
        if found is None:
            return None
        return found.bytes / bandwidth if found.is_least else self.levels.level_s(level)

    def wave_s(self, items: Items, below_s: float) -> float:
        """Bound the time of all schedules with as many pieces, if these are one wave.

        A body of the shared level that holds, of the output, all that some body of an
        instance's own level does is no shorter along the output's dimensions than the shortest
        body with which the own level is fast enough.  Any other is inside one of these, whose
        sums leave it before the next: they come in again for all that is summed outside.
        """
        pieces = dict(items.pieces)
        part = one_wave(self.problem, pieces, int(below_s * self.levels.rate * (1 + 1e-12)))
        n_items = math.prod(pieces.values())
        if part is None or n_items > self.levels.instances or self.levels.value != "promised":
            return 0.0
        shortest = self._shortest_bodies(replace(self.problem, sizes=part.sizes), n_items, below_s)
        sums = self._bytes_of_cut_sums(shortest)
        summed = {dim: 1 for dim in shortest if dim not in self.problem.output_tensor.dims}
        least = 0.0
        for level in self.levels.shared:
            bandwidth, room = level.bandwidth_bytes_per_s, room_of(self.problem, level)
            if bandwidth and self.levels.is_plain_cache(level):
                below = int(min(below_s * bandwidth, sums)) + 1
                body = best_body(
                    part, room, tables=extents_from(part, shortest | summed), below=below,
                    watch=self.levels.watch, most=MAX_BODY_NODES,
                )  # fmt: skip
                self.levels.nodes += body.nodes if body else 0
                moved = min(below, sums) if body is None else body.bytes * body.is_least
                least = max(least, moved / bandwidth)
        return min(least, least_s_of_lists(self.problem, pieces, self.levels.rate))

    def _shortest_bodies(self, item: Problem, n_items: int, below_s: float) -> Extents:
        """Find how short bodies of the instances' own level may be; {}: it has none like that."""
        level = self.levels.private[0] if self.levels.private else None
        if level is None or not (level.bandwidth_bytes_per_s and self.levels.is_plain_cache(level)):
            return {}
        below = int(below_s * level.bandwidth_bytes_per_s) // n_items + 1
        room = room_of(item, level)
        found: Extents = dict(item.size)
        for dim, size in item.sizes:
            known = trip_classes((size,))
            first, last = 1, len(known)
            while first < last:  # those before `first` are long enough, from `last` on too short
                middle = (first + last) // 2
                tables = cut_below(item, dim, known[middle], room.shared_bytes)
                body = best_body(
                    item, room, PLACED, tables=tables, below=below,
                    watch=self.levels.watch, most=MAX_BODY_NODES,
                )  # fmt: skip
                self.levels.nodes += body.nodes if body else 0
                if body is None:
                    last = middle
                else:
                    found[dim], first = known[middle], middle + 1
        return found

    def _bytes_of_cut_sums(self, shortest: Extents) -> float:
        """Bound what a shared cache brings in, if its bodies cut sums of those inside."""
        if not shortest:
            return float("inf")  # there are none inside
        output, capacity = self.problem.output_tensor, self.levels.private[0].usable_bytes or 0
        times = 1
        for dim, size in self.problem.sizes:
            if dim not in output.dims:
                taken = [0, 0]  # by what the dimension does not index, and by one step along it
                for tensor in self.problem.tensors:
                    others = (shortest[other] for other in tensor.dims if other != dim)
                    taken[dim in tensor.dims] += tensor.element_bytes * math.prod(others)
                times *= -(-size // max(1, (capacity - taken[0]) // taken[1]))
        whole = sum(tensor_bytes(self.problem, tensor) for tensor in self.problem.tensors)
        return whole + (2 * times - 2) * tensor_bytes(self.problem, output)
