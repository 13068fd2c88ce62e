"""Time of searches, beside a numpy enumeration of every ceil class.

Run ``python benchmarks/bench_search.py`` for a table, or the classes with asv.
Baseline, in the same run: the vectorised numpy enumeration of `bench_stream`,
for one explicit buffer under memory, where both find the same optimum.
"""

from __future__ import annotations

import sys
from pathlib import Path

from loopsched import Constraints, buffer_arch, gemm, load_arch, load_workload, search
from loopsched.problems.problem import Problem
from loopsched.scheduler import Strategy

sys.path.insert(0, str(Path(__file__).parent))
from bench_stream import LAYER, Stream, cpu_s, numpy_run

ONE_BUFFER: dict[str, tuple[Problem, int]] = {
    "gemm 4096^3, 4.5 MiB": (gemm(m=4096, n=4096, k=4096), 4_718_592),
    "gemm 5124x700x2048, 96 KiB": (gemm(m=5124, n=700, k=2048), 98_304),
}
PROBLEMS: dict[str, Problem] = {
    "gemm 1760x128x1760": gemm(m=1760, n=128, k=1760),
    "conv 3x3 n16 64->64 224": LAYER,
}
CONSTRAINTS: dict[str, Constraints] = {
    "free": Constraints(),
    "divisors": Constraints(tiles="divisors"),
    "powers2": Constraints(tiles="powers2"),
}
STRATEGIES: tuple[Strategy, ...] = ("random", "local")


class OneBufferSuite:
    """asv: how many times faster than the numpy enumeration, at the same optimum."""

    params = tuple(ONE_BUFFER)
    param_names = ("case",)

    def track_ratio_to_numpy(self, case: str) -> float:
        problem, capacity = ONE_BUFFER[case]
        arch = buffer_arch(capacity_bytes=capacity, policy="explicit")
        stream = Stream(problem, capacity)
        found = search(problem, arch, objective="dram_bytes").certificate
        best, _ = numpy_run(stream)
        if found.value != best:
            raise ValueError(f"{case}: numpy finds {best}, the search {found.value}")
        ours = cpu_s(lambda: search(problem, arch, objective="dram_bytes"))
        return cpu_s(lambda: numpy_run(stream)) / ours


class TitanSuite:
    """asv: one search over all levels of a Titan V."""

    params = (tuple(PROBLEMS), tuple(CONSTRAINTS))
    param_names = ("problem", "constraints")

    def setup(self, problem: str, constraints: str) -> None:
        self.arch = load_arch("titan_v")

    def time_search(self, problem: str, constraints: str) -> None:
        search(PROBLEMS[problem], self.arch, constraints=CONSTRAINTS[constraints])


class WorkloadSuite:
    """asv: all 94 layers of DeepBench's convolutions."""

    def setup(self) -> None:
        self.arch, self.workload = load_arch("titan_v"), load_workload("deepbench_conv")

    def time_deepbench_conv(self) -> None:
        for problem in self.workload.problems:
            search(problem, self.arch)


def main() -> None:
    for case in ONE_BUFFER:
        ratio = OneBufferSuite().track_ratio_to_numpy(case)
        print(f"{case}: {ratio:.0f} times faster than numpy, same optimum")
    arch = load_arch("titan_v")
    for name, problem in PROBLEMS.items():
        free = search(problem, arch).certificate.value
        for kind, constraints in CONSTRAINTS.items():
            found = search(problem, arch, constraints=constraints).certificate
            seconds = cpu_s(lambda p=problem, c=constraints: search(p, arch, constraints=c))
            print(
                f"{name}, {kind}: {seconds * 1e3:.1f} ms, {found.value / free:.4f} of the free "
                f"optimum, gap {found.gap:.2%}"
            )
        for strategy in STRATEGIES:
            found = search(problem, arch, strategy=strategy).certificate
            print(f"{name}, {strategy}, 1000 samples: {found.value / free:.3f} of the optimum")
    suite = WorkloadSuite()
    suite.setup()
    print(f"deepbench_conv: {cpu_s(suite.time_deepbench_conv, 1):.2f} s")


if __name__ == "__main__":
    main()
