"""Streamed schedules against the reuse model, one by one."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from itertools import permutations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopsched.base.errors import ProblemError, ScheduleError
from loopsched.models.buffer import traffic
from loopsched.models.traffic import Room
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.scheduler.body import PLACED, best_body

from buffer_stream import Stream, score_bodies  # isort: skip
from strategies import convs, gemms, images  # isort: skip

PADDED = conv2d(n=2, c=3, k=4, h=9, w=7, r=3, s=3, stride=2, padding=1)
LAYER = conv2d(n=16, c=64, k=64, h=224, w=224, r=3, s=3, padding=1)


def all_of(stream: Stream, size: int = 2**20) -> dict[int, int]:
    found: dict[int, int] = {}
    for chunk in stream.chunks(size):
        codes = chunk.codes.tolist()
        assert not found.keys() & set(codes)
        found.update(zip(codes, chunk.bytes.tolist(), strict=True))
    return found


def model_bytes(problem: Problem, nest: Schedule, capacity: int) -> int:
    return traffic(problem, nest, capacity_bytes=capacity, policy="explicit").bytes.point


@given(st.one_of(gemms(most=12), convs(), images()), st.integers(0, 600), st.randoms())
@settings(max_examples=60)
def test_every_number_is_the_models(problem: Problem, capacity: int, rng: random.Random) -> None:
    stream = Stream(problem, capacity)
    found = all_of(stream)
    for code in rng.sample(sorted(found), min(25, len(found))):
        nest = stream.schedule(code)
        assert found[code] == model_bytes(problem, nest, capacity), nest


@given(st.one_of(gemms(most=9), convs(), images()), st.integers(0, 600))
@settings(max_examples=30)
def test_counts_and_best(problem: Problem, capacity: int) -> None:
    stream = Stream(problem, capacity)
    found, scores = all_of(stream), stream.run(is_binned=True)
    assert scores.n_scored == len(found)
    assert scores.n_scored + scores.n_too_large + scores.n_covered == stream.n_choices
    digits = Counter(moved.bit_length() for moved in found.values())
    assert {n: many for n, many in enumerate(scores.histogram) if many} == digits
    assert scores.bytes == min(found.values(), default=None)
    if scores.schedule is not None:
        assert model_bytes(problem, scores.schedule, capacity) == scores.bytes
        best = best_body(problem, Room.shared(capacity), PLACED)
        assert best is not None
        assert best.bytes == scores.bytes


def test_schedules_are_distinct() -> None:
    """No two codes are the same nest."""
    stream = Stream(PADDED, 500)
    nests = [stream.schedule(code) for code in all_of(stream)]
    assert len(set(nests)) == len(nests) > 1000


def test_nothing_is_missing() -> None:
    """The values are those of every nest of one block around a body that just fits."""
    problem, capacity = gemm(m=5, n=4, k=6), 100
    expected = set()
    for extents in product(*(range(1, size + 1) for _, size in problem.sizes)):
        inside = dict(zip("MNK", extents, strict=True))
        cut = [dim for dim in "MNK" if inside[dim] < problem.size[dim]]
        for order in permutations(cut):
            loops = [Loop(dim, problem.size[dim]) for dim in order]
            loops += [Loop(dim, inside[dim]) for dim in "MNK" if inside[dim] > 1]
            whole = [Loop(d, n) for d, n in problem.sizes if d not in cut and inside[d] == 1]
            nest = Schedule((*loops, *whole))
            found = traffic(problem, nest, capacity_bytes=capacity, policy="explicit")
            if found.fit_position == len(order):
                expected.add(found.bytes.point)
    every = tuple(tuple(range(size, 0, -1)) for _, size in problem.sizes)
    assert set(all_of(Stream(problem, capacity, every)).values()) == expected
    assert set(all_of(Stream(problem, capacity)).values()) < expected


@pytest.mark.parametrize("problem", [PADDED, gemm(m=37, n=20, k=11)], ids=lambda p: p.name)
def test_chunks_do_not_matter(problem: Problem) -> None:
    stream = Stream(problem, 700)
    assert all_of(stream, 1) == all_of(stream, 1000) == all_of(stream)


def test_halving_finds_what_a_look_at_each_finds() -> None:
    stream = Stream(gemm(m=37, n=20, k=11), 700)
    halving = stream.run(is_binned=True), all_of(stream)
    stream._is_monotone = False
    assert (stream.run(is_binned=True), all_of(stream)) == halving


def test_known_optimum_and_size() -> None:
    """GEMM 4096^3 in 4,718,592 bytes: the published optimum of one explicit buffer."""
    found = score_bodies(gemm(m=4096, n=4096, k=4096), 4_718_592)
    assert found.bytes == 603_979_776
    stream = Stream(LAYER, 98_304, candidates=None)
    assert stream.n_choices > 250_000_000


def test_ends() -> None:
    one = gemm(m=1, n=1, k=1)
    assert asdict(score_bodies(one, 11)) == {
        "schedule": None, "bytes": None, "n_scored": 0, "n_too_large": 1, "n_covered": 0,
        "histogram": (),
    }  # fmt: skip
    assert score_bodies(one, 12).bytes == 12
    fits = score_bodies(gemm(m=4, n=4, k=4), 192)
    assert (fits.bytes, fits.n_scored, str(fits.schedule)) == (192, 1, "M:4 N:4 K:4")


def test_bad_input() -> None:
    with pytest.raises(ScheduleError, match="capacity_bytes is -1"):
        Stream(PADDED, -1)
    with pytest.raises(ProblemError, match="more bytes than fit into 64 bits"):
        Stream(gemm(m=2**20, n=2**20, k=2**20), 100)


def test_python_gives_the_same_numbers() -> None:
    script = (
        "from loopsched import gemm; from buffer_stream import score_bodies; "
        "print(score_bodies(gemm(m=12, n=9, k=10), 300, is_binned=True))"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "LOOPSCHED_JIT": "0", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    compiled = score_bodies(gemm(m=12, n=9, k=10), 300, is_binned=True)
    assert done.stdout.strip() == str(compiled)
