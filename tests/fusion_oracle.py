"""Fused groups walked literally: sets of elements, tile by tile; and what they cost.

Shares no code with `loopsched.fusion`: a layer is a few numbers, what a tile
needs is found by asking every output element what it reads, and what is on
chip is counted step by step.  A set of places of a tensor is the bits of an
integer, one bit per image, row and column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Any

from hypothesis import strategies as st

from loopsched import conv2d
from loopsched.fusion import Pool
from loopsched.problems.problem import Problem

Place = tuple[int, int, int]  # image, row, column


@dataclass(frozen=True)
class Layer:
    """A convolution, or (k = 0) a pooling.

    ``stride`` and ``dilation`` are along both axes, or (height, width);
    ``pad`` on all sides, or (top, bottom, left, right).  ``weight_bytes`` and
    ``out_bytes`` are of one element; 0: as the input's.
    """

    c: int
    k: int
    h: int
    w: int
    r: int = 1
    s: int = 1
    stride: int | tuple[int, int] = 1
    pad: int | tuple[int, int, int, int] = 0
    dilation: int | tuple[int, int] = 1
    depthwise: bool = False
    n: int = 1
    element_bytes: int = 1
    weight_bytes: int = 0
    out_bytes: int = 0

    @property
    def strides(self) -> tuple[int, int]:
        return self.stride if isinstance(self.stride, tuple) else (self.stride, self.stride)

    @property
    def dilations(self) -> tuple[int, int]:
        return self.dilation if isinstance(self.dilation, tuple) else (self.dilation, self.dilation)

    @property
    def pads(self) -> tuple[int, int, int, int]:
        return self.pad if isinstance(self.pad, tuple) else (self.pad,) * 4

    @property
    def p(self) -> int:
        top, bottom, _, _ = self.pads
        return (self.h + top + bottom - self.dilations[0] * (self.r - 1) - 1) // self.strides[0] + 1

    @property
    def q(self) -> int:
        _, _, left, right = self.pads
        return (self.w + left + right - self.dilations[1] * (self.s - 1) - 1) // self.strides[1] + 1

    @property
    def is_pool(self) -> bool:
        return self.k == 0

    @property
    def made(self) -> int:
        return self.c if self.is_pool or self.depthwise else self.k

    @property
    def by_channel(self) -> bool:
        return self.is_pool or self.depthwise or self.c == self.k == 1

    @property
    def weights(self) -> int:
        if self.is_pool:
            return 0
        return self.made * (1 if self.depthwise else self.c) * self.r * self.s

    @property
    def weight_width(self) -> int:
        return self.weight_bytes or self.element_bytes

    @property
    def out_width(self) -> int:
        return self.out_bytes or self.element_bytes

    def item(self, name: str) -> Problem | Pool:
        if self.is_pool:
            assert isinstance(self.stride, int)
            assert isinstance(self.pad, int)
            return Pool(self.r, self.stride, self.pad)
        widths = {
            "input": self.element_bytes,
            "weight": self.weight_width,
            "output": self.out_width,
        }
        return conv2d(
            n=self.n, c=self.c, k=self.made, h=self.h, w=self.w, r=self.r, s=self.s,
            stride=self.strides, padding=self.pads, dilation=self.dilations,
            groups=self.c if self.depthwise else 1, element_bytes=widths, name=name,
        )  # fmt: skip

    def tap(self, place: Place, r: int, s: int) -> Place | None:
        """The place that one tap of the window of an output place reads; None: padding."""
        n, p, q = place
        row = p * self.strides[0] + r * self.dilations[0] - self.pads[0]
        column = q * self.strides[1] + s * self.dilations[1] - self.pads[2]
        return (n, row, column) if 0 <= row < self.h and 0 <= column < self.w else None

    def made_places(self, bits: int) -> list[Place]:
        """The places of the output that are set, in order."""
        found = []
        while bits:
            at = (bits & -bits).bit_length() - 1
            found.append((at // (self.p * self.q), at // self.q % self.p, at % self.q))
            bits &= bits - 1
        return found


class _Reach:
    """What each place of a layer's output reads, all taps tried."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.known: dict[int, int] = {}

    def of(self, bits: int) -> int:
        if bits not in self.known:
            read = 0
            for place in self.layer.made_places(bits):
                for r, s in product(range(self.layer.r), range(self.layer.s)):
                    source = self.layer.tap(place, r, s)
                    if source is not None:
                        read |= 1 << place_bit(source, self.layer.h, self.layer.w)
            self.known[bits] = read
        return self.known[bits]


