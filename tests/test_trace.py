"""Traced kernels against accesses that are written out, and their caches against lists."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import Problem, conv2d, gemm
from loopsched.base.machine_code import called
from loopsched.codegen import plan as cutting
from loopsched.codegen import trace
from loopsched.codegen.contraction import Contraction, contractions
from loopsched.codegen.element import FP32
from loopsched.codegen.engine import Engine
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.memory import aligned
from loopsched.codegen.plan import Plan, Walk, roles
from loopsched.codegen.trace import BLOCK, LINE, Cache, TraceText, places, replay
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


def written_out(tiles: Iterable[tuple[range, int]], n: int, k: int) -> Iterator[tuple[int, int]]:
    """Addresses and sizes of a product in tiles of rows and one vector, nothing packed."""
    page = 4096
    for rows, first in tiles:
        lanes = min(8, n - first)
        for at in range(k):
            yield from vector(page + 4 * (at * n + first), lanes)
            yield from ((4 * (row * k + at), 4) for row in rows)
        for row in rows:
            yield from vector(2 * page + 4 * (row * n + first), lanes)


def vector(at: int, lanes: int) -> list[tuple[int, int]]:
    return [(at, 32)] if lanes == 8 else [(at + 4 * lane, 4) for lane in range(lanes)]


@pytest.mark.parametrize("n", [16, 21])
@pytest.mark.parametrize("room", [7, 1 << 20])
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_product_touches_what_is_written_out(
    n: int, room: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k = 10, 12
    monkeypatch.setattr(trace, "_ROOM", room)
    monkeypatch.setattr(cutting, "HELD_BYTES", 4 * n * k - (not is_kept))
    problem = gemm(m=m, n=n, k=k)
    (task,) = contractions(problem)
    walks = (Walk((dim,), 0, task.size(dim)) for dim in "MNK")
    plan = Plan((), *walks, 4, 8, packs_right=False)
    rows, firsts = [range(4), range(4, 7), range(7, 10)], range(0, n, 8)
    across = [(row, first) for row in rows for first in firsts]
    down = [(row, first) for first in firsts for row in rows]
    touched = list(written_out(across if is_kept else down, n, k))
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


class Asking(TraceText):
    """Notes what is asked for, too: one byte of it."""

    def fetch(self, pointer: str, *, writes: bool = False) -> None:
        if not writes:
            self._touch(pointer, 1)


def noted(task: Contraction, plan: Plan, starts: Iterable[int], room: int) -> list[tuple[int, int]]:
    """Addresses and sizes that all jobs of a program touch, and ask for, in turn."""
    notes = np.zeros(room, np.int64)
    engine = Engine(text := Asking(FP32, 16, notes, 0), task, plan, "f")
    engine.write()
    types = *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2
    called(text.text(), "f", None, *types)(*starts, 0, engine.n_jobs)
    return [(note >> 8, note & 255) for note in notes[1 : int(notes[0]) + 1].tolist()]


@pytest.mark.parametrize(
    ("problem", "tile", "times"),
    [
        (gemm(m=20, n=800, k=500), (8, 48), 1),  # each of three tiles asks for one of three lines
        (gemm(m=16, n=800, k=500), (8, 48), 4 / 3),  # two for two
        (gemm(m=4, n=800, k=500), (4, 48), 1),  # one for all
        (gemm(m=20, n=808, k=500), (5, 48), 4 / 3),  # four for three; vectors lie in two lines
        (gemm(m=20, n=800, k=500, transpose_b=True), (7, 4), 3 / 2),
        (gemm(m=18, n=800, k=512, transpose_b=True), (6, 3), 1),
        (gemm(m=8, n=1000, k=500, transpose_b=True), (3, 3), 1),  # tiles of 3, 3 and 2 rows
        (gemm(m=15, n=800, k=500, transpose_b=True), (4, 4), 1),
        (gemm(m=4, n=1000, k=4200, transpose_b=True), (4, 4), 1),  # alone, and 17 MB
        (gemm(m=4, n=1000, k=400, transpose_b=True), (4, 4), 0),  # alone, and in some cache
        (gemm(m=20, n=300, k=500), (8, 48), 0),  # all of it is found in L2
        (conv2d(c=128, k=20, h=56, w=56, r=1, s=1), (5, 64), 1),
        (conv2d(c=128, k=20, h=1, w=3000, r=1, s=3), (5, 64), 0),  # points of a sum share lines
        (conv2d(c=128, k=20, h=56, w=56, r=1, s=1, stride=2), (5, 64), 0),  # columns lie apart
    ],
)
def test_tiles_ask_for_the_columns_beside_them(
    problem: Problem, tile: tuple[int, int], times: float
) -> None:
    """Each line that later tiles read of the right operand, before they begin, about so often."""
    (task,) = contractions(problem)
    task = task.swapped() if "P" in task.left.dims else task
    kinds = roles(task)
    is_along = [task.right.step(dim) for dim in kinds["sums"] if task.size(dim) > 1] == [1]
    walks = (Walk(tuple(kinds[one])) for one in ("rows", "cols", "sums"))
    rows, cols, sums = (one._replace(block=task.size(one.dims[0])) for one in walks)
    plan = Plan((), rows, cols, sums, *tile, packs_right=False, sums_in_lanes=is_along)
    memory = aligned((3, 1 << 23), np.float32, BLOCK, np.zeros)
    start, starts = memory[1].ctypes.data, [*(one.ctypes.data for one in memory), 0]
    n_cols = np.prod([task.size(dim) for dim in cols.dims])
    asked, n_asked, begun, read = dict[int, int](), 0, dict[int, int](), set[int]()
    for now, (address, size) in enumerate(noted(task, plan, starts, 1 << 22)):
        place = address - start
        if size == 1 and place >= 0:
            n_asked += 1
            asked.setdefault(place // LINE, now)
        elif size == LINE and 0 <= place < memory[1].nbytes:
            column = (
                place // 4 // task.right.step(cols.dims[0]) if is_along else place // 4 % n_cols
            )
            line = place // LINE if is_along else (place + LINE - 1) // LINE
            if column >= tile[1] and times:
                read.add(line)
                assert asked.get(line, now) < begun.setdefault(column // tile[1], now)
    assert n_asked == pytest.approx(times * len(read), rel=0.05)


@pytest.mark.parametrize(
    ("problem", "blocks", "tile", "share"),
    [
        (gemm(m=6, n=64, k=96, transpose_b=True), (3, 32, 32), (3, 16), 1.0),
        (gemm(m=7, n=64, k=96, transpose_b=True), (7, 32, 96), (3, 16), 1.0),  # 3 tiles, 2 panels
        (gemm(m=7, n=64, k=96, transpose_b=True), (2, 16, 48), (1, 16), 1.0),  # a rest of rows
        (gemm(m=49, n=64, k=96, transpose_b=True), (49, 16, 96), (4, 16), 1.0),  # 4 and 3 rows
        (gemm(m=24, n=64, k=96, transpose_b=True), (2, 16, 48), (1, 16), 1.0),  # more than lines
        (gemm(m=6, n=96, k=40, transpose_b=True), (3, 32, 16), (3, 16), 0.6),  # lines in two
        (conv2d(c=32, k=64, h=5, w=5, r=3, s=3, padding=1), (5, 16, 16), (5, 16), 1.0),
        (conv2d(c=32, k=64, h=5, w=5, r=3, s=3, padding=1), (5, 32, 32), (3, 16), 1.0),
    ],
)
def test_tiles_ask_for_what_the_next_block_is_packed_from(
    problem: Problem,
    blocks: tuple[int, int, int],
    tile: tuple[int, int],
    share: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each line that a later block reads of the right operand, before it does, and few twice."""
    monkeypatch.setattr("loopsched.codegen.plan.MANY_BYTES", 0)
    (task,) = contractions(problem)
    kinds, steps = roles(task), zip(("rows", "cols", "sums"), blocks, strict=True)
    cuts = [(kinds[kind], block) for kind, block in steps]
    rows, cols, sums = (Walk(tuple(dims), "Q" in dims and len(dims) - 1, n) for dims, n in cuts)
    plan = Plan((), rows, cols, sums, *tile)
    engine = Engine(LlvmText(FP32, 16), task, plan, "f")
    memory = aligned((4, 1 << 17), np.float32, BLOCK, np.zeros)
    starts = [one.ctypes.data for one in memory]
    starts[0] += 4096  # images begin before their first points: padding is not read
    asked, known, n_blocks, found, is_new = list[int](), set[int](), 0, list[bool](), True
    for address, size in noted(task, plan, starts, 1 << 21):
        place = address - starts[1]
        if not 0 <= place < memory[1].nbytes:
            is_new |= -memory[0].nbytes <= place < 0 and size > 1  # multiplies: left is read
        elif size == 1:
            asked.append(place // LINE)
        else:
            n_blocks, known = n_blocks + is_new, {*asked} if is_new else known
            is_new = False
            found += [place // LINE in known] if n_blocks > 1 else []
    assert n_blocks == engine.n_jobs * engine.n_sum_blocks
    assert np.mean(found) >= share
    again = 1.5 if share == 1 else 2  # blocks share lines, or more ask than there are lines
    again *= max(1, engine.row_blocks[1] * LINE / (4 * engine.max_sum))
    assert len(asked) <= again * len({*asked})
