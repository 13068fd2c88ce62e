"""Timeloop's text as data: files that it includes, anchors and merges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopsched.base.errors import InputError
from loopsched.base.files import MEBIBYTE, read_text
from loopsched.base.yaml_text import parse_yaml

TAGS = ("Component", "Container", "Hierarchical", "Parallel", "Pipelined", "Nothing")
_INCLUDED = re.compile(r"""\{\{\s*include_text\(\s*(['"])([^'"{}]+)\1\s*\)\s*\}\}""")
_MOST_DEEP = 5


def parsed(text: str, folder: Path | None = None) -> Mapping[str, Any]:
    """Read Timeloop's YAML.

    Parameters
    ----------
    text : str
    folder : path, optional
        Where ``include_text`` looks; without it, nothing is included.

    Raises
    ------
    InputError
        If it is not YAML, or needs more of a template than ``include_text``.

    Examples
    --------
    >>> parsed("base_ignore: &b {x: {y: 1, z: 2}}" + chr(10) + "it: {<<<: *b, x: {y: 3}}")["it"]
    {'x': {'y': '3', 'z': '2'}}
    """
    text = _included(text, folder, 0)
    if "{{" in text or "{%" in text:
        at = min(place for place in (text.find("{{"), text.find("{%")) if place >= 0)
        line = text[at:].partition("\n")[0][:60]
        raise InputError(f"holds a template ({line}); render it first (include_text alone is read)")
    data = parse_yaml(text, TAGS, merges=True)
    if not isinstance(data, Mapping):
        raise InputError("a mapping of sections is needed: problem, architecture, mapping")
    return data


def _included(text: str, folder: Path | None, depth: int) -> str:
    if folder is None or not _INCLUDED.search(text):
        return text
    if depth == _MOST_DEEP:
        raise InputError(f"include_text goes more than {_MOST_DEEP} files deep")

    def content(found: re.Match[str]) -> str:
        path = folder / found[2]
        inner = read_text(path, "a file to include", most_bytes=MEBIBYTE)
        return _included(inner, path.parent, depth + 1)

    full = _INCLUDED.sub(content, text)
    if len(full) > 4 * MEBIBYTE:
        raise InputError("what include_text brings in is more than 4 MiB")
    return full
