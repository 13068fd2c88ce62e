"""What the model counts of a plan, beside counts made by hand."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import chain
from statistics import fmean

import pytest

from loopsched import Problem, batched_gemm, conv2d, einsum, gemm, kernel_schedules, load_arch
from loopsched.codegen.choose import Ranking, core_of, ranked, tiled
from loopsched.codegen.contraction import Operand, contractions
from loopsched.codegen.core import COSTS, NARROW_WAIT, WIDE_COSTS, ZEN5_COSTS, Core
from loopsched.codegen.cost import ALONE, PARTED, Model
from loopsched.codegen.element import BF16, FP32, INT8, INT32
from loopsched.codegen.lines import Lines
from loopsched.codegen.plan import L3_BYTES, Plan, Walk, asks_beside, goes_across

CORE = Core(16, 32, 1, 4, 1, 32 * 1024, 1024 * 1024, 1e9)
NARROW = replace(CORE, lanes=8, registers=16, fma_per_cycle=2.0, load_per_cycle=2.0)
SERVER = core_of(load_arch("epyc_9654"), 4)[0]
TURIN = core_of(load_arch("epyc_9755"), 4)[0]
SIZES = {"m": 70, "n": 100, "k": 60}
WIDE = {"epyc_9654": math.inf, "apple_m1": math.inf, "epyc_9755": 64.0, "xeon_8480": 48.0}


def plan(sum_block: int, **more: object) -> Plan:
    walks = Walk(("M",), 0, 35), Walk(("N",), 0, 100), Walk(("K",), 0, sum_block)
    return Plan((), *walks, 8, 48, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("sum_block", [60, 30])
def test_counts_of_a_product(sum_block: int) -> None:
    """Two blocks of 35 rows: eight tiles of 4 and one of 3; columns: two tiles of 48, one of 4."""
    (task,) = contractions(gemm(**SIZES))
    found = Model(task, CORE).counts(plan(sum_block)._replace(tile_rows=4))
    n_sums = 60 // sum_block
    tiles = [(rows, vectors) for rows in [4] * 16 + [3] * 2 for vectors in (3, 3, 1)]
    assert found["tile"] == len(tiles) * n_sums
    assert found["spread"] == sum(rows for rows, vectors in tiles if vectors > 1) * 60
    written = sum(rows * vectors for rows, vectors in tiles)
    assert found["sum"] == written * (1 if n_sums == 1 else 2 * n_sums)
    issued = sum(max(rows * vectors, (rows + vectors) / 2) for rows, vectors in tiles)
    assert found["issue"] == pytest.approx(issued * 60)
    waits = sum(max(0, 4 - max(rows * n, (rows + n) / 2)) for rows, n in tiles)
    assert found["latency"] == pytest.approx(waits * 60)
    assert found["copy"] == 60 * -(-100 // 16)  # rows of B, each of so many vectors
    assert found["run"] == 60 * 3  # in each panel
    assert found["gather"] == found["square"] == found["scatter"] == found["transpose"] == 0


def test_counts_where_broadcasts_are_instructions() -> None:
    """AVX2: a vector is half a line, and eight chains of sums are hardly enough."""
    (task,) = contractions(gemm(m=64, n=8, k=1024))
    walks = Walk(("M",), 0, 64), Walk(("N",), 0, 8), Walk(("K",), 0, 1024)
    found = Model(task, NARROW).counts(Plan((), *walks, 8, 8, packs_left=True))
    assert found["spread"] == 64 * 1024 * ALONE
    assert found["issue"] == 8 * 1024 * 4.5  # loads: eight elements and a vector
    assert found["latency"] == pytest.approx(8 * 1024 * (4 + NARROW_WAIT - 4.5))
    panel = 1024 * 8 * 4 / 64  # lines: all of L1, so that each tile reads them from L2
    assert found["near"] == 8 * panel
    half = Walk(("K",), 0, 512)
    found = Model(task, NARROW).counts(Plan((), *walks[:2], half, 4, 8, packs_left=True))
    assert found["near"] == panel  # half of L1: the first tile of each block alone


IMAGE = conv2d(c=32, k=6, h=56, w=56, r=3, s=3, padding=1)


@pytest.mark.parametrize(
    ("rows", "wide", "lines", "cycles"),
    # 112 columns of two rows of the image: seven tiles of 16; four of 24, whose 96 bytes begin
    # in the midst of a line or not, and one of 16
    [(6, 16, 7, 7 * 6), (4, 24, 4 * 2 + 1.5, 4 * (3.6 * 2 + 3.6 * 2) + 3.6 * 1.5 + 3.6 * 1.5)],
)
def test_lines_of_columns_that_lie_apart(rows: int, wide: int, lines: float, cycles: float) -> None:
    """Padded rows of an image are packed whole: tiles read as many lines as they lie in.

    L2 does not give one in less than 3.6 cycles; what packed tile by tile follows each other does
    not wait.
    """
    (task,) = contractions(IMAGE)
    walks = Walk(("K",), 0, 6), Walk(("N", "P", "Q"), 1, 2), Walk(("C", "R", "S"), 0, 32)
    found = Model(task.swapped(), NARROW).counts(Plan((), *walks, rows, wide))
    n_blocks, depth, n_tall = 28, 32 * 9, -(-6 // rows)
    assert found["near"] == n_blocks * depth * lines * n_tall
    assert found["issue"] == pytest.approx(n_blocks * depth * cycles)
    (product_,) = contractions(gemm(m=2, n=256, k=512))
    walks = Walk(("M",), 0, 2), Walk(("N",), 0, 256), Walk(("K",), 0, 512)
    found = Model(product_, NARROW).counts(Plan((), *walks, 2, 32))
    assert (found["near"], found["issue"]) == (8 * 512 * 2, 8 * 512 * 4)


def test_columns_in_place_wait_for_the_lines_that_there_are() -> None:
    """Eight columns lie in one line, or sometimes in two where rows begin at 16 bytes of any."""
    for n, lines in ((1024, 1), (1028, 1.25)):
        (task,) = contractions(gemm(m=4, n=n, k=512))
        walks = Walk(("M",), 0, 4), Walk(("N",), 0, n), Walk(("K",), 0, 512)
        plan = Plan((), *walks, 4, 8, packs_right=False)
        found = Model(task, replace(NARROW, load_per_cycle=4.0)).counts(plan)
        assert found["issue"] == pytest.approx(-(-n // 8) * 512 * 3.6 * lines, rel=0.01)
    (task,) = contractions(conv2d(c=64, k=2, h=64, w=66, r=3, s=3))
    walks = Walk(("K",), 0, 2), Walk(("N", "P", "Q"), 2, 64), Walk(("C", "R", "S"), 0, 64)
    found = Model(task.swapped(), NARROW).counts(Plan((), *walks, 2, 16, packs_right=False))
    rows = 64 * 3 * (1 + 17 / 16)  # of 18 elements, for all taps; they begin anywhere
    assert found["issue"] == pytest.approx(62 * 4 * 3.6 * rows, rel=0.01)


@pytest.mark.parametrize("is_left", [True, False])
def test_rows_of_an_image_that_windows_share(*, is_left: bool) -> None:
    """What the block before read, and L2 no longer has, comes from the last cache."""
    (task,) = contractions(conv2d(c=64, k=7, h=224, w=224, r=3, s=3, padding=1))
    rows, cols = Walk(("N", "P", "Q"), 1, 1), Walk(("K",), 0, 7)
    one, walks = (task, (rows, cols)) if is_left else (task.swapped(), (cols, rows))
    plan = Plan((), *walks, Walk(("C", "R", "S"), 0, 64), 7, 48, packs_left=is_left)
    found = Model(one, replace(CORE, l2_bytes=1 << 18, last_bytes=1 << 24)).counts(plan)
    lines = 64 * 224 * 224 / 16
    assert found["read_dram"] == pytest.approx(lines, rel=0.05)
    assert found["read_l3"] == pytest.approx(2 * lines, rel=0.2)  # and filters


def test_rows_of_an_image_share_its_pages() -> None:
    """Windows of 256 planes of 56x56 touch a page of each; rows half a page apart two a page."""
    (task,) = contractions(conv2d(c=256, k=64, h=56, w=56, r=3, s=3, padding=1))
    window = (("C", 256), ("R", 3), ("S", 3), ("Q", 6))
    assert Lines(task, CORE).of(task.left, window).pages == 256
    (task,) = contractions(gemm(m=64, n=8, k=512))
    rows = Lines(task, CORE).of(task.left, (("M", 64), ("K", 16)))
    assert rows.pages == pytest.approx(32, rel=0.05)


def test_lines_that_stores_cannot_wait_with() -> None:
    """Five tiles of 7 rows write 21 vectors each; twice with a cut sum."""
    (task,) = contractions(gemm(**SIZES))
    small = replace(CORE, l1_bytes=1 << 10, l2_bytes=1 << 14)  # sums lie outside L2
    for sum_block, times in ((60, 1), (30, 4)):
        assert Model(task, CORE).counts(plan(sum_block))["burst"] == 0
        assert Model(task, small).counts(plan(sum_block))["burst"] == times * 2 * 5 * 2 * (21 - 16)


def test_what_is_not_packed_is_not_copied() -> None:
    (task,) = contractions(gemm(**SIZES))
    assert Model(task, CORE).counts(plan(60, packs_right=False))["copy"] == 0


PROBLEMS = (
    gemm(**SIZES),
    gemm(m=300, n=90, k=700, transpose_a=True, transpose_b=True),
    conv2d(c=24, k=40, h=20, w=20, r=3, s=3, padding=1),
    conv2d(c=5, k=64, h=30, w=30, r=5, s=5, stride=2, padding=2),
)


def ways(problem: Problem) -> list[tuple[float, Model, Plan, int]]:
    """List all plans with vectors along the right operand of a problem."""
    (task,) = contractions(problem)
    model, plans = Model(task, CORE), tiled(task, CORE, None)
    numbered = [(plan, number) for number, way in enumerate(plans) for plan in way]
    return [(model.sums(plan), model, plan, number) for plan, number in numbered]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_first_are_the_least(problem: Problem, threads: int) -> None:
    """What is left out when a few are asked for is none of these."""
    plans, every = ways(problem), Ranking(threads)
    every.count(plans)
    cycles = [one for one, *_ in every.best()]
    assert cycles == sorted(cycles)
    assert cycles[0] < cycles[-1]
    for n in (1, 7):
        few = Ranking(threads)
        few.count(plans, n)
        assert [one for one, *_ in few.best()][:n] == cycles[:n]
        assert len(few.found) < len(cycles)


@pytest.mark.parametrize("threads", [1, 2, 6])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_is_tried_with_few_register_tiles_first(problem: Problem, threads: int) -> None:
    """Choosing blocks before register tiles costs next to nothing."""
    (task,) = contractions(problem)
    every = [one for one, _, _ in ranked(task, CORE, threads)]
    for n in (1, 8):
        found = [one for one, _, _ in ranked(task, CORE, threads, n=n)][:n]
        assert found == sorted(found)
        assert all(a <= b <= 1.01 * a for a, b in zip(every, found, strict=False))
        assert len(found) == n


@pytest.mark.parametrize(
    ("problem", "machine", "n_bytes", "threads"),
    [
        (gemm(m=128, n=4096, k=3072, transpose_a=True), "ryzen_5950x", 2, 4),  # bf16
        (
            conv2d(n=2, c=16, k=512, h=56, w=56, r=3, s=3, padding=1, pass_="backward_weights"),
            "ryzen_7950x",
            4,
            16,
        ),
        (gemm(m=512, n=1000, k=768, transpose_b=True), "ryzen_5950x", 4, 1),
        # whole sums make large blocks
        (
            conv2d(n=32, c=16, h=112, w=112, k=256, r=5, s=5, padding=2, pass_="backward_weights"),
            "graviton4",
            2,
            1,
        ),
        # tiles that cut columns otherwise move another amount
        (batched_gemm(batch=96, m=73, n=2, k=8192), "xeon_8380", 4, 1),
        (batched_gemm(batch=96, m=5, n=737, k=63), "ryzen_5950x", 4, 1),
        # narrow products, of which few tiles multiply fast
        (batched_gemm(batch=96, m=135, n=5, k=56), "epyc_9654", 4, 1),
        # what two multiply-adds a cycle do not hide
        (batched_gemm(batch=2, m=217, n=368, k=389), "xeon_8380", 4, 1),
    ],
    ids=lambda one: one.name if isinstance(one, Problem) else str(one),
)
def test_several_register_tiles_are_tried_first(
    problem: Problem, machine: str, n_bytes: int, threads: int
) -> None:
    """The tile that multiplies fastest need not show how good a way to cut is."""
    kind = BF16 if n_bytes == 2 else FP32
    (task,) = contractions(problem, dict.fromkeys((one.name for one in problem.tensors), kind))
    core, _ = core_of(load_arch(machine), 4)
    best = ranked(task, core, threads)[0][0]
    assert all(ranked(task, core, threads, n=n)[0][0] <= 1.002 * best for n in (1, 8))


@pytest.mark.parametrize("problem", [*PROBLEMS, batched_gemm(batch=3, m=50, n=40, k=30)])
def test_what_the_largest_blocks_tell(problem: Problem) -> None:
    """All, where blocks are alike; otherwise smaller blocks seldom take less a point."""
    (task,) = contractions(problem)
    shares, firsts = [], []
    for cycles, one, cut in ranked(task, CORE)[::17]:
        model = Model(one, CORE)
        assert model.sums(cut) <= cycles * (1 + 1e-12)
        (moved, _), (about, _), (_, counts) = model.estimates(cut)
        assert counts == model.counts(cut)
        assert sum(model.paid(counts)) == pytest.approx(cycles)
        shares.append(about / cycles)
        firsts.append((moved + model.sums(cut)) / cycles)
        walks = (cut.rows, cut.cols, cut.sums)
        if all(one.size(walk.inner[0]) % walk.block == 0 for walk in walks if walk.inner):
            assert about == pytest.approx(cycles)
    assert min(shares) > 0.5
    assert max(shares) < 1.02
    assert fmean(shares) > 0.9
    assert max(firsts) < 1.02
    assert fmean(firsts) > 0.6


def test_what_packing_reads_pushes_blocks_out_of_the_last_cache() -> None:
    """A block of 4 MiB stays where 16 MiB are kept, not where 6 are: B has 4 MiB, too."""
    (task,) = contractions(gemm(m=64, n=1024, k=1024))
    cut = Plan((), Walk(("M",), 0, 64), Walk(("N",), 0, 1024), Walk(("K",), 0, 1024), 8, 32)
    lines = 1024 * 1024 / 16
    for last, packed, read in ((32, "pack_l3", "spill_l3"), (12, "pack_dram", "spill_dram")):
        core = replace(CORE, last_bytes=last << 20)
        found = Model(task, core).counts(cut)
        assert found[packed] == found[read] == lines
        assert Model(task, core).counts(cut._replace(is_right_given=True))["pack_dram"] == 0


def test_windows_use_half_vectors_for_narrow_planes() -> None:
    """Where two halves take as long as a whole, and a row of the plane fits a half."""
    for core, lanes in ((CORE, [16, 8]), (replace(CORE, wide_l2_rate=48.0), [16, 16])):
        for width, found in zip((9, 8), lanes, strict=True):
            (task,) = contractions(conv2d(c=5, k=5, h=8, w=width, r=3, s=3, padding=1, groups=5))
            assert ranked(task, core)[0][2].tile_cols == found


def touched(operand: Operand, dims: list[tuple[str, int]]) -> float:
    """Count lines point by point, on average over where the first element lies in its line."""
    places = [0]
    for dim, size in dims:
        places = [one + at * operand.step(dim) for one in places for at in range(size)]
    return fmean(len({(one + first) // 16 for one in places}) for first in range(16))


@pytest.mark.parametrize("side", ["left", "right", "out"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_lines_of_boxes(problem: Problem, side: str) -> None:
    """Windows that overlap count once; runs that share lines may count twice."""
    (task,) = contractions(problem)
    operand, draw = getattr(task, side), random.Random(problem.name + side)
    for _ in range(20):
        dims = [(dim, draw.randint(1, min(size, 12))) for dim, size in task.sizes]
        found = Lines(task, CORE).of(operand, tuple(dims)).lines
        assert 0.99 <= found / touched(operand, dims) <= 1.5


@pytest.mark.parametrize(
    ("n", "rows", "level"),
    [(1024, 8, 0), (1024, 9, 1), (1000, 60, 0), (1024, 256, 1), (1024, 257, 2), (32768, 9, 2)],
)
def test_rows_that_lie_in_one_set(n: int, rows: int, level: int) -> None:
    """8 ways of 4 KiB in L1, of 128 KiB in L2; a row of B has a step of 4 n bytes."""
    (task,) = contractions(gemm(m=20, n=n, k=300))
    found = Lines(task, CORE).of(task.right, (("N", 1), ("K", rows)))
    assert found.lines == rows
    assert found.level == level


def crossing(step: int, lanes: int) -> float:
    """Which share of vectors lies in two lines, where their first elements lie so far apart."""
    places = [at * step % 16 for at in range(16)]
    return fmean(at + lanes > 16 for at in places)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("n", [512, 776, 100, 102, 777])
def test_vectors_read_in_place_may_lie_in_two_lines(n: int, lanes: int) -> None:
    """Rows of B begin anywhere in a line, those of a multiple of 16 elements at its start."""
    (task,) = contractions(gemm(m=24, n=n, k=7))
    walks = Walk(("M",), 0, 24), Walk(("N",), 0, n), Walk(("K",), 0, 7)
    cut = Plan((), *walks, 8, 2 * lanes, packs_right=False)
    model = Model(task, replace(CORE, lanes=lanes))
    n_vectors = 3 * 7 * -(-n // lanes)
    assert model.counts(cut)["cross"] == pytest.approx(n_vectors * crossing(n, lanes))
    assert model.counts(cut._replace(packs_right=True))["cross"] == 0
    (image,) = contractions(conv2d(n=1, c=9, k=8, h=n, w=1, r=1, s=1))  # R and S step nowhere
    assert Model(image.swapped(), replace(CORE, lanes=lanes))._crossing == pytest.approx(
        crossing(n, lanes)
    )


@pytest.mark.parametrize(("k", "begun"), [(1024, 512 * 4), (256, 0)])
def test_runs_of_rows_begin_with_each_block_of_a_sum(k: int, begun: int) -> None:
    """512 rows of A in blocks of 256 terms, from the last cache; shorter rows follow at once."""
    (task,) = contractions(gemm(m=512, n=16, k=k))
    core = replace(CORE, l2_bytes=1 << 14)
    cut = Plan((), Walk(("M",), 0, 64), Walk(("N",), 0, 16), Walk(("K",), 0, 256), 8, 16)
    assert Model(task, core).counts(cut)["start_l3"] == pytest.approx(begun, rel=0.1)


@pytest.mark.parametrize(("width", "is_lost"), [(62, False), (64, True)])
def test_lines_lost_to_others_of_their_sets_are_read_again(width: int, is_lost: bool) -> None:
    """Planes of 16 KiB meet in few sets of L2: rows of the image share no lines with the next."""
    (task,) = contractions(conv2d(c=256, k=64, h=width, w=width, r=3, s=3, padding=1))
    rows = Walk(("N", "P", "Q"), 2, width)
    cut = Plan((), rows, Walk(("K",), 0, 64), Walk(("C", "R", "S"), 0, 256), 6, 64)
    core = replace(CORE, l2_bytes=2 << 20, l2_ways=16)
    found = Model(task, core).counts(cut._replace(packs_left=True))
    read = found["read_l3"] + found["far_l3"]
    once = 256 * width * width / 16
    assert (2.5 if is_lost else 0.9) * once < read < (3.5 if is_lost else 1.2) * once


def test_tiles_share_no_lines_that_the_sets_do_not_hold() -> None:
    """1024 lines 4 KiB apart: L2's sets hold them or not; each serves four tiles of four rows."""
    (task,) = contractions(gemm(m=64, n=1024, k=1024))
    cut = Plan((), Walk(("N",), 0, 16), Walk(("M",), 0, 64), Walk(("K",), 0, 1024), 4, 64)
    read = []
    for l2_bytes in (1 << 20, 8 << 20):
        found = Model(task.swapped(), replace(CORE, l2_bytes=l2_bytes, last_bytes=1 << 26))
        counts = found.counts(cut)
        read.append(sum(counts[name] for name in ("far_l3", "read_l3", "ahead_l3")))
    lines = 64 * 1024  # of B
    assert 3 * lines < read[0] < 6 * lines
    assert read[1] <= 1.1 * lines


