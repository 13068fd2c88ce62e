"""Networks straight from PyTorch modules, through ``torch.export``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

from loopsched.base.errors import InputError, MissingExtraError, WorkloadError
from loopsched.network.graph import Network
from loopsched.network.node import Node, Role, Value
from loopsched.network.onnx_convolutions import Geometry
from loopsched.problems.builders import batched_gemm, gemm
from loopsched.problems.problem import Problem

# A nest, and which argument each of its tensors is; the output is the node's own.
_Part = tuple[str, Problem, dict[str, Any]]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHAPE = _names(
    """
    _to_copy _unsafe_view alias arange as_strided cat clone constant_pad_nd copy embedding empty
    expand fill flip full full_like gather getitem index index_select lift_fresh_copy
    new_zeros ones permute repeat roll scalar_tensor scatter select select_scatter slice
    slice_scatter split split_with_sizes squeeze stack t transpose unbind unsqueeze view zeros
    zeros_like
    """
)
_TURNS = ("permute", "t", "transpose")
_ATTENTION = "scaled_dot_product"
_SUMS = ("_cdist_forward", "_fft", "_linalg", "_trilinear", "cumprod_backward", "linalg")


def from_torch(module: Any, *examples: Any, name: str | None = None) -> Network:
    """Make a network of a PyTorch module, without writing a file.

    Parameters
    ----------
    module : torch.nn.Module
        Exported in evaluation mode; its own mode is restored.
    *examples : torch.Tensor
        What it is called with: lengths are those of these tensors.
    name : str, optional
        By default that of the module's class.

    Returns
    -------
    Network
        Operators after PyTorch's own decomposition: a recurrent layer is the
        GEMMs of its steps, attention its two GEMMs.

    Raises
    ------
    WorkloadError
        If ``torch.export`` cannot trace the module.
    MissingExtraError
        If PyTorch is not installed.

    See Also
    --------
    load_onnx, load_network

    Examples
    --------
    >>> import torch                                             # doctest: +SKIP
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 10))     # doctest: +SKIP
    >>> from_torch(model, torch.zeros(8, 64)).macs               # doctest: +SKIP
    5120
    """
    try:
        torch: Any = import_module("torch")
    except ImportError as error:
        raise MissingExtraError("from_torch needs PyTorch: install torch") from error
    title = name or type(module).__name__
    was_training = module.training
    try:
        with torch.no_grad():
            traced = torch.export.export(module.eval(), tuple(examples))
            exported = traced.run_decompositions(_decompositions(torch))
    except Exception as error:  # torch.export raises what the module and its own guards raise
        line = " ".join(str(error).split())[:200]
        raise WorkloadError(
            f"{title}: torch.export cannot trace it: {type(error).__name__}: {line}"
        ) from None
    finally:
        module.train(was_training)
    return _network(exported, title)


def _decompositions(torch: Any) -> Any:
    """PyTorch's own, but for products with a vector, which it makes elementwise."""
    table = torch.export.default_decompositions()
    for word in ("mv", "addmv", "dot"):
        table.pop(getattr(torch.ops.aten, word).default, None)
    return table


def _network(exported: Any, title: str) -> Network:
    signature = exported.graph_signature
    stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    nodes: list[Node] = []
    values, inputs, outputs = [], [], []
    for one in exported.graph.nodes:
        if one.op == "output":
            outputs = [each.name for each in one.all_input_nodes]
            continue
        values.append(_value(one, one.name in stored))
        if one.op == "placeholder":
            inputs += [] if one.name in stored else [one.name]
        elif one.op == "call_function":
            made = list(_nodes(one))
            nodes += made
            own = {value for node in made for value in (*node.inputs, *node.outputs)}
            known = {value.name for value in values}
            values += [Value(each, None, 4) for each in sorted(own - known)]
    return Network(title, tuple(nodes), tuple(values), tuple(inputs), tuple(outputs),
                   "PyTorch module, by torch.export")  # fmt: skip


def _value(one: Any, is_weight: bool) -> Value:
    found = one.meta.get("val")
    if not hasattr(found, "shape"):
        return Value(one.name, None, 4)
    return Value(one.name, _shape(one), found.dtype.itemsize, is_weight)


def _shape(one: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in one.meta["val"].shape)


def _width(one: Any) -> int:
    return int(one.meta["val"].dtype.itemsize)


def _nodes(one: Any) -> Iterator[Node]:
    """The layers of a call; else what it is otherwise."""
    word, space = _word(one)
    inputs = tuple(dict.fromkeys(each.name for each in one.all_input_nodes))
    parts: list[_Part] = []
    role, why = _role(word, space)
    try:
        builder = _BUILDERS.get(word) or (_attention if _ATTENTION in word else None)
        if builder is not None and space == "aten":
            parts = builder(one)
    except InputError as error:
        role, why = "unsupported", error.problems[0]
    if not parts:
        yield Node(one.name, word, None, inputs, (one.name,), role=role, why=why)
    between = ""
    for place, (suffix, problem, operands) in enumerate(parts):
        is_last = place == len(parts) - 1
        made = one.name if is_last else f"{one.name}.{suffix}"
        named = {
            tensor: between if each is None else each.name for tensor, each in operands.items()
        }
        named[problem.output] = made
        read = [value for tensor, value in named.items() if tensor != problem.output]
        others = [] if not is_last else [each for each in inputs if each not in read]
        own = f"{one.name}/{suffix}" if suffix else one.name
        yield Node(own, word, problem.renamed(own), tuple(dict.fromkeys([*read, *others])),
                   (made,), tuple(named.items()))  # fmt: skip
        between = made


