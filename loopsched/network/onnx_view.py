"""One ONNX operator as the builders of nests see it: shapes, widths, attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopsched.base.arguments import show
from loopsched.network.onnx_operator import Operator
from loopsched.network.onnx_read import wholes
from loopsched.network.onnx_type import Type
from loopsched.problems.problem import Problem

# An operand that comes through these, its last two axes kept, is stored as what goes in.
_THROUGH = frozenset(
    {"Cast", "DequantizeLinear", "Div", "Identity", "Mul", "QuantizeLinear", "Reshape"}
)
# What these make of a result takes its place before it is stored.
_POINTWISE = frozenset({"Add", "Clip", "Elu", "HardSwish", "LeakyRelu", "PRelu", "Relu", "Sigmoid"})
_MAX_STEPS = 8


class UnsayableError(Exception):
    """There is no nest for an operator; the message says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """A nest that an operator is, or is made of.

    Parameters
    ----------
    problem : Problem
    operands : tuple of (str, str)
        Tensor of the problem, and the value that it is.
    suffix : str
        Of the node's name, where an operator has several parts.
    count : int
        How often it runs each time the operator does.
    """

    problem: Problem
    operands: tuple[tuple[str, str], ...]
    suffix: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class View:
    """One operator with what is known of its values.

    Parameters
    ----------
    operator : Operator
    types : mapping of str to Type
    makers : mapping of str to Operator
        Which operator makes a value.
    readers : mapping of str to sequence of Operator
        Which operators read it.
    open : tuple of str
        Symbols of the model's inputs that have no length.
    """

    operator: Operator
    types: Mapping[str, Type]
    makers: Mapping[str, Operator]
    readers: Mapping[str, Sequence[Operator]]
    open: tuple[str, ...] = ()

    def name(self, i: int) -> str:
        """Name of the value that is input ``i``."""
        inputs = self.operator.inputs
        if i >= len(inputs) or not inputs[i]:
            raise UnsayableError(f"input {i} is missing")
        return inputs[i]

    def has(self, i: int) -> bool:
        """Whether input ``i`` is given."""
        return i < len(self.operator.inputs) and bool(self.operator.inputs[i])

    @property
    def output(self) -> str:
        """Name of the first output."""
        if not self.operator.outputs or not self.operator.outputs[0]:
            raise UnsayableError("it has no output")
        return self.operator.outputs[0]

    @property
    def any_output(self) -> str:
        """Name of the first output that is given."""
        return next(filter(None, self.operator.outputs), "") or self.output

    def shape(self, i: int) -> tuple[int, ...]:
        """Shape of input ``i``."""
        name = self.name(i)
        known = self.types.get(name, Type())
        if known.shape is None:
            raise UnsayableError(self._unknown(name, known))
        if 0 in known.shape:
            raise UnsayableError(f"{show(name)} has no elements: {known}")
        return known.shape

    def _unknown(self, name: str, known: Type) -> str:
        if self.open:
            given = " ".join(f"--dim {one}=N" for one in self.open[:3])
            return f"lengths are open; give {given}"
        after = f", after {known.lost[:80]}" if known.lost else ""
        return f"the shape of {show(name)} is not known: {known}{after}"

    def width(self, i: int) -> int:
        """Bytes of an element of input ``i``, as it is stored."""
        name = self.name(i)
        maker = self.makers.get(name)
        if maker is not None and maker.inputs:
            is_stored = maker.op == "Cast" and maker.inputs[0] not in self.makers
            if maker.op == "DequantizeLinear" or is_stored:
                name = maker.inputs[0]
        return self.types.get(name, Type()).element_bytes

    @property
    def output_width(self) -> int:
        """Bytes of an element of the first output, as it is stored."""
        name = self.output
        readers = self.readers.get(name, ())
        for _ in range(_MAX_STEPS):
            if len(readers) != 1 or readers[0].op not in _POINTWISE or not readers[0].outputs:
                break
            readers = self.readers.get(readers[0].outputs[0], ())
        if readers and all(one.op == "QuantizeLinear" for one in readers):
            name = next((out for out in readers[0].outputs if out), name)
        return self.types.get(name, Type()).element_bytes

    def is_transposed(self, i: int) -> bool:
        """Whether the last two axes of input ``i`` are stored the other way round.

        That is so where a transpose comes before: the product can read what
        the transpose reads.
        """
        name = self.name(i)
        last = self.shape(i)[-2:]
        maker = self.makers.get(name)
        for _ in range(_MAX_STEPS):
            if maker is None or maker.op not in _THROUGH or not maker.inputs:
                break
            before = self.types.get(maker.inputs[0], Type()).shape
            if before is None or before[-2:] != last:
                return False
            maker = self.makers.get(maker.inputs[0])
        if maker is None or maker.op != "Transpose" or not maker.outputs:
            return False
        rank = len(self.types.get(maker.outputs[0], Type()).dims or ())
        order = wholes(maker.attributes, "perm") or tuple(reversed(range(rank)))
        return len(order) == rank >= 2 and order[-2] > order[-1]

    def word(self, name: str, default: str) -> str:
        """Read an attribute that is a word."""
        value = self.operator.attributes.get(name, default)
        return value if isinstance(value, str) else default

    def integer(self, name: str, default: int) -> int:
        """Read an attribute that is a whole number."""
        value = self.operator.attributes.get(name, default)
        if not isinstance(value, int):
            raise UnsayableError(f"{name} is {show(value)}; a whole number is needed")
        return value

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Read an attribute that has one whole number for each of several axes."""
        value: Any = self.operator.attributes.get(name) or default
        is_right = isinstance(value, tuple) and all(isinstance(one, int) for one in value)
        if not is_right or len(value) != len(default):
            raise UnsayableError(
                f"{name} is {show(value)}; {len(default)} whole numbers are needed"
            )
        return tuple(value)
