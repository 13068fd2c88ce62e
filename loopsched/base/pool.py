"""Many pieces of work on several processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from traceback import format_exc
from typing import TYPE_CHECKING, Any, TypeVar

from loopsched.base import jit
from loopsched.base.arguments import is_count, show
from loopsched.base.errors import ConstraintError, InputError, LoopschedError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

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
    if not is_count(jobs):
        raise error(f"jobs is {show(jobs)}; a whole number >= 1 is needed")


def each_in_order(
    function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Generator[T, None, None]:
    """Call a function of a module on ``jobs`` processes; yield what it returns, in order.

    Closing the iterator cancels what has not begun and interrupts the rest. An interrupt does,
    too; what calls that heard it return is yielded first.

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
    with Processes(min(jobs, len(arguments))) as pool:
        waiting = [pool.submit(function, *each) for each in arguments]
        is_interrupted = False
        while waiting:
            try:
                found = waiting[0].result()
            except KeyboardInterrupt:  # of this process, then of the call
                waiting = [f for f in waiting[is_interrupted:] if not f.cancel()]
                is_interrupted = True
                pool.interrupt()
            except DeadProcess:
                if not is_interrupted:
                    raise LoopschedError(
                        "a process died: killed, or out of memory (fewer jobs take less); a "
                        "script that uses several needs: if __name__ == '__main__':"
                    ) from None
                break
            else:
                del waiting[0]
                yield found
        if is_interrupted:
            raise KeyboardInterrupt


class DeadProcess(Exception):  # noqa: N818 - who calls says what that means
    """A process of a pool that ended amid a call; its text says how."""


class Processes:
    """Processes that answer calls, each with a thread that waits for it.

    A process that dies takes only its own call with it, and the next call gets a new one.

    Parameters
    ----------
    many : int
    hears : bool
        Whether an interrupt ends calls; otherwise processes do not hear any.

    Raises
    ------
    LoopschedError
        If a process cannot be started.

    Examples
    --------
    >>> with Processes(1) as pool:
    ...     pool.submit(divmod, 7, 2).result()
    (3, 1)
    """

    def __init__(self, many: int, *, hears: bool = True) -> None:
        from concurrent.futures import ThreadPoolExecutor
        from multiprocessing import resource_tracker

        self._hears, self._workers = hears, list[_Worker]()
        self._is_closed, self._changes = False, threading.Lock()
        self._free: SimpleQueue[_Worker | None] = SimpleQueue()
        self._threads = ThreadPoolExecutor(many)
        try:
            resource_tracker.ensure_running()  # it would make this process hear again
            with _deaf():  # processes begin so, too, and hear once they can answer
                for _ in range(many):
                    self._free.put(self._start())
        except OSError as error:
            self.__exit__()
            raise LoopschedError(f"{many} processes cannot be started: {error.strerror}") from None
        except KeyboardInterrupt:
            self.__exit__()
            raise

    def _start(self) -> _Worker:
        with self._changes:
            if self._is_closed:  # nobody would end it
                raise DeadProcess("the pool is closed")
            self._workers.append(_Worker(self._hears))
            return self._workers[-1]

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, whatever they are at."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._changes:
            self._is_closed = True
        for worker in list(self._workers):
            worker.process.terminate()
        self._threads.shutdown()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call a function of a module, as soon as a process is free."""
        return self._threads.submit(self._call, function, arguments)

    def interrupt(self) -> None:
        """Let the processes hear an interrupt that only this one may have heard.

        Those that have not begun to listen have done nothing yet: they end.
        """
        for worker in list(self._workers):
            if worker.is_listening:
                with suppress(OSError):
                    os.kill(worker.process.pid or 0, signal.SIGINT)
            else:
                worker.is_unwanted = True
                worker.process.terminate()

    def _call(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        worker: _Worker | None = self._free.get()
        try:
            with _deaf():
                worker = worker or self._start()
            is_answer, found = worker.answer(function, arguments)
        except (EOFError, OSError):
            if worker is None:
                raise
            self._workers.remove(worker)
            is_unwanted, how, worker = worker.is_unwanted, worker.buried(), None
            raise (KeyboardInterrupt if is_unwanted else DeadProcess(how)) from None
        finally:
            self._free.put(worker)
        if is_answer:
            return found  # type: ignore[no-any-return]
        raise found


class _Worker:
    """A process, and this end of its pipe."""

    def __init__(self, hears: bool) -> None:
        from multiprocessing import get_context

        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, hears), daemon=True)
        try:
            self.process.start()
        finally:
            theirs.close()  # so that the pipe ends when the process does
        self.is_listening = self.is_unwanted = False

    def answer(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Wait until it listens, then for what a call returns, or raises."""
        if not self.is_listening:
            self.pipe.recv()
            self.is_listening = True
        self.pipe.send((function, arguments))
        found: tuple[bool, Any] = self.pipe.recv()
        return found

    def buried(self) -> str:
        """Say how it died."""
        self.process.join()
        self.pipe.close()
        code = self.process.exitcode or 0
        how = f"by signal {-code}" if code < 0 else f"with exit status {code}"
        return f"its process died {how}"


def _serve(pipe: Connection[Any, Any], hears: bool) -> None:
    """Answer calls until nobody asks for more."""
    signal.signal(signal.SIGINT, _heard if hears else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    jit.compiles_ahead = False
    end_with_parent()
    with suppress(OSError):
        pipe.send("listening")
    while True:
        try:
            function, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer: tuple[bool, Any] = True, _call(function, arguments)
        except BaseException as error:  # raised again where it was called
            if not isinstance(error, LoopschedError | KeyboardInterrupt):
                error.add_note(f"in a process of a pool:\n{format_exc()}")
            # What an interrupt breaks off, such as an import, may say something else.
            answer = False, KeyboardInterrupt() if _Interrupts.has_come else error
        pipe.send(answer)


@contextmanager
def _deaf() -> Iterator[None]:
    """Let interrupts wait, also those that another thread takes: the main one answers them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    is_main, heard = threading.current_thread() is threading.main_thread(), list[int]()
    handler = signal.getsignal(signal.SIGINT)
    if is_main:
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        if is_main:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if heard:
            signal.raise_signal(signal.SIGINT)


class _Interrupts:
    """What a process of the pool has heard: an interrupt ends a call, not the process."""

    is_busy = False
    has_come = False


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
