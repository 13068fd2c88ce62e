"""Which layers' weights stay in the buffer from tile to tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from loopsched.base.arrays import Ints


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a group, stage by stage: 0 for poolings.

    Parameters
    ----------
    sizes : tuple of int, bytes
        Of each stage: they stay all, or are fetched again for every tile.
    elements : tuple of int, bytes
        Of one element; fetched ones pass by element, while their stage works.
    """

    sizes: tuple[int, ...]
    elements: tuple[int, ...]

    def most_resident(self, live: Ints, capacity_bytes: int) -> tuple[Ints, Ints]:
        """Find how many bytes can stay, and the working set with them.

        Parameters
        ----------
        live : array, (stages, tiles), bytes
            What else is on chip while each stage works.
        capacity_bytes : int

        Returns
        -------
        array, array
            Bytes of weights that stay, as many as can, or -1 if the tile does
            not fit; the least working set with as many.

        Examples
        --------
        The second stage leaves least: a byte more of its weights passes unless they stay.

        >>> import numpy as np
        >>> weights = Weights((6, 4), (1, 1))
        >>> live = np.array([[3], [5]])
        >>> [[int(one[0]) for one in weights.most_resident(live, n)] for n in (5, 6, 9, 15)]
        [[-1, 0], [0, 6], [4, 9], [10, 15]]
        """
        import numpy as np

        peak, over = self._passing(live)
        best, needed = np.full(peak.shape, -1), np.zeros_like(peak)
        bits = 1 << np.arange(len(live))
        # Weights that would pass at a time that leaves no more than this must stay.
        for slack in sorted({0, *np.unique(over).tolist()}, reverse=True):
            codes = bits @ (over > slack)
            for code in np.unique(codes).tolist():
                here = np.flatnonzero(codes == code)
                stays = tuple(bool(bit & code) for bit in bits)
                must = sum(size for size, stay in zip(self.sizes, stays, strict=True) if stay)
                spare = capacity_bytes - slack - must - peak[here]
                here, spare = here[spare >= 0], spare[spare >= 0]
                sums = _sums(self._others(stays), capacity_bytes)
                found = must + sums[np.searchsorted(sums, spare, side="right") - 1]
                better = found >= best[here]
                here, found = here[better], found[better]
                best[here], needed[here] = found, peak[here] + slack + found
        return best, needed

    def none_resident(self, live: Ints) -> Ints:
        """Find the working set if all weights are fetched for every tile."""
        peak, over = self._passing(live)
        found: Ints = peak + over.max(axis=0)
        return found

    def chosen(self, live: Ints, resident: int, needed: int) -> tuple[bool, ...]:
        """Say which weights stay, from what `most_resident` found for one tile."""
        import numpy as np

        peak, over = self._passing(live[:, np.newaxis])
        must = tuple(bool(one) for one in over[:, 0] > needed - resident - peak[0])
        rest = resident - sum(s for s, stay in zip(self.sizes, must, strict=True) if stay)
        picked = iter(chosen_weights(self._others(must), rest))
        return tuple(
            stay or (bool(size) and next(picked))
            for size, stay in zip(self.sizes, must, strict=True)
        )

    def _passing(self, live: Ints) -> tuple[Ints, Ints]:
        """Find the most that is there, and how much more it is while an element passes."""
        import numpy as np

        peak = live.max(axis=0)
        elements = np.array(self.elements, np.int64)[:, np.newaxis]
        return peak, np.maximum(live + elements - peak, 0) * (elements > 0)

    def _others(self, stays: Sequence[bool]) -> tuple[int, ...]:
        pairs = zip(self.sizes, stays, strict=True)
        return tuple(size for size, stay in pairs if size and not stay)


@lru_cache(maxsize=64)
def _sums(weights: tuple[int, ...], limit: int) -> Ints:
    """List the sums of some of the weights, up to a limit, in order."""
    import numpy as np

    unit = math.gcd(*weights) or 1
    reached = np.zeros(min(sum(weights), limit) // unit + 1, dtype=np.bool_)
    reached[0] = True
    for weight in weights:
        step = weight // unit
        if step < len(reached):
            reached[step:] |= reached[:-step].copy()
    found: Ints = np.flatnonzero(reached) * unit
    return found


def chosen_weights(weights: Sequence[int], total: int) -> tuple[bool, ...]:
    """Say which weights add up to a sum, the first for preference.

    Examples
    --------
    >>> chosen_weights([8, 4, 4, 2], 6)
    (False, True, False, True)
    """
    picked = []
    for at, weight in enumerate(weights):
        rest = total - weight
        after = tuple(weights[at + 1 :])
        picked.append(rest == 0 or (rest > 0 and rest in _sums(after, rest)))
        total = rest if picked[-1] else total
    return tuple(picked)
