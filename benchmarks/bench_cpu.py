"""Kernels on this CPU against libraries, problem by problem: oneDNN (by way of PyTorch) and BLAS.

Run ``python benchmarks/bench_cpu.py PROBLEMS [--batch N] [--threads N] [--rounds N]
[--part FIRST:LAST]`` with PROBLEMS one of ``resnet50``, ``vgg16``, ``mobilenet`` (the
depthwise layers of MobileNet-v2), ``deepbench`` (every tenth problem of its file, as
it is) and ``gemm``, twelve products against what NumPy multiplies matrices with.  Each
side has a process of its own, with as many CPUs as threads, and they take turns, each first in
every other round; times are medians of the rounds' medians.  Everything a call does counts, on
both sides: for oneDNN the best of PyTorch's ``conv2d`` and ``mkldnn_convolution`` (on one thread
``conv2d`` computes many 1x1 filters without oneDNN), each in NCHW and in channels-last, weights
given as they are stored.  Which of these is best half of the rounds say, and the other half how
long it takes (and the other way round): the least of several medians is less than any of them
is on average.  The columns with packed weights take them as `CompiledKernel.pack` and
Inductor (``_reorder_convolution_weight``) prepare them; there oneDNN reads and writes
channels-last.  Without PyTorch only the kernels are timed.  Memory of outputs is kept: on both
sides it was written before.  All arrays begin at a multiple of 64 bytes, as PyTorch's do, and
have huge pages, as NumPy's do.  Both sides compute with the same numbers, and their sums are
compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEPT = {  # malloc: what was freed stays
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TRIM_THRESHOLD_": "10000000000",
    "MALLOC_TOP_PAD_": "100000000",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # PyTorch has huge pages, as NumPy does
}
SETTINGS = "OPENBLAS_", "OMP_", "GOMP_", "MKL_", "ONEDNN_", "DNNL_", "NUMPY_"
"""Variables that begin so change a library; neither side has them."""
SPIN_S = 0.2
"""OpenBLAS's threads spin for about half of that after a call; OpenMP's for less."""
FIELDS = ("n", "c", "k", "h", "w", "r", "s", "stride", "padding", "groups")
DEFAULTS = {"n": 1, "stride": 1, "padding": 0, "groups": 1}
DEPTHWISE = (
    (32, 112, 1),
    (96, 112, 2),
    (144, 56, 1),
    (144, 56, 2),
    (192, 28, 1),
    (192, 28, 2),
    (384, 14, 1),
    (576, 14, 1),
    (576, 14, 2),
    (960, 7, 1),
)
"""Channels, size and stride of the 3x3 layers of MobileNet-v2."""
PRODUCTS = (
    *((n, n, n) for n in (256, 512, 1024, 2048, 4096)),
    (1760, 16, 1760),
    (1760, 128, 1760),
    (2560, 64, 2560),
    (35, 8457, 2560),
    (7680, 64, 2560),
    (1000, 777, 1300),
    (1111, 999, 517),
)
"""Rows, columns and terms: squares, sizes of DeepBench's, odd ones."""
SLICE_S = 0.06
"""What a measurement takes in each round, about."""

PLAIN = "nchw", "last", "direct nchw", "direct last"
"""A library's calls with weights as they are stored: `conv2d`, then oneDNN."""

Layer = dict[str, int]


def layers(name: str, batch: int) -> list[Layer]:
    """List the distinct convolutions of a network, or products."""
    if name == "gemm":
        return [dict(zip("mnk", one, strict=True)) for one in PRODUCTS]
    if name == "mobilenet":
        return [
            {"n": batch, "c": c, "k": c, "h": h, "w": h, "r": 3, "s": 3, "stride": stride}
            | {"padding": 1, "groups": c}
            for c, h, stride in DEPTHWISE
        ]
    file = {"deepbench": "deepbench_conv"}.get(name, name)
    path = Path(__file__).parent.parent / "workloads" / f"{file}.json"
    read = [one for one in json.loads(path.read_text())["layers"] if one["op"] == "conv2d"]
    found = [{key: ({**DEFAULTS, **one})[key] for key in FIELDS} for one in read]
    if name == "deepbench":
        return found[::10]
    for one in found:
        one["n"] = batch
    return [one for at, one in enumerate(found) if one not in found[:at]]


def macs(one: Layer) -> int:
    """Multiply-adds by name, those with padding included."""
    if "m" in one:
        return one["m"] * one["n"] * one["k"]
    p, q = (
        (one[size] + 2 * one["padding"] - one[window]) // one["stride"] + 1
        for size, window in (("h", "r"), ("w", "s"))
    )
    return one["n"] * one["k"] * one["c"] // one["groups"] * one["r"] * one["s"] * p * q


