"""Scores and search results as rows of plain values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loopsched.base.rows import Row, picked
from loopsched.models.score import Evaluation, LevelScore
from loopsched.scheduler.result import Result


def evaluation_row(evaluation: Evaluation, *, has_brackets: bool = True) -> Row:
    """Describe a score by plain values.

    Parameters
    ----------
    evaluation : Evaluation
    has_brackets : bool
        Whether to find the brackets of every level, which takes a replay.

    Returns
    -------
    dict
        The names are those of the attributes; ``levels`` holds one dictionary
        a level, with brackets as ``low``, ``point`` and ``high``.
    """
    levels = [_level(level, has_brackets) for level in evaluation.levels]
    return picked(evaluation, *_SCORES) | {"levels": levels}


_SCORES = (
    "time_s", "time_bound_s", "problem_bound_s", "bound_by", "compute_time_s",
    "compute_utilisation", "dram_bytes", "dram_read_bytes", "dram_write_bytes",
    "least_dram_bytes", "required_dram_bandwidth_bytes_per_s", "energy_pj",
)  # fmt: skip
_LEVEL_SCORES = (
    "name", "capacity_bytes", "working_set_bytes", "promised_bytes", "time_s", "utilisation",
    "operational_intensity",
)  # fmt: skip


def _level(level: LevelScore, has_brackets: bool) -> Row:
    brackets = ("bytes", "read_bytes", "write_bytes") if has_brackets else ()
    return picked(level, *_LEVEL_SCORES) | {
        name: picked(getattr(level, name), "low", "point", "high") for name in brackets
    }


def result_rows(result: Result, *, has_brackets: bool = True) -> list[Row]:
    """Describe what a search found: the best schedule, then the alternatives.

    Parameters
    ----------
    result : Result
    has_brackets : bool
        As for `evaluation_row`.

    Returns
    -------
    list of dict
        One a schedule, by ``rank``.  The certificate is the search's, the same
        in all of them.
    """
    certificate = result.certificate
    found = [(result.schedule, result.evaluation)]
    found += [(each.schedule, each.evaluation) for each in result.alternatives]
    return [
        {
            "problem": result.problem.name,
            "rank": rank,
            "schedule": str(schedule),
            **evaluation_row(evaluation, has_brackets=has_brackets),
            "objective": result.objective,
            **picked(certificate, "lower_bound", "gap", "proven", "listed", "nodes", "space_size"),
            "stopped": result.stopped,
            "budget": certificate.effort.budget.work,
            "time_limit_s": certificate.effort.budget.time_s,
            "work": certificate.effort.work,
            "ties_proven": certificate.ties_proven,
        }
        for rank, (schedule, evaluation) in enumerate(found, 1)
    ]


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over a workload, each problem as often as it occurs.

    Parameters
    ----------
    time_s, time_bound_s : float, seconds
    dram_bytes, least_dram_bytes : int, bytes
        Promised; and what no schedule goes below.
    energy_pj : float or None, picojoules
        None if the machine does not say what its levels and arithmetic take.
    bound_by : tuple of (str, int)
        What binds, and in how many problems; the commonest first.
    n_proven : int
    nodes, space_size : int
        Of all searches, each once.
    """

    time_s: float
    time_bound_s: float
    dram_bytes: int
    least_dram_bytes: int
    energy_pj: float | None
    bound_by: tuple[tuple[str, int], ...]
    n_proven: int
    nodes: int
    space_size: int


def totals(rows: Iterable[Mapping[str, Any]]) -> Totals:
    """Sum the rows of the best schedules of a workload.

    Examples
    --------
    >>> row = {"time_s": 0.5, "time_bound_s": 0.25, "dram_bytes": 8, "bound_by": "DRAM"}
    >>> row |= {"count": 3, "proven": True, "nodes": 7, "space_size": 100, "least_dram_bytes": 5}
    >>> totals([row | {"energy_pj": None}])
    Totals(time_s=1.5, time_bound_s=0.75, dram_bytes=24, least_dram_bytes=15, energy_pj=None,
    bound_by=(('DRAM', 1),), n_proven=1, nodes=7, space_size=100)
    """
    kept = list(rows)
    energies = [row["energy_pj"] and row["count"] * row["energy_pj"] for row in kept]
    return Totals(
        time_s=math.fsum(row["count"] * row["time_s"] for row in kept),
        time_bound_s=math.fsum(row["count"] * row["time_bound_s"] for row in kept),
        dram_bytes=sum(row["count"] * row["dram_bytes"] for row in kept),
        least_dram_bytes=sum(row["count"] * row["least_dram_bytes"] for row in kept),
        energy_pj=None if None in energies else math.fsum(energies),
        bound_by=tuple(Counter(row["bound_by"] for row in kept).most_common()),
        n_proven=sum(row["proven"] for row in kept),
        nodes=sum(row["nodes"] for row in kept),
        space_size=sum(int(row["space_size"]) for row in kept),
    )
