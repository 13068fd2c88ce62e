"""Fused groups walked literally: sets of elements, tile by tile; and their accesses.

Shares no code with `loopsched.fusion`: a layer is a few numbers, what a tile
needs is found by asking every output element what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from hypothesis import strategies as st

from loopsched import conv2d
from loopsched.fusion import Pool
from loopsched.problem import Problem

Place = tuple[int, int, int]  # image, row, column


@dataclass(frozen=True)
class Layer:
    """A convolution, or (k = 0) a pooling; sizes of one axis are those of both but h and w."""

    c: int
    k: int
    h: int
    w: int
    r: int = 1
    s: int = 1
    stride: int = 1
    pad: int = 0
    dilation: int = 1
    depthwise: bool = False
    n: int = 1
    element_bytes: int = 1

    @property
    def p(self) -> int:
        return (self.h + 2 * self.pad - self.dilation * (self.r - 1) - 1) // self.stride + 1

    @property
    def q(self) -> int:
        return (self.w + 2 * self.pad - self.dilation * (self.s - 1) - 1) // self.stride + 1

    @property
    def is_pool(self) -> bool:
        return self.k == 0

    @property
    def made(self) -> int:
        return self.c if self.is_pool or self.depthwise else self.k

    @property
    def by_channel(self) -> bool:
        return self.is_pool or self.depthwise

    @property
    def weights(self) -> int:
        if self.is_pool:
            return 0
        return self.made * (1 if self.depthwise else self.c) * self.r * self.s

    def item(self, name: str) -> Problem | Pool:
        if self.is_pool:
            return Pool(self.r, self.stride, self.pad)
        return conv2d(
            n=self.n, c=self.c, k=self.made, h=self.h, w=self.w, r=self.r, s=self.s,
            stride=self.stride, padding=self.pad, dilation=self.dilation,
            groups=self.c if self.depthwise else 1, element_bytes=self.element_bytes, name=name,
        )  # fmt: skip

    def reads(self, place: Place) -> set[Place]:
        n, p, q = place
        found = set()
        for r, s in product(range(self.r), range(self.s)):
            row = p * self.stride + r * self.dilation - self.pad
            column = q * self.stride + s * self.dilation - self.pad
            if 0 <= row < self.h and 0 <= column < self.w:
                found.add((n, row, column))
        return found

    def all_reads(self, places: set[Place]) -> set[Place]:
        return {one for place in places for one in self.reads(place)}


def items(layers: Sequence[Layer]) -> list[Problem | Pool]:
    return [layer.item(f"layer{at}") for at, layer in enumerate(layers)]


def tiles(layers: Sequence[Layer], tile: Place, columns_outside: bool = False) -> list[set[Place]]:
    """The tiles of the last output, in order."""
    last = layers[-1]
    starts = [
        range(0, whole, one) for whole, one in zip((last.n, last.p, last.q), tile, strict=True)
    ]
    grid = list(product(*starts))
    if columns_outside:
        grid.sort(key=lambda at: (at[0], at[2], at[1]))
    found = []
    for at in grid:
        ranges = [
            range(start, min(start + one, whole))
            for start, one, whole in zip(at, tile, (last.n, last.p, last.q), strict=True)
        ]
        found.append(set(product(*ranges)))
    return found


@dataclass(frozen=True)
class Walk:
    """What every tile reads and makes of every tensor, 0 being the group's input."""

    read: list[list[set[Place]]]
    new: list[list[set[Place]]]
    keeps: bool


def walk(layers: Sequence[Layer], order: Sequence[set[Place]], keeps: bool) -> Walk:
    n = len(layers)
    made: list[set[Place]] = [set() for _ in range(n + 1)]
    read_of, new_of = [], []
    for tile in order:
        read: list[set[Place]] = [set()] * (n + 1)
        new: list[set[Place]] = [set()] * (n + 1)
        read[n] = new[n] = tile
        for at in range(n - 1, -1, -1):
            read[at] = layers[at].all_reads(new[at + 1])
            new[at] = read[at] - made[at] if keeps else read[at]
            made[at] |= read[at]
        read_of.append(read)
        new_of.append(new)
    return Walk(read_of, new_of, keeps)


def most_held(found: Walk, tensor: int) -> int:
    """The most places of a tensor that are there at once: still needed, or just made."""
    later: list[set[Place]] = [set()]
    for read in reversed(found.read):
        later.append(later[-1] | read[tensor])
    later.reverse()
    made: set[Place] = set()
    most = 0
    for at, new in enumerate(found.new):
        most = max(most, len((made & later[at]) | new[tensor]))
        made |= new[tensor]
    return most


@dataclass(frozen=True, order=True)
class Cost:
    moved: int
    macs: int
    retains: bool
    tiles: int
    room: int


def group_costs(
    layers: Sequence[Layer], halos: Sequence[str] = ("recompute", "retain")
) -> Iterator[tuple[tuple[object, ...], Cost]]:
    """Cost of every tile, way and choice of weights that stay."""
    last = layers[-1]
    for tile in product(*(range(1, size + 1) for size in (last.n, last.p, last.q))):
        for halo in halos:
            for outside in (False, True) if halo == "retain" else (False,):
                for keeps_input in (False, True) if halo == "retain" else (False,):
                    for cost in _costs(layers, tile, halo, outside, keeps_input):
                        yield (tile, halo, outside, keeps_input), cost


