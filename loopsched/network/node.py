"""Operators, the values that they pass on, and the windows that they read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from loopsched.problems.problem import Problem

Role = Literal["layer", "vector", "shape", "unsupported"]


@dataclass(frozen=True, slots=True)
class Window:
    """How outputs along one axis reach into the input: of a convolution or a pooling.

    Parameters
    ----------
    read, made : int
        Stored positions of the input; positions of the output.
    taps, stride, dilation, before : int
        Filter or window size; its steps; padding in front.

    Examples
    --------
    >>> bin(Window(read=8, made=4, taps=3, stride=2, dilation=1, before=1).reach(1))
    '0b1110'
    """

    read: int
    made: int
    taps: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0

    def reach(self, position: int) -> int:
        """Mark the stored positions that one output position reads, as bits."""
        first = position * self.stride - self.before
        skipped = max(0, -(first // self.dilation))
        end = min(self.read, first + (self.taps - 1) * self.dilation + 1)
        places = range(first + skipped * self.dilation, end, self.dilation)
        return sum(1 << place for place in places)


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that operators pass on.

    Parameters
    ----------
    name : str
        Unique in its network.
    shape : tuple of int or None
        None: not known.
    element_bytes : int, bytes
    is_weight : bool
        Whether it is stored with the model, as a parameter.

    Examples
    --------
    >>> Value("x", (8, 128), element_bytes=2).size_bytes
    2048
    """

    name: str
    shape: tuple[int, ...] | None = None
    element_bytes: int = 4
    is_weight: bool = False

    @property
    def size_elems(self) -> int | None:
        """Elements; None if the shape is not known."""
        return None if self.shape is None else math.prod(self.shape)

    @property
    def size_bytes(self) -> int | None:
        """Bytes; None if the shape is not known."""
        size = self.size_elems
        return None if size is None else size * self.element_bytes


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of a network.

    Parameters
    ----------
    name : str
        Unique in its network.
    op : str
        What the model calls the operator, such as ``Conv``.
    problem : Problem or None
        The loop nest of an operator that multiplies and accumulates.
    inputs, outputs : tuple of str
        Names of values.
    operands : tuple of (str, str)
        Tensor of the problem, and the value that it is.
    count : int
        How often it runs: more than once in the body of a loop.
    role : {'layer', 'vector', 'shape', 'unsupported'}
        ``layer``: has a problem.  ``vector``: passes over its data without a nest of
        products (activations, pooling, normalisation).  ``shape``: only moves, names or
        makes data.  ``unsupported``: has work that no nest expresses; ``why`` says why.  By
        default what the others imply.
    why : str
    windows : tuple of Window or None
        Of poolings, and of means and sums over axes: what an output reads, one
        for each axis of the first input; None: its own position.  Empty: not
        known, or nothing of the kind.

    Examples
    --------
    >>> Node("relu", "Relu", None, ("x",), ("y",)).role
    'vector'
    """

    name: str
    op: str
    problem: Problem | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operands: tuple[tuple[str, str], ...] = ()
    count: int = 1
    role: Role | Literal[""] = ""
    why: str = ""
    windows: tuple[Window | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.role:
            implied: Role = "unsupported" if self.why else "vector"
            object.__setattr__(self, "role", "layer" if self.problem is not None else implied)

    @property
    def is_layer(self) -> bool:
        """Whether there is a loop nest."""
        return self.problem is not None

    @property
    def macs(self) -> int:
        """Multiply-accumulates of every run; 0 without a nest."""
        return self.count * self.problem.macs if self.problem is not None else 0
