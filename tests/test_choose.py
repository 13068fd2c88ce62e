"""What the model counts of a plan, beside counts made by hand."""

from __future__ import annotations

import pytest

from loopsched import gemm
from loopsched.codegen.choose import Core, Model, ranked
from loopsched.codegen.contraction import contractions
from loopsched.codegen.plan import Plan, Walk

CORE = Core(16, 32, 1, 4, 1, 32 * 1024, 1024 * 1024, 1e9)
SIZES = {"m": 70, "n": 100, "k": 60}


def plan(sum_block: int, **more: object) -> Plan:
    walks = Walk(("M",), 0, 35), Walk(("N",), 0, 100), Walk(("K",), 0, sum_block)
    return Plan((), *walks, 8, 48, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("sum_block", [60, 30])
def test_counts_of_a_product(sum_block: int) -> None:
    """Two blocks of 35 rows: four tiles of 8 and one of 3; columns: two tiles of 48, one of 4."""
    (task,) = contractions(gemm(**SIZES))
    found = Model(task, CORE).counts(plan(sum_block))
    n_sums = 60 // sum_block
    tiles = [(rows, vectors) for rows in [8, 8, 8, 8, 3] * 2 for vectors in (3, 3, 1)]
    assert found["tile"] == len(tiles) * n_sums
    assert found["load"] == sum(rows + vectors for rows, vectors in tiles) * 60
    written = sum(rows * vectors for rows, vectors in tiles)
    assert found["sum"] == written * (1 if n_sums == 1 else 2 * n_sums)
    issued = sum(max(rows * vectors, (rows + vectors) / 2) for rows, vectors in tiles)
    assert found["issue"] == pytest.approx(issued * 60)
    waits = sum(max(0, 4 - max(rows * n, (rows + n) / 2)) for rows, n in tiles)
    assert found["latency"] == pytest.approx(waits * 60)
    assert found["copy"] == 60 * -(-100 // 16)  # rows of B, each of so many vectors
    assert found["run"] == 60
    assert found["gather"] == found["square"] == found["scatter"] == 0


def test_what_is_not_packed_is_not_copied() -> None:
    (task,) = contractions(gemm(**SIZES))
    assert Model(task, CORE).counts(plan(60, packs_right=False))["copy"] == 0


def test_the_first_is_the_least() -> None:
    (task,) = contractions(gemm(**SIZES))
    cycles = [one for one, _, _ in ranked(task, CORE)]
    assert cycles == sorted(cycles)
    assert cycles[0] < cycles[-1]
