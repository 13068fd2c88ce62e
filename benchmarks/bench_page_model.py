"""Whether the page's model equals the library, and how long it takes in a browser.

Run ``python benchmarks/bench_page_model.py [N]`` for N random schedules with a score
(10,000 unless given), half of small random problems on random machines, half of real
layers on the machines that loopsched ships; then the best schedule of every DeepBench
layer on a Titan V.  Refused schedules come on top: their messages are compared, too.
Every number is compared: whole ones digit by digit, others bit by bit.
Chromium does the page's part.  Exits with 1 if anything differs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from loopsched import load_arch, load_workload, search

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from page_model import Case, case, layer_cases, random_cases, run_in_page, shipped, text_cases

BATCH = 1000


def judged(name: str, cases: Sequence[Case]) -> tuple[int, int]:
    """Run cases in the page and print one line; return how many have a score, and differ."""
    n_scored = sum("error" not in one["expected"] for one in cases)
    with tempfile.TemporaryDirectory() as folder:
        found = run_in_page(list(cases), Path(folder))
    times = sorted(found["times"])
    quick = sum(time < 10 for time in times) / len(times)
    sys.stdout.write(
        f"{name:28} {len(cases):6} cases, {n_scored:6} with a result, "
        f"{len(found['wrong'])} differ; ms: median {statistics.median(times):.2f}, "
        f"90 % {times[int(0.9 * len(times))]:.1f}, most {times[-1]:.0f}; "
        f"{quick:.1%} below 10 ms\n"
    )
    for wrong in found["wrong"][:5]:
        sys.stdout.write(f"  {wrong}\n")
    sys.stdout.flush()
    return n_scored, len(found["wrong"])


def until(n: int, name: str, made: Callable[[int, int], list[Case]]) -> int:
    """Judge batch after batch until so many schedules have a score; return how many differ."""
    n_wrong, number = 0, 0
    while n > 0:
        n_scored, wrong = judged(name, made(min(BATCH, n + n // 3 + 10), number))
        n, n_wrong, number = n - n_scored, n_wrong + wrong, number + 1
    return n_wrong


def main() -> int:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    layers, archs = shipped()
    n_wrong = until(total // 2, "small problems", random_cases)
    n_wrong += until(
        total - total // 2,
        "real layers",
        lambda n, number: list(layer_cases(layers, archs, n, number)),
    )
    n_wrong += judged("texts and loops", list(text_cases(layers, total // 5, 0)))[1]
    titan_v = load_arch("titan_v")
    for name in ("deepbench_conv", "deepbench_gemm"):
        problems = load_workload(name).problems
        best = [case(one, search(one, titan_v).schedule, titan_v) for one in problems]
        n_wrong += judged(f"best of {name}", best)[1]
    sys.stdout.write(f"{n_wrong} differences\n")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
