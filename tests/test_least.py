"""Bounds of pieces, sums and pairs against every chain of cuts, one loop or several."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations, product
from random import Random

import pytest
from oracle_search import scores

from loopsched.base.errors import ProblemError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.score import evaluate
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import affine
from loopsched.problems.convolution import conv2d
from loopsched.problems.footprint import axis_count, axis_extremes, n_segments
from loopsched.problems.problem import Axis, Problem
from loopsched.scheduler import Constraints, search
from loopsched.scheduler.least import cuts_evenly, least_tables
from loopsched.scheduler.tables import Tables


def _chains(rng: Random, size: int) -> list[tuple[int, ...]]:
    """Up to three loops of one dimension, as the extents that they cut to."""
    longer = [chosen for many in (2, 3) for chosen in combinations(range(size - 1, 0, -1), many)]
    return [(), *((e,) for e in range(1, size)), *rng.sample(longer, min(len(longer), 20))]


def _window(rng: Random) -> Problem | None:
    p, r, a, b = rng.randint(1, 9), rng.randint(1, 5), rng.randint(1, 3), rng.randint(1, 3)
    before = rng.randint(0, 5)
    stored = a * (p - 1) + b * (r - 1) + 1 - before + rng.randint(-4, 3)
    text = f"{a}*P + {b}*R" + (f" - {before} < {max(1, stored)}" if rng.random() < 0.8 else "")
    try:
        return affine({"P": p, "R": r}, {"x": text, "w": "R", "y": "P"}, output="y")
    except ProblemError:  # all of it would be padding
        return None


def _at(tables: Tables, axis: Axis, chains: tuple[tuple[int, ...], ...]) -> tuple[int, list[int]]:
    """Where an axis' numbers are for pieces of such chains, and how many pieces are counted."""
    size = tables.problem.size
    names = [tensor.name for tensor in tables.problem.tensors]
    at = int(tables.tensor_axes[names.index("x")])
    found, counted = [], []
    for dim, cuts in zip(axis.dims, chains, strict=True):
        row = tables.problem.dims.index(dim)
        pieces = -(-size[dim] // min((size[dim], *cuts)))
        index = [-(-size[dim] // e) for e in tables.extents[row]].index(pieces)
        found.append(index)
        counted.append(int(tables.pieces[row][index]))
    return int(tables.axis_start[at]) + found[0] * int(tables.axis_stride[at]) + found[1], counted


@pytest.mark.parametrize("seed", range(40))
def test_no_chain_of_cuts_goes_below_the_tables(seed: int) -> None:
    rng = Random(seed)
    problem = _window(rng)
    if problem is None:
        return
    axis = problem.tensor("x").axes[0]
    sizes = tuple(problem.size[dim] for dim in axis.dims)
    tables = least_tables(problem)
    for chains in product(*(_chains(rng, size) for size in sizes)):
        at, counted = _at(tables, axis, chains)
        true = axis_extremes(axis, sizes, chains)
        assert tables.total[at] <= true.total
        assert tables.largest[at] <= true.largest
        for size, cuts, pieces in zip(sizes, chains, counted, strict=True):
            assert pieces <= n_segments(size, cuts)
        for along, least in ((0, tables.pair_first), (1, tables.pair_second)):
            cuts = chains[along]
            around = (sizes[along], *cuts)[-2] if cuts else 0
            if cuts and around > cuts[-1]:
                tile = {d: min((s, *c)) for d, s, c in zip(axis.dims, sizes, chains, strict=True)}
                tile[axis.dims[along]] = min(2 * cuts[-1], around)
                both = axis_count(replace(axis, size=None), {}, tile)
                assert least[at] <= min(2 * true.largest, both, axis.size or both)


def test_even_cuts_lose_nothing() -> None:
    """Without padding and gaps the tables are what single loops do."""
    problem = affine({"P": 12, "R": 5}, {"x": "P + R", "w": "R", "y": "P"}, output="y")
    assert cuts_evenly(problem)
    axis = problem.tensor("x").axes[0]
    tables = least_tables(problem)
    for chains in product(((), (6,), (3,), (1,)), ((), (3,), (1,))):
        at, _ = _at(tables, axis, chains)
        true = axis_extremes(axis, (12, 5), chains)
        assert (tables.total[at], tables.largest[at]) == (true.total, true.largest)


def test_near_padding_two_loops_may_do_what_one_does_not() -> None:
    """Behind padding, tiles of 2, 1 and 1 rows read two each; one loop does worse in something."""
    problem = affine({"P": 4, "R": 2}, {"x": "P + R - 1 < 4", "w": "R", "y": "P"}, output="y")
    axis = problem.tensor("x").axes[0]

    def cost(*chain: int) -> tuple[int, int, int]:
        found = axis_extremes(axis, (4, 2), (chain, ()))
        return n_segments(4, chain), found.total, found.largest

    assert cost(3, 2) == (3, 6, 2)
    assert not any(
        all(one <= two for one, two in zip(cost(extent), cost(3, 2), strict=True))
        for extent in range(1, 5)
    )
    assert not cuts_evenly(problem)


def _machine(*levels: Level, units: int = 1) -> Arch:
    rates = (("fp32", 1), ("fp16", 1), ("int8", 1))
    memory = Level("DRAM", "memory", None)
    return Arch("test", (memory, *levels), Compute("SM", units, 1.0, 1.0, rates))


def _level(name: str, capacity: int, kind: str = "cache", **more: object) -> Level:
    return Level(name, kind, capacity, **{"bandwidth_bytes_per_s": 1.0, **more})  # type: ignore


UNEVEN = {
    "stride, one side": (
        conv2d(c=1, k=1, h=5, w=1, r=1, s=1, stride=(2, 1), padding=(2, 0, 0, 0), element_bytes=1),
        _machine(_level("L2", 4), _level("L1", 3)),
        "P:4 P:3 P:2",
        10,
    ),
    "dilation": (
        conv2d(
            c=1, k=1, h=9, w=1, r=2, s=1, stride=(2, 1), padding=(1, 2, 0, 0), dilation=(2, 1),
            element_bytes=1,
        ),
        _machine(_level("L2", 6), _level("L1", 5)),
        "P:5 P:3 R:2 P:2",
        17,
    ),
    "scratchpad over cache": (
        affine({"P": 5, "R": 3, "K": 3, "C": 1}, {"x": "C 2*P+R-3<5", "w": "K C R", "y": "K P"}),
        _machine(_level("L2", 18, "scratchpad"), _level("L1", 17)),
        "K:3 P:5 P:3 K:2 R:3 P:2",
        252,
    ),
    "scratchpads": (
        conv2d(n=1, c=1, k=20, h=7, w=1, r=3, s=1, padding=(1, 0), element_bytes=1),
        _machine(_level("L2", 10, "scratchpad"), _level("L1", 5, "scratchpad")),
        "P:7 P:4 K:20 P:3 R:3",
        329,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNEVEN)
def test_several_loops_of_a_dimension_may_be_better(name: str) -> None:
    problem, arch, text, moved = UNEVEN[name]
    assert evaluate(problem, parse_schedule(text, problem), arch).dram_bytes == moved
    found = search(problem, arch, objective="dram_bytes").certificate
    assert found.lower_bound <= moved
    assert found.value <= moved or not found.proven


def test_a_single_buffer_may_be_cut_unevenly_too() -> None:
    problem, _, text, moved = UNEVEN["dilation"]
    arch = _machine(_level("L1", 6))
    assert evaluate(problem, parse_schedule(text, problem), arch).dram_bytes == moved
    found = search(problem, arch, objective="dram_bytes").certificate
    assert found.lower_bound <= moved
    assert found.value <= moved or not found.proven


def test_a_constrained_bound_knows_private_caches() -> None:
    problem = conv2d(
        c=1, k=1, h=8, w=1, r=4, s=1, padding=(2, 0, 1, 1),
        element_bytes={"input": 2, "weight": 2, "output": 4},
    )  # fmt: skip
    own = {"instances": 3, "unit": "SM"}
    arch = _machine(_level("L2", 32, bandwidth_bytes_per_s=1e6), _level("L1", 31, **own), units=3)
    allowed = evaluate(problem, parse_schedule("Q:3@SM P:7 R:4", problem), arch)
    assert allowed.time_s == 124
    found = search(problem, arch, constraints=Constraints(tiles="powers2")).certificate
    assert found.lower_bound <= 124
    assert found.value <= 124 or not found.proven


def test_a_constrained_bound_knows_what_is_written_through() -> None:
    problem = affine(
        {"P": 8, "R": 4, "K": 3, "C": 2},
        {"x": "C P+2*R-2<12", "w": "K C R", "y": "K P"},
        element_bytes=2,
    )
    arch = _machine(_level("L2", 51, write_policy="through"), _level("L1", 40, "scratchpad"))
    allowed = evaluate(problem, parse_schedule("K:3 C:2 R:4 P:8", problem), arch)
    assert allowed.dram_bytes == 288
    divisors = Constraints(tiles="divisors")
    found = search(problem, arch, objective="dram_bytes", constraints=divisors).certificate
    assert found.lower_bound <= 288
    assert found.value <= 288 or not found.proven


def test_every_listed_schedule_is_above_the_bound() -> None:
    """The spaces of the counterexamples, one loop of a dimension in a block."""
    for problem, arch, _, _ in list(UNEVEN.values())[:3]:
        bound = search(problem, arch, objective="dram_bytes").certificate.lower_bound
        least = min(found.dram_bytes for _, found in chain(scores(problem, arch)))
        assert bound <= least
