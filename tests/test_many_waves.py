"""Waves that end within an iteration: compiled code finds what the replays of Python find."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from strategies import HOLDS

from loopsched.base.errors import CapacityError, ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models import _promise_kernels as kernels
from loopsched.models import buffer, promises
from loopsched.models.machine import data_type_of
from loopsched.models.many import evaluate_many
from loopsched.models.replay import Nest, Pool
from loopsched.models.score import level_traffic
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import affine, conv2d, gemm
from loopsched.problems.problem import Axis, Problem, Tensor

RATES = (("int8", 3.0), ("fp16", 4.0), ("fp32", 4.0))


class Raised:
    """How many closed forms were not enough: waves ran on, and lists of items were looked at."""

    def __init__(self) -> None:
        self.waves = self.lists = 0


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> Raised:
    found = Raised()
    raised, list_by_list = buffer._raised, buffer._list_by_list

    def count_waves(*given: object) -> dict[str, int]:
        found.waves += 1
        return raised(*given)  # type: ignore[arg-type]

    def count_lists(*given: object) -> dict[str, int]:
        apart = list_by_list(*given)  # type: ignore[arg-type]
        found.lists += bool(apart)
        return apart

    monkeypatch.setattr(promises, "COMPILED_FROM", 0)
    monkeypatch.setattr(buffer, "_raised", count_waves)
    monkeypatch.setattr(buffer, "_list_by_list", count_lists)
    return found


def products(rng: random.Random) -> Problem:
    """Products of two or three tensors, with dimensions in any order."""
    n = rng.randint(2, 4)
    sizes = tuple((dim, rng.randint(1, (60, 24, 9)[n - 2])) for dim in "DEFG"[:n])
    tensors = []
    for name in "XYZ"[: rng.randint(2, 3)]:
        dims = rng.sample("DEFG"[:n], rng.randint(1, n))
        axes = tuple(Axis(((dim, 1),)) for dim in dims)
        tensors.append(Tensor(name, axes, rng.choice([1, 2, 4])))
    return Problem("product", sizes, tuple(tensors), tensors[-1].name)


def windows(rng: random.Random) -> Problem:
    """Convolutions of one or two dimensions: strides, gaps, padding, sums of either side."""
    sizes = [("K", rng.randint(1, 6)), ("C", rng.randint(1, 4))]
    image, weight = [Axis((("C", 1),))], [Axis((("K", 1),)), Axis((("C", 1),))]
    result = [Axis((("K", 1),))]
    dims = rng.choice(["PR", "PRQS"])
    for p, r in zip(dims[::2], dims[1::2], strict=True):
        sizes += (p, rng.randint(1, 60 // len(dims) ** 2 + 12)), (r, rng.randint(1, 5))
        stride, gap = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 1, 2, 3])
        reach = stride * (sizes[-2][1] - 1) + gap * (sizes[-1][1] - 1) + 1
        offset = rng.choice([0, 0, -1, -2])
        stored = rng.choice([None, reach]) if not offset else max(1, reach - rng.randint(0, 4))
        terms = ((p, stride), (r, gap))
        image.append(Axis(terms[:: rng.choice([1, -1])], offset, stored))
        weight.append(Axis(((r, 1),)))
        result.append(Axis(((p, 1),)))
    axes = [image, weight, result] if rng.random() < 0.7 else [result, weight, image]
    tensors = [Tensor(n, tuple(of), rng.choice([1, 4])) for n, of in zip("XYZ", axes, strict=True)]
    return Problem("window", tuple(sizes), tuple(tensors), "Z")


def nests(rng: random.Random, problem: Problem) -> Schedule:
    """Blocks of loops of the processors and of their lanes, others around them and inside."""
    now, loops = dict(problem.size), []

    def add_block(dims: list[str], unit: str | None = None) -> None:
        for dim in dims:
            loops.append(Loop(dim, now[dim], unit))
            part = max(1, now[dim] // rng.randint(1, 4))
            now[dim] = rng.choice([rng.randint(1, now[dim]), part, now[dim]])

    dims = list(now)
    add_block(rng.sample(dims, rng.randint(0, 2)))
    for unit in rng.choice([("SM",), ("SM",), ("SM", "lane"), ("lane",)]):
        block = rng.sample(dims, rng.randint(1, min(3, len(dims))))
        add_block(block + block[: rng.random() < 0.2], unit)
        add_block(rng.sample(dims, rng.randint(0, len(dims))))
    loops += [Loop(dim, now[dim]) for dim in rng.sample(dims, len(dims))]
    return Schedule.of(loops).check(problem)


def grids(rng: random.Random, problem: Problem) -> Schedule:
    """Lists of items that sizes of tiles make of whole dimensions, loops inside in any order."""
    dims = rng.sample(list(problem.dims), len(problem.dims))
    n_outer = rng.randint(1, len(dims))
    now = dict(problem.size)
    loops = [Loop(dim, now[dim], "SM") for dim in dims[:n_outer]]
    loops += [Loop(dim, now[dim]) for dim in dims[n_outer:]]
    for _ in range(rng.randint(1, 2)):
        for dim in rng.sample(dims, len(dims)):
            now[dim] = rng.randint(1, now[dim])
            loops.append(Loop(dim, now[dim]))
    return Schedule.of(loops).check(problem)


def layers(rng: random.Random) -> Problem:
    """Products of matrices, and convolutions with strides and padding."""
    if rng.random() < 0.4:
        return gemm(m=rng.randint(8, 99), n=rng.randint(8, 99), k=rng.randint(4, 60))
    r, s, stride = rng.randint(1, 4), rng.randint(1, 3), rng.choice([1, 1, 2])
    n, c, k = rng.randint(1, 4), rng.randint(1, 9), rng.randint(1, 8)
    h, w = rng.randint(r, 14), rng.randint(s, 20)
    return conv2d(n=n, c=c, k=k, h=h, w=w, r=r, s=s, stride=stride, padding=rng.choice([0, 1]))


def machines(rng: random.Random, problem: Problem) -> Arch:
    """One to three levels: caches, scratchpads inside, rooms of tensors, tensors that pass."""
    names = [tensor.name for tensor in problem.tensors]
    whole = sum(
        tensor.element_bytes * math.prod(problem.size[dim] for dim in tensor.dims)
        for tensor in problem.tensors
    )
    n, units = rng.randint(1, 3), rng.choice([1, 2, 3, 4, 5, 7, 8])
    n_shared = rng.randint(1, n)
    sizes = [rng.randint(8, max(16, whole // rng.choice([8, 3, 1]))) for _ in range(n)]
    levels = [Level("DRAM", "memory", None)]
    for at, size in enumerate(sorted(sizes, reverse=True)):
        own = rng.sample(names, rng.randint(1, len(names))) if rng.random() < 0.3 else []
        holds = None if own else rng.choice(HOLDS)
        is_own = at >= n_shared
        levels.append(
            Level(
                f"L{n - at}",
                "scratchpad" if at and rng.random() < 0.25 else "cache",
                size,
                bandwidth_bytes_per_s=1.0,
                instances=units if is_own else 1,
                unit="SM" if is_own else None,
                tensor_capacity_bytes=tuple((name, rng.randint(4, size)) for name in own),
                holds=holds,
                write_policy=rng.choice(["back", "back", "through"]),
                accumulate=rng.choice(["level", "registers"]),
                double_buffered=rng.random() < 0.3,
                halo_reuse=rng.random() < 0.5,
            )
        )
    return Arch("random", tuple(levels), Compute("SM", units, 1.0, 1.0, RATES, lane_unit="lane"))


def one_by_one(problem: Problem, nest: Schedule, arch: Arch, lanes: int) -> list[int] | None:
    """What Python's form promises of each level; None if the schedule does not fit."""
    try:
        return [level.promised_bytes for level in level_traffic(problem, nest, arch, lanes)]
    except CapacityError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_any_products_on_any_machine(seed: int, raised: Raised) -> None:
    n_waves, n_lists = compared(random.Random(seed), products, raised)
    assert n_waves > 120
    assert n_lists > 5


