"""Report 001: one filter over a batch of images, in four steps of optimization.

The report gives the blocks of the baseline, 16 x 16, and of variant 1, 32 x 8.  Its count
of sectors for variant 2 fits blocks of 32 x 16; those of variant 3 are not known.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopsched.base.arguments import near, show
from loopsched.base.errors import InputError
from loopsched.gpu.kernel import Kernel
from loopsched.problems.convolution import conv2d

# Table 3: registers per thread, of the baseline and of the last variant.
_REGISTERS = 40
_IN_TILES = {"input": "shared@block", "weight": "constant"}


def filter_rowmap(
    images: int = 16, size: int = 2048, radius: int = 5, x: int = 16, y: int = 16
) -> Kernel:
    """Filter images, threads of a warp on different rows (report 001, baseline)."""
    loops = f"Q:{y}@thread_y P:{x}@thread_x {_taps(radius)}"
    return _filter((images, size, radius), "filter_rowmap", loops, axes="QP")


def filter_colmap(
    images: int = 16, size: int = 2048, radius: int = 5, x: int = 32, y: int = 8
) -> Kernel:
    """Filter images, threads of a warp on adjacent columns (report 001, variant 1)."""
    loops = f"P:{y}@thread_y Q:{x}@thread_x {_taps(radius)}"
    return _filter((images, size, radius), "filter_colmap", loops)


def filter_shared(
    images: int = 16, size: int = 2048, radius: int = 5, x: int = 32, y: int = 16
) -> Kernel:
    """Filter images in tiles of shared memory, filter constant (report 001, variant 2)."""
    loops = f"P:{y}@thread_y Q:{x}@thread_x {_taps(radius)}"
    return _filter((images, size, radius), "filter_shared", loops, reads=_IN_TILES)


def filter_coarse(
    images: int = 16,
    size: int = 2048,
    radius: int = 5,
    x: int = 32,
    y: int = 8,
    outputs: str = "adjacent",
) -> Kernel:
    """Filter images, each thread 2 x 2 outputs (report 001, variant 3).

    ``adjacent`` outputs share a window that slides in registers, as the report
    describes it; outputs ``apart`` by the block's width share nothing.
    """
    if outputs not in ("adjacent", "apart"):
        raise InputError(f"outputs is {show(outputs)}; {near(outputs, ('adjacent', 'apart'))}")
    taps = _taps(radius)
    if outputs == "apart":
        loops = f"{taps} P:{2 * y} Q:{2 * x} P:{y}@thread_y Q:{x}@thread_x"
        reads = _IN_TILES
    else:
        loops = f"P:{2 * y}@thread_y Q:{2 * x}@thread_x {taps} P:2 Q:2"
        reads = _IN_TILES | {"input": "shared@block,held=R"}
    return _filter((images, size, radius), f"filter_coarse {outputs}", loops, reads=reads)


def _taps(radius: int) -> str:
    return f"R:{2 * radius + 1} S:{2 * radius + 1}"


def _filter(
    sizes: tuple[int, int, int],
    name: str,
    loops: str,
    *,
    axes: str = "PQ",
    reads: Mapping[str, str] | None = None,
) -> Kernel:
    """Build a filter from images, size and radius, and the loops inside its grid."""
    images, size, radius = sizes
    taps = 2 * radius + 1
    problem = conv2d(n=images, c=1, k=1, h=size, w=size, r=taps, s=taps, padding=radius)
    grid = f"N:{images}@block_z {axes[0]}:{size}@block_y {axes[1]}:{size}@block_x"
    return Kernel.of(problem, f"{grid} {loops}", name=name, reads=reads, registers=_REGISTERS)
