"""The list of mutants fits the sources; `python -m tests.mutants.run` runs them."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType

import pytest
from mutants.catalogue import MUTANTS
from mutants.mutant import In, Mutant
from mutants.overclaiming import OVERCLAIMING
from mutants.run import listing

ROOT = Path(__file__).parent.parent


@cache
def source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def compiled(text: str, file: str) -> CodeType:
    return without_lines(compile(text, file, "exec"))


@cache
def unbroken(file: str) -> CodeType:
    return compiled(source(file), file)


def without_lines(code: CodeType) -> CodeType:
    """What is computed, wherever it stands in its file."""
    inner = [without_lines(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return code.replace(co_consts=tuple(inner), co_firstlineno=1, co_linetable=b"")


def test_what_computes_the_same_is_no_change() -> None:
    text = "def double(x):\n    return 2 * x\n"
    assert compiled(text, "a.py") == compiled(
        f"# Comment\n{text.replace('2 * x', '(2 *  x)')}", "a.py"
    )
    assert compiled(text, "a.py") != compiled(text.replace("2", "2.0"), "a.py")


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_is_a_change_of_its_file(mutant: Mutant) -> None:
    text = source(mutant.file)
    assert text.count(mutant.before) == 1
    if mutant.file.endswith(".py"):
        assert compiled(mutant.applied(text), mutant.file) != unbroken(mutant.file)
    else:  # a script, which only a browser reads
        assert mutant.applied(text) != text
    for test in mutant.tests:
        file, _, name = test.partition("::")
        inside = source(file)
        last = re.split(r"::|\.", name.partition("[")[0])[-1]
        assert not name or f"def {last}(" in inside or f"class {last}" in inside


def test_names_and_changes_are_distinct() -> None:
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    assert len({(mutant.file, mutant.before, mutant.after) for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.breaks and mutant.tests for mutant in MUTANTS)


def test_every_mutant_of_a_file_is_listed() -> None:
    listed = {*MUTANTS, *OVERCLAIMING}
    for path in (ROOT / "tests" / "mutants").glob("*.py"):
        if path.stem not in ("__init__", "profile"):
            inside = vars(import_module(f"mutants.{path.stem}")).values()
            files = [one for one in inside if isinstance(one, In)]
            assert {mutant for one in files for mutant in one.mutants} <= listed, path.stem


def test_the_list_has_every_mutant() -> None:
    rows = listing(MUTANTS).splitlines()[2:]
    for row, mutant in zip(rows, MUTANTS, strict=True):
        assert f"| {mutant.name} | {mutant.breaks} |" in row
