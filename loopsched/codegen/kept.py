"""Machine code of programs: compiled piece by piece, and kept in files with what was chosen."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.thread import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from hashlib import sha256
from itertools import accumulate, pairwise
from pathlib import Path
from threading import RLock

from loopsched.base.files import cache_folder
from loopsched.base.machine_code import host_name, object_code
from loopsched.codegen.plan import Plan, listed
from loopsched.codegen.threads import n_cpus

_MOST_KEPT = 500
"""Files of machine code; the oldest are let go."""
BUILDING = RLock()
"""Held while a kernel is built: a process that is forked meanwhile would find it half built."""
_TURN_S = 0.001
"""How long, at most, Python lets a thread go on while others wait, until all is built.

Threads that compile ask for Python's lock some twenty times a module.  At Python's own 5 ms a
module took 0.15 s while plans were counted, and not 0.02.
"""
Note = tuple[float, bool, Plan]
"""The seconds of a choice, whether it exchanges the operands, and its plan."""


def kept(
    what: str, program: Callable[[], Iterable[str]], notes: list[Note] | None = None
) -> tuple[bytes, ...]:
    """Read machine code that is kept of something; or compile its program, and keep it.

    With it ``notes`` are kept that the program makes while it is written.
    """
    key = sha256(f"{host_name()} {what}".encode()).hexdigest()
    notes = [] if notes is None else notes
    found = _read(key)
    if found is not None:
        notes += found[0]
        return found[1]
    binaries = _side_by_side(program())
    _keep(key, notes, binaries)
    return binaries


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Python's threads take short turns, and its search for cycles rest, until all is built.

    That search looks at all objects of the process, again and again while plans are counted.
    One thread at a time holds `BUILDING`, and restores what it found.
    """
    turn, is_searching = sys.getswitchinterval(), gc.isenabled()
    try:
        sys.setswitchinterval(min(turn, _TURN_S))
        gc.disable()
        yield
    finally:
        try:
            sys.setswitchinterval(turn)
        finally:
            if is_searching:
                gc.enable()


def _side_by_side(texts: Iterable[str]) -> tuple[bytes, ...]:
    """Compile modules, some at a time, while more are written."""
    one = partial(object_code, waits=False)
    with BUILDING, _undisturbed(), ThreadPoolExecutor(n_cpus()) as threads:

        def begun(text: str) -> Callable[[], bytes]:
            try:
                return threads.submit(one, text).result
            except RuntimeError:  # no thread can be started
                return partial(one, text)

        try:
            return tuple(made() for made in [begun(text) for text in texts])
        finally:
            threads.shutdown(cancel_futures=True)


@lru_cache(maxsize=1)
def generator() -> str:
    """Sum up the code that writes and compiles kernels."""
    package = Path(__file__).parents[1]
    sources = [package / "base/machine_code.py", *sorted(package.glob("codegen/*.py"))]
    return sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()


@lru_cache(maxsize=1)
def _folder() -> Path | None:
    given = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(given, "loopsched") if given else cache_folder()
    return folder and folder / "kernels"


def _read(key: str) -> tuple[list[Note], tuple[bytes, ...]] | None:
    folder = _folder()
    if folder is None:
        return None
    with suppress(OSError):
        data = (folder / f"{key}.o").read_bytes()
        if sha256(data[32:]).digest() == data[:32]:
            head, _, rest = data[32:].partition(b"\n")
            sizes, notes = json.loads(head)
            ends = [0, *accumulate(sizes)]
            binaries = tuple(rest[start:end] for start, end in pairwise(ends))
            return [
                (seconds, is_swapped, listed(one)) for seconds, is_swapped, one in notes
            ], binaries
    return None


def _keep(key: str, notes: Sequence[Note], binaries: tuple[bytes, ...]) -> None:
    folder = _folder()
    if folder is None:
        return
    part = folder / f"{key}.{os.getpid()}"
    head = json.dumps([[len(one) for one in binaries], notes])
    data = head.encode() + b"\n" + b"".join(binaries)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(sha256(data).digest() + data)
        part.replace(folder / f"{key}.o")
        # With parts of files that processes left which were killed.
        files = sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime)
        for old in files[: max(0, len(files) - _MOST_KEPT)]:
            old.unlink(missing_ok=True)
    with suppress(OSError):  # what a full disk took half of
        part.unlink()


if hasattr(os, "register_at_fork"):  # after the pool and LLVM, whose locks are taken meanwhile
    os.register_at_fork(
        before=BUILDING.acquire,
        after_in_parent=BUILDING.release,
        after_in_child=BUILDING.release,
    )
