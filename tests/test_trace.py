"""Traced kernels against accesses that are written out, and their caches against lists."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import conv2d, gemm
from loopsched.codegen import trace
from loopsched.codegen.contraction import contractions
from loopsched.codegen.element import FP32
from loopsched.codegen.plan import Plan, Walk
from loopsched.codegen.trace import BLOCK, LINE, Cache, places, replay
from loopsched.simulator.cache import LineCache

KIND = (FP32, 8)


def lru(lines: Iterable[int], n_sets: int, ways: int) -> list[int]:
    """Lines that an LRU cache does not hold, by a list a set."""
    held: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(n_sets)]
    missed = []
    for line in lines:
        own = held[line % n_sets]
        if line not in own:
            missed.append(line)
        own[line] = None
        own.move_to_end(line)
        if len(own) > ways:
            own.popitem(last=False)
    return missed


@given(st.lists(st.integers(0, 30), max_size=200), st.integers(1, 5), st.integers(1, 4))
def test_a_cache_of_lines_misses_what_lists_miss(lines: list[int], n_sets: int, ways: int) -> None:
    cache = LineCache(31, n_sets, ways)
    half = len(lines) // 2
    parts = (np.array(one, np.int32) for one in (lines[:half], lines[half:]))
    found = [line for part in parts for line in cache.missed(part).tolist()]
    assert found == lru(lines, n_sets, ways)


def written_out(tiles: list[range], n: int, k: int) -> Iterator[tuple[int, int]]:
    """Addresses and sizes of a product in tiles of rows and one vector, nothing packed."""
    page = 4096
    for first in range(0, n, 8):
        lanes = min(8, n - first)
        for rows in tiles:
            for at in range(k):
                yield from vector(page + 4 * (at * n + first), lanes)
                yield from ((4 * (row * k + at), 4) for row in rows)
            for row in rows:
                yield from vector(2 * page + 4 * (row * n + first), lanes)


def vector(at: int, lanes: int) -> list[tuple[int, int]]:
    return [(at, 32)] if lanes == 8 else [(at + 4 * lane, 4) for lane in range(lanes)]


@pytest.mark.parametrize("n", [16, 21])
@pytest.mark.parametrize("room", [7, 1 << 20])
def test_a_product_touches_what_is_written_out(
    n: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "_ROOM", room)
    m, k = 10, 12
    problem = gemm(m=m, n=n, k=k)
    (task,) = contractions(problem)
    walks = (Walk((dim,), 0, task.size(dim)) for dim in "MNK")
    plan = Plan((), *walks, 4, 8, packs_right=False)
    touched = list(written_out([range(4), range(4, 7), range(7, 10)], n, k))
    at = places(problem, [(task, plan)], KIND)
    assert [at[name] for name in ("A", "B", "C", "", "end")] == [0, 4096, 8192, 12288, 12288]
    before = list(range(at[""] // 64))
    lines = [line for a, size in touched for line in range(a // 64, (a + size - 1) // 64 + 1)]
    near, far = Cache(4 * 64 * 2, 2), Cache(4 * 64 * 4, 4)
    held = lru(before, 4, 2)
    first = lru(before + lines, 4, 2)
    expected = (len(first) - len(held), len(lru(first, 4, 4)) - len(lru(held, 4, 4)))
    assert expected[0] > expected[1] > 0
    found = replay(problem, [(task, plan)], KIND, (near, far))
    assert found == (len(touched), expected)


def test_what_fits_is_missed_only_where_it_is_packed() -> None:
    problem = conv2d(n=1, c=4, k=8, h=9, w=9, r=3, s=3, padding=1, stride=2)
    task = contractions(problem)[0].swapped()
    walks = Walk(("K",), 0, 8), Walk(("P", "Q"), 0, 5), Walk(("C", "R", "S"), 0, 4)
    plan = Plan(("N",), *walks, 4, 16)
    large = [Cache(BLOCK, 16)]
    right = 4 * 9 * 32 * 4 // LINE  # rows of whole vectors that hold 25 columns
    assert replay(problem, [(task, plan)], KIND, large).lines == (right,)
    both = replay(problem, [(task, plan._replace(packs_left=True))], KIND, large).lines[0]
    left = 8 * 4 * 9 * 4 // LINE  # rows lie somewhat apart
    assert left <= both - right <= 2 * left
