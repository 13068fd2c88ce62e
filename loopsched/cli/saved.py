"""Result files as input: the schedules that a search has saved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loopsched.arch_file import load_arch
from loopsched.cli.inputs import schedule_from, select
from loopsched.errors import InputError, nearest
from loopsched.results import Row, read_rows, workload_digest

if TYPE_CHECKING:
    from loopsched.arch import Arch
    from loopsched.nest import Schedule
    from loopsched.problem import Problem


def is_result_file(text: str) -> bool:
    """Whether a text names a file of result rows: lines, or a list, of objects."""
    path = Path(text)
    try:
        if path.suffix not in (".json", ".jsonl") or not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(64).lstrip()
    except (OSError, ValueError):
        return False
    return path.suffix == ".jsonl" or start.startswith(b"[")


def saved_schedules(
    path: str, layers: Sequence[str] = (), rank: int | None = None
) -> Iterator[tuple[Problem, Schedule, Arch]]:
    """Load what a result file says, checking that its inputs are still the same.

    Raises
    ------
    InputError
        If the file has no such layer or rank, or its workload or architecture
        has changed since.
    """
    rows = [
        (f"{path}: row {position}", row)
        for position, row in read_rows(path)
        if _is_meant(row, layers, rank)
    ]
    if not rows:
        raise InputError(f"{path}: no row of layer {' '.join(layers) or 'any'}, rank {rank or 1}")
    for where, row in rows:
        yield _load(where, row)


def _is_meant(row: Row, layers: Sequence[str], rank: int | None) -> bool:
    names = {str(row.get("layer")), str(row.get("problem"))}
    return (not layers or bool(names & set(layers))) and row.get("rank", 1) == (rank or 1)


def _text(where: str, row: Row, key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise InputError(f"{where}: no '{key}' in words; {nearest(key, map(str, row))}")
    return value


def _load(where: str, row: Row) -> tuple[Problem, Schedule, Arch]:
    number, width = row.get("layer", 0), row.get("element_bytes")
    if not re.fullmatch(r"[0-9]{1,9}", str(number)):
        raise InputError(f"{where}: 'layer' is {str(number)[:40]!r}; a whole number is needed")
    name = _text(where, row, "workload")
    whole = select(name, (), width if isinstance(width, int) else None).workload
    if workload_digest(whole) != row.get("workload_digest"):
        raise InputError(f"{where}: workload '{name}' is no longer what was searched; search again")
    arch = load_arch(_text(where, row, "arch"))
    if arch.digest != row.get("arch_digest"):
        raise InputError(
            f"{where}: architecture '{arch.name}' is no longer what was searched on; search again"
        )
    chosen = select(name, (str(number),), width if isinstance(width, int) else None)
    problem = chosen.workload.problems[0]
    return problem, schedule_from(_text(where, row, "schedule"), problem), arch
