"""Compile functions where numba may be used; run them as Python where not.

Set ``LOOPSCHED_JIT=0`` to run every kernel as plain Python: slow, but the same
numbers, and open to a debugger.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def is_enabled() -> bool:
    """Whether kernels are compiled."""
    return os.environ.get("LOOPSCHED_JIT", "1") != "0"


def jit(function: F) -> F:
    """Compile a kernel to machine code, kept on disk for the next run."""
    if not is_enabled():
        return function
    import numba

    compiled: Any = numba.njit(cache=True, nogil=True)(function)
    return cast(F, compiled)