def test_sets_of_l2_have_ways_of_their_own() -> None:
    """16 ways of 128 KiB: 16 lines 128 KiB apart stay, 17 do not, whatever L1 has."""
    (task,) = contractions(gemm(m=20, n=32768, k=300))
    core = replace(CORE, l1_bytes=48 << 10, ways=12, l2_bytes=2 << 20, l2_ways=16)
    levels = [
        Lines(task, core).of(task.right, (("N", 1), ("K", rows))).level for rows in (12, 13, 16, 17)
    ]
    assert levels == [0, 1, 1, 2]


def test_loads_hold_up_two_multiply_adds_a_cycle() -> None:
    """Of 28 rows and a vector: 29 loads, two a cycle; lines from L2 keep L1 from giving others."""
    (task,) = contractions(gemm(m=28, n=1600, k=4000))
    cut = Plan((), Walk(("M",), 0, 28), Walk(("N",), 0, 1600), Walk(("K",), 0, 4000), 28, 16)
    core = replace(CORE, fma_per_cycle=2, load_per_cycle=2)
    n_points = 100 * 4000
    assert Model(task, core).counts(cut)["issue"] == n_points * 14.5
    wide = replace(core, wide_l2_rate=32.0)
    assert Model(task, wide).counts(cut)["issue"] > n_points * (14.5 + 2)
    slow = replace(CORE, wide_l2_rate=32.0)  # 28 cycles of multiply-adds hide them
    assert Model(task, slow).counts(cut)["issue"] == n_points * 28


