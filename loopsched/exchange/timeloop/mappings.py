"""Schedules as Timeloop's ``mapping`` section, and back."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from loopsched.base.arguments import show
from loopsched.base.errors import InputError, ScheduleError, nearest
from loopsched.exchange.factors import Factor, from_factors
from loopsched.exchange.timeloop.blocks import Block
from loopsched.exchange.timeloop.notes import NOTE, note_text, read_note
from loopsched.models.machine import roles
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.problem import Problem

_FACTOR = re.compile(r"\s*([A-Za-z_]\w*?)\s*=?\s*([0-9]{1,18})(?:\s*,\s*([0-9]{1,18}))?\s*")
_BYPASSES = ("dataspace", "datatype", "bypass")


def mapping_section(
    problem: Problem,
    schedule: Schedule,
    found: Sequence[Block],
    words: Mapping[str, str],
    *,
    residual: bool = False,
) -> list[dict[str, Any]]:
    """Write blocks of loops as Timeloop's ``mapping`` section.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        What the note keeps: as it was before it was brought into blocks.
    found : sequence of Block
    words : mapping of dimension to letter
    residual : bool
        Whether factors say how often the last tile's loop runs.

    Examples
    --------
    >>> from loopsched import buffer_arch, gemm, parse_schedule
    >>> from loopsched.exchange.timeloop.blocks import blocks
    >>> from loopsched.exchange.timeloop.nodes import machine_nodes
    >>> problem = gemm(m=4, n=3, k=2)
    >>> nest = parse_schedule("M:4 K:2 N:3 M:2", problem)
    >>> nodes = machine_nodes(buffer_arch(capacity_bytes=1024), 1)
    >>> found, _ = blocks(problem, nest, nodes)
    >>> section = mapping_section(problem, nest, found, {"M": "M", "N": "N", "K": "K"})
    >>> for entry in section[:3]:
    ...     print(entry["target"], entry["type"], *entry["factors"], entry["permutation"])
    DRAM temporal M=1 N=1 K=1 ['M', 'N', 'K']
    buffer temporal M=2 N=3 K=2 ['N', 'K', 'M']
    buffer_loops temporal M=2 N=1 K=1 ['M', 'N', 'K']
    """
    section: list[dict[str, Any]] = []
    for block in found:
        node = block.node
        if node.kind == "units" or (node.kind == "fan" and node.count == 1):
            continue
        kind = "spatial" if node.kind == "fan" else "temporal"
        entry: dict[str, Any] = {"target": node.name, "type": kind}
        entry |= _loops(problem, block.factors, words, residual)
        if node.kind == "fan":
            entry["split"] = len(problem.dims)
        section.append(entry)
    for block in found:
        held = _held(problem, block)
        if held is not None:
            passing = [tensor.name for tensor in problem.tensors if tensor.name not in held]
            said = {"keep": held, "bypass": passing}
            directive = {"target": block.node.name, "type": "dataspace"}
            section.append(directive | {key: names for key, names in said.items() if names})
    text = note_text(section, {"schedule": str(schedule)})
    section[0] = {**section[0], NOTE: text}
    return section


def _loops(
    problem: Problem, found: Sequence[Factor], words: Mapping[str, str], residual: bool
) -> dict[str, list[str]]:
    have = {factor.dim: factor for factor in found}
    inward = [factor.dim for factor in reversed(found)]
    order = inward + [dim for dim in problem.dims if dim not in have]
    every = [have.get(dim, Factor(dim, 1, 1)) for dim in problem.dims]
    texts = [
        str(Factor(words[one.dim], one.trips, one.last if residual else one.trips)) for one in every
    ]
    return {"factors": texts, "permutation": [words[dim] for dim in order]}


def _held(problem: Problem, block: Block) -> list[str] | None:
    """List the tensors that a node keeps; None: all, which need not be said."""
    if block.node.kind == "dummy":
        return []
    level = block.node.level
    if level is None or level.holds is None:
        return None
    return [tensor.name for tensor in problem.tensors if level.is_held(*roles(problem, tensor))]


def noted_schedule(
    section: object, problem: Problem, units: Container[str | None]
) -> Schedule | None:
    """Read the schedule of a section's note, if it still speaks for the section.

    None: there is no note, or the section was edited, or the note does not
    fit the problem and the units, which may have been.
    """
    note, _ = read_note(section)
    if note is None:
        return None
    try:
        schedule = parse_schedule(note["schedule"], problem)
    except (KeyError, InputError):
        return None
    return schedule if all(loop.unit in units for loop in schedule.loops if loop.unit) else None


def read_mapping(
    section: object,
    where: str,
    problem: Problem,
    words: Mapping[str, str],
    order: Sequence[tuple[str, str | None]],
    written: Mapping[str, int],
) -> tuple[Schedule, list[str]]:
    """Read Timeloop's ``mapping`` section, whatever its note says.

    Parameters
    ----------
    section, where
        As for `loopsched.exchange.timeloop.shapes.read_problem`.
    problem : Problem
    words : mapping of str to str
        Timeloop's names of the dimensions to loopsched's.
    order : sequence of (str, str or None)
        The machine's nodes, outermost first, with the unit of fan-outs.
    written : mapping of dimension to int
        Sizes in the file, where the problem's may be enlarged to whole tiles;
        factors cover these, or the problem's own.

    Returns
    -------
    (Schedule, list of str)
        And remarks on what is not kept.

    Raises
    ------
    ScheduleError
        With every fault found.
    """
    note, is_stale = read_note(section)
    remarks = ["mapping: edited since loopsched wrote it; its note is not used"] * is_stale
    if note is not None:
        remarks.append("mapping: its note does not fit the other sections and is not used")
    faults: list[str] = []
    entries = _entries(section, [name for name, _ in order], faults)
    found: list[Factor] = []
    own_mesh = {name for name, unit in order if unit is not None}
    is_twice = {name for name, unit in order if unit is None} & own_mesh
    for name, unit in order:
        # In version 0.3 a storage's temporal loops stand outside its mesh, under one name.
        kinds = ("temporal",) if unit is None else ("spatial",)
        for kind in kinds if name in is_twice else ("spatial", "temporal"):
            entry = entries.get((name, kind))
            if entry is not None:
                place = f"{name}, {kind}"
                level = unit if kind == "spatial" else None
                if kind == "spatial" and unit is None:
                    faults.append(f"{place}: '{name}' has no mesh to spread loops on")
                found += _read_loops(place, entry, words, level, faults)
    if not faults:
        faults += _mismatches(found, problem, words, written)
    ScheduleError.refuse(f"{where}: mapping", faults)
    remarks.append(
        "mapping: at which storage a temporal loop stands is not kept; "
        "here each level holds the largest tile of the nest that fits"
    )
    if any(map(_on_y, entries.values())):
        remarks.append("mapping: which loops lie on X and which on Y of a mesh is not kept")
    return from_factors(tuple(found), problem.size), remarks


def _on_y(entry: Mapping[str, Any]) -> bool:
    split = entry.get("split")
    n_dims = len(_split_words(entry.get("permutation")))
    return isinstance(split, str) and split.isdigit() and 0 < int(split) < n_dims


def _entries(
    section: object, names: Sequence[str], faults: list[str]
) -> dict[tuple[str, str], Mapping[str, Any]]:
    if not isinstance(section, list):
        faults.append(f"found {show(section)}; a list of directives is needed")
        return {}
    # The back end's own files name the place between two levels so.
    known = {f"inter_{name}_spatial": name for name in names} | {name: name for name in names}
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for place, entry in enumerate(section):
        if not isinstance(entry, Mapping):
            faults.append(f"directive {place + 1} is {show(entry)}; a mapping is needed")
            continue
        target, kind = entry.get("target"), entry.get("type")
        if kind not in ("temporal", "spatial", *_BYPASSES):
            allowed = ("temporal", "spatial", "dataspace")
            faults.append(
                f"directive {place + 1}: type is {show(kind)}; {nearest(str(kind)[:40], allowed)}"
            )
        elif not isinstance(target, str) or target not in known:
            faults.append(
                f"directive {place + 1}: target is {show(target)}; "
                f"{nearest(str(target)[:40], names)}"
            )
        elif kind not in _BYPASSES:
            key = (known[str(target)], str(kind))
            if target != known[str(target)] and kind == "temporal" and _is_idle(entry):
                continue
            if key in found:
                faults.append(f"directive {place + 1}: a second {kind} one of '{target}'")
            found[key] = entry
    return found


def bypasses(section: object) -> dict[str, list[str]]:
    """Read which data spaces pass which storage by, where that is said.

    Examples
    --------
    >>> bypasses([{"target": "L1", "type": "dataspace", "keep": ["A"], "bypass": ["B"]}])
    {'L1': ['B']}
    """
    found = {}
    for entry in section if isinstance(section, list) else ():
        if isinstance(entry, Mapping) and entry.get("type") in _BYPASSES:
            passing = entry.get("bypass")
            names = [str(name) for name in passing] if isinstance(passing, list) else []
            found[str(entry.get("target"))] = names
    return found


def _is_idle(entry: Mapping[str, Any]) -> bool:
    texts = _factor_texts(entry.get("factors"))
    return all(one and one[2] == "1" for one in map(_FACTOR.fullmatch, texts))


def _factor_texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(one) for one in value]
    if isinstance(value, str):
        # One text: 'P=7,3 Q=2', 'P7 Q2' or 'P=7,Q=2'.
        return re.findall(r"[A-Za-z_]\w*?\s*=?\s*[0-9]+(?:\s*,\s*[0-9]+(?![0-9A-Za-z_=]))?", value)
    return []


def _split_words(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(one) for one in value]
    text = value if isinstance(value, str) else ""
    return (
        [word for word in re.split(r"[,\s]+", text) if word]
        if "," in text
        else list(text.replace(" ", ""))
    )


def _read_loops(
    place: str,
    entry: Mapping[str, Any],
    words: Mapping[str, str],
    level: str | None,
    faults: list[str],
) -> list[Factor]:
    """Read the loops of one node, outermost first."""
    trips: dict[str, tuple[int, int]] = {}
    for text in _factor_texts(entry.get("factors")):
        match = _FACTOR.fullmatch(text)
        if match is None:
            faults.append(f"{place}: factor {show(text)}; a form like P=7 or P=7,3 is needed")
            continue
        dim, full, last = match[1], int(match[2]), int(match[3] or match[2])
        if dim not in words:
            faults.append(
                f"{place}: factor {show(text)}: no dimension '{dim}'; {nearest(dim, words)}"
            )
        elif full == 0 or not 1 <= last <= full:
            faults.append(
                f"{place}: factor {show(text)}: 1 or more is needed, the last no more than the "
                "others (Timeloop's 0, 'all that is left', is not read: write it out)"
            )
        elif dim in trips:
            faults.append(f"{place}: two factors of '{dim}'")
        else:
            trips[dim] = (full, last)
    inward = _split_words(entry.get("permutation"))
    for dim in inward:
        if dim not in words:
            faults.append(f"{place}: permutation: no dimension {show(dim)}; {nearest(dim, words)}")
    running = [dim for dim, (full, _) in trips.items() if full > 1]
    if len(running) > 1 and any(dim not in inward for dim in running):
        missing = ", ".join(dim for dim in running if dim not in inward)
        faults.append(f"{place}: permutation does not say where {missing} stands, inner to outer")
    rank = {dim: i for i, dim in enumerate(inward)}
    running.sort(key=lambda dim: -rank.get(dim, 0))
    return [Factor(words[dim], *trips[dim], level) for dim in running if dim in words]


def _mismatches(
    found: Iterable[Factor], problem: Problem, words: Mapping[str, str], written: Mapping[str, int]
) -> Iterable[str]:
    letters = {dim: word for word, dim in words.items()}
    chains: dict[str, list[Factor]] = {dim: [] for dim in problem.dims}
    for factor in found:
        chains[factor.dim].append(factor)
    for dim, chain in chains.items():
        reached = 0
        for factor in chain:
            reached = reached * factor.trips + factor.last - 1
        if reached + 1 not in (written[dim], problem.size[dim]):
            text = " x ".join(str(factor).partition("=")[2] for factor in chain) or "1"
            yield (
                f"factors of '{letters[dim]}', outermost first: {text} cover {reached + 1}; "
                f"the size is {written[dim]}"
            )
