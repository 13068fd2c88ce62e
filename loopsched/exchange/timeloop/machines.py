"""Machines as Timeloop's ``architecture`` section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from loopsched.base.yaml_text import TAG
from loopsched.exchange.timeloop.nodes import LANES, Node
from loopsched.exchange.timeloop.notes import NOTE, note_text
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import arch_to_dict
from loopsched.machines.levels import Level

VERSION = 0.4
# Accelergy asks for one; loopsched's machines have none.
_TECHNOLOGY = "45nm"
_WORD_BITS = 32
_PORT_BITS = 64


def word_bits_of(element_bytes: Sequence[int]) -> int:
    """Choose the one width of data that a machine has in Timeloop.

    Examples
    --------
    >>> word_bits_of([2, 4]), word_bits_of([])
    (32, 32)
    """
    return 8 * max(element_bytes) if element_bytes else _WORD_BITS


def arch_section(
    arch: Arch, nodes: Sequence[Node], word_bits: int
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Write a machine as Timeloop's ``architecture`` section; say what it leaves to its note.

    Parameters
    ----------
    arch : Arch
    nodes : sequence of Node
        As `machine_nodes` lists them, with dummies where a mapping needs some.
    word_bits : int
        Width of an element.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> from loopsched.exchange.timeloop.nodes import machine_nodes
    >>> titan_v = load_arch("titan_v")
    >>> section, lost = arch_section(titan_v, machine_nodes(titan_v, 64), 32)
    >>> section["nodes"][2]["attributes"]["depth"], section["nodes"][3]["spatial"]
    (73728, {'meshX': 80})
    """
    clock = arch.compute.clock_hz
    written: list[dict[str, Any]] = [
        {
            TAG: "Container",
            "name": "system",
            "attributes": {"technology": _TECHNOLOGY, "global_cycle_seconds": 1 / clock},
        }
    ]
    inner = dict(zip((level.name for level in arch.levels), arch.caches, strict=False))
    for node in nodes:
        if node.kind == "fan":
            if node.count > 1:
                written.append(
                    {TAG: "Container", "name": node.name, "spatial": {"meshX": node.count}}
                )
        elif node.level is not None:
            next_level = inner.get(node.level.name)
            written.append(_storage(node, node.level, next_level, word_bits, clock))
        elif node.kind == "dummy":
            attributes = {"width": 1, "depth": 1, "datawidth": 1, "technology": -1}
            written.append(_component(node.name, "dummy_storage", attributes))
        else:
            kind = "intmac" if set(arch.compute.data_types) == {"int8"} else "fpmac"
            written.append(_component(node.name, kind, {"datawidth": word_bits}))
    section: dict[str, Any] = {"version": VERSION, "nodes": written}
    section[NOTE] = note_text(section, {"arch": arch_to_dict(arch)})
    return section, tuple(_lost(arch, nodes))


def _component(name: str, kind: str, attributes: dict[str, Any]) -> dict[str, Any]:
    return {TAG: "Component", "name": name, "class": kind, "attributes": attributes}


def _storage(
    node: Node, level: Level, inner: Level | None, word_bits: int, clock_hz: float
) -> dict[str, Any]:
    capacity = _capacity(level)
    port = 8 * level.line_bytes if level.line_bytes else _PORT_BITS
    # A port takes whole elements, and the capacity is whole ports.
    if port % word_bits or (capacity is not None and 8 * capacity % port):
        port = word_bits
    attributes: dict[str, Any] = {"width": port, "datawidth": word_bits}
    if capacity is not None:
        attributes = {"depth": max(1, 8 * capacity // port), **attributes}
    if level.double_buffered:
        attributes["multiple_buffering"] = 2
    if inner is not None and inner.bandwidth_bytes_per_s is not None:
        a_cycle = inner.bandwidth_bytes_per_s / level.instances / clock_hz
        attributes["shared_bandwidth"] = a_cycle / (word_bits / 8)
    kind = "DRAM" if level.kind == "memory" else "SRAM"
    return _component(node.name, kind, attributes)


def _capacity(level: Level) -> int | None:
    own = sum(size for _, size in level.tensor_capacity_bytes)
    return level.usable_bytes if not own else max(level.usable_bytes or 0, own)


def _lost(arch: Arch, nodes: Sequence[Node]) -> Iterator[str]:
    for level in arch.levels:
        if level.kind == "cache":
            yield f"{level.name} is a cache; Timeloop places tiles in it"
        if level.kind == "scratchpad" and not level.halo_reuse:
            yield f"{level.name}: the overlap of windows is fetched again here, kept in Timeloop"
        if level.effective_capacity_bytes is not None:
            yield f"{level.name}: its effective capacity is exported as its capacity"
        if level.tensor_capacity_bytes:
            yield f"{level.name}: its buffers for single tensors become one"
        if level.energy_pj_per_byte is not None:
            yield f"{level.name}: energies are left to Accelergy"
        if level.write_policy == "through" or level.accumulate == "registers":
            yield f"{level.name}: write policy and accumulators are not exported"
    yield f"the technology is not known; '{_TECHNOLOGY}' is set, since Accelergy needs one"
    if arch.compute.max_clock_hz != arch.compute.clock_hz:
        yield "only the sustained clock is exported"
    lanes = arch.compute.lane_unit or LANES
    for node in nodes:
        if node.unit == lanes and node.count > 1:
            yield (
                f"the {node.count} multiply-adds per cycle of one {arch.compute.unit} become "
                f"a mesh, '{node.name}', used only by loops bound to it"
            )