def test_lines_from_l2_are_waited_for_by_wide_cores_only() -> None:
    rates = {name: core_of(load_arch(name), 4)[0].wide_l2_rate for name in WIDE}
    assert rates == WIDE


def test_zen_5_is_a_kind_of_its_own() -> None:
    """If it multiplies whole vectors twice a cycle; other wide cores are like Emerald Rapids."""
    halved = replace(TURIN, wide_l2_rate=math.inf)
    xeon = core_of(load_arch("xeon_8480"), 4)[0]
    costs = [one.costs for one in (TURIN, halved, xeon, replace(xeon, design="znver5"))]
    assert costs == [ZEN5_COSTS, COSTS, WIDE_COSTS, ZEN5_COSTS]
    assert [one.masks_are_cheap for one in (TURIN, halved, xeon)] == [True, True, False]
    assert [one.asks_l3 for one in (TURIN, halved, xeon)] == [False, True, True]
    assert [one.one_set_cycles for one in (TURIN, halved, xeon)] == [11.0, 10.5, 0.0]


@pytest.mark.parametrize(("core", "n_bytes"), [(TURIN, 0.7 * 2**20), (SERVER, 0.8 * 2**20)])
def test_what_is_used_again_leaves_room_in_l2(core: Core, n_bytes: float) -> None:
    (task,) = contractions(gemm(m=64, n=64, k=64))
    lines = Lines(task, core)
    assert [lines.level(n_bytes), lines.level(n_bytes + 1)] == [1, 2]
    share = n_bytes / 2**20
    assert [lines.stays(share - 0.01, 0), lines.stays(share + 0.01, 0)] == [True, False]


