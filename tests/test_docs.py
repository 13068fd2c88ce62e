"""Every Python example in the documentation is run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = sorted((Path(__file__).parent.parent / "docs").glob("*.md"))


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_examples_print_what_the_page_says(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_the_model_page_has_examples() -> None:
    text = next(page for page in DOCS if page.name == "model.md").read_text(encoding="utf-8")
    assert len(doctest.DocTestParser().get_examples(text)) >= 5
