"""Machines out of Timeloop's ``architecture`` section."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from loopsched.base.arguments import show
from loopsched.base.errors import ArchError, InputError
from loopsched.base.yaml_text import TAG
from loopsched.exchange.timeloop.notes import read_note
from loopsched.exchange.timeloop.older import tree_parts
from loopsched.exchange.timeloop.parts import Part
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import arch_from_dict
from loopsched.machines.levels import Compute, Level

_STORAGE = ("dram", "sram", "regfile", "smartbuffer", "storage")
_UNITS = ("mac", "compute")
_CLOCK_S = 1e-9
# Attributes that say how much a storage holds.
_SIZES = ("depth", "entries", "sizeKB")
# What stands for no limit: loopsched's levels all have a bandwidth.
_UNLIMITED_BYTES_PER_S = 1e18
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(slots=True)
class Read:
    """What was read of a machine.

    Parameters
    ----------
    arch : Arch
    order : list of (str, str or None)
        Nodes that a mapping may name, outermost first, with the unit that
        loopsched marks their spatial loops with.
    names : dict of str to str
        Levels' names to those of the file.
    remarks : list of str
        What was assumed, or not kept.
    is_own : bool
        Whether loopsched wrote it and it was not edited since.
    word_bits : int or None
        Width of data, if the storages that name one agree.
    """

    arch: Arch
    order: list[tuple[str, str | None]]
    names: dict[str, str]
    remarks: list[str] = field(default_factory=list)
    is_own: bool = False
    word_bits: int | None = None


def read_arch(
    section: object, where: str, variables: object = None, name: str = "timeloop"
) -> Read:
    """Read Timeloop's ``architecture`` section.

    Parameters
    ----------
    section, where
        As for `loopsched.exchange.timeloop.shapes.read_problem`.
    variables : object
        The ``variables`` section, if there is one: it may hold the clock.
    name : str
        Of the machine, which the section does not name.

    Raises
    ------
    ArchError
        With every fault found.
    """
    faults: list[str] = []
    nodes = section.get("nodes") if isinstance(section, Mapping) else None
    if isinstance(section, Mapping) and section.keys() & {"subtree", "local"}:
        parts = list(tree_parts(section, _kind, faults))
    elif isinstance(nodes, list):
        parts = list(_flattened(nodes, faults, is_parallel=False, depth=0))
    else:
        raise ArchError(f"{where}: architecture: no list 'nodes' (of version 0.3: 'subtree')")
    ArchError.refuse(f"{where}: architecture", faults)
    note, is_stale = read_note(section)
    with ArchError.at(f"{where}: architecture"):
        read = _assembled(parts, variables, name)
    if note is not None:
        try:
            arch = arch_from_dict(note["arch"])
        except (KeyError, InputError):
            is_stale = True
        else:
            return Read(arch, read.order, read.names, is_own=True)
    if is_stale:
        read.remarks.insert(
            0, "architecture: edited since loopsched wrote it; its note is not used"
        )
    return read


def _flattened(
    nodes: list[Any], faults: list[str], is_parallel: bool, depth: int
) -> Iterator[Part]:
    for place, node in enumerate(nodes):
        tag = node.get(TAG) if isinstance(node, Mapping) else None
        if tag in ("Hierarchical", "Parallel", "Pipelined"):
            inner = node.get("nodes")
            if isinstance(inner, list):
                yield from _flattened(inner, faults, is_parallel or tag == "Parallel", depth + 1)
        elif tag in ("Component", "Container"):
            yield from _part(node, tag, faults, is_parallel)
        elif tag != "Nothing":
            faults.append(
                f"nodes[{place}]: {show(node)}; a node begins with !Component, !Container, "
                "!Hierarchical or !Parallel"
            )


def _part(
    node: Mapping[str, Any], tag: str, faults: list[str], is_parallel: bool
) -> Iterator[Part]:
    name = node.get("name")
    if not isinstance(name, str) or not name:
        faults.append(f"a !{tag} has no name")
        return
    if str(node.get("enabled", "true")).lower() == "false":
        return
    spatial = node.get("spatial", {})
    fan = 1
    for axis in ("meshX", "meshY") if isinstance(spatial, Mapping) else ():
        text = spatial.get(axis, "1")
        if isinstance(text, str) and text.isdigit() and int(text) > 0:
            fan *= int(text)
        else:
            faults.append(f"'{name}': {axis} is {show(text)}; a whole number >= 1 is needed")
    kind = "container"
    if tag == "Component":
        kind = _kind(str(node.get("class", "")))
        if not kind:
            faults.append(
                f"'{name}': class is {show(node.get('class'))}; it names neither storage "
                f"({', '.join(_STORAGE)}) nor units ({', '.join(_UNITS)})"
            )
    attributes, constraints = node.get("attributes", {}), node.get("constraints", {})
    yield Part(
        name,
        kind,
        fan,
        attributes if isinstance(attributes, Mapping) else {},
        constraints if isinstance(constraints, Mapping) else {},
        is_parallel,
    )


def _kind(text: str) -> str:
    if "dummy_storage" in text:
        return "dummy"
    # Timeloop itself goes by parts of the word, and asks for storage first.
    if any(word in text.lower() for word in _STORAGE):
        return "storage"
    if any(word in text.lower() for word in _UNITS):
        return "units"
    return "nothing" if any(word in text for word in ("NoC", "network", "Network")) else ""


def _assembled(parts: list[Part], variables: object, name: str) -> Read:
    remarks: list[str] = []
    # Twelve digits: 1e-9 s are 1 GHz, not a little less.
    clock_hz = float(f"{1 / _clock_s(parts, variables, remarks):.12g}")
    storages = [part for part in parts if part.kind == "storage"]
    if len(storages) == 1 and any(key in storages[0].attributes for key in _SIZES):
        outside = Part(_free("memory", parts), "storage", 1, {}, {})
        parts, storages = [outside, *parts], [outside, *storages]
        remarks.append("architecture: one storage; a memory around it, of no limit, is added")
    units = [part for part in parts if part.kind == "units"]
    faults = []
    if len(storages) < 2:
        faults.append(f"{len(storages)} storage components with a size; at least one is needed")
    if len(units) != 1:
        faults.append(f"{len(units)} components compute (class mac or compute); one is needed")
    ArchError.refuse("machine", faults)
    words = _unit_words(parts, remarks)
    if limited := [part.name for part in parts if part.constraints.keys() - {"dataspace"}]:
        remarks.append(f"architecture: constraints on loops of {', '.join(limited)} are not read")
    levels = tuple(_levels(parts, words, clock_hz, faults, remarks))
    ArchError.refuse("machine", faults)
    compute = _compute(parts, levels, storages[-1], words, clock_hz)
    order = [
        (part.target or part.name, words.get(part.name))
        for part in parts
        if part.kind not in ("units", "nothing")
    ]
    if parts and (last := units[0]).fan > 1:
        order.append((last.name, words.get(last.name)))
    names = {_word(part.name): part.name for part in storages}
    return Read(Arch(name, levels, compute), order, names, remarks, word_bits=_width(storages))


def _free(name: str, parts: list[Part]) -> str:
    taken = {part.name for part in parts}
    return name if name not in taken else _free(f"{name}_", parts)


def _width(storages: list[Part]) -> int | None:
    found = {
        str(part.attributes["datawidth"]) for part in storages if "datawidth" in part.attributes
    }
    text = found.pop() if len(found) == 1 else ""
    return int(text) if text.isdigit() and int(text) > 0 else None


def _clock_s(parts: list[Part], variables: object, remarks: list[str]) -> float:
    places = [part.attributes for part in parts]
    places += [variables] if isinstance(variables, Mapping) else []
    for place in places:
        text = place.get("global_cycle_seconds")
        if isinstance(text, str) and _NUMBER.fullmatch(text) and float(text) > 0:
            return float(text)
    remarks.append("architecture: no 'global_cycle_seconds'; 1 ns is assumed")
    return _CLOCK_S


def _unit_words(parts: list[Part], remarks: list[str]) -> dict[str, str]:
    """Name the unit that marks the spatial loops of each fan-out.

    Fan-outs with no storage between them are one mesh to loopsched, under the
    name of the last.
    """
    words: dict[str, str] = {}
    waiting: list[str] = []
    for part in parts:
        if part.fan > 1:
            waiting.append(part.name)
        if part.kind in ("storage", "units") and waiting:
            word = re.sub(r"\W", "_", waiting[-1])
            words |= dict.fromkeys(waiting, word)
            if len(waiting) > 1:
                remarks.append(
                    f"architecture: meshes {', '.join(waiting)} are merged into '{word}'"
                )
            waiting = []
    return words


def _levels(
    parts: list[Part],
    words: Mapping[str, str],
    clock_hz: float,
    faults: list[str],
    remarks: list[str],
) -> Iterator[Level]:
    instances, unit, bandwidth = 1, None, _UNLIMITED_BYTES_PER_S
    is_first = True
    unlimited = []
    for part in parts:
        instances *= part.fan
        unit = words.get(part.name, unit)
        if part.kind != "storage":
            continue
        number = partial(_number, part, faults)
        word_bits = number("datawidth", 8)
        capacity = _capacity_bytes(number, word_bits)
        if is_first:
            yield Level(_word(part.name), "memory", None)
            if instances > 1:
                faults.append(f"'{part.name}': the memory has {instances} copies; one is needed")
        elif capacity is None:
            faults.append(f"'{part.name}': no 'depth' (with 'width'), so no capacity")
        elif not faults:
            yield Level(
                _word(part.name),
                "scratchpad",
                capacity,
                instances=instances,
                unit=unit if instances > 1 else None,
                bandwidth_bytes_per_s=bandwidth,
                holds=_holds(part, remarks),
                double_buffered=number("multiple_buffering", 1) >= 2,
            )
        words_a_cycle = number("shared_bandwidth", number("read_bandwidth", 0))
        bandwidth = words_a_cycle * word_bits / 8 * instances * clock_hz
        if not words_a_cycle:
            unlimited.append(part.name)
            bandwidth = _UNLIMITED_BYTES_PER_S
        is_first = False
    # The innermost storage hands on to the units, without a level between.
    if unlimited := unlimited[: -1 if unlimited and not words_a_cycle else None]:
        remarks.append(
            f"architecture: bandwidth of {', '.join(unlimited)} is not limited in the file; "
            f"{_UNLIMITED_BYTES_PER_S:g} B/s is assumed"
        )


def _word(name: str) -> str:
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return word if word[0].isalpha() else f"x{word}"


def _capacity_bytes(number: Callable[[str, float], float], word_bits: float) -> int | None:
    depth = number("depth", 0)
    if depth:
        return max(1, math.floor(depth * number("width", word_bits) / 8))
    if entries := number("entries", 0):
        return max(1, math.floor(entries * word_bits / 8))
    kibibytes = number("sizeKB", 0)
    return math.floor(kibibytes * 1024) if kibibytes else None


def _holds(part: Part, remarks: list[str]) -> tuple[str, ...] | None:
    dataspace = part.constraints.get("dataspace")
    if not isinstance(dataspace, Mapping):
        return None
    keep = dataspace.get("keep_only", dataspace.get("keep"))
    says_all = "keep_only" in dataspace or part.is_parallel or dataspace.get("bypass")
    if isinstance(keep, list) and keep and says_all and "*" not in keep:
        return tuple(str(name) for name in keep)
    if dataspace.get("bypass") and not keep:
        remarks.append(
            f"architecture: what '{part.name}' lets pass is not kept: it names no 'keep'"
        )
    return None


def _compute(
    parts: list[Part],
    levels: tuple[Level, ...],
    innermost: Part,
    words: Mapping[str, str],
    clock_hz: float,
) -> Compute:
    place = parts.index(innermost)
    inside = math.prod(part.fan for part in parts[place + 1 :])
    fans = [words[part.name] for part in parts[place + 1 :] if part.fan > 1]
    unit, count = levels[-1].unit, levels[-1].instances
    lane = fans[-1] if fans else None
    rate = inside
    if unit is None and lane is not None:
        unit, count, lane, rate = lane, inside, None, 1
    # One multiply-accumulate a cycle, whatever the operands: Timeloop knows no types.
    macs = tuple((data_type, rate) for data_type in ("fp32", "fp16", "int8"))
    return Compute(unit or "unit", count, clock_hz, clock_hz, macs, lane_unit=lane)


def _number(part: Part, faults: list[str], key: str, default: float) -> float:
    """Look up an attribute that is a number; a fault, and the default, if it is none."""
    text = part.attributes.get(key)
    if text is None or text == "null":
        return default
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        return float(text)
    faults.append(f"'{part.name}': {key} is {show(text)}; a number is needed (no expressions)")
    return default