@pytest.mark.parametrize(
    ("core", "k", "asks"), [(TURIN, 500, 0), (TURIN, 2000, 1), (SERVER, 500, 1)]
)
def test_where_tiles_ask_for_columns_beside_theirs(core: Core, k: int, asks: int) -> None:
    """Zen 5 fetches by itself in time what the last cache holds."""
    (task,) = contractions(gemm(m=30, n=1600, k=k))
    assert (task.n_bytes > L3_BYTES) == (k == 2000)
    plans = [one for one in chain(*tiled(task, core, None)) if not one.packs_right]
    assert {one.asks_l3 for one in plans if not one.sums_in_lanes} == {core is SERVER}
    (found, *_) = (one for one in plans if (one.tile_cols, one.cols.block) == (32, 1600))
    assert asks_beside(task, found, 64) == bool(asks)
    assert (Model(task, core).counts(found)["next_l3"] > 0) == bool(asks)


def test_dots_ask_for_what_the_last_cache_holds_on_every_core() -> None:
    (task,) = contractions(gemm(m=40, n=500, k=2000, transpose_b=True))
    dots = [one for one in chain(*tiled(task, TURIN, None)) if one.sums_in_lanes]
    assert task.n_bytes < L3_BYTES
    assert {one.asks_l3 for one in dots} == {True}
    assert any(asks_beside(task, one, 64) for one in dots)


