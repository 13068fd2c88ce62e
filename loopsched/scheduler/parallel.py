"""Many pieces of work on several processes, results in order."""

from __future__ import annotations

import signal
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

    Closing the iterator cancels what has not begun. An interrupt does, too; what calls that
    heard it return is yielded first.

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
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    many = min(jobs, len(arguments))
    with ProcessPoolExecutor(many, mp_context=context, initializer=_listen) as pool:
        waiting = [pool.submit(_call, function, each) for each in arguments]
        is_interrupted = False
        try:
            while waiting:
                try:
                    found = waiting[0].result()
                except KeyboardInterrupt:  # of this process, then of the call
                    waiting = [f for f in waiting[is_interrupted:] if not f.cancel()]
                    is_interrupted = True
                except BrokenProcessPool:
                    if not is_interrupted:
                        raise
                    break
                else:
                    del waiting[0]
                    yield found
        finally:
            for future in waiting:
                future.cancel()
        if is_interrupted:
            raise KeyboardInterrupt


class _Interrupts:
    """What a process of the pool has heard: an interrupt ends a call, not the process."""

    is_busy = False
    has_come = False


def _listen() -> None:
    signal.signal(signal.SIGINT, _heard)


def _heard(*_: object) -> None:
    _Interrupts.has_come = True
    if _Interrupts.is_busy:
        raise KeyboardInterrupt


def _call(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Call a function, unless an interrupt has come before."""
    if _Interrupts.has_come:
        raise KeyboardInterrupt
    _Interrupts.is_busy = True
    try:
        return function(*arguments)
    finally:
        _Interrupts.is_busy = False


def _search_one(problem: Problem, arch: Arch, options: Mapping[str, Any]) -> Result:
    from loopsched.scheduler import search

    return search(problem, arch, **options)
