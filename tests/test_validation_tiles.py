"""Replays by tiles, against a literal cache, and sectors, against literal addresses."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import OrderedDict
from itertools import product

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopsched import ScheduleError, conv2d, einsum, gemm, parse_schedule
from loopsched.gpu.library.order import grouped_schedule
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem
from loopsched.simulator.tile_replay import eviction_probability, reuse_profile
from loopsched.validation.sectors import panel_sectors, span_sectors, tile_bounds


class Cache:
    """Elements, least recently used first; the output is written when it is evicted."""

    def __init__(self, capacity_bytes: int, output: str) -> None:
        self.capacity_bytes, self.output = capacity_bytes, output
        self.held: OrderedDict[oracle.Element, None] = OrderedDict()
        self.seen: set[oracle.Element] = set()
        self.reads = self.writes = 0

    def touch(self, one: oracle.Element) -> None:
        is_held = one in self.held
        self.held[one] = None
        self.held.move_to_end(one)
        if not is_held and (one[0] != self.output or one in self.seen):
            self.reads += 4
        self.seen.add(one)
        while 4 * len(self.held) > self.capacity_bytes:
            gone, _ = self.held.popitem(last=False)
            self.writes += 4 * (gone[0] == self.output)


def replayed(problem: Problem, nest: Schedule, n: int, capacity_bytes: int) -> tuple[int, int]:
    """Reads and write-backs of waves of ``n`` items in lock-step, point by point.

    Sums stay in registers until their item goes on to another; what several items
    touch in one step, they touch once.
    """
    cache = Cache(capacity_bytes, problem.output)
    inputs = [tensor for tensor in problem.tensors if tensor.name != problem.output]
    for items in oracle.item_lists(problem, nest, "SM"):
        for wave in oracle.waves(items, n):
            steps = [dict(item.steps) for item in wave]
            sums: dict[int, oracle.Element] = {}
            for trip in sorted({trip for item in steps for trip in item}):
                touched: set[oracle.Element] = set()
                for number, item in enumerate(steps):
                    if trip not in item:
                        continue
                    # Inputs first, in the problem's order; then a sum that is complete.
                    wanted = [oracle.element(tensor, item[trip]) for tensor in inputs]
                    one = oracle.element(problem.output_tensor, item[trip])
                    assert one is not None
                    if sums.get(number, one) != one:
                        wanted.append(sums[number])
                    sums[number] = one
                    for each in wanted:
                        if each is not None and each not in touched:
                            touched.add(each)
                            cache.touch(each)
            for one in dict.fromkeys(sums[number] for number in sorted(sums)):
                cache.touch(one)
    return cache.reads, cache.writes


@st.composite
def item_nests(draw: st.DrawFn) -> tuple[Problem, Schedule]:
    """A small product of matrices or tensors, cut into items and tiles."""
    sizes = {dim: draw(st.integers(1, 5), label=dim) for dim in "MNK"}
    problem = (
        gemm(m=sizes["M"], n=sizes["N"], k=sizes["K"])
        if draw(st.booleans())
        else einsum("bmk,kn->bmn", sizes={"b": 2, "m": 2, "k": sizes["K"], "n": sizes["N"]})
    )
    extents = dict(problem.sizes)
    written = [dim for dim in problem.dims if problem.output_tensor.is_indexed_by(dim)]
    loops = []

    def block(dims: list[str], level: str | None) -> None:
        for dim in draw(st.permutations(dims)):
            loops.append(Loop(dim, extents[dim], level))
            extents[dim] = draw(st.integers(1, extents[dim]))

    if draw(st.booleans()):
        block(draw(st.lists(st.sampled_from(problem.dims), unique=True, max_size=1)), None)
    block(draw(st.lists(st.sampled_from(written), unique=True, min_size=1)), "SM")
    block(written, "SM")
    block(list(problem.dims), None)
    return problem, Schedule.of(_whole(problem, loops))


def _whole(problem: Problem, loops: list[Loop]) -> list[Loop]:
    """Make the outermost loop of every dimension cover it."""
    seen: set[str] = set()
    found = []
    for loop in loops:
        whole = loop.extent if loop.dim in seen else problem.size[loop.dim]
        seen.add(loop.dim)
        found.append(Loop(loop.dim, whole, loop.unit))
    return found


@given(item_nests(), st.integers(1, 5), st.integers(1, 40))
def test_points_are_what_a_cache_holds(
    case: tuple[Problem, Schedule], instances: int, capacity_elems: int
) -> None:
    problem, nest = case
    # Bins of one element: capacities are told apart exactly.
    found = reuse_profile(problem, nest, instances, room_bytes=0, capacity_bytes=4 * 128)
    capacity = 4 * capacity_elems
    expected = replayed(problem, nest, instances, capacity)
    assert (found.read_bytes(capacity), found.write_bytes(capacity)) == expected


@pytest.mark.parametrize("group", [1, 3, 100])
def test_small_caches_read_the_union_of_each_wave(group: int) -> None:
    m, n, k, tile_m, tile_n, tile_k, instances = 200, 170, 90, 16, 32, 16, 6
    problem = gemm(m=m, n=n, k=k)
    blocks = []  # in launch order: Triton's tutorial, literally
    rows, columns = -(-m // tile_m), -(-n // tile_n)
    for number in range(rows * columns):
        first = number // (group * columns) * group
        high = min(rows - first, group)
        inside = number % (group * columns)
        blocks.append((first + inside % high, inside // high))
    expected = 0
    for at in range(0, len(blocks), instances):
        wave = blocks[at : at + instances]
        expected += sum(4 * k * min(tile_m, m - tile_m * row) for row in {b[0] for b in wave})
        expected += sum(4 * k * min(tile_n, n - tile_n * col) for col in {b[1] for b in wave})
    nest = grouped_schedule(problem, tile_m, tile_n, tile_k, group, "SM")
    room = 4 * (tile_m * tile_n + tile_m * tile_k + tile_k * tile_n)
    found = reuse_profile(problem, nest, instances, room_bytes=room, capacity_bytes=2**16)
    # One step's tiles fit, one wave's panels do not.
    assert found.read_bytes(6 * 4 * 32 * 33) == expected
    assert found.read_cold_bytes == found.read_bytes(2**19) == 4 * k * (m + n)
    assert found.write_bytes(2**19) == 0
    assert found.write_bytes(1) == 4 * m * n


def test_other_forms_are_refused() -> None:
    image = conv2d(n=1, c=1, k=1, h=8, w=8, r=3, s=3)
    nest = parse_schedule("K:1 P:6@SM Q:6 R:3 S:3", image)
    with pytest.raises(ScheduleError, match="cannot slide windows"):
        reuse_profile(image, nest, 2, room_bytes=0, capacity_bytes=1024)
    square = gemm(m=8, n=8, k=8)
    apart = parse_schedule("M:8@SM K:8 N:8@SM", square)
    with pytest.raises(ScheduleError, match="one run of spatial loops"):
        reuse_profile(square, apart, 2, room_bytes=0, capacity_bytes=1024)


def test_a_replay_too_large_is_refused() -> None:
    problem = gemm(m=2**20, n=2**20, k=2)
    nest = parse_schedule("M:1048576@SM N:1048576@SM K:2", problem)
    with pytest.raises(ScheduleError, match="at most"):
        reuse_profile(problem, nest, 2, room_bytes=0, capacity_bytes=1024)


def test_sets_fill_up_as_poisson_says() -> None:
    distances = np.array([0.1, 0.7, 1.0, 1.3, 5.0, math.inf])
    for ways in (1, 4, 20):
        found = eviction_probability(distances, ways)
        for distance, share in zip(distances[:-1].tolist(), found.tolist(), strict=False):
            mean = ways * distance
            kept = sum(
                math.exp(-mean + i * math.log(mean) - math.lgamma(i + 1)) for i in range(ways)
            )
            assert share == pytest.approx(1 - kept, abs=1e-12)
        assert found[-1] == 1
    # Many ways are nearly fully associative.
    assert eviction_probability(np.array([0.8, 1.25]), 600) == pytest.approx([0, 1], abs=1e-3)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 40), st.integers(1, 60))
def test_spans_touch_the_sectors_of_their_bytes(
    rows: int, pitch_words: int, tile: int, size: int
) -> None:
    spans = 4 * tile_bounds(size, tile)
    expected = sum(
        len({(row * 4 * pitch_words + byte) // 32 for byte in range(begin, end)})
        for row in range(rows)
        for begin, end in spans.tolist()
    )
    assert span_sectors(range(rows), 4 * pitch_words, spans) == expected


@given(*[st.integers(1, 40)] * 3, *[st.integers(1, 17)] * 3)
def test_panels_are_the_sectors_that_blocks_load(
    m: int, n: int, k: int, tile_m: int, tile_n: int, step: int
) -> None:
    def sectors(row: int, pitch: int, begin: int, end: int) -> int:
        return len({4 * (row * pitch + word) // 32 for word in range(begin, end)})

    expected = 0
    starts = range(0, m, tile_m), range(0, n, tile_n), range(0, k, step)
    for top, left, first in product(*starts):
        last = min(first + step, k)
        expected += sum(sectors(i, k, first, last) for i in range(top, min(top + tile_m, m)))
        right = min(left + tile_n, n)
        expected += sum(sectors(i, n, left, right) for i in range(first, last))
    assert panel_sectors(m, n, k, tile_m, tile_n, step) == expected


def test_plain_python_gives_the_same() -> None:
    program = (
        "from loopsched import gemm, parse_schedule\n"
        "from loopsched.simulator.tile_replay import reuse_profile\n"
        "problem = gemm(m=70, n=50, k=40)\n"
        "nest = parse_schedule('M:70@SM N:50@SM M:30@SM K:40 M:10 N:20 K:8', problem)\n"
        "print(reuse_profile(problem, nest, 4, room_bytes=2048, capacity_bytes=4096))\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "LOOPSCHED_JIT": jit},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for jit in "01"
    }
    assert len(printed) == 1
    assert "read_cold_bytes=19200" in printed.pop()
