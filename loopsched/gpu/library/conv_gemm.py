"""Convolutions as matrix products: the input unrolled on the fly, or in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from loopsched.gpu.library.calibration import Calibration, ConvCalibration, calibration
from loopsched.gpu.library.conv_layer import Layer
from loopsched.gpu.library.machine import Machine
from loopsched.gpu.library.product import Product, Run, Timed
from loopsched.gpu.library.tiles import SGEMM_TILES, SPLITS, TENSOR_TILES, Tile
from loopsched.gpu.library.wave import achieved, fitting, launch_time, tiled_time

# As in the names of cuDNN's kernels: maxwell_scudnn_128x128, _128x64, _128x32 (pixels x channels).
LANE_TILES = tuple(tile for tile in SGEMM_TILES if tile.m == 128)


@dataclass(frozen=True, slots=True)
class Target:
    """What a convolution runs on.

    Parameters
    ----------
    machine : Machine
    fitted : ConvCalibration
    element_bytes : int, bytes
    """

    machine: Machine
    fitted: ConvCalibration
    element_bytes: int

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Tiles of the convolution kernels."""
        return LANE_TILES if self.machine.on_lanes else TENSOR_TILES

    @property
    def plain_tiles(self) -> tuple[Tile, ...]:
        """Tiles of plain products."""
        return SGEMM_TILES if self.machine.on_lanes else TENSOR_TILES

    @property
    def plain(self) -> Calibration:
        """Numbers of plain products between transforms: those of matrix products."""
        section = "fp32" if self.machine.on_lanes else "fp16"
        return replace(calibration(section), launch=self.fitted.launch)

    @property
    def kernel_s(self) -> float:
        """What a further kernel of a call adds."""
        return self.fitted.kernel * self.machine.gpu.launch_s

    def stream_s(self, moved_bytes: float) -> float:
        """Time of a kernel that reads and writes so much; what fits stays in L2."""
        kept = self.machine.l2_bytes / 2
        dram_per_s, _ = achieved(self.machine, self.fitted)
        return max(0.0, moved_bytes - kept) / dram_per_s


def implicit_gemm(layer: Layer, target: Target, precomputed: bool) -> Run:
    """Time a product whose unrolled operand exists in shared memory only.

    ``precomputed``: a small kernel first writes a table of offsets.  The
    input's gradient at a stride is gathered with zeros between, or scattered
    by atomic additions, whichever is faster; kernels for tensor cores gather
    without the zeros.
    """
    name = "implicit precomp gemm" if precomputed else "implicit gemm"
    product = product_of(layer, target.element_bytes, is_phased=not target.machine.on_lanes)
    ways = [product]
    if layer.pass_ == "backward_weights":  # either may be the tile's longer side
        ways.append(replace(product, m=product.n, n=product.m))
    found = min(
        (timed for way in ways for timed in _timed(layer, target, way)),
        key=lambda timed: timed.time_s,
    )
    # Of weights' gradients, a kernel clears the output or adds up its parts.
    is_longer = precomputed or layer.pass_ == "backward_weights"
    extra_s = target.kernel_s if is_longer else 0.0
    parts = tuple((one, s + (extra_s if one == "launch" else 0.0)) for one, s in found.parts)
    run = Run(found.time_s + extra_s, parts, f"{name} {found.kernel}")
    if layer.pass_ == "backward_data" and layer.stride != (1, 1):
        return min(run, _scattered(layer, target), key=lambda run: run.time_s)
    return run


def explicit_gemm(layer: Layer, target: Target) -> Run:
    """Time writing the unrolled input, and a plain product that reads it.

    The input's gradient is the other way round: the product writes what is
    then folded.  A filter of one position at stride 1 needs no unrolling.
    """
    width = target.element_bytes
    product = product_of(layer, width)
    pixels, sums = layer.n * layer.p * layer.q, layer.c * layer.r * layer.s
    unrolled, moving_s = 0, 0.0
    if layer.r * layer.s > 1 or layer.stride != (1, 1) or any(layer.padding):
        unrolled = width * layer.groups * pixels * sums
        moving_s = target.stream_s(unrolled + width * layer.input_elems(width)) + target.kernel_s
    if layer.pass_ == "backward_data":
        product = replace(product, m=pixels, n=sums, k=layer.k, c_bytes=unrolled or product.c_bytes)
    else:
        product = replace(product, a_bytes=unrolled or product.a_bytes)
    splits = SPLITS if layer.pass_ == "backward_weights" else SPLITS[:1]
    found = tiled_time(product, target.plain_tiles, target.machine, target.plain, splits=splits)
    parts = (*found.parts, ("unroll", moving_s))
    return Run(found.time_s + moving_s, parts, f"explicit gemm {found.tile}")


