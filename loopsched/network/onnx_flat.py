"""One flat list of operators out of an ONNX graph: loops and branches are opened.

The body of a loop stands in the list once, with its trip count; so does the
branch that a constant condition takes.  Where the model does not say which
branch runs, or how often, the operators carry that doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from loopsched.base.errors import WorkloadError
from loopsched.network.onnx_operator import Flat, Operator, Repeat
from loopsched.network.onnx_order import inner_nodes, ordered
from loopsched.network.onnx_read import attributes, graph_in, scalar, tensor_in, text, whole, wholes
from loopsched.network.operators import CONTROL, STANDARD, role_of

# Functions that call others twice and again make more operators than anybody can read.
_MOST_OPERATORS = 1_000_000
# A number goes through these as it is.
_PASSING = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def flatten(model: Any, numbers: Mapping[str, int | bool] | None = None) -> Flat:
    """Write a model's graph as one list of operators, producers before consumers.

    Parameters
    ----------
    model : onnx.ModelProto
    numbers : mapping of str to int or bool, optional
        Values that are known besides those that the model holds.

    Raises
    ------
    WorkloadError
        If functions that call functions make too many operators.
    """
    versions = [one.version for one in model.opset_import if text(one.domain) in STANDARD]
    flattener = _Flattener(int(versions[0]) if versions else 1, numbers or {})
    return flattener.whole(_inlined(model).graph)


def _inlined(model: Any) -> Any:
    """Replace calls of the model's own functions by what they do.

    Raises
    ------
    WorkloadError
        If that makes too many operators.
    """
    if not model.functions:
        return model
    from onnx import inliner

    try:
        count = _n_inlined(model)
    except CycleError:
        return model
    if count > _MOST_OPERATORS:
        raise WorkloadError(
            f"its functions call each other so often that {count:,} operators would run; "
            f"at most {_MOST_OPERATORS:,} are read"
        )
    try:
        return inliner.inline_local_functions(model)
    except Exception:  # calls that cannot be resolved stay, and are not known
        return model


def _n_inlined(model: Any) -> int:
    """Count the operators of a model with its functions' calls replaced, replacing none."""
    calls: dict[tuple[str, str], list[tuple[str, str]]] = {
        (text(one.domain), text(one.name)): _callees(one) for one in model.functions
    }
    known = {name: {one for one in made if one in calls} for name, made in calls.items()}
    counts: dict[tuple[str, str], int] = {}
    for name in TopologicalSorter(known).static_order():
        counts[name] = sum(counts.get(one, 1) for one in calls[name])
    return sum(counts.get(one, 1) for one in _callees(model.graph))


