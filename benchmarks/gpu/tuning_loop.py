"""What Triton's autotuner takes over 320 configurations, and with the first five of ``pick``.

Run ``python tuning_loop.py OUT.json [SHAPE ...]`` on a machine with torch, Triton and loopsched; 16
cores help.  A shape is ``MxNxK``; without any, those below.
Each side starts with an empty compile cache in a process of its own, whose start is not counted.

The full side is measured in parts, since it takes minutes a shape: all configurations are compiled
in several processes at once, the time of each is taken by itself and all are added up; then the
autotuner runs over all of them with what is compiled, and its time is added.  The other side is one
run of the autotuner with ``prune_configs_by``.  The kernels that both have chosen are then timed in
turn, 60 times each, with a cold L2.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import triton
from triton_spaces import Gemm, gemm_kernel

SHAPES = ("512x6144x4096", "4096x4096x4096", "64x4096x11008", "8192x1280x8192")
NAMES = ("BM", "BN", "BK", "num_stages", "num_warps", "GROUP")


def tried(one: Gemm) -> list[tuple[int, ...]]:
    """All configurations of a space with groups of eight rows."""
    return [config for config in one.configs() if config[5] == 8]


def compile_some(work: tuple[str, list[tuple[int, ...]]]) -> float:
    """Compile configurations, and say how long that took in all."""
    problem, configs = work
    one = Gemm(problem, "fp16")
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for config in configs:
        try:
            one.launch(config)
        except Exception:  # the autotuner meets it again
            continue
    return time.perf_counter() - begin


def tune(problem: str, how: str) -> None:
    """Tune once, and print how long it took and what was chosen."""
    one = Gemm(problem, "fp16")
    kernel = gemm_kernel.fn
    configs = [
        triton.Config(
            {"BM": bm, "BN": bn, "BK": bk, "GROUP": group}, num_stages=stages, num_warps=warps
        )
        for bm, bn, bk, stages, warps, group in tried(one)
    ]
    prune = {}
    if how == "pruned":
        from loopsched.integrations.triton import prune_configs_by

        blocks = {"block_m": "BM", "block_n": "BN", "block_k": "BK", "group_m": "GROUP"}
        sizes = {"m": "m", "n": "n", "k": "k"}
        prune = prune_configs_by(sizes=sizes, blocks=blocks)
    tuned = triton.autotune(configs=configs, key=["m", "n", "k"], prune_configs_by=prune or None)(
        triton.jit(do_not_specialize=["m"])(kernel)
    )
    torch.cuda.synchronize()
    begin = time.perf_counter()
    grid = lambda meta: (triton.cdiv(one.m, meta["BM"]) * triton.cdiv(one.n, meta["BN"]),)  # noqa: E731
    tuned[grid](one.a, one.b, one.c, one.m, one.n, one.k, one.n, 1)
    torch.cuda.synchronize()
    spent = time.perf_counter() - begin
    best = tuned.best_config
    chosen = [best.kwargs[name] for name in ("BM", "BN", "BK")]
    chosen += [best.num_stages, best.num_warps, best.kwargs["GROUP"]]
    print(json.dumps({"seconds": spent, "configurations": len(configs), "chosen": chosen}))


def told(problem: str, how: str, cache: str) -> dict:
    """Tune in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--tune", problem, how],
        env=os.environ | {"TRITON_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def compiled(problem: str, cache: str, cores: int) -> float:
    """Compile a space with all cores, and add up what each configuration took."""
    os.environ["TRITON_CACHE_DIR"] = cache
    configs = tried(Gemm(problem, "fp16"))
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        return sum(pool.map(compile_some, [(problem, configs[at::cores]) for at in range(cores)]))


def compared(problem: str, chosen: list[list[int]]) -> list[float]:
    """Time kernels in turn: medians in microseconds."""
    one = Gemm(problem, "fp16")
    scratch = torch.empty(256_000_000, dtype=torch.int8, device="cuda")
    times: list[list[float]] = [[] for _ in chosen]
    for round_ in range(63):
        for at, config in enumerate(chosen):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            scratch.zero_()
            begin.record()
            one.launch(tuple(config))
            end.record()
            torch.cuda.synchronize()
            if round_ >= 3:
                times[at].append(1e3 * begin.elapsed_time(end))
    return [statistics.median(each) for each in times]


def main() -> None:
    """Measure all shapes."""
    if sys.argv[1] == "--tune":
        tune(*sys.argv[2:])
        return
    cores = min(12, os.cpu_count() or 1)
    rows = []
    for problem in sys.argv[2:] or SHAPES:
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            compile_s = compiled(problem, first, cores)
            full = told(problem, "full", first)
            pruned = told(problem, "pruned", second)
            full_us, pruned_us = compared(problem, [full["chosen"], pruned["chosen"]])
        row = {
            "gpu": torch.cuda.get_device_name(),
            "problem": problem,
            "configurations": full["configurations"],
            "compile_s": compile_s,
            "tune_s": full["seconds"],
            "pruned_s": pruned["seconds"],
            "times_less": (compile_s + full["seconds"]) / pruned["seconds"],
            "full_us": full_us,
            "pruned_us": pruned_us,
            "ratio": pruned_us / full_us,
            "full": full["chosen"],
            "pruned": pruned["chosen"],
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
