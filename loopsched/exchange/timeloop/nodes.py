"""A machine as Timeloop sees it: storage and fan-outs, one inside the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loopsched.exchange.names import free_name
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level

# Marks the loops over the multiply-adds of a unit where the machine has no word for them.
LANES = "lanes"


@dataclass(frozen=True, slots=True)
class Node:
    """One step from the memory to the units.

    Parameters
    ----------
    name : str
        In Timeloop's files.
    kind : {'storage', 'dummy', 'fan', 'units'}
        A level that holds data; a place for loops that holds none; side by
        side copies of all that follows; the units that compute.
    level : Level or None
        Of a storage.
    unit : str or None
        Word that marks the loops of a fan-out.
    count : int
        Copies of a fan-out.

    Examples
    --------
    >>> Node("SM", "fan", unit="SM", count=80).takes_temporal
    False
    """

    name: str
    kind: Literal["storage", "dummy", "fan", "units"]
    level: Level | None = None
    unit: str | None = None
    count: int = 1

    @property
    def takes_temporal(self) -> bool:
        """Whether temporal loops may stand here."""
        return self.kind in ("storage", "dummy")


def machine_nodes(arch: Arch, lanes: int) -> list[Node]:
    """List the nodes of a machine, outermost first.

    Parameters
    ----------
    arch : Arch
    lanes : int
        Multiply-accumulates a cycle of one unit.

    Examples
    --------
    >>> from loopsched import load_arch
    >>> [node.name for node in machine_nodes(load_arch("titan_v"), 64)]
    ['DRAM', 'L2', 'SM', 'L1', 'lane', 'MAC']
    """
    taken: set[str] = {level.name for level in arch.levels}
    nodes: list[Node] = []
    around = 1
    for level in arch.levels:
        if level.unit is not None and all(node.unit != level.unit for node in nodes):
            nodes.append(_fan(level.unit, level.instances // around, taken))
            around = level.instances
        nodes.append(Node(level.name, "storage", level))
    known = {node.unit for node in nodes}
    if arch.compute.unit not in known:
        nodes.append(_fan(arch.compute.unit, arch.compute.units // around, taken))
    if arch.compute.lane_unit is not None or lanes > 1:
        nodes.append(_fan(arch.compute.lane_unit or LANES, lanes, taken))
    nodes.append(Node(free_name("MAC", taken), "units"))
    return nodes


def _fan(unit: str, count: int, taken: set[str]) -> Node:
    return Node(free_name(unit, taken), "fan", unit=unit, count=count)
