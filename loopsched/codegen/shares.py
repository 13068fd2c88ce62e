"""How threads share the jobs of a kernel, and which share of all work the slowest does."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

SPEEDS = (1.0, 0.95, 0.9)
"""Of the last thread, which starts later and shares its CPU now and then."""


def row_parts(threads: int) -> tuple[int, ...]:
    """List in how many parts threads may take the rows."""
    return (1, threads, 4 * threads) if threads > 1 else (1,)


def least_share(threads: int) -> float:
    """Say after which share of all work the last thread ends at the earliest."""
    if threads == 1:
        return 1.0
    return sum(1 / (threads - 1 + speed) for speed in SPEEDS) / len(SPEEDS)


@lru_cache(maxsize=4096)
def slowest_share(threads: int, rounds: int, n_whole: int, rest: float) -> float:
    """Say after which share of all work the last thread ends, on average over `SPEEDS`.

    Jobs are rounds of whole blocks of columns and one of a rest (a share of a
    block).  Each thread takes its own in order, then those of others.

    Examples
    --------
    >>> [round(slowest_share(2, 1, n_jobs, 0.0), 3) for n_jobs in (2, 8, 32)]
    [0.527, 0.527, 0.519]
    >>> slowest_share(2, 1, 1, 0.25)  # a small block beside a large one
    0.8
    """
    sizes = [*[1.0] * n_whole, *([rest] if rest else [])]
    n_jobs, total = rounds * len(sizes), rounds * sum(sizes)
    if n_jobs > 32 * threads:
        return least_share(threads) + max(sizes) / total / 2
    found = 0.0
    for last in SPEEDS:
        speeds = [*[1.0] * (threads - 1), last]
        limits = [n_jobs * one // threads for one in range(threads + 1)]
        queues = [list(range(*ends))[::-1] for ends in pairwise(limits)]
        clocks = [0.0] * threads
        while any(queues):
            one = clocks.index(min(clocks))
            whose = next(at for at in range(one - threads, one) if queues[at])
            clocks[one] += sizes[queues[whose].pop() % len(sizes)] / speeds[one]
        found += max(clocks) / total / len(SPEEDS)
    return found
