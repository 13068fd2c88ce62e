"""Networks and models by text: ``model.onnx``, ``model.onnx:batch=8,sequence=128``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from loopsched.base.arguments import show
from loopsched.base.errors import WorkloadError
from loopsched.problems.workload import Workload, read_workload

if TYPE_CHECKING:
    from loopsched.network.graph import Network

_BATCH = "batch"
_MODEL = re.compile(r"(.+\.onnx)(?::([^/\\]*))?", re.IGNORECASE | re.DOTALL)


def is_model(text: str | os.PathLike[str]) -> bool:
    """Whether a text names an ONNX model, lengths for it included.

    Examples
    --------
    >>> is_model("a/b.onnx"), is_model("b.onnx:batch=8"), is_model("resnet50")
    (True, True, False)
    """
    return _MODEL.fullmatch(os.fsdecode(text)) is not None


def model_text(text: str, batch: int | None = None, dims: Iterable[str] = ()) -> str:
    """Write a model and the lengths for it as one text.

    Parameters
    ----------
    text : str
        A model, or any other workload if there are no lengths.
    batch : int, optional
    dims : iterable of str
        ``NAME=LENGTH`` each.

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
    """
    given = [*([] if batch is None else [f"{_BATCH}={batch}"]), *dims]
    if not given:
        return text
    if not is_model(text):
        raise WorkloadError(
            f"--batch and --dim are for ONNX models, files that end in .onnx; {show(text)} is none"
        )
    _lengths(text, ",".join(given))
    return f"{text}{',' if _parts(text)[1] else ':'}{','.join(given)}"


def load_workload(name_or_path: str | os.PathLike[str]) -> Workload:
    """Load a workload that is shipped, by name, or any file, by path.

    Parameters
    ----------
    name_or_path : str or path
        A shipped name wins over a file of that name.  `workload_schema` has
        the form of a file.  A path that ends in ``.onnx`` is a model, also
        with lengths, as in ``model.onnx:batch=8``: see `load_network`.

    Raises
    ------
    WorkloadError
        If there is none, or it is not valid; the message has every fault.

    Examples
    --------
    >>> workload = load_workload("deepbench_conv")
    >>> len(workload.problems), workload.problems[0].name
    (94, 'n4 c1 h161 w700 k32 r5 s20 stride2')
    """
    if isinstance(name_or_path, (str, os.PathLike)) and is_model(name_or_path):
        return load_network(name_or_path).workload()
    return read_workload(name_or_path)


def load_network(
    name_or_path: str | os.PathLike[str],
    *,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
) -> Network:
    """Load a network: an ONNX model, or a workload as a network without a graph.

    Parameters
    ----------
    name_or_path : str or path
        ``model.onnx``, also with lengths as in ``model.onnx:batch=8``; or
        what `load_workload` takes.
    batch : int, optional
    dims : mapping of str to int, optional
        As for `load_onnx`, for models only.

    Raises
    ------
    WorkloadError
        If there is no such model or workload, or it cannot be read.

    Examples
    --------
    >>> load_network("vgg16").macs
    15470264320
    """
    from loopsched.network.graph import Network

    text = os.fsdecode(name_or_path)
    if not is_model(text):
        if batch is not None or dims:
            raise WorkloadError(f"batch and dims are for ONNX models; {show(text)} is none")
        return Network.from_workload(read_workload(name_or_path))
    from loopsched.network.onnx_file import load_onnx

    path, lengths = _parts(text)
    if lengths and os.path.exists(text):
        path, lengths = text, ""
    found = _lengths(text, lengths) | dict(dims or {})
    first = found.pop(_BATCH, None)
    return load_onnx(path, batch=first if batch is None else batch, dims=found)


def _parts(text: str) -> tuple[str, str]:
    found = _MODEL.fullmatch(text)
    return (found[1], found[2] or "") if found else (text, "")


def _lengths(text: str, given: str) -> dict[str, int]:
    lengths: dict[str, int] = {}
    faults = []
    for part in filter(None, (one.strip() for one in given.split(","))):
        name, _, length = part.rpartition("=")
        name = name.strip()
        if not name or not re.fullmatch(r"\s*[0-9]{1,18}\s*", length):
            faults.append(f"{show(part)} is not NAME=LENGTH, such as batch=8")
        elif lengths.setdefault(name, int(length)) != int(length):
            faults.append(f"{show(name)} is given two lengths")
    WorkloadError.refuse(text if text.isprintable() else show(text), faults)
    return lengths
