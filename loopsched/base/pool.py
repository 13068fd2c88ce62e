"""Many pieces of work on several processes, results in order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from loopsched.base.arguments import show
from loopsched.base.errors import ConstraintError, InputError, LoopschedError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

T = TypeVar("T")


def check_jobs(jobs: object, error: type[InputError] = ConstraintError) -> None:
    """Refuse what is no number of processes.

    Examples
    --------
    >>> check_jobs(1.5)
    Traceback (most recent call last):
        ...
    loopsched.base.errors.ConstraintError: jobs is 1.5; a whole number >= 1 is needed
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise error(f"jobs is {show(jobs)}; a whole number >= 1 is needed")


def each_in_order(
    function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[T]:
    """Call a function of a module on ``jobs`` processes; yield what it returns, in order.

    Closing the iterator cancels what has not begun. An interrupt does, too; what calls that
    heard it return is yielded first.

    Raises
    ------
    ConstraintError
        If ``jobs`` is no whole number above 0.
    LoopschedError
        If a process cannot be started, or dies.

    Examples
    --------
    >>> list(each_in_order(divmod, [(7, 2), (9, 4)], 1))
    [(3, 1), (2, 1)]
    """
    check_jobs(jobs)
    if jobs == 1 or len(arguments) < 2:
        for each in arguments:
            yield function(*each)
        return
    import multiprocessing
    import multiprocessing.resource_tracker
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    many = min(jobs, len(arguments))
    multiprocessing.resource_tracker.ensure_running()  # it would make this process hear again
    with ProcessPoolExecutor(many, mp_context=context, initializer=begin_process) as pool:
        try:
            with _deaf():  # processes begin so, too, and hear once they can answer
                waiting = [pool.submit(_call, function, each) for each in arguments]
        except OSError as error:
            raise LoopschedError(f"{many} processes cannot be started: {error.strerror}") from None
        is_interrupted = False
        try:
            while waiting:
                try:
                    found = waiting[0].result()
                except KeyboardInterrupt:  # of this process, then of the call
                    waiting = [f for f in waiting[is_interrupted:] if not f.cancel()]
                    is_interrupted = True
                    _interrupt(pool)
                except BrokenProcessPool:
                    if not is_interrupted:
                        raise LoopschedError(
                            "a process died: killed, or out of memory (fewer jobs take less); a "
                            "script that uses several needs: if __name__ == '__main__':"
                        ) from None
                    break
                else:
                    del waiting[0]
                    yield found
        finally:
            for future in waiting:
                future.cancel()
        if is_interrupted:
            raise KeyboardInterrupt


@contextmanager
def _deaf() -> Iterator[None]:
    """Let interrupts wait."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(pool: ProcessPoolExecutor) -> None:
    """Let the processes of a pool hear an interrupt that only this one may have heard."""
    for pid in list(pool._processes or ()):
        with suppress(OSError):
            os.kill(pid, signal.SIGINT)


class _Interrupts:
    """What a process of the pool has heard: an interrupt ends a call, not the process."""

    is_busy = False
    has_come = False


def begin_process() -> None:
    """Begin a process of a pool: it hears interrupts, and ends when its parent is gone."""
    signal.signal(signal.SIGINT, _heard)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent()


def end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, however that ended."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _heard(*_: object) -> None:
    is_first, _Interrupts.has_come = not _Interrupts.has_come, True
    if _Interrupts.is_busy and is_first:
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
