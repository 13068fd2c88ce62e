"""Waves of lists with a rest, and of items that all run at once: promises and bounds."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from loopsched import gemm, load_arch, parse_schedule, search
from loopsched.base.errors import InputError, ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.buffer import lru_traffic
from loopsched.models.compute import compute_steps
from loopsched.models.score import evaluate
from loopsched.models.view import view_of
from loopsched.problems.problem import Problem
from loopsched.scheduler import space_of
from loopsched.scheduler.blocks import compose
from loopsched.scheduler.items import Items
from loopsched.scheduler.level_bounds import LevelBounds
from loopsched.scheduler.piece_bounds import PieceBounds
from loopsched.scheduler.starts import wave_blocks
from loopsched.scheduler.waves import least_s_of_lists
from loopsched.simulator import simulate


def machine(units: int, outer: int, inner: int, rates: tuple[float, float], macs: float) -> Arch:
    levels = (
        Level("DRAM", "memory", None),
        Level("L2", "cache", outer, bandwidth_bytes_per_s=rates[0]),
        Level("L1", "cache", inner, unit="SM", instances=units, bandwidth_bytes_per_s=rates[1]),
    )
    return Arch("waves", levels, Compute("SM", units, 1.0, 1.0, (("fp32", macs),)))


def drawn(rng: random.Random, problem: Problem, units: int, macs: float = 1e9) -> Arch:
    point = sum(tensor.element_bytes for tensor in problem.tensors)
    inner = rng.randint(point, point * rng.choice([2, 4, 10]))
    outer = max(inner + 1, point * units)
    outer = rng.randint(outer, outer * rng.choice([2, 4, 8]))
    rates = (rng.choice([0.5, 1.0, 2.0]), rng.choice([1.0, 2.0, 4.0]))
    return machine(units, outer, inner, rates, macs)


def written(chain: list[tuple[str, int, str]], problem: Problem) -> str:
    """Write loops that leave so long pieces; what is left of them goes innermost."""
    now, words = dict(problem.size), []
    for dim, step, unit in chain:
        words.append(f"{dim}:{now[dim]}{unit}")
        now[dim] = step
    return " ".join([*words, *(f"{dim}:{now[dim]}" for dim in now)])


def test_a_rest_out_of_step_is_counted_by_itself() -> None:
    """Five items a row and one in the rest: whole lists end with rows, the rest does not."""
    problem = gemm(m=96, n=41, k=4, element_bytes=1)
    nest = parse_schedule("N:41 M:96@SM N:40@SM M:3 N:8 K:4", problem)
    arch = machine(10, 700, 90, (1.0, 1.0), 1.0)
    level = evaluate(problem, nest, arch).level("L2")
    view = level.moved.own.view
    assert not view.is_aligned
    assert all(part.is_aligned for part, _ in view.lists)
    assert [many for _, many in view.lists] == [1, 1]
    # A once for each list; B stays from wave to wave.
    assert level.moved.promised["A"].read_bytes == 2 * 96 * 4
    assert level.moved.promised["B"].read_bytes == 41 * 4
    assert simulate(problem, nest, arch=arch).level("L2").bytes <= level.moved.promised_bytes


@pytest.mark.parametrize("seed", range(4))
def test_lists_with_a_rest_promise_no_less_than_is_moved(seed: int) -> None:
    rng = random.Random(seed)
    n_mixed = 0
    while n_mixed < 40:
        problem = gemm(
            m=rng.randint(4, 20), n=rng.randint(4, 20), k=rng.randint(1, 5), element_bytes=1
        )
        chain, now = [], dict(problem.size)
        for dim in rng.sample(["M", "N"], rng.choice([1, 2])):
            now[dim] = rng.randint(now[dim] // 2 + 1, now[dim])
            chain.append((dim, now[dim], ""))
        for dim in rng.sample(["M", "N"], 2):
            now[dim] = rng.randint(1, max(1, now[dim] // 2))
            chain.append((dim, now[dim], "@SM"))
        for dim in rng.choices("MNK", k=rng.randint(0, 3)):
            now[dim] = rng.randint(1, now[dim])
            chain.append((dim, now[dim], ""))
        arch = drawn(rng, problem, rng.choice([2, 3, 4, 6]))
        try:
            nest = parse_schedule(written(chain, problem), problem)
            level = evaluate(problem, nest, arch, effort=0).level("L2")
        except InputError:
            continue
        if level.moved.own.view.is_aligned or not level.moved.own.view.lists:
            continue
        n_mixed += 1
        seen = simulate(problem, nest, arch=arch).level("L2").bytes
        assert seen <= level.moved.promised_bytes, (nest, arch)


def test_lists_apart_lower_no_bound() -> None:
    """What the closed form of all lists finds is still the least that is promised."""
    problem = gemm(m=100, n=37, k=6, element_bytes=1)
    nest = parse_schedule("M:100 M:60@SM N:37@SM M:20 N:8 K:6", problem)
    view = view_of(problem, nest, instances={"SM": 4})
    assert len(view.lists) == 2
    arch = machine(4, 300, 100, (1.0, 1.0), 1.0)
    room = evaluate(problem, nest, arch).level("L2").moved.own.room
    found = lru_traffic(view, room).promised
    own = {t.name: view.visits_elems(t, 0) for t in problem.tensors}
    assert all(found[name].read_bytes + found[name].write_bytes >= n for name, n in own.items())


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_items_end_with_waves_and_promise_no_less_than_is_moved(seed: int) -> None:
    rng = random.Random(seed)
    n_groups = 0
    while n_groups < 30:
        units, tile = rng.choice([4, 6]), {"M": rng.randint(1, 3), "N": rng.randint(1, 3)}
        listed = {dim: extent * rng.choice([4, 6, 8]) for dim, extent in tile.items()}
        size = {dim: extent + rng.randint(0, tile[dim] - 1) for dim, extent in listed.items()}
        problem = gemm(m=size["M"], n=size["N"], k=rng.randint(1, 4), element_bytes=1)
        arch = drawn(rng, problem, units)
        for blocks, _ in wave_blocks(problem, tile, "SM", units, listed):
            if [block.unit for block in blocks] != [None, "SM", "SM"]:
                continue
            nest = compose(problem, blocks)
            with suppress(ScheduleError):
                level = evaluate(problem, nest, arch, effort=0).level("L2")
                n_groups += 1
                full = level.moved.own.view.lists[:1] or [(level.moved.own.view, 1)]
                assert all(part.is_aligned for part, _ in full), nest
                seen = simulate(problem, nest, arch=arch).level("L2").bytes
                assert seen <= level.moved.promised_bytes, (nest, arch)


@pytest.mark.parametrize(
    ("problem", "arch", "pieces", "nest"),
    [
        # Items of 4, 4 and 1 columns have fewer pieces than three thirds of all columns.
        (
            gemm(m=4, n=9, k=10),
            machine(6, 176, 61, (1.0, 2.0), 0.09014423076923077),
            {"M": 2, "N": 3},
            "M:4@SM N:9@SM N:4 M:2 K:10 M:2 N:2",
        ),
        # A body of one row is fast enough: no longer one may be asked for.
        (
            gemm(m=5, n=3, k=11, element_bytes=1),
            machine(2, 8, 7, (1.0, 100.0), 0.3),
            {"M": 2, "N": 1},
            "M:5@SM M:3 M:1 N:3 K:11",
        ),
        # Two lists that share less at once move less than all items in one wave.
        (
            gemm(m=4, n=15, k=4, element_bytes=1),
            machine(6, 18, 3, (1.0, 100.0), 1.0),
            {"M": 4, "N": 1},
            "M:4 M:2@SM K:4 M:1 N:15 K:2",
        ),
        (
            gemm(m=6, n=5, k=11),
            machine(3, 36, 19, (2.0, 100.0), 1e9),
            {"M": 1, "N": 3},
            "N:5 N:4@SM M:6 N:2 K:11",
        ),
    ],
    ids=["a short item", "short bodies", "two lists", "a list and a rest"],
)
def test_no_schedule_is_faster_than_the_bound_of_its_pieces(
    problem: Problem, arch: Arch, pieces: dict[str, int], nest: str
) -> None:
    time_s = evaluate(problem, parse_schedule(nest, problem), arch).time_s
    assert least_s_of(problem, arch, pieces, time_s * 1.0001) <= time_s


def least_s_of(problem: Problem, arch: Arch, pieces: dict[str, int], below_s: float) -> float:
    bounds = PieceBounds(LevelBounds(space_of(problem, arch), "promised"))
    return bounds.least_s(Items((), (), 0.0, tuple(pieces.items())), below_s)


@pytest.mark.parametrize("seed", range(4))
def test_no_random_schedule_is_faster_than_the_bound_of_its_pieces(seed: int) -> None:
    rng, n_nests = random.Random(seed), 0
    while n_nests < 60:
        problem = gemm(
            m=rng.randint(2, 9), n=rng.randint(2, 9), k=rng.randint(1, 9), element_bytes=1
        )
        units, macs = rng.choice([2, 3, 4, 6]), rng.choice([0.1, 0.3, 1.0, 1e9])
        arch = drawn(rng, problem, units, macs)
        chain, now = [], dict(problem.size)
        for unit in rng.choice([["@SM"], ["", "@SM"]]):
            for dim in rng.sample(["M", "N"], rng.choice([1, 2])):
                now[dim] = rng.randint(1, now[dim])
                chain.append((dim, now[dim], unit))
        item = dict(now)
        for dim in rng.choices("MNK", k=rng.randint(0, 3)):
            now[dim] = rng.randint(1, now[dim])
            chain.append((dim, now[dim], ""))
        pieces = {dim: -(-problem.size[dim] // item[dim]) for dim in "MN"}
        with suppress(InputError):
            nest = parse_schedule(written(chain, problem), problem)
            time_s = evaluate(problem, nest, arch, effort=0).time_s
            assert least_s_of(problem, arch, pieces, time_s * 1.0001) <= time_s, (nest, arch)
            n_nests += 1


def test_items_bring_in_what_they_hold() -> None:
    """Eight items whose data fit: a quarter or half of A and B for each, and their part of C."""
    problem = gemm(m=8, n=8, k=8, element_bytes=1)
    arch = machine(8, 10_000, 200, (1000.0, 1.0), 1e9)
    for m, n, nest in [
        (2, 4, "M:8@SM N:8@SM M:4 N:2 K:8"),
        (4, 2, "M:8@SM N:8@SM M:2 N:4 K:8"),
        (8, 1, "M:8@SM N:8 K:8"),
    ]:
        time_s = evaluate(problem, parse_schedule(nest, problem), arch).time_s
        assert time_s == n * 64 + m * 64 + 64
        assert least_s_of(problem, arch, {"M": m, "N": n}, 1e6) == time_s


def test_a_list_beside_may_be_of_one_row() -> None:
    """Sixteen rows in items of 4: lists of 15 and of 1 have five pieces, and take a fourth more."""
    problem = gemm(m=16, n=4, k=1)
    nest = parse_schedule("M:16 M:15@SM N:4@SM M:4 N:2", problem)
    steps = compute_steps(problem, nest, {"SM": 8}).promised
    assert least_s_of_lists(problem, {"M": 4, "N": 2}, 1.0) == steps == 10


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (29_568, 1536, 384),  # five columns of items, and a rest of one column
        (4352, 4096, 65_536),
        (257, 10_240, 2560),  # one wave: sums of 80 whole items are more than L2 holds
        (1024, 16_384, 768),
        (24_832, 12_289, 256),  # both dimensions leave a rest: only groups of items end evenly
        (12_544, 256, 256),  # items that are cut along M alone read B twice from memory
    ],
)
def test_products_that_stayed_open_are_proven(m: int, n: int, k: int) -> None:
    problem = gemm(m=m, n=n, k=k, element_bytes=2)
    assert search(problem, load_arch("titan_v")).certificate.proven
