"""Single-precision arithmetic, for models whose originals compute in 32-bit floats."""

from __future__ import annotations

import math
from struct import Struct

_FLOAT = Struct("<f")
_INT32_SPAN = 1 << 32
# Two bits more than twice a float's 24: rounding twice is then rounding once.
_KEPT_BITS = 50


def single(value: int | float) -> float:
    """Round a number to the nearest 32-bit float, as a C cast does.

    One operation on 32-bit floats, computed in Python and passed through here,
    gives the bits that a C compiler's gives.

    Parameters
    ----------
    value : int or float

    Returns
    -------
    float
        Infinity where a 32-bit float overflows.

    Examples
    --------
    >>> single(0.1), single(16_777_217)
    (0.10000000149011612, 16777216.0)
    """
    if isinstance(value, int):
        value = _float_of(value)
    try:
        rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _float_of(value: int) -> float:
    """Cut an integer to what a float holds, with a sticky last bit."""
    size = abs(value)
    excess = size.bit_length() - _KEPT_BITS
    if excess <= 0:
        return float(value)
    sticky = int(size & ((1 << excess) - 1) != 0)
    try:
        kept = math.ldexp(float((size >> excess) | sticky), excess)
    except OverflowError:
        kept = math.inf
    return -kept if value < 0 else kept


def wrap_int32(value: int) -> int:
    """Reduce a whole number to what 32-bit two's complement keeps of it.

    Sums and products may be wrapped once at the end: the result is the same.

    Examples
    --------
    >>> wrap_int32(7), wrap_int32(2**31), wrap_int32(2**32 + 5)
    (7, -2147483648, 5)
    """
    low = value % _INT32_SPAN
    return low - _INT32_SPAN if low >= _INT32_SPAN // 2 else low
