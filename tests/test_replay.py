"""Replays and slices: their bounds hold a literal simulation, however little is followed."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys

import oracle
import pytest
import strategies as own
from hypothesis import assume, given
from hypothesis import strategies as st

import loopsched
from loopsched.models.buffer import Traffic, lru_traffic
from loopsched.models.cells import axis_cells
from loopsched.models.replay import items_of, replay
from loopsched.models.slices import replay_slices
from loopsched.models.traffic import Room
from loopsched.models.view import View, view_of
from loopsched.nests.nest import Schedule
from loopsched.problems.footprint import segments
from loopsched.problems.problem import Problem, Tensor
from loopsched.scheduler.waves import aligned_orders, with_barriers

# From nothing over a few bodies to single points.
efforts = st.sampled_from([0, 1, 20, 60, 200, 600, 2**20])


@st.composite
def cases(draw: st.DrawFn) -> tuple[View, int, oracle.Moved]:
    """A buffer's view of a nest, its size, and what a literal cache moves."""
    problem = draw(own.problems())
    kind = draw(st.sampled_from(["sequence", "private", "waves", "nested"]))
    units = {"sequence": (), "nested": ("GPC", "SM")}.get(kind, ("SM",))
    schedule = draw(own.schedules(problem, units=units, max_blocks=3 - len(units[:1])))
    capacity = draw(own.capacities(problem))
    if kind == "sequence":
        return view_of(problem, schedule), capacity, oracle.simulate(problem, schedule, capacity)
    if kind == "private":
        view = view_of(problem, schedule, own_units=frozenset({"SM"}))
        return view, capacity, oracle.simulate_private(problem, schedule, capacity, ("SM",))
    n = draw(st.integers(1, 6))
    if kind == "nested":
        instances = {"GPC": draw(st.integers(1, 4)), "SM": n}
        cache = oracle.Lru(problem, capacity)
        cache.run(oracle.units_in_lock_step(problem, schedule, instances))
        cache.flush()
        return view_of(problem, schedule, instances=instances), capacity, cache.moved
    view = view_of(problem, schedule, instances={"SM": n})
    return view, capacity, in_waves(problem, schedule, capacity, n)


def in_waves(problem: Problem, schedule: Schedule, capacity: int, n: int) -> oracle.Moved:
    """One cache, n items side by side in lock-step, waves running on over the list."""
    cache = oracle.Lru(problem, capacity)
    for items in oracle.item_lists(problem, schedule, "SM"):
        for wave in oracle.waves(items, n):
            cache.run(oracle.lock_step(wave))
    cache.flush()
    return cache.moved


def assert_holds(found: Traffic, moved: oracle.Moved) -> None:
    for name, part in found.tensors.items():
        promise = found.promised[name]
        for bracket, most, real in (
            (part.read_bytes, promise.read_bytes, moved.reads[name]),
            (part.write_bytes, promise.write_bytes, moved.writes[name]),
        ):
            assert bracket.low <= bracket.point <= bracket.high <= most, name
            assert bracket.low <= real <= bracket.high, name


@given(cases(), efforts)
def test_any_effort_holds_the_simulation(case: tuple[View, int, oracle.Moved], effort: int) -> None:
    view, capacity, moved = case
    assert_holds(lru_traffic(view, Room.shared(capacity), effort=effort), moved)


@given(cases())
def test_single_points_are_exact(case: tuple[View, int, oracle.Moved]) -> None:
    view, capacity, moved = case
    found = lru_traffic(view, Room.shared(capacity))
    assert found.bytes.low == found.bytes.point == found.bytes.high == moved.total


@given(cases(), st.integers(1, 600))
def test_effort_is_never_wider_than_none(case: tuple[View, int, oracle.Moved], effort: int) -> None:
    view, capacity, _ = case
    few, many = (
        lru_traffic(view, Room.shared(capacity), effort=effort).bytes for effort in (0, effort)
    )
    assert few.low <= many.low <= many.high <= few.high


