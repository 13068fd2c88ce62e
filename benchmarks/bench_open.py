"""How good answers are where searches are hard: proofs, gaps, and tilings by hand.

Run ``python benchmarks/bench_open.py`` for products of matrices from small to 2^20 a side
on four GPUs, each beside 500 tilings by hand (`tests/tilings.py`), and
``python benchmarks/bench_open.py SHAPES.csv`` for the rows of a file with columns ``m``,
``n`` and ``k``, and ``batch`` if it has them, without tilings.  Times are CPU times,
compilation not included.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from tilings import best_tiling

from loopsched import batched_gemm, gemm, load_arch, search
from loopsched.problems.problem import Problem
from loopsched.scheduler import warm_up

MACHINES = ("titan_v", "h200", "t4", "v100")
SIDES = (32_768, 65_536, 131_072, 262_144, 1_048_576)
ODD = ((100_000, 90_000, 80_000), (50_257, 16_384, 4096), (37_376, 25_089, 256))
MORE = ((36_096, 35_713, 384), (2048, 3978, 512), (4096, 11_008, 2048))


def products() -> list[Problem]:
    """Large and odd products, four and two bytes an element."""
    shapes = [*((side, side, side) for side in SIDES), *ODD, *MORE]
    return [gemm(m=m, n=n, k=k, element_bytes=size) for m, n, k in shapes for size in (4, 2)]


def of_file(path: str) -> list[Problem]:
    """Products that a file lists."""
    found = []
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            m, n, k = (int(row[name]) for name in "mnk")
            many = int(row.get("batch") or 1)
            for size in (4, 2):
                if many == 1:
                    found.append(gemm(m=m, n=n, k=k, element_bytes=size))
                else:
                    found.append(batched_gemm(batch=many, m=m, n=n, k=k, element_bytes=size))
    return list(dict.fromkeys(found))


def compare(problems: list[Problem], machine: str, *, is_by_hand: bool) -> str:
    """Search them all; say how many are proven, the worst gap, the worst ratio to tilings."""
    arch = load_arch(machine)
    proven, gap, ratio, seconds = 0, 0.0, 0.0, []
    for problem in problems:
        begin = time.process_time()
        found = search(problem, arch).certificate
        seconds.append(time.process_time() - begin)
        proven += found.proven
        gap = max(gap, found.gap)
        if is_by_hand:
            ratio = max(ratio, found.value / best_tiling(problem, arch)[0])
    text = (
        f"{machine:8} {len(problems):4} problems, proven {proven / len(problems):6.1%}, worst gap "
        f"{gap:.3%}, {sum(seconds):.1f} s, the longest {max(seconds):.1f} s"
    )
    return text + (f", at worst {ratio:.6f} of the best tiling" if is_by_hand else "")


def main() -> None:
    """Print a line for each machine."""
    warm_up()
    given = sys.argv[1:]
    problems = [each for path in given for each in of_file(path)] if given else products()
    for machine in MACHINES:
        print(compare(problems, machine, is_by_hand=not given), flush=True)


if __name__ == "__main__":
    main()
