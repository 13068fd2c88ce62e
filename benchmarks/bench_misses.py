"""Cache misses of generated kernels: replayed, foreseen, and counted by valgrind.

Run ``python benchmarks/bench_misses.py [--plans N] [--seed N] [--only TEXT]``; gcc and
valgrind are needed.  Each kernel is written for AVX2 (valgrind runs no AVX-512) as C for
valgrind, and as LLVM's text that notes its own addresses for the replay; both have their
arrays at the same places.  Caches: D1 of 32 KiB with 8 ways, LL of 256 KiB with 16, lines
of 64 bytes.  With ``--lanes 16`` kernels are for AVX-512, and what is foreseen is held
against the replay.  Columns: counted, replayed and foreseen misses of D1; the same of LL,
and lines from outside L2 by the model behind the choice of plans.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from loopsched import Problem, conv2d, gemm
from loopsched.codegen.c_text import CText
from loopsched.codegen.choose import candidates, ranked, register_tiles
from loopsched.codegen.contraction import Contraction, Guard, Operand, contractions
from loopsched.codegen.core import Core
from loopsched.codegen.cost import Model
from loopsched.codegen.described import of_plan
from loopsched.codegen.element import FP32
from loopsched.codegen.engine import Engine
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.plan import Plan, inner_sizes
from loopsched.codegen.trace import BLOCK, LINE, Cache, Cut, form, places, replay

CORES = {
    lanes: Core(lanes, registers, 2.0, 4.0, 2.0, 32768, 262144, 3e9)
    for lanes, registers in ((8, 16), (16, 32))
}
D1, LL = Cache(32768, 8), Cache(262144, 16)
CACHES = {"D1": D1, "LL": LL}
ENOUGH = 200
"""Misses: where there are fewer, they count as none."""


def problems() -> Iterator[tuple[str, Problem]]:
    """List problems with their names."""
    for m, n, k in (
        (64, 64, 64),
        (192, 192, 192),
        (100, 300, 77),
        (256, 96, 256),
        (33, 500, 129),
        (7, 640, 256),
        (512, 40, 200),
    ):
        yield f"gemm {m}x{n}x{k}", gemm(m=m, n=n, k=k)
    for name, m, n, k in (("A", 160, 200, 180), ("B", 201, 150, 160), ("AB", 128, 256, 200)):
        turned = {f"transpose_{one.lower()}": one in name for one in "AB"}
        yield f"gemm {m}x{n}x{k}, {name} turned", gemm(m=m, n=n, k=k, **turned)
    three, one = {"r": 3, "s": 3}, {"r": 1, "s": 1}
    shapes = {
        "conv 3x3": conv2d(n=1, c=32, k=48, h=28, w=28, padding=1, **three),
        "conv 3x3, odd": conv2d(n=2, c=13, k=35, h=17, w=23, padding=1, **three),
        "conv 3x3, stride 2": conv2d(n=1, c=32, k=64, h=28, w=28, stride=2, padding=1, **three),
        "conv 3x3, dilation 2": conv2d(n=1, c=24, k=32, h=24, w=24, dilation=2, **three),
        "conv 1x1": conv2d(n=1, c=128, k=64, h=28, w=28, **one),
        "conv 1x1, stride 2": conv2d(n=1, c=64, k=96, h=28, w=28, stride=2, **one),
        "conv 5x5": conv2d(n=1, c=8, k=32, h=30, w=30, r=5, s=5, padding=2),
        "conv 3x3, 4 groups": conv2d(n=1, c=64, k=64, h=28, w=28, padding=1, groups=4, **three),
        "depthwise 3x3": conv2d(n=1, c=64, k=64, h=40, w=40, padding=1, groups=64, **three),
        "gradient of the input": conv2d(
            n=1, c=32, k=32, h=28, w=28, padding=1, pass_="backward_data", **three
        ),
        "gradient, stride 2": conv2d(
            n=1, c=32, k=32, h=28, w=28, padding=1, stride=2, pass_="backward_data", **three
        ),
        "gradient of the weight": conv2d(
            n=1, c=32, k=32, h=28, w=28, padding=1, pass_="backward_weights", **three
        ),
    }
    yield from shapes.items()


def plans(problem: Problem, core: Core, many: int, seed: int = 0) -> Iterator[list[Cut]]:
    """Cut a problem as the model would, then at random."""
    elements = {tensor.name: FP32 for tensor in problem.tensors}
    tasks = contractions(problem, elements)
    yield [ranked(task, core)[0][1:] for task in tasks]
    draw = random.Random(f"{problem.name} {seed}")
    for _ in range(many - 1):
        cuts = []
        for task in tasks:
            cut = [(one, plan) for one in (task, task.swapped()) for plan in candidates(one)]
            one, plan = draw.choice(cut)
            rows, n = draw.choice(register_tiles(core))
            cuts.append((one, plan._replace(tile_rows=rows, tile_cols=n * core.lanes)))
        yield cuts


MAIN = """
#include <stdint.h>
#include <stdlib.h>
void run(unsigned char *block);
int main(int n, char **given) {
  long size = atol(given[1]), arrays = atol(given[2]);
  unsigned char *block = aligned_alloc(BLOCK, (size + BLOCK - 1) / BLOCK * BLOCK);
  for (long i = 0; i < arrays; i += 4)
    *(volatile float *)(block + i) = (float)(i % 61);
  if (n > 3)
    run(block);
  return 0;
}
"""


def counted(problem: Problem, cuts: list[Cut], folder: Path) -> tuple[int, int, int]:
    """Build a kernel with gcc, and count under valgrind: data accesses, misses of D1 and of LL."""
    kind = FP32, 8
    at = places(problem, cuts, kind)
    calls, programs = [], []
    for number, (task, plan) in enumerate(cuts):
        text = CText(*kind)
        program = form(plan)(text, task, plan, f"part{number}")
        program.write()
        programs.append(f"part{number}.c")
        (folder / programs[-1]).write_text(text.text())
        names = (task.left.name, task.right.name, task.out.name, "")
        pointers = ", ".join(f"block + {at[name]}" for name in names)
        calls.append(
            f"void part{number}(unsigned char *, unsigned char *, unsigned char *,"
            f" unsigned char *, long, long);\n"
            f"void run{number}(unsigned char *block)"
            f" {{ part{number}({pointers}, 0, {program.n_jobs}); }}\n"
        )
    every = " ".join(f"run{number}(block);" for number in range(len(cuts)))
    main = "".join(calls) + MAIN + f"void run(unsigned char *block) {{ {every} }}\n"
    (folder / "main.c").write_text(main.replace("BLOCK", str(BLOCK)))
    flags = ["-O3", "-mavx2", "-mfma", "-fno-ipa-cp", "-w"]
    subprocess.run(
        ["gcc", *flags, "-fno-inline-functions", "main.c", *programs, "-o", "main"],
        cwd=folder,
        check=True,
    )
    with_it, without = (cachegrind(folder, at, more) for more in (["run"], []))
    return tuple(one - other for one, other in zip(with_it, without, strict=True))


def cachegrind(folder: Path, at: Mapping[str, int], more: Sequence[str]) -> tuple[int, int, int]:
    """Run under cachegrind, the kernel or only what is before and after it."""
    caches = [f"--{name}={one.capacity_bytes},{one.ways},64" for name, one in CACHES.items()]
    subprocess.run(
        [
            "valgrind",
            "--tool=cachegrind",
            "--I1=32768,8,64",
            *caches,
            "--cachegrind-out-file=counts",
            "./main",
        ]
        + [str(at["end"]), str(at[""]), *more],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    text = (folder / "counts").read_text()
    names, numbers = (
        re.findall(rf"^{word}: (.*)$", text, re.MULTILINE)[0].split()
        for word in ("events", "summary")
    )
    found = dict(zip(names, map(int, numbers), strict=True))
    accesses, first, last = (found[f"D{kind}r"] + found[f"D{kind}w"] for kind in ("", "1m", "Lm"))
    return accesses, first, last


def lines_of(operand: Operand, extents: Mapping[str, int], start: int, n_sets: int) -> np.ndarray:
    """Count the lines of a box of points, set by set; padding has none."""
    dims = [dim for dim in sorted(operand.dims) if extents[dim] > 1]
    grid = np.ix_(*(np.arange(extents[dim]) for dim in dims))

    def place(one: Operand | Guard) -> np.ndarray:
        moves = (one.step(dim) * axis for dim, axis in zip(dims, grid, strict=True))
        return sum(moves, np.int64(one.offset))

    places = place(operand)
    is_read = np.ones_like(places, bool)
    for guard in operand.guards:
        is_read &= (place(guard) >= 0) & (place(guard) < guard.size)
    lines = np.unique((places[is_read] * operand.element.n_bytes + start) // LINE)
    return np.bincount(lines % n_sets, minlength=n_sets)


def nest(task: Contraction, plan: Plan) -> tuple[dict[str, int], list[tuple]]:
    """Give the box of a register tile, and the loops around it, innermost first.

    Of each loop: its steps, the extents of a box that has taken them all, and
    what is packed in each of its steps.
    """
    walks = {"left": plan.rows, "right": plan.cols, "": plan.sums}
    box = dict.fromkeys(task.dims, 1)
    loops: list[tuple] = []
    for (side, walk), most in zip(
        walks.items(), (plan.tile_rows, plan.tile_cols, 1 << 60), strict=True
    ):
        whole = dict(inner_sizes(task, walk, walk.block))
        for dim, size in reversed(whole.items()):
            box[dim], most = min(size, most), -(-most // size)
        if side:
            tiles = math.prod(size / box[dim] for dim, size in whole.items())
            loops.append((tiles, whole, ""))
    for walk, packed in ((plan.rows, "left"), (plan.sums, "right"), (plan.cols, "")):
        whole = {dim: task.size(dim) for dim in walk.inner[:1]}
        loops.append((math.prod(whole.values()) / walk.block, whole, packed))
        loops += [(task.size(dim), {dim: task.size(dim)}, "") for dim in reversed(walk.outer)]
    loops += [(task.size(dim), {dim: task.size(dim)}, "") for dim in reversed(plan.batch)]
    return box, [*loops, (1, {}, "")]


def packed_places(engine: Engine, side: str, n: int, depth: int) -> np.ndarray:
    """Say where so many points and steps of a sum lie in the room that blocks are packed into."""
    points, sums = np.ix_(np.arange(n), np.arange(depth))
    if side == "right":
        pitch, start = engine.right_pitch, 0
    else:
        pitch, start = engine.left_pitch(), engine.right_room()
        if not (engine.is_left_panel or engine.is_left_wide):
            return start + points * pitch + sums
    return start + points // pitch * pitch * engine.max_sum + points % pitch + sums * pitch


def foreseen(
    task: Contraction, plan: Plan, cache: Cache, at: Mapping[str, int], lanes: int
) -> float:
    """Foresee misses: a loop finds again what one step of it leaves, where that fits a set.

    Left out: edges of blocks, and other origins than zero.
    """
    box, loops = nest(task, plan)
    packs = {}
    for side, walk in (("left", plan.rows), ("right", plan.cols)):
        if getattr(plan, f"packs_{side}"):
            packs[side] = dict(inner_sizes(task, walk, walk.block))
    depth = dict(inner_sizes(task, plan.sums, plan.sums.block))
    engine = Engine(LlvmText(FP32, lanes), task, plan, "") if packs else None
    copies: list[str] = []
    n_sets = cache.capacity_bytes // LINE // cache.ways

    def source(side: str) -> np.ndarray:
        operand = getattr(task, side)
        return lines_of(operand, box, at[operand.name], n_sets)

    def packed(side: str) -> np.ndarray:
        n, k = (
            math.prod(min(box[dim], size) for dim, size in one.items())
            for one in (packs[side], depth)
        )
        lines = np.unique((packed_places(engine, side, n, k) * FP32.n_bytes + at[""]) // LINE)
        return np.bincount(lines % n_sets, minlength=n_sets)

    def cold() -> dict[str, np.ndarray]:
        found = {
            side: packed(side) if side in packs else source(side)
            for side in ("left", "right", "out")
        }
        return found | {f"{side} copied": source(side) for side in copies}

    def moved_by(whole: Mapping[str, int]) -> set[str]:
        return {
            side
            for side in ("left", "right", "out")
            if any(
                getattr(task, side).step(dim) and box[dim] < min(size, packs.get(side, whole)[dim])
                for dim, size in whole.items()
                if dim in packs.get(side, whole)
            )
        }

    misses, fits, walked_again = cold(), np.ones(n_sets, bool), set()
    for steps, whole, side in loops:
        if side in packs:
            copies.append(side)
            misses[f"{side} copied"] = source(side)
            # What is written is not found when it is read, where both do not fit.
            is_lost = source(side) + packed(side) > cache.ways
            misses[side] = misses[side] + packed(side) * is_lost
        # Between two uses lie all of what one step walks again and again, and on average half
        # of the next step.
        moved = moved_by(whole)
        twice = [misses[one] for one in sorted(moved & walked_again)]
        more = sum((np.roll(one, int(one.sum())) for one in twice), np.zeros(n_sets))
        fits &= sum(misses.values()) + more / 2 <= cache.ways
        if steps > 1:
            walked_again |= {"left", "right", "out"} - moved
        box |= whole
        fresh = cold()
        misses = {name: np.where(fits, fresh[name], n * steps) for name, n in misses.items()}
    again = sum(map(packed, packs), np.zeros(n_sets))
    total = float(np.where(fits, again, sum(misses.values())).sum())
    outermost = next((one[:2] for one in reversed(loops) if one[0] > 1), (1.0, {}))
    left_over = found_again(task, outermost, at, again.sum(), cache.capacity_bytes // LINE)
    return total - left_over * float(1 - fits.mean())


def foreseen_all(cuts: Sequence[Cut], cache: Cache, at: Mapping[str, int], lanes: int) -> float:
    """Foresee misses of parts that run in turn and use the same room; the first finds it cold."""
    found = [foreseen(*cut, cache, at, lanes) for cut in cuts]
    if at["end"] <= cache.capacity_bytes:
        return max(found)
    return sum(found)


def found_again(
    task: Contraction,
    moved: tuple[float, Mapping[str, int]],
    at: Mapping[str, int],
    n_packed: float,
    capacity: int,
) -> float:
    """Count lines that are still held when a kernel first touches them, after all were written.

    Lines of an array are taken to be touched at an even rate, during the whole run or, if
    the outermost loop does not move the array, during that loop's first step.
    """
    steps, dims = moved
    spans, sizes = {}, {}
    for one in task.operands:
        spans[one.name] = 1.0 if any(one.step(dim) for dim in dims) else 1 / steps
        whole = dict(task.sizes)
        sizes[one.name] = int(lines_of(one, whole, 0, 1)[0])
    order = sorted(sizes, key=lambda name: at[name])
    held = 0.0
    for number, name in enumerate(order):
        times = np.linspace(0, spans[name], sizes[name])
        between = n_packed + sum(sizes[one] for one in order[number:])
        for older in order[:number]:
            between = between + np.minimum(1, times / spans[older]) * sizes[older]
        held += float(np.sum(between + 0 * times <= capacity))
    return held


def by_model(task: Contraction, plan: Plan, core: Core) -> float:
    """Lines from outside L2 that the model behind the choice counts."""
    if plan.slides:
        return 0.0
    counts = Model(task, core).counts(plan)
    return sum(n for name, n in counts.items() if name.endswith(("_l3", "_dram")))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plans", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, choices=CORES, default=8)
    given = parser.parse_args()
    core, kind = CORES[given.lanes], (FP32, given.lanes)
    rows, n_over = [], 0
    for name, problem in problems():
        if given.only not in name:
            continue
        for cuts in plans(problem, core, given.plans, given.seed):
            at = places(problem, cuts, kind)
            replayed = replay(problem, cuts, kind, list(CACHES.values()))
            found: dict[str, Sequence[float]] = {
                "replayed": replayed.lines,
                "foreseen": [
                    foreseen_all(cuts, cache, at, given.lanes) for cache in CACHES.values()
                ],
                "model": (math.nan, sum(by_model(*cut, core) for cut in cuts)),
            }
            misses: Sequence[float] = replayed.lines
            if given.lanes == 8:
                with tempfile.TemporaryDirectory() as folder:
                    _, *misses = counted(problem, cuts, Path(folder))
            rows.append((misses, found))
            n_over += at["end"] > LL.capacity_bytes
            shown = [misses, *found.values()]
            cells = (f"{one[level]:9.0f}" for level in (0, 1) for one in shown if one[level] >= 0)
            told = of_plan(*cuts[0], kind, 1, 0.0).text()
            print(f"{name:27}{''.join(cells)}  {told}", flush=True)
    print(f"{n_over} of {len(rows)} kernels have more arrays and room than LL holds")
    for level, title in enumerate(CACHES):
        for how in ("replayed", "foreseen", "model"):
            pairs = [(found[how][level], misses[level]) for misses, found in rows]
            if (how, given.lanes) != ("replayed", 16) and (how, title) != ("model", "D1"):
                print(f"{title}, {how}: {summary(pairs)}")


def summary(pairs: Sequence[tuple[float, float]]) -> str:
    """Say how far numbers are off from those that were counted, where these are enough."""
    errors = [
        abs(one - counts) / counts
        for one, counts in pairs
        if counts >= ENOUGH and not math.isnan(one)
    ]
    if not errors:
        return "nothing to compare"
    inside = sum(one <= 0.1 for one in errors)
    return (
        f"off by {statistics.median(errors):.1%} in the median, {max(errors):.0%} at most; "
        f"{inside} of {len(errors)} kernels within 10 %"
    )


if __name__ == "__main__":
    main()
