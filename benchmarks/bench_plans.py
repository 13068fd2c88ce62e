"""What the model's first choice of a plan costs against the best of many, measured on this CPU.

Run ``python benchmarks/bench_plans.py [--out FILE] [--only TEXT] [--plans N]``, on one thread of
a quiet machine.  Of each problem the model's N best plans are measured, and N drawn uniformly
from register tiles that fit the registers and cache tiles whose packed blocks fit the last
cache; the model's first and the one that ``--measure 8`` would keep are held against the best.
Plans are timed in turn; those that come within a quarter of the best are timed again, and
the five best of them, with the two that are judged, once more: only these last medians count,
so that the best of many is no lucky one.  What is in FILE is not measured again.
``--compile`` only compiles (kernels are kept), ``--show`` only prints.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean, median
from time import perf_counter

import numpy as np

from loopsched import Problem, conv2d, gemm, load_arch, search
from loopsched.base.statistics import rank_correlation
from loopsched.codegen.choose import Core, Model, core_of, is_read_in_place, on_cores, ranked
from loopsched.codegen.compiled import Part, build
from loopsched.codegen.contraction import Contraction, contractions, stored_shape
from loopsched.codegen.described import of_plan
from loopsched.codegen.element import FP32
from loopsched.codegen.engine import Engine
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.plan import Plan, Walk, inner_sizes, length, roles

Choice = tuple[float, Contraction, Plan]


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


def drawn(task: Contraction, core: Core, draw: random.Random, most_bytes: int) -> Choice | None:
    """Draw a plan; None if it does not fit."""
    one = draw.choice((task, task.swapped()))
    kinds = roles(one)

    def walk(kind: str, operand: str) -> Walk:
        steps = getattr(one, operand)
        dims = tuple(sorted(kinds[kind], key=lambda dim: -abs(steps.step(dim))))
        cut = draw.randrange(len(dims))
        return Walk(dims, cut, draw.randint(1, one.size(dims[cut])))

    rows, n = draw.randint(1, core.registers), draw.randint(1, 6)
    walks = walk("rows", "out"), walk("cols", "out"), walk("sums", "left")
    packs = draw.random() < 0.5, draw.random() < 0.5
    plan = Plan(tuple(kinds["batch"]), *walks, rows, n * core.lanes, 1, *packs)
    tall, wide = (length(inner_sizes(one, each, each.block)) for each in walks[:2])
    is_tile = rows * n + n + 1 <= core.registers and rows <= tall and (n - 1) * core.lanes < wide
    in_place = [
        side
        for side, is_packed in zip(("left", "right"), packs, strict=True)
        if not is_packed and not is_read_in_place(one, plan, side)
    ]
    if not is_tile or in_place:
        return None
    room = Engine(LlvmText(FP32, core.lanes), one, plan, "room").work_room * 4
    return None if room > most_bytes else (Model(one, core).cycles(plan), one, plan)


def choices(problem: Problem, core: Core, n: int, most_bytes: int) -> list[Choice]:
    """List the model's best plans, then as many that are drawn."""
    (task,) = contractions(problem)
    found = [one for one in ranked(task, core) if not one[2].slides][:n]
    draw, known = random.Random(problem.name), {(str(one), plan) for _, one, plan in found}
    while len(known) < 2 * n:
        made = drawn(task, core, draw, most_bytes)
        if made and (str(made[1]), made[2]) not in known:
            known.add((str(made[1]), made[2]))
            found.append(made)
    return found


def timed(parts: Sequence[Part], places: dict[str, int], rounds: int, limit_s: float) -> list:
    """Run parts in turn, each for at least a millisecond; list the seconds of each."""
    found: list[list[float]] = [[] for _ in parts]
    start = perf_counter()
    for _ in range(rounds):
        for part, taken in zip(parts, found, strict=True):
            given = [places[name] for name in part.tensors]
            n = max(1, int(0.001 / min(taken))) if taken else 1
            begin = perf_counter()
            for _ in range(n):
                part.run(*given, places[""], 0, part.n_jobs)
            taken.append((perf_counter() - begin) / n)
        if perf_counter() - start > limit_s and min(map(len, found)) >= 3:
            break
    return found


