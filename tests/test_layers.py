"""Packages import downwards only, and no module imports itself by way of others.

Every import counts: at the top of a file, inside a function, and for type checkers.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "loopsched"
TABLE = (ROOT / "docs" / "structure.md").read_text(encoding="utf-8")
ORDER = re.findall(r"^\| `(\w+)` \|", TABLE, re.MULTILINE)


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(text: str) -> list[tuple[str, str]]:
    """Modules that a file imports, each with the name that it takes from there."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(each.name, "") for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name the whole path"
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                found.append((inner, "") if inner in FILES else (node.module or "", each.name))
    return [(module, name) for module, name in found if module.split(".")[0] == "loopsched"]


@cache
def edges() -> dict[str, list[tuple[str, str]]]:
    return {
        module: imports_of(path.read_text(encoding="utf-8"))
        for module, path in FILES.items()
        if module not in ("loopsched", "loopsched.__main__")
    }


def floor(module: str) -> int:
    parts = module.split(".")
    return ORDER.index(parts[1]) if len(parts) > 1 else len(ORDER)


def test_every_package_has_its_place() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(ORDER) == sorted(folders)
    assert sorted(path.name for path in PACKAGE.glob("*.py")) == ["__init__.py", "__main__.py"]


@pytest.mark.parametrize("package", ORDER)
def test_imports_run_downwards(package: str) -> None:
    upwards = [
        f"{module} imports {other}"
        for module, others in edges().items()
        if module.split(".")[1] == package
        for other, _ in others
        if floor(other) > floor(module)
    ]
    assert upwards == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = nx.DiGraph((module, other) for module, others in edges().items() for other, _ in others)
    circles = [sorted(each) for each in nx.strongly_connected_components(graph) if len(each) > 1]
    assert circles == []


def test_private_names_stay_in_their_package() -> None:
    strayed = [
        f"{module} imports {name or other}"
        for module, others in edges().items()
        for other, name in others
        for leaf in [name or other.rpartition(".")[2]]
        if leaf.startswith("_") and not leaf.startswith("__")
        if (other if name else other.rpartition(".")[0]).split(".")[1] != module.split(".")[1]
    ]
    assert strayed == []


def test_imports_of_all_kinds_are_seen() -> None:
    text = """
import loopsched.base.errors
if TYPE_CHECKING:
    from loopsched.nests import nest
def f():
    from loopsched.machines.arch import Arch
    import numpy
"""
    assert imports_of(text) == [
        ("loopsched.base.errors", ""),
        ("loopsched.nests.nest", ""),
        ("loopsched.machines.arch", "Arch"),
    ]
