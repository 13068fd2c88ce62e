"""Tensors that stay on chip from the layer that makes them to the last that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from loopsched.base.arguments import Checker
from loopsched.base.errors import EmptySpaceError, ScheduleError
from loopsched.base.rows import picked
from loopsched.fusion.capacity import capacity_of
from loopsched.fusion.chains import Link
from loopsched.fusion.flow import Flow, flows_of
from loopsched.fusion.single import least_bytes
from loopsched.fusion.stages import Pool
from loopsched.machines.arch import Arch
from loopsched.network.graph import Network
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload

# Sets of tensors that are followed at a time; more are cut to the best ones.
MAX_STATES = 4096


@dataclass(frozen=True, slots=True)
class PassedTensor:
    """What one layer makes and others read.

    Parameters
    ----------
    producer : str
    consumers : tuple of str
    size_bytes : int
    is_resident : bool
        Whether it stays on chip in between.
    """

    producer: str
    consumers: tuple[str, ...]
    size_bytes: int
    is_resident: bool


@dataclass(frozen=True, slots=True)
class ResidentLayer:
    """One layer, with and without what stays on chip.

    Parameters
    ----------
    name : str
    count : int
        How often it runs.
    dram_bytes : int
        What it moves in the room that resident tensors leave.
    separate_bytes : int
        What it moves in the whole capacity with every tensor in memory.
    room_bytes : int
        The room that is left.
    resident : tuple of str
        Its own tensors that stay on chip; ``+`` and a layer's name for what
        its output takes in.
    """

    name: str
    count: int
    dram_bytes: int
    separate_bytes: int
    room_bytes: int
    resident: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Residency:
    """The tensors to keep on chip between layers, and what that saves.

    Parameters
    ----------
    name : str
    capacity_bytes : int
    layers : tuple of ResidentLayer
        In the order of execution.
    tensors : tuple of PassedTensor
        All that could stay.
    is_exact : bool
        Whether no other choice moves less, in this order of layers.
    lower_bound_bytes : int
        No choice moves less.
    assumed : tuple of Link
        Poolings that are assumed because the shapes require them; each once.
    """

    name: str
    capacity_bytes: int
    layers: tuple[ResidentLayer, ...]
    tensors: tuple[PassedTensor, ...]
    is_exact: bool
    lower_bound_bytes: int
    assumed: tuple[Link, ...] = ()

    @property
    def dram_bytes(self) -> int:
        """What all layers move, with counts."""
        return sum(layer.count * layer.dram_bytes for layer in self.layers)

    @property
    def separate_bytes(self) -> int:
        """What they move if nothing stays."""
        return sum(layer.count * layer.separate_bytes for layer in self.layers)

    @property
    def saved_bytes(self) -> int:
        """What residency saves."""
        return self.separate_bytes - self.dram_bytes

    @property
    def gap(self) -> float:
        """Share of the traffic that another choice could at most save; 0 if exact."""
        if not self.dram_bytes:
            return 0.0
        return (self.dram_bytes - self.lower_bound_bytes) / self.dram_bytes

    def rows(self) -> list[dict[str, Any]]:
        """List the layers as rows of plain values."""
        return [
            {
                "layer": at,
                "problem": layer.name,
                "count": layer.count,
                "resident": " ".join(layer.resident),
                **picked(layer, "room_bytes", "dram_bytes", "separate_bytes"),
                "saved_bytes": layer.separate_bytes - layer.dram_bytes,
                "capacity_bytes": self.capacity_bytes,
            }
            for at, layer in enumerate(self.layers)
        ]


def residency(
    layers: Sequence[Problem | Pool] | Workload | Network,
    capacity_bytes: int | None = None,
    *,
    arch: Arch | None = None,
    max_states: int = MAX_STATES,
    assume_pooling: bool = True,
) -> Residency:
    """Choose the tensors that stay on chip between layers, so that the least is moved.

    Layers run one after the other in the given order.  A tensor that stays takes its whole
    size from the start of the layer that makes it to the end of the last that reads it; a
    layer moves the least that it can in the capacity that is left, and nothing for its own
    resident tensors.

    Parameters
    ----------
    layers, capacity_bytes, arch, assume_pooling
        As for `loopsched.fuse`; errors, too.
    max_states : int
        Sets of tensors followed at a time.  The choice is exact as long as
        they suffice, on chains always; else the cheapest are kept, and
        ``gap`` says what another choice could still save.

    See Also
    --------
    fuse, load_network

    Examples
    --------
    >>> from loopsched import gemm
    >>> up, down = gemm(m=64, n=96, k=16, name="up"), gemm(m=64, n=16, k=96, name="down")
    >>> found = residency([up, down], capacity_bytes=65536)
    >>> found.separate_bytes, found.dram_bytes
    (69632, 20480)
    >>> [(tensor.producer, tensor.is_resident) for tensor in found.tensors]
    [('up', True)]
    """
    capacity = capacity_of(capacity_bytes, arch)
    check = Checker("residency", ScheduleError)
    most = check.count("max_states", max_states)
    check.finish()
    flows, assumed = flows_of(layers, assume_pooling=assume_pooling)
    name = layers.name if isinstance(layers, (Workload, Network)) else "layers"
    return replace(_Choice(name, flows, capacity, most).best(), assumed=assumed)


@dataclass(frozen=True, slots=True)
class _State:
    """The best way to have just these tensors on chip: its bytes, and all that stayed so far."""

    moved: int
    stayed: frozenset[int]

    @property
    def rank(self) -> tuple[int, int, tuple[int, ...]]:
        return self.moved, len(self.stayed), tuple(sorted(self.stayed))


class _Choice:
    """The dynamic programme over layers; a state is the set of resident tensors."""

    def __init__(self, name: str, flows: Sequence[Flow], capacity: int, max_states: int) -> None:
        self.name, self.flows, self.capacity = name, flows, capacity
        self.max_states = max_states
        self.last = dict.fromkeys(range(len(flows)), -1)
        for at, flow in enumerate(flows):
            for read in flow.reads:
                self.last[read.producer] = at
        self.candidates = frozenset(at for at in self.last if self._may_stay(at))

    def _may_stay(self, at: int) -> bool:
        """Whether a layer's output is read by layers only, each as often as it is made."""
        flow = self.flows[at]
        if flow.leaves or flow.problem is None or self.last[at] < 0:
            return False
        readers = [one for one in self.flows if any(read.producer == at for read in one.reads)]
        return all(one.problem is not None and one.count == flow.count for one in readers)

    def best(self) -> Residency:
        """Follow the sets of resident tensors through all layers."""
        states = {frozenset[int](): _State(0, frozenset())}
        is_exact = True
        for at, flow in enumerate(self.flows):
            found: dict[frozenset[int], _State] = {}
            for here, state in states.items():
                for more in (frozenset[int](), frozenset({at}) & self.candidates):
                    resident = here | more
                    moved = self.moved(at, resident)
                    if moved is None:
                        continue
                    new = _State(state.moved + flow.count * moved, state.stayed | more)
                    key = frozenset(one for one in resident if self.last[one] > at)
                    if key not in found or new.rank < found[key].rank:
                        found[key] = new
            if len(found) > self.max_states and frozenset[int]() in found:
                is_exact = False
                cheapest = sorted(found.items(), key=lambda pair: pair[1].rank)
                empty = frozenset[int]()  # from there every layer fits that fits alone
                found = dict([*cheapest[: self.max_states], (empty, found[empty])])
            if not found:
                raise EmptySpaceError(
                    f"problem '{flow.name}': nothing fits, the operands of one point need more "
                    f"than the capacity ({self.capacity} B)"
                )
            states = found
        best = min(states.values(), key=lambda state: state.rank)
        bound = best.moved if is_exact else self.bound()
        return self._described(best.stayed, is_exact, bound)

    def moved(self, at: int, resident: frozenset[int]) -> int | None:
        """Count what a layer moves while some tensors are on chip; None if it does not fit."""
        flow = self.flows[at]
        if flow.problem is None:
            return 0
        room = self.capacity - sum(self.flows[one].size_bytes for one in resident)
        own = [name for read in flow.reads if read.producer in resident for name in read.operands]
        if at in resident:
            own.append(flow.problem.output)
        moved = least_bytes(flow.problem, room, frozenset(own))
        if moved is None:
            return None
        return moved + sum(read.taken_bytes for read in flow.reads if read.producer not in resident)

    def bound(self) -> int:
        """Add up what each layer moves at least, whatever else is on chip."""
        total = 0
        for at, flow in enumerate(self.flows):
            own = sorted({at, *(read.producer for read in flow.reads)} & self.candidates)
            options = []
            for stays in product((False, True), repeat=len(own)):
                some = frozenset(one for one, stay in zip(own, stays, strict=True) if stay)
                moved = self.moved(at, some)
                options += [] if moved is None else [moved]
            total += flow.count * min(options)
        return total

    def _described(self, stayed: frozenset[int], is_exact: bool, bound: int) -> Residency:
        layers = []
        for at, flow in enumerate(self.flows):
            if flow.problem is None:
                continue
            here = frozenset(one for one in stayed if one <= at <= self.last[one])
            moved, alone = self.moved(at, here), self.moved(at, frozenset())
            room = self.capacity - sum(self.flows[one].size_bytes for one in here)
            own: list[str] = []
            for read in flow.reads:
                if read.producer in here:
                    own += read.operands
                    own += [f"+{self.flows[read.producer].name}"] if read.taken_bytes else []
            if at in here:
                own.append(flow.problem.output)
            layers.append(
                ResidentLayer(flow.name, flow.count, moved or 0, alone or 0, room, tuple(own))
            )
        tensors = tuple(
            PassedTensor(
                self.flows[at].name, self._consumers(at), self.flows[at].size_bytes, at in stayed
            )
            for at in sorted(self.candidates)
        )
        return Residency(self.name, self.capacity, tuple(layers), tensors, is_exact, bound)

    def _consumers(self, at: int) -> tuple[str, ...]:
        return tuple(
            flow.name for flow in self.flows if any(read.producer == at for read in flow.reads)
        )
