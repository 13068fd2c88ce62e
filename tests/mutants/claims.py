"""Break the search, collect what it then claims falsely, and hold its logs against that.

    python -m tests.mutants.claims [--cases N] [--seed N] [--jobs N] [--only PART ...]

A claim is the value of a schedule, or a bound, of a search whose own check of its log is
taken out.  It is false if the schedule is worth more, or some nest is below the bound:
the one that the unbroken search finds, whose log closes.  It is
refused if no log can be written, `loopsched.verify` refuses the log, or what that proves
is no more than the truth.  A search scores all that
it wants to, and once more a quarter of that.  Each mutant runs in a process of
its own; where a kernel is broken, all kernels run as Python, and tiny problems only.
Exits with 1 if a log proves a false claim.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any
from zlib import crc32

from .mutant import Mutant
from .run import options_of, say

TESTS = Path(__file__).parents[1]
NEAR = 1e-9
SHIPPED = (
    "shipped('deepbench_gemm', 'm1760 n7133 k1760 nt', 'titan_v', ('dram_bytes',))",
    "shipped('deepbench_gemm', 'm512 n24000 k2816', 'titan_v', ('dram_bytes',))",
    "shipped('deepbench_conv', 'n8 c256 h28 w28 k512 r3 s3 pad1', 'titan_v', ('dram_bytes',))",
)


@dataclass(frozen=True)
class Claim:
    """What a search said of a case and an objective, and what its log proves, if anything."""

    line: str
    objective: str
    schedule: str
    value: float
    bound: float
    logged: tuple[str, float, float] | None

    def faults(self, worth: Callable[[str], float], least: float) -> dict[str, bool]:
        """Name what is claimed falsely, and whether the log refuses it.

        ``worth`` tells a schedule's true value; no nest is below ``least``.  A log may name
        another order of the same loops.
        """
        schedule, best, bound = self.logged or (self.schedule, float("inf"), 0.0)
        found = {}
        if self.value < worth(self.schedule) * (1 - NEAR):
            found["value"] = best >= worth(schedule) * (1 - NEAR)
        if self.bound > least * (1 + NEAR):
            found["bound"] = bound <= least * (1 + NEAR)
        return found


class Broken(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Import a mutant's file with its formula broken."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.file = mutant, TESTS.parent / mutant.file

    def find_spec(self, name: str, path: object, target: ModuleType | None = None) -> Any:
        """Find the broken file only."""
        if name == self.mutant.module:
            return importlib.util.spec_from_file_location(name, self.file, loader=self)
        return None

    def get_filename(self, fullname: str) -> str:
        """Tell the file."""
        return str(self.file)

    def get_data(self, path: str | bytes) -> bytes:
        """Read the file, broken."""
        return self.mutant.applied(self.file.read_text(encoding="utf-8")).encode()


def claims_of(lines: Sequence[str], mutant: Mutant | None) -> list[Claim]:
    """Search the cases, in a process where nothing else is broken, and write the logs."""
    is_plain = mutant is not None and "kernels" in mutant.file
    is_plain |= not any(line.startswith("shipped") for line in lines)
    os.environ["LOOPSCHED_JIT"] = "0" if is_plain else "1"
    names = ("loopsched", "fuzz_", "oracle", "places_oracle")
    for name in [name for name in sys.modules if name.startswith(names)]:
        del sys.modules[name]
    sys.path.insert(0, str(TESTS))
    if mutant is not None:
        sys.meta_path.insert(0, Broken(mutant))
    import fuzz_checks as checks

    import loopsched
    from loopsched.scheduler import exact, proof

    proof.settled = lambda result: result
    score = exact.Searcher._score

    def seldom(searcher: Any, schedule: Any) -> None:
        is_plain = all(loop.extent == searcher.problem.size[loop.dim] for loop in schedule.loops)
        if is_plain or crc32(str(schedule).encode()) % 4 == 0:
            score(searcher, schedule)

    def searched(problem: Any, arch: Any, objectives: Sequence[str], **_: Any) -> list[Claim]:
        claims = []
        for one in objectives:
            for exact.Searcher._score in (score, seldom):  # type: ignore[method-assign]
                claims.append(claimed(problem, arch, one))
        return [claim for claim in claims if claim]

    def shipped(workload: str, name: str, arch: str, objectives: Sequence[str]) -> list[Claim]:
        problems = loopsched.load_workload(workload).problems
        problem = next(one for one in problems if one.name == name)
        return searched(problem, loopsched.load_arch(arch), objectives)

    def claimed(problem: Any, arch: Any, objective: str) -> Claim | None:
        try:
            with checks.bounds_alone():
                result = loopsched.search(problem, arch, objective=objective)  # type: ignore[arg-type]
        except Exception:  # no claim
            return None
        certificate, logged = result.certificate, None
        try:
            verdict = loopsched.verify_proof(result.proof)
            # Tiles placed one by one are none of those that such a log speaks of.
            bound = 0.0 if verdict.together else float(verdict.bound)
            logged = verdict.schedule, float(verdict.best), bound
        except Exception:  # refused
            logged = None
        bound = certificate.value if certificate.proven else certificate.lower_bound
        schedule = str(result.schedule)
        return Claim(line, objective, schedule, certificate.value, bound, logged)

    found: list[Claim] = []
    for line in lines:
        if is_plain and line.startswith("shipped"):  # takes minutes
            continue
        try:
            found += eval(line, {**vars(checks), "searched": searched, "shipped": shipped})
        except Exception:  # the mutant builds no such problem
            continue
    return found


def drawn(cases: int, seed: int) -> list[str]:
    """Draw cases that a log settles, but not at its root, shipped problems first."""
    from fuzz_cases import machine, problem_text, spelled

    import loopsched

    found, rng = [*SHIPPED], Random(f"claims {seed}")
    while len(found) < cases + len(SHIPPED):
        size = {name: rng.randint(2, 12) for name in "mnk"}
        kind = rng.choice(("any", "any", "gemm", "conv"))
        if kind == "any":
            text = problem_text(rng, most_macs=300)
        elif kind == "gemm":
            text = f"gemm(**{size}, element_bytes={rng.choice((1, 2))})"
        else:
            text = (
                f"conv2d(c={rng.randint(1, 4)}, k={rng.randint(1, 5)}, h={rng.randint(4, 9)}, "
                f"w={rng.randint(3, 5)}, r=3, s={rng.randint(1, 3)}, padding={rng.randint(0, 1)}, "
                f"stride={rng.randint(1, 2)}, element_bytes=1)"
            )
        problem: Any = given(f"searched({text}, None, ())")[0]
        arch = machine(rng, problem, n_shared=1, n_own=rng.choice((0, 1)), units=rng.choice((1, 3)))
        for objective in ("dram_bytes", "time"):
            line = f"searched({text}, {spelled(arch)}, ({objective!r},))"
            try:
                result = loopsched.search(problem, arch, objective=objective)  # type: ignore[arg-type]
            except loopsched.EmptySpaceError:
                continue
            if result.certificate.proven and loopsched.verify_proof(result.proof).boxes > 1:
                found.append(line)
    return found


@dataclass
class Truth:
    """What is so of each case: the least of all nests, and the value of any schedule."""

    least: dict[tuple[str, str], float]

    @classmethod
    def of(cls, lines: Iterable[str]) -> Truth:
        """Search each case, nothing broken."""
        from loopsched import search

        found = {}
        for line in lines:
            problem, arch, objectives = given(line)
            for one in objectives:
                found[line, one] = search(problem, arch, objective=one).certificate.value
        return cls(found)

    def faults(self, claim: Claim) -> dict[str, bool]:
        """Name what is false of a claim, and whether its log refuses it."""
        least = self.least[claim.line, claim.objective]
        return claim.faults(partial(self.worth, claim), least)

    def worth(self, claim: Claim, schedule: str) -> float:
        """Score a schedule of a claim; one that the machine cannot run has no value."""
        from oracle_space import scored

        from loopsched import parse_schedule

        problem, arch, _ = given(claim.line)
        found = scored(problem, arch, [parse_schedule(schedule, problem)])
        return found[0].values[claim.objective] if found else float("inf")


def given(line: str) -> tuple[Any, Any, Sequence[str]]:
    """Build the problem and the machine of a case."""
    import fuzz_checks as checks

    import loopsched

    def shipped(workload: str, name: str, arch: str, objectives: Sequence[str]) -> Any:
        problems = loopsched.load_workload(workload).problems
        found = next(one for one in problems if one.name == name)
        return found, loopsched.load_arch(arch), objectives

    def searched(problem: Any, arch: Any, objectives: Sequence[str], **_: Any) -> Any:
        return problem, arch, objectives

    found: tuple[Any, Any, Sequence[str]] = eval(
        line, {**vars(checks), "searched": searched, "shipped": shipped}
    )
    return found


@dataclass(frozen=True)
class Count:
    """False claims of one mutant, those that logs refuse, and those that they prove."""

    mutant: Mutant
    claims: int
    false: int
    proven: tuple[Claim, ...]


def counted(mutants: Sequence[Mutant], lines: Sequence[str], jobs: int) -> Iterator[Count]:
    """Run mutants, each in a fresh process, and judge what they claim."""
    truth = Truth.of(lines)
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        for mutant, claims in zip(
            mutants, pool.imap(partial(claims_of, lines), mutants, chunksize=1), strict=True
        ):
            faults = [(one, truth.faults(one)) for one in claims]
            proven = tuple(one for one, each in faults if not all(each.values()))
            yield Count(mutant, len(claims), sum(len(x) for _, x in faults), proven)


def main() -> int:
    from .overclaiming import OVERCLAIMING

    options = options_of(__doc__, OVERCLAIMING, 1, cases=30, seed=0)
    sys.path.insert(0, str(TESTS))
    chosen = options.chosen
    n_false = n_false_of = n_proven = 0
    for one in counted(chosen, drawn(options.cases, options.seed), options.jobs):
        n_false, n_false_of = n_false + one.false, n_false_of + bool(one.false)
        n_proven += len(one.proven)
        say(
            f"{one.mutant.name:34} {one.claims:4} claims {one.false:4} false, "
            f"{len(one.proven)} of them in a log"
        )
        for claim in one.proven:
            say(f"    {claim}")
    say(
        f"{len(chosen)} mutants, {n_false_of} of which claim {n_false} falsehoods; logs prove "
        f"{n_proven} of these"
    )
    return 1 if n_proven else 0


if __name__ == "__main__":
    sys.exit(main())
