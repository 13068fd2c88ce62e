"""The explorer page: results of a search as one file of HTML that asks nothing of a network."""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loopsched.base.errors import InputError
from loopsched.base.rows import Row, json_text
from loopsched.base.version import __version__
from loopsched.models.machine import data_type_of, nested_units
from loopsched.nests.loops_text import render_loops
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.footprint import problem_bytes, tensor_bytes
from loopsched.scheduler.rows import totals
from loopsched.show.page.data import MOST_EXACT, arch_data, problem_data, whole
from loopsched.show.page.model import model_js
from loopsched.show.page.rows import rows_by_layer
from loopsched.show.page.shell import page_html, text_of

if TYPE_CHECKING:
    from loopsched.curves.curve import Curve
    from loopsched.machines.arch import Arch
    from loopsched.problems.problem import Problem

# In the order in which they are loaded: each uses only what stands above it.
_SCRIPTS = (
    "format", "dom", "state", "table", "roofline", "layer", "edit", "editor", "nest", "levels",
    "alternatives", "slope", "help", "main",
)  # fmt: skip
_SCORES = (
    "time_s", "time_bound_s", "bound_by", "compute_time_s", "compute_utilisation", "dram_bytes",
    "energy_pj",
)  # fmt: skip
_MEASURED = ("measured_s", "threads", "data_type")
_LEVEL_SCORES = ("promised_bytes", "working_set_bytes", "time_s")
_MOST_STEPS = 400
# What the page's model counts: see model.py.
_MOST_BYTES = 2**52 - 1


def report_html(
    rows: Sequence[Row],
    problems: Mapping[int, Problem],
    arch: Arch,
    *,
    curves: Mapping[int, Curve] | None = None,
    reasons: Mapping[tuple[int, int], Sequence[str]] | None = None,
    measured: Mapping[int, Row] | None = None,
) -> str:
    """Make the explorer page of a search: one self-contained HTML file.

    Parameters
    ----------
    rows : sequence of dict
        What `loopsched search` saves: for every layer one row per schedule, by ``rank``.
    problems : mapping of int to Problem
        The problem of each ``layer`` of the rows.
    arch : Arch
        The machine that was searched on.
    curves : mapping of int to Curve, optional
        Least traffic by capacity, of some layers.
    reasons : mapping of (int, int) to sequence of str, optional
        By layer and rank, what makes a schedule worse than the best, as `loopsched.compare`
        finds it.
    measured : mapping of int to dict, optional
        By layer, a row that `loopsched run` saves.

    Returns
    -------
    str
        HTML; the same for the same arguments.

    Raises
    ------
    InputError
        If there are no rows, some are not what a search saves, or a problem is
        missing, not the one of its rows, or too large for the page to count.

    See Also
    --------
    search_workload

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> from loopsched.scheduler.rows import result_rows
    >>> problem, arch = gemm(m=64, n=64, k=64), load_arch("titan_v")
    >>> rows = [{"layer": 0, "count": 1} | row for row in result_rows(search(problem, arch))]
    >>> page = report_html(rows, {0: problem}, arch)
    >>> page.startswith("<!doctype html>"), "src=" in page
    (True, False)
    """
    layers = rows_by_layer(rows, len(arch.caches))
    _check(layers, problems)
    data = _page_data(layers, problems, arch, curves or {}, reasons or {})
    for one in data["layers"]:
        row = (measured or {}).get(one["number"])
        one["measured"] = row and {name: row[name] for name in _MEASURED}
    scripts = {"model": model_js(), "page": _page_js()}
    return page_html(
        "page.html",
        text_of("page.css"),
        data["title"],
        {
            **scripts,
            "data": _embedded(data),
            "heading": html.escape(data["title"]).replace(",", ",<wbr>"),
        },
        scripts=list(scripts.values()),
        version=data["version"],
    )


def _check(layers: Mapping[int, list[Row]], problems: Mapping[int, Problem]) -> None:
    """Refuse what the page, once it is open, could not score."""
    faults = []
    for number, rows in layers.items():
        if number not in problems:
            faults.append(f"layer {number}: no problem is given for it")
            continue
        problem = problems[number]
        largest = max(extent for _, extent in problem.sizes)
        if problem_bytes(problem) > _MOST_BYTES or largest > MOST_EXACT:
            faults.append(f"layer {number}: problem '{problem.name}' is too large for a page")
        faults += [fault for row in rows for fault in _misfits(problem, row)]
    InputError.refuse("results", faults)


def _misfits(problem: Problem, row: Row) -> tuple[str, ...]:
    try:
        parse_schedule(row["schedule"], problem).check_even("the page")
    except InputError as error:
        hint = (
            "; 'loopsched explore' finds the best without them"
            if "one by one" in str(error)
            else ""
        )
        where = f"layer {row['layer']}, rank {row['rank']}"
        return tuple(f"{where}: {one}{hint}" for one in error.problems)
    return ()


def _page_js() -> str:
    parts = "\n".join(text_of(f"ui/{name}.js") for name in _SCRIPTS)
    return f"'use strict';\n(() => {{\n{parts}\n}})();\n"


