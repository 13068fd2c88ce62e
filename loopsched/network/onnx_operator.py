"""What an ONNX model is once its bodies are opened: a list of operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# How often a body runs: a number, or the length of a value along an axis.
Repeat = int | tuple[str, int]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, under names that are unique in the whole model.

    Parameters
    ----------
    name, op, domain : str
    inputs, outputs : tuple of str
        Inputs that are left out are empty.
    attributes : mapping
    repeats : tuple of Repeat
        How often it runs: the product.
    doubt : str
        Why its work, if it has any, cannot be counted.
    shown : str
        What the model calls it, where it stands for part of a loop.
    """

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    repeats: tuple[Repeat, ...] = ()
    doubt: str = ""
    shown: str = ""


@dataclass(slots=True)
class Flat:
    """A model without bodies: what `onnx_flat.flatten` returns."""

    operators: list[Operator] = field(default_factory=list)
    tensors: dict[str, Any] = field(default_factory=dict)
    inputs: list[tuple[str, Any]] = field(default_factory=list)
    # Trip numbers and conditions that bodies of loops are given.
    counters: list[tuple[str, Any]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    hints: dict[str, Any] = field(default_factory=dict)
    # Conditions and trip counts that are not known yet; shapes may say them.
    asked: list[str] = field(default_factory=list)
    # Loop, what goes in and what comes back: they must have one shape.
    carried: list[tuple[str, str, str]] = field(default_factory=list)
