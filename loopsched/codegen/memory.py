"""Memory that begins where lines of caches, or pages, do."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from loopsched.base.arrays import Array
from loopsched.base.errors import ProblemError
from loopsched.base.units import scaled

LINE, PAGE = 64, 4096


def aligned(
    shape: tuple[int, ...], dtype: Any, to: int = LINE, new: Callable[..., Array] = np.empty
) -> Array:
    """Give an array whose first element lies at a multiple of so many bytes.

    NumPy's own lie at multiples of 16: vectors of 32 and 64 bytes cross lines.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
    to : int, bytes
    new : callable
        `numpy.empty`, or `numpy.zeros`.

    Examples
    --------
    >>> one = aligned((3, 5), np.float32)
    >>> one.shape, one.ctypes.data % 64
    ((3, 5), 0)
    """
    kind = np.dtype(dtype)
    n_bytes = prod(shape) * kind.itemsize
    raw = new(n_bytes + to, np.uint8)
    first = -raw.ctypes.data % to
    found: Array = raw[first : first + n_bytes].view(kind).reshape(shape)
    return found


def refuse_more(problem: str, what: str, n_bytes: int) -> None:
    """Refuse what this machine has no memory for.

    Raises
    ------
    ProblemError
        If it takes more.

    Examples
    --------
    >>> refuse_more("one", "its arrays", 10**18)
    Traceback (most recent call last):
        ...
    loopsched.base.errors.ProblemError: 'one': its arrays take 1,000 PB; this machine has ...
    """
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if n_bytes > there:
        raise ProblemError(
            f"'{problem}': {what} take {scaled(n_bytes, 'B')}; this machine has "
            f"{scaled(there, 'B')}"
        )
