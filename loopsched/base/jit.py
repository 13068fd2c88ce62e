"""Compile functions where numba may be used; run them as Python where not.

Set ``LOOPSCHED_JIT=0`` to run every kernel as plain Python: slow, but the same
numbers, and open to a debugger.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

compiles_ahead = True
"""Whether this process may compile what it can do without; commands and their helpers do not."""


def is_enabled() -> bool:
    """Whether kernels are compiled."""
    return os.environ.get("LOOPSCHED_JIT", "1") != "0"


def jit(function: F) -> F:
    """Compile a kernel to machine code, kept on disk for the next run.

    It takes numbers, arrays and named tuples of them, and returns numbers, arrays or nothing.
    Where it cannot be kept, or what was kept cannot be read, it is compiled
    again, and one line of the log ``loopsched`` says so.
    """
    if not is_enabled():
        return function
    from loopsched.base.kernel import Kernel

    return cast(F, Kernel(function))


def step(function: F) -> F:
    """Compile a step of a kernel into each kernel that calls it: nothing is handed over.

    It cannot be called from Python.
    """
    if not is_enabled():
        return function
    from loopsched.base.kernel import Step

    return cast(F, Step(function, forceinline=True))


def leaf(function: F) -> F:
    """Compile a step that makes no arrays, and calls none that does: their uses are not counted.

    It cannot be called from Python.
    """
    if not is_enabled():
        return function
    from loopsched.base.kernel import Step

    return cast(F, Step(function, forceinline=True, _nrt=False))


def part(function: F) -> F:
    """Compile a step of a kernel once, for what its annotations say, and link it to all callers.

    It takes numbers and tables, arrays of two dimensions, and cannot be called from Python.
    """
    if not is_enabled():
        return function
    from loopsched.base.kernel import Part

    return cast(F, Part(function))


def is_loaded(kernel: Any) -> bool:
    """Whether a kernel can run at once."""
    return bool(kernel.is_loaded()) if hasattr(kernel, "is_loaded") else True


def is_kept(kernel: Any) -> bool:
    """Whether a kernel, as it and what it calls are now, need not be compiled, or never is.

    Examples
    --------
    >>> is_kept(len)
    True
    """
    return bool(kernel.is_kept()) if hasattr(kernel, "is_kept") else True