@pytest.mark.parametrize(
    ("m", "asks_l3", "name"),
    [(1024, False, "far_l3"), (1024, True, "ahead_l3"), (4096, False, "ahead_l3")],
)
def test_rows_that_tiles_ask_for_come_ahead(m: int, *, asks_l3: bool, name: str) -> None:
    """Runs of 64 elements of rows that lie 2 KiB apart: 2 and 8 MB, and 1 KiB more."""
    (task,) = contractions(gemm(m=m, n=64, k=513))
    walks = Walk(("M",), 0, 64), Walk(("N",), 0, 64), Walk(("K",), 0, 64)
    counts = Model(task, TURIN).counts(Plan((), *walks, 8, 32, asks_l3=asks_l3))
    found = {one for one in ("far_l3", "ahead_l3") if counts[one] > 10**4}
    assert found == {name}


@pytest.mark.parametrize(
    ("k", "core", "kind"),
    [(2560, TURIN, "far_dram"), (2560, NARROW, "read_dram"), (512, TURIN, "read_l3")],
)
def test_rows_that_are_transposed_come_far_from_memory(k: int, core: Core, kind: str) -> None:
    """Sixteen at a time; where they are more than the last cache holds, if nothing asks."""
    (task,) = contractions(gemm(m=24, n=4000, k=k, transpose_b=True))
    walks = Walk(("M",), 0, 24), Walk(("N",), 0, 400), Walk(("K",), 0, 512)
    counts = Model(task, core).counts(Plan((), *walks, 8, 2 * core.lanes, asks_l3=False))
    lines = 4000 * k * 4 / 64
    assert counts["next_l3"] == counts["next_dram"] == 0
    assert counts[kind] == pytest.approx(lines, rel=0.1)


