"""Where to cut a chain into groups: an exact dynamic programme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from loopsched.base.arguments import Checker
from loopsched.base.errors import EmptySpaceError, ScheduleError
from loopsched.fusion.capacity import capacity_of
from loopsched.fusion.chains import Break, Chain, Link, chains_of, listed
from loopsched.fusion.flow import sums_bytes
from loopsched.fusion.plan import FusedGroup, FusionPlan, alone, fused
from loopsched.fusion.rooms import HALOS, Halo
from loopsched.fusion.single import single
from loopsched.fusion.stages import Pool, Stage
from loopsched.fusion.tiles import Pace, best_tile, compulsory_bytes
from loopsched.machines.arch import Arch
from loopsched.models.buffer import traffic
from loopsched.models.machine import data_type_of
from loopsched.network.graph import Network
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload

Objective = Literal["dram_bytes", "time"]
OBJECTIVES: tuple[Objective, ...] = ("dram_bytes", "time")


def fuse(
    layers: Sequence[Problem | Pool] | Workload | Network,
    capacity_bytes: int | None = None,
    *,
    arch: Arch | None = None,
    objective: Objective = "dram_bytes",
    halos: Sequence[Halo] = HALOS,
    max_layers: int | None = None,
    assume_pooling: bool = True,
) -> FusionPlan:
    """Find the groups of consecutive layers whose fusion moves least.

    Each group runs tile by tile of its last output, in one buffer whose contents the plan
    chooses; outputs between its layers never leave the buffer.  Over all cuts of a chain
    into groups, all tile sizes and both treatments of halos, the plan of each chain is
    optimal.

    Parameters
    ----------
    layers : sequence of Problem or Pool, Workload or Network
        In a plain list, consecutive layers whose shapes match are taken for a chain.
    capacity_bytes : int, optional
        By default what the machine's level next to the memory can use.
    arch : Arch, optional
        The machine; needed for the objective ``time``.
    objective : {'dram_bytes', 'time'}
        ``time``: the larger of multiply-accumulates over the machine's rate
        and DRAM bytes over its bandwidth, group by group.  Ties: DRAM bytes,
        multiply-accumulates, recomputing halos before keeping them, fewer
        tiles, capacity.
    halos : sequence of {'recompute', 'retain'}
        What groups may do where tiles overlap.
    max_layers : int, optional
        The most layers of a group.
    assume_pooling : bool
        Whether a pooling layer is assumed where the shapes require one.

    Raises
    ------
    EmptySpaceError
        If a layer does not fit on its own.
    InputError
        If an argument cannot be.

    See Also
    --------
    residency, load_network

    References
    ----------
    M. Alwani et al., *Fused-Layer CNN Accelerators*, MICRO 2016.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> first = conv2d(c=3, k=16, h=64, w=64, r=3, s=3, padding=1, name="first")
    >>> second = conv2d(c=16, k=16, h=64, w=64, r=3, s=3, padding=1, name="second")
    >>> plan = fuse([first, second], 65536)
    >>> plan.unfused_bytes, plan.dram_bytes, plan.groups[0].layers
    (846528, 322240, ('first', 'second'))
    """
    capacity_bytes = capacity_of(capacity_bytes, arch)
    _check(objective, arch, halos, max_layers)
    name, chains, breaks = _chains(layers, assume_pooling)
    groups: list[FusedGroup] = []
    links: list[Link] = []
    for chain in chains:
        cuts = _Cuts(chain.stages, capacity_bytes, tuple(halos), max_layers, objective, arch)
        groups += [replace(group, count=chain.count) for group in cuts.best()]
        links += chain.links
    sums = sums_bytes(layers) if isinstance(layers, Network) else 0
    return FusionPlan(name, capacity_bytes, objective, tuple(groups), tuple(links), breaks, sums)


def _chains(
    layers: Sequence[Problem | Pool] | Workload | Network, assume_pooling: bool
) -> tuple[str, tuple[Chain, ...], tuple[Break, ...]]:
    if isinstance(layers, Network):
        from loopsched.fusion.graphs import network_chains

        return layers.name, *network_chains(layers, assume_pooling=assume_pooling)
    if isinstance(layers, Workload):
        found = chains_of(layers.problems, layers.counts, assume_pooling=assume_pooling)
        return layers.name, *found
    return "layers", *chains_of(listed(layers), assume_pooling=assume_pooling)


def _check(
    objective: object, arch: Arch | None, halos: Sequence[object], max_layers: int | None
) -> None:
    check = Checker("fuse", ScheduleError)
    check.choice("objective", objective, OBJECTIVES)
    if objective == "time" and arch is None:
        check.fault("objective is 'time'; it needs an arch")
    if not halos:
        check.fault("halos is empty; 'recompute', 'retain' or both are needed")
    for halo in halos:
        check.choice("halos", halo, HALOS)
    if max_layers is not None:
        check.count("max_layers", max_layers)
    check.finish()


@dataclass(frozen=True, slots=True)
class _Step:
    """The best plan of the first layers of a chain."""

    cost: tuple[float, int, int, int]
    groups: tuple[FusedGroup, ...]


@dataclass(frozen=True)
class _Cuts:
    """The dynamic programme of one chain."""

    stages: tuple[Stage, ...]
    capacity_bytes: int
    halos: tuple[Halo, ...]
    max_layers: int | None
    objective: Objective
    arch: Arch | None

    def best(self) -> tuple[FusedGroup, ...]:
        """Find the best groups: of the first layer, of the first two, and so on."""
        places = [at for at, stage in enumerate(self.stages) if stage.problem is not None]
        singles = [self._alone(self.stages[at]) for at in places]
        best = [_Step((0.0, 0, 0, 0), ())]
        for stop in range(1, len(places) + 1):
            found = self._extended(best[stop - 1], singles[stop - 1])
            for start in range(stop - 2, -1, -1):
                if self.max_layers is not None and stop - start > self.max_layers:
                    break
                stages = self.stages[places[start] : places[stop - 1] + 1]
                if self._floor(best[start], stages) > found.cost[:2]:
                    continue
                group = self._fused(stages, singles[start:stop])
                if group is not None:
                    found = min(found, self._extended(best[start], group), key=lambda s: s.cost)
            best.append(found)
        return best[-1].groups

    def _extended(self, before: _Step, group: FusedGroup) -> _Step:
        time, moved, macs, many = before.cost
        cost = (
            time + self._worth(group.time_s, group.dram_bytes),
            moved + group.dram_bytes,
            macs + group.extra_macs,
            many - 1,  # of equal plans the one with more groups
        )
        return _Step(cost, (*before.groups, group))

    def _worth(self, time_s: float | None, dram_bytes: int) -> float:
        return dram_bytes if self.objective == "dram_bytes" else time_s or 0.0

    def _floor(self, before: _Step, stages: Sequence[Stage]) -> tuple[float, int]:
        """Bound what a plan costs at least that ends with these stages as a group."""
        least = compulsory_bytes(stages)
        pace = self._pace(stages[0])
        time_s = least / pace.bytes_per_s if pace else None
        return before.cost[0] + self._worth(time_s, least), before.cost[1]

    def _pace(self, stage: Stage) -> Pace | None:
        if self.arch is None or stage.problem is None:
            return None
        compute = self.arch.compute
        rate = compute.rate(data_type_of(stage.problem, self.arch))
        bandwidth = self.arch.caches[0].bandwidth_bytes_per_s or float("inf")
        return Pace(rate * compute.units * compute.clock_hz, bandwidth)

    def _time_s(self, stage: Stage, macs: int, dram_bytes: int) -> float | None:
        pace = self._pace(stage)
        if pace is None:
            return None
        return max(macs / pace.macs_per_s, dram_bytes / pace.bytes_per_s)

    def _alone(self, stage: Stage) -> FusedGroup:
        problem = stage.problem
        found = None if problem is None else single(problem, self.capacity_bytes)
        if problem is None or found is None:
            raise EmptySpaceError(
                f"problem '{stage.name}': nothing fits, the operands of one point need more than "
                f"the capacity ({self.capacity_bytes} B)"
            )
        moved = traffic(
            problem, found.schedule, capacity_bytes=self.capacity_bytes, policy="explicit"
        )
        time_s = self._time_s(stage, problem.macs, found.dram_bytes)
        return alone(stage, found, moved.working_set_bytes, time_s)

    def _fused(self, stages: tuple[Stage, ...], singles: Sequence[FusedGroup]) -> FusedGroup | None:
        pace = self._pace(stages[0]) if self.objective == "time" else None
        choice = best_tile(stages, self.capacity_bytes, self.halos, pace)
        if choice is None:
            return None
        time_s = self._time_s(stages[0], choice.macs, choice.dram_bytes)
        return fused(stages, choice, sum(one.dram_bytes for one in singles), time_s)
