"""Write plain data as YAML: the same bytes for the same data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from loopsched.base.yaml_text import TAG

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./=-]*(?:[ ][A-Za-z0-9_./=-]+)*")
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null"))
_WIDTH = 96


def to_yaml(data: Mapping[str, Any]) -> str:
    r"""Write a mapping as a YAML document.

    Parameters
    ----------
    data : mapping
        Of text, numbers, truth values, lists and mappings.  The key ``!``
        holds the tag of its mapping.

    Examples
    --------
    >>> data = {"version": 0.4, "nodes": [{"!": "Component", "name": "L2", "size": [1, 2]}]}
    >>> print(to_yaml(data), end="")
    version: 0.4
    nodes:
    - !Component
      name: L2
      size: [1, 2]
    """
    return "\n".join(_mapping(data)) + "\n"


def list_to_yaml(items: list[Any]) -> str:
    """Write a list as a YAML document.

    Examples
    --------
    >>> print(list_to_yaml([{"id": 0, "dims": [[1, 2], [3, 4]]}]), end="")
    - id: 0
      dims: [[1, 2], [3, 4]]
    """
    return "\n".join(_items(items)) + "\n"


def _mapping(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if key == TAG:
            continue
        flat = _flat(value)
        if flat is not None and (isinstance(value, str) or len(flat) + len(key) < _WIDTH):
            yield f"{_scalar(key)}: {flat}"
            continue
        yield f"{_scalar(key)}:"
        if isinstance(value, Mapping):
            yield from (f"  {line}" for line in _mapping(value))
        else:
            yield from _items(value)


def _items(items: list[Any]) -> Iterator[str]:
    for item in items:
        flat = None if isinstance(item, Mapping) else _flat(item)
        if flat is not None and (isinstance(item, str) or len(flat) < _WIDTH):
            yield f"- {flat}"
            continue
        lines = list(_mapping(item) if isinstance(item, Mapping) else _items(item))
        if isinstance(item, Mapping) and TAG in item:
            lines.insert(0, f"!{item[TAG]}")
        yield f"- {lines[0]}"
        yield from (f"  {line}" for line in lines[1:])


def _flat(value: Any) -> str | None:
    """Write a scalar, or what is short, on one line; None: it takes several."""
    if isinstance(value, Mapping):
        if TAG in value:
            return None
        parts = [(_scalar(key), _flat(item)) for key, item in value.items()]
        if any(item is None for _, item in parts):
            return None
        return "{" + ", ".join(f"{key}: {item}" for key, item in parts) + "}"
    if isinstance(value, (list, tuple)):
        items = [None if isinstance(item, Mapping) else _flat(item) for item in value]
        flat = [item for item in items if item is not None]
        return f"[{', '.join(flat)}]" if len(flat) == len(items) else None
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return str(value)
    escaped = "".join(_escaped(letter) for letter in value)
    return f'"{escaped}"'


def float_text(value: float) -> str:
    """Write a number so that every YAML reader takes it for one.

    Examples
    --------
    >>> float_text(1e-9), float_text(0.5)
    ('1.0e-09', '0.5')
    """
    text = repr(value)
    mantissa, e, power = text.partition("e")
    return f"{mantissa}.0e{power}" if e and "." not in mantissa else text


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\u{ord(letter):04x}"
