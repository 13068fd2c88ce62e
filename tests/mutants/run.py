"""Break one formula at a time and run the tests that must notice.

    python -m tests.mutants.run [--jobs N] [--only PART ...] [--list]

The library and its tests are copied to a temporary folder, where the tests must
pass; then each mutant is applied in turn and its tests are run until the first
fails.  A mutant is caught if an assertion of a test fails, or an example prints
something else: a module that does not import, or a test that ends in any other
error, is not enough.  Exits with 1 if a mutant is not caught.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .catalogue import MUTANTS
from .mutant import Mutant

ROOT = Path(__file__).parents[2]
COPIED = (
    *("loopsched", "tests", "archs", "benchmarks", "counters", "docs", "measurements", "spaces"),
    *("workloads", "pyproject.toml"),
)
TIMEOUT_S = 300.0
CAUGHT, SURVIVED, CRASHED, NO_IMPORT, HUNG = "caught", "SURVIVED", "CRASHED", "NO IMPORT", "HUNG"


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant, by which test, and how long that took."""

    mutant: Mutant
    verdict: str
    by: str
    seconds: float


class Tree:
    """A copy of the project in which mutants are applied."""

    def __init__(self, folder: Path, pristine: Path) -> None:
        self.folder, self.pristine = folder, pristine

    def python(
        self, *arguments: str, report: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, on the copy's library."""
        paths = os.pathsep.join(map(str, (self.folder, self.folder / "tests")))
        environment = {k: v for k, v in os.environ.items() if k != "CI"} | {"PYTHONPATH": paths}
        if report is not None:
            environment["LOOPSCHED_MUTANT_REPORT"] = str(report)
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S if report is not None else None,
        )

    def test(self, tests: Sequence[str], report: Path | None = None) -> int:
        """Run tests until the first fails."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "mutants.profile"]
        options += ["--hypothesis-profile=mutants", "--no-header"]
        done = self.python("-m", "pytest", *options, *tests, report=report)
        if report is None and done.returncode:
            sys.stderr.write(done.stdout + done.stderr)
        return done.returncode

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Apply a mutant; afterwards all is as before, compiled kernels included."""
        file = self.folder / mutant.file
        caches = {file.parent / "__pycache__"}
        kernels = [f for f in (self.folder / "loopsched").rglob("*.py") if _inlines(f, file)]
        try:
            for kernel in kernels:  # numba does not see that what they call has changed
                caches.add(kernel.parent / "__pycache__")
                for compiled in (kernel.parent / "__pycache__").glob(f"{kernel.stem}.*.nb?"):
                    compiled.unlink()
            for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
                compiled.unlink()
            text = file.read_text(encoding="utf-8")
            file.write_text(mutant.applied(text), encoding="utf-8")
            yield
        finally:
            shutil.copy2(self.pristine / mutant.file, file)
            for cache in caches:
                kept = self.pristine / cache.relative_to(self.folder)
                shutil.rmtree(cache, ignore_errors=True)
                if kept.exists():
                    shutil.copytree(kept, cache)


def _inlines(module: Path, changed: Path) -> bool:
    """Whether the kernels of a module may call kernels of a changed one."""
    text = module.read_text(encoding="utf-8")
    return module != changed and "@jit" in text and f"{changed.stem} import" in text


def judged(mutant: Mutant, tree: Tree) -> Outcome:
    """Apply a mutant and run its tests."""
    begin = time.perf_counter()
    with tree.mutated(mutant), tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "first_failure.json"
        verdict, by = SURVIVED, ""
        try:
            if tree.python("-c", f"import {mutant.module}").returncode:
                verdict = NO_IMPORT
            elif code := tree.test(mutant.tests, report):
                verdict = CRASHED
                if code == 1 and report.exists():
                    first = json.loads(report.read_text(encoding="utf-8"))
                    by = first["test"].removeprefix("tests/")
                    verdict = CAUGHT if first["is_assertion"] else CRASHED
                    by += "" if first["is_assertion"] else f" ({first['error']})"
        except subprocess.TimeoutExpired:
            verdict = HUNG
    return Outcome(mutant, verdict, by, time.perf_counter() - begin)


def run(mutants: Sequence[Mutant], jobs: int) -> list[Outcome]:
    """Judge mutants, several at a time; the outcomes come in the mutants' order."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        pristine = Path(scratch) / "pristine"
        pristine.mkdir()
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, pristine / name)
        begin = time.perf_counter()
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        if Tree(pristine, pristine).test(tests):
            raise SystemExit("the tests fail without any mutant")
        say(f"{len(tests)} selections of tests pass in {time.perf_counter() - begin:.0f} s")
        free: SimpleQueue[Tree] = SimpleQueue()
        for job in range(jobs):
            free.put(Tree(shutil.copytree(pristine, Path(scratch) / f"job{job}"), pristine))

        def judge(mutant: Mutant) -> Outcome:
            tree = free.get()
            try:
                found = judged(mutant, tree)
            finally:
                free.put(tree)
            say(f"{found.verdict:9} {found.seconds:6.1f} s  {mutant.name:34} {found.by}")
            return found

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(judge, mutants))


def table(outcomes: Sequence[Outcome]) -> str:
    """Render the outcomes as a table in Markdown."""
    lines = ["| mutant | file | what it breaks | first test to fail | s |", "|---|---|---|---|---|"]
    for one in outcomes:
        by = f"`{one.by.split('[')[0]}`" if one.verdict == CAUGHT else f"**{one.verdict}** {one.by}"
        mutant, file = one.mutant, one.mutant.file.removeprefix("loopsched/")
        lines.append(f"| {mutant.name} | `{file}` | {mutant.breaks} | {by} | {one.seconds:.0f} |")
    return "\n".join(lines)


def listing(mutants: Sequence[Mutant]) -> str:
    """List mutants by file, as a table in Markdown."""
    lines = ["| file | mutant | what it breaks |", "|---|---|---|"]
    file = ""
    for mutant in mutants:
        place = "" if mutant.file == file else f"`{mutant.file.removeprefix('loopsched/')}`"
        lines.append(f"| {place} | {mutant.name} | {mutant.breaks} |")
        file = mutant.file
    return "\n".join(lines)


def options_of(doc: str | None, mutants: Sequence[Mutant], jobs: int, **numbers: int) -> Any:
    """Read a command line: how much at a time, and which mutants (`chosen`)."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=jobs, help="mutants at a time")
    parser.add_argument("--only", nargs="+", default=[], help="parts of names or files")
    parser.add_argument("--list", action="store_true", help="list the mutants, run nothing")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    given.chosen = [
        mutant
        for mutant in mutants
        if not given.only or any(part in f"{mutant.file} {mutant.name}" for part in given.only)
    ]
    if not given.chosen:
        parser.error("no such mutant")
    if given.list:
        say(listing(given.chosen))
        sys.exit(0)
    return given


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    given = options_of(__doc__, MUTANTS, os.cpu_count() or 1)
    begin = time.perf_counter()
    outcomes = run(given.chosen, max(1, given.jobs))
    say(table(outcomes))
    missed = [one.mutant.name for one in outcomes if one.verdict != CAUGHT]
    say(
        f"{len(outcomes) - len(missed)} of {len(outcomes)} caught "
        f"in {time.perf_counter() - begin:.0f} s" + (f"; not: {' '.join(missed)}" if missed else "")
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
