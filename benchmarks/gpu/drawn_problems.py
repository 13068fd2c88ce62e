"""Draw problems to measure, and say what `loopsched.pick` would choose for them beforehand.

Run ``python drawn_problems.py OUT.json SEED KIND:TYPE:N.. [--arch NAME]`` on a machine with
loopsched, before anything is measured; then ``triton_spaces.py`` with ``--seed SEED --choices
OUT.json``.  The file has the five first choices for each problem: lists of block_m, block_n,
block_k, stages, warps, group_m.  Problems may be named instead of drawn, with commas between
them: ``gemm:fp16:512x512x512,64x4096x4096``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from pathlib import Path

CHOICES = 5
NAMES = ("block_m", "block_n", "block_k", "stages", "warps", "group_m")


def drawn(kind: str, n: int, seed: str = "") -> list[str]:
    """Draw products or convolutions of all sizes, of at least 0.1 and at most 200 GMAC."""
    draw, found = random.Random(seed + kind), []

    def one(low: int, high: int, step: int) -> int:
        return max(1, round(low * (high / low) ** draw.random() / step)) * step

    while len(found) < n:
        if kind == "gemm":
            sizes = [one(16, 16384, 16), one(256, 32768, 64), one(256, 16384, 64)]
            macs = math.prod(sizes)
        else:
            image, r, step = one(7, 160, 1), draw.choice((1, 3, 3, 5)), draw.choice((1, 1, 2))
            c, k, batch = one(32, 1024, 32), one(32, 1024, 32), one(1, 64, 1)
            sizes = [batch, image, image, c, k, r, r, step, r // 2]
            macs = batch * (image // step) ** 2 * c * k * r * r
        if 1e8 <= macs <= 2e11:
            found.append("x".join(map(str, sizes)))
    return found


def chosen(kind: str, data_type: str, problem: str, arch: str) -> list[list[int]]:
    """Choose configurations of a problem's kernel."""
    from loopsched import load_arch, pick
    from loopsched.gpu.choice.families import FAMILIES
    from loopsched.validation.choices import problem_named

    family = next(one for one in FAMILIES.values() if one.kind == kind)
    asked = problem_named(problem, family)
    found = pick(asked, load_arch(arch), data_type=data_type, top=CHOICES)
    # Convolutions are measured in groups of eight rows of tiles.
    return [[one.configuration.get(name, 8) for name in NAMES] for one in found.choices]


def main() -> None:
    """Write the choices of what is drawn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("seed")
    parser.add_argument("what", nargs="+")
    parser.add_argument("--arch", default="h100")
    given = parser.parse_args()
    found = {}
    for kind, data_type, asked in (one.split(":") for one in given.what):
        named = drawn(kind, int(asked), given.seed) if asked.isdigit() else asked.split(",")
        for problem in named:
            found[f"{kind}:{data_type}:{problem}"] = chosen(kind, data_type, problem, given.arch)
    given.out.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