@pytest.mark.parametrize(
    ("problem", "along"),
    [
        (gemm(m=1, n=2048, k=2048, transpose_b=True), "K"),
        (gemm(m=1, n=2048, k=2048), "N"),
        (gemm(m=49, n=512, k=2048, transpose_b=True), "K"),
        (conv2d(n=1, c=2048, k=512, h=7, w=7, r=1, s=1), "C"),
        (conv2d(n=1, c=64, k=64, h=56, w=56, r=1, s=1), "Q"),
    ],
    ids=lambda one: one.name if isinstance(one, Problem) else "",
)
def test_what_lies_along_the_sum_is_not_packed_for_few_rows(problem: Problem, along: str) -> None:
    (found,) = kernel_schedules(problem, "epyc_9654", threads=1)
    packed = {one.packs for one in found.loops} - {""}
    assert found.vector == along
    assert not packed & {"B", "weight"}


def test_runs_of_many_rows_are_far_and_those_of_few_are_asked_for() -> None:
    """A tile of narrow columns reads a run of each row; few rows go on in the next tile.

    There it asks for them, save those of a block's first tile; L2 has no sets for many rows.
    """
    (task,) = contractions(gemm(m=1, n=4096, k=4096))
    rows, cols = Walk(("M",), 0, 1), Walk(("N",), 0, 2048)
    counted = {
        depth: Model(task, SERVER).counts(
            Plan((), rows, cols, Walk(("K",), 0, depth), 1, 96, packs_right=False)
        )
        for depth in (16, 512)
    }
    lines = 4096 * 4096 * 4 / 64
    deep, flat = counted[512], counted[16]
    assert (flat["far_dram"], flat["leap_dram"]) == (0, 0)
    assert flat["next_dram"] == pytest.approx(lines * (1 - 96 / 2048), rel=0.02)
    assert flat["read_dram"] == pytest.approx(lines * 96 / 2048, rel=0.05)
    assert deep["next_dram"] == 0
    assert deep["far_dram"] == pytest.approx(lines, rel=0.2)
    assert deep["leap_dram"] == pytest.approx(4096 * 4096 / 96, rel=0.05)


