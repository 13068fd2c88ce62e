"""Types of arrays, for annotations; naming them loads no NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Ids = NDArray[np.int32]
    Words = NDArray[np.uint64]
    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Bytes = NDArray[np.uint8]
    Objects = NDArray[np.object_]
    Array = NDArray[Any]
else:
    Ints = Ids = Words = Floats = Flags = Bytes = Objects = Array = Any