@lru_cache(maxsize=64)
def _reach(layer: Layer) -> _Reach:
    return _Reach(layer)


def place_bit(place: Place, high: int, wide: int) -> int:
    return (place[0] * high + place[1]) * wide + place[2]


def items(layers: Sequence[Layer]) -> list[Problem | Pool]:
    return [layer.item(f"layer{at}") for at, layer in enumerate(layers)]


def tiles(layers: Sequence[Layer], tile: Place, columns_outside: bool = False) -> list[int]:
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
        found.append(sum(1 << place_bit(place, last.p, last.q) for place in product(*ranges)))  # type: ignore[arg-type]
    return found


@dataclass(frozen=True)
class Walk:
    """What every tile reads and makes of every tensor, 0 being the group's input."""

    read: list[list[int]]
    new: list[list[int]]
    keeps: bool

    def later(self) -> list[list[int]]:
        """What the tiles after each one still read of every tensor, if anything is kept."""
        found = [[0] * len(self.read[0])]
        for read in reversed(self.read[1:]):
            more = [a | b for a, b in zip(found[-1], read, strict=True)]
            found.append(more if self.keeps else found[0])
        return found[::-1]


def walk(layers: Sequence[Layer], order: Sequence[int], keeps: bool) -> Walk:
    n = len(layers)
    made = [0] * (n + 1)
    read_of, new_of = [], []
    for tile in order:
        read, new = [0] * (n + 1), [0] * (n + 1)
        read[n] = new[n] = tile
        for at in range(n - 1, -1, -1):
            read[at] = _reach(layers[at]).of(new[at + 1])
            new[at] = read[at] & ~made[at] if keeps else read[at]
            made[at] |= read[at]
        read_of.append(read)
        new_of.append(new)
    return Walk(read_of, new_of, keeps)


@dataclass(frozen=True)
class Step:
    """Part of a layer's work on a tile, by channels: made, and of the input not read again."""

    made: Sequence[int]
    done: Sequence[int]
    loaded: Sequence[int] = ()


def steps(layers: Sequence[Layer], at: int) -> list[Step]:
    """How a layer runs: where slices pass, where each channel is for itself, else as a whole."""
    layer, is_last = layers[at], at == len(layers) - 1
    all_in, all_out = range(layer.c), range(layer.made)
    if at == 0:
        return [Step([c] if layer.by_channel else all_out, [c], [c]) for c in all_in]
    if layer.by_channel:
        return [Step([c], [c]) for c in all_in]
    if is_last:
        return [Step([k], all_in if k == all_out[-1] else []) for k in all_out]
    return [Step(all_out, all_in)]


def most_live(layers: Sequence[Layer], found: Walk, keeps_input: bool) -> list[int]:
    """The most bytes of tensors that are on chip at once, while each layer works."""
    n = len(layers)
    channels = [layers[0].c, *(layer.made for layer in layers)]
    widths = [layers[0].element_bytes, *(layer.out_width for layer in layers)]
    live = [[0] * many for many in channels]
    most = [0] * n
    now = 0

    def hold(tensor: int, channel: int, bits: int) -> None:
        nonlocal now
        now += widths[tensor] * (bits.bit_count() - live[tensor][channel].bit_count())
        live[tensor][channel] = bits

    of_layers = [steps(layers, at) for at in range(n)]
    for read, new, later in zip(found.read, found.new, found.later(), strict=True):
        for at, of_layer in enumerate(of_layers):
            for step in of_layer:
                for c in step.loaded:
                    hold(0, c, live[0][c] | (new[0] if keeps_input else read[0]))
                for k in step.made:
                    hold(at + 1, k, live[at + 1][k] | new[at + 1])
                most[at] = max(most[at], now)
                for c in step.done:
                    hold(at, c, live[at][c] & (later[at] if at or keeps_input else 0))
                if at == n - 1:
                    for k in step.made:
                        hold(n, k, 0)
    return most


@dataclass(frozen=True, order=True)
class Cost:
    moved: int
    macs: int
    retains: bool
    tiles: int
    room: int


Halos = Sequence[str]
BOTH: Halos = ("recompute", "retain")


