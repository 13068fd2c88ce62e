"""Numbers that were fitted, out of the files that are shipped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from loopsched.base.errors import LoopschedError
from loopsched.gpu.result import Spread

KERNELS = "kernel_calibration.json"
PRODUCTS = "library/calibration.json"
CONVOLUTIONS = "library/calibration_conv.json"

T = TypeVar("T")


@cache
def calibration_file(name: str) -> Mapping[str, Any]:
    """Read a shipped calibration: parameters, rows they were fitted on, errors.

    Examples
    --------
    >>> "data_types" in calibration_file(PRODUCTS)
    True
    """
    found: Mapping[str, Any] = json.loads((Path(__file__).parent / name).read_text("utf-8"))
    return found


def calibrated(kind: type[T], name: str, *place: str) -> T:
    """Make an object of the numbers that stand at a place of a shipped calibration.

    Raises
    ------
    LoopschedError
        If one of them is missing.
    """
    found: Any = calibration_file(name)
    try:
        for key in place:
            found = found[key]
        entries = fields(kind)  # type: ignore[arg-type]
        names = [e.name for e in entries if e.default is MISSING or e.name in found]
        return kind(**{name: float(found[name]) for name in names})
    except KeyError as error:
        raise LoopschedError(f"{Path(name).name}: {error} is missing") from None


def of_data_type(kind: type[T], name: str, data_type: str) -> T:
    """The same for a data type; where it has no numbers of its own, those of fp32."""
    known = calibration_file(name)["data_types"]
    return calibrated(
        kind, name, "data_types", data_type if data_type in known else "fp32", "parameters"
    )


def first_spread(name: str, keys: Iterable[str]) -> Spread:
    """Look up the first spread that a calibration has.

    Raises
    ------
    LoopschedError
        If it has none of them.
    """
    spreads = calibration_file(name)["spreads"]
    for key in keys:
        if key in spreads:
            found = spreads[key]
            return Spread(float(found["low"]), float(found["high"]), str(found["basis"]))
    raise LoopschedError(f"a calibration has none of the spreads {', '.join(keys)}")