@pytest.mark.parametrize("seed", range(4))
def test_any_windows_on_any_machine(seed: int, raised: Raised) -> None:
    n_waves, _ = compared(random.Random(seed), windows, raised)
    assert n_waves > 80


def others(rng: random.Random, nest: Schedule, n: int) -> list[Schedule]:
    """Draw schedules that differ from one in the extent of the same loop."""
    loops = nest.loops
    inner = [i for i in range(len(loops)) if loops[i].dim in {one.dim for one in loops[:i]}]
    listed = {one.dim for one in loops if one.unit}
    steps = [i for i in inner if loops[i].dim not in listed][: rng.choice([1, len(inner)])]
    if not inner or not n:
        return []
    at = rng.choice(steps or inner)
    around = [one.extent for one in loops[:at] if one.dim == loops[at].dim]
    inside = [one.extent for one in loops[at + 1 :] if one.dim == loops[at].dim]
    sizes = range(*inside[:1] or [1], around[-1] + 1)
    made = [replace(loops[at], extent=rng.choice(sizes)) for _ in range(n)]
    return [Schedule((*loops[:at], one, *loops[at + 1 :])) for one in made]


def compared(
    rng: random.Random,
    problems: Callable[[random.Random], Problem],
    raised: Raised,
    schedules: Callable[[random.Random, Problem], Schedule] = nests,
    n_problems: int = 500,
    n_alike: int = 0,
) -> tuple[int, int]:
    """Compare four schedules of each; count those whose waves run on, and with lists apart.

    Behind each come some that differ from it in the extent of one loop.
    """
    n_waves = n_lists = 0
    for _ in range(n_problems):
        problem = problems(rng)
        arch = machines(rng, problem)
        lanes = int(arch.compute.rate(data_type_of(problem, arch)))
        drawn = [schedules(rng, problem) for _ in range(4)]
        drawn = [one for nest in drawn for one in (nest, *others(rng, nest, n_alike))]
        found = promises.promised_many(problem, drawn, arch, lanes)
        for nest, row in zip(drawn, found.tolist(), strict=True):
            raised.waves = raised.lists = 0
            expected = one_by_one(problem, nest, arch, lanes)
            assert (row[kernels.OUTCOME] == kernels.TOO_LARGE) <= (expected is None)
            if row[kernels.OUTCOME] == kernels.PROMISED:
                assert row[kernels.BYTES :] == expected, (problem, str(nest), arch)
                n_waves += raised.waves > 0
                n_lists += raised.lists > 0
    return n_waves, n_lists


