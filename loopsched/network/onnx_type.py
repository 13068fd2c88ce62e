"""What is known of a value of an ONNX model: element type and shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from loopsched.base.arguments import MAX_COUNT
from loopsched.network.onnx_read import text

# A length, a symbol, or None: nothing is said.
Length = int | str | None
# What an input holds: one number, or a row of them.
Contents = float | Sequence[float]


@dataclass(frozen=True, slots=True)
class Type:
    """What is known of a value.

    Parameters
    ----------
    element : int
        ONNX's number of the element type; 0: not known.
    dims : tuple of int, str or None; or None
        None: not even how many there are.
    lost : str
        The operator after which the shape is not known.
    """

    element: int = 0
    dims: tuple[Length, ...] | None = None
    lost: str = ""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The lengths, if all of them are known."""
        if self.dims is None:
            return None
        known = tuple(one for one in self.dims if isinstance(one, int))
        return known if len(known) == len(self.dims) else None

    @property
    def element_bytes(self) -> int:
        """Bytes of an element; those below one byte count as one, unknown ones as 4.

        Examples
        --------
        >>> Type(10).element_bytes, Type(3).element_bytes, Type().element_bytes
        (2, 1, 4)
        """
        return _BYTES.get(self.element, 4)

    def __str__(self) -> str:
        if self.dims is None:
            return "of unknown rank"
        return "[" + ", ".join("?" if one is None else str(one) for one in self.dims) + "]"


# By TensorProto.DataType: float, uint8, int8, uint16, int16, int32, int64, string, bool, float16,
# double, uint32, uint64, complex64, complex128, bfloat16, then the eight-bit floats and narrower.
_BYTES = {
    1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 8, 15: 16,
    16: 2, **dict.fromkeys(range(17, 40), 1),
}  # fmt: skip


def symbols(types: Iterable[Type]) -> tuple[str, ...]:
    """List the symbols of types, in order."""
    found = (one for each in types for one in each.dims or () if isinstance(one, str))
    return tuple(dict.fromkeys(found))


def type_of(value: Any, least: int = 1) -> Type:
    """Read the type of a value from an ``onnx.ValueInfoProto``.

    Parameters
    ----------
    value : onnx.ValueInfoProto
    least : int
        A length below is not known: files write 0, or -1, where they do not know.
    """
    if not value.HasField("type") or not value.type.HasField("tensor_type"):
        return Type()
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return Type(tensor.elem_type)
    return Type(tensor.elem_type, tuple(_length(one, least) for one in tensor.shape.dim))


def _length(dim: Any, least: int) -> Length:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if least <= dim.dim_value < MAX_COUNT else None
    return text(dim.dim_param) or None


def type_of_tensor(tensor: Any) -> Type:
    """Read the type of an ``onnx.TensorProto``; a length that cannot be is not known."""
    dims = tuple(int(size) if 0 <= size < MAX_COUNT else None for size in tensor.dims)
    return Type(tensor.data_type, dims)
