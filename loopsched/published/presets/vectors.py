"""Elements that compilers load at once from a row of a tile."""

from __future__ import annotations


def row_vector(tile: int) -> int:
    """Say how many elements of its row of a tile a thread loads at once.

    Two where rows are even: passes of shared memory of the ``gemm_tile*``
    kernels in counters/h200_kernels.csv are then met within 2 %, and the shared
    loads that report 002 prints (Figure 3) within 1 %; one by one, both are
    30 % too many.

    Examples
    --------
    >>> row_vector(24), row_vector(5)
    (2, 1)
    """
    return 2 - tile % 2
