"""What a simulation counts: accesses, misses and bytes, of each tensor at each level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loopsched.base.arguments import near, show
from loopsched.base.errors import InputError


@dataclass(frozen=True, slots=True)
class TensorCounts:
    """What one tensor does at one level, all instances together.

    Parameters
    ----------
    name : str
    accesses : int
        Requests that reach the level.
    misses : int
        Requests that do not find their element or line.
    write_backs : int
        Elements or lines written out because they were evicted or flushed.
    read_bytes : int
        Brought in from the next outer level.
    write_bytes : int
        Sent to it: write-backs, or every write where it goes through.

    Examples
    --------
    >>> TensorCounts("A", 10, 4, 0, 16, 0).hits
    6
    """

    name: str
    accesses: int
    misses: int
    write_backs: int
    read_bytes: int
    write_bytes: int

    @property
    def hits(self) -> int:
        """Requests that find their element or line."""
        return self.accesses - self.misses

    @property
    def bytes(self) -> int:
        """Reads and writes together."""
        return self.read_bytes + self.write_bytes


class _Counted:
    """Sums over the tensors of a level."""

    __slots__ = ()
    tensors: Mapping[str, TensorCounts]

    def _sum(self, name: str) -> int:
        return sum(getattr(each, name) for each in self.tensors.values())

    @property
    def accesses(self) -> int:
        """Requests that reach the level."""
        return self._sum("accesses")

    @property
    def hits(self) -> int:
        """Requests that find what they need."""
        return self._sum("hits")

    @property
    def misses(self) -> int:
        """Requests that do not."""
        return self._sum("misses")

    @property
    def write_backs(self) -> int:
        """Elements or lines written out because they were evicted or flushed."""
        return self._sum("write_backs")

    @property
    def read_bytes(self) -> int:
        """Brought in from the next outer level."""
        return self._sum("read_bytes")

    @property
    def write_bytes(self) -> int:
        """Sent to the next outer level."""
        return self._sum("write_bytes")

    @property
    def bytes(self) -> int:
        """Reads and writes together."""
        return self.read_bytes + self.write_bytes

    @property
    def hit_rate(self) -> float:
        """Hits over accesses; 1 where there are none."""
        accesses = self.accesses
        return self.hits / accesses if accesses else 1.0


@dataclass(frozen=True)
class LevelCounts(_Counted):
    """What one level does, all its instances together.

    Parameters
    ----------
    name : str
    outer : str
        The level on the other side of the boundary that the bytes cross.
    capacity_bytes : int or None
        Of one instance.
    instances : int
    tensors : mapping of str to TensorCounts
        In the problem's order.
    """

    name: str
    outer: str
    capacity_bytes: int | None
    instances: int
    tensors: Mapping[str, TensorCounts]


@dataclass(frozen=True)
class Simulation(_Counted):
    """What replaying a schedule gave.

    Sums are those of the outermost level: what crosses the memory's boundary.

    Parameters
    ----------
    problem, schedule : str
    policy : str
        ``lru``, ``random`` or ``belady``.
    granularity : str
        ``element`` (or lines), or ``tile``.
    line_bytes : int or None
    levels : tuple of LevelCounts
        Outermost first.

    See Also
    --------
    simulate
    """

    problem: str
    schedule: str
    policy: str
    granularity: str
    line_bytes: int | None
    levels: tuple[LevelCounts, ...]

    @property
    def tensors(self) -> Mapping[str, TensorCounts]:  # type: ignore[override]
        """Counts of the outermost level."""
        return self.levels[0].tensors

    def level(self, name: str) -> LevelCounts:
        """Find a level's counts by its name, whatever its case.

        Raises
        ------
        InputError
            If there is none; names those that exist.
        """
        for level in self.levels:
            if level.name.casefold() == str(name).casefold():
                return level
        raise InputError(f"no level {show(name)}; {near(name, self.level_names)}")

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels, outermost first."""
        return tuple(level.name for level in self.levels)


def in_order(names: Iterable[str], found: Iterable[TensorCounts]) -> dict[str, TensorCounts]:
    """Put counts in the problem's order."""
    by_name = {each.name: each for each in found}
    return {name: by_name[name] for name in names}
