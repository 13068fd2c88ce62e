"""How long it takes to say what a GPU kernel does.

Run ``python benchmarks/bench_kernels.py`` for a table, or the classes with asv.  Times
are the median of 15 runs, compilation not included.  Baseline, in the same run: the
literal walk of ``tests/gpu_oracle.py`` over every block, warp, lane and iteration of a
small kernel, by its requests a second.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from loopsched import conv2d, conv_estimate, gemm, gemm_estimate, load_arch, tiled_gemm
from loopsched.gpu.counting import profile
from loopsched.gpu.estimate import estimate_kernel
from loopsched.published.presets import filter_colmap, preset, presets

TITAN_V, V100, H200 = (load_arch(name) for name in ("titan_v", "v100", "h200"))
PRODUCT = gemm(m=5124, n=9124, k=2560)
LAYER = conv2d(n=16, c=64, k=64, h=224, w=224, r=3, s=3, padding=1)
LIBRARY: dict[str, Callable[[], object]] = {
    "gemm_estimate": lambda: gemm_estimate(PRODUCT, V100),
    "conv_estimate": lambda: conv_estimate(LAYER, V100),
    "tiled_gemm": lambda: tiled_gemm(PRODUCT, H200, tile=(128, 128, 32), data_type="tf32"),
}


def median_s(work: Callable[[], object], runs: int = 15) -> float:
    """Wall time of one run, the median of several."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def walked_requests_per_s() -> float:
    """Requests a second of the literal walk."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from gpu_oracle import Walk

    kernel = filter_colmap(images=1, size=64, radius=1)
    start = time.perf_counter()
    walk = Walk(kernel)
    seconds = time.perf_counter() - start
    return sum(count["requests"] for count in walk.counts.values()) / seconds


class Kernels:
    """Timed by asv: the kernels of the reports, at the sizes of their presets."""

    params = ([one.name for one in presets()],)

    def time_estimate(self, name: str) -> None:
        """Count and estimate every kernel of a preset."""
        for kernel, _ in preset(name):
            estimate_kernel(kernel, TITAN_V)


class Library:
    """Timed by asv: one estimate of a library's kernel."""

    params = (list(LIBRARY),)

    def time_estimate(self, name: str) -> None:
        """Estimate it."""
        LIBRARY[name]()


def main() -> None:
    baseline = walked_requests_per_s()
    print(f"literal walk: {baseline:,.0f} requests/s")
    print(f"{'kernel':32}{'requests':>14}{'counted':>10}{'with time':>11}{'over walk':>12}")
    for one in presets():
        for kernel, _ in preset(one.name):
            counted = median_s(lambda kernel=kernel: profile(kernel, TITAN_V))
            timed = median_s(lambda kernel=kernel: estimate_kernel(kernel, TITAN_V))
            requests = sum(access.requests for access in profile(kernel, TITAN_V).accesses)
            ratio = requests / counted / baseline
            name = f"{one.name} {kernel.name}"
            print(
                f"{name[:31]:32}{requests:14,}{1e3 * counted:7.2f} ms{1e3 * timed:8.2f} ms"
                f"{ratio:12,.0f}"
            )
    for name, work in LIBRARY.items():
        print(f"{name:32}{1e3 * median_s(work):35.2f} ms")


if __name__ == "__main__":
    main()