def assert_promise_holds(view: View, capacity: int, moved: oracle.Moved, effort: int) -> None:
    """What is replayed for a promise asks for no probable traffic, and takes a shorter way."""
    nothing = dict.fromkeys((tensor.name for tensor in view.problem.tensors), 0)
    found = replay(view, Room.shared(capacity), effort, nothing)
    for tensor in view.problem.tensors if found else ():
        size, name = tensor.element_bytes, tensor.name
        brought = moved.writes[name] if name == view.problem.output else moved.reads[name]
        assert found is not None
        assert found.low[name] * size <= brought, name
        assert found.high is None or brought <= found.high[name] * size, name


@given(cases(), efforts)
def test_a_promise_holds_the_simulation(case: tuple[View, int, oracle.Moved], effort: int) -> None:
    view, capacity, moved = case
    assert_promise_holds(view, capacity, moved, effort)


@given(cases(), efforts)
def test_a_promise_stops_without_a_looser_bound(
    case: tuple[View, int, oracle.Moved], effort: int
) -> None:
    view, capacity, _ = case
    nothing = dict.fromkeys((tensor.name for tensor in view.problem.tensors), 0)
    whole = replay(view, Room.shared(capacity), effort)
    stopped = replay(view, Room.shared(capacity), effort, nothing)
    assert (whole and whole.high) == (stopped and stopped.high)


@pytest.mark.parametrize("capacity", [34, 37])
def test_a_longer_item_asks_where_a_shorter_one_with_the_same_data_ends(capacity: int) -> None:
    """An item of one channel adds to the same outputs as one of two, which asks for them twice."""
    problem = loopsched.conv2d(n=2, c=3, k=3, h=5, w=1, r=2, s=1, element_bytes=1)
    nest = loopsched.parse_schedule("R:2@SM C:3@SM P:4@SM C:2 P:3 N:2 K:3", problem)
    view = view_of(problem, nest, instances={"SM": 3})
    assert_promise_holds(view, capacity, in_waves(problem, nest, capacity, 3), 1000)


@given(cases(), st.integers(1, 3000))
def test_slices_alone_hold_the_simulation(
    case: tuple[View, int, oracle.Moved], effort: int
) -> None:
    view, capacity, moved = case
    found = replay_slices(view, Room.shared(capacity), effort)
    assume(found is not None)
    assert found is not None
    assert found.high is not None
    for tensor in view.problem.tensors:
        size, name = tensor.element_bytes, tensor.name
        brought = moved.writes[name] if name == view.problem.output else moved.reads[name]
        assert found.low[name] * size <= brought <= found.high[name] * size


@given(st.data())
def test_tensors_of_their_own_room_do_not_meet(data: st.DataObject) -> None:
    problem = data.draw(own.problems())
    schedule = data.draw(own.schedules(problem))
    rooms = {tensor.name: data.draw(st.integers(0, 200)) for tensor in problem.tensors}
    found = lru_traffic(view_of(problem, schedule), Room(0, tuple(rooms.items())))
    for tensor in problem.tensors:
        alone = Problem("alone", problem.sizes, (tensor,), tensor.name)
        moved = oracle.simulate(alone, schedule, rooms[tensor.name])
        part = found.tensors[tensor.name]
        if tensor.name == problem.output:
            assert part.read_bytes.point == moved.reads[tensor.name]
            assert part.write_bytes.point == moved.writes[tensor.name]
        else:  # what an output writes, an input reads: each time it is brought in
            assert part.read_bytes.point == moved.writes[tensor.name]


# --- the parts ---------------------------------------------------------------


