"""Five hundred tilings of a product of matrices that anybody might try by hand.

M, N and K tiles in powers of two, with and without an outer block for the
shared level, grids of whole waves.  Nothing of the scheduler is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from random import Random

import loopsched
from loopsched.base.errors import ScheduleError
from loopsched.machines.arch import Arch
from loopsched.nests.nest import Schedule
from loopsched.problems.problem import Problem

MANY = 500


def tilings(problem: Problem, instances: int, seed: int = 0) -> list[Schedule]:
    """Draw 500 of the tilings, always the same ones for a seed."""
    every = list(dict.fromkeys(_texts(problem, instances)))
    Random(seed).shuffle(every)
    found: list[Schedule] = []
    for text in every:
        if len(found) == MANY:
            break
        with suppress(ScheduleError):
            found.append(loopsched.parse_schedule(text, problem).check(problem))
    return found


def _texts(problem: Problem, instances: int) -> Iterator[str]:
    size = problem.size
    m, n, k = size["M"], size["N"], size["K"]
    shapes = [(a, instances // a) for a in range(1, instances + 1) if instances % a == 0]
    waves = [None, *shapes, *((2 * a, b) for a, b in shapes), *((4 * a, 4 * b) for a, b in shapes)]
    tiles = list(product((16, 32, 64, 128, 256, 512), (16, 32, 64, 128, 256, 512), (1, 8, 16, 64)))
    for (tm, tn, tk), wave, turned in product(tiles, waves, (False, True)):
        if tm > m or tn > n or tk > k:
            continue
        spread = ["M", "N"][:: -1 if turned else 1]
        outer = {"M": m, "N": n}
        loops = []
        if wave is not None:  # an outer block for the shared level: so many tiles each way
            outer = {"M": min(m, wave[0] * tm), "N": min(n, wave[1] * tn)}
            loops += [f"{dim}:{size[dim]}" for dim in spread if outer[dim] < size[dim]]
        tile = {"M": tm, "N": tn}
        loops += [f"{dim}:{outer[dim]}@SM" for dim in spread if tile[dim] < outer[dim]]
        loops += [f"K:{k}"] if tk < k else []
        loops += [f"M:{tm}", f"N:{tn}"] + ([f"K:{tk}"] if tk > 1 else [])
        yield " ".join(loops)


def best_tiling(problem: Problem, arch: Arch, seed: int = 0) -> tuple[float, str]:
    """Score the tilings; the least time and its schedule."""
    best, best_text = float("inf"), ""
    for schedule in tilings(problem, arch.compute.units, seed):
        with suppress(ScheduleError):
            time_s = loopsched.evaluate(problem, schedule, arch, effort=0).time_s
            if time_s < best:
                best, best_text = time_s, str(schedule)
    return best, best_text
