"""Communication lower bounds: never above any execution, and close where theory is tight.

The theory is held against the pebble game itself (every order, every choice of
what to keep, found by exhaustive search), the inequalities against literal
sets of points, and the result against proven optima, simulated caches and
Belady's choice of what to evict.
"""

from __future__ import annotations

import csv
import heapq
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from random import Random

import oracle
import oracle_search
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from test_known_optima import CASES

import loopsched
from loopsched.base.errors import EmptySpaceError, ProblemError
from loopsched.base.resources import resource_dir
from loopsched.bounds import communication, inequalities, windows
from loopsched.bounds.communication import communication_bound
from loopsched.bounds.inequalities import Inequality
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.builders import affine, batched_gemm, conv2d, einsum, gemm
from loopsched.problems.footprint import is_clipped
from loopsched.problems.problem import Axis, Problem

Access = tuple[int, ...]


class Accesses:
    """Points of a problem as the numbers of the elements that each touches."""

    def __init__(self, problem: Problem, points: Iterable[oracle.Point] | None = None) -> None:
        if points is None:
            nest = Schedule.of(Loop(dim, size) for dim, size in problem.sizes)
            points = (point for _, point in oracle.walk(problem, nest))
        numbers: dict[oracle.Element, int] = {}
        self.points: list[Access] = []
        for point in points:
            found = (oracle.element(tensor, point) for tensor in problem.tensors)
            elements = [one for one in found if one is not None]
            self.points.append(tuple(numbers.setdefault(e, len(numbers)) for e in elements))
        self.bytes = [problem.tensor(name).element_bytes for name, _ in numbers]
        self.is_output = [name == problem.output for name, _ in numbers]


def least_in_game(problem: Problem, capacity: int) -> int:
    """Least traffic of any execution: shortest path over all states of the game.

    A state is what is held and which points are done.  Only what the bound
    promises is paid for: an input at each load, an output once for each time
    that it is brought in (its write; the read back is given away).
    """
    game = Accesses(problem)
    masks = [sum(1 << e for e in set(point)) for point in game.points]
    n = len(game.bytes)
    uses = [sum(1 << i for i, mask in enumerate(masks) if mask >> e & 1) for e in range(n)]
    everything = (1 << len(masks)) - 1

    def settled(held: int, done: int) -> tuple[int, int]:
        """Do what can be done and drop what is not needed any more: both are free."""
        for i, mask in enumerate(masks):
            if not mask & ~held:
                done |= 1 << i
        for e in range(n):
            if held >> e & 1 and not uses[e] & ~done:
                held &= ~(1 << e)
        return held, done

    def still_needed(held: int, done: int) -> int:
        """Least price of the rest of the game: all that is needed and not there."""
        return sum(
            size for e, size in enumerate(game.bytes) if uses[e] & ~done and not held >> e & 1
        )

    least = {(0, 0): 0}
    heap = [(still_needed(0, 0), 0, 0, 0)]
    while heap:
        _, paid, held, done = heapq.heappop(heap)
        if done == everything:
            return paid
        if paid > least[held, done]:
            continue
        used = sum(size for e, size in enumerate(game.bytes) if held >> e & 1)
        steps = []
        is_tight = False
        for e, size in enumerate(game.bytes):
            if held >> e & 1 or not uses[e] & ~done:
                continue
            if used + size <= capacity:
                steps.append((paid + size, *settled(held | 1 << e, done)))
            else:
                is_tight = True
        if is_tight:
            steps += [(paid, held & ~(1 << e), done) for e in range(n) if held >> e & 1]
        for cost, *state in steps:
            key = state[0], state[1]
            if cost < least.get(key, cost + 1):
                least[key] = cost
                heapq.heappush(heap, (cost + still_needed(*key), cost, *key))
    raise AssertionError("nothing fits")


