"""Workloads: named lists of problems, read from JSON files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopsched.base.arguments import Checker, is_text, near, show
from loopsched.base.display import Shown
from loopsched.base.errors import ProblemError, WorkloadError
from loopsched.base.files import named, read_text
from loopsched.base.resources import resource_dir, resource_names
from loopsched.problems.problem import Problem, Tensor
from loopsched.problems.workload_schema import LAYERS, OPERATIONS, TOP, Field
from loopsched.problems.workload_schema import workload_schema as workload_schema

_MAX_BYTES = 16 * 2**20
_MAX_FAULTS = 200
# Operations as other tools call them, for the hint.
_MEANT = {"conv": "conv2d", "convolution": "conv2d", "linear": "gemm", "matmul": "gemm",
          "mm": "gemm", "bmm": "batched_gemm"}  # fmt: skip
_SUFFIX = ".json"
# A model, and lengths for it.


@dataclass(frozen=True, slots=True)
class Workload(Shown):
    """Problems that belong together, such as the layers of a network.

    Parameters
    ----------
    name : str
    problems : tuple of Problem
        At least one, each with a name of its own.
    counts : tuple of int
        How often each problem occurs; empty: once.
    source : str
        Where they come from.

    Raises
    ------
    WorkloadError
        If there is no problem, a name occurs twice, or counts do not match.

    See Also
    --------
    load_workload, search_workload

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> Workload("mine", (gemm(m=2, n=3, k=4),), counts=(5,)).macs
    120
    """

    name: str
    problems: tuple[Problem, ...]
    counts: tuple[int, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        if not self.counts:
            object.__setattr__(self, "counts", (1,) * len(self.problems))
        check = Checker(f"workload {show(self.name)}", WorkloadError)
        if not self.problems:
            check.fault("no problems; at least one is needed")
        if len(self.counts) != len(self.problems):
            check.fault(f"{len(self.counts)} counts for {len(self.problems)} problems")
        for count in self.counts:
            check.count("count", count)
        names = [problem.name for problem in self.problems]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                check.fault(f"{show(name)} names {names.count(name)} problems; names are unique")
        check.finish()

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole workload, with counts."""
        return sum(n * one.macs for n, one in zip(self.counts, self.problems, strict=True))


def workload_names() -> tuple[str, ...]:
    """List the shipped workloads by name.

    See Also
    --------
    load_workload, arch_names

    Examples
    --------
    >>> "deepbench_conv" in workload_names()
    True
    """
    return resource_names("workloads", _SUFFIX)


def read_workload(name_or_path: str | os.PathLike[str]) -> Workload:
    """Read a workload that is shipped, by name, or any workload file, by path.

    Parameters
    ----------
    name_or_path : str or path
        A shipped name wins over a file of that name.  `workload_schema` describes the form
        of a file.

    Raises
    ------
    WorkloadError
        If there is no such workload, or its file is not valid: with every
        fault, each with its layer, field, value, and what is allowed.

    See Also
    --------
    loopsched.load_workload : Reads models, too.

    Examples
    --------
    >>> workload = read_workload("deepbench_conv")
    >>> len(workload.problems), workload.problems[0].name
    (94, 'n4 c1 h161 w700 k32 r5 s20 stride2')
    """
    if isinstance(name_or_path, str) and name_or_path in workload_names():
        path = resource_dir("workloads") / f"{name_or_path}{_SUFFIX}"
        return parse_workload(_read(path, name_or_path), name_or_path, name_or_path)
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise WorkloadError(f"workload is {show(name_or_path)}; a name or a path is needed")
    path = Path(name_or_path)
    where = named(name_or_path)
    return parse_workload(_read(path, where), where, path.stem)


