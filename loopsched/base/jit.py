"""Compile functions where numba may be used; run them as Python where not.

Set ``LOOPSCHED_JIT=0`` to run every kernel as plain Python: slow, but the same
numbers, and open to a debugger.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast
from zlib import crc32

F = TypeVar("F", bound=Callable[..., Any])


def is_enabled() -> bool:
    """Whether kernels are compiled."""
    return os.environ.get("LOOPSCHED_JIT", "1") != "0"


def jit(function: F) -> F:
    """Compile a kernel to machine code, kept on disk for the next run.

    Where it cannot be kept, or what was kept cannot be read, it is compiled
    again, and one line of the log ``loopsched`` says so.
    """
    if not is_enabled():
        return function
    import numba

    compiled: Any = numba.njit(nogil=True)(function)
    try:
        compiled._cache = _cache_type()(function)
    except (OSError, RuntimeError):  # numba finds no folder that it may write to
        _say("kernels cannot be kept: no folder can be written to; set NUMBA_CACHE_DIR")
    return cast(F, compiled)


def step(function: F) -> F:
    """Compile a step of a kernel into each kernel that calls it: nothing is handed over.

    It cannot be called from Python.
    """
    if not is_enabled():
        return function
    import numba

    njit: Any = numba.njit
    inlined = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, njit(nogil=True, **inlined)(function))


def is_kept(kernel: Any) -> bool:
    """Whether a kernel need not be compiled: it was, since its file changed, or never is.

    Examples
    --------
    >>> is_kept(len)
    True
    """
    if not hasattr(kernel, "py_func"):
        return True
    source, folder = Path(kernel.py_func.__code__.co_filename), kernel.stats.cache_path
    if folder is None:
        return bool(kernel.signatures)
    built = [one.stat().st_mtime for one in Path(folder).glob(f"{source.stem}.{kernel.__name__}*")]
    return max(built, default=0.0) >= source.stat().st_mtime


@lru_cache(maxsize=1)
def _say(message: str) -> None:
    """Say something, once."""
    logging.getLogger("loopsched").warning("%s; they are compiled again each time", message)


def _prepare(target_context: Any) -> None:
    """Set up what kept kernels call; what compiling needs besides takes as long as a search."""
    try:
        from numba.core.runtime.nrt import rtsys

        rtsys.initialize(target_context)
    except Exception:  # another numba: all that it knows of
        target_context.refresh()


@lru_cache(maxsize=1024)
def _called_by(function: Callable[..., Any]) -> int:
    """Sum up the kernels that one calls, and their constants: they may be of other files."""
    digest, todo, seen = 0, [function], {function}
    while todo:
        one = todo.pop()
        code, around = one.__code__, one.__globals__
        spaces = [
            around,
            *(vars(x) for x in map(around.get, code.co_names) if isinstance(x, ModuleType)),
        ]
        known = [space[name] for name in code.co_names for space in spaces if name in space]
        called = [x.py_func for x in known if hasattr(x, "py_func")]
        constants = [x for x in (*known, *code.co_consts) if isinstance(x, (int, float, str))]
        digest = crc32(code.co_code + repr(constants).encode(), digest)
        todo += [x for x in dict.fromkeys(called) if x not in seen]
        seen |= {*called}
    return digest


@lru_cache(maxsize=1)
def _cache_type() -> Any:
    from numba.core.caching import FunctionCache

    base: Any = FunctionCache

    class MendingCache(base):  # type: ignore[misc]
        """Kept kernels; what is broken is dropped, what cannot be kept is not."""

        def _index_key(self, sig: Any, codegen: Any) -> Any:
            return (*super()._index_key(sig, codegen), _called_by(self._py_func))

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                _prepare(target_context)
                return self._load_overload(sig, target_context)
            except Exception:  # unpickling broken bytes may raise anything
                self._forget()
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except OSError as error:
                _say(f"kernels cannot be kept in {self.cache_path}: {error.strerror}")
                self.disable()

        def _forget(self) -> None:
            try:
                self.flush()
            except OSError:
                self.disable()

    return MendingCache
