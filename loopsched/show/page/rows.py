"""Rows of results as the page takes them: checked, by layer, best schedule first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopsched.base.arguments import is_count, show
from loopsched.base.errors import InputError, nearest
from loopsched.base.rows import Row

_MOST_FAULTS = 20


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (isinstance(value, int) or math.isfinite(value))
    )


_NUMBER = (_is_number, "a number")
_COUNT = (lambda value: is_count(value, 0), "a whole number")
_TEXT = (lambda value: isinstance(value, str), "a text")
_TRUTH = (lambda value: isinstance(value, bool), "true or false")
_PERHAPS = (
    lambda value: value is None or _is_number(value) or value == math.inf,
    "a number or null",
)
_LIST = (lambda value: isinstance(value, list), "a list")

_Kind = tuple[Callable[[Any], bool], str]
_ROW: dict[str, _Kind] = {
    **dict.fromkeys(("layer", "count", "rank", "dram_bytes", "least_dram_bytes", "nodes"), _COUNT),
    **dict.fromkeys(("schedule", "bound_by", "objective"), _TEXT),
    **dict.fromkeys(("time_s", "time_bound_s", "problem_bound_s", "compute_time_s"), _NUMBER),
    **dict.fromkeys(("compute_utilisation", "required_dram_bandwidth_bytes_per_s"), _NUMBER),
    **dict.fromkeys(("energy_pj", "gap"), _PERHAPS),
    "levels": _LIST,
    "proven": _TRUTH,
    "space_size": _NUMBER,
}
_LEVEL = {"promised_bytes": _COUNT, "working_set_bytes": _COUNT, "time_s": _NUMBER}


def rows_by_layer(rows: Sequence[Row], n_levels: int) -> dict[int, list[Row]]:
    """Sort rows by layer and rank, and check that the page can show them.

    Parameters
    ----------
    rows : sequence of dict
    n_levels : int
        Levels of the machine but the memory: a row describes each.

    Raises
    ------
    InputError
        With every fault: a value that is missing or of another kind, a rank
        that occurs twice, a layer without its best schedule.

    Examples
    --------
    >>> rows_by_layer([], 2)
    Traceback (most recent call last):
        ...
    loopsched.base.errors.InputError: no rows: a page needs at least one result
    """
    if not rows:
        raise InputError("no rows: a page needs at least one result")
    faults = [fault for number, row in enumerate(rows, 1) for fault in _faults(number, row)]
    for number, row in enumerate(rows, 1):
        if not faults and len(row["levels"]) != n_levels:
            found = len(row["levels"])
            faults.append(f"row {number}: {found} levels; the machine has {n_levels}")
    layers: dict[int, list[Row]] = {}
    if not faults:
        for row in rows:
            layers.setdefault(row["layer"], []).append(row)
        faults = [fault for number, found in layers.items() for fault in _disorder(number, found)]
    if faults:
        raise InputError.joined("results", faults[:_MOST_FAULTS])
    return {number: sorted(layers[number], key=_rank) for number in sorted(layers)}


def _rank(row: Row) -> int:
    return int(row["rank"])


def _faults(number: int, row: Row) -> list[str]:
    faults = _of(f"row {number}", row, _ROW)
    levels = row.get("levels")
    for place, level in enumerate(levels if isinstance(levels, list) else []):
        where = f"row {number}: level {place}"
        if isinstance(level, Mapping):
            faults += _of(where, level, _LEVEL)
            faults += _bracket(where, level)
        else:
            faults.append(f"{where} is {show(level)}; an object with named values is needed")
    return faults


def _bracket(where: str, level: Mapping[str, Any]) -> list[str]:
    bracket = level.get("bytes", {"low": 0})
    if isinstance(bracket, Mapping):
        return _of(f"{where}: bytes", bracket, {"low": _COUNT})
    return [f"{where}: 'bytes' is {show(bracket)}; an object with named values is needed"]


def _of(where: str, row: Mapping[str, Any], wanted: Mapping[str, _Kind]) -> list[str]:
    faults = []
    for name, (is_right, what) in wanted.items():
        if name not in row:
            hint = nearest(name, map(str, row), "there are")
            faults.append(f"{where}: no '{name}'; was it saved by a search? {hint}")
        elif not is_right(row[name]):
            faults.append(f"{where}: '{name}' is {show(row[name])}; {what} is needed")
    return faults[:1] if len(faults) == len(wanted) else faults


def _disorder(layer: int, rows: Sequence[Row]) -> list[str]:
    ranks = [_rank(row) for row in rows]
    faults = [
        f"layer {layer}: rank {rank} occurs {ranks.count(rank)} times; one search a page"
        for rank in sorted(set(ranks))
        if ranks.count(rank) > 1
    ]
    if 1 not in ranks:
        faults.append(f"layer {layer}: no row of rank 1, the best schedule")
    return faults
