"""ZigZag's workload files (version 3) as networks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopsched.base.arguments import Checker, is_text, show
from loopsched.base.errors import InputError, ProblemError, WorkloadError, gathered, nearest
from loopsched.base.files import MEBIBYTE, named, read_text
from loopsched.base.yaml_text import parse_yaml
from loopsched.network.graph import Network
from loopsched.network.node import Node, Value
from loopsched.problems.builders import batched_gemm, conv2d, gemm
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.projections import axis_text, check_spans, span

# ZigZag's own names, so that its mappings for convolutions and products fit.
CONV = {"N": "B", "K": "K", "C": "C", "P": "OY", "Q": "OX", "R": "FY", "S": "FX", "G": "G"}
GEMM = {"M": "D", "N": "K", "K": "C", "B": "B"}
WINDOWS = {("OY", "FY"): "IY", ("OX", "FX"): "IX"}

_NEEDED = ("id", "operator_type", "equation", "loop_dims", "loop_sizes", "operand_precision")
_OPERANDS = ("I", "W", "O")  # in the order of our tensors
_KEYS = (*_NEEDED, "name", "dimension_relations", "operand_source", "pr_loop_dims",
         "pr_loop_sizes", "padding")  # fmt: skip
_POOLING = ("Pooling", "Pool", "MaxPool", "AveragePool", "GlobalAveragePool", "Max")
_INDICES = r"((?:\[\w*\])+)"
_EQUATION = re.compile(rf"(\w+){_INDICES}\+*=(\w+){_INDICES}([*+])(\w+){_INDICES}")
_RELATION = re.compile(r"(\w+)=(?:(\d{1,9})\*)?(\w+)\+(?:(\d{1,9})\*)?(\w+)")


def load_zigzag(path: Path) -> Network:
    """Read a ZigZag workload: its layers, and which reads what another has written.

    Parameters
    ----------
    path : Path
        A list of layers in YAML, as ZigZag 3 takes it.

    Returns
    -------
    Network
        Convolutions and products in the form that `conv2d`, `gemm` and
        `batched_gemm` give; other products as affine problems.  Poolings and
        sums have no nest.  Outputs have their final precision.

    Raises
    ------
    WorkloadError
        With every fault of every layer.
    """
    where = named(path)
    text = read_text(path, "a ZigZag workload", most_bytes=MEBIBYTE, error=WorkloadError)
    with WorkloadError.at(where):
        data = parse_yaml(text)
    if not isinstance(data, list) or not data:
        known = isinstance(data, Mapping) and data.keys() & {"problem", "architecture", "mapping"}
        raise WorkloadError(
            f"{where}: a Timeloop file; 'loopsched import timeloop' reads it"
            if known
            else f"{where}: found {show(data)}; a list of ZigZag's layers is needed, "
            f"each with {', '.join(_NEEDED)}"
        )
    faults: list[str] = []
    layers = []
    for at, one in enumerate(data):
        with gathered(faults, f"layer {at}: "):
            layers.append(_Layer.read(one))
    WorkloadError.refuse(where, faults)
    with WorkloadError.at(where):
        return _network(path.stem, layers)


@dataclass(slots=True)
class _Layer:
    """A layer of the file, and its axes by operand."""

    id: str
    name: str
    op: str
    sizes: dict[str, int]
    axes: dict[str, tuple[Axis, ...]]
    output: str
    is_product: bool
    widths: dict[str, int]
    sources: dict[str, str]

    @classmethod
    def read(cls, data: Any) -> _Layer:
        """Read a layer, or say everything that is wrong with it."""
        check = _Checked(data)
        sizes = check.sized("loop_dims", "loop_sizes")
        windows = check.windows(sizes)
        equation = _EQUATION.fullmatch("".join(check.text("equation").split()))
        if equation is None:
            raise WorkloadError(
                f"equation is {show(check.data['equation'])}; a product or a sum of two operands "
                "is needed, such as O[b][k]+=W[k][c]*I[b][c]"
            )
        output, to, first, of, sign, second, by = equation.groups()
        axes = {
            operand: check.axes(operand, indices, sizes, windows)
            for operand, indices in ((first, of), (second, by), (output, to))
        }
        number, op = check.text("id"), check.text("operator_type")
        is_product = sign == "*" and op not in _POOLING
        widths = check.widths((first, second), output, is_product)
        sources = {key: str(one) for key, one in check.mapping("operand_source").items()}
        name = check.text("name") or f"Layer{number}"
        check.finish()
        return cls(number, name, op, sizes, axes, output, is_product, widths, sources)

    @property
    def inputs(self) -> list[str]:
        """The operands that are read."""
        return [operand for operand in self.axes if operand != self.output]

    def source(self, operand: str) -> str:
        """The layer that an operand comes from; its own: from outside."""
        return self.sources.get(operand, self.id)

    def problem(self) -> Problem | None:
        """Build the nest, in the form that its builder gives if there is one."""
        if not self.is_product:
            return None
        for build in (self._conv, self._gemm):
            found = build()
            if found is not None:
                return found
        tensors = tuple(Tensor(one, axes, self.widths[one]) for one, axes in self.axes.items())
        check = Checker(f"problem '{self.name}'", ProblemError)
        check_spans(check, tensors, self.sizes)
        check.finish()
        return Problem(self.name, tuple(self.sizes.items()), tensors, self.output)

    def _conv(self) -> Problem | None:
        n = self.sizes
        image = [axis for axis in self.axes.get("I", ()) if axis.is_compound]
        if not {*n} <= {*CONV.values()} <= {*n, "G"} or len(image) != 2:
            return None
        groups = n.get("G", 1)
        before = (-image[0].offset, -image[1].offset)
        over = [span(axis, n) + axis.offset - (axis.size or 0) for axis in image]
        pads = (before[0], max(0, over[0]), before[1], max(0, over[1]))
        try:
            found = conv2d(
                n=n["B"], c=n["C"] * groups, k=n["K"] * groups, h=image[0].size, w=image[1].size,
                r=n["FY"], s=n["FX"], stride=(image[0].terms[0][1], image[1].terms[0][1]),
                dilation=(image[0].terms[1][1], image[1].terms[1][1]), padding=pads,
                groups=groups, element_bytes=self._widths_as("input", "weight", "output"),
                name=self.name,
            )  # fmt: skip
        except ProblemError:  # such as windows that pass over what is stored
            return None
        return found if self._is(found, CONV, ("input", "weight", "output")) else None

    def _gemm(self) -> Problem | None:
        plain = all(axis.is_plain for axes in self.axes.values() for axis in axes)
        if not plain or self.axes.keys() != {*_OPERANDS}:
            return None
        one, two, made = ([axis.dims[0] for axis in self.axes[name]] for name in _OPERANDS)
        sums = [dim for dim in one if dim not in made]
        if len(made) not in (2, 3) or len(sums) != 1 or {*made, *sums} != {*self.sizes}:
            return None
        batch = {"batch": self.sizes[made[0]]} if len(made) == 3 else {}
        build: Any = batched_gemm if batch else gemm
        found: Problem = build(
            **batch, m=self.sizes[made[-2]], n=self.sizes[made[-1]], k=self.sizes[sums[0]],
            transpose_a=one[-1] != sums[0], transpose_b=two[-1] == sums[0],
            element_bytes=self._widths_as("A", "B", "C"), name=self.name,
        )  # fmt: skip
        words = dict(zip(("B", "M", "N")[-len(made) :], made, strict=True)) | {"K": sums[0]}
        return found if self._is(found, words, ("A", "B", "C")) else None

    def _widths_as(self, *names: str) -> dict[str, int]:
        return {name: self.widths[by] for name, by in zip(names, _OPERANDS, strict=True)}

    def _is(self, found: Problem, words: Mapping[str, str], names: Sequence[str]) -> bool:
        """Whether a problem is this layer, with other names."""
        mine = {words[dim]: size for dim, size in found.sizes}
        axes = [
            tuple(
                Axis(tuple((words[dim], n) for dim, n in axis.terms), axis.offset, axis.size)
                for axis in found.tensor(name).axes
            )
            for name in names
        ]
        return mine == self.sizes and axes == [self.axes[operand] for operand in _OPERANDS]


class _Checked(Checker):
    """Reads the fields of one layer."""

    def __init__(self, data: Any) -> None:
        super().__init__("layer", WorkloadError)
        if not isinstance(data, Mapping):
            raise WorkloadError(
                f"found {show(data)}; a mapping with {', '.join(_NEEDED)} is needed"
            )
        self.data = data
        for key in data:
            if key not in _KEYS:
                self.fault(f"unknown key {show(key)}; {nearest(key[:40], _KEYS)}")
        missing = [key for key in _NEEDED if key not in data]
        self.faults += [f"no '{key}'" for key in missing]
        if missing:
            self.finish()

    def finish(self) -> None:
        """Raise every fault, without a place before them."""
        if self.faults:
            raise WorkloadError("; ".join(self.faults), self.faults)

    def text(self, key: str) -> str:
        """Read a name or a number as text."""
        found = self.data.get(key, "")
        if not isinstance(found, str) or (found and not is_text(found)):
            self.fault(f"{key} is {show(found)}; one line of text is needed")
            return ""
        return "" if key == "name" and found in ("null", "~") else found

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Read a mapping, empty if there is none."""
        found = self.data.get(key) or {}
        if not isinstance(found, Mapping):
            self.fault(f"{key} is {show(found)}; a mapping of operands is needed")
            return {}
        return found

    def list(self, key: str) -> list[Any]:
        """Read a list, empty if there is none."""
        found = self.data.get(key) or []
        if found in ("null", "~"):
            return []
        if not isinstance(found, list):
            self.fault(f"{key} is {show(found)}; a list is needed")
            return []
        return found

    def whole(self, what: str, value: object, least: int = 0) -> int:
        """Read a whole number."""
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
            return self.count(what, int(value), least)
        self.fault(f"{what} is {show(value)}; a whole number >= {least} is needed")
        return max(1, least)

    def sized(self, dims: str, sizes: str) -> dict[str, int]:
        """Read dimensions, in ZigZag's capitals, and their sizes."""
        names, numbers = self.list(dims), self.list(sizes)
        if len(names) != len(numbers):
            self.fault(f"{len(names)} {dims}, but {len(numbers)} {sizes}")
        found = {}
        for name, number in zip(names, numbers, strict=False):
            if not isinstance(name, str) or not name.isidentifier():
                self.fault(f"{dims}: {show(name)} is not a plain word")
            elif name.upper() in found:
                self.fault(f"{dims}: '{name}' is given twice")
            else:
                found[name.upper()] = self.whole(f"{sizes} of '{name}'", number, 1)
        if not found:
            self.fault(f"{dims} is empty; at least one is needed")
        return found

    def windows(self, sizes: Mapping[str, int]) -> dict[str, Axis]:
        """Read the indices that are sums of two dimensions, and what of them is stored."""
        names = [name.upper() for name in self.list("pr_loop_dims") if isinstance(name, str)]
        stored = self.sized("pr_loop_dims", "pr_loop_sizes") if self.list("pr_loop_sizes") else {}
        pads = dict(zip(names, self.list("padding"), strict=False))
        found: dict[str, Axis] = {}
        for relation in self.list("dimension_relations"):
            parts = _RELATION.fullmatch("".join(str(relation).split()))
            if parts is None:
                self.fault(f"dimension_relations: {show(relation)} is not as ix=1*ox+1*fx")
                continue
            name, n, first, m, second = parts.groups()
            terms = ((first.upper(), int(n or 1)), (second.upper(), int(m or 1)))
            for dim, _ in terms:
                if dim not in sizes:
                    self.fault(f"dimension_relations: unknown '{dim}'; {nearest(dim, sizes)}")
            if self.faults or first.upper() == second.upper() or 0 in (n, m):
                self.fault(f"dimension_relations: {show(relation)}; two dimensions are needed")
                continue
            before, after = self._pad(name, pads.get(name.upper(), ["0", "0"]))
            reached = span(Axis(terms), sizes)
            size = stored.get(name.upper(), reached - before - after)
            if size < 1:
                self.fault(f"{name} reaches {reached} positions, all of them padding")
            found[name.upper()] = Axis(terms, -before, max(1, size))
        return found

    def _pad(self, name: str, value: Any) -> tuple[int, int]:
        if not isinstance(value, list) or len(value) != 2:
            self.fault(f"padding of {name} is {show(value)}; two numbers are needed")
            return 0, 0
        return self.whole(f"padding of {name}", value[0]), self.whole(
            f"padding of {name}", value[1]
        )

    def axes(
        self, operand: str, indices: str, sizes: Mapping[str, int], windows: Mapping[str, Axis]
    ) -> tuple[Axis, ...]:
        """Read the indices of an operand."""
        found = []
        for word in filter(None, re.findall(r"\[(\w*)\]", indices.upper())):
            if word in windows:
                found.append(windows[word])
            elif word in sizes:
                found.append(Axis(((word, 1),)))
            else:
                known = (*sizes, *windows)
                self.fault(f"equation: {operand}: unknown index '{word}'; {nearest(word, known)}")
        texts = [axis_text(axis) for axis in found]
        if len(set(texts)) < len(texts):
            self.fault(f"equation: {operand} has one index twice")
        return tuple(found)

    def widths(self, read: Sequence[str], output: str, is_product: bool) -> dict[str, int]:
        """Read the bytes of an element by operand; outputs are as wide as they end."""
        given = self.mapping("operand_precision")
        found = {}
        for operand, key in (*((one, one) for one in read), (output, "O_final")):
            n = len(self.faults)
            bits = self.whole(f"operand_precision of {key}", given.get(key, "0"), int(is_product))
            found[operand] = max(1, bits // 8)
            if bits % 8 and is_product and n == len(self.faults):
                self.fault(f"operand_precision of {key} is {bits} bits; whole bytes are needed")
        return found


def _network(name: str, layers: Sequence[_Layer]) -> Network:
    ids = [layer.id for layer in layers]
    made = dict(zip(ids, _names(layers), strict=True))
    faults = [f"id {one} is given twice" for one in made if ids.count(one) > 1]
    nodes, values = [], {}
    for layer in layers:
        mine = made[layer.id]
        with gathered(faults, f"layer {mine}: "):
            problem = layer.problem()
            operands = {layer.output: mine}
            values[mine] = _value(mine, layer, layer.output)
            for operand in layer.inputs:
                source = layer.source(operand)
                if source not in made:
                    raise InputError(f"operand_source of {operand}: no layer {show(source)}")
                value = f"{mine}/{operand}" if source == layer.id else made[source]
                operands[operand] = value
                if source == layer.id:
                    values[value] = _value(value, layer, operand)
            read = tuple(dict.fromkeys(operands[operand] for operand in layer.inputs))
            nodes.append(Node(
                mine, layer.op, problem and problem.renamed(mine), read, (mine,),
                _operands(problem, layer, operands),
            ))  # fmt: skip
    WorkloadError.refuse("layers", faults)
    read_by = {value for node in nodes for value in node.inputs}
    written = {node.outputs[0] for node in nodes}
    inputs = [value for value in values if value not in written and not values[value].is_weight]
    return Network(
        name, tuple(nodes), tuple(values.values()), tuple(inputs),
        tuple(node.outputs[0] for node in nodes if node.outputs[0] not in read_by),
        "A workload of ZigZag; outputs have their final precision",
    )  # fmt: skip


def _names(layers: Sequence[_Layer]) -> list[str]:
    """Give each layer a name of its own: a repeated one gets its id, too."""
    names = [layer.name for layer in layers]
    return [
        name if names.count(name) == 1 else f"{name} #{layer.id}"
        for name, layer in zip(names, layers, strict=True)
    ]


def _value(name: str, layer: _Layer, operand: str) -> Value:
    shape = tuple(axis.size or layer.sizes[axis.dims[0]] for axis in layer.axes[operand])
    is_weight = operand == "W" and layer.is_product and layer.source("W") == layer.id
    return Value(name, shape, layer.widths[operand], is_weight)


def _operands(
    problem: Problem | None, layer: _Layer, values: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Pair the tensors of a problem with the values that they are."""
    if problem is None:
        return ()
    order = [one.name for one in problem.tensors] if problem.kind == "affine" else _OPERANDS
    return tuple((one.name, values[by]) for one, by in zip(problem.tensors, order, strict=True))
