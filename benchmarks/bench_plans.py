"""What the model's first choice of a plan costs against the best of many, measured on this CPU.

Run ``python benchmarks/bench_plans.py [--out FILE] [--only TEXT] [--plans N]``, on one thread of
a quiet machine: `loopsched.codegen.measure.measure_plans` times N plans of each problem, half of
them the model's best and half drawn; the first, and what ``--measure 8`` keeps, are held against
the best.  What is in FILE is not measured again; ``--show`` only prints it, and ``--compile``
only compiles (some 500 kernels are kept).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean

import loopsched
from loopsched import Problem, conv2d, gemm, load_arch, search
from loopsched.base.rows import Row
from loopsched.base.statistics import rank_correlation
from loopsched.codegen.choose import on_cores
from loopsched.codegen.measure import MEASURED, chosen_plans, compiled_plan, measure_plans

BUDGET_S = 15.0
"""For each of three times that plans of a problem are timed."""


def problems() -> Iterator[Problem]:
    """List twelve products and eight convolutions."""
    for m, n, k in (
        (256, 256, 256),
        (512, 512, 512),
        (1024, 1024, 1024),
        (1000, 777, 1300),
        (1111, 999, 517),
        (1760, 64, 1760),
        (64, 4096, 1024),
        (128, 1024, 4096),
        (35, 8457, 1280),
        (3072, 128, 1024),
    ):
        yield gemm(m=m, n=n, k=k, name=f"gemm {m}x{n}x{k}")
    yield gemm(m=384, n=640, k=768, transpose_a=True, name="gemm 384x640x768, A turned")
    yield gemm(m=512, n=400, k=1024, transpose_b=True, name="gemm 512x400x1024, B turned")
    for c, k, size, r, stride in (
        (64, 64, 56, 3, 1),
        (128, 128, 28, 3, 1),
        (256, 256, 14, 3, 1),
        (512, 512, 7, 3, 1),
        (256, 64, 56, 1, 1),
        (256, 512, 56, 1, 2),
        (3, 64, 224, 7, 2),
        (96, 24, 56, 1, 1),
    ):
        name = f"conv {c}->{k} {size}x{size} {r}x{r}" + (f" stride {stride}" if stride > 1 else "")
        pad = r // 2
        yield conv2d(n=1, c=c, k=k, h=size, w=size, r=r, s=r, stride=stride, padding=pad, name=name)


def measured(problem: Problem, n: int) -> Row:
    """Time plans of a problem."""
    kernel = loopsched.compile(problem, "host", threads=1)
    timed = measure_plans(kernel, n, budget_s=BUDGET_S)
    (kept,) = loopsched.compile(
        problem, "host", threads=1, measure=min(MEASURED, -(-n // 2))
    ).schedules
    machine = on_cores(load_arch("host"), 1)
    return {
        "problem": problem.name,
        "flops": problem.flops,
        "kept": kept.text(),
        "bound_s": search(problem, machine).evaluation.problem_bound_s,
        "plans": [one._asdict() for one in timed],
    }


def show(rows: Sequence[Row]) -> None:
    """Print a line for each problem, and the means."""
    head = ("problem", "GFLOP/s", "first", "of 8", "error", "errors", "rank", "below")
    print("{:36}{:>8}{:>8}{:>8}{:>8}{:>8}{:>7}{:>7}  best".format(*head))
    firsts, kept, errors, all_errors, n_below = [], [], [], [], 0
    for row in rows:
        plans = row["plans"]
        best = min(plans, key=lambda one: one["measured_s"])
        by_plan = {one["plan"]: one["measured_s"] for one in plans}
        firsts.append(plans[0]["measured_s"] / best["measured_s"])
        kept.append(by_plan[row["kept"]] / best["measured_s"])
        own = [abs(one["estimate_s"] / one["measured_s"] - 1) for one in plans]
        all_errors.append(fmean(own))
        errors.append(fmean(e for e, one in zip(own, plans, strict=True) if one["rank"]))
        pairs = [[one[key] for one in plans] for key in ("estimate_s", "measured_s")]
        below = sum(one["measured_s"] < row["bound_s"] for one in plans)
        n_below += below
        print(
            f"{row['problem']:36}{row['flops'] / best['measured_s'] / 1e9:8.1f}"
            f"{firsts[-1]:8.3f}{kept[-1]:8.3f}{errors[-1]:8.1%}{all_errors[-1]:8.1%}"
            f"{rank_correlation(*pairs) or 0.0:7.2f}{below:7}  {best['plan']}"
        )
    for name, found in (("first", firsts), ("of 8", kept)):
        print(f"{name}: {geometric_mean(found):.3f}, worst {max(found):.3f}")
    print(f"MAPE {fmean(all_errors):.1%}, of the model's best {fmean(errors):.1%}; {n_below} below")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plans.jsonl"))
    parser.add_argument("--only", default="", help="problems whose names have this in them")
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.out.open()] if given.out.exists() else []
    for problem in () if given.show else problems():
        if given.only not in problem.name or any(row["problem"] == problem.name for row in rows):
            continue
        if given.compile:
            kernel = loopsched.compile(problem, "host", threads=1)
            for _, plans in chosen_plans(kernel, given.plans):
                for one in plans:
                    compiled_plan(kernel, *one)
            continue
        rows.append(measured(problem, given.plans))
        with given.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
    if rows and not given.compile:
        show(rows)


if __name__ == "__main__":
    main()
