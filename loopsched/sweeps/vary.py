"""Variations of a machine: values, ranges and factors of its numbers, combined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Literal

from loopsched.base.arguments import Checker, near, show
from loopsched.base.errors import ArchError, gathered
from loopsched.base.units import (
    format_capacity,
    format_decimal,
    parse_bandwidth,
    parse_bytes,
    parse_frequency,
)
from loopsched.machines.arch import Arch
from loopsched.study.points import LEAST_FACTOR, MOST_FACTOR, MOST_POINTS

Combine = Literal["product", "zip"]
COMBINE: tuple[Combine, ...] = ("product", "zip")
SCALES = ("linear", "log")
RANGE = ("from", "to", "steps", "scale")
MOST_STEPS = 1000
# Enough to tell any two machines apart, few enough that every computer agrees on them.
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Setting:
    """One number of a machine: a value in its base unit, or a factor."""

    key: str
    value: float | int
    is_factor: bool = False

    def of(self, arch: Arch) -> Arch:
        """Change a machine."""
        change = arch.scaled if self.is_factor else arch.with_value
        return change(self.key, self.value)

    def text(self, digits: int = 4) -> str:
        """Name the change for people."""
        if self.is_factor:
            return f"{self.key}*{self.value:.{digits}g}"
        return f"{self.key}={shown(self.key, self.value, digits)}"


def variable_keys(arch: Arch) -> tuple[str, ...]:
    """List the numbers that a search of schedules looks at.

    Examples
    --------
    >>> from loopsched import buffer_arch
    >>> variable_keys(buffer_arch(capacity_bytes=64))[:2]
    ('DRAM.bandwidth', 'buffer.capacity')
    """
    return tuple(key for key in arch.keys if not key.startswith("gpu."))


def read_vary(
    check: Checker, place: str, data: object, arch: Arch, combine: Combine
) -> list[tuple[Setting, ...]]:
    """Read which numbers are to take which values; list their combinations.

    Examples
    --------
    >>> from loopsched import buffer_arch
    >>> from loopsched.base.errors import SweepError
    >>> check = Checker("example", SweepError)
    >>> vary = {"buffer.capacity": ["1 KiB", "2 KiB"], "compute.macs": {"factors": ["1", "2"]}}
    >>> arch = buffer_arch(capacity_bytes=64)
    >>> for each in read_vary(check, "vary", vary, arch, "product"):
    ...     print(*(one.text() for one in each))
    buffer.capacity=1 KiB compute.macs*1
    buffer.capacity=1 KiB compute.macs*2
    buffer.capacity=2 KiB compute.macs*1
    buffer.capacity=2 KiB compute.macs*2
    """
    if not isinstance(data, Mapping) or not data:
        check.fault(
            f"{place} is {show(data)}; parameters of the machine with their values are needed"
        )
        return []
    keys = variable_keys(arch)
    known = {key.casefold(): key for key in keys}
    columns: dict[str, list[Setting]] = {}
    for given, values in data.items():
        key = known.get(str(given).casefold())
        if key is None:
            check.fault(_unknown(place, str(given), arch))
        elif key in columns:
            check.fault(f"{place}: '{key}' is given twice")
        else:
            columns[key] = _read_values(check, f"{place}.{key}", key, values)
    return _combined(check, place, list(columns.values()), combine)


def _unknown(place: str, given: str, arch: Arch) -> str:
    if given.casefold() in {key.casefold() for key in arch.keys}:
        return f"{place}: '{given}' bears on kernels only; no search of schedules looks at it"
    return f"{place}: '{arch.name}' has no '{given}'; {near(given, variable_keys(arch))}"


def _combined(
    check: Checker, place: str, columns: Sequence[Sequence[Setting]], combine: Combine
) -> list[tuple[Setting, ...]]:
    lengths = [len(column) for column in columns]
    if combine == "zip":
        if len(set(lengths)) > 1 and not check.faults:
            check.fault(
                f"{place}: zip needs equally many values of each parameter, not "
                f"{' and '.join(map(str, lengths))}"
            )
            return []
        return list(dict.fromkeys(zip(*columns, strict=False)))
    total = prod(lengths)
    if total > MOST_POINTS:
        check.fault(f"{place}: {total} machines; at most {MOST_POINTS} are allowed")
        return []
    return list(dict.fromkeys(product(*columns)))


def _read_values(check: Checker, place: str, key: str, data: object) -> list[Setting]:
    """Read a list, a range, or factors that are one of these."""
    is_factor = isinstance(data, Mapping) and "factors" in data
    if isinstance(data, Mapping) and is_factor:
        if len(data) > 1:
            check.fault(f"{place}: 'factors' stands alone, not with {show(sorted(data)[0])}")
            return []
        data, place = data["factors"], f"{place}.factors"
    if isinstance(data, Mapping):
        return [Setting(key, value, is_factor) for value in _range(check, place, key, data)]
    if isinstance(data, list | tuple) and not data:
        check.fault(f"{place}: no values")
    given = data if isinstance(data, list | tuple) else [data]
    places = [f"{place}[{i}]" for i in range(len(given))] if given is data else [place]
    if is_factor:
        found = [_factor(check, at, one) for at, one in zip(places, given, strict=True)]
    else:
        found = [_value(check, at, key, one) for at, one in zip(places, given, strict=True)]
    return [Setting(key, value, is_factor) for value in found if value is not None]


def _range(check: Checker, place: str, key: str, data: Mapping[Any, Any]) -> Iterator[float | int]:
    n_faults = len(check.faults)
    for name in data:
        if name not in RANGE:
            check.fault(f"{place}: unknown field {show(name)}; {near(name, (*RANGE, 'factors'))}")
    for name in RANGE[:3]:
        if name not in data:
            check.fault(f"{place}: no '{name}'; a range has from, to, steps, and may have scale")
    is_factor = place.endswith(".factors")
    ends = []
    for name in ("from", "to"):
        at = f"{place}.{name}"
        if name in data:
            one = data[name]
            ends.append(_factor(check, at, one) if is_factor else _value(check, at, key, one))
    steps = whole(check, f"{place}.steps", data.get("steps", 2), 2, MOST_STEPS)
    scale = check.choice(f"{place}.scale", data.get("scale", "linear"), SCALES)
    if len(check.faults) > n_faults:
        return
    low, high = (float(end or 0) for end in ends)
    is_whole = not is_factor and _is_whole(key)
    for step in range(steps):
        share = step / (steps - 1)
        value = low * (high / low) ** share if scale == "log" else low + (high - low) * share
        yield max(1, round(value)) if is_whole else float(f"{value:.{_DIGITS}g}")


def whole(check: Checker, place: str, value: object, least: int, most: int) -> int:
    """Check a whole number, given as such or as text."""
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal() and len(value) < 20:
        value = int(value)
    found = check.count(place, value, least)
    if found > most:
        check.fault(f"{place} is {show(value)}; at most {most} is allowed")
        return most
    return found


def _factor(check: Checker, place: str, value: object) -> float | None:
    number = _number(value)
    if number is None or not LEAST_FACTOR <= number <= MOST_FACTOR:
        allowed = f"from {LEAST_FACTOR:g} to {MOST_FACTOR:g}"
        check.fault(f"{place} is {show(value)}; a factor {allowed} is needed")
        return None
    return number


def _value(check: Checker, place: str, key: str, value: object) -> float | int | None:
    """Read a number of a machine: text with its unit, or in base units."""
    field = key.rpartition(".")[2]
    if field == "units":
        return whole(check, place, value, 1, 10**9)
    number = None if isinstance(value, str) and field != "macs" else _number(value)
    if number is not None and number > 0:
        return round(number) if _is_whole(key) else number
    if field == "macs":
        check.fault(f"{place} is {show(value)}; a number above zero is needed")
        return None
    with gathered(check.faults, f"{place}: "):
        return _PARSERS[field](value)
    return None


_PARSERS = {"capacity": parse_bytes, "bandwidth": parse_bandwidth, "clock": parse_frequency}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _is_whole(key: str) -> bool:
    return key.endswith((".capacity", ".units"))


def shown(key: str, value: float | int, digits: int = 4) -> str:
    """Write one of a machine's numbers with its unit.

    Examples
    --------
    >>> shown("L2.capacity", 98304.0), shown("DRAM.bandwidth", 1e12), shown("compute.units", 80.0)
    ('96 KiB', '1 TB/s', '80')
    """
    if key.endswith(".capacity"):
        return format_capacity(int(value))
    if key.endswith(".bandwidth"):
        return format_decimal(value, "B/s", digits)
    return format_decimal(value, "Hz", digits) if key.endswith(".clock") else f"{value:.{digits}g}"


def changed(arch: Arch, settings: Sequence[Setting], check: Checker, place: str) -> Arch | None:
    """Apply settings one after another; note why such a machine cannot be."""
    for one in settings:
        try:
            arch = one.of(arch)
        except ArchError as error:
            check.faults += [f"{place}: {one.text()}: {fault}" for fault in error.problems]
            return None
    return arch
