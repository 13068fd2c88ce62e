"""What Timeloop's files have no room for, kept in a key that it ignores.

Timeloop's front end passes over every key that contains the word ``ignore``.
Under such a key each section carries what loopsched needs to read it back
exactly, and a digest of the rest of the section: if that was edited since,
the note no longer speaks for it and is passed over by us, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from loopsched.exchange.yaml_out import float_text

NOTE = "ignore_loopsched"


def digest(section: object) -> str:
    """Hash a section as it reads from its file, without notes.

    Examples
    --------
    >>> digest({"a": 1, NOTE: "x"}) == digest({"a": "1"})
    True
    """
    text = json.dumps(_as_read(section), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _as_read(value: object) -> object:
    """Turn every scalar into the text that a file has for it."""
    if isinstance(value, Mapping):
        return {key: _as_read(item) for key, item in value.items() if key != NOTE}
    if isinstance(value, (list, tuple)):
        return [_as_read(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_text(value) if isinstance(value, float) else str(value)


def note_text(section: object, content: Mapping[str, Any]) -> str:
    """Write the note of a section: one line of JSON.

    Examples
    --------
    >>> note_text({"a": 1}, {"name": "x"})
    '{"about": "...", "name": "x"}'
    """
    return json.dumps({"about": digest(section), **content})


def read_note(section: object) -> tuple[dict[str, Any] | None, bool]:
    """Read the note of a section.

    Returns
    -------
    (dict or None, bool)
        What the note says if it still speaks for the section; and whether
        there is one that no longer does.
    """
    holders = section if isinstance(section, list) else [section]
    texts = [one[NOTE] for one in holders if isinstance(one, Mapping) and NOTE in one]
    if not texts:
        return None, False
    try:
        found = json.loads(texts[0])
    except (TypeError, ValueError, RecursionError):
        return None, True
    if not isinstance(found, dict) or found.get("about") != digest(section):
        return None, True
    return found, False
