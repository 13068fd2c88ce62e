"""Estimates of time as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopsched.base.units import scaled

if TYPE_CHECKING:
    from loopsched.gpu.result import Estimate


def estimate_lines(said: Estimate) -> Iterator[tuple[str, str]]:
    """Yield titles and texts: the time, what it rests on, what binds it."""
    yield (
        "time",
        f"{scaled(said.time_s, 's')} estimated, {scaled(said.low_s, 's')} to "
        f"{scaled(said.high_s, 's')} in eight cases of ten; {scaled(said.time_bound_s, 's')} "
        "at least",
    )
    yield "rests on", said.basis
    yield "bound by", said.bound_by
    parts = ", ".join(f"{name} {scaled(seconds, 's')}" for name, seconds in said.parts)
    yield "each alone", parts
