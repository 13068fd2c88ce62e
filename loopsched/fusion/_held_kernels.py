"""Compiled: the most that a tensor holds, for every pair of tile sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopsched._jit import jit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@jit
def most_products(
    outer: Ints, outer_starts: Ints, inner: Ints, inner_starts: Ints, found: Ints
) -> None:
    """Find the largest sum of products over each pair of blocks of rows.

    ``outer_starts[s]`` to ``outer_starts[s + 1]`` are the rows of block s.
    """
    width = outer.shape[1]
    for s in range(len(outer_starts) - 1):
        for t in range(len(inner_starts) - 1):
            most = 0
            for a in range(outer_starts[s], outer_starts[s + 1]):
                for b in range(inner_starts[t], inner_starts[t + 1]):
                    total = 0
                    for k in range(width):
                        total += outer[a, k] * inner[b, k]
                    most = max(most, total)
            found[s, t] = most
