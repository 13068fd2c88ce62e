"""The list of mutants fits the sources; `python -m tests.mutants.run` runs them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from mutants.catalogue import MUTANTS
from mutants.mutant import Mutant
from mutants.run import listing

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_is_a_change_of_its_file(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.before) == 1
    if mutant.file.endswith(".py"):
        changed = ast.parse(mutant.applied(text))
        assert ast.dump(changed) != ast.dump(ast.parse(text))
        compile(changed, mutant.file, "exec")
    else:  # a script, which only a browser reads
        assert mutant.applied(text) != text
    for test in mutant.tests:
        file, _, name = test.partition("::")
        inside = (ROOT / file).read_text(encoding="utf-8")
        last = re.split(r"::|\.", name.partition("[")[0])[-1]
        assert not name or f"def {last}(" in inside or f"class {last}" in inside


def test_names_and_changes_are_distinct() -> None:
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    assert len({(mutant.file, mutant.before, mutant.after) for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.breaks and mutant.tests for mutant in MUTANTS)


def test_the_list_has_every_mutant() -> None:
    rows = listing(MUTANTS).splitlines()[2:]
    for row, mutant in zip(rows, MUTANTS, strict=True):
        assert f"| {mutant.name} | {mutant.breaks} |" in row