def test_squares_that_tiles_asked_for_cost_less() -> None:
    """Blocks that leave room in L2 for what the next one is packed from."""
    (task,) = contractions(gemm(m=64, n=2048, k=1024, transpose_b=True))
    walks = Walk(("M",), 0, 64), Walk(("K",), 0, 1024)
    for block, name in ((64, "transpose_near"), (128, "transpose")):
        plan = Plan((), walks[0], Walk(("N",), 0, block), walks[1], 28, 16)
        counts = Model(task, SERVER).counts(plan)
        squares = {one: counts[one] for one in ("transpose", "transpose_near")}
        assert squares == {"transpose": 0, "transpose_near": 0, name: 2048 * 1024 / 256}
        lines = 2048 * 1024 * 4 / 64
        assert counts["next_l3"] == (pytest.approx(lines, rel=0.01) if block == 64 else 0)
    assert COSTS["transpose_near"] < COSTS["transpose"]


def test_tiles_of_padded_images_pay_for_masks_and_loops_over_taps() -> None:
    (task,) = contractions(conv2d(n=1, c=8, k=16, h=64, w=64, r=3, s=3, padding=1))
    one = task.swapped() if task.left.guards else task
    (found, *_) = (
        each
        for each in dict.fromkeys(chain(*tiled(one, SERVER, None)))
        if not (each.packs_left or each.packs_right or each.sums_in_lanes)
        and (each.tile_rows, each.tile_cols, each.sums.block) == (4, 64, 8)
    )
    counts = Model(one, SERVER).counts(found)
    assert counts["mask"] == counts["tile"] == 64 * 4
    assert counts["limit"] == pytest.approx(64 * 4 * 8)


def test_rows_in_one_set_of_l1_push_each_other_out() -> None:
    def clash(n_cols: int, k: int) -> float:
        (task,) = contractions(gemm(m=1, n=512, k=k, transpose_b=True))
        walks = Walk(("M",), 0, 1), Walk(("N",), 0, 512), Walk(("K",), 0, k)
        found = Plan((), *walks, 1, n_cols, packs_right=False, sums_in_lanes=True)
        return Model(task, SERVER).counts(found)["clash"]

    assert clash(16, 1024) == 512 * 1024 / 16
    assert clash(8, 1024) == clash(16, 1040) == 0


@pytest.mark.parametrize(("rows", "lost"), [(7, 0.0), (8, 0.2), (9, 1.0)])
def test_rows_that_fill_a_set_lose_lines_to_what_passes_through(rows: int, lost: float) -> None:
    (task,) = contractions(gemm(m=10 * rows, n=160, k=1024))
    walks = Walk(("M",), 0, 10 * rows), Walk(("N",), 0, 160), Walk(("K",), 0, 1024)
    found = Plan((), *walks, rows, 16, packs_right=False)
    assert Model(task, SERVER).counts(found)["clash"] == pytest.approx(
        lost * 100 * rows * 1024 / 16
    )


@pytest.mark.parametrize(("height", "cycles"), [(32, 10.5), (33, 8.0)])
def test_lines_of_one_set_come_one_by_one(height: int, cycles: float) -> None:
    """Planes of 4096 bytes: the channels of a tile's columns share a set of L1."""
    (task,) = contractions(conv2d(n=1, c=96, k=64, h=height, w=32, r=1, s=1))
    walks = Walk(("K",), 0, 64), Walk(("P", "Q"), 0, height), Walk(("C",), 0, 96)
    model = Model(task.swapped(), SERVER)
    for wide, most in ((16, cycles), (32, 16.5 if height == 32 else 16.0)):
        found = Plan(("N",), *walks, 8, wide, packs_right=False)
        tiles = 8 * 32 * height / wide
        assert model.counts(found)["issue"] == pytest.approx(tiles * 96 * most)
        packed = model.counts(found._replace(packs_right=True))
        assert packed["issue"] == pytest.approx(tiles * 96 * wide / 2)


