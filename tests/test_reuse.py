"""The reuse model against element-level simulations and literal placement."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator

import oracle
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from model_cases import random_problem, random_schedule
from strategies import capacities, gemms, problems, schedules

from loopsched.base.errors import ScheduleError
from loopsched.models.buffer import Traffic, explicit_traffic, lru_traffic, traffic
from loopsched.models.traffic import Bracket, Room
from loopsched.models.view import view_of
from loopsched.nests.nest import Loop, Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import PASSES, batched_gemm, conv2d, gemm
from loopsched.problems.footprint import tensor_bytes
from loopsched.problems.problem import Axis, Problem, Tensor


def brackets(found: Traffic) -> Iterator[tuple[str, str, Bracket]]:
    for name, part in found.tensors.items():
        yield name, "reads", part.read_bytes
        yield name, "writes", part.write_bytes


def assert_holds(found: Traffic, moved: oracle.Moved) -> None:
    """Each tensor's reads and writes, and with them all sums."""
    for name, way, bracket in brackets(found):
        simulated = getattr(moved, way)[name]
        assert bracket.low <= simulated <= bracket.high, (name, way)
    assert found.bytes.low <= moved.total <= found.bytes.high


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, Schedule, int]:
    problem = draw(problems())
    return problem, draw(schedules(problem)), draw(capacities(problem))


# --- the cache ---------------------------------------------------------------


@given(cases())
def test_the_bracket_holds_the_simulation(case: tuple[Problem, Schedule, int]) -> None:
    problem, schedule, capacity = case
    found = traffic(problem, schedule, capacity_bytes=capacity)
    assert_holds(found, oracle.simulate(problem, schedule, capacity))
    for _, _, bracket in brackets(found):
        assert 0 <= bracket.low <= bracket.point <= bracket.high


def test_the_point_is_near_the_simulation() -> None:
    """Two blocks of loops whose tiles divide: half of all closed forms are exact, all replays."""
    rng = random.Random(5)
    errors = []
    for _ in range(200):
        problem = gemm(m=rng.choice([4, 6, 8]), n=rng.choice([4, 6, 8]), k=rng.choice([4, 6, 8]))
        blocks = [list(problem.sizes), list(problem.sizes)]
        blocks[1] = [(d, rng.choice(divisors(size))) for d, size in blocks[1]]
        nest = Schedule.of(Loop(*loop) for block in blocks for loop in rng.sample(block, 3))
        whole = sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
        capacity = rng.randint(24, whole)
        simulated = oracle.simulate(problem, nest, capacity).total
        assert traffic(problem, nest, capacity_bytes=capacity).bytes == Bracket.exact(simulated)
        point = traffic(problem, nest, capacity_bytes=capacity, effort=0).bytes.point
        errors.append(abs(point - simulated) / simulated)
    assert statistics.median(errors) == 0
    assert statistics.mean(errors) < 0.06


def divisors(size: int) -> list[int]:
    return [tile for tile in range(1, size + 1) if size % tile == 0]


def test_hand_case() -> None:
    problem = gemm(m=8, n=8, k=8, element_bytes=1)
    nest = parse_schedule("M:8 N:8 K:8 M:3 N:3 K:8", problem)
    assert oracle.simulate(problem, nest, 90).total == 320
    found = traffic(problem, nest, capacity_bytes=90)
    # A once, B for each of three rows of tiles, C once: 64 + 192 + 64.
    assert found.bytes.point == 320
    assert found.tensors["B"].bytes.point == 192
    assert found.fit_position == 2
    assert found.working_set_bytes == 3 * 8 + 8 * 3 + 3 * 3


@given(cases(), st.data())
def test_more_room_never_means_more_traffic(
    case: tuple[Problem, Schedule, int], data: st.DataObject
) -> None:
    problem, schedule, capacity = case
    more = capacity + data.draw(st.integers(0, 200))
    tight = traffic(problem, schedule, capacity_bytes=capacity).bytes
    roomy = traffic(problem, schedule, capacity_bytes=more).bytes
    assert roomy.low <= tight.low
    assert roomy.point <= tight.point
    assert roomy.high <= tight.high