Calls = dict[str, Callable[[], Any]]


def numbers(one: Layer) -> tuple[Any, Any]:
    """Draw a problem's two operands; both sides the same."""
    import numpy as np

    draw = np.random.default_rng(1)
    if "m" in one:
        shapes = (one["m"], one["k"]), (one["k"], one["n"])
    else:
        shapes = (
            (one["n"], one["c"], one["h"], one["w"]),
            (one["k"], one["c"] // one["groups"], one["r"], one["s"]),
        )
    first, second = (draw.random(shape, dtype=np.float32) for shape in shapes)
    return first, second


def own_calls(one: Layer, threads: int) -> Calls:
    """Prepare calls of kernels that the model chose."""
    from loopsched import compile, conv2d, gemm  # noqa: A004

    problem = gemm(**one) if "m" in one else conv2d(**one)
    kernel = compile(problem, "host", threads=threads, data_type="fp32")
    *given, out = (kernel.empty(name) for name in kernel.names)
    for array, drawn in zip(given, numbers(one), strict=True):
        array[...] = drawn.reshape(array.shape)
    if "m" in one:
        return {"plain": lambda: kernel(*given, out=out)}
    packed = [given[0], kernel.pack(given[1])]
    return {
        "plain": lambda: kernel(*given, out=out),
        "packed": lambda: kernel(*packed, out=out),
    }


def product_calls(one: Layer) -> Calls:
    """Prepare NumPy's product."""
    import numpy as np

    from loopsched.codegen.memory import aligned

    a, b, out = (aligned((one[p], one[q]), np.float32) for p, q in ("mk", "kn", "mn"))
    a[...], b[...] = numbers(one)
    return {"numpy": lambda: np.dot(a, b, out=out)}


def other_calls(one: Layer, threads: int) -> Calls:
    """Prepare a library's."""
    if "m" in one:
        return product_calls(one)
    import torch
    from torch.nn.functional import conv2d

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    image, weight = (torch.empty(a.shape).copy_(torch.from_numpy(a)) for a in numbers(one))
    lined = image.to(memory_format=torch.channels_last)
    stride, padding, groups = [one["stride"]] * 2, [one["padding"]] * 2, one["groups"]
    how = {"stride": stride, "padding": padding, "groups": groups}
    direct = torch.ops.aten.mkldnn_convolution.default
    packs = torch.ops.mkldnn._reorder_convolution_weight.default
    runs = torch.ops.mkldnn._convolution_pointwise.default
    packed = packs(weight, padding, stride, [1, 1], groups, list(image.shape))
    rest = (packed, None, padding, stride, [1, 1], groups, "none", [], "")
    return {
        "nchw": lambda: conv2d(image, weight, **how),
        "last": lambda: conv2d(lined, weight, **how),
        "direct nchw": lambda: direct(image, weight, None, padding, stride, [1, 1], groups),
        "direct last": lambda: direct(lined, weight, None, padding, stride, [1, 1], groups),
        "packed last": lambda: runs(lined, *rest),
    }


def serve(side: str, threads: int, is_gemm: bool) -> None:
    """Time the calls of layers that are asked for, a line of JSON each; first the library."""
    prepares = own_calls if side == "own" else other_calls
    last, calls = None, dict[str, Callable[[], Any]]()
    with contextlib.ExitStack() as stack:
        library = ""
        if is_gemm and side == "other":
            from loopsched.codegen.reference import blas_on

            library = str(stack.enter_context(blas_on(threads)))
        print(json.dumps(library), flush=True)
        for line in sys.stdin:
            one = json.loads(line)
            if one != last:
                calls.clear()
                calls, last = prepares(one, threads), one
            found = {name: timed(call) for name, call in calls.items()}
            print(json.dumps(found), flush=True)


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Give the median seconds of a call, and what its results are on average."""
    mean = float(call().mean())
    times: list[float] = []
    while len(times) < 3 or sum(times) < SLICE_S:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), mean


class Side:
    """A process that times one side."""

    def __init__(self, side: str, problems: str, threads: int) -> None:
        kept = {name: one for name, one in os.environ.items() if not name.startswith(SETTINGS)}
        self.process = subprocess.Popen(
            [sys.executable, __file__, problems, f"--serve={side}", f"--threads={threads}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**kept, **KEPT},
            text=True,
        )
        self.library: str = json.loads(self._answer())

    def _answer(self) -> str:
        if self.process.stdout is None:
            raise RuntimeError("the process has no pipes")
        return self.process.stdout.readline()

    def times(self, one: Layer) -> dict[str, tuple[float, float]]:
        """Time a layer's calls."""
        if self.process.stdin is None:
            raise RuntimeError("the process has no pipes")
        self.process.stdin.write(json.dumps(one) + "\n")
        self.process.stdin.flush()
        found: dict[str, tuple[float, float]] = json.loads(self._answer())
        return found


def measured(one: Layer, sides: list[Side], rounds: int) -> dict[str, float]:
    """Give the median seconds of each kind of call."""
    taken: dict[str, list[float]] = {}
    means: list[float] = []
    for number in range(rounds):
        for side in sides[:: 1 - 2 * (number % 2)]:
            time.sleep(SPIN_S)  # until the other's threads rest
            for name, (seconds, mean) in side.times(one).items():
                taken.setdefault(name, []).append(seconds)
                means.append(mean)
    if max(means) - min(means) > 1e-4 * max(means):
        raise RuntimeError(f"{one}: results differ: {min(means)} to {max(means)} on average")
    found = {name: statistics.median(times) for name, times in taken.items()}
    if PLAIN[0] in taken:
        found["best"] = best(taken)
    return found


def best(taken: dict[str, list[float]]) -> float:
    """Give the seconds of the best of a library's calls, chosen by rounds that are not timed."""
    halves = [{name: statistics.median(taken[name][at::2]) for name in PLAIN} for at in (0, 1)]
    chosen = [min(one, key=one.__getitem__) for one in halves]
    return statistics.geometric_mean([halves[0][chosen[1]], halves[1][chosen[0]]])


def show(one: Layer, found: dict[str, float]) -> tuple[float, ...]:
    """Print the rates of a problem; return what it is of a library's, plain and packed."""
    rate = {name: 2e-9 * macs(one) / s for name, s in found.items()}
    if "m" in one:
        ratio = rate["plain"] / rate["numpy"]
        name = f"{one['m']}x{one['n']}x{one['k']}"
        print(f"{name:28}{rate['plain']:9.1f}{rate['numpy']:8.1f}{ratio:7.2f}", flush=True)
        return (ratio,)
    kind = f"/{one['groups']}" if one["groups"] > 1 else ""
    text = (
        f"{one['n']}x{one['c']}x{one['h']}x{one['w']} {one['k']}{kind} {one['r']}x{one['s']}"
        f" s{one['stride']}"
    )
    names = ("plain", *PLAIN, "packed", "packed last")
    cells = [f"{rate[name]:8.1f}" if name in rate else f"{'-':>8}" for name in names]
    ratios: tuple[float, ...] = ()
    if "nchw" in rate:
        ratios = rate["plain"] / rate["best"], rate["packed"] / rate["packed last"]
    shown = [f"{one:6.2f}" for one in ratios] or [f"{'-':>6}"] * 2
    print(f"{text:28}", *cells[:5], shown[0], " ", *cells[5:], shown[1], flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = ("resnet50", "vgg16", "mobilenet", "deepbench", "gemm")
    parser.add_argument("problems", choices=names, nargs="?", default=names[0])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--part", default=":")
    parser.add_argument("--serve", choices=("own", "other"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rounds < 2:
        parser.error("at least two rounds are needed")
    if asked.serve:
        serve(asked.serve, asked.threads, asked.problems == "gemm")
        return
    if hasattr(os, "sched_setaffinity"):  # of the sides, too
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-asked.threads :])
    is_gemm = asked.problems == "gemm"
    has_other = (
        is_gemm
        or not subprocess.run(
            [sys.executable, "-c", "import torch"], capture_output=True, check=False
        ).returncode
    )
    sides = [
        Side(side, asked.problems, asked.threads) for side in ("own", "other")[: 1 + has_other]
    ]
    if is_gemm:
        print(f"NumPy: {sides[1].library}\n{'GFLOP/s':28}  kernels   NumPy  ratio")
    else:
        kinds = "kernels    NCHW ch.last  oneDNN: ch.last  ratio    packed  oneDNN  ratio"
        print(f"{'GFLOP/s':28}  {kinds}")
    first, last = (int(one) if one else None for one in asked.part.split(":"))
    ratios = [
        show(one, measured(one, sides, asked.rounds))
        for one in layers(asked.problems, asked.batch)[first:last]
    ]
    for name, each in zip(("plain", "packed"), zip(*ratios, strict=True), strict=False):
        print(f"{name}: geometric mean {statistics.geometric_mean(each):.3f},", end="")
        print(f" least {min(each):.2f}")


if __name__ == "__main__":
    main()
