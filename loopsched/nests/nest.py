"""Loop nests: the loops of a schedule, outermost first, and their geometry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from loopsched.base.arguments import is_count, show
from loopsched.base.display import Shown
from loopsched.base.errors import ScheduleError, nearest
from loopsched.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that covers ``extent`` positions of a dimension.

    Its step is the extent of the next inner loop of the same dimension, or 1.

    Parameters
    ----------
    dim : str
    extent : int
        At least 1.
    unit : str or None
        None: temporal.  Otherwise spatial: the unit whose instances run it.

    Examples
    --------
    >>> str(Loop("M", 128, "SM"))
    'M:128@SM'
    """

    dim: str
    extent: int
    unit: str | None = None

    @property
    def is_spatial(self) -> bool:
        """Whether instances of a unit run the iterations side by side."""
        return self.unit is not None

    def __str__(self) -> str:
        return f"{self.dim}:{self.extent}" + (f"@{self.unit}" if self.unit else "")


PASSES = -1
_DIM = attrgetter("dim")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in a nest a level begins to hold a tensor's tile, or that it lets the tensor pass.

    Parameters
    ----------
    position : int
        Loops outside: the tile is what the others touch of the tensor; `PASSES`: the
        level does not hold the tensor at all.
    level : str
        Name of a scratchpad; of any level that a tensor passes.
    tensor : str

    Examples
    --------
    >>> str(Place(2, "L1", "A")), str(Place(PASSES, "L1", "A"))
    ('[L1 A]', '[L1 -A]')
    """

    position: int
    level: str
    tensor: str

    @property
    def word(self) -> str:
        """The tensor as a mark names it."""
        return f"-{self.tensor}" if self.position == PASSES else self.tensor

    def __str__(self) -> str:
        return f"[{self.level} {self.word}]"


@dataclass(frozen=True, slots=True)
class Schedule(Shown):
    """Loops from outermost to innermost.

    Parameters
    ----------
    loops : tuple of Loop
    places : tuple of Place
        From which loop inward a scratchpad holds a tensor's tile, for levels
        whose tensors are placed one by one; kept sorted.  A level without
        places holds all tiles of the outermost region that fits.  First of
        all, which tensors pass a level that may hold them.

    Raises
    ------
    ScheduleError
        If an extent is below 1 or grows inward along its dimension, a name is
        not a plain word, or a level has two places for one tensor.

    See Also
    --------
    parse_schedule, format_schedule, Loop

    Examples
    --------
    >>> nest = Schedule((Loop("M", 8), Loop("K", 4), Loop("M", 2)))
    >>> str(nest), nest.steps, nest.trips
    ('M:8 K:4 M:2', (2, 1, 1), (4, 4, 2))
    >>> str(Schedule(nest.loops, (Place(2, "L1", "A"), Place(1, "L1", "C"))))
    'M:8 [L1 C] K:4 [L1 A] M:2'
    >>> str(Schedule(nest.loops, (Place(PASSES, "L1", "A"), Place(PASSES, "L1", "C"))))
    '[L1 -A -C] M:8 K:4 M:2'
    """

    loops: tuple[Loop, ...]
    places: tuple[Place, ...] = ()
    steps: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Step of each loop: the extent of the next inner one of its dim, or 1."""

    def __post_init__(self) -> None:
        if not _is_sound(self.loops) or self.places:
            faults = [*_faults(self.loops), *_place_faults(self.places, len(self.loops))]
            ScheduleError.refuse("schedule", faults)
        inner: dict[str, int] = {}
        steps = []
        for loop in reversed(self.loops):
            steps.append(inner.get(loop.dim, 1))
            inner[loop.dim] = loop.extent
        object.__setattr__(self, "steps", tuple(reversed(steps)))
        if self.places:
            object.__setattr__(self, "places", tuple(sorted(self.places)))

    def __hash__(self) -> int:  # quick; units seldom make the difference
        return hash((self.steps, tuple(map(_DIM, self.loops)), self.places))

    @classmethod
    def of(cls, loops: Iterable[Loop]) -> Schedule:
        """Build a schedule from any iterable of loops."""
        return cls(tuple(loops))

    @property
    def dims(self) -> tuple[str, ...]:
        """Dimensions in the order of their outermost loops."""
        return tuple(dict.fromkeys(loop.dim for loop in self.loops))

    @property
    def listed_steps(self) -> tuple[int, ...]:
        """Steps, without those that split a unit's list of items into the same items.

        Of neighbours along one dimension in one list, the outer ones step over the whole
        dimension if their steps are multiples of the inner one's.

        Examples
        --------
        >>> Schedule((Loop("M", 8, "SM"), Loop("M", 4, "SM"), Loop("M", 2))).listed_steps
        (8, 2, 1)
        """
        shared = [(loop.dim, loop.unit) for loop in self.loops if loop.unit is not None]
        if len(shared) == len(set(shared)):
            return self.steps
        steps = list(self.steps)
        whole = {loop.dim: loop.extent for loop in reversed(self.loops)}
        outer: list[int] = []
        last: tuple[str, str | None] = ("", None)
        for at, loop in enumerate(self.loops):
            if steps[at] == loop.extent:
                continue
            if loop.unit is None or (loop.dim, loop.unit) != last:
                outer, last = [], (loop.dim, loop.unit)
            while outer and steps[outer[-1]] % steps[at] == 0:
                steps[outer.pop()] = whole[loop.dim]
            outer.append(at)
        return tuple(steps)

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
            size 1 need no loop.  If a place names an unknown tensor.
        """
        faults = list(_mismatches(self.loops, problem))
        tensors = [tensor.name for tensor in problem.tensors]
        faults += [
            f"{place}: unknown tensor '{place.tensor}'; {nearest(place.tensor, tensors)}"
            for place in self.places
            if place.tensor not in tensors
        ]
        ScheduleError.refuse(f"schedule for '{problem.name}'", faults)
        return self

    def check_even(self, what: str) -> None:
        """Refuse places and passing tensors where a format or model cannot express them.

        Raises
        ------
        ScheduleError
        """
        if self.places:
            marks = "tiles that are placed one by one"
            if self.places[0].position == PASSES:
                marks = "which tensors pass a level"
            raise ScheduleError(
                f"{what} cannot express {marks}, such as '{self.places[0]}' in '{self}'; leave "
                "the marks out"
            )

    def __str__(self) -> str:
        if not self.places:
            return " ".join(map(str, self.loops))
        words = [[str(loop)] for loop in self.loops]
        marks: list[list[str]] = [[] for _ in range(len(self.loops) + 1)]
        for (position, level), group in groupby(
            self.places, key=lambda place: (place.position, place.level)
        ):
            mark = f"[{level} {' '.join(place.word for place in group)}]"
            marks[max(0, position)].append(mark)
        return " ".join(
            word for pair in zip(marks, [*words, []], strict=True) for part in pair for word in part
        )


def _is_sound(loops: Sequence[Loop]) -> bool:
    """Whether loops certainly have no faults, found quickly."""
    inner: dict[str, int] = {}
    words = set()
    for loop in reversed(loops):
        if type(loop) is not Loop or type(loop.extent) is not int or type(loop.dim) is not str:
            return False
        if loop.extent < inner.get(loop.dim, 1):
            return False
        inner[loop.dim] = loop.extent
        if loop.unit is not None:
            words.add(loop.unit if type(loop.unit) is str else "")
    return all(map(str.isidentifier, inner)) and all(map(str.isidentifier, words))


def _faults(loops: Sequence[Loop]) -> Iterable[str]:
    outer: dict[str, int] = {}
    for loop in loops:
        if not isinstance(loop, Loop):
            yield f"{show(loop)} is not a Loop; write Loop('K', 64)"
            continue
        if not _is_word(loop.dim):
            yield f"dim {show(loop.dim)} of a loop is not a plain word (letters, digits, _)"
        if loop.unit is not None and not _is_word(loop.unit):
            yield f"unit {show(loop.unit)} of a loop is not a plain word (letters, digits, _)"
        if not isinstance(loop.dim, str):
            continue
        if not is_count(loop.extent):
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


def _is_word(word: object) -> bool:
    return isinstance(word, str) and word.isidentifier()


def _place_faults(places: Sequence[Place], n_loops: int) -> Iterable[str]:
    seen: set[tuple[str, str]] = set()
    for place in places:
        if not isinstance(place, Place):
            yield f"{show(place)} is not a Place; write Place(1, 'L1', 'A')"
            continue
        words = {"level": place.level, "tensor": place.tensor}
        faults = [
            f"{what} {show(word)} of a place is not a plain word (letters, digits, _)"
            for what, word in words.items()
            if not _is_word(word)
        ]
        at = place.position
        if not is_count(at, PASSES, n_loops):
            faults.append(
                f"position of a place is {show(at)}; 0 to {n_loops} is allowed, or {PASSES} for a "
                "tensor that passes"
            )
        yield from faults
        if not faults:
            if (place.level, place.tensor) in seen:
                yield f"{place}: '{place.tensor}' has two places in '{place.level}'; keep one"
            seen.add((place.level, place.tensor))


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
