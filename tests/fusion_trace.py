"""Accesses of a fused group, one by one, for the simulators' caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from fusion_oracle import Layer, Place, tiles, walk
from numpy.typing import NDArray

from loopsched.fusion import FusedGroup
from loopsched.simulator import _lru

Ids = NDArray[np.int32]


@dataclass
class Trace:
    """Numbers of elements in the order of their accesses, tensor after tensor.

    Tensors: the input, the weights of every layer, the buffers between, the
    output.  ``memory`` and ``chunks`` are what the simulators' caches ask for.
    ``births`` marks accesses that write to an address whose content is dead.
    """

    ids: Ids
    births: NDArray[np.bool_]
    sizes: list[int]
    widths: list[int]
    n_inputs: int

    @property
    def memory(self) -> SimpleNamespace:
        bounds = tuple(int(one) for one in np.concatenate(([0], np.cumsum(self.sizes))))
        return SimpleNamespace(
            bounds=bounds,
            unit_bytes=tuple(self.widths),
            tensors=self.sizes,
            problem=SimpleNamespace(macs=len(self.ids)),
        )

    def bytes_of(self, elems: Sequence[int]) -> int:
        """Bytes of so many elements of each tensor."""
        return sum(int(many) * width for many, width in zip(elems, self.widths, strict=True))

    def chunks(self) -> Iterator[Ids]:
        yield self.ids


def lru_bytes_moved(trace: Trace, capacity_bytes: int) -> int:
    """Bytes read and written with the simulator's LRU cache, whatever is dead left out.

    Between the layers, what is read again after an eviction was written back
    before; what is never read again is not written, nor brought in to be
    overwritten.
    """
    bounds = np.array(trace.memory.bounds, dtype=np.int64)
    weights = np.array(trace.memory.unit_bytes, dtype=np.int64)
    last = np.full(bounds[-1], _lru.NEVER, dtype=np.int32)
    ring = np.empty(4 * int(bounds[-1]) + 4096, dtype=np.int32)
    state = np.zeros(3, dtype=np.int64)
    live, dead = np.zeros((2, len(trace.sizes), 3), dtype=np.int64)
    edges = [0, *(np.flatnonzero(np.diff(trace.births)) + 1).tolist(), len(trace.ids)]
    for start, stop in pairwise(edges):
        counts = dead if trace.births[start] else live
        part = trace.ids[start:stop]
        _lru.lru(part, capacity_bytes, bounds, weights, last, ring, state, counts)
    n = trace.n_inputs
    elems = [*live[:n, 0], *(2 * live[n:-1, 0]), 2 * live[-1, 0] - live[-1, 1]]
    return trace.bytes_of(elems)


class _Slots:
    """Addresses of places of a tensor: given anew, or those that became free."""

    def __init__(self, reuses: bool) -> None:
        self.reuses = reuses
        self.at: dict[Place, int] = {}
        self.free: list[int] = []
        self.many = 0

    def make(self, place: Place) -> None:
        if self.free:
            self.at[place] = self.free.pop()
        else:
            self.at[place] = self.many
            self.many += 1

    def drop(self, places: Sequence[Place]) -> None:
        for place in places:
            slot = self.at.pop(place)
            if self.reuses:
                self.free.append(slot)


def trace(layers: Sequence[Layer], group: FusedGroup, *, reuses: bool) -> Trace:
    """List the accesses of a group, layer after layer of each tile.

    ``reuses``: what lies between layers is written to addresses that became
    free; else to new ones, so that nothing dead is ever touched again.
    """
    sizes = dict(group.tile)
    tile = sizes["N"], sizes["P"], sizes["Q"]
    outside = [dim for dim in group.order if dim != "N"] == ["Q", "P"]
    order = tiles(layers, tile, outside)
    found = walk(layers, order, group.halo == "retain")
    later_of = found.later()
    n = len(layers)
    slots = [_Slots(reuses) for _ in range(n)]
    channels = [layers[0].c, *(layer.made for layer in layers)]
    raw: list[tuple[int, int]] = []  # tensor (input, weights, buffers, output), element
    births: list[bool] = []
    for at in range(len(order)):
        for stage in range(n):
            new = layers[stage].made_places(found.new[at][stage + 1])
            unborn: set[tuple[int, int]] = set()
            if stage + 1 < n:
                many = channels[stage + 1]
                for place in new:
                    slots[stage + 1].make(place)
                    first = slots[stage + 1].at[place] * many
                    unborn.update((n + stage + 1, first + k) for k in range(many))
            for access in _accesses(layers, stage, new, slots, channels):
                births.append(access in unborn)
                unborn.discard(access)
                raw.append(access)
            if stage:
                later = set(layers[stage - 1].made_places(later_of[at][stage]))
                slots[stage].drop([one for one in sorted(slots[stage].at) if one not in later])
    source, last = layers[0], layers[-1]
    counts = [source.n * source.c * source.h * source.w]
    counts += [layer.weights for layer in layers]
    counts += [slots[at].many * channels[at] for at in range(1, n)]
    counts += [last.n * last.made * last.p * last.q]
    starts = np.concatenate(([0], np.cumsum(counts)))
    pairs = np.array(raw, dtype=np.int64).reshape(-1, 2)
    ids = (starts[pairs[:, 0]] + pairs[:, 1]).astype(np.int32)
    widths = [source.element_bytes, *(layer.weight_width for layer in layers)]
    widths += [layer.out_width for layer in layers]
    return Trace(ids, np.array(births), counts, widths, 1 + n)


def _accesses(
    layers: Sequence[Layer],
    stage: int,
    new: Sequence[Place],
    slots: Sequence[_Slots],
    channels: Sequence[int],
) -> Iterator[tuple[int, int]]:
    """Read input, weight and sum, write the sum; channels outermost where slices pass."""
    n, layer = len(layers), layers[stage]

    def reads(channel: int, place: Place) -> tuple[int, int]:
        if stage:
            return n + stage, slots[stage].at[place] * channels[stage] + channel
        image, row, column = place
        return 0, ((image * layer.c + channel) * layer.h + row) * layer.w + column

    def makes(channel: int, place: Place) -> tuple[int, int]:
        if stage + 1 < n:
            return n + stage + 1, slots[stage + 1].at[place] * channels[stage + 1] + channel
        image, row, column = place
        return 2 * n, ((image * layer.made + channel) * layer.p + row) * layer.q + column

    pairs = [(c, k) for c in range(layer.c) for k in range(layer.made)]
    if stage + 1 == n:  # the output passes slice by slice, not the input
        pairs.sort(key=lambda pair: pair[1])
    for c, k in pairs:
        if layer.by_channel and c != k:
            continue
        for tap in range(layer.r * layer.s):
            r, s = divmod(tap, layer.s)
            for place in new:
                source = layer.tap(place, r, s)
                if source is not None:
                    yield reads(c, source)
                if not layer.is_pool:
                    inputs = 1 if layer.depthwise else layer.c
                    weight = (k * inputs + (0 if layer.depthwise else c)) * layer.r * layer.s + tap
                    yield 1 + stage, weight
                yield makes(k, place)