def product_of(layer: Layer, element_bytes: int, *, is_phased: bool = False) -> Product:
    """Write a pass as a matrix product, pixels or filter positions down, channels across.

    ``is_phased``: at a stride, an input's gradient takes only the filter
    positions that meet it; otherwise all, with zeros between the outputs'.
    """
    width = element_bytes
    read = width * layer.input_elems(width)
    weights, outputs = width * layer.weight_elems, width * layer.output_elems
    taps = layer.r * layer.s
    if layer.pass_ == "forward":
        sizes = layer.n * layer.p * layer.q, layer.k, layer.c * taps
        memory = read, weights, outputs
    elif layer.pass_ == "backward_data":
        if is_phased:
            taps = math.ceil(layer.r / layer.stride[0]) * math.ceil(layer.s / layer.stride[1])
        sizes = layer.n * layer.h * layer.w, layer.c, layer.k * taps
        memory = outputs, weights, width * layer.n * layer.groups * layer.c * layer.h * layer.w
    else:
        sizes = layer.c * taps, layer.k, layer.n * layer.p * layer.q
        memory = read, outputs, weights
    return Product(*sizes, layer.groups, *memory, width, reads_output=False)


def with_transforms(
    product: Product, target: Target, moved: Iterable[tuple[int, int]], name: str
) -> Run:
    """Time a product between transforms, each of which reads and writes so many bytes."""
    found = tiled_time(product, target.plain_tiles, target.machine, target.plain, splits=SPLITS[:1])
    transform_s = sum(target.stream_s(sum(each)) + target.kernel_s for each in moved)
    parts = (*found.parts, ("transform", transform_s))
    return Run(found.time_s + transform_s, parts, f"{name}, {found.tile}")


def _scattered(layer: Layer, target: Target) -> Run:
    """Time products of outputs and filters, each added to the input's gradient in L2."""
    width = target.element_bytes
    base = product_of(layer, width)
    sums = layer.c * layer.r * layer.s
    product = replace(base, m=layer.n * layer.p * layer.q, n=sums, k=layer.k)
    found = min(_timed(layer, target, product), key=lambda timed: timed.time_s)
    # An atomic addition takes a sector's turn.
    added = layer.groups * product.m * sums * target.machine.gpu.sector_bytes
    atomic_s = added / target.machine.l2_bytes_per_s
    clear_s = target.stream_s(base.c_bytes) + target.kernel_s
    parts = (*found.parts, ("atomics", atomic_s), ("clear", clear_s))
    return Run(max(found.time_s, atomic_s) + clear_s, parts, f"scattered gemm {found.tile}")


def _timed(layer: Layer, target: Target, base: Product) -> Iterator[Timed]:
    core: Calibration = target.fitted
    if layer.pass_ == "backward_weights":
        core = replace(core, pipe=core.pipe * target.fitted.weights)
    for tile, resident in fitting(target.tiles, target.element_bytes, target.machine):
        gathered = target.fitted.gather * tile.m * tile.k / tile.threads
        product = replace(base, extra_instructions=gathered)
        for split in _splits(layer, product, tile):
            yield launch_time(product, tile, split, target.machine, core, resident=resident)


def _splits(layer: Layer, product: Product, tile: Tile) -> Sequence[int]:
    """Only gradients of weights, sums over all pixels, are split."""
    if layer.pass_ != "backward_weights":
        return SPLITS[:1]
    return tuple(split for split in SPLITS if split == 1 or product.k >= 4 * split * tile.k)
