"""Optima known from elsewhere for one explicit buffer below DRAM.

They were found by enumerating every class of tile sizes and orders with numpy:
4-byte elements, partial sums read and written, edge tiles clipped, halos kept
along the innermost image loop, filter dimensions not tiled.  Tiling the filter
too may do better, so the search must be at most as high.
"""

from __future__ import annotations

import pytest

import loopsched
from loopsched.models.traffic import Room
from loopsched.problems.problem import Problem
from loopsched.scheduler.body import PLACED, best_body

GEMMS = [
    ((1760, 128, 1760), 98_304, 22_302_720),
    ((5124, 700, 2048), 98_304, 396_258_240),
    ((7680, 5481, 2560), 98_304, 5_727_160_320),
    ((5124, 9124, 2560), 4_718_592, 1_073_912_384),
    ((4096, 4096, 4096), 4_718_592, 603_979_776),
    ((3072, 1500, 1024), 4_718_592, 49_446_912),
    ((35, 8457, 4096), 4_718_592, 140_316_908),
]

# n, c, k, p, q, r, s, stride
CONVS = [
    ((16, 64, 64, 224, 224, 3, 3, 1), 98_304, 653_705_216),
    ((16, 1024, 256, 14, 14, 1, 1, 1), 98_304, 49_872_896),
    ((4, 32, 32, 38, 166, 5, 10, 2), 98_304, 28_901_376),
    ((16, 512, 1024, 14, 14, 1, 1, 2), 98_304, 101_711_872),
    ((16, 3, 64, 112, 112, 7, 7, 2), 4_718_592, 61_486_528),
    ((8, 512, 512, 28, 28, 3, 3, 1), 4_718_592, 57_868_288),
    ((16, 64, 128, 40, 174, 5, 5, 2), 4_718_592, 177_164_288),
]


def _conv(n: int, c: int, k: int, p: int, q: int, r: int, s: int, stride: int) -> Problem:
    return loopsched.conv2d(n=n, c=c, k=k, p=p, q=q, r=r, s=s, stride=stride)


CASES = [
    *((loopsched.gemm(m=m, n=n, k=k), capacity, known) for (m, n, k), capacity, known in GEMMS),
    *((_conv(*shape), capacity, known) for shape, capacity, known in CONVS),
]


@pytest.mark.parametrize(("problem", "capacity", "known"), CASES, ids=lambda case: str(case)[:40])
def test_search_is_never_worse(problem: Problem, capacity: int, known: int) -> None:
    arch = loopsched.buffer_arch(capacity_bytes=capacity, policy="explicit")
    result = loopsched.search(problem, arch, objective="dram_bytes")
    assert result.certificate.proven
    assert result.evaluation.dram_bytes <= known
    if problem.kind == "gemm" or problem.size["R"] * problem.size["S"] == 1:
        body = best_body(problem, Room.shared(capacity), PLACED)
        assert body is not None
        assert body.bytes == known  # nothing else there to tile, if all tiles share a place
    walked = loopsched.traffic(problem, result.schedule, capacity_bytes=capacity, policy="explicit")
    assert walked.bytes.high == result.evaluation.dram_bytes


def test_tiling_the_filter_beats_the_known_optimum() -> None:
    arch = loopsched.buffer_arch(capacity_bytes=98_304, policy="explicit")
    result = loopsched.search(_conv(4, 32, 32, 38, 166, 5, 10, 2), arch, objective="dram_bytes")
    assert result.evaluation.dram_bytes == 27_039_744
