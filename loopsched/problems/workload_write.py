"""Workloads written as files that load again as the same problems."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from loopsched.base.arguments import show
from loopsched.base.errors import WorkloadError
from loopsched.base.files import write_text
from loopsched.problems.problem import Problem
from loopsched.problems.projections import projection_text
from loopsched.problems.workload import Workload, parse_workload

_USUAL_BYTES = 4


def problem_fields(problem: Problem) -> dict[str, Any]:
    """Write a problem as the fields of a layer in a workload file.

    Parameters
    ----------
    problem : Problem
        As one of the builders makes it.

    Returns
    -------
    dict
        For ``json.dump``; without a name.

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d
    >>> problem_fields(conv2d(c=8, k=16, h=9, w=9, r=3, s=3, padding=1, element_bytes=2))
    {'op': 'conv2d', 'n': 1, 'c': 8, 'k': 16, 'h': 9, 'w': 9, 'r': 3, 's': 3, 'padding': 1,
     'element_bytes': 2}
    """
    known = dict(problem.attributes)
    size = dict(problem.size)
    if problem.kind == "conv2d":
        fields = _conv_fields(size, known)
    elif problem.kind in ("gemm", "batched_gemm"):
        batch = {"batch": size["B"]} if problem.kind == "batched_gemm" else {}
        turned = {name: True for name in ("transpose_a", "transpose_b") if known[name]}
        fields = {**batch, **{dim.lower(): size[dim] for dim in "MNK"}, **turned}
    elif problem.kind == "einsum":
        fields = {"expression": known["expression"], "sizes": size}
    else:
        tensors = {tensor.name: projection_text(tensor) for tensor in problem.tensors}
        fields = {"sizes": size, "tensors": tensors, "output": problem.output}
    widths = {tensor.name: tensor.element_bytes for tensor in problem.tensors}
    if set(widths.values()) != {_USUAL_BYTES}:
        one = next(iter(widths.values()))
        fields["element_bytes"] = one if set(widths.values()) == {one} else widths
    return {"op": problem.kind, **fields}


def _conv_fields(size: dict[str, int], known: dict[str, Any]) -> dict[str, Any]:
    groups = known["groups"]
    high, wide = known["input_size"]
    fields: dict[str, Any] = {"n": size["N"], "c": size["C"] * groups, "k": size["K"] * groups}
    fields |= {"h": high, "w": wide, "r": size["R"], "s": size["S"]}
    for name in ("stride", "padding", "dilation"):
        values = known[name]
        usual = 0 if name == "padding" else 1
        if set(values) != {usual}:
            fields[name] = values[0] if len(set(values)) == 1 else list(values)
    if groups > 1:
        fields["groups"] = groups
    if known["pass"] != "forward":
        fields["pass"] = known["pass"]
    return fields


def workload_to_dict(workload: Workload) -> dict[str, Any]:
    """Write a workload as the contents of a workload file.

    Returns
    -------
    dict
        `parse_workload` makes the same workload of it.

    Raises
    ------
    WorkloadError
        If a problem is not one that the builders make.

    Examples
    --------
    >>> from loopsched.problems.builders import gemm
    >>> workload_to_dict(Workload("mine", (gemm(m=2, n=3, k=4, name="a"),), (5,)))["layers"]
    [{'op': 'gemm', 'name': 'a', 'm': 2, 'n': 3, 'k': 4, 'count': 5}]
    """
    layers = []
    for problem, count in zip(workload.problems, workload.counts, strict=True):
        try:
            fields = problem_fields(problem)
        except KeyError as error:
            raise WorkloadError(
                f"problem {show(problem.name)} of kind {show(problem.kind)} has no {error}: it "
                "was not made by a builder, and a file cannot say it"
            ) from None
        layer = {"op": fields.pop("op"), "name": problem.name, **fields}
        layers.append(layer | ({"count": count} if count > 1 else {}))
    source = {"source": workload.source} if workload.source else {}
    data = {"name": workload.name, **source, "layers": layers}
    again = parse_workload(data, f"workload {show(workload.name)}", workload.name)
    for before, after in zip(workload.problems, again.problems, strict=True):
        if before != after:
            raise WorkloadError(
                f"problem {show(before.name)} is not one that a builder makes: a file cannot say it"
            )
    return data


def save_workload(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Write a workload file; it appears under its name when it is complete.

    Parameters
    ----------
    workload : Workload
    path : path
        Its suffix is ``.json``.

    Raises
    ------
    WorkloadError
        If a problem cannot be said in a file, or the file cannot be written.
    """
    target = Path(path)
    if target.suffix != ".json":
        raise WorkloadError(f"{target}: a workload file ends in .json")
    data = workload_to_dict(workload)
    rows = data.pop("layers")
    head = json.dumps(data, indent=2, ensure_ascii=False).rstrip("}").rstrip()
    lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
    write_text(target, f'{head},\n  "layers": [\n{lines}\n  ]\n}}\n', WorkloadError)
