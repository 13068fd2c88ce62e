"""Constraints: what the schedules of a searched space must satisfy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from loopsched.base.arguments import show
from loopsched.base.errors import ConstraintError, nearest

Tiles = Literal["all", "divisors", "powers2"]
TILES: tuple[Tiles, ...] = get_args(Tiles)
UNBOUNDED = 2**62

_PLACE = r"([^\W\d]\w*)\s*@\s*([^\W\d]\w*)"
_NUMBER = r"([0-9]{1,18})"
_ONE_SIDE = re.compile(rf"{_PLACE}\s*(<=|>=|==|=)\s*{_NUMBER}")
_TWO_SIDES = re.compile(rf"{_NUMBER}\s*<=\s*{_PLACE}\s*<=\s*{_NUMBER}")


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
        Pairs of dimensions whose loops keep this order in every block that
        has both.  What follows from two pairs is kept too.
    prefix : str
        Loops that every schedule begins with, in schedule notation, each of
        more than one iteration.

    See Also
    --------
    search, Goal

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
            self.tiles == "all" and not self.extents and not self.before and not self.prefix.strip()
        )

    @classmethod
    def parse(
        cls,
        *,
        tiles: str = "all",
        fix: Sequence[str] = (),
        spatial: str | None = None,
        before: Sequence[str] = (),
        prefix: str = "",
    ) -> Constraints:
        """Read constraints from text.

        Parameters
        ----------
        tiles : str
            ``all``, ``divisors`` or ``powers2``.
        fix : sequence of str
            Bounds: ``M@L2=128``, ``K@L1<=64``, ``M@SM>=32`` or
            ``64<=N@L2<=256``.
        spatial : str, optional
            Dimensions with commas or blanks between; ``none`` for none.
        before : sequence of str
            Orders, outermost first: ``K>M`` or ``N>P>Q``.
        prefix : str
            Loops in schedule notation.

        Raises
        ------
        ConstraintError
            With every text that cannot be read.

        Examples
        --------
        >>> found = Constraints.parse(fix=["M@L2=128", "64<=N@L2<=256"], before=["K>M>N"])
        >>> found.extents
        (('M', 'L2', 128, 128), ('N', 'L2', 64, 256))
        >>> found.before
        (('K', 'M'), ('M', 'N'))
        """
        faults: list[str] = []
        if tiles not in TILES:
            faults.append(f"tiles '{tiles}' is unknown; {nearest(str(tiles), TILES)}")
        bounds = [found for text in fix if (found := _bound(text, faults))]
        pairs = [pair for text in before for pair in _pairs(text, faults)]
        shared = None if spatial is None else tuple(_words(spatial))
        if shared is not None and [word.casefold() for word in shared] == ["none"]:
            shared = ()
        if faults:
            raise ConstraintError.joined("constraints", faults)
        kept: Tiles = next(one for one in TILES if one == tiles)
        return cls(kept, tuple(bounds), shared, tuple(dict.fromkeys(pairs)), prefix.strip())

    def parts(self) -> Iterator[tuple[str, Constraints]]:
        """List the single constraints: each one in words, and all the others.

        Examples
        --------
        >>> both = Constraints(tiles="divisors", before=(("K", "M"),))
        >>> [(words, others.is_free) for words, others in both.parts()]
        [('tiles=divisors', False), ('K before M', False)]
        """
        from dataclasses import replace

        if self.tiles != "all":
            yield f"tiles={self.tiles}", replace(self, tiles="all")
        for at, bound in enumerate(self.extents):
            rest = self.extents[:at] + self.extents[at + 1 :]
            yield bound_text(bound), replace(self, extents=rest)
        if self.spatial is not None:
            names = ",".join(self.spatial) or "none"
            yield f"spatial={names}", replace(self, spatial=None)
        for at, (outer, inner) in enumerate(self.before):
            rest_pairs = self.before[:at] + self.before[at + 1 :]
            yield f"{outer} before {inner}", replace(self, before=rest_pairs)
        if self.prefix.strip():
            yield f"prefix '{self.prefix.strip()}'", replace(self, prefix="")


def bound_text(bound: tuple[str, str, int, int]) -> str:
    """Write a bound as `Constraints.parse` reads it.

    Examples
    --------
    >>> bound_text(("M", "L2", 1, 64)), bound_text(("M", "L2", 8, 8))
    ('M@L2<=64', 'M@L2=8')
    """
    dim, block, low, high = bound
    if low == high:
        return f"{dim}@{block}={low}"
    if high >= UNBOUNDED:
        return f"{dim}@{block}>={low}"
    return f"{dim}@{block}<={high}" if low <= 1 else f"{low}<={dim}@{block}<={high}"


def _bound(text: str, faults: list[str]) -> tuple[str, str, int, int] | None:
    if found := _ONE_SIDE.fullmatch(text.strip()):
        dim, block, sign, number = found[1], found[2], found[3], int(found[4])
        low = 1 if sign == "<=" else number
        high = UNBOUNDED if sign == ">=" else number
    elif found := _TWO_SIDES.fullmatch(text.strip()):
        dim, block, low, high = found[2], found[3], int(found[1]), int(found[4])
    else:
        faults.append(
            f"bound {show(text)} cannot be read; write DIM@LEVEL=N, DIM@LEVEL<=N, "
            "DIM@LEVEL>=N or N<=DIM@LEVEL<=N, such as 'M@L2=128'"
        )
        return None
    return dim, block, low, high


def _pairs(text: str, faults: list[str]) -> Iterable[tuple[str, str]]:
    words = [word.strip() for word in text.split(">")]
    if len(words) < 2 or not all(word.isidentifier() for word in words):
        faults.append(
            f"order {show(text)} cannot be read; write dims outermost first with '>' between, "
            "such as 'K>M'"
        )
        return ()
    return pairwise(words)


def _words(text: str) -> Iterable[str]:
    return filter(None, re.split(r"[\s,]+", text))
