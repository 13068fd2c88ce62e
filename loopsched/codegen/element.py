"""Types of elements: how they are stored, and what is computed with them."""

from __future__ import annotations

from typing import NamedTuple

from loopsched.base.errors import ProblemError
from loopsched.problems.problem import Problem


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


def type_of(problem: Problem) -> str:
    """Say of which type the tensors that a problem reads are.

    Raises
    ------
    ProblemError
        If they are of no type that is known, or of several.
    """
    sizes = {tensor.element_bytes for tensor in problem.tensors if tensor.name != problem.output}
    known = {8: "fp64", 4: "fp32", 2: "bf16", 1: "int8"}
    if len(sizes) != 1 or not sizes <= set(known):
        raise ProblemError(f"'{problem.name}': no data type has elements of {sorted(sizes)} bytes")
    return known[sizes.pop()]
