"""The package's front: what it exports, and what importing it does not load."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import loopsched

HEAVY = {"numpy", "numba", "networkx", "pydantic", "matplotlib", "yaml", "pandas"}
SOURCE = Path(loopsched.__file__)
EXPORTED = [name for name in loopsched.__all__ if name != "__version__"]


def modules_after(code: str) -> set[str]:
    """Run code in a new interpreter and return the top-level modules it then holds."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stdout.split()}


def typed_exports() -> dict[str, str]:
    """Names that the stub imports, with their modules."""
    tree = ast.parse(SOURCE.with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: (node.module or "").removeprefix("loopsched.")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_import_loads_no_heavy_library() -> None:
    loaded = modules_after("import loopsched")
    assert "loopsched" in loaded
    assert not loaded & (HEAVY | {"click"})


def test_describing_a_problem_loads_no_heavy_library() -> None:
    code = "import loopsched; loopsched.gemm(m=4, n=3, k=2).macs; dir(loopsched)"
    assert not modules_after(code) & HEAVY


@pytest.mark.parametrize("name", EXPORTED)
def test_exported_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(loopsched, name)
    assert value.__name__ == name
    assert inspect.getdoc(value)


def test_signatures_show_no_private_fields() -> None:
    for name in loopsched.__all__:
        kind = getattr(loopsched, name)
        if dataclasses.is_dataclass(kind):
            shown = inspect.signature(kind).parameters
            assert [one for one in shown if one.startswith("_")] == [], name


def test_types_and_lazy_imports_agree() -> None:
    assert typed_exports() == loopsched._HOMES


def test_no_module_hides_an_exported_function() -> None:
    # Importing a submodule sets it as an attribute of the package, over the export.
    assert not [name for name in EXPORTED if find_spec(f"loopsched.{name}")]


def test_dir_lists_every_export() -> None:
    assert set(loopsched.__all__) <= set(dir(loopsched))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        _ = loopsched.serach  # type: ignore[attr-defined]


def test_every_module_has_a_docstring() -> None:
    package = SOURCE.parent
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if parts[-1] == "__main__":
            continue
        module = import_module(".".join(part for part in parts if part != "__init__"))
        assert module.__doc__, f"{path} has no docstring"
