"""A ring of addresses that loads follow, each to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LINE_BYTES = 128


def ring(n_bytes: int) -> NDArray[np.uint64]:
    """Lay a ring through all lines in an order without a pattern, the same each time.

    Examples
    --------
    >>> laid, at = ring(1024), 0
    >>> seen = []
    >>> for _ in range(8):
    ...     at = int(laid[at // 8])
    ...     seen.append(at // LINE_BYTES)
    >>> sorted(seen)
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    lines = n_bytes // LINE_BYTES
    order = np.random.default_rng(0).permutation(lines)
    laid = np.zeros((lines, LINE_BYTES // 8), dtype=np.uint64)
    laid[order, 0] = np.roll(order, -1).astype(np.uint64) * np.uint64(LINE_BYTES)
    return laid.reshape(-1)
