"""Networks from ONNX files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loopsched.base.errors import WorkloadError
from loopsched.network.graph import Network
from loopsched.network.onnx_flat import flatten
from loopsched.network.onnx_nodes import network_of
from loopsched.network.onnx_read import read_model, text
from loopsched.network.onnx_type import Contents
from loopsched.network.onnx_types import Fixed, infer_types
from loopsched.network.operators import STANDARD

# Branches inside branches that shapes decide: each round opens one more.
_MOST_ROUNDS = 8


def load_onnx(
    path: str | os.PathLike[str],
    *,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Contents] | None = None,
) -> Network:
    """Load the network that an ONNX file describes; weights are not read.

    Parameters
    ----------
    path : path
        Weights stored in other files need not be there: shapes suffice.
    batch : int, optional
        Length of the batch: the first open length that an input begins with;
        by default 1 where the model leaves it open.  A fixed batch size is
        replaced if nothing in the model contradicts that.
    dims : mapping of str to int, optional
        Lengths of other symbols, such as ``{"sequence": 128}``.
    inputs : mapping of str to sequence of int, optional
        Whole shapes of inputs, such as ``{"x": (1, 3, 48, 192)}``: for models
        that give two open axes one name.
    values : mapping of str to number or sequence of number, optional
        What inputs hold, such as ``{"sr": 16000}``: where that decides a shape
        or which branch runs.

    Returns
    -------
    Network
        `Network.unsupported` lists operators that have work but no nest.

    Raises
    ------
    WorkloadError
        If the file is no ONNX model, has no operators, or what is given does
        not fit it.
    MissingExtraError
        If the library ``onnx`` is not installed.

    See Also
    --------
    load_network, load_workload

    Examples
    --------
    >>> import onnx, tempfile
    >>> from onnx import TensorProto, helper
    >>> info = [
    ...     helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    ...     for name, shape in {"x": ["batch", 64], "w": [64, 10], "y": None}.items()
    ... ]
    >>> node = helper.make_node("Gemm", ["x", "w"], ["y"], name="classify")
    >>> model = helper.make_model(helper.make_graph([node], "graph", info[:2], info[2:]))
    >>> with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    ...     onnx.save(model, file.name)
    ...     network = load_onnx(file.name, batch=8)
    >>> network.layers[0].name, dict(network.layers[0].problem.size)
    ('classify', {'M': 8, 'N': 10, 'K': 64})
    """
    model = read_model(path)
    where = str(path)
    versions = _versions(model)
    fixed = Fixed(batch, dims or {}, inputs or {}, values or {})
    numbers = fixed.deciding
    for _ in range(_MOST_ROUNDS):
        with WorkloadError.at(where):
            flat = flatten(model, numbers)
        known = infer_types(flat, versions, fixed, where)
        if set(known.numbers) <= set(numbers):
            break
        numbers |= known.numbers  # shapes say which branch runs, or how often a loop does
    return network_of(flat, known, Path(path).stem, _source(model, versions, known.note))


def _versions(model: Any) -> dict[str, int]:
    """Operator sets by domain; every domain that a node may name has one."""
    from onnx import defs

    found: dict[str, int] = {}
    for one in model.opset_import:
        domain = "" if text(one.domain) in STANDARD else text(one.domain)
        found.setdefault(domain, max(1, min(one.version, 10_000)))
    found.setdefault("", defs.onnx_opset_version() if model.ir_version > 3 else 1)
    return found


def _source(model: Any, versions: Mapping[str, int], note: str) -> str:
    producer = " ".join(text(model.producer_name).split())
    by = f" of {producer[:60]}" if producer.isprintable() and producer else ""
    return f"ONNX model{by}, opset {versions['']}{', ' if note else ''}{note}"
