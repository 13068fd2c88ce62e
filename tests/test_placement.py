"""The best nest for tiles placed one by one: known optima, brute force, bounds for any nest."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from loopsched import buffer_arch, conv2d, einsum, evaluate, gemm, search
from loopsched.base.errors import EmptySpaceError, ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Level
from loopsched.models.machine import room_of
from loopsched.models.score import Evaluation
from loopsched.models.traffic import Room
from loopsched.nests.nest import Loop, Place, Schedule
from loopsched.problems.builders import batched_gemm
from loopsched.problems.convolution import PASSES
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Problem
from loopsched.problems.projections import affine
from loopsched.scheduler import Constraints, placement
from loopsched.scheduler.allowed import allows, space_of
from loopsched.scheduler.body import PLACED, Keeps, best_body
from loopsched.scheduler.goal import OBJECTIVES, Objective
from loopsched.scheduler.placement import best_placement, least_placed_bytes
from tests import placement_oracle
from tests.oracle_search import random_machine, random_problem

# Problem, capacity in bytes, what AccelForge's imperfect mapper moves, and one place for all.
KNOWN = [
    (gemm(m=512, n=512, k=512), 64, 314_572_800, 359_661_568),
    (gemm(m=512, n=512, k=512), 128, 217_055_232, 243_269_632),
    (gemm(m=512, n=512, k=512), 256, 145_752_064, 156_237_824),
    (gemm(m=512, n=512, k=512), 1024, 71_303_168, 73_400_320),
    (gemm(m=512, n=512, k=512), 4096, 35_651_584, 36_700_160),
    (gemm(m=5124, n=700, k=2048), 98_304, 394_423_232, 396_258_240),
    # It prints 4,562,288,640: the same in 32-bit floating point.
    (gemm(m=8191, n=8191, k=8191), 4_718_592, 4_562_288_708, 4_562_288_708),
]


@pytest.mark.parametrize(("problem", "capacity", "known", "even"), KNOWN, ids=str)
def test_products_that_another_mapper_places(
    problem: Problem, capacity: int, known: int, even: int
) -> None:
    arch = buffer_arch(capacity_bytes=capacity, policy="explicit")
    result = search(problem, arch, objective="dram_bytes")
    assert result.evaluation.dram_bytes == known
    assert result.certificate.proven
    assert result.certificate.lower_bound == known
    body = best_body(problem, Room.shared(capacity), PLACED)
    assert body is not None
    assert body.bytes == even
    assert result.certificate.nodes < 10_000


CAPACITIES = 64, 500, 4096, 98_304


def products() -> list[tuple[Problem, int]]:
    rng = Random(7)
    shapes = [
        [rng.choice([35, 64, 127, 512, 700, 1760, 4096]) for _ in range(3)] for _ in range(20)
    ]
    return [
        (gemm(m=m, n=n, k=k, element_bytes=rng.choice([1, 2, 4])), rng.choice(CAPACITIES))
        for m, n, k in shapes
    ]


@pytest.mark.parametrize(("problem", "capacity"), products(), ids=str)
def test_products_against_all_extents(problem: Problem, capacity: int) -> None:
    """The tile placed first is any; of the next, one line; of the last, one element."""
    size, width = problem.size, problem.tensors[0].element_bytes
    dims = {"A": "MK", "B": "KN", "C": "MN"}
    least = 2**62
    for first, second in [(a, b) for a in "ABC" for b in "ABC" if a != b]:
        (third,) = set("ABC") - {first, second}
        (shared,) = set(dims[first]) & set(dims[second])
        (other,) = set(dims[first]) - {shared}
        elems = {name: size[d[0]] * size[d[1]] for name, d in dims.items()}
        for i in range(1, size[shared] + 1):
            room = capacity // width - i - 1
            j = min(size[other], room // i)
            if j < 1:
                break
            visits = {first: 1, second: -(-size[other] // j), third: -(-size[shared] // i)}
            moved = sum(elems[t] * n * (2 if t == "C" else 1) for t, n in visits.items())
            least = min(least, (moved - elems["C"]) * width)
    arch = buffer_arch(capacity_bytes=capacity, policy="explicit")
    result = search(problem, arch, objective="dram_bytes")
    assert result.certificate.proven
    assert result.evaluation.dram_bytes == least


# 64 channels of 28 x 28: AccelForge 1.0 finds 4,845,568 B, one place for all tiles 3,641,344 B.
def test_a_convolution() -> None:
    problem = conv2d(n=1, c=64, k=64, h=30, w=30, r=3, s=3)
    arch = buffer_arch(capacity_bytes=4096, policy="explicit")
    result = search(problem, arch, objective="dram_bytes")
    assert (result.evaluation.dram_bytes, result.certificate.proven) == (3_536_896, True)


TWO_WINDOWS = (
    {"x": "P+R", "w": "R+S", "y": "P S"},
    {"x": "P+R S", "w": "R", "y": "P+S"},
    {"x": "2*P+R", "w": "R+S", "y": "P S"},
)


def random_case(rng: Random, kind: str) -> tuple[Problem, int]:
    """A problem, and how many cuts reach every nest of it that may matter."""
    widths = {name: rng.choice([1, 1, 2, 4]) for name in ("A", "B", "C", "x", "w", "y")}
    if kind == "product":
        return gemm(**{d: rng.randint(1, 4) for d in "mnk"}, element_bytes=rng.choice([1, 2])), 5
    if kind == "sum":
        text = rng.choice(["ab,bc,cd->ad", "ab,b,a->a", "ab,bc,ac->ab", "ab,ac,bc->abc", "ab->ba"])
        letters = sorted(set(text) - set(",->"))
        return einsum(text, {one: rng.randint(1, 3) for one in letters}, element_bytes=1), 4
    if kind == "two windows":
        sizes = {"P": rng.randint(1, 4), "R": rng.randint(1, 3), "S": rng.randint(1, 2)}
        tensors = rng.choice(TWO_WINDOWS)
        return affine(sizes, tensors, element_bytes={n: widths[n] for n in "xwy"}), 5
    if kind == "image":
        sizes = {"P": rng.randint(1, 3), "Q": rng.randint(1, 3), "R": 2, "S": rng.randint(1, 2)}
        tensors = {"x": "P+R Q+S", "w": "R S", "y": "P Q"}
        return affine(sizes, tensors, element_bytes={n: widths[n] for n in "xwy"}), 5
    padding = (rng.randint(0, 1), rng.randint(0, 1), 0, 0) if kind == "padded" else 0
    stride = rng.randint(2, 3) if kind == "gapped" else 1
    r = rng.randint(1, 3)
    return conv2d(
        c=rng.randint(1, 2), k=rng.randint(1, 2), h=r + rng.randint(0, 3 * stride), w=1, r=r, s=1,
        stride=(stride, 1), padding=padding, pass_=rng.choice(list(PASSES)),
        element_bytes=rng.choice([1, 2]),
    ), 5  # fmt: skip


def random_room(rng: Random, problem: Problem, copies: int) -> Room:
    whole = sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
    least = copies * sum(tensor.element_bytes for tensor in problem.tensors)
    name = rng.choice(problem.tensors).name
    own = ((name, rng.randint(8, max(8, whole // 2))),) if rng.random() < 0.2 else ()
    passing = frozenset([name]) if not own and rng.random() < 0.2 else frozenset()
    return Room(rng.randint(least, max(least, whole)), own, passing)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "kind", ["product", "sum", "image", "two windows", "plain", "gapped", "padded"]
)
def test_brute_force_over_nests_and_places(kind: str, seed: int) -> None:
    rng = Random(f"{kind} {seed}")
    problem, cuts = random_case(rng, kind)
    copies, halo_reuse = rng.choice([1, 1, 2]), rng.random() < 0.8
    room = random_room(rng, problem, copies)
    keeps = Keeps(False, halo_reuse, copies)
    brute = placement_oracle.best(problem, room, cuts, halo_reuse=halo_reuse, copies=copies)
    found = best_placement(problem, room, keeps)
    bound, _ = least_placed_bytes(problem, room, keeps)
    assert brute is not None
    assert found is not None
    assert bound <= brute[0], f"{brute[1]} moves less than the bound"
    assert bound <= found.bytes
    if kind != "padded":  # there pieces of uneven cuts may touch less
        assert bound == found.bytes


def test_a_search_cut_short_says_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = conv2d(n=1, c=8, k=8, h=30, w=30, r=3, s=3)
    room = Room.shared(1024)
    exact, _ = least_placed_bytes(problem, room)
    for most in (0, 1, 10, 100):
        monkeypatch.setattr(placement, "MOST_NODES", most)
        bound, nodes = least_placed_bytes(problem, room)
        assert bound <= exact
        assert nodes <= most + 1
        assert bound >= sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)


def test_more_tensors_than_are_ordered_are_bounded_by_what_they_are() -> None:
    problem = einsum("a,b,c,d,e->abcde", dict.fromkeys("abcde", 4), element_bytes=1)
    room = Room.shared(64)
    assert best_placement(problem, room) is None
    assert least_placed_bytes(problem, room) == (4 * 5 + 4**5, 0)
    arch = buffer_arch(capacity_bytes=64, policy="explicit")
    result = search(problem, arch, objective="dram_bytes")
    assert result.certificate.lower_bound <= result.evaluation.dram_bytes


def test_only_something_better_is_returned() -> None:
    problem, room = gemm(m=64, n=64, k=64), Room.shared(1024)
    found = best_placement(problem, room)
    assert found is not None
    assert best_placement(problem, room, below=found.bytes) is None
    assert best_placement(problem, room, below=found.bytes + 1) is not None
    assert least_placed_bytes(problem, room, below=100)[0] == 100
    assert best_placement(problem, Room.shared(11)) is None


def test_tables_that_promise_too_much_return_nothing_worse() -> None:
    """A window that slides over gaps reads more than tables say; only what is read counts."""
    problem = affine({"D": 5, "E": 5}, {"X": "3*E+D", "Y": ""}, element_bytes=2)
    room = Room(34, (), frozenset({"Y"}))
    found = best_placement(problem, room)
    assert found is not None
    assert least_placed_bytes(problem, room)[0] < found.bytes
    assert best_placement(problem, room, below=found.bytes) is None
    assert best_placement(problem, room, below=found.bytes + 1) == found


def test_constraints_are_for_nests_without_places() -> None:
    problem = gemm(m=64, n=64, k=64)
    arch = buffer_arch(capacity_bytes=64, policy="explicit")
    limits = Constraints(tiles="divisors")
    found = search(problem, arch, objective="dram_bytes")
    assert found.schedule.places
    assert allows(found.certificate.space, found.schedule) is None
    reason = allows(space_of(problem, arch, limits), found.schedule)
    assert reason == "its tiles are placed one by one; constraints are for nests without"
    limited = search(problem, arch, objective="dram_bytes", constraints=limits)
    assert not limited.schedule.places


def test_the_outermost_scratchpad_of_several_levels() -> None:
    problem = gemm(m=64, n=64, k=64)
    one = buffer_arch(capacity_bytes=64, policy="explicit")
    inner = Level("L1", "cache", 48, bandwidth_bytes_per_s=1e12)
    two = replace(one, levels=(*one.levels, inner))
    results = [search(problem, arch, objective="dram_bytes") for arch in (one, two)]
    assert [found.evaluation.dram_bytes for found in results] == [638_976, 638_976]
    assert all(found.certificate.proven for found in results)


def test_batches_and_attention_are_proven() -> None:
    for problem in (
        batched_gemm(batch=16, m=1024, n=1024, k=64, element_bytes=2),
        batched_gemm(batch=8, m=128, n=4096, k=4096, element_bytes=2),
    ):
        arch = buffer_arch(capacity_bytes=65_536, policy="explicit")
        assert search(problem, arch, objective="dram_bytes").certificate.proven


@pytest.mark.parametrize("seed", range(60))
def test_no_placed_schedule_is_below_the_bound_of_a_machine(seed: int) -> None:
    """Levels of any kind, own units, tensors that pass: random nests, random places."""
    rng = Random(seed)
    problem = random_problem(rng)
    arch = random_machine(rng, problem)
    objective: Objective = rng.choice(OBJECTIVES[:2])
    try:
        result = search(problem, arch, objective=objective)
    except EmptySpaceError:
        return
    bound = result.certificate.lower_bound
    for _ in range(60):
        found = random_placed(rng, problem, arch, result.schedule)
        if found is not None:
            value = found.dram_bytes if objective == "dram_bytes" else found.time_s
            assert value >= bound * (1 - 1e-12)


def random_placed(rng: Random, problem: Problem, arch: Arch, best: Schedule) -> Evaluation | None:
    """The best nest, or a random one, with a random place for every tile of every scratchpad."""
    nest = best if rng.random() < 0.3 else random_nest(rng, problem, arch)
    places: list[Place] = []
    for level in arch.caches:
        if level.kind == "scratchpad":
            held = room_of(problem, level).held(problem)
            places += (Place(rng.randint(0, len(nest.loops)), level.name, t.name) for t in held)
    try:
        return evaluate(problem, Schedule(nest.loops, tuple(places)), arch, effort=0)
    except ScheduleError:
        return None


def random_nest(rng: Random, problem: Problem, arch: Arch) -> Schedule:
    unit, spatial = arch.compute.unit, space_of(problem, arch).spatial
    left = dict(problem.size)
    blocks = [None, unit, None, None] if arch.compute.units > 1 else [None, None]
    loops: list[Loop] = []
    for mark in blocks:
        dims = [dim for dim, extent in left.items() if extent > 1]
        for dim in rng.sample(dims, rng.randint(0, len(dims))):
            if mark is None or dim in spatial:
                loops.append(Loop(dim, left[dim], mark))
                left[dim] = rng.randint(1, left[dim])
    return Schedule((*loops, *(Loop(dim, extent) for dim, extent in left.items() if extent > 1)))