def measured(problem: Problem, given: list[Choice], core: Core) -> dict:
    """Measure plans of a problem."""
    parts = [build(one, plan, c / core.hertz, (FP32, core.lanes)) for c, one, plan in given]
    random_ = np.random.default_rng(0)
    arrays = {t.name: random_.random(stored_shape(problem, t), "f4") for t in problem.tensors}
    arrays[""] = np.empty(max(part.room for part in parts) + 4096, np.uint8)
    places = {name: one.ctypes.data for name, one in arrays.items()}
    places[""] += -places[""] % 4096
    seconds = [median(one[1:]) for one in timed(parts, places, 3, 20)]
    near = [at for at, s in enumerate(seconds) if s < 1.25 * min(seconds)]
    for at, taken in zip(near, timed([parts[i] for i in near], places, 9, 10), strict=True):
        seconds[at] = median(taken)
    eight = [min(taken) for taken in timed(parts[:8], places, 5, 10)]  # as `compile` does
    kept = eight.index(min(eight))
    order = sorted(range(len(parts)), key=seconds.__getitem__)
    last = list(dict.fromkeys([*order[:5], 0, kept]))
    final = {
        at: median(taken)
        for at, taken in zip(last, timed([parts[i] for i in last], places, 41, 6), strict=True)
    }
    best = min(final, key=final.__getitem__)
    machine = on_cores(load_arch("host"), 1)
    return {
        "problem": problem.name,
        "flops": problem.flops,
        "first_s": final[0],
        "kept_s": final[kept],
        "best_s": final[best],
        "best": of_plan(*given[best][1:], (FP32, core.lanes), 1, 0.0).text(),
        "bound_s": search(problem, machine).evaluation.problem_bound_s,
        "plans": [
            {"plan": repr(plan), "left": one.left.name, "estimate_s": c / core.hertz, "s": s}
            for (c, one, plan), s in zip(given, seconds, strict=True)
        ],
    }


def show(rows: Sequence[dict]) -> None:
    """Print a line for each problem, and the means."""
    head = ("problem", "GFLOP/s", "first", "of 8", "error", "errors", "rank", "below")
    print("{:36}{:>8}{:>8}{:>8}{:>8}{:>8}{:>7}{:>7}  best".format(*head))
    for row in rows:
        plans, half = row["plans"], len(row["plans"]) // 2
        errors = [abs(one["estimate_s"] / one["s"] - 1) for one in plans]
        row["error"] = fmean(errors[:half])
        row["errors"] = fmean(errors)
        pairs = [[one[key] for one in plans] for key in ("estimate_s", "s")]
        row["below"] = sum(one["s"] < row["bound_s"] for one in plans)
        print(
            f"{row['problem']:36}{row['flops'] / row['best_s'] / 1e9:8.1f}"
            f"{row['first_s'] / row['best_s']:8.3f}{row['kept_s'] / row['best_s']:8.3f}"
            f"{row['error']:8.1%}{row['errors']:8.1%}{rank_correlation(*pairs) or 0.0:7.2f}"
            f"{row['below']:7}  {row['best']}"
        )
    first, kept = ([row[key] / row["best_s"] for row in rows] for key in ("first_s", "kept_s"))
    for name, found in (("first", first), ("of 8", kept)):
        print(f"{name}: {geometric_mean(found):.3f}, worst {max(found):.3f}")
    print(
        f"MAPE {fmean(row['errors'] for row in rows):.1%}, of the model's best "
        f"{fmean(row['error'] for row in rows):.1%}; {sum(row['below'] for row in rows)} below"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plans.jsonl"))
    parser.add_argument("--only", default="", help="problems whose names have this in them")
    parser.add_argument("--plans", type=int, default=100, help="of the model, and drawn")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.out.open()] if given.out.exists() else []
    machine = load_arch("host")
    core, _ = core_of(machine, 4)
    last = next(one.capacity_bytes for one in machine.caches if one.kind == "cache")
    for problem in () if given.show else problems():
        if given.only not in problem.name or any(row["problem"] == problem.name for row in rows):
            continue
        found = choices(problem, core, given.plans, last or 1 << 25)
        if given.compile:
            for cycles, one, plan in found:
                build(one, plan, cycles, (FP32, core.lanes))
            continue
        rows.append(measured(problem, found, core))
        with given.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
    if rows and not given.compile:
        show(rows)


if __name__ == "__main__":
    main()
