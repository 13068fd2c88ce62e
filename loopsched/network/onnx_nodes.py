"""Nodes of a network out of ONNX operators: nests where they have work, roles where not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from loopsched.base.arguments import MAX_COUNT, MAX_NAME, is_text, show
from loopsched.base.errors import InputError
from loopsched.network import onnx_composites, onnx_convolutions, onnx_products
from loopsched.network.graph import Network
from loopsched.network.node import Node, Role, Value
from loopsched.network.onnx_operator import Flat, Operator
from loopsched.network.onnx_type import Type
from loopsched.network.onnx_types import Known
from loopsched.network.onnx_view import Part, UnsayableError, View
from loopsched.network.onnx_windows import windows_of
from loopsched.network.operators import CONTRIBUTED, role_of
from loopsched.problems.problem import Problem

Builder = Callable[[View], list[Part]]

_STANDARD: Mapping[str, Builder] = {
    "Attention": onnx_composites.attention,
    "Conv": onnx_convolutions.convolution,
    "ConvInteger": onnx_convolutions.convolution,
    "ConvTranspose": onnx_convolutions.transposed_convolution,
    "Einsum": onnx_products.contraction,
    "GRU": onnx_composites.recurrent,
    "Gemm": onnx_products.general_product,
    "LSTM": onnx_composites.recurrent,
    "MatMul": onnx_products.product,
    "MatMulInteger": onnx_products.product,
    "QLinearConv": lambda view: onnx_convolutions.convolution(view, 3),
    "QLinearMatMul": lambda view: onnx_products.product(view, 3),
    "RNN": onnx_composites.recurrent,
}
_CONTRIBUTED: Mapping[str, Builder] = {
    "Attention": onnx_composites.packed_attention,
    "DynamicQuantizeLSTM": onnx_composites.recurrent,
    "DynamicQuantizeMatMul": onnx_products.product,
    "FusedConv": onnx_convolutions.convolution,
    "FusedGemm": onnx_products.general_product,
    "FusedMatMul": onnx_products.product,
    "MatMulIntegerToFloat": onnx_products.product,
    "MultiHeadAttention": onnx_composites.multi_head_attention,
    "QGemm": lambda view: onnx_products.general_product(view, 3),
    "TransposeMatMul": onnx_products.product,
}
# Element types of numbers that say positions and choices, not weights: int64, string, bool.
_NOT_WEIGHTS = (7, 8, 9)
_ONE = ((), (1,))


def network_of(flat: Flat, known: Known, name: str, source: str) -> Network:
    """Build the network of a flat model whose types are known."""
    return _Builder(flat, known).network(name, source)


class _Names:
    """Names as short printable lines, still unique."""

    def __init__(self) -> None:
        self.short: dict[str, str] = {}
        self.long: dict[str, str] = {}
        self.last: dict[str, int] = {}

    def of(self, name: str) -> str:
        if name not in self.short:
            wanted = name if is_text(name) else repr(name)[1:-1]
            short = base = wanted[: MAX_NAME - 10] or "unnamed"
            while short in self.long:
                self.last[base] = self.last.get(base, 1) + 1
                short = f"{base} #{self.last[base]}"
            self.short[name] = short
            self.long[short] = name
        return self.short[name]


class _Builder:
    """Turns a flat model with types into a network."""

    def __init__(self, flat: Flat, known: Known) -> None:
        self.flat = flat
        self.types = known.types
        self.open = known.open
        self.makers = {name: one for one in flat.operators for name in one.outputs if name}
        self.readers: dict[str, list[Operator]] = {}
        for operator in flat.operators:
            for name in operator.inputs:
                self.readers.setdefault(name, []).append(operator)
        self.changing = self._changing()
        self.value_names, self.node_names = _Names(), _Names()
        self.made: set[str] = set()
        self.parts: dict[str, Value] = {}

    def network(self, name: str, source: str) -> Network:
        nodes = tuple(node for one in self.flat.operators for node in self.nodes(one))
        used = [each for node in nodes for each in (*node.inputs, *node.outputs)]
        inputs = [self.value_names.of(each) for each, _ in self.flat.inputs]
        outputs = [self.value_names.of(each) for each in dict.fromkeys(self.flat.outputs)]
        values = tuple(
            self.parts.get(each) or self.value(each)
            for each in dict.fromkeys([*inputs, *used, *outputs])
        )
        title = name if is_text(name) else "network"
        return Network(title, nodes, values, tuple(inputs), tuple(outputs), source)

    def value(self, short: str) -> Value:
        name = self.value_names.long[short]
        one = self.types.get(name, Type())
        maker = self.makers.get(name)
        is_stored = name in self.flat.tensors or (maker is not None and maker.op == "Constant")
        # One number alone is a constant of the computation, such as a scale or a bound.
        is_weight = is_stored and one.element not in _NOT_WEIGHTS and one.dims not in _ONE
        return Value(short, one.shape, one.element_bytes, is_weight)

    def nodes(self, operator: Operator) -> Iterable[Node]:
        # What waits for itself reads only what is there already.
        given = [
            name
            for name in dict.fromkeys(operator.inputs)
            if name and (name in self.made or name not in self.makers)
        ]
        inputs = [self.value_names.of(name) for name in given]
        made = [name for name in dict.fromkeys(operator.outputs) if name]
        outputs = [self.value_names.of(name) for name in made]
        self.made |= set(made)
        count = self.count(operator)
        parts, role, why = self.judge(operator, count)
        operands = {self.value_names.of(name) for part in parts for _, name in part.operands}
        others = [name for name in inputs if name not in operands]
        for part in parts:
            own = inputs if not part.suffix else others
            yield self.node(operator, part, own, outputs, count or 1)
        if not parts:
            yield Node(
                self.node_names.of(operator.name),
                operator.shown or operator.op[:60],
                None,
                tuple(inputs),
                tuple(outputs),
                count=count or 1,
                role=role,
                why=why,
                windows=windows_of(self.view(operator)) if role == "vector" else (),
            )

    def judge(self, operator: Operator, count: int | None) -> tuple[list[Part], Role, str]:
        """Find the nests of an operator; if there are none, its role, and why."""
        if operator.shown:
            return [], "shape", ""
        table = {"": _STANDARD, CONTRIBUTED: _CONTRIBUTED}.get(operator.domain, {})
        builder = table.get(operator.op)
        if builder is None:
            role, why = role_of(operator.op, operator.domain)
            return [], role, operator.doubt if role == "unsupported" and operator.doubt else why
        if operator.doubt:
            return [], "unsupported", operator.doubt
        if count is None:
            return [], "unsupported", "how often its loop runs is not known"
        if not 0 < count < MAX_COUNT:
            return [], "unsupported", f"its loop runs {show(count)} times"
        changed = [body for body in self.changing if operator.name.startswith(body)]
        if changed:
            why = f"in the loop {changed[0][:60]!r} shapes change from step to step"
            return [], "unsupported", why
        try:
            found = builder(self.view(operator))
        except UnsayableError as error:
            return [], "unsupported", str(error)
        except InputError as error:
            return [], "unsupported", error.problems[0]
        if not found:
            return [], "vector", ""
        if max(count * part.count for part in found) >= MAX_COUNT:
            return [], "unsupported", "it runs more than 2**60 times"
        return found, "layer", ""

    def view(self, operator: Operator) -> View:
        return View(operator, self.types, self.makers, self.readers, self.open)

    def count(self, operator: Operator) -> int | None:
        """How often an operator runs; None if a loop's length is not known."""
        lengths: list[int] = []
        for repeat in operator.repeats:
            if isinstance(repeat, int):
                lengths.append(repeat)
                continue
            name, axis = repeat
            shape = self.types.get(name, Type()).shape
            if shape is None or not -len(shape) <= axis < len(shape):
                return None
            lengths.append(shape[axis])
        return math.prod(lengths)

    def node(
        self, operator: Operator, part: Part, inputs: list[str], outputs: list[str], count: int
    ) -> Node:
        """Make a node of one nest; between several of one operator are values of their own."""
        own = f"{operator.name}/{part.suffix}" if part.suffix else operator.name
        operands = tuple((tensor, self.value_names.of(name)) for tensor, name in part.operands)
        name = self.node_names.of(own)
        problem = part.problem.renamed(name)
        written = next(value for tensor, value in operands if tensor == problem.output)
        if part.suffix:
            read = [value for tensor, value in operands if tensor != problem.output]
            if written not in outputs:
                inputs, outputs = [], [written]
                self.parts.setdefault(written, _part_value(problem, written))
            inputs = list(dict.fromkeys([*read, *inputs]))
        return Node(
            name,
            operator.shown or operator.op,
            problem,
            tuple(inputs),
            tuple(outputs),
            operands,
            count * part.count,
        )

    def _changing(self) -> list[str]:
        """Bodies of loops that give back other shapes than they are given."""
        found = []
        for body, start, result in self.flat.carried:
            before, after = self.types.get(start, Type()), self.types.get(result, Type())
            if before.shape and after.shape and before.shape != after.shape:
                found.append(body)
        return list(dict.fromkeys(found))


def _part_value(problem: Problem, name: str) -> Value:
    tensor = problem.output_tensor
    shape = tuple(problem.size[dim] for dim in tensor.dims)
    return Value(name, shape, tensor.element_bytes)