@given(st.data())
def test_cells_are_touched_whole_or_not_at_all(data: st.DataObject) -> None:
    problem = data.draw(own.problems())
    axes = [axis for tensor in problem.tensors for axis in tensor.axes]
    assume(axes)
    axis = data.draw(st.sampled_from(axes))
    region, chains = [], []
    for dim in axis.dims:
        start = data.draw(st.integers(0, problem.size[dim] - 1))
        length = data.draw(st.integers(1, problem.size[dim] - start))
        first = data.draw(st.integers(1, length))
        region.append((start, length))
        chains.append((first, data.draw(st.integers(1, first))))
    cells = axis_cells(axis, tuple(region), tuple(chains))
    assert cells is not None
    pieces = [segments(size, chain) for (_, size), chain in zip(region, chains, strict=True)]
    seen: dict[int, set[int]] = {}
    for numbers in itertools.product(*(range(len(part)) for part in pieces)):
        row = sum(n * stride for n, stride in zip(numbers, cells.strides, strict=True))
        spans = []
        for (start, _), part, n in zip(region, pieces, numbers, strict=True):
            spans.append(range(start + part[n][0], start + sum(part[n])))
        touched = set()
        for places in itertools.product(*spans):
            point = dict(zip(axis.dims, places, strict=True))
            one = oracle.element(Tensor("X", (axis,)), point)
            touched |= {one[1][0]} if one is not None else set()
        mine = cells.columns[cells.rows[row] : cells.rows[row + 1]].tolist()
        assert len(set(mine)) == len(mine)
        assert sum(cells.weights[mine]) == len(touched)
        for place in touched:
            seen.setdefault(place, set()).add(row)
    kinds = {frozenset(rows) for rows in seen.values()}
    assert len(cells.weights) >= len(kinds)
    assert cells.weights.sum() == len(seen)


@given(st.data())
def test_items_of_a_kind_touch_as_much(data: st.DataObject) -> None:
    problem = data.draw(own.problems())
    schedule = data.draw(own.schedules(problem, units=("SM",)))
    kinds = items_of(view_of(problem, schedule, own_units=frozenset({"SM"})))
    assert kinds is not None
    real: dict[tuple[int, ...], int] = {}
    for items in oracle.item_lists(problem, schedule, "SM"):
        for item in items:
            touched = oracle.touched(problem, item.points)
            key = (len(item.points), *(len(touched[t.name]) for t in problem.tensors))
            real[key] = real.get(key, 0) + 1
    mine: dict[tuple[int, ...], int] = {}
    for kind in kinds:
        spans = [range(kind.start[d], kind.start[d] + kind.length[d]) for d in problem.dims]
        points = [dict(zip(problem.dims, at, strict=True)) for at in itertools.product(*spans)]
        touched = oracle.touched(problem, points)
        key = (len(points), *(len(touched[t.name]) for t in problem.tensors))
        mine[key] = mine.get(key, 0) + kind.count
    assert mine == real


@given(st.data(), st.integers(1, 6))
def test_aligned_waves_are_waves(data: st.DataObject, n: int) -> None:
    problem = data.draw(own.problems())
    schedule = data.draw(own.schedules(problem, units=("SM",)))
    if not view_of(problem, schedule, instances={"SM": n}).is_aligned:
        return
    one_list = oracle.joined(schedule)
    assume(any(loop.is_spatial for loop in one_list.loops))
    for items in oracle.item_lists(problem, one_list, "SM"):
        if len(items) > n:
            assert oracle.aligned_waves(one_list, items, n) == oracle.waves(items, n)


@given(st.data(), st.integers(2, 6))
def test_barriers_and_orders_run_the_same_items(data: st.DataObject, n: int) -> None:
    problem = data.draw(own.problems())
    schedule = data.draw(own.schedules(problem, units=("SM",)))
    found = [*aligned_orders(schedule, "SM", n)]
    barred = with_barriers(problem, schedule, "SM", n)

    def items(nest: Schedule) -> set[frozenset[tuple[int, ...]]]:
        return {
            frozenset(tuple(point.values()) for point in item.points)
            for items in oracle.item_lists(problem, nest, "SM")
            for item in items
        }

    for other in (*found, *([barred] if barred else [])):
        assert items(other) == items(schedule)
    if barred:
        lists = oracle.item_lists(problem, barred, "SM")
        assert all(len(items) <= n for items in lists)


def test_lists_side_by_side_fall_out_of_step() -> None:
    """Inner lists of 2 and of 1 items on one instance each: no step is common to all."""
    problem = loopsched.conv2d(c=1, k=5, p=7, q=1, r=3, s=1, element_bytes=1)
    nest = loopsched.parse_schedule("R:3@GPC R:2@GPC K:5@SM R:2@SM R:1 P:7", problem)
    instances = {"GPC": 3, "SM": 1}
    view = view_of(problem, nest, instances=instances)
    cache = oracle.Lru(problem, 26)
    cache.run(oracle.units_in_lock_step(problem, nest, instances))
    cache.flush()
    for effort in (0, 2**20):
        assert_holds(lru_traffic(view, Room.shared(26), effort=effort), cache.moved)