def _costs(
    layers: Sequence[Layer], tile: Place, halo: str, outside: bool, keeps_input: bool
) -> Iterator[Cost]:
    found = walk(layers, tiles(layers, tile, outside), halo == "retain")
    n, b = len(layers), layers[0].element_bytes
    macs = sum(
        len(new[at + 1]) * layer.weights for new in found.new for at, layer in enumerate(layers)
    )
    loaded = found.new if keeps_input else found.read
    moved = sum(len(one[0]) for one in loaded) * layers[0].c * b
    moved += layers[-1].n * layers[-1].p * layers[-1].q * layers[-1].made * b
    channels = [layers[0].c, *(layer.made for layer in layers)]
    if halo == "recompute":
        largest = [max(len(read[at]) for read in found.read) for at in range(n + 1)]
        room = max(_step(layers, at, largest, channels) for at in range(n)) * b
    else:
        room = sum(most_held(found, at) * channels[at] for at in range(1, n))
        room += max(len(new[n]) for new in found.new)
        if keeps_input:
            room += most_held(found, 0) * channels[0]
        else:
            room += max(len(read[0]) for read in found.read)
        room *= b
    n_tiles = len(found.new)
    weights = [layer.weights * b for layer in layers if not layer.is_pool]
    for many in range(len(weights) + 1):
        for stay in combinations(weights, many):
            streams = sum(weights) - sum(stay)
            yield Cost(
                moved + sum(stay) + streams * n_tiles,
                macs,
                halo == "retain",
                n_tiles,
                room + sum(stay) + b * (streams > 0),
            )


def _step(layers: Sequence[Layer], at: int, largest: list[int], channels: list[int]) -> int:
    before, behind = largest[at], largest[at + 1]
    whole, made = before * channels[at], behind * channels[at + 1]
    if at == 0:
        return before + made
    if at == len(layers) - 1:
        return whole + behind
    if layers[at].by_channel:
        return min(max(whole, made) + behind, whole + made)
    return whole + made


def least_cost(layers: Sequence[Layer], capacity: int, **halos: Sequence[str]) -> Cost | None:
    fitting = [cost for _, cost in group_costs(layers, **halos) if cost.room <= capacity]
    return min(fitting, default=None)


# Real chains at reduced sizes: fewer channels, smaller images.
VGG = (
    Layer(c=3, k=4, h=8, w=9, r=3, s=3, pad=1),
    Layer(c=4, k=4, h=8, w=9, r=3, s=3, pad=1),
    Layer(c=4, k=0, h=8, w=9, r=2, s=2, stride=2),
    Layer(c=4, k=6, h=4, w=4, r=3, s=3, pad=1),
    Layer(c=6, k=6, h=4, w=4, r=3, s=3, pad=1),
)
RESNET = (
    Layer(c=8, k=3, h=7, w=6),
    Layer(c=3, k=3, h=7, w=6, r=3, s=3, pad=1, stride=2),
    Layer(c=3, k=8, h=4, w=3),
)
MOBILENET = (
    Layer(c=3, k=4, h=11, w=9, r=3, s=3, pad=1, stride=2),
    Layer(c=4, k=4, h=6, w=5, r=3, s=3, pad=1, depthwise=True),
    Layer(c=4, k=8, h=6, w=5),
    Layer(c=8, k=8, h=6, w=5, r=3, s=3, pad=1, stride=2, depthwise=True),
)
CHAINS = {"vgg": VGG, "resnet": RESNET, "mobilenet": MOBILENET}


@st.composite
def chains(draw: st.DrawFn, *, any_pools: bool = False) -> list[Layer]:
    """Layers in a row; poolings, if any, also with dilations and windows that are not square."""
    n, width = draw(st.integers(1, 2)), draw(st.sampled_from([1, 2, 4]))
    c, h, w = (draw(st.integers(low, high)) for low, high in ((1, 4), (3, 8), (3, 8)))
    layers: list[Layer] = []
    for at in range(draw(st.integers(2, 4))):
        can_pool = layers and not layers[-1].is_pool and at < 3
        kind = draw(st.sampled_from(["conv", "conv", "depthwise", *(["pool"] if can_pool else [])]))
        r = draw(st.integers(1, min(3, h, w)))
        is_plain = kind == "pool" and not any_pools
        s = r if is_plain else draw(st.integers(1, min(3, w)))
        dilation = 1 if is_plain else draw(st.integers(1, 2))
        pad = draw(st.integers(0, 1))
        if (max(r, s) - 1) * dilation + 1 > min(h, w) + 2 * pad:
            dilation = 1
        stride = draw(st.sampled_from([1, 1, 2, 3]))
        k = 0 if kind == "pool" else draw(st.integers(1, 4))
        layer = Layer(c, k, h, w, r, s, stride, pad, dilation, kind == "depthwise", n, width)
        layers.append(layer)
        c, h, w = layer.made, layer.p, layer.q
    while layers[-1].is_pool:
        layers.pop()
    return layers
