"""Rules and bounds at the last byte, and the last item, where they hold.

Random cases seldom come that close; most of these were found by breaking a formula
on purpose (tests/mutants) and looking for what shows it.
"""

from __future__ import annotations

import itertools
import math
import random
from itertools import groupby

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems, schedules

from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.buffer import lru_traffic, traffic
from loopsched.models.compute import compute_steps
from loopsched.models.float32 import single
from loopsched.models.replay import Nest, items_of, pools_of, replay_at
from loopsched.models.reuse import _least_between
from loopsched.models.score import evaluate
from loopsched.models.traffic import Room
from loopsched.models.view import View, ends_with_iterations, view_of
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import affine, conv2d, gemm
from loopsched.problems.footprint import (
    axis_count,
    axis_extremes,
    n_segments,
    segments,
    tensor_bytes,
)
from loopsched.problems.problem import Axis, Problem, Tensor
from loopsched.scheduler import Constraints, space_of
from loopsched.scheduler.allowed import allowed
from loopsched.scheduler.body import best_body
from loopsched.scheduler.item_bounds import least_item_s
from loopsched.scheduler.items import Pace, best_items
from loopsched.scheduler.waves import with_barriers
from loopsched.simulator import simulate
from loopsched.validation import validate_counters

# --- pieces ------------------------------------------------------------------


def test_strides_step_over_the_first_stored_position() -> None:
    """Of -3, -1, 1, 3 the last two are stored; a stride of 2 skips two, not one and a half."""
    assert axis_count(Axis((("P", 2),), offset=-3, size=10), {}, {"P": 4}) == 2
    assert axis_count(Axis((("P", 2),), offset=-4, size=10), {}, {"P": 4}) == 2


def test_equal_pieces_of_unequal_tiles_are_counted_together() -> None:
    """5, 5 and 1 in pieces of 4: two of 4, and three of 1."""
    assert n_segments(11, (5, 4)) == len(segments(11, (5, 4))) == 5


def test_the_smallest_piece_is_the_one_at_the_edge() -> None:
    assert axis_extremes(Axis((("M", 1),)), (10,), ((4,),)) == (10, 4, 2)


# --- room --------------------------------------------------------------------


def test_what_fills_a_room_fits() -> None:
    own = Room(8, (("A", 4),))
    assert own.fits({"A": 4, "B": 5, "C": 3})
    assert not own.fits({"A": 5, "B": 1, "C": 1})
    assert not own.fits({"A": 1, "B": 5, "C": 4})


# --- brackets ----------------------------------------------------------------

CASES = {
    # A row of the window comes back after two others of three: two do not fit.
    "a stride leaves gaps": (
        affine({"P": 4, "R": 3}, {"w": "R", "y": "P", "x": "P + 3*R"}, output="x"),
        "P:4 R:3", 11, 0,
    ),
    # The data of all other iterations fill the cache but for the element itself.
    "the element just fits": (
        affine({"P": 5, "Q": 2, "R": 2}, {"w": "R", "y": "P, Q", "x": "P + R, Q"},
               output="x", element_bytes=4),
        "Q:2 R:2 P:5", 48, 0,
    ),
    "visits between leave one byte": (
        affine({"Q": 2, "R": 3, "S": 2}, {"w": "R, S", "y": "Q", "x": "R, Q + S"},
               output="x"),
        "S:2 Q:2 R:3", 8, 20,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_brackets_hold_at_the_last_byte(name: str) -> None:
    problem, text, capacity, effort = CASES[name]
    nest = parse_schedule(text, problem)
    moved = oracle.simulate(problem, nest, capacity)
    found = lru_traffic(view_of(problem, nest), Room.shared(capacity), effort=effort)
    for tensor, part in found.tensors.items():
        assert part.read_bytes.low <= moved.reads[tensor] <= part.read_bytes.high
        assert part.write_bytes.low <= moved.writes[tensor] <= part.write_bytes.high


def test_a_replay_of_tiles_knows_what_is_gone() -> None:
    """Three tiles of two, one sum beside them: 5 bytes between two uses leave no sixth."""
    problem = affine({"J": 3, "I": 6}, {"x": "I", "y": "J"}, output="y", element_bytes=1)
    view = view_of(problem, parse_schedule("J:3 I:6 I:2", problem))
    items = items_of(view)
    assert items is not None
    found = {}
    for capacity in (5, 6):
        pools = pools_of(problem, Room.shared(capacity))
        found[capacity] = replay_at(Nest(view, items), items, 2, pools, 10**6, is_point=True)
    for one in found.values():
        assert one is not None
        assert one.high == {"x": 18, "y": 3}
    assert found[5].low == {"x": 18, "y": 3}  # type: ignore[union-attr]
    # With one byte more, only the middle tile meets two sums in between.
    assert found[6].low == {"x": 6 + 2 * 2, "y": 3}  # type: ignore[union-attr]


@given(st.data())
def test_all_iterations_but_one_touch_what_is_claimed(data: st.DataObject) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem))
    assert_others_touch_what_is_claimed(problem, schedule)


