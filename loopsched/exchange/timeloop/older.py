"""Machines of Timeloop 0.3: trees of local components, with counts in their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loopsched.base.arguments import show
from loopsched.exchange.timeloop.parts import Part

_NAME = re.compile(r"([^\[\]]+?)\s*(?:\[\s*(\d{1,9})\s*\.\.\s*(\d{1,9})\s*\])?")
_ATTRIBUTES = {"word_bits": "datawidth", "memory_depth": "depth", "memory_width": "width"}


def tree_parts(
    section: Mapping[str, Any], kind_of: Callable[[str], str], faults: list[str]
) -> Iterator[Part]:
    """Write a tree as a row of parts, outermost first.

    Counts are of all copies inside the tree above; what is more than there was
    before is a mesh, whose loops stand at the storage outside it.

    Parameters
    ----------
    section : mapping
        With a ``subtree``.
    kind_of : callable
        Kind of a part by its class.
    faults : list of str
        Takes what is wrong.
    """
    yield from _Tree(kind_of, faults).walk(section, 1, 0)


class _Tree:
    def __init__(self, kind_of: Callable[[str], str], faults: list[str]) -> None:
        self.kind_of = kind_of
        self.faults = faults
        self.fan = 1
        self.mesh = self.outside = ""

    def walk(self, tree: Mapping[str, Any], before: int, depth: int) -> Iterator[Part]:
        for local in self.rows(tree, "local"):
            before = yield from self.local(local, before)
        inner = self.rows(tree, "subtree")
        if len(inner) > 1 or depth > 10:
            self.faults.append(f"{len(inner)} trees side by side; one inside the other is needed")
            return
        for one in inner:
            name, _ = self.counted(one, before)
            self.mesh = name
            yield Part(name, "container", 1, _attributes(one), {})
            yield from self.walk(one, 1, depth + 1)

    def local(self, local: Mapping[str, Any], before: int) -> Any:
        name, count = self.counted(local, before)
        kind = self.kind_of(str(local.get("class", "")))
        if not kind:
            self.faults.append(f"'{name}': class {show(local.get('class'))} is not known")
        if kind in ("storage", "units") and self.fan > 1:
            mesh = self.mesh or f"{name}_mesh"
            yield Part(mesh, "container", self.fan, {}, {}, target=self.outside)
            self.fan, self.mesh = 1, ""
        constraints = local.get("constraints")
        kept = constraints if isinstance(constraints, Mapping) else {}
        yield Part(name, kind or "nothing", 1, _attributes(local), kept)
        if kind in ("storage", "dummy"):
            self.outside, self.mesh = name, ""
        return count

    def rows(self, tree: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        found = tree.get(key, [])
        if isinstance(found, list) and all(isinstance(one, Mapping) for one in found):
            return found
        self.faults.append(f"'{key}' is {show(found)}; a list of mappings is needed")
        return []

    def counted(self, one: Mapping[str, Any], before: int) -> tuple[str, int]:
        """Read a name such as PE[0..15]; the mesh before it grows by the copies."""
        text = one.get("name")
        match = _NAME.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            self.faults.append(f"name is {show(text)}; a form like PE or PE[0..15] is needed")
            return "unnamed", before
        name = match[1].rpartition(".")[2]  # the back end puts the tree before it
        count = int(match[3]) - int(match[2]) + 1 if match[2] else 1
        if count < before or count % before:
            self.faults.append(f"'{text}': {count} copies inside {before} others")
            return name, before
        self.fan *= count // before
        return name, count


def _attributes(one: Mapping[str, Any]) -> dict[str, Any]:
    found = one.get("attributes")
    if not isinstance(found, Mapping):
        return {}
    plain = {str(key).replace("-", "_"): value for key, value in found.items()}
    return {_ATTRIBUTES.get(key, key): value for key, value in plain.items()}
