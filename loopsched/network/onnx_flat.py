"""One flat list of operators out of an ONNX graph: loops and branches are opened.

The body of a loop whose trip count the model itself says stands in the list
once, with the count; so does the branch that a constant condition takes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopsched.network.onnx_read import attributes, scalar, text
from loopsched.network.operators import CONTROL, STANDARD, role_of

# How often a body runs: a number, or the length of a value along an axis.
Repeat = int | tuple[str, int]

# A number goes through these as it is.
_PASSING = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


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
    why : str
        Why nothing can be said of its work, if that is known already.
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
    why: str = ""
    shown: str = ""


@dataclass(slots=True)
class Flat:
    """A model without bodies: what `flatten` returns."""

    operators: list[Operator] = field(default_factory=list)
    tensors: dict[str, Any] = field(default_factory=dict)
    inputs: list[tuple[str, Any]] = field(default_factory=list)
    # Trip numbers and conditions that bodies of loops are given.
    counters: list[tuple[str, Any]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    hints: dict[str, Any] = field(default_factory=dict)
    # What goes into a loop and what comes back must have one shape.
    carried: list[tuple[str, str, str]] = field(default_factory=list)


def flatten(model: Any) -> Flat:
    """Write a model's graph as one list of operators, producers before consumers.

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    Flat
    """
    return _Flattener(_version(model)).whole(_inlined(model).graph)


def _version(model: Any) -> int:
    versions = [one.version for one in model.opset_import if text(one.domain) in STANDARD]
    return int(versions[0]) if versions else 1


def _inlined(model: Any) -> Any:
    """Replace calls of the model's own functions by what they do."""
    if not model.functions:
        return model
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model)
    except Exception:  # calls that cannot be resolved stay, and are not known
        return model