@given(cases())
def test_traffic_is_compulsory_at_least(case: tuple[Problem, Schedule, int]) -> None:
    problem, schedule, capacity = case
    found = traffic(problem, schedule, capacity_bytes=capacity)
    once = oracle.compulsory(problem)
    for name, part in found.tensors.items():
        assert part.bytes.low >= once[name]
        assert (part.write_bytes == Bracket.exact(0)) == (name != problem.output)
    roomy = traffic(problem, schedule, capacity_bytes=sum(once.values()))
    for name, part in roomy.tensors.items():
        assert part.bytes == Bracket.exact(once[name])
    assert roomy.fit_position == 0


@pytest.mark.parametrize("capacity", [0, 1, 11])
def test_below_one_point_nothing_is_promised(capacity: int) -> None:
    """Three operands of 4 bytes do not fit; the nest's last loop indexes A and B."""
    problem = gemm(m=3, n=4, k=5)
    nest = parse_schedule("M:3 N:4 K:5", problem)
    found = traffic(problem, nest, capacity_bytes=capacity)
    assert found.bytes.high == 4 * 60 * 4 - 4 * 12  # each touch, less the first reads of C
    assert found.fit_position == 3
    simulated = oracle.simulate(problem, nest, capacity)
    assert_holds(found, simulated)
    if capacity == 0:
        assert simulated.total == found.bytes.high


# --- what changes nothing ----------------------------------------------------


@given(cases(), st.data(), st.sampled_from(["lru", "explicit"]))
def test_loops_of_one_trip_change_nothing(
    case: tuple[Problem, Schedule, int], data: st.DataObject, policy: str
) -> None:
    problem, schedule, capacity = case
    at = data.draw(st.integers(0, len(schedule.loops)))
    dim = data.draw(st.sampled_from(problem.dims))
    inside = [loop.extent for loop in schedule.loops[at:] if loop.dim == dim]
    idle = Loop(dim, max(inside, default=1))
    if not any(loop.dim == dim for loop in schedule.loops[:at]):
        assume(idle.extent == problem.size[dim])
    longer = Schedule.of([*schedule.loops[:at], idle, *schedule.loops[at:]])
    assert moved(problem, longer, capacity, policy) == moved(problem, schedule, capacity, policy)


@given(cases(), st.data(), st.sampled_from(["lru", "explicit"]))
def test_names_change_nothing(
    case: tuple[Problem, Schedule, int], data: st.DataObject, policy: str
) -> None:
    problem, schedule, capacity = case
    names = data.draw(st.permutations([f"x{i}" for i in range(len(problem.dims))]))
    name = dict(zip(problem.dims, names, strict=True))
    tensors = tuple(
        Tensor(
            tensor.name,
            tuple(
                Axis(tuple((name[dim], c) for dim, c in axis.terms), axis.offset, axis.size)
                for axis in tensor.axes
            ),
            tensor.element_bytes,
        )
        for tensor in problem.tensors
    )
    sizes = data.draw(st.permutations([(name[dim], size) for dim, size in problem.sizes]))
    other = Problem("renamed", tuple(sizes), tensors, problem.output)
    nest = Schedule.of(Loop(name[loop.dim], loop.extent) for loop in schedule.loops)
    assert moved(other, nest, capacity, policy) == moved(problem, schedule, capacity, policy)


def moved(
    problem: Problem, schedule: Schedule, capacity: int, policy: str
) -> list[tuple[str, str, Bracket]] | None:
    try:
        found = traffic(problem, schedule, capacity_bytes=capacity, policy=policy)  # type: ignore[arg-type]
    except ScheduleError:
        return None
    return list(brackets(found))


