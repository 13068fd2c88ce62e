"""The reports' printed tables, as shipped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "data"


def printed(name: str) -> Mapping[str, Any]:
    """Read a report's printed tables: ``name``, ``title``, ``source`` and ``tables``.

    Examples
    --------
    >>> [table["name"] for table in printed("report_000")["tables"]]
    ['block', 'channel', 'kernel', 'size']
    """
    found: Mapping[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found
