"""Which layers' weights stay in the buffer from tile to tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def resident_bytes(weights: tuple[int, ...], element: int, spare: Ints, n_tiles: Ints) -> Ints:
    """Choose which weights stay from tile to tile: as many bytes as there is room for.

    Parameters
    ----------
    weights : tuple of int, bytes
        Of each layer: they stay all, or are fetched again for every tile.
    element : int, bytes
        Room through which fetched ones pass.
    spare : array
        Room left by tiles.
    n_tiles : array
        Where there is one tile, nothing needs to stay.
    """
    import numpy as np

    room = np.maximum(spare - element, 0)
    sums = subset_sums(weights, min(sum(weights), int(room.max())))
    unit = math.gcd(*weights)
    all_sums = np.flatnonzero(sums) * unit
    found = all_sums[np.searchsorted(all_sums, room, side="right") - 1]
    found = np.where(spare >= sum(weights), sum(weights), found)
    return np.where(n_tiles == 1, 0, found)


@lru_cache(maxsize=4)
def subset_sums(weights: tuple[int, ...], limit: int) -> NDArray[np.bool_]:
    """Mark the sums of some of the weights up to a limit, in units of their common divisor."""
    import numpy as np

    unit = math.gcd(*weights)
    found = np.zeros(limit // unit + 1, dtype=np.bool_)
    found[0] = True
    for weight in weights:
        step = weight // unit
        if step < len(found):
            found[step:] |= found[:-step].copy()
    return found


def chosen_weights(weights: Sequence[int], total: int) -> tuple[bool, ...]:
    """Say which weights add up to a sum of `resident_bytes`, the first for preference.

    Examples
    --------
    >>> chosen_weights([8, 4, 4, 2], 6)
    (False, True, False, True)
    """
    picked = []
    for at, weight in enumerate(weights):
        rest = total - weight
        after = tuple(weights[at + 1 :])
        picked.append(rest == 0 or (rest > 0 and bool(after) and _is_sum(after, rest)))
        total = rest if picked[-1] else total
    return tuple(picked)


def _is_sum(weights: tuple[int, ...], total: int) -> bool:
    own = math.gcd(*weights)
    return total % own == 0 and bool(subset_sums(weights, total)[total // own])