@given(gemms(), st.data())
def test_a_1x1_convolution_is_a_matrix_product(product: Problem, data: st.DataObject) -> None:
    """Pixels are rows of A, filters columns of B."""
    size, widths = product.size, [t.element_bytes for t in product.tensors]
    conv = conv2d(n=1, c=size["K"], k=size["N"], h=size["M"], w=1, r=1, s=1)
    names = {"input": widths[0], "weight": widths[1], "output": widths[2]}
    conv = conv.with_element_bytes(names)
    nest = data.draw(schedules(product))
    capacity = data.draw(capacities(product))
    to = {"M": "P", "N": "K", "K": "C"}
    twin = Schedule.of(Loop(to[loop.dim], loop.extent) for loop in nest.loops)
    left = traffic(product, nest, capacity_bytes=capacity)
    right = traffic(conv, twin, capacity_bytes=capacity)
    assert list(left.tensors.values()) == [
        type(part)(name, part.read_bytes, part.write_bytes)
        for name, part in zip("ABC", right.tensors.values(), strict=True)
    ]


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_inside_the_body_changes_nothing(
    case: tuple[Problem, Schedule, int], rng: random.Random
) -> None:
    problem, schedule, capacity = case
    placed = moved(problem, schedule, capacity, "explicit")
    found = traffic(problem, schedule, capacity_bytes=capacity)
    at = found.fit_position
    inside = list(schedule.loops[at:])
    extents = {dim: [lp.extent for lp in inside if lp.dim == dim] for dim in problem.dims}
    rng.shuffle(inside)  # each dimension keeps its extents, outermost first
    mixed = [Loop(loop.dim, extents[loop.dim].pop(0)) for loop in inside]
    other = Schedule.of([*schedule.loops[:at], *mixed])
    assert moved(problem, other, capacity, "explicit") == placed
    again = traffic(problem, other, capacity_bytes=capacity)
    assert again.working_set_bytes == found.working_set_bytes


@given(cases(), st.randoms(use_true_random=False))
def test_loops_of_a_run_may_change_places(
    case: tuple[Problem, Schedule, int], rng: random.Random
) -> None:
    """Loops just outside the body that do not index a tensor leave it where it is."""
    problem, schedule, capacity = case
    at = traffic(problem, schedule, capacity_bytes=capacity).fit_position
    for tensor in problem.tensors:
        begin = at
        while begin and not tensor.is_indexed_by(schedule.loops[begin - 1].dim):
            begin -= 1
        run = list(schedule.loops[begin:at])
        if len({loop.dim for loop in run}) < len(run):
            continue
        rng.shuffle(run)
        other = Schedule.of([*schedule.loops[:begin], *run, *schedule.loops[at:]])
        left = moved(problem, schedule, capacity, "explicit")
        right = moved(problem, other, capacity, "explicit")
        assert (left is None) == (right is None)
        for one, another in zip(left or (), right or (), strict=True):
            if one[0] == tensor.name:
                assert one == another


@given(cases())
def test_totals_are_sums_over_tensors(case: tuple[Problem, Schedule, int]) -> None:
    problem, schedule, capacity = case
    found = traffic(problem, schedule, capacity_bytes=capacity)
    for value in ("low", "point", "high"):
        reads = sum(getattr(part.read_bytes, value) for part in found.tensors.values())
        writes = sum(getattr(part.write_bytes, value) for part in found.tensors.values())
        assert getattr(found.read_bytes, value) == reads
        assert getattr(found.write_bytes, value) == writes
        assert getattr(found.bytes, value) == reads + writes
    assert found.promised_bytes == found.promised_read_bytes + found.promised_write_bytes


# --- the scratchpad ----------------------------------------------------------


@given(cases(), st.booleans())
def test_explicit_is_literal_placement(
    case: tuple[Problem, Schedule, int], halo_reuse: bool
) -> None:
    problem, schedule, capacity = case
    literal = oracle.explicit(problem, schedule, capacity, halo_reuse=halo_reuse)
    if literal is None:
        with pytest.raises(ScheduleError, match="operands of one point"):
            traffic(problem, schedule, capacity_bytes=capacity, policy="explicit")
        return
    found = traffic(
        problem, schedule, capacity_bytes=capacity, policy="explicit", halo_reuse=halo_reuse
    )
    for name, way, bracket in brackets(found):
        assert bracket == Bracket.exact(getattr(literal, way)[name])


