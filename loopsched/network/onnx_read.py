"""Reading an ONNX file: its structure only, never the weights' numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from loopsched.base.errors import MissingExtraError, WorkloadError
from loopsched.base.files import named, read_bytes

# Protocol buffers hold no more.
_MAX_BYTES = 2**31 - 1  # more is stored with weights beside it
# Tensors this small may say shapes, axes and trip counts; larger ones are weights.
_MAX_KEPT = 1024
_DATA = (
    "raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data",
    "string_data",
)  # fmt: skip


def read_model(path: str | os.PathLike[str]) -> Any:
    """Read a model without weights.

    Parameters
    ----------
    path : path
        External data are not looked at and need not be there.

    Returns
    -------
    onnx.ModelProto
        Tensors of more than a thousand elements have lost their data.

    Raises
    ------
    WorkloadError
        If the file cannot be read or holds no graph of operators.
    MissingExtraError
        If the library ``onnx`` is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError(
            "ONNX files need the library onnx; install it, or loopsched with the extra 'onnx'"
        ) from error
    where = named(path)
    content = read_bytes(path, "an ONNX model", most_bytes=_MAX_BYTES, error=WorkloadError)
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # the decoder's own errors have no common base but this
        raise WorkloadError(f"{where}: not an ONNX model: {_short(error)}") from None
    if not model.HasField("graph"):
        raise WorkloadError(f"{where}: not an ONNX model: it has no graph")
    if not model.graph.node:
        raise WorkloadError(f"{where}: the graph is empty; at least one operator is needed")
    for graph in _graphs(model):
        _strip(graph)
    return model


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if 0 < len(text) <= 200 else type(error).__name__


def _graphs(model: Any) -> Iterator[Any]:
    """Every graph of a model: its own, its functions', and the bodies in them."""
    waiting = [model.graph, *model.functions]
    while waiting:
        graph = waiting.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    waiting.append(attribute.g)
                waiting += attribute.graphs


def _strip(graph: Any) -> None:
    for tensor in _tensors(graph):
        if n_elements(tensor.dims) > _MAX_KEPT:
            for field in _DATA:
                tensor.ClearField(field)


def _tensors(graph: Any) -> Iterable[Any]:
    yield from getattr(graph, "initializer", ())
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t


def n_elements(dims: Iterable[int]) -> int:
    """Count the elements of a shape; 0 if a size is negative.

    Examples
    --------
    >>> n_elements((2, 3)), n_elements(()), n_elements((2, -1))
    (6, 1, 0)
    """
    count = 1
    for size in dims:
        count *= max(0, size)
    return count


def text(value: str | bytes) -> str:
    r"""Read a name: bytes that are not UTF-8 come out as escapes.

    Examples
    --------
    >>> text("conv1"), text(bytes([0xFF]) + b"a")
    ('conv1', '\\xffa')
    """
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def attributes(node: Any) -> dict[str, Any]:
    """Read the attributes of an operator as plain values.

    Tensors and graphs stay what they are; what cannot be read is left out.
    """
    found: dict[str, Any] = {}
    for one in node.attribute:
        name = text(one.name)
        if one.type == one.INT:
            found[name] = one.i
        elif one.type == one.FLOAT:
            found[name] = one.f
        elif one.type == one.STRING:
            found[name] = text(one.s)
        elif one.type == one.INTS:
            found[name] = tuple(one.ints)
        elif one.type == one.TENSOR:
            found[name] = one.t
        elif one.type == one.GRAPH:
            found[name] = one.g
    return found


def whole(found: Mapping[str, Any], name: str, default: int = 0) -> int:
    """Read an attribute that is a whole number; another kind counts as left out.

    Examples
    --------
    >>> whole({"axis": 2}, "axis"), whole({"axis": "x"}, "axis", 1)
    (2, 1)
    """
    value = found.get(name)
    return value if isinstance(value, int) else default


def wholes(found: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """Read an attribute that is a list of whole numbers; another kind counts as empty.

    Examples
    --------
    >>> wholes({"axes": (0, 2)}, "axes"), wholes({"axes": 1}, "axes")
    ((0, 2), ())
    """
    value = found.get(name)
    is_right = isinstance(value, tuple) and all(isinstance(one, int) for one in value)
    return tuple(value) if is_right and value else ()


def graph_in(found: Mapping[str, Any], name: str) -> Any:
    """Read an attribute that is a graph; None if it is not there or another kind."""
    value = found.get(name)
    return value if hasattr(value, "node") else None


def tensor_in(found: Mapping[str, Any], name: str) -> Any:
    """Read an attribute that is a tensor; None if it is not there or another kind."""
    value = found.get(name)
    return value if hasattr(value, "dims") else None


def scalar(tensor: Any) -> int | bool | None:
    """Read the one whole number or truth value that a tensor holds, if it does."""
    from onnx import TensorProto, numpy_helper

    known = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
    if tensor.data_type not in known or n_elements(tensor.dims) != 1:
        return None
    if not has_data(tensor):
        return None
    try:
        value = numpy_helper.to_array(tensor).reshape(-1)[0]
    except Exception:  # data that do not fit the type: whatever the decoder raises
        return None
    return bool(value) if tensor.data_type == TensorProto.BOOL else int(value)


def has_data(tensor: Any) -> bool:
    """Whether a tensor's numbers are in the model itself."""
    is_external = tensor.data_location == tensor.EXTERNAL
    return not is_external and any(
        tensor.HasField(field) if field == "raw_data" else len(getattr(tensor, field))
        for field in _DATA
    )
