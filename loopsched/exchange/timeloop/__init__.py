"""Timeloop's files (version 0.4): problem, architecture and mapping, out and in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loopsched.base.arguments import show
from loopsched.base.errors import ArchError, InputError, ScheduleError
from loopsched.base.files import MEBIBYTE, read_text
from loopsched.exchange.exported import Exported
from loopsched.exchange.timeloop.blocks import Block, blocks, overfull
from loopsched.exchange.timeloop.machines import arch_section, word_bits_of
from loopsched.exchange.timeloop.mappings import (
    bypasses,
    mapping_section,
    noted_schedule,
    read_mapping,
)
from loopsched.exchange.timeloop.nodes import LANES, Node, machine_nodes
from loopsched.exchange.timeloop.reading import Read, read_arch
from loopsched.exchange.timeloop.shapes import letters, problem_section, read_problem, written_sizes
from loopsched.exchange.timeloop.text import parsed
from loopsched.exchange.yaml_out import to_yaml
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.machine import data_type_of, roles
from loopsched.models.places import resolved
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

_SECTIONS = ("problem", "architecture", "mapping", "variables")


@dataclass(frozen=True, slots=True)
class Imported:
    """What Timeloop's files say.

    Parameters
    ----------
    problem : Problem or None
    arch : Arch or None
    schedule : Schedule or None
    remarks : tuple of str
        What was assumed, and what is not kept.
    """

    problem: Problem | None
    arch: Arch | None
    schedule: Schedule | None
    remarks: tuple[str, ...] = ()


def to_timeloop(
    problem: Problem | None = None,
    schedule: Schedule | None = None,
    arch: Arch | None = None,
    *,
    residual: bool = False,
) -> Exported:
    """Write a problem, a machine and a schedule as Timeloop's files.

    Parameters
    ----------
    problem : Problem, optional
    schedule : Schedule, optional
        Needs the problem and the machine.  Tensors that it lets pass a level
        are bypassed there; read back, the machine leaves no choice there.
    arch : Arch, optional
    residual : bool
        Whether partial tiles are written as Timeloop's back end reads and
        writes them (``P=7,3``: the last tile has 3).  Its Python front end
        refuses that form; without it, dimensions with partial tiles are
        enlarged to whole ones.

    Returns
    -------
    Exported
        ``problem.yaml``, ``architecture.yaml``, ``mapping.yaml``, for what is given. What
        Timeloop cannot express is in ``lost``, and in notes that its front end ignores:
        `from_timeloop` reads back exactly what was written.

    Raises
    ------
    ProblemError, ScheduleError
        If something cannot be written at all.

    See Also
    --------
    from_timeloop, to_zigzag

    References
    ----------
    A. Parashar et al., *Timeloop: A Systematic Approach to DNN Accelerator Evaluation*,
    ISPASS 2019.

    Examples
    --------
    >>> from loopsched import gemm, load_arch, parse_schedule
    >>> problem, arch = gemm(m=512, n=512, k=512), load_arch("titan_v")
    >>> nest = parse_schedule("M:512@SM N:512@SM K:512 M:64 N:64 K:8", problem)
    >>> made = to_timeloop(problem, nest, arch)
    >>> made.names
    ('problem.yaml', 'architecture.yaml', 'mapping.yaml')
    >>> from_timeloop(made.text()).schedule == nest
    True
    """
    if schedule is not None and (problem is None or arch is None):
        raise ScheduleError("a mapping needs its problem and its machine: give all three")
    if problem is None or arch is None or schedule is None:
        return _without_mapping(problem, arch)
    schedule, arch = resolved(problem, schedule.check(problem), arch)
    lost: list[str] = []
    nodes = _nodes(arch, problem, lost)
    found, changed = blocks(problem, schedule, nodes)
    sizes = None if residual else _whole_sizes(problem, found)
    section, said = problem_section(problem, sizes)
    lost = [*said, *lost, *changed, *overfull(problem, found)]
    if residual and any(one.last != one.trips for block in found for one in block.factors):
        lost.append("factors such as 'P=7,3' are read by timeloop-model, not by its front end")
    mapping = mapping_section(problem, schedule, found, letters(problem), residual=residual)
    bits = word_bits_of([tensor.element_bytes for tensor in problem.tensors])
    machine, said = arch_section(arch, [block.node for block in found], bits)
    files = (
        ("problem.yaml", to_yaml({"problem": section})),
        ("architecture.yaml", to_yaml({"architecture": machine})),
        ("mapping.yaml", to_yaml({"mapping": mapping})),
    )
    return Exported(files, (*lost, *said), is_one_document=True)


def _without_mapping(problem: Problem | None, arch: Arch | None) -> Exported:
    files: list[tuple[str, str]] = []
    lost: list[str] = []
    if problem is not None:
        section, said = problem_section(problem)
        files.append(("problem.yaml", to_yaml({"problem": section})))
        lost += said
    if arch is not None:
        nodes = _nodes(arch, problem, lost)
        widths = [tensor.element_bytes for tensor in problem.tensors] if problem else []
        machine, said = arch_section(arch, nodes, word_bits_of(widths))
        files.append(("architecture.yaml", to_yaml({"architecture": machine})))
        lost += said
    return Exported(tuple(files), tuple(lost), is_one_document=True)


def _whole_sizes(problem: Problem, found: list[Block]) -> dict[str, int]:
    """Enlarge dimensions to whole tiles: what their factors multiply to."""
    sizes = dict.fromkeys(problem.dims, 1)
    for block in found:
        for factor in block.factors:
            sizes[factor.dim] *= factor.trips
    return sizes


def _nodes(arch: Arch, problem: Problem | None, lost: list[str]) -> list[Node]:
    kind = arch.compute.data_types[0]
    try:
        kind = data_type_of(problem, arch) if problem else kind
    except ArchError as error:
        lost.append(f"{error}; the rate of {kind} is taken")
    return machine_nodes(arch, max(1, int(arch.compute.rate(kind))))


def from_timeloop(
    text: str, *, where: str = "timeloop", element_bytes: int | None = None
) -> Imported:
    """Read a problem, a machine and a schedule from Timeloop's YAML.

    Parameters
    ----------
    text : str
        One document with one or more of the sections ``problem``, ``architecture`` and
        ``mapping``.
    where : str
        For messages.
    element_bytes : int, optional
        Size of the problem's elements, which Timeloop does not name.

    Raises
    ------
    InputError
        With every fault of a section, including what Timeloop can express and loopsched
        cannot.

    See Also
    --------
    read_timeloop, to_timeloop

    Examples
    --------
    >>> found = from_timeloop('''
    ... problem:
    ...   version: 0.4
    ...   shape:
    ...     name: Conv1D
    ...     dimensions: [R, P]
    ...     data_spaces:
    ...     - {name: Weights, projection: [[[R]]]}
    ...     - {name: Inputs, projection: [[[R], [P]]]}
    ...     - {name: Outputs, projection: [[[P]]], read_write: true}
    ...   instance: {R: 3, P: 16}
    ... ''', element_bytes=1)
    >>> found.problem.macs, found.problem.tensor("Inputs").axes[0].terms
    (48, (('R', 1), ('P', 1)))
    """
    if not isinstance(text, str):
        raise InputError(f"{where} is {show(text)}; text is needed")
    return _from_sections({where: parsed(text)}, element_bytes)


def read_timeloop(
    paths: Iterable[str | os.PathLike[str]], *, element_bytes: int | None = None
) -> Imported:
    """Read a problem, a machine and a schedule from Timeloop's files.

    Parameters
    ----------
    paths : iterable of path
        Files, or folders of which all ``.yaml`` files are read.
    element_bytes : int, optional
        As for `from_timeloop`.

    Raises
    ------
    InputError
        As for `from_timeloop`; or if a file cannot be read.

    See Also
    --------
    from_timeloop, to_timeloop
    """
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise InputError("no .yaml file to read")
    found = {}
    for file in files:
        text = read_text(file, "a file of Timeloop", most_bytes=MEBIBYTE)
        with InputError.at(str(file)):
            found[str(file)] = parsed(text, file.parent)
    return _from_sections(found, element_bytes)


def _from_sections(files: Mapping[str, Mapping[str, Any]], element_bytes: int | None) -> Imported:
    sections: dict[str, tuple[str, Any]] = {}
    remarks: list[str] = []
    for where, data in files.items():
        for key, section in data.items():
            if key in sections:
                raise InputError(f"{where}: a second section '{key}'; {sections[key][0]} has one")
            if key in _SECTIONS:
                sections[key] = (where, section)
            elif "ignore" not in key:  # Timeloop's word for what only aliases name
                remarks.append(f"section '{key}' is not read")
    if not sections.keys() & {"problem", "architecture"}:
        raise InputError(f"{', '.join(files)}: no section 'problem' or 'architecture'")
    problem = arch = schedule = None
    if "architecture" in sections:
        where, section = sections["architecture"]
        machine = read_arch(section, where, sections.get("variables", ("", None))[1])
        arch = machine.arch
    if "problem" in sections:
        where, section = sections["problem"]
        bits = machine.word_bits if arch is not None and not machine.is_own else None
        if element_bytes is None and bits:
            element_bytes = -(-bits // 8)
            many = "1 byte" if element_bytes == 1 else f"{element_bytes} bytes"
            remarks.append(f"problem: elements of {many}, by datawidth {bits}")
        problem, words, said = read_problem(section, where, element_bytes=element_bytes)
        remarks += said
    if arch is not None:
        remarks += machine.remarks
    if "mapping" in sections:
        where, section = sections["mapping"]
        if problem is None or arch is None:
            raise InputError(f"{where}: a mapping needs its problem and its architecture, too")
        units = {arch.compute.unit, arch.compute.lane_unit or LANES}
        units |= {level.unit for level in arch.levels if level.unit}
        schedule = noted_schedule(section, problem, units)
        if schedule is None or not machine.is_own:
            arch, said = _with_bypass(machine, bypasses(section), problem)
            remarks += said
        if schedule is None:
            written = written_sizes(sections["problem"][1], words)
            schedule, said = read_mapping(section, where, problem, words, machine.order, written)
            remarks += said
    return Imported(problem, arch, schedule, tuple(remarks))


def _with_bypass(
    machine: Read, passing: Mapping[str, list[str]], problem: Problem
) -> tuple[Arch, list[str]]:
    """Let data pass the levels that the mapping says they pass."""
    levels: list[Level] = []
    remarks: list[str] = []
    words = {tensor.name: roles(problem, tensor) for tensor in problem.tensors}
    for level in machine.arch.levels:
        # Our own files say it in the mapping only; others', in the architecture, too.
        past = passing.get(machine.names.get(level.name, ""), [] if machine.is_own else None)
        held = [name for name in words if name not in (past or ())]
        now = [name for name in words if level.is_held(*words[name])]
        if past is not None and level.kind != "memory" and not held:
            remarks.append(f"mapping: {level.name} holds nothing, as it says, and is left out")
            continue
        if past is not None and level.kind != "memory" and held != now:
            level = replace(level, holds=tuple(words[name][0] for name in held))
            remarks.append(f"mapping: {level.name} holds {', '.join(held)} only, as it says")
        levels.append(level)
    return replace(machine.arch, levels=tuple(levels)), remarks