@given(st.data())
def test_the_halo_that_stays_is_what_two_tiles_share(data: st.DataObject) -> None:
    """With unit steps along every dimension no tile has gaps."""
    problem = data.draw(st.one_of(gemms(), unit_convs()))
    schedule = data.draw(schedules(problem))
    capacity = data.draw(capacities(problem))
    one_tile = oracle.explicit(problem, schedule, capacity, keeps="tile")
    assert one_tile == oracle.explicit(problem, schedule, capacity)


def unit_convs() -> st.SearchStrategy[Problem]:
    return st.builds(
        conv2d,
        c=st.integers(1, 2),
        k=st.integers(1, 2),
        p=st.integers(1, 6),
        q=st.integers(1, 2),
        r=st.integers(1, 3),
        s=st.integers(1, 2),
        pass_=st.sampled_from(PASSES),
        element_bytes=st.sampled_from([1, 4]),
    )


@given(cases())
def test_double_buffers_need_each_tile_twice(case: tuple[Problem, Schedule, int]) -> None:
    problem, schedule, capacity = case
    assert moved_twice(problem, schedule, capacity) == moved(
        problem, schedule, capacity // 2, "explicit"
    )


def moved_twice(
    problem: Problem, schedule: Schedule, capacity: int
) -> list[tuple[str, str, Bracket]] | None:
    try:
        return list(
            brackets(
                traffic(
                    problem,
                    schedule,
                    capacity_bytes=capacity,
                    policy="explicit",
                    double_buffered=True,
                )
            )
        )
    except ScheduleError:
        return None


@given(st.data())
def test_buffers_of_their_own(data: st.DataObject) -> None:
    """One room a tensor, as in DianNao: the outermost body of which all tiles fit."""
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem))
    whole = oracle.compulsory(problem)
    rooms = {name: data.draw(st.integers(8, max(9, size))) for name, size in whole.items()}
    literal = oracle.explicit(problem, schedule, rooms)
    assert literal is not None
    found = explicit_traffic(view_of(problem, schedule), Room(0, tuple(rooms.items())))
    for name, way, bracket in brackets(found):
        assert bracket == Bracket.exact(getattr(literal, way)[name])


def test_halo_by_hand() -> None:
    """8 outputs of a 3 wide filter in tiles of 2: 4 inputs each, 2 of them new."""
    problem = conv2d(c=1, k=1, p=8, q=1, r=3, s=1, element_bytes=1)
    nest = parse_schedule("P:8 R:3 P:2", problem)
    for halo_reuse, loaded in ((True, 10), (False, 16)):
        found = traffic(problem, nest, capacity_bytes=9, policy="explicit", halo_reuse=halo_reuse)
        assert found.tensors["input"].read_bytes == Bracket.exact(loaded)
        assert found.fit_position == 1


def test_gaps_that_a_later_tile_fills_by_hand() -> None:
    """Taps at distance 3: tiles of 2 touch 0 1 3 4, 2 3 5 6 and 4 5 7 8; only 3 and 5 stay."""
    problem = conv2d(c=1, k=1, p=6, q=1, r=2, s=1, dilation=(3, 1), element_bytes=1)
    nest = parse_schedule("P:6 R:2 P:2", problem)
    found = traffic(problem, nest, capacity_bytes=8, policy="explicit")
    assert found.tensors["input"].read_bytes == Bracket.exact(10)
    literal = oracle.explicit(problem, nest, 8)
    assert literal is not None
    assert literal.reads["input"] == 10


def test_gaps_are_loaded_as_the_tiles_come() -> None:
    """Strides, dilation, padding on any side, groups and gradients, against a literal walk."""
    rng = random.Random(5)
    n_gaps = 0
    for turn in range(400):
        problem = random_problem(rng, 100)
        if turn % 2:  # taps far apart, few pieces: gaps that later tiles fill
            far = rng.randint(3, 4)
            problem = conv2d(c=1, k=1, p=9, q=1, r=2, s=1, dilation=(far, 1), element_bytes=1)
        nest = random_schedule(rng, problem)
        least = sum(tensor.element_bytes for tensor in problem.tensors)
        capacity = int(least * 1.4 ** rng.uniform(0, 9))
        literal = oracle.explicit(problem, nest, capacity)
        assert literal is not None
        found = traffic(problem, nest, capacity_bytes=capacity, policy="explicit")
        for name, way, bracket in brackets(found):
            assert bracket == Bracket.exact(getattr(literal, way)[name]), f"{problem} {nest}"
        whole = oracle.explicit(problem, nest, capacity, keeps="sweep")
        n_gaps += whole is not None and whole.total < literal.total
    assert n_gaps > 0


