"""Views against a literal walk: visits, footprints, waves and work items."""

from __future__ import annotations

from itertools import groupby

import oracle
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import problems, schedules

from loopsched.models.view import view_of
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import gemm
from loopsched.problems.problem import Problem


def inner_extents(problem: Problem, schedule: Schedule, position: int) -> dict[str, int]:
    """What loops from a position inward cover in the first, full iteration."""
    first = [p for trip, p in oracle.walk(problem, schedule) if not any(trip[:position])]
    return {dim: 1 + max(p[dim] for p in first) for dim in problem.dims}


@given(st.data())
def test_visits_are_those_of_the_walk(data: st.DataObject) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem))
    steps = list(oracle.walk(problem, schedule))
    view = view_of(problem, schedule)
    for upto in range(len(view.cuts) + 1):
        position = view.cuts[upto - 1].position + 1 if upto else 0
        visits = [
            oracle.touched(problem, [point for _, point in visit])
            for _, visit in groupby(steps, key=lambda step: step[0][:position])
        ]
        for tensor in problem.tensors:
            counts = [len(sets[tensor.name]) for sets in visits]
            assert view.visits_elems(tensor, upto) == sum(counts)
            assert view.footprint_bytes(tensor, upto) == max(counts) * tensor.element_bytes
        assert view.extents(upto) == inner_extents(problem, schedule, position)
        for dim in problem.dims:
            own = [i for i in range(position) if schedule.loops[i].dim == dim]
            assert view.n_pieces(dim, upto) == len({tuple(t[i] for i in own) for t, _ in steps})


def test_loops_of_one_trip_cut_nothing() -> None:
    problem = gemm(m=6, n=1, k=4)
    view = view_of(problem, parse_schedule("M:6 N:1 K:4 M:6 K:2 M:2 N:1", problem))
    assert [(cut.dim, cut.extent, cut.position) for cut in view.cuts] == [
        ("K", 2, 2),
        ("M", 2, 3),
        ("K", 1, 4),
        ("M", 1, 5),
    ]


def test_waves_fill_with_the_innermost_loop_first() -> None:
    """2 x 5 items on 3 instances: a row of 5 takes two waves, of 3 and of 2."""
    problem = gemm(m=8, n=10, k=1)
    nest = parse_schedule("M:8@SM N:10@SM M:4 N:2", problem)
    cuts = view_of(problem, nest, instances={"SM": 3}).cuts
    assert [(cut.dim, cut.extent, cut.is_parallel) for cut in cuts[:3]] == [
        ("M", 4, False),
        ("N", 6, False),
        ("N", 2, True),
    ]


def test_waves_take_whole_rows_where_several_fit() -> None:
    """4 x 2 items on 5 instances: waves of two rows; the fifth instance waits."""
    problem = gemm(m=8, n=4, k=1)
    nest = parse_schedule("M:8@SM N:4@SM M:2 N:2", problem)
    cuts = view_of(problem, nest, instances={"SM": 5}).cuts
    assert [(cut.dim, cut.extent, cut.is_parallel) for cut in cuts[:3]] == [
        ("M", 4, False),
        ("M", 2, True),
        ("N", 2, True),
    ]


