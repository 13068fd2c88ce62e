"""Tiles that tuned libraries have kernels for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tile:
    """What one block of a tiled kernel computes, and what it takes.

    Parameters
    ----------
    m, n, k : int
        A block computes ``m x n`` outputs, ``k`` terms of the sums a step.
    threads, registers : int
        Of a block, and of a thread.
    micro_m, micro_n : int
        Outputs of one thread, or of one warp with tensor cores: what is
        loaded from shared memory for each term is ``micro_m + micro_n``.
    stages : int
        Steps that shared memory holds.

    Examples
    --------
    >>> str(Tile(128, 64, 8, 128, 128, 8, 8))
    '128x64x8'
    """

    m: int
    n: int
    k: int
    threads: int
    registers: int
    micro_m: int
    micro_n: int
    stages: int = 2

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    def shared_bytes(self, element_bytes: int) -> int:
        """Shared memory of a block that stages both operands."""
        return self.stages * self.k * (self.m + self.n) * element_bytes


def _tiles(
    k: int, micro: tuple[int, int], registers: int, threads: int, *sides: tuple[int, int]
) -> Iterator[Tile]:
    """Tiles with these sides; so many threads share ``micro`` outputs."""
    for m, n in sides:
        yield Tile(m, n, k, threads * m * n // math.prod(micro), registers, *micro)


# Shapes as in the names of cuBLAS kernels (volta_sgemm_128x64_nn, ..._32x32_sliced1x4_nn);
# threads from 8 x 8 outputs each, the small ones slice a step's sum among four groups.
SGEMM_TILES = (
    *_tiles(8, (8, 8), 128, 1, (128, 128), (128, 64), (64, 128), (64, 64)),
    *_tiles(8, (8, 4), 80, 1, (128, 32)),
    *_tiles(8, (4, 8), 80, 1, (32, 128)),
    *_tiles(32, (8, 4), 80, 4, (64, 32)),
    *_tiles(32, (4, 8), 80, 4, (32, 64), (32, 32)),
)

# Shapes of Volta's tensor-core kernels (volta_s884gemm_256x128_ldg8_f2f_nn and its like),
# a warp computing up to 64 x 64.
TENSOR_TILES = (
    *_tiles(32, (64, 64), 200, 32, (256, 128), (128, 256), (128, 128)),
    *_tiles(32, (64, 32), 128, 32, (128, 64)),
    *_tiles(32, (32, 64), 128, 32, (64, 128)),
    *_tiles(32, (32, 32), 80, 32, (64, 64), (64, 32), (32, 64)),
)

# Into how many parts libraries split a sum.
SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True, slots=True)
class Library:
    """The kernels that one generation of a library has for one kind of arithmetic.

    Parameters
    ----------
    name : str
    tiles : tuple of Tile
    splits : tuple of int
        Into how many parts its sums may be cut.
    """

    name: str
    tiles: tuple[Tile, ...]
    splits: tuple[int, ...] = SPLITS


LIBRARIES = {
    library.name: library
    for library in (
        Library("volta", SGEMM_TILES),
        # Times of an M40 do not fall below those of its 128 x 128 tile, and only sums of
        # hundreds of thousands are split: no other number was taken from that GPU.
        Library("maxwell", SGEMM_TILES[:1], (1, 32, 48, 64, 96, 128)),
        # fp16 stored, fp32 computed, tensor cores off: what report 003's Titan V ran.
        Library("half", SGEMM_TILES[1:2], (1,)),
        Library("tensor", TENSOR_TILES),
    )
}
