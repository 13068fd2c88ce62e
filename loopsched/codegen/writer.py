"""What programs are written through: statements over integers, addresses and vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from loopsched.codegen.element import Element

GROUP_BYTES = 16
"""Lanes that instructions of x86-64 mix: those of so many bytes; others they move as groups."""

Number = int | str
"""A 64-bit integer: known while code is written, or the name of a value."""


class Loop:
    """A loop or branch that is being written: its index, and the values that it carries along."""

    def __init__(self, index: Number, values: Sequence[str]) -> None:
        self.index = index
        self.values = list(values)
        """Inside the loop: as an iteration finds them; after it: as the last one left them."""
        self.next = list(values)

    def carry(self, values: Sequence[str]) -> None:
        """Set what the next iteration finds."""
        self.next = list(values)


class Writer(ABC):
    """A program of functions over byte pointers, 64-bit integers and vectors of one element type.

    Parameters
    ----------
    element : Element
        What is computed with; other stored types are converted when read and written.
    lanes : int
        Of a vector; at least 2.
    """

    def __init__(self, element: Element, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        self._lines: list[str] = []
        self._tables: dict[str, tuple[int, ...]] = {}
        self._whole: set[str] = set()
        """Names of tables that grow no more."""
        self._declared: dict[str, str] = {}
        self._types: dict[str, str] = {}
        self._count = 0
        self._written: dict[tuple[str, ...], str] = {}
        """Names of functions by what they take and do."""
        self._same: dict[str, str] = {}
        """Names of functions that do what another does: its name."""

    def _named(self, letter: str, kind: str) -> str:
        """Name a new value of some type."""
        self._count += 1
        name = f"{letter}{self._count}"
        self._types[name] = kind
        return name

    @abstractmethod
    def text(self) -> str:
        """Give the whole program."""

    # Functions

    @contextmanager
    def function(
        self, name: str, pointers: Sequence[str], numbers: Sequence[str], *, is_public: bool = False
    ) -> Iterator[None]:
        """Write a function; its pointers lead to memory that no other pointer leads to.

        What another function does already is not written again.
        """
        start, self._count = len(self._lines), 0
        self._open_function(name, pointers, numbers, is_public=is_public)
        body = len(self._lines)
        yield
        self._lines += self._end_of_function
        if is_public:
            return
        key = *pointers, *numbers, *self._lines[body:]
        self._same[name] = self._written.setdefault(key, name)
        if self._same[name] != name:
            del self._lines[start:]

    _end_of_function: tuple[str, ...]

    @abstractmethod
    def _open_function(
        self, name: str, pointers: Sequence[str], numbers: Sequence[str], *, is_public: bool
    ) -> None:
        """Write what comes before the statements of a function."""

    @abstractmethod
    def argument(self, name: str) -> str:
        """Name an argument."""

    def call(self, name: str, pointers: Sequence[str], numbers: Sequence[Number]) -> None:
        """Call a function of the program that was written before."""
        self._call(self._same.get(name, name), pointers, numbers)

    @abstractmethod
    def _call(self, name: str, pointers: Sequence[str], numbers: Sequence[Number]) -> None: ...

    def table(self, user: str, values: Sequence[int]) -> str:
        """Write a constant array of integers for some functions; return its address.

        One that begins as another does is a part of it.
        """
        new = tuple(values)
        alike = (
            at
            for at, one in self._tables.items()
            if one[: len(new)] == (new if at in self._whole else new[: len(one)])
        )
        name = next(alike, f"{user}_table{len(self._tables)}")
        self._tables[name] = max(self._tables.get(name, ()), new, key=len)
        return self._address(name)

    @abstractmethod
    def _address(self, name: str) -> str:
        """Give the address of a table."""

    # Integers and addresses; what is known is computed here

    @abstractmethod
    def _arithmetic(self, sign: str, one: Number, other: Number) -> str:
        """Write ``one sign other``, of ``+ * / %``; what is divided is not negative."""

    def add(self, *terms: Number) -> Number:
        """Add integers."""
        known = sum(term for term in terms if isinstance(term, int))
        total: str | None = None
        for term in terms:
            if isinstance(term, str):
                total = term if total is None else self._arithmetic("+", total, term)
        if total is None:
            return known
        return self._arithmetic("+", total, known) if known else total

    def mul(self, one: Number, factor: int) -> Number:
        """Multiply by a known factor."""
        if isinstance(one, int):
            return one * factor
        if factor in (0, 1):
            return one if factor else 0
        return self._arithmetic("*", one, factor)

    def divided(self, one: Number, by: int) -> tuple[Number, Number]:
        """Divide what is not negative by a known number: quotient and rest."""
        if isinstance(one, int):
            return divmod(one, by)
        if by == 1:
            return one, 0
        return self._arithmetic("/", one, by), self._arithmetic("%", one, by)

    def least(self, one: Number, other: Number) -> Number:
        """Give the smaller of two integers."""
        if isinstance(one, int) and isinstance(other, int):
            return min(one, other)
        return self.choice(self.less(one, other), one, other)

    @abstractmethod
    def choice(self, truth: str, one: Number, other: Number) -> Number:
        """Give the first integer if something holds, else the second."""

    @abstractmethod
    def less(self, one: Number, other: Number) -> str:
        """Compare integers."""

    @abstractmethod
    def equal(self, one: Number, other: Number) -> str:
        """Compare integers."""

    @abstractmethod
    def inside(self, one: Number, size: int) -> str:
        """Say whether ``0 <= one < size``."""

    @abstractmethod
    def both(self, one: str, other: str) -> str:
        """Join two truths."""

    @abstractmethod
    def negated(self, truth: str) -> str:
        """Turn a truth round."""

    def settled(self, pointer: str) -> str:
        """Give a pointer of which a compiler does not ask where it comes from."""
        return pointer

    @abstractmethod
    def at(self, pointer: str, index: Number, element: Element) -> str:
        """Move a pointer by elements."""

    @abstractmethod
    def entry(self, table: str, index: Number) -> Number:
        """Read an integer of a table."""

    # Control

    @contextmanager
    def loop(
        self, start: Number, stop: Number, step: int = 1, values: Sequence[str] = ()
    ) -> Iterator[Loop]:
        """Write a loop; one that runs once is written without."""
        if isinstance(start, int) and isinstance(stop, int) and start < stop <= start + step:
            once = Loop(start, values)
            yield once
            once.values = once.next
            return
        with self._loop(start, stop, step, values) as several:
            yield several

    @abstractmethod
    def _loop(
        self, start: Number, stop: Number, step: int, values: Sequence[str]
    ) -> AbstractContextManager[Loop]:
        """Write a loop that may run any number of times."""

    @abstractmethod
    def when(self, truth: str, values: Sequence[str] = ()) -> AbstractContextManager[Loop]:
        """Write statements that run only if something holds; what they carry is known after."""

    # Vectors and masks

    @abstractmethod
    def zero(self) -> str:
        """Give a vector of zeros."""

    @abstractmethod
    def number(self, value: int) -> str:
        """Give a number of what is computed with."""

    @abstractmethod
    def first_lanes(self, n: int) -> str | None:
        """Give a mask of the first lanes; None for all."""

    @abstractmethod
    def some_lanes(self, picks: Sequence[bool]) -> str | None:
        """Give a mask of known lanes; None for all."""

    @abstractmethod
    def mixed(self, one: str, other: str, picks: Iterable[int]) -> str:
        """Give a vector of known lanes of two vectors; those of the second count on."""

    def picked(self, one: str, other: str, start: int, step: int) -> str:
        """Give lanes of two vectors that follow each other: from one on, every so manyth."""
        return self.mixed(one, other, range(start, start + step * self.lanes, step))

    def transposed(self, values: Sequence[str]) -> list[str]:
        """Turn as many vectors as they have lanes into those of their first, second, ... lanes."""
        lanes, made = self.lanes, list(values)
        for number, (apart, sides) in enumerate(self._exchanges()):
            if number:
                made = [self.fenced(one) for one in made]
            for one in (one for one in range(lanes) if not one & apart):
                pair = made[one], made[one + apart]
                made[one], made[one + apart] = (self.mixed(*pair, side) for side in sides)
        return made

    def added_up(self, values: Sequence[str]) -> str:
        """Give the vector of the sums of the lanes of each of some vectors; others are 0."""
        made: list[str | None] = [*values, *[None] * (self.lanes - len(values))]
        for apart, sides in self._exchanges():
            for one in (one for one in range(self.lanes) if not one & apart):
                pair = made[one], made[one + apart]
                if any(pair):
                    full = [each or self.zero() for each in pair]
                    first, second = (self.mixed(full[0], full[1], side) for side in sides)
                    made[one] = self.plus(first, second)
                made[one + apart] = None
        return made[0] or self.zero()

    def _exchanges(self) -> list[tuple[int, list[list[int]]]]:
        """List the steps that turn vectors: how far apart pairs are, and which lanes both take.

        Groups of lanes are mixed inside, then exchanged: each step is an instruction of x86-64.
        """
        lanes = self.lanes
        group = min(lanes, GROUP_BYTES // self.element.n_bytes)
        half, starts = group // 2, range(0, lanes, group)
        inside = [
            [first + lane + side for first in starts for lane in lanes_of for side in (0, lanes)]
            for lanes_of in (range(half), range(half, group))
        ]
        across = [
            [start + lane for start in range(odd, 2 * lanes, 2 * group) for lane in range(group)]
            for odd in (0, group)
        ]
        steps = [(half >> n, inside) for n in range(half.bit_length())]
        return steps + [(group << n, across) for n in range((lanes // group).bit_length() - 1)]

    def fenced(self, value: str) -> str:
        """Keep a compiler from looking through a value."""
        return value

    @abstractmethod
    def read_again(self) -> None:
        """Keep nothing that was read in registers, lest more is kept than there are."""

    @abstractmethod
    def lanes_inside(self, first: Number, step: int, size: Number) -> str:
        """Give a mask of the lanes for which ``0 <= first + lane * step < size``; size >= 0."""

    @abstractmethod
    def mask_and(self, mask: str | None, other: str | None) -> str | None:
        """Join two masks."""

    @abstractmethod
    def mask_if(self, truth: str, mask: str | None) -> str:
        """Give a mask if something holds, else one of no lanes."""

    @abstractmethod
    def load(self, pointer: str, element: Element, mask: str | None = None, step: int = 1) -> str:
        """Read a vector whose elements lie ``step`` apart; masked lanes are zero and not read."""

    @abstractmethod
    def store(self, pointer: str, value: str, element: Element, mask: str | None = None) -> None:
        """Write a vector; masked lanes are not touched."""

    @abstractmethod
    def load_one(self, pointer: str, element: Element, truth: str | None = None) -> str:
        """Read one element; if something does not hold it is zero, and not read."""

    @abstractmethod
    def store_one(self, pointer: str, value: str, element: Element) -> None:
        """Write one element."""

    @abstractmethod
    def spread(self, value: str) -> str:
        """Fill a vector with one number."""

    @abstractmethod
    def fma(self, one: str, other: str, total: str) -> str:
        """Multiply and add, rounded once where numbers are floating."""

    @abstractmethod
    def plus(self, one: str, other: str) -> str:
        """Add vectors, or numbers."""

    @abstractmethod
    def plus_if(self, truth: str, value: str, pointer: str, element: Element) -> str:
        """Add what is in memory, if something holds."""

    @abstractmethod
    def room(self, n: int) -> str:
        """Reserve elements of what is computed with, until the function returns."""

    @abstractmethod
    def positive(self, value: str) -> str:
        """Replace what is negative by zero (ReLU)."""

    @abstractmethod
    def fetch(self, pointer: str, *, writes: bool = False) -> None:
        """Ask for a line that will be needed soon; ``writes``: to be written, in L1."""