def belady(accesses: Accesses, capacity: int) -> int:
    """Traffic of one order if what is needed last is evicted first: reads and writes."""
    never = len(accesses.points)
    following: dict[int, list[int]] = {}
    for at in range(never - 1, -1, -1):
        for e in accesses.points[at]:
            following.setdefault(e, []).append(at)
    held: set[int] = set()
    begun: set[int] = set()
    used = moved = 0
    for at, point in enumerate(accesses.points):
        for e in point:
            if e not in held:
                size = accesses.bytes[e]
                moved += size * (1 + (e in begun) if accesses.is_output[e] else 1)
                held.add(e)
                used += size
            if accesses.is_output[e]:
                begun.add(e)
        for e in point:
            if following[e][-1] == at:
                following[e].pop()
        while used > capacity:
            spare = max(held, key=lambda e: following[e][-1] if following[e] else never)
            held.remove(spare)
            used -= accesses.bytes[spare]
    return moved


CONV = {"x": "C P+R", "w": "K C R", "y": "K P"}

# The pebble game ------------------------------------------------------------------

TINY = [
    gemm(m=2, n=2, k=2, element_bytes=1),
    gemm(m=2, n=4, k=1, element_bytes=1),
    gemm(m=1, n=3, k=2, element_bytes=1),
    gemm(m=2, n=2, k=2, element_bytes={"A": 1, "B": 2, "C": 3}),
    affine({"P": 3, "R": 3}, {"x": "P+R", "w": "R", "y": "P"}, element_bytes=1),
    affine({"P": 4, "R": 2}, {"x": "P+R-1<4", "w": "R", "y": "P"}, element_bytes=1),
    affine({"P": 3, "R": 3}, {"w": "R", "y": "P", "x": "2*P+R"}, element_bytes=1),
    affine({"K": 2, "P": 2, "R": 2}, {"x": "P+R", "w": "K R", "y": "K P"}, element_bytes=1),
    affine({"I": 4, "J": 3}, {"x": "I", "z": "J", "y": "I"}, element_bytes=1),
    einsum("i,j,k->ij", {"i": 2, "j": 2, "k": 2}, element_bytes=1),
]


@pytest.mark.parametrize("problem", TINY, ids=lambda problem: str(problem.name))
def test_no_play_of_the_game_beats_the_bound(problem: Problem) -> None:
    one_point = sum(tensor.element_bytes for tensor in problem.tensors)
    for capacity in range(one_point, one_point + 4):
        assert communication_bound(problem, capacity).bytes <= least_in_game(problem, capacity)


def test_the_game_is_played_well() -> None:
    """Values of the game that can be found by hand, so that it does judge the bound."""
    two = gemm(m=2, n=2, k=1, element_bytes=1)
    assert least_in_game(two, 3) == 9  # a snake over C saves all but one reload of 8
    assert least_in_game(two, 4) == 8
    long = affine({"I": 4}, {"x": "I", "y": "I"}, element_bytes=1)
    assert least_in_game(long, 2) == 8


# Optima, caches, brute force --------------------------------------------------------

# How far the best explicit schedule is above the bound, row by row; a looser bound fails.
RATIOS = [1.08, 1.06, 1.05, 1.22, 1.19, 1.26, 1.01, 1.30, 1.19, 1.44, 1.22, 1.01, 1.42, 1.01]


@pytest.mark.parametrize(("case", "ratio"), list(zip(CASES, RATIOS, strict=True)))
def test_below_known_optima_and_close(
    case: tuple[Problem, int, int], ratio: float, record_property: Callable[[str, object], None]
) -> None:
    problem, capacity, known = case
    found = communication_bound(problem, capacity)
    record_property("optimum over bound", f"{problem.name}: {known / found.bytes:.4f}")
    assert found.compulsory_bytes <= found.bytes <= known <= ratio * found.bytes