def test_steps_and_lists_at_once_are_what_is_found_one_by_one(
    raised: Raised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's form follows every step of every loop here; the compiled one as few as it can."""
    n_inside, steps = [0], Nest._steps

    def walked(nest: Nest, depth: int, pool: Pool) -> tuple[int, int]:
        first, end = steps(nest, depth, pool)
        n_inside[0] += first < end < depth
        return depth, depth

    monkeypatch.setattr(Nest, "_steps", walked)
    rng = random.Random(5)
    for problems in (layers, products, windows):
        n_waves, _ = compared(rng, problems, raised, grids, 150)
        assert n_waves > 40, problems
    assert n_inside[0] > 300


@pytest.mark.parametrize("order", [(20, 36), (36, 20)])
def test_what_takes_too_much_alone_is_not_found_by_the_way(
    order: tuple[int, int], raised: Raised
) -> None:
    """Steps of three loops: of schedules that differ in one, each spends what it does alone."""
    dims = dict.fromkeys("DEFG", 7) | {"K": 79}
    problem = affine(dims, {"A": "D E K", "B": "F G K", "C": "D E F G"}, element_bytes=4)
    levels = Level("DRAM", "memory", None), Level("L2", "cache", 8072, bandwidth_bytes_per_s=1.0)
    arch = Arch("m", levels, Compute("SM", 20, 1.0, 1.0, (("fp32", 256),), lane_unit="lane"))
    around = "D:7 E:7 F:7 G:7 D:6@SM E:6@SM F:6@SM G:6@SM D:5@lane E:5@lane F:5@lane G:5@lane"
    nests = [parse_schedule(f"{around} K:79 K:{step} K:4", problem) for step in order]
    promises._desk.cache_clear()
    found = evaluate_many(problem, nests, arch).dram_bytes.tolist()
    assert found == [{20: 195412, 36: 200468}[step] for step in order]


def test_schedules_that_differ_in_one_loop(raised: Raised) -> None:
    """Steps along a dimension that is cut in several ways are walked once for all of them."""
    rng = random.Random(8)
    for problems in (layers, products, windows):
        n_waves, _ = compared(rng, problems, raised, grids, 60, 9)
        assert n_waves > 150, problems


GRIDS = (
    ("M:1024@SM N:1024@SM K:1024 M:{} N:{} K:{}", (8, 24, 56, 96, 200), (8, 40, 128), (1, 20, 64)),
    ("N:1024@SM M:1024@SM K:1024 M:{} N:{} K:{} N:4 M:2", (96, 128), (50, 64), (16, 20)),
    ("M:1024 N:1024 M:500@SM N:350@SM K:1024 M:{} N:{} K:{}", (32, 60), (25, 64), (8, 30)),
)


@pytest.mark.parametrize(("text", "ms", "ns", "ks"), GRIDS, ids=lambda _: "")
def test_grids_of_tile_sizes_on_a_gpu(
    text: str, ms: list[int], ns: list[int], ks: list[int], raised: Raised
) -> None:
    problem, arch = gemm(m=1024, n=1024, k=1024), load_arch("titan_v")
    lanes = int(arch.compute.rate("fp32"))
    every = [parse_schedule(text.format(m, n, k), problem) for m in ms for n in ns for k in ks]
    found = promises.promised_many(problem, every, arch, lanes)
    for nest, row in zip(every, found.tolist(), strict=True):
        assert row[kernels.OUTCOME] == kernels.PROMISED
        assert row[kernels.BYTES :] == one_by_one(problem, nest, arch, lanes), str(nest)
    assert raised.waves > len(every) // 4


def test_threads_find_the_same(raised: Raised) -> None:
    problem, arch = gemm(m=1024, n=1024, k=1024), load_arch("titan_v")
    text, ms, ns, ks = GRIDS[0]
    drawn = [parse_schedule(text.format(m, n, k), problem) for m in ms for n in ns for k in ks]
    drawn = (drawn * 9)[: promises.SOME * 12 + 5]
    alone, some = (evaluate_many(problem, drawn, arch, jobs=jobs) for jobs in (1, 3))
    for level, numbers in alone.level_bytes.items():
        assert numbers.tolist() == some.level_bytes[level].tolist()
    assert alone.time_s.tolist() == some.time_s.tolist()
    with pytest.raises(ScheduleError, match="jobs is 0; a whole number >= 1 is needed"):
        evaluate_many(problem, drawn, arch, jobs=0)
    assert not raised.waves
