"""Many pieces of work on several processes, results in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from loopsched.arch import Arch
    from loopsched.problem import Problem
    from loopsched.scheduler.result import Result

T = TypeVar("T")


def in_order(
    problems: Sequence[Problem], arch: Arch, options: Mapping[str, Any], jobs: int
) -> Iterator[Result]:
    """Search problems on ``jobs`` processes; yield results in their order."""
    yield from each_in_order(
        _search_one, [(problem, arch, dict(options)) for problem in problems], jobs
    )


def each_in_order(
    function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[T]:
    """Call a function of a module on ``jobs`` processes; yield what it returns, in order.

    Closing the iterator (or an interrupt) cancels what has not begun.

    Examples
    --------
    >>> list(each_in_order(divmod, [(7, 2), (9, 4)], 1))
    [(3, 1), (2, 1)]
    """
    if jobs == 1 or len(arguments) < 2:
        for each in arguments:
            yield function(*each)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(arguments)), mp_context=context) as pool:
        futures = [pool.submit(function, *each) for each in arguments]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _search_one(problem: Problem, arch: Arch, options: Mapping[str, Any]) -> Result:
    from loopsched.scheduler import search

    return search(problem, arch, **options)