def random_problem(rng: Random) -> Problem:
    """Larger than the other suites' problems, so that there is something to bound."""
    kind = rng.choice(["gemm", "batch", "conv", "conv", "any", "any"])
    if kind == "gemm":
        m, n, k = (rng.randint(1, 40) for _ in range(3))
        problem = gemm(m=m, n=n, k=k)
    elif kind == "batch":
        m, n, k = (rng.randint(1, 16) for _ in range(3))
        problem = batched_gemm(batch=rng.randint(1, 3), m=m, n=n, k=k)
    elif kind == "conv":
        groups = rng.choice([1, 1, 1, 2])
        problem = conv2d(
            n=rng.randint(1, 3), c=groups * rng.randint(1, 8), k=groups * rng.randint(1, 8),
            h=rng.randint(10, 14), w=rng.randint(10, 14), r=rng.randint(1, 4), s=rng.randint(1, 4),
            stride=(rng.randint(1, 3), rng.randint(1, 3)), padding=rng.choice([0, 0, 1, 2]),
            dilation=(rng.randint(1, 3), rng.randint(1, 2)), groups=groups,
            pass_=rng.choice(["forward", "backward_data", "backward_weights"]),
        )  # fmt: skip
    else:
        return oracle_search.random_problem(rng)
    if rng.random() < 0.4:
        widths = {tensor.name: rng.choice([1, 2, 4]) for tensor in problem.tensors}
        problem = problem.with_element_bytes(widths)
    return problem


def random_capacity(rng: Random, problem: Problem) -> int:
    most = communication_bound(problem, 0).compulsory_bytes + 12
    return int(math.exp(rng.uniform(math.log(12), math.log(most))))


def test_below_the_best_schedule_of_many_problems() -> None:
    rng = Random(3)
    compared = above_compulsory = 0
    while compared < 400:
        problem = random_problem(rng)
        capacity = random_capacity(rng, problem)
        arch = loopsched.buffer_arch(capacity_bytes=capacity, policy="explicit")
        try:
            best = loopsched.search(problem, arch, objective="dram_bytes").evaluation
        except EmptySpaceError:
            continue  # not one point fits
        found = communication_bound(problem, capacity)
        assert found.bytes <= best.dram_bytes, (problem, capacity)
        assert found.read_bytes <= best.dram_read_bytes, (problem, capacity)
        assert found.write_bytes <= best.dram_write_bytes, (problem, capacity)
        compared += 1
        above_compulsory += found.bytes > found.compulsory_bytes
    assert above_compulsory >= 80


@given(st.data())
def test_below_simulated_caches(data: st.DataObject) -> None:
    problem = data.draw(strategies.problems())
    schedule = data.draw(strategies.schedules(problem))
    capacity = data.draw(strategies.capacities(problem))
    found = communication_bound(problem, capacity)
    lru = oracle.Lru(problem, capacity)
    lru.run(point for _, point in oracle.walk(problem, schedule))
    assert found.unflushed_write_bytes <= sum(lru.writes.values())
    lru.flush()
    assert found.read_bytes <= sum(lru.reads.values())
    assert found.write_bytes <= sum(lru.writes.values())
    assert found.compulsory_bytes == sum(oracle.compulsory(problem).values())
    ordered = Accesses(problem, (point for _, point in oracle.walk(problem, schedule)))
    assert found.bytes <= belady(ordered, capacity)


@given(st.data())
def test_below_what_many_small_caches_move_together(data: st.DataObject) -> None:
    """Units with a cache each: one unit could do the work of all, one after another."""
    problem = data.draw(strategies.problems())
    schedule = data.draw(strategies.schedules(problem, units=("SM",)))
    capacity = data.draw(strategies.capacities(problem))
    moved = oracle.simulate_private(problem, schedule, capacity, ["SM"])
    assert communication_bound(problem, capacity).bytes <= moved.total


def test_below_belady_in_tiled_orders() -> None:
    """Square tiles, sums innermost: as near to the bound as small simulations come."""
    ratios = []
    for problem, extents in (
        (gemm(m=10, n=10, k=40, element_bytes=1), {"M": 5, "N": 5}),
        (gemm(m=12, n=12, k=12, element_bytes=1), {"M": 3, "N": 4}),
        (affine({"K": 6, "C": 5, "P": 12, "R": 3}, CONV), {"K": 3, "P": 6}),
        (affine({"K": 6, "C": 5, "P": 12, "R": 3}, CONV), {"K": 6, "C": 2}),
    ):
        width = problem.tensors[0].element_bytes
        for order in (problem.dims, problem.dims[::-1]):
            loops = [Loop(dim, problem.size[dim]) for dim in (*extents, *order)]
            loops = [loop for i, loop in enumerate(loops) if loop not in loops[:i]]
            loops += [Loop(dim, extent) for dim, extent in extents.items()]
            points = (point for _, point in oracle.walk(problem, Schedule.of(loops)))
            accesses = Accesses(problem, points)
            for capacity in (0, 3, 12, 20, 30, 60):
                moved = belady(accesses, capacity * width)
                found = communication_bound(problem, capacity * width)
                assert found.bytes <= moved
                ratios.append(moved / found.bytes)
    assert min(ratios) < 1.36


