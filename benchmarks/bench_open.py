"""How good answers are where searches are hard: proofs, gaps, and tilings by hand.

Run ``python benchmarks/bench_open.py`` for products of matrices from small to 2^20 a side
on four GPUs, each beside 500 tilings by hand (`tests/tilings.py`), and
``python benchmarks/bench_open.py FILE...`` for workloads and for tables, without tilings.  A
table (``.csv``) has columns ``m``, ``n`` and ``k``, and ``batch`` if it likes, or those of a
convolution (``n``, ``c``, ``h``, ``w``, ``k``, ``r``, ``s``, ``groups``, ``stride_h`` ..).
``--bytes`` is the size of an element, ``--most`` thins a long list out.  Each problem that stays
open is a line of its own.  Times are CPU times, compilation not included.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from tilings import best_tiling

from loopsched import batched_gemm, conv2d, gemm, load_arch, load_workload, search
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


def of_row(row: dict[str, int], size: int) -> Problem:
    """The product or the convolution of a row, with elements of so many bytes."""
    if "c" in row:
        pairs = {
            name: (row[f"{name}_h"], row[f"{name}_w"]) for name in ("stride", "padding", "dilation")
        }
        sizes = {name: row[name] for name in ("n", "c", "h", "w", "k", "r", "s", "groups")}
        return conv2d(**sizes, **pairs, element_bytes=size)
    m, n, k = (row[name] for name in "mnk")
    many = row.get("batch", 1)
    if many == 1:
        return gemm(m=m, n=n, k=k, element_bytes=size)
    return batched_gemm(batch=many, m=m, n=n, k=k, element_bytes=size)


def of_file(path: str, size: int, most: int | None) -> list[Problem]:
    """Problems that a table or a workload lists, without repetitions, evenly thinned out."""
    if path.endswith(".csv"):
        with open(path, encoding="utf-8", newline="") as file:
            rows = [
                {name: int(cell) for name, cell in row.items() if cell.isdigit()}
                for row in csv.DictReader(file)
            ]
        found = list(dict.fromkeys(of_row(row, size) for row in rows))
    else:
        listed = load_workload(path).problems
        sized = (p.with_element_bytes({t.name: size for t in p.tensors}) for p in listed)
        found = list(dict.fromkeys(sized))
    if most is None or most >= len(found):
        return found
    return found[:: len(found) // most][:most]


def compare(problems: list[Problem], machine: str, *, is_by_hand: bool) -> str:
    """Search them all; say how many are proven, the worst gap, the worst ratio to tilings."""
    arch = load_arch(machine)
    proven, gap, ratio, seconds = 0, 0.0, 0.0, []
    for problem in problems:
        begin = time.process_time()
        found = search(problem, arch).certificate
        seconds.append(time.process_time() - begin)
        proven += found.proven
        if not found.proven:
            print(f"  open: {problem.name} {dict(problem.sizes)}, gap {found.gap:.4%}", flush=True)
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
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--bytes", type=int, default=2)
    parser.add_argument("--most", type=int)
    parser.add_argument("--machines", default=",".join(MACHINES))
    given = parser.parse_args()
    warm_up()
    sets = [(path, of_file(path, given.bytes, given.most)) for path in given.files]
    for path, problems in sets or [("", products())]:
        for machine in given.machines.split(","):
            text = compare(problems, machine, is_by_hand=not path)
            print(f"{Path(path).name} {text}".lstrip(), flush=True)


if __name__ == "__main__":
    main()
