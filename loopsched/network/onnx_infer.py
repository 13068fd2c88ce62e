"""Shape inference, one operator after the other, by ONNX's own rules.

What ONNX's rules need and do not have, numbers that the model computes from
shapes while it runs, is computed on the way (`onnx_numbers`).  Where a rule
fails, what the file itself says of a value must do.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from loopsched.network.onnx_numbers import Numbers, compute, numbers_of
from loopsched.network.onnx_operator import Flat, Operator
from loopsched.network.onnx_read import has_data, n_elements, tensor_in, whole, wholes
from loopsched.network.onnx_type import Type, type_of, type_of_tensor
from loopsched.network.operators import CONTRIBUTED, CONTROL, SAME_SHAPE, STANDARD

_MOST = 1024
_FLOAT, _INT32, _INT64, _BOOL, _HALF, _DOUBLE = 1, 6, 7, 9, 10, 11
_NUMERIC = (_FLOAT, _INT32, _INT64, _BOOL, _HALF, _DOUBLE)
_TERM = r" *(?:[A-Za-z] *)*(?:\.\.\. *)?(?:[A-Za-z] *)*"
# ONNX's own reading of any other equation may never end.
_EQUATION = re.compile(rf"{_TERM}(?:,{_TERM})*(?:->{_TERM})?")
_CONV_ATTRIBUTES = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_JOINED = ("Attention", "MultiHeadAttention")
# An operator of the standard with the same shapes: its name, inputs and attributes.
_StandIn = tuple[str, tuple[str, ...], Mapping[str, Any]]


def run_inference(
    flat: Flat,
    version: int,
    inputs: Mapping[str, Type],
    hints: Mapping[str, Type],
    values: Mapping[str, float | Sequence[float]],
) -> tuple[dict[str, Type], dict[str, int]]:
    """Find the type of every value of a flat model, and some values themselves.

    Parameters
    ----------
    flat : Flat
    version : int
        The standard's operator set that the model uses.
    inputs : mapping of str to Type
    hints : mapping of str to Type
        What the file says of other values.
    values : mapping of str to number or sequence of number
        What inputs hold.

    Returns
    -------
    dict of str to Type, dict of str to int
        Values of which nothing is known may be missing; and what the model
        asks for to decide what runs (`Flat.asked`), where it is known.
    """
    inference = _Inference(flat, version, inputs, hints)
    for name, value in values.items():
        inference.numbers[name] = numbers_of(value).reshape(inputs[name].shape or ())
    for operator in flat.operators:
        inference.infer(operator)
    return inference.types, dict(inference.answers(flat.asked))


class _Inference:
    def __init__(
        self, flat: Flat, version: int, inputs: Mapping[str, Type], hints: Mapping[str, Type]
    ) -> None:
        from onnx import helper

        self.version = version
        self.imports = [helper.make_opsetid("", version)]
        self.hints = hints
        self.types: dict[str, Type] = dict(inputs)
        self.numbers: dict[str, Numbers] = {}
        self.others: dict[str, Any] = {}
        self.seen: dict[Hashable, tuple[Type, ...]] = {}
        for name, tensor in flat.tensors.items():
            self.types[name] = type_of_tensor(tensor)
            self.note_tensor(name, tensor)

    def answers(self, asked: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Single whole numbers among those asked for."""
        for name in asked:
            found = self.numbers.get(name)
            if found is not None and found.size == 1 and isinstance(found.item(), int):
                yield name, found.item()

    def note_tensor(self, name: str, tensor: Any) -> None:
        from onnx import numpy_helper

        is_small = n_elements(tensor.dims) <= _MOST
        if not is_small or tensor.data_type not in _NUMERIC or not has_data(tensor):
            return
        try:
            found = numpy_helper.to_array(tensor)
        except Exception:  # data that do not fit the type: whatever the decoder raises
            return
        self.numbers[name] = numbers_of(found.tolist()).reshape(found.shape)

    def infer(self, operator: Operator) -> None:
        """Find the types of an operator's outputs, and their numbers if it has any."""
        found = self.merged(operator) if operator.op in CONTROL else self.by_rule(operator)
        for name in filter(None, operator.outputs):
            one = found.get(name, Type())
            hint = self.hints.get(name, Type())
            if one.shape is None and hint.dims is not None:
                one = hint if one.dims is None or hint.shape is not None else one
            if one.shape is None:
                one = Type(one.element or hint.element, one.dims, self.lost(operator))
            self.types[name] = one
        self.note_numbers(operator)
        for name in operator.outputs:
            if name in self.numbers and self.types[name].shape is None:
                self.types[name] = Type(self.types[name].element, self.numbers[name].shape)

    def lost(self, operator: Operator) -> str:
        """Say after which operator shapes are not known."""
        for name in filter(None, operator.inputs):
            one = self.types.get(name, Type())
            if one.shape is None:
                return one.lost
        return f"{operator.op} {operator.name}"

    def merged(self, operator: Operator) -> dict[str, Type]:
        """What both branches give, or a loop from first to last, if it is the same."""
        ends = [self.types.get(name, Type()) for name in operator.inputs[-2:]]
        same = len(ends) == 2 and ends[0].dims == ends[1].dims
        return {operator.outputs[0]: ends[0]} if same and operator.outputs else {}

    def joined(self, operator: Operator) -> dict[str, Type]:
        """What heads give, side by side: rows of the queries, as wide as all values."""
        known = [self.types.get(name, Type()) for name in operator.inputs[:3]]
        place = 1 if operator.op == "Attention" else 2
        if len(known) <= place or not operator.outputs:
            return {}
        rows, last = known[0].dims, (known[place].dims or (None,))[-1]
        if rows is None or len(rows) != 3 or not isinstance(last, int):
            return {}
        width = last // 3 if operator.op == "Attention" else last
        return {operator.outputs[0]: Type(known[0].element, (*rows[:2], width))}

    def by_rule(self, operator: Operator) -> dict[str, Type]:
        if operator.domain == CONTRIBUTED and operator.op in _JOINED:
            return self.joined(operator)
        stand_in = _stand_in(operator, self.version)
        if stand_in is None:
            return {}
        op, _, attributes = stand_in
        if op == "Einsum" and not _EQUATION.fullmatch(str(attributes.get("equation"))[:_MOST]):
            return {}
        is_same = operator.domain in STANDARD or op == "LSTM"
        outputs = operator.outputs if is_same else operator.outputs[:1]
        key = self.key(stand_in, len(outputs))
        found = self.seen.get(key) if key is not None else None
        if found is None:
            found = self.asked_for(stand_in, outputs)
            if key is not None and not self.others.keys() & set(outputs):
                self.seen[key] = found
        return dict(zip(outputs, found, strict=False))

    def key(self, asked: _StandIn, n_outputs: int) -> Hashable:
        """What the rule depends on; None where that is more than types and numbers."""
        op, inputs, attributes = asked
        if self.others.keys() & set(inputs):
            return None
        known = tuple(
            (bool(name), self.types.get(name), self.row(name), inputs.index(name))
            for name in inputs
        )
        key = (op, n_outputs, known, tuple(sorted(attributes.items(), key=itemgetter(0))))
        try:
            hash(key)
        except TypeError:  # tensors and graphs among the attributes
            return None
        return key

    def row(self, name: str) -> Hashable:
        found = self.numbers.get(name)
        return None if found is None else (found.shape, tuple(found.reshape(-1).tolist()))

    def asked_for(self, asked: _StandIn, outputs: Sequence[str]) -> tuple[Type, ...]:
        """Ask ONNX's own rule for the types of outputs; empty if it fails."""
        from onnx import defs, helper, shape_inference

        op, inputs, attributes = asked
        try:
            schema = defs.get_schema(op, self.version, "")
            node = helper.make_node(op, inputs, outputs)
            for name, value in attributes.items():
                if value != ():
                    node.attribute.append(helper.make_attribute(name, value))
            given = [name for name in dict.fromkeys(inputs) if name]
            found = shape_inference.infer_node_outputs(
                schema,
                node,
                {name: self.proto(name) for name in given},
                {name: self.tensor(name) for name in given if self.is_number(name)},
                opset_imports=self.imports,
            )
        except Exception:  # the library's errors have no common base but this
            return ()
        for name, proto in found.items():
            if not proto.HasField("tensor_type"):
                self.others[name] = proto
        return tuple(
            type_of(helper.make_value_info(name, found[name]), least=0) if name in found else Type()
            for name in outputs
        )

    def proto(self, name: str) -> Any:
        from onnx import helper

        if name in self.others:
            return self.others[name]
        one = self.types.get(name, Type())
        return helper.make_tensor_type_proto(one.element or _FLOAT, one.dims)

    def is_number(self, name: str) -> bool:
        found = self.numbers.get(name)
        if self.types.get(name, Type()).element not in (0, *_NUMERIC):
            return False
        return found is not None and None not in found.reshape(-1).tolist()

    def tensor(self, name: str) -> Any:
        from onnx import helper

        found = self.numbers[name]
        element = self.types.get(name, Type()).element
        kind = element if element in _NUMERIC else _INT64
        flat = found.reshape(-1).tolist()
        if kind in (_INT32, _INT64):
            flat = [int(one) for one in flat]
        return helper.make_tensor(name, kind, found.shape, flat)

    def note_numbers(self, operator: Operator) -> None:
        """Note what an operator computes from shapes and other numbers."""
        if operator.domain or not operator.outputs:
            return
        output = operator.outputs[0]
        first = self.types.get(operator.inputs[0], Type()) if operator.inputs else Type()
        if operator.op == "Constant":
            self.note_constant(output, operator.attributes)
        elif operator.op == "Shape" and first.dims is not None:
            known = [one if isinstance(one, int) else None for one in first.dims]
            start = whole(operator.attributes, "start")
            end = whole(operator.attributes, "end", len(known))
            self.numbers[output] = numbers_of(known[start:end])
        elif operator.op == "Size" and first.shape is not None:
            self.numbers[output] = numbers_of(n_elements(first.shape))
        elif operator.op == "Split":
            self.note_split(operator)
        else:
            if operator.op == "CastLike" and len(operator.inputs) == 2:
                to = self.types.get(operator.inputs[1], Type()).element
                operator = replace(
                    operator, op="Cast", inputs=operator.inputs[:1], attributes={"to": to}
                )
            given = [self.numbers.get(name) for name in operator.inputs]
            found = compute(operator, given)
            if found is not None:
                self.numbers[output] = found

    def note_split(self, operator: Operator) -> None:
        """Share numbers out as shapes already are."""
        found = self.numbers.get(operator.inputs[0]) if operator.inputs else None
        axis = whole(operator.attributes, "axis")
        shapes = [self.types.get(name, Type()).shape for name in operator.outputs]
        lengths = [shape[axis] for shape in shapes if shape and -len(shape) <= axis < len(shape)]
        if found is None or len(lengths) != len(shapes) or sum(lengths) != found.shape[axis]:
            return
        parts = np.split(found, np.cumsum(lengths[:-1]), axis)
        self.numbers.update(zip(operator.outputs, parts, strict=True))

    def note_constant(self, output: str, attributes: Mapping[str, Any]) -> None:
        tensor = tensor_in(attributes, "value")
        if tensor is not None:
            self.note_tensor(output, tensor)
        elif "value_ints" in attributes:
            self.numbers[output] = numbers_of(list(wholes(attributes, "value_ints")))
        elif isinstance(attributes.get("value_int"), int):
            self.numbers[output] = numbers_of(attributes["value_int"])
        elif isinstance(attributes.get("value_float"), float):
            self.numbers[output] = numbers_of(attributes["value_float"])