H200_SMS = 132
SM_BYTES = 512 * 1024  # L1 with shared memory, and registers
CHIP_BYTES = 60 * 1024**2 + H200_SMS * SM_BYTES


def measured() -> Iterator[tuple[Problem, dict[str, str]]]:
    """Shipped counters of an H200, with the problem that each kernel solves."""
    for path in sorted(resource_dir("counters").glob("*.csv")):
        with path.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                case = row.get("case", "gemm")
                size = {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", case)}
                if case.startswith("filt"):
                    side, radius = size["S"], size["R"]
                    around = f"Z P+R-{radius}<{side} Q+S-{radius}<{side}"
                    sizes = {"Z": size["Z"], "P": side, "Q": side}
                    sizes |= dict.fromkeys("RS", 2 * radius + 1)
                    yield affine(sizes, {"x": around, "w": "R S", "y": "Z P Q"}), row
                elif case.startswith("direct"):
                    p, r = size["S"], size["K"]
                    yield conv2d(c=size["Ni"], k=size["Nn"], p=p, q=p, r=r, s=r), row
                else:
                    m, n, k = (size.get(dim) or int(row[dim]) for dim in "MNK")
                    yield gemm(m=m, n=n, k=k), row


def test_below_hardware_counters() -> None:
    """Of DRAM with all that the chip holds; of L2 with what one multiprocessor holds."""
    n_rows = above_compulsory = 0
    for problem, row in measured():
        chip = communication_bound(problem, CHIP_BYTES)
        assert chip.read_bytes <= float(row["dram_read_bytes"]), row
        assert chip.unflushed_write_bytes <= float(row["dram_write_bytes"]), row
        own = communication_bound(problem, SM_BYTES)
        assert own.read_bytes <= 32 * float(row["l2_read_sectors"]), row
        n_rows += 1
        above_compulsory += own.bytes > own.compulsory_bytes
    assert n_rows >= 68
    assert above_compulsory > n_rows / 2


# Inequalities, literally ------------------------------------------------------------


def found_for(problem: Problem) -> list[Inequality]:
    return inequalities.inequalities(problem, problem.size)


def some_points(rng: Random, problem: Problem) -> list[oracle.Point]:
    """A random subset of a box of randomly chosen places."""
    box = [sorted(rng.sample(range(n), rng.randint(1, n))) for _, n in problem.sizes]
    share = rng.choice([1.0, 1.0, 0.7, 0.3])
    return [
        dict(zip(problem.dims, place, strict=True))
        for place in product(*box)
        if rng.random() < share
    ]


def most_work(one: Inequality, problem: Problem, points: list[oracle.Point]) -> float:
    sets = oracle.touched(problem, points)
    elems = [len(sets[tensor.name]) for tensor in problem.tensors]
    most = one.factor * math.prod(n**power for n, power in zip(elems, one.powers, strict=True))
    return float(most ** (1 / one.root)) * (1 + 1e-12)


@given(st.data())
def test_no_set_of_points_breaks_an_inequality(data: st.DataObject) -> None:
    problem = data.draw(strategies.problems())
    rng = Random(data.draw(st.integers(0, 2**20)))
    for _ in range(4):
        points = some_points(rng, problem)
        stored = [p for p in points if all(oracle.element(t, p) for t in problem.tensors)]
        for one in found_for(problem):
            assert len(stored) <= most_work(one, problem, points), one


@pytest.mark.parametrize(("n_filter", "stride", "size"), [(3, 2, None), (5, 2, 7), (4, 3, 9)])
def test_no_set_of_points_breaks_a_weighted_inequality(
    n_filter: int, stride: int, size: int | None
) -> None:
    """A point weighs more where fewer outputs meet an input element."""
    clip = "" if size is None else f"-1<{size}"
    image = f"C {stride}*P+R{clip}"
    sizes = {"K": 3, "C": 3, "P": 6, "R": n_filter}
    problem = affine(sizes, {"x": image, "w": "K C R", "y": "K P"})
    one = min(found_for(problem), key=lambda i: i.degree / i.root)
    most = -(-n_filter // stride)
    assert (one.powers, one.root, one.factor) == ((1, 1, 1), 2, most)

    def weight(point: oracle.Point) -> float:
        if any(oracle.element(tensor, point) is None for tensor in problem.tensors):
            return 0.0
        return math.sqrt(most / len(range(point["R"] % stride, n_filter, stride)))

    nest = Schedule.of(Loop(dim, extent) for dim, extent in problem.sizes)
    total = sum(weight(point) for _, point in oracle.walk(problem, nest))
    assert one.work <= total < one.work + 1.001
    assert one.grain == math.ceil(math.sqrt(most / (n_filter // stride)))
    rng = Random(5)
    near = 0.0
    for _ in range(300):
        points = some_points(rng, problem)
        work = sum(map(weight, points))
        assert work <= most_work(one, problem, points)
        near = max(near, work / most_work(one, problem, points)) if work else near
    assert near > 0.7


def test_inequalities_of_products_and_convolutions() -> None:
    def best(problem: Problem) -> tuple[Sequence[int], int, int]:
        one = min(found_for(problem), key=lambda i: i.degree / i.root)
        return one.powers, one.root, one.factor

    assert best(gemm(m=4, n=5, k=6)) == ((1, 1, 1), 2, 1)
    assert best(conv2d(c=4, k=4, p=9, q=9, r=3, s=3)) == ((1, 1, 1), 2, 9)
    assert best(conv2d(c=4, k=4, p=9, q=9, r=5, s=10, stride=2)) == ((1, 1, 1), 2, 15)
    # Where there are two rows of outputs, an element is met by two at most.
    assert best(conv2d(c=4, k=4, p=2, q=9, r=3, s=3)) == ((1, 1, 1), 2, 6)
    # Dilation 2 at stride 2 is like 1 at 1; at stride 3, three wide, nothing is met twice.
    assert best(conv2d(c=4, k=4, p=9, q=9, r=3, s=3, stride=2, dilation=2)) == ((1, 1, 1), 2, 9)
    assert best(conv2d(c=4, k=4, p=9, q=9, r=3, s=3, stride=3, dilation=2)) == ((1, 1, 1), 2, 1)
    # Four tensors over three dimensions each: thirds, as Loomis and Whitney have them.
    assert best(einsum("abc,abd,acd->bcd", dict.fromkeys("abcd", 3))) == ((1, 1, 1, 1), 3, 1)
    # Three terms on an axis: 4*a + 2*b + c with two values each never meet.
    apart = affine(dict.fromkeys("abcd", 2), {"x": "4*a+2*b+c", "y": "a d", "z": "b c d"})
    assert best(apart) == ((1, 1, 1), 2, 1)
    meet = affine(dict.fromkeys("abcd", 2), {"x": "a+b+c", "y": "a d", "z": "b c d"})
    assert best(meet)[2] > 1


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 7)), min_size=2, max_size=4))
def test_no_two_points_of_a_class_meet(terms: list[tuple[int, int]]) -> None:
    """Runs of as many values as the modulus, or every so-manyth value."""
    names = "ABCD"[: len(terms)]
    axis = Axis(tuple((name, c) for name, (c, _) in zip(names, terms, strict=True)))
    size = {name: extent for name, (_, extent) in zip(names, terms, strict=True)}
    for cut in windows.splits(axis, size):
        seen = set()
        for place in product(*(range(extent) for extent in size.values())):
            point = dict(zip(names, place, strict=True))
            of_class = tuple(
                point[one.dim] // one.modulus if one.modulus > 1 else point[one.dim] % one.classes
                for one in cut
            )
            assert all(number < one.classes for number, one in zip(of_class, cut, strict=True))
            at = sum(c * point[name] for name, c in axis.terms)
            assert (of_class, at) not in seen
            seen.add((of_class, at))
        for one in cut:
            assert sum(one.values) == one.size
            assert max(one.values) == (one.classes if one.modulus > 1 else one.size)


def test_few_weights_pair_inputs_with_outputs() -> None:
    """Larger powers than needed are kept where they save the factor of the windows."""
    layer = conv2d(c=4, k=4, p=9, q=9, r=3, s=3)
    found = {(one.powers, one.root, one.factor) for one in found_for(layer)}
    assert {((1, 1, 1), 2, 9), ((1, 2, 1), 2, 1), ((1, 1, 2), 2, 1)} <= found
    # Only what cannot be had for less is kept.
    assert ((2, 2, 2), 2, 1) not in found
    assert len(found_for(gemm(m=4, n=4, k=4))) == 4


def test_no_weights_where_two_tensors_share_a_window() -> None:
    """What is apart for one tensor is not for the other: residues must not be told apart."""
    problem = affine({"P": 4, "T": 4, "R": 3}, {"x": "2*P+R", "y": "2*T+R", "z": "P T"})
    for one in found_for(problem):
        assert one.grain == 1 or max(one.powers[:2]) >= one.root
        rng = Random(1)
        for _ in range(50):
            points = some_points(rng, problem)
            assert len(points) <= most_work(one, problem, points)


@given(strategies.problems())
def test_stored_points_are_never_over_counted(problem: Problem) -> None:
    nest = Schedule.of(Loop(dim, size) for dim, size in problem.sizes)
    points = [point for _, point in oracle.walk(problem, nest)]
    stored = sum(all(oracle.element(t, p) for t in problem.tensors) for p in points)
    part = communication._part_of(problem)
    work = part.copies * windows.stored_work(problem, part.size, ())[0]
    axes = [a for t in problem.tensors for a in t.axes if is_clipped(a, problem.size)]
    dims = [dim for axis in axes for dim in axis.dims]
    # Points that two axes clip along one dimension are not counted: nothing is claimed of them.
    assert work in ({0, stored} if len(set(dims)) < len(dims) else {stored})
    whole = oracle.touched(problem, points)
    for tensor, touched in zip(problem.tensors, part.touched, strict=True):
        assert part.copies * touched == len(whole[tensor.name]) * tensor.element_bytes


def test_long_axes_are_counted_in_part() -> None:
    long = {"P": 9000, "R": 8000}
    problem = affine(long, {"x": "P+R-1<16997", "w": "R", "y": "P"})
    work, grain = windows.stored_work(problem, long, ())
    assert 0.4 * problem.macs < work < problem.macs
    assert grain == 1
    split = windows.Split("R", 8000, 4000, 2)
    weight = ((0, 0), (split, (windows.WEIGHT_SCALE, 2 * windows.WEIGHT_SCALE)))
    assert windows.stored_work(problem, long, [weight]) == (work, 1)


def test_dimensions_clipped_twice_leave_the_compulsory_bound() -> None:
    twice = affine({"P": 9, "R": 3}, {"x": "P+R-1<9", "w": "R", "z": "P-1<7", "y": "P"})
    found = communication_bound(twice, 8)
    assert found.bytes == found.compulsory_bytes == sum(oracle.compulsory(twice).values())


@given(
    st.lists(st.integers(0, 2), min_size=2, max_size=3).filter(any),
    st.lists(st.integers(1, 7), min_size=3, max_size=3),
    st.integers(1, 3),
    st.integers(1, 30),
)
def test_phase_cost_is_below_every_choice_of_elements(
    powers: list[int], prices: list[int], factor: int, points: int
) -> None:
    one = Inequality(tuple(powers), 2, factor, points, 1)
    paid = [p if power else 0 for p, power in zip(prices, powers, strict=False)]
    cost = communication._cost(one, paid, points)
    choices = [
        sum(p * x for p, x in zip(paid, elems, strict=True))
        for elems in product(range(1, 31), repeat=len(powers))
        if factor * math.prod(x**a for x, a in zip(elems, powers, strict=True)) >= points**2
    ]
    assert choices == [] or cost <= min(choices)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=60), st.integers(1, 12))
