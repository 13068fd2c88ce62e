"""The hand-written kernels of ``h200_kernels.csv``: what each of them must load.

Everything here is counted from the sources of the kernels, as counters/README.md
describes them: rows of an image with their halo, cut at its edge, in sectors.  A block
loads a sector once: its L1 holds what it needs.  What blocks of one multiprocessor
share is counted only for ``direct``, whose grid is small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from loopsched.builders import gemm
from loopsched.convolution import conv2d
from loopsched.errors import InputError
from loopsched.notation import parse_schedule
from loopsched.validation.launches import SM_BLOCKS, SM_THREADS, Launch, compulsory_bytes
from loopsched.validation.sectors import SECTOR_BYTES, panel_sectors, span_sectors, tile_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD = 4

_FILTER = re.compile(
    r"filt_(rowmap|colmap|shared|coarse2)\s+R=(\d{1,5})\s+S=(\d{1,6})\s+Z=(\d{1,6})\s+b=(\d{1,4})x(\d{1,4})"
)
_DIRECT = re.compile(
    r"direct\s+S=(\d{1,6})\s+K=(\d{1,4})\s+Ni=(\d{1,6})\s+Nn=(\d{1,6})\s+b=(\d{1,3})"
)
_GEMM = re.compile(r"gemm_(tile|naive)(\d{1,4})\s+M=(\d{1,7})\s+N=(\d{1,7})\s+K=(\d{1,7})")


def kernel_launch(case: str, unit: str, units: int) -> Launch:
    """Work out what a kernel of a case was.

    Parameters
    ----------
    case : str
        As in the file's column ``case``.
    unit : str
    units : int

    Raises
    ------
    InputError
        If there is no such kernel.

    Examples
    --------
    Blocks of 32 x 8 threads load 10 rows of 4 sectors, and one on each side, but
    for the edges of the image.

    >>> launch = kernel_launch("filt_colmap R=1 S=2048 Z=16 b=32x8", "SM", 132)
    >>> launch.l2_sectors, 16 * 64 * 256 * 10 * 6
    (15634496, 15728640)
    """
    forms: tuple[tuple[re.Pattern[str], Callable[..., Launch]], ...] = (
        (_FILTER, _filter),
        (_DIRECT, _direct),
        (_GEMM, _gemm),
    )
    for pattern, build in forms:
        found = pattern.fullmatch(case.strip())
        if found:
            words = [int(word) if word.isdecimal() else word for word in found.groups()]
            if 0 in words[1:] and pattern is not _FILTER:
                raise InputError(f"case '{case}': sizes are at least 1")
            return build(*words, unit, units)
    raise InputError(
        f"case '{case}' is no known kernel; known are 'filt_NAME R= S= Z= b=XxY' (NAME: rowmap, "
        "colmap, shared, coarse2), 'direct S= K= Ni= Nn= b=', 'gemm_tileT M= N= K=', "
        "'gemm_naiveT M= N= K='"
    )


def _filter(
    name: str, radius: int, size: int, images: int, x: int, y: int, unit: str, units: int
) -> Launch:
    if not (size and images and x and y):
        raise InputError(f"case 'filt_{name}': sizes are at least 1")
    wide, tall = (2 * x, 2 * y) if name == "coarse2" else (x, y)
    if name == "rowmap":  # threadIdx.x walks rows
        wide, tall = y, x
    rows = _spread(tile_bounds(size, tall), radius, size)
    numbers = np.concatenate([np.arange(begin, end) for begin, end in rows.tolist()])
    columns = _spread(tile_bounds(size, wide), radius, size)
    sectors = images * span_sectors(numbers, WORD * size, WORD * columns)
    across = 2 * radius + 1
    problem = conv2d(n=images, c=1, k=1, h=size, w=size, r=across, s=across, padding=radius)
    image = WORD * images * size * size
    # The filter lies in constant memory, or is small enough to be lost among the images.
    return Launch(problem, None, 1, sectors, image, image, streams=True)


def _spread(spans: NDArray[np.int64], radius: int, size: int) -> NDArray[np.int64]:
    """Widen spans by a radius on both sides, within the image."""
    return np.stack(
        [np.maximum(spans[:, 0] - radius, 0), np.minimum(spans[:, 1] + radius, size)], axis=1
    )


def _direct(
    size: int, across: int, inputs: int, outputs: int, block: int, unit: str, units: int
) -> Launch:
    problem = conv2d(
        n=1, c=inputs, k=outputs, h=size + across - 1, w=size + across - 1, r=across, s=across
    )
    weight = inputs * across * across * WORD
    side = -(-size // block)
    # Blocks of one multiprocessor share its L1; block i runs on multiprocessor i modulo units.
    resident = max(1, min(SM_BLOCKS, SM_THREADS // max(1, block * block)))
    n_blocks = side * side * outputs
    if n_blocks > 2**20:
        raise InputError(f"case 'direct': {n_blocks} blocks; at most {2**20} are followed")
    sectors = 0
    for begin in range(0, n_blocks, units * resident):
        end = min(begin + units * resident, n_blocks)
        for first in range(begin, min(begin + units, end)):
            blocks = range(first, end, units)
            places = {number % (side * side) for number in blocks}
            filters = {number // (side * side) for number in blocks}
            sectors += _image_sectors(places, side, block, size, across, inputs)
            spans = np.array([[number * weight, (number + 1) * weight] for number in filters])
            sectors += span_sectors([0], SECTOR_BYTES, spans)
    return Launch(problem, None, 1, sectors, *compulsory_bytes(problem), streams=True)


def _image_sectors(
    places: Iterable[int], side: int, block: int, size: int, across: int, channels: int
) -> int:
    """Count the sectors of all channels that blocks at some places of the grid load."""
    pitch = size + across - 1
    is_loaded = np.zeros((pitch, pitch), np.bool_)
    for place in places:
        top, left = place // side * block, place % side * block
        rows = slice(top, min(top + block, size) + across - 1)
        is_loaded[rows, left : min(left + block, size) + across - 1] = True
    words = np.flatnonzero(is_loaded) * WORD
    plane = pitch * pitch * WORD
    shifts = np.arange(channels, dtype=np.int64) * plane % SECTOR_BYTES
    return sum(
        int(many) * len(np.unique((words + shift) // SECTOR_BYTES))
        for shift, many in zip(*np.unique(shifts, return_counts=True), strict=True)
    )


def _gemm(name: str, tile: int, m: int, n: int, k: int, unit: str, units: int) -> Launch:
    problem = gemm(m=m, n=n, k=k)
    high, wide = min(tile, m), min(tile, n)
    step = min(tile, k)
    text = f"M:{m}@{unit} N:{n}@{unit} K:{k} M:{high} N:{wide} K:{step}"
    # Without shared memory L1 keeps whole rows of A: they are not cut into steps.
    sectors = panel_sectors(m, n, k, tile, tile, tile if name == "tile" else k)
    schedule = parse_schedule(text, problem)
    return Launch(problem, schedule, 1, sectors, *compulsory_bytes(problem))
