"""Random chains against brute force: every partition, tile, way and choice of weights."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import inf

from fusion_oracle import BOTH, Halos, Layer, draw_chain, group_costs, items

from loopsched import fuse
from loopsched.base.errors import EmptySpaceError
from loopsched.fusion.single import least_bytes
from loopsched.problems.problem import Problem


class Brute:
    """Every partition of a chain, every tile of every group, walked literally."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers
        self.places = [at for at, layer in enumerate(layers) if not layer.is_pool]
        self.problems = [one for one in items(layers) if isinstance(one, Problem)]
        self.alone = cache(lambda at, capacity: least_bytes(self.problems[at], capacity))
        n = len(self.places)
        self.costs = {
            (start, stop): {cost for _, cost in group_costs(self._group(start, stop))}
            for start in range(n)
            for stop in range(start + 2, n + 1)
        }

    def _group(self, start: int, stop: int) -> Sequence[Layer]:
        return self.layers[self.places[start] : self.places[stop - 1] + 1]

    def least(self, capacity: int, halos: Halos = BOTH) -> int | None:
        """The least traffic of all 2^(n-1) partitions, one by one.

        None if a layer does not fit on its own, which `fuse` refuses.
        """
        if any(self.alone(at, capacity) is None for at in range(len(self.problems))):
            return None
        retains = {"recompute": False, "retain": True}
        ways = [retains[halo] for halo in halos]

        def of_group(start: int, stop: int) -> float:
            if stop == start + 1:
                return self.alone(start, capacity)
            costs = self.costs[start, stop]
            fitting = (c.moved for c in costs if c.room <= capacity and c.retains in ways)
            return min(fitting, default=inf)

        return int(self._least_sum(of_group))

    def least_time(self, capacity: int, macs_per_s: float, bytes_per_s: float) -> float:
        """The least sum of time bounds of all partitions."""

        def bound(macs: int, moved: int) -> float:
            return max(macs / macs_per_s, moved / bytes_per_s)

        def of_group(start: int, stop: int) -> float:
            if stop == start + 1:
                moved = self.alone(start, capacity)
                return inf if moved is None else bound(self.problems[start].macs, moved)
            costs = self.costs[start, stop]
            return min((bound(c.macs, c.moved) for c in costs if c.room <= capacity), default=inf)

        return self._least_sum(of_group)

    def _least_sum(self, of_group: Callable[[int, int], float]) -> float:
        n = len(self.places)
        return min(
            sum(
                of_group(*pair)
                for pair in pairwise([0, *(i for i in range(1, n) if cuts >> i & 1), n])
            )
            for cuts in range(0, 2**n, 2)
        )

    def capacities(self) -> list[int]:
        """What groups need at least, all in order."""
        return sorted({cost.room for costs in self.costs.values() for cost in costs})


@dataclass(frozen=True)
class Tally:
    """What a run over random chains looked at, and what it found wrong."""

    chains: int
    plans: int
    fused: int
    faults: tuple[str, ...]


def check_chains(chains: int, seed: int) -> Tally:
    """Hold plans of random chains against brute force.

    Each chain has its own seed, so that one that fails can be drawn again alone.
    """
    plans = fused = 0
    faults: list[str] = []
    for at in range(chains):
        rng = random.Random(f"{seed} {at}")
        layers = draw_chain(rng.choice, sides=tuple(range(1, 7)))
        brute = Brute(layers)
        for capacity in _draw_capacities(rng, brute.capacities()):
            for halos in (("recompute",), ("retain",), BOTH):
                expected = brute.least(capacity, halos)
                found, room, groups = _plan(layers, capacity, halos)
                plans, fused = plans + 1, fused + groups
                if found != expected or room > capacity:
                    faults.append(
                        f"chain {seed} {at}: {layers} in {capacity} B with {halos}: {found} B "
                        f"moved in {room} B, {expected} B at best"
                    )
    return Tally(chains, plans, fused, tuple(faults))


def _draw_capacities(rng: random.Random, needed: Sequence[int]) -> list[int]:
    """The least and the most that makes a difference, and one between; also a byte less."""
    between = rng.choice(needed)
    found = {needed[0] - 1, needed[0], between - 1, between, needed[-1]}
    return sorted(one for one in found if one > 0)


def _plan(layers: Sequence[Layer], capacity: int, halos: Halos) -> tuple[int | None, int, int]:
    """What the best plan moves, the most that its groups need, and how many are fused."""
    try:
        plan = fuse(items(layers), capacity, halos=halos, assume_pooling=False)  # type: ignore[arg-type]
    except EmptySpaceError:
        return None, 0, 0
    groups = [group for group in plan.groups if group.is_fused]
    most = max((group.working_set_bytes for group in plan.groups), default=0)
    return plan.dram_bytes, most, len(groups)
