"""Estimates of time as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopsched.base.units import count, percent, scaled

if TYPE_CHECKING:
    from loopsched.gpu.occupancy import Occupancy
    from loopsched.gpu.result import Estimate


def estimate_lines(said: Estimate) -> Iterator[tuple[str, str]]:
    """Yield titles and texts: the time, what it rests on, what binds it."""
    interval = "(80 % interval); "
    yield "time", f"{estimate_text(said)} {interval}{scaled(said.time_bound_s, 's')} at least"
    yield "basis", said.basis
    yield "bound by", said.bound_by
    parts = ", ".join(f"{name} {scaled(seconds, 's')}" for name, seconds in said.parts if seconds)
    yield "resources", parts


def estimate_text(said: Estimate) -> str:
    """Say how long it takes, from when to when."""
    low, high = scaled(said.low_s, "s"), scaled(said.high_s, "s")
    return f"{scaled(said.time_s, 's')} estimated, {low} to {high}"


def occupancy_text(found: Occupancy, more: str = "") -> str:
    """Say how full a multiprocessor is, and what allows no more."""
    limits = " and ".join(found.limited_by)
    blocks = count(found.blocks, "block")
    return f"{percent(found.share)}: {blocks}{more} per SM, limited by {limits}"
