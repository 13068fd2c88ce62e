"""Every example in the documentation is run: Python blocks and commands of the shell."""

from __future__ import annotations

import doctest
from pathlib import Path

import console
import pytest

DOCS = sorted((Path(__file__).parent.parent / "docs").glob("*.md"))
TEXTS = {page: page.read_text(encoding="utf-8") for page in DOCS}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages write where their reader is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_python_prints_what_the_page_says(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=console.FLAGS)
    assert failed == 0


@pytest.mark.parametrize(
    "page", [page for page in DOCS if "```console" in TEXTS[page]], ids=lambda page: page.name
)
def test_commands_print_what_the_page_says(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, output in console.commands(TEXTS[page]):
        console.check(command, output, capsys)


def test_the_model_page_has_examples() -> None:
    text = next(text for page, text in TEXTS.items() if page.name == "model.md")
    assert len(doctest.DocTestParser().get_examples(text)) >= 5