def parse_workload(data: object, where: str, default_name: str) -> Workload:
    """Build a workload from the contents of a file.

    Parameters
    ----------
    data : object
        What `json.load` returns.
    where : str
        For the head of messages, such as the file's path.
    default_name : str
        If the data has no name.

    Raises
    ------
    WorkloadError
        With every fault found.

    Examples
    --------
    >>> layer = {"op": "gemm", "m": 2, "n": 3, "k": 4}
    >>> parse_workload({"layers": [layer, layer]}, "example", "example").problems[1].name
    'm2 n3 k4 #2'
    """
    check = Checker(where, WorkloadError)
    if not isinstance(data, Mapping):
        raise WorkloadError(f"{where}: found {show(data)}; an object with 'layers' is needed")
    top = _fields(check, data, {field.name: field for field in TOP}, LAYERS)
    for key, is_right in (("name", is_text), ("source", _is_prose)):
        if key in top and not is_right(top[key]):
            check.fault(f"{key} is {show(top[key])}; printable text is needed")
    if "element_bytes" in top:
        if isinstance(top["element_bytes"], Mapping):
            check.fault("element_bytes of the file is a mapping; sizes by tensor go in the layers")
        else:
            check.element_bytes(top["element_bytes"], ("all",))
    if check.faults:
        top.pop("element_bytes", None)  # said once, not again for every layer
    built = [
        _Layer(layer, f"layer {i}").build(check, top.get("element_bytes"))
        for i, layer in enumerate(_layers(check, data))
    ]
    problems = _named(check, built)
    if len(check.faults) > _MAX_FAULTS:
        more = len(check.faults) - _MAX_FAULTS
        check.faults[_MAX_FAULTS:] = [f"and {more} more"]
    check.finish()
    name = str(top.get("name", default_name))
    counts = tuple(layer.count for layer in built)
    source = str(top.get("source", ""))
    return Workload(name if is_text(name) else "workload", problems, counts, source)


def parse_layer(data: object, where: str) -> Workload:
    """Build a workload of a single problem, and name it after that.

    The data are those of a layer in a file; the rest is as for `parse_workload`.

    Examples
    --------
    >>> parse_layer({"op": "gemm", "m": 2, "n": 3, "k": 4}, "example").name
    'm2 n3 k4'
    """
    check = Checker(where, WorkloadError)
    layer = _Layer(data).build(check, None)
    problems = _named(check, [layer])
    check.finish()
    return Workload(problems[0].name, problems, (layer.count,))


def _is_prose(value: object) -> bool:
    return isinstance(value, str) and "".join(value.split()).isprintable()


