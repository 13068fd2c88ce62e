"""Curves of whole workloads: each layer's, and their sum at a common capacity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from loopsched.base.errors import WorkloadError
from loopsched.base.pool import check_jobs, each_in_order
from loopsched.curves.curve import Curve
from loopsched.curves.front import traffic_curve
from loopsched.curves.staircase import NestBound, Staircase, Stairs
from loopsched.models.buffer import check_policy

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch
    from loopsched.models.buffer import Policy
    from loopsched.problems.workload import Workload

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class NetworkCurve(Staircase):
    """Least DRAM traffic found for all layers of a network, one after the other.

    Every layer has the whole buffer to itself and starts with it empty; its
    traffic counts as often as it occurs.

    Parameters
    ----------
    network : str
        Name of the workload.
    curves : tuple of Curve
        Of each layer.
    counts : tuple of int
        How often it occurs.
    capacities_bytes, dram_bytes, nest_bound
        As for `Curve`; the first step is at the capacity at which every layer
        can run.

    See Also
    --------
    network_curve, Curve

    Examples
    --------
    >>> from loopsched import load_workload, network_curve
    >>> curve = network_curve(load_workload("alexnet"))
    >>> curve.compulsory_bytes == curve.dram_bytes[-1] == curve.at(2**30)
    True
    """

    network: str
    curves: tuple[Curve, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    capacities_bytes: tuple[int, ...]
    dram_bytes: tuple[int, ...]
    nest_bound: NestBound = field(repr=False)

    @classmethod
    def of(cls, network: str, curves: tuple[Curve, ...], counts: tuple[int, ...]) -> NetworkCurve:
        """Add up the curves of layers.

        Raises
        ------
        WorkloadError
            If there is no layer.
        """
        if not curves:
            raise WorkloadError(f"workload '{network}': no layers; a curve needs at least one")
        begin = max(curve.least_capacity_bytes for curve in curves)
        steps = _added(curves, counts, begin)
        bound = _added([curve.nest_bound for curve in curves], counts, begin)
        return cls(network, curves, counts, *steps, NestBound(*bound))

    @property
    def name(self) -> str:
        """Name of the workload."""
        return self.network

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all layers."""
        return self._sum(lambda curve: curve.macs)

    @property
    def compulsory_bytes(self) -> int:
        """What is moved however large the buffer is, if nothing stays between layers."""
        return self._sum(lambda curve: curve.compulsory_bytes)

    def bound_bytes(self, capacity_bytes: int) -> int:
        """Add up the communication bounds of all layers."""
        return self._sum(lambda curve: curve.bound_bytes(capacity_bytes))

    def compute_time_s(self, arch: Arch) -> float:
        """Seconds that a machine computes, if all its units are busy all the time."""
        return self._sum(lambda curve: curve.compute_time_s(arch))

    def _sum(self, of: Callable[[Curve], N]) -> N:
        """Add up something of every layer, as often as it occurs."""
        pairs = zip(self.curves, self.counts, strict=True)
        return sum((n * of(curve) for curve, n in pairs), start=0)


def _added(
    stairs: Sequence[Stairs], counts: Sequence[int], begin: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Add up staircases from a capacity on, each as often as it occurs."""
    total = 0
    falls: dict[int, int] = {begin: 0}
    for one, count in zip(stairs, counts, strict=True):
        first = one.step(begin) or 0
        total += count * one.dram_bytes[first]
        for at in range(first + 1, len(one)):
            saved = count * (one.dram_bytes[at - 1] - one.dram_bytes[at])
            capacity = one.capacities_bytes[at]
            falls[capacity] = falls.get(capacity, 0) + saved
    capacities = tuple(sorted(falls))
    moved = []
    for capacity in capacities:
        total -= falls[capacity]
        moved.append(total)
    return capacities, tuple(moved)


def workload_curves(
    workload: Workload, *, policy: Policy = "explicit", jobs: int = 1
) -> Iterator[Curve]:
    """Find the curve of every problem of a workload, in order.

    Parameters
    ----------
    workload : Workload
    policy : {'explicit', 'lru'}
        Kind of buffer, as for `traffic_curve`.
    jobs : int
        Processes; curves are the same, in the same order, for any number.

    Raises
    ------
    WorkloadError
        If ``jobs`` is no whole number above 0.
    ScheduleError, ProblemError
        As `traffic_curve`.

    See Also
    --------
    traffic_curve, network_curve

    Examples
    --------
    >>> from loopsched import load_workload
    >>> curves = list(workload_curves(load_workload("alexnet")))
    >>> all(curve.dram_bytes[-1] == curve.compulsory_bytes for curve in curves)
    True
    """
    check_jobs(jobs, WorkloadError)
    check_policy(policy)
    search = partial(traffic_curve, policy=policy)
    yield from each_in_order(search, [(problem,) for problem in workload.problems], jobs)


def network_curve(
    workload: Workload, *, policy: Policy = "explicit", jobs: int = 1
) -> NetworkCurve:
    """Find the curve of a whole network: its layers' sum at a common capacity.

    Parameters and errors are those of `workload_curves`.

    See Also
    --------
    traffic_curve, workload_curves

    Examples
    --------
    >>> from loopsched import load_workload
    >>> curve = network_curve(load_workload("alexnet"))
    >>> curve.at(2**20) == sum(
    ...     n * one.at(2**20) for one, n in zip(curve.curves, curve.counts, strict=True)
    ... )
    True
    """
    curves = tuple(workload_curves(workload, policy=policy, jobs=jobs))
    return NetworkCurve.of(workload.name, curves, workload.counts)
