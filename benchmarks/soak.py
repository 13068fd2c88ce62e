"""Fresh random cases against brute force and simulators: a soak of any length.

Run ``python benchmarks/soak.py --family all --cases 20000 --seed 7 --jobs 2``.
``--cases`` is how many in all, spread evenly over the families.  The table says, of
each family, how many cases ran, how many claims (searches, curves, promises) they
made and how many of these were called proven, and how many of each kind of fault
were found.  Every counterexample is a line of Python on stdout, to be pasted after
``from fuzz_checks import *`` in ``tests``, smallest first.  The exit status is 1 if
there is any.  The same seed draws the same cases for any number of jobs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from fuzz_checks import FAMILIES, Outcome, can_place, draw, run  # noqa: E402

FUSION = HERE / "soak_fusion.py"
KINDS = (
    *("false bound", "false proof", "promise", "bracket", "curve", "value", "log", "refused"),
    "error",
)
Case = tuple[str, int, int]


def work(case: Case) -> tuple[str, Outcome, float]:
    """Draw and run one case."""
    begin = time.process_time()
    line = draw(*case)
    return line, run(line), time.process_time() - begin


def outcomes(family: str, cases: int, seed: int, jobs: int) -> Iterator[tuple[str, Outcome, float]]:
    """Run the cases of one family, in order."""
    listed = [(family, seed, number) for number in range(cases)]
    if jobs == 1:
        yield from map(work, listed)
        return
    with Pool(jobs) as pool:
        yield from pool.imap(work, listed, chunksize=4)


def soak(family: str, cases: int, seed: int, jobs: int, most_shown: int) -> int:
    """Run one family and print what was found; returns the number of faults."""
    kinds: Counter[str] = Counter()
    claims = proven = n_inside = 0
    faulty = []
    spent = 0.0
    for number, (line, outcome, seconds) in enumerate(outcomes(family, cases, seed, jobs)):
        claims, proven, spent = claims + outcome.claims, proven + outcome.proven, spent + seconds
        for fault in outcome.faults:
            kinds[fault.kind] += 1
            n_inside += fault.is_inside
            faulty.append((len(line), line, number, fault))
    total = sum(kinds.values())
    found = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind]) or "no fault"
    print(
        f"{family:12} {cases:6} cases {claims:6} claims {proven:6} proven "
        f"{spent:8.1f} CPU s  {found}"
        + (f"; {n_inside} against one block a level" if total else ""),
        flush=True,
    )
    by_kind: Counter[tuple[str, bool]] = Counter()
    for _, line, number, fault in sorted(faulty, key=lambda one: one[:3]):
        group = (fault.kind, fault.is_inside)
        by_kind[group] += 1
        if by_kind[group] <= most_shown:
            where = "" if fault.is_inside else ", only outside one block a level"
            print(f"{line}  # case {number}, {fault.kind}{where}: {fault.detail}")
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*FAMILIES, *(["fusion"] if FUSION.exists() else [])]
    parser.add_argument("--family", default="all", help=f"all, or some of {','.join(names)}")
    parser.add_argument("--cases", type=int, default=20_000, help="in all; default 20000")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--show", type=int, default=10**9, help="counterexamples of each kind")
    given = parser.parse_args()
    chosen = names if given.family == "all" else given.family.split(",")
    unknown = [name for name in chosen if name not in names]
    if unknown:
        parser.error(f"unknown family '{unknown[0]}'; there are {', '.join(names)}")
    if "placement" in chosen and not can_place():
        print("placement: left out; schedules cannot say where a level keeps each tensor")
        chosen = [name for name in chosen if name != "placement"]
    each, faults = -(-given.cases // max(1, len(chosen))), 0
    for family in chosen:
        if family == "fusion":
            command = [sys.executable, str(FUSION), "--cases", str(each), "--seed", str(given.seed)]
            faults += bool(subprocess.run(command).returncode)
        else:
            faults += soak(family, each, given.seed, given.jobs, given.show)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
