"""Networks and models by text: ``model.onnx``, ``model.onnx:batch=8,sequence=128``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from loopsched.base.arguments import show
from loopsched.base.errors import WorkloadError
from loopsched.problems.workload import Workload, read_workload

if TYPE_CHECKING:
    from loopsched.network.graph import Network
    from loopsched.network.onnx_type import Contents

_BATCH, _INPUT, _VALUE = "batch", "input:", "value:"
_MODEL = re.compile(r"(.+\.onnx)(?::([^/\\]*))?", re.IGNORECASE | re.DOTALL)


def is_model(text: str | os.PathLike[str]) -> bool:
    """Whether a text names an ONNX model, lengths for it included.

    Examples
    --------
    >>> is_model("a/b.onnx"), is_model("b.onnx:batch=8"), is_model("resnet50")
    (True, True, False)
    """
    return _MODEL.fullmatch(os.fsdecode(text)) is not None


@dataclass(slots=True)
class _Given:
    """What a text says besides the path of a model."""

    dims: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    values: dict[str, Contents] = field(default_factory=dict)


def model_text(
    text: str,
    batch: int | None = None,
    dims: Iterable[str] = (),
    inputs: Iterable[str] = (),
    values: Iterable[str] = (),
) -> str:
    """Write a model and what is said of its inputs as one text.

    Parameters
    ----------
    text : str
        A model, or any other workload if there are no lengths.
    batch : int, optional
    dims : iterable of str
        ``NAME=LENGTH`` each.
    inputs, values : iterable of str
        ``NAME=1,3,48,192`` each: the shape of an input, or what it holds.

    Raises
    ------
    WorkloadError
        If there are lengths and the text does not name a model.

    Examples
    --------
    >>> model_text("bert.onnx", 8, ["sequence=128"])
    'bert.onnx:batch=8,sequence=128'
    >>> model_text("resnet50")
    'resnet50'
    >>> model_text("ocr.onnx", inputs=["x=1,3,48,192"], values=["sr=16000"])
    'ocr.onnx:input:x=1x3x48x192,value:sr=16000'
    """
    given = [*([] if batch is None else [f"{_BATCH}={batch}"]), *dims]
    for kind, each in ((_INPUT, inputs), (_VALUE, values)):
        for one in each:
            name, equals, numbers = one.rpartition("=")
            given.append(f"{kind}{_quoted(name)}{equals}{'x'.join(numbers.split(','))}")
    if not given:
        return text
    if not is_model(text):
        raise WorkloadError(
            "--batch, --dim, --input and --input-value are for ONNX models, files that end in "
            f".onnx; {show(text)} is not one"
        )
    _given(text, ",".join(given))
    return f"{text}{',' if _parts(text)[1] else ':'}{','.join(given)}"


def load_workload(name_or_path: str | os.PathLike[str]) -> Workload:
    """Load a workload that is shipped, by name, or any file, by path.

    Parameters
    ----------
    name_or_path : str or path
        A shipped name wins over a file of that name.  ``loopsched workloads --schema`` prints
        the form of a file.  A path that ends in ``.onnx`` is a model, also with lengths, as in
        ``model.onnx:batch=8``; one that ends in ``.yaml`` is a workload of ZigZag: see
        `load_network`.

    Raises
    ------
    WorkloadError
        If there is none, or it is not valid; the message has every fault.

    See Also
    --------
    workload_names, load_network

    Examples
    --------
    >>> workload = load_workload("deepbench_conv")
    >>> len(workload.problems), workload.problems[0].name
    (94, 'n4 c1 h161 w700 k32 r5 s20 stride2')
    """
    if isinstance(name_or_path, (str, os.PathLike)) and (
        is_model(name_or_path) or _is_yaml(name_or_path)
    ):
        return load_network(name_or_path).workload()
    return read_workload(name_or_path)


def load_network(
    name_or_path: str | os.PathLike[str],
    *,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Contents] | None = None,
) -> Network:
    """Load a network: an ONNX model, a ZigZag workload, or a workload without a graph.

    Parameters
    ----------
    name_or_path : str or path
        ``model.onnx``, also with lengths as in ``model.onnx:batch=8``; or
        what `load_workload` takes.
    batch : int, optional
    dims, inputs, values : mapping, optional
        As for `load_onnx`, for models only.

    Raises
    ------
    WorkloadError
        If there is no such model or workload, it cannot be read, or lengths
        are given to what is no model.

    See Also
    --------
    load_onnx, load_workload

    Examples
    --------
    >>> load_network("vgg16").macs
    15470264320
    """
    from loopsched.network.graph import Network

    if not isinstance(name_or_path, (str, os.PathLike)):
        raise WorkloadError(f"network is {show(name_or_path)}; a name or a path is needed")
    text = os.fsdecode(name_or_path)
    if not is_model(text):
        if batch is not None or dims or inputs or values:
            raise WorkloadError(
                f"batch, dims, inputs and values are for ONNX models; {show(text)} is not one"
            )
        if _is_yaml(text):
            from loopsched.network.zigzag_layers import load_zigzag

            return load_zigzag(Path(text))
        return Network.from_workload(read_workload(name_or_path))
    from loopsched.network.onnx_file import load_onnx

    path, given = _parts(text)
    if given and os.path.exists(text):
        path, given = text, ""
    found = _given(text, given)
    lengths = found.dims | dict(dims or {})
    first = lengths.pop(_BATCH, None)
    return load_onnx(
        path,
        batch=first if batch is None else batch,
        dims=lengths,
        inputs=found.inputs | dict(inputs or {}),
        values=found.values | dict(values or {}),
    )


def _is_yaml(text: str | os.PathLike[str]) -> bool:
    return Path(text).suffix in (".yaml", ".yml")


def _parts(text: str) -> tuple[str, str]:
    found = _MODEL.fullmatch(text)
    return (found[1], found[2] or "") if found else (text, "")


def _quoted(name: str) -> str:
    """Write a name of an input without the signs that part such a text."""
    return quote(name.strip(), safe=" :#@.-_[]()")


def _given(text: str, given: str) -> _Given:
    found = _Given()
    faults = []
    for part in filter(None, (one.strip() for one in given.split(","))):
        name, _, value = part.rpartition("=")
        name = name.strip()
        kind = next((one for one in (_INPUT, _VALUE) if name.startswith(one)), "")
        name = unquote(name.removeprefix(kind)) if kind else name
        targets: dict[str, Any] = {"": found.dims, _INPUT: found.inputs, _VALUE: found.values}
        read, form = _READERS[kind]
        said = show(part.removeprefix(kind))
        try:
            number = read(value.strip())
        except ValueError:
            faults.append(f"{said} is not {form}")
            continue
        if not name:
            faults.append(f"{said} is not {form}")
        elif targets[kind].setdefault(name, number) != number:
            faults.append(f"{show(name)} is given two {'values' if kind == _VALUE else 'lengths'}")
    WorkloadError.refuse(text if text.isprintable() else show(text), faults)
    return found


def _length(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ValueError(text)
    return int(text)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(_length(one) for one in text.split("x")) if text else ()


def _number(text: str) -> float:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else float(text)


def _numbers(text: str) -> Contents:
    numbers = tuple(_number(one) for one in text.split("x"))
    return numbers[0] if len(numbers) == 1 else numbers


_READERS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "": (_length, "NAME=LENGTH, such as batch=8"),
    _INPUT: (_shape, "NAME=SHAPE, such as x=1,3,48,192"),
    _VALUE: (_numbers, "NAME=NUMBER, such as sr=16000"),
}
