"""Counts of a simulation: sums over tensors, and levels by their names."""

from __future__ import annotations

import pytest

from loopsched.base.errors import InputError
from loopsched.simulator.result import LevelCounts, Simulation, TensorCounts, in_order

A = TensorCounts("A", 10, 4, 0, 16, 0)
C = TensorCounts("C", 7, 2, 3, 8, 12)
L2 = LevelCounts("L2", "DRAM", 100, 1, {"A": A, "C": C})
L1 = LevelCounts("L1", "L2", 10, 4, {"A": C, "C": C})
FOUND = Simulation("p", "M:4", "lru", "element", None, (L2, L1))


def test_sums_are_those_of_the_outermost_level() -> None:
    for one in (L2, FOUND):
        assert (one.accesses, one.hits, one.misses, one.write_backs) == (17, 11, 6, 3)
        assert (one.read_bytes, one.write_bytes, one.bytes) == (24, 12, 36)
        assert one.hit_rate == 11 / 17
    assert (A.hits, C.bytes) == (6, 20)
    assert LevelCounts("L0", "L1", 1, 1, {}).hit_rate == 1.0


def test_levels_have_names_of_any_case() -> None:
    assert FOUND.level("l1") is L1
    assert FOUND.level_names == ("L2", "L1")
    with pytest.raises(InputError, match="no level 'L3'; did you mean"):
        FOUND.level("L3")


def test_counts_come_in_the_order_asked_for() -> None:
    assert list(in_order(["C", "A"], [A, C])) == ["C", "A"]