@given(st.data(), st.integers(1, 7))
def test_a_wave_touches_what_its_items_touch(data: st.DataObject, n: int) -> None:
    """Waves are aligned to the loop at which the instances run out."""
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=("SM",), max_blocks=2))
    view = view_of(problem, schedule, instances={"SM": n})
    one_list = oracle.joined(schedule)
    assume(any(loop.is_spatial for loop in one_list.loops))
    waves = [
        oracle.touched(problem, [point for item in wave for point in item.points])
        for items in oracle.item_lists(problem, one_list, "SM")
        for wave in oracle.aligned_waves(one_list, items, n)
    ]
    last = max(i for i, loop in enumerate(schedule.loops) if loop.is_spatial)
    upto = sum(cut.position <= last for cut in view.cuts)
    for tensor in problem.tensors:
        counts = [len(sets[tensor.name]) for sets in waves]
        assert view.visits_elems(tensor, upto) == sum(counts)
        assert view.footprint_bytes(tensor, upto) == max(counts) * tensor.element_bytes


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 9))
def test_aligned_waves_are_the_list_in_order(rows: int, columns: int, n: int) -> None:
    """Where rows of items and instances divide, alignment changes nothing."""
    problem = gemm(m=rows, n=columns, k=1)
    nest = parse_schedule(f"M:{rows}@SM N:{columns}@SM", problem)
    (items,) = oracle.item_lists(problem, nest, "SM")
    aligned = [[item.trip for item in wave] for wave in oracle.aligned_waves(nest, items, n)]
    literal = [[item.trip for item in wave] for wave in oracle.waves(items, n)]
    assert len(aligned) >= len(literal)
    assert max(map(len, aligned)) <= n
    # One row of waves after the other, or whole rows a wave: both are the list itself.
    if columns % n == 0 or n % columns == 0 or rows == 1:
        assert aligned == literal


@given(st.data(), st.integers(1, 5))
def test_one_instance_makes_spatial_loops_sequential(data: st.DataObject, n: int) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=("SM",)))
    # Loops that cut a list into the items it has are no cuts; one after the other they are.
    assume(schedule.listed_steps == schedule.steps)
    sequential = Schedule.of(Loop(loop.dim, loop.extent) for loop in schedule.loops)
    alone = view_of(problem, schedule, instances={"SM": 1})
    assert alone == view_of(problem, schedule)
    assert alone == view_of(problem, sequential)
    # More instances never see a piece more than once.
    for tensor in problem.tensors:
        many = view_of(problem, schedule, instances={"SM": n})
        assert many.visits_elems(tensor, 0) == alone.visits_elems(tensor, 0)


def test_own_loops_set_a_boundary() -> None:
    problem = gemm(m=8, n=8, k=4)
    nest = parse_schedule("K:4 M:8@SM N:8@SM K:2 M:4 N:2@lane", problem)
    view = view_of(problem, nest, instances={"lane": 2}, own_units=frozenset({"SM"}))
    outside = [(cut.dim, cut.extent) for cut in view.cuts[: view.boundary]]
    assert outside == [("K", 2), ("M", 4), ("N", 2)]
    assert [cut.dim for cut in view.cuts if cut.is_parallel] == ["N"]
    assert view_of(problem, nest, own_units=frozenset({"other"})).boundary == 0


@given(st.data(), st.integers(2, 4))
def test_parallel_pieces_cut_further_are_all_present(data: st.DataObject, n: int) -> None:
    """The region inside a wave's step: what its instances touch, each for itself."""
    problem = gemm(m=data.draw(st.integers(2, 9)), n=3, k=data.draw(st.integers(1, 4)))
    tile = data.draw(st.integers(2, 4))
    size = problem.size["M"]
    nest = parse_schedule(f"M:{size}@SM N:3 K:{problem.size['K']} M:{min(tile, size)}", problem)
    view = view_of(problem, nest, instances={"SM": n})
    (items,) = oracle.item_lists(problem, nest, "SM")
    steps: dict[tuple[object, ...], list[oracle.Point]] = {}
    for number, wave in enumerate(oracle.waves(items, n)):
        for item in wave:
            for trip, point in item.steps:
                steps.setdefault((number, *trip), []).append(point)
    for tensor in problem.tensors:
        counts = [len(oracle.touched(problem, points)[tensor.name]) for points in steps.values()]
        largest = max(counts) * tensor.element_bytes
        assert view.footprint_bytes(tensor, len(view.cuts)) == largest
        assert view.visits_elems(tensor, len(view.cuts)) == sum(counts)


def test_an_equal_problem_is_looked_at_anew() -> None:
    one, other = (gemm(m=4, n=4, k=4) for _ in range(2))
    nest = parse_schedule("M:4 N:4 K:4 M:2", one)
    assert view_of(one, nest) is view_of(one, nest)
    assert view_of(other, nest).problem is other
    assert view_of(one, nest, own_units=frozenset({"SM"})).own_units == {"SM"}