def workload_digest(workload: Workload) -> str:
    """Hash everything in a workload that results depend on: not its source.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> one, two = (Workload("mine", (gemm(m=2, n=3, k=k),)) for k in (4, 5))
    >>> len(workload_digest(one)), workload_digest(one) == workload_digest(two)
    (16, False)
    """
    content = [
        [problem.name, problem.sizes, [_numbers(tensor) for tensor in problem.tensors]]
        + [problem.output, count]
        for problem, count in zip(workload.problems, workload.counts, strict=True)
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _numbers(tensor: Tensor) -> list[object]:
    axes = [[axis.terms, axis.offset, axis.size] for axis in tensor.axes]
    return [tensor.name, axes, tensor.element_bytes]


class _Layer:
    """One layer on its way from the file to a problem."""

    def __init__(self, data: object, at: str = "") -> None:
        self.data = data
        self.at = at
        self.count = 1
        self.name: str | None = None
        self.problem: Problem | None = None
        given = data.get("name") if isinstance(data, Mapping) else None
        if is_text(given):
            self.name = str(given)
        self.place = f"{at} {show(self.name)}" if at and self.name else at

    def build(self, check: Checker, element_bytes: object) -> _Layer:
        """Build the problem, or note why it cannot be built."""
        mine = Checker(self.place, WorkloadError)
        arguments = self._arguments(mine)
        if arguments is not None:
            operation = OPERATIONS[str(arguments.pop("op"))]
            fields = operation.field_names()
            self.count = mine.count("count", arguments.pop("count", 1))
            if element_bytes is not None:
                arguments.setdefault("element_bytes", element_bytes)
            missing = [f.name for f in operation.fields if f.required and f.name not in arguments]
            for name in missing:
                mine.fault(f"no '{name}' ({fields[name].text})")
            # Stand-ins let the builder judge the fields that are there.
            stand_ins: dict[str, object] = dict.fromkeys(missing, 1)
            try:
                self.problem = operation.build(
                    **{
                        fields[name].parameter: value
                        for name, value in {**arguments, **stand_ins}.items()
                    }
                )
            except ProblemError as error:
                mine.faults += [f for f in error.problems if not _is_about(f, missing)]
        check.faults += [f"{self.place}: {one}" if self.place else one for one in mine.faults]
        return self

    def _arguments(self, check: Checker) -> dict[str, object] | None:
        """Find the fields under their own names, if the kind of layer is known."""
        if not isinstance(self.data, Mapping):
            check.fault(
                f"found {show(self.data)}; an object such as {{'op': 'gemm', ...}} is needed"
            )
            return None
        op = next((v for k, v in self.data.items() if str(k).casefold() == "op"), None)
        if op is None:
            check.fault(f"no 'op'; one of {' '.join(OPERATIONS)}")
            return None
        if not isinstance(op, str) or op not in OPERATIONS:
            meant = _MEANT.get(op, op) if isinstance(op, str) else op
            check.fault(f"op is {show(op)}; {near(meant, OPERATIONS)}")
            return None
        return _fields(check, self.data, OPERATIONS[op].field_names())


def _is_about(fault: str, names: Sequence[str]) -> bool:
    return any(fault.startswith(f"{name} ") or f"divide {name}," in fault for name in names)


def _fields(
    check: Checker,
    data: Mapping[object, object],
    known: Mapping[str, Field],
    passed_over: Sequence[str] = (),
) -> dict[str, object]:
    """Map the fields of an object to their own names; note unknown and repeated ones."""
    found: dict[str, object] = {}
    allowed = [*dict.fromkeys(field.name for field in known.values()), *passed_over]
    for key, value in data.items():
        field = known.get(key.casefold()) if isinstance(key, str) else None
        if field is None:
            if key not in passed_over:
                check.fault(f"unknown field {show(key)}; {near(key, allowed)}")
        elif field.name in found:
            check.fault(f"'{field.name}' is given twice, also as {show(key)}")
        else:
            found[field.name] = value
    for repeated in (data, *data.values()):
        for key in getattr(repeated, "repeated", ()):
            check.fault(f"key {show(key)} occurs more than once in one object")
    return found


def _layers(check: Checker, data: Mapping[object, object]) -> Sequence[object]:
    given = [key for key in LAYERS if key in data]
    if len(given) != 1:
        what = "both 'layers' and 'problems'" if given else "neither 'layers' nor 'problems'"
        check.fault(f"{what}; give one of them")
        return ()
    layers = data[given[0]]
    if not isinstance(layers, (list, tuple)):
        check.fault(f"{given[0]} is {show(layers)}; a list of layers is needed")
        return ()
    if not layers:
        check.fault(f"{given[0]} is empty; at least one layer is needed")
    return layers


def _named(check: Checker, layers: Sequence[_Layer]) -> tuple[Problem, ...]:
    """Make names unique: a repeated default gets a number, a repeated choice is a fault."""
    chosen: dict[str, str] = {}
    for layer in layers:
        if layer.name is None:
            continue
        if layer.name in chosen:
            check.fault(f"{layer.place}: {chosen[layer.name]} has the same name")
        chosen.setdefault(layer.name, layer.at)
    taken = set(chosen)
    times: dict[str, int] = {}
    problems = []
    for layer in layers:
        if layer.problem is None:
            continue
        problem = layer.problem
        if layer.name is None:
            name = default = problem.name
            while name in taken:
                times[default] = times.get(default, 1) + 1
                name = f"{default} #{times[default]}"
            taken.add(name)
            problem = problem if name == default else problem.renamed(name)
        problems.append(problem)
    return tuple(problems)


class _Object(dict[str, object]):
    """A JSON object that remembers which keys it was given more than once."""

    repeated: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, object]]) -> _Object:
    found = _Object(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        found.repeated = tuple(key for key in found if keys.count(key) > 1)
    return found


def _integer(text: str) -> int | float:
    # Python refuses to convert thousands of digits; no size has a hundred.
    return int(text) if len(text) <= 1000 else float("-inf" if text[0] == "-" else "inf")


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _instead(path: Path) -> str:
    """Say what could be meant by a name that is no file."""
    if path.name.startswith(("attention:", "grouped:")):
        return (
            ", and no workload: 'loopsched pick' takes attention and grouped GEMMs, pick() an "
            "Attention or Grouped"
        )
    return f", and no shipped workload of that name; {near(path.stem, workload_names(), 0.7)}"


def _read(path: Path, where: str) -> object:
    """Read a JSON file, or say in one message why it is not one."""
    text = read_text(
        path,
        "a JSON object with 'layers'",
        most_bytes=_MAX_BYTES,
        error=WorkloadError,
        where=where,
        hint=lambda: _instead(path),
    )
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_float=_number)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        found = show(text[error.pos : error.pos + 20]) if error.pos < len(text) else "the end"
        raise WorkloadError(f"{where}: {place}: not JSON: {error.msg} (found {found})") from None
    except RecursionError:
        raise WorkloadError(f"{where}: nested too deeply; a workload has 4 levels") from None
