"""Lengths for a model's open axes, and with them the types of all its values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from loopsched.base.arguments import Checker, near, show
from loopsched.base.errors import WorkloadError
from loopsched.network.onnx_infer import run_inference
from loopsched.network.onnx_operator import Flat
from loopsched.network.onnx_type import Contents, Type, symbols, type_of


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a caller says of a model's inputs.

    Parameters
    ----------
    batch : int or None
        None: 1 where the model leaves it open.
    dims : mapping of symbol to int
    inputs : mapping of input to sequence of int
        Whole shapes.
    values : mapping of input to number or sequence of number
        What inputs hold.
    """

    batch: int | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, Sequence[int]] = field(default_factory=dict)
    values: Mapping[str, Contents] = field(default_factory=dict)

    @property
    def deciding(self) -> dict[str, int | bool]:
        """Values that are one whole number: they may decide what runs."""
        return {name: one for name, one in self.values.items() if isinstance(one, int)}


def infer_types(flat: Flat, versions: Mapping[str, int], fixed: Fixed, where: str) -> Known:
    """Find the type of every value, with the symbols that are given set.

    Parameters
    ----------
    flat : Flat
    versions : mapping of domain to int
        The operator sets that the model uses.
    fixed : Fixed
    where : str
        For the head of messages.
    """
    declared = {name: type_of(value) for name, value in flat.inputs}
    inputs, dims = _shaped(declared, fixed, where)
    binding = _bind(inputs, fixed.batch, dims, where)
    bound = {name: binding.apply(name, one) for name, one in inputs.items()}
    bound |= {name: type_of(value) for name, value in flat.counters}
    hints = {name: binding.substitute(type_of(value)) for name, value in flat.hints.items()}
    if binding.is_forced:
        hints = {name: Type(one.element) for name, one in hints.items()}
    types, answers = run_inference(flat, versions[""], bound, hints, fixed.values)
    if binding.is_forced:
        _check_reshapes(flat, types, where)
    meant = f" ({binding.symbol})" if binding.symbol not in ("", "batch") else ""
    given = [f"batch {binding.batch}{meant}"] if binding.batch else []
    given += [f"{name} {length}" for name, length in fixed.dims.items() if name != binding.symbol]
    given += [f"{name} {Type(0, tuple(shape))}" for name, shape in fixed.inputs.items()]
    given += [f"{name} = {value}" for name, value in fixed.values.items()]
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


def _shaped(
    declared: Mapping[str, Type], fixed: Fixed, where: str
) -> tuple[dict[str, Type], dict[str, int]]:
    """Give inputs their shapes; return also the lengths that symbols have by that.

    A symbol that is two lengths at once says nothing: some exporters call every
    open axis the same.
    """
    check = Checker(where, WorkloadError)
    if fixed.batch is not None:
        check.count("batch", fixed.batch)
    known = symbols(declared.values())
    for name, length in fixed.dims.items():
        check.count(f"dim {show(name)}", length)
        if name not in known:
            given = near(name, known) if known else "the model's inputs have no symbols"
            check.fault(f"no symbolic length {show(name)}; {given}")
    found = dict(declared)
    meant = {name: {length} for name, length in fixed.dims.items()}
    for name, value in fixed.values.items():
        if name not in declared:
            check.fault(f"values: no input {show(name)}; {near(name, declared)}")
        else:
            found[name] = _of_value(declared[name], value, name, check)
    for name, shape in fixed.inputs.items():
        if name not in declared:
            check.fault(f"inputs: no input {show(name)}; {near(name, declared)}")
            continue
        sizes = tuple(check.count(f"{show(name)}: length", size) for size in shape)
        dims = declared[name].dims
        pairs = list(zip(dims or (), sizes, strict=False))
        is_longer = dims is not None and len(dims) != len(sizes)
        if is_longer or any(isinstance(one, int) and one != size for one, size in pairs):
            check.fault(f"{show(name)} is given {list(sizes)}; the model has {declared[name]}")
            continue
        found[name] = replace(declared[name], dims=sizes)
        for one, size in pairs:
            if isinstance(one, str):
                meant.setdefault(one, set()).add(size)
                if fixed.dims.get(one, size) != size:
                    check.fault(
                        f"{show(name)} is given {list(sizes)}; its {one} is to be {fixed.dims[one]}"
                    )
    check.finish()
    return found, {name: sizes.pop() for name, sizes in meant.items() if len(sizes) == 1}


def _of_value(declared: Type, value: Contents, name: str, check: Checker) -> Type:
    """Find the shape of an input that holds what is given: single numbers and rows."""
    row = value if isinstance(value, Sequence) else (value,)
    rank = isinstance(value, Sequence) if declared.dims is None else len(declared.dims)
    known = declared.shape
    is_fitting = len(row) == math.prod(known) if known is not None else rank == 1
    if not is_fitting:
        check.fault(f"{show(name)} is given {len(row)} values; the model has {declared}")
    return declared if known is not None else replace(declared, dims=(len(row),) * rank)


def _bind(
    inputs: Mapping[str, Type], batch: int | None, dims: Mapping[str, int], where: str
) -> _Binding:
    """Decide what stands for the batch: the first open length that an input begins with."""
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
