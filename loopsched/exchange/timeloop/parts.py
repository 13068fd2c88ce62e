"""One node of a machine of Timeloop, as its file has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Part:
    """One node as the file has it.

    Parameters
    ----------
    name, kind : str
    fan : int
        Copies inside one of what is around it.
    attributes, constraints : mapping
    is_parallel : bool
        Whether it stands beside others.
    target : str
        What a mapping calls its mesh; empty: by its name.
    """

    name: str
    kind: str
    fan: int
    attributes: Mapping[str, Any]
    constraints: Mapping[str, Any]
    is_parallel: bool = False
    target: str = ""
