"""Bytes across one boundary: what is certain, likely, at most, and promised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

from loopsched.problems.footprint import points_elems, tensor_bytes
from loopsched.problems.problem import Problem, Tensor


@dataclass(frozen=True, slots=True)
class Bracket:
    """Bytes that are certainly moved, probably moved, and at most moved.

    Examples
    --------
    >>> Bracket(1, 2, 3) + Bracket.exact(10)
    Bracket(low=11, point=12, high=13)
    """

    low: int
    point: int
    high: int

    @classmethod
    def exact(cls, value: int) -> Bracket:
        """Build a bracket of one value."""
        return cls(value, value, value)

    def __add__(self, other: Bracket) -> Bracket:
        """Add low to low, point to point, high to high."""
        return Bracket(self.low + other.low, self.point + other.point, self.high + other.high)


@dataclass(frozen=True, slots=True)
class TensorTraffic:
    """Traffic of one tensor across one boundary.

    Parameters
    ----------
    name : str
    read_bytes : Bracket
        Toward the compute units.
    write_bytes : Bracket
        Away from them.
    """

    name: str
    read_bytes: Bracket
    write_bytes: Bracket

    @property
    def bytes(self) -> Bracket:
        """Reads and writes together."""
        return self.read_bytes + self.write_bytes


class Promise(NamedTuple):
    """Bytes of one tensor that a closed form guarantees not to be exceeded.

    Never below ``high`` of a bracket; what a search can make least.
    """

    read_bytes: int
    write_bytes: int

    @property
    def bytes(self) -> int:
        """Reads and writes together."""
        return self.read_bytes + self.write_bytes


@lru_cache(maxsize=256)
def accesses(problem: Problem) -> dict[str, Promise]:
    """What the units ask for, point by point, each for itself."""
    found = {}
    for tensor in problem.tensors:
        every = points_elems(problem, tensor) * tensor.element_bytes
        writes, reads = 0, every
        if tensor.name == problem.output:
            writes, reads = every, every - tensor_bytes(problem, tensor)
        found[tensor.name] = Promise(reads, writes)
    return found


class _Parts(Protocol):
    """Anything that knows what each tensor moves."""

    @property
    def tensors(self) -> Mapping[str, TensorTraffic]: ...

    @property
    def promised(self) -> Mapping[str, Promise]: ...


class Moved:
    """Totals of what some tensors move."""

    @property
    def read_bytes(self: _Parts) -> Bracket:
        """Reads of all tensors."""
        return sum((part.read_bytes for part in self.tensors.values()), Bracket.exact(0))

    @property
    def write_bytes(self: _Parts) -> Bracket:
        """Writes of all tensors."""
        return sum((part.write_bytes for part in self.tensors.values()), Bracket.exact(0))

    @property
    def bytes(self: _Parts) -> Bracket:
        """Reads and writes of all tensors."""
        return sum((part.bytes for part in self.tensors.values()), Bracket.exact(0))

    @property
    def promised_read_bytes(self: _Parts) -> int:
        """Promised reads of all tensors."""
        return sum(part.read_bytes for part in self.promised.values())

    @property
    def promised_write_bytes(self: _Parts) -> int:
        """Promised writes of all tensors."""
        return sum(part.write_bytes for part in self.promised.values())

    @cached_property
    def promised_bytes(self: _Parts) -> int:
        """Promised reads and writes of all tensors."""
        return sum(part.bytes for part in self.promised.values())


@dataclass(frozen=True, slots=True)
class Room:
    """Room of a buffer: one for all tensors, and some tensors' own.

    Parameters
    ----------
    shared_bytes : int
        For all tensors that have no room of their own.
    own_bytes : tuple of (tensor name, int)
    passing : frozenset of str
        Tensors that do not enter the buffer.
    """

    shared_bytes: int
    own_bytes: tuple[tuple[str, int], ...] = ()
    passing: frozenset[str] = frozenset()

    @classmethod
    def shared(cls, capacity_bytes: int) -> Room:
        """Build room that all tensors share."""
        return cls(capacity_bytes)

    def held(self, problem: Problem) -> tuple[Tensor, ...]:
        """Tensors that enter the buffer."""
        if not self.passing:
            return problem.tensors
        return tuple(tensor for tensor in problem.tensors if tensor.name not in self.passing)

    def fits(self, needs: Mapping[str, int]) -> bool:
        """Whether these bytes a tensor fit together."""
        if not self.own_bytes:
            return sum(needs.values()) <= self.shared_bytes
        own = dict(self.own_bytes)
        if any(need > own[name] for name, need in needs.items() if name in own):
            return False
        return sum(need for name, need in needs.items() if name not in own) <= self.shared_bytes

    def only(self, names: frozenset[str], problem: Problem) -> Room:
        """Let all tensors but some pass.

        Examples
        --------
        >>> from loopsched import gemm
        >>> room = Room(64, (("A", 8), ("B", 16)), frozenset("C"))
        >>> few = room.only(frozenset("A"), gemm(m=2, n=2, k=2))
        >>> few.own_bytes, sorted(few.passing)
        ((('A', 8),), ['B', 'C'])
        """
        own = tuple((name, size) for name, size in self.own_bytes if name in names)
        others = frozenset(tensor.name for tensor in problem.tensors) - names
        return Room(self.shared_bytes, own, self.passing | others)

    def divided(self, n: int) -> Room:
        """Build room of an n-th of the size.

        Examples
        --------
        >>> Room(64, (("A", 8),)).divided(4)
        Room(shared_bytes=16, own_bytes=(('A', 2),), passing=frozenset())
        """
        own = tuple((name, size // n) for name, size in self.own_bytes)
        return Room(self.shared_bytes // n, own, self.passing)
