"""Convolutions by Fourier transforms: of whole images, or of tiles of 32 x 32."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopsched.gpu.library.conv_gemm import Target, with_transforms
from loopsched.gpu.library.conv_layer import Layer
from loopsched.gpu.library.product import Product, Run

TILE = 32
# cuDNN's FFT takes padded images up to this side.
LARGEST = 256
# Real multiply-adds of a product of complex numbers.
_COMPLEX_MACS = 4
_COMPLEX_PARTS = 2


@dataclass(frozen=True, slots=True)
class Spectrum:
    """How images are cut: into so many tiles in all, each transformed as ``high x wide``."""

    high: int
    wide: int
    tiles: int

    @property
    def points(self) -> int:
        """Complex numbers of the transform of a real tile."""
        return self.high * (self.wide // 2 + 1)

    def macs(self, layer: Layer) -> int:
        """Real multiplications of the products, without transforms."""
        return _COMPLEX_MACS * self.points * self.tiles * layer.c * layer.k


def spectrum_of(layer: Layer, tiled: bool) -> Spectrum | None:
    """Cut the padded image; None: the algorithm cannot run."""
    if not layer.is_unit_stride or layer.groups != 1:
        return None
    high = layer.h + layer.padding[0] + layer.padding[1]
    wide = layer.w + layer.padding[2] + layer.padding[3]
    if tiled:
        if max(layer.r, layer.s) >= TILE:
            return None
        many = math.ceil((high - layer.r + 1) / (TILE - layer.r + 1)) * math.ceil(
            (wide - layer.s + 1) / (TILE - layer.s + 1)
        )
        return Spectrum(TILE, TILE, layer.n * many)
    if max(high, wide) > LARGEST:
        return None
    return Spectrum(_power(high), _power(wide), layer.n)


def fft(layer: Layer, target: Target, cut: Spectrum) -> Run:
    """Time transforms of both operands, a product for each frequency, and the way back."""
    width = target.element_bytes
    images = width * layer.n * layer.c * layer.h * layer.w, width * layer.output_elems
    plain = (*images, width * layer.weight_elems)
    lines = cut.tiles * layer.c, cut.tiles * layer.k, layer.c * layer.k
    spread = [_COMPLEX_PARTS * 4 * cut.points * line for line in lines]
    m, n, k = cut.tiles, layer.k, layer.c
    if layer.pass_ == "backward_data":
        n, k = k, n
    elif layer.pass_ == "backward_weights":
        m, n, k = layer.k, layer.c, cut.tiles
    a, c, b = spread
    product = Product(m, n, _COMPLEX_MACS * k, cut.points, a, b, c, width, reads_output=False)
    return with_transforms(
        product, target, zip(plain, spread, strict=True), f"fft {cut.high}x{cut.wide}"
    )


def _power(size: int) -> int:
    """Round up to a power of two."""
    return 1 << (size - 1).bit_length()
