"""Workloads and mappings for ZigZag (version 3)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from loopsched.base.arguments import Checker, show
from loopsched.base.errors import ProblemError, ScheduleError
from loopsched.exchange.exported import Exported
from loopsched.exchange.timeloop.blocks import blocks
from loopsched.exchange.timeloop.nodes import machine_nodes
from loopsched.exchange.yaml_out import list_to_yaml
from loopsched.machines.arch import Arch
from loopsched.models.machine import roles
from loopsched.nests.nest import Schedule
from loopsched.network.zigzag_layers import CONV, GEMM, WINDOWS
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.projections import axis_text, span

_OPERANDS = {"input": "I", "weight": "W", "output": "O"}
_KNOWN = {"conv2d": CONV, "gemm": GEMM, "batched_gemm": GEMM}
_LINKS = {"O": "O", "W": "I2", "I": "I1"}
_ALLOTTED = "which memory each loop belongs to is not written: ZigZag assigns loops itself"
_MOST_MESHES = 4
_PAIR, _KINDS = "(Problem, Schedule or None)", (Problem, Schedule | None)
_DIM = re.compile(r"[A-Z]+\d*")


def to_zigzag(
    layers: Sequence[tuple[Problem, Schedule | None]],
    arch: Arch | None = None,
    *,
    ordering: bool = False,
) -> Exported:
    """Write problems, and schedules of them, as ZigZag's workload and mapping.

    Parameters
    ----------
    layers : sequence of (Problem, Schedule or None)
        Each operand comes from memory: no connections between layers are written.
    arch : Arch, optional
        Needed for schedules: how many instances share the spatial loops.
    ordering : bool
        Whether the order of temporal loops is written, too, where tiles are whole.  ZigZag
        3.8 accepts one only if it spreads no loop of its own over the machine, which rules
        out all machines that it ships.

    Returns
    -------
    Exported
        ``workload.yaml`` and, if there are schedules, ``mapping.yaml``: spatial loops of
        the machine's units as ``D1``, of their lanes as ``D2``; with ``ordering``, temporal
        ones as ``temporal_ordering``, innermost first.

    Raises
    ------
    ProblemError
        If a problem is no product of an input and a weight as ZigZag has them.
    ScheduleError
        If spatial loops do not suit the machine, or there is none.

    See Also
    --------
    to_timeloop

    References
    ----------
    L. Mei et al., *ZigZag: Enlarging Joint Architecture-Mapping Design Space Exploration for
    DNN Accelerators*, IEEE Transactions on Computers 70(8), 2021.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, parse_schedule
    >>> problem = gemm(m=64, n=64, k=64)
    >>> nest = parse_schedule("M:64@SM N:64 K:64 M:8", problem)
    >>> made = to_zigzag([(problem, nest)], load_arch("titan_v"), ordering=True)
    >>> print(made.text("mapping.yaml"))
    - name: m64 n64 k64
      spatial_mapping: {D1: ["D, 8"]}
      temporal_ordering: [[D, 8], [C, 64], [K, 64]]
      memory_operand_links: {O: O, W: I2, I: I1}
    - name: default
      memory_operand_links: {O: O, W: I2, I: I1}
    <BLANKLINE>
    """
    check = Checker("to_zigzag", ProblemError)
    for at, pair in enumerate(check.each("layers", layers, tuple, _PAIR)):
        kinds = [isinstance(one, kind) for one, kind in zip(pair, _KINDS, strict=False)]
        if len(pair) != len(_KINDS) or not all(kinds):
            check.fault(f"layers[{at}] is {show(pair)}; {_PAIR} is needed")
    check.finish()
    if arch is None and any(schedule is not None for _, schedule in layers):
        raise ScheduleError("a mapping needs its machine: give it, too")
    workload, mapping = [], []
    lost: list[str] = []
    for number, (problem, schedule) in enumerate(layers):
        words = _words(problem)
        workload.append(_layer(number, problem, words))
        lost += (f"{problem.name}: {sentence}" for sentence in _layer_lost(problem))
        if schedule is not None and arch is not None:
            entry, said = _mapping(problem, schedule, arch, words, ordering)
            mapping.append(entry)
            lost += (f"{problem.name}: {sentence}" for sentence in said)
    files = [("workload.yaml", list_to_yaml(workload))]
    if mapping:
        mapping.append({"name": "default", "memory_operand_links": _LINKS})
        lost.append(_ALLOTTED)
        files.append(("mapping.yaml", list_to_yaml(mapping)))
    return Exported(tuple(files), tuple(lost))


def _words(problem: Problem) -> dict[str, str]:
    """Name dimensions as ZigZag does: capital letters and a number."""
    known = _KNOWN.get(problem.kind, {})
    if all(dim in known for dim in problem.dims):
        return {dim: known[dim] for dim in problem.dims}
    words: dict[str, str] = {}
    spare = (f"X{i}" for i in itertools.count() if f"X{i}" not in map(str.upper, problem.dims))
    for dim in problem.dims:
        upper = dim.upper()
        is_free = _DIM.fullmatch(upper) and upper not in words.values()
        words[dim] = upper if is_free else next(spare)
    return words


def _operand(problem: Problem, tensor: Tensor) -> str:
    return _OPERANDS[roles(problem, tensor)[1]]


def _layer(number: int, problem: Problem, words: Mapping[str, str]) -> dict[str, Any]:
    ProblemError.refuse(f"problem '{problem.name}' for ZigZag", _refused(problem))
    windows: dict[str, Axis] = {}
    texts = {}
    for tensor in problem.tensors:
        axes = [_axis_word(axis, words, windows) for axis in tensor.axes]
        operand = _operand(problem, tensor)
        texts[operand] = operand + "".join(f"[{axis.lower()}]" for axis in axes)
    layer: dict[str, Any] = {
        "id": number,
        "name": problem.name,
        "operator_type": "Conv" if problem.kind == "conv2d" else "Gemm",
        "equation": f"{texts['O']}+={texts['W']}*{texts['I']}",
        "dimension_relations": [
            f"{name}={'+'.join(f'{n}*{words[dim]}' for dim, n in axis.terms)}".lower()
            for name, axis in windows.items()
        ],
        "loop_dims": [words[dim] for dim in problem.dims],
        "loop_sizes": [size for _, size in problem.sizes],
        "operand_precision": _precision(problem),
        # A layer that is its own source: the operand is there from the start.
        "operand_source": {"W": number, "I": number},
    }
    padded = {name: axis for name, axis in windows.items() if axis.size is not None}
    if padded:
        layer["pr_loop_dims"] = list(padded)
        layer["pr_loop_sizes"] = [axis.size for axis in padded.values()]
        layer["padding"] = [
            [max(0, -axis.offset), max(0, axis.offset + span(axis, problem.size) - axis.size)]
            for axis in padded.values()
            if axis.size is not None
        ]
    return layer


def _refused(problem: Problem) -> list[str]:
    operands = sorted(_operand(problem, tensor) for tensor in problem.tensors)
    faults = []
    if operands != ["I", "O", "W"]:
        faults.append(f"{len(operands)} tensors; an input, a weight and an output are needed")
    for tensor in problem.tensors:
        if not tensor.axes:
            faults.append(f"'{tensor.name}' has no axis; at least one is needed")
        for axis in tensor.axes:
            if len(axis.terms) > 2 or (len(axis.terms) == 1 and axis.terms[0][1] != 1):
                faults.append(
                    f"'{tensor.name}': axis {axis_text(axis)}; one dimension, "
                    "or the sum of two, is needed"
                )
            elif axis.is_compound and tensor.name == problem.output:
                faults.append(
                    f"'{tensor.name}': windows slide over the output ({axis_text(axis)}); "
                    "ZigZag lets them slide over inputs only"
                )
            elif not axis.is_compound and not axis.is_plain:
                faults.append(f"'{tensor.name}': axis {axis_text(axis)} is padded without a window")
    return faults


def _axis_word(axis: Axis, words: Mapping[str, str], windows: dict[str, Axis]) -> str:
    dims = tuple(words[dim] for dim in axis.dims)
    if len(dims) == 1:
        return dims[0]
    name = WINDOWS.get((dims[0], dims[1]), f"W{len(windows)}")
    while name in words.values() or windows.get(name, axis) != axis:
        name += "1"
    windows[name] = axis
    return name


def _precision(problem: Problem) -> dict[str, int]:
    bits = {_operand(problem, tensor): 8 * tensor.element_bytes for tensor in problem.tensors}
    return {"W": bits["W"], "I": bits["I"], "O": bits["O"], "O_final": bits["O"]}


def _layer_lost(problem: Problem) -> list[str]:
    return [
        f"'{tensor.name}': axis {axis_text(axis)} begins {axis.offset} positions into the "
        "stored tensor; in ZigZag, at its start"
        for tensor in problem.tensors
        for axis in tensor.axes
        if axis.offset > 0
    ]


def _mapping(
    problem: Problem, schedule: Schedule, arch: Arch, words: Mapping[str, str], ordering: bool
) -> tuple[dict[str, Any], list[str]]:
    lanes = max(1, int(max(rate for _, rate in arch.compute.macs_per_cycle_per_unit)))
    found, changed = blocks(problem, schedule, machine_nodes(arch, lanes))
    lost = list(changed)
    meshes = [block.factors for block in found if block.node.kind == "fan"]
    if any(meshes[_MOST_MESHES:]):
        raise ProblemError(
            f"problem '{problem.name}' for ZigZag: more than {_MOST_MESHES} meshes are used"
        )
    inner_first = [block.factors for block in reversed(found) if block.node.kind != "fan"]
    inward = [one for factors in inner_first for one in reversed(factors)]
    every = (one for block in found for one in block.factors)
    cut = dict.fromkeys(words[one.dim] for one in every if one.last != one.trips)
    order = " ".join(f"{words[one.dim]}:{one.trips}" for one in inward)
    if inward and not ordering:
        lost.append(
            f"the order of the temporal loops (innermost first: {order}) is not written: ZigZag "
            "orders them itself, and accepts a given order on none of the machines that it ships"
        )
    elif inward and cut:
        lost.append(
            f"the order of the temporal loops (innermost first: {order}) is not written: tiles "
            f"of {', '.join(cut)} are partial, which ZigZag cannot express"
        )
    entry: dict[str, Any] = {"name": problem.name}
    if any(meshes):
        entry["spatial_mapping"] = {
            f"D{place}": [f"{words[one.dim]}, {one.trips}" for one in factors]
            for place, factors in enumerate(meshes, 1)
            if factors
        }
    if inward and ordering and not cut:
        entry["temporal_ordering"] = [[words[one.dim], one.trips] for one in inward]
    entry["memory_operand_links"] = dict(_LINKS)
    return entry, lost
