"""Loop nests: the loops of a schedule, outermost first, and their geometry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loopsched.arguments import show
from loopsched.errors import ScheduleError, nearest
from loopsched.problem import Problem


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that covers ``extent`` positions of a dimension.

    Its step is the extent of the next inner loop of the same dimension, or 1.

    Parameters
    ----------
    dim : str
    extent : int
        At least 1.
    level : str or None
        None: temporal.  Otherwise spatial: the level whose instances run it.

    Examples
    --------
    >>> str(Loop("M", 128, "SM"))
    'M:128@SM'
    """

    dim: str
    extent: int
    level: str | None = None

    @property
    def is_spatial(self) -> bool:
        """Whether instances of a level run the iterations side by side."""
        return self.level is not None

    def __str__(self) -> str:
        return f"{self.dim}:{self.extent}" + (f"@{self.level}" if self.level else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Loops from outermost to innermost.

    Parameters
    ----------
    loops : tuple of Loop

    Raises
    ------
    ScheduleError
        If an extent is below 1 or grows inward along its dimension, or a name
        is not a plain word.

    Examples
    --------
    >>> nest = Schedule((Loop("M", 8), Loop("K", 4), Loop("M", 2)))
    >>> str(nest), nest.steps, nest.trips
    ('M:8 K:4 M:2', (2, 1, 1), (4, 4, 2))
    """

    loops: tuple[Loop, ...]

    def __post_init__(self) -> None:
        faults = list(_faults(self.loops))
        if faults:
            raise ScheduleError.joined("schedule", faults)

    @classmethod
    def of(cls, loops: Iterable[Loop]) -> Schedule:
        """Build a schedule from any iterable of loops."""
        return cls(tuple(loops))

    @property
    def dims(self) -> tuple[str, ...]:
        """Dimensions in the order of their outermost loops."""
        return tuple(dict.fromkeys(loop.dim for loop in self.loops))

    @property
    def steps(self) -> tuple[int, ...]:
        """Step of each loop: the extent of the next inner one of its dim, or 1."""
        inner: dict[str, int] = {}
        steps = []
        for loop in reversed(self.loops):
            steps.append(inner.get(loop.dim, 1))
            inner[loop.dim] = loop.extent
        return tuple(reversed(steps))

    @property
    def trips(self) -> tuple[int, ...]:
        """Trip count of each loop over a full tile: extent / step, rounded up."""
        return tuple(
            -(-loop.extent // step) for loop, step in zip(self.loops, self.steps, strict=True)
        )

    def extents_from(self, position: int) -> dict[str, int]:
        """Extents of the region that the loops from ``position`` inward cover.

        A dimension without a loop there has extent 1.

        Examples
        --------
        >>> Schedule((Loop("M", 8), Loop("K", 4), Loop("M", 2))).extents_from(1)
        {'M': 2, 'K': 4}
        """
        extents = dict.fromkeys(self.dims, 1)
        for loop in reversed(self.loops[position:]):
            extents[loop.dim] = loop.extent
        return extents

    def check(self, problem: Problem) -> Schedule:
        """Return the schedule if it covers the problem exactly.

        Raises
        ------
        ScheduleError
            If a loop names an unknown dimension, a dimension has no loop, or
            an outermost extent is not the dimension's size.  Dimensions of
            size 1 need no loop.
        """
        faults = list(_mismatches(self.loops, problem))
        if faults:
            raise ScheduleError.joined(f"schedule for '{problem.name}'", faults)
        return self

    def __str__(self) -> str:
        return " ".join(str(loop) for loop in self.loops)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        from loopsched.notebook import schedule_html

        return schedule_html(self)


def _faults(loops: Sequence[Loop]) -> Iterable[str]:
    outer: dict[str, int] = {}
    for loop in loops:
        if not isinstance(loop, Loop):
            yield f"{show(loop)} is not a Loop; write Loop('K', 64)"
            continue
        words = {"dim": loop.dim} | ({} if loop.level is None else {"level": loop.level})
        for what, word in words.items():
            if not isinstance(word, str) or not word.isidentifier():
                yield f"{what} {show(word)} of a loop is not a plain word (letters, digits, _)"
        if not isinstance(loop.dim, str):
            continue
        if not isinstance(loop.extent, int) or isinstance(loop.extent, bool) or loop.extent < 1:
            yield (
                f"loop of '{loop.dim}': extent is {show(loop.extent)}; "
                "a whole number >= 1 is needed"
            )
            continue
        bound = outer.get(loop.dim, loop.extent)
        if loop.extent > bound:
            yield (
                f"loop of '{loop.dim}': extent {show(loop.extent)} grows inward; the next outer "
                f"loop of '{loop.dim}' covers only {bound}"
            )
        outer[loop.dim] = min(bound, loop.extent)


def _mismatches(loops: Sequence[Loop], problem: Problem) -> Iterable[str]:
    size = problem.size
    first: dict[str, int] = {}
    for loop in loops:
        if loop.dim in size:
            first.setdefault(loop.dim, loop.extent)
    for dim in dict.fromkeys(loop.dim for loop in loops if loop.dim not in size):
        yield f"unknown dim '{dim}'; {nearest(dim, problem.dims)}"
    for dim, whole in problem.sizes:
        if dim not in first and whole > 1:
            yield f"dim '{dim}' (size {whole}) has no loop; add '{dim}:{whole}'"
        elif dim in first and first[dim] != whole:
            yield (
                f"outermost loop of '{dim}' covers {show(first[dim])}; "
                f"it must cover the size, {whole}"
            )
