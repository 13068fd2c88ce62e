"""Faults of the search that claim what is not so: no log proves it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutants.claims import counted
from mutants.mutant import Mutant
from mutants.overclaiming import OVERCLAIMING

ROOT = Path(__file__).parent.parent

MACHINE = (
    "Arch('m', (Level('DRAM', 'memory', None), "
    "Level('L1', 'cache', {}, bandwidth_bytes_per_s=1.0)), "
    "Compute('SM', 1, 1e6, 1e6, (('fp32', 1), ('fp16', 1), ('int8', 1))))"
)
LINES = tuple(
    f"searched({problem}, {MACHINE.format(capacity)}, ('dram_bytes',))"
    for problem, capacity in (
        ("gemm(m=4, n=9, k=6, element_bytes=2)", 40),
        ("conv2d(c=3, k=4, h=8, w=1, r=3, s=1, element_bytes=1)", 30),
    )
)
NAMES = (
    "all-floors-a-tenth-higher", "bodies-need-half", "classes-dropped", "copies-always-two",
    "own-bound-counts-beside", "proven-if-nothing-better-came", "search-exact-fit-refused",
    "search-runs-forgotten", "whole-extent-lost", "windows-of-three",
)  # fmt: skip


def test_no_log_proves_what_a_broken_search_claims() -> None:
    """`python -m tests.mutants.claims` does this at length."""
    chosen = [one for one in OVERCLAIMING if one.name in NAMES]
    found = list(counted(chosen, LINES, jobs=1))
    assert [claim for one in found for claim in one.proven] == []
    assert [one.mutant.name for one in found if not one.false] == []
    assert len(found) == len(NAMES)


@pytest.mark.parametrize("mutant", OVERCLAIMING, ids=[one.name for one in OVERCLAIMING])
def test_a_mutant_is_a_change_of_its_file(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.before) == 1
    compile(mutant.applied(text), mutant.file, "exec")
