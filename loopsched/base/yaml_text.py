"""Read YAML into plain lists, mappings and text, trusting nothing.

Every scalar stays text (no dates, no octal numbers, no `no` for false), so
the reader of the data decides what a value means and can quote it.  Built
from the parser's events: no recursion, and no object is ever constructed.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from loopsched.base.errors import InputError

MAX_DEPTH = 20
MAX_ALIASED = 100_000
# The key that holds the tag of a mapping, where tags are allowed.
TAG = "!"

Data = Any  # str, list of Data, or dict of str to Data


def parse_yaml(text: str, tags: Container[str] = (), *, merges: bool = False) -> Data:
    """Parse one YAML document; scalars stay text.

    Parameters
    ----------
    text : str
    tags : container of str
        Tags that mappings may bear, as in ``!Component``; such a mapping has
        its tag, without the mark, under the key ``!``.
    merges : bool
        Whether anchors, aliases and the keys ``<<`` (what is missing) and
        ``<<<`` (what is missing at any depth, and more items of lists) are read.

    Raises
    ------
    InputError
        If it is not YAML, is empty, holds several documents, nests too
        deeply, names a key twice, or uses anchors, aliases or other tags.

    Examples
    --------
    >>> parse_yaml("a: {b: 08, c: [no, 2020-01-01]}")
    {'a': {'b': '08', 'c': ['no', '2020-01-01']}}
    >>> parse_yaml("- !Component {name: L2}", tags=["Component"])
    [{'!': 'Component', 'name': 'L2'}]
    >>> parse_yaml("[&a {b: {c: 1}}, {<<<: *a, b: {d: 2}}]", merges=True)[1]
    {'b': {'d': '2', 'c': '1'}}
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(tags, {} if merges else None)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except yaml.YAMLError as error:
        where, _, fault = (first := _first_line(error)).partition(", ")
        if "nesting depth" in fault:  # libyaml's own limit, met while it reads ahead
            raise InputError(f"{where}: nests more than {MAX_DEPTH} levels deep") from None
        raise InputError(f"is not YAML: {first}") from None
    except UnicodeError as error:
        raise InputError(f"is not YAML: {error}") from None
    InputError.refuse("YAML", builder.faults)
    if not builder.documents:
        raise InputError("is empty")
    return builder.documents[0]


@dataclass(slots=True)
class _Builder:
    """Turns parser events into data, collecting faults with their lines."""

    tags: Container[str]
    # By name; None: anchors are not allowed.
    anchors: dict[str, Data] | None = None
    n_aliased: int = 0
    documents: list[Data] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    open: list[Data] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "AliasEvent" and self.anchors is not None:
            self._place(event, self._aliased(event))
        elif kind == "AliasEvent":
            self._fault(event, f"alias '*{event.anchor}' is not allowed; write the value out")
            self._place(event, "")
        elif kind == "ScalarEvent":
            self._check_decorations(event)
            self._keep(event, event.value)
            self._place(event, event.value)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._check_decorations(event)
            tag = event.tag[1:] if event.tag else ""
            tagged: Data = {TAG: tag} if tag and tag in self.tags else {}
            self._enter(event, tagged if kind == "MappingStartEvent" else [])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            closed = self.open.pop()
            self.keys.pop()
            if self.anchors is not None and isinstance(closed, dict):
                _merge(closed)

    def _keep(self, event: Any, value: Data) -> None:
        if event.anchor is not None and self.anchors is not None:
            self.anchors[event.anchor] = value

    def _aliased(self, event: Any) -> Data:
        """Copy what an alias names, as long as all copies together stay small."""
        where = f"line {_line(event)}: alias '*{event.anchor}'"
        if self.anchors is None or event.anchor not in self.anchors:
            raise InputError(f"{where} names nothing before it")
        found = self.anchors[event.anchor]
        if any(found is one for one in self.open):
            raise InputError(f"{where} is inside what it names")
        return self._copy(found, where, len(self.open))

    def _copy(self, value: Data, where: str, depth: int) -> Data:
        self.n_aliased += 1
        if self.n_aliased > MAX_ALIASED:
            raise InputError(f"{where}: aliases stand for more than {MAX_ALIASED} values")
        if depth > MAX_DEPTH:
            raise InputError(f"{where}: nests more than {MAX_DEPTH} levels deep")
        if isinstance(value, dict):
            return {key: self._copy(one, where, depth + 1) for key, one in value.items()}
        if isinstance(value, list):
            return [self._copy(one, where, depth + 1) for one in value]
        return value

    def _enter(self, event: Any, container: Data) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise InputError(f"line {_line(event)}: nests more than {MAX_DEPTH} levels deep")
        self._keep(event, container)
        self._place(event, container)
        self.open.append(container)
        self.keys.append(None)

    def _place(self, event: Any, value: Data) -> None:
        if not self.open:
            if self.documents:
                raise InputError(f"line {_line(event)}: a second document begins; write one")
            self.documents.append(value)
            return
        parent, key = self.open[-1], self.keys[-1]
        if isinstance(parent, list):
            parent.append(value)
        elif key is not None:
            parent[key] = value
            self.keys[-1] = None
        else:
            self._take_key(event, parent, value)

    def _take_key(self, event: Any, parent: dict[str, Data], key: Data) -> None:
        if not isinstance(key, str):
            raise InputError(f"line {_line(event)}: a key must be a word, not a list or mapping")
        if key in parent:
            self._fault(event, f"key '{key}' appears twice")
        self.keys[-1] = key

    def _check_decorations(self, event: Any) -> None:
        if event.anchor is not None and self.anchors is None:
            self._fault(event, f"anchor '&{event.anchor}' is not allowed")
        is_mapping = type(event).__name__ == "MappingStartEvent"
        if event.tag is not None and not (is_mapping and event.tag[1:] in self.tags):
            self._fault(event, f"tag '{event.tag}' is not allowed")

    def _fault(self, event: Any, message: str) -> None:
        self.faults.append(f"line {_line(event)}: {message}")


def _merge(own: dict[str, Data]) -> None:
    """Take in what a mapping's merge keys name; its own values come first."""
    for key in ("<<", "<<<"):
        bases = own.pop(key, [])
        for base in bases if isinstance(bases, list) else [bases]:
            if not isinstance(base, dict):
                raise InputError(f"'{key}' names no mapping")
            _take(own, base, is_deep=key == "<<<")


def _take(own: dict[str, Data], base: dict[str, Data], *, is_deep: bool) -> None:
    for key, value in base.items():
        mine = own.setdefault(key, value)
        if mine is value or not is_deep:
            continue
        if isinstance(mine, dict) and isinstance(value, dict):
            _take(mine, value, is_deep=True)
        elif isinstance(mine, list) and isinstance(value, list):
            mine += value


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _first_line(error: Exception) -> str:
    return ", ".join(_parts(error)) or type(error).__name__


def _parts(error: Exception) -> Iterator[str]:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        yield f"line {mark.line + 1}"
    problem = getattr(error, "problem", None) or getattr(error, "reason", None)
    if problem:
        yield str(problem)
