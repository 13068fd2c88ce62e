"""Keyword arguments of functions that are fields of one frozen object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, TypeVar

from loopsched.base.arguments import near, show
from loopsched.base.errors import ConstraintError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def object_of(kind: type[T], given: T | None, keywords: Mapping[str, Any], where: str) -> T:
    """Make an object of keyword arguments, or change what they name in the one that is given.

    Raises
    ------
    TypeError
        If a keyword is no field of it.

    ConstraintError
        If what is given is no such object.
    """
    refuse_unknown(keywords, [field.name for field in fields(kind)], where)  # type: ignore[arg-type]
    if given is None:
        return kind(**keywords)
    if not isinstance(given, kind):
        raise ConstraintError(f"{where}: found {show(given)}; a {kind.__name__} is needed")
    return replace(given, **keywords) if keywords else given  # type: ignore[type-var]


def refuse_unknown(keywords: Mapping[str, object], allowed: list[str], where: str) -> None:
    """Raise Python's own error for an unknown keyword, with the nearest that is known.

    Examples
    --------
    >>> refuse_unknown({"tip": 3}, ["top", "gap"], "search")
    Traceback (most recent call last):
        ...
    TypeError: search() has no argument 'tip'; did you mean 'top'? (allowed: top gap)
    """
    for name in keywords:
        if name not in allowed:
            raise TypeError(f"{where}() has no argument {show(name)}; {near(name, allowed)}")


def hides_private(kind: type[T]) -> type[T]:
    """Leave fields that begin with ``_`` out of the signature that a class shows.

    Examples
    --------
    >>> import inspect
    >>> from dataclasses import dataclass
    >>> @hides_private
    ... @dataclass
    ... class Pair:
    ...     first: int
    ...     _second: int
    >>> list(inspect.signature(Pair).parameters)
    ['first']
    """
    import inspect

    signature = inspect.signature(kind)
    parameters = [one for one in signature.parameters.values() if not one.name.startswith("_")]
    kind.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return kind


def takes(*kinds: type) -> Callable[[F], F]:
    """Show the fields of objects in the signature of a function that takes them as ``**``."""
    every = {field.name: field for kind in kinds for field in fields(kind)}
    import inspect

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[:-1]
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if field.default is MISSING else field.default,
                annotation=field.type,
            )
            for field in every.values()
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate
