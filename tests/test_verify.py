"""Proofs: what is accepted is true, what is changed is refused, and who checks is independent."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import fuzz_cases
import oracle
import oracle_space
import pytest
from fuzz_checks import random_nest

import loopsched
from loopsched import (
    Arch,
    Axis,
    Level,
    Loop,
    Problem,
    Schedule,
    Tensor,
    conv2d,
    gemm,
    parse_schedule,
)  # fmt: skip
from loopsched.base.errors import ArchError, LoopschedError, ProofError
from loopsched.base.units import parse_bytes
from loopsched.cli import run
from loopsched.machines.arch_file import arch_names
from loopsched.machines.levels import Compute
from loopsched.models.machine import data_type_of
from loopsched.scheduler.proof import closes, proof_of, witness_of
from loopsched.verify import verify_proof
from loopsched.verify.bounds import Bounds, totals
from loopsched.verify.readers import Capacity, groups_of, own_units, rate_of
from loopsched.verify.value import cached, followed, points, tiles_of, value_of, view_of, walk

CHECKER = Path(loopsched.__file__).parent / "verify"
ALLOWED = {"base", "problems", "machines", "nests", "verify"}


def machine(
    *levels: tuple[str, int, float], units: int = 1, rate: float = 1.0, through: bool = False
) -> Arch:
    """Build a machine: kind, capacity and bandwidth of each level; the last has the units."""
    built = [Level("M", "memory", None)]
    for i, (kind, capacity, bandwidth) in enumerate(levels):
        private = units > 1 and i == len(levels) - 1 and i > 0
        built.append(
            Level(
                f"L{i}", kind, capacity, bandwidth_bytes_per_s=bandwidth,
                instances=units if private else 1, unit="SM" if private else None,
                write_policy="through" if through and kind == "cache" else "back",
            )
        )  # fmt: skip
    rates = tuple((name, rate) for name in ("int8", "fp16", "fp32"))
    return Arch("tiny", tuple(built), Compute("SM", units, 1.0, 1.0, rates))


def problems(rng: random.Random) -> Problem:
    """Make a tiny problem: a product, or a convolution with padding, strides and gaps."""
    if rng.random() < 0.4:
        return gemm(m=rng.randint(1, 6), n=rng.randint(1, 6), k=rng.randint(1, 4), element_bytes=1)
    while True:
        try:
            return conv2d(
                c=rng.randint(1, 2), k=rng.randint(1, 3), h=rng.randint(2, 7), w=1, s=1,
                r=rng.randint(1, 3), stride=(rng.randint(1, 2), 1), dilation=(rng.randint(1, 2), 1),
                padding=(rng.randint(0, 2), rng.randint(0, 2), 0, 0), element_bytes=1,
            )  # fmt: skip
        except LoopschedError:
            continue


def scalars(rng: random.Random) -> Problem:
    """Make a tiny problem with tensors that no dimension indexes."""
    sizes = {"P": rng.randint(2, 7), "K": rng.randint(1, 4)}
    tensors = {"x": "P K", "w": rng.choice(("", "P", "K")), "y": rng.choice(("", "", "P"))}
    return loopsched.affine(sizes, tensors, element_bytes=1)


def nest(rng: random.Random, problem: Problem, units: int, spatial: tuple[str, ...]) -> Schedule:
    """Draw a nest: any number of loops of a dimension, in any order, one list of items."""
    chains = {dim: [n] for dim, n in problem.sizes}
    loops: list[tuple[str, int]] = []
    for dim, size in problem.sizes:
        extent = size
        while extent > 1:
            extent = rng.randint(1, extent - 1) if rng.random() < 0.7 else 1
            chains[dim].append(extent)
    waiting = {dim: chain[:-1] for dim, chain in chains.items() if len(chain) > 1}
    while waiting:
        dim = rng.choice(sorted(waiting))
        loops.append((dim, waiting[dim].pop(0)))
        if not waiting[dim]:
            del waiting[dim]
    first = rng.randint(0, len(loops))
    last = first
    while units > 1 and last < len(loops) and loops[last][0] in spatial and rng.random() < 0.8:
        last += 1
    return Schedule.of(
        Loop(dim, extent, "SM" if first <= at < last else None)
        for at, (dim, extent) in enumerate(loops)
    )


def machines(rng: random.Random) -> Arch:
    """Draw a machine of one or two levels, with one unit or more."""
    kinds = ("cache", "scratchpad")
    many = rng.randint(1, 2)
    sizes = sorted((rng.randint(4, 60) for _ in range(many)), reverse=True)
    levels = [(rng.choice(kinds), size, rng.choice((0.5, 1.0, 4.0))) for size in sizes]
    units = rng.randint(1, 4) if many > 1 else 1
    return machine(*levels, units=units, rate=rng.choice((1.0, 2.0)), through=rng.random() < 0.2)


@pytest.mark.parametrize("seed", range(60))
def test_no_schedule_is_below_an_accepted_bound(seed: int) -> None:
    rng = random.Random(seed)
    problem, arch = problems(rng), machines(rng)
    objective = rng.choice(("time", "time", "dram_bytes"))
    try:
        result = loopsched.search(problem, arch, objective=objective)
        verdict = verify_proof(proof_of(result))
    except (loopsched.EmptySpaceError, loopsched.ConstraintError):
        return
    for _ in range(150):
        schedule = nest(rng, problem, arch.compute.units, problem.parallel_dims)
        try:
            score = loopsched.evaluate(problem, schedule, arch, effort=0)
        except LoopschedError:
            continue
        value = score.time_s if objective == "time" else score.dram_bytes
        assert value >= float(verdict.bound) * (1 - 1e-12), (str(schedule), verdict.bound)


@pytest.mark.parametrize("seed", range(40))
def test_the_value_is_that_of_evaluate_or_above(seed: int) -> None:
    rng = random.Random(1000 + seed)
    problem, arch = problems(rng), machines(rng)
    same = seen = 0
    for _ in range(20):
        schedule = nest(rng, problem, arch.compute.units, problem.parallel_dims)
        try:
            score = loopsched.evaluate(problem, schedule, arch, effort=0)
        except LoopschedError:
            with pytest.raises(LoopschedError):
                value_of(problem, schedule, arch, "time")
            continue
        value = float(value_of(problem, schedule, arch, "time"))
        assert value >= score.time_s * (1 - 1e-12)
        same += abs(value / score.time_s - 1) < 1e-12
        seen += 1
    assert same >= 0.9 * seen  # where waves run on, it may charge more


def test_tiles_placed_outside_their_units_are_refused() -> None:
    """A log of a broken search named them; each instance holds tiles of its own work."""
    arch = machine(("scratchpad", 15, 1.0), ("scratchpad", 14, 1e6), units=3)
    problem = conv2d(c=2, k=2, h=7, w=3, r=3, s=3, element_bytes=1)
    for where in ("K:2 [L1 output] S:3 C:2 [L1 weight] R:3@SM P:5 [L1 input]",
                  "K:2 [L1 output] S:3 C:2 R:3@SM [L1 weight] P:5 [L1 input]"):  # fmt: skip
        schedule = parse_schedule(where, problem)
        for value in (loopsched.evaluate, partial(value_of, objective="time")):
            with pytest.raises(LoopschedError):
                value(problem, schedule, arch)
    inside = parse_schedule("K:2 S:3 C:2 R:3@SM [L1 output] [L1 weight] P:5 [L1 input]", problem)
    promised = loopsched.evaluate(problem, inside, arch).time_s
    assert float(value_of(problem, inside, arch, "time")) == promised


@pytest.mark.parametrize("seed", range(30))
def test_no_cache_behind_others_brings_in_more(seed: int) -> None:
    rng = random.Random(f"behind {seed}")
    problem = fuzz_cases.build(fuzz_cases.problem_text(rng, most_macs=150))
    arch = fuzz_cases.machine(
        rng, problem, n_shared=rng.randint(1, 3), n_own=rng.randint(0, 2), units=4, kinds=("cache",)
    )
    for _ in range(8):
        schedule = random_nest(rng, problem, arch)
        outermost = loopsched.simulate(problem, schedule, arch=arch).levels[0]
        moved = sum(each.read_bytes + each.write_bytes for each in outermost.tensors.values())
        assert value_of(problem, schedule, arch, "dram_bytes") >= moved, (str(schedule), arch)


BEHIND = [  # a problem, levels, and a nest of which the outermost would move less if it saw all
    (
        "conv2d(c=2, k=1, h=5, w=1, r=1, s=1, stride=(2, 1), padding=(2, 1, 1, 0), "
        "dilation=(1, 2), pass_='backward_data')",
        (("", 30, 1), ("", 10, 1)),
        "C:2 Q:2 P:4",
        100,
    ),
    (  # bodies of another item come between
        "conv2d(n=1, c=3, h=5, w=1, k=2, r=3, s=1, stride=(2, 1), padding=(1, 0, 0, 0), "
        "dilation=(1, 2), pass_='backward_weights', "
        "element_bytes=dict(input=2, weight=4, output=4))",
        (("", 51, 1), ("CLU", 21, 2), ("SM", 19, 2)),
        "K:2@CLU R:3@SM K:1@SM C:3 P:2",
        134,
    ),
    (  # bodies of other loops come between
        "conv2d(n=2, c=1, h=3, w=2, k=1, r=2, s=1, padding=(1, 2, 1, 1), pass_='backward_weights')",
        (("", 62, 1), ("", 18, 1)),
        "Q:4 P:5 N:2 R:2",
        220,
    ),
]


@pytest.mark.parametrize(("text", "levels", "notation", "moved"), BEHIND)
def test_what_caches_that_see_all_would_keep_has_left_those_behind(
    text: str, levels: Sequence[tuple[str, int, int]], notation: str, moved: int
) -> None:
    caches = [
        Level(f"L{at}", "cache", size, n, unit or None, bandwidth_bytes_per_s=1.0)
        for at, (unit, size, n) in enumerate(levels)
    ]
    unit, _, n = levels[-1]
    compute = Compute(unit or "core", n, 1.0, 1.0, (("fp32", 1.0), ("fp16", 1.0)))
    arch = Arch("behind", (Level("DRAM", "memory", None), *caches), compute)
    problem = fuzz_cases.build(text)
    nest = parse_schedule(notation, problem)
    assert loopsched.simulate(problem, nest, arch=arch).level("L0").bytes == moved
    assert value_of(problem, nest, arch, "dram_bytes") >= moved


def test_a_cache_behind_a_scratchpad_does_not_see_what_it_keeps() -> None:
    """A log of a broken search named this schedule, worth 392 if L2 saw all accesses."""
    arch = machine(("cache", 19, 1.0), ("scratchpad", 19, 1e6), units=3)
    problem = gemm(m=8, n=11, k=4, element_bytes=1)
    schedule = parse_schedule("N:11 M:8@SM N:6@SM N:2 K:4 M:2", problem)
    assert value_of(problem, schedule, arch, "dram_bytes") == 456


@pytest.mark.parametrize(
    ("text", "notation"),
    [  # what L1 keeps of each stays in L2: new steps of K; a window's rows; weights asked for once
        ("gemm(m=256, n=509, k=2048)", "M:256@SM N:509@SM K:2048 M:32 N:51 K:137"),
        (
            "conv2d(n=8, c=1, h=48, w=480, k=16, r=3, s=3, padding=1)",
            "Q:480@SM P:48 N:8 K:16 Q:26 R:3 S:3",
        ),
        (
            "conv2d(n=8, c=64, h=112, w=112, k=64, r=1, s=1)",
            "P:112@SM Q:112@SM P:56 N:8 K:64 C:64 P:3 Q:3",
        ),
    ],
)
def test_what_stays_behind_a_cache_that_does_not_ask_again(text: str, notation: str) -> None:
    problem, arch = fuzz_cases.build(text), loopsched.load_arch("titan_v")
    schedule = parse_schedule(notation, problem)
    promised = loopsched.evaluate(problem, schedule, arch, effort=0).time_s
    assert float(value_of(problem, schedule, arch, "time")) == pytest.approx(promised, rel=1e-12)


def uneven_nest(rng: random.Random, problem: Problem) -> Schedule:
    """Draw a nest with a list of items of up to four loops near its outside."""
    chains = {}
    for dim, size in problem.sizes:
        chains[dim] = [size]
        while chains[dim][-1] > 1:
            last = chains[dim][-1]
            chains[dim].append(rng.randint(1, last - 1) if rng.random() < 0.75 else 1)
    waiting = [dim for dim, chain in chains.items() for _ in chain[1:]]
    rng.shuffle(waiting)
    first = rng.randint(0, 2)
    last = first + rng.randint(1, 4)
    return Schedule.of(
        Loop(dim, chains[dim].pop(0), "SM" if first <= at < last else None)
        for at, dim in enumerate(waiting)
    )


def follow(problem: Problem, schedule: Schedule, n: int, capacity: int) -> bool:
    """Follow n instances that share a cache: it brings in no more than is said; is that much?"""
    groups = groups_of(schedule, {"SM": n})
    found = cached(problem, groups, {"SM": n}, Capacity(capacity, {}, frozenset()))
    lru = oracle.Lru(problem, capacity)
    for items in oracle.item_lists(problem, schedule, "SM"):
        for wave in oracle.waves(items, n):
            lru.run(oracle.lock_step(wave))
    lru.flush()
    for t in problem.tensors:
        moved = lru.moved.writes if t.name == problem.output else lru.moved.reads
        assert moved[t.name] <= found[t.name] * t.element_bytes, (str(schedule), n, capacity)
    is_even = view_of(problem, groups, {"SM": n}).is_even
    return not is_even and found != points(problem, problem.tensors)


@pytest.mark.parametrize("most", [0, 1000])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("problems", [problems, scalars])
def test_no_cache_that_is_followed_brings_in_more(
    problems: Callable[[random.Random], Problem],
    seed: int,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Waves run on; lists of so many items are followed, and no less is said than is promised."""
    monkeypatch.setattr("loopsched.verify.value.MOST_ITEMS", most)
    rng = random.Random(seed)
    useful = 0
    for _ in range(40):
        problem, n = problems(rng), rng.randint(2, 7)
        schedule = uneven_nest(rng, problem)
        if not any(loop.is_spatial for loop in schedule.loops):
            continue
        capacity = rng.randint(3, max(4, sum(oracle.compulsory(problem).values())))
        useful += follow(problem, schedule, n, capacity)
        arch = machine(("cache", capacity, 1.0), units=n)
        promised = loopsched.evaluate(problem, schedule, arch, effort=0).dram_bytes
        assert value_of(problem, schedule, arch, "dram_bytes") >= promised, (str(schedule), n)
    assert useful or problems is scalars  # lists of few items mostly end evenly


def test_a_wave_that_does_not_fit_may_bring_in_twice() -> None:
    """Three items side by side evict what they still ask for."""
    problem = loopsched.affine({"P": 2, "K": 3}, {"x": "P K", "w": "P", "y": "P"}, element_bytes=1)
    schedule = parse_schedule("P:2@SM K:3@SM K:2", problem)
    for capacity in (4, 5, 6):
        follow(problem, schedule, 3, capacity)


@pytest.mark.parametrize("seed", range(25))
def test_tensors_without_dimensions_have_logs(seed: int) -> None:
    rng = random.Random(seed)
    problem, arch = scalars(rng), machines(rng)
    for objective in ("time", "dram_bytes"):
        with suppress(loopsched.EmptySpaceError):
            result = loopsched.search(problem, arch, objective=objective)
            verdict = verify_proof(proof_of(result))
            assert float(verdict.bound) <= result.certificate.value <= float(verdict.best)
            assert verdict.proven or not result.certificate.proven


@pytest.mark.parametrize("seed", range(60))
def test_where_logs_are_known_to_close_they_close(seed: int) -> None:
    """There no log is tried: one buffer, plain products or windows that lie evenly."""
    rng = random.Random(seed)
    policy = rng.choice(("lru", "explicit"))
    arch = loopsched.buffer_arch(capacity_bytes=rng.randint(12, 3000), policy=policy)
    width = rng.choice((1, 2, 4))
    if policy == "lru" or seed % 2:
        m, n, k = (rng.randint(1, 40) for _ in "mnk")
        problem = gemm(m=m, n=n, k=k, element_bytes=width)
    else:
        sizes = {name: rng.randint(1, 9) for name in "nckhw"}
        filters = {"r": rng.randint(1, min(3, sizes["h"])), "s": rng.randint(1, min(2, sizes["w"]))}
        problem = conv2d(**sizes, **filters, element_bytes=width)
    result = loopsched.search(problem, arch, objective=rng.choice(("time", "dram_bytes")))
    assert closes(result)
    verdict = verify_proof(proof_of(result))
    is_met = verdict.bound == verdict.best
    assert is_met == result.certificate.proven
    assert verdict.proven == (is_met and verdict.covered)
    assert verdict.covered or result.schedule.places
    assert float(verdict.bound) == pytest.approx(result.certificate.lower_bound, rel=1e-9)


def test_what_passes_all_levels_is_asked_for_by_each_unit() -> None:
    problem = gemm(m=4, n=2, k=1, element_bytes={"A": 2, "B": 4, "C": 2})
    arch = machine(("cache", 27, 1.0), units=3)
    arch = replace(arch, levels=(arch.memory, replace(arch.caches[0], holds=("B",))))
    schedule = loopsched.parse_schedule("M:4@SM N:2@SM", problem)
    told = loopsched.evaluate(problem, schedule, arch).dram_bytes
    assert told == value_of(problem, schedule, arch, "dram_bytes") == 40


@pytest.mark.parametrize(("capacity", "least"), [(12, 36), (13, 21)])
@pytest.mark.parametrize("nest", ["P:8 P:2 R:3", "P:8 R:3 P:2"])
def test_neighbours_count_what_they_share_once(nest: str, capacity: int, least: int) -> None:
    """Two bodies touch 6 + 3 + 4 elements; twice a body would be 8 + 3 + 4."""
    problem = loopsched.affine({"P": 8, "R": 3}, {"x": "P+R", "w": "R", "y": "P"}, element_bytes=1)
    schedule, arch = loopsched.parse_schedule(nest, problem), machine(("cache", capacity, 1.0))
    told = loopsched.evaluate(problem, schedule, arch).dram_bytes
    assert value_of(problem, schedule, arch, "dram_bytes") == told <= least


def test_pieces_in_a_row_are_no_longer_than_what_is_around() -> None:
    problem = gemm(m=6, n=4, k=2, element_bytes=1)
    schedule = loopsched.parse_schedule("M:6 N:4 M:3 K:2 M:2", problem)
    for capacity in range(4, 40):
        arch = machine(("cache", capacity, 1.0))
        told = loopsched.evaluate(problem, schedule, arch).dram_bytes
        assert value_of(problem, schedule, arch, "dram_bytes") == told


def test_tiles_of_a_wave_take_room_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopsched.verify.value.MOST_ITEMS", 0)
    problem = conv2d(c=2, k=3, h=5, w=1, r=3, s=1, padding=(2, 0), dilation=(2, 1), element_bytes=1)
    schedule = loopsched.parse_schedule("K:3@SM C:2@SM R:3@SM P:5", problem)
    follow(problem, schedule, 5, 11)


def test_what_the_latest_waves_touched_stays() -> None:
    """Three waves of two tiles touch 14, 18 and 14 elements; two of them 24, all three 26."""
    problem = gemm(m=2, n=3, k=4, element_bytes=1)
    items, held = walk(problem, (("M", 1), ("N", 1))), list(problem.tensors)
    tiles = {t.name: tiles_of(t, items) for t in held}

    def counts(capacity: int) -> list[int]:
        found = followed(held, tiles, 2, Capacity(capacity, {}, frozenset()))
        return [found[t.name] for t in held] if found else []

    assert [counts(capacity) for capacity in (17, 18, 23)] == [[], [16, 24, 6], [16, 24, 6]]
    assert [counts(capacity) for capacity in (24, 25, 26)] == [[8, 16, 6], [8, 16, 6], [8, 12, 6]]


# ---- logs that were changed


@cache
def logs() -> tuple[str, ...]:
    """Proofs of several kinds: by items, by bodies, at the root, with and without a gap."""
    titan_v = loopsched.load_arch("titan_v")
    small = loopsched.buffer_arch(capacity_bytes=4096, policy="explicit")
    cache_ = loopsched.buffer_arch(capacity_bytes=2000)
    image = conv2d(c=8, k=8, h=14, w=14, r=3, s=3, padding=1)
    tight = machine(("cache", 4000, 4.0), ("scratchpad", 300, 8.0), units=4, rate=8.0)
    found = [
        loopsched.search(gemm(m=96, n=80, k=64), titan_v),
        loopsched.search(conv2d(c=64, k=48, h=14, w=14, r=3, s=3, padding=1), titan_v),
        loopsched.search(gemm(m=50, n=41, k=30), small, objective="dram_bytes"),
        loopsched.search(image, small, objective="dram_bytes"),
        loopsched.search(image, cache_, objective="dram_bytes"),
        loopsched.search(gemm(m=24, n=20, k=9), tight),
        loopsched.search(gemm(m=64, n=8, k=64), titan_v, objective="dram_bytes"),
    ]
    return tuple(map(proof_of, found))


def changed(rng: random.Random, line: str) -> dict[str, object]:
    """Change a proof at random: its claims, its problem, its machine, its tree."""
    data = json.loads(line)
    words = data["tree"].split()
    at = rng.randrange(len(words))
    kind = rng.randrange(11)
    if kind == 0:
        data["bound"] = str(Fraction(data["bound"]) * rng.choice((Fraction(101, 100), 2)))
    elif kind == 1:
        data["best"] = str(Fraction(data["best"]) * Fraction(rng.choice((99, 101)), 100))
    elif kind == 2:
        better = Fraction(data["best"]) * Fraction(99, 100)
        data["best"] = data["bound"] = str(better)
    elif kind == 3:
        del words[at]
    elif kind == 4:
        words.insert(at, rng.choice("SDTCERO"))
    elif kind == 5:
        words[at] = rng.choice("SDTCERO")
    elif kind == 6:
        splits = [i for i, word in enumerate(words) if "<=" in word]
        if splits:
            i = rng.choice(splits)
            head, _, extent = words[i].partition("<=")
            words[i] = f"{head}<={max(0, int(extent) + rng.choice((-3, -1, 1, 5, 1000)))}"
    elif kind == 7:
        words = words[: rng.randrange(len(words))]
    elif kind == 8:
        row = rng.choice(data["problem"]["sizes"])
        row[1] = max(1, row[1] + rng.choice((-1, 1, 7)))
    elif kind == 9:
        level = rng.choice(data["machine"]["levels"][1:])
        size = parse_bytes(level["capacity"]["value"])
        level["capacity"]["value"] = f"{rng.choice((size // 2, size * 2))} B"
    else:
        data["tree"] = " ".join(reversed(words))
        return data
    data["tree"] = " ".join(words)
    return data


def test_changed_proofs_are_refused_unless_still_true() -> None:
    rng = random.Random(5)
    refused = 0
    for _ in range(300):
        line = rng.choice(logs())
        data = changed(rng, line)
        try:
            verdict = verify_proof(json.dumps(data))
        except ProofError:
            refused += 1
            continue
        # What is accepted must be true: of the schedule, and of what a search finds.
        problem, arch = verdict.problem, verdict.arch
        assert (
            value_of(
                problem,
                loopsched.parse_schedule(verdict.schedule, problem),
                arch,
                verdict.objective,
            )
            == verdict.best
        )
        again = loopsched.search(problem, arch, objective=verdict.objective)
        assert float(verdict.bound) <= again.certificate.value * (1 + 1e-12)
    assert refused >= 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bound": "1"}, "not between 0 and the best value"),
        ({"best": "1/7"}, "the schedule's value is"),
        ({"schedule": "M:96 N:80 K:64@SM"}, "outside the space"),
        ({"spatial": {}}, "must list dimensions for each unit"),
        ({"objective": "speed"}, "cannot be read"),
        ({"tree": "D"}, "word 0 'D': does not hold"),
        ({"tree": "R"}, "word 0 'R': does not hold"),
        ({"tree": "M<=96 S S"}, "does not split the box"),
        ({"tree": "O R"}, "does not hold"),
        ({"tree": ""}, "ends with 1 boxes open"),
        ({"level": "DRAM"}, "cannot be read"),
        ({"level": "L9"}, "no level 'L9'"),
        ({"tree": 7}, "cannot be read"),
        ({"best": "1/0"}, "cannot be read"),
        ({"format": "other"}, "not a proof of format"),
        ({"more": 1}, "not a proof of format"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, object], message: str) -> None:
    with pytest.raises(ProofError, match=message):
        verify_proof(json.dumps(json.loads(logs()[0]) | change))


def test_a_leaf_of_another_kind_holds_only_by_its_own_rule() -> None:
    data = json.loads(logs()[0])
    words = data["tree"].split()
    refused = 0
    for at, word in enumerate(words):
        if word == "D":
            try:
                verify_proof(
                    json.dumps(data | {"tree": " ".join(words[:at] + ["S"] + words[at + 1 :])})
                )
            except ProofError:
                refused += 1
    assert refused == words.count("D")


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '"a"', "{}"])
def test_what_is_no_proof_is_refused(text: str) -> None:
    with pytest.raises(ProofError):
        verify_proof(text)


def test_proofs_close() -> None:
    verdicts = [verify_proof(line) for line in logs()]
    assert sum(verdict.proven for verdict in verdicts) >= 5
    assert all(verdict.bound * 2 >= verdict.best for verdict in verdicts)


def test_a_log_names_the_order_that_its_rule_makes_least_of() -> None:
    """Waves run on in either order of these items; in the other one less comes in twice."""
    problem = gemm(m=7, n=11, k=6, element_bytes=1)
    arch = machine(("cache", 103, 2.0), ("cache", 34, 8.0), units=5)
    nest = parse_schedule("N:11 N:10@SM M:7@SM K:6 N:2", problem)
    found = loopsched.search(problem, arch, objective="time")
    chosen, best = witness_of(replace(found, schedule=nest))
    assert sorted(map(str, chosen.loops)) == sorted(map(str, nest.loops))
    assert best == value_of(problem, chosen, arch, "time") < value_of(problem, nest, arch, "time")


def test_a_bound_without_a_schedule_as_good_is_not_called_proven() -> None:
    data = json.loads(logs()[0])
    data["bound"] = str(Fraction(data["bound"]) / 2)
    verdict = verify_proof(json.dumps(data))
    assert not verdict.proven


