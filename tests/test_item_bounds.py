"""Bounds on compute steps against every schedule of small spaces."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loopsched.machines.arch_file import load_arch
from loopsched.models.compute import compute_steps
from loopsched.models.score import evaluate
from loopsched.nests.notation import parse_schedule
from loopsched.problems.builders import gemm
from loopsched.scheduler import Constraints, space_of
from loopsched.scheduler.allowed import allowed
from loopsched.scheduler.counting import every_choice, n_schedules
from loopsched.scheduler.item_bounds import least_item_s

TITAN = load_arch("titan_v")


@given(
    st.integers(1, 7),
    st.integers(1, 5),
    st.integers(1, 6),
    st.sampled_from(["all", "divisors", "powers2"]),
    st.sampled_from([None, ("M",), ()]),
    st.lists(st.tuples(st.sampled_from("MN"), st.sampled_from(["L2", "SM"])), unique=True),
    st.data(),
)
@settings(max_examples=30)
def test_no_schedule_takes_fewer_steps(
    m: int, n: int, instances: int, tiles: str, spatial: tuple[str, ...] | None,
    bounded: list[tuple[str, str]], data: st.DataObject,
) -> None:  # fmt: skip
    problem = gemm(m=m, n=n, k=2)
    bounds = tuple(
        (dim, block, 1, data.draw(st.integers(1, problem.size[dim]))) for dim, block in bounded
    )
    given = Constraints(tiles=tiles, extents=bounds, spatial=spatial)  # type: ignore[arg-type]
    space = space_of(problem, TITAN, given)
    assume(0 < n_schedules(space) < 20_000)
    limits = allowed(space)
    nests = {limits.schedule(choice) for choice in every_choice(limits)}
    fewest = min(compute_steps(problem, nest, {"SM": instances}).promised for nest in nests)
    bound = least_item_s(limits, instances, macs_per_s=1.0)
    assert bound <= fewest
    if not bounds and tiles == "divisors":  # then lists and items are all equal
        assert bound == fewest


def test_a_rest_is_cut_into_items_too() -> None:
    """Rows in lists of 4 and a rest of 3, one row an item: two waves, whatever units there are."""
    given = Constraints(extents=(("M", "L2", 4, 4), ("M", "SM", 1, 1)))
    limits = allowed(space_of(gemm(m=7, n=1, k=2), TITAN, given))
    for instances, steps in ((1, 14), (2, 8), (3, 6), (4, 4)):
        assert least_item_s(limits, instances, macs_per_s=1.0) == steps


def test_steps_and_data_of_items_overlap() -> None:
    """Two items, each of one point: two steps' time for as many bytes as one step's time moves."""
    given = Constraints(extents=(("M", "SM", 1, 1),))
    limits = allowed(space_of(gemm(m=2, n=1, k=1, element_bytes=1), TITAN, given))
    # A and C once, B once for each item.
    for bytes_per_s, bound in ((12.0, 1.0), (6.0, 1.0), (3.0, 2.0)):
        assert least_item_s(limits, 2, 1.0, bytes_per_s) == bound


def test_what_nobody_shares_brings_its_data_in_once() -> None:
    """Rows in lists of 4 and 1 bring B in once each; with no list it comes in once."""
    given = Constraints(extents=(("M", "L2", 4, 4),), spatial=("M",))
    problem = gemm(m=9, n=1, k=1, element_bytes=1)
    limits = allowed(space_of(problem, TITAN, given))
    bound = least_item_s(limits, 80, 100.0, 1.0)
    alone = parse_schedule("M:9 M:4", problem)
    assert bound == evaluate(problem, alone, TITAN).level("L1").moved.promised_bytes == 19
