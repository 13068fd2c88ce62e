"""Choosing problems by text: a workload and its layers, or a problem in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loopsched.base.arguments import option_value, pairs, show
from loopsched.base.errors import WorkloadError, nearest
from loopsched.network.text import load_workload
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload, parse_layer
from loopsched.problems.workload_schema import OPERATIONS

_SIDES = re.compile(r"[0-9]{1,9}(x[0-9]{1,9}){1,3}")
"""A number for each side, as the names of convolutions have them."""
_INLINE = re.compile(rf"({'|'.join(OPERATIONS)}|[a-z0-9_]+(?=:[^/]*=)):(.*)", re.DOTALL)

_EXPRESSION = re.compile(r"\s*(?:expression\s*=)?([\w\s,]*->[\w\s]*)(?:,(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Selection:
    """Some problems of a workload, with their numbers in it."""

    workload: Workload
    numbers: tuple[int, ...]


def select(text: str, layers: Sequence[str] = (), element_bytes: int | None = None) -> Selection:
    """Find the problems that are to be worked on.

    Parameters
    ----------
    text : str
        Name or file of a workload; or a problem, such as ``gemm:m=4,n=3,k=2``,
        ``einsum:ab,bc->ac,a=4,b=2,c=3`` or a layer of a workload file in JSON.
        ``stride=2x1`` has a number for each side.
    layers : sequence of str
        Numbers or names; none: all.
    element_bytes : int, optional
        Of every tensor, whatever the workload says.

    Examples
    --------
    >>> chosen = select("gemm:m=4,n=3,k=2", element_bytes=2)
    >>> chosen.workload.problems[0].tensor("A").element_bytes
    2
    """
    return choose(_workload(text), layers, element_bytes)


def choose(
    workload: Workload, layers: Sequence[str] = (), element_bytes: int | None = None
) -> Selection:
    """Choose problems of a workload.

    Parameters
    ----------
    workload : Workload
    layers, element_bytes
        As for `select`.

    Examples
    --------
    >>> from loopsched import load_workload
    >>> choose(load_workload("resnet50"), ["2", "0"]).numbers
    (2, 0)
    """
    names = dict(enumerate(problem.name for problem in workload.problems))
    numbers = layer_numbers(f"workload '{workload.name}'", names, layers) if layers else [*names]
    problems = [workload.problems[number] for number in numbers]
    if element_bytes is not None:
        problems = [problem.with_element_bytes(element_bytes) for problem in problems]
    counts = tuple(workload.counts[number] for number in numbers)
    chosen = Workload(workload.name, tuple(problems), counts, workload.source)
    return Selection(chosen, tuple(numbers))


def select_one(text: str, layers: Sequence[str] = (), element_bytes: int | None = None) -> Problem:
    """Find the one problem that is to be worked on.

    Raises
    ------
    WorkloadError
        If the workload has several and none is chosen.
    """
    whole = _workload(text)
    problems = choose(whole, layers, element_bytes).workload.problems
    if len(problems) > 1:
        chosen = f" of {len(whole.problems)} are chosen" if layers else ""
        raise WorkloadError(
            f"{text}: {len(problems)} problems{chosen}, but one is needed; choose it with "
            f"one --layer (0 to {len(whole.problems) - 1}, or a name as 'loopsched workloads' "
            "shows it)"
        )
    return problems[0]


def problem_of(text: str) -> Problem:
    """Read a problem from one cell of a table.

    Parameters
    ----------
    text : str
        As for `select`; one of several by its number or name, as in
        ``deepbench_gemm#3``.

    Raises
    ------
    WorkloadError
        If it is no problem, or several.

    Examples
    --------
    >>> problem_of("gemm:m=64,n=32,k=16").macs, problem_of("alexnet#0").name
    (32768, 'conv1')
    """
    name, mark, layer = text.partition("#")
    if mark and not _INLINE.fullmatch(text.strip()) and not text.lstrip().startswith("{"):
        return select_one(name.strip(), [layer.strip()])
    found = select(text).workload
    if len(found.problems) > 1:
        raise WorkloadError(
            f"problem '{text}': {len(found.problems)} problems, but one is needed: "
            f"{text}#LAYER, by its name or its number, 0 to {len(found.problems) - 1}"
        )
    return found.problems[0]


def _workload(text: str) -> Workload:
    is_bare = text.strip() in OPERATIONS  # its sizes are asked for
    inline = _INLINE.fullmatch(text.strip() + ":" * is_bare)
    if inline:
        found = _EXPRESSION.fullmatch(inline[2]) if inline[1] == "einsum" else None
        fields = _fields(text, (found[2] or "") if found else inline[2])
        if found:
            sizes = {name: fields.pop(name) for name in [*fields] if len(name) == 1}
            fields |= {"expression": found[1].strip(), "sizes": sizes}
        layer: object = {"op": inline[1], **fields}
    elif text.lstrip().startswith("{"):
        layer = _json_layer(text)
    else:
        return load_workload(text)
    return parse_layer(layer, f"problem {show(text)}")


def _fields(text: str, fields: str) -> dict[str, object]:
    parts = filter(None, (part.strip() for part in fields.split(",")))
    found = pairs(parts, f"'{text}': field", "field=value, such as m=128", WorkloadError)
    return {name: _field(name, value) for name, value in found.items()}


def _field(name: str, value: str) -> object:
    if name != "name" and _SIDES.fullmatch(value):
        return [*map(int, value.split("x"))]
    return option_value(value)


def _json_layer(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"problem {show(text)}: not JSON: {error}") from None


def layer_numbers(where: str, names: Mapping[int, str], layers: Sequence[str]) -> list[int]:
    """Find the numbers of layers that are given by number or by name, each once.

    Parameters
    ----------
    where : str
        What has the layers, for the head of a message.
    names : mapping of int to str
        The name of each layer there is, by its number.
    layers : sequence of str

    Raises
    ------
    WorkloadError
        With every layer that is not there, and those that are.

    Examples
    --------
    >>> layer_numbers("x.jsonl", {2: "conv2", 5: "fc6"}, ["fc6", "2"])
    [5, 2]
    >>> layer_numbers("x.jsonl", {0: "conv0", 1: "conv1", 5: "fc6"}, ["3"])
    Traceback (most recent call last):
        ...
    loopsched.base.errors.WorkloadError: x.jsonl: no layer 3; layers are numbered 0 to 1, 5
    """
    found: list[int] = []
    faults = []
    firsts: dict[str, int] = {}
    for number, name in names.items():
        firsts.setdefault(name, number)
    for layer in layers:
        if layer in firsts:
            found.append(firsts[layer])
        elif re.fullmatch(r"[0-9]{1,9}", layer) and int(layer) in names:
            found.append(int(layer))
        elif re.fullmatch(r"-?[0-9]+", layer):
            only = "the only layer is number" if len(names) == 1 else "layers are numbered"
            faults.append(f"no layer {layer[:20]}; {only} {_ranges(names)}")
        else:
            known = list(firsts)
            allowed = known if len(known) <= 10 else [*known[:10], "..."]
            faults.append(f"no layer '{layer}'; {_meant(layer, known, [_ranges(names), *allowed])}")
    WorkloadError.refuse(where, faults)
    return list(dict.fromkeys(found))


def _ranges(numbers: Iterable[int]) -> str:
    """Write numbers, those that follow one another as a range."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _meant(word: str, names: Sequence[str], shown: Sequence[str]) -> str:
    hint, _, _ = nearest(word, names).partition("allowed:")
    return f"{hint}allowed: {', '.join(shown)}{')' if hint else ''}"
