"""Memory that begins where lines of caches, or pages, do."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from loopsched.base.arrays import Array

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
