"""Curves against brute force, the stream, the search, and published figures."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopsched
from loopsched import (
    Curve,
    Loop,
    NetworkCurve,
    Schedule,
    buffer_arch,
    communication_bound,
    conv2d,
    einsum,
    gemm,
    load_arch,
    load_workload,
    network_curve,
    traffic_curve,
    workload_curves,
)
from loopsched.base.errors import InputError, ProblemError, WorkloadError
from loopsched.curves.staircase import Staircase
from loopsched.machines.arch import Arch
from loopsched.models.buffer import Policy, traffic
from loopsched.models.traffic import Room
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.problems.workload import Workload
from loopsched.scheduler.body import PLACED, best_body

from buffer_stream import Stream  # isort: skip
from curve_oracle import every_step, staircase  # isort: skip
from oracle_search import random_problem  # isort: skip
from strategies import affines, convs, gemms, images, schedules  # isort: skip
from test_known_optima import CASES  # isort: skip

LAYERS = load_workload("deepbench_conv").problems
PRODUCTS = load_workload("deepbench_gemm").problems


def steps(curve: Staircase) -> list[tuple[int, int]]:
    return list(zip(curve.capacities_bytes, curve.dram_bytes, strict=True))


def simple_affines() -> st.SearchStrategy[Problem]:
    """Affine problems of which no axis moves with more than two dimensions."""
    return affines().filter(
        lambda problem: all(len(axis.terms) < 3 for t in problem.tensors for axis in t.axes)
    )


TINY = {
    "product": gemm(m=5, n=4, k=3),
    "product of mixed sizes": gemm(m=4, n=3, k=4).with_element_bytes({"A": 1, "B": 2, "C": 4}),
    "image": conv2d(n=1, c=2, k=2, h=5, w=3, r=3, s=1, padding=(1, 0)),
    # The first of two tiles may be longer than the last, and both hold as much.
    "padding above": conv2d(n=1, c=3, k=3, h=2, w=1, r=1, s=1, padding=(2, 0, 0, 0)),
    "stride": conv2d(n=1, c=1, k=2, p=4, q=2, r=2, s=1, stride=2),
    "gaps": conv2d(n=2, c=1, k=2, p=4, q=1, r=1, s=1, stride=3),
    "few rows": conv2d(n=1, c=1, k=1, p=5, q=1, r=5, s=1, stride=2),
    "dilation": conv2d(n=1, c=2, k=1, p=5, q=1, r=3, s=1, dilation=2),
    "depthwise": conv2d(n=1, c=3, k=3, p=4, q=1, r=3, s=1, groups=3),
    "backward": conv2d(n=1, c=2, k=2, p=4, q=1, r=3, s=1, pass_="backward_data"),
    "one operand": einsum("ij->i", {"i": 4, "j": 5}),
}


@pytest.mark.parametrize("problem", TINY.values(), ids=TINY)
def test_brute_force_over_all_tiles_and_orders(problem: Problem) -> None:
    assert steps(traffic_curve(problem)) == every_step(problem)


def test_brute_force_on_random_problems() -> None:
    rng = random.Random(7)
    n_done = 0
    while n_done < 60:
        problem = random_problem(rng)
        if problem.macs > 72:
            continue
        assert steps(traffic_curve(problem)) == every_step(problem), problem
        n_done += 1


@st.composite
def nests(draw: st.DrawFn) -> tuple[Problem, loopsched.Schedule]:
    problem = draw(st.one_of(gemms(), convs(), images(), simple_affines()))
    return problem, draw(schedules(problem))


@given(nests(), st.integers(0, 900))
@settings(max_examples=120)
def test_no_nest_of_any_depth_moves_less(
    case: tuple[Problem, loopsched.Schedule], capacity: int
) -> None:
    problem, nest = case
    curve = traffic_curve(problem)
    bound = curve.nest_bound.at(capacity)
    try:
        found = traffic(problem, nest, capacity_bytes=capacity, policy="explicit")
    except loopsched.ScheduleError:
        assert bound is curve.at(capacity) is None
        return
    assert bound is not None
    assert bound <= found.bytes.point


# Bounds (counterexamples stand in test_false_proofs.py) -------------------------------


@pytest.mark.parametrize("policy", ["explicit", "lru"])
def test_even_cuts_prove_every_step(policy: Policy) -> None:
    problem = conv2d(n=2, c=3, k=4, h=9, w=5, r=3, s=2)
    curve = traffic_curve(problem, policy=policy)
    assert steps(curve) == list(
        zip(curve.nest_bound.capacities_bytes, curve.nest_bound.dram_bytes, strict=True)
    )
    assert curve.n_proven == len(curve)
    assert curve.step_bounds == curve.dram_bytes
    assert curve.is_proven_at(curve.least_capacity_bytes)
    assert not curve.is_proven_at(curve.least_capacity_bytes - 1)


@pytest.mark.parametrize(
    "problem",
    [
        conv2d(c=2, k=4, h=9, w=9, r=3, s=3, padding=1),
        conv2d(n=2, c=3, k=2, h=12, w=5, r=5, s=1, stride=(2, 1), padding=(2, 0)),
    ],
    ids=lambda problem: problem.name,
)
def test_a_bound_is_met_or_below(problem: Problem) -> None:
    curve = traffic_curve(problem)
    bound = curve.nest_bound
    assert bound.capacities_bytes[0] == curve.least_capacity_bytes
    assert bound.dram_bytes[-1] == curve.compulsory_bytes
    assert sorted(set(bound.capacities_bytes)) == list(bound.capacities_bytes)
    assert sorted(set(bound.dram_bytes), reverse=True) == list(bound.dram_bytes)
    proven = 0
    ends = [capacity - 1 for capacity in curve.capacities_bytes[1:]] + [10**15]
    for (capacity, moved), end, least in zip(steps(curve), ends, curve.step_bounds, strict=True):
        assert least == min(bound.at(each) or 0 for each in {*bound.capacities_bytes, end}
                            if capacity <= each <= end)  # fmt: skip
        assert least <= moved
        proven += all(
            curve.is_proven_at(each)
            for each in {capacity, end, *bound.capacities_bytes}
            if capacity <= each <= end
        )
    assert 1 <= proven == curve.n_proven < len(curve)
    falls_within = [bound.at(begin) for begin in curve.capacities_bytes] != [*curve.step_bounds]
    assert falls_within


@given(st.one_of(gemms(most=40), convs(), images()))
@settings(max_examples=25)
def test_every_step_is_a_schedule_that_moves_as_much(problem: Problem) -> None:
    curve = traffic_curve(problem)
    for at, (capacity, moved) in enumerate(steps(curve)):
        found = traffic(problem, curve.schedule(at), capacity_bytes=capacity, policy="explicit")
        assert found.bytes.point == moved
        assert found.working_set_bytes == capacity


@pytest.mark.parametrize(
    "problem",
    [
        gemm(m=97, n=60, k=45),
        conv2d(n=3, c=8, k=10, h=13, w=11, r=3, s=3, padding=1),
        conv2d(n=2, c=6, k=5, h=17, w=19, r=3, s=2, stride=2),
    ],
    ids=lambda problem: problem.name,
)
def test_stream_at_many_capacities(problem: Problem) -> None:
    """The stream scores every body and class of orders for one capacity."""
    curve = traffic_curve(problem)
    rng = random.Random(3)
    edges = rng.sample(curve.capacities_bytes, 8)
    for capacity in [*edges, *(edge - 1 for edge in edges), curve.useful_capacity_bytes]:
        assert Stream(problem, capacity).run().bytes == curve.at(capacity), capacity


def test_search_proves_the_same_on_deepbench() -> None:
    rng = random.Random(11)
    for problem in [*rng.sample(LAYERS, 6), *rng.sample(PRODUCTS, 3)]:
        curve = traffic_curve(problem)
        ratio = 1.2 * curve.useful_capacity_bytes / curve.least_capacity_bytes
        for _ in range(3):
            capacity = int(curve.least_capacity_bytes * ratio ** rng.random())
            body = best_body(problem, Room.shared(capacity), PLACED)
            assert body is not None
            assert body.bytes == curve.at(capacity), (problem.name, capacity)
            arch = buffer_arch(capacity_bytes=capacity, policy="explicit")
            result = loopsched.search(problem, arch, objective="dram_bytes")
            assert result.evaluation.dram_bytes <= body.bytes  # tiles placed one by one


@pytest.mark.parametrize(("problem", "capacity", "known"), CASES, ids=lambda case: str(case)[:40])
def test_known_optima(problem: Problem, capacity: int, known: int) -> None:
    """As `test_known_optima`: found with numpy, filter dimensions untiled."""
    least = traffic_curve(problem).at(capacity)
    assert least is not None
    assert least <= known
    if problem.kind == "gemm" or problem.size["R"] * problem.size["S"] == 1:
        assert least == known


# Caches ------------------------------------------------------------------------------


def every_promise(problem: Problem, capacities: tuple[int, ...]) -> dict[int, int | None]:
    """Least promise at each capacity, of all nests with one loop a dimension around a body."""
    least: dict[int, int | None] = dict.fromkeys(capacities)
    for extents in product(*(range(1, size + 1) for _, size in problem.sizes)):
        inside = dict(zip(problem.dims, extents, strict=True))
        cut = [dim for dim, size in problem.sizes if inside[dim] < size]
        for order in permutations(cut):
            around = [Loop(dim, problem.size[dim]) for dim in order]
            rest = [Loop(d, n) for d, n in inside.items() if n > 1 or d not in cut]
            nest = Schedule((*around, *rest))
            for capacity in capacities:
                found = traffic(problem, nest, capacity_bytes=capacity, effort=0).promised_bytes
                known = least[capacity]
                least[capacity] = found if known is None else min(known, found)
    return least


@pytest.mark.parametrize(
    "problem",
    [
        gemm(m=4, n=5, k=3),
        conv2d(n=1, c=2, k=2, p=4, q=1, r=3, s=1),
        conv2d(n=1, c=2, k=1, h=9, w=1, r=2, s=1, stride=2, dilation=(2, 1)),
    ],
    ids=lambda problem: problem.name,
)
def test_cache_by_brute_force(problem: Problem) -> None:
    curve = traffic_curve(problem, policy="lru")
    edges = curve.capacities_bytes
    capacities = (*edges[::4], *(edge - 1 for edge in edges[1::4]), 10**6)
    for capacity, least in every_promise(problem, capacities).items():
        assert curve.at(capacity) == least, capacity


def test_search_proves_the_same_for_caches() -> None:
    rng = random.Random(4)
    for problem in [gemm(m=300, n=170, k=90), LAYERS[16], LAYERS[9], PRODUCTS[5]]:
        curve = traffic_curve(problem, policy="lru")
        for _ in range(3):
            at = rng.randrange(len(curve))
            capacity = curve.capacities_bytes[at]
            arch = buffer_arch(capacity_bytes=capacity)
            result = loopsched.search(problem, arch, objective="dram_bytes")
            assert result.certificate.gap == 0 or not curve.is_proven_at(capacity)
            assert result.evaluation.dram_bytes == curve.at(capacity)
            found = traffic(problem, curve.schedule(at), capacity_bytes=capacity, effort=0)
            assert found.promised_bytes == curve.at(capacity)


@given(st.one_of(gemms(most=20), convs(), images()))
@settings(max_examples=20)
def test_no_cache_does_better_than_a_scratchpad(problem: Problem) -> None:
    cache, scratchpad = traffic_curve(problem, policy="lru"), traffic_curve(problem)
    assert cache.least_capacity_bytes == scratchpad.least_capacity_bytes
    assert cache.dram_bytes[-1] == scratchpad.dram_bytes[-1]
    for capacity, moved in steps(cache):
        least = scratchpad.at(capacity)
        assert least is not None
        assert least <= moved


# Orojenesis ------------------------------------------------------------------------

# The largest useful buffer as a share of all operands: figure 3 of Huang et al., "Mind the
# Gap", ISCA 2024, in percent, as the repository HansonZhang-cuhksz/orojenesis-analysis gives it
# (tools/gap1_benchmarks.py at commit 7b4a04f0ec51).
MIND_THE_GAP = {
    "vector": (einsum("i,i->i", {"i": 1_000_000}), 0),
    "matrix and vector": (gemm(m=1000, n=1, k=1000), 0.20),
    "product": (gemm(m=1000, n=1000, k=1000), 33),
    "1x1": (conv2d(n=1, c=64, k=64, p=16, q=16, r=1, s=1), 11),
    "3x3": (conv2d(n=1, c=64, k=64, p=16, q=16, r=3, s=3), 23),
    "3x3 stride 2": (conv2d(n=1, c=64, k=64, p=16, q=16, r=3, s=3, stride=2), 14),
    "5x5": (conv2d(n=1, c=64, k=64, p=16, q=16, r=5, s=5), 12),
}


@pytest.mark.parametrize(("problem", "published"), MIND_THE_GAP.values(), ids=MIND_THE_GAP)
def test_published_useful_capacities(problem: Problem, published: float) -> None:
    curve = traffic_curve(problem)
    percent = 100 * curve.useful_capacity_bytes / curve.compulsory_bytes
    assert round(percent, 2 if published < 1 else 0) == published


def divisors(size: int) -> list[int]:
    return [extent for extent in range(1, size + 1) if size % extent == 0]


def product_steps(m: int, n: int, k: int) -> list[tuple[int, int]]:
    """A product's staircase over divisors, in words of the textbook; 4-byte elements."""
    found = []
    for tm in divisors(m):
        for tn in divisors(n):
            for tk in divisors(k):
                a, b, c = m * k * (n // tn), k * n * (m // tm), m * n * (2 * (k // tk) - 1)
                room = tm * tk + tk * tn + tm * tn
                # One of the three stays while the innermost loop runs.
                for stays in ((m * k, b, c), (a, k * n, c), (a, b, m * n)):
                    found.append((4 * room, 4 * sum(stays)))
    return staircase(found)


@pytest.mark.parametrize("shape", [(24, 36, 60), (34, 38, 46), (61, 53, 47)])
def test_never_above_divisors_only(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    curve = traffic_curve(gemm(m=m, n=n, k=k))
    known = product_steps(m, n, k)
    gains = []
    for capacity in {*curve.capacities_bytes, *(capacity for capacity, _ in known)}:
        least = curve.at(capacity)
        assert least is not None
        moved = min(moved for room, moved in known if room <= capacity)
        assert least <= moved
        gains.append(moved / least)
    assert max(gains) > 1.05


def test_never_above_divisors_only_for_the_large_product() -> None:
    """The product whose curve takes Orojenesis ten seconds."""
    curve = traffic_curve(gemm(m=4096, n=4096, k=4096))
    for capacity, moved in product_steps(4096, 4096, 4096):
        least = curve.at(capacity)
        assert least is not None
        assert least <= moved
    assert curve.at(4_718_592) == 603_979_776


def test_divisors_only_by_brute_force() -> None:
    """Convolutions, too: literally, over divisors."""
    problem = conv2d(n=2, c=2, k=3, h=6, w=1, r=3, s=1, padding=(1, 0))
    known = every_step(problem, [divisors(size) for _, size in problem.sizes])
    curve = traffic_curve(problem)
    for capacity, moved in known:
        least = curve.at(capacity)
        assert least is not None
        assert least <= moved
    assert known != steps(curve)


# Shape -----------------------------------------------------------------------------


@given(st.one_of(gemms(most=30), convs(), images(), simple_affines()))
@settings(max_examples=60)
def test_shape_of_a_curve(problem: Problem) -> None:
    curve = traffic_curve(problem)
    capacities, moved = curve.capacities_bytes, curve.dram_bytes
    assert sorted(set(capacities)) == list(capacities)
    assert sorted(set(moved), reverse=True) == list(moved)
    assert moved[-1] == curve.compulsory_bytes
    assert curve.at(curve.least_capacity_bytes - 1) is None
    assert curve.at(10**15) == moved[-1]
    for at in {0, len(curve) // 3, len(curve) // 2, len(curve) - 1}:
        assert moved[at] >= curve.bound_bytes(capacities[at])


@given(gemms(most=30), st.sampled_from([2, 3, 8]))
@settings(max_examples=20)
def test_bytes_scale(problem: Problem, width: int) -> None:
    one = traffic_curve(problem.with_element_bytes(1))
    wide = traffic_curve(problem.with_element_bytes(width))
    assert steps(wide) == [(width * capacity, width * moved) for capacity, moved in steps(one)]


def test_bound_of_deepbench_layers() -> None:
    rng = random.Random(2)
    for problem in rng.sample(LAYERS, 5):
        curve = traffic_curve(problem)
        for capacity in rng.sample(curve.capacities_bytes, 5):
            least = curve.at(capacity)
            assert least is not None
            bound = communication_bound(problem, capacity).bytes
            assert curve.bound_bytes(capacity) == bound <= least


@pytest.mark.parametrize("policy", ["explicit", "lru"])
def test_room_for_steps_grows(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = gemm(m=90, n=70, k=50)
    curve = traffic_curve(problem, policy=policy)
    monkeypatch.setattr("loopsched.curves.front._FIRST_ROOM", 10)
    assert steps(traffic_curve(problem, policy=policy)) == steps(curve)
    assert len(curve) > 40


def test_ends() -> None:
    curve = traffic_curve(gemm(m=1, n=1, k=1))
    assert steps(curve) == [(12, 12)]
    assert str(curve.schedule(0)) == ""
    assert (curve.at(11), curve.step(11), len(curve), curve.knees) == (None, None, 1, ())
    with pytest.raises(InputError, match=r"^step is None; a whole number is needed"):
        curve.schedule(curve.step(11))  # type: ignore[arg-type]
    with pytest.raises(IndexError, match=r"^step is 1; the curve has 1 step$"):
        curve.schedule(1)


def test_python_gives_the_same_curve() -> None:
    script = (
        "from loopsched import conv2d, traffic_curve; "
        "layer = conv2d(n=1, c=2, k=3, h=6, w=3, r=3, s=1, padding=(1, 0)); "
        "print([repr(traffic_curve(layer, policy=policy)) for policy in ('explicit', 'lru')])"
    )
    environment = {**os.environ, "LOOPSCHED_JIT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    layer = conv2d(n=1, c=2, k=3, h=6, w=3, r=3, s=1, padding=(1, 0))
    compiled = [repr(traffic_curve(layer)), repr(traffic_curve(layer, policy="lru"))]
    assert done.stdout.strip() == str(compiled)


def test_bad_input() -> None:
    with pytest.raises(ProblemError, match="more bytes than fit into 64 bits"):
        traffic_curve(gemm(m=2**20, n=2**20, k=2**20))
    axes = (Axis((("A", 1), ("B", 1), ("C", 1))),)
    sizes = (("A", 2), ("B", 2), ("C", 2))
    cube = Problem("cube", sizes, (Tensor("X", axes), Tensor("Y", ())), "Y")
    with pytest.raises(ProblemError, match="the search handles at most 2"):
        traffic_curve(cube)
    away = (Axis((("A", 1),), -2, 9),)
    nothing = Problem("pad", (("A", 2),), (Tensor("X", away), Tensor("Y", away)), "Y")
    with pytest.raises(ProblemError, match="moves nothing; all it reaches is padding"):
        traffic_curve(nothing)
    with pytest.raises(loopsched.ScheduleError, match="policy 'fifo' is unknown"):
        traffic_curve(gemm(m=1, n=1, k=1), policy="fifo")  # type: ignore[arg-type]
    with pytest.raises(WorkloadError, match="jobs is 0"):
        list(workload_curves(Workload("w", (gemm(m=1, n=1, k=1),)), jobs=0))
    with pytest.raises(WorkloadError, match="no layers"):
        NetworkCurve.of("w", (), ())


@pytest.mark.parametrize("wrong", ["96 KiB", None, True, [96], np.nan])
def test_what_is_no_capacity_is_refused(wrong: Any) -> None:
    one = traffic_curve(gemm(m=64, n=64, k=64))
    assert one.at(np.int64(4096)) == one.at(4096.5) == one.at(4096)
    for curve in (one, NetworkCurve.of("w", (one,), (2,))):
        for asked in (curve.at, curve.step, curve.is_proven_at):
            with pytest.raises(InputError, match=r"^capacity_bytes is .*; a number of bytes is"):
                asked(wrong)
        with pytest.raises(InputError, match=r"^capacity_bytes is .*; a whole number >= 0"):
            curve.bound_bytes(wrong)


# Networks, knees, other forms --------------------------------------------------------


def test_network_is_the_sum_of_its_layers() -> None:
    layers = (gemm(m=9, n=8, k=7), gemm(m=5, n=5, k=30).with_element_bytes(2), gemm(m=1, n=9, k=9))
    workload = Workload("three", layers, (3, 1, 7))
    whole = network_curve(workload)
    curves = [traffic_curve(layer) for layer in layers]
    for capacity in range(1500):
        parts = [curve.at(capacity) for curve in curves]
        expected = None
        if None not in parts:
            expected = sum(n * part for n, part in zip((3, 1, 7), parts, strict=True) if part)
        assert whole.at(capacity) == whole.nest_bound.at(capacity) == expected
    assert whole.n_proven == len(whole)
    assert list(whole.curves) == curves
    assert whole.macs == sum(n * one.macs for n, one in zip((3, 1, 7), layers, strict=True))
    assert whole.compulsory_bytes == whole.dram_bytes[-1]
    assert whole.bound_bytes(100) == 3 * curves[0].bound_bytes(100) + curves[1].bound_bytes(
        100
    ) + 7 * curves[2].bound_bytes(100)
    assert sorted(set(whole.dram_bytes), reverse=True) == list(whole.dram_bytes)
    assert whole.rows()[3]["problem"] == "three"


def test_bounds_of_a_network_add_up() -> None:
    layers = (gemm(m=9, n=8, k=7), conv2d(c=2, k=3, h=9, w=5, r=3, s=3, padding=1))
    whole = network_curve(Workload("two", layers, (3, 2)))
    assert 0 < whole.n_proven < len(whole)
    for capacity in range(whole.least_capacity_bytes, 3000):
        parts = [curve.nest_bound.at(capacity) or 0 for curve in whole.curves]
        assert whole.nest_bound.at(capacity) == 3 * parts[0] + 2 * parts[1]
        proven = [curve.is_proven_at(capacity) for curve in whole.curves]
        assert whole.is_proven_at(capacity) == all(proven)


@dataclass(frozen=True, slots=True)
class Drawn(Staircase):
    """A staircase drawn by hand."""

    capacities_bytes: tuple[int, ...]
    dram_bytes: tuple[int, ...]

    name = "drawn"
    macs = 1000
    compulsory_bytes = 1

    def bound_bytes(self, capacity_bytes: int) -> int:
        return 0

    def compute_time_s(self, arch: Arch) -> float:
        return 0.5


def test_knees_are_where_the_slope_changes() -> None:
    """Traffic falls with the capacity, stays for a while, falls again, then no more."""
    falls = [(2**i, 2 ** (40 - i)) for i in range(10, 16)]
    again = [(2**i, 2 ** (40 - i + 9)) for i in range(25, 29)]
    curve = Drawn(*zip(*falls, *again, strict=True))
    assert [knee.capacity_bytes for knee in curve.knees] == [2**15, 2**28]
    first = curve.knees[0]
    assert (first.dram_bytes, first.saved_before, first.saved_after) == (2**25, 4.0, 1.0)
    assert first.bend == 2.0
    straight = Drawn(*zip(*((4**i, 2 ** (40 - i)) for i in range(1, 20)), strict=True))
    assert [knee.capacity_bytes for knee in straight.knees] == [4**19]  # only where it ends


def test_bandwidth_and_intensity() -> None:
    curve = Drawn((10, 20), (500, 100))
    arch = load_arch("titan_v")
    assert curve.intensity() == (4.0, 20.0)
    assert curve.bandwidth(arch) == (1000.0, 200.0)
    layer = traffic_curve(gemm(m=64, n=64, k=64))
    # 80 multiprocessors with 64 lanes at 1.2 GHz, as the architecture's file says.
    rate = 80 * 64 * arch.compute.clock_hz
    assert layer.bandwidth(arch)[0] == pytest.approx(layer.dram_bytes[0] / (64**3 / rate), rel=0.02)


def test_rows_and_digest() -> None:
    curve = traffic_curve(gemm(m=16, n=12, k=8))
    rows = curve.rows(load_arch("v100"))
    for step, row in enumerate(rows):
        assert row["bound_bytes"] == communication_bound(curve.problem, row["capacity_bytes"]).bytes
        assert row["schedule"] == str(curve.schedule(step))
    assert [(one["capacity_bytes"], one["dram_bytes"]) for one in rows] == steps(curve)
    assert {one["schedule"] for one in rows} == {
        str(curve.schedule(at)) for at in range(len(curve))
    }
    digest = curve.digest(load_arch("v100"))
    size = load_arch("v100").level("L1").usable_bytes
    assert size is not None
    assert digest["L1_capacity_bytes"] == size
    assert digest["L1_dram_bytes"] == curve.at(size) == 4 * (16 * 8 + 8 * 12 + 16 * 12)
    assert digest["n_steps"] == len(rows)
    assert digest["n_proven"] == len(rows)
    assert digest["L1_nest_bound_bytes"] == digest["L1_dram_bytes"]


def test_a_curve_can_be_compared_and_sent() -> None:
    import pickle

    curve = traffic_curve(gemm(m=6, n=5, k=4))
    again = pickle.loads(pickle.dumps(curve))
    assert isinstance(again, Curve)
    assert again == curve
    assert again.schedule(3) == curve.schedule(3)