def _word(one: Any) -> tuple[str, str]:
    """Name of an operator, and of the library that it is of."""
    name = str(getattr(one.target, "_opname", getattr(one.target, "__name__", one.target)))
    return name, str(getattr(one.target, "namespace", "aten"))


def _role(word: str, space: str) -> tuple[Role, str]:
    if space not in ("aten", "prims", "_operator"):
        return "unsupported", f"an operator of {space!r} that is not known"
    if any(word.startswith(one) for one in _SUMS):
        return "unsupported", "not one nest of products"
    return ("shape" if word in _SHAPE else "vector"), ""


def _is_turned(one: Any) -> tuple[bool, Any]:
    """Whether the last two axes are stored the other way round, and what is stored."""
    if _word(one)[0] in _TURNS and one.op == "call_function":
        before = one.args[0]
        rank = len(_shape(before))
        axes = list(range(rank))
        if _word(one)[0] == "permute":
            axes = [axis % rank for axis in one.args[1]]
        else:
            first, second = one.args[1:3] if len(one.args) > 2 else (0, 1)
            axes[first], axes[second] = axes[second], axes[first]
        if axes[-2:] == [rank - 1, rank - 2]:
            return True, before
    return False, one


def _product(one: Any, left: Any, right: Any) -> list[_Part]:
    """Products of two matrices, or of a batch of them; a vector is a matrix of one column."""
    a, b = _shape(left), _shape(right)
    rows = a if len(a) > 1 else (1, *a)
    columns = b if len(b) > 1 else (*b, 1)
    turned = [len(_shape(each)) > 1 and _is_turned(each)[0] for each in (left, right)]
    widths = {"A": _width(left), "B": _width(right), "C": _width(one)}
    m, k, n = rows[-2], rows[-1], columns[-1]
    flags: dict[str, Any] = {"transpose_a": turned[0], "transpose_b": turned[1]}
    flags["element_bytes"] = widths
    problem = (
        batched_gemm(batch=a[0], m=m, n=n, k=k, **flags)
        if len(a) == 3
        else gemm(m=m, n=n, k=k, **flags)
    )
    return [("", problem, {"A": left, "B": right})]


def _convolution(one: Any) -> list[_Part]:
    image, weight, _, strides, padding, dilations, transposed, _, groups = one.args[:9]
    x, w, made = _shape(image), _shape(weight), _shape(one)
    rank = len(w) - 2

    def each(value: Sequence[int]) -> tuple[int, ...]:
        return tuple(value) if len(value) == rank else tuple(value) * rank

    large, small = (made, x) if transposed else (x, made)
    channels, filters = (w[1] * groups, x[1]) if transposed else (x[1], w[0])
    geometry = Geometry(
        x[0], channels, filters, groups, large[2:], small[2:], w[2:], each(strides),
        each(dilations), each(padding), each(padding),
    )  # fmt: skip
    data = {"input": one, "output": image} if transposed else {"input": image, "output": one}
    widths = {tensor: _width(value) for tensor, value in data.items()} | {"weight": _width(weight)}
    problem = geometry.problem("backward_data" if transposed else "forward", widths)
    return [("", problem, {**data, "weight": weight})]


def _attention(one: Any) -> list[_Part]:
    query, key, value = one.args[:3]
    q, k, v = _shape(query), _shape(key), _shape(value)
    if not len(q) == len(k) == len(v) == 4 or q[1] % k[1]:
        raise WorkloadError("its operands have not 4 axes each")
    # Queries that share a key are more rows of one product.
    batch, rows = q[0] * k[1], q[2] * (q[1] // k[1])
    width = _width(query)
    scores = batched_gemm(
        batch=batch, m=rows, n=k[2], k=q[3], transpose_b=True, element_bytes=width
    )
    summed = batched_gemm(batch=batch, m=rows, n=v[3], k=k[2], element_bytes=width)
    return [
        ("scores", scores, {"A": query, "B": key}),
        ("context", summed, {"A": None, "B": value}),
    ]


_BUILDERS: dict[str, Callable[[Any], list[_Part]]] = {
    "addmm": lambda one: _product(one, *one.args[1:3]),
    "addmv": lambda one: _product(one, *one.args[1:3]),
    "baddbmm": lambda one: _product(one, *one.args[1:3]),
    "bmm": lambda one: _product(one, *one.args[:2]),
    "convolution": _convolution,
    "dot": lambda one: _product(one, *one.args[:2]),
    "mm": lambda one: _product(one, *one.args[:2]),
    "mv": lambda one: _product(one, *one.args[:2]),
}
