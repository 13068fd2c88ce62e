"""Many searches on several processes, results in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopsched.arch import Arch
    from loopsched.problem import Problem
    from loopsched.scheduler.result import Result


def in_order(
    problems: Sequence[Problem], arch: Arch, options: Mapping[str, Any], jobs: int
) -> Iterator[Result]:
    """Search problems on ``jobs`` processes; yield results in their order.

    Closing the iterator (or an interrupt) cancels what has not begun.
    """
    if jobs == 1 or len(problems) < 2:
        for problem in problems:
            yield _search_one(problem, arch, options)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(problems)), mp_context=context) as pool:
        futures = [pool.submit(_search_one, problem, arch, dict(options)) for problem in problems]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _search_one(problem: Problem, arch: Arch, options: Mapping[str, Any]) -> Result:
    from loopsched.scheduler import search

    return search(problem, arch, **options)
