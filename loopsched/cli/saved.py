"""Result files as input: the schedules that a search has saved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from loopsched.base.errors import InputError
from loopsched.base.rows import Row, read_rows
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.network.selection import layer_numbers, select
from loopsched.problems.problem import Problem
from loopsched.problems.workload import workload_digest


@dataclass(frozen=True, slots=True)
class Saved:
    """A row of a result file with what it speaks of, found unchanged."""

    where: str
    row: Row
    problem: Problem
    schedule: Schedule
    arch: Arch


def is_result_file(text: str) -> bool:
    """Whether a text names a file of result rows: lines, or a list, of objects."""
    path = Path(text)
    try:
        if path.suffix not in (".json", ".jsonl", ".parquet") or not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(64).lstrip()
    except (OSError, ValueError):
        return False
    if path.suffix == ".parquet":
        return start.startswith(b"PAR1")
    return path.suffix == ".jsonl" or re.match(rb"\[\s*[{\]]", start) is not None


def refuse_layers(path: str) -> None:
    """Refuse a list of layers, which looks like a list of rows, and an empty list.

    Raises
    ------
    InputError
        If the file is one of them.
    """
    if Path(path).suffix != ".json":
        return
    try:
        first = next(read_rows(path), None)
    except InputError:  # told by those who read it all
        return
    if first is None or "op" in first[1]:
        raise InputError(f'{path}: a list; a workload is an object: {{"layers": [...]}}')


def saved_schedules(
    path: str, layers: Sequence[str] = (), rank: int | None = None
) -> Iterator[tuple[Problem, Schedule, Arch]]:
    """Load what a result file says, checking that its inputs are still the same.

    Raises
    ------
    InputError
        If the file lacks one of the layers or the rank, or its workload or architecture
        has changed since.
    """
    rows = list(_rows(path))
    of_rank = [(where, row) for where, row in rows if row.get("rank", 1) == (rank or 1)]
    if not of_rank:
        ranks = [given for _, row in rows if isinstance(given := row.get("rank", 1), int)]
        known = f"; the highest is {max(ranks)}" if ranks else ""
        raise InputError(f"{path}: no schedule of rank {rank or 1}{known}")
    names = {_number(where, row): str(row.get("problem")) for where, row in of_rank}
    there = {*map(str, names), *(str(row.get("problem")) for _, row in of_rank)}
    of = "" if rank is None else f", rank {rank}"
    others = layer_numbers(f"{path}{of}", names, [layer for layer in layers if layer not in there])
    meant = {*layers, *map(str, others)}
    for found in _loaded((where, row) for where, row in of_rank if _is_meant(row, meant)):
        yield found.problem, found.schedule, found.arch


def saved_rows(path: str) -> Iterator[Saved]:
    """Load the rows of a result file, each with its problem and machine.

    Raises
    ------
    InputError
        As for `saved_schedules`.
    """
    return _loaded(_rows(path))


def _rows(path: str) -> Iterator[tuple[str, Row]]:
    """Read the rows of a file, each with where it stands."""
    return ((f"{path}: row {position}", row) for position, row in read_rows(path))


def _loaded(rows: Iterable[tuple[str, Row]]) -> Iterator[Saved]:
    problems_of, arch_of = cache(_problems), cache(load_arch)  # each is read once
    for where, row in rows:
        width = row.get("element_bytes")
        number, name = _number(where, row), _text(where, row, "workload")
        problems, digest = problems_of(name, width if isinstance(width, int) else None)
        if digest != row.get("workload_digest"):
            raise InputError(
                f"{where}: workload '{name}' has changed since the search; search again"
            )
        if number >= len(problems):
            raise InputError(
                f"{where}: no layer {number}; layers are numbered 0 to {len(problems) - 1}"
            )
        arch = arch_of(_text(where, row, "arch"))
        if arch.digest != row.get("arch_digest"):
            raise InputError(
                f"{where}: architecture '{arch.name}' has changed since the search; search again"
            )
        text = _text(where, row, "schedule")
        with InputError.at(where):
            schedule = parse_schedule(text, problems[number])
        yield Saved(where, row, problems[number], schedule, arch)


def _problems(name: str, element_bytes: int | None) -> tuple[tuple[Problem, ...], str]:
    """Load a whole workload's problems, and its digest."""
    workload = select(name, (), element_bytes).workload
    return workload.problems, workload_digest(workload)


def _number(where: str, row: Row) -> int:
    number = row.get("layer", 0)
    if not re.fullmatch(r"[0-9]{1,9}", str(number)):
        raise InputError(f"{where}: 'layer' is {str(number)[:40]!r}; a whole number is needed")
    return int(number)


def _is_meant(row: Row, layers: set[str]) -> bool:
    return not layers or bool({str(row.get("layer", 0)), str(row.get("problem"))} & layers)


def _text(where: str, row: Row, key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise InputError(f"{where}: no '{key}'; is it what 'search --out' has saved?")
    return value
