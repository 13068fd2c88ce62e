"""Shapes and element types of every value of a flat model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopsched.arguments import MAX_COUNT, Checker, near, show
from loopsched.errors import WorkloadError
from loopsched.network.onnx_flat import Flat, Operator
from loopsched.network.onnx_read import has_data, text
from loopsched.network.operators import CONTRIBUTED, SAME_SHAPE, STANDARD

# A length, a symbol, or None: nothing is said.
Length = int | str | None


@dataclass(frozen=True, slots=True)
class Type:
    """What is known of a value.

    Parameters
    ----------
    element : int
        ONNX's number of the element type; 0: not known.
    dims : tuple of int, str or None; or None
        None: not even how many there are.
    """

    element: int = 0
    dims: tuple[Length, ...] | None = None

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
_FIXED = "fixed batch"
_CONV_ATTRIBUTES = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def infer_types(
    flat: Flat, versions: Mapping[str, int], batch: int | None, dims: Mapping[str, int], where: str
) -> tuple[dict[str, Type], str]:
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

    Returns
    -------
    dict of str to Type, and str
        And what was done about the batch, in words.
    """
    inputs = {name: _type_of(value) for name, value in flat.inputs}
    binding = _bind(inputs, batch, dims, where)
    bound = {name: binding.apply(name, one) for name, one in inputs.items()}
    bound |= {name: _type_of(value) for name, value in flat.counters}
    hints = {name: binding.substitute(_type_of(value)) for name, value in flat.hints.items()}
    types = _run(flat, versions, bound, {})
    useful = {
        name: one
        for name, one in hints.items()
        if one.shape is not None and types.get(name, Type()).shape is None
    }
    if useful and binding.note != _FIXED:
        types = _run(flat, versions, bound, useful)
    if binding.note == _FIXED:
        _check_reshapes(flat, types, where)
    return types, f"batch {binding.batch}" if binding.batch else ""


def symbols(types: Iterable[Type]) -> tuple[str, ...]:
    """List the symbols of types, in order."""
    found = (one for each in types for one in each.dims or () if isinstance(one, str))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Binding:
    """Lengths for symbols, and for the first axis of some inputs."""

    lengths: Mapping[str, int]
    leading: frozenset[str]
    batch: int
    note: str = ""

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
    left = [head for head in heads.values() if isinstance(head, str) and head not in dims]
    symbol = left[0] if left else None
    unnamed = frozenset(name for name, head in heads.items() if head is None)
    lengths = dict(dims)
    if symbol is not None:
        lengths[symbol] = batch or 1
    if symbol is not None or unnamed:
        return _Binding(lengths, unnamed, batch or 1)
    if batch is None:
        return _Binding(lengths, frozenset(), 0)
    first = next((head for head in heads.values() if isinstance(head, int)), None)
    if first is None:
        raise WorkloadError(f"{where}: batch is {batch}, but no input has an axis for it")
    same = frozenset(name for name, head in heads.items() if head == first)
    return _Binding(lengths, same, batch, _FIXED if first != batch else "")


def _type_of(value: Any) -> Type:
    if not value.HasField("type") or not value.type.HasField("tensor_type"):
        return Type()
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return Type(tensor.elem_type)
    return Type(tensor.elem_type, tuple(_length(one) for one in tensor.shape.dim))


def _length(dim: Any) -> Length:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if 0 < dim.dim_value < MAX_COUNT else None
    return text(dim.dim_param) or None


def _run(
    flat: Flat, versions: Mapping[str, int], inputs: Mapping[str, Type], hints: Mapping[str, Type]
) -> dict[str, Type]:
    """Let the ONNX library infer the types; it leaves out what it cannot."""
    from onnx import helper, shape_inference

    types = dict(inputs)
    initial = []
    for name, tensor in flat.tensors.items():
        types[name] = Type(tensor.data_type, tuple(int(size) for size in tensor.dims))
        if has_data(tensor):
            copy = type(tensor)()
            copy.CopyFrom(tensor)
            copy.name = name
            initial.append(copy)
    stored = {one.name for one in initial}
    produced: set[str] = set()
    nodes = []
    for operator in flat.operators:
        if not operator.why:
            made = _stand_ins(operator, versions.get("", 1))
            nodes += made
            produced |= {name for node in made for name in node.output}
    # What no known operator makes comes in from outside, if the file says what it is.
    types |= {name: one for name, one in hints.items() if name not in produced | set(types)}
    known = [name for name in hints if name in produced]
    infos = [_info(name, types[name]) for name in types if name not in stored]
    hinted = [_info(name, hints[name]) for name in known]
    graph = helper.make_graph(nodes, "graph", infos, [], initial, value_info=hinted)
    sets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    model = helper.make_model(graph, opset_imports=sets)
    try:
        inferred = shape_inference.infer_shapes(model, data_prop=True).graph.value_info
    except Exception:  # a model that the library refuses: what its own file says must do
        return {**hints, **types}
    found = {text(value.name): _type_of(value) for value in inferred}
    return {**hints, **found, **types}


def _info(name: str, one: Type) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, one.element or 1, one.dims)


def _stand_ins(operator: Operator, version: int) -> list[Any]:
    """Write an operator as nodes of the standard with the same shapes, if there are any."""
    inputs, found = operator.inputs, operator.attributes
    if operator.domain in STANDARD:
        return [_node(operator, operator.op, inputs, found)]
    if operator.domain != CONTRIBUTED:
        return []
    if operator.op in SAME_SHAPE:
        return [_node(operator, "Identity", inputs[:1], {})]
    if operator.op == "FusedConv":
        return [_node(operator, "Conv", inputs[:3], _only(found, _CONV_ATTRIBUTES))]
    if operator.op == "FusedGemm":
        return [_node(operator, "Gemm", inputs[:3], _only(found, ("transA", "transB")))]
    if operator.op in ("FusedMatMul", "TransposeMatMul"):
        flags = bool(found.get("transA")), bool(found.get("transB"))
        if not any(flags):
            return [_node(operator, "MatMul", inputs[:2], {})]
        if version < 12:
            return []
        left, right = "km" if flags[0] else "mk", "nk" if flags[1] else "kn"
        return [_node(operator, "Einsum", inputs[:2], {"equation": f"...{left},...{right}->...mn"})]
    if operator.op in ("MatMulIntegerToFloat", "DynamicQuantizeMatMul"):
        return [_node(operator, "MatMul", inputs[:2], {})]
    if operator.op == "QLinearConv":
        return [_node(operator, "QLinearConv", inputs, found)]
    if operator.op in ("Attention", "MultiHeadAttention"):
        return [_node(operator, "Identity", inputs[:1], {})]
    return []


def _only(found: Mapping[str, Any], kept: Iterable[str]) -> dict[str, Any]:
    return {name: found[name] for name in kept if name in found}


def _node(operator: Operator, op: str, inputs: Sequence[str], found: Mapping[str, Any]) -> Any:
    from onnx import helper

    outputs = operator.outputs[:1] if operator.domain else operator.outputs
    node = helper.make_node(op, list(inputs), list(outputs))
    for name, value in found.items():
        if value != ():
            node.attribute.append(helper.make_attribute(name, value))
    return node


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
    if faults:
        raise WorkloadError.joined(where, faults[:5])
