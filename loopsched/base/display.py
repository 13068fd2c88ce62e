"""How notebooks show our objects: what writes the HTML is handed in from above."""

from __future__ import annotations

from collections.abc import Callable

_writers: list[Callable[[object], str]] = []


class Shown:
    """An object that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _writers[-1](self)


def show_with(writer: Callable[[object], str]) -> None:
    """Hand in what writes the HTML of any `Shown` object."""
    _writers.append(writer)
