"""How many schedules a core scores in a second, beside numpy doing the same.

Run ``python benchmarks/bench_stream.py`` for a table, or the classes with asv.
Baseline: a vectorised numpy enumeration of the same extents and order classes.

A schedule is a body (extents, each the smallest for its number of pieces) and a
class of orders of the loops around it; only those are counted whose body is the
largest region that fits, each scored with its own extents and order.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from loopsched import conv2d, gemm
from loopsched.problems.problem import Problem

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from buffer_stream import Stream

LAYER = conv2d(n=16, c=64, k=64, h=224, w=224, r=3, s=3, padding=1)
CASES: dict[str, tuple[Problem, int]] = {
    "gemm 4096^3, 96 KiB": (gemm(m=4096, n=4096, k=4096), 98_304),
    "gemm 4096^3, 4.5 MiB": (gemm(m=4096, n=4096, k=4096), 4_718_592),
    "conv 3x3 n16 64->64 224, 96 KiB": (LAYER, 98_304),
    "conv 3x3 n16 64->64 224, 4.5 MiB": (LAYER, 4_718_592),
}
SMALL = {name: case for name, case in CASES.items() if name.startswith("gemm")}


def cpu_s(work: Callable[[], object], repeats: int = 3) -> float:
    """Least CPU time of some runs, after one to warm up."""
    work()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def numpy_run(stream: Stream) -> tuple[int, int]:
    """Score the same schedules with numpy: the fewest bytes, and how many there are."""
    tables, rows = stream.tables, stream.rows
    best, scored = 2**62, 0
    for at, one in enumerate(stream.classes):
        active = [int(d) for d in rows.actives[at] if d >= 0]
        inner = stream.problem.dims.index(one.inward[0])
        grids: dict[int, np.ndarray] = {
            d: np.arange(1, tables.n_extents[d]).reshape([-1 if d == e else 1 for e in active])
            for d in active
        }

        def product(flat: np.ndarray, tensor: int, skip: int, grids: dict) -> np.ndarray | int:
            found: np.ndarray | int = 1
            for axis in range(tables.tensor_axes[tensor], tables.tensor_axes[tensor + 1]):
                first, second = (int(d) for d in tables.axis_dims[axis])
                place = tables.axis_start[axis]
                if first != skip:
                    place = place + grids.get(first, 0) * tables.axis_stride[axis]
                if second >= 0 and second != skip:
                    place = place + grids.get(second, 0)
                found = found * flat[place]
            return found

        need, around, moved = 0, 0, -tables.constant
        for t in range(len(tables.weight)):
            need = need + tables.element_bytes[t] * product(tables.largest, t, -1, grids)
            around = around + tables.element_bytes[t] * product(tables.largest, t, inner, grids)
            visits = tables.weight[t] * product(tables.total, t, int(rows.slides[at, t]), grids)
            for d in active:
                if not tables.is_indexed[t, d] and not rows.runs[at, t, d]:
                    visits = visits * tables.pieces[d][grids[d]]
            moved = moved + visits
        shape = tuple(int(tables.n_extents[d]) - 1 for d in active)
        kept = np.broadcast_to(
            (need <= stream.capacity_bytes) & (around > stream.capacity_bytes), shape
        )
        scored += int(kept.sum())
        if kept.any():
            best = min(best, int(np.broadcast_to(moved, shape)[kept].min()))
    return best, scored


class StreamSuite:
    """asv: time and rate of a stream."""

    params = tuple(CASES)
    param_names = ("case",)

    def setup(self, case: str) -> None:
        problem, capacity = CASES[case]
        self.stream = Stream(problem, capacity)

    def time_run(self, case: str) -> None:
        self.stream.run()

    def track_schedules_per_s(self, case: str) -> float:
        return self.stream.run().n_scored / cpu_s(self.stream.run)

    track_schedules_per_s.unit = "1/s"  # type: ignore[attr-defined]


class RatioSuite:
    """asv: how many times faster than the numpy enumeration."""

    params = tuple(SMALL)
    param_names = ("case",)

    def setup(self, case: str) -> None:
        self.stream = Stream(*SMALL[case])

    def track_ratio_to_numpy(self, case: str) -> float:
        best, scored = numpy_run(self.stream)
        found = self.stream.run()
        if (found.bytes, found.n_scored) != (best, scored):
            raise ValueError(f"{case}: numpy finds {best}, {scored}; the stream {found}")
        return cpu_s(lambda: numpy_run(self.stream)) / cpu_s(self.stream.run)


def main() -> None:
    print(
        f"{'case':34} {'choices':>12} {'scored':>11} {'seconds':>8} {'scored/s':>10} {'numpy':>7}"
    )
    for name, (problem, capacity) in CASES.items():
        stream = Stream(problem, capacity)
        found, seconds = stream.run(), cpu_s(stream.run)
        ratio = ""
        if name in SMALL:
            ratio = f"{RatioSuite.track_ratio_to_numpy(_suite(stream), name):.0f} x"
        print(
            f"{name:34} {stream.n_choices:12,} {found.n_scored:11,} {seconds:8.3f} "
            f"{found.n_scored / seconds / 1e6:8.1f} M {ratio:>7}"
        )


def _suite(stream: Stream) -> RatioSuite:
    suite = RatioSuite()
    suite.stream = stream
    return suite


if __name__ == "__main__":
    main()
