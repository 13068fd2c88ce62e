"""Staircases: bytes that fall, step by step, as a buffer grows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from loopsched.base.arguments import show
from loopsched.base.display import Shown
from loopsched.base.errors import InputError
from loopsched.base.rows import picked

if TYPE_CHECKING:
    from loopsched.machines.arch import Arch

# Capacities are compared over this factor; a knee saves so many more octaves before than after.
_REACH = 4
_LEAST_BEND = 0.4
_MOST_KNEES = 5


@dataclass(frozen=True, slots=True)
class Knee:
    """A capacity up to which room pays, and beyond which it pays less.

    Parameters
    ----------
    index : int
        The step.
    capacity_bytes, dram_bytes : int, bytes
        Where the step begins, and the least traffic from there on.
    saved_before : float
        Traffic with a quarter of this capacity over the traffic here.
    saved_after : float
        Traffic here over the traffic with four times this capacity.
    """

    index: int
    capacity_bytes: int
    dram_bytes: int
    saved_before: float
    saved_after: float

    @property
    def bend(self) -> float:
        """How many octaves of traffic more are saved before than after."""
        return math.log2(self.saved_before) - math.log2(self.saved_after)


class Stairs:
    """Bytes at every capacity: ``dram_bytes[i]`` from ``capacities_bytes[i]`` up to the next.

    Capacities rise, bytes fall.
    """

    __slots__ = ()

    capacities_bytes: tuple[int, ...]
    dram_bytes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.capacities_bytes)

    def step(self, capacity_bytes: int) -> int | None:
        """Find the step that a capacity is on; None if nothing fits.

        Raises
        ------
        InputError
            If the capacity is not a number of bytes.
        """
        is_number = isinstance(capacity_bytes, Real) and not isinstance(capacity_bytes, bool)
        if not is_number or capacity_bytes != capacity_bytes:  # NaN
            raise InputError(
                f"capacity_bytes is {show(capacity_bytes)}; a number of bytes is needed, such as "
                "98304 for 96 KiB"
            )
        at = bisect_right(self.capacities_bytes, capacity_bytes) - 1
        return None if at < 0 else at

    def at(self, capacity_bytes: int) -> int | None:
        """Look up the bytes at a capacity.

        Returns
        -------
        int or None, bytes
            None if not even the operands of one point fit.

        Raises
        ------
        InputError
            If the capacity is not a number of bytes.
        """
        at = self.step(capacity_bytes)
        return None if at is None else self.dram_bytes[at]


@dataclass(frozen=True, slots=True)
class NestBound(Stairs):
    """What no nest moves less than, at every capacity.

    Parameters
    ----------
    capacities_bytes, dram_bytes : tuple of int, bytes
        Where each step begins, and the bound from there up to the next.

    Examples
    --------
    >>> NestBound((4, 8), (30, 20)).at(7)
    30
    """

    capacities_bytes: tuple[int, ...]
    dram_bytes: tuple[int, ...]


class Staircase(Stairs, Shown, ABC):
    """Least traffic found at every capacity: what curves of layers and of networks share.

    ``nest_bound`` says what no nest moves less than: where it is met, the
    traffic is proven least.
    """

    __slots__ = ()

    nest_bound: NestBound

    @property
    @abstractmethod
    def name(self) -> str:
        """What the curve is of."""

    @property
    @abstractmethod
    def macs(self) -> int:
        """Multiply-accumulates behind the traffic."""

    @property
    @abstractmethod
    def compulsory_bytes(self) -> int:
        """What is moved however large the buffer is."""

    @abstractmethod
    def bound_bytes(self, capacity_bytes: int) -> int:
        """Bound the traffic of every order of execution, of any schedule or none."""

    @abstractmethod
    def compute_time_s(self, arch: Arch) -> float:
        """Seconds that a machine computes, if all its units are busy all the time."""

    @property
    def least_capacity_bytes(self) -> int:
        """The smallest buffer that works at all: the operands of one point."""
        return self.capacities_bytes[0]

    @property
    def useful_capacity_bytes(self) -> int:
        """The largest capacity that still saves something: more moves as much.

        The *maximal effectual buffer size* of Orojenesis.
        """
        return self.capacities_bytes[-1]

    def is_proven_at(self, capacity_bytes: int) -> bool:
        """Whether no nest moves less with a capacity; False where nothing fits.

        Of nests that keep all tiles at one place.
        """
        moved = self.at(capacity_bytes)
        return moved is not None and moved == self.nest_bound.at(capacity_bytes)

    @property
    def step_bounds(self) -> tuple[int, ...]:
        """What no nest moves less than at any capacity of each step, up to the next."""
        last = self.nest_bound.dram_bytes[-1]
        return (*(self.nest_bound.at(end - 1) or 0 for end in self.capacities_bytes[1:]), last)

    @property
    def n_proven(self) -> int:
        """Number of steps that are proven least at every capacity up to the next."""
        return sum(map(int.__eq__, self.dram_bytes, self.step_bounds))

    @property
    def knees(self) -> tuple[Knee, ...]:
        """The most pronounced knees, by capacity, at most five.

        The bend at a step is the octaves of traffic that the last fourfold
        growth of the capacity saved, less those that the next will save.  Knees
        are the steps of the largest bends, no two within a factor of four of
        capacity, and none that bends by less than 0.4.
        """
        bends = map(self._knee, range(len(self)))
        found: list[Knee] = []
        for knee in sorted(bends, key=lambda knee: (-knee.bend, knee.capacity_bytes)):
            if knee.bend < _LEAST_BEND or len(found) == _MOST_KNEES:
                break
            if all(_is_apart(knee.capacity_bytes, other.capacity_bytes) for other in found):
                found.append(knee)
        return tuple(sorted(found, key=lambda knee: knee.capacity_bytes))

    def _knee(self, at: int) -> Knee:
        here, moved = self.capacities_bytes[at], self.dram_bytes[at]
        less = self.at(here // _REACH) or self.dram_bytes[0]  # below the first step: as on it
        more = self.at(here * _REACH) or moved
        return Knee(at, here, moved, less / moved, moved / more)

    def intensity(self) -> tuple[float, ...]:
        """Operational intensity of each step: FLOP a byte of DRAM traffic."""
        return tuple(2 * self.macs / moved for moved in self.dram_bytes)

    def bandwidth(self, arch: Arch) -> tuple[float, ...]:
        """Bandwidth of each step at which a machine's units never wait for memory.

        Parameters
        ----------
        arch : Arch
            Only its compute rate counts, at the sustained clock.

        Returns
        -------
        tuple of float, bytes per second

        Raises
        ------
        ArchError
            If the machine has no rate for elements of that width.
        """
        seconds = self.compute_time_s(arch)
        return tuple(moved / seconds for moved in self.dram_bytes)

    def rows(self, arch: Arch | None = None) -> list[dict[str, Any]]:
        """Describe every step by plain values.

        Parameters
        ----------
        arch : Arch, optional
            Adds the bandwidth that its units need.

        Returns
        -------
        list of dict
            ``problem``, ``step``, ``capacity_bytes``, ``dram_bytes``,
            ``nest_bound_bytes`` (which no nest is below at any capacity of the
            step) and ``operational_intensity``; with a machine also
            ``required_dram_bandwidth_bytes_per_s``.
        """
        intensity = self.intensity()
        needs = None if arch is None else self.bandwidth(arch)
        found: list[dict[str, Any]] = []
        for at, (capacity, moved, bound) in enumerate(
            zip(self.capacities_bytes, self.dram_bytes, self.step_bounds, strict=True)
        ):
            row: dict[str, Any] = {
                "problem": self.name,
                "step": at,
                "capacity_bytes": capacity,
                "dram_bytes": moved,
                "nest_bound_bytes": bound,
                "operational_intensity": intensity[at],
            }
            if needs is not None:
                row["required_dram_bandwidth_bytes_per_s"] = needs[at]
            found.append(row)
        return found

    def digest(self, arch: Arch) -> dict[str, Any]:
        """Describe the curve by one row: its ends, its knees, and a machine's levels.

        Parameters
        ----------
        arch : Arch
            Capacities are what data can use of one instance of each level.

        Returns
        -------
        dict
            ``n_proven`` of the ``n_steps`` are proven least.  For each level of a
            known capacity the keys ``<level>_capacity_bytes``,
            ``<level>_dram_bytes`` (None if nothing fits),
            ``<level>_nest_bound_bytes`` (which no nest whose operands share one
            tile is below), ``<level>_bound_bytes`` (which no order of execution
            is), ``<level>_operational_intensity`` and
            ``<level>_required_dram_bandwidth_bytes_per_s``; knees as a list.

        Raises
        ------
        ArchError
            If the machine has no rate for the problem's elements.

        Examples
        --------
        >>> from loopsched import buffer_arch, gemm, traffic_curve
        >>> curve = traffic_curve(gemm(m=64, n=64, k=64))
        >>> row = curve.digest(buffer_arch(capacity_bytes=4096))
        >>> row["compulsory_bytes"], row["buffer_dram_bytes"], row["useful_capacity_bytes"]
        (49152, 98304, 16896)
        """
        row: dict[str, Any] = {
            "problem": self.name,
            "macs": self.macs,
            "n_steps": len(self),
            **picked(self, "n_proven", "least_capacity_bytes"),
            "most_dram_bytes": self.dram_bytes[0],
            **picked(self, "useful_capacity_bytes", "compulsory_bytes"),
        }
        seconds = self.compute_time_s(arch)
        for level in arch.caches:
            if level.usable_bytes is not None:
                row |= self._digest_at(level.name, level.usable_bytes, seconds)
        row["knees"] = [
            picked(knee, "capacity_bytes", "dram_bytes", "saved_before", "saved_after")
            for knee in self.knees
        ]
        return row

    def _digest_at(self, name: str, capacity: int, seconds: float) -> dict[str, Any]:
        moved = self.at(capacity)
        found = {
            "capacity_bytes": capacity,
            "dram_bytes": moved,
            "nest_bound_bytes": self.nest_bound.at(capacity),
            "bound_bytes": self.bound_bytes(capacity),
            "operational_intensity": None if moved is None else 2 * self.macs / moved,
            "required_dram_bandwidth_bytes_per_s": None if moved is None else moved / seconds,
        }
        return {f"{name}_{key}": value for key, value in found.items()}


def _is_apart(one: int, other: int) -> bool:
    return max(one, other) > _REACH * min(one, other)