class _Flattener:
    def __init__(self, version: int) -> None:
        self.flat = Flat()
        self.version = version
        self.taken: set[str] = set()
        self.node_names: set[str] = set()
        self.numbers: dict[str, int | bool] = {}

    def whole(self, graph: Any) -> Flat:
        names: dict[str, str] = {}
        self.define_tensors(graph, names, "")
        for value in graph.input:
            name = text(value.name)
            if name not in names:
                self.flat.inputs.append((self.define(name, names, ""), value))
        self.body(graph, names, "", ())
        self.flat.outputs = [
            names[name] for name in (text(one.name) for one in graph.output) if name in names
        ]
        return self.flat

    def define(self, name: str, names: dict[str, str], prefix: str) -> str:
        """Give a value a name of its own in the whole model."""
        unique = _unused(prefix + name, self.taken)
        names[name] = unique
        return unique

    def define_tensors(self, graph: Any, names: dict[str, str], prefix: str) -> None:
        for tensor in graph.initializer:
            unique = self.define(text(tensor.name), names, prefix)
            self.keep(unique, tensor)
        for sparse in graph.sparse_initializer:
            tensor = type(sparse.values)()
            tensor.data_type = sparse.values.data_type
            tensor.dims.extend(sparse.dims)
            self.flat.tensors[self.define(text(sparse.values.name), names, prefix)] = tensor

    def keep(self, name: str, tensor: Any) -> None:
        self.flat.tensors[name] = tensor
        number = scalar(tensor)
        if number is not None:
            self.numbers[name] = number

    def body(
        self, graph: Any, names: dict[str, str], prefix: str, repeats: tuple[Repeat, ...]
    ) -> None:
        """Add the operators of a graph whose inputs and tensors are defined."""
        nodes, stuck = _sorted(graph.node)
        for node in nodes:
            self.node(node, names, prefix, repeats, "")
        for node in stuck:
            self.node(node, names, prefix, repeats, "it waits for its own output: a cycle")
        for value in graph.value_info:
            name = text(value.name)
            if name in names:
                self.flat.hints.setdefault(names[name], value)

    def node(
        self,
        node: Any,
        names: dict[str, str],
        prefix: str,
        repeats: tuple[Repeat, ...],
        why: str,
    ) -> None:
        op, domain = text(node.op_type), text(node.domain)
        domain = "" if domain in STANDARD else domain
        outputs = [text(name) for name in node.output]
        first = next((name for name in outputs if name), op)
        name = _unused(prefix + (text(node.name) or first), self.node_names)
        inputs = tuple(
            names.get(one) or prefix + one if one else "" for one in map(text, node.input)
        )
        found = attributes(node)
        if not why and not domain and op in CONTROL:
            opened = self.open(op, name, inputs, found, names, repeats)
            if opened is not None:
                for outer, inner in zip(outputs, opened, strict=False):
                    names[outer] = inner
                return
            why = self.list_bodies(name, op, found, repeats)
            inputs += tuple(dict.fromkeys(_captured(found.values(), names)))
            found = {}
        made = tuple(self.define(one, names, prefix) if one else "" for one in outputs)
        self.flat.operators.append(Operator(name, op, domain, inputs, made, found, repeats, why))
        self.note_numbers(op, domain, inputs, made, found)

    def note_numbers(
        self,
        op: str,
        domain: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        found: Mapping[str, Any],
    ) -> None:
        if domain or not outputs:
            return
        if op == "Constant":
            value = found.get("value_int")
            value = scalar(found["value"]) if "value" in found else value
            if isinstance(value, int):
                self.numbers[outputs[0]] = value
        elif op in _PASSING and inputs and inputs[0] in self.numbers:
            self.numbers[outputs[0]] = self.numbers[inputs[0]]

    def open(
        self,
        op: str,
        name: str,
        inputs: tuple[str, ...],
        found: Mapping[str, Any],
        names: Mapping[str, str],
        repeats: tuple[Repeat, ...],
    ) -> list[str] | None:
        """Add what is inside a node of control flow, if it is known what runs.

        Returns the values that are its outputs; None if it is not known.
        """
        if op == "If":
            condition = self.numbers.get(inputs[0]) if inputs else None
            branch = found.get("then_branch" if condition else "else_branch")
            if condition is None or branch is None:
                return None
            inner = dict(names)
            self.define_tensors(branch, inner, f"{name}/")
            self.body(branch, inner, f"{name}/", repeats)
            return [inner.get(text(one.name), "") for one in branch.output]
        body = found.get("body")
        if body is None or not len(body.node):
            return None
        if op == "Loop":
            return self.open_loop(name, inputs, body, names, repeats)
        return self.open_scan(name, inputs, found, names, repeats) if op == "Scan" else None

    def open_loop(
        self,
        name: str,
        inputs: tuple[str, ...],
        body: Any,
        names: Mapping[str, str],
        repeats: tuple[Repeat, ...],
    ) -> list[str] | None:
        trips = self.numbers.get(inputs[0]) if inputs else None
        starts = inputs[2:]
        n_carried = len(starts)
        is_whole = len(body.input) == n_carried + 2 and len(body.output) > n_carried
        if not trips or isinstance(trips, bool) or trips < 0 or not is_whole:
            return None
        if not self._goes_on(inputs, body):
            return None
        inner = dict(names)
        prefix = f"{name}/"
        self.define_tensors(body, inner, prefix)
        for value in body.input[:2]:
            unique = self.define(text(value.name), inner, prefix)
            self.flat.counters.append((unique, value))
        for value, start in zip(body.input[2:], starts, strict=True):
            inner[text(value.name)] = start
        self.body(body, inner, prefix, (*repeats, trips))
        results = [inner.get(text(one.name), "") for one in body.output][1:]
        for start, result in zip(starts, results, strict=False):
            self.flat.carried.append((prefix, start, result))
        stacked = [self.stack(name, one, trips) for one in results[n_carried:]]
        return results[:n_carried] + stacked

    def _goes_on(self, inputs: Sequence[str], body: Any) -> bool:
        """Whether a loop runs all its trips: no condition ends it before."""
        first = inputs[1] if len(inputs) > 1 else ""
        if first and self.numbers.get(first) is not True:
            return False
        true = {text(one.name) for one in body.initializer if scalar(one) is True}
        true.add(text(body.input[1].name))
        for node in body.node:
            if text(node.op_type) == "Constant":
                value = attributes(node).get("value")
                is_true = value is not None and scalar(value) is True
            else:
                is_true = text(node.op_type) in _PASSING and text(node.input[0]) in true
            if is_true:
                true |= {text(one) for one in node.output}
        return text(body.output[0].name) in true

    def open_scan(
        self,
        name: str,
        inputs: tuple[str, ...],
        found: Mapping[str, Any],
        names: Mapping[str, str],
        repeats: tuple[Repeat, ...],
    ) -> list[str] | None:
        body, n_scanned = found["body"], found.get("num_scan_inputs", 0)
        n_states = len(inputs) - n_scanned
        axes = found.get("scan_input_axes", (0,) * n_scanned)
        fits = len(body.input) == len(inputs) and len(axes) == n_scanned
        turned = any(found.get("scan_output_axes", ()))
        if self.version < 9 or n_scanned < 1 or n_states < 0 or not fits or turned:
            return None
        inner = dict(names)
        prefix = f"{name}/"
        self.define_tensors(body, inner, prefix)
        states, scanned = inputs[:n_states], inputs[n_states:]
        for value, start in zip(body.input, states, strict=False):
            inner[text(value.name)] = start
        for value, whole, axis in zip(body.input[n_states:], scanned, axes, strict=True):
            inner[text(value.name)] = self.slice(name, whole, axis)
        trips = scanned[0], axes[0]
        self.body(body, inner, prefix, (*repeats, trips))
        results = [inner.get(text(one.name), "") for one in body.output]
        for start, result in zip(states, results, strict=False):
            self.flat.carried.append((prefix, start, result))
        return results[:n_states] + [self.stack(name, one, trips) for one in results[n_states:]]

    def synthetic(self, name: str, op: str, inputs: tuple[str, ...], **found: Any) -> str:
        """Add an operator that only serves to say a shape."""
        made = _unused(f"{name}/{op.lower()}", self.taken)
        unique = _unused(made, self.node_names)
        self.flat.operators.append(Operator(unique, op, "", inputs, (made,), found, shown="Loop"))
        return made

    def number(self, name: str, *values: int) -> str:
        from onnx import TensorProto, helper

        made = _unused(f"{name}/number", self.taken)
        self.flat.tensors[made] = helper.make_tensor(
            made, TensorProto.INT64, [len(values)], list(values)
        )
        return made

    def slice(self, name: str, whole: str, axis: int) -> str:
        """One step's part of a value that a scan runs along."""
        part = self.synthetic(name, "Gather", (whole, self.number(name, 0)), axis=axis)
        if self.version < 13:
            return self.synthetic(name, "Squeeze", (part,), axes=(axis,))
        return self.synthetic(name, "Squeeze", (part, self.number(name, axis)))

    def stack(self, name: str, step: str, trips: Repeat) -> str:
        """What all steps give, one after the other along a new first axis."""
        from onnx import TensorProto, helper

        if not step:
            return ""
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

    def list_bodies(
        self, name: str, op: str, found: Mapping[str, Any], repeats: tuple[Repeat, ...]
    ) -> str:
        """Add what has work in bodies that may or may not run; say why, if anything has."""
        why = role_of(op, "")[1]
        inside = [
            (text(node.op_type), f"{name}/{text(node.name) or text(node.op_type)}")
            for node in _all_nodes(found.values())
            if _has_work(text(node.op_type), text(node.domain))
        ]
        for inner, place in inside:
            unique = _unused(place, self.node_names)
            reason = f"in the body of a {op}: {why}"
            self.flat.operators.append(Operator(unique, inner, "", (), (), {}, repeats, reason))
        return why if inside else ""


