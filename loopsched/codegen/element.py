"""Types of elements: how they are stored, and what is computed with them."""

from __future__ import annotations

from typing import NamedTuple


class Element(NamedTuple):
    """A type of stored numbers: its names in LLVM, in C and in numpy."""

    name: str
    n_bytes: int
    llvm: str
    llvm_short: str
    c: str
    numpy: str
    numpy_kinds: tuple[str, ...]
    is_integer: bool = False


FP64 = Element("fp64", 8, "double", "f64", "double", "float64", ("f8",))
FP32 = Element("fp32", 4, "float", "f32", "float", "float32", ("f4",))
BF16 = Element("bf16", 2, "i16", "i16", "unsigned short", "uint16", ("u2", "V2"))
INT8 = Element("int8", 1, "i8", "i8", "signed char", "int8", ("i1",), True)
INT32 = Element("int32", 4, "i32", "i32", "int", "int32", ("i4",), True)


class Types(NamedTuple):
    """What is read, computed with, and written."""

    read: Element
    compute: Element
    out: Element


DATA_TYPES = {
    "fp64": Types(FP64, FP64, FP64),
    "fp32": Types(FP32, FP32, FP32),
    "bf16": Types(BF16, FP32, BF16),
    "int8": Types(INT8, INT32, INT32),
}
"""Types of kernels by the type of the tensors that are read."""
