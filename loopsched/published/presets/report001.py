"""Report 001: one filter over a batch of images, in four steps of optimization.

The report gives the blocks of the baseline, 16 x 16, and of variant 1, 32 x 8.  Its count
of sectors for variant 2 fits blocks of 32 x 16; those of variant 3 are not known.
"""

from __future__ import annotations

from loopsched.base.arguments import near, show
from loopsched.base.errors import InputError
from loopsched.gpu.kernel import Kernel
from loopsched.problems.convolution import conv2d
from loopsched.problems.problem import Problem

# Table 3: registers a thread, of the baseline and of the last variant.
_REGISTERS = 40
_IN_TILES = {"input": "shared@block", "weight": "constant"}


def filter_rowmap(
    images: int = 16, size: int = 2048, radius: int = 5, x: int = 16, y: int = 16
) -> Kernel:
    """Filter images, threads of a warp on different rows (report 001, baseline)."""
    taps = 2 * radius + 1
    text = f"N:{images}@block_z Q:{size}@block_y P:{size}@block_x Q:{y}@thread_y P:{x}@thread_x"
    return Kernel.of(
        _problem(images, size, radius),
        f"{text} R:{taps} S:{taps}",
        name="filter_rowmap",
        registers=_REGISTERS,
    )


def filter_colmap(
    images: int = 16, size: int = 2048, radius: int = 5, x: int = 32, y: int = 8
) -> Kernel:
    """Filter images, threads of a warp on adjacent columns (report 001, variant 1)."""
    taps = 2 * radius + 1
    return Kernel.of(
        _problem(images, size, radius),
        f"{_blocks(images, size)} P:{y}@thread_y Q:{x}@thread_x R:{taps} S:{taps}",
        name="filter_colmap",
        registers=_REGISTERS,
    )


def filter_shared(
    images: int = 16, size: int = 2048, radius: int = 5, x: int = 32, y: int = 16
) -> Kernel:
    """Filter images in tiles of shared memory, filter constant (report 001, variant 2)."""
    taps = 2 * radius + 1
    return Kernel.of(
        _problem(images, size, radius),
        f"{_blocks(images, size)} P:{y}@thread_y Q:{x}@thread_x R:{taps} S:{taps}",
        name="filter_shared",
        reads=_IN_TILES,
        registers=_REGISTERS,
    )


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
    taps = 2 * radius + 1
    grid = _blocks(images, size)
    if outputs == "apart":
        threads = f"R:{taps} S:{taps} P:{2 * y} Q:{2 * x} P:{y}@thread_y Q:{x}@thread_x"
        reads = _IN_TILES
    else:
        threads = f"P:{2 * y}@thread_y Q:{2 * x}@thread_x R:{taps} S:{taps} P:2 Q:2"
        reads = _IN_TILES | {"input": "shared@block,held=R"}
    return Kernel.of(
        _problem(images, size, radius),
        f"{grid} {threads}",
        name=f"filter_coarse {outputs}",
        reads=reads,
        registers=_REGISTERS,
    )


def _problem(images: int, size: int, radius: int) -> Problem:
    taps = 2 * radius + 1
    return conv2d(n=images, c=1, k=1, h=size, w=size, r=taps, s=taps, padding=radius)


def _blocks(images: int, size: int) -> str:
    return f"N:{images}@block_z P:{size}@block_y Q:{size}@block_x"