def test_iterations_in_the_padding_touch_nothing() -> None:
    """Of four rows two are stored: all but the first row touch one."""
    x, y = Axis((("P", 1),), offset=0, size=2), Axis((("P", 1),))
    problem = Problem("clipped", (("P", 4),), (Tensor("x", (x,)), Tensor("y", (y,))), "y")
    assert_others_touch_what_is_claimed(problem, parse_schedule("P:4", problem))


def test_iterations_on_both_sides_may_touch_the_same() -> None:
    """Windows {p, p+3}: rows 0, 1, 3 and 4 touch six positions, four rows on end seven."""
    problem = affine({"P": 5, "R": 2}, {"x": "P + 3*R", "y": "P"}, output="y")
    assert_others_touch_what_is_claimed(problem, parse_schedule("P:5 R:2", problem))


def assert_others_touch_what_is_claimed(problem: Problem, schedule: Schedule) -> None:
    view = view_of(problem, schedule)
    for upto in range(len(view.cuts)):
        claimed = _least_between(view, problem.tensors, upto)
        if claimed is not None:
            assert claimed <= least_of_others(problem, view, upto)
            assert claimed <= sum(view.footprint_bytes(t, upto) for t in problem.tensors)


def least_of_others(problem: Problem, view: View, upto: int) -> int:
    """Bytes that the iterations of a cut touch in one visit, less any one of them."""
    at = view.cuts[upto].position
    least = math.prod(problem.size.values()) * 64
    steps = oracle.walk(problem, view.schedule)
    for _, visit in groupby(steps, key=lambda step: step[0][:at]):
        parts = [
            oracle.touched(problem, [point for _, point in part])
            for _, part in groupby(visit, key=lambda step: step[0][: at + 1])
        ]
        for left_out in range(len(parts)):
            others = parts[:left_out] + parts[left_out + 1 :]
            least = min(
                least,
                sum(
                    tensor.element_bytes * len(set().union(*(one[tensor.name] for one in others)))
                    for tensor in problem.tensors
                ),
            )
    return least


# --- waves -------------------------------------------------------------------


def in_rows(trips: tuple[int, ...], n: int) -> bool:
    """Whether waves are whole iterations of the loop where instances run out, in order."""
    inside, at = 1, len(trips) - 1
    while inside * trips[at] <= n:
        inside *= trips[at]
        at -= 1
    items = list(itertools.product(*(range(many) for many in trips)))
    waves = [items[first : first + n] for first in range(0, len(items), n)]
    return all(len(wave) % inside == 0 and len({i[:at] for i in wave}) == 1 for wave in waves)


def test_waves_of_up_to_three_loops() -> None:
    for many in (1, 2, 3):
        for trips in itertools.product(range(1, 5), repeat=many):
            for n in range(2, 10):
                if math.prod(trips) > n:
                    aligned = ends_with_iterations([{trip} for trip in trips], n)
                    assert aligned == in_rows(trips, n), (trips, n)


def test_a_wave_that_ends_within_an_outer_row() -> None:
    """Two instances on rows of three: whole items fill each wave, but not whole rows."""
    problem = gemm(m=2, n=3, k=1)
    nest = parse_schedule("M:2@SM N:3@SM", problem)
    assert not view_of(problem, nest, instances={"SM": 2}).is_aligned
    assert view_of(problem, nest, instances={"SM": 3}).is_aligned
    assert not view_of(problem, nest, instances={"SM": 4}).is_aligned
    assert view_of(problem, nest, instances={"SM": 6}).is_aligned


def test_a_shorter_list_may_not_be_aligned() -> None:
    """Rows of four fill four instances; the last list has rows of three."""
    problem = gemm(m=2, n=7, k=1)
    nest = parse_schedule("N:7 M:2@SM N:4@SM", problem)
    assert not view_of(problem, nest, instances={"SM": 4}).is_aligned
    problem = gemm(m=2, n=8, k=1)
    nest = parse_schedule("N:8 M:2@SM N:4@SM", problem)
    assert view_of(problem, nest, instances={"SM": 4}).is_aligned