def group_costs(
    layers: Sequence[Layer], halos: Halos = BOTH
) -> Iterator[tuple[tuple[object, ...], Cost]]:
    """Cost of every tile, way and choice of weights that stay."""
    last = layers[-1]
    for tile in product(*(range(1, size + 1) for size in (last.n, last.p, last.q))):
        for halo in halos:
            for outside in (False, True) if halo == "retain" else (False,):
                found = walk(layers, tiles(layers, tile, outside), halo == "retain")
                for keeps_input in (False, True) if halo == "retain" else (False,):
                    for cost in _costs(layers, found, keeps_input):
                        yield (tile, halo, outside, keeps_input), cost


def _costs(layers: Sequence[Layer], found: Walk, keeps_input: bool) -> Iterator[Cost]:
    macs = sum(
        new[at + 1].bit_count() * layer.weights
        for new in found.new
        for at, layer in enumerate(layers)
    )
    first, last, n_tiles = layers[0], layers[-1], len(found.new)
    loaded = found.new if keeps_input else found.read
    moved = sum(one[0].bit_count() for one in loaded) * first.c * first.element_bytes
    moved += last.n * last.p * last.q * last.made * last.out_width
    live = most_live(layers, found, keeps_input)
    weighty = [at for at, layer in enumerate(layers) if not layer.is_pool]
    size = {at: layers[at].weights * layers[at].weight_width for at in weighty}
    for many in range(len(weighty) + 1):
        for stay in combinations(weighty, many):
            resident = sum(size[at] for at in stay)
            passing = [layers[at].weight_width if at in size and at not in stay else 0
                       for at in range(len(layers))]  # fmt: skip
            yield Cost(
                moved + resident + (sum(size.values()) - resident) * n_tiles,
                macs,
                found.keeps,
                n_tiles,
                resident + max(a + b for a, b in zip(live, passing, strict=True)),
            )


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


Pick = Callable[[Sequence[Any]], Any]


def draw_chain(pick: Pick, *, any_pools: bool = False, sides: tuple[int, ...] = ()) -> list[Layer]:
    """Two to four layers in a row, each number taken by ``pick``.

    Paddings, strides and dilations are different on every side; poolings are
    square, with ``any_pools`` of any windows.  ``sides``: sizes of the input.
    """
    n, width = pick([1, 1, 2]), pick([1, 2, 4])
    c, h, w = pick(range(1, 4)), pick(sides or range(3, 8)), pick(sides or range(3, 8))
    layers: list[Layer] = []
    many = pick([2, 3, 4])
    while len(layers) < many:
        can_pool = layers and not layers[-1].is_pool and len(layers) < many - 1
        kind = pick(["conv", "conv", "depthwise", *(["pool"] if can_pool else [])])
        layer = _draw_layer(pick, kind, any_pools, (n, c, h, w, width))
        layers.append(layer)
        c, h, w, width = layer.made, layer.p, layer.q, layer.out_width
    return layers


def _draw_layer(pick: Pick, kind: str, any_pools: bool, given: tuple[int, ...]) -> Layer:
    n, c, h, w, width = given
    if kind == "pool" and not any_pools:
        r, stride, pad = pick(range(1, min(3, h, w) + 1)), pick([1, 2, 3]), pick([0, 0, 1])
        return Layer(c, 0, h, w, r, r, stride, pad, 1, n=n, element_bytes=width)
    is_pool = kind == "pool"
    rows, columns = (_draw_axis(pick, size, 1 if is_pool else 2) for size in (h, w))
    widths = (width, 0, 0) if is_pool else (width, pick([0, 0, 1, 4]), pick([0, 0, 2, 4]))
    return Layer(
        c, 0 if is_pool else pick(range(1, 4)), h, w, rows[0], columns[0],
        (rows[1], columns[1]), (*rows[3], *columns[3]), (rows[2], columns[2]),
        kind == "depthwise", n, *widths,
    )  # fmt: skip


def _draw_axis(pick: Pick, size: int, most_pad: int) -> tuple[int, int, int, tuple[int, int]]:
    """Taps, stride, dilation and padding along one axis that makes at most 6 positions."""
    taps, stride, dilation = pick([1, 1, 2, 3]), pick([1, 1, 2, 3]), pick([1, 1, 2])
    before, after = pick(range(most_pad + 1)), pick(range(most_pad + 1))
    if size + before + after > 6 * stride:
        before = after = 0
    if (taps - 1) * dilation >= size + before + after:
        taps, dilation = min(taps, size), 1
    return taps, stride, dilation, (before, after)


@st.composite
def chains(draw: st.DrawFn, *, any_pools: bool = False) -> list[Layer]:
    """Layers in a row, see `draw_chain`."""
    return draw_chain(lambda options: draw(st.sampled_from(options)), any_pools=any_pools)