# --- spatial loops -----------------------------------------------------------


@given(st.data())
def test_items_start_cold_in_a_private_cache(data: st.DataObject) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=("SM",)))
    capacity = data.draw(capacities(problem))
    view = view_of(problem, schedule, own_units=frozenset({"SM"}))
    found = lru_traffic(view, Room.shared(capacity))
    assert_holds(found, oracle.simulate_private(problem, schedule, capacity, ("SM",)))
    everything = Room.shared(sum(oracle.compulsory(problem).values()))
    roomy = lru_traffic(view, everything)
    cold = oracle.simulate_private(problem, schedule, everything.shared_bytes, ("SM",))
    for name, way, bracket in brackets(roomy):
        assert bracket.high == getattr(cold, way)[name]


@given(st.data(), st.integers(1, 6))
def test_waves_share_a_cache_in_lock_step(data: st.DataObject, n: int) -> None:
    problem = data.draw(problems())
    schedule = data.draw(schedules(problem, units=("SM",), max_blocks=2))
    capacity = data.draw(capacities(problem))
    view = view_of(problem, schedule, instances={"SM": n})
    room = Room.shared(capacity)
    cache = oracle.Lru(problem, capacity)
    for items in oracle.item_lists(problem, schedule, "SM"):
        for wave in oracle.waves(items, n):
            cache.run(oracle.lock_step(wave))
    cache.flush()
    assert_holds(lru_traffic(view, room), cache.moved)


def test_instances_side_by_side_need_room_for_each_next_tile() -> None:
    """Two items of two columns: A stays from column to column only beside four of B."""
    problem = gemm(m=2, n=4, k=4, element_bytes=8)
    nest = parse_schedule("N:4@SM N:2 M:2 K:4", problem)
    view = view_of(problem, nest, instances={"SM": 2})
    a, b, c = 8 * 8, 16 * 8, 8 * 8  # A, two columns of B twice, of C twice
    tight = lru_traffic(view, Room.shared(a + b + c - 8))
    roomy = lru_traffic(view, Room.shared(a + b + c))
    assert tight.promised["A"].read_bytes == 2 * a
    assert roomy.promised["A"].read_bytes == a


def test_windows_side_by_side_meet_at_another_time() -> None:
    """The first two rows of the second item are the last two of the first, 6 steps later."""
    problem = conv2d(c=4, k=1, p=16, q=1, r=3, s=1, element_bytes=1)
    nest = parse_schedule("P:16@SM P:8 C:4 R:3", problem)
    view = view_of(problem, nest, instances={"SM": 2})
    room = Room.shared(4 * (2 * 4 + 3) + 4)  # steps of two windows, the filter, sums
    cache = oracle.Lru(problem, room.shared_bytes)
    (items,) = oracle.item_lists(problem, nest, "SM")
    cache.run(oracle.lock_step(items))
    cache.flush()
    assert cache.moved.reads["input"] == 4 * 2 * 10
    assert lru_traffic(view, room).tensors["input"].read_bytes == Bracket.exact(4 * 2 * 10)
    closed = lru_traffic(view, room, effort=0).tensors["input"].read_bytes
    assert closed == Bracket(4 * 18, 72, 4 * 2 * 10)


def test_a_window_with_gaps_is_fetched_again() -> None:
    """4*D+E+F, D in between: element 1 is touched in sweeps 0 and 1, and sums return."""
    axes = (Axis((("D", 4), ("E", 1), ("F", 1))),)
    problem = Problem(
        "gaps",
        (("D", 6), ("E", 4), ("F", 2)),
        (Tensor("X", (Axis((("D", 1),)),), 8), Tensor("W", axes, 4)),
        "W",
    )
    nest = parse_schedule("E:4 D:6 F:2", problem)
    for capacity in range(40, 160, 4):
        found = traffic(problem, nest, capacity_bytes=capacity)
        assert_holds(found, oracle.simulate(problem, nest, capacity))


