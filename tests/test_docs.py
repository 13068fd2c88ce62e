"""Every example in the documentation is run: Python blocks and commands of the shell."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import console
import pytest

import loopsched

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
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


def test_every_public_name_has_its_place_in_the_reference() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    shown = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)$", pages, re.MULTILINE)
    assert sorted(shown) == sorted(set(loopsched.__all__) - {"__version__"})


def test_every_public_function_says_what_else_to_read() -> None:
    for name in loopsched.__all__:
        one = getattr(loopsched, name)
        if inspect.isfunction(one):
            said = re.search(r"See Also\n-+\n((?:.+\n?)+)", inspect.getdoc(one) or "")
            assert said, name
            names = re.split(r",\s*|\n", re.sub(r" :.*|\n    .*", "", said[1].strip()))
            assert set(names) - {""} <= set(loopsched.__all__) - {name}, name


@pytest.mark.project
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", tmp_path / "trees"]
    done = subprocess.run(
        [*build, ROOT / "docs", tmp_path / "site"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/api/search.html").is_file()
    # What commands print is no code: only prompts and commands are set off.
    tutorial = (tmp_path / "site/tutorial.html").read_text(encoding="utf-8")
    shown = re.findall(r'<div class="highlight-console.*?</pre>', tutorial, re.DOTALL)
    assert len(shown) > 3
    assert set(re.findall(r'<span class="(\w+)">', "".join(shown))) == {"gp", "gs", "g"}
