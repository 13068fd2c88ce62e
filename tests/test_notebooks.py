"""The gallery of notebooks is run, and gives what it shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import loopsched
import notebooks
from loopsched.base.display import Shown
from loopsched.show.notebook import _WRITERS


@pytest.mark.parametrize("path", notebooks.files(), ids=lambda path: path.stem)
def test_a_notebook_gives_what_it_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["cells"][0]["cell_type"]) == (4, "markdown")
    shown = [cell["outputs"] for cell in book["cells"] if notebooks.is_code(cell)]
    assert any(shown)
    assert notebooks.outputs(path) == shown


def test_there_is_one_for_each_kind_of_user_and_the_front_names_it() -> None:
    names = {path.stem for path in notebooks.files()}
    assert names == {"kernel_engineer", "architect", "researcher", "laptop"}
    root = notebooks.FOLDER.parent
    for page in ("README.md", "docs/index.md"):
        text = (root / page).read_text(encoding="utf-8")
        assert all(f"notebooks/{name}.ipynb" in text for name in names)


def test_all_that_notebooks_show_has_something_to_show() -> None:
    """Each class that says it is shown in a notebook has what writes it."""
    for name in loopsched.__all__:
        value = getattr(loopsched, name)
        if isinstance(value, type) and issubclass(value, Shown):
            assert {each.__name__ for each in value.__mro__} & set(_WRITERS), name
    h100 = loopsched.load_arch("h100")
    found = loopsched.pick(loopsched.gemm(m=64, n=64, k=64), h100, top=2)
    assert found._repr_html_().count("<tr>") == 3
    table = loopsched.dispatch(64, 64, h100, most_m=4)
    assert "regret" in table._repr_html_()
