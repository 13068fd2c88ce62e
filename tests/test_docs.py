"""Every example in the documentation is run: Python blocks and commands of the shell."""

from __future__ import annotations

import doctest
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import console
import pytest

import loopsched

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
TEXTS = {page: page.read_text(encoding="utf-8") for page in DOCS}
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "trees"]
    done = subprocess.run([*build, ROOT / "docs", folder / "site"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.mark.project
def test_the_site_builds_without_a_warning(site: Path) -> None:
    assert (site / "api/search.html").is_file()
    # No reference by a made-up name, no signature with a function's address.
    pages = [page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html")]
    assert not [one for one in pages if re.search(r"\[R[0-9a-f]{8,}|&lt;function|&lt;lambda", one)]
    # No private argument in a signature, no line that ends between a number and its %.
    arguments = re.findall(r"<em class=\"sig-param\">.*?</em>", "".join(pages), re.DOTALL)
    assert len(arguments) > 100
    assert not [one for one in arguments if re.search(r">_\w+<", one)]
    assert "65.3\N{NO-BREAK SPACE}%" in (site / "reports.html").read_text(encoding="utf-8")
    # What commands print is no code: only prompts and commands are set off.
    tutorial = (site / "tutorial.html").read_text(encoding="utf-8")
    shown = re.findall(r'<div class="highlight-console.*?</pre>', tutorial, re.DOTALL)
    assert len(shown) > 3
    assert set(re.findall(r'<span class="(\w+)">', "".join(shown))) == {"gp", "gs", "g"}


@pytest.mark.project
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_no_width_cuts_the_site_off(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        tab = browser.new_page()
        for name in ("tutorial", "networks", "api/schedules"):
            tab.goto((site / f"{name}.html").as_uri())
            for width in (400, 1024, 1120, 1280, 1366, 1920):
                tab.set_viewport_size({"width": width, "height": 900})
                assert tab.evaluate("document.documentElement.scrollWidth") == width, name
        # No line ends after the hyphens of an option.
        tab.goto((site / "networks.html").as_uri())
        tab.set_viewport_size({"width": 1280, "height": 900})
        lines = "all => all.map(one => one.getClientRects().length)"
        assert set(tab.locator("p code .pre").evaluate_all(lines)) == {1}
        browser.close()
