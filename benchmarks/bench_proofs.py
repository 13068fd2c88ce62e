"""What proofs cost, and how many close: search, write and check whole workloads.

Run ``python benchmarks/bench_proofs.py`` for the workloads of `SETS` on shipped machines, or
``python benchmarks/bench_proofs.py MACHINE WORKLOAD[:BYTES]...`` for others; BYTES is the size of
an element.  One line a problem on stdout that is not proven best, one a set; a file with ``--out``
has a row for every problem.  Times are CPU times, compilation not included.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from loopsched import load_arch, load_workload, search
from loopsched.base.errors import LoopschedError
from loopsched.machines.arch import Arch
from loopsched.problems.problem import Problem
from loopsched.scheduler import warm_up
from loopsched.scheduler.proof import proof_of
from loopsched.verify import verify_proof
from loopsched.verify.value import in_order

MACHINES = ("titan_v", "h200")
SETS = ("deepbench_conv", "deepbench_gemm", "resnet50", "bert_base")


def problems(name: str) -> list[Problem]:
    """The problems of a workload, each with elements of so many bytes if it says so."""
    workload, _, size = name.partition(":")
    found = load_workload(workload).problems
    if not size:
        return list(found)
    return [
        replace(p, tensors=tuple(replace(t, element_bytes=int(size)) for t in p.tensors))
        for p in found
    ]


def row_of(problem: Problem, arch: Arch) -> dict[str, object]:
    """Search one problem, write its proof and check it."""
    times = [time.process_time()]
    result = search(problem, arch)
    times.append(time.process_time())
    row: dict[str, object] = {"problem": problem.name, "machine": arch.name}
    row |= {"proven": result.certificate.proven, "search_gap": result.certificate.gap}
    try:
        line = proof_of(result)
        in_order.cache_clear()  # a checker is another process
        times.append(time.process_time())
        verdict = verify_proof(line)
        times.append(time.process_time())
    except LoopschedError as error:
        return row | {"error": str(error)}
    row |= {"gap": float(1 - verdict.bound / verdict.best), "boxes": verdict.boxes}
    row |= {"above": float(verdict.best / Fraction(result.certificate.value) - 1)}
    seconds = [b - a for a, b in pairwise(times)]
    row |= dict(zip(("search_s", "write_s", "check_s"), seconds, strict=True))
    return row | {"bytes": len(line), "log": line}


def main() -> None:
    """Run each set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*")
    parser.add_argument("--out")
    given = parser.parse_args()
    machines, sets = (given.what[:1], given.what[1:]) if given.what else (MACHINES, SETS)
    warm_up()
    with ExitStack() as stack:
        out = stack.enter_context(open(given.out, "w", encoding="utf-8")) if given.out else None
        for machine in machines:
            arch = load_arch(machine)
            for name in sets:
                rows = []
                for problem in problems(name):
                    row = row_of(problem, arch)
                    rows.append(row)
                    if out:
                        out.write(json.dumps(row) + "\n")
                        out.flush()
                    if "error" in row or row["gap"] or not row["proven"]:
                        print(*(f"{key}={row[key]}" for key in row if key != "log"), flush=True)
                print(summary(machine, name, rows), flush=True)


def summary(machine: str, name: str, rows: list[dict]) -> str:
    """Sum a set up."""
    good = [row for row in rows if "error" not in row]
    if not good:
        return f"{machine} {name}: 0 of {len(rows)} accepted"
    total = {key: sum(row[key] for row in good) for key in ("search_s", "write_s", "check_s")}
    most = max(r["write_s"] + r["check_s"] - 10 * r["search_s"] for r in good)
    return (
        f"{machine} {name}: {len(good)} of {len(rows)} accepted, "
        f"{sum(not r['gap'] for r in good)} proven best (search: "
        f"{sum(bool(r['proven']) for r in good)}), worst gap {max(r['gap'] for r in good):.2%}; "
        + ", ".join(f"{key} {value:.1f}" for key, value in total.items())
        + f"; largest {max(r['write_s'] + r['check_s'] for r in good):.1f} s, "
        f"over ten searches at most {most:.1f} s; "
        f"largest log {max(r['bytes'] for r in good) / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main()
    sys.exit(0)
