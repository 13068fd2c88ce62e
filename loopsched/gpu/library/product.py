"""Matrix products as tiled kernels see them, and how long they take."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.gpu.library.tiles import Tile
from loopsched.gpu.result import Parts


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product, or a convolution written as one, to be run tile by tile.

    Parameters
    ----------
    m, n, k : int
        Rows and columns of the output, terms of each sum.
    batch : int
        Independent products side by side (groups of a convolution).
    a_bytes, b_bytes, c_bytes : int, bytes
        What the operands and the output take in memory, all products
        together.  For a convolution the input itself, not its unrolled copy.
    element_bytes : int, bytes
        Of the operands, as they are loaded.
    is_strided : bool
        Whether A is stored along the sum.
    reads_output : bool
        Whether the output is added to (a factor beta that is not 0).
    extra_instructions : float
        Of a thread and step, such as finding addresses of a window.
    copy_cycles : (float, float), cycles
        Of an SM for each element of A, and of B, that is brought to shared
        memory by itself and not in vectors.

    Examples
    --------
    >>> Product(1024, 16, 512, 1, 2**21, 2**15, 2**16, 4).macs
    8388608
    """

    m: int
    n: int
    k: int
    batch: int
    a_bytes: int
    b_bytes: int
    c_bytes: int
    element_bytes: int
    is_strided: bool = False
    reads_output: bool = True
    extra_instructions: float = 0.0
    copy_cycles: tuple[float, float] = (0.0, 0.0)

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.batch * self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class Timed:
    """How long a product takes with one tile and split, and why.

    Parameters
    ----------
    time_s : float, seconds
    tile : Tile
    split : int
        Parts of each sum.
    parts : tuple of (str, float)
        Seconds by resource: compute, L2 and DRAM overlap; split and launch add.
    """

    time_s: float
    tile: Tile
    split: int
    parts: Parts

    @property
    def kernel(self) -> str:
        """Tile and split in words."""
        return f"{self.tile} split {self.split}" if self.split > 1 else str(self.tile)


@dataclass(frozen=True, slots=True)
class Run:
    """How long the kernels of one call take.

    Parameters
    ----------
    time_s : float, seconds
    parts : tuple of (str, float)
        Seconds by resource.
    kernel : str
    """

    time_s: float
    parts: Parts
    kernel: str
