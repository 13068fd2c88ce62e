"""Steps of kernels on axes of two dimensions, at ``first + c1*i + c2*j``."""

from __future__ import annotations

from loopsched.base.jit import step


@step
def stretch_count(first: int, width: int, size: int) -> int:
    """Count the positions of an unbroken stretch that are stored; size -1: all of them."""
    if size < 0:
        return width
    return max(0, min(size, first + width) - max(0, first))


@step
def is_unbroken(c1: int, n1: int, c2: int, n2: int) -> bool:
    """Whether ``c1*i + c2*j`` takes every value between its ends."""
    if n1 == 1 and n2 == 1:
        return True
    if n1 == 1:
        return c2 == 1
    if n2 == 1:
        return c1 == 1
    if c2 == 1 and c1 <= n2:
        return True
    return c1 == 1 and c2 <= n1
