"""Kernels on this CPU against libraries, problem by problem: oneDNN (by way of PyTorch) and BLAS.

Run ``python benchmarks/bench_cpu.py PROBLEMS [--batch N] [--threads N] [--rounds N]
[--part FIRST:LAST]`` with PROBLEMS one of ``resnet50``, ``vgg16``, ``mobilenet`` (the
depthwise layers of MobileNet-v2), ``deepbench`` (every tenth problem of its file, as
it is) and ``gemm``, twelve products against what NumPy multiplies matrices with.  Each
side has a process of its own, with as many CPUs as threads, and they take turns; times
are medians.  Everything a call does counts, on both sides: for oneDNN the better of NCHW
and channels-last, weights given as they are stored.  The columns with packed weights take
them as `CompiledKernel.pack` and Inductor (``_reorder_convolution_weight``) prepare
them.  Without PyTorch only the kernels are timed.  Memory of outputs is kept: on both
sides it was written before.  All arrays begin at a multiple of 64 bytes, as PyTorch's do.
"""

from __future__ import annotations

import argparse
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
}
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
    (7680, 48, 2560),
    (1000, 777, 1300),
    (1111, 999, 517),
)
"""Rows, columns and terms: squares, some of DeepBench's, odd sizes."""
SLICE_S = 0.06
"""What a measurement takes in each round, about."""

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


def own_calls(one: Layer, threads: int) -> dict[str, Callable[[], Any]]:
    """Prepare calls of kernels that the model chose."""
    import numpy as np

    from loopsched import compile, conv2d, gemm  # noqa: A004

    problem = gemm(**one) if "m" in one else conv2d(**one)
    kernel = compile(problem, "host", threads=threads, data_type="fp32")
    draw, given = np.random.default_rng(1), [kernel.empty(name) for name in kernel.names]
    for one in given:
        one[...] = draw.random(one.shape, dtype=np.float32)
    if "m" in one:
        return {"plain": lambda: kernel(*given)}
    packed = [given[0], kernel.pack(given[1]), given[2]]
    return {"plain": lambda: kernel(*given), "packed": lambda: kernel(*packed)}


def other_calls(one: Layer, threads: int) -> dict[str, Callable[[], Any]]:
    """Prepare a library's."""
    if "m" in one:
        import numpy as np

        from loopsched.codegen.memory import aligned

        draw = np.random.default_rng(1)
        a, b, out = (aligned((one[p], one[q]), np.float32) for p, q in ("mk", "kn", "mn"))
        for array in (a, b, out):
            array[...] = draw.random(array.shape, dtype=np.float32)
        return {"numpy": lambda: np.dot(a, b, out=out)}
    import torch
    from torch.nn.functional import conv2d

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    last = torch.channels_last
    image = torch.rand(one["n"], one["c"], one["h"], one["w"])
    weight = torch.rand(one["k"], one["c"] // one["groups"], one["r"], one["s"])
    lined = image.to(memory_format=last)
    how = {key: one[key] for key in ("stride", "padding", "groups")}
    stride, padding, groups = [one["stride"]] * 2, [one["padding"]] * 2, one["groups"]
    packs = torch.ops.mkldnn._reorder_convolution_weight
    runs = torch.ops.mkldnn._convolution_pointwise
    shape = list(image.shape)
    packed = packs(weight, padding, stride, [1, 1], groups, shape)
    rest = (packed, None, padding, stride, [1, 1], groups, "none", [], "")
    return {
        "nchw": lambda: conv2d(image, weight, **how),
        "last": lambda: conv2d(lined, weight.to(memory_format=last), **how),
        "packed nchw": lambda: runs(image, *rest),
        "packed last": lambda: runs(lined, *rest),
    }


def serve(side: str, threads: int) -> None:
    """Time the calls of layers that are asked for, a line of JSON each."""
    prepares = own_calls if side == "own" else other_calls
    last, calls = None, {}
    for line in sys.stdin:
        one = json.loads(line)
        if one != last:
            calls.clear()
            calls, last = prepares(one, threads), one
        taken: dict[str, list[float]] = {}
        for name, call in calls.items():
            call()
            times: list[float] = []
            while len(times) < 3 or sum(times) < SLICE_S:
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
            taken[name] = times
        print(json.dumps(taken), flush=True)


class Side:
    """A process that times one side."""

    def __init__(self, side: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, f"--serve={side}", f"--threads={threads}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **KEPT},
            text=True,
        )

    def times(self, one: Layer) -> dict[str, list[float]]:
        """Time a layer's calls."""
        asks, answers = self.process.stdin, self.process.stdout
        if asks is None or answers is None:
            raise RuntimeError("the process has no pipes")
        asks.write(json.dumps(one) + "\n")
        asks.flush()
        found: dict[str, list[float]] = json.loads(answers.readline())
        return found


def measured(one: Layer, sides: list[Side], rounds: int) -> dict[str, float]:
    """Give the median seconds of each kind of call."""
    taken: dict[str, list[float]] = {}
    for _ in range(rounds):
        for side in sides:
            time.sleep(0.05)  # until the other's threads rest
            for name, times in side.times(one).items():
                taken.setdefault(name, []).extend(times)
    return {name: statistics.median(times) for name, times in taken.items()}


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
    names = ("plain", "nchw", "last", "packed", "packed nchw", "packed last")
    cells = [f"{rate[name]:8.1f}" if name in rate else f"{'-':>8}" for name in names]
    ratios: tuple[float, ...] = ()
    if "nchw" in rate:
        best = max(rate["packed nchw"], rate["packed last"])
        ratios = rate["plain"] / max(rate["nchw"], rate["last"]), rate["packed"] / best
    shown = [f"{one:6.2f}" for one in ratios] or [f"{'-':>6}"] * 2
    print(f"{text:28}", *cells[:3], shown[0], " ", *cells[3:], shown[1], flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = ("resnet50", "vgg16", "mobilenet", "deepbench", "gemm")
    parser.add_argument("problems", choices=names, nargs="?", default=names[0])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", default=":")
    parser.add_argument("--serve", choices=("own", "other"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve, asked.threads)
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
    sides = [Side(side, asked.threads) for side in ("own", "other")[: 1 + has_other]]
    if is_gemm:
        from loopsched.codegen.reference import blas_on

        with blas_on(asked.threads) as library:
            print(f"NumPy: {library}\n{'GFLOP/s':28}  kernels   NumPy  ratio")
    else:
        print(f"{'GFLOP/s':28}  kernels   NCHW  ch.last  ratio    packed   NCHW  ch.last  ratio")
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
