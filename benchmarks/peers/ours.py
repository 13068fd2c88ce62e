"""loopsched on one problem: prints one JSON line.

    python ours.py "gemm 4096x4096x4096" [--levels 1|2] [--capacity BYTES] [--kernel]

A first problem, of other sizes, is solved before the clock starts, so that imports and
compilation are not counted; then three kinds of call:

- first: the problem's first search in this process;
- forgotten: every cache of this library emptied before each call (median of 20);
- warm: the same call again (median of 20), as the peers' warm calls.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
from typing import Any

import common

REPEATS = 20
WARM_UP = (
    {"m": 2000, "n": 1500, "k": 3000},
    {"n": 12, "k": 96, "c": 80, "p": 30, "q": 30, "r": 3, "s": 3, "stride": 2},
)


def forget() -> None:
    """Empty every cache that the library keeps between calls."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "loopsched":
            for thing in list(vars(module).values()):
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", choices=common.PROBLEMS)
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--capacity", type=int, default=common.L2_BYTES)
    parser.add_argument("--kernel", action="store_true", help="best_body instead of search")
    options = parser.parse_args()

    import loopsched
    from loopsched.machines.arch import Arch
    from loopsched.machines.levels import Compute, Level
    from loopsched.models.traffic import Room
    from loopsched.problems.problem import Problem
    from loopsched.scheduler.body import PLACED, best_body

    levels = [
        Level("DRAM", "memory", None),
        Level("L2", "scratchpad", options.capacity, bandwidth_bytes_per_s=1e11),
        Level("L1", "scratchpad", common.L1_BYTES, bandwidth_bytes_per_s=1e12),
    ][: options.levels + 1]
    machine = Arch("machine", tuple(levels), Compute("core", 1, 1e9, 1e9, (("fp32", 256),)))

    def problem_of(sizes: dict[str, int]) -> Problem:
        return loopsched.gemm(**sizes) if common.is_gemm(sizes) else loopsched.conv2d(**sizes)

    def solve(problem: Problem) -> Any:
        if options.kernel:
            return best_body(problem, Room.shared(options.capacity), PLACED)
        return loopsched.search(problem, machine, objective="dram_bytes")

    for sizes in WARM_UP:
        solve(problem_of(sizes))

    problem = problem_of(common.PROBLEMS[options.problem])
    _, first, _ = common.clocked(lambda: solve(problem))
    gc.collect()
    forgotten = []
    for _ in range(REPEATS):
        forget()
        forgotten.append(common.clocked(lambda: solve(problem))[1:])
    warm = [common.clocked(lambda: solve(problem)) for _ in range(REPEATS)]
    found = warm[-1][0]
    row: dict[str, Any] = {
        "peer": "loopsched",
        "version": loopsched.__version__,
        "variant": f"{options.levels} level{'s' if options.levels > 1 else ''}"
        + (f" of {options.capacity:,} B" if options.levels == 1 else "")
        + (", best_body" if options.kernel else ""),
        "problem": options.problem,
        "dram_bytes": found.bytes if options.kernel else found.evaluation.dram_bytes,
        "proven": True if options.kernel else found.certificate.proven,
        "space_size": None if options.kernel else str(found.certificate.space_size),
        "schedule": None if options.kernel else str(found.schedule),
        "first_cpu_ms": 1e3 * first,
        "forgotten_cpu_ms": 1e3 * statistics.median(cpu for cpu, _ in forgotten),
        "forgotten_wall_ms": 1e3 * statistics.median(wall for _, wall in forgotten),
        "warm_cpu_ms": 1e3 * statistics.median(cpu for _, cpu, _ in warm),
        "warm_wall_ms": 1e3 * statistics.median(wall for _, _, wall in warm),
    }
    common.report(row)


if __name__ == "__main__":
    main()
