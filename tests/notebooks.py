"""Run notebooks: each cell as Jupyter would, its printed text and its value kept.

python -m tests.notebooks            say which no longer give what they hold
python -m tests.notebooks --write    run them and keep what they give
"""

from __future__ import annotations

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "notebooks"
Cell = dict[str, Any]


def files() -> list[Path]:
    """List the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def outputs(path: Path) -> list[list[Cell]]:
    """Run a notebook from top to bottom in a namespace of its own; give what cells print."""
    space: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if is_code(cell)]
    return [_run("".join(cell["source"]), space) for cell in code]


def is_code(cell: Cell) -> bool:
    """Whether a cell is run."""
    return bool(cell["cell_type"] == "code")


def _run(source: str, space: dict[str, Any]) -> list[Cell]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), space)
        value = (
            None
            if last is None
            else eval(compile(ast.Expression(last.value), "cell", "eval"), space)
        )
    found: list[Cell] = []
    if printed.getvalue():
        found.append(
            {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
        )
    if value is not None:
        is_shown = hasattr(value, "_repr_html_")
        data = {"text/plain": [f"<{type(value).__name__}>"] if is_shown else _lines(repr(value))}
        if is_shown:
            data["text/html"] = _lines(value._repr_html_())
        found.append(
            {"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}
        )
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written(path: Path) -> str:
    """Write a notebook with what its cells give now."""
    book = json.loads(path.read_text("utf-8"))
    for cell, found in zip(filter(is_code, book["cells"]), outputs(path), strict=True):
        cell["outputs"] = found
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Check or write all notebooks."""
    changed = []
    for path in files():
        text = written(path)
        if text != path.read_text("utf-8"):
            changed.append(path.name)
            if "--write" in sys.argv:
                path.write_text(text, "utf-8")
    print("changed:", *changed or ["none"])
    return 1 if changed and "--write" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