def test_a_schedule_outside_its_own_bound_is_not_called_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One place for all tiles moves 598 B at least; the bound says nothing of the 521 B."""
    problem = gemm(m=10, n=7, k=11, element_bytes=1)
    arch = loopsched.buffer_arch(capacity_bytes=22, policy="explicit")
    line = proof_of(loopsched.search(problem, arch, objective="dram_bytes"))
    verdict = verify_proof(line)
    assert verdict.together == "buffer"
    assert "[buffer" in verdict.schedule
    assert (verdict.bound, verdict.covered, verdict.proven) == (521, False, False)
    (tmp_path / "placed").write_text(line)
    assert run(["verify", str(tmp_path / "placed")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "521.0 B 521.0 B - " in told
    assert "proven best: 0." in told
    assert "Not covered by its own bound: 1." in told


# ---- searches that claim too much

CASES = [
    (gemm(m=4, n=3, k=2, element_bytes=1), machine(("cache", 9, 1.0)), "dram_bytes"),
    (gemm(m=4, n=3, k=3, element_bytes=1), machine(("scratchpad", 8, 1.0)), "dram_bytes"),
    (conv2d(c=1, k=2, h=5, w=1, r=2, s=1, element_bytes=1), machine(("cache", 7, 1.0)), "time"),
]


@cache
def least_of_all(case: int) -> float:
    """Find the least value of all nests, one by one."""
    problem, arch, objective = CASES[case]
    nests = oracle_space.all_nests(problem, oracle_space.units_of(problem, arch))
    found = oracle_space.least(oracle_space.scored(problem, arch, nests), objective)
    assert found is not None
    return found.values[objective]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_false_claims_of_broken_searches_are_refused(case: int) -> None:
    """Searches that return any schedule and a bound too high, with the tree of a whole search."""
    problem, arch, objective = CASES[case]
    data = json.loads(proof_of(loopsched.search(problem, arch, objective=objective)))
    least, false = Fraction(least_of_all(case)), 0
    rng = random.Random(case)
    while false < 50:
        schedule = nest(rng, problem, 1, ())
        try:
            value = value_of(problem, schedule, arch, objective)
        except LoopschedError:
            continue
        bound = min(value, least * rng.choice((Fraction(101, 100), Fraction(3, 2), 2, 10**9)))
        if bound > least:
            false += 1
            claim = {"schedule": str(schedule), "best": str(value), "bound": str(bound)}
            for tree in (data["tree"], "D", "O " + data["tree"]):
                with pytest.raises(ProofError, match="tree"):
                    verify_proof(json.dumps(data | claim | {"tree": tree}))


# ---- who checks


def test_the_checker_imports_readers_only() -> None:
    for path in CHECKER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            for name in names:
                top, _, rest = name.partition(".")
                assert top != "numpy"
                assert top != "loopsched" or rest.split(".")[0] in ALLOWED, (path.name, name)


def code_lines(path: Path) -> int:
    """Count lines that are neither blank, nor comments, docstrings or imports."""
    text = path.read_text()
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            left_out |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in left_out
        for number, line in lines
    )


def test_the_checker_is_short_enough_to_read() -> None:
    lines = {path.stem: code_lines(path) for path in CHECKER.glob("*.py")}
    assert lines.pop("readers") <= 105  # of files, problems, notation and machines
    assert sum(lines.values()) <= 540


def test_the_checker_is_pure_integers() -> None:
    for path in CHECKER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), path.name


# ---- the commands


def test_search_writes_and_verify_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "proofs.jsonl")
    assert run(["search", "gemm:m=96,n=80,k=64", "--proof", file]) == 0
    capsys.readouterr()
    assert run(["verify", file, "--arch", "titan_v"]) == 0
    told = capsys.readouterr().out
    assert "Accepted: 1; proven best: 1." in told
    assert "best     bound" in told
    assert "is below 'bound'" in told
    assert run(["verify", file, "--arch", "h200"]) == 3
    assert "is about 'titan_v', not 'h200'" in capsys.readouterr().err
    text = Path(file).read_text()
    Path(file).write_text(text.replace('"line": {"value": "64 B"}', '"line": {"value": "128 B"}'))
    assert run(["verify", file, "--arch", "titan_v"]) == 3
    assert "is about another 'titan_v', not 'titan_v'" in capsys.readouterr().err
    Path(file).write_text(text + text.replace('"bound": "31/', '"bound": "30/'))
    assert run(["verify", file]) == 0
    assert "Accepted: 2; proven best: 1." in capsys.readouterr().out
    Path(file).write_text(text + text.replace('"tree": "', '"tree": "R '))
    assert run(["verify", file]) == 3
    captured = capsys.readouterr()
    assert "Accepted: 1; proven best: 1." in captured.out
    assert "line 2: tree, word 0 'R': does not hold" in captured.err


def test_it_says_which_loops_the_bounds_cover(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one list where all problems have it, and in one for each where they differ."""
    file = tmp_path / "proofs.jsonl"
    lines = []
    for problem, said in (
        ("gemm:m=96,n=80,k=64", "(loops over M and N may be split across SM)"),
        (
            "conv2d:n=2,c=4,k=8,h=6,w=6,r=3,s=3",
            "(in some problems, loops over M and N may be split across SM; in others, loops over "
            "N, K, P and Q may be split across SM)",
        ),
    ):
        assert run(["search", problem, "--proof", str(file)]) == 0
        lines.append(file.read_text())
        file.write_text("".join(lines))
        capsys.readouterr()
        assert run(["verify", str(file)]) == 0
        assert said in " ".join(capsys.readouterr().out.split())


def test_files_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path / "none")]) == 3
    (tmp_path / "empty").write_text("")
    assert run(["verify", str(tmp_path / "empty")]) == 3
    assert "is empty; a file of proofs is needed" in capsys.readouterr().err
    assert run(["search", "gemm:m=4,n=4,k=4", "--proof", str(tmp_path / "no" / "file")]) == 3
    assert "cannot be written" in capsys.readouterr().err
    out = ["--proof", str(tmp_path / "file"), "--value", "point"]
    assert run(["search", "gemm:m=4,n=4,k=4", *out]) == 3
    assert "only promised values have proofs" in capsys.readouterr().err


def test_only_promised_values_have_proofs() -> None:
    result = loopsched.search(
        gemm(m=40, n=30, k=20), loopsched.buffer_arch(capacity_bytes=1000), objective="dram_bytes",
    )  # fmt: skip
    assert result.proof == proof_of(result)
    less = replace(result, certificate=replace(result.certificate, value=2 * 10**9))
    with pytest.raises(loopsched.ConstraintError, match="only promised values have proofs"):
        proof_of(less)


def test_an_order_of_items_that_a_log_finds_better_is_proven_of() -> None:
    """Replays charge this schedule more than its items in another order."""
    windows = {"w": "2*R-1<22", "v": "P", "y": "2*P<1 3*R-2<27"}
    problem = loopsched.affine({"P": 2, "R": 12}, windows, element_bytes=2)
    levels = (
        Level("DRAM", "memory", None),
        Level("L3", "cache", 20, bandwidth_bytes_per_s=1.0),
        Level("L2", "cache", 17, bandwidth_bytes_per_s=1.0),
        Level("L1", "cache", 9, instances=3, unit="PE", bandwidth_bytes_per_s=1e6),
    )
    compute = Compute("PE", 3, 1.0, 1.0, (("fp16", 8.0),), lane_unit="lane")
    arch = Arch("m", levels, compute)
    found = loopsched.search(problem, arch, objective="dram_bytes", budget=200_000)
    verdict = loopsched.verify_proof(found.proof)
    assert verdict.bound <= verdict.best < found.certificate.value