def _has_work(op: str, domain: str) -> bool:
    if op in CONTROL and domain in STANDARD:
        return False
    return role_of(op, "" if domain in STANDARD else domain)[0] == "unsupported"


def _all_nodes(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if hasattr(value, "node"):
            for node in value.node:
                yield node
                yield from _all_nodes(attributes(node).values())


def _captured(values: Iterable[Any], names: Mapping[str, str]) -> Iterator[str]:
    """Values from outside that bodies read."""
    for node in _all_nodes(values):
        for name in map(text, node.input):
            if name in names:
                yield names[name]


def _unused(name: str, taken: set[str]) -> str:
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name} #{number}"
    taken.add(unique)
    return unique


def _sorted(nodes: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Put producers before consumers; what waits for itself comes separately."""
    makers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in map(text, node.output):
            makers.setdefault(name, i)
    needs = []
    for i, node in enumerate(nodes):
        bodies = attributes(node).values()
        read = [*map(text, node.input)]
        read += [text(name) for inner in _all_nodes(bodies) for name in inner.input]
        needs.append({makers[name] for name in read if name and makers.get(name, i) != i})
        if any(makers.get(name) == i for name in map(text, node.input) if name):
            needs[i].add(i)
    users: dict[int, list[int]] = {}
    for i, need in enumerate(needs):
        for maker in need:
            users.setdefault(maker, []).append(i)
    ready = [i for i, need in enumerate(needs) if not need]
    order = []
    while ready:
        at = heapq.heappop(ready)
        order.append(at)
        for user in users.get(at, ()):
            needs[user].discard(at)
            if not needs[user]:
                heapq.heappush(ready, user)
    done = set(order)
    return [nodes[i] for i in order], [node for i, node in enumerate(nodes) if i not in done]
