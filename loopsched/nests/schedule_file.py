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
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from loopsched.base.arguments import near, show
from loopsched.base.errors import ScheduleError, gathered
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
    if not isinstance(data, Mapping):
        raise ScheduleError(f'{where}: found {show(data)}; an object is needed, {{"loops": [..]}}')
    known = ("loops", "places")
    faults = [f"unknown key {show(key)}; {near(key, known)}" for key in data if key not in known]
    if "loops" not in data:
        faults.append("no key 'loops'; it holds the loops, outermost first")
    loops = [Loop(**entry) for entry in _entries(data, "loops", _LOOP_KEYS, faults)]
    places = [Place(**entry) for entry in _entries(data, "places", _PLACE_KEYS, faults)]
    schedule = Schedule(())
    with gathered(faults):
        schedule = Schedule(tuple(loops), () if faults else tuple(places))
        if problem is not None and not faults:
            schedule.check(problem)
    ScheduleError.refuse(where, faults)
    return schedule


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


def _entries(
    data: Mapping[str, Any], name: str, known: tuple[str, ...], faults: list[str]
) -> Iterator[dict[str, Any]]:
    """List the objects under a key that can be read; of the others, say what is wrong."""
    entries = data.get(name, ())
    if not isinstance(entries, list | tuple):
        faults.append(f"{name} is {show(entries)}; a list is needed")
        return
    for at, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            faults.append(f"{name}[{at}]: found {show(entry)}; an object is needed")
            continue
        found = dict(entry)
        if known is _LOOP_KEYS and _OLD_UNIT in found:
            found["unit"] = found.pop(_OLD_UNIT)
        strange = [key for key in found if key not in known]
        wrong = [f"unknown key {show(key)}; {near(key, known)}" for key in strange]
        wrong += [f"no key '{key}'; it is needed" for key in known if key not in (*found, "unit")]
        if len(found) < len(entry):
            wrong.append(
                f"unit and {_OLD_UNIT}, which older files have in its place, are both given"
            )
        faults += [f"{name}[{at}]: {fault}" for fault in wrong]
        if not wrong:
            yield found