@pytest.mark.parametrize("capacity", [20, 22, 26, 30, 34, 40])
def test_a_halo_needs_room_for_the_next_window(capacity: int) -> None:
    """Only positions 0 and 1 are stored: sweep R=0 leaves what sweep R=1 touches again."""
    image = Axis((("P", 1), ("R", 2)), -2, 2)
    problem = Problem(
        "halo",
        (("C", 2), ("P", 4), ("R", 2)),
        (
            Tensor("weight", (Axis((("C", 1),)), Axis((("R", 1),))), 1),
            Tensor("output", (Axis((("P", 1),)),), 1),
            Tensor("input", (Axis((("C", 1),)), image), 4),
        ),
        "input",
    )
    nest = parse_schedule("R:2 C:2 P:4", problem)
    assert_holds(
        traffic(problem, nest, capacity_bytes=capacity), oracle.simulate(problem, nest, capacity)
    )


# --- sizes and refusals ------------------------------------------------------


def test_huge_problems_stay_exact() -> None:
    size = 2**20
    problem = gemm(m=size, n=size, k=size)
    nest = parse_schedule(f"M:{size} N:{size} K:{size} M:1024 N:1024", problem)
    found = traffic(problem, nest, capacity_bytes=2**23)
    panels = size**3 // 1024 * 4  # A for each column of tiles, and B for each row
    assert found.tensors["A"].bytes == Bracket.exact(panels)
    assert found.tensors["B"].bytes == Bracket.exact(panels)
    assert found.tensors["C"].bytes == Bracket.exact(4 * size * size)


@pytest.mark.parametrize("capacity", [0, 64, 2**20, 2**62])
def test_a_dimension_of_2_to_the_35(capacity: int) -> None:
    """No work grows with the length of an axis that one dimension moves along."""
    long = 2**35
    problem = batched_gemm(batch=2, m=long, n=3, k=2, element_bytes=1)
    nest = parse_schedule(f"B:2 M:{long} N:3 K:2 M:{2**30 + 1} N:2 M:17", problem)
    found = traffic(problem, nest, capacity_bytes=capacity)
    whole = sum(tensor_bytes(problem, tensor) for tensor in problem.tensors)
    assert whole == 2 * (2 * long + 6 + 3 * long)
    assert found.bytes.low >= whole
    assert found.bytes.high <= 4 * problem.macs
    strided = Problem(
        "strided",
        (("P", long), ("R", 2)),
        (Tensor("X", (Axis((("P", 3),)),)), Tensor("Y", (Axis((("P", 1),)), Axis((("R", 1),))))),
        "Y",
    )
    streamed = traffic(strided, parse_schedule(f"R:2 P:{long}", strided), capacity_bytes=capacity)
    assert streamed.tensors["Y"].bytes.high >= 8 * long
    sweeps = 1 if capacity > 12 * long else 2
    assert streamed.tensors["X"].bytes == Bracket.exact(4 * long * sweeps)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"capacity_bytes": -1}, "capacity_bytes is -1; a whole number >= 0"),
        ({"capacity_bytes": 1.5}, "capacity_bytes is 1.5"),
        ({"capacity_bytes": "96K"}, "capacity_bytes is '96K'"),
        ({"capacity_bytes": 8, "policy": "explict"}, "did you mean 'explicit'"),
        ({"capacity_bytes": 11, "policy": "explicit"}, "operands of one point do not|of one point"),
    ],
)
def test_refusals(keywords: dict[str, object], message: str) -> None:
    problem = gemm(m=2, n=2, k=2)
    nest = parse_schedule("M:2 N:2 K:2", problem)
    with pytest.raises(ScheduleError, match=message):
        traffic(problem, nest, **keywords)  # type: ignore[arg-type]


def test_a_schedule_of_another_problem_is_refused() -> None:
    nest = parse_schedule("M:2 N:2 K:2", gemm(m=2, n=2, k=2))
    with pytest.raises(ScheduleError, match="must cover the size, 4"):
        traffic(gemm(m=4, n=2, k=2), nest, capacity_bytes=100)
