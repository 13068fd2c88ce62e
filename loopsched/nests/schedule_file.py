"""Schedules as JSON: a list of loops, outermost first.

The form is ``{"loops": [{"dim": "M", "extent": 128, "unit": "SM"}, ...]}``,
without ``unit`` for a temporal loop; older files call it ``level``.  A schedule that
places tiles one by one has a second key,
``{"places": [{"position": 1, "level": "L1", "tensor": "A"}, ...]}``: loops outside the
tile, and the scratchpad that holds it; position -1 says that the tensor passes the level.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from loopsched.base.arguments import is_count, show
from loopsched.base.errors import ScheduleError, nearest
from loopsched.base.files import MEBIBYTE, read_text
from loopsched.nests.nest import Loop, Place, Schedule
from loopsched.problems.problem import Problem

_MAX_DIGITS = 20
_LOOP_KEYS = ("dim", "extent", "unit")
_OLD_UNIT = "level"
_PLACE_KEYS = ("position", "level", "tensor")


def schedule_to_dict(schedule: Schedule) -> dict[str, object]:
    """Turn a schedule into plain values, ready for JSON.

    Examples
    --------
    >>> schedule_to_dict(Schedule((Loop("M", 8, "SM"), Loop("M", 2))))
    {'loops': [{'dim': 'M', 'extent': 8, 'unit': 'SM'}, {'dim': 'M', 'extent': 2}]}
    """
    loops = []
    for loop in schedule.loops:
        plain: dict[str, object] = {"dim": loop.dim, "extent": loop.extent}
        if loop.unit is not None:
            plain["unit"] = loop.unit
        loops.append(plain)
    found: dict[str, object] = {"loops": loops}
    if schedule.places:
        found["places"] = [asdict(place) for place in schedule.places]
    return found


def schedule_from_dict(
    data: object, problem: Problem | None = None, *, where: str = "schedule"
) -> Schedule:
    """Build a schedule from plain values, as `schedule_to_dict` makes them.

    Parameters
    ----------
    data : object
    problem : Problem, optional
        If given, the schedule must cover it.
    where : str
        What the values come from, for the message.

    Raises
    ------
    ScheduleError
        With every fault found.

    Examples
    --------
    >>> print(schedule_from_dict({"loops": [{"dim": "M", "extent": 8}]}))
    M:8
    """
    loops, faults = _loops(data)
    places = _places(data, faults)
    if faults:
        raise ScheduleError.joined(where, faults)
    try:
        schedule = Schedule(tuple(loops), tuple(places))
        return schedule if problem is None else schedule.check(problem)
    except ScheduleError as fault:
        raise ScheduleError.joined(where, fault.problems) from None


def read_schedule_dict(path: str | os.PathLike[str], problem: Problem | None = None) -> Schedule:
    """Read a JSON file that holds one schedule.

    Parameters
    ----------
    path : str or path
    problem : Problem, optional
        If given, the schedule must cover it.

    Raises
    ------
    ScheduleError
        If the file cannot be read, is not JSON or holds no valid schedule.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "schedule.json")
    ...     _ = path.write_text('{"loops": [{"dim": "M", "extent": 8}]}')
    ...     print(read_schedule_dict(path))
    M:8
    """
    where = os.fspath(path)
    text = read_text(path, "a schedule", most_bytes=MEBIBYTE, error=ScheduleError)
    return schedule_from_dict(_json(where, text), problem, where=where)


def _json(path: str, text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_int=_whole)
    except json.JSONDecodeError as fault:
        raise ScheduleError(
            f"{path}: line {fault.lineno}, column {fault.colno}: not JSON: {fault.msg}"
        ) from None
    except RecursionError:
        raise ScheduleError(f"{path}: nested too deeply; a schedule has two levels") from None
    except ValueError as fault:
        raise ScheduleError(f"{path}: {fault}") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {show(key)} is given twice in one object; keep one")
        found[key] = value
    return found


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits; at most {_MAX_DIGITS} are allowed")
    return int(digits)


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not a number that JSON knows; a whole number is needed")


def _loops(data: object) -> tuple[list[Loop], list[str]]:
    if not isinstance(data, Mapping):
        return [], [f'found {show(data)}; an object is needed, {{"loops": [..]}}']
    known = ("loops", "places")
    faults = [f"unknown key {show(key)}; {_meant(key, known)}" for key in data if key not in known]
    if "loops" not in data:
        return [], [*faults, "no key 'loops'; it holds the loops, outermost first"]
    entries = data["loops"]
    if not isinstance(entries, list | tuple):
        return [], [*faults, f"loops is {show(entries)}; a list is needed"]
    loops = []
    for position, entry in enumerate(entries):
        found = list(_entry_faults(entry))
        faults += [f"loops[{position}]: {fault}" for fault in found]
        if not found:
            loops.append(Loop(entry["dim"], entry["extent"], _unit(entry)))
    return loops, faults


def _entry_faults(entry: object) -> Iterable[str]:
    if not isinstance(entry, Mapping):
        yield f'found {show(entry)}; an object is needed, {{"dim": "K", "extent": 64}}'
        return
    for key in entry:
        if key not in (*_LOOP_KEYS, _OLD_UNIT):
            yield f"unknown key {show(key)}; {_meant(key, _LOOP_KEYS)}"
    for key in ("dim", "extent"):
        if key not in entry:
            yield f"no key '{key}'; it is needed"
    if "dim" in entry and not _is_word(entry["dim"]):
        yield f"dim is {show(entry['dim'])}; a plain word is needed"
    extent = entry.get("extent", 1)
    if not is_count(extent):
        yield f"extent is {show(extent)}; a whole number >= 1 is needed"
    unit = _unit(entry)
    if unit is not None and not _is_word(unit):
        yield f"unit is {show(unit)}; the name of a unit is needed, or none"
    if "unit" in entry and _OLD_UNIT in entry:
        yield f"unit and {_OLD_UNIT}, which older files have in its place, are both given"


def _unit(entry: Mapping[str, Any]) -> Any:
    return entry.get("unit", entry.get(_OLD_UNIT))


def _places(data: object, faults: list[str]) -> list[Place]:
    entries = data.get("places", ()) if isinstance(data, Mapping) else ()
    if not isinstance(entries, list | tuple):
        faults.append(f"places is {show(entries)}; a list is needed")
        return []
    places = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or set(entry) != set(_PLACE_KEYS):
            faults.append(
                f'places[{number}]: found {show(entry)}; {{"position": 1, "level": "L1", '
                '"tensor": "A"} is needed'
            )
        else:
            places.append(Place(**entry))
    return places


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _meant(key: object, allowed: tuple[str, ...]) -> str:
    return nearest(key[:40] if isinstance(key, str) else "", allowed)
