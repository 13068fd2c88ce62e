"""Tables of what parts of a machine state; reading, checks, schema and writing follow from them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeGuard, TypeVar

from loopsched.base.arguments import is_count, near, show
from loopsched.base.units import MAX_BYTES, Kind

Sources = tuple[tuple[str, str], ...]
Plain = Literal["word", "choice", "flag", "names", "count", "share", "rate"]
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_Part = TypeVar("_Part", bound=Any)


class Key(NamedTuple):
    """One thing that a part of a machine states, in files and in Python.

    Parameters
    ----------
    key : str
        As files and messages spell it.
    field : str
        Attribute of the object.  Empty: the file only.
    kind : str
        A kind of quantity, or ``word`` (letters, digits, underscores),
        ``choice`` (of `words`), ``flag``, ``names`` (of tensors, or of `words`), ``count``,
        ``share`` (above 0, at most 1), ``rate`` (bytes, a second or a cycle).
    required : bool
        Whether a file must have it; what it may leave out has the object's default.
    words : tuple of str
        What a choice allows, or names, if not all.
    of_each : bool
        Whether there is a value for each of several names.
    along : tuple of str or None
        Keys that a study scales along with this one.  None: not scaled.
    least : int
        Of a whole number.
    is_later : bool
        Whether machines had digests before they had it: those do not count its default.
    """

    key: str
    field: str
    kind: Plain | Kind
    required: bool = False
    words: tuple[str, ...] = ()
    of_each: bool = False
    along: tuple[str, ...] | None = None
    least: int = 1
    is_later: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are whole."""
        return self.kind in ("count", "bytes")


def is_positive(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 < value < math.inf


def key_faults(part: object, keys: Sequence[Key]) -> Iterator[str]:
    """Say what is wrong with each value of a part taken alone."""
    annotations = type(part).__annotations__
    for entry in keys:
        value: Any = getattr(part, entry.field) if entry.field else None
        if value is None and "None" in annotations.get(entry.field, "None"):
            continue
        if not entry.of_each:
            yield from _value_faults(entry.field, value, entry)
            continue
        names = [name for name, _ in value]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{entry.key} names '{name}' twice"
        for name, each in value:
            if entry.words and name not in entry.words:
                yield f"{entry.key}: unknown '{name}'; {near(name, entry.words)}"
            else:
                yield from _value_faults(f"{entry.key} of '{name}'", each, entry)


def _value_faults(what: str, value: object, entry: Key) -> Iterator[str]:
    shown = show(value)
    if entry.kind == "word":
        if not (isinstance(value, str) and _WORD.fullmatch(value)):
            yield f"{what} {shown} must be a word of letters, digits and underscores"
    elif entry.kind == "choice":
        if value not in entry.words:
            yield f"{what} {shown}: unknown; {near(value, entry.words)}"
    elif entry.kind == "flag":
        if not isinstance(value, bool):
            yield f"{what} must be true or false, not {shown}"
    elif entry.kind == "names":
        if not (isinstance(value, tuple) and all(isinstance(name, str) for name in value)):
            yield f"{what} must be a tuple of names, not {shown}"
        else:
            for name in sorted({name for name in value if value.count(name) > 1}):
                yield f"{what} names '{name}' twice"
            for name in value if entry.words else ():
                if name not in entry.words:
                    yield f"{what}: unknown '{name}'; {near(name, entry.words)}"
    elif entry.is_whole:
        if not is_count(value, entry.least, MAX_BYTES):
            yield f"{what} must be a whole number from {entry.least} to 2**62, not {shown}"
    elif entry.least == 0 and value == 0 and value is not False:
        return
    elif not is_positive(value):
        yield f"{what} must be above zero and finite, not {shown}"
    elif entry.kind == "share" and value > 1:
        yield f"{what} is a share, so at most 1, not {shown}"


def times(value: float, factor: Fraction) -> float:
    """Multiply, rounding once: a number over another, times that other, is the number.

    Examples
    --------
    >>> times(652.8e9, Fraction(900e9) / Fraction(652.8e9))
    900000000000.0
    """
    try:
        return float(Fraction(value) * factor)
    except OverflowError:
        return math.inf


def scaled_part(part: _Part, keys: Sequence[Key], key: str, factor: Fraction) -> _Part:
    """Multiply one number of a part, and what goes along with it; whole numbers are rounded."""
    table = {entry.key: entry for entry in keys}
    changed = {}
    for name in (key, *(table[key].along or ())):
        entry = table[name]
        value = getattr(part, entry.field)
        if isinstance(value, tuple):
            value = tuple((each, _scaled(entry, number, factor)) for each, number in value)
        elif value is not None:
            value = _scaled(entry, value, factor)
        changed[entry.field] = value
    return replace(part, **changed)


def _scaled(entry: Key, value: float, factor: Fraction) -> float:
    if entry.is_whole:
        return round(value * factor)
    scaled = times(value, factor)
    return min(1.0, scaled) if entry.kind == "share" else scaled
