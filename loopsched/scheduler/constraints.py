"""Constraints: what the schedules of a searched space must satisfy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tiles = Literal["all", "divisors", "powers2"]


@dataclass(frozen=True, slots=True)
class Constraints:
    """What schedules must satisfy; the default allows everything.

    Parameters
    ----------
    tiles : {'all', 'divisors', 'powers2'}
        Extents to choose from: any, divisors of the dimension, or powers of
        two; the dimension's size itself is always one.
    extents : tuple of (dim, block, low, high)
        Bounds on the extent of a dimension inside a block.  Blocks are named
        after the level whose tile they enclose, or the unit that runs them:
        on a Titan V ``L2``, ``SM``, ``L1``.  Equal bounds fix the extent.
    spatial : tuple of str or None
        Dimensions that instances may share; None: all that index the output
        on an axis of their own.
    before : tuple of (outer, inner)
        Pairs of dimensions whose loops keep this order in every block.
    prefix : str
        Loops that every schedule begins with, in schedule notation.

    Examples
    --------
    >>> Constraints(tiles="divisors", extents=(("M", "L2", 128, 128),)).is_free
    False
    """

    tiles: Tiles = "all"
    extents: tuple[tuple[str, str, int, int], ...] = ()
    spatial: tuple[str, ...] | None = None
    before: tuple[tuple[str, str], ...] = ()
    prefix: str = ""

    @property
    def is_free(self) -> bool:
        """Whether nothing but the choice of spatial dimensions is constrained."""
        return (
            self.tiles == "all"
            and not self.extents
            and not self.before
            and not self.prefix.strip()
        )