def _embedded(data: object) -> str:
    """Write data so that nothing in them can end the element that holds them."""
    text = json_text(data)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _page_data(
    layers: Mapping[int, list[Row]],
    problems: Mapping[int, Problem],
    arch: Arch,
    curves: Mapping[int, Curve],
    reasons: Mapping[tuple[int, int], Sequence[str]],
) -> dict[str, Any]:
    number, (first, *_) = next(iter(layers.items()))
    workload = str(first.get("workload", problems[number].name))
    return {
        "title": f"{workload} on {arch.name}",
        "workload": workload,
        "element_bytes": first.get("element_bytes"),
        "version": str(first.get("version", __version__)),
        "command": str(first.get("command", "")),
        "objective": first["objective"],
        "strategy": str(first.get("strategy", "")),
        "value": str(first.get("value", "promised")),
        "arch": arch_data(arch),
        # Without both, no command can name what was searched.
        "arch_given": str(first["arch"]) if {"arch", "workload"} <= first.keys() else None,
        "units": list(nested_units(arch, lanes=1)),
        "boundaries": _boundaries(arch),
        "peaks": _peaks([problems[number] for number in layers], arch),
        "totals": _totals(layers, problems),
        "layers": [
            _layer(number, found, problems[number], arch)
            | {"curve": _steps(curves[number], arch) if number in curves else None}
            | {"found": [_score(row, reasons.get((number, row["rank"]), ())) for row in found]}
            for number, found in layers.items()
        ],
    }


def _boundaries(arch: Arch) -> list[dict[str, Any]]:
    return [
        {
            "outer": outer.name,
            "level": level.name,
            "capacity_bytes": level.usable_bytes,
            "copies": 1 + level.double_buffered,
            "instances": level.instances,
            "bandwidth_bytes_per_s": level.bandwidth_bytes_per_s,
        }
        for outer, level in zip(arch.levels, arch.caches, strict=False)
    ]


def _peaks(problems: Sequence[Problem], arch: Arch) -> list[dict[str, Any]]:
    """Sustained rates of the arithmetic, one for each data type of the layers."""
    types = dict.fromkeys(data_type_of(problem, arch) for problem in problems)
    per_s = arch.compute.units * arch.compute.clock_hz
    return [
        {"data_type": name, "flops_per_s": 2 * arch.compute.rate(name) * per_s} for name in types
    ]


def _totals(layers: Mapping[int, list[Row]], problems: Mapping[int, Problem]) -> dict[str, Any]:
    best = [found[0] for found in layers.values()]
    sums = totals(best)
    return {
        **asdict(sums),
        "space_size": _about(sums.space_size),
        "flops": sum(row["count"] * problems[row["layer"]].flops for row in best),
    }


def _layer(number: int, rows: Sequence[Row], problem: Problem, arch: Arch) -> dict[str, Any]:
    best = rows[0]
    return {
        "number": number,
        "count": best["count"],
        "name": problem.name,
        "kind": problem.kind,
        "dims": problem.sizes,
        "problem": problem_data(problem, arch),
        "statement": _statement(problem),
        "output": problem.output,
        "tensors": _tensors(problem),
        "macs": whole(problem.macs),
        "flops": problem.flops,
        "space_size": _about(best["space_size"]),
        **{name: best[name] for name in ("proven", "gap", "problem_bound_s", "least_dram_bytes")},
    }


def _statement(problem: Problem) -> str:
    """Write what one point computes, as the innermost line of the plainest nest."""
    nest = Schedule.of(Loop(dim, size) for dim, size in problem.sizes)
    return render_loops(problem, nest, width=10_000).splitlines()[-1].strip()


def _tensors(problem: Problem) -> list[dict[str, Any]]:
    return [
        {
            "name": tensor.name,
            "elements": whole(tensor_bytes(problem, tensor) // tensor.element_bytes),
            "bytes": whole(tensor_bytes(problem, tensor)),
        }
        for tensor in problem.tensors
    ]


def _about(count: float) -> float:
    """Give a count as a float; the sizes of spaces know no limit."""
    return float(min(count, sys.float_info.max))


def _score(row: Row, reasons: Sequence[str]) -> dict[str, Any]:
    return {
        "rank": row["rank"],
        "schedule": row["schedule"],
        **{name: row[name] for name in _SCORES},
        "needs": row["required_dram_bandwidth_bytes_per_s"],
        "levels": [
            {name: level[name] for name in _LEVEL_SCORES}
            | {"least_bytes": level["bytes"]["low"] if "bytes" in level else None}
            for level in row["levels"]
        ],
        "reasons": list(reasons),
    }


def _steps(curve: Curve, arch: Arch) -> dict[str, Any]:
    """Keep steps of a curve that the eye can tell apart, and those that levels are on."""
    capacities, moved, bounds = curve.capacities_bytes, curve.dram_bytes, curve.step_bounds
    kept = list(range(len(capacities)))
    if len(kept) > _MOST_STEPS:
        every = len(kept) / _MOST_STEPS
        levels = {curve.step(level.usable_bytes or 0) or 0 for level in arch.caches}
        kept = sorted({0, len(kept) - 1, *(int(i * every) for i in range(_MOST_STEPS)), *levels})
    return {
        "capacities_bytes": [capacities[i] for i in kept],
        "dram_bytes": [moved[i] for i in kept],
        "nest_bound_bytes": [bounds[i] for i in kept],
        "of": len(capacities),
        "policy": curve.policy,
    }