def test_a_list_that_ends_early_ends_no_other() -> None:
    problem = loopsched.gemm(m=4, n=5, k=1, element_bytes=1)
    nest = loopsched.parse_schedule("M:4@SM M:2 N:5@lane", problem)
    view = view_of(problem, nest, instances={"SM": 2, "lane": 3})
    found = replay(view, Room.shared(4), 10**4)
    assert found is not None
    assert found.low == found.high == {"A": 8, "B": 20, "C": 20}


def test_less_room_than_an_element() -> None:
    """Plain Python would notice an index outside of its array."""
    code = (
        "from loopsched import gemm, parse_schedule, traffic\n"
        "problem = gemm(m=9, n=9, k=9)\n"
        "nest = parse_schedule('M:9 N:9 K:9 M:3 N:3 K:3', problem)\n"
        "for capacity in (0, 1, 5, 13):\n"
        "    for effort in (100, 500, 3000):\n"
        "        found = traffic(problem, nest, capacity_bytes=capacity, effort=effort)\n"
        "        print(capacity, effort, found.bytes)\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"LOOPSCHED_JIT": is_compiled},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for is_compiled in "01"
    ]
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == 12


def test_what_was_replayed_is_known_by_all_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [loopsched.gemm(m=6, n=5, k=4, element_bytes=n) for n in (1, 2)]
    texts = ("M:6 N:5 K:4 M:2 N:3", "M:6 N:5 K:4 M:3 N:3", "N:5 M:6 K:4 M:2 N:3")
    cases = [
        (view_of(problem, loopsched.parse_schedule(text, problem)), Room.shared(capacity), effort)
        for problem, text in itertools.product(problems, texts)
        for capacity, effort in itertools.product((9, 20, 30, 60), (50, 10_000))
    ]
    monkeypatch.setattr("loopsched.models.replay._known", {})
    remembered = [replay(*case) for case in (*cases, *cases)]
    for at, case in enumerate((*cases, *cases)):
        monkeypatch.setattr("loopsched.models.replay._known", {})
        assert remembered[at] == replay(*case)
    assert len({repr(found) for found in remembered}) > 20


def test_waves_run_on_into_the_next_row() -> None:
    """Three columns on four instances: the second wave begins in row 1 and ends in row 2."""
    problem = loopsched.gemm(m=3, n=3, k=4, element_bytes=1)
    nest = loopsched.parse_schedule("M:3@SM N:3@SM K:4", problem)
    view = view_of(problem, nest, instances={"SM": 4})
    assert not view.is_aligned
    found = lru_traffic(view, Room.shared(9))
    # Waves touch rows {0, 1}, {1, 2}, {2} of A and columns all, all, {2} of B.
    assert found.tensors["A"].read_bytes.point == 4 * (2 + 2 + 1)
    assert found.tensors["B"].read_bytes.point == 4 * (3 + 3 + 1)
    assert found.promised_bytes >= in_waves(problem, nest, 9, 4).total


@pytest.mark.parametrize("order", ["MNK", "MKN", "NMK", "NKM", "KMN", "KNM"])
def test_a_nest_far_too_long_is_bracketed_by_slices(order: str) -> None:
    """2^30 points: panels of 4,096 words do not stay in a cache of 1,000."""
    size = 1024
    problem = loopsched.gemm(m=size, n=size, k=size)
    nest = loopsched.parse_schedule(" ".join(f"{dim}:{size}" for dim in order), problem)
    view, room = view_of(problem, nest), Room.shared(4000)
    assert replay(view, room, 2**20) is None or not replay(view, room, 2**20).is_closed()  # type: ignore[union-attr]
    found = lru_traffic(view, room)
    assert found.bytes.high <= 1.001 * found.bytes.low
    # The innermost loop's dimension streams one word of two tensors at every point.
    streamed = 2 * 4 * math.prod(problem.size.values())
    is_output = order[2] in "MN"
    assert found.bytes.point >= streamed + (streamed // 2 if is_output else 0) - 2**24