def _only(found: Mapping[str, Any], kept: Iterable[str]) -> dict[str, Any]:
    return {name: found[name] for name in kept if name in found}


def _stand_in(operator: Operator, version: int) -> _StandIn | None:
    """Say which operator of the standard has the same shapes, if there is one."""
    inputs, found = operator.inputs, operator.attributes
    if operator.domain in STANDARD:
        return operator.op, inputs, found
    if operator.domain != CONTRIBUTED:
        return None
    if operator.op in SAME_SHAPE:
        return "Identity", inputs[:1], {}
    if operator.op == "FusedConv":
        return "Conv", inputs[:3], _only(found, _CONV_ATTRIBUTES)
    if operator.op == "FusedGemm":
        return "Gemm", inputs[:3], _only(found, ("transA", "transB"))
    if operator.op == "DynamicQuantizeLSTM":
        # Weights of a byte have no place in the standard's: shapes need the input only.
        return "LSTM", inputs[:1] * 3, _only(found, ("direction", "hidden_size"))
    if operator.op in ("FusedMatMul", "TransposeMatMul"):
        left = "km" if found.get("transA") else "mk"
        right = "nk" if found.get("transB") else "kn"
        if (left, right) == ("mk", "kn"):
            return "MatMul", inputs[:2], {}
        equation = f"...{left},...{right}->...mn"
        return ("Einsum", inputs[:2], {"equation": equation}) if version >= 12 else None
    if operator.op in ("MatMulIntegerToFloat", "DynamicQuantizeMatMul"):
        return "MatMul", inputs[:2], {}
    return None
