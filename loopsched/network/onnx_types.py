"""Lengths for a model's open axes, and with them the types of all its values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from loopsched.base.arguments import Checker, near, show
from loopsched.base.errors import WorkloadError
from loopsched.network.onnx_infer import run_inference
from loopsched.network.onnx_operator import Flat
from loopsched.network.onnx_type import Type, symbols, type_of


def infer_types(
    flat: Flat, versions: Mapping[str, int], batch: int | None, dims: Mapping[str, int], where: str
) -> Known:
    """Find the type of every value, with the symbols that are given set.

    Parameters
    ----------
    flat : Flat
    versions : mapping of domain to int
        The operator sets that the model uses.
    batch : int or None
        None: 1 where the model leaves it open.
    dims : mapping of symbol to int
    where : str
        For the head of messages.
    """
    inputs = {name: type_of(value) for name, value in flat.inputs}
    binding = _bind(inputs, batch, dims, where)
    bound = {name: binding.apply(name, one) for name, one in inputs.items()}
    bound |= {name: type_of(value) for name, value in flat.counters}
    hints = {name: binding.substitute(type_of(value)) for name, value in flat.hints.items()}
    if binding.is_forced:
        hints = {name: Type(one.element) for name, one in hints.items()}
    types, answers = run_inference(flat, versions[""], bound, hints)
    if binding.is_forced:
        _check_reshapes(flat, types, where)
    meant = f" ({binding.symbol})" if binding.symbol not in ("", "batch") else ""
    given = [f"batch {binding.batch}{meant}"] if binding.batch else []
    given += [f"{name} {length}" for name, length in dims.items() if name != binding.symbol]
    return Known(types, symbols(bound.values()), ", ".join(given), answers)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the values of a model.

    Parameters
    ----------
    types : mapping of str to Type
    open : tuple of str
        Symbols of the inputs that have no length.
    note : str
        The lengths that symbols were given, in words.
    numbers : mapping of str to int
        Values that decide what runs.
    """

    types: Mapping[str, Type]
    open: tuple[str, ...] = ()
    note: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Binding:
    """Lengths for symbols, and for the first axis of some inputs."""

    lengths: Mapping[str, int]
    leading: frozenset[str]
    batch: int
    symbol: str = ""
    is_forced: bool = False

    def substitute(self, one: Type) -> Type:
        if one.dims is None:
            return one
        known = self.lengths
        dims = tuple(known.get(each, each) if isinstance(each, str) else each for each in one.dims)
        return Type(one.element, dims)

    def apply(self, name: str, one: Type) -> Type:
        one = self.substitute(one)
        if name in self.leading and one.dims:
            return Type(one.element, (self.batch, *one.dims[1:]))
        return one


def _bind(
    inputs: Mapping[str, Type], batch: int | None, dims: Mapping[str, int], where: str
) -> _Binding:
    """Decide what stands for the batch: the first open length that an input begins with."""
    check = Checker(where, WorkloadError)
    if batch is not None:
        batch = check.count("batch", batch)
    known = symbols(inputs.values())
    for name, length in dims.items():
        check.count(f"dim {show(name)}", length)
        if name not in known:
            given = near(name, known) if known else "the model's inputs have no symbols"
            check.fault(f"no symbolic length {show(name)}; {given}")
    check.finish()
    heads = {name: one.dims[0] for name, one in inputs.items() if one.dims}
    symbol = next((head for head in heads.values() if isinstance(head, str)), None)
    unnamed = frozenset(name for name, head in heads.items() if head is None)
    lengths = dict(dims)
    if symbol is not None:
        if batch is not None and dims.get(symbol, batch) != batch:
            raise WorkloadError(
                f"{where}: batch is {batch}, and dim {show(symbol)}, which is the batch, is "
                f"{dims[symbol]}"
            )
        lengths.setdefault(symbol, batch or 1)
        return _Binding(lengths, unnamed, lengths[symbol], symbol)
    if unnamed:
        return _Binding(lengths, unnamed, batch or 1)
    if batch is None:
        return _Binding(lengths, frozenset(), 0)
    first = next((head for head in heads.values() if isinstance(head, int)), None)
    if first is None:
        raise WorkloadError(f"{where}: batch is {batch}, but no input has an axis for it")
    same = frozenset(name for name, head in heads.items() if head == first)
    return _Binding(lengths, same, batch, is_forced=first != batch)


def _check_reshapes(flat: Flat, types: Mapping[str, Type], where: str) -> None:
    """Refuse a batch that the model's own constants contradict."""
    faults = []
    for operator in flat.operators:
        if operator.op != "Reshape" or not operator.inputs or not operator.outputs:
            continue
        before = types.get(operator.inputs[0], Type()).shape
        after = types.get(operator.outputs[0], Type()).shape
        if before and after and math.prod(before) != math.prod(after):
            faults.append(
                f"{operator.name[:80]} makes {list(after)} of {list(before)}: the model is for "
                "one batch; export it with an open one"
            )
    WorkloadError.refuse(where, faults[:5])