# ---- rules against every way to cut


def ceil(a: int, b: int) -> int:
    """Divide, rounding up."""
    return -(-a // b)


def cuts(size: int) -> list[list[int]]:
    """List all ways to cut a dimension into pieces, as their lengths."""
    if size == 0:
        return [[]]
    return [[first, *rest] for first in range(1, size + 1) for rest in cuts(size - first)]


@pytest.mark.parametrize("seed", range(30))
def test_steps_of_items_are_the_least_of_all_lists(seed: int) -> None:
    rng = random.Random(seed)
    m, n, units = rng.randint(1, 7), rng.randint(1, 6), rng.randint(2, 5)
    arch = machine(("cache", 100, 1.0), ("cache", 50, 1.0), units=units)
    bounds = Bounds(gemm(m=m, n=n, k=2), arch, arch.caches[1], {"SM": ("M", "N")})
    if m == 1 and n == 1:
        return

    @cache
    def steps(e: int, f: int) -> int:
        return min(
            sum(
                2 * ceil(ceil(a, e) * ceil(b, f), units) * min(a, e) * min(b, f)
                for a in first
                for b in second
            )
            for first in cuts(m)
            for second in cuts(n)
            if max(first) >= e and max(second) >= f
        )

    e, f = rng.randint(1, m), rng.randint(1, n)
    assert min(bounds.steps((e, f, 1), (e, f, 2))) == steps(e, f)
    low, high = rng.randint(1, e), rng.randint(f, n)
    least = min(steps(a, b) for a in range(low, e + 1) for b in range(f, high + 1))
    assert min(bounds.steps((low, f, 1), (e, high, 2))) <= least


@pytest.mark.parametrize("seed", range(40))
def test_no_way_to_cut_a_window_touches_less(seed: int) -> None:
    rng = random.Random(seed)
    p, r = rng.randint(1, 6), rng.randint(1, 4)
    c, k, offset = rng.randint(1, 3), rng.randint(1, 3), -rng.randint(0, 4)
    size = rng.choice((None, rng.randint(1, c * p + k * r)))
    axis = Axis((("P", c), ("R", k)), offset, size)
    tensors = (Tensor("x", (axis,), 1), Tensor("y", (Axis((("P", 1),)),), 1))
    problem = Problem("window", (("P", p), ("R", r)), tensors, "y")
    alone = loopsched.buffer_arch(capacity_bytes=1000)
    shared = machine(("cache", 1000, 1.0), ("cache", 1000, 1.0), units=4)
    footprints = [
        Bounds(problem, arch, arch.caches[0], {arch.compute.unit: ()}).footprints
        for arch in (alone, shared)
    ]

    def touched(i: int, m: int, j: int, n: int) -> int:
        marks = {c * x + k * y + offset for x in range(i, i + m) for y in range(j, j + n)}
        return len([at for at in marks if size is None or 0 <= at < size])

    for first in cuts(p):
        for second in cuts(r):
            places = [
                (sum(first[:a]), m, sum(second[:b]), n)
                for a, m in enumerate(first)
                for b, n in enumerate(second)
            ]
            counts = [touched(*place) for place in places]
            assert totals(axis, (p, r))((len(first), len(second))) <= sum(counts)
            for found in footprints:
                assert found((first[0], second[0]))["x"] <= max(counts)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_the_checker_multiplies_at_the_rate_of_evaluate(width: int) -> None:
    """That of the narrowest type that holds the widest operand; a machine without is refused."""
    problem = gemm(m=4, n=4, k=4, element_bytes=width)
    refused = 0
    for name in arch_names():
        arch = loopsched.load_arch(name)
        try:
            rate = arch.compute.rate(data_type_of(problem, arch))
        except ArchError:
            refused += 1
            with pytest.raises(ArchError, match=f"no rate for elements of {width} bytes"):
                rate_of(problem, arch)
        else:
            assert rate_of(problem, arch) == Fraction(rate) * Fraction(arch.compute.clock_hz)
    assert (refused == len(arch_names())) == (width == 8)


def test_a_level_is_owned_by_the_units_that_have_one_each_or_hold_it() -> None:
    levels = (
        Level("memory", "memory", None),
        Level("shared", "cache", 600, bandwidth_bytes_per_s=1.0),
        Level("group", "cache", 300, unit="cluster", instances=2, bandwidth_bytes_per_s=1.0),
        Level("own", "cache", 100, unit="core", instances=8, bandwidth_bytes_per_s=1.0),
    )
    arch = Arch("nested", levels, Compute("core", 8, 1.0, 1.0, (("fp32", 1.0),)))
    owned = [own_units(arch, level) for level in levels]
    assert owned == [set(), set(), {"cluster"}, {"cluster", "core"}]
