"""Problems, machine and clock that every peer shares; needs only the standard library."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

L2_BYTES = 4_718_592
L1_BYTES = 98_304
ELEMENT_BYTES = 4
MEMORY_LIMIT_BYTES = 8 * 2**30
CONV = ("n", "k", "c", "p", "q", "r", "s", "stride")

# Padding counts as data, because no peer knows it: sizes are those of the output, unpadded.
SEARCHED: dict[str, dict[str, int]] = {
    "gemm 4096x4096x4096": {"m": 4096, "n": 4096, "k": 4096},
    "gemm 1760x128x1760": {"m": 1760, "n": 128, "k": 1760},
    "conv 1x1 n16 1024->256 p14": {
        "n": 16, "k": 256, "c": 1024, "p": 14, "q": 14, "r": 1, "s": 1, "stride": 1,
    },
    "conv 7x7s2 n16 3->64 p112": {
        "n": 16, "k": 64, "c": 3, "p": 112, "q": 112, "r": 7, "s": 7, "stride": 2,
    },
    "conv 3x3 n16 256->512 p28": {
        "n": 16, "k": 512, "c": 256, "p": 28, "q": 28, "r": 3, "s": 3, "stride": 1,
    },
    "conv 5x20s2 n4 1->32 p79 q341": {
        "n": 4, "k": 32, "c": 1, "p": 79, "q": 341, "r": 5, "s": 20, "stride": 2,
    },
}  # fmt: skip

# Known optima for one explicit buffer: sizes, capacity, DRAM bytes.  They leave the filter's
# dimensions untiled; an enumeration that tiles them too may do better.
KNOWN_OPTIMA: dict[str, tuple[dict[str, int], int, int]] = {
    name: (dict(zip("mnk" if len(sizes) == 3 else CONV, sizes, strict=True)), capacity, optimum)
    for name, sizes, capacity, optimum in (
        ("gemm 1760x128x1760, L1", (1760, 128, 1760), L1_BYTES, 22_302_720),
        ("gemm 5124x700x2048, L1", (5124, 700, 2048), L1_BYTES, 396_258_240),
        ("gemm 7680x5481x2560, L1", (7680, 5481, 2560), L1_BYTES, 5_727_160_320),
        ("conv 3x3 n16 64->64 p224, L1", (16, 64, 64, 224, 224, 3, 3, 1), L1_BYTES, 653_705_216),
        ("conv 1x1 n16 1024->256 p14, L1", (16, 256, 1024, 14, 14, 1, 1, 1), L1_BYTES, 49_872_896),
        ("conv 5x10s2 n4 32->32 p38 q166, L1", (4, 32, 32, 38, 166, 5, 10, 2), L1_BYTES,
         28_901_376),
        ("conv 1x1s2 n16 512->1024 p14, L1", (16, 1024, 512, 14, 14, 1, 1, 2), L1_BYTES,
         101_711_872),
        ("gemm 5124x9124x2560, L2", (5124, 9124, 2560), L2_BYTES, 1_073_912_384),
        ("gemm 4096x4096x4096, L2", (4096, 4096, 4096), L2_BYTES, 603_979_776),
        ("gemm 3072x1500x1024, L2", (3072, 1500, 1024), L2_BYTES, 49_446_912),
        ("gemm 35x8457x4096, L2", (35, 8457, 4096), L2_BYTES, 140_316_908),
        ("conv 7x7s2 n16 3->64 p112, L2", (16, 64, 3, 112, 112, 7, 7, 2), L2_BYTES, 61_486_528),
        ("conv 3x3 n8 512->512 p28, L2", (8, 512, 512, 28, 28, 3, 3, 1), L2_BYTES, 57_868_288),
        ("conv 5x5s2 n16 64->128 p40 q174, L2", (16, 128, 64, 40, 174, 5, 5, 2), L2_BYTES,
         177_164_288),
    )
}  # fmt: skip
PROBLEMS = SEARCHED | {name: sizes for name, (sizes, _, _) in KNOWN_OPTIMA.items()}


def is_gemm(sizes: dict[str, int]) -> bool:
    """Whether the sizes are those of a matrix product."""
    return "m" in sizes


def limit_memory() -> None:
    """Stop this process at 8 GiB: one peer is known to grow to 23.8 GB."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))


def clocked(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Call, and return the answer with CPU and wall seconds; ended children count."""
    cpu, wall = _cpu_s(), time.perf_counter()
    answer = call()
    wall = time.perf_counter() - wall
    return answer, _cpu_s() - cpu, wall


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def runs(call: Callable[[], Any], warm: int, stop_after_s: float) -> tuple[Any, dict[str, Any]]:
    """Call once cold, then ``warm`` times unless the first took too long."""
    answer, cpu, wall = clocked(call)
    times: dict[str, Any] = {"cold_cpu_s": cpu, "cold_wall_s": wall, "warm_cpu_s": []}
    times["warm_wall_s"] = []
    for _ in range(warm if cpu < stop_after_s else 0):
        answer, cpu, wall = clocked(call)
        times["warm_cpu_s"].append(cpu)
        times["warm_wall_s"].append(wall)
    return answer, times


def report(row: dict[str, Any]) -> None:
    """Print one row of results as the last line of the output."""
    row["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    row["python"] = ".".join(map(str, sys.version_info[:3]))
    print("\n" + json.dumps(row))