def _callees(graph: Any) -> list[tuple[str, str]]:
    nodes = [
        each for node in graph.node for each in (node, *inner_nodes(attributes(node).values()))
    ]
    return [(text(one.domain), text(one.op_type)) for one in nodes]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a node stands: names that it sees, and how often it runs."""

    names: dict[str, str]
    prefix: str = ""
    repeats: tuple[Repeat, ...] = ()
    doubt: str = ""

    def inside(self, name: str, *repeats: Repeat, doubt: str = "") -> _Scope:
        """Open the scope of a body."""
        return _Scope(dict(self.names), f"{name}/", (*self.repeats, *repeats), self.doubt or doubt)


class _Flattener:
    def __init__(self, version: int, numbers: Mapping[str, int | bool]) -> None:
        self.flat = Flat()
        self.version = version
        self.taken: dict[str, int] = {}
        self.node_names: dict[str, int] = {}
        self.numbers: dict[str, int | bool] = dict(numbers)

    def whole(self, graph: Any) -> Flat:
        scope = _Scope({})
        self.define_tensors(graph, scope)
        for value in graph.input:
            name = text(value.name)
            if name not in scope.names:
                self.flat.inputs.append((self.define(name, scope), value))
        self.flat.outputs = [name for name in self.body(graph, scope) if name]
        return self.flat

    def define(self, name: str, scope: _Scope) -> str:
        """Give a value a name of its own in the whole model."""
        unique = _unused(scope.prefix + name, self.taken)
        scope.names[name] = unique
        return unique

    def define_tensors(self, graph: Any, scope: _Scope) -> None:
        for tensor in graph.initializer:
            name = self.define(text(tensor.name), scope)
            self.flat.tensors[name] = tensor
            number = scalar(tensor)
            if number is not None:
                self.numbers[name] = number
        for sparse in graph.sparse_initializer:
            tensor = type(sparse.values)()
            tensor.data_type = sparse.values.data_type
            tensor.dims.extend(sparse.dims)
            self.flat.tensors[self.define(text(sparse.values.name), scope)] = tensor

    def body(self, graph: Any, scope: _Scope) -> list[str]:
        """Add the operators of a graph whose inputs are defined; return its outputs."""
        nodes, stuck = ordered(graph.node)
        for node in nodes:
            self.node(node, scope)
        waiting = "it waits for its own output: a cycle"
        for node in stuck:
            self.node(node, replace(scope, doubt=scope.doubt or waiting))
        for value in (*graph.value_info, *graph.output):
            name = scope.names.get(text(value.name))
            if name is not None:
                self.flat.hints.setdefault(name, value)
        return [scope.names.get(text(one.name), "") for one in graph.output]

    def node(self, node: Any, scope: _Scope) -> None:
        op, domain = text(node.op_type), text(node.domain)
        domain = "" if domain in STANDARD else domain
        outputs = [text(name) for name in node.output]
        first = next((name for name in outputs if name), op)
        name = _unused(scope.prefix + (text(node.name) or first), self.node_names)
        inputs = tuple(
            scope.names.get(one) or scope.prefix + one if one else ""
            for one in map(text, node.input)
        )
        found = attributes(node)
        if not domain and op in CONTROL:
            opened = self.open(op, name, inputs, found, scope)
            if opened is not None:
                scope.names.update(zip(outputs, opened, strict=False))
                return
            self.list_bodies(name, op, found, scope)
            inputs += tuple(
                scope.names[one]
                for inner in inner_nodes(found.values())
                for one in map(text, inner.input)
                if one in scope.names
            )
            found = {}
        made = tuple(self.define(one, scope) if one else "" for one in outputs)
        self.flat.operators.append(
            Operator(name, op, domain, inputs, made, found, scope.repeats, scope.doubt)
        )
        if not domain and made:
            self.note_number(op, inputs, made[0], found)

    def note_number(
        self, op: str, inputs: Sequence[str], output: str, found: Mapping[str, Any]
    ) -> None:
        if op == "Constant":
            tensor = tensor_in(found, "value")
            value = found.get("value_int") if tensor is None else scalar(tensor)
            if isinstance(value, int):
                self.numbers[output] = value
        elif op in _PASSING and inputs and inputs[0] in self.numbers:
            self.numbers[output] = self.numbers[inputs[0]]

    def open(
        self, op: str, name: str, inputs: tuple[str, ...], found: Mapping[str, Any], scope: _Scope
    ) -> list[str] | None:
        """Add what is inside a node of control flow.

        Returns the values that are its outputs; None if it cannot be opened.
        """
        if op == "If":
            branches = [graph_in(found, each) for each in ("then_branch", "else_branch")]
            if inputs and None not in branches:
                return self.open_branches(name, inputs[0], branches, scope)
            return None
        body = graph_in(found, "body")
        if body is None or not body.node:
            return None
        if op == "Loop":
            return self.open_loop(name, inputs, body, scope)
        return self.open_scan(name, inputs, body, found, scope) if op == "Scan" else None

    def known(self, name: str) -> int | bool | None:
        """Read a number that decides what runs; ask for it if it is not known."""
        if name not in self.numbers:
            self.flat.asked.append(name)
        return self.numbers.get(name)

    def open_branches(
        self, name: str, condition: str, branches: list[Any], scope: _Scope
    ) -> list[str]:
        chosen = self.known(condition)
        if chosen is not None:
            inner = scope.inside(name)
            branch = branches[0 if chosen else 1]
            self.define_tensors(branch, inner)
            return self.body(branch, inner)
        results = []
        for which, branch in zip(("then", "else"), branches, strict=True):
            inner = scope.inside(f"{name}/{which}", doubt=f"in a branch of If: {_DOUBT['If']}")
            self.define_tensors(branch, inner)
            results.append(self.body(branch, inner))
        return [
            self.synthetic(name, "If", (condition, *pair), shown="If")
            for pair in zip(*results, strict=False)
        ]

    def open_loop(
        self, name: str, inputs: tuple[str, ...], body: Any, scope: _Scope
    ) -> list[str] | None:
        starts = inputs[2:]
        fits = len(inputs) >= 2 and len(body.input) == len(inputs)
        if not fits or len(body.output) <= len(starts):
            return None
        trips = self.known(inputs[0])
        is_known = trips is not None and not isinstance(trips, bool) and trips > 0
        if is_known and self.goes_on(inputs, body):
            inner = scope.inside(name, int(trips or 0))
        else:
            is_known = False
            inner = scope.inside(name, doubt=f"in a Loop: {_DOUBT['Loop']}")
        self.define_tensors(body, inner)
        for value in body.input[:2]:
            self.flat.counters.append((self.define(text(value.name), inner), value))
        for value, start in zip(body.input[2:], starts, strict=True):
            inner.names[text(value.name)] = start
        results = self.body(body, inner)[1:]
        stacked = [
            self.stack(name, one, int(trips or 0))
            if is_known
            else self.synthetic(name, "Loop", (one,), shown="Loop")
            for one in results[len(starts) :]
        ]
        return self.last_steps(name, starts, results) + stacked

    def goes_on(self, inputs: Sequence[str], body: Any) -> bool:
        """Whether a loop runs all its trips: no condition ends it before."""
        if inputs[1] and not self.known(inputs[1]):
            return False
        true = {text(one.name) for one in body.initializer if scalar(one) is True}
        true.add(text(body.input[1].name))
        for node in body.node:
            if text(node.op_type) == "Constant":
                tensor = tensor_in(attributes(node), "value")
                is_true = tensor is not None and scalar(tensor) is True
            else:
                first = text(node.input[0]) if node.input else ""
                is_true = text(node.op_type) in _PASSING and first in true
            if is_true:
                true |= {text(one) for one in node.output}
        return text(body.output[0].name) in true

    def open_scan(
        self, name: str, inputs: tuple[str, ...], body: Any, found: Mapping[str, Any], scope: _Scope
    ) -> list[str] | None:
        n_scanned = whole(found, "num_scan_inputs")
        n_states = len(inputs) - n_scanned
        axes = wholes(found, "scan_input_axes") or (0,) * min(n_scanned, len(inputs))
        fits = len(body.input) == len(inputs) and len(axes) == n_scanned
        turned = any(wholes(found, "scan_output_axes"))
        if self.version < 9 or n_scanned < 1 or n_states < 0 or not fits or turned:
            return None
        states, scanned = inputs[:n_states], inputs[n_states:]
        trips = scanned[0], axes[0]
        inner = scope.inside(name, trips)
        self.define_tensors(body, inner)
        for value, start in zip(body.input, states, strict=False):
            inner.names[text(value.name)] = start
        for value, along, axis in zip(body.input[n_states:], scanned, axes, strict=True):
            inner.names[text(value.name)] = self.step(name, along, axis)
        results = self.body(body, inner)
        stacked = [self.stack(name, one, trips) for one in results[n_states:]]
        return self.last_steps(name, states, results) + stacked

    def last_steps(self, name: str, starts: Sequence[str], results: Sequence[str]) -> list[str]:
        """What a loop hands on in the end: of the shape that it began with, or not known."""
        pairs = list(zip(starts, results, strict=False))
        self.flat.carried += [(f"{name}/", start, result) for start, result in pairs]
        return [self.synthetic(name, "Loop", pair) for pair in pairs]

    def synthetic(
        self, name: str, op: str, inputs: tuple[str, ...], shown: str = "Loop", **found: Any
    ) -> str:
        """Add an operator that only serves to say a shape."""
        made = _unused(f"{name}/{op.lower()}", self.taken)
        unique = _unused(made, self.node_names)
        self.flat.operators.append(Operator(unique, op, "", inputs, (made,), found, shown=shown))
        return made

    def number(self, name: str, *values: int) -> str:
        from onnx import TensorProto, helper

        made = _unused(f"{name}/number", self.taken)
        self.flat.tensors[made] = helper.make_tensor(
            made, TensorProto.INT64, [len(values)], list(values)
        )
        return made

    def step(self, name: str, along: str, axis: int) -> str:
        """One step's part of a value that a scan runs along."""
        part = self.synthetic(name, "Gather", (along, self.number(name, 0)), axis=axis)
        if self.version < 13:
            return self.synthetic(name, "Squeeze", (part,), axes=(axis,))
        return self.synthetic(name, "Squeeze", (part, self.number(name, axis)))

    def stack(self, name: str, step: str, trips: Repeat) -> str:
        """What all steps give, one after the other along a new first axis."""
        from onnx import TensorProto, helper

        if isinstance(trips, int):
            length = self.number(name, trips)
        else:
            shape = self.synthetic(name, "Shape", (trips[0],))
            length = self.synthetic(name, "Gather", (shape, self.number(name, trips[1])), axis=0)
        zero = helper.make_tensor("zero", TensorProto.INT64, [1], [0])
        places = self.synthetic(name, "ConstantOfShape", (length,), value=zero)
        if self.version < 13:
            one = self.synthetic(name, "Unsqueeze", (step,), axes=(0,))
        else:
            one = self.synthetic(name, "Unsqueeze", (step, self.number(name, 0)))
        return self.synthetic(name, "Gather", (one, places), axis=0)

    def list_bodies(self, name: str, op: str, found: Mapping[str, Any], scope: _Scope) -> None:
        """Add what has work in bodies that cannot be opened."""
        for node in inner_nodes(found.values()):
            inner, domain = text(node.op_type), text(node.domain)
            domain = "" if domain in STANDARD else domain
            if (not domain and inner in CONTROL) or role_of(inner, domain)[0] != "unsupported":
                continue
            unique = _unused(f"{name}/{text(node.name) or inner}", self.node_names)
            doubt = scope.doubt or f"in the body of a {op}: {_DOUBT.get(op, 'it is not known')}"
            self.flat.operators.append(
                Operator(unique, inner, domain, (), (), {}, scope.repeats, doubt)
            )


_DOUBT = {
    "If": "which one runs is known only at run time",
    "Loop": "how often it runs is known only at run time",
    "Scan": "its axes are not given as constants",
    "SequenceMap": "how often it runs is known only at run time",
}


def _unused(name: str, taken: dict[str, int]) -> str:
    """Number a name that is taken; ``taken`` has the last number of each."""
    unique = name
    while unique in taken:
        taken[name] += 1
        unique = f"{name} #{taken[name]}"
    taken[unique] = 1
    return unique