def test_phases_have_the_work_that_is_claimed(weights: list[int], n: int) -> None:
    """Each phase ends with the point that completes its share of the sum."""
    total, largest = sum(weights), max(weights)
    one = Inequality((1, 1), 1, 1, total, largest)
    phases = [0] * n
    begun = 0
    for weight in weights:
        phases[min(n - 1, begun * n // total)] += weight
        begun += weight
    claimed = sorted(work for work, many in communication._phases(one, n) for _ in range(many))
    assert len(claimed) == n
    assert all(map(operator.le, claimed, sorted(phases)))


@given(st.integers(0, 10**40), st.integers(2, 24))
def test_roots_are_rounded_up(value: int, degree: int) -> None:
    root = inequalities.root_above(value, degree)
    assert root**degree >= value
    assert root == 0 or (root - 1) ** degree < value


@given(strategies.problems(), st.integers(1, 500))
def test_any_number_of_phases_bounds(problem: Problem, n: int) -> None:
    """Each number of phases is a bound by itself; with everything inside, at most compulsory."""
    part = communication._part_of(problem)
    whole = sum(part.touched)
    for one in inequalities.inequalities(problem, part.size):
        if n <= one.work:
            level = communication._level(part, one, n)
            assert communication._touched_at_least(part, one, n, level) - (n - 1) * whole <= whole


# Properties ---------------------------------------------------------------------------


@given(strategies.problems(), st.data())
def test_never_rises_with_capacity(problem: Problem, data: st.DataObject) -> None:
    sizes = sorted(data.draw(strategies.capacities(problem)) for _ in range(6))
    sizes += [sizes[0] + 1, sizes[-1] + 1]
    found = [communication_bound(problem, capacity).bytes for capacity in sorted(sizes)]
    assert found == sorted(found, reverse=True)


def test_never_rises_with_capacity_in_large_problems() -> None:
    layer = conv2d(n=16, c=64, k=128, p=40, q=174, r=5, s=5, stride=2)
    for problem in (gemm(m=5124, n=700, k=2048), layer):
        sizes = sorted({int(1.2**i) + more for i in range(15, 95) for more in (0, 1)})
        found = [communication_bound(problem, capacity).bytes for capacity in sizes]
        assert found == sorted(found, reverse=True)
        assert len(set(found)) > 50


@given(strategies.problems())
def test_compulsory_when_everything_fits_and_all_accesses_at_nothing(problem: Problem) -> None:
    whole = sum(oracle.compulsory(problem).values())
    for capacity in (whole, whole + 1, 10**15):
        found = communication_bound(problem, capacity)
        assert (found.bytes, found.n_phases) == (whole, 1)
    nothing = communication_bound(problem, 0)
    assert whole <= nothing.bytes <= problem.macs * sum(t.element_bytes for t in problem.tensors)


def test_parts_add_up() -> None:
    found = communication_bound(gemm(m=40, n=30, k=50), 400)
    assert found.bytes == found.read_bytes + found.write_bytes
    assert found.write_bytes == 40 * 30 * 4
    assert found.unflushed_write_bytes == 40 * 30 * 4 - 400


@pytest.mark.parametrize("capacity", [64, 1000, 20_000, 10**6])
def test_a_convolution_with_a_1x1_filter_is_a_product(capacity: int) -> None:
    product_ = communication_bound(gemm(m=6 * 10 * 9, n=24, k=16), capacity)
    layer = conv2d(n=6, c=16, k=24, p=10, q=9, r=1, s=1, stride=3)
    found = communication_bound(layer, capacity)
    assert (found.bytes, found.read_bytes) == (product_.bytes, product_.read_bytes)
    as_einsum = communication_bound(einsum("pc,kc->pk", {"p": 540, "c": 16, "k": 24}), capacity)
    assert as_einsum.bytes == product_.bytes


@pytest.mark.parametrize("capacity", [100, 3000, 10**5])
def test_independent_parts_add(capacity: int) -> None:
    one = communication_bound(gemm(m=60, n=50, k=40), capacity).bytes
    assert communication_bound(batched_gemm(batch=7, m=60, n=50, k=40), capacity).bytes == 7 * one
    groups = conv2d(n=2, c=12, k=8, p=9, q=9, r=3, s=3, groups=4)
    apart = conv2d(n=2, c=3, k=2, p=9, q=9, r=3, s=3)
    assert (
        communication_bound(groups, capacity).bytes
        == 4 * communication_bound(apart, capacity).bytes
    )


@pytest.mark.parametrize("which", ["forward", "backward_data", "backward_weights"])
def test_training_passes_share_the_argument(which: str) -> None:
    layer = conv2d(n=4, c=32, k=32, p=20, q=20, r=3, s=3, pass_=which)
    found = communication_bound(layer, 8192)
    assert found.bytes == communication_bound(layer, 8192).bytes > 1.2 * found.compulsory_bytes
    written = {"forward": "output", "backward_data": "input", "backward_weights": "weight"}[which]
    size = layer.size
    elems = {
        "output": 4 * 32 * size["P"] * size["Q"],
        "input": 4 * 32 * 22 * 22,
        "weight": 32 * 32 * 9,
    }
    assert found.write_bytes == 4 * elems[written]


@pytest.mark.parametrize("elems", [100, 1089, 10_000, 123_456])
@pytest.mark.parametrize("shape", [(700, 600, 500), (2048, 2048, 2048), (35, 900, 4096)])
def test_never_looser_than_the_published_bound(shape: tuple[int, int, int], elems: int) -> None:
    m, n, k = shape
    found = communication_bound(gemm(m=m, n=n, k=k, element_bytes=4), 4 * elems)
    macs = m * n * k
    assert found.bytes >= 4 * (2 * macs / math.sqrt(elems) - 2 * elems)
    if min(shape) ** 2 > 30 * elems:  # many phases, no dimension shorter than a tile
        assert found.bytes == pytest.approx(4 * (2 * macs / math.sqrt(elems) + elems), rel=2e-4)


def test_tight_where_the_output_just_fits() -> None:
    """M = N = sqrt(S): one output tile that stays, two streams: 2*MNK/sqrt(S) + S."""
    found = communication_bound(gemm(m=32, n=32, k=10_000, element_bytes=1), 1024)
    assert found.bytes == pytest.approx(2 * 32 * 10_000 + 1024, abs=2)


def test_short_sums_are_bounded_by_their_length() -> None:
    """K below sqrt(S): M*N*(1 + K*K/S) is what a resident block of A attains."""
    m = n = 4096
    k, elems = 16, 4096
    found = communication_bound(gemm(m=m, n=n, k=k, element_bytes=1), elems)
    attained = m * n + m * k + m * n * k * k / elems
    assert 0.98 * attained <= found.bytes <= attained


def test_words() -> None:
    product_ = communication_bound(gemm(m=512, n=512, k=512), 65_536)
    assert "phases" in product_.method
    assert "1702.02017" in product_.reference
    layer = communication_bound(conv2d(c=64, k=64, p=56, q=56, r=3, s=3), 65_536)
    assert "9^(1/2) |input|^(1/2)" in layer.method
    assert "1802.06905" in layer.reference
    batch = communication_bound(batched_gemm(batch=3, m=128, n=128, k=128), 4096)
    assert batch.method.startswith("each of 3 independent parts")
    outer = communication_bound(einsum("i,j,k->ij", dict.fromkeys("ijk", 40)), 64)
    assert "1308.0068" in outer.reference
    all_in = communication_bound(gemm(m=4, n=4, k=4), 10**6)
    assert (all_in.method, all_in.n_phases) == ("every element that is touched is moved once", 1)


@pytest.mark.parametrize("capacity", [-1, 1.5, "64", None, True, [1]])
def test_bad_capacity(capacity: object) -> None:
    communication_bound(gemm(m=4, n=4, k=4), 1)  # kept, and equal to True
    with pytest.raises(ProblemError, match=r"capacity_bytes is .*; a whole number >= 0 is needed"):
        communication_bound(gemm(m=4, n=4, k=4), capacity)  # type: ignore[arg-type]


@cache
def largest() -> Problem:
    return gemm(m=2**20, n=2**20, k=2**20)


def test_largest_problem_stays_exact() -> None:
    found = communication_bound(largest(), 4 * 2**20)
    assert found.bytes == pytest.approx(4 * (2**51 + 2**20), rel=2e-4)
    assert communication_bound(largest(), 0).bytes >= 3 * 4 * 2**59