@pytest.mark.parametrize("stride", [1, 2])
def test_lines_of_which_half_is_read_come_in_a_rush(stride: int) -> None:
    size = 28 * stride
    (task,) = contractions(conv2d(n=1, c=256, k=64, h=size, w=size, r=1, s=1, stride=stride))
    walks = Walk(("P", "Q"), 1, 28), Walk(("K",), 0, 64), Walk(("C",), 0, 256)
    found = Model(task, SERVER).counts(Plan(("N",), *walks, 28, 16))
    lines = 28 * stride * 4 / 64  # of a row of the image, about
    assert (found["rush"] > 0) == (lines > 0.12 * 28) == (stride == 2)
    assert found["rush"] < 28 * 4 * 256 * (lines + 1)


def test_one_line_that_is_read_again_shares_its_set_with_none() -> None:
    (task,) = contractions(einsum("ab,c->ac", {"a": 4, "b": 1000, "c": 16384}))
    walks = Walk(("a",), 0, 4), Walk(("c",), 0, 16384), Walk(("b",), 0, 1000)
    found = Plan((), *walks, 4, 16, packs_right=False)
    assert Model(task, SERVER).counts(found)["issue"] == 4 * 1000 * 16384 / 16
    assert goes_across(task, found._replace(cols=Walk(("c",), 0, 16)))


@pytest.mark.parametrize("machine", ["epyc_9654", "graviton4", "ryzen_5950x", "xeon_8480"])
def test_what_register_tiles_take_is_part_of_what_plans_take(machine: str) -> None:
    core, draw = core_of(load_arch(machine), 4)[0], random.Random(7)
    for m, n, k in ((128, 2048, 2048), (64, 64, 1024), (1, 500, 1024), (40, 96, 4096)):
        problem = gemm(m=m, n=n, k=k, transpose_a=m == 1, transpose_b=True)
        (given,) = contractions(problem)
        for task in (given, given.swapped()):
            model, plans = Model(task, core), list(chain(*tiled(task, core, None)))
            for one in draw.sample(plans, min(len(plans), 150)):
                assert model.sums(one) <= model.cycles(one) * (1 + 1e-9), one


def test_lines_that_sums_are_written_to() -> None:
    for width, tile, lines in ((224, 16, 1), (224, 28, 2.5), (14, 14, 1.75), (15, 16, 1.9375)):
        (task,) = contractions(conv2d(n=1, c=4, k=16, h=8, w=width, r=1, s=1))
        assert Model(task, SERVER)._written_lines(tile) == lines
    (task,) = contractions(gemm(m=64, n=64, k=64), {"A": INT8, "B": INT8, "C": INT32})
    assert Model(task, SERVER)._written_lines(32) == 2


@pytest.mark.parametrize(
    ("problem", "which", "times"),
    [
        (conv2d(n=1, c=3, k=64, h=224, w=224, r=3, s=3, padding=1), 0, PARTED),
        (conv2d(n=1, c=3, k=64, h=30, w=30, r=3, s=3, padding=1), 0, 1),  # planes of 3,600 bytes
        (gemm(m=64, n=2000, k=30), 0, PARTED),
        (gemm(m=64, n=2000, k=30), -1, 1),  # all columns at once
        (gemm(m=64, n=1000, k=30), 0, 1),
    ],
)
def test_threads_that_write_planes_of_the_same_columns(
    problem: Problem, which: int, times: float
) -> None:
    (task,) = contractions(problem)
    task = task.swapped() if task.left.guards else task
    found = [
        one
        for one in chain(*tiled(task, SERVER, None))
        if not (one.packs_left or one.packs_right or one.sums_in_lanes)
        and (one.tile_rows, one.rows.block) == (4, 16)
    ][which]
    model = Model(task, SERVER)
    one, parted = (model.cycles(found._replace(row_parts=n), 2, (1.0, 0.0)) for n in (1, 4))
    assert parted / model._share(found, 2, 4) == pytest.approx(times)
    assert one == model._share(found, 2, 1)


def test_first_layers_are_shared_by_lines_of_the_image() -> None:
    problem = conv2d(n=1, c=3, k=64, h=224, w=224, r=3, s=3, padding=1)
    assert ranked(contractions(problem)[0], SERVER, 2, n=1)[0][2].row_parts == 1
