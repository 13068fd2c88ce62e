"""The curve of one problem, each step with its schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loopsched.base.arguments import show
from loopsched.base.errors import InputError
from loopsched.base.units import count
from loopsched.curves.staircase import NestBound, Staircase
from loopsched.problems.footprint import problem_bytes
from loopsched.problems.problem import Problem

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch
    from loopsched.models.buffer import Policy
    from loopsched.nests.nest import Schedule


@dataclass(frozen=True, slots=True)
class Curve(Staircase):
    """Least DRAM traffic found for a problem, against the capacity of one buffer.

    Parameters
    ----------
    problem : Problem
    capacities_bytes : tuple of int
        Where each step begins, rising.
    dram_bytes : tuple of int
        Reads and writes of the memory, the least found at every capacity from
        this step's up to the next, falling.
    bodies : tuple of tuple of int
        For each step, the extents of the body that is held, in the order of
        the problem's dimensions.
    inward : tuple of tuple of str
        For each step, the loops around the body, innermost first, as far as
        their order matters.
    nest_bound : NestBound
        Lower bound, at every capacity, for nests that keep all tiles at one place; equal to
        the steps where they are proven least.
    policy : {'explicit', 'lru'}
        Kind of buffer, as for `traffic_curve`.
    nodes : int
        Boxes of choices that the search looked at.

    See Also
    --------
    traffic_curve, NetworkCurve

    Examples
    --------
    >>> from loopsched import gemm, traffic_curve
    >>> curve = traffic_curve(gemm(m=64, n=64, k=64))
    >>> curve.at(4096), curve.at(11), curve.compulsory_bytes
    (98304, None, 49152)
    >>> curve.is_proven_at(4096), curve.n_proven == len(curve)
    (True, True)
    """

    problem: Problem
    capacities_bytes: tuple[int, ...]
    dram_bytes: tuple[int, ...]
    bodies: tuple[tuple[int, ...], ...] = field(repr=False)
    inward: tuple[tuple[str, ...], ...] = field(repr=False)
    nest_bound: NestBound = field(repr=False)
    policy: Policy = "explicit"
    nodes: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        """Name of the problem."""
        return self.problem.name

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the problem."""
        return self.problem.macs

    @property
    def compulsory_bytes(self) -> int:
        """What is moved however large the buffer is: every element once."""
        return problem_bytes(self.problem)

    def bound_bytes(self, capacity_bytes: int) -> int:
        """Bound the traffic of every order of execution, of any schedule or none.

        The communication bound: no schedule, of this space or another, moves
        less where everything that can hold data adds up to ``capacity_bytes``.

        Raises
        ------
        ProblemError
            If the capacity is not a whole number of bytes, 0 or more.
        """
        from loopsched.bounds.communication import communication_bound

        return communication_bound(self.problem, capacity_bytes).bytes

    def compute_time_s(self, arch: Arch) -> float:
        """Seconds that a machine computes, if all its units are busy all the time."""
        from loopsched.models.machine import data_type_of

        rate = arch.compute.rate(data_type_of(self.problem, arch))
        return -(-self.macs // arch.compute.units) / (rate * arch.compute.clock_hz)

    def schedule(self, step: int) -> Schedule:
        """Return the schedule of a step, which moves as much from its capacity on.

        Parameters
        ----------
        step : int
            Number of the step; negative ones count from the end.

        Raises
        ------
        IndexError
            If there are fewer steps; InputError if it is not a whole number.

        Examples
        --------
        >>> from loopsched import gemm, traffic_curve
        >>> curve = traffic_curve(gemm(m=64, n=64, k=64))
        >>> print(curve.schedule(curve.step(4096)))
        N:64 M:64 K:64 M:32 N:22
        """
        from loopsched.scheduler.blocks import Block, compose

        try:
            step = range(len(self))[step]
        except TypeError:
            raise InputError(
                f"step is {show(step)}; a whole number is needed, such as step(4096) gives where "
                "that capacity suffices"
            ) from None
        except IndexError:
            raise IndexError(
                f"step is {show(step)}; the curve has {count(len(self), 'step')}"
            ) from None
        order = self.inward[step]
        extents = tuple(zip(self.problem.dims, self.bodies[step], strict=True))
        outer = [dim for dim in self.problem.dims if dim not in order]
        return compose(self.problem, [Block((*outer, *reversed(order)), extents)])

    def rows(self, arch: Arch | None = None) -> list[dict[str, Any]]:
        """Describe every step by plain values, with ``bound_bytes`` and ``schedule``.

        Parameters
        ----------
        arch : Arch, optional
            Adds the bandwidth that its units need.

        Examples
        --------
        >>> from loopsched import gemm, traffic_curve
        >>> traffic_curve(gemm(m=2, n=1, k=1)).rows()[-1]
        {'problem': 'm2 n1 k1', 'step': 0, 'capacity_bytes': 12, 'dram_bytes': 20,
        'nest_bound_bytes': 20, 'operational_intensity': 0.2, 'bound_bytes': 20,
        'schedule': 'M:2'}
        """
        return [
            row
            | {
                "bound_bytes": self.bound_bytes(row["capacity_bytes"]),
                "schedule": str(self.schedule(row["step"])),
            }
            for row in Staircase.rows(self, arch)
        ]
