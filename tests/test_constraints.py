"""Constraints against a naive enumeration of extents and permutations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product
from math import comb
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loopsched.base.errors import ConstraintError, EmptySpaceError, ScheduleError
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import load_arch
from loopsched.machines.levels import Compute, Level
from loopsched.models.buffer import EFFORT
from loopsched.models.score import evaluate
from loopsched.nests.nest import Schedule
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.scheduler import Constraints, Space, constrained, search, space_of
from loopsched.scheduler.allowed import allowed, allows, parts
from loopsched.scheduler.counting import counter, every_choice, n_schedules
from loopsched.scheduler.orders import order_graph
from loopsched.scheduler.precedence import allowed_classes, allowed_orders
from loopsched.scheduler.ranking import Ranking
from loopsched.scheduler.result import rank

from strategies import convs, gemms, machines  # isort: skip

TITAN = load_arch("titan_v")
SMALL = TITAN.with_value("L1.capacity", 64).with_value("L2.capacity", 160)
GEMM = gemm(m=4, n=3, k=2)
CONV = conv2d(n=16, c=64, k=64, h=56, w=56, r=3, s=3, padding=1)

Point = tuple[dict[str, tuple[int, ...]], tuple[tuple[str, ...], ...]]


def points(space: Space) -> Iterator[Point]:
    """Every choice of the space as if it had no constraints, the long way."""
    problem = space.problem
    n = len(space.slots)
    for chains in product(*(product(range(1, size + 1), repeat=n) for _, size in problem.sizes)):
        whole = [(size, *chain, 1) for (_, size), chain in zip(problem.sizes, chains, strict=True)]
        if any(a < b for chain in whole for a, b in pairwise(chain)):
            continue
        blocks = [
            [d for d, chain in zip(problem.dims, whole, strict=True) if chain[at + 1] < chain[at]]
            for at in range(n + 1)
        ]
        if any(set(b) - set(s.dims) for b, s in zip(blocks, space.slots, strict=False)):
            continue
        for orders in product(*(permutations(block) for block in blocks)):
            yield dict(zip(problem.dims, chains, strict=True)), orders


def everything(space: Space) -> Iterator[Schedule]:
    """Every schedule of a constrained space, for each way to put its prefix into blocks."""
    for limits in map(allowed, parts(space)):
        yield from (limits.schedule(choice) for choice in every_choice(limits))


def text(space: Space, point: Point) -> str:
    chains, orders = point
    now, loops = dict(space.problem.size), []
    units = [slot.unit for slot in space.slots] + [None]
    for at, (order, unit) in enumerate(zip(orders, units, strict=True)):
        for dim in order:
            loops.append(f"{dim}:{now[dim]}" + (f"@{unit}" if unit else ""))
            now[dim] = chains[dim][at] if at < len(space.slots) else 1
    return " ".join(loops)


def meets(space: Space, point: Point) -> bool:
    """Whether a point meets all constraints but the prefix, straight from their words."""
    chains, orders = point
    size, constraints = space.problem.size, space.constraints
    names = [slot.name for slot in space.slots]
    for dim, chain in chains.items():
        for extent in chain:
            if constraints.tiles == "divisors" and size[dim] % extent:
                return False
            if constraints.tiles == "powers2" and extent not in (1, 2, 4, 8, size[dim]):
                return False
    for dim, block, low, high in constraints.extents:
        if not low <= chains[dim][names.index(block)] <= high:
            return False
    follows = set(constraints.before)
    for middle, outer, inner in product(space.problem.dims, repeat=3):
        if (outer, middle) in follows and (middle, inner) in follows:
            follows.add((outer, inner))
    return not any(
        (inner, outer) in follows for order in orders for outer, inner in combinations(order, 2)
    )


@lru_cache(maxsize=1)
def all_of_gemm() -> tuple[tuple[str, Point], ...]:
    space = space_of(GEMM, SMALL)
    return tuple((text(space, point), point) for point in points(space))


@st.composite
def constraint_sets(draw: st.DrawFn, *, with_prefix: bool = False) -> Constraints:
    bounds = []
    places = st.tuples(st.sampled_from("MNK"), st.sampled_from(["L2", "SM", "L1"]))
    for dim, block in draw(st.lists(places, max_size=2, unique=True)):
        low = draw(st.integers(1, GEMM.size[dim]))
        bounds.append((dim, block, low, draw(st.integers(low, GEMM.size[dim]))))
    order = draw(st.permutations("MNK"))
    prefix = ""
    if with_prefix:
        prefix = draw(
            st.sampled_from(
                ["", "M:4", "N:3@SM", "K:2 M:4@SM", "M:4 M:2", "M:4 K:2 N:3@SM M:3@SM", "K:2 K:1"]
            )
        )
    before = tuple(pairwise(order))[: draw(st.integers(0, 2))]
    tiles = draw(st.sampled_from(["all", "divisors", "powers2"]))
    return Constraints(tiles=tiles, extents=tuple(bounds), before=before, prefix=prefix)


def is_refused(given: Constraints) -> bool:
    """Whether the prefix contradicts the orders."""
    try:
        space_of(GEMM, SMALL, given)
    except ConstraintError as error:
        return "finds no block" in str(error)
    return False


class TestParse:
    def test_every_form_of_bound(self) -> None:
        found = Constraints.parse(
            tiles="powers2", fix=["M@L2=128", "K@L1 <= 64", "N@SM>=8", "64<=N@L2<=256"],
            spatial="M, N", before=["K>M>N"], prefix=" M:4 ",
        )  # fmt: skip
        assert found.extents == (
            ("M", "L2", 128, 128), ("K", "L1", 1, 64), ("N", "SM", 8, 2**62), ("N", "L2", 64, 256),
        )  # fmt: skip
        assert found.before == (("K", "M"), ("M", "N"))
        assert (found.tiles, found.spatial, found.prefix) == ("powers2", ("M", "N"), "M:4")

    def test_no_spatial_dims(self) -> None:
        assert Constraints.parse(spatial="none").spatial == ()
        assert Constraints.parse().spatial is None

    def test_all_faults_at_once(self) -> None:
        with pytest.raises(ConstraintError) as caught:
            Constraints.parse(
                tiles="divisor", fix=["M=4", "M@L2=-1", "M@L2=" + "9" * 30], before=["K", "K>"]
            )
        assert len(caught.value.problems) == 6
        assert "did you mean 'divisors'?" in str(caught.value)
        assert "write DIM@LEVEL=N" in str(caught.value)


class TestCheck:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"extents": (("m", "L2", 1, 2),)}, "unknown dim 'm'; did you mean 'M'"),
            ({"extents": (("M", "L3", 1, 2),)}, r"unknown level or unit 'L3'; did you mean 'L\d'"),
            ({"extents": (("M", "L2", 5, 5),)}, "dim 'M' has size 4; 5 is above it"),
            ({"extents": (("M", "L2", 1, 9),)}, "dim 'M' has size 4; 9 is above it"),
            ({"extents": (("M", "L2", 3, 2),)}, "no extent is at least 3 and at most 2"),
            ({"extents": (("M", "L2", 0, 0),)}, "no extent is at least 0"),
            (
                {"extents": (("M", "L2", 1, 2), ("M", "L2", 3, 4))},
                "'3<=M@L2<=4' contradicts an earlier bound on M@L2",
            ),
            ({"before": (("M", "Z"),)}, r"order 'M>Z': unknown dim 'Z'.*allowed: M N K"),
            ({"before": (("M", "M"),)}, "cycle: M before M"),
            (
                {"before": (("M", "K"), ("K", "N"), ("N", "M"))},
                "orders form a cycle: . before . before . before .",
            ),
            ({"prefix": "M:5"}, "outermost loop of 'M' covers 5; it must cover the size"),
            ({"prefix": "Z:4"}, "unknown dim"),
            ({"prefix": "M4"}, "no ':'"),
            ({"prefix": "K:2@SM"}, "loop 0 'K:2@SM' finds no block"),
            ({"prefix": "M:4 M:3 M:2 M:1"}, None),
            ({"prefix": "M:4@SM N:3 M:2@SM"}, "loop 2 'M:2@SM' finds no block"),
            ({"prefix": "M:4@L2"}, "loop 'M:4@L2': unknown unit 'L2'; allowed: SM"),
            ({"prefix": "M:4@SM", "spatial": ()}, "unit 'SM'; the space has no spatial loops"),
            ({"prefix": "M:4@SN"}, "unknown unit 'SN'; did you mean 'SM'"),
            ({"spatial": ("m",)}, "spatial dim 'm' is unknown"),
            ({"tiles": "half"}, "tiles 'half' is unknown"),
        ],
    )
    def test_messages(self, given: dict[str, Any], message: str | None) -> None:
        if message is None:
            assert n_schedules(space_of(GEMM, TITAN, Constraints(**given))) > 0
            return
        with pytest.raises(ConstraintError, match=message):
            space_of(GEMM, TITAN, Constraints(**given))

    def test_all_faults_at_once(self) -> None:
        given = Constraints(
            tiles="half",  # type: ignore[arg-type]
            extents=(("m", "L9", 1, 2), ("M", "L2", 8, 8)),
            before=(("X", "Y"),),
        )
        with pytest.raises(ConstraintError) as caught:
            space_of(GEMM, TITAN, given)
        assert len(caught.value.problems) == 6


class TestSpace:
    @given(constraint_sets())
    @settings(max_examples=25)
    def test_size_and_members_are_those_of_a_naive_enumeration(self, given: Constraints) -> None:
        space = space_of(GEMM, SMALL, given)
        expected = sorted(nest for nest, point in all_of_gemm() if meets(space, point))
        found = sorted(map(str, everything(space)))
        assert found == expected
        assert n_schedules(space) == len(expected)

    @given(constraint_sets(with_prefix=True))
    @settings(max_examples=25)
    def test_prefix_keeps_exactly_the_schedules_that_begin_with_it(
        self, given: Constraints
    ) -> None:
        space = replace(space_of(GEMM, SMALL), constraints=given)
        begins = given.prefix.removesuffix(" K:1")
        every = [(nest, meets(space, point)) for nest, point in all_of_gemm()]
        expected = {
            nest for nest, kept in every if kept and (nest + " ").startswith(f"{begins} ".lstrip())
        }
        if is_refused(given):
            assert not expected
            return
        found = [str(nest) for nest in everything(space)]
        assert set(found) == expected
        assert n_schedules(space) == len(found)
        for nest in {nest for nest, _ in every[::37]}:
            reason = allows(space, parse_schedule(nest, GEMM))
            assert (reason is None) == (nest in expected), (nest, reason)

    @given(constraint_sets())
    @settings(max_examples=15)
    def test_allows_says_no_to_the_rest(self, given: Constraints) -> None:
        space = space_of(GEMM, SMALL, given)
        every = [(nest, meets(space, point)) for nest, point in all_of_gemm()]
        kept = {nest for nest, is_kept in every if is_kept}
        for nest in {nest for nest, _ in every[::29]}:
            reason = allows(space, parse_schedule(nest, GEMM))
            assert (reason is None) == (nest in kept), (nest, reason)

    def test_free_sizes_agree(self) -> None:
        """Two ways of counting, written apart."""
        for problem in (GEMM, CONV):
            space = space_of(problem, TITAN)
            assert counter(space).size == n_schedules(space)

    def test_orders_that_a_precedence_leaves_open_are_counted(self) -> None:
        given = Constraints(before=(("N", "P"), ("C", "P"), ("C", "Q")))
        problem = conv2d(n=2, c=2, k=1, h=2, w=2, r=1, s=1)
        space = space_of(problem, TITAN, given)
        assert n_schedules(space) == sum(1 for _ in everything(space))
        naive = sum(meets(space, (chains, orders)) for chains, orders in points(space))
        assert n_schedules(space) == naive

    def test_reasons(self) -> None:
        given = Constraints(extents=(("M", "L1", 2, 2),), before=(("K", "M"),))
        space = space_of(GEMM, TITAN, given)

        def reason(nest: str) -> str | None:
            return allows(space, parse_schedule(nest, GEMM))

        assert reason("K:2 M:4 N:3") == "the extent of 'M' inside 'L1' is 4; M@L1=2 is needed"
        assert reason("M:4 K:2 N:3 M:2") is None  # M alone in an outer block
        assert reason("K:2 M:4@SM N:3 M:2") is None
        assert reason("K:2@SM M:4 N:3 M:2") == (
            "its loops do not fit into the blocks, each dimension at most once in each"
        )
        assert reason("N:3@SM M:4 K:2") == "the loop of 'M' is outside that of 'K'"

    def test_dims_too_long_to_list(self) -> None:
        long = gemm(m=2**40, n=1, k=1)
        with pytest.raises(ConstraintError, match="1099511627776 extents inside 'L2'"):
            n_schedules(space_of(long, TITAN, Constraints(before=(("M", "N"),))))
        # Three extents, each a power of two up to 2**40, none growing inward.
        assert n_schedules(space_of(long, TITAN, Constraints(tiles="powers2"))) == comb(41 + 2, 3)


class TestEmpty:
    @pytest.mark.parametrize(
        ("given", "blamed"),
        [
            (Constraints(tiles="divisors", extents=(("M", "L2", 3, 3),)), "M@L2=3"),
            (Constraints(extents=(("M", "L2", 1, 2), ("M", "L1", 3, 4))), "3<=M@L1<=4"),
            (Constraints(extents=(("M", "L2", 2, 2),), prefix="M:4@SM"), "prefix 'M:4@SM'"),
        ],
    )
    def test_the_last_constraint_to_blame_is_named(self, given: Constraints, blamed: str) -> None:
        assert n_schedules(space_of(GEMM, TITAN, given)) == 0
        with pytest.raises(EmptySpaceError, match=f"{blamed} removed the last ones"):
            search(GEMM, TITAN, constraints=given)

    def test_two_that_are_to_blame_together(self) -> None:
        bounds = (("M", "L2", 3, 3), ("N", "L2", 2, 2))
        with pytest.raises(EmptySpaceError, match="tiles=divisors removed the last"):
            search(GEMM, TITAN, constraints=Constraints(tiles="divisors", extents=bounds))
        bounds = (("M", "L2", 1, 1), ("M", "L1", 2, 2), ("N", "L2", 1, 1), ("N", "L1", 2, 2))
        with pytest.raises(EmptySpaceError, match="without N@L1=2 and N@L2=1 and M@L1=2 there"):
            search(GEMM, TITAN, constraints=Constraints(extents=bounds))


@contextmanager
def built() -> Iterator[list[Schedule]]:
    """Have every constrained search build its schedules; list those that it scores."""
    scored: list[Schedule] = []
    add = Ranking.add

    def noted(self: Ranking, nest: Schedule) -> Any:
        if not self.space.constraints.is_free:  # else a search for a bound
            scored.append(nest)
        return add(self, nest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constrained, "MAX_SCORED", 0)
        patch.setattr(Ranking, "add", noted)
        yield scored


class TestSearch:
    @given(constraint_sets(with_prefix=True), st.sampled_from(["time", "dram_bytes"]))
    @settings(max_examples=12)
    def test_small_spaces_are_proven(self, given: Constraints, objective: Any) -> None:
        assume(not is_refused(given))
        space = space_of(GEMM, SMALL, given)
        nests = set(everything(space))
        if not nests:
            with pytest.raises(EmptySpaceError):
                search(GEMM, SMALL, objective=objective, constraints=given)
            return
        best = min(rank(evaluate(GEMM, nest, SMALL, effort=0), objective) for nest in nests)
        found = search(GEMM, SMALL, objective=objective, constraints=given)
        if given.is_free:  # then nothing is listed, and ties are not looked for
            assert rank(found.evaluation, objective)[0] == best[0]
        else:
            assert rank(found.evaluation, objective) == best
        assert found.certificate.proven or found.certificate.listed
        assert found.certificate.space_size == n_schedules(space)

    @given(
        constraint_sets(with_prefix=True),
        st.sampled_from(["time", "dram_bytes"]),
        st.integers(8, 40),
    )
    @settings(max_examples=30)
    def test_bounds_hold_where_not_everything_is_scored(
        self, given: Constraints, objective: Any, room: int
    ) -> None:
        assume(not is_refused(given))
        arch = SMALL.with_value("L1.capacity", 4 * room).with_value("L2.capacity", 9 * room)
        space = space_of(GEMM, arch, given)
        nests = set(everything(space))
        if not nests:
            return
        best = min(rank(evaluate(GEMM, nest, arch, effort=0), objective)[0] for nest in nests)
        with built() as scored:
            found = search(GEMM, arch, objective=objective, constraints=given)
        assert found.schedule in nests
        assert set(scored) <= nests
        assert found.certificate.lower_bound <= best * (1 + 1e-12)
        assert found.certificate.value >= best
        if found.certificate.proven:
            assert found.certificate.value == best

    @pytest.mark.parametrize(
        ("problem", "tiles", "capacity"),
        # Waves of tiles side by side are as long as no tile, and the shortest bounds them.
        [(gemm(m=8, n=4, k=1), "powers2", 40), (gemm(m=7, n=3, k=5), "divisors", 120)],
    )
    def test_bounds_hold_for_waves(self, problem: Problem, tiles: Any, capacity: int) -> None:
        cache = Level("L1", "cache", capacity, bandwidth_bytes_per_s=1.0)
        units = Compute("SM", 3, 1.0, 1.0, (("fp32", 4),))
        arch = Arch("one", (Level("DRAM", "memory", None), cache), units)
        space = space_of(problem, arch, Constraints(tiles=tiles))
        best = min(evaluate(problem, nest, arch, effort=0).dram_bytes for nest in everything(space))
        with built():
            found = search(
                problem, arch, objective="dram_bytes", constraints=space.constraints
            ).certificate
        assert found.lower_bound <= best <= found.value

    @given(st.data(), st.one_of(gemms(most=5), convs()))
    @settings(max_examples=25)
    def test_bounds_hold_on_any_machine(self, data: st.DataObject, problem: Problem) -> None:
        problem = problem.with_element_bytes(4)
        arch = data.draw(machines(problem, has_scratchpads=True))
        order = data.draw(st.permutations(problem.dims))
        slots = [slot.name for slot in space_of(problem, arch).slots]
        bounds = []
        for dim, block in data.draw(
            st.lists(
                st.tuples(st.sampled_from(problem.dims), st.sampled_from(slots)),
                max_size=3,
                unique=True,
            )
        ):
            low = data.draw(st.integers(1, problem.size[dim]))
            bounds.append((dim, block, low, data.draw(st.integers(low, problem.size[dim]))))
        given = Constraints(
            tiles=data.draw(st.sampled_from(["divisors", "powers2"])),
            extents=tuple(bounds),
            before=tuple(pairwise(order))[: data.draw(st.integers(0, 3))],
        )
        space = space_of(problem, arch, given)
        assume(0 < n_schedules(space) <= 200)
        objective = data.draw(st.sampled_from(["time", "dram_bytes", "energy", "edp"]))
        value = data.draw(st.sampled_from(["promised", "point", "low"]))
        nests = set(everything(space))
        effort = 0 if value == "promised" else EFFORT
        ranks = []
        for nest in nests:
            with suppress(ScheduleError):
                ranks.append(rank(evaluate(problem, nest, arch, effort=effort), objective, value))
        with built() as scored:
            if not ranks:
                with pytest.raises(EmptySpaceError):
                    search(problem, arch, objective=objective, value=value, constraints=given)
                return
            found = search(problem, arch, objective=objective, value=value, constraints=given)
        best = min(ranks)[0]
        assert found.schedule in nests
        assert set(scored) <= nests
        assert found.certificate.lower_bound <= best * (1 + 1e-12)
        assert found.certificate.value >= best
        if found.certificate.proven:
            assert found.certificate.value <= best * (1 + 1e-12)

    def test_one_point_is_returned(self) -> None:
        nest = "M:4 K:2 N:3@SM M:2@SM N:2"
        found = search(GEMM, SMALL, constraints=Constraints(prefix=nest))
        assert str(found.schedule) == nest
        assert (found.certificate.space_size, found.certificate.listed) == (1, True)
        nest = "M:4 N:3 K:2 M:3@SM N:2@SM M:2 N:1"
        fixed = tuple(
            (dim, block, extent, extent)
            for block, extents in (("L2", (3, 2, 1)), ("SM", (2, 1, 1)), ("L1", (1, 1, 1)))
            for dim, extent in zip("MNK", extents, strict=True)
        )
        point = Constraints(extents=fixed, before=(("M", "N"), ("N", "K")))
        found = search(GEMM, SMALL, constraints=point)
        assert str(found.schedule) == nest.removesuffix(" N:1")
        assert (found.certificate.space_size, found.certificate.listed) == (1, True)

    @pytest.mark.parametrize("objective", ["time", "dram_bytes"])
    @pytest.mark.parametrize(
        "given",
        [
            Constraints(tiles="divisors"),
            Constraints(tiles="powers2"),
            Constraints(before=(("C", "K"), ("K", "P"))),
            Constraints(extents=(("K", "L1", 8, 8), ("C", "L2", 32, 64))),
            Constraints(prefix="K:64@SM P:56@SM K:16"),
        ],
        ids=str,
    )
    def test_large_spaces(self, given: Constraints, objective: Any) -> None:
        free = search(CONV, TITAN, objective=objective).certificate.value
        found = search(CONV, TITAN, objective=objective, constraints=given, top=3)
        assert allows(space_of(CONV, TITAN, given), found.schedule) is None
        certificate = found.certificate
        assert free <= certificate.lower_bound <= certificate.value <= 1.5 * free
        assert certificate.proven == (certificate.value == certificate.lower_bound)
        ranks = [rank(one.evaluation, objective) for one in (found, *found.alternatives)]
        assert ranks == sorted(ranks)

    @pytest.mark.parametrize("budget", [2_000, 10_000, 50_000])
    def test_what_a_small_budget_finds_is_no_bound(self, budget: int) -> None:
        given = Constraints(tiles="divisors")
        found = search(CONV, TITAN, constraints=given).certificate
        early = search(CONV, TITAN, constraints=given, budget=budget).certificate
        assert early.lower_bound <= found.value < early.value

    def test_the_same_again(self) -> None:
        given = Constraints(tiles="powers2")
        first, second = (search(CONV, TITAN, constraints=given) for _ in range(2))
        assert (first.schedule, first.certificate) == (second.schedule, second.certificate)


class TestOrders:
    def test_the_graph_carries_sizes_and_orders(self) -> None:
        import networkx as nx

        graph = order_graph(GEMM, (("K", "M"),))
        assert dict(graph.nodes(data="size")) == {"M": 4, "N": 3, "K": 2}
        expected = {o for o in permutations("MNK") if o.index("K") < o.index("M")}
        assert set(map(tuple, nx.all_topological_sorts(graph))) == expected
        inside = {"M": frozenset[str](), "N": frozenset[str](), "K": frozenset("M")}
        assert set(allowed_orders("MNK", inside)) == expected

    def test_a_precedence_takes_classes_away(self) -> None:
        """With K outside M and N, only A or B can stay in a GEMM: M or N is innermost."""
        from loopsched.scheduler.orders import relevance

        inside = {"M": frozenset[str](), "N": frozenset[str](), "K": frozenset("MN")}
        found = allowed_classes(relevance(GEMM), ("M", "N", "K"), inside)
        assert sorted(one.inward[0] for one in found) == ["M", "N"]
