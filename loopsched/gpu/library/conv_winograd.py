"""Winograd convolutions: fewer multiplications, and transforms around them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from loopsched.gpu.library.conv_gemm import Target, with_transforms
from loopsched.gpu.library.conv_layer import Layer
from loopsched.gpu.library.product import Product, Run
from loopsched.gpu.library.tiles import SGEMM_TILES, SPLITS
from loopsched.gpu.library.wave import tiled_time

# A block of the fused kernel: 32 tiles x 32 channels of 16 products at once,
# which takes the registers, the threads and the work of a 128 x 128 tile.
_FUSED_BLOCK = SGEMM_TILES[0]
_FUSED_SPAN = 32
# Instructions of a thread for one tile and channel: 16 loads, 16 tests, 32 additions, 16 stores.
_FUSED_TRANSFORM = 80.0


@dataclass(frozen=True, slots=True)
class Tiling:
    """How an image is cut for F(m x m, r x r).

    Parameters
    ----------
    outputs, filter : int
        m and r.
    tiles : int
        Of all images.
    rows, columns : int
        Channels that are multiplied: of the sum, and of the result.
    """

    outputs: int
    filter: int
    tiles: int
    rows: int
    columns: int

    @property
    def points(self) -> int:
        """Multiplications of a tile for each pair of channels."""
        return (self.outputs + self.filter - 1) ** 2

    @property
    def macs(self) -> int:
        """Multiplications, each with its addition, without transforms."""
        return self.points * self.tiles * self.rows * self.columns


def tiling(layer: Layer, outputs: int) -> Tiling:
    """Cut the image that a pass writes, or for weights the output's gradient.

    Examples
    --------
    >>> from loopsched import conv2d
    >>> from loopsched.gpu.library.conv_layer import layer_of
    >>> found = tiling(layer_of(conv2d(c=8, k=4, p=14, q=14, r=3, s=3)), 4)
    >>> found.tiles, found.points
    (16, 36)
    """
    high, wide = (layer.p, layer.q)
    rows, columns = layer.c, layer.k
    if layer.pass_ == "backward_data":
        high, wide, rows, columns = layer.h, layer.w, layer.k, layer.c
    tiles = layer.n * math.ceil(high / outputs) * math.ceil(wide / outputs)
    return Tiling(outputs, layer.r, tiles, rows, columns)


def fused_outputs(layer: Layer) -> int | None:
    """Outputs of a tile along an axis in the fused kernel; None: it cannot run."""
    runs = layer.is_unit_stride and layer.groups == 1 and layer.r == layer.s == 3
    return 2 if runs and layer.pass_ != "backward_weights" else None


def nonfused_outputs(layer: Layer) -> int | None:
    """The same of separate kernels: F(4x4, 3x3), F(5x5, 5x5)."""
    if not layer.is_unit_stride or layer.groups != 1 or layer.r != layer.s:
        return None
    return {3: 4, 5: 5}.get(layer.r)


def fused(layer: Layer, target: Target, outputs: int) -> Run:
    """Time one kernel that transforms, multiplies and transforms back."""
    cut = tiling(layer, outputs)
    width = target.element_bytes
    filters = width * layer.k * layer.c * (layer.r * layer.s + cut.points)
    images = _images(layer, width)
    m = math.ceil(cut.tiles / _FUSED_SPAN) * _FUSED_BLOCK.m
    n = math.ceil(cut.columns / _FUSED_SPAN) * _FUSED_BLOCK.n
    product = Product(m, n, cut.rows, 1, images[0], filters, images[1], width, reads_output=False)
    product = replace(product, extra_instructions=_FUSED_TRANSFORM)
    fitted = target.fitted
    core = replace(fitted, pipe=fitted.pipe * fitted.fused)
    found = tiled_time(product, (_FUSED_BLOCK,), target.machine, core, splits=SPLITS[:1])
    transform_s = target.stream_s(filters) + target.kernel_s
    parts = (*found.parts, ("transform", transform_s))
    return Run(found.time_s + transform_s, parts, f"winograd {cut.outputs}x{cut.outputs}")


def nonfused(layer: Layer, target: Target, outputs: int) -> Run:
    """Time transforms of both operands, as many products as points, and the way back."""
    cut = tiling(layer, outputs)
    width = target.element_bytes
    # Elements of both images and of the filters, for each point of a tile.
    elems = cut.rows * cut.tiles, cut.columns * cut.tiles, cut.rows * cut.columns
    spread = [width * cut.points * count for count in elems]
    plain = [*_images(layer, width), width * layer.weight_elems]
    product = _batched(layer, cut, spread, width)
    name = f"winograd nonfused {cut.outputs}x{cut.outputs}"
    return with_transforms(product, target, zip(plain, spread, strict=True), name)


def _batched(layer: Layer, cut: Tiling, spread: list[int], width: int) -> Product:
    """Multiply the transformed operands, point by point."""
    image, result, weight = spread
    m, n, k, a, b, c = cut.tiles, cut.columns, cut.rows, image, weight, result
    if layer.pass_ == "backward_weights":
        m, n, k, a, b, c = cut.columns, cut.rows, cut.tiles, result, image, weight
    return Product(m, n, k, cut.points, a, b, c, width, reads_output=False)


def _images(layer: Layer, width: int) -> tuple[int, int]:
    """Bytes of the image with the sum's channels, and of the one with the result's."""
    stored = width * layer.n * layer.c * layer.h * layer.w
    outputs = width * layer.output_elems
    return (outputs, stored) if layer.pass_ == "backward_data" else (stored, outputs)
