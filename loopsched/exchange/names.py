"""Names that programs and files of other tools may use."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

from loopsched.base.arguments import show
from loopsched.base.errors import InputError


def checked_name(name: str, keywords: Container[str]) -> str:
    """Return the name of a function if a program may use it.

    An InputError refuses what is no plain word, or means something else in that language.

    Examples
    --------
    >>> checked_name("for", ["for"])
    Traceback (most recent call last):
        ...
    loopsched.base.errors.InputError: 'for' cannot name a function; a plain word is needed
    """
    if not (isinstance(name, str) and name.isidentifier() and name.isascii()) or name in keywords:
        raise InputError(f"{show(name)} cannot name a function; a plain word is needed")
    return name


def free_name(name: str, taken: set[str]) -> str:
    """Find a name that nothing has yet, and take it.

    Examples
    --------
    >>> taken = {"M", "M_"}
    >>> free_name("M", taken), free_name("M", taken)
    ('M__', 'M___')
    """
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def safe_names(names: Iterable[str], reserved: Collection[str]) -> dict[str, str]:
    """Give every name another one where it is reserved, different from all others.

    Examples
    --------
    >>> safe_names(["for", "for_", "x"], ["for"])
    {'for': 'for__', 'for_': 'for_', 'x': 'x'}
    """
    kept = tuple(names)
    taken = {*reserved, *kept}
    return {name: free_name(name, taken) if name in reserved else name for name in kept}
