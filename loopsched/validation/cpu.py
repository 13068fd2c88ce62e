"""Kernels of a CPU: estimates and bounds beside what is measured; what the first choice costs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from loopsched.base.arguments import Checker, show
from loopsched.base.errors import InputError
from loopsched.base.rows import Row, read_rows
from loopsched.base.statistics import percentile, rank_correlation
from loopsched.codegen.measure import PlanTime, measure_plans, run_kernel
from loopsched.machines.arch_file import as_arch
from loopsched.problems.problem import Problem
from loopsched.validation.csv_files import sheet_of

_NUMBERS = ("bound_s", "estimate_s", "measured_s")


@dataclass(frozen=True, slots=True)
class CpuValidation:
    """What `validate_cpu` found.

    Parameters
    ----------
    summary : mapping of str to object
        ``mape``, ``median_error``, ``geometric_mean_ratio`` and
        ``rank_correlation`` of estimates over the problems;
        ``bound_violations``: measurements below the bound, which is of a call that finds nothing
        in the caches (repeated ones of little data may beat it); ``first_over_best``: what the
        model's first choice takes over the best plan that was timed, its geometric mean, and
        ``first_over_best_worst``.
    rows : tuple of dict
        One per problem: what `loopsched run` says of it, the ``error`` of the estimate and,
        of the plans that were timed, ``first_over_best``, ``plan_mape`` and
        ``plan_rank_correlation``.
    """

    summary: Mapping[str, object]
    rows: tuple[Row, ...]


def validate_cpu(
    source: Iterable[Problem] | str | os.PathLike[str],
    arch: object = "host",
    *,
    threads: int | None = None,
    data_type: str | None = None,
    plans: int = 8,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
) -> CpuValidation:
    """Compare estimates and bounds of kernels with measurements on this CPU.

    Parameters
    ----------
    source : iterable of Problem, or path
        Problems to compile, check and time; or a file of rows that
        ``loopsched run --out`` or ``validate cpu`` wrote, which are taken as
        they are.
    arch, threads, data_type
        As for `compile`.
    plans : int
        How many plans of each problem to time in turn: half of them the
        model's best, the others drawn uniformly.  1: the first choice alone.
    seed : int
        Of what is drawn.
    progress : callable, optional
        Called with the name of each problem that is done.

    Raises
    ------
    InputError
        If the file has no such rows, a source is no problem, or a number is
        not allowed.

    See Also
    --------
    compile, validate_times

    Examples
    --------
    >>> from loopsched.validation.cpu import summed
    >>> row = {"problem": "one", "bound_s": 1.0, "estimate_s": 3.0, "measured_s": 2.0}
    >>> found = summed([row, row | {"problem": "two", "measured_s": 4.0}])
    >>> found.summary["mape"], found.summary["bound_violations"]
    (0.375, 0)
    """
    check = Checker("validate_cpu", InputError)
    n, seed = check.count("plans", plans), check.count("seed", seed, 0)
    is_file = isinstance(source, (str, os.PathLike))
    problems = [] if is_file else check.each("source", source, Problem, "a Problem")
    check.finish()
    if isinstance(source, (str, os.PathLike)):
        return summed(_read(os.fspath(source)))
    machine, rows = as_arch(arch), []
    for problem in problems:
        kernel, found = run_kernel(problem, machine, threads=threads, data_type=data_type)
        timed = measure_plans(kernel, n, seed=seed) if n > 1 else []
        rows.append(found.row() | _choice(timed))
        if progress is not None:
            progress(problem.name)
    return summed(rows)


def _choice(timed: Sequence[PlanTime]) -> Row:
    """Sum up the plans of a problem; each of its parts has a first and a best one."""
    parts: dict[int, list[PlanTime]] = {}
    for one in timed:
        parts.setdefault(one.part, []).append(one)
    if not parts:
        return dict.fromkeys(("first_over_best", "plan_mape", "plan_rank_correlation")) | {
            "plans": []
        }
    first = sum(next(one.measured_s for one in some if one.rank == 1) for some in parts.values())
    best = sum(min(one.measured_s for one in some) for some in parts.values())
    ranked = [
        rank_correlation([one.estimate_s for one in some], [one.measured_s for one in some])
        for some in parts.values()
    ]
    known = [one for one in ranked if one is not None]
    return {
        "first_over_best": first / best,
        "plan_mape": fmean(abs(one.estimate_s / one.measured_s - 1) for one in timed),
        "plan_rank_correlation": fmean(known) if known else None,
        "plans": [one._asdict() for one in timed],
    }


def _read(path: str) -> list[Row]:
    """Read rows that have the numbers that are compared."""
    if Path(path).suffix == ".csv":
        rows: list[tuple[str, Any]] = list(sheet_of(path).rows)
    else:
        rows = [(f"row {place}", row) for place, row in read_rows(path)]
    if rows and all(_is_searched(row) for _, row in rows):
        raise InputError(f"{path}: saved by 'search --out'; rows saved by 'run --out' are needed")
    faults = [
        f"{place}: '{name}' is {show(row.get(name))}; seconds above zero are needed"
        if isinstance(row, Mapping)
        else f"{place}: {row}"
        for place, row in rows
        for name in _NUMBERS
        if not isinstance(row, Mapping) or not _is_time(name, row.get(name))
    ]
    InputError.refuse(path, faults[:50] or ([] if rows else ["no rows"]))
    return [dict(row) for _, row in rows]


def _is_searched(row: object) -> bool:
    return isinstance(row, Mapping) and "rank" in row and "measured_s" not in row


def _is_time(name: str, value: object) -> bool:
    if name == "estimate_s" and (value is None or value == "nan" or value != value):
        return True  # nothing estimates what the general path writes
    return isinstance(value, (int, float)) and 0 < value < math.inf


def summed(rows: Iterable[Row]) -> CpuValidation:
    """Sum up rows of problems, as `validate_cpu` does."""
    made = []
    for row in rows:
        guess = row["estimate_s"]
        is_known = isinstance(guess, (int, float)) and guess == guess
        error = guess / row["measured_s"] - 1 if is_known else None
        made.append(row | {"error": error, "is_below_bound": row["measured_s"] < row["bound_s"]})
    known = [row for row in made if row["error"] is not None]
    errors = [abs(row["error"]) for row in known]
    guesses, taken = ([row[name] for row in known] for name in ("estimate_s", "measured_s"))
    over = [row["first_over_best"] for row in made if row.get("first_over_best")]
    summary = {
        "problems": len(made),
        "estimated": len(known),
        "mape": fmean(errors) if errors else None,
        "median_error": percentile(errors, 0.5),
        "geometric_mean_ratio": geometric_mean([1 + row["error"] for row in known])
        if known
        else None,
        "rank_correlation": rank_correlation(guesses, taken),
        "bound_violations": sum(row["is_below_bound"] for row in made),
        "first_over_best": geometric_mean(over) if over else None,
        "first_over_best_worst": max(over, default=None),
    }
    return CpuValidation(summary, tuple(made))