@pytest.mark.parametrize(
    ("sizes", "text", "capacity"),
    [
        ((4, 2, 2), "M:4@SM N:2@SM K:2", 8),
        ((4, 4, 3), "M:4@SM N:4@SM M:3 N:3 K:3", 8),
        ((5, 6, 3), "M:5@SM N:6@SM N:5 M:3 K:3", 21),
    ],
)
def test_three_instances_have_a_third_of_the_room_each(
    sizes: tuple[int, int, int], text: str, capacity: int
) -> None:
    """What one instance keeps in all of the room, three do not; waves run on across rows."""
    problem = gemm(**dict(zip("mnk", sizes, strict=True)), element_bytes=1)
    nest = parse_schedule(text, problem)
    cache = oracle.Lru(problem, capacity)
    for items in oracle.item_lists(problem, nest, "SM"):
        for wave in oracle.waves(items, 3):
            cache.run(oracle.lock_step(wave))
    cache.flush()
    view = view_of(problem, nest, instances={"SM": 3})
    promised = lru_traffic(view, Room.shared(capacity)).promised
    for name, promise in promised.items():
        assert promise.read_bytes >= cache.moved.reads[name]
        assert promise.write_bytes >= cache.moved.writes[name]


def test_a_barrier_lets_in_no_more_items_than_instances() -> None:
    """Seven instances take two rows of three tiles, not seven rows."""
    problem = gemm(m=64, n=48, k=1)
    nest = parse_schedule("M:64@SM N:48@SM M:4 N:16", problem)
    barred = with_barriers(problem, nest, "SM", 7)
    assert barred is not None
    lists = oracle.item_lists(problem, barred, "SM")
    assert {len(items) for items in lists} == {6}
    assert len(lists) == 8


def test_groups_of_items_run_on_instances_of_their_own() -> None:
    """One list written as groups of two rows is the list: each instance has its own cache."""
    rates = (("fp32", 1),)
    own = Level("L1", "cache", 32, instances=2, unit="SM", bandwidth_bytes_per_s=1e9)
    arch = Arch("two", (Level("DRAM", "memory", None), own), Compute("SM", 2, 1.0, 1.0, rates))
    problem = gemm(m=4, n=2, k=3)
    plain, grouped = (
        simulate(problem, parse_schedule(text, problem), arch=arch).level("L1")
        for text in ("M:4@SM N:2 K:3", "M:4@SM M:2@SM N:2 K:3")
    )
    assert grouped.tensors == plain.tensors
    assert plain.tensors["B"].read_bytes == 4 * 4 * 6  # each row brings all of B in


def test_a_bound_on_time_counts_no_edge_as_full() -> None:
    """Nine rows in items of four on two units: two waves, but five rows a unit would do."""
    rates = (("fp32", 1),)
    levels = (Level("DRAM", "memory", None), Level("L2", "cache", 1024, bandwidth_bytes_per_s=1e9))
    arch = Arch("two", levels, Compute("SM", 2, 1.0, 1.0, rates))
    problem = gemm(m=9, n=1, k=1)
    found = evaluate(problem, parse_schedule("M:9@SM M:4", problem), arch)
    assert found.compute_time_s == 8
    assert found.time_bound_s == 5


# --- items and halos that a search bounds -------------------------------------


@pytest.mark.parametrize("bytes_per_step", [8, 16, 32])
def test_the_best_items_of_all(bytes_per_step: int) -> None:
    """All lists of items along both dimensions: those of a rest may be worth it."""
    m, n, instances = 9, 7, 2
    problem = gemm(m=m, n=n, k=1)
    scores = []
    for (list_m, item_m), (list_n, item_n) in itertools.product(cuts_of(m), cuts_of(n)):
        text = f"M:{m} N:{n} M:{list_m}@SM N:{list_n}@SM M:{item_m} N:{item_n}"
        steps = compute_steps(problem, parse_schedule(text, problem), {"SM": instances}).promised
        rows, columns = n_segments(m, (list_m, item_m)), n_segments(n, (list_n, item_n))
        scores.append(max(steps, 4 * (m * columns + n * rows + m * n) / bytes_per_step))
    found, _ = best_items(problem, ("M", "N"), Pace(instances, 1.0, bytes_per_step))
    assert found[0].least_s == min(scores)


