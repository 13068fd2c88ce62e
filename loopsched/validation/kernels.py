"""The hand-written kernels of ``h200_kernels.csv``, as presets: what each of them must load.

Cases are named as counters/README.md describes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from loopsched.base.errors import InputError
from loopsched.gpu.counting import profile
from loopsched.gpu.kernel import Kernel
from loopsched.machines.arch import Arch
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import gemm
from loopsched.published.presets import (
    direct,
    filter_coarse,
    filter_colmap,
    filter_rowmap,
    filter_shared,
    gemm_naive,
    gemm_tiled,
)
from loopsched.validation.launch import Launch, compulsory_bytes

_FILTER = re.compile(
    r"filt_(rowmap|colmap|shared|coarse2)\s+R=(\d{1,5})\s+S=(\d{1,6})\s+Z=(\d{1,6})\s+b=(\d{1,4})x(\d{1,4})"
)
_DIRECT = re.compile(
    r"direct\s+S=(\d{1,6})\s+K=(\d{1,4})\s+Ni=(\d{1,6})\s+Nn=(\d{1,6})\s+b=(\d{1,3})"
)
_GEMM = re.compile(r"gemm_(tile|naive)(\d{1,4})\s+M=(\d{1,7})\s+N=(\d{1,7})\s+K=(\d{1,7})")


def kernel_of(case: str, registers: int | None = None) -> Kernel:
    """Work out what the kernel of a case was.

    Parameters
    ----------
    case : str
        As in the file's column ``case``.
    registers : int, optional
        Of a thread, where they were measured.

    Raises
    ------
    InputError
        If there is no such kernel.

    Examples
    --------
    >>> kernel_of("filt_colmap R=1 S=2048 Z=16 b=32x8").grid
    (64, 256, 16)
    """
    forms: tuple[tuple[re.Pattern[str], Callable[..., Kernel]], ...] = (
        (_FILTER, _filter),
        (_DIRECT, partial(direct, unrolled=False)),  # it takes all sizes when it is started
        (_GEMM, _gemm),
    )
    for pattern, build in forms:
        found = pattern.fullmatch(case.strip())
        if found:
            words = [int(word) if word.isdecimal() else word for word in found.groups()]
            sizes = words[2:] if pattern is _FILTER else words
            if 0 in sizes:
                raise InputError(f"case '{case}': sizes are at least 1")
            kernel = build(*words)
            return replace(kernel, name=case.strip(), registers=registers or kernel.registers)
    raise InputError(
        f"case '{case}' is not a known kernel; known are 'filt_NAME R= S= Z= b=XxY' (NAME: rowmap, "
        "colmap, shared, coarse2), 'direct S= K= Ni= Nn= b=', 'gemm_tileT M= N= K=', "
        "'gemm_naiveT M= N= K='"
    )


def kernel_launch(case: str, arch: Arch, registers: int | None = None) -> Launch:
    """Work out what the launch of a case has to move.

    Parameters
    ----------
    case : str
    arch : Arch
        What it ran on.
    registers : int, optional

    Examples
    --------
    Blocks of 32 x 8 threads load 10 rows of 4 sectors, and one on each side, but
    for the edges of the image.

    >>> from loopsched import load_arch
    >>> launch = kernel_launch("filt_shared R=1 S=2048 Z=16 b=32x8", load_arch("h200"))
    >>> launch.l2_sectors, 16 * 64 * 256 * 10 * 6
    (15634496, 15728640)
    """
    kernel = kernel_of(case, registers)
    sectors = profile(kernel, arch).l2_read_sectors
    product = _GEMM.fullmatch(case.strip())
    if product is None:
        moved = compulsory_bytes(kernel.problem)
        return Launch(kernel.problem, None, 1, sectors, *moved, streams=True)
    tile, m, n, k = (int(word) for word in product.groups()[1:])
    problem = gemm(m=m, n=n, k=k)
    unit = arch.compute.unit
    tiles = f"M:{min(tile, m)} N:{min(tile, n)} K:{min(tile, k)}"
    schedule = parse_schedule(f"M:{m}@{unit} N:{n}@{unit} K:{k} {tiles}", problem)
    return Launch(problem, schedule, 1, sectors, *compulsory_bytes(problem))


def _filter(name: str, radius: int, size: int, images: int, x: int, y: int) -> Kernel:
    if name == "coarse2":
        return filter_coarse(images, size, radius, x, y, outputs="apart")
    build = {"rowmap": filter_rowmap, "colmap": filter_colmap, "shared": filter_shared}[name]
    return build(images, size, radius, x, y)


def _gemm(name: str, tile: int, m: int, n: int, k: int) -> Kernel:
    return gemm_tiled(m, n, k, tile) if name == "tile" else gemm_naive(m, n, k, tile)