@pytest.mark.parametrize("seed", range(12))
def test_items_of_windows_are_bounded_whatever_their_cuts(seed: int) -> None:
    """All lists of items of a convolution; padding makes cuts differ."""
    rng = random.Random(seed)
    padding = tuple(rng.randint(0, 2) for _ in range(4)) if seed else (2, 2, 0, 1)
    problem = conv2d(
        c=rng.randint(1, 2), k=2, h=4, w=3 if seed < 6 else 5, r=3, s=2, padding=padding,
        stride=rng.choice((1, 1, 2)) if seed else 1,
    )  # fmt: skip
    size, dims = problem.size, ("K", "P", "Q")
    pace = Pace(3, 1.0, 8.0)
    scores = []
    for chosen in itertools.product(*(cuts_of(size[dim]) for dim in dims)):
        cut = dict(zip(dims, chosen, strict=True))
        nest = " ".join(
            [f"{dim}:{n}" for dim, n in problem.sizes]
            + [f"{dim}:{listed}@SM" for dim, (listed, _) in cut.items()]
            + [f"{dim}:{extent}" for dim, (_, extent) in cut.items()]
        )
        steps = compute_steps(problem, parse_schedule(nest, problem), {"SM": 3}).promised
        scores.append(max(float(steps), bytes_into_items(problem, cut) / 8.0))
    found, _ = best_items(problem, dims, pace)
    assert found[0].least_s <= min(scores)


def bytes_into_items(problem: Problem, cut: dict[str, tuple[int, int]]) -> int:
    size, total = problem.size, -tensor_bytes(problem, problem.output_tensor)
    for tensor in problem.tensors:
        moved = tensor.element_bytes * (1 + (tensor.name == problem.output))
        for axis in tensor.axes:
            chains = tuple(cut.get(dim, ()) for dim in axis.dims)
            moved *= axis_extremes(axis, tuple(size[dim] for dim in axis.dims), chains).total
        for dim in set(size) - set(tensor.dims):
            moved *= n_segments(size[dim], cut.get(dim, ()))
        total += moved
    return total


def cuts_of(size: int) -> list[tuple[int, int]]:
    return [(listed, item) for listed in range(1, size + 1) for item in range(1, listed + 1)]


def test_a_rest_smaller_than_an_item_is_one_small_item() -> None:
    """Seven rows in items of three or four: six in two items, and one alone, on two instances."""
    problem = gemm(m=7, n=8, k=1)
    fewest = min(
        compute_steps(
            problem,
            parse_schedule(f"M:7 N:8 M:{listed}@SM N:8@SM M:{item} N:{columns}", problem),
            {"SM": 2},
        ).promised
        for listed, item in cuts_of(7)
        if item in (3, 4)
        for columns in range(1, 9)
    )
    given_items = Constraints(extents=(("M", "SM", 3, 4),))
    limits = allowed(space_of(problem, load_arch("titan_v"), given_items))
    assert least_item_s(limits, 2, 1.0) == fewest == 28


@pytest.mark.parametrize("capacity", range(4, 40, 3))
def test_the_best_body_is_worth_what_the_model_says(capacity: int) -> None:
    """Where a stride leaves gaps in windows, halos do not stay."""
    sizes = {"P": 4, "R": 6}
    problem = affine(sizes, {"w": "R", "y": "P", "x": "P + 3*R"}, output="x", element_bytes=1)
    assert_best_body_is_least(problem, capacity)


def test_the_best_body_keeps_no_halo_with_gaps() -> None:
    """Windows {0, 2} and {2, 4} fit together, but nothing says that a cache keeps 2."""
    problem = affine(
        {"P": 3, "R": 2}, {"x": "2*P + 2*R", "y": "P"}, output="y", element_bytes={"x": 1, "y": 2}
    )
    assert_best_body_is_least(problem, 9)


def assert_best_body_is_least(problem: Problem, capacity: int) -> None:
    p, r = problem.size["P"], problem.size["R"]
    promised = [
        traffic(problem, nest, capacity_bytes=capacity, effort=0).promised_bytes
        for rows, columns in itertools.product(range(1, p + 1), range(1, r + 1))
        for order in (f"P:{p} R:{r}", f"R:{r} P:{p}")
        for nest in (parse_schedule(f"{order} P:{rows} R:{columns}", problem),)
    ]
    body = best_body(problem, Room.shared(capacity))
    assert body is not None
    assert body.bytes == min(promised)


# --- published models --------------------------------------------------------


def test_a_tie_is_broken_by_the_last_bit() -> None:
    """The 24 bits of 2**60 step by 2**37: half a step is even's, one more is not."""
    assert single(2**60 + 2**36) == 2**60
    assert single(2**60 + 2**36 + 1) == 2**60 + 2**37
    assert single(-(2**60) - 2**36 - 1) == -(2**60) - 2**37


# --- validation --------------------------------------------------------------


def test_errors_are_relative_to_what_was_measured() -> None:
    row = {"M": 512, "N": 512, "K": 512, "tile_m": 64, "tile_n": 64, "tile_k": 32, "group_m": 8}
    measured = 4 * 2 * 4 * 512 * 512  # four times what must be read, and is predicted
    found = validate_counters([row | {"dram_read_bytes": measured}])
    assert found.rows[0]["error_dram_read_bytes"] == -0.75
